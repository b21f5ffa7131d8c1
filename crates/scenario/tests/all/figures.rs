//! Values that follow from a scenario: offered load, packet sizes, and the ranges of its keys.

use crate::common;

use aqumen_scenario::mmpp::MarkovSource;
use aqumen_scenario::{PRESETS, Traffic};
use aqumen_units::Span;
use common::{DUMBBELL, error, parse, with};

fn group(line: &str) -> String {
    with(DUMBBELL, "transport = \"ns2\"", &format!("transport = \"ns2\"\n{line}"))
}

fn traffic(value: &str) -> Traffic {
    parse(&group(&format!("traffic = {value}"))).spec().flows[0].traffic.clone()
}

fn refused(value: &str) -> String {
    error(&group(&format!("traffic = {value}")))
}

#[test]
fn offered_load_follows_from_the_means() {
    // Packets per second and bytes of each.
    for (value, per_second, bytes) in [
        ("{ kind = \"cbr\", rate = \"64kbit\", packet = \"160B\" }", 50.0, 160.0),
        // 40 B half of the time, otherwise spread from 40 to 1500 B.
        (
            "{ kind = \"poisson\", rate = \"100pkt/s\", packet = { law = \"empirical\", cdf = [[\"40B\", 0.5], [\"1500B\", 1.0]] } }",
            100.0,
            405.0,
        ),
        // A quarter of the time 250 packets per second.
        ("{ kind = \"on-off\", rate = \"1Mbit\", packet = \"500B\", on = \"1s\", off = \"3s\" }", 62.5, 500.0),
        ("{ kind = \"self-similar\", rate = \"1Mbit\", packet = \"1000B\", on = \"1s\", off = \"2s\" }", 125.0, 1000.0),
        // G.711 has 160 B in each 20 ms; half of the time is silence.
        ("{ kind = \"voip\", codec = \"g711\", suppress = false }", 50.0, 160.0),
        ("{ kind = \"voip\", codec = \"g711\", talk = \"2s\", silence = \"2s\" }", 25.0, 160.0),
        // A third of the time 10 per second, then nothing; two thirds of ten sources are OFF.
        (
            "{ kind = \"mmpp\", rates = [\"10pkt/s\", \"0pkt/s\"], generator = [[-1.0, 1.0], [0.5, -0.5]], packet = \"500B\" }",
            10.0 / 3.0,
            500.0,
        ),
        (
            "{ kind = \"mmpp\", minisources = { count = 10, on = \"1s\", off = \"2s\", rate = \"6pkt/s\" }, packet = \"500B\" }",
            20.0,
            500.0,
        ),
    ] {
        let offered = traffic(value).offered().unwrap();
        assert!((offered.per_second - per_second).abs() < 1e-9, "{value}: {}", offered.per_second);
        assert!((offered.bytes - bytes).abs() < 1e-9, "{value}: {}", offered.bytes);
    }
    for value in ["\"bulk\"", "\"web\"", "{ kind = \"transfers\", rate = \"20/s\", size = \"10kB\" }"] {
        assert_eq!(traffic(value).offered(), None);
    }
    assert_eq!(traffic("{ kind = \"web\", connections = 6 }").connections(), 6);
    assert_eq!(traffic("\"voip\"").connections(), 1);
    let Traffic::SelfSimilar(sources) = traffic(
        "{ kind = \"self-similar\", rate = \"1Mbit\", packet = \"1000B\", hurst = 0.75, sources = 10, on = \"1s\", off = \"3s\" }",
    ) else {
        panic!("self-similar")
    };
    // Ten sources that are ON a quarter of the time make 125 packets per second.
    assert_eq!((sources.on_packets_per_s(), sources.shape()), (50.0, 1.5));
}

#[test]
fn stationary_probabilities_of_several_states() {
    let per_second = |rates: &[f64], rows: &[&[f64]]| {
        MarkovSource::states(rates.to_vec(), rows.iter().map(|row| row.to_vec()).collect()).unwrap().per_second()
    };
    // Up by 1 and 2 per second, down by 3 and 4: probabilities in the ratio 6 : 2 : 1.
    let (packets, changes) = per_second(&[9.0, 18.0, 90.0], &[&[-1.0, 1.0, 0.0], &[3.0, -5.0, 2.0], &[0.0, 4.0, -4.0]]);
    assert!((packets - 20.0).abs() < 1e-12 && (changes - 20.0 / 9.0).abs() < 1e-12, "{packets} {changes}");
    // A cycle at 1, 2 and 4 per second: 4 : 2 : 1, and 12/7 changes per second.
    let (packets, changes) = per_second(&[7.0, 0.0, 70.0], &[&[-1.0, 1.0, 0.0], &[0.0, -2.0, 2.0], &[4.0, 0.0, -4.0]]);
    assert!((packets - 14.0).abs() < 1e-12 && (changes - 12.0 / 7.0).abs() < 1e-12, "{packets} {changes}");
    // 3 a = 4 b + c, 5 b = a + c: 9 : 4 : 11.
    let (packets, changes) = per_second(&[24.0, 48.0, 0.0], &[&[-3.0, 1.0, 2.0], &[4.0, -5.0, 1.0], &[1.0, 1.0, -2.0]]);
    assert!((packets - 17.0).abs() < 1e-12 && (changes - 69.0 / 24.0).abs() < 1e-12, "{packets} {changes}");
    let mini =
        traffic("{ kind = \"mmpp\", minisources = { count = 10, on = \"1s\", off = \"2s\", rate = \"6pkt/s\" } }");
    let Traffic::Mmpp(mini) = mini else { panic!("mmpp") };
    // Each goes ON and OFF once in 3 s.
    assert_eq!(mini.chains().unwrap()[0].per_second(), (20.0, 20.0 / 3.0));
}

#[test]
fn packets_of_each_transport_have_the_sizes_of_their_headers() {
    for (name, protocol) in PRESETS {
        let protocol = protocol();
        assert_eq!(protocol.payload_bytes() + protocol.header_bytes(), protocol.packet_bytes(), "{name}");
        assert_eq!(protocol.tcp().is_some(), protocol.congestion().is_some(), "{name}");
    }
    let of = |name: &str| PRESETS.iter().find(|(preset, _)| *preset == name).unwrap().1();
    // IPv4 and UDP are 28 B, IPv4 and TCP 40 B, and 12 B of time stamps; RTP has 12 B more than UDP.
    assert_eq!(["udp", "rtp", "modern"].map(|name| of(name).header_bytes()), [28, 40, 52]);
    assert_eq!(["udp", "ns2", "sctp"].map(|name| of(name).ack_bytes()), [0, 40, of("sctp").header_bytes()]);
    assert_eq!(["udp", "rtp", "ns2", "modern"].map(|name| of(name).ecn()), [false, of("rtp").ecn(), false, true]);
    assert_eq!(["udp", "rtp", "modern"].map(|name| of(name).initial_window_pkts()), [1, 1, 10]);
    assert_eq!([of("udp").window_pkts(), of("rtp").window_pkts()], [None, None]);
    // Linux detects losses by time and reduces its window proportionally (RFC 8985, RFC 6937).
    assert_eq!(["ns2", "linux", "udp"].map(|name| of(name).reduces_proportionally()), [false, true, false]);
    assert_eq!(of("ns2").congestion(), Some("reno"));
    assert_eq!(of("cubic").congestion(), Some("cubic"));
}

#[test]
fn every_range_is_closed() {
    let poisson = |packet: &str| format!("{{ kind = \"poisson\", rate = \"100pkt/s\", packet = {packet} }}");
    let law = |fields: &str| poisson(&format!("{{ law = {fields} }}"));
    for right in [
        law("\"uniform\", min = \"50B\", max = \"50B\""),
        law("\"erlang\", mean = \"500B\", stages = 1"),
        law("\"erlang\", mean = \"500B\", stages = 1000"),
        law("\"pareto\", mean = \"500B\", shape = 100.0"),
        law("\"pareto\", mean = \"500B\", shape = 0.5, max = \"1000B\""),
        law("\"lognormal\", mean = \"1B\", std = \"1000B\""),
        "{ kind = \"self-similar\", rate = \"1Mbit\", sources = 1 }".into(),
        "{ kind = \"voip\", talk = \"20us\" }".into(),
        "{ kind = \"poisson\", rate = \"1000Mpkt/s\" }".into(),
        "{ kind = \"mmpp\", rates = [\"1000Mpkt/s\", \"1000Mpkt/s\"], generator = [[-1.0, 1.0], [1.0, -1.0]] }".into(),
        // 10^9 packets of a byte in a second; a frame of 10 MB in each.
        "{ kind = \"cbr\", rate = \"8Gbit\", packet = \"1B\" }".into(),
        law("\"exponential\", mean = \"65507B\""),
        "{ kind = \"video\", rate = \"80Mbit\", fps = 1 }".into(),
        "{ kind = \"cbr\", rate = \"1Mbit\", packet = \"65507B\" }".into(),
    ] {
        let text = group(&format!("traffic = {right}"));
        aqumen_scenario::Scenario::parse(&text, "t.toml").unwrap_or_else(|error| panic!("{right}: {error}"));
    }
    for (wrong, expected) in [
        (law("\"uniform\", min = \"51B\", max = \"50B\""), "must be at least min"),
        ("{ kind = \"transfers\", rate = \"1/s\", size = \"1000000000000001B\" }".into(), "of at least 0, at most 1000000000000000B"),
        ("{ kind = \"web\", reading = \"86401s\" }".into(), "of at least 0, at most 86400s"),
        ("{ kind = \"web\", objects = 1000001 }".into(), "of at least 0, at most 1000000"),
        (law("\"exponential\", mean = \"0B\""), "must be above 0"),
        (law("\"erlang\", mean = \"500B\", stages = 0"), "must be 1 to 1000"),
        (law("\"erlang\", mean = \"500B\", stages = 1001"), "must be 1 to 1000"),
        (law("\"pareto\", mean = \"500B\", shape = 1.0"), "must be above 1"),
        (law("\"pareto\", mean = \"500B\", shape = 101.0"), "at most 100"),
        (law("\"pareto\", mean = \"500B\", shape = 0.0, max = \"1000B\""), "with a max above 0"),
        (law("\"pareto\", mean = \"500B\", shape = 2.0, max = \"500B\""), "must be above the mean"),
        (law("\"lognormal\", mean = \"500B\", std = \"0B\""), "must be above 0"),
        (law("\"lognormal\", mean = \"1B\", std = \"1001B\""), "at most 1000 means"),
        (law("\"lognormal\", mean = \"500B\", std = \"100B\", min = \"600B\", max = \"600B\""), "must be above min"),
        (law("\"lognormal\", mean = \"500B\", std = \"1B\", min = \"600B\""), "at least 1 % of the law"),
        ("{ kind = \"self-similar\", rate = \"1Mbit\", sources = 0 }".into(), "sources"),
        ("{ kind = \"self-similar\", rate = \"1Mbit\", hurst = 0.5 }".into(), "above 0.5, below 1"),
        ("{ kind = \"self-similar\", rate = \"1Mbit\", hurst = 1.0 }".into(), "above 0.5, below 1"),
        ("{ kind = \"self-similar\", rate = \"1Mbit\", off = \"0s\" }".into(), "must be above 0s"),
        ("{ kind = \"voip\", talk = \"19us\" }".into(), "at least a thousandth of a frame"),
        ("{ kind = \"voip\", talk = \"0s\" }".into(), "above 0"),
        ("{ kind = \"poisson\", rate = \"0pkt/s\" }".into(), "above 0pkt/s"),
        ("{ kind = \"cbr\", rate = \"8000000008bit\", packet = \"1B\" }".into(), "more than 1e9 packets per second"),
        ("{ kind = \"video\", fps = 0 }".into(), "above 0, at most"),
        ("{ kind = \"adaptive-video\", ladder = [\"1Mbit\", \"1Mbit\"] }".into(), "each above the one before"),
        (poisson("{ law = \"exponential\", mean = \"65508B\" }"), "a mean of at most 65507B"),
        ("{ kind = \"video\", rate = \"80000001bit\", fps = 1 }".into(), "frames of more than 10000000 bytes on average"),
        ("{ kind = \"cbr\", rate = \"1Mbit\", packet = \"65508B\" }".into(), "at most 65507B"),
        (
            "{ kind = \"mmpp\", rates = [\"0pkt/s\", \"0pkt/s\"], generator = [[-1.0, 1.0], [0.5, -0.5]] }".into(),
            "all its rates are 0",
        ),
        (
            "{ kind = \"mmpp\", rates = [\"1pkt/s\", \"1pkt/s\"], generator = [[-20000.0, 20000.0], [20000.0, -20000.0]] }".into(),
            "10000 changes of state for a packet",
        ),
        (
            "{ kind = \"mmpp\", rates = [\"1001Mpkt/s\", \"1001Mpkt/s\"], generator = [[-1.0, 1.0], [1.0, -1.0]] }".into(),
            "at most 1e9 packets per second",
        ),
        ("{ kind = \"mmpp\", preset = \"paper8\", rates = [\"1pkt/s\"] }".into(), "must have one of"),
        ("{ kind = \"mmpp\", rates = [\"1pkt/s\"], generator = [[0.0]], source = \"www\" }".into(), "belongs to a preset"),
    ] {
        let message = refused(&wrong);
        assert!(message.contains(expected), "{wrong}: {message}");
    }
}

#[test]
fn a_lognormal_without_lower_bound_is_written_without_one() {
    let written = |bounds: &str| {
        let law = format!("{{ law = \"lognormal\", mean = \"500B\", std = \"100B\"{bounds} }}");
        parse(&group(&format!("traffic = {{ kind = \"poisson\", rate = \"100pkt/s\", packet = {law} }}"))).to_toml()
    };
    assert!(!written("").contains("min ="), "{}", written(""));
    assert!(written(", min = \"1B\"").contains("min = \"1B\""), "{}", written(", min = \"1B\""));
}

/// A scenario of 100 s, for truncation.
const LONG: &str = r#"
[[flows]]
name = "late"
start = "50s"
transport = "ns2"

[[flows]]
name = "paused"
transport = "ns2"
stop = "90s"
off = [["10s", "20s"], ["30s", "60s"], ["70s", "80s"]]

[[events]]
at = "5s"
stop = "paused"

[[events]]
at = "8s"
resume = "paused"

[[events]]
at = "60s"
stop = "late"

[windows]
early = ["5s", "20s"]
across = ["20s", "60s"]
never = ["50s", "60s"]
"#;

#[test]
fn truncation_omits_later_parts() {
    let whole = parse(&format!("{DUMBBELL}{LONG}"));
    let cut = whole.until("40s").unwrap();
    let spec = cut.spec();
    assert_eq!(spec.flows.iter().map(|group| group.name.0.as_str()).collect::<Vec<_>>(), ["ftp", "paused"]);
    assert_eq!((spec.events.len(), spec.duration), (2, Span::from_secs(40)));
    let paused = &spec.flows[1];
    assert_eq!(paused.stop, None);
    let off: Vec<_> = paused.off.iter().map(|off| (off.start, off.end)).collect();
    assert_eq!(off, [(Span::from_secs(10), Some(Span::from_secs(20))), (Span::from_secs(30), None)]);
    let windows: Vec<_> = spec.windows.0.iter().map(|(name, window)| (name.as_str(), window.end.is_some())).collect();
    assert_eq!(windows, [("early", true), ("across", false)]);
    // Intervals that end at the truncation are complete, those that start there are omitted.
    let at_60 = whole.until("60s").unwrap();
    assert_eq!((at_60.spec().events.len(), at_60.spec().flows.len(), at_60.spec().flows[2].off.len()), (2, 3, 2));
    assert!(at_60.spec().windows.get("across").unwrap().end.is_some());
    assert!(at_60.spec().flows[2].off[1].end.is_some());
    // A group that starts at the end is omitted.
    assert_eq!(
        (whole.until("50s").unwrap().spec().flows.len(), whole.until("51s").unwrap().spec().flows.len()),
        (2, 3)
    );
    assert_eq!(whole.until("90s").unwrap().spec().flows[2].stop, Some(Span::from_secs(90)));
    // The truncated plan has the same starts and paths.
    let (part, all) = (cut.plan(3, None).unwrap(), whole.plan(3, None).unwrap());
    assert_eq!(part.flows[..4], all.flows[..4]);
}

#[test]
fn the_sampling_interval_is_at_most_the_truncated_duration() {
    let interval = |interval: &str, end: &str| {
        let text = format!("{DUMBBELL}\n[record]\ninterval = \"{interval}\"\n");
        parse(&text).until(end).unwrap().spec().record.interval.unwrap()
    };
    assert_eq!(interval("50s", "40s"), Span::from_secs(40));
    assert_eq!(interval("40s", "40s"), Span::from_secs(40));
    assert_eq!(interval("10s", "40s"), Span::from_secs(10));
}

#[test]
fn truncation_is_before_the_end_and_after_the_first_flow() {
    let refusal = |text: &str, end: &str| parse(text).until(end).unwrap_err().to_string();
    for end in ["0s", "100s", "101s"] {
        let message = refusal(DUMBBELL, end);
        assert!(message.starts_with("t.toml: until: cannot be truncated"), "{message}");
        assert!(message.contains("before the end of the run, 100s"), "{message}");
    }
    let late = with(DUMBBELL, "start = [\"0s\", \"1s\"]", "start = \"10s\"");
    assert!(refusal(&late, "10s").contains("no flow begins before 10s"), "{}", refusal(&late, "10s"));
    assert!(parse(&late).until("11s").is_ok());
    assert!(refusal(DUMBBELL, "fast").contains("until = \"fast\""), "{}", refusal(DUMBBELL, "fast"));
}

#[test]
fn ranges_of_a_sweep_have_both_ends() {
    let cells = |set: &str| {
        let text = format!("{DUMBBELL}[sweep.x]\nlabel = \"x{{}}\"\nset = {{ \"flows.ftp.count\" = {set} }}\n");
        parse(&text).cells().join(" ")
    };
    assert_eq!(cells("{ from = 10, to = 20, points = 3 }"), "x10 x15 x20");
    assert_eq!(cells("{ from = 20, to = 10, step = -5 }"), "x20 x15 x10");
    assert_eq!(cells("{ from = 10, to = 19, step = 4 }"), "x10 x14 x18");
    assert_eq!(cells("{ from = 1, to = 100, points = 3, log = true }"), "x1 x10 x100");
}

#[test]
fn a_link_is_plain_only_without_aqm_record_and_changes() {
    let plan = parse(DUMBBELL).plan(1, None).unwrap();
    let plain = plan.links.iter().find(|link| link.name.to_string().ends_with("source-in")).unwrap();
    assert!(plain.is_plain());
    assert!(!plan.links[0].is_plain(), "{:?}", plan.links[0]);
    let mut recorded = plain.clone();
    recorded.record = true;
    let mut managed = plain.clone();
    managed.aqm = plan.links[0].aqm.clone();
    assert!(!recorded.is_plain() && !managed.is_plain());
    // With a changing delay the link is no plain wire, but its queue is unobserved; with a later AQM it is observed.
    let with_line = |event: &str| {
        let text = format!("{DUMBBELL}[[events]]\nat = \"10s\"\nlink = \"bottleneck\"\n{event}\n");
        let line = parse(&text).plan(1, None).unwrap().links[0].line.clone();
        assert!(line.is_some(), "{event}");
        let mut link = plain.clone();
        link.line = line;
        (link.is_plain(), link.is_unobserved())
    };
    assert_eq!(with_line("delay = \"5ms\""), (false, true));
    assert_eq!(with_line("aqm = \"red\""), (false, false));
    // A delay that changes to 5 ms and then to 90: the least that it ever is.
    let events = "[[events]]\nat = \"10s\"\ndelay = \"5ms\"\n[[events]]\nat = \"20s\"\ndelay = \"90ms\"\n";
    let changed = parse(&format!("{DUMBBELL}{events}")).plan(1, None).unwrap();
    assert_eq!(
        (plan.links[0].delay_min(), changed.links[0].delay_min()),
        (Span::from_millis(20), Span::from_millis(5))
    );
}

#[test]
fn the_rate_of_a_medium_is_its_mean_capacity() {
    let rate = |channel: &str| {
        let text = with(DUMBBELL, "rate = \"8Mbit\"", &format!("channel = {{ {channel} }}"));
        parse(&text).plan(1, None).unwrap().links[0].rates[0].1.as_bps()
    };
    // 480 bytes each 10 ms.
    assert_eq!(rate("model = \"umts\", dch = \"384kbit\", bler = 0"), 384_000);
    // 2047 bytes each millisecond, of which 50 in 1000 are lost.
    let lte = "model = \"lte\", cqi = 10, spread = 0, layers = 2, share = 0.5, bler = 0, handover_interval = \"950ms\"";
    assert_eq!(rate(lte), 15_557_200);
    assert_eq!(rate("model = \"wimax\", profile = 5, spread = 0, share = 0.5"), 8_048_000);
}

#[test]
fn laws_from_files_are_read_for_every_source_that_has_one() {
    // A page of 1500 bytes and five objects of 900: 2 + 5 * 3 + 2 packets. A second ON and three OFF: a quarter.
    let files = || {
        let named =
            [("main.txt", "1500 1\n"), ("embedded.txt", "900 1\n"), ("one.txt", "1 1\n"), ("three.txt", "3 1\n")];
        aqumen_scenario::Files::in_memory(named.map(|(name, text)| (name.to_string(), text.as_bytes().to_vec())))
    };
    let law = |file: &str| format!("{{ law = \"empirical\", file = \"{file}.txt\" }}");
    let scenario = |lines: &str| {
        let text = with(DUMBBELL, "transport = \"ns2\"", lines);
        aqumen_scenario::Scenario::parse_with(&text, "t.toml", files()).unwrap_or_else(|error| panic!("{error}"))
    };
    let web = format!(
        "transport = \"ns2\"\ntraffic = {{ kind = \"web\", pages = 3, main = {}, embedded = {}, objects = 5, \
         parsing = \"1s\", reading = \"9s\" }}",
        law("main"),
        law("embedded")
    );
    let packets = scenario(&web).cost(aqumen_scenario::cost::Runner::Packet, None).unwrap().count("packets");
    assert!((packets - 4.0 * 3.0 * 19.0).abs() < 1e-6, "{packets}");
    let per_second = |traffic: &str| {
        let scenario = scenario(&format!("transport = \"udp\"\ntraffic = {{ {traffic} }}"));
        scenario.spec().flows[0].traffic.offered().unwrap().per_second
    };
    let on_off =
        format!("kind = \"on-off\", rate = \"1Mbit\", packet = \"1000B\", on = {}, off = {}", law("one"), law("three"));
    assert!((per_second(&on_off) - 31.25).abs() < 1e-9, "{}", per_second(&on_off));
    let call = format!("kind = \"voip\", codec = \"g711\", talk = {}, silence = {}", law("one"), law("three"));
    assert!((per_second(&call) - 12.5).abs() < 1e-9, "{}", per_second(&call));
}

#[test]
fn every_transport_is_listed_with_its_settings() {
    let listed = aqumen_scenario::list::transports();
    let rows = listed.as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, PRESETS.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    for row in rows {
        let params = row["params"].as_array().unwrap();
        assert!(params.len() >= 2, "{row}");
        assert!(params.iter().all(|param| !param["name"].is_null() && !param["unit"].is_null()), "{row}");
        assert!(row["summary"].as_str().is_some_and(|summary| !summary.is_empty()), "{row}");
    }
    let of = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap();
    assert!(of("udp")["reference"].as_str().is_some_and(|reference| reference.contains("RFC 768")), "{}", of("udp"));
    assert_eq!((of("dctcp")["reference"].as_str(), of("udp")["kind"].as_str()), (Some("RFC 8257"), Some("udp")));
}

#[test]
fn every_kind_of_traffic_is_listed_with_its_parameters() {
    let listed = aqumen_scenario::list::traffic();
    let rows = listed.as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    for name in ["bulk", "cbr", "poisson", "on-off", "voip", "video", "adaptive-video", "transfers", "web", "mmpp"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    let cbr = rows.iter().find(|row| row["name"] == "cbr").unwrap();
    let params: Vec<(&str, bool)> = cbr["params"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|param| (param["name"].as_str().unwrap(), param["required"].as_bool().unwrap()))
        .collect();
    assert!(params.contains(&("rate", true)) && params.contains(&("packet", false)), "{params:?}");
}

#[test]
fn settings_of_a_transport_are_whole_numbers_in_their_range() {
    let read = |setting: &str| {
        let text = with(DUMBBELL, "transport = \"ns2\"", &format!("transport = {{ {setting} }}"));
        aqumen_scenario::Scenario::parse(&text, "t.toml").map(|_| ()).map_err(|error| error.to_string())
    };
    let sctp = |bytes: &str| read(&format!("preset = \"sctp\", receive_window = \"{bytes}\""));
    assert_eq!((sctp("1500B"), sctp("64kB")), (Ok(()), Ok(())));
    assert!(sctp("0B").is_err() && sctp("2GB").unwrap_err().contains("1B to 1073741824B"), "{:?}", sctp("2GB"));
    let packet = |bytes: &str| read(&format!("preset = \"ns2\", packet = \"{bytes}\""));
    assert_eq!((packet("1000B"), packet("65535B")), (Ok(()), Ok(())));
    assert!(packet("65536B").unwrap_err().contains("1B to 65535B") && packet("0B").is_err());
}
