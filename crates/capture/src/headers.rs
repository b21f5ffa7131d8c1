//! Decoding of a captured packet's headers: link layers, IP, and the ports of the transport.
//!
//! Supported: Ethernet with 802.1Q and 802.1ad tags, raw IP, Linux "cooked" captures (SLL, SLL2), BSD loopback (NULL,
//! LOOP). Headers that the capture cut off count as absent. Deviation: tunnels are not opened; the
//! outermost IP header is the one that a queue on the path would see.

use aqumen_units::Ecn;

/// Decoded headers of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// EtherType, behind all VLAN tags, if the link layer has one.
    pub ether_type: Option<u16>,
    /// IP header.
    pub ip: Option<Ip>,
}

/// Decoded IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip {
    /// Offset in the captured data.
    pub at: u32,
    /// 4 or 6.
    pub version: u8,
    /// Differentiated services codepoint (RFC 2474).
    pub dscp: u8,
    /// ECN field.
    pub ecn: Ecn,
    /// Protocol above, behind IPv6 extension headers.
    pub protocol: u8,
    /// Source address; IPv4 in the first four bytes.
    pub source: [u8; 16],
    /// Destination address.
    pub destination: [u8; 16],
    /// Source and destination port, if the protocol has ports and this is no fragment.
    pub ports: Option<(u16, u16)>,
    /// Whether this is TCP with the flag SYN, which opens a connection.
    pub syn: bool,
    /// Whether this is a fragment. Fragments have no ports, not even the first one, so that all of a packet's fragments
    /// are classified alike.
    pub fragment: bool,
}

/// Values of the LINKTYPE_ registry.
mod link {
    pub(super) const NULL: u16 = 0;
    pub(super) const ETHERNET: u16 = 1;
    pub(super) const RAW_BSD: u16 = 12;
    pub(super) const RAW_OPENBSD: u16 = 14;
    pub(super) const RAW: u16 = 101;
    pub(super) const LOOP: u16 = 108;
    pub(super) const LINUX_SLL: u16 = 113;
    pub(super) const IPV4: u16 = 228;
    pub(super) const IPV6: u16 = 229;
    pub(super) const LINUX_SLL2: u16 = 276;
}

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// EtherTypes of VLAN tags: 802.1Q, 802.1ad, and the older one of stacked tags.
const VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// Most tags and extension headers that are skipped.
const DEPTH_MAX: usize = 16;

/// Returns whether packets of this link type can be decoded.
pub fn is_supported(link: u16) -> bool {
    matches!(
        link,
        link::NULL
            | link::ETHERNET
            | link::RAW_BSD
            | link::RAW_OPENBSD
            | link::RAW
            | link::LOOP
            | link::LINUX_SLL
            | link::IPV4
            | link::IPV6
            | link::LINUX_SLL2
    )
}

/// Decodes the headers of a packet of link type `link`.
#[inline]
pub fn decode(link: u16, data: &[u8]) -> Headers {
    match link {
        link::ETHERNET => behind_ether_type(data, 12),
        link::LINUX_SLL => behind_ether_type(data, 14),
        // 20 bytes of header, which begin with the EtherType.
        link::LINUX_SLL2 => match word(data, 0) {
            Some(ether_type) => behind_tags(data, ether_type, 20),
            None => Headers::default(),
        },
        link::RAW | link::RAW_BSD | link::RAW_OPENBSD | link::IPV4 | link::IPV6 => {
            Headers { ether_type: None, ip: ip(data, 0) }
        }
        // Four bytes of address family, in the byte order of the machine that captured; the version of IP tells enough.
        link::NULL | link::LOOP => Headers { ether_type: None, ip: ip(data, 4) },
        _ => Headers::default(),
    }
}

fn behind_ether_type(data: &[u8], at: usize) -> Headers {
    match word(data, at) {
        Some(ether_type) => behind_tags(data, ether_type, at + 2),
        None => Headers::default(),
    }
}

/// Skips VLAN tags, of which the first has `ether_type`, if that is one.
fn behind_tags(data: &[u8], mut ether_type: u16, mut at: usize) -> Headers {
    for _ in 0..DEPTH_MAX {
        if !VLAN.contains(&ether_type) {
            break;
        }
        let Some(next) = word(data, at + 2) else { break };
        (ether_type, at) = (next, at + 4);
    }
    let ip = if ether_type == IPV4 || ether_type == IPV6 { ip(data, at) } else { None };
    Headers { ether_type: Some(ether_type), ip }
}

fn ip(data: &[u8], at: usize) -> Option<Ip> {
    let header = data.get(at..)?;
    match header.first()? >> 4 {
        4 => ipv4(header, at),
        6 => ipv6(header, at),
        _ => None,
    }
}

fn ipv4(header: &[u8], at: usize) -> Option<Ip> {
    let length = usize::from(header[0] & 0x0f) * 4;
    if length < 20 || header.len() < 20 {
        return None;
    }
    let mut addresses = [[0; 16]; 2];
    addresses[0][..4].copy_from_slice(&header[12..16]);
    addresses[1][..4].copy_from_slice(&header[16..20]);
    // More fragments, or an offset above 0.
    let fragment = word(header, 6)? & 0x3fff != 0;
    let protocol = header[9];
    Some(Ip {
        at: at as u32,
        version: 4,
        dscp: header[1] >> 2,
        ecn: Ecn::from_bits(header[1]),
        protocol,
        source: addresses[0],
        destination: addresses[1],
        ports: if fragment { None } else { ports(header, protocol, length) },
        syn: !fragment && syn(header, protocol, length),
        fragment,
    })
}

fn ipv6(header: &[u8], at: usize) -> Option<Ip> {
    if header.len() < 40 {
        return None;
    }
    let traffic_class = header[0] << 4 | header[1] >> 4;
    let (mut protocol, mut next, mut fragment) = (header[6], 40, false);
    for _ in 0..DEPTH_MAX {
        // RFC 8200 section 4 and RFC 4302: the next header is the first byte, the length the second, in units of 8
        // bytes beyond the first 8; a fragment header has 8 bytes, an authentication header counts in units of 4.
        let Some(extension) = header.get(next..next + 4) else { break };
        let length = match protocol {
            0 | 43 | 60 | 135 | 139 | 140 => 8 * (usize::from(extension[1]) + 1),
            44 => {
                // An atomic fragment (RFC 6946) is the whole packet.
                fragment |= word(extension, 2)? & 0xfff9 != 0;
                8
            }
            51 => 4 * (usize::from(extension[1]) + 2),
            _ => break,
        };
        (protocol, next) = (extension[0], next + length);
        if fragment {
            break;
        }
    }
    let address = |from: usize| header[from..from + 16].try_into().unwrap_or([0; 16]);
    Some(Ip {
        at: at as u32,
        version: 6,
        dscp: traffic_class >> 2,
        ecn: Ecn::from_bits(traffic_class),
        protocol,
        source: address(8),
        destination: address(24),
        ports: if fragment { None } else { ports(header, protocol, next) },
        syn: !fragment && syn(header, protocol, next),
        fragment,
    })
}

/// Returns the ports of protocols with TCP's layout: TCP, UDP, DCCP, SCTP, UDP-Lite.
fn ports(header: &[u8], protocol: u8, at: usize) -> Option<(u16, u16)> {
    if matches!(protocol, 6 | 17 | 33 | 132 | 136) { Some((word(header, at)?, word(header, at + 2)?)) } else { None }
}

/// Returns the flag SYN of a TCP header (RFC 9293 section 3.1).
fn syn(header: &[u8], protocol: u8, at: usize) -> bool {
    protocol == 6 && header.get(at + 13).is_some_and(|flags| flags & 0x02 != 0)
}

#[inline]
fn word(data: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*data.get(at)?, *data.get(at + 1)?]))
}

impl Ip {
    /// Sets CE (RFC 3168 section 5) in the packet's data, and updates an IPv4 header checksum: a wrong checksum stays
    /// wrong by the same amount.
    pub fn mark(&self, data: &mut [u8]) {
        let Some(header) = data.get_mut(self.at as usize..) else { return };
        match (self.version, header) {
            (4, header) if header.len() >= 12 => {
                let before = u16::from_be_bytes([header[0], header[1]]);
                header[1] |= 0b11;
                let after = u16::from_be_bytes([header[0], header[1]]);
                let checksum = updated(u16::from_be_bytes([header[10], header[11]]), before, after);
                header[10..12].copy_from_slice(&checksum.to_be_bytes());
            }
            (6, [_, second, ..]) => *second |= 0b11 << 4,
            _ => {}
        }
    }
}

/// RFC 1624 eq. 3: HC' = ~(~HC + ~m + m'), in ones' complement.
fn updated(checksum: u16, before: u16, after: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}
