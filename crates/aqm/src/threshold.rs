//! The threshold function F of the AAQM paper, eq. (18), over any single-queue AQM: beyond a threshold of the buffer
//! the probability of a signal rises to one, whatever the algorithm says.
//!
//! ```text
//! F(x) = 0 below th;  (x - th) / (Pi - th) from th on;  1 from Pi on         x packets waiting, Pi the buffer's limit
//! p_mark = max(P, F_s(x))                                                    per packet, s its traffic class
//! ```
//!
//! The threshold is fixed, takes another value for some time, or adapts once a second to what each class lost:
//! more than P_target raises it by 0.05 Pi, less than half of P_target lowers it, within 0.25 to 0.95 Pi.
//!
//! An algorithm decides by itself first, with its own probability P; a packet that it lets pass is then chosen with
//! (F - P) / (1 - P), which makes max(P, F) in all. Where an algorithm's decisions are no coin flips of its stated
//! probability (RED spreads them out, CoDel decides at the head) F comes on top of them in this sense.
//!
//! Deviations: the paper calls Pi a probability, which cannot be compared with a queue; it is the buffer's limit. Of
//! the adaptation it says only that th is "changed based on the loss probability".

use alloc::{boxed::Box, vec::Vec};
use core::fmt;

use aqumen_units::{Instant, Probability, Span};

use crate::{
    Aqm, Bound, Cx, DefaultValue, Draw, Hooks, Kind, Packet, Param, ParamError, QueueView, Requirement, Settings,
    SignalProcess, Theory, Totals, Unit, Value, Verdict,
};

/// How often an adapting threshold moves.
const ADAPT_EVERY: Span = Span::from_secs(1);
/// By how much, as a share of the buffer.
const ADAPT_STEP: f64 = 0.05;
/// Within which shares of the buffer.
const ADAPT_RANGE: (f64, f64) = (0.25, 0.95);
const DEFAULT_LOSS: f64 = 0.01;
const CLASSES: usize = 256;

/// The parameters that every algorithm takes beside its own. `threshold` switches the function on.
pub const PARAMS: &[Param] = &[
    Param::fraction(
        "threshold",
        DefaultValue::Designed("none: the function is off"),
        "share of the buffer from which the probability of a signal rises to 1, th / Pi",
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
        doc: "loss that the adaptation aims at, P_target",
    },
];

const fn moment(name: &'static str, default: DefaultValue, doc: &'static str) -> Param {
    let kind = Kind::Number { unit: Unit::Seconds, min: Bound::Inclusive(0.0), max: Bound::Inclusive(1e9) };
    Param { name, kind, default, doc }
}

/// Whether a parameter belongs to the threshold function and not to an algorithm.
pub(crate) fn is_threshold_param(name: &str) -> bool {
    PARAMS.iter().any(|param| param.name == name)
}

/// F(x), eq. (18), with the threshold `th` and the limit `pi`, all in one unit. A threshold at or above the limit makes
/// it a step.
pub fn signal_probability(x: f64, th: f64, pi: f64) -> f64 {
    if x >= pi {
        1.0
    } else if x < th {
        0.0
    } else {
        (x - th) / (pi - th)
    }
}

/// What the threshold is, as a share of the buffer in [0, 1].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// ConstantLaw the same.
    Fixed(f64),
    /// Another one for some time.
    Scheduled {
        /// Before and after.
        usual: f64,
        /// Meanwhile.
        other: f64,
        /// When the other begins.
        from: Instant,
        /// When it ends.
        until: Instant,
    },
    /// Adapts to the loss of each traffic class.
    Adapting {
        /// The threshold at the start.
        initial: f64,
        /// The loss aimed at, P_target.
        loss: f64,
    },
}

/// An algorithm with the threshold function over it.
#[derive(Clone, Debug)]
pub struct ThresholdAqm<A> {
    inner: A,
    ecn: bool,
    threshold: Threshold,
    adaptation: Option<Adaptation>,
    /// F for the last arrival.
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
    /// `inner` with the function over it. A chosen packet is marked if `inner` marks (its `ecn`; on where it has none)
    /// and the packet can carry it.
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
                Some(Adaptation { loss, due: Instant::ZERO + ADAPT_EVERY, classes: alloc::vec![class; CLASSES].into() })
            }
            Threshold::Fixed(_) | Threshold::Scheduled { .. } => None,
        };
        ThresholdAqm { inner, ecn, threshold, adaptation, last: 0.0 }
    }

    /// The algorithm.
    pub const fn inner(&self) -> &A {
        &self.inner
    }

    /// The threshold for `class` at `now`, as a share of the buffer.
    pub fn threshold(&self, class: u8, now: Instant) -> f64 {
        match (self.threshold, &self.adaptation) {
            (_, Some(adaptation)) => adaptation.classes[class as usize].threshold,
            (Threshold::Scheduled { other, from, until, .. }, _) if from <= now && now < until => other,
            (Threshold::Fixed(usual) | Threshold::Scheduled { usual, .. }, _) => usual,
            (Threshold::Adapting { initial, .. }, None) => initial,
        }
    }

    fn lose(&mut self, packet: &Packet) {
        if let Some(adaptation) = &mut self.adaptation {
            adaptation.classes[packet.class as usize].lost += 1;
        }
    }
}

/// The share of the buffer that is taken: of its packets or of its bytes, whichever is more.
fn occupancy(queue: &QueueView<'_>) -> f64 {
    let packets = f64::from(queue.packets) / f64::from(queue.limit.packets);
    let bytes = queue.bytes as f64 / queue.limit.bytes.0 as f64;
    // A limit of nothing is full (0 / 0 is not greater).
    if packets > bytes || bytes.is_nan() { packets } else { bytes }
}

impl<A: Aqm> Aqm for ThresholdAqm<A> {
    fn take_over(&mut self, old: Option<&Self>, now: Instant, totals: &Totals) {
        self.inner.take_over(old.map(|old| &old.inner), now, totals);
        if let Some(adaptation) = &mut self.adaptation {
            adaptation.due = now.saturating_add(ADAPT_EVERY);
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
            self.lose(packet);
        }
        verdict
    }

    fn on_overflow<R: Draw>(&mut self, packet: &Packet, cx: &mut Cx<'_, R>) {
        self.lose(packet);
        self.inner.on_overflow(packet, cx);
    }

    fn on_dequeue<R: Draw>(&mut self, packet: &Packet, sojourn: Span, cx: &mut Cx<'_, R>) -> Verdict {
        let verdict = self.inner.on_dequeue(packet, sojourn, cx);
        if let Verdict::Drop(_) = verdict {
            self.lose(packet);
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
            Threshold::Scheduled { usual, other, from, until } => {
                visit("threshold", Value::Number(usual));
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
        let periods = (now - self.due).as_nanos() / ADAPT_EVERY.as_nanos() + 1;
        self.due = self.due.saturating_add(ADAPT_EVERY.saturating_mul(periods));
        for class in self.classes.iter_mut().filter(|class| class.arrivals > 0) {
            let loss = f64::from(class.lost) / f64::from(class.arrivals);
            // "Increasing th decreases loss": early drops are the greater part of it.
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
    /// What `values` say of the threshold, whatever else they say. `None` if nothing.
    pub(crate) fn from_values(values: &[(&str, Value<'_>)]) -> Result<Option<Self>, ParamError> {
        let own: Vec<_> = values.iter().copied().filter(|(name, _)| is_threshold_param(name)).collect();
        if own.is_empty() {
            return Ok(None);
        }
        Settings::check(&own, PARAMS).and_then(|settings| Threshold::from_settings(&settings)).map(Some)
    }

    fn from_settings(settings: &Settings<'_>) -> Result<Self, ParamError> {
        let usual = settings.number("threshold");
        let needs = |name: &str, words| {
            let given = settings.number(name).map(Value::Number).or(settings.flag(name).map(Value::Flag));
            // A flag that was not given is not set.
            let value = given.unwrap_or(Value::Flag(false));
            Err(ParamError::new(name, value, Requirement::Relation(words)))
        };
        let other = settings.number("threshold_other");
        for name in ["threshold_from", "threshold_until"] {
            if settings.has(name) && other.is_none() {
                return needs(name, "needs threshold_other beside it");
            }
        }
        let adapts = settings.flag("threshold_adapt").unwrap_or(false);
        match (usual, other, adapts) {
            (_, Some(_), true) => needs("threshold_other", "has no effect beside threshold_adapt"),
            (None, Some(_), _) => needs("threshold_other", "needs threshold beside it"),
            (_, None, true) => Ok(Threshold::Adapting {
                initial: usual.unwrap_or(ADAPT_RANGE.1),
                loss: settings.number("threshold_loss").unwrap_or(DEFAULT_LOSS),
            }),
            _ if settings.has("threshold_loss") => needs("threshold_loss", "needs threshold_adapt beside it"),
            (Some(usual), None, false) => Ok(Threshold::Fixed(usual)),
            (Some(usual), Some(other), false) => {
                let at = |name| settings.number(name).map(|seconds| Instant::ZERO + Span::from_secs_f64(seconds));
                let from = at("threshold_from").unwrap_or(Instant::ZERO);
                let until = at("threshold_until").unwrap_or(Instant::from_nanos(u64::MAX));
                if from < until {
                    Ok(Threshold::Scheduled { usual, other, from, until })
                } else {
                    needs("threshold_until", "must be after threshold_from")
                }
            }
            (None, None, false) => needs("threshold_adapt", "needs threshold beside it, or true"),
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

    /// The verdict on a packet that meets so many of 100 with this draw.
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
    fn beyond_the_threshold_signals_become_certain_towards_the_limit() {
        // Threshold 50 of 100: F(75) = 25/50.
        let mut aqm = droptail(Threshold::Fixed(0.5));
        assert_eq!(verdict(&mut aqm, 50, Ecn::Ect0, 0.0, 0), Verdict::Pass);
        assert_eq!(verdict(&mut aqm, 75, Ecn::Ect0, 0.49, 0), Verdict::Mark);
        assert_eq!(verdict(&mut aqm, 75, Ecn::Ect0, 0.51, 0), Verdict::Pass);
        assert_eq!(verdict(&mut aqm, 75, Ecn::NotEct, 0.49, 0), Verdict::Drop(DropReason::Early));
        assert_eq!(aqm.probability().get(), 0.5);
        // A threshold at the limit is a step there, where the buffer is full anyhow.
        let mut step = droptail(Threshold::Fixed(1.0));
        assert_eq!(verdict(&mut step, 99, Ecn::Ect0, 0.0, 0), Verdict::Pass);
    }

    #[test]
    fn the_function_and_what_lies_below_it_are_shown() {
        let mut aqm = droptail(Threshold::Fixed(0.5));
        verdict(&mut aqm, 75, Ecn::Ect0, 0.49, 0);
        let mut shown = Vec::new();
        aqm.observe(&mut |name, value| shown.push((name, value)));
        assert_eq!(shown, [("threshold_probability", 0.5)]);
    }

    /// A law that always says the same.
    #[derive(Clone)]
    struct ConstantLaw(f64);

    impl SampledLaw for ConstantLaw {
        fn periods(&self) -> [Option<Span>; crate::MAX_LOOPS] {
            [None, None]
        }

        fn step(&mut self, _which: usize, _seen: &Observation) -> Probability {
            Probability::clamp(self.0)
        }

        fn initial(&self) -> Probability {
            Probability::clamp(self.0)
        }
    }

    #[test]
    fn the_greater_of_both_probabilities_rules() {
        let share = |p: f64, waiting: u32| {
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
        // F(75) = 0.5: above 0.2, below 0.7. Below the threshold the law rules alone. 20 000 draws stray by
        // sqrt(0.25 / 20 000) = 0.0035; five of these are 0.018.
        for (p, waiting, expected) in [(0.2, 75, 0.5), (0.7, 75, 0.7), (0.2, 40, 0.2)] {
            let share = share(p, waiting);
            assert!((share - expected).abs() < 0.018, "{share}, expected {expected}");
        }
    }

    #[test]
    fn a_scheduled_threshold_holds_for_its_time() {
        let at = |seconds| Instant::ZERO + Span::from_secs(seconds);
        let mut aqm = droptail(Threshold::Scheduled { usual: 0.95, other: 0.5, from: at(125), until: at(175) });
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
        // 2 of 10 lost is above 0.1: up by 0.05. 1 of 10 is between: stays. None: down. Never below 0.25.
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
        // Class 1 met no packets.
        assert_eq!(aqm.threshold(1, Instant::ZERO), 0.5);
    }

    #[test]
    fn what_does_not_fit_together_is_refused_by_name() {
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
