//! Model of sources and a queue.

use aqumen_scenario::memory;

use crate::early::{Action, Adaptation, probability};
use crate::iterate::{self, Iteration, IterationError};
use crate::measures::{Measures, Solution};
use crate::solve::{self, BandedChain, Distribution};
use crate::source::{Source, Superposition};
use crate::{Error, solve::packets};

/// Server and its buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Queue {
    /// Capacity of the system, packets, L; the one in service counts.
    pub capacity: u32,
    /// Service rate, packets per second of busy time, mu.
    pub service_rate: f64,
    /// Erlang stages of a service, m: 1 is exponential; the squared coefficient of variation is 1/m.
    pub stages: u32,
}

/// Sources and a queue, with an optional threshold for each source.
#[derive(Clone, Debug)]
pub struct Model {
    queue: Queue,
    sources: Vec<Source>,
    superposition: Superposition,
    action: Action,
    /// Thresholds in packets; `None`: no early drops or marks.
    thresholds: Vec<Option<f64>>,
}

/// Most joint states of the sources.
const STATES_MAX: usize = 1 << 20;

/// Most states of one source, whose chain is solved as a full matrix.
const SOURCE_STATES_MAX: usize = 4096;

/// Multiplications per second of the elimination, approximately.
const ELIMINATION_SPEED: f64 = 4e9;

/// Multiplications per second of the iteration, whose columns are short and scattered in memory.
const ITERATION_SPEED: f64 = 3e8;

/// Longest accepted solution time, seconds.
const SECONDS_MAX: f64 = 3600.0;

/// Most multiplications of an elimination, half a second of work; larger models are iterated.
const ELIMINATION_COST_MAX: f64 = 2e9;

impl Model {
    /// Makes a model of `sources` and `queue`, without thresholds.
    pub fn new(queue: Queue, sources: Vec<Source>) -> Result<Self, Error> {
        let Queue { capacity, service_rate, stages } = queue;
        if capacity == 0 || stages == 0 {
            return Err(Error::Queue(
                "the queue needs a capacity of at least one packet and at least one service stage".into(),
            ));
        }
        if !(service_rate.is_finite() && service_rate > 0.0) {
            return Err(Error::Queue(format!("the service rate is {service_rate}; it must be above 0")));
        }
        if !sources.iter().any(|source| source.rates().iter().any(|rate| *rate > 0.0)) {
            return Err(Error::Rates("all rates of all sources are 0; at least one must be above 0".into()));
        }
        let states = sources.iter().fold(1usize, |product, source| product.saturating_mul(source.states()));
        let largest = sources.iter().map(Source::states).max().unwrap_or(0);
        if states > STATES_MAX || largest > SOURCE_STATES_MAX {
            let message = format!(
                "the sources have {states} joint states; at most {STATES_MAX} are supported, and {SOURCE_STATES_MAX} per source"
            );
            return Err(Error::Generator(message));
        }
        let (thresholds, superposition) = (vec![None; sources.len()], Superposition::new(&sources));
        Ok(Model { queue, sources, superposition, action: Action::Drop, thresholds })
    }

    /// Returns the model with early drops or marks: a threshold in packets for each source, or none.
    pub fn with_thresholds(mut self, action: Action, thresholds: Vec<Option<f64>>) -> Result<Self, Error> {
        if thresholds.len() != self.sources.len() {
            return Err(Error::Queue(format!("{} thresholds for {} sources", thresholds.len(), self.sources.len())));
        }
        if let Some(threshold) = thresholds.iter().flatten().find(|t| !(t.is_finite() && **t >= 0.0)) {
            return Err(Error::Queue(format!("a threshold is {threshold}; it must be at least 0 packets")));
        }
        (self.action, self.thresholds) = (action, thresholds);
        Ok(self)
    }

    /// Returns the model with the least thresholds that keep each source's loss ratio within a bound. The action
    /// becomes early drops, since marks do not change losses.
    pub fn adapt_thresholds(self, adaptation: &Adaptation) -> Result<Self, Error> {
        self.adapt_thresholds_with_progress(adaptation, &mut |_| true)
    }

    /// As [`adapt_thresholds`](Self::adapt_thresholds); `progress` receives the estimated remaining seconds, and
    /// cancels the search by returning false.
    pub fn adapt_thresholds_with_progress(
        self,
        adaptation: &Adaptation,
        progress: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Self, Error> {
        let one = self.time_estimate()?;
        let mut solutions = adaptation.solutions(self.sources.len());
        let limit = f64::from(self.queue.capacity);
        let packets = |shares: &[f64]| shares.iter().map(|share| Some(share * limit)).collect();
        let shares = adaptation.search(self.sources.len(), |shares, s| {
            let model = self.clone().with_thresholds(Action::Drop, packets(shares))?;
            solutions = (solutions - 1.0).max(0.0);
            Ok(model.solve_with_progress(&mut |left| progress(left + one * solutions))?.sources[s].loss_ratio)
        })?;
        self.with_thresholds(Action::Drop, packets(&shares))
    }

    /// The queue.
    pub fn queue(&self) -> Queue {
        self.queue
    }

    /// The sources.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// Treatment of packets that the threshold function selects.
    pub fn action(&self) -> Action {
        self.action
    }

    /// The threshold of each source in packets.
    pub fn thresholds(&self) -> &[Option<f64>] {
        &self.thresholds
    }

    /// Offered load rho: mean arrival rate over service rate.
    pub fn load(&self) -> f64 {
        self.sources.iter().map(Source::mean_rate).sum::<f64>() / self.queue.service_rate
    }

    /// States of the Markov chain: M (L m + 1).
    pub fn states(&self) -> u64 {
        let levels = u64::from(self.queue.capacity).saturating_mul(u64::from(self.queue.stages)).saturating_add(1);
        levels.saturating_mul(self.superposition.states() as u64)
    }

    /// early[s][b]: probability that the threshold function selects a packet of source s with b packets present, b from
    /// 0 to L - 1.
    pub(crate) fn early(&self) -> Vec<Vec<f64>> {
        let capacity = self.queue.capacity;
        let limit = f64::from(capacity);
        let chosen = |threshold: Option<f64>, b: u32| threshold.map_or(0.0, |t| probability(f64::from(b), t, limit));
        self.thresholds.iter().map(|&threshold| (0..capacity).map(|b| chosen(threshold, b)).collect()).collect()
    }

    /// Estimated solution time on one core, seconds. Refuses a model that would take too long, or more memory than is
    /// free.
    pub fn time_estimate(&self) -> Result<f64, Error> {
        let needed = self.memory_estimate();
        let available = memory::headroom().map_or(u64::MAX, |headroom| headroom.left);
        if needed > available {
            return Err(Error::TooLarge { states: self.states(), needed, available });
        }
        let seconds = if self.uses_iteration() {
            let (capacity, stages) = (self.queue.capacity as usize, self.queue.stages as usize);
            iterate::multiplications(&self.superposition, stages, capacity) / ITERATION_SPEED
        } else {
            self.elimination_cost() / ELIMINATION_SPEED
        };
        if seconds > SECONDS_MAX {
            return Err(Error::TooLong { states: self.states(), hours: seconds / 3600.0 });
        }
        Ok(seconds)
    }

    /// Estimated memory of the solution, bytes.
    pub fn memory_estimate(&self) -> u64 {
        let memory = if self.uses_iteration() { iterate::memory } else { solve::memory };
        memory(self.superposition.states(), self.queue.stages as usize, self.queue.capacity as usize)
    }

    /// Returns whether the solution is by iteration to twelve digits, since elimination would take too long.
    pub fn uses_iteration(&self) -> bool {
        self.superposition.states() > 1 && self.elimination_cost() > ELIMINATION_COST_MAX
    }

    /// Returns whether time and memory suffice for the elimination.
    fn can_eliminate(&self) -> bool {
        let (capacity, stages) = (self.queue.capacity as usize, self.queue.stages as usize);
        let needed = solve::memory(self.superposition.states(), stages, capacity);
        self.elimination_cost() / ELIMINATION_SPEED <= SECONDS_MAX
            && memory::headroom().is_none_or(|headroom| needed <= headroom.left)
    }

    /// Number of multiplications in the elimination.
    fn elimination_cost(&self) -> f64 {
        solve::multiplications(self.superposition.states(), self.queue.stages as usize, self.queue.capacity as usize)
    }

    /// Returns the performance measures.
    pub fn solve(&self) -> Result<Measures, Error> {
        self.solve_with_progress(&mut |_| true)
    }

    /// As [`solve`](Self::solve); `progress` receives the estimated remaining seconds, and cancels the solution by
    /// returning false.
    pub fn solve_with_progress(&self, progress: &mut dyn FnMut(f64) -> bool) -> Result<Measures, Error> {
        if !progress(self.time_estimate()?) {
            return Err(Error::Cancelled);
        }
        let early = self.early();
        let distribution = match self.uses_iteration() {
            true => match self.solve_by_iteration(&early, progress) {
                // The last resort, if feasible.
                Err(Error::NotConverged { .. }) if self.can_eliminate() => {
                    self.solve_by_elimination(&early, progress)?
                }
                other => other?,
            },
            false => self.solve_by_elimination(&early, progress)?,
        };
        let (capacity, stages) = (self.queue.capacity as usize, self.queue.stages as usize);
        debug_assert_eq!(packets(capacity * stages, stages), capacity);
        let solved = Solution {
            distribution: &distribution,
            rates: &self.superposition.rates,
            early: &early,
            action: self.action,
            capacity,
            stages,
            stage_rate: self.stage_rate(),
        };
        Ok(solved.measures())
    }

    /// m mu: stages per second.
    fn stage_rate(&self) -> f64 {
        self.queue.service_rate * f64::from(self.queue.stages)
    }

    /// Fraction of each source's packets that are admitted, by the packets present.
    fn admitted(&self, early: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let admit = |early: &f64| if self.action == Action::Drop { 1.0 - early } else { 1.0 };
        early.iter().map(|of| of.iter().map(admit).collect()).collect()
    }

    fn solve_by_elimination(
        &self,
        early: &[Vec<f64>],
        progress: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Distribution, Error> {
        let (capacity, stages) = (self.queue.capacity as usize, self.queue.stages as usize);
        let (generator, admitted) = (self.superposition.generator(), self.admitted(early));
        let rates = &self.superposition.rates;
        let band = BandedChain {
            states: self.superposition.states(),
            levels: capacity * stages + 1,
            stages,
            stage_rate: self.stage_rate(),
        };
        let entering = |k: usize, j: usize| {
            let b = packets(k, stages);
            rates.iter().zip(&admitted).map(|(of, share)| of[j] * share[b]).sum()
        };
        let mut left = |multiplications: f64| progress(multiplications / ELIMINATION_SPEED);
        band.solve(|_, j, to| generator[(j, to)], entering, &mut left).ok_or(Error::Cancelled)
    }

    fn solve_by_iteration(
        &self,
        early: &[Vec<f64>],
        progress: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Distribution, Error> {
        let iteration = Iteration {
            sources: &self.sources,
            admitted: &self.admitted(early),
            stages: self.queue.stages as usize,
            stage_rate: self.stage_rate(),
        };
        let mut left = |multiplications: f64| progress(multiplications / ITERATION_SPEED);
        iteration.solve(&mut left).map_err(|error| match error {
            IterationError::Cancelled => Error::Cancelled,
            IterationError::NotConverged(cycles) => Error::NotConverged { states: self.states(), cycles },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Minisources;

    /// Two-state sources, `number` of them, with time scales a factor of `apart` from one to the next.
    fn sources(number: u32, apart: f64, load: f64) -> Vec<Source> {
        let made = |s: u32| {
            let speed = 0.3 * apart.powi(s as i32);
            let (down, up) = (speed * (1.0 + 0.37 * f64::from(s % 3)), speed * (0.8 - 0.11 * f64::from(s % 4)));
            let rates = [load * (160.0 + 17.0 * f64::from(s)), load * (20.0 + 3.0 * f64::from(s))];
            Source::new(format!("s{s}"), &[vec![-down, down], vec![up, -up]], &rates).unwrap()
        };
        (0..number).map(made).collect()
    }

    /// Greatest relative difference between the two distributions.
    fn apart(model: &Model) -> f64 {
        let early = model.early();
        let exact = model.solve_by_elimination(&early, &mut |_| true).unwrap();
        let iterated = model.solve_by_iteration(&early, &mut |_| true).unwrap();
        let pairs = exact.p.iter().zip(&iterated.p).filter(|(exact, _)| **exact > 1e-280);
        pairs.map(|(exact, iterated)| (iterated / exact - 1.0).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn a_threshold_search_reports_the_expected_total_time() {
        let queue = Queue { capacity: 20, service_rate: 120.0, stages: 1 };
        let model = Model::new(queue, sources(2, 4.0, 0.5)).unwrap();
        let (one, adaptation) = (model.time_estimate().unwrap(), Adaptation::default());
        let mut reports = Vec::new();
        let adapted = model.clone().adapt_thresholds_with_progress(&adaptation, &mut |left| {
            reports.push(left);
            true
        });
        // 32 expected solutions: each start reports one fewer, with a minimum of zero.
        assert!((reports[0] / one - 32.0).abs() < 1e-6, "{reports:?} {one}");
        assert!(reports.len() > 4 && reports.windows(2).all(|pair| pair[1] <= pair[0]), "{reports:?}");
        assert!(reports.iter().all(|left| *left >= 0.0));
        let shares = adapted.unwrap().thresholds().to_vec();
        assert!(shares.iter().flatten().all(|packets| (5.0..=19.0).contains(packets)), "{shares:?}");
    }

    #[test]
    fn a_solution_reports_the_remaining_time_down_to_zero() {
        // 64 joint states: 64^2 (2) multiplications for each of 6000 rows, so several reports.
        let queue = Queue { capacity: 400, service_rate: 400.0, stages: 1 };
        let model = Model::new(queue, sources(6, 2.0, 0.4)).unwrap();
        let mut reports = Vec::new();
        model
            .solve_with_progress(&mut |left| {
                reports.push(left);
                true
            })
            .unwrap();
        let all = model.time_estimate().unwrap();
        assert!(!model.uses_iteration() && reports.len() > 3 && reports[0] == all, "{reports:?}");
        assert!(reports.windows(2).all(|pair| pair[1] <= pair[0]), "{reports:?}");
        // The remainder below the reporting interval is not reported.
        assert!(reports[1] > 0.5 * all && reports[reports.len() - 1] < 0.5 * all, "{reports:?}");
    }

    #[test]
    fn elimination_is_possible_within_the_limits_of_time_and_memory() {
        let of = |capacity: u32, number: u32| {
            let queue = Queue { capacity, service_rate: 400.0, stages: 1 };
            Model::new(queue, sources(number, 2.0, 1.0)).unwrap()
        };
        assert!(of(20, 3).can_eliminate() && !of(20, 3).uses_iteration());
        // 4096 joint states: 4096^3 multiplications a packet take days.
        assert!(!of(1000, 12).can_eliminate() && of(1000, 12).uses_iteration());
    }

    #[test]
    fn iteration_agrees_with_elimination() {
        // Equal time scales, and up to a factor of 1000 between sources, at loads of .15 to 1.5.
        for (number, scales, load, capacity, stages) in [
            (5, 1.0, 1.0, 70, 1),
            (6, 4.0, 1.3, 30, 1),
            (5, 0.5, 0.6, 20, 3),
            (4, 10.0, 1.0, 60, 4),
            (5, 1e3, 0.9, 90, 1),
            (5, 0.01, 1.4, 90, 1),
            (5, 1.6, 2.0, 100, 1),
            (5, 1.6, 0.2, 100, 2),
        ] {
            let service_rate = 110.0 * f64::from(number);
            let queue = Queue { capacity, service_rate, stages };
            let model = Model::new(queue, sources(number, scales, load)).unwrap();
            let off = apart(&model);
            assert!(off < 1e-10, "{number} sources, scales {scales}, load {load}: {off:.1e}");
            let thresholds = (0..number).map(|s| (s % 2 == 0).then_some(7.5)).collect();
            let off = apart(&model.with_thresholds(Action::Drop, thresholds).unwrap());
            assert!(off < 1e-10, "{number} sources, scales {scales}, load {load}, thresholds: {off:.1e}");
        }
    }

    #[test]
    fn iteration_agrees_with_elimination_for_random_chains() {
        // Chains of two to four states, some of them cyclic, with speeds up to a million times apart; some states are
        // silent.
        let mut state = 12_345u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        for case in 0..30 {
            let sizes = [[2, 3, 4], [3, 3, 3], [4, 2, 3], [2, 2, 4]][case % 4];
            let source = |states: usize| {
                let speed = 10f64.powf(6.0 * uniform() - 3.0);
                let mut generator = vec![vec![0.0; states]; states];
                for (i, row) in generator.iter_mut().enumerate() {
                    for (j, rate) in row.iter_mut().enumerate().filter(|(j, _)| *j != i) {
                        if j == (i + 1) % states || uniform() < 0.5 {
                            *rate = speed * 10f64.powf(2.0 * uniform() - 1.0);
                        }
                    }
                    row[i] = -row.iter().sum::<f64>();
                }
                let mut rate = |i| if i > 0 && uniform() < 0.2 { 0.0 } else { 10f64.powf(3.0 * uniform()) };
                let rates: Vec<f64> = (0..states).map(&mut rate).collect();
                Source::new(format!("{states}"), &generator, &rates).unwrap()
            };
            let sources: Vec<Source> = sizes.into_iter().map(source).collect();
            let load = 10f64.powf(1.2 * uniform() - 0.5);
            let service_rate = sources.iter().map(Source::mean_rate).sum::<f64>() / load;
            let queue = Queue { capacity: 150, service_rate, stages: 1 + case as u32 % 2 };
            let off = apart(&Model::new(queue, sources).unwrap());
            assert!(off < 1e-10, "case {case}, load {load}: {off:.1e}");
        }
    }

    #[test]
    fn iteration_agrees_with_elimination_for_sources_of_many_states() {
        for (counts, speed) in [([12, 9], 3.0), ([30, 2], 40.0)] {
            let mini = |count: u32, speed: f64| {
                let rate = 900.0 / f64::from(count);
                let minisources = Minisources { count, off_rate: speed, on_rate: 0.6 * speed, rate };
                Source::minisources(format!("{count}"), &minisources).unwrap()
            };
            let sources = vec![mini(counts[0], speed), mini(counts[1], 0.7)];
            let model = Model::new(Queue { capacity: 20, service_rate: 800.0, stages: 1 }, sources).unwrap();
            let off = apart(&model);
            assert!(off < 1e-10, "{counts:?}: {off:.1e}");
        }
    }

    #[test]
    fn sources_of_constant_rate_are_a_poisson_process_with_any_number_of_states() {
        // Ten states each: 1000 states before 40 packets, where p_b = rho^b (1 - rho) / (1 - rho^41), rho = .9.
        let source = |s: u32| {
            let row = |i: usize| (0..10).map(|j| if i == j { -9.0 } else { 1.0 }).collect();
            let generator: Vec<Vec<f64>> = (0..10).map(row).collect();
            Source::new(format!("s{s}"), &generator, &[30.0; 10]).unwrap()
        };
        let queue = Queue { capacity: 40, service_rate: 100.0, stages: 1 };
        let model = Model::new(queue, (0..3).map(source).collect()).unwrap();
        assert!(model.uses_iteration());
        let measures = model.solve().unwrap();
        let total: f64 = (0..=40).map(|b| 0.9f64.powi(b)).sum();
        for (b, p) in measures.occupancy.iter().enumerate() {
            let expected = 0.9f64.powi(b as i32) / total;
            assert!((p / expected - 1.0).abs() < 1e-11, "p_{b} = {p}, not {expected}");
        }
    }

    #[test]
    fn a_solution_reports_the_remaining_time_and_can_be_cancelled() {
        for (number, capacity) in [(9, 20), (4, 30)] {
            let queue = Queue { capacity, service_rate: 110.0 * f64::from(number), stages: 1 };
            let model = Model::new(queue, sources(number, 2.0, 1.0)).unwrap();
            let mut reports = Vec::new();
            let solved = model.solve_with_progress(&mut |left| {
                reports.push(left);
                true
            });
            assert!(solved.is_ok());
            assert!(reports.iter().all(|left| left.is_finite() && *left >= 0.0), "{reports:?}");
            if model.uses_iteration() {
                assert!(reports.len() > 3 && (reports[0] / model.time_estimate().unwrap() - 1.0).abs() < 1e-9);
                let mut calls = 0;
                let stopped = model.solve_with_progress(&mut |_| {
                    calls += 1;
                    calls < 3
                });
                assert!(matches!(stopped, Err(Error::Cancelled)) && calls == 3, "{calls}");
            }
        }
    }
}
