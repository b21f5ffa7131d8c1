//! The inboxes that lone ends share, one the senders and one the receivers: the packets that reach them, and what they
//! may have to do by themselves.

use aqumen_units::Span;

use super::moment::NEVER;
use crate::event::{Event, Words};
use crate::inbox::Inbox;

pub(super) struct Lone {
    /// Packets that reach an end; its flow stands for the rank.
    packets: Inbox<Event>,
    /// Those of the present superstep.
    packets_now: Vec<Event>,
    /// Memory for some of them.
    spare: Vec<Event>,
    /// Flows whose ends may have something to do by themselves, and when.
    timers: Inbox<(u64, u32)>,
    timers_now: Vec<(u64, u32)>,
    /// So many of those come later than what is done.
    passed: usize,
}

/// What is of senders alone.
pub(super) struct LoneSenders {
    pub(super) inbox: Lone,
    /// A superstep is 2^width_bits nanoseconds long.
    width_bits: u32,
    pub(super) round: Round,
    pub(super) starts: Starts,
    /// When the next acknowledgement after each of those at hand reaches the same sender, or no sooner than when. Empty
    /// where no sender waits before it sends.
    next_acks: Vec<u64>,
    /// When the one of each flow does that was met last in the pass that finds them, from the last to the first.
    first_acks: Vec<u64>,
}

/// The round that is made of all lone senders for their retransmission timers. Each acknowledgement moves one, and
/// hardly any goes off; none goes off sooner than the least timeout after it was moved. So a round comes at least each
/// time that has passed, and finds those that could go off before the next.
pub(super) struct Round {
    /// No more than the least timeout, nanoseconds; `NEVER`: there is no round, and each timer has its event.
    pub(super) every: u64,
    /// What was before is done.
    pub(super) now: u64,
    /// When the next round comes at the latest.
    pub(super) next: u64,
}

/// When senders begin, each for the first time: moments and flows, in order.
#[derive(Default)]
pub(super) struct Starts {
    all: Vec<(u64, u32)>,
    done: usize,
}

/// So many rounds are made in the least timeout.
const ROUNDS: u64 = 2;

impl Lone {
    /// Most packets come less than `horizon_ns` ahead, most timers less than `timer_horizon_ns`.
    pub(super) fn new(width_bits: u32, horizon_ns: u64, timer_horizon_ns: u64) -> Self {
        Lone {
            packets: Inbox::new(width_bits, horizon_ns),
            packets_now: Vec::new(),
            spare: Vec::new(),
            timers: Inbox::new(width_bits, timer_horizon_ns),
            timers_now: Vec::new(),
            passed: 0,
        }
    }

    /// A packet will reach the end of the flow that stands for its rank.
    #[inline(always)]
    pub(super) fn post(&mut self, event: Event) {
        if !self.packets.post_ahead(event) {
            self.post_rarely(event.words());
        }
    }

    #[cold]
    #[inline(never)]
    fn post_rarely(&mut self, words: Words) {
        self.packets.post(Event::of_words(words));
    }

    /// The end of `flow` may have something to do at `at`.
    #[inline]
    pub(super) fn schedule(&mut self, at: u64, flow: u32) {
        self.timers.post((at, flow));
    }

    /// What the other half of a run has posted to its stand-in, `theirs`, and lies in `superstep` reaches ends here.
    pub(super) fn admit(&mut self, theirs: &mut Lone, superstep: u64) {
        theirs.packets.hand_over(superstep, &mut self.packets);
    }

    /// Opens `superstep`; nothing happens before.
    pub(super) fn open(&mut self, superstep: u64) {
        self.packets.open(superstep, &mut self.packets_now);
        self.timers.open(superstep, &mut self.timers_now);
    }

    /// The next superstep in which an end may have something to do.
    pub(super) fn next_superstep(&self) -> u64 {
        self.packets.next_bucket().min(self.timers.next_bucket())
    }

    /// Whether there is nothing to do in the present superstep.
    pub(super) fn is_idle(&self) -> bool {
        self.packets_now.is_empty() && self.timers_now.is_empty() && self.timers.is_idle()
    }

    /// Takes the packets of the present superstep, which ends at `end`, before `until`.
    pub(super) fn take_packets(&mut self, until: u64, end: u64) -> Vec<Event> {
        let mut events = std::mem::take(&mut self.packets_now);
        if until < end {
            // Those for later stay, in their order.
            let mut early = std::mem::take(&mut self.spare);
            early.extend(events.extract_if(.., |event| event.at < until));
            self.packets_now = std::mem::replace(&mut events, early);
        }
        events
    }

    /// Takes the memory back.
    pub(super) fn give_back(&mut self, mut events: Vec<Event>) {
        events.clear();
        // What was not taken at the first time has memory of its own; else the inbox wants it back.
        if self.packets_now.capacity() == 0 {
            self.packets_now = events;
        } else {
            self.spare = events;
        }
    }

    /// Takes a flow whose end may have something to do by itself in the present superstep and before `until`, one after
    /// the other until there is none.
    pub(super) fn take_timer(&mut self, until: u64) -> Option<u32> {
        loop {
            while let Some(&(at, flow)) = self.timers_now.get(self.passed) {
                if at < until {
                    self.timers_now.swap_remove(self.passed);
                    return Some(flow);
                }
                self.passed += 1;
            }
            // What was posted since then.
            self.timers.take(&mut self.timers_now);
            if self.passed == self.timers_now.len() {
                self.passed = 0;
                return None;
            }
        }
    }
}

impl LoneSenders {
    /// `timeout`: no sender's timer is due sooner than this after what sets it. `waiting`: so many flows there are, if
    /// a sender may wait for a random time before it sends; none otherwise.
    pub(super) fn new(inbox: Lone, width_bits: u32, waiting: usize, timeout: Option<Span>, starts: Starts) -> Self {
        // A superstep in which a timer could be set and go off is too long.
        let timeout = timeout.map(Span::as_nanos).filter(|timeout| 2 << width_bits <= *timeout);
        // More often than need be: of those that could go off before the next round, fewer then are moved before.
        let every = timeout.map_or(NEVER, |timeout| timeout / ROUNDS);
        LoneSenders {
            inbox,
            width_bits,
            round: Round { every, now: 0, next: if every == NEVER { NEVER } else { 0 } },
            starts,
            next_acks: Vec::new(),
            first_acks: vec![0; waiting],
        }
    }

    /// The senders are in the other half of the run: what is posted to them here is [admitted](Lone::admit) there.
    pub(super) fn stand_in(&mut self) {
        self.round = Round { every: NEVER, now: 0, next: NEVER };
        self.starts = Starts::default();
        self.first_acks = Vec::new();
    }

    /// Opens `superstep`, which begins at `start`; nothing happens before.
    pub(super) fn open(&mut self, superstep: u64, start: u64) {
        self.round.now = start;
        self.inbox.open(superstep);
    }

    /// A sender's timer that is due no sooner needs no event yet.
    #[inline(always)]
    pub(super) fn next_round(&self) -> u64 {
        self.round.next
    }

    /// The next superstep in which a sender may have something to do, or a round comes.
    pub(super) fn next_superstep(&self) -> u64 {
        self.inbox.next_superstep().min(self.round.next.min(self.starts.next()) >> self.width_bits)
    }

    /// Whether no sender has anything to do in the present superstep and before `until`.
    pub(super) fn is_idle(&self, until: u64) -> bool {
        self.inbox.is_idle() && self.starts.next() >= until
    }

    /// Takes the acknowledgements of the present superstep before `until`, and finds for each the next of the same
    /// sender.
    pub(super) fn take_acks(&mut self, until: u64, end: u64) -> (Vec<Event>, Vec<u64>) {
        let events = self.inbox.take_packets(until, end);
        let mut next_acks = std::mem::take(&mut self.next_acks);
        next_acks.clear();
        if !self.first_acks.is_empty() {
            next_acks.resize(events.len(), until);
            for (event, next) in events.iter().zip(&mut next_acks).rev() {
                let first = &mut self.first_acks[event.rank() as usize];
                let known = std::mem::replace(first, event.at);
                // What earlier passes left lies before. Chosen without a branch, which nobody could foretell.
                *next = if known >= event.at { known } else { until };
            }
        }
        (events, next_acks)
    }

    /// Takes the memory back.
    pub(super) fn give_back(&mut self, events: Vec<Event>, next_acks: Vec<u64>) {
        self.next_acks = next_acks;
        self.inbox.give_back(events);
    }
}

impl Starts {
    /// These flows start at these moments.
    pub(super) fn new(mut all: Vec<(u64, u32)>) -> Self {
        all.sort_unstable();
        Starts { all, done: 0 }
    }

    /// When the next is; `NEVER`: all have started.
    #[inline]
    fn next(&self) -> u64 {
        self.all.get(self.done).map_or(NEVER, |&(at, _)| at)
    }

    /// Takes the next, if it comes before `until`.
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
        let mut senders = LoneSenders::new(Lone::new(4, 256, 256), 4, 0, None, starts);
        senders.inbox.post(Event::timer(20, 1));
        senders.inbox.schedule(25, 2);
        senders.open(1, 16);
        assert!(!senders.is_idle(32));
        let (events, next_acks) = senders.take_acks(32, 32);
        assert_eq!((events.len(), senders.is_idle(32)), (1, false));
        senders.give_back(events, next_acks);
        assert_eq!((senders.inbox.take_timer(32), senders.is_idle(32)), (Some(2), true));
        assert_eq!(senders.inbox.take_timer(32), None);
        // Set meanwhile, for the same superstep.
        senders.inbox.schedule(30, 1);
        assert!(!senders.is_idle(32));
        assert_eq!((senders.inbox.take_timer(32), senders.inbox.take_timer(32)), (Some(1), None));
        senders.open(2, 32);
        assert_eq!([40, 41].map(|until| senders.is_idle(until)), [true, false]);
    }
}
