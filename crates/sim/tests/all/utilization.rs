//! Utilization: bits sent in a window over the capacity integrated over it, of any link and any window a share.

use aqumen_result::RunResult;
use aqumen_scenario::Scenario;
use aqumen_sim::{Options, run};
use proptest::prelude::*;

/// Datagrams of so many bytes at so many bits a second over one link, which `line` describes.
fn result(line: &str, bytes: u32, bps: u32, windows: &[(f64, f64)], more: &str) -> RunResult {
    let windows: String = (windows.iter().enumerate())
        .map(|(k, (from, until))| format!("w{k} = [\"{from}ms\", \"{until}ms\"]\n"))
        .collect();
    let text = format!(
        "name = \"t\"\nduration = \"300ms\"\naqm = \"droptail\"\n[topology]\nnodes = [\"a\", \"b\"]\n\
         [[topology.links]]\nname = \"l\"\nfrom = \"a\"\nto = \"b\"\n{line}\ndelay = \"0s\"\nbuffer = \"50pkt\"\nrecord = true\n\
         [[flows]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\n\
         traffic = {{ kind = \"cbr\", rate = \"{bps}bit\", packet = \"{bytes}B\" }}\n\
         [[topology.links]]\nname = \"back\"\nfrom = \"b\"\nto = \"a\"\nrate = \"1Gbit\"\ndelay = \"0s\"\nbuffer = \"50pkt\"\n\
         {more}[windows]\n{windows}"
    );
    let plan =
        Scenario::parse(&text, "t.toml").unwrap_or_else(|error| panic!("{error}\n{text}")).plan(1, None).unwrap();
    run(&plan, Options::default(), &mut |_| true).unwrap()
}

fn utilization(result: &RunResult, window: usize) -> f64 {
    result.links["l"][&format!("w{window}")].utilization.unwrap()
}

#[test]
fn a_packet_in_service_counts_in_a_window_as_far_as_it_was_sent_there() {
    // 1000 bytes at 8 Mbit/s take 1 ms; one each 10 ms.
    let windows = [(10.5, 11.5), (10.2, 10.7), (9.75, 10.25), (2.0, 9.0), (10.0, 20.0)];
    let seen = result("rate = \"8Mbit\"", 972, 777_600, &windows, "");
    for (k, expected) in [0.5, 1.0, 0.5, 0.0, 0.1].into_iter().enumerate() {
        assert!((utilization(&seen, k) - expected).abs() < 1e-12, "{k}: {}", utilization(&seen, k));
    }
}

#[test]
fn a_busy_link_is_never_busier_than_all_the_time() {
    // From 8 to 0.8 Mbit/s in the middle of a packet of 1 ms.
    let windows = [(100.4, 100.9), (100.4, 100.5), (100.0, 101.0), (99.0, 150.0), (0.0, 300.0)];
    let line = "rate = { steps = [[\"0s\", \"8Mbit\"], [\"100.4ms\", \"0.8Mbit\"]] }";
    let seen = result(line, 972, 9_000_000, &windows, "");
    for (k, window) in windows.iter().enumerate() {
        assert!((0.99..=1.0).contains(&utilization(&seen, k)), "{window:?}: {}", utilization(&seen, k));
    }
    // 5.12 ns are 5.
    let seen = result("rate = \"100Gbit\"", 64, 4_000_000_000, &[(0.0, 0.001)], "");
    assert!(utilization(&seen, 0) <= 1.0);
}

/// Links of each kind.
fn line() -> impl Strategy<Value = String> {
    let rate = prop_oneof![Just(100u32), Just(800), 1..20_000u32];
    let steps = prop::collection::vec((1..300u32, rate.clone()), 0..4).prop_map(|mut steps| {
        steps.sort();
        steps.dedup_by_key(|step| step.0);
        let steps: String = steps.iter().map(|(at, kbps)| format!(", [\"{at}ms\", \"{kbps}kbit\"]")).collect();
        format!("rate = {{ steps = [[\"0s\", \"4Mbit\"]{steps}] }}")
    });
    let media = prop::sample::select(vec![
        "channel = { model = \"wifi\", contenders = 2, spread = 1.5, mcs = 4.0 }",
        "channel = { model = \"wimax\", share = 0.5 }",
        "channel = { model = \"umts\" }",
        "channel = { model = \"umts\", dch = \"384kbit\" }",
        "channel = { model = \"lte\", share = 0.3, handover_interval = \"100ms\" }",
        "channel = { model = \"shared\", rate = \"20Mbit\", neighbours = 3, mean_on = \"20ms\" }",
    ]);
    prop_oneof![2 => rate.prop_map(|kbps| format!("rate = \"{kbps}kbit\"")), 3 => steps, 3 => media.prop_map(str::to_string)]
}

fn windows() -> impl Strategy<Value = Vec<(f64, f64)>> {
    let lengths = prop_oneof![1..100u32, 1..100_000u32];
    // Microseconds.
    let window = (0..299_000u32, lengths).prop_map(|(from, length)| (from, (from + length).min(300_000)));
    prop::collection::vec(window.prop_map(|(from, until)| (f64::from(from) / 1e3, f64::from(until) / 1e3)), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn utilization_is_a_share_whatever_the_link_and_the_window(
        line in line(),
        bytes in 40..1500u32,
        bps in prop_oneof![100_000..1_000_000u32, 1_000_000..40_000_000u32],
        windows in windows(),
        outage in prop::option::of((1..290u32, 1..100u32)),
    ) {
        let down = outage.map_or(String::new(), |(from, length)| {
            let event = |at: u32, state: &str| format!("[[events]]\nat = \"{at}ms\"\nlink = \"l\"\nstate = \"{state}\"\n");
            format!("{}{}", event(from, "down"), if from + length < 300 { event(from + length, "up") } else { String::new() })
        });
        let seen = result(&line, bytes, bps, &windows, &down);
        for (window, metrics) in &seen.links["l"] {
            // No capacity, no share of it.
            let share = metrics.utilization.unwrap_or(0.0);
            prop_assert!((0.0..=1.0).contains(&share), "{line} {bytes} {bps} {window}: {share} {:?}", seen.windows[window]);
        }
    }
}
