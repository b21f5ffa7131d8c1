//! Exponentially weighted ratio of two sums, such as bits over seconds.

/// Two sums that decay with a time constant, and their ratio.
#[derive(Clone, Copy, Debug)]
pub(super) struct DecayedRatio {
    time_constant_s: f64,
    /// Decayed sum of the numerator (bits).
    pub(super) numerator: f64,
    /// Decayed sum of the denominator (seconds).
    pub(super) denominator: f64,
}

impl DecayedRatio {
    pub(super) fn new(time_constant_s: f64) -> Self {
        DecayedRatio { time_constant_s, numerator: 0.0, denominator: 0.0 }
    }

    /// Decays both sums over `time_s`, then adds.
    pub(super) fn add(&mut self, time_s: f64, numerator: f64, denominator: f64) {
        let decay = (-time_s / self.time_constant_s).exp();
        self.numerator = self.numerator * decay + numerator;
        self.denominator = self.denominator * decay + denominator;
    }

    pub(super) fn value(&self) -> f64 {
        self.numerator / self.denominator
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_decay_by_e_within_a_time_constant() {
        let mut ratio = DecayedRatio::new(0.5);
        ratio.add(7.0, 20.0, 5.0);
        assert_eq!((ratio.numerator, ratio.denominator, ratio.value()), (20.0, 5.0, 4.0));
        // Half a second later: 20 / e and 10, 5 / e and 1.
        ratio.add(0.5, 10.0, 1.0);
        let e = std::f64::consts::E;
        assert!((ratio.numerator - (20.0 / e + 10.0)).abs() < 1e-12, "{ratio:?}");
        assert!((ratio.denominator - (5.0 / e + 1.0)).abs() < 1e-12, "{ratio:?}");
    }
}
