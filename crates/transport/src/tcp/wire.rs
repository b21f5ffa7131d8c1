//! What the two ends exchange: data segments one way, acknowledgements the other.

use aqumen_units::{Ecn, Instant};

/// A data segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Number of this segment in the connection.
    pub seq: u32,
    /// Size on the wire, headers included (bytes).
    pub bytes: u16,
    /// ECN codepoint; a router may turn an ECT codepoint into [`Ecn::Ce`].
    pub ecn: Ecn,
    /// Congestion window reduced (RFC 3168 section 6.1.2): the sender has reacted to the echoed mark.
    pub cwr: bool,
    /// Opens the connection and carries no data.
    pub syn: bool,
    /// Ends a write of the application (PSH): the last segment of a finite transfer, and those of
    /// [`TcpConfig::write`](super::TcpConfig::write).
    pub push: bool,
    /// This segment was sent before.
    pub retransmission: bool,
    /// When it left (the TSval of RFC 7323). Read only with [`TcpConfig::timestamps`](super::TcpConfig::timestamps):
    /// a host that does not use them need not carry it.
    pub sent_at: Instant,
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The next segment expected: everything before it has arrived.
    pub ack: u32,
    /// The receive window: segments beyond `ack` that the receiver takes (segments).
    pub window: u32,
    /// ECN echo (RFC 3168 section 6.1.3).
    pub ece: bool,
    /// When the segment that caused this left (the TSecr of RFC 7323). Read only with
    /// [`TcpConfig::timestamps`](super::TcpConfig::timestamps).
    pub echo: Instant,
    /// Segments beyond `ack` that have arrived (RFC 2018).
    pub sack: SackBlocks,
    /// What the sender's congestion control asked for.
    pub feedback: Feedback,
}

/// What every acknowledgement says; see [`Ack`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainAck {
    /// The next segment expected.
    pub ack: u32,
    /// The receive window (segments).
    pub window: u32,
    /// ECN echo.
    pub ece: bool,
    /// When the segment that caused this left.
    pub echo: Instant,
}

impl Ack {
    /// It without SACK blocks and feedback.
    #[inline]
    pub fn plain(&self) -> PlainAck {
        PlainAck { ack: self.ack, window: self.window, ece: self.ece, echo: self.echo }
    }
}

/// What a receiver reports to some congestion controls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Feedback {
    /// Nothing beyond ECE.
    #[default]
    None,
    /// Packets with CE that have arrived (r.cep of RFC 9768).
    Marks(u32),
    /// One-way delay of the last segment that arrived (RFC 6817 section 2.3) (us).
    Delay(u32),
}

/// Up to three runs of segments that arrived out of order, the most recently touched first (RFC 2018 section 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    len: u8,
    blocks: [(u32, u32); 3],
}

impl SackBlocks {
    /// No block.
    pub const EMPTY: SackBlocks = SackBlocks { len: 0, blocks: [(0, 0); 3] };

    /// Whether there is no block.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds the run `first..end`, if there is room and the run is not empty; says whether it did.
    pub fn push(&mut self, first: u32, end: u32) -> bool {
        let fits = usize::from(self.len) < self.blocks.len() && first < end;
        if fits {
            self.blocks[usize::from(self.len)] = (first, end);
            self.len += 1;
        }
        fits
    }

    /// The runs, as (first, one past the last).
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.len)]
    }
}
