//! Time, bytes, rates and probabilities as types.
//!
//! Time, bytes and counters are integers, so that sums are exact and runs repeat bit for bit. Only operators that mean
//! something exist: `Instant - Instant` is a [`Span`], [`Rate::time_for`] turns [`Bytes`] into a [`Span`].
//! Control laws are `f64`; a [`Probability`] is an `f64` that is always in [0, 1].

#![no_std]

mod amount;
mod ecn;
mod probability;
mod time;

pub use amount::{Bytes, Rate};
pub use ecn::Ecn;
pub use probability::Probability;
pub use time::{Instant, SignedSpan, Span};
