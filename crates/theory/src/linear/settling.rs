//! How long a start lasts: the settling time of the slowest mode of a loop.
//!
//! Three modes can be the slowest. *The signal probability* follows what the network needs through T = L/(1 + L): for
//! an integrating law with the lag 1/K_v (velocity constant), for RED with that of its average. *An oscillation*
//! between the crossovers decays as the root of 1 + L there, one Newton step from the imaginary axis. *The windows*
//! relax towards each other at a probability that stands still: with the loop closed the shares of several flow groups
//! have the zeros of sum a_i/(1 + s tau_i) as modes, which lie between the lags tau_i, and the flows of one group the
//! lag itself, so that the longest lag bounds them.
//!
//! A lag is that of the one pole with this phase at a low frequency: tan(-arg)/w.

use num_complex::Complex64;

use super::complex::{abs, lag_s};
use super::loops::{FrequencyResponse, Loop, Margins};
use crate::root_finding::halved;

/// Time constants after which 5 % of a deviation are left: ln 20.
const TIME_CONSTANTS: f64 = 2.995_732_273_553_991;
/// Low frequency at which the probability's lag is taken, in inverse round trips: laws may be slow.
const LOWEST: f64 = 1e-5;
/// Step of a derivative, relative.
const STEP: f64 = 1e-3;
/// Bisections of the search for an oscillation.
const BISECTIONS: u32 = 20;

/// Time until 5 % of a small deviation are left, seconds; `None` of an unstable loop.
pub fn settling_s<P: FrequencyResponse>(closed: &Loop<P>, margins: &Margins) -> Option<f64> {
    if !margins.stable {
        return None;
    }
    let w = LOWEST / closed.plant.delay_s();
    let open = closed.response(w);
    let probability_s = lag_s(open / (open + 1.0), w);
    let oscillation_s = match (margins.crossover_rad_s, margins.phase_crossover_rad_s) {
        (Some(low), Some(high)) if low < high => decay_s(closed, low, high),
        _ => 0.0,
    };
    Some(TIME_CONSTANTS * probability_s.max(oscillation_s).max(closed.plant.window_lag_s()))
}

/// Time constant of the oscillation between the crossovers `low` and `high`, rad/s, in seconds: of the root that one
/// Newton step finds straight to the left of a point of the imaginary axis; 0 of a root that hardly oscillates.
fn decay_s<P: FrequencyResponse>(closed: &Loop<P>, low: f64, high: f64) -> f64 {
    let step = |w: f64| {
        let slope = (closed.response(w * (1.0 + STEP)) - closed.response(w * (1.0 - STEP))) / (2.0 * STEP * w);
        // dL/ds = (dL/dw)/j.
        -(closed.response(w) + 1.0) / (slope * -Complex64::I)
    };
    let w = halved(|w| step(w).im, (low, high), BISECTIONS).0;
    let root = step(w);
    if root.re < 0.0 && abs(root) < w { -1.0 / root.re } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::equilibrium::sender::{Law, Sender};
    use crate::fluid::Model;
    use crate::linear::{Controller, OperatingPoint, Plant, rightmost};
    use crate::noise::mean_field::MeanField;

    fn at(flows: f64) -> OperatingPoint {
        OperatingPoint::new(Model::Reno, flows, 2000.0, 0.0, 0.1, 100.0).unwrap()
    }

    /// An integrator of gain `k`, 1/(packet s).
    fn integrator(k: f64) -> Controller {
        Controller::Continuous { num: vec![k], den: vec![0.0, 1.0] }
    }

    #[test]
    fn a_slow_integrator_settles_with_its_velocity_constant() {
        let at = at(20.0);
        let plant = Plant::exact(&at);
        let k = 1e-3 / (-plant.dc_gain());
        let closed = Loop::new(plant, integrator(k));
        // L = K_v/s with K_v = .001: ln 20 of 1000 s.
        let settling = settling_s(&closed, &closed.margins()).unwrap();
        assert!((settling / 2995.7 - 1.0).abs() < 0.01, "{settling}");
    }

    #[test]
    fn it_is_the_rightmost_root_of_the_loop_where_that_is_slower_than_windows() {
        let at = at(40.0);
        let plant = Plant::exact(&at);
        // Two poles that meet (at .05) settle later than one.
        for (part, most) in [(0.01, 1.2), (0.02, 1.2), (0.05, 2.0), (0.2, 2.0), (0.6, 1.2), (0.8, 1.2)] {
            let closed = Loop::new(plant, integrator(1.0));
            let gain = closed.margins().gain_margin.unwrap();
            let closed = Loop::new(plant, integrator(part * gain));
            let (settling, root) = (settling_s(&closed, &closed.margins()).unwrap(), rightmost(&closed).unwrap());
            let ratio = settling / (TIME_CONSTANTS / -root.re);
            assert!((0.6..most).contains(&ratio), "{part}: {ratio}");
        }
        let closed = Loop::new(plant, integrator(1.0));
        let gain = closed.margins().gain_margin.unwrap();
        let unstable = Loop::new(plant, integrator(1.1 * gain));
        assert_eq!(settling_s(&unstable, &unstable.margins()), None);
    }

    #[test]
    fn windows_of_several_laws_have_the_longest_of_their_lags() {
        let reno = Sender { proportional: true, from_flight: true, min_window: 2.0, ..Sender::reno() };
        let class = |sender: Sender, window: f64, rtt_s: f64| {
            (sender, 10.0, [sender.probability(window, rtt_s).unwrap(), 1.0], rtt_s, window)
        };
        let of = |classes: &[_]| MeanField::from_one_queue(2000.0, 1.0, classes).window_lag_s();
        let (short, long) = (class(reno, 10.0, 0.05), class(reno, 40.0, 0.2));
        let (one, other, both) = (of(&[short]), of(&[long]), of(&[short, long]));
        assert!(one < other && (both / other - 1.0).abs() < 1e-9, "{one} {other} {both}");
        // A mean window of Reno returns within about W/2 round trips, the queue within one more.
        assert!((0.5..1.6).contains(&(one / (10.0 / 2.0 * 0.05))), "{one}");
        let cubic = Sender { law: Law::Cubic, ..reno };
        assert!(of(&[class(cubic, 40.0, 0.2)]) > 0.0);
    }
}
