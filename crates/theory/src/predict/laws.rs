//! A queue that flows of several laws share: its equilibrium with the AQM, and the signal probability there.

use aqumen_aqm::registry::AnyAqm;
use aqumen_aqm::{Aqm, Equilibrium};
use aqumen_scenario::AqmChoice;
use aqumen_units::Probability;

use super::groups::GroupClass;
use super::link::LinkPrediction;
use crate::Error;
use crate::design::{Analysis, around_many, heard, no_share};
use crate::equilibrium::response::{Sender, Table};
use crate::equilibrium::solver::{OperatingConditions, coupling_of, drops_above, target_pkts};
use crate::linear::noise::Fineness;
use crate::linear::{Controller, Loop, OperatingPoint, settling_s};
use crate::noise::mean_field::MeanField;
use crate::noise::packet_noise::{self, Noise};
use crate::noise::spaced_signals::{LinearisedAqm, QueueNoise};
use crate::root_finding::{halved, halved_ratio};

/// Predicts a link at `conditions` that would be `idle` without these groups; `analysis`: that of one law alone.
pub(super) fn shared_by_laws(
    choice: &AqmChoice,
    link: &str,
    groups: &[GroupClass],
    conditions: &OperatingConditions,
    mut analysis: Analysis,
    idle: LinkPrediction,
) -> Result<LinkPrediction, Error> {
    let Some(aqm) = choice.build().and_then(Result::ok) else {
        return Err(Error::Unsupported(format!(
            "link {link}: flows of different laws under {}: no equilibrium is known; use engine packet",
            choice.name
        )));
    };
    let target_pkts = target_pkts(choice, &aqm, conditions);
    let (laws, p, queue_pkts) = Laws::at_equilibrium(aqm, groups, (conditions, target_pkts), idle.unresponsive_pps);
    let wait = queue_pkts / conditions.capacity_pps;
    let admitted = |p: f64| idle.unresponsive_pps * (1.0 - p);
    let [marked, dropped_pps] = [false, true].map(|losses| laws.signals(p, losses));
    let arrivals_pps = laws.sent(p);
    let probability = (marked + dropped_pps) / arrivals_pps;
    let scalable = groups.iter().any(|group| group.class.sender.is_scalable());
    let dropped = drops_above(&laws.aqm, p).filter(|_| scalable);
    let asked = analysis.margins.is_some();
    analysis.margins = None;
    analysis.expected.probability = probability;
    analysis.expected.settling_s = None;
    analysis.expected.oscillation_period_s = None;
    analysis.expected.oscillation_std_pkts = None;
    analysis.expected.oscillation_signals = None;
    analysis.expected.coexisting_period_s = None;
    analysis.expected.coexisting_std_pkts = None;
    analysis.expected.oscillates = None;
    let at = &mut analysis.operating_point.at;
    (at.probability, at.queue_pkts, at.rtt_s) = (p, queue_pkts, conditions.base_rtt_s + wait);
    at.window_pkts = laws.sent(p) * at.rtt_s / conditions.flows;
    at.losses = groups.iter().any(|group| group.class.sender.losses);
    analysis.expected.queue_pkts = queue_pkts;
    analysis.expected.offset_pkts = target_pkts.map(|target| queue_pkts - target);
    analysis.noise = if conditions.unresponsive_pps > 0.0 {
        Noise::none("flows of different laws and unresponsive load share the queue".into())
    } else if asked {
        let held = packet_noise::QueueBounds { target_pkts, buffer_pkts: conditions.buffer_pkts };
        let (noise, settling_s) = laws.noise(choice, conditions.capacity_pps, held, &analysis.operating_point.at);
        analysis.expected.settling_s = settling_s;
        noise
    } else {
        Noise::none("the loop was not requested".into())
    };
    let of_one_law = ["unstable", "little margin", "out of reach", "windows of"];
    analysis.warnings.retain(|warning| !of_one_law.iter().any(|what| warning.starts_with(what)));
    let analysis = match dropped {
        Some(limit) => analysis.without_signals(no_share(limit)),
        None => analysis,
    };
    Ok(LinkPrediction {
        queue_pkts,
        probability: analysis.expected.probability,
        admitted_pps: admitted(p),
        own: laws.known.iter().map(|each| (each.group.number, laws.carried(each, p), wait)).collect(),
        signalled: (idle.unresponsive_pps == 0.0).then_some([marked / arrivals_pps, dropped_pps / arrivals_pps]),
        analysis: Some(analysis),
        ..idle
    })
}

/// Rounds of halving in the search for the queue.
const ROUNDS: u32 = 22;

/// Flows of one group: their round trip with the queue, seconds, and their windows there.
struct TabulatedGroup<'a> {
    group: &'a GroupClass,
    rtt_s: f64,
    table: Table,
}

/// The laws of all groups at one queue.
struct Laws<'a> {
    aqm: AnyAqm,
    known: Vec<TabulatedGroup<'a>>,
}

impl<'a> Laws<'a> {
    /// The laws at the equilibrium of the queue, its signal probability and its length, packets. `unresponsive_pps`:
    /// load of which a fraction p is dropped.
    fn at_equilibrium(
        aqm: AnyAqm,
        groups: &'a [GroupClass],
        (conditions, target_pkts): (&OperatingConditions, Option<f64>),
        unresponsive_pps: f64,
    ) -> (Self, f64, f64) {
        let (capacity_pps, buffer_pkts) = (conditions.capacity_pps, conditions.buffer_pkts);
        let balanced = |aqm: &AnyAqm, queue_pkts: f64| {
            let laws = Laws::new(aqm.clone(), groups, queue_pkts / capacity_pps);
            let excess = |p: f64| laws.rate(p) + unresponsive_pps * (1.0 - p) - capacity_pps;
            let (p, _) = halved_ratio(excess, (1e-10, 1.0), 60);
            (laws, p)
        };
        let queue_pkts = match (aqm.theory().adaptation_center_pkts(), aqm.theory().equilibrium(), target_pkts) {
            (Some(centre), ..) => centre.min(buffer_pkts),
            (None, Equilibrium::AtTarget | Equilibrium::AtMeasuredTarget, Some(target)) => target.min(buffer_pkts),
            (None, Equilibrium::OffTarget, Some(target)) => {
                // The offset rises with p, which falls with the queue.
                let excess = |queue: f64| {
                    let p = Probability::clamp(balanced(&aqm, queue).1);
                    target + aqm.theory().offset_pkts(p) - queue
                };
                halved(excess, (0.0, buffer_pkts), ROUNDS).0
            }
            (None, Equilibrium::OnCurve(red), _) => {
                let top = buffer_pkts.min(red.curve.end());
                halved(|queue| balanced(&aqm, queue).1 - red.probability(queue), (0.0, top), ROUNDS).0
            }
            _ => buffer_pkts,
        };
        let (laws, p) = balanced(&aqm, queue_pkts);
        let adapted = aqm.theory().adaptation_center_pkts().and_then(|_| laws.aqm.adapted(p));
        match adapted {
            Some((settled, _)) => (Laws { aqm: settled, ..laws }, p, queue_pkts),
            None => (laws, p, queue_pkts),
        }
    }

    fn new(aqm: AnyAqm, groups: &'a [GroupClass], wait: f64) -> Self {
        let known = groups.iter().map(|group| {
            let rtt_s = group.class.base_rtt_s + wait;
            TabulatedGroup { group, rtt_s, table: group.class.sender.table(rtt_s) }
        });
        Laws { known: known.collect(), aqm }
    }

    /// Signal probability of a sender's flows where that of all others is p: PI2 marks ECT(1) with k times the root.
    fn signal(&self, sender: &Sender, p: f64) -> f64 {
        coupling_of(&self.aqm, sender).map_or(p, |k| (k * p.sqrt()).min(1.0))
    }

    fn window(&self, each: &TabulatedGroup<'_>, p: f64) -> f64 {
        each.table.window(self.signal(&each.group.class.sender, p))
    }

    /// Window of a group's flows without what is lost of it, packets.
    fn carried(&self, each: &TabulatedGroup<'_>, p: f64) -> f64 {
        self.window(each, p) * each.group.class.sender.passed(p)
    }

    /// Rate of a group's flows through the queue, packets/s.
    fn rate_of(&self, each: &TabulatedGroup<'_>, p: f64) -> f64 {
        each.group.class.flows * self.carried(each, p) / each.rtt_s
    }

    fn rate(&self, p: f64) -> f64 {
        self.known.iter().map(|each| self.rate_of(each, p)).sum()
    }

    /// Rate at which a group's packets arrive at the queue, packets/s.
    fn sent_of(&self, each: &TabulatedGroup<'_>, p: f64) -> f64 {
        each.group.class.flows * self.window(each, p) / each.rtt_s
    }

    fn sent(&self, p: f64) -> f64 {
        self.known.iter().map(|each| self.sent_of(each, p)).sum()
    }

    /// Losses, or marks, a second.
    fn signals(&self, p: f64, losses: bool) -> f64 {
        let known = self.known.iter().filter(|each| each.group.class.sender.losses == losses);
        known.map(|each| self.signal(&each.group.class.sender, p) * self.sent_of(each, p)).sum::<f64>() + 0.0
    }

    /// Packet noise around the equilibrium at `at.probability`, and how long a start lasts, seconds.
    fn noise(
        &self,
        choice: &AqmChoice,
        capacity_pps: f64,
        held: packet_noise::QueueBounds,
        at: &OperatingPoint,
    ) -> (Noise, Option<f64>) {
        let Some((controller, _)) = Controller::from_built(&self.aqm, choice, at) else {
            return (Noise::none("there is no linear controller".into()), None);
        };
        let p = at.probability;
        let class = |each: &TabulatedGroup<'_>| {
            let sender = each.group.class.sender;
            let slope = coupling_of(&self.aqm, &sender).map_or(1.0, |k| 0.5 * k / p.sqrt());
            let signals = [self.signal(&sender, p), slope];
            (sender, each.group.class.flows, signals, each.rtt_s, self.window(each, p))
        };
        let classes: Vec<_> = self.known.iter().map(class).collect();
        let field = MeanField::from_one_queue(capacity_pps, self.aqm.theory().dispersion(p), &classes);
        let closed = Loop::new(field, controller);
        let margins = closed.margins();
        let settling_s = settling_s(&closed, &margins);
        if QueueNoise::applies_to(&self.aqm) {
            let linearised = LinearisedAqm { aqm: &self.aqm, controller: &closed.controller, gain: 1.0, steps: None };
            let around = QueueNoise::around(&linearised, at, (closed.plant.clone(), 1.0));
            return (heard(held, around, Fineness::FINE), settling_s);
        }
        (around_many(held, at, margins.stable, &closed), settling_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::{Depth, analyse_to};
    use crate::equilibrium::response::Law;
    use crate::fluid::Model;
    use crate::predict::testing::{choice, group, idle};
    use crate::testing::CONDITIONS;

    #[test]
    fn flows_of_one_law_in_two_groups_have_the_noise_of_one() {
        for law in [Law::Reno, Law::Prague] {
            let (choice, groups) = (choice("pi2"), [group(0, law, 50.0), group(1, law, 30.0)]);
            let conditions = OperatingConditions {
                model: Model::Reno,
                flows: 80.0,
                capacity_pps: 12_000.0,
                base_rtt_s: 0.03,
                buffer_pkts: 1000.0,
                sender: groups[0].class.sender,
                ..CONDITIONS
            };
            let alone = analyse_to(Depth::Loop, &choice, &conditions).unwrap();
            let shared = shared_by_laws(&choice, "link", &groups, &conditions, alone.clone(), idle()).unwrap();
            let [known, found] = [&alone, shared.analysis.as_ref().unwrap()]
                .map(|analysis| analysis.noise.queue_std_pkts.unwrap_or_else(|| panic!("{:?}", analysis.noise)));
            assert!((found / known - 1.0).abs() < 0.01, "{law:?}: {found} {known}");
            let p = alone.expected.probability;
            assert!((shared.probability / p - 1.0).abs() < 0.01, "{law:?}: {} {p}", shared.probability);
        }
    }
}
