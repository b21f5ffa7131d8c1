//! Stationary distribution of MMPP/Erlang(m)/1/L by the GTH algorithm, exact.
//!
//! A state is (k, j): k service stages in the system, 0 to L m, and the joint state j of the sources. Numbered as i = k
//! M + j, the generator is banded: the end of a stage leads M states down, an arrival m M states up. Elimination from
//! the top (Grassmann, Taksar, Heyman) creates no entries outside the band and only adds, multiplies and divides
//! nonnegative numbers: every probability has full relative precision, however small. Diagonals are never stored.
//!
//! Cost: L m^2 M^3 multiplications; memory: M (L m + 1) (m M + M + 1) numbers.

use crate::sum::sum;

/// Dimensions and stage rate of the banded chain.
pub(crate) struct BandedChain {
    /// M.
    pub(crate) states: usize,
    /// L m + 1.
    pub(crate) levels: usize,
    /// m.
    pub(crate) stages: usize,
    /// m mu: stages per second.
    pub(crate) stage_rate: f64,
}

/// Stationary probabilities of (k, j), k from 0 to L m.
#[derive(Clone, Debug)]
pub(crate) struct Distribution {
    pub(crate) states: usize,
    pub(crate) p: Vec<f64>,
}

impl Distribution {
    /// Probabilities of the joint states with `k` stages in the system.
    pub(crate) fn at(&self, k: usize) -> &[f64] {
        &self.p[k * self.states..(k + 1) * self.states]
    }
}

/// Packets present with `k` stages in the system.
pub(crate) fn packets(k: usize, stages: usize) -> usize {
    k.div_ceil(stages)
}

/// Memory needed by [`BandedChain::solve`], bytes.
pub(crate) fn memory(states: usize, stages: usize, capacity: usize) -> u64 {
    let (states, stages, capacity) = (states as u64, stages as u64, capacity as u64);
    let rows = capacity.saturating_mul(stages).saturating_add(1).saturating_mul(states);
    let width = states.saturating_mul(stages + 1).saturating_add(1);
    rows.saturating_mul(width.saturating_add(1)).saturating_mul(8)
}

/// Approximate number of multiplications in [`BandedChain::solve`].
pub(crate) fn multiplications(states: usize, stages: usize, capacity: usize) -> f64 {
    let (states, stages) = (states as f64, stages as f64);
    capacity as f64 * stages * stages * states * states * states
}

/// Bound beyond which the unnormalised probabilities are scaled down, by a power of two to avoid rounding.
const LARGE: f64 = f64::from_bits((1023 + 660) << 52);
const SCALE: f64 = f64::from_bits((1023 - 660) << 52);

/// Multiplications between two progress reports.
const PROGRESS_INTERVAL: usize = 20_000_000;

impl BandedChain {
    /// Returns the distribution for the rates out of (k, j): `change` into another joint state, and `entering` of
    /// packets, evaluated only below capacity. `progress` receives the approximate number of remaining multiplications;
    /// if it returns false, the result is `None`.
    pub(crate) fn solve(
        &self,
        change: impl Fn(usize, usize, usize) -> f64,
        entering: impl Fn(usize, usize) -> f64,
        progress: &mut dyn FnMut(f64) -> bool,
    ) -> Option<Distribution> {
        let (states, levels) = (self.states, self.levels);
        let (down, up) = (states, states * self.stages);
        let rows = levels * states;
        // Row p holds columns p - down to p + up; column c stands at p * width + c + down - p.
        let width = down + up + 1;
        let mut a = vec![0.0; rows * width];
        for k in 0..levels {
            for j in 0..states {
                let row = &mut a[(k * states + j) * width..][..width];
                for to in 0..states {
                    if to != j {
                        row[down + to - j] = change(k, j, to);
                    }
                }
                if k > 0 {
                    row[0] = self.stage_rate;
                }
                if k + self.stages < levels {
                    row[width - 1] = entering(k, j);
                }
            }
        }
        let interval = (PROGRESS_INTERVAL / (down * up)).max(1);
        let mut out = vec![0.0; down];
        for i in (1..rows).rev() {
            if i % interval == 0 && !progress((i * down) as f64 * up as f64) {
                return None;
            }
            let first = i.saturating_sub(down);
            let out = &mut out[..i - first];
            out.copy_from_slice(&a[i * width + first + down - i..][..i - first]);
            let leaving: f64 = out.iter().sum();
            for p in i.saturating_sub(up)..i {
                let row = &mut a[p * width..][..width];
                let via = row[i + down - p];
                if via != 0.0 {
                    let via = via / leaving;
                    row[i + down - p] = via;
                    // Column p, the diagonal, may be among them: it is never read.
                    for (cell, rate) in row[first + down - p..][..out.len()].iter_mut().zip(out.iter()) {
                        *cell += via * rate;
                    }
                }
            }
        }
        let mut x = vec![0.0; rows];
        x[0] = 1.0;
        for p in 0..rows {
            if x[p] > LARGE {
                x[..rows.min(p + up + 1)].iter_mut().for_each(|x| *x *= SCALE);
            }
            let current = x[p];
            let length = rows.min(p + up + 1) - (p + 1);
            let row = &a[p * width + down + 1..][..length];
            for (x, step) in x[p + 1..][..length].iter_mut().zip(row) {
                *x += current * step;
            }
        }
        let total = sum(x.iter().copied());
        x.iter_mut().for_each(|x| *x /= total);
        Some(Distribution { states, p: x })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_estimate_is_that_of_the_band() {
        // M (L m + 1) rows of m M + M + 1 numbers and one more each: 2 (4 3 + 1) (2 4 + 1 + 1) 8 bytes.
        assert_eq!(memory(2, 3, 4), 26 * 10 * 8);
        assert_eq!(memory(1024, 4, 100), 1024 * 401 * (1024 * 5 + 2) * 8);
        assert_eq!(memory(usize::MAX, 2, 2), u64::MAX);
    }

    #[test]
    fn progress_reports_the_remaining_multiplications_and_can_cancel() {
        // 20 states, 2 stages, capacity 1500: 60 020 rows of 20 down and 40 up, one report each 20e6 / 800 = 25 000
        // rows.
        let band = BandedChain { states: 20, levels: 3001, stages: 2, stage_rate: 3.0 };
        let mut reports = Vec::new();
        let mut solve = |most: usize| {
            reports.clear();
            let mut progress = |left: f64| {
                reports.push(left);
                reports.len() < most
            };
            band.solve(|_, _, _| 0.1, |_, _| 1.0, &mut progress).is_some()
        };
        assert!(!solve(1));
        assert!(solve(9));
        assert_eq!(reports, [50_000.0 * 800.0, 25_000.0 * 800.0]);
        assert!((multiplications(20, 2, 1500) / (1500.0 * 4.0 * 8000.0) - 1.0).abs() < 1e-12);
    }
}
