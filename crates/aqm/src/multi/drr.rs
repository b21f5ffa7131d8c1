//! DRR: deficit round robin (Shreedhar, Varghese 1995). Flows are hashed to queues, which are served in rounds. In each
//! round a queue may send a quantum of bytes; an unused remainder, because the next packet is larger, is its deficit
//! for the next round. Backlogged queues therefore share the link by bytes for any packet sizes.
//!
//! ```text
//! turn of a queue: deficit += quantum
//!   head <= deficit: sends the head, deficit -= size, next head
//!   head >  deficit: to the end of the round, the deficit stays
//!   empty:           leaves the round, deficit = 0
//! ```
//!
//! Deviations:
//! - A quantum below the packet size is allowed; rounds without a transmission are skipped in one step.
//! - The paper does not say which packet of the longest queue (in bytes) a full buffer drops: the last, or with
//!   `head_drop` the first.

use alloc::vec::Vec;

use aqumen_units::{Instant, Span};

use crate::algorithm::Algorithm;
use crate::multi::hash::FlowHash;
use crate::multi::queue_list::{ListLinks, QueueList};
use crate::multi::sfq::HEAD_DROP;
use crate::multi::store::{Length, Store};
use crate::multi::{self, QUANTUM_PARAM, QUEUES_PARAM, WAYS_PARAM};
use crate::{Backlog, Draw, Fates, Handle, Limit, Network, Packet, ParamError, Qdisc, Settings, Totals, Value};

/// Registry entry.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "drr",
    title: "DRR",
    summary: "deficit round robin: hashed flows share the link by bytes",
    reference: "Shreedhar, Varghese: Efficient fair queuing using deficit round robin, SIGCOMM 1995",
    params: &[QUEUES_PARAM, WAYS_PARAM, QUANTUM_PARAM, HEAD_DROP],
};

/// Deficit round robin.
#[derive(Clone, Debug)]
pub struct Drr {
    store: Store,
    hash: FlowHash,
    links: ListLinks,
    /// Queues in the order of service. A queue emptied by drops stays until its turn.
    round: QueueList,
    deficits: Vec<i64>,
    in_round: Vec<bool>,
    /// Whether the first queue of the round has received its quantum.
    in_turn: bool,
    quantum: i64,
    head_drop: bool,
}

impl Drr {
    /// Empty discipline of `queues` queues with total capacity `limit`; each queue may send `quantum` bytes per round.
    pub fn new(queues: usize, quantum: u32, head_drop: bool, limit: Limit) -> Self {
        Drr {
            store: Store::new(queues, limit),
            hash: FlowHash::new(queues),
            links: ListLinks::new(queues),
            round: QueueList::EMPTY,
            deficits: alloc::vec![0; queues],
            in_round: alloc::vec![false; queues],
            in_turn: false,
            quantum: quantum.max(1) as i64,
            head_drop,
        }
    }

    pub(crate) fn from_settings(settings: &Settings<'_>, _network: &Network, limit: Limit) -> Result<Self, ParamError> {
        let quantum = multi::quantum(settings)? as u32;
        let hash = FlowHash::set_associative(multi::queues(settings)?, multi::ways(settings)?);
        let head_drop = settings.flag("head_drop").unwrap_or(false);
        Ok(Drr { hash: hash.clone(), ..Drr::new(hash.queues(), quantum, head_drop, limit) })
    }

    /// Takes the parameters of `new`; deficits stay.
    pub(crate) fn retune(&mut self, new: Self, _now: Instant) {
        (self.quantum, self.head_drop) = (new.quantum, new.head_drop);
    }

    /// Heap memory in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.store.memory_bytes() + self.store.queues() * (self.queue_bytes() - Store::QUEUE_BYTES)
    }

    /// Heap memory per queue in bytes.
    pub fn queue_bytes(&self) -> usize {
        let deficit = size_of::<i64>() + size_of::<bool>();
        Store::QUEUE_BYTES + ListLinks::QUEUE_BYTES + deficit + self.hash.queue_bytes()
    }

    /// After a round without a transmission: adds the quanta of all further such rounds at once.
    fn skip_idle_rounds(&mut self) {
        let rounds = |queue: usize| {
            let head = self.store.head(queue).map_or(0, |head| head.packet.bytes as i64);
            ((head - self.deficits[queue]).max(0) as u64).div_ceil(self.quantum as u64) as i64
        };
        let idle = self.round.iter(&self.links).map(rounds).min().unwrap_or(0) - 1;
        if idle > 0 {
            for queue in self.round.iter(&self.links) {
                self.deficits[queue] += idle * self.quantum;
            }
        }
    }
}

impl Qdisc for Drr {
    fn enqueue<R: Draw>(&mut self, handle: Handle, packet: &Packet, now: Instant, rng: &mut R, fates: &mut impl Fates) {
        self.store.arrive(packet);
        let queue = self.hash.queue(packet.flow_hash, |queue| !self.in_round[queue], rng);
        if !self.in_round[queue] {
            // Shreedhar and Varghese, "Enqueuing module": a queue that was empty joins at the end, without a deficit.
            self.in_round[queue] = true;
            self.deficits[queue] = 0;
            self.round.push(&mut self.links, queue);
        }
        self.store.push(queue, handle, packet, now);
        while self.store.is_over() {
            let longest = self.store.longest(Length::Bytes, queue);
            self.store.steal_one(longest, self.head_drop, fates);
        }
    }

    fn dequeue<R: Draw>(&mut self, now: Instant, _rng: &mut R, _fates: &mut impl Fates) -> Option<Handle> {
        let mut unsuccessful = 0;
        loop {
            let queue = self.round.first()?;
            let Some(head) = self.store.head(queue) else {
                // "Dequeuing module": an empty queue's deficit is not kept.
                self.round.remove(&mut self.links, queue);
                (self.in_round[queue], self.in_turn) = (false, false);
                continue;
            };
            if !self.in_turn {
                self.deficits[queue] += self.quantum;
                self.in_turn = true;
            }
            let bytes = head.packet.bytes as i64;
            if bytes <= self.deficits[queue] {
                self.deficits[queue] -= bytes;
                let (sent, _) = self.store.pop(queue, now)?;
                if self.store.is_empty(queue) {
                    self.round.remove(&mut self.links, queue);
                    (self.in_round[queue], self.in_turn) = (false, false);
                }
                return Some(self.store.send(&sent, now));
            }
            self.round.rotate(&mut self.links);
            self.in_turn = false;
            unsuccessful += 1;
            if unsuccessful == self.round.len() {
                self.skip_idle_rounds();
                unsuccessful = 0;
            }
        }
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
        visit("active_queues", self.round.len() as f64);
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        multi::show(visit, &self.hash);
        visit("quantum", Value::Number(self.quantum as f64));
        visit("head_drop", Value::Flag(self.head_drop));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multi::testing::{Fixed, Log, flow};
    use std::vec::Vec;

    fn drr(quantum: u32, limit: u32) -> (Drr, Log) {
        (Drr::new(1024, quantum, false, Limit::packets(limit)), Log::default())
    }

    fn arrive(drr: &mut Drr, log: &mut Log, packets: &[(Handle, u32, u32)]) {
        for &(handle, of, bytes) in packets {
            drr.enqueue(handle, &flow(of, bytes), Instant::ZERO, &mut Fixed(0.1), log);
        }
    }

    fn sent(drr: &mut Drr, log: &mut Log) -> Vec<Handle> {
        core::iter::from_fn(|| drr.dequeue(Instant::ZERO, &mut Fixed(0.1), log)).collect()
    }

    #[test]
    fn deficits_carry_over_to_the_next_round_as_in_the_papers_figures() {
        // Figures 2 and 3 of the paper: quantum 500. Queue 1 holds 200, 750, 20; queue 2 500, 500; queue 3 200, 600,
        // 100; queue 4 50, 700, 180. Turn of queue 1: deficit 500, sends 200, keeps 300 (750 is too large). Queue 2
        // sends 500. Queue 3 sends 200, keeps 300; queue 4 sends 50, keeps 450. Second round: queue 1 has 800, sends
        // 750 and 20; queue 2 sends 500; queue 3 has 800, sends 600 and 100; queue 4 has 950, sends 700 and 180.
        let (mut drr, mut log) = drr(500, 100);
        let queues: [&[u32]; 4] = [&[200, 750, 20], &[500, 500], &[200, 600, 100], &[50, 700, 180]];
        for (of, sizes) in (1..).zip(queues) {
            for (number, &bytes) in (0..).zip(sizes) {
                arrive(&mut drr, &mut log, &[(10 * of + number, of, bytes)]);
            }
        }
        assert_eq!(sent(&mut drr, &mut log), [10, 20, 30, 40, 11, 12, 21, 31, 32, 41, 42]);
    }

    #[test]
    fn a_queue_that_empties_loses_its_deficit() {
        let (mut drr, mut log) = drr(1000, 100);
        // Flow 1 sends 400 of its 1000 and is empty. When it comes back with 1100 it has 1000 again, not 1600: flow 2
        // goes first.
        arrive(&mut drr, &mut log, &[(10, 1, 400), (20, 2, 1000), (21, 2, 1000)]);
        assert_eq!(drr.dequeue(Instant::ZERO, &mut Fixed(0.1), &mut log), Some(10));
        arrive(&mut drr, &mut log, &[(11, 1, 1100)]);
        assert_eq!(sent(&mut drr, &mut log), [20, 21, 11]);
    }

    #[test]
    fn rounds_without_a_transmission_are_skipped() {
        // Quantum 1. Flow 1 needs 4e9 turns and flow 2 one more; packets of 3 bytes then go every third turn.
        let (mut drr, mut log) = drr(1, 100);
        arrive(&mut drr, &mut log, &[(10, 1, 4_000_000_000), (20, 2, 4_000_000_001), (11, 1, 3), (21, 2, 4)]);
        assert_eq!(sent(&mut drr, &mut log), [10, 20, 11, 21]);
    }

    #[test]
    fn rounds_are_skipped_only_until_one_queue_can_send() {
        // Quantum 500 and packets of 600: in the second round each can send one, and keeps 400 for the third.
        let (mut drr, mut log) = drr(500, 100);
        for number in 0..5 {
            arrive(&mut drr, &mut log, &[(10 + number, 1, 600), (20 + number, 2, 600)]);
        }
        assert_eq!(sent(&mut drr, &mut log), [10, 20, 11, 21, 12, 22, 13, 23, 14, 24]);
    }

    #[test]
    fn a_full_buffer_drops_from_the_queue_with_the_most_bytes() {
        let (mut drr, mut log) = drr(1500, 3);
        arrive(&mut drr, &mut log, &[(10, 1, 1500), (20, 2, 100), (21, 2, 100), (22, 2, 100)]);
        assert_eq!(log.dropped, [10]);
        // The emptied queue is skipped.
        assert_eq!(sent(&mut drr, &mut log), [20, 21, 22]);
    }

    #[test]
    fn backlogged_flows_share_bytes_within_a_quantum_and_a_packet() {
        // Flow k sends packets of 100 (k + 1) bytes, k = 0 .. 9. Shreedhar and Varghese, theorem 2: over any interval
        // in which both are backlogged two flows differ by at most quantum + 2 max packet; here from a common start by
        // no more than a quantum and a packet.
        let (mut drr, mut log) = drr(1500, 100_000);
        for number in 0..1000 {
            for of in 0..10 {
                arrive(&mut drr, &mut log, &[(10 * number + of, of, 100 * (of + 1))]);
            }
        }
        let mut bytes = [0u32; 10];
        for _ in 0..2000 {
            let of = drr.dequeue(Instant::ZERO, &mut Fixed(0.1), &mut log).unwrap() as usize % 10;
            bytes[of] += 100 * (of as u32 + 1);
            assert!(bytes.iter().max().unwrap() - bytes.iter().min().unwrap() <= 1500 + 1000, "{bytes:?}");
        }
    }
}
