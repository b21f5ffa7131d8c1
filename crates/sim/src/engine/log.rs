//! The log of packets that cross shared links. Each place writes what it knows when it knows it; the trace wants it in
//! the order of all that happens, so that it is merged when a superstep closes, by the turns of what it was known by.

use std::ops::Range;

use aqumen_transport::Packet;
use aqumen_transport::tcp::Ack;

use super::batch::Turn;
use super::table::Shareable;
use crate::event::{Event, Kept};
use crate::trace::Trace;

#[derive(Default)]
pub(super) struct Log {
    entries: Vec<Entry>,
    /// The turn of each entry, and its number: what is sorted.
    turns: Vec<(Turn, u32)>,
    /// For sorting.
    merged: Vec<(Turn, u32)>,
    runs: Vec<Range<usize>>,
    acks: Vec<Ack>,
    packets: Vec<Packet>,
}

struct Entry {
    link: u32,
    flow: u32,
    /// When its transmission starts.
    start: u64,
    event: Event,
    carried: Carried,
}

/// What does not travel in the event.
#[derive(Clone, Copy)]
enum Carried {
    Nothing,
    Ack(u32),
    Packet(u32),
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
        (acks, packets): (&Shareable<Ack>, &Shareable<Packet>),
    ) {
        // It may be gone, and its place in the table taken, before the superstep closes.
        let carried = match event.kept() {
            None => Carried::Nothing,
            Some(Kept::Ack(index)) => {
                self.acks.push(acks.get(index));
                Carried::Ack(self.acks.len() as u32 - 1)
            }
            Some(Kept::Packet(index)) => {
                self.packets.push(packets.get(index));
                Carried::Packet(self.packets.len() as u32 - 1)
            }
        };
        self.turns.push((turn, self.entries.len() as u32));
        self.entries.push(Entry { link, flow, start, event, carried });
    }

    /// Hands everything to `trace`.
    pub(super) fn write(&mut self, trace: &mut Trace) {
        self.sort();
        for &(_, number) in &self.turns {
            let Entry { link, flow, start, event, carried } = &self.entries[number as usize];
            let (link, flow, start) = (*link, *flow, *start);
            match *carried {
                Carried::Packet(index) => trace.packet(link, start, flow, event, &self.packets[index as usize]),
                Carried::Ack(index) => trace.ack(link, start, flow, event, &self.acks[index as usize]),
                Carried::Nothing if event.is_ack() => trace.ack(link, start, flow, event, &event.as_ack()),
                Carried::Nothing => trace.segment(link, start, flow, event),
            }
        }
        self.turns.clear();
        self.entries.clear();
        self.acks.clear();
        self.packets.clear();
    }

    /// Puts the turns into order, equal ones as they came. Each place's are in order already, one run after the other.
    fn sort(&mut self) {
        const FEW: usize = 6;
        let Log { turns, merged, runs, .. } = self;
        runs.clear();
        let mut start = 0;
        for end in 1..=turns.len() {
            if end == turns.len() || turns[end].0 < turns[end - 1].0 {
                runs.push(start..end);
                start = end;
            }
        }
        if runs.len() > FEW {
            turns.sort();
        } else if runs.len() > 1 {
            merged.clear();
            // Of equal turns that of the earlier run.
            while let Some(first) =
                runs.iter_mut().filter(|run| run.start < run.end).min_by_key(|run| turns[run.start].0)
            {
                merged.push(turns[first.start]);
                first.start += 1;
            }
            std::mem::swap(turns, merged);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn runs_are_merged_into_the_order_of_turns_and_of_coming(
            places in prop::collection::vec(prop::collection::vec((0u64..40, 0u32..3), 0..12), 0..9),
        ) {
            let mut log = Log::default();
            for mut turns in places {
                turns.sort();
                turns.iter().for_each(|turn| log.turns.push((*turn, log.turns.len() as u32)));
            }
            let mut expected = log.turns.clone();
            expected.sort();
            log.sort();
            prop_assert_eq!(log.turns, expected);
        }
    }
}
