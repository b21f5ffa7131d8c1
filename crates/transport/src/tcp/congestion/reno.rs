//! Reno that is paced (RFC 5681); without pacing a sender does it by itself.

use super::controller::{Acked, Controller, Terms, Window, may_grow, reno_growth, whole_growth};
use crate::tcp::TcpConfig;

#[derive(Clone, Debug)]
pub(super) struct PacedReno;

impl PacedReno {
    pub(super) const TERMS: Terms = Terms::USUAL;
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
