//! The mailboxes that all bulk senders, and all bulk receivers, share: their packets and their timers.

use aqumen_units::Span;

use super::moment::NEVER;
use crate::calendar::CalendarQueue;
use crate::event::{Event, Words};

#[derive(Clone)]
pub(super) struct BulkMailbox {
    /// Packets that reach an endpoint; the flow replaces the priority.
    packets: CalendarQueue<Event>,
    /// Packets of the current epoch.
    packets_now: Vec<Event>,
    /// Spare memory for packets.
    spare: Vec<Event>,
    /// Times and flows of timers.
    timers: CalendarQueue<(u64, u32)>,
    timers_now: Vec<(u64, u32)>,
    /// Number of timers that come after the time reached.
    passed: usize,
}

/// Mailbox of the bulk senders, with their starts and timer rounds.
#[derive(Clone)]
pub(super) struct BulkSenders {
    pub(super) mailbox: BulkMailbox,
    /// An epoch is 2^width_bits nanoseconds long.
    width_bits: u32,
    pub(super) round: Round,
    pub(super) starts: Starts,
    /// Lower bound on the time of the sender's next acknowledgement, for each acknowledgement of the epoch. Empty where
    /// no sender delays its segments.
    next_acks: Vec<u64>,
    /// Time of each flow's acknowledgement that the backward pass met last.
    first_acks: Vec<u64>,
}

/// Round through the retransmission timers of all bulk senders.
///
/// Each acknowledgement moves a timer, and few ever expire. A timer expires no sooner than the least timeout after it
/// was moved, so a round per such time finds all timers that could expire before the next round.
#[derive(Clone)]
pub(super) struct Round {
    /// Time between rounds, at most the least timeout; `NEVER`: no rounds, each timer has its event.
    pub(super) every: u64,
    /// Time up to which events are done.
    pub(super) now: u64,
    /// Latest time of the next round.
    pub(super) next: u64,
}

/// First starts of senders: times and flows, in order.
#[derive(Clone, Default)]
pub(super) struct Starts {
    all: Vec<(u64, u32)>,
    done: usize,
}

/// Rounds per least timeout.
const ROUNDS: u64 = 2;

impl BulkMailbox {
    /// Makes a mailbox. Most packets lie less than `horizon_ns` ahead, most timers less than `timer_horizon_ns`.
    pub(super) fn new(width_bits: u32, horizon_ns: u64, timer_horizon_ns: u64) -> Self {
        BulkMailbox {
            packets: CalendarQueue::new(width_bits, horizon_ns),
            packets_now: Vec::new(),
            spare: Vec::new(),
            timers: CalendarQueue::new(width_bits, timer_horizon_ns),
            timers_now: Vec::new(),
            passed: 0,
        }
    }

    /// Adds a packet for the endpoint of the flow that stands in place of its priority.
    #[inline(always)]
    pub(super) fn push(&mut self, event: Event) {
        if !self.packets.push_ahead(event) {
            self.push_rarely(event.words());
        }
    }

    #[cold]
    #[inline(never)]
    fn push_rarely(&mut self, words: Words) {
        self.packets.push(Event::from_words(words));
    }

    /// Schedules a timer of the endpoint of `flow` at `at`.
    #[inline]
    pub(super) fn schedule(&mut self, at: u64, flow: u32) {
        self.timers.push((at, flow));
    }

    /// Takes over the packets of `epoch` that the other worker sent to its copy `theirs` of this mailbox.
    pub(super) fn admit(&mut self, theirs: &mut BulkMailbox, epoch: u64) {
        theirs.packets.hand_over(epoch, &mut self.packets);
    }

    /// Opens `epoch`; there are no events before it.
    pub(super) fn open(&mut self, epoch: u64) {
        self.packets.open(epoch, &mut self.packets_now);
        self.timers.open(epoch, &mut self.timers_now);
    }

    /// Returns the next epoch with a packet or a timer.
    pub(super) fn next_epoch(&self) -> u64 {
        self.packets.next_bucket().min(self.timers.next_bucket())
    }

    /// Returns whether the current epoch has no packets and timers.
    pub(super) fn is_idle(&self) -> bool {
        self.packets_now.is_empty() && self.timers_now.is_empty() && self.timers.is_idle()
    }

    /// Takes the packets before `until` of the current epoch, which ends at `end`.
    pub(super) fn take_packets(&mut self, until: u64, end: u64) -> Vec<Event> {
        let mut events = std::mem::take(&mut self.packets_now);
        if until < end {
            // Later packets stay, in their order.
            let mut early = std::mem::take(&mut self.spare);
            early.extend(events.extract_if(.., |event| event.at < until));
            self.packets_now = std::mem::replace(&mut events, early);
        }
        events
    }

    /// Returns memory to the mailbox.
    pub(super) fn give_back(&mut self, mut events: Vec<Event>) {
        events.clear();
        // Packets that were left over have their own memory; otherwise the queue reuses this one.
        if self.packets_now.capacity() == 0 {
            self.packets_now = events;
        } else {
            self.spare = events;
        }
    }

    /// Takes a flow with a timer in the current epoch and before `until`; `None` when there is none left.
    pub(super) fn take_timer(&mut self, until: u64) -> Option<u32> {
        loop {
            while let Some(&(at, flow)) = self.timers_now.get(self.passed) {
                if at < until {
                    self.timers_now.swap_remove(self.passed);
                    return Some(flow);
                }
                self.passed += 1;
            }
            // Timers that were added since then.
            self.timers.take(&mut self.timers_now);
            if self.passed == self.timers_now.len() {
                self.passed = 0;
                return None;
            }
        }
    }
}

impl BulkSenders {
    /// Makes the mailbox. `timeout`: least time from setting a sender's timer to its expiry. `waiting`: number of flows
    /// if senders delay their segments at random, otherwise 0.
    pub(super) fn new(
        mailbox: BulkMailbox,
        width_bits: u32,
        waiting: usize,
        timeout: Option<Span>,
        starts: Starts,
    ) -> Self {
        // An epoch in which a timer could be set and expire is too long for rounds.
        let timeout = timeout.map(Span::as_nanos).filter(|timeout| 2 << width_bits <= *timeout);
        // More often than necessary: fewer timers are then scheduled in vain.
        let every = timeout.map_or(NEVER, |timeout| timeout / ROUNDS);
        BulkSenders {
            mailbox,
            width_bits,
            round: Round { every, now: 0, next: if every == NEVER { NEVER } else { 0 } },
            starts,
            next_acks: Vec::new(),
            first_acks: vec![0; waiting],
        }
    }

    /// Makes this mailbox a copy for messages to the other worker, which [takes them over](BulkMailbox::admit).
    pub(super) fn stand_in(&mut self) {
        self.round = Round { every: NEVER, now: 0, next: NEVER };
        self.starts = Starts::default();
        self.first_acks = Vec::new();
    }

    /// Opens `epoch`, which begins at `start`; there are no events before it.
    pub(super) fn open(&mut self, epoch: u64, start: u64) {
        self.round.now = start;
        self.mailbox.open(epoch);
    }

    /// Returns the next round; timers due no sooner need no event yet.
    #[inline(always)]
    pub(super) fn next_round(&self) -> u64 {
        self.round.next
    }

    /// Returns the next epoch with an event of a sender or a timer round.
    pub(super) fn next_epoch(&self) -> u64 {
        self.mailbox.next_epoch().min(self.round.next.min(self.starts.next()) >> self.width_bits)
    }

    /// Returns whether no sender has an event in the current epoch and before `until`.
    pub(super) fn is_idle(&self, until: u64) -> bool {
        self.mailbox.is_idle() && self.starts.next() >= until
    }

    /// Takes the acknowledgements of the current epoch before `until`, and the time of each sender's next one.
    pub(super) fn take_acks(&mut self, until: u64, end: u64) -> (Vec<Event>, Vec<u64>) {
        let events = self.mailbox.take_packets(until, end);
        let mut next_acks = std::mem::take(&mut self.next_acks);
        next_acks.clear();
        if !self.first_acks.is_empty() {
            next_acks.resize(events.len(), until);
            for (event, next) in events.iter().zip(&mut next_acks).rev() {
                let first = &mut self.first_acks[event.priority() as usize];
                let known = std::mem::replace(first, event.at);
                // Entries of earlier passes lie before. The choice is unpredictable, so it has no branch.
                *next = if known >= event.at { known } else { until };
            }
        }
        (events, next_acks)
    }

    /// Returns memory to the mailbox.
    pub(super) fn give_back(&mut self, events: Vec<Event>, next_acks: Vec<u64>) {
        self.next_acks = next_acks;
        self.mailbox.give_back(events);
    }
}

impl Starts {
    /// Sorts the starts of flows.
    pub(super) fn new(mut all: Vec<(u64, u32)>) -> Self {
        all.sort_unstable();
        Starts { all, done: 0 }
    }

    /// Returns the time of the next start; `NEVER` if all have started.
    #[inline]
    fn next(&self) -> u64 {
        self.all.get(self.done).map_or(NEVER, |&(at, _)| at)
    }

    /// Takes the next start, if it comes before `until`.
    pub(super) fn take(&mut self, until: u64) -> Option<(u64, u32)> {
        let start = self.all.get(self.done).copied().filter(|&(at, _)| at < until)?;
        self.done += 1;
        Some(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_start_in_the_order_of_their_moments_and_none_before_its_own() {
        let mut starts = Starts::new(vec![(30, 1), (10, 2), (30, 0), (50, 3)]);
        let mut before =
            |until| (std::iter::from_fn(|| starts.take(until)).collect::<Vec<(u64, u32)>>(), starts.next());
        assert_eq!(before(10), (vec![], 10));
        assert_eq!(before(31), (vec![(10, 2), (30, 0), (30, 1)], 50));
        assert_eq!(before(NEVER), (vec![(50, 3)], NEVER));
    }

    #[test]
    fn ends_are_idle_where_nothing_is_left_to_do_before_the_moment() {
        // Supersteps of 16 ns: a packet at 20 and a timer at 25 lie in the second, the first start in the third.
        let starts = Starts::new(vec![(40, 3)]);
        let mut senders = BulkSenders::new(BulkMailbox::new(4, 256, 256), 4, 0, None, starts);
        senders.mailbox.push(Event::timer(20, 1));
        senders.mailbox.schedule(25, 2);
        senders.open(1, 16);
        assert!(!senders.is_idle(32));
        let (events, next_acks) = senders.take_acks(32, 32);
        assert_eq!((events.len(), senders.is_idle(32)), (1, false));
        senders.give_back(events, next_acks);
        assert_eq!((senders.mailbox.take_timer(32), senders.is_idle(32)), (Some(2), true));
        assert_eq!(senders.mailbox.take_timer(32), None);
        // Set meanwhile, for the same epoch.
        senders.mailbox.schedule(30, 1);
        assert!(!senders.is_idle(32));
        assert_eq!((senders.mailbox.take_timer(32), senders.mailbox.take_timer(32)), (Some(1), None));
        senders.open(2, 32);
        assert_eq!([40, 41].map(|until| senders.is_idle(until)), [true, false]);
    }
}
