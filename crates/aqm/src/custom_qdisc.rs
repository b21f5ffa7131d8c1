//! A custom discipline: any [`Qdisc`] as a trait object.

use alloc::boxed::Box;
use core::fmt;

use dyn_clone::DynClone;

use aqumen_units::{Instant, Probability, Rate, Span};

use crate::{Backlog, Draw, DropReason, Fates, Handle, Packet, Qdisc, SingleQueueEquivalent, Totals, Value};

/// A custom discipline.
#[derive(Clone)]
pub struct CustomQdisc(Box<dyn DynQdisc>);

impl CustomQdisc {
    /// Boxes `qdisc`.
    pub fn new<Q: Qdisc + Clone + Send + 'static>(qdisc: Q) -> Self {
        CustomQdisc(Box::new(qdisc))
    }
}

/// Object-safe mirror of [`Qdisc`].
trait DynQdisc: DynClone + Send {
    fn enqueue_dyn(&mut self, handle: Handle, packet: &Packet, now: Instant, rng: &mut dyn Draw, fates: &mut dyn Fates);
    fn dequeue_dyn(&mut self, now: Instant, rng: &mut dyn Draw, fates: &mut dyn Fates) -> Option<Handle>;
    fn transmitted_dyn(&mut self, duration: Span, now: Instant);
    fn on_rate_dyn(&mut self, rate: Rate);
    fn single_queue_equivalent_dyn(&self) -> Result<SingleQueueEquivalent, &'static str>;
    fn backlog_dyn(&self) -> Backlog;
    fn totals_dyn(&self) -> &Totals;
    fn next_timer_dyn(&self) -> Option<Instant>;
    fn on_timer_dyn(&mut self, now: Instant, rng: &mut dyn Draw);
    fn probability_dyn(&self) -> Probability;
    fn observe_dyn(&self, visit: &mut dyn FnMut(&'static str, f64));
    fn settings_dyn(&self, visit: &mut dyn FnMut(&'static str, Value<'static>));
    fn notes_dyn(&self, tell: &mut dyn FnMut(fmt::Arguments<'_>));
}

dyn_clone::clone_trait_object!(DynQdisc);

/// Receiver of fates whose type is known.
struct Receiver<'f>(&'f mut dyn Fates);

impl Fates for Receiver<'_> {
    fn marked(&mut self, handle: Handle) {
        self.0.marked(handle);
    }

    fn dropped(&mut self, handle: Handle, reason: DropReason) {
        self.0.dropped(handle, reason);
    }
}

impl<Q: Qdisc + Clone + Send + 'static> DynQdisc for Q {
    fn enqueue_dyn(
        &mut self,
        handle: Handle,
        packet: &Packet,
        now: Instant,
        mut rng: &mut dyn Draw,
        fates: &mut dyn Fates,
    ) {
        self.enqueue(handle, packet, now, &mut rng, &mut Receiver(fates));
    }

    fn dequeue_dyn(&mut self, now: Instant, mut rng: &mut dyn Draw, fates: &mut dyn Fates) -> Option<Handle> {
        self.dequeue(now, &mut rng, &mut Receiver(fates))
    }

    fn transmitted_dyn(&mut self, duration: Span, now: Instant) {
        self.transmitted(duration, now);
    }

    fn on_rate_dyn(&mut self, rate: Rate) {
        self.on_rate(rate);
    }

    fn single_queue_equivalent_dyn(&self) -> Result<SingleQueueEquivalent, &'static str> {
        self.single_queue_equivalent()
    }

    fn backlog_dyn(&self) -> Backlog {
        self.backlog()
    }

    fn totals_dyn(&self) -> &Totals {
        self.totals()
    }

    fn next_timer_dyn(&self) -> Option<Instant> {
        self.next_timer()
    }

    fn on_timer_dyn(&mut self, now: Instant, mut rng: &mut dyn Draw) {
        self.on_timer(now, &mut rng);
    }

    fn probability_dyn(&self) -> Probability {
        self.probability()
    }

    fn observe_dyn(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.observe(visit);
    }

    fn settings_dyn(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        self.settings(visit);
    }

    fn notes_dyn(&self, tell: &mut dyn FnMut(fmt::Arguments<'_>)) {
        self.notes(tell);
    }
}

impl Qdisc for CustomQdisc {
    fn enqueue<R: Draw>(&mut self, handle: Handle, packet: &Packet, now: Instant, rng: &mut R, fates: &mut impl Fates) {
        self.0.enqueue_dyn(handle, packet, now, rng, fates);
    }

    fn dequeue<R: Draw>(&mut self, now: Instant, rng: &mut R, fates: &mut impl Fates) -> Option<Handle> {
        self.0.dequeue_dyn(now, rng, fates)
    }

    fn transmitted(&mut self, duration: Span, now: Instant) {
        self.0.transmitted_dyn(duration, now);
    }

    fn on_rate(&mut self, rate: Rate) {
        self.0.on_rate_dyn(rate);
    }

    fn single_queue_equivalent(&self) -> Result<SingleQueueEquivalent, &'static str> {
        self.0.single_queue_equivalent_dyn()
    }

    fn backlog(&self) -> Backlog {
        self.0.backlog_dyn()
    }

    fn totals(&self) -> &Totals {
        self.0.totals_dyn()
    }

    fn next_timer(&self) -> Option<Instant> {
        self.0.next_timer_dyn()
    }

    fn on_timer<R: Draw>(&mut self, now: Instant, rng: &mut R) {
        self.0.on_timer_dyn(now, rng);
    }

    fn probability(&self) -> Probability {
        self.0.probability_dyn()
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.0.observe_dyn(visit);
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        self.0.settings_dyn(visit);
    }

    fn notes(&self, tell: &mut dyn FnMut(fmt::Arguments<'_>)) {
        self.0.notes_dyn(tell);
    }
}

impl fmt::Debug for CustomQdisc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CustomQdisc")
    }
}
