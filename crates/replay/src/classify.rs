//! Classification of a captured packet: flow, service, DSCP and ECN field.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use aqumen_capture::{Headers, Ip};
use aqumen_scenario::streams::mix;
use aqumen_units::Ecn;

/// A flow: the 5-tuple; of fragments and of protocols without ports, the addresses and the protocol; of all that is not
/// IP, the EtherType.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FlowKey {
    kind: Kind,
    protocol: u8,
    /// Ports; zero without ports. For packets other than IP, the first is the EtherType.
    ports: (u16, u16),
    source: [u8; 16],
    destination: [u8; 16],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// Unknown.
    Unknown,
    EtherType,
    /// IPv4 or IPv6.
    Ports(u8),
    NoPorts(u8),
    Fragment(u8),
}

/// Service of a flow, by its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Service {
    /// Protocol and lower port, unless that is ephemeral.
    Port(u8, u16),
    /// Protocol whose ports are both ephemeral.
    Ephemeral(u8),
    Fragments(u8),
    Protocol(u8),
    EtherType(u16),
    Unknown,
}

/// Hashes of a flow and its ends, for disciplines of several queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hashes {
    pub(crate) flow: u32,
    pub(crate) source: u32,
    pub(crate) destination: u32,
}

/// First ephemeral port: Linux begins at 32768, IANA (RFC 6335) at 49152.
const EPHEMERAL: u16 = 32_768;

/// DSCP and ECN in one number; [`NOT_IP`] for packets that have none.
pub(crate) type TrafficClass = u16;
pub(crate) const NOT_IP: TrafficClass = 256;
pub(crate) const TRAFFIC_CLASSES: usize = 257;

pub(crate) fn traffic_class(ip: Option<&Ip>) -> TrafficClass {
    ip.map_or(NOT_IP, |ip| u16::from(ip.dscp) << 2 | ip.ecn as u16)
}

/// Name of a traffic class, such as "EF ECT(0)".
pub(crate) fn traffic_class_name(class: TrafficClass) -> String {
    if class >= NOT_IP {
        return "not IP".into();
    }
    let ecn = match Ecn::from_bits(class as u8) {
        Ecn::NotEct => "Not-ECT",
        Ecn::Ect0 => "ECT(0)",
        Ecn::Ect1 => "ECT(1)",
        Ecn::Ce => "CE",
    };
    format!("{} {ecn}", Dscp((class >> 2) as u8))
}

/// Name of a codepoint in the IANA registry.
struct Dscp(u8);

impl fmt::Display for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            // RFC 8622, RFC 5865, non-queue-building, RFC 3246.
            1 => f.write_str("LE"),
            44 => f.write_str("VA"),
            45 => f.write_str("NQB"),
            46 => f.write_str("EF"),
            // RFC 2474 section 4.2.2: class selectors.
            dscp if dscp.is_multiple_of(8) => write!(f, "CS{}", dscp / 8),
            // RFC 2597: class 1 to 4, drop precedence 1 to 3.
            dscp @ 10..=38 if dscp.is_multiple_of(2) => write!(f, "AF{}{}", dscp / 8, dscp % 8 / 2),
            dscp => write!(f, "DSCP {dscp}"),
        }
    }
}

impl FlowKey {
    #[inline]
    pub(crate) fn of(headers: &Headers) -> Self {
        let none = FlowKey { kind: Kind::Unknown, protocol: 0, ports: (0, 0), source: [0; 16], destination: [0; 16] };
        match (headers.ip, headers.ether_type) {
            (Some(ip), _) => FlowKey {
                kind: match ip.ports {
                    Some(_) => Kind::Ports(ip.version),
                    None if ip.fragment => Kind::Fragment(ip.version),
                    None => Kind::NoPorts(ip.version),
                },
                protocol: ip.protocol,
                ports: ip.ports.unwrap_or((0, 0)),
                source: ip.source,
                destination: ip.destination,
            },
            (None, Some(ether_type)) => FlowKey { kind: Kind::EtherType, ports: (ether_type, 0), ..none },
            (None, None) => none,
        }
    }

    pub(crate) fn service(&self) -> Service {
        let (protocol, lower) = (self.protocol, self.ports.0.min(self.ports.1));
        match self.kind {
            Kind::Ports(_) if lower < EPHEMERAL => Service::Port(protocol, lower),
            Kind::Ports(_) => Service::Ephemeral(protocol),
            Kind::NoPorts(_) => Service::Protocol(protocol),
            Kind::Fragment(_) => Service::Fragments(protocol),
            Kind::EtherType => Service::EtherType(self.ports.0),
            Kind::Unknown => Service::Unknown,
        }
    }

    pub(crate) fn hashes(&self) -> Hashes {
        let (source, destination) = (hash(&self.source), hash(&self.destination));
        let kind = match self.kind {
            Kind::Unknown => 0,
            Kind::EtherType => 1,
            Kind::Ports(version) | Kind::NoPorts(version) | Kind::Fragment(version) => u64::from(version),
        };
        let ports = u64::from(self.ports.0) << 16 | u64::from(self.ports.1);
        let flow = mix(mix(source ^ (kind << 40 | u64::from(self.protocol) << 32 | ports)) ^ destination);
        Hashes { flow: (flow >> 32) as u32, source: (source >> 32) as u32, destination: (destination >> 32) as u32 }
    }
}

fn hash(address: &[u8; 16]) -> u64 {
    let value = u128::from_be_bytes(*address);
    mix(mix((value >> 64) as u64) ^ value as u64)
}

struct Protocol(u8);

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.0 {
            1 => "icmp",
            2 => "igmp",
            4 => "ipip",
            6 => "tcp",
            17 => "udp",
            33 => "dccp",
            41 => "ipv6",
            47 => "gre",
            50 => "esp",
            51 => "ah",
            58 => "icmpv6",
            89 => "ospf",
            112 => "vrrp",
            132 => "sctp",
            136 => "udplite",
            other => return write!(f, "ip-protocol/{other}"),
        };
        f.write_str(name)
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Service::Port(protocol, port) => write!(f, "{}/{port}", Protocol(*protocol)),
            Service::Ephemeral(protocol) => write!(f, "{}/ephemeral", Protocol(*protocol)),
            Service::Fragments(protocol) => write!(f, "{}/fragments", Protocol(*protocol)),
            Service::Protocol(protocol) => write!(f, "{}", Protocol(*protocol)),
            Service::EtherType(0x0806) => f.write_str("arp"),
            Service::EtherType(ether_type) => write!(f, "ether-type/{ether_type:#06x}"),
            Service::Unknown => f.write_str("unknown"),
        }
    }
}

impl fmt::Display for FlowKey {
    /// "tcp 10.0.0.1:5001 > 10.0.0.2:443".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = |version: u8, bytes: &[u8; 16]| match version {
            4 => Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]).to_string(),
            _ => Ipv6Addr::from(*bytes).to_string(),
        };
        let end = |version: u8, bytes: &[u8; 16], port: u16| match version {
            4 => format!("{}:{port}", address(4, bytes)),
            _ => format!("[{}]:{port}", address(version, bytes)),
        };
        let protocol = Protocol(self.protocol);
        match self.kind {
            Kind::Ports(version) => {
                let source = end(version, &self.source, self.ports.0);
                write!(f, "{protocol} {source} > {}", end(version, &self.destination, self.ports.1))
            }
            Kind::NoPorts(version) => {
                let source = address(version, &self.source);
                write!(f, "{protocol} {source} > {}", address(version, &self.destination))
            }
            Kind::Fragment(version) => {
                let source = address(version, &self.source);
                write!(f, "{protocol} fragments {source} > {}", address(version, &self.destination))
            }
            Kind::EtherType | Kind::Unknown => write!(f, "{}", self.service()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn ip(protocol: u8, ports: Option<(u16, u16)>) -> Ip {
        let address = |last| {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&[10, 0, 0, last]);
            bytes
        };
        Ip {
            at: 0,
            version: 4,
            dscp: 46,
            ecn: Ecn::Ect0,
            protocol,
            source: address(1),
            destination: address(2),
            ports,
            fragment: false,
            syn: false,
        }
    }

    fn key(ip: Ip) -> FlowKey {
        FlowKey::of(&Headers { ether_type: Some(0x0800), ip: Some(ip) })
    }

    #[test]
    fn services_and_flows_by_name() {
        let v6 = Ip { version: 6, ..ip(17, Some((40_000, 50_000))) };
        let cases = [
            (key(ip(6, Some((50_000, 443)))), "tcp/443", "tcp 10.0.0.1:50000 > 10.0.0.2:443"),
            (key(v6), "udp/ephemeral", "udp [a00:1::]:40000 > [a00:2::]:50000"),
            (key(ip(1, None)), "icmp", "icmp 10.0.0.1 > 10.0.0.2"),
            (key(Ip { fragment: true, ..ip(17, None) }), "udp/fragments", "udp fragments 10.0.0.1 > 10.0.0.2"),
            (key(ip(253, None)), "ip-protocol/253", "ip-protocol/253 10.0.0.1 > 10.0.0.2"),
            (FlowKey::of(&Headers { ether_type: Some(0x0806), ip: None }), "arp", "arp"),
            (FlowKey::of(&Headers { ether_type: Some(0x88cc), ip: None }), "ether-type/0x88cc", "ether-type/0x88cc"),
            (FlowKey::of(&Headers::default()), "unknown", "unknown"),
        ];
        for (key, service, flow) in cases {
            assert_eq!((key.service().to_string().as_str(), key.to_string().as_str()), (service, flow));
        }
    }

    #[test]
    fn traffic_classes_by_name() {
        let name = |dscp: u8, ecn: Ecn| traffic_class_name(traffic_class(Some(&Ip { dscp, ecn, ..ip(6, None) })));
        assert_eq!(name(0, Ecn::NotEct), "CS0 Not-ECT");
        assert_eq!(name(46, Ecn::Ect0), "EF ECT(0)");
        assert_eq!(name(10, Ecn::Ect1), "AF11 ECT(1)");
        assert_eq!(name(38, Ecn::Ce), "AF43 CE");
        assert_eq!(name(45, Ecn::NotEct), "NQB Not-ECT");
        assert_eq!(name(63, Ecn::NotEct), "DSCP 63 Not-ECT");
        assert_eq!(traffic_class_name(traffic_class(None)), "not IP");
        let names = [(1, "LE"), (8, "CS1"), (9, "DSCP 9"), (11, "DSCP 11"), (12, "AF12"), (14, "AF13"), (18, "AF21")];
        for (dscp, expected) in names.into_iter().chain([(37, "DSCP 37"), (39, "DSCP 39"), (44, "VA"), (56, "CS7")]) {
            assert_eq!(name(dscp, Ecn::NotEct), format!("{expected} Not-ECT"));
        }
    }

    #[test]
    fn hashes_tell_flows_and_hosts_apart() {
        let base = key(ip(6, Some((50_000, 443)))).hashes();
        let other_port = key(ip(6, Some((50_001, 443)))).hashes();
        assert_eq!((base.source, base.destination), (other_port.source, other_port.destination));
        assert_ne!(base.flow, other_port.flow);
        assert_ne!(base.flow, key(ip(17, Some((50_000, 443)))).hashes().flow);
        assert_ne!(base.source, base.destination);
        // Hosts by any byte of their address, wherever they stand.
        let hosts = [(1, 0), (2, 0), (1, 9), (1, 15)].map(|(value, at): (u8, usize)| {
            let mut address = [0; 16];
            address[at] = value;
            let from = key(Ip { source: address, ..ip(6, None) }).hashes();
            let to = key(Ip { destination: address, ..ip(6, None) }).hashes();
            assert_eq!((from.source, from.destination), (to.destination, base.destination));
            assert_ne!((from.flow, from.source), (to.flow, to.source));
            from.source
        });
        assert_eq!(BTreeSet::from(hosts).len(), 4);
        // Flows by everything that makes them another, told from each other by each half of the hash.
        let v6 = Ip { version: 6, ..ip(6, Some((50_000, 443))) };
        let others = [
            key(ip(6, Some((443, 50_000)))),
            key(v6),
            key(ip(6, None)),
            FlowKey::of(&Headers { ether_type: Some(0x0806), ip: None }),
            FlowKey::of(&Headers { ether_type: Some(0x88cc), ip: None }),
            FlowKey::of(&Headers::default()),
        ];
        let flows: Vec<u32> = others.iter().map(|key| key.hashes().flow).chain([base.flow]).collect();
        for half in [|hash: &u32| hash >> 16, |hash: &u32| hash & 0xffff] {
            assert_eq!(flows.iter().map(half).collect::<BTreeSet<_>>().len(), 7, "{flows:x?}");
        }
    }

    #[test]
    fn addresses_are_mixed_as_splitmix64_mixes_its_states() {
        // Its first outputs with the seed 1234567, as Vigna's program prints them; each state is a step further.
        let step = 0x9e37_79b9_7f4a_7c15_u64;
        let outputs = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        for (k, output) in (0u64..).zip(outputs) {
            assert_eq!(mix(1_234_567 + step.wrapping_mul(k)), output, "{k}");
        }
    }
}
