//! Packets and counters of a discipline of several queues: one pool of packets, with a linked list through it per
//! queue.

use alloc::vec::Vec;

use aqumen_units::{Instant, Span};

use crate::{Backlog, Cx, Draw, DropReason, Fates, Handle, Limit, Packet, QueueView, Totals};

/// Packets for which memory is reserved at construction; larger queues grow on demand.
pub(crate) const RESERVED_PKTS: u32 = 1 << 14;

const NONE: u32 = u32::MAX;

/// Packets of all queues of a discipline, with its counters. Queues are numbered from 0; another number panics.
///
/// A discipline calls [`arrive`](Self::arrive) for each arriving packet, then [`push`](Self::push) or
/// [`refuse`](Self::refuse); while it [is over](Self::is_over) its capacity, [`steal_one`](Self::steal_one). For the
/// free link it calls [`pop`](Self::pop), then [`send`](Self::send), or [`lose`](Self::lose) if the packet is dropped
/// after all.
///
/// ```
/// use aqumen_aqm::{Length, Limit, Packet, Store, testing::Log};
/// use aqumen_units::{Instant, Span};
///
/// let (mut store, mut log, now) = (Store::new(2, Limit::packets(2)), Log::default(), Instant::ZERO);
/// for (queue, handle) in [(0, 10), (1, 11), (1, 12)] {
///     let packet = Packet { bytes: 1000, ..Packet::default() };
///     store.arrive(&packet);
///     store.push(queue, handle, &packet, now);
///     while store.is_over() {
///         let longest = store.longest(Length::Packets, queue);
///         store.steal_one(longest, false, &mut log);
///     }
/// }
/// assert_eq!(log.dropped, [12]); // the last of the longest queue
/// let (sent, sojourn) = store.pop(0, now + Span::from_millis(5)).unwrap();
/// assert_eq!((store.send(&sent, now), sojourn), (10, Span::from_millis(5)));
/// ```
#[derive(Clone, Debug)]
pub struct Store {
    slots: Vec<Slot>,
    /// First free slot, linked by `next`.
    free: u32,
    chains: Vec<Chain>,
    limit: Limit,
    all: Backlog,
    /// Limit of kernel memory, bytes.
    memory: u64,
    /// Kernel memory of all packets, bytes.
    memory_used: u64,
    totals: Totals,
    in_transmission_bytes: u32,
}

/// A queued packet.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// The host's identifier.
    pub handle: Handle,
    /// The packet.
    pub packet: Packet,
    /// Time of its arrival.
    pub arrived: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    waiting: Waiting,
    next: u32,
    previous: u32,
}

/// One queue.
#[derive(Clone, Copy, Debug)]
struct Chain {
    head: u32,
    tail: u32,
    packets: u32,
    bytes: u64,
}

/// Kernel memory of a packet in its own buffer, bytes (Linux's truesize): 256 for the descriptor, plus a buffer of
/// headroom (64), packet and shared info (320), rounded up to a power of two.
pub(crate) fn truesize(bytes: u32) -> u64 {
    256 + (64 + bytes as u64 + 320).next_power_of_two()
}

/// Measure of queue length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// By packets; bytes decide between equals.
    Packets,
    /// By bytes; packets decide between equals.
    Bytes,
}

impl Store {
    /// `queues` empty queues with total capacity `limit`.
    pub fn new(queues: usize, limit: Limit) -> Self {
        Store {
            // A packet is enqueued before the longest queue drops one.
            slots: Vec::with_capacity(limit.packets.min(RESERVED_PKTS) as usize + 1),
            free: NONE,
            chains: alloc::vec![Chain { head: NONE, tail: NONE, packets: 0, bytes: 0 }; queues],
            limit,
            all: Backlog::default(),
            memory: u64::MAX,
            memory_used: 0,
            totals: Totals::default(),
            in_transmission_bytes: 0,
        }
    }

    /// Sets the limit of kernel memory.
    pub(crate) fn within_memory(self, memory: u64) -> Self {
        Store { memory, ..self }
    }

    /// Changes the limit of kernel memory.
    pub(crate) fn set_memory(&mut self, memory: u64) {
        self.memory = memory;
    }

    /// Number of queues.
    pub fn queues(&self) -> usize {
        self.chains.len()
    }

    /// Capacity of all queues.
    pub fn limit(&self) -> Limit {
        self.limit
    }

    /// Changes the capacity. Excess packets are dropped at the next arrival.
    pub fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    /// Backlog of all queues.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.all
    }

    /// Cumulative counters.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Backlog of one queue.
    #[inline]
    pub fn queue(&self, queue: usize) -> Backlog {
        let Chain { packets, bytes, .. } = self.chains[queue];
        Backlog { packets, bytes }
    }

    /// Whether a queue is empty.
    #[inline]
    pub fn is_empty(&self, queue: usize) -> bool {
        self.chains[queue].packets == 0
    }

    /// Last packet of a queue, and its slot.
    pub(crate) fn last(&self, queue: usize) -> Option<(u32, &Waiting)> {
        let place = self.chains[queue].tail;
        self.slots.get(place as usize).map(|slot| (place, &slot.waiting))
    }

    /// Packets of a queue with their slots, in order.
    pub(crate) fn places(&self, queue: usize) -> impl Iterator<Item = (u32, &Waiting)> {
        let slot = |place: u32| self.slots.get(place as usize).map(|slot| (place, slot));
        let chain = core::iter::successors(slot(self.chains[queue].head), move |(_, before)| slot(before.next));
        chain.map(|(place, slot)| (place, &slot.waiting))
    }

    /// Drops the packet in slot `place` of a queue (early drop).
    pub(crate) fn drop_at(&mut self, queue: usize, place: u32, fates: &mut impl Fates) -> Option<Waiting> {
        let lost = self.unlink(queue, place)?;
        self.lose(&lost, DropReason::Early, fates);
        Some(lost)
    }

    /// Packet at the head of a queue.
    #[inline]
    pub fn head(&self, queue: usize) -> Option<&Waiting> {
        self.slots.get(self.chains[queue].head as usize).map(|slot| &slot.waiting)
    }

    /// Sojourn time of the head of a queue so far; 0 for an empty queue.
    pub fn head_sojourn(&self, queue: usize, now: Instant) -> Span {
        self.head(queue).map_or(Span::ZERO, |head| now.saturating_since(head.arrived))
    }

    /// Context of a call to the AQM of one queue: its own length, the counters of all.
    #[inline]
    pub fn cx<'a, R: Draw>(&'a self, queue: usize, now: Instant, rng: &'a mut R) -> Cx<'a, R> {
        let Backlog { packets, bytes } = self.queue(queue);
        Cx { now, queue: QueueView { packets, bytes, limit: self.limit, totals: &self.totals }, rng }
    }

    /// Whether a limit is exceeded.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.all.packets > self.limit.packets || self.all.bytes > self.limit.bytes.0 || self.memory_used > self.memory
    }

    /// Whether `packet` would not fit.
    pub fn is_full(&self, packet: &Packet) -> bool {
        let Backlog { packets, bytes } = self.all;
        QueueView { packets, bytes, limit: self.limit, totals: &self.totals }.is_full(packet)
            || self.memory_used + truesize(packet.bytes) > self.memory
    }

    /// Counts an arrival; `push` or `refuse` follows.
    #[inline]
    pub fn arrive(&mut self, packet: &Packet) {
        self.totals.arrivals += 1;
        self.totals.arrived_bytes += packet.bytes as u64;
    }

    /// Drops the arriving packet.
    pub fn refuse(&mut self, handle: Handle, reason: DropReason, fates: &mut impl Fates) {
        self.totals.discard(reason);
        fates.dropped(handle, reason);
    }

    /// Marks a packet.
    pub fn mark(&mut self, handle: Handle, fates: &mut impl Fates) {
        self.totals.marked += 1;
        fates.marked(handle);
    }

    /// Enqueues the arriving packet, although the capacity may then be exceeded.
    #[inline(always)]
    pub fn push(&mut self, queue: usize, handle: Handle, packet: &Packet, now: Instant) {
        self.totals.accepted += 1;
        let chain = &mut self.chains[queue];
        let slot =
            Slot { waiting: Waiting { handle, packet: *packet, arrived: now }, next: NONE, previous: chain.tail };
        let place = match self.free {
            NONE => {
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
            place => {
                self.free = self.slots[place as usize].next;
                self.slots[place as usize] = slot;
                place
            }
        };
        match chain.tail {
            NONE => chain.head = place,
            tail => self.slots[tail as usize].next = place,
        }
        chain.tail = place;
        chain.packets += 1;
        chain.bytes += packet.bytes as u64;
        self.all.packets += 1;
        self.all.bytes += packet.bytes as u64;
        self.memory_used += truesize(packet.bytes);
    }

    /// Removes the packet at the head of a queue without counting it, to put it back later.
    pub(crate) fn take_out(&mut self, queue: usize) -> Option<Waiting> {
        self.unlink(queue, self.chains[queue].head)
    }

    /// Appends a packet removed by `take_out` to a queue.
    pub(crate) fn put_back(&mut self, queue: usize, waiting: Waiting) {
        self.push(queue, waiting.handle, &waiting.packet, waiting.arrived);
        self.totals.accepted -= 1;
    }

    /// Dequeues the packet at the head of a queue; returns it with its sojourn time.
    #[inline(always)]
    pub fn pop(&mut self, queue: usize, now: Instant) -> Option<(Waiting, Span)> {
        let waiting = self.unlink(queue, self.chains[queue].head)?;
        let sojourn = now.saturating_since(waiting.arrived);
        self.totals.last_sojourn = sojourn;
        Some((waiting, sojourn))
    }

    #[inline(always)]
    fn unlink(&mut self, queue: usize, place: u32) -> Option<Waiting> {
        if place == NONE {
            return None;
        }
        let Slot { waiting, next, previous } = self.slots[place as usize];
        let chain = &mut self.chains[queue];
        match previous {
            NONE => chain.head = next,
            before => self.slots[before as usize].next = next,
        }
        match next {
            NONE => chain.tail = previous,
            after => self.slots[after as usize].previous = previous,
        }
        chain.packets -= 1;
        chain.bytes -= waiting.packet.bytes as u64;
        self.all.packets -= 1;
        self.all.bytes -= waiting.packet.bytes as u64;
        self.memory_used -= truesize(waiting.packet.bytes);
        self.slots[place as usize].next = self.free;
        self.free = place;
        Some(waiting)
    }

    /// Drops a packet that was dequeued.
    pub fn lose(&mut self, lost: &Waiting, reason: DropReason, fates: &mut impl Fates) {
        self.refuse(lost.handle, reason, fates);
    }

    /// Longest queue; among equals `first_choice`, then the lowest number. It is empty only if all are.
    pub fn longest(&self, by: Length, first_choice: usize) -> usize {
        let length = |chain: &Chain| match by {
            Length::Packets => (chain.packets as u64, chain.bytes),
            // The packet count decides between queues of packets without bytes.
            Length::Bytes => (chain.bytes, chain.packets as u64),
        };
        let (mut longest, mut most) = (first_choice, length(&self.chains[first_choice]));
        for (queue, chain) in self.chains.iter().enumerate() {
            let length = length(chain);
            if length > most {
                (longest, most) = (queue, length);
            }
        }
        longest
    }

    /// Drops the first or last packet of a queue because of overflow ("buffer stealing", McKenney 1990 section 4).
    pub fn steal_one(&mut self, queue: usize, from_head: bool, fates: &mut impl Fates) {
        let chain = &self.chains[queue];
        let lost = self.unlink(queue, if from_head { chain.head } else { chain.tail });
        if let Some(lost) = lost {
            self.lose(&lost, DropReason::Overflow, fates);
        }
    }

    /// Starts the transmission of a dequeued packet; returns its handle, which [`dequeue`](crate::Qdisc::dequeue)
    /// answers.
    #[inline]
    pub fn send(&mut self, sent: &Waiting, now: Instant) -> Handle {
        self.totals.transmitting_since = Some(now);
        self.in_transmission_bytes = sent.packet.bytes;
        sent.handle
    }

    /// Ends the transmission of the packet sent last, which took `duration`.
    #[inline]
    pub fn transmitted(&mut self, duration: Span) {
        self.totals.departures += 1;
        self.totals.departed_bytes += self.in_transmission_bytes as u64;
        self.totals.busy += duration;
        self.totals.transmitting_since = None;
    }

    /// Heap memory of packets and queues in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>() + self.chains.len() * Self::QUEUE_BYTES
    }

    /// Heap memory per queue in bytes.
    pub const QUEUE_BYTES: usize = size_of::<Chain>();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct DropLog(std::vec::Vec<Handle>);

    impl Fates for DropLog {
        fn marked(&mut self, _handle: Handle) {}

        fn dropped(&mut self, handle: Handle, _reason: DropReason) {
            self.0.push(handle);
        }
    }

    fn packet(bytes: u32) -> Packet {
        Packet { bytes, ..Packet::default() }
    }

    #[test]
    fn queues_share_slots_and_keep_their_own_order() {
        let mut store = Store::new(2, Limit::packets(4));
        let at = Instant::from_nanos;
        for (queue, handle) in [(0, 10), (1, 11), (0, 12), (1, 13)] {
            store.push(queue, handle, &packet(100), at(handle as u64));
        }
        assert_eq!(store.queue(0), Backlog { packets: 2, bytes: 200 });
        let (first, sojourn) = store.pop(0, at(30)).unwrap();
        assert_eq!((first.handle, sojourn), (10, Span::from_nanos(20)));
        store.steal_one(1, false, &mut DropLog::default());
        assert_eq!(store.queue(1).packets, 1);
        // Free slots are reused; no memory is added.
        let reserved = store.memory_bytes();
        store.push(1, 14, &packet(1), at(31));
        store.push(1, 15, &packet(1), at(32));
        assert_eq!(store.memory_bytes(), reserved);
        let rest: std::vec::Vec<_> =
            core::iter::from_fn(|| store.pop(1, at(40))).map(|(waiting, _)| waiting.handle).collect();
        assert_eq!(rest, [11, 14, 15]);
        assert_eq!(store.pop(0, at(40)).unwrap().0.handle, 12);
        assert_eq!((store.pop(0, at(40)).is_none(), store.backlog()), (true, Backlog::default()));
    }

    #[test]
    fn the_longest_queue_drops_and_the_arriving_flow_loses_ties() {
        let mut store = Store::new(3, Limit::packets(3));
        let mut lost = DropLog::default();
        // Queue 0 has two small packets, queue 1 one large: by packets 0 is the longest, by bytes 1.
        store.push(0, 0, &packet(100), Instant::ZERO);
        store.push(0, 1, &packet(100), Instant::ZERO);
        store.push(1, 2, &packet(1000), Instant::ZERO);
        assert_eq!(store.longest(Length::Packets, 2), 0);
        assert_eq!(store.longest(Length::Bytes, 2), 1);
        store.steal_one(0, false, &mut lost);
        store.steal_one(0, true, &mut lost);
        assert_eq!(lost.0, [1, 0]);
        store.steal_one(0, true, &mut lost);
        assert_eq!((lost.0.len(), store.totals().overflow_dropped), (2, 2));
        // Packets of the same size: a tie goes to the first choice, which is the arriving packet's queue.
        let mut tie = Store::new(3, Limit::packets(2));
        for queue in 0..3 {
            tie.push(queue, queue as u32, &packet(10), Instant::ZERO);
        }
        assert!(tie.is_over());
        assert_eq!(tie.longest(Length::Bytes, 2), 2);
    }
}
