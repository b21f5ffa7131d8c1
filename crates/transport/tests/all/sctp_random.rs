//! SCTP: all messages arrive once, in the order of their stream, over lossy channels.

use crate::common;

use aqumen_transport::sctp::{Data, Sack, SctpConfig, SctpSink, SctpSource, Setup};
use aqumen_transport::{Body, Endpoint, Message, Packet};
use aqumen_units::{Ecn, Span};
use common::{Channel, Net, Rng, at};
use proptest::prelude::*;

fn configs() -> impl Strategy<Value = SctpConfig> {
    let preset = prop_oneof![Just(SctpConfig::standard()), Just(SctpConfig::ns2())];
    (preset, any::<[bool; 3]>(), 1u16..5, 0u8..6, 1500u32..100_000).prop_map(
        |(preset, flags, streams, burst, window)| {
            let [ecn, handshake, delayed] = flags;
            SctpConfig {
                ecn,
                handshake,
                streams,
                max_burst: burst,
                receive_window_bytes: window,
                delayed_sack: delayed.then(|| Span::from_millis(200)),
                ..preset
            }
        },
    )
}

proptest! {
    #[test]
    fn all_that_is_written_arrives_once_and_in_order(
        cfg in configs(),
        sizes in prop::collection::vec(0u32..20_000, 1..60),
        loss_percent in 0u64..25,
        back_loss_percent in 0u64..25,
        mark_percent in 0u64..20,
        seed in any::<u64>(),
    ) {
        let channel = Channel { bits_per_sec: 2_000_000, delay_ms: 20, loss_percent, back_loss_percent, mark_percent, seed };
        let mut net = Net::new(SctpSource::new(&cfg), SctpSink::new(&cfg), channel);
        for (&bytes, number) in sizes.iter().zip(0..) {
            net.source.write(at(0), Message { bytes, number, created_at: at(0) });
        }
        for _ in 0..200_000 {
            if !net.step() {
                break;
            }
            prop_assert!(net.source.cwnd() >= cfg.chunk_bytes().min(cfg.first_window()));
            prop_assert!(net.source.is_idle() || net.source.next_timer().is_some(), "stuck");
        }
        prop_assert!(net.source.is_idle());
        prop_assert_eq!(net.source.flight(), 0);
        prop_assert_eq!(net.source.next_timer(), None);
        for stream in 0..u32::from(cfg.streams) {
            let delivered: Vec<(u32, u32)> = net.delivered.iter()
                .map(|one| (one.message.number, one.bytes))
                .filter(|one| one.0 % u32::from(cfg.streams) == stream)
                .collect();
            let written: Vec<(u32, u32)> = (0..).zip(sizes.iter().copied())
                .filter(|one| one.0 % u32::from(cfg.streams) == stream)
                .collect();
            prop_assert_eq!(delivered, written);
        }
        let bytes: u64 = sizes.iter().map(|&bytes| u64::from(bytes)).sum();
        prop_assert_eq!(net.sink.stats().delivered_bytes, bytes);
    }

    #[test]
    fn arbitrary_packets_cause_no_panic(cfg in configs(), seed in any::<u64>()) {
        let mut rng = Rng(seed | 1);
        let mut source = SctpSource::new(&cfg);
        let mut sink = SctpSink::new(&cfg);
        source.start(at(0));
        for step in 0..400 {
            let now = at(step * 100);
            let near = |rng: &mut Rng| if rng.percent(10) { rng.below(1 << 32) as u32 } else { rng.below(30) as u32 };
            let body = match rng.below(4) {
                0 => Body::Setup([Setup::Init, Setup::InitAck, Setup::CookieEcho, Setup::CookieAck][rng.below(4) as usize]),
                1 => {
                    let mut sack = Sack::new(near(&mut rng), near(&mut rng));
                    sack.marked = rng.percent(20).then(|| near(&mut rng));
                    for _ in 0..rng.below(12) {
                        sack.push(near(&mut rng) as u16, near(&mut rng) as u16);
                    }
                    Body::Sack(sack)
                }
                _ => Body::Data(Data {
                    tsn: near(&mut rng),
                    ssn: near(&mut rng),
                    stream: near(&mut rng) as u16 % 8,
                    message: Message { bytes: near(&mut rng), number: near(&mut rng), created_at: at(0) },
                    offset: near(&mut rng),
                    payload: near(&mut rng) as u16,
                    cwr: rng.percent(10).then(|| near(&mut rng)),
                }),
            };
            let packet = Packet { bytes: 100, ecn: Ecn::Ce, seq: 0, sent_at: now, body };
            source.on_packet(now, &packet);
            sink.on_packet(now, &packet);
            if rng.percent(30) {
                source.on_timer(now);
                sink.on_timer(now);
            }
            while source.poll_transmit(now).is_some() {}
            while sink.poll_transmit(now).is_some() {}
            while sink.poll_delivery().is_some() {}
        }
    }
}
