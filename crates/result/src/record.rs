//! The record of a queue that another program kept: the same meter as that of our own queues reads it, so that a figure
//! means the same in every engine.

use crate::{Counts, LinkMetrics, Meter, Moments, capacity_bits};

/// What a trace tells of one queue and its link. Each list is in order of time, moments are nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// When a packet arrived, let in or not.
    pub arrivals: Vec<u64>,
    /// The packets taken for transmission.
    pub taken: Vec<Taken>,
    /// The packets lost at the queue.
    pub lost: Vec<Lost>,
    /// When the number of packets waiting changed, and what it was from then on.
    pub changes: Vec<(u64, u32)>,
    /// The link's rate from each moment on, bit/s.
    pub rates: Vec<(u64, u64)>,
    /// Target queue length, packets.
    pub target_pkts: Option<f64>,
    /// The interval of the series.
    pub sample_interval: u64,
}

/// A packet taken for transmission.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Taken {
    /// When.
    pub at: u64,
    /// When its transmission ended.
    pub end: u64,
    /// Its size on the wire.
    pub bytes: u64,
    /// How long it had waited, seconds.
    pub wait_s: f64,
    /// The queue marked it.
    pub marked: bool,
}

/// A packet lost at the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// When.
    pub at: u64,
    /// Its number by arrival, from 1.
    pub number: u64,
    /// The AQM discarded it, not want of room.
    pub early: bool,
}

impl Record {
    /// The metrics from `start` up to but not including `end`. Waits are known one by one here: their percentiles are
    /// exact. `area_pkts_s` is the program's own integral of the queue length, where that is more exact than the trace;
    /// `sampled_pkts` are the queue lengths at the AQM's sampling instants.
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
        self.tell_waits(&mut metrics, start, end);
        let (first, last) = (start.div_ceil(self.sample_interval), end / self.sample_interval);
        metrics.tell_series(&self.series(end), self.target_pkts, start as f64 * 1e-9, end as f64 * 1e-9);
        metrics.loss_dispersion = crate::dispersion((first..last).map(|k| self.lost_in_sample(k)));
        metrics
    }

    /// What the queue had counted just before `at`.
    fn counts(&self, at: u64) -> Counts {
        let lost = &self.lost[..self.lost.partition_point(|lost| lost.at < at)];
        let early_dropped = lost.iter().filter(|lost| lost.early).count() as u64;
        let taken = &self.taken[..self.taken.partition_point(|taken| taken.at < at)];
        // A transmission that ends at the edge belongs to what follows, as with a queue of ours.
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

    /// Bits on the wire at `at` of the packet then in transmission.
    fn partly_sent_bits(&self, at: u64) -> f64 {
        let sent = self.taken.partition_point(|taken| taken.end < at);
        let serving = self.taken.get(sent).filter(|taken| taken.at < at && taken.at < taken.end);
        serving.map_or(0.0, |taken| 8.0 * taken.bytes as f64 * (at - taken.at) as f64 / (taken.end - taken.at) as f64)
    }

    fn tell_waits(&self, metrics: &mut LinkMetrics, start: u64, end: u64) {
        let inside = |at: u64| self.taken.partition_point(|taken| taken.at < at);
        let mut waits: Vec<f64> = self.taken[inside(start)..inside(end)].iter().map(|taken| taken.wait_s).collect();
        if waits.is_empty() {
            return;
        }
        metrics.sojourn_mean_s = Some(waits.iter().sum::<f64>() / waits.len() as f64);
        waits.sort_by(f64::total_cmp);
        // The least wait that the share `q` of all does not exceed.
        let quantile = |q: f64| waits[(libm::ceil(q * waits.len() as f64) as usize).clamp(1, waits.len()) - 1];
        metrics.sojourn_p50_s = Some(quantile(0.50));
        metrics.sojourn_p95_s = Some(quantile(0.95));
        metrics.sojourn_p99_s = Some(quantile(0.99));
    }

    /// The queue at the samples up to `end`, each just before what happens then.
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

    /// Packets lost from sample `k` up to the next, sample 0 being the start of the run.
    fn lost_in_sample(&self, k: u64) -> u32 {
        let before = |at: u64| self.lost.partition_point(|lost| lost.at < at);
        (before((k + 1) * self.sample_interval) - before(k * self.sample_interval)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// 8 Mbit/s, packets of 1000 bytes: 1 ms each. Three come at 0, 0.5 and 0.75 ms, a fourth at 0.8 ms is dropped
    /// early, a fifth at 0.9 ms for want of room; a sixth at 3.2 ms is dropped early.
    fn record() -> Record {
        let taken = |at, wait_s, marked| Taken { at, end: at + MS, bytes: 1000, wait_s, marked };
        Record {
            arrivals: vec![0, MS / 2, 750_000, 800_000, 900_000, 3_200_000],
            taken: vec![taken(0, 0.0, false), taken(MS, 0.0005, false), taken(2 * MS, 0.00125, true)],
            lost: vec![
                Lost { at: 800_000, number: 4, early: true },
                Lost { at: 900_000, number: 5, early: false },
                Lost { at: 3_200_000, number: 6, early: true },
            ],
            changes: vec![(MS / 2, 1), (750_000, 2), (MS, 1), (2 * MS, 0)],
            rates: vec![(0, 8_000_000)],
            target_pkts: Some(1.0),
            sample_interval: MS,
        }
    }

    #[test]
    fn a_record_is_measured_as_a_queue() {
        let all = record().metrics(0, 4 * MS, None, &[]);
        assert_eq!((all.arrivals_pkts, all.departures_pkts, all.marked_pkts), (6, 3, 1));
        assert_eq!((all.early_dropped_pkts, all.overflow_dropped_pkts), (2, 1));
        // 0.25 + 0.5 + 1 packet-ms in 4 ms; off the target for 2.5 ms by one below and for 0.25 ms by one above.
        assert_eq!((all.queue_mean_pkts, all.utilization), (1.75 / 4.0, Some(0.75)));
        assert!((all.queue_iae_pkts_s.unwrap() - 0.00275).abs() < 1e-12);
        assert!((all.queue_ise_pkts2_s.unwrap() - 0.00275).abs() < 1e-12);
        assert_eq!([all.queue_p50_pkts, all.queue_p75_pkts, all.queue_p95_pkts], [Some(0.0), Some(1.0), Some(2.0)]);
        // Of three waits the second is the median, the last all higher percentiles.
        assert_eq!((all.sojourn_p50_s, all.sojourn_p95_s), (Some(0.0005), Some(0.00125)));
        assert!((all.sojourn_mean_s.unwrap() - 0.00175 / 3.0).abs() < 1e-15);
        // Numbers 4, 5 and 6 arrived one after the other: one run. Two losses in the first sample, one in the fourth.
        assert_eq!((all.loss_run_mean_pkts, all.loss_run_max_pkts), (Some(3.0), Some(3)));
        assert!((all.loss_dispersion.unwrap() - (5.0 / 4.0 - 9.0 / 16.0) / 0.75).abs() < 1e-12);
        // Just before 1, 2, 3 and 4 ms there were 2, 1, 0 and 0.
        assert_eq!((all.overshoot_pkts, all.qacd_sampled_pkts), (Some(1.0), None));
    }

    #[test]
    fn a_window_has_what_happens_from_its_start_up_to_its_end() {
        let record = record();
        // The second packet is sent from 1 to 2 ms, the third from 2 to 3.
        let late = record.metrics(1_500_000, 4 * MS, None, &[2.0, 4.0]);
        assert_eq!((late.utilization, late.departures_pkts, late.arrivals_pkts), (Some(0.6), 2, 1));
        assert_eq!((late.queue_mean_pkts, late.marked_pkts), (0.2, 1));
        assert_eq!(late.qacd_sampled_pkts, Some(5f64.sqrt()));
        assert_eq!((late.sojourn_p50_s, late.loss_run_max_pkts), (Some(0.00125), Some(1)));
        // Within a transmission; nothing ends, nothing waits for transmission.
        let inside = record.metrics(1_200_000, 1_700_000, None, &[]);
        assert_eq!((inside.utilization, inside.departures_pkts, inside.sojourn_mean_s), (Some(1.0), 0, None));
        // A transmission that ends at the edge belongs to what follows.
        let ends = [record.metrics(0, MS, None, &[]), record.metrics(MS, 2 * MS, None, &[])];
        assert_eq!(ends.clone().map(|window| window.departures_pkts), [0, 1]);
        assert_eq!(ends.map(|window| window.utilization), [Some(1.0), Some(1.0)]);
        let idle = record.metrics(3 * MS + 1, 4 * MS, None, &[]);
        assert_eq!(idle.utilization, Some(0.0));
    }

    #[test]
    fn an_integral_of_the_program_comes_before_that_of_the_trace() {
        let seen = record().metrics(0, 4 * MS, Some(0.008), &[]);
        assert_eq!(seen.queue_mean_pkts, 2.0);
        // The spread stays that of the trace: mean square 0.5625.
        let variance = 0.5625 - 0.4375 * 0.4375;
        assert!((seen.qacd_pkts.unwrap() - (variance + 1.0f64).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn losses_are_counted_sample_by_sample_from_the_first_whole_one_on() {
        let mut record = record();
        record.lost = [500_000, MS, 1_200_000, 3 * MS - 1].map(|at| Lost { at, number: 1, early: true }).into();
        // From 0.5 ms the whole samples begin at 1 ms: 2 losses from 1 to 2 ms, one up to 3 ms, none up to 4.
        let seen = record.metrics(MS / 2, 4 * MS, None, &[]);
        assert_eq!(seen.early_dropped_pkts, 4);
        assert!((seen.loss_dispersion.unwrap() - (5.0 / 3.0 - 1.0)).abs() < 1e-12);
        // At the very start of a window counts what happens then, at its end nothing.
        let edges = record.metrics(MS / 2, MS, None, &[]);
        assert_eq!(edges.early_dropped_pkts, 1);
        // An early mark is told apart in time by the moment the packet is taken.
        assert_eq!(record.metrics(2 * MS, 3 * MS, None, &[]).marked_pkts, 1);
        assert_eq!(record.metrics(MS, 2 * MS, None, &[]).marked_pkts, 0);
    }

    #[test]
    fn a_change_at_the_edge_belongs_to_what_follows() {
        // One packet waits from 0.5 ms, two from 0.75 ms, one from 1 ms on, none from 2 ms.
        let record = record();
        let windows = [(750_000, MS), (MS, 2 * MS), (2 * MS, 3 * MS)].map(|(a, b)| record.metrics(a, b, None, &[]));
        assert_eq!(windows.map(|window| window.queue_mean_pkts), [2.0, 1.0, 0.0]);
        // An integral over half a second: 0.25 packet seconds are half a packet.
        let seen = record.metrics(500 * MS, 1000 * MS, Some(0.25), &[]);
        assert_eq!(seen.queue_mean_pkts, 0.5);
    }
}
