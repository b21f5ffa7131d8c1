//! The ECN codepoint of a packet.

/// The ECN field of the IP header (RFC 3168 section 5), decoded once where a packet enters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// The transport does not understand marks: such a packet can only be dropped.
    #[default]
    NotEct = 0b00,
    /// ECT(1): an L4S transport (RFC 9331).
    Ect1 = 0b01,
    /// ECT(0): a classic ECN transport.
    Ect0 = 0b10,
    /// Congestion experienced: already marked.
    Ce = 0b11,
}

impl Ecn {
    /// Whether the packet may be marked instead of dropped.
    pub const fn is_ect(self) -> bool {
        !matches!(self, Ecn::NotEct)
    }

    /// The codepoint of the two low bits of `tos`.
    pub const fn from_bits(tos: u8) -> Self {
        match tos & 0b11 {
            0b00 => Ecn::NotEct,
            0b01 => Ecn::Ect1,
            0b10 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_low_bits_decode_to_the_codepoint_they_encode() {
        for tos in 0..=255 {
            assert_eq!(Ecn::from_bits(tos) as u8, tos & 0b11);
        }
        assert!(!Ecn::NotEct.is_ect() && Ecn::Ce.is_ect());
    }
}
