//! Estimates of a run, computed by hand: packets, changes of state, samples, updates, steps; notices of long runs, and
//! acceptance of the values that refusals offer. Tests of crates/sim compare the estimates with runs.

use crate::common;

use aqumen_aqm::Limit;
use aqumen_scenario::cost::{Runner, check_updates};
use aqumen_scenario::{AqmSpec, Scenario};
use common::{DUMBBELL, parse, with};

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
        // Capacity of the bottleneck in 100 s.
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
        // 15 segments of 4 s at the best of its rates: 1 MB, 1042 packets, and one request.
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
fn groups_share_the_links() {
    let second = |lines: &str| {
        let text = format!("{DUMBBELL}\n[[flows]]\nname = \"more\"\ncount = 2\n{lines}\n");
        parse(&text).cost(Runner::Packet, None).unwrap()
    };
    // Both could fill the link: half of it each, 100000 packets in all.
    let both = second("transport = \"ns2\"");
    assert!(close(both.count("packets"), 100_000.0));
    assert!(both.parts.iter().filter(|part| part.what == "packets").all(|part| close(part.count, 50_000.0)));
    // Datagrams are sent in any case; adaptive groups use the rest.
    let cbr = "transport = \"udp\"\ntraffic = { kind = \"cbr\", rate = \"64kbit\", packet = \"160B\" }";
    let bits = 10_000.0 * 188.0 * 8.0;
    assert!(close(second(cbr).count("packets"), (8e8 - bits) / 8000.0 + 10_000.0));
    // A rate that changes: 8 Mbit/s for 25 s, 2 Mbit/s for 75 s; what comes after the end does not count.
    let text = format!("{DUMBBELL}\n[[events]]\nat = \"25s\"\nlink = \"bottleneck\"\ncapacity = \"2Mbit\"\n");
    let changed = parse(&text).cost(Runner::Packet, None).unwrap();
    assert!(close(changed.count("packets"), (8.0 * 25.0 + 2.0 * 75.0) * 125.0), "{}", changed.count("packets"));
    // An access link that is narrower than its part: 4 of 100 kbit/s.
    let narrow = parse(&with(DUMBBELL, "rate = \"10Mbit\"", "rate = \"100kbit\""));
    assert!(close(narrow.cost(Runner::Packet, None).unwrap().count("packets"), 4.0 * 1e5 * 100.0 / 8000.0));
}

#[test]
fn state_changes_of_sources() {
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
    // Whole run and steady, of one link; a named window and the window of an event add to them.
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
    // Twice the duration costs twice as much.
    let twice = seconds(&with(DUMBBELL, "duration = \"100s\"", "duration = \"200s\""), Runner::Packet);
    assert!((twice / plain - 2.0).abs() < 0.02, "{twice} {plain}");
    // State beyond the cache, up to eight times.
    let of_flows = |count: &str| seconds(&with(DUMBBELL, "count = 4", count), Runner::Packet);
    let (thousand, many) = (of_flows("count = 1000"), of_flows("count = 50000"));
    assert!(many > 1.5 * thousand, "{many} {thousand}");
    // A few flows fit into the cache.
    assert!(thousand < 1.1 * of_flows("count = 400"), "{thousand}");
    // Flows with distant round trips form up to eight classes of the fluid, each with its own equations.
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

/// Notice of `runs` runs and its time in seconds; `None` without a notice.
fn notice(scenario: &Scenario, runs: u64) -> Option<(f64, String)> {
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
fn notices_of_long_runs_use_a_suitable_unit() {
    let scenario = parse(DUMBBELL);
    let cost = scenario.cost(Runner::Packet, None).unwrap();
    let (each, packets) = (cost.seconds(), cost.count("packets"));
    assert_eq!(notice(&scenario, 1), None);
    assert_eq!(notice(&scenario, (9.9 / each) as u64), None);
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
        let (estimated, message) = notice(&scenario, runs).unwrap();
        assert!((estimated / seconds - 1.0).abs() < 0.35 && message.contains(unit), "{seconds} s: {message}");
        assert!(message.contains(&format!(" for {runs} runs, on one core: ")), "{message}");
        let count: f64 = message.rsplit(": ").next().unwrap().strip_suffix(" packets").unwrap().parse().unwrap();
        assert!((count / (packets * runs as f64) - 1.0).abs() < 0.05, "{message}");
    }
    let years = scenario.check_cost(Runner::Packet, None, (100e6 / each) as u64).unwrap().unwrap();
    assert!(years.starts_with("this takes about years for "), "{years}");
}

#[test]
fn offered_values_are_accepted_and_values_beyond_are_not() {
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
fn updates_are_judged_relative_to_the_rest_of_the_run() {
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
    let refusal = check(&busy, refused).unwrap_err();
    assert!(refusal.contains("an update of up to 400 queues each "), "{refusal}");
    // The same updates with a thousand times the packets, which take about a minute.
    let wide = with(&with(&busy, "rate = \"8Mbit\"", "rate = \"8Gbit\""), "rate = \"10Mbit\"", "rate = \"100Gbit\"");
    let window = "transport = { preset = \"ns2\", receive_window = \"1000000pkt\" }";
    assert_eq!(check(&with(&wide, "transport = \"ns2\"", window), refused), Ok(()));
}

#[test]
fn refused_updates_name_an_accepted_value() {
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
    // In a long run they are in proportion.
    assert_eq!(check("fq-pie:interval=1us", 100.0, 1000.0), Ok(()));
    // Ten flows occupy at most ten queues.
    let ten = AqmSpec::builtin("fq-pie:interval=1us").unwrap();
    assert_eq!(check_updates(&ten, network, limit, 10, 100.0, 0.0), Ok(()));
    // One queue each microsecond: seconds in 100 s, too long in a day.
    assert_eq!(check("pi2:interval=1us", 100.0, 0.0), Ok(()));
    let day = check("pi2:interval=1us", 86_400.0, 0.0).unwrap_err();
    assert!(day.starts_with("an update each 1us, 8.6e10 of them, takes about "), "{day}");
}

#[test]
fn ideal_completion_time_is_delay_plus_bytes_at_the_slowest_link() {
    let plan = parse(DUMBBELL).plan(1, None).unwrap();
    let links: Vec<_> = plan.flows[0].path.iter().map(|&link| &plan.links[link as usize]).collect();
    let delay: u64 = links.iter().map(|link| link.delay.as_nanos()).sum();
    assert!((90_000_000..=110_000_000).contains(&delay));
    // 1000 bytes at 8 Mbit/s are 1 ms.
    assert_eq!(plan.ideal_completion_ns(0, 1000), (delay + 1_000_000) as f64);
    assert_eq!(plan.ideal_completion_ns(0, 0), delay as f64);
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
    let refusal = wrong("load = \"9Gbit\", size = \"1B\"").unwrap_err();
    assert!(refusal.contains("gives more than 1e9 transfers per second"), "{refusal}");
}
