//! Catalogue as data: AQMs, transports, traffic, keys of results, quantities with their units. `aqumen list --json`
//! prints it, and the typed parameter tables are generated from it.

use aqumen_aqm::registry::{PROFILES, QueueKind};
use aqumen_aqm::{Bound as End, DefaultValue, Kind, Param, Value, threshold};
use aqumen_scenario::{read_bytes, read_packets, read_rate, read_span};
use pyo3::prelude::*;
use serde_json::{Value as Json, json};

use crate::error::refuse;
use crate::objects::to_python;
use crate::own;

/// Returns every algorithm with its parameters and the common parameters of its kind, then every built-in profile.
#[pyfunction]
pub(crate) fn list_aqms(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let catalogue = own::catalogue();
    let entries = catalogue.algorithms().map(|algorithm| {
        let kind = catalogue.kind(algorithm);
        let common = if kind == QueueKind::Single { threshold::PARAMS } else { &[] };
        json!({
            "name": algorithm.name,
            "kind": match kind {
                QueueKind::Single => "single-queue",
                QueueKind::Multi => "multi-queue",
            },
            "title": algorithm.title,
            "summary": algorithm.summary,
            "reference": algorithm.reference,
            "params": algorithm.params.iter().map(param).collect::<Vec<_>>(),
            "common_params": common.iter().map(param).collect::<Vec<_>>(),
        })
    });
    let profiles = PROFILES.iter().map(|profile| {
        let settings = profile.settings.iter().map(|&(name, ref setting)| (name.to_string(), value(setting)));
        json!({
            "name": profile.name,
            "kind": "profile",
            "title": profile.name,
            "summary": profile.doc,
            "algorithm": profile.algorithm,
            "settings": settings.collect::<serde_json::Map<_, _>>(),
            "params": [],
            "common_params": [],
        })
    });
    to_python(py, &entries.chain(profiles).collect::<Vec<_>>())
}

/// Returns every transport preset with its settings.
#[pyfunction]
pub(crate) fn list_transports(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    to_python(py, &aqumen_scenario::list::transports())
}

/// Returns every kind of traffic with its parameters.
#[pyfunction]
pub(crate) fn list_traffic(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    to_python(py, &aqumen_scenario::list::traffic())
}

/// Parses `text` as a `rate` (in bit/s), a `time` (s), a `size` (bytes) or a number of `packets`, by the rules of
/// scenario files.
#[pyfunction]
pub(crate) fn quantity(kind: &str, text: &str) -> PyResult<f64> {
    let value = match kind {
        "rate" => read_rate(text).map(|rate| rate.as_bps() as f64),
        "time" => read_span(text).map(|span| span.as_nanos() as f64 / 1e9),
        "size" => read_bytes(text).map(|bytes| bytes.0 as f64),
        "packets" => read_packets(text),
        _ => Err(format!("invalid quantity '{kind}'; choose from: rate, time, size, packets")),
    };
    value.map_err(refuse)
}

/// Returns the keys of a recorded link's metrics, and of a flow group's.
#[pyfunction]
pub(crate) fn metric_keys() -> PyResult<(Vec<String>, Vec<String>)> {
    let keys = |metrics: Json| metrics.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect();
    let link = serde_json::to_value(aqumen_result::LinkMetrics::default()).map_err(refuse)?;
    let flow = serde_json::to_value(aqumen_result::FlowMetrics::default()).map_err(refuse)?;
    Ok((keys(link), keys(flow)))
}

/// Returns the names that a SPEC may start with in any scenario.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let algorithms = own::catalogue().algorithms().map(|algorithm| algorithm.name);
    PROFILES.iter().map(|profile| profile.name).chain(algorithms)
}

fn param(param: &Param) -> Json {
    let (unit, min, max, choices) = match param.kind {
        Kind::Number { unit, min, max } => (json!(unit.symbol()), bound(min), bound(max), Json::Null),
        Kind::Flag => (json!("flag"), Json::Null, Json::Null, json!([true, false])),
        Kind::Choice(names) => (json!("choice"), Json::Null, Json::Null, json!(names)),
    };
    let (default, designed) = match param.default {
        DefaultValue::Value(default) => (value(&default), Json::Null),
        DefaultValue::Designed(rule) => (Json::Null, json!(rule)),
    };
    json!({
        "name": param.name,
        "unit": unit,
        "default": default,
        "designed": designed,
        "min": min,
        "max": max,
        "choices": choices,
        "doc": param.doc,
    })
}

fn bound(end: End) -> Json {
    match end {
        End::Inclusive(at) => json!({"value": at, "allowed": true}),
        End::Exclusive(at) => json!({"value": at, "allowed": false}),
        End::Open => Json::Null,
    }
}

fn value(value: &Value<'_>) -> Json {
    match *value {
        Value::Number(x) => json!(x),
        Value::Flag(yes) => json!(yes),
        Value::Choice(name) => json!(name),
    }
}

/// Returns the scenario files of the papers' experiments, in order of their names: name and text.
#[pyfunction]
pub(crate) fn experiments() -> Vec<(&'static str, &'static str)> {
    const ALL: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/experiments.rs"));
    ALL.to_vec()
}
