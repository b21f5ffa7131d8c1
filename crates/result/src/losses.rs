//! Statistics of losses: bursts, intervals, and synchronisation of flows.

use crate::Histogram;

/// Lengths of loss runs: consecutive lost packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossRuns {
    runs: u64,
    lost: u64,
    longest: u64,
}

impl LossRuns {
    /// Records a run of `length` losses; no effect for length 0.
    pub fn record(&mut self, length: u64) {
        self.runs += u64::from(length > 0);
        self.lost += length;
        self.longest = self.longest.max(length);
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &LossRuns) {
        self.runs += other.runs;
        self.lost += other.lost;
        self.longest = self.longest.max(other.longest);
    }

    /// Mean length; `None` without losses.
    pub fn mean(&self) -> Option<f64> {
        (self.runs > 0).then(|| self.lost as f64 / self.runs as f64)
    }

    /// Longest run; `None` without losses.
    pub fn longest(&self) -> Option<u64> {
        (self.runs > 0).then_some(self.longest)
    }
}

/// Times and flows of losses: RFC 7928 sections 2.3 (interval between consecutive losses) and 2.4 (loss
/// synchronisation). Losses within one round trip of the first, which a sender may take for one, are one event.
#[derive(Clone, Debug, Default)]
pub struct LossTracker {
    /// Duration of an event, nanoseconds; 0: events are not counted.
    event_ns: u64,
    last_at: Option<u64>,
    event_ends: u64,
    /// Flows hit by the current event, with repeats.
    hit: Vec<u32>,
}

/// Least capacity of the list of flows.
const MIN_CAPACITY: usize = 64;

/// Loss statistics of an interval of time.
#[derive(Clone, Debug, Default)]
pub struct LossStatistics {
    /// Intervals between losses, nanoseconds.
    intervals: Histogram,
    events: u64,
    /// Number of flows hit, summed over events.
    hits: u64,
}

impl LossTracker {
    /// A tracker with events of `event_ns` nanoseconds.
    pub fn new(event_ns: u64) -> Self {
        LossTracker { event_ns, ..LossTracker::default() }
    }

    /// Records the loss of a packet of `flow` at `now`.
    pub fn lost(&mut self, now: u64, flow: u32, statistics: &mut LossStatistics) {
        if let Some(last) = self.last_at.replace(now) {
            statistics.intervals.record(now - last);
        }
        if self.event_ns == 0 {
            return;
        }
        if now >= self.event_ends {
            self.close(statistics);
            self.event_ends = now.saturating_add(self.event_ns);
        }
        if self.hit.len() == self.hit.capacity() {
            self.remove_repeats();
            self.hit.reserve(self.hit.len().max(MIN_CAPACITY));
        }
        self.hit.push(flow);
    }

    /// Ends an interval of time; the rest of an event counts as another event in the next one.
    pub fn close(&mut self, statistics: &mut LossStatistics) {
        self.remove_repeats();
        statistics.events += u64::from(!self.hit.is_empty());
        statistics.hits += self.hit.len() as u64;
        self.hit.clear();
    }

    /// Removes repeated flows from the list. Its capacity doubles each time, so the cost per loss is small for any
    /// number of flows.
    fn remove_repeats(&mut self) {
        self.hit.sort_unstable();
        self.hit.dedup();
    }
}

impl LossStatistics {
    /// Adds the statistics of a later interval.
    pub fn merge(&mut self, later: &LossStatistics) {
        self.intervals.merge(&later.intervals);
        self.events += later.events;
        self.hits += later.hits;
    }

    /// Intervals between losses, nanoseconds.
    pub fn intervals(&self) -> &Histogram {
        &self.intervals
    }

    /// Mean number of flows hit by an event; `None` without events.
    pub fn flows_hit(&self) -> Option<f64> {
        (self.events > 0).then(|| self.hits as f64 / self.events as f64)
    }
}

/// Index of dispersion of `counts` in equal intervals: variance (over n) over mean. 1 for a Poisson process, 0 for
/// equal counts, above 1 for bursts. `None` for fewer than two intervals or no losses. Cox, Lewis: The statistical
/// analysis of series of events, 1966, section 4.4.
pub fn index_of_dispersion(counts: impl IntoIterator<Item = u32>) -> Option<f64> {
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
        let mut runs = LossRuns::default();
        assert_eq!((runs.mean(), runs.longest()), (None, None));
        [1, 0, 4, 1].iter().for_each(|&length| runs.record(length));
        assert_eq!((runs.mean(), runs.longest()), (Some(2.0), Some(4)));
        let mut other = LossRuns::default();
        other.record(6);
        runs.merge(&other);
        assert_eq!((runs.mean(), runs.longest()), (Some(3.0), Some(6)));
    }

    #[test]
    fn losses_within_a_round_trip_are_one_event() {
        // Round trips of 100. 10, 20 and 109: flows 7, 3, 7, one event of two flows. 110 and 500: two events of one
        // flow each.
        let (mut tracker, mut statistics) = (LossTracker::new(100), LossStatistics::default());
        for (at, flow) in [(10, 7), (20, 3), (109, 7), (110, 1)] {
            tracker.lost(at, flow, &mut statistics);
        }
        let mut later = LossStatistics::default();
        tracker.close(&mut statistics);
        tracker.lost(500, 2, &mut later);
        tracker.close(&mut later);
        assert_eq!((statistics.flows_hit(), later.flows_hit()), (Some(1.5), Some(1.0)));
        statistics.merge(&later);
        assert_eq!(statistics.flows_hit(), Some(4.0 / 3.0));
        // Intervals of 10, 89, 1 and 390.
        assert_eq!((statistics.intervals().total(), statistics.intervals().mean()), (4, Some(490.0 / 4.0)));
        assert_eq!(LossStatistics::default().flows_hit(), None);
        // Without a round-trip time only intervals are known.
        let (mut tracker, mut statistics) = (LossTracker::default(), LossStatistics::default());
        [5, 9].iter().for_each(|&at| tracker.lost(at, 0, &mut statistics));
        tracker.close(&mut statistics);
        assert_eq!((statistics.intervals().mean(), statistics.flows_hit()), (Some(4.0), None));
    }

    #[test]
    fn a_flow_hit_repeatedly_counts_once() {
        // One event with losses of all flows in turn, back and forth: each is hit ten times.
        for flows in [1, 63, 64, 65, 100, 1000] {
            let (mut tracker, mut statistics) = (LossTracker::new(1_000_000), LossStatistics::default());
            for k in 0..10 * flows {
                let flow = if k / flows % 2 == 0 { k % flows } else { flows - 1 - k % flows };
                tracker.lost(u64::from(k), flow, &mut statistics);
            }
            tracker.close(&mut statistics);
            assert_eq!(statistics.flows_hit(), Some(f64::from(flows)), "{flows}");
        }
    }

    #[test]
    fn one_burst_in_n_intervals_has_dispersion_by_its_size() {
        // 12 losses in one of four intervals: mean 3, variance (81 + 3 * 9) / 4 = 27, index 9.
        assert_eq!(index_of_dispersion([0, 12, 0, 0]), Some(9.0));
        assert_eq!(index_of_dispersion([3, 3, 3, 3]), Some(0.0));
        assert_eq!((index_of_dispersion([5]), index_of_dispersion([0, 0])), (None, None));
    }

    proptest! {
        /// n intervals of mean m: at most (n - 1) m, with all losses in one.
        #[test]
        fn dispersion_is_bounded(counts in prop::collection::vec(0u32..1000, 2..40)) {
            let n = counts.len() as f64;
            let mean = counts.iter().sum::<u32>() as f64 / n;
            if let Some(index) = index_of_dispersion(counts) {
                prop_assert!(index >= 0.0 && index <= (n - 1.0) * mean * (1.0 + 1e-9));
            }
        }
    }
}
