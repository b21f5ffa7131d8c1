//! The laboratory: the kernel's own TCP over the links of a plan, in network namespaces that end with the program.
//!
//! - `testbed`: namespaces of a run, their devices, addresses and routes;
//! - `network`: the plan's links in virtual time; `forwarder`: packets between the devices and the network; `gso`,
//!   `ip`: super-packets, headers;
//! - `kernel`: requirements of a plan on the kernel; `hosts`: its sockets, endpoints of other transports, and
//!   applications;
//! - `capacity`, `cpu_latency`: rates that the machine carries, and its sleep;
//! - `command`, `run`, `report`: `aqumend run` and its result.

pub mod capacity;
pub(crate) mod command;
pub(crate) mod cpu_latency;
pub mod forwarder;
pub(crate) mod gso;
pub(crate) mod hosts;
pub(crate) mod ip;
pub(crate) mod kernel;
pub mod network;
pub mod report;
pub mod run;
pub mod testbed;

/// Plan of a dumbbell with a bottleneck of 8 Mbit/s, 20 ms and 50 packets, without an AQM. `changes`: keys of the
/// scenario with other values; `tables`: its flows, and what else it has.
#[cfg(test)]
pub(crate) fn dumbbell(changes: &[(&str, &str)], tables: &str) -> aqumen_scenario::Plan {
    const HEAD: &str = "name = \"dumbbell\"\nduration = \"3s\"\naqm = \"droptail\"\n[topology]\npreset = \"dumbbell\"\n\
         bottleneck = { rate = \"8Mbit\", delay = \"20ms\", buffer = \"50pkt\" }\n\
         access = { rate = \"80Mbit\", delay = \"5ms\" }\n";
    let text = format!("{HEAD}{tables}");
    let scenario = aqumen_scenario::Scenario::from_bytes(text.as_bytes(), "dumbbell.toml", changes);
    scenario.unwrap().plan(1, None).unwrap()
}
