//! A first-in first-out port without AQM that nobody measures: only its limit and its transmitter count.

use super::answers::Arrival;
use crate::ring::Ring;
use crate::transmitter::{Booking, Transmitter};

/// The port.
pub struct PlainPort {
    limit_pkts: u32,
    transmitter: Transmitter,
    /// When the last accepted packet's transmission ends.
    free_at: u64,
    /// When the transmissions of the packets that wait will start, and of some that no longer do.
    starts: Ring<u64>,
    /// Up to this number of them there is room, even if all those wait.
    prompt_until: usize,
}

impl PlainPort {
    pub(super) fn new(limit_pkts: u32, transmitter: Transmitter) -> Self {
        PlainPort { limit_pkts, transmitter, free_at: 0, starts: Ring::new(), prompt_until: 0 }
    }

    /// A packet arrives.
    #[inline(always)]
    pub fn arrive(&mut self, now: u64, bytes: u16) -> Arrival {
        if self.starts.entered() >= self.prompt_until {
            if !self.has_room(now) {
                return Arrival::Dropped;
            }
            if self.transmitter.line.is_some() {
                return self.cross_line(now, bytes);
            }
        }
        let start = self.free_at.max(now);
        self.free_at = self.transmitter.send(start, bytes.into());
        if start > now {
            self.starts.push_in_room(start);
        }
        Arrival::Leaves { start, reach: self.free_at + self.transmitter.delay }
    }

    /// Looks what still waits at `now`: whether there is room for one more.
    #[inline(never)]
    fn has_room(&mut self, now: u64) -> bool {
        while self.starts.first().is_some_and(|&start| start <= now) {
            self.starts.drop_first();
        }
        let waiting = self.starts.entered() - self.starts.left();
        self.starts.make_room(waiting + 1);
        self.prompt_until = match self.transmitter.line {
            None => self.starts.left() + self.starts.room().min(self.limit_pkts as usize),
            // Its packets have a way of their own.
            Some(_) => 0,
        };
        waiting < self.limit_pkts as usize
    }

    /// A packet for which there is room arrives at a link that is no plain wire.
    #[inline(never)]
    fn cross_line(&mut self, now: u64, bytes: u16) -> Arrival {
        let start = self.transmitter.ready(self.free_at.max(now));
        if start > now {
            self.starts.push_in_room(start);
        }
        if start == u64::MAX {
            // It waits for a link that never works again.
            self.free_at = u64::MAX;
            return Arrival::Waits { busy_until: None };
        }
        let (Booking { start, end, reach, lost }, _) = self.transmitter.transmit(now, start, bytes.into());
        self.free_at = end;
        if lost { Arrival::Lost { start } } else { Arrival::Leaves { start, reach } }
    }
}
