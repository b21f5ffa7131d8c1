//! A model: sources before a queue.

use aqumen_scenario::memory;

use super::early::{Action, Adaptation, probability};
use super::measures::{Measures, Solved};
use super::solve::{self, Chain};
use super::source::{Source, Superposition};
use super::{Error, solve::packets};

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
const STATES_MAX: usize = 4096;

/// Multiplications of the solution in an hour, about.
const PER_HOUR: f64 = 1.5e13;

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
        if states > STATES_MAX {
            let message = format!("the sources together have {states} states; at most {STATES_MAX} can be solved");
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

    /// The same model with the smallest thresholds that keep each source's loss within a target. Only early drops change
    /// losses, so marks make no sense here.
    pub fn adapted(self, adaptation: &Adaptation) -> Result<Self, Error> {
        let limit = f64::from(self.queue.capacity);
        let packets = |shares: &[f64]| shares.iter().map(|share| Some(share * limit)).collect();
        let shares = adaptation.search(self.sources.len(), |shares, s| {
            let model = self.clone().with_thresholds(Action::Drop, packets(shares))?;
            Ok(model.solve()?.sources[s].loss_ratio)
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

    /// How long the exact solution takes, seconds of one core. Refuses what takes far too long, or more memory than there is.
    pub fn seconds(&self) -> Result<f64, Error> {
        let (capacity, stages) = (self.queue.capacity as usize, self.queue.stages as usize);
        let needed = solve::memory(self.together.states(), stages, capacity);
        let available = memory::available().unwrap_or(u64::MAX);
        if needed > available {
            return Err(Error::TooLarge { states: self.states(), needed, available });
        }
        let hours = solve::multiplications(self.together.states(), stages, capacity) / PER_HOUR;
        if hours > 1.0 {
            return Err(Error::TooLong { states: self.states(), hours });
        }
        Ok(3600.0 * hours)
    }

    /// The exact solution.
    pub fn solve(&self) -> Result<Measures, Error> {
        let (capacity, stages) = (self.queue.capacity as usize, self.queue.stages as usize);
        self.seconds()?;
        let early = self.early();
        let admitted: Vec<Vec<f64>> = (0..capacity)
            .map(|b| {
                let admit = |s: usize| if self.action == Action::Drop { 1.0 - early[s][b] } else { 1.0 };
                let of_state = |j: usize| (0..early.len()).map(|s| self.together.rates[s][j] * admit(s)).sum();
                (0..self.together.states()).map(of_state).collect()
            })
            .collect();
        let stage_rate = self.queue.service_rate * f64::from(self.queue.stages);
        let distribution =
            Chain { generator: &self.together.generator, admitted: &admitted, stages, stage_rate }.solve();
        let solved = Solved {
            distribution: &distribution,
            rates: &self.together.rates,
            early: &early,
            action: self.action,
            capacity,
            stages,
            stage_rate,
        };
        debug_assert_eq!(packets(capacity * stages, stages), capacity);
        Ok(solved.measures())
    }
}
