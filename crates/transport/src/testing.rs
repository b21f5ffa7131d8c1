//! What the unit tests of this crate share.

use aqumen_units::{Instant, Span};

/// So many milliseconds after the start.
pub(crate) fn at(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}
