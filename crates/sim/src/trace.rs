//! The packet trace of a run: the headers that its packets would have.
//!
//! A packet is shown after any mark. Its addresses tell the flow: flow f runs from 10.0.0.0 + f to
//! 10.128.0.0 + f, port 5001 to
//! 80. Sequence numbers count bytes from 1; payload is not captured, the original length is.

mod wire;

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use aqumen_network::Carried;
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
    /// Payload of a full segment of each flow's group, and its group, to count sequence numbers in bytes.
    flows: Vec<Payload>,
}

#[derive(Clone, Copy)]
struct Payload {
    full: u32,
    header: u16,
}

/// A packet of a trace takes some hundred bytes, a call of the system as long as a packet of the run.
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
        // A packet is reported when its transmission ends, at the latest.
        let slack = slowest.map_or(0, |rate| rate.time_for(Bytes(u16::MAX as u64)).as_nanos());
        let links = plan.links.iter().map(|link| link.name.as_str());
        let out = File::create(file)
            .and_then(|out| aqumen_network::Trace::new(BufWriter::with_capacity(BUFFER_BYTES, out), links, slack));
        Ok(Trace {
            file: file.to_path_buf(),
            out: out.map_err(failed)?,
            flows: plan.flows.iter().map(|flow| payload(flow.group as usize)).collect(),
        })
    }

    /// The transmission of a TCP segment on `link` starts at `start`.
    pub(crate) fn segment(&mut self, link: u32, start: u64, flow: u32, event: &Event) {
        let payload = self.flows[flow as usize];
        let write = |out: &mut Vec<u8>| payload.data_headers(out, flow, event);
        self.out.transmit(event.at, link, start, event.wire_bytes(), write);
    }

    /// The same of an acknowledgement.
    pub(crate) fn ack(&mut self, link: u32, start: u64, flow: u32, event: &Event, ack: &Ack) {
        let payload = self.flows[flow as usize];
        let write = |out: &mut Vec<u8>| payload.ack_headers(out, flow, event, ack);
        self.out.transmit(event.at, link, start, event.wire_bytes(), write);
    }

    /// The same of a packet of another transport.
    pub(crate) fn packet(&mut self, link: u32, start: u64, flow: u32, event: &Event, packet: &Packet) {
        let write = |out: &mut Vec<u8>| packet_headers(out, flow, event, packet);
        self.out.transmit(event.at, link, start, event.wire_bytes(), write);
    }

    /// Writes what is pending and closes the file.
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

/// An IPv4 header (RFC 791) without options of a packet that is not to be fragmented, above
/// which `length` bytes follow.
fn ip(out: &mut Vec<u8>, source: [u8; 4], destination: [u8; 4], event: &Event, protocol: IpNumber, length: u16) {
    let total = length.checked_add(Ipv4Header::MIN_LEN_U16).expect("a packet is below 64 KiB").to_be_bytes();
    let (ecn, hops) = (event.ecn() as u8, 64);
    let [s0, s1, s2, s3] = source;
    let [d0, d1, d2, d3] = destination;
    let mut header =
        [0x45, ecn, total[0], total[1], 0, 0, 0x40, 0, hops, protocol.0, 0, 0, s0, s1, s2, s3, d0, d1, d2, d3];
    // The sum of five of 32 bits fits 64; folding carries back is the sum of the words of 16 bits in ones' complement.
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
    use super::*;

    #[test]
    fn flows_have_addresses_of_their_own_senders_and_receivers_apart() {
        assert_eq!((sender_address(0), receiver_address(0)), ([10, 0, 0, 0], [10, 128, 0, 0]));
        assert_eq!((sender_address(70_000), receiver_address(70_000)), ([10, 1, 17, 112], [10, 129, 17, 112]));
    }
}
