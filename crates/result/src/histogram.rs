//! Histogram with bins of equal relative width.

/// Counts of values in bins of 1/128 of the start of an octave, so that quantiles are exact to 0.8 %. Each value below
/// 128 has its own bin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
    sum: u128,
    /// Largest and smallest value; zero and `u64::MAX` for an empty histogram.
    max: u64,
    min: u64,
}

/// Bits that select the bin within an octave.
const WITHIN_BITS: u32 = 7;
const PER_OCTAVE: u64 = 1 << WITHIN_BITS;

impl Default for Histogram {
    fn default() -> Self {
        Histogram { counts: Vec::new(), sum: 0, max: 0, min: u64::MAX }
    }
}

impl Histogram {
    /// Counts one value.
    #[inline(always)]
    pub fn record(&mut self, value: u64) {
        self.add(value, 1);
    }

    /// Counts `value` `times` times.
    pub fn record_many(&mut self, value: u64, times: u64) {
        self.add(value, times);
    }

    #[inline(always)]
    fn add(&mut self, value: u64, times: u64) {
        let bin = bin_of(value);
        match self.counts.get_mut(bin) {
            Some(count) => *count += times,
            None => self.extend(bin, times),
        }
        self.sum += value as u128 * times as u128;
        // Branches: changes are rare and predictable.
        if times > 0 && value > self.max {
            self.max = value;
        }
        if times > 0 && value < self.min {
            self.min = value;
        }
    }

    #[cold]
    fn extend(&mut self, bin: usize, times: u64) {
        self.counts.resize(bin + 1, 0);
        self.counts[bin] = times;
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        self.counts.resize(self.counts.len().max(other.counts.len()), 0);
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.sum += other.sum;
        self.max = self.max.max(other.max);
        self.min = self.min.min(other.min);
    }

    /// Values counted since `before`, an earlier copy; the extremes are those of the bins.
    pub fn since(&self, before: &Histogram) -> Histogram {
        let mut since = Histogram::default();
        for (bin, &count) in self.counts.iter().enumerate() {
            let new = count - before.counts.get(bin).copied().unwrap_or(0);
            if new > 0 {
                since.add(edges(bin).0, new);
            }
        }
        since.sum = self.sum - before.sum;
        since
    }

    /// Number of values.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Smallest value.
    pub fn min(&self) -> Option<u64> {
        (self.total() > 0).then_some(self.min)
    }

    /// Exact mean.
    pub fn mean(&self) -> Option<f64> {
        let total = self.total();
        (total > 0).then(|| self.sum as f64 / total as f64)
    }

    /// Quantile `q`; values are assumed to be spread evenly within a bin, up to the largest value.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let total = self.total();
        if total == 0 {
            return None;
        }
        let rank = q.clamp(0.0, 1.0) * total as f64;
        let mut below = 0.0;
        for (bin, &count) in self.counts.iter().enumerate() {
            let count = count as f64;
            if count > 0.0 && below + count >= rank {
                let (low, high) = edges(bin);
                let inside = ((rank - below) / count).clamp(0.0, 1.0);
                // A bin of a single integer is exact.
                let width = if high - low == 1 { 0.0 } else { (high - low) as f64 };
                return Some((low as f64 + width * inside).min(self.max as f64));
            }
            below += count;
        }
        None
    }

    /// Distribution function: upper edge of each non-empty bin, and the fraction of values up to it.
    pub fn cumulative(&self) -> Vec<(f64, f64)> {
        let (mut below, total) = (0, self.total() as f64);
        let mut points = Vec::new();
        for (bin, &count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            below += count;
            points.push((edges(bin).1 as f64, below as f64 / total));
        }
        points
    }
}

#[inline]
fn bin_of(value: u64) -> usize {
    if value < PER_OCTAVE {
        return value as usize;
    }
    let octave = 63 - value.leading_zeros() - WITHIN_BITS;
    ((octave as u64 + 1) * PER_OCTAVE + (value >> octave) - PER_OCTAVE) as usize
}

/// First value of a bin, and first value past it.
fn edges(bin: usize) -> (u64, u64) {
    let bin = bin as u64;
    if bin < PER_OCTAVE {
        return (bin, bin + 1);
    }
    let octave = bin / PER_OCTAVE - 1;
    let low = (PER_OCTAVE + bin % PER_OCTAVE) << octave;
    (low, low + (1 << octave))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_within_the_edges_of_its_bin() {
        for value in (0..2000).chain([1 << 20, (1 << 20) + 8191, (1 << 40) - 1, 1 << 40, u64::MAX >> 1]) {
            let (low, high) = edges(bin_of(value));
            assert!(low <= value && value < high, "{value}: {low}..{high}");
            assert!(high - low <= 1 + value / 128, "{value}: bin of {}", high - low);
        }
    }

    #[test]
    fn quantiles_are_exact_to_a_bin() {
        let mut histogram = Histogram::default();
        (1..=100_000u64).for_each(|ms| histogram.record(ms * 1_000));
        for (q, expect) in [(0.5, 50_000e3), (0.95, 95_000e3), (0.99, 99_000e3)] {
            let seen = histogram.quantile(q).unwrap();
            assert!((seen / expect - 1.0).abs() < 0.008, "{q}: {seen}");
        }
        assert_eq!(histogram.mean(), Some(50_000.5e3));
        let (mut one_by_one, mut at_once) = (Histogram::default(), Histogram::default());
        (0..3).for_each(|_| one_by_one.record(777));
        at_once.record_many(777, 3);
        assert_eq!(one_by_one, at_once);
        assert_eq!(Histogram::default().quantile(0.5), None);
    }

    #[test]
    fn no_quantile_lies_above_the_greatest_value() {
        // 300 shares its bin with 301: a queue in a buffer of 300 packets is never longer.
        let mut full = Histogram::default();
        full.record_many(300, 1000);
        assert_eq!([0.5, 0.95, 1.0].map(|q| full.quantile(q)), [Some(300.0); 3]);
        let mut both = Histogram::default();
        both.record(10);
        both.merge(&full);
        assert_eq!(both.quantile(0.99), Some(300.0));
    }

    #[test]
    fn merged_parts_count_as_the_whole() {
        let (mut all, mut first, mut second) = (Histogram::default(), Histogram::default(), Histogram::default());
        for value in 0..1000 {
            all.record(value * value);
            if value < 400 { &mut first } else { &mut second }.record(value * value);
        }
        first.merge(&second);
        assert_eq!(all, first);
        assert_eq!(all.cumulative().last().unwrap().1, 1.0);
    }

    #[test]
    fn a_bin_wider_than_one_is_filled_evenly() {
        // From 1024 on bins have width 8: four values in 1024..1032, and four of 1500 in 1496..1504.
        let mut histogram = Histogram::default();
        histogram.record_many(1025, 4);
        histogram.record_many(1500, 4);
        let quantiles = [0.0, 0.125, 0.25, 0.5, 0.625].map(|q| histogram.quantile(q).unwrap());
        assert_eq!(quantiles, [1024.0, 1026.0, 1028.0, 1032.0, 1498.0]);
        assert_eq!(histogram.quantile(1.0), Some(1500.0));
        assert_eq!((histogram.total(), histogram.mean()), (8, Some(1262.5)));
    }

    #[test]
    fn the_distribution_function_steps_at_the_upper_edges_of_the_bins() {
        let mut histogram = Histogram::default();
        [3, 3, 127, 128, 1030].iter().for_each(|&value| histogram.record(value));
        assert_eq!(histogram.cumulative(), [(4.0, 0.4), (128.0, 0.6), (129.0, 0.8), (1032.0, 1.0)]);
        assert_eq!(Histogram::default().cumulative(), []);
    }

    #[test]
    fn zero_counts_have_no_effect() {
        let mut histogram = Histogram::default();
        histogram.record(10);
        histogram.record_many(5000, 0);
        assert_eq!(
            (histogram.quantile(1.0), histogram.total(), histogram.cumulative()),
            (Some(10.0), 1, vec![(11.0, 1.0)])
        );
    }
}
