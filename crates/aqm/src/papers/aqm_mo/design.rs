//! Gains of AQM-MO by the magnitude optimum.
//!
//! With W0 = R0 C / N, k = W0^3 / 4, T = R0 W0 / 2, the plant is dW/dp = -k exp(-s R0) / (1 + T s) from probability to
//! window, and N / (1 + R0 s) from window to queue. The inner controller is 1 / (T_first s), the outer one
//! k_po (1 + 1/(T_io s) + T_do s).
//!
//! - D0, without the delay: T_first = 2 k T gives |I|^2 = 1 / (1 + 4 T^4 w^4), flat at w = 0; the outer PID cancels the
//!   poles of I.
//! - D1c, with the delay R0 and the filters' lags t_F (inner) and t_q (outer), in closed form.
//! - D1: T_first as in D1c; the PID solves the magnitude optimum's three equations for the plant's series
//!   G(s) = g0 + g1 s + ... + g5 s^5, a_k = (-1)^k g_k:
//!
//! ```text
//! | a1 -a0  0  |   | K0 |   | 1/2 |
//! | a3 -a2  a1 | . | K1 | = |  0  |        k_po = K1,  T_io = K1 / K0,  T_do = K2 / K1
//! | a5 -a4  a3 |   | K2 |   |  0  |
//! ```

use crate::TcpPlant;

/// Design rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Without delay, as in the paper.
    D0,
    /// With delay and filters, numerically.
    D1,
    /// With delay and filters, in closed form.
    D1c,
}

/// Lags of filters and sampling, seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lags {
    /// Inner loop, t_F: rate filter plus half a period.
    pub inner_s: f64,
    /// Outer loop, t_q: queue filter plus half a period.
    pub outer_s: f64,
}

/// The gains of both loops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gains {
    /// Integral time of the inner loop, T_first, window packets times seconds per unit of probability.
    pub t_first: f64,
    /// Gain of the outer loop, k_po, window packets per packet of queue.
    pub k_po: f64,
    /// Integral time of the outer loop, T_io, seconds.
    pub t_io: f64,
    /// Derivative time of the outer loop, T_do, seconds.
    pub t_do: f64,
    /// Proportional gain from queue to p of the cascade, K_p = k_po T_do / T_first, per packet.
    pub k_p: f64,
}

impl Rule {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Rule::D0 => "D0",
            Rule::D1 => "D1",
            Rule::D1c => "D1c",
        }
    }
}

/// Gains by `rule` for `plant`; `None` unless all are positive.
pub fn gains(rule: Rule, plant: &TcpPlant, lags: Lags) -> Option<Gains> {
    let (n, r0, window) = (plant.flows(), plant.rtt_s(), plant.window_pkts());
    let (k, t) = (0.25 * window * window * window, 0.5 * r0 * window);
    let (t_first, k_po, t_io, t_do) = match rule {
        Rule::D0 => (2.0 * k * t, t / (n * r0), 2.0 * t, t),
        Rule::D1c => {
            let t_io = 2.0 * t + r0 + lags.inner_s;
            (2.0 * k * (t + r0 + lags.inner_s), t_io / (2.0 * n * (2.0 * r0 + lags.outer_s)), t_io, 0.5 * t_io)
        }
        Rule::D1 => {
            let t_first = 2.0 * k * (t + r0 + lags.inner_s);
            let inner = closed_inner_loop(k, t, t_first, r0, lags.inner_s);
            let plant = inner.times(&Series::constant(n)).over(&Series::lag(r0).times(&Series::lag(lags.outer_s)));
            let [k0, k1, k2] = magnitude_optimum(&plant)?;
            (t_first, k1, k1 / k0, k2 / k1)
        }
    };
    let gains = Gains { t_first, k_po, t_io, t_do, k_p: k_po * t_do / t_first };
    [t_first, k_po, t_io, t_do, gains.k_p].iter().all(|x| *x > 0.0 && x.is_finite()).then_some(gains)
}

/// Closed inner loop I(s) = k E (1 + t_F s) / (T_first s (1 + T s) (1 + t_F s) + k E), E = exp(-s R0), with the filter
/// in the feedback path.
fn closed_inner_loop(k: f64, t: f64, t_first: f64, r0: f64, t_f: f64) -> Series {
    let delayed = Series::delay(r0).times(&Series::constant(k));
    let integrator = Series([0.0, t_first, 0.0, 0.0, 0.0, 0.0]).times(&Series::lag(t)).times(&Series::lag(t_f));
    delayed.times(&Series::lag(t_f)).over(&integrator.plus(&delayed))
}

/// Coefficients K0, K1, K2 of the PID (K0 + K1 s + K2 s^2) / s.
fn magnitude_optimum(plant: &Series) -> Option<[f64; 3]> {
    let mut a = plant.0;
    a.iter_mut().skip(1).step_by(2).for_each(|odd| *odd = -*odd);
    let m = [[a[1], -a[0], 0.0], [a[3], -a[2], a[1]], [a[5], -a[4], a[3]]];
    let minor = |i: usize, j: usize| m[1][i] * m[2][j] - m[1][j] * m[2][i];
    // Cramer's rule; the right-hand side has one nonzero entry, so only the first row's minors are needed.
    let (c0, c1, c2) = (minor(1, 2), -minor(0, 2), minor(0, 1));
    let determinant = m[0][0] * c0 + m[0][1] * c1 + m[0][2] * c2;
    (determinant != 0.0).then(|| [c0, c1, c2].map(|c| 0.5 * c / determinant))
}

/// Power series in s, up to s^5.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Series([f64; 6]);

impl Series {
    const fn constant(x: f64) -> Self {
        Series([x, 0.0, 0.0, 0.0, 0.0, 0.0])
    }

    /// 1 + t s.
    const fn lag(t: f64) -> Self {
        Series([1.0, t, 0.0, 0.0, 0.0, 0.0])
    }

    /// exp(-s t).
    fn delay(t: f64) -> Self {
        let mut term = 1.0;
        Series(core::array::from_fn(|k| {
            if k > 0 {
                term *= -t / k as f64;
            }
            term
        }))
    }

    fn plus(&self, other: &Self) -> Self {
        Series(core::array::from_fn(|k| self.0[k] + other.0[k]))
    }

    fn times(&self, other: &Self) -> Self {
        Series(core::array::from_fn(|k| (0..=k).map(|i| self.0[i] * other.0[k - i]).sum()))
    }

    /// Quotient; the constant term of `other` is not 0.
    fn over(&self, other: &Self) -> Self {
        let mut quotient = [0.0; 6];
        for k in 0..6 {
            let known: f64 = (0..k).map(|i| quotient[i] * other.0[k - i]).sum();
            quotient[k] = (self.0[k] - known) / other.0[0];
        }
        Series(quotient)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: f64, expected: f64, relative: f64) {
        assert!((got / expected - 1.0).abs() < relative, "{got}, expected {expected}");
    }

    fn plant(n: f64, r0: f64) -> TcpPlant {
        TcpPlant::new(n, 1250.0, r0).unwrap()
    }

    #[test]
    fn the_closed_form_equals_values_computed_by_hand() {
        // C = 1250, N = 10, R0 = 0.25, t_F = 0.125 + 0.0125, t_q = 0.025: W0 = 31.25, k = 7629.39, T = 3.90625;
        // T_first = 15258.8 * (3.90625 + 0.25 + 0.1375) = 65517.4; T_io = 7.8125 + 0.3875 = 8.2;
        // k_po = 8.2 / (20 * 0.525) = 0.7809524.
        let gains = gains(Rule::D1c, &plant(10.0, 0.25), Lags { inner_s: 0.1375, outer_s: 0.025 }).unwrap();
        near(gains.t_first, 65517.4, 1e-6);
        near(gains.k_po, 0.780_952_4, 1e-6);
        near(gains.t_io, 8.2, 1e-12);
        near(gains.t_do, 4.1, 1e-12);
        // R0 = 0.05: T_first = 28.5339, k_po = 0.1857143, T_io = 0.39, T_do = 0.195.
        let short = super::gains(Rule::D1c, &plant(10.0, 0.05), Lags { inner_s: 0.0275, outer_s: 0.005 }).unwrap();
        near(short.t_first, 28.5339, 1e-5);
        near(short.k_po, 0.185_714_3, 1e-6);
        near(short.t_io, 0.39, 1e-12);
    }

    #[test]
    fn without_delay_the_magnitude_optimum_is_the_papers_pole_cancellation() {
        // D0 at W0 = 31.25: k_po = T / (N R0) = 1.5625, T_io = 7.8125, T_do = 3.90625. The numerical solution is
        // 1.56260, 7.8125, 3.9060.
        let (k, t, r0) = (7_629.394_531_25, 3.90625, 0.25);
        let inner = closed_inner_loop(k, t, 2.0 * k * t, 0.0, 0.0);
        let [k0, k1, k2] = magnitude_optimum(&inner.times(&Series::constant(10.0)).over(&Series::lag(r0))).unwrap();
        let d0 = gains(Rule::D0, &plant(10.0, 0.25), Lags { inner_s: 0.0, outer_s: 0.0 }).unwrap();
        near(k1, 1.56260, 1e-5);
        near(k1, d0.k_po, 1e-3);
        near(k1 / k0, 7.8125, 1e-5);
        near(k2 / k1, 3.9060, 1e-4);
        assert_eq!((d0.t_io, d0.t_do), (7.8125, 3.90625));
    }

    #[test]
    fn a_filter_of_ten_round_trips_gives_no_positive_gain() {
        // W0 = 2: the solution is k_po = -0.02; with filters of half a round trip it is positive.
        let gains = |inner_s| gains(Rule::D1, &plant(62.5, 0.1), Lags { inner_s, outer_s: 0.001 });
        assert_eq!(gains(1.0), None);
        assert!(gains(0.05).is_some());
    }

    #[test]
    fn the_numerical_solution_with_delay_is_near_the_closed_form() {
        for (n, r0) in [(10.0, 0.25), (10.0, 0.05), (100.0, 0.28), (20.0, 0.12)] {
            let lags = Lags { inner_s: 0.55 * r0, outer_s: 0.1 * r0 };
            let full = gains(Rule::D1, &plant(n, r0), lags).unwrap();
            let closed = gains(Rule::D1c, &plant(n, r0), lags).unwrap();
            assert_eq!(full.t_first, closed.t_first);
            near(full.k_po, closed.k_po, 0.15);
            near(full.t_io, closed.t_io, 0.15);
        }
    }

    #[test]
    fn series_multiply_and_divide() {
        // 1 / (1 + 2 s) = 1 - 2 s + 4 s^2 - ...; times (1 + 2 s) it is 1 again.
        let inverse = Series::constant(1.0).over(&Series::lag(2.0));
        assert_eq!(inverse.0, [1.0, -2.0, 4.0, -8.0, 16.0, -32.0]);
        assert_eq!(inverse.times(&Series::lag(2.0)), Series::constant(1.0));
        assert_eq!(Series::delay(1.0).0[..4], [1.0, -1.0, 0.5, -0.5 / 3.0]);
    }
}
