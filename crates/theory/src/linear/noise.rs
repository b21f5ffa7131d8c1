//! Packet noise of the queue around its equilibrium, through the loop.
//!
//! Two white noises enter. A window's reductions come at random, so many packets^2 a round trip each; the windows
//! filter it as they do any push, with their pole, and the queue follows with a lag of R. Packets arrive at random, C
//! of them a second; a surplus goes away within R, since those that wait longer come back later. Both are answered by
//! the loop, 1 / (1 + L). This is of signals by a toss for each packet; of signals that are spaced the noise is that of
//! `field`.

use std::f64::consts::PI;

use super::complex::abs;
use super::loops::Loop;
use super::point::OperatingPoint;

/// How finely noise is summed up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fineness {
    /// From what share of 1 / R on.
    pub from: f64,
    /// Up to which.
    pub up_to: f64,
    /// Points per decade.
    pub per_decade: f64,
}

impl Fineness {
    /// For one loop.
    pub const FINE: Fineness = Fineness { from: 1e-4, up_to: 100.0, per_decade: 150.0 };
    /// For ten thousand: within a hundredth, of a loop with a gain margin above 1.1.
    pub const COARSE: Fineness = Fineness { from: 1e-3, up_to: 100.0, per_decade: 50.0 };
}

/// Power of the queue at `w`, rad/s, in packets^2 per rad/s: the variance is its integral over w from zero on, over pi.
/// `closed` is the loop at `at`, of many windows under random marks.
pub fn power(closed: &Loop, at: &OperatingPoint, w: f64) -> f64 {
    let [halvings, arrivals] = without_loop(at, w);
    let answered = abs(closed.response(w) + 1.0);
    (halvings + arrivals) / (answered * answered)
}

/// Power at `w` that halvings and arrivals have without a loop, packets^2 per rad/s.
pub(crate) fn without_loop(at: &OperatingPoint, w: f64) -> [f64; 2] {
    let OperatingPoint { flows, capacity_pps, rtt_s: r, windows, .. } = *at;
    let (slope, noise) = windows.map_or((-1.0, 0.0), |windows| (windows.slopes.0, windows.noise));
    let pole = slope / r;
    let lag = 1.0 + (w * r) * (w * r);
    let halvings = flows * noise / r / ((w * w + pole * pole) * lag);
    let arrivals = capacity_pps * r * r / lag;
    [halvings, arrivals]
}

/// Standard deviation of the queue, packets.
pub fn deviation(closed: &Loop, at: &OperatingPoint, fineness: Fineness) -> f64 {
    deviation_of(|w| power(closed, at, w), at.rtt_s, fineness)
}

/// Standard deviation of a queue with this power over frequency, at a round trip of `rtt_s`.
pub(crate) fn deviation_of(power: impl Fn(f64) -> f64, rtt_s: f64, fineness: Fineness) -> f64 {
    deviation_over(frequencies(rtt_s, fineness).map(|w| (w, power(w))))
}

/// The frequencies at which it is taken, rad/s.
pub(crate) fn frequencies(rtt_s: f64, fineness: Fineness) -> impl Iterator<Item = f64> {
    let ratio = libm::pow(10.0, 1.0 / fineness.per_decade);
    let (first, end) = (fineness.from / rtt_s, fineness.up_to / rtt_s);
    std::iter::successors(Some(first), move |w| (*w < end).then_some(w * ratio))
}

/// Deviation from the power at rising frequencies.
pub(crate) fn deviation_over(powers: impl Iterator<Item = (f64, f64)>) -> f64 {
    variance_over(powers).sqrt()
}

/// Variance from the power at rising frequencies.
pub(crate) fn variance_over(mut powers: impl Iterator<Item = (f64, f64)>) -> f64 {
    let Some((mut w, mut before)) = powers.next() else { return 0.0 };
    // What lies below is flat.
    let mut variance = w * before;
    for (next, here) in powers {
        variance += 0.5 * (before + here) * (next - w);
        (w, before) = (next, here);
    }
    variance / PI
}

/// Mean of what a normal variable of this mean and deviation lacks where it is below zero.
pub fn shortfall(mean: f64, deviation: f64) -> f64 {
    let z = mean / deviation;
    let density = libm::exp(-0.5 * z * z) / (2.0 * PI).sqrt();
    let below = 0.5 * libm::erfc(z / std::f64::consts::SQRT_2);
    deviation * (density - z * below)
}

#[cfg(test)]
mod tests {
    use super::super::{Controller, Plant};
    use super::*;
    use crate::equilibrium::window::{halving_noise, slopes};
    use crate::fluid::Model;

    #[test]
    fn without_a_loop_the_variance_is_that_of_windows_and_arrivals() {
        // A controller that does nothing. Arrivals alone: C R / 2. Halvings through two lags a = 1/R and b = -pole, of
        // N windows: N S / (2 a b (a + b)) / R^2.
        let at = OperatingPoint::new(Model::Reno, 60.0, 3750.0, 0.0, 0.2, 175.0).unwrap();
        let none = Controller::Continuous { num: vec![0.0], den: vec![1.0] };
        let closed = Loop::new(Plant::exact(&at), none);
        let (r, w) = (at.rtt_s, at.window_pkts);
        let (a, b) = (1.0 / r, -slopes(w).0 / r);
        let halvings = 60.0 * halving_noise(w) / r / (2.0 * a * b * (a + b)) * a * a;
        let expected = (halvings + 3750.0 * r / 2.0).sqrt();
        assert!(
            (deviation(&closed, &at, Fineness::FINE) / expected - 1.0).abs() < 0.01,
            "{} {expected}",
            deviation(&closed, &at, Fineness::FINE)
        );
    }

    #[test]
    fn a_normal_variable_falls_short_as_its_table_says() {
        // At mean 0: 1 / sqrt(2 pi); far above zero: nothing; far below: minus the mean.
        assert!((shortfall(0.0, 1.0) - 0.398_942).abs() < 1e-6);
        assert!(shortfall(8.0, 1.0) < 1e-15 && (shortfall(-8.0, 1.0) - 8.0).abs() < 1e-9);
        // Mean one deviation: .241971 - .158655 = .083316.
        assert!((shortfall(2.0, 2.0) - 2.0 * 0.083_315).abs() < 1e-5);
    }
}
