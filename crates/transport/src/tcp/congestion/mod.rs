//! Congestion controls other than plain Reno, and pacing.
//!
//! A [`Sender`](super::Sender) detects losses, repairs them and runs the timer. A control sets the window after an
//! acknowledgement, a loss, a mark or a timeout. Reno without pacing is part of the sender. Each file implements
//! [`Controller`] and states its `PROPERTIES`; its head names the source and the deviations.
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
use controller::{Controller, Properties};
use cubic::Cubic;
use cubic21::Cubic21;
use dctcp::Dctcp;
use ledbat::Ledbat;
use list::controls;
use pacing::Pacer;
use prague::Prague;
use reno::PacedReno;
use vegas::Vegas;

pub(super) use controller::{AckSample, Phase, RequiredFeedback, Signal, Window, reno_growth, whole_growth};
pub use list::Congestion;
pub(super) use pacing::pace_gain;

/// Defines the enumeration of algorithms and its dispatch.
macro_rules! algorithms {
    ($( $(#[doc = $doc:literal])* $variant:ident $name:literal $control:ident $make:expr; )*) => {
        impl Congestion {
            /// Requirements and properties.
            pub(super) const fn properties(self) -> Properties {
                match self {
                    $( Congestion::$variant => $control::PROPERTIES, )*
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
    /// Receiver feedback beyond RFC 3168.
    pub(super) const fn required_feedback(self) -> RequiredFeedback {
        self.properties().feedback
    }

    /// Whether it sets the window during recovery itself, instead of a [`Reduction`](super::Reduction).
    pub(super) const fn recovers_by_itself(self) -> bool {
        self.properties().recovers_by_itself
    }

    /// Whether it measures the delivery rate, and sends at that rate regardless of losses.
    pub const fn samples_delivery(self) -> bool {
        self.properties().samples_delivery
    }

    /// Whether it requires pacing.
    pub const fn requires_pacing(self) -> bool {
        self.properties().pacing.is_some()
    }
}

/// Congestion control of one sender.
#[derive(Clone, Debug)]
pub(super) struct Control {
    algorithm: Algorithm,
    congestion: Congestion,
    pacer: Option<Pacer>,
    /// Segments delivered, at the last update.
    arrived: u32,
    /// Marked packets counted by the receiver, at the last update (s.cep of RFC 9768).
    marks: u32,
    /// Segment below which losses have been counted.
    lost_to: u32,
}

impl Control {
    /// The control selected by `cfg`; `None` for Reno without pacing.
    pub(super) fn new(cfg: &TcpConfig) -> Option<Self> {
        // The sender itself implements plain Reno.
        if cfg.congestion == Congestion::Reno && !cfg.pacing {
            return None;
        }
        let paced = cfg.pacing || cfg.congestion.requires_pacing();
        Some(Control {
            algorithm: Algorithm::new(cfg),
            congestion: cfg.congestion,
            pacer: paced.then(Pacer::default),
            arrived: 0,
            marks: 0,
            lost_to: 0,
        })
    }

    /// Whether it hears of acknowledgements alone, not of single segments, and needs neither pacing nor other feedback
    /// than the echo of RFC 3168.
    pub(super) fn is_simple(&self) -> bool {
        let properties = self.congestion.properties();
        let is_notified = properties.samples_delivery || properties.precedes_sender || properties.handles_marks;
        self.pacer.is_none() && properties.feedback == RequiredFeedback::None && !is_notified
    }

    /// Updates the number of delivered segments; returns the increase.
    pub(super) fn count_arrivals(&mut self, total: u32) -> u32 {
        let new = total.saturating_sub(self.arrived);
        self.arrived += new;
        new
    }

    /// Updates the receiver's count of marked packets (RFC 9768); returns the increase. Reordered acknowledgements are
    /// ignored.
    pub(super) fn count_marks(&mut self, total: u32) -> u32 {
        let new = total.saturating_sub(self.marks);
        self.marks += new;
        new
    }

    /// Range of segments before `edge` whose losses have not been counted.
    pub(super) fn count_losses(&mut self, una: u32, edge: u32) -> (u32, u32) {
        let from = self.lost_to.max(una);
        self.lost_to = self.lost_to.max(edge);
        (from, edge.max(from))
    }

    /// Whether it is called for each segment, through [`on_sent`](Self::on_sent) and [`on_arrival`](Self::on_arrival).
    pub(super) fn samples_delivery(&self) -> bool {
        self.congestion.samples_delivery()
    }

    /// Whether it responds to marks itself, instead of the response of RFC 3168.
    pub(super) fn handles_marks(&self) -> bool {
        self.congestion.properties().handles_marks
    }

    /// Whether it processes an acknowledgement before the sender; see [`Properties`].
    pub(super) fn precedes_sender(&self) -> bool {
        self.congestion.properties().precedes_sender
    }

    /// Called for segments `first..end` that have arrived, before [`on_ack`](Self::on_ack).
    pub(super) fn on_arrival(&mut self, now: Instant, first: u32, end: u32) {
        self.algorithm.control_mut().on_arrival(now, first, end);
    }

    /// Processes an acknowledgement.
    pub(super) fn on_ack(&mut self, cfg: &TcpConfig, acked: &AckSample, window: &mut Window) {
        if let (Some(pacer), Some(rtt)) = (&mut self.pacer, acked.rtt) {
            pacer.on_rtt(rtt);
        }
        self.algorithm.control_mut().on_ack(cfg, acked, window);
    }

    /// Responds to a loss or mark, once per window of data, or a timeout, after which the sender sets the window to
    /// one. `base`: window or flight that RFC 5681 would halve.
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

    /// Called for each segment sent; `idle`: nothing was outstanding before.
    pub(super) fn on_sent(&mut self, now: Instant, segment: &mut Segment, idle: bool, window: &Window) {
        self.algorithm.control_mut().on_sent(now, segment, idle);
        let rate = self.algorithm.control().pacing_rate();
        let rate = rate.or_else(|| self.pacer.as_ref().and_then(|pacer| pacer.rate(window)));
        if let (Some(pacer), Some(rate)) = (&mut self.pacer, rate) {
            pacer.on_sent(now, rate, self.algorithm.control().send_quantum());
        }
    }

    /// Called when the application has no more data, with `in_flight` segments in the network.
    pub(super) fn on_exhausted(&mut self, in_flight: u32) {
        self.algorithm.control_mut().on_exhausted(in_flight);
    }

    /// Earliest time of the next segment.
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
        // Losses before the edge count once: 0 to 4, then 4 to 6; none after an acknowledgement of 8.
        let losses = [(0, 4), (0, 6), (8, 6)].map(|(una, edge)| control.count_losses(una, edge));
        assert_eq!(losses.map(|(from, end)| end - from), [4, 2, 0]);
    }
}
