//! RTP: frames, reports, round trips, rates, calculated by hand. A full packet is 1200 bytes, 1160 of them media.

use crate::common;

use aqumen_transport::rtp::{
    Control, Feedback, Media, ReceiverReport, RtpConfig, RtpSink, RtpSource, SenderReport, throughput,
};
use aqumen_transport::{Body, Config, Delivery, Endpoint, Message, Packet};
use aqumen_units::{Ecn, Instant, Rate, Span};
use common::{Channel, Net, Rng, at, packets};
use proptest::prelude::*;

const CFG: RtpConfig = RtpConfig::standard();

const QUIET: ReceiverReport = ReceiverReport {
    fraction_lost: 0,
    fraction_marked: 0,
    cumulative_lost: 0,
    highest: 0,
    jitter: 0,
    lsr: 0,
    dlsr: 0,
    feedback: Feedback::None,
};

fn packet(now: Instant, body: Body) -> Packet {
    Packet { bytes: 100, ecn: Ecn::NotEct, seq: 0, sent_at: now, body }
}

fn media(packet: &Packet) -> Option<Media> {
    match packet.body {
        Body::Media(media) => Some(media),
        _ => None,
    }
}

fn report(packets: &[Packet]) -> Option<ReceiverReport> {
    packets.iter().find_map(|packet| match packet.body {
        Body::Report(report) => Some(report),
        _ => None,
    })
}

/// Media packet `seq`, a frame by itself, created `seq` x 40 ms after the start.
fn frame(seq: u32) -> Media {
    let created_at = at(40 * u64::from(seq));
    let message = Message { bytes: 1000, number: seq, created_at };
    Media { seq, timestamp: 3600 * seq, message, offset: 0, payload: 1000, rtt_us: 0 }
}

fn near(left: f64, right: f64) {
    assert!((left - right).abs() <= 1e-12 * right, "{left} {right}");
}

/// Packets sent until `until_ms` without a report: times (ms) and sizes of media packets, and times of sender reports.
fn sent_until(cfg: &RtpConfig, until_ms: u64) -> (Vec<(u64, u16)>, Vec<u64>) {
    let (mut source, mut media_sent, mut reports) = (RtpSource::new(cfg), Vec::new(), Vec::new());
    source.start(at(0));
    let mut now = at(0);
    while now < at(until_ms) {
        source.on_timer(now);
        while let Some(sent) = source.poll_transmit(now) {
            let ms = now.as_nanos() / 1_000_000;
            match sent.body {
                Body::SenderReport(_) => reports.push(ms),
                _ => media_sent.push((ms, sent.bytes)),
            }
        }
        now = source.next_timer().unwrap();
    }
    (media_sent, reports)
}

/// 300 kbit/s x 40 ms = 1500 bytes per frame, in packets of 1160: one from the first frame, remainder 340; then 1840
/// and 2180 make one each, remainders 680 and 1020; 2520 make two.
#[test]
fn an_encoder_of_whole_packets_carries_the_remainder_over() {
    let cfg = RtpConfig { control: Control::Fixed, whole_packets: true, ..CFG };
    let (sent, _) = sent_until(&cfg, 160);
    assert_eq!(sent, [(0, 1200), (40, 1200), (80, 1200), (120, 1200), (140, 1200)]);
    // 8 kbit/s x 40 ms = 40 bytes: every 29th frame makes a packet.
    let slow = RtpConfig { initial_rate: Rate::from_bps(8000), min_rate: Rate::from_bps(8000), ..cfg };
    assert_eq!(sent_until(&slow, 3500).0, [(1120, 1200), (2280, 1200), (3440, 1200)]);
}

#[test]
fn the_sender_reports_at_an_interval_of_its_own() {
    let cfg = RtpConfig { control: Control::Fixed, sender_report_interval: Span::from_secs(5), ..CFG };
    assert_eq!(sent_until(&cfg, 12_000).1, [0, 5000, 10_000]);
    assert_eq!(sent_until(&RtpConfig { control: Control::Fixed, ..CFG }, 2000).1, [0, 900, 1800]);
}

/// 300 kbit/s x 40 ms = 1500 bytes: 1160 and 340, 20 ms apart, the first followed by a sender report.
#[test]
fn the_encoder_makes_frames_at_its_rate_and_spreads_their_packets() {
    let mut source = RtpSource::new(&CFG);
    source.start(at(0));
    let mut sent = Vec::new();
    while sent.len() < 6 {
        let now = source.next_timer().unwrap_or(at(0));
        source.on_timer(now);
        sent.extend(packets(&mut source, now));
    }
    let seen: Vec<(u16, u64)> = sent.iter().map(|one| (one.bytes, one.sent_at.as_nanos() / 1_000_000)).collect();
    assert_eq!(seen, [(1200, 0), (56, 0), (380, 20), (1200, 40), (380, 60), (1200, 80)]);
    let report = SenderReport { ntp: 1, timestamp: 0, packets: 1, octets: 1160 };
    assert_eq!(sent[1].body, Body::SenderReport(report));
    let numbers: Vec<(u32, u32)> = sent.iter().filter_map(media).map(|one| (one.seq, one.timestamp)).collect();
    assert_eq!(numbers, [(0, 0), (1, 0), (2, 3600), (3, 3600), (4, 7200)]);
    source.stop(at(80));
    source.on_timer(at(100));
    assert_eq!(packets(&mut source, at(100)).len(), 1, "the frame that was begun is sent whole");
    assert!(source.is_idle());
}

/// Numbers of RFC 3550 section 6.4.1: A = b710:8000, LSR = b705:2000, DLSR = 0005:4000 give 6.125 s.
#[test]
fn the_round_trip_matches_the_example_of_rfc_3550() {
    let mut source = RtpSource::new(&CFG);
    let report = ReceiverReport { lsr: 0xb705_2000, dlsr: 0x0005_4000, ..QUIET };
    let now = at(46_864_500);
    source.on_packet(now, &packet(now, Body::Report(report)));
    assert_eq!((source.stats().rtt_samples, source.stats().rtt_sum), (1, Span::from_millis(6125)));
    assert_eq!(source.smoothed_rtt(), Some(Span::from_millis(6125)));
}

/// 100 ms both ways, 900 ms at the receiver: LSR is the time of the first report, DLSR the delay since its arrival.
#[test]
fn reports_carry_the_round_trip_timestamps() {
    let (mut source, mut sink) = (RtpSource::new(&CFG), RtpSink::new(&CFG));
    source.start(at(1000));
    let first = packets(&mut source, at(1000));
    assert_eq!(first.len(), 2);
    for one in &first {
        sink.on_packet(at(1060), one);
    }
    assert_eq!(sink.next_timer(), Some(at(1960)));
    sink.on_timer(at(1960));
    let answer = packets(&mut sink, at(1960));
    assert_eq!((answer[0].bytes, CFG.ack_bytes()), (60, 60));
    let report = report(&answer).unwrap();
    assert_eq!((report.lsr, report.dlsr), (65_536, 58_982)); // 1 s, 0.9 s
    source.on_packet(at(2000), &answer[0]);
    // Within the clock's 15 us and rounding.
    let rtt = source.smoothed_rtt().unwrap().as_nanos();
    assert!((99_980_000..=100_020_000).contains(&rtt), "{rtt}");
    // No more media arrives: no further report is sent.
    sink.on_timer(at(2860));
    assert_eq!((packets(&mut sink, at(2860)), sink.next_timer()), (vec![], None));
}

/// Packets 3 and 4 of 0..=9 are lost: 2 of 10, 51/256. Then none of ten.
#[test]
fn losses_are_counted_between_reports_and_since_the_beginning() {
    let mut sink = RtpSink::new(&CFG);
    for seq in (0..10).filter(|seq| !(3..5).contains(seq)) {
        sink.on_packet(at(10), &packet(at(0), Body::Media(frame(seq))));
    }
    sink.on_timer(at(910));
    let first = report(&packets(&mut sink, at(910))).unwrap();
    assert_eq!((first.fraction_lost, first.cumulative_lost, first.highest), (51, 2, 9));
    for seq in 10..20 {
        let ecn = if seq < 15 { Ecn::Ce } else { Ecn::Ect0 };
        sink.on_packet(at(920), &Packet { ecn, ..packet(at(0), Body::Media(frame(seq))) });
    }
    sink.on_timer(at(1810));
    let second = report(&packets(&mut sink, at(1810))).unwrap();
    assert_eq!((second.fraction_lost, second.cumulative_lost, second.highest), (0, 2, 19));
    assert_eq!(second.fraction_marked, 128);
}

/// Transit times 10, 12, 10, 10 ms: differences of 180, 180, 0 ticks of 90 kHz. In sixteenths: 180; 180 + 180 - 11 =
/// 349; 349 - 22 = 327, which is 20 ticks.
#[test]
fn the_jitter_follows_the_recursion_of_the_standard() {
    let mut sink = RtpSink::new(&CFG);
    for (seq, transit) in [(0, 10), (1, 12), (2, 10), (3, 10)] {
        sink.on_packet(at(40 * u64::from(seq) + transit), &packet(at(0), Body::Media(frame(seq))));
    }
    sink.on_timer(at(910));
    assert_eq!(report(&packets(&mut sink, at(910))).unwrap().jitter, 20);
}

#[test]
fn an_incomplete_frame_is_delivered_when_the_next_begins() {
    let (mut source, mut sink) = (RtpSource::new(&CFG), RtpSink::new(&CFG));
    let frames = [3000, 3000, 1000].map(|bytes| Message { bytes, number: bytes, created_at: at(0) });
    for message in frames {
        source.write(at(0), message);
    }
    // 1160 + 1160 + 680, twice, and 1000 bytes; the second packet is lost.
    let sent: Vec<Packet> = (0..200)
        .flat_map(|now| packets(&mut source, at(now)))
        .filter(|one| media(one).is_some_and(|media| media.seq != 1))
        .collect();
    assert_eq!(sent.len(), 6);
    for (one, now) in sent.iter().zip(10..) {
        sink.on_packet(at(now), one);
    }
    let delivered: Vec<Delivery> = std::iter::from_fn(|| sink.poll_delivery()).collect();
    let expected = [(frames[0], 11, 1840), (frames[1], 14, 3000), (frames[2], 15, 1000)];
    assert_eq!(delivered, expected.map(|(message, now, bytes)| Delivery { message, complete_at: at(now), bytes }));
    assert_eq!(sink.stats().delivered_bytes, 5840);
}

/// RFC 5348 section 3.1, calculated by hand, in bit/s.
#[test]
fn the_throughput_equation_has_its_values() {
    near(throughput(1000.0, 0.1, 0.01), 8.0 * 112_332.234_362_992_98);
    near(throughput(1160.0, 0.2, 0.04), 8.0 * 25_766.669_135_913_908);
    near(throughput(1460.0, 0.05, 0.001), 8.0 * 1_120_823.403_662_463_2);
    near(throughput(1000.0, 0.1, 1.0), 8.0 * 41.098_821_187_637_22);
}

/// A source with a measured round trip of 100 ms, within the clock's 15 us.
fn with_rtt(cfg: &RtpConfig) -> RtpSource {
    let mut source = RtpSource::new(cfg);
    let report = ReceiverReport { lsr: 1 << 16, fraction_lost: 255, ..QUIET };
    source.on_packet(at(1100), &packet(at(1100), Body::Report(report)));
    source
}

/// No loss: 1160 bytes more per round trip, 92.8 kbit/s. A quarter lost: 1 - 1/2 of the rate; TCP's rate is lower.
#[test]
fn the_rate_rises_by_a_packet_a_round_trip_and_falls_with_the_root_of_the_loss() {
    let mut source = with_rtt(&RtpConfig { min_rate: Rate::from_bps(1000), ..CFG });
    let low = source.rate();
    assert!(low < 5000.0, "all but lost: {low}");
    for (number, expected) in (1..=10).zip((1..=10).map(|k| low + 92_800.0 * f64::from(k))) {
        source.on_packet(at(1100 + number), &packet(at(1100), Body::Report(QUIET)));
        assert!((source.rate() - expected).abs() < 0.001 * expected, "{} {expected}", source.rate());
    }
    let high = source.rate();
    source.on_packet(at(2000), &packet(at(2000), Body::Report(ReceiverReport { fraction_lost: 64, ..QUIET })));
    assert_eq!(source.rate(), high / 2.0);
    // A mark counts as a loss.
    source.on_packet(at(2000), &packet(at(2000), Body::Report(ReceiverReport { fraction_marked: 64, ..QUIET })));
    assert_eq!(source.rate(), high / 4.0);
    for _ in 0..100 {
        source.on_packet(at(2000), &packet(at(2000), Body::Report(QUIET)));
    }
    assert_eq!(source.rate_bps(), Some(1_500_000.0), "not above the encoder's highest");
}

#[test]
fn a_fixed_rate_stays() {
    let mut source = with_rtt(&RtpConfig { control: Control::Fixed, ..CFG });
    assert_eq!((source.rate(), source.rate_bps()), (300_000.0, None));
    source.on_packet(at(2000), &packet(at(2000), Body::Report(QUIET)));
    assert_eq!(source.rate(), 300_000.0);
}

/// Reports every 900 ms stop: the rate halves after 2 s (four times the assumed 500 ms), and again, down to the lowest.
#[test]
fn without_reports_the_rate_halves() {
    let cfg = RtpConfig { initial_rate: Rate::from_bps(1_000_000), ..CFG };
    let mut source = RtpSource::new(&cfg);
    source.start(at(0));
    let mut rates = vec![(0, source.rate())];
    let mut now = at(0);
    while now < at(10_000) {
        while source.poll_transmit(now).is_some() {}
        now = source.next_timer().unwrap();
        source.on_timer(now);
        if source.rate() != rates.last().unwrap().1 {
            rates.push((now.as_nanos() / 1_000_000, source.rate()));
        }
    }
    assert_eq!(rates, [(0, 1e6), (2000, 5e5), (4000, 2.5e5), (6000, 1.5e5)]);
}

#[test]
fn a_field_out_of_range_is_named() {
    for cfg in [RtpConfig::standard(), RtpConfig::tfrc(), RtpConfig::nada()] {
        assert_eq!(cfg.validate(), Ok(()));
    }
    let bad = RtpConfig { initial_rate: Rate::from_bps(2_000_000), ..CFG };
    assert_eq!(bad.validate().unwrap_err().to_string(), "initial_rate = 2000000: must be min_rate to max_rate");
    assert_eq!(RtpConfig { report_interval: Span::ZERO, ..CFG }.validate().unwrap_err().field, "report_interval");
    let error = RtpConfig { sender_report_interval: Span::from_secs(61), ..CFG }.validate().unwrap_err();
    assert_eq!(error.to_string(), "sender_report_interval = 61: must be 10 ms to 60 s");
    assert_eq!(RtpConfig { frame_interval: Span::from_secs(2), ..CFG }.validate().unwrap_err().field, "frame_interval");
}

/// Rates (kbit/s) at the end of a loss-free period, one with a tenth lost, and another loss-free one.
fn through_losses(cfg: &RtpConfig) -> [f64; 3] {
    let clear = Channel {
        bits_per_sec: 10_000_000,
        delay_ms: 25,
        loss_percent: 0,
        back_loss_percent: 0,
        mark_percent: 0,
        seed: 7,
    };
    let lossy = Channel { loss_percent: 10, ..clear };
    let mut net = Net::new(RtpSource::new(cfg), RtpSink::new(cfg), clear);
    net.source.start(at(0));
    [(20_000, clear), (40_000, lossy), (80_000, clear)].map(|(end, channel)| {
        net.set_channel(channel);
        net.run_until(at(end));
        net.source.rate() / 1000.0
    })
}

#[test]
fn every_control_falls_with_losses_and_recovers() {
    for cfg in [RtpConfig::standard(), RtpConfig::tfrc(), RtpConfig::nada()] {
        let [before, lossy, after] = through_losses(&cfg);
        assert_eq!(before, 1500.0, "{:?}", cfg.control);
        assert!(lossy < 750.0, "{:?} {lossy}", cfg.control);
        assert_eq!(after, 1500.0, "{:?}", cfg.control);
    }
}

/// A bottleneck of 1 Mbit/s with a queue of one second: goodput is close to capacity, with NADA without a queue.
#[test]
fn every_control_finds_the_capacity() {
    for cfg in [RtpConfig::standard(), RtpConfig::tfrc(), RtpConfig::nada()] {
        let cfg = RtpConfig { max_rate: Rate::from_bps(4_000_000), ..cfg };
        let channel = Channel {
            bits_per_sec: 1_000_000,
            delay_ms: 25,
            loss_percent: 0,
            back_loss_percent: 0,
            mark_percent: 0,
            seed: 7,
        };
        let mut net = Net::new(RtpSource::new(&cfg), RtpSink::new(&cfg), channel);
        net.source.start(at(0));
        net.run_until(at(60_000));
        let before = net.arrived_bytes;
        net.run_until(at(120_000));
        let used = (net.arrived_bytes - before) as f64 * 8.0 / 60e6;
        assert!((0.7..1.001).contains(&used), "{:?} {used}", cfg.control);
        if cfg.control == Control::Nada {
            let rtt = net.source.smoothed_rtt().unwrap();
            assert!(rtt < Span::from_millis(150), "{rtt}");
        }
    }
}

fn controls() -> impl Strategy<Value = RtpConfig> {
    let preset = prop_oneof![Just(RtpConfig::standard()), Just(RtpConfig::tfrc()), Just(RtpConfig::nada())];
    (preset, any::<bool>()).prop_map(|(preset, ecn)| RtpConfig { ecn, ..preset })
}

proptest! {
    /// Frames arrive once each, in order, and whole where nothing was lost; the rate stays within its bounds.
    #[test]
    fn frames_arrive_once_and_in_order(
        cfg in controls(),
        loss_percent in 0u64..30,
        mark_percent in 0u64..30,
        seed in any::<u64>(),
    ) {
        let channel = Channel {
            bits_per_sec: 3_000_000, delay_ms: 30, loss_percent, back_loss_percent: loss_percent, mark_percent, seed,
        };
        let mut net = Net::new(RtpSource::new(&cfg), RtpSink::new(&cfg), channel);
        net.source.start(at(0));
        while net.now < at(15_000) && net.step() {
            let rate = net.source.rate();
            prop_assert!((150_000.0..=1_500_000.0).contains(&rate), "{rate}");
        }
        net.source.stop(net.now);
        let numbers: Vec<u32> = net.delivered.iter().map(|one| one.message.number).collect();
        prop_assert!(numbers.is_sorted_by(|a, b| a < b));
        prop_assert!(net.delivered.iter().all(|one| one.bytes <= one.message.bytes));
        if loss_percent == 0 {
            prop_assert!(net.delivered.iter().all(|one| one.bytes == one.message.bytes));
            prop_assert_eq!(numbers.len() as u32, numbers.last().map_or(0, |last| last + 1));
        }
        // The rest completes: no timer runs for ever.
        for _ in 0..10_000 {
            if !net.step() {
                break;
            }
        }
        prop_assert!(net.source.is_idle());
        prop_assert_eq!((net.source.next_timer(), net.sink.next_timer()), (None, None));
    }

    #[test]
    fn arbitrary_packets_cause_no_panic(cfg in controls(), seed in any::<u64>()) {
        let mut rng = Rng(seed | 1);
        let (mut source, mut sink) = (RtpSource::new(&cfg), RtpSink::new(&cfg));
        source.start(at(0));
        for step in 0..300 {
            let now = at(step * 50);
            let any = |rng: &mut Rng| rng.below(1 << 32) as u32;
            let number = |rng: &mut Rng| [0.0, -1.0, 0.5, 1e300, f64::NAN, f64::INFINITY][rng.below(6) as usize];
            let body = match rng.below(3) {
                0 => Body::Media(Media {
                    seq: any(&mut rng) >> rng.below(32),
                    timestamp: any(&mut rng),
                    message: Message { bytes: any(&mut rng), number: any(&mut rng), created_at: now },
                    offset: any(&mut rng),
                    payload: any(&mut rng) as u16,
                    rtt_us: any(&mut rng),
                }),
                1 => Body::SenderReport(SenderReport { ntp: any(&mut rng), timestamp: 0, packets: 0, octets: 0 }),
                _ => Body::Report(ReceiverReport {
                    fraction_lost: any(&mut rng) as u8,
                    fraction_marked: any(&mut rng) as u8,
                    lsr: any(&mut rng),
                    dlsr: any(&mut rng),
                    feedback: match rng.below(3) {
                        0 => Feedback::None,
                        1 => Feedback::Tfrc { loss_event_rate: number(&mut rng), receive_rate: number(&mut rng) },
                        _ => Feedback::Nada {
                            congestion: number(&mut rng),
                            receive_rate: number(&mut rng),
                            ramp_up: rng.percent(50),
                        },
                    },
                    ..QUIET
                }),
            };
            let packet = Packet { bytes: 100, ecn: Ecn::Ce, seq: 0, sent_at: now, body };
            source.on_packet(now, &packet);
            sink.on_packet(now, &packet);
            source.on_timer(now);
            sink.on_timer(now);
            while source.poll_transmit(now).is_some() {}
            while sink.poll_transmit(now).is_some() {}
            while sink.poll_delivery().is_some() {}
            prop_assert!((150_000.0..=1_500_000.0).contains(&source.rate()), "{}", source.rate());
        }
    }
}
