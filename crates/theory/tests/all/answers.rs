//! Table of results for known networks: designs, predictions and the fluid engine's metrics.
//!
//! `tests/vectors/answers.csv` has one row a figure, to seven digits. A change that is meant shows in the rows that it
//! concerns: `AQUMEN_BLESS=1 cargo test -p aqumen-theory --test all answers` writes them anew.

use std::collections::BTreeMap;
use std::fmt::Write;

use aqumen_aqm::Network;
use aqumen_scenario::{AqmChoice, Scenario};
use aqumen_theory::design::{OperatingConditions, analyse};
use aqumen_theory::engine;
use aqumen_theory::fluid::{self, Model};
use aqumen_units::Rate;
use serde_json::Value;

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/answers.csv");

fn analysed(aqm: &str, flows: f64, bps: u64, base_rtt_s: f64, model: Model) -> Value {
    let rate = Rate::from_bps(bps);
    let network = Network {
        capacity: rate,
        flows,
        base_rtt_s,
        target_pkts: 100.0,
        packet_bytes: 1000.0,
        link_rate: rate,
        buffer_pkts: 300.0,
    };
    let conditions = OperatingConditions {
        model,
        flows,
        capacity_pps: network.capacity_pps(),
        unresponsive_pps: 0.05 * network.capacity_pps(),
        transfer_rtts: 0.0,
        base_rtt_s,
        buffer_pkts: 300.0,
        sender: aqumen_theory::response::Sender::reno(),
    };
    match analyse(&AqmChoice::builtin(aqm, Vec::new(), network), &conditions) {
        Ok(analysis) => serde_json::to_value(&analysis).unwrap(),
        Err(error) => error.to_string().into(),
    }
}

/// Every number below `value`, by its path; words are left to the tests that are about them.
fn numbers(path: &str, value: &Value, found: &mut BTreeMap<String, String>) {
    match value {
        Value::Number(number) => {
            let x = number.as_f64().unwrap();
            // Sums and roots of rounding errors are no figures.
            let shown = if x.abs() < 1e-9 { "0".into() } else { format!("{x:.6e}") };
            found.insert(path.into(), shown);
        }
        Value::Bool(yes) => {
            found.insert(path.into(), yes.to_string());
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, item)| numbers(&format!("{path}.{i}"), item, found));
        }
        Value::Object(fields) => {
            fields.iter().for_each(|(key, item)| numbers(&format!("{path}.{key}"), item, found));
        }
        Value::Null | Value::String(_) => {}
    }
}

fn answers() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for aqm in ["pi", "red", "arm-pfc", "aqm-mo", "paqm", "rem", "pie", "pi2", "ared"] {
        for (name, flows, bps, rtt) in [("few", 12.0, 10_000_000, 0.2), ("many", 150.0, 30_000_000, 0.08)] {
            for (kind, model) in [("ecn", Model::Ecn), ("hollot", Model::Hollot)] {
                numbers(&format!("design {aqm} {name} {kind}"), &analysed(aqm, flows, bps, rtt, model), &mut found);
            }
        }
    }
    let file = |name: &str| format!("{}/../../experiments/arm-pfc/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    for (name, aqm) in [("exp1", "pi"), ("exp1", "red"), ("exp1", "droptail"), ("exp1", "pie"), ("exp4", "arm-pfc")] {
        let scenario = Scenario::load(file(name), &[("duration", "40s")])
            .unwrap_or_else(|_| Scenario::load(file(name), &[]).unwrap());
        let plan = scenario.plan(1, Some(&scenario.aqm(aqm).unwrap())).unwrap();
        let mut told = |kind: &str, result: Option<aqumen_result::RunResult>| {
            let Some(result) = result else { return };
            let json = serde_json::to_value((&result.links, &result.flows)).unwrap();
            numbers(&format!("{kind} {name} {aqm}"), &json, &mut found);
        };
        told("theory", engine::run(&plan).ok());
        told("fluid", fluid::run(&plan, fluid::Options::default(), &mut |_| true).ok());
    }
    found
}

#[test]
fn no_answer_is_another_than_its_row_says() {
    let found = answers();
    if std::env::var_os("AQUMEN_BLESS").is_some() {
        let mut table = String::from("figure,value\n");
        found.iter().for_each(|(conditions, value)| writeln!(table, "{conditions},{value}").unwrap());
        return std::fs::write(TABLE, table).unwrap();
    }
    let text = std::fs::read_to_string(TABLE).unwrap();
    let expected: Vec<(&str, &str)> = text.lines().skip(1).filter_map(|line| line.rsplit_once(',')).collect();
    assert!(expected.len() > 500, "{}", expected.len());
    // The seventh digit may be rounded either way.
    let same = |now: &str, then: &str| match (now.parse::<f64>(), then.parse::<f64>()) {
        (Ok(now), Ok(then)) => (now - then).abs() <= 2e-6 * then.abs(),
        _ => now == then,
    };
    let other: Vec<String> = expected
        .iter()
        .filter(|(conditions, value)| !found.get(*conditions).is_some_and(|now| same(now, value)))
        .map(|(conditions, value)| format!("{conditions}: now {:?}, was {value}", found.get(*conditions)))
        .collect();
    assert!(other.is_empty(), "{} figures are others:\n{}", other.len(), other[..other.len().min(30)].join("\n"));
}
