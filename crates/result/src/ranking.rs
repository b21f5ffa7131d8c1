//! Ranking of AQMs by a goal, with its significance. The ranked metrics are [`Summary`]s over seeds; differences within
//! 95 % intervals are not significant.
//!
//! Delay and utilisation are two metrics. An AQM with lower delay and equal utilisation is better. Where one has lower
//! delay and the other higher utilisation, power decides; without it the largest queue would rank among the best
//! regardless of its delay.

use std::cmp::Ordering;
use std::fmt;

use crate::goal::{GOALS, Goal, GoalMetric};
use crate::{Summary, letter_groups};
use indexmap::IndexMap;

/// Summaries of the known metrics of each AQM.
pub type MetricSummaries = IndexMap<String, IndexMap<String, Summary>>;

/// Rank of one AQM.
#[derive(Clone, Debug, PartialEq)]
pub struct Rank {
    /// The AQM as specified.
    pub aqm: String,
    /// 1 + the number of AQMs that are significantly better.
    pub place: usize,
    /// Whether it is significantly better than every other.
    pub clearly_best: bool,
    /// AQMs that are not significantly different.
    pub tied_with: Vec<String>,
    /// Letters of a compact letter display: AQMs that share one are not significantly different. `None` without
    /// intervals.
    pub group: Option<String>,
}

/// AQMs in order, the best first.
#[derive(Clone, Debug)]
pub struct Ranking {
    /// Goal of the ranking.
    pub goal: &'static Goal,
    /// Description of the goal.
    pub description: String,
    /// Ranks of the AQMs.
    pub places: Vec<Rank>,
}

/// Error of a ranking.
#[derive(Clone, Debug, PartialEq)]
pub enum RankError {
    /// Unknown name of a goal.
    UnknownGoal(String),
    /// No AQM has the goal's metric.
    MissingMetric(&'static Goal),
}

impl fmt::Display for RankError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RankError::UnknownGoal(by) => {
                let names: Vec<&str> = GOALS.iter().map(|goal| goal.name).collect();
                write!(f, "rank by {by}: no such goal; choose from: {}", names.join(", "))
            }
            RankError::MissingMetric(goal) => write!(f, "rank by {}: {}", goal.name, goal.missing),
        }
    }
}

impl std::error::Error for RankError {}

/// Ranks AQMs by the named goal; by default by queue error if all have a target, otherwise by delay at utilisation.
/// Power includes `base_rtt_s`, the round-trip time without queueing.
pub fn rank(summaries: &MetricSummaries, by: Option<&str>, base_rtt_s: f64) -> Result<Ranking, RankError> {
    let goal = goal(summaries, by)?;
    let intervals: Vec<Vec<Interval>> = summaries
        .values()
        .map(|metrics| goal.metrics.iter().map(|metric| Interval::new(metrics.get(metric.key), metric)).collect())
        .collect();
    let power: Vec<Interval> =
        intervals.iter().filter(|_| goal.power).map(|each| Interval::power(each, base_rtt_s)).collect();
    let is_better = |a: usize, b: usize| {
        let beats = beats(&intervals[a], &intervals[b], goal.metrics);
        if power.is_empty() {
            return beats;
        }
        // Never against the power of the means: this makes the relation acyclic.
        power[a].mean <= power[b].mean && (beats || power[a].high < power[b].low)
    };
    let n = summaries.len();
    let beats = Relation::new(n, is_better);
    // Better or equal means are no proof, but exclude a lower rank.
    let has_better_means = Relation::new(n, |a, b| has_better_means(&intervals[a], &intervals[b]));
    let below = Relation::new(n, |a, b| beats.holds(a, b) || has_better_means.holds(a, b)).transitive_closure();
    let or_same = Relation::new(n, |a, b| a == b || below.holds(a, b));
    let proven = or_same.compose(&beats).compose(&or_same);
    let better = |b: usize| (0..n).filter(|&a| proven.holds(a, b) && !or_same.holds(b, a)).count();
    let places: Vec<usize> = (0..n).map(|b| 1 + better(b)).collect();
    let measured = |i: usize| {
        let has_interval = |metric: &GoalMetric| summaries[i].get(metric.key).is_some_and(|each| each.ci95.is_some());
        goal.metrics.iter().all(has_interval)
    };
    let sure = n > 1 && (0..n).all(measured);
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| {
        let means = |i: usize| power.get(i).into_iter().chain(&intervals[i]).map(|interval| interval.mean);
        places[a].cmp(&places[b]).then_with(|| means(a).partial_cmp(means(b)).unwrap_or(Ordering::Equal))
    });
    let name = |i: usize| summaries.get_index(i).map_or_else(String::new, |(aqm, _)| aqm.clone());
    let tied = |a: usize, b: usize| !beats.holds(a, b) && !beats.holds(b, a);
    let lettered: Vec<usize> = order.iter().copied().filter(|&i| measured(i)).collect();
    let letters = letter_groups(lettered.len(), |i, j| !tied(lettered[i], lettered[j]));
    let place = |a: usize| Rank {
        aqm: name(a),
        place: places[a],
        clearly_best: sure && (0..n).all(|b| a == b || beats.holds(a, b)),
        tied_with: (0..n).filter(|&b| b != a && tied(a, b)).map(name).collect(),
        group: lettered.iter().position(|&i| i == a).map(|row| letters[row].clone()),
    };
    Ok(Ranking { goal, description: goal.description_for(base_rtt_s), places: order.into_iter().map(place).collect() })
}

fn goal(summaries: &MetricSummaries, by: Option<&str>) -> Result<&'static Goal, RankError> {
    let named = |name: &str| Goal::find(name).ok_or_else(|| RankError::UnknownGoal(name.into()));
    let Some(by) = by else {
        let has_target = summaries.values().all(|metrics| metrics.contains_key("qacd_pkts"));
        return named(if has_target { "queue-error" } else { "delay-at-utilization" });
    };
    let goal = named(by)?;
    let metric = goal.metrics[0].key;
    if summaries.values().any(|metrics| metrics.contains_key(metric)) {
        Ok(goal)
    } else {
        Err(RankError::MissingMetric(goal))
    }
}

/// Confidence interval and mean, signed so that less is better; infinite if undefined.
#[derive(Clone, Copy, Debug)]
struct Interval {
    low: f64,
    mean: f64,
    high: f64,
}

impl Interval {
    fn new(summary: Option<&Summary>, metric: &GoalMetric) -> Interval {
        let Some(summary) = summary else {
            return Interval { low: f64::INFINITY, mean: f64::INFINITY, high: f64::INFINITY };
        };
        let mean = summary.mean;
        let [low, high] = summary.ci95.unwrap_or([mean, mean]);
        if metric.higher_is_better {
            Interval { low: -high, mean: -mean, high: -low }
        } else {
            Interval { low, mean, high }
        }
    }

    /// Kleinrock's power of delay and utilisation, inverted so that less is better: response time per utilisation, with
    /// the extreme values of both intervals.
    ///
    /// L. Kleinrock, "Power and deterministic rules of thumb for probabilistic problems in computer communications",
    /// ICC 1979: throughput over response time.
    fn power(intervals: &[Interval], base_rtt_s: f64) -> Interval {
        let (delay, used) = (intervals[0], intervals[1]);
        // The sign of utilisation is inverted: -1 is full.
        let paid = |delay_s: f64, used: f64| if used < 0.0 { (base_rtt_s + delay_s) / -used } else { f64::INFINITY };
        Interval {
            low: paid(delay.low.max(0.0), used.low),
            mean: paid(delay.mean, used.mean),
            high: paid(delay.high, used.high),
        }
    }
}

/// Whether one is significantly better in some metric and significantly worse in none.
fn beats(one: &[Interval], other: &[Interval], metrics: &[GoalMetric]) -> bool {
    let clear = |a: &[Interval], b: &[Interval]| {
        let mut each = a.iter().zip(b).zip(metrics);
        each.any(|((a, b), metric)| a.high + metric.tolerance < b.low)
    };
    clear(one, other) && !clear(other, one)
}

/// Whether one's means are nowhere worse and somewhere better.
fn has_better_means(one: &[Interval], other: &[Interval]) -> bool {
    let mut means = one.iter().zip(other).map(|(a, b)| (a.mean, b.mean));
    means.clone().all(|(a, b)| a <= b) && means.any(|(a, b)| a < b)
}

/// Binary relation between AQMs.
struct Relation(Vec<Vec<bool>>);

impl Relation {
    fn new(n: usize, holds: impl Fn(usize, usize) -> bool) -> Self {
        Relation((0..n).map(|a| (0..n).map(|b| holds(a, b)).collect()).collect())
    }

    fn holds(&self, a: usize, b: usize) -> bool {
        self.0[a][b]
    }

    /// Transitive closure.
    fn transitive_closure(mut self) -> Self {
        let n = self.0.len();
        for over in 0..n {
            for a in 0..n {
                for b in 0..n {
                    self.0[a][b] |= self.0[a][over] && self.0[over][b];
                }
            }
        }
        self
    }

    /// Composition with `next`.
    fn compose(&self, next: &Relation) -> Relation {
        let n = self.0.len();
        Relation::new(n, |a, b| (0..n).any(|over| self.holds(a, over) && next.holds(over, b)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn summary(mean: f64, half: f64) -> Summary {
        Summary { mean, std: Some(half), ci95: Some([mean - half, mean + half]), n: 5 }
    }

    fn summaries(rows: &[(&str, &[(&str, Summary)])]) -> MetricSummaries {
        let metrics = |row: &[(&str, Summary)]| row.iter().map(|&(key, each)| (key.to_string(), each)).collect();
        rows.iter().map(|&(aqm, row)| (aqm.to_string(), metrics(row))).collect()
    }

    /// Mean sojourn time in milliseconds and utilisation, with intervals of ±0.1 ms and ±0.0001.
    fn link(rows: &[(&str, f64, f64)]) -> MetricSummaries {
        let each = rows.iter().map(|&(aqm, delay_ms, used)| {
            let delay = ("sojourn_mean_s".to_string(), summary(delay_ms * 1e-3, 1e-4));
            (aqm.to_string(), IndexMap::from([delay, ("utilization".to_string(), summary(used, 1e-4))]))
        });
        each.collect()
    }

    fn order(ranking: &Ranking) -> Vec<(&str, usize, bool)> {
        ranking.places.iter().map(|each| (each.aqm.as_str(), each.place, each.clearly_best)).collect()
    }

    #[test]
    fn overlapping_intervals_are_tied_and_disjoint_ones_differ() {
        // a [8, 12], b [11, 15], c [14, 18]: a is significantly better than c, b is tied with both.
        let error = |mean| ("qacd_pkts", summary(mean, 2.0));
        let found = rank(&summaries(&[("c", &[error(16.0)]), ("b", &[error(13.0)]), ("a", &[error(10.0)])]), None, 0.0);
        let found = found.unwrap();
        assert_eq!(found.goal.name, "queue-error");
        assert_eq!(order(&found), [("a", 1, false), ("b", 1, false), ("c", 2, false)]);
        assert_eq!(found.places[1].tied_with, ["c", "a"]);
    }

    #[test]
    fn a_better_mean_than_that_of_a_better_aqm_ranks_at_least_as_high() {
        // b, 10 ± 0.5, is significantly better than c, 12 ± 0.5. a, 9.9 ± 5, is not significantly different but has a
        // better mean than b.
        let error = |mean, half| ("qacd_pkts", summary(mean, half));
        let all = summaries(&[("c", &[error(12.0, 0.5)]), ("b", &[error(10.0, 0.5)]), ("a", &[error(9.9, 5.0)])]);
        let found = rank(&all, None, 0.0).unwrap();
        assert_eq!(order(&found), [("a", 1, false), ("b", 1, false), ("c", 3, false)]);
    }

    #[test]
    fn equal_utilisation_and_lower_delay_is_better() {
        // Power, 1/s: 0.997 / 0.0374 = 26.7; 0.954 / 0.0539 = 17.7; 0.998 / 0.930 = 1.07.
        let all = link(&[("codel", 23.9, 0.954), ("fq-codel", 7.4, 0.997), ("droptail", 900.0, 0.998)]);
        let found = rank(&all, None, 0.03).unwrap();
        assert_eq!(found.goal.name, "delay-at-utilization");
        assert!(
            found.description.contains("utilisation over round-trip time (30 ms without queues"),
            "{}",
            found.description
        );
        assert_eq!(order(&found), [("fq-codel", 1, true), ("codel", 2, false), ("droptail", 3, false)]);
    }

    #[test]
    fn power_decides_between_lower_delay_and_higher_utilisation() {
        let all = link(&[("fast", 5.0, 0.80), ("full", 50.0, 0.99)]);
        // 0.80 / 0.025 = 32 and 0.99 / 0.070 = 14.1; with a base RTT of 1 s 0.796 and 0.943.
        assert_eq!(order(&rank(&all, None, 0.02).unwrap())[0], ("fast", 1, true));
        assert_eq!(order(&rank(&all, None, 1.0).unwrap())[0], ("full", 1, true));
    }

    #[test]
    fn half_a_percent_of_utilisation_counts_as_equal() {
        // At a base RTT of 1 s: 3.5 ms less is significant, and 0.0021 more utilisation is not; power, 0.988 and 0.989,
        // agrees.
        let found = rank(&link(&[("slow", 4.0, 0.992), ("fast", 0.5, 0.9899)]), None, 1.0).unwrap();
        assert_eq!(order(&found), [("fast", 1, true), ("slow", 2, false)]);
        // 0.0041 more utilisation: power is 0.990 and 0.989, and an AQM never ranks above one of higher power.
        let found = rank(&link(&[("slow", 4.0, 0.994), ("fast", 0.5, 0.9899)]), None, 1.0).unwrap();
        assert_eq!(order(&found), [("slow", 1, true), ("fast", 2, false)]);
        // Power 0.9915 / 1.0034 = 0.98814 and 0.992 / 1.004 = 0.98805, each ± 0.0002: only the 0.6 ms are significant.
        let found = rank(&link(&[("slow", 4.0, 0.992), ("fast", 3.4, 0.9915)]), None, 1.0).unwrap();
        assert_eq!(order(&found), [("fast", 1, true), ("slow", 2, false)]);
    }

    #[test]
    fn better_calls_come_first_and_undefined_ones_last() {
        let calls = |mean| ("mos", summary(mean, 0.1));
        let all = summaries(&[("none", &[]), ("poor", &[calls(2.0)]), ("good", &[calls(4.2)])]);
        let found = rank(&all, Some("calls"), 0.0).unwrap();
        assert_eq!(order(&found), [("good", 1, false), ("poor", 2, false), ("none", 3, false)]);
    }

    #[test]
    fn a_single_run_is_ordered_by_its_means_without_significance() {
        let once = |mean| ("qacd_pkts", Summary { mean, std: None, ci95: None, n: 1 });
        let found = rank(&summaries(&[("a", &[once(3.0)]), ("b", &[once(2.0)])]), None, 0.0).unwrap();
        assert_eq!(order(&found), [("b", 1, false), ("a", 2, false)]);
    }

    #[test]
    fn an_unknown_goal_and_a_missing_metric_are_errors() {
        let all = link(&[("a", 1.0, 0.9)]);
        let message = |by| rank(&all, Some(by), 0.0).unwrap_err().to_string();
        assert_eq!(message("calls"), "rank by calls: no flow group is a call");
        assert!(message("speed").starts_with("rank by speed: no such goal; choose from: queue-error, delay, p99, "));
    }

    proptest! {
        #[test]
        fn an_aqm_dominated_in_delay_and_utilisation_never_ranks_above(
            rows in prop::collection::vec((1.0f64..100.0, 0.5f64..1.0, 0.0f64..0.02, 0.0f64..0.05), 2..8),
            base_s in 0.0f64..0.2,
        ) {
            let all: MetricSummaries = rows.iter().enumerate().map(|(i, &(delay_ms, used, wide_s, wide))| {
                let delay = ("sojourn_mean_s".to_string(), summary(delay_ms * 1e-3, wide_s));
                (i.to_string(), IndexMap::from([delay, ("utilization".to_string(), summary(used, wide))]))
            }).collect();
            let found = rank(&all, None, base_s).unwrap();
            let place = |i: usize| found.places.iter().find(|each| each.aqm == i.to_string()).unwrap().place;
            for (i, a) in rows.iter().enumerate() {
                for (j, b) in rows.iter().enumerate() {
                    if a.0 < b.0 && a.1 > b.1 {
                        prop_assert!(place(i) <= place(j), "{i} dominates {j}: {found:?}");
                    }
                }
            }
            prop_assert_eq!(found.places[0].place, 1);
        }
    }
}
