//! Cost of a control update: operations, time and update rate, for the papers' claims of low complexity.
//!
//! `cargo bench -p aqumen-aqm --bench update` prints a table. Without `--bench` (as in tests) it runs briefly.
//!
//! Operations are counted in the source: additions, multiplications, divisions and roots of one update, without
//! comparisons and the clock's own. Times are those of the updates, best of several rounds.
//! Two foils stand beside ARM-PFC: the same prediction by dynamic matrix control (DMC), whose model is a settled step
//! response, and generalised predictive control (GPC), which steps its model h times, both with one control move.

use std::hint::black_box;
use std::time::Instant as Clock;

use aqumen_aqm::arm_pfc::design::Model;
use aqumen_aqm::registry::{self, AnyAqm};
use aqumen_aqm::{Aqm, Cx, Draw, Limit, Network, QueueView, TcpPlant, Totals};
use aqumen_units::{Instant, Rate, Span};

const NETWORK: Network = Network {
    capacity: Rate::from_bps(10_000_000),
    flows: 100.0,
    base_rtt_s: 0.2,
    target_pkts: 100.0,
    packet_bytes: 1000.0,
    link_rate: Rate::from_bps(10_000_000),
    buffer_pkts: 300.0,
};
const D: usize = 5;
const H: usize = 8;

/// y; y_m: 4 products, 3 sums; y_free: d + 3 products, d + 2 sums; u: 1 product, 2 sums, 1
/// division; p and the history: 2 sums.
const ARM_PFC: usize = 1 + 7 + (2 * D + 5) + 4 + 2;
/// C^: 1 division, 1 product, 2 sums; L^: 1 division, 1 root, 1 product, 2 sums; R: 1 division, 1 sum.
const ESTIMATORS: usize = 4 + 5 + 2;
/// p + a (q - target) - b (q_old - target).
const PI: usize = 6;

/// The laws, with what an update computes.
const LAWS: [(&str, usize); 6] = [
    ("pi", PI),
    ("arm-pfc", ARM_PFC),
    // gamma, ratio, ghat, Qhat; PI or D: 5 at most; p.
    ("paqm", 4 + 5 + 1),
    // Idle: 3; U: 1; step: 2.
    ("aaqm", 6),
    // k_p: 6 with the root; k_i, zero: 3; K/z: 1; a, b: 4; then PI.
    ("stpi", ESTIMATORS + 14 + PI),
    // The outer loop, half as often as the inner: 6, and 5 for X's bound. The inner: rate 4,
    // w 5, move 4, V 3, p 2 and 2.
    ("aqm-mo", 4 + 5 + 4 + 3 + 4 + (6 + 5) / 2),
];

/// Dynamic matrix control with one move: the free response of `n` samples moves on by one and by what the last move
/// adds; the prediction h ahead is read off.
struct Dmc {
    response: Vec<f64>,
    free: Vec<f64>,
    gain: f64,
}

impl Dmc {
    fn new(model: &Model) -> Self {
        // Until the step response is within 1 % of its end.
        let n = (1..).find(|&n| (model.step_response(n) / model.gain() - 1.0).abs() < 0.01).unwrap();
        let delayed = |n: usize| if n > D { model.step_response(n - D) } else { 0.0 };
        let response: Vec<f64> = (1..=n + D).map(delayed).collect();
        Dmc { free: vec![0.0; response.len()], gain: delayed(H), response }
    }

    fn step(&mut self, y: f64) -> f64 {
        let disturbance = y - self.free[0];
        let u = -(self.free[H - 1] + disturbance) / self.gain;
        self.free.rotate_left(1);
        let last = self.free.len() - 1;
        self.free[last] = self.free[last - 1];
        for (free, response) in self.free.iter_mut().zip(&self.response) {
            *free += response * u;
        }
        u
    }

    /// 2 a coefficient; 4 for the move.
    fn flops(&self) -> usize {
        2 * self.response.len() + 4
    }
}

/// Generalised predictive control with one move: the model is stepped h times from the measured past.
struct Gpc {
    model: Model,
    y: [f64; 2],
    u: Vec<f64>,
    gain: f64,
}

impl Gpc {
    fn step(&mut self, y: f64) -> f64 {
        let (mut now, mut before) = (y, self.y[0]);
        for i in 1..=H {
            // u(k + i - d - 1), held from k on.
            let input = |back: usize| self.u[(back + D + 1).saturating_sub(i + 1)];
            let next = self.model.step(now, before, input(0), input(1));
            (now, before) = (next, now);
        }
        let u = self.u[0] - now / self.gain;
        self.y = [y, self.y[0]];
        self.u.rotate_right(1);
        self.u[0] = u.clamp(-1.0, 1.0);
        u
    }

    /// 7 a step of the model; 2 for the move.
    const FLOPS: usize = 7 * H + 2;
}

struct NoDraw;

impl Draw for NoDraw {
    fn uniform(&mut self) -> f64 {
        0.5
    }
}

/// Best time of one call, nanoseconds.
fn best(rounds: u32, calls: u32, mut call: impl FnMut(u32)) -> f64 {
    (0..rounds).fold(f64::INFINITY, |best: f64, _| {
        let start = Clock::now();
        (0..calls).for_each(&mut call);
        best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(calls))
    })
}

/// Queue lengths around the target, as cheap to make as possible.
fn queue(i: u32) -> u32 {
    84 + (i.wrapping_mul(0x9e37_79b9) >> 27)
}

/// Updates per second, and nanoseconds of one.
fn measure(aqm: &mut AnyAqm, rounds: u32, calls: u32) -> (f64, f64) {
    let (mut totals, mut now, mut updates) = (Totals::default(), Instant::ZERO, 0u32);
    let ns = best(rounds, calls, |i| {
        let Some(due) = aqm.next_timer() else { return };
        (now, updates) = (due, updates + 1);
        totals.arrivals += 7;
        totals.accepted += 7;
        totals.departures += 7;
        totals.busy += Span::from_micros(5600);
        let queue = QueueView { packets: queue(i), bytes: 100_000, limit: Limit::packets(300), totals: &totals };
        aqm.on_timer(&mut Cx { now: due, queue, rng: &mut NoDraw });
    });
    (f64::from(updates) / (now - Instant::ZERO).as_secs_f64(), ns)
}

fn main() {
    let (rounds, calls) = if std::env::args().any(|argument| argument == "--bench") { (20, 50_000) } else { (1, 200) };
    println!("{:<12} {:>11} {:>7} {:>12} {:>11}", "law", "updates/s", "flops", "flops/s", "ns/update");
    let print = |name: &str, rate: f64, flops: usize, ns: f64| {
        println!("{name:<12} {rate:>11.1} {flops:>7} {:>12.0} {ns:>11.1}", rate * flops as f64);
    };
    let mut arm_pfc_rate = 0.0;
    for (name, operations) in LAWS {
        let mut aqm = registry::build(name, &[], &NETWORK).expect("registered").expect("defaults fit");
        let (rate, ns) = measure(&mut aqm, rounds, calls);
        print(name, rate, operations, ns);
        if name == "arm-pfc" {
            arm_pfc_rate = rate;
        }
    }
    let plant = TcpPlant::nominal(&NETWORK, NETWORK.target_pkts).expect("a network");
    let model = Model::new(&plant, D).expect("a design");
    let mut dmc = Dmc::new(&model);
    let ns = best(rounds, calls, |i| {
        black_box(dmc.step(f64::from(queue(i)) - 100.0));
    });
    print("(dmc)", arm_pfc_rate, dmc.flops(), ns);
    let mut gpc = Gpc { gain: model.step_response(H - D), model, y: [0.0; 2], u: vec![0.0; D + 3] };
    let ns = best(rounds, calls, |i| {
        black_box(gpc.step(f64::from(queue(i)) - 100.0));
    });
    print("(gpc)", arm_pfc_rate, Gpc::FLOPS, ns);
    // avg: 3; in the range slope 2, spreading 3. Every packet of a full link.
    println!(
        "{:<12} {:>11.1} {:>7} {:>12.0} {:>11}",
        "(red)",
        NETWORK.link_pps(),
        8,
        NETWORK.link_pps() * 8.0,
        "per packet"
    );
}
