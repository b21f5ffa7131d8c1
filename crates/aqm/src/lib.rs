//! Active queue management: which packets a congested queue marks or drops.
//!
//! Invariant: the crate reads no clock, owns no random source, performs no input or output, sees no packet contents,
//! and neither allocates nor fails per packet.
#![doc = include_str!("tutorial.md")]
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod algorithm;
mod anti_windup;
mod any_aqm;
mod any_qdisc;
mod catalogue;
mod classics;
mod custom;
mod custom_qdisc;
mod design;
mod fifo;
mod host;
mod law;
mod multi;
mod packet;
mod papers;
mod params;
mod profiles;
mod qdisc;
pub mod registry;
mod sampled;
mod signal_gaps;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod theory;
pub mod threshold;
mod timer;
mod today;
mod transfer;

pub use algorithm::{Algorithm, Profile, QueueKind};
pub use anti_windup::{AntiWindup, AntiWindupLaw};
pub use any_aqm::AnyAqm;
pub use any_qdisc::AnyQdisc;
pub use catalogue::{Catalogue, NameTakenError};
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
pub use custom::CustomAqm;
pub use custom_qdisc::CustomQdisc;
pub use design::estimators::{EstimatorParams, Estimators};
pub use design::passive_rtt::PassiveRtt;
pub use design::plant::TcpPlant;
pub use design::rls::{Rls, RlsParams};
pub use design::self_tuning::{NetworkEstimate, RoundTrip, SelfTuned, Tunable};
pub use design::target::Target;
pub use fifo::{Account, Fifo, ServiceRecord};
pub use host::{Aqm, Coin, Cx, Draw, DropReason, Hooks, Limit, QueueView, Totals, Verdict};
pub use law::{MAX_LOOPS, Observation, SampledLaw};
pub use multi::cake::{AckFilter, Cake, CakeParams, Cells, Framing, Isolation, Tins};
pub use multi::drr::Drr;
pub use multi::dualpi2::{DualPi2, DualPi2Params, DualScheduler, L4sMarking};
pub use multi::fq::{BacklogScope, DropUnit, FlowQueues, FqParams, OverflowVictim};
pub use multi::fq_codel::FqCodel;
pub use multi::fq_pie::FqPie;
pub use multi::hash::FlowHash;
pub use multi::queue_list::{ListLinks, QueueList};
pub use multi::sfq::{Sfq, SfqParams};
pub use multi::store::{Length, Store, Waiting};
pub use packet::{Coverage, Packet, PureAck, SackDigest};
pub use papers::aaqm::{Aaqm, AaqmParams};
pub use papers::aqm_mo::{AqmMo, AqmMoParams};
pub use papers::arm_pfc::{ArmPfc, ArmPfcParams, InputForm, Variant};
pub use papers::arm_pfc_adaptive::{ArmPfcAdaptive, IdentifiedArmPfc};
pub use papers::paqm::{Paqm, PaqmParams};
pub use papers::st_aqm_mo::TunableAqmMo;
pub use papers::st_arm_pfc::TunableArmPfc;
pub use papers::st_pi2::{PacketCounts, PacketRule, StPi2, StPi2Params};
pub use papers::stpi::TunablePi;
pub use papers::stred::TunableRed;
pub use papers::{aaqm, aqm_mo, arm_pfc, arm_pfc_adaptive, paqm, stpi};
pub use params::{
    Bound, DefaultValue, Kind, Network, PERIOD_MIN, Param, ParamError, Requirement, Settings, Unit, Value,
};
pub use qdisc::{Backlog, Fates, Handle, Qdisc, QdiscVisitor, SingleQueueEquivalent};
pub use sampled::{Observer, SampledAqm};
pub use signal_gaps::{GapTail, SignalGaps};
pub use theory::{
    DesignReport, Equilibrium, EstimateRatios, FluidModel, MaxPSteps, QueueOperatingPoint, SafeguardLimits,
    SignalProcess, Theory,
};
pub use threshold::{Threshold, ThresholdAqm};
pub use today::cobalt::{Cobalt, CobaltParams, CobaltState};
pub use today::codel::{Arithmetic, Codel, CodelLaw, CodelParams, CodelState};
pub use today::pi2::{Pi2, Pi2Law, Pi2Params};
pub use today::pie::{DelayPi, DelaySource, Pie, PieLaw, PieLawParams, PieParams, RateMeter, Safeguards};
pub use transfer::Transfer;

/// The page on crates.io: its example is tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
