//! Gaps between signals that an AQM spreads out, as a renewal process over packets.

/// Distribution of independent gaps between signals: a constant part plus a random part, packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignalGaps {
    /// Constant part, packets.
    pub least_pkts: f64,
    /// Random part.
    pub tail: GapTail,
}

/// Distribution of the random part of a gap, packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GapTail {
    /// Uniform between 0 and this value.
    Uniform(f64),
    /// Exponential with this mean.
    Exponential(f64),
}

/// Distance, in mean gaps, from which the renewal density is 1, and number of gaps summed up before.
const STATIONARY_GAPS: f64 = 8.0;
const GAPS_MAX: u32 = 16;

impl SignalGaps {
    /// Mean gap, packets.
    pub fn mean_pkts(self) -> f64 {
        self.least_pkts
            + match self.tail {
                GapTail::Uniform(most) => 0.5 * most,
                GapTail::Exponential(mean) => mean,
            }
    }

    /// Renewal density at `distance_pkts` after a signal, relative to the mean signal rate: the sum over n of the
    /// density of n gaps.
    pub fn renewal_density(self, distance_pkts: f64) -> f64 {
        let mean = self.mean_pkts();
        if distance_pkts > STATIONARY_GAPS * mean {
            return 1.0;
        }
        let density = |n: u32| {
            let beyond = distance_pkts - f64::from(n) * self.least_pkts;
            match self.tail {
                _ if beyond < 0.0 => 0.0,
                GapTail::Uniform(most) => irwin_hall_density(n, beyond / most) / most,
                GapTail::Exponential(mean) => erlang_density(n, beyond / mean) / mean,
            }
        };
        mean * (1..=GAPS_MAX).map(density).sum::<f64>()
    }
}

/// Irwin-Hall density at `y`: sum of `n` uniform numbers in [0, 1].
fn irwin_hall_density(n: u32, y: f64) -> f64 {
    if y >= f64::from(n) {
        return 0.0;
    }
    // A loop is much faster than `pow`; a stability map needs millions of these powers.
    let power = |x: f64| (1..n).fold(1.0, |product, _| product * x);
    let (mut sum, mut chosen, mut factorial) = (0.0, 1.0, 1.0);
    for k in 0..=libm::floor(y) as u32 {
        sum += chosen * power(y - f64::from(k));
        chosen *= -f64::from(n - k) / f64::from(k + 1);
    }
    for k in 1..n {
        factorial *= f64::from(k);
    }
    (sum / factorial).max(0.0)
}

/// Erlang density at `y`: sum of `n` exponential numbers with mean 1.
fn erlang_density(n: u32, y: f64) -> f64 {
    (1..n).fold(libm::exp(-y), |density, k| density * y / f64::from(k))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_renewal_density_is_zero_within_the_least_gap_and_tends_to_one() {
        // Gaps of 10 to 20 packets, mean 15. At 12 packets: one gap, 15 / 10. At 25: two gaps, 5 beyond both minima:
        // 15 (.5) / 10. At 35: two gaps with 15 beyond, three with 5: 15 (.5 + .125) / 10.
        let uniform = SignalGaps { least_pkts: 10.0, tail: GapTail::Uniform(10.0) };
        for (distance, expected) in [(9.0, 0.0), (12.0, 1.5), (25.0, 0.75), (35.0, 0.9375), (119.9, 1.0), (500.0, 1.0)]
        {
            assert!(
                (uniform.renewal_density(distance) - expected).abs() < 2e-3,
                "{distance}: {}",
                uniform.renewal_density(distance)
            );
        }
        // 10 packets, then 10 on average. At 15: one gap, 2 e^-.5; at 25: 2 (e^-1.5 + .5 e^-.5).
        let exponential = SignalGaps { least_pkts: 10.0, tail: GapTail::Exponential(10.0) };
        for (distance, expected) in [(9.0, 0.0), (15.0, 1.21306), (25.0, 2.0 * (0.22313 + 0.5 * 0.60653)), (155.0, 1.0)]
        {
            assert!(
                (exponential.renewal_density(distance) - expected).abs() < 2e-3,
                "{distance}: {}",
                exponential.renewal_density(distance)
            );
        }
        // Without a constant part the process is Poisson.
        let poisson = SignalGaps { least_pkts: 0.0, tail: GapTail::Exponential(10.0) };
        assert!((poisson.renewal_density(30.0) - 1.0).abs() < 1e-6, "{}", poisson.renewal_density(30.0));
    }
}
