//! Attractors of the nonlinear equations: the limit cycle of an unstable loop, and the one that coexists with an
//! equilibrium that is stable for small perturbations only.

use aqumen_aqm::registry::AnyAqm;
use aqumen_aqm::{Aqm, MAX_LOOPS};
use aqumen_scenario::AqmChoice;

use crate::Error;
use crate::equilibrium::solver::{OperatingConditions, build, linearise};
use crate::fluid::{self, Class, Fluid, Network, Queue};
use crate::linear::{Margins, OperatingPoint};

/// Times its rest from which a stable loop is tried.
pub const LARGE_START: f64 = 4.0;
/// A gain margin below which it is.
const LITTLE_GAIN_MARGIN: f64 = 2.0;
/// How many times what the linear loop would have left of such a start a cycle is, and which share of the mean: RED's
/// share goes in jumps, about which the queue moves by less.
const BEYOND_DECAY: f64 = 10.0;
const A_SWING: f64 = 0.05;
/// Steps of the equations that the height of a limit cycle may take: about a second. It is left out where it takes
/// more.
const STEPS_OF_DESIGN: f64 = 1e7;
/// Steps of the equations that [`check`] takes at most: minutes.
const STEPS_MAX: f64 = 1e9;

/// Longest step of [`cycle`], seconds.
fn check_step_s(conditions: &OperatingConditions) -> f64 {
    (conditions.base_rtt_s / 100.0).min(2e-3)
}

/// Whether a design waits for [`cycle`].
pub(crate) fn is_quick(aqm: &mut AnyAqm, conditions: &OperatingConditions, duration_s: f64) -> bool {
    check_steps(aqm, conditions, duration_s) <= STEPS_OF_DESIGN
}

/// About how many steps [`cycle`] takes with `aqm`: its own, and one more for each of the law's periods.
fn check_steps(aqm: &mut AnyAqm, conditions: &OperatingConditions, duration_s: f64) -> f64 {
    let periods = aqm.law_mut().map_or([None; MAX_LOOPS], |law| law.periods());
    let samples: f64 = periods.iter().flatten().map(|period| duration_s / period.as_secs_f64().max(1e-9)).sum();
    duration_s / check_step_s(conditions) + samples
}

/// Attractor of the nonlinear equations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cycle {
    /// Mean of the queue, packets.
    pub mean_pkts: f64,
    /// Its standard deviation.
    pub std_pkts: f64,
    /// From one rise above the mean to the next, on average, seconds; `None` for a queue that
    /// rises fewer than three times.
    pub period_s: Option<f64>,
    /// Share of the time in which the AQM spares packets that its law would signal.
    pub spared: f64,
    /// Share of the time in which the law says 0 or 1.
    pub at_bound: f64,
}

/// [`cycle_from`], refusing what takes more than `STEPS_MAX` steps.
pub fn check(
    choice: &AqmChoice,
    conditions: &OperatingConditions,
    duration_s: f64,
    start: Option<f64>,
) -> Result<Cycle, Error> {
    if let Some(Ok(mut aqm)) = choice.build() {
        let steps = check_steps(&mut aqm, conditions, duration_s);
        if steps > STEPS_MAX {
            return Err(Error::Unsupported(format!(
                "{duration_s} s of these equations take {steps:.1e} steps; {STEPS_MAX:.0e} are accepted: a shorter duration, \
                 a longer base RTT, or updates further apart"
            )));
        }
    }
    cycle_from(start, choice, conditions, duration_s)
}

/// Oscillation of the nonlinear equations at `conditions` with `choice` in the last third of `duration_s`, from windows
/// and queue at the equilibrium and an AQM that has seen nothing yet.
pub fn cycle(choice: &AqmChoice, conditions: &OperatingConditions, duration_s: f64) -> Result<Cycle, Error> {
    cycle_from(None, choice, conditions, duration_s)
}

/// Oscillation from `start` times the equilibrium's windows, queue and average queue: a loop that is locally stable
/// may swing for ever from a large start.
pub fn cycle_from(
    start: Option<f64>,
    choice: &AqmChoice,
    conditions: &OperatingConditions,
    duration_s: f64,
) -> Result<Cycle, Error> {
    if let Some(start) = start.filter(|start| !(*start > 0.0 && start.is_finite())) {
        return Err(Error::Unsupported(format!("a start of {start} times the equilibrium: must be above 0")));
    }
    let share = start.unwrap_or(1.0);
    let (at, _) = linearise(choice, conditions)?;
    let class = Class {
        initial_window: (share * at.window_pkts).max(1.0),
        ..Class::endless(conditions.model, conditions.flows, conditions.base_rtt_s, vec![0])
    };
    let queue = Queue {
        initial_pkts: (share * at.queue_pkts).min(conditions.buffer_pkts),
        initial_average_pkts: start.map_or(0.0, |start| (start * at.queue_pkts).min(conditions.buffer_pkts)),
        unresponsive_pps: conditions.unresponsive_pps,
        ..Queue::new(
            conditions.capacity_pps,
            conditions.buffer_pkts,
            fluid::control("map", choice, Some(conditions.base_rtt_s), 1000.0)?,
        )
    };
    let network = Network { classes: vec![class], queues: vec![queue], sample_at_start: true };
    let mut fluid = Fluid::new(network, check_step_s(conditions))?;
    let samples = 2000;
    let (mut spared, mut at_bound) = (0, 0);
    let seen: Vec<(f64, f64)> = (0..samples)
        .map(|k| {
            let t = duration_s * (2.0 + f64::from(k) / f64::from(samples)) / 3.0;
            fluid.advance((t * 1e9) as u64);
            let said = fluid.shown_probability(0);
            spared += u32::from(fluid.is_sparing(0));
            at_bound += u32::from(said <= 0.0 || said >= 1.0);
            (t, fluid.queue_pkts(0))
        })
        .collect();
    let sums = seen.iter().fold((0.0, 0.0), |sums, (_, q)| (sums.0 + q, sums.1 + q * q));
    let mean_pkts = sums.0 / f64::from(samples);
    let std_pkts = (sums.1 / f64::from(samples) - mean_pkts * mean_pkts).max(0.0).sqrt();
    let period_s = period_of(&seen, mean_pkts, std_pkts);
    let share = |count: u32| f64::from(count) / f64::from(samples);
    Ok(Cycle { mean_pkts, std_pkts, period_s, spared: share(spared), at_bound: share(at_bound) })
}

/// From one rise of the queue above its mean to the next, on average, of moments and queues.
fn period_of(seen: &[(f64, f64)], mean_pkts: f64, std_pkts: f64) -> Option<f64> {
    // A rise counts once the queue has been as far below the mean as a tenth of its deviation.
    let (mut rises, mut below) = (Vec::new(), false);
    for pair in seen.windows(2) {
        let [(t, q), (next_t, next_q)] = [pair[0], pair[1]];
        below |= q < mean_pkts - 0.1 * std_pkts;
        if below && q < mean_pkts && next_q >= mean_pkts {
            rises.push(t + (next_t - t) * (mean_pkts - q) / (next_q - q));
            below = false;
        }
    }
    match (rises.first(), rises.last()) {
        (Some(first), Some(last)) if rises.len() > 2 && std_pkts > 1e-3 * mean_pkts => {
            Some((last - first) / (rises.len() - 1) as f64)
        }
        _ => None,
    }
}

/// The cycle on which the nonlinear equations stay from a large start although the loop is stable (hard excitation).
/// Only loops with little margin are tried, and AQMs that move their own parameters (ARED), by the law that moves them.
pub(crate) fn coexisting(
    choice: &AqmChoice,
    conditions: &OperatingConditions,
    at: &OperatingPoint,
    (exact, real): (&Margins, f64),
    built: &mut AnyAqm,
) -> Result<Option<Cycle>, Error> {
    let Some(w) = exact.phase_crossover_rad_s else { return Ok(None) };
    // What moves an AQM's own parameters is not in its loop, and may swing at any margin of it.
    let adapts = build(choice)?.theory().adaptation_center_pkts().is_some();
    if !exact.stable || !adapts && exact.gain_margin.is_none_or(|margin| margin > LITTLE_GAIN_MARGIN) {
        return Ok(None);
    }
    let duration = (60.0 * 2.0 * std::f64::consts::PI / w).clamp(60.0, 600.0);
    if !is_quick(built, conditions, duration) {
        return Ok(None);
    }
    let cycle = cycle_from(Some(LARGE_START), choice, conditions, duration)?;
    Ok(Some(cycle).filter(|cycle| cycle.period_s.is_some() && cycle.stays(at.queue_pkts, real * duration)))
}

impl Cycle {
    /// Whether it is more than what is left of a large start from a rest at `queue_pkts`, of which the linear loop
    /// makes e^`grown` in all the time.
    fn stays(&self, queue_pkts: f64, grown: f64) -> bool {
        // What is looked at begins after two thirds.
        let left = LARGE_START * queue_pkts * libm::exp(grown * 2.0 / 3.0);
        self.std_pkts > (BEYOND_DECAY * left).max(A_SWING * self.mean_pkts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{CONDITIONS, NETWORK, built, choice};

    #[test]
    fn a_period_is_from_rise_to_rise_whatever_trembles_beside() {
        // Three seconds a turn about 100, and with every sample a little up and down.
        let wave = |seconds: u32, height: f64, tremble: f64| -> Vec<(f64, f64)> {
            let at = |k: u32| {
                let (t, turned) = (0.01 * f64::from(k), 2.0 * std::f64::consts::PI * f64::from(k) / 300.0);
                let beside = if k.is_multiple_of(2) { tremble } else { -tremble };
                (t, 100.0 + height * libm::cos(turned) + height * beside)
            };
            (0..100 * seconds).map(at).collect()
        };
        let deviation = |height: f64| height / 2f64.sqrt();
        for tremble in [0.0, 0.06] {
            let period = period_of(&wave(30, 10.0, tremble), 100.0, deviation(10.0)).unwrap();
            assert!((period - 3.0).abs() < 0.02, "{tremble}: {period}");
        }
        // What trembles alone has none, nor has what rises twice, at 2.25 and 5.25 s, or by no more than a thousandth.
        assert_eq!(period_of(&wave(30, 1.0, 0.05), 102.0, deviation(10.0)), None);
        assert_eq!(period_of(&wave(8, 10.0, 0.0), 100.0, deviation(10.0)), None);
        assert!(period_of(&wave(9, 10.0, 0.0), 100.0, deviation(10.0)).is_some());
        assert_eq!(period_of(&wave(30, 0.1, 0.0), 100.0, deviation(0.1)), None);
    }

    #[test]
    fn a_cycle_stays_that_is_a_swing_and_far_more_than_what_is_left_of_its_start() {
        let of = |std_pkts: f64| Cycle { mean_pkts: 100.0, std_pkts, period_s: Some(1.0), spared: 0.0, at_bound: 0.0 };
        // Four times 100 packets fall to e^-6 in two thirds of the time: .9915 are left, of which 9.915 are ten times;
        // with e^-12 nothing, and a swing is a twentieth of the mean.
        for (grown, limit) in [(-9.0, 9.915), (-18.0, 5.0)] {
            assert!(of(limit + 0.01).stays(100.0, grown) && !of(limit - 0.01).stays(100.0, grown), "{grown}");
        }
        assert!(!of(5.0).stays(100.0, -18.0));
    }

    #[test]
    fn steps_are_foreseen_of_the_equations_and_of_the_law() {
        let conditions = |base_rtt_s: f64| OperatingConditions { base_rtt_s, ..CONDITIONS };
        let pi = |frequency: f64| built(&choice("pi", &[("frequency", frequency)], NETWORK));
        // 60 s in steps of 2 ms at most, a hundredth of a round trip, and 50 samples a second.
        let near = |seen: f64, known: f64| assert!((seen - known).abs() < 1e-6 * known, "{seen} {known}");
        near(check_steps(&mut pi(50.0), &conditions(0.5), 60.0), 30_000.0 + 3000.0);
        near(check_steps(&mut pi(50.0), &conditions(0.05), 60.0), 120_000.0 + 3000.0);
        // Ten million are waited for.
        assert!(
            is_quick(&mut pi(50.0), &conditions(0.5), 18_000.0) && !is_quick(&mut pi(50.0), &conditions(0.5), 18_500.0)
        );
    }
}
