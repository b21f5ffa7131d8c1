//! The machine: its clock, its threads, network namespaces, and TUN devices.

// Without the laboratory some of it has no user.
#![cfg_attr(not(feature = "laboratory"), allow(dead_code))]

pub mod clock;
pub(crate) mod namespace;
pub mod thread;
pub mod tun;

/// Packet rate of every machine: lower demands are not measured.
pub const UNMEASURED_PPS_MAX: f64 = 20_000.0;
