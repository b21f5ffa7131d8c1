//! A place: whatever shares state, and what is to happen there. It goes through a superstep by itself.
//!
//! It does so in steps, as long as the superstep or shorter. What others posted, and what the place itself put off to a
//! later step, lies in its inbox and is sorted when the step begins; what it makes itself within a step waits in a
//! heap, which is small. The order is that of moments, then of ranks, then first come first served. Steps in which
//! nothing is due are passed over.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::batch::{Batch, Turn};
use crate::event::{Event, Words};
use crate::inbox::Inbox;

pub(super) struct Place {
    /// A step is 2^step_bits nanoseconds long. Number of the present one, and when it ends.
    step_bits: u32,
    step: u64,
    step_end: u64,
    inbox: Inbox<Event>,
    /// What lay in the inbox when the step began.
    pub(super) batch: Batch,
    own: Own,
    made: u64,
    /// The port that is all there is here, if that is so.
    pub(super) only_port: Option<u32>,
}

/// What a place made itself in this step: few, the last comes first; where they are many, the rest in a heap.
struct Own {
    few: Vec<Made>,
    rest: BinaryHeap<Reverse<Made>>,
    /// The turn of the first.
    next: Turn,
}

/// Something that the place made itself: the how-manieth, and what.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Made(u64, Event);

/// More are not moved about one by one.
const FEW: usize = 24;

/// After everything.
pub(super) const NO_TURN: Turn = (u64::MAX, u32::MAX);

impl Place {
    pub(super) fn new(step_bits: u32, horizon_ns: u64, only_port: Option<u32>) -> Self {
        Place {
            step_bits,
            step: 0,
            step_end: 1 << step_bits,
            inbox: Inbox::new(step_bits, horizon_ns),
            batch: Batch::default(),
            own: Own { few: Vec::with_capacity(FEW), rest: BinaryHeap::new(), next: NO_TURN },
            made: 0,
            only_port,
        }
    }

    /// `event`, of this step or a later one, is to happen here.
    #[inline(always)]
    pub(super) fn post(&mut self, event: Event) {
        // A bucket of the inbox is a step.
        if !self.inbox.post_ahead(event) {
            self.post_rarely(event.words());
        }
    }

    /// The same of one that lies in this step or far ahead.
    #[inline(never)]
    fn post_rarely(&mut self, words: Words) {
        let event = Event::of_words(words);
        if event.at < self.step_end {
            self.made += 1;
            self.own.put(Made(self.made, event));
        } else {
            self.inbox.post(event);
        }
    }

    /// Begins the next step in which something is due, if it begins before `until`: what lies in the inbox, or what the
    /// place knows by other means to be due at `due`.
    #[inline(never)]
    pub(super) fn step(&mut self, until: Turn, due: u64, counts: &mut Vec<u32>) -> bool {
        // What is due in this step, and not before `until`, comes before all in the inbox.
        if (self.step_end, 0) >= until || due < self.step_end {
            return false;
        }
        let step = self.inbox.next_bucket().min(due >> self.step_bits);
        if step > until.0 >> self.step_bits || (step << self.step_bits, 0) >= until {
            return false;
        }
        debug_assert!(self.own.next == NO_TURN, "something was left over");
        self.step = step;
        self.made = 0;
        self.step_end = (step + 1) << self.step_bits;
        self.batch.open(&mut self.inbox, self.step, self.step_bits, counts);
        true
    }

    /// What the other half of a run has posted to its stand-in, `theirs`, and lies before `until` is to happen here.
    pub(super) fn admit(&mut self, theirs: &mut Place, until: u64) {
        loop {
            let step = theirs.inbox.next_bucket();
            if step >= until >> self.step_bits {
                return;
            }
            theirs.inbox.hand_over(step, &mut self.inbox);
        }
    }

    /// No event comes sooner from the inbox, once all of the present step are done: the start of a
    /// step; `u64::MAX`: none comes.
    pub(super) fn next_due(&self) -> u64 {
        self.inbox.next_bucket().saturating_mul(1 << self.step_bits)
    }

    /// The first turn that is not in the present step.
    #[inline(always)]
    pub(super) fn step_end(&self) -> Turn {
        (self.step_end, 0)
    }

    /// Takes what comes next in this step, if its turn comes before `until`. What was posted before the step began goes
    /// before what equals it in moment and rank and was made later.
    #[inline(always)]
    pub(super) fn take(&mut self, until: Turn) -> Option<Event> {
        let own = self.own.next;
        if let Some(event) = self.batch.next_before(until)
            && event.turn() <= own
        {
            self.batch.advance();
            return Some(event);
        }
        if own < until { self.own.take() } else { None }
    }
}

impl Own {
    #[inline]
    fn put(&mut self, made: Made) {
        self.next = self.next.min(made.1.turn());
        if self.few.len() == FEW {
            self.rest.push(Reverse(made));
            return;
        }
        // What was made last comes last, more often than not.
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
        let few = self.few.last().map_or(NO_TURN, |made| made.1.turn());
        self.next = self.rest.peek().map_or(few, |Reverse(made)| few.min(made.1.turn()));
        taken.map(|made| made.1)
    }
}

impl Made {
    #[inline]
    fn key(&self) -> (u64, u64) {
        (self.1.at, u64::from(self.1.rank()) << 32 | self.0 & 0xffff_ffff)
    }
}

impl Ord for Made {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Made {
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

    fn take(place: &mut Place, until: Turn) -> Option<Event> {
        loop {
            let event = place.take(until);
            if event.is_some() || !place.step(until, u64::MAX, &mut Vec::new()) {
                return event;
            }
        }
    }

    /// Lets everything happen that is scheduled at first and, after every second event, the next of `children`: (how
    /// far ahead, rank). Says what happened.
    fn drain(first: &[(u64, u32)], children: &[(u64, u32)], end: u64) -> Vec<(u64, u32)> {
        let mut place = Place::new(STEP_BITS, 512, None);
        first.iter().for_each(|&(at, rank)| place.post(Event::timer(at, rank)));
        let (mut children, mut seen) = (children.iter(), Vec::new());
        while let Some(event) = take(&mut place, (end, 0)) {
            seen.push((event.at, event.rank()));
            if seen.len() % 2 == 0
                && let Some(&(ahead, rank)) = children.next()
            {
                place.post(Event::timer(event.at + ahead, rank));
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
    fn packets_of_one_burst_stay_in_order_whether_posted_or_made() {
        let packet = |seq| {
            let (bytes, ecn, sent_at) = (1000, Ecn::NotEct, Instant::ZERO);
            let flags = (false, false, false, false);
            let (cwr, syn, push, retransmission) = flags;
            Event::segment(&Segment { seq, bytes, ecn, cwr, syn, push, retransmission, sent_at }, 0).moved(99, 7)
        };
        let mut place = Place::new(STEP_BITS, 512, None);
        (0..3).for_each(|seq| place.post(packet(seq)));
        assert!(take(&mut place, (99, 0)).is_none(), "the step has begun");
        (3..6).for_each(|seq| place.post(packet(seq)));
        let seen: Vec<u32> =
            std::iter::from_fn(|| take(&mut place, (128, 0))).map(|event| event.as_segment().seq).collect();
        assert_eq!(seen, [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn nothing_goes_before_its_turn() {
        let mut place = Place::new(STEP_BITS, 512, None);
        [(4, 2), (4, 8), (4, 5)].iter().for_each(|&(at, rank)| place.post(Event::timer(at, rank)));
        let mut until =
            |turn| std::iter::from_fn(|| take(&mut place, turn)).map(|event| event.rank()).collect::<Vec<_>>();
        assert!(until((4, 2)).is_empty());
        assert_eq!(until((4, 6)), [2, 5]);
        assert_eq!(until((5, 0)), [8]);
    }

    #[test]
    fn a_place_passes_over_steps_in_which_nothing_is_due() {
        // Steps of 64 ns.
        let mut place = Place::new(STEP_BITS, 512, None);
        [(10, 2), (6400, 2), (1 << 40, 2)].iter().for_each(|&(at, rank)| place.post(Event::timer(at, rank)));
        let mut next = |due| {
            let until = (1 << 41, 0);
            let event = place.take(until);
            let goes_on = event.is_some() || place.step(until, due, &mut Vec::new());
            (event.map(|event| event.at), goes_on, place.step_end().0)
        };
        assert_eq!(next(u64::MAX), (Some(10), true, 64));
        assert_eq!(next(u64::MAX), (None, true, 6464));
        assert_eq!(next(u64::MAX), (Some(6400), true, 6464));
        // What the place itself knows of: in this step, then in a later one.
        assert_eq!(next(6463), (None, false, 6464));
        assert_eq!(next(7000), (None, true, 7040));
        assert_eq!(next(u64::MAX), (None, true, (1 << 40) + 64));
        assert_eq!(next(u64::MAX), (Some(1 << 40), true, (1 << 40) + 64));
        assert_eq!(next(u64::MAX), (None, false, (1 << 40) + 64));
    }

    proptest! {
        /// A place gives what a sorted list gives, whatever it makes itself on its way and however far ahead.
        #[test]
        fn a_place_gives_what_a_sorted_list_gives(
            first in prop::collection::vec((0u64..4000, 0u32..9), 1..60),
            children in prop::collection::vec((0u64..3000, 0u32..9), 0..60),
        ) {
            let mut pending: Vec<(u64, u32, usize)> = first.iter().zip(0..).map(|(&(at, rank), n)| (at, rank, n)).collect();
            let (mut rest, mut expected) = (children.iter(), Vec::new());
            while let Some(next) = pending.iter().copied().min() {
                pending.retain(|event| *event != next);
                expected.push((next.0, next.1));
                if expected.len() % 2 == 0 && let Some(&(ahead, rank)) = rest.next() {
                    pending.push((next.0 + ahead, rank, 1000 + expected.len()));
                }
            }
            let last = expected.last().map_or(0, |&(at, _)| at);
            prop_assert_eq!(drain(&first, &children, last + 1), expected);
        }
    }
}
