//! What an AQM says of itself to theory: the law that its decisions obey on average, its answer to a small change of
//! the queue, where the queue comes to rest, what follows from its parameters; or why there is none of it.
//!
//! [`Theory`] has a default for all of it, so that an algorithm says only what it knows better, in its own file.
//! Analysis and fluid engine ask through [`Aqm::theory`](crate::Aqm::theory) and name no algorithm.

use alloc::string::String;

use aqumen_units::{Probability, Span};

use crate::{GapTail, RedLaw, SignalGaps, TcpPlant, Transfer};

/// What an AQM says of itself.
pub trait Theory {
    /// Why a small change of the queue does not move it in proportion, so that there is no loop to linearise.
    fn not_linearizable(&self) -> Option<&'static str> {
        None
    }

    /// What drives the equations of a fluid.
    fn fluid_model(&self) -> FluidModel {
        FluidModel::Algorithm
    }

    /// What share of the packets is signalled when the law says p.
    fn signal_process(&self) -> SignalProcess {
        SignalProcess::Bernoulli
    }

    /// When nothing is signalled whatever the law says.
    fn safeguard(&self) -> Option<SafeguardLimits> {
        None
    }

    /// How even signals are where the share `p` of the packets is signalled: the variance of how many come in a long
    /// time, as a share of what a toss for each packet by itself has.
    fn dispersion(&self, p: f64) -> f64 {
        self.signal_process().dispersion(p)
    }

    /// How far apart signals come where the share `p` of the packets is signalled; `None`: by a toss for each packet.
    fn signal_gaps(&self, p: f64) -> Option<SignalGaps> {
        self.signal_process().signal_gaps(p)
    }

    /// Where the queue comes to rest.
    fn equilibrium(&self) -> Equilibrium {
        Equilibrium::AtTarget
    }

    /// How far beside the target it rests where the share `p` of the packets has to be signalled, packets.
    fn offset_pkts(&self, p: Probability) -> f64 {
        let _ = p;
        0.0
    }

    /// Of an algorithm whose parameters move: the queue around which they leave it alone, packets.
    fn adaptation_center_pkts(&self) -> Option<f64> {
        None
    }

    /// Of an algorithm that moves its maximum probability by steps: those where it has come to rest at `max_p`. `None`
    /// where it takes none, at an end of its range.
    fn max_p_steps(&self, max_p: f64) -> Option<MaxPSteps> {
        let _ = max_p;
        None
    }

    /// The answer to a small change of the queue. `None`: not known; a law of one loop can
    /// still be asked for its answer.
    fn linear(&self, at: &QueueOperatingPoint) -> Option<Transfer> {
        let _ = at;
        None
    }

    /// The parameter that the gain of the loop is proportional to.
    fn gain(&self) -> Option<&'static str> {
        None
    }

    /// What follows from the parameters at `at`, by the symbols of the source, and what speaks against them there.
    fn derive(&self, at: &QueueOperatingPoint, plant: &TcpPlant, report: &mut dyn DesignReport) {
        let _ = (at, plant, report);
    }

    /// What speaks against it where the queue rests.
    fn equilibrium_warning(&self, at: &QueueOperatingPoint) -> Option<String> {
        let _ = at;
        None
    }

    /// What speaks against it in a stable loop that bears this delay more, seconds.
    fn delay_margin_warning(&self, delay_margin_s: f64) -> Option<String> {
        let _ = delay_margin_s;
        None
    }
}

/// An algorithm that says nothing of itself.
impl Theory for () {}

/// Where the queue rests, and the network around it.
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
    /// Fraction of the packets that is signalled.
    pub probability: f64,
    /// Mean packet on the wire, bytes.
    pub packet_bytes: f64,
}

/// What drives the equations of a fluid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FluidModel {
    /// The algorithm itself: its law if it has one, else its decisions on evenly spaced packets.
    Algorithm,
    /// Nothing: the buffer's end alone signals.
    BufferOnly,
    /// RED's share of the packets.
    Red(RedLaw),
}

/// Where the queue comes to rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Equilibrium {
    /// At the target.
    AtTarget,
    /// Beside it: see [`Theory::offset_pkts`].
    OffTarget,
    /// Where RED's share of the packets meets what holds the queue.
    OnCurve(RedLaw),
    /// At the end of the buffer.
    AtBufferLimit,
}

/// Takes what an algorithm derives.
pub trait DesignReport {
    /// A quantity.
    fn number(&mut self, name: &'static str, value: f64);

    /// Several.
    fn list(&mut self, name: &'static str, values: &[f64]);

    /// What speaks against the design.
    fn warn(&mut self, warning: String);
}

/// Packets are not signalled while the delay and the law's probability are below these.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SafeguardLimits {
    /// The delay at the law's last step, seconds.
    pub delay_s: f64,
    /// What the law says.
    pub probability: f64,
    /// A burst at an empty queue is spared besides, for this time.
    pub burst: Span,
    /// Whether the delay is that of the packet that left last, which came by as much earlier.
    pub sojourn: bool,
}

/// Steps of a maximum probability, one each interval that the average queue lies beyond a band.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MaxPSteps {
    /// Half of the band, packets.
    pub band_half_pkts: f64,
    /// A step up, as a share of what it is.
    pub up: f64,
    /// A step down, likewise.
    pub down: f64,
    /// Least time between two, seconds.
    pub interval_s: f64,
}

/// What share of the packets an AQM signals when its law says p.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalProcess {
    /// p.
    Bernoulli,
    /// PIE spaces signals out (RFC 8033 section 5.4): none until the probabilities since the last one sum up to 0.85,
    /// then with p. Gaps average 0.85/p + 1/p - 0.85 packets.
    Derandomized,
}

impl SignalProcess {
    /// The share of the packets when the law says `p`.
    pub fn signal_probability(self, p: f64) -> f64 {
        match self {
            SignalProcess::Bernoulli => p,
            SignalProcess::Derandomized => p / (1.85 - 0.85 * p),
        }
    }

    /// What the law has to say for the share `p` of the packets.
    pub fn law_probability(self, p: f64) -> f64 {
        match self {
            SignalProcess::Bernoulli => p,
            SignalProcess::Derandomized => 1.85 * p / (1.0 + 0.85 * p),
        }
    }

    /// How even signals are at the share `p`: see [`Theory::dispersion`]. Of signals whose gaps are alike and
    /// independent the count varies by (deviation of a gap / its mean)^2 times its mean, with a toss for each packet by
    /// 1 - p.
    pub fn dispersion(self, p: f64) -> f64 {
        match self {
            SignalProcess::Bernoulli => 1.0,
            // A gap is fixed up to a geometric end: its variance is (1 - law) / law^2.
            SignalProcess::Derandomized if p < 1.0 => {
                let law = self.law_probability(p);
                let mean = 1.85 - 0.85 * law;
                (1.0 - law) / (mean * mean) / (1.0 - p)
            }
            SignalProcess::Derandomized => 0.0,
        }
    }

    /// How far apart signals come at the share `p`: see [`Theory::gaps`].
    pub fn signal_gaps(self, p: f64) -> Option<SignalGaps> {
        match self {
            SignalProcess::Bernoulli => None,
            SignalProcess::Derandomized => {
                let law = self.law_probability(p);
                Some(SignalGaps { least_pkts: 0.85 / law, tail: GapTail::Exponential(1.0 / law - 0.85) })
            }
        }
    }

    /// Slope of the share over what the law says, where the share is `p`.
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
    fn pies_gaps_vary_less_than_those_of_tosses() {
        // At p = .1 none for 8.5 packets, then 10 on average, less the .85: gaps of 17.65 whose variance is that of the
        // tosses, .9 / .01 = 90. A toss for each packet has 17.65 (17.65 - 1).
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
