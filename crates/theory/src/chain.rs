//! The windows of one sender at a constant share of signals, as a chain over the windows at which signals come: what follows a signal,
//! step by step, until the next one.

use crate::sender::{Law, Sender};

/// Where a window comes to rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rest {
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
/// Cycles until the chain has forgotten its start.
const CYCLES_MAX: usize = 60;
/// Growth is followed until so little of a cycle's chance is left.
const LEFT: f64 = 1e-5;
/// C of CUBIC, packets/s^3, its reduction, and Reno's growth with that reduction (RFC 9438, sections 5.1, 4.6, 4.3).
const CUBIC_C: f64 = 0.4;
const CUBIC_BETA: f64 = 0.7;
const CUBIC_ALPHA: f64 = 3.0 * (1.0 - CUBIC_BETA) / (1.0 + CUBIC_BETA);
/// Linux's CUBIC keeps to what it has worked out for so long, seconds (HZ / 32).
const KEPT_S: f64 = 1.0 / 32.0;
/// Prague's virtual round trip, seconds.
pub(crate) const PRAGUE_RTT_S: f64 = 0.025;
/// How much faster than its window a paced sender may send.
const PACED_AT: f64 = 1.2;

/// The windows at which signals come, as a chain over a grid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain<'a> {
    sender: &'a Sender,
    p: f64,
    rtt_s: f64,
    /// The round trip that the sender measures.
    seen_s: f64,
    lowest: f64,
    /// ln of the ratio of two points.
    step: f64,
    /// What DCTCP's and Prague's alpha has beyond p.
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
    /// Where a signal in it leaves the window: a point of the grid, the share of the next one, the offset of CUBIC's limit above it.
    pub(crate) to: (usize, f64),
}

/// What a cycle brings, from one window at its signal.
#[derive(Debug)]
pub(crate) struct Cycle {
    /// Chances of the windows at the next signal, and of CUBIC's limit above them.
    next: Vec<f64>,
    acks: f64,
    rounds: f64,
    /// Sum of window and squared window over its rounds.
    area: [f64; 2],
    /// The same step by step.
    pub(crate) steps: Vec<Step>,
}

/// The state at a signal: the point of the grid, and whether CUBIC's last limit was above it.
const BELOW: usize = POINTS;

impl<'a> Chain<'a> {
    pub(crate) fn new(sender: &'a Sender, p: f64, rtt_s: f64, seen_s: f64) -> Self {
        let typical = match sender.law {
            Law::Reno => 1.31 / p.sqrt(),
            // RFC 9438 equation 5, and the Reno-friendly region below it.
            Law::Cubic => (1.31 / p.sqrt()).max(1.05 * libm::pow(rtt_s / p, 0.75)),
            Law::Dctcp => 1.41 / p,
            Law::Prague => 2.73 / p * (rtt_s / PRAGUE_RTT_S).min(1.0),
        };
        let (lowest, highest) = match sender.law {
            Law::Reno | Law::Cubic => ((0.12 * typical).max(sender.min_window), 6.0 * typical + 4.0),
            Law::Dctcp | Law::Prague => ((0.3 * typical).max(sender.min_window), 2.5 * typical + 4.0),
        };
        let step = libm::log(highest / lowest) / (POINTS - 1) as f64;
        Chain { sender, p, rtt_s, seen_s, lowest, step, alpha_shift: 0.0 }
    }

    /// The chain of `sender` at the round trip that it measures, and how many round trips an answer to a signal keeps the next one off.
    pub(crate) fn around(sender: &'a Sender, p: f64, rtt_s: f64) -> (Self, f64) {
        let chain = Chain::new(sender, p, rtt_s, rtt_s);
        let prague = sender.law == Law::Prague && rtt_s < PRAGUE_RTT_S;
        let waiting = if prague { PRAGUE_RTT_S / rtt_s } else { 1.0 };
        if !prague || sender.held_s == 0.0 {
            return (chain, waiting);
        }
        // Its growth goes by the round trip that it measures: that of the packet whose acknowledgement was held back for a gap.
        let gap_s = (rtt_s / chain.settle().window_pkts).min(sender.held_s);
        (Chain::new(sender, p, rtt_s, rtt_s + gap_s), waiting)
    }

    /// The same with an alpha of p + `shift`.
    pub(crate) fn with_alpha(&self, shift: f64) -> Self {
        Chain { alpha_shift: shift, ..*self }
    }

    fn window(&self, point: usize) -> f64 {
        self.lowest * libm::exp(self.step * point as f64)
    }

    /// Packets in flight of a window.
    fn flight(&self, window: f64) -> f64 {
        // At its least window a sender has all of it in flight.
        if self.sender.whole { window } else { (window - 0.5).max(self.sender.min_window.min(window)) }
    }

    pub(crate) fn settle(&self) -> Rest {
        self.told(&self.cycles()).1
    }

    /// What follows a signal in each state.
    pub(crate) fn cycles(&self) -> Vec<Cycle> {
        let states = if self.sender.law == Law::Cubic { 2 * POINTS } else { POINTS };
        (0..states).map(|state| self.cycle(state)).collect()
    }

    /// The chances of the states at a signal, and where that lets the window rest.
    pub(crate) fn told(&self, cycles: &[Cycle]) -> (Vec<f64>, Rest) {
        let states = cycles.len();
        let mut chances = vec![1.0 / states as f64; states];
        for _ in 0..CYCLES_MAX {
            let mut next = vec![0.0; states];
            for (chance, cycle) in chances.iter().zip(cycles).filter(|(chance, _)| **chance > 1e-15) {
                for (sum, share) in next.iter_mut().zip(&cycle.next) {
                    *sum += chance * share;
                }
            }
            let moved: f64 = next.iter().zip(&chances).map(|(a, b)| (a - b).abs()).sum();
            chances = next;
            if moved < 1e-9 {
                break;
            }
        }
        let sum =
            |of: &dyn Fn(&Cycle) -> f64| -> f64 { chances.iter().zip(cycles).map(|(c, cycle)| c * of(cycle)).sum() };
        let rounds = sum(&|cycle| cycle.rounds);
        let flight = sum(&|cycle| cycle.acks) / rounds;
        let mean = sum(&|cycle| cycle.area[0]) / rounds;
        let variance = (sum(&|cycle| cycle.area[1]) / rounds - mean * mean).max(0.0);
        let outside = self.outside_pkts(flight);
        let rest = Rest { window_pkts: (flight - outside).max(0.2 * flight), variance_pkts2: variance };
        (chances, rest)
    }

    /// What follows a signal in `state`.
    fn cycle(&self, state: usize) -> Cycle {
        let Sender { law, proportional, from_flight, whole, min_window, .. } = *self.sender;
        let (below, at) = (state >= BELOW, self.window(state % POINTS));
        let p = self.p;
        let base = if from_flight { self.flight(at) } else { at };
        let factor = match law {
            Law::Reno => 0.5,
            Law::Cubic => CUBIC_BETA,
            // alpha follows the share of marks: p, but for its own noise.
            Law::Dctcp | Law::Prague => 1.0 - 0.5 * (p + self.alpha_shift),
        };
        // Whole windows are rounded down.
        let rounding = if whole && matches!(law, Law::Reno | Law::Cubic) { 0.5 } else { 0.0 };
        let base = if matches!(law, Law::Reno | Law::Cubic) { base } else { at };
        let start = (factor * base - rounding).max(min_window);
        // Half of a whole number is whole or ends in a half: a quarter less goes out.
        let after = if from_flight && law == Law::Reno { start - 0.25 } else { self.flight(start) };
        let before = self.flight(at);
        // Until the answer has come back: how many round trips, acknowledgements, and which windows.
        let quick = matches!(law, Law::Dctcp | Law::Prague);
        let waiting = match law {
            Law::Prague => (PRAGUE_RTT_S / self.rtt_s).max(1.0),
            _ if proportional || quick => 1.0,
            // Silence until the surplus is acknowledged, then a round trip.
            _ => 2.0 - after / before,
        };
        let acks_waiting = if law == Law::Prague { before * waiting } else { before };
        let mean_waiting = if quick { after } else { 0.5 * (before + after) };
        let mut cycle = Cycle {
            next: vec![0.0; if law == Law::Cubic { 2 * POINTS } else { POINTS }],
            acks: acks_waiting,
            rounds: waiting,
            area: [waiting * mean_waiting, waiting * mean_waiting * mean_waiting],
            steps: Vec::new(),
        };
        let mut growth = Growth::new(self.sender, p, (self.rtt_s, self.seen_s), at, below, start);
        if law == Law::Prague {
            growth.advance(acks_waiting, waiting);
        }
        // In flight meanwhile: what comes down in proportion falls all the time, what comes down at once while it is silent.
        let last = if law == Law::Prague { self.flight(growth.window) } else { after };
        let first = if quick { after } else { before };
        let falling = if proportional || quick { waiting } else { waiting - 1.0 };
        let pieces = |rounds: f64| libm::ceil(rounds * FALLS_A_ROUND).max(1.0);
        let (count, rest) = (pieces(falling), waiting - falling);
        for k in 0..count as usize {
            let part = (k as f64 + 0.5) / count;
            let flight = first + part * (last - first);
            cycle.steps.push(Step { rounds: falling / count, flight, acks: 0.0, to: (0, 0.0) });
        }
        if rest > 0.0 {
            cycle.steps.push(Step { rounds: rest, flight: last, acks: 0.0, to: (0, 0.0) });
        }
        // What came in silence leaves in clumps: the last acknowledgements before a signal take half of their round trip's share.
        let clumped = if proportional || quick || self.sender.paced { 1.0 } else { 0.5 };
        let mut left = 1.0;
        let mut flight = if law == Law::Prague { self.flight(growth.window) } else { after };
        let longest = 14.0 / p;
        let rounds_at_most = longest / flight.max(0.5);
        let step_rounds = (1.0 / STEPS_A_ROUND).max(rounds_at_most.min(2.0 * longest.sqrt()) / 160.0);
        let (mut in_round, mut round_flight) = (0.0, flight.max(0.5));
        while left > LEFT {
            if step_rounds > 1.0 {
                // Several round trips at once: those in the middle tell their flight.
                let mut ahead = growth;
                ahead.advance(0.5 * step_rounds * round_flight, 0.5 * step_rounds);
                round_flight = self.flight(ahead.window);
            }
            let acks = step_rounds * round_flight;
            let kept = libm::exp(acks * libm::log1p(-p.min(1.0 - 1e-12)));
            let gone = left * (1.0 - kept);
            let met = gone / p;
            growth.advance(0.5 * acks, 0.5 * step_rounds);
            let middle = growth.window;
            growth.advance(0.5 * acks, 0.5 * step_rounds);
            let rounds = met / round_flight;
            cycle.acks += met;
            cycle.rounds += rounds;
            flight = self.flight(middle);
            cycle.area[0] += rounds * flight;
            cycle.area[1] += rounds * flight * flight;
            // A signal in this round trip came, on average, in the middle of the step: what clumping saves.
            let part = (in_round + 0.5 * step_rounds).min(0.5);
            cycle.rounds -= gone * (1.0 - clumped) * part;
            let to = self.place(middle, growth.limit_above(middle));
            share_out(&mut cycle.next, to, gone);
            cycle.steps.push(Step { rounds: step_rounds, flight, acks: round_flight, to });
            left -= gone;
            in_round += step_rounds;
            if in_round > 1.0 - 1e-9 {
                // Acknowledgements come at the rate at which packets left a round trip ago.
                (in_round, round_flight) = (0.0, self.flight(growth.window).max(0.5));
            }
        }
        share_out(&mut cycle.next, self.place(growth.window, growth.limit_above(growth.window)), left);
        cycle
    }

    /// The point of the grid below `window`, and the share of the next one.
    fn place(&self, window: f64, below: bool) -> (usize, f64) {
        let place = (libm::log(window / self.lowest) / self.step).clamp(0.0, (POINTS - 1) as f64);
        let point = (place as usize).min(POINTS - 2);
        (point + if below { BELOW } else { 0 }, place - point as f64)
    }

    /// Packets of a flow that are not in the network although its window counts them: held back by the receiver, waiting for the pacer.
    pub(crate) fn outside_pkts(&self, window: f64) -> f64 {
        let Sender { held_s, paced, .. } = *self.sender;
        if held_s == 0.0 {
            return 0.0;
        }
        // In units of the gap between two packets, R / W. Every second one is acknowledged at once, the others wait for it: a gap where
        // packets are even; none or two, as often, where they come in pairs.
        let allowed = held_s * window / self.rtt_s;
        if paced { 0.5 * allowed.min(1.0) + 0.5 / PACED_AT } else { 0.25 * allowed.min(2.0) }
    }
}

/// Gives the chance to the two points beside a window.
fn share_out(next: &mut [f64], (point, part): (usize, f64), chance: f64) {
    next[point] += chance * (1.0 - part);
    next[point + 1] += chance * part;
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
                (1.0 - p) * part * part
            }
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
            let late = if self.whole { pace * (1.0 / self.window + 0.5 * KEPT_S / self.rtt_s) } else { 0.0 };
            self.window = (self.estimate - late).max(self.window);
        } else {
            // Below the plateau the distance of whole windows is cut to a whole number.
            let ahead = since + self.rtt_s;
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
