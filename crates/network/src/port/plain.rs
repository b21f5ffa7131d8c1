//! A first-in first-out port without AQM that nobody measures: only its limit and its transmitter count.

use std::collections::VecDeque;

use super::Arrival;
use crate::transmitter::Transmitter;

/// The port.
pub struct PlainPort {
    limit_pkts: u32,
    transmitter: Transmitter,
    /// When the last accepted packet's transmission ends.
    free_at: u64,
    /// When the transmissions of the packets that wait will start.
    starts: VecDeque<u64>,
}

impl PlainPort {
    pub(super) fn new(limit_pkts: u32, transmitter: Transmitter) -> Self {
        PlainPort { limit_pkts, transmitter, free_at: 0, starts: VecDeque::new() }
    }

    /// A packet arrives.
    #[inline]
    pub fn arrive(&mut self, now: u64, bytes: u16) -> Arrival {
        while self.starts.front().is_some_and(|&start| start <= now) {
            self.starts.pop_front();
        }
        if self.starts.len() >= self.limit_pkts as usize {
            return Arrival::Dropped;
        }
        let start = self.free_at.max(now);
        self.free_at = start + self.transmitter.duration(bytes as u32, start);
        if start > now {
            self.starts.push_back(start);
        }
        Arrival::Leaves { start, reach: self.free_at + self.transmitter.delay }
    }
}
