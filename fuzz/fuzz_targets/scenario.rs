//! Arbitrary bytes as a scenario file: a scenario that reads back as itself and plans or is
//! refused, or an error of one line.
#![no_main]

use aqumen_scenario::Scenario;
use libfuzzer_sys::fuzz_target;

/// Larger scenarios are read, but not planned: that would only fill memory.
const MEMORY_BYTES_MAX: u64 = 64 << 20;

fuzz_target!(|bytes: &[u8]| {
    let scenario = match Scenario::from_bytes(bytes, "f.toml", &[]) {
        Ok(scenario) => scenario,
        Err(error) => {
            assert_eq!(error.to_string().lines().count(), 1);
            return;
        }
    };
    let again = Scenario::parse(&scenario.to_toml(), "again.toml").expect("what is written reads back");
    assert_eq!(again.spec(), scenario.spec());
    if scenario.check_memory(1, MEMORY_BYTES_MAX).is_ok() {
        match scenario.plan(1, None) {
            Ok(plan) => drop(plan.to_json()),
            Err(error) => assert_eq!(error.to_string().lines().count(), 1),
        }
    }
});
