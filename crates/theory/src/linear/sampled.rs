//! The sampled loop: the textbook's plant behind a hold and its delay, whatever part of a period that is.

use num_complex::Complex64;

use super::complex::{abs, cis};
use super::controller::Controller;
use super::point::OperatingPoint;

/// More poles than this are not looked for.
const DEGREE_MAX: usize = 1500;

/// Coefficients of the characteristic polynomial in z^-1 of the textbook's plant under a sampled `controller`, constant
/// term first, when the true delay is `delay_s`. `None` for a controller that is not sampled.
///
/// With the step response s(t) of the plant without delay, delay = (l - m) T, 0 <= m < 1:
/// P(z) = z^-l (b0 + b1 z^-1 + b2 z^-2) / (1 + n1 z^-1 + n2 z^-2), H_k = s((k+m) T) -
/// s((k-1+m) T), b = H * (1, n1, n2).
pub fn closed_loop(at: &OperatingPoint, controller: &Controller, delay_s: f64) -> Option<Vec<f64>> {
    let Controller::Sampled { num, den, period_s } = controller else { return None };
    let t = *period_s;
    let (tau1, tau2) =
        (at.rtt_s * at.capacity_pps / at.tcp_pps(), at.rtt_s * at.rtt_s * at.tcp_pps() / (2.0 * at.flows));
    let gain = -{
        let (r, n, ce) = (at.rtt_s, at.flows, at.tcp_pps());
        r * r * r * at.capacity_pps * ce * ce / (4.0 * n * n)
    };
    // A delay that is whole but for rounding is whole.
    let nearest = libm::round(delay_s / t);
    let periods = if (delay_s / t - nearest).abs() < 1e-9 { nearest } else { delay_s / t };
    let l = libm::ceil(periods);
    let m = l - periods;
    let step = |x: f64| if x <= 0.0 { 0.0 } else { step_response(gain, tau1, tau2, x * t) };
    let (alpha1, alpha2) = (libm::exp(-t / tau1), libm::exp(-t / tau2));
    let plant_den = [1.0, -(alpha1 + alpha2), alpha1 * alpha2];
    let markov = [step(m), step(1.0 + m) - step(m), step(2.0 + m) - step(1.0 + m)];
    let plant_num = [
        markov[0],
        markov[1] + plant_den[1] * markov[0],
        markov[2] + plant_den[1] * markov[1] + plant_den[2] * markov[0],
    ];
    let mut sum = product(&plant_den, den);
    let forward = product(&plant_num, num);
    let l = l as usize;
    if sum.len().max(l + forward.len()) > DEGREE_MAX {
        return None;
    }
    sum.resize(sum.len().max(l + forward.len()), 0.0);
    for (k, c) in forward.into_iter().enumerate() {
        sum[l + k] -= c;
    }
    Some(sum)
}

/// Largest absolute value of the closed loop's poles: below one, the loop is stable.
pub fn spectral_radius(at: &OperatingPoint, controller: &Controller, delay_s: f64) -> Option<f64> {
    let polynomial = closed_loop(at, controller, delay_s)?;
    Some(roots(&polynomial).into_iter().map(abs).fold(0.0, f64::max))
}

/// Step response of gain / ((tau1 s + 1) (tau2 s + 1)) at time `t`; also where the time constants are equal.
fn step_response(gain: f64, tau1: f64, tau2: f64, t: f64) -> f64 {
    let (x1, x2) = (t / tau1, t / tau2);
    let apart = x2 - x1;
    let ratio = if apart == 0.0 { 1.0 } else { -libm::expm1(-apart) / apart };
    gain * (1.0 - libm::exp(-x1) * (1.0 + x1 * ratio))
}

/// Zeros in z of c_0 z^n + c_1 z^(n-1) + ... + c_n (Aberth's method).
pub fn roots(coefficients: &[f64]) -> Vec<Complex64> {
    let first = coefficients.iter().position(|&c| c != 0.0);
    let last = coefficients.iter().rposition(|&c| c != 0.0);
    let (Some(first), Some(last)) = (first, last) else { return Vec::new() };
    let zeros = coefficients.len() - 1 - last;
    let c = &coefficients[first..=last];
    let degree = c.len() - 1;
    let radius = libm::pow((c[degree] / c[0]).abs(), 1.0 / degree.max(1) as f64);
    let mut z: Vec<Complex64> =
        (0..degree).map(|k| cis(std::f64::consts::TAU * k as f64 / degree as f64 + 0.7) * radius).collect();
    let mut moving: Vec<usize> = (0..degree).collect();
    for _ in 0..400 {
        moving.retain(|&k| {
            let ratio = newton(c, z[k]);
            let pull: Complex64 = (0..degree).filter(|&j| j != k).map(|j| (z[k] - z[j]).inv()).sum();
            let step = ratio / (Complex64::ONE - ratio * pull);
            if !(step.re.is_finite() && step.im.is_finite()) {
                return true;
            }
            z[k] -= step;
            abs(step) > 1e-13 * abs(z[k])
        });
        if moving.is_empty() {
            break;
        }
    }
    z.extend(std::iter::repeat_n(Complex64::ZERO, zeros));
    z
}

/// p(z) / p'(z), evaluated in 1/z outside the unit circle, where powers of z would overflow.
fn newton(c: &[f64], z: Complex64) -> Complex64 {
    let degree = (c.len() - 1) as f64;
    let horner = |x: Complex64, terms: &mut dyn Iterator<Item = f64>| {
        terms.fold((Complex64::ZERO, Complex64::ZERO), |(value, slope), c| (value * x + c, slope * x + value))
    };
    if z.norm_sqr() <= 1.0 {
        let (value, slope) = horner(z, &mut c.iter().copied());
        return value / slope;
    }
    // p(z) = z^n r(1/z): p/p' = z / (n - (1/z) r'/r).
    let x = z.inv();
    let (value, slope) = horner(x, &mut c.iter().rev().copied());
    z / (Complex64::new(degree, 0.0) - x * slope / value)
}

fn product(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; a.len() + b.len() - 1];
    for (i, x) in a.iter().enumerate() {
        for (j, y) in b.iter().enumerate() {
            out[i + j] += x * y;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_of_polynomials_with_known_ones() {
        // (z - 0.5)(z + 2)(z - 3) = z^3 - 1.5 z^2 - 5.5 z + 3, and a zero at the origin.
        let mut found: Vec<f64> = roots(&[1.0, -1.5, -5.5, 3.0, 0.0]).iter().map(|z| z.re).collect();
        found.sort_by(f64::total_cmp);
        for (got, expected) in found.iter().zip([-2.0, 0.0, 0.5, 3.0]) {
            assert!((got - expected).abs() < 1e-12, "{found:?}");
        }
        // z^40 - 0.5: all of absolute value 0.5^(1/40).
        let mut c = vec![0.0; 41];
        (c[0], c[40]) = (1.0, -0.5);
        assert!(roots(&c).iter().all(|&z| (abs(z) - 0.5f64.powf(1.0 / 40.0)).abs() < 1e-12));
        assert!(roots(&[0.0, 0.0]).is_empty());
    }

    #[test]
    fn a_delay_that_is_whole_but_for_rounding_takes_no_period_more() {
        let at = OperatingPoint::new(crate::fluid::Model::Hollot, 60.0, 1250.0, 0.0, 0.2, 100.0).unwrap();
        let controller = Controller::Sampled { num: vec![1e-5], den: vec![1.0, -1.0], period_s: 0.01 };
        let order = |periods: f64| closed_loop(&at, &controller, 0.01 * periods).unwrap().len();
        let whole = order(28.0);
        for rounding in [-1e-12, 1e-12] {
            assert_eq!(order(28.0 + rounding), whole);
        }
        assert_eq!((order(28.1), order(27.9), order(27.0)), (whole + 1, whole, whole - 1));
    }

    #[test]
    fn an_integrator_alone_with_a_gain() {
        // A plant so fast that it is a gain of -1 after one period of delay: z - 1 + g = 0 behind z^-1.
        let at = OperatingPoint::new(crate::fluid::Model::Hollot, 1.0, 1.0, 0.0, 1.0, 0.0).unwrap();
        // W0 = 1: k_t = 1/4, tau1 = 1, tau2 = 1/2; a period of 100 s is long against both.
        let controller = Controller::Sampled { num: vec![2.0], den: vec![1.0, -1.0], period_s: 100.0 };
        // The value one period later: 1 - z^-1 + z^-1 2/4 (1 - ...) => pole at 0.5.
        let radius = spectral_radius(&at, &controller, 0.0).unwrap();
        assert!((radius - 0.5).abs() < 1e-9, "{radius}");
    }

    #[test]
    fn the_polynomial_is_the_loop_of_the_held_plant_at_any_delay() {
        use super::super::loops::Loop;
        use super::super::plant::Plant;
        let at = OperatingPoint::new(crate::fluid::Model::Hollot, 60.0, 1250.0, 100.0, 0.2, 100.0).unwrap();
        let controller = Controller::Sampled { num: vec![4e-3, -3.5e-3], den: vec![1.0, -1.0], period_s: 0.1 };
        // Whole periods, parts of one, none.
        for delay_s in [0.3, 0.28, 0.214, 0.05, 0.0] {
            let polynomial = closed_loop(&at, &controller, delay_s).unwrap();
            let plant = Plant::textbook(&at).with_delay(delay_s);
            let closed = Loop { images: 3000, ..Loop::new(plant, controller.clone()) };
            let (tau1, tau2) = (1250.0 * at.rtt_s / 1150.0, at.rtt_s * at.rtt_s * 1150.0 / 120.0);
            for w in [0.3, 2.0, 9.0, 25.0] {
                let back = cis(-w * 0.1);
                let of = |c: &[f64]| c.iter().rev().fold(Complex64::ZERO, |sum, c| sum * back + c);
                let poles =
                    (1.0 - libm::exp(-0.1 / tau1) * back) * (1.0 - libm::exp(-0.1 / tau2) * back) * (1.0 - back);
                // 1 + L, of which the polynomial is the numerator.
                let (told, known) = (of(&polynomial) / poles, closed.response(w) + 1.0);
                assert!((told - known).l1_norm() < 1e-3 * known.l1_norm(), "{delay_s} {w}: {told} {known}");
            }
        }
        assert_eq!(closed_loop(&at, &Controller::Continuous { num: vec![1.0], den: vec![1.0] }, 0.1), None);
    }

    #[test]
    fn a_step_is_answered_by_two_lags_one_after_the_other() {
        // 3 (1 - (2 e^-t/2 - 1 e^-t/1) / (2 - 1)); alike lags: 1 - e^-x (1 + x).
        for t in [0.1f64, 1.0, 5.0] {
            let known = 3.0 * (1.0 - (2.0 * (-0.5 * t).exp() - (-t).exp()));
            assert!((step_response(3.0, 2.0, 1.0, t) - known).abs() < 1e-12);
            assert!((step_response(3.0, 1.0, 2.0, t) - known).abs() < 1e-12);
            assert!((step_response(3.0, 2.0, 2.0, t) - 3.0 * (1.0 - (-0.5 * t).exp() * (1.0 + 0.5 * t))).abs() < 1e-12);
        }
    }
}
