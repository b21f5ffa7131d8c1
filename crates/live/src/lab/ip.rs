//! Fields of IP packets that the laboratory reads and writes: addresses, the ECN field, pure acknowledgements.
//!
//! Packets come from this machine's kernel, whole and with correct lengths; truncated ones are handled all the same.

use aqumen_aqm::{PureAck, SackDigest};
use aqumen_units::Ecn;

const TCP: u8 = 6;
/// Headers of a UDP datagram over IPv4, bytes.
pub(crate) const UDP_HEADER_BYTES: u16 = 28;
/// Longest TCP packet without data: 60 bytes of IP and 60 of TCP.
const DATALESS_BYTES_MAX: usize = 120;

#[inline]
pub(crate) fn v4_addresses(packet: &[u8]) -> Option<([u8; 4], [u8; 4])> {
    let header = packet.get(..20).filter(|header| header[0] >> 4 == 4)?;
    Some((header[12..16].try_into().ok()?, header[16..20].try_into().ok()?))
}

#[inline]
pub(crate) fn ecn(packet: &[u8]) -> Option<Ecn> {
    let header = packet.get(..20)?;
    match header[0] >> 4 {
        4 => Some(Ecn::from_bits(header[1])),
        6 => Some(Ecn::from_bits(header[1] >> 4)),
        _ => None,
    }
}

/// Sets CE, and updates the checksum of IPv4 (RFC 1624, equation 3).
#[inline]
pub(crate) fn set_ce(packet: &mut [u8]) {
    let Some(version) = packet.get(..20).map(|header| header[0] >> 4) else { return };
    match version {
        4 => {
            let before = u16::from_be_bytes([packet[0], packet[1]]);
            packet[1] |= 3;
            let after = u16::from_be_bytes([packet[0], packet[1]]);
            let sum = !u16::from_be_bytes([packet[10], packet[11]]);
            let sum = u32::from(sum) + u32::from(!before) + u32::from(after);
            packet[10..12].copy_from_slice(&(!fold(sum)).to_be_bytes());
        }
        6 => packet[1] |= 3 << 4,
        _ => {}
    }
}

/// Folds the carries of a sum of 16-bit words, as in the Internet checksum.
pub(super) fn fold(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

/// Pure acknowledgement in an IPv4 packet: TCP without data, and no flags but ACK, ECE and CWR.
pub(crate) fn pure_ack(packet: &[u8]) -> Option<PureAck> {
    if packet.len() > DATALESS_BYTES_MAX || packet.len() < 40 || packet[0] >> 4 != 4 || packet[9] != TCP {
        return None;
    }
    let tcp = packet.get(usize::from(packet[0] & 15) * 4..).filter(|tcp| tcp.len() >= 20)?;
    let (flags, header) = (tcp[13], usize::from(tcp[12] >> 4) * 4);
    // ACK, and at most ECE and CWR beside it; the header is the whole segment.
    if flags & !0xc0 != 0x10 || header != tcp.len() {
        return None;
    }
    let long = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_be_bytes);
    let number = long(&tcp[8..12]);
    let (mut options, mut sack) = (&tcp[20..], SackDigest::NONE);
    while let Some(&kind) = options.first() {
        if kind == 0 {
            break;
        }
        let length = if kind == 1 { 1 } else { usize::from(*options.get(1)?).max(2) };
        let (option, rest) = options.split_at_checked(length)?;
        if kind == 5 {
            let mut blocks = [(0, 0); 4];
            let given = option[2..].chunks_exact(8).zip(&mut blocks);
            let count = given.map(|(edges, block)| *block = (long(&edges[..4]), long(&edges[4..]))).count();
            sack = SackDigest::from_blocks(&blocks[..count], number);
        }
        options = rest;
    }
    let word = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
    let [high, low] = (word(0) ^ word(2).rotate_left(5)).to_be_bytes();
    Some(PureAck { connection: high ^ low, number, ece: flags & 0x40 != 0, sack })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// IPv4 packet with a right checksum.
    fn v4(tos: u8, protocol: u8, payload: &[u8]) -> Vec<u8> {
        let length = (20 + payload.len()) as u16;
        let mut packet = vec![0x45, tos, 0, 0, 0x12, 0x34, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 128, 0, 1];
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        let sum = !sum(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend(payload);
        packet
    }

    /// Sum of a header as in the Internet checksum: all ones if the checksum in it is right.
    fn sum(header: &[u8]) -> u16 {
        let mut sum: u32 = header[..20].chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    #[test]
    fn a_mark_keeps_the_checksum_right_whatever_the_header() {
        for tos in 0..=255u8 {
            for id in [0u16, 1, 0x7fff, 0xfffe, 0xffff] {
                let mut packet = v4(tos, 17, &[]);
                packet[4..6].copy_from_slice(&id.to_be_bytes());
                packet[10..12].fill(0);
                let right = !sum(&packet);
                packet[10..12].copy_from_slice(&right.to_be_bytes());
                set_ce(&mut packet);
                assert_eq!((ecn(&packet), packet[1] >> 2, sum(&packet)), (Some(Ecn::Ce), tos >> 2, 0xffff));
            }
        }
    }

    #[test]
    fn a_mark_on_ipv6_leaves_flow_label_and_dscp() {
        let mut packet = vec![0u8; 40];
        packet[..4].copy_from_slice(&[0x6b, 0xa5, 0x67, 0x89]);
        assert_eq!(ecn(&packet), Some(Ecn::Ect0));
        set_ce(&mut packet);
        assert_eq!((&packet[..4], ecn(&packet)), (&[0x6b, 0xb5, 0x67, 0x89][..], Some(Ecn::Ce)));
    }

    #[test]
    fn only_plain_acknowledgements_are_pure() {
        let tcp = |flags: u8, options: &[u8], data: &[u8]| {
            let mut tcp = vec![0x13, 0x88, 0x80, 0, 0, 0, 0, 1, 0, 0, 1, 44, 0, flags, 1, 0, 0, 0, 0, 0];
            tcp[12] = (((20 + options.len()) / 4) << 4) as u8;
            tcp.extend(options);
            tcp.extend(data);
            v4(0, TCP, &tcp)
        };
        let stamps = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        let ack = pure_ack(&tcp(0x10, &stamps, &[])).unwrap();
        assert_eq!((ack.number, ack.ece), (300, false));
        assert!(pure_ack(&tcp(0x50, &[], &[])).unwrap().ece);
        assert_eq!(pure_ack(&tcp(0x10, &stamps, b"data")), None);
        assert_eq!(pure_ack(&tcp(0x12, &stamps, &[])), None, "SYN");
        assert_eq!(ack.sack, SackDigest::NONE);
        let blocks = pure_ack(&tcp(0x10, &[1, 1, 5, 10, 0, 0, 4, 1, 0, 0, 4, 9], &[])).unwrap();
        assert_eq!((blocks.number, blocks.sack), (300, SackDigest::from_blocks(&[(0x401, 0x409)], 300)));
        assert_eq!(pure_ack(&tcp(0x10, &[8, 200, 0, 0], &[])), None, "an option longer than the header");
    }

    #[test]
    fn connections_with_consecutive_ports_are_distinguished() {
        // Clients use one port after the other; the server's port is constant, on either side.
        let connection = |from: u16, to: u16| {
            let mut tcp = vec![0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 44, 5 << 4, 0x10, 1, 0, 0, 0, 0, 0];
            tcp[..2].copy_from_slice(&from.to_be_bytes());
            tcp[2..4].copy_from_slice(&to.to_be_bytes());
            pure_ack(&v4(0, TCP, &tcp)).unwrap().connection
        };
        for ends in [|client| (client, 5001), |client| (5001, client)] as [fn(u16) -> (u16, u16); 2] {
            let numbers = (0x8000..0x8100).map(ends).map(|(from, to)| connection(from, to));
            assert_eq!(numbers.collect::<std::collections::BTreeSet<_>>().len(), 256);
        }
    }

    #[test]
    fn truncated_packets_are_rejected() {
        for length in 0..20 {
            let mut packet = v4(2, TCP, &[])[..length].to_vec();
            assert_eq!((v4_addresses(&packet), ecn(&packet), pure_ack(&packet)), (None, None, None));
            set_ce(&mut packet);
        }
    }

    /// Acknowledgement of 300 with this length of IPv4 options and these TCP options.
    fn acknowledgement(ip_options: usize, options: &[u8]) -> Vec<u8> {
        let mut tcp = vec![0x13, 0x88, 0x80, 0, 0, 0, 0, 1, 0, 0, 1, 44, 0, 0x10, 1, 0, 0, 0, 0, 0];
        tcp[12] = (((20 + options.len()) / 4) << 4) as u8;
        tcp.extend(options);
        let mut packet = v4(0, TCP, &[]);
        packet[0] = 0x40 | ((20 + ip_options) / 4) as u8;
        packet.resize(20 + ip_options, 1);
        packet.extend(tcp);
        packet
    }

    #[test]
    fn headers_may_have_their_maximum_length() {
        // 60 bytes of IP and 60 of TCP, without data.
        let longest = acknowledgement(40, &[1; 40]);
        assert_eq!((longest.len(), pure_ack(&longest).map(|ack| ack.number)), (120, Some(300)));
        assert_eq!(pure_ack(&[&longest[..], &[0]].concat()), None, "data");
        let shortest = acknowledgement(0, &[]);
        assert_eq!((shortest.len(), pure_ack(&shortest).map(|ack| ack.number)), (40, Some(300)));
        assert_eq!(pure_ack(&shortest[..39]), None);
        // Another protocol, another version, a header that is longer or shorter than what there is.
        for (byte, value) in [(9, 17), (0, 0x65), (32, 6 << 4), (32, 4 << 4), (0, 0x4f)] {
            let mut other = acknowledgement(0, &[]);
            other[byte] = value;
            assert_eq!(pure_ack(&other), None, "byte {byte} is {value:#x}");
        }
    }

    #[test]
    fn sack_blocks_are_read_from_the_options() {
        let sack = |options: &[u8]| pure_ack(&acknowledgement(0, options)).map(|ack| ack.sack);
        let edges = [1u8, 2, 3, 4].map(|block| [[0, 0, block, 0], [0, 0, block, 9]].concat()).concat();
        // Kind 5 with three and with four blocks; padding before, another option, the end of the list.
        let blocks = [(0x100, 0x109), (0x200, 0x209), (0x300, 0x309), (0x400, 0x409)];
        let three = [&[1, 1, 5, 26][..], &edges[..24]].concat();
        assert_eq!(sack(&three), Some(SackDigest::from_blocks(&blocks[..3], 300)));
        let four = [&[1, 1, 5, 34][..], &edges].concat();
        assert_eq!(sack(&four), Some(SackDigest::from_blocks(&blocks, 300)));
        let behind = [&[3, 3, 7, 1, 5, 10][..], &edges[..8], &[1, 1]].concat();
        assert_eq!(sack(&behind), Some(SackDigest::from_blocks(&blocks[..1], 300)));
        let ended = [&[0, 1, 5, 10][..], &edges[..8]].concat();
        assert_eq!(sack(&ended), Some(SackDigest::NONE), "options after the end are ignored");
        // An option shorter than possible, and one without a length.
        assert_eq!((sack(&[8, 0, 1, 1]), sack(&[1, 1, 1, 8])), (Some(SackDigest::NONE), None));
    }

    #[test]
    fn only_ece_reports_congestion() {
        let flags = |flags: u8| {
            let mut packet = acknowledgement(0, &[]);
            packet[33] = flags;
            pure_ack(&packet).map(|ack| ack.ece)
        };
        // ACK alone, with ECE, with CWR, with both. FIN, SYN, RST, PSH and URG do more, and without ACK there is none.
        assert_eq!([0x10, 0x50, 0x90, 0xd0].map(flags), [Some(false), Some(true), Some(false), Some(true)]);
        assert!([0x11, 0x12, 0x14, 0x18, 0x30, 0x40, 0x00].into_iter().all(|other| flags(other).is_none()));
    }

    #[test]
    fn addresses_and_ecn_are_read_by_version() {
        let packet = v4(0, 17, &[]);
        assert_eq!(v4_addresses(&packet), Some(([10, 0, 0, 1], [10, 128, 0, 1])));
        assert_eq!(v4_addresses(&[0x60; 40]), None);
        let fields = [0, 1, 2, 3]
            .map(|bits| (ecn(&v4(0xfc | bits, 17, &[])), ecn(&[&[0x6f, 0xcf | bits << 4][..], &[9; 38]].concat())));
        let all = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];
        assert_eq!(fields, all.map(|field| (Some(field), Some(field))));
        assert_eq!(ecn(&[0x50; 40]), None);
        let mut neither = [0x50; 40];
        set_ce(&mut neither);
        assert_eq!(neither, [0x50; 40]);
    }

    #[test]
    fn carries_are_folded_until_none_is_left() {
        // Modulo 2^16 - 1, where 0 and 2^16 - 1 are equal (RFC 1071).
        for sum in [0, 1, 0xffff, 0x1_0000, 0x1_ffff, 0x2_fffe, 0xffff_0000, u32::MAX, 0x1234_5678] {
            assert_eq!(u32::from(fold(sum)) % 0xffff, sum % 0xffff, "{sum:x}");
        }
    }
}
