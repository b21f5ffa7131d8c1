//! Control theory of TCP under active queue management, without packet simulation.
//!
//! - [`fluid`]: the nonlinear delay differential equations of windows and queues, driven by the same control laws as
//!   the packet engine;
//! - [`design`]: gains, operating point, margins and warnings of an AQM at a network;
//! - [`predict`]: a scenario's equilibrium; [`engine`]: the theory engine, which reports it as a run's result;
//! - [`response`]: response functions, mean window over signal probability;
//! - `sender`, `markov_chain`: senders, and the Markov chain of their windows at signals;
//! - `density`, `population`, `mean_field`: linear response and noise of many windows, and their loop;
//! - `parking_lot`: several links in series that share flows;
//! - `coupled`: two queues whose signals are coupled, DualPI2;
//! - [`linear`]: the loop around its operating point: frequency response and margins with the exact delay;
//! - `window`: Reno's mean window under random marks;
//! - `packet_noise`: packet noise of the queue; `spaced_signals`: with spaced signals; `describing_function`: through
//!   an average of the queue (RED, ARED); `pie_safeguard`: with PIE's safeguard;
//! - [`hopf`]: limit cycles that leave an equilibrium at the boundary of stability;
//! - [`maps`], [`boundary`], [`robust`]: stability over ranges of networks, its boundary as a curve, and designs that
//!   hold all over one;
//!
//! # A design and its margins
//!
//! ```
//! use aqumen_aqm::Network;
//! use aqumen_scenario::AqmChoice;
//! use aqumen_theory::design::{OperatingConditions, analyse};
//! use aqumen_theory::fluid::Model;
//! use aqumen_theory::response::Sender;
//! use aqumen_units::Rate;
//!
//! // 100 flows at 10 Mbit/s, 1250 packets/s; at a queue of 100 packets the round trip is 0.2 s + 0.08 s.
//! let rate = Rate::from_bps(10_000_000);
//! let network = Network {
//!     capacity: rate,
//!     flows: 100.0,
//!     base_rtt_s: 0.2,
//!     target_pkts: 100.0,
//!     packet_bytes: 1000.0,
//!     link_rate: rate,
//!     buffer_pkts: 300.0,
//! };
//! let conditions = OperatingConditions {
//!     model: Model::Hollot,
//!     flows: 100.0,
//!     capacity_pps: 1250.0,
//!     unresponsive_pps: 0.0,
//!     transfer_rtts: 0.0,
//!     base_rtt_s: 0.2,
//!     buffer_pkts: 300.0,
//!     sender: Sender::reno(),
//! };
//! let found = analyse(&AqmChoice::builtin("pi", Vec::new(), network), &conditions)?;
//! // W = R C / N = 3.5 packets, p = 2 / W^2 = 16.3 %.
//! assert!((found.operating_point.at.window_pkts - 3.5).abs() < 1e-9);
//! assert!((found.operating_point.at.probability - 2.0 / 12.25).abs() < 1e-9);
//! assert!(found.margins.expect("PI is a controller").exact.stable);
//! # Ok::<(), aqumen_theory::Error>(())
//! ```
//!
//! Invariant: nothing here knows packets; control laws and their parameters come
//! from `aqumen-aqm`.

#![forbid(unsafe_code)]

pub mod design;
pub mod engine;
mod equilibrium;
mod error;
pub mod fluid;
pub mod linear;
mod multi;
mod noise;
mod nonlinear;
pub mod predict;
mod root_finding;
mod synthesis;
#[cfg(test)]
mod testing;

pub use equilibrium::response;
pub use error::Error;
pub use nonlinear::{cycle, hopf};
pub use synthesis::{boundary, maps, robust};
