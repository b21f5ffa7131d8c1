//! Segments and acknowledgements.

use aqumen_units::{Ecn, Instant};

/// A data segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of the segment in the connection.
    pub seq: u32,
    /// Size on the wire, headers included (bytes).
    pub bytes: u16,
    /// ECN codepoint; a router may turn an ECT codepoint into [`Ecn::Ce`].
    pub ecn: Ecn,
    /// Congestion window reduced (RFC 3168 section 6.1.2): the sender has responded to the echoed mark.
    pub cwr: bool,
    /// SYN: opens the connection and carries no data.
    pub syn: bool,
    /// PSH: the last segment of a finite transfer or of an application's write
    /// ([`TcpConfig::write`](super::TcpConfig::write)).
    pub push: bool,
    /// Whether this segment was sent before.
    pub retransmission: bool,
    /// Sending time (TSval of RFC 7323). Read only with [`TcpConfig::timestamps`](super::TcpConfig::timestamps); other
    /// hosts need not carry it.
    pub sent_at: Instant,
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Next segment expected: all earlier ones have arrived.
    pub ack: u32,
    /// Receive window beyond `ack` (segments).
    pub window: u32,
    /// ECN echo (RFC 3168 section 6.1.3).
    pub ece: bool,
    /// Sending time of the acknowledged segment (TSecr of RFC 7323). Read only with
    /// [`TcpConfig::timestamps`](super::TcpConfig::timestamps).
    pub echo: Instant,
    /// SACK blocks: segments beyond `ack` that have arrived (RFC 2018).
    pub sack: SackBlocks,
    /// Feedback for the sender's congestion control.
    pub feedback: Feedback,
}

/// A new segment of full size, neither the first nor the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainSegment {
    /// Sequence number.
    pub seq: u32,
    /// Congestion window reduced.
    pub cwr: bool,
    /// Last segment of a write or of a super-packet.
    pub push: bool,
}

/// Fields common to all acknowledgements; see [`Ack`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainAck {
    /// Next segment expected.
    pub ack: u32,
    /// The receive window (segments).
    pub window: u32,
    /// ECN echo.
    pub ece: bool,
    /// Sending time of the acknowledged segment.
    pub echo: Instant,
}

impl From<PlainAck> for Ack {
    /// An acknowledgement without SACK blocks and feedback.
    fn from(PlainAck { ack, window, ece, echo }: PlainAck) -> Self {
        Ack { ack, window, ece, echo, sack: SackBlocks::EMPTY, feedback: Feedback::None }
    }
}

impl Ack {
    /// The acknowledgement without SACK blocks and feedback.
    #[inline]
    pub fn plain(&self) -> PlainAck {
        PlainAck { ack: self.ack, window: self.window, ece: self.ece, echo: self.echo }
    }
}

/// Receiver feedback for a congestion control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Feedback {
    /// None beyond ECE.
    #[default]
    None,
    /// Total number of CE-marked packets (r.cep of RFC 9768).
    Marks(u32),
    /// One-way delay of the last segment that arrived (RFC 6817 section 2.3) (us).
    Delay(u32),
}

/// Up to three ranges of segments that arrived out of order, most recently updated first (RFC 2018 section 4).
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

    /// Adds the block `first..end` if a block is free and it is not empty; returns whether it was added.
    pub fn push(&mut self, first: u32, end: u32) -> bool {
        let fits = usize::from(self.len) < self.blocks.len() && first < end;
        if fits {
            self.blocks[usize::from(self.len)] = (first, end);
            self.len += 1;
        }
        fits
    }

    /// The blocks, as (first, one past the last).
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.len)]
    }
}
