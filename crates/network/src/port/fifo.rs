//! A first-in first-out port without departure events: when a packet arrives, the end of its transmission is known,
//! `max(arrival, link free) + size / rate`. Queue length, departures and idle periods are brought up to date on demand,
//! each at its own exact moment.

use aqumen_aqm::AnyAqm;
use aqumen_aqm::{Account, Aqm, DropReason, Limit, Packet, Totals, Value, Verdict};
use aqumen_result::Meter;
use aqumen_scenario::streams::Stream;
use aqumen_units::Span;

use super::{Arrival, counts, instant, sent_bits};
use crate::Carried;
use crate::packet::metadata;
use crate::ring::Ring;
use crate::transmitter::{Booking, Transmitter};

/// The port.
pub struct FifoPort {
    account: Account<AnyAqm>,
    rng: Stream,
    transmitter: Transmitter,
    /// When the last accepted packet's transmission ends.
    free_at: u64,
    /// Packets that wait, as far as the port is up to date.
    packets: Ring<Accepted>,
    /// The packet in transmission, if there is one, or the last that was.
    sent: Accepted,
    sending: bool,
    /// The next moment at which a transmission starts or ends.
    next_change: u64,
    meter: Option<Box<Meter>>,
}

/// A packet in the port.
#[derive(Clone, Copy, Default)]
struct Accepted {
    arrived: u64,
    start: u64,
    end: u64,
    bytes: u32,
    /// Where the meter counts its wait.
    place: u32,
}

impl FifoPort {
    pub(super) fn new(
        aqm: AnyAqm,
        limit: Limit,
        rng: Stream,
        transmitter: Transmitter,
        meter: Option<Box<Meter>>,
    ) -> Self {
        FifoPort {
            account: Account::new(aqm, limit).sparing(),
            rng,
            transmitter,
            free_at: 0,
            packets: Ring::new(),
            sent: Accepted::default(),
            sending: false,
            next_change: u64::MAX,
            meter,
        }
    }

    pub(super) fn tell_groups_apart(&mut self, groups: &[(u32, bool)]) {
        self.meter.iter_mut().for_each(|meter| meter.tell_groups_apart(groups));
    }

    /// `packet` of `flow` arrives; it may be marked on the spot.
    #[inline(always)]
    pub fn arrive(&mut self, now: u64, packet: &mut impl Carried, flow: u32) -> Arrival {
        self.catch_up(now);
        let queue_pkts = self.account.backlog().packets;
        let bytes = packet.bytes();
        let enters = match self.account.coin() {
            Some(coin) => self.account.arrive_by_coin(coin, bytes, packet.ecn(), instant(now), &mut self.rng),
            None => self.ask(&metadata(packet, flow), now),
        };
        match enters {
            Err(_) => return self.lose(now, flow),
            Ok(true) => packet.mark(),
            Ok(false) => {}
        }
        let mut place = 0;
        if let Some(meter) = &mut self.meter {
            meter.advance(now, queue_pkts);
            place = meter.place_of(flow);
        }
        let Some(booking) = self.transmitter.book(now, self.free_at.max(now), bytes) else {
            return self.keep(now, bytes);
        };
        let Booking { start, end, reach, lost } = booking;
        self.free_at = end;
        self.packets.push(Accepted { arrived: now, start, end, bytes, place });
        self.next_change = self.next_change.min(start);
        if lost { Arrival::Lost { start } } else { Arrival::Leaves { start, reach } }
    }

    /// Whether a packet is marked as it enters, or why it does not enter.
    #[inline(never)]
    fn ask(&mut self, packet: &Packet, now: u64) -> Result<bool, DropReason> {
        self.account.arrive(packet, instant(now), &mut self.rng)
    }

    /// A packet of `bytes` waits for a link that never works again.
    #[cold]
    fn keep(&mut self, now: u64, bytes: u32) -> Arrival {
        self.free_at = u64::MAX;
        self.packets.push(Accepted { arrived: now, start: u64::MAX, end: u64::MAX, bytes, place: 0 });
        Arrival::Waits { busy_until: None }
    }

    /// The packet that arrived last is lost.
    #[cold]
    fn lose(&mut self, now: u64, flow: u32) -> Arrival {
        if let Some(meter) = &mut self.meter {
            meter.lost(self.account.totals().arrivals, now, flow);
        }
        Arrival::Dropped
    }

    /// Carries out the starts and ends of transmissions up to and including `now`, in order.
    #[inline(always)]
    fn catch_up(&mut self, now: u64) {
        while self.next_change <= now {
            self.change();
        }
    }

    /// Carries out what happens at the next change: a transmission ends, or one starts, or both.
    #[inline(always)]
    fn change(&mut self) {
        let now = self.next_change;
        if std::mem::take(&mut self.sending) {
            let airtime =
                if self.transmitter.line.is_none() { self.sent.end - self.sent.start } else { self.crossed() };
            self.account.transmitted(self.sent.bytes, Span::from_nanos(airtime), instant(now));
            if self.packets.is_empty() {
                self.account.idle(instant(now));
            }
        }
        let Some(&head) = self.packets.first() else {
            self.next_change = u64::MAX;
            return;
        };
        if head.start > now {
            // Only a line makes packets wait for a link that sends nothing.
            self.next_change = head.start;
            return;
        }
        self.packets.drop_first();
        let sojourn = now - head.arrived;
        if let Some(meter) = &mut self.meter {
            meter.advance(now, self.account.backlog().packets);
            meter.sojourn(sojourn, head.place);
        }
        if self.account.hears() {
            self.tell_of_head(&head, now);
        } else {
            self.account.pass_head(head.bytes, Span::from_nanos(sojourn), instant(now));
        }
        self.next_change = head.end;
        self.sent = head;
        self.sending = true;
    }

    /// A transmission over a line ended: the link's time that it took.
    #[inline(never)]
    fn crossed(&mut self) -> u64 {
        let (airtime, lost) = self.transmitter.line.as_mut().map_or((0, false), |line| line.sent());
        if let Some(meter) = &mut self.meter {
            meter.sent_over_line(lost);
        }
        airtime
    }

    /// The transmission of the packet at the head starts, of which the AQM wants to hear.
    #[inline(never)]
    fn tell_of_head(&mut self, head: &Accepted, now: u64) {
        let packet = Packet { bytes: head.bytes, segments: 1, ..Default::default() };
        let sojourn = Span::from_nanos(now - head.arrived);
        let verdict = self.account.take_head(&packet, sojourn, instant(now), &mut self.rng);
        debug_assert_eq!(verdict, Verdict::Pass, "only a served port can act at the head");
    }

    /// Brings the port up to just before the packet events of `now`.
    #[inline(never)]
    fn catch_up_before(&mut self, now: u64) {
        if let Some(before) = now.checked_sub(1) {
            self.catch_up(before);
        }
    }

    fn queue_pkts(&self) -> u32 {
        self.account.backlog().packets
    }

    pub(super) fn next_timer(&self) -> Option<u64> {
        self.account.aqm().next_timer().map(|due| due.as_nanos())
    }

    pub(super) fn on_timer(&mut self, now: u64) {
        self.catch_up_before(now);
        if let Some(meter) = &mut self.meter {
            meter.sampled(self.account.backlog().packets);
        }
        self.account.on_timer(instant(now), &mut self.rng);
    }

    pub(super) fn replace_aqm(&mut self, aqm: AnyAqm, now: u64) {
        self.catch_up_before(now);
        self.account.replace_aqm(aqm, instant(now));
    }

    pub(super) fn sample(&mut self, now: u64) -> (u32, f64) {
        self.catch_up_before(now);
        if let Some(meter) = &mut self.meter {
            meter.sample(&counts(self.account.totals()));
        }
        (self.queue_pkts(), self.account.aqm().probability().get())
    }

    pub(super) fn edge(&mut self, now: u64) {
        self.catch_up_before(now);
        let queue_pkts = self.queue_pkts();
        if let Some(meter) = &mut self.meter {
            let Accepted { bytes, start, end, .. } = self.sent;
            let partly = if self.sending { sent_bits(bytes, start, end, now) } else { 0.0 };
            meter.edge(now, queue_pkts, &counts(self.account.totals()), partly);
        }
    }

    pub(super) fn meter(&self) -> Option<&Meter> {
        self.meter.as_deref()
    }

    pub(super) fn offered_bits(&mut self) -> Option<Vec<f64>> {
        self.transmitter.offered_bits()
    }

    pub(super) fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        self.account.aqm().settings(visit);
    }

    pub(super) fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.account.aqm().observe(visit);
    }

    pub(super) fn notes(&self, tell: &mut dyn FnMut(std::fmt::Arguments<'_>)) {
        self.account.aqm().notes(tell);
    }

    pub(super) fn totals(&self) -> &Totals {
        self.account.totals()
    }
}
