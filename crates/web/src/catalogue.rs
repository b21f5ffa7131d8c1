//! Catalogue of AQMs and transports for the forms of a page.

use aqumen_aqm::registry::{PROFILES, QueueKind, algorithms};
use aqumen_aqm::{Kind, threshold};
use serde_json::json;
use wasm_bindgen::prelude::*;

/// Returns the JSON list of all AQMs and profiles: name, title, summary, kind, and the unit of the parameter `target`
/// (`null` without one).
#[wasm_bindgen]
pub fn aqms() -> String {
    let entries = algorithms().map(|algorithm| {
        let single = algorithm.kind() == QueueKind::Single;
        let common = if single { threshold::PARAMS } else { &[] };
        let target = algorithm.params.iter().chain(common).find(|param| param.name == "target");
        json!({
            "name": algorithm.name,
            "title": algorithm.title,
            "summary": algorithm.summary,
            "reference": algorithm.reference,
            "kind": if single { "single-queue" } else { "multi-queue" },
            "target": target.and_then(|param| match param.kind {
                Kind::Number { unit, .. } => Some(unit.symbol()),
                _ => None,
            }),
        })
    });
    let profiles = PROFILES.iter().map(|profile| {
        json!({ "name": profile.name, "title": profile.name, "summary": profile.doc, "kind": "profile", "algorithm": profile.algorithm })
    });
    json!(entries.chain(profiles).collect::<Vec<_>>()).to_string()
}

/// Returns the JSON list of all transports.
#[wasm_bindgen]
pub fn transports() -> String {
    aqumen_scenario::list::transports().to_string()
}
