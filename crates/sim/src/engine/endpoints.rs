//! Operations on the endpoints of a flow of any transport, for the schedule, the applications and the measurements.
//!
//! TCP's endpoints are stored where its loops read them: the sender in the flow, on three cache lines with its timers,
//! the receiver beside the state that an inline receiver needs. Endpoints of other transports are agents.

use aqumen_transport::Message;
use aqumen_transport::tcp::{Receiver, Sender};
use aqumen_units::Bytes;

use super::agent::{Agent, Side};
use super::dispatch::{Dispatcher, Sink};
use super::hosts::{FlowState, Hosts, NONE};
use super::moment::{NEVER, instant};
use super::totals::FlowTotal;

/// Kind of a flow's endpoints.
#[derive(Clone, Copy)]
enum Endpoints {
    Tcp,
    /// Index of the agent.
    Agent(u32),
}

impl FlowState {
    #[inline(always)]
    fn endpoints(&self) -> Endpoints {
        if self.agent == NONE { Endpoints::Tcp } else { Endpoints::Agent(self.agent) }
    }

    /// Returns the totals of the flow's connection; `sink` is its receiver if it uses TCP.
    pub(super) fn done(&self, agents: &[Agent], sink: &Sink) -> FlowTotal {
        match self.endpoints() {
            Endpoints::Tcp => FlowTotal::from_tcp(&self.sender, &sink.receiver),
            Endpoints::Agent(agent) => agents[agent as usize].total(),
        }
    }

    /// Returns whether all data has been delivered, as far as the source knows.
    pub(super) fn is_idle(&self, agents: &[Agent]) -> bool {
        match self.endpoints() {
            Endpoints::Tcp => self.sender.is_finished(),
            Endpoints::Agent(agent) => agents[agent as usize].is_idle(),
        }
    }

    /// Returns whether writes have no effect before the sender's next event.
    pub(super) fn holds_offers(&self) -> bool {
        matches!(self.endpoints(), Endpoints::Tcp) && self.sender.holds_offers(self.send_at != NEVER)
    }

    /// Returns the rate that the transport allows its application, if the transport adapts.
    pub(super) fn rate_bps(&self, agents: &[Agent]) -> Option<f64> {
        match self.endpoints() {
            Endpoints::Tcp => None,
            Endpoints::Agent(agent) => agents[agent as usize].rate_bps(),
        }
    }
}

impl Hosts<'_> {
    fn endpoints(&self, flow: u32) -> Endpoints {
        self.flows[flow as usize].endpoints()
    }

    /// Starts or resumes a flow's application.
    pub(super) fn on_resume(&mut self, dispatcher: &mut Dispatcher<'_>, flow: u32, now: u64) {
        if self.flows[flow as usize].application != NONE {
            return self.start_application(dispatcher, flow, now);
        }
        match self.endpoints(flow) {
            Endpoints::Tcp => {
                let state = &mut self.flows[flow as usize];
                state.sender.resume(dispatcher.configs[state.group as usize], instant(now));
                self.pump(dispatcher, flow, now);
            }
            Endpoints::Agent(_) => self.start_agent(dispatcher, flow, now),
        }
    }

    /// Stops a flow's application.
    pub(super) fn on_pause(&mut self, dispatcher: &mut Dispatcher<'_>, flow: u32, now: u64) {
        if self.flows[flow as usize].application != NONE {
            return self.stop_application(dispatcher, flow, now);
        }
        match self.endpoints(flow) {
            Endpoints::Tcp => self.flows[flow as usize].sender.pause(instant(now)),
            Endpoints::Agent(_) => self.stop_agent(dispatcher, flow, now),
        }
    }

    /// Runs the timer of a source: TCP's retransmission timer.
    pub(super) fn on_retransmission_timer(&mut self, dispatcher: &mut Dispatcher<'_>, now: u64, flow: u32) {
        match self.endpoints(flow) {
            Endpoints::Tcp => self.on_sender_timer(dispatcher, now, flow),
            Endpoints::Agent(_) => self.on_agent_timer(dispatcher, flow, Side::Source, now),
        }
    }

    /// Runs the timer of a sink: TCP's delayed acknowledgement.
    pub(super) fn on_acknowledge_timer(&mut self, dispatcher: &mut Dispatcher<'_>, now: u64, flow: u32) {
        match self.endpoints(flow) {
            Endpoints::Tcp => dispatcher.on_acknowledge_timer(now, flow),
            Endpoints::Agent(_) => self.on_agent_timer(dispatcher, flow, Side::Sink, now),
        }
    }

    /// Writes a message of the flow's application. TCP has no messages: it gets more bytes to send.
    pub(super) fn write(&mut self, dispatcher: &mut Dispatcher<'_>, flow: u32, now: u64, message: Message) {
        match self.endpoints(flow) {
            Endpoints::Tcp => self.offer(dispatcher, flow, now, u64::from(message.bytes)),
            Endpoints::Agent(_) => self.write_to_agent(dispatcher, flow, now, message),
        }
    }

    /// Begins a transfer of the flow's application.
    pub(super) fn transfer(&mut self, dispatcher: &mut Dispatcher<'_>, flow: u32, now: u64, bytes: u64) {
        match self.endpoints(flow) {
            Endpoints::Tcp => self.offer(dispatcher, flow, now, bytes),
            Endpoints::Agent(agent) => {
                self.opens(flow);
                self.agents[agent as usize].transfer(instant(now), bytes);
                self.pump_agent(dispatcher, flow, Side::Source, now);
            }
        }
    }

    /// Gives TCP more bytes to send; opens the connection if there is none.
    fn offer(&mut self, dispatcher: &mut Dispatcher<'_>, flow: u32, now: u64, bytes: u64) {
        let config = dispatcher.configs[self.flows[flow as usize].group as usize];
        let opens = self.opens(flow);
        let sender = &mut self.flows[flow as usize].sender;
        sender.offer(config, instant(now), Bytes(bytes));
        if opens {
            sender.start(config, instant(now));
        }
        self.pump(dispatcher, flow, now);
    }

    /// Replaces the flow's endpoints by new ones.
    pub(super) fn renew(&mut self, dispatcher: &mut Dispatcher<'_>, flow: u32) {
        let state = &mut self.flows[flow as usize];
        match state.endpoints() {
            Endpoints::Tcp => {
                let (config, sink) = (dispatcher.configs[state.group as usize], &mut dispatcher.sinks[flow as usize]);
                // A host's clock does not jump with a new connection; the phase of a coarse clock is random.
                let phase = state.clock_phase(config);
                state.sender = Sender::new(config, Some(Bytes(0))).with_clock_phase(config, phase);
                sink.receiver = Receiver::new(config);
            }
            Endpoints::Agent(agent) => {
                self.agents[agent as usize].renew(&self.plan.groups[state.group as usize].transport);
                self.measures.receptions.on_new_connection(flow);
            }
        }
    }

    /// Returns the totals of `flow` since it began; `sink` is its receiver if it uses TCP.
    pub(super) fn total(&self, flow: u32, sink: &Sink) -> FlowTotal {
        let state = &self.flows[flow as usize];
        let mut total = state.done(&self.agents, sink);
        total.add(self.applications.retired(state.application));
        total
    }
}
