//! Recovery of a SACK sender that counts duplicates (RFC 6675), on traces calculated by hand.
//!
//! All begin alike: segments 1 to 10 are sent, 1 is lost. 2 and 3 release 11 and 12 (limited transmit); 4 is the third
//! duplicate (RFC 6675). With 1 to 12 outstanding the window of 10 becomes 5, and 13 is the next new segment.

use aqumen_transport::tcp::{
    Ack, Congestion, Feedback, LossDetection, Quirks, Reduction, SackBlocks, Sender, TcpConfig, Variant,
};
use aqumen_units::{Instant, Span};

const fn reno() -> TcpConfig {
    TcpConfig {
        ecn: false,
        delayed_ack: None,
        variant: Variant::Sack,
        loss_detection: LossDetection::Rfc6675,
        reduction: Reduction::AtOnce,
        ..TcpConfig::modern()
    }
}

struct Host {
    cfg: TcpConfig,
    sender: Sender,
    now: Instant,
}

impl Host {
    /// Segments 1 to 10 are outstanding.
    fn ten_out(cfg: TcpConfig) -> Host {
        cfg.validate().unwrap();
        let mut host = Host { cfg, sender: Sender::new(&cfg, None), now: Instant::ZERO };
        host.sender.start(&cfg, host.now);
        assert_eq!(host.send(), [0]);
        assert_eq!(host.on(1, &[]), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        host
    }

    /// A sender after the arrival of 2, 3 and 4, and the segments sent for 4.
    fn one_lost(cfg: TcpConfig) -> (Host, Vec<u32>) {
        let mut host = Host::ten_out(cfg);
        assert_eq!(host.on(1, &[(2, 3)]), [11]);
        assert_eq!(host.on(1, &[(2, 4)]), [12]);
        let sent = host.on(1, &[(2, 5)]);
        assert_eq!((host.sender.cwnd(), host.sender.ssthresh()), (5.0, 5));
        (host, sent)
    }

    fn send(&mut self) -> Vec<u32> {
        let mut sent = Vec::new();
        while let Some(one) = self.sender.poll_immediate(&self.cfg, self.now) {
            sent.push(one.seq);
        }
        while let Some(one) = self.sender.poll_transmit(&self.cfg, self.now) {
            sent.push(one.seq);
        }
        sent
    }

    /// Acknowledges everything before `number` and the SACK blocks, 10 ms later.
    fn on(&mut self, number: u32, runs: &[(u32, u32)]) -> Vec<u32> {
        self.now += Span::from_millis(10);
        let mut sack = SackBlocks::EMPTY;
        for run in runs {
            assert!(sack.push(run.0, run.1));
        }
        let ack = Ack { ack: number, window: 1000, ece: false, echo: Instant::ZERO, sack, feedback: Feedback::None };
        self.sender.on_ack(&self.cfg, self.now, &ack);
        self.send()
    }

    /// Segments sent when the timer expires.
    fn expire(&mut self) -> Vec<u32> {
        self.now = self.sender.next_timer().unwrap();
        self.sender.on_timer(&self.cfg, self.now);
        self.send()
    }

    /// Acknowledges everything before `number`, with ECE, 10 ms later.
    fn on_echo(&mut self, number: u32) -> Vec<u32> {
        self.now += Span::from_millis(10);
        let (sack, feedback) = (SackBlocks::EMPTY, Feedback::None);
        let ack = Ack { ack: number, window: 1000, ece: true, echo: Instant::ZERO, sack, feedback };
        self.sender.on_ack(&self.cfg, self.now, &ack);
        self.send()
    }

    /// Segments sent for each of `first..end` as it arrives, where all from 2 on arrived before.
    fn arrive(&mut self, first: u32, end: u32) -> Vec<Vec<u32>> {
        (first..end).map(|seq| self.on(1, &[(2, seq + 1)])).collect()
    }
}

#[test]
fn a_reduction_at_once_stops_the_sender_until_the_pipe_has_shrunk() {
    let (mut host, sent) = Host::one_lost(reno());
    // 1 (retransmitted) and 5 to 12 are outstanding: 9. 5 to 8 bring it to 5, the window; each further one releases
    // one.
    assert_eq!(sent, [1]);
    let expected: [&[u32]; 8] = [&[], &[], &[], &[], &[13], &[14], &[15], &[16]];
    assert_eq!(host.arrive(5, 13), expected);
    // 1 fills the gap: 13 to 16 are outstanding.
    assert_eq!(host.on(13, &[]), [17]);
}

#[test]
fn a_proportional_reduction_sends_half_of_the_arrivals() {
    let (mut host, sent) = Host::one_lost(TcpConfig { reduction: Reduction::Proportional, ..reno() });
    // RecoverFS: 1 to 12 less 2 and 3, which arrived earlier: 10. PRR sends delivered x 5 / 10, rounded up: 1 for 4,
    // and for 5, 6, 7, 8, 9 in all 1, 2, 2, 3, 3.
    assert_eq!(sent, [1]);
    let expected: [&[u32]; 5] = [&[], &[13], &[], &[14], &[]];
    assert_eq!(host.arrive(5, 10), expected);
    // 10: the pipe (1, 11 to 14) has shrunk to 5. Now it stays at the window: 11 and 12 release one each.
    let expected: [&[u32]; 3] = [&[], &[15], &[16]];
    assert_eq!(host.arrive(10, 13), expected);
    assert_eq!(host.on(13, &[]), [17]);
    assert_eq!(host.sender.cwnd(), 5.0);
}

#[test]
fn slow_start_in_recovery_requires_a_safe_acknowledgement() {
    // 1 to 6 are lost: 7, 8 and 9 arrive; 11 and 12 were sent for the first two. 9: six are lost at once, the pipe is 1
    // (retransmitted) and 10 to 12, four, and the window 5. At least one is sent: 1.
    let (mut host, safe) = (Host::ten_out(TcpConfig { reduction: Reduction::Proportional, ..reno() }), 1);
    assert_eq!(host.on(1, &[(7, 8)]), [11]);
    assert_eq!(host.on(1, &[(7, 9)]), [12]);
    assert_eq!(host.on(1, &[(7, 10)]), [1]);
    // 10: the pipe is 3. Delivered 2, sent 1: one is sent (conservation), though the window has room for two.
    assert_eq!(host.on(1, &[(7, 11)]), [2]);
    // 1: new data is acknowledged without a new loss: one for it and one more.
    assert_eq!(host.on(2, &[(7, 11)]).len(), 1 + safe);
}

#[test]
fn an_acknowledgement_that_shows_a_new_loss_is_not_safe() {
    // 1 to 6 are lost, as above; 1 and 2 are retransmitted, and 11 and 12 are outstanding.
    let begin = |lost_retransmissions| {
        let cfg = TcpConfig { reduction: Reduction::Proportional, lost_retransmissions, ..reno() };
        let mut host = Host::ten_out(cfg);
        let left = [8, 9, 10, 11].map(|end| host.on(1, &[(7, end)]));
        assert_eq!(left, [[11], [12], [1], [2]]);
        host
    };
    // 1 and 11 arrive without a new loss, as 8 has arrived. Two for two, and one more.
    assert_eq!(begin(false).on(2, &[(7, 12)]), [3, 4, 5]);
    // The repair continues: 1 arrives (two for it), 11, 12, 2 and 3 (one for each).
    let mut host = begin(true);
    let left = [host.on(2, &[(7, 11)]), host.on(2, &[(7, 12)]), host.on(2, &[(7, 13)])];
    assert_eq!(left.concat(), [3, 4, 5, 6]);
    let left = [host.on(3, &[(7, 13)]), host.on(4, &[(7, 13)])];
    assert_eq!(left, [[13], [14]]);
    // 4, 6 and 13 arrive together: 5, retransmitted before 13, is lost again. Three for three, though the window has
    // room for four.
    assert_eq!(host.on(5, &[(6, 14)]), [5, 15, 16]);
    // 1 to 6 and 9 are lost, the first six detected by 7, 8 and 10. Then 1, 11 and 12 arrive together, and 9 is lost:
    // three for three, though the window has room for five.
    let mut host = Host::ten_out(TcpConfig { reduction: Reduction::Proportional, ..reno() });
    let left = [host.on(1, &[(7, 8)]), host.on(1, &[(7, 9)]), host.on(1, &[(10, 11), (7, 9)])];
    assert_eq!(left, [[11], [12], [1]]);
    assert_eq!(host.on(2, &[(10, 13), (7, 9)]), [2, 3, 4]);
}

#[test]
fn rate_halving_sends_a_segment_for_every_other_arrival() {
    let (mut host, sent) = Host::one_lost(TcpConfig { reduction: Reduction::RateHalving, ..reno() });
    // The pipe is 8 (5 to 12), its bound 9: 1 is sent, and the bound is 8. With 5 the pipe is 8, with 6 it is 7.
    assert_eq!(sent, [1]);
    let expected: [&[u32]; 8] = [&[], &[13], &[], &[14], &[], &[15], &[], &[16]];
    assert_eq!(host.arrive(5, 13), expected);
    assert_eq!(host.on(13, &[]), [17]);
}

#[test]
fn with_a_send_overhead_rate_halving_conserves_the_pipe_like_ns2() {
    let overhead = Span::from_micros(200);
    let cfg = TcpConfig { reduction: Reduction::RateHalving, send_overhead: overhead, ..reno() };
    let (mut host, sent) = Host::one_lost(cfg);
    assert_eq!(sent, [1]);
    let expected: [&[u32]; 8] = [&[13], &[14], &[15], &[16], &[17], &[18], &[19], &[20]];
    assert_eq!(host.arrive(5, 13), expected);
    // 13 to 20 are outstanding, eight: silence until fewer than five are.
    let left: Vec<_> = (13..18).map(|seq| host.on(seq + 1, &[])).collect();
    let expected: [&[u32]; 5] = [&[], &[], &[], &[21], &[22]];
    assert_eq!(left[..3], expected[..3]);
    assert!(left[3].len() + left[4].len() >= 2);
}

#[test]
fn a_lost_retransmission_is_detected_by_later_transmissions() {
    for (lost_retransmissions, at_14) in [(true, vec![1, 17]), (false, vec![17])] {
        let (mut host, sent) = Host::one_lost(TcpConfig { lost_retransmissions, ..reno() });
        assert_eq!(sent, [1]);
        assert_eq!(host.arrive(5, 13).concat(), [13, 14, 15, 16]);
        // The retransmission of 1 was sent before 13, which arrives: 1 is lost again, and the pipe is 3 (14 to 16).
        assert_eq!(host.on(1, &[(2, 14)]), at_14);
        assert_eq!(host.sender.stats().timeouts, 0);
    }
}

#[test]
fn the_first_segment_sent_in_a_recovery_may_start_the_next() {
    let (mut host, _) = Host::one_lost(reno());
    assert_eq!(host.arrive(5, 13).concat(), [13, 14, 15, 16]);
    // 1 arrives: all data outstanding at the loss is acknowledged. 13 is lost; 14, 15 and 16 arrive.
    assert_eq!(host.on(13, &[]), [17]);
    assert_eq!(host.on(13, &[(14, 15)]), [18]);
    assert_eq!(host.on(13, &[(14, 16)]), [19]);
    assert_eq!(host.on(13, &[(14, 17)]), [13]);
    assert_eq!(host.sender.stats().fast_retransmits, 2);
}

#[test]
fn duplicates_without_sack_blocks_report_copies() {
    let mut host = Host::ten_out(reno());
    for _ in 0..5 {
        assert_eq!(host.on(1, &[]), []);
    }
    assert_eq!((host.sender.cwnd(), host.sender.stats().fast_retransmits), (10.0, 0));
    // For a NewReno sender duplicates are the only signal.
    let mut host = Host::ten_out(TcpConfig { variant: Variant::NewReno, ..reno() });
    for _ in 0..3 {
        host.on(1, &[]);
    }
    assert_eq!(host.sender.stats().fast_retransmits, 1);
}

#[test]
fn forward_acknowledgements_count_gaps_too() {
    // 1 to 3 are lost. 4 and 5 have arrived: two, but 1 is four before 5. Then 6 reveals the loss of 2.
    for (loss_detection, at_5, at_6) in [(LossDetection::Fack, vec![1], 1), (LossDetection::Rfc6675, vec![12], 1)] {
        let mut host = Host::ten_out(TcpConfig { loss_detection, ..reno() });
        assert_eq!(host.on(1, &[(4, 5)]), [11]);
        assert_eq!(host.on(1, &[(4, 6)]), at_5);
        host.on(1, &[(4, 7)]);
        assert_eq!(host.sender.stats().fast_retransmits, at_6);
    }
}

#[test]
fn the_timer_may_start_anew_with_any_acknowledgement() {
    for timer_on_any_ack in [false, true] {
        let mut host = Host::ten_out(TcpConfig { quirks: Quirks { timer_on_any_ack, ..reno().quirks }, ..reno() });
        let before = host.sender.next_timer().unwrap();
        host.on(1, &[(2, 3)]);
        let moved = host.sender.next_timer().unwrap().saturating_since(before);
        assert_eq!(moved, if timer_on_any_ack { Span::from_millis(10) } else { Span::ZERO });
    }
}

#[test]
fn an_echo_from_before_a_timeout_does_not_block_growth() {
    for cfg in [TcpConfig { ecn: true, ..reno() }, TcpConfig { congestion: Congestion::Cubic, ecn: true, ..reno() }] {
        let mut host = Host::ten_out(cfg);
        host.now = host.sender.next_timer().unwrap();
        host.sender.on_timer(&cfg, host.now);
        assert_eq!(host.send(), [1]);
        // A mark from before the timeout is echoed until CWR arrives, on new data only: none is sent before 11.
        assert_eq!(host.on_echo(2), [2, 3], "{:?}", cfg.congestion);
        assert_eq!(host.on_echo(4), [4, 5, 6, 7], "{:?}", cfg.congestion);
    }
}

#[test]
fn a_second_timeout_in_a_row_does_not_put_off_the_next_recovery() {
    // 1 to 12 are outstanding; 1 to 4 are lost, and 5 to 12 arrive: 7 starts a recovery, and the retransmission of 1 is
    // lost.
    let mut host = Host::ten_out(reno());
    for end in 6..=11 {
        host.on(1, &[(5, end)]);
    }
    assert_eq!(host.expire(), [1]);
    // 1 arrives, and 2 and 3 are sent; 2 is lost, 3 arrives, and 4 is sent and arrives. New data fills the window.
    assert_eq!(host.on(2, &[(5, 13)]), [2, 3]);
    assert_eq!(host.on(2, &[(3, 4), (5, 13)]), [4]);
    assert_eq!(host.on(2, &[(3, 13)]), [13]);
    assert_eq!(host.on(2, &[(3, 14)]), [14]);
    // 14 is lost. 2 and 14 are retransmitted after the second timeout; 14 is lost again, later segments arrive.
    assert_eq!(host.expire(), [2]);
    assert_eq!(host.on(14, &[])[..2], [14, 15]);
    assert_eq!((host.sender.stats().timeouts, host.sender.stats().fast_retransmits), (2, 1));
    // All data outstanding at the first timeout is acknowledged: three duplicates start a recovery.
    let left = [16, 17, 18].map(|end| host.on(14, &[(15, end)]));
    assert_eq!(left[2][0], 14);
    assert_eq!((host.sender.stats().timeouts, host.sender.stats().fast_retransmits), (2, 2));
}
