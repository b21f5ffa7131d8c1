//! The reader of captures, whichever format they have.

use std::io::Read;

use crate::Error;
use crate::format::{Found, Next, failed};
use crate::pcap::Pcap;
use crate::pcapng::Pcapng;
use crate::window::Window;

/// A packet of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// When it was seen: nanoseconds since 1970, or since any other epoch.
    pub at_ns: i64,
    /// The interface that saw it, from 0, as it is numbered in its section of a pcapng.
    pub interface: u32,
    /// Its outermost protocol, a number of the LINKTYPE_ registry.
    pub link: u16,
    /// Its length when it was seen, bytes; of these `data` may hold only the first.
    pub original: u32,
    /// What was captured of it.
    pub data: &'a [u8],
}

/// Reads the packets of a capture one after the other.
pub struct Reader<R> {
    window: Window<R>,
    format: Format,
    /// Bytes of the record handed out last, which are still at hand.
    taken: u64,
    packets: u64,
    cut_off: bool,
}

enum Format {
    Pcap(Pcap),
    Pcapng(Pcapng),
}

/// Whether a file that begins with these four bytes says that it is a pcap or a pcapng.
pub fn is_capture(magic: &[u8]) -> bool {
    Pcap::knows(magic) || Pcapng::knows(magic)
}

/// Whether a file that begins with these four bytes is compressed by gzip, zstd, xz or lz4.
pub fn is_compressed(magic: &[u8]) -> bool {
    magic.starts_with(&[0x1f, 0x8b])
        || [[0x28, 0xb5, 0x2f, 0xfd], [0xfd, 0x37, 0x7a, 0x58], [0x04, 0x22, 0x4d, 0x18]].iter().any(|m| magic == m)
}

impl<R: Read> Reader<R> {
    /// Reads what every capture begins with.
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

    /// The next packet; `None` after the last. After an error nothing more is to be expected.
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
            Next::Record(found) => {
                self.packets += 1;
                self.taken = found.length;
                let Found { at_ns, interface, link, original, data, .. } = found;
                let data = &self.window.bytes()[data];
                // Some writers leave the original length out.
                let original = original.max(data.len() as u32);
                Ok(Some(Record { at_ns, interface, link, original, data }))
            }
            Next::End => Ok(None),
            Next::CutOff => {
                self.cut_off = true;
                Ok(None)
            }
        }
    }

    /// Whether the file ends within a record, as a capture does that was interrupted. Known at the end.
    pub fn is_cut_off(&self) -> bool {
        self.cut_off
    }

    /// Packets of a pcapng that carry no time (simple packet blocks), and so were left out.
    pub fn timeless(&self) -> u64 {
        match &self.format {
            Format::Pcap(_) => 0,
            Format::Pcapng(pcapng) => pcapng.timeless,
        }
    }

    /// Bytes of the file that are behind.
    pub fn position(&self) -> u64 {
        self.window.offset() + self.taken
    }

    /// The stream that is read.
    pub fn input(&self) -> &R {
        self.window.input()
    }

    /// Packets handed out.
    pub fn packets(&self) -> u64 {
        self.packets
    }
}
