//! Replays the known answers in `vectors/`. What they are and where they come from: `vectors/README.md`.

use std::collections::{BTreeMap, VecDeque};

use aqumen_aqm::arm_pfc::design::{Model, Predictor};
use aqumen_aqm::{
    Aqm, ArmPfc, ArmPfcParams, Crossover, Cx, Draw, DropReason, DropTail, Limit, Observation, Packet, Pi, PiController,
    PiGains, QueueView, Red, RedCurve, RedParams, SampledLaw, TcpPlant, Totals, Variant, Verdict,
};
use aqumen_units::{Bytes, Ecn, Instant, Probability};
use serde_json::Value;

fn load(name: &str) -> Value {
    let path = format!("{}/vectors/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn number(of: &Value, key: &str) -> f64 {
    of[key].as_f64().unwrap_or_else(|| panic!("no number {key} in {of}"))
}

fn flag(of: &Value, key: &str) -> bool {
    of[key].as_bool().or(of[key].as_i64().map(|x| x != 0)).unwrap_or_else(|| panic!("no flag {key} in {of}"))
}

fn rows(file: &Value) -> &[Value] {
    file["rows"].as_array().unwrap()
}

/// Compares as the file asks.
struct Compare {
    relative: f64,
    absolute: f64,
}

impl Compare {
    fn of(file: &Value) -> Self {
        let tolerance = number(file, "tolerance");
        match file["tolerance_kind"].as_str().unwrap() {
            "absolute" => Compare { relative: 0.0, absolute: tolerance },
            "relative" => Compare { relative: tolerance, absolute: number(file, "tolerance_abs") },
            kind => panic!("unknown tolerance kind {kind}"),
        }
    }

    fn check(&self, where_: &str, key: &str, got: f64, expected: f64) {
        let room = self.relative * expected.abs() + self.absolute;
        assert!((got - expected).abs() <= room, "{where_}: {key} is {got}, expected {expected}");
    }
}

fn observed(observe: impl FnOnce(&mut dyn FnMut(&'static str, f64))) -> BTreeMap<&'static str, f64> {
    let mut seen = BTreeMap::new();
    observe(&mut |name, value| {
        seen.insert(name, value);
    });
    seen
}

fn sample(queue_pkts: f64) -> Observation {
    Observation { queue_pkts, ..Observation::default() }
}

#[test]
fn pi_follows_its_law() {
    for name in ["pi_classic", "pi_saturating", "pi_qold_saturated"] {
        let file = load(name);
        let (compare, params) = (Compare::of(&file), &file["params"]);
        let gains = PiGains::new(number(params, "a"), number(params, "b")).unwrap();
        let mut pi = Pi::new(gains, number(params, "fs"), number(params, "qref"));
        for (k, row) in rows(&file).iter().enumerate() {
            let p = pi.step(0, &sample(number(row, "q")));
            compare.check(&format!("{name} row {k}"), "p", p.get(), number(row, "p"));
        }
    }
}

#[test]
fn pi_is_designed_by_its_rule() {
    let file = load("pi_gains");
    let compare = Compare::of(&file);
    for row in rows(&file) {
        let plant = TcpPlant::new(number(row, "N"), number(row, "C"), number(row, "R")).unwrap();
        let pi = PiController::design(&plant, Crossover::PerDelay(number(row, "beta")));
        let gains = pi.sampled(number(row, "fs")).unwrap();
        compare.check("pi_gains", "kp", pi.proportional(), number(row, "kp"));
        compare.check("pi_gains", "ki", pi.gain, number(row, "ki"));
        compare.check("pi_gains", "a", gains.a(), number(row, "a"));
        compare.check("pi_gains", "b", gains.b(), number(row, "b"));
    }
}

#[test]
fn arm_pfc_follows_its_law_in_every_variant() {
    for (letter, variant) in [("A", Variant::A), ("B", Variant::B), ("C", Variant::C)] {
        for name in [format!("pfc_{letter}"), format!("pfc_{letter}_small")] {
            let file = load(&name);
            let (compare, params) = (Compare::of(&file), &file["params"]);
            let plant = TcpPlant::new(number(params, "N"), number(params, "C"), number(params, "R0")).unwrap();
            let mut law = ArmPfc::new(ArmPfcParams {
                d: number(params, "d") as usize,
                h: number(params, "h") as usize,
                psi: number(params, "Psi"),
                p0: Probability::new(number(params, "p0")).unwrap(),
                variant,
                ..ArmPfcParams::new(plant, number(params, "q0"))
            })
            .unwrap();
            for (k, row) in rows(&file).iter().enumerate() {
                let p = law.step(0, &sample(number(row, "q")));
                let where_ = format!("{name} row {k}");
                let state = observed(|visit| law.observe(visit));
                compare.check(&where_, "p", p.get(), number(row, "p"));
                compare.check(&where_, "ym", state["model_output"], number(row, "ym"));
                compare.check(&where_, "y_free", state["free_response"], number(row, "y_free"));
                compare.check(&where_, "u_unsat", state["unclamped_input"], number(row, "u_unsat"));
            }
        }
    }
}

#[test]
fn arm_pfc_is_designed_by_its_equations() {
    let file = load("pfc_design");
    let compare = Compare::of(&file);
    for row in rows(&file) {
        let plant = TcpPlant::new(number(row, "N"), number(row, "C"), number(row, "R0")).unwrap();
        let model = Model::new(&plant, number(row, "d") as usize).unwrap();
        let predictor = Predictor::new(&model, number(row, "h") as usize).unwrap();
        let ts = model.period_s();
        let gamma = ts / (plant.queue_time_s().powi(2) + plant.window_time_s().powi(2)).sqrt();
        for (key, got) in [
            ("kt", plant.gain_pkts()),
            ("tau1", plant.queue_time_s()),
            ("tau2", plant.window_time_s()),
            ("Ts", ts),
            ("gamma", gamma),
            ("W0", plant.window_pkts()),
            ("p0", plant.operating_probability()),
            ("n1", model.n1()),
            ("n2", model.n2()),
            ("m1", model.m1()),
            ("m2", model.m2()),
            ("beta1", predictor.beta1()),
            ("beta2", predictor.beta2()),
            ("eta", predictor.eta()),
            ("g", predictor.gain()),
        ] {
            compare.check(&format!("pfc_design {row}"), key, got, number(row, key));
        }
        let c = row["c"].as_array().unwrap();
        assert_eq!(c.len(), predictor.c().len());
        for (got, expected) in predictor.c().iter().zip(c) {
            compare.check("pfc_design", "c", *got, expected.as_f64().unwrap());
        }
    }
}

#[test]
fn red_has_its_curve() {
    let file = load("red_prob");
    let (compare, params) = (Compare::of(&file), &file["params"]);
    for (gentle, key) in [(true, "p"), (false, "p_not_gentle")] {
        let curve =
            RedCurve::new(number(params, "minth"), number(params, "maxth"), number(params, "pmax"), gentle).unwrap();
        for row in rows(&file) {
            let average = number(row, "avg");
            compare.check(&format!("red_prob at {average}"), key, curve.probability(average), number(row, key));
        }
    }
}

/// The one uniform number that an event offers.
struct Offered(f64);

impl Draw for Offered {
    fn uniform(&mut self) -> f64 {
        self.0
    }
}

/// The host of the event vectors: the packet in transmission still counts, and the limit is the files'.
struct Host<A> {
    aqm: A,
    queue: VecDeque<u32>,
    full: fn(&Host<A>) -> bool,
    limit: u64,
    totals: Totals,
}

impl<A: Aqm> Host<A> {
    fn new(aqm: A, limit: u64, full: fn(&Host<A>) -> bool) -> Self {
        Host { aqm, queue: VecDeque::new(), full, limit, totals: Totals::default() }
    }

    fn bytes(&self) -> u64 {
        self.queue.iter().map(|&bytes| u64::from(bytes)).sum()
    }

    fn event(&mut self, event: &Value) -> Option<&'static str> {
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
            op => panic!("unknown operation {op}"),
        }
    }

    fn arrive(&mut self, packet: &Packet, now: Instant, u: f64) -> &'static str {
        let full = (self.full)(self);
        let queue = QueueView {
            packets: self.queue.len() as u32,
            bytes: self.bytes(),
            limit: Limit { packets: self.limit as u32, bytes: Bytes(u64::MAX) },
            totals: &self.totals,
        };
        let cx = &mut Cx { now, queue, rng: &mut Offered(u) };
        let verdict = self.aqm.on_arrival(packet, cx);
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

#[test]
fn droptail_drops_when_full() {
    for name in ["droptail", "droptail_ns2"] {
        let file = load(name);
        let params = &file["params"];
        let mut host = Host::new(DropTail::new(flag(params, "ns2")), number(params, "limit") as u64, |host| {
            host.queue.len() as u64 >= host.limit
        });
        for (i, event) in file["events"].as_array().unwrap().iter().enumerate() {
            let result = host.event(event);
            if let Some(result) = result {
                assert_eq!(result, event["res"].as_str().unwrap(), "{name} event {i}");
            }
            assert_eq!(host.queue.len() as f64, number(&event["state"], "q"), "{name} event {i}");
        }
    }
}

fn red(params: &Value) -> Red {
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
        ecn: flag(params, "setbit"),
    })
    .unwrap()
}

#[test]
fn red_does_what_ns2_does() {
    let mut fates = BTreeMap::new();
    for name in [
        "red_gentle_pkts",
        "red_nongentle_nowait_ecn",
        "red_bytes",
        "red_bytes_overflow",
        "red_idle_no_poll",
        "red_mark_p_equal",
    ] {
        let file = load(name);
        let (compare, params) = (Compare::of(&file), &file["params"]);
        let (limit, mean) = (number(params, "limit") as u64, number(params, "mean_pktsize") as u64);
        let in_bytes = flag(params, "qib");
        let mut host = if in_bytes {
            Host::new(red(params), limit * mean, |host| host.bytes() >= host.limit)
        } else {
            Host::new(red(params), limit, |host| host.queue.len() as u64 >= host.limit)
        };
        let unit = if in_bytes { mean as f64 } else { 1.0 };
        for (i, event) in file["events"].as_array().unwrap().iter().enumerate() {
            let where_ = format!("{name} event {i} {event}");
            if let Some(result) = host.event(event) {
                assert_eq!(result, event["res"].as_str().unwrap(), "{where_}");
                *fates.entry(result).or_insert(0) += 1;
            }
            let (expected, got) = (&event["state"], observed(|visit| host.aqm.observe(visit)));
            assert_eq!(host.queue.len() as f64, number(expected, "q"), "{where_}");
            compare.check(&where_, "avg", got["average_queue"] * unit, number(expected, "avg"));
            compare.check(&where_, "count", got["count"], number(expected, "count"));
            compare.check(&where_, "prob1", got["base_probability"], number(expected, "prob1"));
            compare.check(&where_, "prob", got["spread_probability"], number(expected, "prob"));
            assert_eq!(got["above_min"] != 0.0, flag(expected, "old"), "{where_}");
            assert_eq!(got["idle"] != 0.0, flag(expected, "idle"), "{where_}");
        }
    }
    // The files show every fate.
    assert_eq!(fates.keys().copied().collect::<Vec<_>>(), ["drop_early", "drop_overflow", "enq", "mark"]);
}
