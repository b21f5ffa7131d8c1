//! Startup over a standing queue.
//!
//! A law with an integral winds up while a long queue drains, and then holds the senders down until it has unwound: the
//! link is half idle for seconds. So the law starts only when the queue has come down to twice its target. Until then
//! each flow gets about one signal per round trip, which is as much as a flow can respond to. Unresponsive traffic is
//! left to the law: it starts after five seconds in any case.

use aqumen_aqm::Network;

/// Multiple of the target at which the law starts.
const HANDOVER: f64 = 2.0;
/// Time after which the law starts in any case, seconds.
const DURATION_MAX_S: f64 = 5.0;

/// Drain of a standing queue before the law starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Startup {
    flows: f64,
    in_flight_pkts: f64,
    target_pkts: f64,
    elapsed_s: f64,
}

impl Startup {
    pub(crate) fn new(network: &Network) -> Self {
        let pps = network.link_rate.as_bps() as f64 / (8.0 * network.packet_bytes);
        Startup {
            flows: network.flows,
            in_flight_pkts: pps * network.base_rtt_s,
            target_pkts: network.target_pkts,
            elapsed_s: 0.0,
        }
    }

    /// Adds an interval. Returns the probability for this backlog, or `None` when the law starts.
    pub(crate) fn update(&mut self, interval_s: f64, backlog_pkts: f64) -> Option<f64> {
        self.elapsed_s += interval_s;
        if backlog_pkts <= HANDOVER * self.target_pkts || self.elapsed_s >= DURATION_MAX_S {
            return None;
        }
        // Packets of one round trip: those in flight and the backlog.
        Some((self.flows / (self.in_flight_pkts + backlog_pkts)).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Startup at 12 Mbit/s (1000 packets of 1500 bytes a second) and 100 ms: 100 packets in flight of 10 flows.
    /// Target: 20.
    fn startup() -> Startup {
        Startup::new(&super::super::design::example(12))
    }

    #[test]
    fn over_a_short_queue_the_law_starts_at_once() {
        assert_eq!(startup().update(0.0, 40.0), None);
    }

    #[test]
    fn each_flow_gets_a_signal_a_round_trip_until_the_queue_is_near_its_target() {
        let mut startup = startup();
        // 10 signals among 100 packets in flight and 400 that wait.
        assert_eq!(startup.update(0.01, 400.0), Some(0.02));
        assert_eq!(startup.update(0.01, 100.0), Some(0.05));
        assert_eq!(startup.update(0.01, 40.0), None);
    }

    #[test]
    fn the_law_starts_after_five_seconds_in_any_case() {
        let mut startup = startup();
        assert!((0..49).all(|_| startup.update(0.1, 400.0).is_some()));
        assert_eq!(startup.update(0.11, 400.0), None);
    }
}
