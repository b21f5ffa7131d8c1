//! Three custom AQMs: a sampled control law, an algorithm that decides packet by packet, and a discipline of several
//! queues ([`Turns`]).
//!
//! A scenario that is read with [`catalogue`] runs them by name, the first two in every engine. Their
//! parameters have units and ranges like those of built-in AQMs.

use aqumen_aqm::{
    Algorithm, AnyAqm, Aqm, Catalogue, Cx, DefaultValue, Draw, Hooks, MAX_LOOPS, NameTakenError, Network, Observation,
    Packet, Param, ParamError, SampledLaw, Settings, Unit, Value, Verdict,
};
use aqumen_units::{Probability, Span};

mod turns;

use turns::TURNS;
pub use turns::Turns;

/// Built-in AQMs, `integral`, `impatient` and `turns`.
pub fn catalogue() -> Result<Catalogue, NameTakenError> {
    Catalogue::BUILT_IN
        .with(INTEGRAL, |settings, network| {
            Ok(AnyAqm::custom_law(Integral::new(settings, network)?, settings.flag("ecn").unwrap_or(true)))
        })?
        .with(IMPATIENT, |settings, _| Ok(AnyAqm::custom(Impatient::new(settings))))?
        .with_qdisc(TURNS, Turns::build)
}

const INTEGRAL: Algorithm = Algorithm {
    name: "integral",
    title: "Integral control",
    summary: "integral control of the queue length",
    reference: "-",
    params: &[
        Param::positive("gain", Unit::PerPacket, DefaultValue::number(1e-5), "change per packet of error and sample"),
        Param::TARGET,
        Param::ECN,
    ],
};

/// Integral controller: p += gain (q - target) every 10 ms.
#[derive(Clone)]
pub struct Integral {
    gain: f64,
    target: f64,
    p: Probability,
}

impl Integral {
    fn new(settings: &Settings<'_>, network: &Network) -> Result<Self, ParamError> {
        let gain = settings.number("gain").unwrap_or(1e-5);
        if gain * network.buffer_pkts > 1.0 {
            return Err(ParamError::relation("gain", gain, "moves p by more than 1 when the buffer is full"));
        }
        Ok(Integral { gain, target: settings.number("target").unwrap_or(network.target_pkts), p: Probability::ZERO })
    }
}

impl SampledLaw for Integral {
    fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
        [Some(Span::from_millis(10)), None]
    }

    fn step(&mut self, _which: usize, observation: &Observation) -> Probability {
        self.p = Probability::clamp(self.p.get() + self.gain * (observation.queue_pkts - self.target));
        self.p
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        visit("gain", Value::Number(self.gain));
        visit("target", Value::Number(self.target));
    }
}

const IMPATIENT: Algorithm = Algorithm {
    name: "impatient",
    title: "Impatient",
    summary: "marks packets with a probability that grows with their sojourn time beyond a limit",
    reference: "-",
    params: &[Param::positive(
        "limit",
        Unit::Seconds,
        DefaultValue::number(0.05),
        "sojourn time at which marking begins",
    )],
};

/// Marks packets at the head with probability sojourn / limit - 1.
#[derive(Clone)]
pub struct Impatient {
    limit_s: f64,
}

impl Impatient {
    fn new(settings: &Settings<'_>) -> Self {
        Impatient { limit_s: settings.number("limit").unwrap_or(0.05) }
    }
}

impl Aqm for Impatient {
    fn on_dequeue<R: Draw>(&mut self, packet: &Packet, sojourn: Span, cx: &mut Cx<'_, R>) -> Verdict {
        let excess = sojourn.as_secs_f64() / self.limit_s - 1.0;
        if excess > 0.0 && cx.rng.uniform() < excess { Verdict::signal(packet, true) } else { Verdict::Pass }
    }

    fn hooks(&self) -> Hooks {
        Hooks { decides_at_head: true, departures: false }
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        visit("limit", Value::Number(self.limit_s));
    }
}
