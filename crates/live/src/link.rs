//! `aqumend link` (laboratory): the links of a scenario between two TUN devices, for any traffic that is routed there.
//!
//! What comes from the first device takes the way of a flow's data, what comes from the second that of its
//! acknowledgements. The program is the link: when it ends, the link is cut.

use std::hash::Hasher;

use aqumen_capture::headers;
use aqumen_network::Identity;
use aqumen_network::measurement::windows_until;
use aqumen_result::Cost;
use aqumen_scenario::Plan;
use lexopt::prelude::*;

use crate::Failure;
use crate::lab::ceiling;
use crate::lab::clock::Clock;
use crate::lab::command::{Chosen, is_stopped, print_line, stop_on_signals, whole_number};
use crate::lab::machine::Calm;
use crate::lab::namespace::{self, Namespace};
use crate::lab::network::Network;
use crate::lab::pump::{Pump, Sorter};
use crate::lab::report::{self, Host, LiveResult};
use crate::lab::thread::{CpuTime, wake_on_time};
use crate::lab::tun::Tun;

/// Longest packet, bytes: what the devices are set to.
const MTU: u32 = 1500;
/// Packets that may wait in a device to be read.
const DEVICE_PKTS: u32 = 2000;
/// Link type of bare IP packets (LINKTYPE_RAW).
const RAW: u16 = 101;

/// Where a device is to be.
#[derive(Debug, PartialEq)]
struct Place {
    namespace: Option<String>,
    device: String,
}

impl Place {
    /// `[NAMESPACE/]DEVICE`; the namespace may be a path, which has a slash of its own.
    fn parse(text: &str) -> Self {
        match text.rsplit_once('/') {
            Some((namespace, device)) => Place { namespace: Some(namespace.into()), device: device.into() },
            None => Place { namespace: None, device: text.into() },
        }
    }
}

pub(crate) fn command(arguments: lexopt::Parser) -> Result<(), Failure> {
    let (mut left, mut right) = (Place::parse("aqumen0"), Place::parse("aqumen1"));
    let (mut link, mut flow, mut super_packets) = (None, 0u32, false);
    let own = |name: &str, parser: &mut lexopt::Parser| {
        match name {
            "left" => left = Place::parse(&parser.value()?.string()?),
            "right" => right = Place::parse(&parser.value()?.string()?),
            "link" => link = Some(parser.value()?.string()?),
            "flow" => flow = whole_number(parser, "flow")?,
            "gso" => super_packets = true,
            _ => return Ok(false),
        }
        Ok(true)
    };
    let Some(chosen) = Chosen::read(arguments, help, own)? else { return Ok(()) };
    let plan = chosen.plan()?;
    let ways = ways(&plan, link.as_deref(), flow)?;
    print_line(&run(&plan, ways, [left, right], super_packets)?)
}

/// Runs the link, and answers with the result as JSON.
fn run(plan: &Plan, ways: Vec<Vec<u32>>, places: [Place; 2], super_packets: bool) -> Result<String, Failure> {
    ceiling::check(plan, super_packets)?;
    let network = Network::with_routes(plan, ways, |_| false)?;
    let mut namespaces = Vec::new();
    let mut tuns = Vec::new();
    for Place { namespace, device } in &places {
        let namespace = Namespace::existing(namespace.as_deref())?;
        let tun = namespace.within(|| Tun::new(device, super_packets))?;
        namespace.bring_up(tun.index, MTU, DEVICE_PKTS)?;
        namespaces.push(namespace);
        tuns.push(tun);
    }
    let devices = [tuns[0].index, tuns[1].index];
    let tuns: [Tun; 2] = tuns.try_into().expect("a device for each of two places");
    stop_on_signals();
    let (realtime, calm) = (wake_on_time(), Calm::ask());
    let end = plan.duration.as_nanos();
    let mut pump = Pump::new(network, tuns, MTU as usize, ByHash, Clock::starting_in(0));
    let cpu = CpuTime::of_thread();
    eprintln!("aqumend: the link is there, for {} s or until Ctrl-C", plan.duration.as_secs_f64());
    let ended = pump.run(end, |_| !is_stopped())?;
    let dropped = namespace::discarded(namespaces.iter().zip(devices));
    let (mut network, lateness, _) = pump.into_parts();
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut host = Host { kernel: kernel.trim().into(), realtime, device_dropped_pkts: dropped, ..Host::default() };
    (host.awake, host.links_cpu_s) = (calm.awake(), Some(cpu.passed_s()));
    host.judge(&lateness);
    let result = if ended < end {
        // Whoever stops it wants the figures up to then.
        let plan = Plan { windows: windows_until(plan, ended), ..plan.clone() };
        let mut result = report::result(&plan, &mut network, None, Cost::default());
        result.notes.push(format!("stopped after {:.3} s: windows of measurement end there", ended as f64 * 1e-9));
        result
    } else {
        report::result(plan, &mut network, None, Cost::default())
    };
    serde_json::to_string(&LiveResult { result, host }).map_err(|error| Failure::refused(error.to_string()))
}

/// The links there and back: the way of flow number `flow`, or the link called `link` with the one that leads back.
fn ways(plan: &Plan, link: Option<&str>, flow: u32) -> Result<Vec<Vec<u32>>, Failure> {
    let Some(name) = link else {
        let flow = plan.flows.get(flow as usize).ok_or_else(|| {
            Failure::refused(format!(
                "--flow {flow}: the scenario's flows are numbered 0 to {}",
                plan.flows.len().saturating_sub(1)
            ))
        })?;
        return Ok(vec![flow.path.clone(), flow.return_path.clone()]);
    };
    let number = plan.links.iter().position(|link| link.name == name).ok_or_else(|| {
        let known: Vec<&str> = plan.links.iter().filter(|link| link.record).map(|link| link.name.as_str()).collect();
        Failure::refused(format!("--link {name}: no such link; recorded: {}", known.join(", ")))
    })?;
    let there = &plan.links[number];
    let back = plan.links.iter().position(|back| (back.from, back.to) == (there.to, there.from));
    Ok(vec![vec![number as u32], back.map(|back| back as u32).into_iter().collect()])
}

fn help() -> String {
    format!(
        "aqumend link: the links of a scenario between two TUN devices, for a laboratory\n\n\
         Usage: aqumend link SCENARIO [OPTIONS]     (as root)\n\n{}\
         \x20 --left [NS/]DEV    the device from which data come, in a namespace of `ip netns`, or one given by its path as in\n\
         \x20                    /proc/1234/ns/net/DEV (aqumen0, here)\n\
         \x20 --right [NS/]DEV   the device to which they go (aqumen1, here)\n\
         \x20 --flow N           take the way of this flow, there and back (0)\n\
         \x20 --link NAME        take this link alone, and the one that leads back\n\
         \x20 --gso              take super-packets of TCP: split before the queue, joined on the way out\n\n\
         It makes the devices and brings them up; addresses and routes are yours. It ends with the scenario or on Ctrl-C, and\n\
         prints the result as JSON. The link is cut when it ends: never use it for traffic that matters.\n",
        Chosen::HELP
    )
}

/// Tells flows by their addresses, protocol and ports.
#[derive(Debug)]
struct ByHash;

impl Sorter for ByHash {
    fn sort(&mut self, side: usize, packet: &[u8]) -> Option<(u32, Identity)> {
        let ip = headers::decode(RAW, packet).ip?;
        let mut flow = Fnv::default();
        flow.write(&ip.source);
        flow.write(&ip.destination);
        let (from, to) = ip.ports.unwrap_or_default();
        flow.write(&[ip.protocol, (from >> 8) as u8, from as u8, (to >> 8) as u8, to as u8]);
        let hash = |address: &[u8]| {
            let mut hash = Fnv::default();
            hash.write(address);
            hash.folded()
        };
        let who = Identity {
            flow_hash: flow.folded(),
            source_hash: hash(&ip.source),
            destination_hash: hash(&ip.destination),
            class: ip.dscp,
        };
        Some((side as u32, who))
    }
}

/// FNV-1a: the same on every machine.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn folded(&self) -> u32 {
        (self.0 >> 32) as u32 ^ self.0 as u32
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_device_or_a_device_in_a_namespace() {
        assert_eq!(Place::parse("t0"), Place { namespace: None, device: "t0".into() });
        assert_eq!(Place::parse("lab/t0"), Place { namespace: Some("lab".into()), device: "t0".into() });
        let of_process = Place::parse("/proc/1234/ns/net/t0");
        assert_eq!(of_process, Place { namespace: Some("/proc/1234/ns/net".into()), device: "t0".into() });
    }

    #[test]
    fn flows_are_told_apart_by_what_they_differ_in() {
        let packet = |source: u8, port: u8| {
            let mut packet = vec![0u8; 28];
            packet[0] = 0x45;
            packet[9] = 17;
            packet[12..20].copy_from_slice(&[10, 0, 0, source, 10, 128, 0, 1]);
            packet[20..24].copy_from_slice(&[1, port, 2, 2]);
            packet
        };
        let sort = |source, port| ByHash.sort(0, &packet(source, port)).unwrap().1;
        assert_eq!(sort(1, 1), sort(1, 1));
        assert_ne!(sort(1, 1).flow_hash, sort(1, 2).flow_hash);
        assert_eq!(sort(1, 1).source_hash, sort(1, 2).source_hash);
        assert_ne!(sort(1, 1).source_hash, sort(2, 1).source_hash);
        assert!(ByHash.sort(0, &[0x10; 40]).is_none(), "neither IPv4 nor IPv6");
    }

    #[test]
    fn whatever_is_told_of_a_flow_keeps_it_apart() {
        let sort = |byte: usize, value: u8| {
            // IPv4 with DSCP 46, a datagram from 10.0.0.1:0x0101 to 10.128.0.1:0x0202.
            let mut packet = vec![0u8; 28];
            packet[..2].copy_from_slice(&[0x45, 46 << 2]);
            packet[9] = 17;
            packet[12..24].copy_from_slice(&[10, 0, 0, 1, 10, 128, 0, 1, 1, 1, 2, 2]);
            packet[byte] = value;
            ByHash.sort(1, &packet).unwrap()
        };
        let (route, who) = sort(0, 0x45);
        assert_eq!((route, who.class), (1, 46));
        // Protocol, addresses, and both bytes of both ports.
        let others = [(9, 6), (12, 11), (15, 2), (16, 11), (19, 2), (20, 9), (21, 9), (22, 9), (23, 9)];
        let hashes: std::collections::BTreeSet<u32> =
            others.iter().map(|(byte, value)| sort(*byte, *value).1.flow_hash).chain([who.flow_hash]).collect();
        assert_eq!(hashes.len(), 1 + others.len());
        // Hosts are told apart by their own address alone.
        let (other_source, other_destination) = (sort(15, 2).1, sort(19, 2).1);
        assert_ne!(other_source.source_hash, who.source_hash);
        assert_eq!(other_source.destination_hash, who.destination_hash);
        assert_ne!(other_destination.destination_hash, who.destination_hash);
        assert_eq!(other_destination.source_hash, who.source_hash);
        // What else stands in the header tells nothing.
        assert_eq!(sort(8, 3).1, who);
    }

    #[test]
    fn hashes_are_those_of_fowler_noll_and_vo() {
        // From their test vectors: FNV-1a of 64 bits of nothing, of "a" and of "foobar", folded to 32.
        for (text, hash) in
            [("", 0xcbf2_9ce4_8422_2325u64), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
        {
            let mut fnv = Fnv::default();
            fnv.write(text.as_bytes());
            assert_eq!((fnv.finish(), fnv.folded()), (hash, (hash >> 32) as u32 ^ hash as u32), "{text}");
        }
        let mut fnv = Fnv::default();
        fnv.write(b"a");
        assert_eq!(fnv.folded(), 0x2962_30c0);
    }

    #[test]
    fn a_way_is_that_of_a_flow_or_a_link_and_the_one_that_leads_back() {
        let text = "name = \"t\"\nduration = \"1s\"\n[topology]\npreset = \"dumbbell\"\n\
             bottleneck = { rate = \"8Mbit\", delay = \"20ms\", buffer = \"50pkt\" }\n\
             access = { rate = \"80Mbit\", delay = \"5ms\" }\n[[flows]]\nname = \"f\"\ncount = 2\n";
        let plan = aqumen_scenario::Scenario::parse(text, "t.toml").unwrap().plan(1, None).unwrap();
        let flow = &plan.flows[1];
        assert_eq!(ways(&plan, None, 1).unwrap(), [flow.path.clone(), flow.return_path.clone()]);
        let why = ways(&plan, None, 2).unwrap_err().to_string();
        assert!(why.contains("--flow 2: the scenario's flows are numbered 0 to 1"), "{why}");
        let number = plan.links.iter().position(|link| link.record).unwrap();
        let name = plan.links[number].name.clone();
        let both = ways(&plan, Some(&name), 0).unwrap();
        let (there, back) = (&plan.links[both[0][0] as usize], &plan.links[both[1][0] as usize]);
        assert_eq!((both[0][0] as usize, both[0].len(), both[1].len()), (number, 1, 1));
        assert_eq!((there.from, there.to), (back.to, back.from));
        let why = ways(&plan, Some("nowhere"), 0).unwrap_err().to_string();
        assert!(why.contains("--link nowhere: no such link") && why.contains(&name), "{why}");
    }
}
