//! What can be said of TCP under active queue management without simulating a packet.
//!
//! - [`mmpp`]: bursty sources before a finite buffer, solved exactly; sources fitted to captures.

#![forbid(unsafe_code)]

pub mod mmpp;
