//! The operating system's clock as instants.

use crate::{Instant, Span};

/// Monotonic clock of the operating system, counted from the moment at which it was started.
///
/// ```
/// use aqumen_units::{Clock, Span};
/// use std::time::{Duration, Instant};
///
/// let clock = Clock::start();
/// let now = Instant::now();
/// let timer = clock.at(now) + Span::from_millis(16);
/// // When an algorithm's timer is due, for the program's event loop.
/// assert_eq!(clock.moment(timer), now + Duration::from_millis(16));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch: std::time::Instant,
}

impl Clock {
    /// Starts a clock: now is [`Instant::ZERO`].
    pub fn start() -> Self {
        Clock { epoch: std::time::Instant::now() }
    }

    /// The current time.
    pub fn now(&self) -> Instant {
        self.at(std::time::Instant::now())
    }

    /// The instant of `moment`; [`Instant::ZERO`] if it was before the start.
    pub fn at(&self, moment: std::time::Instant) -> Instant {
        Instant::ZERO.saturating_add(moment.saturating_duration_since(self.epoch).into())
    }

    /// The moment of `instant`, for timers of the operating system.
    pub fn moment(&self, instant: Instant) -> std::time::Instant {
        // What the system cannot represent is never reached: a day from now serves a timer as well.
        let ahead = (instant - Instant::ZERO).into();
        self.epoch.checked_add(ahead).unwrap_or_else(|| std::time::Instant::now() + Span::from_secs(86_400).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_before_the_start_and_beyond_all_time_saturate() {
        let clock = Clock::start();
        let before = clock.epoch.checked_sub(Span::from_nanos(1).into()).unwrap_or(clock.epoch);
        assert_eq!(clock.at(before), Instant::ZERO);
        assert!(clock.moment(Instant::MAX) > clock.epoch);
    }

    #[test]
    fn time_goes_on() {
        let clock = Clock::start();
        let first = clock.now();
        assert!(clock.now() >= first);
    }
}
