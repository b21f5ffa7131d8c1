//! The retransmission timeout (RFC 9260 section 6.3.1), in nanoseconds.

use aqumen_units::Span;

use super::SctpConfig;

/// Round-trip estimate and the resulting timeout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rto {
    /// SRTT and RTTVAR (ns); `None` before the first sample.
    estimate: Option<(u64, u64)>,
    timeout: Span,
}

impl Rto {
    pub(super) fn new(cfg: &SctpConfig) -> Self {
        Rto { estimate: None, timeout: cfg.initial_rto }
    }

    pub(super) fn timeout(&self) -> Span {
        self.timeout
    }

    /// Adds a sample (rules C2, C3, C6 and C7); this ends the backoff.
    pub(super) fn sample(&mut self, cfg: &SctpConfig, rtt: Span) {
        let rtt = rtt.as_nanos();
        let (srtt, rttvar) = match self.estimate {
            None => (rtt, rtt / 2),
            // RTO.Beta is 1/4, RTO.Alpha 1/8; the deviation uses the old SRTT.
            Some((srtt, rttvar)) => (srtt - srtt / 8 + rtt / 8, rttvar - rttvar / 4 + srtt.abs_diff(rtt) / 4),
        };
        self.estimate = Some((srtt, rttvar));
        // RTTVAR is at least one clock tick, here 1 ns (rule G1), so that the timer does not expire with the
        // acknowledgement.
        let timeout = Span::from_nanos(srtt.saturating_add(rttvar.max(1).saturating_mul(4)));
        self.timeout = timeout.max(cfg.min_rto).min(cfg.max_rto);
    }

    /// Doubles the timeout after an expiry (rule E2).
    pub(super) fn back_off(&mut self, cfg: &SctpConfig) {
        self.timeout = self.timeout.saturating_mul(2).min(cfg.max_rto);
    }
}
