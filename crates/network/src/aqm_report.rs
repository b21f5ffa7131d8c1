//! Report on a link's AQM for the results: given and designed parameters.

use aqumen_aqm::{Network, Value};
use aqumen_result::{AqmReport, NominalReport, ParamValue};
use aqumen_scenario::{Link, OwnedValue};
use indexmap::IndexMap;

/// Reports on the AQM of `link` with its parameters at the end, after all events; `in_force` visits them.
pub fn aqm_report(link: &Link, in_force: impl FnOnce(&mut dyn FnMut(&'static str, Value<'static>))) -> AqmReport {
    let last = link.line.as_ref().and_then(|line| line.aqms.last()).map_or(&link.aqm, |(_, choice)| choice);
    named_aqm_report(&link.aqm.name, &last.values, &last.network, in_force)
}

/// Reports on the AQM `name` that was given `values` on `network`; `in_force` visits its parameters.
pub fn named_aqm_report(
    name: &str,
    values: &[(String, OwnedValue)],
    network: &Network,
    in_force: impl FnOnce(&mut dyn FnMut(&'static str, Value<'static>)),
) -> AqmReport {
    let param = |value: Value<'_>| match value {
        Value::Number(x) => ParamValue::Number(x),
        Value::Flag(yes) => ParamValue::Flag(yes),
        Value::Choice(word) => ParamValue::Choice(word.into()),
    };
    let mut params = IndexMap::new();
    in_force(&mut |name, value| {
        params.insert(name.to_string(), param(value));
    });
    AqmReport {
        name: name.into(),
        given: values.iter().map(|(name, value)| (name.clone(), param(value.as_value()))).collect(),
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
