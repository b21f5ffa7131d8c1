//! Early drops and marks by a threshold on the occupancy, and the thresholds that meet a target of loss.

/// What a packet chosen by the threshold function suffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// It is dropped before it enters.
    #[default]
    Drop,
    /// It is marked and enters: sources that do not react, as these, then fill the queue as without marks.
    Mark,
}

/// F: the probability that a packet is dropped or marked when `present` packets are there: 0 below `threshold`, from
/// there linear to 1 at `limit`. A threshold at or above the limit makes a step at the limit.
///
/// Equation (18) of the AAQM paper, with its limit read as an occupancy in packets (it calls it a probability).
pub fn probability(present: f64, threshold: f64, limit: f64) -> f64 {
    if present >= limit {
        1.0
    } else if present < threshold {
        0.0
    } else {
        (present - threshold) / (limit - threshold)
    }
}

/// Which thresholds are tried, as shares of the buffer, and which loss each source may suffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adaptation {
    /// Highest share of packets lost of each source.
    pub loss_ratio_max: f64,
    /// Lowest threshold.
    pub lowest: f64,
    /// Highest threshold.
    pub highest: f64,
    /// Step from one to the next.
    pub step: f64,
}

impl Default for Adaptation {
    fn default() -> Self {
        Adaptation { loss_ratio_max: 0.01, lowest: 0.25, highest: 0.95, step: 0.01 }
    }
}

impl Adaptation {
    /// Number of the last threshold to choose from.
    fn last(&self) -> usize {
        ((self.highest - self.lowest) / self.step + 1e-9) as usize
    }

    /// How many solutions a search takes, about: bisections of all sources, twice.
    pub(crate) fn solutions(&self, sources: usize) -> f64 {
        2.0 * sources as f64 * (1.0 + libm::log2((self.last() + 1) as f64).ceil())
    }

    fn share(&self, choice: usize) -> f64 {
        (self.lowest + choice as f64 * self.step).min(self.highest)
    }

    /// For each of `sources` the smallest threshold, as a share of the buffer, with which its loss stays at most the
    /// target; `loss` answers the loss of source `s` under given thresholds. A source that misses the target at the
    /// highest threshold gets that one.
    ///
    /// A higher threshold of one source lowers its loss and raises that of all others. The search therefore
    /// starts with all at the lowest and goes up only, source by source, until none needs more: the least
    /// thresholds that satisfy all.
    pub fn search<E>(
        &self,
        sources: usize,
        mut loss: impl FnMut(&[f64], usize) -> Result<f64, E>,
    ) -> Result<Vec<f64>, E> {
        let mut chosen = vec![0; sources];
        let mut shares = vec![self.share(0); sources];
        loop {
            let mut moved = false;
            for s in 0..sources {
                let mut meets = |choice: usize, shares: &mut Vec<f64>| {
                    shares[s] = self.share(choice);
                    // NaN: the source sends nothing and loses nothing.
                    loss(shares, s).map(|loss| loss.is_nan() || loss <= self.loss_ratio_max)
                };
                let (mut low, mut high) = (chosen[s], self.last());
                if low < high && !meets(low, &mut shares)? {
                    // The answer lies above low, at most high.
                    while low + 1 < high {
                        let middle = (low + high) / 2;
                        if meets(middle, &mut shares)? { high = middle } else { low = middle }
                    }
                    chosen[s] = high;
                    moved = true;
                }
                shares[s] = self.share(chosen[s]);
            }
            if !moved {
                return Ok(shares);
            }
        }
    }

    /// The next threshold of one source from the loss measured over the last second, all as shares: up by a twentieth
    /// of the buffer when too much is lost, down when less than half of the target.
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
    fn a_search_is_foreseen_to_bisect_the_thresholds_of_each_source_twice() {
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
