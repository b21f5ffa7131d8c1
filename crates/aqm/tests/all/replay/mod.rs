//! Common helpers for replaying the test vectors in `vectors/`.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};

use aqumen_aqm::{Aqm, Cx, DropReason, Limit, Packet, QueueView, Red, RedCurve, RedParams, Totals, Verdict};
use aqumen_units::{Bytes, Ecn, Instant, Probability};
use serde_json::Value;

use crate::common::Fixed;

pub(crate) fn load(name: &str) -> Value {
    let path = format!("{}/vectors/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

pub(crate) fn number(of: &Value, key: &str) -> f64 {
    of[key].as_f64().unwrap_or_else(|| panic!("no number {key} in {of}"))
}

pub(crate) fn flag(of: &Value, key: &str) -> bool {
    of[key].as_bool().or(of[key].as_i64().map(|x| x != 0)).unwrap_or_else(|| panic!("no flag {key} in {of}"))
}

pub(crate) fn rows(file: &Value) -> &[Value] {
    file["rows"].as_array().unwrap()
}

/// Compares values with the tolerance of a vector file, and prints the largest error for `aqumen validate vectors`.
pub(crate) struct Compare {
    name: String,
    algorithm: String,
    relative: f64,
    absolute: f64,
    figures: Cell<u64>,
    /// Largest error relative to the tolerance.
    worst: Cell<f64>,
}

impl Compare {
    pub(crate) fn of(file: &Value) -> Self {
        let tolerance = number(file, "tolerance");
        let (relative, absolute) = match file["tolerance_kind"].as_str().unwrap() {
            "absolute" => (0.0, tolerance),
            "relative" => (tolerance, number(file, "tolerance_abs")),
            kind => panic!("unknown tolerance kind {kind}"),
        };
        let text = |key: &str| file[key].as_str().unwrap_or_default().to_string();
        let (figures, worst) = (Cell::new(0), Cell::new(0.0));
        Compare { name: text("name"), algorithm: text("algorithm"), relative, absolute, figures, worst }
    }

    pub(crate) fn check(&self, where_: &str, key: &str, got: f64, expected: f64) {
        let room = self.relative * expected.abs() + self.absolute;
        let error = (got - expected).abs();
        self.figures.set(self.figures.get() + 1);
        self.worst.set(self.worst.get().max(error / room));
        assert!(error <= room, "{where_}: {key} is {got}, expected {expected}");
    }
}

impl Drop for Compare {
    fn drop(&mut self) {
        let verdict = if std::thread::panicking() { "different" } else { "equal" };
        let Compare { name, algorithm, figures, worst, .. } = self;
        println!("vector\t{name}\t{algorithm}\t{}\t{:e}\t{verdict}", figures.get(), worst.get());
    }
}

pub(crate) fn observed(observe: impl FnOnce(&mut dyn FnMut(&'static str, f64))) -> BTreeMap<&'static str, f64> {
    let mut seen = BTreeMap::new();
    observe(&mut |name, value| {
        seen.insert(name, value);
    });
    seen
}

fn view<'a>(queue: &VecDeque<u32>, limit: u64, totals: &'a Totals) -> QueueView<'a> {
    QueueView {
        packets: queue.len() as u32,
        bytes: queue.iter().map(|&bytes| u64::from(bytes)).sum(),
        limit: Limit { packets: limit as u32, bytes: Bytes(u64::MAX) },
        totals,
    }
}

/// Host of the event vectors: the packet in transmission counts as queued.
pub(crate) struct Host<A> {
    pub(crate) aqm: A,
    pub(crate) queue: VecDeque<u32>,
    full: fn(&Host<A>) -> bool,
    pub(crate) limit: u64,
    totals: Totals,
}

impl<A: Aqm> Host<A> {
    pub(crate) fn new(aqm: A, limit: u64, full: fn(&Host<A>) -> bool) -> Self {
        Host { aqm, queue: VecDeque::new(), full, limit, totals: Totals::default() }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.queue.iter().map(|&bytes| u64::from(bytes)).sum()
    }

    pub(crate) fn event(&mut self, event: &Value) -> Option<&'static str> {
        let now = Instant::from_nanos(event["t_ns"].as_u64().unwrap());
        match event["op"].as_str().unwrap() {
            "enq" => {
                let ecn = if flag(event, "ect") { Ecn::Ect0 } else { Ecn::NotEct };
                let packet = Packet { bytes: number(event, "size") as u32, ecn, segments: 1, ..Packet::default() };
                Some(self.arrive(&packet, now, number(event, "u")))
            }
            "deq" => {
                self.queue.pop_front().unwrap();
                self.aqm.on_departure(now);
                None
            }
            "deq_empty" => {
                self.aqm.on_idle(now);
                None
            }
            "tick" => {
                assert_eq!(self.aqm.next_timer(), Some(now));
                let totals = self.totals;
                let queue = view(&self.queue, self.limit, &totals);
                self.aqm.on_timer(&mut Cx { now, queue, rng: &mut Fixed(1.0) });
                None
            }
            op => panic!("unknown operation {op}"),
        }
    }

    pub(crate) fn arrive(&mut self, packet: &Packet, now: Instant, u: f64) -> &'static str {
        let full = (self.full)(self);
        let totals = self.totals;
        let cx = &mut Cx { now, queue: view(&self.queue, self.limit, &totals), rng: &mut Fixed(u) };
        let verdict = self.aqm.on_arrival(packet, cx);
        self.totals.arrivals += 1;
        if full {
            self.aqm.on_overflow(packet, cx);
            return "drop_overflow";
        }
        if !matches!(verdict, Verdict::Drop(_)) {
            self.queue.push_back(packet.bytes);
        }
        match verdict {
            Verdict::Pass => "enq",
            Verdict::Mark => "mark",
            Verdict::Drop(DropReason::Early) => "drop_early",
            Verdict::Drop(DropReason::Overflow) => "drop_overflow",
        }
    }
}

pub(crate) fn red(params: &Value) -> Red {
    let (min_th, max_th) = (number(params, "th_min"), number(params, "th_max"));
    Red::new(RedParams {
        curve: RedCurve::new(min_th, max_th, 1.0 / number(params, "linterm"), flag(params, "gentle")).unwrap(),
        weight: number(params, "w_q"),
        link_pps: number(params, "ptc"),
        wait: flag(params, "wait"),
        bytes: flag(params, "bytes_"),
        queue_in_bytes: flag(params, "qib"),
        mean_packet: number(params, "mean_pktsize") as u32,
        use_mark_p: flag(params, "use_mark_p"),
        mark_p: Probability::new(number(params, "mark_p")).unwrap(),
        linux_spacing: false,
        mark_above: false,
        ecn: flag(params, "setbit"),
    })
    .unwrap()
}

/// A host whose limit is in packets, or in bytes if the average is.
pub(crate) fn red_host<A: Aqm>(aqm: A, params: &Value) -> Host<A> {
    let (limit, mean) = (number(params, "limit") as u64, number(params, "mean_pktsize") as u64);
    if flag(params, "qib") {
        Host::new(aqm, limit * mean, |host| host.bytes() >= host.limit)
    } else {
        Host::new(aqm, limit, |host| host.queue.len() as u64 >= host.limit)
    }
}

/// Compares the state of RED or a variant with an event's; returns the observed state.
pub(crate) fn check_red<A: Aqm>(
    compare: &Compare,
    where_: &str,
    host: &Host<A>,
    unit: f64,
    event: &Value,
) -> BTreeMap<&'static str, f64> {
    let (expected, got) = (&event["state"], observed(|visit| host.aqm.observe(visit)));
    assert_eq!(host.queue.len() as f64, number(expected, "q"), "{where_}");
    compare.check(where_, "avg", got["average_queue"] * unit, number(expected, "avg"));
    compare.check(where_, "count", got["count"], number(expected, "count"));
    compare.check(where_, "prob1", got["base_probability"], number(expected, "prob1"));
    compare.check(where_, "prob", got["spread_probability"], number(expected, "prob"));
    assert_eq!(got["above_min"] != 0.0, flag(expected, "old"), "{where_}");
    assert_eq!(got["idle"] != 0.0, flag(expected, "idle"), "{where_}");
    got
}
