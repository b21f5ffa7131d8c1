//! STRED: self-tuning RED (Zhang, Hollot, Towsley, Misra 2003).
//!
//! Thresholds, slope and averaging follow estimates of capacity and load at each sample. With T_d the target delay and
//! R the round-trip time:
//!
//! ```text
//! min_th = max(T_d C^ / 2, 5)      max_th = 3 T_d C^ / 2      p_max = min(4 L^2, 1)
//! G = p_max R / (4 L^2 T_d),  w_g = b_r min(2 L / R, 1 / R),  K_max = 10 / R
//! K = w_g / sqrt(G^2 - 1) if G^2 > 1 + (w_g / K_max)^2, else K_max
//! avg += (1 - exp(-K T)) (q - avg);   p = RED's gentle curve of avg
//! ```
//!
//! The equilibrium is the middle of the range: avg = T_d C^, p = p_max / 2 = 2 L^2.
//!
//! A target delay far below the round trip makes G large and the average slow: 105 s in the paper's network. The
//! paper's estimate of the load (10 s) is then faster than the average. With the average below min_th, p is 0, L^
//! falls, p_max and K fall with it, and RED never signals again. Therefore L^ is no faster than the average
//! (`patient`).
//!
//! Deviations:
//! - L^ is constant while the average is below min_th, where p = 0 carries no information on the load. Above, its time
//!   constant is the longer of tau_l and 1 / K. `patient = false`: tau_l always, as in the paper.
//! - The paper cites a report for its guidelines that is no longer available; the rules above are derived from the
//!   plant model. b_r = 0.5, since Hollot's 0.1 makes the average slower than the load's estimate, and the two
//!   oscillate.
//! - The average is updated once per sample, by exact discretisation, not once per packet; signals are not spread.

use aqumen_units::{Probability, Span};

use crate::params::joined;
use crate::{
    Algorithm, AntiWindup, Bound, DefaultValue, Kind, MAX_LOOPS, Network, NetworkEstimate, Observation, Param,
    ParamError, RedCurve, SampledAqm, SampledLaw, SelfTuned, Settings, Target, Tunable, Unit, Value,
    design::self_tuning::Tuning,
};

const DEFAULT_HZ: f64 = 20.0;
const DEFAULT_BR: f64 = 0.5;
/// Minimum of min_th, packets.
const MIN_TH_FLOOR: f64 = 5.0;
/// K_max = 10 / R: the time constant of the average is at least a tenth of a round trip.
const K_MAX_ROUND_TRIPS: f64 = 10.0;

/// Registry entry.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "stred",
    title: "STRED",
    summary: "self-tuning RED: thresholds, slope and averaging follow estimates of capacity and load",
    reference: "Zhang, Hollot, Towsley, Misra: A self-tuning structure for adaptation in TCP/AQM networks, 2003",
    params: joined![
        &[
            Param {
                name: "b_r",
                kind: Kind::Number { unit: Unit::One, min: Bound::Exclusive(0.0), max: Bound::Inclusive(2.0) },
                default: DefaultValue::number(DEFAULT_BR),
                doc: "crossover w_g = b_r min(2 L / R, 1 / R)",
            },
            Param {
                name: "frequency",
                kind: Kind::Number { unit: Unit::Hertz, min: Bound::Inclusive(1e-3), max: Bound::Inclusive(1e6) },
                default: DefaultValue::number(DEFAULT_HZ),
                doc: "samples per second",
            },
            Param {
                doc: "queue at the middle of RED's range for the initial capacity; its queueing delay stays when C^ changes",
                ..Param::TARGET
            },
            Param { doc: "T_d: queueing delay at the middle of RED's range; instead of target", ..Target::DELAY },
            Param::flag(
                "patient",
                true,
                "the load's estimate is constant below min_th and no faster than K above; false: tau_l always, as in the paper",
            ),
        ],
        Tuning::PARAMS,
        &[AntiWindup::PARAM, Param::ECN],
    ],
};

/// RED as a sampled law with parameters that follow an estimate.
#[derive(Clone, Copy, Debug)]
pub struct TunableRed {
    b_r: f64,
    frequency: f64,
    delay_s: f64,
    curve: RedCurve,
    /// Pole of the average, K, rad/s.
    pole: f64,
    average: f64,
    range: [f64; 3],
    /// Whether the estimate of the load is limited to the speed of the average.
    patient: bool,
}

impl TunableRed {
    /// The law tuned to `network` with target delay `delay_s`, sampled `frequency` times per second, with initial
    /// average `average` (packets). The estimate of the load is not limited.
    pub fn new(
        b_r: f64,
        frequency: f64,
        delay_s: f64,
        network: &NetworkEstimate,
        average: f64,
    ) -> Result<Self, ParamError> {
        Param::check_positive("b_r", b_r, Unit::One)?;
        Param::check_positive("frequency", frequency, Unit::Hertz)?;
        Param::check_positive("target_delay", delay_s, Unit::Seconds)?;
        let curve = RedCurve::new(0.0, 1.0, 1.0, true)?;
        let mut law =
            TunableRed { b_r, frequency, delay_s, curve, pole: 0.0, average, range: [0.0; 3], patient: false };
        law.tune(network);
        if law.pole > 0.0 {
            Ok(law)
        } else {
            Err(ParamError::relation("target_delay", delay_s, "gives no finite pole of the average for this network"))
        }
    }
}

impl SampledAqm<SelfTuned<TunableRed>> {
    pub(crate) fn from_settings(settings: &Settings<'_>, network: &Network) -> Result<Self, ParamError> {
        let tuning = Tuning::from_settings(settings, network)?;
        // A target in packets is converted to a delay at the initial capacity.
        let delay_s = tuning.target.seconds(tuning.estimators.capacity_pps);
        let tuning = Tuning { target: Target::Delay(delay_s), ..tuning };
        let law = TunableRed::new(
            settings.number("b_r").unwrap_or(DEFAULT_BR),
            settings.number("frequency").unwrap_or(DEFAULT_HZ),
            delay_s,
            &tuning.initial(),
            0.0,
        )?;
        let law = TunableRed { patient: settings.flag("patient").unwrap_or(true), ..law };
        Ok(SampledAqm::with_settings(SelfTuned::from_tuning(&tuning, law)?, settings, network))
    }
}

impl SampledLaw for TunableRed {
    fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
        [Some(Span::from_secs_f64(1.0 / self.frequency)), None]
    }

    fn step(&mut self, _which: usize, observation: &Observation) -> Probability {
        self.average -= libm::expm1(-self.pole / self.frequency) * (observation.queue_pkts - self.average);
        Probability::clamp(self.curve.probability(self.average))
    }

    fn integral(&self) -> Option<f64> {
        Some(self.curve.probability(self.average))
    }

    fn set_integral(&mut self, p: f64) -> Probability {
        self.average = self.curve.average_at(p);
        Probability::clamp(self.curve.probability(self.average))
    }

    fn take_over(&mut self, old: &Self) {
        (self.average, self.range) = (old.average, old.range);
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let [min_th, max_th, max_p] = self.range;
        visit("average_queue", self.average);
        visit("min_th", min_th);
        visit("max_th", max_th);
        visit("max_p", max_p);
        visit("average_pole", self.pole);
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        visit("b_r", Value::Number(self.b_r));
        visit("frequency", Value::Number(self.frequency));
        visit("target_delay", Value::Number(self.delay_s));
        visit("patient", Value::Flag(self.patient));
    }
}

impl Tunable for TunableRed {
    fn tune(&mut self, network: &NetworkEstimate) {
        let NetworkEstimate { capacity_pps, load, rtt_s } = *network;
        let queue = self.delay_s * capacity_pps;
        let min_th = (0.5 * queue).max(MIN_TH_FLOOR);
        // On a slow link the floor of min_th may exceed max_th.
        let max_th = (1.5 * queue).max(min_th);
        let max_p = (4.0 * load * load).min(1.0);
        let w_g = self.b_r * (2.0 * load).min(1.0) / rtt_s;
        let (gain, k_max) = (max_p / (4.0 * load * load) * rtt_s / self.delay_s, K_MAX_ROUND_TRIPS / rtt_s);
        let ratio = w_g / k_max;
        let pole = if gain * gain > 1.0 + ratio * ratio { w_g / libm::sqrt(gain * gain - 1.0) } else { k_max };
        let Ok(curve) = RedCurve::new(min_th, max_th, max_p, true) else { return };
        if pole > 0.0 && pole.is_finite() {
            (self.curve, self.pole) = (curve, pole);
            self.range = [min_th, max_th, max_p];
        }
    }

    fn target(&self) -> Target {
        Target::Delay(self.delay_s)
    }

    fn load_pole(&self) -> f64 {
        match self.patient {
            false => f64::INFINITY,
            true if self.average <= self.range[0] => 0.0,
            true => self.pole,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NETWORK: NetworkEstimate = NetworkEstimate { capacity_pps: 1000.0, load: 0.1, rtt_s: 0.25 };

    #[test]
    fn the_equilibrium_is_the_middle_of_the_range_at_half_of_max_p() {
        // T_d C = 50 packets: 25 to 75. p_max = 4 * 0.01; at 50 packets p = 0.02 = 2 L^2.
        let mut law = TunableRed::new(0.5, 20.0, 0.05, &NETWORK, 50.0).unwrap();
        assert_eq!(law.range, [25.0, 75.0, 0.040_000_000_000_000_01]);
        let p = law.step(0, &Observation { queue_pkts: 50.0, ..Observation::default() });
        assert!((p.get() - 0.02).abs() < 1e-15);
        // G = 5; w_g = 0.5 * 0.2 / 0.25 = 0.4; K = 0.4 / sqrt(24) = 0.081650.
        assert!((law.pole - 0.081_650).abs() < 1e-6);
    }

    #[test]
    fn a_target_delay_above_the_round_trip_gives_the_fastest_average() {
        // G = 0.25 / 0.5 < 1: K = K_max = 10 / 0.25.
        let law = TunableRed::new(0.5, 20.0, 0.5, &NETWORK, 0.0).unwrap();
        assert_eq!(law.pole, 40.0);
    }

    #[test]
    fn the_estimate_of_the_load_is_no_faster_than_the_average() {
        let law = TunableRed::new(0.5, 20.0, 0.05, &NETWORK, 50.0).unwrap();
        assert_eq!(law.load_pole(), f64::INFINITY);
        // K = 0.081650: 12.2 s, longer than the paper's 10 s. min_th = 25.
        let patient = TunableRed { patient: true, ..law };
        assert_eq!(patient.load_pole(), law.pole);
        assert_eq!(TunableRed { average: 25.0, ..patient }.load_pole(), 0.0);
    }

    #[test]
    fn on_a_slow_link_min_th_has_a_floor() {
        // T_d C = 0.05 * 40 = 2 packets: min_th = max(1, 5), max_th = max(3, 5).
        let mut law = TunableRed::new(0.5, 20.0, 0.05, &NETWORK, 0.0).unwrap();
        law.tune(&NetworkEstimate { capacity_pps: 40.0, ..NETWORK });
        assert_eq!(law.range[..2], [5.0, 5.0]);
    }

    #[test]
    fn errors_name_the_invalid_parameter() {
        let refused = |b_r, hz, delay| TunableRed::new(b_r, hz, delay, &NETWORK, 0.0).unwrap_err().param;
        assert_eq!(refused(0.0, 20.0, 0.05), "b_r");
        assert_eq!(refused(0.5, 0.0, 0.05), "frequency");
        assert_eq!(refused(0.5, 20.0, 0.0), "target_delay");
    }
}
