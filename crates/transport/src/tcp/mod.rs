//! TCP: Reno, NewReno and SACK, with ECN, and a choice of congestion controls.
//!
//! Sequence numbers count segments, not bytes: segment `n` is the `n`-th packet of the connection (0 is the SYN where
//! there is one) and carries a full packet's payload, save the last of a finite transfer. The congestion window is a
//! number of segments too, with a fraction. One connection can carry 2^32 - 2 segments.

mod board;
mod config;
mod congestion;
mod flight;
mod patience;
mod receiver;
mod reduction;
mod rto;
pub(crate) mod scoreboard;
mod sender;
mod wire;

pub use crate::check::ConfigError;
pub use config::{LossDetection, Quirks, Reduction, RtoFloor, TcpConfig, Variant};
pub use congestion::Congestion;
pub use receiver::Receiver;
pub use sender::{Sender, Stats};
pub use wire::{Ack, Feedback, PlainAck, SackBlocks, Segment};
