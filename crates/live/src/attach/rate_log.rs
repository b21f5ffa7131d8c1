//! Changes of a link's rate as events, for a log: one for each change, however many steps an estimate takes to it.

use aqumen_units::{Instant, Span};

/// A rate that has not changed for this time is where the change led.
const SETTLED: Span = Span::from_secs(2);
/// A rate that goes on changing is told as often as this.
const PATIENCE: Span = Span::from_secs(10);

/// The rate as it was told, and as it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateLog {
    told_bps: u64,
    last_bps: u64,
    /// When it left the rate that was told, and when it changed last.
    left: Instant,
    changed: Instant,
}

impl RateLog {
    /// From `bps` on.
    pub(super) fn new(bps: u64) -> Self {
        RateLog { told_bps: bps, last_bps: bps, left: Instant::ZERO, changed: Instant::ZERO }
    }

    /// The rate is `bps` now. A change that is over: from which rate to which.
    pub(super) fn see(&mut self, now: Instant, bps: u64) -> Option<(u64, u64)> {
        if bps != self.last_bps {
            if self.last_bps == self.told_bps {
                self.left = now;
            }
            (self.last_bps, self.changed) = (bps, now);
        }
        let over = now.saturating_since(self.changed) >= SETTLED || now.saturating_since(self.left) >= PATIENCE;
        if bps == self.told_bps || !over {
            return None;
        }
        self.left = now;
        Some((std::mem::replace(&mut self.told_bps, bps), bps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told when, of a rate that is so at each tenth of a second.
    fn told(rates: impl Iterator<Item = u64>) -> Vec<(u64, (u64, u64))> {
        let mut log = RateLog::new(20);
        let times = (0..).map(|tenth: u64| Instant::from_nanos(tenth * 100_000_000));
        times
            .zip(rates)
            .filter_map(|(at, bps)| log.see(at, bps).map(|event| (at.as_nanos() / 100_000_000, event)))
            .collect()
    }

    #[test]
    fn a_change_is_one_event_once_the_rate_has_settled() {
        // 20 for a second, through 15 and 9 to 6, and after 5 s back.
        let steps = [(20, 10), (15, 3), (9, 4), (6, 50), (20, 50)];
        let rates = steps.iter().flat_map(|(bps, tenths)| std::iter::repeat_n(*bps, *tenths));
        // It became 6 at tenth 17, and 20 at tenth 67.
        assert_eq!(told(rates), [(37, (20, 6)), (87, (6, 20))]);
    }

    #[test]
    fn a_rate_that_comes_back_has_not_changed() {
        let steps = [(20, 10), (15, 10), (20, 50)];
        assert_eq!(told(steps.iter().flat_map(|(bps, tenths)| std::iter::repeat_n(*bps, *tenths))), []);
    }

    #[test]
    fn a_rate_that_never_settles_is_told_each_ten_seconds() {
        let events = told((0..300).map(|tenth| 20 + tenth));
        let times: Vec<u64> = events.iter().map(|(at, _)| *at).collect();
        assert_eq!(times, [101, 202]);
        assert_eq!(events[1].1, (20 + 101, 20 + 202));
    }
}
