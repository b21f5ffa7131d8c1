//! The queue MMPP/Erlang(m)/1/L: bursty sources, one server, a finite buffer, solved exactly or to twelve digits.
//!
//! [`Source`] is a Markov-modulated Poisson process; [`Model`] puts sources before a queue and [`Model::solve`] answers
//! occupancy, delay, loss and marks of each source as [`Measures`]. [`fit`] makes a source from a packet trace, and
//! [`simulate`] runs the same model packet by packet, to set beside the prediction.
//! `docs/theory/mmpp.md` derives it all.
//!
//! Rates are in packets per second, times in seconds, occupancies in packets; the capacity L
//! counts the packet in service.
//!
//! - `source` and `counts` know single sources, `two_states` puts two states in place of more; `solve` knows the chain
//!   of the queue by elimination, `iterate` with many joint states; `measures` and `delay` what follows from it;
//! - `file` reads a model file and `json` writes the answer; `simulate` is the packet simulation;
//! - [`trace`] reads captures and counts packets in windows, [`fit`] makes a source of that, `replay` sends the packets
//!   themselves through the queue;
//! - `early` is the threshold function and the search for thresholds, `admission` which
//!   load or threshold a loss allows; `model` puts it together.

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

pub use admission::{Admission, Question};
pub use counts::{Counts, autocorrelation, dispersion};
pub use delay::Delay;
pub use early::{Action, Adaptation, probability};
pub use error::Error;
pub use file::{Analysis, Fitted};
pub use json::SCHEMA;
pub use measures::{Measures, Stream};
pub use model::{Model, Queue};
pub use replay::{Replay, replay};
pub use simulate::{Compared, Runs, arrivals, simulate};
pub use source::{Minisources, Source};
