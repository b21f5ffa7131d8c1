//! Bytes, and bits per second.

use core::fmt;
use core::ops::{Add, AddAssign, Sub, SubAssign};

use crate::Span;

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// A rate in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Bytes = Bytes(0);

    /// The number of bits.
    pub const fn bits(self) -> u64 {
        self.0 * 8
    }
}

impl Rate {
    /// `bits` bits per second.
    pub const fn from_bps(bits: u64) -> Self {
        Rate(bits)
    }

    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Packets of `size` per second.
    pub fn packets_per_sec(self, size: Bytes) -> f64 {
        self.0 as f64 / (8.0 * size.0 as f64)
    }

    /// How long `amount` takes at this rate, to the nearest nanosecond. [`Span::MAX`] at rate zero.
    pub const fn time_for(self, amount: Bytes) -> Span {
        if self.0 == 0 {
            return Span::MAX;
        }
        const BIT_NANOS_PER_BYTE: u64 = 8_000_000_000;
        let half = self.0 / 2;
        // A 128-bit division costs many times a 64-bit one; packets always take the short way.
        if amount.0 < 1 << 31 && self.0 < 1 << 62 {
            Span::from_nanos((amount.0 * BIT_NANOS_PER_BYTE).saturating_add(half) / self.0)
        } else {
            let nanos = (amount.0 as u128 * BIT_NANOS_PER_BYTE as u128 + half as u128) / self.0 as u128;
            Span::from_nanos(if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 })
        }
    }

    /// How many bytes this rate carries in `span`, rounded down.
    pub const fn amount_in(self, span: Span) -> Bytes {
        Bytes((self.0 as u128 * span.as_nanos() as u128 / 8_000_000_000) as u64)
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        self.0 += other.0;
    }
}

impl Sub for Bytes {
    type Output = Bytes;
    fn sub(self, other: Bytes) -> Bytes {
        Bytes(self.0 - other.0)
    }
}

impl SubAssign for Bytes {
    fn sub_assign(&mut self, other: Bytes) {
        self.0 -= other.0;
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}B", self.0)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bps = self.0;
        for (unit, name) in [(1_000_000_000, "Gbit"), (1_000_000, "Mbit"), (1_000, "kbit")] {
            if bps >= unit {
                return write!(f, "{}{name}", bps as f64 / unit as f64);
            }
        }
        write!(f, "{bps}bit")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kilobyte_at_8_mbit_takes_a_millisecond() {
        assert_eq!(Rate::from_bps(8_000_000).time_for(Bytes(1000)), Span::from_millis(1));
    }

    #[test]
    fn a_minimum_frame_at_100_gbit_takes_five_nanoseconds() {
        assert_eq!(Rate::from_bps(100_000_000_000).time_for(Bytes(64)), Span::from_nanos(5));
    }

    #[test]
    fn long_and_short_division_agree_where_they_meet() {
        let rate = Rate::from_bps(3_000_000_000);
        let short = rate.time_for(Bytes((1 << 31) - 1)).as_nanos();
        let long = rate.time_for(Bytes(1 << 31)).as_nanos();
        assert!(long - short <= 3, "{short} {long}");
    }

    #[test]
    fn a_link_without_rate_never_finishes() {
        assert_eq!(Rate::from_bps(0).time_for(Bytes(1)), Span::MAX);
    }

    #[test]
    fn rate_times_time_is_bytes() {
        assert_eq!(Rate::from_bps(8_000).amount_in(Span::from_millis(1500)), Bytes(1500));
        assert_eq!(Rate::from_bps(10_000_000).packets_per_sec(Bytes(1000)), 1250.0);
    }
}
