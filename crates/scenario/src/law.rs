//! Probability laws of the traffic sources: sizes, times, counts.
//!
//! A law is stored in base units (bytes, nanoseconds, or a count). This module reads, checks and writes laws and
//! computes their means, which determine the offered load; `crates/traffic` draws from them.

use std::sync::Arc;

use aqumen_units::{Bytes, Span};
use serde_json::json;

use crate::error::suggestion;
use crate::field::{Cursor, Field, ValueError};
use crate::tree::{Node, Value};
use crate::units::{self, Quantity};

/// A probability law on positive numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum Law {
    /// A constant.
    Fixed(f64),
    /// Uniform between two bounds.
    Uniform {
        /// Lower bound.
        min: f64,
        /// Upper bound.
        max: f64,
    },
    /// P(X > x) = exp(-x / mean).
    Exponential {
        /// The mean.
        mean: f64,
    },
    /// Erlang: a sum of exponential stages.
    Erlang {
        /// The mean.
        mean: f64,
        /// Number of equal stages: 1 is exponential, many are nearly constant.
        stages: u32,
    },
    /// P(X > x) = (least / x)^shape for x >= least; with `max`, the same law conditioned on X <= `max`.
    Pareto {
        /// The mean, with the bound.
        mean: f64,
        /// Tail index alpha: the tail falls as x^-alpha. Above 1, unless there is a bound.
        shape: f64,
        /// Upper bound.
        max: Option<f64>,
    },
    /// Lognormal; values outside the bounds are drawn again.
    Lognormal {
        /// Mean without bounds.
        mean: f64,
        /// Standard deviation without bounds.
        std: f64,
        /// The lower bound.
        min: f64,
        /// The upper bound.
        max: Option<f64>,
    },
    /// A piecewise linear cumulative distribution.
    Empirical {
        /// File of the points, if they are not in the scenario.
        file: Option<String>,
        /// Value and its cumulative probability, both ascending; the last probability is 1.
        points: Arc<[(f64, f64)]>,
    },
}

/// Names of the laws with a table.
const LAWS: [&str; 6] = ["uniform", "exponential", "erlang", "pareto", "lognormal", "empirical"];

/// Most points of an empirical law.
pub(crate) const POINTS_MAX: usize = 100_000;

/// Most stages of an Erlang law; each costs a draw.
const STAGES_MAX: u32 = 1000;

/// Least probability between the bounds of a lognormal law, which is drawn by rejection.
const PROBABILITY_MIN: f64 = 0.01;

impl Law {
    /// The mean.
    pub fn mean(&self) -> f64 {
        match self {
            Law::Fixed(value) => *value,
            Law::Uniform { min, max } => (min + max) / 2.0,
            Law::Exponential { mean } | Law::Erlang { mean, .. } | Law::Pareto { mean, .. } => *mean,
            Law::Lognormal { mean, min, max, .. } => {
                // E[X; a < X <= b] = mean (Phi(b' - sigma) - Phi(a' - sigma)), with a' and b' the bounds in standard
                // units.
                let (mu, sigma) = self.normal().unwrap_or((0.0, 1.0));
                let standard = |x: f64| if x > 0.0 { (libm::log(x) - mu) / sigma } else { f64::NEG_INFINITY };
                let (low, high) = (standard(*min), max.map_or(f64::INFINITY, standard));
                mean * (normal_cdf(high - sigma) - normal_cdf(low - sigma)) / (normal_cdf(high) - normal_cdf(low))
            }
            Law::Empirical { points, .. } => {
                segments(points).map(|(low, high, share)| share * (low + high) / 2.0).sum()
            }
        }
    }

    /// Mean and standard deviation of the logarithm of a lognormal law.
    pub fn normal(&self) -> Option<(f64, f64)> {
        let Law::Lognormal { mean, std, .. } = self else { return None };
        let variance = libm::log1p((std / mean) * (std / mean));
        Some((libm::log(*mean) - variance / 2.0, libm::sqrt(variance)))
    }

    /// Returns the least value of a Pareto law, from its mean.
    pub fn least(&self) -> Option<f64> {
        let Law::Pareto { mean, shape, max } = self else { return None };
        let Some(max) = max else { return Some(mean * (shape - 1.0) / shape) };
        // The mean of the bounded law increases with its least value, from 0 to `max`.
        let (mut low, mut high) = (0.0, *mean);
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            // The bounds are adjacent numbers.
            if middle <= low || middle >= high {
                break;
            }
            if bounded_mean(middle, *max, *shape) < *mean {
                low = middle;
            } else {
                high = middle;
            }
        }
        Some(high)
    }

    fn check(&self) -> Result<(), (&'static str, String)> {
        match *self {
            Law::Uniform { min, max } if min > max => Err(("max", "must be at least min".into())),
            Law::Exponential { mean }
            | Law::Erlang { mean, .. }
            | Law::Pareto { mean, .. }
            | Law::Lognormal { mean, .. }
                if mean <= 0.0 =>
            {
                Err(("mean", "must be above 0".into()))
            }
            Law::Erlang { stages, .. } if !(1..=STAGES_MAX).contains(&stages) => {
                Err(("stages", format!("must be 1 to {STAGES_MAX}")))
            }
            Law::Pareto { shape, max, .. } if shape <= if max.is_some() { 0.0 } else { 1.0 } || shape > 100.0 => {
                Err(("shape", "must be above 1, at most 100; with a max above 0: then there is a mean".into()))
            }
            Law::Pareto { mean, max: Some(max), .. } if max <= mean => Err(("max", "must be above the mean".into())),
            Law::Lognormal { std, .. } if std <= 0.0 => Err(("std", "must be above 0".into())),
            Law::Lognormal { mean, std, .. } if std > 1e3 * mean => Err(("std", "must be at most 1000 means".into())),
            Law::Lognormal { min, max: Some(max), .. } if max <= min => Err(("max", "must be above min".into())),
            Law::Lognormal { min, max, .. } => {
                let (mu, sigma) = self.normal().unwrap_or((0.0, 1.0));
                let below = |x: f64| if x > 0.0 { normal_cdf((libm::log(x) - mu) / sigma) } else { 0.0 };
                if max.map_or(1.0, below) - below(min) < PROBABILITY_MIN {
                    return Err(("", "the bounds must leave at least 1 % of the law".into()));
                }
                Ok(())
            }
            Law::Empirical { file: None, ref points } => {
                check_points(points).map_err(|(i, message)| ("cdf", format!("point {}: {message}", i + 1)))
            }
            _ => Ok(()),
        }
    }

    fn read(at: &Cursor<'_>, quantity: &LawQuantity) -> Result<Law, ValueError> {
        if !matches!(at.node.value, Value::Table(_)) {
            return quantity.value(at).map(Law::Fixed);
        }
        let name: String = at.field("law", None)?;
        let value = |key: &str| -> Result<Option<f64>, ValueError> {
            at.node.get(key).map(|node| quantity.value(&at.below(key, node))).transpose()
        };
        let needed = |key: &str| -> Result<f64, ValueError> {
            value(key)?.ok_or_else(|| {
                let mut error = at.below(key, at.node).error(format!("missing; it must be {}", quantity.what));
                error.value = None;
                error
            })
        };
        let law = match name.as_str() {
            "uniform" => {
                at.only(&["law", "min", "max"])?;
                Law::Uniform { min: needed("min")?, max: needed("max")? }
            }
            "exponential" => {
                at.only(&["law", "mean"])?;
                Law::Exponential { mean: needed("mean")? }
            }
            "erlang" => {
                at.only(&["law", "mean", "stages"])?;
                Law::Erlang { mean: needed("mean")?, stages: at.field("stages", None)? }
            }
            "pareto" => {
                at.only(&["law", "mean", "shape", "max"])?;
                Law::Pareto { mean: needed("mean")?, shape: at.field("shape", None)?, max: value("max")? }
            }
            "lognormal" => {
                at.only(&["law", "mean", "std", "min", "max"])?;
                Law::Lognormal {
                    mean: needed("mean")?,
                    std: needed("std")?,
                    min: value("min")?.unwrap_or(0.0),
                    max: value("max")?,
                }
            }
            "empirical" => {
                at.only(&["law", "cdf", "file"])?;
                match (at.node.get("cdf"), at.node.get("file")) {
                    (Some(node), None) => {
                        Law::Empirical { file: None, points: points(&at.below("cdf", node), quantity)?.into() }
                    }
                    (None, Some(node)) => {
                        let file = Some(String::read(&at.below("file", node))?);
                        Law::Empirical { file, points: Arc::new([]) }
                    }
                    _ => return Err(at.error("must have one of cdf and file")),
                }
            }
            other => {
                let node = at.node.get("law").unwrap_or(at.node);
                return Err(at.below("law", node).error(format!("no such law{}", suggestion(other, LAWS))));
            }
        };
        law.check().map_err(|(key, message)| match at.node.get(key) {
            Some(node) => at.below(key, node).error(message),
            None => at.error(message),
        })?;
        Ok(law)
    }

    fn write(&self, quantity: &LawQuantity) -> toml::Value {
        let show = |x: f64| quantity.show(x);
        let mut table = toml::Table::new();
        let mut put = |key: &str, value: toml::Value| drop(table.insert(key.into(), value));
        match self {
            Law::Fixed(value) => return show(*value),
            Law::Uniform { min, max } => {
                put("law", "uniform".into());
                put("min", show(*min));
                put("max", show(*max));
            }
            Law::Exponential { mean } => {
                put("law", "exponential".into());
                put("mean", show(*mean));
            }
            Law::Erlang { mean, stages } => {
                put("law", "erlang".into());
                put("mean", show(*mean));
                put("stages", i64::from(*stages).into());
            }
            Law::Pareto { mean, shape, max } => {
                put("law", "pareto".into());
                put("mean", show(*mean));
                put("shape", (*shape).into());
                max.iter().for_each(|max| put("max", show(*max)));
            }
            Law::Lognormal { mean, std, min, max } => {
                put("law", "lognormal".into());
                put("mean", show(*mean));
                put("std", show(*std));
                if *min > 0.0 {
                    put("min", show(*min));
                }
                max.iter().for_each(|max| put("max", show(*max)));
            }
            Law::Empirical { file, points } => {
                put("law", "empirical".into());
                match file {
                    Some(file) => put("file", file.clone().into()),
                    None => {
                        let points = points.iter().map(|&(value, share)| vec![show(value), share.into()].into());
                        put("cdf", toml::Value::Array(points.collect()));
                    }
                }
            }
        }
        toml::Value::Table(table)
    }
}

/// Mean of the Pareto law of `shape` on `least` to `max`.
fn bounded_mean(least: f64, max: f64, shape: f64) -> f64 {
    if least <= 0.0 {
        return 0.0;
    }
    if least >= max {
        return max;
    }
    let ratio = libm::log(max / least);
    let whole = -libm::expm1(-shape * ratio);
    // shape / (shape - 1) (1 - (max / least)^(1 - shape)), which is the logarithm of the ratio at shape 1.
    let part = if shape == 1.0 { ratio } else { -libm::expm1((1.0 - shape) * ratio) / (shape - 1.0) };
    least * shape * part / whole
}

/// Standard normal distribution function.
fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}

/// Segments of an empirical law: from, to, probability. The first is the jump at the first point.
pub fn segments(points: &[(f64, f64)]) -> impl Iterator<Item = (f64, f64, f64)> {
    let first = points.first().map(|&(value, share)| (value, value, share));
    first.into_iter().chain(points.windows(2).map(|pair| (pair[0].0, pair[1].0, pair[1].1 - pair[0].1)))
}

/// Checks the points; returns the index of the first invalid one and a message.
pub(crate) fn check_points(points: &[(f64, f64)]) -> Result<(), (usize, String)> {
    let mut before = (0.0, 0.0);
    for (i, &(value, share)) in points.iter().enumerate() {
        if value < before.0 || share < before.1 || !(0.0..=1.0).contains(&share) {
            return Err((i, "values and probabilities must ascend, probabilities from 0 to 1".into()));
        }
        before = (value, share);
    }
    match points.last() {
        None => Err((0, "there must be at least one point".into())),
        Some((_, share)) if *share != 1.0 => Err((points.len() - 1, "the last probability must be 1".into())),
        Some((value, _)) if *value <= 0.0 => Err((points.len() - 1, "the last value must be above 0".into())),
        Some(_) => Ok(()),
    }
}

fn points(at: &Cursor<'_>, quantity: &LawQuantity) -> Result<Vec<(f64, f64)>, ValueError> {
    let Value::List(items) = &at.node.value else {
        return Err(at.error(format!("must be a list of value and probability, such as [[{}, 1.0]]", quantity.example)));
    };
    if items.len() > POINTS_MAX {
        return Err(at.error(format!("{} points; at most {POINTS_MAX}", items.len())));
    }
    let point = |(i, item): (usize, &Node)| {
        let here = at.below(i, item);
        match &item.value {
            Value::List(pair) if pair.len() == 2 => {
                Ok((quantity.value(&here.below(0, &pair[0]))?, f64::read(&here.below(1, &pair[1]))?))
            }
            _ => Err(here.error(format!("must be value and probability, such as [{}, 0.5]", quantity.example))),
        }
    };
    items.iter().enumerate().map(point).collect()
}

/// Quantity of a law: unit, range and description.
struct LawQuantity {
    quantity: Quantity,
    what: &'static str,
    example: &'static str,
    format: &'static str,
    max: f64,
    show: fn(f64) -> toml::Value,
}

impl LawQuantity {
    /// Reads a value in base units, rounded to whole ones unless the quantity has no unit.
    fn value(&self, at: &Cursor<'_>) -> Result<f64, ValueError> {
        let value = at.quantity(self.quantity)?;
        if !(0.0..=self.max).contains(&value) {
            return Err(at.error(format!("must be {} of at least 0, at most {}", self.what, self.most())));
        }
        Ok(if self.quantity.is_bare() { value } else { (value + 0.5).floor() })
    }

    fn most(&self) -> String {
        match self.show(self.max) {
            toml::Value::String(text) => text,
            value => value.to_string(),
        }
    }

    fn show(&self, value: f64) -> toml::Value {
        (self.show)(value)
    }

    fn schema(&self) -> serde_json::Value {
        let value = || match self.quantity.is_bare() {
            true => json!({"type": "number", "minimum": 0}),
            false => json!({"type": "string", "format": self.format}),
        };
        let number = || json!({"type": "number", "exclusiveMinimum": 0});
        let law = |name: &str, required: &[&str], properties: serde_json::Value| {
            let mut properties = properties;
            properties["law"] = json!({"const": name});
            let required: Vec<&str> = ["law"].iter().chain(required).copied().collect();
            json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
        };
        let point =
            json!({"type": "array", "prefixItems": [value(), {"type": "number"}], "minItems": 2, "maxItems": 2});
        json!({"anyOf": [
            value(),
            law("uniform", &["min", "max"], json!({"min": value(), "max": value()})),
            law("exponential", &["mean"], json!({"mean": value()})),
            law("erlang", &["mean", "stages"], json!({"mean": value(), "stages": {"type": "integer", "minimum": 1}})),
            law("pareto", &["mean", "shape"], json!({"mean": value(), "shape": number(), "max": value()})),
            law("lognormal", &["mean", "std"], json!({"mean": value(), "std": value(), "min": value(), "max": value()})),
            law("empirical", &[], json!({"cdf": {"type": "array", "items": point}, "file": {"type": "string"}})),
        ]})
    }
}

/// Declares a law of a quantity.
macro_rules! law_of {
    ($(#[doc = $doc:literal])* $name:ident { $of:expr }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name(pub Law);

        impl Field for $name {
            const WHAT: &'static str = Self::OF.what;
            fn read(at: &Cursor<'_>) -> Result<Self, ValueError> {
                Law::read(at, &Self::OF).map($name)
            }
            fn write(&self) -> Option<toml::Value> {
                Some(self.0.write(&Self::OF))
            }
            fn schema() -> serde_json::Value {
                Self::OF.schema()
            }
        }

        impl $name {
            const OF: LawQuantity = $of;
        }
    };
}

law_of! {
    /// Law of a size, bytes.
    Size { LawQuantity {
        quantity: units::BYTES,
        what: "a size, such as \"10kB\", or a law, such as { law = \"exponential\", mean = \"10kB\" }",
        example: "\"10kB\"",
        format: "size",
        max: 1e15,
        show: |bytes| units::show_bytes(Bytes(bytes as u64)).into(),
    } }
}

law_of! {
    /// Law of a time, nanoseconds.
    Time { LawQuantity {
        quantity: units::TIME,
        what: "a time, such as \"1s\", or a law, such as { law = \"exponential\", mean = \"1s\" }",
        example: "\"1s\"",
        format: "time",
        max: 86_400e9,
        show: |nanos| units::show_span(Span::from_nanos(nanos as u64)).into(),
    } }
}

law_of! {
    /// Law of a count.
    Count { LawQuantity {
        quantity: units::NUMBER,
        what: "a number, such as 5, or a law, such as { law = \"exponential\", mean = 5 }",
        example: "5",
        format: "number",
        max: 1e6,
        show: toml::Value::Float,
    } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9 * b.abs().max(1.0)
    }

    #[test]
    fn means_are_those_of_the_laws() {
        assert_eq!(Law::Uniform { min: 2.0, max: 6.0 }.mean(), 4.0);
        // Integrals of x over the density, by the midpoint rule in ln x: mean 10, standard deviation 5, between bounds.
        let lognormal = |min, max| Law::Lognormal { mean: 10.0, std: 5.0, min, max };
        for (law, mean) in [
            (lognormal(4.0, Some(20.0)), 9.611_146_98),
            (lognormal(0.0, Some(20.0)), 9.320_982_37),
            (lognormal(4.0, None), 10.308_161_04),
            (lognormal(0.0, None), 10.0),
        ] {
            assert!((law.mean() - mean).abs() < 1e-6, "{law:?}: {}", law.mean());
        }
        // ln(1 + 1/4) is the variance of the logarithm.
        let (mu, sigma) = lognormal(0.0, None).normal().unwrap();
        assert!((mu - 2.191_013_317).abs() < 1e-9 && (sigma - 0.472_380_727).abs() < 1e-9, "{mu} {sigma}");
        assert_eq!(Law::Fixed(3.0).normal(), None);
        // A quarter at 0, a quarter spread over 0 to 10, half over 10 to 20: 0 + 1.25 + 7.5.
        let points = Arc::new([(0.0, 0.25), (10.0, 0.5), (20.0, 1.0)]);
        assert_eq!(Law::Empirical { file: None, points }.mean(), 8.75);
    }

    #[test]
    fn the_least_value_of_a_pareto_law_follows_from_its_mean() {
        let least = |mean, shape, max| Law::Pareto { mean, shape, max }.least().unwrap();
        // 3 (1.5 - 1) / 1.5.
        assert!(near(least(3.0, 1.5, None), 1.0));
        // Between 1 and 2 with shape 2: 2 (1 - 1/2) / (1 - 1/4) = 4/3. Between 1 and e with shape 1: 1 / (1 - 1/e).
        // Between 1 and 4 with shape 1/2: (1/2) (2 - 1) / (1/2) / (1 - 1/2) = 2.
        assert!(near(least(4.0 / 3.0, 2.0, Some(2.0)), 1.0));
        let e = std::f64::consts::E;
        assert!(near(least(1.0 / (1.0 - 1.0 / e), 1.0, Some(e)), 1.0));
        assert!(near(least(1.0 / (1.0 - 1.0 / e), 1.0 + 1e-12, Some(e)), 1.0));
        assert!(near(least(2.0, 0.5, Some(4.0)), 1.0));
        assert!(near(least(20.0, 0.5, Some(40.0)), 10.0));
        assert_eq!(Law::Fixed(3.0).least(), None);
    }

    #[test]
    fn points_of_a_distribution_ascend_to_one() {
        let wrong = |points: &[(f64, f64)]| check_points(points).err().map(|(i, _)| i);
        assert_eq!(wrong(&[(0.0, 0.0), (1.0, 0.5), (1.0, 0.5), (2.0, 1.0)]), None);
        assert_eq!(wrong(&[(5.0, 1.0)]), None);
        assert_eq!(wrong(&[(2.0, 0.5), (1.0, 1.0)]), Some(1));
        assert_eq!(wrong(&[(1.0, 0.5), (2.0, 0.4), (3.0, 1.0)]), Some(1));
        assert_eq!(wrong(&[(1.0, 0.5), (2.0, 1.1)]), Some(1));
        assert_eq!(wrong(&[(-1.0, 0.5), (2.0, 1.0)]), Some(0));
        assert_eq!(wrong(&[(1.0, 0.2), (2.0, 0.9)]), Some(1));
        assert_eq!(wrong(&[(0.0, 0.5), (0.0, 1.0)]), Some(1));
        assert_eq!(wrong(&[]), Some(0));
    }
}
