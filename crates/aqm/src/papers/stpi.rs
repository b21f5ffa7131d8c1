//! STPI: self-tuning PI controller (Zhang, Hollot, Towsley, Misra 2003).
//!
//! At each sample the estimators of the self-tuning structure are updated, the gains follow, and the PI law steps. In
//! terms of the estimates C, L = N / (R C) and R, the plant's gain is k_t = R C / (4 L^2) and TCP's window pole 2 L /
//! R:
//!
//! ```text
//! k_p = 2 beta sqrt(1 + beta^2) L / (R C)    k_i = (2 L / R) k_p     zero on the window pole, crossover at beta / R
//! a, b = k_p +- k_i T / 2                    p(k) = clamp(p(k-1) + a (q(k) - target) - b (q(k-1) - target), 0, 1)
//! ```
//!
//! Deviations:
//! - The paper cites a report for the tuning rule that is no longer available; the rule above is derived from the plant
//!   model. Its structure is that of public implementations that cite the paper.
//! - R = rtt + target / C^; the paper assumes a constant R (see the self-tuning structure). `rtt_with_queue` selects.

use aqumen_units::{Probability, Span};

use crate::params::joined;
use crate::{
    Algorithm, AntiWindup, Bound, DefaultValue, Kind, MAX_LOOPS, Network, NetworkEstimate, Observation, Param,
    ParamError, Pi, PiController, PiGains, SampledAqm, SampledLaw, SelfTuned, Settings, Target, Tunable, Unit, Value,
    design::self_tuning::Tuning,
};

const DEFAULT_HZ: f64 = 160.0;
const DEFAULT_BETA: f64 = 0.5;

/// Registry entry.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "stpi",
    title: "STPI",
    summary: "self-tuning PI control of the queue length, by estimates of capacity and load",
    reference: "Zhang, Hollot, Towsley, Misra: A self-tuning structure for adaptation in TCP/AQM networks, 2003",
    params: joined![
        &[
            Param {
                name: "beta",
                kind: Kind::Number { unit: Unit::One, min: Bound::Exclusive(0.0), max: Bound::Inclusive(0.6) },
                default: DefaultValue::number(DEFAULT_BETA),
                doc: "crossover at beta / R; the phase margin is 35 degrees for 0.5, 56 for 0.3",
            },
            Param {
                name: "frequency",
                kind: Kind::Number { unit: Unit::Hertz, min: Bound::Inclusive(1e-3), max: Bound::Inclusive(1e6) },
                default: DefaultValue::number(DEFAULT_HZ),
                doc: "samples per second, f_s",
            },
            Param::TARGET,
            Target::DELAY,
        ],
        Tuning::PARAMS,
        &[AntiWindup::PARAM, Param::ECN],
    ],
};

/// PI law with gains that follow an estimate.
#[derive(Clone, Copy, Debug)]
pub struct TunablePi {
    pi: Pi,
    beta: f64,
    frequency: f64,
    target: Target,
}

impl TunablePi {
    /// The law tuned to `network`, sampled `frequency` times per second, with initial probability `p`.
    pub fn new(
        beta: f64,
        frequency: f64,
        target: Target,
        network: &NetworkEstimate,
        p: Probability,
    ) -> Result<Self, ParamError> {
        Param::check_positive("beta", beta, Unit::One)?;
        Param::check_positive("frequency", frequency, Unit::Hertz)?;
        let gains = gains(beta, frequency, network).map_err(|_| {
            ParamError::relation("frequency", frequency, "is too low for this network: the designed b is not above 0")
        })?;
        let pi = Pi::new(gains, frequency, target.packets(network.capacity_pps)).starting_at(p);
        Ok(TunablePi { pi, beta, frequency, target })
    }

    /// Current gains.
    pub const fn gains(&self) -> PiGains {
        self.pi.gains()
    }
}

/// Continuous-time controller by the rule above.
pub fn design(beta: f64, network: &NetworkEstimate) -> PiController {
    let NetworkEstimate { capacity_pps, load, rtt_s } = *network;
    let zero = 2.0 * load / rtt_s;
    let proportional = 2.0 * beta * libm::sqrt(1.0 + beta * beta) * load / (rtt_s * capacity_pps);
    PiController { gain: zero * proportional, zero }
}

fn gains(beta: f64, frequency: f64, network: &NetworkEstimate) -> Result<PiGains, ParamError> {
    design(beta, network).sampled(frequency)
}

impl SampledAqm<SelfTuned<TunablePi>> {
    pub(crate) fn from_settings(settings: &Settings<'_>, network: &Network) -> Result<Self, ParamError> {
        let tuning = Tuning::from_settings(settings, network)?;
        let law = TunablePi::new(
            settings.number("beta").unwrap_or(DEFAULT_BETA),
            settings.number("frequency").unwrap_or(DEFAULT_HZ),
            tuning.target,
            &tuning.initial(),
            Probability::ZERO,
        )?;
        Ok(SampledAqm::with_settings(SelfTuned::from_tuning(&tuning, law)?, settings, network))
    }
}

impl SampledLaw for TunablePi {
    fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
        self.pi.periods()
    }

    fn step(&mut self, which: usize, observation: &Observation) -> Probability {
        self.pi.step(which, observation)
    }

    fn initial(&self) -> Probability {
        self.pi.initial()
    }

    fn integral(&self) -> Option<f64> {
        self.pi.integral()
    }

    fn set_integral(&mut self, p: f64) -> Probability {
        self.pi.set_integral(p)
    }

    fn take_over(&mut self, old: &Self) {
        self.pi.take_over(&old.pi);
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("a", self.gains().a());
        visit("b", self.gains().b());
        visit("target", self.pi.target_pkts());
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        visit("beta", Value::Number(self.beta));
        visit("frequency", Value::Number(self.frequency));
        self.target.settings(visit);
    }
}

impl Tunable for TunablePi {
    fn tune(&mut self, network: &NetworkEstimate) {
        // If the window's time constant is only a few samples, b would not be positive; the old gains stay.
        if let Ok(gains) = gains(self.beta, self.frequency, network) {
            self.pi.retune(gains, self.target.packets(network.capacity_pps));
        }
    }

    fn target(&self) -> Target {
        self.target
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gains_follow_the_estimates_of_load_and_capacity() {
        // L = 0.1, R = 0.2, C = 1000, beta = 0.5: k_p = 2 * 0.5 * 1.118034 * 0.1 / 200 = 5.59017e-4; 2 L / R = 1;
        // k_i = k_p; at 100 Hz a, b = k_p (1 +- 0.005).
        let network = NetworkEstimate { capacity_pps: 1000.0, load: 0.1, rtt_s: 0.2 };
        let target = Target::Delay(0.05);
        let mut law = TunablePi::new(0.5, 100.0, target, &network, Probability::ZERO).unwrap();
        assert!((law.gains().a() / 5.59017e-4 - 1.005).abs() < 1e-6);
        assert!((law.gains().b() / 5.59017e-4 - 0.995).abs() < 1e-6);
        // Twice the load: twice k_p, and the zero at 2 rad/s. Half the capacity doubles k_p again; a target of 50 ms is
        // 25 packets there.
        law.tune(&NetworkEstimate { capacity_pps: 500.0, load: 0.2, rtt_s: 0.2 });
        assert!((law.gains().a() / 5.59017e-4 - 4.0 * 1.01).abs() < 1e-5);
        assert_eq!(law.pi.target_pkts(), 25.0);
    }

    #[test]
    fn new_gains_do_not_change_p_if_the_queue_is_at_its_target() {
        let network = NetworkEstimate { capacity_pps: 1000.0, load: 0.1, rtt_s: 0.2 };
        let p = Probability::new(0.3).unwrap();
        let mut law = TunablePi::new(0.5, 100.0, Target::Packets(50.0), &network, p).unwrap();
        let at_target = Observation { queue_pkts: 50.0, ..Observation::default() };
        let settled = law.step(0, &at_target);
        law.tune(&NetworkEstimate { load: 0.7, ..network });
        assert_eq!(law.step(0, &at_target), settled);
    }

    #[test]
    fn an_estimate_without_valid_gains_keeps_the_old_ones() {
        let network = NetworkEstimate { capacity_pps: 1000.0, load: 0.1, rtt_s: 0.2 };
        let mut law = TunablePi::new(0.5, 10.0, Target::Packets(50.0), &network, Probability::ZERO).unwrap();
        let before = law.gains();
        // L T / R = 0.7 * 0.1 / 0.05 = 1.4: b would be negative.
        law.tune(&NetworkEstimate { capacity_pps: 1000.0, load: 0.7, rtt_s: 0.05 });
        assert_eq!(law.gains(), before);
        assert_eq!(
            TunablePi::new(0.5, 0.1, Target::Packets(50.0), &network, Probability::ZERO).unwrap_err().param,
            "frequency"
        );
    }

    #[test]
    fn the_initial_probability_is_the_given_one() {
        let network = NetworkEstimate { capacity_pps: 1000.0, load: 0.1, rtt_s: 0.2 };
        let p = Probability::new(0.3).unwrap();
        let law = TunablePi::new(0.5, 100.0, Target::Packets(50.0), &network, p).unwrap();
        assert_eq!((law.initial(), law.periods()[0]), (p, Some(Span::from_millis(10))));
    }
}
