//! Pacing: segments leave evenly over a round trip instead of in bursts.
//!
//! The rate is `gain x cwnd / SRTT` with a gain of 2 in slow start, so that the window can double, and 1.2 afterwards, so
//! that the window and not the pacer is the limit: the values that Linux uses. BBR brings its own rate.
//!
//! Deviations from deployed stacks: single segments, since a simulated host has no segmentation offload to feed; time
//! without sending earns no credit; nothing is paced before the first round-trip sample.

use aqumen_units::{Instant, Span};

use super::Window;

/// Gain in slow start.
const SLOW_START_GAIN: f64 = 2.0;
/// Gain in congestion avoidance.
const GAIN: f64 = 1.2;

/// When the next segment may leave.
#[derive(Clone, Debug, Default)]
pub(super) struct Pacer {
    release: Instant,
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
        let gain = if window.in_slow_start() { SLOW_START_GAIN } else { GAIN };
        (self.srtt_s > 0.0).then(|| gain * window.cwnd.max(1.0) / self.srtt_s)
    }

    /// A segment left at `now`; the next may follow as `rate` (segments/s) says.
    pub(super) fn on_sent(&mut self, now: Instant, rate: f64) {
        // At least one segment a minute: a rate of zero must not stop a connection for ever.
        self.release = self.release.max(now).saturating_add(Span::from_secs_f64((1.0 / rate).min(60.0)));
    }

    pub(super) fn release(&self) -> Instant {
        self.release
    }

    pub(super) fn release_now(&mut self) {
        self.release = Instant::ZERO;
    }
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
    fn time_without_sending_earns_no_credit() {
        let mut pacer = Pacer::default();
        pacer.on_sent(at(0), 100.0);
        assert_eq!(pacer.release(), at(10));
        pacer.on_sent(at(10), 100.0);
        assert_eq!(pacer.release(), at(20));
        pacer.on_sent(at(500), 100.0);
        assert_eq!(pacer.release(), at(510));
    }
}
