//! Queue disciplines: what a link asks for its next packet.

use alloc::collections::VecDeque;
use core::fmt;

use aqumen_units::{Instant, Probability, Rate, Span};

use crate::{Aqm, Cx, Draw, DropReason, Limit, Packet, QueueView, Totals, Value, Verdict};

/// The host's name for a packet that it keeps.
pub type Handle = u32;

/// What waits in a discipline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets waiting.
    pub packets: u32,
    /// Bytes waiting.
    pub bytes: u64,
}

/// Where a discipline reports what it did to packets: the one at hand or others that waited.
pub trait Fates {
    /// The packet is to carry CE from now on.
    fn marked(&mut self, handle: Handle);
    /// The packet is gone; the host may reuse its handle.
    fn dropped(&mut self, handle: Handle, reason: DropReason);
}

/// The discipline of a link over opaque packet handles.
pub trait Qdisc {
    /// A packet arrived. Its own fate, and that of others it displaces, goes to `fates`; unless dropped it waits.
    fn enqueue<R: Draw>(&mut self, handle: Handle, packet: &Packet, now: Instant, rng: &mut R, fates: &mut impl Fates);

    /// The link is free and wants a packet. `None`: nothing waits, and the link is idle from now on.
    fn dequeue<R: Draw>(&mut self, now: Instant, rng: &mut R, fates: &mut impl Fates) -> Option<Handle>;

    /// The transmission of the packet dequeued last ended; it took `duration`. A link calls this before it asks for the
    /// next packet.
    fn transmitted(&mut self, duration: Span, now: Instant);

    /// From now on the link has `rate`. A host calls this when the link's rate is no longer that of the [`Network`](crate::Network)
    /// that the discipline was made for, at the latest before the next call.
    fn on_rate(&mut self, rate: Rate) {
        let _ = rate;
    }

    /// What waits; the packet in transmission does not count.
    fn backlog(&self) -> Backlog;

    /// Totals since the discipline was made.
    fn totals(&self) -> &Totals;

    /// When `on_timer` wants to be called next.
    fn next_timer(&self) -> Option<Instant>;

    /// The timer is due; late and spurious calls are harmless.
    fn on_timer<R: Draw>(&mut self, now: Instant, rng: &mut R);

    /// The probability with which an arriving packet would be marked or dropped now, for traces.
    fn probability(&self) -> Probability;

    /// Shows each named quantity of the state, for traces.
    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64));

    /// The parameters in force, in the order of its row.
    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        let _ = visit;
    }

    /// Tells what a reader of the result should know of the run so far: one line each.
    fn notes(&self, tell: &mut dyn FnMut(fmt::Arguments<'_>)) {
        let _ = tell;
    }
}

/// First in, first out, with an [`Aqm`].
#[derive(Clone, Debug)]
pub struct Fifo<A> {
    aqm: A,
    limit: Limit,
    waiting: VecDeque<Waiting>,
    bytes: u64,
    totals: Totals,
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

impl<A: Aqm> Fifo<A> {
    /// An empty queue with room for `limit`, looked after by `aqm`.
    pub fn new(aqm: A, limit: Limit) -> Self {
        Fifo {
            aqm,
            limit,
            waiting: VecDeque::with_capacity(limit.packets.min(RESERVED_PKTS) as usize),
            bytes: 0,
            totals: Totals::default(),
            in_transmission_bytes: 0,
        }
    }

    /// The algorithm.
    pub fn aqm(&self) -> &A {
        &self.aqm
    }

    /// The algorithm; whatever waits is gone.
    pub fn into_aqm(self) -> A {
        self.aqm
    }

    /// Puts `aqm` in the place of the algorithm at `now`, which takes over from it; the packets stay.
    pub fn replace_aqm(&mut self, mut aqm: A, now: Instant) {
        aqm.take_over(Some(&self.aqm), now, &self.totals);
        self.aqm = aqm;
    }

    /// Bytes of memory that the queue holds beside itself and its algorithm.
    pub fn memory_bytes(&self) -> usize {
        self.waiting.capacity() * size_of::<Waiting>()
    }

    fn view(&self) -> QueueView<'_> {
        QueueView { packets: self.waiting.len() as u32, bytes: self.bytes, limit: self.limit, totals: &self.totals }
    }
}

/// The surroundings of a call, borrowing the queue's fields beside its algorithm.
macro_rules! cx {
    ($fifo:ident, $now:expr, $rng:expr) => {
        &mut Cx {
            now: $now,
            queue: QueueView {
                packets: $fifo.waiting.len() as u32,
                bytes: $fifo.bytes,
                limit: $fifo.limit,
                totals: &$fifo.totals,
            },
            rng: $rng,
        }
    };
}

impl<A: Aqm> Qdisc for Fifo<A> {
    fn enqueue<R: Draw>(&mut self, handle: Handle, packet: &Packet, now: Instant, rng: &mut R, fates: &mut impl Fates) {
        let verdict = self.aqm.on_arrival(packet, cx!(self, now, rng));
        let full = self.view().is_full(packet);
        if full {
            self.aqm.on_overflow(packet, cx!(self, now, rng));
        }
        if let Some(reason) = self.totals.arrive(packet.bytes, verdict, full) {
            return fates.dropped(handle, reason);
        }
        if verdict == Verdict::Mark {
            fates.marked(handle);
        }
        self.bytes += packet.bytes as u64;
        self.waiting.push_back(Waiting { handle, packet: *packet, arrived: now });
    }

    fn dequeue<R: Draw>(&mut self, now: Instant, rng: &mut R, fates: &mut impl Fates) -> Option<Handle> {
        while let Some(head) = self.waiting.pop_front() {
            self.bytes -= head.packet.bytes as u64;
            let sojourn = now - head.arrived;
            self.totals.last_sojourn = sojourn;
            match self.aqm.on_dequeue(&head.packet, sojourn, cx!(self, now, rng)) {
                Verdict::Drop(reason) => {
                    self.totals.discard(reason);
                    fates.dropped(head.handle, reason);
                    continue;
                }
                Verdict::Mark => {
                    self.totals.marked += 1;
                    fates.marked(head.handle);
                }
                Verdict::Pass => {}
            }
            self.in_transmission_bytes = head.packet.bytes;
            self.totals.transmitting_since = Some(now);
            return Some(head.handle);
        }
        self.aqm.on_idle(now);
        None
    }

    fn transmitted(&mut self, duration: Span, now: Instant) {
        self.totals.departures += 1;
        self.totals.departed_bytes += self.in_transmission_bytes as u64;
        self.totals.busy += duration;
        self.totals.transmitting_since = None;
        self.aqm.on_departure(now);
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.waiting.len() as u32, bytes: self.bytes }
    }

    fn totals(&self) -> &Totals {
        &self.totals
    }

    fn next_timer(&self) -> Option<Instant> {
        self.aqm.next_timer()
    }

    fn on_timer<R: Draw>(&mut self, now: Instant, rng: &mut R) {
        self.aqm.on_timer(cx!(self, now, rng));
    }

    fn probability(&self) -> Probability {
        self.aqm.probability()
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.aqm.observe(visit);
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        self.aqm.settings(visit);
    }

    fn notes(&self, tell: &mut dyn FnMut(fmt::Arguments<'_>)) {
        self.aqm.notes(tell);
    }
}
