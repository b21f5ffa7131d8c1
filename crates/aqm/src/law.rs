//! Control laws that are stepped at their own periods. [`SampledAqm`](crate::SampledAqm) makes an [`Aqm`](crate::Aqm)
//! of one.

use aqumen_units::{Instant, Probability, Span};

use crate::{Theory, Value};

/// The most loops a law may have (AQM-MO has two).
pub const MAX_LOOPS: usize = 2;

/// What a law sees at a sampling instant. Counts are since the same loop's previous step; they are `f64` because a
/// fluid engine has fractions of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Observation {
    /// The sampling instant.
    pub now: Instant,
    /// Time since this loop's previous step, seconds. At the first step, time since the start.
    pub interval_s: f64,
    /// Packets waiting.
    pub queue_pkts: f64,
    /// Bytes waiting.
    pub queue_bytes: f64,
    /// Packets offered, those that were discarded too.
    pub arrivals_pkts: f64,
    /// Packets that entered the queue.
    pub accepted_pkts: f64,
    /// Packets whose transmission ended.
    pub departures_pkts: f64,
    /// Bytes whose transmission ended.
    pub departures_bytes: f64,
    /// Time spent on those transmissions, seconds. Departures per busy time are the link's rate,
    /// whatever the interval cut off.
    pub busy_s: f64,
    /// Time in the interval during which nothing was in transmission, seconds; exact up to `now`.
    pub idle_s: f64,
    /// Sojourn time of the packet taken for transmission last, seconds.
    pub sojourn_s: f64,
    /// The probability applied since the last step of any loop: the law's own answer, unless
    /// the host had to override it.
    pub applied: Probability,
}

/// A control law by itself: it turns what was observed into a probability, and knows no packets.
pub trait SampledLaw {
    /// The period of each loop. The first step of a loop comes one period after the start; where two loops meet, the
    /// first steps first. Constant over the law's life.
    fn periods(&self) -> [Option<Span>; MAX_LOOPS];

    /// One step of loop `which`. The answer is applied until the next step.
    fn step(&mut self, which: usize, seen: &Observation) -> Probability;

    /// The probability that applies before the first step.
    fn initial(&self) -> Probability {
        Probability::ZERO
    }

    /// The probability at which it would stay if the queue stood at its target from now on: its integral.
    /// `None`: it has none.
    fn integral(&self) -> Option<f64> {
        None
    }

    /// Sets the integral to `p`; the answer that holds until the next step. Only for a law that has one.
    fn set_integral(&mut self, p: f64) -> Probability {
        Probability::clamp(p)
    }

    /// Takes the state of `old`, the same law with other parameters. A law whose state means nothing under other
    /// parameters starts anew; the probability in force then stays until its first step.
    fn take_over(&mut self, old: &Self)
    where
        Self: Sized,
    {
        let _ = old;
    }

    /// Shows each named quantity of the state, for traces.
    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let _ = visit;
    }

    /// The parameters in force, in the order of its row.
    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        let _ = visit;
    }

    /// What it says of itself to theory.
    fn theory(&self) -> &dyn Theory {
        &()
    }
}
