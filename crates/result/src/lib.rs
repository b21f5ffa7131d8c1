//! What an engine answers: metrics by window, series over time, histograms, statistics over seeds.
//!
//! Every engine fills the same [`RunResult`], so that answers can be laid over one another, and each figure is made
//! here, in one place: of a link in `link`, from what its [`Meter`] saw.

mod beside;
mod completion;
pub mod emodel;
mod experience;
mod fairness;
mod films;
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
mod mismatch;
mod playback;
mod ranking;
mod reception;
mod record;
mod requests;
mod spectrum;
mod summary;
mod swing;
mod synchrony;
mod transient;

pub use beside::{Analysed, Beside, Exact, Margins, Measured, Noise, Oscillation, Predicted, Rest, Seen, beside};
pub use completion::{CompletionMetrics, Completions};
pub use experience::{ALIKE, Felt, Scored, Tried, experienced};
pub use fairness::{jain, jain_of_sums, rtt_slope};
pub use films::tell_films;
pub use goal::{Figure, GOALS, Goal};
pub use histogram::Histogram;
pub use hurst::{hurst, hurst_at_queue};
pub use jitter::Jitter;
pub use letters::letter_groups;
pub use link::{LinkPoint, LinkSums, Moments, capacity_bits, utilization};
pub use losses::{LossClock, LossSpacing, Runs, dispersion};
pub use meter::{Counts, LinkPiece, Meter};
pub use metrics::{AqmReport, Cost, FlowMetrics, LinkMetrics, NominalReport, ParamValue, RunResult, Series, range_of};
pub use mismatch::{averaged, curve_rms};
pub use playback::{Film, Playback};
pub use ranking::{Known, Place, RankError, Ranking, rank};
pub use reception::{Received, Reception};
pub use record::{Lost, Record, Taken};
pub use requests::{Requests, Served};
pub use summary::{Summary, student_quantile};
pub use swing::{BOUND_SHARE, Swing, swing};
pub use synchrony::Synchrony;
pub use transient::{BAND, HOLD_S, SMOOTH_S, Transient, transient};

/// Version of the JSON that a [`RunResult`] becomes. It grows when a key changes its meaning or goes away.
pub const SCHEMA: u32 = 1;
