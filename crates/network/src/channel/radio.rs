//! Radio conditions over time: the level of link adaptation, and handovers. They move on with time, whether or not
//! anybody sends, and keep count of what they would have allowed.

use aqumen_aqm::Draw;
use aqumen_scenario::channel::level_weights;
use aqumen_scenario::streams::Stream;
use aqumen_units::Span;

use super::{Offered, Use, exponential};

/// Radio conditions.
pub(super) struct Radio {
    ladder: Ladder,
    handovers: Option<Handovers>,
    /// Capacity at each level, bit/s.
    level_bps: Vec<f64>,
    now: u64,
    offered: Offered,
}

/// A Markov chain on levels whose neighbours it visits: each step proposes to go up, to stay, or to go down,
/// and accepts as Metropolis does.
struct Ladder {
    log_weights: Vec<f64>,
    level: usize,
    step_ns: u64,
    next_step: u64,
    rng: Stream,
}

/// Handovers: when nothing can be sent.
struct Handovers {
    mean_ns: f64,
    lasts: u64,
    /// The handover under way or next: from, until.
    from: u64,
    until: u64,
    rng: Stream,
}

impl Radio {
    pub(super) fn new(
        log_weights: &[f64],
        level_bps: Vec<f64>,
        coherence: Span,
        handover: Option<(Span, Span)>,
        offered: Offered,
        stream: &dyn Fn(Use) -> Stream,
    ) -> Self {
        Radio {
            ladder: Ladder::new(log_weights, coherence.as_nanos(), stream(Use::Level)),
            handovers: handover.map(|(every, lasts)| {
                let mut rng = stream(Use::Handover);
                let mean_ns = every.as_nanos() as f64;
                let from = exponential(&mut rng, mean_ns) as u64;
                Handovers { mean_ns, lasts: lasts.as_nanos(), from, until: from + lasts.as_nanos(), rng }
            }),
            level_bps,
            now: 0,
            offered,
        }
    }

    /// The level at `at`, which never goes back.
    pub(super) fn level(&mut self, at: u64) -> usize {
        self.advance(at);
        self.ladder.level
    }

    /// The first moment from `at` on without a handover.
    pub(super) fn clear_from(&mut self, at: u64) -> u64 {
        self.advance(at);
        match &self.handovers {
            Some(handover) if handover.from <= at => handover.until,
            _ => at,
        }
    }

    fn advance(&mut self, at: u64) {
        while self.now < at {
            let (from, until) = self.handovers.as_ref().map_or((u64::MAX, u64::MAX), |h| (h.from, h.until));
            let out = from <= self.now;
            let change = if out { until } else { from };
            let to = at.min(self.ladder.next_step).min(change);
            let bps = if out { 0.0 } else { self.level_bps[self.ladder.level] };
            self.offered.advance(to, bps);
            self.now = to;
            if to == self.ladder.next_step {
                self.ladder.step();
            }
            if out
                && to == until
                && let Some(handovers) = &mut self.handovers
            {
                handovers.next();
            }
        }
    }

    /// Bits that the radio conditions allowed between the edges of the windows.
    pub(super) fn offered_bits(&mut self) -> Vec<f64> {
        self.advance(self.offered.end());
        self.offered.pieces()
    }
}

impl Ladder {
    fn new(log_weights: &[f64], step_ns: u64, mut rng: Stream) -> Self {
        let weights = level_weights(log_weights);
        // It starts in the long run's distribution.
        let draw = rng.uniform();
        let mut sum = 0.0;
        let reached = weights.iter().position(|weight| {
            sum += weight;
            draw < sum
        });
        let likeliest = (0..weights.len()).max_by(|a, b| weights[*a].total_cmp(&weights[*b])).unwrap_or(0);
        let level = reached.unwrap_or(likeliest);
        let moves = weights.iter().filter(|weight| **weight > 0.0).count() > 1;
        let next_step = if moves { step_ns } else { u64::MAX };
        Ladder { log_weights: log_weights.to_vec(), level, step_ns, next_step, rng }
    }

    fn step(&mut self) {
        self.next_step += self.step_ns;
        let draw = self.rng.uniform();
        // A third each for down, up and staying.
        let neighbour = match (3.0 * draw) as u32 {
            0 => self.level.checked_sub(1),
            1 => Some(self.level + 1).filter(|level| *level < self.log_weights.len()),
            _ => None,
        };
        let Some(neighbour) = neighbour else { return };
        let ratio = libm::exp(self.log_weights[neighbour] - self.log_weights[self.level]);
        if ratio >= 1.0 || self.rng.uniform() < ratio {
            self.level = neighbour;
        }
    }
}

impl Handovers {
    fn next(&mut self) {
        self.from = self.until + 1 + exponential(&mut self.rng, self.mean_ns) as u64;
        self.until = self.from + self.lasts;
    }
}
