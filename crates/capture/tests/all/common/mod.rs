//! Captures byte by byte.
#![allow(dead_code, reason = "the tests of replay take a part of it")]

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Order {
    Big,
    Little,
}

impl Order {
    pub(crate) fn u16(self, word: u16) -> Vec<u8> {
        if self == Order::Big { word.to_be_bytes().to_vec() } else { word.to_le_bytes().to_vec() }
    }

    pub(crate) fn u32(self, word: u32) -> Vec<u8> {
        if self == Order::Big { word.to_be_bytes().to_vec() } else { word.to_le_bytes().to_vec() }
    }
}

/// The header of a pcap.
pub(crate) fn pcap(order: Order, magic: u32, link: u32) -> Vec<u8> {
    let version = [order.u16(2), order.u16(4)].concat();
    [order.u32(magic), version, order.u32(0), order.u32(0), order.u32(96), order.u32(link)].concat()
}

/// A packet of a pcap.
pub(crate) fn record(order: Order, (seconds, fraction): (u32, u32), original: u32, data: &[u8]) -> Vec<u8> {
    let words = [seconds, fraction, data.len() as u32, original];
    [words.map(|word| order.u32(word)).concat(), data.to_vec()].concat()
}

pub(crate) fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let padding = vec![0; body.len().next_multiple_of(4) - body.len()];
    let length = order.u32((12 + body.len() + padding.len()) as u32);
    [order.u32(kind), length.clone(), body.to_vec(), padding, length].concat()
}

pub(crate) fn section(order: Order) -> Vec<u8> {
    block(order, 0x0a0d_0d0a, &[order.u32(0x1a2b_3c4d), order.u16(1), order.u16(0), vec![0xff; 8]].concat())
}

pub(crate) fn interface(order: Order, link: u16, options: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let mut body = [order.u16(link), order.u16(0), order.u32(0)].concat();
    for (code, value) in options {
        body.extend([order.u16(*code), order.u16(value.len() as u16), value.clone()].concat());
        body.resize(body.len().next_multiple_of(4), 0);
    }
    block(order, 1, &body)
}

pub(crate) fn enhanced(order: Order, interface: u32, units: u64, original: u32, data: &[u8]) -> Vec<u8> {
    let words = [interface, (units >> 32) as u32, units as u32, data.len() as u32, original];
    block(order, 6, &[words.map(|word| order.u32(word)).concat(), data.to_vec()].concat())
}
