//! Traffic in scenarios: every kind reads back, errors take one line, files are relative to the scenario, and
//! docs/traffic.md has every parameter.

use crate::common;

use aqumen_scenario::traffic::Scope;
use aqumen_scenario::{Scenario, Traffic, list};
use common::{DUMBBELL, error, parse, with};
use serde_json::Value;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The dumbbell with this traffic.
fn scenario(traffic: &str) -> String {
    with(DUMBBELL, "transport = \"ns2\"", &format!("transport = \"ns2\"\ntraffic = {traffic}"))
}

fn traffic(value: &str) -> Traffic {
    parse(&scenario(value)).spec().flows[0].traffic.clone()
}

/// The error about the traffic, without file and line.
fn wrong(value: &str) -> String {
    let message = error(&scenario(value));
    assert_eq!(message.lines().count(), 1, "{message}");
    message.split_once("flows.0.").unwrap_or_else(|| panic!("{message}")).1.into()
}

/// Every kind, and every law.
const RIGHT: &[&str] = &[
    "\"bulk\"",
    "{ kind = \"transfers\", rate = \"20/s\", size = { law = \"pareto\", mean = \"10kB\", shape = 1.2, max = \"10MB\" } }",
    "{ kind = \"transfers\", load = \"2Mbit\", size = { law = \"exponential\", mean = \"10kB\" }, new_connection = false }",
    "{ kind = \"transfers\", think = { law = \"lognormal\", mean = \"1s\", std = \"2s\" }, size = \"1MB\" }",
    "\"web\"",
    "{ kind = \"web\", pages = 3, connection = \"session\", objects = { law = \"uniform\", min = 0, max = 4 } }",
    "{ kind = \"web\", connections = 6 }",
    "{ kind = \"cbr\", rate = \"64kbit\", packet = \"160B\" }",
    "{ kind = \"poisson\", rate = \"100pkt/s\", packet = { law = \"empirical\", cdf = [[\"40B\", 0.5], [\"1500B\", 1.0]] } }",
    "{ kind = \"on-off\", rate = \"1Mbit\", on = { law = \"pareto\", mean = \"500ms\", shape = 1.5 }, off = \"1s\" }",
    "{ kind = \"self-similar\", rate = \"1Mbit\", hurst = 0.75, sources = 10, on = \"1s\", off = \"2s\" }",
    "{ kind = \"voip\", codec = \"g729\", talk = { law = \"erlang\", mean = \"1s\", stages = 2 }, suppress = false }",
    "{ kind = \"mmpp\", preset = \"paper8\", source = \"www-ftp\" }",
    "{ kind = \"mmpp\", rates = [\"10pkt/s\", \"0pkt/s\"], generator = [[-1.0, 1.0], [0.5, -0.5]], packet = \"500B\" }",
    "\"adaptive-video\"",
    "{ kind = \"adaptive-video\", ladder = [\"1Mbit\", \"3Mbit\"], segment = \"2s\", buffer = \"8s\", play_at = \"8s\", \
     memory = 1, share = 1.0, length = \"9s\" }",
    "\"video\"",
    "{ kind = \"video\", rate = \"2Mbit\", fps = 25.0 }",
    "{ kind = \"mmpp\", minisources = { count = 10, on = \"1s\", off = \"2s\", rate = \"5pkt/s\" } }",
];

#[test]
fn every_kind_reads_back_and_reaches_the_plan() {
    for value in RIGHT {
        let scenario = parse(&scenario(value));
        let again = parse(&scenario.to_toml());
        assert_eq!(again.spec(), scenario.spec(), "{value}");
        let plan = scenario.plan(1, None).unwrap();
        assert_eq!(plan.groups[0].traffic, scenario.spec().flows[0].traffic);
    }
    let all: Vec<Traffic> = RIGHT.iter().map(|value| traffic(value)).collect();
    let kinds: Vec<&str> = all.iter().map(Traffic::kind).collect();
    let listed = list::traffic();
    for row in listed.as_array().unwrap() {
        let name = row["name"].as_str().unwrap();
        assert!(kinds.contains(&name), "{name} is not tried here");
    }
}

#[test]
fn the_name_of_a_kind_is_short_for_its_table() {
    assert_eq!(traffic("\"voip\""), traffic("{ kind = \"voip\" }"));
    let opened = parse(&scenario("\"voip\"")).with("flows.0.traffic.codec", "g729").unwrap();
    assert_eq!(opened.spec().flows[0].traffic, traffic("{ kind = \"voip\", codec = \"g729\" }"));
}

#[test]
fn only_an_open_loop_belongs_to_the_group() {
    for value in RIGHT {
        let of_group = value.contains("rate = \"20/s\"") || value.contains("load = ");
        assert_eq!(traffic(value).scope() == Scope::Group, of_group, "{value}");
    }
}

#[test]
fn invalid_values_are_refused_in_one_line() {
    for (value, message) in [
        ("\"vop\"", "traffic = \"vop\": no such kind of traffic; did you mean voip? known: bulk, transfers, "),
        ("{ rate = \"1Mbit\" }", "traffic: kind is missing; such as kind = \"cbr\""),
        ("\"cbr\"", "traffic.rate: missing; it must be a rate, such as \"8Mbit\""),
        ("{ kind = \"cbr\", rte = \"1Mbit\" }", "traffic.rte: unknown key; did you mean rate? known: rate, packet"),
        (
            "{ kind = \"cbr\", rate = \"1Mbit\", packet = \"70kB\" }",
            "traffic.packet = \"70kB\": must be at most 65507B",
        ),
        (
            "{ kind = \"cbr\", rate = \"10Tbit\", packet = \"1B\" }",
            "traffic.rate = \"10Tbit\": gives more than 1e9 packets",
        ),
        ("{ kind = \"transfers\", size = \"1kB\" }", "traffic: must have one of rate, load and think"),
        ("{ kind = \"transfers\", size = \"0B\", rate = \"1/s\" }", "traffic.size = \"0B\": must have a mean above 0"),
        ("{ kind = \"transfers\", size = \"1kB\", rate = \"0/s\" }", "traffic.rate = \"0/s\": must be above 0/s"),
        (
            "{ kind = \"transfers\", rate = \"1/s\", size = { law = \"pareto\", mean = \"1kB\", shape = 0.9 } }",
            "traffic.size.shape = 0.9: must be above 1",
        ),
        (
            "{ kind = \"transfers\", rate = \"1/s\", size = { law = \"zipf\", mean = \"1kB\" } }",
            "traffic.size.law = \"zipf\": no such law; known: uniform, ",
        ),
        (
            "{ kind = \"transfers\", rate = \"1/s\", size = { law = \"exponential\" } }",
            "traffic.size.mean: missing; it must be a size, such as",
        ),
        (
            "{ kind = \"transfers\", rate = \"1/s\", size = { law = \"exponential\", mean = 1000 } }",
            "traffic.size.mean = 1000: needs a unit, such as \"1000B\"",
        ),
        (
            "{ kind = \"poisson\", rate = \"1pkt/s\", packet = { law = \"empirical\", cdf = [[\"40B\", 0.9], [\"1kB\", 0.5]] } }",
            "traffic.packet.cdf = [[\"40B\", 0.9], [\"1kB\", 0.5]]: point 2: values and probabilities must ascend",
        ),
        ("{ kind = \"web\", connections = 0 }", "traffic.connections = 0: must be 1 to 64"),
        ("{ kind = \"web\", connections = 65 }", "traffic.connections = 65: must be 1 to 64"),
        (
            "{ kind = \"web\", main = { law = \"lognormal\", mean = \"1kB\", std = \"1kB\", min = \"1GB\" } }",
            "traffic.main: the bounds must leave at least 1 % of the law",
        ),
        (
            "{ kind = \"on-off\", rate = \"1kbit\", on = \"1us\", off = \"1s\" }",
            "traffic.on = \"1us\": must have a mean of at least a thousandth",
        ),
        ("{ kind = \"self-similar\", rate = \"1Mbit\", hurst = 1.0 }", "traffic.hurst = 1: must be above 0.5, below 1"),
        ("{ kind = \"voip\", codec = \"g719\" }", "traffic.codec = \"g719\": no such choice; did you mean"),
        ("\"mmpp\"", "traffic = \"mmpp\": must have one of preset, model, rates with generator, and minisources"),
        ("{ kind = \"mmpp\", preset = \"paper8\", source = \"ftp\" }", "traffic.source = \"ftp\": no such source"),
        (
            "{ kind = \"mmpp\", rates = [\"1pkt/s\"], generator = [[1.0]] }",
            "traffic.generator = [[1]]: row 1: the diagonal must be minus the sum of the others",
        ),
        ("{ kind = \"mmpp\", rates = [\"0pkt/s\"], generator = [[0.0]] }", "traffic: a source never sends"),
        (
            "{ kind = \"mmpp\", rates = [\"1pkt/s\", \"0pkt/s\"], generator = [[-1e8, 1e8], [1e8, -1e8]] }",
            "traffic: at most 1e9 packets per second, and 10000 changes of state for a packet",
        ),
        (
            "{ kind = \"adaptive-video\", ladder = [\"2Mbit\", \"1Mbit\"] }",
            "traffic.ladder = [\"2Mbit\", \"1Mbit\"]: must have one bit rate or more, each above the one before",
        ),
        ("{ kind = \"adaptive-video\", ladder = [] }", "traffic.ladder = []: must have one bit rate or more"),
        (
            "{ kind = \"adaptive-video\", segment = \"31s\" }",
            "traffic.segment = \"31s\": must be above 0s, at most the buffer, 30s",
        ),
        ("{ kind = \"adaptive-video\", segment = \"0s\" }", "traffic.segment = \"0s\": must be above 0s"),
        (
            "{ kind = \"adaptive-video\", play_at = \"29s\" }",
            "traffic.play_at = \"29s\": must be at most 28s, the whole segments in the buffer",
        ),
        ("{ kind = \"adaptive-video\", memory = 0 }", "traffic.memory = 0: must be 1 to 1000"),
        ("{ kind = \"adaptive-video\", share = 1.1 }", "traffic.share = 1.1: must be above 0, at most 1"),
        ("{ kind = \"adaptive-video\", share = 0.0 }", "traffic.share = 0: must be above 0, at most 1"),
        ("{ kind = \"adaptive-video\", length = \"0s\" }", "traffic.length = \"0s\": must be above 0s"),
        ("{ kind = \"video\", repeat = false }", "traffic.repeat = false: applies to a trace file only"),
        (
            "{ kind = \"video\", rate = \"1Tbit\" }",
            "traffic.rate = \"1Tbit\": gives frames of more than 10000000 bytes",
        ),
        ("{ kind = \"video\", file = \"nowhere.txt\" }", "traffic.file = \"nowhere.txt\": nowhere.txt: cannot read"),
        ("{ kind = \"video\", file = \"/dev/zero\" }", "traffic.file = \"/dev/zero\": /dev/zero: not a file"),
        (
            "{ kind = \"mmpp\", model = \"nowhere.toml\" }",
            "traffic.model = \"nowhere.toml\": nowhere.toml: cannot read",
        ),
    ] {
        let found = wrong(value);
        assert!(found.starts_with(message), "{value}\n   {found}\n   {message}");
    }
    let over_udp = scenario("\"adaptive-video\"").replace("\"ns2\"", "\"udp\"");
    assert!(error(&over_udp).contains("adaptive-video needs a transport with acknowledgements: TCP or SCTP"));
    let both = scenario("\"web\"").replace("traffic = ", "transfer = \"1MB\"\ntraffic = ");
    assert!(error(&both).contains("transfer = \"1MB\": applies to bulk traffic only"));
}

#[test]
fn files_are_relative_to_the_scenario() {
    let folder = std::env::temp_dir().join(format!("aqumen-traffic-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    let load = |value: &str| {
        write("s.toml", &scenario(value));
        Scenario::load(folder.join("s.toml"), &[])
    };
    let refused = |value: &str| load(value).unwrap_err().to_string();

    write("sizes.txt", "# bytes, flows, probability\n100 1 0.5\n300 2 1\n");
    let sizes = "{ kind = \"transfers\", rate = \"1/s\", size = { law = \"empirical\", file = \"sizes.txt\" } }";
    let read = load(sizes).unwrap();
    let Traffic::Transfers(transfers) = &read.spec().flows[0].traffic else { panic!() };
    assert_eq!(transfers.size.0.mean(), 150.0); // half at 100, half uniform to 300
    assert!(read.to_toml().contains("sizes.txt"));
    // The plan distinguishes files of the same name by content.
    let planned = |scenario: &Scenario| scenario.plan(1, None).unwrap().to_json().unwrap();
    let first = planned(&read);
    assert_eq!(planned(&load(sizes).unwrap()), first);
    write("sizes.txt", "100 0.5\n301 1\n");
    assert_ne!(planned(&load(sizes).unwrap()), first);
    write("sizes.txt", "100 0.5\n50 1\n");
    assert!(refused(sizes).ends_with("sizes.txt:2: values and probabilities must ascend, probabilities from 0 to 1"));

    write("frames.txt", "0 I 0 1000\n1 P 40 200\n");
    let video = "{ kind = \"video\", file = \"frames.txt\", rate = \"1Mbit\" }";
    assert_eq!(load(video).unwrap().spec().flows[0].traffic.kind(), "video");
    write("frames.txt", "1000\n200\n");
    assert!(refused(video).contains("flows.0.traffic.fps: missing; this trace has no times"));
    write("frames.txt", "0 I 0 1000\n1 P x 200\n");
    assert!(refused(video).ends_with("frames.txt:2: the time must be a number of milliseconds, at least 0"));

    std::fs::copy(format!("{ROOT}/examples/mmpp/reference.toml"), folder.join("model.toml")).unwrap();
    let of_model = load("{ kind = \"mmpp\", model = \"model.toml\", source = \"www\" }").unwrap();
    let Traffic::Mmpp(mmpp) = &of_model.spec().flows[0].traffic else { panic!() };
    let Traffic::Mmpp(preset) = traffic("{ kind = \"mmpp\", preset = \"paper16\", source = \"www\" }") else {
        panic!()
    };
    assert_eq!(mmpp.chains(), preset.chains());
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_example_is_valid() {
    let scenario = Scenario::load(format!("{ROOT}/examples/traffic/mix.toml"), &[]).unwrap();
    let plan = scenario.plan(1, None).unwrap();
    let kinds: Vec<&str> = plan.groups.iter().map(|group| group.traffic.kind()).collect();
    assert_eq!(kinds, ["web", "transfers", "voip", "video", "self-similar"]);
}

/// A default as written in a scenario.
fn shown(value: &Value) -> String {
    match value {
        Value::Object(entries) => {
            let entries: Vec<String> = entries.iter().map(|(key, value)| format!("{key} = {}", shown(value))).collect();
            format!("{{ {} }}", entries.join(", "))
        }
        other => other.to_string(),
    }
}

/// The table of parameters of a kind.
fn table(row: &Value) -> String {
    let mut text = String::from("| key | kind | default | meaning |\n|---|---|---|---|\n");
    for param in row["params"].as_array().unwrap() {
        let default = match (&param["default"], param["required"].as_bool()) {
            (Value::Null, Some(true)) => "required".into(),
            (Value::Null, _) => "-".into(),
            (value, _) => format!("`{}`", shown(value)),
        };
        let word = |key: &str| param[key].as_str().unwrap().to_string();
        text += &format!("| `{}` | {} | {default} | {} |\n", word("name"), word("unit"), word("doc"));
    }
    text
}

/// `AQUMEN_BLESS=1` rewrites the tables.
#[test]
fn the_documentation_has_every_parameter() {
    let path = format!("{ROOT}/docs/traffic.md");
    let mut docs = std::fs::read_to_string(&path).unwrap();
    for row in list::traffic().as_array().unwrap() {
        let (name, expected) = (row["name"].as_str().unwrap(), table(row));
        assert!(docs.contains(&format!("\n## `{name}`: ")), "docs/traffic.md has no section for {name}");
        if row["params"].as_array().unwrap().is_empty() {
            continue;
        }
        let (begin, end) = (format!("<!-- parameters: {name} -->\n\n"), "\n<!-- end -->");
        if std::env::var_os("AQUMEN_BLESS").is_some() {
            let (before, rest) = docs.split_once(&begin).unwrap_or_else(|| panic!("no place for {name}"));
            let (_, after) = rest.split_once(end).unwrap();
            docs = format!("{before}{begin}{expected}{end}{after}");
        }
        assert!(docs.contains(&format!("{begin}{expected}{end}")), "{name} is stale; run with AQUMEN_BLESS=1");
    }
    if std::env::var_os("AQUMEN_BLESS").is_some() {
        std::fs::write(&path, docs).unwrap();
    }
}

#[test]
fn a_group_may_share_the_hosts_of_an_earlier_one() {
    let two = |more: &str| {
        let one = scenario("\"bulk\"").replace("count = 4", "count = 4\nhosts = 2");
        let group = &one[one.find("[[flows]]").unwrap()..];
        let other = group.replacen("name = \"", "name = \"other-", 1).replace("hosts = 2", more);
        format!("{one}\n{other}")
    };
    let name = parse(&two("")).plan(1, None).unwrap().groups[0].name.clone();
    let shares = format!("hosts_of = \"{name}\"");
    let plan = parse(&two(&shares)).plan(1, None).unwrap();
    let hosts: Vec<_> = plan.flows.iter().map(|flow| (flow.source, flow.destination)).collect();
    assert_eq!(hosts, [(0, 1), (2, 3), (0, 1), (2, 3), (0, 1), (2, 3), (0, 1), (2, 3)]);
    assert!((0..4).all(|k| plan.flows[4 + k].path == plan.flows[k].path));
    // A group with its own hosts needs access links.
    let apart = parse(&two("")).plan(1, None).unwrap();
    assert!(apart.flows[..4].iter().all(|flow| flow.source != apart.flows[4].source));
    let text = error(&two("hosts_of = \"nobody\""));
    assert!(text.contains("flows.1.hosts_of") && text.contains("no earlier group \"nobody\""), "{text}");
    let text = error(&two(&format!("{shares}\nhosts = 2")));
    assert!(text.contains("flows.1.hosts") && text.contains("is a setting of the hosts"), "{text}");
}

#[test]
fn a_stationary_start_without_mean_residual_is_noted() {
    let notes = |traffic: &str| {
        let text = with(DUMBBELL, "transport = \"ns2\"", &format!("transport = \"udp\"\ntraffic = {traffic}"));
        parse(&text).plan(1, None).unwrap().notes
    };
    let on_off = |on: &str, off: &str, begin: &str| {
        notes(&format!("{{ kind = \"on-off\", rate = \"1Mbit\", on = {on}, off = {off}{begin} }}"))
    };
    let heavy = |shape: f64| format!("{{ law = \"pareto\", mean = \"500ms\", shape = {shape} }}");
    let bounded = "{ law = \"pareto\", mean = \"500ms\", shape = 1.5, max = \"10s\" }";
    let heavy_off = on_off("\"1s\"", &heavy(1.5), "");
    assert_eq!(heavy_off.len(), 1, "{heavy_off:?}");
    assert!(heavy_off[0].starts_with("ftp: its ON and OFF times are Pareto of shape 1.5: "), "{heavy_off:?}");
    assert!(on_off(&heavy(2.0), &heavy(2.5), "")[0].contains("shape 2: "));
    assert_eq!(on_off(&heavy(1.5), "\"1s\"", ", begin = \"off\""), [""; 0]);
    assert_eq!(on_off(&heavy(2.1), bounded, ""), [""; 0]);
    assert_eq!(notes("{ kind = \"self-similar\", rate = \"1Mbit\", hurst = 0.75 }").len(), 1);
    assert_eq!(notes("{ kind = \"self-similar\", rate = \"1Mbit\", begin = \"off\" }"), [""; 0]);
}

#[test]
fn a_session_takes_a_flow_for_each_connection_between_the_same_hosts() {
    let web = scenario("{ kind = \"web\", connections = 3 }").replace("count = 4", "count = 2");
    let plan = parse(&web).plan(1, None).unwrap();
    assert_eq!((plan.groups[0].flows.clone(), plan.flows.len()), (0..6, 6));
    assert!(plan.flows[..3].iter().all(|flow| *flow == plan.flows[0]));
    assert!(plan.flows[3..].iter().all(|flow| *flow == plan.flows[3]));
    assert_eq!((plan.flows[0].source, plan.flows[3].source), (0, 2));
    assert_ne!(plan.flows[0].on, plan.flows[3].on);
    let sessions = web.replace("connections = 3", "connections = 64").replace("count = 2", "count = 1000000");
    assert!(
        error(&sessions).contains("flows.0.count = 1000000: 64000000 flows in all; at most 10000000"),
        "{}",
        error(&sessions)
    );
}
