//! Messages that an application writes at the source, and their deliveries at the sink.

use aqumen_units::Instant;

/// A unit of application data: a datagram, a frame, a part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Size (bytes).
    pub bytes: u32,
    /// Number that the application gave to the message.
    pub number: u32,
    /// Time at which the application created it.
    pub created_at: Instant,
}

/// A message delivered to the application at the sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The message.
    pub message: Message,
    /// Time at which its last part became deliverable.
    pub complete_at: Instant,
    /// Bytes of it that arrived; less than the message only for transports that conceal losses.
    pub bytes: u32,
}
