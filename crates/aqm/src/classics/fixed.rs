//! Fixed probability: each packet is marked or dropped with a constant probability. There is no feedback from the
//! queue, so the response of a sender to a given probability (its window as a function of p) can be measured.
//!
//! Deviations: none, there is no source. An overflowing packet draws no random number.

use aqumen_units::Probability;

use crate::{
    Algorithm, Aqm, Cx, DefaultValue, Draw, Network, Packet, Param, ParamError, Settings, Theory, Value, Verdict,
};

const DEFAULT_P: f64 = 0.01;

/// Registry entry.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "fixed",
    title: "Fixed probability",
    summary: "marks or drops each packet with a constant probability, to measure how senders respond",
    reference: "-",
    params: &[Param::fraction("p", DefaultValue::number(DEFAULT_P), "signal probability of each packet"), Param::ECN],
};

/// A fixed probability.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    p: Probability,
    ecn: bool,
}

impl Fixed {
    /// Signals with probability `p`; with `ecn`, ECN-capable packets are marked instead of dropped.
    pub const fn new(p: Probability, ecn: bool) -> Self {
        Fixed { p, ecn }
    }

    pub(crate) fn from_settings(settings: &Settings<'_>, _network: &Network) -> Result<Self, ParamError> {
        let p = Probability::clamp(settings.number("p").unwrap_or(DEFAULT_P));
        Ok(Fixed::new(p, settings.flag("ecn").unwrap_or(true)))
    }
}

impl Aqm for Fixed {
    #[inline]
    fn on_arrival<R: Draw>(&mut self, packet: &Packet, cx: &mut Cx<'_, R>) -> Verdict {
        let p = self.p.get();
        if p > 0.0 && !cx.queue.is_full(packet) && cx.rng.uniform() < p {
            Verdict::signal(packet, self.ecn)
        } else {
            Verdict::Pass
        }
    }

    fn probability(&self) -> Probability {
        self.p
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        visit("p", Value::Number(self.p.get()));
        visit("ecn", Value::Flag(self.ecn));
    }

    fn theory(&self) -> &dyn Theory {
        self
    }
}

impl Theory for Fixed {
    fn not_linearizable(&self) -> Option<&'static str> {
        Some("its probability is constant")
    }
}
