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
//! The algorithms lie by their kind: `classics`, `papers`, `today` (what routers run now), `multi` (several queues); what designs
//! and self-tuning are made of lies in `design`. [`registry`] lists them by name, with their parameters, and builds them.
//!
//! Invariant: nothing here reads a clock, owns a random source, performs input or output, knows a packet's bytes, or
//! allocates per packet; and nothing can fail per packet.

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod algorithm;
mod any_aqm;
mod any_qdisc;
mod catalogue;
mod classics;
mod design;
mod fifo;
mod host;
mod law;
mod multi;
mod own;
mod packet;
mod papers;
mod params;
mod profiles;
mod qdisc;
pub mod registry;
mod sampled;
mod theory;
pub mod threshold;
mod timer;
mod today;
mod transfer;

pub use algorithm::{Algorithm, Profile, QueueKind};
pub use any_aqm::AnyAqm;
pub use any_qdisc::AnyQdisc;
pub use catalogue::{Catalogue, NameTaken};
pub use classics::ared::{AdaptiveRed, AdaptiveRedLaw, Ared, FloydRule, MaxPRule};
pub use classics::ared_feng::{AredFeng, FengRule};
pub use classics::avq::{Avq, AvqForm, AvqParams, VirtualQueue};
pub use classics::blue::{Blue, BlueLaw};
pub use classics::droptail::DropTail;
pub use classics::fixed::Fixed;
pub use classics::pi::{Crossover, Pi, PiController, PiGains};
pub use classics::red::{Red, RedAverage, RedParams};
pub use classics::red_law::{RedCurve, RedLaw};
pub use classics::rem::{Rem, RemLaw, RemParams};
pub use design::estimators::{EstimatorParams, Estimators};
pub use design::plant::TcpPlant;
pub use design::rls::{Rls, RlsParams};
pub use design::self_tuning::{NetworkEstimate, RoundTrip, SelfTuned, Tunable};
pub use design::target::Target;
pub use fifo::{Account, Fifo};
pub use host::{Aqm, Cx, Draw, DropReason, Hooks, Limit, QueueView, Totals, Verdict};
pub use law::{MAX_LOOPS, Observation, SampledLaw};
pub use multi::cake::{AckFilter, Cake, CakeParams, Isolation, Tins};
pub use multi::drr::Drr;
pub use multi::dualpi2::{DualPi2, DualPi2Params, DualScheduler, L4sMarking};
pub use multi::fq::{FlowQueues, FqParams, GivesWay, Half, Shown};
pub use multi::fq_codel::FqCodel;
pub use multi::fq_pie::FqPie;
pub use multi::sfq::{Sfq, SfqParams};
pub use own::Own;
pub use packet::{Packet, PureAck};
pub use papers::aaqm::{Aaqm, AaqmParams};
pub use papers::aqm_mo::{AqmMo, AqmMoParams};
pub use papers::arm_pfc::{ArmPfc, ArmPfcParams, Variant};
pub use papers::arm_pfc_adaptive::{ArmPfcAdaptive, IdentifiedArmPfc};
pub use papers::paqm::{Paqm, PaqmParams};
pub use papers::st_aqm_mo::TunableAqmMo;
pub use papers::st_arm_pfc::TunableArmPfc;
pub use papers::stpi::TunablePi;
pub use papers::stred::TunableRed;
pub use papers::{aaqm, aqm_mo, arm_pfc, arm_pfc_adaptive, paqm, stpi};
pub use params::{
    Bound, DefaultValue, Kind, Network, PERIOD_MIN, Param, ParamError, Requirement, Settings, Unit, Value,
};
pub use qdisc::{Alone, Backlog, Fates, Handle, Qdisc};
pub use sampled::Sampled;
pub use theory::{AtRest, Average, Rests, Share, Theory, Told};
pub use threshold::{Threshold, Thresholded};
pub use today::cobalt::{Cobalt, CobaltParams, CobaltState};
pub use today::codel::{Codel, CodelLaw, CodelParams, CodelState, InverseRoot};
pub use today::pi2::{Pi2, Pi2Law, Pi2Params};
pub use today::pie::{DelayPi, DelaySource, Pie, PieLaw, PieLawParams, PieParams, RateMeter, Safeguards};
pub use transfer::Transfer;
