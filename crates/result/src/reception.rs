//! Receiver statistics of numbered packets: losses, delays, jitter.

use crate::{FlowMetrics, Histogram, Jitter, LossRuns};

/// State of a receiver between packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ArrivalState {
    jitter: Jitter,
    /// One past the highest number that arrived.
    next: u32,
}

/// Statistics of receivers in an interval of time.
#[derive(Clone, Debug, Default)]
pub struct ReceptionStats {
    /// Packets that arrived, and their bytes.
    arrived: u64,
    bytes: u64,
    /// Packets up to the highest number that arrived.
    expected: u64,
    /// Runs of consecutive missing packets.
    losses: LossRuns,
    /// One-way delays, nanoseconds.
    delay: Histogram,
    /// Sum of the jitter estimates after each arrival, nanoseconds.
    jitter: f64,
}

impl ReceptionStats {
    /// Records the arrival of packet `number`, of `bytes` including headers, after `delay` nanoseconds, at a receiver
    /// with state `receiver`.
    pub fn on_arrival(&mut self, receiver: &mut ArrivalState, number: u32, bytes: u64, delay: u64) {
        // RFC 3550 appendix A.3: all packets up to the highest number are expected. A packet after a higher one was
        // counted as missing, and only arrives.
        if let Some(missing) = number.checked_sub(receiver.next) {
            self.losses.record(missing.into());
            self.expected += u64::from(missing) + 1;
            receiver.next = number + 1;
        }
        self.arrived += 1;
        self.bytes += bytes;
        self.delay.record(delay);
        self.jitter += receiver.jitter.update(delay);
    }

    /// Adds the statistics of a later interval.
    pub fn merge(&mut self, later: &ReceptionStats) {
        self.arrived += later.arrived;
        self.bytes += later.bytes;
        self.expected += later.expected;
        self.losses.merge(&later.losses);
        self.delay.merge(&later.delay);
        self.jitter += later.jitter;
    }

    /// Fraction of packets missing; `None` if none was expected.
    pub fn loss_ratio(&self) -> Option<f64> {
        // Late packets that counted as missing in the previous interval may cause more arrivals than expected.
        (self.expected > 0).then(|| self.expected.saturating_sub(self.arrived) as f64 / self.expected as f64)
    }

    /// Runs of consecutive missing packets.
    pub fn losses(&self) -> &LossRuns {
        &self.losses
    }

    /// One-way delays, nanoseconds.
    pub fn delay(&self) -> &Histogram {
        &self.delay
    }

    /// Fills in the metrics of a window of `length_s` seconds, if a packet was expected.
    pub fn fill(&self, metrics: &mut FlowMetrics, length_s: f64) {
        if self.expected == 0 {
            return;
        }
        metrics.throughput_bps = Some(self.bytes as f64 * 8.0 / length_s);
        metrics.set_delay(&self.delay);
        metrics.jitter_mean_s = Some(self.jitter / self.arrived as f64 * 1e-9);
        metrics.loss_ratio = self.loss_ratio();
        metrics.loss_burst_mean_pkts = self.losses.mean();
    }
}

impl FlowMetrics {
    /// Sets the metrics of one-way delays (nanoseconds).
    pub fn set_delay(&mut self, delay: &Histogram) {
        let seconds = |ns: f64| ns * 1e-9;
        let [p50, p95, p99] = [0.50, 0.95, 0.99].map(|q| delay.quantile(q).map(seconds));
        let least = delay.min().map(|ns| seconds(ns as f64));
        // The quantile of a bin may lie below the smallest value.
        let above_least = |p: Option<f64>| Some((p? - least?).max(0.0));
        self.delay_mean_s = delay.mean().map(seconds);
        (self.delay_p50_s, self.delay_p95_s, self.delay_p99_s) = (p50, p95, p99);
        (self.delay_variation_p95_s, self.delay_variation_p99_s) = (above_least(p95), above_least(p99));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_packets_up_to_the_highest_number_are_lost() {
        let (mut received, mut receiver) = (ReceptionStats::default(), ArrivalState::default());
        // Of 0 to 9, packets 2, 5 and 6 are lost; 8 arrives after 9. Each takes 10 ms.
        for number in [0, 1, 3, 4, 7, 9, 8] {
            received.on_arrival(&mut receiver, number, 128, 10_000_000);
        }
        let mut metrics = FlowMetrics::default();
        received.fill(&mut metrics, 1.0);
        assert!((metrics.loss_ratio.unwrap() - 0.3).abs() < 1e-12);
        assert_eq!((metrics.loss_burst_mean_pkts, metrics.jitter_mean_s), (Some(4.0 / 3.0), Some(0.0)));
        assert_eq!((metrics.throughput_bps, metrics.delay_mean_s), (Some(7.0 * 128.0 * 8.0), Some(0.01)));
    }

    #[test]
    fn merged_intervals_equal_one_interval() {
        // Number and delay in ms; 4 arrives in the later interval, after 5.
        let arrivals = [(0, 10), (1, 14), (3, 12), (5, 11), (4, 19), (8, 13), (9, 30)];
        let seen = |stretches: &[&[(u32, u64)]]| {
            let (mut all, mut receiver) = (ReceptionStats::default(), ArrivalState::default());
            for stretch in stretches {
                let mut received = ReceptionStats::default();
                for &(number, ms) in *stretch {
                    received.on_arrival(&mut receiver, number, 100 + ms, ms * 1_000_000);
                }
                all.merge(&received);
            }
            let mut metrics = FlowMetrics::default();
            all.fill(&mut metrics, 1.0);
            // The order of summation affects rounding.
            metrics.jitter_mean_s = metrics.jitter_mean_s.map(|jitter| (jitter * 1e9).round());
            metrics
        };
        let whole = seen(&[&arrivals]);
        // 7 of 10 arrive, 809 bytes in all.
        assert!(
            (whole.loss_ratio.unwrap() - 0.3).abs() < 1e-12 && whole.throughput_bps == Some(809.0 * 8.0),
            "{whole:?}"
        );
        assert_eq!(seen(&[&arrivals[..4], &arrivals[4..]]), whole);
    }

    #[test]
    fn the_delay_variation_is_relative_to_the_smallest_delay() {
        // Delays of 10 ms, and of 18 ms for one packet in ten: the 95th percentile is 8 ms above the smallest.
        let mut delay = Histogram::default();
        delay.record_many(10_000_000, 90);
        delay.record_many(18_000_000, 10);
        let mut metrics = FlowMetrics::default();
        metrics.set_delay(&delay);
        assert!((metrics.delay_variation_p95_s.unwrap() - 8e-3).abs() < 1e-4, "{metrics:?}");
        assert!((metrics.delay_p50_s.unwrap() - 10e-3).abs() < 1e-4);
        let mut nothing = FlowMetrics::default();
        nothing.set_delay(&Histogram::default());
        assert_eq!(nothing, FlowMetrics::default());
    }

    #[test]
    fn without_expected_packets_there_are_no_metrics() {
        let mut metrics = FlowMetrics::default();
        ReceptionStats::default().fill(&mut metrics, 1.0);
        assert_eq!((metrics.loss_ratio, metrics.throughput_bps), (None, None));
    }
    #[test]
    fn throughput_and_jitter_are_over_the_window_and_its_packets() {
        let (mut received, mut receiver) = (ReceptionStats::default(), ArrivalState::default());
        // 0, 1, 4 and 5 of 6 arrive after 10, 26, 10 and 10 ms; RFC 3550's estimate moves by a sixteenth of each
        // change.
        for (number, delay_ms) in [(0, 10), (1, 26), (4, 10), (5, 10)] {
            received.on_arrival(&mut receiver, number, 500, delay_ms * 1_000_000);
        }
        assert_eq!((received.losses().mean(), received.losses().longest()), (Some(2.0), Some(2)));
        assert_eq!((received.delay().total(), received.delay().mean()), (4, Some(14e6)));
        let mut metrics = FlowMetrics::default();
        received.fill(&mut metrics, 4.0);
        // 2000 bytes in 4 s.
        assert_eq!((metrics.throughput_bps, metrics.loss_burst_mean_pkts), (Some(4000.0), Some(2.0)));
        assert!((metrics.loss_ratio.unwrap() - 1.0 / 3.0).abs() < 1e-12);
        // 0; 1; 1 + 15/16; 1.9375 - 1.9375/16: a mean of 1.188 ms.
        let estimates = [0.0, 1.0, 1.9375, 1.9375 * 15.0 / 16.0];
        let mean_s = estimates.iter().sum::<f64>() / 4.0 * 1e-3;
        assert!((metrics.jitter_mean_s.unwrap() - mean_s).abs() < 1e-12, "{:?} {mean_s}", metrics.jitter_mean_s);
    }
}
