//! BLUE: a probability driven by overflow and idleness (Feng, Kandlur, Saha, Shin 1999).
//!
//! BLUE does not use the queue length. When the buffer overflows the probability rises by a step; when the link becomes
//! idle it falls by a smaller step. A freeze time between two steps gives senders time to react.
//!
//! ```text
//! overflow: p = min(1, p + d1)    link idle: p = max(0, p - d2)    each if the last step is older than the freeze time
//! ```
//!
//! Deviations: values as in the comparison of Rahmani et al. (2011), 10 ms, 0.001, 0.0002; BLUE's own port for ns-1.1
//! has 100 ms, 0.0025, 0.00025 and separate timers for both directions. `ecn` is off, as there.

use aqumen_units::{Instant, Probability, Span};

use crate::{
    Algorithm, Aqm, Cx, DefaultValue, Draw, Hooks, Network, Packet, Param, ParamError, Settings, Theory, Totals, Unit,
    Value, Verdict,
};

const DEFAULT_FREEZE_S: f64 = 0.010;
const DEFAULT_INCREMENT: f64 = 0.001;
const DEFAULT_DECREMENT: f64 = 0.0002;

/// Registry entry.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "blue",
    title: "BLUE",
    summary: "the probability rises when the buffer overflows and falls when the link is idle",
    reference: "Feng, Kandlur, Saha, Shin: BLUE: a new class of active queue management algorithms, 1999",
    params: &[
        Param::positive(
            "freeze_time",
            Unit::Seconds,
            DefaultValue::number(DEFAULT_FREEZE_S),
            "least time between two steps",
        ),
        Param::fraction("increment", DefaultValue::number(DEFAULT_INCREMENT), "step at an overflow, d1"),
        Param::fraction("decrement", DefaultValue::number(DEFAULT_DECREMENT), "step at an idle link, d2"),
        Param::flag("ecn", false, "mark ECN-capable packets instead of dropping them"),
    ],
};

/// The law: a probability that steps up at overflows and down at idleness.
#[derive(Clone, Copy, Debug)]
pub struct BlueLaw {
    freeze: Span,
    increment: f64,
    decrement: f64,
    p: Probability,
    /// Time of the last step in either direction; `None` before the first.
    last: Option<Instant>,
}

/// BLUE.
#[derive(Clone, Copy, Debug)]
pub struct Blue {
    law: BlueLaw,
    ecn: bool,
}

impl BlueLaw {
    /// The law at p = 0, with steps `increment` and `decrement` in [0, 1], more than `freeze` apart.
    pub const fn new(freeze: Span, increment: f64, decrement: f64) -> Self {
        BlueLaw { freeze, increment, decrement, p: Probability::ZERO, last: None }
    }

    /// Current probability.
    pub const fn probability(&self) -> Probability {
        self.p
    }

    /// Overflow: one step up.
    pub fn overflow(&mut self, now: Instant) {
        self.step(self.increment, now);
    }

    /// Idle link: one step down.
    pub fn idle(&mut self, now: Instant) {
        self.step(-self.decrement, now);
    }

    fn step(&mut self, by: f64, now: Instant) {
        if self.last.is_none_or(|last| now.saturating_since(last) > self.freeze) {
            self.p = Probability::clamp(self.p.get() + by);
            self.last = Some(now);
        }
    }
}

impl Blue {
    /// Applies `law`; with `ecn`, ECN-capable packets are marked instead of dropped.
    pub const fn new(law: BlueLaw, ecn: bool) -> Self {
        Blue { law, ecn }
    }

    pub(crate) fn from_settings(settings: &Settings<'_>, _network: &Network) -> Result<Self, ParamError> {
        let law = BlueLaw::new(
            Span::from_secs_f64(settings.number("freeze_time").unwrap_or(DEFAULT_FREEZE_S)),
            settings.number("increment").unwrap_or(DEFAULT_INCREMENT),
            settings.number("decrement").unwrap_or(DEFAULT_DECREMENT),
        );
        Ok(Blue::new(law, settings.flag("ecn").unwrap_or(false)))
    }
}

impl Aqm for Blue {
    #[inline]
    fn on_arrival<R: Draw>(&mut self, packet: &Packet, cx: &mut Cx<'_, R>) -> Verdict {
        let p = self.law.p.get();
        if p > 0.0 && !cx.queue.is_full(packet) && cx.rng.uniform() < p {
            Verdict::signal(packet, self.ecn)
        } else {
            Verdict::Pass
        }
    }

    fn on_overflow<R: Draw>(&mut self, _packet: &Packet, cx: &mut Cx<'_, R>) {
        self.law.overflow(cx.now);
    }

    fn on_idle(&mut self, now: Instant) {
        self.law.idle(now);
    }

    fn probability(&self) -> Probability {
        self.law.p
    }

    fn hooks(&self) -> Hooks {
        Hooks { departures: true, ..Hooks::default() }
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        visit("freeze_time", Value::seconds(self.law.freeze));
        visit("increment", Value::Number(self.law.increment));
        visit("decrement", Value::Number(self.law.decrement));
        visit("ecn", Value::Flag(self.ecn));
    }

    fn take_over(&mut self, old: Option<&Self>, now: Instant, totals: &Totals) {
        let _ = (now, totals);
        if let Some(old) = old {
            (self.law.p, self.law.last) = (old.law.p, old.law.last);
        }
    }

    fn theory(&self) -> &dyn Theory {
        self
    }
}

impl Theory for Blue {
    fn not_linearizable(&self) -> Option<&'static str> {
        Some("its probability moves by fixed steps when the buffer overflows or the link is idle")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_ms(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn the_freeze_time_holds_between_steps_of_either_direction() {
        let mut law = BlueLaw::new(Span::from_millis(10), 0.25, 0.125);
        law.overflow(at_ms(0));
        assert_eq!(law.probability().get(), 0.25);
        // Exactly the freeze time is not enough.
        law.overflow(at_ms(10));
        law.idle(at_ms(10));
        assert_eq!(law.probability().get(), 0.25);
        law.idle(at_ms(11));
        assert_eq!(law.probability().get(), 0.125);
        law.overflow(at_ms(15));
        assert_eq!(law.probability().get(), 0.125);
    }

    #[test]
    fn the_probability_stays_in_its_range() {
        let mut law = BlueLaw::new(Span::from_millis(1), 0.6, 0.7);
        for (ms, expected) in [(2, 0.6), (4, 1.0), (6, 1.0)] {
            law.overflow(at_ms(ms));
            assert_eq!(law.probability().get(), expected);
        }
        for (ms, expected) in [(8, 1.0 - 0.7), (10, 0.0)] {
            law.idle(at_ms(ms));
            assert_eq!(law.probability().get(), expected);
        }
    }
}
