//! Results of the theory as JSON, which must have the same bits on every machine. `scripts/wasm` runs this here and in
//! WebAssembly, where there is no clock, no thread and no disk.

use aqumen_scenario::{Files, Scenario};
use aqumen_theory::{engine, fluid};

const BULK: &str = include_str!("../../../experiments/arm-pfc/exp1.toml");

fn main() {
    let scenario = Scenario::parse_with(BULK, "scenario", Files::in_memory([])).expect("the scenario is sound");
    let scenario = scenario.until("10s").expect("it is longer");
    let mut answers = Vec::new();
    for aqm in ["pi", "arm-pfc", "red"] {
        let aqm = scenario.aqm(aqm).expect("there is such an AQM");
        let plan = scenario.plan(3, Some(&aqm)).expect("it fits");
        let moved = fluid::run(&plan, fluid::Options::default(), &mut |_| true).expect("nothing stops it");
        let rests = engine::run(&plan).expect("it is modelled");
        answers.extend([moved, rests].map(|result| serde_json::to_string(&result).expect("a result is JSON")));
    }
    show(format!("[{}]", answers.join(",\n")));
}

/// Prints `text`, and leaves it in memory between marks: that is where a host finds it that gives a module no output.
fn show(text: String) {
    println!("{text}");
    let parts = ["\u{1}", "BEGIN", "\u{1}", &text, "\u{1}", "END", "\u{1}"];
    std::mem::forget(parts.concat());
}
