//! Timing of the loop of `attach`.

use aqumen_units::{Instant, Span};

/// Longest time between two readings.
const INTERVAL_MAX: Span = Span::from_millis(10);
/// Shortest time between two readings, however short the AQM's period.
const INTERVAL_MIN: Span = Span::from_millis(2);

/// Periodic timer, due immediately at first.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeriodicTimer {
    period: Span,
    due: Instant,
}

impl PeriodicTimer {
    pub(super) fn new(period: Span) -> Self {
        PeriodicTimer { period, due: Instant::ZERO }
    }

    /// Returns whether the timer is due, and then restarts it.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        if now < self.due {
            return false;
        }
        self.due = now + self.period;
        true
    }
}

/// Time of the next reading, if the AQM's next step is at `timer`.
pub(super) fn next_reading(now: Instant, timer: Option<Instant>) -> Instant {
    timer.unwrap_or(Instant::MAX).min(now + INTERVAL_MAX).max(now + INTERVAL_MIN)
}

/// Number of readings missed since the one that was `due`.
pub(super) fn missed_readings(now: Instant, due: Instant) -> u64 {
    now.saturating_since(due).as_nanos() / INTERVAL_MAX.as_nanos()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instant(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn a_timer_is_due_at_once_and_then_a_period_after_it_fired() {
        let mut second = PeriodicTimer::new(Span::from_secs(1));
        let due = [0, 1, 999, 1000, 1001, 2500, 3499, 3500].map(|ms| second.is_due(instant(ms)));
        assert_eq!(due, [true, false, false, true, false, true, false, true]);
    }

    #[test]
    fn readings_follow_the_aqms_timer_within_two_and_ten_milliseconds() {
        let next_ms = |timer: Option<u64>| next_reading(instant(100), timer.map(instant)).as_nanos() as f64 / 1e6;
        assert_eq!([Some(105), Some(130), Some(101), Some(90), None].map(next_ms), [105.0, 110.0, 102.0, 102.0, 110.0]);
    }

    #[test]
    fn a_reading_is_missed_for_each_ten_milliseconds_of_delay() {
        let missed_at = |ms| missed_readings(instant(ms), instant(1000));
        assert_eq!([990, 1000, 1009, 1010, 1035].map(missed_at), [0, 0, 0, 1, 3]);
    }
}
