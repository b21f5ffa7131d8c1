//! Aqumen on Linux: the program `aqumend`.
//!
//! - `cli`, `arguments`, `error`: command lines, and errors with exit codes;
//! - `machine`: clock, threads, network namespaces, TUN devices;
//! - `netlink`: requests to the kernel about links, addresses, routes and queueing disciplines;
//! - `attach` (production): regulates the queue of a kernel shaper by a marker at its egress; with `telemetry`,
//!   `status`, `detach`, `top` and `report`;
//! - `lab` (laboratory): the links of a plan in virtual time, the kernel's TCP over them;
//! - `link` (laboratory): links in user space between two TUN devices.
//!
//! Traffic of `lab` never leaves network namespaces that the program itself made.

#![cfg(target_os = "linux")]
// `unsafe` is for system calls without a safe wrapper; each use says why it is sound.
#![deny(unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]
#![allow(unsafe_code)]

mod arguments;
mod attach;
mod cli;
#[cfg(test)]
#[path = "../tests/common/mod.rs"]
mod common;
mod detach;
mod error;
#[cfg(feature = "laboratory")]
pub mod lab;
#[cfg(feature = "laboratory")]
mod link;
pub mod machine;
mod netlink;
mod report;
mod status;
mod telemetry;
mod top;

pub use cli::main;
pub(crate) use error::shorten;
pub use error::{Context, Error};
