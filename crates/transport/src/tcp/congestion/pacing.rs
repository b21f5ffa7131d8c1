//! Pacing: segments leave evenly over a round trip instead of in bursts.
//!
//! The rate is `gain x cwnd / SRTT` with a gain of 2 in slow start, so that the window can double, and 1.2
//! afterwards, so that the window and not the pacer is the limit: the values that Linux uses. BBR brings its own
//! rate, and bursts of its send quantum. As in Linux a burst that leaves late, because the window held it back, may
//! have the next come up to half its time sooner.
//!
//! Deviations from deployed stacks: single segments but for BBR, since a simulated host has no segmentation offload to
//! feed; nothing is paced before the first round-trip sample.

use aqumen_units::{Instant, Span};

use super::controller::Window;

/// Gain in slow start.
const SLOW_START_GAIN: f64 = 2.0;
/// Gain in congestion avoidance.
const GAIN: f64 = 1.2;

/// When the next segment may leave.
#[derive(Clone, Debug, Default)]
pub(super) struct Pacer {
    release: Instant,
    /// When the last burst began, and how many more segments belong to it.
    burst_at: Instant,
    burst_left: u32,
    /// By how much the burst left late, as far as it was not made good.
    credit: Span,
    /// Smoothed round trip, gain 1/8 as in RFC 6298, not rounded to a clock's tick (s); 0: no sample yet.
    srtt_s: f64,
}

impl Pacer {
    pub(super) fn on_rtt(&mut self, rtt: Span) {
        let sample = rtt.as_secs_f64();
        self.srtt_s = if self.srtt_s == 0.0 { sample } else { self.srtt_s + (sample - self.srtt_s) / 8.0 };
    }

    /// Segments a second for `window`; `None` before the first sample.
    pub(super) fn rate_of(&self, window: &Window) -> Option<f64> {
        (self.srtt_s > 0.0).then(|| pace_gain(window) * window.cwnd.max(1.0) / self.srtt_s)
    }

    /// A segment left at `now`; the next may follow as `rate` (segments/s) says, or at once while fewer than `quantum`
    /// have left at this moment. Of the time by which it left late up to half is made good.
    pub(super) fn on_sent(&mut self, now: Instant, rate: f64, quantum: u32) {
        if now == self.burst_at && self.burst_left > 0 {
            self.burst_left -= 1;
        } else {
            (self.burst_at, self.burst_left) = (now, quantum - 1);
            // Nothing was held back before the first, or before what follows a timeout.
            let held = self.release > Instant::ZERO;
            self.credit = if held { now.saturating_since(self.release) } else { Span::ZERO };
            self.release = self.release.max(now);
        }
        // At least one segment a minute: a rate of zero must not stop a connection for ever.
        let gap = Span::from_secs_f64((1.0 / rate).min(60.0));
        let credit = self.credit.min(gap / 2);
        self.credit -= credit;
        self.release = self.release.saturating_add(gap - credit);
    }

    /// The earliest moment, seen from `now`, at which a segment may leave.
    pub(super) fn release(&self, now: Instant) -> Instant {
        if now == self.burst_at && self.burst_left > 0 { now } else { self.release }
    }

    pub(super) fn release_now(&mut self) {
        self.release = Instant::ZERO;
    }
}

/// Windows a round trip at which a window is paced.
pub(in crate::tcp) fn pace_gain(window: &Window) -> f64 {
    if window.in_slow_start() { SLOW_START_GAIN } else { GAIN }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    #[test]
    fn a_window_is_spread_over_a_round_trip_with_a_gain() {
        let mut pacer = Pacer::default();
        let window = Window { cwnd: 10.0, ssthresh: 10 };
        assert_eq!(pacer.rate_of(&window), None, "no round trip is known");
        pacer.on_rtt(Span::from_millis(120));
        // Congestion avoidance: 1.2 x 10 / 0.12 s = 100 segments/s, one each 10 ms.
        assert!((pacer.rate_of(&window).unwrap() - 100.0).abs() < 1e-9);
        // Slow start: 2 x 10 / 0.12 s.
        let opening = Window { ssthresh: 11, ..window };
        assert!((pacer.rate_of(&opening).unwrap() - 20.0 / 0.12).abs() < 1e-9);
        // 120 + (200 - 120) / 8 = 130 ms.
        pacer.on_rtt(Span::from_millis(200));
        assert!((pacer.rate_of(&window).unwrap() - 12.0 / 0.13).abs() < 1e-9);
    }

    #[test]
    fn what_left_late_is_made_good_by_half_a_gap_at_most() {
        let mut pacer = Pacer::default();
        let leaves = |pacer: &mut Pacer, when, next| {
            pacer.on_sent(at(when), 100.0, 1);
            assert_eq!(pacer.release(at(when)), at(next), "after {when} ms");
        };
        leaves(&mut pacer, 0, 10);
        leaves(&mut pacer, 10, 20);
        // 3 ms late: the next comes 3 ms sooner after it.
        leaves(&mut pacer, 23, 30);
        // Half a second late: half a gap, and nothing is left of the rest.
        leaves(&mut pacer, 530, 535);
        leaves(&mut pacer, 535, 545);
    }

    #[test]
    fn a_quantum_leaves_at_once_and_its_time_is_that_of_its_segments() {
        let mut pacer = Pacer::default();
        pacer.on_sent(at(100), 100.0, 3);
        assert_eq!(pacer.release(at(100)), at(100));
        // Later it is no burst any more.
        assert_eq!(pacer.release(at(101)), at(110));
        pacer.on_sent(at(100), 100.0, 3);
        assert_eq!(pacer.release(at(100)), at(100));
        pacer.on_sent(at(100), 100.0, 3);
        assert_eq!(pacer.release(at(100)), at(130));
        // 12 ms late: of two gaps 5 ms each are made good, of the third what is left.
        for _ in 0..3 {
            pacer.on_sent(at(142), 100.0, 3);
        }
        assert_eq!(pacer.release(at(142)), at(142 + 30 - 12));
    }
}
