//! The retransmission timeout: RFC 6298 in the fixed-point arithmetic of 4.3BSD, which ns-2 shares.

use aqumen_units::{Instant, Span};

use super::{RtoFloor, TcpConfig};

/// Smoothed round-trip time, its deviation, and the resulting timeout.
///
/// `srtt` has 3 fraction bits and `rttvar` 2, which makes the gains 1/8 and 1/4 of RFC 6298 rule 2.3 plain sums. Fields
/// needed to set the timer come first, so that they share a cache line with the sender's.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Rto {
    /// SRTT + 4 RTTVAR, at least the minimum, before backoff (us).
    base_us: u32,
    /// Number of backoffs (RFC 6298 rule 5.5).
    doublings: u8,
    /// 8 x SRTT (ticks); 0: no sample yet.
    srtt: u32,
    /// 4 x RTTVAR (ticks).
    rttvar: u32,
    /// Phase of this host's clock (ns before the epoch).
    phase_nanos: u32,
}

impl Rto {
    /// Size of the fields needed to set the timer.
    pub(super) const TIMER_BYTES: usize = core::mem::offset_of!(Rto, srtt);

    pub(super) fn new(cfg: &TcpConfig) -> Self {
        let base_us = floor_us(cfg).max(micros(cfg.initial_rto));
        Rto { srtt: 0, rttvar: 0, base_us, phase_nanos: 0, doublings: 0 }
    }

    pub(super) fn set_phase(&mut self, cfg: &TcpConfig, phase: Span) {
        self.phase_nanos = (phase.as_nanos() % cfg.rto_tick.as_nanos().max(1)) as u32;
    }

    /// Current retransmission timeout.
    #[inline]
    pub(super) fn timeout(&self, cfg: &TcpConfig) -> Span {
        Span::from_micros(u64::from(self.base_us) << self.doublings).min(cfg.max_rto)
    }

    /// SRTT in whole ticks; `None` before the first sample.
    pub(super) fn smoothed(&self, cfg: &TcpConfig) -> Option<Span> {
        (self.srtt != 0).then(|| cfg.rto_tick * u64::from(self.srtt >> 3))
    }

    /// Adds a sample: a segment sent at `sent` was acknowledged at `now`.
    #[inline]
    pub(super) fn sample(&mut self, cfg: &TcpConfig, sent: Instant, now: Instant) {
        let tick = cfg.rto_tick.as_nanos().max(1);
        // The clock counts ticks between two moments, not time.
        let phase = u64::from(self.phase_nanos);
        let (from, until) = (sent.as_nanos() + phase, now.as_nanos() + phase);
        // Division by a constant is faster. The general case is a separate function, as the compiler would merge the
        // two.
        let measured = match tick {
            10_000_000 => (until / 10_000_000).saturating_sub(from / 10_000_000),
            1_000 => (until / 1_000).saturating_sub(from / 1_000),
            _ => ticks_between(from, until, tick),
        };
        let measured = measured.clamp(1, 1 << 27) as i32;
        if self.srtt != 0 {
            let error = measured - (self.srtt >> 3) as i32;
            self.srtt = (self.srtt as i32 + error).max(1) as u32;
            let deviation = error.abs() - (self.rttvar >> 2) as i32;
            self.rttvar = (self.rttvar as i32 + deviation).max(1) as u32;
        } else {
            // RFC 6298 rule 2.2: SRTT = R, RTTVAR = R / 2.
            self.srtt = (measured as u32) << 3;
            self.rttvar = (measured as u32) << 1;
        }
        // RFC 6298 rule 2.3: RTO = SRTT + 4 RTTVAR; 4 RTTVAR is `rttvar`, and x 8 >> 3 adds both before rounding.
        let least = if cfg.rto_floor == RtoFloor::Variation { cfg.min_rto.as_nanos() / tick } else { 0 };
        let ticks = (8 * u64::from(self.rttvar).max(least) + u64::from(self.srtt)) >> 3;
        self.base_us = (ticks * (tick / 1_000)).clamp(u64::from(floor_us(cfg)), u64::from(u32::MAX)) as u32;
    }

    /// Doubles the timeout after an expiry (RFC 6298 rule 5.5).
    pub(super) fn back_off(&mut self, cfg: &TcpConfig) {
        if self.doublings < 6 || self.timeout(cfg) < cfg.max_rto {
            self.doublings = (self.doublings + 1).min(20);
        }
        if cfg.quirks.forget_rtt && self.doublings > 3 {
            // The old estimate counts as deviation of the next (4.3BSD, ns-2).
            self.rttvar += self.srtt >> 3;
            self.srtt = 0;
        }
    }

    /// Ends the backoff when new data is acknowledged.
    #[inline]
    pub(super) fn end_backoff(&mut self) {
        self.doublings = 0;
    }
}

/// Ticks after `from` and up to `until` of a clock that ticks at multiples of `tick` (ns).
#[inline(never)]
fn ticks_between(from: u64, until: u64, tick: u64) -> u64 {
    (until / tick).saturating_sub(from / tick)
}

impl TcpConfig {
    /// Shortest time from an event to the sender timer it sets; `None`: no bound.
    pub fn least_timeout(&self) -> Option<Span> {
        (!self.uses_rack()).then(|| Span::from_micros(u64::from(floor_us(self))).min(self.max_rto))
    }
}

/// Smallest timeout: at least two ticks, since a shorter timer could expire at once (ns-2, 4.3BSD).
fn floor_us(cfg: &TcpConfig) -> u32 {
    micros(cfg.min_rto.max(cfg.rto_tick * 2))
}

fn micros(span: Span) -> u32 {
    (span.as_nanos() / 1_000).min(u64::from(u32::MAX)) as u32
}
