//! Common helpers of the integration tests: configuration of property tests, deterministic draws, a network.

use aqumen_aqm::Network;
use aqumen_units::Rate;
use proptest::prelude::ProptestConfig;
use proptest::test_runner::RngSeed;

pub(crate) use aqumen_aqm::testing::Fixed;

/// Property tests with `cases` cases from a fixed seed. `PROPTEST_CASES` and `PROPTEST_RNG_SEED` override both.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    let from_environment = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    let given = |name| std::env::var_os(name).is_some();
    ProptestConfig {
        cases: if given("PROPTEST_CASES") { from_environment.cases } else { cases },
        rng_seed: if given("PROPTEST_RNG_SEED") { from_environment.rng_seed } else { RngSeed::Fixed(1) },
        ..from_environment
    }
}

/// 8 Mbit/s, 20 flows over 100 ms; 1000 B take a millisecond.
pub(crate) const NETWORK: Network = Network {
    capacity: Rate::from_bps(8_000_000),
    flows: 20.0,
    base_rtt_s: 0.1,
    target_pkts: 40.0,
    packet_bytes: 1000.0,
    link_rate: Rate::from_bps(8_000_000),
    buffer_pkts: 120.0,
};
