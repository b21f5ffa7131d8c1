//! Captures made byte by byte, and what the reader says of them.

use crate::common;

use aqumen_capture::{Reader, Record};
use common::{Order, block, enhanced, interface, pcap, record, section};

/// Time, interface, link type and original length of a packet.
type Seen = (i64, u32, u16, u32);

/// All packets, then whether the file is cut off, or the error that ended it.
fn read(bytes: &[u8]) -> (Vec<Seen>, Result<bool, String>) {
    let mut seen = Vec::new();
    let mut reader = match Reader::new(bytes) {
        Ok(reader) => reader,
        Err(error) => return (seen, Err(error.to_string())),
    };
    loop {
        match reader.next_record() {
            Ok(Some(Record { at_ns, interface, link, original, .. })) => seen.push((at_ns, interface, link, original)),
            Ok(None) => return (seen, Ok(reader.is_cut_off())),
            Err(error) => return (seen, Err(error.to_string())),
        }
    }
}

fn refused(bytes: &[u8]) -> String {
    read(bytes).1.unwrap_err()
}

#[test]
fn a_pcap_in_both_byte_orders_and_units() {
    for order in [Order::Big, Order::Little] {
        for (magic, unit_ns) in [(0xa1b2_c3d4, 1000), (0xa1b2_3c4d, 1)] {
            let records =
                [record(order, (1_700_000_000, 999_999), 1500, b"abc"), record(order, (1_700_000_001, 0), 3, b"abc")];
            let bytes = [pcap(order, magic, 101), records.concat()].concat();
            let first = 1_700_000_000_000_000_000 + 999_999 * unit_ns;
            assert_eq!(read(&bytes), (vec![(first, 0, 101, 1500), (1_700_000_001_000_000_000, 0, 101, 3)], Ok(false)));
            // Interrupted within the second packet, and between its header and its data.
            for cut in [1, 3, 15] {
                assert_eq!(read(&bytes[..bytes.len() - cut]), (vec![(first, 0, 101, 1500)], Ok(true)));
            }
        }
    }
}

#[test]
fn sections_differ_in_byte_order_and_interfaces_in_clocks() {
    let (big, little) = (Order::Big, Order::Little);
    let bytes = [
        section(big),
        interface(big, 1, &[]),
        interface(big, 113, &[(9, vec![9])]),
        // Name resolution: of no interest here.
        block(big, 4, &[0; 40]),
        enhanced(big, 0, 1_500_000, 100, b"abcde"),
        enhanced(big, 1, 1_500_000_001, 200, b"a"),
        section(little),
        // Units of 1/1024 s, 10 s later than they say.
        interface(little, 276, &[(2, b"eth0".to_vec()), (9, vec![0x80 | 10]), (14, 10i64.to_le_bytes().to_vec())]),
        enhanced(little, 0, 1536, 300, b""),
    ]
    .concat();
    let expected = vec![(1_500_000_000, 0, 1, 100), (1_500_000_001, 1, 113, 200), (11_500_000_000, 0, 276, 300)];
    assert_eq!(read(&bytes), (expected, Ok(false)));
}

#[test]
fn an_obsolete_packet_is_read_and_one_without_time_counted() {
    let order = Order::Little;
    let mut obsolete = enhanced(order, 0, 7, 60, b"abcd");
    // Type 2; 16 bits of interface, 16 of drops.
    obsolete[0] = 2;
    obsolete[10] = 99;
    let simple = block(order, 3, &[60, 0, 0, 0, 1, 2, 3, 4]);
    let bytes = [section(order), interface(order, 1, &[]), simple, obsolete].concat();
    assert_eq!(read(&bytes), (vec![(7000, 0, 1, 60)], Ok(false)));
    let mut reader = Reader::new(&bytes[..]).unwrap();
    while reader.next_record().unwrap().is_some() {}
    assert_eq!((reader.timeless(), reader.packets(), reader.position()), (1, 1, bytes.len() as u64));
}

#[test]
fn an_original_length_that_was_left_out_is_that_of_the_data() {
    let bytes = [pcap(Order::Little, 0xa1b2_c3d4, 1), record(Order::Little, (0, 0), 0, b"abcd")].concat();
    assert_eq!(read(&bytes).0, [(0, 0, 1, 4)]);
}

#[test]
fn what_is_malformed_is_named_with_its_place() {
    let order = Order::Little;
    let open = [section(order), interface(order, 1, &[])].concat();
    // A section header has 28 bytes, an interface without options 20.
    assert_eq!(open.len(), 48);
    let with = |block: &[u8]| refused(&[&open, block].concat());
    assert_eq!(refused(b""), "the file is empty");
    assert_eq!(refused(b"abc"), "not a pcap or pcapng");
    assert_eq!(refused(b"time,bytes"), "not a pcap or pcapng");
    assert_eq!(refused(&[0x1f, 0x8b, 8, 0]), "it is compressed; unpack it first");
    assert_eq!(refused(&pcap(order, 0xa1b2_c3d4, 1)[..20]), "at byte 0: a pcap that ends within its header");
    let mut version = pcap(order, 0xa1b2_c3d4, 1);
    version[4] = 7;
    assert_eq!(refused(&version), "at byte 4: a pcap of version 7; version 2 is understood");
    let mut huge = record(order, (0, 0), 4, b"abcd");
    huge[11] = 0xff;
    assert_eq!(
        refused(&[pcap(order, 0xa1b2_c3d4, 1), huge].concat()),
        "at byte 24: a packet of 4278190084 bytes (captured length); at most 16777216 are accepted"
    );
    assert_eq!(
        with(&enhanced(order, 1, 0, 4, b"abcd")),
        "at byte 48: a packet of interface 1, which no block before it describes"
    );
    assert_eq!(with(&block(order, 1, &[0; 4])), "at byte 48: an interface description of 16 bytes; it has at least 20");
    assert_eq!(with(&block(order, 6, &[0; 8])), "at byte 48: a packet block of 20 bytes; it has at least 32");
    assert_eq!(
        with(&[6, 0, 0, 0, 13, 0, 0, 0, 0, 0, 0, 0]),
        "at byte 48: a block of 13 bytes; a block has at least 12, in fours"
    );
    let mut unequal = enhanced(order, 0, 0, 4, b"abcd");
    *unequal.last_mut().unwrap() = 1;
    assert!(
        with(&unequal).starts_with("at byte 48: a block whose length is 36 bytes before it and 16777252 behind it")
    );
    let mut long = enhanced(order, 0, 0, 4, b"abcd");
    long[20] = 5;
    assert_eq!(with(&long), "at byte 48: a packet of 5 captured bytes in a block of 36");
    let mut lost = section(order);
    lost[8] = 0;
    assert_eq!(refused(&lost), "at byte 0: a section header without a byte-order magic");
    assert_eq!(
        with(&enhanced(order, 0, u64::MAX, 4, b"abcd")),
        "at byte 48: a packet whose time of 18446744073709551615 units lies beyond the year 2262"
    );
    assert_eq!(with(&interface(order, 1, &[(9, vec![127])])), "at byte 48: interface 1: no clock has if_tsresol 0x7f");
    let mut past = interface(order, 1, &[(9, vec![6])]);
    past[18] = 200;
    assert_eq!(with(&past), "at byte 48: interface 1: option 9 runs past the end of its block");
}
