//! ARM-PFC: predictive functional control of the queue with an ARMarkov model (Bigdeli and Haeri 2007).
//!
//! Every Ts = R0 / d seconds it predicts the queue h samples ahead, if the probability stayed as it is, and chooses the
//! constant change of probability that brings the prediction onto a curve that decays to the target by Psi a sample.
//!
//! ```text
//! y(k) = q(k) - target,  u(k) = p(k) - p0
//! u(k) = [ y(k) (Psi^h - 1) - y_free(k+h) + y_m(k) ] / g                                                 eq. (27)
//! p(k) = clamp(p0 + u(k), 0, 1);  the history of u keeps what was applied
//! ```
//!
//! Deviations:
//! - Signs: the paper's equations have a plant with positive gain, with which p sticks at 0; here u is the change of p and
//!   the plant's gain is -k_t. [`design`] lists the equations that are corrected.
//! - What y_m(k) is, the paper leaves open. See [`Variant`]; the default (B) settles on the target with a wrong model, the
//!   literal reading (A) does not.
//! - Psi = exp(-Ts / (4 R0)), the "4 R0" of the paper's text, and h = d + 3; the paper prints 0.83, which is 1.07 R0, and
//!   h = d + 2 (profile `arm-pfc-printed`). With the printed Psi the loop oscillates for many flows or short delays.
//! - Nothing is marked before the first sample, although the history of u says p0.

pub mod design;

use alloc::boxed::Box;

use aqumen_units::{Probability, Span};

use crate::{
    Bound, DefaultValue, Kind, MAX_LOOPS, Network, Observation, Param, ParamError, Sampled, SampledLaw, Settings,
    TcpPlant, Unit, Value, registry::Algorithm,
};
use design::{MAX_DELAY, MAX_HORIZON, Model, Predictor};

const DEFAULT_DELAY: usize = 5;

/// The registry's row.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "arm-pfc",
    title: "ARM-PFC",
    summary: "predictive functional control of the queue length with an ARMarkov model",
    reference: "Bigdeli, Haeri: ARM-PFC, an optimized AQM congestion controller in TCP/IP networks, 2007",
    params: &[
        Param::positive(
            "capacity",
            Unit::BitsPerSecond,
            DefaultValue::Designed("the network's capacity"),
            "capacity the model assumes, C",
        ),
        Param::positive(
            "flows",
            Unit::One,
            DefaultValue::Designed("the network's flows"),
            "flows the model assumes, N",
        ),
        Param::positive(
            "r0",
            Unit::Seconds,
            DefaultValue::Designed("base RTT + target / capacity"),
            "round-trip time at the target, R0",
        ),
        Param::TARGET,
        Param {
            name: "d",
            kind: Kind::Number { unit: Unit::One, min: Bound::Inclusive(1.0), max: Bound::Inclusive(MAX_DELAY as f64) },
            default: DefaultValue::number(DEFAULT_DELAY as f64),
            doc: "samples per round trip: the period is Ts = R0 / d",
        },
        Param {
            name: "h",
            kind: Kind::Number {
                unit: Unit::One,
                min: Bound::Inclusive(2.0),
                max: Bound::Inclusive(MAX_HORIZON as f64),
            },
            default: DefaultValue::Designed("d + 3"),
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
        Param {
            name: "variant",
            kind: Kind::Choice(&["A", "B", "C"]),
            default: DefaultValue::Value(Value::Choice("B")),
            doc: "what the prediction starts from: measured queues (A), an internal model (B), measured queues h samples ago (C)",
        },
        Param::ECN,
    ],
};

/// What y_m(k), the model's present output in eq. (27), is taken to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// The paper's literal reading: one step predicted from the queues measured before, and y_free from measured queues.
    /// Settles beside the target when the operating point is not p0: see [`ArmPfc::offset_pkts`].
    A,
    /// An internal model that is driven by the applied probability alone. No offset for any p0 or gain.
    B,
    /// The prediction made h samples ago, with the probabilities applied since. No offset, but fragile.
    C,
}

/// The law.
#[derive(Clone, Debug)]
pub struct ArmPfc {
    /// Known only when it was built from settings.
    capacity_bps: Option<f64>,
    plant: TcpPlant,
    target: f64,
    psi: f64,
    p0: f64,
    variant: Variant,
    model: Model,
    predictor: Predictor,
    /// Psi^h - 1.
    pull: f64,
    /// u(k-1), u(k-2), ...: what was applied.
    u: Box<[f64]>,
    /// y(k-1), y(k-2), ...
    y: Box<[f64]>,
    /// Internal model's output at k-1 and k-2 (variant B).
    modelled: [f64; 2],
    seen: Internals,
}

/// What the last step computed on its way.
#[derive(Clone, Copy, Debug, Default)]
struct Internals {
    ym: f64,
    y_free: f64,
    u: f64,
}

/// The parameters of [`ArmPfc`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArmPfcParams {
    /// The network that the model assumes, R0 being the round-trip time at the target.
    pub plant: TcpPlant,
    /// Target queue length, q0, packets.
    pub target: f64,
    /// Samples per round trip, d.
    pub d: usize,
    /// Coincidence point, h, samples.
    pub h: usize,
    /// Decay of the reference per sample, Psi, in [0, 1).
    pub psi: f64,
    /// Probability at the operating point.
    pub p0: Probability,
    /// What y_m(k) is.
    pub variant: Variant,
}

impl ArmPfcParams {
    /// The defaults for `plant`: d = 5, h = d + 3, Psi = exp(-Ts / (4 R0)), p0 = 2 / W0^2, variant B.
    pub fn new(plant: TcpPlant, target: f64) -> Self {
        ArmPfcParams {
            plant,
            target,
            d: DEFAULT_DELAY,
            h: DEFAULT_DELAY + 3,
            psi: default_psi(DEFAULT_DELAY),
            p0: Probability::clamp(plant.operating_probability()),
            variant: Variant::B,
        }
    }
}

/// Psi = exp(-Ts / T_R) with T_R = 4 R0 and Ts = R0 / d.
fn default_psi(d: usize) -> f64 {
    libm::exp(-1.0 / (4.0 * d as f64))
}

impl ArmPfc {
    /// The law. `d` is in 1..=[`MAX_DELAY`], `h` in d+1..=[`MAX_HORIZON`].
    pub fn new(params: ArmPfcParams) -> Result<Self, ParamError> {
        let ArmPfcParams { plant, target, d, h, psi, p0, variant } = params;
        Param::check_positive("target", target, Unit::Packets)?;
        if !(0.0..1.0).contains(&psi) {
            return Err(ParamError::relation("psi", psi, "must be at least 0 and below 1"));
        }
        let model = Model::new(&plant, d)?;
        let predictor = Predictor::new(&model, h)?;
        // u(k-d-2) for the one-step model; u(k-d-h-1) and y(k-h-1) for variant C.
        let (inputs, outputs) = if variant == Variant::C { (d + h + 1, h + 1) } else { (d + 2, 2) };
        Ok(ArmPfc {
            capacity_bps: None,
            plant,
            target,
            psi,
            p0: p0.get(),
            variant,
            model,
            predictor,
            pull: libm::pow(psi, h as f64) - 1.0,
            u: alloc::vec![0.0; inputs].into(),
            y: alloc::vec![0.0; outputs].into(),
            modelled: [0.0; 2],
            seen: Internals::default(),
        })
    }

    /// The internal model.
    pub const fn model(&self) -> &Model {
        &self.model
    }

    /// The predictor.
    pub const fn predictor(&self) -> &Predictor {
        &self.predictor
    }

    /// Where the queue settles beside the target, packets, when the network needs the probability `p` to be still there.
    /// Zero for variants B and C. Variant A: ybar = B kappa ubar / (1 + B - Psi^h), B = beta1 + beta2 + n1 + n2,
    /// ubar = p - p0.
    pub fn offset_pkts(&self, p: Probability) -> f64 {
        match self.variant {
            Variant::B | Variant::C => 0.0,
            Variant::A => {
                let b = self.predictor.beta1() + self.predictor.beta2() + self.model.n1() + self.model.n2();
                b * self.model.gain() * (p.get() - self.p0) / (b - self.pull)
            }
        }
    }

    /// y_m(k) and the free response y_free(k+h) for the present error.
    fn predict(&self, y: f64) -> (f64, f64) {
        let (model, predictor, d) = (&self.model, &self.predictor, self.model.delay());
        let one_step = |y1: f64, y2: f64| model.step(y1, y2, self.u[d], self.u[d + 1]);
        let (ym, from, before) = match self.variant {
            Variant::A => (one_step(self.y[0], self.y[1]), y, self.y[0]),
            Variant::B => {
                let ym = one_step(self.modelled[0], self.modelled[1]);
                (ym, ym, self.modelled[0])
            }
            Variant::C => {
                let h = predictor.horizon();
                (predictor.predict_applied(self.y[h - 1], self.y[h], &self.u[d..]), y, self.y[0])
            }
        };
        (ym, predictor.free_response(from, before, &self.u))
    }

    fn from_settings(settings: &Settings<'_>, network: &Network) -> Result<Self, ParamError> {
        let capacity_bps = settings.number("capacity").unwrap_or(network.capacity.as_bps() as f64);
        let capacity_pps = capacity_bps / (8.0 * network.packet_bytes);
        let target = settings.number("target").unwrap_or(network.target_pkts);
        let flows = settings.number("flows").unwrap_or(network.flows);
        let r0 = settings.number("r0").unwrap_or(network.base_rtt_s + target / capacity_pps);
        let plant = TcpPlant::new(flows, capacity_pps, r0)?;
        let mut params = ArmPfcParams::new(plant, target);
        if let Some(d) = settings.whole("d")? {
            params.d = d;
            params.h = d + 3;
            params.psi = default_psi(d);
        }
        if let Some(h) = settings.whole("h")? {
            params.h = h;
        }
        if let Some(psi) = settings.number("psi") {
            params.psi = psi;
        }
        if let Some(p0) = settings.number("p0") {
            params.p0 = Probability::clamp(p0);
        }
        params.variant = match settings.choice("variant") {
            Some("A") => Variant::A,
            Some("C") => Variant::C,
            _ => Variant::B,
        };
        Ok(ArmPfc { capacity_bps: Some(capacity_bps), ..ArmPfc::new(params)? })
    }
}

impl Sampled<ArmPfc> {
    pub(crate) fn from_settings(settings: &Settings<'_>, network: &Network) -> Result<Self, ParamError> {
        Ok(Sampled::new(ArmPfc::from_settings(settings, network)?, settings.flag("ecn").unwrap_or(true)))
    }
}

impl SampledLaw for ArmPfc {
    fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
        [Some(Span::from_secs_f64(self.model.period_s())), None]
    }

    fn step(&mut self, _which: usize, seen: &Observation) -> Probability {
        let y = seen.queue_pkts - self.target;
        let (ym, y_free) = self.predict(y);
        let u = (y * self.pull - y_free + ym) / self.predictor.gain();
        let p = Probability::clamp(self.p0 + u);
        self.seen = Internals { ym, y_free, u };
        self.modelled = [ym, self.modelled[0]];
        remember(&mut self.y, y);
        // Anti-windup: the history keeps what was applied, not what was wished.
        remember(&mut self.u, p.get() - self.p0);
        p
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("model_output", self.seen.ym);
        visit("free_response", self.seen.y_free);
        visit("unclamped_input", self.seen.u);
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        if let Some(capacity) = self.capacity_bps {
            visit("capacity", Value::Number(capacity));
        }
        visit("flows", Value::Number(self.plant.flows()));
        visit("r0", Value::Number(self.plant.rtt_s()));
        visit("target", Value::Number(self.target));
        visit("d", Value::Number(self.model.delay() as f64));
        visit("h", Value::Number(self.predictor.horizon() as f64));
        visit("psi", Value::Number(self.psi));
        visit("p0", Value::Number(self.p0));
        visit("variant", Value::Choice(self.variant.name()));
    }
}

impl Variant {
    const fn name(self) -> &'static str {
        match self {
            Variant::A => "A",
            Variant::B => "B",
            Variant::C => "C",
        }
    }
}

/// Puts `newest` in front; the oldest falls out. The histories are short and move once a sample.
fn remember(history: &mut [f64], newest: f64) {
    history.rotate_right(1);
    history[0] = newest;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plant() -> TcpPlant {
        TcpPlant::new(100.0, 1250.0, 0.28).unwrap()
    }

    #[test]
    fn the_defaults_decay_in_four_round_trips_and_look_three_samples_past_the_delay() {
        let law = ArmPfc::new(ArmPfcParams::new(plant(), 100.0)).unwrap();
        // Ts = 0.28 / 5 = 0.056 s; Psi = exp(-0.056 / 1.12) = exp(-0.05) = 0.951229.
        assert_eq!(law.periods(), [Some(Span::from_millis(56)), None]);
        assert!((law.psi - 0.951_229).abs() < 1e-6);
        assert_eq!((law.model.delay(), law.predictor.horizon()), (5, 8));
    }

    #[test]
    fn at_the_operating_point_nothing_moves() {
        for variant in [Variant::A, Variant::B, Variant::C] {
            let mut law = ArmPfc::new(ArmPfcParams { variant, ..ArmPfcParams::new(plant(), 100.0) }).unwrap();
            for _ in 0..50 {
                let p = law.step(0, &Observation { queue_pkts: 100.0, ..Observation::default() });
                assert_eq!(p.get(), law.p0, "{variant:?}");
            }
        }
    }

    #[test]
    fn the_literal_reading_settles_beside_the_target() {
        // Printed parameters, 0.1 more probability than p0: 694.4 packets * 0.1 (h = 7); 565 (h = 6); 836 (h = 8).
        for (h, per_unit) in [(6, 565.0), (7, 694.4), (8, 836.0)] {
            let printed = ArmPfcParams { h, psi: 0.83, ..ArmPfcParams::new(plant(), 100.0) };
            let more = Probability::new(printed.p0.get() + 0.1).unwrap();
            let offset = |variant| ArmPfc::new(ArmPfcParams { variant, ..printed }).unwrap().offset_pkts(more);
            assert!((offset(Variant::A) - 0.1 * per_unit).abs() < 0.1, "h = {h}: {}", offset(Variant::A));
            assert_eq!((offset(Variant::B), offset(Variant::C)), (0.0, 0.0));
        }
    }

    #[test]
    fn parameters_out_of_range_are_refused_by_name() {
        let refused = |params: ArmPfcParams| ArmPfc::new(params).unwrap_err().param;
        let good = ArmPfcParams::new(plant(), 100.0);
        assert_eq!(refused(ArmPfcParams { d: 0, ..good }), "d");
        assert_eq!(refused(ArmPfcParams { d: MAX_DELAY + 1, h: MAX_HORIZON, ..good }), "d");
        assert_eq!(refused(ArmPfcParams { h: 5, ..good }), "h");
        assert_eq!(refused(ArmPfcParams { h: MAX_HORIZON + 1, ..good }), "h");
        assert_eq!(refused(ArmPfcParams { psi: 1.0, ..good }), "psi");
        assert_eq!(refused(ArmPfcParams { target: 0.0, ..good }), "target");
    }
}
