//! Deterministic random numbers for the unit and integration tests of this crate.

use crate::Draw;

/// Always draws the same number.
pub(crate) struct Fixed(pub(crate) f64);

impl Draw for Fixed {
    fn uniform(&mut self) -> f64 {
        self.0
    }
}

/// Minimal standard generator (Park, Miller).
pub(crate) struct Lehmer(pub(crate) u64);

impl Draw for Lehmer {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0 * 48_271 % 0x7fff_ffff;
        self.0 as f64 / 0x7fff_ffff as f64
    }
}

/// SplitMix64, for tests that use single bits.
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
