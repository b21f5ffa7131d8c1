//! Linear equations of a dense square matrix, real or complex, by Gaussian elimination with partial pivoting.

use std::ops::{DivAssign, Mul, MulAssign, Neg, SubAssign};

use num_complex::Complex64;

/// Coefficient of linear equations: a real or complex number.
pub trait Number:
    Copy + PartialEq + Mul<Output = Self> + Neg<Output = Self> + MulAssign + SubAssign + DivAssign
{
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;

    /// Returns a measure that increases with the magnitude, for the choice of pivots.
    fn size(self) -> f64;
}

impl Number for f64 {
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;

    fn size(self) -> f64 {
        self.abs()
    }
}

impl Number for Complex64 {
    const ZERO: Complex64 = Complex64::ZERO;
    const ONE: Complex64 = Complex64::ONE;

    fn size(self) -> f64 {
        self.norm_sqr()
    }
}

/// Solves `matrix` X = B in place. `matrix` is square, row by row, and is overwritten; `right` holds B, row by row with
/// `width` columns, and becomes X. Returns the determinant; X is not finite where that is zero.
pub fn solve<T: Number>(matrix: &mut [T], right: &mut [T], width: usize) -> T {
    // Without columns only the determinant is computed.
    let n = matrix.len().isqrt();
    let mut determinant = T::ONE;
    for k in 0..n {
        let size = |row: usize| matrix[row * n + k].size();
        let pivot = (k..n).max_by(|&a, &b| size(a).total_cmp(&size(b))).unwrap_or(k);
        if pivot != k {
            (k..n).for_each(|j| matrix.swap(k * n + j, pivot * n + j));
            (0..width).for_each(|j| right.swap(k * width + j, pivot * width + j));
            determinant = -determinant;
        }
        let own = matrix[k * n + k];
        determinant *= own;
        for row in k + 1..n {
            let mut factor = matrix[row * n + k];
            if factor == T::ZERO {
                continue;
            }
            factor /= own;
            for j in k + 1..n {
                let above = matrix[k * n + j];
                matrix[row * n + j] -= factor * above;
            }
            for j in 0..width {
                let above = right[k * width + j];
                right[row * width + j] -= factor * above;
            }
        }
    }
    for k in (0..n).rev() {
        for j in 0..width {
            let mut x = right[k * width + j];
            for row in k + 1..n {
                x -= matrix[k * n + row] * right[row * width + j];
            }
            x /= matrix[k * n + k];
            right[k * width + j] = x;
        }
    }
    determinant
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_that_must_swap_rows_is_solved_for_two_columns_at_once() {
        // [0 2; 4 1] X = [2 4; 6 0]: the second row first. X = [1.25 -.5; 1 2], determinant 0 - 8.
        let (mut matrix, mut right) = ([0.0, 2.0, 4.0, 1.0], [2.0, 4.0, 6.0, 0.0]);
        assert_eq!(solve(&mut matrix, &mut right, 2), -8.0);
        assert_eq!(right, [1.25, -0.5, 1.0, 2.0]);
    }

    #[test]
    fn complex_equations_are_solved_by_the_same_function() {
        // Rotation by j and 1 + j: [j 0; 1 1+j] x = [1; 1]: x0 = -j, x1 = (1 + j) / (1 + j) = 1; determinant j - 1.
        let (j, one) = (Complex64::new(0.0, 1.0), Complex64::ONE);
        let (mut matrix, mut right) = ([j, Complex64::ZERO, one, one + j], [one, one]);
        assert!((solve(&mut matrix, &mut right, 1) - (j - 1.0)).norm_sqr() < 1e-30);
        assert!((right[0] + j).norm_sqr() < 1e-30 && (right[1] - 1.0).norm_sqr() < 1e-30);
    }

    #[test]
    fn three_unknowns_and_their_determinant() {
        // x = (1, -2, 3): rows 2 1 -1, -3 -1 2, -2 1 2 give -3, 5, 2. Determinant 2(-2-2) - 1(-6+4) - 1(-3-2) = -1.
        let mut matrix = [2.0, 1.0, -1.0, -3.0, -1.0, 2.0, -2.0, 1.0, 2.0];
        let mut right = [-3.0, 5.0, 2.0];
        let determinant: f64 = solve(&mut matrix, &mut right, 1);
        assert!((determinant + 1.0).abs() < 1e-12, "{determinant}");
        for (x, known) in right.iter().zip([1.0, -2.0, 3.0]) {
            assert!((x - known).abs() < 1e-12, "{right:?}");
        }
    }

    #[test]
    fn without_columns_only_the_determinant_is_computed() {
        assert_eq!(solve(&mut [2.0, 1.0, 4.0, 3.0], &mut [], 0), 2.0);
        let mut right = [1.0, 2.0];
        assert_eq!(solve(&mut [1.0, 2.0, 2.0, 4.0], &mut right, 1), 0.0);
        assert!(right.iter().any(|x| !x.is_finite()));
    }

    #[test]
    fn several_columns_are_solved_like_single_ones() {
        // Zeros on the diagonal: every step swaps rows. X is given, B = A X.
        let matrix = [[0.0, 2.0, 0.0, 1.0], [3.0, 0.0, 0.0, -1.0], [0.0, 1.0, 0.0, 4.0], [1.0, 0.0, 5.0, 0.0]];
        let known = [[1.0, -2.0, 0.5], [3.0, 0.0, 7.0], [-1.0, 4.0, 2.0], [6.0, 5.0, -3.0]];
        let right = |i: usize, c: usize| (0..4).map(|k| matrix[i][k] * known[k][c]).sum::<f64>();
        let mut together: Vec<f64> = (0..12).map(|at| right(at / 3, at % 3)).collect();
        let determinant = solve(&mut matrix.concat(), &mut together, 3);
        for (at, x) in together.iter().enumerate() {
            assert!((x - known[at / 3][at % 3]).abs() < 1e-12, "{together:?}");
        }
        // By the third column: 5 times the minor of the last row, with sign -: -5 (-3) (2 (4) - 1 (1)).
        assert!((determinant - 105.0).abs() < 1e-9, "{determinant}");
        let column = |c: usize| (0..4).map(|i| right(i, c)).collect::<Vec<f64>>();
        let alone = [0, 1, 2].map(|c| {
            let mut alone = column(c);
            solve(&mut matrix.concat(), &mut alone, 1);
            alone
        });
        assert!((0..12).all(|at| (alone[at % 3][at / 3] - known[at / 3][at % 3]).abs() < 1e-12), "{alone:?}");
    }
}
