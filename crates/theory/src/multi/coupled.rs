//! Two coupled queues at rest, and the noise around it: DualPI2 with classic flows (Reno, CUBIC)
//! beside scalable ones (Prague).
//!
//! One base probability p' signals both: p_C = p'^2 in the C queue, in the L queue at least p_CL = k p'. The
//! controller holds the delay of the C queue, which takes whatever the L queue leaves, at its target. So with each
//! class's response function W(p, R),
//!
//! ```text
//! R_C = T_C + target,   R_L = T_L + d_L,    sum N W_C(p'^2, R_C)/R_C + sum N W_L(p_L, R_L)/R_L = C       for p'
//! ```
//!
//! *The L queue's own marks.* It is served first, but not into a packet: with the link always busy and one in s
//! seconds, Cobham's mean wait is d_L = (s/2)/(1 - rho), rho the L queue's share. With waits spread
//! exponentially the ramp or step marks the share P(d > threshold); a packet with none behind it is spared. p_L
//! is the mean of the larger of the two.
//!
//! *Noise.* R_C = N_C W_C / (C - N_L W_L / R_L): the delay follows what C flows have in flight, and the room that the L
//! flows leave. Both are classes of a [`MeanField`]. The loop closes through the sampled controller and its hold.
//!
//! Left out: a C queue that runs empty or overflows, losses, and p' at its bound 1/k.

use std::f64::consts::PI;

use aqumen_aqm::{DualPi2Params, L4sMarking};
use num_complex::Complex64;
use serde::Serialize;

use crate::equilibrium::response::{Sender, Table};
use crate::linear::complex::{exp, hold};
use crate::noise::mean_field::{FlowClass, MeanField};
use crate::root_finding::{halved, halved_ratio};

/// Flows alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Class {
    /// How many.
    pub(crate) flows: f64,
    /// Round trip without queueing, seconds.
    pub(crate) base_rtt_s: f64,
    /// Sender of the flows.
    pub(crate) sender: Sender,
    /// Whether they wait in the L queue.
    pub(crate) scalable: bool,
}

/// One queue of the two.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct QueueState {
    /// Flows in it.
    pub flows: f64,
    /// Throughput, packets/s.
    pub rate_pps: f64,
    /// Throughput of each flow, packets/s.
    pub rate_per_flow_pps: f64,
    /// Mean window, packets.
    pub window_pkts: f64,
    /// Mean wait, seconds.
    pub delay_s: f64,
    /// Share of its packets that is signalled.
    pub probability: f64,
}

/// Equilibrium of two coupled queues.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CoupledQueues {
    /// p'.
    pub base_probability: f64,
    /// k p', what the L queue marks for the coupling.
    pub coupled_probability: f64,
    /// Whether marks regulate: k p' is below one.
    pub feasible: bool,
    /// The C queue.
    pub classic: QueueState,
    /// The L queue.
    pub low_latency: QueueState,
    /// Standard deviation of the C queue's delay, seconds; null where it is not known.
    pub delay_std_s: Option<f64>,
    /// How much larger the loop's gain could be; null where no gain is too large or nothing is known.
    pub gain_margin: Option<f64>,
    /// Whether each 1/p-th packet is marked, not one by chance.
    #[serde(skip)]
    pub(crate) evenly: bool,
    /// Mean windows of the classes, packets, and their round trips, seconds.
    #[serde(skip)]
    pub(crate) windows: Vec<(f64, f64)>,
}

/// A class with its response function at its round trip.
struct TabulatedClass<'a> {
    class: &'a Class,
    rtt_s: f64,
    table: Table,
}

/// Halvings of p', and of the L queue's share.
const HALVINGS: u32 = 40;

/// Where `classes` on a link of `capacity_pps` rest under DualPI2 with `params`.
pub(crate) fn equilibrium(params: &DualPi2Params, capacity_pps: f64, classes: &[Class]) -> CoupledQueues {
    let target = params.target.as_secs_f64();
    let service = 1.0 / capacity_pps;
    let known: Vec<TabulatedClass<'_>> = classes
        .iter()
        .map(|class| {
            let rtt_s = class.base_rtt_s + if class.scalable { service } else { target };
            TabulatedClass { class, rtt_s, table: class.sender.table(rtt_s) }
        })
        .collect();
    let rate = |scalable: bool, p: f64| -> f64 {
        let of = |k: &&TabulatedClass<'_>| k.class.scalable == scalable;
        known.iter().filter(of).map(|k| k.class.flows * k.table.window(p) / k.rtt_s).sum()
    };
    let low = |base: f64| -> (f64, NativeMarking) {
        // The larger the L queue's share, the longer its wait, the more marks of its own.
        let at = |share: f64| NativeMarking::new(params, params.k * base, capacity_pps, share);
        let miss = |share: f64| rate(true, at(share).probability) - share * capacity_pps;
        let (share, _) = halved(miss, (0.0, 1.0), HALVINGS);
        (share * capacity_pps, at(share))
    };
    let miss = |base: f64| rate(false, base * base) + low(base).0 - capacity_pps;
    let (base, _) = halved_ratio(miss, (1e-6, (1.0 / params.k).min(1.0)), HALVINGS);
    let feasible = base < 0.999 / params.k;
    let (low_pps, own) = low(base);
    let classic_p = base * base;
    let classic_pps = capacity_pps - low_pps;
    let side = |scalable: bool, rate_pps: f64, delay_s: f64, probability: f64| {
        let of = |k: &&TabulatedClass<'_>| k.class.scalable == scalable;
        let flows: f64 = known.iter().filter(of).map(|k| k.class.flows).sum();
        let windows: f64 = known.iter().filter(of).map(|k| k.class.flows * k.table.window(probability)).sum();
        let each = |x: f64| if flows > 0.0 { x / flows } else { 0.0 };
        QueueState {
            flows,
            rate_pps,
            rate_per_flow_pps: each(rate_pps),
            window_pkts: each(windows),
            delay_s,
            probability,
        }
    };
    let windows = known
        .iter()
        .map(|k| (k.table.window(if k.class.scalable { own.probability } else { classic_p }), k.rtt_s))
        .collect();
    let mut found = CoupledQueues {
        base_probability: base,
        coupled_probability: params.k * base,
        feasible,
        classic: side(false, classic_pps, target, classic_p),
        low_latency: side(true, low_pps, own.delay_s, own.probability),
        delay_std_s: None,
        gain_margin: None,
        evenly: !params.random,
        windows,
    };
    if feasible {
        let noisy = NoiseLoop::new(params, &known, &found, &own);
        found.gain_margin = noisy.gain_margin();
        found.delay_std_s = noisy.deviation();
    }
    found
}

/// Native marking of the L queue at a share of the link.
#[derive(Clone, Copy, Debug)]
struct NativeMarking {
    delay_s: f64,
    probability: f64,
    /// Slope of the probability in what the coupling asks for.
    slope: f64,
}

impl NativeMarking {
    fn new(params: &DualPi2Params, coupled: f64, capacity_pps: f64, share: f64) -> Self {
        let service = 1.0 / capacity_pps;
        let delay_s = 0.5 * service / (1.0 - share.min(1.0 - 1e-9));
        let coupled = coupled.clamp(0.0, 1.0);
        let beyond = |delay: f64| libm::exp(-delay / delay_s);
        let (native_above, slope, threshold) = match params.l4s {
            L4sMarking::Ramp { min_th, range } => {
                let (from, range) = (min_th.as_secs_f64(), range.as_secs_f64().max(1e-9));
                let begin = from + coupled * range;
                (delay_s / range * (beyond(begin) - beyond(from + range)), 1.0 - beyond(begin), from)
            }
            L4sMarking::Step(step) => {
                let over = beyond(step.as_secs_f64());
                ((1.0 - coupled) * over, 1.0 - over, step.as_secs_f64())
            }
            L4sMarking::Packets(packets) => {
                let over = beyond(f64::from(packets + 1) * service);
                ((1.0 - coupled) * over, 1.0 - over, f64::from(packets) * service)
            }
        };
        // A packet with fewer than `min_packets` behind it, which came while it waited, is spared.
        let company = if params.min_packets == 0 {
            1.0
        } else {
            1.0 - libm::exp(-share * capacity_pps * (threshold + delay_s) / f64::from(params.min_packets))
        };
        let native = company * native_above;
        NativeMarking { delay_s, probability: (coupled + native).min(1.0), slope: 1.0 - company * (1.0 - slope) }
    }
}

/// Loop around the equilibrium.
struct NoiseLoop<'a> {
    params: &'a DualPi2Params,
    rtt_s: f64,
    field: MeanField,
}

impl<'a> NoiseLoop<'a> {
    fn new(params: &'a DualPi2Params, known: &[TabulatedClass<'_>], at: &CoupledQueues, own: &NativeMarking) -> Self {
        let rtt_s = known.iter().filter(|k| !k.class.scalable).max_by(|a, b| a.class.flows.total_cmp(&b.class.flows));
        let rtt_s = rtt_s.map_or(params.target.as_secs_f64(), |k| k.rtt_s);
        // Sum N_C W_C / R_C = C - sum N_L W_L / R_L, R_C with the delay.
        let rate = |k: &TabulatedClass<'_>, window: f64| k.class.flows * window / k.rtt_s;
        let both = known.iter().zip(&at.windows);
        let per_delay: f64 =
            both.clone().filter(|(k, _)| !k.class.scalable).map(|(k, (window, _))| rate(k, *window) / k.rtt_s).sum();
        let classes = both.map(|(k, (window, _))| {
            let scalable = k.class.scalable;
            FlowClass {
                sender: k.class.sender,
                flows: k.class.flows,
                probability: if scalable { own.probability } else { at.classic.probability },
                slope: if scalable { params.k * own.slope } else { 2.0 * at.base_probability },
                rtt_s: k.rtt_s,
                waits: if scalable { 0.0 } else { 1.0 },
                weight_s: rate(k, *window) / per_delay,
                dispersion: if params.random { 1.0 } else { 0.0 },
                needed: 1.0,
            }
        });
        NoiseLoop { params, rtt_s, field: MeanField::new(classes.collect(), 1.0, rtt_s) }
    }

    /// The open loop at `w`, rad/s, and the power of the delay's noise before the loop answers.
    fn at(&self, w: f64) -> (Complex64, f64) {
        let (answer, power) = self.field.at(w);
        let s = Complex64::new(0.0, w);
        let period = self.params.tupdate.as_secs_f64();
        let back = exp(-s * period);
        let controller = (self.params.alpha + self.params.beta * (1.0 - back)) / (1.0 - back) * hold(w * period);
        (-controller * answer, power)
    }

    /// Frequencies from slow to half the sampling frequency.
    fn frequencies(&self) -> Vec<f64> {
        let top = PI / self.params.tupdate.as_secs_f64();
        let from = 1e-4 / self.rtt_s;
        let ratio: f64 = 1.02;
        std::iter::successors(Some(from), move |w| Some(w * ratio)).take_while(move |w| *w < top).collect()
    }

    /// How much larger the gain could be: from the first crossing of -180 degrees.
    fn gain_margin(&self) -> Option<f64> {
        let mut before: Option<Complex64> = None;
        let mut least: Option<f64> = None;
        for w in self.frequencies() {
            let here = self.at(w).0;
            if let Some(before) = before
                && before.im < 0.0
                && here.im >= 0.0
                && here.re < 0.0
            {
                let margin = -1.0 / here.re;
                least = Some(least.map_or(margin, |known| known.min(margin)));
            }
            before = Some(here);
        }
        least
    }

    /// Deviation of the C queue's delay, seconds; `None` of a loop that is unstable or not known.
    fn deviation(&self) -> Option<f64> {
        if self.gain_margin().is_some_and(|margin| margin <= 1.0) {
            return None;
        }
        let (mut variance, mut before): (f64, Option<(f64, f64)>) = (0.0, None);
        for w in self.frequencies() {
            let (open, power) = self.at(w);
            let here = power / (1.0 + open).norm_sqr();
            match before {
                None => variance += w * here,
                Some((last, known)) => variance += 0.5 * (known + here) * (w - last),
            }
            before = Some((w, here));
        }
        Some((variance / PI).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use aqumen_units::Span;

    use super::*;
    use crate::equilibrium::response::Law;

    fn class(flows: f64, law: Law) -> Class {
        let sender = Sender { law, proportional: true, from_flight: true, min_window: 2.0, ..Sender::reno() };
        Class { flows, base_rtt_s: 0.03, sender, scalable: law == Law::Prague }
    }

    fn at(flows: [f64; 2], params: DualPi2Params) -> CoupledQueues {
        equilibrium(&params, 5000.0, &[class(flows[0], Law::Reno), class(flows[1], Law::Prague)])
    }

    #[test]
    fn both_queues_fill_the_link_by_their_response_functions() {
        let found = at([10.0, 10.0], DualPi2Params::default());
        let (classic, low) = (found.classic, found.low_latency);
        assert!((classic.rate_pps + low.rate_pps - 5000.0).abs() < 1e-6);
        assert!((classic.delay_s - 0.015).abs() < 1e-12 && found.coupled_probability == 2.0 * found.base_probability);
        assert!((classic.probability - found.base_probability * found.base_probability).abs() < 1e-12);
        // Rate = W / R on either side: R_C = 30 + 15 ms, R_L = 30 ms and a packet of .2 ms.
        assert!((10.0 * classic.window_pkts / 0.045 / classic.rate_pps - 1.0).abs() < 1e-3);
        assert!((10.0 * low.window_pkts / 0.0302 / low.rate_pps - 1.0).abs() < 1e-3);
        // About equal rates is what k = 2 is for; the shorter round trip and Prague's
        // quicker growth favour the L queue.
        assert!((1.0..3.0).contains(&(low.rate_per_flow_pps / classic.rate_per_flow_pps)), "{found:?}");
        // Cobham: (s/2) / (1 - share).
        let share = low.rate_pps / 5000.0;
        assert!((low.delay_s - 1e-4 / (1.0 - share)).abs() < 1e-9);
    }

    #[test]
    fn a_stronger_coupling_takes_from_the_l_queue() {
        let rate = |k| at([10.0, 10.0], DualPi2Params { k, ..DualPi2Params::default() }).low_latency.rate_pps;
        assert!(rate(1.0) > rate(2.0) && rate(2.0) > rate(4.0));
    }

    #[test]
    fn the_l_queues_own_marks_count_where_a_packet_takes_a_millisecond() {
        let params = DualPi2Params::default();
        let slow = NativeMarking::new(&params, 0.1, 833.0, 0.5);
        // s = 1.2 ms, mean wait 1.2 ms: the ramp from .8 to 1.2 ms marks about half; at 100 times the rate nothing.
        assert!(slow.probability > 0.3 && slow.slope < 0.9, "{slow:?}");
        let fast = NativeMarking::new(&params, 0.1, 83_300.0, 0.5);
        assert!((fast.probability - 0.1).abs() < 1e-9 && (fast.slope - 1.0).abs() < 1e-9);
        let step = DualPi2Params { l4s: L4sMarking::Step(Span::from_millis(1)), min_packets: 0, ..params };
        // .1 + .9 exp(-1 / 1.2) = .4911.
        assert!((NativeMarking::new(&step, 0.1, 833.333, 0.5).probability - 0.4911).abs() < 1e-3);
        let packets = DualPi2Params { l4s: L4sMarking::Packets(1), ..step };
        // .1 + .9 exp(-2.4 / 1.2) = .2218.
        assert!((NativeMarking::new(&packets, 0.1, 833.333, 0.5).probability - 0.2218).abs() < 1e-3);
    }

    #[test]
    fn marks_that_no_longer_regulate_are_said() {
        // 5000 packets/s for 1000 flows of 45 ms: windows of .2.
        assert!(!at([500.0, 500.0], DualPi2Params::default()).feasible);
        assert!(at([10.0, 10.0], DualPi2Params::default()).feasible);
    }

    #[test]
    fn more_gain_than_the_margin_has_no_deviation() {
        let with = |factor: f64| {
            let standard = DualPi2Params::default();
            at([10.0, 10.0], DualPi2Params { alpha: factor * standard.alpha, beta: factor * standard.beta, ..standard })
        };
        let usual = with(1.0);
        let margin = usual.gain_margin.unwrap();
        assert!(margin > 1.0 && usual.delay_std_s.unwrap() > 0.0, "{usual:?}");
        assert!(with(0.95 * margin).delay_std_s.is_some() && with(1.05 * margin).delay_std_s.is_none());
        assert!((with(2.0).gain_margin.unwrap() - 0.5 * margin).abs() < 0.03 * margin);
    }

    /// The means of what an L queue marks and of whether the coupling decides, over waits drawn one after the other
    /// from an exponential law, and of whether a packet has company.
    fn drawn(params: &DualPi2Params, coupled: f64, capacity_pps: f64, share: f64) -> f64 {
        let (service, points) = (1.0 / capacity_pps, 200_000);
        let mean = 0.5 * service / (1.0 - share);
        let threshold = match params.l4s {
            L4sMarking::Ramp { min_th, .. } => min_th.as_secs_f64(),
            L4sMarking::Step(step) => step.as_secs_f64(),
            L4sMarking::Packets(packets) => f64::from(packets) * service,
        };
        // A packet that waits this long has what came meanwhile behind it; `min_packets` and the mean stay of it.
        let alone = match params.min_packets {
            0 => 0.0,
            least => libm::exp(-share * capacity_pps * (threshold + mean) / f64::from(least)),
        };
        let native = |wait: f64| match params.l4s {
            L4sMarking::Ramp { min_th, range } => ((wait - min_th.as_secs_f64()) / range.as_secs_f64()).clamp(0.0, 1.0),
            L4sMarking::Step(step) => f64::from(u8::from(wait > step.as_secs_f64())),
            L4sMarking::Packets(packets) => f64::from(u8::from(wait > f64::from(packets + 1) * service)),
        };
        let waits = (0..points).map(|k| -mean * libm::log(1.0 - (f64::from(k) + 0.5) / f64::from(points)));
        let own: f64 = waits.map(|wait| native(wait).max(coupled)).sum::<f64>() / f64::from(points);
        alone * coupled + (1.0 - alone) * own
    }

    #[test]
    fn the_l_queue_marks_the_larger_of_its_own_share_and_that_of_the_coupling() {
        let standard = DualPi2Params::default();
        for l4s in [
            L4sMarking::Ramp { min_th: Span::from_micros(800), range: Span::from_micros(400) },
            L4sMarking::Ramp { min_th: Span::from_micros(300), range: Span::from_millis(4) },
            L4sMarking::Step(Span::from_millis(1)),
            L4sMarking::Packets(2),
        ] {
            for min_packets in [0, 1, 3] {
                let params = DualPi2Params { l4s, min_packets, ..standard };
                for (coupled, capacity, share) in
                    [(0.1, 833.0, 0.5), (0.0, 1500.0, 0.8), (0.6, 833.0, 0.3), (1.0, 500.0, 0.5)]
                {
                    let own = NativeMarking::new(&params, coupled, capacity, share);
                    let expected = drawn(&params, coupled, capacity, share);
                    assert!((own.probability - expected).abs() < 2e-4, "{params:?} {coupled}: {own:?} {expected}");
                    // How it answers what the coupling asks for.
                    let h = 1e-4;
                    let [more, less] =
                        [h, -h].map(|by| NativeMarking::new(&params, coupled + by, capacity, share).probability);
                    if coupled > 0.0 && coupled < 1.0 {
                        assert!((own.slope - (more - less) / (2.0 * h)).abs() < 1e-3, "{params:?} {coupled}: {own:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn classic_flows_alone_have_the_loop_of_one_queue() {
        use crate::linear::noise::{Fineness, deviation_of};
        use crate::linear::{Controller, Loop};
        let params = DualPi2Params::default();
        let classic = class(10.0, Law::Reno);
        let found = equilibrium(&params, 2000.0, &[classic]);
        let (window, rtt_s) = found.windows[0];
        assert!((found.classic.rate_pps - 2000.0).abs() < 1e-6 && found.low_latency.flows == 0.0, "{found:?}");
        assert!((10.0 * window / rtt_s / 2000.0 - 1.0).abs() < 1e-3 && (rtt_s - 0.045).abs() < 1e-12);
        // Its share is the square of what the law says of a delay, in packets of 1/2000 s.
        let p = found.classic.probability;
        let dispersion = if params.random { 1.0 } else { 0.0 };
        let class = (classic.sender, 10.0, [p, 2.0 * found.base_probability], rtt_s, window);
        let field = MeanField::from_one_queue(2000.0, dispersion, &[class]);
        let num = vec![(params.alpha + params.beta) / 2000.0, -params.beta / 2000.0];
        let controller = Controller::Sampled { num, den: vec![1.0, -1.0], period_s: params.tupdate.as_secs_f64() };
        let closed = Loop { images: 0, ..Loop::new(field, controller) };
        let margins = closed.margins();
        assert!(
            (found.gain_margin.unwrap() / margins.gain_margin.unwrap() - 1.0).abs() < 0.03,
            "{found:?} {margins:?}"
        );
        let power = |w: f64| closed.plant.power(w) / (closed.response(w) + 1.0).norm_sqr();
        let deviation = deviation_of(power, rtt_s, Fineness::FINE) / 2000.0;
        let told = found.delay_std_s.unwrap();
        assert!((told / deviation - 1.0).abs() < 0.05, "{told} {deviation}");
    }

    #[test]
    fn the_delay_of_a_queue_answers_what_is_left_of_the_other_too() {
        // dR_C of 1 % more in flight: sum f_i x / sum f_C / R_C, of C flows and of L flows alike by their rates.
        let found = at([10.0, 6.0], DualPi2Params::default());
        let params = DualPi2Params::default();
        let classes = [class(10.0, Law::Reno), class(6.0, Law::Prague)];
        let known: Vec<TabulatedClass<'_>> = classes
            .iter()
            .zip(&found.windows)
            .map(|(class, (_, rtt_s))| TabulatedClass { class, rtt_s: *rtt_s, table: class.sender.table(*rtt_s) })
            .collect();
        let own = NativeMarking::new(&params, found.coupled_probability, 5000.0, found.low_latency.rate_pps / 5000.0);
        let noisy = NoiseLoop::new(&params, &known, &found, &own);
        assert!((noisy.rtt_s - 0.045).abs() < 1e-12);
        // At rest: q's delay goes as the flows' elasticities say.
        let elasticity = |k: usize, p: f64| classes[k].sender.elasticity(p, found.windows[k].1);
        let f = |k: usize| classes[k].flows * found.windows[k].0 / found.windows[k].1;
        let by_classic = f(0) * elasticity(0, found.classic.probability) * 2.0 / found.base_probability;
        let low = found.low_latency.probability;
        let by_low = f(1) * elasticity(1, low) * params.k * own.slope / low;
        let expected = (by_classic + by_low) / (f(0) / 0.045);
        let told = noisy.field.at(1e-3).0.re;
        assert!((told / expected - 1.0).abs() < 0.12, "{told} {expected}");
    }

    #[test]
    fn in_slow_motion_both_queues_share_the_link_alike_and_wait_as_many_times_longer() {
        let told = |times: f64| {
            let span = |seconds: f64| Span::from_secs_f64(seconds * times);
            let standard = DualPi2Params::default();
            let params = DualPi2Params {
                target: span(0.015),
                tupdate: span(0.016),
                alpha: standard.alpha / times,
                beta: standard.beta / times,
                l4s: L4sMarking::Ramp { min_th: span(0.0008), range: span(0.0004) },
                ..standard
            };
            // Prague's virtual round trip is a time of its own.
            let scalable = Class { scalable: true, ..class(8.0, Law::Dctcp) };
            let classes = [class(10.0, Law::Reno), scalable].map(|class| Class { base_rtt_s: 0.03 * times, ..class });
            equilibrium(&params, 5000.0 / times, &classes)
        };
        let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-6, "{a} {b}");
        let known = told(1.0);
        for times in [1000.0, 0.01] {
            let slow = told(times);
            for (a, b) in [(slow.classic, known.classic), (slow.low_latency, known.low_latency)] {
                near(a.rate_pps * times, b.rate_pps);
                near(a.window_pkts, b.window_pkts);
                near(a.delay_s / times, b.delay_s);
                near(a.probability, b.probability);
            }
            near(slow.gain_margin.unwrap(), known.gain_margin.unwrap());
            near(slow.delay_std_s.unwrap() / times, known.delay_std_s.unwrap());
        }
    }
}
