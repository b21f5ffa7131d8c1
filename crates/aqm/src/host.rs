//! Interface between a host (packets, queue, clock, randomness) and the AQM of one queue.
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

/// Decision on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Neither mark nor drop.
    Pass,
    /// Set CE. Only for ECN-capable packets.
    Mark,
    /// Discard.
    Drop(DropReason),
}

/// Reason for a drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// Decided by the algorithm although the buffer had space.
    Early,
    /// The buffer was full, or the algorithm treats it as full (RED's forced drop).
    Overflow,
}

/// Capacity of a queue, not counting the packet in transmission. A packet that would exceed either limit does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Packets.
    pub packets: u32,
    /// Bytes.
    pub bytes: Bytes,
}

/// Cumulative counters of a queue. A law reads their differences.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// Packets that arrived, dropped ones included.
    pub arrivals: u64,
    /// Bytes that arrived, dropped ones included.
    pub arrived_bytes: u64,
    /// Packets that entered the queue.
    pub accepted: u64,
    /// Packets whose transmission has ended.
    pub departures: u64,
    /// Bytes of the packets whose transmission has ended.
    pub departed_bytes: u64,
    /// Packets marked.
    pub marked: u64,
    /// Packets dropped by the algorithm.
    pub early_dropped: u64,
    /// Packets dropped because the buffer was full.
    pub overflow_dropped: u64,
    /// Time spent on transmissions that have ended.
    pub busy: Span,
    /// Start of the current transmission; `None` while the link is idle.
    pub transmitting_since: Option<Instant>,
    /// Sojourn time of the packet whose transmission started last.
    pub last_sojourn: Span,
}

impl Totals {
    /// Counts an arriving packet of `bytes` that is enqueued.
    #[inline(always)]
    pub fn admit(&mut self, bytes: u32, marked: bool) {
        self.arrivals += 1;
        self.arrived_bytes += u64::from(bytes);
        self.marked += u64::from(marked);
        self.accepted += 1;
    }

    /// Counts an arriving packet of `bytes` with the algorithm's `verdict`. `full`: the packet overflows whatever the
    /// verdict. Returns the reason if the packet is dropped.
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

    /// Counts a drop, at arrival or later.
    #[inline]
    pub fn discard(&mut self, reason: DropReason) {
        match reason {
            DropReason::Early => self.early_dropped += 1,
            DropReason::Overflow => self.overflow_dropped += 1,
        }
    }
}

/// State of an algorithm's queue.
#[derive(Clone, Copy, Debug)]
pub struct QueueView<'a> {
    /// Packets waiting, without the arriving packet and the one in transmission.
    pub packets: u32,
    /// Bytes waiting, without the arriving packet and the one in transmission.
    pub bytes: u64,
    /// Capacity.
    pub limit: Limit,
    /// Counters up to now, without the arriving packet.
    pub totals: &'a Totals,
}

/// Context of one call.
pub struct Cx<'a, R: Draw> {
    /// The current time.
    pub now: Instant,
    /// The queue.
    pub queue: QueueView<'a>,
    /// The algorithm's random stream.
    pub rng: &'a mut R,
}

/// Optional calls that an algorithm needs. A host may omit the others; it can then compute a first-in first-out link
/// without departure events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// `on_dequeue` can mark or drop: the host must call it for each packet at the head.
    pub decides_at_head: bool,
    /// `on_dequeue`, `on_departure` or `on_idle` change the algorithm's state.
    pub departures: bool,
}

/// Active queue management of one queue. Every method has a default that does nothing.
pub trait Aqm {
    /// A packet arrived. `cx.queue` excludes it, and the limit has not been applied yet: an algorithm that must not
    /// react to an overflowing packet checks [`QueueView::is_full`].
    fn on_arrival<R: Draw>(&mut self, packet: &Packet, cx: &mut Cx<'_, R>) -> Verdict {
        let _ = (packet, cx);
        Verdict::Pass
    }

    /// The packet of the last `on_arrival` is dropped because the buffer is full.
    fn on_overflow<R: Draw>(&mut self, packet: &Packet, cx: &mut Cx<'_, R>) {
        let _ = (packet, cx);
    }

    /// The discipline dropped `packets` packets from the head of this queue to make space for others ("buffer
    /// stealing", McKenney 1990).
    fn on_buffer_stolen(&mut self, packets: u32) {
        let _ = packets;
    }

    /// A packet that waited for `sojourn` is dequeued for transmission; `cx.queue` excludes it. After `Drop` the host
    /// offers the next packet at the same time.
    fn on_dequeue<R: Draw>(&mut self, packet: &Packet, sojourn: Span, cx: &mut Cx<'_, R>) -> Verdict {
        let _ = (packet, sojourn, cx);
        Verdict::Pass
    }

    /// A transmission ended.
    fn on_departure(&mut self, now: Instant) {
        let _ = now;
    }

    /// The link found the queue empty. The call may come late (before the next other call), but `now` is exact.
    fn on_idle(&mut self, now: Instant) {
        let _ = now;
    }

    /// Time of the next `on_timer` call. The value changes only in calls to this object.
    fn next_timer(&self) -> Option<Instant> {
        None
    }

    /// Handles the timer. An early call changes nothing; a late one does the work of one period.
    fn on_timer<R: Draw>(&mut self, cx: &mut Cx<'_, R>) {
        let _ = cx;
    }

    /// Whether `on_timer` changes only `next_timer` as long as the queue stays empty. A discipline of many queues may
    /// then skip those calls, and calls [`resume_timer`](Self::resume_timer) before the next other call.
    fn is_quiescent(&self) -> bool {
        false
    }

    /// Ends a series of skipped `on_timer` calls; the next call is due at `due`.
    fn resume_timer(&mut self, due: Instant) {
        let _ = due;
    }

    /// Current probability of marking or dropping an arriving packet, for traces.
    fn probability(&self) -> Probability {
        Probability::ZERO
    }

    /// The coin that `on_arrival` tosses, if it does nothing else. The coin changes only in `on_timer` and `take_over`,
    /// so a host may toss it without calling `on_arrival`.
    fn coin(&self) -> Option<Coin> {
        None
    }

    /// Visits each named state variable, for traces: `visit("average_queue", 17.2)`.
    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let _ = visit;
    }

    /// Optional calls that this algorithm needs; constant over its lifetime.
    fn hooks(&self) -> Hooks {
        Hooks::default()
    }

    /// Visits the current parameters, in the order of the registry entry.
    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        let _ = visit;
    }

    /// Reports remarks on the run for readers of the result, one line each.
    fn notes(&self, tell: &mut dyn FnMut(fmt::Arguments<'_>)) {
        let _ = tell;
    }

    /// Initialises this new object for a queue in operation, at `now` with counters `totals`. From `old`, the same
    /// algorithm with other parameters, it copies the state that does not depend on parameters. After another
    /// algorithm (`None`) its clocks start now.
    fn take_over(&mut self, old: Option<&Self>, now: Instant, totals: &Totals)
    where
        Self: Sized,
    {
        let _ = (old, now, totals);
    }

    /// The control law, for a host without packets that steps it (the fluid engine). `None` for an algorithm that
    /// decides packet by packet.
    fn law_mut(&mut self) -> Option<&mut dyn SampledLaw> {
        None
    }

    /// Its theoretical properties.
    fn theory(&self) -> &dyn Theory {
        &()
    }
}

/// A Bernoulli trial for each arriving packet that fits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coin {
    /// Probability of a signal.
    pub probability: Probability,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

impl Coin {
    /// Draws whether a packet that fits is signalled.
    #[inline(always)]
    pub fn chooses<R: Draw>(&self, rng: &mut R) -> bool {
        let p = self.probability.get();
        p > 0.0 && rng.uniform() < p
    }

    /// Verdict on a packet with this ECN field. No random number is drawn if the packet does not fit or the probability
    /// is 0.
    #[inline(always)]
    pub fn toss<R: Draw>(&self, ecn: Ecn, full: bool, rng: &mut R) -> Verdict {
        if !full && self.chooses(rng) { Verdict::signal_to(ecn, self.ecn) } else { Verdict::Pass }
    }
}

impl Totals {
    /// Busy time up to `now`, including the current transmission.
    pub fn busy_until(&self, now: Instant) -> Span {
        self.busy + self.transmitting_since.map_or(Span::ZERO, |since| now.saturating_since(since))
    }
}

impl Limit {
    /// Capacity of `packets` packets of any size.
    pub const fn packets(packets: u32) -> Self {
        Limit { packets, bytes: Bytes(u64::MAX) }
    }

    /// Capacity in packets of `packet_bytes` each.
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

    /// Whether the queue would reach its limit with `packet`. ns-2 counts such a queue as full.
    #[inline]
    pub fn reaches_limit(&self, packet: &Packet) -> bool {
        self.packets.saturating_add(1) >= self.limit.packets
            || self.bytes.saturating_add(packet.bytes as u64) >= self.limit.bytes.0
    }
}

impl Verdict {
    /// Signal to `packet`: a mark if `ecn` is on and the packet is ECN-capable, else an early drop.
    #[inline]
    pub fn signal(packet: &Packet, ecn: bool) -> Verdict {
        Verdict::signal_to(packet.ecn, ecn)
    }

    /// Signal to a packet with ECN field `field`.
    #[inline]
    pub fn signal_to(field: Ecn, ecn: bool) -> Verdict {
        if ecn && field.is_ect() { Verdict::Mark } else { Verdict::Drop(DropReason::Early) }
    }
}
