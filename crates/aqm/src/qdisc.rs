//! Interface of queue disciplines, which own the order of a link's packets.

use alloc::vec::Vec;
use core::fmt;

use aqumen_units::{Instant, Probability, Rate, Span};

use crate::{Draw, DropReason, Packet, Totals, Value};

/// A host's identifier of a packet.
pub type Handle = u32;

/// Packets and bytes waiting, without the packet in transmission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets waiting.
    pub packets: u32,
    /// Bytes waiting.
    pub bytes: u64,
}

/// Receiver of marks and drops, of the packet at hand or of others in the queue.
pub trait Fates {
    /// The packet carries CE from now on.
    fn marked(&mut self, handle: Handle);
    /// The packet is dropped; the host may reuse its handle.
    fn dropped(&mut self, handle: Handle, reason: DropReason);
}

/// A single-queue algorithm that is equivalent to a discipline of several queues.
#[derive(Clone, Debug, PartialEq)]
pub struct SingleQueueEquivalent {
    /// Its name.
    pub algorithm: &'static str,
    /// Its parameters.
    pub values: Vec<(&'static str, f64)>,
    /// Traffic for which the two are equivalent, for a note to the reader.
    pub traffic: &'static str,
}

/// Queue discipline of a link. Packets are opaque handles.
pub trait Qdisc {
    /// Enqueues an arriving packet. Marks and drops, also of displaced packets, go to `fates`.
    fn enqueue<R: Draw>(&mut self, handle: Handle, packet: &Packet, now: Instant, rng: &mut R, fates: &mut impl Fates);

    /// Dequeues a packet for the free link. `None`: the queue is empty, and the link is idle.
    fn dequeue<R: Draw>(&mut self, now: Instant, rng: &mut R, fates: &mut impl Fates) -> Option<Handle>;

    /// Ends the transmission of the packet dequeued last, which took `duration`. A link calls this before the next
    /// `dequeue`.
    fn transmitted(&mut self, duration: Span, now: Instant);

    /// Sets the link's `rate`. A host calls this when the rate differs from that of the [`Network`](crate::Network) for
    /// which the discipline was built, before the next other call.
    fn on_rate(&mut self, rate: Rate) {
        let _ = rate;
    }

    /// The equivalent single-queue algorithm for flows of one kind, or the reason why there is none.
    fn single_queue_equivalent(&self) -> Result<SingleQueueEquivalent, &'static str> {
        Err("each flow has its own queue, so there is no common queue with an equilibrium")
    }

    /// Packets and bytes waiting, without the packet in transmission.
    fn backlog(&self) -> Backlog;

    /// Cumulative counters.
    fn totals(&self) -> &Totals;

    /// Time of the next `on_timer` call; `None` without a timer.
    fn next_timer(&self) -> Option<Instant> {
        None
    }

    /// Handles the timer; late and early calls are allowed.
    fn on_timer<R: Draw>(&mut self, now: Instant, rng: &mut R) {
        let _ = (now, rng);
    }

    /// Current probability of marking or dropping an arriving packet, for traces.
    fn probability(&self) -> Probability {
        Probability::ZERO
    }

    /// Visits each named state variable, for traces.
    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64));

    /// Visits the current parameters, in the order of the registry entry.
    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        let _ = visit;
    }

    /// Reports remarks on the run for readers of the result, one line each.
    fn notes(&self, tell: &mut dyn FnMut(fmt::Arguments<'_>)) {
        let _ = tell;
    }
}

/// Work on a discipline of any type.
pub trait QdiscVisitor {
    /// Result of the work.
    type Output;

    /// Does the work.
    fn visit(self, qdisc: &mut impl Qdisc) -> Self::Output;
}
