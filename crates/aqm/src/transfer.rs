//! Linear controllers, and the arithmetic of their polynomials.

use alloc::vec::Vec;

/// A linear controller from queue (packets) to probability, num / den, constant terms first.
#[derive(Clone, Debug, PartialEq)]
pub struct Transfer {
    /// Numerator.
    pub num: Vec<f64>,
    /// Denominator.
    pub den: Vec<f64>,
    /// Of one that is sampled: in z^-1, once a period, its answer held in between. Without it in s.
    pub period_s: Option<f64>,
}

/// The product of polynomials.
pub(crate) fn multiply(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut product = alloc::vec![0.0; a.len() + b.len() - 1];
    for (i, x) in a.iter().enumerate() {
        for (j, y) in b.iter().enumerate() {
            product[i + j] += x * y;
        }
    }
    product
}

/// Their difference.
pub(crate) fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    let at = |c: &[f64], k: usize| c.get(k).copied().unwrap_or(0.0);
    (0..a.len().max(b.len())).map(|k| at(a, k) - at(b, k)).collect()
}
