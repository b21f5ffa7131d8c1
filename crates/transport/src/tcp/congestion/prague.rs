//! TCP Prague, the congestion control of L4S (RFC 9331) by draft-briscoe-iccrg-prague-congestion-control-04: DCTCP's
//! law on the receiver's count of marked packets (RFC 9768), paced, with the aggressiveness of a 25 ms flow at shorter
//! round-trip times.
//!
//! ```text
//!   once a virtual round trip:  alpha += (F - alpha) / 16               F: fraction of the packets that were marked
//!   on a mark:                  cwnd = cwnd (1 - alpha / 2)             at most once a virtual round trip
//!   unmarked packets:           cwnd += (n - marks) / cwnd (r / R)^2    r: round trip, R = max(r, 25 ms): virtual
//! ```
//!
//! A flow of round-trip time R gains one segment per R, a rate increase of 1/R^2. With r < R the same increase takes
//! (r/R)^2 segments per round trip.
//!
//! Packets are ECT(1), retransmissions included. Losses halve the window.
//!
//! Deviations from the draft and from Linux:
//! - Growth is independent of the round-trip time from the first reduction on, instead of after 500 rounds, which few
//!   simulations reach.
//! - A mark and a loss in the same round trip are answered separately.
//! - The window is at least [`min_window`](crate::tcp::TcpConfig::min_window). There is no fall-back for a bottleneck
//!   with classic ECN.
//! - The mark count is exact, instead of modulo 8 as in the header field ACE (RFC 9768 section 3.2.2).

use aqumen_units::{Ecn, Instant, Span};

use super::controller::{AckSample, Controller, Properties, RequiredFeedback, Window, may_grow};
use crate::tcp::{Segment, TcpConfig};

const GAIN: f64 = 1.0 / 16.0;
/// Virtual round-trip time, whose aggressiveness shorter ones adopt.
const VIRTUAL_RTT: Span = Span::from_millis(25);

/// State of Prague.
#[derive(Clone, Debug)]
pub(super) struct Prague {
    alpha: f64,
    delivered: u32,
    marked: u32,
    /// Smoothed round-trip time (s); 0: unknown.
    srtt_s: f64,
    /// Start of the observation, and the segment whose acknowledgement ends it.
    since: Instant,
    end: u32,
    /// Last reduction for a mark, and the segment that must be acknowledged before the next.
    reduced_at: Instant,
    reduced: u32,
}

impl Prague {
    pub(super) const PROPERTIES: Properties = Properties {
        feedback: RequiredFeedback::MarkCount,
        ecn: Some("true with DCTCP or Prague, which respond to marks"),
        pacing: Some("true with BBR or Prague, which are paced"),
        handles_marks: true,
        ..Properties::RENO
    };

    pub(super) fn new() -> Self {
        Prague {
            alpha: 1.0,
            delivered: 0,
            marked: 0,
            srtt_s: 0.0,
            since: Instant::ZERO,
            end: 0,
            reduced_at: Instant::ZERO,
            reduced: 0,
        }
    }

    /// Growth per round trip (segments): (r / R)^2.
    fn growth(&self) -> f64 {
        let part = (self.srtt_s / VIRTUAL_RTT.as_secs_f64()).min(1.0);
        part * part
    }

    fn end_observation(&mut self, acked: &AckSample) {
        let round_over = acked.una > self.end && acked.now.saturating_since(self.since) >= VIRTUAL_RTT;
        if !round_over || self.delivered == 0 {
            return;
        }
        let fraction = (f64::from(self.marked) / f64::from(self.delivered)).min(1.0);
        self.alpha += (fraction - self.alpha) * GAIN;
        (self.delivered, self.marked) = (0, 0);
        (self.since, self.end) = (acked.now, acked.high);
    }
}

impl Controller for Prague {
    fn on_ack(&mut self, cfg: &TcpConfig, acked: &AckSample, window: &mut Window) {
        if let Some(rtt) = acked.rtt {
            let sample = rtt.as_secs_f64();
            self.srtt_s = if self.srtt_s == 0.0 { sample } else { self.srtt_s + (sample - self.srtt_s) / 8.0 };
        }
        if acked.opening {
            return;
        }
        self.delivered += acked.delivered;
        self.marked += acked.marks;
        self.end_observation(acked);
        let slow_start = window.in_slow_start();
        let later = acked.now.saturating_since(self.reduced_at) >= VIRTUAL_RTT;
        if acked.marks > 0 && !acked.repairing && acked.una > self.reduced && (later || self.reduced == 0) {
            window.settle((window.cwnd * (1.0 - self.alpha / 2.0)).max(cfg.min_window));
            self.reduced = acked.high;
            self.reduced_at = acked.now;
        }
        if !may_grow(cfg, acked, window) {
            return;
        }
        let unmarked = (acked.counted(cfg) - f64::from(acked.marks)).max(0.0);
        if slow_start {
            if acked.marks == 0 {
                window.cwnd += unmarked;
            }
        } else {
            window.cwnd += unmarked / window.cwnd * self.growth();
        }
    }

    fn on_sent(&mut self, _now: Instant, segment: &mut Segment, _idle: bool) {
        if segment.ecn == Ecn::Ect0 {
            segment.ecn = Ecn::Ect1; // RFC 9331 section 4.1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::controller::tests::acked;
    use super::*;

    fn one(millis: u64, una: u32, high: u32, segments: u32, marks: u32) -> AckSample {
        let now = Instant::ZERO + Span::from_millis(millis);
        AckSample { now, una, high, segments, delivered: segments, marks, flight: 1_000_000, ..acked() }
    }

    #[test]
    fn alpha_follows_the_fraction_of_marks_once_a_virtual_round_trip() {
        let cfg = TcpConfig::prague();
        let (mut prague, mut window) = (Prague::new(), Window { cwnd: 100.0, ssthresh: 100 });
        prague.alpha = 0.5;
        // 40 packets, 10 marked, but only 24 ms: no update.
        prague.on_ack(&cfg, &one(24, 41, 100, 40, 10), &mut window);
        assert_eq!(prague.alpha, 0.5);
        // 40 more, 30 marked, at 30 ms: F = 40 / 80, alpha = 0.5.
        prague.on_ack(&cfg, &one(30, 81, 140, 40, 30), &mut window);
        assert_eq!(prague.alpha, 0.5);
        // 60 unmarked packets beyond segment 140: F = 0, alpha = 0.5 x 15/16.
        prague.on_ack(&cfg, &one(60, 141, 200, 60, 0), &mut window);
        assert_eq!(prague.alpha, 0.468_75);
    }

    #[test]
    fn marks_reduce_by_half_of_alpha_once_per_virtual_round_trip() {
        let cfg = TcpConfig::prague();
        let mut prague = Prague { alpha: 0.25, end: u32::MAX, ..Prague::new() };
        let mut window = Window { cwnd: 80.0, ssthresh: 40 };
        // 80 x 0.875 = 70; the one packet is marked: no growth.
        prague.on_ack(&cfg, &one(100, 11, 20, 1, 1), &mut window);
        assert_eq!((window.cwnd, window.ssthresh), (70.0, 70));
        // 10 ms later the window of data is acknowledged, but 25 ms have not passed.
        prague.on_ack(&cfg, &one(110, 21, 30, 1, 1), &mut window);
        assert_eq!(window.cwnd, 70.0);
        prague.on_ack(&cfg, &one(125, 31, 40, 1, 1), &mut window);
        assert_eq!(window.cwnd, 61.25);
    }

    #[test]
    fn growth_at_a_short_round_trip_is_quadratic() {
        let cfg = TcpConfig::prague();
        let mut prague = Prague { srtt_s: 0.005, end: u32::MAX, ..Prague::new() };
        let mut window = Window { cwnd: 10.0, ssthresh: 10 };
        // 2 of 2 packets unmarked, 5 ms: 2/10 x (5 / 25)^2 = 0.008.
        prague.on_ack(&cfg, &one(10, 3, 13, 2, 0), &mut window);
        assert!((window.cwnd - 10.008).abs() < 1e-12, "{window:?}");
        // At 50 ms, longer than 25: a whole segment per round trip, 2/10.008.
        prague.srtt_s = 0.05;
        prague.on_ack(&cfg, &one(20, 5, 15, 2, 0), &mut window);
        assert!((window.cwnd - (10.008 + 2.0 / 10.008)).abs() < 1e-12, "{window:?}");
    }
}
