//! Congestion controls other than plain Reno, and pacing: what decides a sender's window and the times of its segments.
//!
//! A [`Sender`](super::Sender) finds losses, repairs them and keeps the timer; a control only answers how large the window
//! is after an acknowledgement, a loss, a mark or a timeout. Reno without pacing has no object here: the sender grows and
//! halves its window by itself. One file for each algorithm; its head names the text it follows and where it departs.
//!
//! Windows are in segments, rates in segments a second, times in seconds unless a type says otherwise.

mod bbr;
mod bbr_aggregation;
mod bbr_policer;
mod cubic;
mod cubic21;
mod dctcp;
mod delivery;
mod hystart;
mod hystart_linux;
mod ledbat;
mod pacing;
mod prague;
mod vegas;

use aqumen_units::{Ecn, Instant, Span};

use super::{Segment, TcpConfig};
use bbr::Bbr;
use cubic::Cubic;
use cubic21::Cubic21;
use dctcp::Dctcp;
use ledbat::Ledbat;
use pacing::Pacer;
use prague::Prague;
use vegas::Vegas;

/// How a sender sets its congestion window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Congestion {
    /// One segment a round trip more, half after a loss or mark (RFC 5681).
    Reno,
    /// A cubic of the time since the last reduction (RFC 9438).
    Cubic,
    /// CUBIC 2.1 as in Linux 2.6.22, in whole segments: that of ns-2.35.
    Cubic21,
    /// A reduction in proportion to the fraction of marked packets (RFC 8257).
    Dctcp,
    /// The same for the Internet: ECT(1), paced, less dependent on the round trip (draft-briscoe-iccrg-prague-congestion-control).
    Prague,
    /// A model of the path, bandwidth and round trip, instead of losses (draft-cardwell-iccrg-bbr-congestion-control-00).
    Bbr,
    /// A few packets in the queue, counted from the round trip (Brakmo and Peterson 1995).
    Vegas,
    /// At most 100 ms of queue, and less than others get (RFC 6817).
    Ledbat,
}

impl Congestion {
    /// What the receiver reports for it, beyond RFC 3168.
    pub(super) const fn needs(self) -> Needs {
        match self {
            Congestion::Dctcp => Needs::EachMark,
            Congestion::Prague => Needs::CountOfMarks,
            Congestion::Ledbat => Needs::Delay,
            Congestion::Reno | Congestion::Cubic | Congestion::Cubic21 | Congestion::Bbr | Congestion::Vegas => {
                Needs::Nothing
            }
        }
    }

    /// Whether it sets the window in a recovery by itself, and no [`Reduction`](super::Reduction) does.
    pub(super) const fn recovers_by_itself(self) -> bool {
        matches!(self, Congestion::Bbr)
    }

    /// Whether it cannot do without pacing.
    pub const fn must_pace(self) -> bool {
        matches!(self, Congestion::Bbr | Congestion::Prague)
    }
}

/// What a congestion control asks of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
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
pub(super) struct Window {
    /// Congestion window (segments).
    pub(super) cwnd: f64,
    /// Slow-start threshold (segments).
    pub(super) ssthresh: u32,
}

impl Window {
    fn in_slow_start(&self) -> bool {
        self.cwnd < f64::from(self.ssthresh)
    }

    /// The window is `cwnd` from now on, and slow start is over.
    fn settle(&mut self, cwnd: f64) {
        self.cwnd = cwnd;
        self.ssthresh = (cwnd as u32).max(2);
    }
}

/// What an acknowledgement said, after the sender has worked it in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acked {
    pub(super) now: Instant,
    /// Segments acknowledged by it.
    pub(super) segments: u32,
    /// Segments that have arrived since the one before, those beyond a gap included.
    pub(super) delivered: u32,
    /// Segments outstanding before it.
    pub(super) flight: u32,
    /// Segments in the network after it, lost ones not counted.
    pub(super) in_flight: u32,
    /// Segments found lost by it.
    pub(super) lost: u32,
    /// Segments found lost by the timer since the one before.
    pub(super) lost_before: u32,
    /// A round trip measured by it.
    pub(super) rtt: Option<Span>,
    /// It carries ECE.
    pub(super) echo: bool,
    /// The window may not grow for that: the echo is new, or the answer to it is under way.
    pub(super) held: bool,
    /// Marked packets that the receiver has counted since the one before.
    pub(super) marks: u32,
    /// One-way delay of the last segment to arrive.
    pub(super) delay: Option<Span>,
    /// The oldest segment outstanding after it.
    pub(super) una: u32,
    /// One past the highest segment sent.
    pub(super) high: u32,
    /// The sender repairs a loss.
    pub(super) repairing: bool,
    /// What it is at after it.
    pub(super) phase: Phase,
    /// It answers the SYN, whose acknowledgement sets the initial window.
    pub(super) opening: bool,
}

/// What a sender is at, for controls that set their window in a repair themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    /// In fast recovery.
    Recovery,
    /// It sends again what a timeout found outstanding.
    Timeout,
}

impl Acked {
    /// Whether the window was what limited the sender (RFC 7661); slow start may double what was used.
    fn window_was_used(&self, cfg: &TcpConfig, window: &Window) -> bool {
        let used = f64::from(self.flight) + 1.0;
        let cwnd = if cfg.whole_windows { libm::floor(window.cwnd) } else { window.cwnd };
        !cfg.validate_window || used >= if window.in_slow_start() { cwnd * 0.5 } else { cwnd }
    }

    /// Segments that count towards growth (RFC 3465).
    fn counted(&self, cfg: &TcpConfig) -> f64 {
        f64::from(self.segments.min(cfg.growth_limit))
    }
}

/// Why a window is reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    Loss,
    /// ECE after RFC 3168.
    Mark,
    Timeout,
}

/// Growth of RFC 5681 section 3.1: `counted` segments were acknowledged.
#[inline(always)]
pub(super) fn reno_growth(cwnd: f64, slow_start: bool, counted: f64) -> f64 {
    cwnd + if slow_start { counted } else { counted / cwnd }
}

/// A window that is a whole number of segments carries what has been counted towards the next in its fraction: so much for
/// each segment.
const COUNT: f64 = 1.0 / (1 << 24) as f64;

/// Reno's growth of such a window, as in Linux: `counted` segments were acknowledged. Slow start ends at `ssthresh`, and from
/// there on a window of them makes one segment.
pub(super) fn whole_growth(cwnd: f64, ssthresh: u32, counted: u32) -> f64 {
    let (cwnd, counted) = whole_slow_start(cwnd, ssthresh, counted);
    count_towards(cwnd, counted, libm::floor(cwnd) as u32)
}

/// Slow start up to `ssthresh`; what is left of the `counted` segments is for congestion avoidance.
fn whole_slow_start(cwnd: f64, ssthresh: u32, counted: u32) -> (f64, u32) {
    let room = ssthresh.saturating_sub(cwnd as u32);
    if room == 0 {
        return (cwnd, counted);
    }
    let grown = counted.min(room);
    (libm::floor(cwnd) + f64::from(grown), counted - grown)
}

/// `due` acknowledged segments make one more.
fn count_towards(cwnd: f64, counted: u32, due: u32) -> f64 {
    let whole = libm::floor(cwnd);
    let (due, before) = (f64::from(due.max(1)), (cwnd - whole) / COUNT);
    // What was counted when more were due makes one segment, not several.
    let (whole, before) = if before >= due { (whole + 1.0, 0.0) } else { (whole, before) };
    let total = before + f64::from(counted);
    let more = libm::floor(total / due);
    whole + more + (total - more * due).min(1e7) * COUNT
}

/// The congestion control of one sender.
#[derive(Clone, Debug)]
pub(super) struct Control {
    algorithm: Algorithm,
    pacer: Option<Pacer>,
    /// Segments that had arrived when last asked, those beyond a gap included.
    arrived: u32,
    /// Marked packets that the receiver had counted (RFC 9768's s.cep).
    marks: u32,
    /// Below this segment, losses have been counted.
    lost_to: u32,
}

#[derive(Clone, Debug)]
enum Algorithm {
    /// Paced Reno.
    Reno,
    Cubic(Cubic),
    Cubic21(Cubic21),
    Dctcp(Dctcp),
    Prague(Prague),
    Bbr(Bbr),
    Vegas(Vegas),
    Ledbat(Ledbat),
}

impl Control {
    /// The control that `cfg` asks for; `None` for Reno without pacing.
    pub(super) fn new(cfg: &TcpConfig) -> Option<Self> {
        let algorithm = match cfg.congestion {
            Congestion::Reno if !cfg.pacing => return None,
            Congestion::Reno => Algorithm::Reno,
            Congestion::Cubic => Algorithm::Cubic(Cubic::new(cfg)),
            Congestion::Cubic21 => Algorithm::Cubic21(Cubic21::new()),
            Congestion::Dctcp => Algorithm::Dctcp(Dctcp::new()),
            Congestion::Prague => Algorithm::Prague(Prague::new()),
            Congestion::Bbr => Algorithm::Bbr(Bbr::new(cfg)),
            Congestion::Vegas => Algorithm::Vegas(Vegas::new()),
            Congestion::Ledbat => Algorithm::Ledbat(Ledbat::new()),
        };
        let paced = cfg.pacing || cfg.congestion.must_pace();
        Some(Control { algorithm, pacer: paced.then(Pacer::default), arrived: 0, marks: 0, lost_to: 0 })
    }

    /// Segments that have arrived are `total` now: how many are new.
    pub(super) fn count_arrivals(&mut self, total: u32) -> u32 {
        let new = total.saturating_sub(self.arrived);
        self.arrived += new;
        new
    }

    /// The receiver has counted `total` marked packets (RFC 9768): how many are new. Acknowledgements may overtake.
    pub(super) fn count_marks(&mut self, total: u32) -> u32 {
        let new = total.saturating_sub(self.marks);
        self.marks += new;
        new
    }

    /// Segments before `edge` that have not arrived are lost: where those begin that were not counted before.
    pub(super) fn count_losses(&mut self, una: u32, edge: u32) -> (u32, u32) {
        let from = self.lost_to.max(una);
        self.lost_to = self.lost_to.max(edge);
        (from, edge.max(from))
    }

    /// Whether it must hear of each segment by itself, through [`on_sent`](Self::on_sent) and [`on_arrival`](Self::on_arrival).
    pub(super) fn samples_delivery(&self) -> bool {
        matches!(self.algorithm, Algorithm::Bbr(_))
    }

    /// Whether marks are its own business: the reaction of RFC 3168 is not wanted.
    pub(super) fn handles_marks(&self) -> bool {
        matches!(self.algorithm, Algorithm::Dctcp(_) | Algorithm::Prague(_) | Algorithm::Bbr(_))
    }

    /// Whether it sets the window by an acknowledgement before the sender works that in, as Linux 2.6.22 does: one that
    /// shows a loss lets the window grow first. `repairing` then tells of the time before.
    pub(super) fn goes_first(&self) -> bool {
        matches!(self.algorithm, Algorithm::Cubic21(_))
    }

    /// Segments `first..end` have arrived, before [`on_ack`](Self::on_ack) of the acknowledgement that says so.
    pub(super) fn on_arrival(&mut self, now: Instant, first: u32, end: u32) {
        if let Algorithm::Bbr(bbr) = &mut self.algorithm {
            bbr.on_arrival(now, first, end);
        }
    }

    /// An acknowledgement was worked in.
    pub(super) fn on_ack(&mut self, cfg: &TcpConfig, acked: &Acked, window: &mut Window) {
        if let (Some(pacer), Some(rtt)) = (&mut self.pacer, acked.rtt) {
            pacer.on_rtt(rtt);
        }
        match &mut self.algorithm {
            Algorithm::Reno => {
                if !may_grow(cfg, acked, window) || acked.held {
                } else if cfg.whole_windows {
                    let counted = acked.segments.min(cfg.growth_limit);
                    window.cwnd = whole_growth(window.cwnd, window.ssthresh, counted);
                } else {
                    window.cwnd = reno_growth(window.cwnd, window.in_slow_start(), acked.counted(cfg));
                }
            }
            Algorithm::Cubic(cubic) => cubic.on_ack(cfg, acked, window),
            Algorithm::Cubic21(cubic) => cubic.on_ack(cfg, acked, window),
            Algorithm::Dctcp(dctcp) => dctcp.on_ack(cfg, acked, window),
            Algorithm::Prague(prague) => prague.on_ack(cfg, acked, window),
            Algorithm::Bbr(bbr) => bbr.on_ack(acked, window),
            Algorithm::Vegas(vegas) => vegas.on_ack(cfg, acked, window),
            Algorithm::Ledbat(ledbat) => ledbat.on_ack(acked, window),
        }
    }

    /// A loss or mark to react to, once in a window of data, or a timeout (after which the sender sets the window to one
    /// itself). `base`: what RFC 5681 would halve.
    pub(super) fn on_congestion(&mut self, cfg: &TcpConfig, signal: Signal, base: f64, window: &mut Window) {
        if let (Some(pacer), Signal::Timeout) = (&mut self.pacer, signal) {
            pacer.release_now();
        }
        let factor = match &mut self.algorithm {
            Algorithm::Cubic(cubic) => cubic.on_congestion(cfg, signal, window.cwnd),
            Algorithm::Cubic21(cubic) => return cubic.on_congestion(signal, window),
            Algorithm::Bbr(bbr) => return bbr.on_congestion(signal, window),
            Algorithm::Prague(prague) => prague.on_loss(),
            Algorithm::Ledbat(ledbat) => ledbat.on_loss(),
            Algorithm::Vegas(vegas) => vegas.on_loss(),
            Algorithm::Dctcp(dctcp) => dctcp.on_loss(),
            Algorithm::Reno => 0.5,
        };
        let reduced = if cfg.whole_windows { libm::floor(libm::floor(base) * factor) } else { base * factor };
        window.ssthresh = (reduced as u32).max(2);
        if signal != Signal::Timeout {
            window.cwnd = reduced.max(cfg.min_window);
        }
    }

    /// A segment leaves; nothing was outstanding before, if `idle`.
    pub(super) fn on_sent(&mut self, now: Instant, segment: &mut Segment, idle: bool, window: &Window) {
        if matches!(self.algorithm, Algorithm::Prague(_)) && segment.ecn == Ecn::Ect0 {
            segment.ecn = Ecn::Ect1; // RFC 9331 section 4.1
        }
        if let Algorithm::Bbr(bbr) = &mut self.algorithm {
            bbr.on_sent(now, segment.seq, idle);
        }
        let rate = match &self.algorithm {
            Algorithm::Bbr(bbr) => Some(bbr.pacing_rate()),
            _ => self.pacer.as_ref().and_then(|pacer| pacer.rate_of(window)),
        };
        if let (Some(pacer), Some(rate)) = (&mut self.pacer, rate) {
            pacer.on_sent(now, rate);
        }
    }

    /// The application has nothing more to send, with `in_flight` segments on their way.
    pub(super) fn on_exhausted(&mut self, in_flight: u32) {
        if let Algorithm::Bbr(bbr) = &mut self.algorithm {
            bbr.on_exhausted(in_flight);
        }
    }

    /// The earliest moment at which the next segment may leave.
    pub(super) fn release(&self) -> Instant {
        self.pacer.as_ref().map_or(Instant::ZERO, Pacer::release)
    }
}

/// Whether an acknowledgement may let a window grow: of new data, outside of a repair, of a window that was used.
fn may_grow(cfg: &TcpConfig, acked: &Acked, window: &Window) -> bool {
    acked.segments > 0 && !acked.repairing && !acked.opening && acked.window_was_used(cfg, window)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An acknowledgement of one segment that says nothing else.
    pub(super) fn acked() -> Acked {
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
    fn plain_reno_needs_no_control() {
        assert!(Control::new(&TcpConfig::modern()).is_none());
        assert!(Control::new(&TcpConfig { pacing: true, ..TcpConfig::modern() }).is_some());
    }

    #[test]
    fn a_whole_window_grows_when_a_window_of_segments_is_counted() {
        // Ten acknowledgements of one segment at ten: nine leave it at ten, the tenth makes eleven, and eleven more twelve.
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

    #[test]
    fn counts_never_go_back() {
        let mut control = Control::new(&TcpConfig::prague()).unwrap();
        assert_eq!([5, 3, 9].map(|total| control.count_marks(total)), [5, 0, 4]);
        assert_eq!([2, 2, 7].map(|total| control.count_arrivals(total)), [2, 0, 5]);
        // Lost are those before the edge, once: 0 to 4, then 4 to 6; after an acknowledgement of 8 none.
        let losses = [(0, 4), (0, 6), (8, 6)].map(|(una, edge)| control.count_losses(una, edge));
        assert_eq!(losses.map(|(from, end)| end - from), [4, 2, 0]);
    }
}
