//! Rate changes as log events: one event per change, however many steps the estimate takes.

use aqumen_units::{Instant, Span};

/// Time without a change after which a change is complete.
const SETTLING_TIME: Span = Span::from_secs(2);
/// Longest time between two events while the rate keeps changing.
const EVENT_INTERVAL_MAX: Span = Span::from_secs(10);

/// Rate as last reported, and as it is now.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateLog {
    reported_bps: u64,
    current_bps: u64,
    /// Times of the first change since the last report, and of the last change.
    first_change: Instant,
    last_change: Instant,
}

impl RateLog {
    pub(super) fn new(bps: u64) -> Self {
        RateLog { reported_bps: bps, current_bps: bps, first_change: Instant::ZERO, last_change: Instant::ZERO }
    }

    /// Takes the present rate. Returns a completed change as old and new rate.
    pub(super) fn update(&mut self, now: Instant, bps: u64) -> Option<(u64, u64)> {
        if bps != self.current_bps {
            if self.current_bps == self.reported_bps {
                self.first_change = now;
            }
            (self.current_bps, self.last_change) = (bps, now);
        }
        let complete = now.saturating_since(self.last_change) >= SETTLING_TIME
            || now.saturating_since(self.first_change) >= EVENT_INTERVAL_MAX;
        if bps == self.reported_bps || !complete {
            return None;
        }
        self.first_change = now;
        Some((std::mem::replace(&mut self.reported_bps, bps), bps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reported changes of a rate given at each tenth of a second, with their times in tenths of a second.
    fn events(rates: impl Iterator<Item = u64>) -> Vec<(u64, (u64, u64))> {
        let mut log = RateLog::new(20);
        let times = (0..).map(|tenth: u64| Instant::from_nanos(tenth * 100_000_000));
        times
            .zip(rates)
            .filter_map(|(at, bps)| log.update(at, bps).map(|event| (at.as_nanos() / 100_000_000, event)))
            .collect()
    }

    #[test]
    fn a_change_is_one_event_once_the_rate_has_settled() {
        // 20 for a second, through 15 and 9 to 6, and back after 5 s.
        let steps = [(20, 10), (15, 3), (9, 4), (6, 50), (20, 50)];
        let rates = steps.iter().flat_map(|(bps, tenths)| std::iter::repeat_n(*bps, *tenths));
        // It became 6 at tenth 17, and 20 at tenth 67.
        assert_eq!(events(rates), [(37, (20, 6)), (87, (6, 20))]);
    }

    #[test]
    fn a_rate_that_returns_is_no_change() {
        let steps = [(20, 10), (15, 10), (20, 50)];
        assert_eq!(events(steps.iter().flat_map(|(bps, tenths)| std::iter::repeat_n(*bps, *tenths))), []);
    }

    #[test]
    fn a_rate_that_never_settles_is_reported_every_ten_seconds() {
        let events = events((0..300).map(|tenth| 20 + tenth));
        let times: Vec<u64> = events.iter().map(|(at, _)| *at).collect();
        assert_eq!(times, [101, 202]);
        assert_eq!(events[1].1, (20 + 101, 20 + 202));
    }
}
