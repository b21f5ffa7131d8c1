//! Property tests: invariants of every single-queue algorithm and profile under random sequences of operations.

use crate::common;
use crate::random;

use aqumen_aqm::registry::{self, AnyAqm};
use aqumen_aqm::{Aqm, Fifo, Kind, Limit, Network, Packet, Qdisc, Value};
use aqumen_units::{Ecn, Instant, Rate, Span};
use proptest::prelude::*;
use random::{Fate, Log, NETWORK, Random, limits};

#[derive(Clone, Debug)]
enum Operation {
    Advance(u64),
    Arrive(u32, Ecn),
    /// Several packets at once.
    Burst(u16),
    Depart,
    /// The timer, if it is due, possibly late.
    Timer,
    /// The timer before it is due.
    SpuriousTimer,
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let ecn = prop::sample::select(vec![Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce]);
    let size = prop_oneof![6 => Just(1000u32), 1 => Just(0), 1 => Just(u32::MAX), 2 => any::<u32>()];
    let time = prop_oneof![
        6 => 0u64..10_000_000,
        2 => 0u64..1_000_000_000,
        // Up to a day.
        1 => 0u64..86_400_000_000_000,
    ];
    let operation = prop_oneof![
        4 => time.prop_map(Operation::Advance),
        6 => (size, ecn).prop_map(|(size, ecn)| Operation::Arrive(size, ecn)),
        1 => (0u16..400).prop_map(Operation::Burst),
        4 => Just(Operation::Depart),
        4 => Just(Operation::Timer),
        1 => Just(Operation::SpuriousTimer),
    ];
    prop::collection::vec(operation, 1..200)
}

/// Observable state of an algorithm.
fn state(fifo: &Fifo<AnyAqm>) -> (f64, Option<Instant>, Vec<(&'static str, u64)>) {
    let mut seen = Vec::new();
    fifo.observe(&mut |name, value| seen.push((name, value.to_bits())));
    (fifo.probability().get(), fifo.next_timer(), seen)
}

fn run(name: &str, limit: Limit, operations: &[Operation], seed: u64) -> Vec<Fate> {
    run_aqm(name, registry::build(name, &[], &NETWORK).unwrap().unwrap(), limit, operations, seed)
}

fn run_aqm(name: &str, aqm: AnyAqm, limit: Limit, operations: &[Operation], seed: u64) -> Vec<Fate> {
    let mut fifo = Fifo::new(aqm, limit);
    let (mut rng, mut log) = (Random(seed), Log::default());
    let (mut now, mut next, mut in_transmission) = (Instant::ZERO, 0, false);
    for operation in operations {
        match *operation {
            Operation::Advance(nanos) => now += Span::from_nanos(nanos),
            Operation::Arrive(bytes, ecn) => {
                let packet = Packet { bytes, ecn, segments: 1, ..Packet::default() };
                fifo.enqueue(next, &packet, now, &mut rng, &mut log);
                next += 1;
            }
            Operation::Burst(packets) => {
                for _ in 0..packets {
                    let packet = Packet { bytes: 1000, ecn: Ecn::Ect0, segments: 1, ..Packet::default() };
                    fifo.enqueue(next, &packet, now, &mut rng, &mut log);
                    next += 1;
                }
            }
            Operation::Depart => {
                if in_transmission {
                    fifo.transmitted(Span::from_millis(1), now);
                }
                let sent = fifo.dequeue(now, &mut rng, &mut log);
                log.0.extend(sent.map(Fate::Sent));
                in_transmission = sent.is_some();
            }
            Operation::Timer => {
                if fifo.next_timer().is_some_and(|due| due <= now) {
                    fifo.on_timer(now, &mut rng);
                    assert!(fifo.next_timer().unwrap() > now, "{name}: the timer is due again at once");
                }
            }
            Operation::SpuriousTimer => {
                if fifo.next_timer().is_none_or(|due| due > now) {
                    let before = state(&fifo);
                    fifo.on_timer(now, &mut rng);
                    assert_eq!(state(&fifo), before, "{name}: a spurious timer changed something");
                }
            }
        }
        let p = fifo.probability().get();
        assert!((0.0..=1.0).contains(&p), "{name}: p = {p}");
        fifo.observe(&mut |key, value| assert!(value.is_finite(), "{name}: {key} = {value}"));
        let (totals, backlog) = (*fifo.totals(), fifo.backlog());
        assert!(backlog.packets <= limit.packets && backlog.bytes <= limit.bytes.0);
        assert_eq!(totals.arrivals, next as u64);
        let waiting = u64::from(backlog.packets) + u64::from(in_transmission);
        assert_eq!(
            totals.arrivals,
            totals.departures + totals.early_dropped + totals.overflow_dropped + waiting,
            "{name}: {totals:?}"
        );
    }
    let marked = log.0.iter().filter(|fate| matches!(fate, Fate::Marked(_))).count() as u64;
    let dropped = log.0.iter().filter(|fate| matches!(fate, Fate::Dropped(..))).count() as u64;
    let totals = fifo.totals();
    assert_eq!((marked, dropped), (totals.marked, totals.early_dropped + totals.overflow_dropped));
    log.0
}

fn names() -> impl Iterator<Item = &'static str> {
    let of_one_queue = |name: &str| registry::find(name).is_some_and(|row| row.kind() == registry::QueueKind::Single);
    let profiles = registry::PROFILES.iter().map(|profile| profile.name).filter(move |name| of_one_queue(name));
    registry::ALGORITHMS.iter().map(|row| row.name).chain(profiles)
}

proptest! {
    #![proptest_config(common::config(256))]

    #[test]
    fn packets_are_conserved_and_runs_repeat(operations in operations(), limit in limits(), seed: u64) {
        for name in names() {
            prop_assert_eq!(run(name, limit, &operations, seed), run(name, limit, &operations, seed));
        }
    }
}

/// Numbers of every order of magnitude.
fn magnitudes() -> impl Strategy<Value = f64> {
    prop_oneof![
        3 => (-9.0..9.0f64).prop_map(|exponent| 10f64.powf(exponent)),
        3 => (1u32..100).prop_map(f64::from),
        3 => 0.0..1.0f64,
        1 => prop::num::f64::ANY,
    ]
}

proptest! {
    #![proptest_config(common::config(2000))]

    #[test]
    fn any_parameters_for_any_network_are_refused_or_work(
        which in 0..registry::ALGORITHMS.len(),
        picks in prop::collection::vec((any::<prop::sample::Index>(), magnitudes()), 0..5),
        network in prop::option::weighted(0.3, prop::array::uniform7(magnitudes())),
        operations in operations(),
        limit in limits(),
    ) {
        let row = &registry::ALGORITHMS[which];
        let given: Vec<_> = picks.iter().map(|(index, x)| {
            let param = index.get(row.params);
            let value = match param.kind {
                Kind::Number { .. } => Value::Number(*x),
                Kind::Flag => Value::Flag(*x < 1.0),
                Kind::Choice(words) => Value::Choice(words[(x.abs() as usize) % words.len()]),
            };
            (param.name, value)
        }).collect();
        let network = network.map_or(NETWORK, |[capacity, flows, base_rtt_s, target_pkts, packet_bytes, link, buffer_pkts]| {
            Network {
                capacity: Rate::from_bps((capacity * 1e4) as u64),
                flows,
                base_rtt_s,
                target_pkts,
                packet_bytes,
                link_rate: Rate::from_bps((link * 1e4) as u64),
                buffer_pkts,
            }
        });
        if let Ok(aqm) = registry::build(row.name, &given, &network).unwrap() {
            run_aqm(row.name, aqm, limit, &operations, 1);
        }
    }
}

#[test]
fn a_packet_that_cannot_carry_a_mark_is_never_marked() {
    for name in names() {
        let aqm = registry::build(name, &[], &NETWORK).unwrap().unwrap();
        // Deep enough for slow averages to see the queue before it overflows.
        let mut fifo = Fifo::new(aqm, Limit::packets(1000));
        let (mut rng, mut log) = (Random(1), Log::default());
        let packet = Packet { bytes: 1000, ecn: Ecn::NotEct, segments: 1, ..Packet::default() };
        for i in 0..100_000 {
            // The link sends 1250 packets a second; twice as many come.
            let now = Instant::from_nanos(u64::from(i) * 400_000);
            if fifo.next_timer().is_some_and(|due| due <= now) {
                fifo.on_timer(now, &mut rng);
            }
            fifo.enqueue(i, &packet, now, &mut rng, &mut log);
            if i % 2 == 0 && fifo.dequeue(now, &mut rng, &mut log).is_some() {
                fifo.transmitted(Span::from_micros(800), now + Span::from_micros(800));
            }
        }
        assert_eq!(fifo.totals().marked, 0, "{name}");
        // Twice as many arrive as leave: all algorithms lose half of them, one way or another.
        assert!(fifo.totals().early_dropped + fifo.totals().overflow_dropped > 48_900, "{name}: {:?}", fifo.totals());
        // DropTail drops nothing early, and two of ns-2's ways of marking spare what cannot be marked.
        if !["droptail", "rem-ns2", "avq-ns2"].contains(&name) {
            assert!(fifo.totals().early_dropped > 0, "{name}: {:?}", fifo.totals());
        }
    }
}

fn settings(aqm: &AnyAqm) -> Vec<(&'static str, Value<'static>)> {
    let mut all = Vec::new();
    aqm.settings(&mut |name, value| all.push((name, value)));
    all
}

#[test]
fn the_settings_in_force_build_the_same_algorithm_again() {
    let other = Network { flows: 30.0, target_pkts: 20.0, base_rtt_s: 0.05, ..NETWORK };
    for name in names() {
        let row = registry::find(name).unwrap();
        let aqm = registry::build(name, &[], &NETWORK).unwrap().unwrap();
        let in_force = settings(&aqm);
        // Even for another network: nothing is left to design.
        let again = registry::build(row.name, &in_force, &other).unwrap().unwrap();
        assert_eq!(settings(&again), in_force, "{name}");
        assert_eq!(again.next_timer(), aqm.next_timer(), "{name}");
        // In the table's order.
        let places: Vec<_> =
            in_force.iter().map(|(key, _)| row.params.iter().position(|p| p.name == *key).unwrap()).collect();
        assert!(places.is_sorted(), "{name}: {in_force:?}");
    }
}

#[test]
fn no_name_means_two_things() {
    let mut all: Vec<_> = names().collect();
    all.sort_unstable();
    assert!(all.windows(2).all(|pair| pair[0] != pair[1]), "{all:?}");
    for profile in registry::PROFILES {
        assert_eq!(registry::find(profile.name).map(|row| row.name), Some(profile.algorithm));
    }
}

#[test]
fn every_default_lies_in_its_own_range() {
    for row in registry::ALGORITHMS {
        for param in row.params {
            if let aqumen_aqm::DefaultValue::Value(value) = param.default {
                let given = [(param.name, value)];
                assert!(aqumen_aqm::Settings::check(&given, row.params).is_ok(), "{} {}", row.name, param.name);
            }
        }
    }
}

fn value(name: &str, given: &[(&str, Value<'_>)], key: &str) -> Value<'static> {
    let aqm = registry::build(name, given, &NETWORK).unwrap().unwrap();
    settings(&aqm).into_iter().find(|(name, _)| *name == key).unwrap().1
}

#[test]
fn a_profile_sets_up_its_algorithm_and_yields_to_the_operator() {
    assert_eq!(value("arm-pfc-printed", &[], "psi"), Value::Number(0.83));
    assert_eq!(value("arm-pfc-printed", &[], "h"), Value::Number(7.0));
    assert_eq!(value("arm-pfc-printed", &[], "variant"), Value::Choice("B"));
    assert_eq!(value("arm-pfc-literal", &[], "variant"), Value::Choice("A"));
    assert_eq!(value("arm-pfc-printed", &[("h", Value::Number(8.0))], "h"), Value::Number(8.0));
    assert_eq!(value("pi-x1000", &[], "a"), Value::Number(6.48e-4));
    assert_eq!(value("red50", &[], "max_th"), Value::Number(150.0));
    // 10 Mbit/s of 1000 B is 1250 packets/s: 5 ms hold 6.25, half of them 3.1; ns-2's floor of 5 rules, and 3 * 5.
    assert_eq!(value("red-ns2", &[], "min_th"), Value::Number(5.0));
    assert_eq!(value("red-ns2", &[], "max_th"), Value::Number(15.0));
    // 80000 / 1e7, and no more than 0.01: what 8 Mbit/s give.
    assert_eq!(value("ared-ns2", &[], "bottom"), Value::Number(0.008));
    for (mbit, bottom) in [(4, 0.01), (8, 0.01), (100, 0.0008)] {
        let network = Network { link_rate: Rate::from_bps(mbit * 1_000_000), ..NETWORK };
        let aqm = registry::build("ared-ns2", &[], &network).unwrap().unwrap();
        let in_force = settings(&aqm).into_iter().find(|(name, _)| *name == "bottom").unwrap().1;
        assert_eq!(in_force, Value::Number(bottom), "{mbit} Mbit/s");
    }
    assert_eq!(value("ared-ns2", &[("bottom", Value::Number(0.02))], "bottom"), Value::Number(0.02));
    assert_eq!(value("ared", &[], "bottom"), Value::Number(0.01));
    assert!(registry::build("no-such", &[], &NETWORK).is_none());
}

#[test]
fn what_is_left_open_is_designed_for_the_network() {
    // Target 100: thresholds 50 and 150.
    assert_eq!(value("red", &[], "min_th"), Value::Number(50.0));
    assert_eq!(value("red", &[], "max_th"), Value::Number(150.0));
    assert_eq!(value("red", &[("min_th", Value::Number(20.0))], "max_th"), Value::Number(60.0));
    // Half of what leaves in the target delay, 1250 packets/s, but not less than 5; a twelfth of the buffer.
    let auto = |target: f64| {
        value("red", &[("thresholds", Value::Choice("ns2-auto")), ("target_delay", Value::Number(target))], "min_th")
    };
    assert_eq!([auto(0.1), auto(0.005)], [Value::Number(62.5), Value::Number(5.0)]);
    assert_eq!(value("red", &[("thresholds", Value::Choice("tc"))], "min_th"), Value::Number(25.0));
    // R0 = 0.2 + 100 / 1250 = 0.28; p0 = 2 (100 / 350)^2 = 8/49.
    assert_eq!(value("arm-pfc", &[], "r0"), Value::Number(0.2 + 100.0 / 1250.0));
    let Value::Number(p0) = value("arm-pfc", &[], "p0") else { panic!() };
    assert!((p0 - 8.0 / 49.0).abs() < 1e-12);
    assert_eq!(value("arm-pfc", &[("d", Value::Number(4.0))], "h"), Value::Number(7.0));
    // With a target of 50 the round trip at the target is shorter.
    assert_eq!(value("arm-pfc", &[("target", Value::Number(50.0))], "r0"), Value::Number(0.2 + 50.0 / 1250.0));
}

#[test]
fn what_does_not_fit_together_is_refused_with_the_name_and_the_reason() {
    let message = |name: &str, given: &[(&str, f64)]| {
        let given: Vec<_> = given.iter().map(|&(key, x)| (key, Value::Number(x))).collect();
        registry::build(name, &given, &NETWORK).unwrap().unwrap_err().to_string()
    };
    assert_eq!(
        message("arm-pfc", &[("h", 5.0)]),
        "h = 5: must be a whole number of at least d + 1 samples, at most 128"
    );
    assert_eq!(message("arm-pfc", &[("d", 2.5)]), "d = 2.5: must be a whole number");
    assert_eq!(message("arm-pfc", &[("d", 65.0)]), "d = 65: must be a number of at least 1, at most 64");
    assert_eq!(message("pi", &[("a", 1e-5)]), "a = 0.00001: needs b");
    assert_eq!(message("pi", &[("a", 1e-5), ("b", 2e-5)]), "a = 0.00001: must be above b");
    assert_eq!(
        message("pi", &[("frequency", 0.5)]),
        "frequency = 0.5: is too low for this network: the designed b is not above 0"
    );
    assert_eq!(
        message("red", &[("min_th", 10.0), ("max_th", 5.0)]),
        "min_th = 10: must be at least 0 and not above max_th"
    );
    assert_eq!(message("red", &[("weight", 0.0)]), "weight = 0: must be a number above 0, at most 1");
}

fn thresholds() -> [Vec<(&'static str, Value<'static>)>; 3] {
    let number = |name, x| (name, Value::Number(x));
    [
        vec![number("threshold", 0.6)],
        vec![
            number("threshold", 0.95),
            number("threshold_other", 0.3),
            number("threshold_from", 1.5),
            number("threshold_until", 60.0),
        ],
        vec![number("threshold", 0.5), ("threshold_adapt", Value::Flag(true)), number("threshold_loss", 0.02)],
    ]
}

proptest! {
    #![proptest_config(common::config(64))]

    #[test]
    fn the_threshold_function_breaks_nothing(operations in operations(), limit in limits(), seed: u64) {
        for name in names() {
            for given in thresholds() {
                let aqm = || registry::build(name, &given, &NETWORK).unwrap().unwrap();
                let once = run_aqm(name, aqm(), limit, &operations, seed);
                prop_assert_eq!(once, run_aqm(name, aqm(), limit, &operations, seed));
            }
        }
    }
}

#[test]
fn the_threshold_functions_settings_come_back_after_the_algorithms() {
    for name in names() {
        for given in thresholds() {
            let row = registry::find(name).unwrap();
            let in_force = settings(&registry::build(name, &given, &NETWORK).unwrap().unwrap());
            assert!(in_force.ends_with(&given), "{name}: {in_force:?}");
            assert_eq!(settings(&registry::build(row.name, &in_force, &NETWORK).unwrap().unwrap()), in_force, "{name}");
        }
    }
}
