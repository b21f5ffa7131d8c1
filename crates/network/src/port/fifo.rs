//! A first-in first-out port without departure events: the end of a packet's transmission is known when it arrives,
//! `max(arrival, link free) + size / rate`. Queue length, departures and idle periods are brought up to date on demand,
//! each at its own exact time.
//!
//! Where the AQM only tosses a coin and the link is a plain wire, the state is not read before the next timer, sample
//! or edge, unless the queue might be full. The port then catches up in one pass. Arrivals and starts of transmission
//! interleave unpredictably, so the pass merges them without a branch, which takes half the time of a branching loop.

use std::hint::select_unpredictable;

use aqumen_aqm::AnyAqm;
use aqumen_aqm::{Account, Aqm, Backlog, Coin, DropReason, Limit, Packet, ServiceRecord, Totals, Value, Verdict};
use aqumen_result::Meter;
use aqumen_scenario::streams::Stream;
use aqumen_units::{Bytes, Probability, Span};

use super::common::{Arrival, BY_FLOW, counts, instant, sent_bits};
use crate::WirePacket;
use crate::packet::metadata;
use crate::ring::Ring;
use crate::transmitter::{Booking, Transmitter};

/// A FIFO port.
#[derive(Clone)]
pub struct FifoPort {
    account: Account<AnyAqm>,
    rng: Stream,
    transmitter: Transmitter,
    /// End of the last accepted packet's transmission.
    free_at: u64,
    /// Time of the AQM's timer; `NEVER` if it has none.
    due: u64,
    /// Packets that wait, as of the last catch-up.
    packets: Ring<QueuedPacket>,
    /// Number of the first packet whose arrival the meter has not counted.
    unmetered: usize,
    /// Packets up to this number fit whatever has left, and enter without a look at the queue.
    fits_until: usize,
    /// Coin that the AQM tosses for these packets.
    coin: Coin,
    /// Histogram of the meter that counts their sojourn times; `BY_FLOW` if it depends on the flow.
    histogram: u32,
    /// Packet in transmission, or else the last one sent.
    sent: QueuedPacket,
    sending: bool,
    meter: Option<Box<Meter>>,
}

/// A packet in the port.
#[derive(Clone, Copy, Default)]
struct QueuedPacket {
    arrived: u64,
    start: u64,
    end: u64,
    bytes: u32,
    /// Histogram of the meter that counts its sojourn time.
    histogram: u32,
}

const NEVER: u64 = u64::MAX;

impl FifoPort {
    pub(super) fn new(
        aqm: AnyAqm,
        limit: Limit,
        rng: Stream,
        transmitter: Transmitter,
        meter: Option<Box<Meter>>,
    ) -> Self {
        let mut port = FifoPort {
            account: Account::new(aqm, limit).skipping_unused_hooks(),
            rng,
            transmitter,
            free_at: 0,
            due: NEVER,
            packets: Ring::new(),
            unmetered: 0,
            fits_until: 0,
            coin: Coin { probability: Probability::ZERO, ecn: false },
            histogram: 0,
            sent: QueuedPacket::default(),
            sending: false,
            meter,
        };
        port.follow_aqm();
        port
    }

    pub(super) fn separate_groups(&mut self, groups: &[(u32, bool)]) {
        self.meter.iter_mut().for_each(|meter| meter.separate_groups(groups));
        self.histogram = self.meter.as_ref().map_or(0, |meter| meter.only_histogram().unwrap_or(BY_FLOW));
    }

    /// Lets `packet` of `flow` arrive, and marks it if the AQM says so.
    #[inline(always)]
    pub fn arrive(&mut self, now: u64, packet: &mut impl WirePacket, flow: u32) -> Arrival {
        if self.packets.entered() >= self.fits_until {
            let (arrival, marks) = self.arrive_rarely(now, &metadata(packet, flow));
            packet.mark_if(marks);
            return arrival;
        }
        let (bytes, coin) = (packet.bytes(), self.coin);
        let chosen = coin.chooses(&mut self.rng);
        let marks = chosen & coin.ecn & packet.ecn().is_ect();
        if chosen & !marks {
            return self.refuse(now, flow, bytes);
        }
        packet.mark_if(marks);
        self.account.admit(bytes, marks);
        let start = self.free_at.max(now);
        let end = self.transmitter.send(start, bytes);
        self.free_at = end;
        let histogram = if self.histogram == BY_FLOW { self.histogram_of(flow) } else { self.histogram };
        self.packets.push_fitting(QueuedPacket { arrived: now, start, end, bytes, histogram });
        Arrival::Leaves { start, reach: end + self.transmitter.delay }
    }

    /// Lets a packet arrive where the AQM must decide or the queue may be full. Returns also whether the packet is
    /// marked.
    #[inline(never)]
    fn arrive_rarely(&mut self, now: u64, packet: &Packet) -> (Arrival, bool) {
        self.catch_up(now);
        let queue_pkts = self.account.backlog().packets;
        let Packet { bytes, ecn, flow_hash: flow, .. } = *packet;
        let enters = match self.account.coin() {
            Some(coin) => self.account.arrive_by_coin(coin, bytes, ecn, instant(now), &mut self.rng),
            None => self.decide(packet, now),
        };
        let Ok(marks) = enters else { return (self.lose(now, flow), false) };
        let mut histogram = 0;
        if let Some(meter) = &mut self.meter {
            meter.advance(now, queue_pkts);
            histogram = meter.histogram_of(flow);
        }
        let Some(booking) = self.transmitter.book(now, self.free_at.max(now), bytes) else {
            return (self.queue_for_ever(now, bytes), marks);
        };
        let Booking { start, end, reach, lost } = booking;
        self.free_at = end;
        self.enter(QueuedPacket { arrived: now, start, end, bytes, histogram });
        (if lost { Arrival::Lost { start, end } } else { Arrival::Leaves { start, reach } }, marks)
    }

    /// Queues a packet that the meter has counted.
    #[inline]
    fn enter(&mut self, packet: QueuedPacket) {
        self.packets.push(packet);
        self.unmetered = self.packets.entered();
        self.look_ahead();
    }

    /// Computes how many packets may enter without a look at the queue.
    fn look_ahead(&mut self) {
        self.fits_until = match self.plain_coin() {
            Some(coin) => {
                self.coin = coin;
                // One slot stays free for a sentinel after the last packet.
                let limit = self.account.limit().packets as usize;
                self.packets.left() + self.packets.capacity().saturating_sub(1).min(limit)
            }
            None => 0,
        };
    }

    /// Reads the AQM's timer and coin, which may have changed.
    fn follow_aqm(&mut self) {
        self.due = self.account.aqm().next_timer().map_or(NEVER, |due| due.as_nanos());
        self.look_ahead();
    }

    /// Returns the AQM's coin where packets may enter without a look at the queue: departures are accounted for in one
    /// pass, and the limit counts packets.
    #[inline(always)]
    fn plain_coin(&self) -> Option<Coin> {
        let is_at_once = !self.account.observes_departures() && self.transmitter.line.is_none();
        self.account.coin().filter(|_| is_at_once && self.account.limit().bytes == Bytes(u64::MAX))
    }

    #[inline(never)]
    fn histogram_of(&self, flow: u32) -> u32 {
        self.meter.as_ref().map_or(0, |meter| meter.histogram_of(flow))
    }

    /// Returns whether the AQM marks a packet as it enters, or why the packet is dropped.
    #[inline(never)]
    fn decide(&mut self, packet: &Packet, now: u64) -> Result<bool, DropReason> {
        self.account.arrive(packet, instant(now), &mut self.rng)
    }

    /// Queues a packet of `bytes` for a link that never works again.
    #[cold]
    fn queue_for_ever(&mut self, now: u64, bytes: u32) -> Arrival {
        self.free_at = u64::MAX;
        self.enter(QueuedPacket { arrived: now, start: u64::MAX, end: u64::MAX, bytes, histogram: 0 });
        Arrival::Waits { busy_until: None }
    }

    /// Drops a packet of `bytes` that the coin chose and that cannot carry a mark.
    #[cold]
    #[inline(never)]
    fn refuse(&mut self, now: u64, flow: u32, bytes: u32) -> Arrival {
        self.account.refuse(bytes);
        self.lose(now, flow)
    }

    /// Counts the packet that arrived last as dropped.
    #[cold]
    fn lose(&mut self, now: u64, flow: u32) -> Arrival {
        if let Some(meter) = &mut self.meter {
            meter.lost(self.account.totals().arrivals, now, flow);
        }
        Arrival::Dropped
    }

    /// Carries out all starts and ends of transmissions up to and including `now`, in order.
    #[inline(always)]
    fn catch_up(&mut self, now: u64) {
        if self.plain_coin().is_some() {
            self.catch_up_at_once(now);
        } else {
            // Each packet catches up: there are one or two changes each time.
            debug_assert!(self.unmetered == self.packets.entered(), "the meter has not counted a packet");
            while self.change(now) {}
        }
    }

    /// Catches up in one pass, where the AQM does not observe departures.
    #[inline(never)]
    fn catch_up_at_once(&mut self, now: u64) {
        let (left, entered) = (self.packets.left(), self.packets.entered());
        self.packets.reserve(entered - left + 1);
        let mut packets = self.packets.by_number();
        // The sentinel after the last packet neither arrives nor starts.
        *packets.at(entered) = QueuedPacket { arrived: u64::MAX, start: u64::MAX, ..QueuedPacket::default() };
        let (mut next, mut last) = (left, self.sent);
        let (mut taken_bytes, mut taken_ns) = (0, 0);
        loop {
            let packet = packets.at(next);
            if packet.start > now {
                break;
            }
            last = *packet;
            if let Some(meter) = &mut self.meter {
                meter.sojourn(last.start - last.arrived, last.histogram);
            }
            taken_bytes += u64::from(last.bytes);
            taken_ns += last.end - last.start;
            next += 1;
        }
        let taken = Backlog { packets: (next - left) as u32, bytes: taken_bytes };
        if let Some(meter) = &mut self.meter {
            let (came, queue_pkts) = (entered - self.unmetered, (self.unmetered - left) as u32);
            let (mut joined, mut started) = (self.unmetered, left);
            let (mut joins_at, mut starts_at) = (packets.at(joined).arrived, packets.at(started).start);
            let changes = (0..came + (next - left)).map(move |_| {
                // Both are read before it is known which is needed: a select instead of a branch.
                let (joins_after, starts_after) = (packets.at(joined + 1).arrived, packets.at(started + 1).start);
                let (now, joins) = (joins_at.min(starts_at), joins_at <= starts_at);
                joins_at = select_unpredictable(joins, joins_after, joins_at);
                starts_at = select_unpredictable(joins, starts_at, starts_after);
                joined += usize::from(joins);
                started += usize::from(!joins);
                (now, joins)
            });
            meter.advance_through(queue_pkts, queue_pkts + came as u32, changes);
        }
        // All transmissions that started have ended, except perhaps the last.
        let is_sending = last.end > now && (self.sending || next > left);
        let (before, after) = (self.sending.then_some(self.sent), is_sending.then_some(last));
        let sums = |sum: &dyn Fn(&QueuedPacket) -> u64| [before, after].map(|packet| packet.as_ref().map_or(0, sum));
        let ended = |taken: u64, [before, after]: [u64; 2]| before + taken - after;
        self.account.record_service(&ServiceRecord {
            started: taken,
            last_sojourn: Span::from_nanos(last.start - last.arrived),
            finished: Backlog {
                packets: ended(taken.packets.into(), sums(&|_| 1)) as u32,
                bytes: ended(taken.bytes, sums(&|packet| packet.bytes.into())),
            },
            busy: Span::from_nanos(ended(taken_ns, sums(&|packet| packet.end - packet.start))),
            transmitting_since: after.map(|packet| instant(packet.start)),
        });
        (self.sent, self.sending) = (last, is_sending);
        self.unmetered = entered;
        self.packets.drop_until(next);
        self.look_ahead();
    }

    /// Carries out the next start or end of a transmission up to and including `now`; returns whether there was one.
    #[inline(always)]
    fn change(&mut self, now: u64) -> bool {
        if self.sending {
            let QueuedPacket { bytes, start, end, .. } = self.sent;
            if end > now {
                return false;
            }
            self.sending = false;
            let airtime = if self.transmitter.line.is_none() { end - start } else { self.crossed() };
            self.account.transmitted(bytes, Span::from_nanos(airtime), instant(end));
            if self.packets.is_empty() {
                self.account.idle(instant(end));
            }
            return true;
        }
        // Over a line, packets may wait although nothing is sent.
        let Some(&head) = self.packets.first().filter(|head| head.start <= now) else { return false };
        self.packets.drop_first();
        let sojourn = head.start - head.arrived;
        if let Some(meter) = &mut self.meter {
            meter.advance(head.start, self.account.backlog().packets);
            meter.sojourn(sojourn, head.histogram);
        }
        if self.account.observes_departures() {
            self.report_head(&head);
        } else {
            self.account.start_head(head.bytes, Span::from_nanos(sojourn), instant(head.start));
        }
        self.sent = head;
        self.sending = true;
        true
    }

    /// Ends a transmission over a line; returns the link time that it took.
    #[inline(never)]
    fn crossed(&mut self) -> u64 {
        let (airtime, lost) = self.transmitter.line.as_mut().map_or((0, false), |line| line.sent());
        if let Some(meter) = &mut self.meter {
            meter.sent_over_line(lost);
        }
        airtime
    }

    /// Reports the packet at the head, whose transmission starts, to an AQM that observes departures.
    #[inline(never)]
    fn report_head(&mut self, head: &QueuedPacket) {
        let packet = Packet { bytes: head.bytes, segments: 1, ..Default::default() };
        let sojourn = Span::from_nanos(head.start - head.arrived);
        let verdict = self.account.dequeue_head(&packet, sojourn, instant(head.start), &mut self.rng);
        debug_assert_eq!(verdict, Verdict::Pass, "only a served port can act at the head");
    }

    /// Catches up to just before the packet events of `now`.
    #[inline(never)]
    fn catch_up_before(&mut self, now: u64) {
        if let Some(before) = now.checked_sub(1) {
            self.catch_up(before);
        }
    }

    fn queue_pkts(&self) -> u32 {
        self.account.backlog().packets
    }

    /// Returns the time of the AQM's timer; `u64::MAX` if it has none.
    #[inline(always)]
    pub fn due(&self) -> u64 {
        self.due
    }

    /// Runs the AQM's timer.
    pub fn on_timer(&mut self, now: u64) {
        self.catch_up_before(now);
        if let Some(meter) = &mut self.meter {
            meter.sampled(self.account.backlog().packets);
        }
        self.account.on_timer(instant(now), &mut self.rng);
        self.follow_aqm();
    }

    pub(super) fn replace_aqm(&mut self, aqm: AnyAqm, now: u64) {
        self.catch_up_before(now);
        self.account.replace_aqm(aqm, instant(now));
        self.follow_aqm();
    }

    pub(super) fn look(&mut self, now: u64) -> (Backlog, f64) {
        self.catch_up_before(now);
        (self.account.backlog(), self.account.aqm().probability().get())
    }

    pub(super) fn transmission_end(&self) -> Option<u64> {
        if self.sending { Some(self.sent.end) } else { self.packets.first().map(|packet| packet.end) }
    }

    pub(super) fn reseed(&mut self, rng: Stream, losses: Stream) {
        self.rng = rng;
        self.transmitter.reseed(losses);
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
            let QueuedPacket { bytes, start, end, .. } = self.sent;
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

    pub(super) fn notes(&self, report: &mut dyn FnMut(std::fmt::Arguments<'_>)) {
        self.account.aqm().notes(report);
    }

    pub(super) fn totals(&self) -> &Totals {
        self.account.totals()
    }
}
