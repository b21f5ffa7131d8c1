//! Paths of flows, as legs: a leg leads from an endpoint or port to the next port or endpoint.
//!
//! Links on a leg that only its flow uses have no queue that another flow could join. A packet's passage through them
//! is computed when it enters the leg, as a port would do it (`max(arrival, link free) + size / rate + delay`), without
//! events. Where the queue of such a link could overflow, the link keeps its waiting packets and drops the ones that do
//! not fit.
//!
//! A port whose packets all come from one link is computed inline too: they arrive in the order in which they entered
//! that link's queue, and no other packet comes between them.
//!
//! Legs of a flow are numbered from the shifted flow number on: data first, then acknowledgements. The state of a flow
//! with two legs each way fits a cache line; properties that flows share are stored once.

use std::collections::{BTreeMap, VecDeque};

use aqumen_aqm::Limit;
use aqumen_network::port::{Arrival, PlainPort};
use aqumen_units::{Bytes, Rate, Span};

use crate::fetch::fetch_at;

#[derive(Clone)]
pub(crate) struct Paths {
    legs: Vec<Leg>,
    /// Unused leading entries that align each flow to a cache line.
    skipped: usize,
    links: Links,
    /// A flow has numbers for 2^flow_bits legs.
    flow_bits: u32,
    routes: Vec<Route>,
    /// Inline ports: their packets arrive in order and pass without an event.
    passed: Vec<PlainPort>,
}

/// Links and targets of the legs.
#[derive(Clone, Default)]
struct Links {
    kinds: Vec<Kind>,
    /// Index of each kind.
    known: BTreeMap<Kind, u32>,
    /// Private links of legs with more than one; a leg owns consecutive ones.
    hops: Vec<Hop>,
    /// Buffers of links that can overflow.
    buffers: Vec<LinkBuffer>,
    /// Buffer of each leg with one link that can overflow.
    buffer_of: Vec<u32>,
}

/// One leg, 16 bytes: four fill a cache line.
#[derive(Clone, Copy, Default)]
pub(crate) struct Leg {
    /// Time at which its private link is free.
    free_at: u64,
    /// Propagation delay; of a leg with several links, the index of the first.
    delay: u32,
    /// Index of the leg's kind.
    kind: u32,
}

/// Properties that the legs of many flows share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    target: PackedTarget,
    /// Transmission time of a packet of `usual_bytes`.
    usual_tx: u32,
    /// Size of most packets, if there is one private link; otherwise zero, which no packet has.
    usual_bytes: u16,
    hops: Hops,
    /// Process of the port that the leg leads to, once it is known.
    process: u32,
}

/// Private links of a leg.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Hops {
    None,
    /// One, of this rate.
    One(Rate),
    /// One of this rate that can overflow, and the size of most packets, if one of them fits.
    OneBounded(Rate, u16),
    /// This many, stored in the table.
    Many(u8),
}

/// First acknowledgement leg of a flow, and the end of its legs.
#[derive(Clone, Copy)]
struct Route {
    acks: u32,
    end: u32,
}

/// A private link.
#[derive(Clone, Copy)]
pub(crate) struct Hop {
    free_at: u64,
    rate: Rate,
    delay: u64,
    /// Size of the last packet.
    known_bytes: u16,
    /// Transmission time of that size.
    known_tx: u64,
    /// Index of its buffer; `UNBOUNDED` if it never overflows.
    buffer: u32,
}

const UNBOUNDED: u32 = u32::MAX;

/// Process number of a leg that leads to no port.
pub(crate) const NO_PROCESS: u32 = u32::MAX;

/// Buffer of a private link: that of a drop-tail port.
#[derive(Clone)]
struct LinkBuffer {
    limit: Limit,
    /// Start of transmission and size of each waiting packet.
    waiting: VecDeque<(u64, u16)>,
    /// Bytes that wait.
    bytes: u64,
}

/// Target of a leg.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Port(u32),
    /// An inline port; packets continue on the next leg.
    Passed(u32),
    /// An inline receiver: it acknowledges each segment at once, computed when the segment enters the leg. Its
    /// acknowledgements leave on the next leg.
    InlineReceiver,
    /// A receiver with a timer or an application.
    Receiver,
    Sender,
    /// A bulk receiver.
    BulkReceiver,
    /// A bulk sender.
    BulkSender,
    /// The sink of a transport other than TCP.
    AgentSink,
    /// The source of a transport other than TCP.
    AgentSource,
    /// A private link on the leg drops the packet.
    Dropped,
}

/// End of a packet's passage over a leg.
#[derive(Clone, Copy)]
pub(crate) struct LegExit {
    /// Time at which the packet reaches the end, or is dropped.
    pub(crate) reach: u64,
    pub(crate) target: PackedTarget,
    /// Process of the port that the leg leads to, or `NO_PROCESS`.
    pub(crate) process: u32,
}

/// A target in four bytes: the number of a port, `PASSED` plus the number of an inline port, or a constant below.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PackedTarget(u32);

const PASSED: u32 = 1 << 31;
const RECEIVER: u32 = u32::MAX;
const SENDER: u32 = u32::MAX - 1;
const INLINE_RECEIVER: u32 = u32::MAX - 2;
const AGENT_SINK: u32 = u32::MAX - 3;
const AGENT_SOURCE: u32 = u32::MAX - 4;
const BULK_RECEIVER: u32 = u32::MAX - 5;
const BULK_SENDER: u32 = u32::MAX - 6;
const DROPPED: u32 = u32::MAX - 7;

impl Paths {
    /// Makes paths for `flows` flows with at most `most` legs each, and these inline ports.
    pub(crate) fn new(flows: usize, most: usize, passed: Vec<PlainPort>) -> Self {
        const LINE: usize = 64;
        let flow_bits = most.max(1).next_power_of_two().ilog2();
        let legs = vec![Leg::default(); (flows << flow_bits) + LINE / size_of::<Leg>()];
        Paths {
            // Alignment affects only the speed.
            skipped: legs.as_ptr().align_offset(LINE).min(LINE / size_of::<Leg>()),
            legs,
            links: Links::default(),
            flow_bits,
            routes: Vec::with_capacity(flows),
            passed,
        }
    }

    /// Makes a private link; `limit` bounds its buffer if it can overflow.
    pub(crate) fn hop(&mut self, rate: Rate, delay: Span, limit: Option<Limit>) -> Hop {
        let buffer = limit.map_or(UNBOUNDED, |limit| {
            self.links.buffers.push(LinkBuffer { limit, waiting: VecDeque::new(), bytes: 0 });
            self.links.buffers.len() as u32 - 1
        });
        Hop { free_at: 0, rate, delay: delay.as_nanos(), known_bytes: 0, known_tx: 0, buffer }
    }

    /// Sets the links and the target of `leg`.
    pub(crate) fn set(&mut self, leg: u32, hops: &[Hop], target: Target, usual_bytes: u16) {
        let (kind_of_hops, delay, usual_tx) = match hops {
            [] => (Hops::None, 0, 0),
            [only] if only.fits_leg(usual_bytes) => {
                let hops = match self.links.buffers.get(only.buffer as usize) {
                    None => Hops::One(only.rate),
                    Some(buffer) => {
                        Hops::OneBounded(only.rate, if buffer.fits_one(usual_bytes) { usual_bytes } else { 0 })
                    }
                };
                (hops, only.delay as u32, tx(only.rate, usual_bytes) as u32)
            }
            many => (Hops::Many(many.len() as u8), self.links.hops.len() as u32, 0),
        };
        if let Hops::Many(_) = kind_of_hops {
            self.links.hops.extend(hops);
        }
        if let (Hops::OneBounded(..), [only]) = (kind_of_hops, hops) {
            self.links.buffer_of.resize(self.legs.len(), UNBOUNDED);
            self.links.buffer_of[leg as usize] = only.buffer;
        }
        let usual_bytes = if let Hops::One(_) = kind_of_hops { usual_bytes } else { 0 };
        let kind =
            Kind { target: PackedTarget::to(target), usual_tx, usual_bytes, hops: kind_of_hops, process: NO_PROCESS };
        let kind = self.links.index_of(kind);
        *self.leg_mut(leg) = Leg { free_at: 0, delay, kind };
    }

    /// Completes the next flow: its acknowledgement legs begin at `acks`, and all legs end at `end`.
    pub(crate) fn add_route(&mut self, acks: u32, end: u32) {
        self.routes.push(Route { acks, end });
    }

    /// Returns the first leg of `flow`, of data.
    #[inline(always)]
    pub(crate) fn first_of(&self, flow: u32) -> u32 {
        flow << self.flow_bits
    }

    /// Returns the first acknowledgement leg of `flow`.
    pub(crate) fn acks_of(&self, flow: u32) -> u32 {
        self.routes[flow as usize].acks
    }

    /// Returns the flow of `leg`.
    #[inline(always)]
    pub(crate) fn flow_of(&self, leg: u32) -> u32 {
        leg >> self.flow_bits
    }

    /// Returns the target of `leg`.
    pub(crate) fn target(&self, leg: u32) -> Target {
        self.links.kinds[self.leg(leg).kind as usize].target.target()
    }

    /// Sets the process of each port.
    pub(crate) fn set_processes(&mut self, of_port: &[u32]) {
        for kind in &mut self.links.kinds {
            kind.process = kind.target.port().map_or(NO_PROCESS, |port| of_port[port as usize]);
        }
    }

    /// Makes the sender or the receiver of `flow` a bulk endpoint.
    pub(crate) fn set_bulk(&mut self, flow: u32, sender: bool, receiver: bool) {
        let Route { acks, end } = self.routes[flow as usize];
        for (leg, is_alone) in [(acks - 1, receiver), (end - 1, sender)] {
            let kind = self.links.kinds[self.leg(leg).kind as usize];
            let target = match kind.target.target() {
                Target::Sender if is_alone => Target::BulkSender,
                Target::Receiver if is_alone => Target::BulkReceiver,
                _ => continue,
            };
            self.leg_mut(leg).kind = self.links.index_of(Kind { target: PackedTarget::to(target), ..kind });
        }
    }

    /// Returns whether the receiver of `flow` is an inline receiver.
    pub(crate) fn has_inline_receiver(&self, flow: u32) -> bool {
        self.target(self.acks_of(flow) - 1) == Target::InlineReceiver
    }

    /// Sends a packet of `bytes` into `leg` at `now`.
    #[inline(always)]
    pub(crate) fn cross(&mut self, leg: u32, now: u64, bytes: u16) -> LegExit {
        self.links.cross(&mut self.legs[self.skipped + leg as usize], leg, now, bytes)
    }

    /// Returns the first leg of `flow`, for a sender that keeps it beside its own state.
    pub(crate) fn first_leg(&self, flow: u32) -> Leg {
        *self.leg(self.first_of(flow))
    }

    /// [`cross`](Self::cross) for a leg that its sender keeps.
    #[inline(always)]
    pub(crate) fn cross_kept(&mut self, kept: &mut Leg, leg: u32, now: u64, bytes: u16) -> LegExit {
        self.links.cross(kept, leg, now, bytes)
    }

    /// Sends a packet of `bytes` through an inline port at `now`.
    pub(crate) fn pass(&mut self, port: u32, now: u64, bytes: u16) -> Arrival {
        self.passed[port as usize].arrive(now, bytes)
    }

    /// [Fetches](crate::fetch) `leg`, if it exists.
    #[inline(always)]
    pub(crate) fn fetch(&self, leg: u32) {
        fetch_at(&self.legs, self.skipped + leg as usize);
    }

    fn leg(&self, leg: u32) -> &Leg {
        &self.legs[self.skipped + leg as usize]
    }

    fn leg_mut(&mut self, leg: u32) -> &mut Leg {
        &mut self.legs[self.skipped + leg as usize]
    }
}

impl Links {
    fn index_of(&mut self, kind: Kind) -> u32 {
        *self.known.entry(kind).or_insert_with(|| {
            self.kinds.push(kind);
            self.kinds.len() as u32 - 1
        })
    }

    /// Sends a packet of `bytes` into leg `it`, number `leg`, at `now`.
    #[inline(always)]
    fn cross(&mut self, it: &mut Leg, leg: u32, now: u64, bytes: u16) -> LegExit {
        let &Kind { target, process, usual_bytes, usual_tx, hops } = &self.kinds[it.kind as usize];
        if usual_bytes == bytes {
            it.free_at = it.free_at.max(now) + u64::from(usual_tx);
            return LegExit { reach: it.free_at + u64::from(it.delay), target, process };
        }
        if hops == Hops::None {
            return LegExit { reach: now, target, process };
        }
        match self.cross_rarely(it, leg, now, bytes) {
            (reach, true) => LegExit { reach, target, process },
            (reach, false) => LegExit { reach, target: PackedTarget::to(Target::Dropped), process: NO_PROCESS },
        }
    }

    /// Sends a packet of any size over one or more links. Returns the time at which it reaches the end or is dropped,
    /// and whether it reaches the end.
    #[inline(never)]
    fn cross_rarely(&mut self, it: &mut Leg, leg: u32, now: u64, bytes: u16) -> (u64, bool) {
        let Kind { hops, usual_tx, .. } = self.kinds[it.kind as usize];
        let dropped = |reach| (reach, false);
        let reach = match hops {
            Hops::None => now, // handled by the caller
            Hops::One(rate) => {
                it.free_at = it.free_at.max(now) + tx(rate, bytes);
                it.free_at + u64::from(it.delay)
            }
            // An idle link has no waiting packets.
            Hops::OneBounded(_, usual_bytes) if it.free_at <= now && bytes == usual_bytes => {
                it.free_at = now + u64::from(usual_tx);
                it.free_at + u64::from(it.delay)
            }
            Hops::OneBounded(rate, _) => {
                let start = it.free_at.max(now);
                if !self.buffers[self.buffer_of[leg as usize] as usize].admit(now, start, bytes) {
                    return dropped(now);
                }
                it.free_at = start + tx(rate, bytes);
                it.free_at + u64::from(it.delay)
            }
            Hops::Many(n) => {
                let mut at = now;
                for hop in &mut self.hops[it.delay as usize..][..n as usize] {
                    let start = hop.free_at.max(at);
                    if let Some(buffer) = self.buffers.get_mut(hop.buffer as usize)
                        && !buffer.admit(at, start, bytes)
                    {
                        return dropped(at);
                    }
                    hop.free_at = start + hop.tx(bytes);
                    at = hop.free_at + hop.delay;
                }
                at
            }
        };
        (reach, true)
    }
}

impl PackedTarget {
    fn to(target: Target) -> Self {
        PackedTarget(match target {
            Target::Port(port) => port,
            Target::Passed(port) => PASSED | port,
            Target::InlineReceiver => INLINE_RECEIVER,
            Target::Receiver => RECEIVER,
            Target::Sender => SENDER,
            Target::AgentSink => AGENT_SINK,
            Target::AgentSource => AGENT_SOURCE,
            Target::BulkReceiver => BULK_RECEIVER,
            Target::BulkSender => BULK_SENDER,
            Target::Dropped => DROPPED,
        })
    }

    /// Returns the port, if the target is one.
    #[inline(always)]
    pub(crate) fn port(self) -> Option<u32> {
        (self.0 < PASSED).then_some(self.0)
    }

    #[inline(always)]
    pub(crate) fn is_inline_receiver(self) -> bool {
        self.0 == INLINE_RECEIVER
    }

    #[inline(always)]
    pub(crate) fn is_bulk_receiver(self) -> bool {
        self.0 == BULK_RECEIVER
    }

    #[inline(always)]
    pub(crate) fn is_bulk_sender(self) -> bool {
        self.0 == BULK_SENDER
    }

    #[inline(always)]
    pub(crate) fn target(self) -> Target {
        match self.0 {
            INLINE_RECEIVER => Target::InlineReceiver,
            RECEIVER => Target::Receiver,
            SENDER => Target::Sender,
            AGENT_SINK => Target::AgentSink,
            AGENT_SOURCE => Target::AgentSource,
            BULK_RECEIVER => Target::BulkReceiver,
            BULK_SENDER => Target::BulkSender,
            DROPPED => Target::Dropped,
            port if port < PASSED => Target::Port(port),
            port => Target::Passed(port & !PASSED),
        }
    }
}

impl Hop {
    /// Returns whether its times fit the narrower fields of a leg.
    fn fits_leg(&self, usual_bytes: u16) -> bool {
        self.delay <= u32::MAX as u64 && tx(self.rate, usual_bytes) <= u32::MAX as u64
    }

    fn tx(&mut self, bytes: u16) -> u64 {
        if self.known_bytes != bytes {
            (self.known_bytes, self.known_tx) = (bytes, tx(self.rate, bytes));
        }
        self.known_tx
    }
}

impl LinkBuffer {
    /// Returns whether a packet of `bytes` fits an empty buffer.
    fn fits_one(&self, bytes: u16) -> bool {
        self.limit.packets > 0 && u64::from(bytes) <= self.limit.bytes.0
    }

    /// Queues a packet of `bytes` that arrives at `now` and starts at `start`, if it fits; returns whether it does.
    fn admit(&mut self, now: u64, start: u64, bytes: u16) -> bool {
        while let Some(&(start, bytes)) = self.waiting.front()
            && start <= now
        {
            self.bytes -= u64::from(bytes);
            self.waiting.pop_front();
        }
        let with_it = self.bytes + u64::from(bytes);
        if self.waiting.len() >= self.limit.packets as usize || with_it > self.limit.bytes.0 {
            return false;
        }
        if start > now {
            self.waiting.push_back((start, bytes));
            self.bytes = with_it;
        }
        true
    }
}

fn tx(rate: Rate, bytes: u16) -> u64 {
    rate.time_for(Bytes(bytes as u64)).as_nanos().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_lanes_fill_a_cache_line() {
        assert_eq!(size_of::<Leg>(), 16);
        let paths = Paths::new(3, 4, Vec::new());
        assert_eq!((paths.first_of(1), paths.legs[paths.skipped..].as_ptr() as usize % 64), (4, 0));
    }

    #[test]
    fn packets_wait_for_their_own_link_and_cross_it_at_its_rate() {
        // 1000 bytes at 8 Mbit/s take 1 ms, 40 bytes 40 us; then 10 ms on the way.
        let mut paths = Paths::new(2, 3, Vec::new());
        let hop = paths.hop(Rate::from_bps(8_000_000), Span::from_millis(10), None);
        paths.set(0, &[hop], Target::Port(7), 1000);
        paths.set(1, &[], Target::InlineReceiver, 1000);
        paths.set(2, &[hop, hop], Target::Sender, 40);
        paths.add_route(2, 3);
        let mut cross = |leg, now, bytes| {
            let LegExit { reach, target, .. } = paths.cross(leg, now, bytes);
            (reach, target.target())
        };
        assert_eq!(cross(0, 0, 1000), (11_000_000, Target::Port(7)));
        assert_eq!(cross(0, 0, 40), (11_040_000, Target::Port(7)));
        assert_eq!(cross(0, 5_000_000, 1000), (16_000_000, Target::Port(7)));
        assert_eq!(cross(1, 3, 1000), (3, Target::InlineReceiver));
        assert_eq!(cross(2, 0, 40), (20_080_000, Target::Sender));
        assert_eq!((paths.first_of(1), paths.flow_of(3), paths.flow_of(4), paths.acks_of(0)), (4, 0, 1, 2));
        paths.set_bulk(0, true, true);
        assert_eq!((paths.target(2), paths.target(1)), (Target::BulkSender, Target::InlineReceiver));
    }

    /// Sends packets (bytes, time in microseconds) over a link of 8 Mbit/s and 1 ms with this buffer, and perhaps over
    /// one of 80 Mbit/s. Returns the arrival of each in microseconds, or the time at which it is dropped.
    fn sent(limit: Limit, second: bool, packets: &[(u16, u64)]) -> Vec<Result<u64, u64>> {
        let mut paths = Paths::new(1, 1, Vec::new());
        let (rate, delay) = (Rate::from_bps(8_000_000), Span::from_millis(1));
        let hops = [paths.hop(rate, delay, Some(limit)), paths.hop(Rate::from_bps(80_000_000), Span::ZERO, None)];
        paths.set(0, &hops[..1 + usize::from(second)], Target::Sender, 1000);
        let cross = |&(bytes, at): &(u16, u64)| {
            let LegExit { reach, target, .. } = paths.cross(0, at * 1000, bytes);
            match target.target() {
                Target::Dropped => Err(reach / 1000),
                _ => Ok(reach / 1000),
            }
        };
        packets.iter().map(cross).collect()
    }

    /// Sends them with and without the second link, on which a byte takes 100 ns; returns the arrivals after the
    /// second.
    fn sent_over_both(limit: Limit, packets: &[(u16, u64)]) -> Vec<Result<u64, u64>> {
        let (one, both) = (sent(limit, false, packets), sent(limit, true, packets));
        let later: Vec<_> =
            one.iter().zip(packets).map(|(reach, (bytes, _))| reach.map(|at| at + u64::from(*bytes) / 10)).collect();
        assert_eq!(later, both);
        both
    }

    #[test]
    fn a_private_link_drops_packets_beyond_its_limit() {
        // 1000 bytes take 1000 us, then 100 us: of four at once the first is in transmission, two wait. At
        // 1000 us the second starts, and one has room again, which reaches the end at 4000 + 1000 + 100
        // us. At 9000 us nothing waits.
        let two = Limit::packets(2);
        let at_once =
            [(1000, 0), (1000, 0), (1000, 0), (1000, 0), (1000, 999), (1000, 1000), (1000, 1000), (1000, 9000)];
        let expected = [Ok(2100), Ok(3100), Ok(4100), Err(0), Err(999), Ok(5100), Err(1000), Ok(11_100)];
        assert_eq!(sent_over_both(two, &at_once), expected);
        // 1500 bytes have room: 1000 and 500, or 500 three times.
        let bytes = |most| Limit { packets: u32::MAX, bytes: Bytes(most) };
        let sizes =
            [(1000, 0), (1000, 0), (1000, 0), (500, 0), (10, 0), (500, 1000), (500, 1000), (500, 1000), (500, 1000)];
        let expected = [Ok(2100), Ok(3100), Err(0), Ok(3550), Err(0), Ok(4050), Ok(4550), Err(1000), Err(1000)];
        assert_eq!(sent_over_both(bytes(1500), &sizes), expected);
        // What is larger than all the room never enters, idle or not.
        assert_eq!(sent_over_both(bytes(999), &[(1000, 0), (990, 5000)]), [Err(0), Ok(7089)]);
        assert_eq!(sent_over_both(Limit::packets(0), &[(1000, 0), (1000, 5000)]), [Err(0), Err(5000)]);
    }

    #[test]
    fn a_link_may_be_slower_and_longer_than_a_lane_has_room_to_say() {
        // 1000 bytes at 1 kbit/s take 8 s, and 5 s on the way: both above 2^32 ns.
        let s = 1_000_000_000;
        for (bps, delay_s, tx_s) in [(1_000, 0, 8), (8_000_000, 5, 0), (1_000, 5, 8)] {
            let mut paths = Paths::new(1, 1, Vec::new());
            let hop = paths.hop(Rate::from_bps(bps), Span::from_secs(delay_s), None);
            paths.set(0, &[hop], Target::Sender, 1000);
            let tx = tx_s * s + if tx_s == 0 { 1_000_000 } else { 0 };
            assert_eq!([0, 0].map(|now| paths.cross(0, now, 1000).reach), [1, 2].map(|k| k * tx + delay_s * s));
        }
    }
}
