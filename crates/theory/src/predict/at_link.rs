//! One link by itself, and the flows that it holds back.

use aqumen_scenario::{Flow, Link, Plan, Window};

use super::coupled::{in_coupled_queues, two_queues};
use super::groups::{GroupClass, groups_of, most_common, together};
use super::laws::shared_by_laws;
use super::link::LinkPrediction;
use super::paths;
use super::transfers::ShortTransfers;
use super::users::{bottleneck_of, load_of, mean_bps, presence, users};
use crate::Error;
use crate::design::{Analysis, open_loop};
use crate::equilibrium::response::Law;
use crate::equilibrium::solver::{OperatingConditions, admitted_pps, marks};
use crate::fluid::{Model, base_rtt_s, packet_bytes};
use crate::linear::noise::{Fineness, deviation_of};
use crate::linear::{FrequencyResponse, Loop, OperatingPoint};
use crate::noise::mean_field::MeanField;
use crate::noise::packet_noise::Noise;

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
    here.check_transfers(&groups, &analysis.operating_point.at)?;
    if groups.iter().any(|group| group.class.sender != conditions.sender) {
        return shared_by_laws(&link.aqm, &link.name.to_string(), &groups, &conditions, analysis, here.idle(1.0));
    }
    let at = analysis.operating_point.at;
    // What is paced comes in no bursts. Among tosses the noise of windows is that of packets without this.
    if at.dispersion != 1.0 && !conditions.sender.paced {
        let more = paths::variance(&at, here.paths());
        analysis.noise = analysis.noise.with_more(here.buffer_pkts, &at, more, "paths");
    }
    let stable = analysis.margins.as_ref().is_some_and(|margins| margins.exact.stable);
    let closed = if stable { here.closed(&conditions) } else { None };
    if !here.transfers.is_empty() && stable {
        analysis.noise = here.noise_of_transfers(closed.as_ref(), analysis.noise, &at);
    }
    if let Some(closed) = closed.filter(|_| at.dispersion == 1.0 && analysis.noise.queue_std_pkts.is_some()) {
        let more = analysis.expected.probability * here.swings(&closed, &conditions, &at);
        analysis.expected.probability = more.min(1.0);
    }
    Ok(LinkPrediction {
        utilization: 1.0,
        queue_pkts: analysis.expected.queue_pkts,
        probability: analysis.expected.probability,
        admitted_pps: here.admitted_pps(analysis.expected.probability),
        // Of transfers every packet is signalled as those of the flows are.
        signalled: (!here.transfers.is_empty()).then(|| {
            let p = analysis.expected.probability;
            if here.ecn { [p, 0.0] } else { [0.0, p] }
        }),
        analysis: Some(analysis),
        ..here.idle(1.0)
    })
}

/// Mean load of a link over a window.
struct LinkLoad<'a> {
    plan: &'a Plan,
    number: usize,
    link: &'a Link,
    /// Flows that it holds back, and for which part of the window they are there.
    held: Vec<(&'a Flow, f64)>,
    flows: f64,
    base_rtt_s: f64,
    capacity_pps: f64,
    unresponsive_pps: f64,
    /// Short transfers, which are part of that load.
    transfers: Vec<ShortTransfers>,
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
        let crosses = |group: usize| {
            let mut flows = plan.flows.iter().filter(|flow| flow.group as usize == group);
            flows.any(|flow| flow.path.contains(&(number as u32)))
        };
        let transfers = plan.groups.iter().enumerate().filter(|(group, _)| crosses(*group));
        let transfers = transfers.filter_map(|(_, group)| ShortTransfers::new(group)).collect();
        let tail = link.aqm.name == "droptail";
        let drops = tail || !link.aqm.build().and_then(Result::ok).is_none_or(|aqm| marks(&aqm));
        LinkLoad {
            plan,
            number,
            link,
            weight: if unresponsive_pps > 0.0 && !held.is_empty() { bytes / packet_bytes } else { 1.0 },
            held,
            flows,
            base_rtt_s,
            capacity_pps: mean_bps(plan, number, window) / (8.0 * packet_bytes),
            unresponsive_pps,
            transfers,
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

    /// Refuses short transfers of which no prediction holds.
    fn check_transfers(&self, groups: &[GroupClass], at: &OperatingPoint) -> Result<(), Error> {
        let Some(first) = self.transfers.first() else { return Ok(()) };
        let offered: f64 = self.transfers.iter().map(ShortTransfers::offered_bps).sum();
        let link = &self.link.name;
        let losses = groups.iter().any(|group| group.class.sender.is_newreno_under_losses());
        let what = if self.unresponsive_pps * 8.0 * packet_bytes(self.plan, self.number) > 1.000_001 * offered {
            Some("unresponsive load")
        } else if groups.iter().any(|group| group.class.sender != groups[0].class.sender) {
            Some("flows of several laws")
        } else {
            losses.then_some("losses that NewReno repairs without SACK")
        };
        if let Some(what) = what {
            let name = first.name();
            return Err(Error::Unsupported(format!(
                "link {link}: {what} beside the short transfers of group {name}: no operating point is known; use engine packet"
            )));
        }
        let share = self.unresponsive_pps / self.capacity_pps;
        match self.transfers.iter().find_map(|transfers| transfers.refusal(at, share)) {
            Some(why) => Err(Error::Unsupported(why)),
            None => Ok(()),
        }
    }

    /// Mean round trips of the short transfers, by their load; 0 without any.
    fn transfer_rtts(&self) -> f64 {
        let all: f64 = self.transfers.iter().map(ShortTransfers::offered_bps).sum();
        self.transfers.iter().map(|each| each.rounds() * each.offered_bps() / all).sum()
    }

    /// Loop of many windows at `conditions`, if there is one.
    fn closed(&self, conditions: &OperatingConditions) -> Option<Loop<MeanField>> {
        let open = open_loop(&self.link.aqm, conditions).ok()?;
        let field = open.plant.as_ref()?.field()?.clone();
        Some(Loop { plant: field, controller: open.controller?, images: 0 })
    }

    /// Power that short transfers add to the queue at `w` rad/s, through the loop.
    fn power_of_transfers(&self, closed: &Loop<MeanField>, at: &OperatingPoint, w: f64) -> f64 {
        let held: f64 = self.transfers.iter().map(|transfers| transfers.power(at, w)).sum();
        held * closed.plant.by_transfers(w).norm_sqr() / (closed.response(w) + 1.0).norm_sqr()
    }

    /// Adds the noise of short transfers, which the loop answers, to `noise`.
    fn noise_of_transfers(&self, closed: Option<&Loop<MeanField>>, noise: Noise, at: &OperatingPoint) -> Noise {
        let Some(closed) = closed else {
            return Noise::none(
                "short transfers beside ns-2's Reno, or no linear controller: their noise is not known".into(),
            );
        };
        if at.dispersion != 1.0 {
            return noise
                .doubted("short transfers beside signals that are not tosses: their noise is not known".into());
        }
        let deviation = deviation_of(|w| self.power_of_transfers(closed, at, w), at.rtt_s, Fineness::FINE);
        noise.with_more(self.buffer_pkts, at, deviation * deviation, "transfers")
    }

    /// Factor on the signal probability from its own swings. Windows go as p^e: where p swings by v of its mean's
    /// square, at frequencies at which windows follow, E[p^e] is 1 + e (e - 1) v / 2 times that of the mean, and p
    /// rises by (1 - e) v / 2 until they fill the link as before.
    fn swings(&self, closed: &Loop<MeanField>, conditions: &OperatingConditions, at: &OperatingPoint) -> f64 {
        let rest = closed.plant.dc_gain();
        let power = |w: f64| {
            let queue =
                closed.plant.power(w) / (closed.response(w) + 1.0).norm_sqr() + self.power_of_transfers(closed, at, w);
            queue * closed.controller.response(w).norm_sqr() * (closed.plant.response(w) / rest).norm_sqr()
        };
        let relative = deviation_of(power, at.rtt_s, Fineness::FINE) / at.probability;
        let elasticity = conditions.sender.elasticity(at.probability, at.rtt_s);
        1.0 + 0.5 * (1.0 - elasticity) * relative * relative
    }

    /// Unresponsive load that gets in where the share `p` is signalled, packets/s; of transfers all, in the end.
    fn admitted_pps(&self, p: f64) -> f64 {
        if !self.transfers.is_empty() {
            return self.unresponsive_pps;
        }
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
            transfer_rtts: self.transfer_rtts(),
            base_rtt_s: self.base_rtt_s,
            buffer_pkts: self.buffer_pkts,
            sender,
        };
        match model {
            _ if self.unresponsive_pps == 0.0 => Ok(conditions),
            _ if !self.transfers.is_empty() && self.unresponsive_pps >= self.capacity_pps => Err(self.overloaded()),
            _ if !self.transfers.is_empty() => Ok(conditions),
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
