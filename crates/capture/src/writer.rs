//! Writer of pcapng (draft-ietf-opsawg-pcapng): one section, nanosecond times, little endian on every machine.

use std::io::{self, Write};

use crate::pcapng::{BYTE_ORDER, ENHANCED_PACKET, INTERFACE_DESCRIPTION, SECTION_HEADER};

/// The link type of packets that begin with their IPv4 header (LINKTYPE_IPV4).
pub const IPV4: u16 = 228;

const OPTION_END: u16 = 0;
const OPTION_NAME: u16 = 2;
const OPTION_RESOLUTION: u16 = 9;
/// Units of 10^-9 s.
const NANOSECONDS: [u8; 1] = [9];

/// Writer of packets of interfaces that were described before.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    interfaces: u32,
    /// Block being written; its memory is reused.
    block: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins a capture in `out`, which should be buffered.
    pub fn new(out: W) -> io::Result<Self> {
        let mut writer = Writer { out, interfaces: 0, block: Vec::new() };
        writer.begin(SECTION_HEADER);
        writer.word(BYTE_ORDER);
        writer.word(1); // version 1.0
        writer.block.extend([0xff; 8]); // the section's length is not told
        writer.end()?;
        Ok(writer)
    }

    /// Describes an interface whose packets begin with a header of link type `link`; returns its number, from 0.
    pub fn interface(&mut self, link: u16, name: Option<&str>) -> io::Result<u32> {
        self.begin(INTERFACE_DESCRIPTION);
        self.word(u32::from(link));
        self.word(0); // packets are cut at no length
        if let Some(name) = name {
            // Its length has 16 bits.
            let most = (0..=name.len().min(65_000)).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
            self.option(OPTION_NAME, &name.as_bytes()[..most]);
        }
        self.option(OPTION_RESOLUTION, &NANOSECONDS);
        self.option(OPTION_END, &[]);
        self.end()?;
        self.interfaces += 1;
        Ok(self.interfaces - 1)
    }

    /// Writes a packet of `original` bytes at `at_ns` nanoseconds since 1970, of which `data` was captured.
    pub fn packet(&mut self, interface: u32, at_ns: u64, original: u32, data: &[u8]) -> io::Result<()> {
        // The head of the block at once, since captures are long; its length is known at the end.
        let head = [ENHANCED_PACKET, 0, interface, (at_ns >> 32) as u32, at_ns as u32, data.len() as u32, original];
        self.block.clear();
        self.block.extend_from_slice(head.map(u32::to_le_bytes).as_flattened());
        self.padded(data);
        self.end()
    }

    /// Flushes all buffers.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.word(kind);
        self.word(0); // its length, known at the end
    }

    fn end(&mut self) -> io::Result<()> {
        let length = (self.block.len() as u32 + 4).to_le_bytes();
        self.block[4..8].copy_from_slice(&length);
        self.block.extend(length);
        self.out.write_all(&self.block)
    }

    fn word(&mut self, word: u32) {
        self.block.extend(word.to_le_bytes());
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.block.extend(code.to_le_bytes());
        self.block.extend((value.len() as u16).to_le_bytes());
        self.padded(value);
    }

    /// Appends `data`, padded to 32-bit words.
    fn padded(&mut self, data: &[u8]) {
        self.block.extend(data);
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }
}
