//! First-in first-out discipline with an [`Aqm`], and its [`Account`] for hosts that store the packets themselves.

use alloc::collections::VecDeque;
use core::fmt;

use aqumen_units::{Ecn, Instant, Probability, Span};

use crate::any_aqm::AnyAqm;
use crate::{
    Aqm, Backlog, Coin, Cx, Draw, DropReason, Fates, Handle, Hooks, Limit, Packet, Qdisc, QdiscVisitor, QueueView,
    Totals, Value, Verdict,
};

/// Counters of a first-in first-out queue, and the calls to its algorithm. The host stores the packets in order and
/// reports when the head is dequeued.
#[derive(Clone, Debug)]
pub struct Account<A> {
    aqm: A,
    /// Whether the algorithm is called at dequeues and departures.
    observes_departures: bool,
    /// Whether calls that the algorithm does not need are omitted.
    skips_unused_hooks: bool,
    /// The coin that the algorithm tosses at arrivals, if it does nothing else.
    coin: Option<Coin>,
    limit: Limit,
    backlog: Backlog,
    totals: Totals,
}

/// Transmissions during an interval.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServiceRecord {
    /// Packets and bytes whose transmission started.
    pub started: Backlog,
    /// Sojourn time of the last of them.
    pub last_sojourn: Span,
    /// Packets and bytes whose transmission ended.
    pub finished: Backlog,
    /// Total duration of the ended transmissions.
    pub busy: Span,
    /// Start of the transmission in progress at the end of the interval; `None` without one.
    pub transmitting_since: Option<Instant>,
}

/// First-in first-out queue with an [`Aqm`].
#[derive(Clone, Debug)]
pub struct Fifo<A> {
    account: Account<A>,
    waiting: VecDeque<Waiting>,
    in_transmission_bytes: u32,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    handle: Handle,
    packet: Packet,
    arrived: Instant,
}

/// Packets for which memory is reserved at construction. Larger queues grow on demand; few ever fill.
const RESERVED_PKTS: u32 = 1 << 14;

/// Context of a call. A macro, since it borrows the account's fields while the algorithm is borrowed mutably.
macro_rules! cx {
    ($account:ident, $now:expr, $rng:expr) => {
        &mut Cx {
            now: $now,
            queue: QueueView {
                packets: $account.backlog.packets,
                bytes: $account.backlog.bytes,
                limit: $account.limit,
                totals: &$account.totals,
            },
            rng: $rng,
        }
    };
}

impl<A: Aqm> Account<A> {
    /// Account of an empty queue with capacity `limit` and algorithm `aqm`.
    pub fn new(aqm: A, limit: Limit) -> Self {
        let (backlog, totals) = (Backlog::default(), Totals::default());
        Account { observes_departures: true, skips_unused_hooks: false, coin: aqm.coin(), aqm, limit, backlog, totals }
    }

    /// Omits the calls that the algorithm does not need according to its [`Hooks`].
    pub fn skipping_unused_hooks(self) -> Self {
        Account { observes_departures: needs_departures(self.aqm.hooks()), skips_unused_hooks: true, ..self }
    }

    /// The coin that the algorithm tosses at arrivals, if it does nothing else. Then
    /// [`arrive_by_coin`](Self::arrive_by_coin) replaces [`arrive`](Self::arrive).
    #[inline(always)]
    pub fn coin(&self) -> Option<Coin> {
        self.coin
    }

    /// Handles an arriving packet. Returns whether it is marked, or the reason of its drop.
    #[inline]
    pub fn arrive<R: Draw>(&mut self, packet: &Packet, now: Instant, rng: &mut R) -> Result<bool, DropReason> {
        let verdict = self.aqm.on_arrival(packet, cx!(self, now, rng));
        let full = self.view().is_full(packet);
        if full {
            self.overflow(packet, now, rng);
        }
        self.enter(packet.bytes, verdict, full)
    }

    /// [`arrive`](Self::arrive) for an algorithm that only tosses `coin`.
    #[inline(always)]
    pub fn arrive_by_coin<R: Draw>(
        &mut self,
        coin: Coin,
        bytes: u32,
        ecn: Ecn,
        now: Instant,
        rng: &mut R,
    ) -> Result<bool, DropReason> {
        let full = self.view().is_full_for(bytes);
        let verdict = coin.toss(ecn, full, rng);
        if full {
            self.overflow(&Packet { bytes, ecn, segments: 1, ..Packet::default() }, now, rng);
        }
        self.enter(bytes, verdict, full)
    }

    /// Enqueues a packet that fits, with or without a mark.
    #[inline(always)]
    pub fn admit(&mut self, bytes: u32, marked: bool) {
        self.totals.admit(bytes, marked);
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(bytes);
    }

    /// Counts an early drop of an arriving packet.
    #[inline]
    pub fn refuse(&mut self, bytes: u32) {
        self.totals.arrive(bytes, Verdict::Drop(DropReason::Early), false);
    }

    #[inline(always)]
    fn enter(&mut self, bytes: u32, verdict: Verdict, full: bool) -> Result<bool, DropReason> {
        if let Some(reason) = self.totals.arrive(bytes, verdict, full) {
            return Err(reason);
        }
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(bytes);
        Ok(verdict == Verdict::Mark)
    }

    #[cold]
    fn overflow<R: Draw>(&mut self, packet: &Packet, now: Instant, rng: &mut R) {
        self.aqm.on_overflow(packet, cx!(self, now, rng));
    }

    /// Dequeues the packet at the head, which waited for `sojourn`. Its transmission starts, unless the verdict is a
    /// drop.
    #[inline]
    pub fn dequeue_head<R: Draw>(&mut self, packet: &Packet, sojourn: Span, now: Instant, rng: &mut R) -> Verdict {
        self.take(packet.bytes, sojourn);
        let mut verdict = Verdict::Pass;
        if self.observes_departures {
            verdict = self.aqm.on_dequeue(packet, sojourn, cx!(self, now, rng));
            match verdict {
                Verdict::Drop(reason) => {
                    self.totals.discard(reason);
                    return verdict;
                }
                Verdict::Mark => self.totals.marked += 1,
                Verdict::Pass => {}
            }
        }
        self.totals.transmitting_since = Some(now);
        verdict
    }

    #[inline(always)]
    fn take(&mut self, bytes: u32, sojourn: Span) {
        self.backlog.packets -= 1;
        self.backlog.bytes -= u64::from(bytes);
        self.totals.last_sojourn = sojourn;
    }

    /// [`dequeue_head`](Self::dequeue_head) for an algorithm that does not [observe
    /// departures](Self::observes_departures).
    #[inline(always)]
    pub fn start_head(&mut self, bytes: u32, sojourn: Span, now: Instant) {
        self.take(bytes, sojourn);
        self.totals.transmitting_since = Some(now);
    }

    /// Whether the algorithm is called at dequeues and departures.
    #[inline]
    pub fn observes_departures(&self) -> bool {
        self.observes_departures
    }

    /// Counts all transmissions since the last call, for an algorithm that does not
    /// [observe departures](Self::observes_departures).
    pub fn record_service(&mut self, service: &ServiceRecord) {
        debug_assert!(!self.observes_departures, "the algorithm observes each departure");
        let ServiceRecord { started, last_sojourn, finished, busy, transmitting_since } = *service;
        self.backlog.packets -= started.packets;
        self.backlog.bytes -= started.bytes;
        if started.packets > 0 {
            self.totals.last_sojourn = last_sojourn;
        }
        self.totals.departures += u64::from(finished.packets);
        self.totals.departed_bytes += finished.bytes;
        self.totals.busy += busy;
        self.totals.transmitting_since = transmitting_since;
    }

    /// Ends the transmission of a packet of `bytes`, which took `duration`.
    #[inline]
    pub fn transmitted(&mut self, bytes: u32, duration: Span, now: Instant) {
        self.totals.departures += 1;
        self.totals.departed_bytes += u64::from(bytes);
        self.totals.busy += duration;
        self.totals.transmitting_since = None;
        if self.observes_departures {
            self.aqm.on_departure(now);
        }
    }

    /// Reports that the link found the queue empty.
    #[inline]
    pub fn idle(&mut self, now: Instant) {
        if self.observes_departures {
            self.aqm.on_idle(now);
        }
    }

    /// Handles the algorithm's timer; late and early calls are allowed.
    pub fn on_timer<R: Draw>(&mut self, now: Instant, rng: &mut R) {
        self.aqm.on_timer(cx!(self, now, rng));
        self.coin = self.aqm.coin();
    }

    /// Replaces the algorithm by `aqm` at `now`; `aqm` takes over its state, the packets stay.
    pub fn replace_aqm(&mut self, mut aqm: A, now: Instant) {
        aqm.take_over(Some(&self.aqm), now, &self.totals);
        self.observes_departures = !self.skips_unused_hooks || needs_departures(aqm.hooks());
        self.coin = aqm.coin();
        self.aqm = aqm;
    }

    /// The algorithm.
    #[inline]
    pub fn aqm(&self) -> &A {
        &self.aqm
    }

    /// Capacity.
    #[inline]
    pub fn limit(&self) -> Limit {
        self.limit
    }

    /// Packets and bytes waiting, without the packet in transmission.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Cumulative counters.
    #[inline]
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    #[inline]
    fn view(&self) -> QueueView<'_> {
        let Backlog { packets, bytes } = self.backlog;
        QueueView { packets, bytes, limit: self.limit, totals: &self.totals }
    }
}

fn needs_departures(hooks: Hooks) -> bool {
    hooks.departures || hooks.decides_at_head
}

impl<A: Aqm> Fifo<A> {
    /// Empty queue with capacity `limit` and algorithm `aqm`.
    pub fn new(aqm: A, limit: Limit) -> Self {
        Fifo {
            account: Account::new(aqm, limit),
            waiting: VecDeque::with_capacity(limit.packets.min(RESERVED_PKTS) as usize),
            in_transmission_bytes: 0,
        }
    }

    /// The algorithm.
    pub fn aqm(&self) -> &A {
        &self.account.aqm
    }

    /// The algorithm; waiting packets are discarded.
    pub fn into_aqm(self) -> A {
        self.account.aqm
    }

    /// Replaces the algorithm by `aqm` at `now`; `aqm` takes over its state, the packets stay.
    pub fn replace_aqm(&mut self, aqm: A, now: Instant) {
        self.account.replace_aqm(aqm, now);
    }

    /// Heap memory of the queue in bytes, without that of its algorithm.
    pub fn memory_bytes(&self) -> usize {
        self.waiting.capacity() * size_of::<Waiting>()
    }
}

impl Fifo<AnyAqm> {
    /// Calls `visitor` with the queue; if its algorithm decides at the head, the visitor knows the algorithm's type.
    pub(crate) fn visit<V: QdiscVisitor>(&mut self, visitor: V) -> V::Output {
        match *self.aqm() {
            AnyAqm::Codel(aqm) => self.visit_as(aqm, AnyAqm::Codel, visitor),
            AnyAqm::Cobalt(aqm) => self.visit_as(aqm, AnyAqm::Cobalt, visitor),
            _ => visitor.visit(self),
        }
    }

    fn visit_as<A: Aqm, V: QdiscVisitor>(&mut self, aqm: A, wrap: fn(A) -> AnyAqm, visitor: V) -> V::Output {
        let Account { observes_departures, skips_unused_hooks, coin, limit, backlog, totals, .. } = self.account;
        let mut queue = Fifo {
            account: Account { aqm, observes_departures, skips_unused_hooks, coin, limit, backlog, totals },
            waiting: core::mem::take(&mut self.waiting),
            in_transmission_bytes: self.in_transmission_bytes,
        };
        let output = visitor.visit(&mut queue);
        let Account { aqm, backlog, totals, .. } = queue.account;
        (self.account.aqm, self.account.backlog, self.account.totals) = (wrap(aqm), backlog, totals);
        (self.waiting, self.in_transmission_bytes) = (queue.waiting, queue.in_transmission_bytes);
        output
    }
}

impl<A: Aqm> Qdisc for Fifo<A> {
    #[inline(always)]
    fn enqueue<R: Draw>(&mut self, handle: Handle, packet: &Packet, now: Instant, rng: &mut R, fates: &mut impl Fates) {
        match self.account.arrive(packet, now, rng) {
            Err(reason) => return fates.dropped(handle, reason),
            Ok(true) => fates.marked(handle),
            Ok(false) => {}
        }
        self.waiting.push_back(Waiting { handle, packet: *packet, arrived: now });
    }

    #[inline(always)]
    fn dequeue<R: Draw>(&mut self, now: Instant, rng: &mut R, fates: &mut impl Fates) -> Option<Handle> {
        while let Some(head) = self.waiting.pop_front() {
            match self.account.dequeue_head(&head.packet, now - head.arrived, now, rng) {
                Verdict::Drop(reason) => {
                    fates.dropped(head.handle, reason);
                    continue;
                }
                Verdict::Mark => fates.marked(head.handle),
                Verdict::Pass => {}
            }
            self.in_transmission_bytes = head.packet.bytes;
            return Some(head.handle);
        }
        self.account.idle(now);
        None
    }

    fn transmitted(&mut self, duration: Span, now: Instant) {
        self.account.transmitted(self.in_transmission_bytes, duration, now);
    }

    fn backlog(&self) -> Backlog {
        self.account.backlog
    }

    fn totals(&self) -> &Totals {
        &self.account.totals
    }

    fn next_timer(&self) -> Option<Instant> {
        self.account.aqm.next_timer()
    }

    fn on_timer<R: Draw>(&mut self, now: Instant, rng: &mut R) {
        self.account.on_timer(now, rng);
    }

    fn probability(&self) -> Probability {
        self.account.aqm.probability()
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.account.aqm.observe(visit);
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        self.account.aqm.settings(visit);
    }

    fn notes(&self, tell: &mut dyn FnMut(fmt::Arguments<'_>)) {
        self.account.aqm.notes(tell);
    }
}
