//! Lone ends: senders and receivers of bulk transfers, each a place by itself. There are so many, and each has so
//! little to do in a superstep, that all senders share an inbox, and all receivers; nothing needs sorting, since what
//! reaches one end over its last lane comes in order.

use aqumen_transport::tcp::TcpConfig;
use aqumen_units::Span;

use super::hosts::{Departure, FlowState, Hosts};
use super::lone_inbox::Round;
use super::moment::{NEVER, instant};
use super::ways::Ways;
use crate::event::Event;
use crate::fetch::{STEP, fetch, fetch_at};

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

impl Hosts<'_> {
    /// The lone senders go on up to, not including, `until`. How many events that was.
    pub(super) fn run_senders(&mut self, ways: &mut Ways<'_>, until: u64) -> u64 {
        if until > ways.post.senders.round.next {
            self.go_round(ways);
        }
        ways.post.senders.round.now = until;
        let superstep_end = ways.post.superstep_end();
        if ways.post.senders.is_idle(until) {
            return 0;
        }
        let (events, next_acks) = ways.post.senders.take_acks(until, superstep_end);
        let mut done = events.len() as u64;
        let mut index = 0;
        loop {
            let stop;
            (stop, index) = self.acknowledge(ways, &events, &next_acks, index, until);
            match stop {
                Stop::Clock(at) => done += self.run_sender_clock(ways, events[index].rank(), at),
                Stop::Send(flow, at) => self.pump(ways, flow, at),
                Stop::Packet(event) => self.on_ack(ways, event.rank(), &event),
                Stop::Done => break,
            }
        }
        ways.post.senders.give_back(events, next_acks);
        while let Some((at, flow)) = ways.post.senders.starts.take(until) {
            done += 1;
            self.on_resume(ways, flow, at);
        }
        while let Some(flow) = ways.post.senders.inbox.take_timer(until) {
            done += self.run_sender_clock(ways, flow, until - 1);
        }
        done
    }

    /// The acknowledgements among `events` reach their senders, from `index` on; the next of the same flow reaches
    /// it no sooner than `next_acks` say or, where they are silent, `until`. Why it stops, and where.
    #[inline(never)]
    fn acknowledge(
        &mut self,
        ways: &mut Ways<'_>,
        events: &[Event],
        next_acks: &[u64],
        mut index: usize,
        until: u64,
    ) -> (Stop, usize) {
        let goes_round = ways.post.senders.next_round() != NEVER;
        while let Some(event) = events.get(index) {
            if ways.far && index.is_multiple_of(STEP) {
                self.fetch_senders(to_fetch(events, index));
            }
            let (flow, now) = (event.rank(), event.at);
            let state = &mut self.flows[flow as usize];
            if state.timer_at.min(state.send_at) <= now {
                return (Stop::Clock(now), index);
            }
            let next_ack = next_acks.get(index).map_or(until, |next| *next);
            index += 1;
            if event.kept().is_some() {
                return (Stop::Packet(*event), index);
            }
            let config = ways.configs[state.group as usize];
            if !state.sender.on_plain_ack(config, instant(now), event.as_plain_ack()) {
                on_other_ack(state, config, event);
            }
            state.touch(flow, &mut self.touched);
            if state.sender.is_urgent() {
                return (Stop::Send(flow, now), index);
            }
            let departure = if config.send_overhead > Span::ZERO {
                state.departure(config, now, ways.next_control, next_ack)
            } else if let Some(segments) = state.sender.allowance() {
                Departure::At(segments, now)
            } else {
                return (Stop::Send(flow, now), index);
            };
            match departure {
                Departure::None => {}
                Departure::At(segments, at) => {
                    for _ in 0..segments {
                        match state.sender.transmit_plain(config, instant(at)) {
                            Some(said) => {
                                let segment = Event::plain_segment(config, said, at, state.epoch);
                                ways.send_first(&mut state.first_lane, flow, at, &segment);
                            }
                            None => send_other(ways, state, config, flow, at),
                        }
                    }
                }
                Departure::Later(at) => ways.post.senders.inbox.schedule(at, flow),
            }
            if !goes_round && let Some(due) = state.rearm(NEVER) {
                ways.post.senders.inbox.schedule(due, flow);
            }
        }
        (Stop::Done, index)
    }

    /// Looks for timers that could go off before the next round.
    #[inline(never)]
    fn go_round(&mut self, ways: &mut Ways<'_>) {
        let Round { every, now, ref mut next } = ways.post.senders.round;
        *next = now.saturating_add(every);
        let before = *next;
        for (state, flow) in self.flows.iter_mut().zip(0u32..) {
            if state.sender.may_be_due(instant(before))
                && ways.post.is_lone_sender(flow)
                && let Some(due) = state.rearm(before)
            {
                ways.post.senders.inbox.schedule(due.max(now), flow);
            }
        }
    }

    /// [Fetches](crate::fetch) what the acknowledgements to come need: all three lines of each flow.
    #[inline(never)]
    fn fetch_senders(&self, events: &[Event]) {
        for event in events {
            let state = &self.flows[event.rank() as usize];
            fetch(state);
            fetch(state.sender.rtt_samples());
            fetch(&state.group);
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

impl Ways<'_> {
    /// The lone receivers go on up to, not including, `until`. How many events that was.
    pub(super) fn run_receivers(&mut self, until: u64) -> u64 {
        if self.post.receivers.is_idle() {
            return 0;
        }
        let events = self.post.receivers.take_packets(until, self.post.superstep_end());
        let mut done = events.len() as u64;
        for (event, index) in events.iter().zip(0usize..) {
            if self.far && index.is_multiple_of(STEP) {
                self.fetch_receivers(to_fetch(&events, index));
            }
            let flow = event.rank();
            done += self.run_receiver_clock(flow, event.at);
            self.receive(flow, event.at, *event, self.lanes.acks_of(flow));
        }
        self.post.receivers.give_back(events);
        while let Some(flow) = self.post.receivers.take_timer(until) {
            done += self.run_receiver_clock(flow, until - 1);
        }
        done
    }

    /// Carries out what a receiver does by itself up to and including `until`: delayed acknowledgements.
    #[inline(always)]
    fn run_receiver_clock(&mut self, flow: u32, until: u64) -> u64 {
        let mut done = 0;
        while self.sinks[flow as usize].timer_at <= until {
            done += 1;
            self.on_acknowledge_timer(self.sinks[flow as usize].timer_at, flow);
        }
        done
    }

    /// [Fetches](crate::fetch) what the segments to come need.
    #[inline(never)]
    fn fetch_receivers(&self, events: &[Event]) {
        for event in events {
            fetch_at(&self.sinks, event.rank() as usize);
            self.lanes.fetch(self.lanes.acks_of(event.rank()));
        }
    }
}

/// Those of `events` that are to be [fetched](crate::fetch) when the one of this index has its turn.
fn to_fetch(events: &[Event], index: usize) -> &[Event] {
    let first = if index == 0 { 0 } else { index + STEP };
    &events[first.min(events.len())..(index + 2 * STEP).min(events.len())]
}

/// A segment leaves its sender that is not like most.
#[cold]
#[inline(never)]
fn send_other(ways: &mut Ways<'_>, state: &mut FlowState, config: &TcpConfig, flow: u32, at: u64) {
    let segment = Event::segment(&state.sender.transmit(config, instant(at)), state.epoch);
    ways.send_first(&mut state.first_lane, flow, at, &segment);
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
    fn each_event_is_fetched_once_and_steps_before_its_turn() {
        let events: Vec<_> = (0..5 * STEP as u64 + 3).map(|at| Event::timer(at, 0)).collect();
        let mut fetched = 0;
        for index in (0..events.len()).step_by(STEP) {
            for event in to_fetch(&events, index) {
                assert_eq!(event.at, fetched as u64, "fetched out of turn");
                assert!(index == 0 || fetched >= index + STEP, "fetched too late");
                fetched += 1;
            }
        }
        assert_eq!(fetched, events.len());
    }
}
