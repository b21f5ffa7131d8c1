//! Regression test of every algorithm in a closed loop with twenty responsive flows, with each parameter varied in
//! turn.
//!
//! `tests/vectors/closed_loop.csv` has one row per setting. After an intended change,
//! `AQUMEN_BLESS=1 cargo test -p aqumen-aqm --test all closed_loop` rewrites it. Algorithms added later are not checked
//! until then.

use std::collections::BTreeMap;
use std::fmt::Write;

use aqumen_aqm::registry::{PROFILES, algorithms, build_qdisc, find};
use aqumen_aqm::{AnyQdisc, DefaultValue, Draw, DropReason, Fates, Handle, Kind, Limit, Packet, PureAck, Qdisc, Value};
use aqumen_units::{Ecn, Instant, Rate, Span};

use crate::common::NETWORK;

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/closed_loop.csv");

const FLOWS: u32 = 20;
const RTT_NS: u64 = 100_000_000;

struct Random(u64);

impl Draw for Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[derive(Default)]
struct Signals {
    new: Vec<Handle>,
    marked: u32,
    early: u32,
    overflow: u32,
}

impl Fates for Signals {
    fn marked(&mut self, handle: Handle) {
        self.new.push(handle);
        self.marked += 1;
    }

    fn dropped(&mut self, handle: Handle, reason: DropReason) {
        self.new.push(handle);
        match reason {
            DropReason::Early => self.early += 1,
            DropReason::Overflow => self.overflow += 1,
        }
    }
}

/// A flow whose window grows by one packet a round trip and halves, once a round trip, at a signal.
#[derive(Clone, Copy)]
struct Flow {
    window: f64,
    next_ns: u64,
    deaf_until_ns: u64,
}

fn packet(flow: u32, number: u32) -> Packet {
    let hash = flow.wrapping_mul(0x9E37_79B9);
    Packet {
        bytes: if flow % 5 == 4 { 300 } else { 1000 },
        ecn: [Ecn::Ect0, Ecn::Ect0, Ecn::NotEct, Ecn::Ect1][flow as usize % 4],
        class: [0, 0, 8, 18, 46][flow as usize % 5],
        segments: 1,
        flow_hash: hash,
        source_hash: hash % 7,
        destination_hash: hash % 3,
        syn: false,
        // The last flow sends acknowledgements.
        ack: (flow == FLOWS - 1).then_some(PureAck { connection: 1, number: 1000 * number, ..PureAck::default() }),
    }
}

/// Runs `seconds`; answers what was counted.
fn run(mut qdisc: AnyQdisc, seconds: u64) -> String {
    let (end_ns, mut now_ns, mut free_ns) = (seconds * 1_000_000_000, 0u64, 0u64);
    let (mut rng, mut seen) = (Random(7), Signals::default());
    let mut flows: Vec<Flow> = (0..u64::from(FLOWS) + 1)
        .map(|flow| Flow { window: 2.0, next_ns: flow * 7_000_000, deaf_until_ns: 0 })
        .collect();
    let mut sent: Vec<(u32, u32)> = Vec::new();
    let (mut in_service, mut departed, mut area, mut probability, mut steps) = (None, 0u64, 0u64, 0.0, 0u64);
    let (mut slow, mut rate_bps) = (false, 8_000_000u64);
    loop {
        let timer = qdisc.next_timer().map_or(u64::MAX, |at| at.as_nanos()).max(now_ns);
        let service = if in_service.is_some() { free_ns } else { u64::MAX };
        let (flow, due) =
            flows.iter().enumerate().map(|(i, flow)| (i, flow.next_ns)).min_by_key(|(i, at)| (*at, *i)).unwrap();
        let next = timer.min(service).min(due);
        if next >= end_ns {
            break;
        }
        area += u64::from(qdisc.backlog().packets) * (next - now_ns);
        now_ns = next;
        let now = Instant::from_nanos(now_ns);
        // From 7/10 to 8/10 of the time the link has half its rate.
        let is_slow = (7 * end_ns / 10..8 * end_ns / 10).contains(&now_ns);
        if is_slow != slow {
            (slow, rate_bps) = (is_slow, if is_slow { 4_000_000 } else { 8_000_000 });
            qdisc.on_rate(Rate::from_bps(rate_bps));
        }
        if next == timer {
            qdisc.on_timer(now, &mut rng);
            probability += qdisc.probability().get();
            steps += 1;
        } else if next == service {
            let takes = in_service.take().unwrap();
            qdisc.transmitted(Span::from_nanos(takes), now);
            departed += 1;
        } else {
            // The last sends at a constant 6 Mbit/s, from 4/10 to 5/10 of the time.
            let constant = flow == FLOWS as usize;
            let handle = sent.len() as Handle;
            let one = packet(flow as u32, handle);
            sent.push((flow as u32, one.bytes));
            qdisc.enqueue(handle, &one, now, &mut rng, &mut seen);
            let rtt = RTT_NS + qdisc.backlog().bytes * 8_000_000_000 / rate_bps;
            let flow = &mut flows[flow];
            if constant {
                flow.next_ns = now_ns + 1_333_333;
                if flow.next_ns < 4 * end_ns / 10 {
                    flow.next_ns = 4 * end_ns / 10;
                } else if flow.next_ns > end_ns / 2 {
                    flow.next_ns = u64::MAX;
                }
            } else {
                flow.window += 1.0 / flow.window;
                flow.next_ns = now_ns + (rtt as f64 / flow.window) as u64;
            }
        }
        if in_service.is_none()
            && let Some(handle) = qdisc.dequeue(now, &mut rng, &mut seen)
        {
            let takes = u64::from(sent[handle as usize].1) * 8_000_000_000 / rate_bps;
            (in_service, free_ns) = (Some(takes), now_ns + takes);
        }
        for handle in std::mem::take(&mut seen.new) {
            let flow = &mut flows[sent[handle as usize].0 as usize];
            if now_ns >= flow.deaf_until_ns {
                flow.window = (flow.window / 2.0).max(1.0);
                flow.deaf_until_ns = now_ns + RTT_NS;
            }
        }
    }
    let totals = *qdisc.totals();
    let Signals { marked, early, overflow, .. } = seen;
    let mut row = format!(
        "{},{},{departed},{marked},{early},{overflow},{},{},{:e},{:e}",
        totals.arrivals,
        totals.accepted,
        area / 1_000_000,
        totals.busy.as_nanos() / 1_000,
        qdisc.probability().get(),
        probability / steps.max(1) as f64,
    );
    let mut state: Vec<String> = Vec::new();
    qdisc.observe(&mut |name, value| state.push(format!("{name}={value:e}")));
    write!(row, ",{}", state.join(" ")).unwrap();
    let mut settings: Vec<String> = Vec::new();
    qdisc.settings(&mut |name, value| {
        settings.push(match value {
            Value::Number(x) => format!("{name}={x:e}"),
            Value::Flag(yes) => format!("{name}={yes}"),
            Value::Choice(word) => format!("{name}={word}"),
        });
    });
    write!(row, ",{}", settings.join(" ")).unwrap();
    row
}

fn row(name: &str, given: &[(&str, Value<'_>)], seconds: u64) -> String {
    let limit = Limit::packets(120);
    match build_qdisc(name, given, &NETWORK, limit).expect("it is registered") {
        Ok(qdisc) => run(qdisc, seconds),
        Err(error) => format!("refused: {error}").replace(',', ";"),
    }
}

/// Each algorithm and profile as it is, and each algorithm with one parameter otherwise than by default.
fn rows() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for profile in PROFILES {
        found.insert(profile.name.to_string(), row(profile.name, &[], 4));
    }
    for algorithm in algorithms() {
        let name = algorithm.name;
        found.insert(name.to_string(), row(name, &[], 8));
        for param in find(name).unwrap().params {
            let mut set = |value: Value<'static>, shown: String| {
                found.insert(format!("{name}:{}={shown}", param.name), row(name, &[(param.name, value)], 3));
            };
            match (param.kind, param.default) {
                (Kind::Flag, DefaultValue::Value(Value::Flag(yes))) => set(Value::Flag(!yes), (!yes).to_string()),
                (Kind::Flag, _) => set(Value::Flag(true), "true".into()),
                (Kind::Choice(words), default) => {
                    for word in words.iter().filter(|word| default != DefaultValue::Value(Value::Choice(word))) {
                        set(Value::Choice(word), word.to_string());
                    }
                }
                (Kind::Number { .. }, DefaultValue::Value(Value::Number(x))) => {
                    for x in [0.5 * x, 1.5 * x + f64::from(u8::from(x == 0.0))] {
                        set(Value::Number(x), x.to_string());
                    }
                }
                (Kind::Number { .. }, _) => {}
            }
        }
    }
    found
}

#[test]
fn every_algorithm_behaves_as_recorded() {
    let found = rows();
    if std::env::var_os("AQUMEN_BLESS").is_some() {
        let mut table = String::from(
            "spec;arrivals,accepted,departed,marked,early,overflow,queue_pkt_ms,busy_us,probability,mean_probability,state,settings\n",
        );
        found.iter().for_each(|(spec, row)| writeln!(table, "{spec};{row}").unwrap());
        return std::fs::write(TABLE, table).unwrap();
    }
    let text = std::fs::read_to_string(TABLE).unwrap();
    let expected: Vec<(&str, &str)> = text.lines().skip(1).filter_map(|line| line.split_once(';')).collect();
    assert!(expected.len() > 200, "{}", expected.len());
    let other: Vec<String> = expected
        .iter()
        .filter(|(spec, row)| found.get(*spec).map(String::as_str) != Some(*row))
        .map(|(spec, row)| format!("{spec}\n  now {}\n  was {row}", found.get(*spec).map_or("gone", |row| row)))
        .collect();
    assert!(other.is_empty(), "{} rows differ:\n{}", other.len(), other[..other.len().min(10)].join("\n"));
}

/// With nothing but DropTail the queue fills; every other algorithm keeps it shorter, and all keep the link busy.
#[test]
fn every_active_algorithm_keeps_the_queue_shorter_than_droptail_and_the_link_busy() {
    let figure =
        |name: &str, column: usize| -> f64 { row(name, &[], 8).split(',').nth(column).unwrap().parse().unwrap() };
    // Packet milliseconds over 8000 ms.
    let droptail = figure("droptail", 6) / 8000.0;
    assert!(droptail > 60.0, "{droptail}");
    for name in ["red", "pi", "pie", "codel", "arm-pfc", "fq-codel", "pi2", "dualpi2", "cake", "paqm", "aqm-mo", "rem"]
    {
        let queue = figure(name, 6) / 8000.0;
        assert!(queue < droptail, "{name}: {queue}, DropTail {droptail}");
        assert!(figure(name, 7) > 0.7 * 8e6, "{name}: {} us busy", figure(name, 7));
    }
}
