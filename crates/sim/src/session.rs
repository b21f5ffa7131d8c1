//! A session: a run that stops where its user wants, to be looked at, changed and copied.
//!
//! Cuts and looks change no bit of the run. An event that is pushed is an event of the scenario: the session takes over
//! the plan of the longer scenario, whose past is its own, and repeats the run up to now. `set_probability` acts at
//! once, without a repetition.
//!
//! Differences from a run of [`run`](crate::run): one thread, no packet trace.

use std::sync::Arc;

use aqumen_aqm::{AnyAqm, AnyQdisc, Fixed, Observation, Observer};
use aqumen_network::WirePacket;
use aqumen_network::port::Style;
use aqumen_result::{Histogram, RunResult, Series};
use aqumen_scenario::{AqmSpec, Plan, Scenario};
use aqumen_units::{Ecn, Instant, Probability, Span};
use self_cell::self_cell;

use crate::engine::{Engine, FlowTotal};
use crate::{Error, Options, Progress, report};

self_cell!(
    /// An engine with the plan that it borrows from.
    struct PlannedEngine {
        owner: Arc<Plan>,
        #[covariant]
        dependent: Engine,
    }
);

/// A packet run in progress.
pub struct Session {
    scenario: Scenario,
    aqm: Option<AqmSpec>,
    style: Style,
    engine: PlannedEngine,
    now: Instant,
    /// Changes that no event of the scenario makes, in order.
    changes: Vec<(Instant, Change)>,
    /// Links that were observed, with the observer and the sojourn times of the last look.
    links: Vec<LinkLook>,
    /// Totals of each flow at the last look, and its time.
    flows: (Instant, Vec<FlowTotal>),
}

/// A change that no event of a scenario makes, or that is too frequent for one.
#[derive(Clone, Debug, PartialEq)]
enum Change {
    Probability { link: u32, p: f64 },
    Aqm { link: u32, spec: String },
    Reseed(u64),
}

/// Findings of the last look at a link.
#[derive(Clone, Default)]
struct LinkLook {
    observer: Observer,
    sojourns: Histogram,
}

/// Reason why a session stopped where it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A sample of the series is due.
    Sample,
    /// A scheduled item of the plan is due: an event, an edge of a window, a start or stop of a flow.
    Control,
    /// The time that was asked for, within events of packets.
    Event,
    /// The end of the run.
    End,
}

/// A packet that waits in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingPacket {
    /// Number of its flow in the plan.
    pub flow: u32,
    /// Size on the wire, bytes.
    pub bytes: u32,
    /// Whether it carries a congestion mark.
    pub marked: bool,
}

/// A flow since the last look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowState {
    /// Number of its group in the plan.
    pub group: u32,
    /// Congestion window now, segments; `None` for transports other than TCP.
    pub window_pkts: Option<f64>,
    /// Payload delivered in order per second since the last look, bits per second.
    pub goodput_bps: f64,
    /// Segments sent again since the last look.
    pub retransmitted: u64,
    /// Timeouts since the last look.
    pub timeouts: u64,
}

impl Session {
    /// Begins a run of `scenario`, with `aqm` on the links under test (`None`: that of the scenario).
    /// [`Options::every_service`] gives access to the [`contents`](Self::contents) of queues.
    pub fn new(scenario: Scenario, seed: u64, aqm: Option<AqmSpec>, options: Options<'_>) -> Result<Self, Error> {
        let plan = scenario.plan(seed, aqm.as_ref()).map_err(said)?;
        let style = Style { collapse: !options.every_hop, served: options.every_service };
        let links = vec![LinkLook::default(); plan.links.len()];
        let flows = (Instant::ZERO, vec![FlowTotal::default(); plan.flows.len()]);
        let engine = start(Arc::new(plan), style)?;
        Ok(Session { scenario, aqm, style, engine, now: Instant::ZERO, changes: Vec::new(), links, flows })
    }

    /// Returns the plan of the run.
    pub fn plan(&self) -> &Plan {
        self.engine.borrow_owner()
    }

    /// Returns the scenario of the run, with all events that were pushed, and AQMs and probabilities that were set as
    /// further events. Its run has the bits of this one, except after a [`reseed`](Self::reseed).
    pub fn scenario(&self) -> Result<Scenario, Error> {
        let mut scenario = self.scenario.clone();
        // They took effect before the events of their moment.
        for (at, change) in self.changes.iter().rev() {
            let (link, spec) = match change {
                Change::Probability { link, p } => (link, format!("fixed:p={p:?}")),
                Change::Aqm { link, spec } => (link, spec.clone()),
                Change::Reseed(_) => continue,
            };
            scenario = scenario.with_event_at(0, &self.aqm_event(*at, *link, &spec)).map_err(said)?;
        }
        Ok(scenario)
    }

    /// Returns the time that the run has reached: all events before it have happened.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Returns the end of the run.
    pub fn end(&self) -> Instant {
        Instant::ZERO + self.plan().duration
    }

    /// Runs up to `until`, or to the end if that is earlier. After an error the session continues where it stopped.
    pub fn advance_to(&mut self, until: Instant, progress: &mut dyn Progress) -> Result<Stop, Error> {
        if self.now >= self.end() {
            return Err(Error::Over);
        }
        if until < self.now {
            let (until, now) = (until.as_secs_f64(), self.now.as_secs_f64());
            return Err(Error::Session(format!("{until} s has passed: the run is at {now} s")));
        }
        let end = self.end();
        let until = until.min(end);
        let (reached, done) = self.engine.with_dependent_mut(|_, engine| {
            let done = engine.advance(until.as_nanos(), progress);
            (engine.now(), done)
        });
        self.now = if done.is_ok() { until } else { Instant::from_nanos(reached).max(self.now).min(until) };
        done?;
        let next = self.engine.borrow_dependent().next_stops();
        Ok(match self.now.as_nanos() {
            _ if self.now >= end => Stop::End,
            now if next.0 == now => Stop::Control,
            now if next.1 == now => Stop::Sample,
            _ => Stop::Event,
        })
    }

    /// Runs to the end of the next transmission at `link`, or to the end of the run.
    pub fn advance_packet(&mut self, link: u32, progress: &mut dyn Progress) -> Result<Stop, Error> {
        const IDLE_STEP: Span = Span::from_millis(1);
        let departures = self.look(link)?.departures;
        loop {
            let now = self.now.as_nanos();
            let end = self
                .engine
                .with_dependent_mut(|_, engine| engine.port_of(link).and_then(|port| port.transmission_end()));
            let next = end.filter(|end| *end >= now).map_or(self.now + IDLE_STEP, |end| Instant::from_nanos(end + 1));
            let stop = self.advance_to(next.min(self.now + IDLE_STEP), progress)?;
            if stop == Stop::End || self.look(link)?.departures > departures {
                return Ok(stop);
            }
        }
    }

    /// Returns the number of the link called `name`.
    pub fn link(&self, name: &str) -> Result<u32, Error> {
        let links = &self.plan().links;
        let number = links.iter().position(|link| link.name == name);
        number.map(|number| number as u32).ok_or_else(|| {
            let known = links.iter().filter(|link| link.record).map(|link| link.name.to_string()).collect::<Vec<_>>();
            Error::Session(format!("no link \"{name}\"; choose from: {}", known.join(", ")))
        })
    }

    /// Observes the queue of `link`, as a sampled law would: counts are since the last call for this link, or since the
    /// start.
    pub fn observe(&mut self, link: u32) -> Result<Observation, Error> {
        let now = self.now;
        let (waiting, p, totals) = self.queue(link)?;
        Ok(self.links[link as usize].observer.observe(now, waiting, &totals, Probability::clamp(p)))
    }

    /// Returns the packets that wait at `link`, in the order of their arrival.
    pub fn contents(&mut self, link: u32) -> Result<Vec<WaitingPacket>, Error> {
        self.measured(link)?;
        self.engine.with_dependent_mut(|_, engine| {
            let packets = engine.port_of(link).and_then(|port| port.contents());
            let message =
                "this session does not keep the packets of queues: every_service (in Python: packets=True) does";
            let packets = packets.ok_or_else(|| Error::Session(message.into()))?;
            let waiting = packets.iter().map(|packet| WaitingPacket {
                flow: engine.flow_of(packet),
                bytes: packet.bytes(),
                marked: packet.ecn() == Ecn::Ce,
            });
            Ok(waiting.collect())
        })
    }

    /// Returns each flow of the plan, since the last call.
    pub fn flows(&mut self) -> Vec<FlowState> {
        let (now, plan) = (self.now, Arc::clone(self.engine.borrow_owner()));
        let elapsed_s = (now - self.flows.0).as_secs_f64();
        let engine = self.engine.borrow_dependent();
        let look = |((flow, number), last): ((&aqumen_scenario::Flow, u32), &mut FlowTotal)| {
            let (window_pkts, total) = engine.flow(number);
            let since = total.since(&std::mem::replace(last, total));
            FlowState {
                group: flow.group,
                window_pkts,
                goodput_bps: if elapsed_s > 0.0 { since.delivered as f64 * 8.0 / elapsed_s } else { 0.0 },
                retransmitted: since.counts.retransmitted,
                timeouts: since.counts.timeouts,
            }
        };
        let flows = plan.flows.iter().zip(0u32..).zip(&mut self.flows.1).map(look).collect();
        self.flows.0 = now;
        flows
    }

    /// Returns the sojourn times (nanoseconds) at `link` since the last call, or since the start.
    pub fn histogram(&mut self, link: u32) -> Result<Histogram, Error> {
        self.queue(link)?;
        let sojourns = self.engine.with_dependent_mut(|_, engine| {
            engine.port_of(link).and_then(|port| Some(port.measured()?.0.sojourns_so_far()))
        });
        let sojourns = sojourns.unwrap_or_default();
        let since = sojourns.since(&self.links[link as usize].sojourns);
        self.links[link as usize].sojourns = sojourns;
        Ok(since)
    }

    /// Returns the samples of `link` so far.
    pub fn series(&self, link: u32) -> Result<&Series, Error> {
        self.measured(link)?;
        self.engine.borrow_dependent().series_of(link).ok_or(Error::Over)
    }

    /// Replaces the AQM of `link` by the constant probability `p`; packets that can carry a mark are marked.
    pub fn set_probability(&mut self, link: u32, p: f64) -> Result<(), Error> {
        self.measured(link)?;
        if !(0.0..=1.0).contains(&p) {
            return Err(Error::Session(format!("a probability is from 0 to 1, not {p}")));
        }
        if self.now >= self.end() {
            return Err(Error::Over);
        }
        self.carry_out(Change::Probability { link, p });
        Ok(())
    }

    /// Replaces the AQM of `link` by that of a SPEC. Where the port cannot take it over at once (a discipline of
    /// several queues, an AQM that decides at the head), the change is an event that is [pushed](Self::push).
    pub fn set_aqm(&mut self, link: u32, spec: &str, progress: &mut dyn Progress) -> Result<(), Error> {
        self.measured(link)?;
        if self.now >= self.end() {
            return Err(Error::Over);
        }
        let new = build(&self.scenario, self.plan(), link, spec)?;
        if self.engine.with_dependent_mut(|_, engine| engine.port_of(link).is_some_and(|port| port.accepts(&new))) {
            self.carry_out(Change::Aqm { link, spec: spec.into() });
            return Ok(());
        }
        self.push(&self.aqm_event(self.now, link, spec), progress)
    }

    /// Returns the event that replaces the AQM of `link` at `at`.
    fn aqm_event(&self, at: Instant, link: u32, spec: &str) -> String {
        let link = &self.plan().links[link as usize].name;
        format!("{{ at = \"{}ns\", link = \"{link}\", aqm = \"{spec}\" }}", at.as_nanos())
    }

    /// Draws from the random numbers of `seed` from now on: coins of AQMs, losses, hosts and traffic. The conditions of
    /// a radio stay, so that two futures share them.
    pub fn reseed(&mut self, seed: u64) {
        self.carry_out(Change::Reseed(seed));
    }

    fn carry_out(&mut self, change: Change) {
        let now = self.now;
        apply(&mut self.engine, &self.scenario, now, &change);
        self.changes.push((now, change));
    }

    /// Adds an event of the scenario, a TOML table such as `{ at = "5s", capacity = "4Mbit" }`. Its time must not have
    /// passed. The run is repeated up to now.
    pub fn push(&mut self, event: &str, progress: &mut dyn Progress) -> Result<(), Error> {
        let scenario = self.scenario.with_event(event).map_err(said)?;
        let at = scenario.spec().events.last().map(|event| Instant::ZERO + event.at);
        if let Some(at) = at.filter(|at| *at < self.now) {
            let (at, now) = (at.as_secs_f64(), self.now.as_secs_f64());
            return Err(Error::Session(format!("at = \"{at}s\" has passed: the run is at {now} s")));
        }
        let plan = scenario.plan(self.plan().seed, self.aqm.as_ref()).map_err(said)?;
        let mut engine = start(Arc::new(plan), self.style)?;
        for (at, change) in &self.changes {
            engine.with_dependent_mut(|_, engine| engine.advance(at.as_nanos(), progress))?;
            apply(&mut engine, &scenario, *at, change);
        }
        engine.with_dependent_mut(|_, engine| engine.advance(self.now.as_nanos(), progress))?;
        (self.scenario, self.engine) = (scenario, engine);
        Ok(())
    }

    /// Runs to the end and returns the result.
    pub fn finish(mut self, progress: &mut dyn Progress) -> Result<RunResult, Error> {
        self.engine.with_dependent_mut(|plan, engine| {
            engine.advance(u64::MAX, progress)?;
            Ok(report::result(plan, engine.outcome()?))
        })
    }

    /// Returns the totals of a link.
    fn look(&mut self, link: u32) -> Result<aqumen_aqm::Totals, Error> {
        Ok(self.queue(link)?.2)
    }

    /// Returns the waiting packets, the probability and the totals of a link.
    fn queue(&mut self, link: u32) -> Result<(aqumen_aqm::Backlog, f64, aqumen_aqm::Totals), Error> {
        self.measured(link)?;
        let now = self.now.as_nanos();
        self.engine.with_dependent_mut(|_, engine| {
            let port = engine.port_of(link).ok_or(Error::Over)?;
            let (waiting, p) = port.look(now);
            Ok((waiting, p, *port.measured().ok_or(Error::Over)?.1))
        })
    }

    /// Checks that `link` is recorded.
    fn measured(&self, link: u32) -> Result<(), Error> {
        match self.plan().links.get(link as usize) {
            Some(link) if link.record => Ok(()),
            Some(link) => {
                let message = "is not recorded: name it in `record.links`";
                Err(Error::Session(format!("{} {message}", link.name)))
            }
            None => Err(Error::Session(format!("no link {link}"))),
        }
    }
}

/// Copies a session, which continues from the same state with the same bits.
impl Clone for Session {
    fn clone(&self) -> Self {
        let plan = Arc::clone(self.engine.borrow_owner());
        Session {
            scenario: self.scenario.clone(),
            aqm: self.aqm.clone(),
            style: self.style,
            engine: PlannedEngine::new(plan, |plan| self.engine.borrow_dependent().copy(plan)),
            now: self.now,
            changes: self.changes.clone(),
            links: self.links.clone(),
            flows: self.flows.clone(),
        }
    }
}

fn start(plan: Arc<Plan>, style: Style) -> Result<PlannedEngine, Error> {
    PlannedEngine::try_new(plan, |plan| Engine::new(plan, style, crate::Partitioning::Paying, 1, None))
}

fn said(error: aqumen_scenario::Error) -> Error {
    Error::Session(error.to_string())
}

/// Builds the discipline of a SPEC for `link`.
fn build(scenario: &Scenario, plan: &Plan, link: u32, spec: &str) -> Result<AnyQdisc, Error> {
    let link = &plan.links[link as usize];
    let aqm = scenario.aqm(spec).map_err(said)?.on(link.aqm.network);
    match aqm.build_qdisc(link.limit) {
        Some(Ok(new)) => Ok(new),
        Some(Err(error)) => Err(Error::Session(format!("{spec}: {error}"))),
        None => Err(Error::Session(format!("no AQM \"{spec}\""))),
    }
}

fn apply(engine: &mut PlannedEngine, scenario: &Scenario, now: Instant, change: &Change) {
    engine.with_dependent_mut(|plan, engine| {
        let (link, new) = match change {
            Change::Reseed(seed) => return engine.reseed(*seed),
            Change::Probability { link, p } => {
                let aqm = AnyAqm::Fixed(Fixed::new(Probability::clamp(*p), true));
                (*link, AnyQdisc::fifo(aqm, plan.links[*link as usize].limit))
            }
            // It was built before.
            Change::Aqm { link, spec } => match build(scenario, plan, *link, spec) {
                Ok(new) => (*link, new),
                Err(_) => return,
            },
        };
        engine.replace_qdisc(now.as_nanos(), link, new);
    });
}
