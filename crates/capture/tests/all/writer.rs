//! The writer's output reads back, and has the layout of the format.

use aqumen_capture::{IPV4, Reader, Writer};

#[test]
fn packets_read_back_with_their_times_interfaces_and_lengths() {
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file).unwrap();
    assert_eq!(writer.interface(IPV4, Some("bottleneck")).unwrap(), 0);
    assert_eq!(writer.interface(1, None).unwrap(), 1);
    let late = 1_700_000_000_123_456_789;
    writer.packet(1, late, 1500, b"abcde").unwrap();
    writer.packet(0, 7, 3, b"abc").unwrap();
    writer.packet(0, 8, 40, b"").unwrap();
    writer.flush().unwrap();
    let mut reader = Reader::new(&file[..]).unwrap();
    let mut next = || {
        let record = reader.next_record().unwrap()?;
        Some((record.at_ns, record.interface, record.link, record.original, record.data.to_vec()))
    };
    assert_eq!(next(), Some((late as i64, 1, 1, 1500, b"abcde".to_vec())));
    assert_eq!(next(), Some((7, 0, IPV4, 3, b"abc".to_vec())));
    assert_eq!(next(), Some((8, 0, IPV4, 40, Vec::new())));
    assert_eq!((next(), reader.is_cut_off()), (None, false));
}

#[test]
fn the_blocks_are_little_endian_and_whole_words() {
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file).unwrap();
    writer.interface(IPV4, Some("link")).unwrap();
    writer.packet(0, 0x1_0000_0002, 9, b"z").unwrap();
    // Section: type, length, byte order, version 1.0, length not told, length.
    assert_eq!(file[..12], [0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a]);
    assert_eq!(file[12..28], [1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 28, 0, 0, 0]);
    // Interface: link type 228, no limit, name (option 2), resolution 10^-9 (option 9), end of options.
    assert_eq!(file[28..44], [1, 0, 0, 0, 40, 0, 0, 0, 228, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(file[44..68], *b"\x02\0\x04\0link\x09\0\x01\0\x09\0\0\0\0\0\0\0\x28\0\0\0");
    // Packet: interface 0, time high and low, 1 byte of 9, padding.
    assert_eq!(file[68..88], [6, 0, 0, 0, 36, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0]);
    assert_eq!(file[88..], [1, 0, 0, 0, 9, 0, 0, 0, b'z', 0, 0, 0, 36, 0, 0, 0]);
}

#[test]
fn a_name_longer_than_its_field_is_cut_between_letters() {
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file).unwrap();
    writer.interface(IPV4, Some(&"é".repeat(40_000))).unwrap();
    writer.packet(0, 1, 1, b"a").unwrap();
    let mut reader = Reader::new(&file[..]).unwrap();
    assert_eq!(reader.next_record().unwrap().map(|record| record.at_ns), Some(1));
}
