//! UDP: fragmentation, reassembly and loss of messages.

use aqumen_transport::rtp::RtpConfig;
use aqumen_transport::sctp::SctpConfig;
use aqumen_transport::tcp::TcpConfig;
use aqumen_transport::udp::{Datagram, UdpConfig, UdpSink, UdpSource};
use aqumen_transport::{Body, Config, Delivery, Endpoint, Message, Packet};
use aqumen_units::Ecn;
use proptest::prelude::*;

use crate::common::{at, packets};

const CFG: UdpConfig = UdpConfig::standard();

fn message(number: u32, bytes: u32) -> Message {
    Message { bytes, number, created_at: at(1) }
}

#[test]
fn datagrams_are_sent_at_once() {
    let mut source = UdpSource::new(&CFG);
    (0..1000).for_each(|number| source.write(at(1), message(number, 1000)));
    assert_eq!(packets(&mut source, at(1)).len(), 1000);
    assert_eq!(CFG.window_pkts(), None);
    // All other transports adapt to congestion.
    let others: [&dyn Config; 3] = [&TcpConfig::ns2(), &SctpConfig::standard(), &RtpConfig::standard()];
    assert!(!CFG.adapts() && others.iter().all(|config| config.adapts()));
    // Data of a full packet: 1500 bytes less the headers of IPv4 and UDP, 1000 less those of IPv4 and TCP.
    assert_eq!((CFG.payload_bytes(), others[0].payload_bytes()), (1472, 960));
}

/// 3000 = 1472 + 1472 + 56 bytes of data, each with 28 of headers.
#[test]
fn a_large_message_is_sent_as_full_packets_and_a_remainder() {
    let mut source = UdpSource::new(&CFG);
    source.write(at(1), message(0, 3000));
    assert!(!source.is_idle());
    let sent = packets(&mut source, at(1));
    assert_eq!(sent.iter().map(|packet| packet.bytes).collect::<Vec<_>>(), [1500, 1500, 84]);
    assert_eq!(sent.iter().map(|packet| packet.seq).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(sent.iter().all(|packet| packet.ecn == Ecn::NotEct && packet.sent_at == at(1)));
    assert!(source.is_idle());
    assert_eq!(source.stats().sent, 3);
}

#[test]
fn a_message_is_delivered_when_its_last_part_arrives_in_whatever_order() {
    let mut source = UdpSource::new(&CFG);
    let mut sink = UdpSink::new(&CFG);
    source.write(at(1), message(7, 3000));
    let mut sent = packets(&mut source, at(1));
    sent.reverse();
    for (packet, when) in sent.iter().zip(5..) {
        assert_eq!(sink.poll_delivery(), None);
        sink.on_packet(at(when), packet);
    }
    assert_eq!(sink.poll_delivery(), Some(Delivery { message: message(7, 3000), complete_at: at(7), bytes: 3000 }));
    assert_eq!(sink.poll_delivery(), None);
    assert_eq!(sink.stats().delivered_bytes, 3000);
}

#[test]
fn a_lost_part_loses_its_message_and_no_other() {
    let mut source = UdpSource::new(&CFG);
    let mut sink = UdpSink::new(&CFG);
    for number in 0..100 {
        source.write(at(1), message(number, 3000));
    }
    // The second packet of each message with an even number is lost.
    for (index, packet) in packets(&mut source, at(1)).iter().enumerate() {
        if index % 6 != 1 {
            sink.on_packet(at(2), packet);
        }
    }
    let delivered: Vec<u32> = std::iter::from_fn(|| sink.poll_delivery()).map(|one| one.message.number).collect();
    assert_eq!(delivered, (0..100).filter(|number| number % 2 == 1).collect::<Vec<_>>());
}

#[test]
fn an_empty_message_is_a_packet_of_headers() {
    let mut source = UdpSource::new(&CFG);
    let mut sink = UdpSink::new(&CFG);
    source.write(at(1), message(0, 0));
    let sent = packets(&mut source, at(1));
    assert_eq!(sent.iter().map(|packet| packet.bytes).collect::<Vec<_>>(), [28]);
    sink.on_packet(at(2), &sent[0]);
    assert_eq!(sink.poll_delivery().map(|one| one.bytes), Some(0));
}

#[test]
fn a_field_out_of_range_is_named() {
    let small = UdpConfig { packet_bytes: 28, ..CFG };
    let error = small.validate().unwrap_err();
    assert_eq!(error.to_string(), "packet_bytes = 28: must be more than header_bytes, at most 65535 bytes");
    assert_eq!(UdpConfig { header_bytes: 300, ..CFG }.validate().unwrap_err().field, "header_bytes");
    assert_eq!(CFG.validate(), Ok(()));
}

proptest! {
    #[test]
    fn every_message_arrives_whole_without_loss(sizes in prop::collection::vec(0u32..20_000, 1..50)) {
        let mut source = UdpSource::new(&CFG);
        let mut sink = UdpSink::new(&CFG);
        for (&bytes, number) in sizes.iter().zip(0..) {
            source.write(at(1), message(number, bytes));
        }
        for packet in packets(&mut source, at(1)) {
            prop_assert!(packet.bytes <= CFG.packet_bytes);
            sink.on_packet(at(2), &packet);
        }
        let delivered: Vec<u32> = std::iter::from_fn(|| sink.poll_delivery()).map(|one| one.bytes).collect();
        prop_assert_eq!(delivered, sizes);
    }

    #[test]
    fn arbitrary_packets_cause_no_panic(parts in prop::collection::vec((any::<u32>(), 0u32..4, any::<u32>(), any::<u16>()), 0..100)) {
        let mut sink = UdpSink::new(&CFG);
        for (bytes, number, offset, payload) in parts {
            let body = Body::Datagram(Datagram { message: message(number, bytes), offset, payload });
            sink.on_packet(at(2), &Packet { bytes: 100, ecn: Ecn::Ce, seq: number, sent_at: at(1), body });
        }
        while sink.poll_delivery().is_some() {}
        prop_assert_eq!(sink.poll_transmit(at(3)), None);
    }
}
