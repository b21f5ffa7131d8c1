//! The answers of the packet engine to scenario files, one JSON file each, and what each cost: `scripts/same-bits`
//! compares those of two versions, `scripts/instructions` counts the instructions.
//!
//! `answers OUT [--until T] [--aqm SPEC] [--seed N] [--set KEY=VALUE]... [--trace] FILE...`

use std::path::{Path, PathBuf};

use aqumen_scenario::Scenario;
use aqumen_sim::{Options, run};
use rustix::time::{ClockId, clock_gettime};

fn main() {
    let mut args = std::env::args().skip(1);
    let out = PathBuf::from(args.next().expect("a folder for the answers"));
    let (mut until, mut aqm, mut seed, mut traced, mut files) = (None, None, 1, false, Vec::new());
    let mut changes = Vec::new();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--until" => until = args.next(),
            "--aqm" => aqm = args.next(),
            "--seed" => seed = args.next().and_then(|seed| seed.parse().ok()).expect("a number"),
            "--set" => {
                let change = args.next().unwrap_or_default();
                let (key, value) = change.split_once('=').expect("--set takes KEY=VALUE");
                changes.push((key.to_owned(), value.to_owned()));
            }
            "--trace" => traced = true,
            _ => files.push(PathBuf::from(arg)),
        }
    }
    let changes: Vec<_> = changes.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    for file in &files {
        let scenario = Scenario::load(file, &changes).unwrap_or_else(|error| panic!("{error}"));
        answer(&out, file, scenario, until.as_deref(), aqm.as_deref(), seed, traced);
    }
}

fn answer(
    out: &Path,
    file: &Path,
    scenario: Scenario,
    until: Option<&str>,
    aqm: Option<&str>,
    seed: u64,
    traced: bool,
) {
    // One that is shorter runs to its end.
    let scenario = until.and_then(|until| scenario.until(until).ok()).unwrap_or(scenario);
    let aqm = aqm.map(|aqm| scenario.aqm(aqm).unwrap_or_else(|error| panic!("{error}")));
    let plan = scenario.plan(seed, aqm.as_ref()).unwrap_or_else(|error| panic!("{error}"));
    let mut parts = file.iter().rev().take(2).map(|part| part.to_string_lossy()).collect::<Vec<_>>();
    parts.reverse();
    let name = out.join(parts.join("-"));
    let trace = traced.then(|| name.with_extension("pcapng"));
    let begin = cpu_ns();
    let result = run(&plan, Options { trace: trace.as_deref(), ..Options::default() }, &mut |_| true);
    let took = cpu_ns() - begin;
    let result = result.unwrap_or_else(|error| panic!("{error}"));
    let packets = result.cost.bottleneck_packets;
    let json = serde_json::to_string_pretty(&result).expect("a result is JSON");
    std::fs::write(name.with_extension("json"), json).expect("the folder can be written");
    println!("{:<36}{:>12} packets{:>8.1} ns each", file.display(), packets, took / packets as f64);
}

fn cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}
