//! A virtual link: one of several virtual links that share a physical link by a scheduler. The self-tuning paper
//! (section 1) names such links as a reason why a controller cannot assume a constant capacity.
//!
//! Each of n neighbours alternates between busy and idle, for exponentially distributed times. The scheduler serves all
//! busy links equally, as fluid (generalised processor sharing). With k busy neighbours the link has rate / (1 + k).
//!
//! Mean capacity: sum over k of C(n, k) a^k (1 - a)^(n - k) rate / (1 + k), a = mean_on / (mean_on + mean_off).

use aqumen_units::{Rate, Span};

use super::ranges::{lasts, within};
use crate::error::KeyError;
use crate::field::{Name, table};

table! {
    /// A virtual link.
    pub struct SharedLink("a virtual link") {
        /// The model: `shared`.
        pub model: Name,
        /// Rate of the physical link.
        pub rate: Rate,
        /// Number of other virtual links, 0 to 1000.
        pub neighbours: u32 = 1,
        /// Mean busy period of a neighbour.
        pub mean_on: Span = Span::from_secs(1),
        /// Mean idle period of a neighbour.
        pub mean_off: Span = Span::from_secs(1),
    }
}

impl SharedLink {
    /// Rate when `busy` neighbours are busy, bit/s.
    pub fn rate_bps(&self, busy: u32) -> f64 {
        self.rate.as_bps() as f64 / f64::from(1 + busy)
    }

    /// Fraction of time in which a neighbour is busy.
    pub fn activity(&self) -> f64 {
        let (on, off) = (self.mean_on.as_secs_f64(), self.mean_off.as_secs_f64());
        on / (on + off)
    }

    /// Mean capacity of the saturated link, bit/s.
    pub fn mean_bps(&self) -> f64 {
        // With E[1 / (1 + K)] = (1 - (1 - a)^(n + 1)) / ((n + 1) a) the sum needs no binomial coefficients.
        let (a, n) = (self.activity(), f64::from(self.neighbours));
        let of_rate = -libm::expm1((n + 1.0) * libm::log1p(-a)) / ((n + 1.0) * a);
        self.rate.as_bps() as f64 * of_rate
    }

    pub(super) fn check(&self) -> Result<(), KeyError> {
        within("neighbours", f64::from(self.neighbours), 0.0, 1000.0)?;
        lasts("mean_on", self.mean_on)?;
        lasts("mean_off", self.mean_off)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_neighbours_reduce_the_mean_rate() {
        let shared = SharedLink {
            model: Name("shared".into()),
            rate: Rate::from_bps(12_000_000),
            neighbours: 2,
            mean_on: Span::from_secs(1),
            mean_off: Span::from_secs(1),
        };
        assert_eq!([0, 1, 2].map(|busy| shared.rate_bps(busy)), [12e6, 6e6, 4e6]);
        // 0, 1, 2 busy in 1/4, 1/2, 1/4 of the time: 3 + 3 + 1 Mbit/s.
        assert!((shared.mean_bps() - 7e6).abs() < 1e-3, "{}", shared.mean_bps());
    }
}
