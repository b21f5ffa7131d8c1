//! Testbed: one namespace of all senders and one of all receivers, each with a TUN device.
//!
//! Each flow has addresses of its own, so that a packet's source identifies its flow: 10.0.0.0 plus the flow's number
//! from 1 at the sender, 10.128.0.0 plus that number at the receiver.

use std::net::Ipv4Addr;

use aqumen_network::{Identities, Identity};
use aqumen_scenario::Plan;

use super::forwarder::Classifier;
use super::ip;
use super::kernel::SocketSettings;
use super::network::WINDOW_PKTS_MAX;
use crate::Error;
use crate::machine::namespace::{Namespace, Route};
use crate::machine::tun::Tun;

/// Namespaces with their devices and settings.
#[derive(Debug)]
pub(crate) struct TestBed {
    pub(crate) senders: Namespace,
    pub(crate) receivers: Namespace,
    pub(crate) sysctls: Vec<(String, String)>,
    /// Longest packet, bytes.
    pub(crate) mtu: usize,
}

const SENDERS: u32 = u32::from_be_bytes([10, 0, 0, 0]);
const RECEIVERS: u32 = u32::from_be_bytes([10, 128, 0, 0]);
const NET_BITS: u8 = 9;
/// Highest number of flows that have addresses.
pub(crate) const FLOWS_MAX: usize = (1 << 23) - 2;
/// Packets that may wait in a device: all initial windows at once, and arrivals while the program does not run.
const DEVICE_PKTS: u32 = 20_000;
const MTU_MIN: u32 = 576;

pub(crate) fn sender(flow: u32) -> Ipv4Addr {
    Ipv4Addr::from(SENDERS + flow + 1)
}

pub(crate) fn receiver(flow: u32) -> Ipv4Addr {
    Ipv4Addr::from(RECEIVERS + flow + 1)
}

impl TestBed {
    /// Makes the namespaces and devices for `plan` with these `sockets`, with super-packets if wanted.
    pub(crate) fn new(
        plan: &Plan,
        sockets: &[SocketSettings],
        super_packets: bool,
    ) -> Result<(TestBed, [Tun; 2]), Error> {
        check_addresses(plan.flows.len())?;
        let sysctls = sysctls(sockets);
        let mtu = sockets.iter().map(|group| u32::from(group.packet_bytes)).fold(MTU_MIN, u32::max);
        let ([senders, receivers], tuns) = namespaces(&sysctls, mtu, DEVICE_PKTS, super_packets)?;
        senders.add_routes(&routes(plan, sockets, tuns[0].index))?;
        receivers.add_routes(&routes_back(plan, sockets, tuns[1].index))?;
        Ok((TestBed { senders, receivers, sysctls, mtu: mtu as usize }, tuns))
    }
}

/// Namespaces of the senders and of the receivers, each with a device that leads to the other.
pub(super) fn namespaces(
    sysctls: &[(String, String)],
    mtu: u32,
    device_pkts: u32,
    super_packets: bool,
) -> Result<([Namespace; 2], [Tun; 2]), Error> {
    let namespaces = [Namespace::new()?, Namespace::new()?];
    let mut tuns = Vec::new();
    for (namespace, [local, remote]) in namespaces.iter().zip([[SENDERS, RECEIVERS], [RECEIVERS, SENDERS]]) {
        namespace.set_sysctls(sysctls)?;
        let tun = namespace.within(|| Tun::new("aqumen", super_packets))?;
        namespace.bring_up(tun.index, mtu, device_pkts)?;
        let here = Route::new(Ipv4Addr::from(local), NET_BITS, None);
        let there = Route::new(Ipv4Addr::from(remote), NET_BITS, Some(tun.index));
        namespace.add_routes(&[here, there])?;
        tuns.push(tun);
    }
    let tuns = tuns.try_into().expect("a device for each of two namespaces");
    Ok((namespaces, tuns))
}

fn check_addresses(flows: usize) -> Result<(), Error> {
    if flows > FLOWS_MAX {
        return Err(Error::setup(format!("{flows} flows: engine live supports at most {FLOWS_MAX}")));
    }
    Ok(())
}

/// Route to each flow's receiver, with the settings of its TCP.
fn routes(plan: &Plan, sockets: &[SocketSettings], device: u32) -> Vec<Route> {
    let route = |(flow, number): (&aqumen_scenario::Flow, u32)| {
        let tcp = sockets[flow.group as usize].tcp.as_ref()?;
        let plain = Route::new(receiver(number), 32, Some(device));
        Some(Route { initial_window: Some(tcp.initial_window), min_rto_ms: tcp.min_rto_ms, ecn: tcp.ecn, ..plain })
    };
    plan.flows.iter().zip(0..).filter_map(route).collect()
}

/// Route back to each flow's sender whose receiver limits its window.
fn routes_back(plan: &Plan, sockets: &[SocketSettings], device: u32) -> Vec<Route> {
    let route = |(flow, number): (&aqumen_scenario::Flow, u32)| {
        let window = sockets[flow.group as usize].tcp.as_ref()?.receive_window_bytes?;
        Some(Route { receive_window: Some(window), ..Route::new(sender(number), 32, Some(device)) })
    };
    plan.flows.iter().zip(0..).filter_map(route).collect()
}

/// Kernel settings of both namespaces.
fn sysctls(sockets: &[SocketSettings]) -> Vec<(String, String)> {
    let tcp = sockets.iter().find_map(|group| group.tcp.as_ref());
    let yes_no = |yes: bool| String::from(if yes { "1" } else { "0" });
    let largest = sockets.iter().map(|group| u64::from(group.packet_bytes)).max().unwrap_or(1500);
    // The kernel counts the memory of a segment, about twice its size.
    let buffer_max = (u64::from(WINDOW_PKTS_MAX) * largest * 2).min(1 << 30);
    let buffers = format!("4096 131072 {buffer_max}");
    let ipv4 = |name: &str, value: String| (format!("net.ipv4.{name}"), value);
    vec![
        // ECN is requested by route, flow by flow, and always accepted.
        ipv4("tcp_ecn", "2".into()),
        // Otherwise a flow whose SYN is lost runs without ECN for good.
        ipv4("tcp_ecn_fallback", "0".into()),
        // A connection does not inherit metrics of earlier ones.
        ipv4("tcp_no_metrics_save", "1".into()),
        ipv4("tcp_timestamps", yes_no(tcp.is_none_or(|tcp| tcp.timestamps))),
        ipv4("tcp_slow_start_after_idle", yes_no(tcp.is_none_or(|tcp| tcp.restarts))),
        ipv4("tcp_rmem", buffers.clone()),
        ipv4("tcp_wmem", buffers),
        // Packets from addresses that exist only as routes are accepted.
        ipv4("conf.all.rp_filter", "0".into()),
        ipv4("conf.default.rp_filter", "0".into()),
        // No router solicitations.
        ("net.ipv6.conf.default.disable_ipv6".into(), "1".into()),
    ]
}

/// Classifies packets by their source address.
#[derive(Debug)]
pub struct FlowClassifier {
    /// Identity of each flow, in both directions.
    identities: Vec<[Identity; 2]>,
}

impl FlowClassifier {
    /// Classifier for the flows of `plan`.
    pub fn new(plan: &Plan) -> Self {
        let identities = Identities::new(plan);
        FlowClassifier {
            identities: (0..plan.flows.len() as u32)
                .map(|flow| [false, true].map(|back| identities.packet(flow, back)))
                .collect(),
        }
    }
}

impl Classifier for FlowClassifier {
    #[inline]
    fn classify(&mut self, side: usize, packet: &[u8]) -> Option<(u32, Identity)> {
        let (source, _) = ip::v4_addresses(packet)?;
        let base = if side == 0 { SENDERS } else { RECEIVERS };
        let flow = u32::from_be_bytes(source).checked_sub(base + 1)?;
        let identity = self.identities.get(flow as usize)?[side];
        Some((2 * flow + side as u32, identity))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::lab::dumbbell;
    use crate::lab::kernel;

    const CALLS: &str =
        "[[flows]]\nname = \"calls\"\ntransport = \"udp\"\ntraffic = { kind = \"cbr\", rate = \"1Mbit\" }\n";

    /// TCP flows with these settings.
    fn tcp(name: &str, count: u32, settings: &str) -> String {
        format!("[[flows]]\nname = \"{name}\"\ncount = {count}\ntransport = {{ {settings} }}\n")
    }

    /// One flow with the kernel's preset, one of datagrams, and two with all settings.
    fn four_flows() -> Plan {
        let own = "preset = \"linux-reno\", ecn = false, initial_window = \"3pkt\", min_rto = \"50ms\", receive_window = \"20pkt\"";
        plan(&[&tcp("plain", 1, "preset = \"linux\""), CALLS, &tcp("own", 2, own)].concat())
    }

    fn plan(flows: &str) -> Plan {
        dumbbell(&[("topology.bottleneck.rate", "80Mbit"), ("topology.access.rate", "800Mbit")], flows)
    }

    #[test]
    fn each_flow_has_an_address_at_either_side() {
        let first = [sender(0), sender(255), receiver(0)];
        assert_eq!(first, [[10, 0, 0, 1], [10, 0, 1, 0], [10, 128, 0, 1]].map(Ipv4Addr::from));
        let last = FLOWS_MAX as u32 - 1;
        let last = [sender(last), receiver(last)];
        assert_eq!(last, [[10, 127, 255, 254], [10, 255, 255, 254]].map(Ipv4Addr::from));
        assert!(check_addresses(FLOWS_MAX).is_ok());
        let error = check_addresses(FLOWS_MAX + 1).unwrap_err().to_string();
        assert_eq!(error, "8388607 flows: engine live supports at most 8388606");
    }

    #[test]
    fn a_packet_is_classified_by_source_and_side() {
        let mut classifier = FlowClassifier::new(&four_flows());
        let mut classify = |side, source: Ipv4Addr| {
            let mut packet = [0; 20];
            packet[0] = 0x45;
            packet[12..16].copy_from_slice(&source.octets());
            classifier.classify(side, &packet).map(|(route, identity)| (route, identity.flow_hash))
        };
        // Data take the even routes, packets of the return direction the odd ones.
        let there: Vec<_> = (0..4).map(|flow| classify(0, sender(flow)).unwrap()).collect();
        let back: Vec<_> = (0..4).map(|flow| classify(1, receiver(flow)).unwrap()).collect();
        assert_eq!(there.iter().map(|(route, _)| *route).collect::<Vec<_>>(), [0, 2, 4, 6]);
        assert_eq!(back.iter().map(|(route, _)| *route).collect::<Vec<_>>(), [1, 3, 5, 7]);
        // Identities distinguish the flows.
        let hashes: BTreeSet<u32> = there.iter().map(|(_, hash)| *hash).collect();
        assert_eq!(hashes.len(), 4);
        // Foreign: no such flow, the network's own address, an address of the other side, one from elsewhere.
        let strangers = [(0, sender(4)), (0, Ipv4Addr::from(SENDERS)), (1, sender(0)), (0, [9; 4].into())];
        assert!(strangers.into_iter().all(|(side, source)| classify(side, source).is_none()));
    }

    #[test]
    fn routes_have_the_tcp_settings_of_their_flows() {
        let plan = four_flows();
        let sockets = kernel::requirements(&plan).unwrap();
        let there = routes(&plan, &sockets, 7);
        let settings = there.iter().map(|route| (route.to, route.initial_window, route.min_rto_ms, route.ecn));
        let own = |flow| ((receiver(flow).into(), 32), Some(3), Some(50), false);
        let plain = ((receiver(0).into(), 32), Some(10), None, true);
        assert_eq!(settings.collect::<Vec<_>>(), [plain, own(2), own(3)]);
        assert!(there.iter().all(|route| route.device == Some(7) && route.receive_window.is_none()));
        // 20 segments of 1448 bytes.
        let back = routes_back(&plan, &sockets, 8);
        let settings = back.iter().map(|route| (route.to, route.device, route.receive_window));
        let own = |flow| ((sender(flow).into(), 32), Some(8), Some(28_960));
        assert_eq!(settings.collect::<Vec<_>>(), [own(2), own(3)]);
    }

    #[test]
    fn kernel_settings_follow_from_the_tcp_flows() {
        let set = |flows: &str, name: &str| {
            let all = sysctls(&kernel::requirements(&plan(flows)).unwrap());
            let name = format!("net.ipv4.{name}");
            all.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value).unwrap()
        };
        let both = |flows: &str| ["tcp_timestamps", "tcp_slow_start_after_idle"].map(|name| set(flows, name));
        let usual = tcp("one", 1, "preset = \"linux\", packet = \"1000B\"");
        assert_eq!((both(&usual), both(CALLS)), (["1", "1"].map(Into::into), ["1", "1"].map(Into::into)));
        let bare = "preset = \"linux\", timestamps = false, header = \"40B\", ack = \"40B\", restart_window = \"none\"";
        assert_eq!(both(&tcp("one", 1, bare)), ["0", "0"]);
        // 40 000 packets of 1000 bytes at twice their size in memory; at most the limit of the kernel.
        let buffers = ["tcp_rmem", "tcp_wmem"].map(|name| set(&usual, name));
        assert_eq!(buffers, ["4096 131072 80000000", "4096 131072 80000000"]);
        assert_eq!(set(&usual.replace("1000B", "20000B"), "tcp_rmem"), "4096 131072 1073741824");
    }
}
