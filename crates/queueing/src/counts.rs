//! Packet counts of an MMPP in a time window: variance, third moment, index of dispersion for counts (IDC),
//! autocorrelation.
//!
//! With pi the probabilities of the states, a = pi lambda the mean rate, d = lambda - a, and the fundamental matrix
//! Z = (1 pi - Q)^-1, the excess of the variance of the count over that of a Poisson process is
//! 2 pi Lambda [t Z d - Z (Z d - exp(Q t) Z d)]. Counts of independent sources add, and so do their excesses.

use crate::dense::SquareMatrix;
use crate::source::Source;

/// Counting process of one source.
pub struct CountingProcess<'a> {
    source: &'a Source,
    mean: f64,
    /// lambda - a.
    deviation: Vec<f64>,
    /// 1 pi - Q.
    fundamental: SquareMatrix,
    /// Z d.
    once: Vec<f64>,
}

impl<'a> CountingProcess<'a> {
    /// Returns the counting process of `source`.
    pub fn new(source: &'a Source) -> Self {
        let mean = source.mean_rate();
        let deviation: Vec<f64> = source.rates().iter().map(|rate| rate - mean).collect();
        let mut fundamental = source.generator.scaled(-1.0);
        for i in 0..source.states() {
            for j in 0..source.states() {
                fundamental[(i, j)] += source.stationary[j];
            }
        }
        let once = fundamental.solve(&deviation);
        CountingProcess { source, mean, deviation, fundamental, once }
    }

    /// sum pi lambda v.
    fn weighted(&self, v: &[f64]) -> f64 {
        // d replaces lambda: v is centred, so the result differs by rounding only.
        self.source.stationary.iter().zip(&self.deviation).zip(v).map(|((p, d), v)| p * d * v).sum()
    }

    /// Long-run growth of the count's variance beyond that of a Poisson process, per second.
    pub(crate) fn excess_slope(&self) -> f64 {
        2.0 * self.weighted(&self.once)
    }

    /// Excess of the count's variance in `t_s` seconds over its mean.
    pub fn excess_variance(&self, t_s: f64) -> f64 {
        let later = self.source.generator.transition(t_s).apply(&self.once);
        let gap: Vec<f64> = self.once.iter().zip(&later).map(|(now, later)| now - later).collect();
        let twice = self.fundamental.solve(&gap);
        let inside: Vec<f64> = self.once.iter().zip(&twice).map(|(once, twice)| t_s * once - twice).collect();
        2.0 * self.weighted(&inside)
    }

    /// Covariance of the counts in two windows of `window_s` that start `lag` windows apart; `lag` is at least 1.
    pub fn covariance(&self, window_s: f64, lag: u32) -> f64 {
        let step = self.source.generator.transition(window_s);
        // The integral of exp(Q u) d over the window is Z (d - exp(Q window) d), for any centred d.
        let over_window = |v: &[f64]| {
            let gap: Vec<f64> = v.iter().zip(step.apply(v)).map(|(now, later)| now - later).collect();
            self.fundamental.solve(&gap)
        };
        let mut v = over_window(&self.deviation);
        for _ in 1..lag {
            v = step.apply(&v);
        }
        self.weighted(&over_window(&v))
    }
}

/// Index of dispersion for counts of the superposition of `sources`: variance over mean of the packets in `t_s`
/// seconds; 1 for Poisson.
pub fn dispersion(sources: &[Source], t_s: f64) -> f64 {
    let mean: f64 = sources.iter().map(Source::mean_rate).sum();
    let excess: f64 = sources.iter().map(|source| CountingProcess::new(source).excess_variance(t_s)).sum();
    1.0 + excess / (mean * t_s)
}

/// Autocorrelation of the counts of the superposition of `sources` in windows of `window_s`, for lags 1 to `lags`.
pub fn autocorrelation(sources: &[Source], window_s: f64, lags: u32) -> Vec<f64> {
    let counts: Vec<CountingProcess<'_>> = sources.iter().map(CountingProcess::new).collect();
    let variance: f64 = counts.iter().map(|count| count.mean * window_s + count.excess_variance(window_s)).sum();
    (1..=lags).map(|lag| counts.iter().map(|count| count.covariance(window_s, lag)).sum::<f64>() / variance).collect()
}
