//! Self-tuning structure (Zhang, Hollot, Towsley, Misra 2003): at each sample a wrapper estimates the network and tunes
//! its law to the estimate before the law steps.
//!
//! ```text
//! observation ──> estimators: C^, L^ ──> R ──> law.tune(C, L, R) ──> law.step ──> p
//! ```
//!
//! Deviations: in the paper R is a constant bound on the propagation time. With a target in packets that is unsafe: at
//! an eighth of the capacity, 47 ms of queueing delay become 370 ms, and a loop tuned without them oscillates. The
//! default, [`RoundTrip::Effective`], is R = base RTT + target / C^. With `passive_rtt` the base RTT is measured
//! ([`PassiveRtt`]).

use aqumen_units::{Instant, Probability, Span};

use crate::params::joined;
use crate::{
    DefaultValue, EstimatorParams, Estimators, MAX_LOOPS, Network, Observation, Packet, Param, ParamError, PassiveRtt,
    SampledLaw, Settings, Target, Theory, Unit, Value,
};

/// Estimate of the network, to which a law is tuned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NetworkEstimate {
    /// Capacity, C, packets/s.
    pub capacity_pps: f64,
    /// Load, L = N / (R C) = 1 / window, 1/packets.
    pub load: f64,
    /// Round-trip time at the target, R, seconds.
    pub rtt_s: f64,
}

/// A law whose parameters follow from capacity, load and round-trip time.
pub trait Tunable: SampledLaw {
    /// Sets the parameters for `network` without a bump in the output. No change if the estimate gives no valid
    /// parameters.
    fn tune(&mut self, network: &NetworkEstimate);

    /// Target queue.
    fn target(&self) -> Target;

    /// Largest pole with which the load may be estimated from this law's probability, rad/s. A faster estimate would
    /// follow the law's own transients. 0: the probability currently carries no information on the load.
    fn load_pole(&self) -> f64 {
        f64::INFINITY
    }
}

/// Model of the round-trip time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RoundTrip {
    /// Constant, seconds.
    Fixed(f64),
    /// Base RTT (this value, seconds) plus the queueing delay of the target at C^.
    Effective(f64),
}

/// A self-tuning law.
#[derive(Clone, Debug)]
pub struct SelfTuned<L> {
    law: L,
    estimators: Estimators,
    round_trip: RoundTrip,
    /// Estimator of the base RTT, and the mean packet for which the capacity counts, bytes; `None`: it is constant.
    passive: Option<(PassiveRtt, f64)>,
    /// Initial capacity as given in the settings; `None` if built without settings.
    capacity_bps: Option<f64>,
    rtt_s: f64,
}

/// Settings common to all self-tuning algorithms.
pub(crate) struct Tuning {
    pub(crate) target: Target,
    pub(crate) round_trip: RoundTrip,
    /// Mean packet, bytes, if the base RTT is measured.
    pub(crate) passive_bytes: Option<f64>,
    pub(crate) estimators: EstimatorParams,
    pub(crate) capacity_bps: f64,
}

impl Tuning {
    /// Parameters of every self-tuning algorithm: network and estimators.
    pub(crate) const PARAMS: &[Param] = joined![
        &[EstimatorParams::CAPACITY, EstimatorParams::LOAD, RoundTrip::RTT, RoundTrip::WITH_QUEUE, RoundTrip::PASSIVE],
        &EstimatorParams::PARAMS,
    ];
}

impl RoundTrip {
    pub(crate) const RTT: Param = Param::positive(
        "rtt",
        Unit::Seconds,
        DefaultValue::Designed("the network's base RTT"),
        "round-trip time without queueing",
    );

    pub(crate) const WITH_QUEUE: Param =
        Param::flag("rtt_with_queue", true, "tune to rtt + target / C^, and not to rtt alone as the paper does");

    pub(crate) const PASSIVE: Param = Param::flag(
        "passive_rtt",
        false,
        "measure rtt from the handshakes that pass; the value given holds until the first",
    );

    /// This model with base RTT `base_s`.
    fn with_base(self, base_s: f64) -> Self {
        match self {
            RoundTrip::Fixed(_) => RoundTrip::Fixed(base_s),
            RoundTrip::Effective(_) => RoundTrip::Effective(base_s),
        }
    }

    /// Round-trip time R at `capacity_pps`, seconds.
    pub fn rtt_s(self, target: Target, capacity_pps: f64) -> f64 {
        match self {
            RoundTrip::Fixed(seconds) => seconds,
            RoundTrip::Effective(base) => base + target.seconds(capacity_pps),
        }
    }
}

impl Tuning {
    pub(crate) fn from_settings(settings: &Settings<'_>, network: &Network) -> Result<Self, ParamError> {
        let capacity_bps = settings.number("capacity").unwrap_or(network.capacity.as_bps() as f64);
        let capacity_pps = capacity_bps / (8.0 * network.packet_bytes);
        let target = Target::from_settings(settings, network)?;
        let rtt = settings.number("rtt").unwrap_or(network.base_rtt_s);
        Param::check_positive("rtt", rtt, Unit::Seconds)?;
        let effective = RoundTrip::Effective(rtt);
        let load = network.flows / (effective.rtt_s(target, capacity_pps) * capacity_pps);
        let round_trip =
            if settings.flag("rtt_with_queue").unwrap_or(true) { effective } else { RoundTrip::Fixed(rtt) };
        let estimators = EstimatorParams::from_settings(settings, capacity_pps, load)?;
        let passive_bytes = settings.flag("passive_rtt").unwrap_or(false).then_some(network.packet_bytes);
        Ok(Tuning { target, round_trip, passive_bytes, estimators, capacity_bps })
    }

    /// Estimate before the first sample.
    pub(crate) fn initial(&self) -> NetworkEstimate {
        let EstimatorParams { capacity_pps, load, .. } = self.estimators;
        NetworkEstimate { capacity_pps, load, rtt_s: self.round_trip.rtt_s(self.target, capacity_pps) }
    }
}

impl<L: Tunable> SelfTuned<L> {
    /// `law` tuned by `estimators` at each step of its first loop.
    pub fn new(law: L, estimators: Estimators, round_trip: RoundTrip) -> Self {
        let rtt_s = round_trip.rtt_s(law.target(), estimators.capacity_pps());
        SelfTuned { law, estimators, round_trip, passive: None, capacity_bps: None, rtt_s }
    }

    /// The law.
    pub const fn law(&self) -> &L {
        &self.law
    }

    /// The estimators.
    pub const fn estimators(&self) -> &Estimators {
        &self.estimators
    }

    fn tune(&mut self) {
        let capacity_pps = self.estimators.capacity_pps();
        let measured_s = self.passive.as_ref().and_then(|(passive, _)| passive.mean_s());
        let round_trip = measured_s.map_or(self.round_trip, |base_s| self.round_trip.with_base(base_s));
        self.rtt_s = round_trip.rtt_s(self.law.target(), capacity_pps);
        self.law.tune(&NetworkEstimate { capacity_pps, load: self.estimators.load(), rtt_s: self.rtt_s });
    }

    /// `law`, built for the initial estimate, with estimators from the settings.
    pub(crate) fn from_tuning(tuning: &Tuning, law: L) -> Result<Self, ParamError> {
        let [Some(period), _] = law.periods() else { unreachable!("a tunable law has a first loop") };
        let estimators = Estimators::new(tuning.estimators, period.as_secs_f64(), None)?;
        Ok(SelfTuned {
            capacity_bps: Some(tuning.capacity_bps),
            passive: tuning.passive_bytes.map(|bytes| (PassiveRtt::default(), bytes)),
            ..SelfTuned::new(law, estimators, tuning.round_trip)
        })
    }
}

impl<L: Tunable> SampledLaw for SelfTuned<L> {
    fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
        self.law.periods()
    }

    fn step(&mut self, which: usize, observation: &Observation) -> Probability {
        if which == 0 {
            self.estimators.update_with_pole_limit(observation, self.law.load_pole());
            self.tune();
        }
        self.law.step(which, observation)
    }

    fn sees_packets(&self) -> bool {
        self.passive.is_some()
    }

    fn on_packet(&mut self, packet: &Packet, now: Instant, waiting_bytes: u64) {
        if let Some((passive, packet_bytes)) = &mut self.passive {
            let wait_s = waiting_bytes as f64 / (*packet_bytes * self.estimators.capacity_pps());
            passive.on_arrival(packet, now, Span::from_secs_f64(wait_s));
        }
    }

    fn initial(&self) -> Probability {
        self.law.initial()
    }

    fn integral(&self) -> Option<f64> {
        self.law.integral()
    }

    /// Also bounds the load's estimate by that of `p`, since it came from the wound-up integral.
    fn set_integral(&mut self, p: f64) -> Probability {
        self.estimators.limit_load(p);
        self.tune();
        self.law.set_integral(p)
    }

    fn take_over(&mut self, old: &Self) {
        self.law.take_over(&old.law);
        self.estimators.take_over(&old.estimators);
        if let (Some((new, _)), Some((old, _))) = (&mut self.passive, &old.passive) {
            new.clone_from(old);
        }
        self.rtt_s = old.rtt_s;
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.law.observe(visit);
        self.estimators.observe(visit);
        visit("rtt_effective", self.rtt_s);
        if let Some(mean_s) = self.passive.as_ref().and_then(|(passive, _)| passive.mean_s()) {
            visit("rtt_passive", mean_s);
        }
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        self.law.settings(visit);
        if let Some(capacity) = self.capacity_bps {
            visit("capacity", Value::Number(capacity));
        }
        visit("load", Value::Number(self.estimators.params().load));
        let (rtt, with_queue) = match self.round_trip {
            RoundTrip::Fixed(rtt) => (rtt, false),
            RoundTrip::Effective(rtt) => (rtt, true),
        };
        visit("rtt", Value::Number(rtt));
        visit("rtt_with_queue", Value::Flag(with_queue));
        visit("passive_rtt", Value::Flag(self.passive.is_some()));
        self.estimators.params().settings(visit);
    }

    fn theory(&self) -> &dyn Theory {
        self.law.theory()
    }
}
