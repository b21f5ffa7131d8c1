//! Markov-modulated Poisson processes (MMPP) and their superposition.
//!
//! The state of a source is a Markov chain with generator Q; packets form a Poisson process whose rate depends on the
//! state. The superposition of independent sources is again an MMPP: its generator is the Kronecker sum of theirs.

use std::borrow::Borrow;

use crate::Error;
use crate::dense::SquareMatrix;

/// A Markov-modulated Poisson process.
#[derive(Clone, Debug)]
pub struct Source {
    name: String,
    /// Q, transitions per second; rows sum to 0.
    pub(crate) generator: SquareMatrix,
    /// Packets per second in each state.
    rates: Vec<f64>,
    /// Stationary distribution of the states.
    pub(crate) stationary: Vec<f64>,
}

/// Independent ON/OFF sources with identical parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Minisources {
    /// Number of sources, n.
    pub count: u32,
    /// Transition rate from ON to OFF, alpha: one over the mean ON time, per second.
    pub off_rate: f64,
    /// Transition rate from OFF to ON, beta: one over the mean OFF time, per second.
    pub on_rate: f64,
    /// Rate of one source while ON, packets per second.
    pub rate: f64,
}

impl Source {
    /// Makes a source with `generator` (rows of Q, per second) and `rates` (packets per second) of its states.
    pub fn new(name: impl Into<String>, generator: &[Vec<f64>], rates: &[f64]) -> Result<Self, Error> {
        let n = rates.len();
        if n == 0 || generator.len() != n || generator.iter().any(|row| row.len() != n) {
            return Err(Error::Generator(format!("must be {n} by {n}: one row and one column per rate")));
        }
        if let Some(rate) = rates.iter().find(|rate| !(rate.is_finite() && **rate >= 0.0)) {
            return Err(Error::Rates(format!("a rate is {rate}; it must be finite and at least 0")));
        }
        let mut matrix = SquareMatrix::zero(n);
        for (i, row) in generator.iter().enumerate() {
            let out: f64 = (0..n).filter(|j| *j != i).map(|j| row[j]).sum();
            if let Some(j) = (0..n).find(|&j| !row[j].is_finite() || (j != i && row[j] < 0.0)) {
                let entry = row[j];
                let message = format!("row {}, column {} is {entry}; it must be finite and at least 0", i + 1, j + 1);
                return Err(Error::Generator(message));
            }
            if !out.is_finite() || (out + row[i]).abs() > 1e-9 * out {
                let message = format!(
                    "row {} sums to {}; the diagonal must be minus the sum of the other entries, {}",
                    i + 1,
                    out + row[i],
                    -out
                );
                return Err(Error::Generator(message));
            }
            (0..n).for_each(|j| matrix[(i, j)] = if i == j { -out } else { row[j] });
        }
        Source::from_generator(name.into(), matrix, rates.to_vec())
    }

    fn from_generator(name: String, generator: SquareMatrix, rates: Vec<f64>) -> Result<Self, Error> {
        if let Err((from, to)) = generator.irreducible() {
            let message =
                format!("state {} cannot be reached from state {}; the chain must be irreducible", to + 1, from + 1);
            return Err(Error::Generator(message));
        }
        let stationary = generator.stationary();
        Ok(Source { name, generator, rates, stationary })
    }

    /// Makes a Poisson process of `rate` packets per second: one state.
    pub fn poisson(name: impl Into<String>, rate: f64) -> Result<Self, Error> {
        Source::new(name, &[vec![0.0]], &[rate])
    }

    /// Makes the exact superposition of `minisources`: the number that are ON is a birth-death chain of n + 1 states.
    pub fn minisources(name: impl Into<String>, minisources: &Minisources) -> Result<Self, Error> {
        let Minisources { count, off_rate, on_rate, rate } = *minisources;
        minisources.check()?;
        let n = count as usize;
        let mut generator = SquareMatrix::zero(n + 1);
        for on in 0..=n {
            if on < n {
                generator[(on, on + 1)] = (n - on) as f64 * on_rate;
            }
            if on > 0 {
                generator[(on, on - 1)] = on as f64 * off_rate;
            }
            generator[(on, on)] = -((n - on) as f64 * on_rate + on as f64 * off_rate);
        }
        Source::from_generator(name.into(), generator, (0..=n).map(|on| on as f64 * rate).collect())
    }

    /// Name of the source.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Number of states.
    pub fn states(&self) -> usize {
        self.rates.len()
    }

    /// Packets per second in each state.
    pub fn rates(&self) -> &[f64] {
        &self.rates
    }

    /// Generator Q, row by row, per second.
    pub fn generator(&self) -> Vec<Vec<f64>> {
        (0..self.states()).map(|i| self.generator.row(i).to_vec()).collect()
    }

    /// Stationary distribution: the fraction of time in each state.
    pub fn stationary_distribution(&self) -> &[f64] {
        &self.stationary
    }

    /// Mean rate, packets per second.
    pub fn mean_rate(&self) -> f64 {
        self.stationary.iter().zip(&self.rates).map(|(p, rate)| p * rate).sum()
    }

    /// Central moment of the rate over the states.
    pub(crate) fn central_moment(&self, order: u32) -> f64 {
        let mean = self.mean_rate();
        let power = |x: f64| (0..order).fold(1.0, |product, _| product * x);
        self.stationary.iter().zip(&self.rates).map(|(p, rate)| p * power(rate - mean)).sum()
    }

    /// Returns the source with all rates multiplied by `factor`.
    pub fn scaled(&self, factor: f64) -> Result<Self, Error> {
        if !(factor.is_finite() && factor > 0.0) {
            return Err(Error::Rates(format!("the factor of the rates is {factor}; it must be finite and above 0")));
        }
        let rates = self.rates.iter().map(|rate| rate * factor).collect();
        Ok(Source { rates, ..self.clone() })
    }

    /// Returns the source under another name.
    pub fn renamed(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }
}

impl Minisources {
    pub(crate) fn check(&self) -> Result<(), Error> {
        let positive = |x: f64| x.is_finite() && x > 0.0;
        if self.count == 0 || !positive(self.off_rate) || !positive(self.on_rate) {
            return Err(Error::Generator("minisources need a count and mean ON and OFF times above 0".into()));
        }
        if !(self.rate.is_finite() && self.rate >= 0.0) {
            return Err(Error::Rates(format!("the rate is {}; it must be finite and at least 0", self.rate)));
        }
        Ok(())
    }
}

/// Superposition of independent sources: the Kronecker sum of their generators, with the first source most significant.
/// The matrix is formed on demand only.
#[derive(Clone, Debug)]
pub(crate) struct Superposition {
    states: usize,
    chains: Vec<SourceChain>,
    /// rates[s][j]: packets per second of source s in joint state j.
    pub(crate) rates: Vec<Vec<f64>>,
}

/// Modulating chain of one source.
#[derive(Clone, Debug)]
struct SourceChain {
    states: usize,
    /// Stride of the joint state per own state.
    stride: usize,
    stationary: Vec<f64>,
    /// Transitions into and out of each own state: other state, rate per second.
    into: Vec<Vec<(usize, f64)>>,
    out: Vec<Vec<(usize, f64)>>,
}

impl Superposition {
    pub(crate) fn new<S: Borrow<Source>>(sources: &[S]) -> Self {
        let states: usize = sources.iter().map(|source| source.borrow().states()).product();
        let (mut rates, mut chains, mut stride) = (Vec::new(), Vec::new(), states);
        for source in sources {
            let source = source.borrow();
            let n = source.states();
            stride /= n;
            rates.push((0..states).map(|j| source.rates[j / stride % n]).collect());
            let steps = |rate: &dyn Fn(usize) -> f64| -> Vec<(usize, f64)> {
                (0..n).map(|other| (other, rate(other))).filter(|(_, rate)| *rate > 0.0).collect()
            };
            chains.push(SourceChain {
                states: n,
                stride,
                stationary: source.stationary.clone(),
                // The diagonal is at most 0.
                into: (0..n).map(|own| steps(&|from| source.generator[(from, own)])).collect(),
                out: (0..n).map(|own| steps(&|to| source.generator[(own, to)])).collect(),
            });
        }
        Superposition { states, chains, rates }
    }

    pub(crate) fn states(&self) -> usize {
        self.states
    }

    /// Generator of the superposition.
    pub(crate) fn generator(&self) -> SquareMatrix {
        let mut generator = SquareMatrix::zero(self.states);
        for j in 0..self.states {
            self.outgoing(j, |to, rate| generator[(j, to)] += rate);
            generator[(j, j)] = -self.exit_rate(j);
        }
        generator
    }

    /// Most transitions out of a joint state.
    pub(crate) fn max_transitions(&self) -> usize {
        self.chains.iter().map(|chain| chain.out.iter().map(Vec::len).max().unwrap_or(0)).sum()
    }

    /// Number of states of the largest source.
    pub(crate) fn largest_source(&self) -> usize {
        self.chains.iter().map(|chain| chain.states).max().unwrap_or(1)
    }

    /// Stationary distribution of the joint states.
    pub(crate) fn stationary(&self) -> Vec<f64> {
        let of = |j: usize| self.chains.iter().map(|chain| chain.stationary[j / chain.stride % chain.states]).product();
        (0..self.states).map(of).collect()
    }

    /// Calls `visit` with each transition into `j`: origin, rate per second.
    pub(crate) fn incoming(&self, j: usize, visit: impl FnMut(usize, f64)) {
        self.neighbours(j, |chain| &chain.into, visit);
    }

    /// Calls `visit` with each transition out of `j`: target, rate per second.
    pub(crate) fn outgoing(&self, j: usize, visit: impl FnMut(usize, f64)) {
        self.neighbours(j, |chain| &chain.out, visit);
    }

    fn neighbours(
        &self,
        j: usize,
        direction: impl Fn(&SourceChain) -> &Vec<Vec<(usize, f64)>>,
        mut visit: impl FnMut(usize, f64),
    ) {
        for chain in &self.chains {
            let own = j / chain.stride % chain.states;
            direction(chain)[own]
                .iter()
                .for_each(|&(other, rate)| visit(j + other * chain.stride - own * chain.stride, rate));
        }
    }

    /// Total transition rate out of `j`, per second.
    pub(crate) fn exit_rate(&self, j: usize) -> f64 {
        let mut sum = 0.0;
        self.outgoing(j, |_, rate| sum += rate);
        sum
    }
}
