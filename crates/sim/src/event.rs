//! The event: a moment, the slot it belongs to, and the packet it carries, if any. 32 bytes, moved by value.

use aqumen_aqm::PureAck;
use aqumen_network::Carried;
use aqumen_transport::Packet;
use aqumen_transport::tcp::{Ack, Feedback, PlainAck, SackBlocks, Segment};
use aqumen_units::{Ecn, Instant};

/// Something that happens at a moment. Equal moments are ordered by slot, never by when the event was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// When, nanoseconds since the start.
    pub(crate) at: u64,
    /// Sender timestamp of a segment, or the one an acknowledgement echoes.
    stamp: u64,
    /// Whose turn it is: see [`crate::engine`] for the ranges.
    pub(crate) slot: u32,
    /// Number of a segment, or the next one that an acknowledgement expects.
    number: u32,
    /// Receive window of an acknowledgement, segments; or, with `IN_TABLE`, where the acknowledgement is kept.
    window: u32,
    /// Size on the wire.
    pub(crate) bytes: u16,
    /// Flags of a segment or acknowledgement.
    flags: u16,
}

/// Where in the engine's tables something is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
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
/// Set on acknowledgements and whatever else a sink sends, clear on segments.
const ACK: u16 = 1 << 7;
/// What it carries is kept in a table, being too large to travel by value: an acknowledgement with SACK blocks or feedback,
/// or a packet of a transport other than TCP.
const IN_TABLE: u16 = 1 << 8;
/// Set on packets of transports other than TCP.
const OTHER: u16 = 1 << 9;
/// Which connection of its flow it belongs to, modulo 16: what is left of an earlier one is ignored.
const EPOCH: u16 = 0xf000;

impl Event {
    /// A timer of `slot`: no packet.
    #[inline]
    pub(crate) fn timer(at: u64, slot: u32) -> Self {
        Event { at, slot, ..Event::default() }
    }

    /// A data segment under way.
    #[inline]
    pub(crate) fn segment(segment: &Segment, epoch: u16) -> Self {
        let flag = |on, bit| if on { bit } else { 0 };
        Event {
            stamp: segment.sent_at.as_nanos(),
            number: segment.seq,
            bytes: segment.bytes,
            flags: segment.ecn as u16
                | flag(segment.cwr, CWR)
                | flag(segment.syn, SYN)
                | flag(segment.push, PUSH)
                | flag(segment.retransmission, RETRANSMISSION)
                | epoch,
            ..Event::default()
        }
    }

    /// An acknowledgement without SACK blocks and feedback under way.
    #[inline]
    pub(crate) fn ack(ack: &Ack, bytes: u16, epoch: u16) -> Self {
        Event {
            stamp: ack.echo.as_nanos(),
            number: ack.ack,
            window: ack.window,
            bytes,
            flags: ACK | epoch | if ack.ece { ECE } else { 0 },
            ..Event::default()
        }
    }

    /// An acknowledgement under way that is kept at `index` of the host's table.
    pub(crate) fn ack_in_table(ack: &Ack, bytes: u16, index: u32, epoch: u16) -> Self {
        let event = Event::ack(ack, bytes, epoch);
        Event { window: index, flags: event.flags | IN_TABLE, ..event }
    }

    /// A packet of a transport other than TCP, kept at `index` of the host's table, on its way to the sink or back.
    pub(crate) fn packet(packet: &Packet, index: u32, back: bool, epoch: u16) -> Self {
        let flags = packet.ecn as u16 | IN_TABLE | OTHER | epoch | if back { ACK } else { 0 };
        Event { window: index, bytes: packet.bytes, flags, ..Event::default() }
    }

    /// The segment it carries.
    #[inline]
    pub(crate) fn as_segment(&self) -> Segment {
        Segment {
            seq: self.number,
            bytes: self.bytes,
            ecn: self.ecn(),
            cwr: self.flags & CWR != 0,
            syn: self.flags & SYN != 0,
            push: self.flags & PUSH != 0,
            retransmission: self.flags & RETRANSMISSION != 0,
            sent_at: Instant::from_nanos(self.stamp),
        }
    }

    /// The acknowledgement it carries by value.
    #[inline]
    pub(crate) fn as_ack(&self) -> Ack {
        debug_assert!(self.flags & IN_TABLE == 0);
        Ack {
            ack: self.number,
            window: self.window,
            ece: self.flags & ECE != 0,
            echo: Instant::from_nanos(self.stamp),
            sack: SackBlocks::EMPTY,
            feedback: Feedback::None,
        }
    }

    /// The same without the room for more.
    #[inline(always)]
    pub(crate) fn as_plain_ack(&self) -> PlainAck {
        PlainAck {
            ack: self.number,
            window: self.window,
            ece: self.flags & ECE != 0,
            echo: Instant::from_nanos(self.stamp),
        }
    }

    /// When it has its turn: see [`crate::engine`].
    #[inline(always)]
    pub(crate) fn turn(&self) -> (u64, u32) {
        (self.at, self.slot)
    }

    /// The same at another moment, in another slot.
    #[inline(always)]
    pub(crate) fn moved(mut self, at: u64, slot: u32) -> Self {
        (self.at, self.slot) = (at, slot);
        self
    }

    #[inline]
    pub(crate) fn is_ack(&self) -> bool {
        self.flags & ACK != 0
    }

    /// Which connection of its flow it belongs to: see [`next_epoch`].
    #[inline]
    pub(crate) fn epoch(&self) -> u16 {
        self.flags & EPOCH
    }

    /// Where what it carries is kept, if that is too large to travel by value.
    #[inline]
    pub(crate) fn kept(&self) -> Option<Kept> {
        let of_tcp = self.flags & OTHER == 0;
        (self.flags & IN_TABLE != 0).then_some(if of_tcp { Kept::Ack(self.window) } else { Kept::Packet(self.window) })
    }
}

impl Carried for Event {
    #[inline]
    fn bytes(&self) -> u32 {
        u32::from(self.bytes)
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        Ecn::from_bits((self.flags & ECN_BITS) as u8)
    }

    #[inline]
    fn mark(&mut self) {
        self.flags |= ECN_BITS;
    }

    /// Those with SACK blocks or feedback, which are in a table, are not shown.
    #[inline]
    fn pure_ack(&self) -> Option<PureAck> {
        let pure = self.is_ack() && self.kept().is_none();
        pure.then(|| PureAck { connection: self.epoch(), number: self.number, ece: self.flags & ECE != 0 })
    }
}

/// The epoch of the connection that follows one of `epoch`.
pub(crate) fn next_epoch(epoch: u16) -> u16 {
    epoch.wrapping_add(1 << 12)
}

#[cfg(test)]
mod tests {
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
        let mut event = Event::segment(&segment, next_epoch(0));
        assert_eq!(event.as_segment(), segment);
        assert_eq!(event.epoch(), next_epoch(0));
        event.mark();
        assert_eq!(event.as_segment(), Segment { ecn: Ecn::Ce, ..segment });
        let (sack, feedback) = (SackBlocks::EMPTY, Feedback::None);
        let ack = Ack { ack: 8, window: 1000, ece: true, echo: Instant::from_nanos(5), sack, feedback };
        let event = Event::ack(&ack, 40, next_epoch(0));
        assert!(event.is_ack());
        assert_eq!((event.as_ack(), event.kept(), event.epoch()), (ack, None, next_epoch(0)));
        assert_eq!(Event::ack_in_table(&ack, 40, 3, 0).kept(), Some(Kept::Ack(3)));
    }

    #[test]
    fn an_event_fills_half_a_cache_line() {
        assert_eq!(size_of::<Event>(), 32);
    }
}
