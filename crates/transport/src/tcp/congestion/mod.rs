//! Congestion controls other than plain Reno, and pacing: what decides a sender's window and the times of its segments.
//!
//! A [`Sender`](super::Sender) finds losses, repairs them and keeps the timer; a control only answers how large the
//! window is after an acknowledgement, a loss, a mark or a timeout. Reno without pacing has no object here: the sender
//! grows and halves its window by itself. One file for each algorithm implements [`Controller`] and says on what
//! `TERMS` it works; its head names the text it follows and where it departs.
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

use aqumen_units::{Instant, Span};

use super::{Segment, TcpConfig};
use bbr::Bbr;
use cubic::Cubic;
use cubic21::Cubic21;
use dctcp::Dctcp;
use ledbat::Ledbat;
use pacing::Pacer;
use prague::Prague;
use vegas::Vegas;

/// Declares the congestion controls: variant and name, the word for it, what implements it, and how that is made.
macro_rules! controls {
    ($( $(#[doc = $doc:literal])* $variant:ident $word:literal $control:ident $make:expr; )*) => {
        /// How a sender sets its congestion window.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Congestion {
            $( $(#[doc = $doc])* $variant, )*
        }

        impl Congestion {
            /// All of them.
            pub const ALL: &[Congestion] = &[$( Congestion::$variant, )*];

            /// The word for each of [`ALL`](Self::ALL), as lists show them.
            pub const WORDS: &[&str] = &[$( $word, )*];

            /// On what terms it works.
            pub(super) const fn terms(self) -> Terms {
                match self {
                    $( Congestion::$variant => $control::TERMS, )*
                }
            }
        }

        #[derive(Clone, Debug)]
        enum Algorithm {
            $( $variant($control), )*
        }

        impl Algorithm {
            fn new(cfg: &TcpConfig) -> Self {
                match cfg.congestion {
                    $( Congestion::$variant => {
                        let make: fn(&TcpConfig) -> $control = $make;
                        Algorithm::$variant(make(cfg))
                    } )*
                }
            }

            fn control(&self) -> &dyn Controller {
                match self {
                    $( Algorithm::$variant(control) => control, )*
                }
            }

            fn control_mut(&mut self) -> &mut dyn Controller {
                match self {
                    $( Algorithm::$variant(control) => control, )*
                }
            }
        }
    };
}

controls! {
    /// One segment a round trip more, half after a loss or mark (RFC 5681).
    Reno "reno" PacedReno |_| PacedReno;
    /// A cubic of the time since the last reduction (RFC 9438).
    Cubic "cubic" Cubic Cubic::new;
    /// CUBIC 2.1 as in Linux 2.6.22, in whole segments: that of ns-2.35.
    Cubic21 "cubic-2.1" Cubic21 |_| Cubic21::new();
    /// A reduction in proportion to the fraction of marked packets (RFC 8257).
    Dctcp "dctcp" Dctcp |_| Dctcp::new();
    /// The same for the Internet: ECT(1), paced, less dependent on the round trip
    /// (draft-briscoe-iccrg-prague-congestion-control).
    Prague "prague" Prague |_| Prague::new();
    /// A model of the path, bandwidth and round trip, instead of losses
    /// (draft-cardwell-iccrg-bbr-congestion-control-00).
    Bbr "bbr" Bbr Bbr::new;
    /// A few packets in the queue, counted from the round trip (Brakmo and Peterson 1995).
    Vegas "vegas" Vegas |_| Vegas::new();
    /// At most 100 ms of queue, and less than others get (RFC 6817).
    Ledbat "ledbat" Ledbat |_| Ledbat::new();
}

impl Congestion {
    /// What the receiver reports for it, beyond RFC 3168.
    pub(super) const fn needs(self) -> Needs {
        self.terms().asks
    }

    /// Whether it sets the window in a recovery by itself, and no [`Reduction`](super::Reduction) does.
    pub(super) const fn recovers_by_itself(self) -> bool {
        self.terms().recovers_by_itself
    }

    /// Whether it cannot do without pacing.
    pub const fn must_pace(self) -> bool {
        self.terms().pacing.is_some()
    }
}

/// On what terms a congestion control works. The texts say why it cannot do without, for who tries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// What it asks of the receiver.
    asks: Needs,
    /// It has to know what arrives beyond a gap: SACK.
    pub(super) sack: Option<&'static str>,
    /// It lives on marks.
    pub(super) ecn: Option<&'static str>,
    /// Its segments have to be paced.
    pub(super) pacing: Option<&'static str>,
    /// Each acknowledgement has to tell a round trip.
    pub(super) timestamps: Option<&'static str>,
    /// It must hear of each segment by itself, through [`on_sent`](Controller::on_sent) and
    /// [`on_arrival`](Controller::on_arrival).
    samples_delivery: bool,
    /// Marks are its own business: the reaction of RFC 3168 is not wanted.
    handles_marks: bool,
    /// It sets the window in a recovery by itself, and no [`Reduction`](super::Reduction) does.
    recovers_by_itself: bool,
    /// It sets the window by an acknowledgement before the sender works that in, as Linux 2.6.22 does: one that shows a
    /// loss lets the window grow first. `repairing` then tells of the time before.
    goes_first: bool,
}

impl Terms {
    /// None but those of RFC 5681.
    const USUAL: Terms = Terms {
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
trait Controller {
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

/// Reno that is paced; without pacing a sender does it by itself.
#[derive(Clone, Debug)]
struct PacedReno;

impl PacedReno {
    const TERMS: Terms = Terms::USUAL;
}

impl Controller for PacedReno {
    fn on_ack(&mut self, cfg: &TcpConfig, acked: &Acked, window: &mut Window) {
        if !may_grow(cfg, acked, window) || acked.held {
        } else if cfg.whole_windows {
            let counted = acked.segments.min(cfg.growth_limit);
            window.cwnd = whole_growth(window.cwnd, window.ssthresh, counted);
        } else {
            window.cwnd = reno_growth(window.cwnd, window.in_slow_start(), acked.counted(cfg));
        }
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

/// A window that is a whole number of segments carries what has been counted towards the next in its fraction: so much
/// for each segment.
const COUNT: f64 = 1.0 / (1 << 24) as f64;

/// Reno's growth of such a window, as in Linux: `counted` segments were acknowledged. Slow start ends at `ssthresh`,
/// and from there on a window of them makes one segment.
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
    congestion: Congestion,
    pacer: Option<Pacer>,
    /// Segments that had arrived when last asked, those beyond a gap included.
    arrived: u32,
    /// Marked packets that the receiver had counted (RFC 9768's s.cep).
    marks: u32,
    /// Below this segment, losses have been counted.
    lost_to: u32,
}

impl Control {
    /// The control that `cfg` asks for; `None` for Reno without pacing.
    pub(super) fn new(cfg: &TcpConfig) -> Option<Self> {
        // A sender does plain Reno by itself.
        if cfg.congestion == Congestion::Reno && !cfg.pacing {
            return None;
        }
        let paced = cfg.pacing || cfg.congestion.must_pace();
        Some(Control {
            algorithm: Algorithm::new(cfg),
            congestion: cfg.congestion,
            pacer: paced.then(Pacer::default),
            arrived: 0,
            marks: 0,
            lost_to: 0,
        })
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

    /// Whether it must hear of each segment by itself, through [`on_sent`](Self::on_sent) and
    /// [`on_arrival`](Self::on_arrival).
    pub(super) fn samples_delivery(&self) -> bool {
        self.congestion.terms().samples_delivery
    }

    /// Whether marks are its own business: the reaction of RFC 3168 is not wanted.
    pub(super) fn handles_marks(&self) -> bool {
        self.congestion.terms().handles_marks
    }

    /// Whether it sets the window by an acknowledgement before the sender works that in, as Linux 2.6.22 does: one that
    /// shows a loss lets the window grow first. `repairing` then tells of the time before.
    pub(super) fn goes_first(&self) -> bool {
        self.congestion.terms().goes_first
    }

    /// Segments `first..end` have arrived, before [`on_ack`](Self::on_ack) of the acknowledgement that says so.
    pub(super) fn on_arrival(&mut self, now: Instant, first: u32, end: u32) {
        self.algorithm.control_mut().on_arrival(now, first, end);
    }

    /// An acknowledgement was worked in.
    pub(super) fn on_ack(&mut self, cfg: &TcpConfig, acked: &Acked, window: &mut Window) {
        if let (Some(pacer), Some(rtt)) = (&mut self.pacer, acked.rtt) {
            pacer.on_rtt(rtt);
        }
        self.algorithm.control_mut().on_ack(cfg, acked, window);
    }

    /// A loss or mark to react to, once in a window of data, or a timeout (after which the sender sets the window to
    /// one itself). `base`: what RFC 5681 would halve.
    pub(super) fn on_congestion(&mut self, cfg: &TcpConfig, signal: Signal, base: f64, window: &mut Window) {
        if let (Some(pacer), Signal::Timeout) = (&mut self.pacer, signal) {
            pacer.release_now();
        }
        let Some(factor) = self.algorithm.control_mut().on_congestion(cfg, signal, window) else { return };
        let reduced = if cfg.whole_windows { libm::floor(libm::floor(base) * factor) } else { base * factor };
        window.ssthresh = (reduced as u32).max(2);
        if signal != Signal::Timeout {
            window.cwnd = reduced.max(cfg.min_window);
        }
    }

    /// A segment leaves; nothing was outstanding before, if `idle`.
    pub(super) fn on_sent(&mut self, now: Instant, segment: &mut Segment, idle: bool, window: &Window) {
        self.algorithm.control_mut().on_sent(now, segment, idle);
        let own = self.algorithm.control().pacing_rate();
        let rate = own.or_else(|| self.pacer.as_ref().and_then(|pacer| pacer.rate_of(window)));
        if let (Some(pacer), Some(rate)) = (&mut self.pacer, rate) {
            pacer.on_sent(now, rate, self.algorithm.control().send_quantum());
        }
    }

    /// The application has nothing more to send, with `in_flight` segments on their way.
    pub(super) fn on_exhausted(&mut self, in_flight: u32) {
        self.algorithm.control_mut().on_exhausted(in_flight);
    }

    /// The earliest moment at which the next segment may leave.
    pub(super) fn release(&self, now: Instant) -> Instant {
        self.pacer.as_ref().map_or(Instant::ZERO, |pacer| pacer.release(now))
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
