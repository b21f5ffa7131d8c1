//! Cycles that leave a rest where its loop becomes unstable, followed by harmonic balance: on which side of the
//! boundary they lie (the criticality of the Hopf bifurcation), how high they are and how long they take.
//!
//! A cycle is a mean and `HARMONICS` waves of each state. The nonlinear equations, whose delay moves with the queue,
//! are taken at evenly spaced moments of it; the law, which is linear, wave by wave. With the height of the queue's
//! first wave given, Newton's method finds all others, the frequency, and the factor on the law's gain at which such a
//! cycle stands. That factor against the height is the branch of cycles:
//!
//! ```text
//! gain = gain_0 (1 + mu2 height^2 + ...)
//! ```
//!
//! At a boundary where more gain is unstable a branch that rises (`mu2` above 0) stands where the rest is unstable,
//! and draws to itself: the loop begins to swing by little. One that falls stands where the rest is stable, repels, and
//! is the least start from which the loop does not come to rest. Where a branch turns, cycles begin and end to draw.
//!
//! A branch ends where the equations have a kink: an empty or full queue, the smallest window, p at its bounds (but at
//! 0 of a law without an integral). Beyond it only the nonlinear equations tell
//! ([`crate::nonlinear::cycle::cycle_from`]).

use std::f64::consts::PI;

use num_complex::Complex64;
use serde::Serialize;

use crate::equilibrium::window::{LEAD, gained};
use crate::fluid::Model;
use crate::linear::complex::{cis, hold};
use crate::linear::{Controller, Margins, OperatingPoint, Plant};
use aqumen_result::linear_equations;

/// Where a loop becomes unstable as its gain moves, and the cycles there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hopf {
    /// Factor on the gain at which the loop becomes unstable.
    pub gain: f64,
    /// Period of a small swing there, seconds.
    pub period_s: f64,
    /// Second-order coefficient: by which share of itself that factor moves, over the square of the queue's first wave
    /// as a share of its mean at rest.
    pub mu2: f64,
    /// Whether cycles stand beyond the boundary, where the rest is unstable, and draw to themselves.
    pub supercritical: bool,
    /// The factor at which the branch ends at a kink of the equations, or was followed no further.
    pub branch_end_gain: f64,
    /// Deviation of the queue in the cycle there, packets.
    pub branch_end_std_pkts: f64,
    /// The factor nearest to stable loops at which a cycle of the branch stands: closer to those there is none.
    pub nearest_gain: f64,
    /// The cycles of this very loop, the lowest first.
    pub cycles: Vec<BalancedCycle>,
}

/// A cycle of a loop as it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BalancedCycle {
    /// Its period, seconds.
    pub period_s: f64,
    /// Mean of the queue, packets.
    pub mean_pkts: f64,
    /// Its standard deviation, packets.
    pub std_pkts: f64,
    /// Whether what is near comes to it; if not, it parts what comes to rest from what does not.
    pub attracts: bool,
}

/// Waves of each channel.
const HARMONICS: usize = 8;
/// Moments of a cycle at which the equations are taken.
const MOMENTS: usize = 4 * (HARMONICS + 1);
/// Heights of a branch, as shares of the queue at rest: the first, and by how much each is above the one before.
const FIRST: f64 = 0.02;
const HIGHER: f64 = 1.3;
/// By what share of its height the end of a branch may be missed.
const END: f64 = 0.01;
/// By what share of the boundary's gain a branch may begin beside it, lest its cycles are others'.
const ASTRAY: f64 = 0.05;
/// Newton steps, and a step that is none.
const STEPS: u32 = 40;
const STILL: f64 = 1e-10;
/// By what share of the one before a step is at most, lest the slopes are taken anew.
const QUICKLY: f64 = 0.2;

/// Two states at most, the last of which the law sees, and what the law says of it.
type Channels = [f64; 3];

/// Equations with delays, and a linear law.
trait DelaySystem {
    /// How many states there are.
    fn states(&self) -> usize;
    /// Slopes of the states, from all channels now and so many seconds ago, at a factor on the gain.
    fn slopes(&self, gain: f64, now: Channels, ago: &dyn Fn(f64) -> Channels) -> [f64; 2];
    /// Frequency response of the law to the last state at `w`, rad/s.
    fn law(&self, w: f64) -> Complex64;
    /// Gain of the law at frequency zero; `None` where it is infinite.
    fn law_at_dc(&self) -> Option<f64>;
    /// All channels at rest, above zero.
    fn rest(&self) -> Channels;
    /// Whether the equations are smooth at these channels.
    fn smooth(&self, gain: f64, at: Channels) -> bool;
}

/// Flows at a queue.
struct Flows<'a> {
    at: &'a OperatingPoint,
    controller: &'a Controller,
    buffer_pkts: f64,
    /// Deviation of the law from its tangent, at rising distances from its equilibrium value.
    beyond: &'a [(f64, f64)],
}

impl Flows<'_> {
    /// The share that is signalled where a linear law would say `p`.
    fn said(&self, gain: f64, p: f64) -> f64 {
        let far = (p - self.at.probability) / gain;
        let line = |pair: &[(f64, f64)]| {
            let [(from, low), (to, high)] = [pair[0], pair[1]];
            (far < to).then(|| low + (high - low) * ((far - from) / (to - from)).max(0.0))
        };
        let more = self.beyond.windows(2).find_map(line).unwrap_or(0.0);
        (p + gain * more).max(0.0)
    }
}

impl DelaySystem for Flows<'_> {
    fn states(&self) -> usize {
        2
    }

    fn slopes(&self, gain: f64, [w, q, p]: Channels, ago: &dyn Fn(f64) -> Channels) -> [f64; 2] {
        let OperatingPoint { model, flows, capacity_pps, unresponsive_pps, base_rtt_s, .. } = *self.at;
        let rtt_s = |q: f64| base_rtt_s + q / capacity_pps;
        let [w_then, q_then, p_then] = ago(rtt_s(q));
        let (p, p_then) = (self.said(gain, p), self.said(gain, p_then));
        let heard = w_then / rtt_s(q_then);
        let cut = 0.5 * w * heard * p_then;
        let window = match model {
            Model::Hollot => 1.0 / rtt_s(q) - cut,
            Model::Ecn | Model::Drop => (1.0 - p_then) * heard / w - cut,
            Model::Reno => heard / w * gained(w, p_then),
        };
        let ahead = if model == Model::Reno { LEAD * window } else { 0.0 };
        let keeps = if model == Model::Drop { 1.0 - p } else { 1.0 };
        [window, keeps * (flows * (w / rtt_s(q) + ahead) + unresponsive_pps) - capacity_pps]
    }

    fn law(&self, w: f64) -> Complex64 {
        self.controller.response(w) * hold(w * self.controller.period_s().unwrap_or(0.0))
    }

    fn law_at_dc(&self) -> Option<f64> {
        let (num, den) = match self.controller {
            Controller::Sampled { num, den, .. } => (num.iter().sum(), den.iter().sum::<f64>()),
            Controller::Continuous { num, den } => (num[0], den[0]),
        };
        let size: f64 = match self.controller {
            Controller::Sampled { den, .. } | Controller::Continuous { den, .. } => den.iter().map(|c| c.abs()).sum(),
        };
        let num: f64 = num;
        (den.abs() > 1e-7 * size).then(|| num / den)
    }

    fn rest(&self) -> Channels {
        [self.at.window_pkts, self.at.queue_pkts, self.at.probability]
    }

    fn smooth(&self, gain: f64, [w, q, p]: Channels) -> bool {
        // What a law says that holds nothing in store may be below zero for a while: it signals none then.
        let kept = p >= 0.0 || self.law_at_dc().is_some();
        let told = self.beyond.last().is_none_or(|(far, _)| p - self.at.probability < far * gain);
        w >= 1.0 && (0.0..=self.buffer_pkts).contains(&q) && kept && told && self.said(gain, p) <= 1.0
    }
}

/// A periodic motion: of each channel a mean and the waves Re(a_k e^{jkwt}).
#[derive(Clone, Debug)]
struct PeriodicMotion {
    gain: f64,
    w: f64,
    mean: Channels,
    waves: [[Complex64; 3]; HARMONICS],
}

impl PeriodicMotion {
    fn at(&self, t: f64) -> Channels {
        self.turned(cis(self.w * t))
    }

    /// The channels where the first wave has turned so far.
    fn turned(&self, turn: Complex64) -> Channels {
        let (mut here, mut wave) = (self.mean, Complex64::ONE);
        for each in &self.waves {
            wave *= turn;
            for (sum, a) in here.iter_mut().zip(each) {
                *sum += (a * wave).re;
            }
        }
        here
    }

    /// Deviation of a channel.
    fn deviation(&self, channel: usize) -> f64 {
        self.waves.iter().map(|wave| 0.5 * wave[channel].norm_sqr()).sum::<f64>().sqrt()
    }
}

/// Cycles of some equations.
struct HarmonicBalance<'a, D> {
    of: &'a D,
    rest: Channels,
    law_at_dc: Option<f64>,
    n: usize,
}

impl<'a, D: DelaySystem> HarmonicBalance<'a, D> {
    fn new(of: &'a D) -> Self {
        HarmonicBalance { of, rest: of.rest(), law_at_dc: of.law_at_dc(), n: of.states() }
    }

    /// Fills in what the law says.
    fn with_law(&self, mut motion: PeriodicMotion) -> PeriodicMotion {
        let seen = self.n - 1;
        if self.n > 1 {
            if let Some(law) = self.law_at_dc {
                motion.mean[2] = self.rest[2] + motion.gain * law * (motion.mean[seen] - self.rest[seen]);
            }
            for (k, wave) in motion.waves.iter_mut().enumerate() {
                wave[2] = motion.gain * self.of.law(motion.w * (k + 1) as f64) * wave[seen];
            }
        }
        motion
    }

    /// The unknowns as one row, each in its own unit: gain, frequency, means, waves. The last state's first wave is
    /// `height`; its mean stands for the law's where the law lets it rest nowhere else.
    fn row(&self, motion: &PeriodicMotion, w0: f64) -> Vec<f64> {
        let mut row = vec![motion.gain, motion.w / w0];
        for state in 0..self.n {
            let channel = if state == self.n - 1 && self.law_at_dc.is_none() && self.n > 1 { 2 } else { state };
            row.push(motion.mean[channel] / self.unit(channel));
            for (k, wave) in motion.waves.iter().enumerate() {
                if state != self.n - 1 || k > 0 {
                    row.extend([wave[state].re / self.unit(state), wave[state].im / self.unit(state)]);
                }
            }
        }
        row
    }

    fn unit(&self, channel: usize) -> f64 {
        self.rest[channel]
    }

    fn motion(&self, row: &[f64], w0: f64, height: f64) -> PeriodicMotion {
        let mut values = row.iter().copied();
        let mut next = || values.next().unwrap_or(0.0);
        let mut motion =
            PeriodicMotion { gain: next(), w: w0 * next(), mean: self.rest, waves: [[Complex64::ZERO; 3]; HARMONICS] };
        for state in 0..self.n {
            let last = state == self.n - 1;
            let channel = if last && self.law_at_dc.is_none() && self.n > 1 { 2 } else { state };
            motion.mean[channel] = next() * self.unit(channel);
            for k in 0..HARMONICS {
                motion.waves[k][state] = match last && k == 0 {
                    true => Complex64::new(height, 0.0),
                    false => Complex64::new(next(), next()) * self.unit(state),
                };
            }
        }
        self.with_law(motion)
    }

    /// Harmonic-balance residuals of a motion: the mean of each state's slopes, and the waves of slopes less
    /// those of the state.
    fn residuals(&self, motion: &PeriodicMotion) -> Vec<f64> {
        let turns: [Complex64; MOMENTS] = std::array::from_fn(|k| cis(2.0 * PI * k as f64 / MOMENTS as f64));
        let slopes: [[f64; 2]; MOMENTS] = std::array::from_fn(|moment| {
            let t = 2.0 * PI * moment as f64 / (MOMENTS as f64 * motion.w);
            self.of.slopes(motion.gain, motion.turned(turns[moment]), &|ago| motion.at(t - ago))
        });
        let mut misses = Vec::new();
        for state in 0..self.n {
            for k in 0..=HARMONICS {
                let sum: Complex64 = slopes
                    .iter()
                    .enumerate()
                    .map(|(moment, slope)| turns[k * moment % MOMENTS].conj() * (slope[state] / MOMENTS as f64))
                    .sum();
                if k == 0 {
                    misses.push(sum.re);
                } else {
                    let moves = Complex64::new(0.0, motion.w * k as f64) * motion.waves[k - 1][state];
                    let miss = 2.0 * sum - moves;
                    misses.extend([miss.re, miss.im]);
                }
            }
        }
        misses
    }

    /// The cycle of this height next to `guess`. The slopes are taken anew where they no longer lead on quickly.
    fn solved(&self, guess: &PeriodicMotion, height: f64) -> Option<PeriodicMotion> {
        let w0 = guess.w;
        let mut row = self.row(guess, w0);
        let size = row.len();
        let (mut slopes, mut before) = (Vec::new(), f64::INFINITY);
        for _ in 0..STEPS {
            let mut step = self.residuals(&self.motion(&row, w0, height));
            if slopes.is_empty() {
                slopes = vec![0.0; size * size];
                for column in 0..size {
                    let h = 1e-6 * (row[column].abs() + 1e-3);
                    let known = row[column];
                    row[column] += h;
                    let more = self.residuals(&self.motion(&row, w0, height));
                    row[column] = known;
                    (0..size).for_each(|i| slopes[i * size + column] = (more[i] - step[i]) / h);
                }
            }
            if linear_equations::solve(&mut slopes.clone(), &mut step, 1) == 0.0 {
                return None;
            }
            let largest = step.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
            // A long step leads astray.
            let part = if largest > 0.3 { 0.3 / largest } else { 1.0 };
            row.iter_mut().zip(&step).for_each(|(x, step)| *x -= part * step);
            // Neither gain nor frequency: what is no number is not, either.
            if !row[..2].iter().all(|x| *x > 0.0) {
                return None;
            }
            if largest < STILL {
                return Some(self.motion(&row, w0, height));
            }
            if largest > QUICKLY * before {
                slopes.clear();
            }
            before = largest;
        }
        None
    }

    fn is_smooth(&self, motion: &PeriodicMotion) -> bool {
        let moments = 8 * MOMENTS;
        (0..moments).all(|moment| {
            self.of.smooth(motion.gain, motion.at(2.0 * PI * moment as f64 / (moments as f64 * motion.w)))
        })
    }

    /// Cycles from small ones upwards, as far as the equations are smooth. `first`: the first waves of the states per
    /// unit of the last one.
    fn branch(&self, gain: f64, w: f64, first: Complex64) -> Vec<PeriodicMotion> {
        let seen = self.n - 1;
        let mut height = FIRST * self.rest[seen];
        let mut guess = PeriodicMotion { gain, w, mean: self.rest, waves: [[Complex64::ZERO; 3]; HARMONICS] };
        guess.waves[0][0] = first * height;
        guess.waves[0][seen] = height.into();
        let mut found: Vec<PeriodicMotion> = Vec::new();
        // Next to its end a branch goes on by smaller steps.
        let mut higher = HIGHER;
        while higher > 1.0 + END {
            let next = self.solved(&guess, height).filter(|motion| self.is_smooth(motion));
            match (next, found.last()) {
                (Some(next), _) => found.push(next),
                (None, Some(_)) => higher = higher.sqrt(),
                (None, None) => break,
            }
            guess = found[found.len() - 1].clone();
            for (k, wave) in guess.waves.iter_mut().enumerate() {
                let grown = libm::pow(higher, (k + 1) as f64);
                wave.iter_mut().for_each(|a| *a *= grown);
            }
            height = guess.waves[0][seen].re;
        }
        found
    }

    /// The factor at which cycles begin, and by which share of itself it moves, over the square of the height as a
    /// share of the rest.
    fn begins(&self, branch: &[PeriodicMotion]) -> Option<(f64, f64)> {
        let seen = self.n - 1;
        let square = |motion: &PeriodicMotion| {
            let height = motion.waves[0][seen].re / self.rest[seen];
            height * height
        };
        let [one, other] = branch.first_chunk::<2>()?;
        let slope = (other.gain - one.gain) / (square(other) - square(one));
        let gain = one.gain - slope * square(one);
        Some((gain, slope / gain))
    }

    /// The cycle between two of a branch where the factor is one.
    fn between(&self, one: &PeriodicMotion, other: &PeriodicMotion) -> Option<PeriodicMotion> {
        let seen = self.n - 1;
        let (mut low, mut high) = (one.clone(), other.clone());
        for _ in 0..40 {
            let height = |motion: &PeriodicMotion| motion.waves[0][seen].re;
            let part = ((1.0 - low.gain) / (high.gain - low.gain)).clamp(0.1, 0.9);
            let middle = self.solved(&low, height(&low) + part * (height(&high) - height(&low)))?;
            if (middle.gain - 1.0).abs() < 1e-7 {
                return Some(middle);
            }
            if middle.gain.total_cmp(&1.0) == low.gain.total_cmp(&1.0) {
                low = middle;
            } else {
                high = middle;
            }
        }
        Some(low)
    }
}

/// The cycles of flows at `at` under a linear law, from the nearest gain at which the loop becomes unstable on; `None`
/// where no gain does, or the windows' equations are not known. `beyond`: what the law says more than its line, at
/// rising distances from what it says at rest.
pub(crate) fn hopf(
    at: &OperatingPoint,
    controller: &Controller,
    margins: &Margins,
    buffer_pkts: f64,
    beyond: &[(f64, f64)],
) -> Option<Hopf> {
    // Gains are stable up to the upper margin, from the lower one on.
    let (low, high) = (margins.gain_margin_low, margins.gain_margin);
    let (gain, rising) = match low.filter(|low| *low > 1.0) {
        Some(low) => (low, false),
        None => (high?, true),
    };
    let w = margins.phase_crossover_rad_s.filter(|w| *w > 0.0)?;
    if !(at.feasible && at.windows.is_some() && at.queue_pkts > 0.0) {
        return None;
    }
    let flows = Flows { at, controller, buffer_pkts, beyond };
    let balance = HarmonicBalance::new(&flows);
    // Windows that swing with the queue: (s - A) x = A_d e x + (b + b_d e) p, first row.
    let plant = Plant::exact(at);
    let (s, e) = (Complex64::new(0.0, w), cis(-w * plant.delay_s));
    let p = flows.law(w) * gain;
    let first = (plant.now[0][1] + e * plant.delayed[0][1] + (plant.input_now[0] + e * plant.input_delayed[0]) * p)
        / (s - plant.now[0][0] - e * plant.delayed[0][0]);
    let branch = balance.branch(gain, w, first);
    let (begins, mu2) = balance.begins(&branch).filter(|(begins, _)| (begins / gain - 1.0).abs() < ASTRAY)?;
    let last = branch.last()?;
    let outwards = if rising { 1.0 } else { -1.0 };
    let crossings = branch.windows(2).filter(|pair| (pair[0].gain > 1.0) != (pair[1].gain > 1.0));
    let cycles = crossings.filter_map(|pair| {
        let motion = balance.between(&pair[0], &pair[1])?;
        Some(BalancedCycle {
            period_s: 2.0 * PI / motion.w,
            mean_pkts: motion.mean[1],
            std_pkts: motion.deviation(1),
            attracts: (pair[1].gain > pair[0].gain) == rising,
        })
    });
    Some(Hopf {
        gain: begins,
        period_s: 2.0 * PI / branch[0].w,
        mu2,
        supercritical: mu2 * outwards > 0.0,
        branch_end_gain: last.gain,
        branch_end_std_pkts: last.deviation(1),
        nearest_gain: outwards * branch.iter().map(|motion| outwards * motion.gain).fold(outwards * begins, f64::min),
        cycles: cycles.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hutchinson's equation of a population that grows until it has eaten what was there a while ago, x' = -a x(t - 1)
    /// (1 + x(t)), its rest moved to 1: x = y - 1.
    struct Hutchinson;

    impl DelaySystem for Hutchinson {
        fn states(&self) -> usize {
            1
        }
        fn slopes(&self, gain: f64, now: Channels, ago: &dyn Fn(f64) -> Channels) -> [f64; 2] {
            [-gain * (ago(1.0)[0] - 1.0) * now[0], 0.0]
        }
        fn law(&self, _w: f64) -> Complex64 {
            Complex64::ZERO
        }
        fn law_at_dc(&self) -> Option<f64> {
            None
        }
        fn rest(&self) -> Channels {
            [1.0; 3]
        }
        fn smooth(&self, _gain: f64, at: Channels) -> bool {
            at[0] > 0.05
        }
    }

    #[test]
    fn hutchinsons_cycles_bend_as_its_normal_form_says() {
        // Its rest is lost at a = pi/2, its period is 4 there; beyond, x = e cos w t with a = pi/2 + e^2 (3 pi - 2) /
        // 40 and w = pi/2 - e^2 / 20 (Lindstedt's series).
        let balance = HarmonicBalance::new(&Hutchinson);
        let branch = balance.branch(PI / 2.0, PI / 2.0, Complex64::ONE);
        let (begins, mu2) = balance.begins(&branch).unwrap();
        assert!((begins - PI / 2.0).abs() < 1e-6, "{begins}");
        let known = (3.0 * PI - 2.0) / 40.0 / (PI / 2.0);
        assert!((mu2 / known - 1.0).abs() < 2e-3, "{mu2} {known}");
        assert!(((branch[0].w - PI / 2.0) / (FIRST * FIRST) + 0.05).abs() < 1e-4, "{}", branch[0].w);
    }

    /// Hutchinson's equation with its equilibrium scaled to this number.
    struct ScaledHutchinson(f64);

    impl DelaySystem for ScaledHutchinson {
        fn states(&self) -> usize {
            1
        }
        fn slopes(&self, gain: f64, now: Channels, ago: &dyn Fn(f64) -> Channels) -> [f64; 2] {
            let share = |channels: Channels| channels.map(|x| x / self.0);
            Hutchinson.slopes(gain, share(now), &|then| share(ago(then))).map(|slope| slope * self.0)
        }
        fn law(&self, w: f64) -> Complex64 {
            Hutchinson.law(w)
        }
        fn law_at_dc(&self) -> Option<f64> {
            None
        }
        fn rest(&self) -> Channels {
            [self.0; 3]
        }
        fn smooth(&self, gain: f64, at: Channels) -> bool {
            Hutchinson.smooth(gain, at.map(|x| x / self.0))
        }
    }

    #[test]
    fn cycles_are_the_same_in_any_unit() {
        let branch = |of: &ScaledHutchinson| HarmonicBalance::new(of).branch(PI / 2.0, PI / 2.0, Complex64::ONE);
        let one = branch(&ScaledHutchinson(1.0));
        assert!(one.len() > 10, "{}", one.len());
        for unit in [1e9, 1e-9] {
            let other = branch(&ScaledHutchinson(unit));
            assert_eq!(other.len(), one.len());
            for (a, b) in other.iter().zip(&one) {
                assert!((a.gain / b.gain - 1.0).abs() < 1e-6 && (a.w / b.w - 1.0).abs() < 1e-6, "{a:?} {b:?}");
                assert!((a.deviation(0) / b.deviation(0) / unit - 1.0).abs() < 1e-6);
            }
        }
    }

    /// Hutchinson's equation at 1.65 times its gain, which has one cycle. Counts its evaluations.
    #[derive(Default)]
    struct CountingHutchinson(std::cell::Cell<usize>);

    impl DelaySystem for CountingHutchinson {
        fn states(&self) -> usize {
            1
        }
        fn slopes(&self, gain: f64, now: Channels, ago: &dyn Fn(f64) -> Channels) -> [f64; 2] {
            self.0.set(self.0.get() + 1);
            Hutchinson.slopes(1.65 * gain, now, ago)
        }
        fn law(&self, w: f64) -> Complex64 {
            Hutchinson.law(w)
        }
        fn law_at_dc(&self) -> Option<f64> {
            None
        }
        fn rest(&self) -> Channels {
            [1.0; 3]
        }
        fn smooth(&self, gain: f64, at: Channels) -> bool {
            Hutchinson.smooth(gain, at)
        }
    }

    #[test]
    fn the_cycle_of_a_loop_as_it_is_is_that_of_its_equation_stepped_on() {
        let equation = CountingHutchinson::default();
        let asked = || equation.0.get() / MOMENTS;
        let balance = HarmonicBalance::new(&equation);
        let gain = PI / 2.0 / 1.65;
        let branch = balance.branch(gain, PI / 2.0, Complex64::ONE);
        // The slopes of 17 unknowns, and a dozen steps by them: less than a Newton step of fresh slopes would take five
        // times.
        assert!(asked() < 60 * branch.len(), "{} for {} motions", asked(), branch.len());
        let before = asked();
        let at = branch.windows(2).find(|pair| pair[0].gain < 1.0 && pair[1].gain >= 1.0).unwrap();
        let cycle = balance.between(&at[0], &at[1]).unwrap();
        // Along the line between two: by halves it would take twenty motions to a ten-millionth.
        assert!(asked() - before < 8 * 30, "{}", asked() - before);
        assert!((cycle.gain - 1.0).abs() < 1e-6, "{}", cycle.gain);
        // Heun's method on a thousandth of the delay, until the start is forgotten.
        let (lag, h) = (1000usize, 1e-3);
        let mut x = vec![1.3; lag + 1];
        let mut peaks = Vec::new();
        for step in 0..400_000usize {
            let n = x.len() - 1;
            let slope = |now: f64, then: f64| -1.65 * (then - 1.0) * now;
            let first = slope(x[n], x[n - lag]);
            let next = x[n] + 0.5 * h * (first + slope(x[n] + h * first, x[n + 1 - lag]));
            x.push(next);
            if step > 300_000 && x[n] > x[n - 1] && x[n] >= next {
                peaks.push(n);
            }
        }
        let periods = (peaks.len() - 1) as f64;
        let period = (peaks[peaks.len() - 1] - peaks[0]) as f64 * h / periods;
        assert!((2.0 * PI / cycle.w / period - 1.0).abs() < 1e-3, "{} {period}", 2.0 * PI / cycle.w);
        let whole = &x[peaks[0]..peaks[peaks.len() - 1]];
        let mean = whole.iter().sum::<f64>() / whole.len() as f64;
        let square = whole.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / whole.len() as f64;
        assert!((cycle.deviation(0) / square.sqrt() - 1.0).abs() < 0.01, "{} {}", cycle.deviation(0), square.sqrt());
        assert!((cycle.mean[0] - mean).abs() < 2e-3, "{:?} {mean}", cycle.mean);
        // Its motion is the equation's over a whole turn.
        for k in 0..20 {
            let t = f64::from(k) * 0.2;
            let slope = (cycle.at(t + 1e-5)[0] - cycle.at(t - 1e-5)[0]) / 2e-5;
            let expected = -1.65 * (cycle.at(t - 1.0)[0] - 1.0) * cycle.at(t)[0];
            assert!((slope - expected).abs() < 1e-4, "{t}: {slope} {expected}");
        }
    }

    #[test]
    fn a_motion_written_as_a_row_is_read_back() {
        let at = OperatingPoint::new(Model::Ecn, 40.0, 1250.0, 0.0, 0.2, 100.0).unwrap();
        // With an integral the law's mean is an unknown and the queue's is not; without one the other way round.
        for (den, free) in [(vec![0.0, 1.0], 2), (vec![1.0, 1.0], 1)] {
            let controller = Controller::Continuous { num: vec![1e-3, 2e-3], den };
            let flows = Flows { at: &at, controller: &controller, buffer_pkts: 300.0, beyond: &[] };
            let balance = HarmonicBalance::new(&flows);
            let mut motion =
                PeriodicMotion { gain: 1.2, w: 3.0, mean: balance.rest, waves: [[Complex64::ZERO; 3]; HARMONICS] };
            motion.mean[0] *= 1.1;
            motion.mean[free] *= 0.9;
            for (k, wave) in motion.waves.iter_mut().enumerate() {
                wave[0] = Complex64::new(0.1, -0.02 * k as f64);
                wave[1] = Complex64::new(5.0 / (k + 1) as f64, 0.5 * k as f64);
            }
            let motion = balance.with_law(motion);
            let row = balance.row(&motion, 2.5);
            assert_eq!(row.len(), 2 + 2 * (1 + 2 * HARMONICS) - 2);
            let again = balance.motion(&row, 2.5, 5.0);
            let far = |one: Complex64, other: Complex64| (one - other).l1_norm();
            assert!((again.gain - 1.2).abs() < 1e-12 && (again.w - 3.0).abs() < 1e-12);
            for channel in 0..3 {
                assert!((again.mean[channel] / motion.mean[channel] - 1.0).abs() < 1e-12, "{free} {channel}");
                let waves = again.waves.iter().zip(&motion.waves);
                assert!(waves.map(|(a, b)| far(a[channel], b[channel])).sum::<f64>() < 1e-9, "{free} {channel}");
            }
            // The law is linear: each wave by its own frequency, the mean by what lasts.
            for (k, wave) in motion.waves.iter().enumerate() {
                let said = 1.2 * flows.law(3.0 * (k + 1) as f64) * wave[1];
                assert!(far(wave[2], said) < 1e-12, "{k}");
            }
            if free == 1 {
                let lasts = at.probability - 1.2e-3 * 0.1 * at.queue_pkts;
                assert!((motion.mean[2] - lasts).abs() < 1e-12, "{:?}", motion.mean);
            }
        }
    }

    #[test]
    fn the_equations_of_flows_have_the_slopes_of_the_linear_plant() {
        for model in [Model::Hollot, Model::Ecn, Model::Reno, Model::Drop] {
            let at = OperatingPoint::new(model, 60.0, 1250.0, 150.0, 0.2, 100.0).unwrap();
            let controller = Controller::Continuous { num: vec![1.0], den: vec![1.0] };
            let flows = Flows { at: &at, controller: &controller, buffer_pkts: 300.0, beyond: &[] };
            let plant = Plant::exact(&at);
            let slopes = |now: Channels, then: Channels| {
                let ago = |ago: f64| {
                    // A round trip as long as the queue now makes it.
                    assert!((ago - (0.2 + now[1] / 1250.0)).abs() < 1e-12, "{ago}");
                    then
                };
                flows.slopes(1.0, now, &ago)
            };
            let rest = flows.rest();
            let still = slopes(rest, rest);
            assert!(still[0].abs() < 1e-9 && still[1].abs() < 1e-6, "{model:?}: {still:?}");
            for channel in 0..3 {
                let h = 1e-5 * rest[channel];
                let moved = |by: f64| {
                    let mut moved = rest;
                    moved[channel] += by;
                    moved
                };
                let now = [0, 1].map(|row| (slopes(moved(h), rest)[row] - slopes(moved(-h), rest)[row]) / (2.0 * h));
                let then = [0, 1].map(|row| (slopes(rest, moved(h))[row] - slopes(rest, moved(-h))[row]) / (2.0 * h));
                for row in 0..2 {
                    let (known_now, known_then) = match channel {
                        2 => (plant.input_now[row], plant.input_delayed[row]),
                        _ => (plant.now[row][channel], plant.delayed[row][channel]),
                    };
                    for (seen, known) in [(now[row], known_now), (then[row], known_then)] {
                        assert!(
                            (seen - known).abs() < 1e-5 * (1.0 + known.abs()),
                            "{model:?} {row} {channel}: {seen} {known}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn what_a_law_says_beyond_its_line_goes_by_the_distance_at_its_gain() {
        let at = OperatingPoint::new(Model::Hollot, 60.0, 1250.0, 0.0, 0.2, 100.0).unwrap();
        let controller = Controller::Continuous { num: vec![1.0], den: vec![1.0] };
        let beyond = [(0.1, 0.0), (0.2, 0.05), (0.4, 0.45)];
        let flows = Flows { at: &at, controller: &controller, buffer_pkts: 300.0, beyond: &beyond };
        let p = at.probability;
        for gain in [1.0, 2.0] {
            // On the line, half way to .05, half way from there to .45, and never less than nothing.
            for (far, more) in [(-0.05, 0.0), (0.05, 0.0), (0.15, 0.025), (0.3, 0.25)] {
                let said = flows.said(gain, p + gain * far);
                assert!((said - (p + gain * (far + more)).max(0.0)).abs() < 1e-12, "{gain} {far}: {said}");
            }
        }
        assert_eq!(flows.said(1.0, -0.3), 0.0);
        // What is not told at all ends a branch, as do the ends of queue, window and share.
        let rest = flows.rest();
        let smooth = |channel: usize, value: f64| {
            let mut moved = rest;
            moved[channel] = value;
            flows.smooth(1.0, moved)
        };
        assert!(flows.smooth(1.0, rest) && smooth(2, p + 0.39) && !smooth(2, p + 0.4));
        let half = |far: f64| flows.smooth(0.5, [rest[0], rest[1], p + far]);
        assert!(half(0.19) && !half(0.21));
        assert!(smooth(0, 1.0) && !smooth(0, 0.99) && smooth(1, 0.0) && !smooth(1, -0.01));
        assert!(smooth(1, 300.0) && !smooth(1, 300.1));
        // A law that holds nothing in store may be below zero, one with an integral not.
        assert!(smooth(2, -0.01));
        let integral = Controller::Continuous { num: vec![1.0], den: vec![0.0, 1.0] };
        let held = Flows { controller: &integral, beyond: &[], ..flows };
        assert!(!held.smooth(1.0, [rest[0], rest[1], -0.01]) && held.smooth(1.0, [rest[0], rest[1], 1.0]));
        assert!(!held.smooth(1.0, [rest[0], rest[1], 1.01]));
    }

    #[test]
    fn a_law_says_of_what_lasts_what_its_coefficients_do() {
        let at = OperatingPoint::new(Model::Hollot, 60.0, 1250.0, 0.0, 0.2, 100.0).unwrap();
        let of = |controller: &Controller| {
            let flows = Flows { at: &at, controller, buffer_pkts: 300.0, beyond: &[] };
            (flows.law_at_dc(), flows.law(2.0))
        };
        let continuous = Controller::Continuous { num: vec![3.0, 1.0], den: vec![2.0, 5.0] };
        let (rest, swing) = of(&continuous);
        assert_eq!(rest, Some(1.5));
        assert!((swing - Complex64::new(3.0, 2.0) / Complex64::new(2.0, 10.0)).l1_norm() < 1e-12);
        assert_eq!(of(&Controller::Continuous { num: vec![3.0], den: vec![0.0, 1.0] }).0, None);
        let sampled = Controller::Sampled { num: vec![3.0, -1.0], den: vec![1.0, -0.5], period_s: 0.1 };
        let (rest, swing) = of(&sampled);
        assert_eq!(rest, Some(4.0));
        // z^-1 turns by .2; held for a period: sin(.1) / .1, .1 late.
        let back = cis(-0.2);
        let expected = (3.0 - back) / (1.0 - 0.5 * back) * cis(-0.1) * (0.1f64.sin() / 0.1);
        assert!((swing - expected).l1_norm() < 1e-12, "{swing} {expected}");
        assert_eq!(of(&Controller::Sampled { num: vec![3.0], den: vec![1.0, -1.0], period_s: 0.1 }).0, None);
    }

    #[test]
    fn in_slow_motion_cycles_are_as_high_and_take_as_many_times_as_long() {
        use crate::linear::Loop;
        for sampled in [false, true] {
            let told = |times: f64| {
                let at = OperatingPoint::new(Model::Ecn, 40.0, 1250.0 / times, 0.0, 0.2 * times, 100.0).unwrap();
                let (slope, integral) = (3e-5, 1.5e-5);
                let controller = match sampled {
                    true => Controller::Sampled {
                        num: vec![slope + 0.05 * integral, -slope],
                        den: vec![1.0, -1.0],
                        period_s: 0.05 * times,
                    },
                    false => Controller::Continuous { num: vec![integral / times, slope], den: vec![0.0, 1.0] },
                };
                let margins = Loop::new(Plant::exact(&at), controller.clone()).margins();
                hopf(&at, &controller, &margins, 300.0, &[]).unwrap()
            };
            let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-5, "{sampled}: {a} {b}");
            let known = told(1.0);
            for times in [1e3, 1e-3] {
                let slow = told(times);
                near(slow.gain, known.gain);
                near(slow.period_s / times, known.period_s);
                near(slow.mu2, known.mu2);
                near(slow.branch_end_gain, known.branch_end_gain);
                near(slow.branch_end_std_pkts, known.branch_end_std_pkts);
                near(slow.nearest_gain, known.nearest_gain);
                assert_eq!(slow.cycles.len(), known.cycles.len());
            }
        }
    }

    #[test]
    fn a_cycle_next_to_the_boundary_takes_as_long_as_a_swing_there() {
        use crate::linear::Loop;
        let at = OperatingPoint::new(Model::Ecn, 40.0, 1250.0, 0.0, 0.2, 100.0).unwrap();
        let controller = Controller::Continuous { num: vec![1.5e-5, 3e-5], den: vec![0.0, 1.0] };
        let margins = |controller: &Controller| Loop::new(Plant::exact(&at), controller.clone()).margins();
        let gain = margins(&controller).gain_margin.unwrap();
        let of = |share: f64| {
            let scaled = controller.scaled(share * gain);
            hopf(&at, &scaled, &margins(&scaled), 300.0, &[]).unwrap()
        };
        let side = if of(0.99).supercritical { 1.0 } else { -1.0 };
        let heights = [1e-3, 4e-3].map(|beyond| {
            let told = of(1.0 + side * beyond);
            let [cycle] = &told.cycles[..] else { panic!("{told:?}") };
            assert!((cycle.period_s / told.period_s - 1.0).abs() < 0.01, "{told:?}");
            assert_eq!(cycle.attracts, told.supercritical);
            cycle.std_pkts
        });
        // Four times as far from the boundary they are twice as high.
        assert!((heights[1] / heights[0] - 2.0).abs() < 0.02, "{heights:?}");
    }

    #[test]
    fn below_the_least_stable_gain_cycles_begin_at_that_gain() {
        use crate::linear::Loop;
        // Three integrals, whose leads need gain.
        let at = OperatingPoint::new(Model::Ecn, 40.0, 1250.0, 0.0, 0.2, 100.0).unwrap();
        let lead_s = 8.0;
        let controller = |k: f64| Controller::Continuous {
            num: vec![k, 2.0 * k * lead_s, k * lead_s * lead_s],
            den: vec![0.0, 0.0, 0.0, 1.0],
        };
        let margins = |k: f64| Loop::new(Plant::exact(&at), controller(k)).margins();
        let least = 1e-6 * margins(1e-6).gain_margin_low.unwrap();
        let told = [1.01, 1.3].map(|part| {
            let (k, margins) = (least / part, margins(least / part));
            let told = hopf(&at, &controller(k), &margins, 300.0, &[]).unwrap();
            // At the edge one root has the frequency that the loop's response says.
            assert!((told.gain / part - 1.0).abs() < 1e-6, "{told:?}");
            let period_s = 2.0 * PI / margins.phase_crossover_rad_s.unwrap();
            assert!((told.period_s / period_s - 1.0).abs() < 1e-2, "{told:?} {period_s}");
            // What bends to more gain, where the rest is stable, repels; none stands at this loop's own.
            assert!(told.mu2 > 0.0 && !told.supercritical && told.cycles.is_empty(), "{told:?}");
            assert!(told.branch_end_gain > told.gain && told.nearest_gain == told.branch_end_gain, "{told:?}");
            (told.mu2, told.branch_end_gain / part, told.branch_end_std_pkts)
        });
        let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-4, "{told:?}");
        near(told[0].0, told[1].0);
        near(told[0].1, told[1].1);
        near(told[0].2, told[1].2);
    }
}
