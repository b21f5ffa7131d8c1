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
    /// What it acknowledges, if it is a TCP acknowledgement that carries nothing else: no data, no SACK blocks.
    pub ack: Option<PureAck>,
}

/// What a filter of acknowledgements has to know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PureAck {
    /// Tells the connections of one flow apart.
    pub connection: u16,
    /// The cumulative acknowledgement; it wraps.
    pub number: u32,
    /// Its ECN-Echo flag.
    pub ece: bool,
}
