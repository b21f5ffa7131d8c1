//! Sampled control laws. [`SampledAqm`](crate::SampledAqm) turns one into an [`Aqm`](crate::Aqm).

use aqumen_units::{Instant, Probability, Span};

use crate::{Packet, Theory, Value};

/// Maximum number of loops of a law (AQM-MO has two).
pub const MAX_LOOPS: usize = 2;

/// Input of a law at a sampling instant. Counts are since the previous step of the same loop. They are `f64` because
/// the fluid engine has fractions of packets.
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
    /// Packets that arrived, dropped ones included.
    pub arrivals_pkts: f64,
    /// Packets that entered the queue.
    pub accepted_pkts: f64,
    /// Packets whose transmission ended.
    pub departures_pkts: f64,
    /// Bytes whose transmission ended.
    pub departures_bytes: f64,
    /// Duration of those transmissions, seconds. Departures over busy time is the link's rate, even if a transmission
    /// began before the interval.
    pub busy_s: f64,
    /// Time in the interval without a transmission, seconds; exact up to `now`.
    pub idle_s: f64,
    /// Sojourn time of the packet whose transmission started last, seconds.
    pub sojourn_s: f64,
    /// Probability applied since the last step of any loop: the law's output, unless the host overrode it.
    pub applied: Probability,
}

impl Observation {
    /// Returns the fields in their order, times in seconds, for hosts in other languages.
    pub fn numbers(&self) -> [f64; 12] {
        [
            self.now.as_secs_f64(),
            self.interval_s,
            self.queue_pkts,
            self.queue_bytes,
            self.arrivals_pkts,
            self.accepted_pkts,
            self.departures_pkts,
            self.departures_bytes,
            self.busy_s,
            self.idle_s,
            self.sojourn_s,
            self.applied.get(),
        ]
    }
}

/// A sampled control law: maps observations to a probability, without access to packets.
pub trait SampledLaw {
    /// Period of each loop, constant over the law's lifetime. A loop's first step is one period after the start. At
    /// equal times the first loop steps first.
    fn periods(&self) -> [Option<Span>; MAX_LOOPS];

    /// Steps loop `which`. The output applies until the next step.
    fn step(&mut self, which: usize, observation: &Observation) -> Probability;

    /// Whether the law sees packets: its host then calls [`on_packet`](Self::on_packet). Constant over its lifetime.
    fn sees_packets(&self) -> bool {
        false
    }

    /// Sees a packet that arrives at `now` at a queue of `waiting_bytes`.
    fn on_packet(&mut self, packet: &Packet, now: Instant, waiting_bytes: u64) {
        let _ = (packet, now, waiting_bytes);
    }

    /// Probability before the first step.
    fn initial(&self) -> Probability {
        Probability::ZERO
    }

    /// State of the integrator: the output if the queue stayed at its target. `None` for a law without integrator.
    fn integral(&self) -> Option<f64> {
        None
    }

    /// Sets the integrator to `p`; returns the output until the next step. Only for a law with an integrator.
    fn set_integral(&mut self, p: f64) -> Probability {
        Probability::clamp(p)
    }

    /// Copies the state of `old`, the same law with other parameters. A law whose state is meaningless under other
    /// parameters starts afresh; the current probability then applies until its first step.
    fn take_over(&mut self, old: &Self)
    where
        Self: Sized,
    {
        let _ = old;
    }

    /// Visits each named state variable, for traces.
    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let _ = visit;
    }

    /// Visits the current parameters, in the order of the registry entry.
    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        let _ = visit;
    }

    /// Its theoretical properties.
    fn theory(&self) -> &dyn Theory {
        &()
    }
}
