//! Stationary distribution of MMPP/Erlang(m)/1/L with many joint states, by multilevel aggregation-disaggregation
//! without forming the generator.
//!
//! For a fixed joint state j of the sources, the stages k form a chain: one down at the end of a stage, m up at an
//! arrival. A sweep solves this chain for each j in turn, with the inflow from the states that differ in one source,
//! and normalises each j to its stationary probability (block Gauss-Seidel). Sweeps reduce the errors that decay faster
//! than the sources change state; the remaining error is nearly equal in the states of a fast source. These states are
//! aggregated: the coarse chain lacks that source, its arrival rates are averages under the current distribution, and
//! it is improved in the same way, down to a chain that elimination solves directly (multilevel aggregation: Horton and
//! Leutenegger 1994; for Kronecker sums, Buchholz and Dayar 2004).
//!
//! All operations add, multiply and divide nonnegative numbers, so that small probabilities converge with full relative
//! precision. The iteration stops when the greatest relative change, extrapolated as a geometric series, is below
//! [`TOLERANCE`].
//!
//! Cost of a cycle: two sweeps of L m M (2 m + number of neighbours of j) multiplications, and about as much for all
//! coarser chains; memory: three vectors of M (L m + 1) numbers, and as much for the coarser chains.

use crate::solve::{BandedChain, Distribution};
use crate::source::{Source, Superposition};
use crate::sum::sum;

/// Input of the iteration.
pub(crate) struct Iteration<'a> {
    pub(crate) sources: &'a [Source],
    /// admitted[s][b]: fraction of the packets of source s that are admitted with b packets present, b below L.
    pub(crate) admitted: &'a [Vec<f64>],
    /// m.
    pub(crate) stages: usize,
    /// m mu: stages per second.
    pub(crate) stage_rate: f64,
}

/// Error of the iteration.
#[derive(Debug, PartialEq)]
pub(crate) enum IterationError {
    /// Cancelled by the progress callback.
    Cancelled,
    /// No convergence within this number of cycles.
    NotConverged(usize),
}

/// Estimated relative error of any probability at convergence.
const TOLERANCE: f64 = 1e-12;

/// Relative changes below this are rounding errors.
const ROUNDING: f64 = 2e-14;

/// Cycles before convergence is checked for stalling.
const STALL_CYCLES: usize = 12;

/// Most sweeps before and after a coarse-grid correction.
const SWEEPS_MAX: u32 = 64;

/// Most cycles.
const CYCLES_MAX: usize = 2000;

/// Expected cycles: sources of few states take 3 to 20.
const CYCLES_EXPECTED: f64 = 15.0;

/// Expected cycles if the coarsest chain, of one source of many states, is only swept: 50 to some hundreds.
const CYCLES_EXPECTED_SINGLE: f64 = 200.0;

/// Most multiplications of an elimination of the coarsest chain.
const COARSE_COST_MAX: f64 = 2e6;

/// Most multiplications of an elimination of the chain of a single source.
const SINGLE_COST_MAX: f64 = 1e8;

/// Multiplications between two progress reports.
const PROGRESS_INTERVAL: usize = 20_000_000;

/// Probability below which changes are ignored, for lack of precision.
const TINY: f64 = 1e-290;

/// Least weight of a state in an average, negligible beside [`TINY`].
const WEIGHT_MIN: f64 = 1e-300;

/// Memory needed by [`Iteration::solve`], bytes.
pub(crate) fn memory(states: usize, stages: usize, capacity: usize) -> u64 {
    let levels = (capacity as u64).saturating_mul(stages as u64).saturating_add(1);
    levels.saturating_mul(states as u64).saturating_mul(8 * 6)
}

/// Approximate number of multiplications in the expected cycles.
pub(crate) fn multiplications(superposition: &Superposition, stages: usize, capacity: usize) -> f64 {
    expected_cycles(superposition, stages, capacity) * cycle_cost(superposition, stages, capacity)
}

/// Expected number of cycles.
fn expected_cycles(superposition: &Superposition, stages: usize, capacity: usize) -> f64 {
    let last = crate::solve::multiplications(superposition.largest_source(), stages, capacity);
    if last < SINGLE_COST_MAX { CYCLES_EXPECTED } else { CYCLES_EXPECTED_SINGLE }
}

fn cycle_cost(superposition: &Superposition, stages: usize, capacity: usize) -> f64 {
    4.0 * (capacity * stages) as f64
        * superposition.states() as f64
        * operations_per_level(superposition, stages) as f64
}

/// Multiplications per level of a joint state in a sweep.
fn operations_per_level(superposition: &Superposition, stages: usize) -> usize {
    2 * stages + superposition.max_transitions() + 6
}

/// Chain with a subset of the sources, and its current distribution.
struct Grid {
    space: Superposition,
    stationary: Vec<f64>,
    /// Number of states of the source that the next coarser grid lacks, and its stride here.
    aggregated: Option<(usize, usize)>,
    /// entering[j * levels + k]: admitted packets per second.
    entering: Vec<f64>,
    /// x[j * levels + k].
    x: Vec<f64>,
}

/// Relaxation rate of a source, per second: exact for two states.
fn relaxation_rate(source: &Source) -> f64 {
    let shares = source.stationary_distribution();
    let jumps: f64 = shares.iter().enumerate().map(|(i, p)| -p * source.generator[(i, i)]).sum();
    jumps / (1.0 - shares.iter().map(|p| p * p).sum::<f64>())
}

impl Iteration<'_> {
    /// Returns the distribution; `progress` receives the approximate number of remaining multiplications, and cancels
    /// the solution by returning false.
    pub(crate) fn solve(&self, progress: &mut dyn FnMut(f64) -> bool) -> Result<Distribution, IterationError> {
        let capacity = self.admitted[0].len();
        let levels = capacity * self.stages + 1;
        let mut grids = self.grids(levels);
        let cost = cycle_cost(&grids[0].space, self.stages, capacity);
        let mut chain = StageChain::new(levels, self.stages);
        let mut changes: Vec<f64> = Vec::new();
        let expected = expected_cycles(&grids[0].space, self.stages, capacity);
        let (mut left, mut sweeps, mut since) = (expected, 1, 0);
        for number in 1..=CYCLES_MAX {
            // Corrections may alternate between two distributions: more sweeps make them more accurate.
            if number - since > STALL_CYCLES && contraction(&changes) > 0.95 && sweeps < SWEEPS_MAX {
                (sweeps, since) = (2 * sweeps, number);
            }
            if !progress(cost * f64::from(sweeps) * left) {
                return Err(IterationError::Cancelled);
            }
            let mut go_on = || progress(cost * f64::from(sweeps) * left);
            let Some(change) = self.improve(&mut grids, &mut chain, sweeps, &mut go_on) else {
                return Err(IterationError::Cancelled);
            };
            changes.push(change);
            let ratio = contraction(&changes);
            let error = change * ratio / (1.0 - ratio);
            if change < ROUNDING || (number >= 3 && error < TOLERANCE) {
                return Ok(grids.swap_remove(0).distribution(levels));
            }
            let shown = libm::log(TOLERANCE / error) / libm::log(ratio);
            left = if number >= 3 { shown } else { expected - number as f64 }.max(1.0);
        }
        Err(IterationError::NotConverged(CYCLES_MAX))
    }

    /// Grids from all sources down to few, without the fastest source of the previous grid each.
    fn grids(&self, levels: usize) -> Vec<Grid> {
        let mut sources: Vec<&Source> = self.sources.iter().collect();
        let mut grids = Vec::new();
        loop {
            let space = Superposition::new(&sources);
            let states = space.states();
            let stationary = space.stationary();
            let x = stationary.iter().flat_map(|p| std::iter::repeat_n(p / levels as f64, levels)).collect();
            let mut grid = Grid { space, stationary, aggregated: None, entering: vec![0.0; states * levels], x };
            let capacity = levels / self.stages;
            let small = crate::solve::multiplications(states, self.stages, capacity) < COARSE_COST_MAX;
            let able = (0..sources.len()).filter(|s| sources[*s].states() > 1);
            let fastest = able.max_by(|a, b| relaxation_rate(sources[*a]).total_cmp(&relaxation_rate(sources[*b])));
            match fastest {
                Some(s) if !small && sources.len() > 1 => {
                    let stride = sources[s + 1..].iter().map(|source| source.states()).product();
                    grid.aggregated = Some((sources[s].states(), stride));
                    grids.push(grid);
                    sources.remove(s);
                }
                _ => {
                    grids.push(grid);
                    break;
                }
            }
        }
        let fine = &mut grids[0];
        for j in 0..fine.space.states() {
            let own = &mut fine.entering[j * levels..][..levels - self.stages];
            for (rates, admitted) in fine.space.rates.iter().zip(self.admitted) {
                let shares = admitted.iter().flat_map(|share| std::iter::repeat_n(share, self.stages));
                // Level 0, then m levels per packet.
                let found = std::iter::once(&admitted[0]).chain(shares.skip(self.stages));
                own.iter_mut().zip(found).for_each(|(sum, share)| *sum += rates[j] * share);
            }
        }
        grids
    }

    /// Runs a cycle over the finest grid and the coarser ones; returns the greatest relative change, `None` if
    /// cancelled.
    fn improve(
        &self,
        grids: &mut [Grid],
        chain: &mut StageChain,
        sweeps: u32,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Option<f64> {
        let (fine, coarser) = grids.split_first_mut()?;
        let Some(aggregated) = fine.aggregated else { return self.finish(fine, chain, go_on) };
        let levels = chain.x.len();
        let mut change = 0.0f64;
        for _ in 0..sweeps {
            change = change.max(self.sweep(fine, chain, true, go_on)?);
        }
        let old = fine.aggregate(aggregated, &mut coarser[0], levels);
        self.improve(coarser, chain, sweeps, go_on)?;
        change = change.max(fine.disaggregate(aggregated, &coarser[0], &old, levels));
        for _ in 0..sweeps {
            change = change.max(self.sweep(fine, chain, false, go_on)?);
        }
        Some(change)
    }

    /// Solves the coarsest grid if that is cheap, else sweeps it a few times.
    fn finish(&self, grid: &mut Grid, chain: &mut StageChain, go_on: &mut dyn FnMut() -> bool) -> Option<f64> {
        let (levels, states) = (chain.x.len(), grid.space.states());
        if crate::solve::multiplications(states, self.stages, levels / self.stages) >= SINGLE_COST_MAX {
            let mut change = 0.0f64;
            for forward in [true, false, true, false] {
                change = change.max(self.sweep(grid, chain, forward, go_on)?);
            }
            return Some(change);
        }
        let band = BandedChain { states, levels, stages: self.stages, stage_rate: self.stage_rate };
        let generator = grid.space.generator();
        let solved = band.solve(|_, j, to| generator[(j, to)], |k, j| grid.entering[j * levels + k], &mut |_| true)?;
        let mut change = 0.0f64;
        for (i, old) in grid.x.iter_mut().enumerate() {
            let new = solved.at(i % levels)[i / levels];
            change = largest(change, relative(*old, new));
            *old = new;
        }
        Some(change)
    }

    /// Solves the chain of stages for each joint state in turn; returns the greatest relative change.
    fn sweep(
        &self,
        grid: &mut Grid,
        chain: &mut StageChain,
        forward: bool,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Option<f64> {
        let (levels, states) = (chain.x.len(), grid.space.states());
        let interval = (PROGRESS_INTERVAL / (levels * operations_per_level(&grid.space, self.stages))).max(1);
        let mut greatest = 0.0f64;
        for step in 0..states {
            if step % interval == interval - 1 && !go_on() {
                return None;
            }
            let j = if forward { step } else { states - 1 - step };
            // Underflow, as for a thousand sources that are all ON.
            if grid.stationary[j] == 0.0 {
                grid.x[j * levels..][..levels].fill(0.0);
                continue;
            }
            chain.inflow.fill(0.0);
            grid.space.incoming(j, |from, rate| {
                let other = &grid.x[from * levels..][..levels];
                chain.inflow.iter_mut().zip(other).for_each(|(inflow, x)| *inflow += rate * x);
            });
            chain.solve(&grid.entering[j * levels..][..levels], self.stage_rate, grid.space.exit_rate(j));
            let total = sum(chain.x.iter().copied());
            let scale = if total > 0.0 { grid.stationary[j] / total } else { 0.0 };
            for (old, new) in grid.x[j * levels..][..levels].iter_mut().zip(&chain.x) {
                let new = new * scale;
                greatest = largest(greatest, relative(*old, new));
                *old = new;
            }
        }
        Some(greatest)
    }
}

/// Returns the larger number; NaN counts as infinite, so that it never passes for convergence.
fn largest(a: f64, b: f64) -> f64 {
    if b.is_nan() { f64::INFINITY } else { a.max(b) }
}

/// Relative change from `old` to `new`.
fn relative(old: f64, new: f64) -> f64 {
    if new <= TINY { 0.0 } else { (new - old).abs() / new }
}

impl Grid {
    /// Aggregates the distribution and the arrival rates to the coarser chain; returns the aggregated distribution.
    fn aggregate(&self, (own, stride): (usize, usize), coarse: &mut Grid, levels: usize) -> Vec<f64> {
        coarse.x.fill(0.0);
        coarse.entering.fill(0.0);
        for j in 0..self.space.states() {
            let to = (j / (own * stride) * stride + j % stride) * levels;
            for k in 0..levels {
                // The weights make the average of all-zero probabilities finite.
                let x = self.x[j * levels + k] + WEIGHT_MIN;
                coarse.x[to + k] += x;
                coarse.entering[to + k] += x * self.entering[j * levels + k];
            }
        }
        coarse.entering.iter_mut().zip(&coarse.x).for_each(|(entering, x)| *entering /= x);
        coarse.x.clone()
    }

    /// Disaggregation: scales each group of states to its probability on the coarser chain; returns the greatest
    /// relative change.
    fn disaggregate(&mut self, (own, stride): (usize, usize), coarse: &Grid, old: &[f64], levels: usize) -> f64 {
        let mut greatest = 0.0f64;
        for j in 0..self.space.states() {
            let to = (j / (own * stride) * stride + j % stride) * levels;
            for k in 0..levels {
                let (before, after) = (old[to + k], coarse.x[to + k]);
                if before > TINY {
                    greatest = largest(greatest, relative(before, after));
                    self.x[j * levels + k] *= after / before;
                }
            }
        }
        greatest
    }

    fn distribution(self, levels: usize) -> Distribution {
        let states = self.space.states();
        let total = sum(self.x.iter().copied());
        let p = (0..levels).flat_map(|k| self.x[k..].iter().step_by(levels).map(move |x| x / total)).collect();
        Distribution { states, p }
    }
}

/// Contraction factor per cycle, averaged over the last four cycles.
fn contraction(changes: &[f64]) -> f64 {
    let back = changes.len().saturating_sub(1).min(4);
    if back == 0 {
        return 0.9;
    }
    let [.., last] = changes else { return 0.9 };
    let first = changes[changes.len() - 1 - back];
    if first == 0.0 { 0.0 } else { libm::pow(last / first, 1.0 / back as f64).clamp(0.01, 0.9999) }
}

/// Chain of stages for a fixed joint state, with a constant exit rate and an external inflow.
struct StageChain {
    stages: usize,
    inflow: Vec<f64>,
    /// up[k][d]: rate from k to k + 1 + d.
    up: Vec<f64>,
    /// Exit rates of the chain.
    exits: Vec<f64>,
    /// Total exit rates of the states in the censored chain.
    leaving: Vec<f64>,
    x: Vec<f64>,
}

impl StageChain {
    fn new(levels: usize, stages: usize) -> Self {
        let zeros = || vec![0.0; levels];
        let up = vec![0.0; levels * stages];
        StageChain { stages, inflow: zeros(), up, exits: zeros(), leaving: zeros(), x: zeros() }
    }

    /// Solves x (generator) = - inflow by elimination from the top, without subtractions. entering[k]: rate from k to k
    /// + m.
    fn solve(&mut self, entering: &[f64], down: f64, exit: f64) {
        let (levels, m) = (self.x.len(), self.stages);
        self.up.fill(0.0);
        self.exits.fill(exit);
        for (up, rate) in self.up.chunks_exact_mut(m).zip(&entering[..levels - m]) {
            up[m - 1] = *rate;
        }
        for i in (1..levels).rev() {
            let leaving = down + self.exits[i];
            self.leaving[i] = leaving;
            // Probabilities of the next state being i - 1, or an exit.
            let (below, out) = (down / leaving, self.exits[i] / leaving);
            self.inflow[i - 1] += self.inflow[i] * below;
            for p in i.saturating_sub(m)..i {
                let via = self.up[p * m + i - p - 1];
                if via != 0.0 {
                    self.exits[p] += via * out;
                    if p + 1 < i {
                        self.up[p * m + i - p - 2] += via * below;
                    }
                }
            }
        }
        self.leaving[0] = self.exits[0];
        for i in 0..levels {
            let mut flow = self.inflow[i];
            for p in i.saturating_sub(m)..i {
                flow += self.x[p] * self.up[p * m + i - p - 1];
            }
            self.x[i] = flow / self.leaving[i];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contraction_is_the_mean_ratio_of_the_last_cycles() {
        assert_eq!((contraction(&[]), contraction(&[0.5])), (0.9, 0.9));
        assert!((contraction(&[1.0, 0.25]) - 0.25).abs() < 1e-12);
        // Over the last four cycles: 16 to 1 in four steps, whatever the values between.
        assert!((contraction(&[7.0, 16.0, 9.0, 9.0, 9.0, 1.0]) - 0.5).abs() < 1e-12);
        assert_eq!(
            (contraction(&[0.0, 1.0]), contraction(&[1.0, 2.0]), contraction(&[1.0, 1e-9])),
            (0.0, 0.9999, 0.01)
        );
    }

    #[test]
    fn changes_are_relative_and_nan_is_the_largest() {
        assert!((relative(3.0, 4.0) - 0.25).abs() < 1e-15 && (relative(5.0, 4.0) - 0.25).abs() < 1e-15);
        assert_eq!((relative(1.0, 0.0), relative(1.0, TINY)), (0.0, 0.0));
        assert_eq!((largest(1.0, 2.0), largest(2.0, 1.0)), (2.0, 2.0));
        assert_eq!(largest(1.0, f64::NAN), f64::INFINITY);
    }

    #[test]
    fn the_memory_estimate_is_six_numbers_per_state() {
        assert_eq!(memory(1000, 2, 30), 1000 * 61 * 48);
        assert_eq!(memory(usize::MAX, 2, 2), u64::MAX);
    }

    #[test]
    fn the_cost_of_a_cycle_is_that_of_its_sweeps() {
        let two = Source::new("s", &[vec![-1.0, 1.0], vec![2.0, -2.0]], &[1.0, 2.0]).unwrap();
        let superposition = Superposition::new(&[two.clone(), two.clone(), two]);
        // 4 sweeps over 20 3 levels of 8 states, each with 2 3 of the chain, 3 neighbours and 6 more.
        assert_eq!(cycle_cost(&superposition, 3, 20), 4.0 * 60.0 * 8.0 * 15.0);
        assert_eq!(multiplications(&superposition, 3, 20), CYCLES_EXPECTED * cycle_cost(&superposition, 3, 20));
        // A source of 600 states is too large for elimination: L m^2 M^3 = 5 600^3.
        let minisources = crate::Minisources { count: 599, off_rate: 1.0, on_rate: 1.0, rate: 1.0 };
        let many = Superposition::new(&[Source::minisources("m", &minisources).unwrap()]);
        assert_eq!(multiplications(&many, 1, 5), CYCLES_EXPECTED_SINGLE * cycle_cost(&many, 1, 5));
    }

    #[test]
    fn a_long_sweep_can_be_cancelled_midway() {
        let two = Source::new("s", &[vec![-1.0, 1.0], vec![2.0, -2.0]], &[1.0, 2.0]).unwrap();
        let (sources, admitted) = (vec![two; 5], vec![vec![1.0; 100_000]; 5]);
        let iteration = Iteration { sources: &sources, admitted: &admitted, stages: 1, stage_rate: 20.0 };
        // 100 001 levels by 2 of the chain, 5 neighbours and 6 more: 1.3 million multiplications a state, 20 million
        // for 15 states, twice among 32.
        let levels = 100_001;
        let (mut grids, mut chain) = (iteration.grids(levels), StageChain::new(levels, 1));
        let mut calls = 0;
        let mut sweep = |limit: u32| {
            calls = 0;
            let change = iteration.sweep(&mut grids[0], &mut chain, true, &mut || {
                calls += 1;
                calls < limit
            });
            (change.is_some(), calls)
        };
        assert_eq!((sweep(9), sweep(2), sweep(1)), ((true, 2), (false, 2), (false, 1)));
    }

    #[test]
    fn the_relaxation_rate_of_a_source() {
        // Two states relax at the sum of their rates.
        let two = Source::new("s", &[vec![-3.0, 3.0], vec![5.0, -5.0]], &[1.0, 2.0]).unwrap();
        assert!((relaxation_rate(&two) - 8.0).abs() < 1e-12, "{}", relaxation_rate(&two));
        // Four equal states with transitions at 1 to each other: e^-4t.
        let row = |i: usize| (0..4).map(|j| if i == j { -3.0 } else { 1.0 }).collect();
        let four = Source::new("s", &(0..4).map(row).collect::<Vec<Vec<f64>>>(), &[1.0; 4]).unwrap();
        assert!((relaxation_rate(&four) - 4.0).abs() < 1e-12, "{}", relaxation_rate(&four));
    }

    #[test]
    fn the_solution_of_a_stage_chain_satisfies_flow_balance() {
        for stages in [1, 3] {
            let levels = 7;
            let entering: Vec<f64> = (0..levels).map(|k| 1.0 + 0.5 * k as f64).collect();
            let (down, exit) = (4.0, 0.7);
            let mut chain = StageChain::new(levels, stages);
            let inflow: Vec<f64> = (0..levels).map(|k| (k * k % 5) as f64 + 0.1).collect();
            chain.inflow.copy_from_slice(&inflow);
            chain.solve(&entering, down, exit);
            // Flow balance: inflow from outside and from other levels equals outflow.
            for (k, came) in inflow.iter().enumerate() {
                let up = |k: usize| if k + stages < levels { entering[k] } else { 0.0 };
                let out = chain.x[k] * (up(k) + exit + if k > 0 { down } else { 0.0 });
                let below = if k >= stages { chain.x[k - stages] * up(k - stages) } else { 0.0 };
                let above = if k + 1 < levels { chain.x[k + 1] * down } else { 0.0 };
                assert!((out - came - below - above).abs() < 1e-12 * out, "{stages} stages, level {k}");
            }
        }
    }

    #[test]
    fn aggregation_adds_groups_and_disaggregation_scales_them() {
        // A source of two states, to be aggregated, before one of three: (i, j) at 3 i + j.
        let chain = |n: usize| {
            let row = |i: usize| (0..n).map(|j| if i == j { 1.0 - n as f64 } else { 1.0 }).collect();
            Source::new("s", &(0..n).map(row).collect::<Vec<Vec<f64>>>(), &vec![1.0; n]).unwrap()
        };
        let grid = |sources: &[Source], x: Vec<f64>| {
            let space = Superposition::new(sources);
            let stationary = space.stationary();
            Grid { space, stationary, aggregated: None, entering: x.iter().map(|x| 2.0 + x).collect(), x }
        };
        let (levels, aggregated) = (2, (2, 3));
        let mut fine =
            grid(&[chain(2), chain(3)], (0..12).map(|k| if k == 3 || k == 9 { 0.0 } else { 1.0 + k as f64 }).collect());
        let mut coarse = grid(&[chain(3)], vec![0.0; 6]);
        let old = fine.aggregate(aggregated, &mut coarse, levels);
        for (at, group) in old.iter().enumerate() {
            let [one, other] = [fine.x[at], fine.x[6 + at]];
            assert!([coarse.x[at], *group].iter().all(|sum| (sum - one - other).abs() < TINY), "{at}");
            let [first, second] = [fine.entering[at], fine.entering[6 + at]];
            // The plain mean if both are zero.
            let mean =
                if one + other > 0.0 { (one * first + other * second) / (one + other) } else { 0.5 * (first + second) };
            assert!((coarse.entering[at] - mean).abs() < 1e-12, "{at}: {} {mean}", coarse.entering[at]);
        }
        let before = fine.x.clone();
        coarse.x.iter_mut().enumerate().for_each(|(at, x)| *x *= 1.0 + 0.1 * at as f64);
        let change = fine.disaggregate(aggregated, &coarse, &old, levels);
        // The last change is the largest: .5 of 1.5.
        assert!((change - 0.5 / 1.5).abs() < 1e-12, "{change}");
        for (k, (now, then)) in fine.x.iter().zip(&before).enumerate() {
            assert!((now - then * (1.0 + 0.1 * (k % 6) as f64)).abs() < 1e-12, "{k}");
        }
    }
}
