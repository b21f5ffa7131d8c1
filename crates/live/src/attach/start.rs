//! Switched on over a queue that is full already.
//!
//! A law with an integral winds up while a long queue drains, and then holds everybody down until it has unwound: for
//! seconds half of the link lies idle. So the law waits. Until the queue has come down to twice its target, each flow
//! gets about one signal a round trip, which is what a flow can answer; then the law begins, as over a short queue.
//! Traffic that does not give way is the law's business: it begins after five seconds in any case.

use aqumen_aqm::Network;

/// The law begins at so many times the target.
const NEAR: f64 = 2.0;
/// And after so much time in any case, seconds.
const PATIENCE_S: f64 = 5.0;

/// Brings a queue down before the law begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    flows: f64,
    in_flight_pkts: f64,
    target_pkts: f64,
    passed_s: f64,
}

impl Start {
    /// On `network`.
    pub(crate) fn new(network: &Network) -> Self {
        let pps = network.link_rate.as_bps() as f64 / (8.0 * network.packet_bytes);
        Start {
            flows: network.flows,
            in_flight_pkts: pps * network.base_rtt_s,
            target_pkts: network.target_pkts,
            passed_s: 0.0,
        }
    }

    /// `interval_s` passed, and so many packets wait: the probability until the next time, or `None`: the law begins.
    pub(crate) fn see(&mut self, interval_s: f64, backlog_pkts: f64) -> Option<f64> {
        self.passed_s += interval_s;
        if backlog_pkts <= NEAR * self.target_pkts || self.passed_s >= PATIENCE_S {
            return None;
        }
        // A round trip carries what is in flight and what waits.
        Some((self.flows / (self.in_flight_pkts + backlog_pkts)).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aqumen_units::Rate;

    /// 12 Mbit/s and 1500 bytes, 1000 packets a second; 100 ms: 100 packets in flight for 10 flows. Target 20 packets.
    fn start() -> Start {
        let rate = Rate::from_bps(12_000_000);
        Start::new(&Network {
            capacity: rate,
            flows: 10.0,
            base_rtt_s: 0.1,
            target_pkts: 20.0,
            packet_bytes: 1500.0,
            link_rate: rate,
            buffer_pkts: 400.0,
        })
    }

    #[test]
    fn a_short_queue_is_the_laws_at_once() {
        assert_eq!(start().see(0.0, 40.0), None);
    }

    #[test]
    fn each_flow_gets_a_signal_a_round_trip_until_the_queue_is_near_its_target() {
        let mut start = start();
        // 10 signals among 100 packets in flight and 400 that wait.
        assert_eq!(start.see(0.01, 400.0), Some(0.02));
        assert_eq!(start.see(0.01, 100.0), Some(0.05));
        assert_eq!(start.see(0.01, 40.0), None);
    }

    #[test]
    fn what_does_not_give_way_is_the_laws_after_five_seconds() {
        let mut start = start();
        assert!((0..49).all(|_| start.see(0.1, 400.0).is_some()));
        assert_eq!(start.see(0.11, 400.0), None);
    }
}
