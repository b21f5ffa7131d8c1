//! The calendar of pending events: a ring of buckets of equal width, each a short list.
//!
//! A packet's next event usually lies a propagation delay ahead, many buckets away. On average a bucket holds less than one
//! event, so that to schedule one is to link it into an empty list, and to reach it is a step or two along the ring,
//! whatever the number of flows. Events beyond the ring's horizon (retransmission timers, mostly) wait in a heap. The order
//! of events is (moment, slot), and first come first served where both are equal, as two packets of one burst are; it does
//! not depend on the widths, which only decide the speed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use crate::event::Event;

pub(crate) struct Calendar {
    /// A bucket is 2^width_bits nanoseconds wide.
    width_bits: u32,
    /// The only entry of each bucket; or, with `UNSORTED`, the latest comer of several; or, in the bucket in progress, the
    /// first of them in order.
    ring: Vec<u32>,
    mask: u64,
    /// The events in the ring, linked bucket by bucket, and those that were taken. A packet keeps its entry from event to
    /// event, and one that leaves makes room for the next that comes: what is written lies in the cache.
    entries: Vec<Entry>,
    /// The first of the entries that are free.
    free: u32,
    /// Number of the bucket in progress, counted from the start of time, and its first moment.
    day: u64,
    day_start: u64,
    far: BinaryHeap<Reverse<Far>>,
    /// The bucket of the first event in `far`; `u64::MAX` when there is none.
    far_day: u64,
}

/// A place for an event. The word for its moment holds the moment's offset in the bucket and, above it, the next entry of
/// the list: together they stay half a cache line.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Entry(Event);

/// An event whose turn it is, and the entry that holds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) at: u64,
    pub(crate) slot: u32,
    pub(crate) entry: u32,
}

/// An event beyond the horizon, ordered by moment and slot.
struct Far(Event);

/// Set on the head of a list that is to be sorted when its turn comes: to look at its entries any sooner would be to wait
/// for memory. Such a head is no entry's number.
const UNSORTED: u32 = 1 << 31;
/// The end of a list.
const NONE: u32 = UNSORTED - 1;

impl Calendar {
    /// A calendar for about `events_per_sec` events, most of them less than `horizon_ns` ahead.
    pub(crate) fn new(events_per_sec: f64, horizon_ns: u64) -> Self {
        // Fewer events to a bucket make more buckets to pass, more of them more lists to walk.
        const EVENTS_PER_BUCKET: f64 = 1.5;
        const MAX_BUCKETS: u64 = 1 << 21;
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
            day: 0,
            day_start: 0,
            far: BinaryHeap::new(),
            far_day: u64::MAX,
        }
    }

    /// Schedules `event`. It must not lie before the event taken last.
    #[inline(always)]
    pub(crate) fn push(&mut self, event: Event) {
        if self.free == NONE {
            self.make_room();
        }
        let number = self.free;
        let entry = &mut self.entries[number as usize];
        self.free = entry.next();
        *entry = Entry(event);
        self.again(number, event.at, event.slot);
    }

    /// Schedules the event taken as `entry` again.
    #[inline(always)]
    pub(crate) fn again(&mut self, entry: u32, at: u64, slot: u32) {
        let day = at >> self.width_bits;
        debug_assert!(day >= self.day, "an event in the past");
        let it = &mut self.entries[entry as usize];
        it.0.slot = slot;
        if day.wrapping_sub(self.day) > self.mask {
            return self.again_far(entry, at);
        }
        let head = &mut self.ring[(day & self.mask) as usize];
        it.0.at = at & ((1 << self.width_bits) - 1) | ((*head & !UNSORTED) as u64) << 32;
        if *head == NONE {
            *head = entry;
        } else if day != self.day {
            *head = entry | UNSORTED;
        } else {
            *head = link(&mut self.entries, *head, entry);
        }
    }

    /// Takes the next event. It stays in its entry, to be scheduled [`again`](Self::again) or to be
    /// [released](Self::release).
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<Taken> {
        if self.ring[(self.day & self.mask) as usize] == NONE && !self.turn() {
            return None;
        }
        let head = &mut self.ring[(self.day & self.mask) as usize];
        let entry = &self.entries[*head as usize];
        let number = std::mem::replace(head, entry.next());
        Some(Taken { at: self.day_start + entry.offset(), slot: entry.0.slot, entry: number })
    }

    /// Number of the bucket in progress.
    #[inline]
    pub(crate) fn day(&self) -> u64 {
        self.day
    }

    /// Appends the slots of the events in the buckets `days` to `slots`.
    pub(crate) fn upcoming(&self, days: Range<u64>, slots: &mut Vec<u32>) {
        for day in days {
            let mut next = self.ring[(day & self.mask) as usize] & !UNSORTED;
            while let Some(entry) = self.entries.get(next as usize) {
                slots.push(entry.0.slot);
                next = entry.next();
            }
        }
    }

    /// Reads the latest comer of each of the buckets `far` and the one before it of each of the buckets `near`, so that
    /// they are in the cache when their turn comes.
    pub(crate) fn read_ahead(&self, near: Range<u64>, far: Range<u64>) {
        let latest = |day| self.entries.get((self.ring[(day & self.mask) as usize] & !UNSORTED) as usize);
        let mut seen = 0;
        for day in far {
            seen ^= latest(day).map_or(0, Entry::next);
        }
        for day in near {
            let second = latest(day).and_then(|entry| self.entries.get(entry.next() as usize));
            seen ^= second.map_or(0, Entry::next);
        }
        std::hint::black_box(seen);
    }

    /// An event that was taken; its moment is no longer in it.
    #[inline]
    pub(crate) fn event(&self, entry: u32) -> &Event {
        &self.entries[entry as usize].0
    }

    /// The same, to change it.
    #[inline]
    pub(crate) fn event_mut(&mut self, entry: u32) -> &mut Event {
        &mut self.entries[entry as usize].0
    }

    /// The event taken as `entry` is over.
    #[inline]
    pub(crate) fn release(&mut self, entry: u32) {
        self.entries[entry as usize].link(self.free);
        self.free = entry;
    }

    /// Turns to the next bucket that holds anything and sorts it.
    #[inline(always)]
    fn turn(&mut self) -> bool {
        let once_around = self.day + self.mask;
        let last = self.far_day.min(once_around);
        while self.day < last {
            self.day += 1;
            let head = &mut self.ring[(self.day & self.mask) as usize];
            if *head != NONE {
                if *head & UNSORTED != 0 {
                    *head = sort(&mut self.entries, *head & !UNSORTED);
                }
                break;
            }
        }
        if self.day == last {
            if self.ring[(self.day & self.mask) as usize] == NONE {
                // Nothing but what is far, if that.
                if self.far_day == u64::MAX {
                    return false;
                }
                self.day = self.far_day;
            }
            if self.day == self.far_day {
                self.take_far();
            }
        }
        self.day_start = self.day << self.width_bits;
        true
    }

    /// Schedules the event taken as `entry` beyond the horizon.
    #[cold]
    #[inline(never)]
    fn again_far(&mut self, entry: u32, at: u64) {
        let event = self.event(entry).put_off(at);
        self.release(entry);
        self.far_day = self.far_day.min(at >> self.width_bits);
        self.far.push(Reverse(Far(event)));
    }

    /// Adds the events of the bucket in progress that waited beyond the horizon. They came before those in the ring.
    #[cold]
    #[inline(never)]
    fn take_far(&mut self) {
        let bucket = (self.day & self.mask) as usize;
        let came_later = std::mem::replace(&mut self.ring[bucket], NONE);
        self.far_day = u64::MAX;
        while let Some(Reverse(Far(event))) = self.far.peek() {
            if event.at >> self.width_bits != self.day {
                self.far_day = event.at >> self.width_bits;
                break;
            }
            let event = *event;
            self.far.pop();
            self.push(event);
        }
        let mut next = came_later;
        while let Some(entry) = self.entries.get_mut(next as usize) {
            let number = std::mem::replace(&mut next, entry.next());
            entry.link(NONE);
            self.ring[bucket] = link(&mut self.entries, self.ring[bucket], number);
        }
    }

    /// Adds free entries.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self) {
        let first = self.entries.len();
        let end = (2 * first).max(64);
        assert!(end <= NONE as usize, "too many events at once");
        self.entries.extend((first + 1..end).map(|next| Entry::free(next as u32)));
        self.entries.push(Entry::free(NONE));
        self.free = first as u32;
    }
}

/// Links entry `number` into the ordered list that begins at `head`, behind those that it equals, and returns the new head.
#[inline]
fn link(entries: &mut [Entry], head: u32, number: u32) -> u32 {
    let key = entries[number as usize].key();
    let (mut before, mut after) = (NONE, head);
    while let Some(other) = entries.get(after as usize)
        && other.key() <= key
    {
        (before, after) = (after, other.next());
    }
    entries[number as usize].link(after);
    match entries.get_mut(before as usize) {
        Some(entry) => {
            entry.link(number);
            head
        }
        None => number,
    }
}

/// Puts a list of two or more whose latest comer stands first into order, and returns its head.
#[inline(never)]
fn sort(entries: &mut [Entry], head: u32) -> u32 {
    let latest = &entries[head as usize];
    let second = latest.next();
    let (latest_key, earlier) = (latest.key(), &mut entries[second as usize]);
    if earlier.next() != NONE {
        return sort_many(entries, head);
    }
    if latest_key < earlier.key() {
        return head;
    }
    earlier.link(head);
    entries[head as usize].link(NONE);
    second
}

/// The same for any number.
#[inline(never)]
fn sort_many(entries: &mut [Entry], head: u32) -> u32 {
    const MANY: usize = 16;
    let (mut reversed, mut next, mut count) = (NONE, head, 0);
    while let Some(entry) = entries.get_mut(next as usize) {
        let after = entry.next();
        entry.link(reversed);
        (reversed, next) = (next, after);
        count += 1;
    }
    if count > MANY {
        let next = |&number: &u32| Some(entries[number as usize].next());
        let mut order: Vec<u32> = std::iter::successors(Some(reversed), next).take(count).collect();
        order.sort_by_key(|&number| entries[number as usize].key());
        return order.iter().rev().fold(NONE, |next, &number| {
            entries[number as usize].link(next);
            number
        });
    }
    let mut sorted = NONE;
    while let Some(entry) = entries.get(reversed as usize) {
        let next = entry.next();
        sorted = link(entries, sorted, reversed);
        reversed = next;
    }
    sorted
}

impl Entry {
    /// An entry without an event.
    fn free(next: u32) -> Self {
        Entry(Event::timer((next as u64) << 32, 0))
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
        while let Some(taken) = calendar.pop() {
            seen.push((taken.at, taken.slot));
            match children.next() {
                Some(&(ahead, slot)) if seen.len() % 2 == 0 => calendar.again(taken.entry, taken.at + ahead, slot),
                Some(&(ahead, slot)) => {
                    calendar.release(taken.entry);
                    calendar.push(Event::timer(taken.at + ahead, slot));
                }
                None => calendar.release(taken.entry),
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
        let packet = |number| Event::segment(&Segment { seq: number, ..segment() }, 0);
        let mut calendar = Calendar::new(1e3, 1_000_000);
        calendar.push(Event::timer(0, 0));
        calendar.pop();
        (0..4).for_each(|number| calendar.push(packet(number)));
        let seen = segments(calendar);
        assert_eq!(seen, [0, 1, 2, 3]);
    }

    /// Takes everything, which is segments, and tells their numbers.
    fn segments(mut calendar: Calendar) -> Vec<u32> {
        std::iter::from_fn(|| calendar.pop().map(|taken| calendar.event(taken.entry).as_segment().seq)).collect()
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
    fn many_events_in_one_bucket_are_in_order() {
        // 2000 events within 4 us, in a calendar that expects one a second: all in one bucket, and each moment twice.
        let first: Vec<(u64, u32)> = (0..2000u64).map(|k| (1000 + k * 7919 % 4000 / 4 * 4, (k % 3) as u32)).collect();
        let mut sorted = first.clone();
        sorted.sort();
        assert_eq!(drain(Calendar::new(1.0, 1_000_000), &first, &[]), sorted);
        // Packets of one burst, too many to keep in order as they come.
        let mut calendar = Calendar::new(1e3, 1_000_000);
        (0..200).for_each(|number| calendar.push(Event::segment(&Segment { seq: number, ..segment() }, 0)));
        let seen = segments(calendar);
        assert_eq!(seen, (0..200).collect::<Vec<_>>());
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
