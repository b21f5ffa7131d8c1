//! When the loop of `attach` has something to do.

use aqumen_units::{Instant, Span};

/// The longest time between two readings.
const LONGEST: Span = Span::from_millis(10);
/// The shortest, however short the AQM's period.
const SHORTEST: Span = Span::from_millis(2);

/// Something that comes round, the first time at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Every {
    period: Span,
    due: Instant,
}

impl Every {
    /// Once in a `period`.
    pub(super) fn new(period: Span) -> Self {
        Every { period, due: Instant::ZERO }
    }

    /// Whether its time has come; the next is a period after that.
    pub(super) fn comes(&mut self, now: Instant) -> bool {
        if now < self.due {
            return false;
        }
        self.due = now + self.period;
        true
    }
}

/// When to read next, if the AQM wants to be stepped at `timer`.
pub(super) fn next(now: Instant, timer: Option<Instant>) -> Instant {
    timer.unwrap_or(Instant::MAX).min(now + LONGEST).max(now + SHORTEST)
}

/// Readings that there should have been since the one that was `due`.
pub(super) fn missed(now: Instant, due: Instant) -> u64 {
    now.saturating_since(due).as_nanos() / LONGEST.as_nanos()
}

/// bit/s of what left in a time; none in no time.
pub(super) fn rate_bps(bytes: u64, time_s: f64) -> f64 {
    if time_s > 0.0 { 8.0 * bytes as f64 / time_s } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn what_comes_round_comes_at_once_and_then_a_period_after_it_came() {
        let mut second = Every::new(Span::from_secs(1));
        let came = [0, 1, 999, 1000, 1001, 2500, 3499, 3500].map(|ms| second.comes(at(ms)));
        assert_eq!(came, [true, false, false, true, false, true, false, true]);
    }

    #[test]
    fn the_aqm_is_stepped_when_it_wants_within_two_and_ten_milliseconds() {
        let next_ms = |timer: Option<u64>| next(at(100), timer.map(at)).as_nanos() as f64 / 1e6;
        assert_eq!([Some(105), Some(130), Some(101), Some(90), None].map(next_ms), [105.0, 110.0, 102.0, 102.0, 110.0]);
    }

    #[test]
    fn each_ten_milliseconds_that_a_reading_is_late_one_is_missed() {
        let missed_at = |ms| missed(at(ms), at(1000));
        assert_eq!([990, 1000, 1009, 1010, 1035].map(missed_at), [0, 0, 0, 1, 3]);
    }

    #[test]
    fn a_rate_is_bits_over_time() {
        // 12 500 bytes in 10 ms are 10 Mbit/s.
        assert!((rate_bps(12_500, 0.01) - 1e7).abs() < 1e-6);
        assert_eq!(rate_bps(12_500, 0.0), 0.0);
    }
}
