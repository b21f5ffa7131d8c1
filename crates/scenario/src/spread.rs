//! A time that varies over the flows: constant, uniform in a range, from a distribution, or listed.
//!
//! Each flow consumes one uniform number whatever the kind, so that a change of kind in one place does not change the
//! draws in another. Truncated distributions are drawn by inversion.

use aqumen_units::Span;
use serde_json::json;

use crate::field::{Cursor, Field, Name, ValueError, table};
use crate::tree::Value;
use crate::units::show_span;

/// A time for each flow of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    /// Least value.
    pub low: Span,
    /// Largest value; equal to `low` for a constant.
    pub high: Span,
    /// Law between them.
    pub shape: Shape,
}

/// Law of a [`Spread`] between its bounds.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Uniform.
    Uniform,
    /// Normal, truncated at the bounds.
    Normal(Normal),
    /// Exponential, truncated at the bounds.
    Exponential(Exponential),
    /// Listed: the flows are divided into as many blocks as there are values.
    List(List),
}

table! {
    /// A normal distribution.
    pub struct Normal("a normal distribution") {
        /// The law: `normal`.
        pub law: Name,
        /// Mean before truncation.
        pub mean: Span,
        /// Standard deviation before truncation.
        pub std: Span,
        /// Lower bound; four standard deviations below the mean if absent, at least 0s.
        pub min: Option<Span>,
        /// Upper bound; four standard deviations above the mean if absent.
        pub max: Option<Span>,
    }
}

table! {
    /// An exponential distribution.
    pub struct Exponential("an exponential distribution") {
        /// The law: `exponential`.
        pub law: Name,
        /// Mean before truncation.
        pub mean: Span,
        /// Lower bound.
        pub min: Span = Span::ZERO,
        /// Upper bound; `min` plus ten times the mean if absent.
        pub max: Option<Span>,
    }
}

table! {
    /// Listed values.
    pub struct List("a list of times") {
        /// Values: one for each flow, or one for each of equal blocks of the group.
        pub list: Vec<Span>,
    }
}

/// Default bounds of a normal distribution, standard deviations from its mean.
const NORMAL_REACH: u64 = 4;

/// Default upper bound of an exponential distribution, above `min`, in means.
const EXPONENTIAL_REACH: u64 = 10;

impl Spread {
    /// A constant.
    pub const fn fixed(value: Span) -> Self {
        Spread { low: value, high: value, shape: Shape::Uniform }
    }

    /// The expected value, seconds.
    pub(crate) fn mean_s(&self) -> f64 {
        let (low, high) = (self.low.as_nanos() as f64, self.high.as_nanos() as f64);
        match &self.shape {
            Shape::Uniform => (low + high) / 2e9,
            Shape::Normal(given) => {
                let (mean, sd) = given.mean_and_sd();
                let (a, b) = ((low - mean) / sd, (high - mean) / sd);
                let share = normal_below(b) - normal_below(a);
                if share < 1e-9 {
                    return (low + high) / 2e9;
                }
                // The mean of a truncated normal: mu + sigma (phi(a) - phi(b)) / (Phi(b) - Phi(a)).
                let density = |z: f64| libm::exp(-0.5 * z * z) / libm::sqrt(2.0 * std::f64::consts::PI);
                (mean + sd * (density(a) - density(b)) / share) / 1e9
            }
            Shape::Exponential(given) => {
                // Memoryless: beyond `low` the law is the same, truncated at the width.
                let (mean, width) = (given.mean.as_nanos() as f64, high - low);
                (low + mean - width / libm::expm1(width / mean)) / 1e9
            }
            Shape::List(given) => {
                given.list.iter().map(|value| value.as_nanos() as f64).sum::<f64>() / given.list.len() as f64 / 1e9
            }
        }
    }

    /// Value of flow or host `number` of `count`, for a uniform number in [0, 1).
    pub(crate) fn value(&self, uniform: f64, number: u32, count: u32) -> Span {
        let (low, high) = (self.low.as_nanos() as f64, self.high.as_nanos() as f64);
        let nanos = match &self.shape {
            Shape::Uniform => low + (high - low) * uniform,
            Shape::Normal(given) => {
                let (mean, sd) = given.mean_and_sd();
                let (mut below, mut above) = ((low - mean) / sd, (high - mean) / sd);
                let share = normal_below(below) + uniform * (normal_below(above) - normal_below(below));
                // Bisection to full precision: at most the 53 bits of the fraction.
                for _ in 0..53 {
                    let middle = 0.5 * (below + above);
                    if normal_below(middle) < share {
                        below = middle;
                    } else {
                        above = middle;
                    }
                }
                (mean + sd * above).clamp(low, high)
            }
            Shape::Exponential(given) => {
                let mean = given.mean.as_nanos() as f64;
                let cut = libm::expm1(-(high - low) / mean);
                (low - mean * libm::log1p(uniform * cut)).clamp(low, high)
            }
            Shape::List(given) => {
                return given.list[(u64::from(number) * given.list.len() as u64 / u64::from(count)) as usize];
            }
        };
        Span::from_nanos((nanos + 0.5) as u64)
    }

    /// Message if the list cannot be divided evenly among `count` of `what` (flows, hosts).
    pub(crate) fn count_error(&self, count: u32, what: &str) -> Option<String> {
        match &self.shape {
            Shape::List(given) if !u64::from(count).is_multiple_of(given.list.len() as u64) => {
                let listed = given.list.len();
                let key = if what == "flows" { "the count" } else { what };
                Some(format!("lists {listed} values for {count} {what}; {key} must be a multiple of {listed}"))
            }
            _ => None,
        }
    }
}

/// Standard normal distribution function.
fn normal_below(z: f64) -> f64 {
    0.5 * libm::erfc(-z * std::f64::consts::FRAC_1_SQRT_2)
}

impl Normal {
    /// In nanoseconds.
    fn mean_and_sd(&self) -> (f64, f64) {
        (self.mean.as_nanos() as f64, self.std.as_nanos() as f64)
    }

    fn spread(self, at: &Cursor<'_>) -> Result<Spread, ValueError> {
        let (mean, sd) = (self.mean, self.std);
        if sd == Span::ZERO {
            return Err(at.error("std must be above 0s; for one value write it alone"));
        }
        let reach = sd * NORMAL_REACH;
        let low = self.min.unwrap_or(mean.saturating_sub(reach));
        let high = self.max.unwrap_or(mean + reach);
        let (lowest, highest) = (mean.saturating_sub(reach), mean + reach);
        if low >= high || low >= highest || high <= lowest {
            let (lowest, highest) = (show_span(lowest), show_span(highest));
            return Err(at.error(format!(
                "min must be below max, and between them a part of {lowest} to {highest}, four std about the mean"
            )));
        }
        Ok(Spread { low: low.max(lowest), high: high.min(highest), shape: Shape::Normal(self) })
    }
}

impl Exponential {
    fn spread(self, at: &Cursor<'_>) -> Result<Spread, ValueError> {
        if self.mean == Span::ZERO {
            return Err(at.error("mean must be above 0s"));
        }
        let (low, high) = (self.min, self.max.unwrap_or(self.min + self.mean * EXPONENTIAL_REACH));
        if low >= high {
            return Err(at.error("min must be below max"));
        }
        Ok(Spread { low, high, shape: Shape::Exponential(self) })
    }
}

impl List {
    fn spread(self, at: &Cursor<'_>) -> Result<Spread, ValueError> {
        let (Some(low), Some(high)) = (self.list.iter().min(), self.list.iter().max()) else {
            return Err(at.error("list must have at least one time"));
        };
        Ok(Spread { low: *low, high: *high, shape: Shape::List(self) })
    }
}

impl Field for Spread {
    const WHAT: &'static str = "a time, such as \"40ms\", or a range, such as [\"35ms\", \"45ms\"]";
    fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
        match &at.node.value {
            Value::List(_) => {
                let ends = Vec::<Span>::read(at)?;
                match ends[..] {
                    [low, high] if low <= high => Ok(Spread { low, high, shape: Shape::Uniform }),
                    [_, _] => Err(at.error("the lower end of the range must come first")),
                    _ => Err(at.error(
                        "a range has two ends, such as [\"35ms\", \"45ms\"]; values one by one are { list = [...] }",
                    )),
                }
            }
            Value::Table(_) if at.node.get("list").is_some() => List::read(at)?.spread(at),
            Value::Table(_) => match (at.field::<Name>("law", None)?.0.as_str(), at.node.get("law")) {
                ("normal", _) => Normal::read(at)?.spread(at),
                ("exponential", _) => Exponential::read(at)?.spread(at),
                (_, node) => {
                    Err(at.below("law", node.unwrap_or(at.node)).error("no such law; known: normal, exponential"))
                }
            },
            _ => Span::read(at).map(Spread::fixed),
        }
    }
    fn write(&self) -> Option<toml::Value> {
        match &self.shape {
            Shape::Uniform if self.low == self.high => self.low.write(),
            Shape::Uniform => vec![self.low, self.high].write(),
            Shape::Normal(given) => given.write(),
            Shape::Exponential(given) => given.write(),
            Shape::List(given) => given.write(),
        }
    }
    fn schema() -> serde_json::Value {
        let range = json!({"type": "array", "items": Span::schema(), "minItems": 2, "maxItems": 2});
        let (mut normal, mut exponential) = (Normal::schema(), Exponential::schema());
        normal["properties"]["law"]["const"] = "normal".into();
        exponential["properties"]["law"]["const"] = "exponential".into();
        let mut list = List::schema();
        list["required"] = json!(["list"]);
        list["properties"]["list"]["minItems"] = 1.into();
        json!({"anyOf": [Span::schema(), range, normal, exponential, list]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(value: u64) -> Span {
        Span::from_millis(value)
    }

    fn normal() -> Normal {
        Normal { law: Name("normal".into()), mean: ms(100), std: ms(10), min: None, max: None }
    }

    /// The mean over evenly spaced uniform numbers, seconds.
    fn sampled(spread: &Spread) -> f64 {
        let n = 10_000;
        (0..n).map(|i| spread.value((f64::from(i) + 0.5) / f64::from(n), 0, 1).as_secs_f64()).sum::<f64>()
            / f64::from(n)
    }

    #[test]
    fn quantiles_of_the_normal_distribution_are_where_tables_have_them() {
        let shape = Shape::Normal(normal());
        let spread = Spread { low: ms(60), high: ms(140), shape };
        // Truncation at four standard deviations moves a quantile by less than 1e-4 of one.
        for (share, z) in [(0.5, 0.0), (0.8413, 1.0), (0.975, 1.96), (0.00135, -3.0)] {
            let value = spread.value(share, 0, 1).as_secs_f64();
            assert!((value - (0.1 + 0.01 * z)).abs() < 1e-4, "{share}: {value}");
        }
        assert_eq!(spread.value(0.0, 0, 1), ms(60));
    }

    #[test]
    fn the_expected_value_is_the_mean_of_the_draws() {
        let exponential =
            |max| Exponential { law: Name("exponential".into()), mean: ms(40), min: ms(10), max: Some(max) };
        for spread in [
            Spread { low: ms(10), high: ms(30), shape: Shape::Uniform },
            // Truncated on one side only: half a normal has mean mu + 0.798 sigma.
            Spread { low: ms(100), high: ms(140), shape: Shape::Normal(normal()) },
            Spread { low: ms(10), high: ms(50), shape: Shape::Exponential(exponential(ms(50))) },
            Spread { low: ms(10), high: ms(500), shape: Shape::Exponential(exponential(ms(500))) },
        ] {
            let (expected, sampled) = (spread.mean_s(), sampled(&spread));
            assert!((expected - sampled).abs() < 2e-5, "{spread:?}: {expected}, {sampled}");
        }
    }

    #[test]
    fn a_list_is_assigned_in_blocks() {
        let spread = Spread { low: ms(1), high: ms(3), shape: Shape::List(List { list: vec![ms(1), ms(3), ms(2)] }) };
        let values: Vec<Span> = (0..6).map(|number| spread.value(0.9, number, 6)).collect();
        assert_eq!(values, [1, 1, 3, 3, 2, 2].map(ms));
        assert!((spread.mean_s() - 0.002).abs() < 1e-12);
        assert!(spread.count_error(6, "flows").is_none() && spread.count_error(4, "flows").is_some());
    }

    #[test]
    fn expected_values_are_those_of_their_formulas() {
        // A list: its mean. A normal between its mean and one standard deviation, where tables have phi(0) = 0.398942,
        // phi(1) = 0.241971 and Phi(1) - Phi(0) = 0.341345: 100 + 10 * 0.156971 / 0.341345.
        let list = Shape::List(List { list: vec![ms(10), ms(20), ms(60)] });
        assert!((Spread { low: ms(10), high: ms(60), shape: list }.mean_s() - 0.03).abs() < 1e-12);
        let cut = Spread { low: ms(100), high: ms(110), shape: Shape::Normal(normal()) };
        assert!((cut.mean_s() - 0.104_598_6).abs() < 1e-6, "{}", cut.mean_s());
        // Far in the tail no probability is left: the middle of the range.
        let far = Spread { low: ms(300), high: ms(310), shape: Shape::Normal(normal()) };
        assert!((far.mean_s() - 0.305).abs() < 1e-12);
    }
}
