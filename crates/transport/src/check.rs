//! Range checks of configuration fields, and the error that reports an invalid value.

use core::fmt;
use core::ops::RangeInclusive;

use aqumen_units::{Rate, Span};

/// Checks that a field is in its range; `text` describes the range.
pub(crate) fn in_range<T: Quantity>(
    field: &'static str,
    value: T,
    range: RangeInclusive<T>,
    text: &'static str,
) -> Result<(), ConfigError> {
    require(field, value, range.contains(&value), text)
}

/// Checks that a field's value is `valid`; `text` describes the valid ones.
pub(crate) fn require(
    field: &'static str,
    value: impl Quantity,
    valid: bool,
    text: &'static str,
) -> Result<(), ConfigError> {
    if valid { Ok(()) } else { Err(ConfigError { field, value: value.in_units(), range: text }) }
}

/// Checks the sizes of a data packet and of its headers (bytes), with `least` the smallest header.
pub(crate) fn packet_sizes(packet: u16, header: u16, least: u16, text: &'static str) -> Result<(), ConfigError> {
    in_range("header_bytes", header, least..=255, text)?;
    in_range("packet_bytes", packet, header + 1..=u16::MAX, "more than header_bytes, at most 65535 bytes")
}

/// Type of a field: a number, a time or a rate.
pub(crate) trait Quantity: Copy + PartialOrd {
    /// The value as errors report it: times in seconds, rates in bit/s.
    fn in_units(self) -> f64;
}

macro_rules! numbers {
    ($($number:ty)*) => {
        $(
            impl Quantity for $number {
                fn in_units(self) -> f64 {
                    f64::from(self)
                }
            }
        )*
    };
}

numbers! { u8 u16 u32 f64 }

impl Quantity for Span {
    fn in_units(self) -> f64 {
        self.as_nanos() as f64 / 1e9
    }
}

impl Quantity for Rate {
    fn in_units(self) -> f64 {
        self.as_bps() as f64
    }
}

/// A field of a transport's configuration that is outside its range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConfigError {
    /// The field's name.
    pub field: &'static str,
    /// Its value; times in seconds, rates in bit/s.
    pub value: f64,
    /// Description of the accepted values.
    pub range: &'static str,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}: must be {}", self.field, self.value, self.range)
    }
}

impl core::error::Error for ConfigError {}
