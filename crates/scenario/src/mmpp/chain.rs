//! The sources of the presets, and a source as an explicit chain: what the packet engine sends and the analysis solves.

use crate::error::Fault;

use super::{MiniModel, Minisources, Name, PacketRate, Preset, Source, Spec};

/// Name, packets per second in the two states, transitions per second from the first state and back.
type TwoStates = (&'static str, [f64; 2], [f64; 2]);

/// The sources of the AAQM paper. It gives no figures: these are those of the reference case of `docs/theory/mmpp.md`.
const PAPER: [TwoStates; 4] = [
    ("video", [300.0, 80.0], [2.0, 1.0]),
    ("multimedia", [260.0, 20.0], [1.25, 5.0]),
    ("www", [350.0, 60.0], [5.0, 3.0]),
    ("ftp", [280.0, 100.0], [0.5, 0.4]),
];

/// Two states in place of www and ftp together, with the same moments and long-run index of dispersion.
const WWW_FTP: TwoStates =
    ("www-ftp", [546.338_926_820_588_3, 208.504_602_922_856_83], [1.427_607_243_251_78, 1.013_292_333_339_347_8]);

/// Most states of a chain.
const STATES_MAX: usize = 256;

/// A source that has been checked.
#[derive(Clone, Debug, PartialEq)]
pub enum Chain {
    /// A Markov-modulated Poisson process.
    States {
        /// Packets per second in each state.
        rates: Vec<f64>,
        /// Transitions per second; each row sums to 0.
        generator: Vec<Vec<f64>>,
        /// Share of time in each state.
        shares: Vec<f64>,
    },
    /// Equal ON/OFF sources: the chain of how many are ON.
    Minisources(Minisources),
}

impl Chain {
    /// The chain with these rates (packets per second) and this generator (per second).
    pub fn states(rates: Vec<f64>, generator: Vec<Vec<f64>>) -> Result<Chain, Fault> {
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
        if let Some((from, to)) = unreached(&generator) {
            let message =
                format!("state {} cannot be reached from state {}; the chain must be irreducible", to + 1, from + 1);
            return Err(("generator", message));
        }
        let shares = stationary(&generator);
        Ok(Chain::States { rates, generator, shares })
    }

    /// Packets and changes of state per second, in the long run.
    pub fn per_second(&self) -> (f64, f64) {
        match self {
            Chain::States { rates, generator, shares } => {
                let over = |value: &dyn Fn(usize) -> f64| (0..rates.len()).map(|i| shares[i] * value(i)).sum();
                (over(&|i| rates[i]), over(&|i| -generator[i][i]))
            }
            Chain::Minisources(mini) => {
                let (on_s, off_s) = (mini.on.as_secs_f64(), mini.off.as_secs_f64());
                let count = f64::from(mini.count);
                (count * mini.rate.0 * on_s / (on_s + off_s), 2.0 * count / (on_s + off_s))
            }
        }
    }
}

impl Source {
    /// The chain of this source. Only the analysis fits sources to captures and approximates minisources.
    pub fn chain(&self) -> Result<Chain, Fault> {
        super::check_source(self)?;
        if let Some(PacketRate(rate)) = self.rate {
            return Chain::states(vec![rate], vec![vec![0.0]]);
        }
        if let Some(minisources) = &self.minisources {
            check_minisources(minisources)?;
            return Ok(Chain::Minisources(minisources.clone()));
        }
        if self.trace.is_some() {
            return Err(("trace", "fitted to a capture; aqumen mmpp MODEL --save FILE writes it out".into()));
        }
        Chain::states(self.rates.iter().map(|rate| rate.0).collect(), self.generator.clone())
    }
}

/// What `minisources` must be to be sent.
pub(crate) fn check_minisources(minisources: &Minisources) -> Result<(), Fault> {
    if minisources.model == MiniModel::TwoState {
        return Err(("minisources", "model = \"two-state\" belongs to the analysis; traffic is exact".into()));
    }
    let source = Source { minisources: Some(minisources.clone()), ..Source::called("minisources") };
    super::check_source(&source)
}

impl Preset {
    /// Its sources, as they would be written.
    pub fn sources(self) -> Vec<Source> {
        let chosen = match self {
            Preset::Paper16 => PAPER.to_vec(),
            Preset::Paper8 => [&PAPER[..2], &[WWW_FTP]].concat(),
        };
        let source = |(name, rates, [down, up]): TwoStates| Source {
            rates: rates.map(PacketRate).to_vec(),
            generator: vec![vec![-down, down], vec![up, -up]],
            ..Source::called(name)
        };
        chosen.into_iter().map(source).collect()
    }

    /// Names of its sources.
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
    fn called(name: &str) -> Source {
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

/// A state, and one that it does not lead to.
fn unreached(generator: &[Vec<f64>]) -> Option<(usize, usize)> {
    let n = generator.len();
    let missing = |forward: bool| {
        let (mut seen, mut open) = (vec![false; n], vec![0]);
        seen[0] = true;
        while let Some(i) = open.pop() {
            for j in 0..n {
                let rate = if forward { generator[i][j] } else { generator[j][i] };
                if i != j && rate > 0.0 && !seen[j] {
                    seen[j] = true;
                    open.push(j);
                }
            }
        }
        seen.iter().position(|seen| !seen)
    };
    missing(true).map(|to| (0, to)).or_else(|| missing(false).map(|from| (from, 0)))
}

/// Share of time in each state, by the elimination of Grassmann, Taksar and Heyman (1985): no subtraction, no
/// cancellation.
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
    fn a_chain_knows_its_long_run() {
        // State 1 for 2 s, state 2 for 1 s on average: shares 2/3, 1/3; a change each 1.5 s.
        let chain = Chain::states(vec![30.0, 90.0], vec![vec![-0.5, 0.5], vec![1.0, -1.0]]).unwrap();
        let (packets, changes) = chain.per_second();
        assert!((packets - 50.0).abs() < 1e-12 && (changes - 2.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn a_chain_that_is_none_is_refused() {
        let wrong = |rates: &[f64], rows: &[&[f64]]| {
            Chain::states(rates.to_vec(), rows.iter().map(|row| row.to_vec()).collect()).unwrap_err()
        };
        assert_eq!(wrong(&[1.0, 2.0], &[&[-1.0, 1.0]]).0, "generator");
        assert!(wrong(&[1.0, 2.0], &[&[-1.0, 1.5], &[1.0, -1.0]]).1.contains("row 1: the diagonal"));
        assert!(wrong(&[1.0, 2.0], &[&[-1.0, 1.0], &[0.0, 0.0]]).1.contains("state 1 cannot be reached from state 2"));
        assert!(wrong(&[1.0, 2.0], &[&[1.0, -1.0], &[1.0, -1.0]]).1.contains("at least 0"));
    }
}
