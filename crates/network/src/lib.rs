//! Elements of a network: queues with transmitters, media, losses on the wire, and packet traces.
//!
//! Nothing here has a clock. The host passes the time with each call, simulated or real, in nanoseconds from a zero of
//! its choice; it never goes back. Packets are the host's: this crate sees as much of them as [`WirePacket`] shows.
//!
//! - [`Link`]: one link of a plan, for hosts without a simulator;
//! - [`port`]: the queue and transmitter of a link, for a host that has its own events;
//! - [`measurement`]: a link's metrics by measurement window; [`aqm_report`]: the AQM that it had;
//! - [`channel`]: media whose rate varies by a law of their own, such as Wi-Fi or LTE;
//! - [`Losses`]: random losses, bit errors and loss bursts on the wire;
//! - [`Receptions`]: delay, jitter and losses at the receivers of transports other than TCP;
//! - [`Trace`]: the packets that cross links, as a capture.

mod aqm_report;
pub mod channel;
mod error;
mod link;
mod loss;
pub mod measurement;
mod packet;
pub mod port;
mod receptions;
mod ring;
mod trace;
mod transmitter;

pub use aqm_report::{aqm_report, named_aqm_report};
pub use error::Error;
pub use link::{Fate, Link};
pub use loss::Losses;
pub use measurement::LinkMeasurement;
pub use packet::{Identities, Identity, WirePacket};
pub use receptions::Receptions;
pub use trace::Trace;
