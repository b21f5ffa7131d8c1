//! ARM-PFC: predictive functional control of the queue with an ARMarkov model (Bigdeli and Haeri 2007).
//!
//! Every Ts = R0 / d seconds the controller predicts the queue h samples ahead for constant probability. It then
//! chooses the constant change of probability that moves the prediction onto a reference trajectory, which decays to
//! the target by Psi per sample.
//!
//! ```text
//! y(k) = q(k) - target,  u(k) = p(k) - p0
//! u(k) = [ y(k) (Psi^h - 1) - y_free(k+h) + y_m(k) ] / g                                                 eq. (27)
//! p(k) = clamp(p0 + u(k), 0, 1);  the history of u stores the applied values
//! ```
//!
//! With several coincidence points h, h+1, ... (eq. (24)), u is the least-squares solution. With r_i the bracket above
//! for point i and g_i its gain, the sum of (g_i u - r_i)^2 is least at u = sum g_i r_i / sum g_i^2.
//!
//! The future input is a step, u(k+j) = u, or a ramp, u(k+j) = u + j beta (the paper's section 3a: basis functions). A
//! ramp adds a_i beta to the prediction at point i, where a_i = s(1) + ... + s(h_i - d - 1) is the model's response to
//! a ramp of slope 1. With v_i = g_i sum a_j^2 - a_i sum a_j g_j, the least-squares solution is u = sum v_i r_i /
//! sum v_i g_i; beta is not needed, since the next sample solves anew.
//!
//! Deviations:
//! - Signs: the paper's plant has a positive gain, with which p stays at 0; here u is the change of p and the plant's
//!   gain is -k_t. [`design`] lists the corrected equations.
//! - The paper does not define y_m(k); see [`Variant`]. The default (B) has no steady-state error even with a wrong
//!   model, the literal reading (A) does.
//! - Psi = exp(-Ts / (4 R0)), the "4 R0" of the paper's text, and h = d + 3. The paper prints 0.83, which is 1.07 R0,
//!   and h = d + 2 (profile `arm-pfc-printed`). With the printed Psi the loop oscillates for many flows or short
//!   delays.
//! - Several coincidence points: the paper sets w(k+h) = y(k+h) "for a few points" and solves for one; see above.
//! - No packet is marked before the first sample, although the history of u starts at p0.

pub mod design;

use alloc::boxed::Box;

use aqumen_units::{Probability, Span};

use alloc::{format, string::String, vec, vec::Vec};

use crate::{
    Algorithm, AntiWindup, Bound, DefaultValue, DesignReport, Equilibrium, Kind, MAX_LOOPS, Network, Observation,
    Param, ParamError, QueueOperatingPoint, SampledAqm, SampledLaw, Settings, Target, TcpPlant, Theory, Transfer, Unit,
    Value,
    transfer::{difference, multiply},
};
use design::{MAX_DELAY, MAX_HORIZON, Model, Predictor};

pub(crate) const DEFAULT_DELAY: usize = 5;
/// Maximum number of coincidence points.
pub const MAX_POINTS: usize = 8;

/// Registry entry.
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
            "assumed capacity, C",
        ),
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
            name: "points",
            kind: Kind::Number {
                unit: Unit::One,
                min: Bound::Inclusive(1.0),
                max: Bound::Inclusive(MAX_POINTS as f64),
            },
            default: DefaultValue::number(1.0),
            doc: "coincidence points: h, h + 1, ...; the reference is met in the least-squares sense; at least 2 for a ramp",
        },
        Param {
            name: "input",
            kind: Kind::Choice(&["step", "ramp"]),
            default: DefaultValue::Value(Value::Choice("step")),
            doc: "form of the future input: a step or a ramp; a ramp has 2 points by default",
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
            doc: "start of the prediction: measured queues (A), an internal model (B), measured queues h samples ago (C)",
        },
        AntiWindup::PARAM,
        Param::ECN,
    ],
};

/// Definition of y_m(k), the model's current output in eq. (27).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Literal reading of the paper: y_m predicted one step from the previous measured queues, y_free from measured
    /// queues. It has a steady-state error if the operating point is not p0: see [`Theory::offset_pkts`].
    A,
    /// Internal model driven by the applied probability only. No steady-state error for any p0 or gain.
    B,
    /// Prediction made h samples ago, with the probabilities applied since. No steady-state error, but not robust.
    C,
}

/// Form of the input over the horizon, the basis functions of predictive functional control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputForm {
    /// Constant input.
    Step,
    /// Input that changes by the same amount in each sample. Needs two coincidence points.
    Ramp,
}

/// The law.
#[derive(Clone, Debug)]
pub struct ArmPfc {
    /// Capacity as given in the settings; `None` if built without settings.
    capacity_bps: Option<f64>,
    plant: TcpPlant,
    target: f64,
    psi: f64,
    p0: f64,
    variant: Variant,
    input: InputForm,
    model: Model,
    points: Box<[Point]>,
    /// Applied inputs u(k-1), u(k-2), ...
    u: Box<[f64]>,
    /// Outputs y(k-1), y(k-2), ...
    y: Box<[f64]>,
    /// Internal model's output at k-1 and k-2 (variant B).
    model_outputs: [f64; 2],
    internals: Internals,
}

/// A coincidence point.
#[derive(Clone, Debug)]
struct Point {
    predictor: Predictor,
    /// Relative change of the error on the reference trajectory, Psi^h - 1.
    reference_change: f64,
    /// Response of the model to an input that is 0 now and grows by 1 per sample.
    ramp_response: f64,
}

impl Point {
    fn new(model: &Model, h: usize, psi: f64) -> Result<Self, ParamError> {
        let predictor = Predictor::new(model, h)?;
        Ok(Point { predictor, reference_change: reference_change(psi, h), ramp_response: ramp_response(model, h) })
    }

    fn redesign(&mut self, model: &Model, h: usize, psi: f64) {
        self.predictor.redesign(model, h);
        self.reference_change = reference_change(psi, h);
        self.ramp_response = ramp_response(model, h);
    }
}

/// Intermediate results of the last step, for the first coincidence point.
#[derive(Clone, Copy, Debug, Default)]
struct Internals {
    ym: f64,
    y_free: f64,
    u: f64,
}

/// The parameters of [`ArmPfc`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArmPfcParams {
    /// Assumed network; R0 is the round-trip time at the target.
    pub plant: TcpPlant,
    /// Target queue length, q0, packets.
    pub target: f64,
    /// Samples per round trip, d.
    pub d: usize,
    /// First coincidence point, h, samples.
    pub h: usize,
    /// Number of coincidence points: h, h + 1, ...
    pub points: usize,
    /// Decay of the reference per sample, Psi, in [0, 1).
    pub psi: f64,
    /// Probability at the operating point.
    pub p0: Probability,
    /// Definition of y_m(k).
    pub variant: Variant,
    /// Form of the future input.
    pub input: InputForm,
}

impl ArmPfcParams {
    /// Defaults for `plant`: d = 5, h = d + 3, Psi = exp(-Ts / (4 R0)), p0 = 2 / W0^2, variant B.
    pub fn new(plant: TcpPlant, target: f64) -> Self {
        ArmPfcParams {
            plant,
            target,
            d: DEFAULT_DELAY,
            h: DEFAULT_DELAY + 3,
            points: 1,
            psi: default_psi(DEFAULT_DELAY),
            p0: Probability::clamp(plant.operating_probability()),
            variant: Variant::B,
            input: InputForm::Step,
        }
    }
}

/// Default Psi = exp(-Ts / T_R) with T_R = 4 R0 and Ts = R0 / d.
pub(crate) fn default_psi(d: usize) -> f64 {
    libm::exp(-1.0 / (4.0 * d as f64))
}

impl ArmPfc {
    /// The law. `d` is in 1..=[`MAX_DELAY`], `h` in d+1..=[`MAX_HORIZON`].
    pub fn new(params: ArmPfcParams) -> Result<Self, ParamError> {
        let ArmPfcParams { plant, target, d, h, points, psi, p0, variant, input } = params;
        Param::check_positive("target", target, Unit::Packets)?;
        if !(0.0..1.0).contains(&psi) {
            return Err(ParamError::relation("psi", psi, "must be at least 0 and below 1"));
        }
        let model = Model::new(&plant, d)?;
        if !(1..=MAX_POINTS).contains(&points) {
            return Err(ParamError::relation("points", points as f64, "must be a whole number of 1 to 8"));
        }
        if input == InputForm::Ramp && points < 2 {
            return Err(ParamError::relation("points", points as f64, "must be at least 2 with input = ramp"));
        }
        let points = (h..h.saturating_add(points))
            .map(|h| Point::new(&model, h, psi))
            .collect::<Result<Box<[Point]>, ParamError>>()?;
        let furthest = h + points.len() - 1;
        // u(k-d-2) for the one-step model; u(k-d-h-1) and y(k-h-1) for variant C.
        let (inputs, outputs) = if variant == Variant::C { (d + furthest + 1, furthest + 1) } else { (d + 2, 2) };
        Ok(ArmPfc {
            capacity_bps: None,
            plant,
            target,
            psi,
            p0: p0.get(),
            variant,
            input,
            model,
            points,
            u: alloc::vec![0.0; inputs].into(),
            y: alloc::vec![0.0; outputs].into(),
            model_outputs: [0.0; 2],
            internals: Internals::default(),
        })
    }

    /// Internal model.
    pub const fn model(&self) -> &Model {
        &self.model
    }

    /// Predictor of the first coincidence point.
    pub fn predictor(&self) -> &Predictor {
        &self.points[0].predictor
    }

    /// Target queue length, packets.
    pub const fn target_pkts(&self) -> f64 {
        self.target
    }

    /// Decay of the reference per sample, Psi.
    pub const fn psi(&self) -> f64 {
        self.psi
    }

    /// Reserves memory for delays of up to `d` samples.
    pub(crate) fn reserve(&mut self, d: usize) {
        let mut u = core::mem::take(&mut self.u).into_vec();
        u.resize(u.len().max(d + 2), 0.0);
        self.u = u.into();
        let now = self.model.delay();
        for point in &mut self.points {
            point.predictor.reserve(point.predictor.horizon() - now + d);
        }
    }

    /// Sets another model of the network, target (packets) and decay `psi` per sample. The period and the distance from
    /// the delay to the coincidence points stay. Only for variants A and B. Past outputs of the model are scaled with
    /// its gain, to stay consistent with past inputs. No change if the model has no usable response.
    pub(crate) fn retune(&mut self, model: Model, target: f64, psi: f64) {
        debug_assert!(self.variant != Variant::C, "the history of variant C belongs to the old model");
        let lead = self.predictor().horizon() - self.model.delay();
        let usable = |n: usize| (-1e60..-1e-60).contains(&model.step_response(n));
        if !(lead..lead + self.points.len()).all(usable) {
            return;
        }
        for (point, n) in self.points.iter_mut().zip(lead..) {
            point.redesign(&model, model.delay() + n, psi);
        }
        let scale = model.gain() / self.model.gain();
        self.model_outputs = self.model_outputs.map(|y| y * scale);
        (self.model, self.psi, self.target) = (model, psi, target);
    }

    /// y_m(k) and the free response y_free(k+h) at a coincidence point for the current error `y`.
    fn predict(&self, predictor: &Predictor, y: f64) -> (f64, f64) {
        let (model, d) = (&self.model, self.model.delay());
        let one_step = |y1: f64, y2: f64| model.step(y1, y2, self.u[d], self.u[d + 1]);
        let (ym, from, before) = match self.variant {
            Variant::A => (one_step(self.y[0], self.y[1]), y, self.y[0]),
            Variant::B => {
                let ym = one_step(self.model_outputs[0], self.model_outputs[1]);
                (ym, ym, self.model_outputs[0])
            }
            Variant::C => {
                let h = predictor.horizon();
                (predictor.predict_applied(self.y[h - 1], self.y[h], &self.u[d..]), y, self.y[0])
            }
        };
        (ym, predictor.free_response(from, before, &self.u))
    }

    /// Weights v_i of the coincidence points in the least-squares solution u = sum v_i r_i / sum v_i g_i.
    fn weighted_points(&self) -> impl Iterator<Item = (f64, &Point)> {
        let (mut aa, mut ag) = (0.0, 0.0);
        for point in &self.points {
            aa += point.ramp_response * point.ramp_response;
            ag += point.ramp_response * point.predictor.gain();
        }
        self.points.iter().map(move |point| {
            let weight = match self.input {
                InputForm::Step if self.points.len() == 1 => 1.0,
                InputForm::Step => point.predictor.gain(),
                InputForm::Ramp => aa * point.predictor.gain() - ag * point.ramp_response,
            };
            (weight, point)
        })
    }

    /// The u that moves the predictions onto the reference, with intermediate results of the first coincidence point.
    fn solve(&self, y: f64) -> Internals {
        let (mut num, mut den, mut first) = (0.0, 0.0, None);
        for (weight, point) in self.weighted_points() {
            let (ym, y_free) = self.predict(&point.predictor, y);
            num += weight * (y * point.reference_change - y_free + ym);
            den += weight * point.predictor.gain();
            first.get_or_insert((ym, y_free));
        }
        let (ym, y_free) = first.unwrap_or_default();
        Internals { ym, y_free, u: num / den }
    }

    fn from_settings(settings: &Settings<'_>, network: &Network) -> Result<Self, ParamError> {
        let capacity_bps = settings.number("capacity").unwrap_or(network.capacity.as_bps() as f64);
        let capacity_pps = capacity_bps / (8.0 * network.packet_bytes);
        let target = Target::from_settings(settings, network)?.packets(capacity_pps);
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
        if settings.choice("input") == Some("ramp") {
            (params.input, params.points) = (InputForm::Ramp, 2);
        }
        if let Some(points) = settings.whole("points")? {
            params.points = points;
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

impl SampledAqm<ArmPfc> {
    pub(crate) fn from_settings(settings: &Settings<'_>, network: &Network) -> Result<Self, ParamError> {
        Ok(SampledAqm::with_settings(ArmPfc::from_settings(settings, network)?, settings, network))
    }
}

impl SampledLaw for ArmPfc {
    fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
        [Some(Span::from_secs_f64(self.model.period_s())), None]
    }

    fn step(&mut self, _which: usize, observation: &Observation) -> Probability {
        let y = observation.queue_pkts - self.target;
        self.internals = self.solve(y);
        let p = Probability::clamp(self.p0 + self.internals.u);
        self.model_outputs = [self.internals.ym, self.model_outputs[0]];
        shift_in(&mut self.y, y);
        // Anti-windup: the history stores the clamped input.
        shift_in(&mut self.u, p.get() - self.p0);
        p
    }

    fn integral(&self) -> Option<f64> {
        Some(self.p0 + self.u[0])
    }

    /// Sets the model to its steady state at `p`.
    fn set_integral(&mut self, p: f64) -> Probability {
        let p = Probability::clamp(p);
        let u = p.get() - self.p0;
        self.u.fill(u);
        self.model_outputs = [self.model.gain() * u; 2];
        p
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("model_output", self.internals.ym);
        visit("free_response", self.internals.y_free);
        visit("unclamped_input", self.internals.u);
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        if let Some(capacity) = self.capacity_bps {
            visit("capacity", Value::Number(capacity));
        }
        visit("flows", Value::Number(self.plant.flows()));
        visit("r0", Value::Number(self.plant.rtt_s()));
        visit("target", Value::Number(self.target));
        visit("d", Value::Number(self.model.delay() as f64));
        visit("h", Value::Number(self.predictor().horizon() as f64));
        visit("points", Value::Number(self.points.len() as f64));
        visit("input", Value::Choice(self.input.name()));
        visit("psi", Value::Number(self.psi));
        visit("p0", Value::Number(self.p0));
        visit("variant", Value::Choice(self.variant.name()));
    }

    fn theory(&self) -> &dyn Theory {
        self
    }
}

/// Response of `model` h samples ahead to an input that is 0 now and grows by 1 per sample: a step in each sample from
/// the next one on, of which those within the delay are not seen.
fn ramp_response(model: &Model, h: usize) -> f64 {
    (1..h - model.delay()).map(|n| model.step_response(n)).sum()
}

/// Psi^h - 1.
fn reference_change(psi: f64, h: usize) -> f64 {
    libm::pow(psi, h as f64) - 1.0
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

impl InputForm {
    const fn name(self) -> &'static str {
        match self {
            InputForm::Step => "step",
            InputForm::Ramp => "ramp",
        }
    }
}

/// Shifts `newest` into the front of a history and drops the oldest value.
pub(crate) fn shift_in(history: &mut [f64], newest: f64) {
    history.rotate_right(1);
    history[0] = newest;
}

/// Adds `factor` times a polynomial to another one.
fn add_scaled(sum: &mut Vec<f64>, factor: f64, polynomial: &[f64]) {
    sum.resize(sum.len().max(polynomial.len()), 0.0);
    for (total, coefficient) in sum.iter_mut().zip(polynomial) {
        *total += factor * coefficient;
    }
}

impl ArmPfc {
    /// Numerator and denominator of u/y for one coincidence point, in powers of 1/z.
    fn transfer_of(&self, point: &Point) -> (Vec<f64>, Vec<f64>) {
        let (model, predictor, reference_change) = (&self.model, &point.predictor, point.reference_change);
        let (d, h) = (model.delay(), predictor.horizon());
        let (beta1, beta2) = (predictor.beta1(), predictor.beta2());
        // g + F.
        let mut inputs = vec![predictor.gain()];
        inputs.extend_from_slice(predictor.c());
        inputs.push(predictor.eta());
        let mut model_num = vec![0.0; d + 3];
        (model_num[d + 1], model_num[d + 2]) = (model.m1(), model.m2());
        let model_den = [1.0, model.n1(), model.n2()];
        match self.variant {
            Variant::A => {
                (vec![reference_change - beta1, -model.n1() - beta2, -model.n2()], difference(&inputs, &model_num))
            }
            Variant::B => {
                let num: Vec<f64> = model_den.iter().map(|c| c * reference_change).collect();
                (num, difference(&multiply(&inputs, &model_den), &multiply(&model_num, &[1.0 - beta1, -beta2])))
            }
            Variant::C => {
                let mut num = vec![0.0; h + 2];
                num[0] += reference_change - beta1;
                num[1] -= beta2;
                num[h] += beta1;
                num[h + 1] += beta2;
                let mut applied = vec![0.0; d + h + 2];
                (1..=h).for_each(|n| applied[d + n] = model.markov(n));
                applied[d + h + 1] = predictor.eta();
                (num, difference(&inputs, &applied))
            }
        }
    }
}

impl Theory for ArmPfc {
    /// Variant A has a steady-state error that depends on the probability there.
    fn equilibrium(&self) -> Equilibrium {
        Equilibrium::OffTarget
    }

    /// Steady-state error, packets: 0 for variants B and C. Variant A with one coincidence point: ybar = B kappa ubar /
    /// (1 + B - Psi^h), B = beta1 + beta2 + n1 + n2, ubar = p - p0. With several points, numerator and denominator are
    /// sums with the weights of the points.
    fn offset_pkts(&self, p: Probability) -> f64 {
        match self.variant {
            Variant::B | Variant::C => 0.0,
            Variant::A => {
                let (mut num, mut den) = (0.0, 0.0);
                for (weight, Point { predictor, reference_change, .. }) in self.weighted_points() {
                    let b = predictor.beta1() + predictor.beta2() + self.model.n1() + self.model.n2();
                    num += weight * b;
                    den += weight * (b - reference_change);
                }
                num * self.model.gain() * (p.get() - self.p0) / den
            }
        }
    }

    /// u/y from g u = (Psi^h - 1) y - y_free + y_m. With F = sum of c_j z^-j + eta z^-(d+1) and model N / M, variant B
    /// is (Psi^h - 1) M / ((g + F) M - N (1 - beta1 - beta2 z^-1)); A and C use their own y_m and y_free.
    /// Several points: both sides are sums with the weights of the points.
    fn linear(&self, _at: &QueueOperatingPoint) -> Option<Transfer> {
        let (mut num, mut den) = (Vec::new(), Vec::new());
        for (weight, point) in self.weighted_points() {
            let (of, over) = self.transfer_of(point);
            add_scaled(&mut num, weight, &of);
            add_scaled(&mut den, weight, &over);
        }
        Some(Transfer { num, den, period_s: Some(self.model.period_s()) })
    }

    fn derive(&self, _at: &QueueOperatingPoint, plant: &TcpPlant, report: &mut dyn DesignReport) {
        let (model, predictor) = (&self.model, self.predictor());
        let gamma = model.period_s() / libm::hypot(plant.queue_time_s(), plant.window_time_s());
        report.number("T_s", model.period_s());
        report.number("gamma", gamma);
        for (name, value) in [
            ("kappa", model.gain()),
            ("n1", model.n1()),
            ("n2", model.n2()),
            ("m1", model.m1()),
            ("m2", model.m2()),
            ("beta1", predictor.beta1()),
            ("beta2", predictor.beta2()),
            ("eta", predictor.eta()),
            ("g", predictor.gain()),
        ] {
            report.number(name, value);
        }
        report.list("c", predictor.c());
        if !(0.1..=0.25).contains(&gamma) {
            report.warn(format!(
                "gamma = T_s / sqrt(tau1^2 + tau2^2) = {gamma:.4} is outside the 0.1 to 0.25 that the paper asks for"
            ));
        }
    }

    fn equilibrium_warning(&self, at: &QueueOperatingPoint) -> Option<String> {
        ((at.window_pkts - 2.0).abs() < 0.05).then(|| {
            "W0 is near 2, where both time constants are equal and the paper's eq. (13) divides by zero; this design is regular there"
                .into()
        })
    }

    fn delay_margin_warning(&self, delay_margin_s: f64) -> Option<String> {
        let period = self.model.period_s();
        (delay_margin_s < period).then(|| format!("one more sample of delay ({period:.4} s) makes the loop unstable"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plant() -> TcpPlant {
        TcpPlant::new(100.0, 1250.0, 0.28).unwrap()
    }

    #[test]
    fn by_default_psi_decays_in_four_round_trips_and_h_is_d_plus_three() {
        let law = ArmPfc::new(ArmPfcParams::new(plant(), 100.0)).unwrap();
        // Ts = 0.28 / 5 = 0.056 s; Psi = exp(-0.056 / 1.12) = exp(-0.05) = 0.951229.
        assert_eq!(law.periods(), [Some(Span::from_millis(56)), None]);
        assert!((law.psi - 0.951_229).abs() < 1e-6);
        assert_eq!((law.model.delay(), law.predictor().horizon()), (5, 8));
    }

    #[test]
    fn at_the_operating_point_the_probability_is_constant() {
        for variant in [Variant::A, Variant::B, Variant::C] {
            let mut law = ArmPfc::new(ArmPfcParams { variant, ..ArmPfcParams::new(plant(), 100.0) }).unwrap();
            for _ in 0..50 {
                let p = law.step(0, &Observation { queue_pkts: 100.0, ..Observation::default() });
                assert_eq!(p.get(), law.p0, "{variant:?}");
            }
        }
    }

    #[test]
    fn variant_a_has_a_steady_state_error() {
        // Printed parameters, p = p0 + 0.1: 694.4 packets * 0.1 (h = 7); 565 (h = 6); 836 (h = 8).
        for (h, per_unit) in [(6, 565.0), (7, 694.4), (8, 836.0)] {
            let printed = ArmPfcParams { h, psi: 0.83, ..ArmPfcParams::new(plant(), 100.0) };
            let more = Probability::new(printed.p0.get() + 0.1).unwrap();
            let offset = |variant| ArmPfc::new(ArmPfcParams { variant, ..printed }).unwrap().offset_pkts(more);
            assert!((offset(Variant::A) - 0.1 * per_unit).abs() < 0.1, "h = {h}: {}", offset(Variant::A));
            assert_eq!((offset(Variant::B), offset(Variant::C)), (0.0, 0.0));
        }
    }

    #[test]
    fn several_coincidence_points_give_the_least_squares_solution() {
        // A queue of 110 after equilibrium at the target: y = 10, y_m = 0, y_free = 0 (variant B). Point i alone gives
        // u_i = 10 (Psi^h_i - 1) / g_i; the solution is their mean, weighted by g_i^2.
        let single = |h| {
            let law = ArmPfc::new(ArmPfcParams { h, ..ArmPfcParams::new(plant(), 100.0) }).unwrap();
            let gain = law.predictor().gain();
            (10.0 * (libm::pow(law.psi, h as f64) - 1.0) / gain, gain * gain)
        };
        let mut law = ArmPfc::new(ArmPfcParams { h: 6, points: 3, ..ArmPfcParams::new(plant(), 100.0) }).unwrap();
        let p = law.step(0, &Observation { queue_pkts: 110.0, ..Observation::default() });
        let all = [single(6), single(7), single(8)];
        let expected = all.iter().map(|(u, w)| u * w).sum::<f64>() / all.iter().map(|(_, w)| w).sum::<f64>();
        assert!((p.get() - law.p0 - expected).abs() < 1e-12);
        // h = d + 1 alone gives more than twice as much.
        assert!(single(6).0 > 2.0 * expected, "{} {expected}", single(6).0);
    }

    #[test]
    fn a_ramp_meets_the_reference_at_two_points() {
        // y = 10 after equilibrium (variant B): y_m = y_free = 0, r_i = 10 (Psi^h_i - 1). From h = 7 and d = 5 on,
        // u and beta solve g_7 u + s(1) beta = r_7 and g_8 u + (s(1) + s(2)) beta = r_8, where g_7 = s(2), g_8 = s(3).
        // By Cramer's rule u = (r_7 (s(1) + s(2)) - r_8 s(1)) / (s(2) (s(1) + s(2)) - s(3) s(1)).
        let ramp = ArmPfcParams { h: 7, points: 2, input: InputForm::Ramp, ..ArmPfcParams::new(plant(), 100.0) };
        let mut law = ArmPfc::new(ramp).unwrap();
        let s = |n| law.model().step_response(n);
        let r = |h| 10.0 * (libm::pow(law.psi(), f64::from(h)) - 1.0);
        let expected = (r(7) * (s(1) + s(2)) - r(8) * s(1)) / (s(2) * (s(1) + s(2)) - s(3) * s(1));
        let p = law.step(0, &Observation { queue_pkts: 110.0, ..Observation::default() });
        assert!((p.get() - law.p0 - expected).abs() < 1e-9, "{} {expected}", p.get() - law.p0);
        let mut step = ArmPfc::new(ArmPfcParams { input: InputForm::Step, ..ramp }).unwrap();
        assert!(step.step(0, &Observation { queue_pkts: 110.0, ..Observation::default() }) != p);
        let refused = ArmPfc::new(ArmPfcParams { points: 1, ..ramp }).unwrap_err();
        assert!(format!("{refused}").contains("must be at least 2 with input = ramp"), "{refused}");
    }

    #[test]
    fn the_transfer_function_of_several_points_is_the_answer_to_an_impulse() {
        let plant = plant();
        let at = QueueOperatingPoint {
            flows: 100.0,
            capacity_pps: 1250.0,
            base_rtt_s: 0.2,
            rtt_s: 0.28,
            queue_pkts: 100.0,
            window_pkts: 3.5,
            probability: 0.1633,
            packet_bytes: 1000.0,
            estimates: crate::EstimateRatios::EXACT,
        };
        for (input, points) in [(InputForm::Step, 1), (InputForm::Step, 3), (InputForm::Ramp, 2), (InputForm::Ramp, 4)]
        {
            for variant in [Variant::A, Variant::B, Variant::C] {
                let params = ArmPfcParams { variant, input, points, h: 7, ..ArmPfcParams::new(plant, 100.0) };
                let mut law = ArmPfc::new(params).unwrap();
                let Transfer { num, den, .. } = law.linear(&at).unwrap();
                let mut u: Vec<f64> = Vec::new();
                for k in 0..30_usize {
                    let queue_pkts = if k == 0 { 100.001 } else { 100.0 };
                    let seen = law.step(0, &Observation { queue_pkts, ..Observation::default() }).get() - law.p0;
                    let past: f64 = (1..=k).map(|j| den.get(j).unwrap_or(&0.0) * u[k - j]).sum();
                    u.push((0.001 * num.get(k).unwrap_or(&0.0) - past) / den[0]);
                    assert!((seen - u[k]).abs() < 1e-11, "{input:?} {points} {variant:?} {k}: {seen} {}", u[k]);
                }
            }
        }
    }

    #[test]
    fn a_model_without_usable_response_is_rejected() {
        let model = |gain| Model::from_time_constants(gain, 0.3, 0.5, 0.056, 5);
        let mut law = ArmPfc::new(ArmPfcParams { points: 3, ..ArmPfcParams::new(plant(), 100.0) }).unwrap();
        let state = |law: &ArmPfc| (law.predictor().gain(), law.psi(), law.target_pkts());
        let before = state(&law);
        for gain in [0.0, 1e-70, 1e70, f64::INFINITY] {
            law.retune(model(gain), 50.0, 0.5);
            assert_eq!(state(&law), before, "{gain}");
        }
        law.retune(model(3000.0), 50.0, 0.5);
        assert_eq!((law.psi(), law.target_pkts()), (0.5, 50.0));
        assert!(law.predictor().gain() != before.0);
    }

    #[test]
    fn coefficients_that_are_not_finite_are_rejected() {
        let law = ArmPfc::new(ArmPfcParams::new(plant(), 100.0)).unwrap();
        let mut predictor = law.predictor().clone();
        let h = predictor.horizon();
        let mut identify = |beta: [f64; 2], last: f64, eta: f64| {
            let markov = (1..=h).map(|n| if n == h { last } else { -1.0 });
            let taken = predictor.identify(beta, markov, eta, |_| true);
            (taken, predictor.eta())
        };
        assert_eq!(identify([1.0, 2.0], -1.0, 3.0), (true, 3.0));
        for (beta, last, eta) in [
            ([f64::NAN, 2.0], -1.0, 4.0),
            ([1.0, f64::INFINITY], -1.0, 4.0),
            ([1.0, 2.0], f64::NAN, 4.0),
            ([1.0, 2.0], -1.0, f64::NEG_INFINITY),
        ] {
            assert_eq!(identify(beta, last, eta), (false, 3.0), "{beta:?} {last} {eta}");
        }
    }

    #[test]
    fn the_steady_state_error_with_several_points_is_an_equilibrium() {
        let params = ArmPfcParams { variant: Variant::A, points: 3, ..ArmPfcParams::new(plant(), 100.0) };
        let mut law = ArmPfc::new(params).unwrap();
        let p = Probability::new(law.p0 + 0.02).unwrap();
        let equilibrium = Observation { queue_pkts: 100.0 + law.offset_pkts(p), ..Observation::default() };
        law.y.fill(law.offset_pkts(p));
        law.u.fill(0.02);
        assert!((law.step(0, &equilibrium).get() - p.get()).abs() < 1e-9);
    }

    #[test]
    fn errors_name_the_invalid_parameter() {
        let refused = |params: ArmPfcParams| ArmPfc::new(params).unwrap_err().param;
        let good = ArmPfcParams::new(plant(), 100.0);
        assert_eq!(refused(ArmPfcParams { d: 0, ..good }), "d");
        assert_eq!(refused(ArmPfcParams { d: MAX_DELAY + 1, h: MAX_HORIZON, ..good }), "d");
        assert_eq!(refused(ArmPfcParams { h: 5, ..good }), "h");
        assert_eq!(refused(ArmPfcParams { h: MAX_HORIZON + 1, ..good }), "h");
        assert_eq!(refused(ArmPfcParams { points: 0, ..good }), "points");
        assert_eq!(refused(ArmPfcParams { points: MAX_POINTS + 1, ..good }), "points");
        assert_eq!(refused(ArmPfcParams { h: MAX_HORIZON, points: 2, ..good }), "h");
        assert_eq!(refused(ArmPfcParams { psi: 1.0, ..good }), "psi");
        assert_eq!(refused(ArmPfcParams { target: 0.0, ..good }), "target");
    }
}
