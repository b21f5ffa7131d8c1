//! Links that are more than a wire: against closed forms, and against themselves run another way.

use std::path::PathBuf;

use aqumen_result::{LinkMetrics, RunResult, student_quantile};
use aqumen_scenario::channel::MODELS;
use aqumen_scenario::{Plan, Scenario};
use aqumen_sim::{Options, run};

/// Five flows without losses in the queue that always have something to send; `link` are lines of
/// the bottleneck, `more` follows.
fn text(link: &str, duration: &str, more: &str) -> String {
    format!(
        r#"name = "links"
duration = "{duration}"
[topology]
preset = "dumbbell"
[topology.bottleneck]
delay = "5ms"
buffer = "100000pkt"
reverse = {{ rate = "1Gbit" }}
{link}
[topology.access]
rate = "1Gbit"
delay = "5ms"
[[flows]]
name = "bulk"
count = 5
transport = {{ preset = "ns2", receive_window = "1000pkt", initial_window = "100pkt" }}
{more}
"#
    )
}

fn plan_of(text: &str, aqm: &str, seed: u64) -> Plan {
    let scenario = Scenario::parse(text, "t.toml").unwrap_or_else(|error| panic!("{error}"));
    scenario.plan(seed, Some(&scenario.aqm(aqm).unwrap())).unwrap_or_else(|error| panic!("{error}"))
}

fn answer(plan: &Plan) -> RunResult {
    run(plan, Options::default(), &mut |_| true).unwrap()
}

fn link<'r>(result: &'r RunResult, window: &str) -> &'r LinkMetrics {
    &result.links["bottleneck"][window]
}

fn printed(result: &RunResult) -> String {
    serde_json::to_string(&(&result.links, &result.flows)).unwrap()
}

/// Every channel and change, as lines of the bottleneck and of the file's end.
const LINES: [(&str, &str); 9] = [
    (r#"channel = { model = "wifi", contenders = 2, spread = 1.5, mcs = 4.0 }"#, ""),
    (r#"channel = { model = "wimax", share = 0.5 }"#, ""),
    (r#"channel = { model = "umts" }"#, ""),
    (r#"channel = { model = "umts", dch = "384kbit" }"#, ""),
    (r#"channel = { model = "lte", share = 0.3, handover_interval = "2s" }"#, ""),
    (r#"channel = { model = "shared", rate = "20Mbit", neighbours = 3, mean_on = "200ms" }"#, ""),
    ("rate = { steps = [[\"0s\", \"8Mbit\"], [\"300ms\", \"2Mbit\"]], period = \"700ms\" }\nloss = 0.01", ""),
    (
        "rate = \"8Mbit\"\nloss = { bit_errors = 1e-6, burst = { to_bad = 0.01, to_good = 0.3 } }",
        "[[events]]\nat = \"3s\"\ndelay = \"50ms\"\n[[events]]\nat = \"5s\"\ndelay = \"1ms\"\n[[events]]\nat = \"6s\"\nloss = 0.1\n",
    ),
    (
        r#"channel = { model = "lte", share = 0.3 }"#,
        "[[events]]\nat = \"3s\"\nstate = \"down\"\n[[events]]\nat = \"5s\"\nstate = \"up\"\n",
    ),
];

#[test]
fn asking_for_each_packet_changes_nothing() {
    for (lines, more) in LINES {
        for aqm in ["droptail", "pi", "red"] {
            let plan = plan_of(&text(lines, "8s", more).replace("100000pkt\"\nrev", "100pkt\"\nrev"), aqm, 3);
            let fast = answer(&plan);
            let options = Options { every_service: true, every_hop: true, ..Options::default() };
            let slow = run(&plan, options, &mut |_| true).unwrap();
            assert_eq!(printed(&fast), printed(&slow), "{lines} {aqm}");
            assert_eq!(printed(&fast), printed(&answer(&plan)), "{lines} {aqm}: again");
            let all = link(&fast, "all");
            // What has arrived has departed, was dropped, or is still there.
            let gone = all.departures_pkts + all.early_dropped_pkts + all.overflow_dropped_pkts;
            assert!(all.departures_pkts > 0 && (0..=101).contains(&(all.arrivals_pkts - gone)), "{lines}: {all:?}");
        }
    }
}

#[test]
fn a_link_that_another_leads_to_needs_no_events() {
    // All share the core and then the cell, which is now slower and loses, now faster; acknowledgements cross the cell
    // first and the core after it.
    let text = |cell: &str| {
        format!(
            "name = \"cell\"\nduration = \"20s\"\naqm = \"pi\"\n[topology]\nnodes = [\"a\", \"b\", \"c\"]\n\
             access = {{ rate = \"100Mbit\", delay = \"5ms\" }}\n\
             [[topology.links]]\nname = \"core\"\nfrom = \"a\"\nto = \"b\"\nrate = \"4Mbit\"\ndelay = \"10ms\"\n\
             buffer = \"50pkt\"\naqm = \"test\"\n\
             [[topology.links]]\nname = \"cell\"\nfrom = \"b\"\nto = \"c\"\ndelay = \"1ms\"\nbuffer = \"5pkt\"\n{cell}\n\
             [[flows]]\nname = \"bulk\"\ncount = 3\nfrom = \"a\"\nto = \"c\"\nstart = [\"0s\", \"1s\"]\n\
             transport = {{ preset = \"ns2\", ecn = true }}\n"
        )
    };
    for cell in ["rate = \"3Mbit\"", "rate = \"20Mbit\"", "channel = { model = \"wifi\", mcs = 4 }\nloss = 0.01"] {
        let scenario = Scenario::parse(&text(cell), "t.toml").unwrap_or_else(|error| panic!("{error}"));
        let plan = scenario.plan(1, None).unwrap();
        let quick = answer(&plan);
        let slow = run(&plan, Options { every_hop: true, ..Options::default() }, &mut |_| true).unwrap();
        assert_eq!(printed(&quick), printed(&slow), "{cell}");
        // A packet at the core, its acknowledgement at the cell and at the sender; a timer of PI each 1/160 s, a sample
        // each 100 ms. With a turn at the cell and at the core on the way back it would be five.
        let packets = quick.links["core"]["all"].arrivals_pkts as f64;
        let events = quick.cost.events as f64 - 20.0 * (160.0 + 10.0);
        assert!((2.7..3.3).contains(&(events / packets)), "{cell}: {events} events of {packets} packets");
    }
}

#[test]
fn the_radio_channel_does_not_depend_on_the_traffic() {
    // What an idle channel could have carried is what the busy one could: two AQMs meet the same conditions.
    let lines = r#"channel = { model = "lte", handover_interval = "1s" }"#;
    let busy = link(&answer(&plan_of(&text(lines, "10s", ""), "droptail", 1)), "all").clone();
    let idle = text(lines, "10s", "").replace("count = 5", "count = 1\ntransfer = \"100kB\"");
    let idle = link(&answer(&plan_of(&idle, "droptail", 1)), "all").clone();
    let offered = |link: &LinkMetrics| link.departures_pkts as f64 * 8000.0 / link.utilization.unwrap();
    // SYNs are 40 B.
    assert!((offered(&busy) / offered(&idle) - 1.0).abs() < 0.05, "{} {}", offered(&busy), offered(&idle));
    assert!(idle.utilization.unwrap() < 0.05 && busy.utilization.unwrap() > 0.9, "{busy:?} {idle:?}");
}

/// Length of a batch, seconds.
const BATCH: u32 = 20;

/// Bits per second that a saturated bottleneck with these lines carries, in 20 batches.
fn batches(lines: &str) -> (Vec<f64>, f64) {
    let window = |k: u32| format!("b{k} = [\"{}s\", \"{}s\"]\n", 5 + BATCH * k, 5 + BATCH * (k + 1));
    let windows: String = (0..20).map(window).collect();
    let duration = format!("{}s", 5 + 20 * BATCH);
    let plan = plan_of(&text(lines, &duration, &format!("[windows]\n{windows}")), "droptail", 1);
    let result = answer(&plan);
    let of_batch = |k: usize| link(&result, &format!("b{k}")).departures_pkts as f64 * 8000.0 / f64::from(BATCH);
    ((0..20).map(of_batch).collect(), link(&result, "steady").utilization.unwrap())
}

/// Each model, which carries on average what its closed form says.
const CLOSED: [&str; 12] = [
    r#"channel = { model = "wifi", mcs = 2.0, streams = 1, packet = "1000B" }"#,
    r#"channel = { model = "wifi", mcs = 5.0, contenders = 3, aggregate = 8, packet = "1000B" }"#,
    r#"channel = { model = "wifi", coherence = "20ms", mcs = 3.0, spread = 1.0, contenders = 1, aggregate = 1, packet = "1000B" }"#,
    r#"channel = { model = "wimax", coherence = "5ms" }"#,
    r#"channel = { model = "umts", coherence = "2ms" }"#,
    r#"channel = { model = "umts", dch = "384kbit", bler = 0.2, retx_bler = 0.2, max_retx = 10 }"#,
    r#"channel = { model = "lte", coherence = "1ms", resource_blocks = 25, bler = 0.3, retx_bler = 0.3, max_retx = 12 }"#,
    r#"channel = { model = "lte", coherence = "1ms", resource_blocks = 25, handover_interval = "500ms" }"#,
    r#"channel = { model = "shared", rate = "20Mbit", neighbours = 4, mean_on = "100ms", mean_off = "50ms" }"#,
    // At one level what is left to chance is which blocks fail.
    r#"channel = { model = "wimax", spread = 0.0, profile = 6.0 }"#,
    r#"channel = { model = "umts", spread = 0.0, cqi = 22.0 }"#,
    r#"channel = { model = "lte", spread = 0.0, cqi = 7.0, resource_blocks = 25, bler = 0.2 }"#,
];

#[test]
fn every_model_of_a_medium_is_tried_here() {
    for model in MODELS {
        let named = |lines: &str| lines.contains(&format!("model = \"{model}\""));
        assert!(LINES.iter().any(|(lines, _)| named(lines)), "{model} is not among LINES");
        assert!(CLOSED.iter().any(|lines| named(lines)), "{model} is not among CLOSED");
    }
}

#[test]
fn each_medium_carries_its_closed_form_on_average() {
    for lines in CLOSED {
        let plan = plan_of(&text(lines, "1s", ""), "droptail", 1);
        let closed = plan.links[0].rates[0].1.as_bps() as f64;
        let (carried, utilization) = batches(lines);
        let n = carried.len() as f64;
        let mean = carried.iter().sum::<f64>() / n;
        let variance = carried.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
        // A batch counts whole packets: one more or less in the whole, and nanoseconds of rounding.
        let seconds = n * f64::from(BATCH);
        let half = student_quantile(0.9995, n - 1.0) * (variance / n).sqrt() + 8000.0 / seconds + 1e-6 * closed;
        println!("{lines}: {mean:.0} +- {half:.0}, closed form {closed:.0}, utilisation {utilization:.4}");
        assert!((mean - closed).abs() < half, "{lines}: {mean} +- {half}, not {closed}");
        // The indicator of UMTS is worth 137 to 25 558 bits; at one level nothing swings.
        let wide = if lines.contains("spread = 0.0") { 0.004 } else { 0.05 };
        assert!(half < wide * closed, "{lines}: {mean} +- {half} tells nothing");
        assert!((utilization - 1.0).abs() < 0.02, "{lines}: {utilization}");
    }
}

#[test]
fn harq_delays_what_it_repairs_and_loses_the_rest() {
    let lte = |bler: f64, retx: u32| {
        let channel = format!(
            r#"channel = {{ model = "lte", spread = 0.0, bler = {bler:?}, retx_bler = 0.5, max_retx = {retx} }}"#
        );
        let one = text(&channel, "40s", "").replace("count = 5", "count = 1").replace("1000pkt", "2pkt");
        answer(&plan_of(&one.replace("100pkt", "2pkt"), "droptail", 1))
    };
    let (clean, noisy) = (lte(0.0, 3), lte(0.5, 15));
    let rtt = |result: &RunResult| result.flows["bulk"]["steady"].rtt_mean_s.unwrap();
    assert_eq!((link(&clean, "all").wire_lost_pkts, clean.flows["bulk"]["all"].timeouts), (Some(0), Some(0)));
    assert_eq!(link(&noisy, "all").wire_lost_pkts, Some(0));
    // Of a block half fails, then half again: one repetition on average, 8 ms. ns-2's clock ticks each 10 ms.
    let more = rtt(&noisy) - rtt(&clean);
    assert!((0.004..0.016).contains(&more), "{more}");
    let lossy = lte(0.5, 1);
    let all = link(&lossy, "all");
    // Residual 0.5 x 0.5 of blocks. Packets of 1000 B are alone in their block of 2047 B, or two share one.
    let share = all.wire_lost_pkts.unwrap() as f64 / all.departures_pkts as f64;
    let error = 3.29 * (2.0 * 0.25 * 0.75 / all.departures_pkts as f64).sqrt();
    assert!((share - 0.25).abs() < error, "{share} +- {error}");
}

/// A folder for the files of one test.
fn folder(test: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("aqumen-links-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn a_mahimahi_trace_delivers_exactly_its_opportunities() {
    let folder = folder("mahimahi");
    // Three opportunities each 5 ms, two of them at once: 1504 x 3 / 5 ms = 7.2192 Mbit/s.
    std::fs::write(folder.join("up.trace"), "2\n5\n5\n").unwrap();
    std::fs::write(folder.join("s.toml"), text("rate = { mahimahi = \"up.trace\" }", "20s", "")).unwrap();
    let scenario = Scenario::load(folder.join("s.toml"), &[]).unwrap_or_else(|error| panic!("{error}"));
    let plan = scenario.plan(1, None).unwrap();
    assert_eq!(plan.links[0].rates[0].1.as_bps(), 7_219_200);
    let result = answer(&plan);
    let steady = link(&result, "steady");
    // 2 s to 20 s: 3600 rounds of 4512 B. A packet of 1000 B more or less at either edge.
    let bytes = steady.departures_pkts * 1000;
    assert!(bytes.abs_diff(3600 * 4512) <= 2000, "{bytes}");
    assert!((steady.utilization.unwrap() - 1.0).abs() < 1e-4, "{:?}", steady.utilization);
    let slow = run(&plan, Options { every_service: true, ..Options::default() }, &mut |_| true).unwrap();
    assert_eq!(printed(&result), printed(&slow));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_a_mahimahi_opportunity_does_not_use_is_gone() {
    let folder = folder("spare");
    // An opportunity each 10 ms. A window of one packet of 1000 B needs one for itself each round trip;
    // it leaves the link idle after.
    std::fs::write(folder.join("slow.trace"), "10\n").unwrap();
    let one = text("rate = { mahimahi = \"slow.trace\" }", "20s", "").replace("count = 5", "count = 1");
    let one = one.replace("1000pkt", "1pkt").replace("100pkt", "1pkt");
    std::fs::write(folder.join("s.toml"), one).unwrap();
    let plan = Scenario::load(folder.join("s.toml"), &[]).unwrap().plan(1, None).unwrap();
    let result = answer(&plan);
    // 30 ms of delay and a little transmission: from one opportunity to the fourth after it, 40
    // ms. Whole packets at the edges.
    let sent = link(&result, "steady").departures_pkts;
    assert!(sent.abs_diff(18_000 / 40) <= 1, "{sent}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_shorter_delay_lets_no_packet_overtake_another() {
    let events =
        "[[events]]\nat = \"10s\"\ndelay = \"100ms\"\n[[events]]\nat = \"20s\"\nname = \"short\"\ndelay = \"5ms\"\n";
    let result = answer(&plan_of(&text("rate = \"8Mbit\"", "30s", events), "droptail", 1));
    let flows = &result.flows["bulk"];
    assert_eq!(flows["all"].retransmitted_ratio, Some(0.0));
    // Five windows of 1000 packets of 1 ms wait in the queue; the delay comes on top.
    let rtt = |window: &str| flows[window].rtt_mean_s.unwrap();
    assert!(rtt("after-10s") - rtt("short") > 0.02, "{} {}", rtt("after-10s"), rtt("short"));
    // Alone, a flow sees its round trip change by what the delay changes: 95 ms.
    let one = text("rate = \"8Mbit\"", "30s", events).replace("count = 5", "count = 1");
    let one =
        one.replace("1000pkt", "2pkt").replace("100pkt", "2pkt").replace("preset = \"ns2\"", "preset = \"modern\"");
    let result = answer(&plan_of(&one, "droptail", 1));
    let rtt = |window: &str| result.flows["bulk"][window].rtt_mean_s.unwrap();
    let step = rtt("after-10s") - rtt("short");
    assert!((step - 0.095).abs() < 0.002, "{step}");
}

#[test]
fn a_link_that_fails_keeps_what_waits_and_goes_on() {
    let events = "[[events]]\nat = \"10s\"\nname = \"down\"\nstate = \"down\"\n[[events]]\nat = \"11s\"\nname = \"up\"\nstate = \"up\"\n";
    let result = answer(&plan_of(&text("rate = \"8Mbit\"", "20s", events), "droptail", 1));
    let (down, up, all) = (link(&result, "down"), link(&result, "up"), link(&result, "all"));
    // The packet in transmission ends; nothing else leaves, nothing is lost.
    assert!(down.departures_pkts <= 1 && down.utilization.is_none(), "{down:?}");
    assert_eq!((all.overflow_dropped_pkts, all.wire_lost_pkts), (0, Some(0)));
    assert!(up.utilization.unwrap() > 0.999, "{up:?}");
    // A link that never comes back keeps its packets, however it is run.
    let never = text("rate = \"8Mbit\"", "20s", "[[events]]\nat = \"10s\"\nstate = \"down\"\n");
    for aqm in ["droptail", "pi", "codel", "fq-codel"] {
        let result = answer(&plan_of(&never, aqm, 1));
        assert!(link(&result, "after-10s").departures_pkts <= 1, "{aqm}");
    }
}

#[test]
fn what_the_wire_loses_is_sent_again() {
    let lossy =
        text("rate = \"8Mbit\"\nloss = 0.05", "60s", "").replace("transport =", "transfer = \"300kB\"\ntransport =");
    for aqm in ["droptail", "codel"] {
        let result = answer(&plan_of(&lossy, aqm, 1));
        let (all, flows) = (link(&result, "all"), &result.flows["bulk"]["all"]);
        // Five transfers of 300 kB; ns-2 sends whole segments of 960 B: 313 of them.
        assert_eq!((flows.goodput_bps * 60.0 / 8.0).round(), 5.0 * 313.0 * 960.0, "{aqm}");
        let lost = all.wire_lost_pkts.unwrap() as f64;
        let sent = all.departures_pkts as f64;
        assert!((lost / sent - 0.05).abs() < 3.29 * (0.05 * 0.95 / sent).sqrt(), "{aqm}: {lost} of {sent}");
        // Every loss was repaired; timeouts repeat more than that.
        assert!(flows.retransmitted_ratio.unwrap() >= lost / sent, "{aqm}");
    }
    // Losses on the way back are acknowledgements': the next one makes up for them.
    let back = text("rate = \"8Mbit\"", "20s", "")
        .replace("rate = \"1Gbit\" }", "rate = \"1Gbit\", loss = 0.05, record = true }");
    let result = answer(&plan_of(&back, "droptail", 1));
    assert!(result.links["bottleneck-reverse"]["all"].wire_lost_pkts.unwrap() > 0);
    assert!(link(&result, "steady").utilization.unwrap() > 0.95);
    // And on access links.
    let access = text("rate = \"8Mbit\"", "20s", "").replace("delay = \"5ms\"\n[[", "delay = \"5ms\"\nloss = 0.05\n[[");
    let result = answer(&plan_of(&access, "droptail", 1));
    assert!(result.flows["bulk"]["steady"].retransmitted_ratio.unwrap() > 0.05);
}

/// Experiment-like traffic that an AQM has to hold.
fn controlled(event: &str) -> String {
    text("rate = \"8Mbit\"", "40s", &format!("[[events]]\nat = \"20s\"\nname = \"after\"\n{event}\n"))
        .replace("100000pkt\"\nrev", "400pkt\"\nrev")
        .replace("count = 5", "count = 40")
        .replace("preset = \"ns2\"", "preset = \"ns2\", ecn = true")
        .replace("1Gbit\"\ndelay = \"5ms\"\n[[", "1Gbit\"\ndelay = [\"20ms\", \"60ms\"]\n[[")
}

#[test]
fn an_aqm_that_is_given_its_own_parameters_goes_on_as_if_nothing_had_happened() {
    for aqm in [
        "droptail",
        "pi",
        "red",
        "ared",
        "ared-feng",
        "rem",
        "avq",
        "blue",
        "codel",
        "cobalt",
        "pie",
        "pi2",
        "paqm",
        "aaqm",
        "stpi",
        "stred",
        "fq-codel",
        "fq-pie",
        "dualpi2",
        "cake",
        "sfq:perturb=3s",
        "drr",
    ] {
        let (same, nothing) = (format!("aqm = \"{aqm}\""), "loss = 0");
        let [same, nothing] =
            [same.as_str(), nothing].map(|event| printed(&answer(&plan_of(&controlled(event), aqm, 1))));
        assert!(same == nothing, "{aqm}:\n{same}\n{nothing}");
    }
}

#[test]
fn a_new_target_moves_the_queue_and_loses_nothing() {
    let result = answer(&plan_of(&controlled("aqm = { target = \"200pkt\" }"), "pi-x1000:target=50pkt", 1));
    let before = result.links["bottleneck"]["steady"].queue_mean_pkts;
    let after = link(&result, "after").queue_mean_pkts;
    assert!(after > 150.0 && before < after, "{before} {after}");
    assert_eq!(result.aqm.params["target"], aqumen_result::ParamValue::Number(200.0));
    // Another algorithm takes over with the packets that wait; one that acts at the head as well.
    for new in ["droptail", "codel", "red"] {
        let plan = plan_of(&controlled(&format!("aqm = \"{new}\"")), "pi", 1);
        let fast = answer(&plan);
        let slow = run(&plan, Options { every_service: true, ..Options::default() }, &mut |_| true).unwrap();
        assert_eq!(printed(&fast), printed(&slow), "{new}");
        let all = link(&fast, "all");
        let gone = all.departures_pkts + all.early_dropped_pkts + all.overflow_dropped_pkts;
        assert!((0..=401).contains(&(all.arrivals_pkts - gone)), "{new}");
    }
    assert!(link(&answer(&plan_of(&controlled("aqm = \"droptail\""), "pi", 1)), "after").marked_pkts < 10);
}

#[test]
fn a_discipline_of_several_queues_takes_new_parameters_with_its_packets_in_place() {
    let changed = |aqm: &str, event: &str| {
        let result = answer(&plan_of(&controlled(&format!("aqm = {{ {event} }}")), aqm, 1));
        let all = link(&result, "all");
        let gone = all.departures_pkts + all.early_dropped_pkts + all.overflow_dropped_pkts;
        assert!((0..=401).contains(&(all.arrivals_pkts - gone)), "{aqm}: {all:?}");
        let wait = |window: &str| result.links["bottleneck"][window].sojourn_mean_s.unwrap();
        (wait("steady"), wait("after"), result)
    };
    // The laws in the queues, and the two coupled queues: a target ten times as long lets packets wait longer.
    for (aqm, event) in [
        ("fq-codel:queues=4,target=2ms,interval=20ms", "target = \"50ms\", interval = \"500ms\""),
        ("fq-pie:queues=4,target=5ms", "target = \"60ms\""),
        ("cake:queues=8,target=2ms,interval=20ms", "target = \"50ms\", interval = \"500ms\""),
        ("dualpi2:target=5ms", "target = \"60ms\""),
    ] {
        let (steady, after, result) = changed(aqm, event);
        // The window "steady" holds half of the time after the change.
        assert!(after > 1.2 * steady, "{aqm}: {steady} {after}");
        assert!(
            matches!(result.aqm.params["target"], aqumen_result::ParamValue::Number(target) if target >= 0.05),
            "{aqm}"
        );
    }
    // The discipline's own: its limit, ten packets in place of the buffer's 400, its quantum, its period.
    for aqm in ["fq-codel:target=1s", "fq-pie:target=1s", "cake:target=1s"] {
        let (steady, after, result) = changed(aqm, "limit = \"10pkt\"");
        assert!(after < 0.02 && steady > 2.0 * after, "{aqm}: {steady} {after}");
        assert!(link(&result, "after").queue_mean_pkts < 11.0, "{aqm}");
    }
    let (.., result) = changed("drr:quantum=100B", "quantum = \"3000B\", head_drop = true");
    assert_eq!(result.aqm.params["quantum"], aqumen_result::ParamValue::Number(3000.0));
    let (.., result) = changed("sfq", "perturb = \"1s\", head_drop = true");
    assert_eq!(result.aqm.params["perturb"], aqumen_result::ParamValue::Number(1.0));
    let (.., result) = changed("dualpi2", "scheduler = \"ts-fifo\", k = 3, tupdate = \"4ms\", overload = false");
    assert_eq!(result.aqm.params["tupdate"], aqumen_result::ParamValue::Number(0.004));
}

#[test]
fn hosts_share_a_link_that_isolates_hosts_whatever_their_flows() {
    let two = |isolation: &str, hosts: &str| {
        let groups = format!(
            "{hosts}\n[[flows]]\nname = \"single\"\ntransport = {{ preset = \"ns2\", receive_window = \"1000pkt\" }}\n"
        );
        let text = text("rate = \"8Mbit\"", "40s", &groups).replace("count = 5", "count = 8");
        let aqm = format!("cake:isolation={isolation}");
        answer(&plan_of(&text.replace("100000pkt\"\nrev", "500pkt\"\nrev"), &aqm, 1))
    };
    let share = |result: &RunResult| {
        let of = |group: &str| result.flows[group]["steady"].goodput_bps;
        of("single") / (of("single") + of("bulk"))
    };
    // Nine flows of nine hosts: one in nine. Eight flows of one host against one of another: half by hosts (a single
    // Reno does not use all of that), one in nine by flows.
    for (isolation, hosts, expected) in [
        ("triple", "", 1.0 / 9.0),
        ("triple", "hosts = 1", 0.5),
        ("dual-src", "hosts = 1", 0.5),
        ("dual-dst", "hosts = 1", 0.5),
        ("flows", "hosts = 1", 1.0 / 9.0),
        // Eight flows from hosts of their own to one host, and the single one to another: only what
        // looks at destinations knows.
        ("triple", "destinations = 1", 0.5),
        ("dual-dst", "destinations = 1", 0.5),
        ("dual-src", "destinations = 1", 1.0 / 9.0),
        ("dual-src", "sources = 1", 0.5),
        ("dual-dst", "sources = 1", 1.0 / 9.0),
    ] {
        let got = share(&two(isolation, hosts));
        assert!((got - expected).abs() < 0.1 * expected.max(0.2), "{isolation} {hosts}: {got}, expected {expected}");
    }
}

#[test]
fn data_both_ways_compress_acknowledgements() {
    // The same forward traffic, alone and against data the other way that its acknowledgements queue behind.
    let back = "[[flows]]\nname = \"back\"\nfrom = \"r2\"\nto = \"r1\"\ncount = 5\ntransport = \"ns2\"\n";
    let both = |more: &str| {
        let text = text("rate = \"8Mbit\"", "60s", more).replace("100000pkt\"\nrev", "60pkt\"\nrev");
        let text = text.replace("reverse = { rate = \"1Gbit\" }", "reverse = { buffer = \"60pkt\", record = true }");
        answer(&plan_of(&text.replace("initial_window = \"100pkt\"", "initial_window = \"2pkt\""), "droptail", 1))
    };
    let (alone, two_way) = (both(""), both(back));
    let reverse = |result: &RunResult| result.links["bottleneck-reverse"]["steady"].clone();
    assert!(reverse(&alone).queue_mean_pkts < 0.1, "{:?}", reverse(&alone));
    // Both directions are used, each by data and acknowledgements of the other.
    let (there, back) = (link(&two_way, "steady"), reverse(&two_way));
    assert!(there.utilization.unwrap() > 0.75 && back.utilization.unwrap() > 0.75, "{there:?} {back:?}");
    // Acknowledgements that leave the queue back to back let data go in bursts: the queue swings
    // more, at less use of the link.
    let (one, two) = (link(&alone, "steady"), there);
    println!("alone {one:?}\ntwo-way {two:?}");
    assert!(two.queue_std_pkts > 1.1 * one.queue_std_pkts, "{} {}", two.queue_std_pkts, one.queue_std_pkts);
    assert!(two.utilization.unwrap() < one.utilization.unwrap());
}

/// ns-2.35 with its `ErrorModel` (uniform, packets) after the queue, the plan of this scenario for seeds 1 to 10,
/// `--engine ns2`, 2026-11-22: loss; mean and standard deviation of the goodput, bit/s, and of the share sent
/// again, over the steady window.
const NS2: [(f64, [f64; 2], [f64; 2]); 3] = [
    (0.005, [6_161_463.5, 90_569.4], [0.005_155_89, 0.000_148_52]),
    (0.02, [2_869_994.7, 53_068.4], [0.021_524_26, 0.000_616_47]),
    (0.05, [1_601_681.1, 23_103.0], [0.056_157_36, 0.001_148_87]),
];

#[test]
fn random_losses_do_to_newreno_what_they_do_in_ns_2() {
    for (loss, goodput, again) in NS2 {
        let text = format!(
            r#"name = "loss"
duration = "200s"
[topology]
preset = "dumbbell"
[topology.bottleneck]
rate = "8Mbit"
delay = "20ms"
buffer = "100pkt"
loss = {loss:?}
[topology.access]
rate = "10Mbit"
delay = "10ms"
[[flows]]
name = "ftp"
count = 4
start = ["0s", "1s"]
transport = {{ preset = "ns2", variant = "newreno" }}
"#
        );
        let runs: Vec<_> = (1..=10).map(|seed| answer(&plan_of(&text, "droptail", seed))).collect();
        let figures = |of: fn(&aqumen_result::FlowMetrics) -> f64| -> Vec<f64> {
            runs.iter().map(|run| of(&run.flows["ftp"]["steady"])).collect()
        };
        for (what, ours, [mean, std]) in [
            ("goodput", figures(|flows| flows.goodput_bps), goodput),
            ("sent again", figures(|flows| flows.retransmitted_ratio.unwrap()), again),
        ] {
            let own = ours.iter().sum::<f64>() / 10.0;
            let variance = ours.iter().map(|x| (x - own) * (x - own)).sum::<f64>() / 9.0;
            // Two means of ten: 99.9 % of Student's t with 18 degrees of freedom.
            let half = student_quantile(0.9995, 18.0) * ((variance + std * std) / 10.0).sqrt();
            println!("{loss} {what}: {own:.6} +- {half:.6}, ns-2 {mean:.6}");
            assert!((own - mean).abs() < half, "{loss} {what}: {own} +- {half}, ns-2 {mean}");
        }
    }
}
