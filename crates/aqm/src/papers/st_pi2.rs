//! ST-PI2: a self-tuning PI controller of p', the root of the signal probability, which measures its network itself.
//!
//! The rule of STPI (Zhang, Hollot, Towsley, Misra 2003: estimates of capacity, load and round trip, a zero on the
//! window's pole) on the root of PI2 (De Schepper, Bondarenko, Tsang, Briscoe 2016), with the idea of PAQM: a flow
//! that sends more gets more signals. Every R/8, in terms of the estimates C, R, N and of the delay d = backlog / C:
//!
//! ```text
//! N = max(1, C (R + T) p'' / sqrt 2)       p'': mean of p' over 10 (R + T)
//! T = max(sigma R / sqrt N, exempt packets / C)
//! v = idle (R + T) i                       i: share of idle time, mean over R + T
//! n = C (R + T) max(p', p'')^2             signals in a round trip
//! B = b min(max(n, 1/5), 1)                K = B sqrt(1 + B^2) / (sqrt 2 (R + T))
//! a = max(sqrt 2 p'', 0.03) / (R + T)
//! p' <- clamp(p' + K (d - d before + a (time) (d - T - v)), 0, 1)
//!
//! arrival: sum of the flow += p m w, one signal each time that it passes 1
//!          m = bytes / mean bytes, w = (rate / mean rate)^gamma
//!          classic: p = c (2 p' - c), the tangent of the square at c = max(p'', p'/10), at most p'
//!          ECT(1): p = min(1, 2 p')
//!          none: at most `exempt` packets wait; or p' < 0.3 and a classic flow was signalled less than R ago
//!          p' > 1/2: dropped, not marked
//! ```
//!
//! m is at least 1 for a flow above the fair rate, C over the number of flows, so that a flood of small packets is not
//! spared. w is between 1/4 and 4. Rates are those of four round trips. R comes from handshakes ([`PassiveRtt`]); `rtt`
//! holds until the first. C is bytes over busy time, and over all time while packets wait, with a memory of R.
//!
//! Memory: 64 kB for 2048 flows and 6 kB for 256 handshakes, whatever the traffic; nothing is allocated per packet.
//!
//! Deviations: none, there is no other source. docs/aqms/st-pi2.md says what each part earns.

mod flows;
mod marker;
mod theory;

use aqumen_units::{Ecn, Instant, Probability, Span};

use crate::design::passive_rtt::PassiveRtt;
use crate::{
    Algorithm, Aqm, Backlog, Bound, Cx, DefaultValue, Draw, DropReason, Kind, Network, Observation, Observer, Packet,
    Param, ParamError, Settings, Totals, Unit, Value, Verdict,
};
use flows::FlowTable;
pub use marker::{PacketCounts, PacketRule};

const DEFAULT_SIGMA: f64 = 0.3;
const DEFAULT_B: f64 = 0.25;
const DEFAULT_GAMMA: f64 = 0.5;
const DEFAULT_RTT_S: f64 = 0.1;
const DEFAULT_IDLE: f64 = 2.0;
const DEFAULT_EXEMPT: f64 = 1.0;
/// Least zero of the controller times R + T: where p' is small, its integral would stand still.
const ZERO_MIN: f64 = 0.03;
/// Least share of p' at which the square's tangent is taken.
const TANGENT: f64 = 0.1;
/// Least share of `b` where signals are rare.
const GAIN_MIN: f64 = 0.2;
/// Memory of the mean of p', round trips.
const AVERAGE: f64 = 10.0;
/// Length of an epoch of the flows' rates, round trips; and the shortest one.
const EPOCH: f64 = 4.0;
const EPOCH_MIN_S: f64 = 0.005;
/// Steps in a round trip, and the shortest and longest one.
const STEPS: f64 = 8.0;
const STEP_S: (f64, f64) = (2e-4, 0.05);
/// Shortest memory of the capacity.
const CAPACITY_MEMORY_S: f64 = 0.02;
const WEIGHT: (f64, f64) = (0.25, 4.0);
/// p' from which a flow may be signalled more than once in a round trip, and from which marks become drops.
const HOLD_BELOW: f64 = 0.3;
const OVERLOAD: f64 = 0.5;
/// Probability of an ECT(1) packet over p'.
const COUPLING: f64 = 2.0;
const PACKET_MIN: f64 = 40.0;
const SQRT_2: f64 = core::f64::consts::SQRT_2;

/// Registry entry.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "st-pi2",
    title: "ST-PI2",
    summary: "self-tuning PI control of the queueing delay: measures capacity, load and round trip, and needs no settings",
    reference: "Aqumen; after Zhang, Hollot, Towsley, Misra 2003 and De Schepper, Bondarenko, Tsang, Briscoe 2016",
    params: &[
        Param::positive("sigma", Unit::One, DefaultValue::number(DEFAULT_SIGMA), "target delay over R / sqrt N"),
        Param {
            name: "b",
            kind: Kind::Number { unit: Unit::One, min: Bound::Exclusive(0.0), max: Bound::Inclusive(0.6) },
            default: DefaultValue::number(DEFAULT_B),
            doc: "crossover at b / R",
        },
        Param::fraction(
            "gamma",
            DefaultValue::number(DEFAULT_GAMMA),
            "signals of a flow grow with this power of its rate",
        ),
        Param::positive(
            "rtt",
            Unit::Seconds,
            DefaultValue::number(DEFAULT_RTT_S),
            "round-trip time without queueing until the first handshake",
        ),
        Param {
            name: "idle",
            kind: Kind::Number { unit: Unit::One, min: Bound::Inclusive(0.0), max: Bound::Open },
            default: DefaultValue::number(DEFAULT_IDLE),
            doc: "idle time counts as a missing delay of this many times its share of a round trip",
        },
        Param {
            name: "exempt",
            kind: Kind::Number { unit: Unit::Packets, min: Bound::Inclusive(0.0), max: Bound::Open },
            default: DefaultValue::number(DEFAULT_EXEMPT),
            doc: "longest queue that is not signalled, and the least target",
        },
        Param::ECN,
    ],
};

/// Parameters of [`StPi2`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StPi2Params {
    /// Target delay over R / sqrt N.
    pub sigma: f64,
    /// Crossover times R.
    pub b: f64,
    /// Power of a flow's rate.
    pub gamma: f64,
    /// Round-trip time until the first handshake, seconds.
    pub rtt_s: f64,
    /// Missing delay over a round trip of idle time.
    pub idle: f64,
    /// Longest queue without signals, packets.
    pub exempt_pkts: f64,
    /// Mark ECN-capable packets.
    pub ecn: bool,
}

/// ST-PI2.
#[derive(Clone, Debug)]
pub struct StPi2 {
    params: StPi2Params,
    due: Instant,
    observer: Observer,
    rtt: PassiveRtt,
    flows: FlowTable,
    capacity: Capacity,
    law: Law,
    rates: Rates,
}

/// State of the control law.
#[derive(Clone, Copy, Debug)]
struct Law {
    /// p'.
    root: f64,
    average: f64,
    delay_s: f64,
    target_s: f64,
    /// N.
    flows: f64,
    /// R.
    rtt_s: f64,
    /// i.
    idle: f64,
    steps: u32,
}

/// Estimate of the capacity: bytes and seconds, with a memory.
#[derive(Clone, Copy, Debug, Default)]
struct Capacity {
    sent: f64,
    busy_s: f64,
    waited: bool,
}

/// Means over the packets that arrive.
#[derive(Clone, Copy, Debug)]
struct Rates {
    epoch_at: Instant,
    epoch_s: f64,
    /// Mean rate of a packet's flow, bytes/s.
    mean: f64,
    /// Mean size, weighted by size.
    bytes: f64,
}

impl Default for StPi2Params {
    fn default() -> Self {
        StPi2Params {
            sigma: DEFAULT_SIGMA,
            b: DEFAULT_B,
            gamma: DEFAULT_GAMMA,
            rtt_s: DEFAULT_RTT_S,
            idle: DEFAULT_IDLE,
            exempt_pkts: DEFAULT_EXEMPT,
            ecn: true,
        }
    }
}

impl StPi2Params {
    /// Weight of a flow's signals, from its rate over the mean one.
    pub fn weight(&self, rate: f64) -> f64 {
        if self.gamma > 0.0 { libm::pow(rate, self.gamma).clamp(WEIGHT.0, WEIGHT.1) } else { 1.0 }
    }
}

impl Capacity {
    /// Bytes per second; 0 before the first packet has left.
    fn bytes_per_s(&self) -> f64 {
        if self.busy_s > 0.0 { self.sent / self.busy_s } else { 0.0 }
    }

    fn update(&mut self, seen: &Observation, memory_s: f64) {
        // A link that had packets at both ends of the interval was busy, whoever used the medium.
        let waits = seen.queue_pkts > 0.0;
        let busy_s = if waits && self.waited { seen.interval_s } else { seen.busy_s };
        self.waited = waits;
        if busy_s > 0.0 && seen.departures_bytes > 0.0 {
            let keep = libm::exp(-busy_s / memory_s);
            self.sent = self.sent * keep + seen.departures_bytes;
            self.busy_s = self.busy_s * keep + busy_s;
        }
    }
}

impl Law {
    /// Steps p' at capacity `c`, bytes/s, with packets of `packet` bytes.
    fn step(&mut self, params: &StPi2Params, seen: &Observation, c: f64, packet: f64) {
        let (h, delay_s) = (seen.interval_s, seen.queue_bytes / c);
        self.flows = (c / packet * (self.rtt_s + self.target_s) * self.average / SQRT_2).max(1.0);
        let wanted = params.sigma * self.rtt_s / libm::sqrt(self.flows);
        self.target_s = wanted.max(params.exempt_pkts * packet / c);
        let round_s = self.rtt_s + self.target_s;
        self.idle -= libm::expm1(-h / round_s) * (seen.idle_s / h - self.idle);
        let missing_s = params.idle * round_s * self.idle;
        let zero = (SQRT_2 * self.average).max(ZERO_MIN) / round_s;
        let gain = gain(params.b, self.signals(c / packet * round_s), round_s);
        let change = gain * ((delay_s - self.delay_s) + zero * h * (delay_s - self.target_s - missing_s));
        self.root = (self.root + change).clamp(0.0, 1.0);
        self.delay_s = delay_s;
        self.average -= libm::expm1(-h / (AVERAGE * round_s)) * (self.root - self.average);
        self.steps += 1;
    }

    /// Signals among `packets`.
    fn signals(&self, packets: f64) -> f64 {
        let root = self.average.max(self.root);
        packets * root * root
    }

    /// Probability of a packet: the square's tangent for classic ones.
    fn probability(&self, scalable: bool) -> f64 {
        if scalable {
            return (COUPLING * self.root).min(1.0);
        }
        let at = self.average.max(TANGENT * self.root).min(self.root);
        at * (2.0 * self.root - at)
    }
}

impl StPi2 {
    /// ST-PI2 for an empty queue.
    pub fn new(params: StPi2Params) -> Result<Self, ParamError> {
        Param::check_positive("sigma", params.sigma, Unit::One)?;
        Param::check_positive("b", params.b, Unit::One)?;
        Param::check_positive("rtt", params.rtt_s, Unit::Seconds)?;
        let law = Law {
            root: 0.0,
            average: 0.0,
            delay_s: 0.0,
            target_s: 0.0,
            flows: 1.0,
            rtt_s: params.rtt_s,
            idle: 0.0,
            steps: 0,
        };
        let epoch_s = EPOCH * params.rtt_s;
        Ok(StPi2 {
            params,
            due: Instant::ZERO + step(params.rtt_s),
            observer: Observer::default(),
            rtt: PassiveRtt::default(),
            flows: FlowTable::default(),
            capacity: Capacity::default(),
            law,
            rates: Rates { epoch_at: Instant::ZERO, epoch_s, mean: 0.0, bytes: 0.0 },
        })
    }

    pub(crate) fn from_settings(settings: &Settings<'_>, _network: &Network) -> Result<Self, ParamError> {
        let number = |name: &str, otherwise: f64| settings.number(name).unwrap_or(otherwise);
        StPi2::new(StPi2Params {
            sigma: number("sigma", DEFAULT_SIGMA),
            b: number("b", DEFAULT_B),
            gamma: number("gamma", DEFAULT_GAMMA),
            rtt_s: number("rtt", DEFAULT_RTT_S),
            idle: number("idle", DEFAULT_IDLE),
            exempt_pkts: number("exempt", DEFAULT_EXEMPT),
            ecn: settings.flag("ecn").unwrap_or(true),
        })
    }

    fn step(&mut self, seen: &Observation) {
        self.law.rtt_s = self.rtt.mean_s().unwrap_or(self.params.rtt_s);
        self.capacity.update(seen, self.law.rtt_s.max(CAPACITY_MEMORY_S));
        let c = self.capacity.bytes_per_s();
        if c <= 0.0 || seen.interval_s <= 0.0 {
            return;
        }
        self.law.step(&self.params, seen, c, self.rates.bytes.max(PACKET_MIN));
        if (seen.now - self.rates.epoch_at).as_secs_f64() >= self.rates.epoch_s {
            self.rates.epoch_at = seen.now;
            self.rates.epoch_s = (EPOCH * (self.law.rtt_s + self.law.target_s)).max(EPOCH_MIN_S);
            self.flows.next_epoch();
        }
    }
}

/// K, for `signals` in a round trip of `round_s` seconds.
fn gain(b: f64, signals: f64, round_s: f64) -> f64 {
    let b = b * signals.clamp(GAIN_MIN, 1.0);
    b * libm::sqrt(1.0 + b * b) / (SQRT_2 * round_s)
}

/// Time between steps at round trip `rtt_s`.
fn step(rtt_s: f64) -> Span {
    Span::from_secs_f64((rtt_s / STEPS).clamp(STEP_S.0, STEP_S.1))
}

impl Aqm for StPi2 {
    fn on_arrival<R: Draw>(&mut self, packet: &Packet, cx: &mut Cx<'_, R>) -> Verdict {
        let c = self.capacity.bytes_per_s();
        let wait_s = if c > 0.0 { cx.queue.bytes as f64 / c } else { 0.0 };
        self.rtt.on_arrival(packet, cx.now, Span::from_secs_f64(wait_s));
        if cx.queue.is_full(packet) {
            return Verdict::Pass;
        }
        let StPi2 { params, flows, law, rates, .. } = self;
        let bytes = f64::from(packet.bytes);
        let fair = c / f64::from(flows.active());
        let (flow, recent) = flows.count(packet.flow_hash, packet.bytes);
        let rate = recent / (rates.epoch_s + cx.now.saturating_since(rates.epoch_at).as_secs_f64());
        let share = if c > 0.0 { (bytes / (c * rates.epoch_s)).min(1.0) } else { 1.0 };
        rates.mean += share * (rate - rates.mean);
        rates.bytes = if rates.bytes > 0.0 { rates.bytes + share * (bytes - rates.bytes) } else { bytes };
        if law.root <= 0.0 || f64::from(cx.queue.packets) <= params.exempt_pkts {
            return Verdict::Pass;
        }
        let scalable = params.ecn && packet.ecn == Ecn::Ect1;
        let round = law.steps.wrapping_sub(flow.signalled) < STEPS as u32 && flow.signalled > 0;
        if round && law.root < HOLD_BELOW && !scalable {
            return Verdict::Pass;
        }
        let size = bytes / rates.bytes;
        let size = if rate > fair { size.max(1.0) } else { size };
        let weight = if rates.mean > 0.0 { params.weight(rate / rates.mean) } else { 1.0 };
        flow.sum += law.probability(scalable) * size * weight;
        if flow.sum < 1.0 {
            return Verdict::Pass;
        }
        flow.sum = (flow.sum - 1.0).min(1.0);
        flow.signalled = law.steps;
        if law.root > OVERLOAD { Verdict::Drop(DropReason::Early) } else { Verdict::signal(packet, params.ecn) }
    }

    fn next_timer(&self) -> Option<Instant> {
        Some(self.due)
    }

    fn on_timer<R: Draw>(&mut self, cx: &mut Cx<'_, R>) {
        if cx.now < self.due {
            return;
        }
        let queue = Backlog { packets: cx.queue.packets, bytes: cx.queue.bytes };
        let seen = self.observer.observe(cx.now, queue, cx.queue.totals, self.probability());
        self.step(&seen);
        self.due = cx.now.saturating_add(step(self.law.rtt_s));
    }

    fn probability(&self) -> Probability {
        Probability::clamp(self.law.probability(false))
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("root_probability", self.law.root);
        visit("root_average", self.law.average);
        visit("delay", self.law.delay_s);
        visit("target_delay", self.law.target_s);
        visit("idle_share", self.law.idle);
        visit("flows", self.law.flows);
        visit("rtt", self.law.rtt_s);
        visit("capacity", 8.0 * self.capacity.bytes_per_s());
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        let StPi2Params { sigma, b, gamma, rtt_s, idle, exempt_pkts, ecn } = self.params;
        visit("sigma", Value::Number(sigma));
        visit("b", Value::Number(b));
        visit("gamma", Value::Number(gamma));
        visit("rtt", Value::Number(rtt_s));
        visit("idle", Value::Number(idle));
        visit("exempt", Value::Number(exempt_pkts));
        visit("ecn", Value::Flag(ecn));
    }

    fn take_over(&mut self, old: Option<&Self>, now: Instant, totals: &Totals) {
        match old {
            Some(old) => *self = StPi2 { params: self.params, ..old.clone() },
            None => {
                self.observer = Observer::new(now, totals);
                self.rates.epoch_at = now;
            }
        }
        self.due = self.observer.last().saturating_add(step(self.law.rtt_s));
    }

    fn theory(&self) -> &dyn crate::Theory {
        self
    }
}
