//! From a plan to classes and queues.

use std::collections::BTreeMap;

use aqumen_aqm::{Aqm, FluidModel};
use aqumen_scenario::Protocol;
use aqumen_scenario::{AqmChoice, Flow, Group, Link, Plan, Traffic};
use aqumen_units::Instant;

use super::control::Control;
use super::model::{Class, Join, Model, Network, Queue};
use crate::Error;

/// Flows of a group whose base RTTs are within this ratio share an average window.
const RTT_RATIO: f64 = 1.25;
/// The most classes that a group's spread of RTTs makes.
const RTT_CLASSES_MAX: usize = 8;

/// Key of a class: the group of its flows, and the queues on their path.
type ClassKey = (u32, Vec<usize>);

/// Load that a flow of unresponsive traffic offers on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Load {
    /// Packets per second, the mean over periods ON and OFF.
    pub(crate) pps: f64,
    /// Mean size of a packet on the wire, bytes.
    pub(crate) packet_bytes: f64,
    /// Payload of each packet.
    pub(crate) payload_bytes: f64,
}

/// Load of a flow of `group` that nothing slows down: UDP below an application whose mean rate is known.
pub(crate) fn unresponsive(group: &Group) -> Option<Load> {
    let Protocol::Udp(_) = group.transport else { return None };
    let offered = group.traffic.offered()?;
    // A message above the size of a packet takes several, each with all headers.
    let pieces = libm::ceil(offered.bytes / f64::from(group.transport.payload_bytes())).max(1.0);
    let payload_bytes = offered.bytes / pieces;
    let packet_bytes = payload_bytes + f64::from(group.transport.header_bytes());
    Some(Load { pps: offered.per_second * pieces, packet_bytes, payload_bytes })
}

/// Refuses a plan whose applications are neither transfers as fast as they can nor unresponsive, or whose windows
/// follow another law than Reno's: the equations are those of its windows and of constant rates.
pub(crate) fn known_traffic(plan: &Plan) -> Result<(), Error> {
    for group in &plan.groups {
        if let Some(law) = group.transport.congestion().filter(|law| *law != "reno") {
            return Err(Error::Unsupported(format!(
                "group {}: the equations know Reno's windows alone, not congestion = \"{law}\"; use engine packet",
                group.name
            )));
        }
    }
    known_applications(plan, |_| false)
}

/// Refuses a plan whose applications are neither transfers as fast as they can, unresponsive nor known `besides`.
pub(crate) fn known_applications(plan: &Plan, besides: impl Fn(&Group) -> bool) -> Result<(), Error> {
    let udp = |group: &Group| matches!(group.transport, Protocol::Udp(_));
    for group in &plan.groups {
        let name = &group.name;
        if unresponsive(group).is_some() || !udp(group) && group.traffic == Traffic::Bulk || besides(group) {
            continue;
        }
        return Err(Error::Unsupported(match group.traffic {
            Traffic::Bulk => {
                format!("group {name}: a transfer over UDP has no rate that the equations know; use engine packet")
            }
            _ => format!(
                "group {name}: the equations know bulk transfers alone, not {}; use engine packet",
                group.traffic.kind()
            ),
        }));
    }
    Ok(())
}

/// The classes and queues of `plan`. Queues are made of the recorded links, in the order of the plan, and of shared
/// links that are narrower than every recorded link of a path. Where `model` is left out, flows that are ECN-capable
/// follow [`Model::Reno`], others [`Model::Drop`].
pub fn network(plan: &Plan, model: Option<Model>) -> Result<Network, Error> {
    only_wires(plan)?;
    known_traffic(plan)?;
    let links = modelled_links(plan);
    let number = |link: u32| links.iter().position(|&known| known == link as usize);
    // The order of a BTreeMap, so that a plan gives the same classes on every machine.
    let mut alike: BTreeMap<ClassKey, Vec<(f64, &Flow)>> = BTreeMap::new();
    for flow in &plan.flows {
        let path: Vec<usize> = flow.path.iter().filter_map(|&link| number(link)).collect();
        alike.entry((flow.group, path)).or_default().push((base_rtt_s(plan, flow), flow));
    }
    let mut classes = Vec::new();
    for ((group, path), mut flows) in alike {
        flows.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (shortest, longest) = (flows[0].0, flows[flows.len() - 1].0);
        let spread = libm::log(longest / shortest) / libm::log(RTT_RATIO);
        let load = unresponsive(&plan.groups[group as usize]);
        let parts = if load.is_some() { 1 } else { (libm::ceil(spread) as usize).clamp(1, RTT_CLASSES_MAX) };
        for part in 0..parts {
            let edge = |k: usize| shortest + (longest - shortest) * k as f64 / parts as f64;
            let members: Vec<_> = flows
                .iter()
                .filter(|(rtt, _)| (part == 0 || *rtt > edge(part)) && (part + 1 == parts || *rtt <= edge(part + 1)))
                .collect();
            if members.is_empty() {
                continue;
            }
            let transport = &plan.groups[group as usize].transport;
            let payload = f64::from(transport.payload_bytes());
            let mut joins: Vec<Join> = members
                .iter()
                .flat_map(|(_, flow)| {
                    flow.on.iter().map(|&(from, until)| Join {
                        flows: 1.0,
                        from_ns: from.as_nanos(),
                        until_ns: until.map(|until| until.as_nanos()),
                        transfer_pkts: flow.transfer.map(|bytes| bytes.0 as f64 / payload),
                    })
                })
                .collect();
            joins.sort_by_key(|join| join.from_ns);
            classes.push(Class {
                group,
                members: members.len() as f64,
                model: match (load, model) {
                    (None, Some(model)) => model,
                    (None, None) if transport.ecn() => Model::Reno,
                    _ => Model::Drop,
                },
                rate_pps: load.map(|load| load.pps),
                base_rtt_s: members.iter().map(|(rtt, _)| rtt).sum::<f64>() / members.len() as f64,
                path: path.clone(),
                packet_bytes: load.map_or(f64::from(transport.packet_bytes()), |load| load.packet_bytes),
                initial_window: f64::from(transport.initial_window_pkts()).max(1.0),
                min_window: 1.0,
                max_window: f64::from(transport.window_pkts().unwrap_or(u32::MAX))
                    .max(f64::from(transport.initial_window_pkts())),
                joins,
            });
        }
    }
    let queues = links.iter().map(|&link| queue(plan, link)).collect::<Result<_, _>>()?;
    Ok(Network { classes, queues, sample_at_start: false })
}

/// Refuses links that are more than rates and a delay: these models have nothing else.
pub(crate) fn only_wires(plan: &Plan) -> Result<(), Error> {
    match plan.links.iter().find(|link| link.line.is_some()) {
        None => Ok(()),
        Some(link) => Err(Error::Unsupported(format!(
            "link {}: channels, losses, outages and changes of delay or AQM need engine packet",
            link.name
        ))),
    }
}

/// Numbers of the links that become queues.
pub(crate) fn modelled_links(plan: &Plan) -> Vec<usize> {
    let mut users = vec![0u32; plan.links.len()];
    for flow in &plan.flows {
        for &link in &flow.path {
            users[link as usize] += 1;
        }
    }
    let mut modelled: Vec<bool> = plan.links.iter().map(|link| link.record).collect();
    for flow in &plan.flows {
        let rates = |record: bool| {
            let of_kind =
                flow.path.iter().map(|&link| &plan.links[link as usize]).filter(move |link| link.record == record);
            of_kind.map(slowest_bps)
        };
        let narrowest = rates(true).min().unwrap_or(u64::MAX);
        for &link in &flow.path {
            let link = link as usize;
            modelled[link] |= users[link] > 1 && slowest_bps(&plan.links[link]) < narrowest;
        }
    }
    (0..plan.links.len()).filter(|&link| modelled[link]).collect()
}

/// Mean size of the packets that cross a link, bytes; of the nominal network if none does. Flows with windows count
/// alike, and take what unresponsive load leaves of the first capacity, were nothing of it lost.
pub(crate) fn packet_bytes(plan: &Plan, link: usize) -> f64 {
    let (mut sizes, mut flows, mut load_bps, mut load_pps) = (0.0, 0.0, 0.0, 0.0);
    for flow in plan.flows.iter().filter(|flow| flow.path.contains(&(link as u32))) {
        let group = &plan.groups[flow.group as usize];
        if let Some(load) = unresponsive(group) {
            let pps = load.pps * time_on(flow, Instant::ZERO, Instant::ZERO + plan.duration);
            load_pps += pps;
            load_bps += 8.0 * pps * load.packet_bytes;
        } else {
            sizes += f64::from(group.transport.packet_bytes());
            flows += 1.0;
        }
    }
    let of_load = load_bps / (8.0 * load_pps);
    match (flows > 0.0, load_pps > 0.0) {
        (false, false) => plan.links[link].aqm.network.packet_bytes,
        (false, true) => of_load,
        (true, false) => sizes / flows,
        (true, true) => {
            let share = (load_bps / plan.links[link].rates[0].1.as_bps() as f64).min(1.0);
            1.0 / (share / of_load + (1.0 - share) / (sizes / flows))
        }
    }
}

/// Share of the time from `start` to `end` in which `flow` is on.
pub(crate) fn time_on(flow: &Flow, start: Instant, end: Instant) -> f64 {
    let length = (end - start).as_secs_f64();
    let on = flow.on.iter().map(|&(from, until)| {
        let until = until.unwrap_or(end).min(end);
        until.saturating_since(from.max(start)).as_secs_f64()
    });
    if length > 0.0 { on.sum::<f64>() / length } else { 0.0 }
}

fn slowest_bps(link: &Link) -> u64 {
    link.rates.iter().map(|(_, rate)| rate.as_bps()).min().unwrap_or(u64::MAX)
}

/// Propagation and transmission on the way there and back, without waiting, seconds.
pub(crate) fn base_rtt_s(plan: &Plan, flow: &Flow) -> f64 {
    let transport = &plan.groups[flow.group as usize].transport;
    let way = |links: &[u32], bytes: u16| -> f64 {
        let time = |&link: &u32| {
            let link = &plan.links[link as usize];
            link.delay.as_secs_f64() + f64::from(bytes) * 8.0 / link.rates[0].1.as_bps() as f64
        };
        links.iter().map(time).sum()
    };
    way(&flow.path, transport.packet_bytes()) + way(&flow.return_path, transport.ack_bytes())
}

fn queue(plan: &Plan, number: usize) -> Result<Queue, Error> {
    let link = &plan.links[number];
    let bytes = packet_bytes(plan, number);
    Ok(Queue {
        rates: link.rates.iter().map(|&(at, rate)| (at.as_nanos(), rate.as_bps() as f64 / (8.0 * bytes))).collect(),
        buffer_pkts: f64::from(link.limit.packets).min(link.limit.bytes.0 as f64 / bytes),
        packet_bytes: bytes,
        unresponsive_pps: 0.0,
        initial_pkts: 0.0,
        initial_average_pkts: 0.0,
        control: control(&link.name.to_string(), &link.aqm, mean_rtt_s(plan, number), bytes)?,
    })
}

/// Mean round trip without queueing of the flows with windows that cross a link, seconds; `None` without any.
fn mean_rtt_s(plan: &Plan, link: usize) -> Option<f64> {
    let crosses = |flow: &&Flow| flow.path.contains(&(link as u32));
    let windows = |flow: &&Flow| unresponsive(&plan.groups[flow.group as usize]).is_none();
    let all: Vec<f64> = plan.flows.iter().filter(crosses).filter(windows).map(|flow| base_rtt_s(plan, flow)).collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

/// The AQM that `choice` builds as a fluid queue has it; `link` is the name in errors. `rtt_s`: mean round trip of its
/// flows without queueing, for an AQM that measures it.
pub fn control(link: &str, choice: &AqmChoice, rtt_s: Option<f64>, packet_bytes: f64) -> Result<Control, Error> {
    let (name, aqm) = (link.to_string(), choice.name.clone());
    let mut built = match choice.build() {
        None => return Err(Error::UnknownAqm { link: name, aqm }),
        Some(Err(source)) => return Err(Error::Aqm { link: name, aqm, source: Box::new(source) }),
        Some(Ok(built)) => built,
    };
    match built.theory().fluid_model() {
        FluidModel::BufferOnly => return Ok(Control::None),
        FluidModel::Red(law) => return Ok(Control::Red(law)),
        FluidModel::KnownRoundTrip => {
            let known = rtt_s.and_then(|rtt_s| built.in_fluid(rtt_s, packet_bytes));
            return known.map(Control::Law).ok_or(Error::NoLaw { link: name, aqm });
        }
        FluidModel::Algorithm => {}
    }
    Ok(if built.law_mut().is_some() { Control::Law(built) } else { Control::Packets(built) })
}
