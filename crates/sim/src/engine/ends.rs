//! The ends of a flow, whatever its transport: what the agenda, the applications and the measurements ask of them.
//!
//! Those of TCP stand where its loops read them: the sender in the flow, on three cache lines with its timers, the
//! receiver beside what else a port needs that computes its answer. Those of all other transports are agents.

use aqumen_transport::Message;
use aqumen_transport::tcp::{Receiver, Sender};
use aqumen_units::Bytes;

use super::agent::{Agent, Side};
use super::hosts::{FlowState, Hosts, NONE};
use super::moment::{NEVER, instant};
use super::totals::FlowTotal;
use super::ways::{Sink, Ways};

/// What a flow's ends are.
#[derive(Clone, Copy)]
enum Ends {
    Tcp,
    /// Its index among the agents.
    Agent(u32),
}

impl FlowState {
    #[inline(always)]
    fn ends(&self) -> Ends {
        if self.agent == NONE { Ends::Tcp } else { Ends::Agent(self.agent) }
    }

    /// What the flow, whose receiving end is `sink` if it is of TCP, has done since its connection began.
    pub(super) fn done(&self, agents: &[Agent], sink: &Sink) -> FlowTotal {
        match self.ends() {
            Ends::Tcp => FlowTotal::of_tcp(&self.sender, &sink.receiver),
            Ends::Agent(agent) => agents[agent as usize].total(),
        }
    }

    /// Whether all that it was given has been delivered, as far as its source knows.
    pub(super) fn is_idle(&self, agents: &[Agent]) -> bool {
        match self.ends() {
            Ends::Tcp => self.sender.is_finished(),
            Ends::Agent(agent) => agents[agent as usize].is_idle(),
        }
    }

    /// Whether whatever its application writes now changes nothing before the next event of its sender.
    pub(super) fn holds_offers(&self) -> bool {
        matches!(self.ends(), Ends::Tcp) && self.sender.holds_offers(self.send_at != NEVER)
    }

    /// The rate at which its application may produce, if the transport tells.
    pub(super) fn rate_bps(&self, agents: &[Agent]) -> Option<f64> {
        match self.ends() {
            Ends::Tcp => None,
            Ends::Agent(agent) => agents[agent as usize].rate_bps(),
        }
    }
}

impl Hosts<'_> {
    fn ends(&self, flow: u32) -> Ends {
        self.flows[flow as usize].ends()
    }

    /// A flow's application starts or goes on.
    pub(super) fn on_resume(&mut self, ways: &mut Ways<'_>, flow: u32, now: u64) {
        if self.flows[flow as usize].application != NONE {
            return self.start_application(ways, flow, now);
        }
        match self.ends(flow) {
            Ends::Tcp => {
                let state = &mut self.flows[flow as usize];
                state.sender.resume(ways.configs[state.group as usize], instant(now));
                self.pump(ways, flow, now);
            }
            Ends::Agent(_) => self.start_agent(ways, flow, now),
        }
    }

    /// A flow's application stops.
    pub(super) fn on_pause(&mut self, ways: &mut Ways<'_>, flow: u32, now: u64) {
        if self.flows[flow as usize].application != NONE {
            return self.stop_application(ways, flow, now);
        }
        match self.ends(flow) {
            Ends::Tcp => self.flows[flow as usize].sender.pause(instant(now)),
            Ends::Agent(_) => self.stop_agent(ways, flow, now),
        }
    }

    /// The timer of a source: of retransmissions, if it is TCP's.
    pub(super) fn on_retransmission_timer(&mut self, ways: &mut Ways<'_>, now: u64, flow: u32) {
        match self.ends(flow) {
            Ends::Tcp => self.on_sender_timer(ways, now, flow),
            Ends::Agent(_) => self.on_agent_timer(ways, flow, Side::Source, now),
        }
    }

    /// The timer of a sink: of acknowledgements, if it is TCP's.
    pub(super) fn on_acknowledge_timer(&mut self, ways: &mut Ways<'_>, now: u64, flow: u32) {
        match self.ends(flow) {
            Ends::Tcp => ways.on_acknowledge_timer(now, flow),
            Ends::Agent(_) => self.on_agent_timer(ways, flow, Side::Sink, now),
        }
    }

    /// The flow's application writes a message. TCP has no messages: it gets more to send.
    pub(super) fn write(&mut self, ways: &mut Ways<'_>, flow: u32, now: u64, message: Message) {
        match self.ends(flow) {
            Ends::Tcp => self.offer(ways, flow, now, u64::from(message.bytes)),
            Ends::Agent(_) => self.write_to_agent(ways, flow, now, message),
        }
    }

    /// The flow's application asks for a transfer.
    pub(super) fn transfer(&mut self, ways: &mut Ways<'_>, flow: u32, now: u64, bytes: u64) {
        match self.ends(flow) {
            Ends::Tcp => self.offer(ways, flow, now, bytes),
            Ends::Agent(agent) => {
                self.opens(flow);
                self.agents[agent as usize].transfer(instant(now), bytes);
                self.pump_agent(ways, flow, Side::Source, now);
            }
        }
    }

    /// TCP gets more to send; its connection opens if it has none.
    fn offer(&mut self, ways: &mut Ways<'_>, flow: u32, now: u64, bytes: u64) {
        let config = ways.configs[self.flows[flow as usize].group as usize];
        let opens = self.opens(flow);
        let sender = &mut self.flows[flow as usize].sender;
        sender.offer(config, instant(now), Bytes(bytes));
        if opens {
            sender.start(config, instant(now));
        }
        self.pump(ways, flow, now);
    }

    /// Puts new ends in place of the flow's.
    pub(super) fn renew(&mut self, ways: &mut Ways<'_>, flow: u32) {
        let state = &mut self.flows[flow as usize];
        match state.ends() {
            Ends::Tcp => {
                let (config, sink) = (ways.configs[state.group as usize], &mut ways.sinks[flow as usize]);
                // The clock of a host does not jump with a new connection, but the phase of a
                // coarse one is anybody's guess.
                let phase = state.clock_phase(config);
                state.sender = Sender::new(config, Some(Bytes(0))).with_clock_phase(config, phase);
                sink.receiver = Receiver::new(config);
            }
            Ends::Agent(agent) => {
                self.agents[agent as usize].renew(&self.plan.groups[state.group as usize].transport);
                self.measures.receptions.on_new_connection(flow);
            }
        }
    }

    /// What `flow`, whose receiving end is `sink` if it is of TCP, has done since it began.
    pub(super) fn total(&self, flow: u32, sink: &Sink) -> FlowTotal {
        let state = &self.flows[flow as usize];
        let mut total = state.done(&self.agents, sink);
        total.add(self.applications.retired(state.application));
        total
    }
}
