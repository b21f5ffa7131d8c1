//! What an application hands over at one end of a connection, and what comes out at the other.

use aqumen_units::Instant;

/// What an application hands over: a datagram, a frame, a part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Size (bytes).
    pub bytes: u32,
    /// Number of the message, counted by the application.
    pub number: u32,
    /// When the application made it.
    pub created_at: Instant,
}

/// A whole message has reached the application of the sink end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The message.
    pub message: Message,
    /// When its last part could be handed over.
    pub complete_at: Instant,
    /// How much of it arrived (bytes): all, but for transports that conceal losses.
    pub bytes: u32,
}
