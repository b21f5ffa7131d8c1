//! How losses come: one by one, or in bursts.

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

/// Index of dispersion of `counts` over intervals of equal length: their variance (over n) over their mean. 1 for losses that
/// come as a Poisson process, 0 for a steady trickle, above 1 for bursts. `None` for fewer than two intervals or no loss.
/// Cox, Lewis: The statistical analysis of series of events, 1966, section 4.4.
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
