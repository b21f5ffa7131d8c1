//! What can be said of TCP under active queue management without simulating a packet.
//!
//! - [`fluid`]: the nonlinear delay differential equations of windows and queues, driven by the same control laws as the
//!   packet engine;
//! - [`design`]: gains, operating point, margins and warnings of an AQM at a network;
//! - [`predict`]: the theory engine: a scenario's windows at rest;
//! - [`response`]: the windows that senders of each kind hold at a share of signals;
//! - `coupled`: two queues whose signals are coupled, DualPI2;
//! - [`linear`]: the loop around its operating point: frequency response and margins with the exact delay;
//! - `window`: what Reno's mean window does under random marks, beyond the textbook;
//! - `packet_noise`: how far packets move a queue around its rest;
//! - [`maps`], [`robust`]: stability over ranges of networks, and designs that hold all over one;
//! - [`mmpp`]: bursty sources before a finite buffer, solved exactly; sources fitted to captures.
//!
//! Invariant: nothing here knows packets but the simulation beside [`mmpp`]; control laws and their parameters come from
//! `aqumen-aqm`.

#![forbid(unsafe_code)]

mod coupled;
pub mod design;
mod error;
pub mod fluid;
pub mod linear;
pub mod maps;
pub mod mmpp;
mod packet_noise;
pub mod predict;
pub mod response;
pub mod robust;
mod window;

pub use error::Error;
