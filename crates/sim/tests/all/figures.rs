//! The figures of two dozen small networks, as a table: whatever changes what a queue, a medium, an application or a
//! measure does shows in its rows.
//!
//! `tests/vectors/figures.csv` has one row a figure. Only transports whose bits stay take part. A change that is meant
//! shows in the rows that it concerns: `AQUMEN_BLESS=1 cargo test -p aqumen-sim --test all figures` writes them anew.

use std::collections::BTreeMap;
use std::fmt::Write;

use aqumen_result::RunResult;
use aqumen_scenario::Scenario;
use aqumen_sim::{Options, run};

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/figures.csv");

/// Metrics of a link and of a group of flows that are compared; later keys are left out until the table is rewritten.
const KEYS: &[&str] = &[
    "utilization",
    "queue_mean_pkts",
    "queue_std_pkts",
    "qacd_pkts",
    "qacd_sampled_pkts",
    "sojourn_mean_s",
    "sojourn_p95_s",
    "arrivals_pkts",
    "departures_pkts",
    "marked_pkts",
    "early_dropped_pkts",
    "overflow_dropped_pkts",
    "wire_lost_pkts",
    "queue_p95_pkts",
    "settling_s",
    "overshoot_pkts",
    "loss_run_mean_pkts",
    "loss_dispersion",
    "sync_index",
    "rtt_fairness_slope",
    "fairness_mean",
    "goodput_bps",
    "jain_fairness",
    "rtt_mean_s",
    "retransmitted_ratio",
    "timeouts",
    "delay_mean_s",
    "jitter_mean_s",
    "loss_ratio",
    "throughput_bps",
    "delay_p95_s",
    "loss_burst_mean_pkts",
    "frames",
    "frame_loss_ratio",
    "mos",
    "refused",
    "pages",
    "page_load_mean_s",
    "fct_under_10kB_mean_s",
    "fct_10kB_100kB_mean_s",
    "fct_10kB_100kB_slowdown",
    "fct_over_1MB_count",
];

/// A dumbbell with these lines of its bottleneck, groups, and events.
fn dumbbell(duration: &str, bottleneck: &str, rest: &str) -> String {
    format!(
        "name = \"t\"\nduration = \"{duration}\"\nrecord = {{ interval = \"100ms\" }}\n\
         [topology]\npreset = \"dumbbell\"\n[topology.bottleneck]\n{bottleneck}\n\
         [topology.access]\nrate = \"50Mbit\"\ndelay = [\"2ms\", \"30ms\"]\n{rest}"
    )
}

const BULK: &str = "[[flows]]\nname = \"bulk\"\ncount = 6\nstart = [\"0s\", \"1s\"]\n\
    transport = { preset = \"ns2\", ecn = true, receive_window = \"200pkt\" }\n";
const PLAIN: &str = "rate = \"8Mbit\"\ndelay = \"10ms\"\nbuffer = \"60pkt\"";

/// Name, text, AQM.
fn cases() -> Vec<(String, String, &'static str)> {
    let mut cases = Vec::new();
    let mut add = |name: &str, text: String, aqm: &'static str| cases.push((name.to_string(), text, aqm));
    for aqm in ["droptail", "pi", "red", "arm-pfc", "codel", "fq-codel", "cake", "dualpi2"] {
        add(aqm, dumbbell("8s", PLAIN, BULK), aqm);
    }
    let media = [
        ("wifi", "channel = { model = \"wifi\", contenders = 2, spread = 1.5, mcs = 4.0 }"),
        ("wimax", "channel = { model = \"wimax\", share = 0.5 }"),
        ("umts", "channel = { model = \"umts\" }"),
        ("lte", "channel = { model = \"lte\", share = 0.3, handover_interval = \"2s\" }"),
        ("shared", "channel = { model = \"shared\", rate = \"20Mbit\", neighbours = 3, mean_on = \"200ms\" }"),
        ("steps", "rate = { steps = [[\"0s\", \"8Mbit\"], [\"300ms\", \"2Mbit\"]], period = \"700ms\" }\nloss = 0.01"),
        (
            "lossy",
            "rate = \"8Mbit\"\nreverse = { rate = \"400kbit\", record = true }\n\
             loss = { bit_errors = 1e-6, burst = { to_bad = 0.01, to_good = 0.3 } }",
        ),
    ];
    for (name, line) in media {
        add(name, dumbbell("6s", &format!("{line}\ndelay = \"10ms\"\nbuffer = \"60pkt\""), BULK), "pi");
    }
    // What a host waits before it sends is drawn, and SACK chooses what leaves then.
    let waits = BULK.replace("ecn = true", "ecn = true, send_overhead = \"700us\"");
    add("overhead", dumbbell("6s", PLAIN, &waits), "pi");
    let held = waits.replace("ecn = true,", "ecn = true, variant = \"sack\", delayed_ack = \"40ms\",");
    add("overhead-sack", dumbbell("6s", PLAIN, &held), "droptail");
    let events = "[[events]]\nat = \"2s\"\ncapacity = \"3Mbit\"\n[[events]]\nat = \"4s\"\ncapacity = \"8Mbit\"\n\
        [[events]]\nat = \"5s\"\ndelay = \"40ms\"\n[[events]]\nat = \"6s\"\nstate = \"down\"\n\
        [[events]]\nat = \"6500ms\"\nstate = \"up\"\n[[events]]\nat = \"8s\"\nstop = \"bulk\"\n\
        [[events]]\nat = \"9s\"\nresume = \"bulk\"\n[windows]\nlate = [\"7s\", \"11s\"]\n";
    add("events", dumbbell("12s", PLAIN, &format!("{BULK}{events}")), "pie");
    let row = "name = \"t\"\nduration = \"8s\"\n[topology]\nnodes = [\"a\", \"b\", \"c\"]\n\
        [[topology.links]]\nname = \"first\"\nfrom = \"a\"\nto = \"b\"\nrate = \"6Mbit\"\ndelay = \"5ms\"\nbuffer = \"40pkt\"\n\
        aqm = \"test\"\ntarget = \"10pkt\"\n[[topology.links]]\nname = \"second\"\nfrom = \"b\"\nto = \"c\"\nrate = \"4Mbit\"\n\
        delay = \"10ms\"\nbuffer = \"60kB\"\naqm = \"test\"\n[topology.links.reverse]\nrate = \"1Mbit\"\nrecord = true\n\
        [[flows]]\nname = \"through\"\ncount = 3\nfrom = \"a\"\nto = \"c\"\noff = [[\"2s\", \"3s\"]]\nstop = \"7s\"\n\
        access = { rate = \"20Mbit\", delay = \"5ms\" }\ntransport = \"ns2\"\n\
        [[flows]]\nname = \"cross\"\ncount = 2\nfrom = \"b\"\nto = \"c\"\ntransfer = \"300kB\"\nstart = [\"0s\", \"4s\"]\n\
        transport = \"cubic-ns2\"\n[[flows]]\nname = \"back\"\nfrom = \"c\"\nto = \"b\"\ntransport = \"ns2\"\n";
    add("row", row.into(), "red");
    let packets = "[[flows]]\nname = \"cbr\"\ntransport = { preset = \"udp\", packet = \"1000B\" }\n\
        traffic = { kind = \"cbr\", rate = \"1Mbit\", packet = \"500B\" }\n\
        [[flows]]\nname = \"poisson\"\ntransport = \"udp\"\ntraffic = { kind = \"poisson\", rate = \"150pkt/s\", \
        packet = { law = \"uniform\", min = \"100B\", max = \"1900B\" } }\n\
        [[flows]]\nname = \"on-off\"\ncount = 2\ntransport = \"udp\"\ntraffic = { kind = \"on-off\", rate = \"1Mbit\", \
        on = { law = \"pareto\", mean = \"500ms\", shape = 1.5, max = \"5s\" }, off = \"400ms\" }\n\
        [[flows]]\nname = \"self-similar\"\ntransport = \"udp\"\ntraffic = { kind = \"self-similar\", rate = \"1Mbit\", \
        on = \"100ms\", off = \"200ms\" }\n\
        [[flows]]\nname = \"mmpp\"\ntransport = \"udp\"\ntraffic = { kind = \"mmpp\", preset = \"paper8\", source = \"www-ftp\" }\n\
        [[flows]]\nname = \"voice\"\ncount = 3\ntransport = \"rtp\"\ntraffic = { kind = \"voip\", codec = \"g711\" }\n";
    for (name, aqm) in [("packets", "droptail"), ("packets-drr", "drr")] {
        add(name, dumbbell("8s", "rate = \"5Mbit\"\ndelay = \"10ms\"\nbuffer = \"30pkt\"", packets), aqm);
    }
    let applications = "[[flows]]\nname = \"transfers\"\ncount = 8\ntransport = \"ns2\"\ntraffic = { kind = \"transfers\", \
        rate = \"12/s\", size = { law = \"lognormal\", mean = \"30kB\", std = \"60kB\", max = \"2MB\" } }\n\
        [[flows]]\nname = \"think\"\ncount = 3\ntransport = \"ns2\"\ntraffic = { kind = \"transfers\", think = \"300ms\", \
        size = { law = \"exponential\", mean = \"20kB\" }, new_connection = false }\n\
        [[flows]]\nname = \"web\"\ncount = 2\ntransport = \"ns2\"\ntraffic = { kind = \"web\", connections = 3, \
        reading = { law = \"exponential\", mean = \"500ms\" } }\n\
        [[flows]]\nname = \"messages\"\ntransport = \"sctp-ns2\"\ntraffic = { kind = \"cbr\", rate = \"500kbit\", packet = \"1000B\" }\n";
    add(
        "applications",
        dumbbell("10s", "rate = \"5Mbit\"\ndelay = \"10ms\"\nbuffer = \"40pkt\"", applications),
        "droptail",
    );
    cases
}

/// (case, window, link or group, key) -> figure.
fn figures(name: &str, result: &RunResult, found: &mut BTreeMap<String, String>) {
    let json = serde_json::to_value(result).unwrap();
    for part in ["links", "flows"] {
        for (owner, windows) in json[part].as_object().unwrap() {
            for (window, metrics) in windows.as_object().unwrap() {
                for key in KEYS {
                    if let Some(value) = metrics.get(key).filter(|value| !value.is_null()) {
                        found.insert(format!("{name},{window},{owner},{key}"), value.to_string());
                    }
                }
            }
        }
    }
    // Of the series, their length, the sum of the queue and of the probability.
    for (link, series) in &result.series {
        let (queue, probability) = (series.queue_pkts.iter().sum::<f64>(), series.probability.iter().sum::<f64>());
        let told = format!("{} {queue} {probability}", series.t_s.len());
        found.insert(format!("{name},series,{link},length queue probability"), told);
    }
}

#[test]
fn no_figure_is_another_than_its_row_says() {
    let mut found = BTreeMap::new();
    for (name, text, aqm) in cases() {
        let scenario = Scenario::parse(&text, "t.toml").unwrap_or_else(|error| panic!("{name}: {error}"));
        let plan =
            scenario.plan(1, Some(&scenario.aqm(aqm).unwrap())).unwrap_or_else(|error| panic!("{name}: {error}"));
        let result = run(&plan, Options::default(), &mut |_| true).unwrap_or_else(|error| panic!("{name}: {error}"));
        figures(&name, &result, &mut found);
    }
    if std::env::var_os("AQUMEN_BLESS").is_some() {
        let mut table = String::from("case,window,of,key,value\n");
        found.iter().for_each(|(process, value)| writeln!(table, "{process},{value}").unwrap());
        return std::fs::write(TABLE, table).unwrap();
    }
    let text = std::fs::read_to_string(TABLE).unwrap();
    let expected: BTreeMap<&str, &str> = text.lines().skip(1).filter_map(|line| line.rsplit_once(',')).collect();
    assert!(expected.len() > 500, "{}", expected.len());
    let other: Vec<_> = expected
        .iter()
        .filter(|(process, value)| found.get(**process).map(String::as_str) != Some(**value))
        .map(|(process, value)| format!("{process}: {:?}, was {value}", found.get(*process)))
        .collect();
    assert!(other.is_empty(), "{} figures are others:\n{}", other.len(), other[..other.len().min(40)].join("\n"));
    let more: Vec<_> = found.keys().filter(|process| !expected.contains_key(process.as_str())).collect();
    assert!(more.is_empty(), "not in the table: {more:?}");
}
