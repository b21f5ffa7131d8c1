//! The stationary distribution of MMPP/Erlang(m)/1/L for many joint states, by iteration; no matrix of theirs is
//! formed.
//!
//! With the joint state j of the sources held, the stages k form a chain of their own: one down when a stage ends, m up
//! at an arrival. A sweep solves that chain for one j after the other, fed by what flows in from the j that differ in
//! the state of one source, and gives each j the probability that the sources alone settle (block Gauss-Seidel). That
//! makes good what changes faster than the sources; what is left is alike in the states between which a fast source
//! jumps. So its states are taken together: what remains is the same chain with a source less, whose arrivals are
//! averages under the distribution at hand, and it is improved in the same way, down to a chain that elimination solves
//! at once (multilevel aggregation: Horton and Leutenegger 1994; for Kronecker sums, Buchholz and Dayar 2004).
//!
//! Only numbers that are not negative are added, multiplied and divided, so that small probabilities converge in
//! proportion to themselves. It ends when the greatest relative change of any, carried on as a geometric series, is
//! below [`TOLERANCE`].
//!
//! Cost of a cycle: two sweeps of L m M (2 m + number of neighbours of j) multiplications, and as much for all coarser
//! chains together; memory: M (L m + 1) numbers three times, and as many for these.

use crate::solve::{Band, Distribution};
use crate::source::{Source, Superposition};
use crate::sum::sum;

/// What the iteration needs to know of the queue.
pub(crate) struct Iteration<'a> {
    pub(crate) sources: &'a [Source],
    /// admitted[s][b]: share of the packets of source s that enter when b packets are present, b below L.
    pub(crate) admitted: &'a [Vec<f64>],
    /// m.
    pub(crate) stages: usize,
    /// m mu: stages per second.
    pub(crate) stage_rate: f64,
}

/// Why there is no answer.
#[derive(Debug, PartialEq)]
pub(crate) enum Ended {
    /// Whoever listens asked for it.
    Stopped,
    /// So many cycles did not suffice.
    Unsettled(usize),
}

/// Largest relative error that is left of any probability, estimated.
const TOLERANCE: f64 = 1e-12;

/// Changes below this are those of rounding.
const ROUNDING: f64 = 2e-14;

/// After so many cycles one looks whether they get anywhere.
const PATIENCE: usize = 12;

/// Most sweeps on either side of a correction.
const SWEEPS_MAX: u32 = 64;

/// Most cycles.
const CYCLES_MAX: usize = 2000;

/// Cycles that are foreseen before anything is known: sources of few states take 3 to 20.
const CYCLES_FORESEEN: f64 = 15.0;

/// The same where the coarsest chain, that of one source of many states, is swept alone: 50 to some hundreds.
const CYCLES_OF_ONE_FORESEEN: f64 = 200.0;

/// The coarsest chain is solved by elimination if that takes fewer multiplications than this.
const COARSE: f64 = 2e6;

/// The same where no source is left that could be left out.
const COARSE_OF_ONE: f64 = 1e8;

/// How many multiplications may pass before someone asks for a stop.
const BETWEEN: usize = 20_000_000;

/// Below this a probability is not asked how much it changes: it has no full precision.
const TINY: f64 = 1e-290;

/// Next to nothing beside that, and yet a weight.
const NEARLY_NONE: f64 = 1e-300;

/// Memory that [`Iteration::solve`] takes, bytes.
pub(crate) fn memory(states: usize, stages: usize, capacity: usize) -> u64 {
    let levels = (capacity as u64).saturating_mul(stages as u64).saturating_add(1);
    levels.saturating_mul(states as u64).saturating_mul(8 * 6)
}

/// How many multiplications the cycles take that are foreseen, about.
pub(crate) fn multiplications(together: &Superposition, stages: usize, capacity: usize) -> f64 {
    foreseen(together, stages, capacity) * cycle(together, stages, capacity)
}

/// How many cycles are foreseen.
fn foreseen(together: &Superposition, stages: usize, capacity: usize) -> f64 {
    let last = crate::solve::multiplications(together.states_of_one(), stages, capacity);
    if last < COARSE_OF_ONE { CYCLES_FORESEEN } else { CYCLES_OF_ONE_FORESEEN }
}

fn cycle(together: &Superposition, stages: usize, capacity: usize) -> f64 {
    4.0 * (capacity * stages) as f64 * together.states() as f64 * touched(together, stages) as f64
}

/// How many multiplications a sweep takes for each level of a joint state.
fn touched(together: &Superposition, stages: usize) -> usize {
    2 * stages + together.steps() + 6
}

/// The chain with some of the sources, and the distribution at hand.
struct Grid {
    space: Superposition,
    stationary: Vec<f64>,
    /// States of the source that the next grid lacks, and its stride here.
    lacks: Option<(usize, usize)>,
    /// entering[j * levels + k]: packets per second that enter.
    entering: Vec<f64>,
    /// x[j * levels + k].
    x: Vec<f64>,
}

/// Relaxation, per second: exact for two states.
fn speed(source: &Source) -> f64 {
    let shares = source.state_shares();
    let jumps: f64 = shares.iter().enumerate().map(|(i, p)| -p * source.generator[(i, i)]).sum();
    jumps / (1.0 - shares.iter().map(|p| p * p).sum::<f64>())
}

impl Iteration<'_> {
    /// The distribution; `hear` is told how many multiplications are left, about, and answers whether to go on.
    pub(crate) fn solve(&self, hear: &mut dyn FnMut(f64) -> bool) -> Result<Distribution, Ended> {
        let capacity = self.admitted[0].len();
        let levels = capacity * self.stages + 1;
        let mut grids = self.grids(levels);
        let cost = cycle(&grids[0].space, self.stages, capacity);
        let mut line = Line::new(levels, self.stages);
        let mut changes: Vec<f64> = Vec::new();
        let foreseen = foreseen(&grids[0].space, self.stages, capacity);
        let (mut left, mut sweeps, mut since) = (foreseen, 1, 0);
        for number in 1..=CYCLES_MAX {
            // Corrections may go back and forth between two distributions: after more sweeps they are closer to the
            // point.
            if number - since > PATIENCE && contraction(&changes) > 0.95 && sweeps < SWEEPS_MAX {
                (sweeps, since) = (2 * sweeps, number);
            }
            if !hear(cost * f64::from(sweeps) * left) {
                return Err(Ended::Stopped);
            }
            let mut go_on = || hear(cost * f64::from(sweeps) * left);
            let Some(change) = self.improve(&mut grids, &mut line, sweeps, &mut go_on) else {
                return Err(Ended::Stopped);
            };
            changes.push(change);
            let ratio = contraction(&changes);
            let error = change * ratio / (1.0 - ratio);
            if change < ROUNDING || (number >= 3 && error < TOLERANCE) {
                return Ok(grids.swap_remove(0).distribution(levels));
            }
            let shown = libm::log(TOLERANCE / error) / libm::log(ratio);
            left = if number >= 3 { shown } else { foreseen - number as f64 }.max(1.0);
        }
        Err(Ended::Unsettled(CYCLES_MAX))
    }

    /// All sources, then one less after the other, the fastest first.
    fn grids(&self, levels: usize) -> Vec<Grid> {
        let mut sources: Vec<&Source> = self.sources.iter().collect();
        let mut grids = Vec::new();
        loop {
            let space = Superposition::of(&sources);
            let states = space.states();
            let stationary = space.stationary();
            let x = stationary.iter().flat_map(|p| std::iter::repeat_n(p / levels as f64, levels)).collect();
            let mut grid = Grid { space, stationary, lacks: None, entering: vec![0.0; states * levels], x };
            let capacity = levels / self.stages;
            let small = crate::solve::multiplications(states, self.stages, capacity) < COARSE;
            let able = (0..sources.len()).filter(|s| sources[*s].states() > 1);
            let fastest = able.max_by(|a, b| speed(sources[*a]).total_cmp(&speed(sources[*b])));
            match fastest {
                Some(s) if !small && sources.len() > 1 => {
                    let stride = sources[s + 1..].iter().map(|source| source.states()).product();
                    grid.lacks = Some((sources[s].states(), stride));
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
                // No stage, then m of each packet.
                let found = std::iter::once(&admitted[0]).chain(shares.skip(self.stages));
                own.iter_mut().zip(found).for_each(|(sum, share)| *sum += rates[j] * share);
            }
        }
        grids
    }

    /// A cycle over the first grid and those that are coarser; the greatest relative change, `None` where it was
    /// stopped.
    fn improve(
        &self,
        grids: &mut [Grid],
        line: &mut Line,
        sweeps: u32,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Option<f64> {
        let (fine, coarser) = grids.split_first_mut()?;
        let Some(lacks) = fine.lacks else { return self.finish(fine, line, go_on) };
        let levels = line.x.len();
        let mut change = 0.0f64;
        for _ in 0..sweeps {
            change = change.max(self.sweep(fine, line, true, go_on)?);
        }
        let old = fine.gather(lacks, &mut coarser[0], levels);
        self.improve(coarser, line, sweeps, go_on)?;
        change = change.max(fine.spread(lacks, &coarser[0], &old, levels));
        for _ in 0..sweeps {
            change = change.max(self.sweep(fine, line, false, go_on)?);
        }
        Some(change)
    }

    /// The coarsest grid: solved if that is cheap, else it is swept a few times.
    fn finish(&self, grid: &mut Grid, line: &mut Line, go_on: &mut dyn FnMut() -> bool) -> Option<f64> {
        let (levels, states) = (line.x.len(), grid.space.states());
        if crate::solve::multiplications(states, self.stages, levels / self.stages) >= COARSE_OF_ONE {
            let mut change = 0.0f64;
            for forward in [true, false, true, false] {
                change = change.max(self.sweep(grid, line, forward, go_on)?);
            }
            return Some(change);
        }
        let band = Band { states, levels, stages: self.stages, stage_rate: self.stage_rate };
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

    /// Solves the chain of stages in one joint state after the other; the greatest relative change.
    fn sweep(&self, grid: &mut Grid, line: &mut Line, forward: bool, go_on: &mut dyn FnMut() -> bool) -> Option<f64> {
        let (levels, states) = (line.x.len(), grid.space.states());
        let often = (BETWEEN / (levels * touched(&grid.space, self.stages))).max(1);
        let mut greatest = 0.0f64;
        for step in 0..states {
            if step % often == often - 1 && !go_on() {
                return None;
            }
            let j = if forward { step } else { states - 1 - step };
            // Far below what can be told from 0, as where a thousand sources are all ON.
            if grid.stationary[j] == 0.0 {
                grid.x[j * levels..][..levels].fill(0.0);
                continue;
            }
            line.inflow.fill(0.0);
            grid.space.entries_of(j, |from, rate| {
                let other = &grid.x[from * levels..][..levels];
                line.inflow.iter_mut().zip(other).for_each(|(inflow, x)| *inflow += rate * x);
            });
            line.solve(&grid.entering[j * levels..][..levels], self.stage_rate, grid.space.leaving(j));
            let total = sum(line.x.iter().copied());
            let scale = if total > 0.0 { grid.stationary[j] / total } else { 0.0 };
            for (old, new) in grid.x[j * levels..][..levels].iter_mut().zip(&line.x) {
                let new = new * scale;
                greatest = largest(greatest, relative(*old, new));
                *old = new;
            }
        }
        Some(greatest)
    }
}

/// The larger; what is no number is the largest, lest it pass for settled.
fn largest(a: f64, b: f64) -> f64 {
    if b.is_nan() { f64::INFINITY } else { a.max(b) }
}

/// The change from `old` to `new` as a share of it.
fn relative(old: f64, new: f64) -> f64 {
    if new <= TINY { 0.0 } else { (new - old).abs() / new }
}

impl Grid {
    /// Makes the coarser chain: its distribution and its arrivals. Answers the former.
    fn gather(&self, (own, stride): (usize, usize), coarse: &mut Grid, levels: usize) -> Vec<f64> {
        coarse.x.fill(0.0);
        coarse.entering.fill(0.0);
        for j in 0..self.space.states() {
            let to = (j / (own * stride) * stride + j % stride) * levels;
            for k in 0..levels {
                // Of what is 0 any average serves.
                let x = self.x[j * levels + k] + NEARLY_NONE;
                coarse.x[to + k] += x;
                coarse.entering[to + k] += x * self.entering[j * levels + k];
            }
        }
        coarse.entering.iter_mut().zip(&coarse.x).for_each(|(entering, x)| *entering /= x);
        coarse.x.clone()
    }

    /// Gives each group of states what the coarser chain says of it; the greatest relative change.
    fn spread(&mut self, (own, stride): (usize, usize), coarse: &Grid, old: &[f64], levels: usize) -> f64 {
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

/// By how much a change shrinks from cycle to cycle: over the last four, lest two that lie close by chance decide.
fn contraction(changes: &[f64]) -> f64 {
    let back = changes.len().saturating_sub(1).min(4);
    if back == 0 {
        return 0.9;
    }
    let [.., last] = changes else { return 0.9 };
    let first = changes[changes.len() - 1 - back];
    if first == 0.0 { 0.0 } else { libm::pow(last / first, 1.0 / back as f64).clamp(0.01, 0.9999) }
}

/// The chain of stages with the sources held, which is left at one rate from everywhere and entered from outside.
struct Line {
    stages: usize,
    inflow: Vec<f64>,
    /// up[k][d]: rate from k to k + 1 + d.
    up: Vec<f64>,
    /// Rates out of the chain.
    exits: Vec<f64>,
    /// All rates out of a state that is censored on those below it.
    leaving: Vec<f64>,
    x: Vec<f64>,
}

impl Line {
    fn new(levels: usize, stages: usize) -> Self {
        let zeros = || vec![0.0; levels];
        let up = vec![0.0; levels * stages];
        Line { stages, inflow: zeros(), up, exits: zeros(), leaving: zeros(), x: zeros() }
    }

    /// x with x (generator) = - inflow, by elimination from the top; nothing is subtracted. entering[k]: rate from k to
    /// k + m.
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
            // From i one goes on to i - 1, or out.
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
    fn a_change_shrinks_by_the_mean_ratio_of_the_last_cycles() {
        assert_eq!((contraction(&[]), contraction(&[0.5])), (0.9, 0.9));
        assert!((contraction(&[1.0, 0.25]) - 0.25).abs() < 1e-12);
        // Over four cycles back: 16 to 1 in four steps, whatever came before and between.
        assert!((contraction(&[7.0, 16.0, 9.0, 9.0, 9.0, 1.0]) - 0.5).abs() < 1e-12);
        assert_eq!(
            (contraction(&[0.0, 1.0]), contraction(&[1.0, 2.0]), contraction(&[1.0, 1e-9])),
            (0.0, 0.9999, 0.01)
        );
    }

    #[test]
    fn changes_are_shares_of_what_can_be_told_and_no_number_is_the_largest() {
        assert!((relative(3.0, 4.0) - 0.25).abs() < 1e-15 && (relative(5.0, 4.0) - 0.25).abs() < 1e-15);
        assert_eq!((relative(1.0, 0.0), relative(1.0, TINY)), (0.0, 0.0));
        assert_eq!((largest(1.0, 2.0), largest(2.0, 1.0)), (2.0, 2.0));
        assert_eq!(largest(1.0, f64::NAN), f64::INFINITY);
    }

    #[test]
    fn the_memory_that_is_told_is_six_numbers_a_state() {
        assert_eq!(memory(1000, 2, 30), 1000 * 61 * 48);
        assert_eq!(memory(usize::MAX, 2, 2), u64::MAX);
    }

    #[test]
    fn cycles_cost_what_their_sweeps_touch() {
        let two = Source::new("s", &[vec![-1.0, 1.0], vec![2.0, -2.0]], &[1.0, 2.0]).unwrap();
        let together = Superposition::of(&[two.clone(), two.clone(), two]);
        // 4 sweeps over 20 3 levels of 8 states, each with 2 3 of the line, 3 neighbours and 6 more.
        assert_eq!(cycle(&together, 3, 20), 4.0 * 60.0 * 8.0 * 15.0);
        assert_eq!(multiplications(&together, 3, 20), CYCLES_FORESEEN * cycle(&together, 3, 20));
        // One source of 600 states is too much for an elimination: L m^2 M^3 = 5 600^3.
        let minisources = crate::Minisources { count: 599, off_rate: 1.0, on_rate: 1.0, rate: 1.0 };
        let many = Superposition::of(&[Source::minisources("m", &minisources).unwrap()]);
        assert_eq!(multiplications(&many, 1, 5), CYCLES_OF_ONE_FORESEEN * cycle(&many, 1, 5));
    }

    #[test]
    fn a_long_sweep_asks_again_and_again_whether_to_go_on() {
        let two = Source::new("s", &[vec![-1.0, 1.0], vec![2.0, -2.0]], &[1.0, 2.0]).unwrap();
        let (sources, admitted) = (vec![two; 5], vec![vec![1.0; 100_000]; 5]);
        let iteration = Iteration { sources: &sources, admitted: &admitted, stages: 1, stage_rate: 20.0 };
        // 100 001 levels by 2 of the line, 5 neighbours and 6 more: 1.3 million multiplications a state, of which 20
        // million are 15 states, twice among 32.
        let levels = 100_001;
        let (mut grids, mut line) = (iteration.grids(levels), Line::new(levels, 1));
        let mut asked = 0;
        let mut sweep = |limit: u32| {
            asked = 0;
            let change = iteration.sweep(&mut grids[0], &mut line, true, &mut || {
                asked += 1;
                asked < limit
            });
            (change.is_some(), asked)
        };
        assert_eq!((sweep(9), sweep(2), sweep(1)), ((true, 2), (false, 2), (false, 1)));
    }

    #[test]
    fn a_source_forgets_as_fast_as_it_jumps_between_unlike_states() {
        // Two states forget at the sum of their rates.
        let two = Source::new("s", &[vec![-3.0, 3.0], vec![5.0, -5.0]], &[1.0, 2.0]).unwrap();
        assert!((speed(&two) - 8.0).abs() < 1e-12, "{}", speed(&two));
        // Four alike that jump anywhere at 1 each: e^-4t.
        let row = |i: usize| (0..4).map(|j| if i == j { -3.0 } else { 1.0 }).collect();
        let four = Source::new("s", &(0..4).map(row).collect::<Vec<Vec<f64>>>(), &[1.0; 4]).unwrap();
        assert!((speed(&four) - 4.0).abs() < 1e-12, "{}", speed(&four));
    }

    #[test]
    fn a_line_is_solved_as_equations_are() {
        for stages in [1, 3] {
            let levels = 7;
            let entering: Vec<f64> = (0..levels).map(|k| 1.0 + 0.5 * k as f64).collect();
            let (down, exit) = (4.0, 0.7);
            let mut line = Line::new(levels, stages);
            let inflow: Vec<f64> = (0..levels).map(|k| (k * k % 5) as f64 + 0.1).collect();
            line.inflow.copy_from_slice(&inflow);
            line.solve(&entering, down, exit);
            // What flows in, from outside and from other levels, flows out.
            for (k, came) in inflow.iter().enumerate() {
                let up = |k: usize| if k + stages < levels { entering[k] } else { 0.0 };
                let out = line.x[k] * (up(k) + exit + if k > 0 { down } else { 0.0 });
                let below = if k >= stages { line.x[k - stages] * up(k - stages) } else { 0.0 };
                let above = if k + 1 < levels { line.x[k + 1] * down } else { 0.0 };
                assert!((out - came - below - above).abs() < 1e-12 * out, "{stages} stages, level {k}");
            }
        }
    }

    #[test]
    fn groups_of_states_are_added_and_given_back_in_proportion() {
        // A source of two states, to be left out, before one of three: (i, j) at 3 i + j.
        let chain = |n: usize| {
            let row = |i: usize| (0..n).map(|j| if i == j { 1.0 - n as f64 } else { 1.0 }).collect();
            Source::new("s", &(0..n).map(row).collect::<Vec<Vec<f64>>>(), &vec![1.0; n]).unwrap()
        };
        let grid = |sources: &[Source], x: Vec<f64>| {
            let space = Superposition::of(sources);
            let stationary = space.stationary();
            Grid { space, stationary, lacks: None, entering: x.iter().map(|x| 2.0 + x).collect(), x }
        };
        let (levels, lacks) = (2, (2, 3));
        let mut fine =
            grid(&[chain(2), chain(3)], (0..12).map(|k| if k == 3 || k == 9 { 0.0 } else { 1.0 + k as f64 }).collect());
        let mut coarse = grid(&[chain(3)], vec![0.0; 6]);
        let old = fine.gather(lacks, &mut coarse, levels);
        for (at, group) in old.iter().enumerate() {
            let [one, other] = [fine.x[at], fine.x[6 + at]];
            assert!([coarse.x[at], *group].iter().all(|sum| (sum - one - other).abs() < TINY), "{at}");
            let [first, second] = [fine.entering[at], fine.entering[6 + at]];
            // Where both are nothing, the plain mean.
            let mean =
                if one + other > 0.0 { (one * first + other * second) / (one + other) } else { 0.5 * (first + second) };
            assert!((coarse.entering[at] - mean).abs() < 1e-12, "{at}: {} {mean}", coarse.entering[at]);
        }
        let before = fine.x.clone();
        coarse.x.iter_mut().enumerate().for_each(|(at, x)| *x *= 1.0 + 0.1 * at as f64);
        let change = fine.spread(lacks, &coarse, &old, levels);
        // The largest share of itself is that of the last: .5 of 1.5.
        assert!((change - 0.5 / 1.5).abs() < 1e-12, "{change}");
        for (k, (now, then)) in fine.x.iter().zip(&before).enumerate() {
            assert!((now - then * (1.0 + 0.1 * (k % 6) as f64)).abs() < 1e-12, "{k}");
        }
    }
}
