//! PAQM: PID control of the queue with a predicted queue in the derivative part (Ryu).
//!
//! Every Ts seconds, Q = Q_k, gamma_k = Q_k - Q_(k-1):
//!
//! ```text
//! ghat = gamma_k (gamma_k / gamma_(k-1)) if both have one sign and gamma_(k-1) != 0, else gamma_k             eq. (8)
//! Qhat = clamp(Q_k + ghat, 0, B)
//! PI:  dp = alpha ((Q_k + Q_(k-1)) / 2 - target) / target                                                     eq. (5)
//! D:   dp = alpha (Qhat - target) / (B - target)                                                              eq. (10)
//! p = clamp(p + dp, 0, 1)
//! ```
//!
//! `reading` selects the parts. X, as in the text: PI while two samples are on one side of the target, else D.
//!
//! Deviations:
//! - (5) is printed without its parentheses, which would add -1 to p; the text defines the normalised value above.
//! - The ratio in (8) is unbounded, and divides by zero if the queue was constant. Here it is at most `ratio_max` (2),
//!   and 1 for a constant queue. `bound_ratio = false` restores the paper. Qhat stays within the buffer.
//! - The "PI" part is a pure integrator, as printed. The D part is very small, so all readings behave alike.

use aqumen_units::{Probability, Span};

use alloc::string::String;
use alloc::vec;

use crate::{
    Algorithm, AntiWindup, Bound, DefaultValue, DesignReport, Kind, MAX_LOOPS, Network, Observation, Param, ParamError,
    QueueOperatingPoint, SampledAqm, SampledLaw, Settings, Target, TcpPlant, Theory, Transfer, Unit, Value,
};

const DEFAULT_PERIOD_S: f64 = 0.05;
/// Period relative to target / capacity; 50 ms of 53.3 ms in the paper.
const PERIOD_PER_DRAIN: f64 = 15.0 / 16.0;
/// Default alpha per packet of buffer; 8e-4 at the paper's 800 packets.
const ALPHA_PER_BUFFER_PKT: f64 = 1e-6;
const DEFAULT_RATIO_MAX: f64 = 2.0;

/// Registry entry.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "paqm",
    title: "PAQM",
    summary: "proportional-integral-differential control with a predicted queue",
    reference: "Ryu: PAQM, an adaptive and proactive queue management for end-to-end TCP congestion control",
    params: &[
        Param::positive(
            "alpha",
            Unit::One,
            DefaultValue::Designed("1e-6 per packet of buffer"),
            "step of the probability for an error as large as the target",
        ),
        Param::positive(
            "period",
            Unit::Seconds,
            DefaultValue::Designed("50 ms, at most 15/16 of target / capacity"),
            "sampling period, Ts; below target / capacity",
        ),
        Param::TARGET,
        Target::DELAY,
        Param::positive("buffer", Unit::Packets, DefaultValue::Designed("the queue's limit"), "B; above the target"),
        Param {
            name: "reading",
            kind: Kind::Choice(&["X", "SUM", "DPI", "I"]),
            default: DefaultValue::Value(Value::Choice("X")),
            doc: "PI on one side of the target, else D (X); both always (SUM); D, and PI on one side (DPI); PI alone (I)",
        },
        Param::flag("bound_ratio", true, "bound the ratio of increments in the prediction"),
        Param {
            name: "ratio_max",
            kind: Kind::Number { unit: Unit::One, min: Bound::Inclusive(0.0), max: Bound::Open },
            default: DefaultValue::number(DEFAULT_RATIO_MAX),
            doc: "greatest ratio of successive increments",
        },
        AntiWindup::PARAM,
        Param::ECN,
    ],
};

/// Combination of the PI and D parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// PI while the current and the previous queue are on one side of the target, else D (the paper's text).
    X,
    /// PI and D (the paper's figure 2).
    Sum,
    /// D, plus PI while both queues are on one side of the target.
    Dpi,
    /// PI only.
    I,
}

/// The parameters of [`Paqm`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PaqmParams {
    /// Step of the probability for an error as large as the target, alpha.
    pub alpha: f64,
    /// Sampling period, Ts, seconds.
    pub period_s: f64,
    /// Target queue, packets.
    pub target: f64,
    /// Capacity of the buffer, B, packets; above the target.
    pub buffer: f64,
    /// Combination of PI and D.
    pub reading: Reading,
    /// Greatest ratio of successive increments; `None` for no bound, as in the paper.
    pub ratio_max: Option<f64>,
}

/// The law.
#[derive(Clone, Debug)]
pub struct Paqm {
    params: PaqmParams,
    p: Probability,
    /// Q_(k-1) and gamma_(k-1); `None` before the first sample.
    last: Option<(f64, f64)>,
    internals: Internals,
}

#[derive(Clone, Copy, Debug, Default)]
struct Internals {
    increment: f64,
    predicted: f64,
    same_side: bool,
}

impl PaqmParams {
    /// Defaults for `target` and `buffer` packets: alpha = 1e-6 B, 50 ms, reading X, ratio at most 2.
    pub fn new(target: f64, buffer: f64) -> Self {
        PaqmParams {
            alpha: ALPHA_PER_BUFFER_PKT * buffer,
            period_s: DEFAULT_PERIOD_S,
            target,
            buffer,
            reading: Reading::X,
            ratio_max: Some(DEFAULT_RATIO_MAX),
        }
    }
}

impl Paqm {
    /// The law with initial probability `p`.
    pub fn new(params: PaqmParams, p: Probability) -> Result<Self, ParamError> {
        Param::check_positive("alpha", params.alpha, Unit::One)?;
        Param::check_positive("period", params.period_s, Unit::Seconds)?;
        Param::check_positive("target", params.target, Unit::Packets)?;
        if !(params.buffer > params.target && params.buffer.is_finite()) {
            return Err(ParamError::relation("buffer", params.buffer, "must be above the target"));
        }
        if params.ratio_max.is_some_and(|ratio| !(ratio >= 0.0 && ratio.is_finite())) {
            return Err(ParamError::relation("ratio_max", params.ratio_max.unwrap_or(0.0), "must be at least 0"));
        }
        Ok(Paqm { params, p, last: None, internals: Internals::default() })
    }

    fn from_settings(settings: &Settings<'_>, network: &Network) -> Result<Self, ParamError> {
        let capacity_pps = network.capacity_pps();
        let target = Target::from_settings(settings, network)?;
        let drain_s = target.seconds(capacity_pps);
        let mut params =
            PaqmParams::new(target.packets(capacity_pps), settings.number("buffer").unwrap_or(network.buffer_pkts));
        params.period_s = match settings.number("period") {
            Some(period) => period,
            None => DEFAULT_PERIOD_S.min(PERIOD_PER_DRAIN * drain_s),
        };
        if let Some(alpha) = settings.number("alpha") {
            params.alpha = alpha;
        }
        params.reading = match settings.choice("reading") {
            Some("SUM") => Reading::Sum,
            Some("DPI") => Reading::Dpi,
            Some("I") => Reading::I,
            _ => Reading::X,
        };
        params.ratio_max = match (settings.flag("bound_ratio"), settings.number("ratio_max")) {
            (Some(false), Some(ratio)) => {
                return Err(ParamError::relation("ratio_max", ratio, "has no effect with bound_ratio = false"));
            }
            (Some(false), None) => None,
            (_, ratio) => Some(ratio.unwrap_or(DEFAULT_RATIO_MAX)),
        };
        Paqm::new(params, Probability::ZERO)
    }
}

impl SampledAqm<Paqm> {
    pub(crate) fn from_settings(settings: &Settings<'_>, network: &Network) -> Result<Self, ParamError> {
        Ok(SampledAqm::with_settings(Paqm::from_settings(settings, network)?, settings, network))
    }
}

impl SampledLaw for Paqm {
    fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
        [Some(Span::from_secs_f64(self.params.period_s)), None]
    }

    fn step(&mut self, _which: usize, observation: &Observation) -> Probability {
        let PaqmParams { alpha, target, buffer, reading, ratio_max, .. } = self.params;
        let queue = observation.queue_pkts;
        let (before, grew) = self.last.unwrap_or((queue, 0.0));
        let grows = queue - before;
        // Quadratic extrapolation while the queue keeps its direction; zero counts as positive.
        let ratio = if grew != 0.0 && (grows >= 0.0) == (grew >= 0.0) { grows / grew } else { 1.0 };
        let ratio = ratio_max.map_or(ratio, |max| ratio.min(max));
        let increment = grows * ratio;
        let predicted = (queue + increment).clamp(0.0, buffer);
        let same_side = (queue > target && before > target) || (queue < target && before < target);

        let pi = || alpha * (0.5 * (queue + before) - target) / target;
        let d = || alpha * (predicted - target) / (buffer - target);
        let change = match reading {
            Reading::X if same_side => pi(),
            Reading::X => d(),
            Reading::Sum => pi() + d(),
            Reading::Dpi if same_side => pi() + d(),
            Reading::Dpi => d(),
            Reading::I => pi(),
        };
        self.p = Probability::clamp(self.p.get() + change);
        self.last = Some((queue, grows));
        self.internals = Internals { increment, predicted, same_side };
        self.p
    }

    fn initial(&self) -> Probability {
        self.p
    }

    fn integral(&self) -> Option<f64> {
        Some(self.p.get())
    }

    fn set_integral(&mut self, p: f64) -> Probability {
        self.p = Probability::clamp(p);
        self.p
    }

    fn take_over(&mut self, old: &Self) {
        (self.p, self.last, self.internals) = (old.p, old.last, old.internals);
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("predicted_increment", self.internals.increment);
        visit("predicted_queue", self.internals.predicted);
        visit("same_side", f64::from(u8::from(self.internals.same_side)));
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        let PaqmParams { alpha, period_s, target, buffer, reading, ratio_max } = self.params;
        visit("alpha", Value::Number(alpha));
        visit("period", Value::Number(period_s));
        visit("target", Value::Number(target));
        visit("buffer", Value::Number(buffer));
        visit("reading", Value::Choice(reading.name()));
        visit("bound_ratio", Value::Flag(ratio_max.is_some()));
        if let Some(ratio) = ratio_max {
            visit("ratio_max", Value::Number(ratio));
        }
    }

    fn theory(&self) -> &dyn Theory {
        self
    }
}

impl Reading {
    const fn name(self) -> &'static str {
        match self {
            Reading::X => "X",
            Reading::Sum => "SUM",
            Reading::Dpi => "DPI",
            Reading::I => "I",
        }
    }
}

impl Theory for Paqm {
    /// Transfer function on one side of the target: integrator alpha (1 + z^-1) / (2 target) over 1 - z^-1, plus the D
    /// part alpha (2 - z^-1) / (B - target) in the readings that add it. At the target the law switches and has no
    /// slope.
    fn linear(&self, _at: &QueueOperatingPoint) -> Option<Transfer> {
        let PaqmParams { alpha, target, buffer, reading, .. } = self.params;
        let integral = 0.5 * alpha / target;
        let adds = matches!(reading, Reading::Sum | Reading::Dpi);
        let extrapolated = if adds { alpha / (buffer - target) } else { 0.0 };
        Some(Transfer {
            num: vec![integral + 2.0 * extrapolated, integral - extrapolated],
            den: vec![1.0, -1.0],
            period_s: Some(self.periods()[0]?.as_secs_f64()),
        })
    }

    fn gain(&self) -> Option<&'static str> {
        Some("alpha")
    }

    fn derive(&self, _at: &QueueOperatingPoint, _plant: &TcpPlant, report: &mut dyn DesignReport) {
        report.warn(String::from(
            "PAQM integrates alone and crosses over far below a round trip: packets were seen to swing from a quarter to a \
             half of the gain margin on",
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of p for these queues; alpha = 0.01, target 100, buffer 300.
    fn changes(reading: Reading, ratio_max: Option<f64>, queues: &[f64]) -> alloc::vec::Vec<f64> {
        let params = PaqmParams { alpha: 0.01, reading, ratio_max, ..PaqmParams::new(100.0, 300.0) };
        let mut law = Paqm::new(params, Probability::clamp(0.5)).unwrap();
        let mut before = 0.5;
        let mut step = |&queue_pkts: &f64| {
            let p = law.step(0, &Observation { queue_pkts, ..Observation::default() }).get();
            let change = p - before;
            before = p;
            change
        };
        queues.iter().map(&mut step).collect()
    }

    fn near(got: f64, expected: f64) {
        assert!((got - expected).abs() < 1e-12, "{got}, expected {expected}");
    }

    #[test]
    fn pi_acts_on_one_side_of_the_target_and_d_at_a_crossing() {
        // 110, 130: mean 120, 0.01 * 20 / 100. Then 90: gamma = -40 after +20, so Qhat = 50: 0.01 * -50 / 200.
        let x = changes(Reading::X, Some(2.0), &[110.0, 130.0, 90.0]);
        near(x[1], 0.002);
        near(x[2], -0.0025);
        // SUM at 130: gamma = 20 after 0, Qhat = 150: + 0.01 * 50 / 200. DPI: equal there, and D only at the crossing.
        near(changes(Reading::Sum, Some(2.0), &[110.0, 130.0])[1], 0.002 + 0.0025);
        let dpi = changes(Reading::Dpi, Some(2.0), &[110.0, 130.0, 90.0]);
        near(dpi[1], 0.002 + 0.0025);
        near(dpi[2], -0.0025);
        // I at the crossing: mean 110: 0.01 * 10 / 100.
        near(changes(Reading::I, Some(2.0), &[110.0, 130.0, 90.0])[2], 0.001);
    }

    #[test]
    fn a_queue_at_the_target_keeps_p() {
        assert!(changes(Reading::X, Some(2.0), &[100.0; 5]).iter().all(|&change| change == 0.0));
    }

    #[test]
    fn the_ratio_of_increments_can_be_bounded() {
        // 60, 61, 101: increments 1, 40. The ratio of 40 predicts 101 + 1600, clamped to the buffer of 300; bounded:
        // 181.
        near(changes(Reading::X, Some(2.0), &[60.0, 61.0, 101.0])[2], 0.01 * 81.0 / 200.0);
        near(changes(Reading::X, None, &[60.0, 61.0, 101.0])[2], 0.01);
        // After a constant queue the ratio is 1: 60, 60, 101 predicts 142.
        near(changes(Reading::X, None, &[60.0, 60.0, 101.0])[2], 0.01 * 42.0 / 200.0);
    }

    #[test]
    fn errors_name_the_invalid_parameter() {
        let good = PaqmParams::new(200.0, 800.0);
        assert!((good.alpha - 8e-4).abs() < 1e-18);
        let refused = |params| Paqm::new(params, Probability::ZERO).unwrap_err().param;
        assert_eq!(refused(PaqmParams { buffer: 200.0, ..good }), "buffer");
        assert_eq!(refused(PaqmParams { target: 0.0, ..good }), "target");
        assert_eq!(refused(PaqmParams { alpha: f64::NAN, ..good }), "alpha");
        assert_eq!(refused(PaqmParams { ratio_max: Some(-1.0), ..good }), "ratio_max");
        assert_eq!(refused(PaqmParams { period_s: 0.0, ..good }), "period");
    }
}
