//! PIE: a proportional-integral controller of the queueing delay, with safeguards (Pan,
//! Natarajan, Baker, White; RFC 8033).
//!
//! At fixed times the error of the delay and its change move a drop probability; the smaller the probability, the
//! smaller the steps. Arriving packets are signalled with that probability, but for short bursts, short queues and (by
//! counting) two drops close together.
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
//! - The delay is the sojourn time of the packet that left last, zero if none waits (RFC 8033 section 4.3 allows it;
//!   Linux and ns-3 do so, too). `delay = rate` is section 5.2's estimate from the departure rate.
//! - `on_off` (section 5.3) is off, as in Linux and ns-3: the threshold it needs, a third of the buffer,
//!   lets a deep buffer fill first.
//! - `derandomize` (section 5.4) is on; ns-3 has it off. `cap` (section 5.5) is on.
//! - `delay_boost` (Linux, not in the RFC): above 250 ms the probability rises by 2 % an update, whatever dp says.
//! - ECN-capable packets are marked up to p = `mark_p` = 0.1 and dropped above (section
//!   5.1); ns-3 and Linux do the same.
//! - `bytemode` (Linux, ns-3; off): the probability of a packet smaller than `mean_packet` shrinks with its size.
//! - `safeguards = linux`: the delay that spares packets is that of the packet that left last, not of the last update;
//!   the burst allowance falls by the time between departures, and while it lasts nothing is summed up; two
//!   `mean_packet` or *more* are signalled; p decays by 1/64, and only where no packet waits; all is as at the start
//!   once p and the delay are gone; and a mark that comes because the sum reached 8.5 does not empty the sum, so that
//!   every packet is marked from then on until one is dropped or p is gone.
//! - `start` (Linux: 500 ms): the first update. `limit` (Linux) applies below the link's buffer.
//!
//! Linux, of which `pie-linux` has the rest: its timer counts whole jiffies and fires in the one after, so that an
//! update comes each 20 ms where a jiffy has 4 (Debian), each 16 ms where it has 1, with the gains of 15 ms
//! (`interval = 20ms`); the departure rate that `delay = rate` measures gets a weight of 1/8; p may pass 1 where all
//! that arrives is dropped and more comes than leaves all the same, and is the later below it again.

use aqumen_units::{Instant, Probability, Span};

use crate::{
    Algorithm, Aqm, AtRest, Bound, Cx, DefaultValue, Draw, DropReason, Hooks, Kind, MAX_LOOPS, Network, Observation,
    Packet, Param, ParamError, SampledLaw, Settings, Share, TcpPlant, Theory, Told, Totals, Unit, Value, Verdict,
    timer::Timer,
    today::codel::{self, LIMIT},
};

// RFC 8033 sections 4.1, 4.2, 4.4, 5.1.
const DEFAULT_TARGET_S: f64 = 0.015;
const DEFAULT_INTERVAL_S: f64 = 0.015;
const DEFAULT_ALPHA_HZ: f64 = 0.125;
const DEFAULT_BETA_HZ: f64 = 1.25;
const DEFAULT_BURST_S: f64 = 0.150;
const DEFAULT_MARK_P: f64 = 0.1;
/// Section 4.2: divisors of the step for a probability below each bound.
const TUNING: [(f64, f64); 6] = [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (0.1, 2.0)];
/// Section 4.2: decay per update once congestion is over.
const DECAY: f64 = 0.98;
/// Linux's: a 64th of it goes.
const LINUX_DECAY: f64 = 1.0 - 1.0 / 64.0;
/// Section 4.1: below this probability a delay below half the target spares packets.
const SPARING_P: f64 = 0.2;
/// Section 5.5: from this probability on, the largest step.
const CAP_FROM_P: f64 = 0.1;
const CAP: f64 = 0.02;
/// Section 5.4: sums of the probability since the last signal below which none comes, and from which one must.
const DERANDOMIZE: (f64, f64) = (0.85, 8.5);
/// Section 5.2: bytes over which the departure rate is measured, and the weight of one measurement, 2^14 / 2^16.
const RATE_BYTES: u64 = 1 << 14;
const RATE_WEIGHT: f64 = 0.25;
/// Linux: delay above which the probability rises by `CAP` an update.
const BOOST_DELAY_S: f64 = 0.250;

/// Its row.
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
            doc: "time for which a burst at an empty queue is spared, MAX_BURST",
        },
        Param::flag("auto_tune", true, "scale the steps down while the probability is small"),
        Param::flag("cap", true, "from a probability of 0.1 on, rise by at most 0.02 an update"),
        Param::flag("delay_boost", false, "above a delay of 250 ms rise by 0.02 an update, as Linux does"),
        Param::flag("derandomize", true, "space signals out by summing the probability since the last one"),
        Param::flag(
            "on_off",
            false,
            "work only from a third of the buffer on, until the queue has been empty with p = 0",
        ),
        Param {
            name: "delay",
            kind: Kind::Choice(&["sojourn", "rate"]),
            default: DefaultValue::Value(Value::Choice("sojourn")),
            doc: "take the delay from the last packet's sojourn time, or from the backlog and the measured departure rate",
        },
        Param::positive(
            "mean_packet",
            Unit::Bytes,
            DefaultValue::Designed("the network's packet size"),
            "with two of these or less waiting nothing is signalled; the size that `bytemode` compares with",
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
            "when the first update comes; Linux: 500 ms",
        ),
        Param {
            name: "safeguards",
            kind: Kind::Choice(&["rfc8033", "linux"]),
            default: DefaultValue::Value(Value::Choice("rfc8033")),
            doc: "burst allowance, sparing of short queues and delays, spacing and decay: as in the RFC, or as in Linux",
        },
        Param::flag("bytemode", false, "the probability of a packet below mean_packet shrinks with its size"),
        Param::ECN,
        LIMIT,
    ],
};

/// PIE's table without `limit`, which a discipline of many queues has itself.
pub(crate) const PARAMS_OF_A_QUEUE: [Param; ALGORITHM.params.len() - 1] = {
    let mut all = [Param::ECN; ALGORITHM.params.len() - 1];
    let mut i = 0;
    while i < all.len() {
        all[i] = ALGORITHM.params[i];
        i += 1;
    }
    all
};

/// The core that PIE and PI2 share: alpha (delay - target) + beta (delay - previous delay).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DelayPi {
    /// Weight of the error, Hz.
    pub alpha_hz: f64,
    /// Weight of the change, Hz.
    pub beta_hz: f64,
    /// Target delay, seconds.
    pub target_s: f64,
    /// Delay at the previous update, seconds.
    pub previous_s: f64,
}

/// The parameters of [`PieLaw`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PieLawParams {
    /// Target delay, seconds.
    pub target_s: f64,
    /// Time between updates.
    pub interval: Span,
    /// Weight of the error, Hz.
    pub alpha_hz: f64,
    /// Weight of the change, Hz.
    pub beta_hz: f64,
    /// Scale the steps down while the probability is small.
    pub auto_tune: bool,
    /// From a probability of 0.1 on, rise by at most 0.02 an update.
    pub cap: bool,
    /// Above a delay of 250 ms rise by 0.02 an update.
    pub delay_boost: bool,
    /// What is left of the probability after an update without congestion.
    pub decay: f64,
}

/// The law: from delay to probability, without the safeguards that look at packets.
#[derive(Clone, Copy, Debug)]
pub struct PieLaw {
    params: PieLawParams,
    core: DelayPi,
    p: Probability,
}

/// Where PIE takes the delay from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelaySource {
    /// The sojourn time of the packet that left last.
    Sojourn,
    /// The backlog over the measured departure rate.
    Rate,
}

/// Whose safeguards around the law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safeguards {
    /// The RFC's.
    Rfc8033,
    /// Linux's.
    Linux,
}

/// The parameters of [`Pie`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PieParams {
    /// Those of its law.
    pub law: PieLawParams,
    /// Time for which a burst is spared.
    pub burst: Span,
    /// Space signals out by summing the probability since the last one.
    pub derandomize: bool,
    /// Work only from a third of the buffer on.
    pub on_off: bool,
    /// Where the delay comes from.
    pub delay: DelaySource,
    /// With two of these or less waiting nothing is signalled, bytes.
    pub mean_packet: f64,
    /// Highest probability at which packets are marked.
    pub mark_p: Probability,
    /// When the first update comes; never before the first interval is over.
    pub start: Option<Span>,
    /// Whose safeguards.
    pub safeguards: Safeguards,
    /// The probability of a packet below `mean_packet` shrinks with its size.
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
    law: PieLaw,
    timer: Timer,
    /// Time for which packets are still spared.
    burst: Span,
    /// Sum of the probability since the last signal.
    sum: f64,
    active: bool,
    /// The delay at the last update; with Linux's safeguards that of the packet that left last.
    delay_s: f64,
    /// When a packet left last; none before the first, and once all is as at the start.
    left_at: Option<Instant>,
    rate: RateMeter,
}

/// RFC 8033 section 5.2: the time that a fixed number of bytes takes to leave, averaged over
/// measurements with a long queue.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RateMeter {
    /// When the measurement under way began, and the bytes that have left since.
    measuring: Option<(Instant, u64)>,
    /// Average time for `RATE_BYTES`, seconds; none before the first measurement.
    time_s: Option<f64>,
}

impl DelayPi {
    /// The increment of the probability at `delay_s`, which becomes the previous delay.
    pub fn increment(&mut self, delay_s: f64) -> f64 {
        let dp = self.alpha_hz * (delay_s - self.target_s) + self.beta_hz * (delay_s - self.previous_s);
        self.previous_s = delay_s;
        dp
    }
}

impl Default for PieLawParams {
    /// The RFC's values.
    fn default() -> Self {
        PieLawParams {
            target_s: DEFAULT_TARGET_S,
            interval: Span::from_secs_f64(DEFAULT_INTERVAL_S),
            alpha_hz: DEFAULT_ALPHA_HZ,
            beta_hz: DEFAULT_BETA_HZ,
            auto_tune: true,
            cap: true,
            delay_boost: false,
            decay: DECAY,
        }
    }
}

impl PieLaw {
    /// The law from p = 0 and no delay.
    pub const fn new(params: PieLawParams) -> Self {
        let PieLawParams { alpha_hz, beta_hz, target_s, .. } = params;
        let core = DelayPi { alpha_hz, beta_hz, target_s, previous_s: 0.0 };
        PieLaw { params, core, p: Probability::ZERO }
    }

    /// The parameters in force.
    pub const fn params(&self) -> &PieLawParams {
        &self.params
    }

    /// The probability as it stands.
    pub const fn probability(&self) -> Probability {
        self.p
    }

    /// The delay at the last update, seconds.
    pub const fn delay_s(&self) -> f64 {
        self.core.previous_s
    }

    /// What the step is divided by while the probability is `p` (RFC 8033 section 4.2).
    pub fn divisor(p: f64) -> f64 {
        TUNING.iter().find(|(below, _)| p < *below).map_or(1.0, |(_, divisor)| *divisor)
    }

    /// One update.
    pub fn update(&mut self, delay_s: f64) -> Probability {
        self.update_where(delay_s, true)
    }

    /// The same, of which the last part is left out unless congestion can be over.
    fn update_where(&mut self, delay_s: f64, can_be_over: bool) -> Probability {
        let (p, previous_s) = (self.p.get(), self.core.previous_s);
        let mut dp = self.core.increment(delay_s);
        // Section 4.2: a controller for small probabilities must be gentler.
        if self.params.auto_tune {
            dp /= Self::divisor(p);
        }
        // Section 5.5.
        if self.params.cap && p >= CAP_FROM_P {
            dp = dp.min(CAP);
        }
        if self.params.delay_boost && delay_s > BOOST_DELAY_S {
            dp += CAP;
        }
        let mut p = (p + dp).clamp(0.0, 1.0);
        // Section 4.2: congestion is over.
        if delay_s == 0.0 && previous_s == 0.0 && can_be_over {
            p *= self.params.decay;
        }
        self.p = Probability::clamp(p);
        self.p
    }
}

impl SampledLaw for PieLaw {
    fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
        [Some(self.params.interval), None]
    }

    fn step(&mut self, _which: usize, seen: &Observation) -> Probability {
        self.update(if seen.queue_pkts > 0.0 { seen.sojourn_s } else { 0.0 })
    }

    fn take_over(&mut self, old: &Self) {
        (self.core.previous_s, self.p) = (old.core.previous_s, old.p);
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("delay", self.core.previous_s);
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        let PieLawParams { target_s, interval, alpha_hz, beta_hz, .. } = self.params;
        visit("target", Value::Number(target_s));
        visit("interval", Value::seconds(interval));
        visit("alpha", Value::Number(alpha_hz));
        visit("beta", Value::Number(beta_hz));
    }
}

impl RateMeter {
    /// A packet of `bytes` left for transmission and left `backlog_bytes` behind.
    pub fn on_dequeue(&mut self, bytes: u32, backlog_bytes: u64, now: Instant) {
        // A measurement begins only when the queue is long enough to end it.
        if self.measuring.is_none() && backlog_bytes >= RATE_BYTES {
            self.measuring = Some((now, 0));
            return;
        }
        let Some((began, left)) = &mut self.measuring else { return };
        *left += bytes as u64;
        if *left >= RATE_BYTES {
            let time_s = now.saturating_since(*began).as_secs_f64() * RATE_BYTES as f64 / *left as f64;
            self.time_s = Some(match self.time_s {
                None => time_s,
                Some(average) => RATE_WEIGHT * time_s + (1.0 - RATE_WEIGHT) * average,
            });
            self.measuring = (backlog_bytes >= RATE_BYTES).then_some((now, 0));
        }
    }

    /// How long `backlog_bytes` will take to leave, seconds; zero before the first measurement.
    pub fn delay_s(&self, backlog_bytes: u64) -> f64 {
        self.time_s.map_or(0.0, |time_s| backlog_bytes as f64 * time_s / RATE_BYTES as f64)
    }
}

impl Pie {
    /// PIE over an empty queue.
    pub fn new(params: PieParams) -> Result<Self, ParamError> {
        Param::check_positive("target", params.law.target_s, Unit::Seconds)?;
        Param::check_positive("interval", params.law.interval.as_secs_f64(), Unit::Seconds)?;
        Param::check_positive("mean_packet", params.mean_packet, Unit::Bytes)?;
        Ok(Pie {
            params,
            law: PieLaw::new(params.law),
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
        &self.law
    }

    pub(crate) fn from_settings(settings: &Settings<'_>, network: &Network) -> Result<Self, ParamError> {
        let number = |name: &str, otherwise: f64| settings.number(name).unwrap_or(otherwise);
        let flag = |name: &str, otherwise: bool| settings.flag(name).unwrap_or(otherwise);
        let linux = settings.choice("safeguards") == Some("linux");
        Pie::new(PieParams {
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
        })
    }

    /// That of one queue among many: `limit` is of them all.
    pub(crate) fn in_a_bank(settings: &Settings<'_>, network: &Network) -> Result<Self, ParamError> {
        let one = Pie::from_settings(settings, network)?;
        Pie::new(PieParams { limit: None, ..one.params })
    }

    fn is_linux(&self) -> bool {
        self.params.safeguards == Safeguards::Linux
    }

    /// RFC 8033 section 5.3: on from a third of the buffer on, with everything as at the start.
    fn wake<R: Draw>(&mut self, cx: &Cx<'_, R>) {
        let limit = cx.queue.limit;
        let third = |waiting: u64, room: u64| waiting.saturating_mul(3) >= room;
        if third(cx.queue.packets.into(), limit.packets.into()) || third(cx.queue.bytes, limit.bytes.0) {
            self.active = true;
            self.law = PieLaw::new(self.params.law);
            self.burst = self.params.burst;
            self.sum = 0.0;
            self.rate = RateMeter::default();
        }
    }

    /// RFC 8033 sections 4.1, 5.4: whether the packet is chosen.
    fn chooses<R: Draw>(&mut self, packet: &Packet, cx: &mut Cx<'_, R>) -> bool {
        let (p, mean_packet) = (self.law.p.get(), self.params.mean_packet);
        // A queue that is short, or was so at the last update, is left alone.
        let delay_s = if self.is_linux() { self.delay_s } else { self.law.delay_s() };
        let (left, two) = (cx.queue.bytes as f64, 2.0 * mean_packet);
        let short = if self.is_linux() { left < two } else { left <= two };
        if short || delay_s < self.params.law.target_s / 2.0 && p < SPARING_P {
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

    /// Linux: the burst allowance falls by the time between departures, and the delay is that
    /// of the packet that left last.
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
            self.wake(cx);
            return Verdict::Pass;
        }
        if self.params.limit.is_some_and(|limit| cx.queue.packets >= limit) {
            self.sum = 0.0;
            return Verdict::Drop(DropReason::Overflow);
        }
        // Section 4.4: a burst at an empty queue is spared.
        if self.is_linux() && self.burst > Span::ZERO {
            return Verdict::Pass;
        }
        if cx.queue.is_full(packet) || !self.chooses(packet, cx) || self.burst > Span::ZERO {
            return Verdict::Pass;
        }
        let verdict = Verdict::signal(packet, self.params.ecn && self.law.p <= self.params.mark_p);
        // Linux leaves the sum full after a mark that it made certain.
        if verdict != Verdict::Mark || !self.is_linux() || self.sum < DERANDOMIZE.1 {
            self.sum = 0.0;
        }
        verdict
    }

    fn on_overflow<R: Draw>(&mut self, _packet: &Packet, _cx: &mut Cx<'_, R>) {
        // Section 5.4: a signal of another kind.
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
        let previous_s = self.law.delay_s();
        self.delay_s = match self.params.delay {
            _ if cx.queue.packets == 0 => 0.0,
            DelaySource::Sojourn if self.is_linux() => self.delay_s,
            DelaySource::Sojourn => cx.queue.totals.last_sojourn.as_secs_f64(),
            DelaySource::Rate => self.rate.delay_s(cx.queue.bytes),
        };
        // Linux: packets wait, if not for long.
        let p = self.law.update_where(self.delay_s, !self.is_linux() || cx.queue.packets == 0);
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

    fn rests(&self) -> bool {
        let at_zero = self.law.p == Probability::ZERO && self.law.delay_s() == 0.0 && self.delay_s == 0.0;
        let cleared =
            !self.is_linux() || self.sum == 0.0 && self.left_at.is_none() && self.rate == RateMeter::default();
        // An update that finds no delay twice restores the allowance, and switches off what can be.
        !self.active || at_zero && cleared && self.burst == self.params.burst && !self.params.on_off
    }

    fn wake(&mut self, due: Instant) {
        self.timer.catch_up(due);
    }

    fn probability(&self) -> Probability {
        if self.active && self.burst == Span::ZERO { self.law.p } else { Probability::ZERO }
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("delay", self.delay_s);
        visit("law_probability", self.law.p.get());
        visit("burst_allowance", self.burst.as_secs_f64());
        visit("summed_probability", self.sum);
        visit("active", self.active as u8 as f64);
    }

    fn hooks(&self) -> Hooks {
        Hooks { departures: self.params.delay == DelaySource::Rate || self.is_linux(), ..Hooks::default() }
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        let params = &self.params;
        self.law.settings(visit);
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
        if let Some(limit) = params.limit {
            visit("limit", Value::Number(limit as f64));
        }
    }

    fn law_mut(&mut self) -> Option<&mut dyn SampledLaw> {
        Some(&mut self.law)
    }

    fn take_over(&mut self, old: Option<&Self>, now: Instant, totals: &Totals) {
        let _ = totals;
        self.timer.start_after(now, self.params.start.unwrap_or(Span::ZERO));
        let Some(old) = old else { return };
        self.timer.follow(&old.timer);
        self.law.take_over(&old.law);
        (self.burst, self.sum, self.active, self.delay_s, self.left_at, self.rate) =
            (old.burst, old.sum, old.active, old.delay_s, old.left_at, old.rate);
    }

    fn theory(&self) -> &dyn Theory {
        self
    }
}

impl Theory for Pie {
    fn share(&self) -> Share {
        if self.params.derandomize { Share::Derandomized } else { Share::Plain }
    }

    /// What the auto-tuning makes of alpha and beta there.
    fn derive(&self, at: &AtRest, _plant: &TcpPlant, told: &mut dyn Told) {
        let params = self.law().params();
        let divisor = if params.auto_tune { PieLaw::divisor(self.share().law(at.probability)) } else { 1.0 };
        told.number("alpha_tuned", params.alpha_hz / divisor);
        told.number("beta_tuned", params.beta_hz / divisor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Fixed;
    use crate::{Limit, QueueView, Totals};
    use aqumen_units::{Bytes, Ecn};

    const DROP: Verdict = Verdict::Drop(DropReason::Early);

    fn near(got: f64, expected: f64) -> bool {
        (got - expected).abs() <= 1e-12 * expected.abs().max(1e-9)
    }

    /// A law that stands at probability `p` with a previous delay of `previous_s`.
    fn law_at(p: f64, previous_s: f64) -> PieLaw {
        let mut law = PieLaw::new(PieLawParams::default());
        law.p = Probability::clamp(p);
        law.core.previous_s = previous_s;
        law
    }

    #[test]
    fn the_step_weighs_error_and_change() {
        // 0.125 (0.055 - 0.015) + 1.25 (0.055 - 0.035) = 0.005 + 0.025 = 0.03 Hz s, undivided from
        // p = 0.1 on; the cap is 0.02.
        assert!(near(law_at(0.15, 0.035).update(0.055).get(), 0.17));
        // Falling: 0.005 + 1.25 (0.055 - 0.075) = -0.02. The cap is for steps up only.
        assert!(near(law_at(0.15, 0.075).update(0.055).get(), 0.13));
        let mut uncapped = law_at(0.15, 0.035);
        uncapped.params.cap = false;
        assert!(near(uncapped.update(0.055).get(), 0.18));
    }

    #[test]
    fn small_probabilities_move_in_small_steps() {
        // The same 0.03 at each rung of the table.
        for (p, divisor) in [
            (0.0, 2048.0),
            (9e-7, 2048.0),
            (1e-6, 512.0),
            (9e-6, 512.0),
            (1e-5, 128.0),
            (1e-4, 32.0),
            (1e-3, 8.0),
            (1e-2, 2.0),
            (0.099, 2.0),
        ] {
            assert!(near(law_at(p, 0.035).update(0.055).get(), p + 0.03 / divisor), "{p}");
        }
        let mut untuned = law_at(0.0, 0.035);
        untuned.params.auto_tune = false;
        assert!(near(untuned.update(0.055).get(), 0.03));
    }

    #[test]
    fn the_probability_decays_once_the_queue_is_gone() {
        // Delay 0 now and before: dp = 0.125 (0 - 0.015) = -0.001875; 0.5 - 0.001875 = 0.498125; times 0.98.
        assert!(near(law_at(0.5, 0.0).update(0.0).get(), 0.498_125 * 0.98));
        // Not if it had a delay before: 0.5 - 0.001875 - 1.25 * 0.001 = 0.496875.
        assert!(near(law_at(0.5, 0.001).update(0.0).get(), 0.496_875));
    }

    #[test]
    fn the_probability_stays_within_its_range() {
        assert_eq!(law_at(1.0, 0.0).update(10.0), Probability::ONE);
        assert_eq!(law_at(0.01, 1.0).update(0.001), Probability::ZERO);
    }

    #[test]
    fn linux_rises_faster_above_a_quarter_of_a_second() {
        // Delay 0.3, unchanged: 0.125 * 0.285 = 0.035625, capped at 0.02; Linux adds 0.02.
        assert!(near(law_at(0.2, 0.3).update(0.3).get(), 0.22));
        let mut boosted = law_at(0.2, 0.3);
        boosted.params.delay_boost = true;
        assert!(near(boosted.update(0.3).get(), 0.24));
        // Not at 0.25 itself: 0.125 * 0.235 = 0.029375, capped.
        let mut at = law_at(0.2, 0.25);
        at.params.delay_boost = true;
        assert!(near(at.update(0.25).get(), 0.22));
    }

    fn params() -> PieParams {
        PieParams {
            law: PieLawParams::default(),
            burst: Span::ZERO,
            derandomize: false,
            on_off: false,
            delay: DelaySource::Sojourn,
            mean_packet: 1000.0,
            mark_p: Probability::clamp(0.1),
            start: None,
            safeguards: Safeguards::Rfc8033,
            bytemode: false,
            ecn: true,
            limit: None,
        }
    }

    /// PIE at probability `p` after an update with a delay of 30 ms.
    fn pie_at(params: PieParams, p: f64) -> Pie {
        let mut pie = Pie::new(params).unwrap();
        pie.law = law_at(p, 0.030);
        pie
    }

    fn arrive(pie: &mut Pie, ecn: Ecn, packets: u32, u: f64) -> Verdict {
        let queue =
            QueueView { packets, bytes: packets as u64 * 1000, limit: Limit::packets(300), totals: &Totals::default() };
        let packet = Packet { bytes: 1000, ecn, segments: 1, ..Packet::default() };
        pie.on_arrival(&packet, &mut Cx { now: Instant::ZERO, queue, rng: &mut Fixed(u) })
    }

    #[test]
    fn packets_are_marked_up_to_a_tenth_and_dropped_beyond() {
        let verdicts = |p| {
            let mut pie = pie_at(params(), p);
            [
                arrive(&mut pie, Ecn::Ect0, 50, p - 1e-9),
                arrive(&mut pie, Ecn::NotEct, 50, p - 1e-9),
                arrive(&mut pie, Ecn::Ect0, 50, p),
            ]
        };
        assert_eq!(verdicts(0.1), [Verdict::Mark, DROP, Verdict::Pass]);
        assert_eq!(verdicts(0.11), [DROP, DROP, Verdict::Pass]);
    }

    #[test]
    fn short_queues_and_short_delays_are_spared() {
        // Two packets of 1000 B are spared, three are not.
        let mut pie = pie_at(params(), 0.05);
        assert_eq!(arrive(&mut pie, Ecn::Ect0, 2, 0.0), Verdict::Pass);
        assert_eq!(arrive(&mut pie, Ecn::Ect0, 3, 0.0), Verdict::Mark);
        // A delay below 7.5 ms spares packets while p < 0.2.
        pie.law = law_at(0.19, 0.007);
        assert_eq!(arrive(&mut pie, Ecn::Ect0, 50, 0.0), Verdict::Pass);
        pie.law = law_at(0.2, 0.007);
        assert_eq!(arrive(&mut pie, Ecn::Ect0, 50, 0.0), DROP);
        pie.law = law_at(0.19, 0.0075);
        assert_eq!(arrive(&mut pie, Ecn::Ect0, 50, 0.0), DROP);
    }

    #[test]
    fn signals_are_spaced_out_by_the_sum_of_the_probability() {
        // p = 0.1 and a number that always chooses: the sum reaches 0.85 with the ninth packet.
        let mut pie = pie_at(PieParams { derandomize: true, ..params() }, 0.1);
        for round in 0..3 {
            for packet in 1..=9 {
                let verdict = arrive(&mut pie, Ecn::Ect0, 50, 0.0);
                assert_eq!(verdict == Verdict::Mark, packet == 9, "packet {packet} of round {round}");
            }
        }
        // A number that never chooses: 8.5 is reached with packet 85 (or 86, by rounding).
        let mut pie = pie_at(PieParams { derandomize: true, ..params() }, 0.1);
        let first = (1..=100).find(|_| arrive(&mut pie, Ecn::Ect0, 50, 0.999) == Verdict::Mark);
        assert!(matches!(first, Some(85 | 86)), "{first:?}");
    }

    #[test]
    fn an_overflow_counts_as_a_signal_for_the_spacing() {
        let mut pie = pie_at(PieParams { derandomize: true, ..params() }, 0.1);
        for _ in 0..8 {
            arrive(&mut pie, Ecn::Ect0, 50, 0.0);
        }
        let queue = QueueView { packets: 300, bytes: 0, limit: Limit::packets(300), totals: &Totals::default() };
        pie.on_overflow(&Packet::default(), &mut Cx { now: Instant::ZERO, queue, rng: &mut Fixed(0.0) });
        assert_eq!(arrive(&mut pie, Ecn::Ect0, 50, 0.0), Verdict::Pass);
    }

    /// Steps the timer with a queue of `packets` whose last sojourn time was `ms`.
    fn update(pie: &mut Pie, packets: u32, ms: u64) {
        let totals = Totals { last_sojourn: Span::from_millis(ms), ..Totals::default() };
        let queue = QueueView { packets, bytes: packets as u64 * 1000, limit: Limit::packets(300), totals: &totals };
        let now = pie.next_timer().unwrap();
        pie.on_timer(&mut Cx { now, queue, rng: &mut Fixed(0.0) });
    }

    #[test]
    fn a_burst_is_spared_for_its_allowance_and_an_empty_queue_renews_it() {
        // 45 ms are three updates of 15 ms.
        let mut pie = Pie::new(PieParams { burst: Span::from_millis(45), ..params() }).unwrap();
        for updates in 1..=3 {
            update(&mut pie, 50, 100);
            pie.law.p = Probability::clamp(0.05);
            assert_eq!(arrive(&mut pie, Ecn::Ect0, 50, 0.0) == Verdict::Mark, updates == 3);
        }
        // p > 0: nothing renews it, even without a queue.
        update(&mut pie, 0, 0);
        assert_eq!(pie.burst, Span::ZERO);
        // p = 0, and no delay now and before.
        pie.law = law_at(0.0, 0.001);
        update(&mut pie, 0, 0);
        assert_eq!(pie.burst, Span::from_millis(45));
    }

    #[test]
    fn an_empty_queue_has_no_delay_whatever_the_last_packet_met() {
        let mut pie = pie_at(params(), 0.5);
        update(&mut pie, 0, 80);
        assert_eq!(pie.delay_s, 0.0);
    }

    #[test]
    fn switched_off_it_wakes_at_a_third_of_the_buffer_and_sleeps_when_all_is_gone() {
        let mut pie = Pie::new(PieParams { on_off: true, ..params() }).unwrap();
        assert!(!pie.active);
        arrive(&mut pie, Ecn::Ect0, 99, 0.0);
        assert!(!pie.active);
        update(&mut pie, 99, 100);
        assert_eq!(pie.law.probability(), Probability::ZERO);
        arrive(&mut pie, Ecn::Ect0, 100, 0.0);
        assert!(pie.active);
        update(&mut pie, 100, 100);
        assert!(pie.law.probability() > Probability::ZERO);
        // No queue for two updates with p = 0.
        pie.law.p = Probability::ZERO;
        update(&mut pie, 0, 0);
        assert!(pie.active);
        update(&mut pie, 0, 0);
        assert!(!pie.active);
    }

    #[test]
    fn a_byte_limit_wakes_it_too() {
        let mut pie = Pie::new(PieParams { on_off: true, ..params() }).unwrap();
        let limit = Limit { packets: u32::MAX, bytes: Bytes(30_000) };
        let queue = QueueView { packets: 10, bytes: 10_000, limit, totals: &Totals::default() };
        let packet = Packet { bytes: 1000, ..Packet::default() };
        pie.on_arrival(&packet, &mut Cx { now: Instant::ZERO, queue, rng: &mut Fixed(0.0) });
        assert!(pie.active);
    }

    #[test]
    fn the_departure_rate_is_measured_over_sixteen_kibibytes() {
        let at = |ms| Instant::ZERO + Span::from_millis(ms);
        let mut meter = RateMeter::default();
        // A short queue starts no measurement.
        meter.on_dequeue(1024, 16_383, at(0));
        assert_eq!(meter.delay_s(1_000_000), 0.0);
        // 16 packets of 1024 B in 160 ms: 102 400 B/s. The packet that starts the clock does not count.
        meter.on_dequeue(1024, 16_384, at(0));
        for i in 1..=16 {
            meter.on_dequeue(1024, 100_000, at(10 * i));
        }
        assert!(near(meter.delay_s(102_400), 1.0));
        // Twice as fast next: 0.25 * 80 + 0.75 * 160 = 140 ms for 16 384 B; 16 384 B wait 0.14 s.
        for i in 1..=16 {
            meter.on_dequeue(1024, 100_000, at(160 + 5 * i));
        }
        assert!(near(meter.delay_s(16_384), 0.14));
    }

    /// PIE with Linux's safeguards at probability `p`, whose last packet waited for `ms`.
    fn linux_at(p: f64, ms: u64) -> Pie {
        let mut pie = pie_at(PieParams { safeguards: Safeguards::Linux, ..params() }, p);
        leave(&mut pie, 0, ms, 50_000);
        pie
    }

    /// A packet leaves at `at_ms` that waited for `ms`, with so many bytes behind.
    fn leave(pie: &mut Pie, at_ms: u64, ms: u64, left: u64) {
        let queue = QueueView { packets: 50, bytes: left, limit: Limit::packets(300), totals: &Totals::default() };
        let now = Instant::ZERO + Span::from_millis(at_ms);
        let packet = Packet { bytes: 1000, ..Packet::default() };
        pie.on_dequeue(&packet, Span::from_millis(ms), &mut Cx { now, queue, rng: &mut Fixed(0.0) });
    }

    #[test]
    fn linux_spares_by_the_delay_of_the_packet_that_left_last_and_signals_two_full_packets() {
        // The delay at the last update is 30 ms in both, the last packet's 7 or 8: half of the target is 7.5.
        assert_eq!(arrive(&mut linux_at(0.05, 7), Ecn::Ect0, 50, 0.0), Verdict::Pass);
        assert_eq!(arrive(&mut linux_at(0.05, 8), Ecn::Ect0, 50, 0.0), Verdict::Mark);
        // Two packets of 1000 B.
        assert_eq!(arrive(&mut linux_at(0.05, 8), Ecn::Ect0, 2, 0.0), Verdict::Mark);
        assert_eq!(arrive(&mut linux_at(0.05, 8), Ecn::Ect0, 1, 0.0), Verdict::Pass);
        // With nothing behind it, it met no delay.
        let mut pie = linux_at(0.05, 8);
        leave(&mut pie, 10, 80, 0);
        assert_eq!(pie.delay_s, 0.0);
    }

    #[test]
    fn linuxs_burst_allowance_falls_between_departures_and_nothing_is_summed_meanwhile() {
        let burst = Span::from_millis(150);
        let derandomize = PieParams { safeguards: Safeguards::Linux, derandomize: true, burst, ..params() };
        let mut pie = Pie::new(derandomize).unwrap();
        pie.law = law_at(0.1, 0.030);
        leave(&mut pie, 0, 100, 50_000);
        arrive(&mut pie, Ecn::Ect0, 50, 0.0);
        assert_eq!((pie.burst, pie.sum), (burst, 0.0));
        leave(&mut pie, 100, 100, 50_000);
        // Updates do not lower it.
        update(&mut pie, 50, 100);
        assert_eq!(pie.burst, Span::from_millis(50));
        leave(&mut pie, 160, 100, 50_000);
        arrive(&mut pie, Ecn::Ect0, 50, 0.0);
        assert_eq!(pie.burst, Span::ZERO);
        assert!(pie.sum > 0.0);
        // p = 0 and the delay gone, now and at the update before: as at the start.
        (pie.law, pie.delay_s) = (law_at(0.0, 0.001), 0.0);
        update(&mut pie, 0, 0);
        assert_eq!((pie.burst, pie.sum, pie.left_at), (burst, 0.0, None));
    }

    #[test]
    fn linux_decays_by_a_64th_and_begins_later() {
        let mut law = law_at(0.5, 0.0);
        law.params.decay = LINUX_DECAY;
        assert!(near(law.update(0.0).get(), 0.498_125 * 63.0 / 64.0));
        let start = Some(Span::from_millis(500));
        let mut pie = Pie::new(PieParams { start, ..params() }).unwrap();
        let at = |ms| Instant::ZERO + Span::from_millis(ms);
        assert_eq!(pie.next_timer(), Some(at(500)));
        update(&mut pie, 50, 100);
        assert_eq!(pie.next_timer(), Some(at(515)));
    }

    #[test]
    fn in_linux_a_sum_that_is_full_marks_until_a_drop() {
        // A number that never chooses: 8.5 is reached with packet 85, by rounding 86; then each is marked.
        let mut pie = linux_at(0.1, 30);
        pie.params.derandomize = true;
        let marks = (1..=100).filter(|_| arrive(&mut pie, Ecn::Ect0, 50, 0.999) == Verdict::Mark).count();
        assert!(matches!(marks, 15 | 16), "{marks}");
        assert_eq!(arrive(&mut pie, Ecn::NotEct, 50, 0.999), DROP);
        assert_eq!(arrive(&mut pie, Ecn::Ect0, 50, 0.999), Verdict::Pass);
    }

    #[test]
    fn small_packets_may_be_spared_in_proportion() {
        // p = 0.1 for 1000 B, 0.05 for 500 B, and no more than 0.1 for 2000 B.
        let verdict = |bytes, u| {
            let mut pie = pie_at(PieParams { bytemode: true, ..params() }, 0.1);
            let totals = Totals::default();
            let queue = QueueView { packets: 50, bytes: 50_000, limit: Limit::packets(300), totals: &totals };
            let packet = Packet { bytes, ecn: Ecn::Ect0, ..Packet::default() };
            pie.on_arrival(&packet, &mut Cx { now: Instant::ZERO, queue, rng: &mut Fixed(u) })
        };
        assert_eq!([verdict(500, 0.049), verdict(500, 0.051)], [Verdict::Mark, Verdict::Pass]);
        assert_eq!([verdict(2000, 0.099), verdict(2000, 0.101)], [Verdict::Mark, Verdict::Pass]);
    }

    #[test]
    fn a_limit_of_its_own_refuses_what_finds_so_many_waiting() {
        let mut pie = Pie::new(PieParams { limit: Some(50), ..params() }).unwrap();
        assert_eq!(arrive(&mut pie, Ecn::Ect0, 49, 0.0), Verdict::Pass);
        assert_eq!(arrive(&mut pie, Ecn::Ect0, 50, 0.0), Verdict::Drop(DropReason::Overflow));
    }

    #[test]
    fn a_target_or_interval_of_no_time_is_refused() {
        let with = |law| Pie::new(PieParams { law, ..params() }).unwrap_err().param;
        assert_eq!(with(PieLawParams { target_s: 0.0, ..PieLawParams::default() }), "target");
        assert_eq!(with(PieLawParams { interval: Span::ZERO, ..PieLawParams::default() }), "interval");
        assert_eq!(Pie::new(PieParams { mean_packet: 0.0, ..params() }).unwrap_err().param, "mean_packet");
    }

    #[test]
    fn only_a_pie_that_no_update_would_move_is_left_asleep() {
        let fresh = |change: fn(&mut PieParams)| {
            let mut params = params();
            change(&mut params);
            Pie::new(params).unwrap()
        };
        let linux = fresh(|params| params.safeguards = Safeguards::Linux);
        // As at the start: no delay, no probability, all of the allowance.
        for pie in [fresh(|_| {}), linux] {
            assert!(Aqm::rests(&pie));
        }
        // Each alone is something that the next update changes.
        let changes: [fn(&mut Pie); 4] = [
            |pie| pie.law.p = Probability::clamp(0.1),
            |pie| pie.law.core.previous_s = 0.01,
            |pie| pie.delay_s = 0.01,
            |pie| pie.burst = pie.params.burst + Span::from_millis(1),
        ];
        for change in changes {
            for mut pie in [fresh(|_| {}), linux] {
                change(&mut pie);
                assert!(!Aqm::rests(&pie));
            }
        }
        // Linux's clears more at its updates: what was summed, when a packet left, the rate.
        let more: [fn(&mut Pie); 3] =
            [|pie| pie.sum = 0.5, |pie| pie.left_at = Some(Instant::ZERO), |pie| pie.rate.time_s = Some(0.1)];
        for change in more {
            let (mut of_rfc, mut of_linux) = (fresh(|_| {}), linux);
            change(&mut of_rfc);
            change(&mut of_linux);
            assert!(Aqm::rests(&of_rfc) && !Aqm::rests(&of_linux));
        }
        // One that can be switched off is, by an update that finds nothing; off it rests whatever it has.
        let mut switched = fresh(|params| params.on_off = true);
        switched.active = true;
        assert!(!Aqm::rests(&switched));
        (switched.active, switched.law.p) = (false, Probability::clamp(0.1));
        assert!(Aqm::rests(&switched));
    }
}
