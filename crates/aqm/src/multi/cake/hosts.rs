//! The hosts of one side of CAKE's flows: where each stands, and how many bulk flows it has.

use alloc::vec::Vec;

use super::super::hash::scale;

/// Places of a set: a host may have any of them. A flow may use as many queues of its set.
pub(super) const WAYS: usize = 8;

/// The hosts of one side.
#[derive(Clone, Debug)]
pub(super) struct Hosts {
    tags: Vec<Option<u32>>,
    /// Bulk flows of each.
    pub(super) bulk: Vec<u32>,
}

impl Hosts {
    pub(super) fn new(places: usize) -> Self {
        Hosts { tags: alloc::vec![None; places], bulk: alloc::vec![0; places] }
    }

    /// The place of a host: its own, one of its set without bulk flows, or the one that its hash names.
    pub(super) fn place(&mut self, tag: u32) -> u32 {
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
