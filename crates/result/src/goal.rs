//! What AQMs can be ranked by: goals in words, and the figures that each looks at.

use serde::Serialize;

/// A figure that a goal looks at.
#[derive(Debug, PartialEq, Serialize)]
pub struct Figure {
    /// The metric: of the link, or over its flow groups.
    pub key: &'static str,
    /// What it is.
    pub title: &'static str,
    /// Its unit in tables.
    pub unit: &'static str,
    /// From the metric to that unit.
    pub factor: f64,
    /// Digits behind the point in tables.
    pub digits: u8,
    /// Whether more is better.
    pub more: bool,
    /// Differences up to this count as none.
    pub alike: f64,
}

/// What AQMs are ranked by: an AQM is better if it is clearly so in some figure, and clearly worse in none.
#[derive(Debug, PartialEq, Serialize)]
pub struct Goal {
    /// Its name.
    pub name: &'static str,
    /// The goal in words; `{base}` stands for the round-trip time without queues.
    pub words: &'static str,
    /// What it looks at, the figure that is shown first.
    pub figures: &'static [Figure],
    /// What a scenario without such a figure lacks.
    pub needs: &'static str,
    /// Delay and utilisation, in this order, are weighed by power where one AQM is faster and the other fuller.
    pub power: bool,
}

impl Goal {
    /// The goal of this name.
    pub fn named(name: &str) -> Option<&'static Goal> {
        GOALS.iter().find(|goal| goal.name == name)
    }

    /// The goal in words, where the round-trip time without queues is `base_rtt_s`.
    pub(crate) fn said(&self, base_rtt_s: f64) -> String {
        // Four digits tell round-trip times apart.
        let rounded: f64 = format!("{:.3e}", base_rtt_s * 1e3).parse().unwrap_or(f64::NAN);
        self.words.replace("{base}", &format!("{rounded} ms"))
    }
}

const LESS: Figure = Figure { key: "", title: "", unit: "", factor: 1.0, digits: 1, more: false, alike: 0.0 };
const DELAY: Figure = Figure { key: "sojourn_mean_s", title: "Sojourn, mean", unit: "ms", factor: 1e3, ..LESS };
const FULL: Figure =
    Figure { key: "utilization", title: "Utilisation", unit: "%", factor: 100.0, digits: 2, more: true, alike: 0.005 };

/// All goals.
pub static GOALS: [Goal; 7] = [
    Goal {
        name: "queue-error",
        words: "the queue's distance from its target (QACD), the smallest first",
        figures: &[Figure { key: "qacd_pkts", title: "QACD", unit: "packets", ..LESS }],
        needs: "no target is set; give one with --target, such as --target 50pkt",
        power: false,
    },
    Goal {
        name: "delay",
        words: "mean sojourn time, the shortest first",
        figures: &[DELAY],
        needs: "no packet crossed the link",
        power: false,
    },
    Goal {
        name: "p99",
        words: "the sojourn time that 99 % of the packets stay below, the shortest first",
        figures: &[Figure { key: "sojourn_p99_s", title: "Sojourn, p99", unit: "ms", factor: 1e3, ..LESS }],
        needs: "this engine records no distribution of sojourn times",
        power: false,
    },
    Goal {
        name: "delay-at-utilization",
        words: "delay at utilisation: the largest power, which is utilisation over round-trip time ({base} without \
                queues, and the mean sojourn time); nobody stands above an AQM that is as full and faster",
        figures: &[DELAY, FULL],
        needs: "no packet crossed the link",
        power: true,
    },
    Goal {
        name: "page-load",
        words: "mean page load time, the shortest first",
        figures: &[Figure { key: "page_load_mean_s", title: "Page load, mean", unit: "s", digits: 2, ..LESS }],
        needs: "no flow group loads web pages",
        power: false,
    },
    Goal {
        name: "calls",
        words: "quality of calls (MOS), the best first",
        figures: &[Figure { key: "mos", title: "Quality of calls", unit: "MOS", digits: 2, more: true, ..LESS }],
        needs: "no flow group is a call",
        power: false,
    },
    Goal {
        name: "goodput",
        words: "goodput of all flows, the largest first",
        figures: &[Figure {
            key: "goodput_bps",
            title: "Goodput",
            unit: "Mbit/s",
            factor: 1e-6,
            digits: 3,
            more: true,
            ..LESS
        }],
        needs: "there are no flows",
        power: false,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_round_trip_is_said_with_four_digits() {
        let said = |base_s| Goal::named("delay-at-utilization").unwrap().said(base_s);
        for (base_s, words) in [(0.15, "(150 ms "), (0.053_718_2, "(53.72 ms "), (0.0, "(0 ms "), (2e-5, "(0.02 ms ")] {
            assert!(said(base_s).contains(words), "{base_s}: {}", said(base_s));
        }
    }

    #[test]
    fn power_stands_on_delay_and_utilisation() {
        for goal in GOALS.iter().filter(|goal| goal.power) {
            assert_eq!(goal.figures.iter().map(|each| each.key).collect::<Vec<_>>(), ["sojourn_mean_s", "utilization"]);
        }
    }
}
