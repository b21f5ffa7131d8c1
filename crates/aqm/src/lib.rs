//! Active queue management: which packets a congested queue marks or drops.
//!
//! A host owns packets, queue, clock and randomness; an algorithm only decides. There are three interfaces:
//!
//! - [`Aqm`]: per-packet decisions for one queue, each a [`Verdict`].
//! - [`SampledLaw`]: a control law, stepped periodically with an [`Observation`]. The packet engine, the fluid engine,
//!   the linear analysis and an eBPF controller use the same law. [`SampledAqm`] turns it into an [`Aqm`].
//! - [`Qdisc`]: the queue discipline of a link: one queue with an [`Aqm`] ([`Fifo`]), or several queues with a
//!   scheduler. Packets are opaque handles.
//!
//! Algorithms are in `classics`, `papers`, `today` (deployed ones) and `multi` (several queues); `design` holds plant
//! models and estimators. [`registry`] lists all algorithms with their parameters, and builds them by name.
//!
//! # Example
//!
//! The host reports arrivals and a free link to the discipline, which reports marks and drops:
//!
//! ```
//! use aqumen_aqm::registry::AnyQdisc;
//! use aqumen_aqm::{Catalogue, Draw, DropReason, Fates, Handle, Limit, Network, Packet, Qdisc, Value};
//! use aqumen_units::{Ecn, Instant, Rate, Span};
//!
//! /// The host's random numbers; CoDel draws none.
//! struct ConstantDraw;
//! impl Draw for ConstantDraw {
//!     fn uniform(&mut self) -> f64 {
//!         0.5
//!     }
//! }
//!
//! /// Records marks.
//! #[derive(Default)]
//! struct MarkLog {
//!     marked: Vec<Handle>,
//! }
//! impl Fates for MarkLog {
//!     fn marked(&mut self, handle: Handle) {
//!         self.marked.push(handle);
//!     }
//!     fn dropped(&mut self, _: Handle, _: DropReason) {}
//! }
//!
//! let link = Rate::from_bps(1_000_000);
//! let network = Network {
//!     capacity: link,
//!     flows: 1.0,
//!     base_rtt_s: 0.1,
//!     target_pkts: 10.0,
//!     packet_bytes: 1000.0,
//!     link_rate: link,
//!     buffer_pkts: 100.0,
//! };
//! let values = [("target", Value::Number(0.005)), ("interval", Value::Number(0.1))];
//! let built = Catalogue::BUILT_IN.build_qdisc("codel", &values, &network, Limit::packets(100));
//! let mut queue: AnyQdisc = built.expect("a known name").expect("valid parameters");
//!
//! // Forty packets arrive at once; the link sends one every 8 ms.
//! let (mut log, mut now) = (MarkLog::default(), Instant::ZERO);
//! for handle in 0..40 {
//!     let packet = Packet { bytes: 1000, ecn: Ecn::Ect0, ..Packet::default() };
//!     queue.enqueue(handle, &packet, now, &mut ConstantDraw, &mut log);
//! }
//! while queue.dequeue(now, &mut ConstantDraw, &mut log).is_some() {
//!     now += Span::from_millis(8);
//!     queue.transmitted(Span::from_millis(8), now);
//! }
//! // Sojourn times exceed the target from 8 ms on. One interval later CoDel marks the first packet.
//! assert_eq!(log.marked[0], 14);
//! assert_eq!(queue.totals().marked, log.marked.len() as u64);
//! ```
//!
//! A custom algorithm implements [`Aqm`] or [`SampledLaw`]; [`Catalogue::with`] gives it a name.
//!
//! Invariant: the crate reads no clock, owns no random source, performs no input or output, sees no packet contents,
//! and neither allocates nor fails per packet.

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
#[cfg(test)]
mod testing;
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
pub use design::estimators::{EstimatorParams, Estimators};
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
pub use multi::sfq::{Sfq, SfqParams};
pub use packet::{Coverage, Packet, PureAck, SackDigest};
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
pub use qdisc::{Backlog, Fates, Handle, Qdisc, QdiscVisitor, SingleQueueEquivalent};
pub use sampled::{Observer, SampledAqm};
pub use signal_gaps::{GapTail, SignalGaps};
pub use theory::{
    DesignReport, Equilibrium, FluidModel, MaxPSteps, QueueOperatingPoint, SafeguardLimits, SignalProcess, Theory,
};
pub use threshold::{Threshold, ThresholdAqm};
pub use today::cobalt::{Cobalt, CobaltParams, CobaltState};
pub use today::codel::{Arithmetic, Codel, CodelLaw, CodelParams, CodelState};
pub use today::pi2::{Pi2, Pi2Law, Pi2Params};
pub use today::pie::{DelayPi, DelaySource, Pie, PieLaw, PieLawParams, PieParams, RateMeter, Safeguards};
pub use transfer::Transfer;
