//! What the transports' configurations check, and how they say that a field is out of range.

use core::fmt;

use aqumen_units::Span;

pub(crate) fn number<T: Into<f64>>(
    field: &'static str,
    value: T,
    least: u32,
    most: u32,
    range: &'static str,
) -> Result<(), ConfigError> {
    let value = value.into();
    if (f64::from(least)..=f64::from(most)).contains(&value) {
        Ok(())
    } else {
        Err(ConfigError { field, value, range })
    }
}

pub(crate) fn span(
    field: &'static str,
    value: Span,
    least: Span,
    most: Span,
    range: &'static str,
) -> Result<(), ConfigError> {
    if (least..=most).contains(&value) { Ok(()) } else { Err(ConfigError { field, value: secs(value), range }) }
}

pub(crate) fn secs(span: Span) -> f64 {
    span.as_nanos() as f64 / 1e9
}

/// A field of a transport's configuration is outside its range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConfigError {
    /// The field's name.
    pub field: &'static str,
    /// Its value, a time in seconds.
    pub value: f64,
    /// What would be accepted, in words.
    pub range: &'static str,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}: must be {}", self.field, self.value, self.range)
    }
}

impl core::error::Error for ConfigError {}
