//! What can be said of TCP under active queue management without simulating a packet.
//!
//! - [`fluid`]: the nonlinear delay differential equations of windows and queues, driven by the same control laws as the
//!   packet engine;
//! - [`linear`]: the loop around its operating point: frequency response and margins with the exact delay.
//!
//! Invariant: nothing here knows packets; control laws and their parameters come from `aqumen-aqm`.

#![forbid(unsafe_code)]

mod error;
pub mod fluid;
pub mod linear;

pub use error::Error;
