//! ST-ARM-PFC: ARM-PFC in the self-tuning structure, an extension of both papers.
//!
//! `arm-pfc-adaptive` keeps the round trip of its design. Here the round trip follows the estimates: R = rtt + target /
//! C^ grows when the capacity falls. The period stays, so the delay covers more samples.
//!
//! ```text
//! k_t = R C^ / (4 L^2),  tau1 = R,  tau2 = R / (2 L^),  d = round(R / Ts),  h = d + lead,  Psi = exp(-Ts / (pace R))
//! ```
//!
//! The controller is variant B of `arm-pfc` with p0 as designed, which has no steady-state error for any model.
//!
//! Deviations: none, there is no other source.

use aqumen_units::{Probability, Span};

use crate::params::joined;
use crate::{
    Algorithm, AntiWindup, ArmPfc, ArmPfcParams, Bound, DefaultValue, Kind, MAX_LOOPS, Network, NetworkEstimate,
    Observation, Param, ParamError, SampledAqm, SampledLaw, SelfTuned, Settings, Target, TcpPlant, Tunable, Unit,
    Value, design::self_tuning::Tuning, papers::arm_pfc, papers::arm_pfc::design::MAX_DELAY,
    papers::arm_pfc_adaptive::sampled_model,
};

const DEFAULT_LEAD: usize = 4;
const MAX_LEAD: usize = 32;
const DEFAULT_PACE: f64 = 4.0;

/// Registry entry.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "st-arm-pfc",
    title: "ST-ARM-PFC",
    summary: "ARM-PFC that tunes itself to estimates of capacity, load and round-trip time",
    reference: "Bigdeli, Haeri 2007 within the structure of Zhang, Hollot, Towsley, Misra 2003",
    params: joined![
        &[
            Param {
                name: "d",
                kind: Kind::Number { unit: Unit::One, min: Bound::Inclusive(1.0), max: Bound::Inclusive(16.0) },
                default: DefaultValue::number(arm_pfc::DEFAULT_DELAY as f64),
                doc: "samples per initial round trip: the period is Ts = R / d",
            },
            Param {
                name: "lead",
                kind: Kind::Number {
                    unit: Unit::One,
                    min: Bound::Inclusive(1.0),
                    max: Bound::Inclusive(MAX_LEAD as f64)
                },
                default: DefaultValue::number(DEFAULT_LEAD as f64),
                doc: "coincidence point, samples beyond the delay",
            },
            Param::positive(
                "pace",
                Unit::One,
                DefaultValue::number(DEFAULT_PACE),
                "time constant of the reference trajectory, round trips",
            ),
            Param::fraction(
                "p0",
                DefaultValue::Designed("2 L^2 of the initial load, at most 1"),
                "probability at the operating point",
            ),
            Param::TARGET,
            Target::DELAY,
        ],
        Tuning::PARAMS,
        &[AntiWindup::PARAM, Param::ECN],
    ],
};

/// ARM-PFC with model, delay and reference trajectory that follow an estimate.
#[derive(Clone, Debug)]
pub struct TunableArmPfc {
    law: ArmPfc,
    target: Target,
    /// Samples per initial round trip.
    d: usize,
    lead: usize,
    pace: f64,
    p0: f64,
}

impl TunableArmPfc {
    /// The law tuned to `network`, with `d` samples per round trip, the coincidence point `lead` samples beyond the
    /// delay, and a reference trajectory with time constant `pace` round trips.
    pub fn new(
        network: &NetworkEstimate,
        target: Target,
        d: usize,
        lead: usize,
        pace: f64,
        p0: Option<Probability>,
    ) -> Result<Self, ParamError> {
        let NetworkEstimate { capacity_pps, load, rtt_s } = *network;
        Param::check_positive("load", load, Unit::One)?;
        Param::check_positive("pace", pace, Unit::One)?;
        if !(1..=MAX_LEAD).contains(&lead) {
            return Err(ParamError::relation("lead", lead as f64, "must be a whole number of 1 to 32 samples"));
        }
        let plant = TcpPlant::new(load * rtt_s * capacity_pps, capacity_pps, rtt_s)?;
        let mut params = ArmPfcParams {
            d,
            h: d + lead,
            psi: libm::exp(-1.0 / (pace * d as f64)),
            ..ArmPfcParams::new(plant, target.packets(capacity_pps))
        };
        params.p0 = p0.unwrap_or(params.p0);
        let mut law = ArmPfc::new(params)?;
        law.reserve(MAX_DELAY);
        Ok(TunableArmPfc { law, target, d, lead, pace, p0: params.p0.get() })
    }

    /// The inner law.
    pub const fn law(&self) -> &ArmPfc {
        &self.law
    }
}

impl SampledAqm<SelfTuned<TunableArmPfc>> {
    pub(crate) fn from_settings(settings: &Settings<'_>, network: &Network) -> Result<Self, ParamError> {
        let tuning = Tuning::from_settings(settings, network)?;
        let law = TunableArmPfc::new(
            &tuning.initial(),
            tuning.target,
            settings.whole("d")?.unwrap_or(arm_pfc::DEFAULT_DELAY),
            settings.whole("lead")?.unwrap_or(DEFAULT_LEAD),
            settings.number("pace").unwrap_or(DEFAULT_PACE),
            settings.number("p0").map(Probability::clamp),
        )?;
        Ok(SampledAqm::with_settings(SelfTuned::from_tuning(&tuning, law)?, settings, network))
    }
}

impl SampledLaw for TunableArmPfc {
    fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
        self.law.periods()
    }

    fn step(&mut self, which: usize, observation: &Observation) -> Probability {
        self.law.step(which, observation)
    }

    fn integral(&self) -> Option<f64> {
        self.law.integral()
    }

    fn set_integral(&mut self, p: f64) -> Probability {
        self.law.set_integral(p)
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.law.observe(visit);
        visit("delay_samples", self.law.model().delay() as f64);
        visit("predictor_gain", self.law.predictor().gain());
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        visit("d", Value::Number(self.d as f64));
        visit("lead", Value::Number(self.lead as f64));
        visit("pace", Value::Number(self.pace));
        visit("p0", Value::Number(self.p0));
        self.target.settings(visit);
    }
}

impl Tunable for TunableArmPfc {
    fn tune(&mut self, network: &NetworkEstimate) {
        let period = self.law.model().period_s();
        let d = libm::round(network.rtt_s / period).clamp(1.0, MAX_DELAY as f64) as usize;
        let psi = libm::exp(-period / (self.pace * network.rtt_s));
        self.law.retune(sampled_model(network, period, d), self.target.packets(network.capacity_pps), psi);
    }

    fn target(&self) -> Target {
        self.target
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NETWORK: NetworkEstimate = NetworkEstimate { capacity_pps: 1250.0, load: 1.0 / 3.5, rtt_s: 0.28 };

    fn law() -> TunableArmPfc {
        TunableArmPfc::new(&NETWORK, Target::Packets(100.0), 5, 4, 4.0, None).unwrap()
    }

    #[test]
    fn a_longer_round_trip_covers_more_samples() {
        let mut law = law();
        // p0 = 2 / 3.5^2; Ts = 0.056; R = 0.56 is ten samples, h = 14, Psi = exp(-0.056 / 2.24) = exp(-0.025).
        assert!((law.p0 - 8.0 / 49.0).abs() < 1e-12);
        law.tune(&NetworkEstimate { rtt_s: 0.56, ..NETWORK });
        assert_eq!((law.law.model().delay(), law.law.predictor().horizon()), (10, 14));
        assert_eq!(law.law.predictor().c().len(), 10);
        assert!((law.law.psi() - libm::exp(-0.025)).abs() < 1e-12);
        assert_eq!(law.periods()[0], Some(Span::from_millis(56)));
        // The delay is bounded by the reserved memory.
        law.tune(&NetworkEstimate { rtt_s: 100.0, ..NETWORK });
        assert_eq!(law.law.model().delay(), MAX_DELAY);
    }

    #[test]
    fn a_retuned_law_equals_the_law_designed_for_that_network() {
        let other = NetworkEstimate { capacity_pps: 700.0, load: 0.2, rtt_s: 0.28 };
        let mut tuned = law();
        tuned.tune(&other);
        let designed =
            TunableArmPfc::new(&other, Target::Packets(100.0), 5, 4, 4.0, Some(Probability::clamp(tuned.p0))).unwrap();
        assert!((tuned.law.predictor().gain() - designed.law.predictor().gain()).abs() < 1e-9);
        let queue = Observation { queue_pkts: 130.0, ..Observation::default() };
        let (mut a, mut b) = (tuned, designed);
        for _ in 0..20 {
            assert!((a.step(0, &queue).get() - b.step(0, &queue).get()).abs() < 1e-9);
        }
    }

    #[test]
    fn errors_name_the_invalid_parameter() {
        let refused = |d, lead, pace| {
            TunableArmPfc::new(&NETWORK, Target::Packets(100.0), d, lead, pace, None).unwrap_err().param
        };
        assert_eq!(refused(0, 4, 4.0), "d");
        assert_eq!(refused(5, 0, 4.0), "lead");
        assert_eq!(refused(5, 4, 0.0), "pace");
    }
}
