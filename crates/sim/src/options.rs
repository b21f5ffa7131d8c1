//! How a run is to be made, and who hears of it.

use std::path::Path;

/// Hears how far a run is, and may stop it.
pub trait Progress {
    /// The run is at `fraction` of its duration. `false` stops it.
    fn at(&mut self, fraction: f64) -> bool;
}

impl<F: FnMut(f64) -> bool> Progress for F {
    fn at(&mut self, fraction: f64) -> bool {
        self(fraction)
    }
}

/// How to run a plan. The answers do not depend on it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// Write the packets that cross shared links, and links that can overflow, to this file (pcapng).
    pub trace: Option<&'a Path>,
    /// Give every link its events, where otherwise links that one flow alone uses, or to which one other link alone
    /// leads, are computed without, and each write of an application. Slower; for checking that nothing changes.
    pub every_hop: bool,
    /// Ask a queue discipline for each packet, also where a departure can be computed at the arrival. Slower; likewise.
    pub every_service: bool,
    /// What goes through a superstep by itself; likewise.
    pub places: Places,
    /// So many threads may share the run; more than two are two. A second one is used where ports and ends are places
    /// apart from each other, enough happens in a superstep, and no packets are traced.
    pub threads: usize,
}

/// How a network is parted into places, each of which goes through a superstep by itself. The
/// answers do not depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Places {
    /// As few are merged as pays.
    #[default]
    Paying,
    /// None are merged but those that are too close.
    Apart,
    /// Some are merged, as drawn with this seed.
    Drawn(u64),
    /// All are one: every event in order.
    One,
}
