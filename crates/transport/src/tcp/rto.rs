//! The retransmission timeout: RFC 6298 in the fixed-point arithmetic of 4.3BSD, which ns-2 shares.

use aqumen_units::{Instant, Span};

use super::{RtoFloor, TcpConfig};

/// Smoothed round trip, its deviation and the timeout they give.
///
/// `srtt` carries 3 fraction bits and `rttvar` 2, so that the gains 1/8 and 1/4 of RFC 6298 rule 2.3 are plain sums.
///
/// What setting the timer needs comes first, for who lays this out by cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Rto {
    /// SRTT + 4 RTTVAR, at least the minimum, before backoff (us).
    base_us: u32,
    /// How often the timer doubled (RFC 6298 rule 5.5).
    doublings: u8,
    /// 8 x SRTT (ticks); 0: no sample yet.
    srtt: u32,
    /// 4 x RTTVAR (ticks).
    rttvar: u32,
    /// Where this host's clock ticks (ns before the epoch).
    phase_nanos: u32,
}

impl Rto {
    /// Of what setting the timer needs.
    pub(super) const TIMER_BYTES: usize = core::mem::offset_of!(Rto, srtt);

    pub(super) fn new(cfg: &TcpConfig) -> Self {
        let base_us = floor_us(cfg).max(micros(cfg.initial_rto));
        Rto { srtt: 0, rttvar: 0, base_us, phase_nanos: 0, doublings: 0 }
    }

    pub(super) fn set_phase(&mut self, cfg: &TcpConfig, phase: Span) {
        self.phase_nanos = (phase.as_nanos() % cfg.rto_tick.as_nanos().max(1)) as u32;
    }

    /// How long to wait for an acknowledgement.
    #[inline]
    pub(super) fn timeout(&self, cfg: &TcpConfig) -> Span {
        Span::from_micros(u64::from(self.base_us) << self.doublings).min(cfg.max_rto)
    }

    /// SRTT, to the tick; `None` before the first sample.
    pub(super) fn smoothed(&self, cfg: &TcpConfig) -> Option<Span> {
        (self.srtt != 0).then(|| cfg.rto_tick * u64::from(self.srtt >> 3))
    }

    /// A segment sent at `sent` was acknowledged at `now`.
    #[inline]
    pub(super) fn sample(&mut self, cfg: &TcpConfig, sent: Instant, now: Instant) {
        let tick = cfg.rto_tick.as_nanos().max(1);
        // A clock that only ticks sees the number of ticks between two moments, not the time.
        let phase = u64::from(self.phase_nanos);
        let (from, until) = (sent.as_nanos() + phase, now.as_nanos() + phase);
        // By a known number a processor need not divide: that of the preset `ns2` here, of all others elsewhere, for a
        // compiler makes one division of two that meet.
        let measured = match tick {
            10_000_000 => (until / 10_000_000).saturating_sub(from / 10_000_000),
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

    /// The timer went off: double it (RFC 6298 rule 5.5).
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

    /// New data arrived: the timer is that of the estimate again.
    #[inline]
    pub(super) fn end_backoff(&mut self) {
        self.doublings = 0;
    }
}

/// How often a clock ticks after `from` and up to `until` that ticks at all multiples of `tick` (ns).
#[inline(never)]
fn ticks_between(from: u64, until: u64, tick: u64) -> u64 {
    (until / tick).saturating_sub(from / tick)
}

impl TcpConfig {
    /// No timer of a sender is due sooner than this after what sets it; `None`: one may be due at any time.
    pub fn least_timeout(&self) -> Option<Span> {
        (!self.tracks_segments()).then(|| Span::from_micros(u64::from(floor_us(self))).min(self.max_rto))
    }
}

/// A timer of less than two ticks could go off at once (ns-2, 4.3BSD).
fn floor_us(cfg: &TcpConfig) -> u32 {
    micros(cfg.min_rto.max(cfg.rto_tick * 2))
}

fn micros(span: Span) -> u32 {
    (span.as_nanos() / 1_000).min(u64::from(u32::MAX)) as u32
}
