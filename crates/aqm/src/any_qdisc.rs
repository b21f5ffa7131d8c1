//! Enum over all queue disciplines: one queue with any AQM, or several queues.

use core::fmt;

use aqumen_units::{Instant, Probability, Rate, Span};

use crate::algorithm::Algorithm;
use crate::any_aqm::AnyAqm;
use crate::multi::{cake, drr, dualpi2, fq_codel, fq_pie, sfq};
use crate::{
    Backlog, Cake, CustomQdisc, Draw, Drr, DualPi2, Fates, Fifo, FqCodel, FqPie, Handle, Limit, Network, Packet,
    ParamError, Qdisc, QdiscVisitor, Requirement, Settings, Sfq, SingleQueueEquivalent, Totals, Value,
};

macro_rules! disciplines {
    ($($variant:ident($type:ty) = $module:ident),* $(,)?) => {
        /// Any queue discipline, dispatched statically.
        #[allow(missing_docs, reason = "each variant is the discipline of its name")]
        #[derive(Clone, Debug)]
        #[allow(clippy::large_enum_variant, reason = "one per link; an indirection would cost every packet")]
        #[non_exhaustive]
        pub enum AnyQdisc {
            /// One queue, first in, first out, with an AQM.
            Fifo(Fifo<AnyAqm>),
            /// A custom discipline of several queues.
            Custom(CustomQdisc),
            $($variant($type),)*
        }

        /// Disciplines of several queues, in display order.
        pub(crate) const MULTI_QUEUE: &[Algorithm] = &[$($module::ALGORITHM),*];

        /// Builds the discipline of several queues called `name`; `None` if there is no such name.
        pub(crate) fn build(
            name: &str,
            values: &[(&str, Value<'_>)],
            network: &Network,
            limit: Limit,
        ) -> Option<Result<AnyQdisc, ParamError>> {
            $(if name == $module::ALGORITHM.name {
                return Some(
                    Settings::check(values, $module::ALGORITHM.params)
                        .and_then(|settings| <$type>::from_settings(&settings, network, limit))
                        .map(AnyQdisc::$variant),
                );
            })*
            None
        }

        impl AnyQdisc {
            /// Takes the parameters of `new`, the same discipline built with other parameters, at `now`; packets and
            /// state stay. A single queue may change to any algorithm. Other changes are ignored, and so is a change
            /// of a custom discipline: check [`fixed`](Self::fixed) before the run.
            pub fn retune(&mut self, new: AnyQdisc, now: Instant) {
                match (self, new) {
                    (AnyQdisc::Fifo(old), AnyQdisc::Fifo(new)) => old.replace_aqm(new.into_aqm(), now),
                    $((AnyQdisc::$variant(old), AnyQdisc::$variant(new)) => old.retune(new, now),)*
                    _ => {}
                }
            }
        }

        /// Evaluates `$body` with the inner discipline.
        macro_rules! each {
            ($any:expr, $qdisc:ident => $body:expr) => {
                match $any {
                    AnyQdisc::Fifo($qdisc) => $body,
                    AnyQdisc::Custom($qdisc) => $body,
                    $(AnyQdisc::$variant($qdisc) => $body,)*
                }
            };
        }
    };
}

disciplines! {
    FqCodel(FqCodel) = fq_codel,
    FqPie(FqPie) = fq_pie,
    DualPi2(DualPi2) = dualpi2,
    Cake(Cake) = cake,
    Sfq(Sfq) = sfq,
    Drr(Drr) = drr,
}

/// Settings that assign packets to queues, and cannot change while packets wait.
const FIXED: [&str; 4] = ["queues", "ways", "isolation", "tins"];

impl AnyQdisc {
    /// Calls `visitor` with the inner discipline, whose type it knows: one match for a series of calls.
    #[inline]
    pub fn visit<V: QdiscVisitor>(&mut self, visitor: V) -> V::Output {
        if let AnyQdisc::Fifo(queue) = self {
            return queue.visit(visitor);
        }
        each!(self, qdisc => visitor.visit(qdisc))
    }

    /// One queue with `aqm` and capacity `limit`.
    pub fn fifo(aqm: AnyAqm, limit: Limit) -> Self {
        AnyQdisc::Fifo(Fifo::new(aqm, limit))
    }

    /// A custom discipline of several queues. Its parameters cannot change during a run.
    pub fn custom<Q: Qdisc + Clone + Send + 'static>(qdisc: Q) -> Self {
        AnyQdisc::Custom(CustomQdisc::new(qdisc))
    }

    /// Error for the first setting of `new` that cannot change while packets wait: of a custom discipline, any.
    pub fn fixed(&self, new: &AnyQdisc) -> Result<(), ParamError> {
        let any = matches!(self, AnyQdisc::Custom(_));
        let mut result = Ok(());
        new.settings(&mut |name, value| {
            if result.is_err() || !any && !FIXED.contains(&name) {
                return;
            }
            let mut same = true;
            self.settings(&mut |key, current| same &= key != name || current == value);
            if !same {
                result = Err(ParamError::new(name, value, Requirement::Relation("cannot change during the run")));
            }
        });
        result
    }

    /// Number of queues that one timer call updates.
    pub fn updated_queues(&self) -> usize {
        match self {
            AnyQdisc::FqPie(queues) => queues.queues(),
            _ => 1,
        }
    }

    /// Whether its algorithm, or the discipline itself, is a custom one.
    pub fn is_custom(&self) -> bool {
        match self {
            AnyQdisc::Fifo(fifo) => matches!(fifo.aqm(), AnyAqm::Custom(_)),
            other => matches!(other, AnyQdisc::Custom(_)),
        }
    }

    /// Mean period of the first timer calls of an empty queue; `None` without a timer.
    pub fn update_period(mut self) -> Option<Span> {
        const CALLS: u64 = 8;
        /// No timer depends on random numbers.
        struct ConstantDraw;
        impl Draw for ConstantDraw {
            fn uniform(&mut self) -> f64 {
                0.5
            }
        }
        let first = self.next_timer()?;
        // A custom algorithm may have side effects, so its timer is not called here.
        let calls = if self.is_custom() { 0 } else { CALLS };
        let (mut last, mut called) = (first, 0);
        while called < calls {
            self.on_timer(last, &mut ConstantDraw);
            let Some(next) = self.next_timer() else { break };
            (last, called) = (next, called + 1);
        }
        Some(if called == 0 { first - Instant::ZERO } else { (last - first) / called })
    }

    /// Memory in bytes, with what it reserved on the heap; without the heap of a custom discipline.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + match self {
                AnyQdisc::Custom(_) => 0,
                AnyQdisc::Fifo(fifo) => fifo.memory_bytes(),
                AnyQdisc::FqCodel(queues) => queues.memory_bytes(),
                AnyQdisc::FqPie(queues) => queues.memory_bytes(),
                AnyQdisc::Cake(cake) => cake.memory_bytes(),
                AnyQdisc::Sfq(sfq) => sfq.memory_bytes(),
                AnyQdisc::Drr(drr) => drr.memory_bytes(),
                AnyQdisc::DualPi2(dual) => dual.memory_bytes(),
            }
    }

    /// Memory per flow in bytes: that of a queue if flows have their own queues, else 0; 0 for a custom discipline.
    pub fn flow_bytes(&self) -> usize {
        match self {
            // DualPI2 assigns packets to its two queues by their ECN field.
            AnyQdisc::Fifo(_) | AnyQdisc::DualPi2(_) | AnyQdisc::Custom(_) => 0,
            AnyQdisc::FqCodel(queues) => queues.queue_bytes(),
            AnyQdisc::FqPie(queues) => queues.queue_bytes(),
            AnyQdisc::Cake(_) => Cake::QUEUE_BYTES,
            AnyQdisc::Sfq(sfq) => sfq.queue_bytes(),
            AnyQdisc::Drr(drr) => drr.queue_bytes(),
        }
    }
}

impl Qdisc for AnyQdisc {
    #[inline]
    fn enqueue<R: Draw>(&mut self, handle: Handle, packet: &Packet, now: Instant, rng: &mut R, fates: &mut impl Fates) {
        each!(self, qdisc => qdisc.enqueue(handle, packet, now, rng, fates));
    }

    #[inline]
    fn dequeue<R: Draw>(&mut self, now: Instant, rng: &mut R, fates: &mut impl Fates) -> Option<Handle> {
        each!(self, qdisc => qdisc.dequeue(now, rng, fates))
    }

    #[inline]
    fn transmitted(&mut self, duration: Span, now: Instant) {
        each!(self, qdisc => qdisc.transmitted(duration, now));
    }

    fn on_rate(&mut self, rate: Rate) {
        each!(self, qdisc => qdisc.on_rate(rate));
    }

    fn single_queue_equivalent(&self) -> Result<SingleQueueEquivalent, &'static str> {
        each!(self, qdisc => qdisc.single_queue_equivalent())
    }

    fn backlog(&self) -> Backlog {
        each!(self, qdisc => qdisc.backlog())
    }

    fn totals(&self) -> &Totals {
        each!(self, qdisc => qdisc.totals())
    }

    fn next_timer(&self) -> Option<Instant> {
        each!(self, qdisc => qdisc.next_timer())
    }

    fn on_timer<R: Draw>(&mut self, now: Instant, rng: &mut R) {
        each!(self, qdisc => qdisc.on_timer(now, rng));
    }

    fn probability(&self) -> Probability {
        each!(self, qdisc => qdisc.probability())
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        each!(self, qdisc => qdisc.observe(visit));
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        each!(self, qdisc => qdisc.settings(visit));
    }

    fn notes(&self, tell: &mut dyn FnMut(fmt::Arguments<'_>)) {
        each!(self, qdisc => qdisc.notes(tell));
    }
}
