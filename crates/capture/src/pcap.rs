//! The pcap format (draft-ietf-opsawg-pcap): a file header, then a header of 16 bytes before each packet.

use std::io::Read;

use crate::Error;
use crate::format::{Order, ReadOutcome, RecordSpan, check_lengths, failed};
use crate::window::Window;

pub(crate) struct Pcap {
    order: Order,
    /// Nanoseconds of a unit of the fraction of a second.
    unit_ns: i64,
    link: u16,
}

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const HEADER_BYTES: usize = 24;
const RECORD_BYTES: usize = 16;

impl Pcap {
    pub(crate) fn knows(magic: &[u8]) -> bool {
        Pcap::order_and_unit(magic).is_some()
    }

    fn order_and_unit(magic: &[u8]) -> Option<(Order, i64)> {
        let magic: [u8; 4] = magic.try_into().ok()?;
        [(Order::Big, u32::from_be_bytes(magic)), (Order::Little, u32::from_le_bytes(magic))].into_iter().find_map(
            |(order, magic)| match magic {
                MICROSECONDS => Some((order, 1000)),
                NANOSECONDS => Some((order, 1)),
                _ => None,
            },
        )
    }

    pub(crate) fn open<R: Read>(window: &mut Window<R>) -> Result<Self, Error> {
        if !window.fill(HEADER_BYTES).map_err(failed)? {
            return Err(Error::at(0, "a pcap that ends within its header"));
        }
        let header = &window.bytes()[..HEADER_BYTES];
        let (order, unit_ns) =
            Pcap::order_and_unit(&header[..4]).ok_or_else(|| Error::whole("not a pcap or pcapng"))?;
        let major = order.u16(header, 4);
        if major != 2 {
            return Err(Error::at(4, format!("a pcap of version {major}; version 2 is understood")));
        }
        // The upper bits say how long the frame check sequence is.
        let link = order.u32(header, 20) as u16;
        window.skip(HEADER_BYTES as u64).map_err(failed)?;
        Ok(Pcap { order, unit_ns, link })
    }

    #[inline]
    pub(crate) fn next<R: Read>(&mut self, window: &mut Window<R>) -> Result<ReadOutcome, Error> {
        if !window.fill(RECORD_BYTES).map_err(failed)? {
            return Ok(if window.bytes().is_empty() { ReadOutcome::End } else { ReadOutcome::CutOff });
        }
        let at = window.offset();
        let word = |i: usize| self.order.u32(window.bytes(), 4 * i);
        let (seconds, fraction, captured, original) = (word(0), word(1), word(2), word(3));
        check_lengths(at, captured, original)?;
        let length = RECORD_BYTES + captured as usize;
        if !window.fill(length).map_err(failed)? {
            return Ok(ReadOutcome::CutOff);
        }
        // Below 2^32 * 1e9 + 2^32 * 1000: fits.
        let at_ns = i64::from(seconds) * 1_000_000_000 + i64::from(fraction) * self.unit_ns;
        let data = RECORD_BYTES..length;
        Ok(ReadOutcome::Record(RecordSpan {
            at_ns,
            interface: 0,
            link: self.link,
            original,
            data,
            length: length as u64,
        }))
    }
}
