//! Endpoints of the flows: the kernel's sockets, and the plan's applications that use them.
//!
//! One thread, in the senders' namespace, executes the schedule and handles the kernel's events. An application is
//! notified of a delivered transfer when the acknowledgement of its last byte would be back.
//!
//! `tcp` has the kernel's connections, `endpoints` the flows of other transports.

pub(crate) mod endpoints;
pub(crate) mod tcp;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::os::fd::OwnedFd;

use aqumen_network::Receptions;
use aqumen_network::measurement::pieces_in;
use aqumen_result::{CompletedRequest, FlowMetrics, Requests, fill_video_metrics, jain};
use aqumen_scenario::streams::{Kind, Stream};
use aqumen_scenario::traffic::Scope;
use aqumen_scenario::{Plan, Traffic, Window};
use aqumen_traffic::{Action, Source, Step};
use aqumen_units::Instant;
use rustix::buffer::spare_capacity;
use rustix::event::epoll;

use super::kernel::SocketSettings;
use super::testbed::TestBed;
use crate::machine::clock::Clock;
use crate::{Context, Error};
use endpoints::{EndpointPair, Side};
use tcp::{Connection, Inbound, IoOutcome, TcpInfo};

/// Endpoints of all flows during a run.
pub(crate) struct Hosts<'a> {
    plan: &'a Plan,
    sockets: &'a [SocketSettings],
    clock: Clock,
    epoll: OwnedFd,
    listener: OwnedFd,
    schedule: BinaryHeap<Reverse<(u64, Task)>>,
    flows: Vec<Flow>,
    applications: Vec<Application>,
    /// Connections by number, which is in the data of their events. A closed one leaves a gap.
    outbound: Vec<Option<Connection>>,
    inbound: Vec<Option<Inbound>>,
    /// Outbound connection of each flow and port.
    by_port: BTreeMap<(u32, u16), usize>,
    measurements: HostMeasurements,
}

#[derive(Debug)]
pub(crate) struct HostMeasurements {
    edges: Vec<u64>,
    /// Totals of each flow at each edge.
    totals: Vec<Vec<Totals>>,
    /// Packets and messages of transports other than TCP.
    receptions: Receptions,
    requests: Requests,
    pub(crate) failures: u64,
}

/// Totals of a flow since the start.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    delivered: u64,
    info: TcpInfo,
    rtt_sum_ns: f64,
    rtt_samples: u64,
}

#[derive(Default)]
struct Flow {
    connection: Option<usize>,
    /// Number of connections so far.
    opened: u32,
    /// Endpoints, unless its transport is TCP.
    endpoints: Option<EndpointPair>,
    /// Totals of its closed connections.
    closed: Totals,
    /// Totals at the last update.
    totals: Totals,
    /// Transfer in progress: size, time of the request, and the bytes that its connection will have delivered.
    request: Option<(u64, u64, u64)>,
    /// Arrival of the transfer's first bytes.
    first_at: Option<u64>,
    /// Delivery of the last transfer.
    delivered_at: u64,
    /// Last delivery of a message at the sink, unless its transport is TCP.
    message_at: u64,
    /// Its application, which may be shared.
    application: Option<usize>,
    /// Whether a finite bulk transfer has started.
    started: bool,
}

/// Application of flows that are not bulk transfers: a source for one flow and its further connections, or for a group.
struct Application {
    source: Box<dyn Source + Send>,
    rng: Stream,
    /// Next action, and its time.
    pending: Option<(u64, Action)>,
    running: bool,
    /// Whether the source waits for a delivery.
    waits: bool,
    /// First of its flows.
    first: u32,
    /// Group whose idle flows are used.
    shared: Option<u32>,
    idle: BinaryHeap<Reverse<u32>>,
    /// Request of the page in progress.
    page_at: Option<u64>,
}

/// Scheduled task. Tasks at equal times are ordered as the variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    /// Start or end of a window.
    Edge,
    /// Sample of the round-trip times.
    Sample,
    /// Stop of a flow's application.
    Pause(u32),
    /// Start or continuation of a flow's application.
    Resume(u32),
    /// Notification of an application that its transfer was delivered.
    Complete(u32),
    Timer(u32, Side),
    Act(usize),
}

/// Kinds of descriptors in the data of an event.
const LISTENER: u64 = 0;
/// Endpoint: the source of a flow has an even number, its sink the next odd one.
const ENDPOINT: u64 = 1;
const OUTBOUND: u64 = 2;
const INBOUND: u64 = 3;

/// Longest wait before `stop` is checked, nanoseconds.
const STOP_NS: u64 = 100_000_000;
/// Events of an inbound connection: data, or the end.
const INBOUND_EVENTS: epoll::EventFlags = epoll::EventFlags::IN.union(epoll::EventFlags::RDHUP);
/// Events of an outbound connection: space to write.
const OUTBOUND_EVENTS: epoll::EventFlags = epoll::EventFlags::OUT.union(epoll::EventFlags::ET);

/// Interval of the kernel's round-trip times, nanoseconds; longer with many flows.
const SAMPLE_NS: u64 = 50_000_000;
const SAMPLES_PER_S_MAX: u64 = 4000;

impl<'a> Hosts<'a> {
    /// Opens the endpoints of `plan`; `clock` starts with the run. The caller is in the senders' namespace and stays
    /// there.
    pub(crate) fn new(
        plan: &'a Plan,
        sockets: &'a [SocketSettings],
        testbed: &TestBed,
        edges: Vec<u64>,
        clock: Clock,
    ) -> Result<Self, Error> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).context(|| "cannot poll".into())?;
        let listener = tcp::listen(&testbed.receivers)?;
        register(&epoll, &listener, LISTENER, 0, epoll::EventFlags::IN)?;
        let mut schedule: BinaryHeap<_> = edges.iter().map(|at| Reverse((*at, Task::Edge))).collect();
        let mut flows: Vec<Flow> = Vec::new();
        for (flow, number) in plan.flows.iter().zip(0u32..) {
            let (group, settings) = (&plan.groups[flow.group as usize], &sockets[flow.group as usize]);
            let endpoints = EndpointPair::open(number, &group.transport, settings, &testbed.receivers)?;
            if let Some(endpoints) = &endpoints {
                for (side, end) in Side::ALL.into_iter().zip(2 * number as usize..) {
                    register(&epoll, endpoints.socket(side), ENDPOINT, end, epoll::EventFlags::IN)?;
                }
            }
            flows.push(Flow { endpoints, ..Flow::default() });
            for &(from, until) in &flow.on {
                schedule.push(Reverse((from.as_nanos(), Task::Resume(number))));
                schedule.extend(until.map(|until| Reverse((until.as_nanos(), Task::Pause(number)))));
            }
        }
        schedule.push(Reverse((sample_step(plan), Task::Sample)));
        let mut hosts = Hosts {
            plan,
            sockets,
            clock,
            epoll,
            listener,
            schedule,
            flows,
            applications: Vec::new(),
            outbound: Vec::new(),
            inbound: Vec::new(),
            by_port: BTreeMap::new(),
            measurements: HostMeasurements {
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

    /// Runs until `end`, or until `stop` returns true.
    pub(crate) fn run(mut self, end: u64, stop: impl Fn() -> bool) -> Result<HostMeasurements, Error> {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(256);
        loop {
            let now = self.clock.now();
            while let Some(Reverse((at, task))) = self.schedule.peek().copied().filter(|Reverse((at, _))| *at <= now) {
                self.schedule.pop();
                self.execute(at, task)?;
            }
            if now >= end || stop() {
                return Ok(self.measurements);
            }
            let due = self.schedule.peek().map_or(end, |Reverse((at, _))| (*at).min(end));
            let wait = self.clock.wait(due.min(now.saturating_add(STOP_NS)));
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&wait)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(Error::setup(format!("cannot poll: {error}"))),
            }
            for event in &events {
                self.on_event(event.data.u64())?;
            }
        }
    }

    fn on_event(&mut self, data: u64) -> Result<(), Error> {
        let (kind, number) = decode_event(data);
        match kind {
            LISTENER => {
                while let Some(mut inbound) = tcp::accept(&self.listener) {
                    let flow = self.plan.flows.get(inbound.flow as usize);
                    let settings = flow.and_then(|flow| self.sockets[flow.group as usize].tcp.as_ref());
                    if let Some(bytes) = settings.and_then(|tcp| tcp.receive_window_bytes) {
                        inbound.offer_at_most(bytes)?;
                    }
                    let slot = free_slot(&mut self.inbound);
                    register(&self.epoll, &inbound, INBOUND, slot, INBOUND_EVENTS)?;
                    self.inbound[slot] = Some(inbound);
                }
            }
            ENDPOINT => {
                self.arrivals(number as u32 / 2, Side::ALL[number % 2]);
            }
            OUTBOUND => self.write(number)?,
            _ => self.read(number),
        }
        Ok(())
    }

    /// Receives the packets that have arrived at an endpoint of `flow`.
    fn arrivals(&mut self, flow: u32, side: Side) {
        loop {
            let now = self.clock.now();
            let Some(endpoints) = self.flows.get_mut(flow as usize).and_then(|flow| flow.endpoints.as_mut()) else {
                return;
            };
            let Some(packet) = endpoints.receive(side, now) else { return };
            if side == Side::Sink {
                self.measurements.receptions.on_arrival(self.plan, flow, &packet, Instant::from_nanos(now));
            }
            self.exchange(flow, side);
        }
    }

    /// Sends what an endpoint of `flow` has to send, delivers messages to its application, and checks whether the
    /// application's transfer is done.
    fn exchange(&mut self, flow: u32, side: Side) {
        let now = self.clock.now();
        let state = &mut self.flows[flow as usize];
        let Some(endpoints) = &mut state.endpoints else { return };
        if let Some(due) = endpoints.send(side, now) {
            self.schedule.push(Reverse((due, Task::Timer(flow, side))));
        }
        if side == Side::Sink {
            while let Some(delivery) = endpoints.delivery() {
                self.measurements.receptions.on_delivery(self.plan, flow, &delivery);
                state.message_at = now;
                if state.request.is_some() {
                    state.first_at.get_or_insert(now);
                }
            }
        } else if state.request.is_some() && state.delivered_at == u64::MAX && endpoints.is_idle() {
            state.delivered_at = state.message_at;
            self.schedule.push(Reverse((now, Task::Complete(flow))));
        }
    }

    /// Writes offered data to a connection.
    fn write(&mut self, number: usize) -> Result<(), Error> {
        let Some(connection) = self.outbound.get_mut(number).and_then(Option::as_mut) else { return Ok(()) };
        if connection.write() == IoOutcome::Closed {
            self.measurements.failures += 1;
            let flow = connection.flow;
            self.close_connection(flow);
        }
        Ok(())
    }

    fn read(&mut self, number: usize) {
        let Some(inbound) = self.inbound.get_mut(number).and_then(Option::as_mut) else { return };
        let IoOutcome::Bytes(read) = inbound.read() else {
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
            self.schedule.push(Reverse((now + delay, Task::Complete(index))));
        }
    }

    /// Executes a task that is due at `now`, however late. Applications follow the times of their plan, so that
    /// lateness does not accumulate.
    fn execute(&mut self, now: u64, task: Task) -> Result<(), Error> {
        match task {
            Task::Edge => self.edge(),
            Task::Sample => {
                self.sample();
                self.schedule.push(Reverse((now + sample_step(self.plan), Task::Sample)));
            }
            Task::Resume(flow) => self.resume(now, flow)?,
            Task::Pause(flow) => self.pause(now, flow),
            Task::Complete(flow) => self.complete(now, flow)?,
            Task::Timer(flow, side) => {
                if let Some(endpoints) = &mut self.flows[flow as usize].endpoints {
                    endpoints.on_timer(side, now, self.clock.now());
                    self.exchange(flow, side);
                }
            }
            Task::Act(index) => {
                let application = &mut self.applications[index];
                // A stopped application has no pending action; one that continued since has a later one.
                if application.running
                    && let Some((_, action)) = application.pending.take_if(|(at, _)| *at <= now)
                {
                    self.perform(now, index, action)?;
                    self.advance(now, index)?;
                }
            }
        }
        Ok(())
    }

    fn resume(&mut self, now: u64, flow: u32) -> Result<(), Error> {
        let Some(index) = self.flows[flow as usize].application else {
            let finite = self.plan.flows[flow as usize].transfer;
            if let Some(endpoints) = &mut self.flows[flow as usize].endpoints {
                endpoints.start(now, finite);
                self.exchange(flow, Side::Source);
                return Ok(());
            }
            return match finite {
                Some(_) if std::mem::replace(&mut self.flows[flow as usize].started, true) => Ok(()),
                Some(bytes) => self.offer(flow, bytes.0),
                None => self.offer(flow, u64::MAX),
            };
        };
        let busy = self.flows[flow as usize].request.is_some();
        let application = &mut self.applications[index];
        if application.shared.is_some() {
            if !busy {
                application.idle.push(Reverse(flow));
            }
        } else if flow != application.first {
            // A further connection of the first flow's application.
            return Ok(());
        }
        if !std::mem::replace(&mut application.running, true) && application.pending.is_none() && !application.waits {
            self.advance(now, index)?;
        } else if let Some((at, _)) = self.applications[index].pending {
            self.schedule.push(Reverse((at.max(now), Task::Act(index))));
        }
        Ok(())
    }

    fn pause(&mut self, now: u64, flow: u32) {
        let Some(index) = self.flows[flow as usize].application else {
            if let Some(endpoints) = &mut self.flows[flow as usize].endpoints {
                endpoints.stop(now);
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
        let application = &mut self.applications[index];
        application.idle.retain(|Reverse(idle)| *idle != flow);
        if flow == application.first {
            application.running = false;
            // Packets are planned again by the clock of their source. A transfer or page has begun for its source: it
            // is performed late.
            let shared = application.shared.is_some();
            application.pending.take_if(|(_, action)| shared || matches!(action, Action::Write(_)));
        }
    }

    /// Performs the actions of a source until none is due now.
    fn advance(&mut self, now: u64, index: usize) -> Result<(), Error> {
        loop {
            let application = &mut self.applications[index];
            if !application.running {
                return Ok(());
            }
            if let Some(rate) =
                self.flows[application.first as usize].endpoints.as_ref().and_then(EndpointPair::rate_bps)
            {
                application.source.on_rate(rate);
            }
            match application.source.next(Instant::from_nanos(now), &mut application.rng) {
                Step::At(at, action) if at.as_nanos() <= now => self.perform(now, index, action)?,
                Step::At(at, action) => {
                    application.pending = Some((at.as_nanos(), action));
                    self.schedule.push(Reverse((at.as_nanos(), Task::Act(index))));
                    return Ok(());
                }
                Step::Await => {
                    application.waits = true;
                    return Ok(());
                }
                Step::End => return Ok(()),
            }
        }
    }

    fn perform(&mut self, now: u64, index: usize, action: Action) -> Result<(), Error> {
        let application = &mut self.applications[index];
        let first = application.first;
        match action {
            Action::Write(bytes) => match &mut self.flows[first as usize].endpoints {
                Some(endpoints) => {
                    endpoints.write(now, bytes);
                    self.exchange(first, Side::Source);
                }
                None => self.offer(first, u64::from(bytes))?,
            },
            Action::Transfer { bytes, fresh, connection } => {
                let flow = match application.shared {
                    None => first + connection,
                    Some(group) => match application.idle.pop() {
                        Some(Reverse(flow)) => flow,
                        None => {
                            self.measurements.requests.refused.push((group, now));
                            return Ok(());
                        }
                    },
                };
                if fresh {
                    self.close_connection(flow);
                }
                let state = &mut self.flows[flow as usize];
                if let Some(endpoints) = &mut state.endpoints {
                    (state.request, state.first_at, state.delivered_at) = (Some((bytes, now, 0)), None, u64::MAX);
                    endpoints.transfer(now, bytes);
                    self.exchange(flow, Side::Source);
                    return Ok(());
                }
                self.open(flow)?;
                let goal = self.connection(flow).map_or(0, |connection| connection.offered) + bytes;
                let state = &mut self.flows[flow as usize];
                (state.request, state.first_at, state.delivered_at) = (Some((bytes, now, goal)), None, u64::MAX);
                self.offer(flow, bytes)?;
            }
            Action::BeginPage => application.page_at = Some(now),
            Action::EndPage => {
                let connections =
                    self.plan.groups[self.plan.flows[first as usize].group as usize].traffic.connections();
                let flows = &self.flows[first as usize..(first + connections) as usize];
                let delivered = flows.iter().map(|flow| flow.delivered_at).filter(|at| *at != u64::MAX);
                let delivered_at = delivered.max().unwrap_or(now);
                if let Some(requested_at) = application.page_at.take() {
                    self.measurements.requests.pages.push(CompletedRequest {
                        flow: first,
                        bytes: 0,
                        requested_at,
                        first_at: None,
                        delivered_at,
                    });
                }
            }
        }
        Ok(())
    }

    /// Notifies the application of `flow` that its transfer was delivered.
    fn complete(&mut self, now: u64, flow: u32) -> Result<(), Error> {
        let state = &mut self.flows[flow as usize];
        let Some((bytes, requested_at, _)) = state.request.take() else { return Ok(()) };
        let (first_at, delivered_at) = (state.first_at, state.delivered_at);
        self.measurements.requests.transfers.push(CompletedRequest {
            flow,
            bytes,
            requested_at,
            first_at,
            delivered_at,
        });
        let Some(index) = state.application else { return Ok(()) };
        let application = &mut self.applications[index];
        application.source.on_delivered(if application.shared.is_some() { 0 } else { flow - application.first });
        if application.shared.is_some() {
            let on = self.plan.flows[flow as usize].on.iter();
            let is_on = on
                .clone()
                .any(|(from, until)| from.as_nanos() <= now && until.is_none_or(|until| now < until.as_nanos()));
            if is_on {
                application.idle.push(Reverse(flow));
            }
        } else if std::mem::take(&mut application.waits) {
            self.advance(now, index)?;
        }
        Ok(())
    }

    /// Connection of `flow`, if there is one.
    fn connection(&mut self, flow: u32) -> Option<&mut Connection> {
        self.outbound[self.flows[flow as usize].connection?].as_mut()
    }

    /// Opens a connection of `flow`, unless there is one.
    fn open(&mut self, flow: u32) -> Result<(), Error> {
        let state = &mut self.flows[flow as usize];
        if state.connection.is_some() {
            return Ok(());
        }
        let settings = &self.sockets[self.plan.flows[flow as usize].group as usize];
        let Some(tcp) = &settings.tcp else { return Ok(()) };
        let (connection, port) = Connection::open(flow, state.opened, settings, tcp)?;
        state.opened += 1;
        let slot = free_slot(&mut self.outbound);
        register(&self.epoll, &connection, OUTBOUND, slot, OUTBOUND_EVENTS)?;
        self.outbound[slot] = Some(connection);
        state.connection = Some(slot);
        self.by_port.insert((flow, port), slot);
        Ok(())
    }

    /// Offers `bytes` more on `flow`; `u64::MAX`: without end.
    fn offer(&mut self, flow: u32, bytes: u64) -> Result<(), Error> {
        self.open(flow)?;
        let Some(number) = self.flows[flow as usize].connection else { return Ok(()) };
        if let Some(connection) = self.outbound[number].as_mut() {
            connection.offered = connection.offered.saturating_add(bytes);
        }
        self.write(number)
    }

    /// Closes the connection of `flow`, if there is one, and keeps its totals.
    fn close_connection(&mut self, flow: u32) {
        let state = &mut self.flows[flow as usize];
        if let Some(endpoints) = &mut state.endpoints {
            state.closed.add_endpoints(endpoints);
            endpoints.renew();
            self.measurements.receptions.on_new_connection(flow);
            return;
        }
        let Some(number) = state.connection.take() else { return };
        self.by_port.retain(|_, connection| *connection != number);
        if let Some(connection) = self.outbound[number].take() {
            state.closed.info.add(&connection.info());
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
            if let Some(endpoints) = &flow.endpoints {
                flow.totals = flow.closed;
                flow.totals.add_endpoints(endpoints);
                continue;
            }
            flow.totals.info = flow.closed.info;
            if let Some(connection) = flow.connection.and_then(|number| self.outbound[number].as_ref()) {
                flow.totals.info.add(&connection.info());
            }
        }
        self.measurements.totals.push(self.flows.iter().map(|flow| flow.totals).collect());
        self.measurements.receptions.edge();
    }
}

impl Flow {
    /// Updates the transfer in progress when `connection` has received this many bytes by `now`. Returns whether the
    /// transfer is complete for the first time. Bytes of other connections are ignored.
    fn is_delivered(&mut self, connection: Option<usize>, received: u64, now: u64) -> bool {
        let is_transfer = connection.is_some() && connection == self.connection;
        let Some((bytes, _, goal)) = self.request.filter(|_| is_transfer) else { return false };
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
    /// Adds the statistics of a flow's endpoints.
    fn add_endpoints(&mut self, endpoints: &EndpointPair) {
        let (source, delivered) = endpoints.stats();
        self.delivered += delivered;
        self.info.sent += source.sent;
        self.info.retransmitted += source.retransmitted;
        self.info.timeouts = Some(self.info.timeouts.unwrap_or(0) + source.timeouts);
        self.rtt_sum_ns += source.rtt_sum.as_nanos() as f64;
        self.rtt_samples += source.rtt_samples;
    }
}

impl TcpInfo {
    fn add(&mut self, other: &TcpInfo) {
        self.sent += other.sent;
        self.retransmitted += other.retransmitted;
        self.timeouts = match (self.timeouts, other.timeouts) {
            (Some(sum), Some(addend)) => Some(sum + addend),
            (sum, addend) => sum.or(addend),
        };
    }
}

impl HostMeasurements {
    /// Totals of a flow at an edge; zero at the start.
    fn totals(&self, flow: u32, at: Instant) -> Totals {
        let edge = self.edges.iter().position(|edge| *edge == at.as_nanos());
        edge.and_then(|edge| self.totals.get(edge)).map(|flows| flows[flow as usize]).unwrap_or_default()
    }

    /// Mean round-trip time in nanoseconds (0: no samples) and bytes delivered of `flow` in `window`.
    pub(crate) fn rtt_and_bytes(&self, flow: u32, window: &Window) -> (f64, f64) {
        let (from, to) = (self.totals(flow, window.start), self.totals(flow, window.end));
        let samples = to.rtt_samples.saturating_sub(from.rtt_samples).max(1);
        ((to.rtt_sum_ns - from.rtt_sum_ns) / samples as f64, (to.delivered - from.delivered) as f64)
    }

    /// Metrics of a group in a window.
    pub(crate) fn metrics(&self, plan: &Plan, group: u32, window: &Window) -> FlowMetrics {
        let group_plan = &plan.groups[group as usize];
        let length_s = (window.end - window.start).as_secs_f64();
        let (mut sum, mut shares) = (Totals::default(), Vec::new());
        let mut timeouts = Some(0);
        for flow in group_plan.flows.clone() {
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
        let with_headers =
            f64::from(group_plan.transport.packet_bytes()) / f64::from(group_plan.transport.payload_bytes());
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
        if group_plan.traffic.has_requests() {
            let pages = matches!(group_plan.traffic, Traffic::Web(_));
            self.requests.fill(&mut metrics, (group, group_plan.flows.clone()), start..end, pages, |flow, bytes| {
                plan.ideal_completion_ns(flow, bytes)
            });
            if let Some(film) = aqumen_traffic::film(&group_plan.traffic) {
                let segments = self.requests.transfers.iter();
                fill_video_metrics(&mut metrics, film, group_plan.flows.clone(), start..end, segments, |flow| {
                    plan.stop_ns(flow)
                });
            }
        }
        metrics
    }
}

/// Interval between samples of the round-trip times for the flows of `plan`.
fn sample_step(plan: &Plan) -> u64 {
    SAMPLE_NS.max(plan.flows.len() as u64 * 1_000_000_000 / SAMPLES_PER_S_MAX)
}

/// Event data for descriptor `number` of a kind.
fn encode_event(kind: u64, number: usize) -> u64 {
    4 * number as u64 + kind
}

/// Kind and number of the descriptor in event data.
fn decode_event(data: u64) -> (u64, usize) {
    (data % 4, (data / 4) as usize)
}

fn register(
    epoll: &OwnedFd,
    fd: impl std::os::fd::AsFd,
    kind: u64,
    number: usize,
    flags: epoll::EventFlags,
) -> Result<(), Error> {
    let data = epoll::EventData::new_u64(encode_event(kind, number));
    epoll::add(epoll, fd, data, flags).context(|| "cannot poll a socket".into())
}

/// Index of a free slot in `all`.
fn free_slot<T>(all: &mut Vec<Option<T>>) -> usize {
    all.iter().position(Option::is_none).unwrap_or_else(|| {
        all.push(None);
        all.len() - 1
    })
}

#[cfg(test)]
pub(super) mod tests {
    use std::net::Ipv4Addr;

    use super::endpoints::tests::{arrivals, with_endpoints};
    use super::*;
    use crate::common::skipped;
    use crate::lab::dumbbell;
    use crate::lab::kernel;
    use crate::lab::testbed::sender;
    use crate::machine::namespace::tests::namespace_with_addresses;
    use crate::machine::tun::Tun;

    /// Source addresses and ports of the kernel's TCP connections in the calling thread's namespace.
    fn connections() -> Vec<(Ipv4Addr, u16)> {
        let table = std::fs::read_to_string("/proc/thread-self/net/tcp").unwrap();
        let endpoints =
            table.lines().skip(1).map(|line| line.split_whitespace().nth(1).unwrap().split_once(':').unwrap());
        let number = |digits: &str| u32::from_str_radix(digits, 16).unwrap();
        let mut all: Vec<_> = endpoints
            .map(|(address, port)| (Ipv4Addr::from(number(address).to_ne_bytes()), number(port) as u16))
            .collect();
        all.sort_unstable();
        all
    }

    /// Carries waiting packets between two devices until there are none.
    fn carry([left, right]: &[Tun; 2]) {
        let mut buffer = vec![0; 1 << 16];
        let mut pass = |from: &Tun, to: &Tun| {
            let length = from.read(&mut buffer).unwrap();
            length.map(|length| to.write(&buffer[..length]).unwrap()).is_some()
        };
        while pass(left, right) | pass(right, left) {}
    }

    #[test]
    fn the_totals_of_a_closed_connection_count() {
        if skipped("totals of closed connections") {
            return;
        }
        with_hosts(&plan(2), |mut hosts, tuns| {
            let transfer = |hosts: &mut Hosts<'_>, flow: u32, bytes: u64| -> Result<(), Error> {
                hosts.offer(flow, bytes)?;
                carry(tuns);
                // The connection is established now.
                hosts.offer(flow, 0)?;
                carry(tuns);
                hosts.on_event(LISTENER)?;
                (0..hosts.inbound.len()).for_each(|number| hosts.read(number));
                hosts.edge();
                Ok(())
            };
            let totals = |hosts: &Hosts<'_>, flow: usize| {
                let last = hosts.measurements.totals.last().unwrap()[flow];
                (last.info.sent, last.delivered)
            };
            // Segments of 1448 bytes: 7 for 10 000 bytes, 2 for 2000.
            transfer(&mut hosts, 0, 10_000)?;
            transfer(&mut hosts, 1, 2000)?;
            assert_eq!((totals(&hosts, 0), totals(&hosts, 1)), ((7, 10_000), (2, 2000)));
            let [first, second] = [0, 1].map(sender);
            assert_eq!(connections(), [(first, 10_000), (second, 10_000)]);
            hosts.close_connection(0);
            carry(tuns);
            assert_eq!(hosts.by_port.keys().collect::<Vec<_>>(), [&(1, 10_000)]);
            transfer(&mut hosts, 0, 2000)?;
            transfer(&mut hosts, 1, 2000)?;
            assert_eq!((totals(&hosts, 0), totals(&hosts, 1)), ((9, 12_000), (4, 4000)));
            let slot = hosts.flows[0].connection;
            assert_eq!(slot, Some(0), "the slot of the closed connection is reused");
            let alive = connections();
            assert!(alive.contains(&(first, 10_001)) && alive.contains(&(second, 10_000)), "{alive:?}");
            Ok(())
        });
    }

    /// Calls `work` with the hosts of `plan`, and the devices between them.
    fn with_hosts(plan: &Plan, work: impl FnOnce(Hosts<'_>, &[Tun; 2]) -> Result<(), Error> + Send) {
        let sockets = kernel::sockets(plan).unwrap();
        let (testbed, tuns) = TestBed::new(plan, &sockets, false).unwrap();
        let within = || work(Hosts::new(plan, &sockets, &testbed, Vec::new(), Clock::starting_in(0))?, &tuns);
        testbed.senders.within(within).unwrap();
    }

    /// Carries packets until `done`, at most for five seconds.
    fn carry_until(tuns: &[Tun; 2], mut done: impl FnMut() -> Result<bool, Error>) -> Result<(), Error> {
        for _ in 0..5000 {
            carry(tuns);
            if done()? {
                return Ok(());
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        panic!("not done after 5 s")
    }

    /// Bytes that have arrived at the sinks.
    fn delivered(hosts: &mut Hosts<'_>) -> Vec<u64> {
        hosts.edge();
        hosts.measurements.totals.last().unwrap().iter().map(|totals| totals.delivered).collect()
    }

    #[test]
    fn an_event_is_handled_at_its_own_socket() {
        if skipped("events at connections") {
            return;
        }
        with_hosts(&plan(2), |mut hosts, tuns| {
            (0..2).try_for_each(|flow| hosts.open(flow))?;
            // No round trip is known yet.
            hosts.sample();
            assert!(hosts.flows.iter().all(|flow| flow.totals.rtt_samples == 0));
            carry_until(tuns, || {
                hosts.on_event(encode_event(LISTENER, 0))?;
                Ok(hosts.inbound.len() == 2)
            })?;
            // The second connection has data to write; nothing leaves before its event.
            hosts.outbound[1].as_mut().unwrap().offered = 5000;
            hosts.on_event(encode_event(OUTBOUND, 0))?;
            carry(tuns);
            assert_eq!(connections().len(), 2);
            (0..2).try_for_each(|number| hosts.on_event(encode_event(INBOUND, number)))?;
            assert_eq!(delivered(&mut hosts), [0, 0]);
            hosts.on_event(encode_event(OUTBOUND, 1))?;
            // The kernel decides the order of the two inbound connections.
            carry_until(tuns, || {
                (0..2).try_for_each(|number| hosts.on_event(encode_event(INBOUND, number)))?;
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
    fn a_refused_connection_counts_as_failed() {
        if skipped("connections that fail") {
            return;
        }
        with_hosts(&plan(2), |mut hosts, tuns| {
            // There is no listener any more.
            hosts.listener = tcp::open()?;
            for (flow, failures) in [(0, 1), (1, 2)] {
                hosts.offer(flow, 1000)?;
                // A failed connection has left its slot.
                carry_until(tuns, || {
                    hosts.write(0)?;
                    Ok(hosts.measurements.failures == failures)
                })?;
                assert_eq!(hosts.flows[flow as usize].connection, None);
            }
            Ok(())
        });
    }

    #[test]
    fn datagrams_arrive_at_their_flow_and_their_source_is_done_after_sending() {
        if skipped("events at endpoints of datagrams") {
            return;
        }
        let traffic = "{ kind = \"transfers\", size = \"20kB\", think = \"1s\" }";
        let flows = format!("[[flows]]\nname = \"f\"\ncount = 2\ntransport = \"udp\"\ntraffic = {traffic}\n");
        with_hosts(&dumbbell(&[], &flows), |mut hosts, tuns| {
            let is_complete =
                |hosts: &Hosts<'_>| hosts.schedule.iter().any(|Reverse((_, task))| *task == Task::Complete(1));
            let flow = &mut hosts.flows[1];
            (flow.request, flow.delivered_at) = (Some((20_000, 0, 0)), u64::MAX);
            flow.endpoints.as_mut().unwrap().transfer(0, 20_000);
            assert!(!is_complete(&hosts));
            hosts.exchange(1, Side::Source);
            // A source of datagrams waits for no acknowledgement: it is done after sending, and notified once.
            assert!(is_complete(&hosts));
            hosts.schedule.retain(|Reverse((_, task))| *task != Task::Complete(1));
            (0..2).for_each(|flow| hosts.exchange(flow, Side::Source));
            assert!(!hosts.schedule.iter().any(|Reverse((_, task))| matches!(task, Task::Complete(_))));
            carry(tuns);
            // Endpoints have two numbers per flow: source and sink.
            (0..3).try_for_each(|other| hosts.on_event(encode_event(ENDPOINT, other)))?;
            assert_eq!((delivered(&mut hosts), hosts.flows[1].first_at), (vec![0, 0], None));
            carry_until(tuns, || {
                hosts.on_event(encode_event(ENDPOINT, 3))?;
                Ok(delivered(&mut hosts) == [0, 20_000])
            })?;
            assert!(hosts.flows[1].first_at.is_some() && hosts.flows[0].first_at.is_none());
            Ok(())
        });
    }

    fn plan(flows: u32) -> Plan {
        let flows = format!("[[flows]]\nname = \"f\"\ncount = {flows}\ntransport = \"linux-reno\"\n");
        dumbbell(&[], &format!("[windows]\nsteady = \"1s\"\n{flows}"))
    }

    fn totals(delivered: u64, sent: u64, retransmitted: u64, timeouts: Option<u64>, rtts_ms: &[u64]) -> Totals {
        Totals {
            delivered,
            info: TcpInfo { sent, retransmitted, timeouts, rtt_ns: 0 },
            rtt_sum_ns: rtts_ms.iter().sum::<u64>() as f64 * 1e6,
            rtt_samples: rtts_ms.len() as u64,
        }
    }

    /// Measurements at two edges.
    fn measurements_between(plan: &Plan, edges: [u64; 2], totals: [Vec<Totals>; 2]) -> HostMeasurements {
        let mut receptions = Receptions::new(plan);
        (0..2).for_each(|_| receptions.edge());
        let requests = Requests::default();
        HostMeasurements { edges: edges.into(), totals: totals.into(), receptions, requests, failures: 0 }
    }

    /// Measurements of flows with these mean round-trip times (milliseconds) and bytes delivered until the end of
    /// `plan`.
    pub(in crate::lab) fn measurements_of(plan: &Plan, flows: &[(u64, u64)]) -> HostMeasurements {
        let all = flows.iter().map(|(rtt_ms, bytes)| totals(*bytes, 1, 0, None, &[*rtt_ms])).collect();
        measurements_between(plan, [0, plan.duration.as_nanos()], [vec![Totals::default(); flows.len()], all])
    }

    #[test]
    fn a_window_covers_the_time_between_its_edges() {
        let plan = plan(2);
        let window = |name: &str| plan.windows.iter().find(|window| window.name == name).unwrap();
        let before = vec![totals(1000, 10, 1, Some(1), &[50, 50]), Totals::default()];
        let after = vec![
            totals(251_000, 110, 6, Some(3), &[50, 50, 60, 60, 60]),
            totals(750_000, 300, 15, Some(4), &[80, 80, 80, 80, 80]),
        ];
        let measurements = measurements_between(&plan, [1_000_000_000, 3_000_000_000], [before, after]);
        let steady = measurements.metrics(&plan, 0, window("steady"));
        // 250 and 750 kB in 2 s: 4 Mbit/s, of segments of 1448 bytes in packets of 1500; Jain: 4^2 / (2 (1 + 9)).
        assert_eq!((steady.goodput_bps, steady.jain_fairness), (4e6, Some(0.8)));
        assert!((steady.throughput_bps.unwrap() - 4e6 * 1500.0 / 1448.0).abs() < 1e-3, "{:?}", steady.throughput_bps);
        // 3 x 60 and 5 x 80 ms; 5 and 15 retransmissions of 100 and 300 packets; 2 and 4 timeouts.
        assert!((steady.rtt_mean_s.unwrap() - 0.0725).abs() < 1e-12, "{:?}", steady.rtt_mean_s);
        assert_eq!((steady.retransmitted_ratio, steady.timeouts), (Some(0.05), Some(6)));
        assert_eq!(measurements.rtt_and_bytes(0, window("steady")), (60e6, 250_000.0));
        assert_eq!(measurements.rtt_and_bytes(1, window("steady")), (80e6, 750_000.0));
        // From the start, where all totals are zero: 1001 kB in 3 s, 410 packets of which 21 are retransmissions.
        let all = measurements.metrics(&plan, 0, window("all"));
        assert!((all.goodput_bps - 8.0 * 1_001_000.0 / 3.0).abs() < 1e-6, "{}", all.goodput_bps);
        assert_eq!((all.retransmitted_ratio, all.timeouts), (Some(21.0 / 410.0), Some(7)));
    }

    #[test]
    fn round_trips_are_sampled_each_50_ms_and_no_more_than_4000_times_a_second() {
        // 200 flows 20 times a second are 4000 samples; 400 flows are sampled half as often.
        let steps = [1, 200, 400].map(|flows| sample_step(&plan(flows)));
        assert_eq!(steps, [50_000_000, 50_000_000, 100_000_000]);
    }

    #[test]
    fn totals_add_up_though_old_kernels_report_no_timeouts() {
        let info = |sent, timeouts| TcpInfo { sent, retransmitted: sent / 10, timeouts, rtt_ns: 7 };
        for (one, other, both) in
            [(None, None, None), (Some(2), None, Some(2)), (None, Some(3), Some(3)), (Some(2), Some(3), Some(5))]
        {
            let mut sum = info(20, one);
            sum.add(&info(30, other));
            assert_eq!((sum.sent, sum.retransmitted, sum.timeouts), (50, 5, both));
        }
    }

    #[test]
    fn free_slots_are_used_first() {
        let mut all = vec![Some('a'), None, Some('c'), None];
        assert_eq!(free_slot(&mut all), 1);
        all[1] = Some('b');
        all[3] = Some('d');
        assert_eq!((free_slot(&mut all), all.len()), (4, 5));
    }

    #[test]
    fn without_packets_there_is_no_ratio_and_no_round_trip() {
        let plan = plan(1);
        let measurements = measurements_between(
            &plan,
            [1_000_000_000, 3_000_000_000],
            [vec![Totals::default()], vec![Totals::default()]],
        );
        let steady = plan.windows.iter().find(|window| window.name == "steady").unwrap();
        let metrics = measurements.metrics(&plan, 0, steady);
        assert_eq!((metrics.rtt_mean_s, metrics.retransmitted_ratio, metrics.goodput_bps), (None, None, 0.0));
    }

    #[test]
    fn statistics_of_datagram_endpoints_are_added() {
        let Some(here) = namespace_with_addresses("totals of datagrams") else { return };
        let transport = "transport = \"udp\"\ntraffic = { kind = \"transfers\", size = \"20kB\", rate = \"1/s\" }";
        with_endpoints(&here, transport, |mut endpoints| {
            endpoints.transfer(0, 20_000);
            endpoints.send(Side::Source, 0);
            let arrived = std::iter::from_fn(|| endpoints.receive(Side::Sink, 0)).count() as u64;
            for (before, timeouts) in [(Some(3), 3), (None, 0)] {
                let mut sum = totals(1000, 10, 1, before, &[50, 70]);
                sum.add_endpoints(&endpoints);
                assert_eq!((sum.delivered, sum.info.sent), (21_000, 10 + arrived));
                // Datagrams are sent once, without timers, and measure no round trip.
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
        // Earlier bytes, and those of another connection, do not count.
        assert!(!flow.is_delivered(Some(3), 2000, 6) && !flow.is_delivered(Some(2), 3000, 7));
        assert_eq!((flow.first_at, flow.delivered_at), (None, u64::MAX));
        assert!(!flow.is_delivered(Some(3), 2001, 8) && !flow.is_delivered(Some(3), 2999, 9));
        assert_eq!((flow.first_at, flow.delivered_at), (Some(8), u64::MAX));
        assert!(flow.is_delivered(Some(3), 3000, 10) && !flow.is_delivered(Some(3), 3500, 11));
        assert_eq!((flow.first_at, flow.delivered_at), (Some(8), 10));
        // Without a request, or with its connection closed.
        let mut idle = Flow { connection: Some(3), delivered_at: u64::MAX, ..Flow::default() };
        let mut closed = Flow { request, delivered_at: u64::MAX, ..Flow::default() };
        assert!(!idle.is_delivered(Some(3), 3000, 12) && !closed.is_delivered(None, 3000, 12));
        assert_eq!((idle.first_at, closed.first_at), (None, None));
    }

    #[test]
    fn event_data_contain_kind_and_number() {
        for kind in [LISTENER, ENDPOINT, OUTBOUND, INBOUND] {
            for number in [0, 1, 2, 5, 1 << 40] {
                assert_eq!(decode_event(encode_event(kind, number)), (kind, number));
            }
        }
    }

    #[test]
    fn round_trips_measured_by_media_are_added() {
        let Some(here) = namespace_with_addresses("totals of media") else { return };
        with_endpoints(&here, "transport = \"rtp-nada\"", |mut endpoints| {
            endpoints.start(0, None);
            arrivals(&mut endpoints, &mut [None; 2], 0..2000);
            let (stats, _) = endpoints.stats();
            assert!(stats.rtt_samples > 0 && stats.rtt_sum.as_nanos() > 0, "{stats:?}");
            let mut sum = totals(0, 0, 0, None, &[50, 70]);
            sum.add_endpoints(&endpoints);
            assert_eq!(sum.rtt_samples, 2 + stats.rtt_samples);
            assert_eq!(sum.rtt_sum_ns, 120e6 + stats.rtt_sum.as_nanos() as f64);
        });
    }
}
