//! What the tests of this crate share, those from outside too: hosts' random numbers that are known beforehand.

use crate::Draw;

/// Draws the same number again and again.
pub(crate) struct Fixed(pub(crate) f64);

impl Draw for Fixed {
    fn uniform(&mut self) -> f64 {
        self.0
    }
}

/// Minimal standard generator (Park, Miller): enough to draw gaps.
pub(crate) struct Lehmer(pub(crate) u64);

impl Draw for Lehmer {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0 * 48_271 % 0x7fff_ffff;
        self.0 as f64 / 0x7fff_ffff as f64
    }
}

/// SplitMix64: enough where bits of it are told apart.
pub(crate) struct SplitMix(pub(crate) u64);

impl Draw for SplitMix {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}
