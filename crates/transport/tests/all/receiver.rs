//! Receiver of TCP, segment by segment.

use aqumen_transport::tcp::{Ack, Feedback, Receiver, Segment, TcpConfig, Variant};
use aqumen_units::{Bytes, Ecn, Instant, Span};

const START: Instant = Instant::ZERO;

fn segment(seq: u32) -> Segment {
    Segment {
        seq,
        bytes: 1000,
        ecn: Ecn::Ect0,
        cwr: false,
        syn: seq == 0,
        push: false,
        retransmission: false,
        sent_at: START + Span::from_millis(seq.into()),
    }
}

fn sack_config() -> TcpConfig {
    TcpConfig { variant: Variant::Sack, ..TcpConfig::ns2() }
}

/// A receiver after the SYN.
fn connected(cfg: &TcpConfig) -> Receiver {
    let mut receiver = Receiver::new(cfg);
    assert_eq!(receiver.on_segment(cfg, START, &segment(0)).map(|ack| ack.ack), Some(1));
    receiver
}

fn feed(receiver: &mut Receiver, cfg: &TcpConfig, seqs: &[u32]) -> Vec<Ack> {
    seqs.iter().filter_map(|&seq| receiver.on_segment(cfg, START, &segment(seq))).collect()
}

#[test]
fn each_segment_is_acknowledged_and_gaps_repeat_the_last_number() {
    let cfg = TcpConfig::ns2();
    let mut receiver = connected(&cfg);
    let acks: Vec<_> = feed(&mut receiver, &cfg, &[1, 3, 4, 2, 2, 5]).iter().map(|ack| ack.ack).collect();
    assert_eq!(acks, [2, 2, 2, 5, 5, 6]);
    assert_eq!(receiver.delivered_segments(), 5);
    assert_eq!(receiver.delivered_bytes(), Bytes(5 * 960), "the copy of 2 is not delivered");
}

#[test]
fn an_early_short_segment_counts_its_own_bytes() {
    let cfg = TcpConfig::ns2();
    let mut receiver = connected(&cfg);
    receiver.on_segment(&cfg, START, &Segment { bytes: 140, push: true, ..segment(3) });
    feed(&mut receiver, &cfg, &[2]);
    assert_eq!(receiver.delivered_bytes(), Bytes(0));
    feed(&mut receiver, &cfg, &[1]);
    assert_eq!(receiver.delivered_bytes(), Bytes(960 + 960 + 100));
}

#[test]
fn sack_blocks_begin_with_the_latest_range() {
    let cfg = sack_config();
    let mut receiver = connected(&cfg);
    let acks = feed(&mut receiver, &cfg, &[3, 5, 7, 9, 4, 1, 2]);
    let blocks: Vec<_> = acks.iter().map(|ack| ack.sack.as_slice().to_vec()).collect();
    assert_eq!(blocks[0], [(3, 4)]);
    assert_eq!(blocks[1], [(5, 6), (3, 4)]);
    assert_eq!(blocks[2], [(7, 8), (5, 6), (3, 4)]);
    assert_eq!(blocks[3], [(9, 10), (7, 8), (5, 6)], "three at most");
    assert_eq!(blocks[4], [(3, 6), (9, 10), (7, 8)], "4 joins 3 and 5");
    // 1 moves the cumulative number only; 2 closes the first gap.
    assert_eq!((acks[5].ack, blocks[5].as_slice()), (2, &[(3, 6), (9, 10), (7, 8)][..]));
    assert_eq!((acks[6].ack, blocks[6].as_slice()), (6, &[(9, 10), (7, 8)][..]));
}

#[test]
fn without_sack_no_blocks_are_sent() {
    let cfg = TcpConfig::ns2();
    let mut receiver = connected(&cfg);
    assert!(feed(&mut receiver, &cfg, &[3, 5]).iter().all(|ack| ack.sack.is_empty()));
}

#[test]
fn every_second_segment_is_acknowledged_and_a_single_one_after_the_delay() {
    let delay = Span::from_millis(40);
    let cfg = TcpConfig { delayed_ack: Some(delay), ..TcpConfig::ns2() };
    let mut receiver = connected(&cfg);
    assert_eq!(receiver.next_timer(), None, "the SYN is answered at once");
    assert_eq!(receiver.on_segment(&cfg, START, &segment(1)), None);
    let due = START + delay;
    assert_eq!(receiver.next_timer(), Some(due));
    assert_eq!(receiver.on_segment(&cfg, START, &segment(2)).map(|ack| ack.ack), Some(3));
    assert_eq!((receiver.next_timer(), receiver.on_timer(due)), (None, None));
    assert_eq!(receiver.on_segment(&cfg, START, &segment(3)), None);
    assert_eq!(receiver.on_timer(Instant::from_nanos(due.as_nanos() - 1)), None, "too early");
    assert_eq!(receiver.on_timer(due).map(|ack| ack.ack), Some(4));
    assert_eq!(receiver.on_timer(due), None, "once");
    // A gap, a segment in it and a duplicate are acknowledged at once (RFC 5681 section 4.2), together with a pending
    // one.
    assert_eq!(receiver.on_segment(&cfg, START, &segment(4)), None);
    let acks: Vec<_> = feed(&mut receiver, &cfg, &[6, 5, 5]).iter().map(|ack| ack.ack).collect();
    assert_eq!(acks, [5, 7, 7]);
    assert_eq!(receiver.next_timer(), None);
}

#[test]
fn a_delayed_acknowledgement_echoes_the_first_segment_it_covers() {
    let cfg = TcpConfig { delayed_ack: Some(Span::from_millis(40)), ..TcpConfig::ns2() };
    let mut receiver = connected(&cfg);
    let acks = feed(&mut receiver, &cfg, &[1, 2]);
    assert_eq!(acks[0].echo, segment(1).sent_at);
    // A gap does not change the echo; the segment that closes it does (RFC 7323 section 4.3).
    let acks = feed(&mut receiver, &cfg, &[4, 3]);
    assert_eq!((acks[0].echo, acks[1].echo), (segment(1).sent_at, segment(3).sent_at));
}

#[test]
fn a_mark_is_echoed_until_cwr() {
    let cfg = TcpConfig { ecn: true, ..TcpConfig::ns2() };
    let mut receiver = connected(&cfg);
    let mut arrive = |one: Segment| receiver.on_segment(&cfg, START, &one).expect("answered").ece;
    assert!(!arrive(segment(1)));
    assert!(arrive(Segment { ecn: Ecn::Ce, ..segment(2) }));
    assert!(arrive(segment(3)));
    assert!(arrive(segment(5)), "on duplicates too");
    assert!(!arrive(Segment { cwr: true, ..segment(4) }));
    // CWR on a marked segment starts the next report.
    assert!(arrive(Segment { cwr: true, ecn: Ecn::Ce, ..segment(6) }));
    assert!(arrive(segment(7)));
}

#[test]
fn segments_beyond_the_window_are_discarded() {
    let cfg = TcpConfig { receive_window: 2, ..TcpConfig::ns2() };
    let mut receiver = connected(&cfg);
    let acks: Vec<_> = feed(&mut receiver, &cfg, &[3, 2, 1]).iter().map(|ack| ack.ack).collect();
    assert_eq!(acks, [1, 1, 3], "3 was not kept");
    // A closed window accepts nothing; a probe is acknowledged; the opening is announced.
    assert_eq!(receiver.set_window(0), None);
    let acks = feed(&mut receiver, &cfg, &[3, 2]);
    assert!(acks.iter().all(|ack| ack.ack == 3 && ack.window == 0));
    assert_eq!(receiver.set_window(5).map(|ack| (ack.ack, ack.window)), Some((3, 5)));
    assert_eq!(feed(&mut receiver, &cfg, &[3])[0].ack, 4);
}

fn marked(seq: u32) -> Segment {
    Segment { ecn: Ecn::Ce, ..segment(seq) }
}

#[test]
fn dctcp_sends_a_pending_acknowledgement_before_the_mark_state_changes() {
    let cfg = TcpConfig { packet_bytes: 1000, ..TcpConfig::dctcp() };
    let mut receiver = connected(&cfg);
    let mut on = |one: Segment| receiver.on_segment(&cfg, START, &one).map(|ack| (ack.ack, ack.ece));
    // Two unmarked segments: one acknowledgement (RFC 8257 section 3.2).
    assert_eq!(on(segment(1)), None);
    assert_eq!(on(segment(2)), Some((3, false)));
    // The acknowledgement of 3, unmarked, is pending; 4 is marked: 3 is acknowledged without ECE, and 4 is pending.
    assert_eq!(on(segment(3)), None);
    assert_eq!(on(marked(4)), Some((4, false)));
    // 5 is marked too: both, with ECE. CWR has no meaning here.
    assert_eq!(on(Segment { cwr: true, ..marked(5) }), Some((6, true)));
    // 6 is pending with ECE, and 7 is unmarked.
    assert_eq!(on(marked(6)), None);
    assert_eq!(on(segment(7)), Some((7, true)));
    assert_eq!(on(segment(8)), Some((9, false)));
    // A segment out of order is acknowledged at once, with its own mark.
    assert_eq!(on(marked(10)), Some((9, true)));
}

#[test]
fn prague_reports_the_number_of_marks() {
    let cfg = TcpConfig { packet_bytes: 1000, ..TcpConfig::prague() };
    let mut receiver = connected(&cfg);
    let mut on = |one: Segment| receiver.on_segment(&cfg, START, &one).map(|ack| (ack.ack, ack.ece, ack.feedback));
    assert_eq!(on(marked(1)), None);
    assert_eq!(on(marked(2)), Some((3, false, Feedback::Marks(2))));
    assert_eq!(on(segment(3)), None);
    assert_eq!(on(marked(4)), Some((5, false, Feedback::Marks(3))));
    // A gap: the count includes duplicates (RFC 9768 counts packets).
    assert_eq!(on(marked(6)), Some((5, false, Feedback::Marks(4))));
    assert_eq!(on(marked(6)), Some((5, false, Feedback::Marks(5))));
    assert_eq!(on(segment(5)), Some((7, false, Feedback::Marks(5))));
}

#[test]
fn ledbat_reports_the_delay_of_the_last_segment() {
    let cfg = TcpConfig { packet_bytes: 1000, ..TcpConfig::ledbat() };
    let mut receiver = connected(&cfg);
    let on = |receiver: &mut Receiver, one: &Segment, millis| {
        let now = one.sent_at + Span::from_millis(millis);
        receiver.on_segment(&cfg, now, one).map(|ack| ack.feedback)
    };
    assert_eq!(on(&mut receiver, &segment(1), 30), None);
    assert_eq!(on(&mut receiver, &segment(2), 45), Some(Feedback::Delay(45_000)));
    // ECE works as usual.
    assert_eq!(on(&mut receiver, &marked(3), 40), None);
    let ack = receiver.on_segment(&cfg, START, &segment(4)).unwrap();
    assert!(ack.ece);
}

/// Segments of `first..` that are acknowledged at once.
fn at_once(receiver: &mut Receiver, cfg: &TcpConfig, segments: &[Segment]) -> Vec<bool> {
    segments.iter().map(|one| receiver.on_segment(cfg, START, one).is_some()).collect()
}

#[test]
fn a_linux_receiver_delays_none_of_the_first_sixteen() {
    let cfg = TcpConfig { packet_bytes: 1000, ..TcpConfig::linux() };
    let mut receiver = connected(&cfg);
    let segments: Vec<_> = (1..=20).map(segment).collect();
    let acknowledged = at_once(&mut receiver, &cfg, &segments);
    assert!(acknowledged[..16].iter().all(|&one| one));
    // From then on every second one.
    assert_eq!(acknowledged[16..], [false, true, false, true]);
}

#[test]
fn a_linux_receiver_acknowledges_at_once_after_a_mark_and_after_cwr() {
    let cfg = TcpConfig { quick_acks: 0, packet_bytes: 1000, ..TcpConfig::linux() };
    let mut receiver = connected(&cfg);
    let marked = |seq| Segment { ecn: Ecn::Ce, ..segment(seq) };
    // The first mark and the next segment; a second mark before CWR changes nothing.
    let arrived = [segment(1), segment(2), marked(3), segment(4), segment(5), marked(6), segment(7)];
    assert_eq!(at_once(&mut receiver, &cfg, &arrived), [false, true, true, true, false, true, false]);
    // 8 would be the second; 9, with CWR, is acknowledged singly, and 10 is delayed. After CWR a mark is the first
    // again.
    let arrived = [segment(8), Segment { cwr: true, ..segment(9) }, segment(10), segment(11), marked(12), segment(13)];
    assert_eq!(at_once(&mut receiver, &cfg, &arrived), [true, true, false, true, true, true]);
    // Otherwise every second segment is acknowledged.
    let cfg = TcpConfig { ack_marks: false, ..cfg };
    let mut receiver = connected(&cfg);
    let arrived = [segment(1), segment(2), marked(3), segment(4)];
    assert_eq!(at_once(&mut receiver, &cfg, &arrived), [false, true, false, true]);
}

#[test]
fn segments_that_arrive_together_are_acknowledged_together() {
    let cfg = TcpConfig { quick_acks: 0, packet_bytes: 1000, ack_merging: Span::from_micros(20), ..TcpConfig::linux() };
    let mut receiver = connected(&cfg);
    let at = |micros| START + Span::from_micros(micros);
    // Alone, 1 is delayed by 40 ms; with 2 the acknowledgement is due 20 us later, which also covers 3 and 4.
    assert_eq!(receiver.on_segment(&cfg, at(0), &segment(1)), None);
    assert_eq!(receiver.next_timer(), Some(at(40_000)));
    for (micros, seq) in [(100, 2), (110, 3), (119, 4)] {
        assert_eq!(receiver.on_segment(&cfg, at(micros), &segment(seq)), None);
        assert_eq!(receiver.next_timer(), Some(at(120)));
    }
    let ack = receiver.on_timer(at(120)).unwrap();
    // RFC 7323: the echo is that of the first segment.
    assert_eq!((ack.ack, ack.echo), (5, segment(1).sent_at));
    // A segment out of order is not delayed.
    assert_eq!(receiver.on_segment(&cfg, at(130), &segment(6)).map(|ack| ack.ack), Some(5));
}

/// A receiver whose handshake took a round trip of `rtt_ms`, without quick acknowledgements.
fn paced(cfg: &TcpConfig, rtt_ms: u64) -> (Receiver, u64) {
    let mut receiver = Receiver::new(cfg);
    let syn = Segment { syn: true, ecn: Ecn::NotEct, ..segment(0) };
    receiver.on_segment(cfg, START, &syn).unwrap();
    (receiver, rtt_ms)
}

/// Delay of the acknowledgement of segment `seq` that arrives at `at_ms` (ms); 0: immediate.
fn wait(receiver: &mut Receiver, cfg: &TcpConfig, at_ms: u64, one: Segment) -> u64 {
    let now = START + Span::from_millis(at_ms);
    match receiver.on_segment(cfg, now, &one) {
        Some(_) => 0,
        None => (receiver.next_timer().unwrap() - now).as_nanos() / 1_000_000,
    }
}

#[test]
fn the_delay_of_a_linux_receiver_follows_the_gaps_between_data_up_to_a_round_trip() {
    let cfg = TcpConfig { quick_acks: 0, packet_bytes: 1000, ..TcpConfig::linux() };
    let (mut receiver, mut at) = paced(&cfg, 100);
    let mut lone = |gap| {
        at += gap;
        let seq = receiver.delivered_segments() + 1;
        let waited = wait(&mut receiver, &cfg, at, segment(seq));
        if let Some(due) = receiver.next_timer() {
            receiver.on_timer(due).unwrap();
        }
        waited
    };
    // 40 ms at first, doubled at each expiry: 80, then 160, limited to the round trip of 100 ms.
    assert_eq!([lone(0), lone(150), lone(170)], [40, 80, 100]);
    // The timer has made it 300 (the timeout: 100 + 200); a gap of 150 ms makes 300 / 2 + 150 = 300, limited to 100.
    assert_eq!(lone(150), 100);
    // Gaps of at most 20 ms: half and 20 ms more each time, doubled by the timer in between: 170 -> 300 ..., then pairs
    // bring it down.
    for pair in 0..8 {
        let seq = receiver.delivered_segments() + 1;
        let now = 1_000 + 10 * pair;
        wait(&mut receiver, &cfg, now, segment(seq));
        assert_eq!(wait(&mut receiver, &cfg, now + 5, segment(seq + 1)), 0);
    }
    let seq = receiver.delivered_segments() + 1;
    assert!((40..=42).contains(&wait(&mut receiver, &cfg, 1_085, segment(seq))));
}

#[test]
fn a_linux_receiver_acknowledges_the_end_of_a_write_at_once() {
    let cfg = TcpConfig { quick_acks: 0, packet_bytes: 1000, ..TcpConfig::linux() };
    let mut receiver = connected(&cfg);
    let push = |seq| Segment { push: true, ..segment(seq) };
    let short = |seq| Segment { bytes: 200, ..segment(seq) };
    // 1 is delayed, 2 is the second; 3 ends a write, and 4 is not full.
    let arrived = [segment(1), segment(2), push(3), short(4), segment(5)];
    assert_eq!(at_once(&mut receiver, &cfg, &arrived), [false, true, true, true, false]);
    let modern = TcpConfig { packet_bytes: 1000, ..TcpConfig::modern() };
    let mut receiver = connected(&modern);
    assert_eq!(at_once(&mut receiver, &modern, &[push(1), short(2), push(3)]), [false, true, false]);
}

#[test]
fn a_linux_receiver_uses_quick_acks_after_idle_periods_duplicates_and_retransmissions() {
    let cfg = TcpConfig { quick_acks: 3, packet_bytes: 1000, ..TcpConfig::linux() };
    let quick = |receiver: &mut Receiver, at_ms: u64| {
        let now = START + Span::from_millis(at_ms);
        let seq = receiver.delivered_segments() + 1;
        receiver.on_segment(&cfg, now, &segment(seq)).is_some()
    };
    let start = || {
        let (mut receiver, at) = paced(&cfg, 100);
        for expected in [true, true, true, false] {
            assert_eq!(quick(&mut receiver, at), expected);
        }
        assert!(quick(&mut receiver, at), "the second");
        receiver
    };
    // With a round trip of 100 ms the timeout is 300 ms: a gap of 300 ms is no idle period, one of 301 ms is.
    let mut receiver = start();
    assert!(!quick(&mut receiver, 400) && quick(&mut receiver, 400));
    let after = [701, 701, 701, 701].map(|at| quick(&mut receiver, at));
    assert_eq!(after, [true, true, true, false]);
    // A duplicate: three quick acknowledgements, including its own.
    let mut receiver = start();
    receiver.on_segment(&cfg, START + Span::from_millis(110), &segment(2)).unwrap();
    let after = [110, 110, 110, 110].map(|at| quick(&mut receiver, at));
    assert_eq!(after, [true, true, false, true]);
    // A segment without ECT among ECT ones is a retransmission: its acknowledgement and the next are quick.
    let mut receiver = start();
    let again = Segment { ecn: Ecn::NotEct, ..segment(6) };
    assert!(receiver.on_segment(&cfg, START + Span::from_millis(110), &again).is_some());
    let after = [110, 110, 110].map(|at| quick(&mut receiver, at));
    assert_eq!(after, [true, false, true]);
}
