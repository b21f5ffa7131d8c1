//! AQMs that signal by an average of the queue, among noise: what RED's curve, and the rule by which ARED moves its
//! maximum probability, come to as parts of the loop.
//!
//! Noise carries the average over the bends of the curve: where signals begin, where it turns steep. What the curve
//! answers to a normal average of deviation s is not its slope at rest but the random-input describing function (R. C.
//! Booton, "Nonlinear control systems with random inputs", IRE Transactions on Circuit Theory 1(1), 1954), around the
//! mean m at which the share p is signalled all the same:
//!
//! ```text
//! E[share(m + s z)] = p      for m
//! slope = E[z share(m + s z)] / s,   z normal
//! ```
//!
//! ARED's rule leaves max_p alone while the average is within a band, and moves it by a share of itself each interval
//! that the average is beyond. With a mean m, measured from the middle of a band of half the width d, steps up by the
//! share u and down by v,
//!
//! ```text
//! u Q((d - m) / s) = v Q((d + m) / s)                        for m: on average max_p stays
//! k = (u phi((d - m) / s) + v phi((d + m) / s)) / (s T)      relative steps a second, per packet of the average
//! ```
//!
//! so that beside RED's slope stands an integral, p k / s, behind the same average. Both change s, which changes them:
//! s is the least at which all agree. The average of an ARED that steps is held in the middle of its curve, which is
//! taken for a line.

use std::f64::consts::{PI, SQRT_2};
use std::sync::LazyLock;

use aqumen_aqm::{MaxPSteps, RedLaw};
use num_complex::Complex64;

use crate::linear::noise::{Fineness, deviation_over, frequencies};
use crate::linear::{Controller, FrequencyResponse, Loop, Resolution};
use crate::root_finding::halved;

/// Signal probability as a function of the average queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Curve {
    /// RED's curve, and a factor on its slope.
    Red(RedLaw, f64),
    /// A line of this slope, per packet.
    Line(f64),
}

/// A curve over the average, and what moves it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DescribingFunction {
    /// The curve.
    pub(crate) curve: Curve,
    /// By how much max_p moves, and when; `None` where it rests.
    pub(crate) steps: Option<MaxPSteps>,
    /// Share of the packets that is signalled, which goes as max_p does.
    pub(crate) probability: f64,
}

/// Deviations that are tried grow by this, up to so many times the first.
const FINER: f64 = 1.25;
const TRIED: u32 = 25;
const HALVINGS: u32 = 10;
/// The first that is tried, as a share of the deviation without a loop.
const FIRST: f64 = 0.05;
/// Points at which a normal variable is taken, and its deviations to either side.
const POINTS: u32 = 40;
const NORMAL_END: f64 = 4.0;
/// How closely a loop's peak is looked at: up to so far on either side, in the logarithm, and points there.
const CLOSE: [f64; 2] = [0.2, 0.03];
const POINTS_CLOSE: i32 = 20;
/// Halvings until the mean is known at which a share is signalled.
const MEANS: u32 = 26;

/// Values of a normal variable and their densities, and the sum of these.
static NORMAL: LazyLock<(Vec<(f64, f64)>, f64)> = LazyLock::new(|| {
    let z = |k: u32| NORMAL_END * (2.0 * (f64::from(k) + 0.5) / f64::from(POINTS) - 1.0);
    let values: Vec<(f64, f64)> = (0..POINTS).map(|k| (z(k), libm::exp(-0.5 * z(k) * z(k)))).collect();
    let all = values.iter().map(|(_, density)| density).sum();
    (values, all)
});

/// The mean over a normal variable.
fn mean_of(of: impl Fn(f64) -> f64) -> f64 {
    let (values, all) = &*NORMAL;
    values.iter().map(|(z, density)| density * of(*z)).sum::<f64>() / all
}

/// Relative steps a second, per packet that the average lies above, of an average that deviates by so much.
fn pull(steps: &MaxPSteps, deviation: f64) -> f64 {
    let MaxPSteps { band_half_pkts: d, up, down, interval_s } = *steps;
    let beyond = |x: f64| 0.5 * libm::erfc(x / deviation / SQRT_2);
    // Down falls with the mean, up rises.
    let balance = |mean: f64| down * beyond(d + mean) - up * beyond(d - mean);
    let end = d + 4.0 * deviation;
    let (low, _) = halved(balance, (-end, end), 40);
    let density = |x: f64| {
        let z = x / deviation;
        libm::exp(-0.5 * z * z) / (2.0 * PI).sqrt()
    };
    (up * density(d - low) + down * density(d + low)) / (deviation * interval_s)
}

impl DescribingFunction {
    /// Describing-function gain of the curve, per packet, at this standard deviation of the average.
    fn slope(&self, deviation: f64) -> f64 {
        let (law, gain) = match self.curve {
            Curve::Red(law, gain) => (law, gain),
            Curve::Line(slope) => return slope,
        };
        let end = law.curve.end();
        let share = |mean: f64, z: f64| law.probability(mean + deviation * z);
        let ends = (-NORMAL_END * deviation, end + NORMAL_END * deviation);
        let (low, _) = halved(|mean| self.probability - mean_of(|z| share(mean, z)), ends, MEANS);
        gain * mean_of(|z| z * share(low, z)) / deviation
    }

    /// The controller behind an average with the time constant `time_s`, which deviates by so much.
    fn controller(&self, time_s: f64, deviation: f64) -> Controller {
        let slope = self.slope(deviation);
        let Some(steps) = &self.steps else {
            return Controller::Continuous { num: vec![slope], den: vec![1.0, time_s] };
        };
        // A step is held for an interval: half of it late.
        let late_s = 0.5 * steps.interval_s;
        Controller::Continuous {
            num: vec![self.probability * pull(steps, deviation), slope, slope * late_s],
            den: vec![0.0, 1.0, time_s + late_s, time_s * late_s],
        }
    }

    /// The loop around `plant` among noise of this `power` without a loop, behind an average with the time constant
    /// `time_s`. `None` where no deviation agrees with itself: it swings by more than was tried.
    pub(crate) fn close_around<P: FrequencyResponse + Clone>(
        &self,
        plant: &P,
        time_s: f64,
        power: impl Fn(f64) -> f64,
    ) -> Option<ClosedWithNoise<P>> {
        let one = Controller::Continuous { num: vec![1.0], den: vec![1.0, time_s] };
        let margins = Loop { plant: plant.clone(), controller: one, images: 0 }.margins_at(Resolution::COARSE);
        let plant_noise = NoisyPlant::new(plant, time_s, margins.phase_crossover_rad_s, power);
        // Without steps the gain alone moves.
        let slope_max = self.steps.is_none().then(|| margins.gain_margin.unwrap_or(f64::INFINITY));
        let stable = |controller: &Controller| match (slope_max, controller) {
            (Some(most), Controller::Continuous { num, .. }) => num[0] < most,
            _ => plant_noise.with(controller.clone()).margins_at(Resolution::COARSE).stable,
        };
        let found = self.least_consistent(&plant_noise, 1.0, &stable)?;
        let told = plant_noise.deviation(&found);
        let at = |gain: f64| Some(plant_noise.deviation(&self.least_consistent(&plant_noise, gain, &stable)?));
        let far =
            matches!((slope_max, &found), (Some(most), Controller::Continuous { num, .. }) if FAR * num[0] < most);
        let doubt = if far {
            Some(1.0)
        } else {
            at(IN_DOUBT).zip(at(1.0 / IN_DOUBT)).map(|(more, less)| (more / told).max(told / less))
        };
        let stays =
            self.steps.is_some() && self.stays_above(&plant_noise, plant_noise.deviation_of_average(&found), &stable);
        Some(ClosedWithNoise { closed: plant_noise.with(found), doubt, stays })
    }

    /// Whether an average that deviates by more than `found` may go on to do so: at a gain that cannot be told from
    /// this one some deviation above it makes one that is larger still.
    fn stays_above<P: FrequencyResponse + Clone>(
        &self,
        plant_noise: &NoisyPlant<'_, P>,
        found: f64,
        stable: &impl Fn(&Controller) -> bool,
    ) -> bool {
        let tried = std::iter::successors(Some(found * FINER), |deviation| Some(deviation * FINER));
        let end = FIRST * libm::pow(FINER, f64::from(TRIED)) * plant_noise.undamped();
        tried.take_while(|deviation| *deviation < end).any(|deviation| {
            let controller = self.controller(plant_noise.time_s, deviation).scaled(IN_DOUBT);
            !stable(&controller) || plant_noise.deviation_of_average(&controller) > deviation
        })
    }

    /// The controller at the least deviation of the average that agrees with itself, at `gain` times the gain.
    fn least_consistent<P: FrequencyResponse + Clone>(
        &self,
        plant_noise: &NoisyPlant<'_, P>,
        gain: f64,
        stable: &impl Fn(&Controller) -> bool,
    ) -> Option<Controller> {
        let agrees = |deviation: f64| {
            let controller = self.controller(plant_noise.time_s, deviation).scaled(gain);
            (stable(&controller) && plant_noise.deviation_of_average(&controller) <= deviation).then_some(controller)
        };
        let mut high = FIRST * plant_noise.undamped();
        let mut low = high;
        let mut tried = 0;
        let mut found = loop {
            if let Some(controller) = agrees(high) {
                break controller;
            }
            tried += 1;
            if tried > TRIED {
                return None;
            }
            (low, high) = (high, high * FINER);
        };
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            match agrees(middle) {
                Some(controller) => (high, found) = (middle, controller),
                None => low = middle,
            }
        }
        Some(found)
    }
}

/// Loop that is consistent with its own noise.
pub(crate) struct ClosedWithNoise<P> {
    pub(crate) closed: Loop<P>,
    /// How many times as large, or as small, the queue's deviation is at [`IN_DOUBT`] times more gain, or less; `None`
    /// where none agrees with itself.
    pub(crate) doubt: Option<f64>,
    /// Whether a larger deviation than this would hold itself, too.
    pub(crate) stays: bool,
}

/// Gains that cannot be told apart: shares of signals, to which they are proportional, are met within this.
pub(crate) const IN_DOUBT: f64 = 1.05;

/// So far from the boundary a gain that is in doubt changes the deviation by a fortieth, which is not worked out.
const FAR: f64 = 2.0;

/// Plant with its noise, sampled once over frequency: deviations are evaluated often.
struct NoisyPlant<'a, P> {
    plant: &'a P,
    time_s: f64,
    places: Vec<FrequencySample>,
}

/// Sample at one frequency.
struct FrequencySample {
    w: f64,
    /// Plant response, and open loop through the average with a slope of one.
    answer: Complex64,
    averaged: Complex64,
    /// The power of the queue without a loop, and of its average.
    power: f64,
    smoothed: f64,
}

impl<'a, P: FrequencyResponse + Clone> NoisyPlant<'a, P> {
    /// Around `peak`, rad/s, where a loop next to its boundary swings, it is looked at closely.
    fn new(plant: &'a P, time_s: f64, peak: Option<f64>, power: impl Fn(f64) -> f64) -> Self {
        let close =
            |peak: f64| CLOSE.iter().flat_map(move |to| (-POINTS_CLOSE..=POINTS_CLOSE).map(move |k| (peak, to, k)));
        let close = peak.into_iter().flat_map(close);
        let close = close.map(|(peak, to, k)| peak * libm::exp(to * f64::from(k) / f64::from(POINTS_CLOSE)));
        let mut all: Vec<f64> = frequencies(plant.delay_s(), Fineness::COARSE).chain(close).collect();
        all.sort_by(f64::total_cmp);
        let spot = |w: f64| {
            let (answer, power, lag) = (plant.response(w), power(w), Complex64::new(1.0, w * time_s));
            FrequencySample { w, answer, averaged: answer / lag, power, smoothed: power / lag.norm_sqr() }
        };
        NoisyPlant { plant, time_s, places: all.into_iter().map(spot).collect() }
    }

    fn with(&self, controller: Controller) -> Loop<P> {
        Loop { plant: self.plant.clone(), controller, images: 0 }
    }

    /// Deviation of the queue behind `controller`, and of its average.
    fn deviation(&self, controller: &Controller) -> f64 {
        self.deviation_of(controller, |spot| spot.power)
    }

    fn deviation_of_average(&self, controller: &Controller) -> f64 {
        self.deviation_of(controller, |spot| spot.smoothed)
    }

    fn deviation_of(&self, controller: &Controller, power: impl Fn(&FrequencySample) -> f64) -> f64 {
        let spots = self.places.iter();
        match controller {
            // A slope alone: this is asked most.
            Controller::Continuous { num, .. } if num.len() == 1 => {
                let slope = num[0];
                deviation_over(spots.map(|spot| (spot.w, power(spot) / (1.0 - slope * spot.averaged).norm_sqr())))
            }
            _ => deviation_over(
                spots.map(|spot| (spot.w, power(spot) / (1.0 - controller.response(spot.w) * spot.answer).norm_sqr())),
            ),
        }
    }

    /// That of the average without a loop.
    fn undamped(&self) -> f64 {
        deviation_over(self.places.iter().map(|spot| (spot.w, spot.smoothed)))
    }
}

#[cfg(test)]
mod tests {
    use aqumen_aqm::RedCurve;

    use super::*;

    const STEPS: MaxPSteps = MaxPSteps { band_half_pkts: 10.0, up: 0.1, down: 0.1, interval_s: 0.5 };

    fn law() -> RedLaw {
        // Slope 1e-3 from 50 to 150, of which 1.5 packets share a signal: 6.67e-4; .9 / 150 above.
        let curve = RedCurve::new(50.0, 150.0, 0.1, true).unwrap();
        RedLaw { curve, decay: 0.002, wait: true, ecn: true, mark_limit: (1.0, 300.0) }
    }

    fn red(probability: f64) -> DescribingFunction {
        DescribingFunction { curve: Curve::Red(law(), 1.0), steps: None, probability }
    }

    #[test]
    fn noise_that_seldom_leaves_the_band_moves_max_p_seldom() {
        // MaxPSteps alike stand around the middle: 2 (.1) phi(1) / (10 (.5)) = .2 (.24197) / 5.
        assert!((pull(&STEPS, 10.0) - 0.009_679).abs() < 1e-6, "{}", pull(&STEPS, 10.0));
        // A fifth of that: phi(5) = 1.487e-6, over 2.
        assert!((pull(&STEPS, 2.0) - 0.2 * 1.487e-6).abs() < 1e-9, "{}", pull(&STEPS, 2.0));
        // Far beyond the band the steps are of one height, whatever the distance: .2 (.3989) / (1000 (.5)).
        assert!((pull(&STEPS, 1000.0) - 1.596e-4).abs() < 1e-7, "{}", pull(&STEPS, 1000.0));
    }

    #[test]
    fn unlike_steps_rest_where_they_come_as_often_as_they_are_small() {
        // A band that is nothing beside the noise: .1 (1 - x) = .3 x, x = Q(m / s) = 1/4 at m = .6745 s, where phi is
        // .31778: .4 (.31778) / (.5 s).
        let unlike = MaxPSteps { band_half_pkts: 1.0, down: 0.3, ..STEPS };
        assert!((pull(&unlike, 1e5) / 2.5422e-6 - 1.0).abs() < 1e-3, "{}", pull(&unlike, 1e5));
    }

    #[test]
    fn the_curve_answers_noise_by_the_mean_of_its_slopes() {
        // On its line, far from its bends: 1e-3 / 1.5.
        assert!((red(0.03).slope(5.0) / 6.667e-4 - 1.0).abs() < 0.03, "{}", red(0.03).slope(5.0));
        // Where signals begin a line is met for half of the time: E[max(0, z)] = .3989 s, the slope half of it. The
        // share at a mean of 50 is 6.667e-4 (.3989) (10) = .00266.
        let half = red(0.00266).slope(10.0);
        assert!((half / 3.333e-4 - 1.0).abs() < 0.03, "{half}");
        // Where it turns steep both slopes count half: (1e-3 + 6e-3) / 2 / 1.5, at (.1 + 5e-3 (3.989)) / 1.5 of the
        // packets.
        let both = red(0.08).slope(10.0);
        assert!((both / 2.333e-3 - 1.0).abs() < 0.03, "{both}");
    }

    #[test]
    fn the_steps_are_an_integral_beside_reds_slope() {
        let with = DescribingFunction { steps: Some(STEPS), ..red(0.02) };
        // At 1 rad/s: C = L / (1 + .8j) + .02 (.009679) / (j (1 + .8j) (1 + .25j)).
        let j = num_complex::Complex64::new(0.0, 1.0);
        let expected = with.slope(10.0) / (1.0 + 0.8 * j) + 0.02 * 0.009_679 / (j * (1.0 + 0.8 * j) * (1.0 + 0.25 * j));
        let controller = with.controller(0.8, 10.0);
        assert!((controller.response(1.0) - expected).l1_norm() < 1e-8, "{controller:?}");
    }

    /// -1 / (1 + s)^3, which a gain of 8 makes swing.
    #[derive(Clone)]
    struct Lags;

    impl FrequencyResponse for Lags {
        fn response(&self, w: f64) -> Complex64 {
            let lag = 1.0 / Complex64::new(1.0, w);
            -lag * lag * lag
        }

        fn dc_gain(&self) -> f64 {
            -1.0
        }

        fn delay_s(&self) -> f64 {
            1.0
        }
    }

    #[test]
    fn a_loop_next_to_its_boundary_says_how_much_its_deviation_goes_by_a_little_gain() {
        let growth = |slope: f64| {
            let line = DescribingFunction { curve: Curve::Line(slope), steps: None, probability: 0.1 };
            line.close_around(&Lags, 0.0, |w| 1.0 / (1.0 + w * w)).unwrap().doubt
        };
        // 5 % more of 2, 7.4 and 7.8 are 2.1, 7.77 and 8.19. Next to 8 the deviation goes as 1 / sqrt(8 - gain), and
        // sqrt(.6 / .23) = 1.615.
        assert_eq!(growth(2.0), Some(1.0));
        assert!((growth(7.4).unwrap() - 1.615).abs() < 0.03, "{:?}", growth(7.4));
        assert_eq!(growth(7.8), None);
    }

    #[test]
    fn the_loop_that_is_found_agrees_with_the_deviation_that_it_makes() {
        // White noise through one lag: without a loop 1 / sqrt(2), behind an average of .5 s less.
        let power = |w: f64| 400.0 / (1.0 + w * w);
        for (averaged, time_s) in [
            (DescribingFunction { curve: Curve::Line(2.0), steps: None, probability: 0.1 }, 0.5),
            (DescribingFunction { curve: Curve::Line(0.3), steps: Some(STEPS), probability: 0.1 }, 0.5),
            (DescribingFunction { curve: Curve::Red(law(), 600.0), steps: None, probability: 0.02 }, 2.0),
        ] {
            let closed = averaged.close_around(&Lags, time_s, power).unwrap().closed;
            // The deviation of the average in that loop, summed up anew.
            let points: Vec<f64> = (0..4000).map(|k| 1e-4 * libm::pow(10.0, f64::from(k) / 600.0)).collect();
            let at = |w: f64| {
                let lag = Complex64::new(1.0, w * time_s);
                power(w) / lag.norm_sqr() / (1.0 + closed.response(w)).norm_sqr()
            };
            let within: f64 = points.windows(2).map(|p| 0.5 * (at(p[0]) + at(p[1])) * (p[1] - p[0])).sum();
            let deviation = ((points[0] * at(points[0]) + within) / PI).sqrt();
            let again = averaged.controller(time_s, deviation);
            for w in [0.02, 0.3, 2.0] {
                let (one, other) = (closed.controller.response(w), again.response(w));
                assert!((one - other).l1_norm() < 0.03 * other.l1_norm(), "{averaged:?} {w}: {one} {other}");
            }
        }
    }

    #[test]
    fn a_gain_that_no_deviation_calms_has_no_answer() {
        let line = |slope: f64| DescribingFunction { curve: Curve::Line(slope), steps: None, probability: 0.1 };
        let power = |w: f64| 1.0 / (1.0 + w * w);
        assert!(
            line(7.9).close_around(&Lags, 0.0, power).is_some() && line(8.1).close_around(&Lags, 0.0, power).is_none()
        );
    }

    #[test]
    fn steps_that_hold_a_swing_which_noise_alone_does_not_begin_are_said() {
        // A deviation of 1.2 at most within a band of 10 to either side: max_p rests. At 10 the integral of the steps
        // is .0097 times what is signalled; behind three lags it swings from about .9 on.
        let with = |probability: f64| {
            let averaged = DescribingFunction { curve: Curve::Line(0.3), steps: Some(STEPS), probability };
            averaged.close_around(&Lags, 0.0, |w| 3.0 / (1.0 + w * w)).unwrap()
        };
        let (weak, strong) = (with(10.0), with(200.0));
        assert!(!weak.stays && strong.stays);
        // The calm loop that is told is the same.
        for w in [0.1, 1.0] {
            assert!((weak.closed.response(w) - strong.closed.response(w)).l1_norm() < 1e-3, "{w}");
        }
    }

    #[test]
    fn steps_pull_the_same_whatever_queues_are_counted_in() {
        // MaxPSteps up that are a twentieth of those down: the average rests far from the middle of its band.
        let of = |unit: f64| {
            let steps = MaxPSteps { band_half_pkts: 10.0 * unit, up: 0.02, down: 0.4, interval_s: 0.5 };
            unit * pull(&steps, 30.0 * unit)
        };
        for unit in [1e4, 1e-4] {
            assert!((of(unit) / of(1.0) - 1.0).abs() < 1e-6, "{} {}", of(unit), of(1.0));
        }
        // By how much more the balance of the steps is, per packet: a slope of the two tails at the mean where they are
        // even.
        let balance = |mean: f64| {
            let beyond = |x: f64| 0.5 * libm::erfc(x / 30.0 / SQRT_2);
            (0.02 * beyond(10.0 - mean) - 0.4 * beyond(10.0 + mean)) / 0.5
        };
        let (mut low, mut high) = (-200.0, 200.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if balance(middle) < 0.0 { low = middle } else { high = middle }
        }
        let slope = (balance(low + 1e-3) - balance(low - 1e-3)) / 2e-3;
        assert!((of(1.0) / slope - 1.0).abs() < 1e-5, "{} {slope}", of(1.0));
    }
}
