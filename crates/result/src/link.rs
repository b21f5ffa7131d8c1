//! Metrics of a link, defined once for all engines: from sums over a window, histograms, or a steady state.

use crate::{Histogram, LinkMetrics, LossStatistics, Series, transient};

/// Sums over a window. Packets are `f64`, as the fluid engine has fractions of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkSums {
    /// Length of the window, in units of `unit_s` seconds.
    pub length: f64,
    /// Unit of time, seconds.
    pub unit_s: f64,
    /// Time integral of the queue length.
    pub area: f64,
    /// Time integral of the squared queue length.
    pub area_squared: f64,
    /// Queue lengths at the AQM's sampling instants.
    pub sampled: Moments,
    /// Packets that arrived.
    pub arrivals: f64,
    /// Packets whose transmission ended.
    pub departures: f64,
    /// Packets marked CE.
    pub marked: f64,
    /// Packets that the AQM dropped.
    pub early_dropped: f64,
    /// Packets lost to a full buffer.
    pub overflow_dropped: f64,
    /// Data sent, in bits or in packets of one size.
    pub sent: f64,
    /// Integral of the capacity over the window, in the same unit.
    pub capacity: f64,
}

/// A link in a steady state.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkSteadyState {
    /// Mean queue length, packets.
    pub queue_pkts: f64,
    /// Standard deviation of the queue length, packets.
    pub queue_std_pkts: f64,
    /// Packets that arrive in the window.
    pub arrivals: f64,
    /// Packets that depart in the window.
    pub departures: f64,
    /// Fraction of arrivals marked.
    pub mark_ratio: f64,
    /// Fraction of arrivals that the AQM drops.
    pub early_drop_ratio: f64,
    /// Fraction of arrivals lost to a full buffer.
    pub overflow_drop_ratio: f64,
    /// Utilisation of the capacity.
    pub utilization: f64,
}

/// Sum, sum of squares, and number of values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    /// Sum of the values.
    pub sum: f64,
    /// Sum of their squares.
    pub sum_squared: f64,
    /// Number of values.
    pub n: u64,
}

/// Utilisation of a capacity; `None` without capacity. It is at most 1, although the sent data may exceed the
/// integrated capacity: a packet keeps the rate at its start, transmissions take whole nanoseconds, and a radio link
/// varies at random.
pub fn utilization(sent: f64, capacity: f64) -> Option<f64> {
    (capacity > 0.0).then(|| sent.max(0.0) / capacity.max(sent))
}

/// Bits that a wire can carry in `from`..`until`, nanoseconds: the integral of its `rates`, each valid from its time
/// on, without its `outages`, which do not overlap.
pub fn capacity_bits(
    rates: impl IntoIterator<Item = (u64, u64)>,
    outages: impl Iterator<Item = (u64, u64)> + Clone,
    from: u64,
    until: u64,
) -> f64 {
    let mut rates = rates.into_iter().peekable();
    let mut bits = 0.0;
    while let Some((begins, bps)) = rates.next() {
        let begins = begins.max(from);
        let ends = rates.peek().map_or(until, |next| next.0).min(until);
        let down: u64 = outages.clone().map(|(down, up)| up.min(ends).saturating_sub(down.max(begins))).sum();
        bits += bps as f64 * (ends.saturating_sub(begins).saturating_sub(down) as f64 * 1e-9);
    }
    bits
}

impl LinkSums {
    /// Metrics of the window.
    pub fn metrics(&self, target_pkts: Option<f64>) -> LinkMetrics {
        let mean = self.area / self.length;
        let mean_square = self.area_squared / self.length;
        let whole = |count: f64| libm::round(count.max(0.0)) as u64;
        let ratio = |count: f64| (self.arrivals > 0.0).then(|| count / self.arrivals);
        LinkMetrics {
            utilization: utilization(self.sent, self.capacity),
            queue_mean_pkts: mean,
            queue_std_pkts: (mean_square - mean * mean).max(0.0).sqrt(),
            qacd_pkts: target_pkts.map(|target| (mean_square - 2.0 * target * mean + target * target).max(0.0).sqrt()),
            qacd_sampled_pkts: target_pkts.and_then(|target| self.sampled.rms_about(target)),
            arrivals_pkts: whole(self.arrivals),
            departures_pkts: whole(self.departures),
            marked_pkts: whole(self.marked),
            early_dropped_pkts: whole(self.early_dropped),
            overflow_dropped_pkts: whole(self.overflow_dropped),
            mark_ratio: ratio(self.marked),
            early_drop_ratio: ratio(self.early_dropped),
            overflow_drop_ratio: ratio(self.overflow_dropped),
            queue_ise_pkts2_s: target_pkts.map(|target| {
                let square = self.area_squared - 2.0 * target * self.area + target * target * self.length;
                square.max(0.0) * self.unit_s
            }),
            ..LinkMetrics::default()
        }
    }
}

impl LinkSteadyState {
    /// Metrics of the steady state.
    pub fn metrics(&self, target_pkts: Option<f64>) -> LinkMetrics {
        let whole = |count: f64| libm::round(count) as u64;
        let ratio = |share: f64| (self.arrivals > 0.0).then_some(share);
        let qacd = target_pkts.map(|target| libm::hypot(self.queue_pkts - target, self.queue_std_pkts));
        LinkMetrics {
            utilization: utilization(self.utilization, 1.0),
            queue_mean_pkts: self.queue_pkts,
            queue_std_pkts: self.queue_std_pkts,
            qacd_pkts: qacd,
            qacd_sampled_pkts: qacd,
            arrivals_pkts: whole(self.arrivals),
            departures_pkts: whole(self.departures),
            marked_pkts: whole(self.arrivals * self.mark_ratio),
            early_dropped_pkts: whole(self.arrivals * self.early_drop_ratio),
            overflow_dropped_pkts: whole(self.arrivals * self.overflow_drop_ratio),
            mark_ratio: ratio(self.mark_ratio),
            early_drop_ratio: ratio(self.early_drop_ratio),
            overflow_drop_ratio: ratio(self.overflow_drop_ratio),
            ..LinkMetrics::default()
        }
    }
}

impl LinkMetrics {
    /// Sets the metrics of the sojourn times (nanoseconds).
    pub fn set_sojourn(&mut self, sojourn: &Histogram) {
        let seconds = |ns: Option<f64>| ns.map(|ns| ns * 1e-9);
        self.sojourn_mean_s = seconds(sojourn.mean());
        self.sojourn_p50_s = seconds(sojourn.quantile(0.50));
        self.sojourn_p95_s = seconds(sojourn.quantile(0.95));
        self.sojourn_p99_s = seconds(sojourn.quantile(0.99));
    }

    /// Sets the metrics of the times of losses (nanoseconds).
    pub fn set_losses(&mut self, spacing: &LossStatistics) {
        let intervals = spacing.intervals();
        let seconds = |ns: Option<f64>| ns.map(|ns| ns * 1e-9);
        self.loss_interval_mean_s = seconds(intervals.mean());
        self.loss_interval_p50_s = seconds(intervals.quantile(0.50));
        self.loss_interval_p95_s = seconds(intervals.quantile(0.95));
        self.loss_event_flows_mean = spacing.flows_hit();
    }

    /// Sets the quantiles of the queue length, weighted by time.
    pub fn set_queue(&mut self, queue: &Histogram) {
        self.queue_p5_pkts = queue.quantile(0.05);
        self.queue_p25_pkts = queue.quantile(0.25);
        self.queue_p50_pkts = queue.quantile(0.50);
        self.queue_p75_pkts = queue.quantile(0.75);
        self.queue_p95_pkts = queue.quantile(0.95);
    }

    /// Sets the metrics of a window of the series: mean probability, settling and overshoot. Marks and drops must have
    /// been set: an AQM that signals without a probability has none.
    pub fn set_series(&mut self, series: &Series, target_pkts: Option<f64>, start_s: f64, end_s: f64) {
        let mut inside = Moments::default();
        let samples = series.t_s.iter().zip(&series.probability);
        samples.filter(|(t_s, p)| (start_s..end_s).contains(*t_s) && p.is_finite()).for_each(|(_, p)| inside.add(*p));
        let signalled = self.mark_ratio.unwrap_or(0.0) + self.early_drop_ratio.unwrap_or(0.0) > 0.0;
        self.probability_mean =
            (inside.n > 0 && (inside.sum > 0.0 || !signalled)).then(|| inside.sum / inside.n as f64);
        let seen = target_pkts.and_then(|target| transient(&series.t_s, &series.queue_pkts, target, start_s, end_s));
        if let Some(seen) = seen {
            self.settling_s = seen.settling_s;
            self.overshoot_pkts = Some(seen.overshoot_pkts);
        }
    }
}

impl Moments {
    /// Adds a value.
    pub fn add(&mut self, x: f64) {
        self.sum += x;
        self.sum_squared += x * x;
        self.n += 1;
    }

    /// Adds the moments of `other`.
    pub fn merge(&mut self, other: &Moments) {
        self.sum += other.sum;
        self.sum_squared += other.sum_squared;
        self.n += other.n;
    }

    /// Root mean square distance from `reference`.
    pub fn rms_about(&self, reference: f64) -> Option<f64> {
        if self.n == 0 {
            return None;
        }
        let n = self.n as f64;
        let mean_square = (self.sum_squared - 2.0 * reference * self.sum) / n + reference * reference;
        Some(mean_square.max(0.0).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utilization_is_sent_over_capacity() {
        assert_eq!(utilization(3.0, 4.0), Some(0.75));
        assert_eq!((utilization(0.0, 4.0), utilization(4.0, 4.0)), (Some(0.0), Some(1.0)));
        // At most 1; negative rounding errors count as 0; undefined without capacity.
        assert_eq!((utilization(5.0, 4.0), utilization(-1e-12, 4.0)), (Some(1.0), Some(0.0)));
        assert_eq!((utilization(0.0, 0.0), utilization(1.0, 0.0)), (None, None));
    }

    #[test]
    fn capacity_is_integrated_over_rates_less_outages() {
        let s = 1_000_000_000;
        let rates = [(0, 100), (10 * s, 10), (20 * s, 1000)];
        let bits =
            |outages: &[(u64, u64)], from, until| capacity_bits(rates, outages.iter().copied(), from * s, until * s);
        assert_eq!(bits(&[], 0, 10), 1000.0);
        // 5 s of 100, 10 s of 10, 2 s of 1000.
        assert_eq!(bits(&[], 5, 22), 2600.0);
        // Without 8 to 12 s and everything after 21 s: 3 s of 100, 8 s of 10, 1 s of 1000.
        assert_eq!(bits(&[(8 * s, 12 * s), (21 * s, u64::MAX)], 5, 22), 1380.0);
        assert_eq!(bits(&[(0, u64::MAX)], 5, 22), 0.0);
    }

    #[test]
    fn sums_and_a_steady_state_give_equal_metrics() {
        // 40 packets for 3 s and 20 for 1 s: mean 35, mean square 1300, variance 75.
        let sums = LinkSums {
            length: 4.0,
            unit_s: 1.0,
            area: 140.0,
            area_squared: 5200.0,
            arrivals: 1000.0,
            departures: 900.4,
            marked: 100.0,
            early_dropped: 50.0,
            overflow_dropped: 25.0,
            sent: 900.0,
            capacity: 1200.0,
            ..LinkSums::default()
        };
        let seen = sums.metrics(Some(30.0));
        assert_eq!((seen.queue_mean_pkts, seen.queue_std_pkts), (35.0, 75f64.sqrt()));
        // 10 above for 3 s, 10 below for 1 s.
        assert_eq!((seen.qacd_pkts, seen.queue_ise_pkts2_s), (Some(10.0), Some(400.0)));
        assert_eq!((seen.arrivals_pkts, seen.departures_pkts, seen.utilization), (1000, 900, Some(0.75)));
        assert_eq!((seen.marked_pkts, seen.early_dropped_pkts, seen.overflow_dropped_pkts), (100, 50, 25));
        let ratios = [seen.mark_ratio, seen.early_drop_ratio, seen.overflow_drop_ratio];
        assert_eq!(ratios, [Some(0.1), Some(0.05), Some(0.025)]);
        assert_eq!((sums.metrics(None).qacd_pkts, sums.metrics(None).queue_ise_pkts2_s), (None, None));
        assert_eq!(LinkSums { length: 1.0, ..LinkSums::default() }.metrics(None).mark_ratio, None);
        let point = LinkSteadyState {
            queue_pkts: 35.0,
            queue_std_pkts: 75f64.sqrt(),
            arrivals: 1000.0,
            departures: 900.4,
            mark_ratio: 0.1,
            early_drop_ratio: 0.05,
            overflow_drop_ratio: 0.025,
            utilization: 0.75,
        };
        let still = point.metrics(Some(30.0));
        assert!((still.qacd_pkts.unwrap() - 10.0).abs() < 1e-12);
        assert_eq!(still.qacd_sampled_pkts, still.qacd_pkts);
        // All other metrics are equal.
        let rest = LinkMetrics { qacd_pkts: None, qacd_sampled_pkts: None, queue_ise_pkts2_s: None, ..still };
        assert_eq!(rest, LinkMetrics { qacd_pkts: None, queue_ise_pkts2_s: None, ..seen });
        assert_eq!(LinkSteadyState { mark_ratio: 0.5, ..LinkSteadyState::default() }.metrics(None).mark_ratio, None);
    }

    #[test]
    fn a_window_settles_by_its_series() {
        let t_s: Vec<f64> = (1..=100).map(|k| f64::from(k) * 0.1).collect();
        let series = Series { queue_pkts: vec![40.0; 100], probability: vec![0.0; 100], t_s, ..Series::default() };
        let mut metrics = LinkMetrics::default();
        metrics.set_series(&series, None, 0.0, 10.0);
        assert_eq!((metrics.settling_s, metrics.overshoot_pkts), (None, None));
        assert_eq!(metrics.probability_mean, Some(0.0));
        metrics.set_series(&series, Some(35.0), 2.0, 10.0);
        assert!((metrics.settling_s.unwrap() - 0.1).abs() < 1e-9);
        assert_eq!(metrics.overshoot_pkts, Some(5.0));
    }

    #[test]
    fn the_probability_of_a_window_is_the_mean_of_the_samples_in_it() {
        let t_s = vec![0.0, 1.0, 2.0, 3.0, 4.0];
        let probability = vec![0.9, 0.1, f64::NAN, 0.3, 0.7];
        let series = Series { queue_pkts: vec![0.0; 5], probability, t_s, ..Series::default() };
        let mean = |start_s, end_s| {
            let mut metrics = LinkMetrics::default();
            metrics.set_series(&series, None, start_s, end_s);
            metrics.probability_mean
        };
        // From the start up to the end, exclusive; a sample without a probability does not count.
        assert_eq!((mean(1.0, 4.0), mean(2.0, 3.0), mean(4.5, 9.0)), (Some(0.2), None, None));
        // CoDel signals without a probability, so it is undefined. DropTail, which never signals, has 0.
        let zeros =
            Series { queue_pkts: vec![9.0; 2], probability: vec![0.0; 2], t_s: vec![0.0, 1.0], ..Series::default() };
        for (mark_ratio, early_drop_ratio, mean) in
            [(Some(0.1), Some(0.0), None), (None, Some(0.1), None), (Some(0.0), Some(0.0), Some(0.0))]
        {
            let mut metrics = LinkMetrics { mark_ratio, early_drop_ratio, ..LinkMetrics::default() };
            metrics.set_series(&zeros, None, 0.0, 9.0);
            assert_eq!(metrics.probability_mean, mean);
        }
    }
    #[test]
    fn sojourn_times_and_loss_intervals_are_in_seconds() {
        let mut metrics = LinkMetrics::default();
        let mut waits = Histogram::default();
        // 2^30 and 2^31 ns are at the start of a bin.
        [1 << 30, 1 << 31, 1 << 31].into_iter().for_each(|ns| waits.record(ns));
        metrics.set_sojourn(&waits);
        let second = (1u64 << 30) as f64 * 1e-9;
        assert!((metrics.sojourn_mean_s.unwrap() - 5.0 / 3.0 * second).abs() < 1e-9);
        for (told, at) in [(metrics.sojourn_p50_s, 2.0), (metrics.sojourn_p95_s, 2.0), (metrics.sojourn_p99_s, 2.0)] {
            assert!((told.unwrap() / second - at).abs() < 0.02, "{told:?}");
        }
        // Losses at 1, 3, 7 and 8 s of two flows: 2, 4 and 1 s apart; separate events at a round trip of 1 ms.
        let (mut clock, mut spacing) = (crate::LossTracker::new(1_000_000), LossStatistics::default());
        for (at, flow) in [(1, 0), (3, 1), (7, 0), (8, 1)] {
            clock.lost(at * 1_000_000_000, flow, &mut spacing);
        }
        clock.close(&mut spacing);
        metrics.set_losses(&spacing);
        assert!((metrics.loss_interval_mean_s.unwrap() - 7.0 / 3.0).abs() < 1e-9, "{:?}", metrics.loss_interval_mean_s);
        assert!((metrics.loss_interval_p50_s.unwrap() - 2.0).abs() < 0.02, "{:?}", metrics.loss_interval_p50_s);
        assert!((metrics.loss_interval_p95_s.unwrap() - 4.0).abs() < 0.04, "{:?}", metrics.loss_interval_p95_s);
        assert_eq!(metrics.loss_event_flows_mean, Some(1.0));
    }

    #[test]
    fn a_sampled_probability_counts_despite_signals() {
        // Samples with a probability determine the mean, regardless of signals.
        let series =
            Series { queue_pkts: vec![9.0; 2], probability: vec![0.0, 0.5], t_s: vec![0.0, 1.0], ..Series::default() };
        let mut metrics = LinkMetrics { mark_ratio: Some(0.1), ..LinkMetrics::default() };
        metrics.set_series(&series, None, 0.0, 9.0);
        assert_eq!(metrics.probability_mean, Some(0.25));
    }
}
