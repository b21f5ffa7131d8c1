//! Telemetry of an attachment: samples every 10 ms, totals, warnings.
//!
//! The control loop publishes. `server` answers by HTTP and `socket` on a local socket, `recording` writes to disk,
//! `prometheus` formats metrics. Readers copy the state from [`SharedStatus`], under a lock.

mod connections;
pub(crate) mod page;
pub(crate) mod prometheus;
pub(crate) mod recording;
pub(crate) mod server;
pub(crate) mod socket;
pub(crate) mod warnings;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

/// Samples that the live page can show: two minutes.
const SAMPLES_MAX: usize = 12_000;

/// State of the queue at one time. Counts are since the attachment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Sample {
    /// Seconds since the attachment.
    pub(crate) t_s: f64,
    pub(crate) backlog_bytes: u32,
    pub(crate) backlog_pkts: f64,
    /// Estimated queueing delay: backlog over departure rate.
    pub(crate) sojourn_s: f64,
    /// The probability in force.
    pub(crate) probability: f64,
    pub(crate) marked_pkts: u64,
    /// Packets dropped by the AQM.
    pub(crate) early_dropped_pkts: u64,
    /// Packets dropped because the buffer was full.
    pub(crate) overflow_dropped_pkts: u64,
    /// Departure rate since the previous sample.
    pub(crate) rate_bps: f64,
    /// Departure rate while backlogged.
    pub(crate) link_bps: f64,
    /// Steps of the AQM more than a period late.
    pub(crate) missed_steps: u64,
    /// Time from the reading of the queue to its order.
    pub(crate) age_s: f64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Status {
    pub(crate) schema: u32,
    pub(crate) aqumen: &'static str,
    pub(crate) device: String,
    pub(crate) pid: u32,
    pub(crate) kernel: String,
    /// SPEC of the AQM, and the parameters in force.
    pub(crate) aqm: String,
    pub(crate) params: serde_json::Map<String, serde_json::Value>,
    /// `tcx` or `clsact`.
    pub(crate) via: &'static str,
    pub(crate) shaper: ShaperStatus,
    pub(crate) target_pkts: f64,
    pub(crate) target_s: f64,
    /// Estimates of an AQM that measures its network: seconds, packets, bit/s.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) estimates: BTreeMap<&'static str, f64>,
    /// Whether the last order is still valid.
    pub(crate) regulating: bool,
    /// Address of the live page.
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

/// Shaper of an attachment.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct ShaperStatus {
    pub(crate) kind: String,
    pub(crate) handle: String,
    pub(crate) rate_bps: u64,
    /// Whether `--rate` created it.
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
    /// Selected packets that passed because they are exempt: not IP, neighbour discovery, `--spare`.
    pub(crate) spared_pkts: u64,
    /// Selected packets that passed because the order had expired.
    pub(crate) unregulated_pkts: u64,
    pub(crate) steps: u64,
    pub(crate) missed_steps: u64,
}

/// State that the control loop shares with its readers.
#[derive(Debug, Default)]
pub(crate) struct SharedStatus {
    state: Mutex<SharedState>,
    end_requested: AtomicBool,
}

#[derive(Debug, Default)]
struct SharedState {
    status: Status,
    samples: VecDeque<Sample>,
    /// Time of the last sample.
    at: Option<std::time::Instant>,
}

/// Schema version of `aqumend status --json`.
pub(crate) const SCHEMA: u32 = 1;
/// Lifetime of an order.
pub(crate) const DEADLINE: std::time::Duration = std::time::Duration::from_millis(200);

impl Means {
    /// Means over the last second of `samples`, each of which stands for the time since the previous one.
    fn over_last_second(samples: &VecDeque<Sample>) -> Self {
        let Some(last) = samples.back() else { return Means::default() };
        let first = samples.partition_point(|sample| sample.t_s <= last.t_s - 1.0).max(1);
        let (mut sums, mut time_s) = (Means::default(), 0.0);
        for (before, sample) in samples.range(first - 1..).zip(samples.range(first..)) {
            let interval_s = sample.t_s - before.t_s;
            sums.backlog_pkts += interval_s * sample.backlog_pkts;
            sums.sojourn_s += interval_s * sample.sojourn_s;
            sums.probability += interval_s * sample.probability;
            sums.rate_bps += interval_s * sample.rate_bps;
            time_s += interval_s;
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

impl SharedStatus {
    /// Sets the status of a new attachment. Earlier samples stay.
    pub(crate) fn set_status(&self, status: Status) {
        self.lock().status = status;
    }

    /// Sets the estimates of an AQM that measures its network. The target that it chose is the status's too.
    pub(crate) fn set_estimates(&self, estimates: BTreeMap<&'static str, f64>) {
        let status = &mut self.lock().status;
        if let Some(target_s) = estimates.get("target_delay").filter(|target_s| **target_s > 0.0) {
            status.target_pkts *= target_s / status.target_s;
            status.target_s = *target_s;
        }
        status.estimates = estimates;
    }

    /// Publishes a sample, with totals and warnings.
    pub(crate) fn publish(&self, now: Sample, totals: Totals, warnings: &[String]) {
        let mut state = self.lock();
        state.at = Some(std::time::Instant::now());
        state.samples.push_back(now);
        if state.samples.len() > SAMPLES_MAX {
            state.samples.pop_front();
        }
        (state.status.now, state.status.totals) = (now, totals);
        if state.status.warnings != warnings {
            state.status.warnings = warnings.to_vec();
        }
    }

    /// Departed bytes at the last sample.
    pub(crate) fn departed_bytes(&self) -> u64 {
        self.lock().status.totals.departed_bytes
    }

    /// Present status; the age of the last reading shows a loop that hangs.
    pub(crate) fn status(&self) -> Status {
        let state = self.lock();
        let mut status = state.status.clone();
        status.last_second = Means::over_last_second(&state.samples);
        if let Some(at) = state.at {
            status.now.age_s += at.elapsed().as_secs_f64();
            status.regulating = at.elapsed() < DEADLINE;
        }
        status
    }

    /// Latest samples after `t_s`, at most `most` of them.
    pub(crate) fn samples_after(&self, t_s: f64, most: usize) -> Vec<Sample> {
        let state = self.lock();
        let first = state.samples.partition_point(|sample| sample.t_s <= t_s);
        state.samples.range(first.max(state.samples.len().saturating_sub(most))..).copied().collect()
    }

    pub(crate) fn request_end(&self) {
        self.end_requested.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_end_requested(&self) -> bool {
        self.end_requested.load(Ordering::Relaxed)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, SharedState> {
        // A reader that panics leaves the state intact.
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_of_the_last_second_by_time() {
        let shared = SharedStatus::default();
        let publish = |t_s, rate_bps| {
            let sample = Sample { t_s, rate_bps, sojourn_s: rate_bps / 1e9, ..Sample::default() };
            shared.publish(sample, Totals::default(), &[]);
        };
        assert_eq!(shared.status().last_second, Means::default());
        publish(8.0, 77e6);
        assert_eq!(shared.status().last_second, Means::default(), "one sample has no length");
        publish(9.0, 50e6);
        // 20 Mbit/s for 0.75 s, 40 Mbit/s for 0.25 s.
        publish(9.75, 20e6);
        publish(10.0, 40e6);
        let means = shared.status().last_second;
        assert!((means.rate_bps - 25e6).abs() < 1.0 && (means.sojourn_s - 0.025).abs() < 1e-9, "{means:?}");
    }

    #[test]
    fn means_weigh_each_sample_by_its_time() {
        let shared = SharedStatus::default();
        let all = |t_s, x: f64| {
            let sample = Sample {
                t_s,
                backlog_pkts: x,
                sojourn_s: 2.0 * x,
                probability: 3.0 * x,
                rate_bps: 4.0 * x,
                ..Sample::default()
            };
            shared.publish(sample, Totals::default(), &[]);
        };
        // After the first: 0.25 s of 8 and 0.125 s of 2.
        [(0.125, 77.0), (0.375, 8.0), (0.5, 2.0)].into_iter().for_each(|(t_s, x)| all(t_s, x));
        let means = shared.status().last_second;
        let expected = Means { backlog_pkts: 6.0, sojourn_s: 12.0, probability: 18.0, rate_bps: 24.0 };
        assert_eq!(means, expected);
    }

    #[test]
    fn two_minutes_of_samples_are_kept() {
        let shared = SharedStatus::default();
        let publish = |i: usize| shared.publish(Sample { t_s: i as f64, ..Sample::default() }, Totals::default(), &[]);
        let times = |after, most| shared.samples_after(after, most).iter().map(|sample| sample.t_s).collect::<Vec<_>>();
        (0..5).for_each(publish);
        assert_eq!(times(1.0, 100), [2.0, 3.0, 4.0]);
        assert_eq!(
            (times(f64::NEG_INFINITY, 2), times(1.5, 3), times(4.0, 9)),
            (vec![3.0, 4.0], vec![2.0, 3.0, 4.0], vec![])
        );
        (5..SAMPLES_MAX).for_each(publish);
        assert_eq!((times(-1.0, usize::MAX).len(), times(-1.0, usize::MAX)[0]), (SAMPLES_MAX, 0.0));
        publish(SAMPLES_MAX);
        assert_eq!((times(-1.0, usize::MAX).len(), times(-1.0, usize::MAX)[0]), (SAMPLES_MAX, 1.0));
    }

    #[test]
    fn the_status_has_the_last_sample_and_its_age() {
        let shared = SharedStatus::default();
        shared.set_status(Status { regulating: true, ..Status::default() });
        let status = shared.status();
        assert!(status.regulating && status.now.age_s == 0.0, "nothing was published yet");
        let totals = Totals { departed_bytes: 77, ..Totals::default() };
        shared.publish(Sample { age_s: 100.0, ..Sample::default() }, totals, &["one".into()]);
        let status = shared.status();
        assert_eq!((shared.departed_bytes(), status.totals.departed_bytes), (77, 77));
        assert!((100.0..110.0).contains(&status.now.age_s) && status.regulating, "{status:?}");
        assert_eq!(status.warnings, ["one"]);
        shared.publish(Sample::default(), totals, &["two".into(), "three".into()]);
        std::thread::sleep(DEADLINE);
        let status = shared.status();
        assert_eq!(status.warnings, ["two", "three"]);
        assert!(!status.regulating && status.now.age_s >= DEADLINE.as_secs_f64(), "{status:?}");
    }
}
