//! Active queue management: which packets a congested queue marks or drops.
//!
//! The host owns packets, queue, clock and randomness; an algorithm answers. Three interfaces carry everything:
//!
//! - [`Aqm`]: the per-packet decisions of a single queue. [`Verdict`] is all it can say.
//! - [`SampledLaw`]: a control law by itself, stepped at its own periods with an [`Observation`]. The packet engine, the
//!   fluid engine, the linear analysis and an eBPF controller drive this one object; [`Sampled`] makes an [`Aqm`] of it.
//! - [`Qdisc`]: the discipline of a link over opaque packet handles: one queue with an [`Aqm`] ([`Fifo`]), or many with
//!   a scheduler.
//!
//! [`registry`] lists the algorithms by name, with their parameters, and builds them.
//!
//! Invariant: nothing here reads a clock, owns a random source, performs input or output, knows a packet's bytes, or
//! allocates per packet; and nothing can fail per packet.

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod any_qdisc;
mod ared;
mod ared_feng;
pub mod arm_pfc;
mod avq;
mod blue;
mod cake;
mod cobalt;
mod codel;
mod droptail;
mod drr;
mod dualpi2;
mod fq;
mod fq_codel;
mod fq_pie;
mod host;
mod law;
mod multi;
mod packet;
mod params;
mod pi;
mod pi2;
mod pie;
mod plant;
mod qdisc;
mod red;
pub mod registry;
mod rem;
mod sfq;
mod timer;

pub use ared::{AdaptiveRed, AdaptiveRedLaw, Ared, FloydRule, MaxPRule};
pub use ared_feng::{AredFeng, FengRule};
pub use arm_pfc::{ArmPfc, ArmPfcParams, Variant};
pub use avq::{Avq, AvqForm, AvqParams, VirtualQueue};
pub use blue::{Blue, BlueLaw};
pub use cake::{Cake, Isolation};
pub use cobalt::{Cobalt, CobaltParams, CobaltState};
pub use codel::{Codel, CodelLaw, CodelParams, CodelState};
pub use droptail::DropTail;
pub use drr::Drr;
pub use dualpi2::{DualPi2, DualPi2Params, DualScheduler, L4sMarking};
pub use fq::{FlowQueues, FqParams};
pub use fq_codel::FqCodel;
pub use fq_pie::FqPie;
pub use host::{Aqm, Cx, Draw, DropReason, Hooks, Limit, QueueView, Totals, Verdict};
pub use law::{MAX_LOOPS, Observation, Sampled, SampledLaw};
pub use packet::Packet;
pub use params::{Bound, DefaultValue, Kind, Network, Param, ParamError, Requirement, Settings, Unit, Value};
pub use pi::{Crossover, Pi, PiController, PiGains};
pub use pi2::{Pi2, Pi2Law, Pi2Params};
pub use pie::{DelayPi, DelaySource, Pie, PieLaw, PieLawParams, PieParams, RateMeter};
pub use plant::TcpPlant;
pub use qdisc::{Backlog, Fates, Fifo, Handle, Qdisc};
pub use red::{Red, RedAverage, RedCurve, RedParams};
pub use rem::{Rem, RemLaw, RemParams};
pub use sfq::Sfq;
