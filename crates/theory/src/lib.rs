//! What can be said of TCP under active queue management without simulating a packet.

#![forbid(unsafe_code)]

pub mod mmpp;
