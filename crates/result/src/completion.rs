//! Flow completion times by size of the transfer.

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::Histogram;

/// Least sizes of the second, third and last class, bytes.
const BOUNDS: [u64; 3] = [10_000, 100_000, 1_000_000];

/// Keys of each class: count, mean, median, 95th and 99th percentile of the time, mean slowdown.
const KEYS: [[&str; 6]; 4] = [
    [
        "fct_under_10kB_count",
        "fct_under_10kB_mean_s",
        "fct_under_10kB_p50_s",
        "fct_under_10kB_p95_s",
        "fct_under_10kB_p99_s",
        "fct_under_10kB_slowdown",
    ],
    [
        "fct_10kB_100kB_count",
        "fct_10kB_100kB_mean_s",
        "fct_10kB_100kB_p50_s",
        "fct_10kB_100kB_p95_s",
        "fct_10kB_100kB_p99_s",
        "fct_10kB_100kB_slowdown",
    ],
    [
        "fct_100kB_1MB_count",
        "fct_100kB_1MB_mean_s",
        "fct_100kB_1MB_p50_s",
        "fct_100kB_1MB_p95_s",
        "fct_100kB_1MB_p99_s",
        "fct_100kB_1MB_slowdown",
    ],
    [
        "fct_over_1MB_count",
        "fct_over_1MB_mean_s",
        "fct_over_1MB_p50_s",
        "fct_over_1MB_p95_s",
        "fct_over_1MB_p99_s",
        "fct_over_1MB_slowdown",
    ],
];

/// Completion times, by size.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Completions([Class; 4]);

/// A size class.
#[derive(Clone, Debug, Default, PartialEq)]
struct Class {
    /// Completion times, nanoseconds.
    times: Histogram,
    slowdowns: f64,
}

/// Statistics of [`Completions`]; `None` without completed transfers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompletionMetrics([[Option<f64>; 6]; 4]);

impl Completions {
    /// Records a transfer of `bytes` in `nanos`; `ideal_nanos` is its time on an empty network, above 0.
    pub fn record(&mut self, bytes: u64, nanos: u64, ideal_nanos: f64) {
        let class = &mut self.0[BOUNDS.iter().filter(|&&bound| bytes >= bound).count()];
        class.times.record(nanos);
        class.slowdowns += nanos as f64 / ideal_nanos;
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Completions) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            mine.times.merge(&theirs.times);
            mine.slowdowns += theirs.slowdowns;
        }
    }

    /// Statistics, in seconds.
    pub fn metrics(&self) -> CompletionMetrics {
        let seconds = |nanos: f64| nanos * 1e-9;
        CompletionMetrics(self.0.each_ref().map(|Class { times, slowdowns }| {
            let quantile = |q| times.quantile(q).map(seconds);
            let count = times.total() as f64;
            [
                Some(count),
                times.mean().map(seconds),
                quantile(0.50),
                quantile(0.95),
                quantile(0.99),
                (count > 0.0).then(|| slowdowns / count),
            ]
        }))
    }
}

impl CompletionMetrics {
    /// Keys and values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Option<f64>)> + '_ {
        KEYS.as_flattened().iter().copied().zip(self.0.as_flattened().iter().copied())
    }
}

impl Serialize for CompletionMetrics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in self.iter() {
            match value {
                // A count is an integer.
                Some(count) if key.ends_with("_count") => map.serialize_entry(key, &(count as u64))?,
                value => map.serialize_entry(key, &value)?,
            }
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_belongs_to_the_class_that_begins_with_it() {
        let mut seen = Completions::default();
        for (bytes, ms) in
            [(9_999, 100), (10_000, 200), (99_999, 400), (100_000, 800), (1_000_000, 1600), (5_000_000, 3200)]
        {
            seen.record(bytes, ms * 1_000_000, 50e6);
        }
        let value = |key: &str| seen.metrics().iter().find(|(name, _)| *name == key).unwrap().1;
        assert_eq!(value("fct_under_10kB_count"), Some(1.0));
        assert!((value("fct_10kB_100kB_mean_s").unwrap() - 0.3).abs() < 1e-12);
        // 200 ms and 400 ms over 50 ms: 4 and 8.
        assert_eq!(value("fct_10kB_100kB_slowdown"), Some(6.0));
        assert_eq!(value("fct_100kB_1MB_count"), Some(1.0));
        assert_eq!(value("fct_over_1MB_count"), Some(2.0));
        assert!((value("fct_over_1MB_p99_s").unwrap() - 3.2).abs() < 0.03);
    }

    #[test]
    fn merged_parts_count_as_the_whole_and_nothing_has_no_times() {
        let (mut all, mut first, mut second) = (Completions::default(), Completions::default(), Completions::default());
        for k in 1..100u64 {
            all.record(k * 30_000, k * 1_000_000, 1e6);
            if k % 3 == 0 { &mut first } else { &mut second }.record(k * 30_000, k * 1_000_000, 1e6);
        }
        first.merge(&second);
        assert_eq!(first.metrics(), all.metrics());
        let printed = serde_json::to_string(&Completions::default().metrics()).unwrap();
        assert!(printed.starts_with(r#"{"fct_under_10kB_count":0,"fct_under_10kB_mean_s":null"#), "{printed}");
    }
}
