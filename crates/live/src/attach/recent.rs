//! Means of what is recent: of one sum over another, the past counts less and less.

/// Two sums that forget: what lies `memory_s` back counts e times less.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recent {
    memory_s: f64,
    /// What is asked for, such as bits.
    pub(super) what: f64,
    /// In so much, such as seconds.
    pub(super) within: f64,
}

impl Recent {
    /// Nothing yet.
    pub(super) fn new(memory_s: f64) -> Self {
        Recent { memory_s, what: 0.0, within: 0.0 }
    }

    /// So much more, after `time_s`.
    pub(super) fn add(&mut self, time_s: f64, what: f64, within: f64) {
        let kept = (-time_s / self.memory_s).exp();
        self.what = self.what * kept + what;
        self.within = self.within * kept + within;
    }

    /// The one over the other.
    pub(super) fn mean(&self) -> f64 {
        self.what / self.within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_a_memory_back_counts_e_times_less() {
        let mut recent = Recent::new(0.5);
        recent.add(7.0, 20.0, 5.0);
        assert_eq!((recent.what, recent.within, recent.mean()), (20.0, 5.0, 4.0));
        // Half a second later: 20 / e and 10, 5 / e and 1.
        recent.add(0.5, 10.0, 1.0);
        let e = std::f64::consts::E;
        assert!((recent.what - (20.0 / e + 10.0)).abs() < 1e-12, "{recent:?}");
        assert!((recent.within - (5.0 / e + 1.0)).abs() < 1e-12, "{recent:?}");
    }
}
