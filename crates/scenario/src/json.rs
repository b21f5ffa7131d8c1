//! The plan as JSON, for external engines.

use aqumen_aqm::{Limit, Network, ParamError};
use aqumen_units::{Instant, Span};
use serde_json::{Map, Value, json};

use crate::choice::AqmChoice;
use crate::plan::{Link, Plan, PlanName};
use crate::value::OwnedValue;

impl Plan {
    /// The plan as JSON, version 1 of the format for external engines. Times are in seconds, rates in bits per second.
    /// Fails if an AQM cannot be built for its link.
    pub fn to_json(&self) -> Result<Value, ParamError> {
        plan(self)
    }
}

fn plan(plan: &Plan) -> Result<Value, ParamError> {
    let links = plan.links.iter().map(link).collect::<Result<Vec<_>, _>>()?;
    let groups: Vec<Value> = plan
        .groups
        .iter()
        .map(|group| {
            let transport = group.transport.to_json(&group.preset);
            let flows = [group.flows.start, group.flows.end];
            json!({"name": group.name, "transport": transport, "traffic": group.traffic.to_json(), "flows": flows,
                   "class": group.class})
        })
        .collect();
    let flows: Vec<Value> = plan
        .flows
        .iter()
        .map(|flow| {
            let on: Vec<Value> =
                flow.on.iter().map(|(from, until)| json!([moment(*from), until.map(moment)])).collect();
            json!({
                "group": flow.group, "path": *flow.path, "return_path": *flow.return_path, "on": on,
                "transfer_bytes": flow.transfer.map(|bytes| bytes.0), "source": flow.source,
                "destination": flow.destination,
            })
        })
        .collect();
    let windows: Map<String, Value> = plan
        .windows
        .iter()
        .map(|window| (window.name.clone(), json!([moment(window.start), moment(window.end)])))
        .collect();
    Ok(json!({
        "schema": 1,
        "scenario": plan.scenario,
        "seed": plan.seed,
        "duration_s": seconds(plan.duration),
        "nodes": plan.nodes.iter().map(PlanName::to_string).collect::<Vec<_>>(),
        "links": links,
        "groups": groups,
        "flows": flows,
        "windows": windows,
        "sample_interval_s": seconds(plan.sample_interval),
        "nominal": network(&plan.nominal),
        "actual": network(&plan.actual),
    }))
}

fn link(link: &Link) -> Result<Value, ParamError> {
    let rates: Vec<Value> = link.rates.iter().map(|(at, rate)| json!([moment(*at), rate.as_bps()])).collect();
    let bytes = link.limit.bytes.0;
    let mut json = json!({
        "name": link.name.to_string(), "from": link.from, "to": link.to, "delay_s": seconds(link.delay), "rates": rates,
        "buffer_pkts": if bytes == u64::MAX { json!(link.limit.packets) } else { Value::Null },
        "buffer_bytes": if bytes == u64::MAX { Value::Null } else { json!(bytes) },
        "record": link.record, "target_pkts": link.target_pkts, "aqm": aqm(&link.aqm, link.limit)?,
    });
    if link.record {
        json["aqm"]["nominal"] = network(&link.aqm.network);
    }
    if let Some(line) = &link.line {
        json["line"] = line.to_json();
        let aqms = line.aqms.iter().map(|(at, choice)| Ok(json!([moment(*at), aqm(choice, link.limit)?])));
        json["line"]["aqms"] = Value::Array(aqms.collect::<Result<_, ParamError>>()?);
    }
    Ok(json)
}

fn aqm(choice: &AqmChoice, limit: Limit) -> Result<Value, ParamError> {
    let params: Map<String, Value> = match choice.in_force(limit) {
        Some(params) => params?.into_iter().map(|(name, value)| (name.to_string(), value.to_json())).collect(),
        None => choice.values.iter().map(|(name, value)| (name.clone(), value.to_json())).collect(),
    };
    let given: Map<String, Value> = choice.values.iter().map(|(name, value)| (name.clone(), value.to_json())).collect();
    Ok(json!({"name": choice.name, "given": given, "params": params}))
}

fn network(network: &Network) -> Value {
    json!({
        "capacity_bps": network.capacity.as_bps(), "flows": network.flows, "base_rtt_s": network.base_rtt_s,
        "target_pkts": network.target_pkts, "packet_bytes": network.packet_bytes,
    })
}

impl OwnedValue {
    /// The value as JSON.
    pub fn to_json(&self) -> Value {
        match self {
            OwnedValue::Number(x) => json!(x),
            OwnedValue::Flag(yes) => json!(yes),
            OwnedValue::Choice(name) => json!(name),
        }
    }
}

fn seconds(span: Span) -> f64 {
    // One division: 20 ms are 0.02, not 0.020000000000000004.
    span.as_nanos() as f64 / 1e9
}

fn moment(at: Instant) -> f64 {
    seconds(at.saturating_since(Instant::ZERO))
}
