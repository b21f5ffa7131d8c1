//! A custom algorithm: any [`Aqm`] as a trait object.

use alloc::boxed::Box;
use core::any::Any;
use core::fmt;

use dyn_clone::DynClone;

use aqumen_units::{Instant, Probability, Span};

use crate::{Aqm, Cx, Draw, Hooks, Packet, QueueView, SampledLaw, Theory, Totals, Value, Verdict};

/// A custom algorithm.
#[derive(Clone)]
pub struct CustomAqm(Box<dyn DynAqm>);

impl CustomAqm {
    /// Boxes `aqm`.
    pub fn new<A: Aqm + Clone + Send + 'static>(aqm: A) -> Self {
        CustomAqm(Box::new(aqm))
    }
}

/// Object-safe mirror of [`Aqm`].
trait DynAqm: DynClone + Send {
    fn as_any(&self) -> &dyn Any;
    fn on_arrival_dyn(&mut self, packet: &Packet, now: Instant, queue: QueueView<'_>, rng: &mut dyn Draw) -> Verdict;
    fn on_overflow_dyn(&mut self, packet: &Packet, now: Instant, queue: QueueView<'_>, rng: &mut dyn Draw);
    fn on_buffer_stolen_dyn(&mut self, packets: u32);
    fn on_dequeue_dyn(
        &mut self,
        packet: &Packet,
        sojourn: Span,
        now: Instant,
        queue: QueueView<'_>,
        rng: &mut dyn Draw,
    ) -> Verdict;
    fn on_departure_dyn(&mut self, now: Instant);
    fn on_idle_dyn(&mut self, now: Instant);
    fn next_timer_dyn(&self) -> Option<Instant>;
    fn on_timer_dyn(&mut self, now: Instant, queue: QueueView<'_>, rng: &mut dyn Draw);
    fn probability_dyn(&self) -> Probability;
    fn observe_dyn(&self, visit: &mut dyn FnMut(&'static str, f64));
    fn hooks_dyn(&self) -> Hooks;
    fn settings_dyn(&self, visit: &mut dyn FnMut(&'static str, Value<'static>));
    fn notes_dyn(&self, tell: &mut dyn FnMut(fmt::Arguments<'_>));
    fn take_over_dyn(&mut self, old: Option<&dyn DynAqm>, now: Instant, totals: &Totals);
    fn law_mut_dyn(&mut self) -> Option<&mut dyn SampledLaw>;
    fn theory_dyn(&self) -> &dyn Theory;
}

dyn_clone::clone_trait_object!(DynAqm);

impl<A: Aqm + Clone + Send + 'static> DynAqm for A {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn on_arrival_dyn(
        &mut self,
        packet: &Packet,
        now: Instant,
        queue: QueueView<'_>,
        mut rng: &mut dyn Draw,
    ) -> Verdict {
        self.on_arrival(packet, &mut Cx { now, queue, rng: &mut rng })
    }

    fn on_overflow_dyn(&mut self, packet: &Packet, now: Instant, queue: QueueView<'_>, mut rng: &mut dyn Draw) {
        self.on_overflow(packet, &mut Cx { now, queue, rng: &mut rng });
    }

    fn on_buffer_stolen_dyn(&mut self, packets: u32) {
        self.on_buffer_stolen(packets);
    }

    fn on_dequeue_dyn(
        &mut self,
        packet: &Packet,
        sojourn: Span,
        now: Instant,
        queue: QueueView<'_>,
        mut rng: &mut dyn Draw,
    ) -> Verdict {
        self.on_dequeue(packet, sojourn, &mut Cx { now, queue, rng: &mut rng })
    }

    fn on_departure_dyn(&mut self, now: Instant) {
        self.on_departure(now);
    }

    fn on_idle_dyn(&mut self, now: Instant) {
        self.on_idle(now);
    }

    fn next_timer_dyn(&self) -> Option<Instant> {
        self.next_timer()
    }

    fn on_timer_dyn(&mut self, now: Instant, queue: QueueView<'_>, mut rng: &mut dyn Draw) {
        self.on_timer(&mut Cx { now, queue, rng: &mut rng });
    }

    fn probability_dyn(&self) -> Probability {
        self.probability()
    }

    fn observe_dyn(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.observe(visit);
    }

    fn hooks_dyn(&self) -> Hooks {
        self.hooks()
    }

    fn settings_dyn(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        self.settings(visit);
    }

    fn notes_dyn(&self, tell: &mut dyn FnMut(fmt::Arguments<'_>)) {
        self.notes(tell);
    }

    fn take_over_dyn(&mut self, old: Option<&dyn DynAqm>, now: Instant, totals: &Totals) {
        self.take_over(old.and_then(|old| old.as_any().downcast_ref::<A>()), now, totals);
    }

    fn law_mut_dyn(&mut self) -> Option<&mut dyn SampledLaw> {
        self.law_mut()
    }

    fn theory_dyn(&self) -> &dyn Theory {
        self.theory()
    }
}

impl Aqm for CustomAqm {
    fn on_arrival<R: Draw>(&mut self, packet: &Packet, cx: &mut Cx<'_, R>) -> Verdict {
        self.0.on_arrival_dyn(packet, cx.now, cx.queue, cx.rng)
    }

    fn on_overflow<R: Draw>(&mut self, packet: &Packet, cx: &mut Cx<'_, R>) {
        self.0.on_overflow_dyn(packet, cx.now, cx.queue, cx.rng);
    }

    fn on_buffer_stolen(&mut self, packets: u32) {
        self.0.on_buffer_stolen_dyn(packets);
    }

    fn on_dequeue<R: Draw>(&mut self, packet: &Packet, sojourn: Span, cx: &mut Cx<'_, R>) -> Verdict {
        self.0.on_dequeue_dyn(packet, sojourn, cx.now, cx.queue, cx.rng)
    }

    fn on_departure(&mut self, now: Instant) {
        self.0.on_departure_dyn(now);
    }

    fn on_idle(&mut self, now: Instant) {
        self.0.on_idle_dyn(now);
    }

    fn next_timer(&self) -> Option<Instant> {
        self.0.next_timer_dyn()
    }

    fn on_timer<R: Draw>(&mut self, cx: &mut Cx<'_, R>) {
        self.0.on_timer_dyn(cx.now, cx.queue, cx.rng);
    }

    fn probability(&self) -> Probability {
        self.0.probability_dyn()
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.0.observe_dyn(visit);
    }

    fn hooks(&self) -> Hooks {
        self.0.hooks_dyn()
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        self.0.settings_dyn(visit);
    }

    fn notes(&self, tell: &mut dyn FnMut(fmt::Arguments<'_>)) {
        self.0.notes_dyn(tell);
    }

    fn take_over(&mut self, old: Option<&Self>, now: Instant, totals: &Totals) {
        self.0.take_over_dyn(old.map(|old| &*old.0), now, totals);
    }

    fn law_mut(&mut self) -> Option<&mut dyn SampledLaw> {
        self.0.law_mut_dyn()
    }

    fn theory(&self) -> &dyn Theory {
        self.0.theory_dyn()
    }
}

impl fmt::Debug for CustomAqm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CustomAqm")
    }
}
