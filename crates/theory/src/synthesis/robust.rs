//! Robust design: the PI (or the RED, REM, PAQM, ARM-PFC) that is best over a box of networks, in one of three senses
//! ([`Objective`]): the largest worst margin, nowhere slower than asked; the fastest where it is slowest, at a worst
//! margin; the least noise where packets move the queue most, at a worst margin.
//!
//! The largest margin by itself would be that of no gain at all. The margin is the modulus margin, the smallest
//! distance of the loop from -1: one over the largest sensitivity.

use std::cell::RefCell;

use aqumen_aqm::{Aqm, Crossover, PiController, PiGains, TcpPlant, Value};
use aqumen_scenario::{AqmChoice, OwnedValue};

use crate::Error;
use crate::design::{NetworkPlant, OpenLoop, around_many, noise_of_sender, open_loop};
use crate::equilibrium::solver::{OperatingConditions, linearise};
use crate::fluid::Model;
use crate::linear::complex::abs;
use crate::linear::noise::Fineness;
use crate::linear::{Controller, FrequencyResponse, Loop, OperatingPoint, Resolution};
use crate::noise::packet_noise::{Noise, QueueBounds};

/// Modulus margin that is kept unless another is asked for: a largest sensitivity of two.
pub const MARGIN: f64 = 0.5;

/// A frequency that is slow for any loop here, as a share of 1 / R0.
const SLOW: f64 = 1e-5;

/// Objective of the design.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Objective {
    /// The largest worst margin, crossing over nowhere below `slowest_rad_s`.
    Margin {
        /// The slowest crossover that will do, rad/s.
        slowest_rad_s: f64,
    },
    /// The fastest where it is slowest, with at least this worst modulus margin.
    Speed {
        /// The modulus margin that is kept.
        margin: f64,
    },
    /// The least QACD where packets move the queue furthest, with at least this worst modulus margin, and crossing over
    /// nowhere below a share of what [`Objective::Speed`] reaches, nor resisting what lasts by less: noise alone is
    /// least without any integral, which never comes to the target. With all of that speed it is that design.
    Noise {
        /// The modulus margin that is kept.
        margin: f64,
        /// The share of the speed that is kept.
        speed: f64,
    },
}

/// Worst-case performance of a design over a range of networks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorstCase {
    /// Smallest modulus margin; below zero where it is unstable.
    pub margin: f64,
    /// Slowest crossover, rad/s.
    pub slowest_rad_s: f64,
    /// Weakest answer to what lasts: w |L(jw)| of slow w, rad/s. A slow pole beside a quick crossover shows here.
    pub lasting_rad_s: f64,
    /// Largest QACD that packets make, packets; infinite where nothing is known of it.
    pub qacd_pkts: f64,
}

/// A range of networks: every corner and the centre are looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NetworkRange {
    /// Number of flows, from and to.
    pub flows: [f64; 2],
    /// Base RTT, seconds.
    pub rtt_s: [f64; 2],
    /// Capacity, packets/s.
    pub capacity_pps: [f64; 2],
}

/// The design, and what it is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Robust {
    /// The controller in continuous time.
    pub controller: PiController,
    /// Its gains at the frequency asked for.
    pub gains: PiGains,
    /// Worst case over the range.
    pub worth: WorstCase,
    /// Worst case of the usual design for the centre.
    pub usual: WorstCase,
}

/// The PI that holds `target_pkts` and is sampled `frequency` times a second, best over `range` and over the senders of
/// `each`. Everything else is as there.
pub fn pi(
    each: &[OperatingConditions],
    range: &NetworkRange,
    target_pkts: f64,
    frequency: f64,
    aim: Objective,
) -> Result<Robust, Error> {
    let at = |conditions: &OperatingConditions| {
        let OperatingConditions { model, flows, capacity_pps, unresponsive_pps, base_rtt_s, .. } = *conditions;
        let at = OperatingPoint::new(model, flows, capacity_pps, unresponsive_pps, base_rtt_s, target_pkts)?;
        Ok::<_, Error>(at.with_sender(&conditions.sender))
    };
    // Place, its plant, and its equilibrium in model `reno`, which has the noise of a mean window.
    let mut places: Vec<(NetworkPlant, OperatingPoint)> = Vec::new();
    for conditions in corners(each, range)? {
        let here = at(&conditions)?;
        // Where no signal probability holds the queue, gains do not matter.
        if let Some(plant) = NetworkPlant::of_bernoulli_signals(&conditions, &here) {
            places.push((plant, at(&OperatingConditions { model: Model::Reno, ..conditions })?));
        }
    }
    if places.is_empty() {
        return Err(nowhere());
    }
    let buffer_pkts = each.first().map_or(f64::NAN, |conditions| conditions.buffer_pkts);
    let held = QueueBounds { target_pkts: Some(target_pkts), buffer_pkts };
    let judge = |pi: PiController, noise: bool| -> Option<WorstCase> {
        let controller = Controller::from_pi(pi.sampled(frequency).ok()?, frequency);
        let closed = |plant: &NetworkPlant| Loop { plant: plant.clone(), controller: controller.clone(), images: 0 };
        let mut worth = worst_of(places.iter().map(|(plant, _)| closed(plant)));
        if noise {
            worth.qacd_pkts = places.iter().map(|(plant, at)| qacd(held, at, plant, &controller)).fold(0.0, f64::max);
        }
        Some(worth)
    };
    let middle = |[low, high]: [f64; 2]| (low * high).sqrt();
    let centre = (middle(range.flows), middle(range.capacity_pps), middle(range.rtt_s));
    let usual_pi = TcpPlant::new(centre.0, centre.1, centre.2 + target_pkts / centre.1)
        .map(|plant| PiController::design(&plant, Crossover::Lower))
        .map_err(|error| Error::Unsupported(error.to_string()))?;
    let refuse = || Error::Unsupported("no PI of this sampling frequency for these networks; sample faster".into());
    let usual = judge(usual_pi, true).ok_or_else(refuse)?;

    let scale = Scale { unit_s: centre.2 + target_pkts / centre.1, queue_pkts: target_pkts };
    let best = aim.search([libm::log(usual_pi.gain), libm::log(usual_pi.zero)], scale, |[gain, zero], noise| {
        judge(PiController { gain: libm::exp(gain), zero: libm::exp(zero) }, noise)
    });
    let controller = PiController { gain: libm::exp(best[0]), zero: libm::exp(best[1]) };
    let worth = judge(controller, true).ok_or_else(refuse)?;
    let gains = controller.sampled(frequency).map_err(|error| Error::Unsupported(error.to_string()))?;
    aim.reached(worth)?;
    Ok(Robust { controller, gains, worth, usual })
}

/// QACD of the loop at `at`: of Reno's windows, or of the many windows of `plant`.
fn qacd(held: QueueBounds, at: &OperatingPoint, plant: &NetworkPlant, controller: &Controller) -> f64 {
    if let Some(field) = plant.field() {
        let closed = Loop { plant: field.clone(), controller: controller.clone(), images: 0 };
        let stable = closed.margins_at(Resolution::COARSE).stable;
        return around_many(held, at, stable, &closed).distance_pkts();
    }
    let closed = Loop { plant: crate::linear::Plant::exact(at), controller: controller.clone(), images: 0 };
    let stable = closed.margins_at(Resolution::COARSE).stable;
    Noise::around(held, at, Some((stable, &closed)), Fineness::COARSE).distance_pkts()
}

/// Error of a range without an equilibrium.
fn nowhere() -> Error {
    Error::Unsupported("no signal probability holds the queue anywhere in these ranges".into())
}

/// Where `value` is largest on a coarse look around `start`.
fn coarse(start: [f64; 2], value: impl Fn([f64; 2]) -> f64) -> [f64; 2] {
    let (mut best, mut reached) = (start, value(start));
    for i in -14..=4 {
        for j in -8..=4 {
            let trial = [start[0] + 0.5 * f64::from(i), start[1] + 0.5 * f64::from(j)];
            let found = value(trial);
            if found > reached {
                (best, reached) = (trial, found);
            }
        }
    }
    best
}

/// Where `value` is largest near `start`, by ever smaller crosses, since it has kinks where slopes would mislead.
fn refined(start: [f64; 2], value: impl Fn([f64; 2]) -> f64) -> [f64; 2] {
    let (mut best, mut reached) = (start, value(start));
    let mut step = 0.3;
    while step > 1e-4 {
        let around =
            [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]];
        let trials = around.map(|[x, y]| [best[0] + step * x, best[1] + step * y]);
        let better = trials.into_iter().map(|trial| (value(trial), trial)).max_by(|a, b| a.0.total_cmp(&b.0));
        match better {
            Some((found, trial)) if found > reached + 1e-9 => (best, reached) = (trial, found),
            _ => step *= 0.5,
        }
    }
    best
}

/// The parameters by which each algorithm beside PI is made robust: those that set its gain and its speed. Where the
/// second is the first again there is one alone.
const KNOBS: [(&str, [&str; 2]); 4] = [
    ("red", ["max_p", "weight"]),
    ("rem", ["gamma", "alpha"]),
    ("paqm", ["alpha", "alpha"]),
    ("arm-pfc", ["psi", "psi"]),
];

/// Another algorithm made robust, and what that is worth.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuning {
    /// The algorithm with the parameters found.
    pub choice: AqmChoice,
    /// Parameters found.
    pub found: Vec<(&'static str, f64)>,
    /// Worst case over the range.
    pub worth: WorstCase,
    /// Worst case of the parameters as given.
    pub given: WorstCase,
}

/// `choice` with its gain and speed best over `range` and the senders of `each`, in the sense of [`pi`]: RED's max_p
/// and weight, REM's gamma and alpha, PAQM's alpha, ARM-PFC's Psi.
pub fn tune(
    choice: &AqmChoice,
    each: &[OperatingConditions],
    range: &NetworkRange,
    aim: Objective,
) -> Result<Tuning, Error> {
    let Some((_, knobs)) = KNOBS.iter().find(|(name, _)| *name == choice.name) else {
        let known: Vec<_> = KNOBS.iter().map(|(name, _)| *name).collect();
        let known = known.join(", ");
        return Err(Error::Unsupported(format!("no robust design of {}; there is one of pi, {known}", choice.name)));
    };
    let single = knobs[0] == knobs[1];
    let places = corners(each, range)?;
    // A plant of many windows takes some milliseconds: kept while the equilibrium stays.
    let known: Vec<RefCell<Option<OpenLoop>>> = places.iter().map(|_| RefCell::new(None)).collect();
    let with = |x: [f64; 2]| -> AqmChoice {
        let mut choice = choice.clone();
        for (name, x) in knobs.iter().zip(x).take(if single { 1 } else { 2 }) {
            choice.values.retain(|(known, _)| known != name);
            choice.values.push((name.to_string(), OwnedValue::Number(from_axis(name, x))));
        }
        choice
    };
    let judge = |choice: &AqmChoice, noise: bool| -> Option<WorstCase> {
        let loops = places.iter().zip(&known).filter_map(|(conditions, known)| {
            let Ok((at, controller)) = linearise(choice, conditions) else { return Some(None) };
            let mut known = known.borrow_mut();
            if known.as_ref().is_none_or(|known| known.at != at) {
                *known = open_loop(choice, conditions).ok();
            }
            // Where no signal probability holds the queue, gains do not matter.
            let plant = known.as_ref()?.plant.clone()?;
            Some(controller.map(|controller| Loop { plant, controller, images: 0 }))
        });
        let mut worth = worst_of(loops.collect::<Option<Vec<_>>>()?.into_iter());
        if noise {
            let each =
                places.iter().map(|conditions| noise_of_sender(choice, conditions, Fineness::COARSE).distance_pkts());
            worth.qacd_pkts = each.fold(0.0, f64::max);
        }
        Some(worth)
    };
    let given = judge(choice, true)
        .ok_or_else(|| Error::Unsupported(format!("{} has no loop somewhere in these ranges", choice.name)))?;
    let mut start = [f64::NAN; 2];
    if let Some(Ok(aqm)) = choice.build() {
        aqm.settings(&mut |name, value| {
            for (knob, x) in knobs.iter().zip(&mut start) {
                if let (true, Value::Number(number)) = (*knob == name, value) {
                    *x = to_axis(name, number);
                }
            }
        });
    }
    let base_rtt_s = each.first().map_or(1.0, |conditions| conditions.base_rtt_s);
    let scale = Scale { unit_s: base_rtt_s.max(1e-6), queue_pkts: choice.network.target_pkts.max(1.0) };
    let best = aim.search(start, scale, |x, noise| judge(&with(x), noise));
    let choice = with(best);
    let worth = judge(&choice, true).unwrap_or(given);
    aim.reached(worth)?;
    let found = knobs.iter().zip(best).take(if single { 1 } else { 2 });
    let found = found.map(|(name, x)| (*name, from_axis(name, x))).collect();
    Ok(Tuning { choice, found, worth, given })
}

/// Steps of the search are factors; Psi is searched by the rate of its decay.
fn to_axis(name: &str, value: f64) -> f64 {
    libm::log(if name == "psi" { -libm::log(value) } else { value })
}

fn from_axis(name: &str, x: f64) -> f64 {
    let value = libm::exp(x);
    if name == "psi" { libm::exp(-value) } else { value }
}

/// Smallest margin and slowest crossover of some loops, without their noise.
fn worst_of<P: FrequencyResponse>(loops: impl Iterator<Item = Loop<P>>) -> WorstCase {
    let far = f64::INFINITY;
    let none = WorstCase { margin: far, slowest_rad_s: far, lasting_rad_s: far, qacd_pkts: far };
    loops.fold(none, |worst, closed| {
        let margins = closed.margins_at(Resolution::COARSE);
        let slow = SLOW / closed.plant.delay_s();
        // How far beyond, where it is unstable, so that a search finds its way back.
        let margin = if margins.stable {
            margins.modulus_margin
        } else {
            margins.gain_margin.map_or(-1.0, |g| g - 1.0).min(0.0)
        };
        WorstCase {
            margin: worst.margin.min(margin),
            slowest_rad_s: worst.slowest_rad_s.min(margins.crossover_rad_s.unwrap_or(0.0)),
            lasting_rad_s: worst.lasting_rad_s.min(slow * abs(closed.response(slow))),
            ..worst
        }
    })
}

/// Units in which a step of a search means the same everywhere.
#[derive(Clone, Copy, Debug)]
struct Scale {
    /// A round trip, seconds.
    unit_s: f64,
    /// A queue, packets.
    queue_pkts: f64,
}

impl Objective {
    /// The best from `start` on; `judge` says what a design is worth, of its noise only where asked.
    fn search(self, start: [f64; 2], scale: Scale, judge: impl Fn([f64; 2], bool) -> Option<WorstCase>) -> [f64; 2] {
        let value = |aim: Objective, floor: [f64; 2], x: [f64; 2]| {
            let Some(worth) = judge(x, false) else { return -1e3 };
            aim.value(worth, scale, floor, || judge(x, true).map_or(f64::INFINITY, |worth| worth.qacd_pkts))
        };
        let Objective::Noise { margin, speed } = self else {
            return refined(coarse(start, |x| value(self, [0.0; 2], x)), |x| value(self, [0.0; 2], x));
        };
        let fast = Objective::Speed { margin };
        let fastest = refined(coarse(start, |x| value(fast, [0.0; 2], x)), |x| value(fast, [0.0; 2], x));
        // What rounding takes from the speed is no reason to refuse it.
        let kept = speed * (1.0 - 1e-9);
        let floor = judge(fastest, false)
            .map_or([0.0; 2], |worth| [worth.slowest_rad_s, worth.lasting_rad_s].map(|speed| kept * speed));
        refined(fastest, |x| value(self, floor, x))
    }

    /// Objective value of a search; `qacd` is evaluated where the margin and, both quick and lasting, a speed of
    /// `floor` are kept.
    fn value(self, worth: WorstCase, scale: Scale, floor: [f64; 2], qacd: impl FnOnce() -> f64) -> f64 {
        match self {
            Objective::Margin { slowest_rad_s } => {
                worth.margin - 10.0 * (1.0 - worth.slowest_rad_s / slowest_rad_s).max(0.0)
            }
            Objective::Speed { margin } | Objective::Noise { margin, .. } if worth.margin < margin => {
                worth.margin - margin - 500.0
            }
            Objective::Speed { .. } => worth.slowest_rad_s * scale.unit_s,
            Objective::Noise { .. } if worth.slowest_rad_s < floor[0] || worth.lasting_rad_s < floor[1] => {
                (worth.slowest_rad_s / floor[0]).min(worth.lasting_rad_s / floor[1]) - 450.0
            }
            Objective::Noise { .. } => (-qacd() / scale.queue_pkts).max(-400.0),
        }
    }

    /// Refuses a design that does not keep what it was to keep.
    fn reached(self, worth: WorstCase) -> Result<(), Error> {
        match self {
            Objective::Noise { margin, .. } if worth.margin >= margin && !worth.qacd_pkts.is_finite() => Err(Error::Unsupported(
                "nothing is known of the noise somewhere in these ranges: windows below two packets, an unstable loop, or a queue \
                 that no probability holds; smaller ranges"
                    .into(),
            )),
            _ => Ok(()),
        }
    }
}

/// Every corner of the box, and its centre, for each sender.
fn corners(each: &[OperatingConditions], range: &NetworkRange) -> Result<Vec<OperatingConditions>, Error> {
    let sides = [range.flows, range.rtt_s, range.capacity_pps];
    if sides.iter().any(|[low, high]| !(*low > 0.0 && low <= high && high.is_finite())) {
        return Err(Error::Unsupported("a range goes from a number above 0 to one that is not below it".into()));
    }
    let middle = sides.map(|[low, high]| (low * high).sqrt());
    let corner = |k: usize| [0, 1, 2].map(|side| sides[side][k >> side & 1]);
    let of = |[flows, base_rtt_s, capacity_pps]: [f64; 3]| {
        each.iter().map(move |conditions| OperatingConditions { flows, base_rtt_s, capacity_pps, ..*conditions })
    };
    let spots: Vec<[f64; 3]> = (0..8).map(corner).chain([middle]).collect();
    Ok(spots.into_iter().flat_map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linear::Plant;
    use crate::testing::CONDITIONS;

    #[test]
    fn a_search_finds_the_top_of_a_hill_with_an_edge() {
        let hill = |[x, y]: [f64; 2]| -(x - 0.37).abs() - 2.0 * (y + 0.21 - 0.3 * x).abs();
        let [x, y] = refined([0.0, 0.0], hill);
        assert!((x - 0.37).abs() < 1e-3 && (y + 0.21 - 0.3 * x).abs() < 1e-3, "{x} {y}");
        let bowl = |[x, y]: [f64; 2]| -(x + 2.0) * (x + 2.0) - (y - 1.0) * (y - 1.0) + (x + 2.0) * (y - 1.0);
        let [x, y] = refined([0.0, 0.0], bowl);
        assert!((x + 2.0).abs() < 1e-3 && (y - 1.0).abs() < 1e-3, "{x} {y}");
        // A coarse look goes seven down and two up, four down and two up, by halves.
        assert_eq!(coarse([1.0, -1.0], |[x, y]| -(x + 5.9).abs() - (y + 4.9).abs()), [-6.0, -5.0]);
        assert_eq!(coarse([1.0, -1.0], |[x, y]| x + y), [3.0, 1.0]);
        assert_eq!(coarse([1.0, -1.0], |_| 0.0), [1.0, -1.0]);
    }

    #[test]
    fn a_search_follows_a_ridge_in_any_direction() {
        for [along, across] in [[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]] {
            // Half a step off the ridge costs more than a step along it gains.
            let ridge =
                |[x, y]: [f64; 2]| -(along * x + across * y - 2.0).abs() - 100.0 * (across * x - along * y).abs();
            let [x, y] = refined([0.0, 0.0], ridge);
            assert!((x - along).abs() < 1e-3 && (y - across).abs() < 1e-3, "{along} {across}: {x} {y}");
        }
    }

    #[test]
    fn a_box_is_worth_what_its_worst_loops_are() {
        let loops = [60.0, 100.0].map(|flows| {
            let at = OperatingPoint::new(Model::Hollot, flows, 1250.0, 0.0, 0.2, 100.0).unwrap();
            Loop::new(Plant::exact(&at), Controller::Continuous { num: vec![2e-5], den: vec![0.0, 1.0] })
        });
        let [slack, tight] = [&loops[1], &loops[0]].map(|closed| closed.margins_at(Resolution::COARSE));
        let worth = worst_of(loops.iter().cloned());
        assert!(tight.stable && tight.modulus_margin < slack.modulus_margin, "{tight:?} {slack:?}");
        assert_eq!(worth.margin, tight.modulus_margin);
        assert_eq!(Some(worth.slowest_rad_s), slack.crossover_rad_s);
        // Of an integrator w |L| is its gain times the plant's at rest.
        let lasting = 2e-5 * loops[1].plant.dc_gain().abs();
        assert!((worth.lasting_rad_s / lasting - 1.0).abs() < 1e-4, "{worth:?} {lasting}");
        // Beyond the gain margin g of a loop with k times the gain: by g / k - 1.
        let margin = tight.gain_margin.unwrap();
        let beyond = Loop { controller: loops[0].controller.scaled(2.0 * margin), ..loops[0].clone() };
        assert!((worst_of([beyond].into_iter()).margin + 0.5).abs() < 1e-3);
    }

    #[test]
    fn the_usual_design_is_that_of_the_middle_with_its_queue() {
        let conditions = OperatingConditions { model: Model::Hollot, ..CONDITIONS };
        let range = NetworkRange { flows: [60.0; 2], rtt_s: [0.2; 2], capacity_pps: [1250.0; 2] };
        let found = pi(&[conditions], &range, 100.0, 160.0, Objective::Speed { margin: MARGIN }).unwrap();
        // 200 ms, and 100 packets at 1250 a second.
        let plant = TcpPlant::new(60.0, 1250.0, 0.28).unwrap();
        let gains = PiController::design(&plant, Crossover::Lower).sampled(160.0).unwrap();
        let at = OperatingPoint::new(Model::Hollot, 60.0, 1250.0, 0.0, 0.2, 100.0).unwrap();
        let closed = Loop { plant: Plant::exact(&at), controller: Controller::from_pi(gains, 160.0), images: 0 };
        let margins = closed.margins_at(Resolution::COARSE);
        assert!((found.usual.margin / margins.modulus_margin - 1.0).abs() < 1e-9, "{found:?} {margins:?}");
        assert!((found.usual.slowest_rad_s / margins.crossover_rad_s.unwrap() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn steps_are_factors_and_those_of_psi_are_of_its_decay() {
        for (name, value) in [("max_p", 0.03), ("psi", 0.83), ("alpha", 1.2)] {
            assert!((from_axis(name, to_axis(name, value)) / value - 1.0).abs() < 1e-12, "{name}");
        }
        let twice = |name: &str, value: f64| from_axis(name, to_axis(name, value) + 2f64.ln());
        assert!((twice("max_p", 0.03) - 0.06).abs() < 1e-12 && (twice("psi", 0.9) - 0.81).abs() < 1e-12);
    }

    #[test]
    fn a_box_is_looked_at_in_every_corner_and_its_middle() {
        let conditions = OperatingConditions { unresponsive_pps: 7.0, ..CONDITIONS };
        let range = NetworkRange { flows: [4.0, 16.0], rtt_s: [0.1, 0.4], capacity_pps: [100.0, 400.0] };
        let all = corners(&[conditions], &range).unwrap();
        assert_eq!(all.len(), 9);
        for (flows, rtt_s, capacity) in [(4.0, 0.1, 100.0), (16.0, 0.1, 100.0), (4.0, 0.4, 400.0), (16.0, 0.4, 400.0)] {
            let here =
                |at: &&OperatingConditions| (at.flows, at.base_rtt_s, at.capacity_pps) == (flows, rtt_s, capacity);
            assert_eq!(all.iter().filter(here).count(), 1, "{flows} {rtt_s} {capacity}");
        }
        let middle = all[8];
        assert!((middle.flows - 8.0).abs() < 1e-12 && (middle.base_rtt_s - 0.2).abs() < 1e-12);
        assert!((middle.capacity_pps - 200.0).abs() < 1e-9 && middle.unresponsive_pps == 7.0);
        for wrong in [[0.0, 1.0], [2.0, 1.0], [1.0, f64::INFINITY]] {
            assert!(corners(&[conditions], &NetworkRange { rtt_s: wrong, ..range }).is_err(), "{wrong:?}");
        }
        assert!(corners(&[conditions], &NetworkRange { rtt_s: [0.2, 0.2], ..range }).is_ok());
    }

    #[test]
    fn an_aim_values_what_it_is_named_after_and_puts_first_what_must_be_kept() {
        let scale = Scale { unit_s: 0.2, queue_pkts: 100.0 };
        let worth = |margin: f64, slowest: f64, lasting: f64| WorstCase {
            margin,
            slowest_rad_s: slowest,
            lasting_rad_s: lasting,
            qacd_pkts: 30.0,
        };
        let of = |aim: Objective, worth: WorstCase| aim.value(worth, scale, [2.0, 1.0], || worth.qacd_pkts);
        // Ten times what is missing of the speed is taken from the margin.
        let margin = Objective::Margin { slowest_rad_s: 4.0 };
        assert_eq!((of(margin, worth(0.6, 4.0, 1.0)), of(margin, worth(0.6, 9.0, 1.0))), (0.6, 0.6));
        assert!((of(margin, worth(0.6, 3.0, 1.0)) - (0.6 - 2.5)).abs() < 1e-12);
        let speed = Objective::Speed { margin: 0.5 };
        assert!((of(speed, worth(0.5, 3.0, 1.0)) - 0.6).abs() < 1e-12 && of(speed, worth(0.4, 3.0, 1.0)) < -499.0);
        let noise = Objective::Noise { margin: 0.5, speed: 1.0 };
        assert!((of(noise, worth(0.5, 2.0, 1.0)) + 0.3).abs() < 1e-12, "a share of the queue");
        // What is missing of the speed counts as a share of what is kept of it, quick or lasting.
        assert!((of(noise, worth(0.5, 1.8, 1.0)) + 450.0 - 0.9).abs() < 1e-12);
        assert!((of(noise, worth(0.5, 1.8, 0.3)) + 450.0 - 0.3).abs() < 1e-12);
        // Too little margin is worse than too little speed, and that than any noise; less of either is worse.
        let (slow, slower) = (of(noise, worth(0.5, 1.8, 1.0)), of(noise, worth(0.5, 1.8, 0.5)));
        let (weak, weaker) = (of(noise, worth(0.4, 9.0, 9.0)), of(noise, worth(0.3, 9.0, 9.0)));
        let loud = noise.value(worth(0.5, 2.0, 1.0), scale, [2.0, 1.0], || f64::INFINITY);
        assert!(
            weaker < weak && weak < slower && slower < slow && slow < loud,
            "{weaker} {weak} {slower} {slow} {loud}"
        );
    }
}
