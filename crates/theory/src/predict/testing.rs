//! Groups of flows at one link, for tests.

use aqumen_aqm::Network;
use aqumen_scenario::AqmChoice;
use aqumen_units::Rate;

use super::groups::GroupClass;
use super::link::LinkPrediction;
use crate::equilibrium::response::{Law, Sender};
use crate::multi::coupled::Class;
use crate::testing::NETWORK;

pub(super) fn choice(name: &str) -> AqmChoice {
    let rate = Rate::from_bps(96_000_000);
    let network = Network {
        capacity: rate,
        link_rate: rate,
        flows: 80.0,
        base_rtt_s: 0.03,
        target_pkts: 180.0,
        buffer_pkts: 1000.0,
        ..NETWORK
    };
    crate::testing::choice(name, &[], network)
}

pub(super) fn group(number: u32, law: Law, flows: f64) -> GroupClass {
    let sender = Sender { law, proportional: true, from_flight: true, min_window: 2.0, ..Sender::reno() };
    let class = Class { flows, base_rtt_s: 0.03, sender, scalable: law == Law::Prague };
    GroupClass { number, class, ecn: true }
}

pub(super) fn idle() -> LinkPrediction {
    LinkPrediction::idle(80.0, 12_000.0, 0.03)
}
