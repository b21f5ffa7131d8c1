//! Window reduction of a SACK sender during loss recovery.
//!
//! ```text
//!   pipe  w |--.                        w |.                          w |.
//!           |  |                          | '.  5 of 7 leave            | '.  every other
//!           |  | silence                  |   '.                        |   '.
//!       0.7w|  '-----------           0.7w|     '--------           0.7w|     '--------
//!            at once (RFC 6675)            proportional (RFC 9937)      rate halving
//! ```
//!
//! Rate halving follows the TCP-Linux of ns-2.35 (after Hoe 1995 and FACK). The pipe is bounded by one above its
//! smallest value at an acknowledgement. Each segment sent lowers the bound, so every other acknowledgement releases a
//! segment. With a [`send_overhead`](super::TcpConfig::send_overhead) ns-2 restores the old bound, so a segment is sent
//! for each one that arrives, and after the recovery the sender pauses until the pipe fits the window. This
//! implementation does the same.
//!
//! With RACK ([`LossDetection::Rack`](super::LossDetection::Rack)) proportional rate reduction applies to marks too;
//! otherwise the window is reduced at once after a mark (RFC 9937 section 6 permits both).

use aqumen_units::Span;

use super::{Reduction, TcpConfig};

/// State of a window reduction.
#[derive(Clone, Debug, Default)]
pub(super) struct ReductionState {
    /// Proportional: segments that may be sent now. Rate halving: bound of the pipe.
    allowance: u32,
    /// RecoverFS: segments in flight at the start.
    recover_fs: u32,
    /// prr_delivered and prr_out.
    delivered: u32,
    sent: u32,
}

impl ReductionState {
    /// Starts a recovery with the given window and `in_flight` segments in the network; one segment is sent at once.
    pub(super) fn begin(&mut self, window: f64, in_flight: u32) {
        *self = ReductionState { allowance: window as u32, recover_fs: in_flight.max(1), delivered: 0, sent: 0 };
    }

    /// Processes an acknowledgement in recovery that leaves `pipe` segments in the network and reports `delivered`.
    /// `safe`: it acknowledges new data and shows no new loss.
    pub(super) fn on_ack(&mut self, cfg: &TcpConfig, window: u32, pipe: u32, delivered: u32, safe: bool) {
        match cfg.reduction {
            Reduction::AtOnce => {}
            Reduction::Proportional => self.reduce_proportionally(window, pipe, delivered, safe),
            Reduction::RateHalving => self.allowance = self.allowance.min(pipe + 1),
        }
    }

    /// Proportional rate reduction (RFC 9937 section 6.2).
    fn reduce_proportionally(&mut self, window: u32, pipe: u32, delivered: u32, safe: bool) {
        if delivered == 0 {
            return;
        }
        self.delivered += delivered;
        self.allowance = if pipe > window {
            let due = (u64::from(self.delivered) * u64::from(window)).div_ceil(u64::from(self.recover_fs));
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

    /// Proportional: segments that may be sent now.
    pub(super) fn allowance(&self) -> u32 {
        self.allowance
    }

    /// Records a sent segment; `pipe` was in the network before it.
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
