//! What an engine answers: metrics by window, series over time, histograms, statistics over seeds.
//!
//! Every engine fills the same [`RunResult`], so that answers can be laid over one another.

mod histogram;
mod metrics;
mod summary;

pub use histogram::Histogram;
pub use metrics::{AqmReport, Cost, FlowMetrics, LinkMetrics, ParamValue, RunResult, Series};
pub use summary::{Summary, student_quantile};

/// Version of the JSON that a [`RunResult`] becomes. It grows when a key changes its meaning or goes away.
pub const SCHEMA: u32 = 1;
