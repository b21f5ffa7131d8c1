//! The calendar of pending events: a ring of buckets of equal width, each sorted when its turn comes.
//!
//! A packet's next event usually lies a propagation delay ahead, many buckets away: to schedule it is to link it into its
//! bucket's list, and to reach it is to sort a list of two or three, whatever the number of flows. Events beyond the ring's
//! horizon (retransmission timers, mostly) wait in a heap. The order of events is (moment, slot), and first come first
//! served where both are equal, as two packets of one burst are; it does not depend on the widths, which only decide the
//! speed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::event::Event;

pub(crate) struct Calendar {
    /// A bucket is 2^width_bits nanoseconds wide.
    width_bits: u32,
    /// The entry that came last into each bucket.
    ring: Vec<u32>,
    mask: u64,
    /// The events in the ring, linked bucket by bucket. One that leaves makes room for the next that comes, so that what
    /// is written lies in the cache.
    entries: Vec<Entry>,
    /// The first of the entries that are free.
    free: u32,
    /// How many are not.
    in_ring: usize,
    /// Number of the bucket in progress, counted from the start of time.
    day: u64,
    /// What is left of the bucket in progress, the next event last.
    today: Vec<Event>,
    far: BinaryHeap<Reverse<Far>>,
    /// The bucket of the first event in `far`; `u64::MAX` when there is none.
    far_day: u64,
}

/// An event in the ring. The word for its moment holds the moment's offset in the bucket and, above it, the next entry of
/// the list: together they stay half a cache line.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Entry(Event);

/// An event beyond the horizon, ordered by moment and slot.
struct Far(Event);

/// The end of a list.
const NONE: u32 = u32::MAX;

impl Calendar {
    /// A calendar for about `events_per_sec` events, most of them less than `horizon_ns` ahead.
    pub(crate) fn new(events_per_sec: f64, horizon_ns: u64) -> Self {
        // Between 1 and 2 events to a bucket: fewer waste buckets, more cost sorting.
        const EVENTS_PER_BUCKET: f64 = 2.0;
        const MAX_BUCKETS: u64 = 1 << 20;
        let width_ns = (EVENTS_PER_BUCKET * 1e9 / events_per_sec.max(1.0)).clamp(64.0, 2f64.powi(31)) as u64;
        let mut width_bits = width_ns.ilog2();
        while horizon_ns >> width_bits >= MAX_BUCKETS && width_bits < 31 {
            width_bits += 1;
        }
        let buckets = ((horizon_ns >> width_bits) + 2).next_power_of_two().min(MAX_BUCKETS);
        Calendar {
            width_bits,
            ring: vec![NONE; buckets as usize],
            mask: buckets - 1,
            entries: Vec::new(),
            free: NONE,
            in_ring: 0,
            day: 0,
            today: Vec::new(),
            far: BinaryHeap::new(),
            far_day: u64::MAX,
        }
    }

    /// Schedules `event`. It must not lie before the event taken last.
    #[inline(always)]
    pub(crate) fn push(&mut self, event: Event) {
        let day = event.at >> self.width_bits;
        if day.wrapping_sub(self.day + 1) >= self.mask {
            return self.push_elsewhere(event);
        }
        if self.free == NONE {
            self.make_room();
        }
        let head = &mut self.ring[(day & self.mask) as usize];
        let free = &mut self.entries[self.free as usize];
        let next = std::mem::replace(head, self.free);
        self.free = free.next();
        *free = Entry::new(event, self.width_bits, next);
        self.in_ring += 1;
    }

    /// Takes the next event.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.today.pop() {
                return Some(event);
            }
            if !self.turn() {
                return None;
            }
        }
    }

    /// Schedules an event for the bucket in progress or beyond the horizon.
    #[cold]
    #[inline(never)]
    fn push_elsewhere(&mut self, event: Event) {
        let day = event.at >> self.width_bits;
        if day == self.day {
            let later = self.today.iter().rposition(|other| event.is_before(other));
            self.today.insert(later.map_or(0, |index| index + 1), event);
        } else {
            self.far_day = self.far_day.min(day);
            self.far.push(Reverse(Far(event)));
        }
    }

    /// Adds free entries to the ring's.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self) {
        let first = self.entries.len();
        let end = (2 * first).max(64);
        assert!(end < NONE as usize, "too many events at once");
        self.entries.extend((first + 1..end).map(|next| Entry::free(next as u32)));
        self.entries.push(Entry::free(NONE));
        self.free = first as u32;
    }

    /// Turns to the next bucket that holds anything and sorts it.
    fn turn(&mut self) -> bool {
        if self.in_ring == 0 {
            if self.far_day == u64::MAX {
                return false;
            }
            self.day = self.far_day;
        } else {
            self.day += 1;
            while self.ring[(self.day & self.mask) as usize] == NONE && self.day != self.far_day {
                self.day += 1;
            }
        }
        let first = std::mem::replace(&mut self.ring[(self.day & self.mask) as usize], NONE);
        let (start, mut next, mut last) = (self.day << self.width_bits, first, NONE);
        while let Some(entry) = self.entries.get(next as usize) {
            self.today.push(entry.event(start));
            (last, next) = (next, entry.next());
        }
        if let Some(entry) = self.entries.get_mut(last as usize) {
            *entry = Entry::free(self.free);
            self.free = first;
            self.in_ring -= self.today.len();
        }
        if self.day == self.far_day {
            self.take_far();
        }
        sort(&mut self.today);
        true
    }

    /// Adds the events of the bucket in progress that waited beyond the horizon, the first one last.
    #[cold]
    fn take_far(&mut self) {
        let in_ring = self.today.len();
        self.far_day = u64::MAX;
        while let Some(Reverse(Far(event))) = self.far.peek() {
            if event.at >> self.width_bits != self.day {
                self.far_day = event.at >> self.width_bits;
                break;
            }
            self.today.push(*event);
            self.far.pop();
        }
        self.today[in_ring..].reverse();
    }
}

/// Sorts events from the last to the first, so that of equal ones that stands last which came first. They come with the
/// latest comer first.
#[inline]
fn sort(events: &mut [Event]) {
    const FEW: usize = 24;
    if events.len() > FEW {
        events.sort_by(|a, b| (b.at, b.slot).cmp(&(a.at, a.slot)));
        return;
    }
    for unsorted in 1..events.len() {
        let mut place = unsorted;
        while place > 0 && events[place - 1].is_before(&events[place]) {
            events.swap(place - 1, place);
            place -= 1;
        }
    }
}

impl Entry {
    #[inline]
    fn new(event: Event, width_bits: u32, next: u32) -> Self {
        let offset = event.at & ((1 << width_bits) - 1);
        let mut entry = Entry(event);
        entry.0.at = offset | (next as u64) << 32;
        entry
    }

    /// The event, in a bucket that begins at `start`.
    #[inline]
    fn event(&self, start: u64) -> Event {
        let mut event = self.0;
        event.at = start + (event.at & u32::MAX as u64);
        event
    }

    #[inline]
    fn next(&self) -> u32 {
        (self.0.at >> 32) as u32
    }

    /// An entry without an event.
    #[inline]
    fn free(next: u32) -> Self {
        Entry(Event::timer((next as u64) << 32, 0))
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
