//! The papers' controllers in the packet engine: what each holds, and where a paper's words fail.
//!
//! `cargo test --release -p aqumen-sim --test all papers -- --ignored --nocapture` prints the whole table of
//! `docs/aqms/papers.md`, measured beside expected.

use std::collections::BTreeMap;
use std::sync::Mutex;

use aqumen_scenario::Scenario;
use aqumen_sim::{Options, run};

/// A scenario of the ARM-PFC paper, with what an AQM that knows its network would be told.
struct Case {
    name: &'static str,
    file: &'static str,
    /// Round trip without queueing, seconds; flows; capacity.
    base_rtt: &'static str,
    flows: &'static str,
    capacity: &'static str,
}

const CASES: [Case; 8] = [
    Case { name: "E1", file: "exp1", base_rtt: "200ms", flows: "120", capacity: "8Mbit" },
    Case { name: "E2", file: "exp2", base_rtt: "200ms", flows: "150", capacity: "10Mbit" },
    Case { name: "N50", file: "exp3@n50", base_rtt: "200ms", flows: "50", capacity: "8Mbit" },
    Case { name: "N200", file: "exp3@n200", base_rtt: "200ms", flows: "200", capacity: "8Mbit" },
    Case { name: "E4", file: "exp4", base_rtt: "200ms", flows: "300", capacity: "10Mbit" },
    Case { name: "E5", file: "exp5", base_rtt: "200ms", flows: "120", capacity: "10Mbit" },
    Case { name: "E6s", file: "exp6-small", base_rtt: "28ms", flows: "100", capacity: "10Mbit" },
    Case { name: "E6l", file: "exp6-large", base_rtt: "320ms", flows: "100", capacity: "10Mbit" },
];

/// Parameters of a row's AQM, beside the paper's nominal network.
#[derive(Clone, Copy, PartialEq)]
enum Knows {
    /// Nothing.
    Nominal,
    /// The round trip.
    RoundTrip,
    /// All of it.
    Scenario,
}

/// Mean, standard deviation of the queue in packets, utilisation.
type Figures = (f64, f64, f64);

/// An AQM with what an independent trial simulator gave: 5 seeds (10 for the default ARM-PFC), 10 to 100 s.
struct Row {
    label: &'static str,
    aqm: &'static str,
    knows: Knows,
    expected: [Figures; 8],
}

const FULL: f64 = 1.0;

#[rustfmt::skip]
const ROWS: [Row; 15] = [
    Row { label: "ARM-PFC A, as printed", aqm: "arm-pfc-literal", knows: Knows::Nominal, expected: [
        (101.0, 30.0, 0.999), (68.0, 43.0, 0.975), (12.0, 10.0, 0.908), (191.0, 27.0, FULL),
        (215.0, 48.0, FULL), (86.0, 48.0, 0.989), (166.0, 41.0, FULL), (27.0, 21.0, 0.950)] },
    Row { label: "ARM-PFC B, as printed", aqm: "arm-pfc-printed", knows: Knows::Nominal, expected: [
        (96.0, 22.0, FULL), (83.0, 38.0, 0.998), (90.0, 20.0, FULL), (77.0, 52.0, 0.973),
        (97.0, 63.0, 0.974), (91.0, 29.0, FULL), (84.0, 36.0, FULL), (89.0, 30.0, FULL)] },
    Row { label: "ARM-PFC B, Psi .95, h 7", aqm: "arm-pfc:psi=0.95,h=7", knows: Knows::Nominal, expected: [
        (100.0, 15.0, FULL), (99.0, 26.0, FULL), (98.0, 15.0, FULL), (100.0, 15.0, FULL),
        (100.0, 17.0, FULL), (99.0, 25.0, FULL), (86.0, 33.0, FULL), (96.0, 20.0, FULL)] },
    Row { label: "ARM-PFC B, default", aqm: "arm-pfc", knows: Knows::Nominal, expected: [
        (100.0, 14.0, FULL), (100.0, 25.0, FULL), (99.0, 15.0, FULL), (100.0, 14.0, FULL),
        (100.0, 16.0, FULL), (100.0, 23.0, FULL), (100.0, 11.0, FULL), (100.0, 19.0, FULL)] },
    Row { label: "ARM-PFC AD3, Psi .95, h 7", aqm: "arm-pfc-adaptive:psi=0.95,h=7", knows: Knows::Nominal, expected: [
        (100.0, 14.0, FULL), (101.0, 26.0, FULL), (99.0, 15.0, FULL), (100.0, 16.0, FULL),
        (100.0, 24.0, FULL), (100.0, 24.0, FULL), (86.0, 34.0, FULL), (99.0, 19.0, FULL)] },
    Row { label: "STPI", aqm: "stpi", knows: Knows::RoundTrip, expected: [
        (100.0, 17.0, FULL), (101.0, 27.0, FULL), (100.0, 17.0, FULL), (101.0, 19.0, FULL),
        (100.0, 24.0, FULL), (101.0, 27.0, FULL), (100.0, 17.0, FULL), (101.0, 22.0, FULL)] },
    Row { label: "PAQM", aqm: "paqm", knows: Knows::Nominal, expected: [
        (113.0, 32.0, FULL), (113.0, 57.0, FULL), (99.0, 21.0, FULL), (139.0, 55.0, FULL),
        (152.0, 69.0, FULL), (107.0, 45.0, FULL), (154.0, 49.0, FULL), (101.0, 28.0, FULL)] },
    Row { label: "AQM-MO", aqm: "aqm-mo", knows: Knows::Nominal, expected: [
        (100.0, 18.0, FULL), (100.0, 30.0, FULL), (100.0, 32.0, FULL), (100.0, 18.0, FULL),
        (100.0, 19.0, FULL), (100.0, 30.0, FULL), (100.0, 12.0, FULL), (95.0, 70.0, 0.988)] },
    // Without `capacity` it would know the link's rate, where all others know the nominal one.
    Row { label: "AAQM", aqm: "aaqm:capacity=10Mbit", knows: Knows::Nominal, expected: [
        (11.0, 15.0, 0.918), (10.0, 17.0, 0.910), (11.0, 14.0, 0.887), (13.0, 19.0, 0.923),
        (7.0, 8.0, 0.915), (9.0, 16.0, 0.904), (75.0, 33.0, 0.973), (12.0, 17.0, 0.867)] },
    Row { label: "PI x 1000", aqm: "pi-x1000", knows: Knows::Nominal, expected: [
        (100.0, 15.0, FULL), (100.0, 25.0, FULL), (99.0, 21.0, FULL), (100.0, 15.0, FULL),
        (100.0, 17.0, FULL), (100.0, 26.0, FULL), (100.0, 11.0, FULL), (97.0, 44.0, FULL)] },
    Row { label: "PI, Hollot", aqm: "pi:crossover=hollot", knows: Knows::Scenario, expected: [
        (89.0, 53.0, FULL), (84.0, 61.0, FULL), (100.0, 17.0, FULL), (82.0, 60.0, FULL),
        (81.0, 62.0, FULL), (99.0, 45.0, FULL), (87.0, 29.0, FULL), (100.0, 23.0, FULL)] },
    // The rest has no trial to compare with.
    Row { label: "ARM-PFC AD2", aqm: "arm-pfc-adaptive:method=AD2", knows: Knows::Nominal, expected: [(0.0, 0.0, 0.0); 8] },
    Row { label: "STRED", aqm: "stred", knows: Knows::RoundTrip, expected: [(0.0, 0.0, 0.0); 8] },
    Row { label: "ST-ARM-PFC", aqm: "st-arm-pfc", knows: Knows::RoundTrip, expected: [(0.0, 0.0, 0.0); 8] },
    Row { label: "ST-AQM-MO", aqm: "st-aqm-mo", knows: Knows::RoundTrip, expected: [(0.0, 0.0, 0.0); 8] },
];

/// Figures of one run of `case` with `aqm` in the window `window`.
fn figures(case: &Case, aqm: &str, knows: Knows, seed: u64, window: &str) -> Figures {
    let (file, cell) = case.file.split_once('@').unwrap_or((case.file, ""));
    let file = format!("{}/../../experiments/arm-pfc/{file}.toml", env!("CARGO_MANIFEST_DIR"));
    let told: &[(&str, &str)] = match knows {
        Knows::Nominal => &[],
        Knows::RoundTrip => &[("nominal.base_rtt", case.base_rtt)],
        Knows::Scenario => {
            &[("nominal.base_rtt", case.base_rtt), ("nominal.flows", case.flows), ("nominal.capacity", case.capacity)]
        }
    };
    let scenario = Scenario::load(file, told).unwrap();
    let scenario = if cell.is_empty() { scenario } else { scenario.cell(cell).unwrap() };
    let plan = scenario.plan(seed, Some(&scenario.aqm(aqm).unwrap())).unwrap();
    let result = run(&plan, Options::default(), &mut |_| true).unwrap();
    let link = &result.links["bottleneck"][window];
    (link.queue_mean_pkts, link.queue_std_pkts, link.utilization.unwrap())
}

fn mean(all: &[Figures]) -> Figures {
    let n = all.len() as f64;
    let of = |pick: fn(&Figures) -> f64| all.iter().map(pick).sum::<f64>() / n;
    (of(|f| f.0), of(|f| f.1), of(|f| f.2))
}

#[test]
#[ignore = "the whole table: 15 AQMs, 8 scenarios, 10 seeds"]
fn the_table() {
    let cells: Vec<(usize, usize)> =
        (0..ROWS.len()).flat_map(|row| (0..CASES.len()).map(move |case| (row, case))).collect();
    let (next, measured) = (Mutex::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let mut process = next.lock().unwrap();
                    let Some(&(row, case)) = cells.get(*process) else { return };
                    *process += 1;
                    drop(process);
                    let seeds: Vec<_> = (1..=10)
                        .map(|seed| figures(&CASES[case], ROWS[row].aqm, ROWS[row].knows, seed, "steady"))
                        .collect();
                    measured.lock().unwrap().insert((row, case), mean(&seeds));
                }
            });
        }
    });
    let measured = measured.into_inner().unwrap();
    let mut misses = 0;
    println!("| |{}", CASES.iter().map(|case| format!(" {} |", case.name)).collect::<String>());
    println!("|---|{}", "---|".repeat(CASES.len()));
    for (i, row) in ROWS.iter().enumerate() {
        let mut line = format!("| {} |", row.label);
        for case in 0..CASES.len() {
            let ((mean, std, util), (m, s, u)) = (measured[&(i, case)], row.expected[case]);
            let share = if util < 0.9995 { format!(" ({util:.3})") } else { String::new() };
            line += &format!(" {mean:.0}/{std:.0}{share}");
            if m > 0.0 {
                let miss = (mean - m).abs() > 5.0 || (std / s - 1.0).abs() > 0.25 || (util - u).abs() > 0.01;
                misses += u32::from(miss);
                if miss {
                    line += &format!(" [{m:.0}/{s:.0} {u:.3}]");
                }
            }
            line += " |";
        }
        println!("{line}");
    }
    println!("{misses} cells of {} beyond 5 packets, 25 % or 0.01; expected in brackets", 11 * CASES.len());
}

/// The result of one run of the scenario `text`.
fn result(text: &str, aqm: &str, seed: u64) -> aqumen_result::RunResult {
    let scenario = Scenario::parse(text, "inline").unwrap();
    let plan = scenario.plan(seed, Some(&scenario.aqm(aqm).unwrap())).unwrap();
    run(&plan, Options::default(), &mut |_| true).unwrap()
}

/// Mean figures over three seeds in a window of the scenario `text`.
fn over_seeds(text: &str, aqm: &str, window: &str) -> Figures {
    let of = |seed| {
        let link = &result(text, aqm, seed).links["bottleneck"][window];
        (link.queue_mean_pkts, link.queue_std_pkts, link.utilization.unwrap())
    };
    mean(&[1, 2, 3].map(of))
}

fn paper_seeds(row: &str, case: &str) -> (Figures, Figures) {
    let row = ROWS.iter().find(|known| known.label == row).unwrap();
    let process = CASES.iter().position(|known| known.name == case).unwrap();
    let seeds = [1, 2, 3].map(|seed| figures(&CASES[process], row.aqm, row.knows, seed, "steady"));
    (mean(&seeds), row.expected[process])
}

#[test]
fn a_part_of_the_table_comes_out() {
    // Over seeds the mean queue of these cells strays by 0.3 to 1.5 packets, its deviation by 4 to 9 %, so that three
    // of them leave 1 packet and 5 %: 5 packets, 25 % and 0.01 are the bounds of the whole table.
    for (row, case) in [
        ("ARM-PFC B, default", "E1"),
        ("ARM-PFC B, default", "E4"),
        ("ARM-PFC AD3, Psi .95, h 7", "E1"),
        ("ARM-PFC AD3, Psi .95, h 7", "E6l"),
        ("STPI", "E1"),
        ("STPI", "E6s"),
        ("PAQM", "N50"),
        ("AQM-MO", "E1"),
        ("PI x 1000", "E1"),
    ] {
        let ((mean, std, util), (m, s, u)) = paper_seeds(row, case);
        assert!((mean - m).abs() <= 5.0, "{row} {case}: mean {mean}, expected {m}");
        assert!((std / s - 1.0).abs() <= 0.25, "{row} {case}: deviation {std}, expected {s}");
        assert!((util - u).abs() <= 0.01, "{row} {case}: utilisation {util}, expected {u}");
    }
}

#[test]
fn what_the_arm_pfc_paper_prints_for_pi_does_not_regulate_and_a_thousand_times_it_does() {
    let (queue, _, _) = figures(&CASES[0], "pi-printed", Knows::Nominal, 1, "steady");
    assert!(queue > 270.0, "{queue} of 300");
    let (queue, _, _) = figures(&CASES[0], "pi-x1000", Knows::Nominal, 1, "steady");
    assert!((queue - 100.0).abs() < 5.0, "{queue}");
}

#[test]
fn self_tuned_laws_hold_the_target_that_they_are_given() {
    for aqm in ["st-arm-pfc", "st-aqm-mo", "arm-pfc-adaptive", "stpi:target_delay=100ms"] {
        // 100 ms of E1's 1000 packets/s are 100 packets.
        let (queue, _, util) = figures(&CASES[0], aqm, Knows::Nominal, 1, "steady");
        assert!((queue - 100.0).abs() < 5.0 && util > 0.995, "{aqm}: {queue} {util}");
    }
}

#[test]
fn arm_pfc_identified_online_holds_the_network_that_it_knows_and_loses_the_others() {
    // Ten seeds: 98.9 +- 17.8 on E1, and 43.2 on E6l, whose round trip is longer than the regression looks back.
    let (queue, std, util) = figures(&CASES[0], "arm-pfc-adaptive:method=AD2", Knows::Nominal, 1, "steady");
    assert!((queue - 100.0).abs() < 6.0 && std < 25.0 && util > 0.995, "{queue} {std} {util}");
    let (queue, _, util) = figures(&CASES[7], "arm-pfc-adaptive:method=AD2", Knows::Nominal, 1, "steady");
    assert!(queue < 70.0 && util < 0.9, "{queue} {util}");
}

/// The AAQM paper's link, 10 Mbit/s of 1282 B, 100 packets of buffer, and 20 flows whose round trips are
/// drawn uniformly from 40 to 200 ms. (A delay drawn on each side makes the extremes rare, and few short
/// round trips cost utilisation.)
const AAQM_LINK: &str = r#"
name = "aaqm"
duration = "60s"
aqm = "aaqm"
[topology]
preset = "dumbbell"
[topology.bottleneck]
rate = "10Mbit"
delay = "5ms"
buffer = "100pkt"
[topology.access]
rate = "100Mbit"
[[flows]]
name = "ftp"
count = 20
rtt = ["40ms", "200ms"]
start = ["0s", "1s"]
transport = { preset = "ns2", ecn = true, packet = "1282B", ack = "40B", receive_window = "1000pkt", send_overhead = "500us" }
[nominal]
capacity = "10Mbit"
flows = 20
base_rtt = "120ms"
target = "25pkt"
packet = "1282B"
"#;

/// The self-tuning paper's network at a fortieth of its size, long-lived flows alone: an eighth
/// of the capacity for a while.
const STEP: &str = r#"
name = "step"
duration = "220s"
aqm = "stpi"
[topology]
preset = "dumbbell"
[topology.bottleneck]
rate = "15550kbit"
delay = "5ms"
buffer = "100pkt"
[topology.access]
rate = "100Mbit"
delay = ["7500us", "60ms"]
[[flows]]
name = "ftp"
count = 25
start = ["0s", "1s"]
transport = { preset = "ns2", ecn = true, packet = "500B", ack = "40B", receive_window = "1000pkt", send_overhead = "100us" }
[[events]]
at = "60s"
name = "narrow"
link = "bottleneck"
capacity = "1943750bit"
[[events]]
at = "140s"
name = "wide"
link = "bottleneck"
capacity = "15550kbit"
[nominal]
capacity = "15550kbit"
flows = 25
base_rtt = "145ms"
target = "20pkt"
packet = "500B"
[windows]
before = ["20s", "60s"]
during = ["90s", "140s"]
after = ["170s", "220s"]
"#;

#[test]
fn aaqm_as_printed_starves_the_link_and_as_recommended_fills_nine_tenths() {
    // Over thirty seeds the utilisation is 0.890 +- 0.009 (recommended), over ten 0.107 +- 0.004 (printed).
    let (_, _, printed) = over_seeds(AAQM_LINK, "aaqm-literal", "steady");
    assert!(printed < 0.5, "{printed}");
    let (queue, _, recommended) = over_seeds(AAQM_LINK, "aaqm", "steady");
    assert!((0.88..0.93).contains(&recommended), "{recommended}");
    assert!(queue < 15.0, "{queue}");
    // Its queue rarely comes near the threshold function, at 95 of 100 packets.
    let (_, _, with) = over_seeds(AAQM_LINK, "aaqm:threshold=0.95", "steady");
    assert!((with - recommended).abs() < 0.02, "{with} {recommended}");
}

#[test]
fn the_threshold_function_keeps_a_plain_queue_from_overflowing() {
    let lost = |aqm| {
        let result = result(AAQM_LINK, aqm, 1);
        let link = &result.links["bottleneck"]["steady"];
        (link.overflow_dropped_pkts, link.marked_pkts, link.queue_mean_pkts)
    };
    let (overflows, marked, _) = lost("droptail");
    assert!(overflows > 100 && marked == 0, "{overflows} {marked}");
    let (overflows, marked, queue) = lost("droptail:threshold=0.25");
    assert!(overflows == 0 && marked > 100, "{overflows} {marked}");
    // F is the only signal: the queue swings about the threshold, and cannot stay above it for long.
    assert!((10.0..40.0).contains(&queue), "{queue}");
    // At half time another threshold: the queue moves.
    let result = result(AAQM_LINK, "droptail:threshold=0.25,threshold_other=0.6,threshold_from=30s", 1);
    let series = &result.series["bottleneck"];
    let half = |from: f64| {
        let at = series.t_s.iter().zip(&series.queue_pkts).filter(|(t, _)| (from..from + 20.0).contains(*t));
        let (n, sum) = at.fold((0.0, 0.0), |(n, sum), (_, queue)| (n + 1.0, sum + queue));
        sum / n
    };
    assert!(half(40.0) > half(10.0) + 15.0, "{} {}", half(10.0), half(40.0));
}

#[test]
fn stpi_holds_its_target_through_an_eighth_of_the_capacity_and_a_fixed_pi_does_not() {
    // Buffer 100, target 20. Over seeds STPI's mean strays by 1.5 packets.
    for window in ["before", "during", "after"] {
        let (queue, _, _) = over_seeds(STEP, "stpi", window);
        assert!((queue - 20.0).abs() < 5.0, "{window}: {queue}");
    }
    let (narrow, _, _) = over_seeds(STEP, "pi", "during");
    let (_, _, wide) = over_seeds(STEP, "pi", "after");
    assert!(narrow > 60.0 && wide < 0.6, "{narrow} {wide}");
}

/// A fortieth of the self-tuning paper's network, the flows of one direction alone: a target of
/// 5 ms, round trips of 145 ms.
const SHORT_TARGET: &str = r#"
name = "short-target"
duration = "300s"
[topology]
preset = "dumbbell"
bottleneck = { rate = "15550kbit", delay = "10ms", buffer = "100pkt" }
access = { rate = "1Gbit" }
[[flows]]
name = "ftp"
count = 25
start = ["0s", "1s"]
rtt = ["40ms", "250ms"]
transport = { preset = "ns2", ecn = true, packet = "500B", receive_window = "1000pkt", send_overhead = "128us" }
[windows]
late = ["150s", "300s"]
[nominal]
base_rtt = "145ms"
target = "20pkt"
"#;

#[test]
fn stred_falls_silent_where_its_estimate_of_the_load_does_not_wait_for_its_average() {
    let ratios = |aqm: &str, seed: u64| {
        let link = &result(SHORT_TARGET, aqm, seed).links["bottleneck"]["late"];
        let signalled = link.mark_ratio.unwrap() + link.early_drop_ratio.unwrap();
        (signalled, link.overflow_drop_ratio.unwrap())
    };
    for seed in [1, 2, 3] {
        // The paper's 10 s beside an average of 105: p falls to 0, and the buffer's end is all that loses packets.
        let (signalled, lost) = ratios("stred:patient=false", seed);
        assert!(signalled < 2e-4 && lost > 4e-3, "seed {seed}: {signalled} {lost}");
        // The same RED knows the network, or waits: it signals, and the buffer hardly ever fills.
        for aqm in ["stred:patient=false,tau_c=1e6s,tau_l=1e6s", "stred"] {
            let (signalled, lost) = ratios(aqm, seed);
            assert!(signalled > 2e-3 && lost < 2.5e-3, "{aqm}, seed {seed}: {signalled} {lost}");
        }
    }
}
