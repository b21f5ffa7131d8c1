//! RACK-TLP and PRR of a SACK sender, on traces calculated by hand.
//!
//! All begin alike: the SYN takes a round trip of 10 ms, so SRTT and the smallest round-trip time are 10 ms, and the
//! reordering window is a quarter, 2.5 ms. Segments 1 to 10 are sent at 10 ms.

use aqumen_transport::tcp::{Ack, Feedback, SackBlocks, Segment, Sender, TcpConfig};
use aqumen_units::{Bytes, Instant, Span};

struct Host {
    cfg: TcpConfig,
    sender: Sender,
    now: Instant,
}

fn us(micros: u64) -> Instant {
    Instant::ZERO + Span::from_micros(micros)
}

impl Host {
    /// Segments 1 to 10 are outstanding, of `segments` in all.
    fn ten_out(cfg: TcpConfig, segments: Option<u64>) -> Host {
        let cfg = TcpConfig { delayed_ack: None, ..cfg };
        cfg.validate().unwrap();
        let bytes = segments.map(|segments| Bytes(segments * u64::from(cfg.payload_bytes())));
        let mut host = Host { cfg, sender: Sender::new(&cfg, bytes), now: Instant::ZERO };
        host.sender.start(&cfg, host.now);
        assert_eq!(host.send(), [0]);
        assert_eq!(host.on(10_000, 1, &[]), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        host
    }

    fn segments(&mut self) -> Vec<Segment> {
        let (sender, cfg, now) = (&mut self.sender, &self.cfg, self.now);
        std::iter::from_fn(|| sender.poll_immediate(cfg, now).or_else(|| sender.poll_transmit(cfg, now))).collect()
    }

    fn send(&mut self) -> Vec<u32> {
        self.segments().iter().map(|one| one.seq).collect()
    }

    fn acknowledge(&mut self, micros: u64, number: u32, runs: &[(u32, u32)], ece: bool, echo: Instant) -> Vec<u32> {
        self.now = us(micros);
        let mut sack = SackBlocks::EMPTY;
        for run in runs {
            assert!(sack.push(run.0, run.1));
        }
        let ack = Ack { ack: number, window: 1000, ece, echo, sack, feedback: Feedback::None };
        self.sender.on_ack(&self.cfg, self.now, &ack);
        self.send()
    }

    /// Acknowledges everything before `number` and the SACK blocks at `micros`.
    fn on(&mut self, micros: u64, number: u32, runs: &[(u32, u32)]) -> Vec<u32> {
        let echo = us(micros.saturating_sub(10_000));
        self.acknowledge(micros, number, runs, false, echo)
    }

    /// Lets the timer expire; returns the time and the segments sent.
    fn expire(&mut self) -> (Instant, Vec<u32>) {
        self.now = self.sender.next_timer().unwrap();
        self.sender.on_timer(&self.cfg, self.now);
        (self.now, self.send())
    }
}

#[test]
fn three_later_arrivals_indicate_a_loss_and_prr_halves_the_rate() {
    let mut host = Host::ten_out(TcpConfig::modern(), None);
    // 1 is lost. 2 and 3 release 11 and 12. With 4 the reordering window is zero, and 1 was sent before 4.
    assert_eq!(host.on(20_000, 1, &[(2, 3)]), [11]);
    assert_eq!(host.on(20_500, 1, &[(2, 4)]), [12]);
    // RecoverFS: 1 to 12 less 2 and 3, which arrived earlier: 10; the window is 5. PRR sends delivered x 5 / 10,
    // rounded up: 1 for 4, and for 5, 6, 7, 8, 9 in all 1, 2, 2, 3, 3.
    assert_eq!(host.on(21_000, 1, &[(2, 5)]), [1]);
    assert_eq!((host.sender.cwnd(), host.sender.ssthresh()), (5.0, 5));
    let expected: [&[u32]; 5] = [&[], &[13], &[], &[14], &[]];
    for (place, sent) in expected.into_iter().enumerate() {
        assert_eq!(host.on(21_500 + 500 * place as u64, 1, &[(2, 6 + place as u32)]), sent, "{place}");
    }
    // 10: 1 and 11 to 14 are in the network, the window. 11 and 12 release one each; 1 fills the gap.
    assert_eq!(host.on(24_000, 1, &[(2, 11)]), []);
    assert_eq!(host.on(30_000, 1, &[(2, 12)]), [15]);
    assert_eq!(host.on(30_500, 1, &[(2, 13)]), [16]);
    assert_eq!(host.on(31_000, 13, &[]), [17]);
    assert_eq!((host.sender.cwnd(), host.sender.stats().fast_retransmits), (5.0, 1));
}

#[test]
fn with_fewer_arrivals_a_segment_is_lost_after_the_reordering_window() {
    let mut host = Host::ten_out(TcpConfig::modern(), None);
    assert_eq!(host.on(20_000, 1, &[(2, 3)]), [11]);
    // 1 was sent with 2, whose round trip was 10 ms: it is lost after 10 + 10 + 2.5 ms.
    assert_eq!(host.sender.next_timer(), Some(us(22_500)));
    // The pipe is 11 less 2 and 1: 9, with a window of 5, and one is sent at once (RFC 9937).
    assert_eq!(host.expire(), (us(22_500), vec![1]));
    assert_eq!((host.sender.cwnd(), host.sender.stats().fast_retransmits), (5.0, 1));
}

#[test]
fn reordering_is_tolerated_and_opens_the_reordering_window() {
    let mut host = Host::ten_out(TcpConfig::modern(), None);
    assert_eq!(host.on(20_000, 1, &[(2, 3)]), [11]);
    // 1 arrives after 2: slow start adds a segment; 3 to 11 are outstanding.
    assert_eq!(host.on(22_000, 3, &[]), [12, 13]);
    assert_eq!(host.sender.stats().fast_retransmits, 0);
    // The reordering window now applies to three arrivals beyond 3: 4, 5 and 6 arrive 13.5 ms after they were sent.
    for end in 5..=7 {
        host.on(23_500, 3, &[(4, end)]);
        assert_eq!(host.sender.stats().fast_retransmits, 0);
    }
    // 3 was sent with them at 10 ms: 10 + 13.5 + 2.5.
    assert_eq!(host.sender.next_timer(), Some(us(26_000)));
    assert_eq!(host.expire().1.first(), Some(&3));
}

#[test]
fn segments_sent_after_a_detected_loss_are_not_lost() {
    let mut host = Host::ten_out(TcpConfig::modern(), None);
    host.on(20_000, 1, &[(2, 3)]);
    host.on(20_500, 1, &[(2, 4)]);
    host.on(21_000, 1, &[(2, 5)]);
    // 5 and 6 are lost too, as 7 was sent after them; 11 and 12, sent at 20 and 20.5 ms, are not. The pipe is 12 less 4
    // arrived less 3 lost, and the retransmission of 1: 6, with a window of 5. PRR has sent one for two: 5 next, then
    // 4.
    assert_eq!(host.on(21_500, 1, &[(7, 8), (2, 5)]), []);
    assert_eq!(host.on(22_000, 1, &[(7, 9), (2, 5)]), []);
    assert_eq!(host.on(22_500, 1, &[(7, 10), (2, 5)]), [5]);
    assert_eq!(host.sender.stats().retransmitted, 2);
}

#[test]
fn a_lost_retransmission_is_sent_again_when_something_later_arrives() {
    let mut host = Host::ten_out(TcpConfig::modern(), None);
    host.on(20_000, 1, &[(2, 3)]);
    host.on(20_500, 1, &[(2, 4)]);
    assert_eq!(host.on(21_000, 1, &[(2, 5)]), [1]);
    assert_eq!(host.on(21_500, 1, &[(2, 6)]), []);
    assert_eq!(host.on(22_000, 1, &[(2, 7)]), [13]);
    let window = host.sender.cwnd();
    // The retransmission of 1 at 21 ms is lost; 13, sent at 22 ms, arrives.
    host.on(30_000, 1, &[(2, 12)]);
    assert!(host.sender.stats().retransmitted == 1);
    let sent = host.on(32_000, 1, &[(2, 14)]);
    assert_eq!(sent.first(), Some(&1), "{sent:?}");
    // One reduction per recovery; the retransmission timer is not needed.
    assert_eq!((host.sender.cwnd(), host.sender.stats().timeouts), (window, 0));
}

#[test]
fn after_a_timeout_a_lost_retransmission_does_not_wait_for_the_next() {
    let cfg = TcpConfig { tail_probe: false, ..TcpConfig::modern() };
    let mut host = Host::ten_out(cfg, None);
    // RTO = 10 + 200 ms after the acknowledgement of the SYN. Nothing has arrived: all are lost, and one is sent.
    assert_eq!(host.expire(), (us(220_000), vec![1]));
    assert_eq!((host.sender.cwnd(), host.sender.ssthresh()), (1.0, 5));
    assert_eq!(host.on(230_000, 2, &[]), [2, 3]);
    // 2 is lost again: 3 arrives, sent at the same moment but after it. The reordering window is zero during a repair.
    let sent = host.on(240_000, 2, &[(3, 4)]);
    assert_eq!(sent.first(), Some(&2), "{sent:?}");
    assert_eq!(host.sender.stats().timeouts, 1);
}

#[test]
fn an_echo_from_before_a_timeout_does_not_block_growth() {
    for cfg in [TcpConfig::modern(), TcpConfig::cubic(), TcpConfig::linux(), TcpConfig::linux_reno()] {
        let mut host = Host::ten_out(TcpConfig { tail_probe: false, frto: false, ..cfg }, None);
        let (at, sent) = host.expire();
        assert_eq!(sent, [1]);
        // The receiver echoes a mark from before the timeout until CWR arrives. No retransmission carries CWR (RFC 3168
        // section 6.1.5), and only retransmissions are sent: slow start continues, two for each that arrives.
        let echo = |k: u64| at + Span::from_millis(10 * k);
        assert_eq!(
            host.acknowledge(at.as_nanos() / 1_000 + 10_000, 2, &[], true, echo(0)),
            [2, 3],
            "{:?}",
            cfg.congestion
        );
        assert_eq!(
            host.acknowledge(at.as_nanos() / 1_000 + 20_000, 4, &[], true, echo(1)),
            [4, 5, 6, 7],
            "{:?}",
            cfg.congestion
        );
    }
}

#[test]
fn a_tail_is_probed_with_new_data_after_two_round_trips() {
    let mut host = Host::ten_out(TcpConfig::modern(), None);
    // The window is full: the probe lies beyond it.
    assert_eq!(host.expire(), (us(30_000), vec![11]));
    // The probe arrives 10 ms later; the segments sent at 10 ms are lost after 10 + 10 + 2.5 ms. Nothing is in the
    // network, and PRR sends as much as arrived.
    assert_eq!(host.on(40_000, 1, &[(11, 12)]), [1]);
    assert_eq!(host.sender.stats().timeouts, 0);
}

#[test]
fn the_end_of_a_transfer_is_probed_with_its_last_segment() {
    let mut host = Host::ten_out(TcpConfig::modern(), Some(10));
    assert_eq!(host.on(20_000, 9, &[]), []);
    // 9 and 10 are lost. SRTT is still 10 ms: 20 + 20 ms.
    assert_eq!(host.expire(), (us(40_000), vec![10]));
    // Its arrival reveals the loss of 9: one segment beyond it, sent 30 ms later.
    host.on(50_000, 9, &[(10, 11)]);
    let sent = if host.sender.stats().retransmitted == 2 { vec![9] } else { host.expire().1 };
    assert_eq!((sent, host.sender.stats().timeouts), (vec![9], 0));
    host.on(70_000, 11, &[]);
    assert!(host.sender.is_finished());
}

#[test]
fn a_probe_halves_the_window_only_if_it_repaired_a_loss() {
    for copy in [false, true] {
        let mut host = Host::ten_out(TcpConfig::modern(), Some(10));
        // The application pauses with 10 segments outstanding; 10 or its acknowledgement is lost.
        assert_eq!(host.on(20_000, 10, &[]), []);
        let (at, sent) = host.expire();
        // One segment is outstanding, but the receiver delays no acknowledgement: 20 + 20 ms.
        assert_eq!((at, sent), (us(40_000), vec![10]));
        host.sender.offer(&host.cfg, host.now, Bytes(2 * 1448));
        assert_eq!(host.send(), [11, 12]);
        let before = host.sender.cwnd();
        // The original arrives, then the probe as a duplicate without news; or only the probe.
        host.on(50_000, 11, &[]);
        if copy {
            host.on(50_000, 11, &[]);
        }
        host.on(50_100, 12, &[]);
        assert_eq!(host.sender.cwnd() < before, !copy, "copy: {copy}");
    }
}

#[test]
fn a_mark_reduces_the_window_proportionally() {
    let mut host = Host::ten_out(TcpConfig::modern(), None);
    // 10 segments are outstanding; 1 arrives, and a mark is echoed. The window becomes 5. PRR sends delivered x 5 / 10,
    // rounded up, with CWR on the first new segment.
    host.now = us(20_000);
    let ack = |number| Ack {
        ack: number,
        window: 1000,
        ece: true,
        echo: us(10_000),
        sack: SackBlocks::EMPTY,
        feedback: Feedback::None,
    };
    let mut sent = Vec::new();
    for number in 2..=11 {
        host.sender.on_ack(&host.cfg, host.now, &ack(number));
        sent.push(host.segments());
        assert_eq!(host.sender.cwnd(), 5.0);
    }
    let counts: Vec<usize> = sent.iter().map(Vec::len).collect();
    // Delivered 1 to 10: 1, 1, 2, 2, 3, 3, ... in all; from the tenth on the window of five is full again.
    assert_eq!(counts[..8], [1, 0, 1, 0, 1, 0, 1, 0]);
    assert_eq!(counts.iter().sum::<usize>(), 5);
    assert!(sent[0][0].cwr && sent[2..].iter().flatten().all(|one| !one.cwr));
    assert_eq!(host.sender.stats().ecn_reactions, 1);
}

#[test]
fn a_loss_in_the_window_of_a_mark_causes_no_second_reduction() {
    let mut host = Host::ten_out(TcpConfig::modern(), None);
    let echo = us(10_000);
    host.acknowledge(20_000, 2, &[], true, echo);
    for end in 4..=6 {
        host.acknowledge(20_500, 2, &[(3, end)], true, echo);
    }
    let stats = host.sender.stats();
    assert_eq!((stats.ecn_reactions, stats.fast_retransmits, host.sender.cwnd()), (1, 1, 5.0));
}

#[test]
fn a_spurious_timeout_is_undone() {
    for frto in [true, false] {
        let cfg = TcpConfig { frto, tail_probe: false, ..TcpConfig::modern() };
        let mut host = Host::ten_out(cfg, None);
        assert_eq!(host.expire(), (us(220_000), vec![1]));
        // Nothing was lost, only late: 1 arrives with the timestamp of its first transmission.
        let sent = host.acknowledge(225_000, 2, &[], false, us(10_000));
        if frto {
            // The window is restored, and 2 to 10 are not retransmitted.
            assert_eq!((host.sender.cwnd(), sent), (11.0, vec![11, 12]));
        } else {
            assert_eq!(sent, [2, 3]);
        }
    }
}

#[test]
fn without_timestamps_two_new_segments_reveal_a_spurious_timeout() {
    let cfg = TcpConfig { frto: true, tail_probe: false, timestamps: false, ..TcpConfig::modern() };
    let out = |arrived: u32| {
        let mut host = Host::ten_out(cfg, None);
        assert_eq!(host.expire(), (us(220_000), vec![1]));
        // RFC 5682 step 2b: 1 is acknowledged; new data is sent instead of 2.
        assert_eq!(host.on(230_000, 2, &[]), [11, 12]);
        let sent = if arrived == 2 { host.on(231_000, 3, &[]) } else { host.on(240_000, 2, &[(11, 12)]) };
        (host.sender.cwnd(), sent.first().copied())
    };
    // 2, sent once, arrives: spurious (step 3b). 11 arrives without 2: a loss (step 3a), and 2 is retransmitted.
    let (window, sent) = out(2);
    assert!(window >= 10.0 && sent == Some(13), "{window} {sent:?}");
    let (window, sent) = out(11);
    assert!(window < 10.0 && sent == Some(2), "{window} {sent:?}");
}

#[test]
fn a_sack_of_a_first_transmission_reveals_a_spurious_timeout() {
    let cfg = TcpConfig { frto: true, tail_probe: false, timestamps: false, ..TcpConfig::modern() };
    let mut host = Host::ten_out(cfg, None);
    let before = host.sender.cwnd();
    assert_eq!(host.expire(), (us(220_000), vec![1]));
    assert!(host.sender.cwnd() < before);
    // 5 was sent once, before the timeout: its SACK proves the timeout spurious.
    host.on(230_000, 1, &[(5, 6)]);
    assert!(host.sender.cwnd() >= before, "{}", host.sender.cwnd());
}

#[test]
fn a_linux_window_grows_by_a_whole_segment_a_round_trip() {
    let mut host =
        Host::ten_out(TcpConfig { ecn: false, initial_threshold: Some(10), ..TcpConfig::linux_reno() }, None);
    // Ten single acknowledgements make the window eleven, a whole number: the tenth releases two.
    for number in 2..=10 {
        assert_eq!(host.on(20_000, number, &[]).len(), 1);
    }
    assert_eq!(host.on(20_000, 11, &[]).len(), 2);
    assert_eq!(host.sender.cwnd() as u32, 11);
}

#[test]
fn a_linux_window_is_halved_to_whole_segments() {
    let cfg = TcpConfig { initial_window: 11, ..TcpConfig::linux_reno() };
    let mut host = Host { cfg, sender: Sender::new(&cfg, None), now: Instant::ZERO };
    host.sender.start(&cfg, host.now);
    assert_eq!(host.send(), [0]);
    assert_eq!(host.on(10_000, 1, &[]).len(), 11);
    host.acknowledge(20_000, 2, &[], true, us(10_000));
    // 11 / 2, rounded down; with CUBIC 11 x 0.7 = 7.7, 7.
    assert_eq!((host.sender.cwnd(), host.sender.ssthresh()), (5.0, 5));
    let cfg = TcpConfig { initial_window: 11, ..TcpConfig::linux() };
    let mut host = Host { cfg, sender: Sender::new(&cfg, None), now: Instant::ZERO };
    host.sender.start(&cfg, host.now);
    host.send();
    host.on(10_000, 1, &[]);
    host.acknowledge(20_000, 2, &[], true, us(10_000));
    assert_eq!((host.sender.cwnd(), host.sender.ssthresh()), (7.0, 7));
}

#[test]
fn a_tail_with_a_gap_is_not_probed() {
    // No acknowledgement arrives: the probe is sent, then the timer expires.
    let cfg = TcpConfig { frto: true, tail_probe: true, ..TcpConfig::modern() };
    let mut host = Host::ten_out(cfg, Some(10));
    assert_eq!(host.expire().1, [10]);
    let (at, again) = host.expire();
    assert_eq!(again, [1]);
    // The first 1 was only late, by its timestamp: the timeout is undone, and a tail is outstanding again.
    let later = |millis: u64| at.as_nanos() / 1000 + 1000 * millis;
    assert_eq!(host.acknowledge(later(1), 2, &[], false, us(10_000)), []);
    // Then 10 arrives, first transmission or retransmission: RACK infers nothing about 2 to 9.
    assert_eq!(host.acknowledge(later(2), 2, &[(10, 11)], false, us(10_000)), []);
    // RFC 8985 section 7.2: the timer repairs the losses; 10 has arrived and is not retransmitted.
    assert_eq!(host.expire().1, [2]);
}

#[test]
fn only_a_linux_sender_takes_round_trip_samples_from_sack() {
    // 2 arrives beyond 1, 12 ms after it was sent: SRTT = 10 + (12 - 10) / 8.
    for (segment_times, micros) in [(true, 10_250), (false, 10_000)] {
        let mut host = Host::ten_out(TcpConfig { segment_times, ..TcpConfig::modern() }, None);
        host.on(22_000, 1, &[(2, 3)]);
        assert_eq!(host.sender.smoothed_rtt(&host.cfg), Some(Span::from_micros(micros)));
    }
}

#[test]
fn a_linux_sender_uses_timestamps_only_for_retransmissions() {
    // 2, 3 and 4 arrive after a round trip of 10 ms each: 1 is lost and retransmitted at 20 ms. At 38 ms it is
    // acknowledged, with all up to 4, which had been SACKed. The timestamp is that of the retransmission, which took 18
    // ms: 10 + 8 / 8. The other segments would give 28 ms. If 6 arrives too, sent once at 10 ms, it counts: 10 + (28 -
    // 10) / 8.
    for (runs, micros) in [(&[][..], 11_000), (&[(6, 7)][..], 12_250)] {
        let mut host = Host::ten_out(TcpConfig { segment_times: true, ..TcpConfig::modern() }, None);
        host.on(20_000, 1, &[(2, 3)]);
        host.on(20_000, 1, &[(2, 4)]);
        assert_eq!(host.on(20_000, 1, &[(2, 5)]), [1]);
        host.acknowledge(38_000, 5, runs, false, us(20_000));
        assert_eq!(host.sender.smoothed_rtt(&host.cfg), Some(Span::from_micros(micros)));
    }
}

#[test]
fn a_linux_timer_restarts_when_a_segment_sent_before_the_oldest_is_sacked() {
    // As above: 1 is retransmitted at 20 ms, and the timeout is SRTT + 200 ms.
    for (segment_times, due) in [(true, 232_000), (false, 230_000)] {
        let mut host = Host::ten_out(TcpConfig { segment_times, tail_probe: false, ..TcpConfig::modern() }, None);
        for end in [3, 4, 5] {
            host.on(20_000, 1, &[(2, end)]);
        }
        assert_eq!(host.sender.next_timer(), Some(us(230_000)));
        // 5 was sent at 10 ms and took 12: SRTT is 10.25, and the timeout counts from 22 ms.
        host.on(22_000, 1, &[(2, 6)]);
        assert_eq!(host.sender.next_timer(), Some(us(due + if segment_times { 250 } else { 0 })));
    }
}

impl Host {
    /// Segments with PSH of the ten that follow the acknowledgement of the SYN, `micros` after the start.
    fn pushed_of_ten(micros: u64, cfg: TcpConfig) -> (Host, Vec<u32>) {
        let mut host = Host { cfg, sender: Sender::new(&cfg, None), now: Instant::ZERO };
        host.sender.start(&cfg, host.now);
        assert_eq!(host.send(), [0]);
        let pushed = host.pushed(micros, 1, &[], 10);
        (host, pushed)
    }

    /// Segments with PSH of the `count` that this acknowledgement releases.
    fn pushed(&mut self, micros: u64, number: u32, runs: &[(u32, u32)], count: usize) -> Vec<u32> {
        self.now = us(micros);
        let mut sack = SackBlocks::EMPTY;
        assert!(runs.iter().all(|run| sack.push(run.0, run.1)));
        let ack = Ack { ack: number, window: 1000, ece: false, echo: Instant::ZERO, sack, feedback: Feedback::None };
        self.sender.on_ack(&self.cfg, self.now, &ack);
        let sent = self.segments();
        assert_eq!(sent.len(), count, "{sent:?}");
        sent.iter().filter(|segment| segment.push).map(|segment| segment.seq).collect()
    }
}

#[test]
fn the_last_segment_of_a_linux_super_packet_carries_psh() {
    let cfg = TcpConfig { initial_threshold: Some(10), write: 0, ecn: false, ..TcpConfig::linux_reno() };
    // Round trip of 10 ms: a window of 10 paced at 1.2 x 10 / 10 ms is 1.2 segments/ms, so two per super-packet.
    let (mut host, pushed) = Host::pushed_of_ten(10_000, cfg);
    assert_eq!(pushed, [2, 4, 6, 8, 10]);
    // Two arrivals release two; one releases one, without PSH; three release two and one.
    assert_eq!(host.pushed(20_000, 3, &[], 2), [12]);
    assert_eq!(host.pushed(20_001, 4, &[], 1), []);
    assert_eq!(host.pushed(20_002, 7, &[], 3), [15]);
    // 7 is lost: segments released by later arrivals, and 7 itself, are sent singly.
    for end in 9..12 {
        assert_eq!(host.pushed(20_100 + u64::from(end), 7, &[(8, end)], 1), []);
    }
    // Segments released one by one carry no PSH either.
    let mut host = Host::ten_out(cfg, None);
    host.now = us(20_000);
    let ack =
        Ack { ack: 3, window: 1000, ece: false, echo: us(10_000), sack: SackBlocks::EMPTY, feedback: Feedback::None };
    host.sender.on_ack(&host.cfg, host.now, &ack);
    for seq in [11, 12] {
        let segment = host.sender.poll_transmit(&host.cfg, host.now).unwrap();
        assert_eq!((segment.seq, segment.push), (seq, false));
        host.now += Span::from_micros(10);
    }
    // Without offload only the end of a write carries PSH.
    let (_, pushed) = Host::pushed_of_ten(10_000, TcpConfig { tso: false, write: 4, ..cfg });
    assert_eq!(pushed, [4, 8]);
}

#[test]
fn linux_super_packets_are_larger_at_short_round_trips_and_high_rates() {
    let cfg = TcpConfig { write: 0, ecn: false, ..TcpConfig::linux_reno() };
    // 1000 us / 512 = 1: half of 64 KiB, 22 segments of 1448 B, and 2 x 10 / 1 ms = 20 000 segments/s / 1024 = 19.
    assert_eq!(Host::pushed_of_ten(1_000, cfg).1, [10]);
    // 2200 us / 512 = 4: 4096 B, 2 segments, and 9091 / 1024 = 8.
    assert_eq!(Host::pushed_of_ten(2_200, cfg).1, [10]);
    // 4400 us / 512 = 8: 256 B; 4545 / 1024 = 4.
    assert_eq!(Host::pushed_of_ten(4_400, cfg).1, [4, 8, 10]);
}
