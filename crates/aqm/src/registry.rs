//! The algorithms by name: their parameter tables, and how one is built from what an operator gave.
//!
//! To add an algorithm: write its file with an `ALGORITHM` row and a `from_settings`, then add it to [`AnyAqm`] and to the
//! list below.

use alloc::boxed::Box;

use aqumen_units::{Instant, Probability, Span};

use crate::{
    Aqm, Cx, Draw, DropTail, Hooks, MAX_LOOPS, Network, Observation, Packet, Param, ParamError, Sampled, SampledLaw,
    Settings, Value, Verdict, droptail,
};

/// An algorithm's row in the registry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Algorithm {
    /// The name users type.
    pub name: &'static str,
    /// The name users read.
    pub title: &'static str,
    /// One line on what it does.
    pub summary: &'static str,
    /// The paper or RFC it follows.
    pub reference: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
}

/// A law that came from outside this crate (a Python subclass, a test).
pub type ForeignLaw = Box<dyn SampledLaw + Send>;

macro_rules! algorithms {
    ($($variant:ident($type:ty) = $module:ident),* $(,)?) => {
        /// Any algorithm of the registry, or a law from outside: chosen when a run is set up, dispatched without
        /// indirection.
        #[allow(missing_docs, reason = "each variant is the algorithm of its name")]
        #[derive(Debug)]
        pub enum AnyAqm {
            $($variant($type),)*
            Foreign(Sampled<Foreign>),
        }

        /// Every algorithm, in the order in which lists show them.
        pub const ALGORITHMS: &[Algorithm] = &[$($module::ALGORITHM),*];

        /// The algorithm called `name` with the operator's `values`, designed for `network` where they leave it open.
        /// `None` if there is no such algorithm.
        pub fn build(
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

        /// Runs `$body` with the algorithm inside, whatever it is.
        macro_rules! each {
            ($any:expr, $aqm:ident => $body:expr) => {
                match $any {
                    $(AnyAqm::$variant($aqm) => $body,)*
                    AnyAqm::Foreign($aqm) => $body,
                }
            };
        }
    };
}

algorithms! {
    DropTail(DropTail) = droptail,
}

/// The row of the algorithm called `name`.
pub fn find(name: &str) -> Option<&'static Algorithm> {
    ALGORITHMS.iter().find(|algorithm| algorithm.name == name)
}

/// A [`ForeignLaw`] as a law: the indirection is paid once a sample, not once a packet.
pub struct Foreign(pub ForeignLaw);

impl core::fmt::Debug for Foreign {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Foreign")
    }
}

impl SampledLaw for Foreign {
    fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
        self.0.periods()
    }

    fn step(&mut self, which: usize, seen: &Observation) -> Probability {
        self.0.step(which, seen)
    }

    fn initial(&self) -> Probability {
        self.0.initial()
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.0.observe(visit);
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        self.0.settings(visit);
    }
}

impl Aqm for AnyAqm {
    #[inline]
    fn on_arrival<R: Draw>(&mut self, packet: &Packet, cx: &mut Cx<'_, R>) -> Verdict {
        each!(self, aqm => aqm.on_arrival(packet, cx))
    }

    fn on_overflow<R: Draw>(&mut self, packet: &Packet, cx: &mut Cx<'_, R>) {
        each!(self, aqm => aqm.on_overflow(packet, cx));
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

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        each!(self, aqm => aqm.observe(visit));
    }

    fn hooks(&self) -> Hooks {
        each!(self, aqm => aqm.hooks())
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        each!(self, aqm => aqm.settings(visit));
    }
}
