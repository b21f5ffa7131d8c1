//! ParkingLot links at once, each with a law that holds its queue at a target, and flows that cross more than one of
//! them: the parking lot.
//!
//! *LoopSample rest* each link that is full has the share p_l at which its flows fill it, a link that is not full no
//! queue and no signals. A flow meets 1 - prod (1 - p_l) of its way and waits in each queue:
//!
//! ```text
//! R_c = T_c + sum q_l / C_l,   sum over the flows c of link l: N_c W_c(p_c, R_c) / R_c = C_l   of each full link
//! ```
//!
//! *Around the rest.* Acknowledgements clock packets: a full link sends C_l whatever is in flight. With relative
//! changes x_c of what class c has in flight the rates N_c W_c / R_c of a link's flows still add up to C_l, so that the
//! delays d of the links follow from
//!
//! ```text
//! A d = B x,   A_lm = sum over flows of both l and m: r_c / R_c,   B_lc = r_c, the rate of class c at link l
//! ```
//!
//! One link alone has the scalar loop of `field`. x_c answers the signals of each link on its way a round trip later,
//! and its own noise is that of its windows. The loop is closed by one controller a link: it is stable if det(I +
//! L(jw)) turns by a quarter for each integrator, and the noise of each queue is (I + L)^-1 times what windows do.
//!
//! Left out: how far along its way a signal is set, losses, unresponsive load, and queues that run empty.

use std::f64::consts::PI;

use num_complex::Complex64;
use serde::Serialize;

use crate::equilibrium::response::{Sender, Table};
use crate::linear::Controller;
use crate::linear::complex::{arg, cis, hold};
use crate::noise::mean_field::ResponseTable;
use crate::noise::population::Population;
use crate::root_finding::halved_ratio;
use aqumen_result::linear_equations;

/// A link and the queue that its law holds there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stage {
    pub(crate) capacity_pps: f64,
    pub(crate) queue_pkts: f64,
}

/// Flows alike on the same way.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Crossing {
    pub(crate) sender: Sender,
    pub(crate) flows: f64,
    pub(crate) base_rtt_s: f64,
    /// Numbers of the stages that they cross.
    pub(crate) stages: Vec<usize>,
}

/// Equilibrium of a parking lot.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LotEquilibrium {
    /// Share of signals of each stage, and whether it is full.
    pub(crate) probability: Vec<f64>,
    pub(crate) full: Vec<bool>,
    /// Round trip of each crossing, seconds; a flow's window, packets; its end-to-end signal probability.
    pub(crate) rtt_s: Vec<f64>,
    pub(crate) window_pkts: Vec<f64>,
    pub(crate) met: Vec<f64>,
}

/// The loops of several links together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ParkingLot {
    /// The links that are full.
    pub links: Vec<String>,
    /// Whether their loops are stable together.
    pub stable: bool,
    /// How much larger the gain of all controllers could be; null where it is not known.
    pub gain_margin: Option<f64>,
}

/// Shares below this are none, and sweeps over the links until none moves.
const NONE: f64 = 1e-8;
const SWEEPS: u32 = 400;
const HALVINGS: u32 = 40;

impl Crossing {
    fn met(&self, probability: &[f64]) -> f64 {
        1.0 - self.stages.iter().map(|&stage| 1.0 - probability[stage]).product::<f64>()
    }
}

/// Where `crossings` over `stages` rest; the error says why they do not.
pub(crate) fn equilibrium(stages: &[Stage], crossings: &[Crossing]) -> Result<LotEquilibrium, &'static str> {
    let mut full = vec![true; stages.len()];
    let mut probability = vec![1e-3; stages.len()];
    // Each turn takes links that are not full out, or one back in.
    for _ in 0..2 * stages.len() + 2 {
        let wait = |stage: &usize| stages[*stage].queue_pkts / stages[*stage].capacity_pps;
        let known: Vec<(&Crossing, f64, Table)> = crossings
            .iter()
            .map(|crossing| {
                let waits: f64 = crossing.stages.iter().filter(|stage| full[**stage]).map(wait).sum();
                let rtt_s = crossing.base_rtt_s + waits;
                (crossing, rtt_s, crossing.sender.table(rtt_s))
            })
            .collect();
        let load = |stage: usize, probability: &[f64]| -> f64 {
            let own = known.iter().filter(|(crossing, ..)| crossing.stages.contains(&stage));
            own.map(|(crossing, rtt_s, table)| crossing.flows * table.window(crossing.met(probability)) / rtt_s).sum()
        };
        for _ in 0..SWEEPS {
            let mut moved = 0.0_f64;
            for stage in (0..stages.len()).filter(|stage| full[*stage]) {
                let before = probability[stage];
                let miss = |p: f64| {
                    probability[stage] = p;
                    load(stage, &probability) - stages[stage].capacity_pps
                };
                (probability[stage], _) = halved_ratio(miss, (0.1 * NONE, 1.0), HALVINGS);
                moved = moved.max(libm::log(probability[stage] / before).abs());
            }
            if moved < 1e-7 {
                break;
            }
        }
        let idle: Vec<usize> = (0..stages.len()).filter(|&l| full[l] && probability[l] < NONE).collect();
        if !idle.is_empty() {
            idle.into_iter().for_each(|l| (full[l], probability[l]) = (false, 0.0));
            continue;
        }
        // A link that was taken out may be too narrow once others are, too.
        let narrow = (0..stages.len()).find(|&l| !full[l] && load(l, &probability) > 1.001 * stages[l].capacity_pps);
        if let Some(narrow) = narrow {
            (full[narrow], probability[narrow]) = (true, 1e-3);
            continue;
        }
        if probability.iter().any(|p| *p > 0.999) {
            return Err("every packet is signalled");
        }
        let met: Vec<f64> = crossings.iter().map(|crossing| crossing.met(&probability)).collect();
        return Ok(LotEquilibrium {
            full,
            rtt_s: known.iter().map(|(_, rtt_s, _)| *rtt_s).collect(),
            window_pkts: known.iter().zip(&met).map(|((_, _, table), p)| table.window(*p)).collect(),
            met,
            probability,
        });
    }
    Err("which links are full is not settled")
}

/// The loops of the full links.
pub(crate) struct CoupledLoops<'a> {
    crossings: &'a [Crossing],
    rests: &'a LotEquilibrium,
    /// The full stages, each with its controller, from packets to a share.
    stages: Vec<(usize, Stage, &'a Controller)>,
    tables: Vec<ResponseTable>,
}

/// LoopSample one frequency: the open loop, and what each crossing's noise makes of each delay, with its power.
struct LoopSample {
    w: f64,
    open: Vec<Complex64>,
    noise: Vec<Complex64>,
    power: Vec<f64>,
}

impl LoopSample {
    /// I + L, with `gain` times the controllers' gains.
    fn closed(&self, gain: f64) -> Vec<Complex64> {
        let n = self.open.len().isqrt();
        let unit = |k: usize| if k.is_multiple_of(n + 1) { 1.0 } else { 0.0 };
        self.open.iter().enumerate().map(|(k, open)| open * gain + unit(k)).collect()
    }
}

impl<'a> CoupledLoops<'a> {
    /// `controllers` of all stages.
    pub(crate) fn new(
        stages: &[Stage],
        crossings: &'a [Crossing],
        rests: &'a LotEquilibrium,
        controllers: &'a [Option<Controller>],
    ) -> Option<Self> {
        let full: Option<Vec<_>> = (0..stages.len())
            .filter(|&l| rests.full[l])
            .map(|l| controllers[l].as_ref().map(|controller| (l, stages[l], controller)))
            .collect();
        let tables = crossings.iter().zip(rests.met.iter().zip(&rests.rtt_s));
        let tables = tables.map(|(c, (p, rtt_s))| ResponseTable::new(&Population::new(&c.sender, *p, *rtt_s)));
        Some(CoupledLoops { crossings, rests, stages: full?, tables: tables.collect() })
    }

    fn frequencies(&self) -> Vec<f64> {
        let (shortest, longest) =
            self.rests.rtt_s.iter().fold((f64::INFINITY, 0.0_f64), |(s, l), rtt| (s.min(*rtt), l.max(*rtt)));
        let nyquist = |controller: &&Controller| controller.period_s().map_or(f64::INFINITY, |period| PI / period);
        let top = self.stages.iter().map(|(.., c)| nyquist(c)).fold(100.0 / shortest, f64::min);
        let ratio: f64 = 1.005;
        std::iter::successors(Some(1e-4 / longest), move |w| Some(w * ratio)).take_while(move |w| *w < top).collect()
    }

    fn at(&self, w: f64) -> LoopSample {
        let (n, m) = (self.stages.len(), self.crossings.len());
        let crosses = |c: usize, l: usize| self.crossings[c].stages.contains(&self.stages[l].0);
        let mut delays = vec![Complex64::ZERO; n * n];
        // Columns: what x of each crossing brings.
        let mut by_windows = vec![Complex64::ZERO; n * m];
        let mut answers = vec![Complex64::ZERO; m];
        let mut power = vec![0.0; m];
        for c in 0..m {
            let (crossing, rtt_s) = (&self.crossings[c], self.rests.rtt_s[c]);
            let tables = &self.tables[c];
            let around = tables.at(w * rtt_s);
            let rate = crossing.flows * self.rests.window_pkts[c] / rtt_s;
            answers[c] = around.response / tables.window * cis(-w * rtt_s);
            power[c] = around.power / (tables.window * tables.window) * rtt_s / crossing.flows;
            let own = 1.0 - tables.by_rtt(around.response);
            for l in (0..n).filter(|l| crosses(c, *l)) {
                by_windows[l * m + c] = rate.into();
                for other in (0..n).filter(|other| crosses(c, *other)) {
                    delays[l * n + other] += rate / rtt_s * own;
                }
            }
        }
        linear_equations::solve(&mut delays, &mut by_windows, m);
        let mut open = vec![Complex64::ZERO; n * n];
        for (k, (number, stage, controller)) in self.stages.iter().enumerate() {
            let held = hold(w * controller.period_s().unwrap_or(0.0));
            let law = controller.response(w) * held * stage.capacity_pps;
            for c in (0..m).filter(|c| crosses(*c, k)) {
                // 1 - prod (1 - p): how much one more share of this link is to the flow.
                let slope = (1.0 - self.rests.met[c]) / (1.0 - self.rests.probability[*number]);
                for l in 0..n {
                    open[l * n + k] -= by_windows[l * m + c] * answers[c] * slope * law;
                }
            }
        }
        LoopSample { w, open, noise: by_windows, power }
    }

    /// Poles right of the axis with `gain` times the controllers' gains, from how far det(I + L) turns.
    fn unstable_poles(&self, walk: &[LoopSample], gain: f64) -> i64 {
        let n = self.stages.len();
        let determinant = |at: &LoopSample| linear_equations::solve(&mut at.closed(gain), &mut [], 0);
        let angles: Vec<f64> = walk.iter().map(|at| arg(determinant(at))).collect();
        let turned: f64 = angles
            .windows(2)
            .map(|pair| {
                let step = pair[1] - pair[0];
                step - 2.0 * PI * libm::round(step / (2.0 * PI))
            })
            .sum();
        libm::round((0.5 * PI * n as f64 - turned) / PI) as i64
    }

    /// Whether the loops are stable, how much larger their gains could be, and the deviation of each full link's queue,
    /// packets.
    pub(crate) fn analyse(&self) -> (bool, Option<f64>, Vec<(usize, f64)>) {
        let (n, m) = (self.stages.len(), self.crossings.len());
        let walk: Vec<LoopSample> = self.frequencies().into_iter().map(|w| self.at(w)).collect();
        let stable = |gain: f64| self.unstable_poles(&walk, gain) <= 0;
        let (mut least, mut most) = (1.0 / 64.0, 64.0);
        let margin = (stable(least) && !stable(most)).then(|| {
            for _ in 0..24 {
                let gain = f64::sqrt(least * most);
                if stable(gain) {
                    least = gain;
                } else {
                    most = gain;
                }
            }
            least
        });
        let power = |at: &LoopSample| -> Vec<f64> {
            let mut noise = at.noise.clone();
            linear_equations::solve(&mut at.closed(1.0), &mut noise, m);
            (0..n).map(|l| (0..m).map(|c| noise[l * m + c].norm_sqr() * at.power[c]).sum()).collect()
        };
        let powers: Vec<Vec<f64>> = walk.iter().map(power).collect();
        let deviations = self.stages.iter().enumerate().map(|(l, (number, stage, _))| {
            let steps = walk.windows(2).zip(powers.windows(2));
            let variance: f64 = steps.map(|(at, power)| 0.5 * (power[0][l] + power[1][l]) * (at[1].w - at[0].w)).sum();
            (*number, stage.capacity_pps * (variance / PI).sqrt())
        });
        (stable(1.0), margin, deviations.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::around_many;
    use crate::equilibrium::response::Law;
    use crate::fluid::Model;
    use crate::linear::{Loop, OperatingPoint};
    use crate::noise::mean_field::MeanField;
    use crate::noise::packet_noise::QueueBounds;

    fn sender() -> Sender {
        Sender { law: Law::Reno, proportional: true, from_flight: true, min_window: 2.0, ..Sender::reno() }
    }

    fn crossing(flows: f64, stages: &[usize]) -> Crossing {
        Crossing { sender: sender(), flows, base_rtt_s: 0.1, stages: stages.to_vec() }
    }

    const STAGE: Stage = Stage { capacity_pps: 2000.0, queue_pkts: 100.0 };

    #[test]
    fn every_full_link_is_filled_and_the_flow_of_both_gets_least() {
        let crossings = [crossing(20.0, &[0, 1]), crossing(20.0, &[0]), crossing(20.0, &[1])];
        let found = equilibrium(&[STAGE, STAGE], &crossings).unwrap();
        let rate = |c: usize| crossings[c].flows * found.window_pkts[c] / found.rtt_s[c];
        for own in [1, 2] {
            assert!((rate(0) + rate(own) - 2000.0).abs() < 0.1, "{found:?}");
        }
        // The same share at both links; the long flow meets 1 - (1 - p)^2 and waits twice: R = .1 + 2 x .05.
        let p = found.probability[0];
        assert!((found.probability[1] / p - 1.0).abs() < 1e-4 && (found.met[0] - (2.0 * p - p * p)).abs() < 1e-9);
        assert!((found.rtt_s[0] - 0.2).abs() < 1e-12 && (found.rtt_s[1] - 0.15).abs() < 1e-12);
        assert!(rate(0) < 0.7 * rate(1));
    }

    #[test]
    fn a_wide_link_has_no_queue_and_no_signals() {
        let wide = Stage { capacity_pps: 20_000.0, ..STAGE };
        let found = equilibrium(&[STAGE, wide], &[crossing(20.0, &[0, 1]), crossing(5.0, &[1])]);
        // Five flows that nobody signals fill any link: it is full after all.
        assert!(found.unwrap().full[1]);
        let found = equilibrium(&[STAGE, wide], &[crossing(20.0, &[0, 1])]).unwrap();
        assert_eq!((found.full[1], found.probability[1]), (false, 0.0));
        assert!((found.rtt_s[0] - 0.15).abs() < 1e-12);
    }

    fn pi(gain: f64) -> Controller {
        Controller::Sampled { num: vec![3e-5 * gain, -2.9e-5 * gain], den: vec![1.0, -1.0], period_s: 0.01 }
    }

    #[test]
    fn one_link_has_the_loop_of_its_field() {
        let crossings = [crossing(20.0, &[0])];
        let found = equilibrium(&[STAGE], &crossings).unwrap();
        let field = MeanField::from_one_queue(
            2000.0,
            1.0,
            &[(sender(), 20.0, [found.met[0], 1.0], 0.15, found.window_pkts[0])],
        );
        let alone = Loop { images: 0, ..Loop::new(field, pi(1.0)) };
        let margins = alone.margins();
        let controllers = [Some(pi(1.0))];
        let (stable, margin, deviations) =
            CoupledLoops::new(&[STAGE], &crossings, &found, &controllers).unwrap().analyse();
        assert!(stable && margins.stable);
        let deviation = deviations[0].1;
        // With R = .1 s and 100 packets at 2000 a second.
        let at = OperatingPoint::new(Model::Reno, 20.0, 2000.0, 0.0, 0.1, 100.0).unwrap().with_sender(&sender());
        let held = QueueBounds { target_pkts: None, buffer_pkts: 1000.0 };
        let noise = around_many(held, &at, true, &alone);
        assert!((noise.queue_std_pkts.unwrap() / deviation - 1.0).abs() < 0.01, "{noise:?} {deviation}");
        assert!((margin.unwrap() / margins.gain_margin.unwrap() - 1.0).abs() < 0.01, "{margin:?} {margins:?}");
    }

    #[test]
    fn two_links_that_share_no_flow_are_each_by_itself() {
        let (one, both) = ([crossing(20.0, &[0])], [crossing(20.0, &[0]), crossing(20.0, &[1])]);
        let of = |stages: &[Stage], crossings: &[Crossing], gain: f64| {
            let found = equilibrium(stages, crossings).unwrap();
            let controllers = vec![Some(pi(gain)); stages.len()];
            CoupledLoops::new(stages, crossings, &found, &controllers).unwrap().analyse()
        };
        let (alone, two) = (of(&[STAGE], &one, 1.0), of(&[STAGE, STAGE], &both, 1.0));
        assert!((two.1.unwrap() / alone.1.unwrap() - 1.0).abs() < 0.02, "{two:?} {alone:?}");
        assert!((two.2[1].1 / alone.2[0].1 - 1.0).abs() < 0.01);
        // Beyond the margin both are unstable.
        let margin = alone.1.unwrap();
        assert!(of(&[STAGE, STAGE], &both, 0.95 * margin).0 && !of(&[STAGE, STAGE], &both, 1.05 * margin).0);
    }

    #[test]
    fn in_slow_motion_links_that_share_flows_have_the_same_margin_and_the_same_queues() {
        let tables = |times: f64| {
            let stage = |capacity_pps: f64| Stage { capacity_pps: capacity_pps / times, queue_pkts: 100.0 };
            let stages = [stage(2000.0), stage(1500.0)];
            let way = |flows: f64, base_rtt_s: f64, on: &[usize]| Crossing {
                base_rtt_s: base_rtt_s * times,
                ..crossing(flows, on)
            };
            let crossings = [way(15.0, 0.1, &[0, 1]), way(20.0, 0.05, &[0]), way(10.0, 0.15, &[1])];
            let found = equilibrium(&stages, &crossings).unwrap();
            let Controller::Sampled { num, den, period_s } = pi(1.0) else { unreachable!() };
            let controllers = vec![Some(Controller::Sampled { num, den, period_s: period_s * times }); 2];
            CoupledLoops::new(&stages, &crossings, &found, &controllers).unwrap().analyse()
        };
        let (stable, margin, deviations) = tables(1.0);
        for times in [1e3, 1e-3] {
            let (same, slow, slowly) = tables(times);
            assert!(same == stable && (slow.unwrap() / margin.unwrap() - 1.0).abs() < 1e-6, "{slow:?} {margin:?}");
            for (a, b) in slowly.iter().zip(&deviations) {
                assert!(a.0 == b.0 && (a.1 / b.1 - 1.0).abs() < 1e-6, "{slowly:?} {deviations:?}");
            }
        }
    }
}
