//! CoDel: controlled delay (Nichols, Jacobson; RFC 8289).
//!
//! A good queue empties now and then, so its minimum sojourn time over an interval is small. In a standing queue
//! sojourn times stay above a target for a whole interval. Then CoDel signals the packet at the head, and another one
//! every interval / sqrt(count) until a packet meets the target. CoDel needs no rate, no random numbers and no tuning.
//!
//! ```text
//!            above the target for an interval: signal, count = 1 or as many as were needed last time
//!  Quiet ──────────────────────────────────────────────────────> Signalling ──┐ every interval / sqrt(count):
//!    ^                                                               │  ^     │ signal, count += 1
//!    └───────────── a packet below the target, or one MTU left ──────┘  └─────┘
//! ```
//!
//! After a drop the host offers the next head. Two more states handle it: in `Dropped` the schedule advances only if
//! that head is above the target too; in `Entered` the head after the first drop passes unexamined.
//!
//! Deviations:
//! - ECN: the RFC does not specify marking (its section 5 drops). A marked packet counts as a signal and is sent, as in
//!   Linux and ns-3.
//! - The RFC's `maxpacket_` is the parameter `mtu`; section 5.3 has 512 B there and asks for the
//!   interface's MTU, which 1500 B is.
//! - `ce_threshold` (Linux, ns-3; not in the RFC) marks every packet that waited longer, or with
//!   `ce_threshold_selector` those of one codepoint; off unless given.
//! - `schedule = now` (ns-3; off): a late mark (at the next packet) delays the following ones. The RFC and Linux count
//!   from the due time.
//! - 1/sqrt(count) is exact. Linux and ns-3 use one Newton step per signal: 0.5 instead of 0.71 at count 2, within 3 %
//!   from 3 on while the count rises by one. When signalling resumes with a smaller count, the step starts from the old
//!   root, and gaps are far too short: 15 ms instead of 71 ms from count 100 to count 2. `arithmetic = linux` has these
//!   steps in 16 bits, a clock in units of 1.024 us, rounded down, and an interval that must be exceeded, not reached.
//! - ns-3 is inactive with *less* than an MTU left, Linux and the RFC with an MTU or less.
//! - `limit` (Linux) applies below the link's buffer.
//!
//! Linux can also select by DSCP, which `codel-linux` omits.

use aqumen_units::{Ecn, Instant, Span};

use crate::{
    Algorithm, Aqm, Bound, Cx, DefaultValue, Draw, DropReason, Hooks, Kind, Network, Packet, Param, ParamError,
    Settings, Theory, Totals, Unit, Value, Verdict,
};

// RFC 8289 sections 4.3 (target), 4.2 (interval) and 5.3.
const DEFAULT_TARGET_S: f64 = 0.005;
const DEFAULT_INTERVAL_S: f64 = 0.1;
const DEFAULT_MTU: f64 = 1500.0;
/// Unit of Linux's clock: 2^10 ns.
const LINUX_UNIT_BITS: u32 = 10;
/// RFC 8289 section 5.5: number of intervals for which the previous count is a good start.
const MEMORY_INTERVALS: u64 = 16;

/// Registry entry.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "codel",
    title: "CoDel",
    summary: "controlled delay: signals packets at the head while the minimum sojourn time of an interval is above a target",
    reference: "Nichols, Jacobson, McGregor, Iyengar: Controlled Delay Active Queue Management, RFC 8289, 2018",
    params: &[
        TARGET,
        INTERVAL,
        Param {
            name: "mtu",
            kind: Kind::Number { unit: Unit::Bytes, min: Bound::Inclusive(0.0), max: Bound::Inclusive(1e9) },
            default: DefaultValue::number(DEFAULT_MTU),
            doc: "no packet is signalled with at most this much left in the queue",
        },
        Param::positive(
            "ce_threshold",
            Unit::Seconds,
            DefaultValue::Designed("none: off"),
            "sojourn time above which ECN-capable packets are marked, Linux's ce_threshold",
        ),
        Param {
            name: "ce_threshold_selector",
            kind: Kind::Choice(&["any", "ect0", "ect1"]),
            default: DefaultValue::Value(Value::Choice("any")),
            doc: "packets that `ce_threshold` marks: all ECN-capable ones, or those of one codepoint (ect1: L4S)",
        },
        Param {
            name: "schedule",
            kind: Kind::Choice(&["due", "now"]),
            default: DefaultValue::Value(Value::Choice("due")),
            doc: "start of the gap after a mark: the due time of the mark, or its actual time, as in ns-3 (now)",
        },
        ARITHMETIC,
        LIMIT,
        Param::ECN,
    ],
};

/// CoDel's parameters without `limit`, which a discipline of several queues has itself.
pub(crate) const PARAMS_OF_A_QUEUE: [Param; ALGORITHM.params.len() - 1] = {
    let mut all = [Param::ECN; ALGORITHM.params.len() - 1];
    let mut i = 0;
    while i + 1 < all.len() {
        all[i] = ALGORITHM.params[i];
        i += 1;
    }
    all
};

/// Parameter of the arithmetic of CoDel and its variants.
pub(crate) const ARITHMETIC: Param = Param {
    name: "arithmetic",
    kind: Kind::Choice(&["exact", "linux"]),
    default: DefaultValue::Value(Value::Choice("exact")),
    doc: "time, 1/sqrt(count) and fractions of a quantum: exact, or rounded and by Newton steps as in Linux",
};

/// Parameter of a queue limit below the link's buffer, for single-queue algorithms.
pub(crate) const LIMIT: Param = Param::positive(
    "limit",
    Unit::Packets,
    DefaultValue::Designed("the link's buffer"),
    "packets that may wait, if the link's buffer holds more",
);

/// Parameter of the target sojourn time, for CoDel and its variants.
pub(crate) const TARGET: Param = Param::positive(
    "target",
    Unit::Seconds,
    DefaultValue::number(DEFAULT_TARGET_S),
    "target sojourn time of a standing queue, TARGET",
);

/// Parameter of the interval, for CoDel and its variants.
pub(crate) const INTERVAL: Param = Param::positive(
    "interval",
    Unit::Seconds,
    DefaultValue::number(DEFAULT_INTERVAL_S),
    "window of the minimum sojourn time, about a large round-trip time, INTERVAL",
);

/// The parameters of [`Codel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelParams {
    /// Target sojourn time.
    pub target: Span,
    /// Window of the minimum sojourn time.
    pub interval: Span,
    /// No packet is signalled with at most this many bytes left.
    pub mtu: u32,
    /// Sojourn time above which ECN-capable packets are marked.
    pub ce_threshold: Option<Span>,
    /// Codepoint that `ce_threshold` marks; `None` for any ECN-capable one.
    pub ce_threshold_selector: Option<Ecn>,
    /// Whether the gap after a mark begins at the mark, not at its due time (ns-3).
    pub from_now: bool,
    /// Arithmetic of time and 1/sqrt(count).
    pub arithmetic: Arithmetic,
    /// Packets that may wait, if the link's buffer holds more.
    pub limit: Option<u32>,
    /// Mark ECN-capable packets.
    pub ecn: bool,
}

/// Arithmetic of time and 1/sqrt(count).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Arithmetic {
    /// Exact.
    #[default]
    Exact,
    /// As in Linux. CoDel: units of 1.024 us, one Newton step per signal, an interval that must be exceeded. COBALT:
    /// nanoseconds, a table of roots, Newton steps beyond it. CAKE also: quanta in 2^16 parts, rounded at random.
    Linux,
}

/// Control law: gaps shrink as 1/sqrt(count), so that TCP's rate falls linearly (RFC 8289 section 3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelLaw {
    interval: Span,
}

/// CoDel's state of one queue. Many queues can share one [`CodelParams`].
#[derive(Clone, Copy, Debug)]
pub struct CodelState {
    /// End of the interval above the target; `None` while the sojourn time is below.
    above_until: Option<Instant>,
    phase: Phase,
    /// Signals since signalling began.
    count: u32,
    /// Initial value of `count`.
    first_count: u32,
    /// Linux's 1/sqrt(count) in units of 2^-16, by Newton steps.
    inverse_root: u16,
    next: Instant,
}

/// State of the drop schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Quiet,
    Signalling,
    /// Signalling has just begun with a drop.
    Entered,
    /// A drop was due and done while signalling.
    Dropped,
}

/// Controlled delay.
#[derive(Clone, Copy, Debug)]
pub struct Codel {
    params: CodelParams,
    state: CodelState,
}

impl Default for CodelParams {
    /// The RFC's values.
    fn default() -> Self {
        CodelParams {
            target: Span::from_secs_f64(DEFAULT_TARGET_S),
            interval: Span::from_secs_f64(DEFAULT_INTERVAL_S),
            mtu: DEFAULT_MTU as u32,
            ce_threshold: None,
            ce_threshold_selector: None,
            from_now: false,
            arithmetic: Arithmetic::Exact,
            limit: None,
            ecn: true,
        }
    }
}

impl Arithmetic {
    /// Arithmetic that the settings select.
    pub(crate) fn from_settings(settings: &Settings<'_>) -> Self {
        if settings.choice("arithmetic") == Some("linux") { Arithmetic::Linux } else { Arithmetic::Exact }
    }

    /// Name in the settings.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Arithmetic::Exact => "exact",
            Arithmetic::Linux => "linux",
        }
    }

    /// Parameter `span` in the resolution of the clock.
    fn span(self, span: Span) -> Span {
        match self {
            Arithmetic::Exact => span,
            Arithmetic::Linux => Span::from_nanos(whole_units(span.as_nanos())),
        }
    }

    /// Sojourn time and current time in the resolution of the clock.
    fn clock(self, sojourn: Span, now: Instant) -> (Span, Instant) {
        match self {
            Arithmetic::Exact => (sojourn, now),
            Arithmetic::Linux => {
                let (came, left) = (now.as_nanos().wrapping_sub(sojourn.as_nanos()), whole_units(now.as_nanos()));
                (Span::from_nanos(left.wrapping_sub(whole_units(came))), Instant::from_nanos(left))
            }
        }
    }
}

/// Nanoseconds rounded down to whole units of Linux's clock.
const fn whole_units(nanos: u64) -> u64 {
    nanos >> LINUX_UNIT_BITS << LINUX_UNIT_BITS
}

impl CodelLaw {
    /// Law with this interval.
    pub const fn new(interval: Span) -> Self {
        CodelLaw { interval }
    }

    /// Gap between signal number `count` (at least 1) and the next.
    pub fn gap(&self, count: u32) -> Span {
        Span::from_nanos((self.interval.as_nanos() as f64 / libm::sqrt(count.max(1) as f64)) as u64)
    }

    /// The interval times `parts` / 2^16, in units of Linux's clock.
    fn fraction(&self, parts: u16) -> Span {
        let units = self.interval.as_nanos() >> LINUX_UNIT_BITS;
        Span::from_nanos(((units as u128 * parts as u128) >> 16 << LINUX_UNIT_BITS) as u64)
    }
}

impl Default for CodelState {
    fn default() -> Self {
        CodelState {
            above_until: None,
            phase: Phase::Quiet,
            count: 0,
            first_count: 0,
            inverse_root: 0,
            next: Instant::ZERO,
        }
    }
}

impl CodelState {
    /// Verdict on the packet at the head, which waited for `sojourn`, with `backlog_bytes` behind it. After a drop the
    /// host offers the next head at the same time, or calls [`CodelState::on_empty`].
    #[inline]
    pub fn on_head(
        &mut self,
        params: &CodelParams,
        packet: &Packet,
        sojourn: Span,
        backlog_bytes: u64,
        now: Instant,
    ) -> Verdict {
        let (sojourn, now) = params.arithmetic.clock(sojourn, now);
        let law = CodelLaw::new(params.arithmetic.span(params.interval));
        let standing = self.is_standing(params, law, sojourn, backlog_bytes, now);
        let verdict = match self.phase {
            // RFC 8289 section 5.5: the packet after the first drop always passes.
            Phase::Entered => {
                self.phase = Phase::Signalling;
                Verdict::Pass
            }
            Phase::Quiet if standing => self.enter(params, law, packet.ecn, now),
            Phase::Quiet => Verdict::Pass,
            // A packet below the target ends signalling.
            Phase::Signalling | Phase::Dropped if !standing => {
                self.phase = Phase::Quiet;
                Verdict::Pass
            }
            // The schedule continues from the due time of the drop, not from now.
            Phase::Dropped => {
                self.next = self.next.saturating_add(self.gap(params, law));
                self.phase = Phase::Signalling;
                self.signal_if_due(params, law, packet.ecn, now)
            }
            Phase::Signalling => self.signal_if_due(params, law, packet.ecn, now),
        };
        match params.ce_threshold {
            Some(threshold) if verdict == Verdict::Pass && params.selects(packet) => {
                if sojourn > params.arithmetic.span(threshold) { Verdict::Mark } else { verdict }
            }
            _ => verdict,
        }
    }

    /// Counts `packets` packets that the discipline dropped from this queue as signals (Linux's FQ-CoDel).
    pub fn on_buffer_stolen(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }

    /// Reports an empty queue.
    pub fn on_empty(&mut self) {
        self.above_until = None;
        self.phase = match self.phase {
            // Without a packet after the drop the queue is below its target.
            Phase::Dropped => Phase::Quiet,
            Phase::Entered => Phase::Signalling,
            phase => phase,
        };
    }

    /// Whether CoDel is signalling.
    pub fn is_signalling(&self) -> bool {
        self.phase != Phase::Quiet
    }

    /// Visits each named state variable, for traces.
    pub fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("count", self.count as f64);
        visit("signalling", self.is_signalling() as u8 as f64);
        visit("above_target", self.above_until.is_some() as u8 as f64);
    }

    /// RFC 8289 section 5.6 (`dodequeue`): whether the sojourn time has been above the target for an interval.
    #[inline(always)]
    fn is_standing(
        &mut self,
        params: &CodelParams,
        law: CodelLaw,
        sojourn: Span,
        backlog_bytes: u64,
        now: Instant,
    ) -> bool {
        if sojourn < params.arithmetic.span(params.target) || backlog_bytes <= params.mtu as u64 {
            self.above_until = None;
            return false;
        }
        match self.above_until {
            None => {
                self.above_until = Some(now.saturating_add(law.interval));
                false
            }
            Some(until) => now > until || now == until && params.arithmetic == Arithmetic::Exact,
        }
    }

    /// RFC 8289 section 5.5: signalling begins with this packet, with the previous count if that was recent.
    #[inline(never)]
    fn enter(&mut self, params: &CodelParams, law: CodelLaw, ecn: Ecn, now: Instant) -> Verdict {
        let needed = self.count.saturating_sub(self.first_count);
        let recent = now.saturating_since(self.next) < law.interval.saturating_mul(MEMORY_INTERVALS);
        if needed > 1 && recent {
            self.count = needed;
            self.step_root();
        } else {
            (self.count, self.inverse_root) = (1, u16::MAX);
        }
        self.first_count = self.count;
        self.next = now.saturating_add(self.gap(params, law));
        let verdict = Verdict::signal_to(ecn, params.ecn);
        self.phase = if verdict == Verdict::Mark { Phase::Signalling } else { Phase::Entered };
        verdict
    }

    #[inline]
    fn signal_if_due(&mut self, params: &CodelParams, law: CodelLaw, ecn: Ecn, now: Instant) -> Verdict {
        if now < self.next { Verdict::Pass } else { self.signal(params, law, ecn, now) }
    }

    #[inline(never)]
    fn signal(&mut self, params: &CodelParams, law: CodelLaw, ecn: Ecn, now: Instant) -> Verdict {
        self.count = self.count.saturating_add(1);
        self.step_root();
        let verdict = Verdict::signal_to(ecn, params.ecn);
        if verdict == Verdict::Mark {
            let from = if params.from_now { now } else { self.next };
            self.next = from.saturating_add(self.gap(params, law));
        } else {
            self.phase = Phase::Dropped;
        }
        verdict
    }

    /// Time to the next signal.
    fn gap(&self, params: &CodelParams, law: CodelLaw) -> Span {
        match params.arithmetic {
            Arithmetic::Exact => law.gap(self.count),
            Arithmetic::Linux => law.fraction(self.inverse_root),
        }
    }

    /// Newton step for 1/sqrt(count): x (3 - count x^2) / 2, in Linux's fixed point: 32 bits, of which 16 are stored.
    fn step_root(&mut self) {
        let x = (self.inverse_root as u64) << 16;
        let rest = (3u64 << 32).wrapping_sub(self.count as u64 * ((x * x) >> 32));
        self.inverse_root = ((rest >> 2).wrapping_mul(x) >> (31 + 16)) as u16;
    }
}

impl CodelParams {
    /// Whether `ce_threshold` applies to `packet`.
    fn selects(&self, packet: &Packet) -> bool {
        match self.ce_threshold_selector {
            None => packet.ecn.is_ect(),
            Some(codepoint) => packet.ecn == codepoint,
        }
    }
}

impl Codel {
    /// CoDel for an empty queue. Target and interval are above 0.
    pub fn new(params: CodelParams) -> Result<Self, ParamError> {
        Param::check_positive("target", params.target.as_secs_f64(), Unit::Seconds)?;
        Param::check_positive("interval", params.interval.as_secs_f64(), Unit::Seconds)?;
        Ok(Codel { params, state: CodelState::default() })
    }

    /// CoDel of one queue of a discipline, without its own `limit`.
    pub(crate) fn for_flow_queue(settings: &Settings<'_>, network: &Network) -> Result<Self, ParamError> {
        let one = Codel::from_settings(settings, network)?;
        Codel::new(CodelParams { limit: None, ..one.params })
    }

    pub(crate) fn from_settings(settings: &Settings<'_>, _network: &Network) -> Result<Self, ParamError> {
        let default = CodelParams::default();
        let span = |name: &str| settings.number(name).map(Span::from_secs_f64);
        Codel::new(CodelParams {
            target: span("target").unwrap_or(default.target),
            interval: span("interval").unwrap_or(default.interval),
            mtu: settings.whole("mtu")?.map_or(default.mtu, |bytes| bytes as u32),
            ce_threshold: span("ce_threshold"),
            ce_threshold_selector: match settings.choice("ce_threshold_selector") {
                Some("ect0") => Some(Ecn::Ect0),
                Some("ect1") => Some(Ecn::Ect1),
                _ => None,
            },
            from_now: settings.choice("schedule") == Some("now"),
            arithmetic: Arithmetic::from_settings(settings),
            limit: limit(settings)?,
            ecn: settings.flag("ecn").unwrap_or(default.ecn),
        })
    }
}

/// The value of `limit`.
pub(crate) fn limit(settings: &Settings<'_>) -> Result<Option<u32>, ParamError> {
    Ok(settings.whole("limit")?.map(|packets| u32::try_from(packets).unwrap_or(u32::MAX)))
}

impl Aqm for Codel {
    fn on_arrival<R: Draw>(&mut self, _packet: &Packet, cx: &mut Cx<'_, R>) -> Verdict {
        match self.params.limit {
            Some(limit) if cx.queue.packets >= limit => Verdict::Drop(DropReason::Overflow),
            _ => Verdict::Pass,
        }
    }

    fn on_buffer_stolen(&mut self, packets: u32) {
        self.state.on_buffer_stolen(packets);
    }

    #[inline]
    fn on_dequeue<R: Draw>(&mut self, packet: &Packet, sojourn: Span, cx: &mut Cx<'_, R>) -> Verdict {
        self.state.on_head(&self.params, packet, sojourn, cx.queue.bytes, cx.now)
    }

    fn on_idle(&mut self, _now: Instant) {
        self.state.on_empty();
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.state.observe(visit);
    }

    fn hooks(&self) -> Hooks {
        Hooks { decides_at_head: true, departures: true }
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        let CodelParams {
            target,
            interval,
            mtu,
            ce_threshold,
            ce_threshold_selector,
            from_now,
            arithmetic,
            limit,
            ecn,
            ..
        } = self.params;
        visit("target", Value::seconds(target));
        visit("interval", Value::seconds(interval));
        visit("mtu", Value::Number(mtu as f64));
        if let Some(threshold) = ce_threshold {
            visit("ce_threshold", Value::seconds(threshold));
        }
        let selector = match ce_threshold_selector {
            Some(Ecn::Ect1) => "ect1",
            Some(_) => "ect0",
            None => "any",
        };
        visit("ce_threshold_selector", Value::Choice(selector));
        visit("schedule", Value::Choice(if from_now { "now" } else { "due" }));
        visit("arithmetic", Value::Choice(arithmetic.name()));
        if let Some(limit) = limit {
            visit("limit", Value::Number(limit as f64));
        }
        visit("ecn", Value::Flag(ecn));
    }

    fn take_over(&mut self, old: Option<&Self>, now: Instant, totals: &Totals) {
        let _ = (now, totals);
        if let Some(old) = old {
            self.state = old.state;
        }
    }

    fn theory(&self) -> &dyn Theory {
        self
    }
}

impl Theory for Codel {
    fn not_linearizable(&self) -> Option<&'static str> {
        Some("it signals at scheduled times, not with a probability")
    }
}

#[cfg(test)]
mod tests;
