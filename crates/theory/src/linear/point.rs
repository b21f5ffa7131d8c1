//! Where the fluid models stand still.

use aqumen_aqm::{EstimateRatios, QueueOperatingPoint};
use serde::Serialize;

use crate::Error;
use crate::equilibrium::response::Sender;
use crate::equilibrium::window::Windows;
use crate::fluid::Model;
use crate::root_finding::halved;

/// An equilibrium of flows at one bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OperatingPoint {
    /// The equations.
    #[serde(skip)]
    pub model: Model,
    /// Number of flows, N.
    pub flows: f64,
    /// Capacity, C, packets/s.
    pub capacity_pps: f64,
    /// Traffic that ignores signals, u0, packets/s.
    pub unresponsive_pps: f64,
    /// Round-trip time without queueing, T_p, seconds.
    pub base_rtt_s: f64,
    /// Packets waiting, q0.
    pub queue_pkts: f64,
    /// Round-trip time with the queue, R0 = q0 / C + T_p, seconds.
    pub rtt_s: f64,
    /// Window, W0, packets.
    pub window_pkts: f64,
    /// Probability that holds the queue there, p0. Above one if none does.
    pub probability: f64,
    /// Whether a probability in [0, 1] holds the queue there.
    pub feasible: bool,
    /// How the mean window answers around there; `None` of senders whose many windows answer one by one.
    #[serde(skip)]
    pub windows: Option<Windows>,
    /// How even signals are: see [`aqumen_aqm::Theory::dispersion`].
    #[serde(skip)]
    pub dispersion: f64,
    /// The window that is left where every packet is signalled, packets.
    #[serde(skip)]
    pub least_window_pkts: f64,
    /// Whether signals are losses.
    #[serde(skip)]
    pub losses: bool,
    /// How exact the estimates of an AQM are that measures the network.
    #[serde(skip)]
    pub estimates: EstimateRatios,
}

/// Rounds until windows agree with what is lost of them; each leaves about twice the loss probability of the error.
const LOSS_ROUNDS: u32 = 6;
/// Largest loss probability of which that is computed.
const PASSED_MIN: f64 = 0.5;

impl OperatingPoint {
    /// Operating point in an AQM's units, with packets of `packet_bytes`.
    pub fn to_aqm(&self, packet_bytes: f64) -> QueueOperatingPoint {
        QueueOperatingPoint {
            flows: self.flows,
            capacity_pps: self.capacity_pps,
            base_rtt_s: self.base_rtt_s,
            rtt_s: self.rtt_s,
            queue_pkts: self.queue_pkts,
            window_pkts: self.window_pkts,
            probability: self.probability,
            packet_bytes,
            estimates: self.estimates,
        }
    }

    /// The equilibrium of `model` with `queue_pkts` waiting. Flows, capacity and R0 are above
    /// zero, u0 below the capacity.
    pub fn new(
        model: Model,
        flows: f64,
        capacity_pps: f64,
        unresponsive_pps: f64,
        base_rtt_s: f64,
        queue_pkts: f64,
    ) -> Result<Self, Error> {
        let rtt_s = queue_pkts / capacity_pps + base_rtt_s;
        let given = [flows, capacity_pps, rtt_s, base_rtt_s + 1.0, queue_pkts + 1.0];
        if !(given.iter().all(|x| *x > 0.0 && x.is_finite()) && (0.0..capacity_pps).contains(&unresponsive_pps)) {
            return Err(Error::Unsupported(format!(
                "no operating point: flows {flows}, capacity {capacity_pps} packets/s of which {unresponsive_pps} taken, \
                 R0 {rtt_s} s must be above 0"
            )));
        }
        let window = rtt_s * (capacity_pps - unresponsive_pps) / flows;
        let (window_pkts, probability) = match model {
            Model::Hollot => (window, 2.0 / (window * window)),
            Model::Ecn => (window, 2.0 / (2.0 + window * window)),
            Model::Reno => (window, crate::equilibrium::window::probability(window)),
            Model::Drop => drop_point(flows, capacity_pps, unresponsive_pps, rtt_s),
        };
        Ok(OperatingPoint {
            model,
            flows,
            capacity_pps,
            unresponsive_pps,
            base_rtt_s,
            queue_pkts,
            rtt_s,
            window_pkts,
            probability,
            feasible: probability <= 1.0,
            windows: Some(Windows::from_reno(window_pkts)),
            dispersion: 1.0,
            least_window_pkts: match model {
                Model::Reno => crate::equilibrium::window::window(1.0),
                _ => std::f64::consts::SQRT_2,
            },
            losses: model == Model::Drop,
            estimates: EstimateRatios::EXACT,
        })
    }

    /// Replaces the windows by those of `sender`, in model `reno`; those of ns-2's Reno have a closed
    /// form, in which it is already.
    pub fn with_sender(self, sender: &Sender) -> Self {
        if self.model != Model::Reno {
            return self;
        }
        let at = OperatingPoint { losses: sender.losses, ..self };
        if !sender.losses {
            return at.with_windows_of(sender);
        }
        // Of W packets that are sent p W get no further than the queue: W (1 - p) fill the link.
        let mut found = at.with_windows_of(sender);
        for _ in 0..LOSS_ROUNDS {
            let window_pkts = at.window_pkts / (1.0 - found.probability.min(PASSED_MIN));
            found = OperatingPoint { window_pkts, ..at }.with_windows_of(sender);
        }
        found
    }

    /// As [`Self::with_sender`], with the windows that there are.
    fn with_windows_of(self, sender: &Sender) -> Self {
        if sender.has_closed_form() {
            let probability = crate::equilibrium::window::probability(self.window_pkts);
            let windows = Some(Windows::from_reno(self.window_pkts));
            return OperatingPoint { probability, feasible: probability <= 1.0, windows, ..self };
        }
        let probability = sender.probability(self.window_pkts, self.rtt_s);
        // Above one: how far is not known, and does not matter.
        let (probability, feasible) = (probability.unwrap_or(1.0 + 1e-9), probability.is_some());
        OperatingPoint {
            probability,
            feasible,
            windows: None,
            least_window_pkts: sender.equilibrium(1.0, self.rtt_s).window_pkts,
            ..self
        }
    }

    /// Sets the dispersion of signals that are more even than Bernoulli trials: see [`aqumen_aqm::Theory::dispersion`].
    pub(crate) fn with_dispersion(self, dispersion: f64) -> Self {
        OperatingPoint { dispersion, ..self }
    }

    /// Capacity left to TCP, C_e = C - u0, packets/s.
    pub fn tcp_pps(&self) -> f64 {
        self.capacity_pps - self.unresponsive_pps
    }

    /// Where the queue settles with every packet marked, if the operating point is out of reach: q = C (W N / C_e -
    /// T_p), W the least window, sqrt(2) in model `hollot`.
    pub fn saturated_queue_pkts(&self) -> Option<f64> {
        let least = self.least_window_pkts;
        (!self.feasible).then(|| self.capacity_pps * (least * self.flows / self.tcp_pps() - self.base_rtt_s))
    }
}

/// W^2 = 2 (1-p) / p and (1-p) (N W/R0 + u0) = C: the left side falls with p.
fn drop_point(flows: f64, capacity: f64, unresponsive: f64, rtt: f64) -> (f64, f64) {
    let window = |p: f64| (2.0 * (1.0 - p) / p).sqrt();
    let (_, p) = halved(|p| (1.0 - p) * (flows * window(p) / rtt + unresponsive) - capacity, (0.0, 1.0), 200);
    (window(p), p)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(model: Model, flows: f64, capacity: f64) -> OperatingPoint {
        OperatingPoint::new(model, flows, capacity, 0.0, 0.2, 100.0).unwrap()
    }

    #[test]
    fn three_networks_by_hand() {
        // R0 = 0.2 + 100/C; W0 = R0 C / N; p0 = 2/W0^2 or 2/(2 + W0^2).
        for (flows, capacity, window, hollot, ecn) in [
            (100.0, 1250.0, 3.5, 8.0 / 49.0, 8.0 / 57.0),
            (120.0, 1000.0, 2.5, 0.32, 8.0 / 33.0),
            (300.0, 1250.0, 7.0 / 6.0, 72.0 / 49.0, 72.0 / 121.0),
        ] {
            let (a, b) = (point(Model::Hollot, flows, capacity), point(Model::Ecn, flows, capacity));
            assert!((a.window_pkts - window).abs() < 1e-12 && (a.probability - hollot).abs() < 1e-12);
            assert!((b.window_pkts - window).abs() < 1e-12 && (b.probability - ecn).abs() < 1e-12);
            assert_eq!(a.feasible, hollot < 1.0);
        }
        // 1250 (sqrt(2) 300 / 1250 - 0.2) = 424.264 - 250 = 174.264.
        let queue = point(Model::Hollot, 300.0, 1250.0).saturated_queue_pkts().unwrap();
        assert!((queue - 174.264).abs() < 1e-3);
    }

    #[test]
    fn with_losses_what_enters_is_the_capacity() {
        let at = point(Model::Drop, 100.0, 1250.0);
        let (p, window) = (at.probability, at.window_pkts);
        assert!((window * window * p - 2.0 * (1.0 - p)).abs() < 1e-9);
        assert!(((1.0 - p) * 100.0 * window / 0.28 - 1250.0).abs() < 1e-6);
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(OperatingPoint::new(Model::Ecn, 0.0, 1000.0, 0.0, 0.2, 100.0).is_err());
        assert!(OperatingPoint::new(Model::Ecn, 10.0, 1000.0, 1000.0, 0.2, 100.0).is_err());
        assert!(OperatingPoint::new(Model::Ecn, 10.0, f64::NAN, 0.0, 0.2, 100.0).is_err());
    }
}
