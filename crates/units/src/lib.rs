//! Time, bytes, rates, probabilities and ECN codepoints as types.
//!
//! Time, bytes and counters are integers, so that sums are exact and runs repeat bit for bit. Only operators that mean
//! something exist: `Instant - Instant` is a [`Span`], [`Rate::time_for`] turns [`Bytes`] into a [`Span`].
//! Control laws are `f64`; a [`Probability`] is an `f64` that is always in [0, 1].
//!
//! # Time
//!
//! An [`Instant`] counts nanoseconds from an epoch that the program chooses; a [`Span`] is a length of time.
//!
//! ```
//! use aqumen_units::{Instant, Span};
//!
//! let arrived = Instant::ZERO + Span::from_millis(20);
//! let left = arrived + Span::from_micros(1500);
//! assert_eq!(left - arrived, Span::from_micros(1500));
//! assert_eq!((left - arrived).to_string(), "1.5ms");
//! // Another order would be negative: it saturates where that is wanted, and panics in a debug build elsewhere.
//! assert_eq!(arrived.saturating_since(left), Span::ZERO);
//! // A controller's error has a sign.
//! assert_eq!(Span::from_millis(3).signed_sub(Span::from_millis(5)).as_secs_f64(), -0.002);
//! ```
//!
//! Spans and the standard library's durations convert into each other:
//!
//! ```
//! use aqumen_units::Span;
//! use core::time::Duration;
//!
//! assert_eq!(Span::from(Duration::from_millis(5)), Span::from_millis(5));
//! assert_eq!(Duration::from(Span::from_micros(7)), Duration::from_micros(7));
//! // 2^64 nanoseconds are 584 years.
//! assert_eq!(Span::from(Duration::MAX), Span::MAX);
//! ```
//!
//! With the feature `std` (on by default), `Clock` reads the operating system's monotonic clock as instants.
//!
//! # Bytes and rates
//!
//! A [`Rate`] is in bits per second.
//!
//! ```
//! use aqumen_units::{Bytes, Rate, Span};
//!
//! let link = Rate::from_bps(12_000_000);
//! assert_eq!(link.time_for(Bytes(1500)), Span::from_millis(1));
//! assert_eq!(link.amount_in(Span::from_millis(100)), Bytes(150_000)); // its bandwidth-delay product at 100 ms
//! assert_eq!(link.packets_per_sec(Bytes(1500)), 1000.0);
//! assert_eq!(Rate::from_bps(0).time_for(Bytes(1)), Span::MAX); // a link that never works
//! ```
//!
//! # Probabilities
//!
//! ```
//! use aqumen_units::Probability;
//!
//! assert_eq!(Probability::new(1.2), None);
//! assert_eq!(Probability::clamp(1.2), Probability::ONE);
//! assert_eq!(Probability::clamp(f64::NAN), Probability::ZERO);
//! ```
//!
//! # ECN
//!
//! The two low bits of the IP header's traffic class, decoded once where a packet enters.
//!
//! ```
//! use aqumen_units::Ecn;
//!
//! let tos = 0x02;
//! assert_eq!(Ecn::from_bits(tos), Ecn::Ect0);
//! assert!(Ecn::Ect0.is_ect() && Ecn::Ect1.is_ect() && !Ecn::NotEct.is_ect());
//! // A mark, as the bits of the header.
//! assert_eq!(tos & !0b11 | Ecn::Ce as u8, 0x03);
//! ```

#![no_std]
#[cfg(any(test, feature = "std"))]
extern crate std;

mod amount;
#[cfg(feature = "std")]
mod clock;
mod ecn;
mod probability;
mod time;

pub use amount::{Bytes, Rate};
#[cfg(feature = "std")]
pub use clock::Clock;
pub use ecn::Ecn;
pub use probability::Probability;
pub use time::{Instant, SignedSpan, Span};

/// The page on crates.io: its example is tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
