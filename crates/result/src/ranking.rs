//! The order of AQMs by a goal, and how sure it is. What is ranked are figures over seeds, as [`Summary`]s; differences
//! that lie within the 95 % intervals are none.
//!
//! Delay and utilisation are two figures. That one AQM is faster and as full is proof enough. Where one is faster and
//! the other fuller, power decides: a rule without it has the fullest buffer among the best whatever it holds.

use std::cmp::Ordering;
use std::fmt;

use indexmap::IndexMap;
use serde::Serialize;

use crate::goal::{Figure, GOALS, Goal};
use crate::{Summary, letter_groups};

/// Of each AQM the figures that are known of it, by metric.
pub type Known = IndexMap<String, IndexMap<String, Summary>>;

/// The place of one AQM.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Place {
    /// The AQM as it was asked for.
    pub aqm: String,
    /// 1 + the number of AQMs that are clearly better.
    pub place: usize,
    /// It is clearly better than every other.
    pub clearly_best: bool,
    /// AQMs of which neither it nor they are clearly better.
    pub tied_with: Vec<String>,
    /// Letters of a compact letter display: two AQMs share one if neither is clearly better. `None` without intervals.
    pub group: Option<String>,
}

/// AQMs in order, the best first.
#[derive(Clone, Debug, Serialize)]
pub struct Ranking {
    /// What decides.
    pub goal: &'static Goal,
    /// That in words.
    pub words: String,
    /// The AQMs.
    pub places: Vec<Place>,
}

/// Why there is no order.
#[derive(Clone, Debug, PartialEq)]
pub enum RankError {
    /// There is no such goal.
    Unknown(String),
    /// No AQM has the goal's figure.
    Lacking(&'static Goal),
}

impl fmt::Display for RankError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RankError::Unknown(by) => {
                let names: Vec<&str> = GOALS.iter().map(|goal| goal.name).collect();
                write!(f, "rank by {by}: no such goal; choose from: {}", names.join(", "))
            }
            RankError::Lacking(goal) => write!(f, "rank by {}: {}", goal.name, goal.needs),
        }
    }
}

impl std::error::Error for RankError {}

/// Ranks AQMs by the goal of a name; without one by the queue's error where all have a target, else by delay at
/// utilisation. Power counts `base_rtt_s`, the round-trip time without queues, beside the queue.
pub fn rank(known: &Known, by: Option<&str>, base_rtt_s: f64) -> Result<Ranking, RankError> {
    let goal = goal(known, by)?;
    let spans: Vec<Vec<Span>> = known
        .values()
        .map(|metrics| goal.figures.iter().map(|figure| Span::of(metrics.get(figure.key), figure)).collect())
        .collect();
    let power: Vec<Span> = spans.iter().filter(|_| goal.power).map(|each| Span::power(each, base_rtt_s)).collect();
    let clearly = |a: usize, b: usize| {
        let beats = beats(&spans[a], &spans[b], goal.figures);
        if power.is_empty() {
            return beats;
        }
        // Never against the power of the means: so nobody beats, over others, who beats him.
        power[a].mean <= power[b].mean && (beats || power[a].high < power[b].low)
    };
    let n = known.len();
    let beats = Relation::of(n, clearly);
    // No worse in any mean and better in one: no proof, but nobody may stand above whoever is ahead of him in all.
    let ahead = Relation::of(n, |a, b| ahead(&spans[a], &spans[b]));
    let below = Relation::of(n, |a, b| beats.holds(a, b) || ahead.holds(a, b)).closed();
    let or_same = Relation::of(n, |a, b| a == b || below.holds(a, b));
    let proven = or_same.then(&beats).then(&or_same);
    let better = |b: usize| (0..n).filter(|&a| proven.holds(a, b) && !or_same.holds(b, a)).count();
    let places: Vec<usize> = (0..n).map(|b| 1 + better(b)).collect();
    let measured = |i: usize| {
        let has_interval = |figure: &Figure| known[i].get(figure.key).is_some_and(|each| each.ci95.is_some());
        goal.figures.iter().all(has_interval)
    };
    let sure = n > 1 && (0..n).all(measured);
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| {
        let means = |i: usize| power.get(i).into_iter().chain(&spans[i]).map(|span| span.mean);
        places[a].cmp(&places[b]).then_with(|| means(a).partial_cmp(means(b)).unwrap_or(Ordering::Equal))
    });
    let name = |i: usize| known.get_index(i).map_or_else(String::new, |(aqm, _)| aqm.clone());
    let tied = |a: usize, b: usize| !beats.holds(a, b) && !beats.holds(b, a);
    let lettered: Vec<usize> = order.iter().copied().filter(|&i| measured(i)).collect();
    let letters = letter_groups(lettered.len(), |i, j| !tied(lettered[i], lettered[j]));
    let place = |a: usize| Place {
        aqm: name(a),
        place: places[a],
        clearly_best: sure && (0..n).all(|b| a == b || beats.holds(a, b)),
        tied_with: (0..n).filter(|&b| b != a && tied(a, b)).map(name).collect(),
        group: lettered.iter().position(|&i| i == a).map(|row| letters[row].clone()),
    };
    Ok(Ranking { goal, words: goal.said(base_rtt_s), places: order.into_iter().map(place).collect() })
}

fn goal(known: &Known, by: Option<&str>) -> Result<&'static Goal, RankError> {
    let named = |name: &str| Goal::named(name).ok_or_else(|| RankError::Unknown(name.into()));
    let Some(by) = by else {
        let has_target = known.values().all(|metrics| metrics.contains_key("qacd_pkts"));
        return named(if has_target { "queue-error" } else { "delay-at-utilization" });
    };
    let goal = named(by)?;
    let figure = goal.figures[0].key;
    if known.values().any(|metrics| metrics.contains_key(figure)) { Ok(goal) } else { Err(RankError::Lacking(goal)) }
}

/// Interval and mean, turned so that less is better; a single run has one value; what is undefined is beyond all.
#[derive(Clone, Copy, Debug)]
struct Span {
    low: f64,
    mean: f64,
    high: f64,
}

impl Span {
    fn of(summary: Option<&Summary>, figure: &Figure) -> Span {
        let Some(summary) = summary else {
            return Span { low: f64::INFINITY, mean: f64::INFINITY, high: f64::INFINITY };
        };
        let mean = summary.mean;
        let [low, high] = summary.ci95.unwrap_or([mean, mean]);
        if figure.more { Span { low: -high, mean: -mean, high: -low } } else { Span { low, mean, high } }
    }

    /// Kleinrock's power of delay and utilisation, turned so that less is better: the time for which utilisation is
    /// paid. As wide as the intervals of both figures allow.
    ///
    /// L. Kleinrock, "Power and deterministic rules of thumb for probabilistic problems in computer communications",
    /// ICC 1979: throughput over response time.
    fn power(spans: &[Span], base_rtt_s: f64) -> Span {
        let (delay, used) = (spans[0], spans[1]);
        // Utilisation is turned: -1 is full.
        let paid = |delay_s: f64, used: f64| if used < 0.0 { (base_rtt_s + delay_s) / -used } else { f64::INFINITY };
        Span {
            low: paid(delay.low.max(0.0), used.low),
            mean: paid(delay.mean, used.mean),
            high: paid(delay.high, used.high),
        }
    }
}

/// Whether one is clearly better in some figure and clearly worse in none.
fn beats(one: &[Span], other: &[Span], figures: &[Figure]) -> bool {
    let clear = |a: &[Span], b: &[Span]| {
        let mut each = a.iter().zip(b).zip(figures);
        each.any(|((a, b), figure)| a.high + figure.alike < b.low)
    };
    clear(one, other) && !clear(other, one)
}

/// Whether one's means are nowhere worse and somewhere better.
fn ahead(one: &[Span], other: &[Span]) -> bool {
    let mut means = one.iter().zip(other).map(|(a, b)| (a.mean, b.mean));
    means.clone().all(|(a, b)| a <= b) && means.any(|(a, b)| a < b)
}

/// What holds between two of several.
struct Relation(Vec<Vec<bool>>);

impl Relation {
    fn of(n: usize, holds: impl Fn(usize, usize) -> bool) -> Self {
        Relation((0..n).map(|a| (0..n).map(|b| holds(a, b)).collect()).collect())
    }

    fn holds(&self, a: usize, b: usize) -> bool {
        self.0[a][b]
    }

    /// It holds over others too, however many.
    fn closed(mut self) -> Self {
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

    /// It holds to someone, and `next` from there on.
    fn then(&self, next: &Relation) -> Relation {
        let n = self.0.len();
        Relation::of(n, |a, b| (0..n).any(|over| self.holds(a, over) && next.holds(over, b)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn summary(mean: f64, half: f64) -> Summary {
        Summary { mean, std: Some(half), ci95: Some([mean - half, mean + half]), n: 5 }
    }

    fn known(rows: &[(&str, &[(&str, Summary)])]) -> Known {
        let metrics = |row: &[(&str, Summary)]| row.iter().map(|&(key, each)| (key.to_string(), each)).collect();
        rows.iter().map(|&(aqm, row)| (aqm.to_string(), metrics(row))).collect()
    }

    /// Mean sojourn time in milliseconds and utilisation, give or take a tenth of a millisecond and 0.0001.
    fn link(rows: &[(&str, f64, f64)]) -> Known {
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
    fn a_chain_of_overlaps_still_tells_the_ends_apart() {
        // a [8, 12], b [11, 15], c [14, 18]: a is clearly better than c, b is tied with both.
        let error = |mean| ("qacd_pkts", summary(mean, 2.0));
        let found = rank(&known(&[("c", &[error(16.0)]), ("b", &[error(13.0)]), ("a", &[error(10.0)])]), None, 0.0);
        let found = found.unwrap();
        assert_eq!(found.goal.name, "queue-error");
        assert_eq!(order(&found), [("a", 1, false), ("b", 1, false), ("c", 2, false)]);
        assert_eq!(found.places[1].tied_with, ["c", "a"]);
    }

    #[test]
    fn who_is_ahead_of_a_clear_winner_stands_above_whom_that_one_beats() {
        // b, 10 +- 0.5, is clearly better than c, 12 +- 0.5. a, 9.9 +- 5, proves nothing, and is ahead of b.
        let error = |mean, half| ("qacd_pkts", summary(mean, half));
        let all = known(&[("c", &[error(12.0, 0.5)]), ("b", &[error(10.0, 0.5)]), ("a", &[error(9.9, 5.0)])]);
        let found = rank(&all, None, 0.0).unwrap();
        assert_eq!(order(&found), [("a", 1, false), ("b", 1, false), ("c", 3, false)]);
    }

    #[test]
    fn as_full_and_faster_is_better_whatever_else_is_said() {
        // Power, 1/s: 0.997 / 0.0374 = 26.7; 0.954 / 0.0539 = 17.7; 0.998 / 0.930 = 1.07.
        let all = link(&[("codel", 23.9, 0.954), ("fq-codel", 7.4, 0.997), ("droptail", 900.0, 0.998)]);
        let found = rank(&all, None, 0.03).unwrap();
        assert_eq!(found.goal.name, "delay-at-utilization");
        assert!(found.words.contains("utilisation over round-trip time (30 ms without queues"), "{}", found.words);
        assert_eq!(order(&found), [("fq-codel", 1, true), ("codel", 2, false), ("droptail", 3, false)]);
    }

    #[test]
    fn where_one_is_faster_and_the_other_fuller_power_decides() {
        let all = link(&[("fast", 5.0, 0.80), ("full", 50.0, 0.99)]);
        // 0.80 / 0.025 = 32 against 0.99 / 0.070 = 14.1; beside a second on the way 0.796 against 0.943.
        assert_eq!(order(&rank(&all, None, 0.02).unwrap())[0], ("fast", 1, true));
        assert_eq!(order(&rank(&all, None, 1.0).unwrap())[0], ("full", 1, true));
    }

    #[test]
    fn half_a_percent_of_utilisation_is_as_full() {
        // A second without queues: 3.5 ms less is proof where the other is fuller by 0.0021; power, 0.988 and 0.989,
        // agrees.
        let found = rank(&link(&[("slow", 4.0, 0.992), ("fast", 0.5, 0.9899)]), None, 1.0).unwrap();
        assert_eq!(order(&found), [("fast", 1, true), ("slow", 2, false)]);
        // Fuller by 0.0041: power is 0.990 and 0.989, and nobody stands above an AQM of more power.
        let found = rank(&link(&[("slow", 4.0, 0.994), ("fast", 0.5, 0.9899)]), None, 1.0).unwrap();
        assert_eq!(order(&found), [("slow", 1, true), ("fast", 2, false)]);
        // Power 0.9915 / 1.0034 = 0.98814 and 0.992 / 1.004 = 0.98805, each give or take 0.0002: 0.6 ms less alone is
        // the proof.
        let found = rank(&link(&[("slow", 4.0, 0.992), ("fast", 3.4, 0.9915)]), None, 1.0).unwrap();
        assert_eq!(order(&found), [("fast", 1, true), ("slow", 2, false)]);
    }

    #[test]
    fn more_goodput_and_better_calls_come_first_and_what_is_undefined_last() {
        let calls = |mean| ("mos", summary(mean, 0.1));
        let all = known(&[("none", &[]), ("poor", &[calls(2.0)]), ("good", &[calls(4.2)])]);
        let found = rank(&all, Some("calls"), 0.0).unwrap();
        assert_eq!(order(&found), [("good", 1, false), ("poor", 2, false), ("none", 3, false)]);
    }

    #[test]
    fn one_run_has_an_order_by_its_means_and_no_proof() {
        let once = |mean| ("qacd_pkts", Summary { mean, std: None, ci95: None, n: 1 });
        let found = rank(&known(&[("a", &[once(3.0)]), ("b", &[once(2.0)])]), None, 0.0).unwrap();
        assert_eq!(order(&found), [("b", 1, false), ("a", 2, false)]);
    }

    #[test]
    fn a_goal_that_is_unknown_or_lacks_its_figure_is_told() {
        let all = link(&[("a", 1.0, 0.9)]);
        let told = |by| rank(&all, Some(by), 0.0).unwrap_err().to_string();
        assert_eq!(told("calls"), "rank by calls: no flow group is a call");
        assert!(told("speed").starts_with("rank by speed: no such goal; choose from: queue-error, delay, p99, "));
    }

    proptest! {
        #[test]
        fn whoever_is_dominated_in_delay_and_utilisation_never_stands_above(
            rows in prop::collection::vec((1.0f64..100.0, 0.5f64..1.0, 0.0f64..0.02, 0.0f64..0.05), 2..8),
            base_s in 0.0f64..0.2,
        ) {
            let all: Known = rows.iter().enumerate().map(|(i, &(delay_ms, used, wide_s, wide))| {
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
