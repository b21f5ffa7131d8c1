//! Table of flows: what each sent of late, and what it is owed in signals.
//!
//! Four-way sets, so that a flow rarely takes the place of a live one. Memory: 32 B for each of [`SLOTS`] flows, 64 kB
//! in all. A flow that finds its set full takes the place of the one seen least recently. If that one is still active,
//! the newcomer takes over its sum: no probability is lost, whoever invents flows.

use alloc::boxed::Box;
use alloc::vec;

/// Flows that have a place.
pub(super) const SLOTS: usize = 2048;
const WAYS: usize = 4;
/// Epochs of silence after which a flow is a new one.
const FORGOTTEN: u32 = 8;

/// A flow. Its epoch is 0 for a free place.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FlowState {
    flow: u32,
    /// Epoch in which it sent last.
    epoch: u32,
    /// Step of the law at its last signal.
    pub(super) signalled: u32,
    /// Bytes in this epoch.
    bytes: u32,
    /// Bytes in the epoch before.
    before: f64,
    /// Probabilities since its last signal, added up.
    pub(super) sum: f64,
}

const _: () = assert!(size_of::<FlowState>() == 32);

/// The table.
#[derive(Clone, Debug)]
pub(super) struct FlowTable {
    slots: Box<[FlowState]>,
    epoch: u32,
    /// Flows seen in this epoch.
    seen: u32,
    /// Flows seen in the epoch before.
    active: u32,
}

impl Default for FlowTable {
    fn default() -> Self {
        FlowTable { slots: vec![FlowState::default(); SLOTS].into_boxed_slice(), epoch: 1, seen: 0, active: 0 }
    }
}

impl FlowTable {
    /// Begins the next epoch.
    pub(super) fn next_epoch(&mut self) {
        self.epoch += 1;
        (self.active, self.seen) = (self.seen, 0);
    }

    /// Number of flows that send: those of this epoch or of the one before, whichever are more.
    pub(super) fn active(&self) -> u32 {
        self.active.max(self.seen).max(1)
    }

    /// Number of the present epoch.
    pub(super) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Counts `flows` that a table elsewhere saw for the first time in this epoch.
    pub(super) fn add_seen(&mut self, flows: u32) {
        self.seen = self.seen.saturating_add(flows);
    }

    /// Counts `bytes` of `flow`; returns the flow, and its bytes in this epoch and the one before.
    pub(super) fn count(&mut self, flow: u32, bytes: u32) -> (&mut FlowState, f64) {
        // Fibonacci hashing, Knuth, The Art of Computer Programming 3, section 6.4.
        let set = (flow.wrapping_mul(0x9e37_79b1) >> 23) as usize * WAYS;
        let ways = &self.slots[set..set + WAYS];
        let known = ways.iter().position(|way| way.flow == flow && way.epoch > 0);
        let at = known.unwrap_or_else(|| {
            let mut oldest = 0;
            (1..WAYS).for_each(|way| oldest = if ways[way].epoch < ways[oldest].epoch { way } else { oldest });
            oldest
        });
        let (epoch, way) = (self.epoch, &mut self.slots[set + at]);
        if known.is_none() {
            let live = way.epoch + 1 >= epoch && way.epoch > 0;
            *way = FlowState { flow, epoch, sum: if live { way.sum } else { 0.0 }, ..FlowState::default() };
            self.seen += 1;
        } else if way.epoch != epoch {
            way.before = if way.epoch + 1 == epoch { f64::from(way.bytes) } else { 0.0 };
            // Without traffic for several epochs nothing is owed.
            way.sum = if way.epoch + FORGOTTEN < epoch { 0.0 } else { way.sum };
            (way.epoch, way.bytes) = (epoch, 0);
            self.seen += 1;
        }
        way.bytes = way.bytes.saturating_add(bytes);
        let recent = way.before + f64::from(way.bytes);
        (way, recent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newcomer_in_the_place_of_an_active_flow_takes_over_its_sum() {
        // Flows of one set.
        let set = |flow: &u32| flow.wrapping_mul(0x9e37_79b1) >> 23 == 0;
        let flows: alloc::vec::Vec<u32> = (1..).filter(set).take(WAYS + 2).collect();
        for (silent_epochs, kept) in [(0, 0.75), (1, 0.75), (2, 0.0)] {
            let mut table = FlowTable::default();
            (0..20).for_each(|_| table.next_epoch());
            for &flow in &flows[..WAYS] {
                table.count(flow, 1000).0.sum = 0.75;
            }
            (0..silent_epochs).for_each(|_| table.next_epoch());
            let (newcomer, bytes) = table.count(flows[WAYS], 500);
            assert_eq!((newcomer.sum, bytes), (kept, 500.0), "{silent_epochs} epochs of silence");
            assert_eq!(table.count(flows[WAYS], 500).0.sum, kept);
        }
    }

    #[test]
    fn a_flow_that_was_silent_for_long_owes_nothing() {
        for (silent_epochs, kept) in [(FORGOTTEN, 0.75), (FORGOTTEN + 1, 0.0)] {
            let mut table = FlowTable::default();
            table.count(7, 1000).0.sum = 0.75;
            (0..silent_epochs).for_each(|_| table.next_epoch());
            assert_eq!(table.count(7, 1000).0.sum, kept);
        }
    }
}
