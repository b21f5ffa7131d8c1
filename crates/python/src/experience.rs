//! AQMs in order by what people feel: what `aqumen_result` makes of their runs.

use aqumen_result::{Felt, Scored, Summary, Tried};
use pyo3::prelude::*;

/// A figure: whether more is better, where it begins and ends, below which ratios mean nothing, the worst, its weight.
type Figure = (bool, f64, f64, f64, f64, f64);

/// An AQM, and its figures by figure, kind of senders and seed.
type Runs = (String, Vec<Vec<Vec<Option<f64>>>>);

/// A summary as Python has it: mean, standard deviation, interval, number of runs.
type Told = Option<(f64, Option<f64>, Option<[f64; 2]>, usize)>;

/// AQM, place, those with which it is tied, its letters, score, half its interval, score by senders, figures, and in
/// which of them it leads.
type Place = (String, usize, Vec<String>, Option<String>, f64, Option<f64>, Vec<f64>, Vec<Told>, Vec<bool>);

/// AQMs in order, the best first.
#[pyfunction]
pub(crate) fn experienced(felt: Vec<Figure>, runs: Vec<Runs>) -> Vec<Place> {
    let felt: Vec<Felt> = felt
        .into_iter()
        .map(|(more, from, to, least, worst, weight)| Felt { more, from, to, least, worst, weight })
        .collect();
    let tried: Vec<Tried> = runs.into_iter().map(|(aqm, figures)| Tried { aqm, figures }).collect();
    aqumen_result::experienced(&felt, &tried).into_iter().map(place).collect()
}

fn place(found: Scored) -> Place {
    let told = |summary: Summary| (summary.mean, summary.std, summary.ci95, summary.n);
    let values = found.values.into_iter().map(|summary| summary.map(told)).collect();
    let Scored { aqm, place, tied_with, group, score, score_half, by_senders, leads, .. } = found;
    (aqm, place, tied_with, group, score, score_half, by_senders, values, leads)
}
