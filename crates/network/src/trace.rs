//! A packet trace: the packets that cross links, as pcapng that Wireshark opens, in the order of time.
//!
//! Each link is an interface of the capture. A packet is stamped with the start of its transmission. Hosts report packets as
//! they learn of them, which may be before or after that moment.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};

use aqumen_capture::{IPV4, Writer};

/// A packet trace under way.
#[derive(Debug)]
pub struct Trace<W> {
    writer: Writer<W>,
    /// Records whose turn to be written has not come, by time, then in the order in which they were reported.
    pending: BinaryHeap<Reverse<Pending>>,
    reported: u64,
    /// The records, and which of them are free: their room is used again.
    records: Vec<Record>,
    free: Vec<u32>,
    /// A record may be reported this much after its time.
    slack: u64,
    failure: Option<io::Error>,
}

/// A record by its time, then the order of reports, and where it is.
type Pending = (u64, u64, u32);

#[derive(Debug, Default)]
struct Record {
    link: u32,
    original: u16,
    headers: Vec<u8>,
}

impl<W: Write> Trace<W> {
    /// Begins a trace of the links of these names, by number, in `out`, which should have a buffer. A transmission is reported
    /// at most `slack` nanoseconds after its start.
    pub fn new<'a>(out: W, links: impl IntoIterator<Item = &'a str>, slack: u64) -> io::Result<Self> {
        let mut writer = Writer::new(out)?;
        for link in links {
            writer.interface(IPV4, Some(link))?;
        }
        let (pending, records, free) = (BinaryHeap::new(), Vec::new(), Vec::new());
        Ok(Trace { writer, pending, reported: 0, records, free, slack, failure: None })
    }

    /// At `now`: the transmission of a packet of `original` bytes starts on `link` at `start`. `write` puts down its headers, from
    /// IPv4's on.
    pub fn transmit(&mut self, now: u64, link: u32, start: u64, original: u16, write: impl FnOnce(&mut Vec<u8>)) {
        let number = self.free.pop().unwrap_or_else(|| {
            self.records.push(Record::default());
            (self.records.len() - 1) as u32
        });
        let record = &mut self.records[number as usize];
        (record.link, record.original) = (link, original);
        record.headers.clear();
        write(&mut record.headers);
        self.pending.push(Reverse((start, self.reported, number)));
        self.reported += 1;
        let watermark = now.saturating_sub(self.slack);
        while self.pending.peek().is_some_and(|Reverse((at, ..))| *at < watermark) {
            self.write_next();
        }
    }

    /// Writes what is pending. An earlier failure comes to light here: the host's run went on.
    pub fn finish(mut self) -> io::Result<()> {
        while !self.pending.is_empty() {
            self.write_next();
        }
        let flushed = self.writer.flush();
        self.failure.map_or(flushed, Err)
    }

    /// Writes the oldest record.
    fn write_next(&mut self) {
        let Some(Reverse((at, _, number))) = self.pending.pop() else { return };
        self.free.push(number);
        if self.failure.is_none() {
            let Record { link, original, headers } = &self.records[number as usize];
            self.failure = self.writer.packet(*link, at, u32::from(*original), headers).err();
        }
    }
}
