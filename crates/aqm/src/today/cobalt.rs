//! COBALT: CoDel and BLUE side by side (Morton; Hoeiland-Joergensen, Taht, Morton 2018; Palmei et al. 2019).
//!
//! CoDel controls responsive traffic; BLUE, driven by overflow and empty queues, drops unresponsive traffic. COBALT's
//! CoDel decrements its count on the schedule by which it would have incremented it, instead of forgetting it after a
//! while. Its schedule begins at once above the target; the first signal comes one gap later.
//!
//! ```text
//!          sojourn > target: next = now + gap(count)
//!  Quiet <──────────────────────────────────────────> Signalling
//!    │     sojourn <= target                              │
//!    │ each time next is due: count -= 1,                 │ each time next is due: signal, count += 1,
//!    │ next += gap(count)                                 │ next += gap(count)
//!
//!  BLUE, once a target's time at most:  overflow: p += 1/256      empty: p -= 1/4096, Quiet, count -= 1 if due
//!        every packet at the head:      dropped with p, ECN-capable or not
//! ```
//!
//! Deviations:
//! - There is no RFC: the rules follow the papers and the description of sch_cake. CAKE exempts queues shorter than
//!   four packets' transmission time; here CoDel's `mtu` replaces that rule, except in [`cake`](crate::cake), which
//!   knows the rate and sets `least`.
//! - `blue_threshold`: a sojourn time above 400 ms counts as an overflow, as in ns-3. Otherwise a queue limited in
//!   packets would never signal an overload to BLUE. Linux, and therefore CAKE here, has no such rule.
//! - gap(count) = interval / sqrt(count) is exact; Linux and ns-3 use a table, and a Newton step for larger counts. In
//!   Linux the first signal comes with the second packet above the target, not a gap after the first, if the queue was
//!   unused for an interval: the schedule counts as late. `arithmetic = linux`.

use aqumen_units::{Instant, Probability, Span};

use crate::{
    Algorithm, Aqm, Bound, CodelLaw, Cx, DefaultValue, Draw, DropReason, Hooks, Kind, Network, Packet, Param,
    ParamError, Settings, Theory, Totals, Unit, Value, Verdict,
    today::codel::{ARITHMETIC, Arithmetic, INTERVAL, TARGET},
};

const DEFAULT_TARGET_S: f64 = 0.005;
const DEFAULT_INTERVAL_S: f64 = 0.1;
const DEFAULT_MTU: f64 = 0.0;
const DEFAULT_INCREMENT: f64 = 1.0 / 256.0;
const DEFAULT_DECREMENT: f64 = 1.0 / 4096.0;
const DEFAULT_BLUE_THRESHOLD_S: f64 = 0.4;

/// Registry entry.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "cobalt",
    title: "COBALT",
    summary: "CoDel for responsive traffic, BLUE for unresponsive traffic",
    reference: "Palmei, Gupta, Imputato, Morton, Tahiliani, Avallone, Taht: Design and evaluation of COBALT queue discipline, 2019",
    params: &[
        TARGET,
        INTERVAL,
        Param {
            name: "mtu",
            kind: Kind::Number { unit: Unit::Bytes, min: Bound::Inclusive(0.0), max: Bound::Inclusive(1e9) },
            default: DefaultValue::number(DEFAULT_MTU),
            doc: "CoDel is inactive with at most this much left in the queue; 0: no such rule",
        },
        INCREMENT,
        DECREMENT,
        Param::positive(
            "blue_threshold",
            Unit::Seconds,
            DefaultValue::number(DEFAULT_BLUE_THRESHOLD_S),
            "sojourn time that counts as an overflow for BLUE",
        ),
        ARITHMETIC,
        Param::ECN,
    ],
};

/// Parameters of BLUE's steps, for COBALT and CAKE.
pub(crate) const INCREMENT: Param =
    Param::fraction("increment", DefaultValue::number(DEFAULT_INCREMENT), "BLUE's step at an overflow");
pub(crate) const DECREMENT: Param =
    Param::fraction("decrement", DefaultValue::number(DEFAULT_DECREMENT), "BLUE's step at an empty queue");

/// The parameters of [`Cobalt`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CobaltParams {
    /// Target sojourn time.
    pub target: Span,
    /// Interval, about a large round-trip time.
    pub interval: Span,
    /// Lower bound of the effective target: in CAKE the transmission time of four full packets.
    pub least: Span,
    /// CoDel is inactive with at most this many bytes left; 0: no such rule.
    pub mtu: u32,
    /// BLUE's step at an overflow.
    pub increment: f64,
    /// BLUE's step at an empty queue.
    pub decrement: f64,
    /// Sojourn time above which BLUE counts an overflow.
    pub blue_threshold: Span,
    /// Computation of 1/sqrt(count).
    pub arithmetic: Arithmetic,
    /// Mark ECN-capable packets that CoDel signals.
    pub ecn: bool,
}

/// COBALT's state of one queue. Many queues can share one [`CobaltParams`].
#[derive(Clone, Copy, Debug)]
pub struct CobaltState {
    signalling: bool,
    /// Number of recent signals: rises while signalling, falls while quiet.
    count: u32,
    /// Linux's 1/sqrt(count) in units of 2^-32; 0 in an unused queue.
    inverse_root: u32,
    next: Instant,
    blue: Probability,
    /// Time of BLUE's last step; `None` before the first.
    stepped: Option<Instant>,
}

/// CoDel and BLUE side by side.
#[derive(Clone, Copy, Debug)]
pub struct Cobalt {
    params: CobaltParams,
    state: CobaltState,
}

impl Default for CobaltParams {
    fn default() -> Self {
        CobaltParams {
            target: Span::from_secs_f64(DEFAULT_TARGET_S),
            interval: Span::from_secs_f64(DEFAULT_INTERVAL_S),
            least: Span::ZERO,
            mtu: DEFAULT_MTU as u32,
            increment: DEFAULT_INCREMENT,
            decrement: DEFAULT_DECREMENT,
            blue_threshold: Span::from_secs_f64(DEFAULT_BLUE_THRESHOLD_S),
            arithmetic: Arithmetic::Exact,
            ecn: true,
        }
    }
}

impl Default for CobaltState {
    fn default() -> Self {
        CobaltState {
            signalling: false,
            count: 0,
            inverse_root: 0,
            next: Instant::ZERO,
            blue: Probability::ZERO,
            stepped: None,
        }
    }
}

impl CobaltState {
    /// Verdict on the packet at the head, which waited for `sojourn`, with `backlog_bytes` behind it.
    pub fn on_head<R: Draw>(
        &mut self,
        params: &CobaltParams,
        packet: &Packet,
        sojourn: Span,
        backlog_bytes: u64,
        now: Instant,
        rng: &mut R,
    ) -> Verdict {
        let (codel, blue) = self.verdicts(params, packet, sojourn, backlog_bytes, now, rng);
        // BLUE also drops ECN-capable packets: their flows do not respond to marks.
        if blue { Verdict::Drop(DropReason::Early) } else { codel }
    }

    /// CoDel's verdict on the packet at the head, and whether BLUE drops it.
    pub(crate) fn verdicts<R: Draw>(
        &mut self,
        params: &CobaltParams,
        packet: &Packet,
        sojourn: Span,
        backlog_bytes: u64,
        now: Instant,
        rng: &mut R,
    ) -> (Verdict, bool) {
        let due = self.is_due(now);
        // Linux tests whether the schedule is late before it restarts the schedule.
        let mut late = now > self.next;
        let above =
            sojourn > params.target && sojourn > params.least && (params.mtu == 0 || backlog_bytes > params.mtu as u64);
        if above && !self.signalling {
            self.next = now.saturating_add(self.gap(params));
            late &= params.arithmetic == Arithmetic::Linux;
        }
        self.signalling = above;
        if above {
            self.count = self.count.max(1);
        }

        let mut verdict = Verdict::Pass;
        if due && above {
            verdict = Verdict::signal(packet, params.ecn);
            self.set_count(self.count.saturating_add(1));
            self.next = self.next.saturating_add(self.gap(params));
            late = now > self.next;
        } else if due {
            self.wind_down(params, now);
            late = now > self.next;
        }
        if sojourn > params.blue_threshold {
            self.raise_blue(params, now);
        }
        let blue = self.blue.get();
        let blue = blue > 0.0 && rng.uniform() < blue;
        // Without signals the schedule is never late.
        if self.count == 0 {
            self.next = now.saturating_add(params.interval);
        } else if late && !blue && !matches!(verdict, Verdict::Drop(_)) {
            self.next = now;
        }
        (verdict, blue)
    }

    /// Overflow: one step up for BLUE, and CoDel's next signal is due at once.
    pub fn on_overflow(&mut self, params: &CobaltParams, now: Instant) {
        self.raise_blue(params, now);
        self.signalling = true;
        self.next = now;
        self.count = self.count.max(1);
    }

    /// Empty queue: one step down for BLUE; CoDel decrements its count.
    pub fn on_empty(&mut self, params: &CobaltParams, now: Instant) {
        if self.blue > Probability::ZERO && self.may_step(params, now) {
            self.blue = Probability::clamp(self.blue.get() - params.decrement);
            self.stepped = Some(now);
        }
        self.signalling = false;
        if self.is_due(now) {
            self.set_count(self.count - 1);
            self.next = self.next.saturating_add(self.gap(params));
        }
    }

    /// Probability of BLUE.
    pub const fn blue(&self) -> Probability {
        self.blue
    }

    /// Visits each named state variable, for traces.
    pub fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("count", self.count as f64);
        visit("signalling", self.signalling as u8 as f64);
        visit("blue_probability", self.blue.get());
    }

    /// Whether no state of past congestion is left, so that an empty queue may be reset.
    pub fn is_quiescent(&self, now: Instant) -> bool {
        self.blue == Probability::ZERO && self.count == 0 && now >= self.next
    }

    fn is_due(&self, now: Instant) -> bool {
        self.count > 0 && now >= self.next
    }

    /// Decrements the count once per gap without congestion.
    fn wind_down(&mut self, params: &CobaltParams, now: Instant) {
        while self.is_due(now) {
            self.set_count(self.count - 1);
            self.next = self.next.saturating_add(self.gap(params));
        }
    }

    fn set_count(&mut self, count: u32) {
        self.count = count;
        let in_table = LINUX_ROOTS.get(count as usize).copied();
        self.inverse_root = in_table.unwrap_or_else(|| newton(self.inverse_root, count));
    }

    /// Time to the next signal.
    fn gap(&self, params: &CobaltParams) -> Span {
        match params.arithmetic {
            Arithmetic::Exact => CodelLaw::new(params.interval).gap(self.count),
            Arithmetic::Linux => {
                Span::from_nanos(((params.interval.as_nanos() as u128 * self.inverse_root as u128) >> 32) as u64)
            }
        }
    }

    fn raise_blue(&mut self, params: &CobaltParams, now: Instant) {
        if self.may_step(params, now) {
            self.blue = Probability::clamp(self.blue.get() + params.increment);
            self.stepped = Some(now);
        }
    }

    fn may_step(&self, params: &CobaltParams, now: Instant) -> bool {
        self.stepped.is_none_or(|last| now.saturating_since(last) > params.target)
    }
}

/// Newton step for 1/sqrt(count): x (3 - count x^2) / 2, in units of 2^-32.
const fn newton(x: u32, count: u32) -> u32 {
    let square = (x as u64 * x as u64) >> 32;
    let rest = (3u64 << 32).wrapping_sub(count as u64 * square);
    ((rest >> 2).wrapping_mul(x as u64) >> 31) as u32
}

/// Linux's table of 1/sqrt(count), by four Newton steps from the previous entry; the first entry is the largest number.
const LINUX_ROOTS: [u32; 16] = {
    let mut roots = [u32::MAX; 16];
    let mut count = 1;
    while count < roots.len() {
        let (mut root, mut steps) = (roots[count - 1], 0);
        while steps < 4 {
            (root, steps) = (newton(root, count as u32), steps + 1);
        }
        roots[count] = root;
        count += 1;
    }
    roots
};

impl Cobalt {
    /// COBALT for an empty queue. Target and interval are above 0.
    pub fn new(params: CobaltParams) -> Result<Self, ParamError> {
        Param::check_positive("target", params.target.as_secs_f64(), Unit::Seconds)?;
        Param::check_positive("interval", params.interval.as_secs_f64(), Unit::Seconds)?;
        Ok(Cobalt { params, state: CobaltState::default() })
    }

    pub(crate) fn from_settings(settings: &Settings<'_>, _network: &Network) -> Result<Self, ParamError> {
        let default = CobaltParams::default();
        let span = |name: &str, otherwise: Span| settings.number(name).map_or(otherwise, Span::from_secs_f64);
        Cobalt::new(CobaltParams {
            target: span("target", default.target),
            interval: span("interval", default.interval),
            least: default.least,
            mtu: settings.whole("mtu")?.map_or(default.mtu, |bytes| bytes as u32),
            increment: settings.number("increment").unwrap_or(default.increment),
            decrement: settings.number("decrement").unwrap_or(default.decrement),
            blue_threshold: span("blue_threshold", default.blue_threshold),
            arithmetic: Arithmetic::from_settings(settings),
            ecn: settings.flag("ecn").unwrap_or(default.ecn),
        })
    }
}

impl Aqm for Cobalt {
    fn on_overflow<R: Draw>(&mut self, _packet: &Packet, cx: &mut Cx<'_, R>) {
        self.state.on_overflow(&self.params, cx.now);
    }

    #[inline]
    fn on_dequeue<R: Draw>(&mut self, packet: &Packet, sojourn: Span, cx: &mut Cx<'_, R>) -> Verdict {
        self.state.on_head(&self.params, packet, sojourn, cx.queue.bytes, cx.now, cx.rng)
    }

    fn on_idle(&mut self, now: Instant) {
        self.state.on_empty(&self.params, now);
    }

    fn probability(&self) -> Probability {
        self.state.blue
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.state.observe(visit);
    }

    fn hooks(&self) -> Hooks {
        Hooks { decides_at_head: true, departures: true }
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        let CobaltParams { target, interval, mtu, increment, decrement, blue_threshold, arithmetic, ecn, .. } =
            self.params;
        visit("target", Value::seconds(target));
        visit("interval", Value::seconds(interval));
        visit("mtu", Value::Number(mtu as f64));
        visit("increment", Value::Number(increment));
        visit("decrement", Value::Number(decrement));
        visit("blue_threshold", Value::seconds(blue_threshold));
        visit("arithmetic", Value::Choice(arithmetic.name()));
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

impl Theory for Cobalt {
    fn not_linearizable(&self) -> Option<&'static str> {
        Some("it signals at scheduled times, not with a probability, and BLUE moves by fixed steps at overflow")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Fixed;
    use aqumen_units::Ecn;

    const DROP: Verdict = Verdict::Drop(DropReason::Early);

    fn at(ms: f64) -> Instant {
        Instant::from_nanos((ms * 1e6) as u64)
    }

    /// One queue with the default parameters: target 5 ms, interval 100 ms.
    #[derive(Default)]
    struct Queue(CobaltState);

    impl Queue {
        fn head(&mut self, at_ms: f64, sojourn_ms: u64, ecn: Ecn, u: f64) -> Verdict {
            let packet = Packet { bytes: 1000, ecn, segments: 1, ..Packet::default() };
            let sojourn = Span::from_millis(sojourn_ms);
            self.0.on_head(&CobaltParams::default(), &packet, sojourn, 10_000, at(at_ms), &mut Fixed(u))
        }

        fn high(&mut self, at_ms: f64) -> Verdict {
            self.head(at_ms, 10, Ecn::Ect0, 1.0)
        }

        fn low(&mut self, at_ms: f64) -> Verdict {
            self.head(at_ms, 5, Ecn::Ect0, 1.0)
        }

        fn overflow(&mut self, at_ms: f64) {
            self.0.on_overflow(&CobaltParams::default(), at(at_ms));
        }

        fn empty(&mut self, at_ms: f64) {
            self.0.on_empty(&CobaltParams::default(), at(at_ms));
        }
    }

    #[test]
    fn marks_begin_an_interval_after_the_target_is_exceeded_and_become_more_frequent() {
        let mut queue = Queue::default();
        let marks: std::vec::Vec<u32> = (0..400).filter(|&ms| queue.high(f64::from(ms)) == Verdict::Mark).collect();
        // 100; then count 2: 100 + 70.7 = 170.7; count 3: + 57.7 = 228.4; + 50 = 278.4; + 44.7 = 323.2; + 40.8 = 364.0.
        assert_eq!(marks, [100, 171, 229, 279, 324, 364]);
    }

    #[test]
    fn a_packet_at_the_target_ends_signalling_and_not_ect_packets_are_dropped() {
        let mut queue = Queue::default();
        queue.high(0.0);
        assert_eq!(queue.head(100.0, 10, Ecn::NotEct, 1.0), DROP);
        assert_eq!(queue.low(101.0), Verdict::Pass);
        assert!(!queue.0.signalling);
    }

    #[test]
    fn the_count_decreases_while_the_queue_is_short() {
        let mut queue = Queue::default();
        for ms in 0..=279 {
            queue.high(f64::from(ms));
        }
        // Four marks: count 5, next at 278.4 + 44.7 = 323.2.
        assert_eq!(queue.0.count, 5);
        queue.low(300.0);
        assert_eq!(queue.0.count, 5);
        // At 323.2 count 4, next + 50 = 373.2; count 3, + 57.7 = 430.9.
        queue.low(324.0);
        assert_eq!(queue.0.count, 4);
        queue.low(400.0);
        assert_eq!(queue.0.count, 3);
        // Finally 0; the schedule is then an interval ahead.
        queue.low(5000.0);
        assert_eq!((queue.0.count, queue.0.next), (0, at(5100.0)));
    }

    #[test]
    fn a_remaining_count_makes_the_next_signals_faster() {
        let mut queue = Queue::default();
        for ms in 0..=279 {
            queue.high(f64::from(ms));
        }
        queue.low(280.0);
        // Count 5: the first mark comes 100 / sqrt(5) = 44.7 ms after the target is exceeded again.
        queue.high(290.0);
        assert_eq!(queue.high(334.0), Verdict::Pass);
        assert_eq!(queue.high(335.0), Verdict::Mark);
    }

    #[test]
    fn in_linux_an_unused_queue_is_signalled_with_its_second_packet_above_the_target() {
        let signals = |arithmetic: Arithmetic, silent_ms: f64| {
            let params = CobaltParams { arithmetic, ..CobaltParams::default() };
            let mut state = CobaltState::default();
            let mut head = |ms: f64, sojourn_ms: u64| {
                let packet = Packet { bytes: 1000, ecn: Ecn::Ect0, segments: 1, ..Packet::default() };
                state.on_head(&params, &packet, Span::from_millis(sojourn_ms), 10_000, at(ms), &mut Fixed(1.0))
            };
            // Two packets above the target, and time for the count to fall to 0.
            for (ms, sojourn_ms) in [(0.0, 10), (1.0, 10), (1000.0, 1)] {
                head(ms, sojourn_ms);
            }
            let from = 1000.0 + silent_ms;
            [head(from, 10), head(from + 1.0, 10), head(from + 101.0, 10)]
        };
        let (pass, mark) = (Verdict::Pass, Verdict::Mark);
        // More and less than an interval of 100 ms since the last packet.
        assert_eq!(signals(Arithmetic::Linux, 110.0), [pass, mark, mark]);
        assert_eq!(signals(Arithmetic::Linux, 90.0), [pass, pass, mark]);
        assert_eq!(signals(Arithmetic::Exact, 110.0), [pass, pass, mark]);
    }

    #[test]
    fn an_overflow_raises_blue_at_most_once_per_target_and_makes_a_signal_due() {
        let mut queue = Queue::default();
        queue.overflow(10.0);
        queue.overflow(15.0);
        assert_eq!(queue.0.blue().get(), 1.0 / 256.0);
        queue.overflow(15.1);
        assert_eq!(queue.0.blue().get(), 2.0 / 256.0);
        assert_eq!(queue.high(15.1), Verdict::Mark);
    }

    #[test]
    fn blue_drops_ecn_capable_packets_and_an_empty_queue_lowers_it() {
        let mut queue = Queue::default();
        queue.overflow(0.0);
        // 1/256 = 0.0039.
        assert_eq!(queue.head(1.0, 1, Ecn::Ect0, 0.0038), DROP);
        assert_eq!(queue.head(1.0, 1, Ecn::Ect0, 0.004), Verdict::Pass);
        queue.empty(5.0);
        assert_eq!(queue.0.blue().get(), 1.0 / 256.0);
        queue.empty(5.1);
        assert_eq!(queue.0.blue().get(), 1.0 / 256.0 - 1.0 / 4096.0);
    }

    #[test]
    fn an_empty_queue_decrements_the_count_when_due() {
        let mut queue = Queue::default();
        queue.high(0.0);
        assert_eq!(queue.high(100.0), Verdict::Mark);
        // Count 2, next at 170.7.
        queue.empty(170.0);
        assert_eq!((queue.0.count, queue.0.signalling), (2, false));
        queue.empty(171.0);
        assert_eq!(queue.0.count, 1);
    }

    #[test]
    fn a_sojourn_time_above_the_threshold_is_an_overflow_for_blue() {
        let mut queue = Queue::default();
        queue.head(0.0, 400, Ecn::Ect0, 1.0);
        assert_eq!(queue.0.blue(), Probability::ZERO);
        queue.head(10.0, 401, Ecn::Ect0, 1.0);
        assert_eq!(queue.0.blue().get(), 1.0 / 256.0);
    }

    #[test]
    fn least_bounds_the_effective_target() {
        let params = CobaltParams { least: Span::from_millis(24), ..CobaltParams::default() };
        let mut state = CobaltState::default();
        let mut head = |ms, sojourn| {
            let packet = Packet { bytes: 1000, ecn: Ecn::Ect0, ..Packet::default() };
            state.on_head(&params, &packet, Span::from_millis(sojourn), 10_000, at(ms), &mut Fixed(1.0))
        };
        head(0.0, 24);
        assert_eq!(head(100.0, 24), Verdict::Pass);
        head(200.0, 25);
        assert_eq!(head(300.0, 25), Verdict::Mark);
    }

    #[test]
    fn with_an_mtu_a_short_queue_is_exempt() {
        let params = CobaltParams { mtu: 1500, ..CobaltParams::default() };
        let mut state = CobaltState::default();
        let mut head = |ms, left| {
            state.on_head(
                &params,
                &Packet { bytes: 1000, ecn: Ecn::Ect0, ..Packet::default() },
                Span::from_millis(10),
                left,
                at(ms),
                &mut Fixed(1.0),
            )
        };
        head(0.0, 1500);
        assert_eq!(head(100.0, 1500), Verdict::Pass);
        // Above the target from 200 on.
        head(200.0, 1501);
        assert_eq!(head(300.0, 1501), Verdict::Mark);
    }

    #[test]
    fn a_target_or_interval_of_zero_is_an_error() {
        let with = |target, interval| Cobalt::new(CobaltParams { target, interval, ..CobaltParams::default() });
        assert_eq!(with(Span::ZERO, Span::from_millis(1)).unwrap_err().param, "target");
        assert_eq!(with(Span::from_millis(1), Span::ZERO).unwrap_err().param, "interval");
    }
}
