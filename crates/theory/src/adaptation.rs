//! How an AQM that moves its own maximum probability (ARED) does so among noise: what its rule comes to as a part of
//! the loop.
//!
//! The rule leaves max_p alone while the average queue is within a band, and moves it by a share of itself each
//! interval that the average is beyond. Noise carries the average beyond either edge now and then, the more often the
//! further its mean lies from the middle: the random-input describing function (R. C. Booton, "Nonlinear control
//! systems with random inputs", IRE Transactions on Circuit Theory 1(1), 1954). With an average of deviation s around a
//! mean m, measured from the middle of a band of half the width d, steps up by the share u and down by v,
//!
//! ```text
//! u Q((d - m) / s) = v Q((d + m) / s)                        for m: on average max_p stays
//! k = (u phi((d - m) / s) + v phi((d + m) / s)) / (s T)      relative steps a second, per packet of the average
//! ```
//!
//! so that beside RED's slope stands an integral, p k / s, behind the same average. It makes the queue swing slowly, by
//! which s grows, which changes k: s is the least at which both agree.

use std::f64::consts::{PI, SQRT_2};

use aqumen_aqm::Steps;

use crate::linear::noise::{Fineness, deviation_of};
use crate::linear::{Answers, Controller, Loop, Resolution};

/// A rule that moves max_p.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Adaptation {
    /// By how much, and when.
    pub(crate) steps: Steps,
    /// Share of the packets that is signalled, which goes as max_p does.
    pub(crate) probability: f64,
}

/// Deviations that are tried grow by this, up to so many times the first.
const FINER: f64 = 1.15;
const TRIED: u32 = 40;
const HALVINGS: u32 = 10;

impl Adaptation {
    /// Relative steps a second, per packet that the average lies above, of an average that deviates by so much.
    fn pull(&self, deviation: f64) -> f64 {
        let Steps { band_half_pkts: d, up, down, interval_s } = self.steps;
        let beyond = |x: f64| 0.5 * libm::erfc(x / deviation / SQRT_2);
        let density = |x: f64| libm::exp(-0.5 * (x / deviation) * (x / deviation)) / (2.0 * PI).sqrt();
        // Up rises with the mean, down falls.
        let (mut low, mut high) = (-d - 4.0 * deviation, d + 4.0 * deviation);
        for _ in 0..40 {
            let mean = 0.5 * (low + high);
            if up * beyond(d - mean) < down * beyond(d + mean) { low = mean } else { high = mean }
        }
        (up * density(d - low) + down * density(d + low)) / (deviation * interval_s)
    }

    /// `red` with the steps of max_p beside it, of an average that deviates by so much.
    fn beside(&self, red: &Controller, deviation: f64) -> Option<Controller> {
        let Controller::Continuous { num, den } = red else { return None };
        let ([slope], [_, time_s]) = (&num[..], &den[..]) else { return None };
        // A step is held for an interval: half of it late.
        let late_s = 0.5 * self.steps.interval_s;
        Some(Controller::Continuous {
            num: vec![self.probability * self.pull(deviation), *slope, slope * late_s],
            den: vec![0.0, 1.0, time_s + late_s, time_s * late_s],
        })
    }

    /// The loop of RED alone with the steps beside it; `power` is that of the queue's noise without a loop. `None`
    /// where no deviation agrees with itself: the steps swing by more than was tried.
    pub(crate) fn with<P: Answers + Clone>(&self, closed: &Loop<P>, power: impl Fn(f64) -> f64) -> Option<Loop<P>> {
        let Controller::Continuous { den, .. } = &closed.controller else { return None };
        let time_s = *den.get(1)?;
        // Of the average, which lags behind the queue.
        let deviates = |with: &Loop<P>| {
            let of = |w: f64| power(w) / (with.response(w) + 1.0).norm_sqr() / (1.0 + (w * time_s) * (w * time_s));
            deviation_of(of, with.plant.delay_s(), Fineness::COARSE)
        };
        let at = |deviation: f64| -> Option<Loop<P>> {
            let controller = self.beside(&closed.controller, deviation)?;
            Some(Loop { plant: closed.plant.clone(), controller, images: closed.images })
        };
        let agrees = |deviation: f64| {
            at(deviation).filter(|with| with.margins_at(Resolution::COARSE).stable && deviates(with) <= deviation)
        };
        let mut low = deviates(closed);
        let mut high = low;
        let mut tried = 0;
        let mut found = loop {
            if let Some(with) = agrees(high) {
                break with;
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
                Some(with) => (high, found) = (middle, with),
                None => low = middle,
            }
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: Steps = Steps { band_half_pkts: 10.0, up: 0.1, down: 0.1, interval_s: 0.5 };
    const EVEN: Adaptation = Adaptation { steps: STEPS, probability: 0.02 };

    #[test]
    fn noise_that_seldom_leaves_the_band_moves_max_p_seldom() {
        // Steps alike stand around the middle: 2 (.1) phi(1) / (10 (.5)) = .2 (.24197) / 5.
        assert!((EVEN.pull(10.0) - 0.009_679).abs() < 1e-6, "{}", EVEN.pull(10.0));
        // A fifth of that: phi(5) = 1.487e-6, over 2.
        assert!((EVEN.pull(2.0) - 0.2 * 1.487e-6).abs() < 1e-9, "{}", EVEN.pull(2.0));
        // Far beyond the band the steps are of one height, whatever the distance: .2 (.3989) / (1000 (.5)).
        assert!((EVEN.pull(1000.0) - 1.596e-4).abs() < 1e-7, "{}", EVEN.pull(1000.0));
    }

    #[test]
    fn unlike_steps_rest_where_they_come_as_often_as_they_are_small() {
        // A band that is nothing beside the noise: .1 (1 - x) = .3 x, x = Q(m / s) = 1/4 at m = .6745 s, where phi is
        // .31778: .4 (.31778) / (.5 s).
        let unlike = Adaptation { steps: Steps { band_half_pkts: 1.0, down: 0.3, ..STEPS }, ..EVEN };
        assert!((unlike.pull(1e5) / 2.5422e-6 - 1.0).abs() < 1e-3, "{}", unlike.pull(1e5));
    }

    #[test]
    fn the_steps_are_an_integral_beside_reds_slope() {
        let red = Controller::Continuous { num: vec![2e-3], den: vec![1.0, 0.8] };
        let with = EVEN.beside(&red, 10.0).unwrap();
        // At 1 rad/s: C = 2e-3 / (1 + .8j) + .02 (.009679) / (j (1 + .8j) (1 + .25j)).
        let j = num_complex::Complex64::new(0.0, 1.0);
        let expected = 2e-3 / (1.0 + 0.8 * j) + 0.02 * 0.009_679 / (j * (1.0 + 0.8 * j) * (1.0 + 0.25 * j));
        assert!((with.response(1.0) - expected).l1_norm() < 1e-8, "{:?}", with.response(1.0));
        assert_eq!(
            EVEN.beside(&Controller::of_continuous_pi(aqumen_aqm::PiController { gain: 1.0, zero: 1.0 }), 10.0),
            None
        );
    }
}
