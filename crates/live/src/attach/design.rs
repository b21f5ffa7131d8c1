//! Nominal network of an AQM: the shaper's rate and buffer, and the traffic that the options describe.

use aqumen_aqm::Network;
use aqumen_units::Rate;

use super::options::{Options, Target, is_self_contained};
use super::shaper::Shaper;
use crate::Error;
use crate::netlink::tc::Device;

/// Packets in flight per flow below which TCP sits at its minimum window, and no probability regulates it.
const WINDOW_PKTS_MIN: f64 = 4.0;
const FLOWS: f64 = 10.0;

/// Nominal network for `shaper` and `options`.
pub(super) fn network(options: &Options, device: &Device, shaper: &Shaper) -> Result<Network, Error> {
    let packet_bytes = f64::from(device.mtu.min(1500)) + 14.0;
    let pps = shaper.rate.as_bps() as f64 / (8.0 * packet_bytes);
    let rtt_s = options.rtt.as_secs_f64();
    let in_flight = pps * rtt_s;
    let flows = options.flows.unwrap_or_else(|| FLOWS.min(in_flight / WINDOW_PKTS_MIN).max(1.0));
    let designed = !is_self_contained(&options.aqm);
    if designed && in_flight / flows < WINDOW_PKTS_MIN {
        return Err(Error::setup(format!(
            "--flows {flows:.0}: R C / N is {:.1} packets ({rtt_s} s x {pps:.0} packet/s / {flows:.0}), below {WINDOW_PKTS_MIN}: \
             TCP would sit at its minimum window, which no AQM can regulate; give fewer flows, a longer --rtt or a higher rate",
            in_flight / flows
        )));
    }
    let buffer_pkts = shaper.limit_in_packets(packet_bytes).max(1.0);
    let target_pkts = match options.target {
        Target::Packets(packets) => packets,
        Target::Delay(delay) => (pps * delay.as_secs_f64()).max(1.0),
    };
    if designed && target_pkts >= buffer_pkts {
        return Err(Error::setup(format!(
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

/// Returns `network` at another link rate.
pub(super) fn network_at(network: &Network, target: Target, rate: Rate) -> Network {
    let pps = rate.as_bps() as f64 / (8.0 * network.packet_bytes);
    let target_pkts = match target {
        Target::Delay(delay) => (pps * delay.as_secs_f64()).clamp(1.0, (0.9 * network.buffer_pkts).max(1.0)),
        Target::Packets(packets) => packets,
    };
    let flows = network.flows.min(pps * network.base_rtt_s / WINDOW_PKTS_MIN).max(1.0);
    Network { capacity: rate, link_rate: rate, target_pkts, flows, ..*network }
}

pub(super) fn target_s(network: &Network) -> f64 {
    8.0 * network.target_pkts * network.packet_bytes / network.link_rate.as_bps() as f64
}

/// Network of 10 flows with packets of 1500 bytes, 100 ms, a target of 20 packets and a buffer of 400.
#[cfg(test)]
pub(super) fn example(mbit: u64) -> Network {
    let rate = Rate::from_bps(mbit * 1_000_000);
    Network {
        capacity: rate,
        flows: 10.0,
        base_rtt_s: 0.1,
        target_pkts: 20.0,
        packet_bytes: 1500.0,
        link_rate: rate,
        buffer_pkts: 400.0,
    }
}

#[cfg(test)]
mod tests {
    use aqumen_units::Span;

    use super::*;

    fn designed(line: &str, mbit: u64, buffer_pkts: u32) -> Result<Network, String> {
        let (device, shaper) = super::super::shaper::example(mbit, buffer_pkts);
        network(&Options::from_line(line), &device, &shaper).map_err(|error| error.to_string())
    }

    #[test]
    fn an_aqm_is_designed_for_shaper_and_options() {
        // Packets of 1486 + 14 bytes: 12 Mbit/s are 1000 a second, 100 in a round trip of 100 ms; 50 ms of them are 50.
        let network = designed("eth0 --aqm pi --target 50ms --rtt 100ms --flows 20", 12, 400).unwrap();
        assert_eq!((network.packet_bytes, network.target_pkts, network.flows), (1500.0, 50.0, 20.0));
        assert_eq!((network.base_rtt_s, network.buffer_pkts), (0.1, 400.0));
        assert!((target_s(&network) - 0.05).abs() < 1e-12);
        assert_eq!((network.capacity.as_bps(), network.link_rate.as_bps()), (12_000_000, 12_000_000));
        // By default at most as many flows as have four packets in flight each: 40 / 4; at least one.
        assert_eq!(designed("eth0 --aqm pi --rtt 40ms", 12, 400).unwrap().flows, 10.0);
        assert_eq!(designed("eth0 --aqm pi --rtt 4ms", 12, 400).unwrap().flows, 1.0);
        assert_eq!(designed("eth0 --aqm pi --target 7pkt --rtt 100ms", 12, 400).unwrap().target_pkts, 7.0);
        assert_eq!(designed("eth0 --aqm pi --target 1ms --rtt 1s", 1, 400).unwrap().target_pkts, 1.0);
    }

    #[test]
    fn networks_that_no_aqm_can_regulate_are_refused() {
        let why = designed("eth0 --aqm pi --rtt 100ms --flows 26", 12, 400).unwrap_err();
        assert!(why.contains("--flows 26: R C / N is 3.8 packets"), "{why}");
        assert!(designed("eth0 --aqm pi --rtt 100ms --flows 25", 12, 400).is_ok());
        let why = designed("eth0 --aqm pi --target 50pkt --rtt 100ms", 12, 50).unwrap_err();
        assert!(why.contains("--target: 50 packets, but only 50 fit into htb 1:10"), "{why}");
        assert!(designed("eth0 --aqm pi --target 49pkt --rtt 100ms", 12, 50).is_ok());
    }

    #[test]
    fn a_target_delay_follows_the_rate() {
        let designed = designed("eth0 --aqm pi --target 50ms --rtt 100ms --flows 20", 12, 400).unwrap();
        let delay = Target::Delay(Span::from_millis(50));
        let at = |target, mbit: u64| network_at(&designed, target, Rate::from_bps(mbit * 1_000_000));
        // 24 Mbit/s: 100 packets; 6: 25 and no more than 50 / 4 flows; 1.2 Tbit/s: 9/10 of the buffer; 24 kbit/s: one.
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
