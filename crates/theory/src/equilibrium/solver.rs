//! Equilibrium of an AQM with the queue of a network, and the AQM's parameters there.

use aqumen_aqm::registry::AnyAqm;
use aqumen_aqm::{Aqm, Equilibrium, EstimateRatios, Kind, Limit, MaxPSteps, Qdisc, QueueOperatingPoint, Unit, Value};
use aqumen_scenario::{AqmChoice, OwnedValue};

use crate::Error;
use crate::equilibrium::sender::{Law, Sender};
use crate::fluid::Model;
use crate::linear::{Controller, OperatingPoint};

/// The network in which a design is to work; it need not be the one it was made for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OperatingConditions {
    /// The fluid model.
    pub model: Model,
    /// Number of long-lived flows, N.
    pub flows: f64,
    /// Capacity, C, packets/s.
    pub capacity_pps: f64,
    /// Traffic that ignores signals, u0, packets/s.
    pub unresponsive_pps: f64,
    /// Round trips that a transfer takes, where that traffic is short transfers; 0 where it is not.
    pub transfer_rtts: f64,
    /// Round-trip time without queueing, T_p, seconds.
    pub base_rtt_s: f64,
    /// Room of the queue, packets.
    pub buffer_pkts: f64,
    /// Sender whose windows model `reno` describes.
    pub sender: Sender,
}

impl OperatingConditions {
    /// Whether no mean window stands for those of its senders: each has a chain of its own.
    pub(crate) fn has_many_windows(&self) -> bool {
        self.model == Model::Reno && !self.sender.has_closed_form()
    }
}

/// Operating point of `choice` at `conditions`, and its controller there, if it has one.
pub fn linearise(
    choice: &AqmChoice,
    conditions: &OperatingConditions,
) -> Result<(OperatingPoint, Option<Controller>), Error> {
    let (choice, _) = &alone(choice)?;
    let AqmEquilibrium { built, at, .. } = AqmEquilibrium::new(choice, conditions)?;
    Ok((at, Controller::from_built(&built, choice, &at).map(|(controller, _)| controller)))
}

/// Equilibrium of an AQM and the queue of a network.
pub(crate) struct AqmEquilibrium {
    /// As it acts there.
    pub(crate) built: AnyAqm,
    pub(crate) at: OperatingPoint,
    /// Its target, packets.
    pub(crate) target_pkts: Option<f64>,
    /// Which of its parameters has adapted there.
    pub(crate) adapted: Option<AdaptedParameter>,
}

impl AqmEquilibrium {
    /// Equilibrium of `choice` at `conditions`.
    pub(crate) fn new(choice: &AqmChoice, conditions: &OperatingConditions) -> Result<Self, Error> {
        AqmEquilibrium::from_built(build(choice)?, choice, conditions)
    }

    /// Equilibrium of the AQM that `choice` has built.
    pub(crate) fn from_built(
        built: AnyAqm,
        choice: &AqmChoice,
        conditions: &OperatingConditions,
    ) -> Result<Self, Error> {
        let target_pkts = target_pkts(choice, &built, conditions);
        let (built, adapted) = match adapted(&built, conditions)? {
            Some((settled, adapted)) => (settled, Some(adapted)),
            None => (built, None),
        };
        let at = operating_point(&built, conditions, target_pkts)?;
        let measured = built.theory().equilibrium() == Equilibrium::AtMeasuredTarget;
        let target_pkts = if measured { Some(at.queue_pkts) } else { target_pkts };
        Ok(AqmEquilibrium { built, at, target_pkts, adapted })
    }
}

/// The AQM, if anything can be said of it.
pub(crate) fn build(choice: &AqmChoice) -> Result<AnyAqm, Error> {
    let (link, aqm) = ("design".into(), choice.name.clone());
    match choice.build() {
        None => Err(Error::UnknownAqm { link, aqm }),
        Some(Err(source)) => Err(Error::Aqm { link, aqm, source: Box::new(source) }),
        Some(Ok(mut built)) => {
            let theory = built.theory();
            if let Some(why) = theory.not_linearizable() {
                return Err(Error::NoSlope { aqm, why });
            }
            let rests = theory.equilibrium() != Equilibrium::AtTarget || theory.adaptation_center_pkts().is_some();
            if rests || built.law_mut().is_some() { Ok(built) } else { Err(Error::NoLaw { link, aqm }) }
        }
    }
}

/// Refusal of an AQM that only packets can show.
fn packets_alone(aqm: &str, why: &str) -> Error {
    Error::Unsupported(format!("{aqm} has no linear law: {why}; engine packet runs it"))
}

/// Reduces a discipline of several queues to its AQM for traffic of one kind, and names that AQM;
/// `choice` itself of one queue.
pub(crate) fn alone(choice: &AqmChoice) -> Result<(AqmChoice, Option<&'static str>), Error> {
    if choice.build().is_some() {
        return Ok((choice.clone(), None));
    }
    match choice.build_qdisc(Limit::packets(u32::MAX)) {
        None => Ok((choice.clone(), None)),
        Some(Err(source)) => {
            Err(Error::Aqm { link: "design".into(), aqm: choice.name.clone(), source: Box::new(source) })
        }
        Some(Ok(qdisc)) => {
            let alone = qdisc.single_queue_equivalent().map_err(|why| packets_alone(&choice.name, why))?;
            let values = alone.values.iter().map(|(name, value)| (name.to_string(), OwnedValue::Number(*value)));
            Ok((AqmChoice::builtin(alone.algorithm, values.collect(), choice.network), Some(alone.traffic)))
        }
    }
}

/// A parameter that has adapted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdaptedParameter {
    pub(crate) name: &'static str,
    /// Where it rests.
    pub(crate) value: f64,
    /// By what it moves on among noise.
    pub(crate) steps: Option<MaxPSteps>,
}

/// The AQM as it acts around its rest, and the parameter that has adapted there; `None` where none does.
pub(crate) fn adapted(
    aqm: &AnyAqm,
    conditions: &OperatingConditions,
) -> Result<Option<(AnyAqm, AdaptedParameter)>, Error> {
    let Some(queue) = aqm.theory().adaptation_center_pkts() else { return Ok(None) };
    let OperatingConditions { model, flows, capacity_pps, unresponsive_pps, base_rtt_s, .. } = *conditions;
    let needed = OperatingPoint::new(model, flows, capacity_pps, unresponsive_pps, base_rtt_s, queue)?;
    let needed = needed.with_sender(&conditions.sender).probability;
    Ok(aqm.adapted(needed).map(|(settled, (name, value))| {
        let steps = aqm.theory().max_p_steps(value);
        (settled, AdaptedParameter { name, value, steps })
    }))
}

/// The target queue, packets: as given, or what a target delay makes of it at this capacity.
pub(crate) fn target_pkts(choice: &AqmChoice, aqm: &AnyAqm, conditions: &OperatingConditions) -> Option<f64> {
    if let Some(delay) = number(aqm, "target_delay") {
        return Some(delay * conditions.capacity_pps);
    }
    let target = number(aqm, "target")?;
    let row = choice.catalogue.find(&choice.name)?.params.iter().find(|row| row.name == "target")?;
    match row.kind {
        Kind::Number { unit: Unit::Seconds, .. } => Some(target * conditions.capacity_pps),
        _ => Some(target),
    }
}

/// The setting `name` of an AQM, where it is a number.
fn number(aqm: &AnyAqm, name: &str) -> Option<f64> {
    let mut found = None;
    aqm.settings(&mut |key, value| {
        if let (true, Value::Number(x)) = (key == name, value) {
            found = Some(x);
        }
    });
    found
}

/// The probability above which an AQM drops packets that it would mark, where the share `p` of them is signalled
/// beyond that; `None` where it marks them.
pub(crate) fn drops_above(aqm: &AnyAqm, p: f64) -> Option<f64> {
    let mut ignored = false;
    aqm.settings(&mut |key, value| ignored |= matches!((key, value), ("use_mark_p", Value::Flag(false))));
    number(aqm, "mark_p").filter(|limit| !ignored && aqm.theory().signal_process().law_probability(p) > *limit)
}

/// Whether an AQM marks ECN-capable packets.
pub(crate) fn marks(aqm: &AnyAqm) -> bool {
    let mut marks = true;
    aqm.settings(&mut |key, value| marks &= !matches!((key, value), ("ecn", Value::Flag(false))));
    marks
}

/// k of an AQM that marks `sender`'s packets with k times the root of what its law says: PI2 and Prague.
pub(crate) fn coupling_of(aqm: &AnyAqm, sender: &Sender) -> Option<f64> {
    if sender.law == Law::Prague { number(aqm, "coupling").or(aqm.theory().coupling()) } else { None }
}

/// The operating point as the law of `aqm` sees it, in its units; packets of 1000 bytes.
fn law_view(aqm: &AnyAqm, conditions: &OperatingConditions, at: &OperatingPoint) -> QueueOperatingPoint {
    let coupled = coupling_of(aqm, &conditions.sender).map(|k| (at.probability / k) * (at.probability / k));
    OperatingPoint { probability: coupled.unwrap_or(at.probability), ..*at }.to_aqm(1000.0)
}

/// Operating point, with the dispersion of the AQM's signals.
pub(crate) fn operating_point(
    aqm: &AnyAqm,
    conditions: &OperatingConditions,
    target: Option<f64>,
) -> Result<OperatingPoint, Error> {
    operating_point_with(aqm, conditions, target, EstimateRatios::EXACT)
}

/// As [`operating_point`], of an AQM that measures the network with these `estimates`.
pub(crate) fn operating_point_with(
    aqm: &AnyAqm,
    conditions: &OperatingConditions,
    target: Option<f64>,
    estimates: EstimateRatios,
) -> Result<OperatingPoint, Error> {
    let at = holds(aqm, conditions, target, estimates)?;
    Ok(at.with_dispersion(aqm.theory().dispersion(at.probability.min(1.0))))
}

/// Operating point of the AQM, without the dispersion of its signals.
fn holds(
    aqm: &AnyAqm,
    conditions: &OperatingConditions,
    target: Option<f64>,
    estimates: EstimateRatios,
) -> Result<OperatingPoint, Error> {
    let at = |queue: f64| {
        let OperatingConditions { model, flows, capacity_pps, unresponsive_pps, base_rtt_s, .. } = *conditions;
        let at = OperatingPoint::new(model, flows, capacity_pps, unresponsive_pps, base_rtt_s, queue)?;
        Ok::<_, Error>(OperatingPoint { estimates, ..at.with_sender(&conditions.sender) })
    };
    // A response function takes a chain of windows to be solved: it is asked as seldom as may be.
    let quick = !conditions.has_many_windows();
    match (aqm.theory().equilibrium(), target) {
        (Equilibrium::OnCurve(red), _) => {
            // The curve rises with the queue, the probability that holds the queue falls with it.
            let too_low = |queue: f64| -> Result<bool, Error> {
                if quick {
                    return Ok(red.probability(queue) < at(queue)?.probability);
                }
                let rtt_s = queue / conditions.capacity_pps + conditions.base_rtt_s;
                let window = rtt_s * (conditions.capacity_pps - conditions.unresponsive_pps) / conditions.flows;
                let p = red.probability(queue);
                Ok(conditions.sender.equilibrium(p, rtt_s).window_pkts * conditions.sender.passed(p) > window)
            };
            let (mut low, mut high) = (0.0, conditions.buffer_pkts.min(red.curve.end()));
            for _ in 0..if quick { 100 } else { 24 } {
                let queue = 0.5 * (low + high);
                if too_low(queue)? {
                    low = queue;
                } else {
                    high = queue;
                }
            }
            at(high)
        }
        (equilibrium @ (Equilibrium::OffTarget | Equilibrium::AtMeasuredTarget), target)
            if target.is_some() || equilibrium == Equilibrium::AtMeasuredTarget =>
        {
            let beside = |queue: f64| -> Result<f64, Error> {
                let at = at(queue)?;
                let held = match target {
                    Some(target) => target + aqm.theory().offset_pkts(aqumen_units::Probability::clamp(at.probability)),
                    None => aqm.theory().measured_target_pkts(&law_view(aqm, conditions, &at)),
                };
                Ok(held.clamp(0.0, conditions.buffer_pkts))
            };
            let mut queue = target.unwrap_or(0.0);
            // The offset hardly depends on where the queue is.
            let (rounds, near) = if quick { (200, 0.0) } else { (24, 1e-7 * conditions.buffer_pkts) };
            let mut before: Option<(f64, f64)> = None;
            for _ in 0..rounds {
                let miss = beside(queue)? - queue;
                if miss.abs() <= near {
                    break;
                }
                // Half of the way, then along the line through the last two.
                let step = match before {
                    Some((last, missed)) if missed != miss => miss * (queue - last) / (missed - miss),
                    _ => 0.5 * miss,
                };
                before = Some((queue, miss));
                queue = (queue + step).clamp(0.0, conditions.buffer_pkts);
            }
            at(queue)
        }
        (Equilibrium::AtBufferLimit, _) => at(conditions.buffer_pkts),
        (Equilibrium::AtTarget, Some(target)) => at(target.min(conditions.buffer_pkts)),
        _ => Err(Error::Unsupported("this AQM has no target".into())),
    }
}

/// Unresponsive load that `choice` lets in, packets/s, where `offered` of it come to flows that hear of marks: u (1 -
/// p), with the p at which those flows fill what u (1 - p) leaves.
pub(crate) fn admitted_pps(choice: &AqmChoice, conditions: &OperatingConditions, offered: f64) -> Result<f64, Error> {
    // The more is let in, the less is left to the flows, and the larger the p that holds them.
    let (mut low, mut high) = (0.0, offered.min(conditions.capacity_pps * (1.0 - 1e-9)));
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        let at = AqmEquilibrium::new(choice, &OperatingConditions { unresponsive_pps: middle, ..*conditions })?.at;
        if middle < offered * (1.0 - at.probability.min(1.0)) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(0.5 * (low + high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{CONDITIONS, NETWORK, choice};

    #[test]
    fn a_target_is_so_many_packets_or_a_delay_at_this_capacity() {
        // At 2500 packets a second, twice what the AQM was made for.
        let conditions = OperatingConditions { capacity_pps: 2500.0, ..CONDITIONS };
        let of = |name: &str, values: &[(&str, f64)]| {
            let choice = choice(name, values, NETWORK);
            target_pkts(&choice, &build(&choice).unwrap(), &conditions).unwrap()
        };
        assert_eq!((of("pi", &[("target", 70.0)]), of("stpi", &[("target_delay", 0.02)])), (70.0, 50.0));
        assert_eq!(of("pi2", &[("target", 0.02)]), 50.0);
    }

    #[test]
    fn marks_become_drops_beyond_the_limit_of_an_aqm_that_has_one_in_force() {
        let of = |name: &str, values: &[(&str, f64)], p: f64| {
            drops_above(&build(&choice(name, values, NETWORK)).unwrap(), p)
        };
        assert_eq!((of("pie", &[], 0.02), of("pie", &[], 0.3)), (None, Some(0.1)));
        assert_eq!((of("pie", &[("mark_p", 0.5)], 0.3), of("pi", &[], 0.9)), (None, None));
        // RED has one for ns-2's sake, which is off.
        assert_eq!(of("red", &[("min_th", 50.0), ("max_th", 150.0), ("max_p", 0.4)], 0.2), None);
    }

    #[test]
    fn an_average_comes_to_rest_where_its_curve_says_the_share_that_holds_the_windows() {
        let built = build(&choice("red", &[("min_th", 50.0), ("max_th", 150.0), ("max_p", 0.2)], NETWORK)).unwrap();
        let Equilibrium::OnCurve(law) = built.theory().equilibrium() else { panic!("RED has a curve") };
        let modern = Sender { proportional: true, from_flight: true, min_window: 2.0, ..Sender::reno() };
        for sender in [Sender::reno(), modern] {
            for (flows, base_rtt_s) in [(20.0, 0.1), (40.0, 0.1), (20.0, 0.04)] {
                let conditions = OperatingConditions {
                    model: Model::Reno,
                    flows,
                    unresponsive_pps: 250.0,
                    base_rtt_s,
                    sender,
                    ..CONDITIONS
                };
                let at = holds(&built, &conditions, None, EstimateRatios::EXACT).unwrap();
                assert!((50.0..150.0).contains(&at.queue_pkts), "{at:?}");
                // Windows over their round trip are what the others leave of the link.
                let window = (1250.0 - 250.0) * (base_rtt_s + at.queue_pkts / 1250.0) / flows;
                assert!((at.window_pkts / window - 1.0).abs() < 1e-9, "{at:?} {window}");
                // The share goes in small jumps.
                let [less, more] = [-0.5, 0.5].map(|off| law.probability(at.queue_pkts + off));
                assert!((0.999 * less..=1.001 * more).contains(&at.probability), "{at:?}: {less} {more}");
            }
        }
    }
}
