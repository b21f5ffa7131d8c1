//! SCTP (RFC 9260): messages over several streams, congestion control in bytes.
//!
//! Implemented: association setup (four messages, two round trips); fragmentation and reassembly; ordered delivery per
//! stream; delayed selective acknowledgements; slow start, congestion avoidance, fast retransmit and fast recovery
//! (section 7.2); Max.Burst; the retransmission timer (6.3); the receiver window; ECN of RFC 4960 appendix A, which RFC
//! 9260 leaves to a separate document.
//!
//! Transmission sequence numbers (TSNs) begin at 1 and do not wrap: one association carries 2^32 - 3 chunks. "Chunk
//! bytes" are user data and DATA chunk header, the unit of congestion window, flight and receiver window.
//!
//! Deviations:
//! - One DATA chunk per packet: neither small messages nor data with COOKIE ECHO are bundled. Experiments about queues
//!   send full packets.
//! - One path, no heartbeats, no shutdown, no limit on retransmissions: simulated peers do not fail.
//! - The receiver never discards acknowledged data (no reneging).
//! - A SACK has at most ten gap ack blocks, the five lowest and the five highest; the sender remembers acknowledged
//!   chunks.
//! - A CWR chunk takes no bytes, chunks are not padded to multiples of four, and a message may be empty.
//! - The message number modulo the number of streams selects the stream; applications on sockets choose freely.

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

/// Size of the DATA chunk header (bytes).
pub const CHUNK_HEADER: u16 = 16;
/// Most gap ack blocks of a [`Sack`].
const BLOCKS: usize = 10;

/// A DATA chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Transmission sequence number.
    pub tsn: u32,
    /// Sequence number of the message in its stream, from 0.
    pub ssn: u32,
    /// The stream.
    pub stream: u16,
    /// The message.
    pub message: Message,
    /// Offset of this chunk in the message (bytes).
    pub offset: u32,
    /// User data (bytes).
    pub payload: u16,
    /// Congestion window reduced: the sender has responded to the mark reported for this TSN.
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
    /// Highest TSN up to which every chunk has arrived.
    pub cumulative: u32,
    /// Advertised receiver window (chunk bytes).
    pub window: u32,
    /// Lowest TSN that arrived with a mark since the sender's last response (an ECNE chunk in the packet).
    pub marked: Option<u32>,
    blocks: [(u16, u16); BLOCKS],
    len: u8,
}

impl Sack {
    /// A SACK without gap ack blocks or marks.
    pub const fn new(cumulative: u32, window: u32) -> Self {
        Sack { cumulative, window, marked: None, blocks: [(0, 0); BLOCKS], len: 0 }
    }

    /// Adds a gap ack block: the chunks from `cumulative + first` to `cumulative + last` have arrived (RFC 9260 section
    /// 3.3.4). No effect when all blocks are used.
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

/// Messages of association setup (RFC 9260 section 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setup {
    /// Initiation, by the source.
    Init,
    /// Response with the state cookie.
    InitAck,
    /// State cookie, echoed by the source.
    CookieEcho,
    /// Response that completes the setup.
    CookieAck,
}

impl Setup {
    /// Size of the chunk (bytes), with a state cookie of 100 bytes.
    pub const fn bytes(self) -> u16 {
        match self {
            Setup::Init => 20,
            Setup::InitAck => 124,
            Setup::CookieEcho => 104,
            Setup::CookieAck => 4,
        }
    }
}
