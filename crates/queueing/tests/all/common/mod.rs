//! Common helpers of the tests of the queueing analysis.

use aqumen_queueing::Source;
use proptest::prelude::ProptestConfig;
use proptest::test_runner::RngSeed;

/// Configuration with `cases` cases from a fixed seed, so that failures are reproducible. `PROPTEST_CASES` and
/// `PROPTEST_RNG_SEED` override both.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    let from_environment = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    let given = |name| std::env::var_os(name).is_some();
    ProptestConfig {
        cases: if given("PROPTEST_CASES") { from_environment.cases } else { cases },
        rng_seed: if given("PROPTEST_RNG_SEED") { from_environment.rng_seed } else { RngSeed::Fixed(1) },
        ..from_environment
    }
}

/// Asserts that `got` is `expected` up to `relative`.
#[track_caller]
pub(crate) fn close(got: f64, expected: f64, relative: f64, what: &str) {
    assert!((got - expected).abs() <= relative * expected.abs(), "{what}: {got} is not {expected}");
}

/// Source of two states: rates in packets per second, transitions per second from the first state and back.
pub(crate) fn two_states(name: &str, first: f64, second: f64, leave: f64, back: f64) -> Source {
    Source::new(name, &[vec![-leave, leave], vec![back, -back]], &[first, second]).unwrap()
}
