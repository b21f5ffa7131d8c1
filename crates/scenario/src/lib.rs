//! Scenarios: files that describe a network and its traffic, which every engine runs.
//!
//! [`Scenario`] is the TOML file, read and checked; [`Scenario::plan`] expands it for one seed to a [`Plan`]. An
//! [`Error`] is one line with file, line and key. `docs/formats/scenario.md` describes the format.
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
//! // A plan lists every link and flow, placed by the seed; AQMs are given by SPEC.
//! let plan = scenario.plan(1, Some(&scenario.aqm("codel:target=10ms")?))?;
//! assert_eq!(plan.flows.len(), 3);
//! let bottleneck = plan.links.iter().find(|link| link.record).expect("it is recorded");
//! assert_eq!((bottleneck.aqm.name.as_str(), bottleneck.rates[0].1.as_bps()), ("codel", 10_000_000));
//!
//! // Values can be changed as on the command line; errors name the key.
//! let wider = scenario.with("bottleneck.rate", "20Mbit")?;
//! assert_eq!(Scenario::parse(&wider.to_toml(), "again.toml")?.plan(1, None)?, wider.plan(1, None)?);
//! let mistake = scenario.with("bottleneck.rate", "20Mb").unwrap_err().to_string();
//! assert!(mistake.contains("topology.bottleneck.rate = \"20Mb\": unknown unit"), "{mistake}");
//! # Ok::<(), aqumen_scenario::Error>(())
//! ```
//!
//! - `units` reads "10Mbit"; `tree` has the line of every value; `field` reads, writes and describes values;
//! - `value`: values of parameters, as written and as read; `schema`: the tables; `links`: tables of links;
//! - `parking_lot`: a topology preset; `spread`: times that differ between flows; `transport`, `traffic` (with the
//!   probability laws of `law`) and `spec`: transports, applications and AQMs; `sweep`: variants and axes;
//! - `cells` derives a scenario from variants and points of a sweep; `until` truncates a scenario;
//! - `design` makes a scenario from the nominal network of a design;
//! - `mmpp`: the model file of the queueing analysis; `replay`: settings of a replayed capture;
//! - `channel`: media and losses of links; `rates`: rate traces; `line` and `choice`: their form, and that of AQMs, in
//!   the plan;
//! - `check` checks values against each other; `network` and `routes` build the links; `expand` places the flows.

#![forbid(unsafe_code)]

mod cells;
pub mod channel;
mod check;
mod choice;
pub mod cost;
mod demand;
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
pub use field::{Buffer, Interval, Name, NameMap, Packets, RATE_MAX, TIME_MAX};
pub use files::Files;
pub use line::{Line, Medium, Opportunities};
pub use plan::{Flow, Group, Link, LinkPath, LinkSettings, Plan, PlanName, Window};
pub use scenario::{Extensions, Scenario};
pub use spec::{AqmSpec, Profile};
pub use spread::{Shape, Spread};
pub use sweep::{Axis, Changes};
pub use traffic::Traffic;
pub use transport::{Endpoints, PRESETS, Preset, Protocol, Transport};
pub use units::{read_bytes, read_packets, read_rate, read_span};
pub use value::{OwnedValue, RawValue};
