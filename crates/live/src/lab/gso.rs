//! Super-packets: the kernel hands over many segments of a connection as one packet. They are split before any queue,
//! and packets that leave together are joined again.
//!
//! A device with virtio-net headers describes with each packet its segments, and where a checksum is still to be filled
//! in (`linux/virtio_net.h`). So a queue sees single segments; only reads and writes are shared. Segments are joined as
//! in the kernel's generic receive offload: in order, equal but for the fields that must differ, and marked ones apart
//! from others.

use super::ip::fold;

/// Header before each packet of such a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    /// Kind of super-packet: [`TCP_V4`], [`TCP_V6`], or 0 for a single packet.
    pub(crate) kind: u8,
    /// Length of the packet's headers, bytes.
    pub(crate) headers: u16,
    /// Payload of each segment but the last, bytes.
    pub(crate) segment: u16,
    /// Checksum that is still to be filled in; zeros: none.
    pub(crate) partial: PartialChecksum,
}

/// Start of a checksum's range, and the offset of the checksum from there; zeros: the checksum is complete.
pub(crate) type PartialChecksum = [u16; 2];

pub(crate) const HEADER_BYTES: usize = 10;
/// Largest packet of such a device, with its header.
pub(crate) const LARGEST_BYTES: usize = HEADER_BYTES + 65_535;

pub(crate) const TCP_V4: u8 = 1;
pub(crate) const TCP_V6: u8 = 4;
/// Flag: the checksum is still to be filled in.
const NEEDS_CHECKSUM: u8 = 1;
/// Bit of the kind: only the first segment may have CWR.
const WITH_CWR: u8 = 0x80;

const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
const ECE: u8 = 0x40;
const CWR: u8 = 0x80;
/// Flags that end a message.
const END_FLAGS: u8 = FIN | PSH;
/// Flags that a segment to be joined may have beside ACK.
const OPTIONAL_FLAGS: u8 = END_FLAGS | ECE;
/// Offset of the checksum in a TCP header.
const TCP_CHECKSUM: usize = 16;

impl Header {
    /// Splits `bytes` into the header and the packet.
    pub(crate) fn read(bytes: &[u8]) -> Option<(Header, &[u8])> {
        let (raw, packet) = bytes.split_at_checked(HEADER_BYTES)?;
        let word = |at: usize| u16::from_ne_bytes([raw[at], raw[at + 1]]);
        let partial = if raw[0] & NEEDS_CHECKSUM != 0 { [word(6), word(8)] } else { [0; 2] };
        Some((Header { kind: raw[1] & !WITH_CWR, headers: word(2), segment: word(4), partial }, packet))
    }

    /// Writes the header to the beginning of `bytes`.
    pub(crate) fn write(&self, bytes: &mut [u8]) {
        bytes[0] = if self.partial == [0; 2] { 0 } else { NEEDS_CHECKSUM };
        bytes[1] = self.kind;
        let words = [self.headers, self.segment, self.partial[0], self.partial[1]];
        for (to, word) in bytes[2..HEADER_BYTES].chunks_exact_mut(2).zip(words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
    }
}

/// Segments of a TCP super-packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segments<'a> {
    packet: &'a [u8],
    transport: usize,
    headers: usize,
    segment: usize,
}

impl<'a> Segments<'a> {
    /// Segments of `packet`; `None` if it is no super-packet, or differs from its header.
    pub(crate) fn new(header: &Header, packet: &'a [u8]) -> Option<Self> {
        let version = match header.kind {
            TCP_V4 => 4,
            TCP_V6 => 6,
            _ => return None,
        };
        let transport = usize::from(header.partial[0]);
        let right = packet.first()? >> 4 == version && transport >= 20 && header.segment > 0;
        let headers = transport + usize::from(packet.get(transport + 12)? >> 4) * 4;
        let fits = headers >= transport + 20 && headers < packet.len() && packet.len() <= 65_535;
        (right && fits).then_some(Segments { packet, transport, headers, segment: header.segment.into() })
    }

    pub(crate) fn count(&self) -> usize {
        (self.packet.len() - self.headers).div_ceil(self.segment)
    }

    /// Writes segment `number` to `to`. Returns its length, or `None` if it does not fit.
    pub(crate) fn write(&self, number: usize, to: &mut [u8]) -> Option<usize> {
        let from = number * self.segment;
        let data = self.packet[self.headers..].get(from..)?;
        let data = &data[..data.len().min(self.segment)];
        let length = self.headers + data.len();
        let to = to.get_mut(..length)?;
        to[..self.headers].copy_from_slice(&self.packet[..self.headers]);
        to[self.headers..].copy_from_slice(data);
        set_length(to, self.transport, self.packet.len());
        if to[0] >> 4 == 4 {
            let identification = u16::from_be_bytes([to[4], to[5]]).wrapping_add(number as u16);
            to[4..6].copy_from_slice(&identification.to_be_bytes());
            set_v4_checksum(to);
        }
        let tcp = &mut to[self.transport..];
        let sequence = sequence(tcp).wrapping_add(from as u32);
        tcp[4..8].copy_from_slice(&sequence.to_be_bytes());
        if number > 0 {
            tcp[13] &= !CWR;
        }
        if number + 1 < self.count() {
            tcp[13] &= !END_FLAGS;
        }
        Some(length)
    }
}

/// Joins packets that leave by one device together. Packets of one connection keep their order.
#[derive(Debug, Default)]
pub(crate) struct Joiner {
    waiting: Vec<JoinedPacket>,
    /// Buffers of packets that were written.
    free: Vec<JoinedPacket>,
}

/// One or more segments to be written at once.
#[derive(Debug, Default)]
struct JoinedPacket {
    /// Space for the header, then the packet.
    bytes: Vec<u8>,
    partial: PartialChecksum,
    /// Time when each segment left the network.
    exits: Vec<u64>,
    /// Set if another segment may follow.
    continuation: Option<Continuation>,
}

/// Properties that the next segment of a connection must have.
#[derive(Clone, Copy, Debug)]
struct Continuation {
    transport: usize,
    headers: usize,
    segment: usize,
    sequence: u32,
}

/// Packets that may wait before they have to be written.
const WAITING_MAX: usize = 64;
/// Number of waiting packets with which a segment is compared, latest first.
const COMPARED_MAX: usize = 16;

impl Joiner {
    /// Adds a packet that left the network at `exit`. Returns whether all waiting packets must be written now.
    pub(crate) fn add(&mut self, packet: &[u8], partial: PartialChecksum, exit: u64) -> bool {
        let segment = Continuation::new(packet, partial);
        if let Some(segment) = &segment {
            let candidates = self.waiting.iter_mut().rev().take(COMPARED_MAX);
            let last = candidates.into_iter().find(|joined| joined.is_same_connection(packet, segment));
            if last.is_some_and(|last| last.append(packet, segment, exit)) {
                return false;
            }
        }
        let mut joined = self.free.pop().unwrap_or_default();
        joined.bytes.clear();
        joined.exits.clear();
        joined.bytes.resize(HEADER_BYTES, 0);
        joined.bytes.extend_from_slice(packet);
        joined.exits.push(exit);
        joined.partial = partial;
        joined.continuation = segment;
        self.waiting.push(joined);
        self.waiting.len() >= WAITING_MAX
    }

    /// Passes all waiting packets to `write`, each with the times when its segments left the network.
    pub(crate) fn flush(&mut self, mut write: impl FnMut(&[u8], &[u64])) {
        for mut joined in self.waiting.drain(..) {
            joined.finish();
            write(&joined.bytes, &joined.exits);
            self.free.push(joined);
        }
    }
}

impl Continuation {
    /// Reads the properties of `packet`; `None` if it cannot be joined.
    fn new(packet: &[u8], partial: PartialChecksum) -> Option<Self> {
        let transport = usize::from(partial[0]);
        let tcp = packet.get(transport..).filter(|tcp| tcp.len() >= 20)?;
        if usize::from(partial[1]) != TCP_CHECKSUM {
            return None;
        }
        let (length, protocol) = match packet[0] >> 4 {
            // No options, may not be fragmented.
            4 if transport == 20 && packet[6] & 0xbf == 0 => (u16::from_be_bytes([packet[2], packet[3]]), packet[9]),
            6 if transport == 40 => (u16::from_be_bytes([packet[4], packet[5]]).saturating_add(40), packet[6]),
            _ => return None,
        };
        let headers = transport + usize::from(tcp[12] >> 4) * 4;
        let plain = protocol == 6 && usize::from(length) == packet.len() && tcp[13] & !OPTIONAL_FLAGS == ACK;
        let data = packet.len().checked_sub(headers).filter(|data| plain && *data > 0 && headers >= transport + 20)?;
        Some(Continuation { transport, headers, segment: data, sequence: sequence(tcp).wrapping_add(data as u32) })
    }
}

impl JoinedPacket {
    fn packet(&self) -> &[u8] {
        &self.bytes[HEADER_BYTES..]
    }

    /// Whether it belongs to the connection of `packet`.
    fn is_same_connection(&self, packet: &[u8], segment: &Continuation) -> bool {
        let joined = self.packet();
        let addresses = if segment.transport == 20 { 12..20 } else { 8..40 };
        let ports = segment.transport..segment.transport + 4;
        joined.first().map(|first| first >> 4) == Some(packet[0] >> 4)
            && joined.get(addresses.clone()) == packet.get(addresses)
            && joined.get(ports.clone()) == packet.get(ports)
    }

    /// Appends the payload of `packet`, if that continues this one.
    fn append(&mut self, packet: &[u8], segment: &Continuation, exit: u64) -> bool {
        let Some(continuation) = self.continuation else { return false };
        let first = segment.sequence.wrapping_sub(segment.segment as u32);
        let follows = continuation.headers == segment.headers
            && continuation.sequence == first
            && segment.segment <= continuation.segment;
        if !follows || self.packet().len() + segment.segment > 65_535 || !alike(self.packet(), packet, segment) {
            return false;
        }
        self.bytes.extend_from_slice(&packet[segment.headers..]);
        self.exits.push(exit);
        let ends = packet[segment.transport + 13] & END_FLAGS;
        self.bytes[HEADER_BYTES + segment.transport + 13] |= ends;
        self.continuation = (segment.segment == continuation.segment)
            .then_some(Continuation { sequence: segment.sequence, ..continuation });
        true
    }

    /// Completes lengths, checksums and header.
    fn finish(&mut self) {
        let (header_bytes, packet) = self.bytes.split_at_mut(HEADER_BYTES);
        let mut header = Header { partial: self.partial, ..Header::default() };
        if self.exits.len() > 1 {
            let transport = usize::from(self.partial[0]);
            let headers = transport + usize::from(packet[transport + 12] >> 4) * 4;
            let v4 = packet[0] >> 4 == 4;
            let length = if v4 {
                u16::from_be_bytes([packet[2], packet[3]])
            } else {
                u16::from_be_bytes([packet[4], packet[5]]) + 40
            };
            set_length(packet, transport, length.into());
            if v4 {
                set_v4_checksum(packet);
            }
            header.kind = if v4 { TCP_V4 } else { TCP_V6 };
            header.headers = headers as u16;
            header.segment = length - headers as u16;
        }
        header.write(header_bytes);
    }
}

/// Whether two segments differ only in length, identification, checksums, sequence number, and the end of a message.
fn alike(one: &[u8], other: &[u8], segment: &Continuation) -> bool {
    let t = segment.transport;
    let same = |from: usize, to: usize| one[from..to] == other[from..to];
    let network = if t == 20 { same(0, 2) && same(6, 10) && same(12, 20) } else { same(0, 4) && same(6, 40) };
    // Nothing may follow the end of a message.
    let flags = one[t + 13] == other[t + 13] & !END_FLAGS;
    network && same(t, t + 4) && same(t + 8, t + 13) && flags && same(t + 14, t + 16) && same(t + 18, segment.headers)
}

fn sequence(tcp: &[u8]) -> u32 {
    u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]])
}

/// Sets the lengths in the headers of `packet`, formerly `before` bytes long, and in its partial checksum.
fn set_length(packet: &mut [u8], transport: usize, before: usize) {
    let length = packet.len() as u16;
    if packet[0] >> 4 == 4 {
        packet[2..4].copy_from_slice(&length.to_be_bytes());
    } else {
        packet[4..6].copy_from_slice(&(length - 40).to_be_bytes());
    }
    let at = transport + TCP_CHECKSUM;
    let (old, new) = ((before - transport) as u16, length - transport as u16);
    let sum = u32::from(u16::from_be_bytes([packet[at], packet[at + 1]])) + u32::from(!old) + u32::from(new);
    packet[at..at + 2].copy_from_slice(&fold(sum).to_be_bytes());
}

/// Computes the checksum of an IPv4 header.
fn set_v4_checksum(packet: &mut [u8]) {
    packet[10..12].fill(0);
    let header = &packet[..usize::from(packet[0] & 15) * 4];
    let sum = header.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let checksum = !fold(sum);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
mod tests;
