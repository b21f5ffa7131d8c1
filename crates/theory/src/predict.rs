//! What the equations say of a scenario at rest, window by window, without running anything.
//!
//! Every flow is counted at the link that leaves it the least capacity; the flows counted at a link, its capacity and
//! their base RTT are taken as averages over the window. Unresponsive load that gets in takes its part of the capacity.
//! The operating point there is the answer; whether the loop is stable there says how far to trust it.

mod link;
mod paths;
mod shared;
pub(crate) mod users;

use aqumen_aqm::registry::AnyQdisc;
use aqumen_aqm::{Aqm, Limit, Rests};
use aqumen_scenario::{AqmChoice, Flow, Plan, Window};
use indexmap::IndexMap;

pub use self::link::{LinkPrediction, Prediction};
use self::shared::at_several;
use self::users::{bottleneck_of, load_of, mean_bps, presence, users};
use crate::Error;
use crate::coupled::{self, Class, Coupled};
use crate::design::{Analysis, Depth, analyse_to, around_many};
use crate::field::Field;
use crate::fluid::{Model, unresponsive};
use crate::linear::{Controller, Loop};
use crate::packet_noise::{self, Noise, Z95};
use crate::response::{Law, Sender, Table};
use crate::rest::{Place, admitted_pps, coupling_of};
use crate::zero::halved_ratio;

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
    let weight = if unresponsive_pps > 0.0 && !held.is_empty() { held_bytes / packet_bytes } else { 1.0 };
    let tail = link.aqm.name == "droptail";
    let buffer_pkts = f64::from(link.limit.packets).min(link.limit.bytes.0 as f64 / packet_bytes);
    let ecn = held.iter().filter(|(flow, _)| transport(flow).ecn()).map(|(_, on)| on).sum::<f64>() > 0.5 * flows;
    let base_rtt_s = flows / held.iter().map(|(flow, on)| on / crate::fluid::base_rtt_s(plan, flow)).sum::<f64>();
    let idle = |utilization: f64| LinkPrediction {
        unresponsive_pps,
        admitted_pps: unresponsive_pps,
        weight,
        tail,
        ecn,
        utilization,
        ..LinkPrediction::idle(flows, capacity_pps, base_rtt_s)
    };
    let overloaded = || {
        Error::Unsupported(format!(
            "link {}: its unresponsive load of {unresponsive_pps:.1} packets/s leaves nothing of {capacity_pps:.1}; use engine fluid",
            link.name
        ))
    };
    if held.is_empty() {
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
    let mut analysis = analysed(&place)?;
    if model == Model::Reno && groups.iter().any(|group| group.class.sender != sender) {
        return shared_by_laws(&link.aqm, &link.name, &groups, &place, analysis, idle(1.0));
    }
    let at = analysis.operating_point.at;
    // What is paced comes in no bursts. Among tosses the noise of windows is that of packets without this.
    if at.dispersion != 1.0 && !sender.paced {
        let base = |(flow, on): &(&Flow, f64)| (*on, crate::fluid::base_rtt_s(plan, flow));
        analysis.noise = analysis.noise.with_more(buffer_pkts, &at, paths::variance(&at, held.iter().map(base)));
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
    if why.is_none() && at.evenly {
        analysis.warnings.push(
            "the deviation takes it for chance which windows meet a mark; but each 1/p-th packet is marked and packets keep their \
             order, so that marks meet the same windows again or miss them: in packets it was .9 to 1.35 times this"
                .into(),
        );
    }
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
    let rate = |p: f64| -> f64 {
        known.iter().map(|(group, rtt_s, table)| group.class.flows * table.window(signal(group, p)) / rtt_s).sum()
    };
    // Of the load is dropped what is marked of the flows.
    let admitted = |p: f64| idle.unresponsive_pps * (1.0 - p);
    let (p, _) = halved_ratio(|p| rate(p) + admitted(p) - place.capacity_pps, (1e-10, 1.0), 60);
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
    analysis.expected.oscillation_signals = None;
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
        admitted_pps: admitted(p),
        own: known.iter().map(|(group, _, table)| (group.number, table.window(signal(group, p)), wait)).collect(),
        analysis: Some(analysis),
        ..idle
    })
}

#[cfg(test)]
mod tests {
    use aqumen_aqm::Network;
    use aqumen_units::Rate;

    use super::*;
    use crate::testing::{NETWORK, PLACE};

    fn choice(name: &str) -> AqmChoice {
        let rate = Rate::from_bps(96_000_000);
        let network = Network {
            capacity: rate,
            link_rate: rate,
            flows: 80.0,
            base_rtt_s: 0.03,
            target_pkts: 180.0,
            buffer_pkts: 1000.0,
            ..NETWORK
        };
        crate::testing::choice(name, &[], network)
    }

    fn group(number: u32, law: Law, flows: f64) -> Held {
        let sender = Sender { law, proportional: true, from_flight: true, min_window: 2.0, ..Sender::reno() };
        let class = Class { flows, base_rtt_s: 0.03, sender, scalable: law == Law::Prague };
        Held { number, class, ecn: true }
    }

    fn idle() -> LinkPrediction {
        LinkPrediction::idle(80.0, 12_000.0, 0.03)
    }

    #[test]
    fn a_deviation_of_coupled_queues_is_told_where_it_means_something() {
        let Some(Ok(AnyQdisc::DualPi2(dual))) = choice("dualpi2").build_qdisc(Limit::packets(u32::MAX)) else {
            panic!("no coupled queues")
        };
        let mut groups = [group(0, Law::Reno, 20.0), group(1, Law::Reno, 20.0), group(2, Law::Prague, 40.0)];
        (groups[0].class.base_rtt_s, groups[1].class.base_rtt_s) = (0.02, 0.04);
        let classes = groups.map(|group| group.class);
        let rest = coupled::rest(dual.params(), 12_000.0, &classes);
        let found = |groups: &[Held], at: Coupled| {
            let mut analysed = |place: &Place| analyse_to(Depth::Rest, &choice("dualpi2"), place);
            in_coupled_queues(groups, &classes, at, idle(), 1000.0, &mut analysed).unwrap()
        };
        let told = |groups: &[Held], at: Coupled| found(groups, at).analysis.unwrap().noise.why.unwrap_or_default();
        // The C queue is that of the classic flows, of both round trips: 40 / (20 / .02 + 20 / .04) s.
        let whole = found(&groups, rest.clone());
        let point = whole.analysis.unwrap().operating_point.at;
        assert!(point.flows == 40.0 && (point.base_rtt_s - 0.08 / 3.0).abs() < 1e-12, "{point:?}");
        let waits: Vec<(u32, f64)> = whole.own.iter().map(|(number, _, wait_s)| (*number, *wait_s)).collect();
        let (classic_s, low_s) = (rest.classic.delay_s, rest.low_latency.delay_s);
        assert_eq!(waits, [(0, classic_s), (1, classic_s), (2, low_s)]);
        let with = |share: f64| Coupled { delay_std_s: Some(share * rest.classic.delay_s), ..rest.clone() };
        assert_eq!((told(&groups, with(0.4)), told(&groups, with(0.49))), (String::new(), String::new()));
        assert!(told(&groups, with(0.51)).contains("runs empty too often"));
        assert!(told(&groups, Coupled { delay_std_s: None, ..rest.clone() }).contains("the loop is unstable"));
        assert!(told(&groups, Coupled { feasible: false, ..with(0.4) }).contains("no longer regulate"));
        // Whether the scalable ones can be marked is no question.
        let lost = |number: usize| {
            let mut groups = groups;
            groups[number].ecn = false;
            told(&groups, with(0.4))
        };
        assert!(lost(0).contains("signals are losses") && lost(1) == lost(0) && lost(2).is_empty());
    }

    #[test]
    fn flows_of_one_law_in_two_groups_have_the_noise_of_one() {
        for law in [Law::Reno, Law::Prague] {
            let (choice, groups) = (choice("pi2"), [group(0, law, 50.0), group(1, law, 30.0)]);
            let place = Place {
                model: Model::Reno,
                flows: 80.0,
                capacity_pps: 12_000.0,
                base_rtt_s: 0.03,
                buffer_pkts: 1000.0,
                sender: groups[0].class.sender,
                ..PLACE
            };
            let alone = analyse_to(Depth::Loop, &choice, &place).unwrap();
            let shared = shared_by_laws(&choice, "link", &groups, &place, alone.clone(), idle()).unwrap();
            let [known, found] = [&alone, shared.analysis.as_ref().unwrap()]
                .map(|analysis| analysis.noise.queue_std_pkts.unwrap_or_else(|| panic!("{:?}", analysis.noise)));
            assert!((found / known - 1.0).abs() < 0.01, "{law:?}: {found} {known}");
            let p = alone.expected.probability;
            assert!((shared.probability / p - 1.0).abs() < 0.01, "{law:?}: {} {p}", shared.probability);
        }
    }
}
