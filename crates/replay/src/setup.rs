//! Settings of a replay: queue, link and pace, all explicit.

use aqumen_aqm::{Limit, Network};
use aqumen_units::{Bytes, Rate};

use crate::answer::SetupReport;

/// The queue and the pace at which packets are offered to it, all explicit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setup {
    /// Rate of the link.
    pub rate: Rate,
    /// Buffer.
    pub limit: Limit,
    /// Propagation delay of the link, nanoseconds.
    pub delay_ns: u64,
    /// The network that AQMs design themselves for.
    pub network: Network,
    /// Bytes that each packet takes on the link beyond its length in the capture.
    pub overhead: i64,
    /// Ratio of offered to captured speed.
    pub speedup: f64,
    /// The only interface whose packets count.
    pub interface: Option<u32>,
    /// Number of flows that are reported individually.
    pub top: usize,
    /// Seed of the AQM's random numbers.
    pub seed: u64,
}

impl Setup {
    /// The settings in force, for people and programs.
    pub fn report(&self) -> SetupReport {
        SetupReport {
            rate_bps: self.rate.as_bps(),
            buffer_pkts: self.limit.packets,
            buffer_bytes: (self.limit.bytes != Bytes(u64::MAX)).then_some(self.limit.bytes.0),
            delay_s: self.delay_ns as f64 / 1e9,
            overhead_bytes: self.overhead,
            speedup: self.speedup,
            interface: self.interface,
            seed: self.seed,
            target_pkts: self.network.target_pkts,
            nominal_flows: self.network.flows,
            nominal_rtt_s: self.network.base_rtt_s,
            nominal_packet_bytes: self.network.packet_bytes,
        }
    }
}

/// Bytes that a packet takes on the link: at least one.
#[inline]
pub(super) fn on_the_wire(original: u32, overhead: i64) -> u32 {
    (i64::from(original) + overhead).clamp(1, i64::from(u32::MAX)) as u32
}
