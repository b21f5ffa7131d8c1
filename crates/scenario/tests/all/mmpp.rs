//! Model files of the queueing analysis: read, refused in one line, written back; the schema and its documentation.

use std::collections::BTreeSet;

use aqumen_scenario::mmpp::{File, Threshold};

const SCHEMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/mmpp.schema.json");
const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/mmpp.md");
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/mmpp");

const MODEL: &str = r#"name = "m"

[queue]
buffer = "20pkt"
service = "975pkt/s"
stages = 4

[[sources]]
name = "video"
rates = ["300pkt/s", "80pkt/s"]
generator = [[-2.0, 2.0], [1.0, -1.0]]

[[sources]]
name = "voice"
minisources = { count = 30, on = "500ms", off = "1s", rate = "40pkt/s" }
"#;

fn parse(text: &str) -> File {
    File::parse(text, "m.toml").unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the error of `MODEL` with `old`, which occurs once, replaced by `new`.
fn error(old: &str, new: &str) -> String {
    assert_eq!(MODEL.matches(old).count(), 1, "{old:?}");
    let message = File::parse(&MODEL.replace(old, new), "m.toml").expect_err("the model is wrong").to_string();
    assert_eq!(message.lines().count(), 1, "{message}");
    message
}

/// Returns the error of `MODEL` with `more` at its end.
fn more(more: &str) -> String {
    let message = File::parse(&format!("{MODEL}{more}"), "m.toml").expect_err("the model is wrong").to_string();
    assert_eq!(message.lines().count(), 1, "{message}");
    message
}

#[test]
fn mistakes_are_named_with_file_line_and_key() {
    assert_eq!(
        error("stages = 4", "stage = 4"),
        "m.toml:6: queue.stage: unknown key; did you mean stages? known: buffer, service, link, packet, stages"
    );
    assert_eq!(error("stages = 4", "stages = 0"), "m.toml:6: queue.stages = 0: must be 1 to 10000");
    assert_eq!(
        error("buffer = \"20pkt\"", "buffer = \"20kB\""),
        "m.toml:4: queue.buffer = \"20kB\": must be in packets, such as \"20pkt\""
    );
    assert_eq!(
        error("buffer = \"20pkt\"", "buffer = \"10000001pkt\""),
        "m.toml:4: queue.buffer = \"10000001pkt\": must be at most 10000000pkt"
    );
    parse(&MODEL.replace("buffer = \"20pkt\"", "buffer = \"10000000pkt\""));
    assert_eq!(
        error("\"975pkt/s\"", "\"975\""),
        "m.toml:5: queue.service = \"975\": needs a unit, such as \"975pkt/s\""
    );
    assert_eq!(error("\"975pkt/s\"", "\"0pps\""), "m.toml:5: queue.service = \"0pps\": must be above 0pkt/s");
    assert_eq!(
        error("\"975pkt/s\"", "\"1Mbit\""),
        "m.toml:5: queue.service = \"1Mbit\": unknown unit \"Mbit\"; use pkt/s, kpkt/s, Mpkt/s"
    );
    assert!(error("\"80pkt/s\"", "\"-80pkt/s\"").contains("must be a packet rate of at least 0pkt/s"));
    assert!(error("service = \"975pkt/s\"", "").starts_with("m.toml:3: queue: service is missing; write service = "));
    assert!(error("service = \"975pkt/s\"", "link = \"10Mbit\"").contains("packet is missing; link needs it"));
    assert!(
        error("stages = 4", "link = \"10Mbit\"").contains("queue.link = \"10Mbit\": give service or link, not both")
    );
    assert!(error("stages = 4", "packet = \"1000B\"").contains("belongs to link"));
    assert!(error("name = \"voice\"", "name = \"video\"").contains("sources.1.name = \"video\": there is another"));
    assert!(error("count = 30", "count = 0").contains("sources.1.minisources.count = 0: must be 1 to 4095"));
    assert!(error("on = \"500ms\"", "on = \"0s\"").contains("must be above 0s"));
    assert!(error("generator = [[-2.0, 2.0], [1.0, -1.0]]", "").contains("rates and generator belong together"));
    assert!(
        error("name = \"voice\"", "name = \"voice\"\nrate = \"1pps\"").contains("must have one of rate, rates with")
    );
    assert!(
        error("count = 30,", "count = 30, model = \"exakt\",").contains("did you mean exact? known: exact, two-state")
    );
    assert_eq!(
        File::parse("name = \"m\"\n[queue]\nbuffer = \"2pkt\"\nservice = \"1pps\"\n", "m.toml")
            .unwrap_err()
            .to_string(),
        "m.toml:1: sources: a model needs a source, or preset = \"paper16\""
    );
    assert_eq!(
        more("[early]\nthreshold = 1.5\n"),
        "m.toml:17: early.threshold = 1.5: as a share of the buffer it must be 0 to 1; packets are written \"15pkt\""
    );
    assert!(
        more("[early]\naction = \"mark\"\n")
            .contains("early: threshold is missing; give threshold, thresholds or adapt")
    );
    assert!(
        more("[early.thresholds]\nvidio = 0.5\n").contains("no such source; did you mean video? known: video, voice")
    );
    assert!(more("[early]\nthreshold = 0.5\nadapt = {}\n").contains("give thresholds or adapt, not both"));
    assert!(more("[early]\naction = \"mark\"\nadapt = {}\n").contains("marks do not change losses"));
    assert!(more("[early.adapt]\nlowest = 0.9\nhighest = 0.5\n").contains("must have 0 <= lowest <= highest <= 1"));
    assert!(more("[early.adapt]\nstep = 0.0\n").contains("must be at least 0.0001"));
    assert!(more("[early.adapt]\nloss = 1.0\n").contains("must be at least 0, below 1"));
    assert!(more("[simulate]\nseeds = 1\n").contains("one run has no confidence interval"));
    assert!(more("[simulate]\nduration = \"0s\"\n").contains("must be above 0s"));
    assert!(more("[[sources]]\nname = \"t\"\ntrace = { file = \"x\", components = 4 }\n").contains("must be 1 to 3"));
    assert!(File::load("/nonexistent/m.toml", &[]).unwrap_err().to_string().contains("cannot read"));
}

#[test]
fn values_can_be_overridden_and_errors_of_the_solver_find_their_line() {
    let file = File::parse_with(MODEL, "m.toml", &[("queue.stages", "7"), ("sources.video.name", "tv")]).unwrap();
    assert_eq!((file.spec().queue.stages, file.spec().sources[0].name.0.as_str()), (Some(7), "tv"));
    assert_eq!(
        file.error("sources.0.generator", "wrong").to_string(),
        "m.toml:11: sources.0.generator = [[-2, 2], [1, -1]]: wrong"
    );
}

#[test]
fn thresholds_are_packets_or_fractions() {
    let file = parse(&format!("{MODEL}[early]\nthreshold = 0.75\nthresholds = {{ voice = \"5pkt\" }}\n"));
    let early = file.spec().early.as_ref().unwrap();
    assert_eq!(early.threshold, Some(Threshold::Fraction(0.75)));
    assert_eq!(early.threshold.unwrap().packets(20), 15.0);
    assert_eq!(early.thresholds.get("voice").unwrap().packets(20), 5.0);
}

#[test]
fn every_example_reads_and_reads_back_the_same() {
    let mut read = 0;
    for entry in std::fs::read_dir(EXAMPLES).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let file = File::load(&path, &[]).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(parse(&file.spec().to_toml()).spec(), file.spec(), "{}", path.display());
            read += 1;
        }
    }
    assert!(read >= 5, "{read}");
}

#[test]
fn admission_is_checked() {
    let admission = |find: &str, loss: &str| more(&format!("[admit]\nfind = \"{find}\"\nloss = {loss}\n"));
    assert!(admission("loads", "0.01").contains("admit.find = \"loads\": no such choice; did you mean load?"));
    for wrong in ["0.0", "1.0", "-0.1", "2"] {
        let told = admission("load", wrong);
        assert!(
            told.contains("admit.loss = ") && told.ends_with("must be above 0 and below 1, such as 0.01"),
            "{told}"
        );
    }
    assert!(more("[admit]\nfind = \"load\"\n").contains("loss"));
    let early = "[early]\nthreshold = 0.5\n[admit]\nloss = 0.01\n";
    assert!(more(&format!("{early}find = \"threshold\"\n")).ends_with("excludes early"));
    parse(&format!("{MODEL}{early}find = \"load\"\n"));
    let adapt = "[early.adapt]\nloss = 0.02\n[admit]\nloss = 0.01\nfind = \"load\"\n";
    assert!(more(adapt).ends_with("give admit or early.adapt, not both"), "{}", more(adapt));
}

/// `AQUMEN_BLESS=1` rewrites the schema.
#[test]
fn the_published_json_schema_is_current() {
    if std::env::var_os("AQUMEN_BLESS").is_some() {
        std::fs::write(SCHEMA, File::json_schema()).unwrap();
    }
    let published = std::fs::read_to_string(SCHEMA).unwrap();
    assert!(published == File::json_schema(), "docs/formats/mmpp.schema.json is stale; run with AQUMEN_BLESS=1");
}

/// Adds the dotted keys of a schema; keys of a list's elements appear as those of the list.
fn keys(schema: &serde_json::Value, path: &str, found: &mut BTreeSet<String>) {
    for (key, below) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        keys(below, &path, found);
        found.insert(path);
    }
    if schema["items"].is_object() {
        keys(&schema["items"], path, found);
    }
}

#[test]
fn the_documentation_names_every_key_and_no_other() {
    let schema: serde_json::Value = serde_json::from_str(&File::json_schema()).unwrap();
    let mut expected = BTreeSet::new();
    keys(&schema, "", &mut expected);
    let text = std::fs::read_to_string(DOCS).unwrap();
    let part = text.split("<!-- keys -->").nth(1).expect("docs/formats/mmpp.md has its keys between <!-- keys -->");
    let named: BTreeSet<String> =
        part.lines().filter_map(|line| Some(line.strip_prefix("| `")?.split('`').next()?.to_string())).collect();
    assert_eq!(named, expected);
}
