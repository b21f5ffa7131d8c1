//! Threshold function F of the AAQM paper, eq. (18), on top of any single-queue AQM: beyond a threshold of the buffer
//! the signal probability rises to 1, whatever the algorithm decides.
//!
//! ```text
//! F(x) = 0 below th;  (x - th) / (Pi - th) from th on;  1 from Pi on         x packets waiting, Pi the buffer's limit
//! p_mark = max(P, F_s(x))                                                    per packet, s its traffic class
//! ```
//!
//! The threshold is fixed, has another value for some time, or adapts once per second to the loss of each class: a loss
//! above P_target raises it by 0.05 Pi, a loss below P_target / 2 lowers it, within 0.25 to 0.95 Pi.
//!
//! The algorithm decides first, with its own probability P. A packet that it passes is then signalled with probability
//! (F - P) / (1 - P), which gives max(P, F) in total. F also adds to algorithms whose decisions are not Bernoulli
//! trials with their stated probability (RED spreads signals, CoDel decides at the head).
//!
//! Deviations: the paper calls Pi a probability, which cannot be compared with a queue; here it is the buffer's limit.
//! The paper says of the adaptation only that th is "changed based on the loss probability".

use alloc::{boxed::Box, vec::Vec};
use core::fmt;

use aqumen_units::{Instant, Probability, Span};

use crate::{
    Aqm, Bound, Cx, DefaultValue, Draw, Hooks, Kind, Packet, Param, ParamError, QueueView, Requirement, Settings,
    SignalProcess, Theory, Totals, Unit, Value, Verdict,
};

/// Period of the adaptation.
const ADAPT_PERIOD: Span = Span::from_secs(1);
/// Step of the adaptation, as a fraction of the buffer.
const ADAPT_STEP: f64 = 0.05;
/// Range of the adaptation, as fractions of the buffer.
const ADAPT_RANGE: (f64, f64) = (0.25, 0.95);
const DEFAULT_LOSS: f64 = 0.01;
const CLASSES: usize = 256;

/// Additional parameters of every single-queue algorithm. `threshold` switches the function on.
pub const PARAMS: &[Param] = &[
    Param::fraction(
        "threshold",
        DefaultValue::Designed("none: the function is off"),
        "fraction of the buffer from which the signal probability rises to 1, th / Pi",
    ),
    Param::fraction(
        "threshold_other",
        DefaultValue::Designed("none"),
        "the threshold between threshold_from and threshold_until",
    ),
    moment("threshold_from", DefaultValue::number(0.0), "when threshold_other begins"),
    moment("threshold_until", DefaultValue::Designed("never"), "when threshold_other ends"),
    Param::flag("threshold_adapt", false, "adapt the threshold to the loss of each traffic class, from `threshold` on"),
    Param {
        name: "threshold_loss",
        kind: Kind::Number { unit: Unit::One, min: Bound::Exclusive(0.0), max: Bound::Inclusive(1.0) },
        default: DefaultValue::number(DEFAULT_LOSS),
        doc: "target loss of the adaptation, P_target",
    },
];

const fn moment(name: &'static str, default: DefaultValue, doc: &'static str) -> Param {
    let kind = Kind::Number { unit: Unit::Seconds, min: Bound::Inclusive(0.0), max: Bound::Inclusive(1e9) };
    Param { name, kind, default, doc }
}

/// Whether `name` is a parameter of the threshold function.
pub(crate) fn is_threshold_param(name: &str) -> bool {
    PARAMS.iter().any(|param| param.name == name)
}

/// F(x), eq. (18), with threshold `th` and limit `pi` in the unit of `x`. A threshold at or above the limit gives a
/// step.
pub fn signal_probability(x: f64, th: f64, pi: f64) -> f64 {
    if x >= pi {
        1.0
    } else if x < th {
        0.0
    } else {
        (x - th) / (pi - th)
    }
}

/// Threshold as a fraction of the buffer in [0, 1].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// Constant.
    Fixed(f64),
    /// Another value for some time.
    Scheduled {
        /// Value before and after.
        regular: f64,
        /// Value in between.
        other: f64,
        /// Start of the other value.
        from: Instant,
        /// End of the other value.
        until: Instant,
    },
    /// Adapts to the loss of each traffic class.
    Adapting {
        /// Initial threshold.
        initial: f64,
        /// Target loss, P_target.
        loss: f64,
    },
}

/// An algorithm with the threshold function on top.
#[derive(Clone, Debug)]
pub struct ThresholdAqm<A> {
    inner: A,
    ecn: bool,
    threshold: Threshold,
    adaptation: Option<Adaptation>,
    /// F at the last arrival.
    last: f64,
}

#[derive(Clone, Debug)]
struct Adaptation {
    loss: f64,
    due: Instant,
    classes: Box<[Class]>,
}

#[derive(Clone, Copy, Debug)]
struct Class {
    threshold: f64,
    arrivals: u32,
    lost: u32,
}

impl<A: Aqm> ThresholdAqm<A> {
    /// `inner` with the function on top. Its signals are marks for ECN-capable packets if `inner` has `ecn` on, or no
    /// such parameter.
    pub fn new(inner: A, threshold: Threshold) -> Self {
        let mut ecn = true;
        inner.settings(&mut |name, value| {
            if let ("ecn", Value::Flag(on)) = (name, value) {
                ecn = on;
            }
        });
        let adaptation = match threshold {
            Threshold::Adapting { initial, loss } => {
                let class = Class { threshold: initial, arrivals: 0, lost: 0 };
                Some(Adaptation {
                    loss,
                    due: Instant::ZERO + ADAPT_PERIOD,
                    classes: alloc::vec![class; CLASSES].into(),
                })
            }
            Threshold::Fixed(_) | Threshold::Scheduled { .. } => None,
        };
        ThresholdAqm { inner, ecn, threshold, adaptation, last: 0.0 }
    }

    /// The algorithm.
    pub const fn inner(&self) -> &A {
        &self.inner
    }

    /// Threshold for `class` at `now`, as a fraction of the buffer.
    pub fn threshold(&self, class: u8, now: Instant) -> f64 {
        match (self.threshold, &self.adaptation) {
            (_, Some(adaptation)) => adaptation.classes[class as usize].threshold,
            (Threshold::Scheduled { other, from, until, .. }, _) if from <= now && now < until => other,
            (Threshold::Fixed(regular) | Threshold::Scheduled { regular, .. }, _) => regular,
            (Threshold::Adapting { initial, .. }, None) => initial,
        }
    }

    fn count_loss(&mut self, packet: &Packet) {
        if let Some(adaptation) = &mut self.adaptation {
            adaptation.classes[packet.class as usize].lost += 1;
        }
    }
}

/// Occupied fraction of the buffer, in packets or in bytes, whichever is larger.
fn occupancy(queue: &QueueView<'_>) -> f64 {
    let packets = f64::from(queue.packets) / f64::from(queue.limit.packets);
    let bytes = queue.bytes as f64 / queue.limit.bytes.0 as f64;
    // A limit of 0 bytes gives 0 / 0; the packets decide then.
    if packets > bytes || bytes.is_nan() { packets } else { bytes }
}

impl<A: Aqm> Aqm for ThresholdAqm<A> {
    fn take_over(&mut self, old: Option<&Self>, now: Instant, totals: &Totals) {
        self.inner.take_over(old.map(|old| &old.inner), now, totals);
        if let Some(adaptation) = &mut self.adaptation {
            adaptation.due = now.saturating_add(ADAPT_PERIOD);
            if let Some(before) = old.and_then(|old| old.adaptation.as_ref()) {
                adaptation.due = before.due;
                adaptation.classes.clone_from(&before.classes);
            }
        }
    }

    fn on_arrival<R: Draw>(&mut self, packet: &Packet, cx: &mut Cx<'_, R>) -> Verdict {
        if let Some(adaptation) = &mut self.adaptation {
            adaptation.classes[packet.class as usize].arrivals += 1;
        }
        let mut verdict = self.inner.on_arrival(packet, cx);
        if cx.queue.is_full(packet) {
            return verdict;
        }
        self.last = signal_probability(occupancy(&cx.queue), self.threshold(packet.class, cx.now), 1.0);
        let p = self.inner.probability().get();
        if verdict == Verdict::Pass && self.last > p && cx.rng.uniform() < (self.last - p) / (1.0 - p) {
            verdict = Verdict::signal(packet, self.ecn);
        }
        if let Verdict::Drop(_) = verdict {
            self.count_loss(packet);
        }
        verdict
    }

    fn on_overflow<R: Draw>(&mut self, packet: &Packet, cx: &mut Cx<'_, R>) {
        self.count_loss(packet);
        self.inner.on_overflow(packet, cx);
    }

    fn on_dequeue<R: Draw>(&mut self, packet: &Packet, sojourn: Span, cx: &mut Cx<'_, R>) -> Verdict {
        let verdict = self.inner.on_dequeue(packet, sojourn, cx);
        if let Verdict::Drop(_) = verdict {
            self.count_loss(packet);
        }
        verdict
    }

    fn on_departure(&mut self, now: Instant) {
        self.inner.on_departure(now);
    }

    fn on_idle(&mut self, now: Instant) {
        self.inner.on_idle(now);
    }

    fn next_timer(&self) -> Option<Instant> {
        let adapts = self.adaptation.as_ref().map(|adaptation| adaptation.due);
        [self.inner.next_timer(), adapts].into_iter().flatten().min()
    }

    fn on_timer<R: Draw>(&mut self, cx: &mut Cx<'_, R>) {
        self.inner.on_timer(cx);
        if let Some(adaptation) = &mut self.adaptation
            && adaptation.due <= cx.now
        {
            adaptation.adapt(cx.now);
        }
    }

    fn probability(&self) -> Probability {
        Probability::clamp(self.inner.probability().get().max(self.last))
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.inner.observe(visit);
        visit("threshold_probability", self.last);
        if let Some(adaptation) = &self.adaptation {
            visit("threshold", adaptation.classes[0].threshold);
        }
    }

    fn hooks(&self) -> Hooks {
        self.inner.hooks()
    }

    fn notes(&self, tell: &mut dyn FnMut(fmt::Arguments<'_>)) {
        self.inner.notes(tell);
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        self.inner.settings(visit);
        match self.threshold {
            Threshold::Fixed(share) => visit("threshold", Value::Number(share)),
            Threshold::Scheduled { regular, other, from, until } => {
                visit("threshold", Value::Number(regular));
                visit("threshold_other", Value::Number(other));
                visit("threshold_from", Value::Number(from.as_nanos() as f64 / 1e9));
                if until < Instant::from_nanos(u64::MAX) {
                    visit("threshold_until", Value::Number(until.as_nanos() as f64 / 1e9));
                }
            }
            Threshold::Adapting { initial, loss } => {
                visit("threshold", Value::Number(initial));
                visit("threshold_adapt", Value::Flag(true));
                visit("threshold_loss", Value::Number(loss));
            }
        }
    }

    fn theory(&self) -> &dyn Theory {
        self
    }
}

impl Adaptation {
    fn adapt(&mut self, now: Instant) {
        let periods = (now - self.due).as_nanos() / ADAPT_PERIOD.as_nanos() + 1;
        self.due = self.due.saturating_add(ADAPT_PERIOD.saturating_mul(periods));
        for class in self.classes.iter_mut().filter(|class| class.arrivals > 0) {
            let loss = f64::from(class.lost) / f64::from(class.arrivals);
            // "Increasing th decreases loss": most losses are early drops.
            if loss > self.loss {
                class.threshold += ADAPT_STEP;
            } else if loss < 0.5 * self.loss {
                class.threshold -= ADAPT_STEP;
            }
            class.threshold = class.threshold.clamp(ADAPT_RANGE.0, ADAPT_RANGE.1);
            (class.arrivals, class.lost) = (0, 0);
        }
    }
}

impl Threshold {
    /// Threshold that `values` describe, other parameters ignored. `None` without one.
    pub(crate) fn from_values(values: &[(&str, Value<'_>)]) -> Result<Option<Self>, ParamError> {
        let own: Vec<_> = values.iter().copied().filter(|(name, _)| is_threshold_param(name)).collect();
        if own.is_empty() {
            return Ok(None);
        }
        Settings::check(&own, PARAMS).and_then(|settings| Threshold::from_settings(&settings)).map(Some)
    }

    fn from_settings(settings: &Settings<'_>) -> Result<Self, ParamError> {
        let regular = settings.number("threshold");
        let needs = |name: &str, words| {
            let given = settings.number(name).map(Value::Number).or(settings.flag(name).map(Value::Flag));
            // A flag that is not given is false.
            let value = given.unwrap_or(Value::Flag(false));
            Err(ParamError::new(name, value, Requirement::Relation(words)))
        };
        let other = settings.number("threshold_other");
        for name in ["threshold_from", "threshold_until"] {
            if settings.has(name) && other.is_none() {
                return needs(name, "needs threshold_other");
            }
        }
        let adapts = settings.flag("threshold_adapt").unwrap_or(false);
        match (regular, other, adapts) {
            (_, Some(_), true) => needs("threshold_other", "has no effect with threshold_adapt"),
            (None, Some(_), _) => needs("threshold_other", "needs threshold"),
            (_, None, true) => Ok(Threshold::Adapting {
                initial: regular.unwrap_or(ADAPT_RANGE.1),
                loss: settings.number("threshold_loss").unwrap_or(DEFAULT_LOSS),
            }),
            _ if settings.has("threshold_loss") => needs("threshold_loss", "needs threshold_adapt"),
            (Some(regular), None, false) => Ok(Threshold::Fixed(regular)),
            (Some(regular), Some(other), false) => {
                let at = |name| settings.number(name).map(|seconds| Instant::ZERO + Span::from_secs_f64(seconds));
                let from = at("threshold_from").unwrap_or(Instant::ZERO);
                let until = at("threshold_until").unwrap_or(Instant::from_nanos(u64::MAX));
                if from < until {
                    Ok(Threshold::Scheduled { regular, other, from, until })
                } else {
                    needs("threshold_until", "must be after threshold_from")
                }
            }
            (None, None, false) => needs("threshold_adapt", "needs threshold, or true"),
        }
    }
}

impl<A: Aqm> Theory for ThresholdAqm<A> {
    fn signal_process(&self) -> SignalProcess {
        self.inner.theory().signal_process()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fixed, SplitMix};
    use crate::{DropReason, DropTail, Limit, Observation, SampledAqm, SampledLaw, Totals};
    use aqumen_units::Ecn;

    /// Verdict on a packet that finds `waiting` packets in a buffer of 100, with random number `draw`.
    fn verdict<A: Aqm>(aqm: &mut ThresholdAqm<A>, waiting: u32, ecn: Ecn, draw: f64, at_s: u64) -> Verdict {
        let totals = Totals::default();
        let queue = QueueView { packets: waiting, bytes: 0, limit: Limit::packets(100), totals: &totals };
        let packet = Packet { bytes: 1000, ecn, segments: 1, ..Packet::default() };
        let cx = &mut Cx { now: Instant::ZERO + Span::from_secs(at_s), queue, rng: &mut Fixed(draw) };
        let verdict = aqm.on_arrival(&packet, cx);
        if cx.queue.is_full(&packet) {
            aqm.on_overflow(&packet, cx);
        }
        verdict
    }

    fn droptail(threshold: Threshold) -> ThresholdAqm<DropTail> {
        ThresholdAqm::new(DropTail::new(false), threshold)
    }

    #[test]
    fn the_signal_probability_rises_to_one_between_threshold_and_limit() {
        // Threshold 50 of 100: F(75) = 25/50.
        let mut aqm = droptail(Threshold::Fixed(0.5));
        assert_eq!(verdict(&mut aqm, 50, Ecn::Ect0, 0.0, 0), Verdict::Pass);
        assert_eq!(verdict(&mut aqm, 75, Ecn::Ect0, 0.49, 0), Verdict::Mark);
        assert_eq!(verdict(&mut aqm, 75, Ecn::Ect0, 0.51, 0), Verdict::Pass);
        assert_eq!(verdict(&mut aqm, 75, Ecn::NotEct, 0.49, 0), Verdict::Drop(DropReason::Early));
        assert_eq!(aqm.probability().get(), 0.5);
        // A threshold at the limit is a step at the full buffer.
        let mut step = droptail(Threshold::Fixed(1.0));
        assert_eq!(verdict(&mut step, 99, Ecn::Ect0, 0.0, 0), Verdict::Pass);
    }

    #[test]
    fn observe_shows_the_threshold_probability() {
        let mut aqm = droptail(Threshold::Fixed(0.5));
        verdict(&mut aqm, 75, Ecn::Ect0, 0.49, 0);
        let mut shown = Vec::new();
        aqm.observe(&mut |name, value| shown.push((name, value)));
        assert_eq!(shown, [("threshold_probability", 0.5)]);
    }

    /// A law with constant output.
    #[derive(Clone)]
    struct ConstantLaw(f64);

    impl SampledLaw for ConstantLaw {
        fn periods(&self) -> [Option<Span>; crate::MAX_LOOPS] {
            [None, None]
        }

        fn step(&mut self, _which: usize, _observation: &Observation) -> Probability {
            Probability::clamp(self.0)
        }

        fn initial(&self) -> Probability {
            Probability::clamp(self.0)
        }
    }

    #[test]
    fn the_larger_probability_applies() {
        let fraction = |p: f64, waiting: u32| {
            let totals = Totals::default();
            let mut aqm = ThresholdAqm::new(SampledAqm::new(ConstantLaw(p), true), Threshold::Fixed(0.5));
            let mut rng = SplitMix(1);
            let packet = Packet { bytes: 1000, ecn: Ecn::Ect0, segments: 1, ..Packet::default() };
            let mut marked = 0.0;
            for _ in 0..20_000 {
                let queue = QueueView { packets: waiting, bytes: 0, limit: Limit::packets(100), totals: &totals };
                let cx = &mut Cx { now: Instant::ZERO, queue, rng: &mut rng };
                marked += f64::from(u8::from(aqm.on_arrival(&packet, cx) == Verdict::Mark)) / 20_000.0;
            }
            marked
        };
        // F(75) = 0.5: above 0.2, below 0.7. Below the threshold F is 0. The standard deviation over 20 000 draws is
        // sqrt(0.25 / 20 000) = 0.0035; five of them are 0.018.
        for (p, waiting, expected) in [(0.2, 75, 0.5), (0.7, 75, 0.7), (0.2, 40, 0.2)] {
            let fraction = fraction(p, waiting);
            assert!((fraction - expected).abs() < 0.018, "{fraction}, expected {expected}");
        }
    }

    #[test]
    fn a_scheduled_threshold_applies_between_its_times() {
        let at = |seconds| Instant::ZERO + Span::from_secs(seconds);
        let mut aqm = droptail(Threshold::Scheduled { regular: 0.95, other: 0.5, from: at(125), until: at(175) });
        let marks =
            |aqm: &mut ThresholdAqm<DropTail>, second| verdict(aqm, 75, Ecn::Ect0, 0.49, second) == Verdict::Mark;
        assert_eq!([124, 125, 174, 175].map(|second| marks(&mut aqm, second)), [false, true, true, false]);
    }

    #[test]
    fn an_adapting_threshold_follows_each_classs_loss() {
        let mut aqm = droptail(Threshold::Adapting { initial: 0.5, loss: 0.1 });
        let totals = Totals::default();
        let second = |aqm: &mut ThresholdAqm<DropTail>, lost: u32| {
            let due = aqm.next_timer().unwrap();
            for k in 0..10 {
                let waiting = if k < lost { 100 } else { 0 };
                verdict(aqm, waiting, Ecn::Ect0, 0.9, 0);
            }
            let queue = QueueView { packets: 0, bytes: 0, limit: Limit::packets(100), totals: &totals };
            aqm.on_timer(&mut Cx { now: due, queue, rng: &mut Fixed(0.5) });
            assert_eq!(aqm.next_timer(), Some(due + Span::from_secs(1)));
            aqm.threshold(0, due)
        };
        // 2 of 10 lost: up by 0.05. 1 of 10: unchanged. 0 of 10: down. Never below 0.25.
        assert!((second(&mut aqm, 2) - 0.55).abs() < 1e-12);
        assert!((second(&mut aqm, 1) - 0.55).abs() < 1e-12);
        assert!((second(&mut aqm, 0) - 0.50).abs() < 1e-12);
        for _ in 0..20 {
            second(&mut aqm, 0);
        }
        assert_eq!(aqm.threshold(0, Instant::ZERO), 0.25);
        for _ in 0..20 {
            second(&mut aqm, 10);
        }
        assert_eq!(aqm.threshold(0, Instant::ZERO), 0.95);
        // Class 1 had no packets.
        assert_eq!(aqm.threshold(1, Instant::ZERO), 0.5);
    }

    #[test]
    fn errors_name_the_inconsistent_parameter() {
        let refused = |values: &[(&'static str, f64)]| {
            let values: Vec<_> = values.iter().map(|&(name, x)| (name, Value::Number(x))).collect();
            Threshold::from_values(&values).unwrap_err().param
        };
        assert_eq!(refused(&[("threshold", 1.5)]), "threshold");
        assert_eq!(refused(&[("threshold_other", 0.5)]), "threshold_other");
        assert_eq!(refused(&[("threshold", 0.9), ("threshold_from", 3.0)]), "threshold_from");
        assert_eq!(
            refused(&[("threshold", 0.9), ("threshold_other", 0.5), ("threshold_from", 3.0), ("threshold_until", 2.0)]),
            "threshold_until"
        );
        assert_eq!(refused(&[("threshold", 0.9), ("threshold_loss", 0.1)]), "threshold_loss");
    }
}
