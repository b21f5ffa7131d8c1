//! Random streams of a link.

use aqumen_aqm::Draw;
use aqumen_scenario::streams::{Kind, Stream};

/// Use of random numbers in a link; each has its own stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Losses on the wire.
    Loss = 0,
    /// Packet by packet: backoff, collisions, blocks in error.
    Access = 1,
    /// Level of the radio channel, or number of busy neighbours.
    Level = 2,
    /// Handovers.
    Handover = 3,
}

impl Use {
    /// Returns the stream for this use of link `number`.
    pub fn stream(self, seed: u64, number: u32) -> Stream {
        Stream::new(seed, Kind::Link, (self as u64) << 32 | u64::from(number))
    }
}

/// Draws an exponentially distributed time of the given mean, nanoseconds.
pub fn exponential(rng: &mut Stream, mean_ns: f64) -> f64 {
    -libm::log1p(-rng.uniform()) * mean_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exponential_with_their_mean() {
        let mut rng = Use::Access.stream(1, 0);
        for mean_ns in [0.5, 3e9] {
            let times: Vec<f64> = (0..10_000).map(|_| exponential(&mut rng, mean_ns) / mean_ns).collect();
            let share = |of: &dyn Fn(f64) -> f64| times.iter().map(|time| of(*time)).sum::<f64>() / 1e4;
            // Mean and deviation are 1; e^-2 of them is longer than twice the mean.
            assert!((share(&|time| time) - 1.0).abs() < 0.033);
            assert!((share(&|time| f64::from(u8::from(time > 2.0))) - libm::exp(-2.0)).abs() < 0.012);
        }
    }
}
