//! Paced Reno (RFC 5681); the sender itself implements Reno without pacing.

use super::controller::{AckSample, Controller, Properties, Window, may_grow, reno_growth, whole_growth};
use crate::tcp::TcpConfig;

#[derive(Clone, Debug)]
pub(super) struct PacedReno;

impl PacedReno {
    pub(super) const PROPERTIES: Properties = Properties::RENO;
}

impl Controller for PacedReno {
    fn on_ack(&mut self, cfg: &TcpConfig, acked: &AckSample, window: &mut Window) {
        if !may_grow(cfg, acked, window) || acked.growth_blocked {
        } else if cfg.whole_windows {
            let counted = acked.segments.min(cfg.growth_limit);
            window.cwnd = whole_growth(window.cwnd, window.ssthresh, counted);
        } else {
            window.cwnd = reno_growth(window.cwnd, window.in_slow_start(), acked.counted(cfg));
        }
    }
}
