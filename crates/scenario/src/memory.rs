//! How much memory a run will need, and whether the machine has it: known before anything is built.

mod filling;
mod held;
pub mod kept;
mod queue;
mod reach;
mod share;
mod under_way;
mod windows;

use aqumen_aqm::Qdisc;
use aqumen_transport::Config;

use crate::Error;
use crate::cost::{Runner, fluid_classes, fluid_step_s, links, round_trip};
use crate::field::{Buffer, RATE_MAX};
use crate::memory::held::{remembered, requests, unsent};
use crate::memory::reach::{narrowest, queue_forms, queue_grows};
use crate::memory::under_way::packets;
use crate::network::Core;
use crate::plan::Link;
use crate::scenario::Scenario;
use crate::schema::{Group, Spec};
use crate::spec::AqmSpec;
use crate::traffic::Traffic;
use crate::transport::Protocol;

/// For one flow: its part of the plan (hosts, four access links with their names and paths: 1.7 kB), and in the packet
/// engine both ends of its connection and its part of the tables, bytes. Measured: 2.4 kB of fluid, 2.4 kB with `ns2`,
/// of TCPs that keep what they know of each segment 3.6 to 4.3 kB; 3.2 kB with `udp`, 5.0 kB with `sctp`, 3.9 to 5.5 kB
/// with `rtp`.
const PLAIN_FLOW_BYTES: u64 = 2900;
const FLOW_BYTES: u64 = 4600;
const UDP_FLOW_BYTES: u64 = 3800;
const SCTP_FLOW_BYTES: u64 = 5600;
const RTP_FLOW_BYTES: u64 = 5600;
const FLUID_FLOW_BYTES: u64 = 2600;

/// The lists of an association keep the room of the most chunks that it had under way: where many share a link, as many
/// as slow start opens in a few round trips. Measured: 7.6 kB with windows of twenty, 11.2 kB with larger ones.
const SLOW_START_CHUNKS: u32 = 64;
/// For one of the sources that make self-similar traffic together, bytes. Measured: 159.
const SOURCE_BYTES: u64 = 170;

/// For one channel of the fluid's past, in a list that grows: three of a class of flows, and its time.
const PAST_BYTES: f64 = 10.0;

/// For one sample of one recorded link: time, queue and probability twice, since Python gets copies; Jain's index,
/// losses, arrivals and departures; bytes. Measured: 99, of the fluid 100 to 136.
const SAMPLE_BYTES: u64 = 94;
/// For each quantity that its AQM shows, in a list that grows, bytes.
const SHOWN_BYTES: u64 = 16;
const FLUID_SAMPLE_BYTES: u64 = 140;

/// For each sample of the last second a list of what was acknowledged, and for each flow in such a list, bytes. The
/// lists hold no more than all watched flows, endless TCP transfers, nor than the packets that the link carries of
/// theirs in a second.
const NEWS_BYTES: u64 = 48;
const NEWS_FLOW_BYTES: u64 = 48;
const WATCHED: u64 = 256;

/// For a recorded link, in each window and in each piece between the edges of windows: histograms of waiting
/// times and queue lengths where a queue forms, and where none does, bytes. Measured: 17 kB, with `--out` 24 kB,
/// of the fluid 27 to 35 kB; 7 kB.
const PIECE_BYTES: u64 = 26_000;
const FLUID_PIECE_BYTES: u64 = 42_000;
const IDLE_PIECE_BYTES: u64 = 10_000;

/// For what a change of the network leads to, its transient and what Python makes of its window, bytes. Measured with
/// the piece that it begins: 110 to 137 kB.
const EVENT_BYTES: u64 = 65_000;

/// For the waiting times of each group of flows in each of these, where a queue forms, bytes: the histogram alone.
const GROUP_PIECE_BYTES: u64 = 16_000;

/// For the times that the packets of each group are on their way in each piece between edges, bytes: a histogram, whose
/// list grows. Measured: 23 to 38 kB.
const WAY_PIECE_BYTES: u64 = 30_000;

/// For a flow in each of these pieces, bytes: six counts of 8 bytes in a list that grows.
const FLOW_PIECE_BYTES: u64 = 60;

/// For the program itself, bytes.
const BASE_BYTES: u64 = 32 << 20;

/// Below so many bytes nobody asks a discipline how long its queue becomes.
const LITTLE: f64 = 1e6;

impl Scenario {
    /// An estimate, on the high side, of the memory that one run on `runner` takes with `aqm` on the links under test,
    /// bytes; `None`: the one that the scenario names.
    pub fn memory_estimate(&self, runner: Runner, aqm: Option<&AqmSpec>) -> u64 {
        self.memory(runner, aqm, LITTLE)
    }

    /// An estimate for which no discipline is asked that might keep less than `little` bytes waiting: they count as
    /// much as might wait.
    fn memory(&self, runner: Runner, aqm: Option<&AqmSpec>, little: f64) -> u64 {
        let links = self.own(aqm).ok().and_then(|own| links(self.spec(), self.core(), &own, self.fixed()));
        estimate(runner, self.spec(), self.core(), links.as_deref(), little)
    }

    /// Refuses a scenario of which `runs` on `runner` at a time, with `aqm` on the links under test, need more than the
    /// `available` bytes; `None`: the AQM that the scenario names, what the machine has.
    pub fn check_memory(
        &self,
        runner: Runner,
        aqm: Option<&AqmSpec>,
        runs: u64,
        available: Option<u64>,
    ) -> Result<(), Error> {
        let Some(available) = available.or_else(self::available) else {
            return Ok(());
        };
        // What asking takes, time and memory, is spent where the answer decides.
        let needed = |little| self.memory(runner, aqm, little).saturating_mul(runs.max(1));
        if needed(f64::INFINITY) <= available {
            return Ok(());
        }
        let needed = needed(LITTLE);
        if needed <= available {
            return Ok(());
        }
        let message = format!("needs about {} of memory, but {} are free", gibibytes(needed), gibibytes(available));
        Err(Error::of_file(self.file(), message))
    }
}

fn gibibytes(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}

/// An estimate, on the high side, of the memory that one run of `spec` on `runner` takes, bytes. It holds what `aqumen
/// run` prints and writes. `links` are those of the plan, if they are known; those are asked that might keep more than
/// `little` bytes waiting.
fn estimate(runner: Runner, spec: &Spec, core: &Core, links: Option<&[Link]>, little: f64) -> u64 {
    let flows = spec.all_flows();
    let fluid = matches!(runner, Runner::Fluid | Runner::Theory { .. });
    let of_group = |group: &Group| if fluid { FLUID_FLOW_BYTES } else { flow(group) };
    let of_flows = spec.flows.iter().map(|group| group.flows().saturating_mul(of_group(group)));
    let mut bytes = of_flows.fold(BASE_BYTES, u64::saturating_add);
    if runner == Runner::Fluid {
        bytes = bytes.saturating_add(past(spec, core));
    }
    for number in (0..core.links.len()).filter(|link| core.links[*link].record) {
        let link = links.map(|links| &links[number]);
        bytes = bytes.saturating_add(pieces(runner, spec, core, number)).saturating_add(match fluid {
            true => samples(spec).saturating_mul(FLUID_SAMPLE_BYTES),
            false => sampled(spec, core, number, link),
        });
    }
    if !fluid {
        let edges = edges(spec);
        let ways = if runner == Runner::Packet { spec.flows.len() as u64 * (edges + 1) * WAY_PIECE_BYTES } else { 0 };
        let of_flows = flows.saturating_mul(edges).saturating_mul(FLOW_PIECE_BYTES);
        let more = [
            ways,
            of_flows,
            packets(spec, core, links, little),
            requests(spec, core),
            remembered(spec, core),
            unsent(spec, core),
        ];
        bytes = more.into_iter().fold(bytes, u64::saturating_add);
    }
    bytes
}

/// Samples of a link.
fn samples(spec: &Spec) -> u64 {
    spec.duration.as_nanos() / spec.sample_interval().as_nanos().max(1) + 1
}

/// Moments between which pieces of a run lie: a window begins and ends; those of events end where the next begins.
fn edges(spec: &Spec) -> u64 {
    (2 * spec.windows.0.len() + spec.events.len() + 2) as u64
}

/// What windows and the pieces between their edges take of link `number`, bytes.
fn pieces(runner: Runner, spec: &Spec, core: &Core, number: usize) -> u64 {
    let windows = (spec.windows.0.len() + spec.events.len() + 2) as u64;
    let grows = queue_grows(spec, core, number);
    let mut each = match runner {
        _ if !grows => IDLE_PIECE_BYTES,
        Runner::Fluid | Runner::Theory { .. } => FLUID_PIECE_BYTES,
        _ => PIECE_BYTES,
    };
    if grows && runner == Runner::Packet {
        let here = core.ways.iter().filter(|way| way.path.contains(&(number as u32))).count();
        // One group alone is the link's own histogram once more.
        each += here as u64 * GROUP_PIECE_BYTES;
    }
    let of_events = (spec.events.len() as u64).saturating_mul(EVENT_BYTES);
    (windows + edges(spec)).saturating_mul(each).saturating_add(of_events)
}

/// What samples of link `number` take in the packet engine, and news of watched flows, bytes.
fn sampled(spec: &Spec, core: &Core, number: usize, link: Option<&Link>) -> u64 {
    let all = samples(spec);
    // At least one, and those of the last second.
    let second = (1_000_000_000 / spec.sample_interval().as_nanos().max(1) + 2).min(all);
    let endless = (0..spec.flows.len())
        .filter(|i| spec.flows[*i].transport.config.tcp().is_some())
        .filter(|i| spec.flows[*i].traffic == Traffic::Bulk && spec.flows[*i].transfer.is_none())
        .filter(|i| core.ways[*i].path.contains(&(number as u32)));
    let (watched, bps) = endless.fold((0, 0.0), |(flows, bps), i| {
        (spec.flows[i].flows().saturating_add(flows), narrowest(spec, core, i) + bps)
    });
    let carried = bps.min(core.links[number].rate.as_bps() as f64) as u64 / 8 / smallest_packet(spec);
    let news = second.saturating_mul(watched.min(WATCHED)).min(carried);
    let of_samples = all.saturating_mul(SAMPLE_BYTES + link.map_or(1, shown) * SHOWN_BYTES);
    of_samples.saturating_add(second.saturating_mul(NEWS_BYTES)).saturating_add(news * NEWS_FLOW_BYTES)
}

/// The smallest data packet, bytes.
fn smallest_packet(spec: &Spec) -> u64 {
    spec.flows.iter().map(|group| u64::from(group.transport.config.packet_bytes())).min().unwrap_or(1).max(1)
}

/// Quantities that the discipline of `link` shows of its state at each sample.
fn shown(link: &Link) -> u64 {
    let mut shown = 0;
    if let Some(Ok(qdisc)) = link.aqm.build_qdisc(link.limit) {
        qdisc.observe(&mut |_, _| shown += 1);
    }
    shown
}

/// What a flow of `group` takes in the packet engine beside its packets, bytes.
fn flow(group: &Group) -> u64 {
    let ends = match &group.transport.config {
        Protocol::Tcp(tcp) if tcp.kept_bytes() == 0 => PLAIN_FLOW_BYTES,
        Protocol::Tcp(_) => FLOW_BYTES,
        Protocol::Udp(_) => UDP_FLOW_BYTES,
        Protocol::Sctp(sctp) => {
            let chunks = sctp.window_of_full_pkts().unwrap_or(u32::MAX).min(SLOW_START_CHUNKS);
            SCTP_FLOW_BYTES + u64::from(chunks) * (sctp.kept_bytes() + sctp.early_bytes()) as u64
        }
        Protocol::Rtp(_) => RTP_FLOW_BYTES,
    };
    match &group.traffic {
        Traffic::SelfSimilar(kind) => ends + u64::from(kind.sources) * SOURCE_BYTES,
        _ => ends,
    }
}

/// What the fluid keeps of its past, bytes: as far back as the longest round trip that can come about, and once more
/// before what nobody needs is dropped.
fn past(spec: &Spec, core: &Core) -> u64 {
    let least = spec.events.iter().filter_map(|event| event.capacity).min().unwrap_or(RATE_MAX);
    let reach_s = |(i, group): (usize, &Group)| {
        let (way, delay) = (&core.ways[i], round_trip(spec, core, i, true));
        let packet = f64::from(group.transport.config.packet_bytes());
        let full = way.path.iter().filter(|link| queue_forms(spec, core, **link as usize)).map(|link| {
            let link = &core.links[*link as usize];
            let bytes = match link.buffer {
                Buffer::Packets(packets) => f64::from(packets) * packet,
                Buffer::Bytes(bytes) => bytes.0 as f64,
            };
            8.0 * bytes / link.rate.min(least).as_bps() as f64
        });
        full.fold(delay.as_secs_f64(), |sum, each| sum + each)
    };
    let reach_s = spec.flows.iter().enumerate().map(reach_s).fold(0.0, f64::max);
    let kept_s = (2.0 * reach_s).min(spec.duration.as_secs_f64());
    let rows = (kept_s / (fluid_step_s(spec, core) / 4.0)).max(1024.0);
    (rows * (3.0 * fluid_classes(spec, core) + 1.0) * PAST_BYTES) as u64
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
