//! What a result says of its AQM.

use aqumen_aqm::{Network, Value};
use indexmap::IndexMap;
use serde::Serialize;

/// An AQM: what it was given, and what that resolved to. Numbers are in the units of the algorithm's table: packets, seconds,
/// bit/s, Hz.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AqmReport {
    /// Name of the algorithm.
    pub name: String,
    /// The values given, a profile's included.
    pub given: IndexMap<String, ParamValue>,
    /// The parameters in force, designed ones included.
    pub params: IndexMap<String, ParamValue>,
    /// The network for which what was not given is designed.
    pub nominal: NominalReport,
}

/// The network for which an AQM designs what it is not given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct NominalReport {
    /// Capacity.
    pub capacity_bps: u64,
    /// Long-lived flows.
    pub flows: f64,
    /// Round-trip time without queueing, seconds.
    pub base_rtt_s: f64,
    /// Target queue length, packets.
    pub target_pkts: f64,
    /// Mean packet on the wire, bytes.
    pub packet_bytes: f64,
}

/// A parameter's value.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ParamValue {
    /// A number in the parameter's unit.
    Number(f64),
    /// Yes or no.
    Flag(bool),
    /// A word.
    Choice(String),
}

impl AqmReport {
    /// The report on the AQM `name` that was `given` values on `network`; `in_force` shows the parameters that came of them.
    pub fn of<'v>(
        name: &str,
        given: impl IntoIterator<Item = (&'v str, Value<'v>)>,
        network: &Network,
        in_force: impl FnOnce(&mut dyn FnMut(&'static str, Value<'static>)),
    ) -> Self {
        let mut params = IndexMap::new();
        in_force(&mut |name, value| {
            params.insert(name.to_string(), value.into());
        });
        AqmReport {
            name: name.into(),
            given: given.into_iter().map(|(name, value)| (name.to_string(), value.into())).collect(),
            params,
            nominal: NominalReport {
                capacity_bps: network.capacity.as_bps(),
                flows: network.flows,
                base_rtt_s: network.base_rtt_s,
                target_pkts: network.target_pkts,
                packet_bytes: network.packet_bytes,
            },
        }
    }
}

impl From<Value<'_>> for ParamValue {
    fn from(value: Value<'_>) -> Self {
        match value {
            Value::Number(x) => ParamValue::Number(x),
            Value::Flag(yes) => ParamValue::Flag(yes),
            Value::Choice(word) => ParamValue::Choice(word.into()),
        }
    }
}
