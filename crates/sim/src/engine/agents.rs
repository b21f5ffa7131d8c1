//! Flows of other transports than TCP: packets between two [`Endpoint`]s.
//!
//! The source's timer has the priority of TCP's retransmission timer, the sink's that of TCP's acknowledgements.

use aqumen_network::WirePacket;
use aqumen_transport::{Endpoint, Message};
use aqumen_units::Instant;

use super::agent::{Agent, Side};
use super::dispatch::Dispatcher;
use super::hosts::{FlowState, Hosts, NONE};
use super::moment::{NEVER, instant};
use crate::event::{Event, TableEntry};

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

    /// Starts the flow with the data of the plan.
    pub(super) fn start_agent(&mut self, dispatcher: &mut Dispatcher<'_>, flow: u32, now: u64) {
        let transfer = self.plan.flows[flow as usize].transfer;
        let agent = self.agent(flow);
        match transfer {
            Some(bytes) if agent.source.endpoint.stats().sent == 0 => agent.transfer(instant(now), bytes.0),
            Some(_) => {}
            None => agent.source.endpoint.start(instant(now)),
        }
        self.pump_agent(dispatcher, flow, Side::Source, now);
    }

    pub(super) fn stop_agent(&mut self, dispatcher: &mut Dispatcher<'_>, flow: u32, now: u64) {
        self.agent(flow).source.endpoint.stop(instant(now));
        self.pump_agent(dispatcher, flow, Side::Source, now);
    }

    /// Writes a message of the flow's application.
    pub(super) fn write_to_agent(&mut self, dispatcher: &mut Dispatcher<'_>, flow: u32, now: u64, message: Message) {
        self.agent(flow).source.endpoint.write(instant(now), message);
        self.pump_agent(dispatcher, flow, Side::Source, now);
    }

    /// Hands a packet to an endpoint.
    #[inline(never)]
    pub(super) fn on_agent_packet(&mut self, dispatcher: &mut Dispatcher<'_>, flow: u32, side: Side, event: &Event) {
        let Some(TableEntry::Packet(index)) = event.table_entry() else { return };
        let mut packet = dispatcher.packets.take(index);
        let &FlowState { agent, generation, .. } = &self.flows[flow as usize];
        if event.generation() != generation {
            return; // a copy from an earlier connection
        }
        packet.ecn = event.ecn();
        if side == Side::Sink {
            self.measures.receptions.on_arrival(self.plan, flow, &packet, instant(event.at));
        }
        self.agents[agent as usize].end(side).endpoint.on_packet(instant(event.at), &packet);
        self.pump_agent(dispatcher, flow, side, event.at);
        self.on_progress_of_agent(dispatcher, flow, side, event.at);
    }

    pub(super) fn on_agent_timer(&mut self, dispatcher: &mut Dispatcher<'_>, flow: u32, side: Side, now: u64) {
        let end = self.agent(flow).end(side);
        if end.timer_at != now {
            return; // an earlier event replaced this one
        }
        end.timer_at = NEVER;
        if end.endpoint.next_timer().is_some_and(|due| due.as_nanos() <= now) {
            end.endpoint.on_timer(instant(now));
        }
        self.pump_agent(dispatcher, flow, side, now);
        self.on_progress_of_agent(dispatcher, flow, side, now);
    }

    fn on_progress_of_agent(&mut self, dispatcher: &mut Dispatcher<'_>, flow: u32, side: Side, now: u64) {
        if side == Side::Source && self.flows[flow as usize].application != NONE {
            self.on_progress(dispatcher, flow, now);
        }
    }

    /// Sends the packets of an endpoint, and delivers its messages to the application.
    pub(super) fn pump_agent(&mut self, dispatcher: &mut Dispatcher<'_>, flow: u32, side: Side, now: u64) {
        let &FlowState { agent, application, generation, .. } = &self.flows[flow as usize];
        let (leg, priority) = match side {
            Side::Source => (dispatcher.paths.first_of(flow), dispatcher.mailboxes.priorities.retransmission),
            Side::Sink => (dispatcher.paths.acks_of(flow), dispatcher.mailboxes.priorities.acknowledge),
        };
        let end = self.agents[agent as usize].end(side);
        while let Some(packet) = end.endpoint.poll_transmit(instant(now)) {
            let event = Event::packet(&packet, dispatcher.packets.keep(packet), side == Side::Sink, generation);
            dispatcher.send_rarely(leg, now, &event);
        }
        let mut delivered = false;
        while let Some(delivery) = end.endpoint.poll_delivery() {
            delivered = true;
            self.measures.receptions.on_delivery(self.plan, flow, &delivery);
        }
        let due = end.endpoint.next_timer().map_or(NEVER, Instant::as_nanos);
        if due < end.timer_at {
            end.timer_at = due;
            dispatcher.mailboxes.schedule(due, priority + flow);
        }
        if delivered && application != NONE {
            self.applications.delivered(application, now);
        }
    }
}
