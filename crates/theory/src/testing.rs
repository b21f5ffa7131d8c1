//! The network that unit tests set out from.

use aqumen_aqm::Network;
use aqumen_aqm::registry::AnyAqm;
use aqumen_scenario::{AqmChoice, OwnedValue};
use aqumen_units::Rate;

use crate::equilibrium::response::Sender;
use crate::equilibrium::solver::OperatingConditions;
use crate::fluid::Model;

/// 1250 packets a second.
pub(crate) const NETWORK: Network = Network {
    capacity: Rate::from_bps(10_000_000),
    flows: 100.0,
    base_rtt_s: 0.2,
    target_pkts: 100.0,
    packet_bytes: 1000.0,
    link_rate: Rate::from_bps(10_000_000),
    buffer_pkts: 300.0,
};

/// Network of the tests as operating conditions.
pub(crate) const CONDITIONS: OperatingConditions = OperatingConditions {
    model: Model::Ecn,
    flows: 100.0,
    capacity_pps: 1250.0,
    unresponsive_pps: 0.0,
    transfer_rtts: 0.0,
    base_rtt_s: 0.2,
    buffer_pkts: 300.0,
    sender: Sender::reno(),
};

/// An AQM with these parameters, made for a network.
pub(crate) fn choice(name: &str, values: &[(&str, f64)], network: Network) -> AqmChoice {
    let values = values.iter().map(|(name, value)| (name.to_string(), OwnedValue::Number(*value))).collect();
    AqmChoice::builtin(name, values, network)
}

pub(crate) fn built(choice: &AqmChoice) -> AnyAqm {
    choice.build().unwrap().unwrap()
}
