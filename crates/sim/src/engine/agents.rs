//! Flows of transports other than TCP: the engine carries packets between two [`Endpoint`]s. The source's timer has the
//! slot of TCP's retransmission timer, the sink's that of its acknowledgements.

use aqumen_network::Carried;
use aqumen_scenario::Protocol;
use aqumen_transport::{AnyEnd, Endpoint, Message, Stats};
use aqumen_units::Instant;

use super::hosts::{FlowState, Hosts};
use super::totals::{FlowTotal, SenderCounts};
use super::ways::Ways;
use super::{NEVER, NONE, instant};
use crate::event::{Event, Kept};

/// Both ends of a flow.
pub(super) struct Agent {
    source: End,
    sink: End,
}

struct End {
    endpoint: AnyEnd,
    /// When the earliest event for its timer comes.
    timer_at: u64,
}

/// Which end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Source,
    Sink,
}

impl Agent {
    /// The ends of a flow of `protocol`; `None` for TCP.
    fn new(protocol: &Protocol) -> Option<Agent> {
        let (source, sink) = protocol.ends()?;
        let end = |endpoint| End { endpoint, timer_at: NEVER };
        Some(Agent { source: end(source), sink: end(sink) })
    }

    fn end(&mut self, side: Side) -> &mut End {
        match side {
            Side::Source => &mut self.source,
            Side::Sink => &mut self.sink,
        }
    }

    /// What it has done since it began.
    pub(super) fn total(&self) -> FlowTotal {
        let Stats { sent, retransmitted, timeouts, rtt_samples, rtt_sum, .. } = self.source.endpoint.stats();
        let counts = SenderCounts { sent, retransmitted, timeouts, rtt_samples, rtt_sum_ns: rtt_sum.as_nanos() };
        FlowTotal { delivered: self.sink.endpoint.stats().delivered_bytes, counts }
    }

    /// Whether its source has nothing left to do.
    pub(super) fn is_idle(&self) -> bool {
        self.source.endpoint.is_idle()
    }

    /// Puts a new connection in place of this one.
    pub(super) fn renew(&mut self, protocol: &Protocol) {
        if let Some(new) = Agent::new(protocol) {
            // The events for the old timers find nothing due.
            let (source_at, sink_at) = (self.source.timer_at, self.sink.timer_at);
            *self = new;
            (self.source.timer_at, self.sink.timer_at) = (source_at, sink_at);
        }
    }

    /// Writes `bytes` as messages of one transfer.
    pub(super) fn transfer(&mut self, now: Instant, bytes: u64) {
        let mut left = bytes;
        let mut number = 0;
        while left > 0 {
            let bytes = left.min(MESSAGE_BYTES_MAX) as u32;
            self.source.endpoint.write(now, Message { bytes, number, created_at: now });
            left -= u64::from(bytes);
            number += 1;
        }
    }

    /// The rate at which its application may produce, if the transport tells.
    pub(super) fn rate_bps(&self) -> Option<f64> {
        self.source.endpoint.rate_bps()
    }
}

impl Hosts<'_> {
    pub(super) fn add_agents(&mut self) {
        for (flow, state) in self.plan.flows.iter().zip(&mut self.flows) {
            if let Some(agent) = Agent::new(&self.plan.groups[flow.group as usize].transport) {
                state.agent = self.agents.len() as u32;
                self.agents.push(agent);
            }
        }
    }

    fn agent(&mut self, flow: u32) -> &mut Agent {
        &mut self.agents[self.flows[flow as usize].agent as usize]
    }

    /// The flow begins to send what the plan says.
    pub(super) fn start_agent(&mut self, ways: &mut Ways<'_>, flow: u32, now: u64) {
        let transfer = self.plan.flows[flow as usize].transfer;
        let agent = self.agent(flow);
        match transfer {
            Some(bytes) if agent.source.endpoint.stats().sent == 0 => agent.transfer(instant(now), bytes.0),
            Some(_) => {}
            None => agent.source.endpoint.start(instant(now)),
        }
        self.pump_agent(ways, flow, Side::Source, now);
    }

    pub(super) fn stop_agent(&mut self, ways: &mut Ways<'_>, flow: u32, now: u64) {
        self.agent(flow).source.endpoint.stop(instant(now));
        self.pump_agent(ways, flow, Side::Source, now);
    }

    /// The flow's application writes a message.
    pub(super) fn write_to_agent(&mut self, ways: &mut Ways<'_>, flow: u32, now: u64, message: Message) {
        self.agent(flow).source.endpoint.write(instant(now), message);
        self.pump_agent(ways, flow, Side::Source, now);
    }

    /// A packet reaches an end.
    #[inline(never)]
    pub(super) fn on_agent_packet(&mut self, ways: &mut Ways<'_>, flow: u32, side: Side, event: &Event) {
        let Some(Kept::Packet(index)) = event.kept() else { return };
        let mut packet = ways.packets.take(index);
        let &FlowState { agent, epoch, .. } = &self.flows[flow as usize];
        if event.epoch() != epoch {
            return; // a copy, left over from a connection that is complete
        }
        packet.ecn = event.ecn();
        if side == Side::Sink {
            self.measures.receptions.on_arrival(self.plan, flow, &packet, instant(event.at));
        }
        self.agents[agent as usize].end(side).endpoint.on_packet(instant(event.at), &packet);
        self.pump_agent(ways, flow, side, event.at);
        self.on_progress_of_agent(ways, flow, side, event.at);
    }

    pub(super) fn on_agent_timer(&mut self, ways: &mut Ways<'_>, flow: u32, side: Side, now: u64) {
        let end = self.agent(flow).end(side);
        if end.timer_at != now {
            return; // an earlier event took its place
        }
        end.timer_at = NEVER;
        if end.endpoint.next_timer().is_some_and(|due| due.as_nanos() <= now) {
            end.endpoint.on_timer(instant(now));
        }
        self.pump_agent(ways, flow, side, now);
        self.on_progress_of_agent(ways, flow, side, now);
    }

    fn on_progress_of_agent(&mut self, ways: &mut Ways<'_>, flow: u32, side: Side, now: u64) {
        if side == Side::Source && self.flows[flow as usize].application != NONE {
            self.on_progress(ways, flow, now);
        }
    }

    /// Sends what an end has to send, and hands over what it has for its application.
    pub(super) fn pump_agent(&mut self, ways: &mut Ways<'_>, flow: u32, side: Side, now: u64) {
        let &FlowState { agent, application, epoch, .. } = &self.flows[flow as usize];
        let (lane, slot) = match side {
            Side::Source => (ways.lanes.first_of(flow), ways.post.slots.retransmission),
            Side::Sink => (ways.lanes.acks_of(flow), ways.post.slots.acknowledge),
        };
        let end = self.agents[agent as usize].end(side);
        while let Some(packet) = end.endpoint.poll_transmit(instant(now)) {
            let event = Event::packet(&packet, ways.packets.keep(packet), side == Side::Sink, epoch);
            ways.send_rarely(lane, now, &event);
        }
        let mut delivered = false;
        while let Some(delivery) = end.endpoint.poll_delivery() {
            delivered = true;
            self.measures.receptions.on_delivery(self.plan, flow, &delivery);
        }
        let due = end.endpoint.next_timer().map_or(NEVER, Instant::as_nanos);
        if due < end.timer_at {
            end.timer_at = due;
            ways.post.schedule(due, slot + flow);
        }
        if delivered && application != NONE {
            self.applications.delivered(application, now);
        }
    }
}

/// Larger transfers are written as several messages.
const MESSAGE_BYTES_MAX: u64 = 1 << 30;
