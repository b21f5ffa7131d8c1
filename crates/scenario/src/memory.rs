//! How much memory a run will need, and whether the machine has it: known before anything is built.

use std::collections::BTreeSet;

use aqumen_units::{Rate, Span};

use crate::Error;
use crate::cost::{Runner, base_rtt_s, fluid_classes, fluid_step_s, round_trip};
use crate::field::{Buffer, RATE_MAX};
use crate::line::Medium;
use crate::network::Core;
use crate::scenario::Scenario;
use crate::schema::{Group, Spec};
use crate::traffic::Traffic;

/// For one flow: its part of the plan (hosts, four access links with their names and paths: 1.7 kB), and in the packet
/// engine both ends of its connection and its part of the tables, bytes. Measured: 2.4 kB of fluid, 2.7 kB with `ns2`,
/// 4.7 kB with `linux`; of other transports 5.7 kB with `udp`, 6.6 kB with `sctp`, 7.5 kB with `rtp`.
const FLOW_BYTES: u64 = 5200;
const OTHER_FLOW_BYTES: u64 = 8200;
const FLUID_FLOW_BYTES: u64 = 2600;

/// For one channel of the fluid's past, in a list that grows: three of a class of flows, and its time.
const PAST_BYTES: f64 = 10.0;

/// For one packet under way, and for one that waits, with its share of what holds them, bytes. Measured: 32 and 14.
const UNDER_WAY_BYTES: u64 = 40;
const WAITING_BYTES: u64 = 28;

/// For one sample of one recorded link: time, queue and probability twice, since Python gets copies; Jain's index,
/// losses, arrivals and departures; bytes. Measured: 99, of the fluid 100 to 136.
const SAMPLE_BYTES: u64 = 106;
const FLUID_SAMPLE_BYTES: u64 = 140;

/// For each sample of the last second a list of what was acknowledged, and for each flow in such a list, bytes. The
/// lists hold no more than all watched flows, nor than the packets that the link carries in a second.
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

/// For a flow in each of these pieces, bytes: six counts of 8 bytes in a list that grows.
const FLOW_PIECE_BYTES: u64 = 60;

/// For the program itself, bytes.
const BASE_BYTES: u64 = 32 << 20;

impl Scenario {
    /// An estimate, on the high side, of the memory that one run on `runner` takes, bytes.
    pub fn memory_estimate(&self, runner: Runner) -> u64 {
        estimate(runner, self.spec(), self.core())
    }

    /// Refuses a scenario of which `runs` on `runner` at a time need more than the `available` bytes;
    /// `None`: what the machine has.
    pub fn check_memory(&self, runner: Runner, runs: u64, available: Option<u64>) -> Result<(), Error> {
        let Some(available) = available.or_else(self::available) else {
            return Ok(());
        };
        let needed = self.memory_estimate(runner).saturating_mul(runs.max(1));
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
/// run` prints and writes.
fn estimate(runner: Runner, spec: &Spec, core: &Core) -> u64 {
    let flows: u64 = spec.flows.iter().map(Group::flows).sum();
    let samples = spec.duration.as_nanos() / spec.sample_interval().as_nanos().max(1) + 1;
    let windows = (spec.windows.0.len() + spec.events.len() + 2) as u64;
    // A window begins and ends; those of events end where the next begins.
    let edges = (2 * spec.windows.0.len() + spec.events.len() + 2) as u64;
    let recorded = (0..core.links.len()).filter(|link| core.links[*link].record);
    let fluid = matches!(runner, Runner::Fluid | Runner::Theory { .. });
    let (sample, busy) = if fluid { (FLUID_SAMPLE_BYTES, FLUID_PIECE_BYTES) } else { (SAMPLE_BYTES, PIECE_BYTES) };
    let of_group = |group: &Group| match group.transport.config.tcp() {
        _ if fluid => FLUID_FLOW_BYTES,
        Some(_) => FLOW_BYTES,
        None => OTHER_FLOW_BYTES,
    };
    let piece = |link: usize| if queue_forms(spec, core, link) { busy } else { IDLE_PIECE_BYTES };
    let of_flows = spec.flows.iter().map(|group| group.flows().saturating_mul(of_group(group)));
    let mut bytes = of_flows.fold(BASE_BYTES, u64::saturating_add);
    if runner == Runner::Fluid {
        bytes = bytes.saturating_add(past(spec, core));
    }
    for link in recorded {
        let mut of_piece = piece(link);
        if runner == Runner::Packet && queue_forms(spec, core, link) {
            let here = core.ways.iter().filter(|way| way.path.contains(&(link as u32))).count();
            // One group alone is the link's own histogram once more.
            of_piece += here as u64 * GROUP_PIECE_BYTES;
        }
        let of_events = (spec.events.len() as u64).saturating_mul(EVENT_BYTES);
        let of_windows = (windows + edges).saturating_mul(of_piece).saturating_add(of_events);
        let mut each = samples.saturating_mul(sample).saturating_add(of_windows);
        if !fluid {
            // At least one, and those of the last second.
            let second = (1_000_000_000 / spec.sample_interval().as_nanos().max(1) + 2).min(samples);
            let carried = core.links[link].rate.as_bps() / 8 / smallest_packet(spec);
            let news = second.saturating_mul(flows.min(WATCHED)).min(carried);
            each = each.saturating_add(second.saturating_mul(NEWS_BYTES)).saturating_add(news * NEWS_FLOW_BYTES);
        }
        bytes = bytes.saturating_add(each);
    }
    if !fluid {
        let pieces = flows.saturating_mul(edges).saturating_mul(FLOW_PIECE_BYTES);
        bytes = bytes.saturating_add(pieces).saturating_add(packets(spec, core));
    }
    bytes
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

/// Whether packets wait at the link: it is narrower than what comes before it on the way of some group.
fn queue_forms(spec: &Spec, core: &Core, link: usize) -> bool {
    let rate = |link: u32| core.links[link as usize].rate.as_bps();
    spec.flows.iter().zip(&core.ways).any(|(group, way)| {
        [&way.path, &way.return_path].into_iter().any(|path| {
            let Some(at) = path.iter().position(|other| *other as usize == link) else { return false };
            let access = way.access.as_ref().map_or(u64::MAX, |access| access.rate.as_bps());
            let before = path[..at].iter().map(|link| rate(*link)).min().unwrap_or(u64::MAX);
            before.min(access.saturating_mul(group.flows())) > rate(path[at])
        })
    })
}

/// The smallest data packet, bytes.
fn smallest_packet(spec: &Spec) -> u64 {
    spec.flows.iter().map(|group| u64::from(group.transport.config.packet_bytes())).min().unwrap_or(1).max(1)
}

/// What packets take that may be under way at one time, bytes: no more than the receivers' windows admit, nor than slow
/// start reaches, nor than queues and wires hold. A window grows by one for each packet acknowledged, at most, so that
/// in a short run those of TCP hold no more than they began with and what the narrowest links carry. A queue of an
/// access link counts only where that link is what limits its flow; elsewhere it stays all but empty.
fn packets(spec: &Spec, core: &Core) -> u64 {
    let smallest = smallest_packet(spec);
    let room = |buffer: Buffer| match buffer {
        Buffer::Packets(packets) => u64::from(packets),
        Buffer::Bytes(bytes) => bytes.0 / smallest,
    };
    let wire = |rate: Rate, delay: Span| rate.amount_in(delay).0 / smallest;
    let mut waiting: u64 = core.links.iter().map(|link| room(link.buffer)).fold(0, u64::saturating_add);
    let mut under_way = core.links.iter().map(|link| wire(link.rate, link.delay)).fold(0, u64::saturating_add);
    let (mut by_windows, mut at_first): (u64, u64) = (0, 0);
    let mut narrow = BTreeSet::new();
    for (i, (group, way)) in spec.flows.iter().zip(&core.ways).enumerate() {
        let (count, config) = (group.flows(), &group.transport.config);
        let first = u64::from(config.initial_window_pkts());
        let window = config.window_pkts().map_or(u64::MAX, u64::from).min(match config.tcp() {
            Some(_) => grown(first, spec.duration.as_secs_f64() / base_rtt_s(spec, core, i)),
            None => u64::MAX,
        });
        if config.tcp().is_some() {
            by_windows = by_windows.saturating_add(count.saturating_mul(window));
            at_first = at_first.saturating_add(count.saturating_mul(first));
            narrow.extend(way.path.iter().copied().min_by_key(|link| core.links[*link as usize].rate.as_bps()));
        }
        under_way = under_way.saturating_add(count.saturating_mul(first));
        let Some(access) = &way.access else { continue };
        let narrowest = way.path.iter().map(|link| core.links[*link as usize].rate).min().unwrap_or(RATE_MAX);
        let of_access = Rate::from_bps(access.rate.as_bps().saturating_mul(count));
        let around = core
            .owners(spec, i)
            .map(|owner| &spec.flows[owner])
            .map(|placed| placed.rtt.as_ref().map_or((access.delay.high + placed.extra_rtt.high) * 4, |rtt| rtt.high));
        let around = around[0].max(around[1]);
        under_way = under_way.saturating_add(wire(of_access.min(narrowest), around));
        if of_access <= narrowest {
            waiting = waiting.saturating_add(room(access.buffer).saturating_mul(count));
        }
    }
    let fastest = spec.events.iter().filter_map(|event| event.capacity).max();
    let carried = |link: &u32| {
        let rate = core.links[*link as usize].rate;
        wire(fastest.map_or(rate, |fastest| rate.max(fastest)), spec.duration)
    };
    let acknowledged = narrow.iter().map(carried).fold(0, u64::saturating_add);
    let of_tcp = by_windows.min(at_first.saturating_add(acknowledged));
    let load = unresponsive(spec, core);
    let of_others = spec.flows.iter().enumerate().filter(|(_, group)| group.transport.config.tcp().is_none());
    let all = |group: &Group| {
        group.transport.config.window_pkts().map_or(u64::MAX, |window| group.flows().saturating_mul(u64::from(window)))
    };
    let others =
        of_others.map(|(i, group)| carried_of(spec, core, i, &load, of_tcp).unwrap_or(u64::MAX).min(all(group)));
    let admitted = others.fold(of_tcp, u64::saturating_add);
    let under_way = under_way.min(admitted);
    let waiting = waiting.min(admitted - under_way);
    under_way.saturating_mul(UNDER_WAY_BYTES).saturating_add(waiting.saturating_mul(WAITING_BYTES))
}

/// Above this share of a link what ignores signals is taken to fill its buffer.
const CARRIED_SHARE: f64 = 0.9;

/// Packets, and bits, a second that a flow of such a group sends at the most; `None`: not known, or in bursts of any
/// length.
fn peak(group: &Group) -> Option<(f64, f64)> {
    let offered = group.traffic.offered()?;
    let messages = match &group.traffic {
        Traffic::Cbr(_) | Traffic::Poisson(_) => offered.per_second,
        Traffic::OnOff(kind) => kind.rate.packets_per_sec(kind.packet),
        Traffic::Voip(kind) => 1.0 / kind.codec.frame().1.as_secs_f64(),
        _ => return None,
    };
    let (packet, payload) = (group.transport.config.packet_bytes(), group.transport.config.payload_bytes());
    let each = (offered.bytes / f64::from(payload.max(1))).ceil().max(1.0);
    let headers = each * f64::from(packet.saturating_sub(payload));
    Some((messages * each, 8.0 * messages * (offered.bytes + headers)))
}

/// What ignores signals offers each link, bit/s.
fn unresponsive(spec: &Spec, core: &Core) -> Vec<f64> {
    let mut load = vec![0.0; core.links.len()];
    for (group, way) in spec.flows.iter().zip(&core.ways).filter(|(group, _)| group.transport.config.tcp().is_none()) {
        let rate = peak(group).map_or(f64::INFINITY, |(_, bps)| bps * group.flows() as f64);
        way.path.iter().for_each(|link| load[*link as usize] += rate);
    }
    load
}

/// How many packets of group `i`, which ignores signals, there are at one time where all links of its way carry their
/// `load` of such traffic: those of a round trip, and of the time that the packets `of_tcp` wait before what is left.
/// `None`: some link does not, or may not at times.
fn carried_of(spec: &Spec, core: &Core, i: usize, load: &[f64], of_tcp: u64) -> Option<u64> {
    let group = &spec.flows[i];
    let largest = spec.flows.iter().map(|group| group.transport.config.packet_bytes()).max().unwrap_or(0);
    let least = spec.events.iter().filter_map(|event| event.capacity).min().unwrap_or(RATE_MAX);
    let mut delay_s = round_trip(spec, core, i, true).as_secs_f64();
    for link in &core.ways[i].path {
        let at = &core.links[*link as usize];
        let slowest = at.carries.rates.iter().map(|(_, rate)| *rate).fold(at.rate.min(least), Rate::min);
        let rate = slowest.as_bps() as f64;
        let goes_down = !at.carries.outages.is_empty() || spec.events.iter().any(|event| event.state.is_some());
        if at.carries.medium != Medium::Wire || goes_down || load[*link as usize] > CARRIED_SHARE * rate {
            return None;
        }
        delay_s += 8.0 * f64::from(largest) * of_tcp as f64 / (rate - load[*link as usize]);
    }
    Some((group.flows() as f64 * (peak(group)?.0 * delay_s + 2.0)) as u64)
}

/// What slow start makes of a first window in so many round trips, packets.
fn grown(first: u64, round_trips: f64) -> u64 {
    if round_trips < 30.0 { first.saturating_mul(2u64.pow(round_trips as u32 + 1)) } else { u64::MAX }
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
