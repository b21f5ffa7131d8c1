//! A port that asks its queue discipline for a packet whenever the link is free. Any discipline fits; each transmission
//! costs an event.

use aqumen_aqm::AnyQdisc;
use aqumen_aqm::{Backlog, DropReason, Fates, Handle, Qdisc, Totals, Value};
use aqumen_result::Meter;
use aqumen_scenario::Link;
use aqumen_scenario::streams::{Kind, Stream};
use aqumen_units::Span;

use super::answers::{Arrival, counts, discipline, instant, meter_of, sent_bits};
use crate::transmitter::{Booking, Transmitter};
use crate::{Carried, Error, Identity};

/// The port, of packets that are or stand behind a `P`.
pub struct ServedPort<P> {
    qdisc: AnyQdisc,
    server: Server<P>,
}

/// All of a port but the discipline that it asks.
struct Server<P> {
    rng: Stream,
    transmitter: Transmitter,
    packets: Packets<P>,
    /// The packet in transmission.
    serving: Option<Serving>,
    /// Packets wait for the link to take one: when it will.
    opens: Option<u64>,
    meter: Option<Box<Meter>>,
}

/// A packet in transmission.
#[derive(Clone, Copy)]
struct Serving {
    handle: Handle,
    booking: Booking,
    /// How much of the link's time it takes.
    airtime: u64,
}

/// The packets that the discipline's handles stand for.
struct Packets<P> {
    kept: Vec<Kept<P>>,
    free: Vec<Handle>,
    /// Handles of packets dropped in the call under way.
    dropped: Vec<(Handle, DropReason)>,
}

struct Kept<P> {
    packet: P,
    arrived: u64,
    /// Its number by arrival, from 1.
    number: u64,
    /// Which of the meter's histograms counts its wait.
    histogram: u32,
    /// Tells its flow from others.
    flow: u32,
}

/// What a port hands back at the end of a transmission.
pub struct Sent<P> {
    /// The packet.
    pub packet: P,
    /// When its transmission started.
    pub start: u64,
    /// When it reaches the next node; `None`: it got lost.
    pub reach: Option<u64>,
}

impl<P> ServedPort<P> {
    /// What is kept of a packet that waits, beside what the discipline keeps.
    pub const KEPT_BYTES: usize = size_of::<Kept<P>>();
}

impl<P: Carried + Copy> ServedPort<P> {
    /// The port at the head of `link`, whose number in the plan is `number`; `edges` are those of the windows.
    pub(crate) fn of_link(link: &Link, seed: u64, number: u32, edges: &[u64]) -> Result<Self, Error> {
        let rng = Stream::new(seed, Kind::Aqm, u64::from(number));
        let meter = link.record.then(|| Box::new(meter_of(link)));
        Ok(ServedPort::new(discipline(link)?, rng, Transmitter::new(link, seed, number, edges), meter))
    }

    pub(crate) fn tell_groups_apart(&mut self, groups: &[(u32, bool)]) {
        self.server.meter.iter_mut().for_each(|meter| meter.tell_groups_apart(groups));
    }

    fn new(qdisc: AnyQdisc, rng: Stream, transmitter: Transmitter, meter: Option<Box<Meter>>) -> Self {
        let packets = Packets { kept: Vec::new(), free: Vec::new(), dropped: Vec::new() };
        ServedPort { qdisc, server: Server { rng, transmitter, packets, serving: None, opens: None, meter } }
    }

    /// `packet` arrives. Packets that this displaces, itself included, go to `dropped`.
    #[inline]
    pub fn arrive(&mut self, now: u64, packet: P, who: &Identity, dropped: &mut Vec<(P, DropReason)>) -> Arrival {
        // One queue with an AQM is told apart from the others once.
        match &mut self.qdisc {
            AnyQdisc::Fifo(queue) => self.server.arrive(queue, now, packet, who, dropped),
            queues => self.server.arrive(queues, now, packet, who, dropped),
        }
    }

    /// The transmission under way ends, or the link takes packets again: hands the packet sent back, and says when this
    /// is to be called next.
    #[inline]
    pub fn finish(&mut self, now: u64, dropped: &mut Vec<(P, DropReason)>) -> (Option<Sent<P>>, Option<u64>) {
        match &mut self.qdisc {
            AnyQdisc::Fifo(queue) => self.server.finish(queue, now, dropped),
            queues => self.server.finish(queues, now, dropped),
        }
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
        // It was made for the rate at the start.
        self.qdisc.on_rate(self.server.transmitter.rate(now));
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
                sent_bits(self.server.packets.kept[handle as usize].packet.bytes(), booking.start, booking.end, now)
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

    pub(crate) fn notes(&self, tell: &mut dyn FnMut(std::fmt::Arguments<'_>)) {
        self.qdisc.notes(tell);
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

impl<P: Carried + Copy> Server<P> {
    /// `packet` arrives. Packets that this displaces, itself included, go to `dropped`.
    fn arrive(
        &mut self,
        qdisc: &mut impl Qdisc,
        now: u64,
        packet: P,
        who: &Identity,
        dropped: &mut Vec<(P, DropReason)>,
    ) -> Arrival {
        self.account(qdisc, now);
        self.announce_rate(qdisc, now);
        let metadata = who.metadata(&packet);
        let histogram = self.meter.as_ref().map_or(0, |meter| meter.histogram_of(who.flow_hash));
        let number = qdisc.totals().arrivals + 1;
        let handle = self.packets.keep(Kept { packet, arrived: now, number, histogram, flow: who.flow_hash });
        qdisc.enqueue(handle, &metadata, instant(now), &mut self.rng, &mut self.packets);
        // A packet that was dropped at an idle link leaves the link as idle as it was.
        let idle = self.serving.is_none() && self.opens.is_none() && qdisc.backlog().packets > 0;
        let busy_until = if idle { self.serve(qdisc, now) } else { None };
        let own = self.packets.dropped.iter().any(|(other, _)| *other == handle);
        self.release_dropped(now, dropped);
        if own { Arrival::Dropped } else { Arrival::Waits { busy_until } }
    }

    /// The transmission under way ends, or the link takes packets again: hands the packet sent back, and says when this
    /// is to be called next.
    fn finish(
        &mut self,
        qdisc: &mut impl Qdisc,
        now: u64,
        dropped: &mut Vec<(P, DropReason)>,
    ) -> (Option<Sent<P>>, Option<u64>) {
        self.opens = None;
        self.announce_rate(qdisc, now);
        let sent = self.serving.take().map(|Serving { handle, booking, airtime }| {
            qdisc.transmitted(Span::from_nanos(airtime), instant(now));
            if let Some(meter) = &mut self.meter {
                meter.sent_over_line(booking.lost);
            }
            let reach = (!booking.lost).then_some(booking.reach);
            Sent { packet: self.packets.release(handle), start: booking.start, reach }
        });
        let busy_until = self.serve(qdisc, now);
        self.release_dropped(now, dropped);
        (sent, busy_until)
    }

    /// Tells the discipline of a rate that is new.
    #[inline]
    fn announce_rate(&mut self, qdisc: &mut impl Qdisc, now: u64) {
        if let Some(rate) = self.transmitter.new_rate(now) {
            qdisc.on_rate(rate);
        }
    }

    /// Takes the next packet for transmission and says when it ends, or when the link will take one.
    fn serve(&mut self, qdisc: &mut impl Qdisc, now: u64) -> Option<u64> {
        self.account(qdisc, now);
        if self.transmitter.line.is_some() && qdisc.backlog().packets > 0 {
            let ready = self.transmitter.ready(now);
            if ready > now {
                self.opens = Some(ready);
                return (ready < u64::MAX).then_some(ready);
            }
        }
        let handle = qdisc.dequeue(instant(now), &mut self.rng, &mut self.packets)?;
        let Kept { arrived, packet, histogram, .. } = &self.packets.kept[handle as usize];
        if let Some(meter) = &mut self.meter {
            meter.sojourn(qdisc.totals().last_sojourn.as_nanos(), *histogram);
        }
        let (booking, airtime) = self.transmitter.transmit(*arrived, now, packet.bytes());
        self.serving = Some(Serving { handle, booking, airtime });
        Some(booking.end)
    }

    /// Hands the packets dropped in the call under way, at `now`, to `to`.
    #[inline]
    fn release_dropped(&mut self, now: u64, to: &mut Vec<(P, DropReason)>) {
        if !self.packets.dropped.is_empty() {
            self.release_all(now, to);
        }
    }

    #[inline(never)]
    fn release_all(&mut self, now: u64, to: &mut Vec<(P, DropReason)>) {
        if let Some(meter) = &mut self.meter {
            let lost = self.packets.dropped.iter().map(|(handle, _)| &self.packets.kept[*handle as usize]);
            lost.for_each(|packet| meter.lost(packet.number, now, packet.flow));
        }
        while let Some((handle, reason)) = self.packets.dropped.pop() {
            to.push((self.packets.release(handle), reason));
        }
    }

    /// Tells the meter that the queue was as it is until `now`.
    fn account(&mut self, qdisc: &impl Qdisc, now: u64) {
        if let Some(meter) = &mut self.meter {
            meter.advance(now, qdisc.backlog().packets);
        }
    }
}

impl<P: Copy> Packets<P> {
    fn keep(&mut self, packet: Kept<P>) -> Handle {
        if let Some(handle) = self.free.pop() {
            self.kept[handle as usize] = packet;
            handle
        } else {
            self.kept.push(packet);
            (self.kept.len() - 1) as Handle
        }
    }

    fn release(&mut self, handle: Handle) -> P {
        self.free.push(handle);
        self.kept[handle as usize].packet
    }
}

impl<P: Carried> Fates for Packets<P> {
    fn marked(&mut self, handle: Handle) {
        self.kept[handle as usize].packet.mark();
    }

    fn dropped(&mut self, handle: Handle, reason: DropReason) {
        self.dropped.push((handle, reason));
    }
}
