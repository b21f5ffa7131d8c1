//! The theory engine on whole scenarios, against the fluid engine.

use aqumen_result::{Measurement, Observations, Prediction, RunResult, compare_prediction};
use aqumen_scenario::{Plan, Scenario};
use aqumen_theory::{engine, fluid, predict};

fn plan(name: &str, aqm: &str, changes: &[(&str, &str)]) -> Plan {
    let (file, cell) = name.split_once('@').unwrap_or((name, ""));
    let path = format!("{}/../../experiments/arm-pfc/{file}.toml", env!("CARGO_MANIFEST_DIR"));
    let scenario = Scenario::load(path, &[]).unwrap();
    let scenario = if cell.is_empty() { scenario } else { scenario.cell(cell).unwrap() };
    let scenario = changes.iter().fold(scenario, |scenario, (key, value)| scenario.with(key, value).unwrap());
    let spec = scenario.aqm(aqm).unwrap();
    scenario.plan(1, Some(&spec)).unwrap()
}

fn fluid(plan: &Plan) -> RunResult {
    fluid::run(plan, fluid::Options::default(), &mut |_| true).unwrap()
}

#[test]
fn where_the_loop_is_stable_the_fluid_engine_settles_on_the_prediction() {
    for (name, aqm) in [("exp1", "arm-pfc"), ("exp1", "pi"), ("exp4", "pi"), ("exp3@n50", "arm-pfc")] {
        let plan = plan(name, aqm, &[]);
        let (predicted, run) = (engine::run(&plan).unwrap(), fluid(&plan));
        assert_eq!(predicted.engine, "theory");
        let (a, b) = (&predicted.links["bottleneck"]["steady"], &run.links["bottleneck"]["steady"]);
        assert!((a.queue_mean_pkts - b.queue_mean_pkts).abs() < 1.0, "{name} {aqm}");
        let (p, q) = (a.mark_ratio.unwrap(), b.mark_ratio.unwrap());
        assert!((p / q - 1.0).abs() < 0.02, "{name} {aqm}: {p} {q}");
        let (r, s) = (&predicted.flows["ftp"]["steady"], &run.flows["ftp"]["steady"]);
        assert!((r.goodput_bps / s.goodput_bps - 1.0).abs() < 0.01);
        assert!((r.rtt_mean_s.unwrap() / s.rtt_mean_s.unwrap() - 1.0).abs() < 0.02);
    }
}

#[test]
fn where_it_is_not_the_oscillation_comes_with_its_period_and_height() {
    // RED with a fast average and few flows.
    let plan = plan("exp3@n50", "red:min_th=50pkt,max_th=150pkt,max_p=0.3,weight=0.002", &[]);
    let prediction = predict::predict(&plan).unwrap();
    let analysis = prediction["bottleneck"]["steady"].analysis.as_ref().unwrap();
    assert!(!analysis.margins.as_ref().unwrap().exact.stable);
    let expected = analysis.expected.oscillation_period_s.unwrap();
    let run = fluid(&plan);
    let series = &run.series["bottleneck"];
    let mean = run.links["bottleneck"]["steady"].queue_mean_pkts;
    // Upward crossings of the mean in the second half.
    let half = series.t_s.len() / 2;
    let crossings: Vec<f64> = (half..series.t_s.len() - 1)
        .filter(|&k| series.queue_pkts[k] < mean && series.queue_pkts[k + 1] >= mean)
        .map(|k| series.t_s[k])
        .collect();
    assert!(crossings.len() > 4, "no oscillation");
    let period = (crossings[crossings.len() - 1] - crossings[0]) / (crossings.len() - 1) as f64;
    assert!((period / expected - 1.0).abs() < 0.35, "seen {period} s, expected {expected} s");
    // Its height comes from the equations, too, here with one class of flows.
    let height = |result: &aqumen_result::RunResult| result.links["bottleneck"]["steady"].queue_std_pkts;
    let (told, seen) = (height(&engine::run(&plan).unwrap()), height(&run));
    assert!((told / seen - 1.0).abs() < 0.35, "seen {seen} packets, expected {told}");
}

#[test]
fn windows_follow_their_events() {
    // Experiment 5: 1250, 750, 1250 packets/s.
    let plan = plan("exp5", "arm-pfc", &[]);
    let prediction = predict::predict(&plan).unwrap();
    let capacity = |window: &str| prediction["bottleneck"][window].capacity_pps;
    assert!((capacity("narrow") - 750.0).abs() < 1e-6 && (capacity("wide") - 1250.0).abs() < 1e-6);
    // Experiment 2: flows come and go.
    let prediction = predict::predict(&self::plan("exp2", "arm-pfc", &[])).unwrap();
    let flows: Vec<f64> = prediction["bottleneck"].values().map(|at| at.flows).collect();
    assert!(
        flows.iter().any(|n| (*n - 100.0).abs() < 1.0) && flows.iter().any(|n| (*n - 150.0).abs() < 1.0),
        "{flows:?}"
    );
}

#[test]
fn flows_that_their_windows_hold_back_leave_the_link_idle() {
    // 120 windows of one packet and 200 ms: at most 600 of 1000 packets/s.
    let changes =
        [("flows.0.transport", "{ preset = \"ns2\", ecn = true, packet = \"1000B\", receive_window = \"1pkt\" }")];
    let plan = plan("exp1", "pi", &changes);
    let at = &predict::predict(&plan).unwrap()["bottleneck"]["steady"];
    assert!(at.analysis.is_none() && at.queue_pkts == 0.0 && (at.utilization - 0.59).abs() < 0.03, "{at:?}");
}

#[test]
fn windows_that_follow_another_law_than_renos_are_refused_by_the_fluid_engine_in_one_line() {
    for (preset, law) in [("cubic", "cubic"), ("cubic-ns2", "cubic-2.1"), ("dctcp", "dctcp"), ("bbr", "bbr")] {
        let plan = plan("exp1", "pi", &[("flows.0.transport", &format!("\"{preset}\""))]);
        let expected = format!(
            "group ftp: the equations know Reno's windows alone, not congestion = \"{law}\"; use engine packet"
        );
        let refused = fluid::run(&plan, fluid::Options::default(), &mut |_| true).unwrap_err();
        assert_eq!(refused.to_string(), expected);
    }
}

#[test]
fn windows_that_no_share_of_signals_holds_are_refused_with_the_reason() {
    for (preset, law, why) in [
        ("bbr", "bbr", "delivery rate"),
        ("vegas", "vegas", "follows the delay"),
        ("ledbat", "ledbat", "follows the delay"),
        ("cubic-ns2", "cubic-2.1", "not known"),
    ] {
        let refused = predict::predict(&plan("exp1", "pi", &[("flows.0.transport", &format!("\"{preset}\""))]));
        let said = refused.unwrap_err().to_string();
        assert!(said.starts_with(&format!("group ftp: congestion = \"{law}\": ")), "{said}");
        assert!(said.contains(why) && said.ends_with("use engine packet"), "{said}");
    }
    // Losses: the response function is that of marks.
    let lossy = [("flows.0.transport", "{ preset = \"cubic\", ecn = false, variant = \"newreno\" }")];
    let said = predict::predict(&plan("exp1", "pi", &lossy)).unwrap_err().to_string();
    assert!(said.starts_with("group ftp: under losses without SACK"), "{said}");
}

#[test]
fn each_law_asks_for_its_own_share_at_the_same_window() {
    // 120 flows of experiment 1: 100 packets wait, windows of 2.5; in packets of 1500 bytes
    // fewer. Four times the capacity: 8.
    let share = |preset: &str| {
        let changes = [
            ("flows.0.transport", format!("{{ preset = \"{preset}\", packet = \"1000B\" }}")),
            ("topology.bottleneck.rate", "\"32Mbit\"".into()),
        ];
        let changes: Vec<_> = changes.iter().map(|(key, value)| (*key, value.as_str())).collect();
        let at = predict::predict(&plan("exp1", "pi", &changes)).unwrap()["bottleneck"]["steady"].clone();
        let analysis = at.analysis.unwrap();
        assert!((at.queue_pkts - 100.0).abs() < 1e-6 && analysis.operating_point.at.feasible);
        (at.probability, analysis.margins.is_some_and(|margins| margins.controller == "equation"))
    };
    let [modern, cubic, dctcp, prague] = ["modern", "cubic", "dctcp", "prague"].map(share);
    // W = 8: Reno about 1.7 / (8 10) = .021, CUBIC a little more; DCTCP 1.41 / 9 and Prague 2.7 / 9, for half a
    // packet and more is held back.
    assert!((0.017..0.022).contains(&modern.0) && (0.017..0.028).contains(&cubic.0), "{modern:?} {cubic:?}");
    assert!((0.13..0.18).contains(&dctcp.0) && (0.2..0.3).contains(&prague.0), "{dctcp:?} {prague:?}");
    assert!(modern.1 && cubic.1 && dctcp.1 && prague.1);
}

/// 40 flows beside 40 of Prague's, 96 Mbit/s, round trips of 30 ms.
fn plan_beside_prague(aqm: &str, classic: &str) -> Plan {
    plan_beside_prague_and(aqm, classic, "")
}

/// Plan with more flows.
fn plan_beside_prague_and(aqm: &str, classic: &str, more: &str) -> Plan {
    let text = format!(
        r#"
name = "two-kinds"
duration = "60s"
aqm = "pi"
[[flows]]
name = "classic"
count = 40
transport = {{ preset = "{classic}", packet = "1000B" }}
[[flows]]
name = "scalable"
count = 40
transport = {{ preset = "prague", packet = "1000B" }}
{more}
[topology]
preset = "dumbbell"
bottleneck = {{ rate = "96Mbit", delay = "5ms", buffer = "2000pkt" }}
access = {{ rate = "1Gbit", delay = "5ms" }}
[nominal]
capacity = "96Mbit"
flows = 80
base_rtt = "30ms"
target = "180pkt"
packet = "1000B"
"#
    );
    let scenario = Scenario::parse(&text, "two-kinds").unwrap();
    let spec = scenario.aqm(aqm).unwrap();
    scenario.plan(1, Some(&spec)).unwrap()
}

fn beside_prague(aqm: &str, classic: &str) -> Result<predict::LinkPrediction, String> {
    let found = predict::predict(&plan_beside_prague(aqm, classic)).map_err(|error| error.to_string())?;
    Ok(found["bottleneck"]["all"].clone())
}

#[test]
fn dualpi2_holds_both_queues() {
    let at = beside_prague("dualpi2", "modern").unwrap();
    let coupled = at.coupled.as_ref().unwrap();
    assert!((coupled.classic.rate_pps + coupled.low_latency.rate_pps - 12_000.0).abs() < 1e-6);
    // 15 ms of what the C queue gets, and a little in the L queue.
    assert!((at.queue_pkts / (0.015 * coupled.classic.rate_pps) - 1.0).abs() < 0.05);
    let sum = [coupled.classic, coupled.low_latency].map(|side| side.rate_pps * side.delay_s).iter().sum::<f64>();
    assert!((at.queue_pkts / sum - 1.0).abs() < 1e-12, "{at:?}");
    let analysis = at.analysis.as_ref().unwrap();
    assert!(analysis.noise.valid, "{:?}", analysis.noise);
    // That of the C queue's delay, and in the L queue a geometric number of packets beside it.
    let classic = coupled.delay_std_s.unwrap() * coupled.classic.rate_pps;
    let low = coupled.low_latency.rate_pps * coupled.low_latency.delay_s;
    let variance = classic.powi(2) + low * (1.0 + low);
    assert!((analysis.noise.queue_std_pkts.unwrap() / variance.sqrt() - 1.0).abs() < 1e-9);
    let noise = &analysis.noise;
    let p95 = at.queue_pkts + 1.644_854 * noise.queue_std_pkts.unwrap();
    assert!((noise.queue_p95_pkts.unwrap() - p95).abs() < 1e-3, "{noise:?}");
    assert_eq!(
        (noise.window_pkts, noise.probability),
        (Some(coupled.classic.window_pkts), Some(coupled.classic.probability))
    );
    // Its marks come each 1/p-th packet, of which the theory says what it does not have; by chance it has all.
    let doubts = |aqm: &str| {
        let analysis = beside_prague(aqm, "modern").unwrap().analysis.unwrap();
        analysis.warnings.iter().filter(|warning| warning.contains("packets keep their order")).count()
    };
    assert_eq!((doubts("dualpi2"), doubts("dualpi2:selection=random")), (1, 0));
    // Of all packets those of the C queue are marked with p'^2, those of the L queue with what its ramp makes of k p'.
    let [classic, low] = [coupled.classic, coupled.low_latency].map(|side| side.rate_pps * side.probability / 12_000.0);
    assert!((at.probability - classic - low).abs() < 1e-12, "{at:?}");
    // The analysis is that of the C queue on what it gets: ways of 5 ms three times there and back, and packets' time.
    let point = analysis.operating_point.at;
    assert_eq!((point.capacity_pps, point.flows), (coupled.classic.rate_pps, 40.0));
    assert!((0.03..0.0305).contains(&point.base_rtt_s), "{point:?}");
    assert!((point.window_pkts / coupled.classic.window_pkts - 1.0).abs() < 0.01, "{point:?} {coupled:?}");
    // Flows that can be marked but are not scalable are in the C queue alone, as those of one queue.
    let marked = predict::predict(&plan("exp1", "dualpi2", &[("flows.0.transport", "\"modern\"")])).unwrap();
    assert!(marked["bottleneck"]["steady"].coupled.is_none());
    // Scalable flows alone have no C queue to hold, nor has it any where all that can be marked goes to the L queue.
    assert!(beside_prague("dualpi2:any_ect=true", "modern").unwrap_err().contains("scalable flows alone"));
    assert!(beside_prague("dualpi2", "prague").unwrap_err().contains("scalable flows alone"));
}

/// Ten flows over two links of 12 Mbit/s, ten over the first alone and, if there are, ten over the second.
fn two_links(second: bool) -> Plan {
    two_links_with(second, "240pkt")
}

/// Plan with buffers of this size.
fn two_links_with(second: bool, buffer: &str) -> Plan {
    let ways = [("through", "r0", "r2"), ("first", "r0", "r1"), ("second", "r1", "r2")];
    links(&ways[..if second { 3 } else { 2 }], &["12Mbit"; 2], buffer)
}

/// Ten flows each on these ways over links of these rates.
fn links(ways: &[(&str, &str, &str)], rates: &[&str], buffer: &str) -> Plan {
    let group = |(name, from, to): &(&str, &str, &str)| {
        format!(
            "[[flows]]\nname = \"{name}\"\ncount = 10\nfrom = \"{from}\"\nto = \"{to}\"\ntransport = {{ preset = \"modern\" }}\n"
        )
    };
    let groups: String = ways.iter().map(group).collect();
    let text = format!(
        r#"
name = "two-links"
duration = "60s"
aqm = "pi"
{groups}
[topology]
preset = "parking-lot"
rate = {rates:?}
delay = "20ms"
buffer = "{buffer}"
access = {{ rate = "1Gbit", delay = "5ms" }}
[nominal]
capacity = "12Mbit"
flows = 20
base_rtt = "100ms"
target = "60pkt"
packet = "1500B"
"#
    );
    let scenario = Scenario::parse(&text, "two-links").unwrap();
    let spec = scenario.aqm("pi").unwrap();
    scenario.plan(1, Some(&spec)).unwrap()
}

#[test]
fn full_links_that_share_flows_are_held_together_and_a_wide_one_by_itself() {
    let alike = predict::predict(&two_links(true)).unwrap();
    let full: Vec<_> = alike.values().map(|windows| &windows["all"]).filter(|at| at.several.is_some()).collect();
    let [one, other] = full[..] else { panic!("{alike:?}") };
    for link in [one, other] {
        // Packets of 1500 bytes at 12 Mbit/s: 1000 a second, 60 of them wait at either link.
        assert!((link.capacity_pps - 1000.0).abs() < 1e-9 && (link.queue_pkts - 60.0).abs() < 1e-6, "{link:?}");
        // Ten flows of 100 ms and ten of 60 (5 ms at either end, 20 a link): 20 / (10 / .1 + 10 / .06) = 75 ms, and
        // some packets' time on the wire.
        assert!((0.075..0.078).contains(&link.base_rtt_s), "{}", link.base_rtt_s);
        // They fill it: windows over round trips of 160 + 60 ms and 60 + 60, in the mean of all.
        let at = link.analysis.as_ref().unwrap().operating_point.at;
        assert!((20.0 * at.window_pkts / at.rtt_s / 1000.0 - 1.0).abs() < 1e-3, "{at:?}");
        assert!((0.155..0.159).contains(&at.rtt_s), "20 / (10 / .22 + 10 / .12) s: {}", at.rtt_s);
    }
    // Flows over both links meet twice the signals and wait twice: windows are 1.31 / sqrt(p), rates that over R = .22
    // and .12 s: 1.41 (.22 / .12) = 2.6 times as much for the others.
    let flows = engine::run(&two_links(true)).unwrap().flows;
    let [(long, both_s), (short, one_s)] =
        ["through", "first"].map(|name| (flows[name]["all"].goodput_bps, flows[name]["all"].rtt_mean_s.unwrap()));
    assert!((0.22..0.225).contains(&both_s) && (0.12..0.125).contains(&one_s), "{both_s} {one_s}");
    assert!((2.3..2.9).contains(&(short / long)), "{short} {long}");
    assert!((one.probability / other.probability - 1.0).abs() < 0.02, "{} {}", one.probability, other.probability);
    // A third link that is wide has neither queue nor signals: what the first two let through is all that comes.
    let ways = [("through", "r0", "r3"), ("first", "r0", "r1"), ("second", "r1", "r2")];
    let wide = predict::predict(&links(&ways, &["12Mbit", "12Mbit", "48Mbit"], "240pkt")).unwrap();
    let of = |link: &str| &wide[link]["all"];
    let names: Vec<&String> = wide.keys().filter(|link| of(link).several.is_some()).collect();
    let [one, two, three] = names[..] else { panic!("{names:?}") };
    assert_eq!(of(three).several.as_ref().unwrap().links, [one.clone(), two.clone()]);
    let at = of(three);
    assert_eq!((at.queue_pkts, at.probability, at.flows), (0.0, 0.0, 10.0));
    assert!((0.05..0.1).contains(&at.utilization) && of(one).utilization == 1.0, "{}", at.utilization);
    // 60 packets short of its target.
    let offset = |link: &str| of(link).analysis.as_ref().unwrap().expected.offset_pkts.unwrap();
    assert!((offset(three) + 60.0).abs() < 1e-6 && offset(one).abs() < 1e-6, "{} {}", offset(three), offset(one));
    let noise = |link: &str| of(link).analysis.as_ref().unwrap().noise.why.clone().unwrap_or_default();
    assert!(noise(three).contains("not full") && !noise(one).contains("not full"), "{} {}", noise(three), noise(one));
    // Without flows of its own the second link is not full: no flow waits in two queues.
    let apart = predict::predict(&two_links(false)).unwrap();
    assert!(apart.values().all(|windows| windows["all"].several.is_none()), "{apart:?}");
}

#[test]
fn each_link_that_is_looked_at_is_a_queue_of_the_fluid() {
    let plan = two_links(true);
    let run = fluid(&plan);
    let names: Vec<String> = plan.links.iter().filter(|link| link.record).map(|link| link.name.to_string()).collect();
    assert!(names.len() >= 2 && run.links.keys().eq(&names), "{:?}", run.links.keys());
    // The two that flows fill hold a queue each, at the target in the end, and carry what they can.
    let ends: Vec<f64> = run.series.values().map(|series| series.queue_pkts[series.queue_pkts.len() - 1]).collect();
    assert_eq!(ends.iter().filter(|queue| (*queue - 60.0).abs() < 0.5).count(), 2, "{ends:?}");
    assert!(ends.iter().all(|queue| *queue < 0.5 || (queue - 60.0).abs() < 0.5), "{ends:?}");
    // A link that has room carries what comes, and nothing waits there: what the first leaves of the others.
    let plan = two_links(false);
    let run = fluid(&plan);
    let at = |name: &str| &run.links[name]["all"];
    let [first, second] = [0, 1].map(|k| at(run.links.keys().nth(k).unwrap()));
    let share = second.departures_pkts as f64 / first.departures_pkts as f64;
    let flows = ["through", "first"].map(|name| run.flows[name]["all"].throughput_bps.unwrap());
    assert!((share / (flows[0] / (flows[0] + flows[1])) - 1.0).abs() < 0.02, "{share} {flows:?}");
    assert!(share < 0.6 && second.queue_mean_pkts < 0.5, "{second:?}");
}

#[test]
fn links_that_share_flows_hold_no_more_than_their_buffers() {
    // 60 packets of 1500 bytes are 90 kB: the target where there is room for it, else what there is.
    for (buffer, queue_pkts) in [("40pkt", 40.0), ("60kB", 40.0), ("90kB", 60.0), ("240kB", 60.0)] {
        let found = predict::predict(&two_links_with(true, buffer)).unwrap();
        let full: Vec<_> = found.values().map(|windows| &windows["all"]).filter(|at| at.several.is_some()).collect();
        assert_eq!(full.len(), 2, "{buffer}");
        assert!(full.iter().all(|at| (at.queue_pkts - queue_pkts).abs() < 1e-6), "{buffer}: {full:?}");
    }
}

#[test]
fn flows_of_two_laws_share_a_queue_by_their_response_functions() {
    // PI marks both alike: Prague, made for far more marks, takes most. PI2 marks it with twice the root: (1 + sqrt(3))
    // / (2 p') beside 1.31 / p', about equal shares.
    let share = |aqm: &str| {
        let at = beside_prague(aqm, "modern").unwrap();
        // 12 000 packets/s over 30 ms and 180 packets of waiting: windows of 6.75 in the mean, and up to a packet held
        // back. Reno's 1.3 / sqrt(p) and Prague's 2 / p to 2.7 / p are 13.5 to 15.5 together from p = .16 to .25.
        assert!(aqm != "pi" || (0.16..0.25).contains(&at.probability), "{}", at.probability);
        let noise = at.analysis.unwrap().noise;
        assert!(at.coupled.is_none() && noise.why.is_none_or(|why| !why.contains("requested")));
        let flows = engine::run(&plan_beside_prague(aqm, "modern")).unwrap().flows;
        let [classic, scalable] = ["classic", "scalable"].map(|name| flows[name]["all"].goodput_bps);
        // 948 of 1000 bytes are payload.
        assert!(((classic + scalable) / (0.948 * 96e6) - 1.0).abs() < 0.01, "{classic} {scalable}");
        scalable / classic
    };
    let (pi, pi2) = (share("pi"), share("pi2"));
    assert!(pi > 2.0 && (0.5..1.5).contains(&pi2), "{pi} {pi2}");
    // RED's queue is where its curve says what fills the link; an offset of the target is found likewise.
    let red = beside_prague("red", "modern").unwrap();
    assert!((90.0..540.0).contains(&red.queue_pkts) && red.probability > 0.0, "{}", red.queue_pkts);
    let offset = beside_prague("arm-pfc", "modern").unwrap();
    assert!(offset.probability > 0.0 && offset.queue_pkts > 90.0, "{}", offset.queue_pkts);
}

#[test]
fn flows_of_two_laws_fill_what_is_let_in_of_the_load_leaves() {
    // 3000 packets/s of the 12 000, of 1000 bytes; 948 of the flows' are payload.
    let load = "[[flows]]\nname = \"udp\"\ncount = 2\ntransport = { preset = \"udp\", packet = \"1000B\" }\n\
                traffic = { kind = \"cbr\", rate = \"11664kbit\", packet = \"972B\" }";
    let plan = plan_beside_prague_and("pi", "modern", load);
    let at = &predict::predict(&plan).unwrap()["bottleneck"]["all"];
    assert!((at.unresponsive_pps - 3000.0).abs() < 1e-6, "{at:?}");
    let flows = engine::run(&plan).unwrap().flows;
    let goodput = ["classic", "scalable"].map(|name| flows[name]["all"].goodput_bps / (8.0 * 948.0));
    let all = goodput[0] + goodput[1] + at.admitted_pps;
    assert!((all / 12_000.0 - 1.0).abs() < 1e-3, "{goodput:?} {}", at.admitted_pps);
    // The load is dropped where they are marked.
    let p = at.analysis.as_ref().unwrap().operating_point.at.probability;
    assert!((at.admitted_pps / (3000.0 * (1.0 - p)) - 1.0).abs() < 1e-9 && p > 0.05, "{p}");
}

#[test]
fn flows_are_held_by_the_link_that_load_makes_the_narrowest() {
    // Of the first link's 12 Mbit/s 6 are left.
    let load = "[[flows]]\nname = \"udp\"\nfrom = \"r0\"\nto = \"r1\"\ncount = 1\n\
                transport = { preset = \"udp\", packet = \"1500B\" }\n\
                traffic = { kind = \"cbr\", rate = \"6Mbit\", packet = \"1472B\" }\n";
    for (second, held) in [("9Mbit", [10.0, 0.0]), ("5Mbit", [0.0, 10.0])] {
        let text = format!(
            "name = \"t\"\nduration = \"20s\"\naqm = \"droptail\"\n[topology]\npreset = \"parking-lot\"\n\
             rate = [\"12Mbit\", \"{second}\"]\ndelay = \"20ms\"\nbuffer = \"100pkt\"\n\
             access = {{ rate = \"1Gbit\", delay = \"5ms\" }}\n[[flows]]\nname = \"ftp\"\ncount = 10\n\
             from = \"r0\"\nto = \"r2\"\ntransport = {{ preset = \"ns2\", ecn = false }}\n{load}"
        );
        let plan = Scenario::parse(&text, "t.toml").unwrap().plan(1, None).unwrap();
        let flows: Vec<f64> = predict::predict(&plan).unwrap().values().map(|link| link["all"].flows).collect();
        assert_eq!(flows, held, "{second}");
    }
}

#[test]
fn a_buffer_in_bytes_is_so_many_packets() {
    // 150 kB of packets of 1000 bytes; without an AQM the queue stands at the buffer's end.
    let changes = [("topology.bottleneck.buffer", "\"150kB\"")];
    let at = &predict::predict(&plan("exp1", "droptail", &changes)).unwrap()["bottleneck"]["steady"];
    assert!((at.queue_pkts - 150.0).abs() < 1e-9, "{}", at.queue_pkts);
}

#[test]
fn what_packets_do_around_the_rest_is_in_the_result() {
    let result = engine::run(&plan("exp1", "pi", &[])).unwrap();
    let prediction = predict::predict(&plan("exp1", "pi", &[])).unwrap();
    let noise = &prediction["bottleneck"]["steady"].analysis.as_ref().unwrap().noise;
    let link = &result.links["bottleneck"]["steady"];
    assert!(noise.valid && (link.queue_std_pkts - noise.queue_std_pkts.unwrap()).abs() < 1e-12);
    // At the target QACD is the deviation; 1.645 of them above the mean lie 5 %, and at 1000
    // packets/s a packet waits 1 ms.
    assert!((link.qacd_pkts.unwrap() - link.queue_std_pkts).abs() < 0.01 * link.queue_std_pkts);
    let p95 = link.queue_mean_pkts + 1.644_854 * link.queue_std_pkts;
    assert!((link.queue_p95_pkts.unwrap() - p95).abs() < 1e-3 && (noise.queue_p95_pkts.unwrap() - p95).abs() < 1e-3);
    assert!((link.sojourn_p95_s.unwrap() - p95 / 1000.0).abs() < 1e-6);
}

#[test]
fn a_prediction_as_json_is_what_stands_beside_a_measurement() {
    let measured = |result: &RunResult| {
        let metrics = serde_json::to_string(&result.links["bottleneck"]["steady"]).unwrap();
        serde_json::from_str::<Measurement>(&metrics).unwrap()
    };
    let steady = |plan: &Plan| {
        let prediction = predict::predict(plan).unwrap();
        let json = serde_json::to_string(&prediction["bottleneck"]["steady"]).unwrap();
        serde_json::from_str::<Prediction>(&json).unwrap()
    };
    let seen = Observations { loops: true, ..Observations::default() };
    // Stable: the fluid run is where it was predicted, in windows that are small on paper too.
    let stable = plan("exp1", "pi", &[]);
    let told = compare_prediction(&steady(&stable), &measured(&fluid(&stable)), &seen);
    assert!(told.point["gain_margin"] > 1.0 && told.point["queue_std_pkts"] > 0.0, "{:?}", told.point);
    assert!((told.predicted["queue_mean_pkts"].unwrap() - told.measured["queue_mean_pkts"].unwrap()).abs() < 1.0);
    assert!(matches!(&told.notes[..], [note] if note.contains("time-outs rule")), "{:?}", told.notes);
    // Unstable: the oscillation is expected.
    let unstable = plan("exp3@n50", "red:min_th=50pkt,max_th=150pkt,max_p=0.3,weight=0.002", &[]);
    let told = compare_prediction(&steady(&unstable), &measured(&fluid(&unstable)), &seen);
    assert!(told.notes.iter().any(|note| note.contains("limit cycle expected, period")), "{:?}", told.notes);
}
