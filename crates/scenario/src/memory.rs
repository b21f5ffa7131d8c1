//! Memory that a run allocates at its start, compared with the available memory.

mod headroom;

pub use headroom::{Headroom, headroom};

use crate::Error;
use crate::scenario::Scenario;
use crate::traffic::Traffic;

/// Least bytes of a flow: hosts, four access links with names and paths, two endpoints. Measured: 2.4 kB in the fluid
/// engine and with the preset `ns2`, up to 5.5 kB with `rtp`.
const FLOW_BYTES: u64 = 2400;

/// Bytes of one ON-OFF source of self-similar traffic. Measured: 159.
const SOURCE_BYTES: u64 = 159;

impl Scenario {
    /// Least memory of one run, bytes: flows and their sources.
    pub fn memory_floor(&self) -> u64 {
        let groups = self.spec().flows.iter().map(|group| {
            let sources = match &group.traffic {
                Traffic::SelfSimilar(kind) => u64::from(kind.sources) * SOURCE_BYTES,
                _ => 0,
            };
            group.flows().saturating_mul(FLOW_BYTES + sources)
        });
        groups.fold(0, u64::saturating_add)
    }

    /// Refuses `runs` simultaneous runs that need more than `available` bytes at their start.
    pub fn check_memory(&self, runs: u64, available: u64) -> Result<(), Error> {
        let needed = self.memory_floor().saturating_mul(runs.max(1));
        if needed <= available {
            return Ok(());
        }
        let message = format!("needs at least {} of memory, but {} are free", size(needed), size(available));
        Err(Error::for_file(self.file(), message))
    }
}

/// Formats a size.
fn size(bytes: u64) -> String {
    let mebibytes = bytes as f64 / f64::from(1 << 20);
    if mebibytes < 1000.0 { format!("{mebibytes:.0} MiB") } else { format!("{:.1} GiB", mebibytes / 1024.0) }
}
