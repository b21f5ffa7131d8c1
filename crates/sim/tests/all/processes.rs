//! Partitions: however a network is partitioned into logical processes, the results and
//! the trace are the same bits. So they are where links that one flow alone uses are computed without events, which a
//! trace hinders where such a link can overflow.

use std::path::PathBuf;

use aqumen_result::RunResult;
use aqumen_scenario::{Files, Plan, Scenario};
use aqumen_sim::{Options, Partitioning, run};
use aqumen_units::Span;
use proptest::prelude::*;
use proptest::sample::select;

use crate::common::Dumbbell;

/// Transports of flows, and other keys of their group.
const GROUPS: [&str; 27] = [
    "transport = { preset = \"ns2\", ecn = true, send_overhead = \"500us\" }",
    "transport = { preset = \"ns2\", send_overhead = \"500us\" }\noff = [[\"500ms\", \"900ms\"]]",
    "transport = { preset = \"ns2\", ecn = true }\nstop = \"1500ms\"",
    "transport = \"modern\"",
    "transport = \"modern\"\ntransfer = \"60kB\"",
    "transport = \"cubic\"",
    "transport = \"dctcp\"",
    "transport = \"bbr\"",
    "transport = \"ledbat\"",
    "transport = \"prague\"",
    "transport = \"vegas\"",
    "transport = { preset = \"ns2\", send_overhead = \"2ms\" }\ntraffic = { kind = \"cbr\", rate = \"960kbit\", packet = \"480B\" }",
    "transport = \"modern\"\ntraffic = { kind = \"web\", reading = \"200ms\" }",
    "transport = \"modern\"\ntraffic = { kind = \"transfers\", rate = \"9/s\", size = \"20kB\" }",
    "transport = \"modern\"\ntraffic = { kind = \"transfers\", size = \"9kB\", think = \"100ms\" }",
    "transport = \"udp\"\ntraffic = { kind = \"cbr\", rate = \"800kbit\" }",
    "transport = \"udp\"\ntraffic = \"voip\"",
    "transport = \"udp\"\ntraffic = { kind = \"poisson\", rate = \"100pkt/s\" }",
    "transport = \"udp\"\ntraffic = { kind = \"self-similar\", rate = \"1Mbit\" }",
    "transport = \"udp\"\ntraffic = { kind = \"mmpp\", preset = \"paper8\" }",
    "transport = \"udp\"\ntraffic = { kind = \"video\", file = \"frames.txt\", rate = \"1Mbit\" }",
    "transport = \"rtp-nada\"\ntraffic = { kind = \"video\", file = \"frames.txt\", rate = \"1Mbit\" }",
    "transport = \"sctp\"",
    "transport = { preset = \"sctp\", streams = 3 }\ntraffic = { kind = \"transfers\", rate = \"9/s\", size = \"20kB\" }",
    "transport = \"rtp\"\ntraffic = \"voip\"",
    "transport = \"rtp-nada\"",
    "transport = \"rtp-tfrc\"",
];

/// Bottlenecks.
const LINES: [&str; 5] = [
    "rate = \"4Mbit\"",
    "rate = { steps = [[\"0s\", \"8Mbit\"], [\"300ms\", \"2Mbit\"]], period = \"700ms\" }\nloss = 0.01",
    "channel = { model = \"wifi\", contenders = 2, spread = 1.5, mcs = 4.0 }",
    "channel = { model = \"lte\", share = 0.3 }",
    "rate = \"8Mbit\"\nloss = { bit_errors = 1e-6, burst = { to_bad = 0.01, to_good = 0.3 } }",
];

/// Events.
const EVENTS: [&str; 6] = [
    "",
    "delay = \"1ms\"",
    "delay = \"50ms\"",
    "loss = 0.05",
    "state = \"down\"\n[[events]]\nat = \"1300ms\"\nstate = \"up\"",
    "stop = \"g0\"\n[[events]]\nat = \"1200ms\"\nresume = \"g0\"",
];

const AQMS: [&str; 9] = ["droptail", "red", "pi", "arm-pfc", "codel", "pie", "fq-codel", "dualpi2", "cake"];

const DELAYS: [&str; 5] = ["0s", "20us", "1ms", "[\"1ms\", \"9ms\"]", "30ms"];

/// Buffers of the access links. The small ones overflow when an epoch opens.
const ROOMS: [&str; 4] = ["", ", buffer = \"3pkt\"", ", buffer = \"5000B\"", ", buffer = \"30pkt\""];

/// The files that groups name.
fn files() -> Files {
    let frames: &[u8] = include_bytes!("../../../../examples/traces/life.txt");
    Files::in_memory([("frames.txt".to_string(), frames.to_vec())])
}

fn scenario(
    row: bool,
    line: &str,
    delays: [&str; 2],
    room: &str,
    groups: &[(&str, u32, Option<u32>)],
    event: &str,
    interval: u32,
) -> String {
    let quoted = |delay: &str| if delay.starts_with('[') { delay.to_string() } else { format!("\"{delay}\"") };
    let between = if delays[0].starts_with('[') { "\"5ms\"".to_string() } else { quoted(delays[0]) };
    let access = format!("access = {{ rate = \"20Mbit\", delay = {}{room} }}", quoted(delays[1]));
    let topology = if row {
        format!(
            "preset = \"parking-lot\"\nrate = [\"4Mbit\", \"3Mbit\", \"6Mbit\"]\ndelay = {between}\nbuffer = \"30pkt\"\n{access}\n"
        )
    } else {
        format!(
            "preset = \"dumbbell\"\n{access}\n[topology.bottleneck]\ndelay = {between}\nbuffer = \"40pkt\"\n{line}\n"
        )
    };
    let mut text = format!(
        "name = \"t\"\nduration = \"2s\"\nrecord = {{ interval = \"{interval}ms\" }}\n[windows]\nlate = [\"700ms\", \"2s\"]\n[topology]\n{topology}"
    );
    for (number, (group, count, hosts)) in groups.iter().enumerate() {
        let hosts = hosts.map_or(String::new(), |hosts| format!("hosts = {hosts}\n"));
        let cross = if row && number % 2 == 1 { "from = \"r1\"\nto = \"r2\"\n" } else { "" };
        text += &format!(
            "[[flows]]\nname = \"g{number}\"\ncount = {count}\nstart = [\"0s\", \"200ms\"]\n{hosts}{cross}{group}\n"
        );
    }
    if !event.is_empty() {
        let link = if row { "link = \"link2\"\n" } else { "" };
        text += &format!("[[events]]\nat = \"800ms\"\n{}{event}\n", if event.starts_with("stop") { "" } else { link });
    }
    // Each event names its link.
    if row { text.replace("state = \"up\"", "link = \"link2\"\nstate = \"up\"") } else { text }
}

prop_compose! {
    fn plans()(
        row in any::<bool>(),
        line in select(&LINES[..]),
        delays in [select(&DELAYS[..]), select(&DELAYS[..])],
        room in select(&ROOMS[..]),
        groups in prop::collection::vec((select(&GROUPS[..]), 1u32..5, prop::option::weighted(0.2, 1u32..2)), 1..5),
        event in select(&EVENTS[..]),
        interval in select(vec![7u32, 100]),
        aqm in select(&AQMS[..]),
        seed in 0u64..1000,
    ) -> (String, Plan) {
        let text = scenario(row, line, delays, room, &groups, event, interval);
        let scenario = Scenario::parse_with(&text, "t.toml", files()).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let plan = scenario.plan(seed, Some(&scenario.aqm(aqm).unwrap())).unwrap_or_else(|error| panic!("{error}\n{text}"));
        (format!("{text}\n# {aqm}, seed {seed}"), plan)
    }
}

/// All that a run answers. Equal texts are equal bits.
fn answer(plan: &Plan, options: Options<'_>) -> String {
    printed(run(plan, options, &mut |_| true).unwrap())
}

fn printed(result: RunResult) -> String {
    format!("{:?}", (result.links, result.flows, result.series, result.sojourn, result.queue))
}

/// Runs with a packet trace; returns result and trace.
fn traced(plan: &Plan, options: Options<'_>, name: &str) -> (String, Vec<u8>) {
    let file: PathBuf = std::env::temp_dir().join(format!("aqumen-processes-{}-{name}.pcapng", std::process::id()));
    let answer = answer(plan, Options { trace: Some(&file), ..options });
    let trace = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    (answer, trace)
}

fn check(text: &str, plan: &Plan, seeds: [u64; 2], name: &str) {
    let in_order = traced(plan, Options { processes: Partitioning::One, ..Options::default() }, name);
    let parted =
        [Partitioning::Paying, Partitioning::Apart, Partitioning::Drawn(seeds[0]), Partitioning::Drawn(seeds[1])];
    for processes in parted {
        let other = traced(plan, Options { processes, ..Options::default() }, name);
        assert!(other.0 == in_order.0, "{processes:?}: other answers\n{text}\n{}\n{}", in_order.0, other.0);
        assert!(other.1 == in_order.1, "{processes:?}: another trace\n{text}");
        let untraced = answer(plan, Options { processes, ..Options::default() });
        assert!(untraced == in_order.0, "{processes:?}, no trace: other answers\n{text}\n{}\n{untraced}", in_order.0);
    }
    // With events at each hop and for each transmission, packets that reach one queue at the same moment may change
    // processes: the numbers of legs are others. So this compares such runs with each other.
    let every = Options { every_hop: true, every_service: true, ..Options::default() };
    let in_order = traced(plan, Options { processes: Partitioning::One, ..every }, name);
    for processes in [Partitioning::Apart, Partitioning::Drawn(seeds[0])] {
        let other = traced(plan, Options { processes, ..every }, name);
        assert!(other == in_order, "every hop, {processes:?}: others\n{text}");
    }
}

#[test]
fn a_port_to_which_packets_come_back_within_a_window_gives_the_same_bits() {
    // Acknowledgements cross the bottleneck too, and nothing keeps them longer than two transmissions: .8 and .032 ms.
    // An epoch is as long as the latency to and from the senders, 35 ms or more.
    let mut plan = Dumbbell { flows: 9, ..Dumbbell::exp1("pi", 3) }.plan();
    for flow in &mut plan.flows {
        let [first, ..] = flow.path[..] else { panic!("a path of three links") };
        flow.return_path = vec![first + 2, 0, first + 3].into();
    }
    let near = ["bottleneck", "down", "back-up"];
    for link in plan.links.iter_mut().filter(|link| near.iter().any(|name| link.name.to_string().starts_with(name))) {
        link.delay = Span::ZERO;
    }
    check("there and back over one link", &plan, [1, 2], "back");
}

#[test]
fn links_that_finish_transmissions_at_the_same_moments_give_the_same_bits() {
    // One flow there and one back, alike: what one sends over the bottleneck the other sends over the way back, at the
    // same nanosecond.
    let mut plan = Dumbbell { flows: 2, buffer_pkts: 1_000_000, ..Dumbbell::exp1("droptail", 3) }.plan();
    for link in plan.links.iter_mut().filter(|link| !link.name.to_string().starts_with("bottleneck")) {
        link.delay = Span::from_millis(5);
    }
    let (first, second) = (plan.flows[0].clone(), &mut plan.flows[1]);
    second.on = first.on;
    let [up, _, down] = second.path[..] else { panic!("a path of three links") };
    (second.path, second.return_path) = (vec![down + 1, 1, down + 2].into(), vec![up, 0, down].into());
    check("one there and one back", &plan, [1, 2], "mirror");
}

#[test]
fn senders_of_which_all_is_lost_wake_up_at_the_same_moments() {
    // The link is down for half a second, and nobody looks at the network for five: nothing but their timers wakes
    // them.
    let event = "state = \"down\"\n[[events]]\nat = \"1300ms\"\nstate = \"up\"";
    let groups = [(GROUPS[0], 2, None), (GROUPS[3], 2, None)];
    let text = scenario(false, LINES[0], ["1ms", "20us"], "", &groups, event, 5000);
    let text = text.replace("duration = \"2s\"", "duration = \"12s\"");
    let scenario = Scenario::parse(&text, "t.toml").unwrap_or_else(|error| panic!("{error}\n{text}"));
    let plan = scenario.plan(1, Some(&scenario.aqm("droptail").unwrap())).unwrap();
    check(&text, &plan, [1, 2], "lost");
}

/// Two threads answer what one does, and whether there were two.
fn check_threads(text: &str, plan: &Plan, seeds: [u64; 2]) -> bool {
    let in_order = answer(plan, Options { processes: Partitioning::One, ..Options::default() });
    let events = |options| run(plan, options, &mut |_| true).unwrap().cost.events;
    let mut shared = false;
    for processes in
        [Partitioning::Paying, Partitioning::Apart, Partitioning::Drawn(seeds[0]), Partitioning::Drawn(seeds[1])]
    {
        for every in [false, true] {
            let options =
                Options { processes, threads: 2, every_hop: every, every_service: every, ..Options::default() };
            let alone = Options { processes: Partitioning::One, threads: 1, ..options };
            let expected = if every { answer(plan, alone) } else { in_order.clone() };
            let result = run(plan, options, &mut |_| true).unwrap();
            shared |= result.cost.threads == Some(2);
            assert_eq!(
                result.cost.events,
                events(Options { threads: 1, ..options }),
                "{processes:?}: other events\n{text}"
            );
            let other = printed(result);
            assert!(other == expected, "{processes:?}, two threads: other answers\n{text}\n{expected}\n{other}");
        }
    }
    shared
}

#[test]
fn one_and_two_threads_give_the_same_bits_whoever_computes_what_receivers_do() {
    // Receivers that answer at once, whose answers the port computes; that wait, and are ends of their own; and both,
    // where acknowledgements are lost, and what they say has to be forgotten.
    // Then applications and other transports, whose endpoints are one process.
    let kinds = [&[0, 1, 2][..], &[3, 5, 9], &[0, 3, 6, 7], &[0, 12, 15, 22], &[3, 14, 19, 25]];
    for kinds in kinds {
        let groups: Vec<_> = kinds.iter().map(|&kind| (GROUPS[kind], 3, None)).collect();
        for row in [false, true] {
            let text = scenario(row, LINES[1], ["1ms", "1ms"], "", &groups, EVENTS[3], 100);
            let scenario = Scenario::parse(&text, "t.toml").unwrap_or_else(|error| panic!("{error}\n{text}"));
            for aqm in ["red", "codel", "fq-codel"] {
                let plan = scenario.plan(1, Some(&scenario.aqm(aqm).unwrap())).unwrap();
                assert!(check_threads(&text, &plan, [1, 2]), "one thread did it all\n{text}");
            }
        }
    }
}

#[test]
fn one_thread_does_it_all_where_an_application_asks_receivers_that_a_port_computes() {
    // Sources of constant rate over a TCP that acknowledges each segment at once.
    let text = scenario(false, LINES[0], ["1ms", "1ms"], "", &[(GROUPS[0], 3, None), (GROUPS[11], 3, None)], "", 100);
    let scenario = Scenario::parse(&text, "t.toml").unwrap_or_else(|error| panic!("{error}\n{text}"));
    let plan = scenario.plan(1, Some(&scenario.aqm("red").unwrap())).unwrap();
    let options = Options { threads: 2, processes: Partitioning::Apart, ..Options::default() };
    assert_eq!(run(&plan, options, &mut |_| true).unwrap().cost.threads, None);
    check_threads(&text, &plan, [1, 2]);
}

#[test]
fn two_threads_give_the_same_bits_where_acknowledgements_meet_no_queue() {
    // Each flow's go back over links of its own, straight from the bottleneck's half to the sender's.
    for aqm in ["pi", "fq-pie"] {
        let mut plan = Dumbbell { flows: 20, ..Dumbbell::exp1(aqm, 3) }.plan();
        plan.flows.iter_mut().for_each(|flow| flow.return_path.retain(|link| *link != 1));
        assert!(check_threads(aqm, &plan, [1, 2]));
    }
}

#[test]
fn two_threads_give_the_same_bits_where_acknowledgements_have_a_queue_that_is_looked_at() {
    // Its AQM has a timer; it is sampled, and its windows end, while one thread acts alone.
    let groups = [(GROUPS[0], 4, None), (GROUPS[3], 4, None)];
    let text = scenario(false, LINES[0], ["1ms", "1ms"], "", &groups, "", 100);
    let scenario = Scenario::parse(&text, "t.toml").unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut plan = scenario.plan(1, Some(&scenario.aqm("pi").unwrap())).unwrap();
    let there = plan.links.iter().position(|link| link.record).unwrap();
    let back = plan.flows[0].return_path[1] as usize;
    assert!(plan.flows.iter().all(|flow| flow.return_path[1] as usize == back && !flow.path.contains(&(back as u32))));
    let (aqm, line) = (plan.links[there].aqm.clone(), plan.links[there].line.clone());
    let link = &mut plan.links[back];
    (link.record, link.aqm, link.line) = (true, aqm, line);
    link.rates = vec![(link.rates[0].0, aqumen_units::Rate::from_bps(100_000))];
    assert!(check_threads(&text, &plan, [1, 2]));
    let queue = run(&plan, Options::default(), &mut |_| true).unwrap().links[&plan.links[back].name.to_string()]["all"]
        .queue_mean_pkts;
    assert!(queue > 0.5, "{queue}");
}

#[test]
fn a_run_that_two_threads_share_can_be_stopped() {
    let plan = Dumbbell::exp1("pi", 100).plan();
    let options = Options { threads: 2, processes: Partitioning::Apart, ..Options::default() };
    let mut heard = Vec::new();
    let stopped = run(&plan, options, &mut |fraction: f64| {
        heard.push(fraction);
        fraction < 0.5
    });
    assert!(matches!(stopped, Err(aqumen_sim::Error::Cancelled)));
    assert!((0.5..0.6).contains(heard.last().unwrap()) && heard.is_sorted(), "{heard:?}");
}

#[test]
fn a_second_thread_shares_what_pays() {
    let threads = |dumbbell: Dumbbell, threads| {
        let options = Options { threads, ..Options::default() };
        run(&dumbbell.plan(), options, &mut |_| true).unwrap().cost.threads
    };
    // 3750 packets a second are some hundred in the time from a host to the queue, 125 000 some thousand.
    let fast = || Dumbbell { flows: 200, rate: aqumen_units::Rate::from_bps(1_000_000_000), ..Dumbbell::exp1("pi", 1) };
    assert_eq!(threads(Dumbbell::exp1("pi", 1), 2), None);
    assert_eq!([0, 1, 2, 8].map(|number| threads(fast(), number)), [None, None, Some(2), Some(2)]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn two_threads_give_the_same_bits((text, plan) in plans(), seeds in [any::<u64>(), any::<u64>()]) {
        check_threads(&text, &plan, seeds);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn every_partition_gives_the_same_bits((text, plan) in plans(), seeds in [any::<u64>(), any::<u64>()]) {
        check(&text, &plan, seeds, "few");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    #[ignore = "takes minutes"]
    fn two_threads_give_the_same_bits_in_many_networks(
        (text, plan) in plans(), seeds in [any::<u64>(), any::<u64>()]
    ) {
        check_threads(&text, &plan, seeds);
    }

    #[test]
    #[ignore = "takes minutes"]
    fn every_partition_of_many_networks_gives_the_same_bits((text, plan) in plans(), seeds in [any::<u64>(), any::<u64>()]) {
        check(&text, &plan, seeds, "many");
    }
}
