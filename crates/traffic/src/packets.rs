//! Packet sources: constant bit rate, Poisson, ON/OFF, and superposed ON/OFF (self-similar).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use aqumen_scenario::law::Law;
use aqumen_scenario::streams::Draw;
use aqumen_scenario::streams::Stream;
use aqumen_scenario::traffic::{self, Begin};
use aqumen_units::{Instant, Span};

use crate::draw::{Draws, exponential};
use crate::source::{Action, Clock, Source, Step, after};

/// Constant bit rate without drift. The first packet leaves when the flow starts.
#[derive(Clone)]
pub(super) struct Cbr {
    bytes: u32,
    bps: u64,
    /// Rounding error of the last intervals, in units of 1 / bps nanoseconds.
    remainder: u64,
    started: bool,
}

impl Cbr {
    pub(super) fn new(spec: &traffic::Cbr) -> Self {
        Cbr { bytes: spec.packet.0 as u32, bps: spec.rate.as_bps(), remainder: 0, started: false }
    }
}

impl Source for Cbr {
    fn next(&mut self, now: Instant, _: &mut Stream) -> Step {
        let mut at = now;
        if self.started {
            let parts = 8_000_000_000 * u64::from(self.bytes) + self.remainder;
            self.remainder = parts % self.bps;
            at = now.saturating_add(Span::from_nanos(parts / self.bps));
        }
        self.started = true;
        Step::At(at, Action::Write(self.bytes))
    }

    fn on_rate(&mut self, bits_per_second: f64) {
        self.bps = bits_per_second.max(1.0) as u64;
        self.remainder = self.remainder.min(self.bps);
    }
}

/// Packets at the moments of a Poisson process.
#[derive(Clone)]
pub(super) struct Poisson {
    gap_mean_ns: f64,
    packet: PacketSize,
}

impl Poisson {
    pub(super) fn new(spec: &traffic::Poisson) -> Self {
        Poisson { gap_mean_ns: 1e9 / spec.rate.0, packet: PacketSize::new(&spec.packet.0) }
    }
}

impl Source for Poisson {
    fn next(&mut self, now: Instant, rng: &mut Stream) -> Step {
        let at = after(now, self.gap_mean_ns * exponential(rng));
        Step::At(at, self.packet.write(rng))
    }
}

/// Law of packet sizes, at most the payload of a datagram.
#[derive(Clone)]
pub(super) struct PacketSize(Draws);

impl PacketSize {
    pub(super) fn new(law: &Law) -> Self {
        PacketSize(Draws::new(law))
    }

    pub(super) fn write(&self, rng: &mut Stream) -> Action {
        Action::Write(self.0.draw_size(rng).min(traffic::PACKET_BYTES_MAX) as u32)
    }
}

/// One ON/OFF source. While it is ON it sends at a constant rate; a packet that an ON period begins is completed in the
/// next one, so that the mean rate is exact. It starts in its stationary law, or with an OFF period.
#[derive(Clone)]
struct Bursts {
    interval_ns: f64,
    on: Draws,
    off: Draws,
    begin: Begin,
    /// `None` before the start.
    phase: Option<Phase>,
}

#[derive(Clone, Copy)]
struct Phase {
    /// Rest of this ON period.
    on_left_ns: f64,
    /// ON time until the next packet.
    packet_in_ns: f64,
}

impl Bursts {
    /// Draws the time until the next packet.
    fn step(&mut self, rng: &mut Stream) -> f64 {
        let mut wait_ns = 0.0;
        let mut phase = self.phase.unwrap_or_else(|| {
            if self.begin == Begin::Off {
                wait_ns = self.off.draw(rng);
                return Phase { on_left_ns: self.on.draw(rng), packet_in_ns: 0.0 };
            }
            let is_on = rng.uniform() * (self.on.mean() + self.off.mean()) < self.on.mean();
            let left_ns = if is_on { &self.on } else { &self.off }.draw_residual(rng);
            wait_ns = if is_on { 0.0 } else { left_ns };
            let on_left_ns = if is_on { left_ns } else { self.on.draw(rng) };
            Phase { on_left_ns, packet_in_ns: self.interval_ns * rng.uniform() }
        });
        while phase.on_left_ns < phase.packet_in_ns {
            wait_ns += phase.on_left_ns + self.off.draw(rng);
            phase.packet_in_ns -= phase.on_left_ns;
            phase.on_left_ns = self.on.draw(rng);
        }
        wait_ns += phase.packet_in_ns;
        phase.on_left_ns -= phase.packet_in_ns;
        phase.packet_in_ns = self.interval_ns;
        self.phase = Some(phase);
        wait_ns
    }
}

/// One ON/OFF source.
#[derive(Clone)]
pub(super) struct OnOff {
    bytes: u32,
    bursts: Bursts,
}

impl OnOff {
    pub(super) fn new(spec: &traffic::OnOff) -> Self {
        let bursts = Bursts {
            interval_ns: 1e9 / spec.rate.packets_per_sec(spec.packet),
            on: Draws::new(&spec.on.0),
            off: Draws::new(&spec.off.0),
            begin: spec.begin,
            phase: None,
        };
        OnOff { bytes: spec.packet.0 as u32, bursts }
    }
}

impl Source for OnOff {
    fn next(&mut self, now: Instant, rng: &mut Stream) -> Step {
        Step::At(after(now, self.bursts.step(rng)), Action::Write(self.bytes))
    }
}

/// Many ON/OFF sources with Pareto times: self-similar.
#[derive(Clone)]
pub(super) struct SelfSimilar {
    bytes: u32,
    sources: Vec<Bursts>,
    clock: Clock,
    /// Time of the next packet of each source, on the shared clock.
    next: BinaryHeap<Reverse<(u64, u32)>>,
}

impl SelfSimilar {
    pub(super) fn new(spec: &traffic::SelfSimilar) -> Self {
        let pareto =
            |mean: Span| Draws::new(&Law::Pareto { mean: mean.as_nanos() as f64, shape: spec.shape(), max: None });
        let source = |_| Bursts {
            interval_ns: 1e9 / spec.on_packets_per_s(),
            on: pareto(spec.on),
            off: pareto(spec.off),
            begin: spec.begin,
            phase: None,
        };
        SelfSimilar {
            bytes: spec.packet.0 as u32,
            sources: (0..spec.sources).map(source).collect(),
            clock: Clock::default(),
            next: BinaryHeap::new(),
        }
    }
}

impl Source for SelfSimilar {
    fn next(&mut self, now: Instant, rng: &mut Stream) -> Step {
        let now_ns = self.clock.resume(now);
        let due = if self.next.is_empty() { 0..self.sources.len() as u32 } else { self.pop() };
        for i in due {
            let wait_ns = self.sources[i as usize].step(rng);
            self.next.push(Reverse((now_ns.saturating_add((wait_ns + 0.5) as u64), i)));
        }
        let at_ns = self.next.peek().map_or(u64::MAX, |Reverse((at_ns, _))| *at_ns);
        Step::At(self.clock.plan(at_ns), Action::Write(self.bytes))
    }
}

impl SelfSimilar {
    /// Removes the source whose packet has just been sent, and returns it.
    fn pop(&mut self) -> std::ops::Range<u32> {
        let i = self.next.pop().map_or(0, |Reverse((_, i))| i);
        i..i + 1
    }
}
