//! Hash from flows to queues: the 32-bit finalizer of MurmurHash3 over the flow's hash and a salt.
//!
//! The salt is drawn at the first packet from the discipline's random stream, so collisions are random but repeat with
//! the seed. The finalizer is a permutation of 32 bits in which each input bit flips each output bit with probability
//! about 1/2. Multiplication scales it to the number of queues. With M queues, a flow collides with one of n others
//! with probability 1 - (1 - 1/M)^n.

use crate::Draw;

/// A salted hash.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowHash {
    salt: Option<u32>,
}

impl FlowHash {
    /// Hash with a given salt.
    #[cfg(test)]
    pub(crate) const fn salted(salt: u32) -> Self {
        FlowHash { salt: Some(salt) }
    }

    /// Hash value of `flow`.
    #[inline]
    pub(crate) fn mix<R: Draw>(&mut self, flow: u32, rng: &mut R) -> u32 {
        let salt = match self.salt {
            Some(salt) => salt,
            None => self.renew(rng),
        };
        finalize(flow ^ salt)
    }

    /// Queue of `flow` among `queues`.
    #[inline]
    pub(crate) fn queue<R: Draw>(&mut self, flow: u32, queues: usize, rng: &mut R) -> usize {
        scale(self.mix(flow, rng), queues)
    }

    /// Draws a new salt.
    #[cold]
    pub(crate) fn renew<R: Draw>(&mut self, rng: &mut R) -> u32 {
        let salt = (rng.uniform() * 4_294_967_296.0) as u32;
        self.salt = Some(salt);
        salt
    }
}

/// Scales 32 bits to 0..n.
#[inline]
pub(crate) fn scale(bits: u32, n: usize) -> usize {
    ((bits as u64 * n as u64) >> 32) as usize
}

/// The finalizer of MurmurHash3 (public domain constants).
#[inline]
fn finalize(mut x: u32) -> u32 {
    x ^= x >> 16;
    x = x.wrapping_mul(0x85eb_ca6b);
    x ^= x >> 13;
    x = x.wrapping_mul(0xc2b2_ae35);
    x ^ (x >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Fixed;
    use std::collections::BTreeSet;

    #[test]
    fn the_finalizer_has_the_published_values() {
        // Reference values of MurmurHash3's fmix32.
        assert_eq!([finalize(0), finalize(1), finalize(0xffff_ffff)], [0, 0x514e_28b7, 0x81f1_6f39]);
    }

    #[test]
    fn flows_collide_as_often_as_expected() {
        // 1000 flows in 1024 queues fill 1024 (1 - (1 - 1/1024)^1000) = 638.4 of them, standard deviation about 9.4.
        for salt in [0, 1, 0x1234_5678] {
            let mut hash = FlowHash::salted(salt);
            let used: BTreeSet<_> = (0..1000).map(|flow| hash.queue(flow, 1024, &mut Fixed(0.0))).collect();
            assert!((used.len() as f64 - 638.4).abs() < 4.0 * 9.4, "{}", used.len());
        }
    }

    #[test]
    fn the_salt_is_drawn_once_and_determines_collisions() {
        let mut hash = FlowHash::default();
        let first = hash.queue(7, 1024, &mut Fixed(0.25));
        assert_eq!(hash.queue(7, 1024, &mut Fixed(0.75)), first);
        let pairs = |salt| {
            let mut hash = FlowHash::salted(salt);
            let queues: std::vec::Vec<_> = (0..200).map(|flow| hash.queue(flow, 64, &mut Fixed(0.0))).collect();
            (0..200).filter(|&i| queues[..i].contains(&queues[i])).collect::<std::vec::Vec<_>>()
        };
        assert_ne!(pairs(1), pairs(2));
    }
}
