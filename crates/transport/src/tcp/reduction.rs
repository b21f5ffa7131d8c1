//! How a SACK sender comes down to its reduced window while it repairs losses.
//!
//! ```text
//!   pipe  w |--.                        w |.                          w |.
//!           |  |                          | '.  5 of 7 leave            | '.  every other
//!           |  | silence                  |   '.                        |   '.
//!       0.7w|  '-----------           0.7w|     '--------           0.7w|     '--------
//!            at once (RFC 6675)            proportional (RFC 9937)      rate halving
//! ```
//!
//! Rate halving is that of the TCP-Linux of ns-2.35 (after Hoe 1995 and FACK): the pipe has a bound, one above what an
//! acknowledgement leaves of it at most. It lets one segment go, and each that goes lowers it by two: the next
//! acknowledgement finds it in force, the one after does not. With a
//! [`send_overhead`](super::TcpConfig::send_overhead) ns-2 forgets to lower it (the timer of the overhead puts the
//! value from before back). Then the rate is not halved: a segment goes for each that arrives, and when the losses are
//! repaired the sender is silent until the pipe has shrunk to the window. So it is here.
//!
//! With RACK ([`LossDetection::Rack`](super::LossDetection::Rack)) proportional rate reduction holds for marks too,
//! else the window is reduced at once after a mark (RFC 9937 section 6 allows either).

use aqumen_units::Span;

use super::{Reduction, TcpConfig};

/// One way down.
#[derive(Clone, Debug, Default)]
pub(super) struct Descent {
    /// Proportional: segments that may leave now. Rate halving: what the pipe may reach beyond the window.
    allowance: u32,
    /// RecoverFS: what was in the network when it began.
    from: u32,
    /// prr_delivered and prr_out.
    delivered: u32,
    sent: u32,
}

impl Descent {
    /// A recovery begins with a window of `window` and `from` segments in the network; one leaves at once.
    pub(super) fn begin(&mut self, window: f64, from: u32) {
        *self = Descent { allowance: window as u32, from: from.max(1), delivered: 0, sent: 0 };
    }

    /// An acknowledgement in recovery has left `pipe` segments in the network: `delivered` have arrived with it;
    /// `safe`: it acknowledges new data and shows no new loss.
    pub(super) fn on_ack(&mut self, cfg: &TcpConfig, window: u32, pipe: u32, delivered: u32, safe: bool) {
        match cfg.reduction {
            Reduction::AtOnce => {}
            Reduction::Proportional => self.share_out(window, pipe, delivered, safe),
            Reduction::RateHalving => self.allowance = self.allowance.min(pipe + 1),
        }
    }

    /// RFC 9937 section 6.2.
    fn share_out(&mut self, window: u32, pipe: u32, delivered: u32, safe: bool) {
        if delivered == 0 {
            return;
        }
        self.delivered += delivered;
        self.allowance = if pipe > window {
            let due = (u64::from(self.delivered) * u64::from(window)).div_ceil(u64::from(self.from));
            due.saturating_sub(u64::from(self.sent)) as u32
        } else {
            let conserved = self.delivered.saturating_sub(self.sent).max(delivered);
            (conserved + u32::from(safe)).min(window - pipe)
        };
        if self.sent == 0 {
            self.allowance = self.allowance.max(1);
        }
    }

    /// Whether a segment may leave, with `pipe` in the network and a window of `window`.
    pub(super) fn allows(&self, cfg: &TcpConfig, window: f64, pipe: u32) -> bool {
        match cfg.reduction {
            Reduction::AtOnce => window - f64::from(pipe) >= 1.0,
            Reduction::Proportional => self.allowance > 0,
            Reduction::RateHalving => pipe < (window as u32).max(self.allowance),
        }
    }

    /// A segment leaves; `pipe` was in the network before it.
    pub(super) fn on_sent(&mut self, cfg: &TcpConfig, pipe: u32) {
        self.sent += 1;
        match cfg.reduction {
            Reduction::AtOnce => {}
            Reduction::Proportional => self.allowance = self.allowance.saturating_sub(1),
            Reduction::RateHalving if cfg.send_overhead > Span::ZERO => {}
            Reduction::RateHalving => self.allowance = self.allowance.min(pipe.max(1)),
        }
    }
}
