//! A batch: the messages to a process in one step, sorted at once.

use std::ops::Range;

use crate::calendar::CalendarQueue;
use crate::event::Event;

/// Key of an event: time and tie-break priority.
pub(super) type EventKey = (u64, u32);

#[derive(Clone, Default)]
pub(super) struct Batch {
    /// Start of the step.
    start: u64,
    events: Vec<Event>,
    /// Sorted order: time within the step in the upper half, index in `events` in the lower.
    order: Vec<u64>,
    /// Number of events that are done.
    done: usize,
}

impl Batch {
    /// Takes the events of `step` from `queue`; steps are 2^`width_bits` nanoseconds long.
    pub(super) fn open(&mut self, queue: &mut CalendarQueue<Event>, step: u64, width_bits: u32, counts: &mut Vec<u32>) {
        debug_assert!(self.is_done(), "something was left over");
        self.events.clear();
        queue.open(step, &mut self.events);
        self.sort(step << width_bits, width_bits, counts);
    }

    /// Returns whether all events are done.
    pub(super) fn is_done(&self) -> bool {
        self.done == self.events.len()
    }

    /// Returns the key of the first event at `at` or later.
    pub(super) fn key_at(&self, at: u64) -> u64 {
        at.saturating_sub(self.start).min(u64::from(u32::MAX)) << 32
    }

    /// Takes the next event, if it comes before the [key](Self::key_at) `until`.
    #[inline(always)]
    pub(super) fn take_before(&mut self, until: u64) -> Option<Event> {
        let &key = self.order.get(self.done).filter(|key| **key < until)?;
        self.done += 1;
        Some(self.events[key as u32 as usize])
    }

    /// Returns the next events in this range of positions.
    pub(super) fn ahead(&self, range: Range<usize>) -> impl Iterator<Item = &Event> {
        let (order, events) = (&self.order[self.done..], &self.events[..]);
        let order = &order[range.start.min(order.len())..range.end.min(order.len())];
        order.iter().map(|&key| &events[key as u32 as usize])
    }

    /// Returns the next event.
    #[inline(always)]
    pub(super) fn peek(&self) -> Option<&Event> {
        self.events.get(*self.order.get(self.done)? as u32 as usize)
    }

    /// Returns the next event, if its key is below `until`.
    #[inline(always)]
    pub(super) fn next_before(&self, until: EventKey) -> Option<Event> {
        self.peek().filter(|event| event.key() < until).copied()
    }

    /// Marks the next event as done.
    #[inline(always)]
    pub(super) fn advance(&mut self) {
        self.done += 1;
    }

    /// Sorts the events of the step that begins at `start` by time and priority, equal ones first in, first out.
    fn sort(&mut self, start: u64, width_bits: u32, counts: &mut Vec<u32>) {
        let Batch { events, order, done, .. } = self;
        *done = 0;
        self.start = start;
        order.clear();
        const FEW: usize = 12;
        if events.len() <= FEW {
            for (index, event) in events.iter().enumerate() {
                let (key, mut hole) = ((event.at - start) << 32 | index as u64, index);
                order.push(key);
                let before = |key: u64| (key >> 32, events[key as u32 as usize].priority());
                while hole > 0 && before(order[hole - 1]) > before(key) {
                    order[hole] = order[hole - 1];
                    hole -= 1;
                }
                order[hole] = key;
            }
            return;
        }
        // What comes is spread evenly, more or less: each goes into one of several times as many pigeonholes, and the
        // few that are left out of order are next to where they belong.
        let holes_bits = (events.len().ilog2() + 1).min(width_bits);
        let hole = |event: &Event| ((event.at - start) >> (width_bits - holes_bits)) as usize;
        counts.clear();
        counts.resize(1 << holes_bits, 0);
        events.iter().for_each(|event| counts[hole(event)] += 1);
        let mut before = 0;
        counts.iter_mut().for_each(|count| before += std::mem::replace(count, before));
        order.resize(events.len(), 0);
        for (index, event) in events.iter().enumerate() {
            let position = &mut counts[hole(event)];
            order[*position as usize] = (event.at - start) << 32 | index as u64;
            *position += 1;
        }
        if put_in_order(order) {
            order.sort_by_key(|&key| (key >> 32, events[key as u32 as usize].priority(), key as u32));
        }
    }
}

/// Puts keys into order that nearly are, as a rule. Whether they are still to be sorted: two have the same moment, or
/// it would take too long this way.
fn put_in_order(keys: &mut [u64]) -> bool {
    // Where many share a pigeonhole, moving one after the other would take too long.
    const CROWD: usize = 8;
    let mut moves_left = CROWD * keys.len();
    let Some(&(mut last)) = keys.first() else { return false };
    let mut ties = false;
    for end in 1..keys.len() {
        let key = keys[end];
        if last < key {
            ties |= (last ^ key) >> 32 == 0;
            last = key;
            continue;
        }
        let mut process = end;
        while process > 0 && keys[process - 1] > key {
            keys[process] = keys[process - 1];
            process -= 1;
        }
        keys[process] = key;
        // Of one moment what came first is first already.
        ties |= process > 0 && keys[process - 1] >> 32 == key >> 32;
        moves_left = moves_left.saturating_sub(end - process);
        if moves_left == 0 {
            return true;
        }
    }
    ties
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_batch_is_in_order_of_moment_then_rank_then_arrival(
            events in prop::collection::vec((0u64..4096, 0u32..3), 0..200),
            crowd in prop::collection::vec((7u64..9, 0u32..3), 0..60),
        ) {
            let start = 1 << 20;
            let events: Vec<_> = events.into_iter().chain(crowd).map(|(at, priority)| Event::timer(start + at, priority)).collect();
            let mut batch = Batch { events: events.clone(), ..Batch::default() };
            batch.sort(start, 12, &mut Vec::new());
            let mut expected: Vec<usize> = (0..events.len()).collect();
            expected.sort_by_key(|&index| (events[index].at, events[index].priority(), index));
            let order: Vec<usize> = batch.order.iter().map(|&key| key as u32 as usize).collect();
            prop_assert_eq!(order, expected);
        }
    }

    #[test]
    fn a_batch_is_in_order_where_all_share_a_pigeonhole() {
        // 300 moments in a row, the last first, and each twice, in a step of 2^24 ns.
        let start = 1 << 30;
        let events: Vec<_> = (0..600).rev().map(|k| Event::timer(start + k / 2, (k % 2) as u32)).collect();
        let mut batch = Batch { events, ..Batch::default() };
        batch.sort(start, 24, &mut Vec::new());
        let turns: Vec<_> = batch.ahead(0..usize::MAX).map(Event::key).collect();
        assert_eq!(turns, (0..600).map(|k| (start + k / 2, (k % 2) as u32)).collect::<Vec<_>>());
    }

    #[test]
    fn events_of_one_moment_are_in_order_of_rank_however_many() {
        let start = 1 << 20;
        for count in [2, 12, 13, 100] {
            let events = (0..count).rev().map(|priority| Event::timer(start + 5, priority)).collect();
            let mut batch = Batch { events, ..Batch::default() };
            batch.sort(start, 12, &mut Vec::new());
            assert!(batch.ahead(0..usize::MAX).map(Event::priority).eq(0..count), "{count}");
        }
    }

    #[test]
    fn an_event_comes_before_later_keys_only() {
        let start = 1 << 20;
        let events = [Event::timer(start + 5, 1), Event::timer(start + 5, 2), Event::timer(start + 6, 0)];
        let mut batch = Batch { events: events.to_vec(), ..Batch::default() };
        batch.sort(start, 12, &mut Vec::new());
        for k in 0..3 {
            let now = batch.peek().copied().unwrap();
            assert!(batch.next_before(now.key()).is_none(), "{k}");
            assert_eq!(batch.next_before(events[2].key()).is_some(), k < 2, "{k}");
            batch.advance();
        }
        assert!(batch.peek().is_none());
    }
}
