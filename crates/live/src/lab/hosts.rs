//! The ends of the flows: sockets of the kernel, and the plan's applications that use them.
//!
//! One thread, in the senders' namespace, does what the agenda says and what the kernel reports. An application hears
//! that its transfer was delivered when the acknowledgement of its last byte would be back.
//!
//! `tcp` are the kernel's connections, `ends` flows of other transports.

pub mod ends;
pub mod tcp;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::os::fd::OwnedFd;

use aqumen_network::Receptions;
use aqumen_network::measurement::pieces_in;
use aqumen_result::{FlowMetrics, Requests, Served, jain, tell_films};
use aqumen_scenario::streams::{Kind, Stream};
use aqumen_scenario::traffic::Scope;
use aqumen_scenario::{Plan, Traffic, Window};
use aqumen_traffic::{Action, Source, Step};
use aqumen_units::Instant;
use rustix::buffer::spare_capacity;
use rustix::event::epoll;

use super::clock::Clock;
use super::kernel::Sockets;
use super::world::World;
use crate::{Failure, Tried};
use ends::{Ends, Side};
use tcp::{Connection, Inbound, Info, Look};

/// The flows' ends during a run.
pub struct Hosts<'a> {
    plan: &'a Plan,
    sockets: &'a [Sockets],
    clock: Clock,
    epoll: OwnedFd,
    listener: OwnedFd,
    agenda: BinaryHeap<Reverse<(u64, Due)>>,
    flows: Vec<Flow>,
    applications: Vec<Application>,
    /// Connections by number; the number is the event's data. A closed one leaves a gap.
    outbound: Vec<Option<Connection>>,
    inbound: Vec<Option<Inbound>>,
    /// The outbound connection of each flow and port.
    by_port: BTreeMap<(u32, u16), usize>,
    seen: Seen,
}

/// What the hosts saw.
#[derive(Debug)]
pub struct Seen {
    edges: Vec<u64>,
    /// Totals of each flow at each edge.
    totals: Vec<Vec<Totals>>,
    /// Packets and messages of transports other than TCP.
    receptions: Receptions,
    requests: Requests,
    /// Connections that failed.
    pub failures: u64,
}

/// What a flow did so far.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    delivered: u64,
    info: Info,
    rtt_sum_ns: f64,
    rtt_samples: u64,
}

/// One flow.
#[derive(Default)]
struct Flow {
    /// Its connection, among the outbound.
    connection: Option<usize>,
    /// Connections that it had so far.
    opened: u32,
    /// Its ends, if its transport is not TCP.
    ends: Option<Ends>,
    /// What its earlier connections did.
    retired: Totals,
    /// What it did so far, as far as it has been asked.
    totals: Totals,
    /// The transfer under way: its size, when it was asked for, and what its connection will then have delivered.
    request: Option<(u64, u64, u64)>,
    /// When its first bytes arrived.
    first_at: Option<u64>,
    /// When its last transfer was delivered.
    delivered_at: u64,
    /// When its sink, if it is not of TCP, last handed something over.
    handed_over_at: u64,
    /// Its application, if it has one of its own or shares one.
    application: Option<usize>,
    /// A finite bulk transfer has begun.
    begun: bool,
}

/// What offers data on flows that are not bulk transfers: a source for one flow and its connections, or for a group.
struct Application {
    source: Box<dyn Source + Send>,
    rng: Stream,
    /// The next action, and when.
    pending: Option<(u64, Action)>,
    running: bool,
    waits: bool,
    first: u32,
    /// The group whose flows it uses as they are idle.
    shared: Option<u32>,
    idle: BinaryHeap<Reverse<u32>>,
    page_at: Option<u64>,
}

/// What is due. At equal moments the order is that of the variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// A window begins or ends.
    Edge,
    /// Round-trip times are sampled.
    Sample,
    /// A flow's application stops.
    Pause(u32),
    /// It starts or goes on.
    Resume(u32),
    /// A transfer was delivered, and its application hears of it.
    Served(u32),
    /// The timer of an end of a flow.
    Timer(u32, Side),
    /// An application acts.
    Act(usize),
}

/// Kinds of descriptors in the data of an event.
const LISTENER: u64 = 0;
/// The source of a flow is of an even number, its sink of the odd one after.
const END: u64 = 1;
const OUTBOUND: u64 = 2;
const INBOUND: u64 = 3;

/// Whoever wants the run to end waits no longer, nanoseconds.
const STOP_NS: u64 = 100_000_000;
/// A connection has brought something, or was closed.
const ARRIVES: epoll::EventFlags = epoll::EventFlags::IN.union(epoll::EventFlags::RDHUP);
/// A connection takes more than it took before.
const TAKES_MORE: epoll::EventFlags = epoll::EventFlags::OUT.union(epoll::EventFlags::ET);

/// Looks at the kernel's round-trip times: each so often, or less where there are many flows, nanoseconds.
const SAMPLE_NS: u64 = 50_000_000;
const SAMPLES_PER_S_MAX: u64 = 4000;

impl<'a> Hosts<'a> {
    /// The ends of the flows of `plan`, whose clock starts with the run. The caller is in the
    /// senders' namespace and stays there.
    pub fn new(
        plan: &'a Plan,
        sockets: &'a [Sockets],
        world: &World,
        edges: Vec<u64>,
        clock: Clock,
    ) -> Result<Self, Failure> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).or_refuse(|| "cannot poll".into())?;
        let listener = tcp::listen(&world.receivers)?;
        watch(&epoll, &listener, LISTENER, 0, epoll::EventFlags::IN)?;
        let mut agenda: BinaryHeap<_> = edges.iter().map(|at| Reverse((*at, Due::Edge))).collect();
        let mut flows: Vec<Flow> = Vec::new();
        for (flow, number) in plan.flows.iter().zip(0u32..) {
            let (group, needs) = (&plan.groups[flow.group as usize], &sockets[flow.group as usize]);
            let ends = Ends::open(number, &group.transport, needs, &world.receivers)?;
            if let Some(ends) = &ends {
                for (side, end) in Side::ALL.into_iter().zip(2 * number as usize..) {
                    watch(&epoll, ends.socket(side), END, end, epoll::EventFlags::IN)?;
                }
            }
            flows.push(Flow { ends, ..Flow::default() });
            for &(from, until) in &flow.on {
                agenda.push(Reverse((from.as_nanos(), Due::Resume(number))));
                agenda.extend(until.map(|until| Reverse((until.as_nanos(), Due::Pause(number)))));
            }
        }
        agenda.push(Reverse((sample_step(plan), Due::Sample)));
        let mut hosts = Hosts {
            plan,
            sockets,
            clock,
            epoll,
            listener,
            agenda,
            flows,
            applications: Vec::new(),
            outbound: Vec::new(),
            inbound: Vec::new(),
            by_port: BTreeMap::new(),
            seen: Seen {
                edges,
                totals: Vec::new(),
                receptions: Receptions::new(plan),
                requests: Requests::default(),
                failures: 0,
            },
        };
        hosts.add_applications();
        Ok(hosts)
    }

    fn add_applications(&mut self) {
        for (number, group) in (0u32..).zip(&self.plan.groups) {
            let shared = group.traffic.scope() == Scope::Group;
            // One source for the group, or for each flow and its further connections.
            let together = if shared { group.flows.len() } else { group.traffic.connections() as usize };
            for first in group.flows.clone().step_by(together) {
                let Some(source) = aqumen_traffic::build(&group.traffic) else { continue };
                for flow in &mut self.flows[first as usize..][..together] {
                    flow.application = Some(self.applications.len());
                }
                self.applications.push(Application {
                    source,
                    rng: Stream::new(self.plan.seed, Kind::Traffic, u64::from(first)),
                    pending: None,
                    running: false,
                    waits: false,
                    first,
                    shared: shared.then_some(number),
                    idle: BinaryHeap::new(),
                    page_at: None,
                });
            }
        }
    }

    /// Runs until `end`. `stop` is asked now and then.
    pub fn run(mut self, end: u64, stop: impl Fn() -> bool) -> Result<Seen, Failure> {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(256);
        loop {
            let now = self.clock.now();
            while let Some(Reverse((at, due))) = self.agenda.peek().copied().filter(|Reverse((at, _))| *at <= now) {
                self.agenda.pop();
                self.act(at, due)?;
            }
            if now >= end || stop() {
                return Ok(self.seen);
            }
            let due = self.agenda.peek().map_or(end, |Reverse((at, _))| (*at).min(end));
            let wait = self.clock.wait(due.min(now.saturating_add(STOP_NS)));
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&wait)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(Failure::refused(format!("cannot poll: {error}"))),
            }
            for event in &events {
                self.on_event(event.data.u64())?;
            }
        }
    }

    fn on_event(&mut self, data: u64) -> Result<(), Failure> {
        let (kind, number) = of_event(data);
        match kind {
            LISTENER => {
                while let Some(mut inbound) = tcp::accept(&self.listener) {
                    let flow = self.plan.flows.get(inbound.flow as usize);
                    let needs = flow.and_then(|flow| self.sockets[flow.group as usize].tcp.as_ref());
                    if let Some(bytes) = needs.and_then(|tcp| tcp.receive_window_bytes) {
                        inbound.offer_at_most(bytes)?;
                    }
                    let place = gap(&mut self.inbound);
                    watch(&self.epoll, &inbound, INBOUND, place, ARRIVES)?;
                    self.inbound[place] = Some(inbound);
                }
            }
            END => {
                self.arrivals(number as u32 / 2, Side::ALL[number % 2]);
            }
            OUTBOUND => self.write(number)?,
            _ => self.read(number),
        }
        Ok(())
    }

    /// Takes the packets that have arrived at an end of `flow`.
    fn arrivals(&mut self, flow: u32, side: Side) {
        loop {
            let now = self.clock.now();
            let Some(ends) = self.flows.get_mut(flow as usize).and_then(|flow| flow.ends.as_mut()) else {
                return;
            };
            let Some(packet) = ends.receive(side, now) else { return };
            if side == Side::Sink {
                self.seen.receptions.on_arrival(self.plan, flow, &packet, Instant::from_nanos(now));
            }
            self.exchange(flow, side);
        }
    }

    /// Sends what an end of `flow` has to send, hands over what it has for its application, and sees whether what the
    /// application asked for is done.
    fn exchange(&mut self, flow: u32, side: Side) {
        let now = self.clock.now();
        let state = &mut self.flows[flow as usize];
        let Some(ends) = &mut state.ends else { return };
        if let Some(due) = ends.send(side, now) {
            self.agenda.push(Reverse((due, Due::Timer(flow, side))));
        }
        if side == Side::Sink {
            while let Some(delivery) = ends.delivery() {
                self.seen.receptions.on_delivery(self.plan, flow, &delivery);
                state.handed_over_at = now;
                if state.request.is_some() {
                    state.first_at.get_or_insert(now);
                }
            }
        } else if state.request.is_some() && state.delivered_at == u64::MAX && ends.is_idle() {
            state.delivered_at = state.handed_over_at;
            self.agenda.push(Reverse((now, Due::Served(flow))));
        }
    }

    /// The connection takes more of what is offered.
    fn write(&mut self, number: usize) -> Result<(), Failure> {
        let Some(connection) = self.outbound.get_mut(number).and_then(Option::as_mut) else { return Ok(()) };
        if connection.write() == Look::Closed {
            self.seen.failures += 1;
            let flow = connection.flow;
            self.retire(flow);
        }
        Ok(())
    }

    fn read(&mut self, number: usize) {
        let Some(inbound) = self.inbound.get_mut(number).and_then(Option::as_mut) else { return };
        let Look::Bytes(read) = inbound.read() else {
            self.inbound[number] = None;
            return;
        };
        let (index, port, received) = (inbound.flow, inbound.port, inbound.received);
        let current = self.by_port.get(&(index, port)).copied();
        let Some(flow) = self.flows.get_mut(index as usize) else { return };
        flow.totals.delivered += read;
        let now = self.clock.now();
        if flow.is_delivered(current, received, now) {
            let back = &self.plan.flows[index as usize].return_path;
            let delay: u64 = back.iter().map(|link| self.plan.links[*link as usize].delay.as_nanos()).sum();
            self.agenda.push(Reverse((now + delay, Due::Served(index))));
        }
    }

    /// Does what is due at `now`, however late it is: applications have the time of their plans, so that no lateness
    /// adds up.
    fn act(&mut self, now: u64, due: Due) -> Result<(), Failure> {
        match due {
            Due::Edge => self.edge(),
            Due::Sample => {
                self.sample();
                self.agenda.push(Reverse((now + sample_step(self.plan), Due::Sample)));
            }
            Due::Resume(flow) => self.resume(now, flow)?,
            Due::Pause(flow) => self.pause(now, flow),
            Due::Served(flow) => self.served(now, flow)?,
            Due::Timer(flow, side) => {
                if let Some(ends) = &mut self.flows[flow as usize].ends {
                    ends.on_timer(side, now, self.clock.now());
                    self.exchange(flow, side);
                }
            }
            Due::Act(application) => {
                let own = &mut self.applications[application];
                // A stopped application has nothing pending, one that went on since then something later.
                if own.running
                    && let Some((_, action)) = own.pending.take_if(|(at, _)| *at <= now)
                {
                    self.perform(now, application, action)?;
                    self.advance(now, application)?;
                }
            }
        }
        Ok(())
    }

    fn resume(&mut self, now: u64, flow: u32) -> Result<(), Failure> {
        let Some(application) = self.flows[flow as usize].application else {
            let finite = self.plan.flows[flow as usize].transfer;
            if let Some(ends) = &mut self.flows[flow as usize].ends {
                ends.start(now, finite);
                self.exchange(flow, Side::Source);
                return Ok(());
            }
            return match finite {
                Some(_) if std::mem::replace(&mut self.flows[flow as usize].begun, true) => Ok(()),
                Some(bytes) => self.offer(flow, bytes.0),
                None => self.offer(flow, u64::MAX),
            };
        };
        let busy = self.flows[flow as usize].request.is_some();
        let own = &mut self.applications[application];
        if own.shared.is_some() {
            if !busy {
                own.idle.push(Reverse(flow));
            }
        } else if flow != own.first {
            // A connection of the first flow's application.
            return Ok(());
        }
        if !std::mem::replace(&mut own.running, true) && own.pending.is_none() && !own.waits {
            self.advance(now, application)?;
        } else if let Some((at, _)) = self.applications[application].pending {
            self.agenda.push(Reverse((at.max(now), Due::Act(application))));
        }
        Ok(())
    }

    fn pause(&mut self, now: u64, flow: u32) {
        let Some(application) = self.flows[flow as usize].application else {
            if let Some(ends) = &mut self.flows[flow as usize].ends {
                ends.stop(now);
                return self.exchange(flow, Side::Source);
            }
            let connection = self.flows[flow as usize].connection;
            if self.plan.flows[flow as usize].transfer.is_none()
                && let Some(connection) = connection.and_then(|number| self.outbound[number].as_mut())
            {
                connection.pause();
            }
            return;
        };
        let own = &mut self.applications[application];
        own.idle.retain(|Reverse(idle)| *idle != flow);
        if flow == own.first {
            own.running = false;
            // Packets are planned again by the clock of their source. A transfer or a page counts as begun
            // for its source: it comes late.
            let shared = own.shared.is_some();
            own.pending.take_if(|(_, action)| shared || matches!(action, Action::Write(_)));
        }
    }

    /// Asks a source what to do until there is nothing to do now.
    fn advance(&mut self, now: u64, application: usize) -> Result<(), Failure> {
        loop {
            let own = &mut self.applications[application];
            if !own.running {
                return Ok(());
            }
            if let Some(rate) = self.flows[own.first as usize].ends.as_ref().and_then(Ends::rate_bps) {
                own.source.on_rate(rate);
            }
            match own.source.next(Instant::from_nanos(now), &mut own.rng) {
                Step::At(at, action) if at.as_nanos() <= now => self.perform(now, application, action)?,
                Step::At(at, action) => {
                    own.pending = Some((at.as_nanos(), action));
                    self.agenda.push(Reverse((at.as_nanos(), Due::Act(application))));
                    return Ok(());
                }
                Step::Await => {
                    own.waits = true;
                    return Ok(());
                }
                Step::End => return Ok(()),
            }
        }
    }

    fn perform(&mut self, now: u64, application: usize, action: Action) -> Result<(), Failure> {
        let own = &mut self.applications[application];
        let first = own.first;
        match action {
            Action::Write(bytes) => match &mut self.flows[first as usize].ends {
                Some(ends) => {
                    ends.write(now, bytes);
                    self.exchange(first, Side::Source);
                }
                None => self.offer(first, u64::from(bytes))?,
            },
            Action::Transfer { bytes, fresh, connection } => {
                let flow = match own.shared {
                    None => first + connection,
                    Some(group) => match own.idle.pop() {
                        Some(Reverse(flow)) => flow,
                        None => {
                            self.seen.requests.refused.push((group, now));
                            return Ok(());
                        }
                    },
                };
                if fresh {
                    self.retire(flow);
                }
                let state = &mut self.flows[flow as usize];
                if let Some(ends) = &mut state.ends {
                    (state.request, state.first_at, state.delivered_at) = (Some((bytes, now, 0)), None, u64::MAX);
                    ends.transfer(now, bytes);
                    self.exchange(flow, Side::Source);
                    return Ok(());
                }
                self.open(flow)?;
                let goal = self.connection(flow).map_or(0, |connection| connection.offered) + bytes;
                let state = &mut self.flows[flow as usize];
                (state.request, state.first_at, state.delivered_at) = (Some((bytes, now, goal)), None, u64::MAX);
                self.offer(flow, bytes)?;
            }
            Action::BeginPage => own.page_at = Some(now),
            Action::EndPage => {
                let connections =
                    self.plan.groups[self.plan.flows[first as usize].group as usize].traffic.connections();
                let of_connections = &self.flows[first as usize..(first + connections) as usize];
                let delivered = of_connections.iter().map(|flow| flow.delivered_at).filter(|at| *at != u64::MAX);
                let delivered_at = delivered.max().unwrap_or(now);
                if let Some(asked_at) = own.page_at.take() {
                    self.seen.requests.pages.push(Served {
                        flow: first,
                        bytes: 0,
                        asked_at,
                        first_at: None,
                        delivered_at,
                    });
                }
            }
        }
        Ok(())
    }

    /// The application of `flow` hears that its transfer was delivered.
    fn served(&mut self, now: u64, flow: u32) -> Result<(), Failure> {
        let state = &mut self.flows[flow as usize];
        let Some((bytes, asked_at, _)) = state.request.take() else { return Ok(()) };
        let (first_at, delivered_at) = (state.first_at, state.delivered_at);
        self.seen.requests.transfers.push(Served { flow, bytes, asked_at, first_at, delivered_at });
        let Some(application) = state.application else { return Ok(()) };
        let own = &mut self.applications[application];
        own.source.on_delivered(if own.shared.is_some() { 0 } else { flow - own.first });
        if own.shared.is_some() {
            let on = self.plan.flows[flow as usize].on.iter();
            let is_on = on
                .clone()
                .any(|(from, until)| from.as_nanos() <= now && until.is_none_or(|until| now < until.as_nanos()));
            if is_on {
                own.idle.push(Reverse(flow));
            }
        } else if std::mem::take(&mut own.waits) {
            self.advance(now, application)?;
        }
        Ok(())
    }

    /// The connection of `flow`, if it has one.
    fn connection(&mut self, flow: u32) -> Option<&mut Connection> {
        self.outbound[self.flows[flow as usize].connection?].as_mut()
    }

    /// Opens the connection of `flow`, if it has none.
    fn open(&mut self, flow: u32) -> Result<(), Failure> {
        let state = &mut self.flows[flow as usize];
        if state.connection.is_some() {
            return Ok(());
        }
        let needs = &self.sockets[self.plan.flows[flow as usize].group as usize];
        let Some(tcp) = &needs.tcp else { return Ok(()) };
        let (connection, port) = Connection::open(flow, state.opened, needs, tcp)?;
        state.opened += 1;
        let place = gap(&mut self.outbound);
        watch(&self.epoll, &connection, OUTBOUND, place, TAKES_MORE)?;
        self.outbound[place] = Some(connection);
        state.connection = Some(place);
        self.by_port.insert((flow, port), place);
        Ok(())
    }

    /// `flow` has so many bytes more to send; `u64::MAX`: without end.
    fn offer(&mut self, flow: u32, bytes: u64) -> Result<(), Failure> {
        self.open(flow)?;
        let Some(number) = self.flows[flow as usize].connection else { return Ok(()) };
        if let Some(connection) = self.outbound[number].as_mut() {
            connection.offered = connection.offered.saturating_add(bytes);
        }
        self.write(number)
    }

    /// The connection of `flow` is closed; what it did is kept. Nothing if it has none.
    fn retire(&mut self, flow: u32) {
        let state = &mut self.flows[flow as usize];
        if let Some(ends) = &mut state.ends {
            state.retired.add_ends(ends);
            ends.renew();
            self.seen.receptions.on_new_connection(flow);
            return;
        }
        let Some(number) = state.connection.take() else { return };
        self.by_port.retain(|_, connection| *connection != number);
        if let Some(connection) = self.outbound[number].take() {
            state.retired.info.add(&connection.info());
        }
    }

    fn sample(&mut self) {
        for connection in self.outbound.iter().flatten() {
            let info = connection.info();
            if info.rtt_ns > 0 {
                let totals = &mut self.flows[connection.flow as usize].totals;
                totals.rtt_sum_ns += info.rtt_ns as f64;
                totals.rtt_samples += 1;
            }
        }
    }

    fn edge(&mut self) {
        for flow in &mut self.flows {
            if let Some(ends) = &flow.ends {
                flow.totals = flow.retired;
                flow.totals.add_ends(ends);
                continue;
            }
            flow.totals.info = flow.retired.info;
            if let Some(connection) = flow.connection.and_then(|number| self.outbound[number].as_ref()) {
                flow.totals.info.add(&connection.info());
            }
        }
        self.seen.totals.push(self.flows.iter().map(|flow| flow.totals).collect());
        self.seen.receptions.edge();
    }
}

impl Flow {
    /// `received` bytes of a connection have arrived by `now`: whether with them the transfer under way is, first of
    /// all. What another connection brings says nothing of it.
    fn is_delivered(&mut self, connection: Option<usize>, received: u64, now: u64) -> bool {
        let of_transfer = connection.is_some() && connection == self.connection;
        let Some((bytes, _, goal)) = self.request.filter(|_| of_transfer) else { return false };
        if received > goal - bytes {
            self.first_at.get_or_insert(now);
        }
        if received < goal || self.delivered_at != u64::MAX {
            return false;
        }
        self.delivered_at = now;
        true
    }
}

impl Totals {
    /// Adds what a connection between `ends` did.
    fn add_ends(&mut self, ends: &Ends) {
        let (source, delivered) = ends.stats();
        self.delivered += delivered;
        self.info.sent += source.sent;
        self.info.retransmitted += source.retransmitted;
        self.info.timeouts = Some(self.info.timeouts.unwrap_or(0) + source.timeouts);
        self.rtt_sum_ns += source.rtt_sum.as_nanos() as f64;
        self.rtt_samples += source.rtt_samples;
    }
}

impl Info {
    fn add(&mut self, other: &Info) {
        self.sent += other.sent;
        self.retransmitted += other.retransmitted;
        self.timeouts = match (self.timeouts, other.timeouts) {
            (Some(own), Some(other)) => Some(own + other),
            (own, other) => own.or(other),
        };
    }
}

impl Seen {
    /// The totals of a flow at an edge; at the start, nothing.
    fn totals(&self, flow: u32, at: Instant) -> Totals {
        let edge = self.edges.iter().position(|edge| *edge == at.as_nanos());
        edge.and_then(|edge| self.totals.get(edge)).map(|flows| flows[flow as usize]).unwrap_or_default()
    }

    /// Mean round-trip time in nanoseconds (0: none was sampled) and bytes delivered of `flow` in `window`.
    pub fn rtt_and_bytes(&self, flow: u32, window: &Window) -> (f64, f64) {
        let (from, to) = (self.totals(flow, window.start), self.totals(flow, window.end));
        let samples = to.rtt_samples.saturating_sub(from.rtt_samples).max(1);
        ((to.rtt_sum_ns - from.rtt_sum_ns) / samples as f64, (to.delivered - from.delivered) as f64)
    }

    /// The figures of a group in a window.
    pub fn metrics(&self, plan: &Plan, group: u32, window: &Window) -> FlowMetrics {
        let of = &plan.groups[group as usize];
        let length_s = (window.end - window.start).as_secs_f64();
        let (mut sum, mut shares) = (Totals::default(), Vec::new());
        let mut timeouts = Some(0);
        for flow in of.flows.clone() {
            let (from, to) = (self.totals(flow, window.start), self.totals(flow, window.end));
            sum.delivered += to.delivered - from.delivered;
            shares.push((to.delivered - from.delivered) as f64);
            sum.info.sent += to.info.sent.saturating_sub(from.info.sent);
            sum.info.retransmitted += to.info.retransmitted.saturating_sub(from.info.retransmitted);
            let expired = to.info.timeouts.map(|to| to.saturating_sub(from.info.timeouts.unwrap_or(0)));
            timeouts = timeouts.map(|sum| sum + expired.unwrap_or(0));
            sum.rtt_sum_ns += to.rtt_sum_ns - from.rtt_sum_ns;
            sum.rtt_samples += to.rtt_samples - from.rtt_samples;
        }
        let info = &sum.info;
        let goodput_bps = sum.delivered as f64 * 8.0 / length_s;
        let with_headers = f64::from(of.transport.packet_bytes()) / f64::from(of.transport.payload_bytes());
        let mut metrics = FlowMetrics {
            goodput_bps,
            jain_fairness: jain(shares),
            rtt_mean_s: (sum.rtt_samples > 0).then(|| sum.rtt_sum_ns * 1e-9 / sum.rtt_samples as f64),
            retransmitted_ratio: (info.sent > 0).then(|| info.retransmitted as f64 / info.sent as f64),
            timeouts,
            throughput_bps: Some(goodput_bps * with_headers),
            ..FlowMetrics::default()
        };
        let (start, end) = (window.start.as_nanos(), window.end.as_nanos());
        self.receptions.fill(&mut metrics, group, pieces_in(&self.edges, window), length_s);
        if of.traffic.has_requests() {
            let pages = matches!(of.traffic, Traffic::Web(_));
            self.requests.fill(&mut metrics, (group, of.flows.clone()), start..end, pages, |flow, bytes| {
                plan.ideal_completion_ns(flow, bytes)
            });
            if let Some(film) = aqumen_traffic::film(&of.traffic) {
                let segments = self.requests.transfers.iter();
                tell_films(&mut metrics, film, of.flows.clone(), start..end, segments, |flow| plan.stop_ns(flow));
            }
        }
        metrics
    }
}

/// Time between two looks at the round-trip times of the flows of `plan`.
fn sample_step(plan: &Plan) -> u64 {
    SAMPLE_NS.max(plan.flows.len() as u64 * 1_000_000_000 / SAMPLES_PER_S_MAX)
}

/// The data of an event of descriptor `number` of a kind.
fn event(kind: u64, number: usize) -> u64 {
    4 * number as u64 + kind
}

/// Kind and number of the descriptor that an event's data tell.
fn of_event(data: u64) -> (u64, usize) {
    (data % 4, (data / 4) as usize)
}

fn watch(
    epoll: &OwnedFd,
    fd: impl std::os::fd::AsFd,
    kind: u64,
    number: usize,
    flags: epoll::EventFlags,
) -> Result<(), Failure> {
    let data = epoll::EventData::new_u64(event(kind, number));
    epoll::add(epoll, fd, data, flags).or_refuse(|| "cannot poll a socket".into())
}

/// A free place in `all`.
fn gap<T>(all: &mut Vec<Option<T>>) -> usize {
    all.iter().position(Option::is_none).unwrap_or_else(|| {
        all.push(None);
        all.len() - 1
    })
}

#[cfg(test)]
pub(super) mod tests {
    use std::net::Ipv4Addr;

    use aqumen_scenario::Scenario;

    use super::ends::tests::{arrivals, with_ends};
    use super::*;
    use crate::common::skipped;
    use crate::lab::kernel;
    use crate::lab::namespace::tests::of_both_sides;
    use crate::lab::tun::Tun;
    use crate::lab::world::sender;

    /// The kernel's connections out of the calling thread's namespace: addresses and ports of their senders.
    fn connections() -> Vec<(Ipv4Addr, u16)> {
        let table = std::fs::read_to_string("/proc/thread-self/net/tcp").unwrap();
        let ends = table.lines().skip(1).map(|line| line.split_whitespace().nth(1).unwrap().split_once(':').unwrap());
        let number = |digits: &str| u32::from_str_radix(digits, 16).unwrap();
        let mut all: Vec<_> =
            ends.map(|(address, port)| (Ipv4Addr::from(number(address).to_ne_bytes()), number(port) as u16)).collect();
        all.sort_unstable();
        all
    }

    /// Carries what waits in two devices to the other one, until there is no more.
    fn carry([left, right]: &[Tun; 2]) {
        let mut buffer = vec![0; 1 << 16];
        let mut pass = |from: &Tun, to: &Tun| {
            let length = from.read(&mut buffer).unwrap();
            length.map(|length| to.write(&buffer[..length]).unwrap()).is_some()
        };
        while pass(left, right) | pass(right, left) {}
    }

    #[test]
    fn a_retired_connection_is_gone_and_what_it_did_counts() {
        if skipped("retired connections") {
            return;
        }
        with_hosts(&plan(2), |mut hosts, tuns| {
            let transfer = |hosts: &mut Hosts<'_>, flow: u32, bytes: u64| -> Result<(), Failure> {
                hosts.offer(flow, bytes)?;
                carry(tuns);
                // It is connected now.
                hosts.offer(flow, 0)?;
                carry(tuns);
                hosts.on_event(LISTENER)?;
                (0..hosts.inbound.len()).for_each(|number| hosts.read(number));
                hosts.edge();
                Ok(())
            };
            let did = |hosts: &Hosts<'_>, flow: usize| {
                let totals = hosts.seen.totals.last().unwrap()[flow];
                (totals.info.sent, totals.delivered)
            };
            // Segments of 1448 bytes: 7 for 10 000 bytes, 2 for 2000.
            transfer(&mut hosts, 0, 10_000)?;
            transfer(&mut hosts, 1, 2000)?;
            assert_eq!((did(&hosts, 0), did(&hosts, 1)), ((7, 10_000), (2, 2000)));
            let [first, second] = [0, 1].map(sender);
            assert_eq!(connections(), [(first, 10_000), (second, 10_000)]);
            hosts.retire(0);
            carry(tuns);
            assert_eq!(hosts.by_port.keys().collect::<Vec<_>>(), [&(1, 10_000)]);
            transfer(&mut hosts, 0, 2000)?;
            transfer(&mut hosts, 1, 2000)?;
            assert_eq!((did(&hosts, 0), did(&hosts, 1)), ((9, 12_000), (4, 4000)));
            let place = hosts.flows[0].connection;
            assert_eq!(place, Some(0), "the place of the one before is free");
            let alive = connections();
            assert!(alive.contains(&(first, 10_001)) && alive.contains(&(second, 10_000)), "{alive:?}");
            Ok(())
        });
    }

    /// What `work` does with the hosts of `plan`, and the devices between them.
    fn with_hosts(plan: &Plan, work: impl FnOnce(Hosts<'_>, &[Tun; 2]) -> Result<(), Failure> + Send) {
        let sockets = kernel::sockets(plan).unwrap();
        let (world, tuns) = World::new(plan, &sockets, false).unwrap();
        let within = || work(Hosts::new(plan, &sockets, &world, Vec::new(), Clock::starting_in(0))?, &tuns);
        world.senders.within(within).unwrap();
    }

    /// Carries packets until something is `done`: the kernel may take its time.
    fn carry_until(tuns: &[Tun; 2], mut done: impl FnMut() -> Result<bool, Failure>) -> Result<(), Failure> {
        for _ in 0..5000 {
            carry(tuns);
            if done()? {
                return Ok(());
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        panic!("it does not come to that")
    }

    /// Bytes that have arrived at the sinks.
    fn delivered(hosts: &mut Hosts<'_>) -> Vec<u64> {
        hosts.edge();
        hosts.seen.totals.last().unwrap().iter().map(|totals| totals.delivered).collect()
    }

    #[test]
    fn what_an_event_tells_is_done_at_the_socket_that_it_is_of() {
        if skipped("events at connections") {
            return;
        }
        with_hosts(&plan(2), |mut hosts, tuns| {
            (0..2).try_for_each(|flow| hosts.open(flow))?;
            // No round trip is known yet.
            hosts.sample();
            assert!(hosts.flows.iter().all(|flow| flow.totals.rtt_samples == 0));
            carry_until(tuns, || {
                hosts.on_event(event(LISTENER, 0))?;
                Ok(hosts.inbound.len() == 2)
            })?;
            // The second connection has something to write; until it hears that it can nothing leaves.
            hosts.outbound[1].as_mut().unwrap().offered = 5000;
            hosts.on_event(event(OUTBOUND, 0))?;
            carry(tuns);
            assert_eq!(connections().len(), 2);
            (0..2).try_for_each(|number| hosts.on_event(event(INBOUND, number)))?;
            assert_eq!(delivered(&mut hosts), [0, 0]);
            hosts.on_event(event(OUTBOUND, 1))?;
            // Which of the two came in first is the kernel's.
            carry_until(tuns, || {
                (0..2).try_for_each(|number| hosts.on_event(event(INBOUND, number)))?;
                Ok(delivered(&mut hosts) == [0, 5000])
            })?;
            // The kernel has measured their round trips.
            hosts.sample();
            let samples: Vec<_> = hosts.flows.iter().map(|flow| flow.totals.rtt_samples).collect();
            assert!(samples == [1, 1] && hosts.flows.iter().all(|flow| flow.totals.rtt_sum_ns > 0.0), "{samples:?}");
            hosts.sample();
            assert!(hosts.flows.iter().all(|flow| flow.totals.rtt_samples == 2));
            Ok(())
        });
    }

    #[test]
    fn a_connection_that_nobody_takes_is_counted_as_failed() {
        if skipped("connections that fail") {
            return;
        }
        with_hosts(&plan(2), |mut hosts, tuns| {
            // Nobody listens any more.
            hosts.listener = tcp::open()?;
            for (flow, failures) in [(0, 1), (1, 2)] {
                hosts.offer(flow, 1000)?;
                // What failed has left its place.
                carry_until(tuns, || {
                    hosts.write(0)?;
                    Ok(hosts.seen.failures == failures)
                })?;
                assert_eq!(hosts.flows[flow as usize].connection, None);
            }
            Ok(())
        });
    }

    #[test]
    fn datagrams_arrive_at_the_end_of_their_flow_and_their_source_is_done_when_all_are_sent() {
        if skipped("events at ends of datagrams") {
            return;
        }
        let text = "name = \"t\"\nduration = \"3s\"\n[topology]\npreset = \"dumbbell\"\n\
             bottleneck = { rate = \"8Mbit\", delay = \"20ms\", buffer = \"50pkt\" }\n\
             access = { rate = \"80Mbit\", delay = \"5ms\" }\n[[flows]]\nname = \"f\"\ncount = 2\n\
             transport = \"udp\"\ntraffic = { kind = \"transfers\", size = \"20kB\", think = \"1s\" }\n";
        with_hosts(&Scenario::parse(text, "t.toml").unwrap().plan(1, None).unwrap(), |mut hosts, tuns| {
            let served = |hosts: &Hosts<'_>| hosts.agenda.iter().any(|Reverse((_, due))| *due == Due::Served(1));
            let flow = &mut hosts.flows[1];
            (flow.request, flow.delivered_at) = (Some((20_000, 0, 0)), u64::MAX);
            flow.ends.as_mut().unwrap().transfer(0, 20_000);
            assert!(!served(&hosts));
            hosts.exchange(1, Side::Source);
            // A source of datagrams waits for nobody: it has sent all, and is served once.
            assert!(served(&hosts));
            hosts.agenda.retain(|Reverse((_, due))| *due != Due::Served(1));
            (0..2).for_each(|flow| hosts.exchange(flow, Side::Source));
            assert!(!hosts.agenda.iter().any(|Reverse((_, due))| matches!(due, Due::Served(_))));
            carry(tuns);
            // Ends have two numbers for each flow: its source's and its sink's.
            (0..3).try_for_each(|other| hosts.on_event(event(END, other)))?;
            assert_eq!((delivered(&mut hosts), hosts.flows[1].first_at), (vec![0, 0], None));
            carry_until(tuns, || {
                hosts.on_event(event(END, 3))?;
                Ok(delivered(&mut hosts) == [0, 20_000])
            })?;
            assert!(hosts.flows[1].first_at.is_some() && hosts.flows[0].first_at.is_none());
            Ok(())
        });
    }

    fn plan(flows: u32) -> Plan {
        let text = format!(
            "name = \"t\"\nduration = \"3s\"\n[windows]\nsteady = \"1s\"\n[topology]\npreset = \"dumbbell\"\n\
             bottleneck = {{ rate = \"8Mbit\", delay = \"20ms\", buffer = \"50pkt\" }}\n\
             access = {{ rate = \"80Mbit\", delay = \"5ms\" }}\n\
             [[flows]]\nname = \"f\"\ncount = {flows}\ntransport = \"linux-reno\"\n"
        );
        Scenario::parse(&text, "t.toml").unwrap().plan(1, None).unwrap()
    }

    fn totals(delivered: u64, sent: u64, retransmitted: u64, timeouts: Option<u64>, rtts_ms: &[u64]) -> Totals {
        Totals {
            delivered,
            info: Info { sent, retransmitted, timeouts, rtt_ns: 0 },
            rtt_sum_ns: rtts_ms.iter().sum::<u64>() as f64 * 1e6,
            rtt_samples: rtts_ms.len() as u64,
        }
    }

    /// What hosts saw at two edges.
    fn seen_between(plan: &Plan, edges: [u64; 2], totals: [Vec<Totals>; 2]) -> Seen {
        let mut receptions = Receptions::new(plan);
        (0..2).for_each(|_| receptions.edge());
        let requests = Requests::default();
        Seen { edges: edges.into(), totals: totals.into(), receptions, requests, failures: 0 }
    }

    /// The same of flows with these mean round-trip times, milliseconds, and bytes delivered until the end of `plan`.
    pub(in crate::lab) fn seen_of(plan: &Plan, flows: &[(u64, u64)]) -> Seen {
        let all = flows.iter().map(|(rtt_ms, bytes)| totals(*bytes, 1, 0, None, &[*rtt_ms])).collect();
        seen_between(plan, [0, plan.duration.as_nanos()], [vec![Totals::default(); flows.len()], all])
    }

    #[test]
    fn a_window_has_what_came_between_its_edges() {
        let plan = plan(2);
        let window = |name: &str| plan.windows.iter().find(|window| window.name == name).unwrap();
        let before = vec![totals(1000, 10, 1, Some(1), &[50, 50]), Totals::default()];
        let after = vec![
            totals(251_000, 110, 6, Some(3), &[50, 50, 60, 60, 60]),
            totals(750_000, 300, 15, Some(4), &[80, 80, 80, 80, 80]),
        ];
        let seen = seen_between(&plan, [1_000_000_000, 3_000_000_000], [before, after]);
        let steady = seen.metrics(&plan, 0, window("steady"));
        // 250 and 750 kB in 2 s: 4 Mbit/s, of segments of 1448 bytes in packets of 1500; Jain: 4^2 / (2 (1 + 9)).
        assert_eq!((steady.goodput_bps, steady.jain_fairness), (4e6, Some(0.8)));
        assert!((steady.throughput_bps.unwrap() - 4e6 * 1500.0 / 1448.0).abs() < 1e-3, "{:?}", steady.throughput_bps);
        // 3 x 60 and 5 x 80 ms; 5 and 15 of 100 and 300 packets once more; 2 and 4 time-outs.
        assert!((steady.rtt_mean_s.unwrap() - 0.0725).abs() < 1e-12, "{:?}", steady.rtt_mean_s);
        assert_eq!((steady.retransmitted_ratio, steady.timeouts), (Some(0.05), Some(6)));
        assert_eq!(seen.rtt_and_bytes(0, window("steady")), (60e6, 250_000.0));
        assert_eq!(seen.rtt_and_bytes(1, window("steady")), (80e6, 750_000.0));
        // From the start on, before which there is nothing: 1001 kB in 3 s, 410 packets of which 21 once more.
        let all = seen.metrics(&plan, 0, window("all"));
        assert!((all.goodput_bps - 8.0 * 1_001_000.0 / 3.0).abs() < 1e-6, "{}", all.goodput_bps);
        assert_eq!((all.retransmitted_ratio, all.timeouts), (Some(21.0 / 410.0), Some(7)));
    }

    #[test]
    fn round_trips_are_sampled_each_50_ms_and_no_more_than_4000_times_a_second() {
        // 200 flows 20 times a second are 4000; twice as many are asked half as often.
        let steps = [1, 200, 400].map(|flows| sample_step(&plan(flows)));
        assert_eq!(steps, [50_000_000, 50_000_000, 100_000_000]);
    }

    #[test]
    fn what_connections_did_adds_up_and_an_old_kernel_counts_no_timeouts() {
        let info = |sent, timeouts| Info { sent, retransmitted: sent / 10, timeouts, rtt_ns: 7 };
        for (one, other, both) in
            [(None, None, None), (Some(2), None, Some(2)), (None, Some(3), Some(3)), (Some(2), Some(3), Some(5))]
        {
            let mut sum = info(20, one);
            sum.add(&info(30, other));
            assert_eq!((sum.sent, sum.retransmitted, sum.timeouts), (50, 5, both));
        }
    }

    #[test]
    fn places_that_became_free_are_taken_first() {
        let mut all = vec![Some('a'), None, Some('c'), None];
        assert_eq!(gap(&mut all), 1);
        all[1] = Some('b');
        all[3] = Some('d');
        assert_eq!((gap(&mut all), all.len()), (4, 5));
    }

    #[test]
    fn what_nobody_sent_has_no_ratio_and_no_round_trip() {
        let plan = plan(1);
        let seen =
            seen_between(&plan, [1_000_000_000, 3_000_000_000], [vec![Totals::default()], vec![Totals::default()]]);
        let steady = plan.windows.iter().find(|window| window.name == "steady").unwrap();
        let metrics = seen.metrics(&plan, 0, steady);
        assert_eq!((metrics.rtt_mean_s, metrics.retransmitted_ratio, metrics.goodput_bps), (None, None, 0.0));
    }

    #[test]
    fn what_ends_of_datagrams_did_is_added_to_what_was_before() {
        let Some(here) = of_both_sides("totals of datagrams") else { return };
        let transport = "transport = \"udp\"\ntraffic = { kind = \"transfers\", size = \"20kB\", rate = \"1/s\" }";
        with_ends(&here, transport, |mut ends| {
            ends.transfer(0, 20_000);
            ends.send(Side::Source, 0);
            let arrived = std::iter::from_fn(|| ends.receive(Side::Sink, 0)).count() as u64;
            for (before, timeouts) in [(Some(3), 3), (None, 0)] {
                let mut sum = totals(1000, 10, 1, before, &[50, 70]);
                sum.add_ends(&ends);
                assert_eq!((sum.delivered, sum.info.sent), (21_000, 10 + arrived));
                // Datagrams are sent once, wait for nothing, and measure no round trip.
                assert_eq!((sum.info.retransmitted, sum.info.timeouts), (1, Some(timeouts)));
                assert_eq!((sum.rtt_sum_ns, sum.rtt_samples), (120e6, 2));
            }
        });
    }

    #[test]
    fn a_transfer_is_delivered_once_with_its_last_byte() {
        // The third thousand bytes of connection number 3, asked for at 5.
        let request = Some((1000, 5, 3000));
        let mut flow = Flow { connection: Some(3), request, delivered_at: u64::MAX, ..Flow::default() };
        // What was before it, and what another connection brings, is not of it.
        assert!(!flow.is_delivered(Some(3), 2000, 6) && !flow.is_delivered(Some(2), 3000, 7));
        assert_eq!((flow.first_at, flow.delivered_at), (None, u64::MAX));
        assert!(!flow.is_delivered(Some(3), 2001, 8) && !flow.is_delivered(Some(3), 2999, 9));
        assert_eq!((flow.first_at, flow.delivered_at), (Some(8), u64::MAX));
        assert!(flow.is_delivered(Some(3), 3000, 10) && !flow.is_delivered(Some(3), 3500, 11));
        assert_eq!((flow.first_at, flow.delivered_at), (Some(8), 10));
        // Nothing was asked for, or the connection is gone.
        let mut idle = Flow { connection: Some(3), delivered_at: u64::MAX, ..Flow::default() };
        let mut closed = Flow { request, delivered_at: u64::MAX, ..Flow::default() };
        assert!(!idle.is_delivered(Some(3), 3000, 12) && !closed.is_delivered(None, 3000, 12));
        assert_eq!((idle.first_at, closed.first_at), (None, None));
    }

    #[test]
    fn an_event_tells_kind_and_number_of_its_descriptor() {
        for kind in [LISTENER, END, OUTBOUND, INBOUND] {
            for number in [0, 1, 2, 5, 1 << 40] {
                assert_eq!(of_event(event(kind, number)), (kind, number));
            }
        }
    }

    #[test]
    fn round_trips_that_media_measure_are_added_to_those_before() {
        let Some(here) = of_both_sides("totals of media") else { return };
        with_ends(&here, "transport = \"rtp-nada\"", |mut ends| {
            ends.start(0, None);
            arrivals(&mut ends, &mut [None; 2], 0..2000);
            let (stats, _) = ends.stats();
            assert!(stats.rtt_samples > 0 && stats.rtt_sum.as_nanos() > 0, "{stats:?}");
            let mut sum = totals(0, 0, 0, None, &[50, 70]);
            sum.add_ends(&ends);
            assert_eq!(sum.rtt_samples, 2 + stats.rtt_samples);
            assert_eq!(sum.rtt_sum_ns, 120e6 + stats.rtt_sum.as_nanos() as f64);
        });
    }
}
