//! The pcapng format (draft-ietf-opsawg-pcapng): blocks, each with its type and its length before and behind it.
//!
//! Sections may differ in byte order; each describes its own interfaces. Blocks without packets are skipped without
//! being held. Deviation: simple packet blocks, which have no time, are counted and left out.

use std::io::Read;

use crate::Error;
use crate::format::{LENGTH_MAX, Order, ReadOutcome, RecordSpan, check_lengths, failed};
use crate::window::Window;

#[derive(Default)]
pub(crate) struct Pcapng {
    order: Order,
    interfaces: Vec<Interface>,
    /// Number of simple packet blocks.
    pub(crate) timeless: u64,
}

#[derive(Clone, Copy)]
struct Interface {
    link: u16,
    clock: Clock,
}

/// Time unit of an interface.
#[derive(Clone, Copy)]
struct Clock {
    units_per_second: u128,
    offset_s: i64,
    /// Nanoseconds per unit, if that is an integer.
    unit_ns: Option<u32>,
}

pub(crate) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
pub(crate) const INTERFACE_DESCRIPTION: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
pub(crate) const ENHANCED_PACKET: u32 = 6;

pub(crate) const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// Bytes of a packet block before its data, and of its trailing length.
const BEFORE_DATA: u32 = 28;
const TRAILER: u32 = 4;
/// Interfaces of one section.
const INTERFACES_MAX: usize = 65_536;

impl Pcapng {
    pub(crate) fn knows(magic: &[u8]) -> bool {
        magic == SECTION_HEADER.to_be_bytes()
    }

    #[inline]
    pub(crate) fn next<R: Read>(&mut self, window: &mut Window<R>) -> Result<ReadOutcome, Error> {
        loop {
            if !window.fill(12).map_err(failed)? {
                return Ok(if window.bytes().is_empty() { ReadOutcome::End } else { ReadOutcome::CutOff });
            }
            let at = window.offset();
            let head = &window.bytes()[..12];
            let section = head[..4] == SECTION_HEADER.to_be_bytes();
            if section {
                self.order = byte_order(head, at)?;
            }
            let kind = if section { SECTION_HEADER } else { self.order.u32(head, 0) };
            let length = self.order.u32(head, 4);
            if length < 12 || !length.is_multiple_of(4) {
                let message = format!("a block of {length} bytes; a block has at least 12, in fours");
                return Err(Error::at(at, message));
            }
            let matters = matches!(
                kind,
                SECTION_HEADER | INTERFACE_DESCRIPTION | OBSOLETE_PACKET | SIMPLE_PACKET | ENHANCED_PACKET
            );
            if !matters {
                // A block of no interest may have any size.
                if !window.skip(u64::from(length - TRAILER)).map_err(failed)? || !window.fill(4).map_err(failed)? {
                    return Ok(ReadOutcome::CutOff);
                }
                self.same_length(window.bytes(), 0, length, at)?;
                window.skip(u64::from(TRAILER)).map_err(failed)?;
                continue;
            }
            if length > LENGTH_MAX + BEFORE_DATA + TRAILER {
                let message = format!("a block of {length} bytes; at most {LENGTH_MAX} of data are accepted");
                return Err(Error::at(at, message));
            }
            if !window.fill(length as usize).map_err(failed)? {
                return Ok(ReadOutcome::CutOff);
            }
            let block = &window.bytes()[..length as usize];
            self.same_length(block, (length - TRAILER) as usize, length, at)?;
            match kind {
                ENHANCED_PACKET | OBSOLETE_PACKET => return self.packet(kind, block, at).map(ReadOutcome::Record),
                SECTION_HEADER => self.begin_section(block, at)?,
                INTERFACE_DESCRIPTION => self.describe(block, at)?,
                _ => self.timeless += 1,
            }
            window.skip(u64::from(length)).map_err(failed)?;
        }
    }

    fn same_length(&self, bytes: &[u8], place: usize, length: u32, at: u64) -> Result<(), Error> {
        let again = self.order.u32(bytes, place);
        if again == length {
            return Ok(());
        }
        Err(Error::at(at, format!("a block whose length is {length} bytes before it and {again} behind it")))
    }

    fn begin_section(&mut self, block: &[u8], at: u64) -> Result<(), Error> {
        if block.len() < 28 {
            return Err(Error::at(at, format!("a section header of {} bytes; it has at least 28", block.len())));
        }
        let major = self.order.u16(block, 12);
        if major != 1 {
            return Err(Error::at(at, format!("a pcapng of version {major}; version 1 is understood")));
        }
        self.interfaces.clear();
        Ok(())
    }

    fn describe(&mut self, block: &[u8], at: u64) -> Result<(), Error> {
        let number = self.interfaces.len();
        if number == INTERFACES_MAX {
            return Err(Error::at(at, format!("more than {INTERFACES_MAX} interfaces")));
        }
        if block.len() < 20 {
            return Err(Error::at(
                at,
                format!("an interface description of {} bytes; it has at least 20", block.len()),
            ));
        }
        let (mut resolution, mut offset_s) = (6u8, 0i64);
        let end = block.len() - TRAILER as usize;
        let mut options = &block[16..end];
        while options.len() >= 4 {
            let (code, length) = (self.order.u16(options, 0), self.order.u16(options, 2) as usize);
            if code == 0 {
                break;
            }
            let padded = 4 + length.next_multiple_of(4);
            if padded > options.len() {
                return Err(Error::at(at, format!("interface {number}: option {code} runs past the end of its block")));
            }
            match (code, length) {
                (9, 1) => resolution = options[4],
                (14, 8) => {
                    let (first, second) = (self.order.u32(options, 4), self.order.u32(options, 8));
                    let (high, low) = if self.order == Order::Big { (first, second) } else { (second, first) };
                    offset_s = (u64::from(high) << 32 | u64::from(low)) as i64;
                }
                (9 | 14, _) => {
                    return Err(Error::at(at, format!("interface {number}: option {code} of {length} bytes")));
                }
                _ => {}
            }
            options = &options[padded..];
        }
        let clock = Clock::new(resolution, offset_s)
            .ok_or_else(|| Error::at(at, format!("interface {number}: no clock has if_tsresol {resolution:#04x}")))?;
        self.interfaces.push(Interface { link: self.order.u16(block, 8), clock });
        Ok(())
    }

    fn packet(&self, kind: u32, block: &[u8], at: u64) -> Result<RecordSpan, Error> {
        let length = block.len() as u32;
        if length < BEFORE_DATA + TRAILER {
            return Err(Error::at(at, format!("a packet block of {length} bytes; it has at least 32")));
        }
        // An obsolete packet has 16 bits of interface and 16 of a drop count there.
        let interface =
            if kind == OBSOLETE_PACKET { u32::from(self.order.u16(block, 8)) } else { self.order.u32(block, 8) };
        let word = |place: usize| self.order.u32(block, place);
        let (units, captured, original) = (u64::from(word(12)) << 32 | u64::from(word(16)), word(20), word(24));
        check_lengths(at, captured, original)?;
        if captured > length - BEFORE_DATA - TRAILER {
            return Err(Error::at(at, format!("a packet of {captured} captured bytes in a block of {length}")));
        }
        let Some(Interface { link, clock }) = self.interfaces.get(interface as usize) else {
            return Err(Error::at(
                at,
                format!("a packet of interface {interface}, which no block before it describes"),
            ));
        };
        let Some(at_ns) = clock.nanoseconds(units) else {
            return Err(Error::at(at, format!("a packet whose time of {units} units lies beyond the year 2262")));
        };
        let data = BEFORE_DATA as usize..(BEFORE_DATA + captured) as usize;
        Ok(RecordSpan { at_ns, interface, link: *link, original, data, length: u64::from(length) })
    }
}

/// Returns the byte order that a section header declares.
fn byte_order(head: &[u8], at: u64) -> Result<Order, Error> {
    [Order::Big, Order::Little]
        .into_iter()
        .find(|order| order.u32(head, 8) == BYTE_ORDER)
        .ok_or_else(|| Error::at(at, "a section header without a byte-order magic"))
}

impl Clock {
    /// Makes a clock of resolution `if_tsresol`: a negative power of 10, or of 2 if the highest bit is set.
    fn new(resolution: u8, offset_s: i64) -> Option<Self> {
        let exponent = u32::from(resolution & 0x7f);
        let units_per_second =
            if resolution & 0x80 == 0 { 10u128.checked_pow(exponent)? } else { 1u128.checked_shl(exponent)? };
        let unit_ns = (1_000_000_000 % units_per_second == 0).then(|| (1_000_000_000 / units_per_second) as u32);
        Some(Clock { units_per_second, offset_s, unit_ns })
    }

    /// Returns the time of `units` in nanoseconds.
    #[inline]
    fn nanoseconds(&self, units: u64) -> Option<i64> {
        let since = match self.unit_ns {
            Some(unit_ns) => i128::from(units) * i128::from(unit_ns),
            None => {
                let whole = u128::from(units) / self.units_per_second;
                // Of less than a second, at most 2^64 units: the product fits.
                let fraction = u128::from(units) % self.units_per_second * 1_000_000_000 / self.units_per_second;
                (whole * 1_000_000_000 + fraction) as i128
            }
        };
        i64::try_from(since + i128::from(self.offset_s) * 1_000_000_000).ok()
    }
}
