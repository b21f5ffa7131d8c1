//! Stability maps: a fixed controller over two quantities of the network, and what stands beside the linear loops
//! there.

use std::thread;

use aqumen_aqm::registry::AnyAqm;
use aqumen_aqm::{Aqm, Equilibrium, EstimateRatios, SignalProcess};
use aqumen_scenario::AqmChoice;

use crate::Error;
use crate::design::{NetworkPlant, around_many, branch, heard};
use crate::equilibrium::solver::{
    AqmEquilibrium, OperatingConditions, adapted, build, coupling_of, linearise, operating_point_with, target_pkts,
};
use crate::fluid::Model;
use crate::linear::noise::Fineness;
use crate::linear::{Controller, Loop, Margins, OperatingPoint, Plant, Resolution, rightmost};
use crate::noise::packet_noise::{Noise, QueueBounds};
use crate::noise::spaced_signals::{LinearisedAqm, QueueNoise};
use crate::nonlinear::cycle::coexisting;

/// A quantity that a map varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Number of flows, N.
    Flows,
    /// Base RTT, T_p, seconds.
    Rtt,
    /// Capacity, C, packets/s.
    Capacity,
    /// Queue at rest, q0, packets.
    Target,
    /// Factor on the controller.
    Gain,
    /// Estimate of the base RTT over its value, of an AQM that measures the network.
    RttEstimate,
    /// Likewise of the capacity.
    CapacityEstimate,
    /// Likewise of the number of flows, beside what the other two do to it.
    FlowsEstimate,
}

impl Axis {
    /// Whether it is an error of an estimate.
    fn is_estimate(self) -> bool {
        matches!(self, Axis::RttEstimate | Axis::CapacityEstimate | Axis::FlowsEstimate)
    }
}

/// One point of a map.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Whether a probability in [0, 1] holds the queue there.
    pub feasible: bool,
    /// Margins with the exact plant.
    pub margins: Margins,
    /// How far packets move the queue there, without the spectrum.
    pub noise: Noise,
}

/// A map, row by row: `points[j * x.len() + i]` is at (x_i, y_j).
#[derive(Clone, Debug, PartialEq)]
pub struct Map {
    /// The points.
    pub points: Vec<Point>,
    /// Values of the first axis.
    pub x: Vec<f64>,
    /// Values of the second.
    pub y: Vec<f64>,
}

/// The loop of `choice` over all pairs of values of two axes, on `threads` threads. The controller is the one that
/// `choice` designs for the network it carries; where it depends on the operating point (RED) or tunes itself (ARED,
/// ST-AQM-MO), it is taken anew at each point, and where it had to be probed, once at `conditions`.
pub fn map(
    choice: &AqmChoice,
    conditions: &OperatingConditions,
    x: (Axis, &[f64]),
    y: (Axis, &[f64]),
    threads: usize,
) -> Result<Map, Error> {
    if x.0 == y.0 {
        return Err(Error::Unsupported("a map needs two different axes".into()));
    }
    let over = ParametricLoop::new(choice, conditions)?;
    // RED has no target: it rests where its curve says.
    let targets = !over.measures && !matches!(choice.name.as_str(), "red" | "ared");
    over.check_axes([x.0, y.0])?;
    let total = x.1.len() * y.1.len();
    let point = |built: &AnyAqm, k: usize| -> Result<Point, Error> {
        let NetworkPoint { conditions, queue, gain, estimates } =
            over.moved(&[(x.0, x.1[k % x.1.len()]), (y.0, y.1[k / x.1.len()])]);
        let around = |conditions: &OperatingConditions| -> Result<(OperatingPoint, Option<Loop<NetworkPlant>>), Error> {
            let (at, closed) = over.around(built, &NetworkPoint { conditions: *conditions, queue, gain, estimates })?;
            // Images of the spectrum move a boundary by little.
            Ok((at, closed.map(|closed| Loop { images: 0, ..closed })))
        };
        let (at, closed) = around(&conditions)?;
        let held = QueueBounds { target_pkts: targets.then_some(queue), buffer_pkts: conditions.buffer_pkts };
        let Some(closed) = closed else {
            let margins = Margins { modulus_margin: f64::NAN, ..Margins::default() };
            let noise = Noise::around(held, &at, None, Fineness::COARSE);
            return Ok(Point { feasible: false, margins, noise });
        };
        let margins = closed.margins_at(Resolution::COARSE);
        let noise = match conditions.model {
            Model::Reno => over.noise(built, (held, &conditions, gain), &at, (margins.stable, &closed))?,
            Model::Drop => Noise::from_losses(),
            Model::Hollot | Model::Ecn => {
                let conditions = OperatingConditions { model: Model::Reno, ..conditions };
                let (at, closed) = around(&conditions)?;
                let closed = closed.unwrap_or_else(|| unreachable!("a mean window has a plant everywhere"));
                let worth_it = at.feasible && at.window_pkts >= 1.0;
                let stable = worth_it && closed.margins_at(Resolution::COARSE).stable;
                over.noise(built, (held, &conditions, gain), &at, (stable, &closed))?
            }
        };
        let noise = match built.theory().noise_doubt() {
            Some(why) if noise.valid => noise.doubted(why.into()),
            _ => noise,
        };
        Ok(Point { feasible: at.feasible, margins, noise })
    };
    let points = each_by(total, threads, || build(choice), point)?;
    Ok(Map { points, x: x.1.to_vec(), y: y.1.to_vec() })
}

/// A fixed controller over quantities of the network.
pub(crate) struct ParametricLoop<'a> {
    choice: &'a AqmChoice,
    conditions: &'a OperatingConditions,
    at: OperatingPoint,
    controller: Controller,
    share: SignalProcess,
    /// Whether its signals are no tosses.
    heard: bool,
    /// Whether the controller depends on where it rests.
    moving: bool,
    /// Whether it measures the network.
    measures: bool,
}

/// Where a map's values move a loop.
struct NetworkPoint {
    conditions: OperatingConditions,
    /// Queue at rest, packets.
    queue: f64,
    /// Factor on the controller.
    gain: f64,
    estimates: EstimateRatios,
}

impl<'a> ParametricLoop<'a> {
    pub(crate) fn new(choice: &'a AqmChoice, conditions: &'a OperatingConditions) -> Result<Self, Error> {
        let (at, controller) = linearise(choice, conditions)?;
        let settled = AqmEquilibrium::new(choice, conditions)?.built;
        let (share, heard) = (settled.theory().signal_process(), QueueNoise::applies_to(&settled));
        let Some(controller) = controller else {
            return Err(Error::Unsupported(format!("{} is no linear controller", choice.name)));
        };
        let measures = settled.theory().equilibrium() == Equilibrium::AtMeasuredTarget;
        let moving = measures || matches!(choice.name.as_str(), "red" | "ared" | "st-aqm-mo");
        Ok(ParametricLoop { choice, conditions, at, controller, share, heard, moving, measures })
    }

    /// Refuses axes that the AQM does not have.
    fn check_axes(&self, axes: [Axis; 2]) -> Result<(), Error> {
        let name = &self.choice.name;
        if self.measures && axes.contains(&Axis::Target) {
            return Err(Error::Unsupported(format!(
                "{name} sets its target itself: a map over target needs another AQM"
            )));
        }
        if !self.measures && axes.iter().any(|axis| axis.is_estimate()) {
            return Err(Error::Unsupported(format!(
                "{name} has no estimates in its linear law: give a wrong value as a parameter ({name}:rtt=...), or map st-pi2"
            )));
        }
        Ok(())
    }

    /// The network, the queue at rest and the factor on the controller that `values` make.
    fn moved(&self, values: &[(Axis, f64)]) -> NetworkPoint {
        let (mut conditions, mut queue, mut gain) = (*self.conditions, self.at.queue_pkts, 1.0);
        let mut estimates = EstimateRatios::EXACT;
        for (axis, value) in values {
            match axis {
                Axis::Flows => conditions.flows = *value,
                Axis::Rtt => conditions.base_rtt_s = *value,
                Axis::Capacity => conditions.capacity_pps = *value,
                Axis::Target => queue = *value,
                Axis::Gain => gain = *value,
                Axis::RttEstimate => estimates.rtt = *value,
                Axis::CapacityEstimate => estimates.capacity = *value,
                Axis::FlowsEstimate => estimates.flows = *value,
            }
        }
        NetworkPoint { conditions, queue, gain, estimates }
    }

    /// The rest in a network, and the loop there.
    fn around(
        &self,
        built: &AnyAqm,
        NetworkPoint { conditions, queue: queue_pkts, gain, estimates }: &NetworkPoint,
    ) -> Result<(OperatingPoint, Option<Loop<NetworkPlant>>), Error> {
        let (queue_pkts, gain) = (*queue_pkts, *gain);
        let (at, controller): (_, Controller) = if self.moving {
            let settled = adapted(built, conditions)?;
            let aqm = settled.as_ref().map_or(built, |(aqm, _)| aqm);
            let at = operating_point_with(aqm, conditions, target_pkts(self.choice, built, conditions), *estimates)?;
            let law_at = match coupling_of(aqm, &conditions.sender).filter(|_| conditions.has_many_windows()) {
                Some(k) => OperatingPoint { probability: (at.probability / k) * (at.probability / k), ..at },
                None => at,
            };
            let there = Controller::from_built(aqm, self.choice, &law_at).map(|(controller, _)| controller);
            (at, there.unwrap_or_else(|| self.controller.clone()))
        } else {
            let OperatingConditions { model, flows, capacity_pps, unresponsive_pps, base_rtt_s, .. } = *conditions;
            let at = OperatingPoint::new(model, flows, capacity_pps, unresponsive_pps, base_rtt_s, queue_pkts)?;
            let at = at.with_sender(&conditions.sender);
            (at.with_dispersion(self.share.dispersion(at.probability.min(1.0))), self.controller.clone())
        };
        let plant = NetworkPlant::new(built, conditions, &at);
        Ok((at, plant.map(|plant| Loop::new(plant, controller.scaled(gain)))))
    }

    /// Packet noise around an equilibrium, for a loop and whether it is stable; without steps of max_p.
    fn noise(
        &self,
        built: &AnyAqm,
        (held, conditions, gain): (QueueBounds, &OperatingConditions, f64),
        at: &OperatingPoint,
        (stable, closed): (bool, &Loop<NetworkPlant>),
    ) -> Result<Noise, Error> {
        let plain = || {
            Ok(match (closed.plant.equations(), closed.plant.field()) {
                (Some(plant), _) => {
                    let closed = Loop { plant: *plant, controller: closed.controller.clone(), images: closed.images };
                    Noise::around(held, at, Some((stable, &closed)), Fineness::COARSE)
                }
                (_, Some(field)) => {
                    let closed =
                        Loop { plant: field.clone(), controller: closed.controller.clone(), images: closed.images };
                    Noise { spectrum: None, ..around_many(held, at, stable, &closed) }
                }
                _ => Noise::none("there is no plant".into()),
            })
        };
        if !(stable && self.heard) {
            return plain();
        }
        let settled = adapted(built, &OperatingConditions { model: Model::Reno, ..*conditions })?;
        let aqm = settled.as_ref().map_or(built, |(aqm, _)| aqm);
        if settled.as_ref().is_some_and(|(_, moved)| moved.steps.is_some()) || !QueueNoise::applies_to(aqm) {
            return plain();
        }
        let said = LinearisedAqm { aqm, controller: &closed.controller, gain, steps: None };
        let around = match closed.plant.field() {
            Some(field) => QueueNoise::around(&said, at, (field.clone(), 1.0)),
            None => QueueNoise::from_reno(&said, at, Fineness::COARSE),
        };
        Ok(heard(held, around, Fineness::COARSE))
    }

    /// The rest where quantities have these values, and the loop there.
    pub(crate) fn at(&self, values: &[(Axis, f64)]) -> Result<(OperatingPoint, Loop<NetworkPlant>), Error> {
        let (at, closed) = self.around(&build(self.choice)?, &self.moved(values))?;
        let closed = closed.ok_or_else(|| Error::Unsupported("no signal probability holds the queue".into()))?;
        Ok((at, closed))
    }

    /// On which side of a boundary that passes there cycles stand; `None` where it is not known.
    pub(crate) fn side_of_cycles(&self, choice: &AqmChoice, values: &[(Axis, f64)]) -> Result<Option<bool>, Error> {
        let fixed = |(axis, _): &(Axis, f64)| axis.is_estimate() || matches!(axis, Axis::Target | Axis::Gain);
        if self.conditions.has_many_windows() || values.iter().any(fixed) {
            return Ok(None);
        }
        let NetworkPoint { conditions, .. } = self.moved(values);
        let (at, closed) = self.at(values)?;
        let built = AqmEquilibrium::new(choice, &conditions)?.built;
        let margins = closed.margins_at(Resolution::COARSE);
        Ok(branch(choice, &built, (&at, &conditions), &closed.controller, &margins).map(|branch| branch.supercritical))
    }
}

/// Result of the nonlinear equations at a point of a map.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NonlinearCheck {
    /// Limit cycle that coexists with a stable loop: deviation of the queue, packets, and period, seconds, from a
    /// large start.
    pub coexisting: Option<(f64, f64)>,
    /// Whether cycles stand beyond the boundary of stability (see [`crate::nonlinear::hopf`]).
    pub supercritical: Option<bool>,
}

/// Gain margins from and to which the side of the cycles is looked for.
const NEAR_BOUNDARY: [f64; 2] = [0.4, 2.5];

/// Checks the points of `map` near the boundary of stability with the nonlinear equations; `axes`: those of the map.
pub fn nonlinear_checks(
    choice: &AqmChoice,
    conditions: &OperatingConditions,
    map: &Map,
    (x, y): (Axis, Axis),
    threads: usize,
) -> Result<Vec<NonlinearCheck>, Error> {
    if [x, y].iter().any(|axis| axis.is_estimate() || matches!(axis, Axis::Target | Axis::Gain)) {
        return Err(Error::Unsupported("cycles are looked for over flows, rtt and capacity".into()));
    }
    if conditions.has_many_windows() {
        return Err(Error::Unsupported("cycles need the equations of a mean window: sender ns2, or a model".into()));
    }
    let point = |k: usize| -> Result<NonlinearCheck, Error> {
        let margins = &map.points[k].margins;
        let [from, to] = NEAR_BOUNDARY;
        let near = margins.gain_margin.or(margins.gain_margin_low).is_some_and(|gain| (from..to).contains(&gain));
        if !(near && map.points[k].feasible) {
            return Ok(NonlinearCheck::default());
        }
        let mut conditions = *conditions;
        for (axis, value) in [(x, map.x[k % map.x.len()]), (y, map.y[k / map.x.len()])] {
            match axis {
                Axis::Flows => conditions.flows = value,
                Axis::Rtt => conditions.base_rtt_s = value,
                _ => conditions.capacity_pps = value,
            }
        }
        let AqmEquilibrium { mut built, at, .. } = AqmEquilibrium::new(choice, &conditions)?;
        let Some((controller, _)) = Controller::from_built(&built, choice, &at) else {
            return Ok(NonlinearCheck::default());
        };
        let branch = branch(choice, &built, (&at, &conditions), &controller, margins);
        let closed = Loop::new(Plant::exact(&at), controller);
        let root = if margins.stable { rightmost(&closed) } else { None };
        let cycle = match root {
            Some(root) => coexisting(choice, &conditions, &at, (margins, root.re), &mut built)?,
            None => None,
        };
        Ok(NonlinearCheck {
            coexisting: cycle.and_then(|cycle| Some((cycle.std_pkts, cycle.period_s?))),
            supercritical: branch.map(|branch| branch.supercritical),
        })
    };
    each(map.points.len(), threads, point)
}

/// `of` of every number below `total`, on `threads` threads.
pub(crate) fn each<T: Send>(
    total: usize,
    threads: usize,
    of: impl Fn(usize) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    each_by(total, threads, || Ok(()), |(), k| of(k))
}

/// Evaluates each point in parallel; each thread makes its own state.
fn each_by<M, T: Send>(
    total: usize,
    threads: usize,
    make: impl Fn() -> Result<M, Error> + Sync,
    of: impl Fn(&M, usize) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    let each = total.div_ceil(threads.max(1)).max(1);
    let some = |from: usize| {
        let made = make()?;
        (from..total.min(from + each)).map(|k| of(&made, k)).collect::<Result<Vec<_>, _>>()
    };
    // One worker needs no thread, which not every machine has.
    if each >= total {
        return some(0);
    }
    thread::scope(|scope| {
        let some = &some;
        let workers: Vec<_> = (0..total).step_by(each).map(|from| scope.spawn(move || some(from))).collect();
        let mut all = Vec::with_capacity(total);
        for worker in workers {
            all.extend(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok(all)
    })
}
