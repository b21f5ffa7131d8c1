//! CoDel: controlled delay (Nichols, Jacobson; RFC 8289).
//!
//! A queue that is good empties now and then, so its least sojourn time over an interval is small; a standing queue
//! shows as sojourn times that stay above a target for a whole interval. Then the packet at the head is signalled,
//! and another one each interval / sqrt(count) until one packet meets the target again. CoDel needs no rate, no
//! random numbers and no setting.
//!
//! ```text
//!            above the target for an interval: signal, count = 1 or as many as were needed last time
//!  Quiet ──────────────────────────────────────────────────────> Signalling ──┐ every interval / sqrt(count):
//!    ^                                                               │  ^     │ signal, count += 1
//!    └───────────── a packet below the target, or one MTU left ──────┘  └─────┘
//! ```
//!
//! A host that offers the next head after a drop passes through two more states, so that the schedule
//! moves on only if that head, too, is above the target (`Dropped`), and so that the head after the first
//! drop leaves unseen (`Entered`).
//!
//! Deviations:
//! - ECN: the RFC leaves marking open (its section 5 drops). A marked packet counts as a signal and
//!   leaves, as in Linux and ns-3.
//! - The RFC's `maxpacket_` is the parameter `mtu`; section 5.3 has 512 B there and asks for the
//!   interface's MTU, which 1500 B is.
//! - `ce_threshold` (Linux, ns-3; not in the RFC) marks every packet that waited longer, or with
//!   `ce_threshold_selector` those of one codepoint; off unless given.
//! - `schedule = now` (ns-3; off): a mark that came late, at the next packet, delays those after it. The RFC and Linux
//!   count from when it was due.
//! - 1/sqrt(count) is exact. Linux and ns-3 follow it by one Newton step a signal, 0.5 instead of 0.71 at a count of 2.
//!   From 3 on that is within 3 % while the count rises by one; when signalling begins again with a smaller count the
//!   step starts from the old root, and is far too short: 15 ms instead of 71 from a count of 100 to one of 2.
//!   `arithmetic = linux`, with Linux's 16 bits and all else of its arithmetic: its clock counts units of 1.024 us,
//!   rounded down, and signals are in order when the interval is *over*, not when it has passed.
//! - ns-3 is quiet with *less* than an MTU left, Linux and the RFC with an MTU or less.
//! - `limit` (Linux) applies below the link's buffer.
//!
//! Linux, of which `codel-linux` has the rest: the selector can pick by DSCP, too.

use aqumen_units::{Ecn, Instant, Span};

use crate::{
    Algorithm, Aqm, Bound, Cx, DefaultValue, Draw, DropReason, Hooks, Kind, Network, Packet, Param, ParamError,
    Settings, Theory, Totals, Unit, Value, Verdict,
};

// RFC 8289 sections 4.3 (target), 4.2 (interval) and 5.3.
const DEFAULT_TARGET_S: f64 = 0.005;
const DEFAULT_INTERVAL_S: f64 = 0.1;
const DEFAULT_MTU: f64 = 1500.0;
/// A unit of Linux's clock is 2^10 ns.
const LINUX_UNIT_BITS: u32 = 10;
/// RFC 8289 section 5.5: within so many intervals the count of the last time is a good start.
const MEMORY_INTERVALS: u64 = 16;

/// Its row.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "codel",
    title: "CoDel",
    summary: "controlled delay: signals packets at the head while the least sojourn time of an interval is above a target",
    reference: "Nichols, Jacobson, McGregor, Iyengar: Controlled Delay Active Queue Management, RFC 8289, 2018",
    params: &[
        TARGET,
        INTERVAL,
        Param {
            name: "mtu",
            kind: Kind::Number { unit: Unit::Bytes, min: Bound::Inclusive(0.0), max: Bound::Inclusive(1e9) },
            default: DefaultValue::number(DEFAULT_MTU),
            doc: "with this much or less left in the queue nothing is signalled",
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
            doc: "which packets `ce_threshold` marks: all that are ECN-capable, or those of one codepoint (ect1: L4S)",
        },
        Param {
            name: "schedule",
            kind: Kind::Choice(&["due", "now"]),
            default: DefaultValue::Value(Value::Choice("due")),
            doc: "from when the next signal after a mark counts: when that mark was due, or when it was made, as in ns-3",
        },
        ARITHMETIC,
        LIMIT,
        Param::ECN,
    ],
};

/// CoDel's table without `limit`, which a discipline of many queues has itself.
pub(crate) const PARAMS_OF_A_QUEUE: [Param; ALGORITHM.params.len() - 1] = {
    let mut all = [Param::ECN; ALGORITHM.params.len() - 1];
    let mut i = 0;
    while i + 1 < all.len() {
        all[i] = ALGORITHM.params[i];
        i += 1;
    }
    all
};

/// The row of how time is counted and 1/sqrt(count) found, for CoDel and its relatives.
pub(crate) const ARITHMETIC: Param = Param {
    name: "arithmetic",
    kind: Kind::Choice(&["exact", "linux"]),
    default: DefaultValue::Value(Value::Choice("exact")),
    doc: "time, 1/sqrt(count) and parts of a quantum: exact, or rounded and by Newton steps as in Linux",
};

/// The row of a limit of the algorithm's own, for one that looks after one queue.
pub(crate) const LIMIT: Param = Param::positive(
    "limit",
    Unit::Packets,
    DefaultValue::Designed("the link's buffer"),
    "packets that may wait, if the link's buffer holds more",
);

/// The row of the target sojourn time, for CoDel and its relatives.
pub(crate) const TARGET: Param = Param::positive(
    "target",
    Unit::Seconds,
    DefaultValue::number(DEFAULT_TARGET_S),
    "sojourn time that a standing queue may have, TARGET",
);

/// The row of the interval, for CoDel and its relatives.
pub(crate) const INTERVAL: Param = Param::positive(
    "interval",
    Unit::Seconds,
    DefaultValue::number(DEFAULT_INTERVAL_S),
    "time over which the least sojourn time counts: a large round-trip time, INTERVAL",
);

/// The parameters of [`Codel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelParams {
    /// Sojourn time that a standing queue may have.
    pub target: Span,
    /// Time over which the least sojourn time counts.
    pub interval: Span,
    /// With so many bytes or fewer left nothing is signalled.
    pub mtu: u32,
    /// Sojourn time above which ECN-capable packets are marked.
    pub ce_threshold: Option<Span>,
    /// The only codepoint that `ce_threshold` marks; `None`: any that can be.
    pub ce_threshold_selector: Option<Ecn>,
    /// The gap to the signal after a mark begins with that mark, not when it was due (ns-3).
    pub from_now: bool,
    /// How time is counted and 1/sqrt(count) found.
    pub arithmetic: Arithmetic,
    /// Packets that may wait, if the link's buffer holds more.
    pub limit: Option<u32>,
    /// Mark ECN-capable packets.
    pub ecn: bool,
}

/// How it counts time, and finds 1/sqrt(count).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arithmetic {
    /// To the last bit.
    #[default]
    Exact,
    /// As Linux. CoDel: in units of 1.024 us, by one Newton step from the root before, at each signal, and with an
    /// interval that must be over. COBALT: in nanoseconds, by a table of roots and above it by Newton's step. CAKE,
    /// besides: quanta in 2^16 parts, rounded by chance.
    Linux,
}

/// The control law: signals become denser as 1/sqrt(count), so that TCP's rate falls linearly (RFC 8289 section 3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelLaw {
    interval: Span,
}

/// The state of one queue under CoDel. Many queues can share one [`CodelParams`].
#[derive(Clone, Copy, Debug)]
pub struct CodelState {
    /// When the sojourn time will have been above the target for an interval; none while it is below.
    above_until: Option<Instant>,
    phase: Phase,
    /// Signals in this stretch of signalling.
    count: u32,
    /// `count` at its beginning.
    first_count: u32,
    /// What Newton's steps have come to: 1/sqrt(count) in units of 2^-16.
    inverse_root: u16,
    next: Instant,
}

/// What CoDel does about the packet at the head.
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
    /// As the settings have it.
    pub(crate) fn of(settings: &Settings<'_>) -> Self {
        if settings.choice("arithmetic") == Some("linux") { Arithmetic::Linux } else { Arithmetic::Exact }
    }

    /// The settings' word.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Arithmetic::Exact => "exact",
            Arithmetic::Linux => "linux",
        }
    }

    /// A time that is given, as it counts.
    fn span(self, span: Span) -> Span {
        match self {
            Arithmetic::Exact => span,
            Arithmetic::Linux => Span::from_nanos(whole_units(span.as_nanos())),
        }
    }

    /// A sojourn time that ends `now`, and that moment, as its clock shows them.
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

/// Nanoseconds, in whole units of Linux's clock.
const fn whole_units(nanos: u64) -> u64 {
    nanos >> LINUX_UNIT_BITS << LINUX_UNIT_BITS
}

impl CodelLaw {
    /// The law with this interval.
    pub const fn new(interval: Span) -> Self {
        CodelLaw { interval }
    }

    /// The time between signal number `count` (at least one) and the next.
    pub fn gap(&self, count: u32) -> Span {
        Span::from_nanos((self.interval.as_nanos() as f64 / libm::sqrt(count.max(1) as f64)) as u64)
    }

    /// So many of 2^16 parts of the interval, in units of Linux's clock.
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
    /// The verdict on the packet at the head, which waited for `sojourn`; `backlog_bytes` are left behind it. After a
    /// drop the next head is offered at the same moment, or [`CodelState::on_empty`] is called.
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
            // RFC 8289 section 5.5: the packet after the first drop leaves, whatever it met.
            Phase::Entered => {
                self.phase = Phase::Signalling;
                Verdict::Pass
            }
            Phase::Quiet if standing => self.enter(params, law, packet, now),
            Phase::Quiet => Verdict::Pass,
            // A packet below the target ends the stretch.
            Phase::Signalling | Phase::Dropped if !standing => {
                self.phase = Phase::Quiet;
                Verdict::Pass
            }
            // The schedule moves on from when the drop was due, not from now.
            Phase::Dropped => {
                self.next = self.next.saturating_add(self.gap(params, law));
                self.phase = Phase::Signalling;
                self.signal_if_due(params, law, packet, now)
            }
            Phase::Signalling => self.signal_if_due(params, law, packet, now),
        };
        match params.ce_threshold {
            Some(threshold) if verdict == Verdict::Pass && params.selects(packet) => {
                if sojourn > params.arithmetic.span(threshold) { Verdict::Mark } else { verdict }
            }
            _ => verdict,
        }
    }

    /// So many packets were taken from the queue for want of room, and count as signals (Linux's FQ-CoDel).
    pub fn on_stolen(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }

    /// The link found nothing to send.
    pub fn on_empty(&mut self) {
        self.above_until = None;
        self.phase = match self.phase {
            // No packet came after the drop: the queue is below its target.
            Phase::Dropped => Phase::Quiet,
            Phase::Entered => Phase::Signalling,
            phase => phase,
        };
    }

    /// Whether it is signalling.
    pub fn is_signalling(&self) -> bool {
        self.phase != Phase::Quiet
    }

    /// Shows each named quantity of the state, for traces.
    pub fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("count", self.count as f64);
        visit("signalling", self.is_signalling() as u8 as f64);
        visit("above_target", self.above_until.is_some() as u8 as f64);
    }

    /// RFC 8289 section 5.6 (`dodequeue`): whether the sojourn time has been above the target for an interval.
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

    /// RFC 8289 section 5.5: signalling begins with this packet, where the last stretch left off if that was recent.
    fn enter(&mut self, params: &CodelParams, law: CodelLaw, packet: &Packet, now: Instant) -> Verdict {
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
        let verdict = Verdict::signal(packet, params.ecn);
        self.phase = if verdict == Verdict::Mark { Phase::Signalling } else { Phase::Entered };
        verdict
    }

    fn signal_if_due(&mut self, params: &CodelParams, law: CodelLaw, packet: &Packet, now: Instant) -> Verdict {
        if now < self.next {
            return Verdict::Pass;
        }
        self.count = self.count.saturating_add(1);
        self.step_root();
        let verdict = Verdict::signal(packet, params.ecn);
        if verdict == Verdict::Mark {
            let from = if params.from_now { now } else { self.next };
            self.next = from.saturating_add(self.gap(params, law));
        } else {
            self.phase = Phase::Dropped;
        }
        verdict
    }

    /// The time to the next signal.
    fn gap(&self, params: &CodelParams, law: CodelLaw) -> Span {
        match params.arithmetic {
            Arithmetic::Exact => law.gap(self.count),
            Arithmetic::Linux => law.fraction(self.inverse_root),
        }
    }

    /// One Newton step for 1/sqrt(count): x (3 - count x^2) / 2, in fixed point as Linux does it:
    /// 32 bits, of which 16 are kept.
    fn step_root(&mut self) {
        let x = (self.inverse_root as u64) << 16;
        let rest = (3u64 << 32).wrapping_sub(self.count as u64 * ((x * x) >> 32));
        self.inverse_root = ((rest >> 2).wrapping_mul(x) >> (31 + 16)) as u16;
    }
}

impl CodelParams {
    /// Whether `ce_threshold` marks such a packet.
    fn selects(&self, packet: &Packet) -> bool {
        match self.ce_threshold_selector {
            None => packet.ecn.is_ect(),
            Some(codepoint) => packet.ecn == codepoint,
        }
    }
}

impl Codel {
    /// CoDel over an empty queue. Target and interval are above zero.
    pub fn new(params: CodelParams) -> Result<Self, ParamError> {
        Param::check_positive("target", params.target.as_secs_f64(), Unit::Seconds)?;
        Param::check_positive("interval", params.interval.as_secs_f64(), Unit::Seconds)?;
        Ok(Codel { params, state: CodelState::default() })
    }

    /// That of one queue among many: `limit` is of them all.
    pub(crate) fn in_a_bank(settings: &Settings<'_>, network: &Network) -> Result<Self, ParamError> {
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
            arithmetic: Arithmetic::of(settings),
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

    fn on_stolen(&mut self, packets: u32) {
        self.state.on_stolen(packets);
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
    fn no_slope(&self) -> Option<&'static str> {
        Some("it signals at moments, not with a probability")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ECT: Packet = Packet {
        bytes: 1000,
        ecn: Ecn::Ect0,
        class: 0,
        segments: 1,
        flow_hash: 0,
        source_hash: 0,
        destination_hash: 0,
        ack: None,
    };
    const NOT_ECT: Packet = Packet { ecn: Ecn::NotEct, ..ECT };
    const DROP: Verdict = Verdict::Drop(DropReason::Early);

    /// One queue with the default parameters: target 5 ms, interval 100 ms, MTU 1500 B.
    #[derive(Default)]
    struct Queue(CodelState);

    impl Queue {
        /// A head that waited 10 ms with 10 kB behind it, at so many milliseconds.
        fn high(&mut self, at_ms: f64, packet: &Packet) -> Verdict {
            self.head(at_ms, 10, 10_000, packet)
        }

        /// A head that waited 1 ms.
        fn low(&mut self, at_ms: f64, packet: &Packet) -> Verdict {
            self.head(at_ms, 1, 10_000, packet)
        }

        fn head(&mut self, at_ms: f64, sojourn_ms: u64, left: u64, packet: &Packet) -> Verdict {
            let now = Instant::from_nanos((at_ms * 1e6) as u64);
            self.0.on_head(&CodelParams::default(), packet, Span::from_millis(sojourn_ms), left, now)
        }
    }

    #[test]
    fn signals_come_at_interval_over_the_root_of_their_number() {
        let law = CodelLaw::new(Span::from_millis(100));
        // 100 / sqrt(4) = 50, 100 / sqrt(2) = 70.710678.
        assert_eq!(law.gap(1), Span::from_millis(100));
        assert_eq!(law.gap(2).as_nanos(), 70_710_678);
        assert_eq!(law.gap(4), Span::from_millis(50));
    }

    #[test]
    fn nothing_is_signalled_before_the_target_is_passed_for_a_whole_interval() {
        let mut queue = Queue::default();
        // Above from 0 ms on: a signal is in order from 100 ms on.
        assert_eq!(queue.high(0.0, &ECT), Verdict::Pass);
        assert_eq!(queue.high(99.9, &ECT), Verdict::Pass);
        assert_eq!(queue.high(100.0, &ECT), Verdict::Mark);
    }

    #[test]
    fn one_packet_below_the_target_starts_the_interval_anew() {
        let mut queue = Queue::default();
        queue.high(0.0, &ECT);
        assert_eq!(queue.low(50.0, &ECT), Verdict::Pass);
        queue.high(60.0, &ECT);
        assert_eq!(queue.high(159.0, &ECT), Verdict::Pass);
        assert_eq!(queue.high(160.0, &ECT), Verdict::Mark);
    }

    #[test]
    fn a_sojourn_time_at_the_target_counts_as_above_and_one_mtu_left_as_below() {
        let mut queue = Queue::default();
        queue.head(0.0, 5, 1501, &ECT);
        assert_eq!(queue.head(100.0, 5, 1501, &ECT), Verdict::Mark);
        let mut queue = Queue::default();
        queue.head(0.0, 50, 1500, &ECT);
        assert_eq!(queue.head(100.0, 50, 1500, &ECT), Verdict::Pass);
    }

    #[test]
    fn marks_become_denser_while_the_queue_stands() {
        let mut queue = Queue::default();
        queue.high(0.0, &ECT);
        assert_eq!(queue.high(100.0, &ECT), Verdict::Mark);
        // count 1: next at 100 + 100 = 200; count 2: 200 + 70.71 = 270.71; count 3: 270.71 + 57.74 = 328.45.
        let mut marks = std::vec::Vec::new();
        for ms in 101..400 {
            if queue.high(f64::from(ms), &ECT) == Verdict::Mark {
                marks.push(ms);
            }
        }
        // At whole milliseconds; 328.45 + 50 = 378.45.
        assert_eq!(marks, [200, 271, 329, 379]);
    }

    #[test]
    fn a_late_mark_delays_those_after_it_only_if_the_schedule_counts_from_now() {
        // A packet each 30 ms. The first mark at 120; the second, due at 220, comes at 240. The third is due at
        // 220 + 70.71 = 290.71 or at 240 + 70.71 = 310.71: it comes at 300 or 330. The fourth at 290.71 + 57.74
        // or 330 + 57.74: at 360 or 390.
        let marks = |from_now| -> std::vec::Vec<u64> {
            let (params, mut state) = (CodelParams { from_now, ..CodelParams::default() }, CodelState::default());
            let mut head =
                |ms| state.on_head(&params, &ECT, Span::from_millis(10), 10_000, Instant::ZERO + Span::from_millis(ms));
            (0..14).map(|k| 30 * k).filter(|&ms| head(ms) == Verdict::Mark).collect()
        };
        assert_eq!(marks(false), [120, 240, 300, 360]);
        assert_eq!(marks(true), [120, 240, 330, 390]);
    }

    #[test]
    fn after_the_first_drop_the_next_packet_leaves_unseen() {
        let mut queue = Queue::default();
        queue.high(0.0, &NOT_ECT);
        assert_eq!(queue.high(100.0, &NOT_ECT), DROP);
        assert_eq!(queue.high(100.0, &NOT_ECT), Verdict::Pass);
        // And even if it is below its target, signalling goes on; only the next one ends it.
        let mut queue = Queue::default();
        queue.high(0.0, &NOT_ECT);
        assert_eq!(queue.high(100.0, &NOT_ECT), DROP);
        assert_eq!(queue.low(100.0, &NOT_ECT), Verdict::Pass);
        assert!(queue.0.is_signalling());
        queue.low(101.0, &NOT_ECT);
        assert!(!queue.0.is_signalling());
    }

    #[test]
    fn drops_that_are_late_are_made_up_for_at_once() {
        let mut queue = Queue::default();
        queue.high(0.0, &NOT_ECT);
        queue.high(100.0, &NOT_ECT);
        queue.high(100.0, &NOT_ECT);
        // Due at 200, 270.7 and 328.4. At 280 two are late, and the third is not.
        assert_eq!(queue.high(280.0, &NOT_ECT), DROP);
        assert_eq!(queue.high(280.0, &NOT_ECT), DROP);
        assert_eq!(queue.high(280.0, &NOT_ECT), Verdict::Pass);
        assert_eq!(queue.high(328.0, &NOT_ECT), Verdict::Pass);
        assert_eq!(queue.high(329.0, &NOT_ECT), DROP);
    }

    #[test]
    fn a_low_packet_after_a_drop_ends_the_stretch_and_the_schedule_stays_where_it_was() {
        let mut queue = Queue::default();
        queue.high(0.0, &NOT_ECT);
        queue.high(100.0, &NOT_ECT);
        queue.high(100.0, &NOT_ECT);
        assert_eq!(queue.high(200.0, &NOT_ECT), DROP);
        assert_eq!(queue.low(200.0, &NOT_ECT), Verdict::Pass);
        assert!(!queue.0.is_signalling());
        assert_eq!(queue.0.next, Instant::ZERO + Span::from_millis(200));
        assert_eq!(queue.0.count, 2);
    }

    #[test]
    fn a_queue_that_empties_after_a_drop_is_below_its_target() {
        let mut queue = Queue::default();
        queue.high(0.0, &NOT_ECT);
        queue.high(100.0, &NOT_ECT);
        queue.high(100.0, &NOT_ECT);
        assert_eq!(queue.high(200.0, &NOT_ECT), DROP);
        queue.0.on_empty();
        assert!(!queue.0.is_signalling());
        // The interval starts anew.
        assert_eq!(queue.high(210.0, &NOT_ECT), Verdict::Pass);
        assert_eq!(queue.high(309.0, &NOT_ECT), Verdict::Pass);
        assert_eq!(queue.high(310.0, &NOT_ECT), DROP);
        // An idle link straight after the first drop does not end the stretch.
        queue.0.on_empty();
        assert!(queue.0.is_signalling());
    }

    /// Signals at 100, 200, 270.7, 328.4, 378.4 (count 5), and low at 390: the last was due at
    /// 378.4 + 100/sqrt(5) = 423.2.
    fn after_five_signals() -> Queue {
        let mut queue = Queue::default();
        queue.high(0.0, &ECT);
        for ms in 100..390 {
            queue.high(f64::from(ms), &ECT);
        }
        assert_eq!(queue.0.count, 5);
        queue.low(390.0, &ECT);
        queue
    }

    #[test]
    fn a_queue_that_stands_again_soon_is_met_with_the_count_it_needed() {
        // count - first count = 5 - 1 = 4: gap 100 / sqrt(4) = 50 ms.
        let mut queue = after_five_signals();
        queue.high(400.0, &ECT);
        assert_eq!(queue.high(500.0, &ECT), Verdict::Mark);
        assert_eq!(queue.0.count, 4);
        assert_eq!(queue.high(549.0, &ECT), Verdict::Pass);
        assert_eq!(queue.high(550.0, &ECT), Verdict::Mark);
    }

    #[test]
    fn after_sixteen_intervals_the_count_is_forgotten() {
        // 423.2 + 1600 = 2023.2.
        let mut queue = after_five_signals();
        queue.high(1900.0, &ECT);
        assert_eq!(queue.high(2024.0, &ECT), Verdict::Mark);
        assert_eq!(queue.0.count, 1);
        let mut queue = after_five_signals();
        queue.high(1900.0, &ECT);
        assert_eq!(queue.high(2023.0, &ECT), Verdict::Mark);
        assert_eq!(queue.0.count, 4);
    }

    /// Linux's root after each of these counts, from a count of one.
    fn newton(counts: &[u32]) -> f64 {
        let mut state = CodelState { inverse_root: u16::MAX, ..CodelState::default() };
        for &count in counts {
            state.count = count;
            state.step_root();
        }
        f64::from(state.inverse_root) / 65_536.0
    }

    #[test]
    fn newtons_steps_are_those_of_the_formula() {
        // x (3 - n x^2) / 2: from 1 at n = 2 (3 - 2) / 2 = 0.5; at n = 3 0.5 (3 - 0.75) / 2 = 0.5625; at n = 4
        // 0.5625 (3 - 4 * 0.31640625) / 2 = 0.487793. 16 bits.
        for (counts, root) in [(&[2][..], 0.5), (&[2, 3], 0.5625), (&[2, 3, 4], 0.487_793)] {
            assert!((newton(counts) - root).abs() < 1e-4, "{counts:?}: {}", newton(counts));
        }
        // A count that rises by one is followed within 3 % from 3 on.
        for n in 3..200 {
            let counts: std::vec::Vec<u32> = (2..=n).collect();
            let exact = 1.0 / libm::sqrt(f64::from(n));
            assert!((newton(&counts) / exact - 1.0).abs() < 0.03, "{n}: {} {exact}", newton(&counts));
        }
        // One that falls from 100 to 2: 0.1 (3 - 0.02) / 2 = 0.149 instead of 0.707.
        let mut counts: std::vec::Vec<u32> = (2..=100).collect();
        counts.push(2);
        assert!((newton(&counts) - 0.149).abs() < 1e-3, "{}", newton(&counts));
    }

    #[test]
    fn with_newtons_step_a_new_stretch_begins_with_gaps_that_are_too_short() {
        // Five signals as in `after_five_signals`: roots 1, 0.5, 0.5625, 0.4878, 0.4414 (0.4878 (3 - 5 * 0.23794)
        // / 2); so they come at 100, 200, 250, 306.25, 355.03 ms, or with the next packet after that, one each 0.1 ms:
        // the interval must be over. Again from 400 on: the first at 500 with a count
        // of 5 - 1 = 4, for which the step from the root of 5 signals gives 0.4414 (3 - 4 * 0.19484) / 2 = 0.4901:
        // the next at 549.01, not 550.
        let (params, mut queue) =
            (CodelParams { arithmetic: Arithmetic::Linux, ..CodelParams::default() }, CodelState::default());
        let mut head = |us: u64, sojourn_ms| {
            let now = Instant::ZERO + Span::from_micros(us);
            queue.on_head(&params, &ECT, Span::from_millis(sojourn_ms), 10_000, now)
        };
        let marks: std::vec::Vec<u64> =
            (0..3_900u64).map(|k| 100 * k).filter(|&us| head(us, 10) == Verdict::Mark).collect();
        assert_eq!(marks, [100_100, 200_100, 250_100, 306_400, 355_200]);
        head(390_000, 1);
        let again: std::vec::Vec<u64> =
            (4_000..5_500u64).map(|k| 100 * k).filter(|&us| head(us, 10) == Verdict::Mark).collect();
        assert_eq!(again, [500_100, 549_200]);
    }

    #[test]
    fn packets_that_were_taken_away_count_as_signals() {
        let mut queue = after_five_signals();
        queue.0.on_stolen(7);
        assert_eq!(queue.0.count, 12);
    }

    #[test]
    fn the_selector_spares_packets_of_other_codepoints() {
        let head = |selector, ecn| {
            let params = CodelParams {
                ce_threshold: Some(Span::from_millis(1)),
                ce_threshold_selector: selector,
                ..CodelParams::default()
            };
            let packet = Packet { ecn, ..ECT };
            CodelState::default().on_head(&params, &packet, Span::from_millis(2), 10_000, Instant::ZERO)
        };
        assert_eq!([head(None, Ecn::Ect0), head(None, Ecn::Ect1)], [Verdict::Mark, Verdict::Mark]);
        assert_eq!(
            [head(Some(Ecn::Ect1), Ecn::Ect0), head(Some(Ecn::Ect1), Ecn::Ect1)],
            [Verdict::Pass, Verdict::Mark]
        );
    }

    #[test]
    fn a_limit_of_its_own_refuses_what_finds_so_many_waiting() {
        let mut codel = Codel::new(CodelParams { limit: Some(2), ..CodelParams::default() }).unwrap();
        let totals = Totals::default();
        let mut arrive = |packets| {
            let queue = crate::QueueView { packets, bytes: 0, limit: crate::Limit::packets(100), totals: &totals };
            codel.on_arrival(&ECT, &mut Cx { now: Instant::ZERO, queue, rng: &mut crate::multi::testing::Fixed(0.5) })
        };
        assert_eq!([arrive(1), arrive(2)], [Verdict::Pass, Verdict::Drop(DropReason::Overflow)]);
    }

    #[test]
    fn above_the_ce_threshold_every_packet_that_can_be_is_marked() {
        let params = CodelParams { ce_threshold: Some(Span::from_millis(1)), ecn: false, ..CodelParams::default() };
        let mut state = CodelState::default();
        let mut head = |ms, packet| state.on_head(&params, packet, Span::from_millis(ms), 10_000, Instant::ZERO);
        assert_eq!(head(2, &ECT), Verdict::Mark);
        assert_eq!(head(1, &ECT), Verdict::Pass);
        assert_eq!(head(2, &NOT_ECT), Verdict::Pass);
    }

    #[test]
    fn a_target_or_interval_of_no_time_is_refused() {
        let with = |target, interval| Codel::new(CodelParams { target, interval, ..CodelParams::default() });
        assert_eq!(with(Span::ZERO, Span::from_millis(1)).unwrap_err().param, "target");
        assert_eq!(with(Span::from_millis(1), Span::ZERO).unwrap_err().param, "interval");
    }
}
