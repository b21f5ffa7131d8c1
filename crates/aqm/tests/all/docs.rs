//! The tables in `docs/aqms` equal the registry. `AQUMEN_WRITE_DOCS=1 cargo test -p aqumen-aqm
//! --test all docs` rewrites them.

use std::fmt::Write;
use std::path::PathBuf;

use aqumen_aqm::registry::{PROFILES, QueueKind, algorithms, find};
use aqumen_aqm::{Bound, DefaultValue, Kind, Param, Unit, Value};

fn path(page: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/aqms").join(format!("{page}.md"))
}

/// Checks that the part of `page` called `part` is `expected`, or writes it.
fn check(page: &str, part: &str, expected: &str) {
    let (path, begin) = (path(page), format!("<!-- generated: {part} -->\n"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let start = text.find(&begin).unwrap_or_else(|| panic!("{page}.md has no {begin}")) + begin.len();
    let end = start + text[start..].find("<!-- end -->").unwrap_or_else(|| panic!("{page}.md: {part} does not end"));
    if std::env::var_os("AQUMEN_WRITE_DOCS").is_some() {
        std::fs::write(&path, format!("{}{expected}{}", &text[..start], &text[end..])).unwrap();
    } else {
        assert_eq!(&text[start..end], expected, "{page}.md is stale: run with AQUMEN_WRITE_DOCS=1");
    }
}

fn with_unit(param: &Param, value: Value<'_>) -> String {
    match param.kind {
        Kind::Number { unit, .. } => format!("{value} {}", unit.symbol()).trim_end().into(),
        _ => value.to_string(),
    }
}

fn range(param: &Param) -> String {
    match param.kind {
        Kind::Flag => "true, false".into(),
        Kind::Choice(words) => words.join(", "),
        Kind::Number { min, max, .. } => {
            let low = match min {
                Bound::Inclusive(x) => format!("at least {x}"),
                Bound::Exclusive(x) => format!("above {x}"),
                Bound::Open => "any".into(),
            };
            match max {
                Bound::Inclusive(x) => format!("{low}, at most {x}"),
                Bound::Exclusive(x) => format!("{low}, below {x}"),
                Bound::Open => low,
            }
        }
    }
}

fn parameters(params: &[Param]) -> String {
    let mut table = String::from("| name | unit | default | range | what it is |\n|---|---|---|---|---|\n");
    for param in params {
        let unit = match param.kind {
            Kind::Number { unit, .. } => unit.symbol(),
            _ => "",
        };
        let default = match param.default {
            DefaultValue::Value(value) => format!("`{}`", with_unit(param, value)),
            DefaultValue::Designed(rule) => rule.into(),
        };
        writeln!(table, "| `{}` | {unit} | {default} | {} | {} |", param.name, range(param), param.doc).unwrap();
    }
    table
}

#[test]
fn every_algorithm_has_a_page_with_its_parameters() {
    for row in algorithms() {
        check(row.name, "parameters", &parameters(row.params));
        let text = std::fs::read_to_string(path(row.name)).unwrap();
        for heading in ["## Parameters", "## Deviations", "## Sources", "## Choosing values"] {
            assert!(text.contains(heading), "{}.md lacks {heading}", row.name);
        }
    }
}

#[test]
fn the_index_lists_every_algorithm_and_profile() {
    for (part, kind) in [("algorithms", QueueKind::Single), ("disciplines", QueueKind::Multi)] {
        let mut table = String::from("| name | what it does | source |\n|---|---|---|\n");
        for row in algorithms().filter(|row| row.kind() == kind) {
            writeln!(table, "| [`{0}`]({0}.md) | {1} | {2} |", row.name, row.summary, row.reference).unwrap();
        }
        check("README", part, &table);
    }

    let mut profiles = String::from("| name | same as | what it is |\n|---|---|---|\n");
    for profile in PROFILES {
        let params = find(profile.algorithm).unwrap().params;
        let setting = |(key, value): &(&str, Value<'_>)| {
            let unit = match params.iter().find(|param| param.name == *key).map(|param| param.kind) {
                Some(Kind::Number { unit, .. }) if unit != Unit::PerPacket => unit.symbol(),
                _ => "",
            };
            format!("{key}={value}{unit}")
        };
        let settings: Vec<_> = profile.settings.iter().map(setting).collect();
        let spec = format!("{}:{}", profile.algorithm, settings.join(","));
        writeln!(profiles, "| `{}` | `{spec}` | {} |", profile.name, profile.doc).unwrap();
    }
    check("README", "profiles", &profiles);
}

#[test]
fn the_index_shows_the_threshold_functions_parameters() {
    check("README", "threshold", &parameters(aqumen_aqm::threshold::PARAMS));
}
