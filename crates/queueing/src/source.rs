//! Sources: Markov-modulated Poisson processes (MMPP), one or many at a time.
//!
//! A source is in one of a few states; it changes state as a Markov chain with generator Q and sends packets
//! as a Poisson process with the rate of its state. Independent sources together are again an MMPP: the
//! Kronecker sum of their chains.

use std::borrow::Borrow;

use crate::Error;
use crate::dense::Square;

/// A Markov-modulated Poisson process.
#[derive(Clone, Debug)]
pub struct Source {
    name: String,
    /// Q, transitions per second; rows sum to 0.
    pub(crate) generator: Square,
    /// Packets per second in each state.
    rates: Vec<f64>,
    /// Probabilities of the states in the long run.
    pub(crate) stationary: Vec<f64>,
}

/// Independent ON/OFF sources, all alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Minisources {
    /// How many, n.
    pub count: u32,
    /// From ON to OFF, alpha: one over the mean time ON, per second.
    pub off_rate: f64,
    /// From OFF to ON, beta: one over the mean time OFF, per second.
    pub on_rate: f64,
    /// Rate of one that is ON, packets per second.
    pub rate: f64,
}

impl Source {
    /// A source called `name` with `generator` (rows of Q, per second) and `rates` (packets per second) of its states.
    pub fn new(name: impl Into<String>, generator: &[Vec<f64>], rates: &[f64]) -> Result<Self, Error> {
        let n = rates.len();
        if n == 0 || generator.len() != n || generator.iter().any(|row| row.len() != n) {
            return Err(Error::Generator(format!("must be {n} by {n}: one row and one column for each rate")));
        }
        if let Some(rate) = rates.iter().find(|rate| !(rate.is_finite() && **rate >= 0.0)) {
            return Err(Error::Rates(format!("a rate is {rate}; it must be finite and at least 0")));
        }
        let mut matrix = Square::zero(n);
        for (i, row) in generator.iter().enumerate() {
            let out: f64 = (0..n).filter(|j| *j != i).map(|j| row[j]).sum();
            if let Some(j) = (0..n).find(|&j| !row[j].is_finite() || (j != i && row[j] < 0.0)) {
                let entry = row[j];
                let message = format!("row {}, column {} is {entry}; it must be finite and at least 0", i + 1, j + 1);
                return Err(Error::Generator(message));
            }
            if !out.is_finite() || (out + row[i]).abs() > 1e-9 * out {
                let message = format!(
                    "row {} sums to {}; the diagonal must be minus the sum of the others, {}",
                    i + 1,
                    out + row[i],
                    -out
                );
                return Err(Error::Generator(message));
            }
            (0..n).for_each(|j| matrix[(i, j)] = if i == j { -out } else { row[j] });
        }
        Source::of(name.into(), matrix, rates.to_vec())
    }

    fn of(name: String, generator: Square, rates: Vec<f64>) -> Result<Self, Error> {
        if let Err((from, to)) = generator.irreducible() {
            let message = format!("state {} cannot be reached from state {}; each must lead to all", to + 1, from + 1);
            return Err(Error::Generator(message));
        }
        let stationary = generator.stationary();
        Ok(Source { name, generator, rates, stationary })
    }

    /// A Poisson process of `rate` packets per second: one state.
    pub fn poisson(name: impl Into<String>, rate: f64) -> Result<Self, Error> {
        Source::new(name, &[vec![0.0]], &[rate])
    }

    /// `minisources` together, exactly: the number that are ON is a birth-death chain of n + 1 states.
    pub fn minisources(name: impl Into<String>, minisources: &Minisources) -> Result<Self, Error> {
        let Minisources { count, off_rate, on_rate, rate } = *minisources;
        minisources.check()?;
        let n = count as usize;
        let mut generator = Square::zero(n + 1);
        for on in 0..=n {
            if on < n {
                generator[(on, on + 1)] = (n - on) as f64 * on_rate;
            }
            if on > 0 {
                generator[(on, on - 1)] = on as f64 * off_rate;
            }
            generator[(on, on)] = -((n - on) as f64 * on_rate + on as f64 * off_rate);
        }
        Source::of(name.into(), generator, (0..=n).map(|on| on as f64 * rate).collect())
    }

    /// What the source is called.
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

    /// The generator Q, row by row, per second.
    pub fn generator(&self) -> Vec<Vec<f64>> {
        (0..self.states()).map(|i| self.generator.row(i).to_vec()).collect()
    }

    /// Share of time in each state.
    pub fn state_shares(&self) -> &[f64] {
        &self.stationary
    }

    /// Packets per second in the long run.
    pub fn mean_rate(&self) -> f64 {
        self.stationary.iter().zip(&self.rates).map(|(p, rate)| p * rate).sum()
    }

    /// Central moment of the rate over the states.
    pub(crate) fn central_moment(&self, order: u32) -> f64 {
        let mean = self.mean_rate();
        let power = |x: f64| (0..order).fold(1.0, |product, _| product * x);
        self.stationary.iter().zip(&self.rates).map(|(p, rate)| p * power(rate - mean)).sum()
    }

    /// The same source with all its rates multiplied by `factor`.
    pub fn scaled(&self, factor: f64) -> Result<Self, Error> {
        if !(factor.is_finite() && factor > 0.0) {
            return Err(Error::Rates(format!("rates cannot be multiplied by {factor}; it must be finite and above 0")));
        }
        let rates = self.rates.iter().map(|rate| rate * factor).collect();
        Ok(Source { rates, ..self.clone() })
    }

    /// The same source under another name.
    pub fn renamed(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }
}

impl Minisources {
    pub(crate) fn check(&self) -> Result<(), Error> {
        let positive = |x: f64| x.is_finite() && x > 0.0;
        if self.count == 0 || !positive(self.off_rate) || !positive(self.on_rate) {
            return Err(Error::Generator("minisources need a count and mean times ON and OFF above 0".into()));
        }
        if !(self.rate.is_finite() && self.rate >= 0.0) {
            return Err(Error::Rates(format!("the rate is {}; it must be finite and at least 0", self.rate)));
        }
        Ok(())
    }
}

/// Independent sources together: the Kronecker sum, states counted with the first source most significant. The matrix
/// is not formed unless someone asks for it.
#[derive(Clone, Debug)]
pub(crate) struct Superposition {
    states: usize,
    parts: Vec<Part>,
    /// rates[s][j]: packets per second of source s in joint state j.
    pub(crate) rates: Vec<Vec<f64>>,
}

/// The chain of one of the sources.
#[derive(Clone, Debug)]
struct Part {
    states: usize,
    /// By how much the joint state grows with the own one.
    stride: usize,
    stationary: Vec<f64>,
    /// For each own state, from where it is entered and to where it is left, and how often per second.
    into: Vec<Vec<(usize, f64)>>,
    out: Vec<Vec<(usize, f64)>>,
}

impl Superposition {
    pub(crate) fn of<S: Borrow<Source>>(sources: &[S]) -> Self {
        let states: usize = sources.iter().map(|source| source.borrow().states()).product();
        let (mut rates, mut parts, mut stride) = (Vec::new(), Vec::new(), states);
        for source in sources {
            let source = source.borrow();
            let n = source.states();
            stride /= n;
            rates.push((0..states).map(|j| source.rates[j / stride % n]).collect());
            let steps = |rate: &dyn Fn(usize) -> f64| -> Vec<(usize, f64)> {
                (0..n).map(|other| (other, rate(other))).filter(|(_, rate)| *rate > 0.0).collect()
            };
            parts.push(Part {
                states: n,
                stride,
                stationary: source.stationary.clone(),
                // The diagonal is not above 0.
                into: (0..n).map(|own| steps(&|from| source.generator[(from, own)])).collect(),
                out: (0..n).map(|own| steps(&|to| source.generator[(own, to)])).collect(),
            });
        }
        Superposition { states, parts, rates }
    }

    pub(crate) fn states(&self) -> usize {
        self.states
    }

    /// Q of all together.
    pub(crate) fn generator(&self) -> Square {
        let mut generator = Square::zero(self.states);
        for j in 0..self.states {
            self.exits_of(j, |to, rate| generator[(j, to)] += rate);
            generator[(j, j)] = -self.leaving(j);
        }
        generator
    }

    /// How many states one can go to, at most.
    pub(crate) fn steps(&self) -> usize {
        self.parts.iter().map(|part| part.out.iter().map(Vec::len).max().unwrap_or(0)).sum()
    }

    /// States of the source that has most.
    pub(crate) fn states_of_one(&self) -> usize {
        self.parts.iter().map(|part| part.states).max().unwrap_or(1)
    }

    /// The probability of each joint state in the long run.
    pub(crate) fn stationary(&self) -> Vec<f64> {
        let of = |j: usize| self.parts.iter().map(|part| part.stationary[j / part.stride % part.states]).product();
        (0..self.states).map(of).collect()
    }

    /// Where `j` is entered from, and how often per second.
    pub(crate) fn entries_of(&self, j: usize, take: impl FnMut(usize, f64)) {
        self.neighbours(j, |part| &part.into, take);
    }

    /// Where `j` is left to, and how often per second.
    pub(crate) fn exits_of(&self, j: usize, take: impl FnMut(usize, f64)) {
        self.neighbours(j, |part| &part.out, take);
    }

    fn neighbours(&self, j: usize, of: impl Fn(&Part) -> &Vec<Vec<(usize, f64)>>, mut take: impl FnMut(usize, f64)) {
        for part in &self.parts {
            let own = j / part.stride % part.states;
            of(part)[own].iter().for_each(|&(other, rate)| take(j + other * part.stride - own * part.stride, rate));
        }
    }

    /// Transitions out of `j` per second.
    pub(crate) fn leaving(&self, j: usize) -> f64 {
        let mut sum = 0.0;
        self.exits_of(j, |_, rate| sum += rate);
        sum
    }
}
