//! The engine: takes events in order and lets ports and endpoints answer.
//!
//! Every source of events owns a slot. At equal moments the lower slot goes first:
//!
//! ```text
//! AQM timers (one per port) | control | sampler | ends of service (one per served port)
//!   | retransmission timers | delayed sends | delayed acknowledgements (one each per flow) | applications | lanes
//! ```
//!
//! What is here is the loop and TCP, which most packets belong to; flows of other transports are in `agents`, traffic sources
//! in `applications`. At an agent, the source's timer has the slot of the retransmission timer, the sink's that of the
//! acknowledgement.

mod agents;
mod applications;
mod windows;

use aqumen_aqm::Draw;
use aqumen_result::Series;
use aqumen_scenario::Plan;
use aqumen_scenario::streams::{Kind, Stream};
use aqumen_transport::Packet;
use aqumen_transport::tcp::{Ack, Feedback, Receiver, Segment, Sender, TcpConfig};
use aqumen_units::{Instant, Span};

use crate::calendar::{Calendar, Taken};
use crate::control::{Agenda, Control};
use crate::event::{Event, next_epoch};
use crate::measure::{Measures, Standing};
use crate::network::{Network, Style, Target};
use crate::port::{Arrival, Port};
use crate::trace::Trace;
use crate::{Error, Progress};

use agents::{Agent, Side};
use applications::Applications;
use windows::Windows;

pub(crate) struct Engine<'a> {
    plan: &'a Plan,
    /// The TCP of each group; of a group that has none, one that nobody asks.
    configs: Vec<&'a TcpConfig>,
    slots: Slots,
    calendar: Calendar,
    /// What stands in place of the calendar, where it can.
    windows: Option<Windows>,
    pub(crate) network: Network,
    flows: Vec<FlowState>,
    /// Of each flow, where there is a calendar.
    acks_ahead: Vec<AcksAhead>,
    agenda: Agenda,
    /// Deliveries computed ahead of the next edge of a window, which they follow: when, flow, payload.
    early_deliveries: Vec<(u64, u32, u32)>,
    /// When the earliest delayed-acknowledgement event of each flow in the calendar comes.
    ack_at: Vec<u64>,
    /// Flows of other transports.
    agents: Vec<Agent>,
    applications: Applications,
    /// Acknowledgements with SACK blocks or feedback that are under way.
    acks: Table<Ack>,
    /// Packets of other transports that are under way.
    packets: Table<Packet>,
    /// Lanes of the events that come next, in a network too large for the cache.
    lanes_ahead: Vec<u32>,
    pub(crate) series: Vec<Series>,
    /// What each flow did in each piece between the edges of the windows.
    pub(crate) flow_pieces: Vec<Vec<FlowPiece>>,
    /// What each flow had done at the start of the piece in progress.
    counted: Vec<FlowPiece>,
    pub(crate) measures: Measures,
    trace: Option<Trace>,
    pub(crate) events: u64,
}

/// First slot of each kind.
struct Slots {
    control: u32,
    sampler: u32,
    service: u32,
    retransmission: u32,
    send: u32,
    acknowledge: u32,
    application: u32,
    lanes: u32,
}

/// Both ends of a flow, in the order in which an event touches them: a network of many flows lives on cache lines.
#[repr(C, align(64))]
struct FlowState {
    sender: Sender,
    rng: Stream,
    /// When the earliest retransmission event in the calendar comes.
    timer_at: u64,
    /// When the delayed send in the calendar comes: put off by an overhead or by pacing.
    send_at: u64,
    group: u32,
    /// Its first lane.
    data_lane: u32,
    /// Its place among the agents, or `NONE`: a flow of TCP.
    agent: u32,
    /// Its place among the applications, or `NONE`: it offers what the plan says.
    application: u32,
    /// The connection's, as events have it.
    epoch: u16,
    sink: Sink,
}

/// The receiving end, on a cache line of its own: a port that computes what it does needs no more.
#[repr(align(64))]
struct Sink {
    receiver: Receiver,
    /// The flow's, again.
    group: u32,
}

/// The acknowledgements under way in the last lane, which nothing can stop.
#[derive(Clone, Default)]
struct AcksAhead {
    /// How many there are.
    count: u32,
    /// How many there ever were.
    entered: u32,
    /// When the latest arrive, in turns, nanoseconds modulo 2^32.
    reach: [u32; Self::KNOWN as usize],
}

/// What a sender does after the overhead of its host.
#[derive(Clone, Copy)]
enum Departure {
    /// It has nothing to send, or is about to send already.
    None,
    /// So many segments leave then, before anything can reach the sender.
    At(u32, u64),
    /// It looks then what it may send.
    Later(u64),
}

/// What a flow did in one piece.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowPiece {
    /// Payload delivered in order, bytes.
    pub(crate) delivered: u64,
    pub(crate) counts: SenderCounts,
}

/// Counts of a sender.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SenderCounts {
    pub(crate) sent: u64,
    pub(crate) retransmitted: u64,
    pub(crate) timeouts: u64,
    pub(crate) rtt_samples: u64,
    pub(crate) rtt_sum_ns: u64,
}

/// What is too large to travel in an event.
struct Table<T> {
    kept: Vec<T>,
    free: Vec<u32>,
}

const NEVER: u64 = u64::MAX;

const NONE: u32 = u32::MAX;

/// So many flows are at hand without looking ahead.
const FLOWS_IN_CACHE: usize = 2000;

impl<'a> Engine<'a> {
    pub(crate) fn new(plan: &'a Plan, style: Style, trace: Option<Trace>) -> Result<Self, Error> {
        let network = Network::new(plan, style)?;
        let (ports, flows) = (network.ports.len() as u32, plan.flows.len() as u32);
        let service = ports + 2;
        let retransmission = service + ports;
        let slots = Slots {
            control: ports,
            sampler: ports + 1,
            service,
            retransmission,
            send: retransmission + flows,
            acknowledge: retransmission + 2 * flows,
            application: retransmission + 3 * flows,
            lanes: retransmission + 3 * flows + Applications::slots(plan),
        };
        static NO_TCP: TcpConfig = TcpConfig::ns2();
        let configs: Vec<_> = plan.groups.iter().map(|group| group.transport.tcp().unwrap_or(&NO_TCP)).collect();
        let flows: Vec<_> = plan
            .flows
            .iter()
            .zip(&network.routes)
            .zip(0u64..)
            .map(|((flow, route), number)| {
                FlowState::new(configs[flow.group as usize], flow, route.data, plan.seed, number)
            })
            .collect();
        let windows = Windows::new(plan, &network, style, trace.is_some());
        let calendar = match windows {
            Some(_) => Calendar::new(1.0, 1),
            None => Calendar::new(expected_rate(plan), expected_horizon(plan)),
        };
        let mut engine = Engine {
            plan,
            slots,
            calendar,
            acks_ahead: vec![AcksAhead::default(); if windows.is_some() { 0 } else { flows.len() }],
            windows,
            flows,
            agenda: Agenda::new(plan),
            early_deliveries: Vec::new(),
            configs,
            agents: Vec::new(),
            applications: Applications::default(),
            acks: Table::default(),
            packets: Table::default(),
            lanes_ahead: Vec::new(),
            series: vec![Series::default(); network.ports.len()],
            flow_pieces: vec![Vec::new(); plan.flows.len()],
            counted: vec![FlowPiece::default(); plan.flows.len()],
            measures: Measures::new(plan),
            ack_at: vec![NEVER; plan.flows.len()],
            trace,
            network,
            events: 0,
        };
        engine.add_agents();
        engine.add_applications();
        for port in 0..ports {
            engine.arm_port(port);
        }
        engine.schedule_timer(engine.agenda.next(), engine.slots.control);
        engine.schedule_timer(plan.sample_interval.as_nanos(), engine.slots.sampler);
        Ok(engine)
    }

    /// Runs to the end of the plan.
    pub(crate) fn run(&mut self, progress: &mut dyn Progress) -> Result<(), Error> {
        if self.windows.is_some() {
            return self.run_in_windows(progress);
        }
        let end = self.plan.duration.as_nanos();
        let mut look_ahead_on = if self.flows.len() > FLOWS_IN_CACHE { 0 } else { NEVER };
        while let Some(taken) = self.calendar.pop() {
            self.events += 1;
            if self.calendar.day() >= look_ahead_on {
                look_ahead_on = self.look_ahead();
            }
            if taken.slot >= self.slots.lanes {
                self.on_lane_end(taken);
                continue;
            }
            self.calendar.release(taken.entry);
            if taken.slot == self.slots.control {
                self.on_control(taken.at, progress)?;
                if taken.at >= end {
                    break;
                }
            } else {
                self.on_timer(taken.at, taken.slot);
            }
        }
        if let Some(trace) = self.trace.take() {
            trace.finish()?;
        }
        Ok(())
    }

    /// A packet reached the end of its lane.
    #[inline(always)]
    fn on_lane_end(&mut self, taken: Taken) {
        let number = taken.slot - self.slots.lanes;
        let lane = &self.network.lanes[number as usize];
        let flow = lane.flow;
        match lane.target() {
            Target::Port(port) => self.on_port_arrival(port, flow, number, taken),
            Target::Sender => self.on_ack(flow, taken),
            Target::Receiver | Target::PromptReceiver => self.on_segment(flow, taken.at, taken.entry),
            Target::AgentSink => self.on_agent_packet(flow, Side::Sink, taken),
            Target::AgentSource => self.on_agent_packet(flow, Side::Source, taken),
        }
    }

    #[inline(always)]
    fn on_port_arrival(&mut self, number: u32, flow: u32, lane: u32, taken: Taken) {
        let Taken { at: now, entry, .. } = taken;
        let event = self.calendar.event_mut(entry);
        let arrival = match &mut self.network.ports[number as usize] {
            Port::Fifo(port) => port.arrive(now, event, flow),
            Port::Plain(port) => port.arrive(now, event.bytes),
            Port::Served(_) => return self.on_served_arrival(number, flow, now, entry),
        };
        match arrival {
            Arrival::Leaves { start, reach } => {
                if self.trace.is_some() {
                    self.trace_transmit(number, start, flow, self.calendar.event(entry).put_off(now));
                }
                self.send_down(lane + 1, reach, entry);
            }
            other => {
                if let Arrival::Lost { start } = other
                    && self.trace.is_some()
                {
                    self.trace_transmit(number, start, flow, self.calendar.event(entry).put_off(now));
                }
                let event = self.remove(entry);
                self.discard(flow, &event);
            }
        }
    }

    #[inline(never)]
    fn on_served_arrival(&mut self, number: u32, flow: u32, now: u64, entry: u32) {
        let event = self.remove(entry).put_off(now);
        self.arrive_at_served(number, flow, now, &event);
    }

    fn arrive_at_served(&mut self, number: u32, flow: u32, now: u64, event: &Event) {
        let Port::Served(port) = &mut self.network.ports[number as usize] else { return };
        let mut dropped = Vec::new();
        if let Arrival::Waits { busy_until: Some(end) } = port.arrive(now, event, flow, &mut dropped) {
            self.schedule_timer(end, self.slots.service + number);
        }
        dropped.iter().for_each(|event| self.discard(self.flow_of(event), event));
    }

    /// The flow of a packet in a queue.
    fn flow_of(&self, event: &Event) -> u32 {
        self.network.lanes[(event.slot - self.slots.lanes) as usize].flow
    }

    /// A packet of `flow` is gone.
    #[inline]
    fn discard(&mut self, flow: u32, event: &Event) {
        if let Some(index) = event.table_index() {
            match self.flows[flow as usize].agent {
                NONE => self.acks.release(index),
                _ => self.packets.release(index),
            }
        }
    }

    /// Takes an event out of the calendar's hands.
    #[inline]
    fn remove(&mut self, entry: u32) -> Event {
        let event = *self.calendar.event(entry);
        self.calendar.release(entry);
        event
    }

    #[cold]
    fn trace_transmit(&mut self, port: u32, start: u64, flow: u32, event: Event) {
        let Some(trace) = &mut self.trace else { return };
        let link = self.network.port_links[port as usize];
        match event.table_index() {
            Some(index) if self.flows[flow as usize].agent != NONE => {
                trace.packet(link, start, flow, &event, &self.packets.kept[index as usize]);
            }
            Some(index) => trace.ack(link, start, flow, &event, &self.acks.kept[index as usize]),
            None if event.is_ack() => trace.ack(link, start, flow, &event, &event.as_ack()),
            None => trace.segment(link, start, flow, &event),
        }
    }

    /// A served port ends a transmission.
    fn on_service_end(&mut self, now: u64, number: u32) {
        let Port::Served(port) = &mut self.network.ports[number as usize] else { return };
        let mut dropped = Vec::new();
        let (sent, busy_until) = port.finish(now, &mut dropped);
        if let Some(end) = busy_until {
            self.schedule_timer(end, self.slots.service + number);
        }
        dropped.iter().for_each(|event| self.discard(self.flow_of(event), event));
        let Some(sent) = sent else { return };
        let lane = sent.event.slot - self.slots.lanes;
        let flow = self.network.lanes[lane as usize].flow;
        if self.trace.is_some() {
            self.trace_transmit(number, sent.start, flow, sent.event);
        }
        match sent.reach {
            Some(reach) => self.send_event(lane + 1, reach, sent.event),
            None => self.discard(flow, &sent.event),
        }
    }

    /// The packet in `entry` enters `lane` at `at`, which may lie ahead.
    #[inline(always)]
    fn send_down(&mut self, lane: u32, at: u64, entry: u32) {
        let (reach, flow, target) = self.network.cross(lane, at, self.calendar.event(entry).bytes);
        match target {
            Target::PromptReceiver => self.on_segment_ahead(flow, lane, reach, entry),
            _ => self.schedule(lane, reach, flow, target, entry),
        }
    }

    /// The packet in `entry` will reach the end of `lane` at `reach`.
    #[inline(always)]
    fn schedule(&mut self, lane: u32, reach: u64, flow: u32, target: Target, entry: u32) {
        if target == Target::Sender {
            self.acks_ahead[flow as usize].enter(reach);
        }
        self.calendar.again(entry, reach, self.slots.lanes + lane);
    }

    /// A packet that has no entry yet enters `lane` at `at`, which may lie ahead.
    #[inline(always)]
    fn send_event(&mut self, lane: u32, at: u64, mut event: Event) {
        if self.windows.is_some() {
            return self.send_in_window(lane, at, &event);
        }
        let (reach, flow, target) = self.network.cross(lane, at, event.bytes);
        match target {
            // No port on the way: the receiver answers now.
            Target::PromptReceiver => return self.on_segment_event(flow, reach, &event),
            Target::Sender => self.acks_ahead[flow as usize].enter(reach),
            _ => {}
        }
        event.at = reach;
        event.slot = self.slots.lanes + lane;
        self.calendar.push(event);
    }

    /// A segment on `lane` will reach a receiver that answers at once.
    #[inline(always)]
    fn on_segment_ahead(&mut self, flow: u32, lane: u32, at: u64, entry: u32) {
        let state = &mut self.flows[flow as usize];
        let config = self.configs[state.sink.group as usize];
        let event = self.calendar.event_mut(entry);
        let segment = event.as_segment();
        if !state.sink.receiver.is_next(&segment) || at >= self.agenda.next_edge() {
            return self.on_segment(flow, at, entry);
        }
        *event = Event::ack(&state.sink.receiver.accept(config, &segment), config.ack_bytes, event.epoch());
        let (reach, flow, target) = self.network.cross(lane + 1, at, config.ack_bytes);
        self.schedule(lane + 1, reach, flow, target, entry);
    }

    /// A segment reaches its receiver at a moment that may lie ahead.
    #[inline(never)]
    fn on_segment(&mut self, flow: u32, at: u64, entry: u32) {
        let event = self.remove(entry);
        self.on_segment_event(flow, at, &event);
    }

    #[inline(never)]
    fn on_segment_event(&mut self, flow: u32, at: u64, event: &Event) {
        let state = &mut self.flows[flow as usize];
        if event.epoch() != state.epoch {
            return; // a copy, left over from a connection that is complete
        }
        let config = self.configs[state.group as usize];
        let before = state.sink.receiver.delivered_bytes();
        let ack = state.sink.receiver.on_segment(config, instant(at), &event.as_segment());
        let delivered = (state.sink.receiver.delivered_bytes() - before).0;
        if at >= self.agenda.next_edge() {
            self.early_deliveries.push((at, flow, delivered as u32));
        }
        if state.application != NONE && delivered > 0 {
            self.applications.delivered(state.application, at);
        }
        if config.delayed_ack.is_some() {
            self.arm_acknowledge(flow);
        }
        if let Some(ack) = ack {
            self.send_ack(flow, at, &ack);
        }
    }

    fn send_ack(&mut self, flow: u32, at: u64, ack: &Ack) {
        let (bytes, epoch) = (self.config(flow).ack_bytes, self.flows[flow as usize].epoch);
        let event = if ack.sack.is_empty() && ack.feedback == Feedback::None {
            Event::ack(ack, bytes, epoch)
        } else {
            Event::ack_in_table(ack, bytes, self.acks.keep(*ack), epoch)
        };
        self.send_event(self.network.routes[flow as usize].acks, at, event);
    }

    /// An acknowledgement reaches its sender.
    #[inline(always)]
    fn on_ack(&mut self, flow: u32, taken: Taken) {
        let event = self.calendar.event(taken.entry);
        self.acks_ahead[flow as usize].count -= 1;
        if event.table_index().is_some() {
            let event = self.remove(taken.entry);
            return self.on_ack_in_table(flow, taken.at, &event);
        }
        let (ack, epoch) = (event.as_ack(), event.epoch());
        self.calendar.release(taken.entry);
        let state = &mut self.flows[flow as usize];
        if state.application != NONE {
            return self.on_ack_of_application(flow, taken.at, &ack, epoch);
        }
        state.sender.on_ack(self.configs[state.group as usize], instant(taken.at), &ack);
        self.pump(flow, taken.at);
    }

    #[inline(never)]
    fn on_ack_in_table(&mut self, flow: u32, now: u64, event: &Event) {
        let Some(index) = event.table_index() else { return };
        let ack = self.acks.kept[index as usize];
        self.acks.release(index);
        let state = &mut self.flows[flow as usize];
        if state.application != NONE {
            return self.on_ack_of_application(flow, now, &ack, event.epoch());
        }
        state.sender.on_ack(self.configs[state.group as usize], instant(now), &ack);
        self.pump_rarely(flow, now);
    }

    /// An acknowledgement of a connection that serves an application.
    #[inline(never)]
    fn on_ack_of_application(&mut self, flow: u32, now: u64, ack: &Ack, epoch: u16) {
        let state = &mut self.flows[flow as usize];
        if epoch == state.epoch {
            state.sender.on_ack(self.configs[state.group as usize], instant(now), ack);
            self.pump(flow, now);
            self.on_progress(flow, now);
        }
    }

    /// [`pump`](Self::pump) where it is not worth its own copy of the code.
    #[inline(never)]
    fn pump_rarely(&mut self, flow: u32, now: u64) {
        self.pump(flow, now);
    }

    /// Sends what the sender has to send.
    #[inline(always)]
    fn pump(&mut self, flow: u32, now: u64) {
        let config = self.config(flow);
        while let Some(segment) = self.flows[flow as usize].sender.poll_immediate(config, instant(now)) {
            self.send_segment_rarely(flow, now, segment);
        }
        if config.send_overhead == Span::ZERO {
            self.transmit(flow, now, config);
        } else {
            self.transmit_after_overhead(flow, now, config);
        }
        self.arm_retransmission(flow);
    }

    /// Sends all that the window allows.
    #[inline(never)]
    fn transmit(&mut self, flow: u32, now: u64, config: &TcpConfig) {
        match self.flows[flow as usize].sender.allowance() {
            Some(segments) => self.transmit_some(flow, now, config, segments),
            None => {
                while let Some(segment) = self.flows[flow as usize].sender.poll_transmit(config, instant(now)) {
                    self.send_segment_rarely(flow, now, segment);
                }
                self.arm_paced_send(flow, now, config);
            }
        }
    }

    /// Pacing holds a segment back: it leaves by the delayed send of its flow.
    #[cold]
    fn arm_paced_send(&mut self, flow: u32, now: u64, config: &TcpConfig) {
        let state = &mut self.flows[flow as usize];
        if state.send_at == NEVER
            && let Some(release) = state.sender.next_send(config, instant(now))
        {
            state.send_at = release.as_nanos();
            self.schedule_timer(release.as_nanos(), self.slots.send + flow);
        }
    }

    #[inline(always)]
    fn transmit_some(&mut self, flow: u32, now: u64, config: &TcpConfig, segments: u32) {
        for _ in 0..segments {
            let segment = self.flows[flow as usize].sender.transmit(config, instant(now));
            self.send_segment(flow, now, segment);
        }
    }

    /// Sends all that the window allows a random time from now. When nothing can reach the sender before then, it is
    /// done on the spot.
    #[inline(always)]
    fn transmit_after_overhead(&mut self, flow: u32, now: u64, config: &TcpConfig) {
        // In windows, what comes next may be in any inbox.
        let next_ack = || match self.acks_ahead.get(flow as usize) {
            None => now,
            Some(ahead) if ahead.count == 0 => now + self.network.routes[flow as usize].notice,
            Some(ahead) => ahead.next(now),
        };
        match self.flows[flow as usize].departure(config, now, self.agenda.next(), next_ack) {
            Departure::None => {}
            Departure::At(segments, at) => self.transmit_some(flow, at, config, segments),
            Departure::Later(at) => self.schedule_timer(at, self.slots.send + flow),
        }
    }

    #[inline(never)]
    fn send_segment_rarely(&mut self, flow: u32, now: u64, segment: Segment) {
        self.send_segment(flow, now, segment);
    }

    #[inline(always)]
    fn send_segment(&mut self, flow: u32, now: u64, segment: Segment) {
        let state = &self.flows[flow as usize];
        self.send_event(state.data_lane, now, Event::segment(&segment, state.epoch));
    }

    /// Makes sure that an event stands in the calendar no later than the sender's timer.
    #[inline(always)]
    fn arm_retransmission(&mut self, flow: u32) {
        if let Some(due) = self.flows[flow as usize].rearm() {
            self.schedule_timer(due, self.slots.retransmission + flow);
        }
    }

    #[inline(never)]
    fn schedule_timer(&mut self, at: u64, slot: u32) {
        match &mut self.windows {
            Some(windows) => windows.schedule(at, slot, &self.slots),
            None => self.calendar.push(Event::timer(at, slot)),
        }
    }

    /// The same for a receiver's delayed acknowledgement.
    fn arm_acknowledge(&mut self, flow: u32) {
        let due = self.flows[flow as usize].sink.receiver.next_timer().map_or(NEVER, Instant::as_nanos);
        if due < self.ack_at[flow as usize] {
            self.ack_at[flow as usize] = due;
            self.schedule_timer(due, self.slots.acknowledge + flow);
        }
    }

    fn arm_port(&mut self, port: u32) {
        if let Some(due) = self.network.ports[port as usize].next_timer() {
            self.schedule_timer(due, port);
        }
    }

    /// The timer of a port's AQM is due.
    fn on_port_timer(&mut self, now: u64, port: u32) {
        // A timer of an AQM that was replaced comes to nothing.
        if self.network.ports[port as usize].on_timer(now) {
            self.arm_port(port);
        }
    }

    #[cold]
    fn on_timer(&mut self, now: u64, slot: u32) {
        let slots = &self.slots;
        if slot < slots.control {
            self.on_port_timer(now, slot);
        } else if slot == slots.sampler {
            self.sample(now);
        } else if slot < slots.retransmission {
            self.on_service_end(now, slot - slots.service);
        } else if slot < slots.send {
            self.on_retransmission_timer(now, slot - slots.retransmission);
        } else if slot < slots.acknowledge {
            self.on_delayed_send(now, slot - slots.send);
        } else if slot < slots.application {
            self.on_acknowledge_timer(now, slot - slots.acknowledge);
        } else {
            self.on_application(now, slot - slots.application);
        }
    }

    fn on_retransmission_timer(&mut self, now: u64, flow: u32) {
        let state = &mut self.flows[flow as usize];
        if state.agent != NONE {
            return self.on_agent_timer(flow, Side::Source, now);
        }
        if state.timer_at != now {
            return; // an earlier event took its place
        }
        state.timer_at = NEVER;
        if state.sender.next_timer().is_some_and(|due| due.as_nanos() <= now) {
            state.sender.on_timer(self.configs[state.group as usize], instant(now));
            self.pump_rarely(flow, now);
        } else {
            self.arm_retransmission(flow); // the deadline has moved on
        }
    }

    fn on_delayed_send(&mut self, now: u64, flow: u32) {
        let state = &mut self.flows[flow as usize];
        state.send_at = NEVER;
        self.transmit(flow, now, self.config(flow));
        self.arm_retransmission(flow);
    }

    fn on_acknowledge_timer(&mut self, now: u64, flow: u32) {
        if self.flows[flow as usize].agent != NONE {
            return self.on_agent_timer(flow, Side::Sink, now);
        }
        if self.ack_at[flow as usize] != now {
            return;
        }
        self.ack_at[flow as usize] = NEVER;
        let ack = self.flows[flow as usize].sink.receiver.on_timer(instant(now));
        self.arm_acknowledge(flow);
        if let Some(ack) = ack {
            self.send_ack(flow, now, &ack);
        }
    }

    fn sample(&mut self, now: u64) {
        for (port, series) in self.network.ports.iter_mut().zip(&mut self.series) {
            if let Some((queue, probability)) = port.sample(now) {
                series.t_s.push(now as f64 * 1e-9);
                series.queue_pkts.push(queue as f64);
                series.probability.push(probability);
            }
        }
        let (flows, configs) = (&self.flows, &self.configs);
        self.measures.sample(self.plan, now, |flow| {
            let FlowState { sender, group, .. } = &flows[flow as usize];
            let most = f64::from(configs[*group as usize].receive_window);
            Standing { window: sender.cwnd().min(most), acknowledged: sender.acknowledged_segments() }
        });
        let next = now + self.plan.sample_interval.as_nanos();
        if next <= self.plan.duration.as_nanos() {
            self.schedule_timer(next, self.slots.sampler);
        }
    }

    fn on_control(&mut self, now: u64, progress: &mut dyn Progress) -> Result<(), Error> {
        while let Some(control) = self.agenda.take(now) {
            match control {
                Control::Edge => self.on_edge(now),
                Control::ReplaceAqm { link, change } => self.replace_aqm(now, link, change),
                Control::Resume(flow) => self.on_resume(flow, now),
                Control::Pause(flow) => self.on_pause(flow, now),
                Control::Progress => {
                    if !progress.at(now as f64 / self.plan.duration.as_nanos() as f64) {
                        return Err(Error::Cancelled);
                    }
                }
            }
        }
        if self.agenda.next() != NEVER {
            self.schedule_timer(self.agenda.next(), self.slots.control);
        }
        Ok(())
    }

    #[cold]
    fn replace_aqm(&mut self, now: u64, link: u32, change: u32) {
        let line = self.plan.links[link as usize].line.as_ref();
        let Some((_, choice)) = line.and_then(|line| line.aqms.get(change as usize)) else { return };
        // The plan was made of AQMs that can be built; a link that nobody uses has no port.
        let Some(port) = self.network.port_links.iter().position(|number| *number == link) else { return };
        if let Some(Ok(new)) = choice.build_qdisc(self.plan.links[link as usize].limit) {
            self.network.ports[port].retune(new, now);
            self.arm_port(port as u32);
        }
    }

    /// A flow's application starts or goes on.
    fn on_resume(&mut self, flow: u32, now: u64) {
        let state = &mut self.flows[flow as usize];
        if state.application != NONE {
            self.start_application(flow, now);
        } else if state.agent != NONE {
            self.start_agent(flow, now);
        } else {
            state.sender.resume(self.configs[state.group as usize], instant(now));
            self.pump_rarely(flow, now);
        }
    }

    /// A flow's application stops.
    fn on_pause(&mut self, flow: u32, now: u64) {
        let state = &mut self.flows[flow as usize];
        if state.application != NONE {
            self.stop_application(flow);
        } else if state.agent != NONE {
            self.stop_agent(flow, now);
        } else {
            state.sender.pause(instant(now));
        }
    }

    /// A window begins or ends.
    fn on_edge(&mut self, now: u64) {
        self.network.ports.iter_mut().for_each(|port| port.edge(now));
        self.measures.edge();
        let mut ahead = vec![0; self.flows.len()];
        self.early_deliveries.iter().for_each(|&(_, flow, bytes)| ahead[flow as usize] += bytes as u64);
        let flows = self.flows.iter().zip(&mut self.flow_pieces).zip(&mut self.counted).zip(&ahead);
        for (((state, pieces), counted), ahead) in flows {
            let mut total = match state.agent {
                NONE => FlowPiece::of_tcp(&state.sender, &state.sink.receiver),
                agent => self.agents[agent as usize].total(),
            };
            total.add(self.applications.retired(state.application));
            total.delivered -= ahead;
            pieces.push(total.since(counted));
            *counted = total;
        }
        let next_edge = self.agenda.next_edge();
        self.early_deliveries.retain(|&(at, ..)| at >= next_edge);
    }

    /// Reads what the events to come will need, step by step as each tells where the next is: the ends of the flows on the
    /// lanes seen at the last look, the lanes of the next events, the events after those. In a large network none of it is
    /// in the cache, and waiting for many at once takes no longer than for one. Returns the bucket of the calendar on which
    /// it is time for the next look.
    #[inline(never)]
    fn look_ahead(&mut self) -> u64 {
        const STEP: u64 = 16;
        let lanes = &self.network.lanes;
        let mut seen = 0;
        for &number in &self.lanes_ahead {
            let lane = &lanes[number as usize];
            let state = &self.flows[lane.flow as usize];

            if lane.target() == Target::Sender {
                seen ^= state.sender.acknowledged_segments() ^ state.sender.stats().sent ^ state.data_lane;
                seen ^= self.acks_ahead[lane.flow as usize].count;
                seen ^= lanes[state.data_lane as usize].flow;
            } else {
                seen ^= state.sink.receiver.delivered_segments();
            }
        }
        let day = self.calendar.day() + STEP;
        self.lanes_ahead.clear();
        self.calendar.upcoming(day..day + STEP, &mut self.lanes_ahead);
        self.lanes_ahead.retain_mut(|slot| {
            let on_lane = *slot >= self.slots.lanes;
            *slot = slot.wrapping_sub(self.slots.lanes);
            on_lane
        });
        for &number in &self.lanes_ahead {
            seen ^= lanes[number as usize].flow;
            seen ^= lanes.get(number as usize + 1).map_or(0, |lane| lane.flow);
        }
        self.calendar.read_ahead(day + STEP..day + 2 * STEP, day + 2 * STEP..day + 3 * STEP);
        std::hint::black_box(seen);
        day
    }

    #[inline]
    fn config(&self, flow: u32) -> &'a TcpConfig {
        self.configs[self.flows[flow as usize].group as usize]
    }
}

impl FlowState {
    fn new(config: &TcpConfig, flow: &aqumen_scenario::Flow, data_lane: u32, seed: u64, number: u64) -> Self {
        let mut rng = Stream::new(seed, Kind::Endpoint, number);
        let phase = Span::from_nanos((rng.uniform() * config.rto_tick.as_nanos() as f64) as u64);
        FlowState {
            sender: Sender::new(config, flow.transfer).with_clock_phase(config, phase),
            rng,
            timer_at: NEVER,
            send_at: NEVER,
            group: flow.group,
            data_lane,
            agent: NONE,
            application: NONE,
            epoch: 0,
            sink: Sink { receiver: Receiver::new(config), group: flow.group },
        }
    }

    /// What the sender does a random time after `now`, before anything of the agenda, when it has something to send; the
    /// next acknowledgement comes no sooner than `next_ack`.
    #[inline(always)]
    fn departure(
        &mut self,
        config: &TcpConfig,
        now: u64,
        next_control: u64,
        next_ack: impl FnOnce() -> u64,
    ) -> Departure {
        let allowance = self.sender.allowance();
        if self.send_at != NEVER
            || allowance == Some(0)
            || (allowance.is_none() && !self.sender.may_transmit(config, instant(now)))
        {
            return Departure::None;
        }
        // Signed, because processors convert those faster.
        let overhead_ns = config.send_overhead.as_nanos() as i64;
        let at = now + (self.rng.uniform() * overhead_ns as f64) as i64 as u64;
        let timer = self.sender.next_timer().map_or(NEVER, Instant::as_nanos);
        match allowance {
            Some(segments) if at < next_ack() && at < timer && at < next_control => Departure::At(segments, at),
            _ => {
                self.send_at = at;
                Departure::Later(at)
            }
        }
    }

    /// When an event for the sender's timer is to be made, if none comes as soon.
    #[inline(always)]
    fn rearm(&mut self) -> Option<u64> {
        let due = self.sender.next_timer().map_or(NEVER, Instant::as_nanos);
        (due < self.timer_at).then(|| {
            self.timer_at = due;
            due
        })
    }
}

impl AcksAhead {
    /// Of so many the arrival is remembered.
    const KNOWN: u32 = 32;

    /// One more will arrive at `reach`.
    #[inline]
    fn enter(&mut self, reach: u64) {
        self.reach[(self.entered % Self::KNOWN) as usize] = reach as u32;
        self.entered = self.entered.wrapping_add(1);
        self.count += 1;
    }

    /// A moment no later than the next arrival: mostly that itself. There is one.
    #[inline]
    fn next(&self, now: u64) -> u64 {
        if self.count > Self::KNOWN {
            return now;
        }
        let reach = self.reach[(self.entered.wrapping_sub(self.count) % Self::KNOWN) as usize];
        now + reach.wrapping_sub(now as u32) as u64
    }
}

impl FlowPiece {
    const NOTHING: FlowPiece = FlowPiece { delivered: 0, counts: SenderCounts::NOTHING };

    fn of_tcp(sender: &Sender, receiver: &Receiver) -> Self {
        FlowPiece { delivered: receiver.delivered_bytes().0, counts: SenderCounts::of(sender) }
    }

    fn add(&mut self, other: &FlowPiece) {
        self.delivered += other.delivered;
        self.counts.add(&other.counts);
    }

    fn since(&self, before: &FlowPiece) -> FlowPiece {
        FlowPiece { delivered: self.delivered - before.delivered, counts: self.counts.since(&before.counts) }
    }
}

impl SenderCounts {
    const NOTHING: SenderCounts =
        SenderCounts { sent: 0, retransmitted: 0, timeouts: 0, rtt_samples: 0, rtt_sum_ns: 0 };

    fn of(sender: &Sender) -> Self {
        let stats = sender.stats();
        SenderCounts {
            sent: stats.sent as u64,
            retransmitted: stats.retransmitted as u64,
            timeouts: stats.timeouts as u64,
            rtt_samples: stats.rtt_samples as u64,
            rtt_sum_ns: stats.rtt_sum.as_nanos(),
        }
    }

    pub(crate) fn add(&mut self, other: &SenderCounts) {
        self.sent += other.sent;
        self.retransmitted += other.retransmitted;
        self.timeouts += other.timeouts;
        self.rtt_samples += other.rtt_samples;
        self.rtt_sum_ns += other.rtt_sum_ns;
    }

    fn since(&self, before: &SenderCounts) -> SenderCounts {
        SenderCounts {
            sent: self.sent - before.sent,
            retransmitted: self.retransmitted - before.retransmitted,
            timeouts: self.timeouts - before.timeouts,
            rtt_samples: self.rtt_samples - before.rtt_samples,
            rtt_sum_ns: self.rtt_sum_ns - before.rtt_sum_ns,
        }
    }
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table { kept: Vec::new(), free: Vec::new() }
    }
}

impl<T> Table<T> {
    fn keep(&mut self, item: T) -> u32 {
        if let Some(index) = self.free.pop() {
            self.kept[index as usize] = item;
            index
        } else {
            self.kept.push(item);
            (self.kept.len() - 1) as u32
        }
    }

    #[inline]
    fn release(&mut self, index: u32) {
        self.free.push(index);
    }
}

/// About how many events a second to expect: decides the calendar's widths, and so only the speed.
fn expected_rate(plan: &Plan) -> f64 {
    let size = plan.groups.iter().map(|group| group.transport.packet_bytes()).max().unwrap_or(1000);
    let bytes = aqumen_units::Bytes(size.max(1) as u64);
    let recorded = plan.links.iter().filter(|link| link.record);
    // A packet over a recorded link means three events: its arrival, its acknowledgement on the way, and at the sender.
    let over_links: f64 = recorded.map(|link| 3.0 * link.rates[0].1.packets_per_sec(bytes)).sum();
    over_links.clamp(1e3, 1e9)
}

/// How far ahead most events lie: the longest way there and back, and as long again in queues.
fn expected_horizon(plan: &Plan) -> u64 {
    let delay = |path: &[u32]| path.iter().map(|&link| plan.links[link as usize].delay.as_nanos()).sum::<u64>();
    let longest = plan.flows.iter().map(|flow| delay(&flow.path) + delay(&flow.return_path)).max().unwrap_or(0);
    2 * longest + 100_000_000
}

fn instant(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_fills_four_cache_lines() {
        assert_eq!(size_of::<FlowState>(), 256);
    }
}
