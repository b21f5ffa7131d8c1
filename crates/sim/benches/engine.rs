//! CPU time of the packet engine per packet that crosses the bottleneck, over the number of
//! flows, and its memory per flow.
//!
//! `cargo bench -p aqumen-sim --bench engine [-- [FLOWS] [--json]]`. The scenario is experiment 1 of the
//! ARM-PFC paper with PI, scaled up: a dumbbell of three hops each way, acknowledgements simulated too. Setting
//! the network up is not counted, but in `two_threads`: so many times as fast, on the clock, two threads share a run.

#[path = "../tests/all/common/mod.rs"]
mod common;

use std::time::Instant;

use aqumen_result::RunResult;
use aqumen_scenario::Plan;
use aqumen_sim::{Options, run};
use aqumen_units::{Bytes, Rate, Span};
use common::Dumbbell;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

struct Case {
    flows: u32,
    bps: u64,
    /// Long enough that slow start is a small part, and for 10 million packets and more from 10 000 flows on.
    secs: u64,
    /// Left out of the table unless it is asked for.
    extra: bool,
}

const CASES: [Case; 6] = [
    Case { flows: 120, bps: 8_000_000, secs: 1000, extra: false },
    // Short enough for an instruction-level profiler.
    Case { flows: 121, bps: 8_000_000, secs: 100, extra: true },
    Case { flows: 1_000, bps: 622_000_000, secs: 60, extra: false },
    Case { flows: 10_000, bps: 10_000_000_000, secs: 15, extra: false },
    Case { flows: 100_000, bps: 10_000_000_000, secs: 15, extra: false },
    Case { flows: 1_000_000, bps: 100_000_000_000, secs: 2, extra: false },
];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (only, json) = (args.iter().find_map(|arg| arg.parse::<u32>().ok()), args.iter().any(|arg| arg == "--json"));
    let chosen = CASES.iter().filter(|case| only.map_or(!case.extra, |flows| flows == case.flows));
    if json {
        let rows: Vec<Value> = chosen.map(measure).collect();
        println!("{}", json!({ "schema": 1, "bench": "engine", "rows": rows }));
        return;
    }
    let columns = [
        "flows",
        "packets",
        "cpu_s",
        "ns_per_packet",
        "events_per_packet",
        "utilization",
        "bytes_per_flow",
        "two_threads",
    ];
    let line = |cells: [String; 8]| println!("{}", cells.map(|cell| format!("{cell:>19}")).concat());
    line(columns.map(str::to_string));
    for row in chosen.map(measure) {
        line(columns.map(|column| match &row[column] {
            Value::Number(x) if x.is_f64() => format!("{:.3}", x.as_f64().unwrap_or_default()),
            cell => cell.to_string(),
        }));
    }
}

fn measure(case: &Case) -> Value {
    let mut dumbbell = Dumbbell::exp1("pi", case.secs);
    dumbbell.flows = case.flows;
    dumbbell.rate = Rate::from_bps(case.bps);
    // A hundred times the fair share leaves the bottleneck where it is.
    dumbbell.access_rate = Rate::from_bps((case.bps / case.flows as u64 * 100).max(10_000_000));
    dumbbell.buffer_pkts = (case.bps / 8_000 * 3 / 10).min(1_000_000) as u32;
    dumbbell.transport.send_overhead = dumbbell.rate.time_for(Bytes(500));
    let plan = dumbbell.plan();
    let before = memory("VmRSS:");
    forget_peak();
    let (result, cpu_s, wall_s) = timed(&plan, 1);
    let peak = memory("VmHWM:");
    // A run of a microsecond is all set-up.
    dumbbell.duration = Span::from_micros(1);
    let cpu_s = cpu_s - timed(&dumbbell.plan(), 1).1;
    let (shared, _, shared_s) = timed(&plan, 2);
    let all = &result.links["bottleneck"]["all"];
    let packets = all.departures_pkts;
    json!({
        "flows": case.flows,
        "bottleneck_bps": case.bps,
        "simulated_s": case.secs,
        "packets": packets,
        "cpu_s": cpu_s,
        "ns_per_packet": cpu_s * 1e9 / packets as f64,
        "events_per_packet": result.cost.events as f64 / packets as f64,
        "utilization": all.utilization,
        "queue_mean_pkts": all.queue_mean_pkts,
        "two_threads": shared.cost.threads.map(|_| wall_s / shared_s),
        "bytes_per_flow": peak.zip(before).map(|(peak, before)| peak.saturating_sub(before) / case.flows as u64),
    })
}

/// A run that so many threads may share, and what it took, seconds: CPU time of this thread, time on the clock.
fn timed(plan: &Plan, threads: usize) -> (RunResult, f64, f64) {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
    };
    let (cpu, wall) = (now(), Instant::now());
    let options = Options { threads, ..Options::default() };
    let result = run(plan, options, &mut |_| true).expect("the scenario is sound");
    (result, now() - cpu, wall.elapsed().as_secs_f64())
}

/// A figure of this process's memory, bytes; only Linux tells.
fn memory(key: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kib = status.lines().find_map(|line| line.strip_prefix(key))?.split_whitespace().next()?;
    Some(kib.parse::<u64>().ok()? * 1024)
}

/// Lets the peak of the memory start from the present.
fn forget_peak() {
    // Without it, where the system does not know it, the peak is that of an earlier and
    // smaller case: of no consequence.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}
