//! What packets pass on their way through a network: queues and transmitters, media with a law of
//! their own, losses, packet traces.
//!
//! Nothing here has a clock. The host says what the time is with each call, simulated or real, in nanoseconds
//! from a zero of its choice, and never less than before. What a packet is the host knows alone: it shows as
//! much of it as [`Carried`] asks.
//!
//! - [`Link`]: a link of a plan by itself, for hosts without a simulator;
//! - [`port`]: the queue and transmitter at its head, for a host that has events of its own;
//! - [`measured`]: what a link's meter saw, by windows of measurement; [`aqm_report`]: which AQM it had;
//! - [`channel`]: what a transmitter does when its link is not a wire of given rates;
//! - [`Losses`]: packets lost on the wire at random, by bit errors, in bursts;
//! - [`Receptions`]: what packets and messages of transports other than TCP were like at their receivers;
//! - [`Trace`]: the packets that cross links, as a capture.

pub mod channel;
mod error;
mod in_force;
mod link;
mod loss;
pub mod measured;
mod packet;
pub mod port;
mod receptions;
mod ring;
mod trace;
mod transmitter;

pub use error::Error;
pub use in_force::{aqm_report, report_of};
pub use link::{Fate, Link};
pub use loss::Losses;
pub use measured::LinkSeen;
pub use packet::{Carried, Identities, Identity};
pub use receptions::Receptions;
pub use trace::Trace;
