//! Tests of RED against values computed by hand.

use super::*;
use crate::testing::{Fixed, Lehmer};
use crate::{Limit, QueueView, Totals};
use aqumen_units::Ecn;
use std::collections::BTreeMap;

#[test]
fn uniform_gaps_have_a_low_dispersion() {
    // At 150 p_b = 0.1. With `wait` gaps are uniform on 10 to 19: mean 14.5, variance 99 / 12 = 8.25. Bernoulli signals
    // of equal probability have dispersion 1 - 1 / 14.5. Without `wait` 1 to 9: mean 5, variance 80 / 12.
    let probability = |wait: bool| RedParams { wait, ..params() }.law().probability(150.0);
    let dispersion = |wait: bool| Red::new(RedParams { wait, ..params() }).unwrap().dispersion(probability(wait));
    assert!((dispersion(true) - 8.25 / 14.5 / 13.5).abs() < 1e-9, "{}", dispersion(true));
    assert!((dispersion(false) - 80.0 / 12.0 / 5.0 / 4.0).abs() < 1e-9, "{}", dispersion(false));
    // At probability 1 there is no variation.
    assert_eq!(RedParams { ..params() }.law().dispersion(1.0), 0.0);
}

fn params() -> RedParams {
    RedParams {
        curve: RedCurve::new(50.0, 150.0, 0.1, true).unwrap(),
        weight: 1.0,
        link_pps: 1000.0,
        wait: true,
        bytes: false,
        queue_in_bytes: false,
        mean_packet: 1000,
        use_mark_p: false,
        mark_p: Probability::ZERO,
        linux_spacing: false,
        mark_above: false,
        ecn: true,
    }
}

fn arrive(red: &mut Red, queue: u32, at_ms: f64, rng: &mut Lehmer) -> Verdict {
    let queue = QueueView {
        packets: queue,
        bytes: queue as u64 * 1000,
        limit: Limit::packets(400),
        totals: &Totals::default(),
    };
    let now = Instant::from_nanos((at_ms * 1e6) as u64);
    red.on_arrival(&Packet { bytes: 1000, ecn: Ecn::Ect0, ..Packet::default() }, &mut Cx { now, queue, rng })
}

/// Histogram of the gaps between signals at an average of 100: p_b = 0.1 (100 - 50) / (150 - 50) = 0.05.
fn gaps(wait: bool, linux_spacing: bool, signals: usize) -> BTreeMap<u32, usize> {
    let mut red = Red::new(RedParams { wait, linux_spacing, ..params() }).unwrap();
    let mut rng = Lehmer(1);
    let (mut seen, mut gap, mut found) = (BTreeMap::new(), 0, 0);
    while found <= signals {
        gap += 1;
        if arrive(&mut red, 100, 0.0, &mut rng) == Verdict::Mark {
            // The first gap does not begin with a signal.
            if found > 0 {
                *seen.entry(gap).or_default() += 1;
            }
            (gap, found) = (0, found + 1);
        }
    }
    seen
}

#[test]
fn signals_are_spread_uniformly() {
    // ns-2 counts a packet before the decision: gaps are 1 .. 1/p - 1 = 19 without wait, 1/p .. 2/p - 1 with it.
    // Linux: 1 .. 1/p.
    for (wait, linux, first, last) in [(false, false, 1, 19), (true, false, 20, 39), (true, true, 1, 20)] {
        let seen = gaps(wait, linux, 20_000);
        assert_eq!((*seen.keys().min().unwrap(), *seen.keys().max().unwrap()), (first, last));
        let each = 20_000.0 / (last - first + 1) as f64;
        for (gap, times) in seen {
            // Four standard deviations of a binomial count.
            assert!((times as f64 - each).abs() < 4.0 * libm::sqrt(each), "gap {gap} came {times} times, not {each}");
        }
    }
}

#[test]
fn the_average_decays_during_an_idle_time() {
    // w = 1/2: an arrival that finds 8 packets gives avg = 4. Idle from 10 ms to 13.7 ms: the link could have sent
    // floor(3.7) = 3 packets, avg = 4 / 8 = 0.5; the arrival finds an empty queue and halves it to 0.25.
    let mut red = Red::new(RedParams { weight: 0.5, ..params() }).unwrap();
    let mut rng = Lehmer(1);
    arrive(&mut red, 8, 1.0, &mut rng);
    assert_eq!(red.average.value(), 4.0);
    red.on_idle(Instant::from_nanos(10_000_000));
    arrive(&mut red, 0, 13.7, &mut rng);
    assert_eq!(red.average.value(), 0.25);
}

#[test]
fn beyond_twice_max_th_ecn_capable_packets_are_dropped_too() {
    let mut red = Red::new(params()).unwrap();
    let mut rng = Lehmer(1);
    assert_eq!(arrive(&mut red, 300, 0.0, &mut rng), Verdict::Drop(DropReason::Overflow));
    // Just below, p_b = 0.1 + 0.9 * 149/150 = 0.994. The first packet above min_th passes, the second is marked (with
    // wait, its count of 2 exceeds 1/p = 1.006).
    let mut red = Red::new(params()).unwrap();
    let verdicts: std::vec::Vec<_> = (0..3).map(|_| arrive(&mut red, 299, 0.0, &mut rng)).collect();
    assert_eq!(verdicts, [Verdict::Pass, Verdict::Mark, Verdict::Pass]);
}

#[test]
fn beyond_the_curve_linux_marks_and_resets_its_random_number() {
    let curve = RedCurve::new(50.0, 150.0, 0.1, false).unwrap();
    let linux = RedParams { curve, linux_spacing: true, mark_above: true, ..params() };
    let mut rng = Lehmer(1);
    for (params, verdict) in [
        (linux, Verdict::Mark),
        (RedParams { mark_above: false, ..linux }, Verdict::Drop(DropReason::Overflow)),
        (RedParams { ecn: false, ..linux }, Verdict::Drop(DropReason::Overflow)),
        (RedParams { linux_spacing: false, ..linux }, Verdict::Mark),
    ] {
        let mut red = Red::new(params).unwrap();
        assert_eq!(arrive(&mut red, 150, 0.0, &mut rng), verdict);
        assert_eq!(red.random_number, None);
    }
    // The first packet between the thresholds draws the number, and is never signalled. Below min_th it is reset.
    let mut red = Red::new(linux).unwrap();
    assert_eq!(arrive(&mut red, 149, 0.0, &mut rng), Verdict::Pass);
    assert!(red.random_number.is_some());
    arrive(&mut red, 49, 0.0, &mut rng);
    assert_eq!(red.random_number, None);
}

#[test]
fn tcs_defaults_follow_from_the_buffer() {
    // Buffer 400: max_th 100, min_th 33.3; burst (66.7 + 100) / 3 = 55 packets, 55 + 1 - 33.3 = 22.7. 2^-5 gives (1 -
    // (31/32)^55) * 32 = 26.4, enough; 2^-4 gives (1 - (15/16)^55) * 16 = 15.5, too little.
    assert_eq!(tc_weight(400.0 / 12.0, 100.0), 1.0 / 32.0);
    // Buffer 252: burst 35, excess 15; 2^-4 gives 14.3, 2^-5 21.5. Buffer 60: burst 8, excess 4; 2^-2 gives 3.6, 2^-3
    // 5.3.
    assert_eq!([252.0, 60.0].map(|buffer| tc_weight(buffer / 12.0, buffer / 4.0)), [1.0 / 32.0, 1.0 / 8.0]);
    let network = Network { buffer_pkts: 400.0, ..crate::multi::testing::NETWORK };
    let given = [("thresholds", Value::Choice("tc")), ("weight_rule", Value::Choice("tc"))];
    let red = Red::from_settings(&Settings::check(&given, &PARAMS).unwrap(), &network).unwrap();
    assert!((red.params.curve.max_th() - 100.0).abs() < 1e-9);
    assert_eq!(red.params.weight, 1.0 / 32.0);
}

#[test]
fn above_mark_p_ecn_capable_packets_are_dropped() {
    // p_b at 300 packets is 1 > 0.1.
    let params = RedParams { use_mark_p: true, mark_p: Probability::new(0.1).unwrap(), ..params() };
    let mut red = Red::new(params).unwrap();
    let mut rng = Lehmer(1);
    arrive(&mut red, 300, 0.0, &mut rng);
    assert_eq!(arrive(&mut red, 300, 0.0, &mut rng), Verdict::Drop(DropReason::Early));
}

#[test]
fn a_random_number_equal_to_the_probability_is_a_signal() {
    // Without wait, p_b = 1/4 (50 to 150, max_p 1, average 75) and count 2 give 0.25 / (1 - 0.5) = 1/2.
    let curve = RedCurve::new(50.0, 150.0, 1.0, true).unwrap();
    let mut red = Red::new(RedParams { curve, wait: false, ..params() }).unwrap();
    let packet = Packet { bytes: 1000, ecn: Ecn::Ect0, ..Packet::default() };
    let mut verdict = || {
        let queue = QueueView { packets: 75, bytes: 0, limit: Limit::packets(400), totals: &Totals::default() };
        red.on_arrival(&packet, &mut Cx { now: Instant::ZERO, queue, rng: &mut Fixed(0.5) })
    };
    assert_eq!([verdict(), verdict()], [Verdict::Pass, Verdict::Mark]);
}

#[test]
fn an_overflow_restarts_the_count() {
    let mut red = Red::new(params()).unwrap();
    let mut rng = Lehmer(1);
    for _ in 0..10 {
        arrive(&mut red, 100, 0.0, &mut rng);
    }
    assert_eq!(red.count, 10);
    let queue = QueueView { packets: 400, bytes: 0, limit: Limit::packets(400), totals: &Totals::default() };
    red.on_overflow(&Packet::default(), &mut Cx { now: Instant::ZERO, queue, rng: &mut rng });
    assert_eq!(red.count, 0);
}

#[test]
fn a_variant_has_reds_parameters_with_another_default_weight_rule() {
    let table: [Param; PARAMS.len() + 1] = family("ns2-1s", &[Param::flag("more", false, "")]);
    assert_eq!(table[PARAMS.len()].name, "more");
    for (variant, red) in table.iter().zip(&PARAMS) {
        assert_eq!(variant.name, red.name);
        assert_eq!(variant.default != red.default, red.name == "weight_rule");
    }
}

#[test]
fn the_pole_of_the_average_is_the_inverse_of_its_time_constant() {
    // w = 1 - exp(-1 / (T pps)), K = -pps ln(1 - w) = 1 / T: 0.25 s gives 4 rad/s at any rate.
    for pps in [100.0, 1e6] {
        let pole = RedAverage::new(RedAverage::weight_for(0.25, pps)).pole(pps);
        assert!((pole - 4.0).abs() < 1e-9, "{pole}");
    }
}

#[test]
fn invalid_thresholds_are_errors() {
    assert_eq!(RedCurve::new(60.0, 50.0, 0.1, true).unwrap_err().param, "min_th");
    assert_eq!(RedCurve::new(f64::NAN, 50.0, 0.1, true).unwrap_err().param, "min_th");
    assert_eq!(RedCurve::new(0.0, 0.0, 0.1, true).unwrap_err().param, "max_th");
    assert_eq!(RedCurve::new(1.0, 2.0, 1.1, true).unwrap_err().param, "max_p");
    assert_eq!(Red::new(RedParams { weight: 0.0, ..params() }).unwrap_err().param, "weight");
}

#[test]
fn average_at_inverts_the_curve_and_stops_before_a_jump() {
    // p_b = 0.1 at 150 packets, 1 at 300.
    let gentle = RedCurve::new(50.0, 150.0, 0.1, true).unwrap();
    for (p, average) in [(0.0, 50.0), (0.05, 100.0), (0.1, 150.0), (0.55, 225.0)] {
        assert!((gentle.average_at(p) - average).abs() < 1e-9, "{p}: {}", gentle.average_at(p));
    }
    let jumping = RedCurve::new(50.0, 150.0, 0.1, false).unwrap();
    assert!((jumping.probability(jumping.average_at(0.5)) - 0.1).abs() < 1e-9);
    // Equal thresholds: 0 below 5 packets, 0.1 there.
    let step = RedCurve::new(5.0, 5.0, 0.1, true).unwrap();
    assert_eq!(step.probability(step.average_at(0.05)), 0.0);
}
