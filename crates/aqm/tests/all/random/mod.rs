//! Common helpers of the property tests: the link, limits, draws, and a log of fates.

use aqumen_aqm::{DropReason, Fates, Handle, Limit, Network};
use aqumen_units::{Bytes, Rate};
use proptest::prelude::*;

pub(crate) use aqumen_aqm::testing::SplitMix as Random;

/// The link under the queue.
pub(crate) const NETWORK: Network = Network {
    capacity: Rate::from_bps(10_000_000),
    flows: 100.0,
    base_rtt_s: 0.2,
    target_pkts: 100.0,
    packet_bytes: 1000.0,
    link_rate: Rate::from_bps(10_000_000),
    buffer_pkts: 300.0,
};

/// Small, usual and unlimited capacities.
pub(crate) fn limits() -> impl Strategy<Value = Limit> {
    let packets = prop_oneof![Just(1), Just(300), Just(u32::MAX), 1..1000u32];
    let bytes = prop_oneof![3 => Just(u64::MAX), 1 => Just(0), 1 => 0..1_000_000u64];
    (packets, bytes).prop_map(|(packets, bytes)| Limit { packets, bytes: Bytes(bytes) })
}

/// Fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fate {
    Marked(Handle),
    Dropped(Handle, DropReason),
    Sent(Handle),
}

/// Records the fates of packets.
#[derive(Default)]
pub(crate) struct Log(pub(crate) Vec<Fate>);

impl Fates for Log {
    fn marked(&mut self, handle: Handle) {
        self.0.push(Fate::Marked(handle));
    }

    fn dropped(&mut self, handle: Handle, reason: DropReason) {
        self.0.push(Fate::Dropped(handle, reason));
    }
}
