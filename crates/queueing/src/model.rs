//! A model: sources before a queue.

use aqumen_scenario::memory;

use crate::early::{Action, Adaptation, probability};
use crate::iterate::{self, Ended, Iteration};
use crate::measures::{Measures, Solved};
use crate::solve::{self, Band, Distribution};
use crate::source::{Source, Superposition};
use crate::{Error, solve::packets};

/// The server and its buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Queue {
    /// Packets that the system holds, L; the one in service counts.
    pub capacity: u32,
    /// Packets that the server serves per second when it is busy, mu.
    pub service_rate: f64,
    /// Erlang stages of a service, m: 1 is exponential; the squared coefficient of variation is 1/m.
    pub stages: u32,
}

/// Sources before a queue, with a threshold for each.
#[derive(Clone, Debug)]
pub struct Model {
    queue: Queue,
    sources: Vec<Source>,
    together: Superposition,
    action: Action,
    /// Packets; `None`: no early drops or marks.
    thresholds: Vec<Option<f64>>,
}

/// Most joint states of the sources.
const STATES_MAX: usize = 1 << 20;

/// Most joint states where there is one source alone, whose own chain is solved as a full matrix.
const STATES_OF_ONE_MAX: usize = 4096;

/// Multiplications of a solution in a second, about.
const PER_SECOND: f64 = 4e9;

/// The same where columns are short, and what is read lies apart.
const PER_SECOND_ITERATED: f64 = 3e8;

/// What takes longer than this is not begun.
const SECONDS_MAX: f64 = 3600.0;

/// Elimination is exact to the last digits; what takes it longer than half a second is iterated.
const ELIMINATED_MAX: f64 = 2e9;

impl Model {
    /// `sources` before `queue`, without thresholds.
    pub fn new(queue: Queue, sources: Vec<Source>) -> Result<Self, Error> {
        let Queue { capacity, service_rate, stages } = queue;
        if capacity == 0 || stages == 0 {
            return Err(Error::Queue("the queue needs room for a packet and at least one service stage".into()));
        }
        if !(service_rate.is_finite() && service_rate > 0.0) {
            return Err(Error::Queue(format!("the service rate is {service_rate}; it must be above 0")));
        }
        if !sources.iter().any(|source| source.rates().iter().any(|rate| *rate > 0.0)) {
            return Err(Error::Rates("no source ever sends a packet".into()));
        }
        let states = sources.iter().fold(1usize, |product, source| product.saturating_mul(source.states()));
        let alone = sources.iter().map(Source::states).max().unwrap_or(0);
        if states > STATES_MAX || alone > STATES_OF_ONE_MAX {
            let message = format!(
                "the sources together have {states} states; at most {STATES_MAX} can be solved, {STATES_OF_ONE_MAX} of one source"
            );
            return Err(Error::Generator(message));
        }
        let (thresholds, together) = (vec![None; sources.len()], Superposition::of(&sources));
        Ok(Model { queue, sources, together, action: Action::Drop, thresholds })
    }

    /// The same model with early drops or marks: a threshold in packets for each source, or none.
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

    /// The same model with the smallest thresholds that keep each source's loss within a target. Only early drops
    /// change losses, so marks make no sense here.
    pub fn adapted(self, adaptation: &Adaptation) -> Result<Self, Error> {
        self.adapted_telling(adaptation, &mut |_| true)
    }

    /// The same; `hear` is told how many seconds are left, about, and answers whether to go on.
    pub fn adapted_telling(self, adaptation: &Adaptation, hear: &mut dyn FnMut(f64) -> bool) -> Result<Self, Error> {
        let one = self.seconds()?;
        let mut solutions = adaptation.solutions(self.sources.len());
        let limit = f64::from(self.queue.capacity);
        let packets = |shares: &[f64]| shares.iter().map(|share| Some(share * limit)).collect();
        let shares = adaptation.search(self.sources.len(), |shares, s| {
            let model = self.clone().with_thresholds(Action::Drop, packets(shares))?;
            solutions = (solutions - 1.0).max(0.0);
            Ok(model.solve_telling(&mut |left| hear(left + one * solutions))?.sources[s].loss_ratio)
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

    /// What becomes of packets that the threshold function chooses.
    pub fn action(&self) -> Action {
        self.action
    }

    /// The threshold of each source in packets.
    pub fn thresholds(&self) -> &[Option<f64>] {
        &self.thresholds
    }

    /// Packets offered per second over those that can be served, rho.
    pub fn load(&self) -> f64 {
        self.sources.iter().map(Source::mean_rate).sum::<f64>() / self.queue.service_rate
    }

    /// States of the chain that is solved: M (L m + 1).
    pub fn states(&self) -> u64 {
        let levels = u64::from(self.queue.capacity).saturating_mul(u64::from(self.queue.stages)).saturating_add(1);
        levels.saturating_mul(self.together.states() as u64)
    }

    /// early[s][b]: probability that a packet of source s is chosen with b packets present, b from 0 to L - 1.
    pub(crate) fn early(&self) -> Vec<Vec<f64>> {
        let capacity = self.queue.capacity;
        let limit = f64::from(capacity);
        let chosen = |threshold: Option<f64>, b: u32| threshold.map_or(0.0, |t| probability(f64::from(b), t, limit));
        self.thresholds.iter().map(|&threshold| (0..capacity).map(|b| chosen(threshold, b)).collect()).collect()
    }

    /// How long the solution takes, about, seconds of one core. Refuses what takes far too long, or more memory than
    /// there is.
    pub fn seconds(&self) -> Result<f64, Error> {
        let needed = self.bytes();
        let available = memory::headroom().map_or(u64::MAX, |headroom| headroom.left);
        if needed > available {
            return Err(Error::TooLarge { states: self.states(), needed, available });
        }
        let seconds = if self.iterates() {
            let (capacity, stages) = (self.queue.capacity as usize, self.queue.stages as usize);
            iterate::multiplications(&self.together, stages, capacity) / PER_SECOND_ITERATED
        } else {
            self.eliminations() / PER_SECOND
        };
        if seconds > SECONDS_MAX {
            return Err(Error::TooLong { states: self.states(), hours: seconds / 3600.0 });
        }
        Ok(seconds)
    }

    /// Memory that the solution takes, about, bytes.
    pub fn bytes(&self) -> u64 {
        let memory = if self.iterates() { iterate::memory } else { solve::memory };
        memory(self.together.states(), self.queue.stages as usize, self.queue.capacity as usize)
    }

    /// Whether the solution is iterated to twelve digits, in place of an elimination, which would take too long.
    pub fn iterates(&self) -> bool {
        self.together.states() > 1 && self.eliminations() > ELIMINATED_MAX
    }

    /// Whether time and memory are enough for the elimination.
    fn eliminates(&self) -> bool {
        let (capacity, stages) = (self.queue.capacity as usize, self.queue.stages as usize);
        let needed = solve::memory(self.together.states(), stages, capacity);
        self.eliminations() / PER_SECOND <= SECONDS_MAX
            && memory::headroom().is_none_or(|headroom| needed <= headroom.left)
    }

    /// Multiplications of the elimination.
    fn eliminations(&self) -> f64 {
        solve::multiplications(self.together.states(), self.queue.stages as usize, self.queue.capacity as usize)
    }

    /// The solution.
    pub fn solve(&self) -> Result<Measures, Error> {
        self.solve_telling(&mut |_| true)
    }

    /// The same; `hear` is told how many seconds are left, about, and answers whether to go on.
    pub fn solve_telling(&self, hear: &mut dyn FnMut(f64) -> bool) -> Result<Measures, Error> {
        if !hear(self.seconds()?) {
            return Err(Error::Stopped);
        }
        let early = self.early();
        let distribution = match self.iterates() {
            true => match self.iterated(&early, hear) {
                // As a last resort, if it is one.
                Err(Error::Unsettled { .. }) if self.eliminates() => self.eliminated(&early, hear)?,
                other => other?,
            },
            false => self.eliminated(&early, hear)?,
        };
        let (capacity, stages) = (self.queue.capacity as usize, self.queue.stages as usize);
        debug_assert_eq!(packets(capacity * stages, stages), capacity);
        let solved = Solved {
            distribution: &distribution,
            rates: &self.together.rates,
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

    /// Share of the packets of each source that enter, by the packets present.
    fn admitted(&self, early: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let admit = |early: &f64| if self.action == Action::Drop { 1.0 - early } else { 1.0 };
        early.iter().map(|of| of.iter().map(admit).collect()).collect()
    }

    fn eliminated(&self, early: &[Vec<f64>], hear: &mut dyn FnMut(f64) -> bool) -> Result<Distribution, Error> {
        let (capacity, stages) = (self.queue.capacity as usize, self.queue.stages as usize);
        let (generator, admitted) = (self.together.generator(), self.admitted(early));
        let rates = &self.together.rates;
        let band = Band {
            states: self.together.states(),
            levels: capacity * stages + 1,
            stages,
            stage_rate: self.stage_rate(),
        };
        let entering = |k: usize, j: usize| {
            let b = packets(k, stages);
            rates.iter().zip(&admitted).map(|(of, share)| of[j] * share[b]).sum()
        };
        let mut left = |multiplications: f64| hear(multiplications / PER_SECOND);
        band.solve(|_, j, to| generator[(j, to)], entering, &mut left).ok_or(Error::Stopped)
    }

    fn iterated(&self, early: &[Vec<f64>], hear: &mut dyn FnMut(f64) -> bool) -> Result<Distribution, Error> {
        let iteration = Iteration {
            sources: &self.sources,
            admitted: &self.admitted(early),
            stages: self.queue.stages as usize,
            stage_rate: self.stage_rate(),
        };
        let mut left = |multiplications: f64| hear(multiplications / PER_SECOND_ITERATED);
        iteration.solve(&mut left).map_err(|ended| match ended {
            Ended::Stopped => Error::Stopped,
            Ended::Unsettled(cycles) => Error::Unsettled { states: self.states(), cycles },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Minisources;

    /// Two-state sources, as many as asked, whose time scales lie a factor of `apart` from one to the next.
    fn sources(number: u32, apart: f64, load: f64) -> Vec<Source> {
        let made = |s: u32| {
            let speed = 0.3 * apart.powi(s as i32);
            let (down, up) = (speed * (1.0 + 0.37 * f64::from(s % 3)), speed * (0.8 - 0.11 * f64::from(s % 4)));
            let rates = [load * (160.0 + 17.0 * f64::from(s)), load * (20.0 + 3.0 * f64::from(s))];
            Source::new(format!("s{s}"), &[vec![-down, down], vec![up, -up]], &rates).unwrap()
        };
        (0..number).map(made).collect()
    }

    /// The greatest relative difference between the two distributions.
    fn apart(model: &Model) -> f64 {
        let early = model.early();
        let exact = model.eliminated(&early, &mut |_| true).unwrap();
        let iterated = model.iterated(&early, &mut |_| true).unwrap();
        let pairs = exact.p.iter().zip(&iterated.p).filter(|(exact, _)| **exact > 1e-280);
        pairs.map(|(exact, iterated)| (iterated / exact - 1.0).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn a_search_for_thresholds_says_how_long_all_that_is_foreseen_takes() {
        let queue = Queue { capacity: 20, service_rate: 120.0, stages: 1 };
        let model = Model::new(queue, sources(2, 4.0, 0.5)).unwrap();
        let (one, adaptation) = (model.seconds().unwrap(), Adaptation::default());
        let mut told = Vec::new();
        let adapted = model.clone().adapted_telling(&adaptation, &mut |left| {
            told.push(left);
            true
        });
        // 32 solutions of which one is under way: each is told as one less, and none once more are needed.
        assert!((told[0] / one - 32.0).abs() < 1e-6, "{told:?} {one}");
        assert!(told.len() > 4 && told.windows(2).all(|pair| pair[1] <= pair[0]), "{told:?}");
        assert!(told.iter().all(|left| *left >= 0.0));
        let shares = adapted.unwrap().thresholds().to_vec();
        assert!(shares.iter().flatten().all(|packets| (5.0..=19.0).contains(packets)), "{shares:?}");
    }

    #[test]
    fn a_solution_says_how_long_it_still_takes_from_all_to_nothing() {
        // 64 joint states, of which elimination takes 64^2 (2) multiplications for each of 6000 rows: asked some times.
        let queue = Queue { capacity: 400, service_rate: 400.0, stages: 1 };
        let model = Model::new(queue, sources(6, 2.0, 0.4)).unwrap();
        let mut told = Vec::new();
        model
            .solve_telling(&mut |left| {
                told.push(left);
                true
            })
            .unwrap();
        let all = model.seconds().unwrap();
        assert!(!model.iterates() && told.len() > 3 && told[0] == all, "{told:?}");
        assert!(told.windows(2).all(|pair| pair[1] <= pair[0]), "{told:?}");
        // The last of some millions of multiplications are not worth a word.
        assert!(told[1] > 0.5 * all && told[told.len() - 1] < 0.5 * all, "{told:?}");
    }

    #[test]
    fn a_model_is_eliminated_where_that_takes_less_than_the_most_of_time_and_memory() {
        let of = |capacity: u32, number: u32| {
            let queue = Queue { capacity, service_rate: 400.0, stages: 1 };
            Model::new(queue, sources(number, 2.0, 1.0)).unwrap()
        };
        assert!(of(20, 3).eliminates() && !of(20, 3).iterates());
        // 4096 joint states: 4096^3 multiplications a packet take days.
        assert!(!of(1000, 12).eliminates() && of(1000, 12).iterates());
    }

    #[test]
    fn iteration_ends_where_elimination_does() {
        // Time scales alike, and up to a thousand times apart from one source to the next, at loads of .15 to 1.5.
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
    fn iteration_ends_where_elimination_does_for_chains_of_all_kinds() {
        // Chains of two to four states, some of which go round one way only, at speeds a million times apart; some
        // states are silent.
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
    fn a_source_of_many_states_is_iterated_as_well() {
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
    fn sources_whose_rates_are_alike_are_a_poisson_process_however_many_states_they_have() {
        // Ten states each: 1000 states before 40 packets, where p_b = rho^b (1 - rho) / (1 - rho^41), rho = .9.
        let source = |s: u32| {
            let row = |i: usize| (0..10).map(|j| if i == j { -9.0 } else { 1.0 }).collect();
            let generator: Vec<Vec<f64>> = (0..10).map(row).collect();
            Source::new(format!("s{s}"), &generator, &[30.0; 10]).unwrap()
        };
        let queue = Queue { capacity: 40, service_rate: 100.0, stages: 1 };
        let model = Model::new(queue, (0..3).map(source).collect()).unwrap();
        assert!(model.iterates());
        let measures = model.solve().unwrap();
        let total: f64 = (0..=40).map(|b| 0.9f64.powi(b)).sum();
        for (b, p) in measures.occupancy.iter().enumerate() {
            let expected = 0.9f64.powi(b as i32) / total;
            assert!((p / expected - 1.0).abs() < 1e-11, "p_{b} = {p}, not {expected}");
        }
    }

    #[test]
    fn what_is_solved_says_how_much_is_left_and_ends_where_it_is_asked_to() {
        for (number, capacity) in [(9, 20), (4, 30)] {
            let queue = Queue { capacity, service_rate: 110.0 * f64::from(number), stages: 1 };
            let model = Model::new(queue, sources(number, 2.0, 1.0)).unwrap();
            let mut heard = Vec::new();
            let solved = model.solve_telling(&mut |left| {
                heard.push(left);
                true
            });
            assert!(solved.is_ok());
            assert!(heard.iter().all(|left| left.is_finite() && *left >= 0.0), "{heard:?}");
            if model.iterates() {
                assert!(heard.len() > 3 && (heard[0] / model.seconds().unwrap() - 1.0).abs() < 1e-9);
                let mut asked = 0;
                let stopped = model.solve_telling(&mut |_| {
                    asked += 1;
                    asked < 3
                });
                assert!(matches!(stopped, Err(Error::Stopped)) && asked == 3, "{asked}");
            }
        }
    }
}
