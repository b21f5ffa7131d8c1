//! Interface of congestion controls.

use aqumen_units::{Instant, Span};

use crate::tcp::{Segment, TcpConfig};

/// Requirements and properties of a congestion control. The texts explain a requirement in error messages.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Properties {
    /// Feedback from the receiver.
    pub(super) feedback: RequiredFeedback,
    /// Requires SACK.
    pub(in crate::tcp) sack: Option<&'static str>,
    /// Requires ECN.
    pub(in crate::tcp) ecn: Option<&'static str>,
    /// Requires pacing.
    pub(in crate::tcp) pacing: Option<&'static str>,
    /// Requires a round-trip sample from each acknowledgement.
    pub(in crate::tcp) timestamps: Option<&'static str>,
    /// Whether it is called for each segment, through [`on_sent`](Controller::on_sent) and
    /// [`on_arrival`](Controller::on_arrival).
    pub(super) samples_delivery: bool,
    /// Whether it responds to marks itself, instead of the response of RFC 3168.
    pub(super) handles_marks: bool,
    /// Whether it sets the window during recovery itself, instead of a [`Reduction`](crate::tcp::Reduction).
    pub(super) recovers_by_itself: bool,
    /// Whether it processes an acknowledgement before the sender, as in Linux 2.6.22: the window grows before a loss
    /// reduces it. `repairing` is then the state before the acknowledgement.
    pub(super) precedes_sender: bool,
}

impl Properties {
    /// Properties of Reno (RFC 5681).
    pub(super) const RENO: Properties = Properties {
        feedback: RequiredFeedback::None,
        sack: None,
        ecn: None,
        pacing: None,
        timestamps: None,
        samples_delivery: false,
        handles_marks: false,
        recovers_by_itself: false,
        precedes_sender: false,
    };
}

/// A congestion control; each file implements one, with its `PROPERTIES`.
pub(super) trait Controller {
    /// Processes an acknowledgement.
    fn on_ack(&mut self, cfg: &TcpConfig, acked: &AckSample, window: &mut Window);

    /// Responds to a loss or mark, once per window of data, or a timeout. Returns the factor for the window or flight;
    /// `None` if it has set the window itself.
    fn on_congestion(&mut self, _cfg: &TcpConfig, _signal: Signal, _window: &mut Window) -> Option<f64> {
        Some(0.5)
    }

    /// Called for each segment sent; `idle`: nothing was outstanding before.
    fn on_sent(&mut self, _now: Instant, _segment: &mut Segment, _idle: bool) {}

    /// Called for segments `first..end` that have arrived, before [`on_ack`](Self::on_ack).
    fn on_arrival(&mut self, _now: Instant, _first: u32, _end: u32) {}

    /// Called when the application has no more data, with `in_flight` segments in the network.
    fn on_exhausted(&mut self, _in_flight: u32) {}

    /// Pacing rate (segments/s), unless window and round-trip time determine it.
    fn pacing_rate(&self) -> Option<f64> {
        None
    }

    /// Number of paced segments sent as a burst, at least one.
    fn send_quantum(&self) -> u32 {
        1
    }
}

/// Receiver feedback for a congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum RequiredFeedback {
    None,
    /// ECE for exactly the marked segments (RFC 8257 section 3.2).
    ExactEce,
    /// Total number of marked packets (RFC 9768).
    MarkCount,
    /// One-way delay (RFC 6817 section 2.3).
    OneWayDelay,
}

/// Variables that a control sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::tcp) struct Window {
    /// Congestion window (segments).
    pub(in crate::tcp) cwnd: f64,
    /// Slow-start threshold (segments).
    pub(in crate::tcp) ssthresh: u32,
}

impl Window {
    pub(super) fn in_slow_start(&self) -> bool {
        self.cwnd < f64::from(self.ssthresh)
    }

    /// Sets the window, and ends slow start.
    pub(super) fn settle(&mut self, cwnd: f64) {
        self.cwnd = cwnd;
        self.ssthresh = (cwnd as u32).max(2);
    }
}

/// Summary of an acknowledgement for a congestion control.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct AckSample {
    pub(in crate::tcp) now: Instant,
    /// Segments acknowledged cumulatively.
    pub(in crate::tcp) segments: u32,
    /// Segments delivered since the previous acknowledgement, SACKed ones included.
    pub(in crate::tcp) delivered: u32,
    /// Segments outstanding before it.
    pub(in crate::tcp) flight: u32,
    /// Segments in the network after it, without lost ones.
    pub(in crate::tcp) in_flight: u32,
    /// Segments newly found lost.
    pub(in crate::tcp) lost: u32,
    /// Segments found lost by the timer since the previous acknowledgement.
    pub(in crate::tcp) lost_before: u32,
    /// Round-trip sample.
    pub(in crate::tcp) rtt: Option<Span>,
    /// Whether it echoes a mark.
    pub(in crate::tcp) echo: bool,
    /// Whether the echo blocks window growth.
    pub(in crate::tcp) growth_blocked: bool,
    /// Marked packets counted by the receiver since the previous acknowledgement.
    pub(in crate::tcp) marks: u32,
    /// One-way delay of the last segment received.
    pub(in crate::tcp) delay: Option<Span>,
    /// Oldest segment outstanding after it.
    pub(in crate::tcp) una: u32,
    /// One past the highest segment sent.
    pub(in crate::tcp) high: u32,
    /// Whether the sender is repairing a loss.
    pub(in crate::tcp) repairing: bool,
    /// Phase of the sender after it.
    pub(in crate::tcp) phase: Phase,
    /// Whether it acknowledges the SYN, which sets the initial window.
    pub(in crate::tcp) opening: bool,
}

/// Phase of a sender, for controls that set their window during recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum Phase {
    Open,
    /// In fast recovery.
    Recovery,
    /// Retransmissions after a timeout.
    Timeout,
}

impl AckSample {
    /// Whether the window limited the sender (RFC 7661); slow start may double the used window.
    pub(super) fn window_was_used(&self, cfg: &TcpConfig, window: &Window) -> bool {
        let used = f64::from(self.flight) + 1.0;
        let cwnd = if cfg.whole_windows { libm::floor(window.cwnd) } else { window.cwnd };
        !cfg.validate_window || used >= if window.in_slow_start() { cwnd * 0.5 } else { cwnd }
    }

    /// Segments that count towards growth (RFC 3465).
    pub(super) fn counted(&self, cfg: &TcpConfig) -> f64 {
        f64::from(self.segments.min(cfg.growth_limit))
    }
}

/// Reason for a window reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum Signal {
    Loss,
    /// Echoed mark (RFC 3168).
    Mark,
    Timeout,
}

/// Window growth of RFC 5681 section 3.1 by `counted` acknowledged segments.
#[inline(always)]
pub(in crate::tcp) fn reno_growth(cwnd: f64, slow_start: bool, counted: f64) -> f64 {
    cwnd + if slow_start { counted } else { counted / cwnd }
}

/// Fraction of a whole window that stands for one segment counted towards the next step.
const COUNT: f64 = 1.0 / (1 << 24) as f64;

/// Reno's growth of a whole window by `counted` acknowledged segments, as in Linux. Slow start ends at `ssthresh`; from
/// there on a window of segments makes one.
pub(in crate::tcp) fn whole_growth(cwnd: f64, ssthresh: u32, counted: u32) -> f64 {
    let (cwnd, counted) = whole_slow_start(cwnd, ssthresh, counted);
    count_towards(cwnd, counted, libm::floor(cwnd) as u32)
}

/// Slow start up to `ssthresh`; returns the window and the segments left for congestion avoidance.
pub(super) fn whole_slow_start(cwnd: f64, ssthresh: u32, counted: u32) -> (f64, u32) {
    let space = ssthresh.saturating_sub(cwnd as u32);
    if space == 0 {
        return (cwnd, counted);
    }
    let grown = counted.min(space);
    (libm::floor(cwnd) + f64::from(grown), counted - grown)
}

/// Counts acknowledged segments; `due` of them make one more in the window.
pub(super) fn count_towards(cwnd: f64, counted: u32, due: u32) -> f64 {
    let whole = libm::floor(cwnd);
    let (due, before) = (f64::from(due.max(1)), (cwnd - whole) / COUNT);
    // A count from a larger `due` makes only one segment.
    let (whole, before) = if before >= due { (whole + 1.0, 0.0) } else { (whole, before) };
    let total = before + f64::from(counted);
    let more = libm::floor(total / due);
    whole + more + (total - more * due).min(1e7) * COUNT
}

/// Whether an acknowledgement may increase the window: of new data, outside of recovery, with the window used.
pub(super) fn may_grow(cfg: &TcpConfig, acked: &AckSample, window: &Window) -> bool {
    acked.segments > 0 && !acked.repairing && !acked.opening && acked.window_was_used(cfg, window)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An acknowledgement of one segment without other signals.
    pub(in crate::tcp::congestion) fn acked() -> AckSample {
        AckSample {
            now: Instant::ZERO,
            segments: 1,
            delivered: 1,
            flight: 0,
            in_flight: 0,
            lost: 0,
            rtt: None,
            echo: false,
            growth_blocked: false,
            marks: 0,
            delay: None,
            una: 1,
            high: 2,
            repairing: false,
            phase: Phase::Open,
            lost_before: 0,
            opening: false,
        }
    }

    #[test]
    fn a_whole_window_grows_when_a_window_of_segments_is_counted() {
        // Ten acknowledgements of one segment at ten make eleven, and eleven more twelve.
        let mut cwnd = 10.0;
        for counted in 1..=21 {
            cwnd = whole_growth(cwnd, 10, 1);
            assert_eq!(cwnd as u32, 10 + u32::from(counted >= 10) + u32::from(counted >= 21), "{counted}");
        }
        // Slow start ends at the threshold, and the rest is counted: 6 + 4 = 10, and 8 of 10.
        let cwnd = whole_growth(6.0, 10, 12);
        assert_eq!(cwnd as u32, 10);
        assert_eq!(whole_growth(cwnd, 10, 1) as u32, 10);
        assert_eq!(whole_growth(cwnd, 10, 2) as u32, 11);
        // One acknowledgement may count for several windows: 25 at 4 is six times four and one.
        assert_eq!(whole_growth(4.0, 2, 25) as u32, 10);
        // A count from a window of nine exceeds one of two: one segment, and the count restarts.
        assert_eq!(count_towards(2.0 + 8.0 * COUNT, 1, 2) as u32, 3);
    }
}
