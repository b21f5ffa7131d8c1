//! The event: time, tie-break priority, and the packet that it carries, if any. 32 bytes, moved by value.
//!
//! An event is four words, which are written and read as words: a read of several recent narrow stores stalls the
//! processor.

use aqumen_aqm::{PureAck, SackDigest};
use aqumen_network::WirePacket;
use aqumen_transport::Packet;
use aqumen_transport::tcp::{Ack, Feedback, PlainAck, PlainSegment, Segment, TcpConfig};
use aqumen_units::{Ecn, Instant};

/// An event. Equal times are ordered by priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// Time, nanoseconds since the start of the run.
    pub(crate) at: u64,
    /// Timestamp of a segment, or the one that an acknowledgement echoes; for an acknowledgement in the table, the
    /// digest of its SACK blocks.
    stamp: u64,
    /// [Priority](Self::priority) in the lower half; in the upper half the number of a segment, or the next one that an
    /// acknowledgement expects.
    priority_and_number: u64,
    /// Receive window of an acknowledgement in segments, or its table index with `IN_TABLE`; above it 16 bits of size
    /// on the wire, and 16 flags.
    rest: u64,
}

/// An event as its words, which pass in registers: arguments of rarely called functions stay out of memory.
pub(crate) type Words = (u64, u64, u64, u64);

/// Entry of the engine's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableEntry {
    /// An acknowledgement with SACK blocks or feedback.
    Ack(u32),
    /// A packet of a transport other than TCP.
    Packet(u32),
}

const ECN_BITS: u16 = 0b11;
const CWR: u16 = 1 << 2;
const SYN: u16 = 1 << 3;
const PUSH: u16 = 1 << 4;
const RETRANSMISSION: u16 = 1 << 5;
const ECE: u16 = 1 << 6;
/// Set on acknowledgements and other packets of a sink, clear on segments.
const ACK: u16 = 1 << 7;
/// The packet is in a table, since it is too large for an event: an acknowledgement with SACK blocks or feedback, or a
/// packet of another transport than TCP.
const IN_TABLE: u16 = 1 << 8;
/// Set on packets of transports other than TCP.
const OTHER: u16 = 1 << 9;
/// Connection of the flow, modulo 16: packets of an earlier connection are ignored.
const GENERATION: u16 = 0xf000;

impl Event {
    #[inline(always)]
    const fn new(at: u64, stamp: u64, priority: u32, number: u32, window: u32, bytes: u16, flags: u16) -> Self {
        let priority_and_number = priority as u64 | (number as u64) << 32;
        let rest = window as u64 | (bytes as u64) << 32 | (flags as u64) << 48;
        Event { at, stamp, priority_and_number, rest }
    }

    /// Makes a timer event of `priority`, without a packet.
    #[inline]
    pub(crate) fn timer(at: u64, priority: u32) -> Self {
        Event::new(at, 0, priority, 0, 0, 0, 0)
    }

    /// Makes the event of a data segment.
    #[inline(always)]
    pub(crate) fn segment(segment: &Segment, generation: u16) -> Self {
        let flag = |on, bit| if on { bit } else { 0 };
        let flags = segment.ecn as u16
            | flag(segment.cwr, CWR)
            | flag(segment.syn, SYN)
            | flag(segment.push, PUSH)
            | flag(segment.retransmission, RETRANSMISSION)
            | generation;
        Event::new(0, segment.sent_at.as_nanos(), 0, segment.seq, 0, segment.bytes, flags)
    }

    /// Makes the event of a new data segment of full size.
    #[inline(always)]
    pub(crate) fn plain_segment(config: &TcpConfig, segment: PlainSegment, sent_at: u64, generation: u16) -> Self {
        let PlainSegment { seq, cwr, push } = segment;
        let ecn = if config.ecn { Ecn::Ect0 } else { Ecn::NotEct };
        let flags = ecn as u16 | generation | if cwr { CWR } else { 0 } | if push { PUSH } else { 0 };
        Event::new(0, sent_at, 0, seq, 0, config.packet_bytes, flags)
    }

    /// Makes the event of an acknowledgement without SACK blocks and feedback.
    #[inline(always)]
    pub(crate) fn ack(ack: &Ack, bytes: u16, generation: u16) -> Self {
        Event::plain_ack(&ack.plain(), bytes, generation)
    }

    /// Makes the event of a plain acknowledgement.
    #[inline(always)]
    pub(crate) fn plain_ack(ack: &PlainAck, bytes: u16, generation: u16) -> Self {
        let flags = ACK | generation | if ack.ece { ECE } else { 0 };
        Event::new(0, ack.echo.as_nanos(), 0, ack.ack, ack.window, bytes, flags)
    }

    /// Makes the event of an acknowledgement at `index` of the table. A digest of its blocks, for acknowledgement
    /// filters, replaces its timestamp.
    pub(crate) fn ack_in_table(ack: &Ack, bytes: u16, index: u32, generation: u16) -> Self {
        let flags = Event::ack(ack, bytes, generation).flags() | IN_TABLE;
        let filterable = ack.feedback == Feedback::None;
        let digest = if filterable { SackDigest::from_blocks(ack.sack.as_slice(), ack.ack) } else { SackDigest::NONE };
        Event::new(0, digest.bits().into(), 0, ack.ack, index, bytes, flags)
    }

    /// Makes the event of a packet of another transport than TCP, at `index` of the table, to the sink or back.
    pub(crate) fn packet(packet: &Packet, index: u32, back: bool, generation: u16) -> Self {
        let flags = packet.ecn as u16 | IN_TABLE | OTHER | generation | if back { ACK } else { 0 };
        Event::new(0, 0, 0, 0, index, packet.bytes, flags)
    }

    /// Returns the segment that the event carries.
    #[inline(always)]
    pub(crate) fn as_segment(&self) -> Segment {
        let flags = self.flags();
        Segment {
            seq: self.number(),
            bytes: self.wire_bytes(),
            ecn: self.ecn(),
            cwr: flags & CWR != 0,
            syn: flags & SYN != 0,
            push: flags & PUSH != 0,
            retransmission: flags & RETRANSMISSION != 0,
            sent_at: Instant::from_nanos(self.stamp),
        }
    }

    /// Returns the acknowledgement that the event carries by value.
    #[inline]
    pub(crate) fn as_ack(&self) -> Ack {
        self.as_plain_ack().into()
    }

    /// Returns the acknowledgement without space for SACK blocks.
    #[inline(always)]
    pub(crate) fn as_plain_ack(&self) -> PlainAck {
        let flags = self.flags();
        debug_assert!(flags & IN_TABLE == 0);
        let echo = Instant::from_nanos(self.stamp);
        PlainAck { ack: self.number(), window: self.rest as u32, ece: flags & ECE != 0, echo }
    }

    /// Returns the tie-break priority: see [`crate::engine`] for the ranges.
    #[inline(always)]
    pub(crate) fn priority(&self) -> u32 {
        self.priority_and_number as u32
    }

    #[inline(always)]
    fn number(&self) -> u32 {
        (self.priority_and_number >> 32) as u32
    }

    /// Returns the size on the wire.
    #[inline(always)]
    pub(crate) fn wire_bytes(&self) -> u16 {
        (self.rest >> 32) as u16
    }

    #[inline(always)]
    fn flags(&self) -> u16 {
        (self.rest >> 48) as u16
    }

    /// Returns the event key: see [`crate::engine`].
    #[inline(always)]
    pub(crate) fn key(&self) -> (u64, u32) {
        (self.at, self.priority())
    }

    /// Returns the event at another time, with another priority.
    #[inline(always)]
    pub(crate) fn moved(&self, at: u64, priority: u32) -> Self {
        Event {
            at,
            stamp: self.stamp,
            priority_and_number: self.priority_and_number >> 32 << 32 | u64::from(priority),
            rest: self.rest,
        }
    }

    #[inline(always)]
    pub(crate) fn words(&self) -> Words {
        (self.at, self.stamp, self.priority_and_number, self.rest)
    }

    #[inline(always)]
    pub(crate) fn from_words((at, stamp, priority_and_number, rest): Words) -> Self {
        Event { at, stamp, priority_and_number, rest }
    }

    #[inline(always)]
    pub(crate) fn is_ack(&self) -> bool {
        self.flags() & ACK != 0
    }

    /// Returns the generation of its connection: see [`next_generation`].
    #[inline(always)]
    pub(crate) fn generation(&self) -> u16 {
        self.flags() & GENERATION
    }

    /// Returns the table entry of the packet, if it is too large for the event.
    #[inline(always)]
    pub(crate) fn table_entry(&self) -> Option<TableEntry> {
        let (flags, index) = (self.flags(), self.rest as u32);
        let of_tcp = flags & OTHER == 0;
        (flags & IN_TABLE != 0).then_some(if of_tcp { TableEntry::Ack(index) } else { TableEntry::Packet(index) })
    }
}

impl WirePacket for Event {
    #[inline]
    fn bytes(&self) -> u32 {
        u32::from(self.wire_bytes())
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        Ecn::from_bits((self.flags() & ECN_BITS) as u8)
    }

    #[inline]
    fn mark(&mut self) {
        self.rest |= u64::from(ECN_BITS) << 48;
    }

    #[inline(always)]
    fn mark_if(&mut self, marks: bool) {
        self.rest |= (u64::from(ECN_BITS) * u64::from(marks)) << 48;
    }

    #[inline]
    fn syn(&self) -> bool {
        self.flags() & (SYN | OTHER) == SYN
    }

    /// Acknowledgements with feedback are excluded: filters may not drop them.
    #[inline]
    fn pure_ack(&self) -> Option<PureAck> {
        if !self.is_ack() {
            return None;
        }
        let sack = match self.table_entry() {
            None => SackDigest::NONE,
            Some(TableEntry::Ack(_)) if self.stamp != 0 => SackDigest::from_bits(self.stamp as u16),
            Some(_) => return None,
        };
        let connection = (self.generation() >> GENERATION.trailing_zeros()) as u8;
        Some(PureAck { connection, number: self.number(), ece: self.flags() & ECE != 0, sack })
    }
}

/// Returns the generation of the connection after one of `generation`.
pub(crate) fn next_generation(generation: u16) -> u16 {
    generation.wrapping_add(1 << 12)
}

#[cfg(test)]
mod tests {
    use aqumen_transport::tcp::SackBlocks;

    use super::*;

    #[test]
    fn a_segment_and_an_ack_come_out_as_they_went_in() {
        let segment = Segment {
            seq: 7,
            bytes: 1000,
            ecn: Ecn::Ect0,
            cwr: true,
            syn: false,
            push: true,
            retransmission: false,
            sent_at: Instant::from_nanos(5),
        };
        let mut event = Event::segment(&segment, next_generation(0));
        assert_eq!(event.as_segment(), segment);
        assert_eq!(event.generation(), next_generation(0));
        event.mark();
        assert_eq!(event.as_segment(), Segment { ecn: Ecn::Ce, ..segment });
        let (sack, feedback) = (SackBlocks::EMPTY, Feedback::None);
        let ack = Ack { ack: 8, window: 1000, ece: true, echo: Instant::from_nanos(5), sack, feedback };
        let event = Event::ack(&ack, 40, next_generation(0));
        assert!(event.is_ack());
        assert_eq!((event.as_ack(), event.table_entry(), event.generation()), (ack, None, next_generation(0)));
        assert_eq!(Event::ack_in_table(&ack, 40, 3, 0).table_entry(), Some(TableEntry::Ack(3)));
    }

    #[test]
    fn a_filter_sees_blocks_and_leaves_feedback_alone() {
        let mut sack = SackBlocks::EMPTY;
        sack.push(12, 14);
        let echo = Instant::from_nanos(5);
        let ack = Ack { ack: 8, window: 1000, ece: true, echo, sack, feedback: Feedback::None };
        let seen = Event::ack_in_table(&ack, 52, 3, next_generation(0)).pure_ack().unwrap();
        let plain = Event::ack(&Ack { sack: SackBlocks::EMPTY, ..ack }, 52, next_generation(0)).pure_ack().unwrap();
        assert_eq!((seen.connection, seen.number, seen.ece), (1, 8, true));
        assert_eq!(seen.sack, SackDigest::from_blocks(&[(12, 14)], 8));
        assert_eq!(plain, PureAck { sack: SackDigest::NONE, ..seen });
        let unmarked = Event::ack(&Ack { sack: SackBlocks::EMPTY, ece: false, ..ack }, 52, next_generation(0));
        assert_eq!(unmarked.pure_ack(), Some(PureAck { ece: false, ..plain }));
        let marks = Ack { feedback: Feedback::Marks(1), ..ack };
        assert_eq!(Event::ack_in_table(&marks, 52, 3, 0).pure_ack(), None);
    }

    #[test]
    fn a_plain_segment_is_a_segment_that_says_nothing_else() {
        for config in [TcpConfig::ns2(), TcpConfig { ecn: true, packet_bytes: 1500, ..TcpConfig::ns2() }] {
            let segment = Segment {
                seq: 70_000,
                bytes: config.packet_bytes,
                ecn: if config.ecn { Ecn::Ect0 } else { Ecn::NotEct },
                cwr: false,
                syn: false,
                push: false,
                retransmission: false,
                sent_at: Instant::from_nanos(5),
            };
            for cwr in [false, true] {
                let plain = Event::plain_segment(
                    &config,
                    PlainSegment { seq: 70_000, cwr, push: false },
                    5,
                    next_generation(0),
                );
                let segment = Segment { cwr, ..segment };
                assert_eq!((plain, plain.as_segment()), (Event::segment(&segment, next_generation(0)), segment));
            }
        }
    }

    #[test]
    fn an_event_survives_as_words_and_where_it_is_moved() {
        let event = Event::plain_segment(
            &TcpConfig::ns2(),
            PlainSegment { seq: u32::MAX, cwr: false, push: false },
            u64::MAX - 1,
            next_generation(7 << 12),
        );
        assert_eq!(Event::from_words(event.words()), event);
        let moved = event.moved(9, u32::MAX);
        assert_eq!(
            (moved.key(), moved.as_segment(), moved.generation()),
            ((9, u32::MAX), event.as_segment(), event.generation())
        );
        assert_eq!(moved.moved(event.at, event.priority()), event);
    }

    #[test]
    fn an_event_fills_half_a_cache_line() {
        assert_eq!(size_of::<Event>(), 32);
    }
}
