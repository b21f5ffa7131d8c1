//! A replay whose answer must have equal bits on every machine, printed as JSON. `scripts/wasm` runs it natively and in
//! WebAssembly, where there is no clock, no thread and no disk.

use aqumen_replay::{Setup, replay_bytes};
use aqumen_scenario::replay::Settings;
use aqumen_scenario::{AqmSpec, RawValue};

const CAPTURE: &[u8] = include_bytes!("../../../examples/captures/home.pcap");

fn main() {
    let settings =
        [("rate", "5Mbit"), ("buffer", "100pkt")].map(|(key, value)| (key.into(), RawValue::Text(value.into())));
    let settings = Settings::read_from(&settings).expect("the settings are sound");
    let rate = settings.rate.expect("it is given");
    let setup = Setup {
        rate,
        limit: settings.limit(),
        delay_ns: 0,
        network: settings.network(rate, 1000.0),
        overhead: 0,
        speedup: 1.0,
        interface: None,
        top: 5,
        seed: 1,
    };
    let answer = replay_bytes(CAPTURE, &setup, &AqmSpec::builtin("pi2").expect("there is such an AQM"));
    show(serde_json::to_string(&answer.expect("the capture is sound")).expect("an answer is JSON"));
}

/// Prints `text`, and leaves it in memory between marks: that is where a host finds it that gives a module no output.
fn show(text: String) {
    println!("{text}");
    let parts = ["\u{1}", "BEGIN", "\u{1}", &text, "\u{1}", "END", "\u{1}"];
    std::mem::forget(parts.concat());
}
