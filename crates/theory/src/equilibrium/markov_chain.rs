//! The windows of one sender at a constant share of signals, as a chain over the windows at which signals come: what
//! follows a signal, step by step, until the next one.

use crate::equilibrium::sender::{Law, Sender};
use crate::root_finding::falling;

/// Equilibrium of a window under random signals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Equilibrium {
    /// Mean number of packets in the network, packets.
    pub window_pkts: f64,
    /// Its variance over time, packets^2.
    pub variance_pkts2: f64,
}

/// Points of the grid of windows, and the steps of growth that a round trip at most has.
pub(crate) const POINTS: usize = 72;
const STEPS_A_ROUND: f64 = 3.0;
/// Steps of a fall in a round trip: it begins with no jump, which a quick loop would feel.
const FALLS_A_ROUND: f64 = 16.0;
/// Chance below which a window at a signal is hardly ever met, and by how many points the range of those that are is
/// widened.
const HARDLY: f64 = 1e-7;
const WIDER: usize = 8;
/// Growth is followed until so little of a cycle's chance is left.
const LEFT: f64 = 1e-5;
/// C of CUBIC, packets/s^3, its reduction, and Reno's growth with that reduction (RFC 9438, sections 5.1, 4.6, 4.3).
const CUBIC_C: f64 = 0.4;
const CUBIC_BETA: f64 = 0.7;
const CUBIC_ALPHA: f64 = 3.0 * (1.0 - CUBIC_BETA) / (1.0 + CUBIC_BETA);
/// Linux's CUBIC keeps to what it has worked out for so long, seconds (HZ / 32).
const RECALCULATION_S: f64 = 1.0 / 32.0;
/// Prague's virtual round trip, seconds.
pub(crate) const PRAGUE_RTT_S: f64 = 0.025;
/// How near Prague's window comes to the one that has its own gap between packets, and how much larger than that
/// without a gap it may be, in its logarithm.
const GAP_ERROR: f64 = 1e-9;
const LONGER: f64 = 3.0;
/// Packets that wait for the pacer of a sender whose packets are acknowledged one by one, and how many more do, the
/// receiver included, where two are acknowledged together. What is released meanwhile falls behind, since the pacer is
/// hardly quicker than the window. The only numbers here that are measured, in packets (docs/theory/models.md): within
/// a tenth the same at windows of 4 to 19 and shares of .12 to .3.
const PACER_HOLDS: [f64; 2] = [0.88, 1.18];

/// Markov chain of the window at successive signals, on a logarithmic grid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MarkovChain<'a> {
    sender: &'a Sender,
    p: f64,
    rtt_s: f64,
    /// The round trip that the sender measures.
    seen_s: f64,
    typical: f64,
    lowest: f64,
    /// ln of the ratio of two points.
    step: f64,
    /// Offset of DCTCP's and Prague's alpha from p.
    alpha_shift: f64,
}

/// A stretch of a cycle in which as many packets are in flight throughout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// How long it lasts, round trips.
    pub(crate) rounds: f64,
    /// Packets in flight.
    pub(crate) flight: f64,
    /// Acknowledgements a round trip whose signals count.
    pub(crate) acks: f64,
    /// Where a signal in it leaves the window: a state, and the share of that one point further.
    pub(crate) to: (usize, f64),
}

/// One cycle: from a signal at a given window to the next signal.
#[derive(Debug)]
pub(crate) struct Cycle {
    /// Chances of the windows at the next signal, and of CUBIC's limit above them.
    next: Vec<f64>,
    acks: f64,
    rounds: f64,
    /// Sum of window and squared window over its rounds.
    area: [f64; 2],
    /// Steps of the cycle.
    pub(crate) steps: Vec<Step>,
}

/// States that follow each other: `stride` for each point, of CUBIC that with its limit at the window and that with it
/// above.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    pub(crate) from: usize,
    pub(crate) end: usize,
    pub(crate) stride: usize,
}

impl Range {
    pub(crate) fn len(self) -> usize {
        self.end - self.from
    }

    /// Its number of `state`, or of that at its end where `state` lies beyond.
    pub(crate) fn index_of(self, state: usize) -> usize {
        let kind = state % self.stride;
        state.clamp(self.from + kind, self.end - self.stride + kind) - self.from
    }

    /// Its number of a state and the share of that one point further, both of them in the range.
    pub(crate) fn between(self, (state, part): (usize, f64)) -> (usize, f64) {
        let kind = state % self.stride;
        if state < self.from {
            (kind, 0.0)
        } else if state + self.stride >= self.end {
            (self.len() - 2 * self.stride + kind, 1.0)
        } else {
            (state - self.from, part)
        }
    }
}

/// Stationary distribution of the window at signals.
#[derive(Debug)]
pub(crate) struct StationaryWindows {
    pub(crate) range: Range,
    /// Cycle of each state of the range, and the stationary probabilities at a signal.
    pub(crate) cycles: Vec<Cycle>,
    pub(crate) chances: Vec<f64>,
    pub(crate) equilibrium: Equilibrium,
}

/// The chances of the states at a signal, from where each leads, by taking one state after the other out (Grassmann,
/// Taksar and Heyman, "Regenerative analysis and steady state distributions for Markov chains", 1985: no difference is
/// ever taken).
fn stationary_distribution(range: Range, cycles: &[Cycle]) -> Vec<f64> {
    let n = range.len();
    let mut leads = vec![0.0; n * n];
    for (row, cycle) in leads.chunks_exact_mut(n).zip(cycles) {
        for (state, share) in cycle.next.iter().enumerate().filter(|(_, share)| **share > 0.0) {
            row[range.index_of(state)] += share;
        }
    }
    // States below this one are left for good.
    let mut lowest = 0;
    for k in (1..n).rev() {
        let (above, own) = leads.split_at_mut(k * n);
        // A reduction leads few states down.
        let own = &own[..k];
        let Some(first) = own.iter().position(|share| *share > 0.0) else {
            lowest = k;
            break;
        };
        let out: f64 = own[first..].iter().sum();
        for row in above.chunks_exact_mut(n).filter(|row| row[k] > 0.0) {
            row[k] /= out;
            let comes = row[k];
            row[first..k].iter_mut().zip(&own[first..]).for_each(|(cell, share)| *cell += comes * share);
        }
    }
    let mut chances = vec![0.0; n];
    chances[lowest] = 1.0;
    for k in lowest + 1..n {
        chances[k] = (lowest..k).map(|i| chances[i] * leads[i * n + k]).sum();
    }
    let all: f64 = chances.iter().sum();
    chances.iter_mut().for_each(|chance| *chance /= all);
    chances
}

impl<'a> MarkovChain<'a> {
    pub(crate) fn new(sender: &'a Sender, p: f64, rtt_s: f64, seen_s: f64) -> Self {
        let typical = match sender.law {
            Law::Reno => 1.31 / p.sqrt(),
            // RFC 9438 equation 5, and the Reno-friendly region below it.
            Law::Cubic => (1.31 / p.sqrt()).max(1.05 * libm::pow(rtt_s / p, 0.75)),
            Law::Dctcp => 1.41 / p,
            Law::Prague => 2.73 / p * (rtt_s / PRAGUE_RTT_S).min(1.0),
        };
        let (lowest, highest) = match sender.law {
            Law::Reno | Law::Cubic => (0.12 * typical, 6.0 * typical + 4.0),
            Law::Dctcp | Law::Prague => {
                // At a small share windows are alike: growth ends by chance within 1/sqrt(2) rounds, reductions take
                // p/2 of what is too much, so that they deviate by sqrt(p)/2.
                let apart = 5.0 * p.sqrt();
                (typical * libm::exp(-apart).max(0.3), typical * libm::exp(apart).min(2.5) + 4.0)
            }
        };
        let lowest = lowest.max(sender.min_window);
        let step = libm::log(highest / lowest) / (POINTS - 1) as f64;
        MarkovChain { sender, p, rtt_s, seen_s, typical, lowest, step, alpha_shift: 0.0 }
    }

    /// The chain of `sender` at the round trip that it measures, and how many round trips an answer to a signal keeps
    /// the next one off.
    pub(crate) fn with_measured_rtt(sender: &'a Sender, p: f64, rtt_s: f64) -> (Self, f64) {
        let chain = MarkovChain::new(sender, p, rtt_s, rtt_s);
        let prague = sender.law == Law::Prague && rtt_s < PRAGUE_RTT_S;
        let waiting = if prague { PRAGUE_RTT_S / rtt_s } else { 1.0 };
        if !prague {
            return (chain, waiting);
        }
        // Its growth goes by the round trip that it measures: that of the packet whose acknowledgement was held back
        // for a gap between packets, which is the longer the smaller the window: one window has its own gap, and it is
        // larger than that without one.
        let with = |window: f64| MarkovChain::new(sender, p, rtt_s, rtt_s + (rtt_s / window).min(sender.held_s));
        let miss = |u: f64| libm::log(with(libm::exp(u)).equilibrium().window_pkts) - u;
        let without = libm::log(chain.equilibrium().window_pkts);
        let own = falling(miss, (without, without + LONGER), (without, -1.0), GAP_ERROR);
        (with(libm::exp(own.unwrap_or(without))), waiting)
    }

    /// Returns the chain with an alpha of p + `shift`.
    pub(crate) fn with_alpha(&self, shift: f64) -> Self {
        MarkovChain { alpha_shift: shift, ..*self }
    }

    fn window(&self, point: usize) -> f64 {
        self.lowest * libm::exp(self.step * point as f64)
    }

    /// Packets in flight of a window.
    fn flight(&self, window: f64) -> f64 {
        // At its least window a sender has all of it in flight.
        if self.sender.whole { window } else { (window - 0.5).max(self.sender.min_window.min(window)) }
    }

    pub(crate) fn equilibrium(&self) -> Equilibrium {
        self.stationary().equilibrium
    }

    /// States a point of the grid has: CUBIC's limit above the window or not.
    fn stride(&self) -> usize {
        if self.sender.law == Law::Cubic { 2 } else { 1 }
    }

    /// The windows at signals that are met at all, what follows each, and their chances. The range of points that is
    /// looked at grows until its ends are hardly ever met.
    pub(crate) fn stationary(&self) -> StationaryWindows {
        let stride = self.stride();
        let (below, above) = match self.sender.law {
            Law::Reno | Law::Cubic => (0.25, 3.0),
            Law::Dctcp | Law::Prague => (0.8, 1.3),
        };
        let near = |window: f64| (libm::log(window / self.lowest) / self.step).clamp(0.0, (POINTS - 2) as f64) as usize;
        let (mut from, mut end) = (near(below * self.typical), (near(above * self.typical) + 2).min(POINTS));
        let states = |from: usize, end: usize| (stride * from..stride * end).map(|state| self.cycle(state));
        let mut cycles: Vec<Cycle> = states(from, end).collect();
        loop {
            let range = Range { from: stride * from, end: stride * end, stride };
            let chances = stationary_distribution(range, &cycles);
            let met = |point: usize| chances[stride * (point - from)..][..stride].iter().sum::<f64>() > HARDLY;
            let (down, up) = (from > 0 && met(from), end < POINTS && met(end - 1));
            if !(down || up) {
                let equilibrium = self.averages(&chances, &cycles);
                return StationaryWindows { range, cycles, chances, equilibrium };
            }
            if down {
                let wider = from.saturating_sub(WIDER);
                cycles.splice(0..0, states(wider, from));
                from = wider;
            }
            if up {
                let wider = (end + WIDER).min(POINTS);
                cycles.extend(states(end, wider));
                end = wider;
            }
        }
    }

    /// Returns the cycle that starts in each state of a range.
    pub(crate) fn cycles(&self, range: Range) -> Vec<Cycle> {
        (range.from..range.end).map(|state| self.cycle(state)).collect()
    }

    /// Where the window rests with these chances at signals.
    fn averages(&self, chances: &[f64], cycles: &[Cycle]) -> Equilibrium {
        let sum =
            |of: &dyn Fn(&Cycle) -> f64| -> f64 { chances.iter().zip(cycles).map(|(c, cycle)| c * of(cycle)).sum() };
        let rounds = sum(&|cycle| cycle.rounds);
        let flight = sum(&|cycle| cycle.acks) / rounds;
        let mean = sum(&|cycle| cycle.area[0]) / rounds;
        let variance = (sum(&|cycle| cycle.area[1]) / rounds - mean * mean).max(0.0);
        let outside = self.outside_pkts(flight);
        Equilibrium { window_pkts: (flight - outside).max(0.2 * flight), variance_pkts2: variance }
    }

    /// Returns the cycle that a signal in `state` starts.
    fn cycle(&self, state: usize) -> Cycle {
        let stride = self.stride();
        let (below, at) = (state % stride == 1, self.window(state / stride));
        let (start, after) = self.reduced(at);
        let mut growth = Growth::new(self.sender, self.p, (self.rtt_s, self.seen_s), at, below, start);
        let (mut cycle, flight) = self.until_answered(self.flight(at), after, &mut growth);
        self.until_signalled(&mut cycle, growth, flight);
        cycle
    }

    /// Window and flight that a signal at the window `at` leaves.
    fn reduced(&self, at: f64) -> (f64, f64) {
        let Sender { law, from_flight, whole, min_window, .. } = *self.sender;
        let (factor, rounded) = match law {
            Law::Reno => (0.5, true),
            Law::Cubic => (CUBIC_BETA, true),
            // alpha follows the share of marks: p, but for its own noise.
            Law::Dctcp | Law::Prague => (1.0 - 0.5 * (self.p + self.alpha_shift), false),
        };
        let base = if rounded && from_flight { self.flight(at) } else { at };
        // Whole windows are rounded down.
        let rounding = if rounded && whole { 0.5 } else { 0.0 };
        let start = (factor * base - rounding).max(min_window);
        // Half of a whole number is whole or ends in a half: a quarter less goes out.
        let after = if from_flight && law == Law::Reno { start - 0.25 } else { self.flight(start) };
        (start, after)
    }

    /// Whether a reduction tells at once: all that is under way is of the smaller window.
    fn is_quick(&self) -> bool {
        matches!(self.sender.law, Law::Dctcp | Law::Prague)
    }

    /// Whether packets go out evenly while a window is reduced, without a silence.
    fn falls_evenly(&self) -> bool {
        self.sender.proportional || self.is_quick()
    }

    /// A cycle until the answer to its signal has come back, of a window that has `before` packets under way at first
    /// and `after` then; and what is under way at its end.
    fn until_answered(&self, before: f64, after: f64, growth: &mut Growth) -> (Cycle, f64) {
        let Sender { law, .. } = *self.sender;
        // How many round trips, acknowledgements, and which windows.
        let waiting = match law {
            Law::Prague => (PRAGUE_RTT_S / self.rtt_s).max(1.0),
            _ if self.falls_evenly() => 1.0,
            // Silence until the surplus is acknowledged, then a round trip.
            _ => 2.0 - after / before,
        };
        let acks = if law == Law::Prague { before * waiting } else { before };
        let mean = if self.is_quick() { after } else { 0.5 * (before + after) };
        if law == Law::Prague {
            growth.advance(acks * (1.0 - self.p) / unmarked(self.p), waiting);
        }
        // In flight meanwhile: what comes down in proportion falls all the time, what comes down at once while it is
        // silent.
        let last = if law == Law::Prague { self.flight(growth.window) } else { after };
        let first = if self.is_quick() { after } else { before };
        let falling = if self.falls_evenly() { waiting } else { waiting - 1.0 };
        let count = libm::ceil(falling * FALLS_A_ROUND).max(1.0);
        let step = |rounds: f64, flight: f64| Step { rounds, flight, acks: 0.0, to: (0, 0.0) };
        let mut steps: Vec<Step> = (0..count as usize)
            .map(|k| step(falling / count, first + (k as f64 + 0.5) / count * (last - first)))
            .collect();
        if waiting > falling {
            steps.push(step(waiting - falling, last));
        }
        let next = vec![0.0; self.stride() * POINTS];
        (Cycle { next, acks, rounds: waiting, area: [waiting * mean, waiting * mean * mean], steps }, last)
    }

    /// The rest of it, in which the window grows, from `flight` packets under way on.
    fn until_signalled(&self, cycle: &mut Cycle, mut growth: Growth, flight: f64) {
        let (p, stride) = (self.p, self.stride());
        // What came in silence leaves in clumps: the last acknowledgements before a signal take half of their round
        // trip's share.
        let clumped = if self.falls_evenly() || self.sender.paced { 1.0 } else { 0.5 };
        let mut left = 1.0;
        let (mut in_round, mut round_flight) = (0.0, flight.max(0.5));
        let longest = 14.0 / p;
        let rounds_at_most = longest / round_flight;
        let wanted = rounds_at_most.min(2.0 * longest.sqrt()) / 160.0;
        // A round trip is whole steps, or a step some round trips.
        let step_rounds = if wanted < 1.0 { 1.0 / libm::ceil(1.0 / wanted).min(STEPS_A_ROUND) } else { wanted };
        let rate = libm::log1p(-p.min(1.0 - 1e-12));
        while left > LEFT {
            if step_rounds > 1.0 {
                // ParkingLot round trips at once: the flights at their beginnings, from the first to the last.
                let mut ahead = growth;
                let beyond = 0.5 * (step_rounds - 1.0);
                ahead.advance(beyond * round_flight, beyond);
                round_flight = self.flight(ahead.window);
            }
            let acks = step_rounds * round_flight;
            let kept = libm::exp(acks * rate);
            let gone = left * (1.0 - kept);
            let met = gone / p;
            growth.advance(0.5 * acks, 0.5 * step_rounds);
            let middle = growth.window;
            growth.advance(0.5 * acks, 0.5 * step_rounds);
            let rounds = met / round_flight;
            cycle.acks += met;
            cycle.rounds += rounds;
            let flight = self.flight(middle);
            cycle.area[0] += rounds * flight;
            cycle.area[1] += rounds * flight * flight;
            // A signal in this round trip came, on average, in the middle of the step: what clumping saves.
            let part = (in_round + 0.5 * step_rounds).min(0.5);
            cycle.rounds -= gone * (1.0 - clumped) * part;
            let to = self.locate(middle, growth.limit_above(middle));
            split_between(&mut cycle.next, stride, to, gone);
            cycle.steps.push(Step { rounds: step_rounds, flight, acks: round_flight, to });
            left -= gone;
            in_round += step_rounds;
            if in_round > 1.0 - 1e-9 {
                // Acknowledgements come at the rate at which packets left a round trip ago.
                (in_round, round_flight) = (0.0, self.flight(growth.window).max(0.5));
            }
        }
        split_between(&mut cycle.next, stride, self.locate(growth.window, growth.limit_above(growth.window)), left);
    }

    /// The state at the point of the grid below `window`, and the share of the next one.
    fn locate(&self, window: f64, below: bool) -> (usize, f64) {
        let place = (libm::log(window / self.lowest) / self.step).clamp(0.0, (POINTS - 1) as f64);
        let point = (place as usize).min(POINTS - 2);
        (self.stride() * point + usize::from(below), place - point as f64)
    }

    /// Packets of a flow that are not in the network although its window counts them: held back by the receiver,
    /// waiting for the pacer.
    pub(crate) fn outside_pkts(&self, window: f64) -> f64 {
        let Sender { held_s, paced, .. } = *self.sender;
        // In units of the gap between two packets, R / W. Every second one is acknowledged at once, the others wait for
        // it: a gap where packets are even; none or two, as often, where they come in pairs.
        let allowed = held_s * window / self.rtt_s;
        if paced { PACER_HOLDS[0] + PACER_HOLDS[1] * allowed.min(1.0) } else { 0.25 * allowed.min(2.0) }
    }
}

/// Gives the chance to the two points beside a window.
fn split_between(next: &mut [f64], stride: usize, (state, part): (usize, f64), chance: f64) {
    next[state] += chance * (1.0 - part);
    next[state + stride] += chance * part;
}

/// Mean number of unmarked acknowledgements before a mark, in units of 1 / rate: of those until the first mark, those
/// not marked: (1 - p) / p.
fn unmarked(p: f64) -> f64 {
    let p = p.min(1.0 - 1e-12);
    -libm::log1p(-p) * (1.0 - p) / p
}

/// A window that grows without a signal.
#[derive(Clone, Copy, Debug)]
struct Growth {
    law: Law,
    window: f64,
    /// Packets a window of acknowledgements brings, of Reno and those like it.
    pace: f64,
    rtt_s: f64,
    friendly: bool,
    whole: bool,
    /// CUBIC: the plateau, when it is reached, time since the reduction, Reno's estimate, the window at the signal.
    limit: f64,
    plateau_s: f64,
    since_s: f64,
    estimate: f64,
    prior: f64,
}

impl Growth {
    fn new(sender: &Sender, p: f64, (rtt_s, seen_s): (f64, f64), at: f64, below: bool, start: f64) -> Self {
        // Fast convergence, section 4.7.
        let limit = if below { at * (1.0 + CUBIC_BETA) / 2.0 } else { at };
        let pace = match sender.law {
            Law::Prague => {
                let part = (seen_s / PRAGUE_RTT_S).min(1.0);
                unmarked(p) * part * part
            }
            Law::Dctcp => unmarked(p),
            _ => 1.0,
        };
        Growth {
            law: sender.law,
            window: start,
            pace,
            rtt_s,
            friendly: sender.reno_friendly,
            whole: sender.whole,
            limit,
            plateau_s: libm::cbrt((limit - start).max(0.0) / CUBIC_C),
            since_s: 0.0,
            estimate: start,
            prior: at,
        }
    }

    /// `acks` packets are acknowledged within so many round trips.
    fn advance(&mut self, acks: f64, rounds: f64) {
        if self.law != Law::Cubic {
            self.window = (self.window * self.window + 2.0 * self.pace * acks).sqrt();
            return;
        }
        let cubic = |t: f64| CUBIC_C * (t - self.plateau_s) * (t - self.plateau_s) * (t - self.plateau_s) + self.limit;
        let pace = if self.estimate >= self.prior && !self.whole { 1.0 } else { CUBIC_ALPHA };
        self.estimate += pace * acks / self.window;
        let since = self.since_s + rounds * self.rtt_s;
        if self.friendly && cubic(since) < self.estimate {
            // Linux takes Reno's step a segment late, and only when it works its window out anew.
            let late = if self.whole { pace * (1.0 / self.window + 0.5 * RECALCULATION_S / self.rtt_s) } else { 0.0 };
            self.window = (self.estimate - late).max(self.window);
        } else {
            // Below the plateau the distance of whole windows is cut to a whole number.
            let ahead = since + (1.0 - 0.5 * rounds) * self.rtt_s;
            let cut = if self.whole && ahead < self.plateau_s { 0.5 } else { 0.0 };
            let target = (cubic(ahead) + cut).clamp(self.window, 1.5 * self.window);
            self.window = target - (target - self.window) * libm::exp(-acks / self.window);
        }
        self.since_s = since;
    }

    /// Whether a signal at `window` finds CUBIC's limit above it.
    fn limit_above(&self, window: f64) -> bool {
        self.law == Law::Cubic && window < self.limit
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    #[test]
    fn linux_takes_renos_step_late() {
        // Where CUBIC is slower Reno's estimate rules. Five of ten packets acknowledged: .529 x 5 / 10 more; late by a
        // segment of ten and by half of 1/32 s in a round trip of .1 s: .529 (.1 + .15625) less.
        let grown = |whole: bool| {
            let sender = Sender { law: Law::Cubic, reno_friendly: true, whole, ..Sender::reno() };
            let mut growth = Growth::new(&sender, 0.01, (0.1, 0.1), 10.0, false, 10.0);
            (growth.estimate, growth.window, growth.prior) = (12.0, 10.0, 100.0);
            growth.advance(5.0, 0.5);
            growth.window - 12.0
        };
        let pace = 0.9 / 1.7;
        assert!((grown(false) - 0.5 * pace).abs() < 1e-12, "{}", grown(false));
        assert!((grown(true) - pace * (0.5 - 0.1 - 0.15625)).abs() < 1e-12, "{}", grown(true));
    }

    #[test]
    fn linux_cuts_the_way_to_the_plateau_to_whole_packets_below_it_alone() {
        // After a round trip of .1 s it heads for what holds half a round trip on, .15 s: a plateau of 12 packets
        // less .4 (.85)^3 a second after the reduction, .2456, or more .4 (.05)^3 if that is .1 s after it. What is cut
        // off is half a packet on average.
        let headed = |whole: bool, plateau_s: f64| {
            let sender = Sender { law: Law::Cubic, reno_friendly: false, whole, ..Sender::reno() };
            let mut growth = Growth::new(&sender, 0.01, (0.1, 0.1), 12.0, false, 10.0);
            growth.plateau_s = plateau_s;
            growth.advance(1e6, 1.0);
            growth.window
        };
        for (plateau_s, target, cut) in [(1.0, 12.0 - 0.4 * 0.614_125, 0.5), (0.1, 12.0 + 0.4 * 1.25e-4, 0.0)] {
            assert!((headed(false, plateau_s) - target).abs() < 1e-9, "{}", headed(false, plateau_s));
            assert!((headed(true, plateau_s) - target - cut).abs() < 1e-9, "{}", headed(true, plateau_s));
        }
    }

    #[test]
    fn a_limit_is_above_the_windows_below_it() {
        let growth = |law: Law| Growth::new(&Sender { law, ..Sender::reno() }, 0.01, (0.1, 0.1), 10.0, false, 7.0);
        let above = [9.0, 10.0, 11.0].map(|window| growth(Law::Cubic).limit_above(window));
        assert_eq!((above, growth(Law::Reno).limit_above(9.0)), ([true, false, false], false));
    }

    /// One sender of whole packets on a path of fixed length, packet by packet: what its acknowledgements, each marked
    /// with the same chance, make of its window.
    struct PacketSimulation {
        sender: Sender,
        p: f64,
        rtt_s: f64,
        window: f64,
        /// CUBIC: the plateau, Reno's estimate, the window at the signal, when the window began to grow.
        limit: f64,
        estimate: f64,
        prior: f64,
        begun_s: f64,
    }

    impl PacketSimulation {
        fn of(sender: Sender, p: f64, rtt_s: f64) -> Equilibrium {
            let (limit, estimate, prior, begun_s) = (0.0, 4.0, 0.0, 0.0);
            PacketSimulation { sender, p, rtt_s, window: 4.0, limit, estimate, prior, begun_s }.go((6000.0 / p) as u32)
        }

        /// Mean and variance of the packets in flight over time.
        fn go(mut self, packets: u32) -> Equilibrium {
            let mut state = 88_172_645_463_325_252u64;
            let mut marked = |p: f64| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 11) as f64 / ((1u64 << 53) as f64) < p
            };
            let mut sent: VecDeque<f64> = (0..4).map(|_| self.rtt_s).collect();
            let (mut now_s, mut sums) = (0.0, [0.0; 3]);
            // While an answer is on its way: acknowledgements until then, and of what number; from how many in flight
            // to how many.
            let mut waits: Option<(f64, f64, [f64; 2])> = None;
            for _ in 0..packets {
                let at_s = sent.pop_front().expect("a window of one packet at least");
                let (flight, passed) = (sent.len() as f64 + 1.0, at_s - now_s);
                [passed, passed * flight, passed * flight * flight]
                    .iter()
                    .zip(&mut sums)
                    .for_each(|(x, sum)| *sum += x);
                now_s = at_s;
                let mark = marked(self.p);
                match &mut waits {
                    Some((left, ..)) => {
                        *left -= 1.0;
                        if self.sender.law == Law::Prague && !mark {
                            self.window += 1.0 / self.window;
                        }
                        if *left <= 0.0 {
                            waits = None;
                            self.begun_s = now_s;
                        }
                    }
                    None if mark => {
                        let before = self.window;
                        self.reduce(flight);
                        let after = if self.sender.law == Law::Prague { before } else { self.window };
                        waits = Some((flight, flight, [flight, after.min(flight)]));
                    }
                    None => self.grow(now_s),
                }
                let allowed = match &waits {
                    Some((left, all, [from, to])) if self.sender.proportional => to + (from - to) * left / all,
                    _ => self.window,
                };
                while sent.is_empty() || (sent.len() + 1) as f64 <= allowed {
                    sent.push_back(now_s + self.rtt_s);
                }
            }
            let [time, area, squares] = sums;
            let mean = area / time;
            Equilibrium { window_pkts: mean, variance_pkts2: squares / time - mean * mean }
        }

        fn reduce(&mut self, flight: f64) {
            let at = self.window;
            let base = if self.sender.from_flight { flight } else { at };
            self.window = match self.sender.law {
                Law::Reno => 0.5 * base,
                Law::Cubic => 0.7 * base,
                Law::Dctcp | Law::Prague => (1.0 - 0.5 * self.p) * at,
            };
            self.window = self.window.max(self.sender.min_window);
            self.limit = if at < self.limit { 0.85 * at } else { at };
            (self.prior, self.estimate) = (at, self.window);
        }

        fn grow(&mut self, now_s: f64) {
            if self.sender.law != Law::Cubic {
                self.window += 1.0 / self.window;
                return;
            }
            let since = now_s - self.begun_s;
            let plateau = ((self.limit - 0.7 * self.prior).max(0.0) / 0.4).cbrt();
            let cubic = |t: f64| 0.4 * (t - plateau).powi(3) + self.limit;
            self.estimate += if self.estimate < self.prior { 9.0 / 17.0 } else { 1.0 } / self.window;
            if cubic(since) < self.estimate {
                self.window = self.window.max(self.estimate);
            } else {
                let target = cubic(since + self.rtt_s).clamp(self.window, 1.5 * self.window);
                self.window += (target - self.window) / self.window;
            }
        }
    }

    #[test]
    fn windows_that_are_followed_packet_by_packet_rest_where_the_chain_says() {
        let of = |law, proportional, from_flight| Sender {
            law,
            proportional,
            from_flight,
            min_window: 2.0,
            ..Sender::reno()
        };
        for (sender, p, rtt_s) in [
            (of(Law::Reno, true, true), 0.01, 0.1),
            (of(Law::Reno, true, false), 0.01, 0.1),
            (of(Law::Reno, false, false), 0.01, 0.1),
            (of(Law::Reno, false, true), 0.03, 0.1),
            (of(Law::Reno, true, true), 0.005, 0.1),
            (of(Law::Cubic, true, true), 0.005, 0.3),
            (of(Law::Cubic, true, false), 0.01, 0.02),
            (of(Law::Cubic, true, false), 0.004, 1.0),
            (of(Law::Dctcp, true, true), 0.2, 0.1),
            (of(Law::Dctcp, true, true), 0.05, 0.1),
            (of(Law::Prague, true, true), 0.2, 0.1),
            (of(Law::Prague, true, true), 0.05, 0.025),
        ] {
            let (told, seen) = (
                MarkovChain::with_measured_rtt(&sender, p, rtt_s).0.equilibrium(),
                PacketSimulation::of(sender, p, rtt_s),
            );
            let off = told.window_pkts / seen.window_pkts - 1.0;
            // Pieces of a packet make a quarter of one; steps of a third of a round trip tell CUBIC's window late where
            // it doubles within a few; marks of a scalable window come in turns with its growth.
            let within = match sender.law {
                Law::Cubic if rtt_s >= 1.0 => 0.045,
                Law::Dctcp | Law::Prague => 0.035,
                Law::Reno | Law::Cubic => 0.015,
            };
            let within = within + 0.25 / seen.window_pkts;
            assert!(off.abs() < within, "{sender:?}, {p}, {rtt_s}: {told:?} {seen:?}");
            // A mean without its variance would be no chain: within what pieces of packets make of it.
            if matches!(sender.law, Law::Reno | Law::Cubic) {
                let off = told.variance_pkts2 / seen.variance_pkts2 - 1.0;
                assert!(off.abs() < 0.3, "{sender:?}, {p}, {rtt_s}: {told:?} {seen:?}");
            }
        }
    }

    #[test]
    fn a_share_a_little_larger_holds_a_window_a_little_smaller_at_any_length_of_the_steps() {
        // Steps grow from a third of a round trip to some as the share falls. Shares a hundredth apart: a slope
        // d ln W / d ln p of -.5 to -.75 takes .5 to .75 % from a window, and changes by less than .2 % from one to the
        // next.
        for (law, rtt_s) in [(Law::Reno, 0.1), (Law::Cubic, 0.1), (Law::Cubic, 1.0)] {
            let sender = Sender { law, proportional: true, min_window: 2.0, ..Sender::reno() };
            let share = |k: usize| 3e-4 * libm::exp(0.01 * k as f64);
            let window = |p: f64| MarkovChain::with_measured_rtt(&sender, p, rtt_s).0.equilibrium().window_pkts;
            let logs: Vec<f64> = (0..500).map(|k| libm::log(window(share(k)))).collect();
            let falls: Vec<f64> = logs.windows(2).map(|pair| pair[0] - pair[1]).collect();
            for (k, pair) in falls.windows(2).enumerate() {
                let (fall, more) = (pair[0], pair[1] - pair[0]);
                assert!((0.002..0.009).contains(&fall) && more.abs() < 0.002, "{law:?}, {}: {pair:?}", share(k));
            }
        }
    }

    #[test]
    fn pragues_window_is_the_one_that_has_its_own_gap_between_packets() {
        let prague = Sender { law: Law::Prague, proportional: true, min_window: 2.0, paced: true, ..Sender::reno() };
        // Held for a gap, for less than one, not at all.
        for held_s in [0.04, 1e-3, 0.0] {
            for (p, rtt_s) in [(0.05, 0.012), (0.3, 0.005), (0.9, 0.02)] {
                let sender = Sender { held_s, ..prague };
                let (chain, waiting) = MarkovChain::with_measured_rtt(&sender, p, rtt_s);
                let gap_s = (rtt_s / chain.equilibrium().window_pkts).min(held_s);
                assert!((chain.seen_s - rtt_s - gap_s).abs() < 1e-8 * rtt_s, "{held_s}, {p}, {rtt_s}: {chain:?}");
                assert!((waiting - 0.025 / rtt_s).abs() < 1e-12);
            }
            // As long as its virtual round trip and longer it grows by that alone.
            let sender = Sender { held_s, ..prague };
            let (chain, waiting) = MarkovChain::with_measured_rtt(&sender, 0.05, 0.025);
            assert_eq!((chain.seen_s, waiting), (0.025, 1.0));
        }
    }

    #[test]
    fn whatever_waits_outside_a_fifth_of_a_window_is_in_the_network() {
        // Two packets, of which the pacer and the receiver would hold .88 + 1.18.
        let prague = Sender { law: Law::Prague, min_window: 2.0, paced: true, held_s: 1.0, ..Sender::reno() };
        let chain = MarkovChain::new(&prague, 1.0, 0.03, 0.03);
        assert!((chain.equilibrium().window_pkts - 0.4).abs() < 1e-9, "{:?}", chain.equilibrium());
        assert_eq!(chain.outside_pkts(2.0), PACER_HOLDS[0] + PACER_HOLDS[1]);
    }

    #[test]
    fn states_beyond_a_range_are_those_at_its_ends() {
        // Points 3 to 6 of CUBIC, two states each.
        let range = Range { from: 6, end: 14, stride: 2 };
        assert_eq!((range.len(), range.index_of(6), range.index_of(9), range.index_of(13)), (8, 0, 3, 7));
        assert_eq!((range.index_of(1), range.index_of(20), range.index_of(27)), (1, 6, 7));
        assert_eq!((range.between((9, 0.25)), range.between((11, 0.75))), ((3, 0.25), (5, 0.75)));
        // Below the first all of the first, from the last on all of the last.
        assert_eq!((range.between((5, 0.5)), range.between((2, 0.5))), ((1, 0.0), (0, 0.0)));
        assert_eq!((range.between((12, 0.5)), range.between((19, 0.5))), ((4, 1.0), (5, 1.0)));
        // Of one state a point.
        let range = Range { from: 3, end: 7, stride: 1 };
        assert_eq!((range.between((2, 0.5)), range.between((5, 0.5))), ((0, 0.0), (2, 0.5)));
        assert_eq!((range.between((6, 0.5)), range.between((9, 0.5))), ((2, 1.0), (2, 1.0)));
    }
}
