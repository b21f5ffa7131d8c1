//! A custom queueing discipline: flows take turns packet by packet, and a flow that was idle may go first.
//!
//! Without `idle_first` it is stochastic fairness queueing, the built-in `sfq`; with one queue it is a drop-tail queue.

use aqumen_aqm::{
    Algorithm, AnyQdisc, Backlog, Bound, DefaultValue, Draw, Fates, FlowHash, Handle, Kind, Length, Limit, ListLinks,
    Network, Packet, Param, ParamError, Qdisc, QueueList, Settings, Store, Totals, Unit, Value,
};
use aqumen_units::{Instant, Span};

pub(crate) const TURNS: Algorithm = Algorithm {
    name: "turns",
    title: "Turns",
    summary: "flows take turns packet by packet, and one that was idle goes first",
    reference: "-",
    params: &[
        Param {
            name: "queues",
            kind: Kind::Number { unit: Unit::One, min: Bound::Inclusive(1.0), max: Bound::Inclusive(65_536.0) },
            default: DefaultValue::number(1024.0),
            doc: "queues that flows are hashed to",
        },
        Param::flag("idle_first", true, "a flow that was idle goes first"),
    ],
};

/// Turns of hashed flows.
#[derive(Clone)]
pub struct Turns {
    store: Store,
    hash: FlowHash,
    links: ListLinks,
    /// Queues that were idle and have not sent since: they go first.
    fresh: QueueList,
    /// Other queues with packets, in the order of service.
    round: QueueList,
    is_fresh: Vec<bool>,
    idle_first: bool,
}

impl Turns {
    pub(crate) fn build(settings: &Settings<'_>, _network: &Network, limit: Limit) -> Result<AnyQdisc, ParamError> {
        let queues = settings.whole("queues")?.unwrap_or(1024);
        Ok(AnyQdisc::custom(Turns {
            store: Store::new(queues, limit),
            hash: FlowHash::new(queues),
            links: ListLinks::new(queues),
            fresh: QueueList::EMPTY,
            round: QueueList::EMPTY,
            is_fresh: vec![false; queues],
            idle_first: settings.flag("idle_first").unwrap_or(true),
        }))
    }

    /// Appends a queue that is in no list.
    fn join(&mut self, queue: usize, fresh: bool) {
        self.is_fresh[queue] = fresh;
        let list = if fresh { &mut self.fresh } else { &mut self.round };
        list.push(&mut self.links, queue);
    }

    /// Removes a queue from its list.
    fn leave(&mut self, queue: usize) {
        let list = if self.is_fresh[queue] { &mut self.fresh } else { &mut self.round };
        list.remove(&mut self.links, queue);
    }
}

impl Qdisc for Turns {
    fn enqueue<R: Draw>(&mut self, handle: Handle, packet: &Packet, now: Instant, rng: &mut R, fates: &mut impl Fates) {
        self.store.arrive(packet);
        let queue = self.hash.queue(packet.flow_hash, |queue| self.store.is_empty(queue), rng);
        if self.store.is_empty(queue) {
            self.join(queue, self.idle_first);
        }
        self.store.push(queue, handle, packet, now);
        while self.store.is_over() {
            let longest = self.store.longest(Length::Packets, queue);
            self.store.steal_one(longest, false, fates);
            if self.store.is_empty(longest) {
                self.leave(longest);
            }
        }
    }

    fn dequeue<R: Draw>(&mut self, now: Instant, _rng: &mut R, _fates: &mut impl Fates) -> Option<Handle> {
        let queue = self.fresh.first().or(self.round.first())?;
        let (sent, _) = self.store.pop(queue, now)?;
        self.leave(queue);
        if !self.store.is_empty(queue) {
            self.join(queue, false);
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

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("active_queues", (self.fresh.len() + self.round.len()) as f64);
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        visit("queues", Value::Number(self.hash.queues() as f64));
        visit("idle_first", Value::Flag(self.idle_first));
    }
}
