//! A first-in first-out port without departure events: when a packet arrives, the end of its transmission is known,
//! `max(arrival, link free) + size / rate`. Queue length, departures and idle periods are brought up to date on demand,
//! each at its own exact moment.
//!
//! Where the AQM tosses a coin and hears of nothing else, and the link is a plain wire, nobody asks before the next
//! timer, sample or edge, unless the queue might be full: all that happened since then is accounted for at once. Which
//! comes next, an arrival or the start of a transmission, nobody could foretell; two loops over all arrivals and over
//! all starts, and one over both without a branch, take half the time of one loop that asks each time.

use std::hint::select_unpredictable;

use aqumen_aqm::AnyAqm;
use aqumen_aqm::{Account, Aqm, Backlog, Coin, DropReason, Limit, Packet, Passage, Totals, Value, Verdict};
use aqumen_result::Meter;
use aqumen_scenario::memory::kept;
use aqumen_scenario::streams::Stream;
use aqumen_units::{Bytes, Probability, Span};

use super::answers::{Arrival, counts, instant, sent_bits};
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
    /// When the AQM's timer is due; `NEVER`: it has none.
    due: u64,
    /// Packets that wait, as far as the port is up to date.
    packets: Ring<Accepted>,
    /// Of these, by number, the first of which the meter does not know yet that it came.
    unseen: usize,
    /// Up to this number there is room for packets whatever has left, and nobody asks before they enter.
    prompt_until: usize,
    /// What the AQM does with those, and which of the meter's histograms counts their waits; `EACH` must be asked.
    coin: Coin,
    histogram: u32,
    /// The packet in transmission, if there is one, or the last that was.
    sent: Accepted,
    sending: bool,
    meter: Option<Box<Meter>>,
}

/// A packet in the port.
#[derive(Clone, Copy, Default)]
struct Accepted {
    arrived: u64,
    start: u64,
    end: u64,
    bytes: u32,
    /// Which of the meter's histograms counts its wait.
    histogram: u32,
}

const _: () = assert!(size_of::<Accepted>() <= kept::IN_FIFO, "the memory of a run is foreseen with less");

/// Packets of different flows are counted by different histograms.
const EACH: u32 = u32::MAX;

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
            account: Account::new(aqm, limit).sparing(),
            rng,
            transmitter,
            free_at: 0,
            due: NEVER,
            packets: Ring::new(),
            unseen: 0,
            prompt_until: 0,
            coin: Coin { probability: Probability::ZERO, ecn: false },
            histogram: 0,
            sent: Accepted::default(),
            sending: false,
            meter,
        };
        port.follow_aqm();
        port
    }

    pub(super) fn tell_groups_apart(&mut self, groups: &[(u32, bool)]) {
        self.meter.iter_mut().for_each(|meter| meter.tell_groups_apart(groups));
        self.histogram = self.meter.as_ref().map_or(0, |meter| meter.only_histogram().unwrap_or(EACH));
    }

    /// `packet` of `flow` arrives; it may be marked on the spot.
    #[inline(always)]
    pub fn arrive(&mut self, now: u64, packet: &mut impl Carried, flow: u32) -> Arrival {
        if self.packets.entered() >= self.prompt_until {
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
        let histogram = if self.histogram == EACH { self.histogram_of(flow) } else { self.histogram };
        self.packets.push_in_room(Accepted { arrived: now, start, end, bytes, histogram });
        Arrival::Leaves { start, reach: end + self.transmitter.delay }
    }

    /// The same where the AQM must be asked, or there may be no room; and whether the packet is marked.
    #[inline(never)]
    fn arrive_rarely(&mut self, now: u64, packet: &Packet) -> (Arrival, bool) {
        self.catch_up(now);
        let queue_pkts = self.account.backlog().packets;
        let Packet { bytes, ecn, flow_hash: flow, .. } = *packet;
        let enters = match self.account.coin() {
            Some(coin) => self.account.arrive_by_coin(coin, bytes, ecn, instant(now), &mut self.rng),
            None => self.ask(packet, now),
        };
        let Ok(marks) = enters else { return (self.lose(now, flow), false) };
        let mut histogram = 0;
        if let Some(meter) = &mut self.meter {
            meter.advance(now, queue_pkts);
            histogram = meter.histogram_of(flow);
        }
        let Some(booking) = self.transmitter.book(now, self.free_at.max(now), bytes) else {
            return (self.keep(now, bytes), marks);
        };
        let Booking { start, end, reach, lost } = booking;
        self.free_at = end;
        self.enter(Accepted { arrived: now, start, end, bytes, histogram });
        (if lost { Arrival::Lost { start } } else { Arrival::Leaves { start, reach } }, marks)
    }

    /// A packet enters of which the meter knows.
    #[inline]
    fn enter(&mut self, packet: Accepted) {
        self.packets.push(packet);
        self.unseen = self.packets.entered();
        self.look_ahead();
    }

    /// Looks how many packets may come before anybody asks.
    fn look_ahead(&mut self) {
        self.prompt_until = match self.tossed() {
            Some(coin) => {
                self.coin = coin;
                // One place in the ring is left for what comes after all of them.
                let limit = self.account.limit().packets as usize;
                self.packets.left() + self.packets.room().saturating_sub(1).min(limit)
            }
            None => 0,
        };
    }

    /// The AQM may toss another coin from now on, and its timer is due at another moment.
    fn follow_aqm(&mut self) {
        self.due = self.account.aqm().next_timer().map_or(NEVER, |due| due.as_nanos());
        self.look_ahead();
    }

    /// What the AQM tosses, where packets may come that nobody asks about: what happens at the head can be accounted
    /// for at once, and their number alone is limited.
    #[inline(always)]
    fn tossed(&self) -> Option<Coin> {
        let is_at_once = !self.account.hears() && self.transmitter.line.is_none();
        self.account.coin().filter(|_| is_at_once && self.account.limit().bytes == Bytes(u64::MAX))
    }

    #[inline(never)]
    fn histogram_of(&self, flow: u32) -> u32 {
        self.meter.as_ref().map_or(0, |meter| meter.histogram_of(flow))
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
        self.enter(Accepted { arrived: now, start: u64::MAX, end: u64::MAX, bytes, histogram: 0 });
        Arrival::Waits { busy_until: None }
    }

    /// A packet of `bytes` that was chosen and cannot carry a mark is lost.
    #[cold]
    #[inline(never)]
    fn refuse(&mut self, now: u64, flow: u32, bytes: u32) -> Arrival {
        self.account.refuse(bytes);
        self.lose(now, flow)
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
        if self.tossed().is_some() {
            self.catch_up_at_once(now);
        } else {
            // Somebody asks at each packet: there are one or two changes each time.
            debug_assert!(self.unseen == self.packets.entered(), "a packet came of which the meter does not know");
            while self.change(now) {}
        }
    }

    /// The same at a plain wire whose AQM hears of none of them.
    #[inline(never)]
    fn catch_up_at_once(&mut self, now: u64) {
        let (left, entered) = (self.packets.left(), self.packets.entered());
        self.packets.make_room(entered - left + 1);
        let mut packets = self.packets.by_number();
        // What comes after all of them has not come and does not start.
        *packets.at(entered) = Accepted { arrived: u64::MAX, start: u64::MAX, ..Accepted::default() };
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
            let (came, queue_pkts) = (entered - self.unseen, (self.unseen - left) as u32);
            let (mut joined, mut started) = (self.unseen, left);
            let (mut joins_at, mut starts_at) = (packets.at(joined).arrived, packets.at(started).start);
            let changes = (0..came + (next - left)).map(move |_| {
                // Read before it is known which of both is needed: what comes first hangs on the one before.
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
        // All transmissions that started have ended, but perhaps the last.
        let is_sending = last.end > now && (self.sending || next > left);
        let (before, after) = (self.sending.then_some(self.sent), is_sending.then_some(last));
        let of = |sum: &dyn Fn(&Accepted) -> u64| [before, after].map(|packet| packet.as_ref().map_or(0, sum));
        let ended = |taken: u64, [before, after]: [u64; 2]| before + taken - after;
        self.account.pass(&Passage {
            taken,
            last_sojourn: Span::from_nanos(last.start - last.arrived),
            sent: Backlog {
                packets: ended(taken.packets.into(), of(&|_| 1)) as u32,
                bytes: ended(taken.bytes, of(&|packet| packet.bytes.into())),
            },
            busy: Span::from_nanos(ended(taken_ns, of(&|packet| packet.end - packet.start))),
            transmitting_since: after.map(|packet| instant(packet.start)),
        });
        (self.sent, self.sending) = (last, is_sending);
        self.unseen = entered;
        self.packets.drop_until(next);
        self.look_ahead();
    }

    /// Carries out the next change up to and including `now`, if there is one: a transmission ends, or one starts.
    #[inline(always)]
    fn change(&mut self, now: u64) -> bool {
        if self.sending {
            let Accepted { bytes, start, end, .. } = self.sent;
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
        // A line may make packets wait for a link that sends nothing.
        let Some(&head) = self.packets.first().filter(|head| head.start <= now) else { return false };
        self.packets.drop_first();
        let sojourn = head.start - head.arrived;
        if let Some(meter) = &mut self.meter {
            meter.advance(head.start, self.account.backlog().packets);
            meter.sojourn(sojourn, head.histogram);
        }
        if self.account.hears() {
            self.tell_of_head(&head);
        } else {
            self.account.pass_head(head.bytes, Span::from_nanos(sojourn), instant(head.start));
        }
        self.sent = head;
        self.sending = true;
        true
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
    fn tell_of_head(&mut self, head: &Accepted) {
        let packet = Packet { bytes: head.bytes, segments: 1, ..Default::default() };
        let sojourn = Span::from_nanos(head.start - head.arrived);
        let verdict = self.account.take_head(&packet, sojourn, instant(head.start), &mut self.rng);
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

    /// When the AQM's timer is due; `u64::MAX`: it has none.
    #[inline(always)]
    pub fn due(&self) -> u64 {
        self.due
    }

    /// The AQM's timer is due.
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
