//! Transport protocols without input or output: the host carries segments and keeps the clock.
//!
//! [`tcp::Sender`] and [`tcp::Receiver`] are the two ends of one TCP connection. They never read a clock, draw a random
//! number or wait: the host hands them what arrived and when, asks what to send, and calls back at
//! [`tcp::Sender::next_timer`]. The other transports ([`udp`], [`rtp`], [`sctp`]) are hosted alike, all through one
//! interface, the [`Endpoint`].
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

mod check;
mod config;
mod endpoint;
mod ends;
mod message;
pub mod rtp;
pub mod sctp;
pub mod tcp;
#[cfg(test)]
mod testing;
pub mod udp;

pub use check::ConfigError;
pub use config::Config;
pub use endpoint::{Body, Endpoint, Packet, Stats};
pub use ends::AnyEnd;
pub use message::{Delivery, Message};
