//! Two states in place of more: mean, variance and third central moment of the rate, and how long it is remembered, are
//! kept.

use crate::Error;
use crate::counts::Counts;
use crate::source::{Minisources, Source};

impl Source {
    /// `minisources` together, approximated by two states, the first the higher. Mean, variance and third
    /// central moment of the rate and the whole index of dispersion curve are right, yet losses may be
    /// wrong by orders of magnitude.
    pub fn minisources_in_two_states(name: impl Into<String>, minisources: &Minisources) -> Result<Self, Error> {
        let Minisources { count, off_rate, on_rate, rate } = *minisources;
        minisources.check()?;
        let (n, on) = (f64::from(count), on_rate / (off_rate + on_rate));
        let moments = RateMoments {
            mean: n * rate * on,
            variance: n * rate * rate * on * (1.0 - on),
            skewness: (1.0 - 2.0 * on) / (n * on * (1.0 - on)).sqrt(),
        };
        moments.in_two_states(name, off_rate + on_rate)
    }

    /// Two states in place of `sources` together: mean, variance and third central moment of the rate and the index of
    /// dispersion over a long time are those of the superposition.
    pub fn merged(name: impl Into<String>, sources: &[Source]) -> Result<Self, Error> {
        let mean = sources.iter().map(Source::mean_rate).sum();
        let variance: f64 = sources.iter().map(|source| source.central_moment(2)).sum();
        let third: f64 = sources.iter().map(|source| source.central_moment(3)).sum();
        let long_run: f64 = sources.iter().map(|source| Counts::of(source).excess_slope()).sum();
        if variance == 0.0 {
            return Source::poisson(name, mean);
        }
        // A two-state source with variance v that relaxes at rate r has the excess slope 2 v / r.
        let relaxation = 2.0 * variance / long_run;
        RateMoments { mean, variance, skewness: third / (variance * variance.sqrt()) }.in_two_states(name, relaxation)
    }
}

/// Mean, variance and skewness of a rate.
struct RateMoments {
    mean: f64,
    variance: f64,
    skewness: f64,
}

impl RateMoments {
    /// The two-state source with these moments that forgets its state at `relaxation` per second; with mean and
    /// variance alone where the lower rate would be negative.
    fn in_two_states(&self, name: impl Into<String>, relaxation: f64) -> Result<Source, Error> {
        let RateMoments { mean: a, variance: v, skewness: g } = *self;
        if v == 0.0 {
            return Source::poisson(name, a);
        }
        let mut high_share = (1.0 - g / (4.0 + g * g).sqrt()) / 2.0;
        let mut high = a + (v * (1.0 - high_share) / high_share).sqrt();
        let mut low = a - (v * high_share / (1.0 - high_share)).sqrt();
        if low < 0.0 {
            low = 0.0;
            high_share = a * a / (v + a * a);
            high = a / high_share;
        }
        let (down, up) = (relaxation * (1.0 - high_share), relaxation * high_share);
        Source::new(name, &[vec![-down, down], vec![up, -up]], &[high, low])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lower_rate_below_zero_gives_way_to_mean_and_variance() {
        // Skewness -1 asks for the lower rate 1 - 2 sqrt(.7236 / .2764) = -2.24: it is 0, the higher 5 in a fifth of
        // the time, whose mean is 1 and variance .2 25 - 1 = 4.
        let moments = RateMoments { mean: 1.0, variance: 4.0, skewness: -1.0 };
        let source = moments.in_two_states("s", 10.0).unwrap();
        assert!((source.rates()[0] - 5.0).abs() < 1e-12 && source.rates()[1] == 0.0, "{:?}", source.rates());
        assert!((source.mean_rate() - 1.0).abs() < 1e-12 && (source.central_moment(2) - 4.0).abs() < 1e-12);
        assert!((source.state_shares()[0] - 0.2).abs() < 1e-12);
        let generator = source.generator();
        assert!((generator[0][1] - 8.0).abs() < 1e-12 && (generator[1][0] - 2.0).abs() < 1e-12);
    }

    #[test]
    fn moments_that_two_rates_can_have_are_theirs() {
        // 7 in a quarter of the time, else 3: mean 4, variance 3, third central moment (27 - 3) / 4 = 6.
        let moments = RateMoments { mean: 4.0, variance: 3.0, skewness: 6.0 / 3.0f64.powf(1.5) };
        let source = moments.in_two_states("s", 8.0).unwrap();
        let [high, low] = [source.rates()[0], source.rates()[1]];
        assert!((high - 7.0).abs() < 1e-12 && (low - 3.0).abs() < 1e-12, "{high} {low}");
        assert!((source.central_moment(3) - 6.0).abs() < 1e-9);
    }
}
