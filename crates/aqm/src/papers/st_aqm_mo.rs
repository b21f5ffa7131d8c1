//! ST-AQM-MO: AQM-MO in the self-tuning structure, an extension of both papers.
//!
//! Capacity and load are estimated at each inner step; the gains of both loops follow with R0 = rtt + target / C^ and
//! N = L^ R0 C^. AQM-MO's `adapt_n` estimates the load only.
//!
//! Deviations: none, there is no other source.

use aqumen_units::{Probability, Span};

use crate::params::joined;
use crate::{
    Algorithm, AntiWindup, MAX_LOOPS, Network, NetworkEstimate, Observation, Param, ParamError, QueueOperatingPoint,
    RoundTrip, SampledAqm, SampledLaw, SelfTuned, Settings, Target, TcpPlant, Theory, Transfer, Tunable, Value,
    design::self_tuning::Tuning,
    papers::aqm_mo::{self, AqmMo, AqmMoParams},
};

/// Registry entry.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "st-aqm-mo",
    title: "ST-AQM-MO",
    summary: "AQM-MO that tunes itself to estimates of capacity, load and round-trip time",
    reference: "Radwa 2015 within the structure of Zhang, Hollot, Towsley, Misra 2003",
    params: joined![&[Param::TARGET, Target::DELAY], &aqm_mo::PARAMS, Tuning::PARAMS, &[AntiWindup::PARAM, Param::ECN]],
};

/// AQM-MO with gains that follow an estimate.
#[derive(Clone, Debug)]
pub struct TunableAqmMo {
    law: AqmMo,
    params: AqmMoParams,
}

impl TunableAqmMo {
    /// The law tuned to `network`, with base RTT `base_rtt_s`.
    pub fn new(
        params: AqmMoParams,
        network: &NetworkEstimate,
        base_rtt_s: f64,
        target: Target,
    ) -> Result<Self, ParamError> {
        let params = AqmMoParams { adapt_n: false, ..params };
        Ok(TunableAqmMo { law: AqmMo::new(params, estimated_plant(network)?, base_rtt_s, target)?, params })
    }
}

/// Plant of an estimated network, with N = L R C flows.
fn estimated_plant(network: &NetworkEstimate) -> Result<TcpPlant, ParamError> {
    let NetworkEstimate { capacity_pps, load, rtt_s } = *network;
    TcpPlant::new(load * rtt_s * capacity_pps, capacity_pps, rtt_s)
}

impl SampledAqm<SelfTuned<TunableAqmMo>> {
    pub(crate) fn from_settings(settings: &Settings<'_>, network: &Network) -> Result<Self, ParamError> {
        let tuning = Tuning::from_settings(settings, network)?;
        let initial = tuning.initial();
        let (RoundTrip::Fixed(rtt) | RoundTrip::Effective(rtt)) = tuning.round_trip;
        let params = AqmMoParams::from_settings(settings, initial.rtt_s);
        let law = TunableAqmMo::new(params, &initial, rtt, tuning.target)?;
        Ok(SampledAqm::with_settings(SelfTuned::from_tuning(&tuning, law)?, settings, network))
    }
}

impl SampledLaw for TunableAqmMo {
    fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
        self.law.periods()
    }

    fn step(&mut self, which: usize, observation: &Observation) -> Probability {
        self.law.step(which, observation)
    }

    fn initial(&self) -> Probability {
        self.law.initial()
    }

    fn integral(&self) -> Option<f64> {
        self.law.integral()
    }

    fn set_integral(&mut self, p: f64) -> Probability {
        self.law.set_integral(p)
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.law.observe(visit);
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        self.law.target().settings(visit);
        self.params.settings(visit);
    }

    fn theory(&self) -> &dyn Theory {
        self
    }
}

impl Tunable for TunableAqmMo {
    fn tune(&mut self, network: &NetworkEstimate) {
        if let Ok(plant) = estimated_plant(network) {
            self.law.retune(plant);
        }
    }

    fn target(&self) -> Target {
        self.law.target()
    }
}

impl Theory for TunableAqmMo {
    /// AQM-MO designed for the actual network, the equilibrium of the estimates.
    fn linear(&self, at: &QueueOperatingPoint) -> Option<Transfer> {
        let plant =
            TcpPlant::new(at.flows, at.capacity_pps, at.base_rtt_s + self.target().seconds(at.capacity_pps)).ok()?;
        AqmMo::new(self.params, plant, at.base_rtt_s, self.target()).ok()?.linear(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tuned_gains_equal_those_designed_for_the_estimate() {
        // L = 1/15, R = 0.12, C = 1250: N = 10. Half the capacity and twice the load: N = 10 again, W0 = 7.5.
        let from = NetworkEstimate { capacity_pps: 1250.0, load: 1.0 / 15.0, rtt_s: 0.12 };
        let to = NetworkEstimate { capacity_pps: 625.0, load: 2.0 / 15.0, rtt_s: 0.12 };
        let params = AqmMoParams::new(0.12);
        let tuned_to = |network| TunableAqmMo::new(params, network, 0.1, Target::Packets(25.0)).unwrap();
        let mut tuned = tuned_to(&from);
        tuned.tune(&to);
        assert_eq!(tuned.law.gains(), tuned_to(&to).law.gains());
        assert_ne!(tuned.law.gains(), tuned_to(&from).law.gains());
    }
}
