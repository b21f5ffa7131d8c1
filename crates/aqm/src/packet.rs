//! What an algorithm may know of a packet.

use aqumen_units::Ecn;

/// A packet's metadata: never its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Size on the wire, bytes.
    pub bytes: u32,
    /// ECN codepoint as it arrived.
    pub ecn: Ecn,
    /// Traffic class the operator assigned, for CAKE the DSCP; zero is the default class.
    pub class: u8,
    /// Number of segments a super-packet stands for (generic segmentation offload); one for an ordinary packet.
    pub segments: u16,
    /// Hash of the flow's 5-tuple.
    pub flow_hash: u32,
    /// Hash of the source host.
    pub source_hash: u32,
    /// Hash of the destination host.
    pub destination_hash: u32,
    /// What it acknowledges, if it is a TCP acknowledgement that does nothing else.
    pub ack: Option<PureAck>,
}

/// What a filter of acknowledgements has to know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PureAck {
    /// Tells the connections of one flow apart.
    pub connection: u8,
    /// The cumulative acknowledgement; it wraps.
    pub number: u32,
    /// Its ECN-Echo flag.
    pub ece: bool,
    /// Its SACK blocks.
    pub sack: SackDigest,
}

// It lies in every packet that waits.
const _: () = assert!(size_of::<Option<PureAck>>() == 8);

/// As much of the SACK blocks of an acknowledgement as tells whether a later one of the same receiver reports all that
/// it does: which block is the lowest, how much all report, and whether there may be more than were reported.
///
/// What has arrived stays, and comes to lie in larger blocks, until the cumulative acknowledgement has reached it, the
/// lowest first. So while the lowest block of a report still begins where it did, all of its blocks are still there; a
/// later acknowledgement with room for more reports them all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackDigest {
    /// Where the lowest block begins, modulo 253, and one; 0 without blocks.
    lowest: u8,
    /// What all blocks report, modulo 127, and [`FULL`](Self::FULL).
    amount: u8,
}

impl SackDigest {
    /// No blocks.
    pub const NONE: SackDigest = SackDigest { lowest: 0, amount: 0 };
    /// Blocks that are like no others.
    const OPAQUE: SackDigest = SackDigest { lowest: u8::MAX, amount: 0 };
    /// There are as many blocks as there is room for.
    const FULL: u8 = 1 << 7;
    /// More of them have no room beside timestamps (RFC 2018 section 3).
    const BLOCKS: usize = 3;

    /// That of `blocks`, each from its first number up to, not including, its last, of an acknowledgement of `number`.
    pub fn from_blocks(blocks: &[(u32, u32)], number: u32) -> Self {
        // Where they lie behind what is acknowledged; a duplicate that is reported lies before it (RFC 2883).
        let ahead = |&(first, _): &(u32, u32)| first.wrapping_sub(number);
        let Some(&(lowest, _)) = blocks.iter().min_by_key(|block| ahead(block)) else { return Self::NONE };
        if blocks.iter().any(|block| ahead(block) > u32::MAX / 2) {
            return Self::OPAQUE;
        }
        let amount = blocks.iter().fold(0, |sum: u32, (first, end)| sum.wrapping_add(end.wrapping_sub(*first)));
        let full = if blocks.len() < Self::BLOCKS { 0 } else { Self::FULL };
        SackDigest { lowest: (lowest % 253) as u8 + 1, amount: (amount % 127) as u8 | full }
    }

    /// Two bytes that say the same; 0 without blocks.
    pub const fn bits(self) -> u16 {
        self.lowest as u16 | (self.amount as u16) << 8
    }

    /// What [`bits`](Self::bits) were made of.
    pub const fn from_bits(bits: u16) -> Self {
        SackDigest { lowest: bits as u8, amount: (bits >> 8) as u8 }
    }

    /// Whether `later` of the same receiver reports all that these blocks do, and whether it reports more; `None`: it
    /// does not, or nobody can tell.
    pub fn covered_by(self, later: SackDigest) -> Option<Coverage> {
        match (self.lowest, later.lowest) {
            (0, 0) => Some(Coverage::Equal),
            (0, _) => Some(Coverage::Superset),
            (mine, theirs) if mine != theirs || self == Self::OPAQUE || later.amount & Self::FULL != 0 => None,
            _ if self.amount & !Self::FULL == later.amount => Some(Coverage::Equal),
            _ => Some(Coverage::Superset),
        }
    }
}

/// What a report has beside all of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// Nothing.
    Equal,
    /// More.
    Superset,
}
