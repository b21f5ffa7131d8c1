//! Compensated summation (Neumaier): measures are sums of up to a million probabilities.

/// Running sum with its accumulated rounding error.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CompensatedSum {
    sum: f64,
    correction: f64,
}

impl CompensatedSum {
    #[inline]
    pub(crate) fn add(&mut self, x: f64) {
        let sum = self.sum + x;
        self.correction += if self.sum.abs() >= x.abs() { (self.sum - sum) + x } else { (x - sum) + self.sum };
        self.sum = sum;
    }

    pub(crate) fn value(&self) -> f64 {
        self.sum + self.correction
    }
}

/// Compensated sum of `terms`.
pub(crate) fn sum(terms: impl IntoIterator<Item = f64>) -> f64 {
    let mut sum = CompensatedSum::default();
    terms.into_iter().for_each(|x| sum.add(x));
    sum.value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_terms_are_kept_when_large_ones_cancel() {
        for terms in [[1.0, 1e100, 1.0, -1e100], [1e100, 1.0, -1e100, 1.0], [1.0, 1e100, -1e100, 1.0]] {
            assert_eq!(sum(terms), 2.0, "{terms:?}");
        }
        assert_eq!(sum([1e100, -3.0, -1e100, 1.0]), -2.0);
        assert_eq!(sum((0..10).map(|_| 0.1)), 1.0);
        assert_eq!(sum([]), 0.0);
    }
}
