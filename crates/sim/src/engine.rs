//! The engine: places that go through windows of time by themselves, and post between them.
//!
//! What is at most a window away in time from a place cannot be felt there before the window is over: each place goes
//! through the whole window by itself, and hands what it sends to the post. The order at a place is that of moments
//! and, at equal moments, that of ranks, of which every source of events owns one:
//!
//! ```text
//! AQM timers (one per port) | control | sampler | ends of service (one per served port)
//!   | retransmission timers | delayed sends | delayed acknowledgements (one each per flow) | applications | lanes
//! ```
//!
//! Places share nothing, so that the results are the same bits whatever the partition: also where one place does
//! everything. What concerns all places stops them all: the agenda, and the sampler.
//!
//! `partition` says what makes a place, `post` takes there what is to happen, `place` and `batch` put it in
//! order, `ports`, `lone` and `hosts` (with `ends`, `agents` and `applications`) let it happen; `ways` lead
//! from place to place. What a flow of another transport has is an `agent`, what tells flows what to send an
//! `application`. What is written, not felt, in the order of all that happens, the trace, lies in a `log` until
//! a window closes.

mod agent;
mod agents;
mod application;
mod applications;
mod batch;
mod ends;
mod hosts;
mod log;
mod lone;
mod lone_inbox;
mod moment;
mod partition;
mod place;
mod ports;
mod post;
mod table;
mod totals;
mod ways;

use std::ops::RangeInclusive;

use aqumen_network::Identities;
use aqumen_network::port::{Port, Style};
use aqumen_result::Series;
use aqumen_scenario::Plan;
use aqumen_transport::tcp::{Receiver, TcpConfig};

use crate::control::{Agenda, Control};
use crate::event::Event;
use crate::measure::Measures;
use crate::measure::segments::Segments;
use crate::measure::share::Standing;
use crate::network::Network;
use crate::trace::Trace;
use crate::{Error, Places, Progress};

use application::Applications;
use hosts::{FlowState, Hosts, Touched};
use log::Log;
use moment::NEVER;
use partition::Partition;
use post::{Post, Ranks};
pub(crate) use totals::{FlowTotal, Totals};
use ways::{Sink, Ways};

pub(crate) struct Engine<'a> {
    plan: &'a Plan,
    ways: Ways<'a>,
    ports: Vec<Port<Event>>,
    identities: Identities,
    /// The link of each port, by number in the plan.
    port_links: Vec<u32>,
    /// When the transmission under way at each served port that is a place by itself ends.
    services: Vec<u64>,
    /// When the AQM's timer of each port that is a place by itself is due.
    timers: Vec<u64>,
    hosts: Hosts<'a>,
    agenda: Agenda,
    /// When the next sample is due.
    sample_at: u64,
    trace: Option<Trace>,
    series: Vec<Series>,
    totals: Totals,
    events: u64,
}

/// What a run leaves.
pub(crate) struct Finished {
    pub(crate) ports: Vec<Port<Event>>,
    /// The link of each port, by number in the plan.
    pub(crate) port_links: Vec<u32>,
    /// The samples of each port.
    pub(crate) series: Vec<Series>,
    /// What the flows had done at each edge of the windows of measurement.
    pub(crate) totals: Totals,
    pub(crate) measures: Measures,
    pub(crate) segments: Segments,
    pub(crate) events: u64,
}

/// Events after which the host is asked whether to go on, where that is before the agenda's next
/// look: some tenths of a second.
const EVENTS_PER_LOOK: u64 = 1 << 20;

impl<'a> Engine<'a> {
    pub(crate) fn new(plan: &'a Plan, style: Style, places: Places, trace: Option<Trace>) -> Result<Self, Error> {
        let network = Network::new(plan, style, trace.is_some())?;
        let partition = Partition::new(plan, &network, places);
        let (ports, flows) = (network.ports.len() as u32, plan.flows.len() as u32);
        let service = ports + 2;
        let retransmission = service + ports;
        let ranks = Ranks {
            control: ports,
            sampler: ports + 1,
            service,
            retransmission,
            send: retransmission + flows,
            acknowledge: retransmission + 2 * flows,
            application: retransmission + 3 * flows,
            lanes: retransmission + 3 * flows + Applications::ranks(plan),
        };
        static NO_TCP: TcpConfig = TcpConfig::ns2();
        let configs: Vec<_> = plan.groups.iter().map(|group| group.transport.tcp().unwrap_or(&NO_TCP)).collect();
        let Network { ports, identities, port_links, lanes, .. } = network;
        let flows = plan.flows.iter().zip(0u64..);
        let flows = flows.map(|(flow, number)| FlowState::new(configs[flow.group as usize], flow, plan.seed, number));
        let flows = flows.collect();
        let sinks = plan.flows.iter().map(|flow| Sink {
            receiver: Receiver::new(configs[flow.group as usize]),
            timer_at: NEVER,
            group: flow.group,
            epoch: 0,
        });
        let sinks = sinks.collect();
        let post = Post::new(plan, ranks, partition);
        let log = trace.is_some().then(Log::default);
        let measures = Measures::new(plan);
        let mut hosts = Hosts {
            plan,
            flows,
            touched: Touched::new(&measures),
            agents: Vec::new(),
            applications: Applications::default(),
            measures,
        };
        let ways = Ways::new(plan.duration.as_nanos(), post, lanes, configs, sinks, Segments::new(plan), log);
        hosts.flows.iter_mut().zip(0u32..).for_each(|(state, flow)| state.first_lane = ways.lanes.first_lane(flow));
        hosts.add_agents();
        hosts.add_applications(&ways, style.collapse);
        let mut engine = Engine {
            plan,
            ways,
            services: vec![NEVER; ports.len()],
            timers: vec![NEVER; ports.len()],
            series: vec![Series::default(); ports.len()],
            ports,
            identities,
            port_links,
            hosts,
            agenda: Agenda::new(plan),
            sample_at: plan.sample_interval.as_nanos(),
            trace,
            totals: Totals::default(),
            events: 0,
        };
        engine.look_ahead();
        (0..engine.ports.len() as u32).for_each(|port| engine.arm_port(port));
        Ok(engine)
    }

    /// Runs to the end of the plan.
    pub(crate) fn run(mut self, progress: &mut dyn Progress) -> Result<Finished, Error> {
        self.run_through(progress)?;
        let Engine { ports, port_links, hosts, ways, series, totals, events, .. } = self;
        let (measures, segments) = (hosts.measures, ways.segments);
        Ok(Finished { ports, port_links, series, totals, measures, segments, events })
    }

    fn run_through(&mut self, progress: &mut dyn Progress) -> Result<(), Error> {
        let end = self.plan.duration.as_nanos();
        let (mut window, mut told) = (0, 0);
        self.ways.post.open(window);
        loop {
            let window_end = self.ways.post.window_end();
            let stop = self.agenda.next().min(self.sample_at);
            if window_end <= stop {
                self.run_places(window_end, 0);
                self.write_log();
                if self.events - told >= EVENTS_PER_LOOK {
                    told = self.events;
                    if !progress.at(window_end as f64 / end as f64) {
                        return Err(Error::Cancelled);
                    }
                }
                window = self.next_window(window + 1..=self.ways.post.window_of(stop));
                self.ways.post.open(window);
                continue;
            }
            self.run_places(stop, self.ways.post.ranks.control);
            if self.agenda.next() == stop {
                self.events += 1;
                self.on_control(stop, progress)?;
                if stop >= end {
                    break;
                }
                // A new AQM's timer may be due.
                self.run_ports(stop, self.ways.post.ranks.sampler);
            }
            if self.sample_at == stop {
                self.events += 1;
                self.sample(stop);
            }
        }
        self.write_log();
        self.trace.take().map_or(Ok(()), Trace::finish)
    }

    /// A window is over: which of the `few` that follow is to be opened next. Those in which nothing is due are passed
    /// over, save the last.
    fn next_window(&self, few: RangeInclusive<u64>) -> u64 {
        let due = self.services.iter().chain(&self.timers).fold(NEVER, |first, due| first.min(*due));
        let last = self.ways.post.window_of(due).clamp(*few.start(), *few.end());
        self.ways.post.next_window(*few.start()..=last)
    }

    /// All places go on up to, not including, the turn of `rank` at `until`.
    fn run_places(&mut self, until: u64, rank: u32) {
        self.run_ports(until, rank);
        if until > 0 {
            self.events += self.hosts.run_lone(&mut self.ways, until);
        }
    }

    /// The same of all places but lone ends.
    fn run_ports(&mut self, until: u64, rank: u32) {
        (0..self.ways.post.places.len()).for_each(|place| self.run_place(place, (until, rank)));
    }

    fn write_log(&mut self) {
        if let (Some(log), Some(trace)) = (&mut self.ways.log, &mut self.trace) {
            log.write(trace);
        }
    }

    #[inline(never)]
    fn sample(&mut self, now: u64) {
        for (port, series) in self.ports.iter_mut().zip(&mut self.series) {
            if let Some((queue, probability)) = port.sample(now) {
                series.sample(now as f64 * 1e-9, queue as f64, probability);
                port.observe(&mut |name, value| series.observe(name, value));
            }
        }
        let Hosts { flows, touched, measures, .. } = &mut self.hosts;
        measures.sample(self.plan, now, touched.flows(), |flow| {
            let FlowState { sender, .. } = &flows[flow as usize];
            Standing { window: sender.cwnd(), acknowledged: sender.acknowledged_segments() }
        });
        touched.settle(flows);
        let next = now + self.plan.sample_interval.as_nanos();
        self.sample_at = if next <= self.plan.duration.as_nanos() { next } else { NEVER };
    }

    fn on_control(&mut self, now: u64, progress: &mut dyn Progress) -> Result<(), Error> {
        while let Some(control) = self.agenda.take(now) {
            match control {
                Control::Edge => self.on_edge(now),
                Control::ReplaceAqm { link, change } => self.replace_aqm(now, link, change),
                Control::Resume(flow) => self.with_agenda(|hosts, ways| hosts.on_resume(ways, flow, now)),
                Control::Pause(flow) => self.with_agenda(|hosts, ways| hosts.on_pause(ways, flow, now)),
                Control::Progress => {
                    if !progress.at(now as f64 / self.plan.duration.as_nanos() as f64) {
                        return Err(Error::Cancelled);
                    }
                }
            }
        }
        self.look_ahead();
        Ok(())
    }

    /// The hosts act, knowing what is on the agenda next.
    fn with_agenda(&mut self, act: impl FnOnce(&mut Hosts<'a>, &mut Ways<'a>)) {
        self.look_ahead();
        act(&mut self.hosts, &mut self.ways);
    }

    /// Tells what lies ahead on the agenda.
    fn look_ahead(&mut self) {
        self.ways.set_next(self.agenda.next_edge(), self.agenda.next());
    }

    #[cold]
    fn replace_aqm(&mut self, now: u64, link: u32, change: u32) {
        let line = self.plan.links[link as usize].line.as_ref();
        let Some((_, choice)) = line.and_then(|line| line.aqms.get(change as usize)) else { return };
        // The plan was made of AQMs that can be built; a link that nobody uses has no port.
        let Some(port) = self.port_links.iter().position(|number| *number == link) else { return };
        if let Some(Ok(new)) = choice.build_qdisc(self.plan.links[link as usize].limit) {
            self.ports[port].retune(new, now);
            self.arm_port(port as u32);
        }
    }

    /// A window of measurement begins or ends.
    fn on_edge(&mut self, now: u64) {
        self.ports.iter_mut().for_each(|port| port.edge(now));
        self.hosts.measures.edge();
        self.ways.segments.edge();
        let early = self.ways.early_bytes();
        let ends = self.ways.sinks.iter().zip(&early).zip(0u32..);
        let totals = ends.map(|((sink, early), flow)| {
            let mut total = self.hosts.total(flow, sink);
            total.delivered -= early;
            total
        });
        self.totals.note(totals.collect());
        self.look_ahead();
    }
}
