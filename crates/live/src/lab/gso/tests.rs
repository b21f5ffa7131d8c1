use super::*;

/// TCP packet with a partial checksum (over addresses and length), as the kernel hands it over.
fn packet(v6: bool, flags: u8, sequence: u32, data: &[u8]) -> (Vec<u8>, PartialChecksum) {
    let transport = if v6 { 40 } else { 20 };
    let mut packet = vec![0u8; transport];
    let length = (32 + data.len()) as u16;
    if v6 {
        packet[0] = 0x60;
        packet[1] = 2 << 4;
        packet[4..6].copy_from_slice(&length.to_be_bytes());
        packet[6..8].copy_from_slice(&[6, 64]);
        packet[8] = 0xfd;
        packet[24] = 0xfd;
        packet[23] = 1;
        packet[39] = 2;
    } else {
        packet[..2].copy_from_slice(&[0x45, 2]);
        packet[2..4].copy_from_slice(&(length + 20).to_be_bytes());
        packet[4..10].copy_from_slice(&[0xff, 0xfe, 0x40, 0, 64, 6]);
        packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 128, 0, 1]);
        set_v4_checksum(&mut packet);
    }
    let addresses = if v6 { 8..40 } else { 12..20 };
    let sum: u32 = packet[addresses].chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let pseudo = fold(sum + 6 + u32::from(length));
    packet.extend([1, 2, 3, 4]);
    packet.extend(sequence.to_be_bytes());
    packet.extend([0, 0, 0, 9, 8 << 4, flags, 1, 0]);
    packet.extend(pseudo.to_be_bytes());
    packet.extend([0, 0, 1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 5]);
    packet.extend(data);
    (packet, [transport as u16, 16])
}

/// Sum over TCP and addresses after the checksum is completed: all ones if it is right.
fn sum_when_filled_in(packet: &[u8], transport: usize) -> u16 {
    let words = |bytes: &[u8]| -> u64 {
        bytes.chunks(2).map(|word| u64::from(u16::from_be_bytes([word[0], *word.get(1).unwrap_or(&0)]))).sum()
    };
    // The kernel sums from the transport header on, partial checksum included, and stores the complement.
    let filled = words(&packet[transport..]);
    let mut checksum = filled;
    while checksum > 0xffff {
        checksum = (checksum & 0xffff) + (checksum >> 16);
    }
    let mut filled_in = packet.to_vec();
    filled_in[transport + 16..transport + 18].copy_from_slice(&(!(checksum as u16)).to_be_bytes());
    let addresses = if transport == 20 { 12..20 } else { 8..40 };
    let mut sum = words(&filled_in[transport..]) + words(&packet[addresses]) + 6 + (packet.len() - transport) as u64;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn data(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i * 7) as u8).collect()
}

fn split(v6: bool, flags: u8, bytes: usize, segment: u16) -> Vec<Vec<u8>> {
    let (packet, partial) = packet(v6, flags, u32::MAX - 100, &data(bytes));
    let kind = if v6 { TCP_V6 } else { TCP_V4 };
    let segments = Segments::new(&Header { kind, headers: 0, segment, partial }, &packet).unwrap();
    let one = |number| {
        let mut room = [0; 1600];
        let length = segments.write(number, &mut room).unwrap();
        room[..length].to_vec()
    };
    (0..segments.count()).map(one).collect()
}

#[test]
fn segments_have_their_own_numbers_lengths_and_checksums() {
    for v6 in [false, true] {
        let transport = if v6 { 40 } else { 20 };
        let segments = split(v6, ACK | PSH | CWR, 3000, 1448);
        // 3000 = 1448 + 1448 + 104.
        let lengths: Vec<usize> = segments.iter().map(|segment| segment.len() - transport - 32).collect();
        assert_eq!(lengths, [1448, 1448, 104]);
        let numbers: Vec<u32> = segments.iter().map(|segment| sequence(&segment[transport..])).collect();
        assert_eq!(numbers, [u32::MAX - 100, 1347, 2795], "2^32 - 101 + 1448 = 2^32 + 1347");
        let flags: Vec<u8> = segments.iter().map(|segment| segment[transport + 13]).collect();
        assert_eq!(flags, [ACK | CWR, ACK, ACK | PSH]);
        for segment in &segments {
            assert_eq!(sum_when_filled_in(segment, transport), 0xffff);
            if !v6 {
                assert_eq!(usize::from(u16::from_be_bytes([segment[2], segment[3]])), segment.len());
                let sum = segment[..20].chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
                assert_eq!(fold(sum), 0xffff);
            }
        }
        let bytes: Vec<u8> = segments.iter().flat_map(|segment| &segment[transport + 32..]).copied().collect();
        assert_eq!(bytes, data(3000));
    }
}

/// Headers and packets that a joiner writes for `packets`.
fn joined(packets: &[(Vec<u8>, PartialChecksum)]) -> Vec<(Header, Vec<u8>)> {
    let mut joiner = Joiner::default();
    for (packet, partial) in packets {
        joiner.add(packet, *partial, 5);
    }
    let mut written = Vec::new();
    joiner.flush(|bytes, exits| {
        assert!(exits.iter().all(|exit| *exit == 5));
        let (header, packet) = Header::read(bytes).unwrap();
        written.push((header, packet.to_vec()));
    });
    written
}

#[test]
fn split_segments_are_joined_to_the_original() {
    for v6 in [false, true] {
        let (whole, partial) = packet(v6, ACK | PSH, u32::MAX - 100, &data(3000));
        let segments: Vec<_> = split(v6, ACK | PSH, 3000, 1448).into_iter().map(|segment| (segment, partial)).collect();
        let written = joined(&segments);
        assert_eq!(written.len(), 1);
        let (header, packet) = &written[0];
        assert_eq!((header.kind, header.segment, header.partial), (if v6 { TCP_V6 } else { TCP_V4 }, 1448, partial));
        assert_eq!(*packet, whole);
    }
}

#[test]
fn interleaved_connections_are_joined_separately() {
    // The first, another source, another port, another IP version: four segments of each, interleaved.
    let connections = [(false, 15, 1), (false, 15, 9), (false, 21, 9), (true, 41, 2)];
    let segment = |(v6, byte, value): (bool, usize, u8), number: u32| {
        let (mut packet, partial) = packet(v6, ACK, 100 * number, &data(100));
        packet[byte] = value;
        (packet, partial)
    };
    let turns: Vec<_> = (0..4).flat_map(|number| connections.map(|which| segment(which, number))).collect();
    let written = joined(&turns);
    let lengths: Vec<usize> = written.iter().map(|(_, packet)| packet.len()).collect();
    assert_eq!(lengths, [452, 452, 452, 472]);
}

#[test]
fn segments_that_differ_are_not_joined_and_keep_their_order() {
    let base = |change: fn(&mut Vec<u8>)| {
        let first = packet(false, ACK, 1000, &data(100));
        let mut second = packet(false, ACK, 1100, &data(100));
        change(&mut second.0);
        let third = packet(false, ACK, 1200, &data(100));
        joined(&[first, second, third]).iter().map(|(_, packet)| sequence(&packet[20..])).collect::<Vec<_>>()
    };
    assert_eq!(base(|_| {}), [1000]);
    let changes: [fn(&mut Vec<u8>); 7] = [
        |packet| crate::lab::ip::set_ce(packet),
        |packet| packet[20 + 11] = 10, // acknowledges more
        |packet| packet[20 + 15] = 9,  // another window
        |packet| packet[20 + 13] |= CWR,
        |packet| packet[20 + 13] |= 0x04, // reset
        |packet| packet[6] = 0x20,        // a fragment
        |packet| packet[20 + 31] = 99,    // another time stamp
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let sequences = base(change);
        assert_eq!(sequences, [1000, 1100, 1200], "change {number}");
    }
    // A hole, a larger segment, another connection, no payload, a complete checksum.
    let first = || packet(false, ACK, 1000, &data(100));
    let mut other = packet(false, ACK, 1100, &data(100));
    other.0[21] = 77;
    let filled = (packet(false, ACK, 1100, &data(100)).0, [0; 2]);
    for second in [
        packet(false, ACK, 1101, &data(100)),
        packet(false, ACK, 1100, &data(101)),
        packet(false, ACK, 1100, &[]),
        other,
        filled,
    ] {
        assert_eq!(joined(&[first(), second]).len(), 2);
    }
    // A shorter segment is the last.
    let short = [first(), packet(false, ACK, 1100, &data(50)), packet(false, ACK, 1150, &data(50))];
    assert_eq!(joined(&short).len(), 2);
    // The end of a message is joined, and nothing after it.
    let push = [first(), packet(false, ACK | PSH, 1100, &data(100)), packet(false, ACK, 1200, &data(100))];
    assert_eq!(joined(&push).len(), 2);
    assert_eq!(joined(&[packet(false, ACK | PSH, 1000, &data(100)), packet(false, ACK, 1100, &data(100))]).len(), 2);
}

#[test]
fn a_joined_packet_is_no_longer_than_the_kernel_accepts() {
    let many: Vec<_> = (0..50).map(|i| packet(false, ACK, i * 1448, &data(1448))).collect();
    let written = joined(&many);
    assert_eq!(written.len(), 2);
    // 52 bytes of headers and 45 segments: 65 212 bytes.
    assert_eq!(written[0].1.len(), 52 + 45 * 1448);
}

#[test]
fn inconsistent_headers_make_no_super_packet() {
    let (packet, partial) = packet(false, ACK, 1, &data(100));
    let case = |kind, segment, partial, length: usize| {
        Segments::new(&Header { kind, headers: 0, segment, partial }, &packet[..length]).is_some()
    };
    assert!(case(TCP_V4, 50, partial, 152));
    assert!(!case(0, 50, partial, 152) && !case(TCP_V6, 50, partial, 152) && !case(TCP_V4, 0, partial, 152));
    assert!(!case(TCP_V4, 50, [200, 16], 152) && !case(TCP_V4, 50, [0, 0], 152) && !case(TCP_V4, 50, [12, 16], 152));
    for length in 0..53 {
        assert!(!case(TCP_V4, 50, partial, length), "{length}");
    }
    assert!(Header::read(&[0; 9]).is_none());
}

#[test]
fn only_fields_that_differ_between_segments_are_ignored() {
    // As in the kernel's receive offload: identification and both checksums differ per segment, and FIN and PSH end a
    // message. Length and sequence number follow from the payload, which is equal here.
    for v6 in [false, true] {
        let tcp = if v6 { 40 } else { 20 };
        let network_bytes = if v6 { vec![] } else { vec![4, 5, 10, 11] };
        for bit in 0..8 * (tcp + 32) {
            let (byte, mask) = (bit / 8, 1u8 << (bit % 8));
            let first = packet(v6, ACK, 1000, &data(100));
            let mut second = packet(v6, ACK, 1100, &data(100));
            second.0[byte] ^= mask;
            let ends = byte == tcp + 13 && mask & (FIN | PSH) != 0;
            let own = network_bytes.contains(&byte) || (tcp + 16..tcp + 18).contains(&byte);
            let written = joined(&[first, second]);
            assert_eq!(written.len() == 1, own || ends, "IPv6 {v6}, byte {byte}, bit {mask:#x}");
            if ends {
                assert_eq!(written[0].1[tcp + 13], ACK | mask, "the joined packet ends the message");
            }
        }
    }
}

#[test]
fn segments_are_compared_with_the_last_sixteen_packets() {
    // One segment of each of `between` connections lies between two segments of the first.
    let apart = |between: u8| {
        let case = |connection: u8, sequence| {
            let mut segment = packet(false, ACK, sequence, &data(100));
            segment.0[21] = connection;
            segment
        };
        let mut packets = vec![case(0, 1000)];
        packets.extend((1..=between).map(|connection| case(connection, 500)));
        packets.push(case(0, 1100));
        joined(&packets).len()
    };
    assert_eq!([apart(0), apart(15), apart(16)], [1, 16, 18]);
}

#[test]
fn packets_are_written_when_sixty_four_wait() {
    let mut joiner = Joiner::default();
    let mut full = Vec::new();
    for number in 0..64u32 {
        // A hole of one byte before each: none can be joined.
        let (packet, partial) = packet(false, ACK, 101 * number, &data(100));
        full.push(joiner.add(&packet, partial, u64::from(number)));
    }
    assert!(full[..63].iter().all(|full| !full) && full[63]);
    let mut times = Vec::new();
    joiner.flush(|_, exits| times.extend_from_slice(exits));
    assert_eq!(times, (0..64).collect::<Vec<u64>>());
    joiner.flush(|_, _| panic!("nothing waits"));
    let (packet, partial) = packet(false, ACK, 7, &data(100));
    assert!(!joiner.add(&packet, partial, 9));
    joiner.flush(|bytes, exits| {
        assert_eq!((&bytes[HEADER_BYTES..], exits), (&packet[..], &[9][..]));
        assert_eq!(Header::read(bytes).unwrap().0, Header { partial, ..Header::default() });
    });
}

#[test]
fn a_header_is_read_as_it_was_written() {
    // linux/virtio_net.h: flags, kind, then four words in the order of the machine.
    let mut room = [0xff; 12];
    let header = Header { kind: TCP_V6, headers: 72, segment: 1428, partial: [40, 16] };
    header.write(&mut room);
    let words = [72u16, 1428, 40, 16].map(u16::to_ne_bytes).concat();
    assert_eq!((&room[..2], &room[2..10], &room[10..]), (&[1, 4][..], &words[..], &[0xff, 0xff][..]));
    assert_eq!(Header::read(&room), Some((header, &[0xff, 0xff][..])));
    // A complete checksum has no offsets, whatever the bytes say; CWR in the first segment is no other kind.
    room[..2].copy_from_slice(&[2, 0x81]);
    let read = Header::read(&room).unwrap().0;
    assert_eq!((read.kind, read.partial), (TCP_V4, [0, 0]));
    Header { partial: [0, 0], ..header }.write(&mut room);
    assert_eq!(room[0], 0);
}

#[test]
fn full_segments_leave_no_empty_one() {
    for v6 in [false, true] {
        let lengths = |bytes, segment| {
            let headers = if v6 { 72 } else { 52 };
            split(v6, ACK, bytes, segment).iter().map(|packet| packet.len() - headers).collect::<Vec<_>>()
        };
        assert_eq!(
            (lengths(2896, 1448), lengths(1448, 1448), lengths(1449, 1448)),
            (vec![1448, 1448], vec![1448], vec![1448, 1])
        );
    }
}

#[test]
fn a_joined_packet_may_have_the_maximum_length() {
    // 52 bytes of headers and 11 segments of 5953 are 65 535; with a byte more in each the eleventh does not fit.
    let case = |segment: usize| -> Vec<usize> {
        let all: Vec<_> = (0..11).map(|i| packet(false, ACK, i * segment as u32, &data(segment))).collect();
        joined(&all).iter().map(|(_, packet)| packet.len()).collect()
    };
    assert_eq!((case(5953), case(5954)), (vec![65_535], vec![52 + 10 * 5954, 52 + 5954]));
}

#[test]
fn other_packets_are_left_unchanged() {
    // Two consecutive packets of one connection, both changed in the same way.
    let both = |v6: bool, change: &dyn Fn(&mut Vec<u8>, &mut PartialChecksum)| {
        let two = [1000, 1100].map(|sequence| {
            let (mut packet, mut partial) = packet(v6, ACK, sequence, &data(100));
            change(&mut packet, &mut partial);
            (packet, partial)
        });
        let written = joined(&two);
        let as_they_came = written.iter().map(|(_, packet)| packet).eq(two.iter().map(|(packet, _)| packet));
        (written.len(), as_they_came)
    };
    assert_eq!(both(false, &|_, _| {}).0, 1);
    let apart = (2, true);
    // Fragments: more follow, or not the first. "Do not fragment" is no fragment.
    assert_eq!(both(false, &|packet, _| packet[6] = 0x20), apart);
    assert_eq!(both(false, &|packet, _| packet[6] = 0x01), apart);
    assert_eq!(both(false, &|packet, _| packet[6] = 0).0, 1);
    // Headers of TCP that are shorter than they can be, or longer than the packet.
    assert_eq!(both(false, &|packet, _| packet[32] = 4 << 4), apart);
    assert_eq!(both(true, &|packet, _| packet[52] = 4 << 4), apart);
    assert_eq!(both(false, &|packet, _| packet.truncate(50)), apart);
    // Nor if the payload behind a short header would be contiguous: 16 bytes of headers and 116 of payload.
    let mut short = [1000, 1116].map(|sequence| packet(false, ACK, sequence, &data(100)));
    short.iter_mut().for_each(|(packet, _)| packet[32] = 4 << 4);
    assert_eq!(joined(&short).len(), 2);
    // Another protocol, a wrong length, another version.
    assert_eq!(both(false, &|packet, _| packet[9] = 17), apart);
    assert_eq!(both(true, &|packet, _| packet[6] = 17), apart);
    assert_eq!(both(false, &|packet, _| packet[3] ^= 1), apart);
    assert_eq!(both(true, &|packet, _| packet[5] ^= 1), apart);
    assert_eq!(both(false, &|packet, _| packet[0] = 0x55), apart);
    // A transport header elsewhere: options of IPv4, extension headers of IPv6.
    let options = |packet: &mut Vec<u8>, partial: &mut PartialChecksum| {
        packet.splice(20..20, [1; 4]);
        packet[3] += 4;
        partial[0] = 24;
    };
    assert_eq!(both(false, &options), apart);
    let further = |packet: &mut Vec<u8>, partial: &mut PartialChecksum| {
        packet.splice(40..40, [6, 0, 1, 4, 0, 0, 0, 0]);
        packet[5] += 8;
        partial[0] = 48;
    };
    assert_eq!(both(true, &further), apart);
    // Truncated at any length.
    for (v6, length) in [false, true].into_iter().flat_map(|v6| (1..90).map(move |length| (v6, length))) {
        assert_eq!(both(v6, &|packet, _| packet.truncate(length)), apart, "IPv6 {v6}, {length}");
    }
}
