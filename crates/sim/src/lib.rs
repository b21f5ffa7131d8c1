//! Packet engine: simulates every packet of every flow, event by event, in integer nanoseconds.
//!
//! [`run`] takes a [`Plan`] (a scenario made explicit for one seed) and returns a [`RunResult`]. A plan gives equal
//! bits on any machine; only the cost differs.
//!
//! ```
//! use aqumen_scenario::Scenario;
//! use aqumen_sim::{Options, run};
//!
//! let text = r#"
//!     name = "small"
//!     duration = "5s"
//!     [topology]
//!     preset = "dumbbell"
//!     bottleneck = { rate = "4Mbit", delay = "10ms", buffer = "50pkt" }
//!     access = { rate = "100Mbit", delay = "5ms" }
//!     [[flows]]
//!     name = "bulk"
//!     count = 4
//!     transport = "modern"
//! "#;
//! let scenario = Scenario::parse(text, "small.toml")?;
//! let plan = scenario.plan(1, Some(&scenario.aqm("codel")?))?;
//! // The progress callback may stop the run.
//! let result = run(&plan, Options::default(), &mut |_: f64| true)?;
//! let bottleneck = &result.links["bottleneck"]["all"];
//! assert!(bottleneck.utilization > Some(0.9));
//! assert!(bottleneck.queue_mean_pkts < 25.0);
//! assert!(result.flows["bulk"]["all"].goodput_bps > 3.4e6);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`run`] goes from start to end; a [`Session`] stops where its user wants.
//!
//! Reading order: `engine` (logical processes and their mailboxes), `network` (ports and `paths` of a plan), `calendar`
//! (the event queue of a process), `measure` and `report` (metrics). Traffic sources are in the crate `aqumen-traffic`;
//! ports, media and losses are in `aqumen-network`.

mod calendar;
mod engine;
mod error;
mod event;
mod fetch;
mod measure;
mod network;
mod options;
mod paths;
mod report;
mod schedule;
mod session;
mod trace;

use aqumen_result::RunResult;
use aqumen_scenario::Plan;

pub use error::Error;
pub use options::{Options, Partitioning, Progress};
pub use session::{FlowState, Session, Stop, WaitingPacket};

/// Runs `plan` on the packet engine. The caller measures the time that it takes: engines read no clock.
pub fn run(plan: &Plan, options: Options<'_>, progress: &mut dyn Progress) -> Result<RunResult, Error> {
    let trace = options.trace.map(|file| trace::Trace::create(plan, file)).transpose()?;
    let style = aqumen_network::port::Style { collapse: !options.every_hop, served: options.every_service };
    let finished = engine::Engine::new(plan, style, options.processes, options.threads, trace)?.run(progress)?;
    Ok(report::result(plan, finished))
}
