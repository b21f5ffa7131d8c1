//! Functions of complex numbers, the same bits everywhere.

use num_complex::Complex64;

/// exp(j angle).
pub(crate) fn cis(angle: f64) -> Complex64 {
    let (sin, cos) = libm::sincos(angle);
    Complex64::new(cos, sin)
}

/// exp(z).
pub(crate) fn exp(z: Complex64) -> Complex64 {
    cis(z.im) * libm::exp(z.re)
}

/// |z|.
pub(crate) fn abs(z: Complex64) -> f64 {
    libm::hypot(z.re, z.im)
}

/// Angle of z in (-pi, pi].
pub(crate) fn arg(z: Complex64) -> f64 {
    libm::atan2(z.im, z.re)
}

/// Lag of the one pole with this response at the frequency `w`, seconds; 0 for a lead.
pub(crate) fn lag_s(response: Complex64, w: f64) -> f64 {
    (-response.im / response.re / w).max(0.0)
}

/// Frequency response of a zero-order hold at `angle` = w T: the mean of exp(-jt) for t from 0 to `angle`.
pub(crate) fn hold(angle: f64) -> Complex64 {
    let half = 0.5 * angle;
    // (1 - exp(-j angle)) / (j angle), in the form that does not cancel.
    if half == 0.0 { Complex64::ONE } else { cis(-half) * (libm::sin(half) / half) }
}

/// sum of c_k x^k.
pub(crate) fn polynomial(coefficients: &[f64], x: Complex64) -> Complex64 {
    coefficients.iter().rev().fold(Complex64::ZERO, |sum, &c| sum * x + c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_is_the_mean_over_its_period() {
        for angle in [0.0, 1e-12, 1e-3, 0.7, 3.0, 6.0] {
            // The midpoint rule: its share of error is (angle / 1000)^2 / 24.
            let parts = (0..1000).map(|k| cis(-angle * (f64::from(k) + 0.5) / 1000.0));
            let mean = parts.sum::<Complex64>() / 1000.0;
            assert!((hold(angle) - mean).l1_norm() < 1e-5, "{angle}: {} {mean}", hold(angle));
        }
        // Slowly half a period late, and nothing else.
        assert!((hold(1e-12).im / -0.5e-12 - 1.0).abs() < 1e-12 && hold(0.0) == Complex64::ONE);
    }

    #[test]
    fn a_polynomial_has_its_constant_term_first() {
        // 2 + 3 j - 5 of 2 + 3 x + 5 x^2 at j.
        assert_eq!(polynomial(&[2.0, 3.0, 5.0], Complex64::I), Complex64::new(-3.0, 3.0));
        assert_eq!(polynomial(&[], Complex64::I), Complex64::ZERO);
    }
}
