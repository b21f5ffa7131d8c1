//! Lanes: the stretches of a flow's way, from an end or port to the next port or end.
//!
//! The links on a lane that its flow alone uses have no queue that anybody else could join, so a packet's way through
//! them is computed when it enters the lane (`max(arrival, link free) + size / rate + delay`, exactly what a port would
//! do), without events. Where more could wait than there is room for, the link keeps count of what waits, and the way
//! of a packet that finds it full ends there.
//!
//! A port to which all packets come from one link is passed likewise: they come in the order in which they entered that
//! link's queue, and nothing can come between them.
//!
//! A flow's lanes are numbered from its own number on, shifted: data first, then acknowledgements. What differs
//! from flow to flow is small, and that of a flow with two lanes each way lies on one cache line; what flows
//! have in common is kept once.

use std::collections::{BTreeMap, VecDeque};

use aqumen_aqm::Limit;
use aqumen_network::port::{Arrival, PlainPort};
use aqumen_units::{Bytes, Rate, Span};

use crate::fetch::fetch_at;

pub(crate) struct Lanes {
    lanes: Vec<Lane>,
    /// So many come first that belong to nobody, so that the first of each flow begins a cache line.
    skipped: usize,
    links: Links,
    /// A flow has numbers for 2^flow_bits lanes.
    flow_bits: u32,
    routes: Vec<Route>,
    /// Ports whose packets come one after the other, so that they pass without an event.
    passed: Vec<PlainPort>,
}

/// What lies behind the lanes.
#[derive(Default)]
struct Links {
    kinds: Vec<Kind>,
    /// The index of each kind.
    known: BTreeMap<Kind, u32>,
    /// Private links where a lane has more than one; a lane owns a run of them.
    hops: Vec<Hop>,
    /// What waits for those that can overflow, and the index of that of each lane with one link that can.
    rooms: Vec<Room>,
    room_of: Vec<u32>,
}

/// One lane, 16 bytes: four fill a cache line.
#[derive(Clone, Copy, Default)]
pub(crate) struct Lane {
    /// When its private link is free.
    free_at: u64,
    /// Its propagation delay; of a lane with several, the index of the first in the table.
    delay: u32,
    /// Index of its kind.
    kind: u32,
}

/// What lanes of many flows have in common.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    leads: Leads,
    /// Time that a packet of `usual_bytes` takes.
    usual_tx: u32,
    /// The size that most packets have, if there is one private link; zero, which none has, otherwise.
    usual_bytes: u16,
    hops: Hops,
    /// The place of the port that it leads to, once it is known.
    place: u32,
}

/// How many private links a lane has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Hops {
    None,
    /// One, of this rate.
    One(Rate),
    /// The same of one that can overflow, and the size that most packets have, for one of which there is room.
    OneBounded(Rate, u16),
    /// This many, kept in the table.
    Many(u8),
}

/// Where lanes of acknowledgements begin, and where those of the flow end.
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
    /// The last size asked for, and the time that it takes.
    known_bytes: u16,
    known_tx: u64,
    /// Index of its room, or `UNBOUNDED`: it never overflows.
    room: u32,
}

const UNBOUNDED: u32 = u32::MAX;

/// A lane that leads to no port.
pub(crate) const NO_PLACE: u32 = u32::MAX;

/// The room for packets that wait for a private link, as a port without AQM has it.
struct Room {
    limit: Limit,
    /// When the transmission of each that waits starts, and its size.
    waiting: VecDeque<(u64, u16)>,
    /// Their bytes.
    bytes: u64,
}

/// Where a lane leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Port(u32),
    /// One of the ports that [packets pass](Lanes::passed); they go on on the lane that follows.
    Passed(u32),
    /// A receiver that answers each segment at once: what it does is computed when the segment enters the lane. Its
    /// acknowledgements leave on the lane that follows.
    PromptReceiver,
    /// A receiver in whose place more happens: it has a timer, or an application.
    Receiver,
    Sender,
    /// Ends that are places by themselves.
    LoneReceiver,
    LoneSender,
    /// The sink of a transport other than TCP.
    AgentSink,
    /// Its source.
    AgentSource,
    /// A private link on the lane has no room for the packet.
    Nowhere,
}

/// How a packet leaves a lane.
#[derive(Clone, Copy)]
pub(crate) struct Exit {
    /// When it reaches the end, or finds no room.
    pub(crate) reach: u64,
    pub(crate) leads: Leads,
    /// The place of the port that the lane leads to, or `NO_PLACE`.
    pub(crate) place: u32,
}

/// A target in four bytes: the number of a port, above `PASSED` that of one that is passed, or one of those below.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Leads(u32);

const PASSED: u32 = 1 << 31;
const RECEIVER: u32 = u32::MAX;
const SENDER: u32 = u32::MAX - 1;
const PROMPT_RECEIVER: u32 = u32::MAX - 2;
const AGENT_SINK: u32 = u32::MAX - 3;
const AGENT_SOURCE: u32 = u32::MAX - 4;
const LONE_RECEIVER: u32 = u32::MAX - 5;
const LONE_SENDER: u32 = u32::MAX - 6;
const NOWHERE: u32 = u32::MAX - 7;

impl Lanes {
    /// For so many flows, none with more than `most` lanes, and these ports that packets pass on them.
    pub(crate) fn new(flows: usize, most: usize, passed: Vec<PlainPort>) -> Self {
        const LINE: usize = 64;
        let flow_bits = most.max(1).next_power_of_two().ilog2();
        let lanes = vec![Lane::default(); (flows << flow_bits) + LINE / size_of::<Lane>()];
        Lanes {
            // Where they lie decides only the speed.
            skipped: lanes.as_ptr().align_offset(LINE).min(LINE / size_of::<Lane>()),
            lanes,
            links: Links::default(),
            flow_bits,
            routes: Vec::with_capacity(flows),
            passed,
        }
    }

    /// A private link, of which `limit` bounds what waits for it if it can overflow.
    pub(crate) fn hop(&mut self, rate: Rate, delay: Span, limit: Option<Limit>) -> Hop {
        let room = limit.map_or(UNBOUNDED, |limit| {
            self.links.rooms.push(Room { limit, waiting: VecDeque::new(), bytes: 0 });
            self.links.rooms.len() as u32 - 1
        });
        Hop { free_at: 0, rate, delay: delay.as_nanos(), known_bytes: 0, known_tx: 0, room }
    }

    /// `lane` leads over `hops` to `target`.
    pub(crate) fn set(&mut self, lane: u32, hops: &[Hop], target: Target, usual_bytes: u16) {
        let (kind_of_hops, delay, usual_tx) = match hops {
            [] => (Hops::None, 0, 0),
            [only] if only.fits_lane(usual_bytes) => {
                let hops = match self.links.rooms.get(only.room as usize) {
                    None => Hops::One(only.rate),
                    Some(room) => {
                        Hops::OneBounded(only.rate, if room.has_for_one(usual_bytes) { usual_bytes } else { 0 })
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
            self.links.room_of.resize(self.lanes.len(), UNBOUNDED);
            self.links.room_of[lane as usize] = only.room;
        }
        let usual_bytes = if let Hops::One(_) = kind_of_hops { usual_bytes } else { 0 };
        let kind = Kind { leads: Leads::to(target), usual_tx, usual_bytes, hops: kind_of_hops, place: NO_PLACE };
        let kind = self.links.index_of(kind);
        *self.lane_mut(lane) = Lane { free_at: 0, delay, kind };
    }

    /// The lanes of the next flow are set: those of acknowledgements begin at `acks`, and all end at `end`.
    pub(crate) fn add_route(&mut self, acks: u32, end: u32) {
        self.routes.push(Route { acks, end });
    }

    /// The first lane of `flow`, of data.
    #[inline(always)]
    pub(crate) fn first_of(&self, flow: u32) -> u32 {
        flow << self.flow_bits
    }

    /// The first of its lanes of acknowledgements.
    pub(crate) fn acks_of(&self, flow: u32) -> u32 {
        self.routes[flow as usize].acks
    }

    /// Whose `lane` is.
    #[inline(always)]
    pub(crate) fn flow_of(&self, lane: u32) -> u32 {
        lane >> self.flow_bits
    }

    /// Where `lane` leads.
    pub(crate) fn target(&self, lane: u32) -> Target {
        self.links.kinds[self.lane(lane).kind as usize].leads.target()
    }

    /// Each port belongs to this place.
    pub(crate) fn set_places(&mut self, of_port: &[u32]) {
        for kind in &mut self.links.kinds {
            kind.place = kind.leads.port().map_or(NO_PLACE, |port| of_port[port as usize]);
        }
    }

    /// The ends of `flow` that are places by themselves: its sender, its receiver.
    pub(crate) fn end_alone(&mut self, flow: u32, sender: bool, receiver: bool) {
        let Route { acks, end } = self.routes[flow as usize];
        for (lane, is_alone) in [(acks - 1, receiver), (end - 1, sender)] {
            let kind = self.links.kinds[self.lane(lane).kind as usize];
            let target = match kind.leads.target() {
                Target::Sender if is_alone => Target::LoneSender,
                Target::Receiver if is_alone => Target::LoneReceiver,
                _ => continue,
            };
            self.lane_mut(lane).kind = self.links.index_of(Kind { leads: Leads::to(target), ..kind });
        }
    }

    /// Whether what the receiver of `flow` does is computed when a segment enters its last lane.
    pub(crate) fn ends_promptly(&self, flow: u32) -> bool {
        self.target(self.acks_of(flow) - 1) == Target::PromptReceiver
    }

    /// A packet of `bytes` enters `lane` at `now`.
    #[inline(always)]
    pub(crate) fn cross(&mut self, lane: u32, now: u64, bytes: u16) -> Exit {
        self.links.cross(&mut self.lanes[self.skipped + lane as usize], lane, now, bytes)
    }

    /// The first lane of `flow`, for a sender that keeps it where the rest lies that it needs.
    pub(crate) fn first_lane(&self, flow: u32) -> Lane {
        *self.lane(self.first_of(flow))
    }

    /// The same as [`cross`](Self::cross) of a lane that is kept elsewhere.
    #[inline(always)]
    pub(crate) fn cross_kept(&mut self, kept: &mut Lane, lane: u32, now: u64, bytes: u16) -> Exit {
        self.links.cross(kept, lane, now, bytes)
    }

    /// A packet of `bytes` comes at `now` to the port that lanes have as number `port`.
    pub(crate) fn pass(&mut self, port: u32, now: u64, bytes: u16) -> Arrival {
        self.passed[port as usize].arrive(now, bytes)
    }

    /// [Fetches](crate::fetch) `lane`, if there is such a lane.
    #[inline(always)]
    pub(crate) fn fetch(&self, lane: u32) {
        fetch_at(&self.lanes, self.skipped + lane as usize);
    }

    fn lane(&self, lane: u32) -> &Lane {
        &self.lanes[self.skipped + lane as usize]
    }

    fn lane_mut(&mut self, lane: u32) -> &mut Lane {
        &mut self.lanes[self.skipped + lane as usize]
    }
}

impl Links {
    fn index_of(&mut self, kind: Kind) -> u32 {
        *self.known.entry(kind).or_insert_with(|| {
            self.kinds.push(kind);
            self.kinds.len() as u32 - 1
        })
    }

    /// A packet of `bytes` enters `it`, the lane of this number, at `now`.
    #[inline(always)]
    fn cross(&mut self, it: &mut Lane, lane: u32, now: u64, bytes: u16) -> Exit {
        let &Kind { leads, place, usual_bytes, usual_tx, hops } = &self.kinds[it.kind as usize];
        if usual_bytes == bytes {
            it.free_at = it.free_at.max(now) + u64::from(usual_tx);
            return Exit { reach: it.free_at + u64::from(it.delay), leads, place };
        }
        if hops == Hops::None {
            return Exit { reach: now, leads, place };
        }
        match self.cross_rarely(it, lane, now, bytes) {
            (reach, true) => Exit { reach, leads, place },
            (reach, false) => Exit { reach, leads: Leads::to(Target::Nowhere), place: NO_PLACE },
        }
    }

    /// The same whatever the size and the links, of which there is one at least: when the packet reaches the end, or
    /// finds no room, and whether it does reach it.
    #[inline(never)]
    fn cross_rarely(&mut self, it: &mut Lane, lane: u32, now: u64, bytes: u16) -> (u64, bool) {
        let Kind { hops, usual_tx, .. } = self.kinds[it.kind as usize];
        let nowhere = |reach| (reach, false);
        let reach = match hops {
            Hops::None => now, // crossed already
            Hops::One(rate) => {
                it.free_at = it.free_at.max(now) + tx(rate, bytes);
                it.free_at + u64::from(it.delay)
            }
            // Nothing waits for an idle link.
            Hops::OneBounded(_, usual_bytes) if it.free_at <= now && bytes == usual_bytes => {
                it.free_at = now + u64::from(usual_tx);
                it.free_at + u64::from(it.delay)
            }
            Hops::OneBounded(rate, _) => {
                let start = it.free_at.max(now);
                if !self.rooms[self.room_of[lane as usize] as usize].admit(now, start, bytes) {
                    return nowhere(now);
                }
                it.free_at = start + tx(rate, bytes);
                it.free_at + u64::from(it.delay)
            }
            Hops::Many(n) => {
                let mut at = now;
                for hop in &mut self.hops[it.delay as usize..][..n as usize] {
                    let start = hop.free_at.max(at);
                    if let Some(room) = self.rooms.get_mut(hop.room as usize)
                        && !room.admit(at, start, bytes)
                    {
                        return nowhere(at);
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

impl Leads {
    fn to(target: Target) -> Self {
        Leads(match target {
            Target::Port(port) => port,
            Target::Passed(port) => PASSED | port,
            Target::PromptReceiver => PROMPT_RECEIVER,
            Target::Receiver => RECEIVER,
            Target::Sender => SENDER,
            Target::AgentSink => AGENT_SINK,
            Target::AgentSource => AGENT_SOURCE,
            Target::LoneReceiver => LONE_RECEIVER,
            Target::LoneSender => LONE_SENDER,
            Target::Nowhere => NOWHERE,
        })
    }

    /// The port, if it is one.
    #[inline(always)]
    pub(crate) fn port(self) -> Option<u32> {
        (self.0 < PASSED).then_some(self.0)
    }

    #[inline(always)]
    pub(crate) fn is_prompt_receiver(self) -> bool {
        self.0 == PROMPT_RECEIVER
    }

    #[inline(always)]
    pub(crate) fn is_lone_sender(self) -> bool {
        self.0 == LONE_SENDER
    }

    #[inline(always)]
    pub(crate) fn target(self) -> Target {
        match self.0 {
            PROMPT_RECEIVER => Target::PromptReceiver,
            RECEIVER => Target::Receiver,
            SENDER => Target::Sender,
            AGENT_SINK => Target::AgentSink,
            AGENT_SOURCE => Target::AgentSource,
            LONE_RECEIVER => Target::LoneReceiver,
            LONE_SENDER => Target::LoneSender,
            NOWHERE => Target::Nowhere,
            port if port < PASSED => Target::Port(port),
            port => Target::Passed(port & !PASSED),
        }
    }
}

impl Hop {
    /// Whether its times fit the narrower fields of a lane.
    fn fits_lane(&self, usual_bytes: u16) -> bool {
        self.delay <= u32::MAX as u64 && tx(self.rate, usual_bytes) <= u32::MAX as u64
    }

    fn tx(&mut self, bytes: u16) -> u64 {
        if self.known_bytes != bytes {
            (self.known_bytes, self.known_tx) = (bytes, tx(self.rate, bytes));
        }
        self.known_tx
    }
}

impl Room {
    /// Whether a packet of `bytes` may wait where nothing else does.
    fn has_for_one(&self, bytes: u16) -> bool {
        self.limit.packets > 0 && u64::from(bytes) <= self.limit.bytes.0
    }

    /// Whether a packet of `bytes` that arrives at `now` may wait until its transmission can start.
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
        assert_eq!(size_of::<Lane>(), 16);
        let lanes = Lanes::new(3, 4, Vec::new());
        assert_eq!((lanes.first_of(1), lanes.lanes[lanes.skipped..].as_ptr() as usize % 64), (4, 0));
    }

    #[test]
    fn packets_wait_for_their_own_link_and_cross_it_at_its_rate() {
        // 1000 bytes at 8 Mbit/s take 1 ms, 40 bytes 40 us; then 10 ms on the way.
        let mut lanes = Lanes::new(2, 3, Vec::new());
        let hop = lanes.hop(Rate::from_bps(8_000_000), Span::from_millis(10), None);
        lanes.set(0, &[hop], Target::Port(7), 1000);
        lanes.set(1, &[], Target::PromptReceiver, 1000);
        lanes.set(2, &[hop, hop], Target::Sender, 40);
        lanes.add_route(2, 3);
        let mut cross = |lane, now, bytes| {
            let Exit { reach, leads, .. } = lanes.cross(lane, now, bytes);
            (reach, leads.target())
        };
        assert_eq!(cross(0, 0, 1000), (11_000_000, Target::Port(7)));
        assert_eq!(cross(0, 0, 40), (11_040_000, Target::Port(7)));
        assert_eq!(cross(0, 5_000_000, 1000), (16_000_000, Target::Port(7)));
        assert_eq!(cross(1, 3, 1000), (3, Target::PromptReceiver));
        assert_eq!(cross(2, 0, 40), (20_080_000, Target::Sender));
        assert_eq!((lanes.first_of(1), lanes.flow_of(3), lanes.flow_of(4), lanes.acks_of(0)), (4, 0, 1, 2));
        lanes.end_alone(0, true, true);
        assert_eq!((lanes.target(2), lanes.target(1)), (Target::LoneSender, Target::PromptReceiver));
    }

    /// Sends packets of (bytes, moment in microseconds) over a link of 8 Mbit/s, 1 ms long, with this room, perhaps
    /// then over one of 80 Mbit/s: when each arrives, microseconds, or when it finds no room.
    fn sent(limit: Limit, second: bool, packets: &[(u16, u64)]) -> Vec<Result<u64, u64>> {
        let mut lanes = Lanes::new(1, 1, Vec::new());
        let (rate, delay) = (Rate::from_bps(8_000_000), Span::from_millis(1));
        let hops = [lanes.hop(rate, delay, Some(limit)), lanes.hop(Rate::from_bps(80_000_000), Span::ZERO, None)];
        lanes.set(0, &hops[..1 + usize::from(second)], Target::Sender, 1000);
        let cross = |&(bytes, at): &(u16, u64)| {
            let Exit { reach, leads, .. } = lanes.cross(0, at * 1000, bytes);
            match leads.target() {
                Target::Nowhere => Err(reach / 1000),
                _ => Ok(reach / 1000),
            }
        };
        packets.iter().map(cross).collect()
    }

    /// The same alone and before the second link, on which a byte takes 100 ns; says what the second gives.
    fn sent_over_both(limit: Limit, packets: &[(u16, u64)]) -> Vec<Result<u64, u64>> {
        let (one, both) = (sent(limit, false, packets), sent(limit, true, packets));
        let later: Vec<_> =
            one.iter().zip(packets).map(|(reach, (bytes, _))| reach.map(|at| at + u64::from(*bytes) / 10)).collect();
        assert_eq!(later, both);
        both
    }

    #[test]
    fn a_private_link_drops_what_it_has_no_room_for() {
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
            let mut lanes = Lanes::new(1, 1, Vec::new());
            let hop = lanes.hop(Rate::from_bps(bps), Span::from_secs(delay_s), None);
            lanes.set(0, &[hop], Target::Sender, 1000);
            let tx = tx_s * s + if tx_s == 0 { 1_000_000 } else { 0 };
            assert_eq!([0, 0].map(|now| lanes.cross(0, now, 1000).reach), [1, 2].map(|k| k * tx + delay_s * s));
        }
    }
}
