//! Hash from flows to queues: the 32-bit finalizer of MurmurHash3 over the flow's hash and a salt.
//!
//! The salt is drawn at the first packet from the discipline's random stream, so collisions are random but repeat with
//! the seed. The finalizer is a permutation of 32 bits in which each input bit flips each output bit with probability
//! about 1/2. Multiplication scales it to the number of queues. With M queues, a flow collides with one of n others
//! with probability 1 - (1 - 1/M)^n.
//!
//! In a set-associative hash (CAKE: 8 ways) a flow whose queue is taken uses an idle queue of the same set instead, so
//! that flows collide only if all queues of a set are taken. Each queue remembers the hash value of its last flow.

use alloc::vec::Vec;

use crate::Draw;

/// Assigns flows to queues.
///
/// ```
/// use aqumen_aqm::{FlowHash, testing::Fixed};
/// let mut hash = FlowHash::set_associative(1024, 8);
/// let mut backlogged = vec![false; hash.queues()];
/// for flow in 0..8 {
///     let queue = hash.queue(flow, |queue| !backlogged[queue], &mut Fixed(0.5));
///     assert!(!backlogged[queue], "flow {flow} shares a queue");
///     backlogged[queue] = true;
/// }
/// ```
#[derive(Clone, Debug)]
pub struct FlowHash {
    salt: Salt,
    queues: usize,
    ways: usize,
    /// Hash value of the last flow of each queue, with several ways.
    tags: Vec<Option<u32>>,
}

impl FlowHash {
    /// Hash to `queues` queues: a flow's queue depends on nothing else.
    pub fn new(queues: usize) -> Self {
        FlowHash::set_associative(queues, 1)
    }

    /// Hash to sets of `ways` queues. The number of queues is `queues`, rounded up to a multiple of `ways`; both are at
    /// least 1.
    pub fn set_associative(queues: usize, ways: usize) -> Self {
        let ways = ways.max(1);
        let queues = queues.max(1).next_multiple_of(ways);
        let tags = if ways == 1 { Vec::new() } else { alloc::vec![None; queues] };
        FlowHash { salt: Salt::default(), queues, ways, tags }
    }

    /// Number of queues.
    pub fn queues(&self) -> usize {
        self.queues
    }

    /// Number of queues in a set.
    pub fn ways(&self) -> usize {
        self.ways
    }

    /// Queue of a packet of `flow`. With several ways: within the set, the flow's queue, else an idle one, which is
    /// then the flow's, else the one selected by the hash. `is_idle` tells whether a queue is free for another flow.
    #[inline]
    pub fn queue<R: Draw>(&mut self, flow: u32, is_idle: impl Fn(usize) -> bool, rng: &mut R) -> usize {
        let tag = self.salt.mix(flow, rng);
        let first = scale(tag, self.queues);
        if self.ways == 1 {
            return first;
        }
        let queue = search(first, self.ways, |queue| self.tags[queue] == Some(tag), is_idle).0;
        self.tags[queue] = Some(tag);
        queue
    }

    /// Changes the hash at random: flows meet others from now on.
    pub fn renew<R: Draw>(&mut self, rng: &mut R) {
        self.salt.renew(rng);
    }

    /// Heap memory per queue in bytes.
    pub(crate) fn queue_bytes(&self) -> usize {
        if self.ways == 1 { 0 } else { size_of::<Option<u32>>() }
    }
}

/// Random number that decides which flows collide; drawn at the first use.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Salt(Option<u32>);

impl Salt {
    /// Hash value of `flow`.
    #[inline]
    pub(crate) fn mix<R: Draw>(&mut self, flow: u32, rng: &mut R) -> u32 {
        let salt = match self.0 {
            Some(salt) => salt,
            None => self.renew(rng),
        };
        finalize(flow ^ salt)
    }

    /// Draws a new salt.
    #[cold]
    fn renew<R: Draw>(&mut self, rng: &mut R) -> u32 {
        let salt = (rng.uniform() * 4_294_967_296.0) as u32;
        self.0 = Some(salt);
        salt
    }
}

/// EntryKind of a key in a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    /// The entry of the key.
    Own,
    /// A free entry.
    Free,
    /// An entry of another key, since none is free.
    Shared,
}

/// Entry for a key that hashes to entry `first` of a set-associative table: within the set of `ways` entries, from
/// `first` on and round, the key's own, else a free one, else `first`.
#[inline]
pub(crate) fn search(
    first: usize,
    ways: usize,
    is_own: impl Fn(usize) -> bool,
    is_free: impl Fn(usize) -> bool,
) -> (usize, EntryKind) {
    let set = || (0..ways).map(|way| first / ways * ways + (first + way) % ways);
    if let Some(own) = set().find(|&entry| is_own(entry)) {
        return (own, EntryKind::Own);
    }
    set().find(|&entry| is_free(entry)).map_or((first, EntryKind::Shared), |free| (free, EntryKind::Free))
}

/// Scales 32 bits to 0..n.
#[inline]
pub(crate) fn scale(bits: u32, n: usize) -> usize {
    ((bits as u64 * n as u64) >> 32) as usize
}

/// The finalizer of MurmurHash3 (public domain constants).
#[inline]
fn finalize(mut x: u32) -> u32 {
    x ^= x >> 16;
    x = x.wrapping_mul(0x85eb_ca6b);
    x ^= x >> 13;
    x = x.wrapping_mul(0xc2b2_ae35);
    x ^ (x >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Fixed;
    use std::collections::BTreeSet;

    #[test]
    fn the_finalizer_has_the_published_values() {
        // Reference values of MurmurHash3's fmix32.
        assert_eq!([finalize(0), finalize(1), finalize(0xffff_ffff)], [0, 0x514e_28b7, 0x81f1_6f39]);
    }

    #[test]
    fn flows_collide_as_often_as_expected() {
        // 1000 flows in 1024 queues fill 1024 (1 - (1 - 1/1024)^1000) = 638.4 of them, standard deviation about 9.4.
        for salt in [0, 1, 0x1234_5678] {
            let mut hash = salted(1024, 1, salt);
            let used: BTreeSet<_> = (0..1000).map(|flow| hash.queue(flow, |_| true, &mut Fixed(0.0))).collect();
            assert!((used.len() as f64 - 638.4).abs() < 4.0 * 9.4, "{}", used.len());
        }
    }

    #[test]
    fn the_salt_is_drawn_once_and_determines_collisions() {
        let mut hash = FlowHash::new(1024);
        let first = hash.queue(7, |_| true, &mut Fixed(0.25));
        assert_eq!(hash.queue(7, |_| true, &mut Fixed(0.75)), first);
        let pairs = |salt| {
            let mut hash = salted(64, 1, salt);
            let queues: std::vec::Vec<_> = (0..200).map(|flow| hash.queue(flow, |_| true, &mut Fixed(0.0))).collect();
            (0..200).filter(|&i| queues[..i].contains(&queues[i])).collect::<std::vec::Vec<_>>()
        };
        assert_ne!(pairs(1), pairs(2));
    }

    #[test]
    fn flows_share_a_queue_only_if_their_set_is_full() {
        // Sets of 8: flows come one by one and stay. As long as a flow's set has an idle queue it gets one; afterwards
        // it shares the queue that its hash selects. An earlier flow that was not displaced keeps its queue.
        for salt in [0, 1, 0x1234_5678] {
            let mut hash = salted(64, 8, salt);
            let (mut flows, mut full) = (std::vec![None; 64], 0);
            for flow in 0..200 {
                let is_idle = |queue: usize| flows[queue].is_none();
                let set = scale(finalize(flow ^ salt), 64) / 8 * 8;
                let room = (set..set + 8).any(is_idle);
                let queue = hash.queue(flow, is_idle, &mut Fixed(0.0));
                assert!((set..set + 8).contains(&queue));
                assert_eq!(is_idle(queue), room, "flow {flow}");
                full += usize::from(!room);
                flows[queue] = Some(flow);
            }
            assert_eq!(full, 200 - 64);
            for (queue, flow) in flows.iter().enumerate() {
                assert_eq!(hash.queue(flow.unwrap(), |_| false, &mut Fixed(0.0)), queue);
            }
        }
    }

    #[test]
    fn the_number_of_queues_is_a_multiple_of_the_ways() {
        assert_eq!([1, 8, 9, 1024].map(|queues| FlowHash::set_associative(queues, 8).queues()), [8, 8, 16, 1024]);
        assert_eq!((FlowHash::new(0).queues(), FlowHash::set_associative(3, 0).ways()), (1, 1));
    }

    fn salted(queues: usize, ways: usize, salt: u32) -> FlowHash {
        FlowHash { salt: Salt(Some(salt)), ..FlowHash::set_associative(queues, ways) }
    }
}
