//! Small dense matrices of Markov chains. The modulating chains of sources have a few states, at most some hundreds.

use crate::sum::sum;
use aqumen_result::linear_equations;

/// Square matrix, row by row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SquareMatrix {
    n: usize,
    a: Vec<f64>,
}

impl SquareMatrix {
    pub(crate) fn zero(n: usize) -> Self {
        SquareMatrix { n, a: vec![0.0; n * n] }
    }

    pub(crate) fn unit(n: usize) -> Self {
        let mut unit = SquareMatrix::zero(n);
        (0..n).for_each(|i| unit[(i, i)] = 1.0);
        unit
    }

    pub(crate) fn row(&self, i: usize) -> &[f64] {
        &self.a[i * self.n..(i + 1) * self.n]
    }

    pub(crate) fn scaled(&self, factor: f64) -> SquareMatrix {
        SquareMatrix { n: self.n, a: self.a.iter().map(|x| x * factor).collect() }
    }

    pub(crate) fn plus(&self, other: &SquareMatrix) -> SquareMatrix {
        SquareMatrix { n: self.n, a: self.a.iter().zip(&other.a).map(|(x, y)| x + y).collect() }
    }

    pub(crate) fn times(&self, other: &SquareMatrix) -> SquareMatrix {
        let mut product = SquareMatrix::zero(self.n);
        for i in 0..self.n {
            for k in 0..self.n {
                let x = self[(i, k)];
                if x != 0.0 {
                    for j in 0..self.n {
                        product[(i, j)] += x * other[(k, j)];
                    }
                }
            }
        }
        product
    }

    /// Product of this matrix and the column `v`.
    pub(crate) fn apply(&self, v: &[f64]) -> Vec<f64> {
        (0..self.n).map(|i| self.row(i).iter().zip(v).map(|(x, y)| x * y).sum()).collect()
    }

    /// Solution x of (this matrix) x = `b`, finite if one exists.
    pub(crate) fn solve(&self, b: &[f64]) -> Vec<f64> {
        let mut x = b.to_vec();
        linear_equations::solve(&mut self.a.clone(), &mut x, 1);
        x
    }

    /// Checks that this generator is irreducible. The error is a pair of states, of which the second cannot be reached
    /// from the first.
    pub(crate) fn irreducible(&self) -> Result<(), (usize, usize)> {
        let reached = |forward: bool| {
            let mut seen = vec![false; self.n];
            let mut open = vec![0];
            seen[0] = true;
            while let Some(i) = open.pop() {
                for j in 0..self.n {
                    let rate = if forward { self[(i, j)] } else { self[(j, i)] };
                    if i != j && rate > 0.0 && !seen[j] {
                        seen[j] = true;
                        open.push(j);
                    }
                }
            }
            seen.iter().position(|seen| !seen)
        };
        match (reached(true), reached(false)) {
            (Some(state), _) => Err((0, state)),
            (_, Some(state)) => Err((state, 0)),
            (None, None) => Ok(()),
        }
    }

    /// Stationary distribution of this irreducible generator, by the GTH algorithm (Grassmann, Taksar, Heyman). It
    /// adds, multiplies and divides nonnegative numbers only, so that every entry has full relative precision.
    pub(crate) fn stationary(&self) -> Vec<f64> {
        let n = self.n;
        let mut a = self.clone();
        for i in (1..n).rev() {
            let out: f64 = (0..i).map(|j| a[(i, j)]).sum();
            for p in 0..i {
                a[(p, i)] /= out;
                let via = a[(p, i)];
                for t in 0..i {
                    if t != p {
                        let step = via * a[(i, t)];
                        a[(p, t)] += step;
                    }
                }
            }
        }
        let mut x = vec![1.0; n];
        for i in 1..n {
            x[i] = (0..i).map(|p| x[p] * a[(p, i)]).sum();
        }
        let total = sum(x.iter().copied());
        x.iter_mut().for_each(|x| *x /= total);
        x
    }

    /// Transition matrix exp(Q t) of this generator: uniformization for a short time, then repeated squaring.
    pub(crate) fn transition(&self, t: f64) -> SquareMatrix {
        let n = self.n;
        let fastest = (0..n).map(|i| -self[(i, i)]).fold(0.0, f64::max);
        if fastest * t == 0.0 {
            return SquareMatrix::unit(n);
        }
        // Beyond 2^60 sojourns the chain is stationary to the last bit.
        let squarings = (libm::log2(fastest * t) + 2.0).ceil().clamp(0.0, 60.0) as u32;
        let x = (fastest * t).min(2f64.powi(58)) / 2f64.powi(squarings as i32);
        let jump = SquareMatrix::unit(n).plus(&self.scaled(1.0 / fastest));
        let (mut term, mut series) = (SquareMatrix::unit(n), SquareMatrix::unit(n));
        for k in 1..=24 {
            term = term.times(&jump).scaled(x / f64::from(k));
            series = series.plus(&term);
        }
        for i in 0..=squarings {
            if i > 0 {
                series = series.times(&series);
            }
            // Rows are normalised, so that errors do not grow with each squaring.
            for row in series.a.chunks_mut(n) {
                let total: f64 = row.iter().sum();
                row.iter_mut().for_each(|x| *x /= total);
            }
        }
        series
    }

    /// Matrix exponential of this matrix times `t`, by scaling and squaring of the Taylor series.
    pub(crate) fn exponential(&self, t: f64) -> SquareMatrix {
        let norm = (0..self.n).map(|i| self.row(i).iter().map(|x| x.abs()).sum::<f64>()).fold(0.0, f64::max) * t;
        let squarings = if norm > 0.25 { (libm::log2(norm) + 2.0).ceil().min(200.0) as i32 } else { 0 };
        let short = self.scaled(t / 2f64.powi(squarings));
        let (mut term, mut series) = (SquareMatrix::unit(self.n), SquareMatrix::unit(self.n));
        for k in 1..=14 {
            term = term.times(&short).scaled(1.0 / f64::from(k));
            series = series.plus(&term);
        }
        for _ in 0..squarings {
            series = series.times(&series);
        }
        series
    }
}

impl std::ops::Index<(usize, usize)> for SquareMatrix {
    type Output = f64;
    fn index(&self, (i, j): (usize, usize)) -> &f64 {
        &self.a[i * self.n + j]
    }
}

impl std::ops::IndexMut<(usize, usize)> for SquareMatrix {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut f64 {
        &mut self.a[i * self.n + j]
    }
}
