//! What became of what applications asked for: transfers and pages.

use std::ops::Range;

use crate::{Completions, FlowMetrics, Histogram};

/// Requests of applications, in order of their end.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    /// Transfers that were delivered.
    pub transfers: Vec<Served>,
    /// Pages that were loaded.
    pub pages: Vec<Served>,
    /// Transfers for which a group had no idle flow: the group, and when, nanoseconds.
    pub refused: Vec<(u32, u64)>,
}

/// A request that was served. Times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// Its flow.
    pub flow: u32,
    /// Size of a transfer; 0 for a page.
    pub bytes: u64,
    /// When the application asked.
    pub asked_at: u64,
    /// When the first data reached the other application; `None` where nobody looked.
    pub first_at: Option<u64>,
    /// When the last byte reached the application.
    pub delivered_at: u64,
}

impl Served {
    fn nanos(&self) -> u64 {
        self.delivered_at.saturating_sub(self.asked_at)
    }
}

impl Requests {
    /// Fills in what `group`, which has the flows `flows`, got in a `window` of nanoseconds: requests belong to it that
    /// were complete, or were refused, within. `ideal_completion_ns` is how long a transfer of so many bytes takes on a
    /// flow's way where there is nobody else, above 0; `pages` whether the group loads pages.
    pub fn fill(
        &self,
        metrics: &mut FlowMetrics,
        (group, flows): (u32, Range<u32>),
        window: Range<u64>,
        pages: bool,
        ideal_completion_ns: impl Fn(u32, u64) -> f64,
    ) {
        let own = |served: &&Served| flows.contains(&served.flow) && window.contains(&served.delivered_at);
        let mut transfers = Completions::default();
        let mut startup = Histogram::default();
        for served in self.transfers.iter().filter(own) {
            served.first_at.iter().for_each(|first| startup.record(first.saturating_sub(served.asked_at)));
            transfers.record(served.bytes, served.nanos(), ideal_completion_ns(served.flow, served.bytes));
        }
        metrics.completions = transfers.metrics();
        metrics.startup_mean_s = startup.mean().map(|ns| ns * 1e-9);
        metrics.startup_p50_s = startup.quantile(0.50).map(|ns| ns * 1e-9);
        metrics.startup_p95_s = startup.quantile(0.95).map(|ns| ns * 1e-9);
        metrics.refused = Some(self.refused(group, &window));
        if pages {
            let mut loads = Histogram::default();
            self.pages.iter().filter(own).for_each(|served| loads.record(served.nanos()));
            let quantile = |q| loads.quantile(q).map(|ns| ns * 1e-9);
            metrics.pages = Some(loads.total());
            metrics.page_load_mean_s = loads.mean().map(|ns| ns * 1e-9);
            metrics.page_load_p50_s = quantile(0.50);
            metrics.page_load_p95_s = quantile(0.95);
            metrics.page_load_p99_s = quantile(0.99);
        }
    }

    /// Transfers for which `group` had no idle flow in a `window` of nanoseconds.
    pub fn refused(&self, group: u32, window: &Range<u64>) -> u64 {
        self.refused.iter().filter(|(of, at)| *of == group && window.contains(at)).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_belong_to_the_window_in_which_they_end() {
        let transfer = |flow, asked_at, delivered_at| Served {
            flow,
            bytes: 20_000,
            asked_at,
            first_at: Some(asked_at + 5),
            delivered_at,
        };
        let requests = Requests {
            // Of another group; ends before the window; ends at its beginning; ends at its end.
            transfers: vec![transfer(9, 90, 150), transfer(1, 10, 99), transfer(1, 40, 100), transfer(2, 150, 200)],
            pages: vec![transfer(1, 0, 1_000_000)],
            refused: vec![(3, 99), (3, 100), (4, 150)],
        };
        let mut metrics = FlowMetrics::default();
        requests.fill(&mut metrics, (3, 1..3), 100..200, false, |flow, bytes| f64::from(flow) * bytes as f64 / 1000.0);
        let told = serde_json::to_value(&metrics.completions).unwrap();
        assert_eq!((told["fct_10kB_100kB_count"].as_u64(), metrics.refused, metrics.pages), (Some(1), Some(1), None));
        // 60 ns where 20 are needed.
        assert!((told["fct_10kB_100kB_slowdown"].as_f64().unwrap() - 3.0).abs() < 1e-9, "{told}");
        requests.fill(&mut metrics, (3, 1..3), 0..2_000_000, true, |_, _| 1.0);
        assert_eq!((metrics.pages, metrics.page_load_mean_s.map(|s| (s * 1e6).round())), (Some(1), Some(1000.0)));
    }
}
