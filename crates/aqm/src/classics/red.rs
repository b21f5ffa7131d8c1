//! RED: random early detection (Floyd and Jacobson 1993), with the options and the arithmetic of ns-2.
//!
//! Each arrival updates an exponential average of the queue; between two thresholds the signal probability rises with
//! the average. Signals are spread uniformly by counting the packets since the last one. After an idle time the average
//! falls as if the link had sent packets that found an empty queue.
//!
//! ```text
//!            avg < min_th: pass
//! arrival ── first packet with avg >= min_th: pass, start counting
//!            min_th <= avg < max_th: p_b = max_p (avg - min_th) / (max_th - min_th)
//!            max_th <= avg < 2 max_th, gentle: p_b = max_p + (1 - max_p) (avg - max_th) / max_th
//!            above: every packet
//! ```
//!
//! Deviations:
//! - Thresholds come from the target (min_th = target / 2, max_th = 3 min_th), not from ns-2's 5 ms rule, which
//!   `thresholds = ns2-auto` selects; the weight is 0.002, and `weight_rule` selects ns-2's rules.
//! - `use_mark_p` is off; ns-2 drops ECN-capable packets once p_b exceeds `mark_p` = 0.1.
//! - `bytes` and `queue_in_bytes` are off and ECN is on; ns-2 has the opposite defaults.
//! - `spacing = linux`: one random number R in [0, 1) per signal, not per packet. The first packet with count p_b >= R
//!   is signalled, so gaps are uniform between 1 and 1/p_b packets (mean 0.5 / p_b; ns-2 with `wait`: 1.5 / p_b). The
//!   count is undefined below min_th and above the curve's end, and a queue of one packet is not exempt.
//! - `above = mark` (Linux): beyond the curve's end ECN-capable packets are marked instead of dropped.
//! - `thresholds = tc`, `weight_rule = tc`: tc's values for a given limit: max_th = limit / 4, min_th = max_th / 3, and
//!   a weight of 2^-k that lets a burst of (2 min_th + max_th) / 3 packets pass.
//! - ns-2's `drop_tail_` false and `ns1_compat_` are omitted; its adaptive modes are the algorithms `ared` and
//!   `ared-feng`.
//!
//! Differences between `red-linux` and Linux: Linux averages bytes in fixed point. During idle times the average falls
//! by a table of shifts, computed for 10 Mbit/s if tc is not given the bandwidth. A drop above max_th counts as early
//! in Linux. `nodrop` and the actions at marks and drops are omitted.

use aqumen_units::{Instant, Probability};

use alloc::format;

use crate::{
    Algorithm, Aqm, Bound, Cx, DefaultValue, DesignReport, Draw, DropReason, Equilibrium, FluidModel, Hooks, Kind,
    Network, Packet, Param, ParamError, QueueOperatingPoint, RedCurve, RedLaw, Settings, SignalGaps, TcpPlant, Theory,
    Totals, Transfer, Unit, Value, Verdict,
};

const DEFAULT_WEIGHT: f64 = 0.002;
const DEFAULT_MAX_P: f64 = 0.1;
const DEFAULT_MARK_P: f64 = 0.1;
const DEFAULT_TARGET_DELAY_S: f64 = 0.005;

/// Registry entry.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "red",
    title: "RED",
    summary: "random early detection: signals packets with a probability that rises with the average queue",
    reference: "Floyd, Jacobson: Random early detection gateways for congestion avoidance, 1993; ns-2.35",
    params: &PARAMS,
};

/// Parameters of RED and its variants, in the order of `settings`.
pub(crate) const PARAMS: [Param; 18] = [
    Param {
        name: "min_th",
        kind: Kind::Number { unit: Unit::Packets, min: Bound::Inclusive(0.0), max: Bound::Open },
        default: DefaultValue::Designed("by the rule `thresholds`; max_th / 3 when only that is given"),
        doc: "average queue where signals begin",
    },
    Param::positive(
        "max_th",
        Unit::Packets,
        DefaultValue::Designed("3 min_th"),
        "average queue where the probability reaches max_p",
    ),
    Param {
        name: "thresholds",
        kind: Kind::Choice(&["target", "ns2-auto", "tc"]),
        default: DefaultValue::Value(Value::Choice("target")),
        doc: "rule for min_th: half the network's target, ns-2's max(5, target_delay ptc / 2), or tc's, a twelfth of the buffer",
    },
    Param::positive(
        "target_delay",
        Unit::Seconds,
        DefaultValue::number(DEFAULT_TARGET_DELAY_S),
        "target queueing delay of thresholds = ns2-auto, ns-2's targetdelay_",
    ),
    Param::fraction("max_p", DefaultValue::number(DEFAULT_MAX_P), "probability at max_th, ns-2's 1 / linterm_"),
    Param {
        name: "weight",
        kind: Kind::Number { unit: Unit::One, min: Bound::Exclusive(0.0), max: Bound::Inclusive(1.0) },
        default: DefaultValue::Designed("by the rule `weight_rule`"),
        doc: "weight of one arrival in the average, w",
    },
    Param {
        name: "weight_rule",
        kind: Kind::Choice(&["fixed", "ns2-auto", "ns2-1s", "ns2-100ms", "tc"]),
        default: DefaultValue::Value(Value::Choice("fixed")),
        doc: "rule for weight: 0.002, or 1 - exp(-1 / (T ptc)) with T = 10 max(0.1, 3 (link_delay + 1/ptc)), 1 s or 0.1 s; or tc's, for a burst of (2 min_th + max_th) / 3",
    },
    Param {
        name: "link_delay",
        kind: Kind::Number { unit: Unit::Seconds, min: Bound::Inclusive(0.0), max: Bound::Open },
        default: DefaultValue::number(0.0),
        doc: "propagation delay of the link, for weight_rule = ns2-auto",
    },
    Param::flag(
        "gentle",
        true,
        "above max_th the probability rises to 1 at 2 max_th instead of jumping, ns-2's gentle_",
    ),
    Param::flag("wait", true, "at least 1/p packets pass between two signals, ns-2's wait_"),
    Param::flag("bytes", false, "a packet's probability grows with its size, ns-2's bytes_"),
    Param::flag("queue_in_bytes", false, "average the queue in bytes, ns-2's queue_in_bytes_"),
    Param {
        name: "mean_packet",
        kind: Kind::Number { unit: Unit::Bytes, min: Bound::Inclusive(1.0), max: Bound::Inclusive(1e9) },
        default: DefaultValue::Designed("the network's packet size"),
        doc: "mean packet size for both byte modes and the idle time, a whole number, ns-2's mean_pktsize_",
    },
    Param::flag(
        "use_mark_p",
        false,
        "drop ECN-capable packets while the probability is above mark_p, ns-2's use_mark_p_",
    ),
    Param::fraction(
        "mark_p",
        DefaultValue::number(DEFAULT_MARK_P),
        "highest probability at which use_mark_p marks, ns-2's mark_p_",
    ),
    Param {
        name: "spacing",
        kind: Kind::Choice(&["ns2", "linux"]),
        default: DefaultValue::Value(Value::Choice("ns2")),
        doc: "spacing of signals: a random number per packet, with or without `wait` (ns2), or one per signal (linux)",
    },
    Param {
        name: "above",
        kind: Kind::Choice(&["drop", "mark"]),
        default: DefaultValue::Value(Value::Choice("drop")),
        doc: "action on an ECN-capable packet beyond the curve: drop, or mark, as in Linux without harddrop",
    },
    Param::ECN,
];

/// Exponential average of the queue: avg <- (1 - w) avg + w q at each arrival.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedAverage {
    weight: f64,
    value: f64,
}

/// The parameters of [`Red`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedParams {
    /// The curve, thresholds in packets.
    pub curve: RedCurve,
    /// Weight of one arrival in the average, in (0, 1].
    pub weight: f64,
    /// Rate of the link in mean packets per second, ns-2's `ptc`; 0 disables the decay during idle times.
    pub link_pps: f64,
    /// Whether at least 1/p packets pass between two signals.
    pub wait: bool,
    /// Whether a packet's probability grows with its size.
    pub bytes: bool,
    /// Whether the average is in bytes.
    pub queue_in_bytes: bool,
    /// Mean packet size in bytes, at least 1.
    pub mean_packet: u32,
    /// Drop ECN-capable packets while p_b is above `mark_p`. ns-2's forced drop beyond the curve's end then counts as
    /// early.
    pub use_mark_p: bool,
    /// Threshold of `use_mark_p`.
    pub mark_p: Probability,
    /// One random number per signal, as in Linux, instead of one per packet.
    pub linux_spacing: bool,
    /// Mark ECN-capable packets beyond the curve's end.
    pub mark_above: bool,
    /// Mark ECN-capable packets.
    pub ecn: bool,
}

/// Random early detection.
#[derive(Clone, Copy, Debug)]
pub struct Red {
    params: RedParams,
    /// Curve in the unit of the average.
    curve: RedCurve,
    average: RedAverage,
    /// Packets since the last signal, saturating.
    count: u32,
    count_bytes: u64,
    /// Whether the last packet found an average above min_th.
    above_min: bool,
    /// Linux's random number for the next signal; `None` outside the curve.
    random_number: Option<f64>,
    idle_since: Option<Instant>,
    /// Base probability p_b of the last decision.
    base: f64,
    /// Probability of the last decision, after spreading.
    spread: f64,
}

impl RedParams {
    /// Mean behaviour of RED with these parameters.
    pub fn law(&self) -> RedLaw {
        RedLaw {
            curve: self.curve,
            decay: -libm::log1p(-self.weight.min(1.0 - 1e-12)),
            wait: self.wait,
            ecn: self.ecn,
            mark_limit: (if self.use_mark_p { self.mark_p.get() } else { 1.0 }, self.curve.end()),
        }
    }
}

impl RedAverage {
    /// An average of 0 with `weight` in (0, 1] per arrival.
    pub const fn new(weight: f64) -> Self {
        RedAverage { weight, value: 0.0 }
    }

    /// Weight for time constant `time_s` at `pps` arrivals per second: w = 1 - exp(-1 / (time pps)).
    pub fn weight_for(time_s: f64, pps: f64) -> f64 {
        -libm::expm1(-1.0 / (time_s * pps))
    }

    /// Pole of the average at `pps` arrivals per second, K = -pps ln(1 - w), rad/s.
    pub fn pole(&self, pps: f64) -> f64 {
        -pps * libm::log1p(-self.weight)
    }

    /// Updates the average for an arrival that found `queue`.
    #[inline]
    pub fn update(&mut self, queue: f64) {
        self.value = (1.0 - self.weight) * self.value + self.weight * queue;
    }

    /// Updates the average for `arrivals` arrivals that found an empty queue.
    pub fn decay(&mut self, arrivals: f64) {
        self.value *= libm::pow(1.0 - self.weight, arrivals);
    }

    /// The average.
    pub const fn value(&self) -> f64 {
        self.value
    }

    /// Weight of one arrival.
    pub const fn weight(&self) -> f64 {
        self.weight
    }
}

impl Red {
    /// RED over an empty queue.
    pub fn new(params: RedParams) -> Result<Self, ParamError> {
        if !(params.weight > 0.0 && params.weight <= 1.0) {
            return Err(ParamError::relation("weight", params.weight, "must be above 0, at most 1"));
        }
        if params.mean_packet == 0 {
            return Err(ParamError::relation("mean_packet", 0.0, "must be at least 1"));
        }
        if !(params.link_pps >= 0.0 && params.link_pps.is_finite()) {
            return Err(ParamError::relation("link_pps", params.link_pps, "must be at least 0"));
        }
        let unit = if params.queue_in_bytes { params.mean_packet as f64 } else { 1.0 };
        Ok(Red {
            params,
            curve: params.curve.scaled(unit),
            average: RedAverage::new(params.weight),
            count: 0,
            count_bytes: 0,
            above_min: false,
            random_number: None,
            // ns-2: the link has been idle since the start.
            idle_since: Some(Instant::ZERO),
            base: 0.0,
            spread: 0.0,
        })
    }

    /// Parameters.
    pub const fn params(&self) -> &RedParams {
        &self.params
    }

    pub(crate) fn from_settings(settings: &Settings<'_>, network: &Network) -> Result<Self, ParamError> {
        Red::design(settings, network, "fixed")
    }

    /// RED for an operator's settings; `weight_rule` is the default rule for the weight.
    pub(crate) fn design(
        settings: &Settings<'_>,
        network: &Network,
        weight_rule: &'static str,
    ) -> Result<Self, ParamError> {
        let flag = |name: &str, otherwise: bool| settings.flag(name).unwrap_or(otherwise);
        // ns-2 stores the mean packet size as an integer.
        let mean_packet = match settings.whole("mean_packet")? {
            Some(bytes) => bytes as u32,
            None => libm::round(network.packet_bytes).max(1.0) as u32,
        };
        let link_pps = network.link_rate.as_bps() as f64 / (8.0 * mean_packet as f64);

        let designed = || match settings.choice("thresholds") {
            Some("ns2-auto") => {
                (settings.number("target_delay").unwrap_or(DEFAULT_TARGET_DELAY_S) * link_pps / 2.0).max(5.0)
            }
            Some("tc") => network.buffer_pkts / 12.0,
            _ => network.target_pkts / 2.0,
        };
        let (min_th, max_th) = match (settings.number("min_th"), settings.number("max_th")) {
            (Some(min), Some(max)) => (min, max),
            (Some(min), None) => (min, 3.0 * min),
            (None, Some(max)) => (max / 3.0, max),
            (None, None) => {
                let min = designed();
                (min, 3.0 * min)
            }
        };
        let weight = match (settings.number("weight"), settings.choice("weight_rule").unwrap_or(weight_rule)) {
            (Some(weight), _) => weight,
            (None, "ns2-auto") => {
                let link_delay = settings.number("link_delay").unwrap_or(0.0);
                let rtt = (3.0 * (link_delay + 1.0 / link_pps)).max(0.1);
                RedAverage::weight_for(10.0 * rtt, link_pps)
            }
            (None, "ns2-1s") => RedAverage::weight_for(1.0, link_pps),
            (None, "ns2-100ms") => RedAverage::weight_for(0.1, link_pps),
            (None, "tc") => tc_weight(min_th, max_th),
            (None, _) => DEFAULT_WEIGHT,
        };
        let max_p = settings.number("max_p").unwrap_or(DEFAULT_MAX_P);
        let linux_spacing = settings.choice("spacing") == Some("linux");
        Red::new(RedParams {
            curve: RedCurve::new(min_th, max_th, max_p, flag("gentle", true))?,
            weight,
            link_pps,
            wait: flag("wait", !linux_spacing),
            bytes: flag("bytes", false),
            queue_in_bytes: flag("queue_in_bytes", false),
            mean_packet,
            use_mark_p: flag("use_mark_p", false),
            mark_p: Probability::clamp(settings.number("mark_p").unwrap_or(DEFAULT_MARK_P)),
            linux_spacing,
            mark_above: settings.choice("above") == Some("mark"),
            ecn: flag("ecn", true),
        })
    }

    /// Updates the average, with decay after an idle time.
    #[inline]
    fn observe_queue(&mut self, queue: f64, now: Instant) {
        if let Some(since) = self.idle_since {
            self.end_idle(since, now);
        }
        self.average.update(queue);
    }

    /// Decay after an idle time; a separate function keeps the common path short.
    #[cold]
    fn end_idle(&mut self, since: Instant, now: Instant) {
        self.idle_since = None;
        let missed = libm::floor(self.params.link_pps * now.saturating_since(since).as_secs_f64());
        if missed > 0.0 {
            self.average.decay(missed);
        }
    }

    /// Probability of a signal to this packet: `base` increased with the count since the last signal.
    #[inline]
    fn spread(&self, base: f64, packet: &Packet) -> f64 {
        let params = &self.params;
        // ns-2 divides integers here.
        let count =
            if params.bytes { (self.count_bytes / params.mean_packet as u64) as f64 } else { self.count as f64 };
        let due = count * base;
        let mut p = match (params.wait, due) {
            (true, due) if due < 1.0 => 0.0,
            (true, due) if due < 2.0 => base / (2.0 - due),
            (false, due) if due < 1.0 => base / (1.0 - due),
            _ => 1.0,
        };
        if params.bytes && p < 1.0 {
            p *= packet.bytes as f64 / params.mean_packet as f64;
        }
        p.min(1.0)
    }

    fn restart_count(&mut self) {
        (self.count, self.count_bytes) = (0, 0);
    }
}

impl Red {
    /// First part of an arrival: updates the average.
    #[inline]
    pub(crate) fn update_average<R: Draw>(&mut self, cx: &Cx<'_, R>) {
        self.observe_queue(self.queue(cx), cx.now);
    }

    /// Queue in the unit of the average.
    #[inline]
    fn queue<R: Draw>(&self, cx: &Cx<'_, R>) -> f64 {
        if self.params.queue_in_bytes { cx.queue.bytes as f64 } else { cx.queue.packets as f64 }
    }

    /// Current curve, in the unit of the average.
    pub(crate) const fn curve(&self) -> &RedCurve {
        &self.curve
    }

    /// Changes the curve.
    pub(crate) fn set_curve(&mut self, curve: RedCurve) {
        self.curve = curve;
    }

    /// Average queue, in the unit of the curve.
    pub(crate) const fn average(&self) -> f64 {
        self.average.value()
    }

    /// Second part of an arrival: the decision.
    #[inline]
    pub(crate) fn decide<R: Draw>(&mut self, packet: &Packet, cx: &mut Cx<'_, R>) -> Verdict {
        if self.params.linux_spacing {
            return self.decide_as_linux(packet, cx.rng);
        }
        let queue = self.queue(cx);
        self.count = self.count.saturating_add(1);
        self.count_bytes += packet.bytes as u64;

        let average = self.average.value();
        if average < self.curve.min_th() || queue <= 1.0 {
            self.above_min = false;
            self.spread = 0.0;
            return Verdict::Pass;
        }
        if !self.params.use_mark_p && average >= self.curve.end() {
            self.restart_count();
            return self.beyond_curve(packet);
        }
        if !self.above_min {
            // The first packet above min_th is never signalled.
            (self.count, self.count_bytes, self.above_min) = (1, packet.bytes as u64, true);
            return Verdict::Pass;
        }
        self.base = self.curve.probability(average);
        self.spread = self.spread(self.base, packet);
        // ns-2 tests u <= p, not u < p.
        if cx.rng.uniform() > self.spread {
            return Verdict::Pass;
        }
        self.restart_count();
        let may_mark = !self.params.use_mark_p || self.base <= self.params.mark_p.get();
        Verdict::signal(packet, self.params.ecn && may_mark)
    }

    /// Decision as in Linux, `red_action`.
    fn decide_as_linux<R: Draw>(&mut self, packet: &Packet, rng: &mut R) -> Verdict {
        let average = self.average.value();
        if average < self.curve.min_th() || average >= self.curve.end() {
            (self.random_number, self.above_min, self.spread) = (None, average >= self.curve.min_th(), 0.0);
            return if self.above_min { self.beyond_curve(packet) } else { Verdict::Pass };
        }
        self.above_min = true;
        self.base = self.curve.probability(average);
        let Some(random_number) = self.random_number else {
            (self.random_number, self.count) = (Some(rng.uniform()), 0);
            return Verdict::Pass;
        };
        self.count = self.count.saturating_add(1);
        self.spread = (self.count as f64 * self.base).min(1.0);
        if self.spread < random_number {
            return Verdict::Pass;
        }
        (self.random_number, self.count) = (Some(rng.uniform()), 0);
        Verdict::signal(packet, self.params.ecn)
    }

    /// Verdict beyond the curve's end.
    fn beyond_curve(&self, packet: &Packet) -> Verdict {
        match Verdict::signal(packet, self.params.ecn && self.params.mark_above) {
            Verdict::Mark => Verdict::Mark,
            _ => Verdict::Drop(DropReason::Overflow),
        }
    }
}

/// Weight that tc computes: the largest 2^-k for which an average that starts at 0 stays below min_th during a burst,
/// burst + 1 - min_th <= (1 - (1 - w)^burst) / w.
fn tc_weight(min_th: f64, max_th: f64) -> f64 {
    let burst = libm::floor((2.0 * min_th + max_th) / 3.0);
    let excess = burst + 1.0 - min_th;
    let weights = (1..32).map(|k| libm::ldexp(1.0, -k));
    weights.into_iter().find(|w| excess <= (1.0 - libm::pow(1.0 - w, burst)) / w).unwrap_or(libm::ldexp(1.0, -31))
}

impl Aqm for Red {
    // Too large to be inlined into the dispatch over all algorithms.
    #[inline(never)]
    fn on_arrival<R: Draw>(&mut self, packet: &Packet, cx: &mut Cx<'_, R>) -> Verdict {
        self.update_average(cx);
        self.decide(packet, cx)
    }

    fn on_overflow<R: Draw>(&mut self, _packet: &Packet, _cx: &mut Cx<'_, R>) {
        self.restart_count();
    }

    fn on_idle(&mut self, now: Instant) {
        self.idle_since = Some(now);
    }

    fn hooks(&self) -> Hooks {
        Hooks { departures: true, ..Hooks::default() }
    }

    fn probability(&self) -> Probability {
        Probability::clamp(self.curve.probability(self.average.value()))
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let unit = if self.params.queue_in_bytes { self.params.mean_packet as f64 } else { 1.0 };
        visit("average_queue", self.average.value() / unit);
        visit("count", self.count as f64);
        visit("above_min", self.above_min as u8 as f64);
        visit("base_probability", self.base);
        visit("spread_probability", self.spread);
        visit("idle", self.idle_since.is_some() as u8 as f64);
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        let RedParams { curve, weight, wait, bytes, queue_in_bytes, mean_packet, use_mark_p, mark_p, .. } = self.params;
        visit("min_th", Value::Number(curve.min_th()));
        visit("max_th", Value::Number(curve.max_th()));
        visit("max_p", Value::Number(curve.max_p()));
        visit("weight", Value::Number(weight));
        visit("gentle", Value::Flag(curve.is_gentle()));
        visit("wait", Value::Flag(wait));
        visit("bytes", Value::Flag(bytes));
        visit("queue_in_bytes", Value::Flag(queue_in_bytes));
        visit("mean_packet", Value::Number(mean_packet as f64));
        visit("use_mark_p", Value::Flag(use_mark_p));
        visit("mark_p", Value::Number(mark_p.get()));
        visit("spacing", Value::Choice(if self.params.linux_spacing { "linux" } else { "ns2" }));
        visit("above", Value::Choice(if self.params.mark_above { "mark" } else { "drop" }));
        visit("ecn", Value::Flag(self.params.ecn));
    }

    fn take_over(&mut self, old: Option<&Self>, now: Instant, totals: &Totals) {
        let _ = (now, totals);
        if let Some(old) = old {
            let params = (self.params, self.curve, self.average.weight);
            *self = *old;
            (self.params, self.curve, self.average.weight) = params;
        }
    }

    fn theory(&self) -> &dyn Theory {
        self
    }
}

/// Parameter table of a RED variant: RED's with default `weight_rule`, followed by `more`.
pub(crate) const fn family<const N: usize>(weight_rule: &'static str, more: &[Param]) -> [Param; N] {
    let mut all = [Param::ECN; N];
    let mut i = 0;
    while i < N {
        all[i] = if i < PARAMS.len() { PARAMS[i] } else { more[i - PARAMS.len()] };
        i += 1;
    }
    all[WEIGHT_RULE].default = DefaultValue::Value(Value::Choice(weight_rule));
    all
}

/// Index of `weight_rule` in the table.
const WEIGHT_RULE: usize = 6;

impl Theory for Red {
    fn fluid_model(&self) -> FluidModel {
        FluidModel::Red(self.params().law())
    }

    fn equilibrium(&self) -> Equilibrium {
        Equilibrium::OnCurve(self.params().law())
    }

    fn dispersion(&self, p: f64) -> f64 {
        self.params().law().dispersion(p)
    }

    fn signal_gaps(&self, p: f64) -> Option<SignalGaps> {
        self.params().law().signal_gaps(p)
    }

    fn linear(&self, at: &QueueOperatingPoint) -> Option<Transfer> {
        Some(self.params().law().linear(at.probability, at.capacity_pps))
    }

    fn derive(&self, at: &QueueOperatingPoint, plant: &TcpPlant, report: &mut dyn DesignReport) {
        let params = self.params();
        let slope = params.curve.slope();
        let pole = -at.capacity_pps * libm::log1p(-params.weight.min(1.0 - 1e-12));
        report.number("L_RED", slope);
        report.number("K", pole);
        // Hollot et al.: L_RED k_t <= sqrt((w_g / K)^2 + 1), with w_g a tenth of the slower pole of the plant.
        let w_g = 0.1 * (1.0 / plant.window_time_s()).min(1.0 / at.rtt_s);
        let gain = slope * plant.gain_pkts();
        report.number("w_g", w_g);
        if gain > 1.0 {
            let stable = w_g / libm::sqrt(gain * gain - 1.0);
            let weight = -libm::expm1(-stable / at.capacity_pps);
            report.number("K_stable", stable);
            report.number("weight_stable", weight);
            if pole > stable {
                report.warn(format!(
                    "the average is too fast for Hollot's rule: weight {:.3e} instead of at most {weight:.3e}",
                    params.weight
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests;
