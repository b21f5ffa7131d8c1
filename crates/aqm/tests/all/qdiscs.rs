//! Property tests of every discipline of several queues under random operations, and tests common to all disciplines.

use crate::common;
use crate::random;

use std::collections::BTreeMap;

use aqumen_aqm::registry::{self, AnyQdisc, QueueKind};
use aqumen_aqm::{DropReason, Handle, Kind, Limit, Network, Packet, Param, Qdisc, Value};
use aqumen_units::{Bytes, Ecn, Instant, Span};
use proptest::prelude::*;
use random::{Fate, Log, NETWORK, Random, limits};

#[derive(Clone, Debug)]
enum Operation {
    Advance(u64),
    Arrive {
        flow: u32,
        bytes: u32,
        ecn: Ecn,
    },
    /// Several packets at once, of a number of flows.
    Burst(u16, u32),
    Depart,
    /// Several departures.
    Drain(u16),
    /// The timer, if it is due, possibly late.
    Timer,
    /// The timer before it is due.
    SpuriousTimer,
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let ecn = prop::sample::select(vec![Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce]);
    let size = prop_oneof![6 => Just(1000u32), 1 => Just(0), 1 => Just(u32::MAX), 2 => any::<u32>(), 2 => 1..3000u32];
    let flow = prop_oneof![6 => 0..4u32, 2 => 0..2000u32, 1 => any::<u32>()];
    let time = prop_oneof![
        6 => 0u64..10_000_000,
        2 => 0u64..1_000_000_000,
        // Up to a day.
        1 => 0u64..86_400_000_000_000,
    ];
    let operation = prop_oneof![
        4 => time.prop_map(Operation::Advance),
        6 => (flow, size, ecn).prop_map(|(flow, bytes, ecn)| Operation::Arrive { flow, bytes, ecn }),
        1 => (0u16..400, 1..300u32).prop_map(|(packets, flows)| Operation::Burst(packets, flows)),
        4 => Just(Operation::Depart),
        1 => (0u16..100).prop_map(Operation::Drain),
        4 => Just(Operation::Timer),
        1 => Just(Operation::SpuriousTimer),
    ];
    prop::collection::vec(operation, 1..150)
}

fn packet(flow: u32, bytes: u32, ecn: Ecn) -> Packet {
    let hosts = (flow / 3, flow / 7);
    Packet {
        bytes,
        ecn,
        // Best effort, CS1, AF21, EF, CS7.
        class: [0, 8, 18, 46, 56][flow as usize % 5],
        segments: 1,
        flow_hash: flow,
        source_hash: hosts.0,
        destination_hash: hosts.1,
        ..Packet::default()
    }
}

/// Observable state of a discipline.
fn state(qdisc: &AnyQdisc) -> (f64, Option<Instant>, Vec<(&'static str, u64)>) {
    let mut seen = Vec::new();
    qdisc.observe(&mut |name, value| seen.push((name, value.to_bits())));
    (qdisc.probability().get(), qdisc.next_timer(), seen)
}

/// A discipline and the state of its host.
struct Host {
    name: &'static str,
    qdisc: AnyQdisc,
    rng: Random,
    log: Log,
    now: Instant,
    packets: Vec<Packet>,
    /// Queued packets by handle.
    waiting: BTreeMap<Handle, Packet>,
    in_transmission: Option<Packet>,
    sent_bytes: u64,
    dropped_bytes: u64,
    heard: usize,
    /// Bytes of a packet in a burst.
    burst_bytes: u32,
}

impl Host {
    fn new(name: &'static str, qdisc: AnyQdisc, seed: u64) -> Self {
        Host {
            name,
            qdisc,
            rng: Random(seed),
            log: Log::default(),
            now: Instant::ZERO,
            packets: Vec::new(),
            waiting: BTreeMap::new(),
            in_transmission: None,
            sent_bytes: 0,
            dropped_bytes: 0,
            heard: 0,
            burst_bytes: 1000,
        }
    }

    fn arrive(&mut self, packet: Packet) {
        let handle = self.packets.len() as Handle;
        self.packets.push(packet);
        self.waiting.insert(handle, packet);
        self.qdisc.enqueue(handle, &packet, self.now, &mut self.rng, &mut self.log);
        self.hear();
    }

    fn depart(&mut self) {
        if let Some(sent) = self.in_transmission.take() {
            self.qdisc.transmitted(Span::from_millis(1), self.now);
            self.sent_bytes += u64::from(sent.bytes);
        }
        let sent = self.qdisc.dequeue(self.now, &mut self.rng, &mut self.log);
        self.hear();
        match sent {
            Some(handle) => {
                self.log.0.push(Fate::Sent(handle));
                self.heard += 1;
                self.in_transmission = Some(self.waiting.remove(&handle).expect("it waits"));
            }
            None => assert!(self.waiting.is_empty(), "{}: an idle link beside {:?}", self.name, self.waiting),
        }
    }

    /// Checks new marks and drops: only queued packets are marked or dropped, and each is dropped once.
    fn hear(&mut self) {
        for fate in &self.log.0[self.heard..] {
            match fate {
                Fate::Marked(handle) => {
                    let packet = self.waiting.get(handle).expect("a packet that is there is marked");
                    assert!(packet.ecn.is_ect(), "{}: a mark on a packet that cannot carry it", self.name);
                }
                Fate::Dropped(handle, _) => {
                    self.dropped_bytes += u64::from(self.waiting.remove(handle).expect("it waits").bytes);
                }
                Fate::Sent(_) => unreachable!("noted by depart"),
            }
        }
        self.heard = self.log.0.len();
    }

    fn apply(&mut self, operation: &Operation) {
        match *operation {
            Operation::Advance(nanos) => self.now += Span::from_nanos(nanos),
            Operation::Arrive { flow, bytes, ecn } => self.arrive(packet(flow, bytes, ecn)),
            Operation::Burst(packets, flows) => {
                let bytes = self.burst_bytes;
                (0..u32::from(packets)).for_each(|i| self.arrive(packet(i % flows, bytes, Ecn::Ect0)));
            }
            Operation::Depart => self.depart(),
            Operation::Drain(packets) => {
                for _ in 0..packets {
                    self.now += Span::from_micros(800);
                    self.depart();
                }
            }
            Operation::Timer => {
                if self.qdisc.next_timer().is_some_and(|due| due <= self.now) {
                    self.qdisc.on_timer(self.now, &mut self.rng);
                    assert!(
                        self.qdisc.next_timer().unwrap() > self.now,
                        "{}: the timer is due again at once",
                        self.name
                    );
                }
            }
            Operation::SpuriousTimer => {
                if self.qdisc.next_timer().is_none_or(|due| due > self.now) {
                    let before = state(&self.qdisc);
                    self.qdisc.on_timer(self.now, &mut self.rng);
                    assert_eq!(state(&self.qdisc), before, "{}: a spurious timer changed something", self.name);
                }
            }
        }
    }

    /// Packets and bytes in = out + dropped + held, and everything within its bounds.
    fn check(&self, limit: Limit) {
        let name = self.name;
        let p = self.qdisc.probability().get();
        assert!((0.0..=1.0).contains(&p), "{name}: p = {p}");
        self.qdisc.observe(&mut |key, value| assert!(value.is_finite(), "{name}: {key} = {value}"));
        let (totals, backlog) = (*self.qdisc.totals(), self.qdisc.backlog());
        assert!(backlog.packets <= limit.packets && backlog.bytes <= limit.bytes.0, "{name}: {backlog:?}");
        assert_eq!(backlog.packets as usize, self.waiting.len(), "{name}");
        assert_eq!(backlog.bytes, self.waiting.values().map(|packet| u64::from(packet.bytes)).sum::<u64>(), "{name}");
        assert_eq!(totals.arrivals, self.packets.len() as u64);
        let held = u64::from(backlog.packets) + u64::from(self.in_transmission.is_some());
        let dropped = totals.early_dropped + totals.overflow_dropped;
        assert_eq!(totals.arrivals, totals.departures + dropped + held, "{name}: {totals:?}");
        let in_transmission = self.in_transmission.map_or(0, |packet| u64::from(packet.bytes));
        assert_eq!(totals.departed_bytes, self.sent_bytes);
        assert_eq!(
            totals.arrived_bytes,
            self.sent_bytes + in_transmission + self.dropped_bytes + backlog.bytes,
            "{name}: {totals:?}"
        );
        assert!(totals.accepted <= totals.arrivals);
    }
}

fn run(name: &'static str, qdisc: AnyQdisc, limit: Limit, operations: &[Operation], seed: u64) -> Vec<Fate> {
    let mut host = Host::new(name, qdisc, seed);
    for operation in operations {
        host.apply(operation);
        host.check(limit);
    }
    let totals = *host.qdisc.totals();
    let count = |wanted: fn(&Fate) -> bool| host.log.0.iter().filter(|fate| wanted(fate)).count() as u64;
    assert_eq!(count(|fate| matches!(fate, Fate::Marked(_))), totals.marked);
    assert_eq!(count(|fate| matches!(fate, Fate::Dropped(_, DropReason::Early))), totals.early_dropped);
    assert_eq!(count(|fate| matches!(fate, Fate::Dropped(_, DropReason::Overflow))), totals.overflow_dropped);
    host.log.0
}

/// Every discipline of several queues.
fn rows() -> Vec<&'static registry::Algorithm> {
    registry::algorithms().filter(|row| row.kind() == QueueKind::Multi).collect()
}

fn build(name: &str, given: &[(&str, Value<'_>)], limit: Limit) -> AnyQdisc {
    registry::build_qdisc(name, given, &NETWORK, limit).unwrap().unwrap()
}

proptest! {
    #![proptest_config(common::config(128))]

    #[test]
    fn packets_and_bytes_are_conserved_and_runs_repeat(operations in operations(), limit in limits(), seed: u64) {
        for row in rows() {
            let run = || run(row.name, build(row.name, &[], limit), limit, &operations, seed);
            prop_assert_eq!(run(), run());
        }
    }

    #[test]
    fn packets_and_bytes_are_conserved_under_profiles(operations in operations(), limit in limits(), seed: u64) {
        for profile in registry::PROFILES {
            if registry::find(profile.name).is_some_and(|row| row.kind() == QueueKind::Multi) {
                run(profile.name, build(profile.name, &[], limit), limit, &operations, seed);
            }
        }
    }
}

proptest! {
    #![proptest_config(common::config(48))]

    #[test]
    fn a_buffer_in_bytes_is_one_in_packets_where_packets_are_equal(
        operations in operations(),
        packets in 1..400u32,
        bytes in 40..9000u32,
        switches in any::<u64>(),
        seed: u64,
    ) {
        let network = Network { packet_bytes: f64::from(bytes), buffer_pkts: f64::from(packets), ..NETWORK };
        let limits = [
            Limit::packets(packets),
            Limit { packets: u32::MAX, bytes: Bytes(u64::from(packets) * u64::from(bytes)) },
        ];
        let fates = |name: &'static str, given: &[(&str, Value<'_>)], limit: Limit| {
            let qdisc = registry::build_qdisc(name, given, &network, limit).unwrap().ok()?;
            let mut host = Host { burst_bytes: bytes, ..Host::new(name, qdisc, seed) };
            for operation in &operations {
                match *operation {
                    Operation::Arrive { flow, ecn, .. } => host.apply(&Operation::Arrive { flow, bytes, ecn }),
                    _ => host.apply(operation),
                }
            }
            Some(host.log.0)
        };
        let profiles = registry::PROFILES.iter().map(|profile| profile.name);
        for name in registry::algorithms().map(|row| row.name).chain(profiles) {
            // As it comes, and with its flags and words drawn.
            let drawn: Vec<_> = registry::find(name).unwrap().params.iter().enumerate().filter_map(|(k, param)| {
                let draw = switches.rotate_left(k as u32);
                match param.kind {
                    Kind::Flag => Some((param.name, Value::Flag(draw & 1 == 1))),
                    Kind::Choice(words) => Some((param.name, Value::Choice(words[draw as usize % words.len()]))),
                    Kind::Number { .. } => None,
                }
            }).collect();
            for given in [&[][..], &drawn] {
                let [in_packets, in_bytes] = limits.map(|limit| fates(name, given, limit));
                prop_assert_eq!(in_packets, in_bytes, "{} with {:?}", name, given);
            }
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
    #![proptest_config(common::config(1000))]

    #[test]
    fn any_parameters_are_refused_or_work(
        which in 0..rows().len(),
        picks in prop::collection::vec((any::<prop::sample::Index>(), magnitudes()), 0..5),
        operations in operations(),
        limit in limits(),
    ) {
        let row = rows()[which];
        let given: Vec<_> = picks.iter().map(|(index, x)| {
            let param = index.get(row.params);
            let value = match param.kind {
                Kind::Number { .. } => Value::Number(*x),
                Kind::Flag => Value::Flag(*x < 1.0),
                Kind::Choice(words) => Value::Choice(words[(x.abs() as usize) % words.len()]),
            };
            (param.name, value)
        }).collect();
        if let Ok(qdisc) = registry::build_qdisc(row.name, &given, &NETWORK, limit).unwrap() {
            run(row.name, qdisc, limit, &operations, 1);
        }
    }
}

#[test]
fn a_name_builds_the_discipline_of_its_kind() {
    let limit = Limit::packets(300);
    for row in registry::algorithms() {
        let qdisc = build(row.name, &[], limit);
        assert_eq!(matches!(qdisc, AnyQdisc::Fifo(_)), row.kind() == QueueKind::Single, "{}", row.name);
        // Only those of one queue are AQMs by themselves.
        assert_eq!(registry::build(row.name, &[], &NETWORK).is_some(), row.kind() == QueueKind::Single, "{}", row.name);
        assert_eq!(registry::find(row.name).map(|found| found.name), Some(row.name));
    }
    // A profile of one queue, too.
    assert!(matches!(build("red50", &[], limit), AnyQdisc::Fifo(_)));
    assert!(registry::build_qdisc("no-such", &[], &NETWORK, limit).is_none());
    let mut names: Vec<_> = registry::algorithms().map(|row| row.name).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
}

fn settings(qdisc: &AnyQdisc) -> Vec<(&'static str, Value<'static>)> {
    let mut all = Vec::new();
    qdisc.settings(&mut |name, value| all.push((name, value)));
    all
}

#[test]
fn the_settings_in_force_build_the_same_discipline_again() {
    let limit = Limit::packets(300);
    let other = Network { flows: 30.0, target_pkts: 20.0, base_rtt_s: 0.05, packet_bytes: 700.0, ..NETWORK };
    for row in rows() {
        let qdisc = build(row.name, &[], limit);
        let in_force = settings(&qdisc);
        let again = registry::build_qdisc(row.name, &in_force, &other, limit).unwrap().unwrap();
        assert_eq!(settings(&again), in_force, "{}", row.name);
        assert_eq!(again.next_timer(), qdisc.next_timer(), "{}", row.name);
        let places: Vec<_> =
            in_force.iter().map(|(key, _)| row.params.iter().position(|p| p.name == *key).unwrap()).collect();
        assert!(places.is_sorted(), "{}: {in_force:?}", row.name);
        // Every default of the table is in force, but for choices that are not made.
        for param in row.params {
            if let (aqumen_aqm::DefaultValue::Value(default), Some((_, value))) =
                (param.default, in_force.iter().find(|(key, _)| *key == param.name))
            {
                let equal = match (*value, default) {
                    // A time goes through nanoseconds.
                    (Value::Number(x), Value::Number(y)) => (x - y).abs() <= 1e-12 * y.abs(),
                    (x, y) => x == y,
                };
                assert!(equal, "{} {}: {value} is not {default}", row.name, param.name);
            }
        }
    }
}

#[test]
fn less_memory_in_a_run_holds_for_the_packets_that_come_then() {
    let at = |ms| Instant::ZERO + Span::from_millis(ms);
    for name in ["fq-codel", "cake"] {
        let mut qdisc = build(name, &[], Limit::packets(100));
        let (mut rng, mut fates) = (Random(3), Log::default());
        for handle in 0..60 {
            qdisc.enqueue(handle, &packet(handle % 3, 1000, Ecn::Ect0), at(1), &mut rng, &mut fates);
        }
        assert_eq!(qdisc.backlog().packets, 60, "{name}");
        qdisc.retune(build(name, &[("memory", Value::Number(20_000.0))], Limit::packets(100)), at(2));
        qdisc.enqueue(60, &packet(0, 1000, Ecn::Ect0), at(3), &mut rng, &mut fates);
        // A packet takes no less memory than it is long.
        assert!(qdisc.backlog().packets <= 20, "{name}: {:?}", qdisc.backlog());
    }
}

#[test]
fn new_parameters_are_taken_while_packets_wait() {
    let limit = Limit::packets(300);
    let at = |ms| Instant::ZERO + Span::from_millis(ms);
    for (name, key, value) in [
        ("fq-codel", "limit", Value::Number(20.0)),
        ("fq-codel", "target", Value::Number(0.05)),
        ("fq-pie", "interval", Value::Number(0.005)),
        ("cake", "quantum", Value::Number(300.0)),
        ("cake", "limit", Value::Number(20.0)),
        ("dualpi2", "tupdate", Value::Number(0.005)),
        ("dualpi2", "scheduler", Value::Choice("ts-fifo")),
        ("dualpi2", "limit", Value::Number(20.0)),
        ("dualpi2", "min_backlog", Value::Number(3028.0)),
        ("sfq", "perturb", Value::Number(2.0)),
        ("sfq", "limit", Value::Number(20.0)),
        ("cake", "rate", Value::Number(1e6)),
        ("drr", "quantum", Value::Number(300.0)),
        ("codel", "target", Value::Number(0.05)),
    ] {
        let mut qdisc = build(name, &[], limit);
        let (mut rng, mut fates) = (Random(3), Log::default());
        for handle in 0..60 {
            qdisc.enqueue(handle, &packet(handle % 3, 1000, Ecn::Ect0), at(u64::from(handle)), &mut rng, &mut fates);
        }
        let waiting = qdisc.backlog();
        let changed = build(name, &[(key, value)], limit);
        assert_eq!(qdisc.fixed(&changed), Ok(()));
        qdisc.retune(changed, at(60));
        assert_eq!(qdisc.backlog(), waiting, "{name}");
        assert_eq!(settings(&qdisc), settings(&build(name, &[(key, value)], limit)), "{name}");
        // A clock goes on from its last tick, which is not ahead.
        assert!(qdisc.next_timer().is_none_or(|due| due <= at(60) + Span::from_secs(2)), "{name}");
        // A new limit holds from the next packet on; nobody is forgotten.
        let before = qdisc.totals().overflow_dropped;
        qdisc.enqueue(60, &packet(0, 1000, Ecn::Ect0), at(61), &mut rng, &mut fates);
        assert_eq!(qdisc.totals().overflow_dropped > before, key == "limit", "{name}");
        while qdisc.dequeue(at(62), &mut rng, &mut fates).is_some() {
            qdisc.transmitted(Span::from_millis(1), at(62));
        }
        let totals = qdisc.totals();
        assert_eq!(totals.arrivals, totals.departures + totals.early_dropped + totals.overflow_dropped, "{name}");
    }
    // Another discipline leaves it as it is; so it does not get so far.
    let mut drr = build("drr", &[], limit);
    drr.retune(build("pi", &[], limit), at(0));
    assert!(matches!(drr, AnyQdisc::Drr(_)));
}

#[test]
fn every_discipline_given_its_own_parameters_goes_on_with_what_waits() {
    let limit = Limit::packets(300);
    let at = |ms| Instant::ZERO + Span::from_millis(ms);
    for row in registry::algorithms() {
        let mut qdisc = build(row.name, &[], limit);
        let (mut rng, mut log) = (Random(5), Log::default());
        for handle in 0..60 {
            let now = at(u64::from(handle));
            while let Some(due) = qdisc.next_timer().filter(|due| *due <= now) {
                qdisc.on_timer(due, &mut rng);
            }
            qdisc.enqueue(handle, &packet(handle % 3, 1000, Ecn::Ect0), now, &mut rng, &mut log);
        }
        let before = (qdisc.backlog(), qdisc.next_timer(), qdisc.probability(), settings(&qdisc));
        let again = build(row.name, &[], limit);
        assert_eq!(qdisc.fixed(&again), Ok(()), "{}", row.name);
        qdisc.retune(again, at(59));
        assert_eq!((qdisc.backlog(), qdisc.probability()), (before.0, before.2), "{}", row.name);
        assert_eq!(settings(&qdisc), before.3, "{}", row.name);
        assert_eq!(qdisc.next_timer(), before.1, "{}", row.name);
        assert!(qdisc.memory_bytes() > size_of::<AnyQdisc>(), "{}", row.name);
    }
}

/// Fates of packets at an arrival rate of 1.5 times the service rate, and of half of it in every other second. At tick
/// `again` the discipline is given its own parameters.
fn fates(name: &str, given: &[(&str, Value<'_>)], again: Option<u32>) -> Vec<Fate> {
    let limit = Limit::packets(300);
    let mut qdisc = build(name, given, limit);
    let (mut rng, mut log, mut sending) = (Random(7), Log::default(), None);
    for tick in 0..15_000u32 {
        let now = Instant::from_nanos(u64::from(tick) * 400_000);
        while let Some(due) = qdisc.next_timer().filter(|due| *due <= now) {
            qdisc.on_timer(due, &mut rng);
        }
        if sending.is_some_and(|end| end <= now) {
            qdisc.transmitted(Span::from_micros(800), now);
            sending = None;
        }
        if tick % 4 != 3 && (tick / 2500 % 2 == 0 || tick % 4 == 0) {
            let ecn = [Ecn::Ect0, Ecn::NotEct, Ecn::Ect1][tick as usize % 3];
            qdisc.enqueue(tick, &packet(tick % 5, 1000, ecn), now, &mut rng, &mut log);
        }
        if sending.is_none()
            && let Some(handle) = qdisc.dequeue(now, &mut rng, &mut log)
        {
            log.0.push(Fate::Sent(handle));
            sending = Some(now + Span::from_micros(800));
        }
        if again == Some(tick) {
            qdisc.retune(build(name, given, limit), now);
        }
    }
    log.0
}

#[test]
fn a_discipline_given_its_own_parameters_does_to_each_packet_what_it_would_have_done() {
    for row in registry::algorithms() {
        // The probability in force is all that the laws of these keep: docs/links.md.
        if row.name.contains("arm-pfc") || row.name.contains("aqm-mo") {
            continue;
        }
        let each = |param: &Param| match param.kind {
            Kind::Choice(values) => values.iter().map(|value| vec![(param.name, Value::Choice(value))]).collect(),
            Kind::Flag => [true, false].map(|on| vec![(param.name, Value::Flag(on))]).to_vec(),
            _ => Vec::new(),
        };
        for given in row.params.iter().flat_map(each).chain([Vec::new()]) {
            let undisturbed = fates(row.name, &given, None);
            // While the queue grows, and as it shrinks.
            for again in [6000, 8001] {
                let retuned = fates(row.name, &given, Some(again));
                let differs = retuned.iter().zip(&undisturbed).find(|(ours, theirs)| ours != theirs);
                assert_eq!((differs, retuned.len()), (None, undisturbed.len()), "{} {given:?} at {again}", row.name);
            }
        }
    }
}

#[test]
fn a_flow_takes_the_memory_of_its_queue() {
    let limit = Limit::packets(300);
    for row in registry::algorithms() {
        let has_queues = row.params.iter().any(|param| param.name == "queues");
        if !has_queues {
            assert_eq!(build(row.name, &[], limit).flow_bytes(), 0, "{}", row.name);
            continue;
        }
        // One tin: CAKE has as many queues in each.
        let tins = row.params.iter().any(|param| param.name == "tins").then_some(("tins", Value::Choice("besteffort")));
        let of = |queues: f64| {
            let values: Vec<_> = [("queues", Value::Number(queues))].into_iter().chain(tins).collect();
            build(row.name, &values, limit)
        };
        let (few, many) = (of(1024.0), of(3072.0));
        assert_eq!(many.memory_bytes() - few.memory_bytes(), 2048 * many.flow_bytes(), "{}", row.name);
        // Head and tail of what waits, place in the scheduler's round, credit: four words of 4 or 8 bytes at the least.
        assert!((16..1000).contains(&few.flow_bytes()), "{}: {}", row.name, few.flow_bytes());
    }
}

#[test]
fn a_clock_goes_on_in_its_phase() {
    let limit = Limit::packets(300);
    let at = |ms| Instant::ZERO + Span::from_millis(ms);
    // DualPI2 was due at 16 ms. 10 ms in, with 12 ms in place of 16: due at 12. With 4 ms it is late, and due at once.
    for (tupdate, due) in [(0.012, 12), (0.004, 10), (0.05, 50)] {
        let mut dual = build("dualpi2", &[], limit);
        dual.retune(build("dualpi2", &[("tupdate", Value::Number(tupdate))], limit), at(10));
        assert_eq!(dual.next_timer(), Some(at(due)));
    }
    // SFQ's hash: a period that stays keeps its phase, another counts from the change.
    let of = |perturb: f64| build("sfq", &[("perturb", Value::Number(perturb))], limit);
    for (new, due) in [(5.0, Some(5000)), (7.0, Some(8000)), (0.0, None)] {
        let mut sfq = of(5.0);
        sfq.retune(of(new), at(1000));
        assert_eq!(sfq.next_timer(), due.map(at));
    }
}

#[test]
fn the_period_of_updates_is_that_between_two_wherever_the_first_lies() {
    let limit = Limit::packets(300);
    for (name, key, value, period) in [
        ("pie", "start", 1.0, Some(Span::from_millis(15))),
        ("pi2", "interval", 0.016, Some(Span::from_millis(16))),
        ("dualpi2", "tupdate", 0.016, Some(Span::from_millis(16))),
        ("sfq", "perturb", 10.0, Some(Span::from_secs(10))),
        ("codel", "target", 0.005, None),
    ] {
        assert_eq!(build(name, &[(key, Value::Number(value))], limit).update_period(), period, "{name}");
    }
}

#[test]
fn what_packets_wait_by_cannot_change() {
    let limit = Limit::packets(300);
    for (name, key, value) in [
        ("fq-codel", "queues", Value::Number(64.0)),
        ("fq-pie", "queues", Value::Number(64.0)),
        ("cake", "isolation", Value::Choice("flows")),
        ("cake", "tins", Value::Choice("besteffort")),
        ("sfq", "queues", Value::Number(64.0)),
        ("drr", "queues", Value::Number(64.0)),
    ] {
        let error = build(name, &[], limit).fixed(&build(name, &[(key, value)], limit)).unwrap_err();
        assert_eq!(error.to_string(), format!("{key} = {value}: cannot change during the run"));
    }
}

#[test]
fn what_does_not_fit_is_refused_with_the_name_and_the_reason() {
    let message = |name: &str, key: &str, x: f64| {
        let given = [(key, Value::Number(x))];
        registry::build_qdisc(name, &given, &NETWORK, Limit::packets(300)).unwrap().unwrap_err().to_string()
    };
    assert_eq!(message("drr", "queues", 0.0), "queues = 0: must be a number of at least 1, at most 65536");
    assert_eq!(message("sfq", "queues", 2.5), "queues = 2.5: must be a whole number");
    assert_eq!(message("fq-codel", "target", -1.0), "target = -1: must be a number above 0 (s)");
    assert_eq!(
        message("sfq", "target", 1.0),
        "target: not a parameter; known: queues, ways, perturb, head_drop, quantum, limit, depth, flows, rehash"
    );
}

#[test]
fn updates_that_would_come_too_close_are_refused_whatever_makes_them_so() {
    let refused = |name: &str, given: &[(&str, Value<'_>)], network: &Network| {
        registry::build_qdisc(name, given, network, Limit::packets(300)).unwrap().unwrap_err().to_string()
    };
    let closer = |nanos: u64| format!("gives an update period of {nanos} ns; it must be at least 1 us");
    for (name, key, value, nanos) in [
        ("pi2", "interval", 1e-9, 1),
        ("pie", "interval", 1e-9, 1),
        ("fq-pie", "interval", 999e-9, 999),
        ("rem", "interval", 1e-9, 1),
        ("sfq", "perturb", 1e-9, 1),
        // Derived: R0 / d, d = 5; half the target's 1 / 1250 s.
        ("arm-pfc", "r0", 1e-9, 1),
        ("arm-pfc-adaptive", "r0", 1e-6, 200),
    ] {
        let message = refused(
            name,
            &[("ecn", Value::Flag(true)), (key, Value::Number(value))][usize::from(name == "sfq")..],
            &NETWORK,
        );
        assert_eq!(message, format!("{key} = {}: {}", Value::Number(value), closer(nanos)), "{name}");
    }
    let message = refused("paqm", &[("target", Value::Number(1e-6))], &NETWORK);
    assert!(message.starts_with("target = 0.000001: gives an update period of 1 ns"), "{message}");
    // Nothing was given: the network itself has a round trip of 1 ns.
    let tiny = Network { base_rtt_s: 1e-9, target_pkts: 1e-9, ..NETWORK };
    let message = refused("arm-pfc", &[], &tiny);
    assert!(message.starts_with("the nominal network gives an update period of"), "{message}");
    // A microsecond is long enough.
    for (name, key) in [("pi2", "interval"), ("rem", "interval"), ("sfq", "perturb"), ("dualpi2", "tupdate")] {
        build(name, &[(key, Value::Number(1e-6))], Limit::packets(300));
    }
}

/// Bytes that each of ten backlogged flows gets in `packets` transmissions; flow k sends packets of 100 (k + 1) bytes.
fn shares(name: &str, packets: u32) -> Vec<u64> {
    const FLOWS: u32 = 10;
    let bytes = |flow: u32| 100 * (flow + 1);
    // So many queues that the flows do not meet; and no shares by hosts.
    let given = [("queues", Value::Number(65_536.0)), ("isolation", Value::Choice("flows"))];
    let mut qdisc = build(name, &given[..1 + usize::from(name == "cake")], Limit::packets(100_000));
    let (mut rng, mut log) = (Random(7), Log::default());
    for handle in 0..packets * FLOWS {
        let flow = handle % FLOWS;
        let packet = Packet { class: 0, ..packet(flow, bytes(flow), Ecn::NotEct) };
        qdisc.enqueue(handle, &packet, Instant::ZERO, &mut rng, &mut log);
    }
    let mut sent = vec![0; FLOWS as usize];
    for _ in 0..packets {
        let flow = qdisc.dequeue(Instant::ZERO, &mut rng, &mut log).unwrap() % FLOWS;
        sent[flow as usize] += u64::from(bytes(flow));
    }
    sent
}

#[test]
fn round_robin_shares_packets_and_deficit_round_robin_bytes() {
    // SFQ: 1000 turns of ten flows are 100 packets each.
    let packets: Vec<_> = (1..).zip(shares("sfq", 1000)).map(|(k, bytes)| bytes / (100 * k)).collect();
    assert_eq!(packets, [100; 10]);
    // The others: within a quantum (1514 B) and a packet (1000 B) of each other.
    for name in ["drr", "fq-codel", "fq-pie", "cake"] {
        let bytes = shares(name, 1000);
        let spread = bytes.iter().max().unwrap() - bytes.iter().min().unwrap();
        assert!(spread <= 1514 + 1000, "{name}: {bytes:?}");
    }
}
