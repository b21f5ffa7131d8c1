//! How far apart spaced signals come, and how likely one follows another so many packets later.

/// How far apart signals come, each gap by itself: at least so many packets, then an end that is left to chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignalGaps {
    /// Packets without a signal.
    pub least_pkts: f64,
    /// How many more.
    pub tail: GapTail,
}

/// The part of a gap that is left to chance, packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GapTail {
    /// Anything up to so many, as likely as anything else.
    Uniform(f64),
    /// So many on average, each further packet with the same chance.
    Exponential(f64),
}

/// Gaps after which it no longer matters where they began, and as many as are looked at before.
const FORGOTTEN: f64 = 8.0;
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

    /// How likely a packet is signalled that comes so many after one that was, as a share of how likely any is: the sum
    /// over n of the density of n gaps (the renewal density).
    pub fn renewal_density(self, distance_pkts: f64) -> f64 {
        let mean = self.mean_pkts();
        if distance_pkts > FORGOTTEN * mean {
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

/// Density at `y` of the sum of `n` numbers, each evenly spread from 0 to 1 (Irwin and Hall).
fn irwin_hall_density(n: u32, y: f64) -> f64 {
    if y >= f64::from(n) {
        return 0.0;
    }
    // A product is quicker than a power by far, of which a map takes millions.
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

/// Density at `y` of the sum of `n` numbers, each exponential with mean 1 (Erlang).
fn erlang_density(n: u32, y: f64) -> f64 {
    (1..n).fold(libm::exp(-y), |density, k| density * y / f64::from(k))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_signal_is_not_sooner_than_the_least_gap_and_after_a_few_gaps_it_may_come_at_any_packet() {
        // Gaps of 10 to 20 packets, mean 15. 12 packets on: one gap, 15 / 10. 25 on: two gaps, of which 5 beyond both
        // least: 15 (.5) / 10. 35 on: two with 15 beyond, three with 5: 15 (.5 + .125) / 10.
        let even = SignalGaps { least_pkts: 10.0, tail: GapTail::Uniform(10.0) };
        for (distance, expected) in [(9.0, 0.0), (12.0, 1.5), (25.0, 0.75), (35.0, 0.9375), (119.9, 1.0), (500.0, 1.0)]
        {
            assert!(
                (even.renewal_density(distance) - expected).abs() < 2e-3,
                "{distance}: {}",
                even.renewal_density(distance)
            );
        }
        // 10 packets, then 10 on average: 15 on, one gap: 2 e^-.5; 25 on: 2 (e^-1.5 + .5 e^-.5).
        let chance = SignalGaps { least_pkts: 10.0, tail: GapTail::Exponential(10.0) };
        for (distance, expected) in [(9.0, 0.0), (15.0, 1.21306), (25.0, 2.0 * (0.22313 + 0.5 * 0.60653)), (155.0, 1.0)]
        {
            assert!(
                (chance.renewal_density(distance) - expected).abs() < 2e-3,
                "{distance}: {}",
                chance.renewal_density(distance)
            );
        }
        // A least gap of nothing, an end of chance: any packet, as likely as any other.
        let tosses = SignalGaps { least_pkts: 0.0, tail: GapTail::Exponential(10.0) };
        assert!((tosses.renewal_density(30.0) - 1.0).abs() < 1e-6, "{}", tosses.renewal_density(30.0));
    }
}
