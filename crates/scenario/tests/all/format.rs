//! The format: written and read back, its JSON Schema, its documentation, and arbitrary input.

use crate::common;

use std::collections::BTreeSet;

use aqumen_scenario::channel::MODELS;
use aqumen_scenario::{Files, Scenario};
use common::{DUMBBELL, GRAPH, PARKING_LOT, parse};
use proptest::prelude::*;

const SCHEMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/scenario.schema.json");
const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/scenario.md");
const EXPERIMENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments");

/// Every scenario file below `dir`.
fn scenario_files(dir: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            scenario_files(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "toml")
            && std::fs::read_to_string(&path).unwrap().contains("[topology]")
        {
            found.push(path);
        }
    }
}

#[test]
fn every_experiment_reads_and_plans() {
    let mut files = Vec::new();
    scenario_files(EXPERIMENTS.as_ref(), &mut files);
    assert!(files.len() >= 9, "{files:?}");
    for file in files {
        let scenario = Scenario::load(&file, &[]).unwrap_or_else(|error| panic!("{error}"));
        scenario.plan(1, None).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(parse(&scenario.to_toml()).spec(), scenario.spec());
    }
}

/// `AQUMEN_BLESS=1` rewrites the schema.
#[test]
fn the_published_json_schema_is_current() {
    if std::env::var_os("AQUMEN_BLESS").is_some() {
        std::fs::write(SCHEMA, Scenario::json_schema()).unwrap();
    }
    let published = std::fs::read_to_string(SCHEMA).unwrap();
    assert!(
        published == Scenario::json_schema(),
        "docs/formats/scenario.schema.json is stale; run with AQUMEN_BLESS=1"
    );
}

/// Adds the rows of the documentation for `schema`: dotted path of the table, and the row.
fn rows(schema: &serde_json::Value, path: &str, found: &mut BTreeSet<(String, String)>) {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(|key| key.as_str()).collect();
    for (key, below) in schema["properties"].as_object().into_iter().flatten() {
        let default = match &below["default"] {
            serde_json::Value::Null if required.contains(&key.as_str()) => "required".into(),
            serde_json::Value::Null => "-".into(),
            serde_json::Value::Object(_) => "-".into(),
            serde_json::Value::String(text) => format!("`\"{text}\"`"),
            other => format!("`{other}`"),
        };
        let doc = below["description"].as_str().unwrap_or("");
        found.insert((path.into(), format!("| `{key}` | {} | {default} | {doc} |", kind(below))));
        rows(below, &if path.is_empty() { key.clone() } else { format!("{path}.{key}") }, found);
    }
    for choice in ["oneOf", "anyOf"] {
        schema[choice].as_array().into_iter().flatten().for_each(|below| rows(below, path, found));
    }
    rows_below(&schema["items"], path, found);
    rows_below(&schema["additionalProperties"], &format!("{path}.NAME"), found);
}

fn rows_below(schema: &serde_json::Value, path: &str, found: &mut BTreeSet<(String, String)>) {
    if schema.is_object() {
        rows(schema, path, found);
    }
}

/// Kind of a value, as the documentation names it.
fn kind(schema: &serde_json::Value) -> String {
    if let Some(choices) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
        let mut kinds: Vec<String> = choices.iter().map(kind).collect();
        kinds.dedup();
        return kinds.join(" or ");
    }
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
        return words.join(", ");
    }
    if schema["pattern"].is_string() {
        return "name".into();
    }
    match (schema["format"].as_str(), schema["type"].as_str()) {
        (Some(format), _) => format.into(),
        (None, Some("array")) if schema["maxItems"] == 2 => "range".into(),
        (None, Some("array")) => "list".into(),
        (None, Some("object")) => "table".into(),
        (None, Some("string")) => "text".into(),
        (None, kind) => kind.unwrap_or("value").into(),
    }
}

/// Lines of the documentation, each with the table of its section, such as "## `[topology.bottleneck]`".
fn tables(docs: &str) -> impl Iterator<Item = (String, &str)> {
    docs.lines().scan(String::new(), |table, line| {
        if line.starts_with('#') {
            *table = line.split('`').nth(1).unwrap_or("").trim_matches(['[', ']']).to_string();
        }
        Some((table.clone(), line))
    })
}

fn is_row(line: &str) -> bool {
    line.starts_with("| `")
}

/// Returns `docs` with the rows of `known`: wrong rows are replaced, new ones end the first part of their table.
fn with_rows(docs: &str, known: &BTreeSet<(String, String)>) -> String {
    let there: BTreeSet<_> = tables(docs).map(|(table, line)| (table, line.to_string())).collect();
    let mut new: Vec<_> = known.difference(&there).collect();
    let (mut made, mut before) = (String::new(), None::<String>);
    for (table, line) in tables(docs) {
        if !is_row(line) || known.contains(&(table.clone(), line.to_string())) {
            if let Some(before) = before.take_if(|_| !is_row(line)) {
                let its_keys: Vec<_> = there.iter().filter(|row| row.0 == before && !known.contains(row)).collect();
                let replaces = |row: &str| its_keys.iter().any(|(_, old)| key_of(old) == key_of(row));
                let (now, later) = new.into_iter().partition(|row| row.0 == before && !replaces(&row.1));
                new = later;
                let now: Vec<&(String, String)> = now;
                now.iter().for_each(|(_, row)| made += &format!("{row}\n"));
            }
            made += &format!("{line}\n");
        } else if let Some(place) = new.iter().position(|row| row.0 == table && key_of(&row.1) == key_of(line)) {
            made += &format!("{}\n", new.remove(place).1);
        }
        if is_row(line) {
            before = Some(table);
        }
    }
    made
}

/// The first cell of a row.
fn key_of(row: &str) -> &str {
    &row[..row.find("` |").map_or(row.len(), |end| end + 3)]
}

#[test]
fn every_model_of_a_medium_has_a_section_in_the_documentation() {
    let docs = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/links.md")).unwrap();
    for model in MODELS {
        assert!(docs.contains(&format!("\n### `{model}`")), "docs/links.md has no section for {model}");
    }
}

/// `AQUMEN_BLESS=1` rewrites the rows.
#[test]
fn the_documentation_has_every_key_with_kind_default_and_meaning() {
    let schema: serde_json::Value = serde_json::from_str(&Scenario::json_schema()).unwrap();
    let mut known = BTreeSet::new();
    rows(&schema, "", &mut known);
    // Tables in several places are described once.
    known.retain(|(path, _)| {
        let elsewhere = path.ends_with(".access") && path != "topology.access"
            || path.ends_with(".reverse") && path != "topology.bottleneck.reverse"
            || [".start", ".extra_rtt", "access.delay"].iter().any(|end| path.ends_with(end))
            || [".rate", ".channel", ".loss", ".loss.burst"].iter().any(|table| path.ends_with(table))
                && (!path.starts_with("topology.bottleneck.") || path.contains(".reverse."))
            || path == "events.loss";
        // docs/traffic.md has the kinds of traffic.
        !elsewhere && !path.starts_with("flows.traffic")
    });
    let mut docs = std::fs::read_to_string(DOCS).unwrap();
    if std::env::var_os("AQUMEN_BLESS").is_some() {
        docs = with_rows(&docs, &known);
        std::fs::write(DOCS, &docs).unwrap();
    }
    let documented =
        tables(&docs).filter(|(_, line)| is_row(line)).map(|(table, line)| (table, line.to_string())).collect();
    let missing: Vec<_> = known.difference(&documented).map(|(table, row)| format!("[{table}] {row}")).collect();
    let wrong: Vec<_> = documented.difference(&known).map(|(table, row)| format!("[{table}] {row}")).collect();
    assert!(missing.is_empty() && wrong.is_empty(), "missing:\n{}\nwrong:\n{}", missing.join("\n"), wrong.join("\n"));
}

#[test]
fn the_examples_of_the_documentation_are_valid() {
    let docs = std::fs::read_to_string(DOCS).unwrap();
    let mut examples = 0;
    for block in docs.split("```toml\n").skip(1) {
        let text = block.split("```").next().unwrap();
        if text.starts_with("name = ") {
            parse(text).plan(1, None).unwrap();
            examples += 1;
        }
    }
    assert!(examples >= 2);
}

#[test]
fn a_written_scenario_reads_back_the_same() {
    let rate = "rate = \"8Mbit\"";
    let lte = "channel = { model = \"lte\", cqi = 7.5 }\nloss = { bit_errors = 1e-7, burst = { to_bad = 0.1, to_good = 0.5 } }";
    let steps = "rate = { steps = [[\"0s\", \"8Mbit\"], [\"5s\", \"4Mbit\"]], period = \"10s\" }";
    let events = "[[events]]\nat = \"5s\"\naqm = { target = \"50pkt\", ecn = false }\n[[events]]\nat = \"6s\"\nstate = \"down\"\n";
    let media = [lte, steps].map(|new| common::with(DUMBBELL, rate, new) + events);
    for text in [DUMBBELL, GRAPH, PARKING_LOT, &media[0], &media[1]] {
        let scenario = parse(text);
        let again = parse(&scenario.to_toml());
        assert_eq!(again.spec(), scenario.spec());
        assert_eq!(again.to_toml(), scenario.to_toml());
        assert_eq!(again.plan(7, None), scenario.plan(7, None));
    }
}

/// Valid overrides, with values of every kind.
fn right_override() -> impl Strategy<Value = (&'static str, String)> {
    let time = |key: &'static str, low: u64, high: u64| (low..high).prop_map(move |ns| (key, format!("{ns}ns")));
    let packets = |key: &'static str| (1u32..1_000_000).prop_map(move |n| (key, format!("{n}pkt")));
    let rate = |key: &'static str| (1u64..1_000_000_000_000).prop_map(move |bps| (key, format!("{bps}bit")));
    let text = |key: &'static str| any::<String>().prop_map(move |text| (key, toml::Value::String(text).to_string()));
    prop_oneof![
        rate("topology.bottleneck.rate"),
        rate("topology.access.rate"),
        (0.0f64..=1.0).prop_map(|p| ("bottleneck.loss", format!("{p:?}"))),
        (0.0f64..=1.0).prop_map(|p| ("access.loss", format!("{{ bit_errors = {p:?} }}"))),
        (0.0f64..=1.0, 1e-6f64..=1.0)
            .prop_map(|(p, r)| ("bottleneck.loss", format!("{{ burst = {{ to_bad = {p:?}, to_good = {r:?} }} }}"))),
        (1u64..1_000_000, 1u64..1_000_000_000).prop_map(|(ms, bps)| {
            ("bottleneck.rate", format!("{{ steps = [[\"0s\", \"1Mbit\"], [\"{ms}ms\", \"{bps}bit\"]] }}"))
        }),
        rate("bottleneck.reverse.rate"),
        rate("nominal.capacity"),
        time("topology.bottleneck.delay", 0, 1_000_000_000_000),
        time("flows.ftp.extra_rtt", 0, 10_000_000_000),
        time("flows.ftp.stop", 1_000_000_001, 100_000_000_000),
        time("nominal.base_rtt", 1, 100_000_000_000),
        time("windows.mine", 0, 100_000_000_000),
        time("flows.ftp.transport.min_rto", 1, 1_000_000_000),
        packets("bottleneck.buffer"),
        packets("topology.access.buffer"),
        packets("nominal.target"),
        packets("flows.ftp.transport.receive_window"),
        (1e-3f64..1e6).prop_map(|x| ("nominal.target", format!("{x}pkt"))),
        (1e-300f64..1e9).prop_map(|x| ("nominal.flows", format!("{x:?}"))),
        (1e-300f64..1e9).prop_map(|x| ("aqms.mine", format!("{{ algorithm = \"pi\", a = {x:?}, ecn = false }}"))),
        (1_000u64..1_000_000_000_000).prop_map(|n| ("bottleneck.buffer", format!("{n}B"))),
        (1u64..1_000_000_000_000).prop_map(|n| ("flows.ftp.transfer", format!("{n}B"))),
        (1u32..5).prop_map(|n| ("flows.ftp.count", n.to_string())),
        text("title"),
        text("description"),
        (0u64..1_000_000_000, 0u64..1_000_000_000)
            .prop_map(|(a, b)| { ("flows.ftp.start", format!("[\"{}ns\", \"{}ns\"]", a.min(b), a.max(b))) }),
    ]
}

/// Text with bytes removed, repeated or replaced.
fn mutated(text: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let change = (0usize..text.len(), 0usize..40, prop::collection::vec(any::<u8>(), 0..8));
    prop::collection::vec(change, 1..6).prop_map(move |changes| {
        let mut bytes = text.as_bytes().to_vec();
        for (at, length, new) in changes {
            let at = at.min(bytes.len());
            let end = (at + length).min(bytes.len());
            bytes.splice(at..end, new);
        }
        bytes
    })
}

/// Asserts that any bytes give a scenario that is planned or refused, or an error of one line.
fn survives(bytes: &[u8]) {
    match Scenario::from_bytes(bytes, "f.toml", &[]) {
        Err(error) => {
            let message = error.to_string();
            assert!(message.lines().count() == 1 && message.starts_with("f.toml"), "{message:?}");
        }
        Ok(scenario) => {
            assert_eq!(parse(&scenario.to_toml()).spec(), scenario.spec());
            if scenario.check_memory(1, 64 << 20).is_ok()
                && let Err(error) = scenario.plan(1, None)
            {
                assert_eq!(error.to_string().lines().count(), 1);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_changed_scenario_reads_back_too(overrides in prop::collection::vec(right_override(), 0..8)) {
        let mut scenario = parse(DUMBBELL);
        for (key, value) in overrides {
            scenario = scenario.with(key, &value).unwrap_or_else(|error| panic!("{error}"));
        }
        let again = parse(&scenario.to_toml());
        prop_assert_eq!(again.spec(), scenario.spec());
    }

    #[test]
    fn arbitrary_text_is_refused_in_one_line(text in any::<String>()) {
        survives(text.as_bytes());
    }

    #[test]
    fn a_damaged_scenario_never_panics(bytes in prop_oneof![mutated(DUMBBELL), mutated(GRAPH), mutated(PARKING_LOT)]) {
        survives(&bytes);
    }

    #[test]
    fn a_swapped_value_never_panics(key in 0usize..24, value in prop_oneof![
        Just("nan"), Just("inf"), Just("-1"), Just("0"), Just("1e308"), Just("\"\""), Just("\"0s\""), Just("\"1ns\""),
        Just("\"86400s\""), Just("\"1bit\""), Just("\"10Tbit\""), Just("\"1e9pkt\""), Just("[]"), Just("{}"), Just("true"),
        Just("[\"0s\", \"86400s\"]"), Just("4294967295"), Just("10000000"), Just("9223372036854775807"),
    ]) {
        let lines: Vec<&str> = GRAPH.lines().collect();
        let settings: Vec<usize> = (0..lines.len()).filter(|i| lines[*i].contains(" = ")).collect();
        let at = settings[key * settings.len() / 24];
        let name = lines[at].split(" = ").next().unwrap();
        let changed = format!("{name} = {value}");
        let text: Vec<&str> = lines.iter().enumerate().map(|(i, line)| if i == at { changed.as_str() } else { line }).collect();
        survives(text.join("\n").as_bytes());
    }

    #[test]
    fn arbitrary_specs_and_overrides_are_refused_in_one_line(text in "\\PC*", key in "[a-z.0-9]{0,20}") {
        let scenario = parse(GRAPH);
        for spec in [text.clone(), format!("pi:{text}"), format!("pi:a={text}")] {
            if let Err(error) = scenario.aqm(&spec) {
                prop_assert_eq!(error.to_string().lines().count(), 1);
            }
        }
        if let Err(error) = scenario.with(&key, &text) {
            prop_assert_eq!(error.to_string().lines().count(), 1);
        }
    }
}

#[test]
fn files_may_be_handed_in() {
    let text = "name = \"t\"\nduration = \"3s\"\naqm = \"droptail\"\n[topology]\npreset = \"dumbbell\"\n[topology.bottleneck]\n\
                rate = { csv = \"day.csv\" }\ndelay = \"10ms\"\nbuffer = \"100pkt\"\n[topology.access]\nrate = \"1Gbit\"\ndelay = \"1ms\"\n\
                [[flows]]\nname = \"bulk\"\ntransport = \"modern\"\n";
    let files = Files::in_memory([("day.csv".to_string(), b"0,8000000\n1,2000000\n".to_vec())]);
    let scenario = Scenario::parse_with(text, "t.toml", files).unwrap_or_else(|error| panic!("{error}"));
    let rates = |scenario: &Scenario| scenario.plan(1, None).unwrap().links[0].rates.len();
    assert_eq!(rates(&scenario), 2);
    // A change reads them again.
    assert_eq!(rates(&scenario.with("duration", "2s").unwrap()), 2);
    let absent = Scenario::parse_with(text, "t.toml", Files::in_memory([])).unwrap_err();
    assert!(absent.to_string().contains("day.csv: was not given"), "{absent}");
}
