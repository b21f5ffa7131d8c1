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
    pending: BinaryHeap<Reverse<Record>>,
    records: u64,
    /// A record may be reported this much after its time.
    slack: u64,
    failure: Option<io::Error>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Record {
    at: u64,
    order: u64,
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
        Ok(Trace { writer, pending: BinaryHeap::new(), records: 0, slack, failure: None })
    }

    /// At `now`: the transmission of a packet of `original` bytes, which begins with `headers` from IPv4's on, starts on `link` at
    /// `start`.
    pub fn transmit(&mut self, now: u64, link: u32, start: u64, original: u16, headers: Vec<u8>) {
        self.pending.push(Reverse(Record { at: start, order: self.records, link, original, headers }));
        self.records += 1;
        let watermark = now.saturating_sub(self.slack);
        while self.pending.peek().is_some_and(|Reverse(record)| record.at < watermark) {
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
        let Some(Reverse(record)) = self.pending.pop() else { return };
        if self.failure.is_none() {
            self.failure =
                self.writer.packet(record.link, record.at, u32::from(record.original), &record.headers).err();
        }
    }
}
