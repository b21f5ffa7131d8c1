//! The loop closed: frequency response and margins.

use std::f64::consts::PI;

use num_complex::Complex64;
use serde::Serialize;

use super::complex::{abs, arg, cis};
use super::controller::Controller;
use super::plant::Plant;

/// A plant and its controller. The loop's response is L(jw) = - (dq/dp) (dp/dq), so that -1 is the critical point.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    /// The plant.
    pub plant: Plant,
    /// The controller.
    pub controller: Controller,
    /// How many images of the spectrum on each side a sampled controller sees; 0 leaves sampling's aliases out.
    pub images: u32,
}

/// How far a loop is from instability. `None` where there is no such crossing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Margins {
    /// Whether the closed loop is stable (Nyquist).
    pub stable: bool,
    /// Smallest phase margin, degrees.
    pub phase_margin_deg: Option<f64>,
    /// Factor that the gain may still grow by; below one, the loop is unstable.
    pub gain_margin: Option<f64>,
    /// Delay that may still be added, seconds.
    pub delay_margin_s: Option<f64>,
    /// Smallest distance of L from -1; its inverse is the largest sensitivity.
    pub modulus_margin: f64,
    /// Where |L| = 1 with the smallest phase margin, rad/s.
    pub crossover_rad_s: Option<f64>,
    /// Where the phase is -180 degrees with the largest |L|, rad/s.
    pub phase_crossover_rad_s: Option<f64>,
}

/// How finely a loop's response is looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resolution {
    /// Points per decade.
    pub per_decade: f64,
    /// The lowest frequency, as a share of 1 / R0.
    pub from: f64,
    /// |L| below which no more is looked for.
    pub down_to: f64,
    /// Bisections of a crossing.
    pub bisections: u32,
}

impl Resolution {
    /// For one loop.
    pub const FINE: Resolution = Resolution { per_decade: 200.0, from: 1e-6, down_to: 1e-3, bisections: 60 };
    /// For ten thousand.
    pub const COARSE: Resolution = Resolution { per_decade: 40.0, from: 1e-4, down_to: 0.05, bisections: 25 };
}

impl Loop {
    /// The loop of `plant` and `controller`, with eight images on each side.
    pub fn new(plant: Plant, controller: Controller) -> Self {
        Loop { plant, controller, images: 8 }
    }

    /// The loop's response at `w`, rad/s. A sampled controller sees the plant through its hold, (1 - e^-sT)/(sT), and the
    /// images at multiples of the sampling frequency.
    pub fn response(&self, w: f64) -> Complex64 {
        let controller = self.controller.response(w);
        let Some(period) = self.controller.period_s() else {
            return -controller * self.plant.response(w);
        };
        let numerator = Complex64::ONE - cis(-w * period);
        let image = |k: i64| {
            let w = w + 2.0 * PI / period * k as f64;
            self.plant.response(w) / Complex64::new(0.0, w * period)
        };
        let mut sum = image(0);
        for k in 1..=i64::from(self.images) {
            sum += image(k) + image(-k);
        }
        -controller * numerator * sum
    }

    /// Margins with [`Resolution::FINE`].
    pub fn margins(&self) -> Margins {
        self.margins_at(Resolution::FINE)
    }

    /// Margins from a walk along the response.
    pub fn margins_at(&self, resolution: Resolution) -> Margins {
        let r = self.plant.delay_s;
        let end = self.controller.period_s().map_or(1e4 / r, |period| PI / period);
        let ratio = libm::pow(10.0, 1.0 / resolution.per_decade);
        let mut w = (resolution.from / r).min(0.1 * end);
        let mut l = self.response(w);
        let mut margins = Margins { modulus_margin: f64::INFINITY, ..Margins::default() };
        // Crossings of the real axis left of -1: clockwise ones less the others.
        let (mut encircled, mut largest) = (0i32, 0.0f64);
        let mut low = (w, abs(l));
        loop {
            margins.modulus_margin = margins.modulus_margin.min(abs(l + 1.0));
            // Neither the delay's phase nor a decade's detail may be jumped over.
            let next = (w * ratio).min(w + 0.2 / r).min(end);
            if next <= w || abs(l) < resolution.down_to && w * r > 3.0 {
                break;
            }
            let following = self.response(next);
            if (abs(l) - 1.0) * (abs(following) - 1.0) <= 0.0 && abs(l) != 1.0 {
                let at = bisect(w, next, resolution.bisections, |w| abs(self.response(w)) - 1.0);
                let phase = arg(self.response(at)) + PI;
                let phase = if phase > PI { phase - 2.0 * PI } else { phase };
                let degrees = phase.to_degrees();
                if margins
                    .phase_margin_deg
                    .is_none_or(|known| degrees.abs() < known.abs() || degrees < 0.0 && known > 0.0)
                {
                    (margins.phase_margin_deg, margins.crossover_rad_s) = (Some(degrees), Some(at));
                }
                let delay = if phase >= 0.0 { phase / at } else { (phase + 2.0 * PI) / at };
                margins.delay_margin_s = Some(margins.delay_margin_s.map_or(delay, |known: f64| known.min(delay)));
            }
            if l.im * following.im <= 0.0 && l.re.min(following.re) < 0.0 && l.im != 0.0 {
                let at = bisect(w, next, resolution.bisections, |w| self.response(w).im);
                let crossing = self.response(at);
                if crossing.re < 0.0 && crossing.im.abs() < 1e-3 * (1.0 + abs(crossing)) {
                    if crossing.re < -1.0 {
                        encircled += if following.im > l.im { 1 } else { -1 };
                    }
                    if following.im > l.im && -crossing.re > largest {
                        largest = -crossing.re;
                        (margins.gain_margin, margins.phase_crossover_rad_s) = (Some(1.0 / largest), Some(at));
                    }
                }
            }
            if abs(following) > low.1 {
                low = (next, abs(following));
            }
            (w, l) = (next, following);
        }
        margins.stable = encircled == 0;
        if !margins.stable {
            margins.delay_margin_s = None;
        }
        margins
    }
}

/// A zero of `f` between `low` and `high`, where it changes its sign.
fn bisect(mut low: f64, mut high: f64, steps: u32, f: impl Fn(f64) -> f64) -> f64 {
    let rising = f(high) > 0.0;
    for _ in 0..steps {
        let middle = 0.5 * (low + high);
        if (f(middle) > 0.0) == rising {
            high = middle;
        } else {
            low = middle;
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use aqumen_aqm::{Crossover, PiController, TcpPlant};

    use super::super::point::OperatingPoint;
    use super::*;
    use crate::fluid::Model;

    #[test]
    fn half_a_radian_per_delay_leaves_the_margins_that_the_rule_promises() {
        // PM = 90 - 0.5 (180/pi) - atan 0.5 = 90 - 28.648 - 26.565 = 34.787 degrees; the loop without the cancelled pole is
        // 0.559 e^{-jx} / (jx (1 + jx)), x = w R0: phase -180 where x + atan x = pi/2, x = 0.86033,
        // |L| = 0.559017 / (0.86033 * 1.319163) = 0.49256: GM = 2.0302.
        let at = OperatingPoint::new(Model::Hollot, 100.0, 1250.0, 0.0, 0.2, 100.0).unwrap();
        let plant = TcpPlant::new(100.0, 1250.0, 0.28).unwrap();
        let pi = Controller::of_continuous_pi(PiController::design(&plant, Crossover::PerDelay(0.5)));
        let margins = Loop::new(Plant::textbook(&at), pi).margins();
        assert!(margins.stable);
        assert!((margins.phase_margin_deg.unwrap() - 34.787).abs() < 1e-3, "{margins:?}");
        assert!((margins.gain_margin.unwrap() - 2.0302).abs() < 1e-3);
        assert!((margins.crossover_rad_s.unwrap() - 0.5 / 0.28).abs() < 1e-6);
        assert!((margins.phase_crossover_rad_s.unwrap() - 0.86033 / 0.28).abs() < 1e-4);
        // 34.787 degrees at 1.7857 rad/s are 0.3400 s.
        assert!((margins.delay_margin_s.unwrap() - 0.34).abs() < 1e-4);
    }

    #[test]
    fn more_gain_than_the_gain_margin_is_unstable() {
        let at = OperatingPoint::new(Model::Hollot, 100.0, 1250.0, 0.0, 0.2, 100.0).unwrap();
        let plant = TcpPlant::new(100.0, 1250.0, 0.28).unwrap();
        let design = PiController::design(&plant, Crossover::PerDelay(0.5));
        for (factor, stable) in [(1.0, true), (2.02, true), (2.04, false), (4.0, false)] {
            let pi = PiController { gain: design.gain * factor, ..design };
            let margins = Loop::new(Plant::textbook(&at), Controller::of_continuous_pi(pi)).margins();
            assert_eq!(margins.stable, stable, "{factor}: {margins:?}");
            assert!((margins.gain_margin.unwrap() * factor - 2.0302).abs() < 1e-3);
        }
    }
}
