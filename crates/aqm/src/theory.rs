//! Theoretical properties of an AQM: mean behaviour, linearisation, equilibrium, derived design quantities.
//!
//! Each algorithm implements [`Theory`] in its own file and overrides only the defaults that do not apply to it. The
//! analysis and the fluid engine use [`Aqm::theory`](crate::Aqm::theory) and name no algorithm.

use alloc::string::String;

use aqumen_units::{Probability, Span};

use crate::{GapTail, RedLaw, SignalGaps, TcpPlant, Transfer};

/// Theoretical properties of an AQM.
pub trait Theory {
    /// Reason why the AQM cannot be linearised; `None` if it can.
    fn not_linearizable(&self) -> Option<&'static str> {
        None
    }

    /// Model of the AQM in the fluid equations.
    fn fluid_model(&self) -> FluidModel {
        FluidModel::Algorithm
    }

    /// Relation between the law's probability and the fraction of packets signalled.
    fn signal_process(&self) -> SignalProcess {
        SignalProcess::Bernoulli
    }

    /// Thresholds of PIE's safeguard, for an AQM that has it.
    fn safeguard(&self) -> Option<SafeguardLimits> {
        None
    }

    /// Dispersion of the signals at signal probability `p`: variance of their number in a long time, relative to that
    /// of Bernoulli signals.
    fn dispersion(&self, p: f64) -> f64 {
        self.signal_process().dispersion(p)
    }

    /// Distribution of the gaps between signals at signal probability `p`; `None` for Bernoulli signals.
    fn signal_gaps(&self, p: f64) -> Option<SignalGaps> {
        self.signal_process().signal_gaps(p)
    }

    /// Reason why the predicted noise of the queue does not hold; `None` if it may.
    fn noise_doubt(&self) -> Option<&'static str> {
        None
    }

    /// Equilibrium of the queue.
    fn equilibrium(&self) -> Equilibrium {
        Equilibrium::AtTarget
    }

    /// Steady-state error: equilibrium queue minus target at signal probability `p`, packets.
    fn offset_pkts(&self, p: Probability) -> f64 {
        let _ = p;
        0.0
    }

    /// Target queue of an AQM that sets it by what it measures ([`Equilibrium::AtMeasuredTarget`]), at the operating
    /// point `at`, packets.
    fn measured_target_pkts(&self, at: &QueueOperatingPoint) -> f64 {
        at.queue_pkts
    }

    /// Probability of a scalable sender's packet over the root of that of a classic one, if they differ and the
    /// parameter `coupling` does not say so.
    fn coupling(&self) -> Option<f64> {
        None
    }

    /// Average queue at which an adaptive algorithm leaves its parameters unchanged, packets.
    fn adaptation_center_pkts(&self) -> Option<f64> {
        None
    }

    /// Steps of an adaptive maximum probability around its equilibrium `max_p`; `None` without steps, as at an end of
    /// the range.
    fn max_p_steps(&self, max_p: f64) -> Option<MaxPSteps> {
        let _ = max_p;
        None
    }

    /// Transfer function from queue to probability at the operating point. `None` if unknown; that of a law with one
    /// loop can be measured.
    fn linear(&self, at: &QueueOperatingPoint) -> Option<Transfer> {
        let _ = at;
        None
    }

    /// Name of the parameter to which the loop gain is proportional.
    fn gain(&self) -> Option<&'static str> {
        None
    }

    /// Reports quantities derived from the parameters at the operating point `at`, under the symbols of the source, and
    /// warnings.
    fn derive(&self, at: &QueueOperatingPoint, plant: &TcpPlant, report: &mut dyn DesignReport) {
        let _ = (at, plant, report);
    }

    /// Warning about the operating point `at`.
    fn equilibrium_warning(&self, at: &QueueOperatingPoint) -> Option<String> {
        let _ = at;
        None
    }

    /// Warning about a stable loop with this delay margin, seconds.
    fn delay_margin_warning(&self, delay_margin_s: f64) -> Option<String> {
        let _ = delay_margin_s;
        None
    }
}

/// The defaults.
impl Theory for () {}

/// Operating point of a queue and its network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueOperatingPoint {
    /// Number of long-lived flows, N.
    pub flows: f64,
    /// Capacity, C, packets/s.
    pub capacity_pps: f64,
    /// Round-trip time without queueing, seconds.
    pub base_rtt_s: f64,
    /// Round-trip time, R0, seconds.
    pub rtt_s: f64,
    /// Packets waiting.
    pub queue_pkts: f64,
    /// Window, W0, packets.
    pub window_pkts: f64,
    /// Signal probability.
    pub probability: f64,
    /// Mean packet on the wire, bytes.
    pub packet_bytes: f64,
    /// Estimates of an AQM that measures the network, over the values above.
    pub estimates: EstimateRatios,
}

/// Estimates of the network over its true values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EstimateRatios {
    /// Round-trip time without queueing.
    pub rtt: f64,
    /// Capacity.
    pub capacity: f64,
    /// Number of flows, beside what follows from the other two.
    pub flows: f64,
}

impl EstimateRatios {
    /// Exact estimates.
    pub const EXACT: EstimateRatios = EstimateRatios { rtt: 1.0, capacity: 1.0, flows: 1.0 };
}

impl Default for EstimateRatios {
    fn default() -> Self {
        EstimateRatios::EXACT
    }
}

/// Model of an AQM in the fluid equations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FluidModel {
    /// The algorithm: its sampled law, or else its decisions on evenly spaced packets.
    Algorithm,
    /// Overflow of the buffer only.
    BufferOnly,
    /// RED's mean signal probability.
    Red(RedLaw),
    /// The law that the algorithm has once it knows the round-trip time, which only packets show:
    /// [`AnyAqm::in_fluid`](crate::registry::AnyAqm::in_fluid).
    KnownRoundTrip,
}

/// Equilibrium of a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Equilibrium {
    /// At the target.
    AtTarget,
    /// With a steady-state error: see [`Theory::offset_pkts`].
    OffTarget,
    /// Where RED's signal probability equals the probability that holds the queue.
    OnCurve(RedLaw),
    /// At the limit of the buffer.
    AtBufferLimit,
    /// At a target that the AQM sets by what it measures: see [`Theory::measured_target_pkts`].
    AtMeasuredTarget,
}

/// Receiver of derived design quantities.
pub trait DesignReport {
    /// Reports a number.
    fn number(&mut self, name: &'static str, value: f64);

    /// Reports a list of numbers.
    fn list(&mut self, name: &'static str, values: &[f64]);

    /// Reports a warning about the design.
    fn warn(&mut self, warning: String);
}

/// Thresholds of PIE's safeguard (RFC 8033 section 4.1): no packet is signalled while both delay and probability are
/// below them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SafeguardLimits {
    /// Delay at the law's last step, seconds.
    pub delay_s: f64,
    /// Probability of the law.
    pub probability: f64,
    /// Burst allowance.
    pub burst: Span,
    /// Whether the delay is the sojourn time of the last packet, which lags the queue by that time.
    pub sojourn: bool,
}

/// Steps of an adaptive maximum probability, one per interval in which the average queue is outside a band.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MaxPSteps {
    /// Half-width of the band, packets.
    pub band_half_pkts: f64,
    /// Relative step up.
    pub up: f64,
    /// Relative step down.
    pub down: f64,
    /// Least time between two steps, seconds.
    pub interval_s: f64,
}

/// Random process by which an AQM turns the law's probability into signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalProcess {
    /// An independent trial per packet.
    Bernoulli,
    /// PIE's de-randomization (RFC 8033 section 5.4): no signal until the probabilities since the last one sum to 0.85,
    /// then trials with p. The mean gap is 0.85/p + 1/p - 0.85 packets.
    Derandomized,
}

impl SignalProcess {
    /// Fraction of packets signalled at law probability `p`.
    pub fn signal_probability(self, p: f64) -> f64 {
        match self {
            SignalProcess::Bernoulli => p,
            SignalProcess::Derandomized => p / (1.85 - 0.85 * p),
        }
    }

    /// Law probability at which the fraction `p` of packets is signalled.
    pub fn law_probability(self, p: f64) -> f64 {
        match self {
            SignalProcess::Bernoulli => p,
            SignalProcess::Derandomized => 1.85 * p / (1.0 + 0.85 * p),
        }
    }

    /// Dispersion at signal probability `p`: see [`Theory::dispersion`]. The count of a renewal process has variance
    /// (standard deviation of a gap / mean gap)^2 times its mean, a Bernoulli process 1 - p times.
    pub fn dispersion(self, p: f64) -> f64 {
        match self {
            SignalProcess::Bernoulli => 1.0,
            // A gap is a constant plus a geometric part with variance (1 - law) / law^2.
            SignalProcess::Derandomized if p < 1.0 => {
                let law = self.law_probability(p);
                let mean = 1.85 - 0.85 * law;
                (1.0 - law) / (mean * mean) / (1.0 - p)
            }
            SignalProcess::Derandomized => 0.0,
        }
    }

    /// Gaps at signal probability `p`: see [`Theory::signal_gaps`].
    pub fn signal_gaps(self, p: f64) -> Option<SignalGaps> {
        match self {
            SignalProcess::Bernoulli => None,
            SignalProcess::Derandomized => {
                let law = self.law_probability(p);
                Some(SignalGaps { least_pkts: 0.85 / law, tail: GapTail::Exponential(1.0 / law - 0.85) })
            }
        }
    }

    /// Derivative of the signal probability with respect to the law's, at signal probability `p`.
    pub fn slope(self, p: f64) -> f64 {
        match self {
            SignalProcess::Bernoulli => 1.0,
            SignalProcess::Derandomized => {
                1.85 / ((1.85 - 0.85 * self.law_probability(p)) * (1.85 - 0.85 * self.law_probability(p)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pies_gaps_vary_less_than_bernoulli_gaps() {
        // At p = 0.1: 8.5 packets without a signal, then 10 on average, less 0.85: mean 17.65, variance .9 / .01 = 90.
        // Bernoulli signals have variance 17.65 (17.65 - 1).
        let share = SignalProcess::Derandomized.signal_probability(0.1);
        assert!((share - 1.0 / 17.65).abs() < 1e-12);
        assert!((SignalProcess::Derandomized.dispersion(share) - 90.0 / (17.65 * 16.65)).abs() < 1e-9);
        assert_eq!(
            (SignalProcess::Bernoulli.dispersion(share), SignalProcess::Derandomized.dispersion(1.0)),
            (1.0, 0.0)
        );
        let gaps = SignalProcess::Derandomized.signal_gaps(share).unwrap();
        assert!((gaps.mean_pkts() - 17.65).abs() < 1e-12 && SignalProcess::Bernoulli.signal_gaps(share).is_none());
    }
}
