//! Digests: of the engines' sources, made at build, and of results. Neither defends against forgery.

include!(concat!(env!("OUT_DIR"), "/engines.rs"));

/// Returns the digest of the sources of each engine of this module: equal on every machine for equal sources.
pub(crate) fn engines() -> Vec<(&'static str, &'static str)> {
    ENGINES.to_vec()
}

/// FNV-1a with 128 bits, by which `build.rs` digests the sources too.
pub(crate) struct Digest(u128);

impl Digest {
    /// Digest of nothing.
    pub(crate) fn new() -> Self {
        Digest(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    /// Adds `bytes`.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }

    /// The digest as 32 hexadecimal digits.
    pub(crate) fn hex(&self) -> String {
        format!("{:032x}", self.0)
    }
}
