//! How long a run will take, known before anything is built: packets, updates of AQMs, samples, steps of equations.
//! What is far too much is refused in one line that names the key; what is merely long is said.
//!
//! Counts are of the order of magnitude: tests hold them within a small factor of what engines count. Seconds are those
//! of one core of the 2020s, so that "about 3 minutes" means that it is worth waiting, and "about 60 hours" that
//! something was mistyped.

use aqumen_aqm::registry::AnyQdisc;
use aqumen_aqm::{Kind as ParamKind, Limit, Network};
use aqumen_units::{Rate, Span};

use crate::Error;
use crate::choice::AqmChoice;
use crate::expand::written_link;
use crate::field::TIME_MAX;
use crate::network::{Core, limit};
use crate::plan::Link;
use crate::scenario::Scenario;
use crate::schema::{Group, Side, Spec};
use crate::sends::{Sends, told};
use crate::spec::AqmSpec;
use crate::spread::Spread;
use crate::traffic::Traffic;
use crate::tree::locate;
use crate::units::{show_span, show_value};
use crate::value::OwnedValue;

/// What runs a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runner {
    /// The packet engine.
    Packet,
    /// The fluid engine.
    Fluid,
    /// Prediction: with loops, or only where queues come to rest.
    Theory {
        /// Margins and oscillations too.
        loops: bool,
    },
    /// ns-2, another's packet simulator.
    Ns2,
    /// ns-3, another's packet simulator.
    Ns3,
}

impl Runner {
    /// How many times as long as the packet engine it takes for the same packets and updates.
    fn slowness(self) -> f64 {
        match self {
            Runner::Ns2 => NS2_SLOWNESS,
            Runner::Ns3 => NS3_SLOWNESS,
            Runner::Packet | Runner::Fluid | Runner::Theory { .. } => 1.0,
        }
    }
}

/// What a run consists of.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Its parts, in no order.
    pub parts: Vec<Part>,
}

/// So many of one thing.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// What they are: `packets`, `samples`.
    pub what: String,
    /// How many.
    pub count: f64,
    /// What they take in all, seconds of one core.
    pub seconds: f64,
    /// Whose fault they are.
    cause: Cause,
}

/// What makes a part as large as it is.
#[derive(Clone, Debug, PartialEq)]
enum Cause {
    /// A key of the scenario, and the longest duration that is accepted goes with it.
    Key(String),
    /// The interval between samples.
    Interval(Span),
    /// An AQM on the link with this number.
    Aqm(usize),
}

/// What is said of a cost.
#[derive(Clone, Debug, PartialEq)]
enum Verdict {
    /// Nothing.
    Short,
    /// How long it will take.
    Long(String),
    /// What makes it so, a key and its value, and what would be accepted.
    TooLong(Blame),
}

/// A key, or an AQM's SPEC, and a message.
#[derive(Clone, Debug, PartialEq)]
enum Blame {
    Key(String, String),
    Aqm(String),
}

/// A run that takes longer is refused, seconds.
const TOO_LONG_S: f64 = 3600.0;
/// What comes each so often is refused where it takes longer than this, seconds, and [`OUT_OF_PROPORTION`] times as
/// long as the rest.
const PERIODIC_S: f64 = 60.0;
const OUT_OF_PROPORTION: f64 = 10.0;
/// A run that takes longer is said to, seconds.
const LONG_S: f64 = 10.0;

/// ns-2 and ns-3 beside the packet engine. Measured on the ARM-PFC paper's experiment 1: 1800 to 2500 and 27 000 to 38
/// 000 ns a packet, where three or four events take 180; with 1000 flows three times that.
const NS2_SLOWNESS: f64 = 15.0;
const NS3_SLOWNESS: f64 = 200.0;

/// An event of the packet engine, seconds: what packets of 100 flows cost, three or four events each.
const EVENT_S: f64 = 45e-9;
/// Flows from which on an event costs twice as much: their state no longer fits the cache.
const FLOWS_IN_CACHE: f64 = 50_000.0;
/// What an application adds to a packet, events.
const APPLICATION_EVENTS: f64 = 4.0;
/// An update of an AQM, and that of each queue where it looks after many, seconds.
const UPDATE_S: f64 = 60e-9;
const UPDATE_QUEUE_S: f64 = 20e-9;
/// Queues from which on theirs takes four times as long: they no longer fit the cache.
const QUEUES_IN_CACHE: f64 = 8192.0;
/// A change of state of a source, seconds.
const CHANGE_S: f64 = 20e-9;
/// A sample of a link, and that of each flow that is watched there, seconds.
const SAMPLE_S: f64 = 100e-9;
const SAMPLE_FLOW_S: f64 = 10e-9;
/// Flows watched at most.
const WATCHED: f64 = 256.0;
/// A step of the fluid's equations, and that of each class of flows, seconds.
const STEP_S: f64 = 250e-9;
const STEP_CLASS_S: f64 = 120e-9;
/// Steps of the fluid: a twentieth of the shortest round trip, at most this, seconds; then half of that, and half
/// again.
const STEP_MAX_S: f64 = 4e-3;
const ATTEMPTS: f64 = 7.0;
/// Flows of a group whose round trips are within this ratio are one class of the fluid's, and it makes no more than so
/// many of a group.
const FLUID_RTT_RATIO: f64 = 1.25;
const FLUID_CLASSES_MAX: f64 = 8.0;
/// A prediction of one link in one window, seconds.
const REST_S: f64 = 50e-6;
const LOOP_S: f64 = 0.2;

/// Updates of a queue discipline: how far apart they are, and how many queues each looks after at the most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Updates {
    /// Seconds from one to the next.
    pub period_s: f64,
    /// Queues.
    pub queues: f64,
}

impl Updates {
    /// Those of `qdisc`, where `flows` come: no more of its queues have something to do. `None` without any.
    pub fn of(qdisc: AnyQdisc, flows: u64) -> Option<Updates> {
        let queues = (qdisc.updated_queues() as u64).min(flows.max(1)) as f64;
        let period = qdisc.update_period()?;
        Some(Updates { period_s: period.as_secs_f64().max(1e-9), queues })
    }

    /// What one takes, seconds.
    pub fn each_s(&self) -> f64 {
        let far = if self.queues > QUEUES_IN_CACHE { 4.0 } else { 1.0 };
        UPDATE_S + if self.queues > 1.0 { self.queues * UPDATE_QUEUE_S * far } else { 0.0 }
    }

    fn of_choice(choice: &AqmChoice, limit: Limit, flows: u64) -> Option<Updates> {
        Updates::of(choice.build_qdisc(limit)?.ok()?, flows)
    }

    /// The least period with which `duration_s` takes `seconds` at most.
    fn least_period_s(&self, duration_s: f64, seconds: f64) -> f64 {
        duration_s * self.each_s() / seconds
    }
}

/// What is to be said of work of so many seconds, where that is long; `much` is what it consists of.
pub fn said(seconds: f64, much: &str) -> Option<String> {
    (seconds > LONG_S).then(|| format!("this takes about {}: {much}", duration(seconds)))
}

/// What the updates of `aqm` take over `duration_s` in which `flows` come, seconds.
pub fn updates_s(aqm: &AqmSpec, network: Network, limit: Limit, flows: u64, duration_s: f64) -> f64 {
    let updates = Updates::of_choice(&aqm.on(network), limit, flows);
    updates.map_or(0.0, |updates| duration_s / updates.period_s * updates.each_s())
}

/// Refuses updates of `aqm` that take far too long over `duration_s`, in which `flows` come, beside the rest, which
/// takes `rest_s`: what makes them so close, and what would be accepted.
pub fn check_updates(
    aqm: &AqmSpec,
    network: Network,
    limit: Limit,
    flows: u64,
    duration_s: f64,
    rest_s: f64,
) -> Result<(), String> {
    let seconds = |values: &[(String, OwnedValue)]| {
        let choice = AqmSpec { values: values.to_vec(), ..aqm.clone() }.on(network);
        Updates::of_choice(&choice, limit, flows)
            .map(|updates| (updates, duration_s / updates.period_s * updates.each_s()))
    };
    let bound = PERIODIC_S.max(OUT_OF_PROPORTION * rest_s);
    let Some((updates, now_s)) = seconds(&aqm.values).filter(|(_, now_s)| *now_s > bound) else { return Ok(()) };
    // Of each number given, the nearest power of ten times it that is accepted: the nearest of all is what is offered.
    let mut offered: Option<(i32, String)> = None;
    let param = |name: &str| {
        aqm.catalogue.algorithms().find(|row| row.name == aqm.algorithm)?.params.iter().find(|param| param.name == name)
    };
    for (i, (name, value)) in aqm.values.iter().enumerate() {
        let OwnedValue::Number(x) = value else { continue };
        for power in (1..=9).flat_map(|power| [power, -power]) {
            let mut others = aqm.values.clone();
            others[i].1 = OwnedValue::Number(x * 10f64.powi(power));
            let accepted = seconds(&others).is_some_and(|(_, then_s)| then_s <= bound);
            if accepted && offered.as_ref().is_none_or(|(best, _)| power.abs() < best.abs()) {
                let shown = |x: f64| {
                    param(name).map_or(x.to_string(), |param| match param.kind {
                        ParamKind::Number { unit, .. } => show_value(unit, x),
                        _ => x.to_string(),
                    })
                };
                offered = Some((power, format!("{name} = {} is accepted", shown(x * 10f64.powi(power)))));
            }
        }
    }
    let least = updates.least_period_s(duration_s, bound);
    let queues = if updates.queues > 1.0 { format!(" of up to {} queues", updates.queues) } else { String::new() };
    let much = format!(
        "an update{queues} each {}, {} of them, takes about {}",
        short_time(updates.period_s),
        short_count(duration_s / updates.period_s),
        duration(now_s)
    );
    Err(match offered {
        Some((_, accepted)) => format!("{much}; {accepted}"),
        None => format!("{much}; updates {} apart are accepted: the nominal network makes these", short_time(least)),
    })
}

impl Cost {
    /// Seconds of one core.
    pub fn seconds(&self) -> f64 {
        self.parts.iter().map(|part| part.seconds).sum()
    }

    /// How many of `what` there are.
    pub fn count(&self, what: &str) -> f64 {
        self.parts.iter().filter(|part| part.what == what).map(|part| part.count).sum()
    }

    fn add(&mut self, what: &str, count: f64, each_s: f64, cause: Cause) {
        if count > 0.0 {
            self.parts.push(Part { what: what.into(), count, seconds: count * each_s, cause });
        }
    }
}

impl Scenario {
    /// What `runner` will have to do, with `aqm` on the links under test; `None`: the one that the scenario names.
    pub fn cost(&self, runner: Runner, aqm: Option<&AqmSpec>) -> Result<Cost, Error> {
        let own = self.own(aqm)?;
        Ok(cost(runner, self.spec(), self.core(), &own, self.fixed()))
    }

    /// Refuses what takes far too long on `runner`, with `aqm` on the links under test. `Some`: what is to be said of
    /// `runs` such runs, which take long.
    pub fn check_cost(&self, runner: Runner, aqm: Option<&AqmSpec>, runs: u64) -> Result<Option<String>, Error> {
        let own = self.own(aqm)?;
        let cost = cost(runner, self.spec(), self.core(), &own, self.fixed());
        match judge(&cost, runs as f64, self.spec(), self.core(), &own, self.fixed()) {
            Verdict::Short => Ok(None),
            Verdict::Long(message) => Ok(Some(message)),
            Verdict::TooLong(Blame::Key(key, message)) => Err(locate(self.tree(), self.file(), (key, message))),
            Verdict::TooLong(Blame::Aqm(message)) if aqm.is_some() => Err(Error::of_aqm(&own.label, message)),
            Verdict::TooLong(Blame::Aqm(message)) => Err(locate(self.tree(), self.file(), ("aqm".into(), message))),
        }
    }
}

/// What `runner` will have to do for `spec` with `chosen` on the links under test, which have the SPECs in `fixed`
/// elsewhere. Nothing is known of AQMs that cannot be built.
fn cost(runner: Runner, spec: &Spec, core: &Core, chosen: &AqmSpec, fixed: &[Option<AqmSpec>]) -> Cost {
    let mut cost = Cost { parts: Vec::new() };
    let duration_s = spec.duration.as_secs_f64();
    let Some(links) = links(spec, core, chosen, fixed) else { return cost };
    let samples = duration_s / spec.sample_interval().as_secs_f64().max(1e-9);
    let recorded = core.links.iter().filter(|link| link.record).count() as f64;
    if let Runner::Theory { loops } = runner {
        let windows = (spec.windows.0.len() + spec.events.len() + 2) as f64;
        let key = if spec.events.len() > spec.windows.0.len() { "events" } else { "windows" };
        cost.add("predictions", windows * recorded, if loops { LOOP_S } else { REST_S }, Cause::Key(key.into()));
        return cost;
    }
    let mut attempts = 1.0;
    let flows: f64 = spec.flows.iter().map(|group| group.flows() as f64).sum();
    if runner == Runner::Fluid {
        attempts = ATTEMPTS;
        let steps = attempts * duration_s / fluid_step_s(spec, core);
        let each_s = STEP_S * links.len() as f64 / 2.0 + STEP_CLASS_S * fluid_classes(spec, core);
        cost.add("steps", steps, each_s, Cause::Key("duration".into()));
    } else {
        packets(&mut cost, spec, core, &links);
        cost.parts.iter_mut().for_each(|part| part.seconds *= 1.0 + (flows / FLOWS_IN_CACHE).min(7.0));
    }
    let watched = if runner != Runner::Fluid { flows.min(WATCHED) } else { 0.0 };
    cost.add(
        "samples",
        samples,
        recorded * (SAMPLE_S + watched * SAMPLE_FLOW_S),
        Cause::Interval(spec.sample_interval()),
    );
    // Links often have one AQM.
    let mut known: Vec<(&AqmChoice, Limit, Option<Updates>)> = Vec::new();
    for (i, link) in links.iter().enumerate() {
        let changes = link.line.iter().flat_map(|line| &line.aqms);
        let mut in_force = vec![(0.0, &link.aqm)];
        in_force.extend(changes.map(|(at, aqm)| (at.as_nanos() as f64 * 1e-9, aqm)));
        for (k, &(from, aqm)) in in_force.iter().enumerate() {
            let until = in_force.get(k + 1).map_or(duration_s, |(at, _)| *at);
            let updates = match known.iter().find(|(other, limit, _)| *other == aqm && *limit == link.limit) {
                Some((_, _, updates)) => *updates,
                None => {
                    let updates = Updates::of_choice(aqm, link.limit, spec.all_flows());
                    known.push((aqm, link.limit, updates));
                    updates
                }
            };
            if let Some(updates) = updates {
                let count = attempts * (until - from).max(0.0) / updates.period_s;
                // A step of the equations ends at each.
                let step_s = if runner == Runner::Fluid { STEP_S } else { 0.0 };
                cost.add("updates", count, updates.each_s() + step_s, Cause::Aqm(i));
            }
        }
    }
    cost.parts.iter_mut().for_each(|part| part.seconds *= runner.slowness());
    cost
}

/// The written links of the plan, with `chosen` on those under test and the SPECs in `fixed` elsewhere; `None` with an
/// AQM that cannot be built.
pub(crate) fn links(spec: &Spec, core: &Core, chosen: &AqmSpec, fixed: &[Option<AqmSpec>]) -> Option<Vec<Link>> {
    let of = |(i, link)| written_link(spec, core, i, link, fixed[i].as_ref().unwrap_or(chosen)).ok();
    core.links.iter().enumerate().map(of).collect()
}

/// Verdict on `cost` of `runs` runs, which is that of `spec` with `chosen`.
fn judge(cost: &Cost, runs: f64, spec: &Spec, core: &Core, chosen: &AqmSpec, fixed: &[Option<AqmSpec>]) -> Verdict {
    let total = cost.seconds();
    let Some(worst) = cost.parts.iter().max_by(|a, b| a.seconds.total_cmp(&b.seconds)) else { return Verdict::Short };
    let rest = total - worst.seconds;
    let periodic = !matches!(worst.cause, Cause::Key(_));
    let slip = periodic && worst.seconds > PERIODIC_S && worst.seconds > OUT_OF_PROPORTION * rest;
    if total <= TOO_LONG_S && !slip {
        let all = total * runs;
        if all <= LONG_S {
            return Verdict::Short;
        }
        let of = if runs > 1.0 { format!(" for {runs} runs, on one core") } else { String::new() };
        let parts = format!("{} {}", short_count(worst.count * runs), worst.what);
        return Verdict::Long(format!("this takes about {}{of}: {parts}", duration(all)));
    }
    let bound = if slip { PERIODIC_S.max(OUT_OF_PROPORTION * rest) } else { (TOO_LONG_S - rest).max(0.1 * TOO_LONG_S) };
    let much = || format!("makes {} {}, about {}", short_count(worst.count), worst.what, duration(worst.seconds));
    Verdict::TooLong(match &worst.cause {
        Cause::Key(key) if key == "duration" => {
            let most = spec.duration.as_secs_f64() * TOO_LONG_S / total;
            Blame::Key(key.clone(), format!("{}; at most {} is accepted", much(), short_time(most)))
        }
        Cause::Key(key) => Blame::Key(key.clone(), format!("{}; at most {} is accepted", much(), duration(TOO_LONG_S))),
        Cause::Interval(interval) => {
            let least = interval.as_secs_f64() * worst.seconds / bound;
            let message = format!("{}; {} or more is accepted", much(), short_time(least));
            match spec.record.interval {
                Some(_) => Blame::Key("record.interval".into(), message),
                None => Blame::Key("duration".into(), message.replace(" or more", " between two samples")),
            }
        }
        Cause::Aqm(i) => {
            let link = &core.links[*i];
            let aqm = fixed[*i].as_ref().unwrap_or(chosen);
            let (network, limit, duration_s) =
                (core.nominal(spec, *i), limit(link.buffer), spec.duration.as_secs_f64());
            let message = match check_updates(aqm, network, limit, spec.all_flows(), duration_s, rest) {
                Err(message) => message,
                // All links together, or an AQM that takes over later.
                Ok(()) => much(),
            };
            match link.aqm {
                Some(_) => Blame::Key(format!("{}.aqm", link.path), message),
                None => Blame::Aqm(message),
            }
        }
    })
}

/// Adds the packets of all groups: what the links carry, what applications offer, what windows admit.
fn packets(cost: &mut Cost, spec: &Spec, core: &Core, links: &[Link]) {
    let duration_s = spec.duration.as_secs_f64();
    let passed = passed(core, links);
    let mut groups = Vec::new();
    // What would load each link if it were the only one.
    let mut load = vec![0.0; links.len()];
    for (i, (group, way)) in spec.flows.iter().zip(&core.ways).enumerate() {
        let from = group.start.low.as_secs_f64();
        let seconds = (group.stop.map_or(duration_s, |stop| stop.as_secs_f64()) - from).clamp(0.0, duration_s);
        let config = &group.transport.config;
        let bits = 8.0 * f64::from(config.packet_bytes());
        let flows = group.flows() as f64;
        let rtt = base_rtt_s(spec, core, i);
        let offered = offered(group, seconds, rtt);
        let window = config.window_pkts().map_or(f64::INFINITY, |window| f64::from(window) * flows * seconds / rtt);
        let access = way.access.as_ref().map_or(f64::INFINITY, |access| {
            let fewest = Side::BOTH.map(|side| core.hosts(spec, i, side)).into_iter().min().unwrap_or(1);
            access.rate.as_bps() as f64 * f64::from(fewest) * seconds / bits
        });
        let mut count = offered.packets.min(window.max(flows)).min(access);
        let adapts = config.adapts();
        if adapts {
            let narrowest = way.path.iter().map(|link| carried(&links[*link as usize], duration_s));
            count = count.min(narrowest.fold(f64::INFINITY, f64::min) / bits);
            way.path.iter().for_each(|link| load[*link as usize] += count * bits);
        }
        groups.push((count, bits, adapts, offered.changes));
    }
    for (i, ((count, bits, adapts, changes), (group, way))) in
        groups.into_iter().zip(spec.flows.iter().zip(&core.ways)).enumerate()
    {
        // Flows that adapt share the links.
        let share =
            |link: &u32| (carried(&links[*link as usize], duration_s) / load[*link as usize].max(bits)).min(1.0);
        let count = if adapts { count * way.path.iter().map(share).fold(1.0, f64::min) } else { count };
        let config = &group.transport.config;
        let answers = if config.ack_bytes() > 0 { 1.0 } else { 0.0 };
        let applications =
            if group.traffic == Traffic::Bulk && config.tcp().is_some() { 0.0 } else { APPLICATION_EVENTS };
        let turns = |path: &[u32]| path.iter().filter(|link| !passed[**link as usize]).count() as f64;
        let hops = turns(&way.path) + answers * (1.0 + turns(&way.return_path)) + applications;
        let key =
            Cause::Key(if offered_alone(&group.traffic) { format!("flows.{i}.traffic") } else { "duration".into() });
        cost.add("packets", count, hops * EVENT_S, key);
        cost.add("changes of state", changes, CHANGE_S, Cause::Key(format!("flows.{i}.traffic")));
    }
}

/// Of each link, whether packets pass it without an event: nobody watches its queue, and all come from one other link.
fn passed(core: &Core, links: &[Link]) -> Vec<bool> {
    let mut origins: Vec<Vec<Option<u32>>> = vec![Vec::new(); core.links.len()];
    for path in core.ways.iter().flat_map(|way| [&way.path, &way.return_path]) {
        let mut before = None;
        for &link in path {
            origins[link as usize].push(before.replace(link));
        }
    }
    let is_passed = |(link, origins): (&Link, &Vec<Option<u32>>)| {
        let is_led_to =
            origins.first().is_some_and(|first| first.is_some() && origins.iter().all(|other| other == first));
        link.is_unwatched() && is_led_to
    };
    links.iter().zip(&origins).map(is_passed).collect()
}

/// Whether the source decides how much is sent, whatever the network does.
fn offered_alone(traffic: &Traffic) -> bool {
    traffic.offered().is_some()
}

/// What the applications of a group ask for in so many seconds.
pub(crate) struct Offer {
    /// Packets; infinitely many of a transfer without end.
    pub(crate) packets: f64,
    /// Changes of state of its sources.
    changes: f64,
}

pub(crate) fn offered(group: &Group, seconds: f64, rtt_s: f64) -> Offer {
    let payload = f64::from(group.transport.config.payload_bytes().max(1));
    let count = f64::from(group.count);
    let of = |bytes: f64| (bytes / payload).ceil().max(1.0);
    let packets = match &group.traffic {
        Traffic::Bulk if told(group).is_none() => {
            group.transfer.map_or(f64::INFINITY, |bytes| group.flows() as f64 * of(bytes.0 as f64))
        }
        // Two more to open and close.
        Traffic::Transfers(kind) => asked(group, seconds, rtt_s).transfers * (of(kind.size.0.mean()) + 2.0),
        Traffic::Web(kind) => {
            let Asked { pages, .. } = asked(group, seconds, rtt_s);
            pages * (of(kind.main.0.mean()) + kind.objects.0.mean() * (of(kind.embedded.0.mean()) + 2.0) + 2.0)
        }
        // At the best picture.
        Traffic::AdaptiveVideo(kind) => {
            let best = kind.ladder.last().map_or(0, |best| kind.segment_bytes(*best));
            count + (asked(group, seconds, rtt_s).transfers - count) * of(best as f64)
        }
        _ => Sends::of(group).map_or(f64::INFINITY, |sends| count * seconds * sends.messages * sends.packets),
    };
    let periods = |on: f64, off: f64| 2e9 * seconds / (on + off).max(1.0);
    let changes = match &group.traffic {
        Traffic::OnOff(kind) => periods(kind.on.0.mean(), kind.off.0.mean()),
        Traffic::SelfSimilar(kind) => {
            f64::from(kind.sources) * periods(kind.on.as_nanos() as f64, kind.off.as_nanos() as f64)
        }
        Traffic::Mmpp(kind) => {
            kind.chains().map_or(0.0, |chains| chains.iter().map(|chain| chain.per_second().1).sum::<f64>() * seconds)
        }
        _ => 0.0,
    };
    Offer { packets, changes: count * changes }
}

/// Transfers and pages that the applications of a group ask for in so many seconds.
#[derive(Default)]
pub(crate) struct Asked {
    pub(crate) transfers: f64,
    pub(crate) pages: f64,
}

pub(crate) fn asked(group: &Group, seconds: f64, rtt_s: f64) -> Asked {
    let count = f64::from(group.count);
    // Datagrams leave at once.
    let rtt_s = if group.transport.config.tells_delivery() { rtt_s } else { 0.0 };
    let transfers = match &group.traffic {
        Traffic::Transfers(kind) => match (&kind.think, kind.per_second()) {
            (None, Some(rate)) => rate * seconds,
            (Some(think), _) => count * (1.0 + seconds / (think.0.mean() / 1e9 + 2.0 * rtt_s)),
            (None, None) => f64::INFINITY,
        },
        Traffic::Web(kind) => {
            let page_s = (kind.reading.0.mean() + kind.parsing.0.mean()) / 1e9 + 2.0 * rtt_s;
            let pages = count * (1.0 + seconds / page_s).min(kind.pages.map_or(f64::INFINITY, f64::from));
            return Asked { transfers: pages * (1.0 + kind.objects.0.mean()), pages };
        }
        // As much as is watched and fetched ahead.
        Traffic::AdaptiveVideo(kind) => {
            let segments = (seconds + kind.buffer.as_secs_f64()) / kind.segment.as_secs_f64();
            count * (1.0 + segments.min(kind.segments().map_or(f64::INFINITY, |segments| segments as f64)))
        }
        _ => 0.0,
    };
    Asked { transfers, pages: 0.0 }
}

/// Bits that a link carries at most in `duration_s`.
fn carried(link: &Link, duration_s: f64) -> f64 {
    let ends = link.rates.iter().skip(1).map(|(at, _)| at.as_nanos() as f64 * 1e-9).chain([duration_s]);
    let bits = |((at, rate), end): (&(_, Rate), f64)| {
        let from: aqumen_units::Instant = *at;
        rate.as_bps() as f64 * (end.min(duration_s) - from.as_nanos() as f64 * 1e-9).max(0.0)
    };
    link.rates.iter().zip(ends).map(bits).sum()
}

/// The shortest round trip of a group without queueing, seconds; the transmission of a packet at the least.
pub(crate) fn base_rtt_s(spec: &Spec, core: &Core, i: usize) -> f64 {
    let (way, delay) = (&core.ways[i], round_trip(spec, core, i, false));
    let bits = 8.0 * f64::from(spec.flows[i].transport.config.packet_bytes());
    let transmission: f64 = way.path.iter().map(|link| bits / (core.links[*link as usize].rate.as_bps() as f64)).sum();
    (delay.as_secs_f64() + transmission).max(1e-9)
}

/// The first step of the fluid, seconds; the last is a quarter of it.
pub(crate) fn fluid_step_s(spec: &Spec, core: &Core) -> f64 {
    let shortest = (0..spec.flows.len()).map(|i| base_rtt_s(spec, core, i)).fold(f64::INFINITY, f64::min);
    (shortest / 20.0).clamp(1e-9, STEP_MAX_S)
}

/// Classes of flows that the fluid tells apart.
pub(crate) fn fluid_classes(spec: &Spec, core: &Core) -> f64 {
    spec.flows.iter().enumerate().map(|(i, group)| classes(spec, core, i, group)).sum()
}

/// Classes of flows that the fluid tells apart in a group: those of one path, by round trip.
fn classes(spec: &Spec, core: &Core, i: usize, group: &Group) -> f64 {
    let pairs = Side::BOTH.map(|side| u64::from(core.hosts(spec, i, side)));
    let shortest = base_rtt_s(spec, core, i);
    let longest =
        shortest + round_trip(spec, core, i, true).as_secs_f64() - round_trip(spec, core, i, false).as_secs_f64();
    let apart = ((longest / shortest).ln() / FLUID_RTT_RATIO.ln()).ceil().clamp(1.0, FLUID_CLASSES_MAX);
    let pairs = if pairs[0] == pairs[1] { pairs[0] } else { pairs[0].saturating_mul(pairs[1]) };
    apart.min(group.flows().min(pairs).max(1) as f64)
}

/// The propagation delay there and back of the flow of group `i` that has the shortest, or the longest.
pub(crate) fn round_trip(spec: &Spec, core: &Core, i: usize, longest: bool) -> Span {
    let end = |spread: &Spread| if longest { spread.high } else { spread.low };
    let way = &core.ways[i];
    let of_hosts = |owner: usize| {
        let placed = &spec.flows[owner];
        let access = core.ways[owner].access.as_ref();
        let access = access.map_or(Span::ZERO, |access| end(&access.delay) * 4 + end(&placed.extra_rtt));
        placed.rtt.as_ref().map_or_else(|| core.written_delay(way) + access, end)
    };
    let [source, destination] = core.owners(spec, i).map(of_hosts);
    (source + destination) / 2
}

/// A time for people: two digits, in the unit that fits.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 100.0 => format!("{s:.0} s"),
        s if s < 100.0 * 60.0 => format!("{:.0} minutes", s / 60.0),
        s if s < 100.0 * 3600.0 => format!("{:.0} hours", s / 3600.0),
        s if s < 1000.0 * 86_400.0 => format!("{:.0} days", s / 86_400.0),
        _ => "years".into(),
    }
}

/// A time as a scenario writes it, two digits.
fn short_time(seconds: f64) -> String {
    let nanos = (seconds * 1e9).clamp(1.0, TIME_MAX.as_nanos() as f64);
    let scale = 10f64.powf(nanos.log10().floor() - 1.0).max(1.0);
    // What is offered must do.
    show_span(Span::from_nanos(((nanos / scale - 1e-6).ceil() * scale) as u64))
}

/// A number for people: `1250`, `1.2e8`.
fn short_count(count: f64) -> String {
    if count < 1e5 { format!("{count:.0}") } else { format!("{count:.1e}") }
}
