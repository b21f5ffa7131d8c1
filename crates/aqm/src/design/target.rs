//! The target queue, as the operator thinks of it: a number of packets, or a time to wait.

use crate::{Bound, DefaultValue, Kind, Network, Param, ParamError, Settings, Unit, Value};

/// A target queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// So many packets.
    Packets(f64),
    /// As many packets as the link sends in so many seconds.
    Delay(f64),
}

impl Target {
    /// The parameter that gives the target as a time. It stands beside [`Param::TARGET`].
    pub(crate) const DELAY: Param = Param {
        name: "target_delay",
        kind: Kind::Number { unit: Unit::Seconds, min: Bound::Exclusive(0.0), max: Bound::Open },
        default: DefaultValue::Designed("target / capacity"),
        doc: "the target as a time to wait; instead of target",
    };

    /// The target that was given, or the network's.
    pub(crate) fn from_settings(settings: &Settings<'_>, network: &Network) -> Result<Self, ParamError> {
        match (settings.number("target"), settings.number("target_delay")) {
            (Some(_), Some(delay)) => {
                Err(ParamError::relation("target_delay", delay, "has no effect beside target: give one of them"))
            }
            (None, Some(delay)) => Ok(Target::Delay(delay)),
            (Some(packets), None) => Ok(Target::Packets(packets)),
            (None, None) => {
                Param::check_positive("target", network.target_pkts, Unit::Packets)?;
                Ok(Target::Packets(network.target_pkts))
            }
        }
    }

    /// Packets at `capacity_pps` packets a second.
    pub fn packets(self, capacity_pps: f64) -> f64 {
        match self {
            Target::Packets(packets) => packets,
            Target::Delay(seconds) => seconds * capacity_pps,
        }
    }

    /// Seconds at `capacity_pps` packets a second.
    pub fn seconds(self, capacity_pps: f64) -> f64 {
        match self {
            Target::Packets(packets) => packets / capacity_pps,
            Target::Delay(seconds) => seconds,
        }
    }

    /// The parameter in force.
    pub(crate) fn settings(self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        match self {
            Target::Packets(packets) => visit("target", Value::Number(packets)),
            Target::Delay(seconds) => visit("target_delay", Value::Number(seconds)),
        }
    }
}
