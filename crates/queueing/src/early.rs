//! Early drops and marks by a threshold on the occupancy, and the search for thresholds that meet a bound on loss.

/// Treatment of a packet that the threshold function selects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// Drop before it enters.
    #[default]
    Drop,
    /// Mark and accept. Sources do not react, so marks leave the queue as it is.
    Mark,
}

/// Threshold function F: the probability that a packet is dropped or marked with `present` packets in the system. It is
/// 0 below `threshold` and rises linearly to 1 at `limit`. A threshold at or above the limit gives a step at the limit.
///
/// Equation (18) of the AAQM paper, with its limit read as an occupancy in packets (the paper calls it a probability).
pub fn probability(present: f64, threshold: f64, limit: f64) -> f64 {
    if present >= limit {
        1.0
    } else if present < threshold {
        0.0
    } else {
        (present - threshold) / (limit - threshold)
    }
}

/// Candidate thresholds, as fractions of the buffer, and the bound on the loss ratio of each source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adaptation {
    /// Greatest loss ratio of each source.
    pub loss_ratio_max: f64,
    /// Least candidate.
    pub lowest: f64,
    /// Greatest candidate.
    pub highest: f64,
    /// Step between candidates.
    pub step: f64,
}

impl Default for Adaptation {
    fn default() -> Self {
        Adaptation { loss_ratio_max: 0.01, lowest: 0.25, highest: 0.95, step: 0.01 }
    }
}

impl Adaptation {
    /// Index of the last candidate.
    fn last(&self) -> usize {
        ((self.highest - self.lowest) / self.step + 1e-9) as usize
    }

    /// Expected number of solutions in a search: bisections of all sources, twice.
    pub(crate) fn solutions(&self, sources: usize) -> f64 {
        2.0 * sources as f64 * (1.0 + libm::log2((self.last() + 1) as f64).ceil())
    }

    fn fraction(&self, choice: usize) -> f64 {
        (self.lowest + choice as f64 * self.step).min(self.highest)
    }

    /// Returns for each of `sources` the least threshold, as a fraction of the buffer, that keeps its loss ratio within
    /// the bound. `loss` returns the loss ratio of source `s` for given thresholds. A source that exceeds the bound at
    /// the greatest candidate gets that one.
    ///
    /// A higher threshold of one source lowers its loss and raises the loss of all others. The search starts with all
    /// at the least candidate and only raises them, source by source, until no source needs a higher one: the least
    /// thresholds that satisfy all.
    pub fn search<E>(
        &self,
        sources: usize,
        mut loss: impl FnMut(&[f64], usize) -> Result<f64, E>,
    ) -> Result<Vec<f64>, E> {
        let mut chosen = vec![0; sources];
        let mut fractions = vec![self.fraction(0); sources];
        loop {
            let mut moved = false;
            for s in 0..sources {
                let mut meets = |choice: usize, fractions: &mut Vec<f64>| {
                    fractions[s] = self.fraction(choice);
                    // NaN: the source sends no packets.
                    loss(fractions, s).map(|loss| loss.is_nan() || loss <= self.loss_ratio_max)
                };
                let (mut low, mut high) = (chosen[s], self.last());
                if low < high && !meets(low, &mut fractions)? {
                    // The solution is above low, at most high.
                    while low + 1 < high {
                        let middle = (low + high) / 2;
                        if meets(middle, &mut fractions)? { high = middle } else { low = middle }
                    }
                    chosen[s] = high;
                    moved = true;
                }
                fractions[s] = self.fraction(chosen[s]);
            }
            if !moved {
                return Ok(fractions);
            }
        }
    }

    /// Returns the next threshold of one source, a fraction of the buffer, from the loss ratio measured over the last
    /// second: up by a twentieth of the buffer above the bound, down below half of it.
    pub fn adjusted(&self, threshold: f64, measured_loss_ratio: f64) -> f64 {
        const STEP: f64 = 0.05;
        let next = if measured_loss_ratio > self.loss_ratio_max {
            threshold + STEP
        } else if measured_loss_ratio < 0.5 * self.loss_ratio_max {
            threshold - STEP
        } else {
            threshold
        };
        next.clamp(self.lowest, self.highest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_is_expected_to_bisect_the_thresholds_of_each_source_twice() {
        // From a quarter to .95 in hundredths: 71 thresholds, seven bisections after the lowest one, two sources.
        assert_eq!(Adaptation::default().solutions(2), 2.0 * 2.0 * 8.0);
        // .25, .45, .65, .85: two bisections.
        assert_eq!(Adaptation { step: 0.2, ..Adaptation::default() }.solutions(3), 2.0 * 3.0 * 3.0);
    }

    #[test]
    fn a_threshold_stays_while_the_loss_is_between_half_of_the_target_and_all_of_it() {
        let target = Adaptation { loss_ratio_max: 0.25, ..Adaptation::default() };
        let next = [0.26, 0.25, 0.2, 0.125, 0.12].map(|loss| target.adjusted(0.5, loss));
        assert_eq!(next, [0.55, 0.5, 0.5, 0.5, 0.45]);
        assert_eq!((target.adjusted(0.94, 0.5), target.adjusted(0.26, 0.0)), (0.95, 0.25));
    }
}
