//! A queue that rests at its target and that flows of several laws share: the share that lets them fill the link.

use aqumen_aqm::registry::AnyAqm;
use aqumen_aqm::{Aqm, Equilibrium};
use aqumen_scenario::AqmChoice;

use super::groups::GroupClass;
use super::link::LinkPrediction;
use crate::Error;
use crate::design::{Analysis, around_many, no_share};
use crate::equilibrium::response::{Sender, Table};
use crate::equilibrium::solver::{OperatingConditions, coupling_of, drops_above};
use crate::linear::{Controller, Loop, OperatingPoint};
use crate::noise::mean_field::MeanField;
use crate::noise::packet_noise::{self, Noise};
use crate::root_finding::halved_ratio;

/// Predicts a link at `conditions` that would be `idle` without these groups; `analysis`: that of one law alone.
pub(super) fn shared_by_laws(
    choice: &AqmChoice,
    link: &str,
    groups: &[GroupClass],
    conditions: &OperatingConditions,
    mut analysis: Analysis,
    idle: LinkPrediction,
) -> Result<LinkPrediction, Error> {
    let built = choice.build().and_then(Result::ok);
    let Some(aqm) = built.filter(|aqm| aqm.theory().equilibrium() == Equilibrium::AtTarget) else {
        return Err(Error::Unsupported(format!(
            "link {link}: flows of different laws under {}, whose queue rests where their share says; use engine packet",
            choice.name
        )));
    };
    let queue_pkts = analysis.operating_point.at.queue_pkts.min(conditions.buffer_pkts);
    let wait = queue_pkts / conditions.capacity_pps;
    let laws = Laws::new(aqm, groups, wait);
    // Of the load is dropped what is marked of the flows.
    let admitted = |p: f64| idle.unresponsive_pps * (1.0 - p);
    let (p, _) = halved_ratio(|p| laws.rate(p) + admitted(p) - conditions.capacity_pps, (1e-10, 1.0), 60);
    let probability = laws.signals(p) / laws.rate(p);
    let scalable = groups.iter().any(|group| group.class.sender.is_scalable());
    let dropped = drops_above(&laws.aqm, p).filter(|_| scalable);
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
    analysis.noise = if conditions.unresponsive_pps > 0.0 {
        Noise::none("flows of different laws and unresponsive load share the queue".into())
    } else if asked {
        let held = packet_noise::QueueBounds { target_pkts: Some(queue_pkts), buffer_pkts: conditions.buffer_pkts };
        laws.noise(choice, conditions.capacity_pps, held, &analysis.operating_point.at)
    } else {
        Noise::none("the loop was not requested".into())
    };
    analysis.warnings.retain(|warning| !warning.starts_with("unstable") && !warning.starts_with("little margin"));
    let analysis = match dropped {
        Some(limit) => analysis.without_signals(no_share(limit)),
        None => analysis,
    };
    Ok(LinkPrediction {
        queue_pkts,
        probability: analysis.expected.probability,
        admitted_pps: admitted(p),
        own: laws.known.iter().map(|each| (each.group.number, laws.window(each, p), wait)).collect(),
        analysis: Some(analysis),
        ..idle
    })
}

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

    /// Rate of a group's flows, packets/s.
    fn rate_of(&self, each: &TabulatedGroup<'_>, p: f64) -> f64 {
        each.group.class.flows * self.window(each, p) / each.rtt_s
    }

    fn rate(&self, p: f64) -> f64 {
        self.known.iter().map(|each| self.rate_of(each, p)).sum()
    }

    /// Signals a second.
    fn signals(&self, p: f64) -> f64 {
        self.known.iter().map(|each| self.signal(&each.group.class.sender, p) * self.rate_of(each, p)).sum()
    }

    /// Packet noise around the equilibrium at `at.probability`.
    fn noise(
        &self,
        choice: &AqmChoice,
        capacity_pps: f64,
        held: packet_noise::QueueBounds,
        at: &OperatingPoint,
    ) -> Noise {
        let Some((controller, _)) = Controller::from_built(&self.aqm, choice, at) else {
            return Noise::none("there is no linear controller".into());
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
        around_many(held, at, closed.margins().stable, &closed)
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
