//! A drop-tail port without measurements: a limit and a transmitter.

use super::common::Arrival;
use crate::ring::Ring;
use crate::transmitter::{Booking, Transmitter};

/// The port.
#[derive(Clone)]
pub struct PlainPort {
    limit_pkts: u32,
    transmitter: Transmitter,
    /// End of the last accepted packet's transmission.
    free_at: u64,
    /// Starts of the transmissions of waiting packets, and of some that have left.
    starts: Ring<u64>,
    /// Packets up to this number fit even if none has left.
    fits_until: usize,
}

impl PlainPort {
    pub(super) fn new(limit_pkts: u32, transmitter: Transmitter) -> Self {
        PlainPort { limit_pkts, transmitter, free_at: 0, starts: Ring::new(), fits_until: 0 }
    }

    /// Lets a packet arrive.
    #[inline(always)]
    pub fn arrive(&mut self, now: u64, bytes: u16) -> Arrival {
        if self.starts.entered() >= self.fits_until {
            if !self.has_space(now) {
                return Arrival::Dropped;
            }
            if self.transmitter.line.is_some() {
                return self.cross_line(now, bytes);
            }
        }
        let start = self.free_at.max(now);
        self.free_at = self.transmitter.send(start, bytes.into());
        if start > now {
            self.starts.push_fitting(start);
        }
        Arrival::Leaves { start, reach: self.free_at + self.transmitter.delay }
    }

    /// Removes packets that have left by `now`; returns whether one more fits.
    #[inline(never)]
    fn has_space(&mut self, now: u64) -> bool {
        while self.starts.first().is_some_and(|&start| start <= now) {
            self.starts.drop_first();
        }
        let waiting = self.starts.entered() - self.starts.left();
        self.starts.reserve(waiting + 1);
        self.fits_until = match self.transmitter.line {
            None => self.starts.left() + self.starts.capacity().min(self.limit_pkts as usize),
            // Packets over a line are handled one by one.
            Some(_) => 0,
        };
        waiting < self.limit_pkts as usize
    }

    /// Sends a packet that fits over a link that is not a plain wire.
    #[inline(never)]
    fn cross_line(&mut self, now: u64, bytes: u16) -> Arrival {
        let start = self.transmitter.ready(self.free_at.max(now));
        if start > now {
            self.starts.push_fitting(start);
        }
        if start == u64::MAX {
            // The link never works again.
            self.free_at = u64::MAX;
            return Arrival::Waits { busy_until: None };
        }
        let (Booking { start, end, reach, lost }, _) = self.transmitter.transmit(now, start, bytes.into());
        self.free_at = end;
        if lost { Arrival::Lost { start, end } } else { Arrival::Leaves { start, reach } }
    }
}
