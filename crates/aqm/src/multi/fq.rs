//! Flow queueing: the scheduler of RFC 8290 with an AQM in each queue. Flows are hashed to queues, which share the link
//! by deficit round robin. A queue that was empty has priority for one quantum, so that sparse flows hardly wait.
//! Deviations are listed in [`fq_codel`](crate::fq_codel) and [`fq_pie`](crate::fq_pie).
//!
//! ```text
//!            a packet for a queue in no list: quantum of credits
//!   idle ──────────────────────────────────────────────────────> new queues
//!     ^                                                              │ credits used up, or empty
//!     │ empty                                                        v
//!     └────────────────────────────────────────────────────────── old queues ──┐ credits used up:
//!                                                                     ^        │ one quantum more, to the end
//!                                                                     └────────┘
//! ```

use alloc::vec::Vec;

use aqumen_units::{Bytes, Instant, Probability, Span};

use crate::multi::hash::FlowHash;
use crate::multi::queue_list::{ListLinks, QueueList};
use crate::multi::store::{Length, Store, Waiting};
use crate::multi::{self, QUANTUM_PARAM, QUEUES_PARAM, WAYS_PARAM};
use crate::{
    Aqm, Backlog, Bound, Cx, DefaultValue, Draw, DropReason, Fates, Handle, Kind, Limit, Packet, Param, ParamError,
    Qdisc, QueueView, Settings, Totals, Unit, Value, Verdict,
};

/// RFC 8290 section 4.1: maximum number of packets dropped at once at overflow.
const DROP_BATCH: u32 = 64;
/// Default memory limit, as in Linux: 32 MB.
const MEMORY_BYTES: f64 = 33_554_432.0;

/// The scheduler's parameters.
pub(crate) const PARAMS: [Param; 8] =
    [QUEUES_PARAM, WAYS_PARAM, QUANTUM_PARAM, LIMIT, MEMORY, TRUESIZE, BATCH, EMPTIED];

const LIMIT: Param = Param::positive(
    "limit",
    Unit::Packets,
    DefaultValue::Designed("the link's buffer"),
    "packets that may wait in all queues, if the link's buffer holds more",
);

const MEMORY: Param = Param {
    name: "memory",
    kind: Kind::Number { unit: Unit::Bytes, min: Bound::Inclusive(1.0), max: Bound::Inclusive(1e15) },
    default: DefaultValue::number(MEMORY_BYTES),
    doc: "bytes that may wait in all queues, if the link's buffer holds more",
};

const TRUESIZE: Param = Param::flag(
    "truesize",
    true,
    "`memory` counts what the buffers of packets take in a kernel (2304 B for 1500), not their bytes on the wire",
);

const BATCH: Param = Param {
    name: "drop_batch",
    kind: Kind::Number { unit: Unit::Packets, min: Bound::Inclusive(1.0), max: Bound::Inclusive(1e6) },
    default: DefaultValue::number(DROP_BATCH as f64),
    doc: "maximum number of packets that the fattest queue loses at once at overflow",
};

const EMPTIED: Param = Param {
    name: "emptied",
    kind: Kind::Choice(&["old", "gone"]),
    default: DefaultValue::Value(Value::Choice("old")),
    doc: "an emptied new queue becomes old (RFC 8290), or is removed if there are no old queues (gone, as in Linux)",
};

/// Parameters of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FqParams {
    /// Queues that flows are hashed to.
    pub queues: usize,
    /// Queues in a set of the hash.
    pub ways: usize,
    /// Bytes that a queue may send in its turn.
    pub quantum: u32,
    /// Packets that may wait in all queues, if the link's buffer holds more.
    pub limit: Option<u32>,
    /// Bytes that may wait in all queues.
    pub memory: u64,
    /// Whether `memory` counts what a kernel's buffers take.
    pub truesize: bool,
    /// Maximum number of packets that the fattest queue loses at once.
    pub drop_batch: u32,
    /// Whether an emptied new queue is removed at once if there are no old queues.
    pub emptied_gone: bool,
    /// Backlog that a queue's AQM observes at dequeue; `None`: its own, not configurable.
    pub backlog: Option<BacklogScope>,
    /// Packets dropped at overflow; `None`: from the fattest queue, not configurable.
    pub overflow: Option<OverflowVictim>,
    /// Unit of the half that the fattest queue loses; `None`: packets, not configurable.
    pub half: Option<DropUnit>,
    /// Whether the AQM of the fattest queue counts its drops; `None`: it does not, not configurable.
    pub count_drops: Option<bool>,
}

/// Unit of the half that the fattest queue loses at overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropUnit {
    /// Packets (RFC 8290).
    Packets,
    /// Bytes (Linux).
    Bytes,
}

/// Packets dropped at overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverflowVictim {
    /// Packets at the head of the queue with the most bytes.
    Fattest,
    /// The arriving packet.
    Arriving,
}

/// Backlog that an AQM observes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BacklogScope {
    /// Backlog of its own queue.
    Queue,
    /// Backlog of all queues.
    All,
}

/// Queues with one AQM each under the scheduler of RFC 8290.
#[derive(Clone, Debug)]
pub struct FlowQueues<A: Aqm + Clone> {
    params: FqParams,
    store: Store,
    hash: FlowHash,
    flows: Vec<Flow<A>>,
    links: ListLinks,
    new: QueueList,
    old: QueueList,
    /// Next due time of the timers, equal for all queues.
    due: Option<Instant>,
    /// Queues whose AQM is not quiescent. Most of thousands of queues are empty and quiescent.
    awake: Vec<u32>,
    /// Queue whose packet is in transmission.
    serving: usize,
    /// Number of overflows.
    overlimits: u64,
}

#[derive(Clone, Debug)]
struct Flow<A> {
    /// Bytes that the queue may still send in this round.
    credits: i64,
    list: Membership,
    /// Sojourn time of the last packet of this queue.
    last_sojourn: Span,
    /// Whether the queue is in the list `awake`.
    awake: bool,
    aqm: A,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Membership {
    None,
    New,
    Old,
}

impl Default for FqParams {
    fn default() -> Self {
        FqParams {
            queues: multi::QUEUES as usize,
            ways: 1,
            quantum: multi::QUANTUM as u32,
            limit: None,
            memory: MEMORY_BYTES as u64,
            truesize: true,
            drop_batch: DROP_BATCH,
            emptied_gone: false,
            backlog: None,
            overflow: None,
            half: None,
            count_drops: None,
        }
    }
}

impl FqParams {
    pub(crate) fn from_settings(settings: &Settings<'_>) -> Result<Self, ParamError> {
        let standard = FqParams::default();
        Ok(FqParams {
            queues: multi::queues(settings)?,
            ways: multi::ways(settings)?,
            quantum: multi::quantum(settings)? as u32,
            limit: settings.whole("limit")?.map(|packets| u32::try_from(packets).unwrap_or(u32::MAX)),
            memory: settings.whole("memory")?.map_or(standard.memory, |bytes| bytes as u64),
            truesize: settings.flag("truesize").unwrap_or(standard.truesize),
            drop_batch: settings.whole("drop_batch")?.map_or(standard.drop_batch, |packets| packets as u32),
            emptied_gone: settings.choice("emptied") == Some("gone"),
            ..standard
        })
    }

    fn within(&self, link: Limit) -> Limit {
        let wire = if self.truesize { u64::MAX } else { self.memory };
        Limit { packets: self.limit.unwrap_or(u32::MAX).min(link.packets), bytes: Bytes(wire.min(link.bytes.0)) }
    }

    /// Limit of kernel memory, bytes.
    fn kernel(&self) -> u64 {
        if self.truesize { self.memory } else { u64::MAX }
    }
}

impl<A: Aqm + Clone> FlowQueues<A> {
    /// Empty queues with total capacity `limit`, each with a copy of `aqm`.
    pub fn new(params: FqParams, aqm: A, limit: Limit) -> Self {
        let hash = FlowHash::set_associative(params.queues, params.ways);
        let queues = hash.queues();
        let due = aqm.next_timer();
        let flow = Flow { credits: 0, list: Membership::None, last_sojourn: Span::ZERO, awake: due.is_some(), aqm };
        FlowQueues {
            params,
            store: Store::new(queues, params.within(limit)).within_memory(params.kernel()),
            hash,
            flows: alloc::vec![flow; queues],
            links: ListLinks::new(queues),
            new: QueueList::EMPTY,
            old: QueueList::EMPTY,
            due,
            awake: if due.is_some() { (0..queues as u32).collect() } else { Vec::new() },
            serving: 0,
            overlimits: 0,
        }
    }

    /// Number of queues.
    pub(crate) fn queues(&self) -> usize {
        self.flows.len()
    }

    /// Heap memory in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.store.memory_bytes() + self.flows.len() * (self.queue_bytes() - Store::QUEUE_BYTES)
    }

    /// Heap memory per queue in bytes.
    pub fn queue_bytes(&self) -> usize {
        let awake = if self.due.is_some() { size_of::<u32>() } else { 0 };
        Store::QUEUE_BYTES + ListLinks::QUEUE_BYTES + size_of::<Flow<A>>() + awake + self.hash.queue_bytes()
    }

    /// Takes the parameters of `new`; each queue keeps its AQM's state and its credits.
    pub(crate) fn retune(&mut self, mut new: Self, now: Instant) {
        let Some(Flow { aqm, .. }) = new.flows.pop() else { return };
        (0..self.flows.len()).for_each(|queue| self.wake(queue));
        for flow in &mut self.flows {
            let before = core::mem::replace(&mut flow.aqm, aqm.clone());
            flow.aqm.take_over(Some(&before), now, self.store.totals());
        }
        self.params = FqParams { queues: self.params.queues, ways: self.params.ways, ..new.params };
        self.store.set_limit(new.store.limit());
        self.store.set_memory(self.params.kernel());
        self.due = self.flows.iter().filter_map(|flow| flow.aqm.next_timer()).min();
        if self.due.is_some() {
            self.flows.iter_mut().for_each(|flow| flow.awake = true);
            self.awake.clear();
            self.awake.extend(0..self.flows.len() as u32);
        }
    }

    /// Resumes the timer of a quiescent queue at an arrival.
    #[inline]
    fn wake(&mut self, queue: usize) {
        let (Some(due), flow) = (self.due, &mut self.flows[queue]) else { return };
        if !flow.awake {
            flow.awake = true;
            flow.aqm.resume_timer(due);
            // The list has capacity for all queues.
            self.awake.push(queue as u32);
        }
    }

    fn quantum(&self) -> i64 {
        self.params.quantum.max(1) as i64
    }

    /// RFC 8290 section 4.1: the queue with the most bytes loses half of its packets, a batch at most, from its head.
    /// Linux: packets until half of the bytes are gone.
    #[cold]
    fn drop_excess(&mut self, arrived_at: usize, fates: &mut impl Fates) {
        self.overlimits += 1;
        while self.store.is_over() {
            let fattest = self.store.longest(Length::Bytes, arrived_at);
            let Backlog { packets, bytes } = self.store.queue(fattest);
            let (half_packets, left) = match self.params.half {
                Some(DropUnit::Bytes) => (u32::MAX, bytes - bytes / 2),
                _ => (packets.div_ceil(2), 0),
            };
            let mut lost = 0;
            while lost < half_packets.min(self.params.drop_batch.max(1))
                && (lost == 0 || self.store.queue(fattest).bytes > left)
            {
                self.store.steal_one(fattest, true, fates);
                lost += 1;
            }
            if self.params.count_drops == Some(true) {
                self.flows[fattest].aqm.on_buffer_stolen(lost);
            }
        }
    }

    /// Dequeues the next packet of a queue that its AQM does not drop.
    #[inline(always)]
    fn take<R: Draw>(&mut self, queue: usize, now: Instant, rng: &mut R, fates: &mut impl Fates) -> Option<Waiting> {
        let flow = &mut self.flows[queue];
        while let Some((taken, sojourn)) = self.store.pop(queue, now) {
            flow.last_sojourn = sojourn;
            let mut cx = self.store.cx(queue, now, rng);
            if self.params.backlog == Some(BacklogScope::All) {
                let Backlog { packets, bytes } = self.store.backlog();
                (cx.queue.packets, cx.queue.bytes) = (packets, bytes);
            }
            match flow.aqm.on_dequeue(&taken.packet, sojourn, &mut cx) {
                Verdict::Drop(reason) => {
                    self.store.lose(&taken, reason, fates);
                    continue;
                }
                Verdict::Mark => self.store.mark(taken.handle, fates),
                Verdict::Pass => {}
            }
            return Some(taken);
        }
        flow.aqm.on_idle(now);
        None
    }

    /// Next due time if all queues are quiescent, from the timer of the first queue.
    #[cold]
    fn next_due<R: Draw>(&mut self, now: Instant, rng: &mut R) -> Option<Instant> {
        let (due, totals) = (self.due?, Totals::default());
        let aqm = &mut self.flows.first_mut()?.aqm;
        aqm.resume_timer(due);
        let queue = QueueView { packets: 0, bytes: 0, limit: self.store.limit(), totals: &totals };
        aqm.on_timer(&mut Cx { now, queue, rng });
        aqm.next_timer()
    }

    /// After a round of the old queues without a transmission: adds the quanta of all further such rounds at once.
    #[cold]
    fn skip_idle_rounds(&mut self) {
        let quantum = self.quantum();
        let turns = |queue: usize| (-self.flows[queue].credits).max(-1) / quantum + 1;
        let idle = self.old.iter(&self.links).map(turns).min().unwrap_or(0) - 1;
        if idle > 0 {
            for queue in self.old.iter(&self.links) {
                self.flows[queue].credits += idle * quantum;
            }
        }
    }
}

impl<A: Aqm + Clone> Qdisc for FlowQueues<A> {
    #[inline(always)]
    fn enqueue<R: Draw>(&mut self, handle: Handle, packet: &Packet, now: Instant, rng: &mut R, fates: &mut impl Fates) {
        self.store.arrive(packet);
        let is_idle = |queue: usize| self.flows[queue].list == Membership::None;
        let queue = self.hash.queue(packet.flow_hash, is_idle, rng);
        self.wake(queue);
        if self.params.overflow == Some(OverflowVictim::Arriving) && self.store.is_full(packet) {
            self.overlimits += 1;
            self.flows[queue].aqm.on_overflow(packet, &mut self.store.cx(queue, now, rng));
            return self.store.refuse(handle, DropReason::Overflow, fates);
        }
        let flow = &mut self.flows[queue];
        match flow.aqm.on_arrival(packet, &mut self.store.cx(queue, now, rng)) {
            Verdict::Drop(reason) => return self.store.refuse(handle, reason, fates),
            Verdict::Mark => self.store.mark(handle, fates),
            Verdict::Pass => {}
        }
        self.store.push(queue, handle, packet, now);
        if flow.list == Membership::None {
            flow.list = Membership::New;
            flow.credits = self.params.quantum.max(1) as i64;
            self.new.push(&mut self.links, queue);
        }
        if self.store.is_over() {
            self.drop_excess(queue, fates);
        }
    }

    #[inline(always)]
    fn dequeue<R: Draw>(&mut self, now: Instant, rng: &mut R, fates: &mut impl Fates) -> Option<Handle> {
        let mut unsuccessful = 0;
        loop {
            // RFC 8290 section 4.2: new queues go before old ones.
            let queue = self.new.first().or_else(|| self.old.first())?;
            let quantum = self.quantum();
            let flow = &mut self.flows[queue];
            let was_new = flow.list == Membership::New;
            let from = if was_new { &mut self.new } else { &mut self.old };
            if flow.credits <= 0 {
                // The quantum is used up: a new one, and to the end of the old queues.
                flow.credits += quantum;
                flow.list = Membership::Old;
                from.remove(&mut self.links, queue);
                self.old.push(&mut self.links, queue);
                unsuccessful += 1;
                if unsuccessful > self.old.len() {
                    self.skip_idle_rounds();
                    unsuccessful = 0;
                }
                continue;
            }
            if let Some(taken) = self.take(queue, now, rng, fates) {
                self.flows[queue].credits -= taken.packet.bytes as i64;
                self.serving = queue;
                return Some(self.store.send(&taken, now));
            }
            let from = if was_new { &mut self.new } else { &mut self.old };
            from.remove(&mut self.links, queue);
            // An emptied new queue becomes old, or a flow just below its share would always have priority. Linux
            // removes it if there are no old queues.
            let stays = was_new && !(self.params.emptied_gone && self.old.first().is_none());
            self.flows[queue].list = if stays { Membership::Old } else { Membership::None };
            if stays {
                self.old.push(&mut self.links, queue);
            }
        }
    }

    fn transmitted(&mut self, duration: Span, now: Instant) {
        self.store.transmitted(duration);
        self.flows[self.serving].aqm.on_departure(now);
    }

    fn backlog(&self) -> Backlog {
        self.store.backlog()
    }

    fn totals(&self) -> &Totals {
        self.store.totals()
    }

    fn next_timer(&self) -> Option<Instant> {
        self.due
    }

    fn on_timer<R: Draw>(&mut self, now: Instant, rng: &mut R) {
        if self.due.is_none_or(|due| now < due) {
            return;
        }
        let mut next = None;
        let (flows, store) = (&mut self.flows, &self.store);
        self.awake.retain(|&queue| {
            let flow = &mut flows[queue as usize];
            // A queue's AQM observes the delay of its own packets.
            let totals = Totals { last_sojourn: flow.last_sojourn, ..Totals::default() };
            let Backlog { packets, bytes } = store.queue(queue as usize);
            let queue = QueueView { packets, bytes, limit: store.limit(), totals: &totals };
            flow.aqm.on_timer(&mut Cx { now, queue, rng });
            next = flow.aqm.next_timer();
            flow.awake = packets > 0 || !flow.aqm.is_quiescent();
            flow.awake
        });
        self.due = match next {
            None => self.next_due(now, rng),
            next => next,
        };
    }

    /// Mean of the queues' probabilities, weighted by their packets.
    fn probability(&self) -> Probability {
        if self.store.backlog().packets == 0 {
            return Probability::ZERO;
        }
        let lists = self.new.iter(&self.links).chain(self.old.iter(&self.links));
        let sum: f64 =
            lists.map(|queue| self.store.queue(queue).packets as f64 * self.flows[queue].aqm.probability().get()).sum();
        Probability::clamp(sum / self.store.backlog().packets as f64)
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("new_queues", self.new.len() as f64);
        visit("old_queues", self.old.len() as f64);
        visit("overlimits", self.overlimits as f64);
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        let FqParams { quantum, limit, memory, truesize, drop_batch, .. } = self.params;
        let FqParams { emptied_gone, backlog, overflow, half, count_drops, .. } = self.params;
        multi::show(visit, &self.hash);
        visit("quantum", Value::Number(quantum as f64));
        if let Some(limit) = limit {
            visit("limit", Value::Number(limit as f64));
        }
        visit("memory", Value::Number(memory as f64));
        visit("truesize", Value::Flag(truesize));
        visit("drop_batch", Value::Number(drop_batch as f64));
        visit("emptied", Value::Choice(if emptied_gone { "gone" } else { "old" }));
        if let Some(shown) = backlog {
            visit("backlog", Value::Choice(if shown == BacklogScope::All { "all" } else { "queue" }));
        }
        if let Some(gives_way) = overflow {
            visit(
                "overflow",
                Value::Choice(if gives_way == OverflowVictim::Arriving { "arriving" } else { "fattest" }),
            );
        }
        if let Some(half) = half {
            visit("half", Value::Choice(if half == DropUnit::Bytes { "bytes" } else { "packets" }));
        }
        if let Some(count_drops) = count_drops {
            visit("count_drops", Value::Flag(count_drops));
        }
        self.flows[0].aqm.settings(visit);
    }
}

impl<A: Aqm + Clone> FlowQueues<A> {
    /// Queues whose AQM is not quiescent.
    #[cfg(test)]
    pub(crate) fn awake(&self) -> &[u32] {
        &self.awake
    }

    /// New and old queues, in order.
    #[cfg(test)]
    fn lists(&self) -> (Vec<usize>, Vec<usize>) {
        (self.new.iter(&self.links).collect(), self.old.iter(&self.links).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multi::testing::{Fixed, Log, flow};

    /// An AQM that drops packets of 999 bytes at the head, and counts empty polls and stolen packets.
    #[derive(Clone, Debug, Default)]
    struct Picky {
        empty: u32,
        stolen: u32,
    }

    impl Aqm for Picky {
        fn on_dequeue<R: Draw>(&mut self, packet: &Packet, _sojourn: Span, _cx: &mut Cx<'_, R>) -> Verdict {
            if packet.bytes == 999 { Verdict::Drop(DropReason::Early) } else { Verdict::Pass }
        }

        fn on_idle(&mut self, _now: Instant) {
            self.empty += 1;
        }

        fn on_buffer_stolen(&mut self, packets: u32) {
            self.stolen += packets;
        }
    }

    const QUANTUM: u32 = 1000;

    fn queues(limit: u32) -> (FlowQueues<Picky>, Log) {
        let params = FqParams { quantum: QUANTUM, ..FqParams::default() };
        (FlowQueues::new(params, Picky::default(), Limit::packets(limit)), Log::default())
    }

    fn arrive(fq: &mut FlowQueues<Picky>, log: &mut Log, packets: &[(Handle, u32, u32)]) {
        for &(handle, of, bytes) in packets {
            fq.enqueue(handle, &flow(of, bytes), Instant::ZERO, &mut Fixed(0.1), log);
        }
    }

    fn next(fq: &mut FlowQueues<Picky>, log: &mut Log) -> Option<Handle> {
        fq.dequeue(Instant::ZERO, &mut Fixed(0.1), log)
    }

    fn rest(fq: &mut FlowQueues<Picky>, log: &mut Log) -> Vec<Handle> {
        core::iter::from_fn(|| next(fq, log)).collect()
    }

    #[test]
    fn a_new_queue_has_priority_for_one_quantum() {
        let (mut fq, mut log) = queues(100);
        arrive(&mut fq, &mut log, &[(10, 1, 1000), (11, 1, 1000), (12, 1, 1000), (20, 2, 1000), (21, 2, 1000)]);
        // Each sends its quantum of one packet as a new queue, then they take turns.
        assert_eq!(
            [next(&mut fq, &mut log), next(&mut fq, &mut log), next(&mut fq, &mut log)],
            [Some(10), Some(20), Some(11)]
        );
        // A third flow comes: before the old queues, but with its quantum only.
        arrive(&mut fq, &mut log, &[(30, 3, 600), (31, 3, 600), (32, 3, 600)]);
        // 600 leave 400 > 0 credits: a second packet; -200: one quantum more, to the end of the old queues, which are 1
        // and 2. 1 has used up its quantum and goes behind 3.
        assert_eq!(rest(&mut fq, &mut log), [30, 31, 21, 32, 12]);
    }

    #[test]
    fn an_emptied_new_queue_becomes_old() {
        let (mut fq, mut log) = queues(100);
        arrive(&mut fq, &mut log, &[(10, 1, 1000), (11, 1, 1000), (20, 2, 100)]);
        assert_eq!([next(&mut fq, &mut log), next(&mut fq, &mut log)], [Some(10), Some(20)]);
        // Queue 2 has 900 credits and no packets: it is seen empty, and joins the old ones behind 1.
        assert_eq!(next(&mut fq, &mut log), Some(11));
        let (new, old) = fq.lists();
        assert_eq!((new.len(), old.len()), (0, 2));
        // A packet now does not make it new again: 1 goes first.
        arrive(&mut fq, &mut log, &[(21, 2, 100), (12, 1, 100)]);
        assert_eq!(fq.lists().0.len(), 0);
        assert_eq!(next(&mut fq, &mut log), Some(21));
        assert_eq!(rest(&mut fq, &mut log), [12]);
        // All empty, all idle: the next packet makes a new queue.
        assert_eq!(fq.lists(), (Vec::new(), Vec::new()));
        arrive(&mut fq, &mut log, &[(22, 2, 100)]);
        assert_eq!(fq.lists().0.len(), 1);
    }

    #[test]
    fn after_early_drops_of_a_whole_queue_the_next_queue_is_served() {
        let (mut fq, mut log) = queues(100);
        arrive(&mut fq, &mut log, &[(10, 1, 999), (11, 1, 999), (20, 2, 1000)]);
        assert_eq!(next(&mut fq, &mut log), Some(20));
        assert_eq!(log.dropped, [10, 11]);
        assert_eq!((fq.totals().early_dropped, fq.backlog().packets), (2, 0));
        // Empty as a new queue, and, in the next round, as an old one.
        assert_eq!(next(&mut fq, &mut log), None);
        assert_eq!(fq.flows.iter().map(|flow| flow.aqm.empty).sum::<u32>(), 3);
    }

    #[test]
    fn at_overflow_the_fattest_queue_loses_half_of_its_packets() {
        let params = FqParams { quantum: QUANTUM, half: Some(DropUnit::Packets), ..FqParams::default() };
        let mut fq = FlowQueues::new(params, Picky::default(), Limit::packets(10));
        let mut log = Log::default();
        let fat: Vec<_> = (0..9).map(|handle| (handle, 1, 1000)).collect();
        arrive(&mut fq, &mut log, &fat);
        arrive(&mut fq, &mut log, &[(20, 2, 100)]);
        assert!(log.dropped.is_empty());
        // The eleventh packet: queue 1 has 9 of them, half is 5.
        arrive(&mut fq, &mut log, &[(21, 2, 100)]);
        assert_eq!(log.dropped, [0, 1, 2, 3, 4]);
        assert_eq!((fq.backlog().packets, fq.totals().overflow_dropped, fq.overlimits), (6, 5, 1));
    }

    #[test]
    fn at_most_64_packets_are_dropped_at_once() {
        let (mut fq, mut log) = queues(1000);
        let fat: Vec<_> = (0..1001).map(|handle| (handle, 1, 1000)).collect();
        arrive(&mut fq, &mut log, &fat);
        assert_eq!(log.dropped, (0..64).collect::<Vec<_>>());
    }

    #[test]
    fn at_overflow_the_fattest_queue_loses_half_of_its_bytes() {
        let params =
            FqParams { quantum: QUANTUM, half: Some(DropUnit::Bytes), count_drops: Some(true), ..FqParams::default() };
        let mut fq = FlowQueues::new(params, Picky::default(), Limit::packets(6));
        let mut log = Log::default();
        // 1400 + 4 * 400 + 100 B = 3100 B; half is 1550: the first packet leaves 1700, the second 1300 B.
        let fat = [(0, 1, 1400), (1, 1, 400), (2, 1, 400), (3, 1, 400), (4, 1, 400), (5, 1, 100)];
        arrive(&mut fq, &mut log, &fat);
        arrive(&mut fq, &mut log, &[(20, 2, 100)]);
        assert_eq!(log.dropped, [0, 1]);
        // Its AQM hears of them.
        assert_eq!(fq.flows.iter().map(|flow| flow.aqm.stolen).max(), Some(2));
    }

    #[test]
    fn memory_is_that_of_a_kernels_buffers() {
        // 1000 B: 256 for the packet's head, and 2048 for 64 + 1000 + 320. Three of them are 6912 B.
        let params = FqParams { memory: 6911, quantum: QUANTUM, ..FqParams::default() };
        let mut fq = FlowQueues::new(params, Picky::default(), Limit::packets(100));
        let mut log = Log::default();
        arrive(&mut fq, &mut log, &[(0, 1, 1000), (1, 1, 1000)]);
        assert!(log.dropped.is_empty());
        arrive(&mut fq, &mut log, &[(2, 2, 1000)]);
        assert_eq!(log.dropped, [0]);
        // What was dropped and sent is free again: there is room for another after one has left.
        assert!(next(&mut fq, &mut log).is_some());
        arrive(&mut fq, &mut log, &[(3, 2, 1000)]);
        assert_eq!(log.dropped, [0]);
    }

    #[test]
    fn bytes_are_limited_as_well() {
        let params = FqParams { memory: 2500, truesize: false, quantum: QUANTUM, ..FqParams::default() };
        let mut fq = FlowQueues::new(params, Picky::default(), Limit::packets(100));
        let mut log = Log::default();
        arrive(&mut fq, &mut log, &[(0, 1, 1000), (1, 1, 1000), (2, 2, 400)]);
        assert!(log.dropped.is_empty());
        arrive(&mut fq, &mut log, &[(3, 2, 400)]);
        assert_eq!(log.dropped, [0]);
        // A packet larger than all the memory drops itself.
        arrive(&mut fq, &mut log, &[(4, 3, 5000)]);
        assert_eq!(log.dropped, [0, 4]);
    }

    #[test]
    fn rounds_without_a_transmission_are_skipped() {
        let params = FqParams { quantum: 1, memory: u64::MAX, ..FqParams::default() };
        let mut fq = FlowQueues::new(params, Picky::default(), Limit::packets(100));
        let mut log = Log::default();
        // One packet each leaves credits of 1 - 4e9 and 1 - 3e9. After 3e9 turns queue 2 sends again and owes 2e9 - 1;
        // queue 1 sends after 4e9 turns.
        let huge = [(10, 1, 4_000_000_000), (20, 2, 3_000_000_000), (11, 1, 10), (21, 2, 2_000_000_000)];
        arrive(&mut fq, &mut log, &huge);
        assert_eq!(rest(&mut fq, &mut log), [10, 20, 21, 11]);
    }

    #[test]
    fn backlogged_flows_share_bytes_within_a_quantum_and_a_packet() {
        let (mut fq, mut log) = queues(100_000);
        for number in 0..1000 {
            for of in 0..10 {
                arrive(&mut fq, &mut log, &[(10 * number + of, of, 100 * (of + 1) - (of == 9) as u32 * 2)]);
            }
        }
        let mut bytes = [0u32; 10];
        for _ in 0..2000 {
            let of = next(&mut fq, &mut log).unwrap() as usize % 10;
            bytes[of] += 100 * (of as u32 + 1) - (of == 9) as u32 * 2;
            assert!(bytes.iter().max().unwrap() - bytes.iter().min().unwrap() <= QUANTUM + 1000, "{bytes:?}");
        }
    }
}
