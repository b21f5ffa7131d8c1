//! SCTP (RFC 9260): messages over several streams, congestion control in bytes.
//!
//! What is implemented: setting up the association (four messages, two round trips); fragmentation and reassembly;
//! ordered delivery in each stream, without waiting for other streams; selective acknowledgements, delayed; slow start,
//! congestion avoidance, fast retransmit and fast recovery (section 7.2); Max.Burst; the retransmission timer (6.3);
//! the receiver window; ECN as in RFC 4960 appendix A, which RFC 9260 leaves to a document of its own.
//!
//! Numbers of chunks (TSNs) begin at 1 and do not wrap: one association carries 2^32 - 3 chunks. "Chunk bytes" are the
//! user data and the DATA chunk header, what the congestion window, the flight and the receiver window count.
//!
//! Deviations:
//! - One DATA chunk a packet: small messages are not bundled, nor data with COOKIE ECHO. An experiment about queues
//!   sends full packets.
//! - One path, no heartbeats, no shutdown, no limit on retransmissions: a simulated peer does not die.
//! - The receiver never discards what it has acknowledged (no reneging), so an acknowledged gap stays so.
//! - A SACK has at most ten gap ack blocks, the five lowest and the five highest; the sender adds up what it learns.
//! - Reporting a reaction to a mark (CWR) costs no bytes, chunks are not padded to four, and a message may be empty.
//! - A message goes to the stream that its number gives, modulo the number of streams; users of sockets choose freely.

mod chunks;
mod config;
mod congestion;
mod rto;
mod sink;
mod source;

pub use config::{Recovery, SctpConfig};
pub use sink::SctpSink;
pub use source::SctpSource;

use crate::Message;

/// The header of a DATA chunk (bytes).
pub const CHUNK_HEADER: u16 = 16;
/// Most gap ack blocks of a [`Sack`].
const BLOCKS: usize = 10;

/// A DATA chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Transmission sequence number.
    pub tsn: u32,
    /// Number of the message in its stream, from 0.
    pub ssn: u32,
    /// The stream.
    pub stream: u16,
    /// The message.
    pub message: Message,
    /// Where in the message this chunk begins (bytes).
    pub offset: u32,
    /// User data (bytes).
    pub payload: u16,
    /// Congestion window reduced: the sender has reacted to the mark reported for this TSN.
    pub cwr: Option<u32>,
}

impl Data {
    /// Chunk bytes.
    fn bytes(&self) -> u32 {
        u32::from(self.payload) + u32::from(CHUNK_HEADER)
    }
}

/// A selective acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sack {
    /// Every chunk up to this TSN has arrived.
    pub cumulative: u32,
    /// What the receiver still takes beyond what it has (chunk bytes).
    pub window: u32,
    /// The lowest TSN that arrived with a mark since the sender last reacted (an ECNE chunk beside the SACK).
    pub marked: Option<u32>,
    blocks: [(u16, u16); BLOCKS],
    len: u8,
}

impl Sack {
    /// One without gap ack blocks or marks.
    pub const fn new(cumulative: u32, window: u32) -> Self {
        Sack { cumulative, window, marked: None, blocks: [(0, 0); BLOCKS], len: 0 }
    }

    /// Adds a gap ack block: the chunks from `cumulative + first` to `cumulative + last` have arrived (RFC 9260 section
    /// 3.3.4). Ignored when there is no room.
    pub fn push(&mut self, first: u16, last: u16) {
        if let Some(slot) = self.blocks.get_mut(usize::from(self.len)) {
            *slot = (first, last);
            self.len += 1;
        }
    }

    /// The gap ack blocks, as offsets of their first and last TSN from `cumulative`.
    pub fn blocks(&self) -> &[(u16, u16)] {
        &self.blocks[..usize::from(self.len)]
    }
}

/// The messages that set up an association (RFC 9260 section 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setup {
    /// From the source.
    Init,
    /// The answer; it carries the state cookie.
    InitAck,
    /// From the source: the state cookie again.
    CookieEcho,
    /// The answer: the association is there.
    CookieAck,
}

impl Setup {
    /// Size of its chunk (bytes), with a state cookie of 100 bytes.
    pub const fn bytes(self) -> u16 {
        match self {
            Setup::Init => 20,
            Setup::InitAck => 124,
            Setup::CookieEcho => 104,
            Setup::CookieAck => 4,
        }
    }
}
