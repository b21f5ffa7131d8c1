//! A probability that is always in [0, 1].

use core::fmt;

/// A number in [0, 1]: never negative, never above one, never not-a-number.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Probability(f64);

impl Probability {
    /// Never.
    pub const ZERO: Probability = Probability(0.0);
    /// Always.
    pub const ONE: Probability = Probability(1.0);

    /// `value` if it is in [0, 1].
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Probability(value))
    }

    /// The nearest probability to `value`; not-a-number becomes zero.
    pub fn clamp(value: f64) -> Self {
        if value > 1.0 {
            Probability::ONE
        } else if value > 0.0 {
            Probability(value)
        } else {
            Probability::ZERO
        }
    }

    /// The number itself.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probability_is_built_or_clamped_into_its_range() {
        assert_eq!(Probability::new(1.5), None);
        assert_eq!(Probability::new(f64::NAN), None);
        assert_eq!(Probability::clamp(1.5), Probability::ONE);
        assert_eq!(Probability::clamp(-0.1), Probability::ZERO);
        assert_eq!(Probability::clamp(f64::NAN), Probability::ZERO);
        assert_eq!(Probability::clamp(0.25).get(), 0.25);
    }
}
