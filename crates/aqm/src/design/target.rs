//! Target queue, in packets or as a queueing delay.

use crate::{Bound, DefaultValue, Kind, Network, Param, ParamError, Settings, Unit, Value};

/// A target queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// Queue length, packets.
    Packets(f64),
    /// Queueing delay, seconds.
    Delay(f64),
}

impl Target {
    /// Parameter of the target as a delay, an alternative to [`Param::TARGET`].
    pub(crate) const DELAY: Param = Param {
        name: "target_delay",
        kind: Kind::Number { unit: Unit::Seconds, min: Bound::Exclusive(0.0), max: Bound::Open },
        default: DefaultValue::Designed("target / capacity"),
        doc: "target as a queueing delay, instead of target",
    };

    /// Target of the settings, or else of the network.
    pub(crate) fn from_settings(settings: &Settings<'_>, network: &Network) -> Result<Self, ParamError> {
        match (settings.number("target"), settings.number("target_delay")) {
            (Some(_), Some(delay)) => {
                Err(ParamError::relation("target_delay", delay, "cannot be combined with target"))
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

    /// Visits the current parameter.
    pub(crate) fn settings(self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        match self {
            Target::Packets(packets) => visit("target", Value::Number(packets)),
            Target::Delay(seconds) => visit("target_delay", Value::Number(seconds)),
        }
    }
}
