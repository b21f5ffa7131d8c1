//! Estimated time of each part of a run (events of a packet, samples, updates, steps), and the bounds beyond which a
//! run is refused.

use crate::common::{DUMBBELL, PARKING_LOT, parse, with};

use aqumen_aqm::Limit;
use aqumen_scenario::cost::{Cost, Runner, Updates, check_updates, long_run_notice, updates_s};
use aqumen_scenario::{AqmSpec, Files, Scenario};

fn cost(text: &str, runner: Runner) -> Cost {
    parse(text).cost(runner, None).unwrap()
}

/// Mean time of one item of kind `what`, seconds.
fn each_s(cost: &Cost, what: &str) -> f64 {
    let of_them = cost.parts.iter().filter(|part| part.what == what);
    of_them.map(|part| part.seconds).sum::<f64>() / cost.count(what)
}

fn near(found: f64, wanted: f64) -> bool {
    (found / wanted - 1.0).abs() < 1e-6
}

/// The dumbbell with other lines for its group's transport.
fn group(lines: &str) -> String {
    with(DUMBBELL, "transport = \"ns2\"", lines)
}

#[test]
fn a_packet_takes_an_event_at_each_link_and_end() {
    let of = |lines: &str| each_s(&cost(&group(lines), Runner::Packet), "packets");
    // Bottleneck and receiver; the acknowledgement: reverse link and sender.
    let four = of("transport = \"ns2\"");
    // Datagrams are not acknowledged.
    let cbr = "transport = \"udp\"\ntraffic = { kind = \"cbr\", rate = \"64kbit\", packet = \"160B\" }";
    assert!(near(of(cbr), four / 2.0));
    // The long flow: three recorded links, and the first of three unrecorded links back; the cross flow: one each way.
    let parts = cost(PARKING_LOT, Runner::Packet).parts;
    let [through, cross] = parts.iter().filter(|part| part.what == "packets").collect::<Vec<_>>()[..] else {
        panic!("two groups")
    };
    assert!(near(through.seconds / through.count, 6.0 / 4.0 * cross.seconds / cross.count));
    // Parts without items are absent.
    assert!(cost(DUMBBELL, Runner::Packet).parts.iter().all(|part| part.count > 0.0));
}

#[test]
fn a_sample_takes_longer_with_each_sampled_flow_and_each_link() {
    let of = |count: u32, runner| {
        let text = with(DUMBBELL, "count = 4", &format!("count = {count}"));
        each_s(&cost(&text, runner), "samples")
    };
    let packet = |count| of(count, Runner::Packet);
    assert!(near(packet(104) - packet(4), 2.0 * (packet(54) - packet(4))) && packet(54) > packet(4));
    // At most 256 flows are sampled.
    assert_eq!(packet(256), packet(300));
    assert!(packet(256) > packet(255));
    // The fluid samples no flows.
    assert_eq!(of(4, Runner::Fluid), of(40, Runner::Fluid));
    let recorded = |links: &str| {
        each_s(&cost(&format!("{PARKING_LOT}\n[record]\nlinks = [{links}]\n"), Runner::Packet), "samples")
    };
    assert!(near(recorded("\"link1-reverse\""), recorded("") * 4.0 / 3.0));
}

#[test]
fn a_step_of_the_fluid_takes_longer_with_each_link_and_each_class_of_flows() {
    let each = |text: &str| each_s(&cost(text, Runner::Fluid), "steps");
    let range = "delay = [\"35ms\", \"45ms\"]";
    let alike = with(DUMBBELL, range, "delay = \"35ms\"");
    // From 181 ms to nine times that: eight classes of eight flows, one of each.
    let apart = with(&with(DUMBBELL, range, "delay = [\"35ms\", \"400ms\"]"), "count = 4", "count = 8");
    let of_class = (each(&apart) - each(&alike)) / 7.0;
    // Flows with the same hosts form one class: two hosts on each side have two round trips; two and four, which are
    // not paired, have eight.
    let shared = |lines: &str| each(&with(&apart, "count = 8", &format!("count = 8\n{lines}")));
    assert!(near(shared("hosts = 2") - each(&alike), of_class));
    assert!(near(shared("sources = 2\ndestinations = 3") - each(&alike), 5.0 * of_class));
    // A dumbbell has two links, a row of three has six.
    let row = with(PARKING_LOT, "rtt = { list = [\"100ms\", \"200ms\"] }", "rtt = \"100ms\"");
    let row = with(&row, "extra_rtt = { law = \"normal\", mean = \"40ms\", std = \"10ms\" }\n", "");
    let of_two_links = each(&alike) - of_class;
    assert!(near(each(&row) - 2.0 * of_class, 3.0 * of_two_links), "{} {of_two_links} {of_class}", each(&row));
}

#[test]
fn an_update_takes_longer_in_the_fluid_and_with_many_queues() {
    let scenario = parse(DUMBBELL);
    let aqm = scenario.aqm("pi2:interval=20ms").unwrap();
    let of = |runner| each_s(&scenario.cost(runner, Some(&aqm)).unwrap(), "updates");
    assert!(of(Runner::Fluid) > of(Runner::Packet) && of(Runner::Packet) > 0.0);
    // ns-2 is slower than the packet engine, ns-3 slower than ns-2.
    let all = |runner| scenario.cost(runner, Some(&aqm)).unwrap().seconds();
    assert!(all(Runner::Ns2) > 3.0 * all(Runner::Packet) && all(Runner::Ns3) > 3.0 * all(Runner::Ns2));
    // The discipline takes as long as two of its queues.
    let queues = |queues: f64| Updates { period_s: 1.0, queues }.each_s();
    assert!(near(queues(8190.0), 2048.0 * queues(2.0)) && queues(1.0) > 0.0);
    // 100 s of updates each microsecond take as long as those of each millisecond over 100 000 s.
    let network = scenario.plan(1, None).unwrap().links[0].aqm.network;
    let of = |aqm: &str, seconds| updates_s(&AqmSpec::builtin(aqm).unwrap(), network, Limit::packets(300), 4, seconds);
    assert!(near(of("pi2:interval=1us", 100.0), of("pi2:interval=1ms", 100_000.0)));
    assert!(near(of("pi2:interval=1us", 100.0), 1e8 * queues(1.0)));
    assert_eq!(of("droptail", 1e9), 0.0);
    // Empty queues take no time: four flows occupy at most four queues.
    assert!(near(of("fq-pie:interval=1us", 1.0), 1e6 * queues(4.0)));
    assert!(near(of("fq-pie:interval=1us,queues=2", 1.0), 1e6 * queues(2.0)));
}

#[test]
fn a_refusal_of_updates_offers_the_nearest_accepted_value() {
    let network = parse(DUMBBELL).plan(1, None).unwrap().links[0].aqm.network;
    let check = |aqm: &str, network, duration_s| {
        check_updates(&AqmSpec::builtin(aqm).unwrap(), network, Limit::packets(300), u64::MAX, duration_s, 0.0)
    };
    let offered = |aqm: &str, duration_s| {
        let refusal = check(aqm, network, duration_s).unwrap_err();
        refusal.rsplit("; ").next().unwrap().strip_suffix(" is accepted").unwrap().to_string()
    };
    // A frequency must be lower, an interval longer. Of two possible changes by a factor of ten the first is offered.
    assert_eq!(offered("pi:frequency=1000000Hz", 2000.0), "frequency = 100000Hz");
    assert_eq!(offered("fq-pie:interval=20us,queues=1000", 100.0), "interval = 200us");
    assert_eq!(offered("fq-pie:queues=1000,interval=20us", 100.0), "queues = 100");
    // A tenth of the queues is accepted where a tenth of the updates is not.
    let count = |aqm: &str, duration_s| {
        let refusal = check(aqm, network, duration_s).unwrap_err();
        refusal.split_once(", ").unwrap().1.split_once(" of them").unwrap().0.to_string()
    };
    // Numbers are written out below a hundred thousand.
    assert_eq!(count("fq-pie:interval=1ms,queues=65536", 100.0), "1.0e5");
    assert_eq!(count("fq-pie:interval=1ms,queues=65536", 50.0), "50000");
}

#[test]
fn notices_use_a_suitable_unit() {
    assert_eq!(long_run_notice(10.0, "9 packets"), None);
    for (seconds, time) in [
        (10.2, "10 s"),
        (99.4, "99 s"),
        (100.0, "2 minutes"),
        (5999.0, "100 minutes"),
        (6000.0, "2 hours"),
        (359_999.0, "100 hours"),
        (360_000.0, "4 days"),
        (86_399_999.0, "1000 days"),
        (86_400_000.0, "years"),
    ] {
        assert_eq!(
            long_run_notice(seconds, "9 packets").as_deref(),
            Some(&*format!("this takes about {time}: 9 packets"))
        );
    }
    // The number of runs is omitted for a single run.
    let day = parse(&with(DUMBBELL, "duration = \"100s\"", "duration = \"24h\""));
    let refusal = day.check_cost(Runner::Packet, None, 1).unwrap().unwrap();
    assert!(refusal.starts_with("this takes about 1") && refusal.ends_with(" s: 8.6e7 packets"), "{refusal}");
}

#[test]
fn too_many_updates_are_reported_at_the_key_of_the_aqm() {
    // In the scenario, or by `--aqm`.
    let busy = with(DUMBBELL, "count = 4", "count = 400");
    let text = with(&busy, "aqm = \"pi-x1000\"", "aqm = \"fq-pie:interval=1us\"");
    let refusal = parse(&text).check_cost(Runner::Packet, None, 1).unwrap_err().to_string();
    assert!(refusal.starts_with("t.toml:3: aqm = \"fq-pie:interval=1us\": "), "{refusal}");
    let scenario = parse(&busy);
    let aqm = scenario.aqm("fq-pie:interval=1us").unwrap();
    let refusal = scenario.check_cost(Runner::Packet, Some(&aqm), 1).unwrap_err().to_string();
    assert!(refusal.starts_with("aqm = \"fq-pie:interval=1us\": "), "{refusal}");
    // For a source the key is its traffic, without an accepted duration.
    let cbr = "transport = \"udp\"\ntraffic = { kind = \"cbr\", rate = \"1Tbit\", packet = \"200B\" }";
    let fast = with(&group(cbr), "rate = \"10Mbit\"", "rate = \"1Tbit\"");
    let refusal = parse(&fast).check_cost(Runner::Packet, None, 1).unwrap_err().to_string();
    assert!(refusal.contains("traffic") && refusal.ends_with("; at most 60 minutes is accepted"), "{refusal}");
}

#[test]
fn too_many_samples_are_refused_with_an_accepted_interval() {
    // 300 flows over three links of `rate` in a row, whose reverse links are recorded too, or not.
    let check = |rate: &str, record: bool, interval_ns: u32| {
        let row = PARKING_LOT.split("[[flows]]").next().unwrap();
        let row = with(
            row,
            "rate = [\"30Mbit\", \"15Mbit\", \"30Mbit\"]",
            &format!("rate = [\"{rate}\", \"{rate}\", \"{rate}\"]"),
        );
        let row = with(&row, "rate = \"1Gbit\"", "rate = \"100Gbit\"");
        let row = with(&row, "buffer = \"50pkt\"", &format!("buffer = \"50pkt\", record = {record}"));
        let transport = "{ preset = \"ns2\", receive_window = \"1000000pkt\" }";
        let text = format!(
            "{row}[[flows]]\nname = \"through\"\ncount = 300\ntransport = {transport}\n\
             [record]\ninterval = \"{interval_ns}ns\"\n"
        );
        parse(&text).check_cost(Runner::Packet, None, 1).map_err(|error| error.to_string())
    };
    // Each of the links with 256 sampled flows takes 2.66 us. Without other work samples may take a minute: 10 million
    // of three links take 80 s. The packets of 5 Gbit/s take more than ten seconds, so that samples of six links may
    // take ten times that.
    for (rate, record, least_s) in [("15Mbit", false, 60.0), ("5Gbit", true, 100.0)] {
        let refusal = check(rate, record, 6_000).unwrap_err();
        assert!(
            refusal.contains("interval = \"6000ns\": makes 1.0e7 samples, about ")
                || refusal.contains("makes 1.0e7 samples"),
            "{refusal}"
        );
        let least = refusal.rsplit("; ").next().unwrap().strip_suffix(" or more is accepted").unwrap();
        let least_ns = aqumen_scenario::read_span(least).unwrap().as_nanos() as u32;
        assert!(check(rate, record, least_ns).is_ok(), "{refusal}");
        // Two digits, upward.
        assert!(check(rate, record, (0.97 * f64::from(least_ns)) as u32 - 100).is_err(), "{refusal}");
        let links = if record { 6.0 } else { 3.0 };
        let takes_s = 60e9 / f64::from(least_ns) * links * 2.66e-6;
        assert!((0.9 * least_s..1.5 * least_s).contains(&takes_s), "{takes_s}: {refusal}");
    }
}

#[test]
fn predictions_are_of_each_recorded_link_in_each_window() {
    let of = |text: &str| cost(text, Runner::Theory { loops: true }).count("predictions");
    // Windows: the whole run, steady, and one after the event; three links.
    assert_eq!((of(DUMBBELL), of(PARKING_LOT)), (2.0, 3.0 * 3.0));
    // The key is the larger of the numbers of windows and events.
    let windows: String = (0..6000).map(|i| format!("w{i} = [\"{}ms\", \"60s\"]\n", i + 1)).collect();
    let many = format!("{PARKING_LOT}\n[windows]\n{windows}");
    let refusal = parse(&many).check_cost(Runner::Theory { loops: true }, None, 1).unwrap_err().to_string();
    assert!(refusal.contains("windows") && refusal.contains(" predictions, about "), "{refusal}");
    let events: String = (0..6000)
        .map(|i| format!("[[events]]\nat = \"{}ms\"\nlink = \"link2\"\ncapacity = \"6Mbit\"\n", i + 1))
        .collect();
    let refusal = parse(&format!("{PARKING_LOT}\n{events}"));
    let refusal = refusal.check_cost(Runner::Theory { loops: true }, None, 1).unwrap_err().to_string();
    assert!(refusal.contains("events") && refusal.contains(" predictions, about "), "{refusal}");
}

#[test]
fn packets_of_video_and_large_messages() {
    let packets = |lines: &str, files: Files| {
        let text = group(lines);
        let scenario = Scenario::parse_with(&text, "t.toml", files).unwrap_or_else(|error| panic!("{error}"));
        scenario.cost(Runner::Packet, None).unwrap().count("packets")
    };
    let none = || Files::in_memory([]);
    // 41.7 messages of 3000 bytes in each second, of three packets of 1472.
    let cbr = "transport = \"udp\"\ntraffic = { kind = \"cbr\", rate = \"1Mbit\", packet = \"3000B\" }";
    assert!(near(packets(cbr, none()), 4.0 * 100.0 * 125.0));
    // 125 000 bytes and 25 frames a second: 85 full packets, and one more for the remainder of each frame.
    let film = "transport = \"udp\"\ntraffic = { kind = \"video\", rate = \"1Mbit\", fps = 25 }";
    assert!(near(packets(film, none()), 4.0 * 100.0 * (84.918_478_26 + 25.0)));
    // Four frames in 0.16 s, 14 720 bytes: 62.5 full packets and 25 more in a second; another rate has as many frames.
    let frames =
        || Files::in_memory([("f.txt".to_string(), b"0 I 0 11720\n1 P 40 1000\n2 P 80 1000\n3 P 120 1000\n".to_vec())]);
    let film = |more: &str| format!("transport = \"udp\"\ntraffic = {{ kind = \"video\", file = \"f.txt\"{more} }}");
    assert!(near(packets(&film(""), frames()), 4.0 * 100.0 * (62.5 + 25.0)));
    assert!(near(packets(&film(", rate = \"5888kbit\""), frames()), 4.0 * 100.0 * (500.0 + 25.0)));
    // Twice as many frames a second, twice the bytes.
    assert!(near(packets(&film(", fps = 50"), frames()), 4.0 * 100.0 * (125.0 + 50.0)));
    // An unlimited video: 100 s and a buffer of 30 s, in segments of 4 s, 100 kB each.
    let adaptive = "transport = \"ns2\"\ntraffic = { kind = \"adaptive-video\", ladder = [\"100kbit\", \"200kbit\"] }";
    assert!(near(packets(adaptive, none()), 4.0 * (1.0 + 32.5 * 105.0)));
}
