//! A logical process: a part of the network with state of its own, and its event queue.
//!
//! A process handles an epoch in steps, as long as the epoch or shorter. Messages of other processes, and its own
//! events for later steps, wait in its calendar queue and are sorted when their step begins. Events that it makes
//! within a step go into a small heap. The order is time, then priority, then first come, first served. Steps without
//! events are skipped.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::batch::{Batch, EventKey};
use crate::calendar::CalendarQueue;
use crate::event::{Event, Words};

#[derive(Clone)]
pub(super) struct Process {
    /// A step is 2^step_bits nanoseconds long.
    step_bits: u32,
    /// Number of the current step.
    step: u64,
    /// End of the current step.
    step_end: u64,
    queue: CalendarQueue<Event>,
    /// Events that were queued when the step began.
    pub(super) batch: Batch,
    local: LocalEvents,
    made: u64,
    /// The port, if the process is a single port.
    pub(super) only_port: Option<u32>,
}

/// Events that the process made in this step: a short list in descending order, and a heap for the rest.
#[derive(Clone)]
struct LocalEvents {
    few: Vec<LocalEvent>,
    rest: BinaryHeap<Reverse<LocalEvent>>,
    /// Key of the first event.
    next: EventKey,
}

/// A local event with its sequence number: local events of equal keys are first in, first out.
#[derive(Clone, Copy, PartialEq, Eq)]
struct LocalEvent(u64, Event);

/// Longest list that is kept sorted by insertion.
const FEW: usize = 24;

/// Key after all events.
pub(super) const NO_KEY: EventKey = (u64::MAX, u32::MAX);

impl Process {
    pub(super) fn new(step_bits: u32, horizon_ns: u64, only_port: Option<u32>) -> Self {
        Process {
            step_bits,
            step: 0,
            step_end: 1 << step_bits,
            queue: CalendarQueue::new(step_bits, horizon_ns),
            batch: Batch::default(),
            local: LocalEvents { few: Vec::with_capacity(FEW), rest: BinaryHeap::new(), next: NO_KEY },
            made: 0,
            only_port,
        }
    }

    /// Adds `event`, of this step or a later one.
    #[inline(always)]
    pub(super) fn push(&mut self, event: Event) {
        // A bucket of the queue is a step.
        if !self.queue.push_ahead(event) {
            self.push_rarely(event.words());
        }
    }

    /// Adds an event that lies in this step or far ahead.
    #[inline(never)]
    fn push_rarely(&mut self, words: Words) {
        let event = Event::from_words(words);
        if event.at < self.step_end {
            self.made += 1;
            self.local.put(LocalEvent(self.made, event));
        } else {
            self.queue.push(event);
        }
    }

    /// Begins the next step with an event, if it begins before `until`. `due`: time of the next event that is not in
    /// the queue.
    #[inline(never)]
    pub(super) fn step(&mut self, until: EventKey, due: u64, counts: &mut Vec<u32>) -> bool {
        // An event that is due in this step, after `until`, comes before all queued events.
        if (self.step_end, 0) >= until || due < self.step_end {
            return false;
        }
        let step = self.queue.next_bucket().min(due >> self.step_bits);
        if step > until.0 >> self.step_bits || (step << self.step_bits, 0) >= until {
            return false;
        }
        debug_assert!(self.local.next == NO_KEY, "something was left over");
        self.step = step;
        self.made = 0;
        self.step_end = (step + 1) << self.step_bits;
        self.batch.open(&mut self.queue, self.step, self.step_bits, counts);
        true
    }

    /// Takes over the messages before `until` that the other worker sent to its copy `theirs` of this process.
    pub(super) fn admit(&mut self, theirs: &mut Process, until: u64) {
        loop {
            let step = theirs.queue.next_bucket();
            if step >= until >> self.step_bits {
                return;
            }
            theirs.queue.hand_over(step, &mut self.queue);
        }
    }

    /// Returns the start of the next step with a queued event; `u64::MAX` if there is none.
    pub(super) fn next_due(&self) -> u64 {
        self.queue.next_bucket().saturating_mul(1 << self.step_bits)
    }

    /// Returns the first key after the current step.
    #[inline(always)]
    pub(super) fn step_end(&self) -> EventKey {
        (self.step_end, 0)
    }

    /// Takes the next event of this step, if its key is below `until`. Of equal keys, queued events come before local
    /// ones.
    #[inline(always)]
    pub(super) fn take(&mut self, until: EventKey) -> Option<Event> {
        let local = self.local.next;
        if let Some(event) = self.batch.next_before(until)
            && event.key() <= local
        {
            self.batch.advance();
            return Some(event);
        }
        if local < until { self.local.take() } else { None }
    }
}

impl LocalEvents {
    #[inline]
    fn put(&mut self, made: LocalEvent) {
        self.next = self.next.min(made.1.key());
        if self.few.len() == FEW {
            self.rest.push(Reverse(made));
            return;
        }
        // The newest event is mostly the last one.
        let key = made.key();
        let hole = self.few.iter().position(|other| other.key() < key).unwrap_or(self.few.len());
        self.few.insert(hole, made);
    }

    #[inline]
    fn take(&mut self) -> Option<Event> {
        let from_rest = match (self.few.last(), self.rest.peek()) {
            (Some(few), Some(Reverse(rest))) => rest.key() < few.key(),
            (few, _) => few.is_none(),
        };
        let taken = if from_rest { self.rest.pop().map(|Reverse(made)| made) } else { self.few.pop() };
        let few = self.few.last().map_or(NO_KEY, |made| made.1.key());
        self.next = self.rest.peek().map_or(few, |Reverse(made)| few.min(made.1.key()));
        taken.map(|made| made.1)
    }
}

impl LocalEvent {
    #[inline]
    fn key(&self) -> (u64, u64) {
        (self.1.at, u64::from(self.1.priority()) << 32 | self.0 & 0xffff_ffff)
    }
}

impl Ord for LocalEvent {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for LocalEvent {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aqumen_transport::tcp::Segment;
    use aqumen_units::{Ecn, Instant};
    use proptest::prelude::*;

    const STEP_BITS: u32 = 6;

    fn take(process: &mut Process, until: EventKey) -> Option<Event> {
        loop {
            let event = process.take(until);
            if event.is_some() || !process.step(until, u64::MAX, &mut Vec::new()) {
                return event;
            }
        }
    }

    /// Lets everything happen that is scheduled at first and, after every second event, the next of `children`: (how
    /// far ahead, priority). Returns the events in order.
    fn drain(first: &[(u64, u32)], children: &[(u64, u32)], end: u64) -> Vec<(u64, u32)> {
        let mut process = Process::new(STEP_BITS, 512, None);
        first.iter().for_each(|&(at, priority)| process.push(Event::timer(at, priority)));
        let (mut children, mut seen) = (children.iter(), Vec::new());
        while let Some(event) = take(&mut process, (end, 0)) {
            seen.push((event.at, event.priority()));
            if seen.len() % 2 == 0
                && let Some(&(ahead, priority)) = children.next()
            {
                process.push(Event::timer(event.at + ahead, priority));
            }
        }
        seen
    }

    #[test]
    fn equal_moments_are_ordered_by_rank() {
        let seen = drain(&[(5, 3), (5, 1), (2, 9), (5, 2)], &[], 64);
        assert_eq!(seen, [(2, 9), (5, 1), (5, 2), (5, 3)]);
    }

    #[test]
    fn packets_of_a_burst_stay_in_order_whether_queued_or_local() {
        let packet = |seq| {
            let (bytes, ecn, sent_at) = (1000, Ecn::NotEct, Instant::ZERO);
            let flags = (false, false, false, false);
            let (cwr, syn, push, retransmission) = flags;
            Event::segment(&Segment { seq, bytes, ecn, cwr, syn, push, retransmission, sent_at }, 0).moved(99, 7)
        };
        let mut process = Process::new(STEP_BITS, 512, None);
        (0..3).for_each(|seq| process.push(packet(seq)));
        assert!(take(&mut process, (99, 0)).is_none(), "the step has begun");
        (3..6).for_each(|seq| process.push(packet(seq)));
        let seen: Vec<u32> =
            std::iter::from_fn(|| take(&mut process, (128, 0))).map(|event| event.as_segment().seq).collect();
        assert_eq!(seen, [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn no_event_is_taken_before_its_key() {
        let mut process = Process::new(STEP_BITS, 512, None);
        [(4, 2), (4, 8), (4, 5)].iter().for_each(|&(at, priority)| process.push(Event::timer(at, priority)));
        let mut until =
            |turn| std::iter::from_fn(|| take(&mut process, turn)).map(|event| event.priority()).collect::<Vec<_>>();
        assert!(until((4, 2)).is_empty());
        assert_eq!(until((4, 6)), [2, 5]);
        assert_eq!(until((5, 0)), [8]);
    }

    #[test]
    fn a_process_skips_empty_steps() {
        // Steps of 64 ns.
        let mut process = Process::new(STEP_BITS, 512, None);
        [(10, 2), (6400, 2), (1 << 40, 2)].iter().for_each(|&(at, priority)| process.push(Event::timer(at, priority)));
        let mut next = |due| {
            let until = (1 << 41, 0);
            let event = process.take(until);
            let goes_on = event.is_some() || process.step(until, due, &mut Vec::new());
            (event.map(|event| event.at), goes_on, process.step_end().0)
        };
        assert_eq!(next(u64::MAX), (Some(10), true, 64));
        assert_eq!(next(u64::MAX), (None, true, 6464));
        assert_eq!(next(u64::MAX), (Some(6400), true, 6464));
        // Events outside the queue: in this step, then in a later one.
        assert_eq!(next(6463), (None, false, 6464));
        assert_eq!(next(7000), (None, true, 7040));
        assert_eq!(next(u64::MAX), (None, true, (1 << 40) + 64));
        assert_eq!(next(u64::MAX), (Some(1 << 40), true, (1 << 40) + 64));
        assert_eq!(next(u64::MAX), (None, false, (1 << 40) + 64));
    }

    proptest! {
        /// A process returns the events of a sorted list, whatever events it makes itself and however far ahead.
        #[test]
        fn a_process_equals_a_sorted_list(
            first in prop::collection::vec((0u64..4000, 0u32..9), 1..60),
            children in prop::collection::vec((0u64..3000, 0u32..9), 0..60),
        ) {
            let mut pending: Vec<(u64, u32, usize)> = first.iter().zip(0..).map(|(&(at, priority), n)| (at, priority, n)).collect();
            let (mut rest, mut expected) = (children.iter(), Vec::new());
            while let Some(next) = pending.iter().copied().min() {
                pending.retain(|event| *event != next);
                expected.push((next.0, next.1));
                if expected.len() % 2 == 0 && let Some(&(ahead, priority)) = rest.next() {
                    pending.push((next.0 + ahead, priority, 1000 + expected.len()));
                }
            }
            let last = expected.last().map_or(0, |&(at, _)| at);
            prop_assert_eq!(drain(&first, &children, last + 1), expected);
        }
    }
}
