//! Transport protocols without input or output: the host carries segments and keeps the clock.
//!
//! [`tcp::Sender`] and [`tcp::Receiver`] are the endpoints of one TCP connection. They never read a clock, draw a
//! random number or wait. The host passes arriving segments with their times, polls for segments to send, and calls
//! back at [`tcp::Sender::next_timer`]. The other transports ([`udp`], [`rtp`], [`sctp`]) are hosted in the same way,
//! through the [`Endpoint`] interface.
//!
//! ```
//! use aqumen_transport::tcp::{Receiver, Sender, TcpConfig};
//! use aqumen_units::{Bytes, Instant, Span};
//!
//! let cfg = TcpConfig::ns2();
//! let mut sender = Sender::new(&cfg, Some(Bytes(960)));
//! let mut receiver = Receiver::new(&cfg);
//! let mut now = Instant::ZERO;
//! sender.start(&cfg, now);
//! while !sender.is_finished() {
//!     let segment = sender.poll_transmit(&cfg, now).expect("the window is open");
//!     now += Span::from_millis(50); // the way there
//!     let ack = receiver.on_segment(&cfg, now, &segment).expect("every segment is acknowledged at once");
//!     now += Span::from_millis(50); // and back
//!     sender.on_ack(&cfg, now, &ack);
//! }
//! assert_eq!(receiver.delivered_bytes(), Bytes(960));
//! ```

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod any_endpoint;
mod check;
mod config;
mod endpoint;

mod message;
mod range_set;
pub mod rtp;
pub mod sctp;
pub mod tcp;
#[cfg(test)]
mod testing;
pub mod udp;

pub use any_endpoint::AnyEndpoint;
pub use check::ConfigError;
pub use config::Config;
pub use endpoint::{Body, Endpoint, Packet, Stats};
pub use message::{Delivery, Message};
