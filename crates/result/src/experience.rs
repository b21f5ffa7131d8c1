//! Ranking of AQMs by quality of experience: one score from several metrics without a common unit.
//!
//! Each metric counts as a ratio, and the score is their weighted geometric mean: half the page load time counts as
//! much as twice the upload rate. 100 % means as good as the best AQM in every metric. The order of two AQMs does not
//! depend on the others.

use crate::{Summary, letter_groups};

/// Ratio below which scores count as equal.
pub const TIE_RATIO: f64 = 0.02;

/// A metric of user experience.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExperienceMetric {
    /// Whether more is better.
    pub more: bool,
    /// Zero of the ratio scale, such as MOS 1 for a call without any quality.
    pub from: f64,
    /// Largest value; infinity without a limit.
    pub to: f64,
    /// Least distance from the zero at which ratios are meaningful.
    pub least: f64,
    /// Value that replaces an undefined one.
    pub worst: f64,
    /// Weight in the score.
    pub weight: f64,
}

/// Values of an AQM, by metric, type of sender and seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The AQM as specified.
    pub aqm: String,
    /// Values; `None` if undefined.
    pub values: Vec<Vec<Vec<Option<f64>>>>,
}

/// Score of one AQM.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// The AQM as specified.
    pub aqm: String,
    /// 1 + the number of AQMs that are significantly better.
    pub place: usize,
    /// AQMs that are not significantly different.
    pub tied_with: Vec<String>,
    /// Letters of a compact letter display: AQMs that share one are not significantly different. `None` with one seed.
    pub group: Option<String>,
    /// 100 times the weighted geometric mean of the ratios to the best value of each metric.
    pub score: f64,
    /// Half of the score's 95 % interval; `None` with one seed.
    pub score_half: Option<f64>,
    /// Score for each type of sender.
    pub by_senders: Vec<f64>,
    /// Summary of each metric over seeds, averaged over types of senders, if defined.
    pub values: Vec<Option<Summary>>,
    /// Whether the mean is the best, by metric; the first of equal ones.
    pub leads: Vec<bool>,
}

impl ExperienceMetric {
    /// Logarithm of the metric, signed so that more is better.
    fn logarithm(&self, value: Option<f64>) -> f64 {
        let logarithm = libm::log((value.unwrap_or(self.worst) - self.from).max(self.least));
        if self.more { logarithm } else { -logarithm }
    }
}

/// Scores AQMs, the best first. All have the same senders and seeds, and the same traffic for each seed, so differences
/// are paired.
pub fn score_experience(metrics: &[ExperienceMetric], candidates: &[Candidate]) -> Vec<Score> {
    let Some(senders) = candidates.first().and_then(|first| first.values.first()).map(Vec::len) else {
        return Vec::new();
    };
    let logarithm: Vec<Vec<Vec<Vec<f64>>>> = candidates.iter().map(|each| logarithms(metrics, each)).collect();
    let best: Vec<Vec<f64>> = (0..metrics.len())
        .map(|f| (0..senders).map(|sender| largest(logarithm.iter().map(|of_aqm| mean(&of_aqm[f][sender])))).collect())
        .collect();
    let weights: f64 = metrics.iter().map(|each| each.weight).sum();
    // Logarithm of an AQM's score for some types of senders, by seed.
    let by_seed = |of_aqm: &[Vec<Vec<f64>>], over: &[usize]| -> Vec<f64> {
        let part = |f: usize, sender: usize, seed: usize| {
            metrics[f].weight / weights * (of_aqm[f][sender][seed] - best[f][sender]) / over.len() as f64
        };
        let counted = || (0..metrics.len()).filter(|&f| metrics[f].weight != 0.0);
        let seeds = of_aqm[0][0].len();
        (0..seeds)
            .map(|seed| counted().flat_map(|f| over.iter().map(move |&sender| part(f, sender, seed))).sum())
            .collect()
    };
    let all: Vec<usize> = (0..senders).collect();
    let logs: Vec<Vec<f64>> = logarithm.iter().map(|of_aqm| by_seed(of_aqm, &all)).collect();
    let better = |one: usize, other: usize| one != other && significantly(&logs[one], &logs[other]);
    let overall = |of_aqm: &[Vec<Vec<f64>>], f: usize| of_aqm[f].iter().map(|values| mean(values)).sum::<f64>();
    let leaders: Vec<usize> =
        (0..metrics.len()).map(|f| index_of_largest(logarithm.iter().map(|of_aqm| overall(of_aqm, f)))).collect();
    let mut scored: Vec<(usize, Score)> = candidates
        .iter()
        .enumerate()
        .filter_map(|(i, each)| {
            let Summary { mean: level, ci95, .. } = Summary::from_values(&logs[i])?;
            let level = 100.0 * libm::exp(level);
            let neither = |j: &usize| *j != i && !better(*j, i) && !better(i, *j);
            let found = Score {
                aqm: each.aqm.clone(),
                place: 1 + (0..candidates.len()).filter(|&other| better(other, i)).count(),
                tied_with: (0..candidates.len()).filter(neither).map(|other| candidates[other].aqm.clone()).collect(),
                group: None,
                score: level,
                score_half: ci95.map(|[low, high]| level * libm::sinh((high - low) / 2.0)),
                by_senders: all
                    .iter()
                    .map(|&sender| 100.0 * libm::exp(mean(&by_seed(&logarithm[i], &[sender]))))
                    .collect(),
                values: each
                    .values
                    .iter()
                    .zip(metrics)
                    .map(|(by_senders, metric)| over_seeds(by_senders, metric))
                    .collect(),
                leads: leaders.iter().map(|&leader| leader == i).collect(),
            };
            Some((i, found))
        })
        .collect();
    scored.sort_by(|(_, one), (_, other)| other.score.total_cmp(&one.score));
    let rows: Vec<usize> = scored.iter().map(|&(i, _)| i).collect();
    let letters = letter_groups(rows.len(), |i, j| better(rows[i], rows[j]) || better(rows[j], rows[i]));
    // A better score never has a worse rank.
    let mut least = 1;
    for ((_, each), letters) in scored.iter_mut().zip(letters) {
        least = least.max(each.place);
        each.place = least;
        each.group = each.score_half.map(|_| letters);
    }
    scored.into_iter().map(|(_, each)| each).collect()
}

/// Logarithms of the values, in their order.
fn logarithms(metrics: &[ExperienceMetric], candidate: &Candidate) -> Vec<Vec<Vec<f64>>> {
    let of_metric = |(values, metric): (&Vec<Vec<Option<f64>>>, &ExperienceMetric)| {
        values.iter().map(|seeds| seeds.iter().map(|&value| metric.logarithm(value)).collect()).collect()
    };
    candidate.values.iter().zip(metrics).map(of_metric).collect()
}

/// Whether one's score is significantly above the other's, by more than [`TIE_RATIO`].
fn significantly(one: &[f64], other: &[f64]) -> bool {
    let differences: Vec<f64> = one.iter().zip(other).map(|(one, other)| one - other).collect();
    let Some(Summary { mean, ci95, .. }) = Summary::from_values(&differences) else { return false };
    ci95.map_or(mean, |[low, _]| low) > 0.0 && mean > libm::log1p(TIE_RATIO)
}

/// Summary over seeds of the mean over types of senders, of defined values.
fn over_seeds(by_senders: &[Vec<Option<f64>>], metric: &ExperienceMetric) -> Option<Summary> {
    let seeds = by_senders.first().map_or(0, Vec::len);
    let means: Vec<f64> = (0..seeds)
        .map(|seed| by_senders.iter().filter_map(|values| values[seed]).collect::<Vec<f64>>())
        .filter(|known| !known.is_empty())
        .map(|known| mean(&known))
        .collect();
    Summary::from_values_in(&means, [metric.from, metric.to])
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn largest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(f64::NEG_INFINITY, f64::max)
}

/// Index of the largest value; the first of equal ones.
fn index_of_largest(values: impl Iterator<Item = f64>) -> usize {
    let first = values.enumerate().reduce(|best, next| if next.1 > best.1 { next } else { best });
    first.map_or(0, |(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: ExperienceMetric =
        ExperienceMetric { more: false, from: 0.0, to: f64::INFINITY, least: 1e-3, worst: 60.0, weight: 1.0 };
    const RATE: ExperienceMetric = ExperienceMetric { more: true, ..TIME };

    /// One type of sender; times and rates of each AQM, by seed.
    fn candidates(all: &[(&str, &[f64], &[f64])]) -> Vec<Candidate> {
        let known = |values: &[f64]| vec![values.iter().copied().map(Some).collect()];
        let each = |(aqm, times, rates): &(&str, &[f64], &[f64])| Candidate {
            aqm: aqm.to_string(),
            values: vec![known(times), known(rates)],
        };
        all.iter().map(each).collect()
    }

    fn near(one: f64, other: f64) {
        assert!((one - other).abs() < 1e-9 * other.abs(), "{one} {other}");
    }

    #[test]
    fn a_metric_counts_from_its_zero() {
        // MOS from 1 on: 3 counts twice as much as 2; the times are equal.
        let marks = ExperienceMetric { from: 1.0, to: 4.5, ..RATE };
        let found =
            score_experience(&[TIME, marks], &candidates(&[("a", &[1.0; 2], &[3.0; 2]), ("b", &[1.0; 2], &[2.0; 2])]));
        near(found[0].score, 100.0);
        near(found[1].score, 100.0 / 2f64.sqrt());
    }

    #[test]
    fn half_the_time_counts_as_much_as_twice_the_rate() {
        let found = score_experience(
            &[TIME, RATE],
            &candidates(&[("a", &[1.0, 1.0], &[1.0, 1.0]), ("b", &[2.0; 2], &[2.0; 2])]),
        );
        // Each is the best in one metric, and half as good in the other: sqrt(1/2).
        found.iter().for_each(|each| near(each.score, 100.0 / 2f64.sqrt()));
        let order: Vec<(&str, usize, Vec<bool>)> =
            found.iter().map(|each| (each.aqm.as_str(), each.place, each.leads.clone())).collect();
        assert_eq!(order, [("a", 1, vec![true, false]), ("b", 1, vec![false, true])]);
        assert_eq!(found[0].tied_with, ["b"]);
        // A weight of 3 to 1: 2^(-1/4) and 2^(-3/4).
        let found = score_experience(
            &[ExperienceMetric { weight: 3.0, ..TIME }, RATE],
            &candidates(&[("b", &[2.0, 2.0], &[2.0, 2.0]), ("a", &[1.0, 1.0], &[1.0, 1.0])]),
        );
        assert_eq!((found[0].aqm.as_str(), found[0].place, found[1].place), ("a", 1, 2));
        near(found[0].score, 100.0 * 2f64.powf(-0.25));
        near(found[1].score, 100.0 * 2f64.powf(-0.75));
        assert_eq!(found[0].score_half, Some(0.0));
    }

    #[test]
    fn insignificant_differences_are_tied() {
        let order = |one: &[f64], other: &[f64]| {
            let alone = |values: &[f64]| vec![vec![values.iter().copied().map(Some).collect()]];
            let all = [("one", one), ("other", other)];
            let all = all.map(|(aqm, values)| Candidate { aqm: aqm.into(), values: alone(values) });
            score_experience(&[TIME], &all).iter().map(|each| (each.aqm.clone(), each.place)).collect::<Vec<_>>()
        };
        let places = |order: Vec<(String, usize)>| order.iter().map(|(_, place)| *place).collect::<Vec<_>>();
        // Faster by a tenth for each seed; or by as much on average, for one seed of three.
        assert_eq!(places(order(&[1.0, 2.0, 3.0], &[1.1, 2.2, 3.3])), [1, 2]);
        assert_eq!(places(order(&[1.0, 2.0, 3.0], &[1.33, 2.0, 3.0])), [1, 1]);
        // A hundredth counts as equal, however significant.
        assert_eq!(places(order(&[1.0, 2.0, 3.0], &[1.01, 2.02, 3.03])), [1, 1]);
        // With one seed the difference counts.
        assert_eq!(places(order(&[1.0], &[1.1])), [1, 2]);
    }

    #[test]
    fn an_undefined_value_counts_as_the_worst_and_is_not_in_the_mean() {
        let metric = |values: [[Option<f64>; 2]; 2]| vec![values.map(|seeds| seeds.to_vec()).to_vec()];
        let all = [
            Candidate { aqm: "whole".into(), values: metric([[Some(1.0), Some(3.0)], [Some(1.0), Some(3.0)]]) },
            Candidate { aqm: "part".into(), values: metric([[Some(1.0), None], [None, None]]) },
        ];
        let found = score_experience(&[TIME], &all);
        let [whole, part] = &found[..] else { panic!("two") };
        assert_eq!((whole.aqm.as_str(), part.aqm.as_str()), ("whole", "part"));
        let [Some(values), Some(of_part)] = [whole.values[0], part.values[0]] else { panic!("both have some") };
        assert_eq!((values.mean, values.n, of_part.mean, of_part.n), (2.0, 2, 1.0, 1));
        // Sixty and twenty times as long for the second type of sender: 100 / sqrt(1200).
        near(part.by_senders[1], 100.0 / 1200f64.sqrt());
        assert_eq!(score_experience(&[TIME], &[]), []);
    }
}
