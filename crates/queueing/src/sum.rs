//! Sums that lose nothing to rounding (Neumaier): measures add up to a million probabilities.

/// A running sum with the part that rounding cut off kept beside it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    sum: f64,
    lost: f64,
}

impl Sum {
    #[inline]
    pub(crate) fn add(&mut self, x: f64) {
        let sum = self.sum + x;
        self.lost += if self.sum.abs() >= x.abs() { (self.sum - sum) + x } else { (x - sum) + self.sum };
        self.sum = sum;
    }

    pub(crate) fn value(&self) -> f64 {
        self.sum + self.lost
    }
}

/// The sum of `terms`.
pub(crate) fn sum(terms: impl IntoIterator<Item = f64>) -> f64 {
    let mut sum = Sum::default();
    terms.into_iter().for_each(|x| sum.add(x));
    sum.value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_terms_outlive_large_ones_that_cancel() {
        for terms in [[1.0, 1e100, 1.0, -1e100], [1e100, 1.0, -1e100, 1.0], [1.0, 1e100, -1e100, 1.0]] {
            assert_eq!(sum(terms), 2.0, "{terms:?}");
        }
        assert_eq!(sum([1e100, -3.0, -1e100, 1.0]), -2.0);
        assert_eq!(sum((0..10).map(|_| 0.1)), 1.0);
        assert_eq!(sum([]), 0.0);
    }
}
