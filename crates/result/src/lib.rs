//! Results of engines: metrics by window, time series, histograms, statistics over seeds.
//!
//! Every engine fills the same [`RunResult`], so that results can be compared. Each metric is defined here once; those
//! of a link in `link`, from the measurements of its [`Meter`].

mod completion;
mod disagreement;
pub mod emodel;
mod experience;
mod fairness;
mod goal;
mod histogram;
mod hurst;
mod jitter;
mod letters;
pub mod linear_equations;
mod link;
mod losses;
mod meter;
mod metrics;
mod oscillation;
mod playback;
mod prediction;
mod queue_trace;
mod ranking;
mod reception;
mod requests;
mod spectrum;
mod summary;
mod synchrony;
#[cfg(test)]
mod testing;
mod transient;
mod video;

pub use completion::{CompletionMetrics, Completions};
pub use disagreement::{curve_rms, mean_curve};
pub use experience::{Candidate, ExperienceMetric, Score, TIE_RATIO, score_experience};
pub use fairness::{jain, jain_of_sums, rtt_slope};
pub use goal::{GOALS, Goal, GoalMetric};
pub use histogram::Histogram;
pub use hurst::{hurst, hurst_at_queue};
pub use jitter::Jitter;
pub use letters::letter_groups;
pub use link::{LinkSteadyState, LinkSums, Moments, capacity_bits, utilization};
pub use losses::{LossRuns, LossStatistics, LossTracker, index_of_dispersion};
pub use meter::{Counts, LinkPiece, Meter};
pub use metrics::{AqmReport, Cost, FlowMetrics, LinkMetrics, NominalReport, ParamValue, RunResult, Series, range_of};
pub use oscillation::{Oscillation, SATURATION_FRACTION, detect_oscillation};
pub use playback::{Playback, SegmentedVideo};
pub use prediction::{
    ExactMargins, ExpectedOscillation, LoopAnalysis, Margins, Measurement, ModelComparison, Observations,
    OperatingPoint, PredictedNoise, PredictedStart, Prediction, compare_prediction,
};
pub use queue_trace::{Loss, QueueTrace, Transmission};
pub use ranking::{MetricSummaries, Rank, RankError, Ranking, rank};
pub use reception::{ArrivalState, ReceptionStats};
pub use requests::{CompletedRequest, Requests};
pub use summary::{Summary, student_quantile, student_tail};
pub use synchrony::Synchrony;
pub use transient::{BAND, HOLD_S, SMOOTH_S, Transient, transient};
pub use video::fill_video_metrics;

/// Version of the JSON of a [`RunResult`]. It increases when a key changes its meaning or is removed.
pub const SCHEMA: u32 = 1;
