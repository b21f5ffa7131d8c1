//! Random streams: one per (seed, kind, name), so that the numbers of a flow do not depend on other flows.
//!
//! Two AQMs in the same scenario with the same seed therefore get the same traffic (common random numbers).

pub use aqumen_aqm::Draw;
use rand_pcg::Mcg128Xsl64;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// Purpose of a stream. Streams of different kinds are independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Kind {
    /// Placement of a flow: its delays and start time. Name: the flow's number.
    Placement = 1,
    /// Send overhead of a sender's host. Name: the flow's number.
    Endpoint = 2,
    /// Random decisions of an AQM. Name: the link's number.
    Aqm = 3,
    /// A traffic source: sizes, think times. Name: the flow's number.
    Traffic = 4,
    /// Losses and jitter of a link. Name: the link's number.
    Link = 5,
}

/// A stream of uniform numbers: PCG with 128 bits of state, the same on every machine.
#[derive(Clone, Debug)]
pub struct Stream(Mcg128Xsl64);

impl Stream {
    /// The stream of `kind` and `name` under `seed`.
    pub fn new(seed: u64, kind: Kind, name: u64) -> Self {
        // SplitMix64 steps spread the three words over the state; adjacent seeds and names give unrelated streams.
        let a = mix(mix(mix(seed) ^ kind as u64) ^ name);
        let b = mix(a ^ 0x9e37_79b9_7f4a_7c15);
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&a.to_le_bytes());
        bytes[8..].copy_from_slice(&b.to_le_bytes());
        Stream(Mcg128Xsl64::from_seed(bytes))
    }

    /// Draws a number uniform in [low, high).
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }
}

impl Draw for Stream {
    #[inline]
    fn uniform(&mut self) -> f64 {
        // The upper 53 bits, scaled by 2^-53.
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

/// Output function of SplitMix64, the same on every machine.
pub fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ_by_seed_kind_and_name() {
        let first = |seed, kind, name| Stream::new(seed, kind, name).uniform();
        let base = first(1, Kind::Aqm, 0);
        assert_eq!(base, first(1, Kind::Aqm, 0));
        assert_ne!(base, first(2, Kind::Aqm, 0));
        assert_ne!(base, first(1, Kind::Traffic, 0));
        assert_ne!(base, first(1, Kind::Aqm, 1));
    }

    #[test]
    fn seeds_are_mixed_as_splitmix64_does() {
        // First outputs of the reference implementation from 0, each a step of 0x9e3779b97f4a7c15 further.
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(mix(0x9e37_79b9_7f4a_7c15), 0x6e78_9e6a_a1b9_65f4);
        assert_eq!(mix(0x3c6e_f372_fe94_f82a), 0x06c4_5d18_8009_454f);
    }

    #[test]
    fn draws_between_two_bounds_are_scaled() {
        let u = Stream::new(7, Kind::Traffic, 3).uniform();
        let between = |low, high| Stream::new(7, Kind::Traffic, 3).between(low, high);
        assert_eq!((between(0.0, 1.0), between(5.0, 5.0)), (u, 5.0));
        assert!((between(-3.0, 7.0) - (10.0 * u - 3.0)).abs() < 1e-12);
    }

    #[test]
    fn a_stream_has_the_mean_and_variance_of_the_uniform_distribution() {
        let mut stream = Stream::new(7, Kind::Traffic, 3);
        let n = 100_000;
        let draws: Vec<f64> = (0..n).map(|_| stream.uniform()).collect();
        let mean = draws.iter().sum::<f64>() / n as f64;
        let variance = draws.iter().map(|x| (x - 0.5) * (x - 0.5)).sum::<f64>() / n as f64;
        // 99.9 % intervals: 3.29 standard errors; var(x) = 1/12, var((x - 1/2)^2) = 1/180.
        assert!((mean - 0.5).abs() < 3.29 * (1.0 / 12.0 / n as f64).sqrt(), "{mean}");
        assert!((variance - 1.0 / 12.0).abs() < 3.29 * (1.0 / 180.0 / n as f64).sqrt(), "{variance}");
        assert!(draws.iter().all(|x| (0.0..1.0).contains(x)));
    }
}
