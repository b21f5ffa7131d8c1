//! Two-state approximations of sources, by mean, variance and third central moment of the rate and its relaxation rate.

use crate::Error;
use crate::counts::CountingProcess;
use crate::source::{Minisources, Source};

impl Source {
    /// Two-state approximation of the superposition of `minisources`; the first state has the higher rate. Mean,
    /// variance and third central moment of the rate and the whole index of dispersion curve are exact, yet losses may
    /// be wrong by orders of magnitude.
    pub fn two_state_minisources(name: impl Into<String>, minisources: &Minisources) -> Result<Self, Error> {
        let Minisources { count, off_rate, on_rate, rate } = *minisources;
        minisources.check()?;
        let (n, on) = (f64::from(count), on_rate / (off_rate + on_rate));
        let moments = RateMoments {
            mean: n * rate * on,
            variance: n * rate * rate * on * (1.0 - on),
            skewness: (1.0 - 2.0 * on) / (n * on * (1.0 - on)).sqrt(),
        };
        moments.two_state_source(name, off_rate + on_rate)
    }

    /// Two-state approximation of the superposition of `sources`: mean, variance and third central moment of the rate
    /// and the long-run index of dispersion are exact.
    pub fn two_state_superposition(name: impl Into<String>, sources: &[Source]) -> Result<Self, Error> {
        let mean = sources.iter().map(Source::mean_rate).sum();
        let variance: f64 = sources.iter().map(|source| source.central_moment(2)).sum();
        let third: f64 = sources.iter().map(|source| source.central_moment(3)).sum();
        let long_run: f64 = sources.iter().map(|source| CountingProcess::new(source).excess_slope()).sum();
        if variance == 0.0 {
            return Source::poisson(name, mean);
        }
        // A two-state source with variance v that relaxes at rate r has the excess slope 2 v / r.
        let relaxation = 2.0 * variance / long_run;
        RateMoments { mean, variance, skewness: third / (variance * variance.sqrt()) }
            .two_state_source(name, relaxation)
    }
}

/// Mean, variance and skewness of a rate.
struct RateMoments {
    mean: f64,
    variance: f64,
    skewness: f64,
}

impl RateMoments {
    /// Returns the two-state source with these moments and this `relaxation` rate, per second; with mean and variance
    /// alone if the lower rate would be negative.
    fn two_state_source(&self, name: impl Into<String>, relaxation: f64) -> Result<Source, Error> {
        let RateMoments { mean: a, variance: v, skewness: g } = *self;
        if v == 0.0 {
            return Source::poisson(name, a);
        }
        let mut high_fraction = (1.0 - g / (4.0 + g * g).sqrt()) / 2.0;
        let mut high = a + (v * (1.0 - high_fraction) / high_fraction).sqrt();
        let mut low = a - (v * high_fraction / (1.0 - high_fraction)).sqrt();
        if low < 0.0 {
            low = 0.0;
            high_fraction = a * a / (v + a * a);
            high = a / high_fraction;
        }
        let (down, up) = (relaxation * (1.0 - high_fraction), relaxation * high_fraction);
        Source::new(name, &[vec![-down, down], vec![up, -up]], &[high, low])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negative_lower_rate_becomes_zero_with_mean_and_variance_kept() {
        // Skewness -1 implies the lower rate 1 - 2 sqrt(.7236 / .2764) = -2.24. It becomes 0, the higher 5 in a fifth
        // of the time, with mean 1 and variance .2 25 - 1 = 4.
        let moments = RateMoments { mean: 1.0, variance: 4.0, skewness: -1.0 };
        let source = moments.two_state_source("s", 10.0).unwrap();
        assert!((source.rates()[0] - 5.0).abs() < 1e-12 && source.rates()[1] == 0.0, "{:?}", source.rates());
        assert!((source.mean_rate() - 1.0).abs() < 1e-12 && (source.central_moment(2) - 4.0).abs() < 1e-12);
        assert!((source.stationary_distribution()[0] - 0.2).abs() < 1e-12);
        let generator = source.generator();
        assert!((generator[0][1] - 8.0).abs() < 1e-12 && (generator[1][0] - 2.0).abs() < 1e-12);
    }

    #[test]
    fn feasible_moments_are_matched_exactly() {
        // 7 in a quarter of the time, else 3: mean 4, variance 3, third central moment (27 - 3) / 4 = 6.
        let moments = RateMoments { mean: 4.0, variance: 3.0, skewness: 6.0 / 3.0f64.powf(1.5) };
        let source = moments.two_state_source("s", 8.0).unwrap();
        let [high, low] = [source.rates()[0], source.rates()[1]];
        assert!((high - 7.0).abs() < 1e-12 && (low - 3.0).abs() < 1e-12, "{high} {low}");
        assert!((source.central_moment(3) - 6.0).abs() < 1e-9);
    }
}
