//! `--autorate` on rate steps, pauses and a recorded LTE uplink.

use aqumen_aqm::Network;
use aqumen_scenario::AqmSpec;
use aqumen_units::{Instant, Span};

use super::super::controller::{self, Controller, Reading};
use super::super::marker::Counts;
use super::super::options::Target;
use super::super::{design, sampled};
use super::*;
use crate::netlink::tc::Stats;

fn mbit(rate: f64) -> Rate {
    Rate::from_bps((rate * 1e6) as u64)
}

#[test]
fn a_step_of_the_rate_is_followed_within_seconds() {
    let mut autorate = Autorate::new(mbit(10.0), Range::default());
    // 2.5 Mbit/s: 3125 bytes each 10 ms.
    for _ in 0..400 {
        autorate.update(0.01, 3125, true);
    }
    assert!((autorate.rate_bps() / 2.5e6 - 1.0).abs() < CHANGE_MIN, "{}", autorate.rate_bps());
}

#[test]
fn silence_of_a_radio_is_no_congestion() {
    // Bursts of 50 ms at 20 Mbit/s, then 30 ms of nothing while packets wait: 12.5 Mbit/s in all.
    // Then two seconds of nothing.
    let mut autorate = Autorate::new(mbit(12.5), Range::default());
    for _ in 0..50 {
        for slot in 0..8 {
            autorate.update(0.01, if slot < 5 { 25_000 } else { 0 }, true);
        }
    }
    let before = autorate.rate_bps();
    assert!((before / 12.5e6 - 1.0).abs() < 0.15, "{before}");
    for _ in 0..200 {
        autorate.update(0.01, 0, true);
    }
    assert_eq!(autorate.rate_bps(), before);
    autorate.update(0.01, 25_000, true);
    assert!(autorate.rate_bps() > 0.8 * before, "{}", autorate.rate_bps());
}

#[test]
fn an_idle_link_keeps_its_rate_and_the_range_holds() {
    let range = Range { floor: Some(mbit(2.0)), ceiling: Some(mbit(8.0)) };
    let mut autorate = Autorate::new(mbit(5.0), range);
    for _ in 0..1000 {
        assert_eq!(autorate.update(0.01, 100, false), None);
    }
    for _ in 0..1000 {
        autorate.update(0.01, 100, true);
    }
    assert_eq!(autorate.rate_bps(), 2e6);
    for _ in 0..1000 {
        autorate.update(0.01, 100_000, true);
    }
    assert!(autorate.rate_bps() > 8e6 * (1.0 - CHANGE_MIN) && autorate.rate_bps() <= 8e6, "{}", autorate.rate_bps());
}

#[test]
fn a_faster_link_is_detected_by_its_throughput_without_a_backlog() {
    let mut autorate = Autorate::new(mbit(3.0), Range { floor: None, ceiling: Some(mbit(9.0)) });
    let second = |autorate: &mut Autorate, bytes, backlogged| {
        for _ in 0..100 {
            autorate.update(0.01, bytes, backlogged);
        }
        autorate.rate_bps() / 1e6
    };
    // 3750 bytes each 10 ms are 3 Mbit/s; then 7 Mbit/s pass without a backlog. After three time constants the error is
    // exp(-3).
    assert_eq!(second(&mut autorate, 3750, true), 3.0);
    second(&mut autorate, 8750, false);
    second(&mut autorate, 8750, false);
    let measured = second(&mut autorate, 8750, false);
    assert!((measured - 7.0).abs() < 0.7, "{measured}");
    // The first backlogged packets do not restore the old rate, and the ceiling holds here too.
    autorate.update(0.01, 8750, true);
    assert!((autorate.rate_bps() / 1e6 - 7.0).abs() < 0.7, "{}", autorate.rate_bps());
    second(&mut autorate, 20_000, false);
    second(&mut autorate, 20_000, false);
    let most = second(&mut autorate, 20_000, false);
    assert!(most > 9.0 * (1.0 - CHANGE_MIN) && most <= 9.0, "{most}");
    // Light traffic does not lower the estimate.
    assert_eq!(second(&mut autorate, 100, false), most);
}

#[test]
fn the_estimate_is_used_after_half_a_second_with_a_backlog() {
    // 1 Mbit/s instead of 8: 1250 bytes each 10 ms. With decay, half a second takes 69 readings: 1 - exp(-0.69) = 1/2.
    let mut autorate = Autorate::new(mbit(8.0), Range::default());
    let first = (1..200).find_map(|reading| autorate.update(0.01, 1250, true).map(|rate| (reading, rate.as_bps())));
    let (reading, bps) = first.unwrap();
    assert!((65..=70).contains(&reading) && (990_000..=1_010_000).contains(&bps), "{reading}: {bps}");
}

/// Packets that the uplink can send in each 10 ms.
fn lte() -> Vec<u64> {
    let trace = include_str!("../../../vectors/lte-uplink.txt");
    let lines = trace.lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(str::split_whitespace).map(|number| number.parse().unwrap()).collect()
}

#[test]
fn the_rate_of_a_recorded_lte_uplink_is_followed() {
    let mut autorate = Autorate::new(mbit(8.0), Range::default());
    let mut errors = Vec::new();
    let trace = lte();
    for (slot, &packets) in trace.iter().enumerate() {
        autorate.update(0.01, 1500 * packets, true);
        if slot % 100 == 99 {
            // Rate of the trace in the second that ends here.
            let seen_bps = 12_000.0 * trace[slot - 99..=slot].iter().sum::<u64>() as f64;
            errors.push((autorate.rate_bps() / seen_bps).ln().abs());
        }
    }
    errors.sort_by(f64::total_cmp);
    // The uplink goes from 13 to 0.7 Mbit/s, often by half within a second: half of the seconds within 15 %,
    // nine of ten within a factor 1.6.
    assert!(errors[30] < 0.15f64.ln_1p(), "median {:.3}", errors[30].exp());
    assert!(errors[54] < 1.6f64.ln(), "90 % {:.3}", errors[54].exp());
}

/// Five Reno flows (fluid model, base RTT 60 ms) over the recorded uplink, under PI with a target of 40 ms designed for
/// 8 Mbit/s. Returns the mean and the 95th percentile of the queueing delay, and the utilisation.
fn over_lte(follow: bool) -> (f64, f64, f64) {
    const RTT_S: f64 = 0.06;
    const FLOWS: f64 = 5.0;
    let target = Target::Delay(Span::from_millis(40));
    let spec = AqmSpec::builtin("pi").unwrap();
    let nominal = Network { flows: FLOWS, base_rtt_s: RTT_S, target_pkts: 26.7, ..design::example(8) };
    let mut network = nominal;
    let aqm = sampled::build(&spec, &network).unwrap();
    let mut controller = Controller::new(aqm, controller::queue_limit(400.0, None), 1500.0, mbit(8.0));
    let mut autorate = follow.then(|| Autorate::new(mbit(8.0), Range::default()));
    if follow {
        controller = controller.for_radio_link();
    }
    let (mut window, mut queue, mut left, mut could) = (1.0f64, 0.0f64, 0u64, 0u64);
    let mut delays = Vec::new();
    let mut reading = Reading::default();
    let (mut arrived, mut p) = (0.0f64, 0.0f64);
    // The backlog leaves at the mean rate of the next second.
    let trace = lte();
    for slot in 0..trace.len() - 100 {
        let pps = trace[slot..slot + 100].iter().sum::<u64>().max(1) as f64;
        let rtt_s = RTT_S + queue / pps;
        arrived += FLOWS * window / rtt_s * 0.01;
        window = (window + 0.01 * (1.0 / rtt_s - 0.5 * window * window / rtt_s * p)).max(1.0);
        let whole = arrived.floor();
        arrived -= whole;
        let leaves = (trace[slot] as f64).min(queue + whole);
        queue = (queue + whole - leaves).min(400.0);
        (left, could) = (left + leaves as u64, could + trace[slot]);
        delays.push(queue / pps);
        reading = Reading {
            at: reading.at + Span::from_millis(10),
            counts: Counts {
                segments: reading.counts.segments + whole as u64,
                bytes: reading.counts.bytes + 1500 * whole as u64,
                ..Counts::default()
            },
            queue: Stats { bytes: 1500 * left, packets: left, backlog_bytes: 1500 * queue as u32, ..Stats::default() },
        };
        let state = controller.on_reading(&reading);
        p = state.p;
        let rate = autorate.as_mut().and_then(|autorate| autorate.update(0.01, state.departed_bytes, state.backlogged));
        if let Some(rate) = rate {
            network = design::network_at(&Network { flows: FLOWS, ..network }, target, rate);
            controller.replace(sampled::build(&spec, &network).unwrap(), reading.at, rate);
        }
    }
    assert!(reading.at > Instant::ZERO + Span::from_secs(58));
    let mean_s = delays.iter().sum::<f64>() / delays.len() as f64;
    delays.sort_by(f64::total_cmp);
    (mean_s, delays[delays.len() * 95 / 100], left as f64 / could as f64)
}

#[test]
fn following_an_lte_uplink_shortens_its_queue() {
    let (fixed, follows) = (over_lte(false), over_lte(true));
    for (name, (mean_s, p95_s, used)) in [("fixed", fixed), ("--autorate", follows)] {
        eprintln!("{name}: mean {:.1} ms, 95 % {:.1} ms, {used:.3} of the uplink used", 1e3 * mean_s, 1e3 * p95_s);
    }
    assert!(follows.0 < fixed.0 && follows.1 < fixed.1, "{follows:?}, {fixed:?} without");
    assert!(follows.2 > fixed.2 - 0.05, "{follows:?}, {fixed:?} without");
}
