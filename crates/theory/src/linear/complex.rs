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

/// sum of c_k x^k.
pub(crate) fn polynomial(coefficients: &[f64], x: Complex64) -> Complex64 {
    coefficients.iter().rev().fold(Complex64::ZERO, |sum, &c| sum * x + c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_polynomial_has_its_constant_term_first() {
        // 2 + 3 j - 5 of 2 + 3 x + 5 x^2 at j.
        assert_eq!(polynomial(&[2.0, 3.0, 5.0], Complex64::I), Complex64::new(-3.0, 3.0));
        assert_eq!(polynomial(&[], Complex64::I), Complex64::ZERO);
    }
}
