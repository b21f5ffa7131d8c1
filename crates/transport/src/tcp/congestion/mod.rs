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
mod controller;
mod cubic;
mod cubic21;
mod dctcp;
mod delivery;
mod hystart;
mod hystart_linux;
mod ledbat;
mod list;
mod pacing;
mod prague;
mod reno;
mod vegas;

use aqumen_units::Instant;

use super::{Segment, TcpConfig};
use bbr::Bbr;
use controller::{Controller, Terms};
use cubic::Cubic;
use cubic21::Cubic21;
use dctcp::Dctcp;
use ledbat::Ledbat;
use list::controls;
use pacing::Pacer;
use prague::Prague;
use reno::PacedReno;
use vegas::Vegas;

pub(super) use controller::{Acked, Needs, Phase, Signal, Window, reno_growth, whole_growth};
pub use list::Congestion;
pub(super) use pacing::pace_gain;

/// Makes one of them.
macro_rules! algorithms {
    ($( $(#[doc = $doc:literal])* $variant:ident $word:literal $control:ident $make:expr; )*) => {
        impl Congestion {
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

controls!(algorithms);

impl Congestion {
    /// What the receiver reports for it, beyond RFC 3168.
    pub(super) const fn needs(self) -> Needs {
        self.terms().asks
    }

    /// Whether it sets the window in a recovery by itself, and no [`Reduction`](super::Reduction) does.
    pub(super) const fn recovers_by_itself(self) -> bool {
        self.terms().recovers_by_itself
    }

    /// Whether it measures how fast segments arrive, and sends at that rate whatever is lost.
    pub const fn samples_delivery(self) -> bool {
        self.terms().samples_delivery
    }

    /// Whether it cannot do without pacing.
    pub const fn must_pace(self) -> bool {
        self.terms().pacing.is_some()
    }
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
        self.congestion.samples_delivery()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_reno_needs_no_control() {
        assert!(Control::new(&TcpConfig::modern()).is_none());
        assert!(Control::new(&TcpConfig { pacing: true, ..TcpConfig::modern() }).is_some());
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
