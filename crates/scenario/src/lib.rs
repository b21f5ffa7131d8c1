//! The scenario: what a user writes once and every engine runs.
//!
//! [`Scenario`] is the TOML file, read and checked; [`Scenario::plan`] makes it explicit for one seed as a [`Plan`].
//! Every mistake is an [`Error`] of one line that names file, line and key. `docs/formats/scenario.md` describes the
//! format.
//!
//! ```
//! use aqumen_scenario::Scenario;
//!
//! let text = r#"
//!     name = "small"
//!     duration = "10s"
//!     aqm = "pie"
//!
//!     [topology]
//!     preset = "dumbbell"
//!     bottleneck = { rate = "10Mbit", delay = "20ms", buffer = "100pkt" }
//!     access = { rate = "1Gbit", delay = "5ms" }
//!
//!     [[flows]]
//!     name = "bulk"
//!     count = 3
//!     transport = "linux"
//!     start = ["0s", "1s"]
//! "#;
//! let scenario = Scenario::parse(text, "small.toml")?;
//!
//! // A plan has every link and flow by itself, placed by the seed; AQMs come by SPEC.
//! let plan = scenario.plan(1, Some(&scenario.aqm("codel:target=10ms")?))?;
//! assert_eq!(plan.flows.len(), 3);
//! let bottleneck = plan.links.iter().find(|link| link.record).expect("it is recorded");
//! assert_eq!((bottleneck.aqm.name.as_str(), bottleneck.rates[0].1.as_bps()), ("codel", 10_000_000));
//!
//! // A value can be changed as on the command line; a mistake is told with its place.
//! let wider = scenario.with("bottleneck.rate", "20Mbit")?;
//! assert_eq!(Scenario::parse(&wider.to_toml(), "again.toml")?.plan(1, None)?, wider.plan(1, None)?);
//! let mistake = scenario.with("bottleneck.rate", "20Mb").unwrap_err().to_string();
//! assert!(mistake.contains("topology.bottleneck.rate = \"20Mb\": unknown unit"), "{mistake}");
//! # Ok::<(), aqumen_scenario::Error>(())
//! ```
//!
//! - `units` reads "10Mbit"; `tree` knows the line of every value; `field` reads, writes and describes a value;
//! - `value` are values of parameters, as written and as read; `schema` declares the tables, `links` those of links,
//!   `parking_lot` one of its presets, `spread` the times that differ from flow to flow, `transport`, `traffic` (with
//!   its laws of chance, `law`) and `spec` those of transports, applications and AQMs, `sweep` variants and axes;
//! - `cells` makes one scenario of variants and points of a sweep, `until` its beginning alone;
//! - `design` is a scenario made of a network's numbers alone;
//! - `mmpp` is the other file: a model for the queueing analysis; `replay` the settings of a replayed capture;
//! - `channel` has the media and losses of links, `rates` reads their traces, `line` is what the plan holds of them,
//!   `choice` of their AQM;
//! - `check` compares values with one another, `network` and `routes` lay out the links, `expand` places the flows.

#![forbid(unsafe_code)]

mod cells;
pub mod channel;
mod check;
mod choice;
pub mod cost;
pub mod design;
mod error;
mod expand;
mod field;
mod files;
mod json;
pub mod law;
mod line;
mod links;
pub mod list;
pub mod memory;
pub mod mmpp;
mod network;
mod offered;
mod parking_lot;
mod plan;
mod rates;
pub mod replay;
mod routes;
mod scenario;
pub mod schema;
mod spec;
mod spread;
pub mod streams;
mod sweep;
pub mod traffic;
mod transport;
mod tree;
mod units;
mod until;
mod value;

pub use check::{FLOWS_MAX, SAMPLES_MAX};
pub use choice::AqmChoice;
pub use error::Error;
pub use field::{Buffer, Interval, Name, Named, Packets, RATE_MAX, TIME_MAX};
pub use files::Files;
pub use line::{Line, Medium, Opportunities};
pub use plan::{Flow, Group, Link, Plan, Window};
pub use scenario::{Outside, Scenario};
pub use spec::{AqmSpec, Profile};
pub use spread::{Shape, Spread};
pub use sweep::{Axis, Changes};
pub use traffic::Traffic;
pub use transport::{Ends, PRESETS, Preset, Protocol, Transport};
pub use units::{read_bytes, read_packets, read_rate, read_span};
pub use value::{OwnedValue, Written};
