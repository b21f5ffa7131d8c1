//! DCTCP (RFC 8257): the window falls in proportion to the fraction of marked data, half of it when all is marked.
//!
//! ```text
//!   once a window:  alpha = (1 - g) alpha + g M       M: fraction of the acknowledged data that was marked, g = 1/16
//!   on a mark:      cwnd = cwnd (1 - alpha / 2)       at most once a window
//! ```
//!
//! The receiver's half, which makes ECE say exactly what was marked, is in [`receiver`](crate::tcp::Receiver).
//!
//! Until the data that was outstanding at a reduction is acknowledged the window does not grow, marked or not, as
//! in Linux and ns-3; RFC 8257 leaves growth to RFC 5681, which speaks of no marks. A loss or a timeout ends
//! that: its recovery is Reno's.
//!
//! Deviations: data is counted in segments. Losses halve the window even if a mark has reduced it in the same window of
//! data (section 3.5 asks for Reno's reaction).

use super::controller::{Acked, Controller, Needs, Signal, Terms, Window, may_grow, reno_growth};
use crate::tcp::TcpConfig;

/// g, section 4.2.
const GAIN: f64 = 1.0 / 16.0;

/// State of DCTCP.
#[derive(Clone, Debug)]
pub(super) struct Dctcp {
    /// Estimate of the fraction of marked data; 1 at the start (section 4.2: cautious).
    alpha: f64,
    acked: u32,
    marked: u32,
    /// The observation window ends when this segment is acknowledged.
    end: u32,
    /// No second reduction before this segment is acknowledged.
    reduced: u32,
    /// No growth before this segment is acknowledged.
    held: u32,
}

impl Dctcp {
    pub(super) const TERMS: Terms = Terms {
        asks: Needs::EachMark,
        ecn: Some("true: DCTCP and Prague live on marks"),
        handles_marks: true,
        ..Terms::USUAL
    };

    pub(super) fn new() -> Self {
        Dctcp { alpha: 1.0, acked: 0, marked: 0, end: 0, reduced: 0, held: 0 }
    }
}

impl Controller for Dctcp {
    /// Section 3.3.
    fn on_ack(&mut self, cfg: &TcpConfig, acked: &Acked, window: &mut Window) {
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
            if acked.una > self.reduced && !acked.repairing {
                window.settle((window.cwnd * (1.0 - self.alpha / 2.0)).max(cfg.min_window));
                self.reduced = acked.high;
                self.held = acked.high;
            }
        } else if acked.una > self.held && may_grow(cfg, acked, window) {
            window.cwnd = reno_growth(window.cwnd, window.in_slow_start(), acked.counted(cfg));
        }
    }

    /// A loss or a timeout, section 3.5: the factor by which it reduces the window.
    fn on_congestion(&mut self, _cfg: &TcpConfig, _signal: Signal, _window: &mut Window) -> Option<f64> {
        self.held = 0;
        Some(0.5)
    }
}

#[cfg(test)]
mod tests {
    use super::super::controller::tests::acked;
    use super::*;

    fn one(una: u32, high: u32, segments: u32, echo: bool) -> Acked {
        Acked { una, high, segments, echo, flight: 1_000_000, ..acked() }
    }

    #[test]
    fn alpha_is_a_moving_average_of_the_marked_fraction() {
        let cfg = TcpConfig::dctcp();
        let (mut dctcp, mut window) = (Dctcp::new(), Window { cwnd: 100.0, ssthresh: 100 });
        // The first acknowledgement closes the window that began with the connection: alpha = 15/16 x 1 + 1/16 x 0.
        dctcp.on_ack(&cfg, &one(1, 100, 1, false), &mut window);
        assert_eq!(dctcp.alpha, 0.9375);
        // Of the next 100, 25 are marked: alpha = 15/16 x 0.9375 + 1/16 x 0.25 = 0.89453125. Nothing is lost in f64.
        dctcp.on_ack(&cfg, &one(76, 150, 75, false), &mut window);
        dctcp.on_ack(&cfg, &one(101, 200, 25, true), &mut window);
        assert_eq!(dctcp.alpha, 0.894_531_25);
    }

    #[test]
    fn one_mark_cuts_by_half_of_alpha_and_the_next_waits_for_a_window() {
        let cfg = TcpConfig::dctcp();
        let mut dctcp = Dctcp { alpha: 0.25, end: 1000, ..Dctcp::new() };
        let mut window = Window { cwnd: 80.0, ssthresh: 40 };
        // 80 x (1 - 0.125) = 70.
        dctcp.on_ack(&cfg, &one(10, 90, 1, true), &mut window);
        assert_eq!(window, Window { cwnd: 70.0, ssthresh: 70 });
        // Within the window of data to segment 90: nothing; beyond it, again: 70 x 0.875 = 61.25.
        dctcp.on_ack(&cfg, &one(90, 160, 80, true), &mut window);
        assert_eq!(window.cwnd, 70.0);
        dctcp.on_ack(&cfg, &one(91, 161, 1, true), &mut window);
        assert_eq!(window.cwnd, 61.25);
        // No mark: nothing up to segment 161, then a 61.25th for each segment that counts.
        dctcp.on_ack(&cfg, &one(161, 222, 69, false), &mut window);
        assert_eq!(window.cwnd, 61.25);
        dctcp.on_ack(&cfg, &one(162, 223, 1, false), &mut window);
        assert_eq!(window.cwnd, 61.25 + 1.0 / 61.25);
    }

    /// A hundred segments are out at a mark, and lost with what follows: slow start begins at
    /// one at once, not after them.
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
        // A mark in the same window of data asks for no second reduction.
        dctcp.on_ack(&cfg, &one(13, 110, 1, true), &mut window);
        assert_eq!(window.cwnd, 2.0);
    }

    #[test]
    fn if_all_is_marked_it_halves_and_keeps_its_floor() {
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
