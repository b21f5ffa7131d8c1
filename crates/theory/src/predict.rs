//! The theory engine: what the equations say of a scenario at rest, window by window, without running anything.
//!
//! Every flow is counted at the link that leaves it the least capacity; the flows counted at a link, its capacity and
//! their base RTT are taken as averages over the window. Unresponsive load that gets in takes its part of the capacity.
//! The operating point there is the answer; whether the loop is stable there says how far to trust it.

use aqumen_aqm::registry::{AnyAqm, AnyQdisc};
use aqumen_aqm::{Aqm, Limit, Rests};
use aqumen_result::{Cost, FlowMetrics, LinkMetrics, LinkPoint, RunResult, Series};
use aqumen_scenario::{AqmChoice, Flow, Plan, Window};
use indexmap::IndexMap;
use serde::Serialize;

use crate::Error;
use crate::coupled::{self, Class, Coupled};
use crate::design::{Analysis, Depth, Place, admitted_pps, analyse_to, around_many, coupling_of};
use crate::field::Field;
use crate::fluid::{Load, Model, aqm_report, only_wires, time_on, unresponsive};
use crate::linear::{Controller, Loop, OperatingPoint};
use crate::packet_noise::{self, Noise, Z95};
use crate::response::{Law, Sender, Table};
use crate::several::{self, Crossing, Loops, Several, Stage};

/// What is to be expected of one link in one window.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkPrediction {
    /// Flows that this link holds back, on average over the window.
    pub flows: f64,
    /// Capacity, packets/s, on average over the window.
    pub capacity_pps: f64,
    /// Unresponsive load that arrives, in packets of the link's mean size per second, on average over the window.
    pub unresponsive_pps: f64,
    /// Of which the AQM lets in.
    pub admitted_pps: f64,
    /// Size of the held flows' packets in packets of the link's mean size.
    #[serde(skip)]
    weight: f64,
    /// Whether the buffer's end is all that loses packets.
    #[serde(skip)]
    tail: bool,
    /// Round-trip time without queueing of those flows, seconds (harmonic mean).
    pub base_rtt_s: f64,
    /// Whether signals are marks.
    pub ecn: bool,
    /// Departed / capacity.
    pub utilization: f64,
    /// Packets waiting.
    pub queue_pkts: f64,
    /// Share of the packets that are marked or lost.
    pub probability: f64,
    /// The linear analysis; null where no flow is held back. Of coupled queues that of the classic one.
    pub analysis: Option<Analysis>,
    /// Two coupled queues at rest, where there are such.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coupled: Option<Coupled>,
    /// The loops of several full links that share flows, where there are such.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub several: Option<Several>,
    /// What each group has where they differ: its number, a flow's window, packets, and its wait, seconds.
    #[serde(skip)]
    own: Vec<(u32, f64, f64)>,
    /// Shares of the packets that are marked and dropped early, where the AQM makes a difference between flows.
    #[serde(skip)]
    signalled: Option<[f64; 2]>,
}

/// Predictions of each recorded link in each window.
pub type Prediction = IndexMap<String, IndexMap<String, LinkPrediction>>;

/// What is to be expected of each recorded link of `plan` in each window; of links that are more
/// than a wire nothing is known.
pub fn predict(plan: &Plan) -> Result<Prediction, Error> {
    predict_to(Depth::Loop, plan)
}

/// As [`predict`], with analyses that go no further than `depth`.
pub fn predict_to(depth: Depth, plan: &Plan) -> Result<Prediction, Error> {
    crate::fluid::known_applications(plan)?;
    for group in plan.groups.iter().filter(|group| unresponsive(group).is_none()) {
        Sender::of(&group.transport).map_err(|why| {
            let law = group.transport.congestion().unwrap_or("none");
            Error::Unsupported(format!("group {}: congestion = \"{law}\": {why}; use engine packet", group.name))
        })?;
    }
    let mut together: Vec<Vec<(usize, LinkPrediction)>> = Vec::new();
    for window in &plan.windows {
        together.push(at_several(plan, window, depth)?);
    }
    let mut prediction = Prediction::new();
    for (number, link) in plan.links.iter().enumerate().filter(|(_, link)| link.record && link.line.is_none()) {
        let mut windows = IndexMap::new();
        // Windows often see one network.
        let mut known: Vec<(Place, Analysis)> = Vec::new();
        for (window, together) in plan.windows.iter().zip(&together) {
            if let Some((_, found)) = together.iter().find(|(several, _)| *several == number) {
                windows.insert(window.name.clone(), found.clone());
                continue;
            }
            let mut analysed = |place: &Place| match known.iter().find(|(seen, _)| seen == place) {
                Some((_, analysis)) => Ok(analysis.clone()),
                None => {
                    let analysis = analyse_to(depth, &link.aqm, place)?;
                    known.push((*place, analysis.clone()));
                    Ok(analysis)
                }
            };
            windows.insert(window.name.clone(), at_link(plan, number, window, &mut analysed)?);
        }
        prediction.insert(link.name.clone(), windows);
    }
    Ok(prediction)
}

/// Runs `plan` on the theory engine.
pub fn run(plan: &Plan) -> Result<RunResult, Error> {
    only_wires(plan)?;
    let prediction = predict(plan)?;
    let mut result = RunResult {
        schema: aqumen_result::SCHEMA,
        aqumen: env!("CARGO_PKG_VERSION"),
        scenario: plan.scenario.clone(),
        engine: "theory",
        aqm: plan.links.iter().find(|link| link.record).map(|link| aqm_report(&link.aqm)).unwrap_or_default(),
        seed: plan.seed,
        windows: plan.windows.iter().map(|w| (w.name.clone(), [w.start.as_secs_f64(), w.end.as_secs_f64()])).collect(),
        links: IndexMap::new(),
        flows: IndexMap::new(),
        notes: plan.notes.clone(),
        cost: Cost::default(),
        series: IndexMap::new(),
        sojourn: IndexMap::new(),
        queue: IndexMap::new(),
    };
    for (name, windows) in &prediction {
        let link = plan.links.iter().find(|link| link.name == *name);
        let target = link.and_then(|link| link.target_pkts);
        let metrics = plan.windows.iter().map(|w| (w.name.clone(), link_metrics(&windows[&w.name], target, w)));
        result.links.insert(name.clone(), metrics.collect());
        result.series.insert(name.clone(), series(plan, windows));
        result
            .sojourn
            .insert(name.clone(), plan.windows.iter().map(|w| (w.name.clone(), Default::default())).collect());
        result.queue.insert(name.clone(), result.sojourn[name].clone());
    }
    for (group, entry) in plan.groups.iter().enumerate() {
        let of_window = |w: &Window| (w.name.clone(), flow_metrics(plan, group as u32, w, &prediction));
        result.flows.insert(entry.name.clone(), plan.windows.iter().map(of_window).collect());
    }
    Ok(result)
}

/// Share of `window` in which `flow` is on.
fn presence(flow: &Flow, window: &Window) -> f64 {
    time_on(flow, window.start, window.end)
}

/// What `flow` offers while it is on, if it is unresponsive.
fn load_of(plan: &Plan, flow: &Flow) -> Option<Load> {
    unresponsive(&plan.groups[flow.group as usize])
}

/// Mean rate of a link over `window`, bit/s.
fn mean_bps(plan: &Plan, link: usize, window: &Window) -> f64 {
    let rates = &plan.links[link].rates;
    let length = (window.end - window.start).as_secs_f64();
    // Of a link that changes often a window sees few rates.
    let first = rates.partition_point(|(at, _)| *at <= window.start).saturating_sub(1);
    let last = rates.partition_point(|(at, _)| *at < window.end).max(first);
    let parts = (first..last).map(|k| {
        let (at, rate) = rates[k];
        let until = rates.get(k + 1).map_or(window.end, |next| next.0).min(window.end);
        rate.as_bps() as f64 * until.saturating_since(at.max(window.start)).as_secs_f64()
    });
    if length > 0.0 { parts.sum::<f64>() / length } else { rates[0].1.as_bps() as f64 }
}

/// Number of the link that leaves each of `flows` the least capacity: the lowest rate per flow that crosses it.
fn bottleneck_of(plan: &Plan, flow: &Flow, users: &[Users], window: &Window) -> Option<usize> {
    // One bit per second is left by any load, so that an overloaded link is the narrowest.
    let share =
        |link: usize| (mean_bps(plan, link, window) - users[link].load_bps).max(1.0) / users[link].flows.max(1e-9);
    flow.path.iter().map(|&link| link as usize).min_by(|&a, &b| share(a).total_cmp(&share(b)))
}

/// Who crosses a link: flows with windows, and what unresponsive ones offer, bit/s.
#[derive(Clone, Copy, Debug, Default)]
struct Users {
    flows: f64,
    load_bps: f64,
}

fn users(plan: &Plan, window: &Window) -> Vec<Users> {
    let mut users = vec![Users::default(); plan.links.len()];
    for flow in &plan.flows {
        let (on, load) = (presence(flow, window), load_of(plan, flow));
        for &link in &flow.path {
            match load {
                Some(load) => users[link as usize].load_bps += on * load.pps * 8.0 * load.packet_bytes,
                None => users[link as usize].flows += on,
            }
        }
    }
    users
}

fn at_link(
    plan: &Plan,
    number: usize,
    window: &Window,
    analysed: &mut dyn FnMut(&Place) -> Result<Analysis, Error>,
) -> Result<LinkPrediction, Error> {
    let link = &plan.links[number];
    let users = users(plan, window);
    let held: Vec<(&Flow, f64)> = plan
        .flows
        .iter()
        .map(|flow| (flow, presence(flow, window)))
        .filter(|(flow, on)| {
            *on > 0.0 && load_of(plan, flow).is_none() && bottleneck_of(plan, flow, &users, window) == Some(number)
        })
        .collect();
    let packet_bytes = crate::fluid::packet_bytes(plan, number);
    let capacity_pps = mean_bps(plan, number, window) / (8.0 * packet_bytes);
    let unresponsive_pps = users[number].load_bps / (8.0 * packet_bytes);
    let flows: f64 = held.iter().map(|(_, on)| on).sum();
    let transport = |flow: &Flow| &plan.groups[flow.group as usize].transport;
    let held_bytes = held.iter().map(|(flow, on)| on * f64::from(transport(flow).packet_bytes())).sum::<f64>() / flows;
    let weight = if unresponsive_pps > 0.0 && flows > 0.0 { held_bytes / packet_bytes } else { 1.0 };
    let tail = link.aqm.name == "droptail";
    let buffer_pkts = f64::from(link.limit.packets).min(link.limit.bytes.0 as f64 / packet_bytes);
    let ecn = held.iter().filter(|(flow, _)| transport(flow).ecn()).map(|(_, on)| on).sum::<f64>() > 0.5 * flows;
    let base_rtt_s = flows / held.iter().map(|(flow, on)| on / crate::fluid::base_rtt_s(plan, flow)).sum::<f64>();
    let idle = |utilization: f64| LinkPrediction {
        flows,
        capacity_pps,
        unresponsive_pps,
        admitted_pps: unresponsive_pps,
        weight,
        tail,
        base_rtt_s,
        ecn,
        utilization,
        queue_pkts: 0.0,
        probability: 0.0,
        analysis: None,
        coupled: None,
        several: None,
        own: Vec::new(),
        signalled: None,
    };
    let overloaded = || {
        Error::Unsupported(format!(
            "link {}: its unresponsive load of {unresponsive_pps:.1} packets/s leaves nothing of {capacity_pps:.1}; use engine fluid",
            link.name
        ))
    };
    if flows == 0.0 {
        let load = unresponsive_pps / capacity_pps;
        return match load > 1.0 {
            false => Ok(idle(load)),
            true if tail => Ok(LinkPrediction {
                queue_pkts: buffer_pkts,
                probability: 1.0 - 1.0 / load,
                admitted_pps: capacity_pps,
                ..idle(1.0)
            }),
            true => Err(overloaded()),
        };
    }
    // Flows that their windows hold back, not the link.
    let most: f64 = held
        .iter()
        .map(|(flow, on)| {
            on * f64::from(transport(flow).window_pkts().unwrap_or(u32::MAX)) / crate::fluid::base_rtt_s(plan, flow)
        })
        .sum();
    let all = most * weight + unresponsive_pps;
    if all <= capacity_pps {
        return Ok(idle(all / capacity_pps));
    }
    let groups = groups_of(plan, &held);
    let sender =
        groups.iter().max_by(|a, b| a.class.flows.total_cmp(&b.class.flows)).map_or(Sender::reno(), |g| g.class.sender);
    if let Some(AnyQdisc::DualPi2(dual)) = link.aqm.build_qdisc(Limit::packets(u32::MAX)).and_then(Result::ok)
        && groups.iter().any(|group| group.class.scalable || dual.params().any_ect && group.ecn)
    {
        let any_ect = dual.params().any_ect;
        let classes: Vec<Class> = groups
            .iter()
            .map(|group| Class { scalable: group.class.scalable || any_ect && group.ecn, ..group.class })
            .collect();
        if unresponsive_pps > 0.0 || classes.iter().all(|class| class.scalable) {
            let what = if unresponsive_pps > 0.0 { "unresponsive load" } else { "scalable flows alone" };
            return Err(Error::Unsupported(format!(
                "link {}: {what} in coupled queues: no operating point is known; use engine packet",
                link.name
            )));
        }
        let at = coupled::rest(dual.params(), capacity_pps, &classes);
        return in_coupled_queues(&groups, &classes, at, idle(1.0), buffer_pkts, analysed);
    }
    let model = if ecn && !tail { Model::Reno } else { Model::Drop };
    if let (Model::Drop, Some(group)) = (model, groups.iter().find(|group| group.class.sender.law != Law::Reno)) {
        return Err(Error::Unsupported(format!(
            "group {}: where signals are losses only Reno's windows are known, not congestion = \"{}\"; use ECN or engine packet",
            plan.groups[group.number as usize].name,
            plan.groups[group.number as usize].transport.congestion().unwrap_or("none")
        )));
    }
    // With flows of `weight` each, windows are in packets of their own while the rest is in packets of the link.
    let place = Place { model, flows: flows * weight, capacity_pps, unresponsive_pps, base_rtt_s, buffer_pkts, sender };
    let place = match model {
        _ if unresponsive_pps == 0.0 => place,
        Model::Drop if unresponsive_pps >= capacity_pps => return Err(overloaded()),
        // Its balance counts what is lost.
        Model::Drop => place,
        Model::Ecn | Model::Hollot | Model::Reno => {
            Place { unresponsive_pps: admitted_pps(&link.aqm, &place, unresponsive_pps)?, ..place }
        }
    };
    let analysis = analysed(&place)?;
    if model == Model::Reno && groups.iter().any(|group| group.class.sender != sender) {
        return shared_by_laws(&link.aqm, &link.name, &groups, &place, analysis, idle(1.0));
    }
    Ok(LinkPrediction {
        utilization: 1.0,
        queue_pkts: analysis.expected.queue_pkts,
        probability: analysis.expected.probability,
        admitted_pps: unresponsive_pps * (1.0 - analysis.expected.probability.min(1.0)),
        analysis: Some(analysis),
        ..idle(1.0)
    })
}

/// Links that hold their queues at a target and that flows with windows share: all of them, if two or more that one
/// flow crosses are full. Else none, and each is by itself.
fn at_several(plan: &Plan, window: &Window, depth: Depth) -> Result<Vec<(usize, LinkPrediction)>, Error> {
    let users = users(plan, window);
    let targets = |number: usize| -> Option<AnyAqm> {
        let link = &plan.links[number];
        let built = link.aqm.build().and_then(Result::ok).filter(|_| link.record && link.line.is_none())?;
        let holds = built.theory().no_slope().is_none() && built.theory().rests() == Rests::AtTarget;
        (holds && users[number].flows > 0.0).then_some(built)
    };
    let known: Vec<(usize, AnyAqm)> =
        (0..plan.links.len()).filter_map(|number| targets(number).map(|built| (number, built))).collect();
    let held: Vec<(&Flow, f64, Vec<usize>)> = plan
        .flows
        .iter()
        .filter(|flow| load_of(plan, flow).is_none())
        .map(|flow| (flow, presence(flow, window)))
        .filter(|(_, on)| *on > 0.0)
        .map(|(flow, on)| {
            let way = |number: usize| flow.path.iter().any(|link| *link as usize == number);
            (flow, on, (0..known.len()).filter(|k| way(known[*k].0)).collect())
        })
        .collect();
    if held.iter().all(|(.., stages)| stages.len() < 2) {
        return Ok(Vec::new());
    }
    // Flows of one group on the same way. Sums of flows, and of their inverse round trips.
    let mut groups: Vec<(u32, Crossing)> = Vec::new();
    for (flow, on, stages) in held.iter().filter(|(.., stages)| !stages.is_empty()) {
        let Ok(sender) = Sender::of(&plan.groups[flow.group as usize].transport) else { continue };
        let inverse = on / crate::fluid::base_rtt_s(plan, flow);
        match groups.iter_mut().find(|(number, crossing)| *number == flow.group && crossing.stages == *stages) {
            Some((_, crossing)) => {
                crossing.flows += on;
                crossing.base_rtt_s += inverse;
            }
            None => {
                groups.push((flow.group, Crossing { sender, flows: *on, base_rtt_s: inverse, stages: stages.clone() }))
            }
        }
    }
    groups.iter_mut().for_each(|(_, crossing)| crossing.base_rtt_s = crossing.flows / crossing.base_rtt_s);
    let crossings: Vec<Crossing> = groups.iter().map(|(_, crossing)| crossing.clone()).collect();
    // Each link by itself says where its law holds the queue.
    let alone = known.iter().enumerate().map(|(k, (number, _))| {
        let link = &plan.links[*number];
        let own: Vec<&Crossing> = crossings.iter().filter(|crossing| crossing.stages.contains(&k)).collect();
        let flows: f64 = own.iter().map(|crossing| crossing.flows).sum();
        let packet_bytes = crate::fluid::packet_bytes(plan, *number);
        let largest = own.iter().max_by(|a, b| a.flows.total_cmp(&b.flows));
        let place = Place {
            model: Model::Reno,
            flows,
            capacity_pps: mean_bps(plan, *number, window) / (8.0 * packet_bytes),
            unresponsive_pps: 0.0,
            base_rtt_s: flows / own.iter().map(|crossing| crossing.flows / crossing.base_rtt_s).sum::<f64>(),
            buffer_pkts: f64::from(link.limit.packets).min(link.limit.bytes.0 as f64 / packet_bytes),
            sender: largest.map_or(Sender::reno(), |crossing| crossing.sender),
        };
        analyse_to(Depth::Rest, &link.aqm, &place).map(|analysis| (place, analysis))
    });
    let alone = alone.collect::<Result<Vec<(Place, Analysis)>, Error>>()?;
    let stages: Vec<Stage> = alone
        .iter()
        .map(|(place, analysis)| {
            let queue = analysis.operating_point.at.queue_pkts;
            Stage { capacity_pps: place.capacity_pps, queue_pkts: queue.min(place.buffer_pkts) }
        })
        .collect();
    let names = |which: &[bool]| -> Vec<String> {
        let full = known.iter().zip(which).filter(|(_, full)| **full);
        full.map(|((number, _), _)| plan.links[*number].name.clone()).collect()
    };
    let refused = |why: &str| {
        let links = names(&vec![true; known.len()]).join(", ");
        Error::Unsupported(format!("links {links}, which flows share: {why}; use engine packet"))
    };
    let rests = several::rest(&stages, &crossings).map_err(refused)?;
    let shared = |crossing: &Crossing| crossing.stages.iter().filter(|stage| rests.full[**stage]).count() > 1;
    if !crossings.iter().any(shared) {
        return Ok(Vec::new());
    }
    let transport = |group: u32| &plan.groups[group as usize].transport;
    if known.iter().any(|(number, _)| users[*number].load_bps > 0.0) {
        return Err(refused("with unresponsive load no operating point is known"));
    }
    if groups.iter().any(|(group, _)| !transport(*group).ecn()) {
        return Err(refused("signals are losses, of which no operating point is known over several links"));
    }
    let sizes: Vec<u16> = groups.iter().map(|(group, _)| transport(*group).packet_bytes()).collect();
    if sizes.iter().any(|size| *size != sizes[0]) {
        return Err(refused("packets of several sizes"));
    }
    if known.iter().any(|(_, aqm)| crossings.iter().any(|crossing| coupling_of(aqm, &crossing.sender).is_some())) {
        return Err(refused("a coupled law for scalable flows"));
    }
    let points = alone.iter().enumerate().map(|(k, (place, analysis))| {
        let at = analysis.operating_point.at;
        let rate = |(crossing, (window, rtt_s)): (&Crossing, (&f64, &f64))| crossing.flows * window / rtt_s;
        let own = || {
            let all = crossings.iter().zip(rests.window_pkts.iter().zip(&rests.rtt_s));
            all.filter(move |(crossing, _)| crossing.stages.contains(&k))
        };
        let rtt_s = place.flows / own().map(|(crossing, (_, rtt_s))| crossing.flows / rtt_s).sum::<f64>();
        let used = own().map(rate).sum::<f64>();
        let probability = rests.probability[k];
        let at = OperatingPoint { rtt_s, probability, window_pkts: used * rtt_s / place.flows, feasible: true, ..at };
        (at, used / place.capacity_pps)
    });
    let points: Vec<(OperatingPoint, f64)> = points.collect();
    let closed = (depth == Depth::Loop).then(|| {
        let controllers: Vec<Option<Controller>> = known
            .iter()
            .zip(&points)
            .map(|((number, aqm), (at, _))| {
                Controller::of_built(aqm, &plan.links[*number].aqm, at).map(|(controller, _)| controller)
            })
            .collect();
        Loops::new(&stages, &crossings, &rests, &controllers).map(|loops| loops.told())
    });
    let found = known.iter().enumerate().map(|(k, (number, _))| {
        let (place, mut analysis) = alone[k].clone();
        let (at, utilization) = points[k];
        let full = rests.full[k];
        let queue_pkts = if full { stages[k].queue_pkts } else { 0.0 };
        analysis.operating_point.at = at;
        analysis.expected.probability = at.probability;
        analysis.expected.queue_pkts = queue_pkts;
        analysis.expected.offset_pkts = analysis.expected.offset_pkts.map(|_| queue_pkts - stages[k].queue_pkts);
        analysis.warnings.retain(|warning| !warning.starts_with("out of reach"));
        let held = packet_noise::Held { target_pkts: Some(queue_pkts), buffer_pkts: place.buffer_pkts };
        let deviation = closed.iter().flatten().find_map(|(stable, _, deviations)| {
            deviations.iter().find(|(stage, _)| *stage == k).map(|(_, deviation)| (*stable, *deviation))
        });
        analysis.noise = match (&closed, deviation) {
            (None, _) => Noise::none("the loop was not asked for".into()),
            _ if !full => Noise::none("the link is not full: its queue is that of packets that meet by chance".into()),
            (_, deviation) => Noise::with_deviation(held, &at, deviation),
        };
        let own = groups.iter().enumerate().filter(|(_, (_, crossing))| crossing.stages.contains(&k));
        let own =
            own.map(|(c, (group, crossing))| (*group, rests.window_pkts[c], rests.rtt_s[c] - crossing.base_rtt_s));
        let several = closed.as_ref().and_then(Option::as_ref).map(|(stable, gain_margin, _)| Several {
            links: names(&rests.full),
            stable: *stable,
            gain_margin: *gain_margin,
        });
        let predicted = LinkPrediction {
            flows: place.flows,
            capacity_pps: place.capacity_pps,
            unresponsive_pps: 0.0,
            admitted_pps: 0.0,
            weight: 1.0,
            tail: false,
            base_rtt_s: place.base_rtt_s,
            ecn: true,
            utilization: if full { 1.0 } else { utilization },
            queue_pkts,
            probability: at.probability,
            own: own.collect(),
            signalled: None,
            analysis: Some(analysis),
            coupled: None,
            several,
        };
        (*number, predicted)
    });
    Ok(found.collect())
}

/// Flows of one group that a link holds back.
#[derive(Clone, Copy, Debug)]
struct Held {
    number: u32,
    class: Class,
    ecn: bool,
}

fn groups_of(plan: &Plan, held: &[(&Flow, f64)]) -> Vec<Held> {
    let mut groups: Vec<Held> = Vec::new();
    // Sums of flows, and of their inverse round trips.
    for (flow, on) in held {
        let transport = &plan.groups[flow.group as usize].transport;
        let Ok(sender) = Sender::of(transport) else { continue };
        let inverse = on / crate::fluid::base_rtt_s(plan, flow);
        match groups.iter_mut().find(|group| group.number == flow.group) {
            Some(group) => {
                group.class.flows += on;
                group.class.base_rtt_s += inverse;
            }
            None => {
                let scalable = sender.law == Law::Prague;
                let class = Class { flows: *on, base_rtt_s: inverse, sender, scalable };
                groups.push(Held { number: flow.group, class, ecn: transport.ecn() });
            }
        }
    }
    for group in &mut groups {
        group.class.base_rtt_s = group.class.flows / group.class.base_rtt_s;
    }
    groups
}

/// A link with two coupled queues at rest: the analysis is that of the classic one on what the other leaves.
fn in_coupled_queues(
    groups: &[Held],
    classes: &[Class],
    at: Coupled,
    idle: LinkPrediction,
    buffer_pkts: f64,
    analysed: &mut dyn FnMut(&Place) -> Result<Analysis, Error>,
) -> Result<LinkPrediction, Error> {
    let classic: Vec<&Class> = classes.iter().filter(|class| !class.scalable).collect();
    let largest =
        classic.iter().max_by(|a, b| a.flows.total_cmp(&b.flows)).map_or(Sender::reno(), |class| class.sender);
    let flows = at.classic.flows;
    let place = Place {
        model: Model::Reno,
        flows,
        capacity_pps: at.classic.rate_pps,
        unresponsive_pps: 0.0,
        base_rtt_s: flows / classic.iter().map(|class| class.flows / class.base_rtt_s).sum::<f64>(),
        buffer_pkts,
        sender: largest,
    };
    let mut analysis = analysed(&place)?;
    let waiting = |side: &coupled::Side| side.rate_pps * side.delay_s;
    let queue_pkts = waiting(&at.classic) + waiting(&at.low_latency);
    let share = |side: &coupled::Side| side.rate_pps / idle.capacity_pps;
    let marks = groups.iter().zip(classes).filter(|(_, class)| !class.scalable).all(|(group, _)| group.ecn);
    let (classic_signals, low_signals) =
        (share(&at.classic) * at.classic.probability, share(&at.low_latency) * at.low_latency.probability);
    let signalled = if marks { [classic_signals + low_signals, 0.0] } else { [low_signals, classic_signals] };
    analysis.warnings.retain(|warning| !warning.starts_with("this is of its classic queue"));
    // The classic queue's own loop lacks the flows of the other.
    analysis.margins = None;
    analysis.expected.queue_pkts = queue_pkts;
    let why = match at.delay_std_s {
        _ if !at.feasible => Some("p' is at 1/k, where marks no longer regulate"),
        None => Some("the loop is unstable, or the law of a class has no slope that is known"),
        Some(deviation) if deviation > 0.5 * at.classic.delay_s => {
            Some("the queue runs empty too often for a linear answer")
        }
        Some(_) if !marks => Some("signals are losses: time-outs rule, which the models do not have"),
        Some(_) => None,
    };
    analysis.noise = Noise::none(why.unwrap_or_default().into());
    if let (None, Some(deviation)) = (why, at.delay_std_s) {
        // Waits spread exponentially leave a geometric number of packets in the L queue, of variance m (1 + m).
        let low = waiting(&at.low_latency);
        let deviation = libm::hypot(deviation * at.classic.rate_pps, (low * (1.0 + low)).sqrt());
        analysis.noise = Noise {
            valid: true,
            why: None,
            window_pkts: Some(at.classic.window_pkts),
            probability: Some(at.classic.probability),
            queue_std_pkts: Some(deviation),
            queue_p95_pkts: Some(queue_pkts + Z95 * deviation),
            ..analysis.noise
        };
    }
    let own = groups.iter().zip(classes).zip(&at.windows).map(|((group, class), (window, _))| {
        (group.number, *window, if class.scalable { at.low_latency.delay_s } else { at.classic.delay_s })
    });
    Ok(LinkPrediction {
        queue_pkts,
        probability: classic_signals + low_signals,
        admitted_pps: 0.0,
        own: own.collect(),
        signalled: Some(signalled),
        analysis: Some(analysis),
        coupled: Some(at),
        ..idle
    })
}

/// A queue that rests at its target and that flows of several laws share: the share that lets them fill the link.
fn shared_by_laws(
    choice: &AqmChoice,
    link: &str,
    groups: &[Held],
    place: &Place,
    mut analysis: Analysis,
    idle: LinkPrediction,
) -> Result<LinkPrediction, Error> {
    let built = choice.build().and_then(Result::ok);
    if !built.as_ref().is_some_and(|aqm| aqm.theory().rests() == Rests::AtTarget) {
        return Err(Error::Unsupported(format!(
            "link {link}: flows of different laws under {}, whose queue rests where their share says; use engine packet",
            choice.name
        )));
    }
    let coupling = |sender: &Sender| built.as_ref().and_then(|aqm| coupling_of(aqm, sender));
    let queue_pkts = analysis.operating_point.at.queue_pkts.min(place.buffer_pkts);
    let wait = queue_pkts / place.capacity_pps;
    let known: Vec<(&Held, f64, Table)> = groups
        .iter()
        .map(|group| {
            let rtt_s = group.class.base_rtt_s + wait;
            (group, rtt_s, group.class.sender.table(rtt_s))
        })
        .collect();
    // PI2 marks ECT(1) with k times the root.
    let signal = |group: &Held, p: f64| coupling(&group.class.sender).map_or(p, |k| (k * p.sqrt()).min(1.0));
    let left = place.capacity_pps - place.unresponsive_pps;
    let rate = |p: f64| -> f64 {
        known.iter().map(|(group, rtt_s, table)| group.class.flows * table.window(signal(group, p)) / rtt_s).sum()
    };
    let (mut least, mut most) = (1e-10_f64, 1.0_f64);
    for _ in 0..60 {
        let p = (least * most).sqrt();
        if rate(p) > left {
            least = p;
        } else {
            most = p;
        }
    }
    let p = (least * most).sqrt();
    let signals = known.iter().map(|(group, rtt_s, table)| {
        let p = signal(group, p);
        p * group.class.flows * table.window(p) / rtt_s
    });
    let probability = signals.sum::<f64>() / rate(p);
    let asked = analysis.margins.is_some();
    analysis.margins = None;
    analysis.expected.probability = probability;
    analysis.expected.oscillation_period_s = None;
    analysis.expected.oscillation_std_pkts = None;
    analysis.expected.coexisting_period_s = None;
    analysis.expected.coexisting_std_pkts = None;
    analysis.expected.oscillates = None;
    analysis.operating_point.at.probability = p;
    analysis.noise = match &built {
        Some(aqm) if asked && place.unresponsive_pps == 0.0 => {
            let crowds: Vec<_> = known
                .iter()
                .map(|(group, rtt_s, table)| {
                    let sender = group.class.sender;
                    let own = signal(group, p);
                    let slope = coupling(&sender).map_or(1.0, |k| 0.5 * k / p.sqrt());
                    (sender, group.class.flows, [own, slope], *rtt_s, table.window(own))
                })
                .collect();
            let at = analysis.operating_point.at;
            let held = packet_noise::Held { target_pkts: Some(queue_pkts), buffer_pkts: place.buffer_pkts };
            match Controller::of_built(aqm, choice, &at) {
                Some((controller, _)) => {
                    let closed = Loop::new(
                        Field::of_one_queue(place.capacity_pps, aqm.theory().dispersion(p), &crowds),
                        controller,
                    );
                    around_many(held, &at, closed.margins().stable, &closed)
                }
                None => Noise::none("there is no linear controller".into()),
            }
        }
        _ if place.unresponsive_pps > 0.0 => {
            Noise::none("flows of different laws and unresponsive load share the queue".into())
        }
        _ => Noise::none("the loop was not asked for".into()),
    };
    analysis.warnings.retain(|warning| !warning.starts_with("unstable") && !warning.starts_with("little margin"));
    Ok(LinkPrediction {
        queue_pkts,
        probability,
        admitted_pps: idle.unresponsive_pps * (1.0 - p),
        own: known.iter().map(|(group, _, table)| (group.number, table.window(signal(group, p)), wait)).collect(),
        analysis: Some(analysis),
        ..idle
    })
}

/// The 99th percentile of a normal variable in its deviations.
const Z99: f64 = 2.326_347_874_040_841;

fn link_metrics(at: &LinkPrediction, target: Option<f64>, window: &Window) -> LinkMetrics {
    let length_s = (window.end - window.start).as_secs_f64();
    let stable = at.analysis.as_ref().and_then(|analysis| analysis.margins.as_ref()).is_none_or(|m| m.exact.stable);
    // The height of an oscillation is the nonlinear equations'.
    let height = at.analysis.as_ref().and_then(|analysis| analysis.expected.oscillation_std_pkts);
    let noise = at.analysis.as_ref().map(|analysis| &analysis.noise).filter(|noise| noise.valid);
    let spread = match noise.and_then(|noise| noise.queue_std_pkts) {
        Some(deviation) => deviation,
        None if stable => 0.0,
        None => height.unwrap_or(f64::NAN),
    };
    let utilization = at.utilization - noise.and_then(|noise| noise.utilization_lost).unwrap_or(0.0);
    let percentile =
        |z: f64| noise.and_then(|noise| noise.queue_std_pkts).map(|deviation| at.queue_pkts + z * deviation);
    let departures = at.utilization * at.capacity_pps * length_s;
    let (marked, early, overflow) = match (at.tail, at.ecn) {
        _ if at.signalled.is_some() => at.signalled.map_or((0.0, 0.0, 0.0), |[marked, early]| (marked, early, 0.0)),
        (true, _) => (0.0, 0.0, at.probability),
        (false, false) => (0.0, at.probability, 0.0),
        // Of those that arrive, unresponsive load is dropped and the others are marked.
        (false, true) => {
            let others = at.utilization * at.capacity_pps - at.admitted_pps;
            let share =
                if at.unresponsive_pps > 0.0 { at.unresponsive_pps / (others + at.unresponsive_pps) } else { 0.0 };
            (at.probability * (1.0 - share), at.probability * share, 0.0)
        }
    };
    let arrivals = departures / (1.0 - early - overflow);
    let point = LinkPoint {
        queue_pkts: at.queue_pkts,
        queue_std_pkts: spread,
        arrivals,
        departures,
        mark_ratio: marked,
        early_drop_ratio: early,
        overflow_drop_ratio: overflow,
        utilization,
    };
    let sojourn = (arrivals > 0.0).then_some(at.queue_pkts / at.capacity_pps);
    LinkMetrics {
        sojourn_mean_s: sojourn,
        sojourn_p50_s: sojourn,
        sojourn_p95_s: percentile(Z95).map(|pkts| pkts / at.capacity_pps).or(sojourn.filter(|_| stable)),
        sojourn_p99_s: percentile(Z99).map(|pkts| pkts / at.capacity_pps).or(sojourn.filter(|_| stable)),
        queue_p95_pkts: percentile(Z95),
        ..point.metrics(target)
    }
}

fn flow_metrics(plan: &Plan, group: u32, window: &Window, prediction: &Prediction) -> FlowMetrics {
    if let Some(load) = unresponsive(&plan.groups[group as usize]) {
        return load_metrics(plan, group, load, window, prediction);
    }
    let transport = &plan.groups[group as usize].transport;
    let payload = f64::from(transport.payload_bytes());
    let users = users(plan, window);
    let (mut goodput, mut squares, mut rtts, mut lost, mut n) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for flow in plan.flows.iter().filter(|flow| flow.group == group) {
        let on = presence(flow, window);
        n += 1.0;
        let Some(at) = bottleneck_of(plan, flow, &users, window)
            .and_then(|link| prediction.get(&plan.links[link].name))
            .and_then(|windows| windows.get(&window.name))
            .filter(|_| on > 0.0)
        else {
            continue;
        };
        // Equal windows: rates as 1 / R.
        let wait = at.queue_pkts / at.capacity_pps;
        let (own, mean) = (crate::fluid::base_rtt_s(plan, flow) + wait, at.base_rtt_s + wait);
        let left = at.utilization * at.capacity_pps - at.admitted_pps;
        let of_group = at.own.iter().find(|(number, ..)| *number == group);
        let (own, per_s) = match of_group {
            Some((_, window, wait)) => {
                let own = crate::fluid::base_rtt_s(plan, flow) + wait;
                (own, window / own)
            }
            None => (own, left / (at.weight * at.flows) * mean / own),
        };
        let rate = on * per_s * payload * 8.0;
        goodput += rate;
        squares += rate * rate;
        rtts += rate * own;
        lost += if at.ecn { 0.0 } else { rate * at.probability };
    }
    FlowMetrics {
        goodput_bps: goodput,
        jain_fairness: (squares > 0.0).then(|| goodput * goodput / (n * squares)),
        rtt_mean_s: (goodput > 0.0).then(|| rtts / goodput),
        retransmitted_ratio: (goodput > 0.0).then(|| lost / goodput),
        ..FlowMetrics::default()
    }
}

/// Of a group of unresponsive flows: what every link on the way lets through.
fn load_metrics(plan: &Plan, group: u32, load: Load, window: &Window, prediction: &Prediction) -> FlowMetrics {
    let (mut goodput, mut squares, mut offered, mut n) = (0.0, 0.0, 0.0, 0.0);
    for flow in plan.flows.iter().filter(|flow| flow.group == group) {
        let passes = flow.path.iter().fold(1.0, |passes, &link| {
            let at = prediction.get(&plan.links[link as usize].name).and_then(|windows| windows.get(&window.name));
            passes * (1.0 - at.map_or(0.0, |at| at.probability.min(1.0)))
        });
        let rate = presence(flow, window) * load.pps * load.payload_bytes * 8.0;
        offered += rate;
        goodput += rate * passes;
        squares += rate * passes * rate * passes;
        n += 1.0;
    }
    FlowMetrics {
        goodput_bps: goodput,
        jain_fairness: (squares > 0.0).then(|| goodput * goodput / (n * squares)),
        retransmitted_ratio: (offered > 0.0).then_some(0.0),
        loss_ratio: (offered > 0.0).then(|| 1.0 - goodput / offered),
        ..FlowMetrics::default()
    }
}

/// The predictions as lines over time: of the shortest window that a moment lies in.
fn series(plan: &Plan, windows: &IndexMap<String, LinkPrediction>) -> Series {
    let mut series = Series::default();
    let interval = plan.sample_interval.as_nanos().max(1);
    for k in 1..=plan.duration.as_nanos() / interval {
        let at = aqumen_units::Instant::from_nanos(k * interval);
        let shortest = plan.windows.iter().filter(|w| w.start <= at && at <= w.end).min_by_key(|w| w.end - w.start);
        let Some(here) = shortest.map(|w| &windows[&w.name]) else { continue };
        series.t_s.push(at.as_secs_f64());
        series.queue_pkts.push(here.queue_pkts);
        series.probability.push(here.probability);
    }
    series
}
