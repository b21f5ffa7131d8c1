//! CAKE without its shaper (Hoeiland-Joergensen, Taht, Morton 2018). An 8-way set-associative hash assigns flows to
//! queues, almost without collisions. Queues share the link by deficit round robin with priority for sparse flows
//! (DRR++, MacGregor and Shi 2000), weighted for fairness between hosts. COBALT manages each queue.
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
//! A flow's quantum per round is quantum / max(1, bulk flows of its source host, bulk flows of its destination host),
//! as selected by the isolation. The hosts of each side are in a set-associative table; a host without bulk flows may
//! lose its entry, and a flow looks its hosts up again after its queue was idle.
//!
//! COBALT's target and interval, its lower bound of the target, and the quantum follow from the link's current rate.
//! Packets are classified by DSCP into [`tins`]; redundant acknowledgements may be dropped ([`acks`]).
//!
//! Deviations from Linux's sch_cake (December 2024), the only specification; `cake-linux` differs from the default only
//! in Linux's arithmetic and in full packets without link header:
//! - There is no shaper: the rate is the link's. A given `rate` only determines the parameters. Drops with `ingress`
//!   and the line's [`framing`] count for queue and tin, but take no time on the link.
//! - Without `overhead` a packet counts its own bytes; in Linux also those of the link header.
//! - Omitted: autorate, NAT look-up, filters and overrides of queue or tin, `wash`, firewall marks, `precedence` and
//!   `diffserv8`, splitting of super-packets.
//! - `limit` defaults to the link's buffer; Linux has a memory limit only. `memory` assumes a separate buffer per
//!   packet; Linux counts the driver's allocation.
//! - The quantum is at most `mtu`, if that is below Linux's 1514, so that a full packet is one turn.
//! - The acknowledgement filter uses a digest of SACK blocks: with three blocks it drops no earlier acknowledgements,
//!   where Linux compares all blocks. In Linux packets with data also make acknowledgements redundant.
//! - An unused queue signals an interval after its sojourn time exceeds the target, like any other
//!   ([`cobalt`](crate::today::cobalt)).
//! - A sparse queue's first quantum is rounded at random like the others; Linux rounds down.
//! - If every backlogged queue has a large negative deficit, rounds without a transmission are skipped in one step,
//!   with a host's part of the quantum rounded down instead of at random.

mod acks;
mod framing;
mod hosts;
mod params;
mod tins;

use alloc::vec::Vec;

use aqumen_units::{Instant, Probability, Rate, Span};

pub use acks::AckFilter;
pub use framing::{Cells, Framing};
pub(crate) use params::ALGORITHM;
pub use params::{CakeParams, Isolation};
use params::{limited, memory};
pub use tins::Tins;

use crate::multi;
use crate::multi::hash::{EntryKind, Salt, scale, search};
use crate::multi::queue_list::ListLinks;
use crate::multi::store::{Length, Store, Waiting};
use crate::today::cobalt::{CobaltParams, CobaltState};
use crate::today::codel::Arithmetic;
use crate::{
    Backlog, Cobalt, Draw, DropReason, Fates, Handle, Limit, Network, Packet, ParamError, Qdisc, Settings, Totals,
    Value, Verdict,
};
use hosts::WAYS;
use tins::{BULK, DECAYING, SPARSE, Tin};

/// CAKE without its shaper.
#[derive(Clone, Debug)]
pub struct Cake {
    params: CakeParams,
    /// Current rate; 0: unlimited.
    rate: Rate,
    /// Queues of each tin.
    queues: usize,
    store: Store,
    salt: Salt,
    flows: Vec<Flow>,
    tins: Vec<Tin>,
    /// Tin served last.
    current: usize,
    links: ListLinks,
    /// Packets that found the queue of their flow.
    hits: u64,
    /// Packets that found an idle queue.
    misses: u64,
    /// Packets that had to share another flow's queue.
    collisions: u64,
    acks_filtered: u64,
}

#[derive(Clone, Debug)]
struct Flow {
    /// Hash of the last flow in the queue; `None` before the first.
    tag: Option<u32>,
    state: QueueState,
    deficit: i64,
    /// Index of the source host in its table; `destination` likewise.
    source: u32,
    destination: u32,
    aqm: CobaltState,
}

/// Scheduling state of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QueueState {
    Idle,
    /// Served first until its quantum is used up.
    Sparse,
    /// Emptied with its quantum used up: still counted as sparse, but in the list of bulk queues.
    SparseWait,
    Bulk,
    /// Empty, while COBALT's state decays.
    Decaying,
}

impl QueueState {
    /// List of the queues in this state.
    fn list(self) -> Option<usize> {
        match self {
            QueueState::Idle => None,
            QueueState::Sparse => Some(SPARSE),
            QueueState::SparseWait | QueueState::Bulk => Some(BULK),
            QueueState::Decaying => Some(DECAYING),
        }
    }
}

impl Cake {
    /// Empty discipline for a buffer of at most `link` and a link of `rate` (0: unlimited).
    pub fn new(params: CakeParams, rate: Rate, link: Limit) -> Self {
        let queues = params.queues.max(1).next_multiple_of(WAYS);
        let rate = params.rate.unwrap_or(rate);
        let made = tin_settings(&params);
        let tins: Vec<_> =
            params.tins.shifts().iter().map(|&shift| Tin::new(&made, limited(rate), shift, queues)).collect();
        let all = queues * tins.len();
        let flow = Flow {
            tag: None,
            state: QueueState::Idle,
            deficit: 0,
            source: 0,
            destination: 0,
            aqm: CobaltState::default(),
        };
        let within = Limit { packets: params.limit.unwrap_or(u32::MAX).min(link.packets), ..link };
        Cake {
            params,
            rate,
            queues,
            store: Store::new(all, within).within_memory(memory(&params, rate)),
            salt: Salt::default(),
            flows: alloc::vec![flow; all],
            tins,
            current: 0,
            links: ListLinks::new(all),
            hits: 0,
            misses: 0,
            collisions: 0,
            acks_filtered: 0,
        }
    }

    pub(crate) fn from_settings(settings: &Settings<'_>, network: &Network, link: Limit) -> Result<Self, ParamError> {
        let standard = CakeParams::default();
        let span = |name: &str, otherwise: Span| settings.number(name).map_or(otherwise, Span::from_secs_f64);
        let cobalt = CobaltParams {
            target: span("target", standard.cobalt.target),
            interval: span("interval", standard.cobalt.interval),
            increment: settings.number("increment").unwrap_or(standard.cobalt.increment),
            decrement: settings.number("decrement").unwrap_or(standard.cobalt.decrement),
            arithmetic: Arithmetic::from_settings(settings),
            ecn: settings.flag("ecn").unwrap_or(standard.cobalt.ecn),
            ..standard.cobalt
        };
        // Checks target and interval.
        Cobalt::new(cobalt)?;
        let params = CakeParams {
            queues: multi::queues(settings)?,
            quantum: settings.whole("quantum")?.map(|bytes| bytes as u32),
            limit: settings.whole("limit")?.map(|packets| u32::try_from(packets).unwrap_or(u32::MAX)),
            memory: settings.whole("memory")?.map(|bytes| bytes as u64),
            isolation: settings.choice("isolation").map_or(standard.isolation, Isolation::from_name),
            rate: settings.number("rate").map(|bps| Rate::from_bps(bps as u64)),
            mtu: settings.whole("mtu")?.map_or(standard.mtu, |bytes| bytes as u32),
            cobalt,
            tins: settings.choice("tins").map_or(standard.tins, Tins::from_name),
            ack_filter: settings.choice("ack_filter").map_or(standard.ack_filter, AckFilter::from_name),
            ingress: settings.flag("ingress").unwrap_or(standard.ingress),
            framing: Framing::from_settings(settings)?,
        };
        Ok(Cake::new(params, network.link_rate, link))
    }

    /// Takes the parameters of `new`; queues, their hosts, tins and isolation stay.
    pub(crate) fn retune(&mut self, new: Self, _now: Instant) {
        let CakeParams { queues, isolation, tins, .. } = self.params;
        self.params = CakeParams { queues, isolation, tins, ..new.params };
        self.store.set_limit(new.store.limit());
        self.configure(new.rate);
    }

    /// Computes the parameters that depend on the rate.
    fn configure(&mut self, rate: Rate) {
        self.rate = rate;
        let made = tin_settings(&self.params);
        for (tin, &shift) in self.tins.iter_mut().zip(self.params.tins.shifts()) {
            tin.configure(&made, limited(rate), shift);
        }
        self.store.set_memory(memory(&self.params, rate));
    }

    /// Heap memory in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.store.memory_bytes()
            + self.tins.len() * size_of::<Tin>()
            + self.flows.len() * (Self::QUEUE_BYTES - Store::QUEUE_BYTES)
    }

    /// Heap memory per queue in bytes, with an entry in both host tables.
    pub const QUEUE_BYTES: usize = Store::QUEUE_BYTES
        + ListLinks::QUEUE_BYTES
        + size_of::<Flow>()
        + 2 * (size_of::<Option<u32>>() + size_of::<u32>());

    /// Tin of a queue.
    fn tin(&self, queue: usize) -> usize {
        queue / self.queues
    }

    /// Queue of a packet in a tin (paper, section III-B): within the set, the flow's queue, else an idle one, else the
    /// one selected by the hash.
    #[inline]
    fn classify<R: Draw>(&mut self, tin: usize, packet: &Packet, rng: &mut R) -> usize {
        let salt = &mut self.salt;
        let base = tin * self.queues;
        let tag = match self.params.isolation {
            Isolation::FlowBlind => return base,
            Isolation::SourceHost => salt.mix(packet.source_hash, rng),
            Isolation::DestinationHost => salt.mix(packet.destination_hash, rng),
            Isolation::Hosts => {
                let source = salt.mix(packet.source_hash, rng);
                salt.mix(packet.destination_hash ^ source.rotate_left(16), rng)
            }
            _ => salt.mix(packet.flow_hash, rng),
        };
        let first = base + scale(tag, self.queues);
        if self.flows[first].tag == Some(tag) && self.flows[first].state != QueueState::Idle {
            self.hits += 1;
            return first;
        }
        self.search(packet, tag, first, rng)
    }

    fn search<R: Draw>(&mut self, packet: &Packet, tag: u32, first: usize, rng: &mut R) -> usize {
        let is_idle = |queue: usize| self.flows[queue].state == QueueState::Idle;
        let (queue, place) = search(first, WAYS, |queue| self.flows[queue].tag == Some(tag), is_idle);
        match place {
            EntryKind::Own => {
                self.hits += 1;
                // While a queue is idle its hosts may lose their entries.
                if self.flows[queue].state != QueueState::Idle {
                    return queue;
                }
            }
            EntryKind::Free => self.misses += 1,
            EntryKind::Shared => self.collisions += 1,
        }
        // From now on the queue and its hosts belong to this flow.
        self.count_hosts(queue, -1);
        let tin = queue / self.queues;
        let (flow, tin) = (&mut self.flows[queue], &mut self.tins[tin]);
        flow.tag = Some(tag);
        if self.params.isolation.by_source() {
            flow.source = tin.sources.place(self.salt.mix(packet.source_hash, rng));
        }
        if self.params.isolation.by_destination() {
            flow.destination = tin.destinations.place(self.salt.mix(packet.destination_hash, rng));
        }
        self.count_hosts(queue, 1);
        queue
    }

    /// Adds `by` to the bulk flow counts of a bulk queue's tin and hosts.
    fn count_hosts(&mut self, queue: usize, by: i32) {
        let tin = self.tin(queue);
        let (flow, tin) = (&self.flows[queue], &mut self.tins[tin]);
        if flow.state != QueueState::Bulk {
            return;
        }
        tin.bulk = tin.bulk.saturating_add_signed(by);
        if self.params.isolation.by_source() {
            let bulk = &mut tin.sources.bulk[flow.source as usize];
            *bulk = bulk.saturating_add_signed(by);
        }
        if self.params.isolation.by_destination() {
            let bulk = &mut tin.destinations.bulk[flow.destination as usize];
            *bulk = bulk.saturating_add_signed(by);
        }
    }

    /// Number of bulk flows of the busier of a queue's hosts, at least 1.
    fn host_load(&self, queue: usize) -> u32 {
        let (flow, tin) = (&self.flows[queue], &self.tins[self.tin(queue)]);
        let mut load = 1;
        if self.params.isolation.by_source() {
            load = load.max(tin.sources.bulk[flow.source as usize]);
        }
        if self.params.isolation.by_destination() {
            load = load.max(tin.destinations.bulk[flow.destination as usize]);
        }
        load
    }

    /// Bytes that a queue may send per round: its part of the quantum, rounded at random so that small parts add up.
    fn turn<R: Draw>(&self, queue: usize, rng: &mut R) -> i64 {
        let quantum = self.tins[self.tin(queue)].quantum;
        if self.params.cobalt.arithmetic == Arithmetic::Linux {
            // Linux: in units of 2^-16, with 65 535 units for 1.
            let parts = quantum as u64 * u64::from(65_535 / self.host_load(queue).max(1));
            return ((parts + (rng.uniform() * 65_536.0) as u64) >> 16) as i64;
        }
        match self.host_load(queue) {
            1 => quantum as i64,
            load => ((quantum as f64 / load as f64 + rng.uniform()) as i64).max(1),
        }
    }

    /// Changes the state of a queue to `to`, and moves it to the end of that list.
    fn move_to(&mut self, queue: usize, to: QueueState) {
        let (from, tin) = (self.flows[queue].state, self.tin(queue));
        if let Some(list) = from.list() {
            self.tins[tin].lists[list].remove(&mut self.links, queue);
        }
        if let Some(list) = to.list() {
            self.tins[tin].lists[list].push(&mut self.links, queue);
        }
        self.count_hosts(queue, -1);
        self.flows[queue].state = to;
        self.count_hosts(queue, 1);
    }

    /// With `ingress`, charges a dropped packet to the rate of its tin.
    fn charge_dropped(&mut self, queue: usize, bytes: u32, now: Instant) {
        if self.params.ingress {
            let tin = self.tin(queue);
            self.tins[tin].spend_time(self.params.framing.counted(bytes), now);
        }
    }

    /// Charges `bytes` of a sent packet to a queue and its tin.
    #[inline]
    fn charge(&mut self, queue: usize, bytes: u32, now: Instant) {
        let (counted, tin) = (self.params.framing.counted(bytes), self.tin(queue));
        self.flows[queue].deficit -= i64::from(counted);
        self.tins[tin].charge(counted, now);
    }

    /// Dequeues the next packet of a queue that COBALT does not drop, unless its turn ends before.
    #[inline]
    fn take<R: Draw>(&mut self, queue: usize, now: Instant, rng: &mut R, fates: &mut impl Fates) -> QueueOutput {
        let tin = self.tin(queue);
        while let Some((taken, sojourn)) = self.store.pop(queue, now) {
            self.tins[tin].waiting -= 1;
            let mut cobalt = self.tins[tin].cobalt;
            if self.params.ingress {
                let flows = self.tins[tin].bulk as u64;
                cobalt.least = cobalt.least.max(self.tins[tin].full_packet.saturating_mul(2 * flows));
            }
            let left = self.store.queue(queue).bytes;
            let aqm = &mut self.flows[queue].aqm;
            let (codel, blue) = aqm.verdicts(&cobalt, &taken.packet, sojourn, left, now, rng);
            // The last packet of a queue is never dropped.
            if (blue || matches!(codel, Verdict::Drop(_))) && !self.store.is_empty(queue) {
                self.store.lose(&taken, DropReason::Early, fates);
                if self.params.ingress {
                    self.charge(queue, taken.packet.bytes, now);
                    return QueueOutput::Charged;
                }
                continue;
            }
            // The last packet keeps CoDel's mark even if BLUE would drop it.
            if codel == Verdict::Mark {
                self.store.mark(taken.handle, fates);
            }
            return QueueOutput::Packet(taken);
        }
        let cobalt = self.tins[tin].cobalt;
        self.flows[queue].aqm.on_empty(&cobalt, now);
        QueueOutput::Empty
    }

    /// After a round of a tin's bulk queues without a transmission: adds the quanta of all further such rounds at once.
    #[cold]
    fn skip_idle_rounds(&mut self, tin: usize) {
        let part = |cake: &Cake, queue: usize| (cake.tins[tin].quantum as i64 / cake.host_load(queue) as i64).max(1);
        let turns = |queue: usize| (-self.flows[queue].deficit).max(-1) / part(self, queue) + 1;
        let bulk = self.tins[tin].lists[BULK];
        let idle = bulk.iter(&self.links).map(turns).min().unwrap_or(0) - 1;
        if idle > 0 {
            let mut next = bulk.first();
            while let Some(queue) = next {
                self.flows[queue].deficit += idle * part(self, queue);
                next = self.links.after(queue);
            }
        }
    }

    /// At overflow, drops the first packet of the longest queue and reports the overflow to its BLUE.
    #[cold]
    fn drop_excess(&mut self, arrived_at: usize, now: Instant, fates: &mut impl Fates) {
        while self.store.is_over() {
            let longest = self.store.longest(Length::Bytes, arrived_at);
            let bytes = self.store.head(longest).map_or(0, |head| head.packet.bytes);
            self.store.steal_one(longest, true, fates);
            let tin = self.tin(longest);
            self.tins[tin].waiting -= 1;
            let cobalt = self.tins[tin].cobalt;
            self.flows[longest].aqm.on_overflow(&cobalt, now);
            self.charge_dropped(longest, bytes, now);
        }
    }
}

/// Result of dequeuing from a queue.
enum QueueOutput {
    Packet(Waiting),
    /// A packet was dropped and charged, so the queue's turn may have ended.
    Charged,
    /// The queue is empty.
    Empty,
}

/// Settings of the tins.
fn tin_settings(params: &CakeParams) -> tins::Settings {
    tins::Settings { cobalt: params.cobalt, mtu: params.mtu, quantum: params.quantum }
}

impl Qdisc for Cake {
    #[inline]
    fn enqueue<R: Draw>(&mut self, handle: Handle, packet: &Packet, now: Instant, rng: &mut R, fates: &mut impl Fates) {
        self.store.arrive(packet);
        let tin = self.params.tins.tin(packet.class);
        let queue = self.classify(tin, packet, rng);
        if self.tins[tin].waiting == 0 {
            self.tins[tin].wake(now);
        }
        self.store.push(queue, handle, packet, now);
        self.tins[tin].waiting += 1;
        if let Some(place) = self.params.ack_filter.redundant(&self.store, queue)
            && let Some(lost) = self.store.drop_at(queue, place, fates)
        {
            self.acks_filtered += 1;
            self.tins[tin].waiting -= 1;
            self.charge_dropped(queue, lost.packet.bytes, now);
        }
        match self.flows[queue].state {
            QueueState::Idle | QueueState::Decaying => {
                self.move_to(queue, QueueState::Sparse);
                self.flows[queue].deficit = self.turn(queue, rng);
            }
            QueueState::SparseWait => {
                // The queue is already in the list of bulk queues and keeps its position.
                self.flows[queue].state = QueueState::Bulk;
                self.count_hosts(queue, 1);
            }
            QueueState::Sparse | QueueState::Bulk => {}
        }
        if self.store.is_over() {
            self.drop_excess(queue, now, fates);
        }
    }

    #[inline]
    fn dequeue<R: Draw>(&mut self, now: Instant, rng: &mut R, fates: &mut impl Fates) -> Option<Handle> {
        let (mut decaying_served, mut unsuccessful, mut chosen) = (false, 0, None);
        while self.store.backlog().packets > 0 {
            // Linux selects a tin again after an empty queue, not after a negative deficit or a drop.
            let tin = chosen.take().unwrap_or_else(|| tins::choose(&mut self.tins, self.current, now));
            if self.current != tin {
                (self.current, unsuccessful) = (tin, 0);
            }
            let lists = &self.tins[tin].lists;
            // One decaying queue is updated per call.
            let decaying = if decaying_served { None } else { lists[DECAYING].first() };
            decaying_served = true;
            let Some(queue) = decaying.or_else(|| lists[SPARSE].first()).or_else(|| lists[BULK].first()) else {
                break;
            };
            if self.flows[queue].deficit <= 0 {
                let set = match self.flows[queue].state {
                    QueueState::Sparse if self.store.is_empty(queue) => QueueState::SparseWait,
                    QueueState::SparseWait => QueueState::SparseWait,
                    _ => QueueState::Bulk,
                };
                self.move_to(queue, set);
                self.flows[queue].deficit += self.turn(queue, rng);
                unsuccessful += 1;
                if unsuccessful > self.tins[tin].lists[BULK].len() {
                    self.skip_idle_rounds(tin);
                    unsuccessful = 0;
                }
                chosen = Some(tin);
                continue;
            }
            match self.take(queue, now, rng, fates) {
                QueueOutput::Packet(taken) => {
                    self.charge(queue, taken.packet.bytes, now);
                    return Some(self.store.send(&taken, now));
                }
                QueueOutput::Charged => chosen = Some(tin),
                QueueOutput::Empty => {
                    let at_rest = self.flows[queue].aqm.is_quiescent(now);
                    self.move_to(queue, if at_rest { QueueState::Idle } else { QueueState::Decaying });
                }
            }
        }
        None
    }

    fn transmitted(&mut self, duration: Span, _now: Instant) {
        self.store.transmitted(duration);
    }

    fn on_rate(&mut self, rate: Rate) {
        if self.params.rate.is_none() {
            self.configure(rate);
        }
    }

    fn backlog(&self) -> Backlog {
        self.store.backlog()
    }

    fn totals(&self) -> &Totals {
        self.store.totals()
    }

    /// Mean of BLUE's probabilities, weighted by the queues' packets.
    fn probability(&self) -> Probability {
        if self.store.backlog().packets == 0 {
            return Probability::ZERO;
        }
        let lists = self.tins.iter().flat_map(|tin| &tin.lists[..DECAYING]).flat_map(|list| list.iter(&self.links));
        let sum: f64 =
            lists.map(|queue| self.store.queue(queue).packets as f64 * self.flows[queue].aqm.blue().get()).sum();
        Probability::clamp(sum / self.store.backlog().packets as f64)
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let queues = |set: usize| self.tins.iter().map(|tin| tin.lists[set].len()).sum::<usize>() as f64;
        visit("sparse_queues", queues(SPARSE));
        visit("bulk_queues", queues(BULK));
        visit("decaying_queues", queues(DECAYING));
        visit("hash_hits", self.hits as f64);
        visit("hash_misses", self.misses as f64);
        visit("hash_collisions", self.collisions as f64);
        visit("acks_filtered", self.acks_filtered as f64);
        visit("target_s", self.tins[0].cobalt.target.as_secs_f64());
        visit("quantum_bytes", self.tins[0].quantum as f64);
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        let CakeParams {
            quantum, limit, memory, isolation, rate, mtu, cobalt, tins, ack_filter, ingress, framing, ..
        } = self.params;
        let mut given = |name, value: Option<f64>| {
            if let Some(value) = value {
                visit(name, Value::Number(value));
            }
        };
        given("queues", Some(self.queues as f64));
        given("quantum", quantum.map(f64::from));
        given("limit", limit.map(f64::from));
        given("memory", memory.map(|bytes| bytes as f64));
        visit("isolation", Value::Choice(isolation.name()));
        if let Some(rate) = rate {
            visit("rate", Value::Number(rate.as_bps() as f64));
        }
        visit("mtu", Value::Number(mtu as f64));
        visit("target", Value::seconds(cobalt.target));
        visit("interval", Value::seconds(cobalt.interval));
        visit("arithmetic", Value::Choice(cobalt.arithmetic.name()));
        visit("increment", Value::Number(cobalt.increment));
        visit("decrement", Value::Number(cobalt.decrement));
        visit("tins", Value::Choice(tins.name()));
        visit("ack_filter", Value::Choice(ack_filter.name()));
        visit("ingress", Value::Flag(ingress));
        framing.settings(visit);
        visit("ecn", Value::Flag(cobalt.ecn));
    }
}

#[cfg(test)]
mod tests;
