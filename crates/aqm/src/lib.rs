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

pub mod aaqm;
mod any_qdisc;
pub mod aqm_mo;
mod ared;
mod ared_feng;
pub mod arm_pfc;
pub mod arm_pfc_adaptive;
mod avq;
mod blue;
mod cake;
mod cobalt;
mod codel;
mod droptail;
mod drr;
mod dualpi2;
mod estimators;
mod fixed;
mod fq;
mod fq_codel;
mod fq_pie;
mod host;
mod law;
mod multi;
mod packet;
pub mod paqm;
mod params;
mod pi;
mod pi2;
mod pie;
mod plant;
mod qdisc;
mod red;
pub mod registry;
mod rem;
mod rls;
mod self_tuning;
mod sfq;
mod st_aqm_mo;
mod st_arm_pfc;
pub mod stpi;
mod stred;
mod target;
pub mod threshold;
mod timer;

pub use aaqm::{Aaqm, AaqmParams};
pub use aqm_mo::{AqmMo, AqmMoParams};
pub use ared::{AdaptiveRed, AdaptiveRedLaw, Ared, FloydRule, MaxPRule};
pub use ared_feng::{AredFeng, FengRule};
pub use arm_pfc::{ArmPfc, ArmPfcParams, Variant};
pub use arm_pfc_adaptive::{ArmPfcAdaptive, IdentifiedArmPfc};
pub use avq::{Avq, AvqForm, AvqParams, VirtualQueue};
pub use blue::{Blue, BlueLaw};
pub use cake::{AckFilter, Cake, CakeParams, Isolation, Tins};
pub use cobalt::{Cobalt, CobaltParams, CobaltState};
pub use codel::{Codel, CodelLaw, CodelParams, CodelState, InverseRoot};
pub use droptail::DropTail;
pub use drr::Drr;
pub use dualpi2::{DualPi2, DualPi2Params, DualScheduler, L4sMarking};
pub use estimators::{EstimatorParams, Estimators};
pub use fixed::Fixed;
pub use fq::{FlowQueues, FqParams, GivesWay, Half, Shown};
pub use fq_codel::FqCodel;
pub use fq_pie::FqPie;
pub use host::{Aqm, Cx, Draw, DropReason, Hooks, Limit, QueueView, Totals, Verdict};
pub use law::{MAX_LOOPS, Observation, Sampled, SampledLaw};
pub use packet::{Packet, PureAck};
pub use paqm::{Paqm, PaqmParams};
pub use params::{
    Bound, DefaultValue, Kind, Network, PERIOD_MIN, Param, ParamError, Requirement, Settings, Unit, Value,
};
pub use pi::{Crossover, Pi, PiController, PiGains};
pub use pi2::{Pi2, Pi2Law, Pi2Params};
pub use pie::{DelayPi, DelaySource, Pie, PieLaw, PieLawParams, PieParams, RateMeter, Safeguards};
pub use plant::TcpPlant;
pub use qdisc::{Backlog, Fates, Fifo, Handle, Qdisc};
pub use red::{Red, RedAverage, RedCurve, RedParams};
pub use rem::{Rem, RemLaw, RemParams};
pub use rls::{Rls, RlsParams};
pub use self_tuning::{NetworkEstimate, RoundTrip, SelfTuned, Tunable};
pub use sfq::{Sfq, SfqParams};
pub use st_aqm_mo::TunableAqmMo;
pub use st_arm_pfc::TunableArmPfc;
pub use stpi::TunablePi;
pub use stred::TunableRed;
pub use target::Target;
pub use threshold::{Threshold, Thresholded};
