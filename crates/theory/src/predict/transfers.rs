//! Short transfers beside long flows: load that signals do not move in the mean, and its noise.
//!
//! Transfers come at random times, whatever the queue does, and each is finished: their load u is carried. The long
//! flows fill what they leave, N W(p, R) / R = C - u. A longer queue holds more of the transfers' packets too, u R,
//! once they have had the time to come: `MeanField::held`.
//!
//! *Noise.* A transfer of n packets sends its initial window, and twice as many each round trip: n_0, n_1, ... Its
//! packets are in flight for a round trip each. With r transfers a second
//!
//! ```text
//! F(w) = sum n_k e^(-jwkR),   S(w) = r E|F(w)|^2 ((2 / w) sin(w R / 2))^2
//! ```
//!
//! A round with a signal is followed by half of its packets, not twice as many. Left out: transfers long enough for
//! signals to hold their window, to which [`ShortTransfers::refusal`] keeps them.

use aqumen_scenario::law::Law;
use aqumen_scenario::{Group, Protocol, Traffic};
use num_complex::Complex64;

use crate::fluid::Load;
use crate::linear::OperatingPoint;
use crate::linear::complex::cis;

/// Quantiles that stand for a law of sizes.
const QUANTILES: u32 = 32;
/// Largest number of signals that a transfer of mean size meets.
const SIGNALS_MAX: f64 = 2.0;
/// Largest part of a link.
const SHARE_MAX: f64 = 0.45;
/// Largest fraction of the group's flows that are busy on average: a transfer that finds no idle one is refused.
const BUSY_MAX: f64 = 0.5;

/// Short transfers of a group.
#[derive(Clone, Debug)]
pub(super) struct ShortTransfers {
    /// Name of the group.
    name: String,
    /// Transfers a second of the group.
    per_second: f64,
    /// Number of the group's flows.
    flows: f64,
    /// Packets of transfers, at even quantiles.
    packets: Vec<f64>,
    /// Packets that a transfer begins with.
    initial: f64,
    /// Mean bytes of a transfer, without and with headers.
    bytes: f64,
    wire_bytes: f64,
}

impl ShortTransfers {
    /// Short transfers of `group`; `None` of other traffic, of transfers that wait for each other, and of sizes with a
    /// long tail.
    pub(super) fn new(group: &Group) -> Option<Self> {
        let (Traffic::Transfers(transfers), Protocol::Tcp(config)) = (&group.traffic, &group.transport) else {
            return None;
        };
        let per_second = transfers.per_second()?;
        let sizes = quantiles(&transfers.size.0)?;
        let [payload, header] = [group.transport.payload_bytes(), group.transport.header_bytes()].map(f64::from);
        let packets: Vec<f64> = sizes.iter().map(|bytes| libm::ceil(bytes / payload).max(1.0)).collect();
        let bytes = transfers.size.0.mean();
        // Each connection is opened and closed by a packet without data.
        let pure = if transfers.new_connection && config.syn { 2.0 } else { 0.0 };
        let wire_bytes = bytes + header * (mean(&packets) + pure);
        Some(ShortTransfers {
            name: group.name.to_string(),
            per_second,
            flows: f64::from(group.flows.end - group.flows.start),
            packets,
            initial: f64::from(config.initial_window),
            bytes,
            wire_bytes,
        })
    }

    /// Mean load of one flow of the group.
    pub(super) fn load(&self) -> Load {
        let packets = mean(&self.packets);
        Load {
            pps: self.per_second * packets / self.flows,
            packet_bytes: self.wire_bytes / packets,
            payload_bytes: self.bytes / packets,
        }
    }

    /// Name of the group.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Load of the group on the wire, bit/s.
    pub(super) fn offered_bps(&self) -> f64 {
        8.0 * self.per_second * self.wire_bytes
    }

    /// Names why these are no short transfers at a link at `at`, of which they take `share`.
    pub(super) fn refusal(&self, at: &OperatingPoint, share: f64) -> Option<String> {
        let packets = mean(&self.packets);
        let (signals, busy) =
            (packets * at.probability, self.per_second * (self.rounds() + 1.0) * at.rtt_s / self.flows);
        let why = if share > SHARE_MAX {
            format!("short transfers take {share:.2} of the link, above {SHARE_MAX}")
        } else if signals > SIGNALS_MAX {
            format!(
                "transfers of {packets:.0} packets meet {signals:.1} signals each: above {SIGNALS_MAX} they are not short"
            )
        } else if busy > BUSY_MAX {
            format!("{:.0} flows are too few: transfers that find none idle are refused", self.flows)
        } else {
            return None;
        };
        Some(format!("group {}: {why}; use engine packet", self.name))
    }

    /// Mean round trips in which a transfer has packets in flight.
    pub(super) fn rounds(&self) -> f64 {
        let of = |packets: f64| libm::ceil(libm::log2(packets / self.initial + 1.0)).max(1.0);
        mean(&self.packets.iter().map(|packets| of(*packets)).collect::<Vec<_>>())
    }

    /// Power of the packets that they have in flight at `w` rad/s, packets^2 per rad/s.
    pub(super) fn power(&self, at: &OperatingPoint, w: f64) -> f64 {
        let OperatingPoint { rtt_s, .. } = *at;
        let held = if w * rtt_s < 1e-6 { rtt_s } else { 2.0 / w * libm::sin(0.5 * w * rtt_s) };
        let each = self.packets.iter().map(|packets| self.sent(*packets, at.probability, w * rtt_s).norm_sqr());
        held * held * self.per_second * each.sum::<f64>() / self.packets.len() as f64
    }

    /// F of a transfer of which the share `p` is signalled; a round trip is `angle` radians. The window is the mean
    /// one: it doubles after a round without signals, and is halved after any other.
    fn sent(&self, packets: f64, p: f64, angle: f64) -> Complex64 {
        let (mut left, mut round, mut found, mut turned) = (packets, self.initial, Complex64::ZERO, 0.0);
        while left > 0.0 {
            found += left.min(round) * cis(-turned);
            let unsignalled = libm::pow(1.0 - p, round);
            (left, turned) = (left - round, turned + angle);
            round = (round * (0.5 + 1.5 * unsignalled)).max(2.0);
        }
        found
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Values of a law at even quantiles; `None` of a law with a long tail.
fn quantiles(law: &Law) -> Option<Vec<f64>> {
    let at = |share: f64| match *law {
        Law::Fixed(value) => Some(value),
        Law::Uniform { min, max } => Some(min + (max - min) * share),
        Law::Exponential { mean } => Some(-mean * libm::log1p(-share)),
        _ => None,
    };
    (0..QUANTILES).map(|k| at((f64::from(k) + 0.5) / f64::from(QUANTILES))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fluid::Model;

    fn transfers(packets: Vec<f64>) -> ShortTransfers {
        ShortTransfers {
            name: "web".into(),
            per_second: 20.0,
            flows: 100.0,
            packets,
            initial: 10.0,
            bytes: 28_960.0,
            wire_bytes: 30_104.0,
        }
    }

    /// 1250 packets/s, of which 400 are transfers', R = .28 s.
    fn at() -> OperatingPoint {
        OperatingPoint::new(Model::Reno, 60.0, 1250.0, 400.0, 0.2, 100.0).unwrap()
    }

    #[test]
    fn a_transfer_of_twenty_five_packets_sends_ten_and_fifteen_a_round_trip_later() {
        let web = transfers(vec![25.0]);
        for angle in [0.0, 0.7, 2.0] {
            let expected = 10.0 + 15.0 * cis(-angle);
            assert!((web.sent(25.0, 0.0, angle) - expected).l1_norm() < 1e-12);
        }
        assert_eq!(web.rounds(), 2.0);
    }

    #[test]
    fn signals_spread_a_transfer_over_more_round_trips() {
        // All rounds signalled: 10, 5, 2.5, 2, ....
        let web = transfers(vec![20.0]);
        let expected = 10.0 + 5.0 * cis(-0.7) + 2.5 * cis(-1.4) + 2.0 * cis(-2.1) + 0.5 * cis(-2.8);
        assert!((web.sent(20.0, 1.0, 0.7) - expected).l1_norm() < 1e-12);
        assert!(web.sent(20.0, 0.2, 0.7).norm_sqr() < web.sent(20.0, 0.0, 0.7).norm_sqr());
    }

    #[test]
    fn their_slow_noise_is_that_of_packets_that_stay_a_round_trip() {
        // Campbell: 20 a second of 20 packets for R = .28 s each, a power of r (n R)^2, however they are spread.
        let (web, at) = (transfers(vec![20.0]), at());
        let expected = 20.0 * (20.0 * 0.28f64).powi(2);
        assert!((web.power(&at, 1e-9) / expected - 1.0).abs() < 1e-9);
        // All of it within a round trip: at w R = 2 pi nothing is left.
        assert!(web.power(&at, std::f64::consts::TAU / 0.28) < 1e-12 * expected);
    }

    #[test]
    fn what_is_no_short_transfer_is_refused_by_the_name_of_its_group() {
        let (web, at) = (transfers(vec![20.0]), at());
        assert_eq!(web.refusal(&at, 0.3), None);
        let told = |web: &ShortTransfers, share: f64| web.refusal(&at, share).unwrap();
        assert!(told(&web, 0.5).starts_with("group web: short transfers take 0.50 of the link, above 0.45"));
        assert!(told(&transfers(vec![900.0]), 0.3).contains("they are not short"), "{}", at.probability);
        assert!(told(&ShortTransfers { flows: 5.0, ..web }, 0.3).contains("5 flows are too few"));
    }

    #[test]
    fn quantiles_have_the_mean_of_their_law_and_tails_have_none() {
        for (law, expected) in [
            (Law::Fixed(3000.0), 3000.0),
            (Law::Uniform { min: 1000.0, max: 5000.0 }, 3000.0),
            (Law::Exponential { mean: 3000.0 }, 3000.0),
        ] {
            assert!((mean(&quantiles(&law).unwrap()) / expected - 1.0).abs() < 0.02, "{law:?}");
        }
        assert_eq!(quantiles(&Law::Pareto { mean: 3000.0, shape: 1.2, max: None }), None);
    }
}
