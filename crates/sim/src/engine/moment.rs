//! Times in the engine: nanoseconds since the start of the run.

use aqumen_units::Instant;

/// Nothing comes.
pub(super) const NEVER: u64 = u64::MAX;

pub(super) fn instant(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}
