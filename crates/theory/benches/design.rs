//! Seconds of what is asked often: a design with its noise, of Reno and of senders with a response function; a map of
//! 10 000 points with theirs; a run of the fluid engine.
//!
//! `cargo bench -p aqumen-theory --bench design` prints a table, best of three. Without `--bench`
//! (as in tests) the map is small.

use std::hint::black_box;
use std::time::Instant;

use aqumen_aqm::Network;
use aqumen_scenario::{AqmChoice, PRESETS, Scenario};
use aqumen_theory::design::{OperatingConditions, analyse};
use aqumen_theory::fluid::{self, Model, Options};
use aqumen_theory::maps::{Axis, map};
use aqumen_theory::response::Sender;
use aqumen_units::Rate;

fn best(what: &str, rounds: usize, mut of: impl FnMut()) {
    let seconds = (0..rounds).map(|_| {
        let start = Instant::now();
        of();
        start.elapsed().as_secs_f64()
    });
    println!("{what:32}  {:9.2} ms", 1e3 * seconds.fold(f64::INFINITY, f64::min));
}

fn main() {
    let full = std::env::args().any(|argument| argument == "--bench");
    let (rounds, points) = if full { (3, 100) } else { (1, 4) };
    // 10 Mbit/s, 60 flows, .2 s and a queue of 100 packets: windows of 5.8.
    let capacity = Rate::from_bps(10_000_000);
    let network = Network {
        capacity,
        flows: 60.0,
        base_rtt_s: 0.2,
        target_pkts: 100.0,
        packet_bytes: 1000.0,
        link_rate: capacity,
        buffer_pkts: 300.0,
    };
    let choice = AqmChoice::builtin("pi", Vec::new(), network);
    let conditions = |sender: Sender| OperatingConditions {
        model: Model::Reno,
        flows: 60.0,
        capacity_pps: 1250.0,
        unresponsive_pps: 0.0,
        transfer_rtts: 0.0,
        base_rtt_s: 0.2,
        buffer_pkts: 300.0,
        sender,
    };
    for (preset, transport) in PRESETS {
        let known = ["ns2", "modern", "cubic", "linux", "dctcp", "prague"].contains(preset);
        if let (true, Ok(sender)) = (known, Sender::from_protocol(&transport())) {
            best(&format!("design with noise, {preset}"), rounds, || {
                assert!(black_box(analyse(&choice, &conditions(sender)).unwrap()).noise.valid);
            });
        }
    }
    let spread = |from: f64, to: f64| -> Vec<f64> {
        (0..points).map(|k| from * (to / from).powf(k as f64 / (points - 1) as f64)).collect()
    };
    let (flows, rtts) = (spread(15.0, 240.0), spread(0.1, 0.4));
    for aqm in ["pi", "red", "pie"] {
        let choice = AqmChoice::builtin(aqm, Vec::new(), network);
        best(&format!("map of {} points with noise, {aqm}", points * points), rounds, || {
            let axes = ((Axis::Flows, flows.as_slice()), (Axis::Rtt, rtts.as_slice()));
            black_box(map(&choice, &conditions(Sender::reno()), axes.0, axes.1, 2).unwrap());
        });
    }
    let path = format!("{}/../../experiments/arm-pfc/exp1.toml", env!("CARGO_MANIFEST_DIR"));
    let scenario = Scenario::load(path, &[]).unwrap();
    let spec = scenario.aqm("pi").unwrap();
    let plan = scenario.plan(1, Some(&spec)).unwrap();
    for (name, model) in [("reno", Model::Reno), ("hollot", Model::Hollot)] {
        best(&format!("fluid run, model {name}"), rounds, || {
            black_box(fluid::run(&plan, Options { model: Some(model), step_s: None }, &mut |_| true).unwrap());
        });
    }
}
