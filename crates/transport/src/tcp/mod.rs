//! TCP: Reno, NewReno and SACK, with ECN, and several congestion controls.
//!
//! Sequence numbers count segments, not bytes: segment `n` is the `n`-th packet of the connection (0 is the SYN where
//! there is one). Every segment is full, except the last of a finite transfer. The congestion window is a number of
//! segments with a fraction. One connection carries up to 2^32 - 2 segments.

mod config;
mod congestion;
mod delayed_ack;
mod flight;
mod receiver;
mod reduction;
mod rto;
mod scoreboard;
mod sender;
mod wire;

pub use crate::check::ConfigError;
pub use config::{LossDetection, Quirks, Reduction, RtoFloor, TcpConfig, Variant};
pub use congestion::Congestion;
pub use receiver::Receiver;
pub use sender::{Sender, Stats};
pub use wire::{Ack, Feedback, PlainAck, PlainSegment, SackBlocks, Segment};
