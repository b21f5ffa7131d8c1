//! The single-queue interface: what a host tells an algorithm, and what the algorithm may answer.
//!
//! The order in which a host calls:
//!
//! ```text
//! arrival ──> on_arrival ──> full?  yes ──> on_overflow, the packet is lost whatever the verdict was
//!                              │ no
//!                              ├── Drop ──> the packet is lost (early drop)
//!                              └── Pass | Mark ──> waits ... on_dequeue ──> transmitted ... on_departure
//!                                                                                  nothing waits? ──> on_idle
//! next_timer() reached ──> on_timer           (before any packet event of the same instant)
//! ```

use core::fmt;

use aqumen_units::{Bytes, Ecn, Instant, Probability, Span};

use crate::{Packet, SampledLaw, Theory, Value};

/// A source of uniform random numbers, owned by the host.
pub trait Draw {
    /// The next number, uniform in [0, 1).
    fn uniform(&mut self) -> f64;
}

impl<D: Draw + ?Sized> Draw for &mut D {
    fn uniform(&mut self) -> f64 {
        (**self).uniform()
    }
}

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing.
    Pass,
    /// Its ECN field becomes CE. Only for packets that are ECN-capable.
    Mark,
    /// It is discarded.
    Drop(DropReason),
}

/// Why a packet was discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// The algorithm decided so while there was room.
    Early,
    /// The buffer was full, or the algorithm treats it as full (RED's forced drop).
    Overflow,
}

/// The room of a queue. A packet that would pass either limit does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Packets that may wait.
    pub packets: u32,
    /// Bytes that may wait.
    pub bytes: Bytes,
}

/// Running totals of a queue since it was made. A law reads differences of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// Packets that arrived, also those that were then discarded.
    pub arrivals: u64,
    /// Bytes that arrived, likewise.
    pub arrived_bytes: u64,
    /// Packets that entered the queue.
    pub accepted: u64,
    /// Packets whose transmission has ended.
    pub departures: u64,
    /// Bytes of the packets whose transmission has ended.
    pub departed_bytes: u64,
    /// Packets marked.
    pub marked: u64,
    /// Packets discarded by the algorithm.
    pub early_dropped: u64,
    /// Packets discarded for want of room.
    pub overflow_dropped: u64,
    /// Time spent on transmissions that have ended.
    pub busy: Span,
    /// When the transmission under way started; `None` while there is none.
    pub transmitting_since: Option<Instant>,
    /// Sojourn time of the packet taken for transmission last: from its arrival to the start of its transmission.
    pub last_sojourn: Span,
}

impl Totals {
    /// A packet of `bytes` arrived and enters.
    #[inline(always)]
    pub fn admit(&mut self, bytes: u32, marked: bool) {
        self.arrivals += 1;
        self.arrived_bytes += u64::from(bytes);
        self.marked += u64::from(marked);
        self.accepted += 1;
    }

    /// A packet of `bytes` arrived, of which the algorithm said `verdict`; `full`: there is no room for it, whatever
    /// was said. Answers why it does not enter, if it does not.
    #[inline(always)]
    pub fn arrive(&mut self, bytes: u32, verdict: Verdict, full: bool) -> Option<DropReason> {
        let reason = match verdict {
            _ if full => DropReason::Overflow,
            Verdict::Drop(reason) => reason,
            Verdict::Pass | Verdict::Mark => {
                self.admit(bytes, verdict == Verdict::Mark);
                return None;
            }
        };
        self.arrivals += 1;
        self.arrived_bytes += u64::from(bytes);
        self.discard(reason);
        Some(reason)
    }

    /// A packet is discarded, at its arrival or later.
    #[inline]
    pub fn discard(&mut self, reason: DropReason) {
        match reason {
            DropReason::Early => self.early_dropped += 1,
            DropReason::Overflow => self.overflow_dropped += 1,
        }
    }
}

/// The state of the queue that an algorithm looks after.
#[derive(Clone, Copy, Debug)]
pub struct QueueView<'a> {
    /// Packets waiting. Neither the arriving packet nor the one in transmission counts.
    pub packets: u32,
    /// Bytes waiting, likewise.
    pub bytes: u64,
    /// The room there is.
    pub limit: Limit,
    /// Totals since the start, up to now. At an arrival they do not count it yet.
    pub totals: &'a Totals,
}

/// The surroundings of one call.
pub struct Cx<'a, R: Draw> {
    /// The present moment.
    pub now: Instant,
    /// The queue.
    pub queue: QueueView<'a>,
    /// The random source of this algorithm.
    pub rng: &'a mut R,
}

/// Which optional calls an algorithm wants. A host may leave out the others, and may then compute a first-in first-out
/// link without an event for each departure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// `on_dequeue` can mark or drop: the host must ask, packet by packet, as each reaches the head.
    pub decides_at_head: bool,
    /// `on_dequeue`, `on_departure` or `on_idle` change the algorithm's state.
    pub departures: bool,
}

/// An algorithm that looks after one queue.
///
/// Every method has a default that does nothing, so an algorithm names only what it reacts to.
pub trait Aqm {
    /// A packet arrived. `cx.queue` excludes it, and the limit has not been applied yet: an algorithm that must not
    /// react to a packet that will overflow asks [`QueueView::is_full`].
    fn on_arrival<R: Draw>(&mut self, packet: &Packet, cx: &mut Cx<'_, R>) -> Verdict {
        let _ = (packet, cx);
        Verdict::Pass
    }

    /// The packet of the last `on_arrival` found no room and is lost.
    fn on_overflow<R: Draw>(&mut self, packet: &Packet, cx: &mut Cx<'_, R>) {
        let _ = (packet, cx);
    }

    /// So many packets that waited were taken from the head of the queue for want of room in
    /// a discipline of many queues.
    fn on_buffer_stolen(&mut self, packets: u32) {
        let _ = packets;
    }

    /// A packet that waited for `sojourn` is taken from the head for transmission; `cx.queue` excludes it. After `Drop`
    /// the host offers the next head at the same moment.
    fn on_dequeue<R: Draw>(&mut self, packet: &Packet, sojourn: Span, cx: &mut Cx<'_, R>) -> Verdict {
        let _ = (packet, sojourn, cx);
        Verdict::Pass
    }

    /// A transmission ended.
    fn on_departure(&mut self, now: Instant) {
        let _ = now;
    }

    /// The link wanted a packet and there was none. The call may come late (before the next other call) but carries the
    /// right moment.
    fn on_idle(&mut self, now: Instant) {
        let _ = now;
    }

    /// When `on_timer` wants to be called next. The value changes only in calls to this object.
    fn next_timer(&self) -> Option<Instant> {
        None
    }

    /// The timer is due. Late and spurious calls are allowed: a call before the deadline changes nothing, a late one
    /// does the work of one period.
    fn on_timer<R: Draw>(&mut self, cx: &mut Cx<'_, R>) {
        let _ = cx;
    }

    /// Whether `on_timer`, with an empty queue, changes nothing from here on but `next_timer`: a
    /// discipline of many queues may then leave those calls out, and makes up for them with
    /// [`wake`](Self::wake) before the next other call.
    fn rests(&self) -> bool {
        false
    }

    /// Calls of `on_timer` were left out; the next one is due at `due`.
    fn wake(&mut self, due: Instant) {
        let _ = due;
    }

    /// The probability with which an arriving packet would be marked or dropped now, for traces.
    fn probability(&self) -> Probability {
        Probability::ZERO
    }

    /// All that `on_arrival` does, if that is no more than to toss this coin. It changes only in `on_timer` and
    /// `take_over`: a host may ask for it then, and toss it by itself.
    fn coin(&self) -> Option<Coin> {
        None
    }

    /// Shows each named quantity of the state, for traces: `visit("average_queue", 17.2)`.
    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let _ = visit;
    }

    /// Which optional calls this algorithm wants. Constant over its life.
    fn hooks(&self) -> Hooks {
        Hooks::default()
    }

    /// The parameters in force, in the order of its row.
    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        let _ = visit;
    }

    /// Tells what a reader of the result should know of the run so far: one line each.
    fn notes(&self, tell: &mut dyn FnMut(fmt::Arguments<'_>)) {
        let _ = tell;
    }

    /// This object was just made and takes over a queue at `now` whose totals are `totals`. From `old`, the same
    /// algorithm with other parameters, it takes what is state and not parameter, as far as the algorithm can part the
    /// two; after another algorithm (`None`) its clocks start now.
    fn take_over(&mut self, old: Option<&Self>, now: Instant, totals: &Totals)
    where
        Self: Sized,
    {
        let _ = (old, now, totals);
    }

    /// The control law inside, for a host that has no packets and steps it itself (the fluid engine). `None` for an
    /// algorithm that decides packet by packet.
    fn law_mut(&mut self) -> Option<&mut dyn SampledLaw> {
        None
    }

    /// What it says of itself to theory.
    fn theory(&self) -> &dyn Theory {
        &()
    }
}

/// The chance of an arriving packet, the same for all that find room.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coin {
    /// That it is chosen.
    pub probability: Probability,
    /// Whether one that is chosen and can carry a mark is marked instead of dropped.
    pub ecn: bool,
}

impl Coin {
    /// Whether a packet for which there is room is chosen.
    #[inline(always)]
    pub fn chooses<R: Draw>(&self, rng: &mut R) -> bool {
        let p = self.probability.get();
        p > 0.0 && rng.uniform() < p
    }

    /// What becomes of a packet with this ECN field. No random number is drawn where there is
    /// no room for it, or no chance.
    #[inline(always)]
    pub fn toss<R: Draw>(&self, ecn: Ecn, full: bool, rng: &mut R) -> Verdict {
        if !full && self.chooses(rng) { Verdict::signal_to(ecn, self.ecn) } else { Verdict::Pass }
    }
}

impl Totals {
    /// Time spent on transmissions up to `now`, the part of the one under way included.
    pub fn busy_until(&self, now: Instant) -> Span {
        self.busy + self.transmitting_since.map_or(Span::ZERO, |since| now.saturating_since(since))
    }
}

impl Limit {
    /// Room for so many packets of any size.
    pub const fn packets(packets: u32) -> Self {
        Limit { packets, bytes: Bytes(u64::MAX) }
    }

    /// The room in packets of `packet_bytes` each.
    pub fn in_packets_of(&self, packet_bytes: f64) -> f64 {
        f64::from(self.packets).min(self.bytes.0 as f64 / packet_bytes)
    }
}

impl QueueView<'_> {
    /// Whether `packet` would not fit.
    #[inline]
    pub fn is_full(&self, packet: &Packet) -> bool {
        self.is_full_for(packet.bytes)
    }

    /// Whether a packet of `bytes` would not fit.
    #[inline]
    pub fn is_full_for(&self, bytes: u32) -> bool {
        self.packets >= self.limit.packets || self.bytes.saturating_add(u64::from(bytes)) > self.limit.bytes.0
    }

    /// Whether the queue would reach its limit with `packet`. ns-2's queues count that as full.
    #[inline]
    pub fn reaches_limit(&self, packet: &Packet) -> bool {
        self.packets.saturating_add(1) >= self.limit.packets
            || self.bytes.saturating_add(packet.bytes as u64) >= self.limit.bytes.0
    }
}

impl Verdict {
    /// The verdict on a packet that was chosen: marked if `ecn` is on and the packet can
    /// carry a mark, else dropped early.
    #[inline]
    pub fn signal(packet: &Packet, ecn: bool) -> Verdict {
        Verdict::signal_to(packet.ecn, ecn)
    }

    /// The same of a packet whose ECN field is `field`.
    #[inline]
    pub fn signal_to(field: Ecn, ecn: bool) -> Verdict {
        if ecn && field.is_ect() { Verdict::Mark } else { Verdict::Drop(DropReason::Early) }
    }
}
