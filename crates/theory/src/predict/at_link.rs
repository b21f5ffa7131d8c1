//! One link by itself, and the flows that it holds back.

use aqumen_scenario::{Flow, Link, Plan, Window};

use super::coupled::{in_coupled_queues, two_queues};
use super::groups::{GroupClass, groups_of, most_common, together};
use super::laws::shared_by_laws;
use super::link::LinkPrediction;
use super::paths;
use super::users::{bottleneck_of, load_of, mean_bps, presence, users};
use crate::Error;
use crate::design::Analysis;
use crate::equilibrium::response::Law;
use crate::equilibrium::solver::{OperatingConditions, admitted_pps, marks};
use crate::fluid::{Model, base_rtt_s, packet_bytes};

/// Predicts link `number`; `analysed` analyses its conditions.
pub(super) fn at_link(
    plan: &Plan,
    number: usize,
    window: &Window,
    analysed: &mut dyn FnMut(&OperatingConditions) -> Result<Analysis, Error>,
) -> Result<LinkPrediction, Error> {
    let here = LinkLoad::new(plan, number, window);
    if here.held.is_empty() {
        return here.under_load_alone();
    }
    let most_pps = here.most_pps();
    if most_pps <= here.capacity_pps {
        return Ok(here.idle(most_pps / here.capacity_pps));
    }
    let (link, groups) = (here.link, groups_of(plan, &here.held, here.drops));
    if let Some((params, classes)) = two_queues(link, &groups) {
        if here.unresponsive_pps > 0.0 || classes.iter().all(|class| class.scalable) {
            let what = if here.unresponsive_pps > 0.0 { "unresponsive load" } else { "scalable flows alone" };
            return Err(Error::Unsupported(format!(
                "link {}: {what} in coupled queues: no operating point is known; use engine packet",
                link.name
            )));
        }
        let at = crate::multi::coupled::equilibrium(&params, here.capacity_pps, &classes);
        return in_coupled_queues(&groups, &classes, at, here.idle(1.0), here.buffer_pkts, analysed);
    }
    let conditions = here.conditions(&groups)?;
    let mut analysis = analysed(&conditions)?;
    if groups.iter().any(|group| group.class.sender != conditions.sender) {
        return shared_by_laws(&link.aqm, &link.name.to_string(), &groups, &conditions, analysis, here.idle(1.0));
    }
    let at = analysis.operating_point.at;
    // What is paced comes in no bursts. Among tosses the noise of windows is that of packets without this.
    if at.dispersion != 1.0 && !conditions.sender.paced {
        analysis.noise = analysis.noise.with_more(here.buffer_pkts, &at, paths::variance(&at, here.paths()));
    }
    Ok(LinkPrediction {
        utilization: 1.0,
        queue_pkts: analysis.expected.queue_pkts,
        probability: analysis.expected.probability,
        admitted_pps: here.admitted_pps(analysis.expected.probability),
        analysis: Some(analysis),
        ..here.idle(1.0)
    })
}

/// Mean load of a link over a window.
struct LinkLoad<'a> {
    plan: &'a Plan,
    link: &'a Link,
    /// Flows that it holds back, and for which part of the window they are there.
    held: Vec<(&'a Flow, f64)>,
    flows: f64,
    base_rtt_s: f64,
    capacity_pps: f64,
    unresponsive_pps: f64,
    buffer_pkts: f64,
    /// Size of the held flows' packets in packets of the link's mean size.
    weight: f64,
    /// Whether signals are marks for most of them, and whether the buffer's end is all that loses packets.
    ecn: bool,
    tail: bool,
    /// Whether the AQM drops ECN-capable packets, too.
    drops: bool,
}

impl<'a> LinkLoad<'a> {
    fn new(plan: &'a Plan, number: usize, window: &Window) -> Self {
        let (link, users) = (&plan.links[number], users(plan, window));
        let flows = plan.flows.iter().map(|flow| (flow, presence(flow, window)));
        let holds = |flow| load_of(plan, flow).is_none() && bottleneck_of(plan, flow, &users, window) == Some(number);
        let held: Vec<(&Flow, f64)> = flows.filter(|(flow, on)| *on > 0.0 && holds(flow)).collect();
        let (flows, base_rtt_s) = together(held.iter().map(|(flow, on)| (*on, base_rtt_s(plan, flow))));
        let transport = |flow: &Flow| &plan.groups[flow.group as usize].transport;
        let bytes = held.iter().map(|(flow, on)| on * f64::from(transport(flow).packet_bytes())).sum::<f64>() / flows;
        let marked: f64 = held.iter().filter(|(flow, _)| transport(flow).ecn()).map(|(_, on)| on).sum();
        let packet_bytes = packet_bytes(plan, number);
        let unresponsive_pps = users[number].load_bps / (8.0 * packet_bytes);
        let tail = link.aqm.name == "droptail";
        let drops = tail || !link.aqm.build().and_then(Result::ok).is_none_or(|aqm| marks(&aqm));
        LinkLoad {
            plan,
            link,
            weight: if unresponsive_pps > 0.0 && !held.is_empty() { bytes / packet_bytes } else { 1.0 },
            held,
            flows,
            base_rtt_s,
            capacity_pps: mean_bps(plan, number, window) / (8.0 * packet_bytes),
            unresponsive_pps,
            buffer_pkts: f64::from(link.limit.packets).min(link.limit.bytes.0 as f64 / packet_bytes),
            ecn: marked > 0.5 * flows && !drops,
            tail,
            drops,
        }
    }

    /// How many of the held flows have which round trip without queueing, seconds.
    fn paths(&self) -> impl Iterator<Item = (f64, f64)> {
        self.held.iter().map(|(flow, on)| (*on, base_rtt_s(self.plan, flow)))
    }

    /// Unresponsive load that gets in where the share `p` is signalled, packets/s.
    fn admitted_pps(&self, p: f64) -> f64 {
        if self.unresponsive_pps > 0.0 { self.unresponsive_pps * (1.0 - p).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Without a queue, and used so far.
    fn idle(&self, utilization: f64) -> LinkPrediction {
        LinkPrediction {
            unresponsive_pps: self.unresponsive_pps,
            admitted_pps: self.unresponsive_pps,
            weight: self.weight,
            tail: self.tail,
            ecn: self.ecn,
            utilization,
            ..LinkPrediction::idle(self.flows, self.capacity_pps, self.base_rtt_s)
        }
    }

    fn overloaded(&self) -> Error {
        Error::Unsupported(format!(
            "link {}: its unresponsive load of {:.1} packets/s leaves nothing of {:.1}; use engine fluid",
            self.link.name, self.unresponsive_pps, self.capacity_pps
        ))
    }

    /// Where no flow with windows is held back.
    fn under_load_alone(&self) -> Result<LinkPrediction, Error> {
        let load = self.unresponsive_pps / self.capacity_pps;
        match load > 1.0 {
            false => Ok(self.idle(load)),
            true if self.tail => Ok(LinkPrediction {
                queue_pkts: self.buffer_pkts,
                probability: 1.0 - 1.0 / load,
                admitted_pps: self.capacity_pps,
                ..self.idle(1.0)
            }),
            true => Err(self.overloaded()),
        }
    }

    /// Largest arrival rate, packets/s: that of windows without queueing.
    fn most_pps(&self) -> f64 {
        let window = |flow: &Flow| self.plan.groups[flow.group as usize].transport.window_pkts().unwrap_or(u32::MAX);
        let of = |(flow, on): &(&Flow, f64)| on * f64::from(window(flow)) / base_rtt_s(self.plan, flow);
        self.held.iter().map(of).sum::<f64>() * self.weight + self.unresponsive_pps
    }

    /// Operating conditions of a design here, for the most common law.
    fn conditions(&self, groups: &[GroupClass]) -> Result<OperatingConditions, Error> {
        let unknown =
            |group: &&GroupClass| group.class.sender.is_newreno_under_losses() && group.class.sender.law != Law::Reno;
        if let Some(group) = groups.iter().find(unknown) {
            let group = &self.plan.groups[group.number as usize];
            return Err(Error::Unsupported(format!(
                "group {}: under losses without SACK only Reno's windows are known, not congestion = \"{}\"; use SACK, ECN or engine packet",
                group.name,
                group.transport.congestion().unwrap_or("none")
            )));
        }
        let sender = most_common(groups.iter().map(|group| (group.class.flows, group.class.sender)));
        let model = if sender.is_newreno_under_losses() { Model::Drop } else { Model::Reno };
        let conditions = OperatingConditions {
            model,
            // With flows of `weight` each, windows are in packets of their own while the rest is in packets of the
            // link.
            flows: self.flows * self.weight,
            capacity_pps: self.capacity_pps,
            unresponsive_pps: self.unresponsive_pps,
            base_rtt_s: self.base_rtt_s,
            buffer_pkts: self.buffer_pkts,
            sender,
        };
        match model {
            _ if self.unresponsive_pps == 0.0 => Ok(conditions),
            Model::Drop if self.unresponsive_pps >= self.capacity_pps => Err(self.overloaded()),
            // Its balance counts what is lost.
            Model::Drop => Ok(conditions),
            Model::Ecn | Model::Hollot | Model::Reno => {
                let unresponsive_pps = admitted_pps(&self.link.aqm, &conditions, self.unresponsive_pps)?;
                Ok(OperatingConditions { unresponsive_pps, ..conditions })
            }
        }
    }
}
