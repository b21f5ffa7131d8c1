//! A first-in first-out port without departure events: when a packet arrives, the end of its transmission is known,
//! `max(arrival, link free) + size / rate`. Queue length, departures and idle periods are brought up to date on demand, each
//! at its own exact moment.

use std::collections::VecDeque;

use aqumen_aqm::registry::AnyAqm;
use aqumen_aqm::{Aqm, Cx, Hooks, Limit, Packet, QueueView, Totals, Value, Verdict};
use aqumen_network::Carried;
use aqumen_result::Meter;
use aqumen_scenario::streams::Stream;
use aqumen_units::Span;

use super::transmitter::{Booking, Transmitter};
use super::{Arrival, counts, instant, metadata, sent_bits};
use crate::event::Event;

pub(crate) struct FifoPort {
    aqm: AnyAqm,
    hooks: Hooks,
    limit: Limit,
    rng: Stream,
    transmitter: Transmitter,
    /// When the last accepted packet's transmission ends.
    free_at: u64,
    /// Packets whose transmission has not started, as far as the port is up to date.
    waiting: VecDeque<Accepted>,
    waiting_bytes: u64,
    /// The packet in transmission.
    serving: Option<Accepted>,
    /// The next moment at which a transmission starts or ends.
    next_change: u64,
    totals: Totals,
    meter: Option<Box<Meter>>,
}

/// A packet in the port.
#[derive(Clone, Copy)]
struct Accepted {
    arrived: u64,
    start: u64,
    end: u64,
    bytes: u32,
}

/// The surroundings of a call, borrowing the port's fields beside its algorithm.
macro_rules! cx {
    ($port:ident, $now:expr) => {
        &mut Cx {
            now: instant($now),
            queue: QueueView {
                packets: $port.waiting.len() as u32,
                bytes: $port.waiting_bytes,
                limit: $port.limit,
                totals: &$port.totals,
            },
            rng: &mut $port.rng,
        }
    };
}

impl FifoPort {
    pub(super) fn new(
        aqm: AnyAqm,
        limit: Limit,
        rng: Stream,
        transmitter: Transmitter,
        meter: Option<Box<Meter>>,
    ) -> Self {
        let hooks = aqm.hooks();
        FifoPort {
            aqm,
            hooks,
            limit,
            rng,
            transmitter,
            free_at: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            serving: None,
            next_change: u64::MAX,
            totals: Totals::default(),
            meter,
        }
    }

    /// A packet of `flow` arrives; it may be marked on the spot.
    #[inline(always)]
    pub(crate) fn arrive(&mut self, now: u64, event: &mut Event, flow: u32) -> Arrival {
        self.catch_up(now);
        let packet = metadata(event, flow);
        let verdict = self.aqm.on_arrival(&packet, cx!(self, now));
        let full = self.view().is_full(&packet);
        if full {
            self.overflow(packet, now);
        }
        if self.totals.arrive(packet.bytes, verdict, full).is_some() {
            return self.lose();
        }
        if verdict == Verdict::Mark {
            event.mark();
        }
        if let Some(meter) = &mut self.meter {
            meter.advance(now, self.waiting.len() as u32);
        }
        self.waiting_bytes += packet.bytes as u64;
        let Some(booking) = self.transmitter.book(now, self.free_at.max(now), packet.bytes) else {
            return self.keep(now, packet.bytes);
        };
        let Booking { start, end, reach, lost } = booking;
        self.free_at = end;
        self.waiting.push_back(Accepted { arrived: now, start, end, bytes: packet.bytes });
        self.next_change = self.next_change.min(start);
        if lost { Arrival::Lost { start } } else { Arrival::Leaves { start, reach } }
    }

    /// A packet of `bytes` waits for a link that never works again.
    #[cold]
    fn keep(&mut self, now: u64, bytes: u32) -> Arrival {
        self.free_at = u64::MAX;
        self.waiting.push_back(Accepted { arrived: now, start: u64::MAX, end: u64::MAX, bytes });
        Arrival::Waits { busy_until: None }
    }

    /// The packet that arrived last is lost.
    #[cold]
    fn lose(&mut self) -> Arrival {
        if let Some(meter) = &mut self.meter {
            meter.lost(self.totals.arrivals);
        }
        Arrival::Dropped
    }

    #[cold]
    fn overflow(&mut self, packet: Packet, now: u64) {
        self.aqm.on_overflow(&packet, cx!(self, now));
    }

    /// Carries out the starts and ends of transmissions up to and including `now`, in order.
    #[inline]
    fn catch_up(&mut self, now: u64) {
        while self.next_change <= now {
            self.change();
        }
    }

    /// Carries out what happens at the next change: a transmission ends, or one starts, or both.
    fn change(&mut self) {
        let now = self.next_change;
        if let Some(sent) = self.serving.take() {
            self.totals.departures += 1;
            self.totals.departed_bytes += sent.bytes as u64;
            let airtime = match &mut self.transmitter.line {
                None => sent.end - sent.start,
                Some(line) => {
                    let (airtime, lost) = line.sent();
                    if let Some(meter) = &mut self.meter {
                        meter.sent_over_line(lost);
                    }
                    airtime
                }
            };
            self.totals.busy += Span::from_nanos(airtime);
            self.totals.transmitting_since = None;
            if self.hooks.departures {
                self.aqm.on_departure(instant(now));
                if self.waiting.is_empty() {
                    self.aqm.on_idle(instant(now));
                }
            }
        }
        let Some(head) = self.waiting.front().copied() else {
            self.next_change = u64::MAX;
            return;
        };
        if head.start > now {
            // Only a line makes packets wait for a link that sends nothing.
            self.next_change = head.start;
            return;
        }
        let sojourn = now - head.arrived;
        if let Some(meter) = &mut self.meter {
            meter.advance(now, self.waiting.len() as u32);
            meter.sojourn(sojourn);
        }
        self.waiting.pop_front();
        self.waiting_bytes -= head.bytes as u64;
        self.totals.last_sojourn = Span::from_nanos(sojourn);
        self.totals.transmitting_since = Some(instant(now));
        if self.hooks.departures {
            let packet = Packet { bytes: head.bytes, segments: 1, ..Default::default() };
            let verdict = self.aqm.on_dequeue(&packet, Span::from_nanos(sojourn), cx!(self, now));
            debug_assert_eq!(verdict, Verdict::Pass, "only a served port can act at the head");
        }
        self.next_change = head.end;
        self.serving = Some(head);
    }

    /// Brings the port up to just before the packet events of `now`.
    fn catch_up_before(&mut self, now: u64) {
        if let Some(before) = now.checked_sub(1) {
            self.catch_up(before);
        }
    }

    fn view(&self) -> QueueView<'_> {
        QueueView {
            packets: self.waiting.len() as u32,
            bytes: self.waiting_bytes,
            limit: self.limit,
            totals: &self.totals,
        }
    }

    pub(super) fn next_timer(&self) -> Option<u64> {
        self.aqm.next_timer().map(|due| due.as_nanos())
    }

    pub(super) fn on_timer(&mut self, now: u64) {
        self.catch_up_before(now);
        if let Some(meter) = &mut self.meter {
            meter.sampled(self.waiting.len() as u32);
        }
        self.aqm.on_timer(cx!(self, now));
    }

    pub(super) fn replace_aqm(&mut self, mut aqm: AnyAqm, now: u64) {
        self.catch_up_before(now);
        aqm.take_over(Some(&self.aqm), instant(now), &self.totals);
        self.hooks = aqm.hooks();
        self.aqm = aqm;
    }

    pub(super) fn sample(&mut self, now: u64) -> (u32, f64) {
        self.catch_up_before(now);
        if let Some(meter) = &mut self.meter {
            meter.sample(&counts(&self.totals));
        }
        (self.waiting.len() as u32, self.aqm.probability().get())
    }

    pub(super) fn edge(&mut self, now: u64) {
        self.catch_up_before(now);
        if let Some(meter) = &mut self.meter {
            let partly = self.serving.map_or(0.0, |head| sent_bits(head.bytes, head.start, head.end, now));
            meter.edge(now, self.waiting.len() as u32, &counts(&self.totals), partly);
        }
    }

    pub(super) fn meter(&self) -> Option<&Meter> {
        self.meter.as_deref()
    }

    pub(super) fn offered_bits(&mut self) -> Option<Vec<f64>> {
        self.transmitter.offered_bits()
    }

    pub(super) fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        self.aqm.settings(visit);
    }

    pub(super) fn notes(&self, tell: &mut dyn FnMut(std::fmt::Arguments<'_>)) {
        self.aqm.notes(tell);
    }

    pub(super) fn totals(&self) -> &Totals {
        &self.totals
    }
}
