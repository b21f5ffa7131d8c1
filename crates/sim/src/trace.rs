//! Packet trace of a run, with the headers that its packets would have on a real network.
//!
//! Packets are captured after marking. Addresses identify the flow: flow f runs from 10.0.0.0 + f to 10.128.0.0 + f,
//! port 5001 to port 80. Sequence numbers count bytes from 1. Payload is not captured; its length is.

mod wire;

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use aqumen_network::WirePacket;
use aqumen_scenario::Plan;
use aqumen_transport::Packet;
use aqumen_transport::tcp::{Ack, Feedback};
use aqumen_units::Bytes;
use etherparse::{IpNumber, Ipv4Header, TcpHeader, TcpOptionElement};

use crate::Error;
use crate::event::Event;

pub(crate) struct Trace {
    file: PathBuf,
    out: aqumen_network::Trace<BufWriter<File>>,
    /// Payload and header sizes of each flow, to count sequence numbers in bytes.
    flows: Vec<Payload>,
}

#[derive(Clone, Copy)]
struct Payload {
    full: u32,
    header: u16,
}

/// Write buffer: a record takes some hundred bytes, and a system call as long as a packet of the run.
const BUFFER_BYTES: usize = 1 << 18;

const SENDER_PORT: u16 = 5001;
const RECEIVER_PORT: u16 = 80;

impl Trace {
    pub(crate) fn create(plan: &Plan, file: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Trace { file: file.to_path_buf(), source };
        let payload = |group: usize| {
            let transport = &plan.groups[group].transport;
            Payload { full: transport.payload_bytes() as u32, header: transport.header_bytes() }
        };
        let slowest = plan.links.iter().flat_map(|link| &link.rates).map(|&(_, rate)| rate).min();
        // A packet is reported at the end of its transmission at the latest.
        let slack = slowest.map_or(0, |rate| rate.time_for(Bytes(u16::MAX as u64)).as_nanos());
        let links: Vec<String> = plan.links.iter().map(|link| link.name.to_string()).collect();
        let links = links.iter().map(String::as_str);
        let out = File::create(file)
            .and_then(|out| aqumen_network::Trace::new(BufWriter::with_capacity(BUFFER_BYTES, out), links, slack));
        Ok(Trace {
            file: file.to_path_buf(),
            out: out.map_err(failed)?,
            flows: plan.flows.iter().map(|flow| payload(flow.group as usize)).collect(),
        })
    }

    /// Adds a TCP segment whose transmission on `link` starts at `start`.
    pub(crate) fn segment(&mut self, link: u32, start: u64, flow: u32, event: &Event) {
        let payload = self.flows[flow as usize];
        let write = |out: &mut Vec<u8>| payload.data_headers(out, flow, event);
        self.out.transmit(event.at, link, start, event.wire_bytes(), write);
    }

    /// Adds an acknowledgement whose transmission on `link` starts at `start`.
    pub(crate) fn ack(&mut self, link: u32, start: u64, flow: u32, event: &Event, ack: &Ack) {
        let payload = self.flows[flow as usize];
        let write = |out: &mut Vec<u8>| payload.ack_headers(out, flow, event, ack);
        self.out.transmit(event.at, link, start, event.wire_bytes(), write);
    }

    /// Adds a packet of another transport whose transmission on `link` starts at `start`.
    pub(crate) fn packet(&mut self, link: u32, start: u64, flow: u32, event: &Event, packet: &Packet) {
        let write = |out: &mut Vec<u8>| packet_headers(out, flow, event, packet);
        self.out.transmit(event.at, link, start, event.wire_bytes(), write);
    }

    /// Writes the pending records and closes the file.
    pub(crate) fn finish(self) -> Result<(), Error> {
        self.out.finish().map_err(|source| Error::Trace { file: self.file, source })
    }
}

impl Payload {
    fn data_headers(&self, out: &mut Vec<u8>, flow: u32, event: &Event) {
        let segment = event.as_segment();
        let Payload { full, header } = *self;
        let sequence = segment.seq.wrapping_mul(full).wrapping_add(1);
        let mut tcp = TcpHeader::new(SENDER_PORT, RECEIVER_PORT, sequence, u16::MAX);
        tcp.syn = segment.syn;
        tcp.ack = !segment.syn;
        tcp.cwr = segment.cwr;
        tcp.psh = segment.push;
        tcp.acknowledgment_number = u32::from(!segment.syn);
        let payload = segment.bytes.saturating_sub(header);
        ip_and_tcp(out, sender_address(flow), receiver_address(flow), event, &tcp, payload);
    }

    fn ack_headers(&self, out: &mut Vec<u8>, flow: u32, event: &Event, ack: &Ack) {
        let in_bytes = |segment: u32| segment.wrapping_mul(self.full).wrapping_add(1);
        let mut tcp = TcpHeader::new(RECEIVER_PORT, SENDER_PORT, 1, ack.window.min(u16::MAX as u32) as u16);
        tcp.ack = true;
        tcp.ece = ack.ece;
        if let Feedback::Marks(count) = ack.feedback {
            // ACE, the three flags AE, CWR and ECE (RFC 9768 section 3.2.2): the count from 5 on, modulo 8.
            let ace = count.wrapping_add(5);
            (tcp.ns, tcp.cwr, tcp.ece) = (ace & 4 != 0, ace & 2 != 0, ace & 1 != 0);
        }
        tcp.acknowledgment_number = in_bytes(ack.ack);
        if let [first, rest @ ..] = ack.sack.as_slice() {
            let block = |&(first, end): &(u32, u32)| (in_bytes(first), in_bytes(end));
            let others = [rest.first().map(block), rest.get(1).map(block), None];
            let option = TcpOptionElement::SelectiveAcknowledgement(block(first), others);
            tcp.set_options(&[TcpOptionElement::Noop, TcpOptionElement::Noop, option]).expect("three blocks fit");
        }
        ip_and_tcp(out, receiver_address(flow), sender_address(flow), event, &tcp, 0);
    }
}

/// Headers of a packet that is not TCP.
fn packet_headers(out: &mut Vec<u8>, flow: u32, event: &Event, packet: &Packet) {
    let (mut ends, mut ports) = ([sender_address(flow), receiver_address(flow)], [SENDER_PORT, RECEIVER_PORT]);
    if event.is_ack() {
        ends.reverse();
        ports.reverse();
    }
    let length = packet.bytes.saturating_sub(Ipv4Header::MIN_LEN_U16);
    let (protocol, headers) = wire::headers(packet, flow, ports, length);
    ip(out, ends[0], ends[1], event, protocol, length);
    out.extend(headers);
}

fn ip_and_tcp(out: &mut Vec<u8>, source: [u8; 4], destination: [u8; 4], event: &Event, tcp: &TcpHeader, payload: u16) {
    ip(out, source, destination, event, IpNumber::TCP, tcp.header_len() as u16 + payload);
    out.extend_from_slice(&tcp.to_bytes());
}

/// Writes an IPv4 header (RFC 791) without options and fragmentation, for `length` bytes of payload.
fn ip(out: &mut Vec<u8>, source: [u8; 4], destination: [u8; 4], event: &Event, protocol: IpNumber, length: u16) {
    let total = length.checked_add(Ipv4Header::MIN_LEN_U16).expect("a packet is below 64 KiB").to_be_bytes();
    let (ecn, hops) = (event.ecn() as u8, 64);
    let [s0, s1, s2, s3] = source;
    let [d0, d1, d2, d3] = destination;
    let mut header =
        [0x45, ecn, total[0], total[1], 0, 0, 0x40, 0, hops, protocol.0, 0, 0, s0, s1, s2, s3, d0, d1, d2, d3];
    // The sum of five 32-bit words fits 64 bits; folding the carries gives the ones' complement sum of 16-bit words.
    let words = header.chunks_exact(4).map(|word| u64::from(u32::from_be_bytes([word[0], word[1], word[2], word[3]])));
    let mut sum: u64 = words.sum();
    while sum >> 16 > 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    header[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    out.extend_from_slice(&header);
}

fn sender_address(flow: u32) -> [u8; 4] {
    (0x0a00_0000 | (flow & 0x007f_ffff)).to_be_bytes()
}

fn receiver_address(flow: u32) -> [u8; 4] {
    (0x0a80_0000 | (flow & 0x007f_ffff)).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use aqumen_transport::tcp::{SackBlocks, Segment};
    use aqumen_transport::udp::Datagram;
    use aqumen_transport::{Body, Message};
    use aqumen_units::{Ecn, Instant};
    use etherparse::UdpHeader;

    use super::*;

    /// Segments of 1448 bytes behind 52 of headers.
    const PAYLOAD: Payload = Payload { full: 1448, header: 52 };

    const SEGMENT: Segment = Segment {
        seq: 3,
        bytes: 1500,
        ecn: Ecn::Ect0,
        cwr: false,
        syn: false,
        push: false,
        retransmission: false,
        sent_at: Instant::ZERO,
    };

    const ACK: Ack = Ack {
        ack: 3,
        window: 1000,
        ece: false,
        echo: Instant::ZERO,
        sack: SackBlocks::EMPTY,
        feedback: Feedback::None,
    };

    /// The headers that `write` puts down, read by a library, and how many bytes are left.
    fn read(write: impl FnOnce(&mut Vec<u8>)) -> (Ipv4Header, TcpHeader, usize) {
        let mut out = Vec::new();
        write(&mut out);
        let (ip, rest) = Ipv4Header::from_slice(&out).unwrap();
        assert_eq!(ip.header_checksum, ip.calc_header_checksum());
        assert_eq!(
            (ip.protocol, ip.dont_fragment, ip.more_fragments, ip.time_to_live),
            (IpNumber::TCP, true, false, 64)
        );
        let (tcp, rest) = TcpHeader::from_slice(rest).unwrap();
        (ip, tcp, rest.len())
    }

    #[test]
    fn a_segment_counts_bytes_from_one_and_shows_its_flags_and_its_mark() {
        for (cwr, syn, push) in
            [(false, false, false), (true, false, false), (false, true, false), (false, false, true)]
        {
            let segment = Segment { cwr, syn, push, ..SEGMENT };
            let (ip, tcp, rest) = read(|out| PAYLOAD.data_headers(out, 7, &Event::segment(&segment, 0)));
            assert_eq!((ip.source, ip.destination), ([10, 0, 0, 7], [10, 128, 0, 7]));
            assert_eq!((tcp.source_port, tcp.destination_port, tcp.window_size), (5001, 80, u16::MAX));
            // Three segments came before; 20 bytes of each header, and the payload.
            assert_eq!((tcp.sequence_number, ip.total_len, rest), (1 + 3 * 1448, 20 + 20 + 1448, 0));
            assert_eq!((tcp.cwr, tcp.syn, tcp.psh, tcp.ack), (cwr, syn, push, !syn));
            assert_eq!(tcp.acknowledgment_number, if syn { 0 } else { 1 });
            assert_eq!(u8::from(ip.ecn), 2);
        }
        let mut marked = Event::segment(&SEGMENT, 0);
        marked.mark();
        assert_eq!(u8::from(read(|out| PAYLOAD.data_headers(out, 7, &marked)).0.ecn), 3);
        // Less on the wire than the headers that it would have: no payload.
        let small = Segment { bytes: 40, ..SEGMENT };
        assert_eq!(read(|out| PAYLOAD.data_headers(out, 7, &Event::segment(&small, 0))).0.total_len, 40);
    }

    #[test]
    fn an_acknowledgement_tells_the_next_byte_the_window_and_what_it_feeds_back() {
        let seen = |ack: Ack| read(|out| PAYLOAD.ack_headers(out, 7, &Event::ack(&ack, 40, 0), &ack));
        let (ip, tcp, _) = seen(ACK);
        assert_eq!((ip.source, ip.destination, ip.total_len), ([10, 128, 0, 7], [10, 0, 0, 7], 40));
        assert_eq!((tcp.source_port, tcp.destination_port, tcp.sequence_number), (80, 5001, 1));
        assert_eq!((tcp.acknowledgment_number, tcp.window_size, tcp.ack), (1 + 3 * 1448, 1000, true));
        assert_eq!((tcp.ns, tcp.cwr, tcp.ece), (false, false, false));
        // A field of 16 bits says no more.
        assert_eq!(seen(Ack { window: 70_000, ..ACK }).1.window_size, u16::MAX);
        assert!(seen(Ack { ece: true, ..ACK }).1.ece);
        for marks in 0..9 {
            let (_, tcp, _) = seen(Ack { feedback: Feedback::Marks(marks), ..ACK });
            let ace = u32::from(tcp.ns) << 2 | u32::from(tcp.cwr) << 1 | u32::from(tcp.ece);
            assert_eq!(ace, (marks + 5) % 8);
        }
    }

    #[test]
    fn sack_blocks_are_runs_of_bytes() {
        let runs = [(9, 10), (7, 8), (4, 6)];
        for n in 1..=3 {
            let mut ack = ACK;
            runs[..n].iter().for_each(|&(first, end)| assert!(ack.sack.push(first, end)));
            let (ip, tcp, _) = read(|out| PAYLOAD.ack_headers(out, 7, &Event::ack_in_table(&ack, 40, 0, 0), &ack));
            let options: Vec<_> = tcp.options_iterator().map(Result::unwrap).collect();
            let bytes = runs.map(|(first, end)| (1 + first * 1448, 1 + end * 1448));
            let others = [1, 2].map(|k| (k < n).then_some(bytes[k]));
            let sack = TcpOptionElement::SelectiveAcknowledgement(bytes[0], [others[0], others[1], None]);
            assert_eq!(options, [TcpOptionElement::Noop, TcpOptionElement::Noop, sack]);
            // Two bytes, two of the option, eight for each.
            assert_eq!(ip.total_len, 40 + 4 + 8 * n as u16);
        }
    }

    #[test]
    fn a_packet_that_is_not_tcp_goes_from_end_to_end_and_back() {
        let body = Body::Datagram(Datagram {
            message: Message { bytes: 100, number: 0, created_at: Instant::ZERO },
            offset: 0,
            payload: 100,
        });
        let packet = Packet { bytes: 128, ecn: Ecn::NotEct, seq: 0, sent_at: Instant::ZERO, body };
        for (back, ends, ports) in [(false, [0, 128], [5001, 80]), (true, [128, 0], [80, 5001])] {
            let mut out = Vec::new();
            packet_headers(&mut out, 7, &Event::packet(&packet, 0, back, 0), &packet);
            let (ip, rest) = Ipv4Header::from_slice(&out).unwrap();
            assert_eq!(ip.header_checksum, ip.calc_header_checksum());
            assert_eq!((ip.source, ip.destination), ([10, ends[0], 0, 7], [10, ends[1], 0, 7]));
            assert_eq!((ip.protocol, ip.total_len, u8::from(ip.ecn)), (IpNumber::UDP, 128, 0));
            let (udp, rest) = UdpHeader::from_slice(rest).unwrap();
            assert_eq!(([udp.source_port, udp.destination_port], udp.length, rest.len()), (ports, 108, 0));
        }
    }

    #[test]
    fn flows_have_addresses_of_their_own_senders_and_receivers_apart() {
        assert_eq!((sender_address(0), receiver_address(0)), ([10, 0, 0, 0], [10, 128, 0, 0]));
        assert_eq!((sender_address(70_000), receiver_address(70_000)), ([10, 1, 17, 112], [10, 129, 17, 112]));
    }
}
