//! REM: random exponential marking (Athuraliya, Low, Li, Yin 2001), in ns-2's form.
//!
//! A price grows while the arrival rate exceeds the capacity or the queue exceeds its target, and falls otherwise. The
//! signal probability is exponential in the price, so that the end-to-end probability of a path depends on the sum of
//! its links' prices. In equilibrium the queue is at its target and the arrival rate equals the capacity.
//!
//! ```text
//! every T:  price = max(0, price + gamma (x + alpha (q - target) - c T))      x: arrivals during T, averaged
//!           p = 1 - phi^(-price)
//! ```
//!
//! Deviations:
//! - Packets are signalled at arrival, ECN-capable ones by a mark. ns-2 with `markpkts_` marks ECN-capable packets at
//!   the head and signals no others: `signal_at = dequeue`.
//! - The target is the network's; ns-2 has 20 packets. Profile `rem-ns2` has ns-2's values.
//! - `ns2_limit` off: ns-2 holds one packet less than its limit.
//! - A signal requires a uniform number below the probability; in ns-2 an equal number suffices.
//! - ns-2's `qib_` (a queue in bytes, a probability that grows with packet size) is omitted.

use aqumen_units::{Instant, Probability, Span};

use alloc::vec;

use crate::{
    Algorithm, AntiWindup, Aqm, Bound, Cx, DefaultValue, Draw, DropReason, Hooks, Kind, MAX_LOOPS, Network,
    Observation, Packet, Param, ParamError, QueueOperatingPoint, SampledAqm, SampledLaw, Settings, Target, Theory,
    Totals, Transfer, Unit, Value, Verdict,
};

const DEFAULT_GAMMA: f64 = 0.001;
const DEFAULT_PHI: f64 = 1.001;
const DEFAULT_ALPHA: f64 = 0.1;
const DEFAULT_INW: f64 = 1.0;
const DEFAULT_INTERVAL_S: f64 = 0.002;

/// Registry entry.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "rem",
    title: "REM",
    summary: "random exponential marking: a price integrates rate and queue mismatch; the probability is exponential in it",
    reference: "Athuraliya, Low, Li, Yin: REM: active queue management, 2001; ns-2.35",
    params: &[
        Param::positive(
            "gamma",
            Unit::One,
            DefaultValue::number(DEFAULT_GAMMA),
            "step of the price per packet of mismatch",
        ),
        Param {
            name: "phi",
            kind: Kind::Number { unit: Unit::One, min: Bound::Exclusive(1.0), max: Bound::Open },
            default: DefaultValue::number(DEFAULT_PHI),
            doc: "base of the exponential: p = 1 - phi^(-price)",
        },
        Param {
            name: "alpha",
            kind: Kind::Number { unit: Unit::One, min: Bound::Inclusive(0.0), max: Bound::Open },
            default: DefaultValue::number(DEFAULT_ALPHA),
            doc: "weight of the queue's mismatch relative to the rate's",
        },
        Param {
            name: "inw",
            kind: Kind::Number { unit: Unit::One, min: Bound::Exclusive(0.0), max: Bound::Inclusive(1.0) },
            default: DefaultValue::number(DEFAULT_INW),
            doc: "weight of one interval in the average of the arrivals, ns-2's inw_",
        },
        Param::positive("interval", Unit::Seconds, DefaultValue::number(DEFAULT_INTERVAL_S), "time between updates, T"),
        Param::TARGET,
        Target::DELAY,
        Param {
            name: "signal_at",
            kind: Kind::Choice(&["arrival", "dequeue"]),
            default: DefaultValue::Value(Value::Choice("arrival")),
            doc: "signal packets at arrival, or mark ECN-capable packets only, at the head (dequeue), ns-2's markpkts_",
        },
        Param::flag("ns2_limit", false, "hold one packet less than the limit, as ns-2 does"),
        AntiWindup::PARAM,
        Param::ECN,
    ],
};

/// The parameters of [`RemLaw`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RemParams {
    /// Step of the price per packet of mismatch, above 0.
    pub gamma: f64,
    /// Base of the exponential, above 1.
    pub phi: f64,
    /// Weight of the queue's mismatch relative to the rate's.
    pub alpha: f64,
    /// Weight of one interval in the average of the arrivals, in (0, 1].
    pub inw: f64,
    /// Time between updates, T.
    pub interval: Span,
    /// Target queue length, packets.
    pub target_pkts: f64,
    /// Capacity of the link, packets per second.
    pub capacity_pps: f64,
}

/// The law: a price, and the probability that follows from it.
#[derive(Clone, Copy, Debug)]
pub struct RemLaw {
    params: RemParams,
    /// Packets that the link sends in an interval, c T.
    service: f64,
    ln_phi: f64,
    arrivals: f64,
    price: f64,
    p: Probability,
}

/// Random exponential marking.
#[derive(Clone, Debug)]
pub struct Rem {
    sampled: SampledAqm<RemLaw>,
    at_dequeue: bool,
    ns2_limit: bool,
    ecn: bool,
}

impl RemLaw {
    /// The law at price 0.
    pub fn new(params: RemParams) -> Result<Self, ParamError> {
        if !(params.phi > 1.0 && params.phi.is_finite()) {
            return Err(ParamError::relation("phi", params.phi, "must be above 1"));
        }
        if !(params.inw > 0.0 && params.inw <= 1.0) {
            return Err(ParamError::relation("inw", params.inw, "must be above 0, at most 1"));
        }
        Param::check_positive("gamma", params.gamma, Unit::One)?;
        Param::check_positive("capacity", params.capacity_pps, Unit::One)?;
        Ok(RemLaw {
            params,
            service: params.interval.as_secs_f64() * params.capacity_pps,
            ln_phi: libm::log(params.phi),
            arrivals: 0.0,
            price: 0.0,
            p: Probability::ZERO,
        })
    }

    /// Current price.
    pub const fn price(&self) -> f64 {
        self.price
    }

    /// Parameters.
    pub const fn params(&self) -> &RemParams {
        &self.params
    }
}

impl SampledLaw for RemLaw {
    fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
        [Some(self.params.interval), None]
    }

    fn step(&mut self, _which: usize, observation: &Observation) -> Probability {
        let RemParams { gamma, alpha, inw, target_pkts, .. } = self.params;
        self.arrivals = (1.0 - inw) * self.arrivals + inw * observation.arrivals_pkts;
        let mismatch = self.arrivals + alpha * (observation.queue_pkts - target_pkts) - self.service;
        // The bound is far beyond probability 1, and keeps the price finite.
        self.price = (self.price + gamma * mismatch).clamp(0.0, 1e300);
        self.p = Probability::clamp(-libm::expm1(-self.price * self.ln_phi));
        self.p
    }

    fn integral(&self) -> Option<f64> {
        Some(self.p.get())
    }

    fn set_integral(&mut self, p: f64) -> Probability {
        self.price = (-libm::log1p(-p) / self.ln_phi).clamp(0.0, 1e300);
        self.p = Probability::clamp(p);
        self.p
    }

    fn take_over(&mut self, old: &Self) {
        (self.arrivals, self.price, self.p) = (old.arrivals, old.price, old.p);
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("price", self.price);
        visit("average_arrivals", self.arrivals);
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        let RemParams { gamma, phi, alpha, inw, interval, target_pkts, .. } = self.params;
        visit("gamma", Value::Number(gamma));
        visit("phi", Value::Number(phi));
        visit("alpha", Value::Number(alpha));
        visit("inw", Value::Number(inw));
        visit("interval", Value::seconds(interval));
        visit("target", Value::Number(target_pkts));
    }
}

impl Rem {
    /// Applies `law` to arriving packets, or with `at_dequeue` to ECN-capable packets at the head. With `ecn`,
    /// ECN-capable packets are marked instead of dropped. With `ns2_limit` the queue holds one packet less than its
    /// limit.
    pub fn new(law: RemLaw, at_dequeue: bool, ns2_limit: bool, ecn: bool) -> Self {
        Rem { sampled: SampledAqm::new(law, ecn), at_dequeue, ns2_limit, ecn }
    }

    /// The law.
    pub fn law(&self) -> &RemLaw {
        self.sampled.law()
    }

    pub(crate) fn from_settings(settings: &Settings<'_>, network: &Network) -> Result<Self, ParamError> {
        let number = |name: &str, otherwise: f64| settings.number(name).unwrap_or(otherwise);
        let interval = Span::from_secs_f64(number("interval", DEFAULT_INTERVAL_S));
        if interval == Span::ZERO {
            return Err(ParamError::relation("interval", 0.0, "must be at least a nanosecond"));
        }
        let law = RemLaw::new(RemParams {
            gamma: number("gamma", DEFAULT_GAMMA),
            phi: number("phi", DEFAULT_PHI),
            alpha: number("alpha", DEFAULT_ALPHA),
            inw: number("inw", DEFAULT_INW),
            interval,
            target_pkts: Target::from_settings(settings, network)?.packets(network.link_pps()),
            capacity_pps: network.link_pps(),
        })?;
        let at_dequeue = settings.choice("signal_at") == Some("dequeue");
        let ecn = settings.flag("ecn").unwrap_or(true);
        if at_dequeue && !ecn {
            return Err(ParamError::new(
                "signal_at",
                Value::Choice("dequeue"),
                crate::Requirement::Relation("needs ecn, since it never drops"),
            ));
        }
        let rem = Rem::new(law, at_dequeue, settings.flag("ns2_limit").unwrap_or(false), ecn);
        Ok(Rem { sampled: SampledAqm::with_settings(*rem.law(), settings, network), ..rem })
    }
}

impl Aqm for Rem {
    #[inline]
    fn on_arrival<R: Draw>(&mut self, packet: &Packet, cx: &mut Cx<'_, R>) -> Verdict {
        if self.ns2_limit && cx.queue.reaches_limit(packet) {
            Verdict::Drop(DropReason::Overflow)
        } else if self.at_dequeue {
            Verdict::Pass
        } else {
            self.sampled.on_arrival(packet, cx)
        }
    }

    #[inline]
    fn on_dequeue<R: Draw>(&mut self, packet: &Packet, _sojourn: Span, cx: &mut Cx<'_, R>) -> Verdict {
        if self.at_dequeue && packet.ecn.is_ect() && cx.rng.uniform() < self.sampled.probability().get() {
            Verdict::Mark
        } else {
            Verdict::Pass
        }
    }

    fn next_timer(&self) -> Option<Instant> {
        self.sampled.next_timer()
    }

    fn on_timer<R: Draw>(&mut self, cx: &mut Cx<'_, R>) {
        self.sampled.on_timer(cx);
    }

    fn probability(&self) -> Probability {
        self.sampled.probability()
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.law().observe(visit);
    }

    fn hooks(&self) -> Hooks {
        Hooks { decides_at_head: self.at_dequeue, departures: self.at_dequeue }
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        self.law().settings(visit);
        visit("signal_at", Value::Choice(if self.at_dequeue { "dequeue" } else { "arrival" }));
        visit("ns2_limit", Value::Flag(self.ns2_limit));
        self.sampled.visit_anti_windup(visit);
        visit("ecn", Value::Flag(self.ecn));
    }

    fn law_mut(&mut self) -> Option<&mut dyn SampledLaw> {
        self.sampled.law_mut()
    }

    fn take_over(&mut self, old: Option<&Self>, now: Instant, totals: &Totals) {
        self.sampled.take_over(old.map(|old| &old.sampled), now, totals);
    }

    fn theory(&self) -> &dyn Theory {
        self
    }
}

impl Theory for Rem {
    /// p = 1 - phi^-price: D(z) = ln phi (1 - p) gamma (w (1 - z^-1) / (1 - (1-w) z^-1) + alpha) / (1 - z^-1). The
    /// growth of the queue is the excess of arrivals.
    fn linear(&self, at: &QueueOperatingPoint) -> Option<Transfer> {
        let rem = self.law().params();
        let gain = libm::log(rem.phi) * (1.0 - at.probability.min(1.0)) * rem.gamma;
        let (w, alpha) = (rem.inw, rem.alpha);
        Some(Transfer {
            num: vec![gain * (w + alpha), -gain * (w + alpha * (1.0 - w))],
            den: vec![1.0, -(2.0 - w), 1.0 - w],
            period_s: Some(rem.interval.as_secs_f64()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Fixed;
    use crate::{Limit, QueueView, Totals};
    use aqumen_units::Ecn;

    fn params() -> RemParams {
        RemParams {
            gamma: 0.01,
            phi: 2.0,
            alpha: 0.1,
            inw: 1.0,
            interval: Span::from_millis(10),
            target_pkts: 20.0,
            capacity_pps: 1000.0,
        }
    }

    fn observation(arrivals_pkts: f64, queue_pkts: f64) -> Observation {
        Observation { arrivals_pkts, queue_pkts, ..Observation::default() }
    }

    #[test]
    fn the_price_is_constant_at_the_target_with_matching_rates() {
        // c T = 1000 * 0.01 = 10 packets. 30 more: price 0.01 * 30 = 0.3; then 10 at the target: no change.
        let mut law = RemLaw::new(params()).unwrap();
        law.step(0, &observation(40.0, 20.0));
        assert!((law.price() - 0.3).abs() < 1e-12);
        law.step(0, &observation(10.0, 20.0));
        assert!((law.price() - 0.3).abs() < 1e-12);
        // 100 packets above the target: 0.01 * 0.1 * 100 = 0.1.
        law.step(0, &observation(10.0, 120.0));
        assert!((law.price() - 0.4).abs() < 1e-12);
    }

    #[test]
    fn the_probability_is_exponential_in_the_price_and_a_price_is_never_negative() {
        let mut law = RemLaw::new(params()).unwrap();
        assert_eq!(law.step(0, &observation(0.0, 0.0)), Probability::ZERO);
        assert_eq!(law.price(), 0.0);
        // Mismatch 100: price 1, p = 1 - 2^-1.
        assert!((law.step(0, &observation(110.0, 20.0)).get() - 0.5).abs() < 1e-12);
        // Price 2: 1 - 2^-2.
        assert!((law.step(0, &observation(110.0, 20.0)).get() - 0.75).abs() < 1e-12);
    }

    #[test]
    fn arrivals_are_averaged() {
        // inw = 1/4: 0.25 * 40 = 10 = c T on the first step, 0.75 * 10 + 0.25 * 40 = 17.5 on the second: price 0.075.
        let mut law = RemLaw::new(RemParams { inw: 0.25, ..params() }).unwrap();
        law.step(0, &observation(40.0, 20.0));
        assert_eq!(law.price(), 0.0);
        law.step(0, &observation(40.0, 20.0));
        assert!((law.price() - 0.075).abs() < 1e-12);
    }

    #[test]
    fn at_dequeue_only_ecn_capable_packets_are_signalled() {
        let mut law = RemLaw::new(params()).unwrap();
        law.step(0, &observation(110.0, 20.0));
        let mut rem = Rem::new(law, true, false, true);
        // The timer raises the price.
        let totals = Totals { arrivals: 110, ..Totals::default() };
        let queue = QueueView { packets: 20, bytes: 0, limit: Limit::packets(300), totals: &totals };
        let now = rem.next_timer().unwrap();
        let cx = &mut Cx { now, queue, rng: &mut Fixed(0.0) };
        rem.on_timer(cx);
        assert!(rem.probability().get() > 0.0);
        let packet = |ecn| Packet { bytes: 1000, ecn, ..Packet::default() };
        assert_eq!(rem.on_arrival(&packet(Ecn::NotEct), cx), Verdict::Pass);
        assert_eq!(rem.on_dequeue(&packet(Ecn::NotEct), Span::ZERO, cx), Verdict::Pass);
        assert_eq!(rem.on_dequeue(&packet(Ecn::Ect0), Span::ZERO, cx), Verdict::Mark);
    }

    #[test]
    fn parameters_out_of_range_are_errors() {
        assert_eq!(RemLaw::new(RemParams { phi: 1.0, ..params() }).unwrap_err().param, "phi");
        assert_eq!(RemLaw::new(RemParams { inw: 0.0, ..params() }).unwrap_err().param, "inw");
        assert_eq!(RemLaw::new(RemParams { gamma: f64::NAN, ..params() }).unwrap_err().param, "gamma");
        assert_eq!(RemLaw::new(RemParams { capacity_pps: 0.0, ..params() }).unwrap_err().param, "capacity");
    }
}
