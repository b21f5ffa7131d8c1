//! What receivers see of numbered packets: which are missing, how long they took, how unevenly they came.

use crate::{FlowMetrics, Histogram, Jitter, Runs};

/// What a receiver remembers from packet to packet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reception {
    jitter: Jitter,
    /// One more than the highest number that arrived.
    next: u32,
}

/// What receivers saw in a stretch of time.
#[derive(Clone, Debug, Default)]
pub struct Received {
    /// Packets that arrived, and the bytes of them.
    arrived: u64,
    bytes: u64,
    /// Packets up to the highest number that arrived.
    expected: u64,
    /// Packets that were missing one directly after the other.
    losses: Runs,
    /// One-way delays, nanoseconds.
    delay: Histogram,
    /// Sum of the estimates of jitter after each arrival, nanoseconds.
    jitter: f64,
}

impl Received {
    /// Packet `number`, of `bytes` with all headers, arrived after `delay` nanoseconds at a receiver that remembers
    /// `reception`.
    pub fn on_arrival(&mut self, reception: &mut Reception, number: u32, bytes: u64, delay: u64) {
        // RFC 3550 appendix A.3: expected are all up to the highest number. One that comes after a higher one was
        // counted as missing, and only arrives.
        if let Some(missing) = number.checked_sub(reception.next) {
            self.losses.record(missing.into());
            self.expected += u64::from(missing) + 1;
            reception.next = number + 1;
        }
        self.arrived += 1;
        self.bytes += bytes;
        self.delay.record(delay);
        self.jitter += reception.jitter.arrived(delay);
    }

    /// Adds what was seen later.
    pub fn merge(&mut self, later: &Received) {
        self.arrived += later.arrived;
        self.bytes += later.bytes;
        self.expected += later.expected;
        self.losses.merge(&later.losses);
        self.delay.merge(&later.delay);
        self.jitter += later.jitter;
    }

    /// Share of the packets that are missing; `None` where none was expected.
    pub fn loss_ratio(&self) -> Option<f64> {
        // Late ones that were counted as missing in the stretch before may make more arrivals than were expected.
        (self.expected > 0).then(|| self.expected.saturating_sub(self.arrived) as f64 / self.expected as f64)
    }

    /// How many packets were missing one directly after the other.
    pub fn losses(&self) -> &Runs {
        &self.losses
    }

    /// One-way delays, nanoseconds.
    pub fn delay(&self) -> &Histogram {
        &self.delay
    }

    /// Fills in the figures of a window of `length_s` seconds, where any packet was expected.
    pub fn fill(&self, metrics: &mut FlowMetrics, length_s: f64) {
        if self.expected == 0 {
            return;
        }
        metrics.throughput_bps = Some(self.bytes as f64 * 8.0 / length_s);
        metrics.tell_delay(&self.delay);
        metrics.jitter_mean_s = Some(self.jitter / self.arrived as f64 * 1e-9);
        metrics.loss_ratio = self.loss_ratio();
        metrics.loss_burst_mean_pkts = self.losses.mean();
    }
}

impl FlowMetrics {
    /// Fills in what one-way delays say, which are in nanoseconds.
    pub fn tell_delay(&mut self, delay: &Histogram) {
        let seconds = |ns: f64| ns * 1e-9;
        let [p50, p95, p99] = [0.50, 0.95, 0.99].map(|q| delay.quantile(q).map(seconds));
        let least = delay.least().map(|ns| seconds(ns as f64));
        // A quantile is that of a bin, which may begin below the smallest value.
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
    fn what_is_missing_up_to_the_highest_number_is_lost() {
        let (mut received, mut reception) = (Received::default(), Reception::default());
        // Of 0 to 9 lost: 2, 5, 6; 8 comes after 9. Each takes 10 ms.
        for number in [0, 1, 3, 4, 7, 9, 8] {
            received.on_arrival(&mut reception, number, 128, 10_000_000);
        }
        let mut metrics = FlowMetrics::default();
        received.fill(&mut metrics, 1.0);
        assert!((metrics.loss_ratio.unwrap() - 0.3).abs() < 1e-12);
        assert_eq!((metrics.loss_burst_mean_pkts, metrics.jitter_mean_s), (Some(4.0 / 3.0), Some(0.0)));
        assert_eq!((metrics.throughput_bps, metrics.delay_mean_s), (Some(7.0 * 128.0 * 8.0), Some(0.01)));
    }

    #[test]
    fn stretches_together_tell_what_one_does() {
        // Number and delay in ms; 4 comes in the later stretch, after 5.
        let arrivals = [(0, 10), (1, 14), (3, 12), (5, 11), (4, 19), (8, 13), (9, 30)];
        let seen = |stretches: &[&[(u32, u64)]]| {
            let (mut all, mut reception) = (Received::default(), Reception::default());
            for stretch in stretches {
                let mut received = Received::default();
                for &(number, ms) in *stretch {
                    received.on_arrival(&mut reception, number, 100 + ms, ms * 1_000_000);
                }
                all.merge(&received);
            }
            let mut metrics = FlowMetrics::default();
            all.fill(&mut metrics, 1.0);
            // Sums in another order may be rounded otherwise.
            metrics.jitter_mean_s = metrics.jitter_mean_s.map(|jitter| (jitter * 1e9).round());
            metrics
        };
        let whole = seen(&[&arrivals]);
        // 7 of 10 came, of 809 bytes in all.
        assert!(
            (whole.loss_ratio.unwrap() - 0.3).abs() < 1e-12 && whole.throughput_bps == Some(809.0 * 8.0),
            "{whole:?}"
        );
        assert_eq!(seen(&[&arrivals[..4], &arrivals[4..]]), whole);
    }

    #[test]
    fn the_variation_is_what_a_delay_has_above_the_smallest() {
        // Delays of 10 ms, and of 18 ms for one packet in ten: the 95th percentile is 8 ms above the smallest.
        let mut delay = Histogram::default();
        delay.record_many(10_000_000, 90);
        delay.record_many(18_000_000, 10);
        let mut metrics = FlowMetrics::default();
        metrics.tell_delay(&delay);
        assert!((metrics.delay_variation_p95_s.unwrap() - 8e-3).abs() < 1e-4, "{metrics:?}");
        assert!((metrics.delay_p50_s.unwrap() - 10e-3).abs() < 1e-4);
        let mut nothing = FlowMetrics::default();
        nothing.tell_delay(&Histogram::default());
        assert_eq!(nothing, FlowMetrics::default());
    }

    #[test]
    fn nothing_expected_says_nothing() {
        let mut metrics = FlowMetrics::default();
        Received::default().fill(&mut metrics, 1.0);
        assert_eq!((metrics.loss_ratio, metrics.throughput_bps), (None, None));
    }
    #[test]
    fn throughput_and_jitter_are_over_the_window_and_its_packets() {
        let (mut received, mut reception) = (Received::default(), Reception::default());
        // 0, 1, 4 and 5 of 6 arrive, after 10, 26, 10 and 10 ms: RFC 3550's estimate moves by a sixteenth of
        // each change.
        for (number, delay_ms) in [(0, 10), (1, 26), (4, 10), (5, 10)] {
            received.on_arrival(&mut reception, number, 500, delay_ms * 1_000_000);
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
