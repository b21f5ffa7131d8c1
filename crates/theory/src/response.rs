//! Response functions: the mean window that a sender holds where each packet is signalled with the same chance, without a number that was
//! fitted, for Reno, CUBIC, DCTCP and Prague.
//!
//! A window goes through cycles. A signal comes at a window X; it is reduced, waits until its answer has come back, then grows until the
//! next signal, which comes after so many acknowledgements as a geometric law says. From the chain of the X over a grid follows how
//! many acknowledgements and how many round trips a cycle has; their quotient is the mean number of packets in flight.
//!
//! What senders do beyond the law matters at windows of some packets and is counted:
//! - a window of 7.6 sends 7 packets: half a packet less on average (not where windows are whole);
//! - the answer to a mark: silence until half is acknowledged, and a round trip more until the receiver hears of it; or, in
//!   proportion (PRR), one round trip in all. What was silent comes in clumps afterwards, in half of the round trip;
//! - an acknowledgement that is held back keeps a packet out of the network: half the gap between two, on average.
//!
//! Left out: time-outs, losses in place of marks, and that p itself swings (E\[W\] rises with it by 3/8 of its relative variance).

use aqumen_scenario::Protocol;
use num_complex::Complex64;

use crate::window::Windows;

/// How a sender's window answers to signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// One packet a round trip more, half after a signal (RFC 5681).
    Reno,
    /// RFC 9438, with its Reno-friendly region and fast convergence.
    Cubic,
    /// RFC 8257.
    Dctcp,
    /// The Prague of L4S.
    Prague,
}

/// A sender at a constant share of signals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sender {
    /// Its law.
    pub law: Law,
    /// Whether it comes down in proportion to what arrives (PRR), not at once.
    pub proportional: bool,
    /// Whether a reduction begins at what is in flight, not at the window.
    pub from_flight: bool,
    /// Whether windows are whole numbers of packets, as in Linux.
    pub whole: bool,
    /// Whether CUBIC never falls behind Reno.
    pub reno_friendly: bool,
    /// Smallest window, packets.
    pub min_window: f64,
    /// How long the receiver may hold an acknowledgement back, seconds; 0: not at all.
    pub held_s: f64,
    /// Whether packets leave evenly.
    pub paced: bool,
}

/// Where a window comes to rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rest {
    /// Mean number of packets in the network, packets.
    pub window_pkts: f64,
    /// Its variance over time, packets^2.
    pub variance_pkts2: f64,
    /// What reductions take a round trip, packets.
    pub lost_pkts: f64,
    /// Reductions per signal: those that come while one is being answered change nothing.
    pub answered: f64,
}

/// Points of the grid of windows, and the steps of growth that a round trip at most has.
const POINTS: usize = 72;
const STEPS_A_ROUND: f64 = 3.0;
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
const PRAGUE_RTT_S: f64 = 0.025;
/// How much faster than its window a paced sender may send.
const PACED_AT: f64 = 1.2;

impl Sender {
    /// The sender of a transport; the error says why its window follows no law that is known here.
    pub fn of(transport: &Protocol) -> Result<Self, &'static str> {
        let config = match transport {
            Protocol::Tcp(config) => config,
            // SCTP's window is Reno's (RFC 9260 section 7.2).
            Protocol::Sctp(_) => return Ok(Sender::reno()),
            Protocol::Udp(_) | Protocol::Rtp(_) => return Err("it has no window"),
        };
        let law = match transport.congestion().unwrap_or("reno") {
            "reno" => Law::Reno,
            "cubic" => Law::Cubic,
            "dctcp" => Law::Dctcp,
            "prague" => Law::Prague,
            "bbr" => {
                return Err(
                    "BBR follows the delivery rate and the smallest round trip, and takes no notice of marks: no share of signals \
                     holds its window",
                );
            }
            "vegas" | "ledbat" => return Err("its window follows the delay, not the share of signals"),
            _ => return Err("its window's law is not known here"),
        };
        Ok(Sender {
            law,
            proportional: transport.answers_marks_in_proportion(),
            from_flight: config.halve_flight,
            whole: config.whole_windows,
            reno_friendly: config.reno_friendly,
            min_window: config.min_window.max(1.0),
            held_s: config.delayed_ack.map_or(0.0, |delay| delay.as_secs_f64()),
            paced: config.pacing || config.congestion.must_pace(),
        })
    }

    /// Reno as in ns-2: reductions at once, of the window, every packet acknowledged.
    pub const fn reno() -> Self {
        Sender {
            law: Law::Reno,
            proportional: false,
            from_flight: false,
            whole: false,
            reno_friendly: true,
            min_window: 1.0,
            held_s: 0.0,
            paced: false,
        }
    }

    /// Whether it is Reno as in ns-2, of which `window` has the closed form.
    pub fn has_closed_form(&self) -> bool {
        let Sender { law, proportional, from_flight, whole, held_s, paced, .. } = *self;
        law == Law::Reno && !proportional && !from_flight && !whole && held_s == 0.0 && !paced
    }

    /// How a window answers around its rest at the share `p`; `None` where alpha answers, too, with a lag of its own.
    ///
    /// Reductions take a share `l` of the window a round trip, which growth gives back. With an elasticity of -e of the window in p it
    /// comes back at the rate l / (1 - e): where growth goes as (p W)^-m and reductions as p W^2, e = (1 + m) / (2 + m) and the slope is
    /// -(2 + m) l. Of Reno m = 0, of CUBIC up to 2.
    pub fn around(&self, p: f64, rtt_s: f64) -> Option<Windows> {
        if matches!(self.law, Law::Dctcp | Law::Prague) {
            return None;
        }
        let rest = self.rest(p, rtt_s);
        let elasticity = -self.elasticity(p, rtt_s);
        let rate = rest.lost_pkts / rest.window_pkts / (1.0 - elasticity).max(0.1);
        Some(Windows {
            slopes: (-rate, -rate * elasticity * rest.window_pkts / p),
            noise: 2.0 * rate * rest.variance_pkts2,
            lead: self.lead(),
        })
    }

    /// Share of a round trip by which what is under way runs ahead of a queue that follows the windows. A reduction by the share b at
    /// once is silence for b R, in which it falls evenly; in proportion it falls over a round trip.
    fn lead(&self) -> f64 {
        let reduced = if self.law == Law::Cubic { 1.0 - CUBIC_BETA } else { 0.5 };
        1.0 - 0.5 * if self.proportional { 1.0 } else { reduced }
    }

    /// Where the share `p` of the packets holds the window at a round trip of `rtt_s`.
    pub fn rest(&self, p: f64, rtt_s: f64) -> Rest {
        let p = p.clamp(1e-9, 1.0);
        let rest = Chain::new(self, p, rtt_s, rtt_s).settle();
        if self.law != Law::Prague || self.held_s == 0.0 || rtt_s >= PRAGUE_RTT_S {
            return rest;
        }
        // Its growth goes by the round trip that it measures: that of the packet whose acknowledgement was held back for a gap.
        let gap_s = (rtt_s / rest.window_pkts).min(self.held_s);
        Chain::new(self, p, rtt_s, rtt_s + gap_s).settle()
    }

    /// The share that holds the mean window at `window_pkts`; `None` where even all of the packets do not. The share of the packets rises
    /// as the window falls, nearly as a power of it.
    pub fn probability(&self, window_pkts: f64, rtt_s: f64) -> Option<f64> {
        let miss = |u: f64| libm::log(self.rest(libm::exp(u), rtt_s).window_pkts / window_pkts);
        let scale = match self.law {
            Law::Reno | Law::Cubic => 1.7 / (window_pkts * window_pkts),
            Law::Dctcp => 1.4 / window_pkts,
            Law::Prague => 2.7 / window_pkts * (rtt_s / PRAGUE_RTT_S).min(1.0),
        };
        let mut low = libm::log(scale.min(0.5)) - 0.5;
        let mut below = miss(low);
        while below < 0.0 {
            low -= 1.5;
            below = miss(low);
            if low < -20.0 {
                return None;
            }
        }
        let mut high = (low + 1.5).min(0.0);
        let mut above = miss(high);
        while above > 0.0 {
            if high == 0.0 {
                return None;
            }
            (low, below) = (high, above);
            high = (high + 1.5).min(0.0);
            above = miss(high);
        }
        // Regula falsi, its kept end halved (Illinois), on what is nearly a line.
        for _ in 0..40 {
            let u = (low * above - high * below) / (above - below);
            let here = miss(u);
            if here.abs() < 1e-7 || high - low < 1e-9 {
                return Some(libm::exp(u));
            }
            if here > 0.0 {
                (low, below) = (u, here);
                above *= 0.5;
            } else {
                (high, above) = (u, here);
                below *= 0.5;
            }
        }
        Some(libm::exp(0.5 * (low + high)))
    }

    /// d ln W / d ln p at `p`, below zero.
    pub fn elasticity(&self, p: f64, rtt_s: f64) -> f64 {
        let step = 0.05;
        let at = |u: f64| libm::log(self.rest(p * libm::exp(u), rtt_s).window_pkts);
        (at(step) - at(-step)) / (2.0 * step)
    }

    /// The response function at a round trip, for who asks often.
    pub(crate) fn table(&self, rtt_s: f64) -> Table {
        let points = (0..TABLE_POINTS).map(|k| {
            let u = TABLE_FROM * (1.0 - k as f64 / (TABLE_POINTS - 1) as f64);
            libm::log(self.rest(libm::exp(u), rtt_s).window_pkts)
        });
        Table { logs: points.collect() }
    }

    /// How a window whose alpha follows the share of marks answers around its rest.
    pub(crate) fn answer(&self, p: f64, rtt_s: f64) -> Option<Answer> {
        let waiting = match self.law {
            Law::Prague => (PRAGUE_RTT_S / rtt_s).max(1.0),
            Law::Dctcp => 1.0,
            Law::Reno | Law::Cubic => return None,
        };
        let rest = self.rest(p, rtt_s);
        let w = rest.window_pkts;
        // Reductions a round trip, y / (1 + waiting y) of y = p W signals, and their slope in ln y.
        let y = p * w;
        let often = y / (1.0 + waiting * y);
        let steep = often / (1.0 + waiting * y);
        // Growth: Prague's goes on while it waits; DCTCP's has the share 1 / (1 + y) of the rounds.
        let (grows, growth_in_ln_y) = match self.law {
            Law::Dctcp => (0.0, -y / ((1.0 + y) * (1.0 + y))),
            _ => {
                let part = (rtt_s / PRAGUE_RTT_S).min(1.0);
                (-part * part, 0.0)
            }
        };
        let in_window = growth_in_ln_y / w - 0.5 * p * (often + steep);
        Some(Answer {
            in_window,
            in_p: grows + growth_in_ln_y / p - 0.5 * w * steep,
            in_alpha: -0.5 * w * often,
            alpha_rate: ALPHA_GAIN / waiting,
            noise: -2.0 * in_window * rest.variance_pkts2,
        })
    }

    /// Packets of a flow that are not in the network although its window counts them: held back by the receiver, waiting for the pacer.
    fn outside_pkts(&self, window: f64, rtt_s: f64) -> f64 {
        if self.held_s == 0.0 {
            return 0.0;
        }
        // In units of the gap between two packets, R / W. Every second one is acknowledged at once, the others wait for it: a gap where
        // packets are even; none or two, as often, where they come in pairs.
        let allowed = self.held_s * window / rtt_s;
        if self.paced { 0.5 * allowed.min(1.0) + 0.5 / PACED_AT } else { 0.25 * allowed.min(2.0) }
    }
}

/// Windows at shares evenly spaced in ln p from [`TABLE_FROM`] to 0.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table {
    logs: Vec<f64>,
}

const TABLE_POINTS: usize = 24;
const TABLE_FROM: f64 = -9.2;

impl Table {
    /// The window at the share `p`: on a line in logarithms between two points, and beyond the first.
    pub(crate) fn window(&self, p: f64) -> f64 {
        let place = (1.0 - libm::log(p.clamp(1e-12, 1.0)) / TABLE_FROM) * (TABLE_POINTS - 1) as f64;
        let point = (place.max(0.0) as usize).min(TABLE_POINTS - 2);
        let part = place - point as f64;
        libm::exp(self.logs[point] + part * (self.logs[point + 1] - self.logs[point]))
    }
}

/// g of DCTCP and Prague.
const ALPHA_GAIN: f64 = 1.0 / 16.0;

/// Slopes of what a window gains a round trip, in itself, the share and alpha, which follows the share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Answer {
    in_window: f64,
    in_p: f64,
    in_alpha: f64,
    alpha_rate: f64,
    /// Noise that the reductions of one window are, packets^2 a round trip.
    pub(crate) noise: f64,
}

impl Answer {
    /// The window's filter at `s`, in inverse round trips, and what the share pushes it by.
    pub(crate) fn response(&self, s: Complex64) -> (Complex64, Complex64) {
        let alpha = self.alpha_rate / (s + self.alpha_rate);
        (1.0 / (s - self.in_window), alpha * self.in_alpha + self.in_p)
    }
}

/// The windows at which signals come, as a chain over a grid.
struct Chain<'a> {
    sender: &'a Sender,
    p: f64,
    rtt_s: f64,
    /// The round trip that the sender measures.
    seen_s: f64,
    lowest: f64,
    /// ln of the ratio of two points.
    step: f64,
}

/// What a cycle brings, from one window at its signal.
struct Cycle {
    /// Chances of the windows at the next signal, and of CUBIC's limit above them.
    next: Vec<f64>,
    acks: f64,
    rounds: f64,
    /// Sum of window and squared window over its rounds.
    area: [f64; 2],
    lost: f64,
}

/// The state at a signal: the point of the grid, and whether CUBIC's last limit was above it.
const BELOW: usize = POINTS;

impl<'a> Chain<'a> {
    fn new(sender: &'a Sender, p: f64, rtt_s: f64, seen_s: f64) -> Self {
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
        Chain { sender, p, rtt_s, seen_s, lowest, step }
    }

    fn window(&self, point: usize) -> f64 {
        self.lowest * libm::exp(self.step * point as f64)
    }

    /// Packets in flight of a window.
    fn flight(&self, window: f64) -> f64 {
        // At its least window a sender has all of it in flight.
        if self.sender.whole { window } else { (window - 0.5).max(self.sender.min_window.min(window)) }
    }

    fn settle(&self) -> Rest {
        let cubic = self.sender.law == Law::Cubic;
        let states = if cubic { 2 * POINTS } else { POINTS };
        let cycles: Vec<Cycle> = (0..states).map(|state| self.cycle(state)).collect();
        let mut chances = vec![1.0 / states as f64; states];
        for _ in 0..CYCLES_MAX {
            let mut next = vec![0.0; states];
            for (chance, cycle) in chances.iter().zip(&cycles).filter(|(chance, _)| **chance > 1e-15) {
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
            |of: &dyn Fn(&Cycle) -> f64| -> f64 { chances.iter().zip(&cycles).map(|(c, cycle)| c * of(cycle)).sum() };
        let rounds = sum(&|cycle| cycle.rounds);
        let flight = sum(&|cycle| cycle.acks) / rounds;
        let mean = sum(&|cycle| cycle.area[0]) / rounds;
        let variance = (sum(&|cycle| cycle.area[1]) / rounds - mean * mean).max(0.0);
        let outside = self.sender.outside_pkts(flight, self.rtt_s);
        Rest {
            window_pkts: (flight - outside).max(0.2 * flight),
            variance_pkts2: variance,
            lost_pkts: sum(&|cycle| cycle.lost) / rounds,
            answered: 1.0 / (self.p * sum(&|cycle| cycle.acks)),
        }
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
            Law::Dctcp | Law::Prague => 1.0 - 0.5 * p,
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
            lost: at - start,
        };
        let mut growth = Growth::new(self.sender, p, (self.rtt_s, self.seen_s), at, below, start);
        if law == Law::Prague {
            growth.advance(acks_waiting, waiting);
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
            self.spread(&mut cycle.next, middle, gone, growth.limit_above(middle));
            left -= gone;
            in_round += step_rounds;
            if in_round > 1.0 - 1e-9 {
                // Acknowledgements come at the rate at which packets left a round trip ago.
                (in_round, round_flight) = (0.0, self.flight(growth.window).max(0.5));
            }
        }
        self.spread(&mut cycle.next, growth.window, left, growth.limit_above(growth.window));
        cycle
    }

    /// Gives the chance to the two points beside `window`.
    fn spread(&self, next: &mut [f64], window: f64, chance: f64, below: bool) {
        let place = (libm::log(window / self.lowest) / self.step).clamp(0.0, (POINTS - 1) as f64);
        let point = (place as usize).min(POINTS - 2);
        let part = place - point as f64;
        let offset = if below { BELOW } else { 0 };
        next[offset + point] += chance * (1.0 - part);
        next[offset + point + 1] += chance * part;
    }
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

#[cfg(test)]
mod tests {
    use aqumen_scenario::PRESETS;

    use super::*;

    fn of(law: Law) -> Sender {
        Sender { law, proportional: true, from_flight: true, min_window: 2.0, ..Sender::reno() }
    }

    fn preset(name: &str) -> Result<Sender, &'static str> {
        Sender::of(&PRESETS.iter().find(|(known, _)| *known == name).unwrap().1())
    }

    fn near(left: f64, right: f64, share: f64) {
        assert!((left / right - 1.0).abs() < share, "{left} is not {right}");
    }

    #[test]
    fn large_windows_go_as_the_literature_has_them() {
        // Ott, Kemperman and Mathis: 1.3098 / sqrt(p) = 414.2 under marks at random.
        near(of(Law::Reno).rest(1e-5, 0.1).window_pkts, 414.2, 0.02);
        // DCTCP: growth of one packet in 1 / (p W) rounds and one of waiting gives back p W / 2: p W = sqrt(2).
        near(0.005 * of(Law::Dctcp).rest(0.005, 0.1).window_pkts, 2.0f64.sqrt(), 0.02);
        // Prague grows while it waits, too: y / 2 = 1 + 1 / y, y = 1 + sqrt(3).
        let prague = Sender { paced: true, ..of(Law::Prague) };
        near(0.005 * prague.rest(0.005, 0.1).window_pkts, 1.0 + 3.0f64.sqrt(), 0.02);
        // Below 25 ms as a flow of 25 ms: at half of that half the window, the same rate.
        near(prague.rest(0.005, 0.0125).window_pkts / prague.rest(0.005, 0.025).window_pkts, 0.5, 0.02);
    }

    #[test]
    fn cubic_goes_as_the_three_quarters_power_where_windows_are_large_and_as_reno_where_they_are_small() {
        let cubic = of(Law::Cubic);
        // RFC 9438 equation 5: 1.054 (R / p)^(3/4) for signals evenly spaced; at random more, for W^(4/3) averages.
        let even = 1.054 * libm::pow(0.2 / 1e-5, 0.75);
        let seen = cubic.rest(1e-5, 0.2).window_pkts;
        assert!((1.0..1.25).contains(&(seen / even)), "{seen} {even}");
        near(-cubic.elasticity(1e-5, 0.2), 0.75, 0.03);
        near(cubic.rest(1e-5, 0.4).window_pkts / seen, libm::pow(2.0, 0.75), 0.03);
        // Section 4.3: at short round trips it is as large as Reno's, and without that region smaller.
        let (reno, friendly) = (of(Law::Reno).rest(0.005, 0.01).window_pkts, cubic.rest(0.005, 0.01).window_pkts);
        near(friendly, reno, 0.10);
        assert!(Sender { reno_friendly: false, ..cubic }.rest(0.005, 0.01).window_pkts < 0.7 * friendly);
    }

    #[test]
    fn what_senders_do_beyond_their_law_moves_small_windows() {
        let (p, r) = (0.02, 0.15);
        let modern = of(Law::Reno).rest(p, r).window_pkts;
        // Every second packet held for nothing or two gaps: half a packet less.
        let held = Sender { held_s: 1.0, ..of(Law::Reno) }.rest(p, r).window_pkts;
        near(modern - held, 0.5, 1e-6);
        // Down at once and back by clumps: fewer packets in flight than in proportion.
        assert!(Sender { proportional: false, ..of(Law::Reno) }.rest(p, r).window_pkts < modern - 0.1);
        assert!(Sender { from_flight: false, ..of(Law::Reno) }.rest(p, r).window_pkts > modern);
    }

    #[test]
    fn the_share_that_holds_a_window_is_the_one_at_which_it_rests() {
        for (law, window, rtt_s) in
            [(Law::Reno, 7.0, 0.1), (Law::Cubic, 60.0, 0.3), (Law::Dctcp, 12.0, 0.1), (Law::Prague, 5.0, 0.012)]
        {
            let p = of(law).probability(window, rtt_s).unwrap();
            near(of(law).rest(p, rtt_s).window_pkts, window, 1e-5);
        }
        // Windows of two packets at least are not held at one.
        assert_eq!(of(Law::Reno).probability(1.0, 0.1), None);
    }

    #[test]
    fn a_table_is_the_response_function() {
        for (law, rtt_s) in [(Law::Cubic, 0.1), (Law::Prague, 0.02)] {
            let table = of(law).table(rtt_s);
            for p in [3e-4, 0.004, 0.07, 0.25] {
                near(table.window(p), of(law).rest(p, rtt_s).window_pkts, 0.03);
            }
        }
    }

    #[test]
    fn presets_have_their_law_and_others_say_why_not() {
        assert!(preset("ns2").unwrap().has_closed_form() && !preset("modern").unwrap().has_closed_form());
        let linux = preset("linux").unwrap();
        assert!(linux.law == Law::Cubic && linux.whole && linux.proportional && !linux.from_flight);
        assert!(preset("prague").unwrap().paced && preset("dctcp").unwrap().law == Law::Dctcp);
        assert!(preset("bbr").unwrap_err().contains("delivery rate"));
        assert!(preset("vegas").unwrap_err().contains("delay") && preset("ledbat").unwrap_err().contains("delay"));
        assert!(preset("cubic-ns2").is_err());
    }

    #[test]
    fn noise_and_slope_of_a_large_window_are_those_of_reno() {
        // Closed form at W = 100: a slope of -p W / c and less than a tenth of a share beyond; variance .2844 / p.
        let reno = of(Law::Reno);
        let p = reno.probability(100.0, 0.1).unwrap();
        let windows = reno.around(p, 0.1).unwrap();
        let (in_window, in_p) = crate::window::slopes(100.0);
        near(windows.slopes.0, in_window, 0.12);
        near(windows.slopes.1, in_p, 0.12);
        near(windows.noise / (-2.0 * windows.slopes.0) * p, 0.2844, 0.06);
        assert!(of(Law::Prague).around(0.1, 0.1).is_none());
    }
}
