//! UDP (RFC 768): datagrams, sent as they are written.
//!
//! A message that does not fit a packet leaves as several, back to back, and is delivered when all have arrived, in
//! whatever order; nothing is repaired, and no congestion is heeded. Packets are not ECN-capable.
//!
//! Deviation: an application's large message becomes several datagrams, each with all headers, as `Agent/UDP` of ns-2
//! and real-time applications do it, not fragments of one datagram (RFC 791), of which only the first has a UDP header.

mod sink;
mod source;

pub use sink::UdpSink;
pub use source::UdpSource;

use crate::check::{ConfigError, number};
use crate::{Config, Message};

/// The parameters of UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpConfig {
    /// Largest packet, headers included (bytes).
    pub packet_bytes: u16,
    /// Of which headers (bytes).
    pub header_bytes: u16,
}

impl UdpConfig {
    /// UDP over IPv4 over Ethernet: packets of 1500 bytes, 28 of them headers.
    pub const fn standard() -> Self {
        UdpConfig { packet_bytes: 1500, header_bytes: 28 }
    }

    /// Checks every field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        number("header_bytes", self.header_bytes, 0, 255, "0 to 255 bytes")?;
        if self.packet_bytes <= self.header_bytes {
            let range = "more than header_bytes, at most 65535 bytes";
            return Err(ConfigError { field: "packet_bytes", value: f64::from(self.packet_bytes), range });
        }
        Ok(())
    }

    /// Data in a full packet (bytes).
    pub const fn payload_bytes(&self) -> u16 {
        self.packet_bytes - self.header_bytes
    }
}

impl Config for UdpConfig {
    fn packet_bytes(&self) -> u16 {
        self.packet_bytes
    }

    fn header_bytes(&self) -> u16 {
        self.header_bytes
    }

    fn adapts(&self) -> bool {
        false
    }
}

/// A datagram: all of a message, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The message.
    pub message: Message,
    /// Where in the message this part begins (bytes).
    pub offset: u32,
    /// Its length (bytes).
    pub payload: u16,
}
