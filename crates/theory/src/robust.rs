//! Robust design: the PI whose worst margin over a box of networks is largest, as long as its loop is nowhere slower than
//! asked; or, when no speed is asked for, the one that is fastest where it is slowest, as long as its worst margin is
//! [`MARGIN`].
//!
//! The largest margin by itself would be that of no gain at all. The margin is the modulus margin, the smallest distance of
//! the loop from -1: one over the largest sensitivity.

use aqumen_aqm::{Crossover, PiController, PiGains, TcpPlant};

use crate::Error;
use crate::design::Place;
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
        let (mut worst, mut slowest) = (f64::INFINITY, f64::INFINITY);
        for plant in &plants {
            let closed = Loop { plant: *plant, controller: controller.clone(), images: 0 };
            let margins = closed.margins_at(Resolution::COARSE);
            // How far beyond, where it is unstable, so that a search finds its way back.
            let worth = if margins.stable {
                margins.modulus_margin
            } else {
                margins.gain_margin.map_or(-1.0, |g| g - 1.0).min(0.0)
            };
            worst = worst.min(worth);
            slowest = slowest.min(margins.crossover_rad_s.unwrap_or(0.0));
        }
        Some((worst, slowest))
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
        match slowest_rad_s {
            Some(slowest) => worst - 10.0 * (1.0 - speed / slowest).max(0.0),
            None if worst < MARGIN => worst - MARGIN,
            // In round trips of the centre, so that a step of the search means the same everywhere.
            None => speed * (centre.2 + target_pkts / centre.1),
        }
    };
    let mut best = [libm::log(usual.gain), libm::log(usual.zero)];
    // A coarse look around, then ever smaller crosses: the value has kinks, where slopes would mislead.
    let mut reached = value(best);
    let start = best;
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
    let controller = PiController { gain: libm::exp(best[0]), zero: libm::exp(best[1]) };
    let (worst, slowest_rad_s) = judge(controller).ok_or_else(refuse)?;
    let gains = controller.sampled(frequency).map_err(|error| Error::Unsupported(error.to_string()))?;
    Ok(Robust { controller, gains, worst, slowest_rad_s, usual_worst })
}

fn corners(place: &Place, range: &Box, target_pkts: f64) -> Result<Vec<Plant>, Error> {
    let sides = [range.flows, range.rtt_s, range.capacity_pps];
    if sides.iter().any(|[low, high]| !(*low > 0.0 && low <= high && high.is_finite())) {
        return Err(Error::Unsupported("a range goes from a number above 0 to one that is not below it".into()));
    }
    let middle = sides.map(|[low, high]| (low * high).sqrt());
    let corner = |k: usize| [0, 1, 2].map(|side| sides[side][k >> side & 1]);
    (0..8)
        .map(corner)
        .chain([middle])
        .map(|[flows, rtt, capacity]| {
            OperatingPoint::new(place.model, flows, capacity, place.unresponsive_pps, rtt, target_pkts)
                .map(|at| Plant::exact(&at))
        })
        .collect()
}
