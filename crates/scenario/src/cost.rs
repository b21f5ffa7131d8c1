//! Estimate of the run time before a run: packets, samples, updates of AQMs, steps of equations and predictions, each
//! with one factor. A run that takes far too long is refused in one line that names the key; a long run gets a notice.
//!
//! Seconds are those of one core of the 2020s. For the shipped experiments the estimated number of events is within a
//! factor of two of the packet engine's count.

use aqumen_aqm::registry::AnyQdisc;
use aqumen_aqm::{Kind as ParamKind, Limit, Network};
use aqumen_units::{Instant, Rate, Span};

use crate::Error;
use crate::choice::AqmChoice;
use crate::demand::demand;
use crate::expand::written_link;
use crate::field::TIME_MAX;
use crate::network::{Core, limit};
use crate::plan::Link;
use crate::scenario::Scenario;
use crate::schema::{Side, Spec};
use crate::spec::AqmSpec;
use crate::spread::Spread;
use crate::tree::locate;
use crate::units::{show_span, show_value};
use crate::value::OwnedValue;

/// A program that evaluates a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runner {
    /// The packet engine.
    Packet,
    /// The fluid engine.
    Fluid,
    /// Prediction of operating points, optionally with their loops.
    Theory {
        /// Whether margins and oscillations are computed.
        loops: bool,
    },
    /// ns-2, an external packet simulator.
    Ns2,
    /// ns-3, an external packet simulator.
    Ns3,
}

/// Work of a run, by kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Parts, in no order.
    pub parts: Vec<Part>,
}

/// Work of one kind that one key causes.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Kind: `packets`, `changes of state`, `samples`, `updates`, `steps` or `predictions`.
    pub what: &'static str,
    /// Number of items.
    pub count: f64,
    /// Time of all items, seconds of one core.
    pub seconds: f64,
    cause: Cause,
}

/// Setting that determines the size of a part.
#[derive(Clone, Debug, PartialEq)]
enum Cause {
    /// A key of the scenario.
    Key(String),
    /// The interval between samples.
    Interval,
    /// The AQM of the link with this number.
    Aqm(usize),
}

/// Longest accepted run, seconds.
const TOO_LONG_S: f64 = 3600.0;
/// Longest accepted time for samples or updates, seconds, unless the rest takes a tenth of that or more.
const PERIODIC_S: f64 = 60.0;
const OUT_OF_PROPORTION: f64 = 10.0;
/// Longest run without a notice, seconds.
const LONG_S: f64 = 10.0;

/// An event of the packet engine, of ns-2 and of ns-3, seconds. Measured on experiment 1 of the ARM-PFC paper; with
/// 1000 flows ns-2 and ns-3 take three times as long.
const EVENT_S: f64 = 45e-9;
const NS2_EVENT_S: f64 = 15.0 * EVENT_S;
const NS3_EVENT_S: f64 = 200.0 * EVENT_S;
/// Number of flows that doubles the time of an event, since their state exceeds the cache; the factor is at most eight.
const FLOWS_IN_CACHE: f64 = 50_000.0;
/// Time of an update of one queue, seconds; the discipline counts as two more.
const UPDATE_S: f64 = 20e-9;
/// Time of a sample of one flow, seconds; a link counts as ten more.
const SAMPLE_S: f64 = 10e-9;
/// Most flows that are sampled.
const SAMPLED_FLOWS_MAX: f64 = 256.0;
/// Time of one step of the fluid equations for one link or one class of flows, seconds.
const STEP_S: f64 = 120e-9;
/// Longest first step of the fluid, seconds. The first step is a twentieth of the shortest round trip; refinement
/// halves it.
const STEP_MAX_S: f64 = 4e-3;
const ATTEMPTS: f64 = 7.0;
/// Ratio of round trips within one class of flows, and most classes of a group.
const FLUID_RTT_RATIO: f64 = 1.25;
const FLUID_CLASSES_MAX: f64 = 8.0;
/// Time of one prediction for one link in one window, without loops and with them, seconds.
const POINT_S: f64 = 50e-6;
const LOOP_S: f64 = 0.2;

/// Periodic updates of a queue discipline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Updates {
    /// Period, seconds.
    pub period_s: f64,
    /// Most queues per update.
    pub queues: f64,
}

impl Updates {
    /// Returns the updates of `qdisc` with `flows` flows, which occupy at most as many queues. `None` without updates.
    pub fn new(qdisc: AnyQdisc, flows: u64) -> Option<Updates> {
        let queues = (qdisc.updated_queues() as u64).min(flows.max(1)) as f64;
        let period = qdisc.update_period()?;
        Some(Updates { period_s: period.as_secs_f64().max(1e-9), queues })
    }

    /// Time of one update, seconds.
    pub fn each_s(&self) -> f64 {
        UPDATE_S * (2.0 + self.queues)
    }

    fn from_choice(choice: &AqmChoice, limit: Limit, flows: u64) -> Option<Updates> {
        Updates::new(choice.build_qdisc(limit)?.ok()?, flows)
    }
}

/// Notice of a long run time, if `seconds` is long; `much` describes the work.
pub fn long_run_notice(seconds: f64, much: &str) -> Option<String> {
    (seconds > LONG_S).then(|| format!("this takes about {}: {much}", duration(seconds)))
}

/// Time of the updates of `aqm` over `duration_s` with `flows` flows, seconds.
pub fn updates_s(aqm: &AqmSpec, network: Network, limit: Limit, flows: u64, duration_s: f64) -> f64 {
    let updates = Updates::from_choice(&aqm.on(network), limit, flows);
    updates.map_or(0.0, |updates| duration_s / updates.period_s * updates.each_s())
}

/// Refuses updates of `aqm` that take far too long over `duration_s` with `flows` flows, compared with the rest of the
/// run, which takes `rest_s`. The message names an accepted value.
pub fn check_updates(
    aqm: &AqmSpec,
    network: Network,
    limit: Limit,
    flows: u64,
    duration_s: f64,
    rest_s: f64,
) -> Result<(), String> {
    let bound = PERIODIC_S.max(OUT_OF_PROPORTION * rest_s);
    let seconds = |values: &[(String, OwnedValue)]| {
        let choice = AqmSpec { values: values.to_vec(), ..aqm.clone() }.on(network);
        let updates = Updates::from_choice(&choice, limit, flows)?;
        Some((updates, duration_s / updates.period_s * updates.each_s()))
    };
    let Some((updates, now_s)) = seconds(&aqm.values).filter(|(_, now_s)| *now_s > bound) else { return Ok(()) };
    let queues = if updates.queues > 1.0 { format!(" of up to {} queues", updates.queues) } else { String::new() };
    let much = format!(
        "an update{queues} each {}, {} of them, takes about {}",
        short_time(updates.period_s),
        short_count(duration_s / updates.period_s),
        duration(now_s)
    );
    // Scales one of the given numbers by the nearest power of ten that is accepted.
    for (power, i) in (1..=9).flat_map(|power| (0..aqm.values.len()).map(move |i| (power, i))) {
        let (name, OwnedValue::Number(x)) = &aqm.values[i] else { continue };
        for x in [x * 10f64.powi(power), x * 10f64.powi(-power)] {
            let mut others = aqm.values.clone();
            others[i].1 = OwnedValue::Number(x);
            if seconds(&others).is_some_and(|(_, then_s)| then_s <= bound) {
                return Err(format!("{much}; {name} = {} is accepted", show_param(aqm, name, x)));
            }
        }
    }
    let least = short_time(duration_s * updates.each_s() / bound);
    Err(format!("{much}; a period of {least} or more is accepted; it follows from the nominal network"))
}

/// The value `x` of a parameter of `aqm`, in its unit.
fn show_param(aqm: &AqmSpec, name: &str, x: f64) -> String {
    let row = aqm.catalogue.algorithms().find(|row| row.name == aqm.algorithm);
    let param = row.and_then(|row| row.params.iter().find(|param| param.name == name));
    match param.map(|param| param.kind) {
        Some(ParamKind::Number { unit, .. }) => show_value(unit, x),
        _ => x.to_string(),
    }
}

impl Cost {
    /// Total time, seconds of one core.
    pub fn seconds(&self) -> f64 {
        self.parts.iter().map(|part| part.seconds).sum()
    }

    /// Total number of items of kind `what`.
    pub fn count(&self, what: &str) -> f64 {
        self.parts.iter().filter(|part| part.what == what).map(|part| part.count).sum()
    }

    fn add(&mut self, what: &'static str, count: f64, each_s: f64, cause: Cause) {
        if count > 0.0 {
            self.parts.push(Part { what, count, seconds: count * each_s, cause });
        }
    }
}

impl Scenario {
    /// Work of `runner` with `aqm` on the links under test; `None`: the AQM that the scenario names.
    pub fn cost(&self, runner: Runner, aqm: Option<&AqmSpec>) -> Result<Cost, Error> {
        Ok(cost(runner, self.spec(), self.core(), &self.own(aqm)?, self.fixed()))
    }

    /// Refuses a run that takes far too long on `runner`, with `aqm` on the links under test. Returns a notice of the
    /// time of `runs` such runs, if it is long.
    pub fn check_cost(&self, runner: Runner, aqm: Option<&AqmSpec>, runs: u64) -> Result<Option<String>, Error> {
        let (spec, core, own) = (self.spec(), self.core(), self.own(aqm)?);
        let cost = cost(runner, spec, core, &own, self.fixed());
        let Some(worst) = cost.parts.iter().max_by(|a, b| a.seconds.total_cmp(&b.seconds)) else { return Ok(None) };
        let total_s = cost.seconds();
        let rest_s = total_s - worst.seconds;
        let proportion_s = PERIODIC_S.max(OUT_OF_PROPORTION * rest_s);
        let in_proportion = matches!(worst.cause, Cause::Key(_)) || worst.seconds <= proportion_s;
        if total_s <= TOO_LONG_S && in_proportion {
            let of = if runs > 1 { format!(" for {runs} runs, on one core") } else { String::new() };
            let (all_s, count) = (total_s * runs as f64, short_count(worst.count * runs as f64));
            let line = || format!("this takes about {}{of}: {count} {}", duration(all_s), worst.what);
            return Ok((all_s > LONG_S).then(line));
        }
        let bound_s = if in_proportion { (TOO_LONG_S - rest_s).max(0.1 * TOO_LONG_S) } else { proportion_s };
        let much = format!("makes {} {}, about {}", short_count(worst.count), worst.what, duration(worst.seconds));
        let (key, message) = match &worst.cause {
            Cause::Key(key) if key == "duration" => {
                let most = short_time(spec.duration.as_secs_f64() * TOO_LONG_S / total_s);
                (key.clone(), format!("{much}; at most {most} is accepted"))
            }
            Cause::Key(key) => (key.clone(), format!("{much}; at most {} is accepted", duration(TOO_LONG_S))),
            Cause::Interval => {
                let least = short_time(spec.sample_interval().as_secs_f64() * worst.seconds / bound_s);
                match spec.record.interval {
                    Some(_) => ("record.interval".into(), format!("{much}; {least} or more is accepted")),
                    None => ("duration".into(), format!("{much}; {least} between two samples is accepted")),
                }
            }
            Cause::Aqm(i) => {
                let (link, duration_s) = (&core.links[*i], spec.duration.as_secs_f64());
                let (network, limit) = (core.nominal(spec, *i), limit(link.buffer));
                let chosen = self.fixed()[*i].as_ref().unwrap_or(&own);
                // The message of a single AQM names the accepted value.
                let refused = check_updates(chosen, network, limit, spec.all_flows(), duration_s, rest_s);
                let message = refused.err().unwrap_or(much);
                match link.aqm {
                    Some(_) => (format!("{}.aqm", link.path), message),
                    None if aqm.is_some() => return Err(Error::for_aqm(&own.label, message)),
                    None => ("aqm".into(), message),
                }
            }
        };
        Err(locate(self.tree(), self.file(), (key, message)))
    }
}

/// Work of `runner` for `spec` with `chosen` on the links under test and the SPECs in `fixed` on the others. AQMs that
/// cannot be built count as nothing.
fn cost(runner: Runner, spec: &Spec, core: &Core, chosen: &AqmSpec, fixed: &[Option<AqmSpec>]) -> Cost {
    let mut cost = Cost { parts: Vec::new() };
    let written = |(i, link)| written_link(spec, core, i, link, fixed[i].as_ref().unwrap_or(chosen)).ok();
    let Some(links) = core.links.iter().enumerate().map(written).collect::<Option<Vec<Link>>>() else { return cost };
    let (duration_s, flows) = (spec.duration.as_secs_f64(), spec.all_flows() as f64);
    let recorded = core.links.iter().filter(|link| link.record).count() as f64;
    let (mut attempts, mut watched, mut step_s, mut slowness) = (1.0, flows.min(SAMPLED_FLOWS_MAX), 0.0, 1.0);
    match runner {
        Runner::Theory { loops } => {
            let windows = (spec.windows.0.len() + spec.events.len() + 2) as f64;
            let key = if spec.events.len() > spec.windows.0.len() { "events" } else { "windows" };
            let each_s = if loops { LOOP_S } else { POINT_S };
            cost.add("predictions", windows * recorded, each_s, Cause::Key(key.into()));
            return cost;
        }
        Runner::Fluid => {
            // An update ends a step.
            (attempts, watched, step_s) = (ATTEMPTS, 0.0, 2.0 * STEP_S);
            let steps = attempts * duration_s / fluid_step_s(spec, core);
            let classes: f64 = (0..spec.flows.len()).map(|i| classes(spec, core, i)).sum();
            cost.add("steps", steps, STEP_S * (links.len() as f64 + classes), Cause::Key("duration".into()));
        }
        Runner::Packet => packets(&mut cost, spec, core, &links, EVENT_S * (1.0 + (flows / FLOWS_IN_CACHE).min(7.0))),
        Runner::Ns2 | Runner::Ns3 => {
            let event_s = if runner == Runner::Ns2 { NS2_EVENT_S } else { NS3_EVENT_S };
            slowness = event_s / EVENT_S;
            packets(&mut cost, spec, core, &links, event_s);
        }
    }
    let samples = duration_s / spec.sample_interval().as_secs_f64().max(1e-9);
    cost.add("samples", samples, slowness * SAMPLE_S * recorded * (10.0 + watched), Cause::Interval);
    // Most links have the same AQM.
    let mut known: Vec<(&AqmChoice, Limit, Option<Updates>)> = Vec::new();
    for (i, link) in links.iter().enumerate() {
        let changes = link.line.iter().flat_map(|line| &line.aqms).map(|(at, aqm)| (seconds(*at), aqm));
        let in_force: Vec<(f64, &AqmChoice)> = [(0.0, &link.aqm)].into_iter().chain(changes).collect();
        for (k, &(from, aqm)) in in_force.iter().enumerate() {
            let until = in_force.get(k + 1).map_or(duration_s, |(at, _)| *at);
            let found = known.iter().find(|(other, limit, _)| *other == aqm && *limit == link.limit);
            let updates = found.map(|(.., updates)| *updates).unwrap_or_else(|| {
                let updates = Updates::from_choice(aqm, link.limit, spec.all_flows());
                known.push((aqm, link.limit, updates));
                updates
            });
            if let Some(updates) = updates {
                let count = attempts * (until - from).max(0.0) / updates.period_s;
                cost.add("updates", count, slowness * updates.each_s() + step_s, Cause::Aqm(i));
            }
        }
    }
    cost
}

/// Adds the packets of all groups, bounded by links, applications and windows. Each packet is an event at the first
/// link of its path, at each later link that is recorded, and at the receiver; so is its acknowledgement.
fn packets(cost: &mut Cost, spec: &Spec, core: &Core, links: &[Link], event_s: f64) {
    let duration_s = spec.duration.as_secs_f64();
    let mut groups = Vec::new();
    // Bits that each group alone would send over each link: adaptive groups, and the others.
    let [mut adaptive, mut fixed] = [vec![0.0; links.len()], vec![0.0; links.len()]];
    for (i, (group, route)) in spec.flows.iter().zip(&core.routes).enumerate() {
        let stop_s = group.stop.map_or(duration_s, |stop| stop.as_secs_f64());
        let active_s = (stop_s - group.start.low.as_secs_f64()).clamp(0.0, duration_s);
        let config = &group.transport.config;
        let (flows, rtt_s) = (group.flows() as f64, base_rtt_s(spec, core, i));
        let offer = demand(group, active_s, rtt_s);
        let bits = offer.bits;
        let window = config.window_pkts().map_or(f64::INFINITY, |pkts| f64::from(pkts) * flows * active_s / rtt_s);
        let access = route.access.as_ref().map_or(f64::INFINITY, |access| {
            let hosts = Side::BOTH.map(|side| core.hosts(spec, i, side)).into_iter().min().unwrap_or(1);
            access.rate.as_bps() as f64 * f64::from(hosts) * active_s / bits
        });
        let mut count = offer.packets.min(window.max(flows)).min(access);
        if config.adapts() {
            let carried = route.path.iter().map(|link| link_bits(&links[*link as usize], duration_s) / bits);
            count = carried.map(|pkts| pkts * active_s / duration_s).fold(count, f64::min);
        }
        let load = if config.adapts() { &mut adaptive } else { &mut fixed };
        route.path.iter().for_each(|link| load[*link as usize] += count * bits);
        groups.push((count, bits, offer.changes));
    }
    let at_links = |path: &[u32]| {
        let later = path.iter().skip(1).filter(|link| !links[**link as usize].is_unobserved());
        later.count() + path.len().min(1)
    };
    for (i, (count, bits, changes)) in groups.into_iter().enumerate() {
        let (group, route) = (&spec.flows[i], &core.routes[i]);
        let config = &group.transport.config;
        // Adaptive groups share what the others leave, at least a tenth of a link. The others lose their excess.
        let part = |link: &u32| {
            let (carried, fixed) = (link_bits(&links[*link as usize], duration_s), fixed[*link as usize]);
            match config.adapts() {
                true => (carried - fixed).max(0.1 * carried) / adaptive[*link as usize].max(bits),
                false => carried / fixed.max(bits),
            }
        };
        let part = route.path.iter().map(part).fold(1.0, f64::min);
        let (sent, arrived) = if config.adapts() { (count * part, 1.0) } else { (count, part) };
        let back = if config.ack_bytes() > 0 { at_links(&route.return_path) + 1 } else { 0 };
        let of_source = group.traffic.offered().is_some();
        let traffic = format!("flows.{i}.traffic");
        let key = if of_source { traffic.clone() } else { "duration".into() };
        let events = 1.0 + arrived * (at_links(&route.path) + back) as f64;
        cost.add("packets", sent, events * event_s, Cause::Key(key));
        cost.add("changes of state", changes, event_s, Cause::Key(traffic));
    }
}

/// Most bits that a link carries in `duration_s`.
fn link_bits(link: &Link, duration_s: f64) -> f64 {
    let ends = link.rates.iter().skip(1).map(|(at, _)| seconds(*at)).chain([duration_s]);
    let bits = |(&(at, rate), end): (&(Instant, Rate), f64)| {
        rate.as_bps() as f64 * (end.min(duration_s) - seconds(at)).max(0.0)
    };
    link.rates.iter().zip(ends).map(bits).sum()
}

fn seconds(at: Instant) -> f64 {
    at.as_nanos() as f64 * 1e-9
}

/// Shortest round trip of a group without queueing, plus the transmission of a packet, seconds.
fn base_rtt_s(spec: &Spec, core: &Core, i: usize) -> f64 {
    let bits = 8.0 * f64::from(spec.flows[i].transport.config.packet_bytes());
    let sent_s = core.routes[i].path.iter().map(|link| bits / core.links[*link as usize].rate.as_bps() as f64);
    (round_trip(spec, core, i, false).as_secs_f64() + sent_s.sum::<f64>()).max(1e-9)
}

/// First step of the fluid solver, seconds.
fn fluid_step_s(spec: &Spec, core: &Core) -> f64 {
    let shortest = (0..spec.flows.len()).map(|i| base_rtt_s(spec, core, i)).fold(f64::INFINITY, f64::min);
    (shortest / 20.0).clamp(1e-9, STEP_MAX_S)
}

/// Number of flow classes of group `i` in the fluid: flows of one path and similar round trips.
fn classes(spec: &Spec, core: &Core, i: usize) -> f64 {
    let pairs = Side::BOTH.map(|side| u64::from(core.hosts(spec, i, side)));
    let shortest = base_rtt_s(spec, core, i);
    let [longest, low] = [true, false].map(|end| round_trip(spec, core, i, end).as_secs_f64());
    let apart = ((1.0 + (longest - low) / shortest).ln() / FLUID_RTT_RATIO.ln()).ceil().clamp(1.0, FLUID_CLASSES_MAX);
    let pairs = if pairs[0] == pairs[1] { pairs[0] } else { pairs[0].saturating_mul(pairs[1]) };
    apart.min(spec.flows[i].flows().min(pairs).max(1) as f64)
}

/// Shortest or longest two-way propagation delay of the flows of group `i`.
fn round_trip(spec: &Spec, core: &Core, i: usize, longest: bool) -> Span {
    let end = |spread: &Spread| if longest { spread.high } else { spread.low };
    let route = &core.routes[i];
    let of_hosts = |owner: usize| {
        let placed = &spec.flows[owner];
        let access = core.routes[owner].access.as_ref();
        let access = access.map_or(Span::ZERO, |access| end(&access.delay) * 4 + end(&placed.extra_rtt));
        placed.rtt.as_ref().map_or_else(|| core.written_delay(route) + access, end)
    };
    let [source, destination] = core.owners(spec, i).map(of_hosts);
    (source + destination) / 2
}

/// Formats a time with two digits in a suitable unit.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 100.0 => format!("{s:.0} s"),
        s if s < 100.0 * 60.0 => format!("{:.0} minutes", s / 60.0),
        s if s < 100.0 * 3600.0 => format!("{:.0} hours", s / 3600.0),
        s if s < 1000.0 * 86_400.0 => format!("{:.0} days", s / 86_400.0),
        _ => "years".into(),
    }
}

/// Formats a time as in a scenario file, two digits.
fn short_time(seconds: f64) -> String {
    let nanos = (seconds * 1e9).clamp(1.0, TIME_MAX.as_nanos() as f64);
    let scale = 10f64.powf(nanos.log10().floor() - 1.0).max(1.0);
    // Rounded up, so that the offered value is accepted.
    show_span(Span::from_nanos(((nanos / scale - 1e-6).ceil() * scale) as u64))
}

/// Formats a number: `1250`, `1.2e8`.
fn short_count(count: f64) -> String {
    if count < 1e5 { format!("{count:.0}") } else { format!("{count:.1e}") }
}
