//! Meter of a link: exact time averages, sojourn times, losses and counts between window edges.

use crate::{
    Histogram, LinkMetrics, LinkSums, LossRuns, LossStatistics, LossTracker, Moments, hurst_at_queue,
    index_of_dispersion,
};

/// Meter of one queue. Times are in nanoseconds.
#[derive(Clone, Debug)]
pub struct Meter {
    /// Time up to which the queue has been accounted for.
    last: u64,
    /// Time at each queue length in the current interval, nanoseconds.
    levels: Vec<u64>,
    /// Target queue length, packets.
    target: Option<f64>,
    /// Number (by arrival, from 1) of the last lost packet, and length of the current loss run.
    last_lost: u64,
    run: u64,
    /// Packets lost up to the last sample.
    lost: u64,
    /// Packets lost between samples, from the start of the run.
    lost_per_sample: Vec<u32>,
    /// First flow of each flow group, in order, and the index in `sojourns` for its packets.
    histograms: Vec<(u32, u32)>,
    /// Sojourn times of the current interval: of each separate group, and last of all other packets.
    sojourns: Vec<Histogram>,
    /// Packets that arrived up to the last sample, and that departed or were lost; both between samples.
    arrived: u64,
    left: u64,
    arrived_per_sample: Vec<u32>,
    left_per_sample: Vec<u32>,
    losses: LossTracker,
    piece: LinkPiece,
    /// Counts of the queue at the start of the current interval.
    counts: Counts,
    /// Bits already sent of the packet in transmission at the start of the current interval.
    partly_sent_bits: f64,
    /// Completed intervals, in order.
    pub pieces: Vec<LinkPiece>,
}

/// Measurements between two window edges.
#[derive(Clone, Debug, Default)]
pub struct LinkPiece {
    /// Time integral of the queue length, packets x nanoseconds.
    pub area: u128,
    /// Time integral of the squared queue length.
    pub area_squared: u128,
    /// Time integral of the distance from the target.
    pub distance: f64,
    /// Time with an empty queue, nanoseconds.
    pub empty_ns: u64,
    /// Time with a queue below the target, nanoseconds.
    pub below_target_ns: u64,
    /// Longest queue that lasted for any time.
    pub longest: u64,
    /// Queue lengths, weighted by time in nanoseconds.
    pub queue: Histogram,
    /// Runs of consecutive losses.
    pub losses: LossRuns,
    /// Intervals between losses, and flows hit.
    pub spacing: LossStatistics,
    /// Sojourn times of packets taken for transmission, nanoseconds.
    pub sojourn: Histogram,
    /// Sojourn times of each flow group.
    pub sojourn_of_group: Vec<Histogram>,
    /// Moments of the queue length at the AQM's sampling instants.
    pub sampled: Moments,
    /// Increase of the queue's counts.
    pub counted: Counts,
    /// Packets lost on the wire.
    pub wire_lost: u64,
    /// Difference between the bits sent of the packets in transmission at the end and at the start.
    pub partly_sent_bits: f64,
}

/// Packet and byte counts of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets that arrived, lost ones included.
    pub arrivals: u64,
    /// Packets whose transmission ended.
    pub departures: u64,
    /// Bytes of departed packets.
    pub departed_bytes: u64,
    /// Packets marked CE.
    pub marked: u64,
    /// Packets that the AQM dropped.
    pub early_dropped: u64,
    /// Packets lost to a full buffer.
    pub overflow_dropped: u64,
}

impl Default for Meter {
    fn default() -> Self {
        Meter {
            last: 0,
            levels: Vec::new(),
            target: None,
            last_lost: 0,
            run: 0,
            lost: 0,
            lost_per_sample: Vec::new(),
            arrived: 0,
            left: 0,
            arrived_per_sample: Vec::new(),
            left_per_sample: Vec::new(),
            losses: LossTracker::default(),
            histograms: Vec::new(),
            sojourns: vec![Histogram::default()],
            piece: LinkPiece::default(),
            counts: Counts::default(),
            partly_sent_bits: 0.0,
            pieces: Vec::new(),
        }
    }
}

impl Meter {
    /// A meter for a link with a target queue length in packets.
    pub fn new(target: Option<f64>) -> Self {
        Meter { target, ..Meter::default() }
    }

    /// Counts sojourn times separately for each flow group, given by the number of its first flow, in ascending order,
    /// and whether its data cross this link. Acknowledgements are not counted.
    pub fn separate_groups(&mut self, groups: &[(u32, bool)]) {
        let others = groups.len() as u32;
        let histogram = |(group, &(first, data)): (u32, &(u32, bool))| (first, if data { group } else { others });
        self.histograms = (0..).zip(groups).map(histogram).collect();
        self.sojourns = vec![Histogram::default(); groups.len() + 1];
    }

    /// Index of the histogram for the sojourn times of all packets, if there is a single one.
    pub fn only_histogram(&self) -> Option<u32> {
        match self.histograms[..] {
            [] => Some(0),
            [(0, histogram)] => Some(histogram),
            _ => None,
        }
    }

    /// Index of the histogram for the sojourn times of packets of `flow`.
    #[inline]
    pub fn histogram_of(&self, flow: u32) -> u32 {
        if let [(first, histogram)] = self.histograms[..] {
            return if first <= flow { histogram } else { 0 };
        }
        match self.histograms.partition_point(|(first, _)| *first <= flow) {
            0 => 0,
            after => self.histograms[after - 1].1,
        }
    }

    /// Sets the duration of a loss event, a round trip of `ns` nanoseconds.
    pub fn with_round_trip(self, ns: u64) -> Self {
        Meter { losses: LossTracker::new(ns), ..self }
    }

    /// Time up to which the queue has been accounted for.
    pub fn now(&self) -> u64 {
        self.last
    }

    /// Accounts for a queue of `queue` packets up to `now`.
    #[inline]
    pub fn advance(&mut self, now: u64, queue: u32) {
        let elapsed = now - self.last;
        self.last = now;
        match self.levels.get_mut(queue as usize) {
            Some(time) => *time += elapsed,
            None => self.extend_levels(queue, elapsed),
        }
    }

    /// Accounts for a sequence of single arrivals and departures (time, whether an arrival) from `queue` packets on.
    /// The queue never exceeds `most`.
    #[inline(never)]
    pub fn advance_through(&mut self, queue: u32, most: u32, changes: impl Iterator<Item = (u64, bool)>) {
        if most as usize >= self.levels.len() {
            self.extend_levels(most, 0);
        }
        let (mut queue, mut last) = (queue as usize, self.last);
        let levels = &mut self.levels[..];
        // Without branches, since arrivals and departures alternate at random.
        for (now, joins) in changes {
            levels[queue] += now - last;
            last = now;
            queue = queue.wrapping_add(2 * usize::from(joins)).wrapping_sub(1);
        }
        self.last = last;
    }

    /// Extends the table for a longer queue.
    #[cold]
    fn extend_levels(&mut self, queue: u32, elapsed: u64) {
        self.levels.resize((queue as usize + 1).next_power_of_two(), 0);
        self.levels[queue as usize] = elapsed;
    }

    /// Records the loss at `now` of the packet of `flow` that arrived as number `arrival`, from 1.
    pub fn lost(&mut self, arrival: u64, now: u64, flow: u32) {
        self.losses.lost(now, flow, &mut self.piece.spacing);
        if arrival != self.last_lost + 1 {
            self.piece.losses.record(std::mem::take(&mut self.run));
        }
        self.run += 1;
        self.last_lost = arrival;
    }

    /// Takes a sample of the series.
    pub fn sample(&mut self, counts: &Counts) {
        let lost = counts.lost();
        self.lost_per_sample.push((lost - self.lost) as u32);
        self.lost = lost;
        self.arrived_per_sample.push((counts.arrivals - self.arrived) as u32);
        self.arrived = counts.arrivals;
        let left = counts.departures + lost;
        self.left_per_sample.push((left - self.left) as u32);
        self.left = left;
    }

    /// Hurst parameter of the arrivals from sample `from`, 0 at the start, up to sample `until`.
    pub fn arrivals_hurst(&self, from: usize, until: usize) -> Option<f64> {
        let within = |counts: &[u32]| {
            let counts = counts.get(from..until.min(counts.len()))?;
            Some(counts.iter().map(|&count| f64::from(count)).collect::<Vec<_>>())
        };
        hurst_at_queue(&within(&self.arrived_per_sample)?, &within(&self.left_per_sample)?)
    }

    /// Index of dispersion of the losses from sample `from`, 0 at the start, up to sample `until`.
    pub fn loss_dispersion(&self, from: usize, until: usize) -> Option<f64> {
        let counts = self.lost_per_sample.get(from..until.min(self.lost_per_sample.len()))?;
        index_of_dispersion(counts.iter().copied())
    }

    /// Sojourn times since the start of the run.
    pub fn sojourns_so_far(&self) -> Histogram {
        let mut all = Histogram::default();
        let finished = self.pieces.iter().map(|piece| &piece.sojourn);
        finished.chain(&self.sojourns).for_each(|sojourns| all.merge(sojourns));
        all
    }

    /// Records the sojourn time of a packet taken for transmission, in the histogram given by
    /// [`histogram_of`](Self::histogram_of).
    #[inline]
    pub fn sojourn(&mut self, sojourn: u64, histogram: u32) {
        self.sojourns[histogram as usize].record(sojourn);
    }

    /// Records a transmission over the wire; `lost`: the packet was lost there.
    pub fn sent_over_line(&mut self, lost: bool) {
        self.piece.wire_lost += u64::from(lost);
    }

    /// Records the queue length at a sampling instant of the AQM.
    pub fn sampled(&mut self, queue: u32) {
        self.piece.sampled.add(queue as f64);
    }

    /// Ends the current interval at a window edge. `partly_sent_bits`: bits already sent of the packet in transmission.
    pub fn edge(&mut self, now: u64, queue: u32, counts: &Counts, partly_sent_bits: f64) {
        self.advance(now, queue);
        // A loss run across the edge counts in both intervals.
        self.piece.losses.record(std::mem::take(&mut self.run));
        self.losses.close(&mut self.piece.spacing);
        let target = self.target.unwrap_or_default();
        for (level, time) in (0u64..).zip(&mut self.levels).filter(|(_, time)| **time > 0) {
            let time = std::mem::take(time);
            self.piece.longest = self.piece.longest.max(level);
            self.piece.area += level as u128 * time as u128;
            self.piece.area_squared += (level * level) as u128 * time as u128;
            self.piece.distance += (level as f64 - target).abs() * time as f64;
            self.piece.empty_ns += if level == 0 { time } else { 0 };
            self.piece.below_target_ns += if (level as f64) < target { time } else { 0 };
            self.piece.queue.record_many(level, time);
        }
        let mut groups: Vec<Histogram> = self.sojourns.iter_mut().map(std::mem::take).collect();
        groups.iter().for_each(|each| self.piece.sojourn.merge(each));
        groups.pop();
        self.piece.sojourn_of_group = groups;
        self.piece.counted = counts.combine(&self.counts, |now, then| now - then);
        self.piece.partly_sent_bits = partly_sent_bits - self.partly_sent_bits;
        self.partly_sent_bits = partly_sent_bits;
        self.counts = *counts;
        self.pieces.push(std::mem::take(&mut self.piece));
    }
}

impl LinkPiece {
    /// Adds a later interval.
    pub fn merge(&mut self, later: &LinkPiece) {
        self.area += later.area;
        self.area_squared += later.area_squared;
        self.distance += later.distance;
        self.empty_ns += later.empty_ns;
        self.below_target_ns += later.below_target_ns;
        self.longest = self.longest.max(later.longest);
        self.queue.merge(&later.queue);
        self.losses.merge(&later.losses);
        self.spacing.merge(&later.spacing);
        self.sojourn.merge(&later.sojourn);
        self.sojourn_of_group.resize_with(later.sojourn_of_group.len(), Histogram::default);
        self.sojourn_of_group.iter_mut().zip(&later.sojourn_of_group).for_each(|(sum, each)| sum.merge(each));
        self.sampled.merge(&later.sampled);
        self.wire_lost += later.wire_lost;
        self.counted = self.counted.combine(&later.counted, |a, b| a + b);
        self.partly_sent_bits += later.partly_sent_bits;
    }

    /// Bits sent, including the part inside the interval of packets in transmission at its edges.
    pub fn sent_bits(&self) -> f64 {
        self.counted.departed_bytes as f64 * 8.0 + self.partly_sent_bits
    }

    /// Metrics of an interval of `length_ns` with a capacity of `capacity_bits` and a target queue length.
    pub fn metrics(&self, length_ns: u64, capacity_bits: f64, target_pkts: Option<f64>) -> LinkMetrics {
        let counted = &self.counted;
        let sums = LinkSums {
            length: length_ns as f64,
            unit_s: 1e-9,
            area: self.area as f64,
            area_squared: self.area_squared as f64,
            sampled: self.sampled,
            arrivals: counted.arrivals as f64,
            departures: counted.departures as f64,
            marked: counted.marked as f64,
            early_dropped: counted.early_dropped as f64,
            overflow_dropped: counted.overflow_dropped as f64,
            sent: self.sent_bits(),
            capacity: capacity_bits,
        };
        let mut metrics = sums.metrics(target_pkts);
        metrics.set_sojourn(&self.sojourn);
        metrics.set_queue(&self.queue);
        metrics.wire_lost_pkts = Some(self.wire_lost);
        metrics.queue_iae_pkts_s = target_pkts.map(|_| self.distance * 1e-9);
        let fraction = |ns: u64| (length_ns > 0).then(|| ns as f64 / length_ns as f64);
        metrics.queue_empty_ratio = fraction(self.empty_ns);
        metrics.queue_below_target_ratio = target_pkts.and_then(|_| fraction(self.below_target_ns));
        metrics.loss_run_mean_pkts = self.losses.mean();
        metrics.loss_run_max_pkts = self.losses.longest();
        metrics.set_losses(&self.spacing);
        metrics
    }
}

impl Counts {
    /// Packets lost at the queue.
    pub fn lost(&self) -> u64 {
        self.early_dropped + self.overflow_dropped
    }

    fn combine(&self, other: &Counts, op: fn(u64, u64) -> u64) -> Counts {
        Counts {
            arrivals: op(self.arrivals, other.arrivals),
            departures: op(self.departures, other.departures),
            departed_bytes: op(self.departed_bytes, other.departed_bytes),
            marked: op(self.marked, other.marked),
            early_dropped: op(self.early_dropped, other.early_dropped),
            overflow_dropped: op(self.overflow_dropped, other.overflow_dropped),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Lcg;

    #[test]
    fn a_sequence_of_changes_counts_like_single_ones() {
        // From 1 packet at 10 ns: an arrival at 15, departures at 18 and 30, an arrival at 30, and nothing until 40.
        let changes = [(15, true), (18, false), (30, false), (30, true)];
        let mut at_once = Meter::new(Some(1.0));
        at_once.advance(10, 0);
        at_once.advance_through(1, 2, changes.into_iter());
        at_once.edge(40, 1, &Counts::default(), 0.0);
        // 1 packet for 5 ns, 2 for 3 ns, 1 for 12 ns, 1 for 10 ns; an empty queue for the first 10.
        let piece = &at_once.pieces[0];
        assert_eq!((piece.area, piece.area_squared, piece.empty_ns, piece.longest), (33, 39, 10, 2));
    }

    #[test]
    fn arrivals_are_as_self_similar_as_their_series() {
        // Every packet departs: independent numbers from 0 to 99.
        let (mut meter, mut counts, mut rng) = (Meter::new(None), Counts::default(), Lcg(1));
        let mut series = Vec::new();
        for _ in 0..2048 {
            let arrived = (rng.next() >> 33) % 100;
            series.push(arrived as f64);
            (counts.arrivals, counts.departures) = (counts.arrivals + arrived, counts.departures + arrived);
            meter.sample(&counts);
        }
        let whole = meter.arrivals_hurst(0, 2048);
        assert!((whole.unwrap() - 0.5).abs() < 0.2, "{whole:?}");
        assert_eq!((whole, meter.arrivals_hurst(0, 9999)), (crate::hurst(&series), whole));
        assert_eq!(meter.arrivals_hurst(1024, 2048), crate::hurst(&series[1024..]));
        assert_eq!(meter.arrivals_hurst(2049, 4096), None);
    }

    #[test]
    fn areas_and_samples_of_intervals_add_up() {
        let mut meter = Meter::new(Some(3.0));
        let counts = |arrivals| Counts { arrivals, ..Counts::default() };
        meter.advance(10, 0); // empty for 10 ns
        meter.advance(15, 4); // 4 packets for 5 ns
        meter.edge(20, 2, &counts(3), 800.0); // 2 packets for 5 ns
        meter.sampled(6);
        meter.edge(30, 2, &counts(7), 300.0); // 2 packets for 10 ns
        let [first, second] = &meter.pieces[..] else { panic!("two pieces") };
        assert_eq!((first.area, first.area_squared, first.counted.arrivals), (30, 100, 3));
        assert_eq!((second.area, second.area_squared, second.counted.arrivals), (20, 40, 4));
        let mut whole = first.clone();
        whole.merge(second);
        assert_eq!((whole.area, whole.counted.arrivals), (50, 7));
        assert_eq!((second.partly_sent_bits, whole.partly_sent_bits), (-500.0, 300.0));
        assert_eq!(whole.sampled.rms_about(4.0), Some(2.0));
        // 3, 1 and 1 packets off the target for 10, 5 and 5 ns, then 1 for 10 ns.
        assert_eq!((first.distance, second.distance, whole.distance), (40.0, 10.0, 50.0));
        // Empty for 10 ns of the first interval; below the target then and for 5 ns of 2 packets, and for the whole
        // second.
        assert_eq!((first.empty_ns, first.below_target_ns, whole.empty_ns, whole.below_target_ns), (10, 15, 10, 25));
        let seen = whole.metrics(30, 1.0, Some(3.0));
        assert_eq!((seen.queue_empty_ratio, seen.queue_below_target_ratio), (Some(10.0 / 30.0), Some(25.0 / 30.0)));
        assert_eq!(whole.metrics(30, 1.0, None).queue_below_target_ratio, None);
        // Half of the 30 ns with 2 packets, a third with an empty queue.
        assert_eq!([0.3, 0.4, 0.8, 0.9].map(|q| whole.queue.quantile(q).unwrap()), [0.0, 2.0, 2.0, 4.0]);
    }

    #[test]
    fn losses_in_a_row_are_a_run_up_to_the_edge() {
        let mut meter = Meter::default();
        [3, 4, 5, 9].iter().for_each(|&arrival| meter.lost(arrival, arrival, 0));
        meter.sample(&Counts { early_dropped: 1, overflow_dropped: 3, ..Counts::default() });
        meter.edge(10, 0, &Counts::default(), 0.0);
        meter.lost(10, 15, 0);
        meter.sample(&Counts { early_dropped: 2, overflow_dropped: 3, ..Counts::default() });
        meter.edge(20, 0, &Counts::default(), 0.0);
        let [first, second] = &meter.pieces[..] else { panic!("two pieces") };
        assert_eq!((first.losses.mean(), first.losses.longest()), (Some(2.0), Some(3)));
        assert_eq!((second.losses.mean(), second.losses.longest()), (Some(1.0), Some(1)));
        assert_eq!(meter.lost_per_sample, [4, 1]);
    }

    #[test]
    fn the_metrics_of_merged_pieces_are_those_of_the_time_they_cover() {
        let mut meter = Meter::new(Some(2.0));
        let counts = |departures| Counts { departures, departed_bytes: 1000 * departures, ..Counts::default() };
        // 1 packet for 4 s, then 2 for 1 s, three sojourn times of 1, 2 and 3 s, and two losses on the wire of three.
        meter.advance(4_000_000_000, 1);
        assert_eq!(meter.now(), 4_000_000_000);
        [1, 2].iter().for_each(|s| meter.sojourn(s * 1_000_000_000, 0));
        meter.sent_over_line(true);
        meter.edge(5_000_000_000, 2, &counts(3), 0.0);
        meter.sojourn(3_000_000_000, 0);
        meter.sent_over_line(false);
        meter.sent_over_line(true);
        meter.edge(8_000_000_000, 6, &counts(5), 0.0);
        assert_eq!(meter.now(), 8_000_000_000);
        let mut whole = meter.pieces[0].clone();
        whole.merge(&meter.pieces[1]);
        let seen = whole.metrics(8_000_000_000, 80_000.0, Some(2.0));
        assert_eq!((seen.wire_lost_pkts, seen.departures_pkts, seen.utilization), (Some(2), 5, Some(0.5)));
        assert!((seen.sojourn_mean_s.unwrap() - 2.0).abs() < 1e-9);
        // A bin at 2^30 ns is 1/128 of it wide.
        assert!((seen.sojourn_p50_s.unwrap() - 2.0).abs() < 0.02 && (seen.sojourn_p99_s.unwrap() - 3.0).abs() < 0.03);
        // (4 * 1 + 1 * 2 + 3 * 6) / 8 = 3; off the target by 1, 0 and 4 packets for 4, 1 and 3 s.
        assert_eq!((seen.queue_mean_pkts, seen.queue_iae_pkts_s), (3.0, Some(16.0)));
        // Squares (4 * 1 + 1 * 4 + 3 * 36) / 8 = 14.5, less 9.
        assert!((seen.queue_std_pkts - 5.5f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn sojourn_times_are_counted_by_group_and_in_total() {
        // Flows 0 to 4, 5 and 6, from 7 on; only acknowledgements of the second cross this link.
        let mut meter = Meter::new(None);
        meter.separate_groups(&[(0, true), (5, false), (7, true)]);
        assert_eq!([0, 4, 5, 6, 7, 900].map(|flow| meter.histogram_of(flow)), [0, 0, 3, 3, 2, 2]);
        for (flow, wait) in [(4, 10), (6, 50), (7, 100)] {
            meter.sojourn(wait, meter.histogram_of(flow));
        }
        meter.edge(1, 0, &Counts::default(), 0.0);
        meter.sojourn(30, meter.histogram_of(0));
        meter.edge(2, 0, &Counts::default(), 0.0);
        let mut whole = LinkPiece::default();
        meter.pieces.iter().for_each(|piece| whole.merge(piece));
        let means: Vec<_> = whole.sojourn_of_group.iter().map(Histogram::mean).collect();
        assert_eq!(means, [Some(20.0), None, Some(100.0)]);
        assert_eq!((whole.sojourn.total(), whole.sojourn.mean()), (4, Some(47.5)));
        // Without separate groups one histogram counts all.
        assert_eq!(Meter::new(None).histogram_of(17), 0);
    }

    #[test]
    fn bursty_losses_have_a_high_dispersion() {
        let mut meter = Meter::default();
        assert_eq!(meter.loss_dispersion(0, 4), None);
        for lost in [0, 4, 4, 4, 8, 9] {
            meter.sample(&Counts { overflow_dropped: lost, ..Counts::default() });
        }
        // 0, 4, 0, 0, 4, 1. From the second to the fifth: 4, 0, 0, 4 with mean 2 and variance 4.
        assert_eq!(meter.loss_dispersion(1, 5), Some(2.0));
        // 4, 1: mean 2.5, variance 2.25; there is no seventh sample.
        assert!((meter.loss_dispersion(4, 9).unwrap() - 0.9).abs() < 1e-12);
    }
}
