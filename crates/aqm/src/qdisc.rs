//! Queue disciplines: what a link asks for its next packet.

use alloc::vec::Vec;
use core::fmt;

use aqumen_units::{Instant, Probability, Rate, Span};

use crate::{Draw, DropReason, Packet, Totals, Value};

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

/// An algorithm of one queue in place of several.
#[derive(Clone, Debug, PartialEq)]
pub struct SingleQueueEquivalent {
    /// Its name.
    pub algorithm: &'static str,
    /// Its values.
    pub values: Vec<(&'static str, f64)>,
    /// Of which traffic that holds.
    pub traffic: &'static str,
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

    /// From now on the link has `rate`. A host calls this when the link's rate is no longer that of the
    /// [`Network`](crate::Network) that the discipline was made for, at the latest before the next call.
    fn on_rate(&mut self, rate: Rate) {
        let _ = rate;
    }

    /// The algorithm of one queue that it comes to with flows of one kind, for who asks where a queue
    /// rests; or why there is none.
    fn single_queue_equivalent(&self) -> Result<SingleQueueEquivalent, &'static str> {
        Err("each flow has a queue of its own, so that there is no common one that comes to rest")
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
    fn probability(&self) -> Probability {
        Probability::ZERO
    }

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
