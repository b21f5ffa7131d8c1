//! AQMs in order by what people feel of a network: several figures that have no common unit make one score.
//!
//! Each figure counts as a ratio, and the score is their weighted geometric mean. Halving the time of a page weighs as
//! much as doubling the rate of an upload; 100 % would be an AQM as good as the best in each. The order of two AQMs
//! does not depend on which others are compared.

use crate::{Summary, letter_groups};

/// Scores closer than this ratio count as alike.
pub const ALIKE: f64 = 0.02;

/// A figure that somebody feels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Felt {
    /// Whether more is better.
    pub more: bool,
    /// Where it begins: a call without any quality has MOS 1.
    pub from: f64,
    /// The most that it can be; without a limit infinity.
    pub to: f64,
    /// Below so much, counted from there, ratios mean nothing.
    pub least: f64,
    /// What stands for it where it is not defined.
    pub worst: f64,
    /// How much it counts.
    pub weight: f64,
}

/// What an AQM did: its name, and its figures by figure, by kind of senders, by seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// The AQM as it was asked for.
    pub aqm: String,
    /// Its figures; `None` where one is not defined.
    pub figures: Vec<Vec<Vec<Option<f64>>>>,
}

/// One AQM in its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    /// The AQM as it was asked for.
    pub aqm: String,
    /// 1 + the number of AQMs that are clearly better.
    pub place: usize,
    /// AQMs of which neither it nor they are clearly better.
    pub tied_with: Vec<String>,
    /// Letters of a compact letter display: two AQMs share one if neither is clearly better. `None` with one seed.
    pub group: Option<String>,
    /// 100 times the weighted geometric mean of its ratios to the best in each figure.
    pub score: f64,
    /// Half the 95 % interval of the score; `None` with one seed.
    pub score_half: Option<f64>,
    /// The same score for each kind of senders.
    pub by_senders: Vec<f64>,
    /// Each figure over the seeds, averaged over the senders, where it is defined.
    pub values: Vec<Option<Summary>>,
    /// Whether its mean is the best, by figure; of two that are as good that of the first.
    pub leads: Vec<bool>,
}

impl Felt {
    /// The figure's logarithm, more being better.
    fn good(&self, value: Option<f64>) -> f64 {
        let logarithm = libm::log((value.unwrap_or(self.worst) - self.from).max(self.least));
        if self.more { logarithm } else { -logarithm }
    }
}

/// AQMs in order, the best first, all tried with the same senders and seeds. They meet the same traffic seed by seed,
/// so differences are taken in pairs.
pub fn experienced(felt: &[Felt], tried: &[Tried]) -> Vec<Scored> {
    let Some(senders) = tried.first().and_then(|first| first.figures.first()).map(Vec::len) else { return Vec::new() };
    let good: Vec<Vec<Vec<Vec<f64>>>> = tried.iter().map(|each| goods(felt, each)).collect();
    let best: Vec<Vec<f64>> = (0..felt.len())
        .map(|f| (0..senders).map(|who| largest(good.iter().map(|own| mean(&own[f][who])))).collect())
        .collect();
    let weights: f64 = felt.iter().map(|each| each.weight).sum();
    // The logarithm of an AQM's score with some of the senders, seed by seed.
    let by_seed = |own: &[Vec<Vec<f64>>], over: &[usize]| -> Vec<f64> {
        let part = |f: usize, who: usize, seed: usize| {
            felt[f].weight / weights * (own[f][who][seed] - best[f][who]) / over.len() as f64
        };
        let counted = || (0..felt.len()).filter(|&f| felt[f].weight != 0.0);
        let seeds = own[0][0].len();
        (0..seeds).map(|seed| counted().flat_map(|f| over.iter().map(move |&who| part(f, who, seed))).sum()).collect()
    };
    let all: Vec<usize> = (0..senders).collect();
    let logs: Vec<Vec<f64>> = good.iter().map(|own| by_seed(own, &all)).collect();
    let better = |one: usize, other: usize| one != other && clearly(&logs[one], &logs[other]);
    let overall = |own: &[Vec<Vec<f64>>], f: usize| own[f].iter().map(|values| mean(values)).sum::<f64>();
    let leaders: Vec<usize> = (0..felt.len()).map(|f| first_largest(good.iter().map(|own| overall(own, f)))).collect();
    let mut scored: Vec<(usize, Scored)> = tried
        .iter()
        .enumerate()
        .filter_map(|(i, each)| {
            let Summary { mean: level, ci95, .. } = Summary::of(&logs[i])?;
            let level = 100.0 * libm::exp(level);
            let neither = |j: &usize| *j != i && !better(*j, i) && !better(i, *j);
            let found = Scored {
                aqm: each.aqm.clone(),
                place: 1 + (0..tried.len()).filter(|&other| better(other, i)).count(),
                tied_with: (0..tried.len()).filter(neither).map(|other| tried[other].aqm.clone()).collect(),
                group: None,
                score: level,
                score_half: ci95.map(|[low, high]| level * libm::sinh((high - low) / 2.0)),
                by_senders: all.iter().map(|&who| 100.0 * libm::exp(mean(&by_seed(&good[i], &[who])))).collect(),
                values: each.figures.iter().zip(felt).map(|(by_senders, felt)| over_seeds(by_senders, felt)).collect(),
                leads: leaders.iter().map(|&leader| leader == i).collect(),
            };
            Some((i, found))
        })
        .collect();
    scored.sort_by(|(_, one), (_, other)| other.score.total_cmp(&one.score));
    let rows: Vec<usize> = scored.iter().map(|&(i, _)| i).collect();
    let letters = letter_groups(rows.len(), |i, j| better(rows[i], rows[j]) || better(rows[j], rows[i]));
    // Nobody has a better place than one with a better score.
    let mut least = 1;
    for ((_, each), letters) in scored.iter_mut().zip(letters) {
        least = least.max(each.place);
        each.place = least;
        each.group = each.score_half.map(|_| letters);
    }
    scored.into_iter().map(|(_, each)| each).collect()
}

/// Logarithms of the figures, as they lie.
fn goods(felt: &[Felt], tried: &Tried) -> Vec<Vec<Vec<f64>>> {
    let of_figure = |(figure, felt): (&Vec<Vec<Option<f64>>>, &Felt)| {
        figure.iter().map(|seeds| seeds.iter().map(|&value| felt.good(value)).collect()).collect()
    };
    tried.figures.iter().zip(felt).map(of_figure).collect()
}

/// Whether one's score is above the other's by more than what counts as alike, as sure as the seeds allow.
fn clearly(one: &[f64], other: &[f64]) -> bool {
    let differences: Vec<f64> = one.iter().zip(other).map(|(one, other)| one - other).collect();
    let Some(Summary { mean, ci95, .. }) = Summary::of(&differences) else { return false };
    ci95.map_or(mean, |[low, _]| low) > 0.0 && mean > libm::log1p(ALIKE)
}

/// Summary over the seeds of the mean over the senders, of what is defined.
fn over_seeds(by_senders: &[Vec<Option<f64>>], felt: &Felt) -> Option<Summary> {
    let seeds = by_senders.first().map_or(0, Vec::len);
    let means: Vec<f64> = (0..seeds)
        .map(|seed| by_senders.iter().filter_map(|values| values[seed]).collect::<Vec<f64>>())
        .filter(|known| !known.is_empty())
        .map(|known| mean(&known))
        .collect();
    Summary::within(&means, [felt.from, felt.to])
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn largest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(f64::NEG_INFINITY, f64::max)
}

/// Where the largest stands; of equal ones the first.
fn first_largest(values: impl Iterator<Item = f64>) -> usize {
    let first = values.enumerate().reduce(|best, next| if next.1 > best.1 { next } else { best });
    first.map_or(0, |(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Felt = Felt { more: false, from: 0.0, to: f64::INFINITY, least: 1e-3, worst: 60.0, weight: 1.0 };
    const RATE: Felt = Felt { more: true, ..TIME };

    /// One kind of senders; for each AQM its times and its rates, by seed.
    fn tried(all: &[(&str, &[f64], &[f64])]) -> Vec<Tried> {
        let known = |values: &[f64]| vec![values.iter().copied().map(Some).collect()];
        let each = |(aqm, times, rates): &(&str, &[f64], &[f64])| Tried {
            aqm: aqm.to_string(),
            figures: vec![known(times), known(rates)],
        };
        all.iter().map(each).collect()
    }

    fn near(one: f64, other: f64) {
        assert!((one - other).abs() < 1e-9 * other.abs(), "{one} {other}");
    }

    #[test]
    fn a_figure_counts_by_what_it_has_above_its_least() {
        // Marks from 1 on: of 3 and 2 the one has twice as much as the other; the times are alike.
        let marks = Felt { from: 1.0, to: 4.5, ..RATE };
        let found = experienced(&[TIME, marks], &tried(&[("a", &[1.0; 2], &[3.0; 2]), ("b", &[1.0; 2], &[2.0; 2])]));
        near(found[0].score, 100.0);
        near(found[1].score, 100.0 / 2f64.sqrt());
    }

    #[test]
    fn half_the_time_weighs_as_much_as_twice_the_rate() {
        let found = experienced(&[TIME, RATE], &tried(&[("a", &[1.0, 1.0], &[1.0, 1.0]), ("b", &[2.0; 2], &[2.0; 2])]));
        // Each is the best in one, and half as good in the other: sqrt(1/2).
        found.iter().for_each(|each| near(each.score, 100.0 / 2f64.sqrt()));
        let order: Vec<(&str, usize, Vec<bool>)> =
            found.iter().map(|each| (each.aqm.as_str(), each.place, each.leads.clone())).collect();
        assert_eq!(order, [("a", 1, vec![true, false]), ("b", 1, vec![false, true])]);
        assert_eq!(found[0].tied_with, ["b"]);
        // A weight of 3 to 1: 2^(-1/4) and 2^(-3/4).
        let found = experienced(
            &[Felt { weight: 3.0, ..TIME }, RATE],
            &tried(&[("b", &[2.0, 2.0], &[2.0, 2.0]), ("a", &[1.0, 1.0], &[1.0, 1.0])]),
        );
        assert_eq!((found[0].aqm.as_str(), found[0].place, found[1].place), ("a", 1, 2));
        near(found[0].score, 100.0 * 2f64.powf(-0.25));
        near(found[1].score, 100.0 * 2f64.powf(-0.75));
        assert_eq!(found[0].score_half, Some(0.0));
    }

    #[test]
    fn what_the_seeds_do_not_tell_apart_is_tied() {
        let order = |one: &[f64], other: &[f64]| {
            let alone = |values: &[f64]| vec![vec![values.iter().copied().map(Some).collect()]];
            let all = [("one", one), ("other", other)];
            let all = all.map(|(aqm, values)| Tried { aqm: aqm.into(), figures: alone(values) });
            experienced(&[TIME], &all).iter().map(|each| (each.aqm.clone(), each.place)).collect::<Vec<_>>()
        };
        let told = |order: Vec<(String, usize)>| order.iter().map(|(_, place)| *place).collect::<Vec<_>>();
        // Faster by a tenth with each seed; or by as much on average, but with one seed of three alone.
        assert_eq!(told(order(&[1.0, 2.0, 3.0], &[1.1, 2.2, 3.3])), [1, 2]);
        assert_eq!(told(order(&[1.0, 2.0, 3.0], &[1.33, 2.0, 3.0])), [1, 1]);
        // A hundredth is alike, however sure.
        assert_eq!(told(order(&[1.0, 2.0, 3.0], &[1.01, 2.02, 3.03])), [1, 1]);
        // One seed is believed.
        assert_eq!(told(order(&[1.0], &[1.1])), [1, 2]);
    }

    #[test]
    fn what_is_not_defined_counts_as_the_worst_and_is_not_in_the_mean() {
        let figure = |values: [[Option<f64>; 2]; 2]| vec![values.map(|seeds| seeds.to_vec()).to_vec()];
        let all = [
            Tried { aqm: "whole".into(), figures: figure([[Some(1.0), Some(3.0)], [Some(1.0), Some(3.0)]]) },
            Tried { aqm: "part".into(), figures: figure([[Some(1.0), None], [None, None]]) },
        ];
        let found = experienced(&[TIME], &all);
        let [whole, part] = &found[..] else { panic!("two") };
        assert_eq!((whole.aqm.as_str(), part.aqm.as_str()), ("whole", "part"));
        let [Some(values), Some(of_part)] = [whole.values[0], part.values[0]] else { panic!("both have some") };
        assert_eq!((values.mean, values.n, of_part.mean, of_part.n), (2.0, 2, 1.0, 1));
        // Sixty times and twenty times as long with the second kind: 100 / sqrt(1200).
        near(part.by_senders[1], 100.0 / 1200f64.sqrt());
        assert_eq!(experienced(&[TIME], &[]), []);
    }
}
