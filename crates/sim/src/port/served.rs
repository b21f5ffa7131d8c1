//! A port that asks its queue discipline for a packet whenever the link is free. Any discipline fits; each transmission
//! costs an event.

use std::rc::Rc;

use aqumen_aqm::registry::AnyQdisc;
use aqumen_aqm::{DropReason, Fates, Handle, Qdisc, Totals, Value};
use aqumen_network::Carried;
use aqumen_result::Meter;
use aqumen_scenario::streams::Stream;
use aqumen_units::Span;

use super::transmitter::{Booking, Transmitter};
use super::{Arrival, Identities, counts, instant, sent_bits};
use crate::event::Event;

pub(crate) struct ServedPort {
    qdisc: AnyQdisc,
    rng: Stream,
    identities: Rc<Identities>,
    transmitter: Transmitter,
    packets: Packets,
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
#[derive(Default)]
struct Packets {
    kept: Vec<Event>,
    /// Number of each by arrival, from 1.
    arrivals: Vec<u64>,
    free: Vec<Handle>,
    /// Handles of packets dropped in the call under way.
    dropped: Vec<Handle>,
}

/// What a port hands back at the end of a transmission.
pub(crate) struct Sent {
    /// The packet; its slot is the lane on which it came.
    pub(crate) event: Event,
    /// When its transmission started.
    pub(crate) start: u64,
    /// When it reaches the next node; `None`: it got lost.
    pub(crate) reach: Option<u64>,
}

impl ServedPort {
    pub(super) fn new(
        qdisc: AnyQdisc,
        rng: Stream,
        transmitter: Transmitter,
        meter: Option<Box<Meter>>,
        identities: Rc<Identities>,
    ) -> Self {
        ServedPort {
            qdisc,
            rng,
            identities,
            transmitter,
            packets: Packets::default(),
            serving: None,
            opens: None,
            meter,
        }
    }

    /// A packet of `flow` arrives. Packets that this displaces, itself included, go to `dropped`.
    pub(crate) fn arrive(&mut self, now: u64, event: &Event, flow: u32, dropped: &mut Vec<Event>) -> Arrival {
        self.account(now);
        self.announce_rate(now);
        let handle = self.packets.keep(*event, self.qdisc.totals().arrivals + 1);
        let packet = self.identities.metadata(event, flow);
        self.qdisc.enqueue(handle, &packet, instant(now), &mut self.rng, &mut self.packets);
        // A packet that was dropped at an idle link leaves the link as idle as it was.
        let idle = self.serving.is_none() && self.opens.is_none() && self.qdisc.backlog().packets > 0;
        let busy_until = if idle { self.serve(now) } else { None };
        let own = self.packets.dropped.contains(&handle);
        self.release_dropped(dropped);
        if own { Arrival::Dropped } else { Arrival::Waits { busy_until } }
    }

    /// The transmission under way ends, or the link takes packets again: hands the packet sent back, and says when this is to
    /// be called next.
    pub(crate) fn finish(&mut self, now: u64, dropped: &mut Vec<Event>) -> (Option<Sent>, Option<u64>) {
        self.opens = None;
        self.announce_rate(now);
        let sent = self.serving.take().map(|Serving { handle, booking, airtime }| {
            self.qdisc.transmitted(Span::from_nanos(airtime), instant(now));
            if let Some(meter) = &mut self.meter {
                meter.sent_over_line(booking.lost);
            }
            let reach = (!booking.lost).then_some(booking.reach);
            Sent { event: self.packets.release(handle), start: booking.start, reach }
        });
        let busy_until = self.serve(now);
        self.release_dropped(dropped);
        (sent, busy_until)
    }

    /// Tells the discipline of a rate that is new.
    #[inline]
    fn announce_rate(&mut self, now: u64) {
        if let Some(rate) = self.transmitter.new_rate(now) {
            self.qdisc.on_rate(rate);
        }
    }

    /// Takes the next packet for transmission and says when it ends, or when the link will take one.
    fn serve(&mut self, now: u64) -> Option<u64> {
        self.account(now);
        if self.transmitter.line.is_some() && self.qdisc.backlog().packets > 0 {
            let ready = self.transmitter.ready(now);
            if ready > now {
                self.opens = Some(ready);
                return (ready < u64::MAX).then_some(ready);
            }
        }
        let handle = self.qdisc.dequeue(instant(now), &mut self.rng, &mut self.packets)?;
        if let Some(meter) = &mut self.meter {
            meter.sojourn(self.qdisc.totals().last_sojourn.as_nanos());
        }
        let Event { at: arrived, bytes, .. } = self.packets.kept[handle as usize];
        let (booking, airtime) = self.transmitter.transmit(arrived, now, bytes as u32);
        self.serving = Some(Serving { handle, booking, airtime });
        Some(booking.end)
    }

    /// Hands the packets dropped in the call under way to `to`.
    fn release_dropped(&mut self, to: &mut Vec<Event>) {
        if let Some(meter) = &mut self.meter {
            self.packets.dropped.iter().for_each(|&handle| meter.lost(self.packets.arrivals[handle as usize]));
        }
        self.packets.release_dropped(to);
    }

    /// Tells the meter that the queue was as it is until `now`.
    fn account(&mut self, now: u64) {
        if let Some(meter) = &mut self.meter {
            meter.advance(now, self.qdisc.backlog().packets);
        }
    }

    pub(super) fn next_timer(&self) -> Option<u64> {
        self.qdisc.next_timer().map(|due| due.as_nanos())
    }

    pub(super) fn on_timer(&mut self, now: u64) {
        if let Some(meter) = &mut self.meter {
            meter.sampled(self.qdisc.backlog().packets);
        }
        self.qdisc.on_timer(instant(now), &mut self.rng);
    }

    pub(super) fn retune(&mut self, new: AnyQdisc, now: u64) {
        self.qdisc.retune(new, instant(now));
        // It was made for the rate at the start.
        self.qdisc.on_rate(self.transmitter.rate(now));
    }

    pub(super) fn sample(&mut self) -> (u32, f64) {
        if let Some(meter) = &mut self.meter {
            meter.sample(&counts(self.qdisc.totals()));
        }
        (self.qdisc.backlog().packets, self.qdisc.probability().get())
    }

    pub(super) fn edge(&mut self, now: u64) {
        if let Some(meter) = &mut self.meter {
            let partly = self.serving.map_or(0.0, |Serving { handle, booking, .. }| {
                sent_bits(self.packets.kept[handle as usize].bytes as u32, booking.start, booking.end, now)
            });
            meter.edge(now, self.qdisc.backlog().packets, &counts(self.qdisc.totals()), partly);
        }
    }

    pub(super) fn meter(&self) -> Option<&Meter> {
        self.meter.as_deref()
    }

    pub(super) fn offered_bits(&mut self) -> Option<Vec<f64>> {
        self.transmitter.offered_bits()
    }

    pub(super) fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        self.qdisc.settings(visit);
    }

    pub(super) fn notes(&self, tell: &mut dyn FnMut(std::fmt::Arguments<'_>)) {
        self.qdisc.notes(tell);
    }

    pub(super) fn totals(&self) -> &Totals {
        self.qdisc.totals()
    }
}

impl Packets {
    fn keep(&mut self, event: Event, arrival: u64) -> Handle {
        if let Some(handle) = self.free.pop() {
            self.kept[handle as usize] = event;
            self.arrivals[handle as usize] = arrival;
            handle
        } else {
            self.kept.push(event);
            self.arrivals.push(arrival);
            (self.kept.len() - 1) as Handle
        }
    }

    fn release(&mut self, handle: Handle) -> Event {
        self.free.push(handle);
        self.kept[handle as usize]
    }

    fn release_dropped(&mut self, to: &mut Vec<Event>) {
        while let Some(handle) = self.dropped.pop() {
            to.push(self.release(handle));
        }
    }
}

impl Fates for Packets {
    fn marked(&mut self, handle: Handle) {
        self.kept[handle as usize].mark();
    }

    fn dropped(&mut self, handle: Handle, _reason: DropReason) {
        self.dropped.push(handle);
    }
}
