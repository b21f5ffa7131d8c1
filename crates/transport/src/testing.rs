//! Helpers shared by the unit tests.

use aqumen_units::{Instant, Span};

/// The moment `millis` milliseconds after the start.
pub(crate) fn ms(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

/// Asserts that two numbers agree to a relative tolerance.
#[track_caller]
pub(crate) fn assert_near(left: f64, right: f64, tolerance: f64) {
    assert!((left - right).abs() <= tolerance * right.abs(), "{left} is not {right}");
}
