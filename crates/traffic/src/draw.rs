//! Draws from the laws of sizes, times and counts.

use std::f64::consts::TAU;
use std::sync::Arc;

use aqumen_scenario::law::{Law, segments};
use aqumen_scenario::streams::Draw;
use aqumen_scenario::streams::Stream;

/// A probability law with its constants worked out, in the base units of its quantity.
#[derive(Clone, Debug)]
pub struct Draws {
    law: Ready,
    mean: f64,
}

#[derive(Clone, Debug)]
enum Ready {
    Fixed(f64),
    Uniform { min: f64, max: f64 },
    Exponential { mean: f64 },
    Erlang { stage_mean: f64, stages: u32 },
    Pareto(Pareto),
    Lognormal { mu: f64, sigma: f64, min: f64, max: f64 },
    Empirical { points: Arc<[(f64, f64)]> },
}

/// P(X > x) = (least / x)^shape, given that X is at most some bound.
#[derive(Clone, Copy, Debug)]
struct Pareto {
    least: f64,
    shape: f64,
    /// Probability of a value below the bound; 1 without a bound.
    within: f64,
}

impl Draws {
    /// Draws from `law`.
    pub fn new(law: &Law) -> Self {
        let ready = match law {
            Law::Fixed(value) => Ready::Fixed(*value),
            Law::Uniform { min, max } => Ready::Uniform { min: *min, max: *max },
            Law::Exponential { mean } => Ready::Exponential { mean: *mean },
            Law::Erlang { mean, stages } => Ready::Erlang { stage_mean: mean / f64::from(*stages), stages: *stages },
            Law::Pareto { shape, max, .. } => Ready::Pareto(Pareto::new(law.least().unwrap_or(1.0), *shape, *max)),
            Law::Lognormal { min, max, .. } => {
                let (mu, sigma) = law.normal().unwrap_or((0.0, 1.0));
                Ready::Lognormal { mu, sigma, min: *min, max: max.unwrap_or(f64::INFINITY) }
            }
            Law::Empirical { points, .. } => Ready::Empirical { points: points.clone() },
        };
        Draws { law: ready, mean: law.mean() }
    }

    /// Returns the mean of the law.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Draws a value.
    pub fn draw(&self, rng: &mut Stream) -> f64 {
        match &self.law {
            Ready::Fixed(value) => *value,
            Ready::Uniform { min, max } => rng.between(*min, *max),
            Ready::Exponential { mean } => mean * exponential(rng),
            Ready::Erlang { stage_mean, stages } => stage_mean * erlang(*stages, rng),
            Ready::Pareto(pareto) => pareto.draw(rng),
            Ready::Lognormal { mu, sigma, min, max } => lognormal(*mu, *sigma, *min, *max, rng),
            Ready::Empirical { points } => {
                let u = rng.uniform();
                let i = points.partition_point(|(_, share)| *share <= u);
                match (i.checked_sub(1).map(|before| points[before]), points[i]) {
                    (None, (value, _)) => value,
                    (Some((low, before)), (high, share)) => low + (high - low) * (u - before) / (share - before),
                }
            }
        }
    }

    /// Draws the length of the interval that a random moment falls into: density x f(x) / mean.
    fn draw_met(&self, rng: &mut Stream) -> f64 {
        match &self.law {
            Ready::Fixed(value) => *value,
            Ready::Uniform { min, max } => libm::sqrt(rng.between(min * min, max * max)),
            // One stage more.
            Ready::Exponential { mean } => mean * erlang(2, rng),
            Ready::Erlang { stage_mean, stages } => stage_mean * erlang(stages + 1, rng),
            Ready::Pareto(pareto) => pareto.met().draw(rng),
            // x f(x) of a lognormal law is a lognormal density with mean mu + sigma^2 of the logarithm.
            Ready::Lognormal { mu, sigma, min, max } => lognormal(mu + sigma * sigma, *sigma, *min, *max, rng),
            Ready::Empirical { points } => {
                let mut left = rng.uniform() * self.mean;
                let mut met = (0.0, 0.0);
                for (low, high, share) in segments(points) {
                    met = (low, high);
                    left -= share * (low + high) / 2.0;
                    if left < 0.0 {
                        break;
                    }
                }
                libm::sqrt(rng.between(met.0 * met.0, met.1 * met.1))
            }
        }
    }

    /// Draws the rest of the interval that a random moment falls into: a renewal process that begins so is stationary.
    pub fn draw_residual(&self, rng: &mut Stream) -> f64 {
        self.draw_met(rng) * rng.uniform()
    }

    /// Draws a size, at least 1.
    pub(super) fn draw_size(&self, rng: &mut Stream) -> u64 {
        (self.draw(rng) + 0.5).max(1.0) as u64
    }
}

impl Pareto {
    fn new(least: f64, shape: f64, max: Option<f64>) -> Self {
        Pareto { least, shape, within: max.map_or(1.0, |max| 1.0 - libm::pow(least / max, shape)) }
    }

    fn draw(&self, rng: &mut Stream) -> f64 {
        self.least * libm::pow(1.0 - rng.uniform() * self.within, -1.0 / self.shape)
    }

    /// Law of the interval that a random moment falls into: its shape is smaller by one.
    fn met(&self) -> Pareto {
        // At shape 0 the formula degenerates; a shape near 0 gives the same law.
        let shape = if (self.shape - 1.0).abs() < 1e-6 { 1e-6 } else { self.shape - 1.0 };
        // (least / max)^(shape - 1) from (least / max)^shape.
        let within = 1.0 - libm::pow(1.0 - self.within, shape / self.shape);
        Pareto { shape, within: if self.within == 1.0 { 1.0 } else { within }, ..*self }
    }
}

fn lognormal(mu: f64, sigma: f64, min: f64, max: f64, rng: &mut Stream) -> f64 {
    loop {
        let x = libm::exp(mu + sigma * normal(rng));
        if (min..=max).contains(&x) {
            return x;
        }
    }
}

/// Exponential with mean 1.
pub(super) fn exponential(rng: &mut Stream) -> f64 {
    -libm::log(1.0 - rng.uniform())
}

/// Sum of `stages` exponentials with mean 1.
fn erlang(stages: u32, rng: &mut Stream) -> f64 {
    (0..stages).map(|_| exponential(rng)).sum()
}

/// Standard normal, after Box and Muller.
fn normal(rng: &mut Stream) -> f64 {
    let radius = libm::sqrt(2.0 * exponential(rng));
    radius * libm::cos(TAU * rng.uniform())
}

#[cfg(test)]
mod tests {
    use super::*;
    use aqumen_scenario::streams::Kind;

    #[test]
    fn a_random_moment_falls_into_long_intervals_more_often() {
        // A quarter is 100, a quarter lies evenly from 100 to 200, half from 200 to 1000: mean 25 + 37.5 + 300 = 362.5,
        // mean square 2500 + 70000 / 12 + (1000^3 - 200^3) / 4800 = 215000, mean cube 157187500.
        let empirical = Law::Empirical { file: None, points: vec![(100.0, 0.25), (200.0, 0.5), (1000.0, 1.0)].into() };
        for (law, mean, square, cube) in [
            (Law::Fixed(700.0), 700.0, 490_000.0, 343_000_000.0),
            (Law::Uniform { min: 100.0, max: 700.0 }, 400.0, 190_000.0, 100_000_000.0),
            (Law::Exponential { mean: 50.0 }, 50.0, 5000.0, 750_000.0),
            (Law::Erlang { mean: 60.0, stages: 4 }, 60.0, 4500.0, 405_000.0),
            (empirical, 362.5, 215_000.0, 157_187_500.0),
            // 2 / x^3 from 1 to 10, given at most 10: 2 (1 - 1/10), 2 ln 10 and 2 (10 - 1), each over 0.99.
            (
                Law::Pareto { mean: 1.8 / 0.99, shape: 2.0, max: Some(10.0) },
                1.8 / 0.99,
                2.0 * std::f64::consts::LN_10 / 0.99,
                18.0 / 0.99,
            ),
        ] {
            // Density x f(x) / mean: its mean is E x^2 / E x, its mean square E x^3 / E x.
            let (expected, variance) = (square / mean, cube / mean - square / mean * square / mean);
            let (draws, mut rng, n) = (Draws::new(&law), Stream::new(2, Kind::Traffic, 0), 50_000);
            assert!((draws.mean() - mean).abs() < 1e-9 * mean, "{law:?}");
            let met = (0..n).map(|_| draws.draw_met(&mut rng)).sum::<f64>() / f64::from(n);
            let error = 3.29 * (variance.max(0.0) / f64::from(n)).sqrt() + 1e-9 * expected;
            assert!((met - expected).abs() < error, "{law:?}: {met}, not {expected}");
        }
    }
}
