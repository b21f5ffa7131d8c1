//! Tests of CoDel's states, law and Linux arithmetic against values computed by hand.

use super::*;

const ECT: Packet = Packet {
    bytes: 1000,
    ecn: Ecn::Ect0,
    class: 0,
    segments: 1,
    flow_hash: 0,
    source_hash: 0,
    destination_hash: 0,
    syn: false,
    ack: None,
};
const NOT_ECT: Packet = Packet { ecn: Ecn::NotEct, ..ECT };
const DROP: Verdict = Verdict::Drop(DropReason::Early);

/// One queue with the default parameters: target 5 ms, interval 100 ms, MTU 1500 B.
#[derive(Default)]
struct Queue(CodelState);

impl Queue {
    /// Offers a head that waited 10 ms, with 10 kB behind it.
    fn high(&mut self, at_ms: f64, packet: &Packet) -> Verdict {
        self.head(at_ms, 10, 10_000, packet)
    }

    /// Offers a head that waited 1 ms.
    fn low(&mut self, at_ms: f64, packet: &Packet) -> Verdict {
        self.head(at_ms, 1, 10_000, packet)
    }

    fn head(&mut self, at_ms: f64, sojourn_ms: u64, left: u64, packet: &Packet) -> Verdict {
        let now = Instant::from_nanos((at_ms * 1e6) as u64);
        self.0.on_head(&CodelParams::default(), packet, Span::from_millis(sojourn_ms), left, now)
    }
}

#[test]
fn signals_come_at_interval_over_the_root_of_their_number() {
    let law = CodelLaw::new(Span::from_millis(100));
    // 100 / sqrt(4) = 50, 100 / sqrt(2) = 70.710678.
    assert_eq!(law.gap(1), Span::from_millis(100));
    assert_eq!(law.gap(2).as_nanos(), 70_710_678);
    assert_eq!(law.gap(4), Span::from_millis(50));
}

#[test]
fn the_first_signal_comes_after_a_whole_interval_above_the_target() {
    let mut queue = Queue::default();
    // Above the target from 0 ms on: a signal is due from 100 ms on.
    assert_eq!(queue.high(0.0, &ECT), Verdict::Pass);
    assert_eq!(queue.high(99.9, &ECT), Verdict::Pass);
    assert_eq!(queue.high(100.0, &ECT), Verdict::Mark);
}

#[test]
fn one_packet_below_the_target_restarts_the_interval() {
    let mut queue = Queue::default();
    queue.high(0.0, &ECT);
    assert_eq!(queue.low(50.0, &ECT), Verdict::Pass);
    queue.high(60.0, &ECT);
    assert_eq!(queue.high(159.0, &ECT), Verdict::Pass);
    assert_eq!(queue.high(160.0, &ECT), Verdict::Mark);
}

#[test]
fn a_sojourn_time_at_the_target_counts_as_above_and_one_mtu_left_as_below() {
    let mut queue = Queue::default();
    queue.head(0.0, 5, 1501, &ECT);
    assert_eq!(queue.head(100.0, 5, 1501, &ECT), Verdict::Mark);
    let mut queue = Queue::default();
    queue.head(0.0, 50, 1500, &ECT);
    assert_eq!(queue.head(100.0, 50, 1500, &ECT), Verdict::Pass);
}

#[test]
fn marks_become_more_frequent_in_a_standing_queue() {
    let mut queue = Queue::default();
    queue.high(0.0, &ECT);
    assert_eq!(queue.high(100.0, &ECT), Verdict::Mark);
    // count 1: next at 100 + 100 = 200; count 2: 200 + 70.71 = 270.71; count 3: 270.71 + 57.74 = 328.45.
    let mut marks = std::vec::Vec::new();
    for ms in 101..400 {
        if queue.high(f64::from(ms), &ECT) == Verdict::Mark {
            marks.push(ms);
        }
    }
    // At whole milliseconds; 328.45 + 50 = 378.45.
    assert_eq!(marks, [200, 271, 329, 379]);
}

#[test]
fn a_late_mark_delays_those_after_it_only_if_the_schedule_counts_from_now() {
    // A packet each 30 ms. The first mark at 120; the second, due at 220, comes at 240. The third is due at
    // 220 + 70.71 = 290.71 or at 240 + 70.71 = 310.71: it comes at 300 or 330. The fourth at 290.71 + 57.74
    // or 330 + 57.74: at 360 or 390.
    let marks = |from_now| -> std::vec::Vec<u64> {
        let (params, mut state) = (CodelParams { from_now, ..CodelParams::default() }, CodelState::default());
        let mut head =
            |ms| state.on_head(&params, &ECT, Span::from_millis(10), 10_000, Instant::ZERO + Span::from_millis(ms));
        (0..14).map(|k| 30 * k).filter(|&ms| head(ms) == Verdict::Mark).collect()
    };
    assert_eq!(marks(false), [120, 240, 300, 360]);
    assert_eq!(marks(true), [120, 240, 330, 390]);
}

#[test]
fn after_the_first_drop_the_next_packet_passes() {
    let mut queue = Queue::default();
    queue.high(0.0, &NOT_ECT);
    assert_eq!(queue.high(100.0, &NOT_ECT), DROP);
    assert_eq!(queue.high(100.0, &NOT_ECT), Verdict::Pass);
    // Even if it is below the target, signalling continues until the packet after it.
    let mut queue = Queue::default();
    queue.high(0.0, &NOT_ECT);
    assert_eq!(queue.high(100.0, &NOT_ECT), DROP);
    assert_eq!(queue.low(100.0, &NOT_ECT), Verdict::Pass);
    assert!(queue.0.is_signalling());
    queue.low(101.0, &NOT_ECT);
    assert!(!queue.0.is_signalling());
}

#[test]
fn overdue_drops_follow_at_once() {
    let mut queue = Queue::default();
    queue.high(0.0, &NOT_ECT);
    queue.high(100.0, &NOT_ECT);
    queue.high(100.0, &NOT_ECT);
    // Due at 200, 270.7 and 328.4. At 280 two are late, and the third is not.
    assert_eq!(queue.high(280.0, &NOT_ECT), DROP);
    assert_eq!(queue.high(280.0, &NOT_ECT), DROP);
    assert_eq!(queue.high(280.0, &NOT_ECT), Verdict::Pass);
    assert_eq!(queue.high(328.0, &NOT_ECT), Verdict::Pass);
    assert_eq!(queue.high(329.0, &NOT_ECT), DROP);
}

#[test]
fn a_low_packet_after_a_drop_ends_signalling_and_keeps_the_schedule() {
    let mut queue = Queue::default();
    queue.high(0.0, &NOT_ECT);
    queue.high(100.0, &NOT_ECT);
    queue.high(100.0, &NOT_ECT);
    assert_eq!(queue.high(200.0, &NOT_ECT), DROP);
    assert_eq!(queue.low(200.0, &NOT_ECT), Verdict::Pass);
    assert!(!queue.0.is_signalling());
    assert_eq!(queue.0.next, Instant::ZERO + Span::from_millis(200));
    assert_eq!(queue.0.count, 2);
}

#[test]
fn a_queue_that_empties_after_a_drop_is_below_its_target() {
    let mut queue = Queue::default();
    queue.high(0.0, &NOT_ECT);
    queue.high(100.0, &NOT_ECT);
    queue.high(100.0, &NOT_ECT);
    assert_eq!(queue.high(200.0, &NOT_ECT), DROP);
    queue.0.on_empty();
    assert!(!queue.0.is_signalling());
    // The interval restarts.
    assert_eq!(queue.high(210.0, &NOT_ECT), Verdict::Pass);
    assert_eq!(queue.high(309.0, &NOT_ECT), Verdict::Pass);
    assert_eq!(queue.high(310.0, &NOT_ECT), DROP);
    // An empty queue right after the first drop does not end signalling.
    queue.0.on_empty();
    assert!(queue.0.is_signalling());
}

/// Signals at 100, 200, 270.7, 328.4, 378.4 (count 5), and low at 390: the last was due at
/// 378.4 + 100/sqrt(5) = 423.2.
fn after_five_signals() -> Queue {
    let mut queue = Queue::default();
    queue.high(0.0, &ECT);
    for ms in 100..390 {
        queue.high(f64::from(ms), &ECT);
    }
    assert_eq!(queue.0.count, 5);
    queue.low(390.0, &ECT);
    queue
}

#[test]
fn signalling_soon_resumes_with_the_previous_count() {
    // count - first count = 5 - 1 = 4: gap 100 / sqrt(4) = 50 ms.
    let mut queue = after_five_signals();
    queue.high(400.0, &ECT);
    assert_eq!(queue.high(500.0, &ECT), Verdict::Mark);
    assert_eq!(queue.0.count, 4);
    assert_eq!(queue.high(549.0, &ECT), Verdict::Pass);
    assert_eq!(queue.high(550.0, &ECT), Verdict::Mark);
}

#[test]
fn after_sixteen_intervals_the_count_is_forgotten() {
    // 423.2 + 1600 = 2023.2.
    let mut queue = after_five_signals();
    queue.high(1900.0, &ECT);
    assert_eq!(queue.high(2024.0, &ECT), Verdict::Mark);
    assert_eq!(queue.0.count, 1);
    let mut queue = after_five_signals();
    queue.high(1900.0, &ECT);
    assert_eq!(queue.high(2023.0, &ECT), Verdict::Mark);
    assert_eq!(queue.0.count, 4);
}

/// Linux's root after each of these counts, from a count of one.
fn newton(counts: &[u32]) -> f64 {
    let mut state = CodelState { inverse_root: u16::MAX, ..CodelState::default() };
    for &count in counts {
        state.count = count;
        state.step_root();
    }
    f64::from(state.inverse_root) / 65_536.0
}

#[test]
fn newton_steps_follow_the_formula() {
    // x (3 - n x^2) / 2: from 1 at n = 2 (3 - 2) / 2 = 0.5; at n = 3 0.5 (3 - 0.75) / 2 = 0.5625; at n = 4
    // 0.5625 (3 - 4 * 0.31640625) / 2 = 0.487793. 16 bits.
    for (counts, root) in [(&[2][..], 0.5), (&[2, 3], 0.5625), (&[2, 3, 4], 0.487_793)] {
        assert!((newton(counts) - root).abs() < 1e-4, "{counts:?}: {}", newton(counts));
    }
    // A count that rises by one is followed within 3 % from 3 on.
    for n in 3..200 {
        let counts: std::vec::Vec<u32> = (2..=n).collect();
        let exact = 1.0 / libm::sqrt(f64::from(n));
        assert!((newton(&counts) / exact - 1.0).abs() < 0.03, "{n}: {} {exact}", newton(&counts));
    }
    // One that falls from 100 to 2: 0.1 (3 - 0.02) / 2 = 0.149 instead of 0.707.
    let mut counts: std::vec::Vec<u32> = (2..=100).collect();
    counts.push(2);
    assert!((newton(&counts) - 0.149).abs() < 1e-3, "{}", newton(&counts));
}

#[test]
fn with_newton_steps_signalling_resumes_with_too_short_gaps() {
    // Five signals as in `after_five_signals`: roots 1, 0.5, 0.5625, 0.4878, 0.4414 (0.4878 (3 - 5 * 0.23794)
    // / 2); so they come at 100, 200, 250, 306.25, 355.03 ms, or with the next packet after that, one each 0.1 ms:
    // the interval must be over. Again from 400 on: the first at 500 with a count
    // of 5 - 1 = 4, for which the step from the root of 5 signals gives 0.4414 (3 - 4 * 0.19484) / 2 = 0.4901:
    // the next at 549.01, not 550.
    let (params, mut queue) =
        (CodelParams { arithmetic: Arithmetic::Linux, ..CodelParams::default() }, CodelState::default());
    let mut head = |us: u64, sojourn_ms| {
        let now = Instant::ZERO + Span::from_micros(us);
        queue.on_head(&params, &ECT, Span::from_millis(sojourn_ms), 10_000, now)
    };
    let marks: std::vec::Vec<u64> =
        (0..3_900u64).map(|k| 100 * k).filter(|&us| head(us, 10) == Verdict::Mark).collect();
    assert_eq!(marks, [100_100, 200_100, 250_100, 306_400, 355_200]);
    head(390_000, 1);
    let again: std::vec::Vec<u64> =
        (4_000..5_500u64).map(|k| 100 * k).filter(|&us| head(us, 10) == Verdict::Mark).collect();
    assert_eq!(again, [500_100, 549_200]);
}

#[test]
fn packets_dropped_by_the_discipline_count_as_signals() {
    let mut queue = after_five_signals();
    queue.0.on_buffer_stolen(7);
    assert_eq!(queue.0.count, 12);
}

#[test]
fn ce_threshold_applies_to_the_selected_codepoint() {
    let head = |selector, ecn| {
        let params = CodelParams {
            ce_threshold: Some(Span::from_millis(1)),
            ce_threshold_selector: selector,
            ..CodelParams::default()
        };
        let packet = Packet { ecn, ..ECT };
        CodelState::default().on_head(&params, &packet, Span::from_millis(2), 10_000, Instant::ZERO)
    };
    assert_eq!([head(None, Ecn::Ect0), head(None, Ecn::Ect1)], [Verdict::Mark, Verdict::Mark]);
    assert_eq!([head(Some(Ecn::Ect1), Ecn::Ect0), head(Some(Ecn::Ect1), Ecn::Ect1)], [Verdict::Pass, Verdict::Mark]);
}

#[test]
fn a_packet_beyond_the_limit_is_dropped() {
    let mut codel = Codel::new(CodelParams { limit: Some(2), ..CodelParams::default() }).unwrap();
    let totals = Totals::default();
    let mut arrive = |packets| {
        let queue = crate::QueueView { packets, bytes: 0, limit: crate::Limit::packets(100), totals: &totals };
        codel.on_arrival(&ECT, &mut Cx { now: Instant::ZERO, queue, rng: &mut crate::multi::testing::Fixed(0.5) })
    };
    assert_eq!([arrive(1), arrive(2)], [Verdict::Pass, Verdict::Drop(DropReason::Overflow)]);
}

#[test]
fn above_the_ce_threshold_every_ecn_capable_packet_is_marked() {
    let params = CodelParams { ce_threshold: Some(Span::from_millis(1)), ecn: false, ..CodelParams::default() };
    let mut state = CodelState::default();
    let mut head = |ms, packet| state.on_head(&params, packet, Span::from_millis(ms), 10_000, Instant::ZERO);
    assert_eq!(head(2, &ECT), Verdict::Mark);
    assert_eq!(head(1, &ECT), Verdict::Pass);
    assert_eq!(head(2, &NOT_ECT), Verdict::Pass);
}

#[test]
fn a_target_or_interval_of_zero_is_an_error() {
    let with = |target, interval| Codel::new(CodelParams { target, interval, ..CodelParams::default() });
    assert_eq!(with(Span::ZERO, Span::from_millis(1)).unwrap_err().param, "target");
    assert_eq!(with(Span::from_millis(1), Span::ZERO).unwrap_err().param, "interval");
}
