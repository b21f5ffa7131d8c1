//! Full links of a plan that flows cross one after the other, and that hold their queues at a target: all at once.

use aqumen_aqm::registry::AnyAqm;
use aqumen_aqm::{Aqm, Equilibrium};
use aqumen_scenario::{Plan, Window};
use indexmap::IndexMap;

use super::groups::{Paths, most_common, together};
use super::link::LinkPrediction;
use super::users::{Users, load_of, mean_bps, presence, users};
use crate::Error;
use crate::design::{Analysis, Depth, analyse_to, no_share};
use crate::equilibrium::response::Sender;
use crate::equilibrium::solver::{OperatingConditions, coupling_of, drops_above};
use crate::fluid::{Model, base_rtt_s, packet_bytes};
use crate::linear::{Controller, OperatingPoint};
use crate::multi::parking_lot::{self, CoupledLoops, Crossing, LotEquilibrium, ParkingLot, Stage};
use crate::noise::packet_noise::{self, Noise};

/// Links that hold their queues at a target and that flows with windows share: all of them, if two or more that one
/// flow crosses are full. Else none, and each is by itself.
pub(crate) fn at_several(plan: &Plan, window: &Window, depth: Depth) -> Result<Vec<(usize, LinkPrediction)>, Error> {
    let users = users(plan, window);
    let links = holding(plan, &users);
    let (groups, crossings): (Vec<u32>, Vec<Crossing>) = crossings(plan, window, &links).into_iter().unzip();
    if crossings.iter().all(|crossing| crossing.stages.len() < 2) {
        return Ok(Vec::new());
    }
    let shared = SharedLinks::new(plan, window, links, groups, crossings)?;
    let rests = parking_lot::equilibrium(&shared.stages, &shared.crossings).map_err(|why| shared.refused(why))?;
    let full = |crossing: &Crossing| crossing.stages.iter().filter(|stage| rests.full[**stage]).count();
    if shared.crossings.iter().all(|crossing| full(crossing) < 2) {
        return Ok(Vec::new());
    }
    if let Some(why) = shared.unknown(&users) {
        return Err(shared.refused(why));
    }
    Ok(shared.predictions(&rests, depth == Depth::Loop))
}

/// Links that hold their queues at a target, and their AQMs.
fn holding(plan: &Plan, users: &[Users]) -> Vec<(usize, AnyAqm)> {
    let holds = |number: usize| {
        let link = &plan.links[number];
        let built = link.aqm.build().and_then(Result::ok).filter(|_| link.record && link.line.is_none())?;
        let holds =
            built.theory().not_linearizable().is_none() && built.theory().equilibrium() == Equilibrium::AtTarget;
        (holds && users[number].flows > 0.0).then_some((number, built))
    };
    (0..plan.links.len()).filter_map(holds).collect()
}

/// Flows of one group on the same way over `links`, with the number of the group.
fn crossings(plan: &Plan, window: &Window, links: &[(usize, AnyAqm)]) -> Vec<(u32, Crossing)> {
    let mut ways: IndexMap<(u32, Vec<usize>), Paths> = IndexMap::new();
    for flow in plan.flows.iter().filter(|flow| load_of(plan, flow).is_none()) {
        let crosses = |k: &usize| flow.path.iter().any(|link| *link as usize == links[*k].0);
        let stages: Vec<usize> = (0..links.len()).filter(crosses).collect();
        let on = presence(flow, window);
        if on > 0.0 && !stages.is_empty() {
            ways.entry((flow.group, stages)).or_default().push((on, base_rtt_s(plan, flow)));
        }
    }
    let crossings = ways.into_iter().filter_map(|((group, stages), flows)| {
        let sender = Sender::from_protocol(&plan.groups[group as usize].transport).ok()?;
        let (flows, base_rtt_s) = together(flows);
        Some((group, Crossing { sender, flows, base_rtt_s, stages }))
    });
    crossings.collect()
}

/// Links that hold their queues, and the flows that cross them.
struct SharedLinks<'a> {
    plan: &'a Plan,
    links: Vec<(usize, AnyAqm)>,
    /// The group of each of the crossings.
    groups: Vec<u32>,
    crossings: Vec<Crossing>,
    /// Analysis of each link by itself, and its stage.
    alone: Vec<(OperatingConditions, Analysis)>,
    stages: Vec<Stage>,
}

/// The loops of full links together: whether they are stable, their gain margin, the deviation of each stage's queue.
type LoopResult = (bool, Option<f64>, Vec<(usize, f64)>);

impl<'a> SharedLinks<'a> {
    fn new(
        plan: &'a Plan,
        window: &Window,
        links: Vec<(usize, AnyAqm)>,
        groups: Vec<u32>,
        crossings: Vec<Crossing>,
    ) -> Result<Self, Error> {
        // Each link by itself says where its law holds the queue.
        let alone = links.iter().enumerate().map(|(k, (number, _))| {
            let link = &plan.links[*number];
            let own = || crossings.iter().filter(|crossing| crossing.stages.contains(&k));
            let packet_bytes = packet_bytes(plan, *number);
            let (flows, base_rtt_s) = together(own().map(|crossing| (crossing.flows, crossing.base_rtt_s)));
            let conditions = OperatingConditions {
                model: Model::Reno,
                flows,
                capacity_pps: mean_bps(plan, *number, window) / (8.0 * packet_bytes),
                unresponsive_pps: 0.0,
                transfer_rtts: 0.0,
                base_rtt_s,
                buffer_pkts: f64::from(link.limit.packets).min(link.limit.bytes.0 as f64 / packet_bytes),
                sender: most_common(own().map(|crossing| (crossing.flows, crossing.sender))),
            };
            analyse_to(Depth::Equilibrium, &link.aqm, &conditions).map(|analysis| (conditions, analysis))
        });
        let alone = alone.collect::<Result<Vec<(OperatingConditions, Analysis)>, Error>>()?;
        let stage = |(conditions, analysis): &(OperatingConditions, Analysis)| Stage {
            capacity_pps: conditions.capacity_pps,
            queue_pkts: analysis.operating_point.at.queue_pkts.min(conditions.buffer_pkts),
        };
        Ok(SharedLinks { plan, links, groups, stages: alone.iter().map(stage).collect(), crossings, alone })
    }

    /// Names a feature that the parking-lot theory lacks.
    fn unknown(&self, users: &[Users]) -> Option<&'static str> {
        let transports = || self.groups.iter().map(|group| &self.plan.groups[*group as usize].transport);
        let coupled = |aqm: &AnyAqm| self.crossings.iter().any(|crossing| coupling_of(aqm, &crossing.sender).is_some());
        if self.links.iter().any(|(number, _)| users[*number].load_bps > 0.0) {
            return Some("with unresponsive load no operating point is known");
        }
        if transports().any(|transport| !transport.ecn()) {
            return Some("signals are losses, of which no operating point is known over several links");
        }
        let sizes: Vec<u16> = transports().map(|transport| transport.packet_bytes()).collect();
        if sizes.iter().any(|size| *size != sizes[0]) {
            return Some("packets of several sizes");
        }
        self.links.iter().any(|(_, aqm)| coupled(aqm)).then_some("a coupled law for scalable flows")
    }

    fn refused(&self, why: &str) -> Error {
        let links = self.names(|_| true).join(", ");
        Error::Unsupported(format!("links {links}, which flows share: {why}; use engine packet"))
    }

    /// Names of the links that `which` chooses by their stages.
    fn names(&self, which: impl Fn(usize) -> bool) -> Vec<String> {
        let chosen = self.links.iter().enumerate().filter(|(k, _)| which(*k));
        chosen.map(|(_, (number, _))| self.plan.links[*number].name.to_string()).collect()
    }

    /// Crossings of stage `k`, with their numbers.
    fn own(&self, k: usize) -> impl Iterator<Item = (usize, &Crossing)> {
        self.crossings.iter().enumerate().filter(move |(_, crossing)| crossing.stages.contains(&k))
    }

    /// Where stage `k` rests beside the others, and which part of its capacity is used.
    fn point(&self, k: usize, rests: &LotEquilibrium) -> (OperatingPoint, f64) {
        let (conditions, analysis) = &self.alone[k];
        let inverse = self.own(k).map(|(c, crossing)| crossing.flows / rests.rtt_s[c]).sum::<f64>();
        let used = self.own(k).map(|(c, crossing)| crossing.flows * rests.window_pkts[c] / rests.rtt_s[c]).sum::<f64>();
        let rtt_s = conditions.flows / inverse;
        let at = OperatingPoint {
            rtt_s,
            probability: rests.probability[k],
            window_pkts: used * rtt_s / conditions.flows,
            feasible: true,
            ..analysis.operating_point.at
        };
        (at, used / conditions.capacity_pps)
    }

    /// `None`: one of the links has no linear controller.
    fn closed(&self, rests: &LotEquilibrium, points: &[(OperatingPoint, f64)]) -> Option<LoopResult> {
        let controller = |((number, aqm), (at, _)): (&(usize, AnyAqm), &(OperatingPoint, f64))| {
            Controller::from_built(aqm, &self.plan.links[*number].aqm, at).map(|(controller, _)| controller)
        };
        let controllers: Vec<Option<Controller>> = self.links.iter().zip(points).map(controller).collect();
        CoupledLoops::new(&self.stages, &self.crossings, rests, &controllers).map(|loops| loops.analyse())
    }

    /// Predicts each link; `loops`: with the results of the loops.
    fn predictions(&self, rests: &LotEquilibrium, loops: bool) -> Vec<(usize, LinkPrediction)> {
        let points: Vec<(OperatingPoint, f64)> = (0..self.links.len()).map(|k| self.point(k, rests)).collect();
        let closed = loops.then(|| self.closed(rests, &points));
        let told = |k: usize| {
            let (conditions, mut analysis) = self.alone[k].clone();
            let (at, utilization) = points[k];
            let full = rests.full[k];
            let queue_pkts = if full { self.stages[k].queue_pkts } else { 0.0 };
            analysis.operating_point.at = at;
            analysis.expected.probability = at.probability;
            analysis.expected.queue_pkts = queue_pkts;
            let moved = queue_pkts - self.stages[k].queue_pkts;
            analysis.expected.offset_pkts = analysis.expected.offset_pkts.map(|_| moved);
            analysis.warnings.retain(|warning| !warning.starts_with("out of reach"));
            let held = packet_noise::QueueBounds { target_pkts: Some(queue_pkts), buffer_pkts: conditions.buffer_pkts };
            analysis.noise = match &closed {
                None => Noise::none("the loop was not requested".into()),
                _ if !full => {
                    Noise::none("the link is not full: its queue is that of packets that meet by chance".into())
                }
                Some(closed) => {
                    Noise::with_deviation(held, &at, closed.as_ref().and_then(|closed| deviation(closed, k)))
                }
            };
            let scalable = self.own(k).any(|(_, crossing)| crossing.sender.is_scalable());
            let dropped = drops_above(&self.links[k].1, at.probability).filter(|_| full && scalable);
            let analysis = match dropped {
                Some(limit) => analysis.without_signals(no_share(limit)),
                None => analysis,
            };
            let own = self
                .own(k)
                .map(|(c, crossing)| (self.groups[c], rests.window_pkts[c], rests.rtt_s[c] - crossing.base_rtt_s));
            let predicted = LinkPrediction {
                utilization: if full { 1.0 } else { utilization },
                queue_pkts,
                probability: analysis.expected.probability,
                own: own.collect(),
                analysis: Some(analysis),
                several: closed.as_ref().and_then(Option::as_ref).map(|(stable, gain_margin, _)| ParkingLot {
                    links: self.names(|k| rests.full[k]),
                    stable: *stable,
                    gain_margin: *gain_margin,
                }),
                ..LinkPrediction::idle(conditions.flows, conditions.capacity_pps, conditions.base_rtt_s)
            };
            (self.links[k].0, predicted)
        };
        (0..self.links.len()).map(told).collect()
    }
}

/// Whether all loops are stable, and the deviation of the queue of stage `k`.
fn deviation((stable, _, deviations): &LoopResult, k: usize) -> Option<(bool, f64)> {
    deviations.iter().find(|(stage, _)| *stage == k).map(|(_, deviation)| (*stable, *deviation))
}
