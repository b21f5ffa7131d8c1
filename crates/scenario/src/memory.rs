//! How much memory a run will need, and whether the machine has it: known before anything is built.

use aqumen_units::{Rate, Span};

use crate::field::{Buffer, RATE_MAX};
use crate::network::Core;
use crate::schema::{Group, Spec};

/// For one flow: its part of the plan (hosts, four access links with their names and paths: measured, 1.7 kB), both ends of
/// its connection and its part of the engine's tables, bytes. The engine's benchmark peaks at 91 MB in
/// all with 10 000 flows, its packets included, and at 428 MB with 100 000.
const FLOW_BYTES: u64 = 4096;

/// For one packet in flight or waiting, with its share of the rings that hold it, bytes.
const PACKET_BYTES: u64 = 64;

/// For one sample of one recorded link: time, queue, probability, bytes.
const SAMPLE_BYTES: u64 = 48;

/// For the program itself, bytes.
const BASE_BYTES: u64 = 32 << 20;

/// An estimate, on the high side, of the memory that one run of `spec` takes, bytes.
pub(crate) fn estimate(spec: &Spec, core: &Core) -> u64 {
    let flows: u64 = spec.flows.iter().map(Group::flows).sum();
    let packets = packets(spec, core);
    let samples = spec.duration.as_nanos() / spec.sample_interval().as_nanos().max(1) + 1;
    let recorded = core.links.iter().filter(|link| link.record).count() as u64;
    BASE_BYTES
        .saturating_add(flows.saturating_mul(FLOW_BYTES))
        .saturating_add(packets.saturating_mul(PACKET_BYTES))
        .saturating_add(samples.saturating_mul(recorded).saturating_mul(SAMPLE_BYTES))
}

/// Packets that may be under way at one time: no more than the receivers' windows admit, nor than queues and wires hold.
/// A queue of an access link counts only where that link is what limits its flow; elsewhere it stays all but empty.
fn packets(spec: &Spec, core: &Core) -> u64 {
    let smallest =
        spec.flows.iter().map(|group| u64::from(group.transport.config.packet_bytes())).min().unwrap_or(1).max(1);
    let room = |buffer: Buffer| match buffer {
        Buffer::Packets(packets) => u64::from(packets),
        Buffer::Bytes(bytes) => bytes.0 / smallest,
    };
    let wire = |rate: Rate, delay: Span| rate.amount_in(delay).0 / smallest;
    let of_core = core.links.iter().map(|link| room(link.buffer).saturating_add(wire(link.rate, link.delay)));
    let mut held: u64 = of_core.fold(0, u64::saturating_add);
    let mut admitted: u64 = 0;
    for (i, (group, way)) in spec.flows.iter().zip(&core.ways).enumerate() {
        let placed = &spec.flows[spec.host_group(i)];
        let (count, config) = (group.flows(), &group.transport.config);
        let window = config.window_pkts().map_or(u64::MAX, u64::from);
        admitted = admitted.saturating_add(count.saturating_mul(window));
        held = held.saturating_add(count.saturating_mul(u64::from(config.initial_window_pkts())));
        let Some(access) = &way.access else { continue };
        let narrowest = way.path.iter().map(|link| core.links[*link as usize].rate).min().unwrap_or(RATE_MAX);
        let of_access = Rate::from_bps(access.rate.as_bps().saturating_mul(count));
        let around = placed.rtt.as_ref().map_or((access.delay.high + placed.extra_rtt.high) * 4, |rtt| rtt.high);
        held = held.saturating_add(wire(of_access.min(narrowest), around));
        if of_access <= narrowest {
            held = held.saturating_add(room(access.buffer).saturating_mul(count));
        }
    }
    admitted.min(held)
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
