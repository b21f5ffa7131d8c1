//! Radio conditions over time: level of link adaptation, and handovers. They do not depend on the traffic; the capacity
//! that they allow is integrated.

use aqumen_aqm::Draw;
use aqumen_scenario::channel::level_weights;
use aqumen_scenario::streams::Stream;
use aqumen_units::Span;

use super::offered::OfferedCapacity;
use super::random::{Use, exponential};

/// Radio conditions.
#[derive(Clone)]
pub(super) struct Radio {
    ladder: Ladder,
    handovers: Option<Handovers>,
    /// Capacity at each level, bit/s.
    level_bps: Vec<f64>,
    now: u64,
    offered: OfferedCapacity,
}

/// A Markov chain on the levels: each step proposes to go up, to stay, or to go down, and accepts by Metropolis' rule.
#[derive(Clone)]
struct Ladder {
    log_weights: Vec<f64>,
    level: usize,
    step_ns: u64,
    next_step: u64,
    rng: Stream,
}

/// Handovers, during which nothing can be sent.
#[derive(Clone)]
struct Handovers {
    mean_ns: f64,
    lasts: u64,
    /// Beginning of the current or next handover.
    from: u64,
    /// End of that handover.
    until: u64,
    rng: Stream,
}

impl Radio {
    pub(super) fn new(
        log_weights: &[f64],
        level_bps: Vec<f64>,
        coherence: Span,
        handover: Option<(Span, Span)>,
        offered: OfferedCapacity,
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

    /// Returns the level at `at`. Calls are in the order of time.
    pub(super) fn level(&mut self, at: u64) -> usize {
        self.advance(at);
        self.ladder.level
    }

    /// Returns the first time from `at` on without a handover.
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

    /// Returns the bits that the radio conditions allowed between the edges of the windows.
    pub(super) fn offered_bits(&mut self) -> Vec<f64> {
        self.advance(self.offered.end());
        self.offered.pieces()
    }
}

impl Ladder {
    fn new(log_weights: &[f64], step_ns: u64, mut rng: Stream) -> Self {
        let weights = level_weights(log_weights);
        // The chain starts in its stationary law.
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

#[cfg(test)]
mod tests {
    use super::*;
    use aqumen_scenario::streams::Kind;

    const MS: u64 = 1_000_000;

    fn stream(use_of: Use) -> Stream {
        Stream::new(1, Kind::Link, use_of as u64)
    }

    fn radio(log_weights: &[f64], level_bps: &[f64], handover: Option<(Span, Span)>, edges: &[u64]) -> Radio {
        let coherence = Span::from_millis(10);
        Radio::new(log_weights, level_bps.to_vec(), coherence, handover, OfferedCapacity::new(edges, &[]), &stream)
    }

    #[test]
    fn the_level_goes_up_and_down_as_metropolis_has_it() {
        // In the long run 1/6, 2/6 and 3/6 of the time. A third of the steps propose each way; those to a less likely
        // level are taken with the ratio of the two.
        let logs = [1.0f64, 2.0, 3.0].map(f64::ln);
        let mut radio = radio(&logs, &[1.0; 3], None, &[]);
        let (steps, mut seen) = (60_000u64, [[0u32; 3]; 3]);
        let mut before = radio.level(0);
        for k in 1..=steps {
            // It stays from one step to the next.
            assert_eq!(radio.level(k * 10 * MS - 1), before);
            let level = radio.level(k * 10 * MS);
            seen[before][level] += 1;
            before = level;
        }
        let expected = [[2.0 / 3.0, 1.0 / 3.0, 0.0], [1.0 / 6.0, 1.0 / 2.0, 1.0 / 3.0], [0.0, 2.0 / 9.0, 7.0 / 9.0]];
        for (from, (seen, expected)) in seen.iter().zip(expected).enumerate() {
            let n = f64::from(seen.iter().sum::<u32>());
            for (seen, p) in seen.iter().zip(expected) {
                let (share, error) = (f64::from(*seen) / n, (p * (1.0 - p) / n).sqrt());
                assert!((share - p).abs() <= 3.29 * error, "from {from}: {share}, not {p}");
            }
            // Correlation of the slowest mode 2/3: the variance is at most 5 times that of independent steps.
            let (p, share) = ((from + 1) as f64 / 6.0, n / steps as f64);
            assert!((share - p).abs() < 3.29 * (5.0 * p * (1.0 - p) / steps as f64).sqrt(), "{from}: {share}, not {p}");
        }
    }

    #[test]
    fn it_starts_in_the_long_run() {
        let logs = [1.0f64, 2.0, 3.0].map(f64::ln);
        let mut seen = [0u32; 3];
        for number in 0..6000 {
            seen[Ladder::new(&logs, MS, Stream::new(1, Kind::Link, number)).level] += 1;
        }
        // Standard deviations of at most sqrt(6000 / 4) = 39.
        assert!([1000, 2000, 3000].iter().zip(seen).all(|(n, seen)| seen.abs_diff(*n) < 130), "{seen:?}");
        // A level by itself is where it is, for ever.
        let alone = Ladder::new(&[f64::NEG_INFINITY, 0.0], MS, stream(Use::Level));
        assert_eq!((alone.level, alone.next_step), (1, u64::MAX));
    }

    #[test]
    fn nothing_is_sent_or_offered_during_handovers() {
        // Of 100 ms each, a second after another on average.
        let handover = Some((Span::from_secs(1), Span::from_millis(100)));
        let edges = [700_000 * MS, 1_000_000 * MS];
        let mut radio = radio(&[0.0], &[8e6], handover, &edges);
        let (mut at, mut outs, mut up_ms) = (0, Vec::new(), [0.0; 2]);
        let mut walk = self::radio(&[0.0], &[8e6], handover, &[]);
        while at < 1_000_000 * MS {
            let clear = walk.clear_from(at);
            if clear > at {
                assert!(
                    clear - at <= 100 * MS && clear - at > 99 * MS,
                    "looked at each millisecond, it had just begun"
                );
                outs.push(clear - 100 * MS);
                at = clear;
                assert_eq!(walk.clear_from(at), at, "after it there is time");
            } else {
                at += MS;
            }
        }
        // 1 s and 100 ms: 909 in 1000 s, with a standard deviation of sqrt(1000 / 1.1^3) = 27.
        assert!(outs.len().abs_diff(909) < 90, "{}", outs.len());
        let gaps: Vec<u64> = outs.windows(2).map(|pair| pair[1] - pair[0] - 100 * MS).collect();
        let mean_ms = gaps.iter().map(|gap| *gap as f64 / 1e6).sum::<f64>() / gaps.len() as f64;
        assert!((mean_ms - 1000.0).abs() < 3.29 * 1000.0 / (gaps.len() as f64).sqrt(), "{mean_ms}");
        for (up_ms, (from, until)) in up_ms.iter_mut().zip([(0, edges[0]), (edges[0], edges[1])]) {
            let down = outs.iter().map(|&out| (out + 100 * MS).min(until).saturating_sub(out.max(from))).sum::<u64>();
            *up_ms = (until - from - down) as f64 / 1e6;
        }
        for (bits, ms) in radio.offered_bits().iter().zip(up_ms) {
            assert!((bits - 8e3 * ms).abs() < 1e-6 * bits, "{bits}, not {}", 8e3 * ms);
        }
    }

    #[test]
    fn offered_capacity_is_the_integral_over_the_levels() {
        let (logs, edges) = ([0.0, 0.0], [35 * MS, 1000 * MS]);
        let level_bps = [1e6, 3e6];
        let mut walk = radio(&logs, &level_bps, None, &[]);
        let mut expected = [0.0; 2];
        for ms in 0..1000 {
            expected[usize::from(ms >= 35)] += level_bps[walk.level(ms * MS)] * 1e-3;
        }
        let got = radio(&logs, &level_bps, None, &edges).offered_bits();
        assert!(got.iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 1e-3), "{got:?} {expected:?}");
    }
}
