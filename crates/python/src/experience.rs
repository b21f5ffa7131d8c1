//! Ranking of AQMs by users' experience, by `aqumen_result`.

use aqumen_result::{Candidate, ExperienceMetric, Score, Summary};
use pyo3::prelude::*;

/// Metric: whether more is better, its range (two values), the floor of ratios, its worst value, its weight.
type Metric = (bool, f64, f64, f64, f64, f64);

/// AQM, and its values by metric, kind of senders and seed.
type Runs = (String, Vec<Vec<Vec<Option<f64>>>>);

/// Summary: mean, standard deviation, interval, number of runs.
type SummaryTuple = Option<(f64, Option<f64>, Option<[f64; 2]>, usize)>;

/// AQM, rank, tied AQMs, letters, score, half of its interval, score by senders, summaries of the metrics, and whether
/// the AQM leads in each.
type RankTuple = (String, usize, Vec<String>, Option<String>, f64, Option<f64>, Vec<f64>, Vec<SummaryTuple>, Vec<bool>);

/// Ranks AQMs, the best first.
#[pyfunction]
pub(crate) fn rank_by_experience(metrics: Vec<Metric>, runs: Vec<Runs>) -> Vec<RankTuple> {
    let metrics: Vec<ExperienceMetric> = metrics
        .into_iter()
        .map(|(more, from, to, least, worst, weight)| ExperienceMetric { more, from, to, least, worst, weight })
        .collect();
    let runs: Vec<Candidate> = runs.into_iter().map(|(aqm, values)| Candidate { aqm, values }).collect();
    aqumen_result::score_experience(&metrics, &runs).into_iter().map(rank_tuple).collect()
}

fn rank_tuple(ranked: Score) -> RankTuple {
    let summary = |summary: Summary| (summary.mean, summary.std, summary.ci95, summary.n);
    let values = ranked.values.into_iter().map(|value| value.map(summary)).collect();
    let Score { aqm, place, tied_with, group, score, score_half, by_senders, leads, .. } = ranked;
    (aqm, place, tied_with, group, score, score_half, by_senders, values, leads)
}
