//! Full links of a plan that flows cross one after the other, and that hold their queues at a target: all at once.

use aqumen_aqm::registry::AnyAqm;
use aqumen_aqm::{Aqm, Rests};
use aqumen_scenario::{Flow, Plan, Window};

use super::link::LinkPrediction;
use super::users::{load_of, mean_bps, presence, users};
use crate::Error;
use crate::design::{Analysis, Depth, analyse_to};
use crate::fluid::Model;
use crate::linear::{Controller, OperatingPoint};
use crate::packet_noise::{self, Noise};
use crate::response::Sender;
use crate::rest::{Place, coupling_of};
use crate::several::{self, Crossing, Loops, Several, Stage};

/// Links that hold their queues at a target and that flows with windows share: all of them, if two or more that one
/// flow crosses are full. Else none, and each is by itself.
pub(crate) fn at_several(plan: &Plan, window: &Window, depth: Depth) -> Result<Vec<(usize, LinkPrediction)>, Error> {
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
            utilization: if full { 1.0 } else { utilization },
            queue_pkts,
            probability: at.probability,
            own: own.collect(),
            analysis: Some(analysis),
            several,
            ..LinkPrediction::idle(place.flows, place.capacity_pps, place.base_rtt_s)
        };
        (*number, predicted)
    });
    Ok(found.collect())
}
