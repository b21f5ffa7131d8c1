//! How much memory a run will need, and whether the machine has it: known before anything is built.

use crate::field::Buffer;
use crate::network::Core;
use crate::schema::Spec;

/// For one flow: both ends of its connection, its part of the plan (hosts, four access links with their names and paths)
/// and of the engine's tables, bytes.
const FLOW_BYTES: u64 = 4096;

/// For one packet in flight or waiting, with its share of the rings that hold it, bytes.
const PACKET_BYTES: u64 = 64;

/// For one sample of one recorded link: time, queue, probability, bytes.
const SAMPLE_BYTES: u64 = 48;

/// For the program itself, bytes.
const BASE_BYTES: u64 = 32 << 20;

/// An upper estimate of the memory that one run of `spec` takes, bytes.
pub(crate) fn estimate(spec: &Spec, core: &Core) -> u64 {
    let flows: u64 = spec.flows.iter().map(|group| u64::from(group.count)).sum();
    // No more packets exist than the receivers' windows admit, nor than queues and wires of the written links hold.
    let by_window: u64 = spec
        .flows
        .iter()
        .map(|group| u64::from(group.count).saturating_mul(u64::from(group.transport.config.receive_window)))
        .fold(0, u64::saturating_add);
    let smallest =
        spec.flows.iter().map(|group| u64::from(group.transport.config.packet_bytes)).min().unwrap_or(1).max(1);
    let by_room: u64 = core
        .links
        .iter()
        .map(|link| {
            let waiting = match link.buffer {
                Buffer::Packets(packets) => u64::from(packets),
                Buffer::Bytes(bytes) => bytes.0 / smallest,
            };
            waiting.saturating_add(link.rate.amount_in(link.delay).0 / smallest)
        })
        .fold(0, u64::saturating_add);
    // What fills the access links comes on top, but it stands in the windows.
    let by_access: u64 = spec
        .flows
        .iter()
        .zip(&core.ways)
        .filter_map(|(group, way)| {
            let access = way.access.as_ref()?;
            let delay = access.delay.high + group.extra_rtt.high;
            let waiting = match access.buffer {
                Buffer::Packets(packets) => u64::from(packets),
                Buffer::Bytes(bytes) => bytes.0 / smallest,
            };
            let each = waiting.saturating_add(access.rate.amount_in(delay).0 / smallest).saturating_mul(4);
            Some(each.saturating_mul(u64::from(group.count)))
        })
        .fold(0, u64::saturating_add);
    let packets = by_window.min(by_room.saturating_add(by_access));
    let samples = spec.duration.as_nanos() / spec.record.interval.as_nanos().max(1) + 1;
    let recorded = core.links.iter().filter(|link| link.record).count() as u64;
    (BASE_BYTES)
        .saturating_add(flows.saturating_mul(FLOW_BYTES))
        .saturating_add(packets.saturating_mul(PACKET_BYTES))
        .saturating_add(samples.saturating_mul(recorded).saturating_mul(SAMPLE_BYTES))
}

/// Memory that is free for a run on this machine, bytes. `None` where the system does not tell.
pub fn available() -> Option<u64> {
    available_in(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

/// `MemAvailable` of a Linux `/proc/meminfo`, bytes.
fn available_in(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_is_read_from_meminfo() {
        assert_eq!(available_in("MemTotal: 9 kB\nMemAvailable:    2048 kB\n"), Some(2048 * 1024));
        assert_eq!(available_in("MemTotal: 9 kB\n"), None);
    }
}
