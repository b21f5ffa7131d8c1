//! An algorithm that comes from outside this crate: any [`Aqm`], behind one indirection.

use alloc::boxed::Box;
use core::any::Any;
use core::fmt;

use dyn_clone::DynClone;

use aqumen_units::{Instant, Probability, Span};

use crate::{Aqm, Cx, Draw, Hooks, Packet, QueueView, SampledLaw, Theory, Totals, Value, Verdict};

/// Someone's own algorithm.
#[derive(Clone)]
pub struct CustomAqm(Box<dyn DynAqm>);

impl CustomAqm {
    /// `aqm`, as any algorithm.
    pub fn new<A: Aqm + Clone + Send + 'static>(aqm: A) -> Self {
        CustomAqm(Box::new(aqm))
    }
}

/// What of an [`Aqm`] can be called without knowing its type.
trait DynAqm: DynClone + Send {
    fn any(&self) -> &dyn Any;
    fn arrival(&mut self, packet: &Packet, now: Instant, queue: QueueView<'_>, rng: &mut dyn Draw) -> Verdict;
    fn overflow(&mut self, packet: &Packet, now: Instant, queue: QueueView<'_>, rng: &mut dyn Draw);
    fn stolen(&mut self, packets: u32);
    fn dequeue(
        &mut self,
        packet: &Packet,
        sojourn: Span,
        now: Instant,
        queue: QueueView<'_>,
        rng: &mut dyn Draw,
    ) -> Verdict;
    fn departure(&mut self, now: Instant);
    fn idle(&mut self, now: Instant);
    fn timer_due(&self) -> Option<Instant>;
    fn timer(&mut self, now: Instant, queue: QueueView<'_>, rng: &mut dyn Draw);
    fn p(&self) -> Probability;
    fn show(&self, visit: &mut dyn FnMut(&'static str, f64));
    fn wants(&self) -> Hooks;
    fn parameters(&self, visit: &mut dyn FnMut(&'static str, Value<'static>));
    fn remarks(&self, tell: &mut dyn FnMut(fmt::Arguments<'_>));
    fn follow(&mut self, old: Option<&dyn DynAqm>, now: Instant, totals: &Totals);
    fn law(&mut self) -> Option<&mut dyn SampledLaw>;
    fn says(&self) -> &dyn Theory;
}

dyn_clone::clone_trait_object!(DynAqm);

impl<A: Aqm + Clone + Send + 'static> DynAqm for A {
    fn any(&self) -> &dyn Any {
        self
    }

    fn arrival(&mut self, packet: &Packet, now: Instant, queue: QueueView<'_>, mut rng: &mut dyn Draw) -> Verdict {
        self.on_arrival(packet, &mut Cx { now, queue, rng: &mut rng })
    }

    fn overflow(&mut self, packet: &Packet, now: Instant, queue: QueueView<'_>, mut rng: &mut dyn Draw) {
        self.on_overflow(packet, &mut Cx { now, queue, rng: &mut rng });
    }

    fn stolen(&mut self, packets: u32) {
        self.on_buffer_stolen(packets);
    }

    fn dequeue(
        &mut self,
        packet: &Packet,
        sojourn: Span,
        now: Instant,
        queue: QueueView<'_>,
        mut rng: &mut dyn Draw,
    ) -> Verdict {
        self.on_dequeue(packet, sojourn, &mut Cx { now, queue, rng: &mut rng })
    }

    fn departure(&mut self, now: Instant) {
        self.on_departure(now);
    }

    fn idle(&mut self, now: Instant) {
        self.on_idle(now);
    }

    fn timer_due(&self) -> Option<Instant> {
        self.next_timer()
    }

    fn timer(&mut self, now: Instant, queue: QueueView<'_>, mut rng: &mut dyn Draw) {
        self.on_timer(&mut Cx { now, queue, rng: &mut rng });
    }

    fn p(&self) -> Probability {
        self.probability()
    }

    fn show(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.observe(visit);
    }

    fn wants(&self) -> Hooks {
        self.hooks()
    }

    fn parameters(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        self.settings(visit);
    }

    fn remarks(&self, tell: &mut dyn FnMut(fmt::Arguments<'_>)) {
        self.notes(tell);
    }

    fn follow(&mut self, old: Option<&dyn DynAqm>, now: Instant, totals: &Totals) {
        self.take_over(old.and_then(|old| old.any().downcast_ref::<A>()), now, totals);
    }

    fn law(&mut self) -> Option<&mut dyn SampledLaw> {
        self.law_mut()
    }

    fn says(&self) -> &dyn Theory {
        self.theory()
    }
}

impl Aqm for CustomAqm {
    fn on_arrival<R: Draw>(&mut self, packet: &Packet, cx: &mut Cx<'_, R>) -> Verdict {
        self.0.arrival(packet, cx.now, cx.queue, cx.rng)
    }

    fn on_overflow<R: Draw>(&mut self, packet: &Packet, cx: &mut Cx<'_, R>) {
        self.0.overflow(packet, cx.now, cx.queue, cx.rng);
    }

    fn on_buffer_stolen(&mut self, packets: u32) {
        self.0.stolen(packets);
    }

    fn on_dequeue<R: Draw>(&mut self, packet: &Packet, sojourn: Span, cx: &mut Cx<'_, R>) -> Verdict {
        self.0.dequeue(packet, sojourn, cx.now, cx.queue, cx.rng)
    }

    fn on_departure(&mut self, now: Instant) {
        self.0.departure(now);
    }

    fn on_idle(&mut self, now: Instant) {
        self.0.idle(now);
    }

    fn next_timer(&self) -> Option<Instant> {
        self.0.timer_due()
    }

    fn on_timer<R: Draw>(&mut self, cx: &mut Cx<'_, R>) {
        self.0.timer(cx.now, cx.queue, cx.rng);
    }

    fn probability(&self) -> Probability {
        self.0.p()
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.0.show(visit);
    }

    fn hooks(&self) -> Hooks {
        self.0.wants()
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        self.0.parameters(visit);
    }

    fn notes(&self, tell: &mut dyn FnMut(fmt::Arguments<'_>)) {
        self.0.remarks(tell);
    }

    fn take_over(&mut self, old: Option<&Self>, now: Instant, totals: &Totals) {
        self.0.follow(old.map(|old| &*old.0), now, totals);
    }

    fn law_mut(&mut self) -> Option<&mut dyn SampledLaw> {
        self.0.law()
    }

    fn theory(&self) -> &dyn Theory {
        self.0.says()
    }
}

impl fmt::Debug for CustomAqm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CustomAqm")
    }
}
