//! SFQ: stochastic fairness queueing (McKenney 1990). Flows are hashed to queues, which are served round robin, one
//! packet each; a full buffer drops from the longest queue. Colliding flows share a queue, so the hash may change
//! periodically.
//!
//! ```text
//! arrival ──> queue hash(flow) ──> was empty? joins the round at its end
//!                              ──> buffer over its limit? the longest queue loses its last packet
//! link free ──> first queue of the round sends one packet ──> more? goes to the end of the round : leaves it
//! ```
//!
//! With a `quantum` the round robin is by bytes, as in Linux: a queue sends while it has credit, then receives a
//! quantum, and the next queue is served.
//!
//! Deviations:
//! - A turn is one packet unless `quantum` is given, as in the paper.
//! - After a change of the hash, queued packets stay in their queues, as in the paper, so a flow may be reordered once;
//!   `rehash` moves them, as Linux does.
//! - The buffer is the link's, and one queue may fill it. Linux allows 127 packets in total and per queue, and 128
//!   active queues: `limit`, `depth`, `flows`; profile `sfq-linux` has these values.
//! - If all queues have one packet, the arriving one is dropped; Linux drops from the queue whose turn it is. Among
//!   equally long queues the arriving packet's loses, else the lowest number; in Linux the one that reached that length
//!   last.
//! - Linux's RED in each queue is omitted. Until Linux 6.12 credit was in units of 8 B.

use alloc::vec::Vec;

use aqumen_units::{Instant, Span};

use crate::algorithm::Algorithm;
use crate::multi::hash::FlowHash;
use crate::multi::queue_list::{ListLinks, QueueList};
use crate::multi::store::{Length, RESERVED_PKTS, Store, Waiting};
use crate::multi::{self, QUEUES_PARAM, WAYS_PARAM};
use crate::{
    Backlog, Bound, DefaultValue, Draw, DropReason, Fates, Handle, Kind, Limit, Network, Packet, Param, ParamError,
    Qdisc, Settings, Totals, Unit, Value,
};

/// Registry entry.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "sfq",
    title: "SFQ",
    summary: "stochastic fairness queueing: hashed flows take turns packet by packet",
    reference: "McKenney: Stochastic fairness queueing, INFOCOM 1990",
    params: &[
        QUEUES_PARAM,
        WAYS_PARAM,
        Param {
            name: "perturb",
            kind: Kind::Number { unit: Unit::Seconds, min: Bound::Inclusive(0.0), max: Bound::Inclusive(1e6) },
            default: DefaultValue::number(0.0),
            doc: "time after which the hash is changed; 0: never",
        },
        HEAD_DROP,
        Param {
            name: "quantum",
            kind: Kind::Number { unit: Unit::Bytes, min: Bound::Inclusive(1.0), max: Bound::Inclusive(1e9) },
            default: DefaultValue::Designed("none: a packet a turn"),
            doc: "bytes that a queue may send per round; Linux: a full packet",
        },
        Param::positive(
            "limit",
            Unit::Packets,
            DefaultValue::Designed("the link's buffer"),
            "packets that may wait in all queues, if the link's buffer holds more; Linux: 127",
        ),
        Param::positive(
            "depth",
            Unit::Packets,
            DefaultValue::Designed("none"),
            "packets that may wait in one queue; Linux: 127",
        ),
        Param::positive(
            "flows",
            Unit::One,
            DefaultValue::Designed("as many as queues"),
            "queues that may hold packets at a time; Linux: 128",
        ),
        Param::flag("rehash", false, "packets that wait when the hash changes move to their new queues"),
    ],
};

/// Parameter `head_drop`.
pub(crate) const HEAD_DROP: Param =
    Param::flag("head_drop", false, "drop the first packet of the longest queue instead of its last");

/// Stochastic fairness queueing.
#[derive(Clone, Debug)]
pub struct Sfq {
    store: Store,
    hash: FlowHash,
    links: ListLinks,
    /// Backlogged queues in the order of service.
    round: QueueList,
    /// Period of the hash, and time of its next change.
    perturb: Option<(Span, Instant)>,
    params: SfqParams,
    /// Bytes that each queue may still send in this round.
    credits: Vec<i64>,
    /// Buffer for packets that move to other queues.
    moving: Vec<Waiting>,
}

/// Parameters of [`Sfq`], without the number of queues and the period of its hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SfqParams {
    /// Queues in a set of the hash; 0 is taken for 1.
    pub ways: usize,
    /// Drop the first packet of the longest queue instead of its last.
    pub head_drop: bool,
    /// Quantum, bytes; `None`: one packet.
    pub quantum: Option<u32>,
    /// Packets that may wait in all queues, if the link's buffer holds more.
    pub limit: Option<u32>,
    /// Packets that may wait in one queue.
    pub depth: Option<u32>,
    /// Queues that may hold packets at a time.
    pub flows: Option<u32>,
    /// Move queued packets when the hash changes.
    pub rehash: bool,
}

impl Sfq {
    /// Empty discipline of `queues` queues with total capacity `limit`. The hash changes every `perturb`; 0: never.
    pub fn new(queues: usize, perturb: Span, params: SfqParams, limit: Limit) -> Self {
        let within = Limit { packets: params.limit.unwrap_or(u32::MAX).min(limit.packets), ..limit };
        let hash = FlowHash::set_associative(queues, params.ways);
        let queues = hash.queues();
        Sfq {
            store: Store::new(queues, within),
            hash,
            links: ListLinks::new(queues),
            round: QueueList::EMPTY,
            perturb: (perturb > Span::ZERO).then(|| (perturb, Instant::ZERO + perturb)),
            params,
            credits: alloc::vec![0; queues],
            moving: Vec::with_capacity(if params.rehash { within.packets.min(RESERVED_PKTS) as usize } else { 0 }),
        }
    }

    pub(crate) fn from_settings(settings: &Settings<'_>, _network: &Network, limit: Limit) -> Result<Self, ParamError> {
        let perturb = Span::from_secs_f64(settings.number("perturb").unwrap_or(0.0));
        let whole = |name: &str| -> Result<Option<u32>, ParamError> {
            Ok(settings.whole(name)?.map(|value| u32::try_from(value).unwrap_or(u32::MAX)))
        };
        let params = SfqParams {
            ways: multi::ways(settings)?,
            head_drop: settings.flag("head_drop").unwrap_or(false),
            quantum: whole("quantum")?,
            limit: whole("limit")?,
            depth: whole("depth")?,
            flows: whole("flows")?,
            rehash: settings.flag("rehash").unwrap_or(false),
        };
        Ok(Sfq::new(multi::queues(settings)?, perturb, params, limit))
    }

    /// Takes the parameters of `new`. A changed period of the hash starts now.
    pub(crate) fn retune(&mut self, new: Self, now: Instant) {
        if self.perturb.map(|(period, _)| period) != new.perturb.map(|(period, _)| period) {
            self.perturb = new.perturb.map(|(period, _)| (period, now.saturating_add(period)));
        }
        self.params = new.params;
        self.store.set_limit(new.store.limit());
    }

    /// Enqueues the arriving packet; an empty queue joins the round.
    fn join(&mut self, queue: usize, handle: Handle, packet: &Packet, now: Instant) {
        if self.store.is_empty(queue) {
            self.round.push(&mut self.links, queue);
            self.credits[queue] = self.params.quantum.map_or(0, i64::from);
        }
        self.store.push(queue, handle, packet, now);
    }

    /// After a round without credit: adds the quanta of all further such rounds at once.
    #[cold]
    fn skip_idle_rounds(&mut self, quantum: i64) {
        let without = |queue: usize| (-self.credits[queue]).max(0) / quantum;
        let idle = self.round.iter(&self.links).map(without).min().unwrap_or(0);
        for queue in self.round.iter(&self.links) {
            self.credits[queue] += idle * quantum;
        }
    }

    /// Linux, `sfq_rehash`: moves all packets to their queues by the new hash, in the order of the old queues.
    #[cold]
    fn move_packets<R: Draw>(&mut self, rng: &mut R) {
        let mut moving = core::mem::take(&mut self.moving);
        for queue in 0..self.store.queues() {
            while let Some(packet) = self.store.take_out(queue) {
                moving.push(packet);
            }
        }
        self.round = QueueList::EMPTY;
        for packet in moving.drain(..) {
            let queue = self.hash.queue(packet.packet.flow_hash, |queue| self.store.is_empty(queue), rng);
            if self.store.is_empty(queue) {
                self.round.push(&mut self.links, queue);
                self.credits[queue] = self.params.quantum.map_or(0, i64::from);
            }
            self.store.put_back(queue, packet);
        }
        self.moving = moving;
    }

    /// Heap memory in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.store.memory_bytes() + self.store.queues() * (self.queue_bytes() - Store::QUEUE_BYTES)
    }

    /// Heap memory per queue in bytes.
    pub fn queue_bytes(&self) -> usize {
        Store::QUEUE_BYTES + ListLinks::QUEUE_BYTES + size_of::<i64>() + self.hash.queue_bytes()
    }
}

impl Qdisc for Sfq {
    fn enqueue<R: Draw>(&mut self, handle: Handle, packet: &Packet, now: Instant, rng: &mut R, fates: &mut impl Fates) {
        self.store.arrive(packet);
        let queue = self.hash.queue(packet.flow_hash, |queue| self.store.is_empty(queue), rng);
        let SfqParams { depth, flows, head_drop, .. } = self.params;
        if self.store.is_empty(queue) && flows.is_some_and(|flows| self.round.len() >= flows as usize) {
            return self.store.refuse(handle, DropReason::Overflow, fates);
        }
        if depth.is_some_and(|depth| self.store.queue(queue).packets >= depth) {
            if !head_drop {
                return self.store.refuse(handle, DropReason::Overflow, fates);
            }
            self.store.steal_one(queue, true, fates);
        }
        self.join(queue, handle, packet, now);
        while self.store.is_over() {
            // McKenney section 4: the longest queue loses a packet.
            let longest = self.store.longest(Length::Packets, queue);
            self.store.steal_one(longest, head_drop, fates);
            if self.store.is_empty(longest) {
                self.round.remove(&mut self.links, longest);
            }
        }
    }

    fn dequeue<R: Draw>(&mut self, now: Instant, _rng: &mut R, _fates: &mut impl Fates) -> Option<Handle> {
        let mut queue = self.round.first()?;
        if let Some(quantum) = self.params.quantum {
            let mut unsuccessful = 0;
            while self.credits[queue] <= 0 {
                self.credits[queue] += quantum as i64;
                self.round.rotate(&mut self.links);
                queue = self.round.first()?;
                unsuccessful += 1;
                if unsuccessful == self.round.len() {
                    self.skip_idle_rounds(quantum as i64);
                    unsuccessful = 0;
                }
            }
        }
        let (sent, _) = self.store.pop(queue, now)?;
        if self.store.is_empty(queue) {
            self.round.remove(&mut self.links, queue);
        } else if self.params.quantum.is_some() {
            self.credits[queue] -= sent.packet.bytes as i64;
        } else {
            self.round.rotate(&mut self.links);
        }
        Some(self.store.send(&sent, now))
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
        self.perturb.map(|(_, due)| due)
    }

    fn on_timer<R: Draw>(&mut self, now: Instant, rng: &mut R) {
        if let Some((period, due)) = &mut self.perturb
            && *due <= now
        {
            // A late call counts once and keeps the phase.
            let periods = (now - *due).as_nanos() / period.as_nanos() + 1;
            *due = due.saturating_add(period.saturating_mul(periods));
            self.hash.renew(rng);
            if self.params.rehash {
                self.move_packets(rng);
            }
        }
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("active_queues", self.round.len() as f64);
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        multi::show(visit, &self.hash);
        visit("perturb", Value::Number(self.perturb.map_or(0.0, |(period, _)| period.as_secs_f64())));
        let SfqParams { head_drop, quantum, limit, depth, flows, rehash, .. } = self.params;
        visit("head_drop", Value::Flag(head_drop));
        for (name, value) in [("quantum", quantum), ("limit", limit), ("depth", depth), ("flows", flows)] {
            if let Some(value) = value {
                visit(name, Value::Number(value as f64));
            }
        }
        visit("rehash", Value::Flag(rehash));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multi::testing::{Fixed, Log, flow};
    use std::vec::Vec;

    /// Three flows in queues of their own.
    fn three_flows(limit: u32, head_drop: bool) -> (Sfq, Log) {
        with(SfqParams { head_drop, ..SfqParams::default() }, limit)
    }

    fn with(params: SfqParams, limit: u32) -> (Sfq, Log) {
        (Sfq::new(1024, Span::ZERO, params, Limit::packets(limit)), Log::default())
    }

    fn arrive(sfq: &mut Sfq, log: &mut Log, packets: &[(Handle, u32, u32)]) {
        for &(handle, of, bytes) in packets {
            sfq.enqueue(handle, &flow(of, bytes), Instant::ZERO, &mut Fixed(0.1), log);
        }
    }

    fn sent(sfq: &mut Sfq, log: &mut Log) -> Vec<Handle> {
        core::iter::from_fn(|| sfq.dequeue(Instant::ZERO, &mut Fixed(0.1), log)).collect()
    }

    #[test]
    fn queues_are_served_round_robin_by_packets() {
        let (mut sfq, mut log) = three_flows(100, false);
        // Flow 0 sends 0, 1, 2, 3; flow 1 sends 10, 11, flow 2 sends 20: rounds 0 10 20 | 1 11 | 2 | 3.
        for (handle, of) in [(0, 0), (1, 0), (2, 0), (3, 0), (10, 1), (11, 1), (20, 2)] {
            sfq.enqueue(handle, &flow(of, 1000), Instant::ZERO, &mut Fixed(0.1), &mut log);
        }
        assert_eq!(sent(&mut sfq, &mut log), [0, 10, 20, 1, 11, 2, 3]);
    }

    #[test]
    fn rounds_without_credit_are_skipped() {
        // Quantum 2. Flow 1 has used up 2e9 turns and flow 2 one more.
        let (mut sfq, mut log) = with(SfqParams { quantum: Some(2), ..SfqParams::default() }, 100);
        arrive(&mut sfq, &mut log, &[(10, 1, 4_000_000_000), (20, 2, 4_000_000_002)]);
        arrive(&mut sfq, &mut log, &[(21, 2, 3), (11, 1, 3)]);
        assert_eq!(sent(&mut sfq, &mut log), [10, 20, 11, 21]);
    }

    #[test]
    fn a_full_buffer_drops_the_last_or_first_packet_of_the_longest_queue() {
        for (head_drop, lost, rest) in [(false, 2, [0, 10, 1]), (true, 0, [1, 10, 2])] {
            let (mut sfq, mut log) = three_flows(3, head_drop);
            for (handle, of) in [(0, 0), (1, 0), (2, 0), (10, 1)] {
                sfq.enqueue(handle, &flow(of, 1000), Instant::ZERO, &mut Fixed(0.1), &mut log);
            }
            assert_eq!(log.dropped, [lost]);
            assert_eq!(sent(&mut sfq, &mut log), rest);
        }
    }

    #[test]
    fn a_queue_that_loses_its_only_packet_leaves_the_round() {
        let (mut sfq, mut log) = three_flows(2, false);
        for of in 0..3 {
            sfq.enqueue(of, &flow(of, 1000), Instant::ZERO, &mut Fixed(0.1), &mut log);
        }
        // All queues have one packet: the arriving one is dropped.
        assert_eq!(log.dropped, [2]);
        assert_eq!(sfq.round.len(), 2);
        assert_eq!(sent(&mut sfq, &mut log), [0, 1]);
        assert_eq!(sfq.dequeue(Instant::ZERO, &mut Fixed(0.1), &mut log), None);
    }

    #[test]
    fn a_new_hash_changes_the_collisions() {
        let period = Span::from_secs(10);
        let mut sfq = Sfq::new(2, period, SfqParams::default(), Limit::packets(100));
        let at = |secs| Instant::ZERO + Span::from_secs(secs);
        assert_eq!(sfq.next_timer(), Some(at(10)));
        let placement = |sfq: &mut Sfq, draw| {
            sfq.on_timer(sfq.next_timer().unwrap(), &mut Fixed(draw));
            (0..16).map(|of| sfq.hash.queue(of, |_| true, &mut Fixed(draw))).collect::<Vec<_>>()
        };
        assert_ne!(placement(&mut sfq, 0.3), placement(&mut sfq, 0.6));
        // 3.5 periods late: once, and in phase.
        sfq.on_timer(at(65), &mut Fixed(0.2));
        assert_eq!(sfq.next_timer(), Some(at(70)));
    }

    #[test]
    fn with_a_quantum_queues_share_bytes() {
        let (mut sfq, mut log) = with(SfqParams { quantum: Some(1000), ..SfqParams::default() }, 100);
        // Flow 1 sends 500 B, flow 2 1000 B: 1000 B of credit are two packets of flow 1, and one of flow 2.
        arrive(
            &mut sfq,
            &mut log,
            &[(10, 1, 500), (11, 1, 500), (12, 1, 500), (20, 2, 1000), (21, 2, 1000), (13, 1, 500)],
        );
        assert_eq!(sent(&mut sfq, &mut log), [10, 11, 20, 12, 13, 21]);
        // Turns that only save up cost nothing.
        let (mut sfq, mut log) = with(SfqParams { quantum: Some(1), ..SfqParams::default() }, 100);
        arrive(&mut sfq, &mut log, &[(10, 1, 4_000_000_000), (20, 2, 3_000_000_000), (11, 1, 10), (21, 2, 10)]);
        assert_eq!(sent(&mut sfq, &mut log), [10, 20, 21, 11]);
    }

    #[test]
    fn packets_in_all_packets_of_a_queue_and_queues_may_be_limited() {
        let (mut sfq, mut log) = with(SfqParams { limit: Some(2), ..SfqParams::default() }, 100);
        arrive(&mut sfq, &mut log, &[(10, 1, 100), (11, 1, 100), (20, 2, 100)]);
        assert_eq!(log.dropped, [11]);
        for (head_drop, lost) in [(false, 12), (true, 10)] {
            let (mut sfq, mut log) = with(SfqParams { depth: Some(2), head_drop, ..SfqParams::default() }, 100);
            arrive(&mut sfq, &mut log, &[(10, 1, 100), (11, 1, 100), (12, 1, 100), (20, 2, 100)]);
            assert_eq!((log.dropped, sfq.backlog().packets), ([lost].to_vec(), 3));
        }
        let (mut sfq, mut log) = with(SfqParams { flows: Some(2), ..SfqParams::default() }, 100);
        arrive(&mut sfq, &mut log, &[(10, 1, 100), (20, 2, 100), (30, 3, 100), (21, 2, 100)]);
        assert_eq!(log.dropped, [30]);
    }

    #[test]
    fn packets_may_move_when_the_hash_changes() {
        let period = Span::from_secs(10);
        let mut sfq = Sfq::new(64, period, SfqParams { rehash: true, ..SfqParams::default() }, Limit::packets(100));
        let mut log = Log::default();
        let packets: Vec<_> = (0..40).map(|handle| (handle, handle % 10, 100)).collect();
        arrive(&mut sfq, &mut log, &packets);
        sfq.on_timer(Instant::ZERO + period, &mut Fixed(0.6));
        assert_eq!((sfq.backlog(), sfq.totals().accepted), (Backlog { packets: 40, bytes: 4000 }, 40));
        // Every flow is where it belongs now, and in its order.
        for of in 0..10 {
            let queue = sfq.hash.queue(of, |_| true, &mut Fixed(0.6));
            let here: Vec<_> = sfq.store.places(queue).map(|(_, waiting)| waiting.handle).collect();
            let mine: Vec<_> = here.iter().copied().filter(|handle| handle % 10 == of).collect();
            assert_eq!(mine, [of, 10 + of, 20 + of, 30 + of]);
        }
        assert_eq!(sent(&mut sfq, &mut log).len(), 40);
    }
}
