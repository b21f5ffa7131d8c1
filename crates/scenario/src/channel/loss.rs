//! Losses on the wire: random losses, bit errors, loss bursts.

use aqumen_units::Span;
use serde_json::json;

use crate::error::KeyError;
use crate::field::{Cursor, Field, ValueError, all_defaults, table};
use crate::tree::Value;

table! {
    /// Losses on the wire, after the queue. The causes are independent of each other.
    pub struct Loss("losses on the wire") {
        /// Probability that a packet is lost.
        pub random: Probability = Probability(0.0),
        /// Probability that a bit is wrong. A packet with a wrong bit is lost, so that long packets are lost more
        /// often.
        pub bit_errors: Probability = Probability(0.0),
        /// Loss bursts.
        pub burst: Option<Burst>,
    }
}

table! {
    /// The Gilbert-Elliott model: a good and a bad state, each with its probability of loss. The state moves from
    /// packet to packet (`to_bad`, `to_good`) or with time (`mean_good`, `mean_bad`).
    pub struct Burst("a Gilbert-Elliott model") {
        /// Probability that a packet is lost in the good state.
        pub good: Probability = Probability(0.0),
        /// Probability that a packet is lost in the bad state.
        pub bad: Probability = Probability(1.0),
        /// Probability that the bad state follows the good one at the next packet.
        pub to_bad: Option<Probability>,
        /// Probability that the good state follows the bad one at the next packet.
        pub to_good: Option<Probability>,
        /// Mean duration of the good state, exponentially distributed.
        pub mean_good: Option<Span>,
        /// Mean duration of the bad state, exponentially distributed.
        pub mean_bad: Option<Span>,
    }
}

/// Losses as written: a table, or the probability of `random` alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Losses(pub Loss);

/// A probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probability(pub f64);

impl Default for Loss {
    fn default() -> Self {
        all_defaults()
    }
}

impl Loss {
    /// Whether no packet is ever lost.
    pub fn is_none(&self) -> bool {
        *self == Loss::default()
    }

    /// Long-run fraction of packets of `bytes` that are lost.
    pub fn mean(&self, bytes: u32) -> f64 {
        let burst = self.burst.as_ref().map_or(0.0, Burst::mean);
        1.0 - (1.0 - self.random.0) * (1.0 - self.bit_error_loss(bytes)) * (1.0 - burst)
    }

    /// Probability that bit errors corrupt a packet of `bytes`: 1 - (1 - ber)^(8 bytes).
    pub fn bit_error_loss(&self, bytes: u32) -> f64 {
        -libm::expm1(8.0 * f64::from(bytes) * libm::log1p(-self.bit_errors.0))
    }

    pub(crate) fn check(&self) -> Result<(), KeyError> {
        let Some(burst) = &self.burst else { return Ok(()) };
        match (burst.to_bad, burst.to_good, burst.mean_good, burst.mean_bad) {
            (Some(_), Some(to_good), None, None) if to_good.0 > 0.0 => Ok(()),
            (Some(_), Some(_), None, None) => Err(("burst.to_good", "must be above 0, at most 1".into())),
            (None, None, Some(good), Some(bad)) if good > Span::ZERO && bad > Span::ZERO => Ok(()),
            (None, None, Some(_), Some(_)) => Err(("burst", "mean_good and mean_bad must be above 0s".into())),
            _ => Err(("burst", "needs either to_bad and to_good, or mean_good and mean_bad".into())),
        }
    }
}

impl Burst {
    /// Fraction of packets (or of time) in the bad state.
    pub fn bad_fraction(&self) -> f64 {
        match (self.to_bad, self.to_good, self.mean_good, self.mean_bad) {
            (Some(to_bad), Some(to_good), _, _) => to_bad.0 / (to_bad.0 + to_good.0),
            (_, _, Some(good), Some(bad)) => bad.as_secs_f64() / (good.as_secs_f64() + bad.as_secs_f64()),
            _ => 0.0,
        }
    }

    /// Long-run fraction of packets that are lost.
    pub fn mean(&self) -> f64 {
        let bad = self.bad_fraction();
        (1.0 - bad) * self.good.0 + bad * self.bad.0
    }
}

impl Field for Losses {
    const WHAT: &'static str = "a probability, such as 0.01, or a table of random, bit_errors and burst";

    fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
        match &at.node.value {
            Value::Table(_) => Loss::read(at).map(Losses),
            _ => Ok(Losses(Loss { random: Probability::read(at)?, ..Loss::default() })),
        }
    }

    fn write(&self) -> Option<toml::Value> {
        if self.0 == (Loss { random: self.0.random, ..Loss::default() }) {
            self.0.random.write()
        } else {
            self.0.write()
        }
    }

    fn schema() -> serde_json::Value {
        json!({"anyOf": [Probability::schema(), Loss::schema()]})
    }
}

impl Field for Probability {
    const WHAT: &'static str = "a probability, such as 0.01";

    fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
        match f64::read(at) {
            Ok(chance) if (0.0..=1.0).contains(&chance) => Ok(Probability(chance)),
            _ => Err(at.error("must be a probability, 0 to 1")),
        }
    }

    fn write(&self) -> Option<toml::Value> {
        self.0.write()
    }

    fn schema() -> serde_json::Value {
        json!({"type": "number", "minimum": 0, "maximum": 1})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bit_errors_corrupt_long_packets_more_often() {
        let loss = Loss { bit_errors: Probability(1e-5), ..Loss::default() };
        // 1 - (1 - 1e-5)^12000 = 1 - exp(12000 ln(0.99999)) = 1 - exp(-0.12000060) = 0.1130800; 320 bits: 0.0031949.
        assert!((loss.mean(1500) - 0.113_080).abs() < 1e-6, "{}", loss.mean(1500));
        assert!((loss.mean(40) - 0.003_194_9).abs() < 1e-7, "{}", loss.mean(40));
    }

    #[test]
    fn independent_causes_of_loss_add_up_as_probabilities() {
        // Bad 1/11 of the time: 0.5 / 11 are lost there. With 1 % at random: 1 - 0.99 (1 - 1/22) = 0.055.
        let burst = Burst {
            bad: Probability(0.5),
            to_bad: Some(Probability(0.01)),
            to_good: Some(Probability(0.1)),
            ..all_defaults()
        };
        let loss = Loss { random: Probability(0.01), burst: Some(burst), ..Loss::default() };
        assert!((loss.mean(1000) - 0.055).abs() < 1e-15);
    }

    #[test]
    fn bursts_by_mean_times_lose_the_bad_fraction_and_need_both_times() {
        let times = |good, bad| Burst {
            good: Probability(0.1),
            bad: Probability(0.9),
            mean_good: Some(Span::from_secs(good)),
            mean_bad: Some(Span::from_secs(bad)),
            ..all_defaults()
        };
        // Bad for 1 s of 4: 0.75 * 0.1 + 0.25 * 0.9.
        assert_eq!(times(3, 1).bad_fraction(), 0.25);
        assert!((times(3, 1).mean() - 0.3).abs() < 1e-12);
        let check = |burst| Loss { burst: Some(burst), ..Loss::default() }.check().err().map(|(key, _)| key);
        assert_eq!((check(times(3, 1)), check(times(0, 1)), check(times(3, 0))), (None, Some("burst"), Some("burst")));
        let steps = |to_bad, to_good| Burst { to_bad, to_good, ..all_defaults() };
        assert_eq!(check(steps(Some(Probability(0.0)), Some(Probability(1.0)))), None);
        assert_eq!(check(steps(Some(Probability(0.1)), Some(Probability(0.0)))), Some("burst.to_good"));
        assert_eq!(check(steps(Some(Probability(0.1)), None)), Some("burst"));
        assert_eq!(
            (Loss::default().is_none(), Loss { random: Probability(0.1), ..Loss::default() }.is_none()),
            (true, false)
        );
    }
}
