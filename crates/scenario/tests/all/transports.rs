//! The pages of docs/transports: their tables of presets are generated from `aqumen list transports`.

use aqumen_scenario::{Scenario, list};
use serde_json::Value;

use crate::common::{DUMBBELL, with};

const PAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/transports");

/// Markers before and after a table of settings; between `BEGIN` and `-->` are the presets of the table.
const BEGIN: &str = "<!-- settings: ";
const END: &str = "\n<!-- end -->";

/// The settings of `preset`: name, value, meaning.
fn settings(preset: &str) -> Vec<(String, String, String)> {
    let all = list::transports();
    let row = all.as_array().unwrap().iter().find(|row| row["name"] == preset);
    let row = row.unwrap_or_else(|| panic!("there is no preset {preset}"));
    let text = |value: &Value| match value {
        Value::Null => "none".to_string(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_string(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let settings = row["params"].as_array().unwrap().iter();
    settings.map(|param| (text(&param["name"]), text(&param["default"]), text(&param["doc"]))).collect()
}

/// One row for each setting, one column for each of `presets`.
fn table(presets: &str) -> String {
    let presets: Vec<&str> = presets.split_whitespace().collect();
    let columns: Vec<_> = presets.iter().map(|preset| settings(preset)).collect();
    let heads: String = presets.iter().map(|preset| format!(" `{preset}` |")).collect();
    let mut text = format!("| setting |{heads} meaning |\n|---|{}---|\n", "---|".repeat(presets.len()));
    for (i, (name, _, meaning)) in columns[0].iter().enumerate() {
        let cells: String = columns.iter().map(|column| format!(" {} |", column[i].1)).collect();
        text += &format!("| `{name}` |{cells} {meaning} |\n");
    }
    text
}

/// `AQUMEN_BLESS=1` rewrites the tables.
#[test]
fn the_pages_have_every_setting_of_each_preset() {
    for (file, tables) in [("tcp.md", 1), ("sctp.md", 1), ("rtp.md", 1), ("udp.md", 1)] {
        let path = format!("{PAGES}/{file}");
        let page = std::fs::read_to_string(&path).unwrap();
        let mut parts = page.split(BEGIN);
        let mut made = parts.next().unwrap().to_string();
        for part in parts {
            let (presets, rest) = part.split_once(" -->\n\n").unwrap();
            let (_, rest) = rest.split_once(END).unwrap_or_else(|| panic!("{file}: a table without an end"));
            made += &format!("{BEGIN}{presets} -->\n\n{}{END}{rest}", table(presets));
        }
        assert_eq!(made.matches(BEGIN).count(), tables, "{file}");
        if std::env::var_os("AQUMEN_BLESS").is_some() {
            std::fs::write(&path, &made).unwrap();
        } else {
            assert!(page == made, "docs/transports/{file} is stale; run with AQUMEN_BLESS=1");
        }
    }
}

#[test]
fn the_page_of_congestion_controls_names_what_each_preset_changes() {
    let page = std::fs::read_to_string(format!("{PAGES}/congestion.md")).unwrap();
    let (_, rows) = page.split_once("further differences from `modern`").unwrap();
    let modern = settings("modern");
    for preset in ["cubic", "dctcp", "prague", "bbr", "vegas", "ledbat"] {
        let changed = settings(preset).into_iter().zip(&modern).filter(|(new, old)| new.1 != old.1);
        let names: Vec<String> = changed.map(|(new, _)| new.0).filter(|name| name != "congestion").collect();
        let row = rows.lines().find(|line| line.starts_with(&format!("| `{preset}` |"))).unwrap_or_default();
        for name in &names {
            assert!(row.contains(&format!("`{name}`")), "{preset} changes {name}: {row:?}");
        }
        let words = if names.is_empty() { 0 } else { names.len() + 1 };
        assert_eq!(row.matches('`').count() / 2, words, "{preset}: {row:?}");
    }
}

#[test]
fn every_setting_has_its_documented_range() {
    // (preset, setting, least and largest accepted value, values beyond)
    for (preset, setting, within, beyond) in [
        ("sctp", "streams", &["1", "3", "65535"][..], &["0", "65536", "-1", "1.5"][..]),
        (
            "linux",
            "restart_window",
            &["\"1pkt\"", "\"1073741824pkt\"", "\"none\""],
            &["\"0pkt\"", "\"1073741825pkt\"", "\"1.5pkt\""],
        ),
        ("linux", "initial_window", &["\"1pkt\"", "\"1073741824pkt\""], &["\"0pkt\"", "\"1073741825pkt\"", "\"none\""]),
        ("linux", "max_burst", &["\"1pkt\"", "\"254pkt\"", "\"none\""], &["\"0pkt\"", "\"255pkt\""]),
        ("linux", "min_window", &["\"1pkt\"", "\"2pkt\""], &["\"0pkt\"", "\"2.01pkt\"", "\"-1pkt\""]),
        ("udp", "packet", &["\"65535B\""], &["\"65536B\"", "\"0B\"", "\"100.5B\""]),
    ] {
        let read = |value: &str| {
            let transport = format!("transport = {{ preset = \"{preset}\", {setting} = {value} }}");
            let traffic = if preset == "udp" { "\ntraffic = { kind = \"cbr\", rate = \"64kbit\" }" } else { "" };
            let text = with(DUMBBELL, "transport = \"ns2\"", &format!("{transport}{traffic}"));
            Scenario::parse(&text, "t.toml").map(|_| ()).map_err(|error| error.to_string())
        };
        for value in within {
            assert_eq!(read(value), Ok(()), "{preset}: {setting} = {value}");
        }
        for value in beyond {
            let refusal = read(value).unwrap_err();
            assert!(refusal.contains(setting), "{preset}: {setting} = {value}: {refusal}");
        }
    }
}
