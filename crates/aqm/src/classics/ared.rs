//! ARED: RED that adapts its maximum probability (Floyd, Gummadi, Shenker 2001).
//!
//! RED's equilibrium is where its curve meets the load, so its queue depends on the load. ARED adapts the curve: while
//! the average is too high, max_p grows by a small step; while it is too low, max_p shrinks by a factor. The average
//! then stays in the middle between the thresholds for any load.
//!
//! ```text
//!                    avg < min_th + 0.4 D: max_p *= beta          D = max_th - min_th
//! every interval ──  otherwise unchanged
//!                    avg > max_th - 0.4 D: max_p += min(alpha, max_p / 4)
//! ```
//!
//! Deviations:
//! - Thresholds follow from the target as in RED: min_th = target / 2, max_th = 3 min_th, so that the middle is the
//!   target. `thresholds = ns2-auto` is the paper's rule for a target delay.
//! - `ns2_stale_gentle` off: ns-2 computes the steep part of the curve, above max_th, only once; after a change of
//!   max_p its probability jumps at max_th.
//! - As in ns-2, the interval runs from the last change of max_p, and max_p may pass `top` or `bottom` once.

use aqumen_units::{Instant, Probability, Span};

use crate::{
    Algorithm, Aqm, Cx, DefaultValue, Draw, Hooks, Kind, MAX_LOOPS, MaxPSteps, Network, Observation, Packet, Param,
    ParamError, Red, RedAverage, RedCurve, RedParams, SampledLaw, Settings, Theory, Totals, Unit, Value, Verdict,
    classics::red,
};

const DEFAULT_ALPHA: f64 = 0.01;
const DEFAULT_BETA: f64 = 0.9;
const DEFAULT_INTERVAL_S: f64 = 0.5;
const DEFAULT_TOP: f64 = 0.5;
const DEFAULT_BOTTOM: f64 = 0.01;
/// ns-2: over the link's rate in bit/s, the inverse of the number of 1000-byte packets per 0.1 s.
const NS2_BOTTOM_BPS: f64 = 80_000.0;
/// Fraction of the range between the thresholds, at each end, in which max_p changes.
const ADAPTING_FRACTION: f64 = 0.4;
/// Largest step upwards relative to max_p.
const STEP_MAX: f64 = 0.25;

/// Registry entry.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "ared",
    title: "ARED",
    summary: "RED that adapts its maximum probability to hold the average queue in the middle of its thresholds",
    reference: "Floyd, Gummadi, Shenker: Adaptive RED: an algorithm for increasing the robustness of RED's AQM, 2001; ns-2.35",
    params: &red::family::<{ red::PARAMS.len() + MORE.len() }>(WEIGHT_RULE, &MORE),
};

/// The paper's rule: a time constant of one second.
const WEIGHT_RULE: &str = "ns2-1s";

const MORE: [Param; 7] = [
    Param::positive("alpha", Unit::One, DefaultValue::number(DEFAULT_ALPHA), "largest step of max_p upwards"),
    Param::fraction("beta", DefaultValue::number(DEFAULT_BETA), "factor of max_p downwards"),
    Param::fraction("top", DefaultValue::number(DEFAULT_TOP), "max_p grows only below this"),
    Param::fraction("bottom", DefaultValue::Designed("by the rule `bottom_rule`"), "max_p shrinks only above this"),
    Param {
        name: "bottom_rule",
        kind: Kind::Choice(&["fixed", "ns2-auto"]),
        default: DefaultValue::Value(Value::Choice("fixed")),
        doc: "rule for bottom: 0.01, or ns-2's min(0.01, 80000 / C), C the link's rate in bit/s: one signal in the window of a \
              single flow with packets of 1000 bytes and a round trip of 0.1 s",
    },
    Param::positive(
        "interval",
        Unit::Seconds,
        DefaultValue::number(DEFAULT_INTERVAL_S),
        "least time between two changes",
    ),
    STALE_GENTLE,
];

/// Parameter of both adaptive variants of RED.
pub(crate) const STALE_GENTLE: Param =
    Param::flag("ns2_stale_gentle", false, "keep the initial curve above max_th, as ns-2 does");

/// Rule by which max_p follows the average queue.
pub trait MaxPRule {
    /// New max_p, if it changes; `average` is in the unit of `curve`.
    fn adapt(&mut self, average: f64, curve: &RedCurve) -> Option<f64>;

    /// Visits the current parameters, in the order of the registry entry.
    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>));

    /// Copies the state of the previous rule `old`, without its parameters.
    fn take_over(&mut self, old: &Self)
    where
        Self: Sized,
    {
        let _ = old;
    }

    /// The rule if it is Floyd's, which holds the average in the middle between the thresholds.
    fn floyd(&self) -> Option<&FloydRule> {
        None
    }
}

/// Floyd's rule: additive increase, multiplicative decrease.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FloydRule {
    /// Largest step upwards, above 0.
    pub alpha: f64,
    /// Factor downwards, in [0, 1].
    pub beta: f64,
    /// max_p grows only below this.
    pub top: f64,
    /// max_p shrinks only above this.
    pub bottom: f64,
}

/// RED whose max_p follows a rule, packet by packet.
#[derive(Clone, Copy, Debug)]
pub struct AdaptiveRed<R> {
    red: Red,
    rule: R,
    /// Least time between two changes; `None` without a minimum.
    interval: Option<Span>,
    last_change: Instant,
    stale_gentle: bool,
}

/// Adaptive RED of Floyd, Gummadi and Shenker.
pub type Ared = AdaptiveRed<FloydRule>;

/// Adaptive RED as a sampled law, for models without packets. Each sample updates the average; the rule applies at
/// every n-th sample.
#[derive(Clone, Copy, Debug)]
pub struct AdaptiveRedLaw<R> {
    curve: RedCurve,
    average: RedAverage,
    rule: R,
    period: Span,
    every: u32,
    samples: u32,
}

impl Default for FloydRule {
    fn default() -> Self {
        FloydRule { alpha: DEFAULT_ALPHA, beta: DEFAULT_BETA, top: DEFAULT_TOP, bottom: DEFAULT_BOTTOM }
    }
}

impl MaxPRule for FloydRule {
    fn adapt(&mut self, average: f64, curve: &RedCurve) -> Option<f64> {
        let max_p = curve.max_p();
        let part = ADAPTING_FRACTION * (curve.max_th() - curve.min_th());
        if average < curve.min_th() + part && max_p > self.bottom {
            Some(max_p * self.beta)
        } else if average > curve.max_th() - part && max_p < self.top {
            Some(max_p + self.alpha.min(STEP_MAX * max_p))
        } else {
            None
        }
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        visit("alpha", Value::Number(self.alpha));
        visit("beta", Value::Number(self.beta));
        visit("top", Value::Number(self.top));
        visit("bottom", Value::Number(self.bottom));
    }

    fn floyd(&self) -> Option<&FloydRule> {
        Some(self)
    }
}

impl FloydRule {
    /// Relative steps up and down at `max_p`; `None` at an end of the range.
    fn steps(&self, max_p: f64) -> Option<[f64; 2]> {
        let inside = max_p > 1.001 * self.bottom && max_p < 0.999 * self.top;
        inside.then(|| [(self.alpha / max_p).min(STEP_MAX), 1.0 - self.beta])
    }
}

impl<R: MaxPRule> AdaptiveRed<R> {
    /// `red` with a max_p that follows `rule` at each arrival, at least `interval` after the last change or the epoch.
    /// With `stale_gentle` the curve above max_th never changes.
    pub fn new(red: Red, rule: R, interval: Option<Span>, stale_gentle: bool) -> Self {
        AdaptiveRed { red, rule, interval, last_change: Instant::ZERO, stale_gentle }
    }

    /// The RED inside.
    pub const fn red(&self) -> &Red {
        &self.red
    }

    /// The rule.
    pub const fn rule(&self) -> &R {
        &self.rule
    }

    /// Current max_p.
    pub fn max_p(&self) -> f64 {
        self.red.curve().max_p()
    }

    #[inline]
    fn adapt(&mut self, now: Instant) {
        if self.interval.is_some_and(|interval| now.saturating_since(self.last_change) <= interval) {
            return;
        }
        if let Some(max_p) = self.rule.adapt(self.red.average(), self.red.curve()) {
            self.set_max_p(max_p);
            self.last_change = now;
        }
    }

    fn set_max_p(&mut self, max_p: f64) {
        let curve = self.red.curve();
        self.red.set_curve(if self.stale_gentle {
            curve.with_max_p_below_max_th(max_p)
        } else {
            curve.with_max_p(max_p)
        });
    }
}

impl Ared {
    pub(crate) fn from_settings(settings: &Settings<'_>, network: &Network) -> Result<Self, ParamError> {
        let rule = FloydRule {
            alpha: settings.number("alpha").unwrap_or(DEFAULT_ALPHA),
            beta: settings.number("beta").unwrap_or(DEFAULT_BETA),
            top: settings.number("top").unwrap_or(DEFAULT_TOP),
            bottom: settings.number("bottom").unwrap_or_else(|| match settings.choice("bottom_rule") {
                Some("ns2-auto") => DEFAULT_BOTTOM.min(NS2_BOTTOM_BPS / network.link_rate.as_bps() as f64),
                _ => DEFAULT_BOTTOM,
            }),
        };
        if rule.bottom > rule.top {
            return Err(ParamError::relation("bottom", rule.bottom, "must not be above top"));
        }
        let interval = Span::from_secs_f64(settings.number("interval").unwrap_or(DEFAULT_INTERVAL_S));
        let stale_gentle = settings.flag(STALE_GENTLE.name).unwrap_or(false);
        let red = Red::design(settings, network, WEIGHT_RULE)?;
        Ok(AdaptiveRed::new(red, rule, Some(interval), stale_gentle))
    }
}

impl<R: MaxPRule> Aqm for AdaptiveRed<R> {
    #[inline]
    fn on_arrival<D: Draw>(&mut self, packet: &Packet, cx: &mut Cx<'_, D>) -> Verdict {
        self.red.update_average(cx);
        self.adapt(cx.now);
        self.red.decide(packet, cx)
    }

    fn on_overflow<D: Draw>(&mut self, packet: &Packet, cx: &mut Cx<'_, D>) {
        self.red.on_overflow(packet, cx);
    }

    fn on_idle(&mut self, now: Instant) {
        self.red.on_idle(now);
    }

    fn hooks(&self) -> Hooks {
        self.red.hooks()
    }

    fn probability(&self) -> Probability {
        self.red.probability()
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.red.observe(visit);
        visit("max_p", self.max_p());
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        self.red.settings(visit);
        self.rule.settings(visit);
        if let Some(interval) = self.interval {
            visit("interval", Value::seconds(interval));
        }
        visit(STALE_GENTLE.name, Value::Flag(self.stale_gentle));
    }

    fn take_over(&mut self, old: Option<&Self>, now: Instant, totals: &Totals) {
        let Some(old) = old else { return };
        self.red.take_over(Some(&old.red), now, totals);
        self.rule.take_over(&old.rule);
        self.last_change = old.last_change;
        // max_p is state of the rule, not a parameter.
        self.set_max_p(old.max_p());
    }

    fn theory(&self) -> &dyn Theory {
        self
    }
}

impl<R: MaxPRule> AdaptiveRedLaw<R> {
    /// `curve` over an average with time constant `time_s`, sampled every `period`; `rule` applies at every `every`-th
    /// sample (at least 1).
    pub fn new(curve: RedCurve, time_s: f64, rule: R, period: Span, every: u32) -> Self {
        let average = RedAverage::new(RedAverage::weight_for(time_s, 1.0 / period.as_secs_f64()));
        AdaptiveRedLaw { curve, average, rule, period, every: every.max(1), samples: 0 }
    }
}

impl<R: MaxPRule> SampledLaw for AdaptiveRedLaw<R> {
    fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
        [Some(self.period), None]
    }

    fn step(&mut self, _which: usize, observation: &Observation) -> Probability {
        self.average.update(observation.queue_pkts);
        self.samples += 1;
        if self.samples == self.every {
            self.samples = 0;
            if let Some(max_p) = self.rule.adapt(self.average.value(), &self.curve) {
                self.curve = self.curve.with_max_p(max_p);
            }
        }
        Probability::clamp(self.curve.probability(self.average.value()))
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("average_queue", self.average.value());
        visit("max_p", self.curve.max_p());
    }
}

impl<R: MaxPRule> Theory for AdaptiveRed<R> {
    fn not_linearizable(&self) -> Option<&'static str> {
        self.rule.floyd().is_none().then_some("its max_p is constant for any average between the thresholds")
    }

    // The rule keeps max_p while the average is in the middle between the thresholds: there ARED is RED.
    fn adaptation_center_pkts(&self) -> Option<f64> {
        let curve = &self.red.params().curve;
        self.rule.floyd().map(|_| 0.5 * (curve.min_th() + curve.max_th()))
    }

    fn max_p_steps(&self, max_p: f64) -> Option<MaxPSteps> {
        let (curve, interval) = (&self.red.params().curve, self.interval?);
        let [up, down] = self.rule.floyd()?.steps(max_p)?;
        let band_half_pkts = (0.5 - ADAPTING_FRACTION) * (curve.max_th() - curve.min_th());
        Some(MaxPSteps { band_half_pkts, up, down, interval_s: interval.as_secs_f64() })
    }
}

impl Ared {
    /// RED with the max_p at which signal probability `p` holds the average in the middle between the thresholds.
    pub(crate) fn adapted(&self, p: f64) -> Option<Red> {
        let (params, rule, middle) = (self.red.params(), &self.rule, self.adaptation_center_pkts()?);
        let with = |max_p: f64| RedParams { curve: params.curve.with_max_p(max_p), ..*params };
        let (mut low, mut high) = (rule.bottom.min(params.curve.max_p()), rule.top.max(params.curve.max_p()));
        for _ in 0..100 {
            let max_p = 0.5 * (low + high);
            if with(max_p).law().probability(middle) < p {
                low = max_p;
            } else {
                high = max_p;
            }
        }
        Red::new(with(high)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(max_p: f64) -> RedCurve {
        RedCurve::new(50.0, 150.0, max_p, true).unwrap()
    }

    #[test]
    fn max_p_changes_only_outside_the_middle_fifth() {
        // D = 100: max_p shrinks below 50 + 40 = 90 and grows above 150 - 40 = 110.
        let mut rule = FloydRule::default();
        assert_eq!(rule.adapt(89.0, &curve(0.1)), Some(0.1 * 0.9));
        assert_eq!(rule.adapt(90.0, &curve(0.1)), None);
        assert_eq!(rule.adapt(110.0, &curve(0.1)), None);
        assert_eq!(rule.adapt(111.0, &curve(0.1)), Some(0.1 + 0.01));
    }

    #[test]
    fn a_small_max_p_grows_by_a_quarter_of_itself() {
        // 0.02 / 4 = 0.005 is below alpha = 0.01.
        assert_eq!(FloydRule::default().adapt(150.0, &curve(0.02)), Some(0.025));
    }

    #[test]
    fn max_p_stops_at_top_and_bottom() {
        let mut rule = FloydRule::default();
        assert_eq!(rule.adapt(150.0, &curve(0.5)), None);
        assert_eq!(rule.adapt(0.0, &curve(0.01)), None);
    }

    #[test]
    fn a_stale_gentle_curve_jumps_at_max_th_after_a_change_of_max_p() {
        // max_p from 0.1 to 0.4: 0.4 just below max_th; at max_th ns-2 has the old 0.1.
        let (ours, ns2) = (curve(0.1).with_max_p(0.4), curve(0.1).with_max_p_below_max_th(0.4));
        assert!((ours.probability(149.999) - 0.4).abs() < 1e-4 && (ns2.probability(149.999) - 0.4).abs() < 1e-4);
        assert_eq!((ours.probability(150.0), ns2.probability(150.0)), (0.4, 0.1));
        // Both end at one.
        assert!((ours.probability(300.0) - 1.0).abs() < 1e-12 && (ns2.probability(300.0) - 1.0).abs() < 1e-12);
    }

    fn network() -> Network {
        Network {
            capacity: aqumen_units::Rate::from_bps(10_000_000),
            flows: 100.0,
            base_rtt_s: 0.2,
            target_pkts: 100.0,
            packet_bytes: 1000.0,
            link_rate: aqumen_units::Rate::from_bps(10_000_000),
            buffer_pkts: 300.0,
        }
    }

    #[test]
    fn a_bottom_above_the_top_is_refused() {
        let given = [("bottom", Value::Number(0.6))];
        let settings = Settings::check(&given, ALGORITHM.params).unwrap();
        assert_eq!(Ared::from_settings(&settings, &network()).unwrap_err().param, "bottom");
    }

    #[test]
    fn theory_finds_the_equilibrium_max_p_between_bottom_and_top() {
        let given = [("bottom", Value::Number(0.02)), ("top", Value::Number(0.4))];
        let settings = Settings::check(&given, ALGORITHM.params).unwrap();
        let ared = Ared::from_settings(&settings, &network()).unwrap();
        assert_eq!((ared.rule.bottom, ared.rule.top), (0.02, 0.4));
        assert_eq!(ared.not_linearizable(), None);
        // Probabilities that need a max_p beyond its range give top or bottom.
        let middle = ared.adaptation_center_pkts().unwrap();
        assert_eq!(middle, 0.5 * (ared.red().curve().min_th() + ared.red().curve().max_th()));
        let adapted = |p: f64| *ared.adapted(p).unwrap().params();
        assert!((adapted(0.1).law().probability(middle) - 0.1).abs() < 1e-9);
        assert!((adapted(0.9).curve.max_p() - 0.4).abs() < 1e-9 && (adapted(1e-5).curve.max_p() - 0.02).abs() < 1e-9);
    }

    #[test]
    fn the_sampled_law_applies_its_rule_at_every_nth_sample() {
        let period = Span::from_millis(20);
        // The average equals the queue; above 110 max_p grows by .01 from .1.
        let mut law = AdaptiveRedLaw::new(curve(0.1), 1e-9, FloydRule::default(), period, 3);
        assert_eq!(law.periods(), [Some(period), None]);
        let observation = Observation { queue_pkts: 120.0, ..Observation::default() };
        for max_p in [0.1, 0.1, 0.11, 0.11, 0.11, 0.12, 0.12] {
            law.step(0, &observation);
            assert!((law.curve.max_p() - max_p).abs() < 1e-12, "{}", law.curve.max_p());
        }
    }
}
