//! What is foreseen of a run, worked by hand: packets, changes of state, samples, updates, steps; what is said of runs
//! that take long, and that what a refusal offers is accepted. How far off the estimates are beside real runs,
//! crates/sim tests.

use crate::common;

use aqumen_aqm::Limit;
use aqumen_scenario::cost::{Runner, check_updates};
use aqumen_scenario::{AqmSpec, Scenario};
use common::{DUMBBELL, PARKING_LOT, parse, with};

/// The dumbbell of 8 Mbit/s, four flows of 1000-byte packets, with lines for its group.
fn group(lines: &str) -> Scenario {
    parse(&with(DUMBBELL, "transport = \"ns2\"", lines))
}

fn close(found: f64, wanted: f64) -> bool {
    (found / wanted - 1.0).abs() < 1e-6
}

fn packets(lines: &str) -> f64 {
    group(lines).cost(Runner::Packet, None).unwrap().count("packets")
}

#[test]
fn the_packets_of_a_run_follow_from_links_windows_and_applications() {
    // 20 ms there and back, 35 ms of access four times, and 1 ms of transmission.
    let rtt = 0.181;
    for (lines, wanted) in [
        // What the bottleneck carries in 100 s.
        ("transport = \"ns2\"", 100_000.0),
        // Two packets for each of four flows in each round trip, in 100 s and from 50 s on, or until 30 s.
        ("transport = { preset = \"ns2\", receive_window = \"2pkt\" }", 2.0 * 4.0 * 100.0 / rtt),
        // 50 kB are 53 packets of 960 bytes.
        ("transport = \"ns2\"\ntransfer = \"50kB\"", 4.0 * 53.0),
        ("transport = \"ns2\"\ntransfer = \"960B\"", 4.0),
        // 64 kbit/s are 50 packets of 160 bytes a second.
        ("transport = \"udp\"\ntraffic = { kind = \"cbr\", rate = \"64kbit\", packet = \"160B\" }", 20_000.0),
        (
            "transport = \"udp\"\nstop = \"30s\"\ntraffic = { kind = \"cbr\", rate = \"64kbit\", packet = \"160B\" }",
            6000.0,
        ),
        // 10 kB are 11 packets, and two to open and close; 20 a second in all.
        ("transport = \"ns2\"\ntraffic = { kind = \"transfers\", rate = \"20/s\", size = \"10kB\" }", 26_000.0),
        // 10 kB at 1.6 Mbit/s are 20 a second too.
        ("transport = \"ns2\"\ntraffic = { kind = \"transfers\", load = \"1600kbit\", size = \"10kB\" }", 26_000.0),
        // One each second and two round trips, the first at once.
        (
            "transport = \"ns2\"\ntraffic = { kind = \"transfers\", think = \"1s\", size = \"10kB\" }",
            4.0 * (1.0 + 100.0 / (1.0 + 2.0 * rtt)) * 13.0,
        ),
        // Three pages: two packets of the main object, five objects of one packet and two more, two for the page.
        (
            "transport = \"ns2\"\ntraffic = { kind = \"web\", pages = 3, main = \"1500B\", embedded = \"900B\", objects = 5, \
             parsing = \"1s\", reading = \"9s\" }",
            4.0 * 3.0 * (2.0 + 5.0 * 3.0 + 2.0),
        ),
        (
            "transport = \"ns2\"\ntraffic = { kind = \"web\", main = \"1500B\", embedded = \"900B\", objects = 5, \
             parsing = \"1s\", reading = \"9s\" }",
            4.0 * (1.0 + 100.0 / (10.0 + 2.0 * rtt)) * 19.0,
        ),
        // 15 segments of 4 s at the best of its rates: 1 MB, 1042 packets; and what asks for the first.
        (
            "transport = \"ns2\"\ntraffic = { kind = \"adaptive-video\", length = \"58s\", ladder = [\"1Mbit\", \"2Mbit\"] }",
            4.0 * (1.0 + 15.0 * 1042.0),
        ),
    ] {
        let found = packets(lines);
        assert!(close(found, wanted), "{lines}: {found} in place of {wanted}");
    }
    // A group that starts later has less time for its windows.
    let late = with(DUMBBELL, "start = [\"0s\", \"1s\"]", "start = \"50s\"");
    let small = "transport = { preset = \"ns2\", receive_window = \"2pkt\" }";
    let packets = |text: &str| parse(text).cost(Runner::Packet, None).unwrap().count("packets");
    assert!(close(packets(&with(&late, "transport = \"ns2\"", small)), 2.0 * 4.0 * 50.0 / rtt));
    let until = format!("{small}\nstop = \"80s\"");
    assert!(close(packets(&with(&late, "transport = \"ns2\"", &until)), 2.0 * 4.0 * 30.0 / rtt));
}

#[test]
fn groups_share_what_the_links_carry() {
    let second = |lines: &str| {
        let text = format!("{DUMBBELL}\n[[flows]]\nname = \"more\"\ncount = 2\n{lines}\n");
        parse(&text).cost(Runner::Packet, None).unwrap()
    };
    // Both could fill the link: half of it each, 100000 packets in all.
    let both = second("transport = \"ns2\"");
    assert!(close(both.count("packets"), 100_000.0));
    assert!(both.parts.iter().filter(|part| part.what == "packets").all(|part| close(part.count, 50_000.0)));
    // Datagrams come whatever else there is.
    let cbr = "transport = \"udp\"\ntraffic = { kind = \"cbr\", rate = \"64kbit\", packet = \"160B\" }";
    assert!(close(second(cbr).count("packets"), 100_000.0 + 10_000.0));
    // A rate that changes: 8 Mbit/s for 25 s, 2 Mbit/s for 75 s; what comes after the end does not count.
    let text = format!("{DUMBBELL}\n[[events]]\nat = \"25s\"\nlink = \"bottleneck\"\ncapacity = \"2Mbit\"\n");
    let changed = parse(&text).cost(Runner::Packet, None).unwrap();
    assert!(close(changed.count("packets"), (8.0 * 25.0 + 2.0 * 75.0) * 125.0), "{}", changed.count("packets"));
    // An access link that is narrower than its part: 4 of 100 kbit/s.
    let narrow = parse(&with(DUMBBELL, "rate = \"10Mbit\"", "rate = \"100kbit\""));
    assert!(close(narrow.cost(Runner::Packet, None).unwrap().count("packets"), 4.0 * 1e5 * 100.0 / 8000.0));
}

#[test]
fn sources_change_their_state_so_often() {
    let changes = |traffic: &str| {
        let lines = format!("transport = \"udp\"\ntraffic = {{ {traffic} }}");
        group(&lines).cost(Runner::Packet, None).unwrap().count("changes of state")
    };
    // Twice in 4 s, for each of four.
    assert!(close(changes("kind = \"on-off\", rate = \"1Mbit\", packet = \"500B\", on = \"1s\", off = \"3s\""), 200.0));
    // Ten sources in each, twice in 2 s.
    let similar = "kind = \"self-similar\", rate = \"1Mbit\", sources = 10, on = \"500ms\", off = \"1500ms\"";
    assert!(close(changes(similar), 4000.0));
    // In a state for 1 s, in the other for 2 s.
    let mmpp = "kind = \"mmpp\", rates = [\"10pkt/s\", \"0pkt/s\"], generator = [[-1.0, 1.0], [0.5, -0.5]]";
    assert!(close(changes(mmpp), 4.0 * 100.0 * 2.0 / 3.0));
    assert_eq!(changes("kind = \"cbr\", rate = \"1Mbit\""), 0.0);
}

#[test]
fn samples_updates_steps_and_predictions_are_counted() {
    let plain = parse(DUMBBELL);
    let cost = |scenario: &Scenario, runner, aqm: &str| {
        let spec = scenario.aqm(aqm).unwrap();
        scenario.cost(runner, Some(&spec)).unwrap()
    };
    let sampled = parse(&format!("{DUMBBELL}\n[record]\ninterval = \"20ms\"\n"));
    assert!(close(cost(&sampled, Runner::Packet, "droptail").count("samples"), 5000.0));
    assert!(close(cost(&plain, Runner::Packet, "droptail").count("samples"), 1000.0));
    assert_eq!(cost(&plain, Runner::Packet, "droptail").count("updates"), 0.0);
    assert!(close(cost(&plain, Runner::Packet, "pi2:interval=20ms").count("updates"), 5000.0));
    // From an AQM that changes at 60 s: 60 s of one, 40 s of the other.
    let event = "[[events]]\nat = \"60s\"\nlink = \"bottleneck\"\naqm = \"pi2:interval=10ms\"\n";
    let changed = parse(&format!("{DUMBBELL}\n{event}"));
    assert!(close(cost(&changed, Runner::Packet, "pi2:interval=20ms").count("updates"), 3000.0 + 4000.0));
    // The fluid: a twentieth of 181 ms would be 9 ms, 4 ms at the most; again with half of that, and so on: seven in
    // all.
    assert!(close(cost(&plain, Runner::Fluid, "droptail").count("steps"), 7.0 * 25_000.0));
    assert!(close(cost(&plain, Runner::Fluid, "pi2:interval=20ms").count("updates"), 7.0 * 5000.0));
    let near =
        with(&with(DUMBBELL, "delay = [\"35ms\", \"45ms\"]", "delay = \"1ms\""), "delay = \"20ms\"", "delay = \"2ms\"");
    // 4 ms and 4 ms and 1 ms.
    assert!(close(cost(&parse(&near), Runner::Fluid, "droptail").count("steps"), 7.0 * 100.0 * 20.0 / 0.009));
    // Whole run and steady, of one link; a window of one's own, and what an event begins, are more.
    let predictions = |text: &str| {
        let of = |loops| cost(&parse(text), Runner::Theory { loops }, "pi").count("predictions");
        assert_eq!(of(false), of(true));
        of(true)
    };
    let before = predictions(DUMBBELL);
    assert_eq!(predictions(&format!("{DUMBBELL}\n[windows]\nlate = [\"50s\", \"60s\"]\n")), before + 1.0);
    assert_eq!(predictions(&format!("{DUMBBELL}\n{event}")), before + 1.0);
    assert!(
        cost(&plain, Runner::Theory { loops: true }, "pi").seconds()
            > cost(&plain, Runner::Theory { loops: false }, "pi").seconds()
    );
}

#[test]
fn more_of_anything_costs_more() {
    let seconds = |text: &str, runner| parse(text).cost(runner, None).unwrap().seconds();
    let plain = seconds(DUMBBELL, Runner::Packet);
    // Twice the time, twice the cost.
    let twice = seconds(&with(DUMBBELL, "duration = \"100s\"", "duration = \"200s\""), Runner::Packet);
    assert!((twice / plain - 2.0).abs() < 0.02, "{twice} {plain}");
    // State beyond the cache, up to eight times.
    let of_flows = |count: &str| seconds(&with(DUMBBELL, "count = 4", count), Runner::Packet);
    let (thousand, many) = (of_flows("count = 1000"), of_flows("count = 50000"));
    assert!(many > 1.5 * thousand, "{many} {thousand}");
    // A few fit whatever there is besides; the packets are as many.
    assert!(thousand < 1.1 * of_flows("count = 400"), "{thousand}");
    // Flows whose round trips are far apart are classes of the fluid's, each with equations of its own, up to eight.
    let fluid = |text: &str| seconds(text, Runner::Fluid);
    let range = "delay = [\"35ms\", \"45ms\"]";
    let alike = with(DUMBBELL, range, "delay = \"35ms\"");
    let apart = with(DUMBBELL, range, "delay = [\"35ms\", \"400ms\"]");
    assert!(close(fluid(DUMBBELL), fluid(&alike)));
    assert!(fluid(&apart) > 1.3 * fluid(DUMBBELL));
    assert!(fluid(&with(&apart, "count = 4", "count = 8")) > 1.3 * fluid(&apart));
    assert!(close(fluid(&with(&apart, "count = 4", "count = 4000")), fluid(&with(&apart, "count = 4", "count = 8"))));
    assert!(close(fluid(&with(&alike, "count = 4", "count = 40")), fluid(&alike)));
}

/// What is said of so many runs, in seconds; `None` if nothing is.
fn told(scenario: &Scenario, runs: u64) -> Option<(f64, String)> {
    let message = scenario.check_cost(Runner::Packet, None, runs).unwrap()?;
    let rest = message.strip_prefix("this takes about ").unwrap();
    let (number, rest) = rest.split_once(' ').unwrap();
    let unit = rest.split([',', ':', ' ']).next().unwrap();
    let each = match unit {
        "s" => 1.0,
        "minutes" => 60.0,
        "hours" => 3600.0,
        "days" => 86_400.0,
        other => panic!("{other}: {message}"),
    };
    Some((number.parse::<f64>().unwrap() * each, message))
}

#[test]
fn what_takes_long_is_said_in_the_unit_that_fits() {
    let scenario = parse(DUMBBELL);
    let cost = scenario.cost(Runner::Packet, None).unwrap();
    let (each, packets) = (cost.seconds(), cost.count("packets"));
    assert_eq!(told(&scenario, 1), None);
    assert_eq!(told(&scenario, (9.9 / each) as u64), None);
    for (seconds, unit) in [
        (10.6, " s "),
        (99.0, " s "),
        (101.0, " minutes "),
        (5950.0, " minutes "),
        (6100.0, " hours "),
        (350_000.0, " hours "),
        (370_000.0, " days "),
        (80e6, " days "),
    ] {
        let runs = (seconds / each) as u64;
        let (said, message) = told(&scenario, runs).unwrap();
        assert!((said / seconds - 1.0).abs() < 0.35 && message.contains(unit), "{seconds} s: {message}");
        assert!(message.contains(&format!(" for {runs} runs, on one core: ")), "{message}");
        let count: f64 = message.rsplit(": ").next().unwrap().strip_suffix(" packets").unwrap().parse().unwrap();
        assert!((count / (packets * runs as f64) - 1.0).abs() < 0.05, "{message}");
    }
    let years = scenario.check_cost(Runner::Packet, None, (100e6 / each) as u64).unwrap().unwrap();
    assert!(years.starts_with("this takes about years for "), "{years}");
}

#[test]
fn what_a_refusal_offers_is_accepted_and_what_is_beyond_is_not() {
    let check = |text: &str| parse(text).check_cost(Runner::Packet, None, 1).map_err(|error| error.to_string());
    // Days of a fast link: the longest duration that is accepted is.
    let fast = |duration: &str| {
        let wide =
            with(&with(DUMBBELL, "rate = \"8Mbit\"", "rate = \"100Gbit\""), "rate = \"10Mbit\"", "rate = \"100Gbit\"");
        let windows =
            with(&wide, "transport = \"ns2\"", "transport = { preset = \"ns2\", receive_window = \"1000000pkt\" }");
        check(&with(&windows, "duration = \"100s\"", &format!("duration = \"{duration}\"")))
    };
    let refused = fast("24h").unwrap_err();
    assert!(refused.contains("duration = \"24h\": makes ") && refused.contains(" packets, about "), "{refused}");
    let most = refused.rsplit("at most ").next().unwrap().strip_suffix(" is accepted").unwrap();
    let seconds: f64 = most.strip_suffix('s').unwrap().parse().unwrap();
    // Two digits, upward.
    assert!(fast(&format!("{}s", 0.9 * seconds)).is_ok(), "{refused}");
    assert!(fast(&format!("{}s", 1.15 * seconds)).is_err(), "{refused}");
}

#[test]
fn updates_that_take_far_longer_than_a_short_run_are_in_proportion_beside_a_long_one() {
    let check = |text: &str, micros: u32| {
        let scenario = parse(text);
        let aqm = scenario.aqm(&format!("fq-pie:interval={micros}us")).unwrap();
        scenario.check_cost(Runner::Packet, Some(&aqm), 1).map(|_| ()).map_err(|error| error.to_string())
    };
    // A hundred thousand packets take less than a second: the longest interval that is refused takes one to two
    // minutes, since with twice that it is not.
    let busy = with(DUMBBELL, "count = 4", "count = 400");
    let refused = (0..20).rev().map(|k| 1 << k).find(|micros| check(&busy, *micros).is_err()).unwrap();
    assert_eq!(check(&busy, 2 * refused), Ok(()));
    let told = check(&busy, refused).unwrap_err();
    assert!(told.contains("an update of up to 400 queues each "), "{told}");
    // As many updates beside a thousand times the packets, which take about a minute.
    let wide = with(&with(&busy, "rate = \"8Mbit\"", "rate = \"8Gbit\""), "rate = \"10Mbit\"", "rate = \"100Gbit\"");
    let window = "transport = { preset = \"ns2\", receive_window = \"1000000pkt\" }";
    assert_eq!(check(&with(&wide, "transport = \"ns2\"", window), refused), Ok(()));
}

#[test]
fn updates_that_take_far_too_long_name_what_would_do() {
    let scenario = parse(DUMBBELL);
    let network = scenario.plan(1, None).unwrap().links[0].aqm.network;
    let limit = Limit::packets(300);
    let check = |aqm: &str, duration_s: f64, rest_s: f64| {
        check_updates(&AqmSpec::builtin(aqm).unwrap(), network, limit, u64::MAX, duration_s, rest_s)
    };
    assert_eq!(check("droptail", 1e12, 0.0), Ok(()));
    assert_eq!(check("fq-pie", 100.0, 0.0), Ok(()));
    let refused = check("fq-pie:interval=1us", 100.0, 0.0).unwrap_err();
    assert!(refused.starts_with("an update of up to 1024 queues each 1us, 1.0e8 of them, takes about "), "{refused}");
    let offered = refused.rsplit("; ").next().unwrap().strip_suffix(" is accepted").unwrap();
    let (name, value) = offered.split_once(" = ").unwrap();
    assert_eq!(name, "interval");
    // The nearest power of ten.
    assert_eq!(check(&format!("fq-pie:interval={value}"), 100.0, 0.0), Ok(()));
    let nanos = |text: &str| aqumen_scenario::read_span(text).unwrap().as_nanos();
    let tenth = nanos(value) / 10;
    assert!(check(&format!("fq-pie:interval={tenth}ns"), 100.0, 0.0).is_err(), "{refused}");
    // Beside a run that takes long itself they are in proportion.
    assert_eq!(check("fq-pie:interval=1us", 100.0, 1000.0), Ok(()));
    // Ten flows have ten queues at the most, and those of the others are at rest.
    let ten = AqmSpec::builtin("fq-pie:interval=1us").unwrap();
    assert_eq!(check_updates(&ten, network, limit, 10, 100.0, 0.0), Ok(()));
    // One queue each microsecond: seconds in 100 s, too long in a day.
    assert_eq!(check("pi2:interval=1us", 100.0, 0.0), Ok(()));
    let day = check("pi2:interval=1us", 86_400.0, 0.0).unwrap_err();
    assert!(day.starts_with("an update each 1us, 8.6e10 of them, takes about "), "{day}");
}

#[test]
fn nobody_else_on_the_way_is_the_delay_and_the_bytes_at_the_slowest_link() {
    let plan = parse(DUMBBELL).plan(1, None).unwrap();
    let links: Vec<_> = plan.flows[0].path.iter().map(|&link| &plan.links[link as usize]).collect();
    let delay: u64 = links.iter().map(|link| link.delay.as_nanos()).sum();
    assert!((90_000_000..=110_000_000).contains(&delay));
    // 1000 bytes at 8 Mbit/s are 1 ms.
    assert_eq!(plan.alone_ns(0, 1000), (delay + 1_000_000) as f64);
    assert_eq!(plan.alone_ns(0, 0), delay as f64);
}

#[test]
fn transfers_by_load_have_an_end() {
    let wrong = |fields: &str| {
        let text = with(
            DUMBBELL,
            "transport = \"ns2\"",
            &format!("transport = \"ns2\"\ntraffic = {{ kind = \"transfers\", {fields} }}"),
        );
        Scenario::parse(&text, "t.toml").map(|_| ()).map_err(|error| error.to_string())
    };
    // 8 Gbit/s of one byte each are 1e9 a second.
    assert_eq!(wrong("load = \"8Gbit\", size = \"1B\""), Ok(()));
    let told = wrong("load = \"9Gbit\", size = \"1B\"").unwrap_err();
    assert!(told.contains("gives more than 1e9 transfers per second"), "{told}");
}

// Memory.

fn memory(text: &str) -> f64 {
    parse(text).memory_estimate(Runner::Packet, None) as f64
}

#[test]
fn memory_grows_with_samples_windows_and_flows_by_equal_steps() {
    let sampled = |interval: &str| memory(&format!("{DUMBBELL}\n[record]\ninterval = \"{interval}\"\n"));
    // 50000, 100000 and 200000 samples of one link; the packets of a second, 1000, are fewer than what four flows could
    // do in the samples of one.
    let (once, twice, four) = (sampled("2ms"), sampled("1ms"), sampled("500us"));
    assert!((((four - twice) / (twice - once)) - 2.0).abs() < 0.02, "{once} {twice} {four}");
    let windows = |n: usize| {
        let lines: String = (0..n).map(|i| format!("w{i} = [\"{}s\", \"{}s\"]\n", 10 + i, 50 + i)).collect();
        memory(&format!("{DUMBBELL}\n[windows]\n{lines}"))
    };
    let (one, two, three) = (windows(1), windows(2), windows(3));
    assert!(two > one + 10_000.0);
    assert_eq!(three - two, two - one);
    let flows = |n: u32| memory(&with(DUMBBELL, "count = 4", &format!("count = {n}")));
    let (ten, eleven, twelve) = (flows(3000), flows(4000), flows(5000));
    assert!((eleven - ten) / 1000.0 > 1700.0);
    assert!(((twelve - eleven) / (eleven - ten) - 1.0).abs() < 0.02);
    // The fluid has no packets. It keeps twice the longest round trip of its past, in steps that follow from the
    // shortest.
    let fluid = |rtt: &str| {
        let text = with(DUMBBELL, "transport = \"ns2\"", &format!("transport = \"ns2\"\nrtt = {rtt}"));
        parse(&text).memory_estimate(Runner::Fluid, None) as f64
    };
    let (short, long, longer) =
        (fluid("[\"300ms\", \"400ms\"]"), fluid("[\"300ms\", \"10300ms\"]"), fluid("[\"300ms\", \"20300ms\"]"));
    assert!(long > short + 100_000.0, "{short} {long}");
    assert!(longer > long + 100_000.0, "{long} {longer}");
    // For each class of round trips of which it tells flows apart: one of one flow, eight of eight.
    let grows = |count: u32| {
        let of = |rtt: &str| {
            let lines = format!("count = {count}\ntransport = \"ns2\"\nrtt = {rtt}");
            let text = with(&with(DUMBBELL, "count = 4\n", ""), "transport = \"ns2\"", &lines);
            parse(&text).memory_estimate(Runner::Fluid, None) as f64
        };
        of("[\"300ms\", \"60s\"]") - of("[\"300ms\", \"40s\"]")
    };
    assert!((grows(8) / grows(1) - 25.0 / 4.0).abs() < 0.01, "{} {}", grows(8), grows(1));
    // Twice the longest, as far as the run of 100 s goes back: 20 s more from 20 to 30 s, and from 40 s on.
    let of = |seconds: u32| fluid(&format!("[\"300ms\", \"{seconds}s\"]"));
    assert!(((of(30) - of(20)) / (of(60) - of(40)) - 1.0).abs() < 0.05, "{} {}", of(30) - of(20), of(60) - of(40));
    assert_eq!(of(70), of(60));
    let scenario = parse(&with(DUMBBELL, "count = 4", "count = 4000"));
    assert!(scenario.memory_estimate(Runner::Fluid, None) < scenario.memory_estimate(Runner::Packet, None));
}

#[test]
fn of_each_flow_the_acknowledgements_of_a_second_are_kept() {
    // What a flow more takes, by the interval between samples: 48 bytes for each sample of a second, and for two more.
    let more = |interval: &str, duration: &str| {
        let of = |count: u32| {
            let text = with(DUMBBELL, "duration = \"100s\"", &format!("duration = \"{duration}\""));
            let text = with(&text, "start = [\"0s\", \"1s\"]", "start = \"0s\"");
            let text = with(&text, "count = 4", &format!("count = {count}"));
            memory(&format!("{text}\n[record]\ninterval = \"{interval}\"\n"))
        };
        of(5) - of(4)
    };
    assert_eq!(more("100ms", "100s") - more("2s", "100s"), 48.0 * (12.0 - 2.0));
    assert_eq!(more("250ms", "100s") - more("500ms", "100s"), 48.0 * (6.0 - 4.0));
    // There are no more samples than the run has: six in half a second, and three.
    assert_eq!(more("100ms", "500ms") - more("250ms", "500ms"), 48.0 * (6.0 - 3.0));
    // In a second and a half there are two, one second apart.
    assert_eq!(more("100ms", "1500ms") - more("1s", "1500ms"), 48.0 * (12.0 - 2.0));
    // Nor more acknowledgements than the link carries packets in a second, 1000, where four flows have 1002 samples
    // each.
    assert_eq!(more("2s", "100s") - more("1ms", "100s"), 48.0 * 2.0);
}

#[test]
fn a_queue_that_forms_takes_more_than_one_that_does_not() {
    // Four access links of 10 Mbit/s before 8 Mbit/s, before 39 and before 41.
    // Windows of two packets, so that packets do not count.
    let small = with(DUMBBELL, "transport = \"ns2\"", "transport = { preset = \"ns2\", receive_window = \"2pkt\" }");
    let rate = |rate: &str| memory(&with(&small, "rate = \"8Mbit\"", &format!("rate = \"{rate}\"")));
    assert!(rate("39Mbit") > rate("41Mbit") + 10_000.0);
    assert!((rate("39Mbit") - rate("8Mbit")).abs() < 50_000.0);
}

/// Links wide enough for anything before a bottleneck of `rate` with DropTail.
fn wide(rate: &str) -> String {
    let text = with(DUMBBELL, "aqm = \"pi-x1000\"", "aqm = \"droptail\"");
    let text = with(&text, "rate = \"8Mbit\"", &format!("rate = \"{rate}\""));
    with(&text, "rate = \"10Mbit\"", "rate = \"10Gbit\"")
}

fn of_transport(text: &str, transport: &str) -> String {
    with(text, "transport = \"ns2\"", &format!("transport = {transport}"))
}

fn of_buffer(text: &str, buffer: &str) -> f64 {
    memory(&with(text, "buffer = \"300pkt\"", &format!("buffer = \"{buffer}\"")))
}

#[test]
fn a_packet_that_waits_takes_what_is_kept_of_it_by_its_transport() {
    // From 2^17 to 2^18 places, so that what doubles has doubled. A list takes half as much again as it holds: of each
    // packet the event and its place in the queue (32 bytes each), how long the queue had that length (8), and what the
    // two ends keep.
    let each = |text: &str| (of_buffer(text, "262144pkt") - of_buffer(text, "131072pkt")) / 131_072.0;
    let port = 1.5 * (32.0 + 32.0 + 8.0);
    let tcp = |preset: &str| format!("{{ preset = \"{preset}\", receive_window = \"1000000pkt\" }}");
    // A receiver that answers at once has delivered ahead of time, of which 20 bytes are kept.
    let reno = each(&of_transport(&wide("1Gbit"), &tcp("ns2")));
    assert!((reno - port - 30.0).abs() < 1.0, "{reno}");
    // Today's senders keep of each segment when it left and what became of it, 16 bytes; their receivers wait.
    let linux = each(&of_transport(&wide("1Gbit"), &tcp("linux-reno")));
    assert!((linux - port - 24.0).abs() < 1.0, "{linux}");
    // A datagram lies in a table until it arrives; of an SCTP chunk its source keeps as much again.
    let cbr = "\"udp\"\ntraffic = { kind = \"cbr\", rate = \"1Gbit\", packet = \"1000B\" }";
    let udp = each(&of_transport(&wide("1Gbit"), cbr));
    let packet = 1.5 * size_of::<aqumen_transport::Packet>() as f64;
    assert!((udp - port - packet).abs() < 1.0, "{udp}");
    let sctp = each(&of_transport(&wide("1Gbit"), "{ preset = \"sctp\", receive_window = \"1GB\" }"));
    assert!((50.0..200.0).contains(&(sctp - udp)), "{sctp} {udp}");
    // A buffer in bytes is one in packets of 1000 bytes.
    let reno = of_transport(&wide("1Gbit"), &tcp("ns2"));
    assert_eq!(of_buffer(&reno, "100000pkt"), of_buffer(&reno, "100MB"));
}

#[test]
fn windows_and_ways_bound_what_is_under_way() {
    let large = of_transport(&wide("1Gbit"), "{ preset = \"ns2\", receive_window = \"1000000pkt\" }");
    // Twice the way holds more packets: 1 Gbit/s for two seconds more there and back, 250000 of them.
    let delay = |delay: &str| memory(&with(&large, "delay = \"20ms\"", &format!("delay = \"{delay}\"")));
    let (near, far, farther) = (delay("1s"), delay("2s"), delay("3s"));
    assert!((far - near) / 250_000.0 > 50.0, "{near} {far}");
    assert!(((farther - far) / (far - near) - 1.0).abs() < 0.05);
    // Windows that admit few packets have few, whatever the room.
    let small = with(&large, "receive_window = \"1000000pkt\"", "receive_window = \"2pkt\"");
    assert_eq!(of_buffer(&small, "300pkt"), of_buffer(&small, "300000pkt"));
    // The window of an association counts bytes: a million of them are some 700 packets of each of four flows.
    let sctp = |window: &str| {
        let transport = format!("{{ preset = \"sctp\", receive_window = \"{window}\" }}");
        of_buffer(&of_transport(&wide("1Gbit"), &transport), "300000pkt")
    };
    let more = sctp("2MB") - sctp("1MB");
    assert!((2800.0 * 200.0..2800.0 * 800.0).contains(&more), "{more}");
}

#[test]
fn in_a_short_run_windows_hold_no_more_than_was_acknowledged() {
    let wide = of_transport(&wide("100Mbit"), "{ preset = \"ns2\", receive_window = \"9000000pkt\" }");
    let of = |duration: &str, buffer: &str| {
        let lasts = format!("duration = \"{duration}\"\nrecord.interval = \"100ms\"");
        of_buffer(&with(&wide, "duration = \"100s\"", &lasts), buffer)
    };
    // 100 Mbit/s carry 12 500 packets of 1000 bytes in a second, each of which lets one more in.
    assert_eq!(of("10s", "1000000pkt"), of("10s", "2000000pkt"));
    let each = (of("20s", "1000000pkt") - of("10s", "1000000pkt")) / 125_000.0;
    // 90 of each of 262 144 places in place of 131 072, and 48 of each packet.
    assert!((each - 90.0 * 131_072.0 / 125_000.0 - 48.0).abs() < 5.0, "{each}");
}

#[test]
fn datagrams_wait_where_more_come_than_the_link_carries_and_no_more_than_that() {
    // What so many places more are said to take.
    let room = |traffic: &str, more: &str, few: &str, many: &str| {
        let transport = format!("\"udp\"\ntraffic = {{ {traffic} }}");
        let text = of_transport(&wide("100Mbit"), &transport) + more;
        of_buffer(&text, many) - of_buffer(&text, few)
    };
    let cbr = |rate: u32| format!("kind = \"cbr\", rate = \"{rate}Mbit\", packet = \"1000B\"");
    let steady = |rate: u32, few: &str, many: &str| room(&cbr(rate), "", few, many);
    // 4 times 24 Mbit/s of packets that are 1028 bytes with their headers are 98.7 Mbit/s: evenly spaced they fit.
    assert_eq!(steady(24, "1000pkt", "1000000pkt"), 0.0);
    // 4 times 26 Mbit/s are 106.9: 6.9 Mbit/s more for 100 s, 84 100 packets.
    assert!(steady(26, "40000pkt", "80000pkt") > 40_000.0 * 150.0);
    assert_eq!(steady(26, "100000pkt", "1000000pkt"), 0.0);
    // Bursts fit where all at once do; where they do not, they pile up now and then.
    let bursts =
        |rate: u32| format!("kind = \"on-off\", rate = \"{rate}Mbit\", packet = \"1000B\", on = \"1s\", off = \"1s\"");
    assert_eq!(room(&bursts(24), "", "1000pkt", "1000000pkt"), 0.0);
    assert!(room(&bursts(30), "", "1000pkt", "10000pkt") > 9000.0 * 150.0);
    // ON for a quarter of the time, four times 24 Mbit/s where all are ON at once.
    let similar = |rate: &str| {
        format!("kind = \"self-similar\", rate = \"{rate}\", sources = 10, on = \"500ms\", off = \"1500ms\"")
    };
    assert_eq!(room(&similar("6Mbit"), "", "1000pkt", "5000pkt"), 0.0);
    assert!(room(&similar("20Mbit"), "", "1000pkt", "5000pkt") > 4000.0 * 150.0);
    // A link that becomes too slow from 50 s on: 86.4 Mbit/s come and 40 leave, 282 000 packets. One that is down holds
    // what comes: 4.1 Mbit/s for 50 s, 25 000.
    let slower = "\n[[events]]\nat = \"50s\"\nlink = \"bottleneck\"\ncapacity = \"40Mbit\"\n";
    assert!(room(&cbr(21), slower, "100000pkt", "200000pkt") > 100_000.0 * 150.0);
    assert_eq!(room(&cbr(21), slower, "300000pkt", "3000000pkt"), 0.0);
    assert_eq!(room(&cbr(8), slower, "1000pkt", "1000000pkt"), 0.0);
    let down = "\n[[events]]\nat = \"50s\"\nlink = \"bottleneck\"\nstate = \"down\"\n";
    assert!(room(&cbr(1), down, "10000pkt", "20000pkt") > 10_000.0 * 150.0);
    assert_eq!(room(&cbr(1), down, "30000pkt", "1000000pkt"), 0.0);
}

#[test]
fn of_sources_that_send_evenly_one_packet_each_may_wait() {
    // 1000 sources of 80 kbit/s and headers, 82.2 Mbit/s in all, fit into 100 Mbit/s; all may send at the same moment.
    let text = with(&wide("100Mbit"), "count = 4", "count = 1000");
    let cbr = "\"udp\"\ntraffic = { kind = \"cbr\", rate = \"80kbit\", packet = \"1000B\" }";
    let text = of_transport(&text, cbr);
    assert!(of_buffer(&text, "1000pkt") > of_buffer(&text, "500pkt") + 500.0 * 40.0);
    assert_eq!(of_buffer(&text, "1000pkt"), of_buffer(&text, "1000000pkt"));
}

#[test]
fn bursts_pile_up_as_brownian_motion_by_four_deviations_at_most_and_by_no_more_than_comes() {
    // Sources that are ON for 1 s and OFF for 1 s on the average send 3750 packets a second at 30 Mbit/s. In each
    // second the variance of what four of them send is 4 * 2 (3750 / 2)^2 / 2 = 3750^2 packets. Of 61.7 Mbit/s in the
    // mean 100 leave: the queue empties by 4660 packets a second, and is 14 * 3750^2 / (2 * 4660) = 21 130 at times.
    let bursts = |rate: &str| {
        let kind = format!("kind = \"on-off\", rate = \"{rate}\", packet = \"1000B\", on = \"1s\", off = \"1s\"");
        of_transport(&wide("100Mbit"), &format!("\"udp\"\ntraffic = {{ {kind} }}"))
    };
    let of = |rate: &str, buffer: &str| of_buffer(&bursts(rate), buffer);
    assert!(of("30Mbit", "21100pkt") > of("30Mbit", "20000pkt") + 1100.0 * 40.0);
    assert_eq!(of("30Mbit", "21150pkt"), of("30Mbit", "1000000pkt"));
    // ON for 1 s and OFF for 3 s they send a quarter of the time: 4 * 2 (3750 * 3)^2 / 64 = 3977^2, and 8410 packets a
    // second leave beside them: 13 170.
    let rarely = bursts("30Mbit").replace("off = \"1s\"", "off = \"3s\"");
    assert!(of_buffer(&rarely, "13100pkt") > of_buffer(&rarely, "12000pkt") + 1100.0 * 40.0);
    assert_eq!(of_buffer(&rarely, "13200pkt"), of_buffer(&rarely, "1000000pkt"));
    // In 10 s no more come than their mean and four deviations, 77 000 packets.
    let shortly = |buffer: &str| {
        let text = with(&bursts("48.63Mbit"), "duration = \"100s\"", "duration = \"10s\"");
        of_buffer(&text, buffer)
    };
    assert!(shortly("76500pkt") > shortly("70000pkt") + 6500.0 * 40.0);
    assert_eq!(shortly("77500pkt"), shortly("1000000pkt"));
    // As many as leave: four deviations of 100 s, 4 * 10 * 6079.
    assert!(of("48.63Mbit", "243000pkt") > of("48.63Mbit", "200000pkt") + 43_000.0 * 40.0);
    assert_eq!(of("48.63Mbit", "243300pkt"), of("48.63Mbit", "1000000pkt"));
    // Of 24.4 Mbit/s 333 kbit/s are too much if all are ON for 100 s: 4047.
    assert!(of("24.4Mbit", "4000pkt") > of("24.4Mbit", "3000pkt") + 1000.0 * 40.0);
    assert_eq!(of("24.4Mbit", "4100pkt"), of("24.4Mbit", "1000000pkt"));
}

#[test]
fn media_whose_rate_is_told_come_at_no_less_than_the_least_rate_and_no_more_than_the_highest() {
    // Whatever the written rate: TFRC tells theirs.
    let cbr = |rate: &str| {
        let kind = format!("\"rtp-tfrc\"\ntraffic = {{ kind = \"cbr\", rate = \"{rate}\", packet = \"1000B\" }}");
        of_transport(&wide("1Mbit"), &kind)
    };
    assert_eq!(of_buffer(&cbr("7kbit"), "20000pkt"), of_buffer(&cbr("70Mbit"), "20000pkt"));
    // Four flows of at most 1.5 Mbit/s, of 1000 bytes and 40 of headers each: 6.24 Mbit/s. What is wider never fills.
    let room = |rate: &str, buffer: &str| of_buffer(&with(&cbr("1Mbit"), "\"1Mbit\"\ndelay", rate), buffer);
    let fills = |rate: &str| room(rate, "20000pkt") - room(rate, "1000pkt");
    assert_eq!(fills("\"6300kbit\"\ndelay"), 0.0);
    assert!(fills("\"5500kbit\"\ndelay") > 1000.0 * 150.0);
    // CoDel has them come down to 150 kbit/s and no further: 40 such flows are 6.24 Mbit/s, and 1 Mbit/s leave.
    let fills = |text: &str| {
        let text = with(&with(text, "count = 4", "count = 40"), "\"100Mbit\"\ndelay", "\"1Mbit\"\ndelay");
        let of = |buffer: &str| {
            let scenario = parse(&with(&text, "buffer = \"300pkt\"", &format!("buffer = \"{buffer}\"")));
            scenario.memory_estimate(Runner::Packet, Some(&scenario.aqm("codel").unwrap())) as f64
        };
        of("3000pkt") - of("1500pkt")
    };
    let media = fills(&with(&cbr("1Mbit"), "\"1Mbit\"\ndelay", "\"100Mbit\"\ndelay"));
    assert!(media > 1500.0 * 150.0, "{media}");
}

#[test]
fn calls_over_rtp_are_written_as_they_come_and_nobody_slows_them_down() {
    let calls = |transport: &str| {
        let kind = "traffic = { kind = \"voip\", codec = \"g711\", suppress = false }";
        of_transport(&with(&wide("100kbit"), "count = 4", "count = 40"), &format!("\"{transport}\"\n{kind}"))
    };
    // 40 calls of 80 kbit/s, where 100 kbit/s leave for 100 s, are far more than 10 000 packets, whoever carries them.
    let more = |transport: &str| of_buffer(&calls(transport), "9000pkt") - of_buffer(&calls(transport), "8500pkt");
    for transport in ["udp", "rtp", "rtp-tfrc", "rtp-nada"] {
        assert!(more(transport) > 500.0 * 40.0, "{transport}: {}", more(transport));
    }
}

#[test]
fn what_applications_write_fills_no_link_that_carries_it() {
    // Four films of 20 Mbit/s, of frames of 83 kB on the average, and a packet of each that is cut short; what a link
    // of 100 Mbit/s leaves room for, and one of 70 does not. So does a connection that carries what is ON half of the
    // time.
    let film = "traffic = { kind = \"video\", rate = \"20Mbit\" }";
    let bursts =
        "traffic = { kind = \"on-off\", rate = \"40Mbit\", packet = \"1000B\", on = \"50ms\", off = \"50ms\" }";
    for transport in ["\"udp\"", "\"linux\"", "{ preset = \"sctp\", receive_window = \"100MB\" }"] {
        for traffic in [film, bursts] {
            let text = |rate: &str| of_transport(&wide(rate), &format!("{transport}\n{traffic}"));
            let more = |rate: &str| of_buffer(&text(rate), "400000pkt") - of_buffer(&text(rate), "60000pkt");
            assert_eq!(more("100Mbit"), 0.0, "{transport} {traffic}");
            assert!(more("70Mbit") > 10_000.0 * 40.0, "{transport} {traffic}: {}", more("70Mbit"));
        }
    }
}

#[test]
fn of_each_transfer_and_page_its_times_are_kept() {
    // Windows of two packets, so that packets do not count.
    let linux = "{ preset = \"linux\", receive_window = \"2pkt\" }";
    let of = |traffic: &str| memory(&of_transport(&wide("1Gbit"), &format!("{linux}\ntraffic = {{ {traffic} }}")));
    // 48 bytes, in a list that grows: 100 transfers a second for 100 s, and another 100.
    let transfers = |rate: u32| of(&format!("kind = \"transfers\", size = \"1000B\", rate = \"{rate}/s\""));
    let per_transfer = (transfers(200) - transfers(100)) / 10_000.0;
    assert_eq!(per_transfer, 72.0);
    // No more than the link carries: 20 MB in a second, of 125.
    let large = |rate: u32| of(&format!("kind = \"transfers\", size = \"1MB\", rate = \"{rate}/s\""));
    assert!(large(2000) - large(1000) < 72.0 * 1000.0, "{}", large(2000) - large(1000));
    // A page is a transfer for each of its objects and one more.
    let pages = |objects: u32| {
        let sizes = "main = \"1000B\", embedded = \"1000B\", parsing = \"1ms\", reading = \"1s\"";
        of(&format!("kind = \"web\", {sizes}, objects = {objects}.0"))
    };
    // Four sessions, in which reading, parsing and two round trips of 180 ms pass from page to page: ten objects more
    // of each.
    let per_object = (pages(20) - pages(10)) / (4.0 * 10.0 * (1.0 + 100.0 / 1.361));
    assert!((per_object - 72.0).abs() < 2.0, "{per_object}");
}

#[test]
fn a_message_waits_for_its_association_where_others_leave_too_little() {
    // Four associations that are to carry 10 Mbit/s each, alone on 100 Mbit/s and beside transfers without end.
    let of = |rate: &str, others: u32| {
        let kind = format!("\"sctp\"\ntraffic = {{ kind = \"cbr\", rate = \"{rate}\", packet = \"1000B\" }}");
        let bulk = format!("\n[[flows]]\nname = \"others\"\ncount = {others}\ntransport = \"ns2\"\n");
        memory(&(of_transport(&wide("100Mbit"), &kind) + &bulk))
            - memory(&(of_transport(&wide("100Mbit"), "\"sctp\"") + &bulk))
    };
    // One other leaves 15 Mbit/s each, more than what is asked for. Of 96 others each has 1 Mbit/s: 9 or more of 10
    // wait, for 100 s 125 000 messages of each association at the least.
    assert!(of("5Mbit", 1) < 1e6, "{}", of("5Mbit", 1));
    // Nobody else, but a buffer of five packets: nine in a round trip of 181 ms, 600 kbit/s of 5 Mbit/s.
    let alone = |buffer: &str| {
        let kind = "\"sctp\"\ntraffic = { kind = \"cbr\", rate = \"5Mbit\", packet = \"1000B\" }";
        of_buffer(&of_transport(&wide("100Mbit"), kind), buffer)
    };
    assert!(alone("5pkt") > alone("300pkt") + 4.0 * 0.8 * 62_500.0 * 24.0, "{}", alone("5pkt"));
    assert!(of("10Mbit", 96) > 4.0 * 0.9 * 125_000.0 * 24.0, "{}", of("10Mbit", 96));
}

#[test]
fn sources_together_take_memory_one_by_one_and_nada_what_came_within_half_a_second() {
    let of = |transport: &str| memory(&of_transport(&wide("1Gbit"), transport));
    let similar = |sources: u32| {
        of(&format!("\"udp\"\ntraffic = {{ kind = \"self-similar\", rate = \"20kbit\", sources = {sources} }}"))
    };
    // Four flows. Their packets are as many, but come less evenly.
    let each = (similar(1000) - similar(500)) / 2000.0;
    assert!((160.0..180.0).contains(&each), "{each}");
    // Four flows of 1.5 Mbit/s, 188 packets a second.
    let nada = of("\"rtp-nada\"") - of("\"rtp-tfrc\"");
    assert!((4.0 * 94.0 * 32.0..4.0 * 200.0 * 40.0).contains(&nada), "{nada}");
}

#[test]
fn an_aqm_that_keeps_the_queue_short_leaves_a_buffer_of_millions_empty() {
    let text = of_transport(&wide("100Mbit"), "{ preset = \"ns2\", receive_window = \"1000000pkt\" }");
    let text = with(&text, "buffer = \"300pkt\"", "buffer = \"200000pkt\"");
    let of = |text: &str, aqm: &str| {
        let scenario = parse(text);
        scenario.memory_estimate(Runner::Packet, Some(&scenario.aqm(aqm).unwrap())) as f64
    };
    let (full, short) = (of(&text, "droptail"), of(&text, "codel"));
    assert!(full > short + 200_000.0 * 120.0, "{full} {short}");
    for aqm in ["pie", "fq-codel"] {
        assert!(of(&text, aqm) < short + 8e6, "{aqm}: {} {short}", of(&text, aqm));
    }
    // CoDel cannot hold back what does not answer; PIE can.
    let cbr = "\"udp\"\ntraffic = { kind = \"cbr\", rate = \"40Mbit\", packet = \"1000B\" }";
    let text = with(&of_transport(&wide("100Mbit"), cbr), "buffer = \"300pkt\"", "buffer = \"200000pkt\"");
    assert!(of(&text, "codel") > of(&text, "pie") + 100_000.0 * 150.0, "{}", of(&text, "codel"));
    // Queues of their own take memory whether anything waits there or not: 1024 of them here.
    let small = with(&text, "buffer = \"200000pkt\"", "buffer = \"100pkt\"");
    assert!(of(&small, "fq-codel") > of(&small, "droptail") + 1024.0 * 100.0);
}

#[test]
fn an_aqm_that_takes_longer_to_hold_a_queue_than_is_looked_at_leaves_its_buffer_empty_too() {
    // 1000 flows at 2 Gbit/s: CoDel signals one after the other, and 250 000 packets come in a second.
    let text = of_transport(&wide("2Gbit"), "{ preset = \"ns2\", receive_window = \"1000000pkt\" }");
    let text = with(&text, "count = 4", "count = 1000");
    let of = |buffer: &str| {
        let scenario = parse(&with(&text, "buffer = \"300pkt\"", &format!("buffer = \"{buffer}\"")));
        scenario.memory_estimate(Runner::Packet, Some(&scenario.aqm("codel").unwrap())) as f64
    };
    assert_eq!(of("10000000pkt"), of("1000000000pkt"));
}

#[test]
fn windows_fill_no_buffer_beyond_the_shortest_on_their_way() {
    // Two links one after the other, and four flows over both: a loss at the second ends the growth that would fill the
    // first. 2250 packets in the pipe of 200 ms, and 100 that wait, twice.
    let of = |first: &str, second: &str| {
        let text = format!(
            r#"
            name = "row"
            duration = "100s"
            [topology]
            nodes = ["a", "b", "c"]
            access = {{ rate = "1Gbit", delay = "25ms" }}
            [[topology.links]]
            name = "first"
            from = "a"
            to = "b"
            rate = "100Mbit"
            delay = "25ms"
            buffer = "{first}"
            aqm = "droptail"
            [[topology.links]]
            name = "second"
            from = "b"
            to = "c"
            rate = "90Mbit"
            delay = "25ms"
            buffer = "{second}"
            aqm = "droptail"
            [[flows]]
            name = "bulk"
            count = 4
            transport = {{ preset = "ns2", receive_window = "1000000pkt" }}
            from = "a"
            to = "c"
            "#
        );
        memory(&text)
    };
    assert_eq!(of("100000pkt", "100pkt"), of("1000000pkt", "100pkt"));
    assert!(of("2000pkt", "100pkt") > of("1000pkt", "100pkt") + 1000.0 * 40.0);
    // Where the other has room for as many both may be full.
    assert!(of("100000pkt", "100000pkt") > of("100000pkt", "100pkt") + 90_000.0 * 40.0);
}

#[test]
fn a_lossy_wire_ends_the_growth_of_windows_but_not_of_bbr() {
    let of = |preset: &str, loss: &str, buffer: &str| {
        let transport = format!("{{ preset = \"{preset}\", receive_window = \"1000000pkt\" }}");
        let text = with(&of_transport(&wide("100Mbit"), &transport), "buffer =", &format!("loss = {loss}\nbuffer ="));
        of_buffer(&text, buffer)
    };
    // One of a hundred: each of four flows has sent some hundreds when it hears of its first.
    assert_eq!(of("ns2", "0.01", "4000pkt"), of("ns2", "0.01", "400000pkt"));
    // One of a million: far more than fit into any of these.
    assert!(of("ns2", "1e-6", "40000pkt") > of("ns2", "1e-6", "4000pkt") + 36_000.0 * 40.0);
    assert_eq!(of("bbr", "0.01", "40000pkt"), of("bbr", "1e-6", "40000pkt"));
}

#[test]
fn beside_windows_as_many_datagrams_wait_as_come_with_them() {
    // A thousand packets of windows: half of the link brings as many datagrams to wait beside them, and as many are on
    // wires, though there is room for a hundred thousand and more come in all.
    let of = |rate: &str| {
        let calls = format!(
            "\n[[flows]]\nname = \"calls\"\ncount = 4\ntransport = \"udp\"\n\
             traffic = {{ kind = \"cbr\", rate = \"{rate}\", packet = \"1000B\" }}\n"
        );
        let windows = "{ preset = \"ns2\", receive_window = \"250pkt\" }";
        of_buffer(&(of_transport(&wide("100Mbit"), windows) + &calls), "100000pkt")
    };
    let (tenth, half) = (of("2500kbit"), of("12500kbit"));
    assert!(half > tenth + 900.0 * 80.0 && half < tenth + 10_000.0 * 200.0, "{tenth} {half}");
    // More than the link carries fills it.
    assert!(of("26Mbit") > half + 60_000.0 * 80.0);
}

#[test]
fn transfers_in_datagrams_come_as_they_are_asked_for() {
    // 16 Mbit/s of 10 kB, a little more with headers: what chance adds to that finds room before a link of 100 Mbit/s,
    // and before one of 8 all of it waits, one transfer of each of 9000 flows.
    for transport in ["\"udp\"", "\"rtp\""] {
        let traffic = "traffic = { kind = \"transfers\", size = \"10kB\", load = \"16Mbit\" }";
        let many = |rate: &str| with(&wide(rate), "count = 4", "count = 9000");
        let text = |rate: &str| of_transport(&many(rate), &format!("{transport}\n{traffic}"));
        let more = |rate: &str| of_buffer(&text(rate), "60000pkt") - of_buffer(&text(rate), "40000pkt");
        assert_eq!(more("100Mbit"), 0.0, "{transport}");
        assert!(more("8Mbit") > 20_000.0 * 40.0, "{transport}: {}", more("8Mbit"));
    }
}

#[test]
fn pages_in_datagrams_come_as_they_are_asked_for() {
    // A page each 10 s of five objects of 10 kB on the average, 51 kB with headers: 16.3 Mbit/s of 400 sessions.
    let sizes = "main = \"30kB\", embedded = \"5kB\", objects = 4";
    let web = format!("\"udp\"\ntraffic = {{ kind = \"web\", {sizes}, reading = \"9s\", parsing = \"1s\" }}");
    let text = |rate: &str| of_transport(&with(&wide(rate), "count = 4", "count = 400"), &web);
    let more = |rate: &str| of_buffer(&text(rate), "20000pkt") - of_buffer(&text(rate), "10000pkt");
    assert_eq!(more("40Mbit"), 0.0);
    assert!(more("14Mbit") > 10_000.0 * 40.0, "{}", more("14Mbit"));
}

#[test]
fn a_transfer_at_a_time_bounds_what_a_flow_has_under_way() {
    // Four flows that transfer 30 kB each time: no more than 32 packets of each, two to open and close among them.
    let of = |size: &str, buffer: &str| {
        let traffic = format!("\"ns2\"\ntraffic = {{ kind = \"transfers\", think = \"10ms\", size = \"{size}\" }}");
        of_buffer(&of_transport(&wide("8Mbit"), &traffic), buffer)
    };
    assert_eq!(of("30kB", "150pkt"), of("30kB", "4000pkt"));
    assert!(of("3MB", "4000pkt") > of("3MB", "150pkt") + 2000.0 * 100.0);
}

#[test]
fn a_page_has_under_way_what_its_connections_carry_and_a_film_a_segment() {
    let bounded = |traffic: &str, packets: u32| {
        let windows = "{ preset = \"ns2\", receive_window = \"1000000pkt\" }";
        let text = of_transport(&wide("8Mbit"), &format!("{windows}\ntraffic = {{ {traffic} }}"));
        let of = |packets: u32| of_buffer(&text, &format!("{packets}pkt"));
        assert_eq!(of(packets), of(100_000), "{traffic}");
        // One that finds no room is on a wire, where other figures hold.
        assert_ne!(of(packets), of(packets - 1), "{traffic}");
    };
    // Four sessions with objects of 313 packets and two to open and close, one on each connection; a main object of
    // 3125 comes alone.
    let web = |main: &str, connections: u32| {
        let times = "objects = 20, parsing = \"1ms\", reading = \"10ms\"";
        format!("kind = \"web\", main = \"{main}\", embedded = \"300kB\", connections = {connections}, {times}")
    };
    bounded(&web("960B", 1), 4 * 315);
    bounded(&web("960B", 6), 4 * 6 * 315);
    bounded(&web("3MB", 6), 4 * 3127);
    bounded(&web("3MB", 20), 4 * 20 * 315);
    // The best picture of 4 s: 1 MB, 1042 packets.
    bounded("kind = \"adaptive-video\", ladder = [\"1Mbit\", \"2Mbit\"]", 4 * 1044);
    // Sizes that scatter: ten times their mean, 1042 packets.
    let transfers = "kind = \"transfers\", think = \"10ms\", size = { law = \"exponential\", mean = \"100kB\" }";
    bounded(transfers, 4 * 1044);
}

#[test]
fn a_call_beside_transfers_has_as_many_small_packets_waiting_as_come_with_the_large_ones() {
    // CoDel keeps a queue of 1500-byte packets short. Calls with a tenth of the link have 60-byte packets: between two
    // of the large ones three come, not twenty-five.
    let of = |calls: &str| {
        let text = of_transport(&wide("100Mbit"), "{ preset = \"linux\", receive_window = \"1000000pkt\" }");
        let text = with(&text, "buffer = \"300pkt\"", "buffer = \"4000000pkt\"") + calls;
        let scenario = parse(&text);
        scenario.memory_estimate(Runner::Packet, Some(&scenario.aqm("codel").unwrap())) as f64
    };
    let calls = "\n[[flows]]\nname = \"calls\"\ncount = 100\ntransport = \"udp\"\n\
                 traffic = { kind = \"cbr\", rate = \"40kbit\", packet = \"32B\" }\n";
    let (alone, beside) = (of("") - 33e6, of(calls) - 33e6);
    assert!(beside > alone && beside < 6.0 * alone, "{alone} {beside}");
}

#[test]
fn what_does_not_fit_is_refused_with_both_figures() {
    let scenario = parse(DUMBBELL);
    let one = scenario.memory_estimate(Runner::Packet, None);
    assert!(scenario.check_memory(Runner::Packet, None, 1, Some(one)).is_ok());
    assert!(scenario.check_memory(Runner::Packet, None, 0, Some(one)).is_ok());
    let told = scenario.check_memory(Runner::Packet, None, 100, Some(100 * one - 1)).unwrap_err().to_string();
    let gib = format!("{:.1} GiB", 100.0 * one as f64 / (1u64 << 30) as f64);
    assert!(told.ends_with(&format!("needs about {gib} of memory, but {gib} are free")), "{told}");
    assert!(scenario.check_memory(Runner::Packet, None, 100, Some(100 * one)).is_ok());
}

#[test]
fn calls_pile_up_as_they_fall_silent_and_talk_again() {
    // 400 calls of 50 packets of 188 bytes a second while they talk, half of the time: 15 of at most 30.1 Mbit/s.
    let calls = |rate: &str, kind: &str| {
        let text = with(&wide(rate), "count = 4", "count = 400");
        of_transport(&text, &format!("\"udp\"\ntraffic = {{ kind = \"voip\", codec = \"g711\", {kind} }}"))
    };
    // In a second the variance of what they send is 400 * 2 (50 / 2)^2 / 2 = 500^2 packets, and 20 Mbit/s carry 3298
    // more: 14 * 500^2 / (2 * 3298) = 531; beside these one of each call. 40 Mbit/s carry them all.
    let talk = "talk = \"1s\", silence = \"1s\"";
    let of = |buffer: &str| of_buffer(&calls("20Mbit", talk), buffer);
    assert!(of("930pkt") > of("500pkt") + 430.0 * 40.0);
    assert_eq!(of("935pkt"), of("1000000pkt"));
    let wide = |kind: &str, buffer: &str| of_buffer(&calls("40Mbit", kind), buffer);
    assert_eq!(wide(talk, "400pkt"), wide(talk, "1000000pkt"));
    // Twice as silent: 400 * 2 (50 * 2)^2 / 27 = 544^2, and 6631 more are carried.
    let rare = |buffer: &str| of_buffer(&calls("20Mbit", "talk = \"1s\", silence = \"2s\""), buffer);
    assert!(rare("712pkt") > rare("500pkt") + 212.0 * 40.0);
    assert_eq!(rare("715pkt"), rare("1000000pkt"));
    // Those that never fall silent are too many for 20 Mbit/s all the time, 10.1 Mbit/s of packets of 1504 bits for
    // 100 s, and never for 40.
    let steady = |buffer: &str| of_buffer(&calls("20Mbit", "suppress = false"), buffer);
    assert!(steady("670000pkt") > steady("600000pkt") + 70_000.0 * 40.0);
    assert_eq!(steady("671000pkt"), steady("1000000pkt"));
    assert_eq!(wide("suppress = false", "400pkt"), wide("suppress = false", "1000000pkt"));
}

#[test]
fn what_comes_in_bursts_of_any_length_comes_as_if_each_second_were_all_or_nothing() {
    // Four sources of 100 messages a second: in a second a variance of 4 * 100^2 = 200^2, while 4 Mbit/s carry 86 more:
    // 14 * 200^2 / (2 * 86.4) = 3241.
    let of = |rate: &str, rates: &str, packet: &str, buffer: &str| {
        let chain = format!("rates = [{rates}], generator = [[-1.0, 1.0], [1.0, -1.0]]");
        let kind = format!("\"udp\"\ntraffic = {{ kind = \"mmpp\", {chain}, packet = \"{packet}\" }}");
        of_buffer(&of_transport(&wide(rate), &kind), buffer)
    };
    let bursts = "\"200pkt/s\", \"0pkt/s\"";
    let one = |buffer: &str| of("4Mbit", bursts, "1000B", buffer);
    assert!(one("3240pkt") > one("2000pkt") + 1240.0 * 40.0);
    assert_eq!(one("3250pkt"), one("1000000pkt"));
    // Of three packets each, three times as many.
    let three = |buffer: &str| of("12Mbit", bursts, "3000B", buffer);
    assert!(three("9720pkt") > three("8000pkt") + 1720.0 * 40.0);
    assert_eq!(three("9740pkt"), three("1000000pkt"));
    // What fits in the state that brings the most does not pile up.
    assert_eq!(of("7Mbit", bursts, "1000B", "10pkt"), of("7Mbit", bursts, "1000B", "1000000pkt"));
}

#[test]
fn before_a_medium_with_a_law_of_its_own_all_that_comes_may_wait() {
    // 4 times 1 Mbit/s of 1000 bytes: 50 000 packets in 100 s, and one of each.
    let of = |rate: &str, buffer: &str| {
        let cbr = format!("\"udp\"\ntraffic = {{ kind = \"cbr\", rate = \"{rate}\", packet = \"1000B\" }}");
        let wifi = "channel = { model = \"wifi\", contenders = 2, spread = 1.5, mcs = 4.0 }";
        of_buffer(&with(&of_transport(&wide("100Mbit"), &cbr), "rate = \"100Mbit\"", wifi), buffer)
    };
    assert!(of("1Mbit", "50000pkt") > of("1Mbit", "40000pkt") + 10_000.0 * 40.0);
    assert_eq!(of("1Mbit", "50100pkt"), of("1Mbit", "1000000pkt"));
}

#[test]
fn packets_wait_at_access_links_where_those_are_too_narrow() {
    // Four flows behind access links of `rate` with a buffer, over a link of 100 Mbit/s or another.
    let over = |link: &str, transport: &str, rate: &str, buffer: &str| {
        let text = with(&wide(link), "rate = \"10Gbit\"", &format!("rate = \"{rate}\"\nbuffer = \"{buffer}\""));
        memory(&of_transport(&text, transport))
    };
    let of = |transport: &str, rate: &str, buffer: &str| over("100Mbit", transport, rate, buffer);
    let cbr = |kbit: u32| format!("\"udp\"\ntraffic = {{ kind = \"cbr\", rate = \"{kbit}kbit\", packet = \"1000B\" }}");
    // 12.3 Mbit/s each into 10: what there is room for at each of four hosts, with its event, how long the queue had
    // this length, and the packet.
    let each = 1.5 * (32.0 + 8.0 + size_of::<aqumen_transport::Packet>() as f64);
    let more = of(&cbr(12_000), "10Mbit", "2000pkt") - of(&cbr(12_000), "10Mbit", "1000pkt");
    assert!((more / (4.0 * 1000.0 * each) - 1.0).abs() < 0.001, "{more}");
    assert_eq!(of(&cbr(12_000), "10Mbit", "1000pkt"), of(&cbr(12_000), "10Mbit", "1028kB"));
    // Datagrams wait there whatever comes behind.
    let over = |buffer: &str| over("30Mbit", &cbr(12_000), "10Mbit", buffer);
    assert!(over("2000pkt") > over("1000pkt") + 4.0 * 1000.0 * 80.0);
    // 10.1 Mbit/s are 102.8 kbit/s too much: 5000 packets in 100 s, and one of each.
    assert!(of(&cbr(9_828), "10Mbit", "1200pkt") > of(&cbr(9_828), "10Mbit", "1000pkt") + 4.0 * 200.0 * 80.0);
    assert_eq!(of(&cbr(9_828), "10Mbit", "1300pkt"), of(&cbr(9_828), "10Mbit", "100000pkt"));
    // What fits does not wait there.
    assert_eq!(of(&cbr(9_000), "10Mbit", "1000pkt"), of(&cbr(9_000), "10Mbit", "100000pkt"));
    // Windows fill them where they are what is narrow: 40 Mbit/s of 100, not 400 of 100.
    let bulk = "{ preset = \"ns2\", receive_window = \"1000000pkt\" }";
    assert!(of(bulk, "10Mbit", "2000pkt") > of(bulk, "10Mbit", "1000pkt") + 4.0 * 1000.0 * 80.0);
    assert_eq!(of(bulk, "100Mbit", "2000pkt"), of(bulk, "100Mbit", "1000pkt"));
}

#[test]
fn access_links_limit_flows_until_all_have_started() {
    // Four access links of 10 Mbit/s before 30 Mbit/s. Where flows start within 40 s, three of them have their access
    // links to themselves for up to 30 s, in which 112 000 packets of 1000 bytes come to wait there.
    let of = |start: &str| {
        let text = with(DUMBBELL, "rate = \"8Mbit\"", "rate = \"30Mbit\"");
        let text = of_transport(&text, "{ preset = \"ns2\", receive_window = \"1000000pkt\" }");
        memory(&with(&text, "start = [\"0s\", \"1s\"]", &format!("start = {start}")))
    };
    let more = of("[\"0s\", \"40s\"]") - of("\"0s\"");
    assert!((100_000.0 * 100.0..130_000.0 * 200.0).contains(&more), "{more}");
}

#[test]
fn a_packet_on_a_wire_takes_its_event_and_what_its_ends_keep() {
    // 1 Gbit/s carry 125 000 packets of 1000 bytes in a second; each takes two events of 32 bytes in lists that grow,
    // and 30 bytes at its ends.
    let each = |rate: &str, packets: f64| {
        let text = of_transport(&wide(rate), "{ preset = \"ns2\", receive_window = \"1000000pkt\" }");
        let delay = |delay: &str| memory(&with(&text, "delay = \"20ms\"", &format!("delay = \"{delay}\"")));
        (delay("3s") - delay("2s")) / packets
    };
    let many = each("1Gbit", 250_000.0);
    assert!((many - 1.5 * 2.0 * 32.0 - 30.0).abs() < 1.0, "{many}");
    // Few events may lie in a list each, with room for eight.
    let few = each("1Mbit", 250.0);
    assert!((few - many - 2.0 * 8.0 * 32.0).abs() < 10.0, "{few}");
}

#[test]
fn of_bursts_more_are_on_wires_than_of_packets_evenly_spaced() {
    // Four sources that are ON half of the time, 3750 messages a second then, for 10 ms on the average: in a second the
    // variance of what they send is 4 * 3750^2 * 2 * 0.01^4 / 0.02^3 = 375^2 packets. For 10 s on their way: four
    // deviations are 4 * 375 * sqrt(10) = 4743 packets, each with two events of 32 bytes in a list that grows.
    let of = |traffic: &str| {
        let text = of_transport(&wide("100Gbit"), &format!("\"udp\"\ntraffic = {{ {traffic}, packet = \"1000B\" }}"));
        let delay = |delay: &str| memory(&with(&text, "delay = \"20ms\"", &format!("delay = \"{delay}\"")));
        (delay("10s"), delay("40s"))
    };
    let bursts = of("kind = \"on-off\", rate = \"30Mbit\", on = \"10ms\", off = \"10ms\"");
    let even = of("kind = \"cbr\", rate = \"15Mbit\"");
    let each = 1.5 * (2.0 * 32.0 + size_of::<aqumen_transport::Packet>() as f64);
    assert!(((bursts.0 - even.0) / (4743.0 * each) - 1.0).abs() < 0.03, "{} {each}", bursts.0 - even.0);
    // Twice as many on a way that takes four times as long.
    assert!(((bursts.1 - even.1) / (bursts.0 - even.0) - 2.0).abs() < 0.03);
}

#[test]
fn a_queue_forms_where_the_link_goes_down_or_more_may_come() {
    // 41 Mbit/s for 40 at most; where packets wait, histograms are larger.
    let small = with(DUMBBELL, "transport = \"ns2\"", "transport = { preset = \"ns2\", receive_window = \"2pkt\" }");
    let wide = with(&small, "rate = \"8Mbit\"", "rate = \"41Mbit\"");
    let event = |event: &str| memory(&format!("{wide}\n[[events]]\nat = \"50s\"\nlink = \"bottleneck\"\n{event}\n"));
    let quiet = event("delay = \"20ms\"");
    assert!(event("state = \"down\"") > quiet + 10_000.0);
    assert!(event("capacity = \"39Mbit\"") > quiet + 10_000.0);
    let rate = |rate: &str| memory(&with(&small, "rate = \"8Mbit\"", &format!("rate = \"{rate}\"")));
    assert!(rate("40Mbit") + 10_000.0 < rate("39999999bit"));
    let channel = "channel = { model = \"shared\", rate = \"41Mbit\", neighbours = 1 }";
    assert!(memory(&with(&small, "rate = \"8Mbit\"", channel)) > memory(&wide) + 10_000.0);
    // Links that lead to a link bring what they carry, hosts what their access links do: 2 Mbit/s, and 3 of 1 Mbit/s.
    let row = |rate: &str| {
        let text = PARKING_LOT.split("[[events]]").next().unwrap();
        let text = with(
            text,
            "rate = [\"30Mbit\", \"15Mbit\", \"30Mbit\"]",
            &format!("rate = [\"2Mbit\", \"{rate}\", \"90Mbit\"]"),
        );
        memory(&with(&text, "rate = \"1Gbit\"", "rate = \"1Mbit\""))
    };
    assert!(row("4999kbit") > row("5Mbit") + 10_000.0, "{} {}", row("4999kbit"), row("5Mbit"));
}

#[test]
fn a_window_has_three_pieces_of_memory_and_an_event_two() {
    // A window is a piece itself and has two edges; what an event begins is a piece, and ends what came before it. A
    // piece is larger where a queue forms: 39 Mbit/s, not 41, for 40 at most.
    let small = with(DUMBBELL, "transport = \"ns2\"", "transport = { preset = \"ns2\", receive_window = \"2pkt\" }");
    let of = |rate: &str, windows: u32, events: u32| {
        let mut text = with(&small, "rate = \"8Mbit\"", &format!("rate = \"{rate}\""));
        for i in 0..events {
            text += &format!("[[events]]\nat = \"{}s\"\nlink = \"bottleneck\"\ndelay = \"20ms\"\n", 20 + i);
        }
        text += "[windows]\n";
        for i in 0..windows {
            text += &format!("w{i} = [\"{}s\", \"90s\"]\n", 30 + i);
        }
        memory(&text)
    };
    let larger = |windows, events| of("39Mbit", windows, events) - of("41Mbit", windows, events);
    let piece = (larger(1, 0) - larger(0, 0)) / 3.0;
    assert!(piece > 10_000.0);
    assert_eq!(larger(0, 1) - larger(0, 0), 2.0 * piece);
    assert_eq!(larger(2, 3) - larger(0, 0), 12.0 * piece);
    // The whole run and what is steady are two windows with two edges; a few packets more are on the wires.
    assert!((larger(0, 0) - 4.0 * piece).abs() < 0.2 * piece, "{} {piece}", larger(0, 0));
}

#[test]
fn each_group_has_a_histogram_in_each_piece_of_a_queue_that_it_crosses() {
    // Five flows in one group or in two; a window more is three pieces more.
    let window = |rate: &str, groups: u32, runner| {
        let of = |windows: &str| {
            let small = "transport = { preset = \"ns2\", receive_window = \"2pkt\" }";
            let text = with(DUMBBELL, "transport = \"ns2\"", small);
            let text = with(&text, "rate = \"8Mbit\"", &format!("rate = \"{rate}\""));
            let text = with(&text, "count = 4", if groups == 1 { "count = 5" } else { "count = 4" });
            let second =
                if groups == 1 { String::new() } else { format!("[[flows]]\nname = \"more\"\ncount = 1\n{small}\n") };
            parse(&format!("{text}{second}[windows]\n{windows}")).memory_estimate(runner, None) as f64
        };
        of("w = [\"30s\", \"90s\"]\n") - of("")
    };
    let more = |rate, runner| window(rate, 2, runner) - window(rate, 1, runner);
    // 16 kB each; of how long its packets were on their way 30 kB in each piece between two edges, of which a window
    // more makes two more.
    assert_eq!(more("8Mbit", Runner::Packet), 3.0 * 16_000.0 + 2.0 * 30_000.0);
    // None where no packets wait, but for their way, nor from engines that do not tell groups apart.
    assert_eq!((more("90Mbit", Runner::Packet), more("8Mbit", Runner::Ns2)), (2.0 * 30_000.0, 0.0));
}

#[test]
fn a_sample_takes_more_for_each_quantity_that_an_aqm_shows() {
    // 50 000 samples more.
    let scenario = |interval: &str| parse(&format!("{DUMBBELL}\n[record]\ninterval = \"{interval}\"\n"));
    let each = |aqm: &str| {
        let of = |interval: &str| {
            let scenario = scenario(interval);
            scenario.memory_estimate(Runner::Packet, Some(&scenario.aqm(aqm).unwrap())) as f64
        };
        (of("1ms") - of("2ms")) / 50_000.0
    };
    let shown = |aqm: &str| {
        let scenario = scenario("1ms");
        let link = &scenario.plan(1, Some(&scenario.aqm(aqm).unwrap())).unwrap().links[0];
        let (qdisc, mut shown) = (link.aqm.build_qdisc(link.limit).unwrap().unwrap(), 0.0);
        aqumen_aqm::Qdisc::observe(&qdisc, &mut |_, _| shown += 1.0);
        shown
    };
    assert_eq!(shown("droptail"), 0.0);
    assert!(each("droptail") > 60.0);
    for aqm in ["red", "pie", "codel", "dualpi2"] {
        assert!(shown(aqm) > 0.0, "{aqm}");
        // 8 bytes in a list that grows.
        let more = each(aqm) - each("droptail");
        assert!((more - 16.0 * shown(aqm)).abs() < 0.5, "{aqm}: {more}");
    }
}

#[test]
fn of_the_fluid_s_past_a_full_buffer_is_a_delay_like_any_other() {
    // 10 000 packets of 1000 bytes at 8 Mbit/s are 10 s.
    let of = |longest: &str, buffer: &str| {
        let text =
            with(DUMBBELL, "transport = \"ns2\"", &format!("transport = \"ns2\"\nrtt = [\"300ms\", \"{longest}\"]"));
        let text = with(&text, "buffer = \"300pkt\"", &format!("buffer = \"{buffer}\""));
        parse(&text).memory_estimate(Runner::Fluid, None) as f64
    };
    let before = of("10300ms", "300pkt");
    let more = of("20300ms", "300pkt") - before;
    assert!((more / (of("10300ms", "10300pkt") - before) - 1.0).abs() < 1e-6);
    assert_eq!(of("10300ms", "10300pkt"), of("10300ms", "10300kB"));
    // Twice 10 s in quarters of steps of 4 ms: 20 000 moments, each with its time and three numbers of four classes, of
    // 8 bytes and somewhat more.
    assert!((20_000.0 * 13.0 * 8.0..20_000.0 * 13.0 * 16.0).contains(&more), "{more}");
}

#[test]
fn what_the_machine_has_is_enough_for_a_small_run_and_not_for_any() {
    let scenario = parse(DUMBBELL);
    assert!(scenario.check_memory(Runner::Packet, None, 1, None).is_ok());
    // Where the system tells what it has.
    if std::path::Path::new("/proc/meminfo").exists() {
        assert!(scenario.check_memory(Runner::Packet, None, u64::MAX, None).is_err());
    }
}
