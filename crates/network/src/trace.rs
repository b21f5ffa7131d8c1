//! Packet traces: the packets that cross links, in the order of time, as pcapng for Wireshark.
//!
//! Each link is an interface of the capture. A packet is stamped with the start of its transmission. Hosts report
//! packets as they learn of them, which may be before or after that moment.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};
use std::io::{self, Write};

use aqumen_capture::{IPV4, Writer};

/// A packet trace that is being written.
#[derive(Debug)]
pub struct Trace<W> {
    writer: Writer<W>,
    /// Records of each link that are not written yet, in order.
    pending: Vec<VecDeque<Pending>>,
    /// First pending record of each link, by time, then by order of report.
    first: BinaryHeap<Reverse<(Pending, u32)>>,
    reported: u64,
    /// Records.
    records: Vec<Record>,
    /// Numbers of records that may be reused.
    free: Vec<u32>,
    /// Longest time between a record's time and its report, nanoseconds.
    slack: u64,
    write_error: Option<io::Error>,
}

/// Order of a record (time, then number of its report), and its index.
type Pending = (u64, u64, u32);

#[derive(Debug, Default)]
struct Record {
    original: u16,
    headers: Vec<u8>,
}

impl<W: Write> Trace<W> {
    /// Begins a trace of these links in `out`, which should be buffered. A transmission is reported at most `slack`
    /// nanoseconds after its start.
    pub fn new<'a>(out: W, links: impl IntoIterator<Item = &'a str>, slack: u64) -> io::Result<Self> {
        let mut writer = Writer::new(out)?;
        let mut pending = Vec::new();
        for link in links {
            writer.interface(IPV4, Some(link))?;
            pending.push(VecDeque::new());
        }
        let (first, records, free) = (BinaryHeap::new(), Vec::new(), Vec::new());
        Ok(Trace { writer, pending, first, reported: 0, records, free, slack, write_error: None })
    }

    /// Reports at `now` that the transmission of a packet of `original` bytes starts on `link` at `start`. Reports of
    /// one link are in the order of `start`. `write` writes the headers, from IPv4's on.
    pub fn transmit(&mut self, now: u64, link: u32, start: u64, original: u16, write: impl FnOnce(&mut Vec<u8>)) {
        let number = self.free.pop().unwrap_or_else(|| {
            self.records.push(Record::default());
            (self.records.len() - 1) as u32
        });
        let record = &mut self.records[number as usize];
        record.original = original;
        record.headers.clear();
        write(&mut record.headers);
        let (record, queue) = ((start, self.reported, number), &mut self.pending[link as usize]);
        debug_assert!(queue.back().is_none_or(|before| *before < record), "a link sends one packet after the other");
        queue.push_back(record);
        if queue.len() == 1 {
            self.first.push(Reverse((record, link)));
        }
        self.reported += 1;
        let watermark = now.saturating_sub(self.slack);
        while self.first.peek().is_some_and(|Reverse(((at, ..), _))| *at < watermark) {
            self.write_next();
        }
    }

    /// Writes the pending records. Returns an earlier write error too, which did not stop the run.
    pub fn finish(mut self) -> io::Result<()> {
        while !self.first.is_empty() {
            self.write_next();
        }
        let flushed = self.writer.flush();
        self.write_error.map_or(flushed, Err)
    }

    /// Writes the oldest record.
    fn write_next(&mut self) {
        let Some(mut first) = self.first.peek_mut() else { return };
        let Reverse(((at, _, number), link)) = *first;
        let queue = &mut self.pending[link as usize];
        queue.pop_front();
        match queue.front() {
            Some(next) => first.0.0 = *next,
            None => drop(PeekMut::pop(first)),
        }
        self.free.push(number);
        if self.write_error.is_none() {
            let Record { original, headers } = &self.records[number as usize];
            self.write_error = self.writer.packet(link, at, u32::from(*original), headers).err();
        }
    }
}
