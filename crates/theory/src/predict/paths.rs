//! Noise from paths of unequal length, renewed each round trip.
//!
//! The queue is what is in flight less what the paths hold, which is C T of paths that are alike. A path that is longer
//! than the mean by d holds, besides, what its flow sent d ago and less; a shorter one lacks it. Bursts do not stay
//! whole: a burst of b = W / C seconds that ends in another queue than it began with is as much longer or shorter, and
//! within a round trip or two that is more than b. So each packet of a window is there or not by itself, with the
//! chance d / R:
//!
//! ```text
//! variance = W (d / R) (1 - d / R)
//! ```
//!
//! All of it lies at whole frequencies of a round trip, where loops answer little: it adds to the variance, not to the
//! loop.

use crate::linear::OperatingPoint;

/// Variance of what the paths hold, packets^2, of flows of which so many have a base round trip of so many seconds.
pub(super) fn variance(at: &OperatingPoint, flows: impl Iterator<Item = (f64, f64)>) -> f64 {
    let OperatingPoint { window_pkts, rtt_s: r, base_rtt_s, .. } = *at;
    let of = |(flows, rtt_s): (f64, f64)| {
        let share = (rtt_s - base_rtt_s).abs().min(0.5 * r) / r;
        flows * window_pkts * share * (1.0 - share)
    };
    flows.map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fluid::Model;

    fn at() -> OperatingPoint {
        // 1000 packets/s, R = .1 s, 10 flows of 10 packets.
        OperatingPoint::new(Model::Reno, 10.0, 1000.0, 0.0, 0.08, 20.0).unwrap()
    }

    #[test]
    fn paths_alike_hold_the_same() {
        assert_eq!(variance(&at(), [(10.0, 0.08)].into_iter()), 0.0);
    }

    #[test]
    fn each_packet_is_on_the_longer_part_of_a_path_with_its_share_of_the_round_trip() {
        // 20 of 100 ms, longer or shorter: 10 (.2) (.8); 5 ms of three flows: 3 (10) (.05) (.95).
        for rtt_s in [0.1, 0.06] {
            assert!((variance(&at(), [(1.0, rtt_s)].into_iter()) - 1.6).abs() < 1e-9);
        }
        assert!((variance(&at(), [(3.0, 0.075)].into_iter()) - 1.425).abs() < 1e-9);
        // Beyond half a round trip a packet is there or not: 10 (.5) (.5).
        for rtt_s in [0.14, 0.4] {
            assert!((variance(&at(), [(1.0, rtt_s)].into_iter()) - 2.5).abs() < 1e-9);
        }
    }
}
