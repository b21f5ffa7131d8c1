//! Bulk endpoints: senders and receivers of endless TCP transfers, each a process of its own.
//!
//! Bulk endpoints are many and each has few events in an epoch, so all senders share a mailbox, and all receivers.
//! Nothing needs sorting: packets reach an endpoint over its last leg in order. In a run without stops a receiver
//! answers a segment as soon as this enters its last leg ([`Dispatcher::receives_ahead`]); its mailbox then has timers
//! only, for delayed acknowledgements that no further segment releases.

use aqumen_transport::tcp::TcpConfig;
use aqumen_units::Span;

use super::bulk_mailbox::Round;
use super::dispatch::Dispatcher;
use super::hosts::{Departure, FlowState, Hosts};
use super::moment::{NEVER, instant};
use crate::event::Event;
use crate::fetch::{STEP, fetch, fetch_at};

/// Reason why the acknowledgement loop stops.
#[derive(Clone)]
enum Stop {
    /// All events are done.
    Done,
    /// A sender's timer or delayed send is due at this time at the latest.
    Clock(u64),
    /// A full acknowledgement, which is kept in the table.
    Packet(Event),
    /// A sender must send at this time, by its general path.
    Send(u32, u64),
}

impl Hosts<'_> {
    /// Runs the bulk senders up to `until`, exclusive; returns the number of events.
    pub(super) fn run_senders(&mut self, dispatcher: &mut Dispatcher<'_>, until: u64) -> u64 {
        if until > dispatcher.mailboxes.senders.round.next {
            self.go_round(dispatcher);
        }
        dispatcher.mailboxes.senders.round.now = until;
        let epoch_end = dispatcher.mailboxes.epoch_end();
        if dispatcher.mailboxes.senders.is_idle(until) {
            return 0;
        }
        let (events, next_acks) = dispatcher.mailboxes.senders.take_acks(until, epoch_end);
        let mut done = events.len() as u64;
        let mut index = 0;
        loop {
            let stop;
            (stop, index) = self.acknowledge(dispatcher, &events, &next_acks, index, until);
            match stop {
                Stop::Clock(at) => done += self.run_sender_clock(dispatcher, events[index].priority(), at),
                Stop::Send(flow, at) => self.pump(dispatcher, flow, at),
                Stop::Packet(event) => self.on_ack(dispatcher, event.priority(), &event),
                Stop::Done => break,
            }
        }
        dispatcher.mailboxes.senders.give_back(events, next_acks);
        while let Some((at, flow)) = dispatcher.mailboxes.senders.starts.take(until) {
            done += 1;
            self.on_resume(dispatcher, flow, at);
        }
        while let Some(flow) = dispatcher.mailboxes.senders.mailbox.take_timer(until) {
            done += self.run_sender_clock(dispatcher, flow, until - 1);
        }
        // Where no port lies between, senders have sent to receivers.
        dispatcher.arm_delayed();
        done
    }

    /// Hands the acknowledgements among `events`, from `index` on, to their senders. The next one of a flow comes no
    /// sooner than `next_acks` says, or `until` without an entry. Returns why and where the loop stops.
    #[inline(never)]
    fn acknowledge(
        &mut self,
        dispatcher: &mut Dispatcher<'_>,
        events: &[Event],
        next_acks: &[u64],
        mut index: usize,
        until: u64,
    ) -> (Stop, usize) {
        let goes_round = dispatcher.mailboxes.senders.next_round() != NEVER;
        while let Some(event) = events.get(index) {
            if dispatcher.far && index.is_multiple_of(STEP) {
                self.fetch_senders(to_fetch(events, index));
            }
            let (flow, now) = (event.priority(), event.at);
            let state = &mut self.flows[flow as usize];
            if state.timer_at.min(state.send_at) <= now {
                return (Stop::Clock(now), index);
            }
            let next_ack = next_acks.get(index).map_or(until, |next| *next);
            index += 1;
            if event.table_entry().is_some() {
                return (Stop::Packet(*event), index);
            }
            let config = dispatcher.configs[state.group as usize];
            if !state.sender.on_plain_ack(config, instant(now), event.as_plain_ack()) {
                on_other_ack(state, config, event);
            }
            state.touch(flow, &mut self.changed);
            if state.sender.is_urgent() {
                return (Stop::Send(flow, now), index);
            }
            let departure = if config.send_overhead > Span::ZERO {
                state.departure(config, now, dispatcher.next_control, next_ack)
            } else if let Some(segments) = state.sender.allowance(config) {
                Departure::At(segments, now)
            } else {
                return (Stop::Send(flow, now), index);
            };
            match departure {
                Departure::None => {}
                Departure::At(segments, at) => {
                    for _ in 0..segments {
                        match state.sender.transmit_plain(config, instant(at)) {
                            Some(segment) => {
                                let segment = Event::plain_segment(config, segment, at, state.generation);
                                dispatcher.send_first(&mut state.first_leg, flow, at, &segment);
                            }
                            None => send_other(dispatcher, state, config, flow, at),
                        }
                    }
                }
                Departure::Later(at) => dispatcher.mailboxes.senders.mailbox.schedule(at, flow),
            }
            if !goes_round && let Some(due) = state.rearm(NEVER) {
                dispatcher.mailboxes.senders.mailbox.schedule(due, flow);
            }
        }
        (Stop::Done, index)
    }

    /// Schedules the timers that could expire before the next round.
    #[inline(never)]
    fn go_round(&mut self, dispatcher: &mut Dispatcher<'_>) {
        let Round { every, now, ref mut next } = dispatcher.mailboxes.senders.round;
        *next = now.saturating_add(every);
        let before = *next;
        for (state, flow) in self.flows.iter_mut().zip(0u32..) {
            if state.sender.may_be_due(instant(before))
                && dispatcher.mailboxes.is_bulk_sender(flow)
                && let Some(due) = state.rearm(before)
            {
                dispatcher.mailboxes.senders.mailbox.schedule(due.max(now), flow);
            }
        }
    }

    /// [Fetches](crate::fetch) the three cache lines of each flow that the next acknowledgements need.
    #[inline(never)]
    fn fetch_senders(&self, events: &[Event]) {
        for event in events {
            let state = &self.flows[event.priority() as usize];
            fetch(state);
            fetch(state.sender.rtt_samples());
            fetch(&state.group);
        }
    }

    /// Runs timeouts and delayed sends of a sender up to and including `until`.
    #[inline(never)]
    fn run_sender_clock(&mut self, dispatcher: &mut Dispatcher<'_>, flow: u32, until: u64) -> u64 {
        let mut done = 0;
        loop {
            let state = &mut self.flows[flow as usize];
            let timer_at = state.sender.next_timer().map_or(NEVER, |due| due.as_nanos());
            if timer_at.min(state.send_at) > until {
                break;
            }
            done += 1;
            if timer_at <= state.send_at {
                state.sender.on_timer(dispatcher.configs[state.group as usize], instant(timer_at));
                self.pump(dispatcher, flow, timer_at);
            } else {
                let at = state.send_at;
                self.on_delayed_send(dispatcher, at, flow);
            }
        }
        let state = &mut self.flows[flow as usize];
        if state.timer_at <= until {
            state.timer_at = NEVER;
            self.arm_retransmission(dispatcher, flow);
        }
        done
    }
}

impl Dispatcher<'_> {
    /// Runs the bulk receivers up to `until`, exclusive; returns the number of events.
    pub(super) fn run_receivers(&mut self, until: u64) -> u64 {
        self.arm_delayed();
        if self.mailboxes.receivers.is_idle() {
            return 0;
        }
        let events = self.mailboxes.receivers.take_packets(until, self.mailboxes.epoch_end());
        let mut done = events.len() as u64;
        for (event, index) in events.iter().zip(0usize..) {
            if self.far && index.is_multiple_of(STEP) {
                self.fetch_receivers(to_fetch(&events, index));
            }
            let flow = event.priority();
            done += self.run_receiver_clock(flow, event.at);
            self.receive(flow, event.at, *event, self.paths.acks_of(flow));
        }
        self.mailboxes.receivers.give_back(events);
        while let Some(flow) = self.mailboxes.receivers.take_timer(until) {
            done += self.run_receiver_clock(flow, until - 1);
        }
        done
    }

    /// Runs delayed acknowledgements of a receiver up to and including `until`.
    #[inline(always)]
    fn run_receiver_clock(&mut self, flow: u32, until: u64) -> u64 {
        let mut done = 0;
        while self.sinks[flow as usize].timer_at <= until {
            done += 1;
            self.on_acknowledge_timer(self.sinks[flow as usize].timer_at, flow);
        }
        done
    }

    /// [Fetches](crate::fetch) the receivers that the next segments need.
    #[inline(never)]
    fn fetch_receivers(&self, events: &[Event]) {
        for event in events {
            fetch_at(&self.sinks, event.priority() as usize);
            self.paths.fetch(self.paths.acks_of(event.priority()));
        }
    }
}

/// Returns the events whose state is [fetched](crate::fetch) when the event of this index is handled.
fn to_fetch(events: &[Event], index: usize) -> &[Event] {
    let first = if index == 0 { 0 } else { index + STEP };
    &events[first.min(events.len())..(index + 2 * STEP).min(events.len())]
}

/// Sends a segment that is not a plain one.
#[cold]
#[inline(never)]
fn send_other(dispatcher: &mut Dispatcher<'_>, state: &mut FlowState, config: &TcpConfig, flow: u32, at: u64) {
    let segment = Event::segment(&state.sender.transmit(config, instant(at)), state.generation);
    dispatcher.send_first(&mut state.first_leg, flow, at, &segment);
}

/// Hands an acknowledgement to its sender that does not just acknowledge new data.
#[cold]
#[inline(never)]
fn on_other_ack(state: &mut FlowState, config: &TcpConfig, event: &Event) {
    state.sender.on_ack(config, instant(event.at), &event.as_ack());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_is_fetched_once_ahead_of_time() {
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
