//! What the kinds of ports have in common: what they answer to an arrival, the discipline of a link, what its meter is
//! told.

use aqumen_aqm::{AnyQdisc, Totals};
use aqumen_result::{Counts, Meter};
use aqumen_scenario::Link;
use aqumen_units::Instant;

use crate::Error;

/// What became of a packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It will be transmitted from `start` on and reach the next node at `reach`, nanoseconds.
    Leaves {
        /// When its transmission starts.
        start: u64,
        /// When it reaches the next node.
        reach: u64,
    },
    /// It waits; a service event tells when it leaves. `busy_until` is set when its transmission started at once.
    Waits {
        /// When that transmission ends.
        busy_until: Option<u64>,
    },
    /// It will be transmitted from `start` on, and get lost on the wire.
    Lost {
        /// When its transmission starts.
        start: u64,
    },
    /// It is gone.
    Dropped,
}

/// The queue discipline of `link`.
pub(super) fn discipline(link: &Link) -> Result<AnyQdisc, Error> {
    let unknown = || Error::UnknownAqm { link: link.name.clone(), aqm: link.aqm.name.clone() };
    let built = link.aqm.build_qdisc(link.limit).ok_or_else(unknown)?;
    built.map_err(|error| Error::aqm(link, error))
}

/// The meter of `link`, which takes losses within the nominal round trip for one event.
pub(super) fn meter_of(link: &Link) -> Meter {
    Meter::new(link.target_pkts).with_round_trip((link.aqm.network.base_rtt_s * 1e9) as u64)
}

/// What a meter wants to know of a queue's totals.
pub(super) fn counts(totals: &Totals) -> Counts {
    Counts {
        arrivals: totals.arrivals,
        departures: totals.departures,
        departed_bytes: totals.departed_bytes,
        marked: totals.marked,
        early_dropped: totals.early_dropped,
        overflow_dropped: totals.overflow_dropped,
    }
}

/// Bits of a packet that are on the wire at `now`, when its transmission lasts from `start` to `end`.
pub(super) fn sent_bits(bytes: u32, start: u64, end: u64, now: u64) -> f64 {
    8.0 * bytes as f64 * (now - start) as f64 / (end - start) as f64
}

pub(super) fn instant(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}
