//! Statistics over seeds.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Mean, standard deviation and confidence interval of one metric over independent runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Mean.
    pub mean: f64,
    /// Standard deviation of the runs (n - 1 in the denominator); null for a single run.
    pub std: Option<f64>,
    /// 95 % confidence interval of the mean, within the range of the metric; null for a single run.
    pub ci95: Option<[f64; 2]>,
    /// Number of runs.
    pub n: usize,
}

impl Summary {
    /// Summary of `values`, one per run, with Student's interval. `None` without values.
    pub fn from_values(values: &[f64]) -> Option<Self> {
        Self::from_values_in(values, [f64::NEG_INFINITY, f64::INFINITY])
    }

    /// Summary of `values` in `range`, one per run. `None` without values.
    ///
    /// In a finite range the interval is Student's for the logit of the mean, by the delta method: it is asymmetric and
    /// stays in the range. With one finite bound Student's interval is cut there.
    pub fn from_values_in(values: &[f64], range: [f64; 2]) -> Option<Self> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        if n == 1 {
            return Some(Summary { mean, std: None, ci95: None, n });
        }
        let std = (values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1) as f64).sqrt();
        let half = student_quantile(0.975, (n - 1) as f64) * std / (n as f64).sqrt();
        Some(Summary { mean, std: Some(std), ci95: Some(interval(mean, half, range)), n })
    }
}

/// Interval around `mean` in a range, with `half` Student's half width.
fn interval(mean: f64, half: f64, [low, high]: [f64; 2]) -> [f64; 2] {
    let width = high - low;
    let fraction = (mean - low) / width;
    if width.is_finite() && half > 0.0 && fraction > 0.0 && fraction < 1.0 {
        let (logit, half) = (libm::log(fraction / (1.0 - fraction)), half / (width * fraction * (1.0 - fraction)));
        let end = |logit: f64| low + width / (1.0 + libm::exp(-logit));
        return [end(logit - half), end(logit + half)];
    }
    [(mean - half).max(low.min(mean)), (mean + half).min(high.max(mean))]
}

/// Quantile of Student's t distribution for a `probability` in (0, 1) and `freedom` degrees of freedom (above 0,
/// fractions allowed).
pub fn student_quantile(probability: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).expect("positive degrees of freedom").inverse_cdf(probability)
}

/// Probability that Student's t with `freedom` degrees of freedom (above 0) lies beyond `t` on either side.
pub fn student_tail(t: f64, freedom: f64) -> f64 {
    2.0 * StudentsT::new(0.0, 1.0, freedom).expect("positive degrees of freedom").cdf(-t.abs())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn five_percent_lie_beyond_the_quantile_of_the_interval() {
        for freedom in [1.0, 3.0, 4.5, 100.0] {
            let t = student_quantile(0.975, freedom);
            assert!((student_tail(t, freedom) - 0.05).abs() < 1e-9 && (student_tail(-t, freedom) - 0.05).abs() < 1e-9);
        }
        assert_eq!(student_tail(0.0, 3.0), 1.0);
    }

    #[test]
    fn the_interval_is_students() {
        // 1, 2, 3, 4: mean 2.5, variance 5/3, t(0.975, 3) = 3.182446: half width 3.182446 * sqrt(5/3) / 2 = 2.054259.
        let summary = Summary::from_values(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!(summary.mean, 2.5);
        assert!((summary.std.unwrap() - (5.0f64 / 3.0).sqrt()).abs() < 1e-15);
        let [low, high] = summary.ci95.unwrap();
        assert!((low - 0.445741).abs() < 1e-5 && (high - 4.554259).abs() < 1e-5, "{low} {high}");
    }

    #[test]
    fn an_interval_stays_in_the_range_of_its_metric() {
        // Mean 0.99, std 0.01, half width 4.302653 * 0.01 / sqrt 3 = 0.024841: Student's interval exceeds 1. Logit
        // 4.595120 ± 0.024841 / 0.0099 = 2.509232: 1 / (1 + exp(-2.085888)) and 1 / (1 + exp(-7.104352)).
        let [low, high] = Summary::from_values_in(&[0.98, 0.99, 1.0], [0.0, 1.0]).unwrap().ci95.unwrap();
        assert!((low - 0.889523).abs() < 1e-5 && (high - 0.999179).abs() < 1e-5, "{low} {high}");
        // MOS from 1 to 4.5.
        let [low, high] = Summary::from_values_in(&[4.4, 4.3, 4.5], [1.0, 4.5]).unwrap().ci95.unwrap();
        assert!(low > 1.0 && low < 4.3 && high > 4.4 && high < 4.5, "{low} {high}");
        // 0, 0, 3: mean 1, half width 4.302653: cut at 0.
        let [low, high] = Summary::from_values_in(&[0.0, 0.0, 3.0], [0.0, f64::INFINITY]).unwrap().ci95.unwrap();
        assert!(low == 0.0 && (high - 5.302653).abs() < 1e-5, "{low} {high}");
        // Equal values, at a bound or not.
        for value in [0.0, 0.3, 1.0] {
            assert_eq!(Summary::from_values_in(&[value; 3], [0.0, 1.0]).unwrap().ci95, Some([value; 2]));
        }
    }

    proptest! {
        #[test]
        fn no_interval_leaves_its_range_or_loses_its_mean(
            fractions in prop::collection::vec(prop_oneof![Just(0.0), Just(1.0), 0.0f64..1.0], 2..12),
            low in -5.0f64..5.0,
            width in 0.1f64..100.0,
        ) {
            let values: Vec<f64> = fractions.iter().map(|fraction| low + width * fraction).collect();
            let end = values.iter().copied().fold(low + width, f64::max);
            for range in [[low, end], [low, f64::INFINITY], [f64::NEG_INFINITY, end]] {
                let found = Summary::from_values_in(&values, range).unwrap();
                let [from, to] = found.ci95.unwrap();
                prop_assert!(range[0] <= from + 1e-9 && to <= range[1] + 1e-9, "{found:?}");
                prop_assert!(from <= found.mean + 1e-9 && found.mean <= to + 1e-9, "{found:?}");
            }
        }
    }

    #[test]
    fn one_run_has_no_spread_and_none_has_no_summary() {
        assert_eq!(Summary::from_values(&[7.0]), Some(Summary { mean: 7.0, std: None, ci95: None, n: 1 }));
        assert_eq!(Summary::from_values(&[]), None);
    }

    #[test]
    fn more_values_make_the_interval_narrower() {
        // 1, 5: mean 3, std sqrt 8, t(0.975, 1) = 12.7062, half width 12.7062 * 2. 1, 5, 1, 5: t(0.975, 3), std
        // sqrt(16 / 3).
        let two = Summary::from_values(&[1.0, 5.0]).unwrap();
        let four = Summary::from_values(&[1.0, 5.0, 1.0, 5.0]).unwrap();
        assert!((two.ci95.unwrap()[1] - 3.0 - 25.4124).abs() < 1e-3, "{two:?}");
        assert!((four.std.unwrap() - (16.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert!((3.0 - four.ci95.unwrap()[0] - 3.182446 * (4.0f64 / 3.0).sqrt()).abs() < 1e-4, "{four:?}");
    }
}
