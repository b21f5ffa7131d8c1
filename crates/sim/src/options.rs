//! Options of a run, and its progress reports.

use std::path::Path;

/// Receiver of progress reports, which may stop the run.
pub trait Progress {
    /// Reports that the run is at `fraction` of its duration. `false` stops it.
    fn at(&mut self, fraction: f64) -> bool;
}

impl<F: FnMut(f64) -> bool> Progress for F {
    fn at(&mut self, fraction: f64) -> bool {
        self(fraction)
    }
}

/// Options of a run. Results do not depend on them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// File (pcapng) for the packets that cross shared links, and links that can overflow.
    pub trace: Option<&'a Path>,
    /// Gives every link and every write of an application its events, also where they can be computed inline. Slower;
    /// for tests of the shortcuts.
    pub every_hop: bool,
    /// Takes each packet from a queue discipline, also where a departure can be computed at the arrival. Slower; for
    /// tests.
    pub every_service: bool,
    /// Partition into logical processes; for tests.
    pub processes: Partitioning,
    /// Upper bound on the threads of the run; at most two are used. The second one is used if ports and endpoints are
    /// separate processes, an epoch has enough events, and no packets are traced.
    pub threads: usize,
}

/// Partition of a network into logical processes. Results do not depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Partitioning {
    /// Merges processes where that pays.
    #[default]
    Paying,
    /// Merges only processes that are too close to each other.
    Apart,
    /// Merges processes at random, drawn with this seed.
    Drawn(u64),
    /// Merges all processes into one: every event in order.
    One,
}
