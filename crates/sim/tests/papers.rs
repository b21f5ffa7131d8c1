//! The papers' controllers in the packet engine: what each holds, and where a paper's words fail.
//!
//! `cargo test --release -p aqumen-sim --test papers -- --ignored --nocapture` prints the whole table of `docs/aqms/papers.md`,
//! measured beside expected.

mod common;

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
    Case { name: "N50", file: "exp3-n50", base_rtt: "200ms", flows: "50", capacity: "8Mbit" },
    Case { name: "N200", file: "exp3-n200", base_rtt: "200ms", flows: "200", capacity: "8Mbit" },
    Case { name: "E4", file: "exp4", base_rtt: "200ms", flows: "300", capacity: "10Mbit" },
    Case { name: "E5", file: "exp5", base_rtt: "200ms", flows: "120", capacity: "10Mbit" },
    Case { name: "E6s", file: "exp6-small", base_rtt: "28ms", flows: "100", capacity: "10Mbit" },
    Case { name: "E6l", file: "exp6-large", base_rtt: "320ms", flows: "100", capacity: "10Mbit" },
];

/// What a row's AQM is told of the scenario, beside the paper's nominal network.
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
const ROWS: [Row; 14] = [
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
    Row { label: "AAQM", aqm: "aaqm", knows: Knows::Nominal, expected: [
        (11.0, 15.0, 0.918), (10.0, 17.0, 0.910), (11.0, 14.0, 0.887), (13.0, 19.0, 0.923),
        (7.0, 8.0, 0.915), (9.0, 16.0, 0.904), (75.0, 33.0, 0.973), (12.0, 17.0, 0.867)] },
    Row { label: "PI x 1000", aqm: "pi-x1000", knows: Knows::Nominal, expected: [
        (100.0, 15.0, FULL), (100.0, 25.0, FULL), (99.0, 21.0, FULL), (100.0, 15.0, FULL),
        (100.0, 17.0, FULL), (100.0, 26.0, FULL), (100.0, 11.0, FULL), (97.0, 44.0, FULL)] },
    Row { label: "PI, Hollot", aqm: "pi:crossover=hollot", knows: Knows::Scenario, expected: [
        (89.0, 53.0, FULL), (84.0, 61.0, FULL), (100.0, 17.0, FULL), (82.0, 60.0, FULL),
        (81.0, 62.0, FULL), (99.0, 45.0, FULL), (87.0, 29.0, FULL), (100.0, 23.0, FULL)] },
    // The rest has no trial to compare with.
    Row { label: "STRED", aqm: "stred", knows: Knows::RoundTrip, expected: [(0.0, 0.0, 0.0); 8] },
    Row { label: "ST-ARM-PFC", aqm: "st-arm-pfc", knows: Knows::RoundTrip, expected: [(0.0, 0.0, 0.0); 8] },
    Row { label: "ST-AQM-MO", aqm: "st-aqm-mo", knows: Knows::RoundTrip, expected: [(0.0, 0.0, 0.0); 8] },
];

/// Figures of one run of `case` with `aqm` in the window `window`.
fn figures(case: &Case, aqm: &str, knows: Knows, seed: u64, window: &str) -> Figures {
    let file = format!("{}/../../experiments/arm-pfc/{}.toml", env!("CARGO_MANIFEST_DIR"), case.file);
    let told: &[(&str, &str)] = match knows {
        Knows::Nominal => &[],
        Knows::RoundTrip => &[("nominal.base_rtt", case.base_rtt)],
        Knows::Scenario => &[
            ("nominal.base_rtt", case.base_rtt),
            ("nominal.flows", case.flows),
            ("nominal.capacity", case.capacity),
        ],
    };
    let scenario = Scenario::load(file, told).unwrap();
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
#[ignore = "the whole table: 14 AQMs, 8 scenarios, 10 seeds"]
fn the_table() {
    let cells: Vec<(usize, usize)> = (0..ROWS.len()).flat_map(|row| (0..CASES.len()).map(move |case| (row, case))).collect();
    let (next, measured) = (Mutex::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let mut place = next.lock().unwrap();
                    let Some(&(row, case)) = cells.get(*place) else { return };
                    *place += 1;
                    drop(place);
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
