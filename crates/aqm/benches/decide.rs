//! Nanoseconds per decision and bytes of state of every algorithm.
//!
//! `cargo bench -p aqumen-aqm --bench decide` prints a table, with `-- --json` the same as JSON. Without `--bench` (as
//! in tests) it runs briefly, to show that it still works.
//!
//! A decision is one `on_arrival`, or `on_dequeue` for those that decide at the head, with the queue near its target,
//! so that algorithms do all their work, timers left out;
//! a step is one `on_timer`. Best of several rounds: what the code costs, not what the machine was doing besides.

use std::hint::black_box;
use std::time::Instant as Clock;

use aqumen_aqm::arm_pfc::design::MAX_DELAY;
use aqumen_aqm::registry::{self, AnyAqm};
use aqumen_aqm::{
    Aaqm, Aqm, AqmMo, Ared, AredFeng, ArmPfc, ArmPfcAdaptive, ArmPfcParams, Avq, Blue, Cobalt, Codel, Cx, Draw,
    DropTail, Fixed, Limit, Network, Packet, Paqm, Pi, Pi2, Pie, QueueView, Red, Rem, SampledAqm, SelfTuned, TcpPlant,
    Totals, TunableAqmMo, TunableArmPfc, TunablePi, TunableRed,
};
use aqumen_units::{Ecn, Instant, Rate, Span};

const NETWORK: Network = Network {
    capacity: Rate::from_bps(10_000_000),
    flows: 100.0,
    base_rtt_s: 0.2,
    target_pkts: 100.0,
    packet_bytes: 1000.0,
    link_rate: Rate::from_bps(10_000_000),
    buffer_pkts: 300.0,
};

/// PCG-like step: cheap enough not to hide the algorithm, but it is in the figures.
struct Random(u64);

impl Draw for Random {
    #[inline]
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

struct Bench {
    decisions: u32,
    steps: u32,
    rounds: u32,
}

struct Row {
    name: &'static str,
    decision_ns: f64,
    step_ns: Option<f64>,
    state_bytes: usize,
}

impl Bench {
    /// Best time of one call, in nanoseconds.
    fn best(&self, calls: u32, mut round: impl FnMut()) -> f64 {
        let mut best = f64::INFINITY;
        for _ in 0..self.rounds {
            let start = Clock::now();
            round();
            best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(calls));
        }
        best
    }

    fn measure(&self, name: &'static str, state_bytes: usize) -> Row {
        let mut aqm = registry::build(name, &[], &NETWORK).expect("registered").expect("defaults fit");
        let (mut rng, mut totals, mut now) = (Random(1), Totals::default(), Instant::ZERO);
        let packet = Packet { bytes: 1000, ecn: Ecn::Ect0, segments: 1, ..Packet::default() };
        // Queue lengths around the target, as cheap to make as possible.
        let queue = |i: u32| 84 + (i.wrapping_mul(0x9e37_79b9) >> 27);

        let mut step = |aqm: &mut AnyAqm, i: u32| {
            let due = aqm.next_timer()?;
            totals.arrivals += 7;
            totals.departures += 7;
            let view = QueueView { packets: queue(i), bytes: 100_000, limit: Limit::packets(300), totals: &totals };
            aqm.on_timer(&mut Cx { now: due, queue: view, rng: &mut rng });
            Some(due)
        };
        let mut has_timer = false;
        let mut i = 0;
        let step_ns = self.best(self.steps, || {
            for _ in 0..self.steps {
                i += 1;
                if let Some(due) = step(&mut aqm, i) {
                    (now, has_timer) = (due, true);
                }
            }
        });

        // Sojourn times around 5 ms, so that CoDel and its kin change state now and then.
        let at_head = aqm.hooks().decides_at_head;
        let sojourn = |i: u32| Span::from_micros(4000 + u64::from(i.wrapping_mul(0x9e37_79b9) >> 21));
        let decision_ns = self.best(self.decisions, || {
            for i in 0..self.decisions {
                now += Span::from_micros(800);
                let packets = queue(i);
                let queue = QueueView {
                    packets,
                    bytes: u64::from(packets) * 1000,
                    limit: Limit::packets(300),
                    totals: &totals,
                };
                if at_head {
                    black_box(aqm.on_dequeue(black_box(&packet), sojourn(i), &mut Cx { now, queue, rng: &mut rng }));
                } else {
                    black_box(aqm.on_arrival(black_box(&packet), &mut Cx { now, queue, rng: &mut rng }));
                }
            }
        });
        Row { name, decision_ns, step_ns: has_timer.then_some(step_ns), state_bytes }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let bench = if has("--bench") {
        Bench { decisions: 2_000_000, steps: 100_000, rounds: 20 }
    } else {
        Bench { decisions: 1000, steps: 100, rounds: 1 }
    };
    let size_of = |name: &str| match name {
        "droptail" => size_of::<DropTail>(),
        "fixed" => size_of::<Fixed>(),
        "red" => size_of::<Red>(),
        "ared" => size_of::<Ared>(),
        "ared-feng" => size_of::<AredFeng>(),
        "rem" => size_of::<Rem>(),
        "avq" => size_of::<Avq>(),
        "blue" => size_of::<Blue>(),
        "codel" => size_of::<Codel>(),
        "pie" => size_of::<Pie>(),
        "pi2" => size_of::<Pi2>(),
        "cobalt" => size_of::<Cobalt>(),
        "pi" => size_of::<SampledAqm<Pi>>(),
        "arm-pfc" => size_of::<SampledAqm<ArmPfc>>() + arm_pfc_heap(),
        // One coefficient more; and room for delays of up to 64 samples: u, y and the coefficients.
        "arm-pfc-adaptive" => size_of::<SampledAqm<ArmPfcAdaptive>>() + arm_pfc_heap() + size_of::<f64>(),
        "st-arm-pfc" => {
            size_of::<SampledAqm<SelfTuned<TunableArmPfc>>>() + (MAX_DELAY + 2 + 2 + MAX_DELAY + 4) * size_of::<f64>()
        }
        "paqm" => size_of::<SampledAqm<Paqm>>(),
        "aqm-mo" => size_of::<SampledAqm<AqmMo>>(),
        "aaqm" => size_of::<SampledAqm<Aaqm>>(),
        "stpi" => size_of::<SampledAqm<SelfTuned<TunablePi>>>(),
        "stred" => size_of::<SampledAqm<SelfTuned<TunableRed>>>(),
        "st-aqm-mo" => size_of::<SampledAqm<SelfTuned<TunableAqmMo>>>(),
        _ => size_of::<AnyAqm>(),
    };
    let rows: Vec<Row> = registry::ALGORITHMS.iter().map(|row| bench.measure(row.name, size_of(row.name))).collect();
    if has("--json") {
        let rows: Vec<String> = rows.iter().map(json).collect();
        println!("[{}]", rows.join(","));
    } else {
        println!("{:<17} {:>12} {:>10} {:>12}", "algorithm", "decision ns", "step ns", "state bytes");
        for row in &rows {
            let step = row.step_ns.map_or("-".into(), |ns| format!("{ns:.1}"));
            println!("{:<17} {:>12.2} {step:>10} {:>12}", row.name, row.decision_ns, row.state_bytes);
        }
    }
}

fn json(row: &Row) -> String {
    let step = row.step_ns.map_or("null".into(), |ns| format!("{ns:.2}"));
    format!(
        r#"{{"algorithm":"{}","decision_ns":{:.3},"step_ns":{step},"state_bytes":{}}}"#,
        row.name, row.decision_ns, row.state_bytes
    )
}

/// The histories and coefficients of the default variant: d + 2 inputs, 2 outputs, h coefficients.
fn arm_pfc_heap() -> usize {
    let plant = TcpPlant::nominal(&NETWORK, NETWORK.target_pkts).expect("a network");
    let law = ArmPfc::new(ArmPfcParams::new(plant, NETWORK.target_pkts)).expect("defaults fit");
    (law.model().delay() + 4 + law.predictor().horizon()) * size_of::<f64>()
}
