//! The calendar of pending events: a ring of buckets of equal width, each sorted when its turn comes.
//!
//! A packet's next event usually lies a propagation delay ahead, many buckets away: to schedule it is one append, and to
//! reach it one step in a sorted list of a few dozen, whatever the number of flows. Events beyond the ring's horizon
//! (retransmission timers, mostly) wait in a heap. The order of events is (moment, slot), and first come first served
//! where both are equal, as two packets of one burst are; it does not depend on the widths, which only decide the speed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::event::Event;

/// Bits of a sorting key that tell the place of the event in its bucket.
const INDEX_BITS: u32 = 24;

pub(crate) struct Calendar {
    /// A bucket is 2^width_bits nanoseconds wide.
    width_bits: u32,
    ring: Vec<Vec<Event>>,
    mask: u64,
    /// Number of the bucket in progress, counted from the start of time.
    today: u64,
    /// Events of the bucket in progress.
    current: Vec<Event>,
    /// Keys (moment within the bucket, index into `current`) in order; those before `cursor` are done.
    order: Vec<u64>,
    cursor: usize,
    /// Events in `ring`.
    in_ring: usize,
    far: BinaryHeap<Reverse<Far>>,
}

/// An event beyond the horizon, ordered by moment and slot.
struct Far(Event);

impl Calendar {
    /// A calendar for about `events_per_sec` events, most of them less than `horizon_ns` ahead.
    pub(crate) fn new(events_per_sec: f64, horizon_ns: u64) -> Self {
        // About 6 events to a bucket: fewer waste buckets, more cost sorting.
        const EVENTS_PER_BUCKET: f64 = 6.0;
        const MAX_BUCKETS: u64 = 1 << 18;
        let width_ns = (EVENTS_PER_BUCKET * 1e9 / events_per_sec.max(1.0)).clamp(64.0, 2f64.powi(36)) as u64;
        let mut width_bits = width_ns.ilog2();
        while horizon_ns >> width_bits >= MAX_BUCKETS {
            width_bits += 1;
        }
        let buckets = ((horizon_ns >> width_bits) + 2).next_power_of_two();
        Calendar {
            width_bits,
            ring: (0..buckets).map(|_| Vec::new()).collect(),
            mask: buckets - 1,
            today: 0,
            current: Vec::new(),
            order: Vec::new(),
            cursor: 0,
            in_ring: 0,
            far: BinaryHeap::new(),
        }
    }

    /// Schedules `event`. It must not lie before the event taken last.
    #[inline]
    pub(crate) fn push(&mut self, event: Event) {
        debug_assert!(event.at >> self.width_bits >= self.today, "an event in the past");
        let ahead = (event.at >> self.width_bits).wrapping_sub(self.today);
        if ahead.wrapping_sub(1) < self.mask {
            let bucket = (self.today + ahead) & self.mask;
            self.ring[bucket as usize].push(event);
            self.in_ring += 1;
        } else if ahead == 0 {
            self.insert_today(event);
        } else {
            self.far.push(Reverse(Far(event)));
        }
    }

    /// Takes the next event.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Event> {
        if self.cursor == self.order.len() && !self.turn() {
            return None;
        }
        let key = self.order[self.cursor];
        self.cursor += 1;
        Some(self.current[(key & ((1 << INDEX_BITS) - 1)) as usize])
    }

    /// The slot of the event that comes `ahead` places after the one taken last, if it lies in the same bucket.
    #[inline]
    pub(crate) fn upcoming(&self, ahead: usize) -> Option<u32> {
        let key = self.order.get(self.cursor + ahead)?;
        Some(self.current[(key & ((1 << INDEX_BITS) - 1)) as usize].slot)
    }

    /// Puts an event into the rest of the bucket in progress.
    #[cold]
    fn insert_today(&mut self, event: Event) {
        let offset = self.offset(event.at);
        let (current, width) = (&self.current, INDEX_BITS);
        let later = self.order[self.cursor..].partition_point(|&key| {
            let other = key >> width;
            let index = (key & ((1 << width) - 1)) as usize;
            (other, current[index].slot) <= (offset, event.slot)
        });
        let index = self.current.len() as u64;
        self.current.push(event);
        self.order.insert(self.cursor + later, offset << INDEX_BITS | index);
    }

    /// Turns to the next bucket that holds anything and sorts it.
    fn turn(&mut self) -> bool {
        self.current.clear();
        self.order.clear();
        self.cursor = 0;
        let far_day = self.far.peek().map(|Reverse(Far(event))| event.at >> self.width_bits);
        if self.in_ring == 0 {
            let Some(day) = far_day else { return false };
            self.today = day;
        } else {
            self.today += 1;
            while self.ring[(self.today & self.mask) as usize].is_empty() && far_day != Some(self.today) {
                self.today += 1;
            }
        }
        std::mem::swap(&mut self.current, &mut self.ring[(self.today & self.mask) as usize]);
        self.in_ring -= self.current.len();
        while let Some(Reverse(Far(event))) = self.far.peek() {
            if event.at >> self.width_bits != self.today {
                break;
            }
            self.current.push(*event);
            self.far.pop();
        }
        assert!(self.current.len() < 1 << INDEX_BITS, "too many events at once");
        let mask = (1 << self.width_bits) - 1;
        self.order.extend(self.current.iter().zip(0u64..).map(|(event, i)| (event.at & mask) << INDEX_BITS | i));
        self.order.sort_unstable();
        self.order_ties();
        true
    }

    /// Orders events of equal moments by slot.
    fn order_ties(&mut self) {
        if self.order.windows(2).all(|pair| pair[0] >> INDEX_BITS != pair[1] >> INDEX_BITS) {
            return;
        }
        let current = &self.current;
        for run in self.order.chunk_by_mut(|a, b| a >> INDEX_BITS == b >> INDEX_BITS) {
            run.sort_by_key(|&key| current[(key & ((1 << INDEX_BITS) - 1)) as usize].slot);
        }
    }

    fn offset(&self, at: u64) -> u64 {
        at & ((1 << self.width_bits) - 1)
    }
}

impl Ord for Far {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0.at, self.0.slot).cmp(&(other.0.at, other.0.slot))
    }
}

impl PartialOrd for Far {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Far {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Far {}

#[cfg(test)]
mod tests {
    use super::*;
    use aqumen_transport::tcp::Segment;
    use aqumen_units::{Ecn, Instant};
    use proptest::prelude::*;

    /// Takes everything, scheduling `children` of what it takes as it goes: (after which event, how far ahead, slot).
    fn drain(mut calendar: Calendar, first: &[(u64, u32)], children: &[(u64, u32)]) -> Vec<(u64, u32)> {
        first.iter().for_each(|&(at, slot)| calendar.push(Event::timer(at, slot)));
        let mut children = children.iter();
        let mut seen = Vec::new();
        while let Some(event) = calendar.pop() {
            seen.push((event.at, event.slot));
            if let Some(&(ahead, slot)) = children.next() {
                calendar.push(Event::timer(event.at + ahead, slot));
            }
        }
        seen
    }

    #[test]
    fn equal_moments_are_ordered_by_slot() {
        let seen = drain(Calendar::new(1e6, 1_000_000), &[(5, 3), (5, 1), (2, 9), (5, 2)], &[]);
        assert_eq!(seen, [(2, 9), (5, 1), (5, 2), (5, 3)]);
    }

    #[test]
    fn packets_of_one_burst_stay_in_order() {
        let packet = |number| Event::segment(&Segment { seq: number, ..segment() });
        let mut calendar = Calendar::new(1e3, 1_000_000);
        calendar.push(Event::timer(0, 0));
        calendar.pop();
        (0..4).for_each(|number| calendar.push(packet(number)));
        let seen: Vec<u32> = std::iter::from_fn(|| calendar.pop()).map(|event| event.as_segment().seq).collect();
        assert_eq!(seen, [0, 1, 2, 3]);
    }

    fn segment() -> Segment {
        Segment {
            seq: 0,
            bytes: 1000,
            ecn: Ecn::Ect0,
            cwr: false,
            syn: false,
            last: false,
            retransmission: false,
            sent_at: Instant::ZERO,
        }
    }

    #[test]
    fn an_event_for_the_present_moment_comes_next() {
        let seen = drain(Calendar::new(1e3, 1_000_000), &[(5, 3), (9, 1)], &[(0, 7)]);
        assert_eq!(seen, [(5, 3), (5, 7), (9, 1)]);
    }

    proptest! {
        #[test]
        fn any_widths_give_the_same_order(
            first in prop::collection::vec((0u64..5_000_000, 0u32..6), 1..60),
            children in prop::collection::vec((0u64..3_000_000_000, 6u32..9), 0..60),
            rate in 1e0..1e9f64,
            horizon in 1u64..1_000_000_000,
        ) {
            let seen = drain(Calendar::new(rate, horizon), &first, &children);
            let wide = drain(Calendar::new(1.0, 1), &first, &children);
            prop_assert_eq!(&seen, &wide);
            prop_assert!(seen.is_sorted_by_key(|&(at, _)| at));
            prop_assert_eq!(seen.len(), first.len() + children.len().min(seen.len()));
        }
    }
}
