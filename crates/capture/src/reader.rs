//! Reader of captures in either format.

use std::io::Read;

use crate::Error;
use crate::format::{ReadOutcome, RecordSpan, failed};
use crate::pcap::Pcap;
use crate::pcapng::Pcapng;
use crate::window::Window;

/// A packet of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Time of capture: nanoseconds since 1970, or since another epoch.
    pub at_ns: i64,
    /// Number of the interface within its pcapng section, from 0.
    pub interface: u32,
    /// Link type: a number of the LINKTYPE_ registry.
    pub link: u16,
    /// Original length, bytes; `data` may hold fewer.
    pub original: u32,
    /// Captured bytes.
    pub data: &'a [u8],
}

/// Reader of a capture's packets, one after the other.
pub struct Reader<R> {
    window: Window<R>,
    format: Format,
    /// Length of the record returned last, which is still in the window.
    taken: u64,
    packets: u64,
    cut_off: bool,
}

enum Format {
    Pcap(Pcap),
    Pcapng(Pcapng),
}

/// Returns whether these first four bytes are those of a pcap or pcapng file.
pub fn is_capture(magic: &[u8]) -> bool {
    Pcap::knows(magic) || Pcapng::knows(magic)
}

/// Returns whether these first four bytes are those of a gzip, zstd, xz or lz4 file.
pub fn is_compressed(magic: &[u8]) -> bool {
    magic.starts_with(&[0x1f, 0x8b])
        || [[0x28, 0xb5, 0x2f, 0xfd], [0xfd, 0x37, 0x7a, 0x58], [0x04, 0x22, 0x4d, 0x18]].iter().any(|m| magic == m)
}

impl<R: Read> Reader<R> {
    /// Reads the file header.
    pub fn new(input: R) -> Result<Self, Error> {
        let mut window = Window::new(input);
        window.fill(4).map_err(failed)?;
        let magic = &window.bytes()[..window.bytes().len().min(4)];
        let format = if Pcap::knows(magic) {
            Format::Pcap(Pcap::open(&mut window)?)
        } else if Pcapng::knows(magic) {
            Format::Pcapng(Pcapng::default())
        } else {
            return Err(Error::whole(match magic {
                [] => "the file is empty",
                magic if is_compressed(magic) => "it is compressed; unpack it first",
                _ => "not a pcap or pcapng",
            }));
        };
        Ok(Reader { window, format, taken: 0, packets: 0, cut_off: false })
    }

    /// Returns the next packet; `None` after the last. No packets follow an error.
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, Error> {
        // The window holds all of it.
        self.window.skip(self.taken).map_err(failed)?;
        self.taken = 0;
        if self.cut_off {
            return Ok(None);
        }
        let next = match &mut self.format {
            Format::Pcap(pcap) => pcap.next(&mut self.window)?,
            Format::Pcapng(pcapng) => pcapng.next(&mut self.window)?,
        };
        match next {
            ReadOutcome::Record(found) => {
                self.packets += 1;
                self.taken = found.length;
                let RecordSpan { at_ns, interface, link, original, data, .. } = found;
                let data = &self.window.bytes()[data];
                // Some writers leave the original length out.
                let original = original.max(data.len() as u32);
                Ok(Some(Record { at_ns, interface, link, original, data }))
            }
            ReadOutcome::End => Ok(None),
            ReadOutcome::CutOff => {
                self.cut_off = true;
                Ok(None)
            }
        }
    }

    /// Returns whether the file ends within a record, as an interrupted capture does. Known at the end.
    pub fn is_cut_off(&self) -> bool {
        self.cut_off
    }

    /// Returns the number of packets without a time (simple packet blocks), which are left out.
    pub fn timeless(&self) -> u64 {
        match &self.format {
            Format::Pcap(_) => 0,
            Format::Pcapng(pcapng) => pcapng.timeless,
        }
    }

    /// Returns the number of bytes read.
    pub fn position(&self) -> u64 {
        self.window.offset() + self.taken
    }

    /// Returns the input.
    pub fn input(&self) -> &R {
        self.window.input()
    }

    /// Returns the number of packets returned so far.
    pub fn packets(&self) -> u64 {
        self.packets
    }
}
