//! Headers after IP of packets that are not TCP: UDP with RTP and RTCP, and SCTP. Checksums are left out.

use aqumen_transport::rtp::{Media, ReceiverReport, SenderReport};
use aqumen_transport::sctp::{CHUNK_HEADER, Data, Sack, Setup};
use aqumen_transport::{Body, Packet};
use etherparse::{IpNumber, UdpHeader};

/// Offset of RTCP's ports from the flow's: RFC 3550 section 11.
const RTCP: u16 = 1;
/// First dynamic payload type (RFC 3551).
const PAYLOAD_TYPE: u8 = 96;
const RECEIVER_BUFFER: u32 = u16::MAX as u32;

/// Returns the protocol and the bytes after the IP header of a packet of `length` bytes, from and to `ports`. `flow` is
/// its synchronisation source.
pub(super) fn headers(packet: &Packet, flow: u32, ports: [u16; 2], length: u16) -> (IpNumber, Vec<u8>) {
    let udp = |ports: [u16; 2], above: Vec<u8>| {
        // A scenario may declare fewer bytes than these headers have.
        let length = length.max(UdpHeader::LEN as u16);
        let udp = UdpHeader { source_port: ports[0], destination_port: ports[1], length, checksum: 0 };
        let mut out = udp.to_bytes().to_vec();
        out.extend(above);
        (IpNumber::UDP, out)
    };
    let sctp = |chunks: Vec<u8>| {
        let mut out = Vec::with_capacity(12 + chunks.len());
        ports.iter().for_each(|port| out.extend(port.to_be_bytes()));
        out.extend([0, 0, 0, 1, 0, 0, 0, 0]); // verification tag, checksum
        out.extend(chunks);
        (IpNumber::SCTP, out)
    };
    let control = ports.map(|port| port + RTCP);
    match &packet.body {
        Body::Datagram(_) => udp(ports, Vec::new()),
        Body::Media(media) => udp(ports, rtp(media, flow)),
        Body::SenderReport(report) => udp(control, sender_report(report, flow)),
        Body::Report(report) => udp(control, receiver_report(report, flow)),
        Body::Setup(setup) => sctp(setup_chunk(*setup)),
        Body::Data(data) => sctp(data_chunk(data)),
        Body::Sack(sack) => sctp(sack_chunks(sack)),
    }
}

/// RFC 3550 section 5.1.
fn rtp(media: &Media, flow: u32) -> Vec<u8> {
    let last = media.offset.saturating_add(u32::from(media.payload)) >= media.message.bytes;
    let mut out = vec![0x80, PAYLOAD_TYPE | if last { 0x80 } else { 0 }];
    out.extend((media.seq as u16).to_be_bytes());
    words(&mut out, &[media.timestamp, flow]);
    out
}

/// RFC 3550 section 6.4.1: version 2, no report block, type 200, six words more.
fn sender_report(report: &SenderReport, flow: u32) -> Vec<u8> {
    let mut out = vec![0x80, 200, 0, 6];
    words(&mut out, &[flow, report.ntp >> 16, report.ntp << 16, report.timestamp, report.packets, report.octets]);
    out
}

/// RFC 3550 section 6.4.2: version 2, one report block, type 201, seven words more.
fn receiver_report(report: &ReceiverReport, flow: u32) -> Vec<u8> {
    let lost = u32::from(report.fraction_lost) << 24 | report.cumulative_lost as u32 & 0x00ff_ffff;
    let mut out = vec![0x81, 201, 0, 7];
    words(&mut out, &[!flow, flow, lost, report.highest, report.jitter, report.lsr, report.dlsr]);
    out
}

/// RFC 9260 section 3.3. The parameters that the set-up offers are not modelled.
fn setup_chunk(setup: Setup) -> Vec<u8> {
    let kind = match setup {
        Setup::Init => 1,
        Setup::InitAck => 2,
        Setup::CookieEcho => 10,
        Setup::CookieAck => 11,
    };
    let mut out = chunk(kind, 0, setup.bytes());
    if matches!(setup, Setup::Init | Setup::InitAck) {
        words(&mut out, &[1, RECEIVER_BUFFER, 0x0001_0001, 1]); // tag, window, streams, first TSN
    }
    if setup == Setup::InitAck {
        out.extend([0, 7]); // the state cookie
        out.extend((setup.bytes() - 20).to_be_bytes());
    }
    out
}

/// RFC 9260 section 3.3.1.
fn data_chunk(data: &Data) -> Vec<u8> {
    let last = data.offset.saturating_add(u32::from(data.payload)) >= data.message.bytes;
    let flags = if data.offset == 0 { 2 } else { 0 } | u8::from(last);
    let mut out = chunk(0, flags, data.payload + CHUNK_HEADER);
    words(&mut out, &[data.tsn, u32::from(data.stream) << 16 | data.ssn & 0xffff, 0]);
    out
}

/// RFC 9260 section 3.3.4, and the ECNE chunk of RFC 4960 appendix A.
fn sack_chunks(sack: &Sack) -> Vec<u8> {
    let blocks = sack.blocks();
    let mut out = chunk(3, 0, 16 + 4 * blocks.len() as u16);
    words(&mut out, &[sack.cumulative, sack.window, (blocks.len() as u32) << 16]);
    for &(first, last) in blocks {
        words(&mut out, &[u32::from(first) << 16 | u32::from(last)]);
    }
    if let Some(tsn) = sack.marked {
        out.extend(chunk(12, 0, 8));
        words(&mut out, &[tsn]);
    }
    out
}

fn chunk(kind: u8, flags: u8, length: u16) -> Vec<u8> {
    let [high, low] = length.to_be_bytes();
    vec![kind, flags, high, low]
}

fn words(out: &mut Vec<u8>, words: &[u32]) {
    words.iter().for_each(|word| out.extend(word.to_be_bytes()));
}

#[cfg(test)]
mod tests {
    use aqumen_transport::Message;
    use aqumen_transport::rtp::Feedback;
    use aqumen_units::{Ecn, Instant};

    use super::*;

    fn bytes(body: Body) -> (IpNumber, Vec<u8>) {
        let packet = Packet { bytes: 1200, ecn: Ecn::NotEct, seq: 0, sent_at: Instant::ZERO, body };
        headers(&packet, 5, [5001, 80], 1180)
    }

    fn message(bytes: u32) -> Message {
        Message { bytes, number: 0, created_at: Instant::ZERO }
    }

    #[test]
    fn rtp_and_rtcp_read_as_the_standard_lays_them_out() {
        let media =
            Media { seq: 0x1_0002, timestamp: 3600, message: message(1000), offset: 0, payload: 1000, rtt_us: 0 };
        let (protocol, out) = bytes(Body::Media(media));
        assert_eq!((protocol, out.len()), (IpNumber::UDP, 8 + 12));
        // Ports 5001 and 80, length 1180; version 2, marker and type 96, sequence 2, timestamp 3600, source 5.
        assert_eq!(out[..8], [0x13, 0x89, 0, 80, 4, 0x9c, 0, 0]);
        assert_eq!(out[8..], [0x80, 0xe0, 0, 2, 0, 0, 0x0e, 0x10, 0, 0, 0, 5]);
        let report = ReceiverReport {
            fraction_lost: 51,
            fraction_marked: 0,
            cumulative_lost: -2,
            highest: 9,
            jitter: 20,
            lsr: 0xb705_2000,
            dlsr: 0x0005_4000,
            feedback: Feedback::None,
        };
        let (_, out) = bytes(Body::Report(report));
        assert_eq!(out[..4], [0x13, 0x8a, 0, 81]);
        assert_eq!(out[8..20], [0x81, 201, 0, 7, 255, 255, 255, 250, 0, 0, 0, 5]);
        assert_eq!(out[20..28], [51, 255, 255, 254, 0, 0, 0, 9]);
        assert_eq!(out[32..], [0xb7, 5, 0x20, 0, 0, 5, 0x40, 0]);
    }

    #[test]
    fn a_sender_report_has_six_words_and_the_middle_of_its_time() {
        let report = SenderReport { ntp: 0x1234_5678, timestamp: 3600, packets: 9, octets: 0x0102_0304 };
        let (protocol, out) = bytes(Body::SenderReport(report));
        assert_eq!((protocol, &out[..8]), (IpNumber::UDP, &[0x13, 0x8a, 0, 81, 4, 0x9c, 0, 0][..]));
        // The middle 32 of 64 bits: the lower half of the seconds, the upper half of the fraction.
        assert_eq!(out[8..24], [0x80, 200, 0, 6, 0, 0, 0, 5, 0, 0, 0x12, 0x34, 0x56, 0x78, 0, 0]);
        assert_eq!(out[24..], [0, 0, 0x0e, 0x10, 0, 0, 0, 9, 1, 2, 3, 4]);
    }

    #[test]
    fn a_datagram_is_never_shorter_than_its_header() {
        let body = Body::Datagram(aqumen_transport::udp::Datagram { message: message(1), offset: 0, payload: 1 });
        let packet = Packet { bytes: 21, ecn: Ecn::NotEct, seq: 0, sent_at: Instant::ZERO, body };
        assert_eq!(headers(&packet, 5, [5001, 80], 1).1, [0x13, 0x89, 0, 80, 0, 8, 0, 0]);
    }

    #[test]
    fn the_last_packet_of_a_frame_has_the_marker() {
        // 1000 of 2500 bytes from each of these on; what does not say where it ends ends beyond all.
        for (offset, marked) in [(0, false), (1499, false), (1500, true), (u32::MAX, true)] {
            let media = Media { seq: 2, timestamp: 0, message: message(2500), offset, payload: 1000, rtt_us: 0 };
            assert_eq!(bytes(Body::Media(media)).1[9], if marked { 0xe0 } else { 0x60 }, "{offset}");
        }
    }

    #[test]
    fn the_first_and_the_last_part_of_a_message_say_so() {
        for (offset, flags) in [(0, 2), (1452, 0), (1547, 0), (1548, 1)] {
            let data = Data { tsn: 7, ssn: 3, stream: 0, message: message(3000), offset, payload: 1452, cwr: None };
            assert_eq!(bytes(Body::Data(data)).1[13], flags, "{offset}");
        }
        let whole = Data { tsn: 7, ssn: 3, stream: 0, message: message(99), offset: 0, payload: 99, cwr: None };
        assert_eq!(bytes(Body::Data(whole)).1[12..16], [0, 3, 0, 99 + 16]);
        // Stream numbers have 16 bits.
        let later = Data { ssn: 0x5_0003, stream: 1, ..whole };
        assert_eq!(bytes(Body::Data(later)).1[20..24], [0, 1, 0, 3]);
    }

    #[test]
    fn an_association_is_set_up_in_four_chunks() {
        let kinds = [Setup::Init, Setup::InitAck, Setup::CookieEcho, Setup::CookieAck].map(|setup| {
            let (_, out) = bytes(Body::Setup(setup));
            assert_eq!((&out[..4], out[13]), (&[0x13, 0x89, 0, 80][..], 0));
            assert_eq!(u16::from_be_bytes([out[14], out[15]]), setup.bytes());
            // The first two tell tag, window, streams and the first number.
            let told = matches!(setup, Setup::Init | Setup::InitAck);
            assert_eq!(out.len(), 12 + 4 + if told { 16 } else { 0 } + if setup == Setup::InitAck { 4 } else { 0 });
            if told {
                assert_eq!(out[16..32], [0, 0, 0, 1, 0, 0, 255, 255, 0, 1, 0, 1, 0, 0, 0, 1]);
            }
            out[12]
        });
        assert_eq!(kinds, [1, 2, 10, 11]);
    }

    #[test]
    fn a_sack_without_gaps_has_none_and_one_with_two_has_both() {
        let (_, out) = bytes(Body::Sack(Sack::new(3, 0x0102_0304)));
        assert_eq!(out[12..], [3, 0, 0, 16, 0, 0, 0, 3, 1, 2, 3, 4, 0, 0, 0, 0]);
        let mut sack = Sack::new(3, 1000);
        sack.push(2, 5);
        sack.push(0x108, 0x209);
        let (_, out) = bytes(Body::Sack(sack));
        assert_eq!(out[12..16], [3, 0, 0, 24]);
        assert_eq!(out[24..], [0, 2, 0, 0, 0, 2, 0, 5, 1, 8, 2, 9]);
    }

    #[test]
    fn sctp_reads_as_the_standard_lays_it_out() {
        let data = Data { tsn: 7, ssn: 3, stream: 2, message: message(3000), offset: 1452, payload: 1452, cwr: None };
        let (protocol, out) = bytes(Body::Data(data));
        assert_eq!(protocol, IpNumber::SCTP);
        // Neither the first nor the last part, 1468 bytes, TSN 7, stream 2, number 3.
        assert_eq!(out[12..], [0, 0, 5, 0xbc, 0, 0, 0, 7, 0, 2, 0, 3, 0, 0, 0, 0]);
        let mut sack = Sack::new(3, 1000);
        sack.marked = Some(4);
        sack.push(2, 5);
        let (_, out) = bytes(Body::Sack(sack));
        assert_eq!(out[12..28], [3, 0, 0, 20, 0, 0, 0, 3, 0, 0, 3, 0xe8, 0, 1, 0, 0]);
        assert_eq!(out[28..], [0, 2, 0, 5, 12, 0, 0, 8, 0, 0, 0, 4]);
        let (_, out) = bytes(Body::Setup(Setup::InitAck));
        assert_eq!(out[12..16], [2, 0, 0, 124]);
        assert_eq!(out[32..], [0, 7, 0, 104]);
    }
}
