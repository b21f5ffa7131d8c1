//! Parts that all kinds of port share: the result of an arrival, the discipline and the meter of a link.

use aqumen_aqm::{AnyQdisc, Totals};
use aqumen_result::{Counts, Meter};
use aqumen_scenario::Link;
use aqumen_units::Instant;

use crate::Error;

/// Result of a packet's arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The packet will be transmitted from `start` on and reach the next node at `reach`, nanoseconds.
    Leaves {
        /// Start of its transmission.
        start: u64,
        /// Arrival at the next node.
        reach: u64,
    },
    /// The packet waits for a service event, or its transmission started at once.
    Waits {
        /// End of a transmission that started at once.
        busy_until: Option<u64>,
    },
    /// The packet will be transmitted from `start` to `end` and lost on the wire.
    Lost {
        /// Start of its transmission.
        start: u64,
        /// End of its transmission.
        end: u64,
    },
    /// The packet was dropped.
    Dropped,
}

/// Number of a meter's histogram where it depends on the flow.
pub(super) const BY_FLOW: u32 = u32::MAX;

/// Builds the queue discipline of `link`.
pub(super) fn discipline(link: &Link) -> Result<AnyQdisc, Error> {
    let unknown = || Error::UnknownAqm { link: link.name.to_string(), aqm: link.aqm.name.clone() };
    let built = link.aqm.build_qdisc(link.limit).ok_or_else(unknown)?;
    built.map_err(|error| Error::aqm(link, error))
}

/// Makes the meter of `link`, which counts losses within the nominal round trip as one event.
pub(super) fn meter_of(link: &Link) -> Meter {
    Meter::new(link.target_pkts).with_round_trip((link.aqm.network.base_rtt_s * 1e9) as u64)
}

/// Returns the totals that a meter reads.
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

/// Returns the bits of a packet that have been sent by `now`, of a transmission from `start` to `end`.
pub(super) fn sent_bits(bytes: u32, start: u64, end: u64, now: u64) -> f64 {
    8.0 * bytes as f64 * (now - start) as f64 / (end - start) as f64
}

pub(super) fn instant(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}
