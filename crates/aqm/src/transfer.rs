//! Transfer functions of linear controllers, and polynomial arithmetic.

use alloc::vec::Vec;

/// Transfer function num / den from queue (packets) to probability; coefficients in ascending powers.
#[derive(Clone, Debug, PartialEq)]
pub struct Transfer {
    /// Numerator.
    pub num: Vec<f64>,
    /// Denominator.
    pub den: Vec<f64>,
    /// Sampling period of a transfer function in z^-1 with zero-order hold; `None` for one in s.
    pub period_s: Option<f64>,
}

/// Product of two polynomials.
pub(crate) fn multiply(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut product = alloc::vec![0.0; a.len() + b.len() - 1];
    for (i, x) in a.iter().enumerate() {
        for (j, y) in b.iter().enumerate() {
            product[i + j] += x * y;
        }
    }
    product
}

/// Difference of two polynomials.
pub(crate) fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    let at = |c: &[f64], k: usize| c.get(k).copied().unwrap_or(0.0);
    (0..a.len().max(b.len())).map(|k| at(a, k) - at(b, k)).collect()
}
