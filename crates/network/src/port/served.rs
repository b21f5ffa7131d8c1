//! A port that takes a packet from its queue discipline whenever the link is free. It serves any discipline; each
//! transmission costs an event.

use aqumen_aqm::AnyQdisc;
use aqumen_aqm::{Backlog, DropReason, Fates, Handle, Qdisc, QdiscVisitor, Totals, Value};
use aqumen_result::Meter;
use aqumen_scenario::Link;
use aqumen_scenario::streams::{Kind, Stream};
use aqumen_units::Span;

use super::common::{Arrival, BY_FLOW, counts, discipline, instant, meter_of, sent_bits};
use crate::transmitter::{Booking, Transmitter};
use crate::{Error, Identity, WirePacket};

/// A served port, for packets or handles `P`.
#[derive(Clone)]
pub struct ServedPort<P> {
    qdisc: AnyQdisc,
    server: Server<P>,
}

/// Everything in a port but its discipline.
#[derive(Clone)]
pub struct Server<P> {
    rng: Stream,
    transmitter: Transmitter,
    packets: Packets<P>,
    /// The packet in transmission.
    serving: Option<Serving>,
    /// Time at which the link takes packets again, if packets wait for that.
    opens: Option<u64>,
    meter: Option<Box<Meter>>,
    /// Histogram of the meter that counts sojourn times; `BY_FLOW` if it depends on the flow.
    histogram: u32,
}

/// A packet in transmission.
#[derive(Clone, Copy)]
struct Serving {
    handle: Handle,
    booking: Booking,
    /// Link time that the packet takes, nanoseconds.
    airtime: u64,
}

/// Packets behind the discipline's handles.
#[derive(Clone)]
struct Packets<P> {
    slots: Vec<StoredPacket<P>>,
    free: Vec<Handle>,
    /// Packets dropped in the current call.
    dropped: Vec<(Handle, DropReason)>,
}

/// A packet in the queue.
#[derive(Clone)]
struct StoredPacket<P> {
    packet: P,
    arrived: u64,
    /// Number of its arrival, from 1.
    number: u64,
    /// Histogram of the meter that counts its sojourn time.
    histogram: u32,
    /// Hash of its flow.
    flow: u32,
}

/// A packet whose transmission has ended.
pub struct SentPacket<P> {
    /// The packet.
    pub packet: P,
    /// Start of its transmission.
    pub start: u64,
    /// Arrival at the next node; `None` if the packet was lost.
    pub reach: Option<u64>,
}

impl<P: WirePacket + Copy> ServedPort<P> {
    /// Makes the port of `link`, number `number` of the plan; `edges` are those of the windows.
    pub(crate) fn for_link(link: &Link, seed: u64, number: u32, edges: &[u64]) -> Result<Self, Error> {
        let rng = Stream::new(seed, Kind::Aqm, u64::from(number));
        let meter = link.record.then(|| Box::new(meter_of(link)));
        Ok(ServedPort::new(discipline(link)?, rng, Transmitter::new(link, seed, number, edges), meter))
    }

    pub(crate) fn separate_groups(&mut self, groups: &[(u32, bool)]) {
        let server = &mut self.server;
        server.meter.iter_mut().for_each(|meter| meter.separate_groups(groups));
        server.histogram = server.meter.as_ref().map_or(0, |meter| meter.only_histogram().unwrap_or(BY_FLOW));
    }

    fn new(qdisc: AnyQdisc, rng: Stream, transmitter: Transmitter, meter: Option<Box<Meter>>) -> Self {
        let packets = Packets { slots: Vec::new(), free: Vec::new(), dropped: Vec::new() };
        ServedPort {
            qdisc,
            server: Server { rng, transmitter, packets, serving: None, opens: None, meter, histogram: 0 },
        }
    }

    /// Lets `packet` arrive. Packets that are dropped for it, or `packet` itself, go to `dropped`.
    #[inline]
    pub fn arrive(&mut self, now: u64, packet: P, who: &Identity, dropped: &mut Vec<(P, DropReason)>) -> Arrival {
        // One match per call: a single queue is monomorphised.
        match &mut self.qdisc {
            AnyQdisc::Fifo(queue) => self.server.arrive(queue, now, packet, who, dropped),
            queues => self.server.arrive(queues, now, packet, who, dropped),
        }
    }

    /// Ends the current transmission, or the wait for the link. Returns the packet sent, and the time of the next call.
    #[inline]
    pub fn finish(&mut self, now: u64, dropped: &mut Vec<(P, DropReason)>) -> (Option<SentPacket<P>>, Option<u64>) {
        match &mut self.qdisc {
            AnyQdisc::Fifo(queue) => self.server.finish(queue, now, dropped),
            queues => self.server.finish(queues, now, dropped),
        }
    }

    /// Calls `work` on the server and the discipline, whose type it knows: one match for a series of calls.
    #[inline]
    pub fn with_discipline<W: ServerWork<P>>(&mut self, work: W) -> W::Output {
        struct Visit<'s, P, W>(&'s mut Server<P>, W);
        impl<P, W: ServerWork<P>> QdiscVisitor for Visit<'_, P, W> {
            type Output = W::Output;
            fn visit(self, qdisc: &mut impl Qdisc) -> W::Output {
                self.1.run(self.0, qdisc)
            }
        }
        self.qdisc.visit(Visit(&mut self.server, work))
    }

    pub(crate) fn next_timer(&self) -> Option<u64> {
        self.qdisc.next_timer().map(|due| due.as_nanos())
    }

    pub(crate) fn on_timer(&mut self, now: u64) {
        if let Some(meter) = &mut self.server.meter {
            meter.sampled(self.qdisc.backlog().packets);
        }
        self.qdisc.on_timer(instant(now), &mut self.server.rng);
    }

    pub(crate) fn retune(&mut self, new: AnyQdisc, now: u64) {
        self.qdisc.retune(new, instant(now));
        // `new` was built for the rate at the start.
        self.qdisc.on_rate(self.server.transmitter.rate(now));
    }

    pub(super) fn is_fifo(&self) -> bool {
        matches!(self.qdisc, AnyQdisc::Fifo(_))
    }

    pub(super) fn contents(&self) -> Vec<P> {
        let Packets { slots, free, .. } = &self.server.packets;
        let mut waits = vec![true; slots.len()];
        let in_service = self.server.serving.map(|serving| serving.handle);
        free.iter().copied().chain(in_service).for_each(|handle| waits[handle as usize] = false);
        let mut waiting: Vec<_> = slots.iter().zip(waits).filter(|(_, waits)| *waits).map(|(slot, _)| slot).collect();
        waiting.sort_by_key(|slot| slot.number);
        waiting.into_iter().map(|slot| slot.packet).collect()
    }

    pub(super) fn transmission_end(&self) -> Option<u64> {
        self.server.serving.map(|serving| serving.booking.end)
    }

    pub(super) fn reseed(&mut self, rng: Stream, losses: Stream) {
        self.server.rng = rng;
        self.server.transmitter.reseed(losses);
    }

    pub(crate) fn sample(&mut self) -> (u32, f64) {
        if let Some(meter) = &mut self.server.meter {
            meter.sample(&counts(self.qdisc.totals()));
        }
        (self.qdisc.backlog().packets, self.qdisc.probability().get())
    }

    pub(crate) fn edge(&mut self, now: u64) {
        if let Some(meter) = &mut self.server.meter {
            let partly = self.server.serving.map_or(0.0, |Serving { handle, booking, .. }| {
                sent_bits(self.server.packets.slots[handle as usize].packet.bytes(), booking.start, booking.end, now)
            });
            meter.edge(now, self.qdisc.backlog().packets, &counts(self.qdisc.totals()), partly);
        }
    }

    pub(crate) fn meter(&self) -> Option<&Meter> {
        self.server.meter.as_deref()
    }

    pub(crate) fn offered_bits(&mut self) -> Option<Vec<f64>> {
        self.server.transmitter.offered_bits()
    }

    pub(crate) fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        self.qdisc.settings(visit);
    }

    pub(crate) fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.qdisc.observe(visit);
    }

    pub(crate) fn notes(&self, report: &mut dyn FnMut(std::fmt::Arguments<'_>)) {
        self.qdisc.notes(report);
    }

    pub(crate) fn probability(&self) -> f64 {
        self.qdisc.probability().get()
    }

    pub(crate) fn backlog(&self) -> Backlog {
        self.qdisc.backlog()
    }

    pub(crate) fn totals(&self) -> &Totals {
        self.qdisc.totals()
    }
}

/// Work on the server and the discipline of a port, compiled for each discipline.
pub trait ServerWork<P> {
    /// Result of the work.
    type Output;

    /// Does the work.
    fn run(self, server: &mut Server<P>, qdisc: &mut impl Qdisc) -> Self::Output;
}

impl<P: WirePacket + Copy> Server<P> {
    /// Lets `packet` arrive. Packets that are dropped for it, or `packet` itself, go to `dropped`.
    fn arrive(
        &mut self,
        qdisc: &mut impl Qdisc,
        now: u64,
        packet: P,
        who: &Identity,
        dropped: &mut Vec<(P, DropReason)>,
    ) -> Arrival {
        let (handle, idle) = self.enter(qdisc, now, packet, who);
        let busy_until = if idle { self.serve(qdisc, now) } else { None };
        let refused = self.packets.dropped.iter().any(|(other, _)| *other == handle);
        self.release_dropped(now, |packet, reason| dropped.push((packet, reason)));
        if refused { Arrival::Dropped } else { Arrival::Waits { busy_until } }
    }

    /// Ends the current transmission, or the wait for the link. Returns the packet sent, and the time of the next call.
    fn finish(
        &mut self,
        qdisc: &mut impl Qdisc,
        now: u64,
        dropped: &mut Vec<(P, DropReason)>,
    ) -> (Option<SentPacket<P>>, Option<u64>) {
        let sent = self.leave(qdisc, now);
        let busy_until = self.serve(qdisc, now);
        self.release_dropped(now, |packet, reason| dropped.push((packet, reason)));
        (sent, busy_until)
    }

    /// Enqueues `packet`, which arrives. Returns its handle, and whether the link is idle and has a packet to
    /// [`serve`](Self::serve); [`release_dropped`](Self::release_dropped) follows.
    #[inline(always)]
    pub fn enter(&mut self, qdisc: &mut impl Qdisc, now: u64, packet: P, who: &Identity) -> (Handle, bool) {
        self.account(qdisc, now);
        self.announce_rate(qdisc, now);
        let metadata = who.metadata(&packet);
        let number = qdisc.totals().arrivals + 1;
        let histogram = if self.histogram == BY_FLOW { self.histogram_of(who.flow_hash) } else { self.histogram };
        let handle = self.packets.keep(StoredPacket { packet, arrived: now, number, histogram, flow: who.flow_hash });
        qdisc.enqueue(handle, &metadata, instant(now), &mut self.rng, &mut self.packets);
        // A packet dropped at an idle link leaves the link idle.
        (handle, self.serving.is_none() && self.opens.is_none() && qdisc.backlog().packets > 0)
    }

    #[inline(never)]
    fn histogram_of(&self, flow: u32) -> u32 {
        self.meter.as_ref().map_or(0, |meter| meter.histogram_of(flow))
    }

    /// Ends the current transmission, or the wait for the link; returns the packet sent. [`serve`](Self::serve)
    /// follows.
    #[inline(always)]
    pub fn leave(&mut self, qdisc: &mut impl Qdisc, now: u64) -> Option<SentPacket<P>> {
        self.opens = None;
        self.announce_rate(qdisc, now);
        self.serving.take().map(|Serving { handle, booking, airtime }| {
            qdisc.transmitted(Span::from_nanos(airtime), instant(now));
            if let Some(meter) = &mut self.meter {
                meter.sent_over_line(booking.lost);
            }
            let reach = (!booking.lost).then_some(booking.reach);
            SentPacket { packet: self.packets.release(handle), start: booking.start, reach }
        })
    }

    /// Reports a new rate to the discipline.
    #[inline]
    fn announce_rate(&mut self, qdisc: &mut impl Qdisc, now: u64) {
        if let Some(rate) = self.transmitter.new_rate(now) {
            qdisc.on_rate(rate);
        }
    }

    /// Takes the next packet for transmission. Returns its end, or the time at which the link takes packets again.
    /// [`release_dropped`](Self::release_dropped) follows.
    #[inline(always)]
    pub fn serve(&mut self, qdisc: &mut impl Qdisc, now: u64) -> Option<u64> {
        self.account(qdisc, now);
        if self.transmitter.line.is_some() && qdisc.backlog().packets > 0 {
            let ready = self.transmitter.ready(now);
            if ready > now {
                self.opens = Some(ready);
                return (ready < u64::MAX).then_some(ready);
            }
        }
        let handle = qdisc.dequeue(instant(now), &mut self.rng, &mut self.packets)?;
        let StoredPacket { arrived, packet, histogram, .. } = &self.packets.slots[handle as usize];
        if let Some(meter) = &mut self.meter {
            meter.sojourn(qdisc.totals().last_sojourn.as_nanos(), *histogram);
        }
        let (booking, airtime) = self.transmitter.transmit(*arrived, now, packet.bytes());
        self.serving = Some(Serving { handle, booking, airtime });
        Some(booking.end)
    }

    /// Hands the packets dropped in the last call, at `now`, to `to`.
    #[inline(always)]
    pub fn release_dropped(&mut self, now: u64, to: impl FnMut(P, DropReason)) {
        if !self.packets.dropped.is_empty() {
            self.release_all(now, to);
        }
    }

    #[inline(never)]
    fn release_all(&mut self, now: u64, mut to: impl FnMut(P, DropReason)) {
        if let Some(meter) = &mut self.meter {
            let lost = self.packets.dropped.iter().map(|(handle, _)| &self.packets.slots[*handle as usize]);
            lost.for_each(|packet| meter.lost(packet.number, now, packet.flow));
        }
        while let Some((handle, reason)) = self.packets.dropped.pop() {
            to(self.packets.release(handle), reason);
        }
    }

    /// Advances the meter to `now`: the queue length was constant until then.
    #[inline(always)]
    fn account(&mut self, qdisc: &impl Qdisc, now: u64) {
        if let Some(meter) = &mut self.meter {
            meter.advance(now, qdisc.backlog().packets);
        }
    }
}

impl<P: Copy> Packets<P> {
    #[inline(always)]
    fn keep(&mut self, packet: StoredPacket<P>) -> Handle {
        if let Some(handle) = self.free.pop() {
            self.slots[handle as usize] = packet;
            handle
        } else {
            self.slots.push(packet);
            (self.slots.len() - 1) as Handle
        }
    }

    #[inline(always)]
    fn release(&mut self, handle: Handle) -> P {
        self.free.push(handle);
        self.slots[handle as usize].packet
    }
}

impl<P: WirePacket> Fates for Packets<P> {
    fn marked(&mut self, handle: Handle) {
        self.slots[handle as usize].packet.mark();
    }

    fn dropped(&mut self, handle: Handle, reason: DropReason) {
        self.dropped.push((handle, reason));
    }
}
