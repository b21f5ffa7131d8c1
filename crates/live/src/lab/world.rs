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
        if plan.flows.len() > FLOWS_MAX {
            return Err(Failure::refused(format!(
                "{} flows: engine live has addresses for {FLOWS_MAX}",
                plan.flows.len()
            )));
        }
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
                .map(|flow| [false, true].map(|back| identities.of(flow, back)))
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
