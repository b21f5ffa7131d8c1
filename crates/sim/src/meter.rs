//! The meter of a link: exact time averages, sojourn times, losses and totals, in pieces between the edges of the windows.

use aqumen_aqm::Totals;
use aqumen_result::{Histogram, Runs};

/// Measures one queue. Time runs in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter {
    /// When the queue was last accounted for.
    last: u64,
    /// How long the queue had each length in the piece in progress, nanoseconds.
    levels: Vec<u64>,
    /// Target queue length, packets.
    target: Option<f64>,
    /// Number of the packet that was lost last, by arrival from 1, and how many were lost one directly after the other.
    last_lost: u64,
    run: u64,
    /// Packets lost up to the last sample.
    lost: u64,
    /// Packets lost between one sample and the next, from the start of the run on.
    pub(crate) lost_per_sample: Vec<u32>,
    piece: Piece,
    /// Totals of the queue at the start of the piece in progress.
    totals: Totals,
    /// Bits of the packet then in transmission that were sent at the start of the piece in progress.
    partly_sent_bits: f64,
    /// Finished pieces, in order.
    pub(crate) pieces: Vec<Piece>,
}

/// What happened between two edges.
#[derive(Clone, Debug, Default)]
pub(crate) struct Piece {
    /// Integral of the queue length over time, packets x nanoseconds.
    pub(crate) area: u128,
    /// Integral of its square.
    pub(crate) area_squared: u128,
    /// Integral of its distance from the target.
    pub(crate) distance: f64,
    /// Queue lengths, counted by the nanoseconds that each lasted.
    pub(crate) queue: Histogram,
    /// Packets lost one directly after the other.
    pub(crate) losses: Runs,
    /// Sojourn times of the packets taken for transmission, nanoseconds.
    pub(crate) sojourn: Histogram,
    /// Sum, sum of squares and number of the queue lengths at the AQM's sampling instants.
    pub(crate) sampled: Moments,
    /// What the totals grew by.
    pub(crate) grown: Totals,
    /// Packets lost on the wire.
    pub(crate) wire_lost: u64,
    /// Bits sent at the end of the piece, less bits sent at its start, of the packets then in transmission.
    pub(crate) partly_sent_bits: f64,
}

/// Sum, sum of squares, and number of values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Moments {
    pub(crate) sum: f64,
    pub(crate) sum_squared: f64,
    pub(crate) n: u64,
}

impl Meter {
    /// The meter of a link with this target queue length in packets.
    pub(crate) fn new(target: Option<f64>) -> Self {
        Meter { target, ..Meter::default() }
    }

    /// Until `now` there were `queue` packets waiting.
    #[inline]
    pub(crate) fn advance(&mut self, now: u64, queue: u32) {
        let elapsed = now - self.last;
        self.last = now;
        match self.levels.get_mut(queue as usize) {
            Some(time) => *time += elapsed,
            None => self.advance_beyond(queue, elapsed),
        }
    }

    /// The queue was longer than ever.
    #[cold]
    fn advance_beyond(&mut self, queue: u32, elapsed: u64) {
        self.levels.resize((queue as usize + 1).next_power_of_two(), 0);
        self.levels[queue as usize] = elapsed;
    }

    /// The packet that arrived as number `arrival`, from 1, was lost.
    pub(crate) fn lost(&mut self, arrival: u64) {
        if arrival != self.last_lost + 1 {
            self.piece.losses.record(std::mem::take(&mut self.run));
        }
        self.run += 1;
        self.last_lost = arrival;
    }

    /// The series is sampled.
    pub(crate) fn sample(&mut self, totals: &Totals) {
        let lost = totals.early_dropped + totals.overflow_dropped;
        self.lost_per_sample.push((lost - self.lost) as u32);
        self.lost = lost;
    }

    /// A packet was taken for transmission after `sojourn`.
    #[inline]
    pub(crate) fn sojourn(&mut self, sojourn: u64) {
        self.piece.sojourn.record(sojourn);
    }

    /// A packet's transmission over a line ended; `lost`: it did not get through.
    pub(crate) fn sent_over_line(&mut self, lost: bool) {
        self.piece.wire_lost += u64::from(lost);
    }

    /// The AQM samples a queue of `queue` packets.
    pub(crate) fn sampled(&mut self, queue: u32) {
        self.piece.sampled.add(queue as f64);
    }

    /// A window begins or ends at `now`: closes the piece in progress. Of the packet in transmission `partly_sent_bits` are
    /// on the wire.
    pub(crate) fn edge(&mut self, now: u64, queue: u32, totals: &Totals, partly_sent_bits: f64) {
        self.advance(now, queue);
        // A run that goes on counts in both pieces.
        self.piece.losses.record(std::mem::take(&mut self.run));
        let target = self.target.unwrap_or_default();
        for (level, time) in (0u64..).zip(&mut self.levels).filter(|(_, time)| **time > 0) {
            let time = std::mem::take(time);
            self.piece.area += level as u128 * time as u128;
            self.piece.area_squared += (level * level) as u128 * time as u128;
            self.piece.distance += (level as f64 - target).abs() * time as f64;
            self.piece.queue.record_many(level, time);
        }
        self.piece.grown = difference(totals, &self.totals);
        self.piece.partly_sent_bits = partly_sent_bits - self.partly_sent_bits;
        self.partly_sent_bits = partly_sent_bits;
        self.totals = *totals;
        self.pieces.push(std::mem::take(&mut self.piece));
    }
}

impl Piece {
    /// Adds a later piece.
    pub(crate) fn merge(&mut self, later: &Piece) {
        self.area += later.area;
        self.area_squared += later.area_squared;
        self.distance += later.distance;
        self.queue.merge(&later.queue);
        self.losses.merge(&later.losses);
        self.sojourn.merge(&later.sojourn);
        self.sampled.sum += later.sampled.sum;
        self.sampled.sum_squared += later.sampled.sum_squared;
        self.sampled.n += later.sampled.n;
        self.wire_lost += later.wire_lost;
        self.grown = sum(&self.grown, &later.grown);
        self.partly_sent_bits += later.partly_sent_bits;
    }
}

impl Moments {
    fn add(&mut self, x: f64) {
        self.sum += x;
        self.sum_squared += x * x;
        self.n += 1;
    }

    /// Root mean square of the values less `reference`.
    pub(crate) fn rms_about(&self, reference: f64) -> Option<f64> {
        if self.n == 0 {
            return None;
        }
        let n = self.n as f64;
        let mean_square = (self.sum_squared - 2.0 * reference * self.sum) / n + reference * reference;
        Some(mean_square.max(0.0).sqrt())
    }
}

fn difference(new: &Totals, old: &Totals) -> Totals {
    combine(new, old, |a, b| a - b)
}

fn sum(a: &Totals, b: &Totals) -> Totals {
    combine(a, b, |a, b| a + b)
}

fn combine(a: &Totals, b: &Totals, op: fn(u64, u64) -> u64) -> Totals {
    Totals {
        arrivals: op(a.arrivals, b.arrivals),
        arrived_bytes: op(a.arrived_bytes, b.arrived_bytes),
        accepted: op(a.accepted, b.accepted),
        departures: op(a.departures, b.departures),
        departed_bytes: op(a.departed_bytes, b.departed_bytes),
        marked: op(a.marked, b.marked),
        early_dropped: op(a.early_dropped, b.early_dropped),
        overflow_dropped: op(a.overflow_dropped, b.overflow_dropped),
        busy: aqumen_units::Span::from_nanos(op(a.busy.as_nanos(), b.busy.as_nanos())),
        transmitting_since: a.transmitting_since,
        last_sojourn: a.last_sojourn,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_and_samples_come_in_pieces_that_add_up() {
        let mut meter = Meter::new(Some(3.0));
        let totals = |arrivals| Totals { arrivals, ..Totals::default() };
        meter.advance(10, 0); // empty for 10 ns
        meter.advance(15, 4); // 4 packets for 5 ns
        meter.edge(20, 2, &totals(3), 800.0); // 2 packets for 5 ns
        meter.sampled(6);
        meter.edge(30, 2, &totals(7), 300.0); // 2 packets for 10 ns
        let [first, second] = &meter.pieces[..] else { panic!("two pieces") };
        assert_eq!((first.area, first.area_squared, first.grown.arrivals), (30, 100, 3));
        assert_eq!((second.area, second.area_squared, second.grown.arrivals), (20, 40, 4));
        let mut whole = first.clone();
        whole.merge(second);
        assert_eq!((whole.area, whole.grown.arrivals), (50, 7));
        assert_eq!((second.partly_sent_bits, whole.partly_sent_bits), (-500.0, 300.0));
        assert_eq!(whole.sampled.rms_about(4.0), Some(2.0));
        // 3, 1 and 1 packets off the target for 10, 5 and 5 ns, then 1 for 10 ns.
        assert_eq!((first.distance, second.distance, whole.distance), (40.0, 10.0, 50.0));
        // Half of the 30 ns with 2 packets, a third with none.
        assert_eq!([0.3, 0.4, 0.8, 0.9].map(|q| whole.queue.quantile(q).unwrap()), [0.0, 2.0, 2.0, 4.0]);
    }

    #[test]
    fn losses_in_a_row_are_a_run_up_to_the_edge() {
        let mut meter = Meter::default();
        [3, 4, 5, 9].iter().for_each(|&arrival| meter.lost(arrival));
        meter.sample(&Totals { early_dropped: 1, overflow_dropped: 3, ..Totals::default() });
        meter.edge(10, 0, &Totals::default(), 0.0);
        meter.lost(10);
        meter.sample(&Totals { early_dropped: 2, overflow_dropped: 3, ..Totals::default() });
        meter.edge(20, 0, &Totals::default(), 0.0);
        let [first, second] = &meter.pieces[..] else { panic!("two pieces") };
        assert_eq!((first.losses.mean(), first.losses.longest()), (Some(2.0), Some(3)));
        assert_eq!((second.losses.mean(), second.losses.longest()), (Some(1.0), Some(1)));
        assert_eq!(meter.lost_per_sample, [4, 1]);
    }
}
