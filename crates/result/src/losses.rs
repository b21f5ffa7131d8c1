//! How losses come: one by one or in bursts, how far apart, and of how many flows at a time.

use crate::Histogram;

/// Lengths of runs of losses: packets lost one directly after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Runs {
    runs: u64,
    lost: u64,
    longest: u64,
}

impl Runs {
    /// A run of `length` losses has ended. Of length 0 it is none.
    pub fn record(&mut self, length: u64) {
        self.runs += u64::from(length > 0);
        self.lost += length;
        self.longest = self.longest.max(length);
    }

    /// Adds what `other` counted.
    pub fn merge(&mut self, other: &Runs) {
        self.runs += other.runs;
        self.lost += other.lost;
        self.longest = self.longest.max(other.longest);
    }

    /// Mean length. `None` without a loss.
    pub fn mean(&self) -> Option<f64> {
        (self.runs > 0).then(|| self.lost as f64 / self.runs as f64)
    }

    /// Length of the longest. `None` without a loss.
    pub fn longest(&self) -> Option<u64> {
        (self.runs > 0).then_some(self.longest)
    }
}

/// When losses came, and of which flows: RFC 7928 sections 2.3 (interval between consecutive losses) and 2.4 (loss
/// synchronisation). Losses within one round trip of the first of them, which their senders can take for one, are one
/// event.
#[derive(Clone, Debug, Default)]
pub struct LossClock {
    /// Nanoseconds that make one event; 0: events are not told apart.
    event_ns: u64,
    last_at: Option<u64>,
    event_ends: u64,
    /// Flows that the event in progress has hit, some of them more than once.
    hit: Vec<u32>,
}

/// There is room for so many losses before repeats are looked for.
const LEAST_ROOM: usize = 64;

/// What [`LossClock`] saw in a stretch of time.
#[derive(Clone, Debug, Default)]
pub struct LossSpacing {
    /// Nanoseconds from one loss to the next.
    intervals: Histogram,
    events: u64,
    /// Flows hit, summed over the events.
    hits: u64,
}

impl LossClock {
    /// Losses within `event_ns` nanoseconds of the first are one event.
    pub fn new(event_ns: u64) -> Self {
        LossClock { event_ns, ..LossClock::default() }
    }

    /// A packet of `flow` was lost at `now`.
    pub fn lost(&mut self, now: u64, flow: u32, seen: &mut LossSpacing) {
        if let Some(before) = self.last_at.replace(now) {
            seen.intervals.record(now - before);
        }
        if self.event_ns == 0 {
            return;
        }
        if now >= self.event_ends {
            self.close(seen);
            self.event_ends = now.saturating_add(self.event_ns);
        }
        if self.hit.len() == self.hit.capacity() {
            self.strike_out_repeats();
            self.hit.reserve(self.hit.len().max(LEAST_ROOM));
        }
        self.hit.push(flow);
    }

    /// The stretch ends; what is left of an event in progress counts in the next one as an event of its own.
    pub fn close(&mut self, seen: &mut LossSpacing) {
        self.strike_out_repeats();
        seen.events += u64::from(!self.hit.is_empty());
        seen.hits += self.hit.len() as u64;
        self.hit.clear();
    }

    /// Lists each flow that was hit once. The list has as much room again afterwards, so that a loss costs little
    /// however many flows there are.
    fn strike_out_repeats(&mut self) {
        self.hit.sort_unstable();
        self.hit.dedup();
    }
}

impl LossSpacing {
    /// Adds what was seen later.
    pub fn merge(&mut self, later: &LossSpacing) {
        self.intervals.merge(&later.intervals);
        self.events += later.events;
        self.hits += later.hits;
    }

    /// Nanoseconds from one loss to the next.
    pub fn intervals(&self) -> &Histogram {
        &self.intervals
    }

    /// Mean number of flows that an event hits; `None` without one.
    pub fn flows_hit(&self) -> Option<f64> {
        (self.events > 0).then(|| self.hits as f64 / self.events as f64)
    }
}

/// Index of dispersion of `counts` over intervals of equal length: their variance (over n) over their mean. 1 for
/// losses that come as a Poisson process, 0 for a steady trickle, above 1 for bursts. `None` for fewer than two
/// intervals or no loss. Cox, Lewis: The statistical analysis of series of events, 1966, section 4.4.
pub fn dispersion(counts: impl IntoIterator<Item = u32>) -> Option<f64> {
    let (mut n, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for count in counts {
        let count = f64::from(count);
        n += 1.0;
        sum += count;
        squares += count * count;
    }
    (n > 1.0 && sum > 0.0).then(|| ((squares / n) - (sum / n) * (sum / n)).max(0.0) / (sum / n))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn runs_have_a_mean_and_a_longest() {
        let mut runs = Runs::default();
        assert_eq!((runs.mean(), runs.longest()), (None, None));
        [1, 0, 4, 1].iter().for_each(|&length| runs.record(length));
        assert_eq!((runs.mean(), runs.longest()), (Some(2.0), Some(4)));
        let mut other = Runs::default();
        other.record(6);
        runs.merge(&other);
        assert_eq!((runs.mean(), runs.longest()), (Some(3.0), Some(6)));
    }

    #[test]
    fn losses_within_a_round_trip_are_one_event() {
        // Round trips of 100. At 10, 20 and 109: flows 7, 3, 7, one event of two flows. At 110 and 500: two events of
        // one flow each.
        let (mut clock, mut seen) = (LossClock::new(100), LossSpacing::default());
        for (at, flow) in [(10, 7), (20, 3), (109, 7), (110, 1)] {
            clock.lost(at, flow, &mut seen);
        }
        let mut later = LossSpacing::default();
        clock.close(&mut seen);
        clock.lost(500, 2, &mut later);
        clock.close(&mut later);
        assert_eq!((seen.flows_hit(), later.flows_hit()), (Some(1.5), Some(1.0)));
        seen.merge(&later);
        assert_eq!(seen.flows_hit(), Some(4.0 / 3.0));
        // 10, 89, 1 and 390 apart.
        assert_eq!((seen.intervals().total(), seen.intervals().mean()), (4, Some(490.0 / 4.0)));
        assert_eq!(LossSpacing::default().flows_hit(), None);
        // Who does not know the round trip still knows the intervals.
        let (mut clock, mut seen) = (LossClock::default(), LossSpacing::default());
        [5, 9].iter().for_each(|&at| clock.lost(at, 0, &mut seen));
        clock.close(&mut seen);
        assert_eq!((seen.intervals().mean(), seen.flows_hit()), (Some(4.0), None));
    }

    #[test]
    fn a_flow_that_is_hit_again_and_again_counts_once() {
        // Losses of one event, of one flow after the other and back again: each is hit ten times.
        for flows in [1, 63, 64, 65, 100, 1000] {
            let (mut clock, mut seen) = (LossClock::new(1_000_000), LossSpacing::default());
            for k in 0..10 * flows {
                let flow = if k / flows % 2 == 0 { k % flows } else { flows - 1 - k % flows };
                clock.lost(u64::from(k), flow, &mut seen);
            }
            clock.close(&mut seen);
            assert_eq!(seen.flows_hit(), Some(f64::from(flows)), "{flows}");
        }
    }

    #[test]
    fn one_burst_in_n_intervals_has_dispersion_by_its_size() {
        // 12 losses in one of four intervals: mean 3, variance (81 + 3 * 9) / 4 = 27, index 9.
        assert_eq!(dispersion([0, 12, 0, 0]), Some(9.0));
        assert_eq!(dispersion([3, 3, 3, 3]), Some(0.0));
        assert_eq!((dispersion([5]), dispersion([0, 0])), (None, None));
    }

    proptest! {
        /// n intervals of mean m can at most hold all losses in one: (n - 1) m.
        #[test]
        fn dispersion_is_bounded(counts in prop::collection::vec(0u32..1000, 2..40)) {
            let n = counts.len() as f64;
            let mean = counts.iter().sum::<u32>() as f64 / n;
            if let Some(index) = dispersion(counts) {
                prop_assert!(index >= 0.0 && index <= (n - 1.0) * mean * (1.0 + 1e-9));
            }
        }
    }
}
