//! The laboratory: the kernel's own TCP over the links of a plan, in network namespaces that end with the program.
//!
//! - `namespace`, `tun`, `testbed`: namespaces, their devices, addresses and routes;
//! - `network`: the plan's links in virtual time; `forwarder`: packets between the devices and the network; `gso`,
//!   `ip`: super-packets, headers;
//! - `kernel`: requirements of a plan on the kernel; `hosts`: its sockets, endpoints of other transports, and
//!   applications;
//! - `capacity`, `cpu_latency`, `thread`, `clock`: the machine;
//! - `command`, `run`, `report`: `aqumend run` and its result.
//!
//! Without the feature `laboratory` only the parts that `attach` uses remain.

#![cfg_attr(not(feature = "laboratory"), allow(dead_code))]

#[cfg(feature = "laboratory")]
pub mod capacity;
pub mod clock;
#[cfg(feature = "laboratory")]
pub(crate) mod command;
#[cfg(feature = "laboratory")]
pub(crate) mod cpu_latency;
#[cfg(feature = "laboratory")]
pub mod forwarder;
#[cfg(feature = "laboratory")]
pub(crate) mod gso;
#[cfg(feature = "laboratory")]
pub(crate) mod hosts;
#[cfg(feature = "laboratory")]
pub(crate) mod ip;
#[cfg(feature = "laboratory")]
pub(crate) mod kernel;
pub(crate) mod namespace;
#[cfg(feature = "laboratory")]
pub mod network;
#[cfg(feature = "laboratory")]
pub mod report;
#[cfg(feature = "laboratory")]
pub mod run;
#[cfg(feature = "laboratory")]
pub mod testbed;
pub mod thread;
#[cfg(feature = "laboratory")]
pub mod tun;

/// Packet rate of every machine: lower demands are not measured.
pub const UNMEASURED_PPS_MAX: f64 = 20_000.0;

/// Plan of a dumbbell with a bottleneck of 8 Mbit/s, 20 ms and 50 packets, without an AQM. `changes`: keys of the
/// scenario with other values; `tables`: its flows, and what else it has.
#[cfg(all(test, feature = "laboratory"))]
pub(crate) fn dumbbell(changes: &[(&str, &str)], tables: &str) -> aqumen_scenario::Plan {
    const HEAD: &str = "name = \"dumbbell\"\nduration = \"3s\"\naqm = \"droptail\"\n[topology]\npreset = \"dumbbell\"\n\
         bottleneck = { rate = \"8Mbit\", delay = \"20ms\", buffer = \"50pkt\" }\n\
         access = { rate = \"80Mbit\", delay = \"5ms\" }\n";
    let text = format!("{HEAD}{tables}");
    let scenario = aqumen_scenario::Scenario::from_bytes(text.as_bytes(), "dumbbell.toml", changes);
    scenario.unwrap().plan(1, None).unwrap()
}
