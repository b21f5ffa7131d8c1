//! Log of packets that cross shared links. Each process logs a transmission when it computes it; the packet trace needs
//! the order of all events. The log is therefore merged by event keys when an epoch closes.

use std::ops::Range;

use aqumen_transport::Packet;
use aqumen_transport::tcp::Ack;

use super::batch::EventKey;
use super::table::Shareable;
use crate::event::{Event, TableEntry};
use crate::trace::Trace;

#[derive(Clone, Default)]
pub(super) struct Log {
    entries: Vec<Entry>,
    /// Event key and number of each entry, for sorting.
    keys: Vec<(EventKey, u32)>,
    /// Memory for sorting.
    merged: Vec<(EventKey, u32)>,
    runs: Vec<Range<usize>>,
    acks: Vec<Ack>,
    packets: Vec<Packet>,
}

#[derive(Clone)]
struct Entry {
    link: u32,
    flow: u32,
    /// Start of its transmission.
    start: u64,
    event: Event,
    contents: Contents,
}

/// Contents of a packet that is too large for an event.
#[derive(Clone, Copy)]
enum Contents {
    Nothing,
    Ack(u32),
    Packet(u32),
}

impl Log {
    /// Logs that the transmission of a packet of `flow` on `link` starts at `start`; `key`: event that computed it.
    pub(super) fn note(
        &mut self,
        key: EventKey,
        link: u32,
        start: u64,
        flow: u32,
        event: Event,
        (acks, packets): (&Shareable<Ack>, &Shareable<Packet>),
    ) {
        // The table entry may be reused before the epoch closes.
        let contents = match event.table_entry() {
            None => Contents::Nothing,
            Some(TableEntry::Ack(index)) => {
                self.acks.push(acks.get(index));
                Contents::Ack(self.acks.len() as u32 - 1)
            }
            Some(TableEntry::Packet(index)) => {
                self.packets.push(packets.get(index));
                Contents::Packet(self.packets.len() as u32 - 1)
            }
        };
        self.keys.push((key, self.entries.len() as u32));
        self.entries.push(Entry { link, flow, start, event, contents });
    }

    /// Writes all entries to `trace`.
    pub(super) fn write(&mut self, trace: &mut Trace) {
        self.sort();
        for &(_, number) in &self.keys {
            let Entry { link, flow, start, event, contents } = &self.entries[number as usize];
            let (link, flow, start) = (*link, *flow, *start);
            match *contents {
                Contents::Packet(index) => trace.packet(link, start, flow, event, &self.packets[index as usize]),
                Contents::Ack(index) => trace.ack(link, start, flow, event, &self.acks[index as usize]),
                Contents::Nothing if event.is_ack() => trace.ack(link, start, flow, event, &event.as_ack()),
                Contents::Nothing => trace.segment(link, start, flow, event),
            }
        }
        self.keys.clear();
        self.entries.clear();
        self.acks.clear();
        self.packets.clear();
    }

    /// Sorts the keys, equal ones first in, first out. Each process's entries are a sorted run already.
    fn sort(&mut self) {
        const FEW: usize = 6;
        let Log { keys, merged, runs, .. } = self;
        runs.clear();
        let mut start = 0;
        for end in 1..=keys.len() {
            if end == keys.len() || keys[end].0 < keys[end - 1].0 {
                runs.push(start..end);
                start = end;
            }
        }
        if runs.len() > FEW {
            keys.sort();
        } else if runs.len() > 1 {
            merged.clear();
            // Of equal keys, the earlier run comes first.
            while let Some(first) =
                runs.iter_mut().filter(|run| run.start < run.end).min_by_key(|run| keys[run.start].0)
            {
                merged.push(keys[first.start]);
                first.start += 1;
            }
            std::mem::swap(keys, merged);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn runs_are_merged_into_the_order_of_keys_and_of_coming(
            processes in prop::collection::vec(prop::collection::vec((0u64..40, 0u32..3), 0..12), 0..9),
        ) {
            let mut log = Log::default();
            for mut keys in processes {
                keys.sort();
                keys.iter().for_each(|turn| log.keys.push((*turn, log.keys.len() as u32)));
            }
            let mut expected = log.keys.clone();
            expected.sort();
            log.sort();
            prop_assert_eq!(log.keys, expected);
        }
    }
}
