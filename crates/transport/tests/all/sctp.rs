//! SCTP: windows in bytes, timers, selective acknowledgements, calculated by hand. A full chunk is 1468 bytes, 1452 of
//! them data.

use crate::common;

use aqumen_transport::sctp::{Data, Recovery, Sack, SctpConfig, SctpSink, SctpSource, Setup};
use aqumen_transport::{Body, Config, Endpoint, Message, Packet};
use aqumen_units::{Ecn, Instant, Span};
use common::{at, packets};

const CFG: SctpConfig = SctpConfig { handshake: false, ..SctpConfig::standard() };

/// A bulk transfer that has sent its first window at time zero.
fn bulk(cfg: &SctpConfig) -> (SctpSource, Vec<u32>) {
    let mut source = SctpSource::new(cfg);
    source.start(at(0));
    let sent = tsns(&packets(&mut source, at(0)));
    (source, sent)
}

fn data(packet: &Packet) -> Data {
    match packet.body {
        Body::Data(data) => data,
        other => panic!("not a chunk: {other:?}"),
    }
}

fn tsns(packets: &[Packet]) -> Vec<u32> {
    packets.iter().map(|packet| data(packet).tsn).collect()
}

fn sack(cumulative: u32, blocks: &[(u16, u16)]) -> Sack {
    let mut sack = Sack::new(cumulative, 1 << 20);
    for &(first, last) in blocks {
        sack.push(first, last);
    }
    sack
}

fn packet(ecn: Ecn, body: Body) -> Packet {
    Packet { bytes: 48, ecn, seq: 0, sent_at: at(0), body }
}

/// Passes a SACK to the source and returns the TSNs sent in response.
fn answer(source: &mut SctpSource, now: Instant, sack: Sack) -> Vec<u32> {
    source.on_packet(now, &packet(Ecn::NotEct, Body::Sack(sack)));
    tsns(&packets(source, now))
}

/// SACK that the sink sends at `now`.
fn sacked(sink: &mut SctpSink, now: Instant) -> Option<Sack> {
    let sent = packets(sink, now);
    assert!(sent.len() <= 1);
    sent.first().map(|packet| match packet.body {
        Body::Sack(sack) => sack,
        other => panic!("not a SACK: {other:?}"),
    })
}

fn chunk(tsn: u32) -> Data {
    let message = Message { bytes: 1452, number: tsn - 1, created_at: at(0) };
    Data { tsn, ssn: tsn - 1, stream: 0, message, offset: 0, payload: 1452, cwr: None }
}

fn arrive(sink: &mut SctpSink, now: Instant, data: Data) -> Option<Sack> {
    sink.on_packet(now, &packet(Ecn::NotEct, Body::Data(data)));
    sacked(sink, now)
}

/// Section 7.2.1: min(4 x 1468, max(2 x 1468, 4404)) = 4404; of 576-byte packets min(4 x 544, ..) = 2176.
#[test]
fn the_first_window_follows_the_packet_size() {
    assert_eq!(CFG.first_window(), 4404);
    assert_eq!(SctpConfig { packet_bytes: 576, ..CFG }.first_window(), 2176);
    assert_eq!(SctpConfig { packet_bytes: 9000, ..CFG }.first_window(), 17_936);
}

/// Each SACK of two chunks adds one chunk: 4404, 5872, 7340.
#[test]
fn slow_start_adds_one_chunk_for_each_sack() {
    let (mut source, sent) = bulk(&CFG);
    assert_eq!((sent, source.flight(), source.cwnd()), (vec![1, 2, 3], 4404, 4404));
    assert_eq!(answer(&mut source, at(100), sack(2, &[])), [4, 5, 6]);
    assert_eq!((source.flight(), source.cwnd()), (5872, 5872));
    assert_eq!(answer(&mut source, at(110), sack(4, &[])), [7, 8, 9]);
    assert_eq!((source.flight(), source.cwnd()), (7340, 7340));
}

#[test]
fn an_unused_window_does_not_grow() {
    let mut source = SctpSource::new(&CFG);
    source.write(at(0), Message { bytes: 2000, number: 0, created_at: at(0) });
    assert_eq!(packets(&mut source, at(0)).len(), 2);
    answer(&mut source, at(100), sack(2, &[]));
    assert_eq!(source.cwnd(), 4404);
}

/// Ten chunks in flight (14 680 bytes), the first is lost. Three SACKs report one more chunk each. The first two
/// release a new chunk; the third sets threshold and window to 7340 and retransmits chunk 1 although 11 744 bytes are
/// in flight. The acknowledgement of chunk 12, the highest then, ends the recovery, and the window grows as in slow
/// start to 8808. From there on it grows by one chunk per 8808 bytes acknowledged.
#[test]
fn three_reports_retransmit_and_halve_and_congestion_avoidance_follows() {
    let cfg = SctpConfig { initial_window_bytes: Some(14_680), max_burst: 0, ..CFG };
    let (mut source, sent) = bulk(&cfg);
    assert_eq!(sent, (1..=10).collect::<Vec<_>>());
    assert_eq!(answer(&mut source, at(100), sack(0, &[(2, 2)])), [11]);
    assert_eq!(answer(&mut source, at(101), sack(0, &[(2, 3)])), [12]);
    assert_eq!((source.flight(), source.cwnd()), (14_680, 14_680));
    assert_eq!(answer(&mut source, at(102), sack(0, &[(2, 4)])), [1]);
    assert_eq!((source.flight(), source.cwnd(), source.ssthresh()), (13_212, 7340, 7340));
    assert!(source.in_recovery());
    // Further reports change nothing, and a chunk is fast-retransmitted only once.
    for last in 5..=8 {
        assert_eq!(answer(&mut source, at(103), sack(0, &[(2, last)])), [0u32; 0]);
    }
    assert_eq!((source.flight(), source.cwnd()), (7340, 7340));
    assert_eq!(answer(&mut source, at(200), sack(12, &[])).len(), 6);
    assert!(!source.in_recovery());
    assert_eq!((source.cwnd(), source.partial_bytes_acked()), (8808, 0));
    for (cumulative, partial) in [(14, 2936), (16, 5872)] {
        answer(&mut source, at(300), sack(cumulative, &[]));
        assert_eq!((source.cwnd(), source.partial_bytes_acked()), (8808, partial));
    }
    answer(&mut source, at(300), sack(18, &[]));
    assert_eq!((source.cwnd(), source.partial_bytes_acked()), (10_276, 0));
    assert_eq!(source.stats().retransmitted, 1);
    assert_eq!(source.stats().timeouts, 0);
}

/// A repeated SACK is no missing report: only the highest newly acknowledged chunk counts.
#[test]
fn a_repeated_sack_is_no_missing_report() {
    let cfg = SctpConfig { initial_window_bytes: Some(14_680), ..CFG };
    let (mut source, _) = bulk(&cfg);
    for _ in 0..5 {
        answer(&mut source, at(100), sack(0, &[(2, 2)]));
    }
    assert!(!source.in_recovery());
    // Chunks 2 and 4 are missing below 5, but nothing new arrived beyond 3.
    answer(&mut source, at(100), sack(0, &[(2, 3)]));
    assert!(!source.in_recovery());
}

/// In recovery a SACK that advances reports all missing chunks. Chunks 1, 2 and 9 of twelve are lost. 1 and 2 are
/// retransmitted after three reports; then chunk 1 arrives, the third report of 9 after those by 10 and 11.
#[test]
fn in_recovery_an_advancing_sack_reports_all_missing_chunks() {
    let cfg = SctpConfig { initial_window_bytes: Some(12 * 1468), max_burst: 0, ..CFG };
    let (mut source, _) = bulk(&cfg);
    answer(&mut source, at(100), sack(0, &[(3, 3)]));
    answer(&mut source, at(100), sack(0, &[(3, 4)]));
    let again = answer(&mut source, at(100), sack(0, &[(3, 5)]));
    assert_eq!(again, [1], "one packet at once, the other when the window allows");
    for last in 6..=8 {
        answer(&mut source, at(100), sack(0, &[(3, last)]));
    }
    answer(&mut source, at(100), sack(0, &[(3, 8), (10, 10)]));
    answer(&mut source, at(100), sack(0, &[(3, 8), (10, 11)]));
    // Chunk 2 has been sent. The next SACK acknowledges chunk 1 and nothing beyond 9, yet it is the third report of 9.
    assert_eq!(answer(&mut source, at(150), sack(1, &[(2, 7), (9, 10)])).first(), Some(&9));
    assert_eq!(source.stats().retransmitted, 3);
    assert_eq!(source.ssthresh(), 8808, "halved once");
}

/// Chunks 1 to 3 of twelve are lost, and one SACK is the third report of all. It releases one retransmission regardless
/// of the window, and no other, though only nine chunks less three are in flight. The next SACK releases as many as the
/// window allows.
#[test]
fn a_sack_that_reports_losses_releases_one_retransmission() {
    let cfg = SctpConfig { initial_window_bytes: Some(20 * 1468), max_burst: 0, ..CFG };
    let (mut source, sent) = bulk(&cfg);
    assert_eq!(sent.len(), 20);
    answer(&mut source, at(100), sack(0, &[(4, 4)]));
    answer(&mut source, at(100), sack(0, &[(4, 5)]));
    assert_eq!(answer(&mut source, at(100), sack(0, &[(4, 18)])), [1]);
    assert!(source.flight() < source.cwnd());
    assert_eq!(answer(&mut source, at(101), sack(0, &[(4, 19)]))[..2], [2, 3]);
}

/// Chunks 1 to 22 are in flight when 1 is reported missing: the window is halved from 20 chunks to 10. Then chunk 23 is
/// reported, sent later: by RFC 9260 it belongs to this recovery, in ns-2 it starts another with another halving. After
/// a timeout a SACK that advances opens the window by one chunk; in ns-2 only after the end of the recovery.
#[test]
fn the_recovery_of_ns2_halves_again_and_outlives_a_timeout() {
    for (recovery, ssthresh, cwnd) in [(Recovery::Standard, 10, 2), (Recovery::Ns2, 5, 1)] {
        let cfg = SctpConfig { initial_window_bytes: Some(20 * 1468), max_burst: 0, recovery, ..CFG };
        let (mut source, _) = bulk(&cfg);
        for last in 2..=4 {
            answer(&mut source, at(100), sack(0, &[(2, last)]));
        }
        assert_eq!(source.cwnd(), 10 * 1468);
        // The flight falls below the window, and new chunks are sent.
        let new = answer(&mut source, at(101), sack(0, &[(2, 20)]));
        assert_eq!(new[..4], [23, 24, 25, 26], "21 and 22 had left before the window was halved");
        for last in 24..=26 {
            answer(&mut source, at(200), sack(0, &[(2, 22), (24, last)]));
        }
        assert_eq!(source.ssthresh(), ssthresh * 1468, "{recovery:?}");
        let due = source.next_timer().unwrap();
        source.on_timer(due);
        assert_eq!(tsns(&packets(&mut source, due)), [1]);
        answer(&mut source, due + Span::from_millis(100), sack(1, &[(1, 21), (23, 25)]));
        assert_eq!(source.cwnd(), cwnd * 1468, "{recovery:?}");
    }
}

/// A SACK of 20 chunks: Max.Burst allows four packets. With `burst_after_repair` it applies only after the
/// acknowledgement of a fast retransmission.
#[test]
fn the_burst_limit_can_apply_only_after_a_repair() {
    for (burst_after_repair, left) in [(false, 4), (true, 21)] {
        let cfg = SctpConfig { initial_window_bytes: Some(20 * 1468), burst_after_repair, ..CFG };
        let mut source = SctpSource::new(&cfg);
        source.start(at(0));
        let mut sent = packets(&mut source, at(0)).len();
        while sent < 20 {
            // A SACK without news releases more.
            sent += answer(&mut source, at(1), sack(0, &[])).len();
        }
        assert_eq!(answer(&mut source, at(100), sack(20, &[])).len(), left, "{burst_after_repair}");
    }
    let cfg = SctpConfig { initial_window_bytes: Some(20 * 1468), burst_after_repair: true, ..CFG };
    let mut source = SctpSource::new(&cfg);
    source.start(at(0));
    let mut sent = packets(&mut source, at(0)).len() as u32;
    for last in 2..=4 {
        sent += answer(&mut source, at(100), sack(0, &[(2, last)])).len() as u32;
    }
    let after = answer(&mut source, at(200), sack(sent - 1, &[]));
    assert_eq!(after.len(), 4, "chunk 1 was fast retransmitted");
}

/// 1 s, doubled each time up to 60 s: 1, 3, 7, 15, 31, 63, 123, 183 s.
#[test]
fn the_timer_doubles_up_to_its_bound() {
    let (mut source, _) = bulk(&CFG);
    for due in [1, 3, 7, 15, 31, 63, 123, 183] {
        assert_eq!(source.next_timer(), Some(at(due * 1000)));
        source.on_timer(at(due * 1000 - 1)); // too early: no effect
        assert_eq!(packets(&mut source, at(due * 1000 - 1)), []);
        source.on_timer(at(due * 1000));
        assert_eq!(tsns(&packets(&mut source, at(due * 1000))), [1], "one packet");
        assert_eq!((source.cwnd(), source.flight()), (1468, 1468));
    }
    assert_eq!(source.ssthresh(), 5872, "at least four chunks");
    assert_eq!(source.stats().timeouts, 8);
    // Chunks lost by the timer are sent as the window allows; the first sample is one of new data (Karn).
    assert_eq!(answer(&mut source, at(183_500), sack(1, &[])), [2, 3]);
    assert_eq!(source.stats().rtt_samples, 0);
    assert_eq!(source.retransmission_timeout(), Span::from_secs(60));
}

/// 400 ms: SRTT 400, RTTVAR 200, RTO 1200. 480 ms: RTTVAR 3/4 200 + 1/4 80 = 170, SRTT 410, RTO 1090. 410 ms: RTTVAR
/// 127.5, RTO 920 ms, below the minimum.
#[test]
fn the_timeout_follows_the_round_trips() {
    let (mut source, _) = bulk(&CFG);
    let mut now = at(0);
    let mut last = 3;
    for (rtt, rto) in [(400, 1200), (480, 1090), (410, 1000)] {
        now += Span::from_millis(rtt);
        last = *answer(&mut source, now, sack(last, &[])).last().unwrap();
        assert_eq!(source.retransmission_timeout(), Span::from_millis(rto));
        assert_eq!(source.next_timer(), Some(now + Span::from_millis(rto)));
    }
    assert_eq!(source.stats().rtt_samples, 3);
    assert_eq!(source.stats().rtt_sum, Span::from_millis(1290));
}

#[test]
fn at_most_max_burst_packets_answer_one_event() {
    let (mut source, _) = bulk(&SctpConfig { initial_window_bytes: Some(14_680), ..CFG });
    assert_eq!(source.flight(), 4 * 1468);
    // Window 14 680, nothing in flight: still four.
    assert_eq!(answer(&mut source, at(100), sack(4, &[])), [5, 6, 7, 8]);
}

#[test]
fn the_window_is_halved_for_each_idle_timeout() {
    let mut source = SctpSource::new(&SctpConfig { initial_window_bytes: Some(29_360), ..CFG });
    source.write(at(0), Message { bytes: 1452, number: 0, created_at: at(0) });
    packets(&mut source, at(0));
    answer(&mut source, at(10), sack(1, &[])); // RTO: the minimum, 1 s
    source.write(at(2500), Message { bytes: 1452, number: 1, created_at: at(2500) });
    // Twice: 14 680, 7340. The threshold remembers the window.
    assert_eq!((source.cwnd(), source.ssthresh()), (7340, 29_360));
}

/// 10 000 bytes of window: six chunks (8808) fit, a seventh does not. Then the window closes; one chunk probes it.
#[test]
fn the_receive_window_stops_new_data() {
    let (mut source, sent) =
        bulk(&SctpConfig { receive_window_bytes: 10_000, initial_window_bytes: Some(29_360), max_burst: 0, ..CFG });
    assert_eq!(sent.len(), 6);
    let closed = Sack::new(6, 0);
    assert_eq!(answer(&mut source, at(100), closed), [7]);
    assert_eq!(answer(&mut source, at(100), closed), [0u32; 0]);
    assert_eq!(answer(&mut source, at(200), Sack::new(7, 3000)), [8, 9]);
}

#[test]
fn the_receive_window_limits_chunks_by_their_headers() {
    // A chunk has a header of 16 bytes, so 12 000 bytes hold 750 empty ones. The first window is 4404 bytes, three
    // chunks of 1468, as with the preset's 4380.
    let cfg = SctpConfig { receive_window_bytes: 12_000, ..CFG };
    assert_eq!((cfg.window_pkts(), cfg.initial_window_pkts()), (Some(750), 3));
    assert_eq!(SctpConfig::ns2().initial_window_pkts(), 3);
    assert_eq!((cfg.header_bytes(), cfg.ack_bytes(), cfg.packet_bytes()), (48, 48, 1500));
}

#[test]
fn handshake_packets_have_the_size_of_their_chunk() {
    // 32 bytes of IP and SCTP before the chunk, of 124 and 4 bytes.
    let mut sink = SctpSink::new(&SctpConfig::standard());
    for (setup, bytes) in [(Setup::Init, 32 + 124), (Setup::CookieEcho, 32 + 4)] {
        sink.on_packet(at(0), &packet(Ecn::NotEct, Body::Setup(setup)));
        let sent = packets(&mut sink, at(0));
        assert_eq!(sent.iter().map(|packet| packet.bytes).collect::<Vec<_>>(), [bytes]);
    }
}

#[test]
fn setting_up_takes_two_round_trips_and_survives_losses() {
    let cfg = SctpConfig::standard();
    let (mut source, mut sink) = (SctpSource::new(&cfg), SctpSink::new(&cfg));
    source.write(at(0), Message { bytes: 100, number: 0, created_at: at(0) });
    let init = packets(&mut source, at(0));
    assert_eq!((init[0].body, init[0].bytes), (Body::Setup(Setup::Init), 52));
    // The INIT is lost, and retransmitted after RTO.Initial.
    assert_eq!(source.next_timer(), Some(at(1000)));
    source.on_timer(at(1000));
    assert_eq!(packets(&mut source, at(1000))[0].body, Body::Setup(Setup::Init));
    sink.on_packet(at(1050), &init[0]);
    let reply = packets(&mut sink, at(1050));
    assert_eq!(reply[0].body, Body::Setup(Setup::InitAck));
    source.on_packet(at(1100), &reply[0]);
    assert_eq!(source.stats().rtt_samples, 0, "the INIT was sent twice");
    let echo = packets(&mut source, at(1100));
    assert_eq!(echo[0].body, Body::Setup(Setup::CookieEcho));
    // A late copy of the INIT ACK has no effect.
    source.on_packet(at(1110), &reply[0]);
    assert_eq!(packets(&mut source, at(1110)), []);
    sink.on_packet(at(1150), &echo[0]);
    source.on_packet(at(1200), &packets(&mut sink, at(1150))[0]);
    let sent = packets(&mut source, at(1200));
    assert_eq!((data(&sent[0]).payload, sent[0].bytes, sent[0].seq), (100, 148, 3));
    assert_eq!(source.stats().rtt_sum, Span::from_millis(100), "COOKIE ECHO and its answer");
}

#[test]
fn a_sack_leaves_for_the_first_packet_and_then_for_every_second_or_after_200_ms() {
    let mut sink = SctpSink::new(&CFG);
    assert_eq!(arrive(&mut sink, at(0), chunk(1)).map(|sack| sack.cumulative), Some(1), "section 5.1");
    assert_eq!(arrive(&mut sink, at(10), chunk(2)), None);
    assert_eq!(sink.next_timer(), Some(at(210)));
    assert_eq!(arrive(&mut sink, at(20), chunk(3)).map(|sack| sack.cumulative), Some(3));
    assert_eq!(sink.next_timer(), None);
    assert_eq!(arrive(&mut sink, at(30), chunk(4)), None);
    sink.on_timer(at(230));
    assert_eq!(sacked(&mut sink, at(230)).map(|sack| sack.cumulative), Some(4));
}

#[test]
fn gaps_and_duplicates_are_reported_at_once() {
    let mut sink = SctpSink::new(&CFG);
    let gap = arrive(&mut sink, at(10), chunk(3)).unwrap();
    assert_eq!((gap.cumulative, gap.blocks(), gap.window), (0, &[(3, 3)][..], (1 << 20) - 1468));
    let gap = arrive(&mut sink, at(11), chunk(1)).unwrap();
    assert_eq!((gap.cumulative, gap.blocks()), (1, &[(2, 2)][..]));
    // Section 6.7: at once for each packet "that does not fill the gap"; the one that does waits for a second, here a
    // duplicate.
    assert_eq!(arrive(&mut sink, at(12), chunk(2)), None);
    assert_eq!(sink.next_timer(), Some(at(212)));
    let whole = arrive(&mut sink, at(13), chunk(2)).unwrap();
    assert_eq!((whole.cumulative, whole.blocks(), whole.window), (3, &[][..], 1 << 20));
    assert_eq!(arrive(&mut sink, at(14), chunk(1)).map(|sack| sack.cumulative), Some(3), "another copy");
    assert_eq!(sink.stats().delivered_bytes, 3 * 1452);
}

/// Every second chunk of 1..=40 is missing: the first five gap ack blocks and the last five are reported.
#[test]
fn a_sack_names_the_lowest_and_the_highest_blocks() {
    let mut sink = SctpSink::new(&CFG);
    let last = (1..=20).map(|half| arrive(&mut sink, at(half), chunk(2 * half as u32)).unwrap()).last().unwrap();
    let firsts: Vec<u16> = last.blocks().iter().map(|block| block.0).collect();
    assert_eq!(firsts, [2, 4, 6, 8, 10, 32, 34, 36, 38, 40]);
}

#[test]
fn a_stream_is_blocked_only_by_its_own_losses() {
    let cfg = SctpConfig { streams: 2, initial_window_bytes: Some(29_360), ..CFG };
    let mut source = SctpSource::new(&cfg);
    for number in 0..4 {
        source.write(at(0), Message { bytes: 100 + number, number, created_at: at(0) });
    }
    let sent = packets(&mut source, at(0));
    assert_eq!(sent.iter().map(|packet| data(packet).stream).collect::<Vec<_>>(), [0, 1, 0, 1]);
    let mut sink = SctpSink::new(&cfg);
    let mut delivered = Vec::new();
    // Message 0 is late; those of the other stream overtake it.
    for index in [1, 2, 3, 0] {
        sink.on_packet(at(10), &sent[index]);
        delivered.extend(std::iter::from_fn(|| sink.poll_delivery()).map(|one| one.message.number));
    }
    assert_eq!(delivered, [1, 3, 0, 2]);
}

#[test]
fn a_mark_halves_the_window_once_for_each_window_of_data() {
    let cfg = SctpConfig { ecn: true, initial_window_bytes: Some(10 * 1468), max_burst: 0, ..CFG };
    let mut source = SctpSource::new(&cfg);
    let mut sink = SctpSink::new(&cfg);
    source.start(at(0));
    let mut sent = packets(&mut source, at(0));
    assert!(sent.iter().all(|packet| packet.ecn == Ecn::Ect0));
    sent[1].ecn = Ecn::Ce;
    sent[4].ecn = Ecn::Ce;
    let mut later = Vec::new();
    for one in &sent {
        sink.on_packet(at(50), one);
        for report in packets(&mut sink, at(50)) {
            source.on_packet(at(100), &report);
            later.extend(packets(&mut source, at(100)));
        }
    }
    // A mark at chunk 2 is reported until the sender responds: one halving of the 17 616 bytes of slow start.
    assert_eq!(source.ssthresh(), 17_616 / 2);
    let answered: Vec<Option<u32>> = later.iter().map(|packet| data(packet).cwr).filter(Option::is_some).collect();
    assert_eq!(answered.first(), Some(&Some(2)));
    // CWR reaches the receiver, which reports no mark any more.
    let answering = later.iter().find(|packet| data(packet).cwr.is_some()).unwrap();
    for one in later.iter().take_while(|one| one.seq < answering.seq).chain([answering, answering]) {
        sink.on_packet(at(150), one);
    }
    assert_eq!(sacked(&mut sink, at(150)).and_then(|sack| sack.marked), None);
}

#[test]
fn retransmissions_are_not_ecn_capable() {
    let (mut source, _) = bulk(&SctpConfig { ecn: true, ..CFG });
    source.on_timer(at(1000));
    assert_eq!(packets(&mut source, at(1000))[0].ecn, Ecn::NotEct);
}

#[test]
fn a_field_out_of_range_is_named() {
    assert_eq!(SctpConfig::standard().validate(), Ok(()));
    assert_eq!(SctpConfig::ns2().validate(), Ok(()));
    let bad = SctpConfig { delayed_sack: Some(Span::from_secs(1)), ..CFG };
    assert_eq!(bad.validate().unwrap_err().to_string(), "delayed_sack = 1: must be above 0 s, at most 0.5 s");
    assert_eq!(SctpConfig { streams: 0, ..CFG }.validate().unwrap_err().field, "streams");
    assert_eq!(SctpConfig { packet_bytes: 48, ..CFG }.validate().unwrap_err().field, "packet_bytes");
    assert_eq!(SctpConfig { min_rto: Span::from_secs(61), ..CFG }.validate().unwrap_err().field, "min_rto");
}
