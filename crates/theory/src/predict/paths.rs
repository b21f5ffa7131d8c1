//! What paths of unlike length hold: noise that comes anew each round trip.
//!
//! The queue is what is in flight less what the paths hold, which is C T of paths that are alike. A flow's packets
//! leave one after the other, since acknowledgements clock them: in a burst of b = W / C seconds, once in a round
//! trip. A path that is longer than the mean by d holds, besides, what its flow sent d ago and less; a shorter one
//! lacks it. Of a burst that is up to C s packets, s and l the shorter and the longer of b and d, in which it comes
//! and goes evenly:
//!
//! ```text
//! variance = C^2 s^2 (l - s / 3) / R - (W d / R)^2
//! ```
//!
//! All of it lies at whole frequencies of a round trip, where loops answer little: it adds to the variance, not to the
//! loop.

use crate::linear::OperatingPoint;

/// Variance of what the paths hold, packets^2, of flows of which so many have a base round trip of so many seconds.
pub(super) fn variance(at: &OperatingPoint, flows: impl Iterator<Item = (f64, f64)>) -> f64 {
    let OperatingPoint { window_pkts: w, capacity_pps: c, rtt_s: r, base_rtt_s, .. } = *at;
    let burst = w / c;
    let of = |(flows, rtt_s): (f64, f64)| {
        let far = (rtt_s - base_rtt_s).abs().min(0.5 * r);
        let (short, long) = (far.min(burst), far.max(burst));
        let mean = w * far / r;
        flows * (c * c * short * short * (long - short / 3.0) / r - mean * mean).max(0.0)
    };
    flows.map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fluid::Model;

    fn at() -> OperatingPoint {
        // 1000 packets/s, R = .1 s, 10 flows of 10 packets: bursts of 10 ms.
        OperatingPoint::new(Model::Reno, 10.0, 1000.0, 0.0, 0.08, 20.0).unwrap()
    }

    #[test]
    fn paths_alike_hold_the_same() {
        assert_eq!(variance(&at(), [(10.0, 0.08)].into_iter()), 0.0);
    }

    #[test]
    fn a_burst_is_on_a_longer_path_for_as_long_as_that_is_longer() {
        // 20 ms more: 10 packets for 10 ms, up and down in 10 ms each: 100 (10 + 20 / 3) / 100 - 2^2 = 12.667.
        assert!((variance(&at(), [(1.0, 0.1)].into_iter()) - 12.667).abs() < 1e-3);
        // 5 ms less: 5 packets for 5 ms, 5 ms each: 25 (5 + 10 / 3) / 100 - .5^2 = 1.8333, of three flows.
        assert!((variance(&at(), [(3.0, 0.075)].into_iter()) - 5.5).abs() < 1e-9);
    }
}
