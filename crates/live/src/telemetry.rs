//! What an attached AQM tells of itself: samples every 10 ms, totals, warnings.
//!
//! The control loop writes; `server` shows it on loopback and on a local socket, `recording` on disk,
//! `prometheus` in the form that monitoring asks for. Readers never touch the loop's state but through
//! [`Board`], a lock held for a copy.

mod connections;
pub(crate) mod page;
pub(crate) mod prometheus;
pub(crate) mod recording;
pub(crate) mod server;
pub(crate) mod socket;
pub(crate) mod warnings;

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

/// How far the live page looks back: two minutes of samples.
const KEPT: usize = 12_000;

/// What was so at one moment. Counts are since the attachment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Sample {
    /// Seconds since the attachment.
    pub(crate) t_s: f64,
    /// Bytes that wait.
    pub(crate) backlog_bytes: u32,
    /// The same in mean packets.
    pub(crate) backlog_pkts: f64,
    /// Estimated: the backlog over the rate at which it leaves.
    pub(crate) sojourn_s: f64,
    /// The probability in force.
    pub(crate) probability: f64,
    /// Packets marked.
    pub(crate) marked_pkts: u64,
    /// Packets dropped by the AQM.
    pub(crate) early_dropped_pkts: u64,
    /// Packets that found no room.
    pub(crate) overflow_dropped_pkts: u64,
    /// What left since the sample before.
    pub(crate) rate_bps: f64,
    /// The rate at which a backlog leaves.
    pub(crate) link_bps: f64,
    /// Steps of the AQM that came more than a period late.
    pub(crate) missed_steps: u64,
    /// From the reading of the queue to the order that it led to.
    pub(crate) age_s: f64,
}

/// What is attached, and how it fares.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Status {
    pub(crate) schema: u32,
    pub(crate) aqumen: &'static str,
    pub(crate) device: String,
    pub(crate) pid: u32,
    pub(crate) kernel: String,
    /// The SPEC, and the parameters in force.
    pub(crate) aqm: String,
    pub(crate) params: serde_json::Map<String, serde_json::Value>,
    /// `tcx` or `clsact`.
    pub(crate) via: &'static str,
    pub(crate) shaper: Shaped,
    pub(crate) target_pkts: f64,
    pub(crate) target_s: f64,
    /// Whether the last order is still in force.
    pub(crate) regulating: bool,
    /// Where the live page is.
    pub(crate) page: Option<String>,
    pub(crate) now: Sample,
    pub(crate) last_second: Means,
    pub(crate) totals: Totals,
    pub(crate) warnings: Vec<String>,
}

/// Means over the last second of samples: one sample alone says little.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Means {
    pub(crate) backlog_pkts: f64,
    pub(crate) sojourn_s: f64,
    pub(crate) probability: f64,
    pub(crate) rate_bps: f64,
}

/// The shaper.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Shaped {
    pub(crate) kind: String,
    pub(crate) handle: String,
    pub(crate) rate_bps: u64,
    /// Whether `--rate` made it.
    pub(crate) ours: bool,
}

/// Counts since the attachment.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Totals {
    pub(crate) arrived_pkts: u64,
    pub(crate) arrived_bytes: u64,
    pub(crate) departed_pkts: u64,
    pub(crate) departed_bytes: u64,
    pub(crate) marked_pkts: u64,
    pub(crate) early_dropped_pkts: u64,
    pub(crate) overflow_dropped_pkts: u64,
    /// Chosen, and passed all the same: not IP, neighbour discovery, `--spare`.
    pub(crate) spared_pkts: u64,
    /// Chosen, and passed because no order was in force.
    pub(crate) unregulated_pkts: u64,
    /// Steps of the AQM.
    pub(crate) steps: u64,
    pub(crate) missed_steps: u64,
}

/// Where the control loop and those who watch it meet.
#[derive(Debug, Default)]
pub(crate) struct Board {
    shown: Mutex<Shown>,
    stop: AtomicBool,
}

#[derive(Debug, Default)]
struct Shown {
    status: Status,
    samples: VecDeque<Sample>,
    /// When the last sample was shown.
    at: Option<std::time::Instant>,
}

/// The schema of `aqumend status --json`.
pub(crate) const SCHEMA: u32 = 1;
/// For so long an order is in force.
pub(crate) const DEADLINE: std::time::Duration = std::time::Duration::from_millis(200);

impl Means {
    /// Over the last second of `samples`, each of which stands for the time since the one before.
    fn of(samples: &VecDeque<Sample>) -> Self {
        let Some(last) = samples.back() else { return Means::default() };
        let first = samples.partition_point(|sample| sample.t_s <= last.t_s - 1.0).max(1);
        let (mut sums, mut time_s) = (Means::default(), 0.0);
        for (before, sample) in samples.range(first - 1..).zip(samples.range(first..)) {
            let since_s = sample.t_s - before.t_s;
            sums.backlog_pkts += since_s * sample.backlog_pkts;
            sums.sojourn_s += since_s * sample.sojourn_s;
            sums.probability += since_s * sample.probability;
            sums.rate_bps += since_s * sample.rate_bps;
            time_s += since_s;
        }
        if time_s <= 0.0 {
            return Means::default();
        }
        Means {
            backlog_pkts: sums.backlog_pkts / time_s,
            sojourn_s: sums.sojourn_s / time_s,
            probability: sums.probability / time_s,
            rate_bps: sums.rate_bps / time_s,
        }
    }
}

impl Board {
    /// What is attached from now on; nothing is counted yet. Samples of before stay.
    pub(crate) fn begin(&self, status: Status) {
        self.lock().status = status;
    }

    /// How it fares.
    pub(crate) fn show(&self, now: Sample, totals: Totals, warnings: &[String]) {
        let mut shown = self.lock();
        shown.at = Some(std::time::Instant::now());
        shown.samples.push_back(now);
        if shown.samples.len() > KEPT {
            shown.samples.pop_front();
        }
        (shown.status.now, shown.status.totals) = (now, totals);
        if shown.status.warnings != warnings {
            shown.status.warnings = warnings.to_vec();
        }
    }

    /// Bytes that had left when it was last shown.
    pub(crate) fn departed_bytes(&self) -> u64 {
        self.lock().status.totals.departed_bytes
    }

    /// What is attached, and how it fares, as of now: a loop that hangs shows by the age of its reading.
    pub(crate) fn status(&self) -> Status {
        let shown = self.lock();
        let mut status = shown.status.clone();
        status.last_second = Means::of(&shown.samples);
        if let Some(at) = shown.at {
            status.now.age_s += at.elapsed().as_secs_f64();
            status.regulating = at.elapsed() < DEADLINE;
        }
        status
    }

    /// The samples after `t_s`, at most `most` of them, the latest.
    pub(crate) fn samples_after(&self, t_s: f64, most: usize) -> Vec<Sample> {
        let shown = self.lock();
        let first = shown.samples.partition_point(|sample| sample.t_s <= t_s);
        shown.samples.range(first.max(shown.samples.len().saturating_sub(most))..).copied().collect()
    }

    /// Asks the loop to end.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked to.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Shown> {
        // A reader that panicked left only a copy undone.
        self.shown.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_of_the_last_second_by_time() {
        let board = Board::default();
        let show = |t_s, rate_bps| {
            let sample = Sample { t_s, rate_bps, sojourn_s: rate_bps / 1e9, ..Sample::default() };
            board.show(sample, Totals::default(), &[]);
        };
        assert_eq!(board.status().last_second, Means::default());
        show(8.0, 77e6);
        assert_eq!(board.status().last_second, Means::default(), "one sample has no length");
        show(9.0, 50e6);
        // 20 Mbit/s for 0.75 s, 40 Mbit/s for 0.25 s.
        show(9.75, 20e6);
        show(10.0, 40e6);
        let means = board.status().last_second;
        assert!((means.rate_bps - 25e6).abs() < 1.0 && (means.sojourn_s - 0.025).abs() < 1e-9, "{means:?}");
    }
    #[test]
    fn means_weigh_each_sample_by_its_time() {
        let board = Board::default();
        let all = |t_s, x: f64| {
            let sample = Sample {
                t_s,
                backlog_pkts: x,
                sojourn_s: 2.0 * x,
                probability: 3.0 * x,
                rate_bps: 4.0 * x,
                ..Sample::default()
            };
            board.show(sample, Totals::default(), &[]);
        };
        // After the first: 0.25 s of 8 and 0.125 s of 2.
        [(0.125, 77.0), (0.375, 8.0), (0.5, 2.0)].into_iter().for_each(|(t_s, x)| all(t_s, x));
        let means = board.status().last_second;
        let expected = Means { backlog_pkts: 6.0, sojourn_s: 12.0, probability: 18.0, rate_bps: 24.0 };
        assert_eq!(means, expected);
    }

    #[test]
    fn two_minutes_of_samples_are_kept_and_those_after_a_moment_are_told() {
        let board = Board::default();
        let show = |i: usize| board.show(Sample { t_s: i as f64, ..Sample::default() }, Totals::default(), &[]);
        let times = |after, most| board.samples_after(after, most).iter().map(|sample| sample.t_s).collect::<Vec<_>>();
        (0..5).for_each(show);
        assert_eq!(times(1.0, 100), [2.0, 3.0, 4.0]);
        assert_eq!(
            (times(f64::NEG_INFINITY, 2), times(1.5, 3), times(4.0, 9)),
            (vec![3.0, 4.0], vec![2.0, 3.0, 4.0], vec![])
        );
        (5..KEPT).for_each(show);
        assert_eq!((times(-1.0, usize::MAX).len(), times(-1.0, usize::MAX)[0]), (KEPT, 0.0));
        show(KEPT);
        assert_eq!((times(-1.0, usize::MAX).len(), times(-1.0, usize::MAX)[0]), (KEPT, 1.0));
    }

    #[test]
    fn a_board_shows_the_last_that_it_was_told_and_how_old_that_is() {
        let board = Board::default();
        board.begin(Status { regulating: true, ..Status::default() });
        let status = board.status();
        assert!(status.regulating && status.now.age_s == 0.0, "nothing was shown yet");
        let totals = Totals { departed_bytes: 77, ..Totals::default() };
        board.show(Sample { age_s: 100.0, ..Sample::default() }, totals, &["one".into()]);
        let status = board.status();
        assert_eq!((board.departed_bytes(), status.totals.departed_bytes), (77, 77));
        assert!((100.0..110.0).contains(&status.now.age_s) && status.regulating, "{status:?}");
        assert_eq!(status.warnings, ["one"]);
        board.show(Sample::default(), totals, &["two".into(), "three".into()]);
        std::thread::sleep(DEADLINE);
        let status = board.status();
        assert_eq!(status.warnings, ["two", "three"]);
        assert!(!status.regulating && status.now.age_s >= DEADLINE.as_secs_f64(), "{status:?}");
    }
}
