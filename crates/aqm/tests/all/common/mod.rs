//! What the tests share: how many random cases, and draws that are known beforehand.

use proptest::prelude::ProptestConfig;
use proptest::test_runner::RngSeed;

pub(crate) use crate::testing::Fixed;

/// So many cases from a fixed seed, so that a failure has a cause. `PROPTEST_CASES` and `PROPTEST_RNG_SEED` override
/// both, for long runs.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    let from_environment = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    let given = |name| std::env::var_os(name).is_some();
    ProptestConfig {
        cases: if given("PROPTEST_CASES") { from_environment.cases } else { cases },
        rng_seed: if given("PROPTEST_RNG_SEED") { from_environment.rng_seed } else { RngSeed::Fixed(1) },
        ..from_environment
    }
}
