//! Statistics over seeds.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Mean, spread and confidence of one metric over independent runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Mean.
    pub mean: f64,
    /// Standard deviation of the runs (n - 1 in the denominator); null for a single run.
    pub std: Option<f64>,
    /// Student's 95 % confidence interval of the mean; null for a single run.
    pub ci95: Option<[f64; 2]>,
    /// Number of runs.
    pub n: usize,
}

impl Summary {
    /// The summary of `values`, one per run. `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
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
        Some(Summary { mean, std: Some(std), ci95: Some([mean - half, mean + half]), n })
    }
}

/// The value below which Student's t with `freedom` degrees of freedom (above 0, fractions allowed) falls with
/// `probability`, in (0, 1).
pub fn student_quantile(probability: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).expect("positive degrees of freedom").inverse_cdf(probability)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_students() {
        // 1, 2, 3, 4: mean 2.5, variance 5/3, t(0.975, 3) = 3.182446: half width 3.182446 * sqrt(5/3) / 2 = 2.054259.
        let summary = Summary::of(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!(summary.mean, 2.5);
        assert!((summary.std.unwrap() - (5.0f64 / 3.0).sqrt()).abs() < 1e-15);
        let [low, high] = summary.ci95.unwrap();
        assert!((low - 0.445741).abs() < 1e-5 && (high - 4.554259).abs() < 1e-5, "{low} {high}");
    }

    #[test]
    fn one_run_has_no_spread_and_none_has_no_summary() {
        assert_eq!(Summary::of(&[7.0]), Some(Summary { mean: 7.0, std: None, ci95: None, n: 1 }));
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn one_value_more_makes_the_interval_narrower() {
        // 1, 5: mean 3, std sqrt 8, t(0.975, 1) = 12.7062, half width 12.7062 * 2. 1, 5, 1, 5: t(0.975, 3), std
        // sqrt(16 / 3).
        let two = Summary::of(&[1.0, 5.0]).unwrap();
        let four = Summary::of(&[1.0, 5.0, 1.0, 5.0]).unwrap();
        assert!((two.ci95.unwrap()[1] - 3.0 - 25.4124).abs() < 1e-3, "{two:?}");
        assert!((four.std.unwrap() - (16.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert!((3.0 - four.ci95.unwrap()[0] - 3.182446 * (4.0f64 / 3.0).sqrt()).abs() < 1e-4, "{four:?}");
    }
}
