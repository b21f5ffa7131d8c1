//! First in, first out, with an [`Aqm`]: the discipline of one queue, and its [`Account`], for hosts that
//! keep the packets themselves.

use alloc::collections::VecDeque;
use core::fmt;

use aqumen_units::{Ecn, Instant, Probability, Span};

use crate::Verdict;
use crate::{
    Aqm, Backlog, Coin, Cx, Draw, DropReason, Fates, Handle, Hooks, Limit, Packet, Qdisc, QueueView, Totals, Value,
};

/// One queue, first in, first out, and its algorithm, without the packets: what is counted, and when the algorithm is
/// asked. The host keeps the packets in order and says when the head leaves.
#[derive(Clone, Debug)]
pub struct Account<A> {
    aqm: A,
    /// Whether it hears of departures, and of the head before that.
    observes_departures: bool,
    /// Whether calls are left out that it does not want.
    skips_unused_hooks: bool,
    /// What the algorithm does at arrivals, where it need not be asked.
    coin: Option<Coin>,
    limit: Limit,
    backlog: Backlog,
    totals: Totals,
}

/// What happened at the head of a queue from one moment to another.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServiceRecord {
    /// What was started for transmission.
    pub started: Backlog,
    /// How long the last of it had waited.
    pub last_sojourn: Span,
    /// What was finished: its transmission ended.
    pub finished: Backlog,
    /// How long those transmissions took.
    pub busy: Span,
    /// When the transmission started that is under way at the end, if one is.
    pub transmitting_since: Option<Instant>,
}

/// First in, first out, with an [`Aqm`].
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

/// Room reserved at construction, in packets. A larger limit is honoured, but its room grows on demand: few queues with
/// such limits ever fill.
const RESERVED_PKTS: u32 = 1 << 14;

/// The surroundings of a call, borrowing the account's fields beside its algorithm.
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
    /// Of an empty queue with room for `limit`, looked after by `aqm`.
    pub fn new(aqm: A, limit: Limit) -> Self {
        let (backlog, totals) = (Backlog::default(), Totals::default());
        Account { observes_departures: true, skips_unused_hooks: false, coin: aqm.coin(), aqm, limit, backlog, totals }
    }

    /// Leaves out the calls that the algorithm does not want, by its [`Hooks`].
    pub fn skipping_unused_hooks(self) -> Self {
        Account { observes_departures: wants(self.aqm.hooks()), skips_unused_hooks: true, ..self }
    }

    /// What is all that the algorithm does at arrivals, if that is so: then
    /// [`arrive_by_coin`](Self::arrive_by_coin) serves too.
    #[inline(always)]
    pub fn coin(&self) -> Option<Coin> {
        self.coin
    }

    /// A packet arrives: whether it is marked as it enters, or why it does not enter.
    #[inline]
    pub fn arrive<R: Draw>(&mut self, packet: &Packet, now: Instant, rng: &mut R) -> Result<bool, DropReason> {
        let verdict = self.aqm.on_arrival(packet, cx!(self, now, rng));
        let full = self.view().is_full(packet);
        if full {
            self.overflow(packet, now, rng);
        }
        self.enter(packet.bytes, verdict, full)
    }

    /// The same where the algorithm tosses no more than `coin`.
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

    /// A packet enters for which there is room, and which the algorithm lets pass or marks.
    #[inline(always)]
    pub fn admit(&mut self, bytes: u32, marked: bool) {
        self.totals.admit(bytes, marked);
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(bytes);
    }

    /// A packet comes for which there is room, and the algorithm drops it.
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

    /// The packet at the head, which waited for `sojourn`, is started for transmission: its transmission begins, unless
    /// the verdict is to drop it.
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

    /// [`dequeue_head`](Self::dequeue_head) of a packet of `bytes`, where the algorithm does not
    /// [hear](Self::observes_departures) of it.
    #[inline(always)]
    pub fn start_head(&mut self, bytes: u32, sojourn: Span, now: Instant) {
        self.take(bytes, sojourn);
        self.totals.transmitting_since = Some(now);
    }

    /// Whether the algorithm hears of departures, and of the head before that.
    #[inline]
    pub fn observes_departures(&self) -> bool {
        self.observes_departures
    }

    /// All that happened at the head since it was last told of, where the algorithm does not
    /// [hear](Self::observes_departures) of it.
    pub fn record_service(&mut self, service: &ServiceRecord) {
        debug_assert!(!self.observes_departures, "the algorithm wants to hear of each packet");
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

    /// The transmission of a packet of `bytes` ended; it took `duration`.
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

    /// The link wants a packet and there is none.
    #[inline]
    pub fn idle(&mut self, now: Instant) {
        if self.observes_departures {
            self.aqm.on_idle(now);
        }
    }

    /// The algorithm's timer is due; late and spurious calls are harmless.
    pub fn on_timer<R: Draw>(&mut self, now: Instant, rng: &mut R) {
        self.aqm.on_timer(cx!(self, now, rng));
        self.coin = self.aqm.coin();
    }

    /// Puts `aqm` in the place of the algorithm at `now`, which takes over from it; the packets stay.
    pub fn replace_aqm(&mut self, mut aqm: A, now: Instant) {
        aqm.take_over(Some(&self.aqm), now, &self.totals);
        self.observes_departures = !self.skips_unused_hooks || wants(aqm.hooks());
        self.coin = aqm.coin();
        self.aqm = aqm;
    }

    /// The algorithm.
    #[inline]
    pub fn aqm(&self) -> &A {
        &self.aqm
    }

    /// The room there is.
    #[inline]
    pub fn limit(&self) -> Limit {
        self.limit
    }

    /// What waits; the packet in transmission does not count.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Totals since the start.
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

fn wants(hooks: Hooks) -> bool {
    hooks.departures || hooks.decides_at_head
}

impl<A: Aqm> Fifo<A> {
    /// An empty queue with room for `limit`, looked after by `aqm`.
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

    /// The algorithm; whatever waits is gone.
    pub fn into_aqm(self) -> A {
        self.account.aqm
    }

    /// Puts `aqm` in the place of the algorithm at `now`, which takes over from it; the packets stay.
    pub fn replace_aqm(&mut self, aqm: A, now: Instant) {
        self.account.replace_aqm(aqm, now);
    }

    /// Bytes of memory that the queue holds beside itself and its algorithm.
    pub fn memory_bytes(&self) -> usize {
        self.waiting.capacity() * size_of::<Waiting>()
    }
}

impl<A: Aqm> Qdisc for Fifo<A> {
    fn enqueue<R: Draw>(&mut self, handle: Handle, packet: &Packet, now: Instant, rng: &mut R, fates: &mut impl Fates) {
        match self.account.arrive(packet, now, rng) {
            Err(reason) => return fates.dropped(handle, reason),
            Ok(true) => fates.marked(handle),
            Ok(false) => {}
        }
        self.waiting.push_back(Waiting { handle, packet: *packet, arrived: now });
    }

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
