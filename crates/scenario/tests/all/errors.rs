//! Invalid input: one line with file, line, key and accepted values.

use crate::common;

use aqumen_scenario::{Files, Scenario};
use common::{DUMBBELL, GRAPH, PARKING_LOT, error, parse, with};

fn dumbbell(old: &str, new: &str) -> String {
    error(&with(DUMBBELL, old, new))
}

fn graph(old: &str, new: &str) -> String {
    error(&with(GRAPH, old, new))
}

/// Adds `more` at the end of the dumbbell.
fn more(more: &str) -> String {
    error(&format!("{DUMBBELL}{more}"))
}

#[test]
fn the_base_scenarios_are_valid() {
    parse(DUMBBELL);
    parse(GRAPH);
    parse(PARKING_LOT);
}

#[test]
fn unknown_keys_are_refused_with_the_nearest_known_one() {
    assert_eq!(
        dumbbell("buffer = \"300pkt\"", "bufer = \"300pkt\""),
        "t.toml:11: topology.bottleneck.bufer: unknown key; did you mean buffer? known: rate, channel, loss, delay, buffer, reverse"
    );
    assert!(more("[nomnal]\nflows = 3\n").starts_with("t.toml:22: nomnal: unknown key; did you mean nominal? known: "));
    assert!(
        dumbbell("transport = \"ns2\"", "transport = { preset = \"ns2\", enc = true }").contains("did you mean ecn?")
    );
}

#[test]
fn missing_keys_are_named_and_described() {
    assert_eq!(error(""), "t.toml:1: name: missing; it must be a name, such as \"ftp\"");
    assert_eq!(
        dumbbell("rate = \"8Mbit\"\n", ""),
        "t.toml:8: topology.bottleneck.rate: missing; it must be a rate, such as \"8Mbit\""
    );
    assert_eq!(
        dumbbell("name = \"ftp\"\n", ""),
        "t.toml:17: flows.0.name: missing; it must be a name, such as \"ftp\""
    );
}

#[test]
fn rates_are_above_zero_finite_and_have_a_unit() {
    for (value, message) in [
        ("\"-8Mbit\"", "must be a rate above 0, such as \"8Mbit\""),
        ("\"0bit\"", "must be a rate above 0, such as \"8Mbit\""),
        ("\"NaN\"", "must be a rate, such as \"8Mbit\""),
        ("\"inf\"", "must be a rate, such as \"8Mbit\""),
        ("\"1e400Mbit\"", "must be a finite rate, such as \"8Mbit\""),
        ("\"1e30bit\"", "must be a rate of 1bit to 10000Gbit"),
        ("\"8\"", "needs a unit, such as \"8Mbit\""),
        ("\"8mbit\"", "unknown unit \"mbit\"; use bit, kbit, Mbit, Gbit, Tbit"),
        ("8000000", "needs a unit, such as \"8000000Mbit\""),
        ("nan", "must be a rate, such as \"8Mbit\""),
        ("true", "must be a rate, such as \"8Mbit\""),
        ("[]", "must be a rate, such as \"8Mbit\""),
        ("1979-05-27", "must be a rate, such as \"8Mbit\""),
    ] {
        let shown = if value == "nan" { "NaN" } else { value };
        assert_eq!(
            dumbbell("rate = \"8Mbit\"", &format!("rate = {value}")),
            format!("t.toml:9: topology.bottleneck.rate = {shown}: {message}")
        );
    }
}

#[test]
fn a_buffer_holds_at_least_one_packet() {
    let buffer = |value: &str| dumbbell("buffer = \"300pkt\"", &format!("buffer = \"{value}\""));
    let message = "must be a whole number of packets, 1pkt to 1e9pkt, such as \"300pkt\"";
    for value in ["0pkt", "0.5pkt", "-1pkt", "2e9pkt"] {
        assert_eq!(buffer(value), format!("t.toml:11: topology.bottleneck.buffer = \"{value}\": {message}"));
    }
    // The preset ns2 sends packets of 1000 bytes.
    assert_eq!(buffer("999B"), "t.toml:11: topology.bottleneck.buffer = \"999B\": holds less than one packet of 1000B");
    assert!(Scenario::parse(&with(DUMBBELL, "300pkt", "1000B"), "t.toml").is_ok());
}

#[test]
fn times_stay_within_the_run_and_the_run_within_a_day() {
    assert_eq!(dumbbell("\"100s\"", "\"0s\""), "t.toml:2: duration = \"0s\": must be above 0s, such as \"100s\"");
    let day = "must be a time of at least 0s, at most 86400s";
    assert_eq!(dumbbell("\"100s\"", "\"25h\""), format!("t.toml:2: duration = \"25h\": {day}"));
    assert_eq!(dumbbell("\"100s\"", "\"-1s\""), format!("t.toml:2: duration = \"-1s\": {day}"));
    assert_eq!(
        more("[windows]\nlate = [\"90s\", \"110s\"]\n"),
        "t.toml:23: windows.late = [\"90s\", \"110s\"]: must be within the run of 100s"
    );
    assert_eq!(
        more("[windows]\nlate = [\"90s\", \"80s\"]\n"),
        "t.toml:23: windows.late = [\"90s\", \"80s\"]: an interval must end after it starts"
    );
    assert_eq!(
        more("[windows]\nall = \"2s\"\n"),
        "t.toml:23: windows.all = \"2s\": is the name of a predefined window; choose another name"
    );
    assert_eq!(more("stop = \"1s\"\n"), "t.toml:22: flows.0.stop = \"1s\": must be after the start, 1s");
    assert_eq!(more("stop = \"101s\"\n"), "t.toml:22: flows.0.stop = \"101s\": must be within the run of 100s");
    assert_eq!(
        dumbbell("[\"0s\", \"1s\"]", "\"100s\""),
        "t.toml:20: flows.0.start = \"100s\": must be before the end of the run, 100s"
    );
    assert_eq!(
        dumbbell("[\"0s\", \"1s\"]", "[\"2s\", \"1s\"]"),
        "t.toml:20: flows.0.start = [\"2s\", \"1s\"]: the lower end of the range must come first"
    );
    assert_eq!(
        more("[record]\ninterval = \"1us\"\n"),
        "t.toml:23: record.interval = \"1us\": gives more than 10000000 samples; make it longer"
    );
    assert_eq!(
        graph("[[\"10s\", \"20s\"], [\"30s\", \"35s\"]]", "[[\"10s\", \"20s\"], [\"15s\", \"35s\"]]"),
        "t.toml:39: flows.0.off.1 = [\"15s\", \"35s\"]: must come after the interval before it"
    );
}

#[test]
fn names_are_unique_and_defined() {
    assert_eq!(
        more("[[flows]]\nname = \"ftp\"\ntransport = \"ns2\"\n"),
        "t.toml:23: flows.1.name = \"ftp\": there is another group of this name"
    );
    assert_eq!(
        graph("nodes = [\"a\", \"b\", \"c\"]", "nodes = [\"a\", \"b\", \"c\", \"a\"]"),
        "t.toml:6: topology.nodes.3 = \"a\": there is another node of this name"
    );
    assert_eq!(
        graph("name = \"second\"", "name = \"first-reverse\""),
        "t.toml:18: topology.links.1.name = \"first-reverse\": there is another link called first-reverse"
    );
    assert_eq!(
        graph("from = \"b\"\nto = \"c\"\nrate", "from = \"B\"\nto = \"c\"\nrate"),
        "t.toml:19: topology.links.1.from = \"B\": no such node; did you mean b? known: a, b, c"
    );
    assert_eq!(
        graph("link = \"second\"", "link = \"secnd\""),
        "t.toml:53: events.0.link = \"secnd\": no such link; did you mean second? known: first, first-reverse, second, second-reverse"
    );
    assert_eq!(
        graph("stop = \"through\"", "stop = \"thru\""),
        "t.toml:59: events.1.stop = \"thru\": no such group of flows; did you mean through? known: through, cross"
    );
    assert_eq!(
        dumbbell("name = \"ftp\"", "name = \"f t p\""),
        "t.toml:18: flows.0.name = \"f t p\": must be a name of at most 64 letters, digits, - and _"
    );
    assert_eq!(more("name = \"again\"\n"), "t.toml:22: not valid TOML: duplicate key");
}

#[test]
fn every_flow_needs_a_route_in_both_directions() {
    let lonely = with(GRAPH, "nodes = [\"a\", \"b\", \"c\"]", "nodes = [\"a\", \"b\", \"c\", \"island\"]");
    assert_eq!(
        error(&with(&lonely, "from = \"a\"\nto = \"c\"", "from = \"a\"\nto = \"island\"")),
        "t.toml:37: flows.0.to = \"island\": no route for data from a to island"
    );
    let narrow = with(GRAPH, "[\"first-reverse\"]", "[]");
    assert_eq!(
        error(&with(&narrow, "rate = \"30Mbit\"", "one_way = true\nrate = \"30Mbit\"")),
        "t.toml:38: flows.0.to = \"c\": no route for acknowledgements from c to a"
    );
    assert_eq!(
        graph("rate = \"15Mbit\"", "rate = \"15Mbit\"\none_way = true"),
        "t.toml:22: topology.links.1.one_way = true: excludes reverse"
    );
    assert_eq!(
        graph("from = \"a\"\nto = \"c\"", "to = \"c\""),
        "t.toml:33: flows.0: from is missing; in a graph it names a node"
    );
    assert_eq!(
        graph("transfer = \"1MB\"", "extra_rtt = \"10ms\""),
        "t.toml:48: flows.1.extra_rtt = \"10ms\": needs access links to add the delay to; give access"
    );
}

#[test]
fn a_parking_lot_has_a_value_for_each_link_or_one_for_all() {
    let row = |old: &str, new: &str| error(&with(PARKING_LOT, old, new));
    assert_eq!(
        row("delay = \"10ms\"\nbuffer", "delay = [\"10ms\", \"20ms\"]\nbuffer"),
        "t.toml:7: topology.delay = [\"10ms\", \"20ms\"]: lists 2 values for 3 links; give one for all or one for each"
    );
    assert_eq!(
        row("rate = [\"30Mbit\", \"15Mbit\", \"30Mbit\"]", "rate = []"),
        "t.toml:6: topology.rate = []: must have the rate of at least one link"
    );
    assert_eq!(
        row("preset = \"parking-lot\"", "preset = \"ring\""),
        "t.toml:5: topology.preset = \"ring\": no such preset; known: dumbbell, parking-lot"
    );
    assert_eq!(row("link = \"link2\"\n", ""), "t.toml:27: events.0: link is missing; it names the link that changes");
}

#[test]
fn distributions_and_lists_fit_their_group() {
    let start = |new: &str| dumbbell("start = [\"0s\", \"1s\"]", new);
    let rtt = |new: &str| start(&format!("rtt = {new}"));
    assert_eq!(
        start("start = { list = [\"0s\", \"1s\", \"2s\"] }"),
        "t.toml:20: flows.0.start: lists 3 values for 4 flows; the count must be a multiple of 3"
    );
    assert_eq!(start("start = { list = [] }"), "t.toml:20: flows.0.start: list must have at least one time");
    assert_eq!(start("start = {}"), "t.toml:20: flows.0.start.law: missing; it must be a name, such as \"ftp\"");
    assert_eq!(
        start("start = { law = \"cauchy\" }"),
        "t.toml:20: flows.0.start.law = \"cauchy\": no such law; known: normal, exponential"
    );
    assert_eq!(
        start("start = { law = \"normal\", mean = \"5s\", std = \"0s\" }"),
        "t.toml:20: flows.0.start: std must be above 0s; for one value write it alone"
    );
    assert_eq!(
        start("start = { law = \"normal\", mean = \"5s\", std = \"1s\", min = \"9s\" }"),
        "t.toml:20: flows.0.start: min must be below max, and between them a part of 1s to 9s, four std about the mean"
    );
    assert_eq!(
        start("start = { law = \"exponential\", mean = \"1s\", min = \"3s\", max = \"2s\" }"),
        "t.toml:20: flows.0.start: min must be below max"
    );
    // 20 ms each way over the bottleneck, and up to 45 ms on each of four access links.
    assert_eq!(rtt("\"200ms\""), "t.toml:20: flows.0.rtt = \"200ms\": must be at least that of the links, 220ms");
    assert_eq!(start("rtt = \"300ms\"\nextra_rtt = \"1ms\""), "t.toml:20: flows.0.rtt = \"300ms\": excludes extra_rtt");
    assert_eq!(
        graph("transfer = \"1MB\"", "rtt = \"100ms\""),
        "t.toml:48: flows.1.rtt = \"100ms\": needs access links to add the delay to; give access"
    );
}

#[test]
fn each_event_changes_one_existing_thing() {
    assert_eq!(
        more("[[events]]\nat = \"40s\"\n"),
        "t.toml:22: events.0: must have one of capacity, delay, loss, state, aqm, stop and resume"
    );
    assert_eq!(
        more("[[events]]\nat = \"40s\"\nstop = \"ftp\"\ncount = 5\n"),
        "t.toml:25: events.0.count = 5: 4 flows of ftp are running at that time"
    );
    assert_eq!(
        more("[[events]]\nat = \"40s\"\nresume = \"ftp\"\n"),
        "t.toml:24: events.0.resume = \"ftp\": 0 flows of ftp are stopped at that time"
    );
    assert_eq!(
        more("[[events]]\nat = \"100s\"\nstop = \"ftp\"\n"),
        "t.toml:23: events.0.at = \"100s\": must be before the end of the run, 100s"
    );
    assert_eq!(
        event("stop = \"ftp\"\nlink = \"bottleneck\""),
        "t.toml:25: events.0.link = \"bottleneck\": belongs to capacity, delay, loss, state and aqm"
    );
    assert_eq!(event("capacity = \"1Mbit\"\ncount = 2"), "t.toml:25: events.0.count = 2: belongs to stop and resume");
    assert_eq!(event("stop = \"ftp\"\ncount = 0"), "t.toml:25: events.0.count = 0: must be at least 1");
    assert_eq!(
        graph("link = \"second\"\n", ""),
        "t.toml:51: events.0: link is missing; it names the link that changes"
    );
}

#[test]
fn aqms_are_known_and_their_values_fit() {
    let scenario = parse(GRAPH);
    let spec = |text: &str| scenario.aqm(text).unwrap_err().to_string();
    assert!(spec("pii").starts_with("aqm = \"pii\": no AQM \"pii\"; did you mean pi? known: slow, slower, droptail, "));
    assert!(
        spec("pi:tarjet=3pkt")
            .starts_with("aqm = \"pi:tarjet=3pkt\": tarjet = 3pkt: not a parameter of pi; did you mean target? ")
    );
    assert_eq!(spec("pi:target=100"), "aqm = \"pi:target=100\": target = 100: needs a unit, such as \"100pkt\"");
    assert_eq!(spec("pi:target=-1pkt"), "aqm = \"pi:target=-1pkt\": target = -1pkt: must be a number above 0 (pkt)");
    assert_eq!(spec("pi:target"), "aqm = \"pi:target\": \"target\" must be PARAMETER=VALUE, such as \"target=100pkt\"");
    assert_eq!(spec("pi:ecn=maybe"), "aqm = \"pi:ecn=maybe\": ecn = maybe: must be true or false");
    assert!(spec("").starts_with("aqm = \"\": no AQM \"\"; known: "));
    assert!(
        dumbbell("aqm = \"pi-x1000\"", "aqm = \"pi-x100\"")
            .starts_with("t.toml:3: aqm = \"pi-x100\": no AQM \"pi-x100\"; did you mean pi-x1000? ")
    );
    assert!(
        graph("aqm = \"pi:target=20pkt\"", "aqm = \"pi:target=20B\"")
            .starts_with("t.toml:29: topology.links.1.reverse.aqm = ")
    );
}

#[test]
fn conflicting_values_are_reported_at_their_keys() {
    let message = "min_th = 60: must be at least 0 and not above max_th";
    let scenario = parse(DUMBBELL);
    let red = "red:min_th=60pkt,max_th=50pkt";
    let given = scenario.plan(1, Some(&scenario.aqm(red).unwrap())).unwrap_err().to_string();
    assert_eq!(given, format!("aqm = \"{red}\": {message}"));
    let own = parse(&with(DUMBBELL, "pi-x1000", red)).plan(1, None).unwrap_err().to_string();
    assert_eq!(own, format!("t.toml:3: aqm = \"{red}\": {message}"));
    let back = parse(&with(GRAPH, "pi:target=20pkt", red)).plan(1, None).unwrap_err().to_string();
    assert_eq!(back, format!("t.toml:29: topology.links.1.reverse.aqm = \"{red}\": {message}"));
}

#[test]
fn errors_of_profiles_are_reported_at_their_keys() {
    assert_eq!(
        graph("frequency = \"50Hz\"", "frequency = 50"),
        "t.toml:76: aqms.slow.frequency = 50: needs a unit, such as \"50Hz\""
    );
    assert_eq!(
        graph("algorithm = \"slow\"", "algorithm = \"slower\""),
        "t.toml:79: aqms.slower.algorithm = \"slower\": refers back to slower: a profile cannot be based on itself"
    );
    assert_eq!(
        graph("[aqms.slow]", "[aqms.red]"),
        "t.toml:74: aqms.red: is the name of an algorithm; a profile needs another name"
    );
    assert!(
        graph("algorithm = \"pi-x1000\"", "algorithm = \"pj\"")
            .starts_with("t.toml:75: aqms.slow.algorithm = \"pj\": no AQM \"pj\"; did you mean pi? ")
    );
}

#[test]
fn transports_are_known_and_their_values_fit() {
    assert_eq!(
        dumbbell("transport = \"ns2\"", "transport = \"ns3\""),
        "t.toml:21: flows.0.transport = \"ns3\": no such transport; did you mean ns2? known: ns2, modern, linux, linux-reno, linux-bbr, cubic, cubic-ns2, dctcp, prague, bbr, vegas, ledbat, udp, rtp, rtp-tfrc, rtp-nada, sctp, sctp-ns2"
    );
    let table = |rest: &str| dumbbell("transport = \"ns2\"", &format!("transport = {{ preset = \"ns2\", {rest} }}"));
    assert_eq!(
        table("packet = \"40B\""),
        "t.toml:21: flows.0.transport.packet = \"40B\": must be more than header_bytes, at most 65535 bytes"
    );
    assert_eq!(
        table("variant = \"tahoe\""),
        "t.toml:21: flows.0.transport.variant = \"tahoe\": no such variant; known: reno, newreno, sack"
    );
    assert_eq!(
        table("initial_window = 2"),
        "t.toml:21: flows.0.transport.initial_window = 2: needs a unit, such as \"2pkt\""
    );
}

#[test]
fn counts_and_memory_have_limits() {
    let count = |value: &str| dumbbell("count = 4", &format!("count = {value}"));
    assert_eq!(count("0"), "t.toml:19: flows.0.count = 0: must be at least 1");
    assert_eq!(count("-1"), "t.toml:19: flows.0.count = -1: must be 0 to 4294967295");
    assert_eq!(
        count("99999999999999999999"),
        "t.toml:19: flows.0.count = 100000000000000000000: must be a whole number, such as 100"
    );
    assert_eq!(count("10000001"), "t.toml:19: flows.0.count = 10000001: 10000001 flows in all; at most 10000000");

    // 10^7 flows take 24 GB or more.
    let huge = parse(&with(DUMBBELL, "count = 4", "count = 10000000"));
    let message = huge.check_memory(1, 16 << 30).unwrap_err().to_string();
    assert_eq!(message, "t.toml: needs at least 22.4 GiB of memory, but 16.0 GiB are free");
    assert!(huge.check_memory(1, u64::MAX).is_ok());
    // Four runs of a hundred thousand flows need less than 1 GiB, five need more.
    let large = parse(&with(DUMBBELL, "count = 4", "count = 100000"));
    assert!(large.check_memory(1, 1 << 30).is_ok() && large.check_memory(4, 1 << 30).is_ok());
    assert!(large.check_memory(5, 1 << 30).is_err());
    // A hundred flows of ten thousand sources each: the sources are allocated at the start.
    let similar = "transport = \"udp\"\ntraffic = { kind = \"self-similar\", rate = \"1Mbit\", sources = 10000 }";
    let similar = with(&with(DUMBBELL, "count = 4", "count = 100"), "transport = \"ns2\"", similar);
    assert!(parse(&similar).check_memory(1, 150_000_000).is_err());
}

#[test]
fn files_that_are_no_scenarios_are_refused() {
    let absent = Scenario::load("no/such/file.toml", &[]).unwrap_err().to_string();
    assert!(absent.starts_with("no/such/file.toml: cannot read: "), "{absent}");
    let directory = Scenario::load("/", &[]).unwrap_err().to_string();
    assert!(directory.starts_with("/: cannot read: "), "{directory}");
    if cfg!(unix) {
        let endless = Scenario::load("/dev/zero", &[]).unwrap_err().to_string();
        assert_eq!(endless, "/dev/zero: a scenario has at most 16 MiB; this file has more");
    }
    let bytes = |bytes: &[u8]| Scenario::from_bytes(bytes, "t.toml", &[]).unwrap_err().to_string();
    assert_eq!(bytes(b"name = \"a\"\nx = \"\xff\""), "t.toml:2: not UTF-8 text; a scenario is a TOML file");
    assert_eq!(bytes(b"\x7fELF\0\0\0"), "t.toml: a binary file; a scenario is a TOML file");
    assert!(error("name = \n").starts_with("t.toml:1: not valid TOML: "));
    assert!(error(&"[".repeat(100_000)).starts_with("t.toml"));
    assert!(error(&format!("x = {}", "[".repeat(100_000))).starts_with("t.toml"));
}

#[test]
fn contents_of_a_file_cannot_break_the_line() {
    let message = dumbbell("name = \"ftp\"", "name = \"a\\nb\\u001b[31m\"");
    assert!(message.contains("a\\nb\\u{1b}[31m"), "{message}");
}

#[test]
fn overrides_report_the_key_that_was_given() {
    let scenario = parse(GRAPH);
    let fail = |key: &str, value: &str| scenario.with(key, value).unwrap_err().to_string();
    assert_eq!(
        parse(DUMBBELL).with("bottleneck.rate", "-8Mbit").unwrap_err().to_string(),
        "t.toml: topology.bottleneck.rate = \"-8Mbit\": must be a rate above 0, such as \"8Mbit\""
    );
    assert_eq!(
        fail("flows.thru.count", "2"),
        "t.toml: flows.thru.count: cannot set: flows has no entry thru; did you mean through? known: through, cross"
    );
    assert_eq!(fail("name.x", "2"), "t.toml: name.x: cannot set: name is not a table");
    assert_eq!(
        fail("a..b", "2"),
        "t.toml: a..b: cannot set: the key must be names joined by dots, such as topology.bottleneck.rate"
    );
    assert!(fail("duraton", "2s").starts_with("t.toml: duraton: unknown key; did you mean duration? "));
}

#[test]
fn every_aqm_of_one_queue_takes_the_threshold_functions_parameters() {
    let scenario = parse(DUMBBELL);
    for spec in
        ["aaqm:threshold=0.95", "pi:threshold=0.9,threshold_other=0.5,threshold_from=5s", "arm-pfc-printed:threshold=1"]
    {
        let plan = scenario.plan(1, Some(&scenario.aqm(spec).unwrap())).unwrap();
        assert!(plan.links[0].aqm.build().unwrap().is_ok(), "{spec}");
    }
    let refused = |spec| scenario.aqm(spec).unwrap_err().to_string();
    assert!(
        refused("pi:threshold=1.5").contains("must be a number of at least 0, at most 1"),
        "{}",
        refused("pi:threshold=1.5")
    );
    assert!(refused("pi:treshold=0.5").contains("did you mean threshold?"), "{}", refused("pi:treshold=0.5"));
    // Disciplines of several queues have no common buffer to measure.
    assert!(refused("drr:threshold=0.5").contains("not a parameter of drr"), "{}", refused("drr:threshold=0.5"));
}

/// The dumbbell with `new` in place of its rate.
fn rate(new: &str) -> String {
    dumbbell("rate = \"8Mbit\"", new)
}

/// An event at 40 s.
fn event(what: &str) -> String {
    more(&format!("[[events]]\nat = \"40s\"\n{what}\n"))
}

#[test]
fn a_link_has_one_valid_capacity() {
    let link = "t.toml:9: topology.bottleneck";
    assert_eq!(
        rate("rate = \"8Mbit\"\nchannel = { model = \"wifi\" }"),
        "t.toml:10: topology.bottleneck.channel: excludes rate: a medium has its own"
    );
    assert_eq!(rate("rate = {}"), format!("{link}.rate: must have one of steps, csv and mahimahi"));
    assert_eq!(
        rate("rate = { steps = [[\"1s\", \"8Mbit\"]] }"),
        format!("{link}.rate.steps = [[\"1s\", \"8Mbit\"]]: the first must begin at 0s")
    );
    assert_eq!(
        rate("rate = { steps = [[\"0s\", \"8Mbit\"], [\"5s\", \"4Mbit\"]], period = \"5s\" }"),
        format!("{link}.rate.period = \"5s\": must be longer than 5s, when the last one begins")
    );
    assert!(
        rate("rate = { steps = [[\"0s\", \"8Mbit\"], [\"1us\", \"4Mbit\"]], period = \"2us\" }")
            .ends_with("gives more than 1000000 changes of the rate; make it longer")
    );
    assert!(rate("rate = { steps = [[\"0s\"]] }").ends_with("must be a time and a rate, such as [\"10s\", \"4Mbit\"]"));
    assert_eq!(
        rate("channel = { kind = \"wifi\" }"),
        format!("{link}.channel.model: missing (in place of kind?); known: wifi, wimax, umts, lte, shared")
    );
    assert_eq!(
        rate("channel = { model = \"wify\" }"),
        format!(
            "{link}.channel.model = \"wify\": no such model; did you mean wifi? known: wifi, wimax, umts, lte, shared"
        )
    );
    assert_eq!(rate("channel = { model = \"lte\", cqi = 16 }"), format!("{link}.channel.cqi = 16: must be 1 to 15"));
    assert_eq!(
        rate("channel = { model = \"shared\" }"),
        format!("{link}.channel.rate: missing; it must be a rate, such as \"8Mbit\"")
    );
    assert!(rate("channel = { model = \"wifi\", width_mhz = 30 }").ends_with("width_mhz = 30: must be 20 or 40"));
}

#[test]
fn a_medium_accepts_the_parameters_of_its_model() {
    let text = |model: &str, key: &str, value: &str| {
        let rate = if model == "shared" { ", rate = \"8Mbit\"" } else { "" };
        let channel = format!("channel = {{ model = \"{model}\"{rate}, {key} = {value} }}");
        with(DUMBBELL, "rate = \"8Mbit\"", &channel)
    };
    // Both ends of each range, and a value beyond.
    for (model, key, ends, beyond) in [
        ("wifi", "mcs", [0.0, 7.0], [-0.1, 7.1]),
        ("wifi", "spread", [0.0, 10.0], [-0.1, 10.1]),
        ("wifi", "streams", [1.0, 4.0], [0.0, 5.0]),
        ("wifi", "contenders", [0.0, 100.0], [-1.0, 101.0]),
        ("wifi", "aggregate", [1.0, 64.0], [0.0, 65.0]),
        ("wimax", "slots", [1.0, 2000.0], [0.0, 2001.0]),
        ("wimax", "profile", [0.0, 7.0], [-0.1, 7.1]),
        ("wimax", "spread", [0.0, 10.0], [-0.1, 10.1]),
        ("umts", "cqi", [1.0, 30.0], [0.9, 30.1]),
        ("umts", "spread", [0.0, 10.0], [-0.1, 10.1]),
        ("umts", "max_retx", [0.0, 15.0], [-1.0, 16.0]),
        ("lte", "resource_blocks", [6.0, 110.0], [5.0, 111.0]),
        ("lte", "layers", [1.0, 8.0], [0.0, 9.0]),
        ("lte", "cqi", [1.0, 15.0], [0.9, 15.1]),
        ("lte", "spread", [0.0, 10.0], [-0.1, 10.1]),
        ("lte", "max_retx", [0.0, 15.0], [-1.0, 16.0]),
        ("shared", "neighbours", [0.0, 1000.0], [-1.0, 1001.0]),
    ] {
        ends.iter().for_each(|value| drop(parse(&text(model, key, &value.to_string()))));
        for value in beyond {
            let refusal = error(&text(model, key, &value.to_string()));
            assert!(
                refusal.starts_with(&format!("t.toml:9: topology.bottleneck.channel.{key} = {value}: ")),
                "{refusal}"
            );
            // A count that cannot be below 0 is refused as such before its range is known.
            let range = format!("must be {} to {}", ends[0], ends[1]);
            assert!(refusal.ends_with(&range) || value < 0.0 && refusal.contains("must be"), "{refusal}");
        }
    }
    // Shortest times, and sizes.
    for (model, key, least, less) in [
        ("wifi", "coherence", "100us", "99us"),
        ("wifi", "contender_airtime", "100us", "99us"),
        ("wimax", "coherence", "100us", "99us"),
        ("umts", "coherence", "100us", "99us"),
        ("lte", "coherence", "100us", "99us"),
        ("lte", "handover_outage", "100us", "99us"),
        ("lte", "handover_interval", "100us", "99us"),
        ("shared", "mean_on", "100us", "99us"),
        ("shared", "mean_off", "100us", "99us"),
        ("wifi", "packet", "65000B", "65001B"),
        ("umts", "dch", "100Mbit", "100000001bit"),
        ("umts", "dch", "1kbit", "999bit"),
    ] {
        parse(&text(model, key, &format!("\"{least}\"")));
        let refusal = error(&text(model, key, &format!("\"{less}\"")));
        assert!(
            refusal.contains(&format!("channel.{key} = \"{less}\": must be ")) && refusal.contains(least),
            "{refusal}"
        );
    }
}

#[test]
fn losses_are_probabilities_and_models_complete() {
    let loss = |loss: &str| rate(&format!("rate = \"8Mbit\"\nloss = {loss}"));
    assert_eq!(loss("1.5"), "t.toml:10: topology.bottleneck.loss = 1.5: must be a probability, 0 to 1");
    assert!(loss("{ bit_errors = -1 }").ends_with("bit_errors = -1: must be a probability, 0 to 1"));
    assert_eq!(
        loss("{ burst = { to_bad = 0.1 } }"),
        "t.toml:10: topology.bottleneck.loss.burst: needs either to_bad and to_good, or mean_good and mean_bad"
    );
    assert!(loss("{ burst = { to_bad = 0.1, to_good = 0 } }").ends_with("to_good = 0: must be above 0, at most 1"));
    assert!(
        dumbbell("delay = [\"35ms\", \"45ms\"]", "delay = \"1ms\"\nloss = { burst = {} }")
            .starts_with("t.toml:16: topology.access.loss.burst: needs")
    );
}

#[test]
fn events_fit_the_links_they_change() {
    assert!(
        event("loss = 0.1\ndelay = \"5ms\"")
            .ends_with("must have one of capacity, delay, loss, state, aqm, stop and resume")
    );
    assert_eq!(event("state = \"up\""), "t.toml:24: events.0.state = \"up\": bottleneck is already up at that time");
    assert_eq!(event("state = \"off\""), "t.toml:24: events.0.state = \"off\": must be \"down\" or \"up\"");
    assert!(event("loss = { burst = { to_bad = 1 } }").starts_with("t.toml:24: events.0.loss.burst: needs"));
    assert!(event("aqm = \"pie:target=5\"").contains("events.0.aqm"));
    let text = format!(
        "{}[[events]]\nat = \"40s\"\ncapacity = \"1Mbit\"\n",
        with(DUMBBELL, "rate = \"8Mbit\"", "channel = { model = \"lte\" }")
    );
    assert_eq!(
        error(&text),
        "t.toml:24: events.0.capacity = \"1Mbit\": bottleneck has no rate to change: its channel or trace determines it"
    );
    // The AQM of the parameters is known with the plan.
    let plan = |what: &str, aqm: &str| {
        let scenario = parse(&format!("{DUMBBELL}[[events]]\nat = \"40s\"\n{what}\n"));
        scenario.plan(1, Some(&scenario.aqm(aqm).unwrap())).unwrap_err().to_string()
    };
    assert!(
        plan("aqm = { beta = 0.5 }", "pi").starts_with("t.toml:24: events.0.aqm.beta = 0.5: not a parameter of pi")
    );
    assert_eq!(
        plan("aqm = \"pi\"", "fq-codel"),
        "t.toml:24: events.0.aqm = \"pi\": fq-codel has several queues: its parameters can change, but it cannot change to another AQM"
    );
    assert_eq!(
        plan("aqm = { queues = 64 }", "fq-codel"),
        "t.toml:24: events.0.aqm.queues = 64: cannot change during the run"
    );
    assert_eq!(
        plan("aqm = \"cake:isolation=flows\"", "cake"),
        "t.toml:24: events.0.aqm = \"cake:isolation=flows\": isolation = flows: cannot change during the run"
    );
    assert!(
        dumbbell("count = 4", "count = 4\nhosts = 5")
            .ends_with("flows.0.hosts = 5: must be 1 to the number of flows, 4")
    );
    // Delays belong to hosts: a list is assigned to hosts, not to flows.
    assert!(
        dumbbell("count = 4", "count = 4\nhosts = 2\nextra_rtt = { list = [\"1ms\", \"2ms\", \"3ms\", \"4ms\"] }")
            .ends_with("flows.0.extra_rtt: lists 4 values for 2 hosts; hosts must be a multiple of 4")
    );
    assert!(dumbbell("count = 4", "count = 4\nclass = 256").ends_with("flows.0.class = 256: must be 0 to 255"));
}

#[test]
fn traces_are_read_line_by_line() {
    let folder = std::env::temp_dir().join(format!("aqumen-traces-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("trace");
    let path = file.display();
    let load_with = |key: &str, content: &str, more: &str| {
        std::fs::write(&file, content).unwrap();
        let text = with(DUMBBELL, "rate = \"8Mbit\"", &format!("rate = {{ {key} = \"trace\" }}"));
        std::fs::write(folder.join("s.toml"), text + more).unwrap();
        Scenario::load(folder.join("s.toml"), &[]).map_err(|error| error.to_string())
    };
    let load = |key: &str, content: &str| load_with(key, content, "");
    let wrong = |key: &str, content: &str| {
        let message = load(key, content).unwrap_err();
        assert_eq!(message.lines().count(), 1, "{message}");
        message.split_once("\"trace\": ").expect("the value is shown").1.to_string()
    };
    assert_eq!(wrong("mahimahi", "1\nx\n"), format!("{path}:2: must be a whole number of milliseconds"));
    assert_eq!(wrong("mahimahi", "5\n4\n"), format!("{path}:2: must not be earlier than the previous line"));
    assert_eq!(wrong("mahimahi", "0\n0\n"), format!("{path}: the last millisecond must be above 0"));
    assert_eq!(wrong("mahimahi", "# none\n"), format!("{path}: has no opportunity"));
    // The longest accepted duration, and a millisecond more.
    let most = wrong("mahimahi", "99999999999999999\n");
    let most: u64 = most.rsplit_once(" ms").unwrap().0.rsplit_once(' ').unwrap().1.parse().unwrap();
    assert_eq!(wrong("mahimahi", &format!("{}\n", most + 1)), format!("{path}:1: must be at most {most} ms"));
    assert!(load("mahimahi", &format!("{most}\n")).is_ok());
    // Three opportunities of 1504 bytes each 5 ms, two at one moment: 7.2192 Mbit/s.
    let plan = load("mahimahi", "2\n5\n5\n").unwrap().plan(1, None).unwrap();
    assert_eq!(plan.links[0].rates, [(aqumen_units::Instant::ZERO, aqumen_units::Rate::from_bps(7_219_200))]);
    assert_eq!(wrong("csv", "time,rate\n0,1e6\n1;2\n"), format!("{path}:3: must be time,rate, such as 0.5,8000000"));
    assert_eq!(wrong("csv", "0,1e6\ntime,rate\n"), format!("{path}:2: must be time,rate, such as 0.5,8000000"));
    assert_eq!(wrong("csv", "0,-5\n"), format!("{path}:1: the rate must be 0, or 1bit to 10000Gbit"));
    assert_eq!(wrong("csv", "0,1e6\n0,2e6\n"), "must be in order of time; 0s is out of order");
    assert_eq!(wrong("csv", "0,0\n"), "must have a rate above 0");
    assert!(wrong("csv", "\u{0}").contains("must be time,rate"));
    // Seconds and bit/s, or units; a rate of 0 is an outage.
    let line = |more: &str| {
        let csv = "time,rate # a comment\n0,0\n500ms,8Mbit\n\n10,4000000\n";
        let plan = load_with("period = \"30s\", csv", csv, more).unwrap().plan(1, None).unwrap();
        let millis = |at: aqumen_units::Instant| at.as_nanos() / 1_000_000;
        let rates: Vec<_> = plan.links[0].rates.iter().map(|(at, rate)| (millis(*at), rate.as_bps())).collect();
        let outages = &plan.links[0].line.as_ref().unwrap().outages;
        (rates, outages.iter().map(|(from, until)| (millis(*from), millis(until.unwrap()))).collect::<Vec<_>>())
    };
    let (rates, outages) = line("");
    assert_eq!(rates[..4], [(0, 8_000_000), (500, 8_000_000), (10_000, 4_000_000), (30_500, 8_000_000)]);
    assert_eq!(outages, [(0, 500), (30_000, 30_500), (60_000, 60_500), (90_000, 90_500)]);
    // An event replaces later rates and ends an outage.
    let changed = |at: &str| line(&format!("[[events]]\nat = \"{at}\"\ncapacity = \"6Mbit\"\n"));
    assert_eq!(changed("60200ms").1, [(0, 500), (30_000, 30_500), (60_000, 60_200)]);
    let (rates, outages) = changed("31s");
    assert_eq!(rates[3..], [(30_500, 8_000_000), (31_000, 6_000_000)]);
    assert_eq!(outages, [(0, 500), (30_000, 30_500)]);
    std::fs::remove_file(&file).unwrap();
    assert!(Scenario::load(folder.join("s.toml"), &[]).unwrap_err().to_string().contains("cannot read"));
    std::fs::create_dir(&file).unwrap();
    assert!(Scenario::load(folder.join("s.toml"), &[]).unwrap_err().to_string().contains("not a regular file"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_custom_aqm_is_known_with_its_catalogue_only() {
    use aqumen_aqm::{Algorithm, AnyAqm, Catalogue, DropTail, Param};
    let row = Algorithm { name: "mine", title: "Mine", summary: "-", reference: "-", params: &[Param::ECN] };
    let own = Catalogue::BUILT_IN.with(row, |_, _| Ok(AnyAqm::custom(DropTail::default()))).unwrap();
    let text = &DUMBBELL.replace("pi-x1000", "mine:ecn=false");
    let known = Scenario::parse_with_extensions(text, "s.toml", Files::in_memory([]), own).unwrap();
    assert!(matches!(known.plan(1, None).unwrap().links[0].aqm.build(), Some(Ok(AnyAqm::Custom(_)))));
    // Derived scenarios know the AQM, too.
    let changed = known.with("duration", "5s").unwrap().until("3s").unwrap();
    let plan = changed.plan(1, Some(&changed.aqm("mine").unwrap())).unwrap();
    assert_eq!((plan.links[0].aqm.name.as_str(), plan.links[0].aqm.values.len()), ("mine", 0));
    let unknown = Scenario::parse(text, "s.toml").unwrap_err();
    assert!(unknown.key == "aqm" && unknown.message.starts_with("no AQM \"mine\""), "{unknown}");
    let error = known.aqm("mine:eco=true").unwrap_err().to_string();
    assert!(error.contains("not a parameter of mine; did you mean ecn?"), "{error}");
}

#[test]
fn a_scenario_has_at_most_ten_thousand_of_anything() {
    let windows = |count: u32| {
        let lines: String = (0..count).map(|i| format!("w{i} = [\"{}ms\", \"90s\"]\n", i + 1)).collect();
        Scenario::parse(&format!("{DUMBBELL}[windows]\n{lines}"), "t.toml").map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(windows(10_000), Ok(()));
    assert!(windows(10_001).unwrap_err().ends_with(": 10001 entries; at most 10000"), "{:?}", windows(10_001));
}

#[test]
fn a_scenario_s_file_has_at_most_16_mib() {
    let file = std::env::temp_dir().join(format!("aqumen-large-{}.toml", std::process::id()));
    let loaded = |bytes: usize| {
        let mut text = format!("{DUMBBELL}#");
        text.extend(std::iter::repeat_n('x', bytes - text.len()));
        std::fs::write(&file, text).unwrap();
        let loaded = Scenario::load(&file, &[]).map(drop).map_err(|error| error.to_string());
        std::fs::remove_file(&file).unwrap();
        loaded
    };
    assert_eq!(loaded(16 << 20), Ok(()));
    let refusal = loaded((16 << 20) + 1).unwrap_err();
    assert!(refusal.ends_with("a scenario has at most 16 MiB; this file has more"), "{refusal}");
}

#[test]
fn intervals_without_data_lie_within_the_run() {
    let off = |intervals: &str| {
        let text = with(DUMBBELL, "transport = \"ns2\"", &format!("transport = \"ns2\"\noff = {intervals}"));
        Scenario::parse(&text, "t.toml").map(drop).map_err(|error| error.to_string())
    };
    // In a run of 100 s: an interval may end with the run, and the next may begin where the previous one ends.
    for right in ["[[\"90s\", \"100s\"]]", "[[\"5s\", \"6s\"], [\"6s\", \"7s\"]]"] {
        assert_eq!(off(right), Ok(()), "{right}");
    }
    for wrong in ["[[\"90s\", \"101s\"]]", "[[\"100s\", \"101s\"]]"] {
        assert!(off(wrong).unwrap_err().ends_with("must be within the run of 100s"), "{wrong}: {:?}", off(wrong));
    }
    let twice = off("[[\"5s\", \"7s\"], [\"6s\", \"8s\"]]").unwrap_err();
    assert!(twice.ends_with("must come after the interval before it"), "{twice}");
}

#[test]
fn invalid_ranges_and_labels_of_a_sweep_are_refused() {
    let sweep = |label: &str, set: &str| {
        let text = format!("{DUMBBELL}[sweep.x]\nlabel = \"{label}\"\nset = {{ \"flows.ftp.count\" = {set} }}\n");
        Scenario::parse(&text, "t.toml").map(|scenario| scenario.cells().len()).map_err(|error| error.to_string())
    };
    let range = |set: &str| sweep("x{}", set);
    for (set, cells) in [
        ("{ from = 1, to = 9, points = 2 }", 2),
        ("{ from = 1, to = 10000, points = 10000 }", 10_000),
        ("{ from = 1, to = 10000, step = 1 }", 10_000),
        ("{ from = 1, to = 100, points = 3, log = true }", 3),
        ("{ from = 5, to = 5, step = 1 }", 1),
    ] {
        assert_eq!(range(set), Ok(cells), "{set}");
    }
    for set in [
        "{ from = 1, to = 9, points = 1 }",
        "{ from = 1, to = 9, points = 10001 }",
        "{ from = 0, to = 9, points = 3, log = true }",
        "{ from = 9, to = 0, points = 3, log = true }",
        "{ from = 1, to = 9, step = 0 }",
        "{ from = 1, to = 9, step = -1 }",
        "{ from = 1, to = 9, step = 1, log = true }",
        "{ from = 1, to = 9 }",
    ] {
        assert!(range(set).unwrap_err().contains("a range needs either `step`"), "{set}: {:?}", range(set));
    }
    assert!(range("{ from = 1, to = 10001, step = 1 }").unwrap_err().contains("has more than 10000 values"));
    for set in ["{ from = \"1ms\", to = \"9s\", step = \"1ms\" }", "{ from = \"1ms\", to = \"9ms\", step = \"1s\" }"] {
        assert!(range(set).unwrap_err().contains("must be in one unit"), "{set}: {:?}", range(set));
    }
    let many: Vec<String> = (1..=10_001).map(|i| i.to_string()).collect();
    assert!(
        range(&format!("[{}]", many.join(", "))).unwrap_err().contains("has 10001 values; 1 to 10000 are possible")
    );
    // A label has at most 32 characters, all valid in a file name.
    let of = |letters: usize| sweep(&format!("{}{{}}", "x".repeat(letters - 2)), "[10, 20]");
    assert_eq!(of(32), Ok(2));
    assert!(of(33).unwrap_err().contains("is not a label"), "{:?}", of(33));
    assert!(sweep("x/{}", "[10, 20]").unwrap_err().contains("is not a label"));
}

#[test]
fn names_buffers_and_packets_are_bounded() {
    let named = |letters: usize| {
        let text = with(DUMBBELL, "name = \"ftp\"", &format!("name = \"{}\"", "f".repeat(letters)));
        Scenario::parse(&text, "t.toml").map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(named(64), Ok(()));
    for letters in [0, 65] {
        assert!(named(letters).unwrap_err().contains("at most 64 letters"), "{:?}", named(letters));
    }
    assert!(dumbbell("name = \"ftp\"", "name = \"f p\"").contains("at most 64 letters"));
    let target = |packets: &str| {
        Scenario::parse(&format!("{DUMBBELL}[nominal]\ntarget = \"{packets}\"\n"), "t.toml")
            .map_err(|error| error.to_string())
    };
    assert!(target("1e9pkt").is_ok());
    for packets in ["0pkt", "1000000001pkt"] {
        assert!(target(packets).unwrap_err().contains("above 0, at most 1e9pkt"), "{packets}");
    }
    assert!(dumbbell("transport = \"ns2\"", "transport = { preset = \"udp\", packet = \"20B\" }").contains("packet"));
}
