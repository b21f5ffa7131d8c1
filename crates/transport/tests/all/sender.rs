//! Sender of TCP, packet by packet, on traces calculated by hand.

use aqumen_transport::Config;
use aqumen_transport::tcp::{
    Ack, Feedback, LossDetection, PlainSegment, Quirks, Reduction, RtoFloor, SackBlocks, Segment, Sender, TcpConfig,
    Variant,
};
use aqumen_units::{Bytes, Ecn, Instant, Span};

use crate::common::at as ms;

const WINDOW: u32 = 1000;

fn ack(ack: u32) -> Ack {
    Ack { ack, window: WINDOW, ece: false, echo: Instant::ZERO, sack: SackBlocks::EMPTY, feedback: Feedback::None }
}

fn marked(number: u32) -> Ack {
    Ack { ece: true, ..ack(number) }
}

/// A sender, its configuration and a clock.
struct Host {
    cfg: TcpConfig,
    sender: Sender,
    now: Instant,
}

impl Host {
    /// Connected at 100 ms: the initial window has been sent.
    fn connected(cfg: TcpConfig, transfer: Option<Bytes>) -> Host {
        cfg.validate().unwrap();
        let mut host = Host { cfg, sender: Sender::new(&cfg, transfer), now: Instant::ZERO };
        assert_eq!(host.send(), [], "silent before it is started");
        host.sender.start(&cfg, host.now);
        assert_eq!(host.send(), [0], "the SYN alone");
        host.now = ms(100);
        host
    }

    /// ns-2's Reno with segments 7 to 14 outstanding: the SYN is acknowledged, then segments 1 to 6, one by one, so
    /// slow start has raised the window from 2 to 8.
    fn eight_out(cfg: TcpConfig) -> Host {
        let mut host = Host::connected(cfg, None);
        assert_eq!(host.on(ack(1)), [1, 2]);
        for number in 2..=7 {
            assert_eq!(host.on(ack(number)), [2 * number - 1, 2 * number]);
        }
        assert_eq!(host.sender.cwnd(), 8.0);
        host
    }

    fn segments(&mut self) -> Vec<Segment> {
        let mut sent = Vec::new();
        while let Some(one) = self.sender.poll_immediate(&self.cfg, self.now) {
            sent.push(one);
        }
        while let Some(one) = self.sender.poll_transmit(&self.cfg, self.now) {
            sent.push(one);
        }
        sent
    }

    fn send(&mut self) -> Vec<u32> {
        self.segments().iter().map(|one| one.seq).collect()
    }

    fn on(&mut self, ack: Ack) -> Vec<u32> {
        self.sender.on_ack(&self.cfg, self.now, &ack);
        self.send()
    }

    /// Lets the timer expire.
    fn expire(&mut self) -> Vec<u32> {
        self.now = self.sender.next_timer().expect("a timer is set");
        self.sender.on_timer(&self.cfg, self.now);
        self.send()
    }
}

#[test]
fn the_initial_window_is_sent_at_once_after_the_handshake() {
    for (cfg, pkts) in [(TcpConfig::ns2(), 2), (TcpConfig::modern(), 10), (TcpConfig::dctcp(), 10)] {
        assert_eq!(Host::connected(cfg, None).on(ack(1)), (1..=pkts).collect::<Vec<_>>());
        assert_eq!(cfg.initial_window_pkts(), pkts);
    }
}

fn sack(number: u32, runs: &[(u32, u32)]) -> Ack {
    let mut blocks = SackBlocks::EMPTY;
    for run in runs {
        assert!(blocks.push(run.0, run.1));
    }
    Ack { sack: blocks, ..ack(number) }
}

#[test]
fn a_lost_segment_is_resent_after_three_duplicates_and_the_window_halves() {
    let mut host = Host::eight_out(TcpConfig::ns2());
    // 7 is lost; 8 and 9 cause duplicates, each of which releases a new segment (RFC 3042).
    assert_eq!(host.on(ack(7)), [15]);
    assert_eq!(host.on(ack(7)), [16]);
    // The third (10): ssthresh = 8 / 2 = 4 and the window 4 + 3 = 7, less than the 10 outstanding (7 to 16).
    assert_eq!(host.on(ack(7)), [7]);
    assert_eq!((host.sender.cwnd(), host.sender.ssthresh()), (4.0, 4));
    // 11, 12, 13 make it 8, 9, 10; 14 makes it 11: one more is sent, and so for 15 and 16.
    for expected in [vec![], vec![], vec![], vec![17], vec![18], vec![19]] {
        assert_eq!(host.on(ack(7)), expected);
    }
    // 7 arrives: everything up to 16 is acknowledged. Window 4 again, + 1/4 for this acknowledgement; 17 to 19 are
    // outstanding.
    assert_eq!(host.on(ack(17)), [20]);
    assert_eq!(host.sender.cwnd(), 4.25);
    let stats = host.sender.stats();
    assert_eq!((stats.fast_retransmits, stats.retransmitted, stats.timeouts), (1, 1, 0));
    assert_eq!(stats.sent, 22, "the SYN, 1 to 20, and 7 again");
}

#[test]
fn reordering_by_two_segments_has_no_effect() {
    let mut host = Host::eight_out(TcpConfig::ns2());
    assert_eq!(host.on(ack(7)), [15]);
    assert_eq!(host.on(ack(7)), [16]);
    // 7 arrives after 8 and 9: ack 10. Slow start: 9; 10 to 16 are outstanding (7), so two are sent.
    assert_eq!(host.on(ack(10)), [17, 18]);
    assert_eq!(host.sender.cwnd(), 9.0);
    assert_eq!(host.sender.stats().retransmitted, 0);
}

#[test]
fn without_limited_transmit_the_first_duplicates_send_nothing() {
    let mut host = Host::eight_out(TcpConfig { limited_transmit: false, ..TcpConfig::ns2() });
    assert_eq!(host.on(ack(7)), []);
    assert_eq!(host.on(ack(7)), []);
    assert_eq!(host.on(ack(7)), [7]);
}

/// 7 and 9 are lost: the duplicates of 8, 10 to 16 as in the first test, one fewer.
fn two_losses(variant: Variant) -> Host {
    let mut host = Host::eight_out(TcpConfig { variant, ..TcpConfig::ns2() });
    for expected in [vec![15], vec![16], vec![7], vec![], vec![], vec![], vec![17], vec![18]] {
        assert_eq!(host.on(ack(7)), expected);
    }
    host
}

#[test]
fn newreno_repairs_a_second_loss_without_leaving_recovery() {
    let mut host = two_losses(Variant::NewReno);
    // 7 arrives: ack 9, partial. Two acknowledged: inflation 8 - 2 + 1 = 7, window 4 + 7 = 11; 9 to 18 are outstanding
    // (10).
    assert_eq!(host.on(ack(9)), [9, 19]);
    // 9 arrives: all data outstanding at the loss (up to 16). Window 4 + 1/4; 17 to 19 are outstanding.
    assert_eq!(host.on(ack(17)), [20]);
    assert_eq!(host.sender.cwnd(), 4.25);
    let stats = host.sender.stats();
    assert_eq!((stats.fast_retransmits, stats.retransmitted, stats.timeouts), (1, 2, 0));
}

#[test]
fn reno_needs_the_timer_after_a_second_loss() {
    let mut host = two_losses(Variant::Reno);
    // Recovery is over: window 4.25 with 9 to 18 outstanding. 17 and 18 cause two duplicates, too few.
    assert_eq!(host.on(ack(9)), []);
    assert_eq!(host.on(ack(9)), []);
    assert_eq!(host.on(ack(9)), []);
    // ssthresh = 4.25 / 2 = 2 (whole segments), window 1.
    assert_eq!(host.expire(), [9]);
    assert_eq!((host.sender.cwnd(), host.sender.ssthresh()), (1.0, 2));
    assert_eq!(host.sender.stats().timeouts, 1);
}

#[test]
fn a_lost_window_is_resent_in_slow_start_from_the_timer_on() {
    let mut host = Host::eight_out(TcpConfig::ns2());
    // Samples at 100 ms and 0 ms: 10 ticks, then 1 (the minimum). 8 SRTT = 80, 4 RTTVAR = 20; then 80 + (1 - 10) = 71
    // and 20 + (9 - 5) = 24. After (1 - 8) = -7: 64 and 24 + (7 - 6) = 25; after (1 - 8) = -7: 57 and 25 + (7 - 6) =
    // 26. RTO = (8 * 26 + 57) / 8 = 33 ticks.
    let rto = host.sender.retransmission_timeout(&host.cfg);
    assert_eq!(rto, Span::from_millis(330));
    assert_eq!(host.sender.next_timer(), Some(ms(100) + rto));
    // No acknowledgement arrives. ssthresh = 8 / 2.
    assert_eq!(host.expire(), [7]);
    assert_eq!((host.sender.cwnd(), host.sender.ssthresh()), (1.0, 4));
    // Backed off once (RFC 6298 rule 5.5).
    assert_eq!(host.sender.next_timer(), Some(host.now + rto * 2));
    // Each acknowledgement adds one up to ssthresh, then 1 / 4.
    assert_eq!(host.on(ack(8)), [8, 9]);
    assert_eq!(host.on(ack(9)), [10, 11]);
    assert_eq!(host.on(ack(10)), [12, 13]);
    assert_eq!(host.on(ack(11)), [14]);
    assert_eq!(host.sender.cwnd(), 4.25);
    // 15 is sent for the first time.
    assert_eq!(host.on(ack(12)), [15]);
    assert_eq!(host.sender.stats().retransmitted, 8);
}

#[test]
fn a_lost_retransmission_needs_the_timer_which_halves_again() {
    let mut host = Host::eight_out(TcpConfig::ns2());
    host.on(ack(7));
    host.on(ack(7));
    assert_eq!(host.on(ack(7)), [7]);
    for _ in 0..6 {
        host.on(ack(7));
    }
    // The fast retransmit is lost too. The window is 4: ssthresh = 2.
    assert_eq!(host.expire(), [7]);
    assert_eq!((host.sender.cwnd(), host.sender.ssthresh()), (1.0, 2));
    // Duplicates of segments sent meanwhile start no second fast retransmit (RFC 6582 section 4).
    for _ in 0..3 {
        host.on(ack(7));
    }
    assert_eq!(host.sender.stats().fast_retransmits, 1);
    assert_eq!(host.on(ack(20)), [20, 21]);
}

#[test]
fn the_timer_doubles_up_to_its_maximum_and_karn_keeps_it_so() {
    let mut host = Host::connected(TcpConfig::ns2(), None);
    assert_eq!(host.on(ack(1)), [1, 2]);
    // One sample of 10 ticks: RTO = 10 + 4 * 5 ticks = 300 ms, doubled at each timeout, at most 60 s.
    for expected in [300, 600, 1_200, 2_400, 4_800, 9_600, 19_200, 38_400, 60_000, 60_000] {
        assert_eq!(host.sender.retransmission_timeout(&host.cfg), Span::from_millis(expected));
        assert_eq!(host.expire(), [1]);
    }
    // 1 was retransmitted: its acknowledgement gives no sample, and the timer stays backed off.
    let samples = host.sender.stats().rtt_samples;
    assert_eq!(host.on(ack(2)), [2, 3]);
    assert_eq!(host.sender.stats().rtt_samples, samples);
    assert_eq!(host.sender.retransmission_timeout(&host.cfg), Span::from_secs(60));
    // 3 was sent once. ns-2 discarded the round-trip time at the fourth timeout, so 100 ms (10 ticks) is a first
    // sample.
    host.now += Span::from_millis(100);
    assert_eq!(host.on(ack(3)), [4]);
    assert_eq!(host.sender.stats().rtt_samples, samples);
    host.on(ack(4));
    assert_eq!(host.sender.stats().rtt_samples, samples + 1);
    assert_eq!(host.sender.retransmission_timeout(&host.cfg), Span::from_millis(300));
}

#[test]
fn a_round_trip_is_counted_in_ticks_of_the_senders_clock() {
    // Sent at 0, acknowledged after 95 ms: a clock in phase counts 9 ticks, one that is 5 ms ahead counts 10.
    for (phase, ticks) in [(0, 9), (4, 9), (5, 10), (9, 10)] {
        let cfg = TcpConfig::ns2();
        let mut sender = Sender::new(&cfg, None).with_clock_phase(&cfg, Span::from_millis(phase));
        sender.start(&cfg, Instant::ZERO);
        assert!(sender.poll_transmit(&cfg, Instant::ZERO).is_some());
        sender.on_ack(&cfg, ms(95), &ack(1));
        assert_eq!(sender.smoothed_rtt(&cfg), Some(Span::from_millis(10 * ticks)), "phase {phase} ms");
        assert_eq!(sender.stats().rtt_sum, Span::from_millis(95));
    }
}

#[test]
fn the_timer_has_a_floor() {
    let mut host = Host::connected(TcpConfig::ns2(), None);
    host.now = ms(20);
    // 2 ticks: RTO = 2 + 4 * 1 = 60 ms, but at least 200.
    host.on(ack(1));
    assert_eq!(host.sender.retransmission_timeout(&host.cfg), Span::from_millis(200));
}

#[test]
fn timestamps_measure_every_round_trip_and_retransmissions_too() {
    let mut host = Host::connected(TcpConfig { rto_floor: RtoFloor::Timeout, ..TcpConfig::modern() }, None);
    host.on(ack(1));
    host.now = ms(200);
    host.on(Ack { echo: ms(100), ..ack(3) });
    host.on(Ack { echo: ms(100), ..ack(5) });
    let stats = host.sender.stats();
    assert_eq!((stats.rtt_samples, stats.rtt_sum), (3, Span::from_millis(300)));
    // RFC 6298: SRTT = 100 ms; RTTVAR = 50, then 3/4 of it twice = 28.125; RTO = 100 + 112.5 ms.
    assert_eq!(host.sender.smoothed_rtt(&host.cfg), Some(Span::from_millis(100)));
    assert_eq!(host.sender.retransmission_timeout(&host.cfg), Span::from_micros(212_500));
}

#[test]
fn a_mark_halves_the_window_once_per_window_and_sets_cwr() {
    let mut host = Host::eight_out(TcpConfig { ecn: true, ..TcpConfig::ns2() });
    // 7 to 14 are outstanding. The mark on 7: 8 / 2 = 4, and a marked acknowledgement does not increase the window.
    assert_eq!(host.on(marked(8)), []);
    assert_eq!((host.sender.cwnd(), host.sender.ssthresh()), (4.0, 4));
    // 8 to 14 belong to the same window of data, so further marks have no effect.
    for number in 9..=11 {
        assert_eq!(host.on(marked(number)), []);
    }
    host.sender.on_ack(&host.cfg, host.now, &marked(12));
    let sent = host.segments();
    assert_eq!(sent.len(), 1);
    assert!(sent[0].cwr && sent[0].ecn == Ecn::Ect0 && sent[0].seq == 15);
    host.sender.on_ack(&host.cfg, host.now, &ack(13));
    assert!(host.segments().iter().all(|one| !one.cwr), "CWR once");
    assert_eq!(host.sender.stats().ecn_reactions, 1);
    host.on(ack(15));
    assert_eq!(host.sender.stats().ecn_reactions, 1);
    // The first segment sent after the response is marked again.
    host.on(marked(16));
    assert_eq!(host.sender.stats().ecn_reactions, 2);
}

#[test]
fn marks_on_small_windows_stop_ns2_until_the_timer() {
    let mut host = Host::connected(TcpConfig { ecn: true, ..TcpConfig::ns2() }, None);
    assert_eq!(host.on(ack(1)), [1, 2]);
    // 2 / 2 = 1: segment 2 is still outstanding.
    assert_eq!(host.on(marked(2)), []);
    assert_eq!(host.on(marked(3)), [3]);
    // 1 / 2: less than a segment, so nothing is sent although nothing is outstanding.
    assert_eq!(host.on(marked(4)), []);
    assert_eq!((host.sender.cwnd(), host.sender.ssthresh()), (0.5, 2));
    // The timer sends one segment, without backoff, as nothing was lost.
    let rto = host.sender.retransmission_timeout(&host.cfg);
    assert_eq!(host.expire(), [4]);
    assert_eq!(host.sender.retransmission_timeout(&host.cfg), rto);
    assert_eq!(host.sender.cwnd(), 1.0);
    // Marked again at a window of one: the timer backs off (`ecn_backoff_`).
    assert_eq!(host.on(marked(5)), []);
    assert_eq!(host.sender.retransmission_timeout(&host.cfg), rto * 2);
    // No more marks: slow start from 1 / 2.
    host.expire();
    assert_eq!(host.on(ack(6)), [6, 7]);
    assert_eq!(host.sender.cwnd(), 2.0);
}

#[test]
fn marks_leave_todays_tcp_two_segments() {
    let mut host = Host::connected(TcpConfig { initial_window: 2, ..TcpConfig::modern() }, None);
    assert_eq!(host.on(ack(1)), [1, 2]);
    assert_eq!(host.on(marked(2)), [3]);
    assert_eq!(host.sender.cwnd(), 2.0);
    assert_eq!(host.on(marked(4)), [4, 5]);
    assert_eq!(host.sender.cwnd(), 2.0);
}

#[test]
fn a_loss_in_a_window_that_was_marked_is_repaired_without_a_second_reduction() {
    let mut host = Host::eight_out(TcpConfig { ecn: true, ..TcpConfig::ns2() });
    host.on(marked(8));
    // 8 is lost; 9, 10, 11 arrive.
    host.on(marked(8));
    host.on(marked(8));
    assert_eq!(host.on(marked(8)), [8]);
    assert_eq!(host.sender.cwnd(), 4.0);
}

#[test]
fn an_echo_does_not_prolong_a_recovery() {
    let mut host = Host::eight_out(TcpConfig { ecn: true, ..TcpConfig::ns2() });
    host.on(marked(8));
    // 8 is lost; 9, 10, 11 start a recovery with window 4 + 3, 12, 13, 14 raise it to 8, 9, 10 with 8 to 14 outstanding
    // (7).
    for expected in [vec![], vec![], vec![8], vec![15], vec![16], vec![17]] {
        assert_eq!(host.on(ack(8)), expected);
    }
    // 8 and 15 arrive, 15 with a mark, and the acknowledgement of 8 is lost. (4 + 6) / 2 = 5, no longer inflated: 16
    // and 17 are outstanding, three more are sent.
    assert_eq!(host.on(marked(16)), [18, 19, 20]);
    assert_eq!(host.sender.cwnd(), 5.0);
}

#[test]
fn retransmissions_are_ecn_capable_in_ns2_and_not_today() {
    for (preset, capable) in [(TcpConfig::ns2(), true), (TcpConfig::modern(), false)] {
        let cfg = TcpConfig { ecn: true, tail_probe: false, ..preset };
        let mut host = Host::connected(cfg, None);
        host.on(ack(1));
        host.now = host.sender.next_timer().unwrap();
        host.sender.on_timer(&cfg, host.now);
        let again = host.segments()[0];
        assert!(again.retransmission && again.seq == 1);
        assert_eq!(again.ecn.is_ect(), capable);
        assert_eq!(again.cwr, capable, "CWR waits for new data where RFC 3168 is followed");
    }
}

/// Preset `modern` with the recovery of RFC 6675.
const fn counting() -> TcpConfig {
    TcpConfig { loss_detection: LossDetection::Rfc6675, reduction: Reduction::AtOnce, ..TcpConfig::modern() }
}

#[test]
fn selective_acknowledgements_repair_two_losses_in_one_round_trip() {
    let mut host = Host::connected(counting(), None);
    // Initial window 10: 1 to 10. 1 and 4 are lost.
    assert_eq!(host.on(ack(1)), (1..=10).collect::<Vec<_>>());
    // 2 and 3 arrived: limited transmit keeps 10 in flight.
    assert_eq!(host.on(sack(1, &[(2, 3)])), [11]);
    assert_eq!(host.on(sack(1, &[(2, 4)])), [12]);
    // 5: the third. ssthresh = min(12, 10) / 2 = 5. In flight 12 - 3 arrived - 1 lost + 1 retransmitted = 9.
    assert_eq!(host.on(sack(1, &[(5, 6), (2, 4)])), [1]);
    assert_eq!((host.sender.cwnd(), host.sender.ssthresh()), (5.0, 5));
    // 6: in flight 8. 7: 4 has three arrivals beyond it and is lost too: 12 - 5 - 2 + 1 = 6. 8: 5.
    assert_eq!(host.on(sack(1, &[(5, 7), (2, 4)])), []);
    assert_eq!(host.on(sack(1, &[(5, 8), (2, 4)])), []);
    assert_eq!(host.on(sack(1, &[(5, 9), (2, 4)])), []);
    // 9: 4, one less than the window: the lost segment is sent first. 10: new data.
    assert_eq!(host.on(sack(1, &[(5, 10), (2, 4)])), [4]);
    assert_eq!(host.on(sack(1, &[(5, 11), (2, 4)])), [13]);
    assert_eq!(host.on(sack(1, &[(5, 12), (2, 4)])), [14]);
    assert_eq!(host.on(sack(1, &[(5, 13), (2, 4)])), [15]);
    // 1 arrives: ack 4, still in recovery: one less in flight. 4 arrives: up to 12, recovery is over, window 5 (13, 14,
    // 15 outstanding).
    assert_eq!(host.on(sack(4, &[(5, 13)])), [16]);
    assert_eq!(host.on(ack(13)), [17]);
    assert_eq!(host.sender.cwnd(), 5.0);
    let stats = host.sender.stats();
    assert_eq!((stats.fast_retransmits, stats.retransmitted, stats.timeouts), (1, 2, 0));
}

#[test]
fn after_a_timeout_only_the_holes_are_resent() {
    let mut host = Host::connected(counting(), None);
    host.on(ack(1));
    // 1 and 4 to 9 are lost, everything after 10, and the fast retransmit of 1.
    host.on(sack(1, &[(2, 4)]));
    host.on(sack(1, &[(10, 11), (2, 4)]));
    assert_eq!(host.sender.stats().fast_retransmits, 1, "2, 3 and 10 arrived after 1");
    assert_eq!(host.expire(), [1]);
    // 1 arrives and acknowledges up to 3: window 1 + min(3, 2) = 3.
    assert_eq!(host.on(sack(4, &[(10, 11)])), [4, 5, 6]);
    assert_eq!(host.on(sack(5, &[(10, 11)])), [7, 8]);
    // 10 has arrived: 11 follows 9.
    assert_eq!(host.on(sack(6, &[(10, 11)])), [9, 11]);
}

#[test]
fn a_closed_window_is_probed_until_it_opens() {
    let mut host = Host::connected(TcpConfig::modern(), None);
    host.on(ack(1));
    host.now = ms(200);
    assert_eq!(host.on(Ack { window: 0, echo: ms(100), ..ack(11) }), []);
    // RTO = 100 + 200 ms, since 4 * 37.5 is less, doubled at each probe. A probe is an old, empty segment.
    for expected in [300, 600, 1_200, 2_400] {
        let due = host.sender.next_timer().unwrap();
        assert_eq!(due - host.now, Span::from_millis(expected));
        host.now = due;
        host.sender.on_timer(&host.cfg, host.now);
        let probes = host.segments();
        assert_eq!(probes.len(), 1);
        assert_eq!((probes[0].seq, probes[0].bytes), (10, host.cfg.header_bytes));
        assert_eq!(host.on(Ack { window: 0, echo: host.now, ..ack(11) }), []);
    }
    assert_eq!(host.on(Ack { window: 3, ..ack(11) }), [11, 12, 13]);
    assert_eq!(host.sender.stats().timeouts, 0);
    assert_eq!(host.sender.stats().fast_retransmits, 0, "answers to probes are no duplicates");
}

#[test]
fn the_receive_window_bounds_outstanding_data() {
    let mut host = Host::connected(TcpConfig { receive_window: 3, ..TcpConfig::ns2() }, None);
    let ack = |number| Ack { window: 3, ..ack(number) };
    assert_eq!(host.on(ack(1)), [1, 2]);
    assert_eq!(host.on(ack(3)), [3, 4, 5]);
    assert_eq!(host.on(ack(6)), [6, 7, 8]);
}

#[test]
fn a_finite_transfer_ends_with_a_short_segment_and_a_silent_timer() {
    let cfg = TcpConfig::modern();
    // 3000 = 1448 + 1448 + 104 bytes.
    let mut host = Host::connected(cfg, Some(Bytes(3000)));
    host.sender.on_ack(&cfg, host.now, &ack(1));
    let sent = host.segments();
    let sizes: Vec<_> = sent.iter().map(|one| (one.seq, one.bytes, one.push)).collect();
    assert_eq!(sizes, [(1, 1500, false), (2, 1500, false), (3, 52 + 104, true)]);
    host.on(ack(3));
    assert!(!host.sender.is_finished() && host.sender.next_timer().is_some());
    assert_eq!(host.on(ack(4)), []);
    assert!(host.sender.is_finished());
    assert_eq!(host.sender.next_timer(), None);
    // An exact multiple has a full last segment; ns-2 rounds up.
    for (cfg, bytes, last) in [(cfg, 2896, 1500), (TcpConfig::ns2(), 961, 1000)] {
        let mut host = Host::connected(cfg, Some(Bytes(bytes)));
        host.sender.on_ack(&cfg, host.now, &ack(1));
        let sent = host.segments();
        assert_eq!((sent.len(), sent[1].bytes, sent[1].push), (2, last, true));
    }
    // Nothing to send: the connection opens and is complete.
    let mut host = Host::connected(cfg, Some(Bytes(0)));
    assert_eq!(host.on(ack(1)), []);
    assert!(host.sender.is_finished());
}

#[test]
fn losses_are_repaired_while_the_application_is_paused() {
    let mut host = Host::eight_out(TcpConfig::ns2());
    host.sender.pause(host.now);
    assert_eq!(host.on(ack(8)), []);
    assert_eq!(host.expire(), [8]);
    assert_eq!(host.on(ack(15)), []);
    assert_eq!(host.sender.next_timer(), None, "nothing is out");
    host.sender.resume(&host.cfg, host.now);
    assert_eq!(host.send(), [15, 16]);
}

#[test]
fn a_long_pause_ends_in_slow_start() {
    for (preset, window) in [(TcpConfig::ns2(), 1.0), (TcpConfig::modern(), 10.0)] {
        let cfg = TcpConfig { initial_window: 16, ..preset };
        let mut host = Host::connected(cfg, Some(Bytes(16 * 900)));
        host.on(ack(1));
        let all = host.sender.stats().sent;
        host.on(Ack { echo: host.now, ..ack(all) });
        assert!(host.sender.is_finished());
        let before = host.sender.cwnd();
        assert!(before >= 16.0);
        // Shortly after, the window is unchanged; ten seconds later it is the restart window.
        host.sender.offer(&cfg, host.now, Bytes(1));
        assert_eq!(host.send().len(), 1);
        host.on(Ack { echo: host.now, ..ack(all + 1) });
        assert!(host.sender.cwnd() >= before);
        host.now += Span::from_secs(10);
        host.sender.offer(&cfg, host.now, Bytes(100 * 1460));
        assert_eq!(host.sender.cwnd(), window);
        assert_eq!(host.send().len(), window as usize);
    }
}

#[test]
fn an_unused_window_grows_in_ns2_and_not_today() {
    for (preset, grows) in [(TcpConfig::ns2(), true), (TcpConfig::modern(), false)] {
        let cfg = TcpConfig { initial_window: 10, ..preset };
        let mut host = Host::connected(cfg, Some(Bytes(1)));
        host.on(ack(1));
        host.on(Ack { echo: host.now, ..ack(2) });
        assert_eq!(host.sender.cwnd() > 10.0, grows);
    }
}

#[test]
fn a_burst_limit_holds_per_acknowledgement() {
    let cfg = TcpConfig { max_burst: 3, initial_window: 8, ..TcpConfig::ns2() };
    let mut host = Host::connected(cfg, None);
    assert_eq!(host.on(ack(1)), [1, 2, 3]);
    assert_eq!(host.on(ack(2)), [4, 5, 6]);
}

#[test]
fn writes_that_a_sender_holds_are_as_many_offers() {
    for full_segments in [false, true] {
        let preset = TcpConfig::ns2();
        let cfg = TcpConfig { quirks: Quirks { full_segments, ..preset.quirks }, initial_window: 1, ..preset };
        for bytes in [1, 700, 960, 961, 5000] {
            let mut each = Host::connected(cfg, Some(Bytes(1)));
            each.on(ack(1));
            let mut at_once = Host { sender: each.sender.clone(), ..Host::connected(cfg, Some(Bytes(1))) };
            at_once.now = each.now;
            assert!(each.sender.holds_offers(true));
            for _ in 0..7 {
                each.sender.offer(&cfg, each.now, Bytes(bytes));
            }
            at_once.sender.offer_held(&cfg, 7, Bytes(bytes));
            // All of it is sent, in the same segments, when the acknowledgements arrive.
            for seq in 2..60 {
                assert_eq!(each.on(ack(seq)), at_once.on(ack(seq)), "{bytes} B, acknowledgement {seq}");
            }
            assert!(each.sender.is_finished() && at_once.sender.is_finished());
            assert_eq!(each.sender.stats(), at_once.sender.stats());
        }
    }
}

#[test]
fn offered_data_waits_for_a_full_window_or_a_scheduled_send() {
    let held = |host: &Host| [false, true].map(|departing| host.sender.holds_offers(departing));
    let cfg = TcpConfig::ns2();
    let mut host = Host::connected(cfg, Some(Bytes(1)));
    assert_eq!(host.on(ack(1)), [1]);
    // One of two is in flight: another is sent at once, unless the host has scheduled a send.
    assert_eq!(held(&host), [false, true]);
    host.sender.offer(&cfg, host.now, Bytes(960));
    assert_eq!(host.send(), [2]);
    assert_eq!(held(&host), [true, true]);
    host.sender.offer(&cfg, host.now, Bytes(960));
    assert_eq!(host.send(), []);
    // Slow start: three may be in flight. When all have arrived offers do not wait.
    assert_eq!(host.on(ack(2)), [3]);
    assert_eq!(held(&host), [false, true]);
    assert_eq!(host.on(ack(4)), []);
    assert_eq!(held(&host), [false, false]);
    // Senders with other limits than the window.
    for cfg in [TcpConfig { max_burst: 2, ..cfg }, TcpConfig::linux()] {
        let mut host = Host::connected(cfg, None);
        assert!(!host.on(ack(1)).is_empty());
        assert_eq!(held(&host), [false, false]);
    }
}

#[test]
fn a_lost_syn_leaves_an_initial_window_of_one() {
    let cfg = TcpConfig::modern();
    let mut sender = Sender::new(&cfg, None);
    sender.start(&cfg, ms(0));
    assert_eq!(sender.poll_transmit(&cfg, ms(0)).map(|syn| (syn.seq, syn.syn, syn.bytes)), Some((0, true, 52)));
    assert_eq!(sender.next_timer(), Some(ms(1000)), "the initial timeout of RFC 6298 rule 2.1");
    sender.on_timer(&cfg, ms(1000));
    assert!(sender.poll_transmit(&cfg, ms(1000)).is_some_and(|syn| syn.syn && syn.retransmission));
    sender.on_ack(&cfg, ms(1100), &Ack { echo: ms(1000), ..ack(1) });
    assert_eq!(sender.cwnd(), 1.0);
}

#[test]
fn invalid_acknowledgements_are_ignored() {
    let mut host = Host::eight_out(TcpConfig::ns2());
    let before = format!("{:?}", host.sender);
    assert_eq!(host.on(marked(16)), [], "15 was never sent");
    assert_eq!(host.on(ack(u32::MAX)), []);
    assert_eq!(host.on(ack(3)), [], "old");
    assert_eq!(format!("{:?}", host.sender), before);
}

#[test]
fn early_and_additional_timer_calls_have_no_effect() {
    let mut host = Host::eight_out(TcpConfig::ns2());
    let before = format!("{:?}", host.sender);
    let due = host.sender.next_timer().unwrap();
    host.sender.on_timer(&host.cfg, host.now);
    host.sender.on_timer(&host.cfg, Instant::from_nanos(due.as_nanos() - 1));
    assert_eq!(format!("{:?}", host.sender), before);
    let late = due + Span::from_secs(1);
    host.sender.on_timer(&host.cfg, late);
    host.sender.on_timer(&host.cfg, late);
    assert_eq!(host.sender.stats().timeouts, 1);
}

#[test]
fn flows_are_small() {
    assert!(size_of::<Sender>() <= 128, "{}", size_of::<Sender>());
    assert!(size_of::<aqumen_transport::tcp::Receiver>() <= 48);
    assert!(size_of::<Segment>() <= 24 && size_of::<Ack>() <= 56);
}

#[test]
fn a_bad_parameter_is_named_with_its_value_and_range() {
    let bad = |cfg: TcpConfig| cfg.validate().unwrap_err().to_string();
    let good = TcpConfig::ns2();
    assert!(good.validate().is_ok() && TcpConfig::modern().validate().is_ok());
    let short = TcpConfig { packet_bytes: 40, ..good };
    assert_eq!(bad(short), "packet_bytes = 40: must be more than header_bytes, at most 65535 bytes");
    let none = TcpConfig { initial_window: 0, ..good };
    assert_eq!(bad(none), "initial_window = 0: must be 1 to 2^30 segments");
    let odd = TcpConfig { rto_tick: Span::from_nanos(1), ..good };
    assert_eq!(bad(odd), "rto_tick = 0.000000001: must be whole microseconds, 1 us to 1 s");
    let crossed = TcpConfig { min_rto: Span::from_secs(61), ..good };
    assert_eq!(bad(crossed), "min_rto = 61: must be 0 s to max_rto");
    let nan = TcpConfig { min_window: f64::NAN, ..good };
    assert_eq!(bad(nan), "min_window = NaN: must be 0 to 2 segments");
    let whole = |min_window| TcpConfig { min_window, ..TcpConfig::linux() };
    assert_eq!(bad(whole(0.99)), "min_window = 0.99: must be 1 to 2 segments with whole windows");
    assert!(whole(1.0).validate().is_ok() && whole(2.0).validate().is_ok());
    let slow = TcpConfig { delayed_ack: Some(Span::from_secs(1)), ..good };
    assert_eq!(bad(slow), "delayed_ack = 1: must be above 0 s, at most 0.5 s");
}

#[test]
fn a_transfer_too_long_to_number_is_cut_not_wrapped() {
    for bytes in [u64::MAX, 1 << 50] {
        let mut host = Host::connected(TcpConfig::modern(), Some(Bytes(bytes)));
        assert_eq!(host.on(ack(1)), (1..=10).collect::<Vec<_>>());
        host.sender.offer(&host.cfg, host.now, Bytes(u64::MAX));
        assert!(!host.sender.is_finished());
    }
}

#[test]
fn a_round_trip_of_days_saturates_the_timer() {
    let mut host = Host::connected(TcpConfig::modern(), None);
    host.on(ack(1));
    host.now = Instant::ZERO + Span::from_secs(1_000_000);
    for number in 2..6 {
        host.on(Ack { echo: Instant::ZERO, ..ack(number) });
        assert_eq!(host.sender.retransmission_timeout(&host.cfg), Span::from_secs(60));
    }
}

/// Round trips of 190 ms: their deviation, 95 ms at first, falls by a quarter each. RFC 6298 rule 2.4 bounds the whole
/// timeout by 200 ms; Linux the part beyond the round-trip time.
#[test]
fn the_minimum_bounds_the_timeout_or_its_variation() {
    for (rto_floor, least) in [(RtoFloor::Timeout, 200), (RtoFloor::Variation, 390)] {
        let cfg = TcpConfig { rto_floor, syn: false, delayed_ack: None, initial_window: 1, ..TcpConfig::modern() };
        let mut sender = Sender::new(&cfg, None);
        sender.start(&cfg, ms(0));
        for round in 1..=60 {
            while sender.poll_transmit(&cfg, ms(190 * u64::from(round - 1))).is_some() {}
            sender.on_ack(
                &cfg,
                ms(190 * u64::from(round)),
                &Ack { echo: ms(190 * u64::from(round - 1)), ..ack(round) },
            );
        }
        assert_eq!(sender.retransmission_timeout(&cfg), Span::from_millis(least));
    }
}

#[test]
fn the_receive_window_limits_data_in_flight() {
    use aqumen_transport::Config;
    let cfg = TcpConfig { receive_window: 77, ..TcpConfig::ns2() };
    assert_eq!(cfg.window_pkts(), Some(77));
}

/// Two senders of the same transfer receive equal acknowledgements, marks and timeouts; one uses the fast path of
/// `transmit_plain`. The last segment is short.
#[test]
fn the_fast_path_sends_the_same_segments() {
    let written = TcpConfig { write: 3, ..TcpConfig::ns2() };
    for cfg in [TcpConfig { ecn: true, ..TcpConfig::ns2() }, TcpConfig { syn: false, ..TcpConfig::ns2() }, written] {
        let new = || {
            let mut sender = Sender::new(&cfg, Some(Bytes(960 * 400 + 1)));
            sender.start(&cfg, ms(0));
            sender
        };
        let (mut one, mut other, mut plain, mut reduced) = (new(), new(), 0, 0);
        for step in 1..1000 {
            let now = ms(100 * step);
            let (acked, high) = (one.acknowledged_segments(), one.stats().sent - one.stats().retransmitted);
            if (step % 83 == 0 || acked == high) && one.next_timer().is_some() {
                let due = one.next_timer().unwrap().max(now);
                [&mut one, &mut other].into_iter().for_each(|sender| sender.on_timer(&cfg, due));
            } else if acked < high {
                let ack = Ack { ece: step % 29 == 0, ..ack(acked + 1) };
                [&mut one, &mut other].into_iter().for_each(|sender| sender.on_ack(&cfg, now, &ack));
            }
            let allowance = one.allowance(&cfg);
            assert_eq!(other.allowance(&cfg), allowance);
            for _ in 0..allowance.unwrap() {
                let expected = one.transmit(&cfg, now);
                let Some(PlainSegment { seq, cwr, .. }) = other.transmit_plain(&cfg, now) else {
                    assert_eq!(other.transmit(&cfg, now), expected);
                    continue;
                };
                plain += 1;
                let ecn = if cfg.ecn { Ecn::Ect0 } else { Ecn::NotEct };
                let (bytes, syn, push, retransmission) = (cfg.packet_bytes, false, false, false);
                reduced += u32::from(cwr);
                assert_eq!(Segment { seq, bytes, ecn, cwr, syn, push, retransmission, sent_at: now }, expected);
            }
            assert_eq!((one.stats(), one.next_timer(), one.cwnd()), (other.stats(), other.next_timer(), other.cwnd()));
        }
        assert!(one.is_finished() && one.stats().timeouts > 0, "{:?}", one.stats());
        assert_eq!((plain > 100, reduced > 1), (cfg.write == 0, cfg.ecn), "{plain}, {reduced} with CWR");
    }
}
