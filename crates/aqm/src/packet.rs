//! Packet metadata that algorithms may use.

use aqumen_units::Ecn;

/// Metadata of a packet, without its contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Size on the wire, bytes.
    pub bytes: u32,
    /// ECN codepoint at arrival.
    pub ecn: Ecn,
    /// Traffic class, for CAKE the DSCP; 0 is the default class.
    pub class: u8,
    /// Segments of a super-packet (generic segmentation offload); 1 for an ordinary packet.
    pub segments: u16,
    /// Hash of the flow's 5-tuple.
    pub flow_hash: u32,
    /// Hash of the source host.
    pub source_hash: u32,
    /// Hash of the destination host.
    pub destination_hash: u32,
    /// Whether it opens a TCP connection (flag SYN).
    pub syn: bool,
    /// Contents of a pure TCP acknowledgement (without data); `None` for other packets.
    pub ack: Option<PureAck>,
}

/// A pure TCP acknowledgement, as an acknowledgement filter needs it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PureAck {
    /// Number of the connection within its flow.
    pub connection: u8,
    /// Cumulative acknowledgement, modulo 2^32.
    pub number: u32,
    /// ECN-Echo flag.
    pub ece: bool,
    /// Digest of the SACK blocks.
    pub sack: SackDigest,
}

// Every queued packet contains it.
const _: () = assert!(size_of::<Option<PureAck>>() == 8);

/// Digest of SACK blocks in two bytes: start of the lowest block, total amount, and whether further blocks may have
/// been omitted. It suffices to decide whether a later acknowledgement of the same receiver reports all of these
/// blocks.
///
/// Received data stay received, in growing blocks, until the cumulative acknowledgement passes them, lowest block
/// first. So if the lowest block of a later acknowledgement begins at the same number, none of the blocks has been
/// passed yet, and a list that is not full reports them all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackDigest {
    /// Start of the lowest block modulo 253, plus 1; 0 without blocks.
    lowest: u8,
    /// Total amount of all blocks modulo 127, and the flag [`FULL`](Self::FULL).
    amount: u8,
}

impl SackDigest {
    /// No blocks.
    pub const NONE: SackDigest = SackDigest { lowest: 0, amount: 0 };
    /// Blocks that cannot be compared.
    const OPAQUE: SackDigest = SackDigest { lowest: u8::MAX, amount: 0 };
    /// Flag: the option holds as many blocks as fit.
    const FULL: u8 = 1 << 7;
    /// Blocks that fit next to timestamps (RFC 2018 section 3).
    const BLOCKS: usize = 3;

    /// Digest of `blocks`, half-open ranges of sequence numbers, of an acknowledgement with `number`.
    pub fn from_blocks(blocks: &[(u32, u32)], number: u32) -> Self {
        // Distance beyond the cumulative acknowledgement; a reported duplicate (RFC 2883) lies before it.
        let ahead = |&(first, _): &(u32, u32)| first.wrapping_sub(number);
        let Some(&(lowest, _)) = blocks.iter().min_by_key(|block| ahead(block)) else { return Self::NONE };
        if blocks.iter().any(|block| ahead(block) > u32::MAX / 2) {
            return Self::OPAQUE;
        }
        let amount = blocks.iter().fold(0, |sum: u32, (first, end)| sum.wrapping_add(end.wrapping_sub(*first)));
        let full = if blocks.len() < Self::BLOCKS { 0 } else { Self::FULL };
        SackDigest { lowest: (lowest % 253) as u8 + 1, amount: (amount % 127) as u8 | full }
    }

    /// The digest as two bytes; 0 without blocks.
    pub const fn bits(self) -> u16 {
        self.lowest as u16 | (self.amount as u16) << 8
    }

    /// Inverse of [`bits`](Self::bits).
    pub const fn from_bits(bits: u16) -> Self {
        SackDigest { lowest: bits as u8, amount: (bits >> 8) as u8 }
    }

    /// Whether `later` of the same receiver reports all of these blocks, and whether it reports more. `None`: it does
    /// not, or the digests do not tell.
    pub fn covered_by(self, later: SackDigest) -> Option<Coverage> {
        match (self.lowest, later.lowest) {
            (0, 0) => Some(Coverage::Equal),
            (0, _) => Some(Coverage::Superset),
            (own, other) if own != other || self == Self::OPAQUE || later.amount & Self::FULL != 0 => None,
            _ if self.amount & !Self::FULL == later.amount => Some(Coverage::Equal),
            _ => Some(Coverage::Superset),
        }
    }
}

/// How a SACK report compares with an earlier one that it contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// Equal contents.
    Equal,
    /// Additional contents.
    Superset,
}
