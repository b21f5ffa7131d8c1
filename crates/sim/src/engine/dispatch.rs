//! Dispatch of packets from process to process: path legs, inline receivers at their ends, and the tables of packets
//! that are too large for an event.

use aqumen_network::port::Arrival;
use aqumen_scenario::Plan;
use aqumen_transport::Packet;
use aqumen_transport::tcp::{Ack, Feedback, Receiver, TcpConfig};
use aqumen_units::Instant;

use super::log::Log;
use super::mailboxes::Mailboxes;
use super::moment::{NEVER, instant};
use super::table::{Shareable, Table};
use crate::event::{Event, TableEntry, Words};
use crate::measure::segments::Segments;
use crate::paths::{Leg, LegExit, NO_PROCESS, PackedTarget, Paths, Target};

#[derive(Clone)]
pub(super) struct Dispatcher<'a> {
    pub(super) mailboxes: Mailboxes,
    pub(super) paths: Paths,
    /// TCP configuration of each group; unused for groups of other transports.
    pub(super) configs: Vec<&'a TcpConfig>,
    /// Receiver of each TCP flow.
    pub(super) sinks: Vec<Sink>,
    /// Acknowledgements in flight with SACK blocks or feedback.
    pub(super) acks: Shareable<Ack>,
    /// Packets in flight of other transports.
    pub(super) packets: Shareable<Packet>,
    /// Next edge of a measurement window.
    pub(super) next_edge: u64,
    /// Time of the next scheduled item.
    pub(super) next_control: u64,
    /// End of the run.
    end: u64,
    /// Deliveries that were computed already and come after the next edge: time, flow, payload bytes.
    early_deliveries: Vec<(u64, u32, u32)>,
    /// Measurements of TCP's segments.
    pub(super) segments: Segments,
    /// Whether bulk receivers answer segments when these enter their last leg.
    pub(super) receives_ahead: bool,
    /// Receivers whose delayed acknowledgement may need an event.
    pub(super) delaying: Vec<u32>,
    /// Log of packets for the packet trace, if there is one.
    pub(super) log: Option<Log>,
    /// Whether the flows exceed the cache.
    pub(super) far: bool,
}

/// A TCP receiver on a cache line of its own: an inline receiver needs no more.
#[derive(Clone)]
#[repr(align(64))]
pub(super) struct Sink {
    pub(super) receiver: Receiver,
    /// Time of the earliest event for its delayed acknowledgement.
    pub(super) timer_at: u64,
    pub(super) group: u32,
    /// Generation of the connection.
    pub(super) generation: u16,
}

impl Dispatcher<'_> {
    /// Copies the dispatcher, for a copy of the plan with these TCP configurations.
    pub(super) fn copy<'b>(&self, configs: Vec<&'b TcpConfig>) -> Dispatcher<'b> {
        Dispatcher {
            mailboxes: self.mailboxes.clone(),
            paths: self.paths.clone(),
            configs,
            sinks: self.sinks.clone(),
            acks: self.acks.clone(),
            packets: self.packets.clone(),
            next_edge: self.next_edge,
            next_control: self.next_control,
            end: self.end,
            early_deliveries: self.early_deliveries.clone(),
            segments: self.segments.clone(),
            receives_ahead: self.receives_ahead,
            delaying: self.delaying.clone(),
            log: self.log.clone(),
            far: self.far,
        }
    }

    /// Returns the priority of the first leg.
    #[inline(always)]
    fn first_leg(&self) -> u32 {
        self.mailboxes.priorities.paths
    }

    /// Returns the leg of a packet in a queue, or at the end of a leg.
    #[inline(always)]
    pub(super) fn leg_of(&self, event: &Event) -> u32 {
        event.priority() - self.first_leg()
    }

    /// Sends a packet into `leg` at `at`, which may lie ahead.
    #[inline(always)]
    pub(super) fn send(&mut self, leg: u32, at: u64, event: &Event) {
        let exit = self.paths.cross(leg, at, event.wire_bytes());
        self.leave(leg, exit, event);
    }

    /// Sends a segment from the sender of `flow`, which keeps its `first` leg. The leg mostly leads to a port.
    #[inline(always)]
    pub(super) fn send_first(&mut self, first: &mut Leg, flow: u32, at: u64, segment: &Event) {
        let leg = self.paths.first_of(flow);
        let exit = self.paths.cross_kept(first, leg, at, segment.wire_bytes());
        if exit.process == NO_PROCESS {
            self.leave_rarely(leg, exit, segment.words());
        } else {
            self.send_to(leg, exit, segment);
        }
    }

    /// [`send_first`](Self::send_first), not inlined.
    #[inline(never)]
    pub(super) fn send_first_rarely(&mut self, first: &mut Leg, flow: u32, at: u64, segment: &Event) {
        self.send_first(first, flow, at, segment);
    }

    #[inline(never)]
    fn leave_rarely(&mut self, leg: u32, exit: LegExit, words: Words) {
        self.leave(leg, exit, &Event::from_words(words));
    }

    /// Takes a packet from the end of `leg` to its target.
    #[inline(always)]
    fn leave(&mut self, leg: u32, exit: LegExit, event: &Event) {
        let LegExit { reach, target, .. } = exit;
        if !target.is_inline_receiver() {
            return self.send_to(leg, exit, event);
        }
        let flow = self.paths.flow_of(leg);
        let sink = &mut self.sinks[flow as usize];
        let config = self.configs[sink.group as usize];
        let segment = event.as_segment();
        if !sink.receiver.is_next(&segment) || reach >= self.next_edge {
            self.receive(flow, reach, *event, leg + 1);
            return;
        }
        if Segments::wants(flow, &segment) {
            // A segment of its own, so that the other one stays in registers.
            self.segments.arrive(flow, sink.group, reach, &event.as_segment(), self.next_edge);
        }
        let ack = Event::ack(&sink.receiver.accept(config, &segment), config.ack_bytes, event.generation());
        let exit = self.paths.cross(leg + 1, reach, config.ack_bytes);
        self.send_to(leg + 1, exit, &ack);
    }

    /// Takes a packet from the end of `leg` to a target that is no inline receiver.
    #[inline(always)]
    fn send_to(&mut self, leg: u32, LegExit { reach, target, process }: LegExit, event: &Event) {
        if process != NO_PROCESS {
            let priority = self.first_leg() + leg;
            self.mailboxes.processes[process as usize].push(event.moved(reach, priority));
        } else if target.is_bulk_sender() {
            self.mailboxes.senders.mailbox.push(event.moved(reach, self.paths.flow_of(leg)));
        } else if self.receives_ahead && target.is_bulk_receiver() {
            self.receive_ahead(leg, event.moved(reach, 0).words());
        } else {
            self.send_to_end(leg, target, event.moved(reach, self.first_leg() + leg).words());
        }
    }

    /// Takes a packet to an endpoint other than a bulk sender, through an inline port, or drops it there.
    #[inline(never)]
    fn send_to_end(&mut self, leg: u32, target: PackedTarget, words: Words) {
        let event = Event::from_words(words);
        match target.target() {
            Target::Dropped => self.lose_ahead(event),
            Target::Passed(port) => match self.paths.pass(port, event.at, event.wire_bytes()) {
                Arrival::Leaves { reach, .. } => self.send_rarely(leg + 1, reach, &event),
                Arrival::Lost { end, .. } => self.lose_ahead(event.moved(end, event.priority())),
                Arrival::Dropped => self.lose_ahead(event),
                // The link never works again.
                Arrival::Waits { .. } => {}
            },
            end => self.mailboxes.send_to_endpoint(event.priority(), event.at, self.paths.flow_of(leg), end, &event),
        }
    }

    /// Discards a packet that is lost at the time of `event`, which may lie beyond the end of the run. The event is
    /// passed by value: a reference would force it into memory on the fast path.
    #[cold]
    #[inline(never)]
    pub(super) fn lose_ahead(&mut self, event: Event) {
        if event.at < self.end {
            self.discard(&event);
        }
    }

    /// [`send`](Self::send), not inlined.
    #[inline(never)]
    pub(super) fn send_rarely(&mut self, leg: u32, at: u64, event: &Event) {
        self.send(leg, at, event);
    }

    /// Hands a segment to its bulk receiver when it enters its last `leg`, whose end it reaches at the event's time.
    /// Only segments affect such a receiver, and they arrive in the order in which they enter the leg.
    #[inline(never)]
    fn receive_ahead(&mut self, leg: u32, words: Words) {
        let event = Event::from_words(words);
        let (flow, at) = (self.paths.flow_of(leg), event.at);
        if let Some(due) = self.sinks[flow as usize].receiver.next_timer().filter(|due| due.as_nanos() <= at) {
            self.acknowledge_late(flow, due.as_nanos());
        }
        let sink = &mut self.sinks[flow as usize];
        let segment = event.as_segment();
        if !sink.receiver.is_next(&segment) || at >= self.next_edge {
            self.receive(flow, at, event, leg + 1);
            return;
        }
        let (config, group) = (self.configs[sink.group as usize], sink.group);
        match sink.receiver.on_next(config, instant(at), &segment) {
            Some(ack) => {
                let ack = Event::plain_ack(&ack, config.ack_bytes, event.generation());
                self.send(leg + 1, at, &ack);
            }
            // Mostly the next segment follows before an event would be needed.
            None => self.delaying.push(flow),
        }
        if Segments::wants(flow, &segment) {
            self.segments.arrive(flow, group, at, &segment, self.next_edge);
        }
    }

    /// Schedules events for the acknowledgements that are still delayed.
    pub(super) fn arm_delayed(&mut self) {
        while let Some(flow) = self.delaying.pop() {
            self.arm_acknowledge(flow);
        }
    }

    /// Hands a segment to its receiver, whose acknowledgements leave on leg `acks`, at a time that may lie ahead.
    /// Returns the bytes delivered to the application.
    #[inline(never)]
    pub(super) fn receive(&mut self, flow: u32, at: u64, event: Event, acks: u32) -> u64 {
        let sink = &mut self.sinks[flow as usize];
        if event.generation() != sink.generation {
            return 0; // a copy from an earlier connection
        }
        let config = self.configs[sink.group as usize];
        let before = sink.receiver.delivered_bytes();
        let segment = event.as_segment();
        if Segments::wants(flow, &segment) {
            self.segments.arrive(flow, sink.group, at, &segment, self.next_edge);
        }
        let ack = sink.receiver.on_segment(config, instant(at), &segment);
        let delivered = (sink.receiver.delivered_bytes() - before).0;
        if at >= self.next_edge {
            self.early_deliveries.push((at, flow, delivered as u32));
        }
        if config.delayed_ack.is_some() {
            self.arm_acknowledge(flow);
        }
        if let Some(ack) = ack {
            self.send_ack(flow, at, &ack, acks);
        }
        delivered
    }

    /// Runs the timer of a receiver, if it is due.
    pub(super) fn on_acknowledge_timer(&mut self, now: u64, flow: u32) {
        let sink = &mut self.sinks[flow as usize];
        if sink.timer_at != now {
            return; // an earlier event replaced this one
        }
        sink.timer_at = NEVER;
        self.acknowledge_late(flow, now);
        self.arm_acknowledge(flow);
    }

    /// Sends the delayed acknowledgement of a receiver, if one is due.
    fn acknowledge_late(&mut self, flow: u32, now: u64) {
        if let Some(ack) = self.sinks[flow as usize].receiver.on_timer(instant(now)) {
            self.send_ack(flow, now, &ack, self.paths.acks_of(flow));
        }
    }

    /// Schedules an event for the receiver's timer, unless an earlier one exists.
    fn arm_acknowledge(&mut self, flow: u32) {
        let sink = &mut self.sinks[flow as usize];
        let due = sink.receiver.next_timer().map_or(NEVER, Instant::as_nanos);
        if due < sink.timer_at {
            sink.timer_at = due;
            self.mailboxes.schedule(due, self.mailboxes.priorities.acknowledge + flow);
        }
    }

    fn send_ack(&mut self, flow: u32, at: u64, ack: &Ack, leg: u32) {
        let Sink { group, generation, .. } = self.sinks[flow as usize];
        let bytes = self.configs[group as usize].ack_bytes;
        let event = if ack.sack.is_empty() && ack.feedback == Feedback::None {
            Event::ack(ack, bytes, generation)
        } else {
            Event::ack_in_table(ack, bytes, self.acks.keep(*ack), generation)
        };
        self.send_rarely(leg, at, &event);
    }

    /// Discards a packet.
    #[cold]
    pub(super) fn discard(&mut self, event: &Event) {
        match event.table_entry() {
            Some(TableEntry::Ack(index)) => drop(self.acks.take(index)),
            Some(TableEntry::Packet(index)) => drop(self.packets.take(index)),
            None if !event.is_ack() => {
                let flow = self.paths.flow_of(self.leg_of(event));
                self.segments.lose(self.sinks[flow as usize].group, &event.as_segment());
            }
            None => {}
        }
    }

    /// Returns the bytes of each flow that were delivered already but come after the edge that is reached.
    pub(super) fn early_bytes(&self) -> Vec<u64> {
        let mut early = vec![0; self.sinks.len()];
        self.early_deliveries.iter().for_each(|&(_, flow, bytes)| early[flow as usize] += u64::from(bytes));
        early
    }

    /// Sets the next window edge and the next scheduled item.
    pub(super) fn set_next(&mut self, edge: u64, control: u64) {
        if edge != self.next_edge {
            self.early_deliveries.retain(|&(at, ..)| at >= edge);
            self.segments.set_next_edge(edge);
        }
        (self.next_edge, self.next_control) = (edge, control);
    }
}

impl<'a> Dispatcher<'a> {
    /// Makes the dispatcher of `plan`. `logged`: log packets for a packet trace.
    pub(super) fn new(
        plan: &'a Plan,
        mailboxes: Mailboxes,
        mut paths: Paths,
        configs: Vec<&'a TcpConfig>,
        logged: bool,
    ) -> Self {
        let sinks = plan.flows.iter().map(|flow| Sink {
            receiver: Receiver::new(configs[flow.group as usize]),
            timer_at: NEVER,
            group: flow.group,
            generation: 0,
        });
        let sinks = sinks.collect();
        for flow in 0..plan.flows.len() as u32 {
            paths.set_bulk(flow, mailboxes.is_bulk_sender(flow), mailboxes.is_bulk_receiver(flow));
        }
        paths.set_processes(&mailboxes.of_port);
        Dispatcher {
            mailboxes,
            paths,
            configs,
            sinks,
            acks: Shareable::Own(Table::default()),
            packets: Shareable::Own(Table::default()),
            next_edge: 0,
            next_control: 0,
            end: plan.duration.as_nanos(),
            early_deliveries: Vec::new(),
            segments: Segments::new(plan),
            receives_ahead: false,
            delaying: Vec::new(),
            log: logged.then(Log::default),
            far: plan.flows.len() > FLOWS_IN_CACHE,
        }
    }
}

/// Largest number of flows whose state stays in the cache without prefetching.
const FLOWS_IN_CACHE: usize = 2000;
