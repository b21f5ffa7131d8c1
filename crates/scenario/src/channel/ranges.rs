//! Accepted ranges of the parameters of media.

use aqumen_units::Span;

use crate::error::KeyError;

/// Refuses a number outside `low` to `high`.
pub(crate) fn within(key: &'static str, value: f64, low: f64, high: f64) -> Result<(), KeyError> {
    if (low..=high).contains(&value) { Ok(()) } else { Err((key, format!("must be {low} to {high}"))) }
}

/// Refuses a time shorter than 100 us.
pub(crate) fn lasts(key: &'static str, value: Span) -> Result<(), KeyError> {
    if value >= Span::from_micros(100) { Ok(()) } else { Err((key, "must be at least 100us".into())) }
}
