//! What the tests share: how many random cases, and draws that are known beforehand.

use aqumen_aqm::Draw;
use proptest::prelude::ProptestConfig;
use proptest::test_runner::RngSeed;

/// So many cases from a fixed seed, so that a failure has a cause. `PROPTEST_CASES` and `PROPTEST_RNG_SEED` override both,
/// for long runs.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    let from_environment = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    let given = |name| std::env::var_os(name).is_some();
    ProptestConfig {
        cases: if given("PROPTEST_CASES") { from_environment.cases } else { cases },
        rng_seed: if given("PROPTEST_RNG_SEED") { from_environment.rng_seed } else { RngSeed::Fixed(1) },
        ..from_environment
    }
}

/// Draws the same number again and again.
pub(crate) struct Fixed(pub(crate) f64);

impl Draw for Fixed {
    fn uniform(&mut self) -> f64 {
        self.0
    }
}
