//! A packet trace: the packets that cross links, as pcapng that Wireshark opens, in the order of time.
//!
//! Each link is an interface of the capture. A packet is stamped with the start of its transmission. Hosts report
//! packets as they learn of them, which may be before or after that moment.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};
use std::io::{self, Write};

use aqumen_capture::{IPV4, Writer};

/// A packet trace under way.
#[derive(Debug)]
pub struct Trace<W> {
    writer: Writer<W>,
    /// Records of each link whose turn to be written has not come, in order.
    pending: Vec<VecDeque<Pending>>,
    /// The first of each link that has one, by time, then in the order in which they were reported.
    first: BinaryHeap<Reverse<(Pending, u32)>>,
    reported: u64,
    /// The records, and which of them are free: their room is used again.
    records: Vec<Record>,
    free: Vec<u32>,
    /// A record may be reported this much after its time.
    slack: u64,
    failure: Option<io::Error>,
}

/// When a record's turn is: its time, then the order of reports; and where it is.
type Pending = (u64, u64, u32);

#[derive(Debug, Default)]
struct Record {
    original: u16,
    headers: Vec<u8>,
}

impl<W: Write> Trace<W> {
    /// Begins a trace of the links of these names, by number, in `out`, which should have a buffer. A transmission is
    /// reported at most `slack` nanoseconds after its start.
    pub fn new<'a>(out: W, links: impl IntoIterator<Item = &'a str>, slack: u64) -> io::Result<Self> {
        let mut writer = Writer::new(out)?;
        let mut pending = Vec::new();
        for link in links {
            writer.interface(IPV4, Some(link))?;
            pending.push(VecDeque::new());
        }
        let (first, records, free) = (BinaryHeap::new(), Vec::new(), Vec::new());
        Ok(Trace { writer, pending, first, reported: 0, records, free, slack, failure: None })
    }

    /// At `now`: the transmission of a packet of `original` bytes starts on `link` at `start`, no sooner than that of
    /// the packet that was reported of this link before. `write` puts down its headers, from IPv4's on.
    pub fn transmit(&mut self, now: u64, link: u32, start: u64, original: u16, write: impl FnOnce(&mut Vec<u8>)) {
        let number = self.free.pop().unwrap_or_else(|| {
            self.records.push(Record::default());
            (self.records.len() - 1) as u32
        });
        let record = &mut self.records[number as usize];
        record.original = original;
        record.headers.clear();
        write(&mut record.headers);
        let (record, of_link) = ((start, self.reported, number), &mut self.pending[link as usize]);
        debug_assert!(of_link.back().is_none_or(|before| *before < record), "a link sends one packet after the other");
        of_link.push_back(record);
        if of_link.len() == 1 {
            self.first.push(Reverse((record, link)));
        }
        self.reported += 1;
        let watermark = now.saturating_sub(self.slack);
        while self.first.peek().is_some_and(|Reverse(((at, ..), _))| *at < watermark) {
            self.write_next();
        }
    }

    /// Writes what is pending. An earlier failure comes to light here: the host's run went on.
    pub fn finish(mut self) -> io::Result<()> {
        while !self.first.is_empty() {
            self.write_next();
        }
        let flushed = self.writer.flush();
        self.failure.map_or(flushed, Err)
    }

    /// Writes the oldest record.
    fn write_next(&mut self) {
        let Some(mut first) = self.first.peek_mut() else { return };
        let Reverse(((at, _, number), link)) = *first;
        let of_link = &mut self.pending[link as usize];
        of_link.pop_front();
        match of_link.front() {
            Some(next) => first.0.0 = *next,
            None => drop(PeekMut::pop(first)),
        }
        self.free.push(number);
        if self.failure.is_none() {
            let Record { original, headers } = &self.records[number as usize];
            self.failure = self.writer.packet(link, at, u32::from(*original), headers).err();
        }
    }
}
