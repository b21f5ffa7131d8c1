//! Bytes of any kind, and captures with a few bytes changed: never a panic, never much more memory than the file has.

use crate::common;

use aqumen_capture::{Reader, headers};
use common::{Order, block, enhanced, interface, pcap, record, section};
use proptest::prelude::*;

/// Reads everything, marks every packet; whether there was an error of one line.
fn read(bytes: &[u8]) -> Result<u64, String> {
    let mut reader = Reader::new(bytes).map_err(|error| error.to_string())?;
    while let Some(record) = reader.next_record().map_err(|error| error.to_string())? {
        assert!(record.data.len() <= bytes.len() && record.original as usize >= record.data.len());
        if let Some(ip) = headers::decode(record.link, record.data).ip {
            let mut data = record.data.to_vec();
            ip.mark(&mut data);
            assert_eq!(headers::decode(record.link, &data).ip.map(|ip| ip.ecn as u8), Some(3));
        }
    }
    assert!(reader.position() <= bytes.len() as u64);
    Ok(reader.packets())
}

fn sound() -> Vec<Vec<u8>> {
    let ipv4 = [0x45, 2, 0, 24, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x13, 0x89, 0x01, 0xbb];
    let ethernet = [&[0; 12][..], &[0x81, 0, 0, 5, 0x08, 0], &ipv4].concat();
    let ipv6 = [&[0x60, 0x20, 0, 0, 0, 12, 44, 64][..], &[7; 32], &[6, 0, 0, 0, 0, 0, 0, 0], &[1, 2, 3, 4]].concat();
    let order = Order::Little;
    let packets = [record(order, (1, 2), 60, &ethernet), record(order, (1, 3), 60, &ethernet)].concat();
    let big = Order::Big;
    let blocks = [
        section(big),
        interface(big, 1, &[(9, vec![9]), (14, vec![0; 8])]),
        interface(big, 101, &[(9, vec![0x80 | 20])]),
        block(big, 4, &[1; 30]),
        enhanced(big, 0, 1000, 60, &ethernet),
        enhanced(big, 1, 2000, 60, &ipv6),
        section(order),
        interface(order, 276, &[]),
        enhanced(order, 0, 1000, 60, &[&[0x86, 0xdd][..], &[0; 18], &ipv6].concat()),
    ];
    vec![[pcap(order, 0xa1b2_c3d4, 1), packets].concat(), blocks.concat()]
}

#[test]
fn the_sound_ones_are_read() {
    assert_eq!(sound().iter().map(|bytes| read(bytes)).collect::<Vec<_>>(), [Ok(2), Ok(3)]);
}

proptest! {
    #[test]
    fn arbitrary_bytes_behind_a_magic(magic in 0..6usize, rest in prop::collection::vec(any::<u8>(), 0..400)) {
        let magics: [&[u8]; 6] = [
            &[], &[0xa1, 0xb2, 0xc3, 0xd4, 0, 2, 0, 4], &[0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0], &[0x0a, 0x0d, 0x0d, 0x0a],
            &[0x0a, 0x0d, 0x0d, 0x0a, 0, 0, 0, 28, 0x1a, 0x2b, 0x3c, 0x4d], &[0x1f, 0x8b],
        ];
        if let Err(message) = read(&[magics[magic], &rest].concat()) {
            prop_assert_eq!(message.lines().count(), 1);
        }
    }

    #[test]
    fn captures_with_some_bytes_changed(
        which in 0..2usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
        shorter in any::<bool>(),
    ) {
        let mut bytes = sound().swap_remove(which);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if shorter {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Err(message) = read(&bytes) {
            prop_assert_eq!(message.lines().count(), 1);
        }
    }

    #[test]
    fn any_bytes_as_headers(link in prop::sample::select(vec![0u16, 1, 12, 101, 108, 113, 228, 229, 276, 9999]),
                            data in prop::collection::vec(any::<u8>(), 0..120)) {
        let headers = headers::decode(link, &data);
        prop_assert!(headers.ip.is_none_or(|ip| (ip.at as usize) < data.len()));
    }
}

#[test]
fn memory_follows_what_the_file_holds_not_what_it_claims() {
    let order = Order::Little;
    let open = [section(order), interface(order, 1, &[])].concat();
    // Blocks that claim 16 MB, of a packet, of an interface and of no interest, in a file of 100 bytes.
    for kind in [6u32, 1, 77] {
        let claims = [&open[..], &order.u32(kind), &order.u32(16 << 20), &[0; 40]].concat();
        let used = allocation_counter::measure(|| assert_eq!(read(&claims), Ok(0)));
        assert!(used.bytes_max < 1 << 20, "{} bytes for a block of type {kind}", used.bytes_max);
    }
    // A block of no interest may be larger than anything that is held.
    let skipped = [&open[..], &block(order, 77, &vec![0; 40 << 20]), &enhanced(order, 0, 5, 4, b"abcd")].concat();
    let used = allocation_counter::measure(|| assert_eq!(read(&skipped), Ok(1)));
    assert!(used.bytes_max < 1 << 20, "{} bytes", used.bytes_max);
}
