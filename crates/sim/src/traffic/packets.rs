//! Packets at given times: constant rate, ON/OFF.

use aqumen_aqm::Draw;
use aqumen_scenario::streams::Stream;
use aqumen_scenario::traffic;
use aqumen_units::{Instant, Span};

use super::draw::Draws;
use super::{Action, Source, Step, after};

/// Constant bit rate: the first packet with the flow, no drift.
pub(super) struct Cbr {
    bytes: u32,
    bps: u64,
    /// What the last intervals were too short by, in parts of a nanosecond: 1 / bps each.
    owed: u64,
    started: bool,
}

impl Cbr {
    pub(super) fn new(spec: &traffic::Cbr) -> Self {
        Cbr { bytes: spec.packet.0 as u32, bps: spec.rate.as_bps(), owed: 0, started: false }
    }
}

impl Source for Cbr {
    fn next(&mut self, now: Instant, _: &mut Stream) -> Step {
        let mut at = now;
        if self.started {
            let parts = 8_000_000_000 * u64::from(self.bytes) + self.owed;
            self.owed = parts % self.bps;
            at = now.saturating_add(Span::from_nanos(parts / self.bps));
        }
        self.started = true;
        Step::At(at, Action::Write(self.bytes))
    }

    fn on_rate(&mut self, bits_per_second: f64) {
        self.bps = bits_per_second.max(1.0) as u64;
    }
}

/// ON/OFF: while it is ON, a packet each time that its rate has made one; what a period ON leaves of a packet goes on in the
/// next one, so that the mean rate is exact. It starts as if it had always been running.
pub(super) struct OnOff {
    bytes: u32,
    interval_ns: f64,
    on: Draws,
    off: Draws,
    /// Time ON that is left of this period, and until the next packet; `None` before the start.
    clock: Option<Clock>,
}

#[derive(Clone, Copy)]
struct Clock {
    on_left_ns: f64,
    packet_in_ns: f64,
}

impl OnOff {
    pub(super) fn new(spec: &traffic::OnOff) -> Self {
        OnOff {
            bytes: spec.packet.0 as u32,
            interval_ns: 8e9 * spec.packet.0 as f64 / spec.rate.as_bps() as f64,
            on: Draws::new(&spec.on.0),
            off: Draws::new(&spec.off.0),
            clock: None,
        }
    }

    /// Time until the next packet.
    fn step(&mut self, rng: &mut Stream) -> f64 {
        let mut wait_ns = 0.0;
        let mut clock = self.clock.unwrap_or_else(|| {
            let is_on = rng.uniform() * (self.on.mean() + self.off.mean()) < self.on.mean();
            let left_ns = if is_on { &self.on } else { &self.off }.draw_residual(rng);
            wait_ns = if is_on { 0.0 } else { left_ns };
            let on_left_ns = if is_on { left_ns } else { self.on.draw(rng) };
            Clock { on_left_ns, packet_in_ns: self.interval_ns * rng.uniform() }
        });
        while clock.on_left_ns < clock.packet_in_ns {
            wait_ns += clock.on_left_ns + self.off.draw(rng);
            clock.packet_in_ns -= clock.on_left_ns;
            clock.on_left_ns = self.on.draw(rng);
        }
        wait_ns += clock.packet_in_ns;
        clock.on_left_ns -= clock.packet_in_ns;
        clock.packet_in_ns = self.interval_ns;
        self.clock = Some(clock);
        wait_ns
    }
}

impl Source for OnOff {
    fn next(&mut self, now: Instant, rng: &mut Stream) -> Step {
        Step::At(after(now, self.step(rng)), Action::Write(self.bytes))
    }
}
