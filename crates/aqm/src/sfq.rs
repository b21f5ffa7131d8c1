//! SFQ: stochastic fairness queueing (McKenney 1990). Flows are hashed to queues, and queues take turns with one packet each;
//! when the buffer is full the longest queue loses a packet. Flows that share a queue share its turn, so the hash may be changed
//! now and then.
//!
//! ```text
//! arrival ──> queue hash(flow) ──> was empty? joins the round at its end
//!                              ──> buffer over its limit? the longest queue loses its last packet
//! link free ──> first queue of the round sends one packet ──> more? goes to the end of the round : leaves it
//! ```
//!
//! Deviations:
//! - Turns are one packet, as in the paper; Linux's `sch_sfq` counts bytes (see `drr`).
//! - After a change of the hash the packets that wait stay in their queues, as in the paper, so that a flow may be
//!   reordered once; Linux sorts them anew.
//! - Any queue may take all of the buffer; Linux allows 127 packets.

use aqumen_units::{Instant, Probability, Span};

use crate::multi::hash::FlowHash;
use crate::multi::rounds::{Links, List};
use crate::multi::store::{Length, Store};
use crate::multi::{self, QUEUES_PARAM};
use crate::registry::Algorithm;
use crate::{
    Backlog, Bound, DefaultValue, Draw, Fates, Handle, Kind, Limit, Network, Packet, Param, ParamError, Qdisc,
    Settings, Totals, Unit, Value,
};

/// The registry's row.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "sfq",
    title: "SFQ",
    summary: "stochastic fairness queueing: hashed flows take turns packet by packet",
    reference: "McKenney: Stochastic fairness queueing, INFOCOM 1990",
    params: &[
        QUEUES_PARAM,
        Param {
            name: "perturb",
            kind: Kind::Number { unit: Unit::Seconds, min: Bound::Inclusive(0.0), max: Bound::Inclusive(1e6) },
            default: DefaultValue::number(0.0),
            doc: "time after which the hash is changed; 0: never",
        },
        HEAD_DROP,
    ],
};

/// The parameter `head_drop`.
pub(crate) const HEAD_DROP: Param =
    Param::flag("head_drop", false, "a queue that has to give way loses its first packet instead of its last");

/// Stochastic fairness queueing.
#[derive(Clone, Debug)]
pub struct Sfq {
    store: Store,
    hash: FlowHash,
    links: Links,
    /// Queues that hold packets, in the order of their turns.
    round: List,
    /// Period of the change of the hash, and when it is due.
    perturb: Option<(Span, Instant)>,
    head_drop: bool,
}

impl Sfq {
    /// No packets, in `queues` queues with room for `limit` in all. The hash changes every `perturb`, if that is not zero.
    pub fn new(queues: usize, perturb: Span, head_drop: bool, limit: Limit) -> Self {
        Sfq {
            store: Store::new(queues, limit),
            hash: FlowHash::default(),
            links: Links::new(queues),
            round: List::EMPTY,
            perturb: (perturb > Span::ZERO).then(|| (perturb, Instant::ZERO + perturb)),
            head_drop,
        }
    }

    pub(crate) fn from_settings(settings: &Settings<'_>, _network: &Network, limit: Limit) -> Result<Self, ParamError> {
        let perturb = Span::from_secs_f64(settings.number("perturb").unwrap_or(0.0));
        Ok(Sfq::new(multi::queues(settings)?, perturb, settings.flag("head_drop").unwrap_or(false), limit))
    }

    /// Takes the parameters of `new`. A period of the hash counts from now on, unless it is the one in force.
    pub(crate) fn retune(&mut self, new: Self, now: Instant) {
        if self.perturb.map(|(period, _)| period) != new.perturb.map(|(period, _)| period) {
            self.perturb = new.perturb.map(|(period, _)| (period, now.saturating_add(period)));
        }
        self.head_drop = new.head_drop;
    }

    /// Bytes of memory that it holds beside itself.
    pub fn memory_bytes(&self) -> usize {
        self.store.memory_bytes() + self.store.queues() * size_of::<(u32, u32)>()
    }
}

impl Qdisc for Sfq {
    fn enqueue<R: Draw>(&mut self, handle: Handle, packet: &Packet, now: Instant, rng: &mut R, fates: &mut impl Fates) {
        self.store.arrive(packet);
        let queue = self.hash.queue(packet.flow_hash, self.store.queues(), rng);
        if self.store.is_empty(queue) {
            self.round.push(&mut self.links, queue);
        }
        self.store.push(queue, handle, packet, now);
        while self.store.is_over() {
            // McKenney section 4: the packet is taken from the longest queue, whose flow is to blame.
            let longest = self.store.longest(Length::Packets, queue);
            self.store.steal_one(longest, self.head_drop, fates);
            if self.store.is_empty(longest) {
                self.round.remove(&mut self.links, longest);
            }
        }
    }

    fn dequeue<R: Draw>(&mut self, now: Instant, _rng: &mut R, _fates: &mut impl Fates) -> Option<Handle> {
        let queue = self.round.first()?;
        let (sent, _) = self.store.pop(queue, now)?;
        if self.store.is_empty(queue) {
            self.round.remove(&mut self.links, queue);
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
            // A late call changes the hash once and keeps the phase.
            let periods = (now - *due).as_nanos() / period.as_nanos() + 1;
            *due = due.saturating_add(period.saturating_mul(periods));
            self.hash.renew(rng);
        }
    }

    fn probability(&self) -> Probability {
        Probability::ZERO
    }

    fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("active_queues", self.round.len() as f64);
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        visit("queues", Value::Number(self.store.queues() as f64));
        visit("perturb", Value::Number(self.perturb.map_or(0.0, |(period, _)| period.as_secs_f64())));
        visit("head_drop", Value::Flag(self.head_drop));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multi::testing::{Fixed, Log, flow};
    use std::vec::Vec;

    /// Three flows in queues of their own.
    fn three_flows(limit: u32, head_drop: bool) -> (Sfq, Log) {
        (Sfq::new(1024, Span::ZERO, head_drop, Limit::packets(limit)), Log::default())
    }

    fn sent(sfq: &mut Sfq, log: &mut Log) -> Vec<Handle> {
        core::iter::from_fn(|| sfq.dequeue(Instant::ZERO, &mut Fixed(0.1), log)).collect()
    }

    #[test]
    fn queues_take_turns_with_one_packet_each() {
        let (mut sfq, mut log) = three_flows(100, false);
        // Flow 0 sends 0, 1, 2, 3; flow 1 sends 10, 11, flow 2 sends 20: rounds 0 10 20 | 1 11 | 2 | 3.
        for (handle, of) in [(0, 0), (1, 0), (2, 0), (3, 0), (10, 1), (11, 1), (20, 2)] {
            sfq.enqueue(handle, &flow(of, 1000), Instant::ZERO, &mut Fixed(0.1), &mut log);
        }
        assert_eq!(sent(&mut sfq, &mut log), [0, 10, 20, 1, 11, 2, 3]);
    }

    #[test]
    fn a_full_buffer_costs_the_longest_queue_its_last_packet_or_its_first() {
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
        // All queues have one packet: the arriving flow's gives way.
        assert_eq!(log.dropped, [2]);
        assert_eq!(sfq.round.len(), 2);
        assert_eq!(sent(&mut sfq, &mut log), [0, 1]);
        assert_eq!(sfq.dequeue(Instant::ZERO, &mut Fixed(0.1), &mut log), None);
    }

    #[test]
    fn a_new_hash_parts_flows_that_met() {
        let period = Span::from_secs(10);
        let mut sfq = Sfq::new(2, period, false, Limit::packets(100));
        let at = |secs| Instant::ZERO + Span::from_secs(secs);
        assert_eq!(sfq.next_timer(), Some(at(10)));
        let placement = |sfq: &mut Sfq, draw| {
            sfq.on_timer(sfq.next_timer().unwrap(), &mut Fixed(draw));
            (0..16).map(|of| sfq.hash.queue(of, 2, &mut Fixed(draw))).collect::<Vec<_>>()
        };
        assert_ne!(placement(&mut sfq, 0.3), placement(&mut sfq, 0.6));
        // 3.5 periods late: once, and in phase.
        sfq.on_timer(at(65), &mut Fixed(0.2));
        assert_eq!(sfq.next_timer(), Some(at(70)));
    }
}
