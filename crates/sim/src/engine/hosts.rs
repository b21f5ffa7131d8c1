//! Hosts: TCP senders, and the state of all flows and applications.
//!
//! Flows of other transports are in `agents`, traffic sources in `applications`, and operations on a flow of any
//! transport in `endpoints`.

use aqumen_aqm::Draw;
use aqumen_scenario::Plan;
use aqumen_scenario::streams::{Kind, Stream};
use aqumen_transport::tcp::{Ack, Segment, Sender, TcpConfig};
use aqumen_units::{Instant, Span};

use super::agent::Agent;
use super::application::Applications;
use super::dispatch::Dispatcher;
use super::moment::{NEVER, instant};
use crate::event::{Event, TableEntry};
use crate::measure::Measures;
use crate::paths::Leg;

#[derive(Clone)]
pub(super) struct Hosts<'a> {
    pub(super) plan: &'a Plan,
    pub(super) flows: Vec<FlowState>,
    pub(super) changed: ChangedFlows,
    /// Flows of other transports than TCP.
    pub(super) agents: Vec<Agent>,
    pub(super) applications: Applications,
    pub(super) measures: Measures,
}

/// Index of a flow without agent, or without application.
pub(super) const NONE: u32 = u32::MAX;

/// Dirty list: sampled flows whose state may have changed since the last sample.
#[derive(Clone)]
pub(super) struct ChangedFlows {
    /// Changed flows first; one entry longer than the number of sampled flows.
    flows: Vec<u32>,
    count: usize,
}

/// Sender of a flow.
#[derive(Clone)]
#[repr(C, align(64))]
pub(super) struct FlowState {
    pub(super) sender: Sender,
    pub(super) rng: Stream,
    /// First leg of its segments, which no other flow uses.
    pub(super) first_leg: Leg,
    /// Time of the earliest event for its retransmission timer.
    pub(super) timer_at: u64,
    /// Time of its delayed send: delayed by host overhead or by pacing.
    pub(super) send_at: u64,
    pub(super) group: u32,
    /// Index of its agent, or `NONE`: see [`endpoints`](Self::endpoints).
    pub(super) agent: u32,
    /// Index of its application, or `NONE`: it sends what the plan says.
    pub(super) application: u32,
    /// 1: sampled, and unchanged since the last sample. The field stands before `generation`: a compiler reads that one
    /// together with what follows, and the processor would stall on a store that was just made.
    pub(super) untouched: u16,
    /// Generation of the connection.
    pub(super) generation: u16,
}

/// Decision of a sender after the overhead of its host.
#[derive(Clone, Copy)]
pub(super) enum Departure {
    /// Nothing to send, or a send is already scheduled.
    None,
    /// Number of segments that leave at a time before the next event of the sender.
    At(u32, u64),
    /// Time at which the sender decides again.
    Later(u64),
}

impl FlowState {
    pub(super) fn new(config: &TcpConfig, flow: &aqumen_scenario::Flow, seed: u64, number: u64) -> Self {
        let mut rng = Stream::new(seed, Kind::Endpoint, number);
        let phase = clock_phase(config, &mut rng);
        FlowState {
            sender: Sender::new(config, flow.transfer).with_clock_phase(config, phase),
            rng,
            first_leg: Leg::default(),
            timer_at: NEVER,
            send_at: NEVER,
            group: flow.group,
            agent: NONE,
            application: NONE,
            untouched: 0,
            generation: 0,
        }
    }

    /// Draws the phase of a new connection's coarse clock: uniform within a tick.
    pub(super) fn clock_phase(&mut self, config: &TcpConfig) -> Span {
        clock_phase(config, &mut self.rng)
    }

    /// Puts the flow on the dirty list.
    #[inline(always)]
    pub(super) fn touch(&mut self, flow: u32, changed: &mut ChangedFlows) {
        // Without a branch, which would be unpredictable.
        changed.flows[changed.count] = flow;
        changed.count += usize::from(std::mem::take(&mut self.untouched));
    }

    /// Decides what the sender sends a random overhead after `now`. The next acknowledgement comes no sooner than
    /// `next_ack`, the next scheduled item at `next_control`.
    #[inline(always)]
    pub(super) fn departure(&mut self, config: &TcpConfig, now: u64, next_control: u64, next_ack: u64) -> Departure {
        if self.send_at != NEVER {
            return Departure::None;
        }
        let allowance = match self.sender.allowance(config) {
            Some(0) => return Departure::None,
            None if !self.sender.may_transmit(config, instant(now)) => return Departure::None,
            allowance => allowance,
        };
        // Signed integers convert faster.
        let overhead_ns = config.send_overhead.as_nanos() as i64;
        let at = now + (self.rng.uniform() * overhead_ns as f64) as i64 as u64;
        let is_first = (at < next_ack) & (at < next_control) & !self.sender.may_be_due(instant(at));
        match allowance {
            Some(segments) if is_first => Departure::At(segments, at),
            _ => {
                self.send_at = at;
                Departure::Later(at)
            }
        }
    }

    /// Returns the time of an event for the sender's timer, if one is needed and due before `before`.
    #[inline(always)]
    pub(super) fn rearm(&mut self, before: u64) -> Option<u64> {
        let due = self.sender.next_timer().map_or(NEVER, Instant::as_nanos);
        (due < self.timer_at.min(before)).then(|| {
            self.timer_at = due;
            due
        })
    }
}

fn clock_phase(config: &TcpConfig, rng: &mut Stream) -> Span {
    Span::from_nanos((rng.uniform() * config.rto_tick.as_nanos() as f64) as u64)
}

impl ChangedFlows {
    /// Puts all sampled flows on the list, for the first sample.
    pub(super) fn new(measures: &Measures) -> Self {
        let mut flows: Vec<u32> = measures.watched().collect();
        flows.sort_unstable();
        flows.dedup();
        let count = flows.len();
        flows.push(0);
        ChangedFlows { flows, count }
    }

    pub(super) fn flows(&self) -> &[u32] {
        &self.flows[..self.count]
    }

    /// Clears the list after a sample of `all`.
    pub(super) fn settle(&mut self, all: &mut [FlowState]) {
        self.flows().iter().for_each(|&flow| all[flow as usize].untouched = 1);
        self.count = 0;
    }
}

impl Hosts<'_> {
    /// Copies the hosts, for a copy of the plan.
    pub(super) fn copy<'b>(&self, plan: &'b Plan) -> Hosts<'b> {
        Hosts {
            plan,
            flows: self.flows.clone(),
            changed: self.changed.clone(),
            agents: self.agents.clone(),
            applications: self.applications.clone(),
            measures: self.measures.clone(),
        }
    }

    /// Draws from the random numbers of `seed` from now on.
    pub(super) fn reseed(&mut self, seed: u64) {
        let flows = self.flows.iter_mut().zip(0u64..);
        flows.for_each(|(state, number)| state.rng = Stream::new(seed, Kind::Endpoint, number));
        self.applications.reseed(seed);
    }

    /// Returns the congestion window of `flow`, segments, if it uses TCP.
    pub(super) fn window(&self, flow: u32) -> Option<f64> {
        let state = &self.flows[flow as usize];
        (state.agent == NONE).then(|| state.sender.cwnd())
    }

    /// Hands a segment to a receiver with a timer or an application.
    pub(super) fn on_segment(&mut self, dispatcher: &mut Dispatcher<'_>, flow: u32, event: &Event) {
        let delivered = dispatcher.receive(flow, event.at, *event, dispatcher.paths.acks_of(flow));
        let application = self.flows[flow as usize].application;
        if application != NONE && delivered > 0 {
            self.applications.delivered(application, event.at);
        }
    }

    /// Hands an acknowledgement to its sender.
    #[inline(never)]
    pub(super) fn on_ack(&mut self, dispatcher: &mut Dispatcher<'_>, flow: u32, event: &Event) {
        match event.table_entry() {
            Some(TableEntry::Ack(index)) => {
                let ack = dispatcher.acks.take(index);
                self.apply_ack(dispatcher, flow, event, &ack);
            }
            _ => self.apply_ack(dispatcher, flow, event, &event.as_ack()),
        }
    }

    #[inline(always)]
    fn apply_ack(&mut self, dispatcher: &mut Dispatcher<'_>, flow: u32, event: &Event, ack: &Ack) {
        let state = &mut self.flows[flow as usize];
        if event.generation() != state.generation {
            return; // from an earlier connection
        }
        let has_application = state.application != NONE;
        if has_application {
            // At equal times writes come before arrivals.
            self.offer_deferred(dispatcher, flow, event.at + 1);
        }
        let state = &mut self.flows[flow as usize];
        state.sender.on_ack(dispatcher.configs[state.group as usize], instant(event.at), ack);
        self.pump(dispatcher, flow, event.at);
        if has_application {
            self.wake(dispatcher, flow);
            self.on_progress(dispatcher, flow, event.at);
        }
    }

    /// Sends all segments that are due.
    #[inline(never)]
    pub(super) fn pump(&mut self, dispatcher: &mut Dispatcher<'_>, flow: u32, now: u64) {
        let state = &mut self.flows[flow as usize];
        state.touch(flow, &mut self.changed);
        let config = dispatcher.configs[state.group as usize];
        while let Some(segment) = self.flows[flow as usize].sender.poll_immediate(config, instant(now)) {
            self.send_segment(dispatcher, flow, now, segment);
        }
        if config.send_overhead == Span::ZERO {
            self.transmit(dispatcher, flow, now, config);
        } else {
            // The next acknowledgement is unknown here, so `now` is its bound.
            match self.flows[flow as usize].departure(config, now, dispatcher.next_control, now) {
                Departure::None => {}
                Departure::At(segments, at) => self.transmit_some(dispatcher, flow, at, config, segments),
                Departure::Later(at) => dispatcher.mailboxes.schedule(at, dispatcher.mailboxes.priorities.send + flow),
            }
        }
        self.arm_retransmission(dispatcher, flow);
    }

    /// Sends all that the window allows.
    fn transmit(&mut self, dispatcher: &mut Dispatcher<'_>, flow: u32, now: u64, config: &TcpConfig) {
        match self.flows[flow as usize].sender.allowance(config) {
            Some(segments) => self.transmit_some(dispatcher, flow, now, config, segments),
            None => {
                while let Some(segment) = self.flows[flow as usize].sender.poll_transmit(config, instant(now)) {
                    self.send_segment(dispatcher, flow, now, segment);
                }
                self.arm_paced_send(dispatcher, flow, now, config);
            }
        }
    }

    /// Schedules the delayed send of a segment that pacing holds back.
    #[cold]
    fn arm_paced_send(&mut self, dispatcher: &mut Dispatcher<'_>, flow: u32, now: u64, config: &TcpConfig) {
        let state = &mut self.flows[flow as usize];
        if state.send_at == NEVER
            && let Some(release) = state.sender.next_send(config, instant(now))
        {
            state.send_at = release.as_nanos();
            dispatcher.mailboxes.schedule(release.as_nanos(), dispatcher.mailboxes.priorities.send + flow);
        }
    }

    #[inline(always)]
    fn transmit_some(
        &mut self,
        dispatcher: &mut Dispatcher<'_>,
        flow: u32,
        now: u64,
        config: &TcpConfig,
        segments: u32,
    ) {
        for _ in 0..segments {
            let segment = self.flows[flow as usize].sender.transmit(config, instant(now));
            self.send_segment(dispatcher, flow, now, segment);
        }
    }

    #[inline(always)]
    fn send_segment(&mut self, dispatcher: &mut Dispatcher<'_>, flow: u32, now: u64, segment: Segment) {
        let state = &mut self.flows[flow as usize];
        dispatcher.send_first_rarely(&mut state.first_leg, flow, now, &Event::segment(&segment, state.generation));
    }

    /// Schedules an event for the sender's timer, unless an earlier one exists.
    #[inline(always)]
    pub(super) fn arm_retransmission(&mut self, dispatcher: &mut Dispatcher<'_>, flow: u32) {
        let before =
            if dispatcher.mailboxes.is_bulk_sender(flow) { dispatcher.mailboxes.senders.next_round() } else { NEVER };
        if let Some(due) = self.flows[flow as usize].rearm(before) {
            dispatcher.mailboxes.schedule(due, dispatcher.mailboxes.priorities.retransmission + flow);
        }
    }

    pub(super) fn on_sender_timer(&mut self, dispatcher: &mut Dispatcher<'_>, now: u64, flow: u32) {
        let state = &mut self.flows[flow as usize];
        if state.timer_at != now {
            return; // an earlier event replaced this one
        }
        state.timer_at = NEVER;
        if state.sender.next_timer().is_some_and(|due| due.as_nanos() <= now) {
            self.offer_deferred(dispatcher, flow, now);
            let state = &mut self.flows[flow as usize];
            state.sender.on_timer(dispatcher.configs[state.group as usize], instant(now));
            self.pump(dispatcher, flow, now);
            self.wake(dispatcher, flow);
        } else {
            self.arm_retransmission(dispatcher, flow); // the deadline has moved on
        }
    }

    pub(super) fn on_delayed_send(&mut self, dispatcher: &mut Dispatcher<'_>, now: u64, flow: u32) {
        self.offer_deferred(dispatcher, flow, now);
        let state = &mut self.flows[flow as usize];
        state.send_at = NEVER;
        state.touch(flow, &mut self.changed);
        let config = dispatcher.configs[state.group as usize];
        self.transmit(dispatcher, flow, now, config);
        self.arm_retransmission(dispatcher, flow);
        self.wake(dispatcher, flow);
    }
}

#[cfg(test)]
mod tests {
    use super::super::dispatch::Sink;
    use super::*;

    #[test]
    fn a_flow_fills_three_cache_lines_and_its_receiver_one() {
        assert_eq!((size_of::<FlowState>(), size_of::<Sink>()), (192, 64));
    }
}
