//! PI2: a proportional-integral controller of the queueing delay whose output is squared (De Schepper, Bondarenko,
//! Tsang, Briscoe 2016).
//!
//! TCP's rate is inversely proportional to the square root of the drop probability. For a controller of that root, p',
//! the plant is linear, so it needs no gain table as PIE does and can be twice as fast. Packets of Classic congestion
//! controls are signalled with p' squared, packets of Scalable ones (ECT(1)) are marked with k p', so that both share
//! one queue fairly.
//!
//! ```text
//! every T:   p' = clamp(p' + alpha (delay - target) + beta (delay - previous), 0, 1)
//! arrival:   ECT(1): mark with min(1, k p')       others: signal with min(p'^2, max_p)
//! ```
//!
//! Deviations:
//! - The paper tests whether the larger of two random numbers is below p'; one number below p'^2 is equivalent.
//! - The delay is the sojourn time of the last packet, 0 for an empty queue.
//! - A queue of at most two packets is exempt, as in PIE.

use aqumen_units::{Ecn, Instant, Probability, Span};

use crate::{
    Algorithm, AntiWindup, Aqm, Bound, Cx, DefaultValue, DelayPi, Draw, Kind, MAX_LOOPS, Network, Observation, Packet,
    Param, ParamError, SampledAqm, SampledLaw, Settings, Totals, Unit, Value, Verdict,
};

// The paper's table of parameters.
const DEFAULT_TARGET_S: f64 = 0.020;
const DEFAULT_INTERVAL_S: f64 = 0.032;
const DEFAULT_ALPHA_HZ: f64 = 0.3125;
const DEFAULT_BETA_HZ: f64 = 3.125;
const DEFAULT_COUPLING: f64 = 2.0;
const DEFAULT_MAX_P: f64 = 0.25;
/// Longest queue that is exempt, packets.
const EXEMPT_PKTS: u32 = 2;

/// Registry entry.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "pi2",
    title: "PI2",
    summary: "proportional-integral control of the queueing delay; the output is squared for Classic traffic",
    reference: "De Schepper, Bondarenko, Tsang, Briscoe: PI2: a linearized AQM for both Classic and Scalable TCP, CoNEXT 2016",
    params: &[
        Param::positive("target", Unit::Seconds, DefaultValue::number(DEFAULT_TARGET_S), "queueing delay"),
        Param::positive("interval", Unit::Seconds, DefaultValue::number(DEFAULT_INTERVAL_S), "time between updates, T"),
        Param::positive(
            "alpha",
            Unit::Hertz,
            DefaultValue::number(DEFAULT_ALPHA_HZ),
            "weight of the delay's error, on p'",
        ),
        Param {
            name: "beta",
            kind: Kind::Number { unit: Unit::Hertz, min: Bound::Inclusive(0.0), max: Bound::Open },
            default: DefaultValue::number(DEFAULT_BETA_HZ),
            doc: "weight of the delay's change, on p'",
        },
        Param {
            name: "coupling",
            kind: Kind::Number { unit: Unit::One, min: Bound::Inclusive(1.0), max: Bound::Inclusive(1e3) },
            default: DefaultValue::number(DEFAULT_COUPLING),
            doc: "probability of an ECT(1) packet over p', k",
        },
        Param::fraction("max_p", DefaultValue::number(DEFAULT_MAX_P), "highest probability for Classic packets"),
        AntiWindup::PARAM,
        Param::ECN,
    ],
};

/// The parameters of [`Pi2Law`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pi2Params {
    /// Target delay, seconds.
    pub target_s: f64,
    /// Time between updates.
    pub interval: Span,
    /// Weight of the error, Hz.
    pub alpha_hz: f64,
    /// Weight of the change, Hz.
    pub beta_hz: f64,
    /// Probability of an ECT(1) packet over p', k.
    pub coupling: f64,
    /// Highest probability for Classic packets.
    pub max_p: Probability,
}

/// The law: from delay to p', and from p' to the probabilities of Classic and Scalable traffic.
#[derive(Clone, Copy, Debug)]
pub struct Pi2Law {
    params: Pi2Params,
    core: DelayPi,
    root: Probability,
}

/// PI2.
#[derive(Clone, Debug)]
pub struct Pi2 {
    sampled: SampledAqm<Pi2Law>,
    ecn: bool,
}

impl Default for Pi2Params {
    /// The paper's values.
    fn default() -> Self {
        Pi2Params {
            target_s: DEFAULT_TARGET_S,
            interval: Span::from_secs_f64(DEFAULT_INTERVAL_S),
            alpha_hz: DEFAULT_ALPHA_HZ,
            beta_hz: DEFAULT_BETA_HZ,
            coupling: DEFAULT_COUPLING,
            max_p: Probability::clamp(DEFAULT_MAX_P),
        }
    }
}

impl Pi2Law {
    /// The law at p' = 0 and delay 0.
    pub const fn new(params: Pi2Params) -> Self {
        let Pi2Params { alpha_hz, beta_hz, target_s, .. } = params;
        Pi2Law { params, core: DelayPi { alpha_hz, beta_hz, target_s, previous_s: 0.0 }, root: Probability::ZERO }
    }

    /// Parameters.
    pub const fn params(&self) -> &Pi2Params {
        &self.params
    }

    /// p', the linear output of the controller.
    pub const fn root(&self) -> Probability {
        self.root
    }

    /// The probability for Classic packets, p'^2, at most `max_p`.
    pub fn classic(&self) -> Probability {
        let p = self.root.get();
        Probability::clamp((p * p).min(self.params.max_p.get()))
    }

    /// The probability for Scalable packets, k p'.
    pub fn scalable(&self) -> Probability {
        Probability::clamp(self.params.coupling * self.root.get())
    }

    /// Updates p'; returns [`Pi2Law::classic`].
    pub fn update(&mut self, delay_s: f64) -> Probability {
        self.root = Probability::clamp(self.root.get() + self.core.increment(delay_s));
        self.classic()
    }
}

impl SampledLaw for Pi2Law {
    fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
        [Some(self.params.interval), None]
    }

    fn step(&mut self, _which: usize, observation: &Observation) -> Probability {
        self.update(if observation.queue_pkts > 0.0 { observation.sojourn_s } else { 0.0 })
    }

    fn integral(&self) -> Option<f64> {
        let root = self.root.get();
        Some(root * root)
    }

    fn set_integral(&mut self, p: f64) -> Probability {
        self.root = Probability::clamp(libm::sqrt(p));
        self.classic()
    }

    fn take_over(&mut self, old: &Self) {
        (self.core.previous_s, self.root) = (old.core.previous_s, old.root);
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("delay", self.core.previous_s);
        visit("root_probability", self.root.get());
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        let Pi2Params { target_s, interval, alpha_hz, beta_hz, coupling, max_p } = self.params;
        visit("target", Value::Number(target_s));
        visit("interval", Value::seconds(interval));
        visit("alpha", Value::Number(alpha_hz));
        visit("beta", Value::Number(beta_hz));
        visit("coupling", Value::Number(coupling));
        visit("max_p", Value::Number(max_p.get()));
    }
}

impl Pi2 {
    /// Applies `law`; with `ecn`, ECN-capable packets are marked instead of dropped.
    pub fn new(law: Pi2Law, ecn: bool) -> Result<Self, ParamError> {
        Param::check_positive("target", law.params.target_s, Unit::Seconds)?;
        Param::check_positive("interval", law.params.interval.as_secs_f64(), Unit::Seconds)?;
        Ok(Pi2 { sampled: SampledAqm::new(law, ecn), ecn })
    }

    /// The law.
    pub fn law(&self) -> &Pi2Law {
        self.sampled.law()
    }

    pub(crate) fn from_settings(settings: &Settings<'_>, network: &Network) -> Result<Self, ParamError> {
        let number = |name: &str, otherwise: f64| settings.number(name).unwrap_or(otherwise);
        let law = Pi2Law::new(Pi2Params {
            target_s: number("target", DEFAULT_TARGET_S),
            interval: Span::from_secs_f64(number("interval", DEFAULT_INTERVAL_S)),
            alpha_hz: number("alpha", DEFAULT_ALPHA_HZ),
            beta_hz: number("beta", DEFAULT_BETA_HZ),
            coupling: number("coupling", DEFAULT_COUPLING),
            max_p: Probability::clamp(number("max_p", DEFAULT_MAX_P)),
        });
        let pi2 = Pi2::new(law, settings.flag("ecn").unwrap_or(true))?;
        Ok(Pi2 { sampled: SampledAqm::with_settings(law, settings, network), ..pi2 })
    }
}

impl Aqm for Pi2 {
    #[inline]
    fn on_arrival<R: Draw>(&mut self, packet: &Packet, cx: &mut Cx<'_, R>) -> Verdict {
        if cx.queue.packets <= EXEMPT_PKTS {
            return Verdict::Pass;
        }
        if !(self.ecn && packet.ecn == Ecn::Ect1) {
            return self.sampled.on_arrival(packet, cx);
        }
        let p = self.law().scalable().get();
        if p > 0.0 && !cx.queue.is_full(packet) && cx.rng.uniform() < p { Verdict::Mark } else { Verdict::Pass }
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

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        self.sampled.settings(visit);
    }

    fn law_mut(&mut self) -> Option<&mut dyn SampledLaw> {
        self.sampled.law_mut()
    }

    fn take_over(&mut self, old: Option<&Self>, now: Instant, totals: &Totals) {
        self.sampled.take_over(old.map(|old| &old.sampled), now, totals);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Fixed;
    use crate::{DropReason, Limit, QueueView, Totals};

    #[test]
    fn the_root_moves_by_error_and_change_and_is_squared() {
        let mut law = Pi2Law::new(Pi2Params::default());
        // 100 ms: 0.3125 (0.1 - 0.02) + 3.125 (0.1 - 0) = 0.025 + 0.3125 = 0.3375; squared 0.11390625.
        let near = |x: f64, y: f64| (x - y).abs() < 1e-12;
        assert!(near(law.update(0.1).get(), 0.113_906_25));
        assert!(near(law.root().get(), 0.3375) && near(law.scalable().get(), 0.675));
        // Unchanged: 0.025 more, 0.3625.
        assert!(near(law.update(0.1).get(), 0.131_406_25));
        // 20 ms, the target: 3.125 (0.02 - 0.1) = -0.25.
        law.update(0.02);
        assert!(near(law.root().get(), 0.1125));
        // At the target without change it stays.
        law.update(0.02);
        assert!(near(law.root().get(), 0.1125));
    }

    #[test]
    fn the_classic_probability_is_bounded_and_the_scalable_one_reaches_one() {
        let mut law = Pi2Law::new(Pi2Params::default());
        law.update(1.0);
        assert_eq!(law.root(), Probability::ONE);
        assert_eq!((law.classic().get(), law.scalable().get()), (0.25, 1.0));
    }

    #[test]
    fn classic_and_scalable_packets_have_their_own_probabilities() {
        // p' = 0.3375: Classic 0.1139, Scalable 0.675.
        let mut pi2 = Pi2::new(Pi2Law::new(Pi2Params::default()), true).unwrap();
        let totals = Totals { last_sojourn: Span::from_millis(100), ..Totals::default() };
        let mut verdict = |ecn, packets, u: f64| {
            let queue = QueueView { packets, bytes: 0, limit: Limit::packets(300), totals: &totals };
            let cx = &mut Cx { now: Instant::ZERO + Span::from_millis(32), queue, rng: &mut Fixed(u) };
            if pi2.next_timer().unwrap() == cx.now {
                pi2.on_timer(cx);
            }
            pi2.on_arrival(&Packet { bytes: 1000, ecn, ..Packet::default() }, cx)
        };
        assert_eq!(verdict(Ecn::Ect0, 10, 0.11), Verdict::Mark);
        assert_eq!(verdict(Ecn::Ect0, 10, 0.12), Verdict::Pass);
        assert_eq!(verdict(Ecn::NotEct, 10, 0.11), Verdict::Drop(DropReason::Early));
        assert_eq!(verdict(Ecn::Ect1, 10, 0.67), Verdict::Mark);
        assert_eq!(verdict(Ecn::Ect1, 10, 0.68), Verdict::Pass);
        // At most two packets are exempt.
        assert_eq!(verdict(Ecn::Ect1, 2, 0.0), Verdict::Pass);
    }

    #[test]
    fn a_target_or_interval_of_zero_is_an_error() {
        let with = |params| Pi2::new(Pi2Law::new(params), true).unwrap_err().param;
        assert_eq!(with(Pi2Params { target_s: 0.0, ..Pi2Params::default() }), "target");
        assert_eq!(with(Pi2Params { interval: Span::ZERO, ..Pi2Params::default() }), "interval");
    }
}
