//! Common parts of the capture formats: records, checks of lengths, byte order.

use std::io;
use std::ops::Range;

use crate::Error;
use crate::input::Unpacking;

/// Longest packet, captured or original, and longest block that is read as a whole, bytes. Network captures have at
/// most 256 KiB per packet.
pub const LENGTH_MAX: u32 = 16 << 20;

/// Location of a record within the window.
pub(crate) struct RecordSpan {
    pub(crate) at_ns: i64,
    pub(crate) interface: u32,
    pub(crate) link: u16,
    pub(crate) original: u32,
    /// Position of its data, from the start of the window.
    pub(crate) data: Range<usize>,
    /// Bytes of the whole record.
    pub(crate) length: u64,
}

/// Result of reading the next record.
pub(crate) enum ReadOutcome {
    Record(RecordSpan),
    /// The file ends where a record could begin.
    End,
    /// The file ends within a record.
    CutOff,
}

pub(crate) fn failed(error: io::Error) -> Error {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Unpacking>()) {
        Some(fault) => Error::whole(fault.to_string()),
        None => Error::whole(format!("cannot be read: {error}")),
    }
}

/// Checks the lengths that a record declares.
pub(crate) fn check_lengths(at: u64, captured: u32, original: u32) -> Result<(), Error> {
    match [("captured", captured), ("original", original)].into_iter().find(|(_, length)| *length > LENGTH_MAX) {
        Some((which, length)) => Err(Error::at(
            at,
            format!("a packet of {length} bytes ({which} length); at most {LENGTH_MAX} are accepted"),
        )),
        None => Ok(()),
    }
}

/// Words of a file in its byte order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Order {
    Big,
    #[default]
    Little,
}

impl Order {
    #[inline]
    pub(crate) fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let word = [bytes[at], bytes[at + 1]];
        if self == Order::Big { u16::from_be_bytes(word) } else { u16::from_le_bytes(word) }
    }

    #[inline]
    pub(crate) fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let word = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        if self == Order::Big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
    }
}
