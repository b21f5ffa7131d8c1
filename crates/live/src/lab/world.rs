//! Two namespaces, one of all senders and one of all receivers, each with a TUN device to the other.
//!
//! A flow's ends have addresses of their own, so that every packet tells its flow: 10.0.0.0 and the flow's number from
//! 1 at the sender, 10.128.0.0 and the number at the receiver.

use std::net::Ipv4Addr;

use aqumen_network::{Identities, Identity};
use aqumen_scenario::Plan;

use super::ip;
use super::kernel::Sockets;
use super::namespace::{Namespace, Route};
use super::network::WINDOW_PKTS_MAX;
use super::pump::Sorter;
use super::tun::Tun;
use crate::Failure;

/// Namespaces with their devices and settings.
#[derive(Debug)]
pub struct World {
    /// Where the flows come from.
    pub senders: Namespace,
    /// Where they go to.
    pub receivers: Namespace,
    /// What was set of the kernel, by name.
    pub sysctls: Vec<(String, String)>,
    /// Longest packet, bytes.
    pub mtu: usize,
}

pub(super) const SENDERS: u32 = u32::from_be_bytes([10, 0, 0, 0]);
pub(super) const RECEIVERS: u32 = u32::from_be_bytes([10, 128, 0, 0]);
pub(super) const NET_BITS: u8 = 9;
/// Most flows that have addresses.
pub const FLOWS_MAX: usize = (1 << 23) - 2;
/// Room of a device for packets that wait to be read. All initial windows at once must fit, and what comes while the
/// program does not run.
const DEVICE_PKTS: u32 = 20_000;
/// Least MTU of IPv4.
const MTU_MIN: u32 = 576;

/// Address of a flow's sender.
pub fn sender(flow: u32) -> Ipv4Addr {
    Ipv4Addr::from(SENDERS + flow + 1)
}

/// Address of a flow's receiver.
pub fn receiver(flow: u32) -> Ipv4Addr {
    Ipv4Addr::from(RECEIVERS + flow + 1)
}

impl World {
    /// The namespaces for `plan`, whose groups need `sockets`, and the devices of senders and receivers, with
    /// super-packets if wanted.
    pub fn new(plan: &Plan, sockets: &[Sockets], super_packets: bool) -> Result<(World, [Tun; 2]), Failure> {
        has_addresses(plan.flows.len())?;
        let (senders, receivers) = (Namespace::new()?, Namespace::new()?);
        let sysctls = sysctls(sockets);
        let mtu = sockets.iter().map(|group| u32::from(group.packet_bytes)).fold(MTU_MIN, u32::max);
        let mut tuns = Vec::new();
        for (namespace, own, other) in [(&senders, SENDERS, RECEIVERS), (&receivers, RECEIVERS, SENDERS)] {
            namespace.set_sysctls(&sysctls)?;
            let tun = namespace.within(|| Tun::new("aqumen", super_packets))?;
            namespace.bring_up(tun.index, mtu, DEVICE_PKTS)?;
            let here = Route::new(Ipv4Addr::from(own), NET_BITS, None);
            let there = Route::new(Ipv4Addr::from(other), NET_BITS, Some(tun.index));
            namespace.add_routes(&[here, there])?;
            tuns.push(tun);
        }
        let tuns: [Tun; 2] = tuns.try_into().expect("a device for each of two namespaces");
        senders.add_routes(&routes(plan, sockets, tuns[0].index))?;
        receivers.add_routes(&routes_back(plan, sockets, tuns[1].index))?;
        Ok((World { senders, receivers, sysctls, mtu: mtu as usize }, tuns))
    }
}

fn has_addresses(flows: usize) -> Result<(), Failure> {
    if flows > FLOWS_MAX {
        return Err(Failure::refused(format!("{flows} flows: engine live has addresses for {FLOWS_MAX}")));
    }
    Ok(())
}

/// A route to each flow's receiver, with what its TCP is to know of the way.
fn routes(plan: &Plan, sockets: &[Sockets], device: u32) -> Vec<Route> {
    let of_flow = |(flow, number): (&aqumen_scenario::Flow, u32)| {
        let tcp = sockets[flow.group as usize].tcp.as_ref()?;
        let usual = Route::new(receiver(number), 32, Some(device));
        Some(Route { initial_window: Some(tcp.initial_window), min_rto_ms: tcp.min_rto_ms, ecn: tcp.ecn, ..usual })
    };
    plan.flows.iter().zip(0..).filter_map(of_flow).collect()
}

/// A route back to each flow's sender whose receiver is to offer less than the kernel would.
fn routes_back(plan: &Plan, sockets: &[Sockets], device: u32) -> Vec<Route> {
    let of_flow = |(flow, number): (&aqumen_scenario::Flow, u32)| {
        let window = sockets[flow.group as usize].tcp.as_ref()?.receive_window_bytes?;
        Some(Route { receive_window: Some(window), ..Route::new(sender(number), 32, Some(device)) })
    };
    plan.flows.iter().zip(0..).filter_map(of_flow).collect()
}

/// What is set in both namespaces.
fn sysctls(sockets: &[Sockets]) -> Vec<(String, String)> {
    let tcp = sockets.iter().find_map(|group| group.tcp.as_ref());
    let yes_no = |yes: bool| String::from(if yes { "1" } else { "0" });
    let largest = sockets.iter().map(|group| u64::from(group.packet_bytes)).max().unwrap_or(1500);
    // The kernel counts the memory of a segment, about twice its bytes.
    let buffer_max = (u64::from(WINDOW_PKTS_MAX) * largest * 2).min(1 << 30);
    let buffers = format!("4096 131072 {buffer_max}");
    let ipv4 = |name: &str, value: String| (format!("net.ipv4.{name}"), value);
    vec![
        // Asked for by route, flow by flow; whoever is asked agrees.
        ipv4("tcp_ecn", "2".into()),
        // A flow whose SYN is lost would run without ECN for good.
        ipv4("tcp_ecn_fallback", "0".into()),
        // No connection knows of those before.
        ipv4("tcp_no_metrics_save", "1".into()),
        ipv4("tcp_timestamps", yes_no(tcp.is_none_or(|tcp| tcp.timestamps))),
        ipv4("tcp_slow_start_after_idle", yes_no(tcp.is_none_or(|tcp| tcp.restarts))),
        ipv4("tcp_rmem", buffers.clone()),
        ipv4("tcp_wmem", buffers),
        // Answers to addresses that are only routes.
        ipv4("conf.all.rp_filter", "0".into()),
        ipv4("conf.default.rp_filter", "0".into()),
        // Nobody solicits routers.
        ("net.ipv6.conf.default.disable_ipv6".into(), "1".into()),
    ]
}

/// Tells packets by their source address.
#[derive(Debug)]
pub struct ByFlow {
    /// Of each flow, there and back.
    identities: Vec<[Identity; 2]>,
}

impl ByFlow {
    /// The flows of `plan`.
    pub fn new(plan: &Plan) -> Self {
        let identities = Identities::new(plan);
        ByFlow {
            identities: (0..plan.flows.len() as u32)
                .map(|flow| [false, true].map(|back| identities.packet(flow, back)))
                .collect(),
        }
    }
}

impl Sorter for ByFlow {
    #[inline]
    fn sort(&mut self, side: usize, packet: &[u8]) -> Option<(u32, Identity)> {
        let (source, _) = ip::v4_ends(packet)?;
        let base = if side == 0 { SENDERS } else { RECEIVERS };
        let flow = u32::from_be_bytes(source).checked_sub(base + 1)?;
        let identity = self.identities.get(flow as usize)?[side];
        Some((2 * flow + side as u32, identity))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use aqumen_scenario::Scenario;

    use super::*;
    use crate::lab::kernel;

    const CALLS: &str =
        "[[flows]]\nname = \"calls\"\ntransport = \"udp\"\ntraffic = { kind = \"cbr\", rate = \"1Mbit\" }\n";

    /// These flows of TCP.
    fn tcp(name: &str, count: u32, settings: &str) -> String {
        format!("[[flows]]\nname = \"{name}\"\ncount = {count}\ntransport = {{ {settings} }}\n")
    }

    /// One flow as the kernel has it, one of datagrams, and two for which all is said.
    fn four_flows() -> Plan {
        let own = "preset = \"linux-reno\", ecn = false, initial_window = \"3pkt\", min_rto = \"50ms\", receive_window = \"20pkt\"";
        plan(&[&tcp("plain", 1, "preset = \"linux\""), CALLS, &tcp("own", 2, own)].concat())
    }

    fn plan(flows: &str) -> Plan {
        let text = format!(
            "name = \"t\"\nduration = \"3s\"\n[topology]\npreset = \"dumbbell\"\n\
             bottleneck = {{ rate = \"80Mbit\", delay = \"20ms\", buffer = \"50pkt\" }}\n\
             access = {{ rate = \"800Mbit\", delay = \"5ms\" }}\n{flows}"
        );
        Scenario::parse(&text, "t.toml").unwrap().plan(1, None).unwrap()
    }

    #[test]
    fn each_flow_has_an_address_at_either_side() {
        let first = [sender(0), sender(255), receiver(0)];
        assert_eq!(first, [[10, 0, 0, 1], [10, 0, 1, 0], [10, 128, 0, 1]].map(Ipv4Addr::from));
        let last = FLOWS_MAX as u32 - 1;
        let last = [sender(last), receiver(last)];
        assert_eq!(last, [[10, 127, 255, 254], [10, 255, 255, 254]].map(Ipv4Addr::from));
        assert!(has_addresses(FLOWS_MAX).is_ok());
        let refused = has_addresses(FLOWS_MAX + 1).unwrap_err().to_string();
        assert_eq!(refused, "8388607 flows: engine live has addresses for 8388606");
    }

    #[test]
    fn a_packets_source_tells_its_flow_and_its_side_the_way() {
        let mut by_flow = ByFlow::new(&four_flows());
        let mut sort = |side, source: Ipv4Addr| {
            let mut packet = [0; 20];
            packet[0] = 0x45;
            packet[12..16].copy_from_slice(&source.octets());
            by_flow.sort(side, &packet).map(|(route, who)| (route, who.flow_hash))
        };
        // Data take the even routes, what comes back the odd ones.
        let there: Vec<_> = (0..4).map(|flow| sort(0, sender(flow)).unwrap()).collect();
        let back: Vec<_> = (0..4).map(|flow| sort(1, receiver(flow)).unwrap()).collect();
        assert_eq!(there.iter().map(|(route, _)| *route).collect::<Vec<_>>(), [0, 2, 4, 6]);
        assert_eq!(back.iter().map(|(route, _)| *route).collect::<Vec<_>>(), [1, 3, 5, 7]);
        // By which disciplines tell flows apart.
        let hashes: BTreeSet<u32> = there.iter().map(|(_, hash)| *hash).collect();
        assert_eq!(hashes.len(), 4);
        // Nobody's: no such flow, the network's own address, one of the other side, one from elsewhere.
        let strangers = [(0, sender(4)), (0, Ipv4Addr::from(SENDERS)), (1, sender(0)), (0, [9; 4].into())];
        assert!(strangers.into_iter().all(|(side, source)| sort(side, source).is_none()));
    }

    #[test]
    fn flows_of_tcp_have_routes_with_what_was_chosen_for_them() {
        let plan = four_flows();
        let sockets = kernel::needed(&plan).unwrap();
        let there = routes(&plan, &sockets, 7);
        let told = there.iter().map(|route| (route.to, route.initial_window, route.min_rto_ms, route.ecn));
        let own = |flow| ((receiver(flow).into(), 32), Some(3), Some(50), false);
        let plain = ((receiver(0).into(), 32), Some(10), None, true);
        assert_eq!(told.collect::<Vec<_>>(), [plain, own(2), own(3)]);
        assert!(there.iter().all(|route| route.device == Some(7) && route.receive_window.is_none()));
        // 20 segments of 1448 bytes.
        let back = routes_back(&plan, &sockets, 8);
        let told = back.iter().map(|route| (route.to, route.device, route.receive_window));
        let own = |flow| ((sender(flow).into(), 32), Some(8), Some(28_960));
        assert_eq!(told.collect::<Vec<_>>(), [own(2), own(3)]);
    }

    #[test]
    fn the_kernel_is_set_as_the_flows_of_tcp_want_it() {
        let set = |flows: &str, name: &str| {
            let all = sysctls(&kernel::needed(&plan(flows)).unwrap());
            let name = format!("net.ipv4.{name}");
            all.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value).unwrap()
        };
        let of_both = |flows: &str| ["tcp_timestamps", "tcp_slow_start_after_idle"].map(|name| set(flows, name));
        let usual = tcp("one", 1, "preset = \"linux\", packet = \"1000B\"");
        assert_eq!((of_both(&usual), of_both(CALLS)), (["1", "1"].map(Into::into), ["1", "1"].map(Into::into)));
        let bare = "preset = \"linux\", timestamps = false, header = \"40B\", ack = \"40B\", restart_window = \"none\"";
        assert_eq!(of_both(&tcp("one", 1, bare)), ["0", "0"]);
        // 40 000 packets of 1000 bytes, each of which costs twice that in memory; no more than the kernel takes.
        let buffers = ["tcp_rmem", "tcp_wmem"].map(|name| set(&usual, name));
        assert_eq!(buffers, ["4096 131072 80000000", "4096 131072 80000000"]);
        assert_eq!(set(&usual.replace("1000B", "20000B"), "tcp_rmem"), "4096 131072 1073741824");
    }
}
