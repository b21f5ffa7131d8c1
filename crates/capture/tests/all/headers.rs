//! Headers byte by byte, and what is found in them.

use aqumen_capture::headers::{Headers, decode};
use aqumen_units::Ecn;

const ETHERNET: u16 = 1;
const RAW: u16 = 101;

/// An IPv4 header with its right checksum, then `above`.
fn ipv4(tos: u8, protocol: u8, fragment: u16, above: &[u8]) -> Vec<u8> {
    let mut header =
        vec![0x45, tos, 0, 20 + above.len() as u8, 0x12, 0x34, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    header[6..8].copy_from_slice(&fragment.to_be_bytes());
    let checksum = !ones_sum(&header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    [header, above.to_vec()].concat()
}

fn ipv6(traffic_class: u8, next: u8, above: &[u8]) -> Vec<u8> {
    let mut header =
        vec![0x60 | traffic_class >> 4, traffic_class << 4 | 0x0a, 0xbc, 0xde, 0, above.len() as u8, next, 64];
    header.extend((0..32).map(|i| i as u8));
    [header, above.to_vec()].concat()
}

/// RFC 1071: the sum in ones' complement of the words.
fn ones_sum(bytes: &[u8]) -> u16 {
    let mut sum: u32 = bytes.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Ports 5001 and 443.
const PORTS: [u8; 4] = [0x13, 0x89, 0x01, 0xbb];

#[test]
fn ipv4_behind_every_link_layer() {
    // EF (46) with ECT(0): 46 * 4 + 2.
    let packet = ipv4(186, 6, 0, &PORTS);
    let behind = |head: &[u8]| [head, &packet].concat();
    let addresses = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    let sll2 = [&[0x08, 0x00][..], &[0; 18]].concat();
    let cases = [
        (ETHERNET, behind(&[&addresses[..], &[0x08, 0x00]].concat()), 14, Some(0x0800)),
        (ETHERNET, behind(&[&addresses[..], &[0x81, 0x00, 0, 7, 0x08, 0x00]].concat()), 18, Some(0x0800)),
        (
            ETHERNET,
            behind(&[&addresses[..], &[0x88, 0xa8, 0, 7, 0x81, 0x00, 0, 9, 0x08, 0x00]].concat()),
            22,
            Some(0x0800),
        ),
        (RAW, packet.clone(), 0, None),
        (228, packet.clone(), 0, None),
        (0, behind(&[2, 0, 0, 0]), 4, None),
        (108, behind(&[0, 0, 0, 2]), 4, None),
        (113, behind(&[&[0; 14][..], &[0x08, 0x00]].concat()), 16, Some(0x0800)),
        (276, behind(&sll2), 20, Some(0x0800)),
    ];
    for (link, data, at, ether_type) in cases {
        let headers = decode(link, &data);
        let ip = headers.ip.unwrap_or_else(|| panic!("link {link}"));
        assert_eq!((headers.ether_type, ip.at, ip.version), (ether_type, at, 4), "link {link}");
        assert_eq!((ip.dscp, ip.ecn, ip.protocol), (46, Ecn::Ect0, 6));
        assert_eq!((ip.ports, ip.fragment), (Some((5001, 443)), false));
        assert_eq!((&ip.source[..4], &ip.destination[..4]), (&[10, 0, 0, 1][..], &[10, 0, 0, 2][..]));
        // What the capture cut off is not there, and nothing else changes.
        for cut in 0..data.len() {
            let less = decode(link, &data[..cut]).ip;
            assert!(less.is_none() || less == Some(ip) || less == Some(aqumen_capture::Ip { ports: None, ..ip }));
        }
    }
}

#[test]
fn options_and_fragments_of_ipv4() {
    let mut with_options = ipv4(0, 17, 0, &[1, 1, 1, 1, 0x13, 0x89, 0x01, 0xbb]);
    with_options[0] = 0x46;
    assert_eq!(decode(RAW, &with_options).ip.unwrap().ports, Some((5001, 443)));
    // The first fragment, a later one, and one that only must not be fragmented.
    for (bits, fragment) in [(0x2000, true), (0x00b9, true), (0x4000, false)] {
        let ip = decode(RAW, &ipv4(0, 17, bits, &PORTS)).ip.unwrap();
        assert_eq!((ip.fragment, ip.ports.is_some()), (fragment, !fragment));
    }
    assert_eq!(decode(RAW, &ipv4(0, 1, 0, &PORTS)).ip.unwrap().ports, None);
}

#[test]
fn ipv6_behind_its_extension_headers() {
    // Hop-by-hop options of 16 bytes, a routing header of 8, an authentication header of 16, then SCTP.
    let chain = [
        &[43, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..],
        &[51, 0, 0, 0, 0, 0, 0, 0],
        &[132, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &PORTS,
    ]
    .concat();
    let ip = decode(RAW, &ipv6(0b1000_1001, 0, &chain)).ip.unwrap();
    assert_eq!((ip.version, ip.dscp, ip.ecn), (6, 0b10_0010, Ecn::Ect1));
    assert_eq!((ip.protocol, ip.ports, ip.fragment), (132, Some((5001, 443)), false));
    assert_eq!((ip.source[15], ip.destination[15]), (15, 31));
    // A fragment header: offset 1 is a fragment, offset 0 without more is the whole packet.
    for (offset, fragment) in [([0, 8], true), ([0, 1], true), ([0, 0], false)] {
        let header = [&[17, 0][..], &offset, &[0; 4], &PORTS].concat();
        let ip = decode(RAW, &ipv6(0, 44, &header)).ip.unwrap();
        assert_eq!((ip.protocol, ip.fragment, ip.ports.is_some()), (17, fragment, !fragment));
    }
}

#[test]
fn what_is_no_ip_is_none() {
    let arp = [&[0; 12][..], &[0x08, 0x06], &[0x45; 40]].concat();
    assert_eq!(decode(ETHERNET, &arp), Headers { ether_type: Some(0x0806), ip: None });
    // Lengths of IEEE 802.3, versions of IP that are none, header lengths that are too small, a link type that is not
    // known.
    assert_eq!(decode(ETHERNET, &[&[0; 12][..], &[0, 50], &[0x45; 40]].concat()).ip, None);
    assert_eq!(decode(RAW, &[0x55; 40]).ip, None);
    assert_eq!(decode(RAW, &[0x44; 40]).ip, None);
    assert_eq!(decode(147, &ipv4(0, 6, 0, &PORTS)), Headers::default());
}

#[test]
fn a_mark_sets_ce_and_keeps_the_checksum_right() {
    for tos in 0..=255 {
        let mut data = ipv4(tos, 6, 0, &PORTS);
        let ip = decode(RAW, &data).ip.unwrap();
        ip.mark(&mut data);
        assert_eq!((data[1], ones_sum(&data[..20])), (tos | 3, 0xffff), "TOS {tos}");
        let mut data = ipv6(tos, 6, &PORTS);
        let ip = decode(RAW, &data).ip.unwrap();
        ip.mark(&mut data);
        assert_eq!(data, ipv6(tos | 3, 6, &PORTS), "traffic class {tos}");
    }
    // A checksum that was wrong by 1 stays wrong by 1: 0xfffe + 1.
    let mut data = ipv4(2, 6, 0, &PORTS);
    data[11] ^= 1;
    let wrong = ones_sum(&data[..20]);
    decode(RAW, &data).ip.unwrap().mark(&mut data);
    assert_eq!(ones_sum(&data[..20]), wrong);
}
