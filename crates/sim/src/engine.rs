//! Packet engine: a conservative parallel discrete-event simulation (Chandy and Misra 1979, Fujimoto 1990).
//!
//! The network is partitioned into *logical processes*: a port with its queue, the hosts with their endpoints, or a
//! single bulk endpoint. Simulated time advances in *epochs*. An epoch is no longer than the lookahead, the smallest
//! latency between two processes, so an event in one process cannot affect another process within the same epoch. Each
//! process therefore handles all its events of an epoch on its own, and sends messages (packets) to the mailboxes of
//! others, which sort them when a later epoch opens.
//!
//! Events of one process are ordered by time, then by tie-break priority, then first come, first served. Every source
//! of events has its own priority:
//!
//! ```text
//! AQM timers (one per port) | control | sampler | ends of service (one per served port)
//!   | retransmission timers | delayed sends | delayed acknowledgements (one each per flow) | applications | path legs
//! ```
//!
//! Processes share no state, so results do not depend on the partition or on the number of threads. The schedule and
//! the sampler concern all processes and stop them all.
//!
//! `partition` forms the processes, `mailboxes` deliver events to them, `process` and `batch` order these. `ports`,
//! `bulk` and `hosts` (with `endpoints`, `agents` and `applications`) execute them. `dispatch` sends packets from
//! process to process. A `worker` runs processes one after the other; `parallel` shares them between two workers. An
//! `agent` is a flow of another transport than TCP, an `application` tells flows what to send. The packet trace needs
//! the order of all events: its entries wait in a `log` until an epoch closes.

mod agent;
mod agents;
mod application;
mod applications;
mod batch;
mod bulk;
mod bulk_mailbox;
mod dispatch;
mod endpoints;
mod hosts;
mod log;
mod mailboxes;
mod moment;
mod parallel;
mod partition;
mod ports;
mod process;
mod table;
mod totals;
mod worker;

use std::ops::RangeInclusive;

use aqumen_aqm::AnyQdisc;
use aqumen_network::port::{Port, Style};
use aqumen_result::Series;
use aqumen_scenario::Plan;
use aqumen_transport::tcp::TcpConfig;

use crate::event::Event;
use crate::measure::Measures;
use crate::measure::segments::Segments;
use crate::measure::sharing::TransferState;
use crate::network::Network;
use crate::schedule::{Control, Schedule};
use crate::trace::Trace;
use crate::{Error, Partitioning, Progress};

use application::Applications;
use batch::EventKey;
use dispatch::Dispatcher;
use hosts::{ChangedFlows, FlowState, Hosts};
use mailboxes::{Mailboxes, Priorities};
use moment::NEVER;
use parallel::Threads;
use partition::Partition;
use ports::Ports;
pub(crate) use totals::{FlowTotal, Totals};
use worker::Worker;

pub(crate) struct Engine<'a> {
    plan: &'a Plan,
    /// One worker, or two that share the processes.
    workers: Vec<Worker<'a>>,
    /// Threads of two workers.
    threads: Option<Threads>,
    hosts: Hosts<'a>,
    schedule: Schedule,
    /// Time of the next sample.
    sample_at: u64,
    trace: Option<Trace>,
    series: Vec<Series>,
    totals: Totals,
    events: u64,
    /// Number of the open epoch.
    epoch: u64,
    /// Events at the last progress report.
    reported: u64,
    /// Time up to which all processes have run.
    now: u64,
}

/// Measurements and counts of a finished run.
pub(crate) struct Outcome {
    pub(crate) ports: Vec<Port<Event>>,
    /// Number of each port's link in the plan.
    pub(crate) port_links: Vec<u32>,
    /// Samples of each port.
    pub(crate) series: Vec<Series>,
    /// Totals of the flows at each edge of the measurement windows.
    pub(crate) totals: Totals,
    pub(crate) measures: Measures,
    pub(crate) segments: Segments,
    pub(crate) events: u64,
    /// Number of threads, if more than one.
    pub(crate) threads: Option<usize>,
}

/// Events between two progress reports, unless the schedule reports earlier: some tenths of a second.
const EVENTS_PER_LOOK: u64 = 1 << 20;

/// Returns the TCP configuration of each group of `plan`; an unused one for groups of other transports.
fn configs(plan: &Plan) -> Vec<&TcpConfig> {
    static NO_TCP: TcpConfig = TcpConfig::ns2();
    plan.groups.iter().map(|group| group.transport.tcp().unwrap_or(&NO_TCP)).collect()
}

impl<'a> Engine<'a> {
    /// Makes the engine for `plan`. `threads`: upper bound on the number of threads.
    pub(crate) fn new(
        plan: &'a Plan,
        style: Style,
        processes: Partitioning,
        threads: usize,
        trace: Option<Trace>,
    ) -> Result<Self, Error> {
        let network = Network::new(plan, style, trace.is_some())?;
        let partition = Partition::new(plan, &network, processes, threads);
        let (ports, flows) = (network.ports.len() as u32, plan.flows.len() as u32);
        let service = ports + 2;
        let retransmission = service + ports;
        let priorities = Priorities {
            control: ports,
            sampler: ports + 1,
            service,
            retransmission,
            send: retransmission + flows,
            acknowledge: retransmission + 2 * flows,
            application: retransmission + 3 * flows,
            paths: retransmission + 3 * flows + Applications::priorities(plan),
        };
        let configs = configs(plan);
        let Network { ports, identities, port_links, paths, .. } = network;
        let flows = plan.flows.iter().zip(0u64..);
        let flows = flows.map(|(flow, number)| FlowState::new(configs[flow.group as usize], flow, plan.seed, number));
        let flows = flows.collect();
        let measures = Measures::new(plan);
        let mut hosts = Hosts {
            plan,
            flows,
            changed: ChangedFlows::new(&measures),
            agents: Vec::new(),
            applications: Applications::default(),
            measures,
        };
        let mailboxes = Mailboxes::new(plan, priorities, partition.clone());
        let dispatcher = Dispatcher::new(plan, mailboxes, paths, configs.clone(), trace.is_some());
        let shared = threads > 1 && trace.is_none() && parallel::is_worth_it(plan, &dispatcher, processes);
        let threads = if shared { Threads::new(&dispatcher.mailboxes, processes) } else { None };
        let mut workers = vec![Worker::new(dispatcher, Ports::new(ports, identities, port_links))];
        if threads.is_some() {
            let Network { ports, identities, port_links, paths, .. } = Network::new(plan, style, false)?;
            let copy = Dispatcher::new(plan, Mailboxes::new(plan, priorities, partition), paths, configs, false);
            let second = parallel::divide(plan, &mut workers[0], (copy, Ports::new(ports, identities, port_links)));
            workers.push(second);
        }
        let dispatcher = &workers[0].dispatcher;
        hosts.flows.iter_mut().zip(0u32..).for_each(|(state, flow)| state.first_leg = dispatcher.paths.first_leg(flow));
        hosts.add_agents();
        hosts.add_applications(dispatcher, style.collapse);
        let schedule = Schedule::new(plan, |flow| dispatcher.mailboxes.is_bulk_sender(flow));
        let mut engine = Engine {
            plan,
            series: vec![Series::default(); workers[0].ports.all.len()],
            workers,
            threads,
            hosts,
            schedule,
            sample_at: plan.sample_interval.as_nanos(),
            trace,
            totals: Totals::default(),
            events: 0,
            epoch: 0,
            reported: 0,
            now: 0,
        };
        engine.look_ahead();
        (0..engine.series.len()).for_each(|port| engine.owner(port).arm(port as u32));
        engine.open(0);
        Ok(engine)
    }

    /// Runs to the end of the plan.
    pub(crate) fn run(mut self, progress: &mut dyn Progress) -> Result<Outcome, Error> {
        // Nobody looks at a receiver before the end. The first worker has all bulk receivers; a leg to them belongs to
        // it unless no port lies before it.
        self.workers[0].dispatcher.receives_ahead = true;
        match self.threads.as_ref().map(Threads::pool) {
            None => self.advance(NEVER, progress)?,
            Some(pool) => parallel::on(&pool, progress, |progress| self.advance(NEVER, progress))?,
        }
        self.outcome()
    }

    /// Returns the outcome of a run that is over, and leaves an engine without processes.
    pub(crate) fn outcome(&mut self) -> Result<Outcome, Error> {
        self.trace.take().map_or(Ok(()), Trace::finish)?;
        let mut workers = std::mem::take(&mut self.workers).into_iter();
        let Some(Worker { dispatcher, ports, .. }) = workers.next() else { return Err(Error::Over) };
        let Ports { all: mut ports, links: port_links, .. } = ports;
        let mut segments = dispatcher.segments;
        for mut worker in workers {
            worker.return_ports(&mut ports);
            segments.absorb(worker.dispatcher.segments);
        }
        Ok(Outcome {
            ports,
            port_links,
            series: std::mem::take(&mut self.series),
            totals: std::mem::take(&mut self.totals),
            measures: self.hosts.measures.clone(),
            segments,
            events: self.events,
            threads: self.threads.as_ref().map(Threads::count),
        })
    }

    /// Runs all events before the scheduled items of `until`, or to the end of the plan if `until` is later.
    pub(crate) fn advance(&mut self, until: u64, progress: &mut dyn Progress) -> Result<(), Error> {
        let end = self.plan.duration.as_nanos();
        loop {
            let epoch_end = self.mailboxes().epoch_end();
            let stop = self.schedule.next().min(self.sample_at).min(until);
            if epoch_end <= stop {
                self.run_processes(epoch_end, 0);
                self.write_log();
                if self.events - self.reported >= EVENTS_PER_LOOK {
                    self.reported = self.events;
                    if !progress.at(epoch_end as f64 / end as f64) {
                        return Err(Error::Cancelled);
                    }
                }
                self.epoch = self.next_epoch(self.epoch + 1..=self.mailboxes().epoch_of(stop));
                self.open(self.epoch);
                continue;
            }
            self.run_processes(stop, self.mailboxes().priorities.control);
            if stop == until {
                return Ok(());
            }
            if self.schedule.next() == stop {
                self.events += 1;
                let goes_on = self.on_control(stop, progress);
                if stop >= end {
                    self.write_log();
                    return Ok(());
                }
                // The timer of a new AQM may be due.
                self.run_ports(stop, self.mailboxes().priorities.sampler);
                if !goes_on {
                    return Err(Error::Cancelled);
                }
            }
            if self.sample_at == stop {
                self.events += 1;
                self.sample(stop);
            }
        }
    }

    /// Copies the engine in its present state, for a copy of its plan. Two workers cannot be copied.
    pub(crate) fn copy<'b>(&self, plan: &'b Plan) -> Engine<'b> {
        let workers = self.workers.iter().map(|worker| worker.copy(&configs(plan)));
        Engine {
            plan,
            workers: workers.collect(),
            threads: None,
            hosts: self.hosts.copy(plan),
            schedule: self.schedule.clone(),
            sample_at: self.sample_at,
            trace: None,
            series: self.series.clone(),
            totals: self.totals.clone(),
            events: self.events,
            epoch: self.epoch,
            reported: self.reported,
            now: self.now,
        }
    }

    /// Returns the port of `link`, a number of the plan.
    pub(crate) fn port_of(&mut self, link: u32) -> Option<&mut Port<Event>> {
        let port = self.workers.first()?.ports.links.iter().position(|number| *number == link)?;
        Some(&mut self.owner(port).ports.all[port])
    }

    /// Returns the samples of `link`.
    pub(crate) fn series_of(&self, link: u32) -> Option<&Series> {
        let port = self.workers.first()?.ports.links.iter().position(|number| *number == link)?;
        self.series.get(port)
    }

    /// Replaces the discipline of `link` by `new` at `now`.
    pub(crate) fn replace_qdisc(&mut self, now: u64, link: u32, new: AnyQdisc) {
        let Some(first) = self.workers.first() else { return };
        // An unused link has no port.
        let Some(port) = first.ports.links.iter().position(|number| *number == link) else { return };
        let owner = self.owner(port);
        owner.ports.all[port].retune(new, now);
        owner.arm(port as u32);
    }

    /// Draws from the random numbers of `seed` from now on.
    pub(crate) fn reseed(&mut self, seed: u64) {
        for Worker { ports, .. } in &mut self.workers {
            let links = ports.links.iter().copied();
            ports.all.iter_mut().zip(links).for_each(|(port, link)| port.reseed(seed, link));
        }
        self.hosts.reseed(seed);
    }

    /// Returns the flow of a packet in a queue.
    pub(crate) fn flow_of(&self, packet: &Event) -> u32 {
        let Worker { dispatcher, .. } = &self.workers[0];
        dispatcher.paths.flow_of(dispatcher.leg_of(packet))
    }

    /// Returns the congestion window of `flow` in segments, if it uses TCP, and its totals since it began.
    pub(crate) fn flow(&self, flow: u32) -> (Option<f64>, FlowTotal) {
        let total = self.hosts.total(flow, &self.workers[0].dispatcher.sinks[flow as usize]);
        (self.hosts.window(flow), total)
    }

    /// Returns the time up to which all processes have run.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// Returns the times of the next scheduled item and of the next sample.
    pub(crate) fn next_stops(&self) -> (u64, u64) {
        (self.schedule.next(), self.sample_at)
    }

    /// Returns the mailboxes of the first worker.
    fn mailboxes(&self) -> &Mailboxes {
        &self.workers[0].dispatcher.mailboxes
    }

    /// Returns the next epoch to open: the first of `epochs` with an event, or else the last.
    fn next_epoch(&self, epochs: RangeInclusive<u64>) -> u64 {
        let (first, last) = epochs.into_inner();
        self.workers.iter().fold(last, |last, worker| worker.next_epoch(first..=last))
    }

    fn open(&mut self, epoch: u64) {
        if let [first, second] = &mut self.workers[..] {
            parallel::exchange(first, second, epoch);
        }
        self.workers.iter_mut().for_each(|worker| worker.dispatcher.mailboxes.open(epoch));
    }

    /// Runs all processes up to the key (`until`, `priority`), exclusive.
    fn run_processes(&mut self, until: u64, priority: u32) {
        self.run_workers((until, priority), until > 0);
    }

    /// Runs all processes but bulk endpoints up to the key (`until`, `priority`), exclusive.
    fn run_ports(&mut self, until: u64, priority: u32) {
        self.run_workers((until, priority), false);
    }

    fn run_workers(&mut self, until: EventKey, with_bulk: bool) {
        self.now = until.0;
        self.events += match (&mut self.workers[..], &mut self.threads) {
            ([first, second], Some(threads)) => threads.run((first, second), &mut self.hosts, until, with_bulk),
            (workers, _) => workers.iter_mut().map(|worker| worker.run(Some(&mut self.hosts), until, with_bulk)).sum(),
        };
    }

    /// Returns the worker that has `port`.
    fn owner(&mut self, port: usize) -> &mut Worker<'a> {
        let owner = self.workers.iter().position(|worker| worker.has_port[port]);
        &mut self.workers[owner.unwrap_or(0)]
    }

    fn write_log(&mut self) {
        if let (Some(log), Some(trace)) = (&mut self.workers[0].dispatcher.log, &mut self.trace) {
            log.write(trace);
        }
    }

    #[inline(never)]
    fn sample(&mut self, now: u64) {
        for number in 0..self.series.len() {
            let mut workers = self.workers.iter_mut();
            let Some(worker) = workers.find(|worker| worker.has_port[number]) else { continue };
            let (port, series) = (&mut worker.ports.all[number], &mut self.series[number]);
            if let Some((queue, probability)) = port.sample(now) {
                series.sample(now as f64 * 1e-9, queue as f64, probability);
                port.observe(&mut |name, value| series.observe(name, value));
            }
        }
        let Hosts { flows, changed, measures, .. } = &mut self.hosts;
        measures.sample(self.plan, now, changed.flows(), |flow| {
            let FlowState { sender, .. } = &flows[flow as usize];
            TransferState { window: sender.cwnd(), acknowledged: sender.acknowledged_segments() }
        });
        changed.settle(flows);
        let next = now + self.plan.sample_interval.as_nanos();
        self.sample_at = if next <= self.plan.duration.as_nanos() { next } else { NEVER };
    }

    /// Carries out the scheduled items of `now`; returns whether the run goes on.
    fn on_control(&mut self, now: u64, progress: &mut dyn Progress) -> bool {
        let mut goes_on = true;
        while let Some(control) = self.schedule.take(now) {
            match control {
                Control::Edge => self.on_edge(now),
                Control::ReplaceAqm { link, change } => self.replace_aqm(now, link, change),
                Control::Resume(flow) => self.with_schedule(|hosts, dispatcher| hosts.on_resume(dispatcher, flow, now)),
                Control::Pause(flow) => self.with_schedule(|hosts, dispatcher| hosts.on_pause(dispatcher, flow, now)),
                Control::Progress => goes_on &= progress.at(now as f64 / self.plan.duration.as_nanos() as f64),
            }
        }
        self.look_ahead();
        goes_on
    }

    /// Lets the hosts act on a scheduled item.
    fn with_schedule(&mut self, act: impl FnOnce(&mut Hosts<'a>, &mut Dispatcher<'a>)) {
        self.look_ahead();
        if let Some(worker) = self.workers.iter_mut().find(|worker| worker.has_hosts) {
            act(&mut self.hosts, &mut worker.dispatcher);
        }
    }

    /// Passes the next window edge and the next scheduled item to the dispatchers.
    fn look_ahead(&mut self) {
        let (edge, control) = (self.schedule.next_edge(), self.schedule.next());
        self.workers.iter_mut().for_each(|worker| worker.dispatcher.set_next(edge, control));
    }

    #[cold]
    fn replace_aqm(&mut self, now: u64, link: u32, change: u32) {
        let link_of_plan = &self.plan.links[link as usize];
        let changes = link_of_plan.line.as_ref().map_or(&[][..], |line| &line.aqms);
        // The scenario has checked that the AQM can be built.
        if let Some(Ok(new)) = changes.get(change as usize).and_then(|(_, aqm)| aqm.build_qdisc(link_of_plan.limit)) {
            self.replace_qdisc(now, link, new);
        }
    }

    /// Begins or ends a measurement window.
    fn on_edge(&mut self, now: u64) {
        (0..self.series.len()).for_each(|port| self.owner(port).ports.all[port].edge(now));
        self.hosts.measures.edge();
        let sinks = self.workers[0].dispatcher.sinks.iter().zip(0u32..);
        let mut totals: Vec<_> = sinks.map(|(sink, flow)| self.hosts.total(flow, sink)).collect();
        for Worker { dispatcher, .. } in &self.workers[1..] {
            // Each worker has a receiver of the flow; only one of them gets segments.
            let sinks = totals.iter_mut().zip(&dispatcher.sinks);
            sinks.for_each(|(total, sink)| total.delivered += sink.receiver.delivered_bytes().0);
        }
        for Worker { dispatcher, .. } in &mut self.workers {
            dispatcher.segments.edge();
            totals.iter_mut().zip(dispatcher.early_bytes()).for_each(|(total, early)| total.delivered -= early);
        }
        self.totals.note(totals);
        self.look_ahead();
    }
}
