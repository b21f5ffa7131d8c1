//! Many windows at once, each with its own chances: how their mean answers a share of signals that varies, and the noise that they make
//! themselves, without a number that was fitted.
//!
//! The density of the windows over the states of their cycles moves with time; a signal takes a window from the end of one cycle to the
//! beginning of the next. Around its rest, with flux `phi_i` of windows that enter cycle i, survival `S_i(a)` up to the age a and
//! acknowledgements `r_i(a)`, a share p + dp e^{st} moves the density to
//!
//! ```text
//! nu_i(a) = S_i(a) (psi_i e^{-sa} - phi_i dp integral_0^a r_i(u) e^{-s(a-u)} du)
//! ```
//!
//! where the psi balance at each signal. The mean in flight is the density's with the packets in flight. The noise of one window is the
//! transform of its correlation E\[(f(0) - F) f(t)\]: the density whose cells are weighted with f - F at time 0 moves by the same law,
//! so that the integral has f - F for -r dp. Each step of a cycle is balanced (what enters, leaves and stays), so that no window is lost.
//!
//! Time is in round trips.

use std::f64::consts::PI;

use num_complex::Complex64;

use crate::chain::{Chain, Cycle, Step};
use crate::linear::complex::exp;
use crate::sender::{Law, Sender};

/// Many windows of one sender around their rest.
#[derive(Debug)]
pub(crate) struct Population {
    /// Signals are met with this chance by each acknowledgement.
    p: f64,
    cycles: Vec<Cycle>,
    /// The same with an alpha above and below p by [`Population::shift`].
    shifted: Option<[Vec<Cycle>; 2]>,
    shift: f64,
    /// Rounds over which alpha is measured.
    observed: f64,
    /// Windows that enter each cycle, of one window a round trip.
    flux: Vec<f64>,
    /// Mean in flight, and of those in the network.
    flight: f64,
    window: f64,
    /// Variance of what is not in the network although it is in flight, packets^2.
    held: f64,
    /// d ln flight / d ln R where growth goes by the clock.
    by_rtt: f64,
    /// Response at rest.
    still: f64,
}

/// At one frequency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Around {
    /// How packets in flight answer the share of signals, packets.
    pub(crate) response: Complex64,
    /// Power of their noise, packets^2 a round trip.
    pub(crate) power: f64,
    /// How they answer a relative change of the round trip, packets.
    pub(crate) by_rtt: Complex64,
}

/// g of DCTCP and Prague.
const ALPHA_GAIN: f64 = 1.0 / 16.0;

impl Population {
    pub(crate) fn new(sender: &Sender, p: f64, rtt_s: f64) -> Self {
        let p = p.clamp(1e-9, 0.999);
        let (chain, waiting) = Chain::around(sender, p, rtt_s);
        let cycles = chain.cycles();
        let (chances, _) = chain.told(&cycles);
        let shift = 0.01 * p;
        let shifted = matches!(sender.law, Law::Dctcp | Law::Prague)
            .then(|| [shift, -shift].map(|shift| chain.with_alpha(shift).cycles()));
        let mut population = Population {
            p,
            cycles,
            shifted,
            shift,
            observed: waiting,
            flux: chances,
            flight: 0.0,
            window: 0.0,
            held: 0.0,
            by_rtt: 0.0,
            still: 0.0,
        };
        let (mut rounds, mut flight) = (0.0, 0.0);
        for (chance, cycle) in population.flux.iter().zip(&population.cycles) {
            let mut left = *chance;
            for step in &cycle.steps {
                let (stays, after) = population.at_rest(step);
                rounds += left * stays;
                flight += left * stays * step.flight;
                left *= after;
            }
        }
        population.flight = flight / rounds;
        let outside = chain.outside_pkts(population.flight);
        population.window = (population.flight - outside).max(0.2 * population.flight);
        // An acknowledgement is held back or not. What a paced sender holds back meanwhile makes up for it: it sends evenly.
        population.held = if sender.paced { 0.0 } else { outside * (1.0 - outside) };
        population.flux.iter_mut().for_each(|flux| *flux /= rounds);
        population.still = population.at(Complex64::new(0.0, 1e-3)).response.re;
        let by_clock = sender.law == Law::Cubic || sender.law == Law::Prague && rtt_s < crate::chain::PRAGUE_RTT_S;
        if by_clock {
            let log = |rtt_s: f64| libm::log(sender.rest(p, rtt_s).window_pkts);
            population.by_rtt = (log(1.03 * rtt_s) - log(rtt_s / 1.03)) / (2.0 * libm::log(1.03));
        }
        population
    }

    /// Mean in the network, packets.
    pub(crate) fn window_pkts(&self) -> f64 {
        self.window
    }

    /// Signals that a window meets a round trip for each acknowledgement.
    fn rate(&self) -> f64 {
        -libm::log1p(-self.p)
    }

    /// How long one who enters `step` stays in it, and the chance to leave it without a signal.
    fn at_rest(&self, step: &Step) -> (f64, f64) {
        let rate = self.rate() * step.acks;
        let after = libm::exp(-rate * step.rounds);
        (if rate > 0.0 { (1.0 - after) / rate } else { step.rounds }, after)
    }

    /// Around the rest at `s`, in inverse round trips.
    pub(crate) fn at(&self, s: Complex64) -> Around {
        let n = self.cycles.len();
        let still = |_: &Step| Push::default();
        // What a window is worth that enters a cycle: packets in flight beyond the mean, from then on.
        let mut matrix = vec![Complex64::ZERO; n * n];
        let mut value = vec![Complex64::ZERO; n];
        for (i, cycle) in self.cycles.iter().enumerate() {
            let row = &mut matrix[i * n..(i + 1) * n];
            value[i] = self.walk(cycle, s, 1.0, still, |to, share| row[to] -= share);
            row[i] += 1.0;
        }
        solve(&mut matrix, &mut value);
        let worth = |cycle: &Cycle, enters: f64, push: &dyn Fn(&Step) -> Push| {
            let mut later = Complex64::ZERO;
            self.walk(cycle, s, enters, push, |to, share| later += share * value[to]) + later
        };
        let signalled = |step: &Step| Push { by: -step.acks / (1.0 - self.p), new: false };
        let weighted = |step: &Step| Push { by: step.flight - self.flight, new: true };
        let (mut response, mut noise, mut alpha) = (Complex64::ZERO, Complex64::ZERO, Complex64::ZERO);
        for (i, (cycle, flux)) in self.cycles.iter().zip(&self.flux).enumerate().filter(|(_, (_, flux))| **flux > 1e-12)
        {
            response += worth(cycle, 0.0, &signalled) * *flux;
            noise += worth(cycle, 0.0, &weighted) * *flux;
            if let Some([above, below]) = &self.shifted {
                alpha += (worth(&above[i], 1.0, &still) - worth(&below[i], 1.0, &still)) / (2.0 * self.shift) * *flux;
            }
        }
        // Windows grow by whole packets, of which on average half is missing, once in a round trip; every second acknowledgement is held
        // back for a gap between packets. Both are quicker than any loop, so that their variance counts, not its shape.
        let quick = |variance: f64, rounds: f64| {
            let turned = s * rounds;
            2.0 * variance * rounds / (1.0 + turned.norm_sqr())
        };
        let (fraction, held) = (quick(1.0 / 12.0, 0.5 / PI), quick(self.held, 0.5 / self.window));
        let mut power = 2.0 * noise.re + fraction + held;
        if self.shifted.is_some() {
            // The marks of an observation tell alpha, which holds until the next one ends.
            let back = exp(-s * self.observed);
            let mean = if s.l1_norm() < 1e-9 { Complex64::ONE } else { (1.0 - back) / (s * self.observed) };
            let direct = response;
            response += alpha * mean * mean * ALPHA_GAIN / (1.0 - (1.0 - ALPHA_GAIN) * back);
            // What chance makes of a window's own marks moves its alpha as it does the window itself.
            let chance = self.p * (1.0 - self.p) / self.flight;
            power += (response.norm_sqr() - direct.norm_sqr()) * chance;
        }
        let by_rtt =
            if self.by_rtt == 0.0 { Complex64::ZERO } else { response / self.still * self.by_rtt * self.window };
        Around { response, power, by_rtt }
    }

    /// Goes through a cycle that `enters` windows begin, and tells where signals take how many. Answers the sum, over time, of who is
    /// there times packets in flight beyond the mean.
    fn walk(
        &self,
        cycle: &Cycle,
        s: Complex64,
        enters: f64,
        push: impl Fn(&Step) -> Push,
        mut told: impl FnMut(usize, Complex64),
    ) -> Complex64 {
        let (mut sum, mut survival, mut here) = (Complex64::ZERO, 1.0, Complex64::from(enters));
        let mut last = (0, 0.0);
        for step in &cycle.steps {
            let rate = self.rate() * step.acks;
            let Push { by, new } = push(step);
            let (stays, after) = self.at_rest(step);
            let back = exp(-s * step.rounds);
            // At t in the step: e^{-rate t} (here e^{-st} + survival by (1 - e^{-st}) / s).
            let slow = s.l1_norm() * step.rounds < 1e-6;
            let within = if slow && rate == 0.0 { step.rounds.into() } else { (1.0 - after * back) / (s + rate) };
            let (pushed, grown) = match slow {
                true => (step.rounds.into(), Complex64::ZERO),
                false => ((1.0 - back) / s, (stays - within) / s),
            };
            let mass = here * within + survival * by * grown;
            let next = after * (here * back + survival * by * pushed);
            sum += mass * (step.flight - self.flight);
            if rate > 0.0 {
                let came = if new { survival * by * stays } else { 0.0 };
                let signals = here + came - next - s * mass;
                told(step.to.0, signals * (1.0 - step.to.1));
                told(step.to.0 + 1, signals * step.to.1);
                last = step.to;
            }
            here = next;
            survival *= after;
        }
        told(last.0, here * (1.0 - last.1));
        told(last.0 + 1, here * last.1);
        sum
    }
}

/// What moves the density in a step, per window that is there and round trip.
#[derive(Clone, Copy, Debug, Default)]
struct Push {
    by: f64,
    /// Whether it is more windows; else a signal takes them.
    new: bool,
}

/// Solves `matrix` x = `right` in place, by elimination with the largest pivot of each column.
fn solve(matrix: &mut [Complex64], right: &mut [Complex64]) {
    let n = right.len();
    for k in 0..n {
        let pivot =
            (k..n).max_by(|&a, &b| matrix[a * n + k].norm_sqr().total_cmp(&matrix[b * n + k].norm_sqr())).unwrap_or(k);
        if pivot != k {
            (0..n).for_each(|j| matrix.swap(k * n + j, pivot * n + j));
            right.swap(k, pivot);
        }
        let (above, below) = matrix.split_at_mut((k + 1) * n);
        let (own, answer) = (&above[k * n..], right[k]);
        let inverse = own[k].inv();
        for (i, row) in below.chunks_exact_mut(n).enumerate() {
            let factor = row[k] * inverse;
            if factor == Complex64::ZERO {
                continue;
            }
            row[k + 1..].iter_mut().zip(&own[k + 1..]).for_each(|(cell, above)| *cell -= factor * above);
            right[k + 1 + i] -= factor * answer;
        }
    }
    for k in (0..n).rev() {
        let known: Complex64 = (k + 1..n).map(|j| matrix[k * n + j] * right[j]).sum();
        right[k] = (right[k] - known) / matrix[k * n + k];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(law: Law) -> Sender {
        Sender { law, proportional: true, from_flight: true, min_window: 2.0, ..Sender::reno() }
    }

    fn near(left: f64, right: f64, share: f64) {
        assert!((left / right - 1.0).abs() < share, "{left} is not {right}");
    }

    const CASES: [(Law, f64, f64); 5] = [
        (Law::Reno, 0.02, 0.1),
        (Law::Reno, 1e-3, 0.1),
        (Law::Cubic, 2e-3, 0.2),
        (Law::Dctcp, 0.1, 0.1),
        (Law::Prague, 0.1, 0.015),
    ];

    #[test]
    fn a_lasting_push_moves_the_mean_along_its_response_function() {
        for (law, p, rtt_s) in CASES {
            let population = Population::new(&of(law), p, rtt_s);
            let slow = population.at(Complex64::new(0.0, 1e-4)).response * p / population.window_pkts();
            near(slow.re, of(law).elasticity(p, rtt_s), 0.08);
            assert!(slow.im.abs() < 0.02 * slow.re.abs(), "{law:?} {slow}");
        }
    }

    #[test]
    fn the_power_sums_up_to_the_variance_of_a_window() {
        for (law, p, rtt_s) in CASES {
            let population = Population::new(&of(law), p, rtt_s);
            let power = |w: f64| population.at(Complex64::new(0.0, w)).power;
            let (mut w, mut before) = (1e-4, power(1e-4));
            let mut variance = w * before;
            while w < 100.0 {
                let (next, here) = (1.2 * w, power(1.2 * w));
                variance += 0.5 * (before + here) * (next - w);
                (w, before) = (next, here);
            }
            // The chain's variance is at an alpha of p: its own comes on top.
            let still = of(law).rest(p, rtt_s).variance_pkts2;
            match law {
                Law::Reno | Law::Cubic => near(variance / PI, still, 0.2),
                Law::Dctcp | Law::Prague => {
                    assert!((1.1..2.5).contains(&(variance / PI / still)), "{variance} {still}")
                }
            }
        }
        // Of large windows of Reno the closed form: halvings of (2/3) W a round through a pole of p W / .8578, W = 1.3098 / sqrt(p):
        // 87.3 / .01527^2 = 3.74e5 at W = 131.
        let population = Population::new(&of(Law::Reno), 1e-4, 0.1);
        near(population.at(Complex64::new(0.0, 1e-5)).power, 3.74e5, 0.1);
    }

    #[test]
    fn an_alpha_that_lags_answers_late() {
        // DCTCP's alpha takes 16 rounds: at a tenth of a radian a round its answer lags far behind Reno's of the same window.
        let lag = |law: Law, p: f64| {
            let response = Population::new(&of(law), p, 0.1).at(Complex64::new(0.0, 0.1)).response;
            PI - response.im.atan2(response.re).abs()
        };
        assert!(lag(Law::Dctcp, 0.1) > lag(Law::Reno, 0.01) + 0.3);
    }

    #[test]
    fn no_equation_is_solved_wrong() {
        // The first pivot is zero: rows are exchanged.
        let matrix =
            [Complex64::new(0.0, 0.0), Complex64::new(0.0, 1.0), Complex64::new(2.0, 0.0), Complex64::new(1.0, 0.0)];
        let right = [Complex64::new(1.0, 1.0), Complex64::new(3.0, 0.0)];
        let (mut copy, mut x) = (matrix, right);
        solve(&mut copy, &mut x);
        // j x2 = 1 + j: x2 = 1 - j; 2 x1 = 3 - 1 + j.
        assert!(
            (x[1] - Complex64::new(1.0, -1.0)).l1_norm() < 1e-12 && (x[0] - Complex64::new(1.0, 0.5)).l1_norm() < 1e-12
        );
    }
}
