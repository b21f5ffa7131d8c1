//! Instants and spans in integer nanoseconds.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};
use core::time::Duration;

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// A moment, in nanoseconds from an epoch that the host chooses (a simulation starts at zero).
///
/// Instants of one host may be compared and subtracted; instants of two hosts may not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

/// A length of time that is never negative, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

/// A difference of two spans (a controller's error, say), in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SignedSpan(i64);

impl Instant {
    /// The epoch.
    pub const ZERO: Instant = Instant(0);
    /// Later than anything that happens.
    pub const MAX: Instant = Instant(u64::MAX);

    /// The moment `nanos` nanoseconds after the epoch.
    pub const fn from_nanos(nanos: u64) -> Self {
        Instant(nanos)
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the epoch.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// Time since `earlier`, zero if `earlier` is later.
    pub const fn saturating_since(self, earlier: Instant) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// This moment moved by `span`, at most [`Instant::MAX`].
    pub const fn saturating_add(self, span: Span) -> Instant {
        Instant(self.0.saturating_add(span.0))
    }
}

impl Span {
    /// No time.
    pub const ZERO: Span = Span(0);
    /// Longer than anything that happens.
    pub const MAX: Span = Span(u64::MAX);

    /// A span of `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Span(nanos)
    }

    /// A span of `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Span(micros * 1_000)
    }

    /// A span of `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Span(millis * 1_000_000)
    }

    /// A span of `secs` seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Span(secs * NANOS_PER_SEC)
    }

    /// The span nearest to `secs` seconds; negative and not-a-number become zero, too long becomes [`Span::MAX`].
    pub fn from_secs_f64(secs: f64) -> Self {
        // `as` saturates, and turns NaN into zero.
        Span((secs * 1e9 + 0.5) as u64)
    }

    /// Length in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Length in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// This span less `other`, at least zero.
    pub const fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }

    /// This span times `factor`, at most [`Span::MAX`].
    pub const fn saturating_mul(self, factor: u64) -> Span {
        Span(self.0.saturating_mul(factor))
    }

    /// How far this span exceeds `other`; negative if it is shorter.
    pub const fn signed_sub(self, other: Span) -> SignedSpan {
        SignedSpan(self.0 as i64 - other.0 as i64)
    }
}

impl SignedSpan {
    /// Length in seconds, with its sign.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// Length in nanoseconds, with its sign.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }
}

impl Add<Span> for Instant {
    type Output = Instant;
    fn add(self, span: Span) -> Instant {
        Instant(self.0 + span.0)
    }
}

impl AddAssign<Span> for Instant {
    fn add_assign(&mut self, span: Span) {
        self.0 += span.0;
    }
}

impl Sub<Instant> for Instant {
    type Output = Span;
    fn sub(self, earlier: Instant) -> Span {
        Span(self.0 - earlier.0)
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0 + other.0)
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Span) {
        self.0 += other.0;
    }
}

impl Sub for Span {
    type Output = Span;
    fn sub(self, other: Span) -> Span {
        Span(self.0 - other.0)
    }
}

impl SubAssign for Span {
    fn sub_assign(&mut self, other: Span) {
        self.0 -= other.0;
    }
}

impl Mul<u64> for Span {
    type Output = Span;
    fn mul(self, factor: u64) -> Span {
        Span(self.0 * factor)
    }
}

impl Div<u64> for Span {
    type Output = Span;
    fn div(self, divisor: u64) -> Span {
        Span(self.0 / divisor)
    }
}

impl From<Duration> for Span {
    /// At most [`Span::MAX`].
    fn from(duration: Duration) -> Span {
        Span(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Span> for Duration {
    fn from(span: Span) -> Duration {
        Duration::from_nanos(span.0)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Span(self.0).fmt(f)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0;
        if ns.is_multiple_of(NANOS_PER_SEC) {
            write!(f, "{}s", ns / NANOS_PER_SEC)
        } else if ns >= NANOS_PER_SEC {
            write!(f, "{}s", self.as_secs_f64())
        } else if ns >= 1_000_000 {
            write!(f, "{}ms", ns as f64 / 1e6)
        } else if ns >= 1_000 {
            write!(f, "{}us", ns as f64 / 1e3)
        } else {
            write!(f, "{ns}ns")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_round_to_the_nearest_nanosecond() {
        assert_eq!(Span::from_secs_f64(0.056), Span::from_millis(56));
        assert_eq!(Span::from_secs_f64(1.0 / 150.0).as_nanos(), 6_666_667);
    }

    #[test]
    fn seconds_that_are_no_length_of_time_saturate() {
        assert_eq!(Span::from_secs_f64(-1.0), Span::ZERO);
        assert_eq!(Span::from_secs_f64(f64::NAN), Span::ZERO);
        assert_eq!(Span::from_secs_f64(f64::INFINITY), Span::MAX);
    }

    #[test]
    fn an_instant_less_an_instant_is_a_span() {
        let start = Instant::from_nanos(40);
        let end = start + Span::from_nanos(2);
        assert_eq!(end - start, Span::from_nanos(2));
        assert_eq!(start.saturating_since(end), Span::ZERO);
        assert_eq!(Span::from_nanos(1).signed_sub(Span::from_nanos(3)).as_nanos(), -2);
    }

    #[test]
    fn spans_print_in_the_largest_fitting_unit() {
        use std::string::ToString;
        assert_eq!(Span::from_secs(100).to_string(), "100s");
        assert_eq!(Span::from_millis(280).to_string(), "280ms");
        assert_eq!(Span::from_micros(15).to_string(), "15us");
        assert_eq!(Span::from_nanos(7).to_string(), "7ns");
    }
}
