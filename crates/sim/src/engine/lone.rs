//! Lone ends: senders and receivers of bulk transfers, each a place by itself. There are so many, and each has so
//! little to do in a window, that they share their inboxes; nothing needs sorting, since what reaches one end over
//! its last lane comes in order.

use aqumen_transport::tcp::TcpConfig;
use aqumen_units::Span;

use super::hosts::{Departure, FlowState, Hosts};
use super::ways::Ways;
use super::{NEVER, instant};
use crate::event::{Event, Words};
use crate::inbox::Inbox;

pub(super) struct Lone {
    /// A window is 2^width_bits nanoseconds long.
    width_bits: u32,
    /// Packets that reach an end: a flow's sender, or with `RECEIVER` its receiver, is in the place of the slot.
    packets: Inbox<Event>,
    /// Those of the present window.
    packets_now: Vec<Event>,
    /// Memory for some of them.
    spare: Vec<Event>,
    /// Flows whose ends may have something to do by themselves, and when.
    timers: Inbox<(u64, u32)>,
    timers_now: Vec<(u64, u32)>,
    round: Round,
    /// When the next acknowledgement after each of those at hand reaches the same sender, nanoseconds in this window.
    /// Empty where no sender waits before it sends.
    next_acks: Vec<u32>,
    /// The same for each flow, in the pass that finds them: of which pass, above when.
    first_acks: Vec<u64>,
    pass: u32,
}

/// The round that is made of all lone senders for their retransmission timers. Each acknowledgement moves one, and
/// hardly any goes off; none goes off sooner than the least timeout after it was moved. So a round comes at least each
/// time that has passed, and finds those that could go off before the next.
struct Round {
    /// No more than the least timeout, nanoseconds; `NEVER`: there is no round, and each timer has its event.
    every: u64,
    /// What was before is done.
    now: u64,
    /// When the next round comes at the latest.
    next: u64,
}

/// So many rounds are made in the least timeout.
const ROUNDS: u64 = 2;

/// Set where a packet reaches a receiver.
const RECEIVER: u32 = 1 << 31;

/// Nothing more in this window.
const NO_MORE: u32 = u32::MAX;

impl Lone {
    /// `timeout`: no sender's timer is due sooner than this after what sets it. `waiting`: so many flows there are, if
    /// a sender may wait for a random time before it sends; none otherwise.
    pub(super) fn new(
        width_bits: u32,
        horizon_ns: u64,
        timer_horizon_ns: u64,
        waiting: usize,
        timeout: Option<Span>,
    ) -> Self {
        // A window in which a timer could be set and go off is too long.
        let timeout = timeout.map(Span::as_nanos).filter(|timeout| 2 << width_bits <= *timeout);
        // More often than need be: of those that could go off before the next round, fewer then are moved before.
        let every = timeout.map_or(NEVER, |timeout| timeout / ROUNDS);
        Lone {
            width_bits,
            round: Round { every, now: 0, next: if every == NEVER { NEVER } else { 0 } },
            packets: Inbox::new(width_bits, horizon_ns),
            packets_now: Vec::new(),
            spare: Vec::new(),
            timers: Inbox::new(width_bits, timer_horizon_ns),
            timers_now: Vec::new(),
            next_acks: Vec::new(),
            first_acks: vec![0; waiting],
            pass: 0,
        }
    }

    /// An acknowledgement will reach the sender of the flow in the place of its slot.
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

    /// A segment will reach the receiver of that flow.
    pub(super) fn post_to_receiver(&mut self, event: Event) {
        self.post(event.moved(event.at, event.slot() | RECEIVER));
    }

    /// An end of `flow` may have something to do at `at`.
    #[inline]
    pub(super) fn schedule(&mut self, at: u64, flow: u32) {
        self.timers.post((at, flow));
    }

    /// Opens `window`, which begins at `start`; nothing happens before.
    pub(super) fn open(&mut self, window: u64, start: u64) {
        self.round.now = start;
        self.packets.open(window, &mut self.packets_now);
        self.timers.open(window, &mut self.timers_now);
    }

    /// A sender's timer that is due no sooner needs no event yet.
    #[inline(always)]
    pub(super) fn next_round(&self) -> u64 {
        self.round.next
    }

    /// The next window in which an end may have something to do, or a round comes.
    pub(super) fn next_window(&self) -> u64 {
        self.packets.next_window().min(self.timers.next_window()).min(self.round.next >> self.width_bits)
    }

    /// Whether there is nothing to do in the present window.
    fn is_idle(&self) -> bool {
        self.packets_now.is_empty() && self.timers_now.is_empty() && self.timers.is_idle()
    }

    /// Takes the packets of the present window before `until`, and finds for each the next of the same sender.
    fn take_packets(&mut self, until: u64, (length, end): (u64, u64)) -> (Vec<Event>, Vec<u32>) {
        let start = end - length;
        let mut events = std::mem::take(&mut self.packets_now);
        if until < end {
            // Those for later stay, in their order.
            let mut early = std::mem::take(&mut self.spare);
            part(&mut events, &mut early, until);
            self.packets_now = std::mem::replace(&mut events, early);
        }
        let mut next_acks = std::mem::take(&mut self.next_acks);
        next_acks.clear();
        if !self.first_acks.is_empty() {
            next_acks.resize(events.len(), NO_MORE);
            if self.pass == u32::MAX {
                self.first_acks.fill(0);
                self.pass = 0;
            }
            self.pass += 1;
            for (event, next) in events.iter().zip(&mut next_acks).rev() {
                if let Some(first) = self.first_acks.get_mut(event.slot() as usize) {
                    // Read and written in one piece, and chosen without a branch, which nobody could foretell.
                    let known = std::mem::replace(first, u64::from(self.pass) << 32 | (event.at - start));
                    *next = if (known >> 32) as u32 == self.pass { known as u32 } else { NO_MORE };
                }
            }
        }
        (events, next_acks)
    }

    /// Takes the memory back.
    fn give_back(&mut self, mut events: Vec<Event>, next_acks: Vec<u32>) {
        self.next_acks = next_acks;
        events.clear();
        // What was not taken at the first time has memory of its own; else the inbox wants it back.
        if self.packets_now.capacity() == 0 {
            self.packets_now = events;
        } else {
            self.spare = events;
        }
    }
}

/// Why the loop stops.
enum Stop {
    /// All is done.
    Done,
    /// A sender has something to do by itself at this moment at the latest.
    Clock(u64),
    /// What the event says is to be worked in.
    Packet(Event),
    /// A sender is to send what it has at this moment.
    Send(u32, u64),
}

/// So many packets ahead, what they need is read.
const STEP: usize = 16;

impl Hosts<'_> {
    /// The lone ends go on up to, not including, `until`. How many events that was.
    pub(super) fn run_lone(&mut self, ways: &mut Ways<'_>, until: u64) -> u64 {
        if until > ways.post.lone.round.next {
            self.go_round(ways);
        }
        ways.post.lone.round.now = until;
        let window = ways.post.window();
        if ways.post.lone.is_idle() {
            return 0;
        }
        let (events, next_acks) = ways.post.lone.take_packets(until, window);
        let mut done = events.len() as u64;
        let mut place = 0;
        loop {
            let stop;
            (stop, place) = self.acknowledge(ways, &events, &next_acks, place, until);
            match stop {
                Stop::Clock(at) => done += self.run_sender_clock(ways, events[place].slot(), at),
                Stop::Send(flow, at) => self.pump(ways, flow, at),
                Stop::Packet(event) if event.slot() & RECEIVER == 0 => self.on_ack(ways, event.slot(), &event),
                Stop::Packet(event) => {
                    let flow = event.slot() & !RECEIVER;
                    done += run_receiver_clock(ways, flow, event.at);
                    ways.receive(flow, event.at, &event, ways.lanes.acks_of(flow));
                }
                Stop::Done => break,
            }
        }
        ways.post.lone.give_back(events, next_acks);
        done + self.run_lone_timers(ways, until)
    }

    /// The acknowledgements among `events` reach their senders, from `place` on; the next of the same flow
    /// reaches it at `next_acks`, in nanoseconds from the start of the window on, or no sooner than
    /// `until`. Why it stops, and where.
    #[inline(never)]
    fn acknowledge(
        &mut self,
        ways: &mut Ways<'_>,
        events: &[Event],
        next_acks: &[u32],
        mut place: usize,
        until: u64,
    ) -> (Stop, usize) {
        let (length, end) = ways.post.window();
        let start = end - length;
        let goes_round = ways.post.lone.next_round() != NEVER;
        while let Some(event) = events.get(place) {
            if ways.far && place.is_multiple_of(STEP) {
                self.read_senders(ways, &events[place..]);
            }
            let (flow, now) = (event.slot(), event.at);
            if flow & RECEIVER != 0 {
                place += 1;
                return (Stop::Packet(*event), place);
            }
            let state = &mut self.flows[flow as usize];
            if state.timer_at.min(state.send_at) <= now {
                return (Stop::Clock(now), place);
            }
            let next = next_acks.get(place).copied().unwrap_or(NO_MORE);
            place += 1;
            if event.kept().is_some() {
                return (Stop::Packet(*event), place);
            }
            let config = ways.configs[state.group as usize];
            if !state.sender.on_plain_ack(config, instant(now), event.as_plain_ack()) {
                on_other_ack(state, config, event);
            }
            state.touch(flow, &mut self.touched);
            if state.sender.is_urgent() {
                return (Stop::Send(flow, now), place);
            }
            let next_ack = if next == NO_MORE { until } else { start + u64::from(next) };
            let departure = if config.send_overhead > Span::ZERO {
                state.departure(config, now, ways.next_control, next_ack)
            } else if let Some(segments) = state.sender.allowance() {
                Departure::At(segments, now)
            } else {
                return (Stop::Send(flow, now), place);
            };
            match departure {
                Departure::None => {}
                Departure::At(segments, at) => {
                    for _ in 0..segments {
                        match state.sender.transmit_plain(config, instant(at)) {
                            Some(said) => {
                                ways.send_first(flow, at, &Event::plain_segment(config, said, at, state.epoch));
                            }
                            None => send_other(ways, state, config, flow, at),
                        }
                    }
                }
                Departure::Later(at) => ways.post.lone.schedule(at, flow),
            }
            if !goes_round && let Some(due) = state.rearm(NEVER) {
                ways.post.lone.schedule(due, flow);
            }
        }
        (Stop::Done, place)
    }

    /// Looks for timers that could go off before the next round.
    #[inline(never)]
    fn go_round(&mut self, ways: &mut Ways<'_>) {
        let Round { every, now, ref mut next } = ways.post.lone.round;
        *next = now.saturating_add(every);
        let before = *next;
        for (state, flow) in self.flows.iter_mut().zip(0u32..) {
            if state.sender.may_be_due(instant(before))
                && ways.post.is_lone_sender(flow)
                && let Some(due) = state.rearm(before)
            {
                ways.post.lone.schedule(due.max(now), flow);
            }
        }
    }

    /// Reads what the acknowledgements to come need. In a large network none of it is in the cache, and waiting for
    /// many at once takes no longer than for one.
    #[inline(never)]
    fn read_senders(&self, ways: &Ways<'_>, events: &[Event]) {
        let mut seen = 0;
        for event in events.iter().take(STEP) {
            let flow = event.slot() & !RECEIVER;
            let state = &self.flows[flow as usize];
            seen ^= state.sender.acknowledged_segments() ^ state.sender.stats().sent ^ state.group;
            seen ^= ways.lanes.touch(ways.lanes.first_of(flow));
        }
        std::hint::black_box(seen);
    }

    /// The ends that have something to do by themselves before `until` do it.
    fn run_lone_timers(&mut self, ways: &mut Ways<'_>, until: u64) -> u64 {
        let mut timers = std::mem::take(&mut ways.post.lone.timers_now);
        let (mut next, mut done) = (0, 0);
        loop {
            if let Some(&(at, flow)) = timers.get(next) {
                if at >= until {
                    next += 1;
                    continue;
                }
                timers.swap_remove(next);
                if ways.post.is_lone_sender(flow) {
                    done += self.run_sender_clock(ways, flow, until - 1);
                }
                if ways.post.is_lone_receiver(flow) {
                    done += run_receiver_clock(ways, flow, until - 1);
                }
            } else {
                // What was posted since then.
                ways.post.lone.timers.take(&mut timers);
                if next == timers.len() {
                    ways.post.lone.timers_now = timers;
                    return done;
                }
            }
        }
    }

    /// Carries out what a sender does by itself up to and including `until`: timeouts, delayed sends.
    #[inline(never)]
    fn run_sender_clock(&mut self, ways: &mut Ways<'_>, flow: u32, until: u64) -> u64 {
        let mut done = 0;
        loop {
            let state = &mut self.flows[flow as usize];
            let timer_at = state.sender.next_timer().map_or(NEVER, |due| due.as_nanos());
            if timer_at.min(state.send_at) > until {
                break;
            }
            done += 1;
            if timer_at <= state.send_at {
                state.sender.on_timer(ways.configs[state.group as usize], instant(timer_at));
                self.pump(ways, flow, timer_at);
            } else {
                let at = state.send_at;
                self.on_delayed_send(ways, at, flow);
            }
        }
        let state = &mut self.flows[flow as usize];
        if state.timer_at <= until {
            state.timer_at = NEVER;
            self.arm_retransmission(ways, flow);
        }
        done
    }
}

/// Moves those of `events` that come before `until` to `early`, which is empty; all stay in order. Without a branch for
/// each, which nobody could foretell.
fn part(events: &mut Vec<Event>, early: &mut Vec<Event>, until: u64) {
    early.extend_from_slice(events);
    let (mut before, mut after) = (0, 0);
    for place in 0..events.len() {
        let event = events[place];
        let is_early = event.at < until;
        early[before] = event;
        events[after] = event;
        before += usize::from(is_early);
        after += usize::from(!is_early);
    }
    early.truncate(before);
    events.truncate(after);
}

/// Carries out what a receiver does by itself: delayed acknowledgements.
#[inline(always)]
fn run_receiver_clock(ways: &mut Ways<'_>, flow: u32, until: u64) -> u64 {
    let mut done = 0;
    while ways.sinks[flow as usize].timer_at <= until {
        done += 1;
        ways.on_acknowledge_timer(ways.sinks[flow as usize].timer_at, flow);
    }
    done
}

/// A segment leaves its sender that is not like most.
#[cold]
#[inline(never)]
fn send_other(ways: &mut Ways<'_>, state: &mut FlowState, config: &TcpConfig, flow: u32, at: u64) {
    let segment = Event::segment(&state.sender.transmit(config, instant(at)), state.epoch);
    ways.send_first(flow, at, &segment);
}

/// An acknowledgement reaches a sender that is not just one of new data.
#[cold]
#[inline(never)]
fn on_other_ack(state: &mut FlowState, config: &TcpConfig, event: &Event) {
    state.sender.on_ack(config, instant(event.at), &event.as_ack());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_early_is_parted_from_what_comes_later_both_in_order() {
        let event = |(slot, at): (u32, u64)| Event::timer(at, slot);
        for (until, expected) in [(0, [&[][..], &[0, 1, 2, 3][..]]), (6, [&[1, 3], &[0, 2]]), (9, [&[0, 1, 2, 3], &[]])]
        {
            let mut later: Vec<Event> = (0..).zip([7, 5, 8, 5]).map(event).collect();
            let mut early = Vec::new();
            part(&mut later, &mut early, until);
            let slots = [early, later].map(|events| events.iter().map(Event::slot).collect::<Vec<_>>());
            assert_eq!(slots, expected);
        }
    }
}
