//! What an AQM is designed for: the shaper's rate and room, and what is said of the traffic.

use aqumen_aqm::Network;
use aqumen_units::Rate;

use super::options::{Options, Target};
use super::shaper::Shaper;
use crate::Failure;
use crate::netlink::tc::Device;

/// Below so many packets in flight for each flow, TCP sits at its least window and no probability regulates it.
const WINDOW_PKTS_MIN: f64 = 4.0;
/// Flows to design for if nothing is said.
const FLOWS: f64 = 10.0;

/// The network that the AQM is designed for.
pub(super) fn network(options: &Options, device: &Device, shaper: &Shaper) -> Result<Network, Failure> {
    let packet_bytes = f64::from(device.mtu.min(1500)) + 14.0;
    let pps = shaper.rate.as_bps() as f64 / (8.0 * packet_bytes);
    let rtt_s = options.rtt.as_secs_f64();
    let in_flight = pps * rtt_s;
    let flows = options.flows.unwrap_or_else(|| FLOWS.min(in_flight / WINDOW_PKTS_MIN).max(1.0));
    if in_flight / flows < WINDOW_PKTS_MIN {
        return Err(Failure::refused(format!(
            "--flows {flows:.0}: R C / N is {:.1} packets ({rtt_s} s x {pps:.0} packet/s / {flows:.0}), below {WINDOW_PKTS_MIN}: \
             TCP would sit at its least window and no AQM could regulate it; give fewer flows, a longer --rtt or a higher rate",
            in_flight / flows
        )));
    }
    let buffer_pkts = shaper.limit_in_packets(packet_bytes).max(1.0);
    let target_pkts = match options.target {
        Target::Packets(packets) => packets,
        Target::Delay(delay) => (pps * delay.as_secs_f64()).max(1.0),
    };
    if target_pkts >= buffer_pkts {
        return Err(Failure::refused(format!(
            "--target: {target_pkts:.0} packets, but only {buffer_pkts:.0} fit into {} {}",
            shaper.kind, shaper.handle
        )));
    }
    Ok(Network {
        capacity: shaper.rate,
        flows,
        base_rtt_s: rtt_s,
        target_pkts,
        packet_bytes,
        link_rate: shaper.rate,
        buffer_pkts,
    })
}

/// `network` at another rate of the link.
pub(super) fn network_at(network: &Network, target: Target, rate: Rate) -> Network {
    let pps = rate.as_bps() as f64 / (8.0 * network.packet_bytes);
    let target_pkts = match target {
        Target::Delay(delay) => (pps * delay.as_secs_f64()).clamp(1.0, (0.9 * network.buffer_pkts).max(1.0)),
        Target::Packets(packets) => packets,
    };
    let flows = network.flows.min(pps * network.base_rtt_s / WINDOW_PKTS_MIN).max(1.0);
    Network { capacity: rate, link_rate: rate, target_pkts, flows, ..*network }
}

/// The time in the queue that is aimed at, seconds.
pub(super) fn target_s(network: &Network) -> f64 {
    8.0 * network.target_pkts * network.packet_bytes / network.link_rate.as_bps() as f64
}

#[cfg(test)]
mod tests {
    use aqumen_units::Span;

    use super::*;

    fn designed(line: &str, mbit: u64, room_pkts: u32) -> Result<Network, String> {
        let device = Device { index: 1, name: "eth0".into(), hardware: 1, mtu: 1486, queue_length: 1000 };
        let shaper = Shaper {
            kind: "htb".into(),
            handle: crate::netlink::tc::Handle::new(1, 16),
            class: true,
            rate: Rate::from_bps(mbit * 1_000_000),
            limit_bytes: None,
            limit_pkts: Some(room_pkts),
            ours: None,
            others: Vec::new(),
        };
        network(&Options::of_line(line), &device, &shaper).map_err(|failure| failure.to_string())
    }

    #[test]
    fn an_aqm_is_designed_for_the_shaper_and_what_is_said_of_its_traffic() {
        // Packets of 1486 + 14 bytes: 12 Mbit/s are 1000 a second, 100 in a round trip of 100 ms; 50 ms of them are 50.
        let network = designed("eth0 --aqm pi --target 50ms --rtt 100ms --flows 20", 12, 400).unwrap();
        assert_eq!((network.packet_bytes, network.target_pkts, network.flows), (1500.0, 50.0, 20.0));
        assert_eq!((network.base_rtt_s, network.buffer_pkts), (0.1, 400.0));
        assert!((target_s(&network) - 0.05).abs() < 1e-12);
        assert_eq!((network.capacity.as_bps(), network.link_rate.as_bps()), (12_000_000, 12_000_000));
        // So many flows that each has four packets in flight, if nothing is said: 40 / 4; one at least.
        assert_eq!(designed("eth0 --aqm pi --rtt 40ms", 12, 400).unwrap().flows, 10.0);
        assert_eq!(designed("eth0 --aqm pi --rtt 4ms", 12, 400).unwrap().flows, 1.0);
        assert_eq!(designed("eth0 --aqm pi --target 7pkt --rtt 100ms", 12, 400).unwrap().target_pkts, 7.0);
        assert_eq!(designed("eth0 --aqm pi --target 1ms --rtt 1s", 1, 400).unwrap().target_pkts, 1.0);
    }

    #[test]
    fn what_no_aqm_could_regulate_is_refused() {
        let why = designed("eth0 --aqm pi --rtt 100ms --flows 26", 12, 400).unwrap_err();
        assert!(why.contains("--flows 26: R C / N is 3.8 packets"), "{why}");
        assert!(designed("eth0 --aqm pi --rtt 100ms --flows 25", 12, 400).is_ok());
        let why = designed("eth0 --aqm pi --target 50pkt --rtt 100ms", 12, 50).unwrap_err();
        assert!(why.contains("--target: 50 packets, but only 50 fit into htb 1:10"), "{why}");
        assert!(designed("eth0 --aqm pi --target 49pkt --rtt 100ms", 12, 50).is_ok());
    }

    #[test]
    fn at_another_rate_a_delay_is_another_number_of_packets() {
        let designed = designed("eth0 --aqm pi --target 50ms --rtt 100ms --flows 20", 12, 400).unwrap();
        let delay = Target::Delay(Span::from_millis(50));
        let at = |target, mbit: u64| network_at(&designed, target, Rate::from_bps(mbit * 1_000_000));
        // 24 Mbit/s: 100 packets; 6: 25 and no more than 50 / 4 flows; 1.2 Tbit/s: 9/10 of the room; 24 kbit/s: one.
        let double = at(delay, 24);
        assert_eq!((double.target_pkts, double.flows, double.capacity.as_bps()), (100.0, 20.0, 24_000_000));
        assert_eq!((double.link_rate, double.base_rtt_s, double.buffer_pkts), (double.capacity, 0.1, 400.0));
        assert_eq!((at(delay, 6).target_pkts, at(delay, 6).flows), (25.0, 12.5));
        assert_eq!(at(delay, 1200).target_pkts, 360.0);
        let slow = network_at(&designed, delay, Rate::from_bps(24_000));
        assert_eq!((slow.target_pkts, slow.flows), (1.0, 1.0));
        assert_eq!(at(Target::Packets(33.0), 24).target_pkts, 33.0);
    }
}
