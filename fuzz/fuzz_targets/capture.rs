//! Arbitrary bytes as a capture: replayed in full with every packet in the books, or refused in one line.
#![no_main]

use std::sync::LazyLock;

use aqumen_replay::{Setup, replay_bytes};
use aqumen_scenario::replay::Settings;
use aqumen_scenario::{AqmSpec, RawValue};
use libfuzzer_sys::fuzz_target;

static QUEUE: LazyLock<(Setup, AqmSpec)> = LazyLock::new(|| {
    let settings = Settings::read_from(&[("rate".into(), RawValue::Text("10Mbit".into()))]).expect("a rate is enough");
    let rate = settings.rate.expect("given");
    let setup = Setup {
        rate,
        limit: settings.limit(),
        delay_ns: 0,
        network: settings.network(rate, 1000.0),
        overhead: 0,
        speedup: 1.0,
        interface: None,
        top: 10,
        seed: 1,
    };
    (setup, AqmSpec::builtin("fq-codel").expect("an AQM"))
});

fuzz_target!(|bytes: &[u8]| {
    let (setup, aqm) = &*QUEUE;
    match replay_bytes(bytes, setup, aqm) {
        Ok(answer) => {
            let total = answer.total.counts;
            let gone = total.departures_pkts + total.early_dropped_pkts + total.overflow_dropped_pkts;
            assert_eq!((total.arrivals_pkts, answer.link.left_pkts), (gone, 0));
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1),
    }
});
