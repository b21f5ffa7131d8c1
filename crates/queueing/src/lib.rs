//! The queue MMPP/Erlang(m)/1/L: bursty sources, one server, a finite buffer. The solution is exact, or iterated to
//! twelve digits.
//!
//! [`Source`] is a Markov-modulated Poisson process (MMPP). [`Model`] combines sources and a queue; [`Model::solve`]
//! returns occupancy, delay, loss and marks of each source as [`Measures`]. [`fit`] fits a source to a packet trace.
//! [`simulate`] simulates the model packet by packet and compares the results with the prediction.
//! `docs/theory/mmpp.md` has the derivations.
//!
//! Rates are in packets per second, times in seconds, occupancies in packets; the capacity L
//! counts the packet in service.
//!
//! - `source`: MMPP sources and their superposition; `counts`: moments of packet counts; `two_states`: two-state
//!   approximations;
//! - `solve`: stationary distribution by elimination; `iterate`: by multilevel iteration, for many joint states;
//! - `measures`, `delay`: performance measures; `model` puts it together;
//! - `file` reads a model file and `json` writes the results; `simulate` is the packet simulation;
//! - [`trace`] reads captures and counts packets in windows, [`fit`] fits a source to the counts, `replay` sends the
//!   packets themselves through the queue;
//! - `early`: threshold function and search for thresholds; `admission`: greatest load or least threshold for a bound
//!   on loss.

mod admission;
mod counts;
mod delay;
mod dense;
mod early;
mod error;
mod file;
pub mod fit;
mod iterate;
mod json;
mod measures;
mod model;
mod replay;
mod simulate;
mod solve;
mod source;
mod sum;
pub mod trace;
mod two_states;

pub use admission::{Admission, Objective};
pub use counts::{CountingProcess, autocorrelation, dispersion};
pub use delay::Delay;
pub use early::{Action, Adaptation, probability};
pub use error::Error;
pub use file::{Analysis, FittedSource};
pub use json::SCHEMA;
pub use measures::{Measures, Stream};
pub use model::{Model, Queue};
pub use replay::{Replay, replay};
pub use simulate::{Comparison, Runs, arrivals, simulate};
pub use source::{Minisources, Source};
