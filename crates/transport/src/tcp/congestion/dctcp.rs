//! DCTCP (RFC 8257): the window falls in proportion to the fraction of marked data, half of it when all is marked.
//!
//! ```text
//!   once a window:  alpha = (1 - g) alpha + g M       M: fraction of the acknowledged data that was marked, g = 1/16
//!   on a mark:      cwnd = cwnd (1 - alpha / 2)       at most once a window
//! ```
//!
//! The receiver's part, ECE for exactly the marked segments, is in [`receiver`](crate::tcp::Receiver).
//!
//! After a reduction the window does not grow until the data outstanding then is acknowledged, as in Linux and ns-3;
//! RFC 8257 leaves growth to RFC 5681, which does not cover marks. A loss or a timeout lifts this restriction, as its
//! recovery is Reno's.
//!
//! Deviations: data is counted in segments. A loss halves the window even after a mark in the same window of data
//! (section 3.5 asks for Reno's response).

use super::controller::{AckSample, Controller, Properties, RequiredFeedback, Signal, Window, may_grow, reno_growth};
use crate::tcp::TcpConfig;

/// g, section 4.2.
const GAIN: f64 = 1.0 / 16.0;

/// State of DCTCP.
#[derive(Clone, Debug)]
pub(super) struct Dctcp {
    /// Estimate of the fraction of marked data; 1 at the start, to be cautious (section 4.2).
    alpha: f64,
    acked: u32,
    marked: u32,
    /// Segment whose acknowledgement ends the observation window.
    end: u32,
    /// Segment that must be acknowledged before the next reduction.
    reduction_after: u32,
    /// Segment that must be acknowledged before growth resumes.
    growth_after: u32,
}

impl Dctcp {
    pub(super) const PROPERTIES: Properties = Properties {
        feedback: RequiredFeedback::ExactEce,
        ecn: Some("true with DCTCP or Prague, which respond to marks"),
        handles_marks: true,
        ..Properties::RENO
    };

    pub(super) fn new() -> Self {
        Dctcp { alpha: 1.0, acked: 0, marked: 0, end: 0, reduction_after: 0, growth_after: 0 }
    }
}

impl Controller for Dctcp {
    /// Updates alpha and the window (section 3.3).
    fn on_ack(&mut self, cfg: &TcpConfig, acked: &AckSample, window: &mut Window) {
        if acked.opening {
            return;
        }
        self.acked += acked.segments;
        if acked.echo {
            self.marked += acked.segments;
        }
        if acked.una > self.end && self.acked > 0 {
            let fraction = f64::from(self.marked) / f64::from(self.acked);
            self.alpha = self.alpha * (1.0 - GAIN) + GAIN * fraction;
            self.end = acked.high;
            (self.acked, self.marked) = (0, 0);
        }
        if acked.echo {
            if acked.una > self.reduction_after && !acked.repairing {
                window.settle((window.cwnd * (1.0 - self.alpha / 2.0)).max(cfg.min_window));
                self.reduction_after = acked.high;
                self.growth_after = acked.high;
            }
        } else if acked.una > self.growth_after && may_grow(cfg, acked, window) {
            window.cwnd = reno_growth(window.cwnd, window.in_slow_start(), acked.counted(cfg));
        }
    }

    /// Reduction factor for a loss or a timeout (section 3.5).
    fn on_congestion(&mut self, _cfg: &TcpConfig, _signal: Signal, _window: &mut Window) -> Option<f64> {
        self.growth_after = 0;
        Some(0.5)
    }
}

#[cfg(test)]
mod tests {
    use super::super::controller::tests::acked;
    use super::*;

    fn one(una: u32, high: u32, segments: u32, echo: bool) -> AckSample {
        AckSample { una, high, segments, echo, flight: 1_000_000, ..acked() }
    }

    #[test]
    fn alpha_is_a_moving_average_of_the_marked_fraction() {
        let cfg = TcpConfig::dctcp();
        let (mut dctcp, mut window) = (Dctcp::new(), Window { cwnd: 100.0, ssthresh: 100 });
        // The first acknowledgement ends the first observation window: alpha = 15/16 x 1 + 1/16 x 0.
        dctcp.on_ack(&cfg, &one(1, 100, 1, false), &mut window);
        assert_eq!(dctcp.alpha, 0.9375);
        // 25 of the next 100 are marked: alpha = 15/16 x 0.9375 + 1/16 x 0.25 = 0.89453125, exact in f64.
        dctcp.on_ack(&cfg, &one(76, 150, 75, false), &mut window);
        dctcp.on_ack(&cfg, &one(101, 200, 25, true), &mut window);
        assert_eq!(dctcp.alpha, 0.894_531_25);
    }

    #[test]
    fn a_mark_reduces_by_half_of_alpha_once_per_window() {
        let cfg = TcpConfig::dctcp();
        let mut dctcp = Dctcp { alpha: 0.25, end: 1000, ..Dctcp::new() };
        let mut window = Window { cwnd: 80.0, ssthresh: 40 };
        // 80 x (1 - 0.125) = 70.
        dctcp.on_ack(&cfg, &one(10, 90, 1, true), &mut window);
        assert_eq!(window, Window { cwnd: 70.0, ssthresh: 70 });
        // Within the window of data up to segment 90 no reduction; beyond it 70 x 0.875 = 61.25.
        dctcp.on_ack(&cfg, &one(90, 160, 80, true), &mut window);
        assert_eq!(window.cwnd, 70.0);
        dctcp.on_ack(&cfg, &one(91, 161, 1, true), &mut window);
        assert_eq!(window.cwnd, 61.25);
        // No mark: no growth up to segment 161, then 1/61.25 for each counted segment.
        dctcp.on_ack(&cfg, &one(161, 222, 69, false), &mut window);
        assert_eq!(window.cwnd, 61.25);
        dctcp.on_ack(&cfg, &one(162, 223, 1, false), &mut window);
        assert_eq!(window.cwnd, 61.25 + 1.0 / 61.25);
    }

    /// A hundred segments are outstanding at a mark, and then lost: slow start begins at once.
    #[test]
    fn a_timeout_in_the_window_of_a_reduction_lets_the_window_grow() {
        let cfg = TcpConfig::dctcp();
        let (mut dctcp, mut window) = (Dctcp::new(), Window { cwnd: 100.0, ssthresh: 100 });
        dctcp.on_ack(&cfg, &one(10, 110, 1, true), &mut window);
        assert!(window.cwnd < 60.0);
        dctcp.on_ack(&cfg, &one(11, 110, 1, false), &mut window);
        let held = window.cwnd;
        assert_eq!(dctcp.on_congestion(&cfg, Signal::Loss, &mut window), Some(0.5));
        window = Window { cwnd: 1.0, ssthresh: (held / 2.0) as u32 };
        dctcp.on_ack(&cfg, &one(12, 110, 1, false), &mut window);
        assert_eq!(window.cwnd, 2.0);
        // A mark in the same window of data causes no second reduction.
        dctcp.on_ack(&cfg, &one(13, 110, 1, true), &mut window);
        assert_eq!(window.cwnd, 2.0);
    }

    #[test]
    fn full_marking_halves_the_window_down_to_its_minimum() {
        let cfg = TcpConfig::dctcp();
        let mut dctcp = Dctcp { end: u32::MAX, ..Dctcp::new() };
        let mut window = Window { cwnd: 7.0, ssthresh: 7 };
        dctcp.on_ack(&cfg, &one(1, 8, 1, true), &mut window);
        assert_eq!(window.cwnd, 3.5);
        dctcp.on_ack(&cfg, &one(9, 12, 1, true), &mut window);
        // 1.75 is below the floor of two.
        assert_eq!(window.cwnd, 2.0);
    }
}
