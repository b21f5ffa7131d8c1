//! Pacing: spreads segments evenly over a round trip instead of sending bursts.
//!
//! The rate is `gain x cwnd / SRTT`. As in Linux the gain is 2 in slow start, so that the window can double, and 1.2
//! afterwards, so that the window remains the limit. BBR sets its own rate and sends bursts of its send quantum. As in
//! Linux, a burst that the window has delayed advances the next one by up to half its duration.
//!
//! Deviations from deployed stacks: single segments except for BBR. Nothing is paced before the first round-trip
//! sample.

use aqumen_units::{Instant, Span};

use super::controller::Window;

/// Gain in slow start.
const SLOW_START_GAIN: f64 = 2.0;
/// Gain in congestion avoidance.
const GAIN: f64 = 1.2;

/// Pacer of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Pacer {
    release: Instant,
    /// Time of the last burst, and its remaining segments.
    burst_at: Instant,
    burst_left: u32,
    /// Delay of the burst, as far as it has not been made up.
    credit: Span,
    /// Smoothed round-trip time (s), gain 1/8 as in RFC 6298, without clock granularity; 0: no sample.
    srtt_s: f64,
}

impl Pacer {
    pub(super) fn on_rtt(&mut self, rtt: Span) {
        let sample = rtt.as_secs_f64();
        self.srtt_s = if self.srtt_s == 0.0 { sample } else { self.srtt_s + (sample - self.srtt_s) / 8.0 };
    }

    /// Pacing rate (segments/s) of `window`; `None` before the first sample.
    pub(super) fn rate(&self, window: &Window) -> Option<f64> {
        (self.srtt_s > 0.0).then(|| pace_gain(window) * window.cwnd.max(1.0) / self.srtt_s)
    }

    /// Records a segment sent at `now`. The next one follows after 1/`rate` (segments/s), or at once while fewer than
    /// `quantum` have been sent at this time. Up to half of a delay is made up.
    pub(super) fn on_sent(&mut self, now: Instant, rate: f64, quantum: u32) {
        if now == self.burst_at && self.burst_left > 0 {
            self.burst_left -= 1;
        } else {
            (self.burst_at, self.burst_left) = (now, quantum - 1);
            // No delay before the first segment or after a timeout.
            let delayed = self.release > Instant::ZERO;
            self.credit = if delayed { now.saturating_since(self.release) } else { Span::ZERO };
            self.release = self.release.max(now);
        }
        // At least one segment per minute, so that a rate of zero does not stop the connection.
        let gap = Span::from_secs_f64((1.0 / rate).min(60.0));
        let credit = self.credit.min(gap / 2);
        self.credit -= credit;
        self.release = self.release.saturating_add(gap - credit);
    }

    /// Earliest time of the next segment, at `now`.
    pub(super) fn release(&self, now: Instant) -> Instant {
        if now == self.burst_at && self.burst_left > 0 { now } else { self.release }
    }

    pub(super) fn release_now(&mut self) {
        self.release = Instant::ZERO;
    }
}

/// Pacing gain: windows per round trip.
pub(in crate::tcp) fn pace_gain(window: &Window) -> f64 {
    if window.in_slow_start() { SLOW_START_GAIN } else { GAIN }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ms;

    #[test]
    fn a_window_is_spread_over_a_round_trip_with_a_gain() {
        let mut pacer = Pacer::default();
        let window = Window { cwnd: 10.0, ssthresh: 10 };
        assert_eq!(pacer.rate(&window), None, "no round trip is known");
        pacer.on_rtt(Span::from_millis(120));
        // Congestion avoidance: 1.2 x 10 / 0.12 s = 100 segments/s, one per 10 ms.
        assert!((pacer.rate(&window).unwrap() - 100.0).abs() < 1e-9);
        // Slow start: 2 x 10 / 0.12 s.
        let opening = Window { ssthresh: 11, ..window };
        assert!((pacer.rate(&opening).unwrap() - 20.0 / 0.12).abs() < 1e-9);
        // 120 + (200 - 120) / 8 = 130 ms.
        pacer.on_rtt(Span::from_millis(200));
        assert!((pacer.rate(&window).unwrap() - 12.0 / 0.13).abs() < 1e-9);
    }

    #[test]
    fn a_late_segment_advances_the_next_by_half_a_gap_at_most() {
        let mut pacer = Pacer::default();
        let leaves = |pacer: &mut Pacer, when, next| {
            pacer.on_sent(ms(when), 100.0, 1);
            assert_eq!(pacer.release(ms(when)), ms(next), "after {when} ms");
        };
        leaves(&mut pacer, 0, 10);
        leaves(&mut pacer, 10, 20);
        // 3 ms late: the next one is 3 ms earlier.
        leaves(&mut pacer, 23, 30);
        // Half a second late: half a gap is made up, the rest is lost.
        leaves(&mut pacer, 530, 535);
        leaves(&mut pacer, 535, 545);
    }

    #[test]
    fn a_send_quantum_is_a_burst_with_the_duration_of_its_segments() {
        let mut pacer = Pacer::default();
        pacer.on_sent(ms(100), 100.0, 3);
        assert_eq!(pacer.release(ms(100)), ms(100));
        // The burst ends with its time.
        assert_eq!(pacer.release(ms(101)), ms(110));
        pacer.on_sent(ms(100), 100.0, 3);
        assert_eq!(pacer.release(ms(100)), ms(100));
        pacer.on_sent(ms(100), 100.0, 3);
        assert_eq!(pacer.release(ms(100)), ms(130));
        // 12 ms late: two gaps make up 5 ms each, the third the rest.
        for _ in 0..3 {
            pacer.on_sent(ms(142), 100.0, 3);
        }
        assert_eq!(pacer.release(ms(142)), ms(142 + 30 - 12));
    }
}
