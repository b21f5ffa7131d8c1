//! Aqumen on Linux: the program `aqumend`.
//!
//! - `cli` is the command line, `error` what goes wrong, with the exit code;
//! - `netlink` talks to the kernel about links, addresses, routes and queueing disciplines;
//! - `attach` (production) keeps a kernel shaper's queue by a marker at its egress; `status`, `detach`,
//!   `top` and `report` belong to it;
//! - `lab` is the laboratory: namespaces, TUN devices, the links of a plan in virtual time, the kernel's TCP over them;
//! - `link` (laboratory) is a link in user space between two TUN devices.
//!
//! Laboratory traffic never leaves network namespaces that the program made itself.

#![cfg(target_os = "linux")]
// What needs `unsafe` is system calls that no safe wrapper has; each place says why it holds.
#![deny(unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]
#![allow(unsafe_code)]

mod attach;
mod cli;
#[cfg(test)]
#[path = "../tests/common/mod.rs"]
mod common;
mod detach;
mod error;
pub mod lab;
mod link;
pub mod netlink;
mod report;
mod status;
mod telemetry;
mod top;

pub use cli::main;
pub(crate) use error::shown;
pub use error::{Failure, Tried};
