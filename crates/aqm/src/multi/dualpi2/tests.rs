//! Tests of DualPI2's coupling, marking and scheduler against values computed by hand.

use super::*;
use crate::multi::testing::{Fixed, Log};
use crate::testing::Lehmer;
use aqumen_units::Ecn;
use std::vec::Vec;

fn packet(ecn: Ecn) -> Packet {
    Packet { bytes: 1000, ecn, segments: 1, ..Packet::default() }
}

fn at_us(us: u64) -> Instant {
    Instant::from_nanos(us * 1000)
}

fn arrive(dual: &mut DualPi2, log: &mut Log, us: u64, packets: &[(Handle, Ecn)]) {
    for &(handle, ecn) in packets {
        dual.enqueue(handle, &packet(ecn), at_us(us), &mut Fixed(0.5), log);
    }
}

fn sent(dual: &mut DualPi2, log: &mut Log, us: u64) -> Vec<Handle> {
    core::iter::from_fn(|| dual.dequeue(at_us(us), &mut Fixed(0.5), log)).collect()
}

fn dual(params: DualPi2Params) -> (DualPi2, Log) {
    (DualPi2::new(params, Limit::packets(100)), Log::default())
}

#[test]
fn ect1_and_ce_wait_in_the_l_queue_and_go_first() {
    let (mut dual, mut log) = dual(DualPi2Params::default());
    arrive(&mut dual, &mut log, 0, &[(0, Ecn::NotEct), (1, Ecn::Ect0), (2, Ecn::Ect1), (3, Ecn::Ce)]);
    assert_eq!((dual.store.queue(L4S).packets, dual.store.queue(CLASSIC).packets), (2, 2));
    assert_eq!(sent(&mut dual, &mut log, 0), [2, 3, 0, 1]);
}

#[test]
fn a_packet_that_does_not_fit_is_refused() {
    let mut dual = DualPi2::new(DualPi2Params::default(), Limit::packets(1));
    let mut log = Log::default();
    arrive(&mut dual, &mut log, 0, &[(0, Ecn::Ect0), (1, Ecn::Ect1)]);
    assert_eq!((log.dropped, dual.totals().overflow_dropped), ([1].to_vec(), 1));
}

#[test]
fn the_controller_follows_the_longer_delay() {
    let (mut dual, mut log) = dual(DualPi2Params::default());
    arrive(&mut dual, &mut log, 1_000, &[(0, Ecn::Ect0)]);
    // After 15 ms: p' = 0.16 (0.015 - 0.015) + 3.2 (0.015 - 0) = 0.048; p_C = 0.002304, p_CL = 0.096.
    dual.on_timer(at_us(16_000), &mut Fixed(0.5));
    assert!((dual.base - 0.048).abs() < 1e-12);
    assert!((dual.probability().get() - 0.002_304).abs() < 1e-12);
    assert!((dual.coupled_probability() - 0.096).abs() < 1e-12);
    // 31 ms at the next: 0.048 + 0.16 * 0.016 + 3.2 * 0.016 = 0.10176.
    dual.on_timer(at_us(32_000), &mut Fixed(0.5));
    assert!((dual.base - 0.101_76).abs() < 1e-12);
    // L4S packets alone count as well: 15 ms again, 0.10176 + 0 - 3.2 * 0.016 = 0.05056.
    assert_eq!(sent(&mut dual, &mut log, 33_000).len(), 1);
    arrive(&mut dual, &mut log, 33_000, &[(1, Ecn::Ect1)]);
    dual.on_timer(at_us(48_000), &mut Fixed(0.5));
    assert!((dual.base - 0.050_56).abs() < 1e-12);
    // An empty queue: 0.05056 - 0.0024 - 0.048 = 0.00016, and then nothing below zero.
    assert_eq!(sent(&mut dual, &mut log, 48_000).len(), 1);
    dual.on_timer(at_us(64_000), &mut Fixed(0.5));
    assert!((dual.base - 0.000_16).abs() < 1e-12);
    dual.on_timer(at_us(80_000), &mut Fixed(0.5));
    assert_eq!(dual.base, 0.0);
    // Early calls do nothing, a late one does one update in phase.
    assert_eq!(dual.next_timer(), Some(at_us(96_000)));
    dual.on_timer(at_us(95_999), &mut Fixed(0.5));
    dual.on_timer(at_us(1_000_000), &mut Fixed(0.5));
    assert_eq!(dual.next_timer(), Some(at_us(1_008_000)));
}

#[test]
fn the_ramp_marks_in_proportion_to_the_delay_and_the_step_all() {
    let (mut ramp, mut log) = dual(DualPi2Params::default());
    arrive(&mut ramp, &mut log, 0, &[(0, Ecn::Ect1)]);
    // 800 us: 0; 1000 us: (1000 - 800) / 400 = 0.5; 1200 us: 1.
    let native = |dual: &DualPi2, us| dual.native_probability(Span::from_micros(us));
    assert_eq!([native(&ramp, 800), native(&ramp, 1000), native(&ramp, 1200)], [0.0, 0.5, 1.0]);
    let (mut step, _) = dual(DualPi2Params { l4s: L4sMarking::Step(Span::from_millis(1)), ..DualPi2Params::default() });
    arrive(&mut step, &mut log, 0, &[(0, Ecn::Ect1)]);
    // Linux: `qdelay > step_thresh`.
    assert_eq!([native(&step, 999), native(&step, 1000), native(&step, 1001)], [0.0, 0.0, 1.0]);
    // The last packet of the queue is not marked for its own delay (Th_len = 1). recur() counts to one with the
    // first packet, and past it with the second.
    let (mut three, mut log) = dual(DualPi2Params::default());
    arrive(&mut three, &mut log, 0, &[0, 1, 2].map(|handle| (handle, Ecn::Ect1)));
    assert_eq!(sent(&mut three, &mut log, 5_000), [0, 1, 2]);
    assert_eq!(log.marked, [1]);
}

#[test]
fn the_coupling_marks_k_p_of_the_l_queue_and_p_squared_of_the_c_queue() {
    for random in [false, true] {
        let params = DualPi2Params { random, scheduler: DualScheduler::Wrr(0.5), ..DualPi2Params::default() };
        let mut dual = DualPi2::new(params, Limit::packets(100_000));
        dual.base = 0.2;
        let mut log = Log::default();
        let mut rng = Lehmer(1);
        for handle in 0..20_000 {
            let ecn = [Ecn::Ect1, Ecn::Ect0][handle as usize % 2];
            dual.enqueue(handle, &packet(ecn), Instant::ZERO, &mut rng, &mut log);
        }
        while dual.dequeue(Instant::ZERO, &mut rng, &mut log).is_some() {}
        // 10 000 each: p_CL = 0.4, p_C = 0.04. Evenly spaced: to one packet; by chance: within four standard
        // deviations, 4 sqrt(n p (1 - p)) = 196 and 78.
        let low = log.marked.iter().filter(|&handle| handle % 2 == 0).count() as f64;
        let classic = log.marked.len() as f64 - low;
        let (slack_low, slack_classic) = if random { (196.0, 78.0) } else { (1.0, 1.0) };
        assert!((low - 4000.0).abs() <= slack_low && (classic - 400.0).abs() <= slack_classic, "{low} {classic}");
        assert!(log.dropped.is_empty());
    }
}

#[test]
fn a_classic_packet_that_cannot_be_marked_is_dropped_and_the_next_one_sent() {
    let (mut dual, mut log) = dual(DualPi2Params { overload: false, ..DualPi2Params::default() });
    dual.base = 1.0;
    // recur() passes one with the second packet.
    arrive(&mut dual, &mut log, 0, &[(9, Ecn::NotEct), (0, Ecn::NotEct), (1, Ecn::Ect0)]);
    assert_eq!(sent(&mut dual, &mut log, 0), [9, 1]);
    assert_eq!((log.dropped, log.marked), ([0].to_vec(), [1].to_vec()));
    assert_eq!(dual.totals().early_dropped, 1);
}

#[test]
fn overload_drops_in_both_queues() {
    // p' = 0.5: p_CL = 1 (no longer regulates), p_C = 0.25 = p_Cmax: ECN is off in the C queue, too. recur() passes
    // one with the fifth packet.
    let (mut dual, mut log) = dual(DualPi2Params::default());
    dual.base = 0.5;
    arrive(&mut dual, &mut log, 0, &[0, 1, 2, 3, 4].map(|handle| (handle, Ecn::Ect0)));
    assert_eq!(sent(&mut dual, &mut log, 0), [0, 1, 2, 3]);
    assert_eq!((&log.dropped[..], log.marked.len()), (&[4][..], 0));
    // L queue: recur() counts p_C for the drop and then p_CL for the mark of the same packet: 0.25 + 1 marks and
    // leaves 0.25; 0.5 + 1; 0.75 + 1; 1 + 1; 1.25 drops.
    let (mut dual, mut log) = super::tests::dual(DualPi2Params::default());
    dual.base = 0.5;
    arrive(&mut dual, &mut log, 0, &[0, 1, 2, 3, 4].map(|handle| (handle, Ecn::Ect1)));
    assert_eq!(sent(&mut dual, &mut log, 0), [0, 1, 2, 3]);
    assert_eq!((&log.dropped[..], &log.marked[..]), (&[4][..], &[0, 1, 2, 3][..]));
    // p' goes on to one; without overload handling it stops where p_CL = 1.
    for (overload, most) in [(true, 1.0), (false, 0.5)] {
        let (mut dual, mut log) = super::tests::dual(DualPi2Params { overload, ..DualPi2Params::default() });
        arrive(&mut dual, &mut log, 0, &[(0, Ecn::Ect0)]);
        dual.on_timer(at_us(10_000_000), &mut Fixed(0.5));
        assert_eq!(dual.base, most);
    }
}

#[test]
fn weighted_round_robin_leaves_the_c_queue_its_share() {
    // A share of a quarter: three L4S packets of the same size for each classic one.
    let (mut dual, mut log) = dual(DualPi2Params { scheduler: DualScheduler::Wrr(0.25), ..DualPi2Params::default() });
    arrive(&mut dual, &mut log, 0, &[0, 1, 2, 3, 4, 5, 6].map(|handle| (handle, Ecn::Ect1)));
    arrive(&mut dual, &mut log, 0, &[10, 11, 12].map(|handle| (handle, Ecn::NotEct)));
    // Each L4S packet earns 250 B, a classic one costs 750. Credit of 1514 (0.25 - 0.75) = -757 at first: -507,
    // -257, -7, 243 after the fourth; then -507 and so on. 6 leaves 243, and with nothing else there the others go.
    assert_eq!(sent(&mut dual, &mut log, 0), [0, 1, 2, 3, 10, 4, 5, 6, 11, 12]);
}

#[test]
fn credit_is_kept_while_one_queue_is_empty_and_starts_anew_when_both_are() {
    let (mut dual, mut log) = dual(DualPi2Params { scheduler: DualScheduler::Wrr(0.25), ..DualPi2Params::default() });
    let next = |dual: &mut DualPi2| dual.dequeue(at_us(0), &mut Fixed(0.5), &mut Log::default());
    // Four L4S packets beside a classic one leave 243 B of credit. The classic one is sent alone, for nothing.
    arrive(&mut dual, &mut log, 0, &[0, 1, 2, 3].map(|handle| (handle, Ecn::Ect1)));
    arrive(&mut dual, &mut log, 0, &[(10, Ecn::NotEct)]);
    assert_eq!([(); 5].map(|()| next(&mut dual)), [0, 1, 2, 3, 10].map(Some));
    assert_eq!(dual.classic_credit, 243.0);
    // Both come again before the link has found nothing: the classic one goes first.
    arrive(&mut dual, &mut log, 0, &[(4, Ecn::Ect1), (11, Ecn::NotEct)]);
    assert_eq!([(); 3].map(|()| next(&mut dual)), [Some(11), Some(4), None]);
    assert_eq!(dual.classic_credit, -757.0);
}

#[test]
fn with_little_left_nothing_is_signalled_for_p_but_the_l_queue_marks_on() {
    // p' = 0.5 with k = 1, so that p_C = 0.25 and p_CL = 0.5 without overload: 0.1 chooses in either queue.
    let marked = |min_backlog, left: u32, ecn, delay_us| {
        let params = DualPi2Params {
            min_backlog,
            random: true,
            k: 1.0,
            min_packets: 0,
            l4s: L4sMarking::Step(Span::from_millis(1)),
            ..DualPi2Params::default()
        };
        let (mut dual, mut log) = dual(params);
        dual.base = 0.5;
        for handle in 0..=left {
            dual.enqueue(handle, &packet(ecn), at_us(0), &mut Fixed(0.1), &mut log);
        }
        dual.dequeue(at_us(delay_us), &mut Fixed(0.1), &mut log);
        log.marked.len()
    };
    for ecn in [Ecn::Ect0, Ecn::Ect1] {
        // 3000 B are left of four packets, 4000 B of five.
        assert_eq!([marked(0, 0, ecn, 0), marked(3028, 3, ecn, 0), marked(3028, 4, ecn, 0)], [1, 0, 1]);
    }
    assert_eq!([1000, 1001].map(|us| marked(3028, 0, Ecn::Ect1, us)), [0, 1]);
    assert_eq!(marked(3028, 0, Ecn::Ect0, 100_000), 0);
}

#[test]
fn what_is_decided_at_arrival_is_not_decided_again() {
    let params = DualPi2Params { drop_early: true, random: true, ..DualPi2Params::default() };
    let (mut dual, mut log) = dual(params);
    dual.base = 0.4;
    dual.enqueue(0, &packet(Ecn::NotEct), at_us(0), &mut Fixed(0.1), &mut log);
    dual.enqueue(1, &packet(Ecn::Ect0), at_us(0), &mut Fixed(0.1), &mut log);
    dual.enqueue(2, &packet(Ecn::NotEct), at_us(0), &mut Fixed(0.9), &mut log);
    assert_eq!((&log.dropped[..], &log.marked[..]), (&[0][..], &[1][..]));
    assert_eq!((dual.totals().early_dropped, dual.totals().marked), (1, 1));
    assert_eq!(core::iter::from_fn(|| dual.dequeue(at_us(0), &mut Fixed(0.1), &mut log)).count(), 2);
    assert_eq!((log.dropped.len(), log.marked.len()), (1, 1));
}

#[test]
fn the_l_queue_may_take_all_that_can_be_marked_and_count_packets() {
    let (mut any, mut log) = dual(DualPi2Params { any_ect: true, ..DualPi2Params::default() });
    arrive(&mut any, &mut log, 0, &[(0, Ecn::NotEct), (1, Ecn::Ect0), (2, Ecn::Ect1), (3, Ecn::Ce)]);
    assert_eq!(sent(&mut any, &mut log, 0), [1, 2, 3, 0]);
    let params = DualPi2Params { l4s: L4sMarking::Packets(1), random: true, ..DualPi2Params::default() };
    let (mut packets, mut log) = dual(params);
    arrive(&mut packets, &mut log, 0, &[0, 1, 2, 3].map(|handle| (handle, Ecn::Ect1)));
    assert_eq!(sent(&mut packets, &mut log, 0), [0, 1, 2, 3]);
    // Three and two are left behind the first and second, one behind the third.
    assert_eq!(log.marked, [0, 1]);
}

#[test]
fn a_limit_of_its_own_holds_below_the_links() {
    let mut dual = DualPi2::new(DualPi2Params { limit: Some(1), ..DualPi2Params::default() }, Limit::packets(100));
    let mut log = Log::default();
    arrive(&mut dual, &mut log, 0, &[(0, Ecn::Ect0), (1, Ecn::Ect1)]);
    assert_eq!(log.dropped, [1]);
}

#[test]
fn a_time_shifted_fifo_gives_the_l_queue_a_head_start() {
    let scheduler = DualScheduler::TimeShiftedFifo(Span::from_millis(10));
    let (mut dual, mut log) = dual(DualPi2Params { scheduler, ..DualPi2Params::default() });
    arrive(&mut dual, &mut log, 0, &[(0, Ecn::Ect0)]);
    arrive(&mut dual, &mut log, 10_000, &[(1, Ecn::Ect1)]);
    arrive(&mut dual, &mut log, 10_001, &[(2, Ecn::Ect1), (3, Ecn::Ect0)]);
    // The classic packet has waited 10 ms longer than 1: 1 still goes first; 10.001 ms longer than 2: 0 goes first.
    assert_eq!(sent(&mut dual, &mut log, 10_100), [1, 0, 2, 3]);
}
