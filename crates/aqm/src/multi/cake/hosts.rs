//! CAKE's table of the source or destination hosts, with their numbers of bulk flows.

use alloc::vec::Vec;

use crate::multi::hash::{scale, search};

/// Associativity of the tables of hosts and of queues.
pub(super) const WAYS: usize = 8;

/// Set-associative table of hosts.
#[derive(Clone, Debug)]
pub(super) struct Hosts {
    tags: Vec<Option<u32>>,
    /// Number of bulk flows of each host.
    pub(super) bulk: Vec<u32>,
}

impl Hosts {
    pub(super) fn new(places: usize) -> Self {
        Hosts { tags: alloc::vec![None; places], bulk: alloc::vec![0; places] }
    }

    /// Index of a host: within its set, its own entry, else one without bulk flows, else the one selected by the hash.
    pub(super) fn place(&mut self, tag: u32) -> u32 {
        let first = scale(tag, self.tags.len());
        let (place, _) = search(first, WAYS, |place| self.tags[place] == Some(tag), |place| self.bulk[place] == 0);
        self.tags[place] = Some(tag);
        place as u32
    }
}
