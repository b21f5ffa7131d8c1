//! What the models of media accept.

use aqumen_units::Span;

use crate::error::Fault;

/// A number that a model accepts from `low` to `high`.
pub(crate) fn within(key: &'static str, value: f64, low: f64, high: f64) -> Result<(), Fault> {
    if (low..=high).contains(&value) { Ok(()) } else { Err((key, format!("must be {low} to {high}"))) }
}

/// A time that must pass.
pub(crate) fn lasts(key: &'static str, value: Span) -> Result<(), Fault> {
    if value >= Span::from_micros(100) { Ok(()) } else { Err((key, "must be at least 100us".into())) }
}
