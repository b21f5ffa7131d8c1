//! DualPI2: dual-queue coupled AQM for low latency, low loss and scalable throughput (RFC 9332). Packets of scalable
//! transports (ECT(1) and CE) are in the L queue, all others in the C queue. One PI controller of the queuing delay
//! gives a base probability p'. Classic packets are dropped or marked with p'^2, L4S packets marked with k p', so that
//! flows of both kinds get about equal rates. The L queue also has a shallow marking threshold.
//!
//! ```text
//!               ┌─ ECT(1), CE ──> L queue ── marked with max(ramp of its delay, k p') ──┐
//! arrival ──────┤                                                                       ├─ scheduler ──> link
//!               └─ others ──────> C queue ── dropped or marked with p'^2 ───────────────┘
//! each Tupdate:  q = max(delay of C, delay of L);  p' += alpha (q - target) + beta (q - q_old)
//! ```
//!
//! Deviations:
//! - Defaults are Linux's: `tupdate` 16 ms, alpha 0.16 Hz, beta 3.2 Hz. The rules of appendix A give 15 ms, 0.15 and
//!   3.0 for a longest round trip of 100 ms.
//! - p' is bounded to [0, 1]; appendix A leaves this open. Without `overload` the bound is 1/k, as in Linux, so that
//!   p_CL stays below its limit and the L queue never drops.
//! - A packet overflows if it does not fit; in appendix A.1, if an MTU would not fit.
//! - `l4s = step` marks above one delay, as Linux does (1 ms); `l4s = packets` above a number of packets left, a Linux
//!   option. The default is the ramp of appendix A. The delay is the packet's sojourn time.
//! - `lq.len() > Th_len` of appendix A includes the packet itself. Linux tests at arrival, and by default not at all.
//! - `min_backlog` (Linux: two full packets, 3000 B; not in the RFC; off): with less left in both queues, p' causes no
//!   signals, but the L queue's own marks continue. At 256 kbit/s two packets take 94 ms, six times the target: a
//!   classic flow then gets few signals, and Prague, still marked by the L queue, gets little or no throughput.
//! - `selection = random` draws per packet, as Linux does. The default is the deterministic recur() of appendix A,
//!   which counts at most 1 per packet.
//! - The default scheduler is Linux's weighted round robin with a tenth for the C queue; appendix A leaves the choice.
//!   Credit is kept while one queue is empty, and reset in favour of the L queue when both are.
//! - `drop_early` (Linux, off) decides for p' at arrival; `any_ect` (Linux, off) sends ECT(0) to the L queue too.
//!
//! Linux also classifies by priority and filters, splits super-packets, and limits memory (not reached by packets of
//! 1500 B); `dualpi2-linux` omits these.

use aqumen_units::{Instant, Probability, Span};

use alloc::vec;

use crate::algorithm::Algorithm;
use crate::multi::store::{Store, Waiting};
use crate::today::codel;
use crate::{
    Backlog, Bound, DefaultValue, Draw, DropReason, Fates, Handle, Kind, Limit, Network, Packet, Param, ParamError,
    Qdisc, Settings, SingleQueueEquivalent, Totals, Unit, Value,
};

/// Registry entry.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "dualpi2",
    title: "DualPI2",
    summary: "two coupled queues: scalable (L4S) traffic is marked early and served first, classic traffic has a target delay",
    reference: "RFC 9332",
    params: &[
        Param::positive(
            "target",
            Unit::Seconds,
            DefaultValue::number(0.015),
            "target queuing delay of classic traffic",
        ),
        Param {
            name: "tupdate",
            kind: Kind::Number { unit: Unit::Seconds, min: Bound::Inclusive(1e-6), max: Bound::Inclusive(1e3) },
            default: DefaultValue::number(0.016),
            doc: "time between updates of p', Tupdate",
        },
        gain("alpha", 0.16, "integral gain, per second of delay beyond the target and update"),
        gain("beta", 3.2, "proportional gain, per second of change of the delay and update"),
        Param {
            name: "k",
            kind: Kind::Number { unit: Unit::One, min: Bound::Inclusive(1.0), max: Bound::Inclusive(100.0) },
            default: DefaultValue::number(2.0),
            doc: "coupling factor: L4S packets are marked with k p'",
        },
        Param {
            name: "l4s",
            kind: Kind::Choice(&["ramp", "step", "packets"]),
            default: DefaultValue::Value(Value::Choice("ramp")),
            doc: "marking in the L queue: probability rises from min_th on (ramp), all packets above delay `step`, or with more than `step_packets` behind them (packets)",
        },
        delay("min_th", 800e-6, "delay of the L queue where the ramp begins, minTh"),
        delay("range", 400e-6, "length of the ramp"),
        delay("step", 1e-3, "delay of the L queue where the step lies"),
        Param {
            name: "step_packets",
            kind: Kind::Number { unit: Unit::Packets, min: Bound::Inclusive(0.0), max: Bound::Inclusive(1e6) },
            default: DefaultValue::number(1.0),
            doc: "packets of the L queue above which all are marked with l4s = packets",
        },
        Param {
            name: "min_packets",
            kind: Kind::Number { unit: Unit::Packets, min: Bound::Inclusive(0.0), max: Bound::Inclusive(1e6) },
            default: DefaultValue::number(1.0),
            doc: "a packet with fewer packets than this behind it is not marked for the L queue's delay, Th_len",
        },
        Param {
            name: "scheduler",
            kind: Kind::Choice(&["wrr", "ts-fifo"]),
            default: DefaultValue::Value(Value::Choice("wrr")),
            doc: "weighted round robin, or first come first served with a head start for the L queue",
        },
        Param::fraction("classic_share", DefaultValue::number(0.1), "share of the link that wrr leaves to the C queue"),
        delay("shift", 0.05, "head start of the L queue with ts-fifo"),
        Param::flag(
            "overload",
            true,
            "drop L4S packets, and drop instead of marking, if p' is too high for marks to regulate",
        ),
        Param {
            name: "selection",
            kind: Kind::Choice(&["recur", "random"]),
            default: DefaultValue::Value(Value::Choice("recur")),
            doc: "selection of packets: evenly spaced (recur) or random",
        },
        Param {
            name: "min_backlog",
            kind: Kind::Number { unit: Unit::Bytes, min: Bound::Inclusive(0.0), max: Bound::Inclusive(1e9) },
            default: DefaultValue::number(0.0),
            doc: "with less than this left in both queues p' causes no signals; Linux: two full packets, 3000 B",
        },
        Param::flag("drop_early", false, "decide for p' at arrival instead of at dequeue, a Linux option"),
        Param::flag("any_ect", false, "send ECT(0) to the L queue too, a Linux option"),
        Param::positive(
            "limit",
            Unit::Packets,
            DefaultValue::Designed("the link's buffer"),
            "packets that may wait in both queues, if the link's buffer holds more",
        ),
    ],
};

const fn gain(name: &'static str, default: f64, doc: &'static str) -> Param {
    let kind = Kind::Number { unit: Unit::Hertz, min: Bound::Inclusive(0.0), max: Bound::Inclusive(1e6) };
    Param { name, kind, default: DefaultValue::number(default), doc }
}

const fn delay(name: &'static str, default: f64, doc: &'static str) -> Param {
    let kind = Kind::Number { unit: Unit::Seconds, min: Bound::Inclusive(0.0), max: Bound::Inclusive(1e3) };
    Param { name, kind, default: DefaultValue::number(default), doc }
}

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualPi2Params {
    /// Target queuing delay of classic traffic.
    pub target: Span,
    /// Time between updates of p'.
    pub tupdate: Span,
    /// Integral gain, alpha, Hz.
    pub alpha: f64,
    /// Proportional gain, beta, Hz.
    pub beta: f64,
    /// Coupling factor.
    pub k: f64,
    /// Marking of the L queue by its own delay.
    pub l4s: L4sMarking,
    /// A packet with fewer packets than this behind it is not marked for the L queue's delay.
    pub min_packets: u32,
    /// Scheduler.
    pub scheduler: DualScheduler,
    /// Whether overload turns marks into drops.
    pub overload: bool,
    /// Select packets at random instead of evenly.
    pub random: bool,
    /// With fewer bytes left in both queues p' causes no signals.
    pub min_backlog: u32,
    /// Decide for p' at arrival.
    pub drop_early: bool,
    /// ECT(0) goes to the L queue, too.
    pub any_ect: bool,
    /// Packets that may wait in both queues, if the link's buffer holds more.
    pub limit: Option<u32>,
}

/// The L queue's own AQM.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum L4sMarking {
    /// From `min_th` the probability rises linearly and reaches one after `range`.
    Ramp {
        /// Start of the ramp.
        min_th: Span,
        /// Length of the ramp.
        range: Span,
    },
    /// All packets that waited for longer than this.
    Step(Span),
    /// All packets with more than so many behind them.
    Packets(u32),
}

/// Scheduler of the two queues.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DualScheduler {
    /// Weighted round robin by bytes, with this share for the C queue; the L queue has the rest.
    Wrr(f64),
    /// The packet that arrived first, with this head start for L4S packets.
    TimeShiftedFifo(Span),
}

/// The dual queue.
#[derive(Clone, Debug)]
pub struct DualPi2 {
    params: DualPi2Params,
    store: Store,
    /// Base probability, p'.
    base: f64,
    /// Queuing delay at the last update, seconds.
    old_delay_s: f64,
    due: Instant,
    /// Count of recur() for each queue.
    counted: [f64; 2],
    /// Bytes that weighted round robin owes the C queue: above zero it is served.
    classic_credit: f64,
}

/// Linux's full packet, by which the credit of weighted round robin starts.
const MTU: f64 = 1514.0;

/// The two queues.
const CLASSIC: usize = 0;
const L4S: usize = 1;

/// Decision on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Pass,
    Mark,
    Drop,
}

impl Default for DualPi2Params {
    fn default() -> Self {
        DualPi2Params {
            target: Span::from_millis(15),
            tupdate: Span::from_millis(16),
            alpha: 0.16,
            beta: 3.2,
            k: 2.0,
            l4s: L4sMarking::Ramp { min_th: Span::from_micros(800), range: Span::from_micros(400) },
            min_packets: 1,
            scheduler: DualScheduler::Wrr(0.1),
            overload: true,
            random: false,
            min_backlog: 0,
            drop_early: false,
            any_ect: false,
            limit: None,
        }
    }
}

impl DualScheduler {
    /// Initial credit, as in Linux; it favours the L queue.
    fn initial_credit(self) -> f64 {
        match self {
            DualScheduler::Wrr(share) => MTU * (2.0 * share - 1.0),
            DualScheduler::TimeShiftedFifo(_) => 0.0,
        }
    }
}

impl DualPi2 {
    /// Two empty queues with total capacity `limit`.
    pub fn new(params: DualPi2Params, limit: Limit) -> Self {
        let within = Limit { packets: params.limit.unwrap_or(u32::MAX).min(limit.packets), ..limit };
        DualPi2 {
            params,
            store: Store::new(2, within),
            base: 0.0,
            old_delay_s: 0.0,
            due: Instant::ZERO + params.tupdate.max(Span::from_nanos(1)),
            counted: [0.0; 2],
            classic_credit: params.scheduler.initial_credit(),
        }
    }

    pub(crate) fn from_settings(settings: &Settings<'_>, _network: &Network, limit: Limit) -> Result<Self, ParamError> {
        let standard = DualPi2Params::default();
        let span = |name: &str, otherwise: f64| Span::from_secs_f64(settings.number(name).unwrap_or(otherwise));
        let number = |name: &str, otherwise: f64| settings.number(name).unwrap_or(otherwise);
        let params = DualPi2Params {
            target: span("target", 0.015),
            tupdate: span("tupdate", 0.016),
            alpha: number("alpha", standard.alpha),
            beta: number("beta", standard.beta),
            k: number("k", standard.k),
            l4s: match settings.choice("l4s") {
                Some("step") => L4sMarking::Step(span("step", 1e-3)),
                Some("packets") => {
                    L4sMarking::Packets(settings.whole("step_packets")?.map_or(1, |packets| packets as u32))
                }
                _ => L4sMarking::Ramp { min_th: span("min_th", 800e-6), range: span("range", 400e-6) },
            },
            min_packets: settings.whole("min_packets")?.map_or(standard.min_packets, |packets| packets as u32),
            scheduler: match settings.choice("scheduler") {
                Some("ts-fifo") => DualScheduler::TimeShiftedFifo(span("shift", 0.05)),
                _ => DualScheduler::Wrr(number("classic_share", 0.1)),
            },
            overload: settings.flag("overload").unwrap_or(standard.overload),
            random: settings.choice("selection") == Some("random"),
            min_backlog: settings.whole("min_backlog")?.map_or(standard.min_backlog, |bytes| bytes as u32),
            drop_early: settings.flag("drop_early").unwrap_or(standard.drop_early),
            any_ect: settings.flag("any_ect").unwrap_or(standard.any_ect),
            limit: codel::limit(settings)?,
        };
        Ok(DualPi2::new(params, limit))
    }

    /// Takes the parameters of `new`; p' and the phase of the timer stay, a changed scheduler is reset.
    pub(crate) fn retune(&mut self, new: Self, now: Instant) {
        if self.params.scheduler != new.params.scheduler {
            self.classic_credit = new.params.scheduler.initial_credit();
        }
        let left = (self.due.saturating_since(now)).as_nanos();
        // The next update is due one new period after the last one.
        let since = self.params.tupdate.as_nanos().saturating_sub(left);
        let wait = Span::from_nanos(new.params.tupdate.as_nanos().saturating_sub(since));
        self.due = now.saturating_add(wait);
        self.params = new.params;
        self.store.set_limit(new.store.limit());
    }

    /// Parameters.
    pub const fn params(&self) -> &DualPi2Params {
        &self.params
    }

    /// Probability for classic packets, p_C = p'^2.
    pub fn classic_probability(&self) -> f64 {
        self.base * self.base
    }

    /// Coupled probability for L4S packets, p_CL = k p'. Above 1 marks no longer regulate.
    pub fn coupled_probability(&self) -> f64 {
        self.params.k * self.base
    }

    /// Heap memory in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.store.memory_bytes()
    }

    /// Appendix A, scheduler().
    fn chosen_queue(&self, now: Instant) -> Option<usize> {
        match (self.store.is_empty(L4S), self.store.is_empty(CLASSIC)) {
            (true, true) => None,
            (false, true) => Some(L4S),
            (true, false) => Some(CLASSIC),
            (false, false) => Some(match self.params.scheduler {
                DualScheduler::Wrr(_) if self.classic_credit > 0.0 => CLASSIC,
                DualScheduler::Wrr(_) => L4S,
                // Section 4.2.2 and appendix A: the L queue goes first while its head start
                // outweighs the wait of the C queue.
                DualScheduler::TimeShiftedFifo(shift) => {
                    let low = self.store.head_sojourn(L4S, now);
                    let classic = self.store.head_sojourn(CLASSIC, now);
                    if low.as_nanos().saturating_add(shift.as_nanos()) >= classic.as_nanos() { L4S } else { CLASSIC }
                }
            }),
        }
    }

    /// Updates the credit of weighted round robin as in Linux: sent bytes count only while both queues are backlogged.
    fn account(&mut self, queue: usize, bytes: u32) {
        let DualScheduler::Wrr(share) = self.params.scheduler else { return };
        let bytes = bytes as f64;
        if queue == L4S && !self.store.is_empty(CLASSIC) {
            self.classic_credit += share * bytes;
        } else if queue == CLASSIC && !self.store.is_empty(L4S) {
            self.classic_credit -= (1.0 - share) * bytes;
        }
    }

    /// Whether p' applies (see `min_backlog`).
    fn is_coupled(&self) -> bool {
        self.store.backlog().bytes >= self.params.min_backlog as u64
    }

    /// Appendix A, laqm(): the L queue's own probability for a packet that waited for `sojourn`.
    fn native_probability(&self, sojourn: Span) -> f64 {
        if self.store.queue(L4S).packets < self.params.min_packets {
            return 0.0;
        }
        match self.params.l4s {
            L4sMarking::Step(step) => (sojourn > step) as u8 as f64,
            L4sMarking::Packets(packets) => (self.store.queue(L4S).packets > packets) as u8 as f64,
            L4sMarking::Ramp { min_th, range } => {
                let beyond = sojourn.saturating_sub(min_th).as_secs_f64();
                match range.as_secs_f64() {
                    _ if sojourn <= min_th => 0.0,
                    range if beyond >= range => 1.0,
                    range => beyond / range,
                }
            }
        }
    }

    /// Appendix A, recur(): whether to select a packet of `queue` at probability `share`.
    fn choose<R: Draw>(&mut self, queue: usize, share: f64, rng: &mut R) -> bool {
        if self.params.random {
            return share > 0.0 && rng.uniform() < share;
        }
        let counted = &mut self.counted[queue];
        *counted += share.min(1.0);
        let chosen = *counted > 1.0;
        if chosen {
            *counted -= 1.0;
        }
        chosen
    }

    /// Appendix A.2, dqueue_dequeue(): decision on a packet dequeued from `queue`.
    fn judge<R: Draw>(&mut self, queue: usize, taken: &Waiting, sojourn: Span, rng: &mut R) -> Fate {
        let native = if queue == L4S { self.native_probability(sojourn) } else { 0.0 };
        if self.params.drop_early || !self.is_coupled() {
            return if self.choose(L4S, native, rng) { Fate::Mark } else { Fate::Pass };
        }
        self.couple(queue, &taken.packet, native, rng)
    }

    /// Decision by p' and by the queue's native probability.
    fn couple<R: Draw>(&mut self, queue: usize, packet: &Packet, native: f64, rng: &mut R) -> Fate {
        let (classic, coupled) = (self.classic_probability(), self.coupled_probability());
        if queue == L4S {
            if !self.params.overload || coupled < 1.0 {
                let share = native.max(coupled);
                return if self.choose(L4S, share, rng) { Fate::Mark } else { Fate::Pass };
            }
            // Overload saturation: L4S packets are dropped as often as classic ones, the others marked.
            return match self.choose(L4S, classic, rng) {
                true => Fate::Drop,
                false if self.choose(L4S, coupled, rng) => Fate::Mark,
                false => Fate::Pass,
            };
        }
        if !self.choose(CLASSIC, classic, rng) {
            return Fate::Pass;
        }
        // Overload disables ECN: from p_Cmax = min(1 / k^2, 1) on, where p_CL = 1.
        let too_high = self.params.overload && coupled >= 1.0;
        if packet.ecn.is_ect() && !too_high { Fate::Mark } else { Fate::Drop }
    }
}

impl Qdisc for DualPi2 {
    fn enqueue<R: Draw>(&mut self, handle: Handle, packet: &Packet, now: Instant, rng: &mut R, fates: &mut impl Fates) {
        self.store.arrive(packet);
        if self.store.is_full(packet) {
            return self.store.refuse(handle, DropReason::Overflow, fates);
        }
        // Section 2.3: ECT(1) and CE go to the L queue. Both have the last bit of the ECN field set.
        let low = packet.ecn as u8 % 2 == 1 || self.params.any_ect && packet.ecn.is_ect();
        let queue = if low { L4S } else { CLASSIC };
        if self.params.drop_early && self.is_coupled() {
            match self.couple(queue, packet, 0.0, rng) {
                Fate::Drop => return self.store.refuse(handle, DropReason::Early, fates),
                Fate::Mark => self.store.mark(handle, fates),
                Fate::Pass => {}
            }
        }
        self.store.push(queue, handle, packet, now);
    }

    fn dequeue<R: Draw>(&mut self, now: Instant, rng: &mut R, fates: &mut impl Fates) -> Option<Handle> {
        loop {
            let Some(queue) = self.chosen_queue(now) else {
                self.classic_credit = self.params.scheduler.initial_credit();
                return None;
            };
            let (taken, sojourn) = self.store.pop(queue, now)?;
            match self.judge(queue, &taken, sojourn, rng) {
                Fate::Drop => {
                    self.store.lose(&taken, DropReason::Early, fates);
                    continue;
                }
                Fate::Mark => self.store.mark(taken.handle, fates),
                Fate::Pass => {}
            }
            self.account(queue, taken.packet.bytes);
            return Some(self.store.send(&taken, now));
        }
    }

    fn transmitted(&mut self, duration: Span, _now: Instant) {
        self.store.transmitted(duration);
    }

    fn backlog(&self) -> Backlog {
        self.store.backlog()
    }

    fn totals(&self) -> &Totals {
        self.store.totals()
    }

    fn next_timer(&self) -> Option<Instant> {
        Some(self.due)
    }

    fn on_timer<R: Draw>(&mut self, now: Instant, _rng: &mut R) {
        if now < self.due {
            return;
        }
        let DualPi2Params { target, tupdate, alpha, beta, k, overload, .. } = self.params;
        let period = tupdate.max(Span::from_nanos(1));
        let periods = (now - self.due).as_nanos() / period.as_nanos() + 1;
        self.due = self.due.saturating_add(period.saturating_mul(periods));
        // Appendix A.2, dualpi2_update(): the longer delay, so that L4S traffic alone is regulated too.
        let delay_s = self.store.head_sojourn(CLASSIC, now).max(self.store.head_sojourn(L4S, now)).as_secs_f64();
        let base = self.base + alpha * (delay_s - target.as_secs_f64()) + beta * (delay_s - self.old_delay_s);
        let most = if overload { 1.0 } else { 1.0 / k };
        self.base = if base > 0.0 { base.min(most) } else { 0.0 };
        self.old_delay_s = delay_s;
    }

    /// Probability of a classic packet.
    fn probability(&self) -> Probability {
        Probability::clamp(self.classic_probability())
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("base_probability", self.base);
        visit("coupled_probability", self.coupled_probability().min(1.0));
        visit("delay_s", self.old_delay_s);
        visit("l4s_pkts", self.store.queue(L4S).packets as f64);
        visit("classic_pkts", self.store.queue(CLASSIC).packets as f64);
        visit("classic_credit_bytes", self.classic_credit);
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        let DualPi2Params { target, tupdate, alpha, beta, k, l4s, min_packets, scheduler, overload, random, .. } =
            self.params;
        let span = |span: Span| Value::Number(span.as_secs_f64());
        visit("target", span(target));
        visit("tupdate", span(tupdate));
        visit("alpha", Value::Number(alpha));
        visit("beta", Value::Number(beta));
        visit("k", Value::Number(k));
        match l4s {
            L4sMarking::Ramp { min_th, range } => {
                visit("l4s", Value::Choice("ramp"));
                visit("min_th", span(min_th));
                visit("range", span(range));
            }
            L4sMarking::Step(step) => {
                visit("l4s", Value::Choice("step"));
                visit("step", span(step));
            }
            L4sMarking::Packets(packets) => {
                visit("l4s", Value::Choice("packets"));
                visit("step_packets", Value::Number(packets as f64));
            }
        }
        visit("min_packets", Value::Number(min_packets as f64));
        match scheduler {
            DualScheduler::Wrr(share) => {
                visit("scheduler", Value::Choice("wrr"));
                visit("classic_share", Value::Number(share));
            }
            DualScheduler::TimeShiftedFifo(shift) => {
                visit("scheduler", Value::Choice("ts-fifo"));
                visit("shift", span(shift));
            }
        }
        visit("overload", Value::Flag(overload));
        visit("selection", Value::Choice(if random { "random" } else { "recur" }));
        visit("min_backlog", Value::Number(self.params.min_backlog as f64));
        visit("drop_early", Value::Flag(self.params.drop_early));
        visit("any_ect", Value::Flag(self.params.any_ect));
        if let Some(limit) = self.params.limit {
            visit("limit", Value::Number(limit as f64));
        }
    }

    fn single_queue_equivalent(&self) -> Result<SingleQueueEquivalent, &'static str> {
        let DualPi2Params { target, tupdate, alpha, beta, k, .. } = self.params;
        Ok(SingleQueueEquivalent {
            algorithm: "pi2",
            values: vec![
                ("target", target.as_secs_f64()),
                ("interval", tupdate.as_secs_f64()),
                ("alpha", alpha),
                ("beta", beta),
                ("coupling", k),
                // p' k reaches 1 there (RFC 9332 section 2.5.1).
                ("max_p", (1.0 / (k * k)).min(1.0)),
            ],
            traffic: "of its classic queue, with classic traffic only: PI2",
        })
    }
}

#[cfg(test)]
mod tests;
