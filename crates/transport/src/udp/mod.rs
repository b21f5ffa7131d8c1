//! UDP (RFC 768): datagrams sent as soon as they are written.
//!
//! A message larger than a packet is split into several datagrams, sent back to back, and delivered when all have
//! arrived in any order. Losses are not repaired, and the rate does not adapt to congestion. Packets are not
//! ECN-capable.
//!
//! Deviation: each part of a large message is a datagram with all headers, as in `Agent/UDP` of ns-2 and in real-time
//! applications. IP fragments (RFC 791) would carry the UDP header only in the first.

mod sink;
mod source;

pub use sink::UdpSink;
pub use source::UdpSource;

use crate::check::{ConfigError, packet_sizes};
use crate::{Config, Message};

/// The parameters of UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpConfig {
    /// Largest packet, headers included (bytes).
    pub packet_bytes: u16,
    /// Headers in a packet (bytes).
    pub header_bytes: u16,
}

impl UdpConfig {
    /// UDP over IPv4 over Ethernet: packets of 1500 bytes, 28 of them headers.
    pub const fn standard() -> Self {
        UdpConfig { packet_bytes: 1500, header_bytes: 28 }
    }

    /// Checks that every field is in its range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        packet_sizes(self.packet_bytes, self.header_bytes, 0, "0 to 255 bytes")
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

/// A datagram: a message or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The message.
    pub message: Message,
    /// Offset of this part in the message (bytes).
    pub offset: u32,
    /// Length of this part (bytes).
    pub payload: u16,
}
