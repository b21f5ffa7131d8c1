//! List of single-queue algorithms, and an enum over them.
//!
//! To add an algorithm, write its file with a registry entry `ALGORITHM` and a constructor `from_settings`, then add it
//! to the list below. Disciplines of several queues are listed with [`AnyQdisc`](crate::registry::AnyQdisc).

use alloc::boxed::Box;
use core::fmt;

use aqumen_units::{Instant, Probability, Span};

use crate::algorithm::Algorithm;
use crate::classics::{ared, ared_feng, avq, blue, droptail, fixed, pi, red, rem};
use crate::papers::{aaqm, aqm_mo, arm_pfc, arm_pfc_adaptive, paqm, st_aqm_mo, st_arm_pfc, st_pi2, stpi, stred};
use crate::today::{cobalt, codel, pi2, pie};
use crate::{
    Aaqm, Aqm, AqmMo, Ared, AredFeng, ArmPfc, ArmPfcAdaptive, Avq, Blue, Cobalt, Codel, Coin, CustomAqm, Cx, Draw,
    DropTail, Fixed, Hooks, Network, Packet, Paqm, ParamError, Pi, Pi2, Pie, Red, Rem, SampledAqm, SampledLaw,
    SelfTuned, Settings, StPi2, Theory, ThresholdAqm, Totals, TunableAqmMo, TunableArmPfc, TunablePi, TunableRed,
    Value, Verdict,
};

macro_rules! algorithms {
    ($($variant:ident($type:ty) = $module:ident),* $(,)?) => {
        /// Any single-queue algorithm, dispatched statically except for custom ones.
        #[allow(missing_docs, reason = "each variant is the algorithm of its name")]
        #[derive(Clone, Debug)]
        #[allow(clippy::large_enum_variant, reason = "one per queue; an indirection would cost every packet")]
        #[non_exhaustive]
        pub enum AnyAqm {
            $($variant($type),)*
            Custom(CustomAqm),
            Threshold(Box<ThresholdAqm<AnyAqm>>),
        }

        /// Built-in single-queue algorithms, in display order. [`registry::algorithms`](crate::registry::algorithms)
        /// adds those of several queues.
        pub const ALGORITHMS: &[Algorithm] = &[$($module::ALGORITHM),*];

        /// Builds the built-in single-queue algorithm called `name`; `None` if there is no such name.
        pub(crate) fn build(
            name: &str,
            values: &[(&str, Value<'_>)],
            network: &Network,
        ) -> Option<Result<AnyAqm, ParamError>> {
            $(if name == $module::ALGORITHM.name {
                return Some(
                    Settings::check(values, $module::ALGORITHM.params)
                        .and_then(|settings| <$type>::from_settings(&settings, network))
                        .map(AnyAqm::$variant),
                );
            })*
            None
        }

        impl AnyAqm {
            /// [`Aqm::take_over`] from any algorithm.
            fn take_over_any(&mut self, old: Option<&AnyAqm>, now: Instant, totals: &Totals) {
                match (self, old) {
                    $((AnyAqm::$variant(new), Some(AnyAqm::$variant(old))) => new.take_over(Some(old), now, totals),)*
                    (AnyAqm::Custom(new), Some(AnyAqm::Custom(old))) => new.take_over(Some(old), now, totals),
                    (AnyAqm::Threshold(new), Some(AnyAqm::Threshold(old))) => {
                        new.take_over(Some(old.as_ref()), now, totals);
                    }
                    $((AnyAqm::$variant(new), _) => new.take_over(None, now, totals),)*
                    (AnyAqm::Custom(new), _) => new.take_over(None, now, totals),
                    (AnyAqm::Threshold(new), _) => new.take_over(None, now, totals),
                }
            }
        }

        /// Evaluates `$body` with the inner algorithm.
        macro_rules! each {
            ($any:expr, $aqm:ident => $body:expr) => {
                match $any {
                    $(AnyAqm::$variant($aqm) => $body,)*
                    AnyAqm::Custom($aqm) => $body,
                    AnyAqm::Threshold($aqm) => $body,
                }
            };
        }
    };
}

algorithms! {
    DropTail(DropTail) = droptail,
    Fixed(Fixed) = fixed,
    Red(Red) = red,
    Ared(Ared) = ared,
    AredFeng(AredFeng) = ared_feng,
    Pi(SampledAqm<Pi>) = pi,
    Rem(Rem) = rem,
    Avq(Avq) = avq,
    Blue(Blue) = blue,
    ArmPfc(SampledAqm<ArmPfc>) = arm_pfc,
    ArmPfcAdaptive(SampledAqm<ArmPfcAdaptive>) = arm_pfc_adaptive,
    Paqm(SampledAqm<Paqm>) = paqm,
    AqmMo(SampledAqm<AqmMo>) = aqm_mo,
    Aaqm(SampledAqm<Aaqm>) = aaqm,
    StPi(SampledAqm<SelfTuned<TunablePi>>) = stpi,
    StRed(SampledAqm<SelfTuned<TunableRed>>) = stred,
    StArmPfc(SampledAqm<SelfTuned<TunableArmPfc>>) = st_arm_pfc,
    StAqmMo(SampledAqm<SelfTuned<TunableAqmMo>>) = st_aqm_mo,
    StPi2(StPi2) = st_pi2,
    Codel(Codel) = codel,
    Pie(Pie) = pie,
    Pi2(Pi2) = pi2,
    Cobalt(Cobalt) = cobalt,
}

impl AnyAqm {
    /// The algorithm that an adaptive one becomes in equilibrium, where signal probability `p` holds the queue at
    /// [`Theory::adaptation_center_pkts`]; and the adapted parameter with its value.
    pub fn adapted(&self, p: f64) -> Option<(AnyAqm, (&'static str, f64))> {
        let AnyAqm::Ared(aqm) = self else { return None };
        let red = aqm.adapted(p)?;
        let adapted = ("max_p_at_rest", red.params().curve.max_p());
        Some((AnyAqm::Red(red), adapted))
    }

    /// The law of an AQM that measures its network from packets, in a fluid of packets of `packet_bytes` whose flows
    /// have the round trip `rtt_s` without queueing; `None` for an AQM that needs no packets.
    pub fn in_fluid(&self, rtt_s: f64, packet_bytes: f64) -> Option<AnyAqm> {
        let AnyAqm::StPi2(aqm) = self else { return None };
        Some(AnyAqm::custom_law(aqm.in_fluid(rtt_s, packet_bytes), aqm.marks()))
    }
}

impl Aqm for AnyAqm {
    #[inline(always)]
    fn on_arrival<R: Draw>(&mut self, packet: &Packet, cx: &mut Cx<'_, R>) -> Verdict {
        each!(self, aqm => aqm.on_arrival(packet, cx))
    }

    fn on_overflow<R: Draw>(&mut self, packet: &Packet, cx: &mut Cx<'_, R>) {
        each!(self, aqm => aqm.on_overflow(packet, cx));
    }

    fn on_buffer_stolen(&mut self, packets: u32) {
        each!(self, aqm => aqm.on_buffer_stolen(packets));
    }

    #[inline]
    fn on_dequeue<R: Draw>(&mut self, packet: &Packet, sojourn: Span, cx: &mut Cx<'_, R>) -> Verdict {
        each!(self, aqm => aqm.on_dequeue(packet, sojourn, cx))
    }

    fn on_departure(&mut self, now: Instant) {
        each!(self, aqm => aqm.on_departure(now));
    }

    fn on_idle(&mut self, now: Instant) {
        each!(self, aqm => aqm.on_idle(now));
    }

    fn next_timer(&self) -> Option<Instant> {
        each!(self, aqm => aqm.next_timer())
    }

    fn on_timer<R: Draw>(&mut self, cx: &mut Cx<'_, R>) {
        each!(self, aqm => aqm.on_timer(cx));
    }

    fn probability(&self) -> Probability {
        each!(self, aqm => aqm.probability())
    }

    fn coin(&self) -> Option<Coin> {
        each!(self, aqm => aqm.coin())
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        each!(self, aqm => aqm.observe(visit));
    }

    fn hooks(&self) -> Hooks {
        each!(self, aqm => aqm.hooks())
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        each!(self, aqm => aqm.settings(visit));
    }

    fn notes(&self, tell: &mut dyn FnMut(fmt::Arguments<'_>)) {
        each!(self, aqm => aqm.notes(tell));
    }

    fn take_over(&mut self, old: Option<&Self>, now: Instant, totals: &Totals) {
        self.take_over_any(old, now, totals);
    }

    fn law_mut(&mut self) -> Option<&mut dyn SampledLaw> {
        each!(self, aqm => aqm.law_mut())
    }

    fn theory(&self) -> &dyn Theory {
        each!(self, aqm => aqm.theory())
    }
}
