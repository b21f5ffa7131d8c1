//! Sources as explicit Markov chains, as the packet engine and the analysis use them; sources of the presets.

use crate::error::KeyError;

use super::{MiniModel, Minisources, Name, PacketRate, Preset, Source, Spec};

/// Name, packets per second in the two states, transitions per second from the first state and back.
type TwoStates = (&'static str, [f64; 2], [f64; 2]);

/// Sources of the AAQM paper. The paper gives no values: these are those of the reference case of
/// `docs/theory/mmpp.md`.
const PAPER: [TwoStates; 4] = [
    ("video", [300.0, 80.0], [2.0, 1.0]),
    ("multimedia", [260.0, 20.0], [1.25, 5.0]),
    ("www", [350.0, 60.0], [5.0, 3.0]),
    ("ftp", [280.0, 100.0], [0.5, 0.4]),
];

/// Two-state model of www and ftp together, with the same moments and long-run index of dispersion.
const WWW_FTP: TwoStates =
    ("www-ftp", [546.338_926_820_588_3, 208.504_602_922_856_83], [1.427_607_243_251_78, 1.013_292_333_339_347_8]);

/// Most states of a chain.
const STATES_MAX: usize = 256;

/// A checked source.
#[derive(Clone, Debug, PartialEq)]
pub enum MarkovSource {
    /// A Markov-modulated Poisson process.
    States {
        /// Packets per second in each state.
        rates: Vec<f64>,
        /// Transitions per second; each row sums to 0.
        generator: Vec<Vec<f64>>,
        /// Stationary probability of each state.
        shares: Vec<f64>,
    },
    /// Equal ON/OFF sources: the birth-death chain of the number that are ON.
    Minisources(Minisources),
}

impl MarkovSource {
    /// Returns the source with these rates (packets per second) and this generator (per second).
    pub fn states(rates: Vec<f64>, generator: Vec<Vec<f64>>) -> Result<MarkovSource, KeyError> {
        let n = rates.len();
        if n > STATES_MAX {
            return Err(("rates", format!("{n} states; at most {STATES_MAX}")));
        }
        if n == 0 || generator.len() != n || generator.iter().any(|row| row.len() != n) {
            return Err(("generator", format!("must be {n} by {n}: one row and one column for each rate")));
        }
        for (i, row) in generator.iter().enumerate() {
            let out: f64 = (0..n).filter(|j| *j != i).map(|j| row[j]).sum();
            if let Some(j) = (0..n).find(|&j| !row[j].is_finite() || (j != i && row[j] < 0.0)) {
                let entry = row[j];
                let message = format!("row {}, column {} is {entry}; it must be finite and at least 0", i + 1, j + 1);
                return Err(("generator", message));
            }
            if !out.is_finite() || (out + row[i]).abs() > 1e-9 * out {
                let message = format!("row {}: the diagonal must be minus the sum of the others, {}", i + 1, -out);
                return Err(("generator", message));
            }
        }
        if let Some((from, to)) = unreachable_state(&generator) {
            let message =
                format!("state {} cannot be reached from state {}; the chain must be irreducible", to + 1, from + 1);
            return Err(("generator", message));
        }
        let shares = stationary(&generator);
        Ok(MarkovSource::States { rates, generator, shares })
    }

    /// Mean packets and state changes per second.
    pub fn per_second(&self) -> (f64, f64) {
        match self {
            MarkovSource::States { rates, generator, shares } => {
                let over = |value: &dyn Fn(usize) -> f64| (0..rates.len()).map(|i| shares[i] * value(i)).sum();
                (over(&|i| rates[i]), over(&|i| -generator[i][i]))
            }
            MarkovSource::Minisources(mini) => {
                let (on_s, off_s) = (mini.on.as_secs_f64(), mini.off.as_secs_f64());
                let count = f64::from(mini.count);
                (count * mini.rate.0 * on_s / (on_s + off_s), 2.0 * count / (on_s + off_s))
            }
        }
    }
}

impl Source {
    /// Returns this source as a Markov chain. Captures and approximated minisources need the analysis.
    pub fn chain(&self) -> Result<MarkovSource, KeyError> {
        super::check_source(self)?;
        if let Some(PacketRate(rate)) = self.rate {
            return MarkovSource::states(vec![rate], vec![vec![0.0]]);
        }
        if let Some(minisources) = &self.minisources {
            check_minisources(minisources)?;
            return Ok(MarkovSource::Minisources(minisources.clone()));
        }
        if self.trace.is_some() {
            return Err(("trace", "is fitted to a capture; write it out with aqumen mmpp MODEL --save FILE".into()));
        }
        MarkovSource::states(self.rates.iter().map(|rate| rate.0).collect(), self.generator.clone())
    }
}

/// Refuses `minisources` that the packet engine cannot generate.
pub(crate) fn check_minisources(minisources: &Minisources) -> Result<(), KeyError> {
    if minisources.model == MiniModel::TwoState {
        return Err(("minisources", "model = \"two-state\" is for the analysis only; traffic needs \"exact\"".into()));
    }
    let source = Source { minisources: Some(minisources.clone()), ..Source::with_name("minisources") };
    super::check_source(&source)
}

impl Preset {
    /// The sources, as written in a file.
    pub fn sources(self) -> Vec<Source> {
        let chosen = match self {
            Preset::Paper16 => PAPER.to_vec(),
            Preset::Paper8 => [&PAPER[..2], &[WWW_FTP]].concat(),
        };
        let source = |(name, rates, [down, up]): TwoStates| Source {
            rates: rates.map(PacketRate).to_vec(),
            generator: vec![vec![-down, down], vec![up, -up]],
            ..Source::with_name(name)
        };
        chosen.into_iter().map(source).collect()
    }

    /// Names of the sources.
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Preset::Paper16 => &["video", "multimedia", "www", "ftp"],
            Preset::Paper8 => &["video", "multimedia", "www-ftp"],
        }
    }
}

impl Spec {
    /// The sources of the preset, then those written.
    pub(crate) fn all_sources(&self) -> Vec<Source> {
        let preset = self.preset.map_or(Vec::new(), Preset::sources);
        preset.into_iter().chain(self.sources.iter().cloned()).collect()
    }
}

impl Source {
    fn with_name(name: &str) -> Source {
        Source {
            name: Name(name.into()),
            rate: None,
            rates: Vec::new(),
            generator: Vec::new(),
            minisources: None,
            trace: None,
        }
    }
}

/// Returns a state, and one that cannot be reached from it.
fn unreachable_state(generator: &[Vec<f64>]) -> Option<(usize, usize)> {
    let n = generator.len();
    let missing = |forward: bool| {
        let (mut reached, mut open) = (vec![false; n], vec![0]);
        reached[0] = true;
        while let Some(i) = open.pop() {
            for j in 0..n {
                let rate = if forward { generator[i][j] } else { generator[j][i] };
                if i != j && rate > 0.0 && !reached[j] {
                    reached[j] = true;
                    open.push(j);
                }
            }
        }
        reached.iter().position(|reached| !reached)
    };
    missing(true).map(|to| (0, to)).or_else(|| missing(false).map(|from| (from, 0)))
}

/// Stationary probabilities by the algorithm of Grassmann, Taksar and Heyman (1985), which has no subtractions and so
/// no cancellation.
fn stationary(generator: &[Vec<f64>]) -> Vec<f64> {
    let n = generator.len();
    let mut a = generator.to_vec();
    for i in (1..n).rev() {
        let out: f64 = a[i][..i].iter().sum();
        for from in 0..i {
            a[from][i] /= out;
            for to in 0..i {
                if to != from {
                    a[from][to] += a[from][i] * a[i][to];
                }
            }
        }
    }
    let mut shares = vec![1.0; n];
    for i in 1..n {
        shares[i] = (0..i).map(|from| shares[from] * a[from][i]).sum();
    }
    let total: f64 = shares.iter().sum();
    shares.iter().map(|share| share / total).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_run_rates_of_a_chain() {
        // State 1 for 2 s, state 2 for 1 s on average: probabilities 2/3, 1/3; a change each 1.5 s.
        let chain = MarkovSource::states(vec![30.0, 90.0], vec![vec![-0.5, 0.5], vec![1.0, -1.0]]).unwrap();
        let (packets, changes) = chain.per_second();
        assert!((packets - 50.0).abs() < 1e-12 && (changes - 2.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn an_invalid_generator_is_refused() {
        let wrong = |rates: &[f64], rows: &[&[f64]]| {
            MarkovSource::states(rates.to_vec(), rows.iter().map(|row| row.to_vec()).collect()).unwrap_err()
        };
        assert_eq!(wrong(&[1.0, 2.0], &[&[-1.0, 1.0]]).0, "generator");
        assert!(wrong(&[1.0, 2.0], &[&[-1.0, 1.5], &[1.0, -1.0]]).1.contains("row 1: the diagonal"));
        assert!(wrong(&[1.0, 2.0], &[&[-1.0, 1.0], &[0.0, 0.0]]).1.contains("state 1 cannot be reached from state 2"));
        assert!(wrong(&[1.0, 2.0], &[&[1.0, -1.0], &[1.0, -1.0]]).1.contains("at least 0"));
    }
}
