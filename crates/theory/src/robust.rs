//! Robust design: the PI (or the RED, REM, PAQM, ARM-PFC) whose worst margin over a box of networks is largest, as long as its loop is nowhere slower than
//! asked; or, when no speed is asked for, the one that is fastest where it is slowest, as long as its worst margin is
//! [`MARGIN`].
//!
//! The largest margin by itself would be that of no gain at all. The margin is the modulus margin, the smallest distance of
//! the loop from -1: one over the largest sensitivity.

use aqumen_aqm::{Aqm, Crossover, PiController, PiGains, TcpPlant, Value};
use aqumen_scenario::{AqmChoice, OwnedValue};

use crate::Error;
use crate::design::{Place, linearise};
use crate::linear::{Controller, Loop, OperatingPoint, Plant, Resolution};

/// Modulus margin that is kept when no speed is asked for: a largest sensitivity of two.
pub const MARGIN: f64 = 0.5;

/// A range of networks: every corner and the centre are looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Box {
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
    /// Its smallest modulus margin over the box.
    pub worst: f64,
    /// Its slowest crossover over the box, rad/s.
    pub slowest_rad_s: f64,
    /// Smallest modulus margin of the usual design for the centre; negative where it is unstable.
    pub usual_worst: f64,
}

/// The PI that holds `target_pkts` and is sampled `frequency` times a second, best over `range`. Everything else is as at
/// `place`. The loop shall nowhere cross over below `slowest_rad_s`.
pub fn pi(
    place: &Place,
    range: &Box,
    target_pkts: f64,
    frequency: f64,
    slowest_rad_s: Option<f64>,
) -> Result<Robust, Error> {
    let plants = corners(place, range, target_pkts)?;
    let judge = |pi: PiController| -> Option<(f64, f64)> {
        let controller = Controller::of_pi(pi.sampled(frequency).ok()?, frequency);
        let closed = |plant: &Plant| Loop { plant: *plant, controller: controller.clone(), images: 0 };
        Some(worst_of(&plants.iter().map(closed).collect::<Vec<_>>()))
    };
    let middle = |[low, high]: [f64; 2]| (low * high).sqrt();
    let centre = (middle(range.flows), middle(range.capacity_pps), middle(range.rtt_s));
    let usual = TcpPlant::new(centre.0, centre.1, centre.2 + target_pkts / centre.1)
        .map(|plant| PiController::design(&plant, Crossover::Lower))
        .map_err(|error| Error::Unsupported(error.to_string()))?;
    let refuse = || Error::Unsupported("no PI of this sampling frequency for these networks; sample faster".into());
    let (usual_worst, _) = judge(usual).ok_or_else(refuse)?;

    let value = |[gain, zero]: [f64; 2]| {
        let pi = PiController { gain: libm::exp(gain), zero: libm::exp(zero) };
        let Some((worst, speed)) = judge(pi) else { return -10.0 };
        worth(worst, speed, slowest_rad_s, centre.2 + target_pkts / centre.1)
    };
    let best = search([libm::log(usual.gain), libm::log(usual.zero)], value);
    let controller = PiController { gain: libm::exp(best[0]), zero: libm::exp(best[1]) };
    let (worst, slowest_rad_s) = judge(controller).ok_or_else(refuse)?;
    let gains = controller.sampled(frequency).map_err(|error| Error::Unsupported(error.to_string()))?;
    Ok(Robust { controller, gains, worst, slowest_rad_s, usual_worst })
}

/// Where `value` is largest around `start`: a coarse look around, then ever smaller crosses, since it has kinks where slopes would
/// mislead.
fn search(start: [f64; 2], value: impl Fn([f64; 2]) -> f64) -> [f64; 2] {
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

/// The parameters by which each algorithm beside PI is made robust: those that set its gain and its speed. Where the second is the
/// first again there is one alone.
const KNOBS: [(&str, [&str; 2]); 4] = [
    ("red", ["max_p", "weight"]),
    ("rem", ["gamma", "alpha"]),
    ("paqm", ["alpha", "alpha"]),
    ("arm-pfc", ["psi", "psi"]),
];

/// Another algorithm made robust, and what that is worth.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuned {
    /// The algorithm with the parameters found.
    pub choice: AqmChoice,
    /// Those parameters.
    pub found: Vec<(&'static str, f64)>,
    /// Its smallest modulus margin over the box.
    pub worst: f64,
    /// Its slowest crossover over the box, rad/s.
    pub slowest_rad_s: f64,
    /// Smallest modulus margin as it was given; negative where it is unstable.
    pub given_worst: f64,
}

/// `choice` with its gain and speed best over `range`, in the sense of [`pi`]: RED's max_p and weight, REM's gamma and alpha, PAQM's
/// alpha, ARM-PFC's Psi.
pub fn tune(choice: &AqmChoice, place: &Place, range: &Box, slowest_rad_s: Option<f64>) -> Result<Tuned, Error> {
    let Some((_, knobs)) = KNOBS.iter().find(|(name, _)| *name == choice.name) else {
        let known: Vec<_> = KNOBS.iter().map(|(name, _)| *name).collect();
        let known = known.join(", ");
        return Err(Error::Unsupported(format!("no robust design of {}; there is one of pi, {known}", choice.name)));
    };
    let single = knobs[0] == knobs[1];
    let places = places(place, range)?;
    let with = |x: [f64; 2]| -> AqmChoice {
        let mut choice = choice.clone();
        for (name, x) in knobs.iter().zip(x).take(if single { 1 } else { 2 }) {
            choice.values.retain(|(known, _)| known != name);
            choice.values.push((name.to_string(), OwnedValue::Number(from_axis(name, x))));
        }
        choice
    };
    let judge = |choice: &AqmChoice| -> Option<(f64, f64)> {
        let loops = places.iter().map(|place| {
            let (at, controller) = linearise(choice, place).ok()?;
            Some(Loop { plant: Plant::exact(&at), controller: controller?, images: 0 })
        });
        Some(worst_of(&loops.collect::<Option<Vec<_>>>()?))
    };
    let (given_worst, _) = judge(choice)
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
    let unit_s = place.base_rtt_s.max(1e-6);
    let value = |x: [f64; 2]| match judge(&with(x)) {
        Some((worst, speed)) => worth(worst, speed, slowest_rad_s, unit_s),
        None => -10.0,
    };
    let best = search(start, value);
    let choice = with(best);
    let (worst, slowest_rad_s) = judge(&choice).unwrap_or((given_worst, 0.0));
    let found = knobs.iter().zip(best).take(if single { 1 } else { 2 });
    let found = found.map(|(name, x)| (*name, from_axis(name, x))).collect();
    Ok(Tuned { choice, found, worst, slowest_rad_s, given_worst })
}

/// Steps of the search are factors; Psi is searched by the rate of its decay.
fn to_axis(name: &str, value: f64) -> f64 {
    libm::log(if name == "psi" { -libm::log(value) } else { value })
}

fn from_axis(name: &str, x: f64) -> f64 {
    let value = libm::exp(x);
    if name == "psi" { libm::exp(-value) } else { value }
}

/// Smallest margin and slowest crossover of some loops.
fn worst_of(loops: &[Loop]) -> (f64, f64) {
    let (mut worst, mut slowest) = (f64::INFINITY, f64::INFINITY);
    for closed in loops {
        let margins = closed.margins_at(Resolution::COARSE);
        // How far beyond, where it is unstable, so that a search finds its way back.
        let margin = if margins.stable {
            margins.modulus_margin
        } else {
            margins.gain_margin.map_or(-1.0, |g| g - 1.0).min(0.0)
        };
        worst = worst.min(margin);
        slowest = slowest.min(margins.crossover_rad_s.unwrap_or(0.0));
    }
    (worst, slowest)
}

/// What a search makes larger: the margin, as long as the loop is as fast as asked; or the speed, as long as the margin is kept.
fn worth(worst: f64, speed: f64, slowest_rad_s: Option<f64>, unit_s: f64) -> f64 {
    match slowest_rad_s {
        Some(slowest) => worst - 10.0 * (1.0 - speed / slowest).max(0.0),
        None if worst < MARGIN => worst - MARGIN,
        // In round trips, so that a step of the search means the same everywhere.
        None => speed * unit_s,
    }
}

fn corners(place: &Place, range: &Box, target_pkts: f64) -> Result<Vec<Plant>, Error> {
    let at = |place: &Place| {
        let Place { model, flows, capacity_pps, unresponsive_pps, base_rtt_s, .. } = *place;
        OperatingPoint::new(model, flows, capacity_pps, unresponsive_pps, base_rtt_s, target_pkts)
    };
    places(place, range)?.iter().map(|place| at(place).map(|at| Plant::exact(&at))).collect()
}

/// Every corner of the box, and its centre.
fn places(place: &Place, range: &Box) -> Result<Vec<Place>, Error> {
    let sides = [range.flows, range.rtt_s, range.capacity_pps];
    if sides.iter().any(|[low, high]| !(*low > 0.0 && low <= high && high.is_finite())) {
        return Err(Error::Unsupported("a range goes from a number above 0 to one that is not below it".into()));
    }
    let middle = sides.map(|[low, high]| (low * high).sqrt());
    let corner = |k: usize| [0, 1, 2].map(|side| sides[side][k >> side & 1]);
    let of = |[flows, base_rtt_s, capacity_pps]: [f64; 3]| Place { flows, base_rtt_s, capacity_pps, ..*place };
    Ok((0..8).map(corner).chain([middle]).map(of).collect())
}
