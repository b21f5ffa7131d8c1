//! What a congestion control is: what it hears, what it answers, and on what terms it works.

use aqumen_units::{Instant, Span};

use crate::tcp::{Segment, TcpConfig};

/// On what terms a congestion control works. The texts say why it cannot do without, for who tries.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Terms {
    /// What it asks of the receiver.
    pub(super) asks: Needs,
    /// It has to know what arrives beyond a gap: SACK.
    pub(in crate::tcp) sack: Option<&'static str>,
    /// It lives on marks.
    pub(in crate::tcp) ecn: Option<&'static str>,
    /// Its segments have to be paced.
    pub(in crate::tcp) pacing: Option<&'static str>,
    /// Each acknowledgement has to tell a round trip.
    pub(in crate::tcp) timestamps: Option<&'static str>,
    /// It must hear of each segment by itself, through [`on_sent`](Controller::on_sent) and
    /// [`on_arrival`](Controller::on_arrival).
    pub(super) samples_delivery: bool,
    /// Marks are its own business: the reaction of RFC 3168 is not wanted.
    pub(super) handles_marks: bool,
    /// It sets the window in a recovery by itself, and no [`Reduction`](crate::tcp::Reduction) does.
    pub(super) recovers_by_itself: bool,
    /// It sets the window by an acknowledgement before the sender works that in, as Linux 2.6.22 does: one that shows a
    /// loss lets the window grow first. `repairing` then tells of the time before.
    pub(super) goes_first: bool,
}

impl Terms {
    /// None but those of RFC 5681.
    pub(super) const USUAL: Terms = Terms {
        asks: Needs::Nothing,
        sack: None,
        ecn: None,
        pacing: None,
        timestamps: None,
        samples_delivery: false,
        handles_marks: false,
        recovers_by_itself: false,
        goes_first: false,
    };
}

/// A congestion control. Each is one file, with its `TERMS`.
pub(super) trait Controller {
    /// An acknowledgement was worked in.
    fn on_ack(&mut self, cfg: &TcpConfig, acked: &Acked, window: &mut Window);

    /// A loss or mark to react to, once in a window of data, or a timeout: the factor by which what RFC 5681 would
    /// halve is reduced; `None`: it has set the window by itself.
    fn on_congestion(&mut self, _cfg: &TcpConfig, _signal: Signal, _window: &mut Window) -> Option<f64> {
        Some(0.5)
    }

    /// A segment leaves; nothing was outstanding before, if `idle`.
    fn on_sent(&mut self, _now: Instant, _segment: &mut Segment, _idle: bool) {}

    /// Segments `first..end` have arrived, before [`on_ack`](Self::on_ack) of the acknowledgement that says so.
    fn on_arrival(&mut self, _now: Instant, _first: u32, _end: u32) {}

    /// The application has nothing more to send, with `in_flight` segments on their way.
    fn on_exhausted(&mut self, _in_flight: u32) {}

    /// Segments a second, where that does not follow from window and round trip.
    fn pacing_rate(&self) -> Option<f64> {
        None
    }

    /// Segments that leave together where it is paced, at least one.
    fn send_quantum(&self) -> u32 {
        1
    }
}

/// What a congestion control asks of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum Needs {
    Nothing,
    /// ECE says whether the segments acknowledged were marked (RFC 8257 section 3.2).
    EachMark,
    /// How many marked packets came so far (RFC 9768).
    CountOfMarks,
    /// The one-way delay (RFC 6817 section 2.3).
    Delay,
}

/// The two numbers a control sets.
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

    /// The window is `cwnd` from now on, and slow start is over.
    pub(super) fn settle(&mut self, cwnd: f64) {
        self.cwnd = cwnd;
        self.ssthresh = (cwnd as u32).max(2);
    }
}

/// What an acknowledgement said, after the sender has worked it in.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Acked {
    pub(in crate::tcp) now: Instant,
    /// Segments acknowledged by it.
    pub(in crate::tcp) segments: u32,
    /// Segments that have arrived since the one before, those beyond a gap included.
    pub(in crate::tcp) delivered: u32,
    /// Segments outstanding before it.
    pub(in crate::tcp) flight: u32,
    /// Segments in the network after it, lost ones not counted.
    pub(in crate::tcp) in_flight: u32,
    /// Segments found lost by it.
    pub(in crate::tcp) lost: u32,
    /// Segments found lost by the timer since the one before.
    pub(in crate::tcp) lost_before: u32,
    /// A round trip measured by it.
    pub(in crate::tcp) rtt: Option<Span>,
    /// It carries ECE.
    pub(in crate::tcp) echo: bool,
    /// The window may not grow for that: the echo is new, or the answer to it is under way.
    pub(in crate::tcp) held: bool,
    /// Marked packets that the receiver has counted since the one before.
    pub(in crate::tcp) marks: u32,
    /// One-way delay of the last segment to arrive.
    pub(in crate::tcp) delay: Option<Span>,
    /// The oldest segment outstanding after it.
    pub(in crate::tcp) una: u32,
    /// One past the highest segment sent.
    pub(in crate::tcp) high: u32,
    /// The sender repairs a loss.
    pub(in crate::tcp) repairing: bool,
    /// What it is at after it.
    pub(in crate::tcp) phase: Phase,
    /// It answers the SYN, whose acknowledgement sets the initial window.
    pub(in crate::tcp) opening: bool,
}

/// What a sender is at, for controls that set their window in a repair themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum Phase {
    Open,
    /// In fast recovery.
    Recovery,
    /// It sends again what a timeout found outstanding.
    Timeout,
}

impl Acked {
    /// Whether the window was what limited the sender (RFC 7661); slow start may double what was used.
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

/// Why a window is reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum Signal {
    Loss,
    /// ECE after RFC 3168.
    Mark,
    Timeout,
}

/// Growth of RFC 5681 section 3.1: `counted` segments were acknowledged.
#[inline(always)]
pub(in crate::tcp) fn reno_growth(cwnd: f64, slow_start: bool, counted: f64) -> f64 {
    cwnd + if slow_start { counted } else { counted / cwnd }
}

/// A window that is a whole number of segments carries what has been counted towards the next in its fraction: so much
/// for each segment.
const COUNT: f64 = 1.0 / (1 << 24) as f64;

/// Reno's growth of such a window, as in Linux: `counted` segments were acknowledged. Slow start ends at `ssthresh`,
/// and from there on a window of them makes one segment.
pub(in crate::tcp) fn whole_growth(cwnd: f64, ssthresh: u32, counted: u32) -> f64 {
    let (cwnd, counted) = whole_slow_start(cwnd, ssthresh, counted);
    count_towards(cwnd, counted, libm::floor(cwnd) as u32)
}

/// Slow start up to `ssthresh`; what is left of the `counted` segments is for congestion avoidance.
pub(super) fn whole_slow_start(cwnd: f64, ssthresh: u32, counted: u32) -> (f64, u32) {
    let room = ssthresh.saturating_sub(cwnd as u32);
    if room == 0 {
        return (cwnd, counted);
    }
    let grown = counted.min(room);
    (libm::floor(cwnd) + f64::from(grown), counted - grown)
}

/// `due` acknowledged segments make one more.
pub(super) fn count_towards(cwnd: f64, counted: u32, due: u32) -> f64 {
    let whole = libm::floor(cwnd);
    let (due, before) = (f64::from(due.max(1)), (cwnd - whole) / COUNT);
    // What was counted when more were due makes one segment, not several.
    let (whole, before) = if before >= due { (whole + 1.0, 0.0) } else { (whole, before) };
    let total = before + f64::from(counted);
    let more = libm::floor(total / due);
    whole + more + (total - more * due).min(1e7) * COUNT
}

/// Whether an acknowledgement may let a window grow: of new data, outside of a repair, of a window that was used.
pub(super) fn may_grow(cfg: &TcpConfig, acked: &Acked, window: &Window) -> bool {
    acked.segments > 0 && !acked.repairing && !acked.opening && acked.window_was_used(cfg, window)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An acknowledgement of one segment that says nothing else.
    pub(in crate::tcp::congestion) fn acked() -> Acked {
        Acked {
            now: Instant::ZERO,
            segments: 1,
            delivered: 1,
            flight: 0,
            in_flight: 0,
            lost: 0,
            rtt: None,
            echo: false,
            held: false,
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
        // Ten acknowledgements of one segment at ten: nine leave it at ten, the tenth makes
        // eleven, and eleven more twelve.
        let mut cwnd = 10.0;
        for counted in 1..=21 {
            cwnd = whole_growth(cwnd, 10, 1);
            assert_eq!(cwnd as u32, 10 + u32::from(counted >= 10) + u32::from(counted >= 21), "{counted}");
        }
        // Slow start stops at the threshold, and what is left is counted: 6 + 4 = 10, and 8 of 10.
        let cwnd = whole_growth(6.0, 10, 12);
        assert_eq!(cwnd as u32, 10);
        assert_eq!(whole_growth(cwnd, 10, 1) as u32, 10);
        assert_eq!(whole_growth(cwnd, 10, 2) as u32, 11);
        // One acknowledgement may count for several windows: 25 at 4 is six times four and one.
        assert_eq!(whole_growth(4.0, 2, 25) as u32, 10);
        // What was counted at a window of nine is more than one of two: one segment, and the count begins anew.
        assert_eq!(count_towards(2.0 + 8.0 * COUNT, 1, 2) as u32, 3);
    }
}
