//! What packets pass on their way through a network: media with a law of their own, losses, packet traces.
//!
//! Nothing here has a clock. The host says what the time is with each call, simulated or real, in nanoseconds from a zero of its
//! choice, and never less than before. What a packet is the host knows alone: it shows as much of it as [`Carried`] asks.
//!
//! - [`channel`]: what a transmitter does when its link is not a wire of given rates;
//! - [`Losses`]: packets lost on the wire at random, by bit errors, in bursts;
//! - [`Trace`]: the packets that cross links, as a capture.

pub mod channel;
mod loss;
mod packet;
mod trace;

pub use loss::Losses;
pub use packet::Carried;
pub use trace::Trace;
