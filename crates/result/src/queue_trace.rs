//! Trace of a queue in another program, measured by the same meter as this program's queues, so that metrics have one
//! meaning in all engines.

use crate::{Counts, LinkMetrics, Meter, Moments, capacity_bits};

/// Trace of one queue and its link. Lists are in order of time; times are nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct QueueTrace {
    /// Arrival times, accepted or not.
    pub arrivals: Vec<u64>,
    /// Packets taken for transmission.
    pub taken: Vec<Transmission>,
    /// Packets lost at the queue.
    pub lost: Vec<Loss>,
    /// Times of changes in queue length, and the new length.
    pub changes: Vec<(u64, u32)>,
    /// Rate of the link from each time on, bit/s.
    pub rates: Vec<(u64, u64)>,
    /// Target queue length, packets.
    pub target_pkts: Option<f64>,
    /// Sampling interval of the series.
    pub sample_interval: u64,
}

/// A packet taken for transmission.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Transmission {
    /// Start of the transmission.
    pub at: u64,
    /// End of the transmission.
    pub end: u64,
    /// Size on the wire, bytes.
    pub bytes: u64,
    /// Sojourn time, seconds.
    pub wait_s: f64,
    /// Whether the queue marked it.
    pub marked: bool,
}

/// A packet lost at the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// Time of the loss.
    pub at: u64,
    /// Number by arrival, from 1.
    pub number: u64,
    /// Whether the AQM dropped it, as opposed to a full buffer.
    pub early: bool,
}

impl QueueTrace {
    /// Metrics in `start`..`end`, with exact percentiles of the sojourn times. `area_pkts_s`: the program's own
    /// integral of the queue length, if it is more exact than the trace; `sampled_pkts`: queue lengths at the AQM's
    /// sampling instants.
    pub fn metrics(&self, start: u64, end: u64, area_pkts_s: Option<f64>, sampled_pkts: &[f64]) -> LinkMetrics {
        let mut meter = Meter::new(self.target_pkts);
        let (mut changes, mut lost) = (self.changes.iter().peekable(), self.lost.iter().peekable());
        let mut queue = 0;
        for edge in [start, end] {
            while let Some(&(at, length)) = changes.next_if(|(at, _)| *at < edge) {
                meter.advance(at.max(meter.now()), queue);
                queue = length;
            }
            while let Some(lost) = lost.next_if(|lost| lost.at < edge) {
                meter.lost(lost.number, lost.at, 0);
            }
            meter.edge(edge, queue, &self.counts(edge), self.partly_sent_bits(edge));
        }
        let mut sampled = Moments::default();
        sampled_pkts.iter().for_each(|&pkts| sampled.add(pkts));
        meter.pieces[1].sampled = sampled;
        let capacity = capacity_bits(self.rates.iter().copied(), std::iter::empty(), start, end);
        let mut metrics = meter.pieces[1].metrics(end - start, capacity, self.target_pkts);
        if let Some(area) = area_pkts_s {
            let mean = area / ((end - start) as f64 * 1e-9);
            metrics.queue_mean_pkts = mean;
            metrics.qacd_pkts = self.target_pkts.map(|target| libm::hypot(metrics.queue_std_pkts, mean - target));
        }
        self.set_sojourn_exactly(&mut metrics, start, end);
        let (first, last) = (start.div_ceil(self.sample_interval), end / self.sample_interval);
        metrics.set_series(&self.series(end), self.target_pkts, start as f64 * 1e-9, end as f64 * 1e-9);
        metrics.loss_dispersion = crate::index_of_dispersion((first..last).map(|k| self.lost_in_sample(k)));
        metrics
    }

    /// Counts of the queue just before `at`.
    fn counts(&self, at: u64) -> Counts {
        let lost = &self.lost[..self.lost.partition_point(|lost| lost.at < at)];
        let early_dropped = lost.iter().filter(|lost| lost.early).count() as u64;
        let taken = &self.taken[..self.taken.partition_point(|taken| taken.at < at)];
        // A transmission that ends at the edge belongs to the following interval.
        let sent = &self.taken[..self.taken.partition_point(|taken| taken.end < at)];
        Counts {
            arrivals: self.arrivals.partition_point(|&arrived| arrived < at) as u64,
            departures: sent.len() as u64,
            departed_bytes: sent.iter().map(|sent| sent.bytes).sum(),
            marked: taken.iter().filter(|taken| taken.marked).count() as u64,
            early_dropped,
            overflow_dropped: lost.len() as u64 - early_dropped,
        }
    }

    /// Bits already sent at `at` of the packet in transmission.
    fn partly_sent_bits(&self, at: u64) -> f64 {
        let sent = self.taken.partition_point(|taken| taken.end < at);
        let serving = self.taken.get(sent).filter(|taken| taken.at < at && taken.at < taken.end);
        serving.map_or(0.0, |taken| 8.0 * taken.bytes as f64 * (at - taken.at) as f64 / (taken.end - taken.at) as f64)
    }

    fn set_sojourn_exactly(&self, metrics: &mut LinkMetrics, start: u64, end: u64) {
        let inside = |at: u64| self.taken.partition_point(|taken| taken.at < at);
        let mut waits: Vec<f64> = self.taken[inside(start)..inside(end)].iter().map(|taken| taken.wait_s).collect();
        if waits.is_empty() {
            return;
        }
        metrics.sojourn_mean_s = Some(waits.iter().sum::<f64>() / waits.len() as f64);
        waits.sort_by(f64::total_cmp);
        // Smallest sojourn time that a fraction `q` of all does not exceed.
        let quantile = |q: f64| waits[(libm::ceil(q * waits.len() as f64) as usize).clamp(1, waits.len()) - 1];
        metrics.sojourn_p50_s = Some(quantile(0.50));
        metrics.sojourn_p95_s = Some(quantile(0.95));
        metrics.sojourn_p99_s = Some(quantile(0.99));
    }

    /// Queue at the samples up to `end`, each just before simultaneous events.
    fn series(&self, end: u64) -> crate::Series {
        let mut series = crate::Series::default();
        let (mut next, mut queue) = (0, 0);
        for k in 1..=end / self.sample_interval {
            let at = k * self.sample_interval;
            while let Some(&(_, length)) = self.changes.get(next).filter(|(changed, _)| *changed < at) {
                (queue, next) = (length, next + 1);
            }
            series.t_s.push(at as f64 * 1e-9);
            series.queue_pkts.push(f64::from(queue));
        }
        series
    }

    /// Packets lost from sample `k` up to the next; sample 0 is the start of the run.
    fn lost_in_sample(&self, k: u64) -> u32 {
        let before = |at: u64| self.lost.partition_point(|lost| lost.at < at);
        (before((k + 1) * self.sample_interval) - before(k * self.sample_interval)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// 8 Mbit/s, packets of 1000 bytes: 1 ms each. Three arrive at 0, 0.5 and 0.75 ms; a fourth at 0.8 ms is dropped
    /// early, a fifth at 0.9 ms by a full buffer; a sixth at 3.2 ms is dropped early.
    fn trace() -> QueueTrace {
        let taken = |at, wait_s, marked| Transmission { at, end: at + MS, bytes: 1000, wait_s, marked };
        QueueTrace {
            arrivals: vec![0, MS / 2, 750_000, 800_000, 900_000, 3_200_000],
            taken: vec![taken(0, 0.0, false), taken(MS, 0.0005, false), taken(2 * MS, 0.00125, true)],
            lost: vec![
                Loss { at: 800_000, number: 4, early: true },
                Loss { at: 900_000, number: 5, early: false },
                Loss { at: 3_200_000, number: 6, early: true },
            ],
            changes: vec![(MS / 2, 1), (750_000, 2), (MS, 1), (2 * MS, 0)],
            rates: vec![(0, 8_000_000)],
            target_pkts: Some(1.0),
            sample_interval: MS,
        }
    }

    #[test]
    fn a_trace_is_measured_like_a_queue() {
        let all = trace().metrics(0, 4 * MS, None, &[]);
        assert_eq!((all.arrivals_pkts, all.departures_pkts, all.marked_pkts), (6, 3, 1));
        assert_eq!((all.early_dropped_pkts, all.overflow_dropped_pkts), (2, 1));
        // 0.25 + 0.5 + 1 packet-ms in 4 ms; off the target for 2.5 ms by one below and for 0.25 ms by one above.
        assert_eq!((all.queue_mean_pkts, all.utilization), (1.75 / 4.0, Some(0.75)));
        assert!((all.queue_iae_pkts_s.unwrap() - 0.00275).abs() < 1e-12);
        assert!((all.queue_ise_pkts2_s.unwrap() - 0.00275).abs() < 1e-12);
        assert_eq!([all.queue_p50_pkts, all.queue_p75_pkts, all.queue_p95_pkts], [Some(0.0), Some(1.0), Some(2.0)]);
        // The second of three sojourn times is the median, the last all higher percentiles.
        assert_eq!((all.sojourn_p50_s, all.sojourn_p95_s), (Some(0.0005), Some(0.00125)));
        assert!((all.sojourn_mean_s.unwrap() - 0.00175 / 3.0).abs() < 1e-15);
        // Numbers 4, 5 and 6 are consecutive: one run. Two losses in the first sample, one in the fourth.
        assert_eq!((all.loss_run_mean_pkts, all.loss_run_max_pkts), (Some(3.0), Some(3)));
        assert!((all.loss_dispersion.unwrap() - (5.0 / 4.0 - 9.0 / 16.0) / 0.75).abs() < 1e-12);
        // Just before 1, 2, 3 and 4 ms the queue is 2, 1, 0 and 0.
        assert_eq!((all.overshoot_pkts, all.qacd_sampled_pkts), (Some(1.0), None));
    }

    #[test]
    fn events_belong_to_the_window_from_its_start_up_to_its_end() {
        let trace = trace();
        // The second packet is sent from 1 to 2 ms, the third from 2 to 3.
        let late = trace.metrics(1_500_000, 4 * MS, None, &[2.0, 4.0]);
        assert_eq!((late.utilization, late.departures_pkts, late.arrivals_pkts), (Some(0.6), 2, 1));
        assert_eq!((late.queue_mean_pkts, late.marked_pkts), (0.2, 1));
        assert_eq!(late.qacd_sampled_pkts, Some(5f64.sqrt()));
        assert_eq!((late.sojourn_p50_s, late.loss_run_max_pkts), (Some(0.00125), Some(1)));
        // Within a transmission; nothing ends or starts.
        let inside = trace.metrics(1_200_000, 1_700_000, None, &[]);
        assert_eq!((inside.utilization, inside.departures_pkts, inside.sojourn_mean_s), (Some(1.0), 0, None));
        // A transmission that ends at the edge belongs to the following interval.
        let ends = [trace.metrics(0, MS, None, &[]), trace.metrics(MS, 2 * MS, None, &[])];
        assert_eq!(ends.clone().map(|window| window.departures_pkts), [0, 1]);
        assert_eq!(ends.map(|window| window.utilization), [Some(1.0), Some(1.0)]);
        let idle = trace.metrics(3 * MS + 1, 4 * MS, None, &[]);
        assert_eq!(idle.utilization, Some(0.0));
    }

    #[test]
    fn the_integral_of_the_program_takes_precedence() {
        let seen = trace().metrics(0, 4 * MS, Some(0.008), &[]);
        assert_eq!(seen.queue_mean_pkts, 2.0);
        // The deviation remains that of the trace: mean square 0.5625.
        let variance = 0.5625 - 0.4375 * 0.4375;
        assert!((seen.qacd_pkts.unwrap() - (variance + 1.0f64).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn losses_are_counted_sample_by_sample_from_the_first_whole_one_on() {
        let mut trace = trace();
        trace.lost = [500_000, MS, 1_200_000, 3 * MS - 1].map(|at| Loss { at, number: 1, early: true }).into();
        // From 0.5 ms the whole samples begin at 1 ms: 2 losses from 1 to 2 ms, one up to 3 ms, none up to 4.
        let seen = trace.metrics(MS / 2, 4 * MS, None, &[]);
        assert_eq!(seen.early_dropped_pkts, 4);
        assert!((seen.loss_dispersion.unwrap() - (5.0 / 3.0 - 1.0)).abs() < 1e-12);
        // Events at the start of a window count, those at its end do not.
        let edges = trace.metrics(MS / 2, MS, None, &[]);
        assert_eq!(edges.early_dropped_pkts, 1);
        // A mark counts when the packet is taken for transmission.
        assert_eq!(trace.metrics(2 * MS, 3 * MS, None, &[]).marked_pkts, 1);
        assert_eq!(trace.metrics(MS, 2 * MS, None, &[]).marked_pkts, 0);
    }

    #[test]
    fn a_change_at_the_edge_belongs_to_the_following_window() {
        // One packet from 0.5 ms on, two from 0.75 ms, one from 1 ms, none from 2 ms.
        let trace = trace();
        let windows = [(750_000, MS), (MS, 2 * MS), (2 * MS, 3 * MS)].map(|(a, b)| trace.metrics(a, b, None, &[]));
        assert_eq!(windows.map(|window| window.queue_mean_pkts), [2.0, 1.0, 0.0]);
        // An integral over half a second: 0.25 packet seconds are half a packet.
        let seen = trace.metrics(500 * MS, 1000 * MS, Some(0.25), &[]);
        assert_eq!(seen.queue_mean_pkts, 0.5);
    }
}
