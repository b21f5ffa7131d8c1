//! Adaptive ARM-PFC: the predictive controller of `arm-pfc` with a model that follows the network.
//!
//! The paper's last sentence proposes an indirect adaptive method ("it is best to implement it in an indirect method"),
//! which estimates the model's coefficients by recursive least squares. Two methods:
//!
//! ```text
//! physical (AD3)    departures, p ──> C^, L^ ──> k_t = R C^ / (4 L^2), tau1 = R, tau2 = R / (2 L^) ──> variant B
//! identified (AD2)  queue, p ──> recursive least squares ──> beta1, beta2, H_1 .. H_h, eta ──> variant C
//! ```
//!
//! AD3, the default, estimates the two physical quantities that change and keeps the structure of the model. It holds
//! the target for 30 to 200 flows; AD2 fails there if the queue is noisy or the delay differs from the assumed one. AD2
//! follows the paper's sentence, with these safeguards:
//!
//! - differences over h samples eliminate the offset: y(k) - y(k-h) = phi' theta;
//! - no update before 3h + d + 4 samples, or for errors within the dead zone; P is bounded;
//! - the controller uses the coefficients only while their gain is within 0.2 to 5 times the designed one, and
//!   otherwise keeps the last valid ones.
//!
//! Deviations: the paper gives no adaptive algorithm; both methods are original designs. h = d + 4 for AD3 (least error
//! over sixteen networks), d + 2 for AD2.

use alloc::boxed::Box;

use aqumen_units::{Probability, Span};

use crate::params::joined;
use crate::{
    Algorithm, AntiWindup, ArmPfc, ArmPfcParams, Bound, DefaultValue, EstimatorParams, Estimators, InputForm, Kind,
    MAX_LOOPS, Network, NetworkEstimate, Observation, Param, ParamError, Rls, RlsParams, RoundTrip, SampledAqm,
    SampledLaw, SelfTuned, Settings, Target, TcpPlant, Tunable, Unit, Value, Variant,
    papers::arm_pfc,
    papers::arm_pfc::design::{MAX_DELAY, MAX_HORIZON, Model, Predictor},
};

/// Scale of u in the regression, which makes its columns as large as those of the queue.
const INPUT_SCALE: f64 = 100.0;
/// Accepted gains, relative to the designed one.
const GAIN_RANGE: core::ops::RangeInclusive<f64> = 0.2..=5.0;
const AD3_LEAD: usize = 4;
const AD2_LEAD: usize = 2;
const DEFAULT_RLS: RlsParams = RlsParams { forgetting: 0.998, covariance: 1e-3, dead_zone: 2.0 };

/// Registry entry.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "arm-pfc-adaptive",
    title: "Adaptive ARM-PFC",
    summary: "ARM-PFC whose model follows estimates of capacity and load, or is identified online",
    reference: "Bigdeli, Haeri: ARM-PFC, an optimized AQM congestion controller in TCP/IP networks, 2007",
    params: joined![
        &[
            Param {
                name: "method",
                kind: Kind::Choice(&["AD3", "AD2"]),
                default: DefaultValue::Value(Value::Choice("AD3")),
                doc: "the model follows estimates of capacity and load (AD3), or is identified by recursive least squares (AD2)",
            },
            Param { doc: "assumed capacity and initial estimate, C", ..EstimatorParams::CAPACITY },
            Param::positive(
                "flows",
                Unit::One,
                DefaultValue::Designed("the network's flows"),
                "assumed number of flows, N",
            ),
            Param::positive(
                "r0",
                Unit::Seconds,
                DefaultValue::Designed("base RTT + target / capacity"),
                "round-trip time at the target, R0",
            ),
            Param::TARGET,
            Target::DELAY,
            Param {
                name: "d",
                kind: Kind::Number {
                    unit: Unit::One,
                    min: Bound::Inclusive(1.0),
                    max: Bound::Inclusive(MAX_DELAY as f64)
                },
                default: DefaultValue::number(arm_pfc::DEFAULT_DELAY as f64),
                doc: "samples per round trip: the period is Ts = R0 / d",
            },
            Param {
                name: "h",
                kind: Kind::Number {
                    unit: Unit::One,
                    min: Bound::Inclusive(2.0),
                    max: Bound::Inclusive(MAX_HORIZON as f64),
                },
                default: DefaultValue::Designed("d + 4 with AD3, d + 2 with AD2"),
                doc: "coincidence point, samples ahead; above d",
            },
            Param {
                name: "psi",
                kind: Kind::Number { unit: Unit::One, min: Bound::Inclusive(0.0), max: Bound::Exclusive(1.0) },
                default: DefaultValue::Designed("exp(-1 / (4 d)): the reference decays in 4 R0"),
                doc: "decay of the reference trajectory per sample, Psi",
            },
            Param::fraction(
                "p0",
                DefaultValue::Designed("2 (N / (R0 C))^2, at most 1"),
                "probability at the operating point",
            ),
        ],
        &EstimatorParams::PARAMS,
        &[
            Param {
                name: "forgetting",
                kind: Kind::Number { unit: Unit::One, min: Bound::Inclusive(0.5), max: Bound::Inclusive(1.0) },
                default: DefaultValue::number(DEFAULT_RLS.forgetting),
                doc: "AD2: weight of the past per sample, lambda",
            },
            Param {
                name: "covariance",
                kind: Kind::Number { unit: Unit::One, min: Bound::Exclusive(0.0), max: Bound::Inclusive(1e9) },
                default: DefaultValue::number(DEFAULT_RLS.covariance),
                doc: "AD2: initial covariance, P0",
            },
            Param {
                name: "dead_zone",
                kind: Kind::Number { unit: Unit::Packets, min: Bound::Inclusive(0.0), max: Bound::Open },
                default: DefaultValue::number(DEFAULT_RLS.dead_zone),
                doc: "AD2: smaller prediction errors cause no update",
            },
            AntiWindup::PARAM,
            Param::ECN,
        ],
    ],
};

/// The law.
#[derive(Clone, Debug)]
pub struct ArmPfcAdaptive {
    capacity_bps: f64,
    target: Target,
    design: ArmPfcParams,
    estimators: EstimatorParams,
    rls: RlsParams,
    method: Method,
}

#[derive(Clone, Debug)]
enum Method {
    Physical(SelfTuned<ArmPfc>),
    Identified(IdentifiedArmPfc),
}

/// AD3: variant B with the model of the estimated capacity and load. Period, delay and p0 stay as designed.
pub fn physical(design: ArmPfcParams, estimators: EstimatorParams) -> Result<SelfTuned<ArmPfc>, ParamError> {
    let law = ArmPfc::new(ArmPfcParams { variant: Variant::B, ..design })?;
    let estimators = Estimators::new(estimators, law.model().period_s(), Some(design.p0.get()))?;
    Ok(SelfTuned::new(law, estimators, RoundTrip::Fixed(design.plant.rtt_s())))
}

impl Tunable for ArmPfc {
    fn tune(&mut self, network: &NetworkEstimate) {
        let model = sampled_model(network, self.model().period_s(), self.model().delay());
        self.retune(model, self.target_pkts(), self.psi());
    }

    fn target(&self) -> Target {
        Target::Packets(self.target_pkts())
    }
}

/// Sampled model of an estimated network: k_t = R C / (4 L^2), tau1 = R, tau2 = R / (2 L).
pub(crate) fn sampled_model(network: &NetworkEstimate, period_s: f64, d: usize) -> Model {
    let NetworkEstimate { capacity_pps, load, rtt_s } = *network;
    let gain = rtt_s * capacity_pps / (4.0 * load * load);
    Model::from_time_constants(gain, rtt_s, rtt_s / (2.0 * load), period_s, d)
}

/// AD2: variant C with a predictor identified by recursive least squares.
#[derive(Clone, Debug)]
pub struct IdentifiedArmPfc {
    target: f64,
    p0: f64,
    reference_change: f64,
    period: Span,
    rls: Rls,
    predictor: Predictor,
    designed_gain: f64,
    samples: usize,
    /// Applied inputs u(k-1), u(k-2), ...
    u: Box<[f64]>,
    /// Outputs y(k-1), y(k-2), ...
    y: Box<[f64]>,
    phi: Box<[f64]>,
    accepted: bool,
}

impl IdentifiedArmPfc {
    /// The law with the designed coefficients.
    pub fn new(design: ArmPfcParams, rls: RlsParams) -> Result<Self, ParamError> {
        let ArmPfcParams { d, h, psi, p0, target, .. } = design;
        // Checks the design and computes the coefficients.
        let law = ArmPfc::new(ArmPfcParams { variant: Variant::C, points: 1, input: InputForm::Step, ..design })?;
        let predictor = law.predictor().clone();
        let scaled = predictor.markov().iter().copied().chain([predictor.eta()]).map(|x| x / INPUT_SCALE);
        let theta: Box<[f64]> = [predictor.beta1(), predictor.beta2()].into_iter().chain(scaled).collect();
        Ok(IdentifiedArmPfc {
            target,
            p0: p0.get(),
            reference_change: libm::pow(psi, h as f64) - 1.0,
            period: Span::from_secs_f64(law.model().period_s()),
            rls: Rls::new(rls, &theta)?,
            designed_gain: predictor.gain(),
            predictor,
            samples: 0,
            u: alloc::vec![0.0; d + 2 * h + 1].into(),
            y: alloc::vec![0.0; 2 * h + 1].into(),
            phi: alloc::vec![0.0; h + 3].into(),
            accepted: true,
        })
    }

    /// Current predictor.
    pub const fn predictor(&self) -> &Predictor {
        &self.predictor
    }

    fn identify(&mut self, y: f64) {
        let (h, d) = (self.predictor.horizon(), self.predictor.delay());
        // Differences over h samples; self.y[i] is y(k-1-i), self.u[i] is u(k-1-i).
        self.phi[0] = self.y[h - 1] - self.y[2 * h - 1];
        self.phi[1] = self.y[h] - self.y[2 * h];
        for (n, phi) in self.phi[2..].iter_mut().enumerate() {
            *phi = INPUT_SCALE * (self.u[d + n] - self.u[d + n + h]);
        }
        self.rls.update(&self.phi, y - self.y[h - 1]);
        let theta = self.rls.theta();
        let markov = theta[2..2 + h].iter().map(|x| INPUT_SCALE * x);
        let designed = self.designed_gain;
        self.accepted = self.predictor.identify([theta[0], theta[1]], markov, INPUT_SCALE * theta[h + 2], |gain| {
            GAIN_RANGE.contains(&(gain / designed))
        });
    }
}

impl SampledLaw for IdentifiedArmPfc {
    fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
        [Some(self.period), None]
    }

    fn step(&mut self, _which: usize, observation: &Observation) -> Probability {
        let (h, d) = (self.predictor.horizon(), self.predictor.delay());
        let y = observation.queue_pkts - self.target;
        // By now the histories contain no initial zeros.
        if self.samples >= 3 * h + d + 4 {
            self.identify(y);
        }
        self.samples = self.samples.saturating_add(1);
        let ym = self.predictor.predict_applied(self.y[h - 1], self.y[h], &self.u[d..]);
        let y_free = self.predictor.free_response(y, self.y[0], &self.u);
        let p = Probability::clamp(self.p0 + (y * self.reference_change - y_free + ym) / self.predictor.gain());
        arm_pfc::shift_in(&mut self.y, y);
        arm_pfc::shift_in(&mut self.u, p.get() - self.p0);
        p
    }

    fn integral(&self) -> Option<f64> {
        Some(self.p0 + self.u[0])
    }

    fn set_integral(&mut self, p: f64) -> Probability {
        let p = Probability::clamp(p);
        self.u.fill(p.get() - self.p0);
        p
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("predictor_gain", self.predictor.gain());
        visit("beta1", self.predictor.beta1());
        visit("beta2", self.predictor.beta2());
        visit("accepted", f64::from(u8::from(self.accepted)));
    }
}

impl ArmPfcAdaptive {
    fn from_settings(settings: &Settings<'_>, network: &Network) -> Result<Self, ParamError> {
        let capacity_bps = settings.number("capacity").unwrap_or(network.capacity.as_bps() as f64);
        let capacity_pps = capacity_bps / (8.0 * network.packet_bytes);
        let target = Target::from_settings(settings, network)?;
        let flows = settings.number("flows").unwrap_or(network.flows);
        let r0 = settings.number("r0").unwrap_or(network.base_rtt_s + target.seconds(capacity_pps));
        let plant = TcpPlant::new(flows, capacity_pps, r0)?;
        let identified = settings.choice("method") == Some("AD2");
        let mut design = ArmPfcParams::new(plant, target.packets(capacity_pps));
        if let Some(d) = settings.whole("d")? {
            design.d = d;
            design.psi = arm_pfc::default_psi(d);
        }
        design.h = match settings.whole("h")? {
            Some(h) => h,
            None => design.d + if identified { AD2_LEAD } else { AD3_LEAD },
        };
        if let Some(psi) = settings.number("psi") {
            design.psi = psi;
        }
        if let Some(p0) = settings.number("p0") {
            design.p0 = Probability::clamp(p0);
        }
        let estimators = EstimatorParams::from_settings(settings, capacity_pps, plant.load())?;
        let rls = RlsParams {
            forgetting: settings.number("forgetting").unwrap_or(DEFAULT_RLS.forgetting),
            covariance: settings.number("covariance").unwrap_or(DEFAULT_RLS.covariance),
            dead_zone: settings.number("dead_zone").unwrap_or(DEFAULT_RLS.dead_zone),
        };
        let method = if identified {
            Method::Identified(IdentifiedArmPfc::new(design, rls)?)
        } else {
            Method::Physical(physical(design, estimators)?)
        };
        Ok(ArmPfcAdaptive { capacity_bps, target, design, estimators, rls, method })
    }
}

impl SampledAqm<ArmPfcAdaptive> {
    pub(crate) fn from_settings(settings: &Settings<'_>, network: &Network) -> Result<Self, ParamError> {
        Ok(SampledAqm::with_settings(ArmPfcAdaptive::from_settings(settings, network)?, settings, network))
    }
}

impl SampledLaw for ArmPfcAdaptive {
    fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
        match &self.method {
            Method::Physical(law) => law.periods(),
            Method::Identified(law) => law.periods(),
        }
    }

    fn step(&mut self, which: usize, observation: &Observation) -> Probability {
        match &mut self.method {
            Method::Physical(law) => law.step(which, observation),
            Method::Identified(law) => law.step(which, observation),
        }
    }

    fn integral(&self) -> Option<f64> {
        match &self.method {
            Method::Physical(law) => law.integral(),
            Method::Identified(law) => law.integral(),
        }
    }

    fn set_integral(&mut self, p: f64) -> Probability {
        match &mut self.method {
            Method::Physical(law) => law.set_integral(p),
            Method::Identified(law) => law.set_integral(p),
        }
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        match &self.method {
            Method::Physical(law) => {
                law.observe(visit);
                visit("predictor_gain", law.law().predictor().gain());
            }
            Method::Identified(law) => law.observe(visit),
        }
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        let ArmPfcParams { plant, d, h, psi, p0, .. } = self.design;
        let method = match self.method {
            Method::Physical(_) => "AD3",
            Method::Identified(_) => "AD2",
        };
        visit("method", Value::Choice(method));
        visit("capacity", Value::Number(self.capacity_bps));
        visit("flows", Value::Number(plant.flows()));
        visit("r0", Value::Number(plant.rtt_s()));
        self.target.settings(visit);
        visit("d", Value::Number(d as f64));
        visit("h", Value::Number(h as f64));
        visit("psi", Value::Number(psi));
        visit("p0", Value::Number(p0.get()));
        self.estimators.settings(visit);
        visit("forgetting", Value::Number(self.rls.forgetting));
        visit("covariance", Value::Number(self.rls.covariance));
        visit("dead_zone", Value::Number(self.rls.dead_zone));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn design() -> ArmPfcParams {
        ArmPfcParams { h: 7, psi: 0.83, ..ArmPfcParams::new(TcpPlant::new(100.0, 1250.0, 0.28).unwrap(), 100.0) }
    }

    #[test]
    fn the_model_follows_the_estimated_capacity_and_load() {
        // L = 0.4, R = 0.28, C = 500: k_t = 140 / 0.64 = 218.75; tau2 = 0.28 / 0.8 = 0.35.
        let model = sampled_model(&NetworkEstimate { capacity_pps: 500.0, load: 0.4, rtt_s: 0.28 }, 0.056, 5);
        let same = Model::from_time_constants(218.75, 0.28, 0.35, 0.056, 5);
        assert!((model.gain() + 218.75).abs() < 1e-9 && (model.m1() - same.m1()).abs() < 1e-9);
    }

    #[test]
    fn in_equilibrium_at_the_target_a_change_of_the_model_does_not_change_p() {
        let mut law = physical(design(), EstimatorParams::new(1250.0, 1.0 / 3.5)).unwrap();
        let equilibrium = |p| Observation {
            queue_pkts: 100.0,
            departures_pkts: 35.0,
            busy_s: 0.056,
            applied: p,
            ..Observation::default()
        };
        let mut p = design().p0;
        for _ in 0..200 {
            p = law.step(0, &equilibrium(p));
        }
        // The estimated capacity is halved; queue and p are unchanged.
        assert!(law.estimators().capacity_pps() < 700.0);
        assert_eq!(p, design().p0);
    }

    /// A queue that follows a model.
    struct Loop {
        model: Model,
        u: alloc::vec::Vec<f64>,
        y: [f64; 2],
    }

    impl Loop {
        /// Closes the loop with `law` for `samples` samples, with disturbances of up to `noise` packets.
        fn run(&mut self, law: &mut IdentifiedArmPfc, samples: usize, noise: f64) {
            for k in 0..samples {
                let queue_pkts = f64::max(100.0 + self.y[0], 0.0);
                let p = law.step(0, &Observation { queue_pkts, ..Observation::default() });
                self.u.rotate_right(1);
                self.u[0] = p.get() - law.p0;
                let d = self.model.delay();
                let next = self.model.step(self.y[0], self.y[1], self.u[d], self.u[d + 1]);
                // Multiples of the golden ratio as pseudo-random noise.
                let disturbance = 2.0 * ((k as f64 * 0.618_034) % 1.0) - 1.0;
                self.y = [next + noise * disturbance, self.y[0]];
            }
        }
    }

    #[test]
    fn identification_starts_with_full_histories_and_finds_the_gain() {
        let plant = design().plant;
        // The gain is 1.3 times the assumed one.
        let (k_t, tau1, tau2) = (plant.gain_pkts(), plant.queue_time_s(), plant.window_time_s());
        let model = Model::from_time_constants(1.3 * k_t, tau1, tau2, 0.056, 5);
        let mut closed_loop = Loop { model, u: alloc::vec![0.0; 7], y: [60.0; 2] };
        let mut law =
            IdentifiedArmPfc::new(design(), RlsParams { dead_zone: 0.0, covariance: 1.0, ..DEFAULT_RLS }).unwrap();
        let designed = law.predictor().gain();
        closed_loop.run(&mut law, 3 * 7 + 5 + 4, 0.0);
        assert_eq!(law.predictor().gain(), designed);
        closed_loop.run(&mut law, 3000, 0.0);
        let found = law.predictor().gain() / designed;
        assert!((1.1..1.5).contains(&found), "{found}");
    }

    #[test]
    fn a_gain_out_of_range_is_rejected() {
        let mut law = IdentifiedArmPfc::new(design(), DEFAULT_RLS).unwrap();
        let designed = law.predictor().clone();
        // The queue ignores the probability and jumps between empty and full.
        for k in 0..400u32 {
            let queue = if (k / 9) % 2 == 0 { 0.0 } else { 300.0 };
            law.step(0, &Observation { queue_pkts: queue, ..Observation::default() });
            assert!(GAIN_RANGE.contains(&(law.predictor().gain() / designed.gain())));
        }
    }
}
