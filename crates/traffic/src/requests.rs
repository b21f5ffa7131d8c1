//! What became of what applications asked for: transfers and pages.

use aqumen_result::{Completions, FlowMetrics, Histogram};
use aqumen_scenario::{Plan, Traffic, Window};
use aqumen_units::Bytes;

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
    /// When the last byte reached the application.
    pub delivered_at: u64,
}

impl Served {
    fn nanos(&self) -> u64 {
        self.delivered_at.saturating_sub(self.asked_at)
    }
}

impl Requests {
    /// Fills in what `group` got in `window`: requests belong to it that were complete, or were refused, within.
    pub fn fill(&self, metrics: &mut FlowMetrics, plan: &Plan, group: u32, window: &Window) {
        if !asks(plan, group) {
            return;
        }
        let within = |at: u64| window.start.as_nanos() <= at && at < window.end.as_nanos();
        let own = |served: &&Served| plan.flows[served.flow as usize].group == group && within(served.delivered_at);
        let mut transfers = Completions::default();
        for served in self.transfers.iter().filter(own) {
            transfers.record(served.bytes, served.nanos(), ideal_ns(plan, served));
        }
        metrics.completions = transfers.metrics();
        metrics.refused = Some(self.refused.iter().filter(|(of, at)| *of == group && within(*at)).count() as u64);
        let mut pages = Histogram::default();
        self.pages.iter().filter(own).for_each(|served| pages.record(served.nanos()));
        let quantile = |q| pages.quantile(q).map(|ns| ns * 1e-9);
        if matches!(plan.groups[group as usize].traffic, Traffic::Web(_)) {
            metrics.pages = Some(pages.total());
            metrics.page_load_mean_s = pages.mean().map(|ns| ns * 1e-9);
            metrics.page_load_p50_s = quantile(0.50);
            metrics.page_load_p95_s = quantile(0.95);
            metrics.page_load_p99_s = quantile(0.99);
        }
    }
}

/// Whether the applications of `group` ask for anything finite.
fn asks(plan: &Plan, group: u32) -> bool {
    matches!(plan.groups[group as usize].traffic, Traffic::Transfers(_) | Traffic::Web(_))
}

/// How long it takes to bring the bytes of a transfer over where there is nobody else: the delay of the links, and the bytes at
/// the rate of the slowest; nanoseconds, above 0.
fn ideal_ns(plan: &Plan, served: &Served) -> f64 {
    let flow = &plan.flows[served.flow as usize];
    let links = || flow.path.iter().map(|&link| &plan.links[link as usize]);
    let delay: u64 = links().map(|link| link.delay.as_nanos()).sum();
    let slowest = links().map(|link| link.rates[0].1).min();
    let sending = slowest.map_or(0, |rate| rate.time_for(Bytes(served.bytes)).as_nanos());
    (delay + sending).max(1) as f64
}
