//! Goals by which AQMs are ranked, and their metrics.

use serde::Serialize;

/// A metric of a goal.
#[derive(Debug, PartialEq, Serialize)]
pub struct GoalMetric {
    /// Key of the metric, of the link or over its flow groups.
    pub key: &'static str,
    /// Title in tables.
    pub title: &'static str,
    /// Unit in tables.
    pub unit: &'static str,
    /// Factor from the metric to that unit.
    pub factor: f64,
    /// Decimal places in tables.
    pub digits: u8,
    /// Whether more is better.
    #[serde(rename = "more")]
    pub higher_is_better: bool,
    /// Largest difference that counts as equal.
    #[serde(rename = "alike")]
    pub tolerance: f64,
}

/// Goal of a ranking: an AQM is better if it is significantly better in some metric and significantly worse in none.
#[derive(Debug, PartialEq, Serialize)]
pub struct Goal {
    /// Name of the goal.
    pub name: &'static str,
    /// Description; `{base}` stands for the round-trip time without queueing.
    #[serde(rename = "words")]
    pub description: &'static str,
    /// Metrics, the displayed one first.
    #[serde(rename = "figures")]
    pub metrics: &'static [GoalMetric],
    /// Message for a scenario without such a metric.
    #[serde(rename = "needs")]
    pub missing: &'static str,
    /// Whether power decides between lower delay and higher utilisation; the metrics are then these two, in this order.
    pub power: bool,
}

impl Goal {
    /// Finds a goal by name.
    pub fn find(name: &str) -> Option<&'static Goal> {
        GOALS.iter().find(|goal| goal.name == name)
    }

    /// Description with the round-trip time without queueing `base_rtt_s`.
    pub(crate) fn description_for(&self, base_rtt_s: f64) -> String {
        // Four significant digits.
        let rounded: f64 = format!("{:.3e}", base_rtt_s * 1e3).parse().unwrap_or(f64::NAN);
        self.description.replace("{base}", &format!("{rounded} ms"))
    }
}

const LESS: GoalMetric =
    GoalMetric { key: "", title: "", unit: "", factor: 1.0, digits: 1, higher_is_better: false, tolerance: 0.0 };
const DELAY: GoalMetric = GoalMetric { key: "sojourn_mean_s", title: "Sojourn, mean", unit: "ms", factor: 1e3, ..LESS };
const FULL: GoalMetric = GoalMetric {
    key: "utilization",
    title: "Utilisation",
    unit: "%",
    factor: 100.0,
    digits: 2,
    higher_is_better: true,
    tolerance: 0.005,
};

/// All goals.
pub static GOALS: [Goal; 7] = [
    Goal {
        name: "queue-error",
        description: "the queue's distance from its target (QACD), the smallest first",
        metrics: &[GoalMetric { key: "qacd_pkts", title: "QACD", unit: "packets", ..LESS }],
        missing: "no target is set; give one with --target, such as --target 50pkt",
        power: false,
    },
    Goal {
        name: "delay",
        description: "mean sojourn time, the shortest first",
        metrics: &[DELAY],
        missing: "no packet crossed the link",
        power: false,
    },
    Goal {
        name: "p99",
        description: "the sojourn time that 99 % of the packets stay below, the shortest first",
        metrics: &[GoalMetric { key: "sojourn_p99_s", title: "Sojourn, p99", unit: "ms", factor: 1e3, ..LESS }],
        missing: "this engine records no distribution of sojourn times",
        power: false,
    },
    Goal {
        name: "delay-at-utilization",
        description: "delay at utilisation: the largest power, which is utilisation over round-trip time ({base} without \
                queues, and the mean sojourn time); no AQM ranks above one with equal utilisation and lower delay",
        metrics: &[DELAY, FULL],
        missing: "no packet crossed the link",
        power: true,
    },
    Goal {
        name: "page-load",
        description: "mean page load time, the shortest first",
        metrics: &[GoalMetric { key: "page_load_mean_s", title: "Page load, mean", unit: "s", digits: 2, ..LESS }],
        missing: "no flow group loads web pages",
        power: false,
    },
    Goal {
        name: "calls",
        description: "quality of calls (MOS), the best first",
        metrics: &[GoalMetric {
            key: "mos",
            title: "Quality of calls",
            unit: "MOS",
            digits: 2,
            higher_is_better: true,
            ..LESS
        }],
        missing: "no flow group is a call",
        power: false,
    },
    Goal {
        name: "goodput",
        description: "goodput of all flows, the largest first",
        metrics: &[GoalMetric {
            key: "goodput_bps",
            title: "Goodput",
            unit: "Mbit/s",
            factor: 1e-6,
            digits: 3,
            higher_is_better: true,
            ..LESS
        }],
        missing: "there are no flows",
        power: false,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_round_trip_time_has_four_digits() {
        let description = |base_s| Goal::find("delay-at-utilization").unwrap().description_for(base_s);
        for (base_s, text) in [(0.15, "(150 ms "), (0.053_718_2, "(53.72 ms "), (0.0, "(0 ms "), (2e-5, "(0.02 ms ")] {
            assert!(description(base_s).contains(text), "{base_s}: {}", description(base_s));
        }
    }

    #[test]
    fn power_goals_have_delay_and_utilisation() {
        for goal in GOALS.iter().filter(|goal| goal.power) {
            assert_eq!(goal.metrics.iter().map(|each| each.key).collect::<Vec<_>>(), ["sojourn_mean_s", "utilization"]);
        }
    }
}
