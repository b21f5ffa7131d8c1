//! The AQM `my-law`: a proportional-integral law.

use aqumen_aqm::{
    Algorithm, AnyAqm, Catalogue, DefaultValue, MAX_LOOPS, NameTakenError, Network, Observation, Param, SampledLaw,
    Settings, Unit, Value,
};
use aqumen_units::{Probability, Span};

/// The built-in AQMs and `my-law`. `with` also takes an algorithm that decides packet by packet
/// (`AnyAqm::custom`), and `with_qdisc` a discipline of several queues (`AnyQdisc::custom`).
pub fn catalogue() -> Result<Catalogue, NameTakenError> {
    Catalogue::BUILT_IN.with(ALGORITHM, |settings, network| {
        Ok(AnyAqm::custom_law(Law::new(settings, network), settings.flag("ecn").unwrap_or(true)))
    })
}

const GAIN: f64 = 2e-5;
const DAMPING: f64 = 1e-3;

/// Name, description and parameters; each value that a SPEC gives is checked against its unit and range.
const ALGORITHM: Algorithm = Algorithm {
    name: "my-law",
    title: "MyLaw",
    summary: "the probability follows the error of the queue and its change",
    reference: "-",
    params: &[
        Param::positive("gain", Unit::PerPacket, DefaultValue::number(GAIN), "change per packet of error and step"),
        Param::positive("damping", Unit::PerPacket, DefaultValue::number(DAMPING), "change per packet of growth"),
        Param::TARGET,
        Param::ECN,
    ],
};

/// The law: p += gain (q - target) + damping (q - q of the step before), every 10 ms.
#[derive(Clone)]
pub struct Law {
    gain: f64,
    damping: f64,
    target_pkts: f64,
    queue_pkts: f64,
    p: Probability,
}

impl Law {
    /// The law with the parameters of a SPEC; what is not given follows from the nominal network.
    fn new(settings: &Settings<'_>, network: &Network) -> Self {
        Law {
            gain: settings.number("gain").unwrap_or(GAIN),
            damping: settings.number("damping").unwrap_or(DAMPING),
            target_pkts: settings.number("target").unwrap_or(network.target_pkts),
            queue_pkts: 0.0,
            p: Probability::ZERO,
        }
    }
}

impl SampledLaw for Law {
    fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
        [Some(Span::from_millis(10)), None]
    }

    /// Returns the probability that applies to each packet until the next step.
    fn step(&mut self, _loop: usize, seen: &Observation) -> Probability {
        let error = self.gain * (seen.queue_pkts - self.target_pkts);
        let growth = self.damping * (seen.queue_pkts - self.queue_pkts);
        self.queue_pkts = seen.queue_pkts;
        self.p = Probability::clamp(self.p.get() + error + growth);
        self.p
    }

    /// Shows the parameters in force in the results.
    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        visit("gain", Value::Number(self.gain));
        visit("damping", Value::Number(self.damping));
        visit("target", Value::Number(self.target_pkts));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_above_the_target_raises_the_probability() {
        let mut law = Law { gain: 1e-4, damping: 1e-3, target_pkts: 100.0, queue_pkts: 150.0, p: Probability::ZERO };
        let seen = Observation { queue_pkts: 150.0, interval_s: 0.01, ..Observation::default() };
        // By hand: 1e-4 (150 - 100) a step, and no growth.
        assert!((law.step(0, &seen).get() - 0.005).abs() < 1e-12);
        assert!((law.step(0, &seen).get() - 0.010).abs() < 1e-12);
    }

    #[test]
    fn its_name_is_free() {
        assert!(catalogue().is_ok_and(|catalogue| catalogue.find("my-law").is_some()));
    }
}
