//! Runs of the packet engine whose results must have equal bits on every machine, printed as JSON. `scripts/wasm` runs
//! them natively and in WebAssembly, where there is no clock, no thread and no disk: files are passed in.

use aqumen_scenario::{Files, Scenario};
use aqumen_sim::{Options, run};

const BULK: &str = include_str!("../../../experiments/arm-pfc/exp1.toml");
const MIX: &str = include_str!("../../../examples/traffic/mix.toml");
const FRAMES: &[u8] = include_bytes!("../../../examples/traces/life.txt");
/// Radio conditions, losses, an outage, SCTP and RTP.
const RADIO: &str = r#"
name = "radio"
duration = "8s"
aqm = "codel"
[topology]
preset = "dumbbell"
[topology.bottleneck]
channel = { model = "lte", share = 0.3, handover_interval = "2s" }
delay = "5ms"
buffer = "200pkt"
loss = { burst = { to_bad = 0.01, to_good = 0.3 } }
reverse = { channel = { model = "wifi", contenders = 2, spread = 1.5, mcs = 4.0 } }
[topology.access]
rate = "1Gbit"
delay = "5ms"
[[flows]]
name = "cubic"
count = 3
transport = { preset = "modern", congestion = "cubic" }
[[flows]]
name = "sctp"
transport = "sctp"
[[flows]]
name = "call"
transport = "rtp"
traffic = "voip"
[[events]]
at = "3s"
state = "down"
[[events]]
at = "4s"
state = "up"
"#;

fn main() {
    let mix = Files::in_memory([("../traces/life.txt".to_string(), FRAMES.to_vec())]);
    let runs = [(BULK, "arm-pfc", "6s"), (BULK, "fq-codel", "6s"), (MIX, "pie", "12s"), (RADIO, "codel", "7s")];
    let answers: Vec<String> = runs.iter().map(|(text, aqm, until)| answer(text, aqm, until, &mix)).collect();
    show(format!("[{}]", answers.join(",\n")));
}

fn answer(text: &str, aqm: &str, until: &str, files: &Files) -> String {
    let scenario = Scenario::parse_with(text, "scenario", files.clone()).expect("the scenario is sound");
    let scenario = scenario.until(until).expect("it is longer");
    let aqm = scenario.aqm(aqm).expect("there is such an AQM");
    let result = run(&scenario.plan(7, Some(&aqm)).expect("it fits"), Options::default(), &mut |_| true);
    serde_json::to_string(&result.expect("nothing stops it")).expect("a result is JSON")
}

/// Prints `text`, and leaves it in memory between marks: that is where a host finds it that gives a module no output.
fn show(text: String) {
    println!("{text}");
    let parts = ["\u{1}", "BEGIN", "\u{1}", &text, "\u{1}", "END", "\u{1}"];
    std::mem::forget(parts.concat());
}
