//! The fluid models linearised at an operating point: dx/dt = A x + A_d x(t - R0) + b p + b_d p(t - R0), x = (dW, dq).
//!
//! The delay depends on the state, but at an equilibrium all derivatives are zero, so freezing it at R0 is exact. The
//! textbook's plant (eq. (5) of the ARM-PFC paper, with its sign and delay put right) counts the delayed terms of the
//! window as present and drops those of the queue.

use num_complex::Complex64;

use super::complex::exp;
use super::point::OperatingPoint;
use crate::fluid::Model;

/// A linear plant with one delay, from probability to queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plant {
    /// A: slopes of (dW/dt, dq/dt) in the present (W, q), 1/s and flows.
    pub now: [[f64; 2]; 2],
    /// A_d: slopes in (W, q) one delay ago.
    pub delayed: [[f64; 2]; 2],
    /// b: slopes in the present probability.
    pub input_now: [f64; 2],
    /// b_d: slopes in the probability one delay ago.
    pub input_delayed: [f64; 2],
    /// R0, seconds.
    pub delay_s: f64,
}

impl Plant {
    /// The exact linearisation of the point's model.
    pub fn exact(at: &OperatingPoint) -> Self {
        let OperatingPoint { flows: n, capacity_pps: c, rtt_s: r, window_pkts: w, probability: p, .. } = *at;
        let (mut now, mut delayed) = ([[0.0; 2]; 2], [[0.0; 2]; 2]);
        let (mut input_now, mut input_delayed) = ([0.0; 2], [0.0; 2]);
        match at.model {
            Model::Hollot => {
                // f = 1/R - (W/2) (W_d/R_d) p_d, with W0^2 p0 = 2.
                now[0] = [-0.5 * w * p / r, -1.0 / (r * r * c)];
                delayed[0] = [-0.5 * w * p / r, 0.5 * w * w * p / (r * r * c)];
                input_delayed[0] = -0.5 * w * w / r;
            }
            Model::Reno => {
                let (in_window, in_p) = at.windows.map_or((0.0, 0.0), |windows| windows.slopes);
                now[0][0] = in_window / r;
                input_delayed[0] = in_p / r;
            }
            Model::Ecn | Model::Drop => {
                // f = (W_d/R_d) ((1-p_d)/W - W p_d/2): the bracket is zero, so only its own slopes remain.
                now[0][0] = -(w / r) * ((1.0 - p) / (w * w) + 0.5 * p);
                input_delayed[0] = -(w / r) * (1.0 / w + 0.5 * w);
            }
        }
        let keeps = if at.model == Model::Drop { 1.0 - p } else { 1.0 };
        now[1] = [keeps * n / r, -keeps * n * w / (r * r * c)];
        if let (Model::Reno, Some(windows)) = (at.model, at.windows) {
            // What the window's slope sends ahead.
            now[1][0] += windows.lead * n * now[0][0];
            input_delayed[1] = windows.lead * n * input_delayed[0];
        }
        if at.model == Model::Drop {
            input_now[1] = -(n * w / r + at.unresponsive_pps);
        }
        Plant { now, delayed, input_now, input_delayed, delay_s: r }
    }

    /// The textbook's plant: dq/dp = - k_t exp(-s R0) / ((tau1 s + 1) (tau2 s + 1)).
    pub fn textbook(at: &OperatingPoint) -> Self {
        let (n, c, ce, r) = (at.flows, at.capacity_pps, at.tcp_pps(), at.rtt_s);
        Plant {
            now: [[-2.0 * n / (r * r * ce), 0.0], [n / r, -ce / (r * c)]],
            delayed: [[0.0; 2]; 2],
            input_now: [0.0; 2],
            input_delayed: [-r * ce * ce / (2.0 * n * n), 0.0],
            delay_s: r,
        }
    }

    /// Returns the plant with another delay.
    pub fn with_delay(self, delay_s: f64) -> Self {
        Plant { delay_s, ..self }
    }

    /// dq/dp at the complex frequency `s`.
    pub fn at(&self, s: Complex64) -> Complex64 {
        let (above, below) = self.parts(s);
        above / below
    }

    /// Its numerator and denominator, which have no poles.
    pub(crate) fn parts(&self, s: Complex64) -> (Complex64, Complex64) {
        let e = exp(-s * self.delay_s);
        let a = |i: usize, j: usize| -(e * self.delayed[i][j] + self.now[i][j]);
        let b = |i: usize| e * self.input_delayed[i] + self.input_now[i];
        let (a00, a01, a10, a11) = (s + a(0, 0), a(0, 1), a(1, 0), s + a(1, 1));
        (a00 * b(1) - a10 * b(0), a00 * a11 - a01 * a10)
    }

    /// dq/dp at the frequency `w`, rad/s.
    pub fn response(&self, w: f64) -> Complex64 {
        self.at(Complex64::new(0.0, w))
    }

    /// dq/dp at rest, packets per unit of probability; negative.
    pub fn dc_gain(&self) -> f64 {
        self.at(Complex64::ZERO).re
    }

    /// The two poles that the plant would have without its delayed terms, moved to where they are with them. One of
    /// them may have met a third there and left the axis with it: then there are three.
    pub fn dominant_poles(&self) -> Vec<Complex64> {
        let sum = |i: usize, j: usize| self.now[i][j] + self.delayed[i][j];
        let (half_trace, det) = (0.5 * (sum(0, 0) + sum(1, 1)), sum(0, 0) * sum(1, 1) - sum(0, 1) * sum(1, 0));
        let under = half_trace * half_trace - det;
        let starts = if under >= 0.0 {
            vec![Complex64::from(half_trace + under.sqrt()), Complex64::from(half_trace - under.sqrt())]
        } else {
            vec![Complex64::new(half_trace, (-under).sqrt())]
        };
        // From beside the axis: from it Newton's method never leaves it.
        let beside = Complex64::new(0.0, 1e-3 / self.delay_s);
        let mut poles: Vec<Complex64> = Vec::new();
        for start in starts {
            let Some(pole) = self.polish(start + beside, &poles) else { continue };
            if pole.im.abs() < 1e-9 * pole.norm_sqr().sqrt() {
                poles.push(pole.re.into());
            } else {
                poles.extend([pole, pole.conj()]);
            }
        }
        poles
    }

    /// Newton's method on det(s - A - A_d exp(-s R0)) over the distances from the poles that are `known`, lest it find
    /// one of them again. `None` where it does not come to rest.
    fn polish(&self, mut s: Complex64, known: &[Complex64]) -> Option<Complex64> {
        let mut still = false;
        for _ in 0..100 {
            let e = exp(-s * self.delay_s);
            let m = |i: usize, j: usize| -(e * self.delayed[i][j] + self.now[i][j]);
            let slope = |i: usize, j: usize| e * (self.delay_s * self.delayed[i][j]);
            let (a, b, c, d) = (s + m(0, 0), m(0, 1), m(1, 0), s + m(1, 1));
            let value = a * d - b * c;
            let derivative = (slope(0, 0) + 1.0) * d + a * (slope(1, 1) + 1.0) - slope(0, 1) * c - b * slope(1, 0);
            let away: Complex64 = known.iter().map(|pole| (s - pole).inv()).sum();
            let derivative = derivative - value * away;
            if derivative.norm_sqr() == 0.0 {
                break;
            }
            let step = value / derivative;
            s -= step;
            // Next to another pole it comes by halves, and rounding ends that early.
            still = step.norm_sqr() <= 1e-12 * s.norm_sqr();
            if step.norm_sqr() <= 1e-30 * s.norm_sqr() {
                break;
            }
        }
        still.then_some(s)
    }
}

#[cfg(test)]
mod tests {
    use super::super::complex::{abs, arg};
    use super::*;
    use crate::equilibrium::window::LEAD;

    fn point(model: Model, flows: f64, capacity: f64, unresponsive: f64) -> OperatingPoint {
        OperatingPoint::new(model, flows, capacity, unresponsive, 0.2, 100.0).unwrap()
    }

    /// The right-hand sides by themselves: (f, g) of (W, q, W_d, q_d, p, p_d).
    fn slopes(at: &OperatingPoint, x: [f64; 6]) -> [f64; 2] {
        let [w, q, wd, qd, p, pd] = x;
        let (r, rd) = (q / at.capacity_pps + at.base_rtt_s, qd / at.capacity_pps + at.base_rtt_s);
        let signal = 0.5 * w * wd / rd * pd;
        let sent = at.flows * w / r + at.unresponsive_pps;
        match at.model {
            Model::Hollot => [1.0 / r - signal, sent - at.capacity_pps],
            Model::Ecn => [(1.0 - pd) * wd / (rd * w) - signal, sent - at.capacity_pps],
            Model::Reno => {
                let f = wd / (rd * w) * crate::equilibrium::window::gained(w, pd);
                [f, sent + LEAD * at.flows * f - at.capacity_pps]
            }
            Model::Drop => [(1.0 - pd) * wd / (rd * w) - signal, (1.0 - p) * sent - at.capacity_pps],
        }
    }

    #[test]
    fn the_jacobian_is_that_of_the_equations() {
        for model in [Model::Hollot, Model::Ecn, Model::Reno, Model::Drop] {
            for unresponsive in [0.0, 250.0] {
                let at = point(model, 100.0, 1250.0, unresponsive);
                let x = [at.window_pkts, at.queue_pkts, at.window_pkts, at.queue_pkts, at.probability, at.probability];
                let rest = slopes(&at, x);
                assert!(rest[0].abs() < 1e-9 && rest[1].abs() < 1e-6, "{model:?} does not rest: {rest:?}");
                let plant = Plant::exact(&at);
                for row in 0..2 {
                    let expected = [
                        plant.now[row][0],
                        plant.now[row][1],
                        plant.delayed[row][0],
                        plant.delayed[row][1],
                        plant.input_now[row],
                        plant.input_delayed[row],
                    ];
                    for (k, expected) in expected.into_iter().enumerate() {
                        let h = 1e-4 * x[k];
                        let (mut up, mut down) = (x, x);
                        up[k] += h;
                        down[k] -= h;
                        let slope = (slopes(&at, up)[row] - slopes(&at, down)[row]) / (2.0 * h);
                        let scale = expected.abs().max(1e-3);
                        assert!((slope - expected).abs() < 1e-6 * scale, "{model:?} [{row}][{k}]: {slope}, {expected}");
                    }
                }
            }
        }
    }

    #[test]
    fn at_rest_the_textbook_is_exact() {
        // k_t = R0^3 C C_e^2 / (4 N^2) = 0.28^3 * 1250 * 1000^2 / 40 000 = 686 with a fifth of the capacity taken.
        let at = point(Model::Hollot, 100.0, 1250.0, 250.0);
        assert!((Plant::textbook(&at).dc_gain() + 686.0).abs() < 1e-9);
        assert!((Plant::exact(&at).dc_gain() + 686.0).abs() < 1e-9);
    }

    #[test]
    fn the_textbook_is_good_for_large_windows_only() {
        let compare = |flows, capacity, base, queue, w| {
            let at = OperatingPoint::new(Model::Hollot, flows, capacity, 0.0, base, queue).unwrap();
            let ratio = Plant::textbook(&at).response(w) / Plant::exact(&at).response(w);
            (abs(ratio) - 1.0, arg(ratio).to_degrees())
        };
        // W0 = 3.5: +2.2 % and -1.5 degrees at 1 rad/s; -19 % and -4.2 degrees at 5 rad/s.
        let (gain, phase) = compare(100.0, 1250.0, 0.2, 100.0, 1.0);
        assert!((gain - 0.022).abs() < 1e-3 && (phase + 1.5).abs() < 0.1, "{gain} {phase}");
        let (gain, phase) = compare(100.0, 1250.0, 0.2, 100.0, 5.0);
        assert!((gain + 0.19).abs() < 5e-3 && (phase + 4.2).abs() < 0.1, "{gain} {phase}");
        // W0 = 15: within 0.4 % and 0.8 degrees at 1 rad/s.
        let (gain, phase) = compare(60.0, 3750.0, 0.2, 150.0, 1.0);
        assert!(gain.abs() < 4e-3 && phase.abs() < 0.8, "{gain} {phase}");
    }

    #[test]
    fn the_textbooks_poles_are_its_time_constants() {
        let at = point(Model::Hollot, 100.0, 1250.0, 0.0);
        let poles = Plant::textbook(&at).dominant_poles();
        let mut poles: Vec<f64> = poles.iter().map(|pole| -1.0 / pole.re).collect();
        poles.sort_by(f64::total_cmp);
        assert!((poles[0] - 0.28).abs() < 1e-12 && (poles[1] - 0.49).abs() < 1e-12);
        // The exact ones are zeros of the exact denominator: the response grows without bound.
        for pole in Plant::exact(&at).dominant_poles() {
            let near = Plant::exact(&at).at(pole + Complex64::new(1e-9, 0.0));
            assert!(abs(near) > 1e6, "{pole}: {near}");
        }
    }

    #[test]
    fn poles_without_delay_are_those_of_the_matrix() {
        let plant = |now: [[f64; 2]; 2]| Plant {
            now,
            delayed: [[0.0; 2]; 2],
            input_now: [0.0, 1.0],
            input_delayed: [0.0; 2],
            delay_s: 0.3,
        };
        let mut swinging = plant([[-1.0, -2.0], [2.0, -1.0]]).dominant_poles();
        swinging.sort_by(|a, b| a.im.total_cmp(&b.im));
        assert_eq!(swinging.len(), 2);
        let expected = [Complex64::new(-1.0, -2.0), Complex64::new(-1.0, 2.0)];
        assert!(swinging.iter().zip(expected).all(|(pole, known)| (pole - known).l1_norm() < 1e-9), "{swinging:?}");
        // Trace -7, determinant 10 - 4 = 6: -1 and -6.
        let dying = plant([[-2.0, 1.0], [4.0, -5.0]]).dominant_poles();
        let mut dying: Vec<f64> = dying.iter().map(|pole| pole.re).collect();
        dying.sort_by(f64::total_cmp);
        assert!((dying[0] + 6.0).abs() < 1e-9 && (dying[1] + 1.0).abs() < 1e-9, "{dying:?}");
    }

    #[test]
    fn poles_with_delayed_terms_are_zeros_of_the_denominator_one_each() {
        for model in [Model::Hollot, Model::Ecn, Model::Reno, Model::Drop] {
            for (flows, capacity) in [(15.0, 1250.0), (100.0, 1250.0), (300.0, 9000.0)] {
                let plant = Plant::exact(&point(model, flows, capacity, 0.1 * capacity));
                let poles = plant.dominant_poles();
                assert!(poles.len() >= 2, "{model:?} {flows}: {poles:?}");
                for (k, pole) in poles.iter().enumerate() {
                    let (below, beside) = (plant.parts(*pole).1, plant.parts(pole + 0.01 / plant.delay_s).1);
                    assert!(abs(below) < 1e-6 * abs(beside), "{model:?} {flows}: {pole}");
                    // Of a mean window at rest nothing grows by itself.
                    assert!(pole.re < 0.0, "{model:?} {flows}: {pole}");
                    assert!(poles[..k].iter().all(|other| abs(pole - other) > 1e-3 / plant.delay_s), "{poles:?}");
                    let mirrored = |other: &Complex64| (other - pole.conj()).l1_norm() < 1e-6 * abs(*pole);
                    assert!(poles.iter().any(mirrored), "{model:?} {flows}: {poles:?}");
                }
            }
        }
    }

    /// Zeros of `f` in the rectangle from `low` to `high`, by its turns along the edge.
    fn zeros_within(f: impl Fn(Complex64) -> Complex64, low: Complex64, high: Complex64) -> f64 {
        let corners = [low, Complex64::new(high.re, low.im), high, Complex64::new(low.re, high.im), low];
        let edge = |k: u32| {
            let (corner, part) = ((k / 4000) as usize, f64::from(k % 4000) / 4000.0);
            f(corners[corner] + (corners[(corner + 1) % 5] - corners[corner]) * part)
        };
        let turned: f64 = (0..16_000).map(|k| arg(edge(k + 1) / edge(k))).sum();
        turned / (2.0 * std::f64::consts::PI)
    }

    #[test]
    fn with_a_delayed_window_no_pole_that_far_to_the_right_is_left_out() {
        // Hollot's equations at rest, x = s R0, a = 1 / W0, k = C_e / C, with W0^2 p0 = 2 and N W0 = C_e R0 put in:
        // (x + a (1 + e^-x)) (x + k) + k a (1 - e^-x) = x^2 + (k + a + a e^-x) x + 2 k a.
        for (flows, unresponsive, number) in [(100.0, 0.0, 3), (15.0, 125.0, 2), (40.0, 250.0, 2)] {
            let at = point(Model::Hollot, flows, 1250.0, unresponsive);
            let (a, k) = (1.0 / at.window_pkts, 1.0 - unresponsive / 1250.0);
            let own = |x: Complex64| x * x + (exp(-x) * a + a + k) * x + 2.0 * k * a;
            let poles = Plant::exact(&at).dominant_poles();
            assert_eq!(poles.len(), number, "{poles:?}");
            for pole in &poles {
                assert!(abs(own(pole * at.rtt_s)) < 1e-9, "{flows}: {pole}");
            }
            // Just left of the last of them, and as far up as delayed terms of this size can balance x^2.
            let last = poles.iter().map(|pole| pole.re * at.rtt_s).fold(0.0, f64::min) - 0.05;
            let far = 2.0 * (1.0 + a * libm::exp(-last));
            let counted = zeros_within(own, Complex64::new(last, -far), Complex64::new(1.0, far));
            assert!((counted - number as f64).abs() < 1e-6, "{flows}: {counted} zeros, {poles:?}");
        }
    }
}
