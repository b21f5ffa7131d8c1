//! DropTail: no active queue management. Packets are dropped only when the buffer is full.
//!
//! Deviations: none from the textbook. ns-2's `DropTail` drops a packet with which the queue would *reach* the limit,
//! so it holds one packet less than its limit; `ns2_limit` does the same.

use aqumen_units::Probability;

use crate::{
    Algorithm, Aqm, Coin, Cx, Draw, DropReason, Equilibrium, FluidModel, Network, Packet, Param, ParamError, Settings,
    Theory, Value, Verdict,
};

/// Registry entry.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "droptail",
    title: "DropTail",
    summary: "no AQM: packets are dropped when the buffer is full",
    reference: "-",
    params: &[Param::flag("ns2_limit", false, "hold one packet less than the limit, as ns-2 does")],
};

/// No active queue management.
#[derive(Clone, Copy, Debug, Default)]
pub struct DropTail {
    ns2_limit: bool,
}

impl DropTail {
    /// DropTail. With `ns2_limit` the queue holds one packet less than its limit.
    pub const fn new(ns2_limit: bool) -> Self {
        DropTail { ns2_limit }
    }

    pub(crate) fn from_settings(settings: &Settings<'_>, _network: &Network) -> Result<Self, ParamError> {
        Ok(DropTail::new(settings.flag("ns2_limit").unwrap_or(false)))
    }
}

impl Aqm for DropTail {
    #[inline]
    fn on_arrival<R: Draw>(&mut self, packet: &Packet, cx: &mut Cx<'_, R>) -> Verdict {
        if self.ns2_limit && cx.queue.reaches_limit(packet) {
            Verdict::Drop(DropReason::Overflow)
        } else {
            Verdict::Pass
        }
    }

    fn coin(&self) -> Option<Coin> {
        (!self.ns2_limit).then_some(Coin { probability: Probability::ZERO, ecn: false })
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        visit("ns2_limit", Value::Flag(self.ns2_limit));
    }

    fn theory(&self) -> &dyn Theory {
        self
    }
}

impl Theory for DropTail {
    fn fluid_model(&self) -> FluidModel {
        FluidModel::BufferOnly
    }

    fn equilibrium(&self) -> Equilibrium {
        Equilibrium::AtBufferLimit
    }
}
