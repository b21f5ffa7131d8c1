//! CoDel: controlled delay (Nichols, Jacobson; RFC 8289).
//!
//! A queue that is good empties now and then, so its least sojourn time over an interval is small; a standing queue shows as
//! sojourn times that stay above a target for a whole interval. Then the packet at the head is signalled, and another one each
//! interval / sqrt(count) until one packet meets the target again. CoDel needs no rate, no random numbers and no setting.
//!
//! ```text
//!            above the target for an interval: signal, count = 1 or as many as were needed last time
//!  Quiet ──────────────────────────────────────────────────────> Signalling ──┐ every interval / sqrt(count):
//!    ^                                                               │  ^     │ signal, count += 1
//!    └───────────── a packet below the target, or one MTU left ──────┘  └─────┘
//! ```
//!
//! A host that offers the next head after a drop passes through two more states, so that the schedule moves on only if that
//! head, too, is above the target (`Dropped`), and so that the head after the first drop leaves unseen (`Entered`).
//!
//! Deviations:
//! - ECN: the RFC leaves marking open (its section 5 drops). A marked packet counts as a signal and leaves, as in Linux and ns-3.
//! - The RFC's `maxpacket_` is the parameter `mtu`; section 5.3 has 512 B there and asks for the interface's MTU, which 1500 B is.
//! - `ce_threshold` (Linux, ns-3; not in the RFC) marks every packet that waited longer; off unless given.
//! - `schedule = now` (ns-3; off): a mark that came late, at the next packet, delays those after it. The RFC and Linux count from
//!   when it was due.
//! - Linux and ns-3 follow 1/sqrt(count) by one Newton step a signal: 0.5 instead of 0.71 at a count of 2, within 3 % from 3 on;
//!   exact here. ns-3 is quiet with *less*
//!   than an MTU left, Linux and the RFC with an MTU or less.

use aqumen_units::{Instant, Span};

use crate::{
    Aqm, Bound, Cx, DefaultValue, Draw, Hooks, Kind, Network, Packet, Param, ParamError, Settings, Totals, Unit, Value,
    Verdict, registry::Algorithm,
};

// RFC 8289 sections 4.3 (target), 4.2 (interval) and 5.3.
const DEFAULT_TARGET_S: f64 = 0.005;
const DEFAULT_INTERVAL_S: f64 = 0.1;
const DEFAULT_MTU: f64 = 1500.0;
/// RFC 8289 section 5.5: within so many intervals the count of the last time is a good start.
const MEMORY_INTERVALS: u64 = 16;

/// The registry's row.
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
            "sojourn time above which every ECN-capable packet is marked, Linux's ce_threshold",
        ),
        Param {
            name: "schedule",
            kind: Kind::Choice(&["due", "now"]),
            default: DefaultValue::Value(Value::Choice("due")),
            doc: "from when the next signal after a mark counts: when that mark was due, or when it was made, as in ns-3",
        },
        Param::ECN,
    ],
};

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
    /// Sojourn time above which every ECN-capable packet is marked.
    pub ce_threshold: Option<Span>,
    /// The gap to the signal after a mark begins with that mark, not when it was due (ns-3).
    pub from_now: bool,
    /// Mark ECN-capable packets.
    pub ecn: bool,
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
            from_now: false,
            ecn: true,
        }
    }
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
}

impl Default for CodelState {
    fn default() -> Self {
        CodelState { above_until: None, phase: Phase::Quiet, count: 0, first_count: 0, next: Instant::ZERO }
    }
}

impl CodelState {
    /// The verdict on the packet at the head, which waited for `sojourn`; `backlog_bytes` are left behind it. After a drop the
    /// next head is offered at the same moment, or [`CodelState::on_empty`] is called.
    pub fn on_head(
        &mut self,
        params: &CodelParams,
        packet: &Packet,
        sojourn: Span,
        backlog_bytes: u64,
        now: Instant,
    ) -> Verdict {
        let standing = self.is_standing(params, sojourn, backlog_bytes, now);
        let law = CodelLaw::new(params.interval);
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
                self.next = self.next.saturating_add(law.gap(self.count));
                self.phase = Phase::Signalling;
                self.signal_if_due(params, law, packet, now)
            }
            Phase::Signalling => self.signal_if_due(params, law, packet, now),
        };
        match params.ce_threshold {
            Some(threshold) if verdict == Verdict::Pass && sojourn > threshold && packet.ecn.is_ect() => Verdict::Mark,
            _ => verdict,
        }
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
    fn is_standing(&mut self, params: &CodelParams, sojourn: Span, backlog_bytes: u64, now: Instant) -> bool {
        if sojourn < params.target || backlog_bytes <= params.mtu as u64 {
            self.above_until = None;
            return false;
        }
        match self.above_until {
            None => {
                self.above_until = Some(now.saturating_add(params.interval));
                false
            }
            Some(until) => now >= until,
        }
    }

    /// RFC 8289 section 5.5: signalling begins with this packet, where the last stretch left off if that was recent.
    fn enter(&mut self, params: &CodelParams, law: CodelLaw, packet: &Packet, now: Instant) -> Verdict {
        let needed = self.count.saturating_sub(self.first_count);
        let recent = now.saturating_since(self.next) < params.interval.saturating_mul(MEMORY_INTERVALS);
        self.count = if needed > 1 && recent { needed } else { 1 };
        self.first_count = self.count;
        self.next = now.saturating_add(law.gap(self.count));
        let verdict = Verdict::signal(packet, params.ecn);
        self.phase = if verdict == Verdict::Mark { Phase::Signalling } else { Phase::Entered };
        verdict
    }

    fn signal_if_due(&mut self, params: &CodelParams, law: CodelLaw, packet: &Packet, now: Instant) -> Verdict {
        if now < self.next {
            return Verdict::Pass;
        }
        self.count = self.count.saturating_add(1);
        let verdict = Verdict::signal(packet, params.ecn);
        if verdict == Verdict::Mark {
            let from = if params.from_now { now } else { self.next };
            self.next = from.saturating_add(law.gap(self.count));
        } else {
            self.phase = Phase::Dropped;
        }
        verdict
    }
}

impl Codel {
    /// CoDel over an empty queue. Target and interval are above zero.
    pub fn new(params: CodelParams) -> Result<Self, ParamError> {
        Param::check_positive("target", params.target.as_secs_f64(), Unit::Seconds)?;
        Param::check_positive("interval", params.interval.as_secs_f64(), Unit::Seconds)?;
        Ok(Codel { params, state: CodelState::default() })
    }

    pub(crate) fn from_settings(settings: &Settings<'_>, _network: &Network) -> Result<Self, ParamError> {
        let default = CodelParams::default();
        let span = |name: &str| settings.number(name).map(Span::from_secs_f64);
        Codel::new(CodelParams {
            target: span("target").unwrap_or(default.target),
            interval: span("interval").unwrap_or(default.interval),
            mtu: settings.whole("mtu")?.map_or(default.mtu, |bytes| bytes as u32),
            ce_threshold: span("ce_threshold"),
            from_now: settings.choice("schedule") == Some("now"),
            ecn: settings.flag("ecn").unwrap_or(default.ecn),
        })
    }
}

impl Aqm for Codel {
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
        let CodelParams { target, interval, mtu, ce_threshold, from_now, ecn } = self.params;
        visit("target", Value::seconds(target));
        visit("interval", Value::seconds(interval));
        visit("mtu", Value::Number(mtu as f64));
        if let Some(threshold) = ce_threshold {
            visit("ce_threshold", Value::seconds(threshold));
        }
        visit("schedule", Value::Choice(if from_now { "now" } else { "due" }));
        visit("ecn", Value::Flag(ecn));
    }

    fn take_over(&mut self, old: Option<&Self>, now: Instant, totals: &Totals) {
        let _ = (now, totals);
        if let Some(old) = old {
            self.state = old.state;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DropReason;
    use aqumen_units::Ecn;

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
        // A packet each 30 ms. The first mark at 120; the second, due at 220, comes at 240. The third is due at 220 + 70.71 = 290.71 or
        // at 240 + 70.71 = 310.71: it comes at 300 or 330. The fourth at 290.71 + 57.74 or 330 + 57.74: at 360 or 390.
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

    /// Signals at 100, 200, 270.7, 328.4, 378.4 (count 5), and low at 390: the last was due at 378.4 + 100/sqrt(5) = 423.2.
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
