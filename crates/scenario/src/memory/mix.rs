//! What comes to a link, as plain as its discipline is shown it: packets of one size.

use crate::memory::filling::{Flows, Load};
use crate::memory::reach::ROOM;
use crate::memory::share::Share;

/// Packets a second, windows, and the one size of both.
pub(crate) struct Mix {
    bytes: f64,
    /// Packets a second of that size that come whatever becomes of them.
    regardless: f64,
    flows: Vec<Flows>,
    /// As many packets wait as are shown, times this: those that come regardless may be smaller.
    pub(crate) smaller: f64,
}

impl Mix {
    /// That of `shares` at a link that carries `bps` at the least. What applications write over windows comes as it is
    /// written where there is room for it.
    pub(crate) fn of(shares: &[&Share], bps: f64) -> Self {
        let written = shares.iter().map(|share| if share.flows.is_some() { share.bps } else { 0.0 });
        let always = shares.iter().map(|share| 8.0 * share.per_second * share.packet_bytes).sum::<f64>();
        let room = always + written.filter(|bps| bps.is_finite()).sum::<f64>() < ROOM * bps;
        let opens = |share: &&&Share| share.flows.is_some() && !(room && share.bps.is_finite());
        let windows: Vec<&&Share> = shares.iter().filter(opens).collect();
        let others = shares.iter().filter(|share| !opens(share));
        let (mut regardless, mut packets) = (always, shares.iter().map(|share| share.per_second).sum::<f64>());
        for share in others.filter(|share| share.flows.is_some()) {
            regardless += share.bps;
            packets += share.bps / (8.0 * share.packet_bytes);
        }
        let mean = if packets > 0.0 { regardless / (8.0 * packets) } else { f64::INFINITY };
        let bytes = windows.iter().map(|share| share.packet_bytes).fold(f64::INFINITY, f64::min);
        let bytes = if windows.is_empty() { mean } else { bytes };
        let part = (regardless / bps).min(1.0);
        let smaller = if mean < bytes { 1.0 + part * (bytes / mean - 1.0) } else { 1.0 };
        Mix {
            bytes,
            regardless: regardless / (8.0 * bytes),
            flows: windows.iter().filter_map(|share| share.flows).collect(),
            smaller,
        }
    }

    pub(crate) fn load(&self, rtt: u64) -> Load {
        Load {
            regardless: self.regardless,
            flows: self.flows.clone(),
            bytes: self.bytes.clamp(1.0, 65_535.0) as u32,
            rtt,
        }
    }
}
