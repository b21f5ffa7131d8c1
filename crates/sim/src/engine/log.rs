//! The log of packets that cross shared links. Each place writes what it knows when it knows it; the trace wants it in the order
//! of all that happens, so that it is merged when a window closes, by the turns of what it was known by.

use aqumen_transport::Packet;
use aqumen_transport::tcp::Ack;

use super::batch::Turn;
use super::ways::Table;
use crate::event::{Event, Kept};
use crate::trace::Trace;

#[derive(Default)]
pub(super) struct Log {
    entries: Vec<Entry>,
}

struct Entry {
    turn: Turn,
    link: u32,
    flow: u32,
    /// When its transmission starts.
    start: u64,
    event: Event,
    carried: Carried,
}

/// What does not travel in the event.
enum Carried {
    Nothing,
    Ack(Ack),
    Packet(Packet),
}

impl Log {
    /// In its `turn` a port learned that the transmission of a packet of `flow` on `link` starts at `start`.
    pub(super) fn note(
        &mut self,
        turn: Turn,
        link: u32,
        start: u64,
        flow: u32,
        event: Event,
        (acks, packets): (&Table<Ack>, &Table<Packet>),
    ) {
        // It may be gone, and its place in the table taken, before the window closes.
        let carried = match event.kept() {
            None => Carried::Nothing,
            Some(Kept::Ack(index)) => Carried::Ack(*acks.get(index)),
            Some(Kept::Packet(index)) => Carried::Packet(*packets.get(index)),
        };
        self.entries.push(Entry { turn, link, flow, start, event, carried });
    }

    /// Hands everything to `trace`.
    pub(super) fn write(&mut self, trace: &mut Trace) {
        self.entries.sort_by_key(|entry| entry.turn);
        for Entry { link, flow, start, event, carried, .. } in self.entries.drain(..) {
            match carried {
                Carried::Packet(packet) => trace.packet(link, start, flow, &event, &packet),
                Carried::Ack(ack) => trace.ack(link, start, flow, &event, &ack),
                Carried::Nothing if event.is_ack() => trace.ack(link, start, flow, &event, &event.as_ack()),
                Carried::Nothing => trace.segment(link, start, flow, &event),
            }
        }
    }
}
