//! Tests of PIE's law and of both variants of its safeguards against values computed by hand.

use super::*;
use crate::testing::Fixed;
use crate::{Limit, Observation, QueueView, Totals};
use aqumen_units::{Bytes, Ecn};

const DROP: Verdict = Verdict::Drop(DropReason::Early);

fn near(got: f64, expected: f64) -> bool {
    (got - expected).abs() <= 1e-12 * expected.abs().max(1e-9)
}

/// A law at probability `p` with previous delay `previous_s`.
fn law_at(p: f64, previous_s: f64) -> PieLaw {
    let mut law = PieLaw::new(PieLawParams::default());
    law.p = Probability::clamp(p);
    law.core.previous_s = previous_s;
    law
}

#[test]
fn the_step_weighs_error_and_change() {
    // 0.125 (0.055 - 0.015) + 1.25 (0.055 - 0.035) = 0.005 + 0.025 = 0.03 Hz s, undivided from
    // p = 0.1 on; the cap is 0.02.
    assert!(near(law_at(0.15, 0.035).update(0.055).get(), 0.17));
    // Falling: 0.005 + 1.25 (0.055 - 0.075) = -0.02. The cap is for steps up only.
    assert!(near(law_at(0.15, 0.075).update(0.055).get(), 0.13));
    let mut uncapped = law_at(0.15, 0.035);
    uncapped.params.cap = false;
    assert!(near(uncapped.update(0.055).get(), 0.18));
}

#[test]
fn the_sampled_law_uses_the_sojourn_time_and_an_empty_queue_has_no_delay() {
    let observation = |queue_pkts| Observation { queue_pkts, sojourn_s: 0.055, ..Observation::default() };
    let mut law = law_at(0.15, 0.035);
    assert!(near(law.step(0, &observation(9.0)).get(), 0.17));
    let mut shown = None;
    SampledLaw::observe(&law, &mut |name, value| shown = Some((name, value)));
    assert_eq!(shown, Some(("delay", 0.055)));
    // 0.125 (0 - 0.015) + 1.25 (0 - 0.035) = -0.045625.
    assert!(near(law_at(0.15, 0.035).step(0, &observation(0.0)).get(), 0.104_375));
}

#[test]
fn small_probabilities_move_in_small_steps() {
    // The same 0.03 at each rung of the table.
    for (p, divisor) in [
        (0.0, 2048.0),
        (9e-7, 2048.0),
        (1e-6, 512.0),
        (9e-6, 512.0),
        (1e-5, 128.0),
        (1e-4, 32.0),
        (1e-3, 8.0),
        (1e-2, 2.0),
        (0.099, 2.0),
    ] {
        assert!(near(law_at(p, 0.035).update(0.055).get(), p + 0.03 / divisor), "{p}");
    }
    let mut untuned = law_at(0.0, 0.035);
    untuned.params.auto_tune = false;
    assert!(near(untuned.update(0.055).get(), 0.03));
}

#[test]
fn the_probability_decays_at_an_empty_queue() {
    // Delay 0 now and before: dp = 0.125 (0 - 0.015) = -0.001875; 0.5 - 0.001875 = 0.498125; times 0.98.
    assert!(near(law_at(0.5, 0.0).update(0.0).get(), 0.498_125 * 0.98));
    // Not if it had a delay before: 0.5 - 0.001875 - 1.25 * 0.001 = 0.496875.
    assert!(near(law_at(0.5, 0.001).update(0.0).get(), 0.496_875));
}

#[test]
fn the_probability_stays_within_its_range() {
    assert_eq!(law_at(1.0, 0.0).update(10.0), Probability::ONE);
    assert_eq!(law_at(0.01, 1.0).update(0.001), Probability::ZERO);
}

#[test]
fn linux_rises_faster_above_a_quarter_of_a_second() {
    // Delay 0.3, unchanged: 0.125 * 0.285 = 0.035625, capped at 0.02; Linux adds 0.02.
    assert!(near(law_at(0.2, 0.3).update(0.3).get(), 0.22));
    let mut boosted = law_at(0.2, 0.3);
    boosted.params.delay_boost = true;
    assert!(near(boosted.update(0.3).get(), 0.24));
    // Not at 0.25 itself: 0.125 * 0.235 = 0.029375, capped.
    let mut at = law_at(0.2, 0.25);
    at.params.delay_boost = true;
    assert!(near(at.update(0.25).get(), 0.22));
}

fn params() -> PieParams {
    PieParams {
        law: PieLawParams::default(),
        burst: Span::ZERO,
        derandomize: false,
        on_off: false,
        delay: DelaySource::Sojourn,
        mean_packet: 1000.0,
        mark_p: Probability::clamp(0.1),
        start: None,
        safeguards: Safeguards::Rfc8033,
        bytemode: false,
        ecn: true,
        limit: None,
    }
}

/// PIE at probability `p` after an update with a delay of 30 ms.
fn pie_at(params: PieParams, p: f64) -> Pie {
    let mut pie = Pie::new(params).unwrap();
    pie.law.inner = law_at(p, 0.030);
    pie
}

fn arrive(pie: &mut Pie, ecn: Ecn, packets: u32, u: f64) -> Verdict {
    let queue =
        QueueView { packets, bytes: packets as u64 * 1000, limit: Limit::packets(300), totals: &Totals::default() };
    let packet = Packet { bytes: 1000, ecn, segments: 1, ..Packet::default() };
    pie.on_arrival(&packet, &mut Cx { now: Instant::ZERO, queue, rng: &mut Fixed(u) })
}

#[test]
fn packets_are_marked_up_to_a_tenth_and_dropped_beyond() {
    let verdicts = |p| {
        let mut pie = pie_at(params(), p);
        [
            arrive(&mut pie, Ecn::Ect0, 50, p - 1e-9),
            arrive(&mut pie, Ecn::NotEct, 50, p - 1e-9),
            arrive(&mut pie, Ecn::Ect0, 50, p),
        ]
    };
    assert_eq!(verdicts(0.1), [Verdict::Mark, DROP, Verdict::Pass]);
    assert_eq!(verdicts(0.11), [DROP, DROP, Verdict::Pass]);
}

#[test]
fn short_queues_and_short_delays_are_exempt() {
    // Two packets of 1000 B are exempt, three are not.
    let mut pie = pie_at(params(), 0.05);
    assert_eq!(arrive(&mut pie, Ecn::Ect0, 2, 0.0), Verdict::Pass);
    assert_eq!(arrive(&mut pie, Ecn::Ect0, 3, 0.0), Verdict::Mark);
    // A delay below 7.5 ms exempts packets while p < 0.2.
    pie.law.inner = law_at(0.19, 0.007);
    assert_eq!(arrive(&mut pie, Ecn::Ect0, 50, 0.0), Verdict::Pass);
    pie.law.inner = law_at(0.2, 0.007);
    assert_eq!(arrive(&mut pie, Ecn::Ect0, 50, 0.0), DROP);
    pie.law.inner = law_at(0.19, 0.0075);
    assert_eq!(arrive(&mut pie, Ecn::Ect0, 50, 0.0), DROP);
}

#[test]
fn signals_are_spaced_out_by_the_sum_of_the_probability() {
    // p = 0.1 and a random number of 0: the sum reaches 0.85 with the ninth packet.
    let mut pie = pie_at(PieParams { derandomize: true, ..params() }, 0.1);
    for round in 0..3 {
        for packet in 1..=9 {
            let verdict = arrive(&mut pie, Ecn::Ect0, 50, 0.0);
            assert_eq!(verdict == Verdict::Mark, packet == 9, "packet {packet} of round {round}");
        }
    }
    // Random numbers that never signal: 8.5 is reached with packet 85 (or 86, by rounding).
    for never in [0.999, 0.1] {
        let mut pie = pie_at(PieParams { derandomize: true, ..params() }, 0.1);
        let first = (1..=100).find(|_| arrive(&mut pie, Ecn::Ect0, 50, never) == Verdict::Mark);
        assert!(matches!(first, Some(85 | 86)), "{never}: {first:?}");
    }
}

#[test]
fn an_overflow_counts_as_a_signal_for_the_spacing() {
    let mut pie = pie_at(PieParams { derandomize: true, ..params() }, 0.1);
    for _ in 0..8 {
        arrive(&mut pie, Ecn::Ect0, 50, 0.0);
    }
    let queue = QueueView { packets: 300, bytes: 0, limit: Limit::packets(300), totals: &Totals::default() };
    pie.on_overflow(&Packet::default(), &mut Cx { now: Instant::ZERO, queue, rng: &mut Fixed(0.0) });
    assert_eq!(arrive(&mut pie, Ecn::Ect0, 50, 0.0), Verdict::Pass);
}

/// Steps the timer with a queue of `packets` whose last sojourn time was `ms`.
fn update(pie: &mut Pie, packets: u32, ms: u64) {
    let totals = Totals { last_sojourn: Span::from_millis(ms), ..Totals::default() };
    let queue = QueueView { packets, bytes: packets as u64 * 1000, limit: Limit::packets(300), totals: &totals };
    let now = pie.next_timer().unwrap();
    pie.on_timer(&mut Cx { now, queue, rng: &mut Fixed(0.0) });
}

#[test]
fn the_burst_allowance_exempts_packets_and_an_empty_queue_renews_it() {
    // 45 ms are three updates of 15 ms.
    let mut pie = Pie::new(PieParams { burst: Span::from_millis(45), ..params() }).unwrap();
    for updates in 1..=3 {
        update(&mut pie, 50, 100);
        pie.law.inner.p = Probability::clamp(0.05);
        assert_eq!(arrive(&mut pie, Ecn::Ect0, 50, 0.0) == Verdict::Mark, updates == 3);
    }
    // With p > 0 it is not renewed, even without a queue.
    update(&mut pie, 0, 0);
    assert_eq!(pie.burst, Span::ZERO);
    // p = 0, and no delay now and before.
    pie.law.inner = law_at(0.0, 0.001);
    update(&mut pie, 0, 0);
    assert_eq!(pie.burst, Span::from_millis(45));
}

#[test]
fn an_empty_queue_has_no_delay() {
    let mut pie = pie_at(params(), 0.5);
    update(&mut pie, 0, 80);
    assert_eq!(pie.delay_s, 0.0);
}

#[test]
fn with_on_off_pie_is_active_from_a_third_of_the_buffer_to_an_empty_queue() {
    let mut pie = Pie::new(PieParams { on_off: true, ..params() }).unwrap();
    assert!(!pie.active);
    arrive(&mut pie, Ecn::Ect0, 99, 0.0);
    assert!(!pie.active);
    update(&mut pie, 99, 100);
    assert_eq!(pie.law.inner.probability(), Probability::ZERO);
    arrive(&mut pie, Ecn::Ect0, 100, 0.0);
    assert!(pie.active);
    update(&mut pie, 100, 100);
    assert!(pie.law.inner.probability() > Probability::ZERO);
    // No queue for two updates with p = 0.
    pie.law.inner.p = Probability::ZERO;
    update(&mut pie, 0, 0);
    assert!(pie.active);
    update(&mut pie, 0, 0);
    assert!(!pie.active);
}

#[test]
fn a_third_of_a_byte_limit_activates_pie() {
    let mut pie = Pie::new(PieParams { on_off: true, ..params() }).unwrap();
    let limit = Limit { packets: u32::MAX, bytes: Bytes(30_000) };
    let queue = QueueView { packets: 10, bytes: 10_000, limit, totals: &Totals::default() };
    let packet = Packet { bytes: 1000, ..Packet::default() };
    pie.on_arrival(&packet, &mut Cx { now: Instant::ZERO, queue, rng: &mut Fixed(0.0) });
    assert!(pie.active);
}

#[test]
fn the_departure_rate_is_measured_over_sixteen_kibibytes() {
    let at = |ms| Instant::ZERO + Span::from_millis(ms);
    let mut meter = RateMeter::default();
    // A short queue starts no measurement.
    meter.on_dequeue(1024, 16_383, at(0));
    assert_eq!(meter.delay_s(1_000_000), 0.0);
    // 16 packets of 1024 B in 160 ms: 102 400 B/s. The packet that starts the clock does not count.
    meter.on_dequeue(1024, 16_384, at(0));
    for i in 1..=16 {
        meter.on_dequeue(1024, 100_000, at(10 * i));
    }
    assert!(near(meter.delay_s(102_400), 1.0));
    // Twice as fast next: 0.25 * 80 + 0.75 * 160 = 140 ms for 16 384 B; 16 384 B wait 0.14 s.
    for i in 1..=16 {
        meter.on_dequeue(1024, 100_000, at(160 + 5 * i));
    }
    assert!(near(meter.delay_s(16_384), 0.14));
}

/// PIE with Linux's safeguards at probability `p`, whose last packet waited for `ms`.
fn linux_at(p: f64, ms: u64) -> Pie {
    let mut pie = pie_at(PieParams { safeguards: Safeguards::Linux, ..params() }, p);
    leave(&mut pie, 0, ms, 50_000);
    pie
}

/// A packet leaves at `at_ms` that waited for `ms`, with so many bytes behind.
fn leave(pie: &mut Pie, at_ms: u64, ms: u64, left: u64) {
    let queue = QueueView { packets: 50, bytes: left, limit: Limit::packets(300), totals: &Totals::default() };
    let now = Instant::ZERO + Span::from_millis(at_ms);
    let packet = Packet { bytes: 1000, ..Packet::default() };
    pie.on_dequeue(&packet, Span::from_millis(ms), &mut Cx { now, queue, rng: &mut Fixed(0.0) });
}

#[test]
fn linuxs_safeguard_uses_the_last_packets_delay_and_does_not_exempt_two_full_packets() {
    // The delay at the last update is 30 ms in both, the last packet's 7 or 8: half of the target is 7.5.
    assert_eq!(arrive(&mut linux_at(0.05, 7), Ecn::Ect0, 50, 0.0), Verdict::Pass);
    assert_eq!(arrive(&mut linux_at(0.05, 8), Ecn::Ect0, 50, 0.0), Verdict::Mark);
    // Two packets of 1000 B.
    assert_eq!(arrive(&mut linux_at(0.05, 8), Ecn::Ect0, 2, 0.0), Verdict::Mark);
    assert_eq!(arrive(&mut linux_at(0.05, 8), Ecn::Ect0, 1, 0.0), Verdict::Pass);
    // The last packet of the queue has no delay.
    let mut pie = linux_at(0.05, 8);
    leave(&mut pie, 10, 80, 0);
    assert_eq!(pie.delay_s, 0.0);
}

#[test]
fn linuxs_burst_allowance_falls_between_departures_and_nothing_is_summed_meanwhile() {
    let burst = Span::from_millis(150);
    let derandomize = PieParams { safeguards: Safeguards::Linux, derandomize: true, burst, ..params() };
    let mut pie = Pie::new(derandomize).unwrap();
    pie.law.inner = law_at(0.1, 0.030);
    leave(&mut pie, 0, 100, 50_000);
    arrive(&mut pie, Ecn::Ect0, 50, 0.0);
    assert_eq!((pie.burst, pie.sum), (burst, 0.0));
    leave(&mut pie, 100, 100, 50_000);
    // Updates do not lower it.
    update(&mut pie, 50, 100);
    assert_eq!(pie.burst, Span::from_millis(50));
    leave(&mut pie, 160, 100, 50_000);
    arrive(&mut pie, Ecn::Ect0, 50, 0.0);
    assert_eq!(pie.burst, Span::ZERO);
    assert!(pie.sum > 0.0);
    // p = 0 and the delay gone, now and at the update before: as at the start.
    (pie.law.inner, pie.delay_s) = (law_at(0.0, 0.001), 0.0);
    update(&mut pie, 0, 0);
    assert_eq!((pie.burst, pie.sum, pie.left_at), (burst, 0.0, None));
}

#[test]
fn linux_decays_by_a_64th_and_starts_later() {
    let mut law = law_at(0.5, 0.0);
    law.params.decay = LINUX_DECAY;
    assert!(near(law.update(0.0).get(), 0.498_125 * 63.0 / 64.0));
    let start = Some(Span::from_millis(500));
    let mut pie = Pie::new(PieParams { start, ..params() }).unwrap();
    let at = |ms| Instant::ZERO + Span::from_millis(ms);
    assert_eq!(pie.next_timer(), Some(at(500)));
    update(&mut pie, 50, 100);
    assert_eq!(pie.next_timer(), Some(at(515)));
}

#[test]
fn in_linux_a_sum_that_is_full_marks_until_a_drop() {
    // A number that never chooses: 8.5 is reached with packet 85, by rounding 86; then each is marked.
    let mut pie = linux_at(0.1, 30);
    pie.params.derandomize = true;
    let marks = (1..=100).filter(|_| arrive(&mut pie, Ecn::Ect0, 50, 0.999) == Verdict::Mark).count();
    assert!(matches!(marks, 15 | 16), "{marks}");
    assert_eq!(arrive(&mut pie, Ecn::NotEct, 50, 0.999), DROP);
    assert_eq!(arrive(&mut pie, Ecn::Ect0, 50, 0.999), Verdict::Pass);
}

#[test]
fn bytemode_scales_the_probability_of_small_packets() {
    // p = 0.1 for 1000 B, 0.05 for 500 B, and no more than 0.1 for 2000 B.
    let verdict = |bytes, u| {
        let mut pie = pie_at(PieParams { bytemode: true, ..params() }, 0.1);
        let totals = Totals::default();
        let queue = QueueView { packets: 50, bytes: 50_000, limit: Limit::packets(300), totals: &totals };
        let packet = Packet { bytes, ecn: Ecn::Ect0, ..Packet::default() };
        pie.on_arrival(&packet, &mut Cx { now: Instant::ZERO, queue, rng: &mut Fixed(u) })
    };
    assert_eq!([verdict(500, 0.049), verdict(500, 0.051)], [Verdict::Mark, Verdict::Pass]);
    assert_eq!([verdict(2000, 0.099), verdict(2000, 0.101)], [Verdict::Mark, Verdict::Pass]);
}

#[test]
fn a_packet_beyond_the_limit_is_dropped() {
    let mut pie = Pie::new(PieParams { limit: Some(50), ..params() }).unwrap();
    assert_eq!(arrive(&mut pie, Ecn::Ect0, 49, 0.0), Verdict::Pass);
    assert_eq!(arrive(&mut pie, Ecn::Ect0, 50, 0.0), Verdict::Drop(DropReason::Overflow));
}

#[test]
fn a_target_or_interval_of_zero_is_an_error() {
    let with = |law| Pie::new(PieParams { law, ..params() }).unwrap_err().param;
    assert_eq!(with(PieLawParams { target_s: 0.0, ..PieLawParams::default() }), "target");
    assert_eq!(with(PieLawParams { interval: Span::ZERO, ..PieLawParams::default() }), "interval");
    assert_eq!(Pie::new(PieParams { mean_packet: 0.0, ..params() }).unwrap_err().param, "mean_packet");
}

#[test]
fn pie_is_quiescent_only_if_no_update_changes_its_state() {
    let fresh = |change: fn(&mut PieParams)| {
        let mut params = params();
        change(&mut params);
        Pie::new(params).unwrap()
    };
    let linux = fresh(|params| params.safeguards = Safeguards::Linux);
    // As at the start: no delay, no probability, all of the allowance.
    for pie in [fresh(|_| {}), linux] {
        assert!(Aqm::is_quiescent(&pie));
    }
    // Each alone is something that the next update changes.
    let changes: [fn(&mut Pie); 4] = [
        |pie| pie.law.inner.p = Probability::clamp(0.1),
        |pie| pie.law.inner.core.previous_s = 0.01,
        |pie| pie.delay_s = 0.01,
        |pie| pie.burst = pie.params.burst + Span::from_millis(1),
    ];
    for change in changes {
        for mut pie in [fresh(|_| {}), linux] {
            change(&mut pie);
            assert!(!Aqm::is_quiescent(&pie));
        }
    }
    // Linux's clears more at its updates: what was summed, when a packet left, a rate being measured.
    let more: [fn(&mut Pie); 3] = [
        |pie| pie.sum = 0.5,
        |pie| pie.left_at = Some(Instant::ZERO),
        |pie| pie.rate.on_dequeue(1000, 20_000, Instant::ZERO),
    ];
    for change in more {
        let (mut of_rfc, mut of_linux) = (fresh(|_| {}), linux);
        change(&mut of_rfc);
        change(&mut of_linux);
        assert!(Aqm::is_quiescent(&of_rfc) && !Aqm::is_quiescent(&of_linux));
    }
    // One that can be switched off is, by an update that finds nothing; off it rests whatever it has.
    let mut switched = fresh(|params| params.on_off = true);
    switched.active = true;
    assert!(!Aqm::is_quiescent(&switched));
    (switched.active, switched.law.inner.p) = (false, Probability::clamp(0.1));
    assert!(Aqm::is_quiescent(&switched));
}
