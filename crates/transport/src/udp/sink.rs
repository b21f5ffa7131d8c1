//! Sink of UDP.

use alloc::collections::VecDeque;

use aqumen_units::Instant;

use super::UdpConfig;
use crate::range_set::RangeSet;
use crate::{Body, Delivery, Endpoint, Message, Packet, Stats};

/// Largest number of incomplete messages; a new one evicts the oldest. Parts of a message are sent back to back, so a
/// message stays incomplete only after a loss.
const PARTIAL: usize = 16;

/// Sink of UDP: reassembles messages of several datagrams.
#[derive(Clone, Debug)]
pub struct UdpSink {
    partial: VecDeque<Partial>,
    complete: VecDeque<Delivery>,
    delivered_bytes: u64,
}

/// A message with missing parts.
#[derive(Clone, Debug)]
struct Partial {
    message: Message,
    /// Byte ranges that have arrived.
    arrived: RangeSet,
}

impl UdpSink {
    /// A sink before the first packet.
    pub fn new(_cfg: &UdpConfig) -> Self {
        UdpSink { partial: VecDeque::new(), complete: VecDeque::new(), delivered_bytes: 0 }
    }

    /// Adds a part; returns whether the message is complete.
    fn assemble(&mut self, message: Message, first: u32, end: u32) -> bool {
        if first == 0 && end == message.bytes {
            return true;
        }
        let index = self.partial.iter().position(|known| known.message == message).unwrap_or_else(|| {
            if self.partial.len() == PARTIAL {
                self.partial.pop_front();
            }
            self.partial.push_back(Partial { message, arrived: RangeSet::default() });
            self.partial.len() - 1
        });
        let arrived = &mut self.partial[index].arrived;
        arrived.insert(first, end);
        let whole = arrived.count_in(0, message.bytes) == message.bytes;
        if whole {
            self.partial.remove(index);
        }
        whole
    }
}

impl Endpoint for UdpSink {
    fn write(&mut self, _now: Instant, _message: Message) {}

    fn on_packet(&mut self, now: Instant, packet: &Packet) {
        let Body::Datagram(part) = packet.body else { return };
        let Some(end) = part.offset.checked_add(u32::from(part.payload)) else { return };
        if end <= part.message.bytes && self.assemble(part.message, part.offset, end) {
            let bytes = part.message.bytes;
            self.delivered_bytes += u64::from(bytes);
            self.complete.push_back(Delivery { message: part.message, complete_at: now, bytes });
        }
    }

    fn on_timer(&mut self, _now: Instant) {}

    fn next_timer(&self) -> Option<Instant> {
        None
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<Packet> {
        None
    }

    fn stats(&self) -> Stats {
        Stats { delivered_bytes: self.delivered_bytes, ..Stats::default() }
    }

    fn poll_delivery(&mut self) -> Option<Delivery> {
        self.complete.pop_front()
    }
}
