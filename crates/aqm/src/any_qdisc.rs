//! Any queue discipline by name: one queue with any AQM, or one of those with several queues.

use core::fmt;

use aqumen_units::{Instant, Probability, Rate, Span};

use crate::algorithm::Algorithm;
use crate::any_aqm::AnyAqm;
use crate::multi::{cake, drr, dualpi2, fq_codel, fq_pie, sfq};
use crate::{
    Backlog, Cake, Draw, Drr, DualPi2, Fates, Fifo, FqCodel, FqPie, Handle, Limit, Network, Packet, ParamError, Qdisc,
    Requirement, Settings, Sfq, SingleQueueEquivalent, Totals, Value,
};

macro_rules! disciplines {
    ($($variant:ident($type:ty) = $module:ident),* $(,)?) => {
        /// Any discipline: chosen when a run is set up, dispatched without indirection.
        #[allow(missing_docs, reason = "each variant is the discipline of its name")]
        #[derive(Clone, Debug)]
        #[allow(clippy::large_enum_variant, reason = "one per link; an indirection would cost every packet")]
        pub enum AnyQdisc {
            /// One queue, first in, first out, with an AQM.
            Fifo(Fifo<AnyAqm>),
            $($variant($type),)*
        }

        /// Every discipline of several queues, in the order in which lists show them.
        pub(crate) const MULTI_QUEUE: &[Algorithm] = &[$($module::ALGORITHM),*];

        /// The discipline of several queues called `name`; `None` if there is none.
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
            /// Takes the parameters of `new`, the same discipline made anew, at `now`; packets and state stay.
            /// One queue may change to any algorithm. Anything else is left as it is: ask
            /// [`fixed`](Self::fixed) before the run.
            pub fn retune(&mut self, new: AnyQdisc, now: Instant) {
                match (self, new) {
                    (AnyQdisc::Fifo(old), AnyQdisc::Fifo(new)) => old.replace_aqm(new.into_aqm(), now),
                    $((AnyQdisc::$variant(old), AnyQdisc::$variant(new)) => old.retune(new, now),)*
                    _ => {}
                }
            }
        }

        /// Runs `$body` with the discipline inside, whatever it is.
        macro_rules! each {
            ($any:expr, $qdisc:ident => $body:expr) => {
                match $any {
                    AnyQdisc::Fifo($qdisc) => $body,
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

/// Settings that say which queue a packet waits in.
const FIXED: [&str; 3] = ["queues", "isolation", "tins"];

impl AnyQdisc {
    /// One queue with `aqm`, with room for `limit`.
    pub fn fifo(aqm: AnyAqm, limit: Limit) -> Self {
        AnyQdisc::Fifo(Fifo::new(aqm, limit))
    }

    /// The first setting of `new` that this discipline cannot take while packets wait, for they wait by it.
    pub fn fixed(&self, new: &AnyQdisc) -> Result<(), ParamError> {
        let mut theirs = Ok(());
        new.settings(&mut |name, value| {
            if theirs.is_err() || !FIXED.contains(&name) {
                return;
            }
            let mut same = true;
            self.settings(&mut |own, before| same &= own != name || before == value);
            if !same {
                theirs = Err(ParamError::new(name, value, Requirement::Relation("cannot change during the run")));
            }
        });
        theirs
    }

    /// How many queues each of its updates looks after.
    pub fn updated_queues(&self) -> usize {
        match self {
            AnyQdisc::FqPie(queues) => queues.queues(),
            _ => 1,
        }
    }

    /// Whether its algorithm comes from outside.
    pub fn is_custom(&self) -> bool {
        matches!(self, AnyQdisc::Fifo(fifo) if matches!(fifo.aqm(), AnyAqm::Custom(_)))
    }

    /// How far its updates are apart: the mean of the first ones, while nothing happens. `None` without any.
    pub fn update_period(mut self) -> Option<Span> {
        /// More would tell the same.
        const LOOKED_AT: u64 = 8;
        /// Chance moves no update.
        struct ConstantDraw;
        impl Draw for ConstantDraw {
            fn uniform(&mut self) -> f64 {
                0.5
            }
        }
        let first = self.next_timer()?;
        // What comes from outside may do anything at an update, and is not called for a look.
        let foreign = self.is_custom();
        let (mut last, mut seen) = (first, 0);
        while seen < LOOKED_AT && !foreign {
            self.on_timer(last, &mut ConstantDraw);
            let Some(next) = self.next_timer() else { break };
            (last, seen) = (next, seen + 1);
        }
        Some(if seen == 0 { first - Instant::ZERO } else { (last - first) / seen })
    }

    /// Bytes of memory that it holds: its own, and what it reserved.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + match self {
                AnyQdisc::Fifo(fifo) => fifo.memory_bytes(),
                AnyQdisc::FqCodel(queues) => queues.memory_bytes(),
                AnyQdisc::FqPie(queues) => queues.memory_bytes(),
                AnyQdisc::Cake(cake) => cake.memory_bytes(),
                AnyQdisc::Sfq(sfq) => sfq.memory_bytes(),
                AnyQdisc::Drr(drr) => drr.memory_bytes(),
                AnyQdisc::DualPi2(dual) => dual.memory_bytes(),
            }
    }

    /// Bytes that one more flow takes of them: those of a queue, where flows have queues of
    /// their own; none where they share.
    pub fn flow_bytes(&self) -> usize {
        match self {
            // DualPI2 tells packets apart by their ECN field.
            AnyQdisc::Fifo(_) | AnyQdisc::DualPi2(_) => 0,
            AnyQdisc::FqCodel(queues) => queues.queue_bytes(),
            AnyQdisc::FqPie(queues) => queues.queue_bytes(),
            AnyQdisc::Cake(_) => Cake::QUEUE_BYTES,
            AnyQdisc::Sfq(_) => Sfq::QUEUE_BYTES,
            AnyQdisc::Drr(_) => Drr::QUEUE_BYTES,
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
