//! Signals that are spaced, at one frequency: how they answer a share that swings, and how even their count is.
//!
//! *The answer.* RED holds the packets since the last signal, n, against the probability p_b of the moment: its chance
//! is p_b g(n p_b), g(x) = 1 / (l + 1 - x) for x from l, the least gap, to l + 1. Where p_b rises, counts that are
//! already long count for more at once: signals come before the share that holds for them. That is a lead of a part of
//! a gap, a degree with ten signals a round trip, ten and more with one. Small swings e^(at) of p_b, with time in 1 /
//! p_b packets, move the density of the counts, S(x) = 1 up to l and l + 1 - x beyond, whose sum stays one, so that
//! signals answer by
//!
//! ```text
//! H(a) = integral S(x) e^-ax K(x) dx / integral S(x) e^-ax dx,   K(x) = integral_0^x (u g(u))' e^au du
//!      = (l J + (l + 1) M) / (sum_k (-a)^k l^(k+1) / (k+1)! + e^-al J)
//! J = sum_k (-a)^k / (k+2)!,   M = sum_k (-a)^k / ((k+2)! (k+1))
//! ```
//!
//! H(0) is one. PIE adds its probabilities up to a bound and tosses with the one of the moment: in the time that this
//! sum tells its gaps are alike, so that its signals follow at once.
//!
//! *The count.* Of gaps that are independent, F(w) the transform of their law, it has the power of as many tosses times
//! (1 - |F|^2) / |1 - F|^2: slowly the dispersion, far above a gap one, and more than that at one gap after the other.

use std::sync::LazyLock;

use aqumen_aqm::{GapTail, SignalGaps};
use num_complex::Complex64;

use crate::linear::complex::{cis, exp};

/// H at j times `swing`, by its sums.
fn led(l: f64, swing: f64) -> Complex64 {
    let a = Complex64::new(0.0, swing);
    let (mut j, mut m, mut flat) = (Complex64::ZERO, Complex64::ZERO, Complex64::ZERO);
    // (-a)^k / (k+1)!, and l^(k+1) beside it.
    let (mut term, mut power) = (Complex64::ONE, l);
    for k in 0..TERMS {
        let (n, next) = (f64::from(k + 1), f64::from(k + 2));
        flat += term * power;
        j += term / next;
        m += term / (next * n);
        term *= -a / next;
        power *= l;
    }
    (l * j + (l + 1.0) * m) / (flat + exp(-a * l) * j)
}

/// H of l = 1, from rest to the quickest swing, on lines between.
static LED: LazyLock<Vec<Complex64>> =
    LazyLock::new(|| (0..=KNOTS).map(|k| led(1.0, 0.5 * FASTEST * k as f64 / KNOTS as f64)).collect());
const KNOTS: usize = 1024;

/// Signals that are spaced, in time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SignalSpacing {
    least_s: f64,
    end: Remainder,
}

/// The part of a gap that is left to chance, seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Remainder {
    /// By a count, up to so long.
    Uniform(f64),
    /// By tosses, so long on average.
    Exponential(f64),
}

/// Terms of the sums, and the swing up to which they are worth it: beyond, no loop answers.
const TERMS: u32 = 30;
const FASTEST: f64 = 8.0;
/// Swings below which a count is that of a long time, in gaps.
const SLOW: f64 = 1e-3;

impl SignalSpacing {
    /// Spacing in seconds of gaps in packets, at `capacity_pps`.
    pub(crate) fn new(gaps: SignalGaps, capacity_pps: f64) -> Self {
        let end = match gaps.tail {
            GapTail::Uniform(most) => Remainder::Uniform(most / capacity_pps),
            GapTail::Exponential(mean) => Remainder::Exponential(mean / capacity_pps),
        };
        SignalSpacing { least_s: gaps.least_pkts / capacity_pps, end }
    }

    /// Frequency response of the signal rate to the probability at `w`, rad/s.
    pub(crate) fn answer(&self, w: f64) -> Complex64 {
        let Remainder::Uniform(most_s) = self.end else { return Complex64::ONE };
        if most_s <= 0.0 {
            return Complex64::ONE;
        }
        let l = self.least_s / most_s;
        // In the time in which the sums are taken the whole gap is l + 1 long.
        let swing = (w * most_s).min(FASTEST / (l + 1.0));
        if (l - 1.0).abs() > 1e-9 {
            return led(l, swing);
        }
        // A least gap as long as the chance (`wait`), which loops ask for far more often, from a table.
        let place = swing / (0.5 * FASTEST) * KNOTS as f64;
        let knot = (place as usize).min(KNOTS - 1);
        let part = place - knot as f64;
        LED[knot] * (1.0 - part) + LED[knot + 1] * part
    }

    /// The power of their count at `w`, rad/s, in that of a long time.
    pub(crate) fn unevenness(&self, w: f64) -> f64 {
        let (mean_s, variance_s2) = match self.end {
            Remainder::Uniform(most_s) => (0.5 * most_s, most_s * most_s / 12.0),
            Remainder::Exponential(mean_s) => (mean_s, mean_s * mean_s),
        };
        let gap_s = self.least_s + mean_s;
        if w * gap_s < SLOW || variance_s2 <= 0.0 {
            return 1.0;
        }
        let end = match self.end {
            Remainder::Uniform(most_s) => {
                let y = 0.5 * w * most_s;
                cis(-y) * (libm::sin(y) / y)
            }
            Remainder::Exponential(mean_s) => 1.0 / Complex64::new(1.0, w * mean_s),
        };
        let least = cis(-w * self.least_s);
        let slowly = variance_s2 / (gap_s * gap_s);
        (1.0 - end.norm_sqr()) / (1.0 - least * end).norm_sqr() / slowly
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVEN: SignalGaps = SignalGaps { least_pkts: 10.0, tail: GapTail::Uniform(10.0) };

    #[test]
    fn slow_swings_are_followed_and_quicker_ones_are_led_by_a_part_of_the_gap() {
        let counted = SignalSpacing::new(EVEN, 100.0);
        assert!((counted.answer(0.0) - 1.0).l1_norm() < 1e-12);
        // To first order in a: l = 1: J = 1/2 - a/6, M = 1/2 - a/12, below 1 - a/2 + (1 - a) (1/2 - a/6):
        // (3/2 - a/3) / (3/2 - 7 a/6) = 1 + 5/9 a, of 1 / p_b = .1 s.
        let led = counted.answer(0.1).im / 0.1;
        assert!((led - 0.1 * 5.0 / 9.0).abs() < 1e-4, "{led}");
        // Without a least gap: 1 + a/6 (1/2 - a/12 over 1/2 - a/6).
        let soon = SignalSpacing::new(SignalGaps { least_pkts: 0.0, ..EVEN }, 100.0).answer(0.1).im / 0.1;
        assert!((soon - 0.1 / 6.0).abs() < 1e-4, "{soon}");
        assert_eq!(
            SignalSpacing::new(SignalGaps { tail: GapTail::Exponential(10.0), ..EVEN }, 100.0).answer(3.0),
            Complex64::ONE
        );
    }

    #[test]
    fn the_answer_is_that_of_counts_that_are_followed_one_by_one() {
        // Densities of counts moved on by small steps, p_b = 1 + e sin(w t), e = .02, for twelve periods; the last ten
        // are looked at.
        let (steps, w, swing) = (400, 1.7, 0.02);
        let h = 1.0 / f64::from(steps);
        let cells = 3 * steps as usize;
        let mut density = vec![0.0; cells];
        density[..steps as usize].fill(h / 1.5);
        let (mut seen, mut all) = (Complex64::ZERO, 0.0);
        let period = (2.0 * std::f64::consts::PI / w / h).round() as usize;
        for step in 0..12 * period {
            let t = step as f64 * h;
            let base = 1.0 + swing * libm::sin(w * t);
            let mut signals = 0.0;
            for (cell, here) in density.iter_mut().enumerate() {
                let x = (cell as f64 + 0.5) * h * base;
                let chance = if x < 1.0 { 0.0 } else { 1.0f64.min(h * base / (2.0 - x).max(1e-9)) };
                signals += chance * *here;
                *here *= 1.0 - chance;
            }
            density.rotate_right(1);
            density[0] = signals;
            if step >= 2 * period {
                // Of signals = r (1 + e Im(H e^iwt)): the sum with e^-iwt is r e H / 2i of each step.
                seen += signals * exp(Complex64::new(0.0, -w * t));
                all += signals;
            }
        }
        let answer = seen * Complex64::new(0.0, 2.0) / (swing * all);
        let expected = SignalSpacing::new(SignalGaps { least_pkts: 1.0, tail: GapTail::Uniform(1.0) }, 1.0).answer(w);
        assert!((answer - expected).l1_norm() < 0.03 * expected.l1_norm(), "{answer} {expected}");
    }

    #[test]
    fn a_count_is_even_over_a_long_time_and_as_tosses_within_a_gap() {
        let (even, chance) = (
            SignalSpacing::new(EVEN, 10.0),
            SignalSpacing::new(SignalGaps { tail: GapTail::Exponential(10.0), ..EVEN }, 10.0),
        );
        // Slowly 1/27 and 1/4 of tosses.
        assert!((even.unevenness(0.01) - 1.0).abs() < 1e-3 && (chance.unevenness(0.01) - 1.0).abs() < 1e-3);
        assert!(
            (even.unevenness(300.0) / 27.0 - 1.0).abs() < 0.02 && (chance.unevenness(300.0) / 4.0 - 1.0).abs() < 0.02
        );
        // One gap of 1.5 s after the other, w = 2 pi / 1.5: F is sin(2 pi/3) / (2 pi/3) = .4135 after one whole turn,
        // (1 - .171) / (1 - .4135)^2 = 2.410.
        let peak = even.unevenness(2.0 * std::f64::consts::PI / 1.5) / 27.0;
        assert!((peak - 2.410).abs() < 0.002, "{peak}");
        // Tosses without a least gap are even at no frequency.
        let tosses = SignalSpacing::new(SignalGaps { least_pkts: 0.0, tail: GapTail::Exponential(10.0) }, 10.0);
        assert!((tosses.unevenness(2.0) - 1.0).abs() < 1e-12);
    }
}
