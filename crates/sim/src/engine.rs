//! The engine: places that go through supersteps by themselves, and post between them.
//!
//! A superstep is a stretch of simulated time, named as in bulk-synchronous parallel programs. No place is nearer to
//! another in time than it is long, so that nothing that happens within it is felt elsewhere before it is over: each
//! place goes through all of it by itself, and hands what it sends to the post. The order at a place is that of moments
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
//! order, `ports`, `lone` and `hosts` (with `ends`, `agents` and `applications`) let it happen, `turns` where a
//! place has more than a port; `ways` lead from place to place, and `halves` is a run on two threads. What a flow
//! of another transport has is an `agent`, what tells flows what to send an `application`. What is written, not
//! felt, in the order of all that happens, the trace, lies in a `log` until a superstep closes.

mod agent;
mod agents;
mod application;
mod applications;
mod batch;
mod ends;
mod halves;
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
mod turns;
mod ways;

use std::ops::RangeInclusive;

use aqumen_network::port::{Port, Style};
use aqumen_result::Series;
use aqumen_scenario::Plan;
use aqumen_transport::tcp::TcpConfig;
use rayon::ThreadPool;

use crate::control::{Agenda, Control};
use crate::event::Event;
use crate::measure::Measures;
use crate::measure::segments::Segments;
use crate::measure::share::Standing;
use crate::network::Network;
use crate::trace::Trace;
use crate::{Error, Places, Progress};

use application::Applications;
use batch::Turn;
use halves::Half;
use hosts::{FlowState, Hosts, Touched};
use moment::NEVER;
use partition::Partition;
use ports::Ports;
use post::{Post, Ranks};
pub(crate) use totals::{FlowTotal, Totals};
use ways::Ways;

pub(crate) struct Engine<'a> {
    plan: &'a Plan,
    ways: Ways<'a>,
    ports: Ports,
    /// The half of the run that has a thread of its own, if there is one; ways and ports are of the other half then.
    ends: Option<Box<Half<'a>>>,
    /// The threads of the halves.
    pool: Option<ThreadPool>,
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
    /// How many threads shared it, if more than one did.
    pub(crate) threads: Option<usize>,
}

/// Events after which the host is asked whether to go on, where that is before the agenda's next
/// look: some tenths of a second.
const EVENTS_PER_LOOK: u64 = 1 << 20;

impl<'a> Engine<'a> {
    /// The engine for `plan`; `threads`: so many may share the run.
    pub(crate) fn new(
        plan: &'a Plan,
        style: Style,
        places: Places,
        threads: usize,
        trace: Option<Trace>,
    ) -> Result<Self, Error> {
        let network = Network::new(plan, style, trace.is_some())?;
        let partition = Partition::new(plan, &network, places, threads);
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
        let measures = Measures::new(plan);
        let mut hosts = Hosts {
            plan,
            flows,
            touched: Touched::new(&measures),
            agents: Vec::new(),
            applications: Applications::default(),
            measures,
        };
        let post = Post::new(plan, ranks, partition.clone());
        let mut ways = Ways::new(plan, post, lanes, configs.clone(), trace.is_some());
        let mut ports = Ports::new(ports, identities, port_links);
        let shared = threads > 1 && trace.is_none() && halves::is_worth_it(plan, &ways, places);
        let pool = shared.then(halves::threads).flatten();
        let ends = if pool.is_some() {
            let Network { ports: others, identities, port_links, lanes, .. } = Network::new(plan, style, false)?;
            let anew = Ways::new(plan, Post::new(plan, ranks, partition), lanes, configs, false);
            let anew = (anew, Ports::new(others, identities, port_links));
            Some(Box::new(Half::part(plan, places, (&mut ways, &mut ports), anew)))
        } else {
            None
        };
        hosts.flows.iter_mut().zip(0u32..).for_each(|(state, flow)| state.first_lane = ways.lanes.first_lane(flow));
        hosts.add_agents();
        hosts.add_applications(&ways, style.collapse);
        let agenda = Agenda::new(plan, |flow| ways.post.is_lone_sender(flow));
        let mut engine = Engine {
            plan,
            ways,
            series: vec![Series::default(); ports.all.len()],
            ports,
            ends,
            pool,
            hosts,
            agenda,
            sample_at: plan.sample_interval.as_nanos(),
            trace,
            totals: Totals::default(),
            events: 0,
        };
        engine.look_ahead();
        (0..engine.series.len() as u32).for_each(|port| engine.arm(port));
        Ok(engine)
    }

    /// Runs to the end of the plan.
    pub(crate) fn run(mut self, progress: &mut dyn Progress) -> Result<Finished, Error> {
        let pool = self.pool.take();
        match &pool {
            None => self.run_through(progress)?,
            Some(pool) => halves::on(pool, progress, |progress| self.run_through(progress))?,
        }
        let threads = pool.map(|pool| pool.current_num_threads());
        let Engine { mut ports, hosts, ways, ends, series, totals, events, .. } = self;
        let (measures, mut segments) = (hosts.measures, ways.segments);
        if let Some(ends) = ends {
            segments.absorb(ends.leave(&mut ports).segments);
        }
        let Ports { all: ports, links: port_links, .. } = ports;
        Ok(Finished { ports, port_links, series, totals, measures, segments, events, threads })
    }

    fn run_through(&mut self, progress: &mut dyn Progress) -> Result<(), Error> {
        let end = self.plan.duration.as_nanos();
        let (mut superstep, mut told) = (0, 0);
        self.open(superstep);
        loop {
            let superstep_end = self.ways.post.superstep_end();
            let stop = self.agenda.next().min(self.sample_at);
            if superstep_end <= stop {
                self.run_places(superstep_end, 0);
                self.write_log();
                if self.events - told >= EVENTS_PER_LOOK {
                    told = self.events;
                    if !progress.at(superstep_end as f64 / end as f64) {
                        return Err(Error::Cancelled);
                    }
                }
                superstep = self.next_superstep(superstep + 1..=self.ways.post.superstep_of(stop));
                self.open(superstep);
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

    /// A superstep is over: which of the `few` that follow is to be opened next. Those in which nothing is due are
    /// passed over, save the last.
    fn next_superstep(&self, few: RangeInclusive<u64>) -> u64 {
        let (first, last) = few.into_inner();
        let due = self.ports.due().min(self.ends.as_ref().map_or(NEVER, |ends| ends.due()));
        let last = self.ways.post.superstep_of(due).clamp(first, last);
        let next = self.ways.post.next_superstep(first..=last);
        self.ends.as_ref().map_or(next, |ends| ends.ways.post.next_superstep(first..=next))
    }

    fn open(&mut self, superstep: u64) {
        match &mut self.ends {
            None => self.ways.post.open(superstep),
            Some(ends) => ends.open(&mut self.ways.post, superstep),
        }
    }

    /// All places go on up to, not including, the turn of `rank` at `until`.
    fn run_places(&mut self, until: u64, rank: u32) {
        self.go_on((until, rank), until > 0);
    }

    /// The same of all places but lone ends.
    fn run_ports(&mut self, until: u64, rank: u32) {
        self.go_on((until, rank), false);
    }

    fn go_on(&mut self, (until, rank): Turn, with_lone: bool) {
        if let Some(ends) = &mut self.ends {
            let (ports, hosts) = ((&mut self.ways, &mut self.ports), &mut self.hosts);
            self.events += ends.run(ports, hosts, (until, rank), with_lone);
            return;
        }
        (0..self.ways.post.places.len()).for_each(|place| self.run_place(place, (until, rank)));
        if with_lone {
            self.events += self.ways.run_receivers(until);
            self.events += self.hosts.run_senders(&mut self.ways, until);
        }
    }

    /// The AQM's timer of a port may be due at another moment than it was.
    fn arm(&mut self, port: u32) {
        match &mut self.ends {
            None => self.ports.arm(&mut self.ways, port),
            Some(ends) => ends.arm(&mut self.ports, &mut self.ways, port),
        }
    }

    /// The port of this number, and its samples.
    fn port(&mut self, number: usize) -> (&mut Port<Event>, &mut Series) {
        let own = self.ends.as_mut().and_then(|ends| ends.port(number));
        (own.unwrap_or(&mut self.ports.all[number]), &mut self.series[number])
    }

    fn write_log(&mut self) {
        if let (Some(log), Some(trace)) = (&mut self.ways.log, &mut self.trace) {
            log.write(trace);
        }
    }

    #[inline(never)]
    fn sample(&mut self, now: u64) {
        for number in 0..self.series.len() {
            let (port, series) = self.port(number);
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
        let ways = self.ends.as_mut().map_or(&mut self.ways, |ends| &mut ends.ways);
        act(&mut self.hosts, ways);
    }

    /// Tells what lies ahead on the agenda.
    fn look_ahead(&mut self) {
        let (edge, control) = (self.agenda.next_edge(), self.agenda.next());
        self.each_ways(|ways| ways.set_next(edge, control));
    }

    /// The ways of each half.
    fn each_ways(&mut self, mut visit: impl FnMut(&mut Ways<'a>)) {
        visit(&mut self.ways);
        if let Some(ends) = &mut self.ends {
            visit(&mut ends.ways);
        }
    }

    #[cold]
    fn replace_aqm(&mut self, now: u64, link: u32, change: u32) {
        let line = self.plan.links[link as usize].line.as_ref();
        let Some((_, choice)) = line.and_then(|line| line.aqms.get(change as usize)) else { return };
        // The plan was made of AQMs that can be built; a link that nobody uses has no port.
        let Some(port) = self.ports.links.iter().position(|number| *number == link) else { return };
        if let Some(Ok(new)) = choice.build_qdisc(self.plan.links[link as usize].limit) {
            self.port(port).0.retune(new, now);
            self.arm(port as u32);
        }
    }

    /// A window of measurement begins or ends.
    fn on_edge(&mut self, now: u64) {
        (0..self.series.len()).for_each(|number| self.port(number).0.edge(now));
        self.hosts.measures.edge();
        let ends = self.ways.sinks.iter().zip(0u32..);
        let mut totals: Vec<_> = ends.map(|(sink, flow)| self.hosts.total(flow, sink)).collect();
        if let Some(ends) = &self.ends {
            // Of a flow's two receivers only that of one half gets anything.
            let sinks = totals.iter_mut().zip(&ends.ways.sinks);
            sinks.for_each(|(total, sink)| total.delivered += sink.receiver.delivered_bytes().0);
        }
        self.each_ways(|ways| {
            ways.segments.edge();
            totals.iter_mut().zip(ways.early_bytes()).for_each(|(total, early)| total.delivered -= early);
        });
        self.totals.note(totals);
        self.look_ahead();
    }
}
