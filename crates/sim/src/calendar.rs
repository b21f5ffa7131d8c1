//! The calendar of pending events: a ring of buckets of equal width, each sorted when its turn comes.
//!
//! A packet's next event usually lies a propagation delay ahead, many buckets away: to schedule it is to link it into its
//! bucket's list, and to reach it is to sort a list of one or two, whatever the number of flows. Events beyond the ring's
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
    /// All events but the far ones, linked bucket by bucket. One that leaves makes room for the next that comes, so that
    /// what is written lies in the cache.
    entries: Vec<Entry>,
    /// The first of the entries that are free.
    free: u32,
    /// How many are in the ring.
    in_ring: usize,
    /// Number of the bucket in progress, counted from the start of time, and its first moment.
    day: u64,
    day_start: u64,
    /// What is left of the bucket in progress, in order.
    today: u32,
    far: BinaryHeap<Reverse<Far>>,
    /// The bucket of the first event in `far`; `u64::MAX` when there is none.
    far_day: u64,
}

/// A place for an event. The word for its moment holds the moment's offset in the bucket and, above it, the next entry of
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
        // About one event to a bucket: fewer waste buckets, more cost sorting.
        const EVENTS_PER_BUCKET: f64 = 1.5;
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
            day_start: 0,
            today: NONE,
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
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<Event> {
        if self.today == NONE && !self.turn() {
            return None;
        }
        let entry = &mut self.entries[self.today as usize];
        let (event, next) = (entry.event(self.day_start), entry.next());
        entry.link(self.free);
        self.free = std::mem::replace(&mut self.today, next);
        Some(event)
    }

    /// Turns to the next bucket that holds anything and sorts it.
    #[inline(always)]
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
        self.day_start = self.day << self.width_bits;
        self.today = std::mem::replace(&mut self.ring[(self.day & self.mask) as usize], NONE);
        if self.day != self.far_day && self.entries[self.today as usize].next() == NONE {
            // Alone in its bucket.
            self.in_ring -= 1;
        } else {
            self.sort_today();
        }
        true
    }

    /// Sorts the bucket in progress, whose list begins with the latest comer.
    #[inline(never)]
    fn sort_today(&mut self) {
        const FEW: usize = 16;
        let (mut unsorted, mut sorted, mut events) = (self.today, NONE, 0);
        while let Some(entry) = self.entries.get(unsorted as usize) {
            if events == FEW {
                (sorted, events) = self.sort_many(unsorted, sorted);
                break;
            }
            let (key, next) = (entry.key(), entry.next());
            sorted = self.link_in(unsorted, sorted, |other| other < key);
            unsorted = next;
            events += 1;
        }
        self.today = sorted;
        self.in_ring -= events;
        if self.day == self.far_day {
            self.take_far();
        }
    }

    /// Links an entry into a list, behind those whose keys it `passes`, and returns the list's head.
    #[inline]
    fn link_in(&mut self, number: u32, head: u32, passes: impl Fn(u64) -> bool) -> u32 {
        let (mut before, mut after) = (NONE, head);
        while let Some(other) = self.entries.get(after as usize)
            && passes(other.key())
        {
            (before, after) = (after, other.next());
        }
        self.entries[number as usize].link(after);
        match self.entries.get_mut(before as usize) {
            Some(entry) => {
                entry.link(number);
                head
            }
            None => number,
        }
    }

    /// Sorts a long list, of which the later comers are `sorted`; returns its head and length.
    #[cold]
    fn sort_many(&mut self, unsorted: u32, sorted: u32) -> (u32, usize) {
        let list = |head| std::iter::successors(Some(head), |&number| Some(self.entries[number as usize].next()));
        let mut order: Vec<u32> = list(unsorted).take_while(|&number| number != NONE).collect();
        order.reverse();
        order.extend(list(sorted).take_while(|&number| number != NONE));
        order.sort_by_key(|&number| self.entries[number as usize].key());
        let mut next = NONE;
        for &number in order.iter().rev() {
            self.entries[number as usize].link(next);
            next = number;
        }
        (next, order.len())
    }

    /// Schedules an event for the bucket in progress or beyond the horizon.
    #[cold]
    #[inline(never)]
    fn push_elsewhere(&mut self, event: Event) {
        let day = event.at >> self.width_bits;
        if day == self.day {
            let number = self.keep(event);
            let key = self.entries[number as usize].key();
            self.today = self.link_in(number, self.today, |other| other <= key);
        } else {
            self.far_day = self.far_day.min(day);
            self.far.push(Reverse(Far(event)));
        }
    }

    /// Adds the events of the bucket in progress that waited beyond the horizon, since before those in the ring.
    #[cold]
    fn take_far(&mut self) {
        let mut came = Vec::new();
        self.far_day = u64::MAX;
        while let Some(Reverse(Far(event))) = self.far.peek() {
            if event.at >> self.width_bits != self.day {
                self.far_day = event.at >> self.width_bits;
                break;
            }
            came.push(*event);
            self.far.pop();
        }
        for &event in came.iter().rev() {
            let number = self.keep(event);
            let key = self.entries[number as usize].key();
            self.today = self.link_in(number, self.today, |other| other < key);
        }
    }

    /// Puts an event into a free entry.
    fn keep(&mut self, event: Event) -> u32 {
        if self.free == NONE {
            self.make_room();
        }
        let number = self.free;
        self.free = self.entries[number as usize].next();
        self.entries[number as usize] = Entry::new(event, self.width_bits, NONE);
        number
    }

    /// Adds free entries.
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
}

impl Entry {
    #[inline]
    fn new(event: Event, width_bits: u32, next: u32) -> Self {
        let offset = event.at & ((1 << width_bits) - 1);
        Entry(event.put_off(offset | (next as u64) << 32))
    }

    /// An entry without an event.
    fn free(next: u32) -> Self {
        Entry(Event::timer((next as u64) << 32, 0))
    }

    /// The event, in a bucket that begins at `start`.
    #[inline]
    fn event(&self, start: u64) -> Event {
        self.0.put_off(start + self.offset())
    }

    /// Orders the events of a bucket.
    #[inline]
    fn key(&self) -> u64 {
        self.offset() << 32 | self.0.slot as u64
    }

    #[inline]
    fn offset(&self) -> u64 {
        self.0.at & u32::MAX as u64
    }

    #[inline]
    fn next(&self) -> u32 {
        (self.0.at >> 32) as u32
    }

    #[inline]
    fn link(&mut self, next: u32) {
        self.0.at = self.offset() | (next as u64) << 32;
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
