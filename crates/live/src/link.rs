//! `aqumend link` (laboratory): the links of a scenario between two TUN devices, for any traffic that is routed there.
//!
//! Packets of the first device take a flow's forward path, those of the second its return path. The program is the
//! link: when it ends, the link is cut.

use std::hash::Hasher;

use aqumen_capture::headers;
use aqumen_network::Identity;
use aqumen_network::measurement::windows_until;
use aqumen_result::Cost;
use aqumen_scenario::Plan;

use crate::Error;
use crate::arguments::{Opt, store, whole_number};
use crate::lab::capacity;
use crate::lab::command::{ScenarioOptions, is_stopped, print_line, stop_on_signals};
use crate::lab::cpu_latency::CpuLatencyRequest;
use crate::lab::forwarder::{Classifier, Forwarder};
use crate::lab::network::Network;
use crate::lab::report::{self, Host, LiveResult};
use crate::machine::clock::Clock;
use crate::machine::namespace::{self, Namespace};
use crate::machine::thread::{CpuTime, wake_on_time};
use crate::machine::tun::Tun;

/// MTU of the devices, bytes.
const MTU: u32 = 1500;
/// Queue of a device, packets.
const DEVICE_PKTS: u32 = 2000;
/// Link type of bare IP packets (LINKTYPE_RAW).
const RAW: u16 = 101;

/// A device, and its network namespace.
#[derive(Debug, PartialEq)]
struct DeviceSpec {
    namespace: Option<String>,
    device: String,
}

impl DeviceSpec {
    /// Parses `[NAMESPACE/]DEVICE`; the namespace may be a path, which has slashes of its own.
    fn parse(text: &str) -> Self {
        match text.rsplit_once('/') {
            Some((namespace, device)) => DeviceSpec { namespace: Some(namespace.into()), device: device.into() },
            None => DeviceSpec { namespace: None, device: text.into() },
        }
    }
}

/// Options of `aqumend link` alone.
#[derive(Debug)]
struct LinkOptions {
    left: DeviceSpec,
    right: DeviceSpec,
    link: Option<String>,
    flow: u32,
    super_packets: bool,
}

impl Default for LinkOptions {
    fn default() -> Self {
        let [left, right] = ["aqumen0", "aqumen1"].map(DeviceSpec::parse);
        LinkOptions { left, right, link: None, flow: 0, super_packets: false }
    }
}

pub(crate) fn command(arguments: lexopt::Parser) -> Result<(), Error> {
    let extra = vec![
        Opt::new(
            "left [NS/]DEV",
            "device from which data come, in a namespace of `ip netns` or at a path as /proc/1234/ns/net/DEV; default aqumen0",
            |all, value| {
                let all: &mut ScenarioOptions<LinkOptions> = all;
                store(&mut all.extra.left, DeviceSpec::parse(value))
            },
        ),
        Opt::new("right [NS/]DEV", "device to which they go; default aqumen1", |all, value| {
            store(&mut all.extra.right, DeviceSpec::parse(value))
        }),
        Opt::new("flow N", "take the path of this flow, there and back; default 0", |all, value| {
            store(&mut all.extra.flow, whole_number("flow", value)?)
        }),
        Opt::new("link NAME", "take this link alone, and its reverse", |all, value| {
            store(&mut all.extra.link, Some(value.into()))
        }),
        Opt::new("gso", "exchange super-packets of TCP: split before the queue, joined on the way out", |all, _| {
            store(&mut all.extra.super_packets, true)
        }),
    ];
    let head = "aqumend link: the links of a scenario between two TUN devices, for a laboratory\n\n\
                Usage: aqumend link SCENARIO [OPTIONS]     (as root). SCENARIO is a file, or - for standard input.\n\n\
                It makes the devices and brings them up; addresses and routes are yours. It ends with the scenario or on Ctrl-C, and\n\
                prints the result as JSON. The link is cut when it ends: never use it for traffic that matters.\n";
    let Some(options) = ScenarioOptions::read("link", head, extra, arguments)? else { return Ok(()) };
    let plan = options.plan()?;
    let LinkOptions { left, right, link, flow, super_packets } = options.extra;
    let routes = routes(&plan, link.as_deref(), flow)?;
    print_line(&run(&plan, routes, [left, right], super_packets)?)
}

/// Runs the link. Returns the result as JSON.
fn run(plan: &Plan, routes: Vec<Vec<u32>>, specs: [DeviceSpec; 2], super_packets: bool) -> Result<String, Error> {
    capacity::check(plan, super_packets)?;
    let network = Network::with_routes(plan, routes, |_| false)?;
    let mut namespaces = Vec::new();
    let mut tuns = Vec::new();
    for DeviceSpec { namespace, device } in &specs {
        let namespace = Namespace::open(namespace.as_deref())?;
        let tun = namespace.within(|| Tun::new(device, super_packets))?;
        namespace.bring_up(tun.index, MTU, DEVICE_PKTS)?;
        namespaces.push(namespace);
        tuns.push(tun);
    }
    let devices = [tuns[0].index, tuns[1].index];
    let tuns: [Tun; 2] = tuns.try_into().expect("a device for each of two specs");
    stop_on_signals();
    let (realtime, latency_request) = (wake_on_time(), CpuLatencyRequest::open());
    let end = plan.duration.as_nanos();
    let mut forwarder = Forwarder::new(network, tuns, MTU as usize, HashClassifier, Clock::starting_in(0));
    let cpu = CpuTime::for_thread();
    eprintln!("aqumend: the link is there, for {} s or until Ctrl-C", plan.duration.as_secs_f64());
    let ended = forwarder.run(end, |_| !is_stopped())?;
    let dropped = namespace::dropped_pkts(namespaces.iter().zip(devices));
    let (mut network, lateness, _) = forwarder.into_parts();
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut host = Host { kernel: kernel.trim().into(), realtime, device_dropped_pkts: dropped, ..Host::default() };
    (host.awake, host.links_cpu_s) = (latency_request.is_granted(), Some(cpu.elapsed_s()));
    host.judge(&lateness);
    let result = if ended < end {
        // A stopped run reports its metrics up to the end.
        let plan = Plan { windows: windows_until(plan, ended), ..plan.clone() };
        let mut result = report::result(&plan, &mut network, None, Cost::default());
        result.notes.push(format!("stopped after {:.3} s: windows of measurement end there", ended as f64 * 1e-9));
        result
    } else {
        report::result(plan, &mut network, None, Cost::default())
    };
    serde_json::to_string(&LiveResult { result, host }).map_err(|error| Error::setup(error.to_string()))
}

/// Forward and return links: the paths of flow number `flow`, or the link called `link` and its reverse.
fn routes(plan: &Plan, link: Option<&str>, flow: u32) -> Result<Vec<Vec<u32>>, Error> {
    let Some(name) = link else {
        let flow = plan.flows.get(flow as usize).ok_or_else(|| {
            Error::setup(format!(
                "--flow {flow}: the scenario's flows are numbered 0 to {}",
                plan.flows.len().saturating_sub(1)
            ))
        })?;
        return Ok(vec![flow.path.to_vec(), flow.return_path.to_vec()]);
    };
    let number = plan.links.iter().position(|link| link.name == name).ok_or_else(|| {
        let known: Vec<String> =
            plan.links.iter().filter(|link| link.record).map(|link| link.name.to_string()).collect();
        Error::setup(format!("--link {name}: no such link; choose from: {}", known.join(", ")))
    })?;
    let link = &plan.links[number];
    let back = plan.links.iter().position(|back| (back.from, back.to) == (link.to, link.from));
    Ok(vec![vec![number as u32], back.map(|back| back as u32).into_iter().collect()])
}

/// Classifies packets by addresses, protocol and ports.
#[derive(Debug)]
struct HashClassifier;

impl Classifier for HashClassifier {
    fn classify(&mut self, side: usize, packet: &[u8]) -> Option<(u32, Identity)> {
        let ip = headers::decode(RAW, packet).ip?;
        let mut flow = Fnv::default();
        flow.write(&ip.source);
        flow.write(&ip.destination);
        let (from, to) = ip.ports.unwrap_or_default();
        flow.write(&[ip.protocol, (from >> 8) as u8, from as u8, (to >> 8) as u8, to as u8]);
        let hash = |address: &[u8]| {
            let mut hash = Fnv::default();
            hash.write(address);
            hash.fold()
        };
        let identity = Identity {
            flow_hash: flow.fold(),
            source_hash: hash(&ip.source),
            destination_hash: hash(&ip.destination),
            class: ip.dscp,
        };
        Some((side as u32, identity))
    }
}

/// FNV-1a hash, equal on every machine.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn fold(&self) -> u32 {
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
    fn a_device_may_be_in_a_namespace() {
        assert_eq!(DeviceSpec::parse("t0"), DeviceSpec { namespace: None, device: "t0".into() });
        assert_eq!(DeviceSpec::parse("lab/t0"), DeviceSpec { namespace: Some("lab".into()), device: "t0".into() });
        let for_process = DeviceSpec::parse("/proc/1234/ns/net/t0");
        assert_eq!(for_process, DeviceSpec { namespace: Some("/proc/1234/ns/net".into()), device: "t0".into() });
    }

    #[test]
    fn flows_are_distinguished_by_addresses_and_ports() {
        let packet = |source: u8, port: u8| {
            let mut packet = vec![0u8; 28];
            packet[0] = 0x45;
            packet[9] = 17;
            packet[12..20].copy_from_slice(&[10, 0, 0, source, 10, 128, 0, 1]);
            packet[20..24].copy_from_slice(&[1, port, 2, 2]);
            packet
        };
        let classify = |source, port| HashClassifier.classify(0, &packet(source, port)).unwrap().1;
        assert_eq!(classify(1, 1), classify(1, 1));
        assert_ne!(classify(1, 1).flow_hash, classify(1, 2).flow_hash);
        assert_eq!(classify(1, 1).source_hash, classify(1, 2).source_hash);
        assert_ne!(classify(1, 1).source_hash, classify(2, 1).source_hash);
        assert!(HashClassifier.classify(0, &[0x10; 40]).is_none(), "neither IPv4 nor IPv6");
    }

    #[test]
    fn every_field_of_the_five_tuple_counts() {
        let classify = |byte: usize, value: u8| {
            // IPv4 with DSCP 46, a datagram from 10.0.0.1:0x0101 to 10.128.0.1:0x0202.
            let mut packet = vec![0u8; 28];
            packet[..2].copy_from_slice(&[0x45, 46 << 2]);
            packet[9] = 17;
            packet[12..24].copy_from_slice(&[10, 0, 0, 1, 10, 128, 0, 1, 1, 1, 2, 2]);
            packet[byte] = value;
            HashClassifier.classify(1, &packet).unwrap()
        };
        let (route, identity) = classify(0, 0x45);
        assert_eq!((route, identity.class), (1, 46));
        // Protocol, addresses, and both bytes of both ports.
        let others = [(9, 6), (12, 11), (15, 2), (16, 11), (19, 2), (20, 9), (21, 9), (22, 9), (23, 9)];
        let hashes: std::collections::BTreeSet<u32> = others
            .iter()
            .map(|(byte, value)| classify(*byte, *value).1.flow_hash)
            .chain([identity.flow_hash])
            .collect();
        assert_eq!(hashes.len(), 1 + others.len());
        // Hosts are distinguished by their own address alone.
        let (other_source, other_destination) = (classify(15, 2).1, classify(19, 2).1);
        assert_ne!(other_source.source_hash, identity.source_hash);
        assert_eq!(other_source.destination_hash, identity.destination_hash);
        assert_ne!(other_destination.destination_hash, identity.destination_hash);
        assert_eq!(other_destination.source_hash, identity.source_hash);
        // Other header fields do not count.
        assert_eq!(classify(8, 3).1, identity);
    }

    #[test]
    fn hashes_are_those_of_fowler_noll_and_vo() {
        // From their test vectors: FNV-1a of 64 bits of nothing, of "a" and of "foobar", fold to 32.
        for (text, hash) in
            [("", 0xcbf2_9ce4_8422_2325u64), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
        {
            let mut fnv = Fnv::default();
            fnv.write(text.as_bytes());
            assert_eq!((fnv.finish(), fnv.fold()), (hash, (hash >> 32) as u32 ^ hash as u32), "{text}");
        }
        let mut fnv = Fnv::default();
        fnv.write(b"a");
        assert_eq!(fnv.fold(), 0x2962_30c0);
    }

    #[test]
    fn routes_are_those_of_a_flow_or_a_link_and_its_reverse() {
        let plan = crate::lab::dumbbell(&[], "[[flows]]\nname = \"f\"\ncount = 2\n");
        let flow = &plan.flows[1];
        assert_eq!(routes(&plan, None, 1).unwrap(), [flow.path.to_vec(), flow.return_path.to_vec()]);
        let error = routes(&plan, None, 2).unwrap_err().to_string();
        assert!(error.contains("--flow 2: the scenario's flows are numbered 0 to 1"), "{error}");
        let number = plan.links.iter().position(|link| link.record).unwrap();
        let name = plan.links[number].name.to_string();
        let both = routes(&plan, Some(&name), 0).unwrap();
        let (there, back) = (&plan.links[both[0][0] as usize], &plan.links[both[1][0] as usize]);
        assert_eq!((both[0][0] as usize, both[0].len(), both[1].len()), (number, 1, 1));
        assert_eq!((there.from, there.to), (back.to, back.from));
        let error = routes(&plan, Some("nowhere"), 0).unwrap_err().to_string();
        assert!(error.contains("--link nowhere: no such link") && error.contains(&name), "{error}");
    }
}
