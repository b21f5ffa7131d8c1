//! CAKE's core (Hoeiland-Joergensen, Taht, Morton 2018): flows find their queues by an 8-way set-associative hash, so that they hardly
//! ever share one; queues share the link by deficit round robin with sparse flows first (DRR++, MacGregor and Shi 2000), and in
//! proportion to how many other flows their hosts have; each queue is looked after by COBALT. The link is the rate: there is no
//! shaper, and one traffic class.
//!
//! ```text
//!          packet                     quantum used up, packets left
//!  Idle ──────────> Sparse (served first) ────────────────────────> Bulk (in turn) ──┐ quantum used up:
//!   ^ ^               │ ^  │ used up, none left     packet            ^   │  ^       │ another, to the end
//!   │ │               │ │  └────────> SparseWait ─────────────────────┘   │  └───────┘
//!   │ │ empty, COBALT │ │                  │                              │
//!   │ └─── at rest ───┴─┼──────────────────┴──────────────────────────────┤ empty
//!   │                   │ packet                                          v
//!   └── COBALT at rest ─┴──────────────────────────────────── Decaying (COBALT winds down)
//! ```
//!
//! Deviations:
//! - Left out of CAKE: its shaper and framing, its traffic classes (tins), ACK filter, NAT look-up and splitting of super-packets.
//!   Without the shaper's rate the quantum is 1514 B, as Linux has it for an unlimited rate.
//! - `limit` is the link's buffer unless given; CAKE limits memory.
//! - When the limit is passed the longest queue is found by looking at all of them; Linux keeps a heap.
//! - Where every backlogged queue is in debt by many turns, the turns in which nothing is sent are worked out at once, with a host's
//!   share of the quantum rounded down instead of by chance.

use alloc::vec::Vec;

use aqumen_units::{Instant, Probability, Span};

use crate::cobalt::{self, Cobalt};
use crate::multi::hash::{FlowHash, scale};
use crate::multi::rounds::{Links, List};
use crate::multi::store::{Length, Store, Waiting};
use crate::multi::{self, QUANTUM_PARAM};
use crate::registry::Algorithm;
use crate::{
    Aqm, Backlog, Bound, DefaultValue, Draw, Fates, Handle, Kind, Limit, Network, Packet, Param, ParamError, Qdisc,
    Settings, Totals, Unit, Value, Verdict,
};

/// Queues of a set: a flow may use any of them.
const WAYS: usize = 8;

/// The registry's row.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "cake",
    title: "CAKE",
    summary: "flow and host isolation with COBALT in each queue: the core of CAKE, the link being the rate",
    reference: "Hoeiland-Joergensen, Taht, Morton: Piece of CAKE, a comprehensive queue management solution for home gateways, 2018",
    params: &table::<{ PARAMS.len() + cobalt::ALGORITHM.params.len() }>(),
};

const PARAMS: [Param; 4] = [
    Param {
        name: "queues",
        kind: Kind::Number { unit: Unit::One, min: Bound::Inclusive(8.0), max: Bound::Inclusive(65_536.0) },
        default: DefaultValue::number(multi::QUEUES),
        doc: "queues that flows are hashed to, rounded up to a multiple of 8",
    },
    QUANTUM_PARAM,
    Param::positive(
        "limit",
        Unit::Packets,
        DefaultValue::Designed("the link's buffer"),
        "packets that may wait in all queues, if the link's buffer holds more",
    ),
    Param {
        name: "isolation",
        kind: Kind::Choice(&["triple", "dual-src", "dual-dst", "flows", "hosts", "src-host", "dst-host", "flow-blind"]),
        default: DefaultValue::Value(Value::Choice("triple")),
        doc: "who has a queue, and between whom the link is shared first: by flow and both hosts (triple), by flow and source or destination (dual), by flow alone, by host alone, or one queue for all",
    },
];

const fn table<const N: usize>() -> [Param; N] {
    let mut all = [Param::ECN; N];
    let mut i = 0;
    while i < N {
        all[i] = if i < PARAMS.len() { PARAMS[i] } else { cobalt::ALGORITHM.params[i - PARAMS.len()] };
        i += 1;
    }
    all
}

/// Who has a queue, and which hosts share the link first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// A queue for each flow, shares by the busier of its two hosts.
    Triple,
    /// A queue for each flow, shares by source host.
    DualSource,
    /// A queue for each flow, shares by destination host.
    DualDestination,
    /// A queue for each flow.
    Flows,
    /// A queue for each pair of hosts.
    Hosts,
    /// A queue for each source host.
    SourceHost,
    /// A queue for each destination host.
    DestinationHost,
    /// One queue.
    FlowBlind,
}

/// The core of CAKE.
#[derive(Clone, Debug)]
pub struct Cake {
    quantum: u32,
    limit: Option<u32>,
    isolation: Isolation,
    store: Store,
    hash: FlowHash,
    flows: Vec<Flow>,
    sources: Hosts,
    destinations: Hosts,
    links: Links,
    /// Sparse queues, bulk queues, those that wind down.
    lists: [List; 3],
    /// Packets of a flow that found its queue, a queue of its own, and only one of another flow.
    hits: u64,
    misses: u64,
    collisions: u64,
}

#[derive(Clone, Debug)]
struct Flow {
    /// Hash of the flow that used the queue last; none before the first.
    tag: Option<u32>,
    set: Set,
    deficit: i64,
    /// Its hosts' places in their tables.
    source: u32,
    destination: u32,
    aqm: Cobalt,
}

/// Where a queue stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    Idle,
    /// Served first, until its quantum is used up.
    Sparse,
    /// Sparse in all but the list: it used up its quantum with its last packet, and waits for a turn among the bulk flows.
    SparseWait,
    Bulk,
    /// Empty, but COBALT remembers congestion.
    Decaying,
}

const SPARSE: usize = 0;
const BULK: usize = 1;
const DECAYING: usize = 2;

impl Set {
    /// The list of the queues that stand there.
    fn list(self) -> Option<usize> {
        match self {
            Set::Idle => None,
            Set::Sparse => Some(SPARSE),
            Set::SparseWait | Set::Bulk => Some(BULK),
            Set::Decaying => Some(DECAYING),
        }
    }
}

/// The hosts of one side.
#[derive(Clone, Debug)]
struct Hosts {
    tags: Vec<Option<u32>>,
    /// Bulk flows of each.
    bulk: Vec<u32>,
}

impl Isolation {
    const ALL: [(Isolation, &'static str); 8] = [
        (Isolation::Triple, "triple"),
        (Isolation::DualSource, "dual-src"),
        (Isolation::DualDestination, "dual-dst"),
        (Isolation::Flows, "flows"),
        (Isolation::Hosts, "hosts"),
        (Isolation::SourceHost, "src-host"),
        (Isolation::DestinationHost, "dst-host"),
        (Isolation::FlowBlind, "flow-blind"),
    ];

    fn named(name: &str) -> Isolation {
        Self::ALL.iter().find(|(_, known)| *known == name).map_or(Isolation::Triple, |(isolation, _)| *isolation)
    }

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(isolation, _)| *isolation == self).map_or("triple", |(_, name)| name)
    }

    fn by_source(self) -> bool {
        matches!(self, Isolation::Triple | Isolation::DualSource)
    }

    fn by_destination(self) -> bool {
        matches!(self, Isolation::Triple | Isolation::DualDestination)
    }
}

impl Hosts {
    fn new(places: usize) -> Self {
        Hosts { tags: alloc::vec![None; places], bulk: alloc::vec![0; places] }
    }

    /// The place of a host: its own, one of its set without bulk flows, or the one that its hash names.
    fn place(&mut self, tag: u32) -> u32 {
        let first = scale(tag, self.tags.len());
        let ways = || (0..WAYS).map(|way| first / WAYS * WAYS + (first + way) % WAYS);
        let place = ways()
            .find(|&place| self.tags[place] == Some(tag))
            .or_else(|| ways().find(|&place| self.bulk[place] == 0))
            .unwrap_or(first);
        self.tags[place] = Some(tag);
        place as u32
    }
}

impl Cake {
    /// Empty queues with room for `limit` in all, each looked after by `aqm`; `quantum` bytes may be sent in a turn.
    pub fn new(queues: usize, quantum: u32, isolation: Isolation, aqm: Cobalt, limit: Limit) -> Self {
        let queues = queues.max(1).next_multiple_of(WAYS);
        let flow = Flow { tag: None, set: Set::Idle, deficit: 0, source: 0, destination: 0, aqm };
        Cake {
            quantum: quantum.max(1),
            limit: None,
            isolation,
            store: Store::new(queues, limit),
            hash: FlowHash::default(),
            flows: alloc::vec![flow; queues],
            sources: Hosts::new(queues),
            destinations: Hosts::new(queues),
            links: Links::new(queues),
            lists: [List::EMPTY; 3],
            hits: 0,
            misses: 0,
            collisions: 0,
        }
    }

    pub(crate) fn from_settings(settings: &Settings<'_>, network: &Network, link: Limit) -> Result<Self, ParamError> {
        let limit = settings.whole("limit")?.map(|packets| u32::try_from(packets).unwrap_or(u32::MAX));
        let within = Limit { packets: limit.unwrap_or(u32::MAX).min(link.packets), ..link };
        let isolation = settings.choice("isolation").map_or(Isolation::Triple, Isolation::named);
        let aqm = Cobalt::from_settings(settings, network)?;
        let quantum = multi::quantum(settings)? as u32;
        Ok(Cake { limit, ..Cake::new(multi::queues(settings)?, quantum, isolation, aqm, within) })
    }

    /// Takes quantum, limit and COBALT's parameters of `new`; queues, their hosts and isolation stay.
    pub(crate) fn retune(&mut self, mut new: Self, now: Instant) {
        let Some(Flow { aqm, .. }) = new.flows.pop() else { return };
        for flow in &mut self.flows {
            let before = core::mem::replace(&mut flow.aqm, aqm);
            flow.aqm.take_over(Some(&before), now, self.store.totals());
        }
        (self.quantum, self.limit) = (new.quantum, new.limit);
        self.store.set_limit(new.store.limit());
    }

    /// Bytes of memory that it holds beside itself.
    pub fn memory_bytes(&self) -> usize {
        let host = size_of::<Option<u32>>() + size_of::<u32>();
        self.store.memory_bytes() + self.flows.len() * (size_of::<Flow>() + size_of::<(u32, u32)>() + 2 * host)
    }

    /// The queue of a packet. Section III-B of the paper: a queue of the set that its flow has, else one that nobody uses, else the
    /// one that the hash names.
    #[inline]
    fn classify<R: Draw>(&mut self, packet: &Packet, rng: &mut R) -> usize {
        let hash = &mut self.hash;
        let tag = match self.isolation {
            Isolation::FlowBlind => return 0,
            Isolation::SourceHost => hash.mix(packet.source_hash, rng),
            Isolation::DestinationHost => hash.mix(packet.destination_hash, rng),
            Isolation::Hosts => {
                let source = hash.mix(packet.source_hash, rng);
                hash.mix(packet.destination_hash ^ source.rotate_left(16), rng)
            }
            _ => hash.mix(packet.flow_hash, rng),
        };
        let first = scale(tag, self.flows.len());
        if self.flows[first].tag == Some(tag) {
            self.hits += 1;
            return first;
        }
        self.search(packet, tag, first, rng)
    }

    fn search<R: Draw>(&mut self, packet: &Packet, tag: u32, first: usize, rng: &mut R) -> usize {
        let ways = || (0..WAYS).map(|way| first / WAYS * WAYS + (first + way) % WAYS);
        if let Some(own) = ways().find(|&queue| self.flows[queue].tag == Some(tag)) {
            self.hits += 1;
            return own;
        }
        let idle = ways().find(|&queue| self.flows[queue].set == Set::Idle);
        *(if idle.is_some() { &mut self.misses } else { &mut self.collisions }) += 1;
        let queue = idle.unwrap_or(first);
        // The queue is the new flow's from now on; so are its hosts.
        self.count_hosts(queue, -1);
        let flow = &mut self.flows[queue];
        flow.tag = Some(tag);
        if self.isolation.by_source() {
            flow.source = self.sources.place(self.hash.mix(packet.source_hash, rng));
        }
        if self.isolation.by_destination() {
            flow.destination = self.destinations.place(self.hash.mix(packet.destination_hash, rng));
        }
        self.count_hosts(queue, 1);
        queue
    }

    /// A queue becomes (1) or was (-1) one of the bulk flows of its hosts.
    fn count_hosts(&mut self, queue: usize, by: i32) {
        let flow = &self.flows[queue];
        if flow.set != Set::Bulk {
            return;
        }
        if self.isolation.by_source() {
            let bulk = &mut self.sources.bulk[flow.source as usize];
            *bulk = bulk.saturating_add_signed(by);
        }
        if self.isolation.by_destination() {
            let bulk = &mut self.destinations.bulk[flow.destination as usize];
            *bulk = bulk.saturating_add_signed(by);
        }
    }

    /// Bulk flows that share the share of this queue's host: those of the busier of its hosts.
    fn host_load(&self, queue: usize) -> u32 {
        let flow = &self.flows[queue];
        let mut load = 1;
        if self.isolation.by_source() {
            load = load.max(self.sources.bulk[flow.source as usize]);
        }
        if self.isolation.by_destination() {
            load = load.max(self.destinations.bulk[flow.destination as usize]);
        }
        load
    }

    /// What a queue may send in one turn: its part of its host's quantum, rounded by chance so that small parts add up.
    fn turn<R: Draw>(&self, queue: usize, rng: &mut R) -> i64 {
        match self.host_load(queue) {
            1 => self.quantum as i64,
            load => ((self.quantum as f64 / load as f64 + rng.uniform()) as i64).max(1),
        }
    }

    /// Moves a queue from the list it is in to the end of that of `to`.
    fn move_to(&mut self, queue: usize, to: Set) {
        let from = self.flows[queue].set;
        if let Some(list) = from.list() {
            self.lists[list].remove(&mut self.links, queue);
        }
        if let Some(list) = to.list() {
            self.lists[list].push(&mut self.links, queue);
        }
        self.count_hosts(queue, -1);
        self.flows[queue].set = to;
        self.count_hosts(queue, 1);
    }

    /// The next packet of a queue that COBALT lets go.
    #[inline]
    fn take<R: Draw>(&mut self, queue: usize, now: Instant, rng: &mut R, fates: &mut impl Fates) -> Option<Waiting> {
        let flow = &mut self.flows[queue];
        while let Some((taken, sojourn)) = self.store.pop(queue, now) {
            match flow.aqm.on_dequeue(&taken.packet, sojourn, &mut self.store.cx(queue, now, rng)) {
                // The last packet of a queue is never dropped.
                Verdict::Drop(reason) if !self.store.is_empty(queue) => {
                    self.store.lose(&taken, reason, fates);
                    continue;
                }
                Verdict::Mark => self.store.mark(taken.handle, fates),
                _ => {}
            }
            return Some(taken);
        }
        flow.aqm.on_idle(now);
        None
    }

    /// Every bulk queue had its turn and none could send: gives all of them the turns in which that would go on.
    #[cold]
    fn save_up(&mut self) {
        let part = |cake: &Cake, queue: usize| (cake.quantum as i64 / cake.host_load(queue) as i64).max(1);
        let turns = |queue: usize| (-self.flows[queue].deficit).max(-1) / part(self, queue) + 1;
        let idle = self.lists[BULK].iter(&self.links).map(turns).min().unwrap_or(0) - 1;
        if idle > 0 {
            let mut next = self.lists[BULK].first();
            while let Some(queue) = next {
                self.flows[queue].deficit += idle * part(self, queue);
                next = self.links.after(queue);
            }
        }
    }
}

impl Qdisc for Cake {
    #[inline]
    fn enqueue<R: Draw>(&mut self, handle: Handle, packet: &Packet, now: Instant, rng: &mut R, fates: &mut impl Fates) {
        self.store.arrive(packet);
        let queue = self.classify(packet, rng);
        self.store.push(queue, handle, packet, now);
        match self.flows[queue].set {
            Set::Idle | Set::Decaying => {
                self.move_to(queue, Set::Sparse);
                self.flows[queue].deficit = self.turn(queue, rng);
            }
            Set::SparseWait => {
                // It is among the bulk flows already, and keeps its place.
                self.flows[queue].set = Set::Bulk;
                self.count_hosts(queue, 1);
            }
            Set::Sparse | Set::Bulk => {}
        }
        while self.store.is_over() {
            let longest = self.store.longest(Length::Bytes, queue);
            let head = self.store.head(longest).map_or(*packet, |head| head.packet);
            self.store.steal_one(longest, true, fates);
            self.flows[longest].aqm.on_overflow(&head, &mut self.store.cx(longest, now, rng));
        }
    }

    #[inline]
    fn dequeue<R: Draw>(&mut self, now: Instant, rng: &mut R, fates: &mut impl Fates) -> Option<Handle> {
        // One of the queues that wind down has a look at the clock.
        let mut next = self.lists[DECAYING].first();
        let mut in_vain = 0;
        while self.store.backlog().packets > 0 {
            let Some(queue) = next.take().or_else(|| self.lists[SPARSE].first()).or_else(|| self.lists[BULK].first())
            else {
                break;
            };
            if self.flows[queue].deficit <= 0 {
                let set = match self.flows[queue].set {
                    Set::Sparse if self.store.is_empty(queue) => Set::SparseWait,
                    Set::SparseWait => Set::SparseWait,
                    _ => Set::Bulk,
                };
                self.move_to(queue, set);
                self.flows[queue].deficit += self.turn(queue, rng);
                in_vain += 1;
                if in_vain > self.lists[BULK].len() {
                    self.save_up();
                    in_vain = 0;
                }
                continue;
            }
            if let Some(taken) = self.take(queue, now, rng, fates) {
                self.flows[queue].deficit -= taken.packet.bytes as i64;
                return Some(self.store.send(&taken, now));
            }
            let at_rest = self.flows[queue].aqm.is_at_rest(now);
            self.move_to(queue, if at_rest { Set::Idle } else { Set::Decaying });
        }
        None
    }

    fn transmitted(&mut self, duration: Span, _now: Instant) {
        self.store.transmitted(duration);
    }

    fn backlog(&self) -> Backlog {
        self.store.backlog()
    }

    fn totals(&self) -> &Totals {
        self.store.totals()
    }

    fn next_timer(&self) -> Option<Instant> {
        None
    }

    fn on_timer<R: Draw>(&mut self, _now: Instant, _rng: &mut R) {}

    /// The mean of BLUE's probabilities over the packets that wait.
    fn probability(&self) -> Probability {
        if self.store.backlog().packets == 0 {
            return Probability::ZERO;
        }
        let lists = self.lists[SPARSE].iter(&self.links).chain(self.lists[BULK].iter(&self.links));
        let sum: f64 =
            lists.map(|queue| self.store.queue(queue).packets as f64 * self.flows[queue].aqm.probability().get()).sum();
        Probability::clamp(sum / self.store.backlog().packets as f64)
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("sparse_queues", self.lists[SPARSE].len() as f64);
        visit("bulk_queues", self.lists[BULK].len() as f64);
        visit("decaying_queues", self.lists[DECAYING].len() as f64);
        visit("hash_hits", self.hits as f64);
        visit("hash_misses", self.misses as f64);
        visit("hash_collisions", self.collisions as f64);
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        multi::show(visit, self.flows.len(), self.quantum as i64);
        if let Some(limit) = self.limit {
            visit("limit", Value::Number(limit as f64));
        }
        visit("isolation", Value::Choice(self.isolation.name()));
        self.flows[0].aqm.settings(visit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CobaltParams;
    use crate::multi::testing::{Fixed, Log, flow};
    use aqumen_units::Ecn;

    const QUANTUM: u32 = 1000;

    fn cake(isolation: Isolation, limit: u32) -> (Cake, Log) {
        let cobalt = Cobalt::new(CobaltParams::default()).unwrap();
        (Cake::new(1024, QUANTUM, isolation, cobalt, Limit::packets(limit)), Log::default())
    }

    fn at_ms(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    /// A packet of a flow between two hosts.
    fn between(of: u32, source: u32, destination: u32) -> Packet {
        Packet { source_hash: source, destination_hash: destination, ..flow(of, 1000) }
    }

    fn arrive(cake: &mut Cake, log: &mut Log, packets: &[(Handle, Packet)]) {
        for (handle, packet) in packets {
            cake.enqueue(*handle, packet, Instant::ZERO, &mut Fixed(0.5), log);
        }
    }

    fn next(cake: &mut Cake, log: &mut Log) -> Option<Handle> {
        cake.dequeue(Instant::ZERO, &mut Fixed(0.5), log)
    }

    fn rest(cake: &mut Cake, log: &mut Log) -> Vec<Handle> {
        core::iter::from_fn(|| next(cake, log)).collect()
    }

    fn sets(cake: &Cake) -> [usize; 3] {
        [cake.lists[SPARSE].len(), cake.lists[BULK].len(), cake.lists[DECAYING].len()]
    }

    #[test]
    fn a_sparse_flow_goes_first_for_one_quantum_and_is_then_bulk() {
        let (mut cake, mut log) = cake(Isolation::Flows, 100);
        arrive(&mut cake, &mut log, &[10, 11, 12].map(|handle| (handle, flow(1, 1000))));
        assert_eq!(sets(&cake), [1, 0, 0]);
        assert_eq!([next(&mut cake, &mut log), next(&mut cake, &mut log)], [Some(10), Some(11)]);
        assert_eq!(sets(&cake), [0, 1, 0]);
        // Flow 2 comes: first, and then in turn with flow 1, which has used up its quantum and goes behind it.
        arrive(&mut cake, &mut log, &[20, 21].map(|handle| (handle, flow(2, 1000))));
        assert_eq!(rest(&mut cake, &mut log), [20, 21, 12]);
    }

    #[test]
    fn a_flow_that_uses_up_its_quantum_with_its_last_packet_waits_as_a_sparse_one() {
        let (mut cake, mut log) = cake(Isolation::Flows, 100);
        arrive(
            &mut cake,
            &mut log,
            &[(10, flow(1, 1000)), (20, flow(2, 1000)), (21, flow(2, 1000)), (22, flow(2, 1000))],
        );
        assert_eq!([next(&mut cake, &mut log), next(&mut cake, &mut log)], [Some(10), Some(20)]);
        // Flow 1 has no credit and no packets: it is in turn, but counts as sparse. Its next packet makes it bulk, in its old place.
        let one = cake.flows.iter().position(|flow| flow.set == Set::SparseWait).unwrap();
        arrive(&mut cake, &mut log, &[(11, flow(1, 1000))]);
        assert_eq!(cake.flows[one].set, Set::Bulk);
        assert_eq!(rest(&mut cake, &mut log), [11, 21, 22]);
    }

    #[test]
    fn an_empty_queue_is_forgotten_when_cobalt_is_at_rest_and_winds_down_before() {
        let (mut cake, mut log) = cake(Isolation::Flows, 100);
        // Small packets, so that the quantum lasts. 10 ms in the queue are above the target of 5 ms.
        for handle in 0..3 {
            cake.enqueue(handle, &flow(1, 10), at_ms(0), &mut Fixed(0.5), &mut log);
        }
        assert_eq!(cake.dequeue(at_ms(10), &mut Fixed(0.5), &mut log), Some(0));
        assert_eq!(cake.dequeue(at_ms(10), &mut Fixed(0.5), &mut log), Some(1));
        assert_eq!(cake.dequeue(at_ms(10), &mut Fixed(0.5), &mut log), Some(2));
        // Another flow keeps the link busy: the empty queue is seen, and COBALT's count of one is not at rest.
        cake.enqueue(10, &flow(2, 10), at_ms(10), &mut Fixed(0.5), &mut log);
        cake.enqueue(11, &flow(2, 10), at_ms(10), &mut Fixed(0.5), &mut log);
        assert_eq!(cake.dequeue(at_ms(10), &mut Fixed(0.5), &mut log), Some(10));
        assert_eq!(sets(&cake), [1, 0, 1]);
        // Much later it has wound down.
        cake.enqueue(12, &flow(2, 10), at_ms(5000), &mut Fixed(0.5), &mut log);
        assert_eq!(cake.dequeue(at_ms(5000), &mut Fixed(0.5), &mut log), Some(11));
        cake.dequeue(at_ms(5300), &mut Fixed(0.5), &mut log);
        assert_eq!(sets(&cake)[2], 0);
        // A packet for a queue that winds down makes it sparse.
        cake.enqueue(20, &flow(3, 10), at_ms(5300), &mut Fixed(0.5), &mut log);
        assert_eq!(sets(&cake)[0], 2);
    }

    #[test]
    fn the_last_packet_of_a_queue_is_not_dropped() {
        let (mut cake, mut log) = cake(Isolation::Flows, 100);
        let packet = Packet { ecn: Ecn::NotEct, ..flow(1, 10) };
        for handle in 0..3 {
            cake.enqueue(handle, &packet, at_ms(0), &mut Fixed(0.0), &mut log);
        }
        // BLUE is certain: the first two are dropped, the third goes.
        let queue = cake.flows.iter().position(|flow| flow.set == Set::Sparse).unwrap();
        let certain = CobaltParams { increment: 1.0, ..CobaltParams::default() };
        cake.flows[queue].aqm = Cobalt::new(certain).unwrap();
        cake.flows[queue].aqm.on_overflow(&packet, &mut cake.store.cx(queue, at_ms(1), &mut Fixed(0.0)));
        assert_eq!(cake.dequeue(at_ms(2), &mut Fixed(0.0), &mut log), Some(2));
        assert_eq!(log.dropped, [0, 1]);
    }

    #[test]
    fn eight_ways_keep_apart_what_one_would_not() {
        // 800 flows in 1024 queues: with one way each, 1024 (1 - (1 - 1/1024)^800) = 555 queues are used, 245 flows share. With
        // eight ways a set of 8 overflows only when more than 8 of the 800 flows (6.25 on average) fall on it: about
        // 128 E[(X - 8)+], X Poisson(6.25): 128 * 0.287 = 37 flows.
        let (mut cake, mut log) = cake(Isolation::Flows, 10_000);
        for of in 0..800 {
            cake.enqueue(of, &flow(of, 100), Instant::ZERO, &mut Fixed(0.3), &mut log);
        }
        assert_eq!(cake.hits + cake.misses + cake.collisions, 800);
        assert!(cake.collisions < 75, "{}", cake.collisions);
        // The same flows again find their own.
        let (misses, collisions) = (cake.misses, cake.collisions);
        for of in 0..800 {
            cake.enqueue(800 + of, &flow(of, 100), Instant::ZERO, &mut Fixed(0.3), &mut log);
        }
        assert_eq!(cake.misses, misses);
        assert!(cake.collisions - collisions <= 2 * collisions);
    }

    /// Packets of each flow among the first `packets` sent: flows 1 and 2 of one source, 3 of another; all to hosts of their own.
    fn shares_of_two_sources(isolation: Isolation, packets: usize) -> [usize; 3] {
        let (mut cake, mut log) = cake(isolation, 10_000);
        for number in 0..300 {
            arrive(
                &mut cake,
                &mut log,
                &[
                    (10 * number + 1, between(1, 1, 11)),
                    (10 * number + 2, between(2, 1, 12)),
                    (10 * number + 3, between(3, 2, 13)),
                ],
            );
        }
        let mut sent = [0; 3];
        for _ in 0..packets {
            sent[next(&mut cake, &mut log).unwrap() as usize % 10 - 1] += 1;
        }
        sent
    }

    #[test]
    fn host_isolation_shares_by_hosts_first() {
        // By flow: a third each. By source: the flow that is alone at its host gets half.
        assert_eq!(shares_of_two_sources(Isolation::Flows, 300), [100, 100, 100]);
        let [a, b, alone] = shares_of_two_sources(Isolation::DualSource, 400);
        assert!(alone.abs_diff(200) <= 4 && a.abs_diff(100) <= 4 && b.abs_diff(100) <= 4, "{a} {b} {alone}");
        // Triple: the same, as the sources are the busier hosts.
        let [a, b, alone] = shares_of_two_sources(Isolation::Triple, 400);
        assert!(alone.abs_diff(200) <= 4 && a.abs_diff(100) <= 4 && b.abs_diff(100) <= 4, "{a} {b} {alone}");
        // By destination: each is alone at its own.
        assert_eq!(shares_of_two_sources(Isolation::DualDestination, 300), [100, 100, 100]);
        // Queues by host: two of them; the flows of one source share its queue.
        let [a, b, alone] = shares_of_two_sources(Isolation::SourceHost, 400);
        assert!(alone.abs_diff(200) <= 2 && a.abs_diff(100) <= 2 && b.abs_diff(100) <= 2, "{a} {b} {alone}");
        assert_eq!(shares_of_two_sources(Isolation::DestinationHost, 300), [100, 100, 100]);
        assert_eq!(shares_of_two_sources(Isolation::Hosts, 300), [100, 100, 100]);
        // One queue: as they came.
        assert_eq!(shares_of_two_sources(Isolation::FlowBlind, 300), [100, 100, 100]);
    }

    #[test]
    fn a_host_is_left_when_its_bulk_flows_end() {
        let (mut cake, mut log) = cake(Isolation::DualSource, 100);
        for handle in 0..3 {
            arrive(&mut cake, &mut log, &[(10 + handle, between(1, 1, 1)), (20 + handle, between(2, 1, 2))]);
        }
        let bulk = |cake: &Cake| cake.sources.bulk.iter().sum::<u32>();
        assert_eq!(bulk(&cake), 0);
        assert_eq!([next(&mut cake, &mut log), next(&mut cake, &mut log)], [Some(10), Some(20)]);
        next(&mut cake, &mut log);
        assert_eq!(bulk(&cake), 2);
        rest(&mut cake, &mut log);
        // The queues are empty, and the link is idle; seen when a packet comes.
        arrive(&mut cake, &mut log, &[(30, between(3, 3, 3)), (31, between(3, 3, 3)), (32, between(3, 3, 3))]);
        rest(&mut cake, &mut log);
        arrive(&mut cake, &mut log, &[(40, between(4, 4, 4)), (41, between(4, 4, 4)), (42, between(4, 4, 4))]);
        rest(&mut cake, &mut log);
        assert!(bulk(&cake) <= 2, "{}", bulk(&cake));
    }

    #[test]
    fn passing_the_limit_costs_the_longest_queue_its_head_and_tells_blue() {
        let (mut cake, mut log) = cake(Isolation::Flows, 3);
        arrive(&mut cake, &mut log, &[10, 11, 12].map(|handle| (handle, flow(1, 1000))));
        cake.enqueue(20, &flow(2, 100), at_ms(10), &mut Fixed(0.5), &mut log);
        assert_eq!(log.dropped, [10]);
        let blue: Vec<f64> = cake.flows.iter().map(|flow| flow.aqm.probability().get()).filter(|p| *p > 0.0).collect();
        assert_eq!(blue, [1.0 / 256.0]);
    }
}
