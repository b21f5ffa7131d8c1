//! Requests of applications, transfers and pages, and their metrics.

use std::ops::Range;

use crate::{Completions, FlowMetrics, Histogram};

/// Requests of applications, in order of completion.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    /// Delivered transfers.
    pub transfers: Vec<CompletedRequest>,
    /// Loaded pages.
    pub pages: Vec<CompletedRequest>,
    /// Transfers for which a group had no idle flow: group and time, nanoseconds.
    pub refused: Vec<(u32, u64)>,
}

/// A completed request. Times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletedRequest {
    /// Its flow.
    pub flow: u32,
    /// Size of a transfer, bytes; 0 for a page.
    pub bytes: u64,
    /// Time of the request.
    pub requested_at: u64,
    /// Arrival of the first data at the other application, if observed.
    pub first_at: Option<u64>,
    /// Arrival of the last byte at the application.
    pub delivered_at: u64,
}

impl CompletedRequest {
    fn nanos(&self) -> u64 {
        self.delivered_at.saturating_sub(self.requested_at)
    }
}

impl Requests {
    /// Fills in the metrics of `group`, with the flows `flows`, in a `window` of nanoseconds: requests that were
    /// completed or refused within. `ideal_completion_ns`: time of a transfer of a size (bytes) on a flow's empty path,
    /// above 0; `pages`: whether the group loads pages.
    pub fn fill(
        &self,
        metrics: &mut FlowMetrics,
        (group, flows): (u32, Range<u32>),
        window: Range<u64>,
        pages: bool,
        ideal_completion_ns: impl Fn(u32, u64) -> f64,
    ) {
        let in_window =
            |request: &&CompletedRequest| flows.contains(&request.flow) && window.contains(&request.delivered_at);
        let mut transfers = Completions::default();
        let mut startup = Histogram::default();
        for request in self.transfers.iter().filter(in_window) {
            request.first_at.iter().for_each(|first| startup.record(first.saturating_sub(request.requested_at)));
            transfers.record(request.bytes, request.nanos(), ideal_completion_ns(request.flow, request.bytes));
        }
        metrics.completions = transfers.metrics();
        metrics.startup_mean_s = startup.mean().map(|ns| ns * 1e-9);
        metrics.startup_p50_s = startup.quantile(0.50).map(|ns| ns * 1e-9);
        metrics.startup_p95_s = startup.quantile(0.95).map(|ns| ns * 1e-9);
        metrics.refused = Some(self.refused(group, &window));
        if pages {
            let mut loads = Histogram::default();
            self.pages.iter().filter(in_window).for_each(|request| loads.record(request.nanos()));
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
        let transfer = |flow, requested_at, delivered_at| CompletedRequest {
            flow,
            bytes: 20_000,
            requested_at,
            first_at: Some(requested_at + 5),
            delivered_at,
        };
        let requests = Requests {
            // Another group; completed before the window; at its start; at its end.
            transfers: vec![transfer(9, 90, 150), transfer(1, 10, 99), transfer(1, 40, 100), transfer(2, 150, 200)],
            pages: vec![transfer(1, 0, 1_000_000)],
            refused: vec![(3, 99), (3, 100), (4, 150)],
        };
        let mut metrics = FlowMetrics::default();
        requests.fill(&mut metrics, (3, 1..3), 100..200, false, |flow, bytes| f64::from(flow) * bytes as f64 / 1000.0);
        let value = serde_json::to_value(&metrics.completions).unwrap();
        assert_eq!((value["fct_10kB_100kB_count"].as_u64(), metrics.refused, metrics.pages), (Some(1), Some(1), None));
        // 60 ns, with an ideal of 20.
        assert!((value["fct_10kB_100kB_slowdown"].as_f64().unwrap() - 3.0).abs() < 1e-9, "{value}");
        requests.fill(&mut metrics, (3, 1..3), 0..2_000_000, true, |_, _| 1.0);
        assert_eq!((metrics.pages, metrics.page_load_mean_s.map(|s| (s * 1e6).round())), (Some(1), Some(1000.0)));
    }
}
