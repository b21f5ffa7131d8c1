//! The record of a queue that another program kept: the same meter as that of our own queues reads it, so that a figure means
//! the same in every engine.

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
    /// The metrics from `start` up to but not including `end`. Waits are known one by one here: their percentiles are exact.
    /// `area_pkts_s` is the program's own integral of the queue length, where that is more exact than the trace; `sampled_pkts`
    /// are the queue lengths at the AQM's sampling instants.
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
                meter.lost(lost.number);
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
