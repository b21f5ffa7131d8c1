//! PIE: a proportional-integral controller of the queueing delay, with safeguards (Pan,
//! Natarajan, Baker, White; RFC 8033).
//!
//! Periodically the delay's error and its change update the drop probability, in steps that scale with the probability.
//! Arriving packets are signalled with that probability. Safeguards exempt short bursts and short queues, and
//! de-randomization prevents drops in close succession.
//!
//! ```text
//! every T_UPDATE:  dp = alpha (delay - target) + beta (delay - previous)        alpha, beta in Hz
//!                  dp scaled down while p < 0.1; p >= 0.1: dp at most 0.02
//!                  p = clamp(p + dp, 0, 1); delay and previous 0: p *= 0.98
//!
//!            p = 0 and delays below target / 2: full again
//!  burst ─────────────────────────────────────────────┐
//!    └── falls by T_UPDATE each update; while > 0 nothing is signalled
//! ```
//!
//! Deviations:
//! - The delay is the sojourn time of the last packet, 0 for an empty queue (allowed by RFC 8033 section 4.3; as in
//!   Linux and ns-3). `delay = rate` is section 5.2's estimate from the departure rate.
//! - `on_off` (section 5.3) is off, as in Linux and ns-3: its threshold of a third of the buffer lets a deep buffer
//!   fill.
//! - `derandomize` (section 5.4) is on; ns-3 has it off. `cap` (section 5.5) is on.
//! - `delay_boost` (Linux, not in the RFC): above 250 ms the probability rises by 2 % an update, whatever dp says.
//! - ECN-capable packets are marked up to p = `mark_p` = 0.1 and dropped above (section
//!   5.1); ns-3 and Linux do the same.
//! - `bytemode` (Linux, ns-3; off): the probability of a packet smaller than `mean_packet` shrinks with its size.
//! - `safeguards = linux`: the exemption uses the delay of the last packet, not that of the last update. The burst
//!   allowance falls by the time between departures, and while it lasts probabilities are not summed. A backlog of
//!   exactly two `mean_packet` is not exempt. p decays by 1/64, and only with an empty queue. All state is reset once p
//!   and delay are 0. A mark because the sum reached 8.5 does not reset the sum, so every packet is marked until one is
//!   dropped or p is 0.
//! - `start` (Linux: 500 ms): the first update. `limit` (Linux) applies below the link's buffer.
//!
//! Differences between `pie-linux` and Linux: Linux's timer counts whole jiffies and fires in the next one, so the
//! period is 20 ms with jiffies of 4 ms (Debian) and 16 ms with jiffies of 1 ms, with the gains of 15 ms (`interval =
//! 20ms`). The departure rate of `delay = rate` has weight 1/8. p may exceed 1 if the queue grows although every packet
//! is dropped.

mod law;
mod rate_meter;

use aqumen_units::{Instant, Probability, Span};

use crate::{
    Algorithm, AntiWindup, AntiWindupLaw, Aqm, Bound, Cx, DefaultValue, DesignReport, Draw, DropReason, Hooks, Kind,
    Network, Observation, Packet, Param, ParamError, QueueOperatingPoint, SafeguardLimits, SampledLaw, Settings,
    SignalProcess, TcpPlant, Theory, Totals, Unit, Value, Verdict,
    timer::Timer,
    today::codel::{self, LIMIT},
};
use law::{DECAY, DEFAULT_ALPHA_HZ, DEFAULT_BETA_HZ, DEFAULT_INTERVAL_S, DEFAULT_TARGET_S, LINUX_DECAY};
pub use law::{DelayPi, PieLaw, PieLawParams};
pub use rate_meter::RateMeter;

// RFC 8033 sections 4.4, 5.1.
const DEFAULT_BURST_S: f64 = 0.150;
const DEFAULT_MARK_P: f64 = 0.1;
/// Section 4.1: below this probability packets are exempt while the delay is below half the target.
const SAFEGUARD_P: f64 = 0.2;
/// Section 5.4: sum of probabilities since the last signal below which no packet is signalled, and from which one is.
const DERANDOMIZE: (f64, f64) = (0.85, 8.5);

/// Registry entry.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "pie",
    title: "PIE",
    summary: "proportional-integral control of the queueing delay, with steps scaled to the probability and safeguards",
    reference: "Pan, Natarajan, Baker, White: PIE: a lightweight control scheme to address the bufferbloat problem, RFC 8033, 2017",
    params: &[
        Param::positive("target", Unit::Seconds, DefaultValue::number(DEFAULT_TARGET_S), "queueing delay, QDELAY_REF"),
        Param::positive(
            "interval",
            Unit::Seconds,
            DefaultValue::number(DEFAULT_INTERVAL_S),
            "time between updates, T_UPDATE; halve alpha with it",
        ),
        Param::positive("alpha", Unit::Hertz, DefaultValue::number(DEFAULT_ALPHA_HZ), "weight of the delay's error"),
        Param {
            name: "beta",
            kind: Kind::Number { unit: Unit::Hertz, min: Bound::Inclusive(0.0), max: Bound::Open },
            default: DefaultValue::number(DEFAULT_BETA_HZ),
            doc: "weight of the delay's change",
        },
        Param {
            name: "burst",
            kind: Kind::Number { unit: Unit::Seconds, min: Bound::Inclusive(0.0), max: Bound::Open },
            default: DefaultValue::number(DEFAULT_BURST_S),
            doc: "burst allowance after an empty queue, MAX_BURST",
        },
        Param::flag("auto_tune", true, "scale the steps down while the probability is small"),
        Param::flag("cap", true, "limit increments to 0.02 per update from a probability of 0.1 on"),
        Param::flag("delay_boost", false, "add 0.02 per update above a delay of 250 ms, as Linux does"),
        Param::flag(
            "derandomize",
            true,
            "de-randomization: space signals by the sum of probabilities since the last one",
        ),
        Param::flag("on_off", false, "activate at a third of the buffer, deactivate once the queue is empty and p = 0"),
        Param {
            name: "delay",
            kind: Kind::Choice(&["sojourn", "rate"]),
            default: DefaultValue::Value(Value::Choice("sojourn")),
            doc: "source of the delay: sojourn time of the last packet, or backlog over measured departure rate",
        },
        Param::positive(
            "mean_packet",
            Unit::Bytes,
            DefaultValue::Designed("the network's packet size"),
            "no packet is signalled with at most two of these waiting; reference size of `bytemode`",
        ),
        Param::fraction(
            "mark_p",
            DefaultValue::number(DEFAULT_MARK_P),
            "highest probability at which packets are marked, MAX_ECNTH",
        ),
        Param::positive(
            "start",
            Unit::Seconds,
            DefaultValue::Designed("an interval"),
            "time of the first update; Linux: 500 ms",
        ),
        Param {
            name: "safeguards",
            kind: Kind::Choice(&["rfc8033", "linux"]),
            default: DefaultValue::Value(Value::Choice("rfc8033")),
            doc: "variant of burst allowance, safeguard, de-randomization and decay",
        },
        Param::flag("bytemode", false, "scale the probability of packets below mean_packet with their size"),
        Param::ECN,
        AntiWindup::PARAM,
        LIMIT,
    ],
};

/// PIE's parameters without `limit`, which a discipline of several queues has itself, and `anti_windup`, which needs
/// the link's idle time.
pub(crate) const PARAMS_OF_A_QUEUE: [Param; ALGORITHM.params.len() - 2] = {
    let mut all = [Param::ECN; ALGORITHM.params.len() - 2];
    let mut i = 0;
    while i < all.len() {
        all[i] = ALGORITHM.params[i];
        i += 1;
    }
    all
};

/// Source of the delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelaySource {
    /// Sojourn time of the last packet.
    Sojourn,
    /// Backlog over the measured departure rate.
    Rate,
}

/// Variant of the safeguards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safeguards {
    /// As in RFC 8033.
    Rfc8033,
    /// As in Linux.
    Linux,
}

/// The parameters of [`Pie`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PieParams {
    /// Parameters of the law.
    pub law: PieLawParams,
    /// Burst allowance.
    pub burst: Span,
    /// De-randomization: space signals by the sum of probabilities since the last one.
    pub derandomize: bool,
    /// Activate at a third of the buffer.
    pub on_off: bool,
    /// Source of the delay.
    pub delay: DelaySource,
    /// Mean packet size, bytes; at most two of them in the queue are exempt.
    pub mean_packet: f64,
    /// Highest probability at which packets are marked.
    pub mark_p: Probability,
    /// Time of the first update, at least one interval.
    pub start: Option<Span>,
    /// Variant of the safeguards.
    pub safeguards: Safeguards,
    /// Scale the probability of packets below `mean_packet` with their size.
    pub bytemode: bool,
    /// Mark ECN-capable packets.
    pub ecn: bool,
    /// Packets that may wait, if the link's buffer holds more.
    pub limit: Option<u32>,
}

/// PIE.
#[derive(Clone, Copy, Debug)]
pub struct Pie {
    params: PieParams,
    law: AntiWindupLaw<PieLaw>,
    timer: Timer,
    /// Time of the last update, and busy time until then.
    updated: (Instant, Span),
    /// Remaining burst allowance.
    burst: Span,
    /// Sum of probabilities since the last signal.
    sum: f64,
    active: bool,
    /// Delay at the last update; with Linux's safeguards that of the last packet.
    delay_s: f64,
    /// Time of the last departure; `None` in the initial state.
    left_at: Option<Instant>,
    rate: RateMeter,
}

impl Pie {
    /// PIE for an empty queue.
    pub fn new(params: PieParams) -> Result<Self, ParamError> {
        Param::check_positive("target", params.law.target_s, Unit::Seconds)?;
        Param::check_positive("interval", params.law.interval.as_secs_f64(), Unit::Seconds)?;
        Param::check_positive("mean_packet", params.mean_packet, Unit::Bytes)?;
        Ok(Pie {
            params,
            law: AntiWindupLaw::without_anti_windup(PieLaw::new(params.law)),
            updated: (Instant::ZERO, Span::ZERO),
            timer: Timer::new(params.law.interval).first_after(params.start.unwrap_or(Span::ZERO)),
            burst: params.burst,
            sum: 0.0,
            active: !params.on_off,
            delay_s: 0.0,
            left_at: None,
            rate: RateMeter::default(),
        })
    }

    /// The law.
    pub const fn law(&self) -> &PieLaw {
        &self.law.inner
    }

    pub(crate) fn from_settings(settings: &Settings<'_>, network: &Network) -> Result<Self, ParamError> {
        let number = |name: &str, otherwise: f64| settings.number(name).unwrap_or(otherwise);
        let flag = |name: &str, otherwise: bool| settings.flag(name).unwrap_or(otherwise);
        let linux = settings.choice("safeguards") == Some("linux");
        let pie = Pie::new(PieParams {
            law: PieLawParams {
                target_s: number("target", DEFAULT_TARGET_S),
                interval: Span::from_secs_f64(number("interval", DEFAULT_INTERVAL_S)),
                alpha_hz: number("alpha", DEFAULT_ALPHA_HZ),
                beta_hz: number("beta", DEFAULT_BETA_HZ),
                auto_tune: flag("auto_tune", true),
                cap: flag("cap", true),
                delay_boost: flag("delay_boost", false),
                decay: if linux { LINUX_DECAY } else { DECAY },
            },
            burst: Span::from_secs_f64(number("burst", DEFAULT_BURST_S)),
            derandomize: flag("derandomize", true),
            on_off: flag("on_off", false),
            delay: if settings.choice("delay") == Some("rate") { DelaySource::Rate } else { DelaySource::Sojourn },
            mean_packet: number("mean_packet", network.packet_bytes),
            mark_p: Probability::clamp(number("mark_p", DEFAULT_MARK_P)),
            start: settings.number("start").map(Span::from_secs_f64),
            safeguards: if linux { Safeguards::Linux } else { Safeguards::Rfc8033 },
            bytemode: flag("bytemode", false),
            ecn: flag("ecn", true),
            limit: codel::limit(settings)?,
        })?;
        Ok(Pie { law: AntiWindupLaw::from_settings(*pie.law(), settings, network), ..pie })
    }

    /// PIE of one queue of a discipline, without its own `limit`.
    pub(crate) fn for_flow_queue(settings: &Settings<'_>, network: &Network) -> Result<Self, ParamError> {
        let one = Pie::from_settings(settings, network)?;
        Pie::new(PieParams { limit: None, ..one.params })
    }

    fn is_linux(&self) -> bool {
        self.params.safeguards == Safeguards::Linux
    }

    /// RFC 8033 section 5.3: activates at a third of the buffer, in the initial state.
    fn activate_on_backlog<R: Draw>(&mut self, cx: &Cx<'_, R>) {
        let limit = cx.queue.limit;
        let third = |waiting: u64, limit: u64| waiting.saturating_mul(3) >= limit;
        if third(cx.queue.packets.into(), limit.packets.into()) || third(cx.queue.bytes, limit.bytes.0) {
            self.active = true;
            self.law.inner = PieLaw::new(self.params.law);
            self.burst = self.params.burst;
            self.sum = 0.0;
            self.rate = RateMeter::default();
        }
    }

    /// RFC 8033 sections 4.1, 5.4: whether the packet is signalled.
    fn chooses<R: Draw>(&mut self, packet: &Packet, cx: &mut Cx<'_, R>) -> bool {
        let (p, mean_packet) = (self.law.inner.p.get(), self.params.mean_packet);
        // Safeguard: short queues and short delays are exempt.
        let delay_s = if self.is_linux() { self.delay_s } else { self.law.inner.delay_s() };
        let (left, two) = (cx.queue.bytes as f64, 2.0 * mean_packet);
        let short = if self.is_linux() { left < two } else { left <= two };
        if short || delay_s < self.params.law.target_s / 2.0 && p < SAFEGUARD_P {
            return false;
        }
        let p = if self.params.bytemode { p * (packet.bytes as f64 / mean_packet).min(1.0) } else { p };
        if !self.params.derandomize {
            return p > 0.0 && cx.rng.uniform() < p;
        }
        if p == 0.0 {
            self.sum = 0.0;
        }
        self.sum += p;
        if self.sum < DERANDOMIZE.0 {
            return false;
        }
        self.sum >= DERANDOMIZE.1 || cx.rng.uniform() < p
    }

    /// Anti-windup: probability after an update to `p`, with `applied` before.
    fn limit_integral<R: Draw>(&mut self, p: Probability, applied: Probability, cx: &Cx<'_, R>) -> Probability {
        let (last, before) = core::mem::replace(&mut self.updated, (cx.now, cx.queue.totals.busy_until(cx.now)));
        let interval = cx.now.saturating_since(last);
        let idle = interval.saturating_sub(self.updated.1.saturating_sub(before));
        let observation = Observation {
            interval_s: interval.as_secs_f64(),
            idle_s: idle.as_secs_f64(),
            queue_pkts: cx.queue.packets.into(),
            applied,
            ..Observation::default()
        };
        self.law.limit_integral(&observation, p)
    }

    /// Linux: updates burst allowance and delay at a departure.
    fn on_linux_dequeue(&mut self, sojourn: Span, left_bytes: u64, now: Instant) {
        if self.params.delay == DelaySource::Sojourn {
            self.delay_s = if left_bytes == 0 { 0.0 } else { sojourn.as_secs_f64() };
        }
        if let Some(before) = self.left_at.replace(now) {
            self.burst = self.burst.saturating_sub(now.saturating_since(before));
        }
    }
}

impl Aqm for Pie {
    #[inline]
    fn on_arrival<R: Draw>(&mut self, packet: &Packet, cx: &mut Cx<'_, R>) -> Verdict {
        if !self.active {
            self.activate_on_backlog(cx);
            return Verdict::Pass;
        }
        if self.params.limit.is_some_and(|limit| cx.queue.packets >= limit) {
            self.sum = 0.0;
            return Verdict::Drop(DropReason::Overflow);
        }
        // Section 4.4: burst allowance.
        if self.is_linux() && self.burst > Span::ZERO {
            return Verdict::Pass;
        }
        if cx.queue.is_full(packet) || !self.chooses(packet, cx) || self.burst > Span::ZERO {
            return Verdict::Pass;
        }
        let verdict = Verdict::signal(packet, self.params.ecn && self.law.inner.p <= self.params.mark_p);
        // Linux does not reset the sum after a mark because the sum was full.
        if verdict != Verdict::Mark || !self.is_linux() || self.sum < DERANDOMIZE.1 {
            self.sum = 0.0;
        }
        verdict
    }

    fn on_overflow<R: Draw>(&mut self, _packet: &Packet, _cx: &mut Cx<'_, R>) {
        // Section 5.4: an overflow also resets the sum.
        self.sum = 0.0;
    }

    fn on_dequeue<R: Draw>(&mut self, packet: &Packet, sojourn: Span, cx: &mut Cx<'_, R>) -> Verdict {
        self.rate.on_dequeue(packet.bytes, cx.queue.bytes, cx.now);
        if self.is_linux() {
            self.on_linux_dequeue(sojourn, cx.queue.bytes, cx.now);
        }
        Verdict::Pass
    }

    fn next_timer(&self) -> Option<Instant> {
        Some(self.timer.due())
    }

    fn on_timer<R: Draw>(&mut self, cx: &mut Cx<'_, R>) {
        if !self.timer.tick(cx.now) || !self.active {
            return;
        }
        let previous_s = self.law.inner.delay_s();
        self.delay_s = match self.params.delay {
            _ if cx.queue.packets == 0 => 0.0,
            DelaySource::Sojourn if self.is_linux() => self.delay_s,
            DelaySource::Sojourn => cx.queue.totals.last_sojourn.as_secs_f64(),
            DelaySource::Rate => self.rate.delay_s(cx.queue.bytes),
        };
        // Linux: no decay while packets wait.
        let applied = self.law.inner.p;
        let p = self.law.inner.update_where(self.delay_s, !self.is_linux() || cx.queue.packets == 0);
        let p = if self.law.is_active() { self.limit_integral(p, applied, cx) } else { p };
        // Section 4.4.
        let half = self.params.law.target_s / 2.0;
        if p == Probability::ZERO && self.delay_s < half && previous_s < half {
            self.burst = self.params.burst;
            if self.is_linux() {
                (self.sum, self.left_at, self.rate) = (0.0, None, RateMeter::default());
            }
        } else if !self.is_linux() {
            self.burst = self.burst.saturating_sub(self.timer.period());
        }
        // Section 5.3.
        if self.params.on_off && p == Probability::ZERO && self.delay_s == 0.0 && previous_s == 0.0 {
            self.active = false;
        }
    }

    fn is_quiescent(&self) -> bool {
        let at_zero = self.law.inner.p == Probability::ZERO && self.law.inner.delay_s() == 0.0 && self.delay_s == 0.0;
        let cleared =
            !self.is_linux() || self.sum == 0.0 && self.left_at.is_none() && self.rate == RateMeter::default();
        // An update with delay 0 twice restores the allowance, and deactivates PIE with `on_off`.
        let still = at_zero && cleared && self.burst == self.params.burst && !self.params.on_off;
        !self.law.is_active() && (!self.active || still)
    }

    fn resume_timer(&mut self, due: Instant) {
        self.timer.resume_at(due);
    }

    fn probability(&self) -> Probability {
        if self.active && self.burst == Span::ZERO { self.law.inner.p } else { Probability::ZERO }
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("delay", self.delay_s);
        visit("law_probability", self.law.inner.p.get());
        visit("burst_allowance", self.burst.as_secs_f64());
        visit("summed_probability", self.sum);
        visit("active", self.active as u8 as f64);
    }

    fn hooks(&self) -> Hooks {
        Hooks { departures: self.params.delay == DelaySource::Rate || self.is_linux(), ..Hooks::default() }
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        let params = &self.params;
        self.law().settings(visit);
        visit("burst", Value::seconds(params.burst));
        visit("auto_tune", Value::Flag(params.law.auto_tune));
        visit("cap", Value::Flag(params.law.cap));
        visit("delay_boost", Value::Flag(params.law.delay_boost));
        visit("derandomize", Value::Flag(params.derandomize));
        visit("on_off", Value::Flag(params.on_off));
        visit("delay", Value::Choice(if params.delay == DelaySource::Rate { "rate" } else { "sojourn" }));
        visit("mean_packet", Value::Number(params.mean_packet));
        visit("mark_p", Value::Number(params.mark_p.get()));
        if let Some(start) = params.start {
            visit("start", Value::seconds(start));
        }
        visit("safeguards", Value::Choice(if self.is_linux() { "linux" } else { "rfc8033" }));
        visit("bytemode", Value::Flag(params.bytemode));
        visit("ecn", Value::Flag(params.ecn));
        self.law.visit_mode(visit);
        if let Some(limit) = params.limit {
            visit("limit", Value::Number(limit as f64));
        }
    }

    fn law_mut(&mut self) -> Option<&mut dyn SampledLaw> {
        Some(&mut self.law)
    }

    fn take_over(&mut self, old: Option<&Self>, now: Instant, totals: &Totals) {
        self.updated = (now, totals.busy_until(now));
        self.timer.start_after(now, self.params.start.unwrap_or(Span::ZERO));
        let Some(old) = old else { return };
        self.timer.follow(&old.timer);
        self.law.take_over(&old.law);
        self.updated = old.updated;
        (self.burst, self.sum, self.active, self.delay_s, self.left_at, self.rate) =
            (old.burst, old.sum, old.active, old.delay_s, old.left_at, old.rate);
    }

    fn theory(&self) -> &dyn Theory {
        self
    }
}

impl Theory for Pie {
    fn signal_process(&self) -> SignalProcess {
        if self.params.derandomize { SignalProcess::Derandomized } else { SignalProcess::Bernoulli }
    }

    fn safeguard(&self) -> Option<SafeguardLimits> {
        let delay_s = 0.5 * self.params.law.target_s;
        let sojourn = self.params.delay == DelaySource::Sojourn;
        Some(SafeguardLimits { delay_s, probability: SAFEGUARD_P, burst: self.params.burst, sojourn })
    }

    /// Reports alpha and beta after auto-tuning.
    fn derive(&self, at: &QueueOperatingPoint, _plant: &TcpPlant, report: &mut dyn DesignReport) {
        let params = self.law().params();
        let divisor =
            if params.auto_tune { PieLaw::divisor(self.signal_process().law_probability(at.probability)) } else { 1.0 };
        report.number("alpha_tuned", params.alpha_hz / divisor);
        report.number("beta_tuned", params.beta_hz / divisor);
    }
}

#[cfg(test)]
mod tests;
