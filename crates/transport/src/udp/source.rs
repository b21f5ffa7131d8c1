//! Source of UDP.

use alloc::collections::VecDeque;

use aqumen_units::{Ecn, Instant};

use super::{Datagram, UdpConfig};
use crate::{Body, Delivery, Endpoint, Message, Packet, Stats};

/// Source of UDP: splits messages into datagrams.
#[derive(Clone, Debug)]
pub struct UdpSource {
    cfg: UdpConfig,
    waiting: VecDeque<Message>,
    /// Bytes of the first queued message that have been sent.
    offset: u32,
    sent: u64,
}

impl UdpSource {
    /// An idle source.
    pub fn new(cfg: &UdpConfig) -> Self {
        UdpSource { cfg: *cfg, waiting: VecDeque::new(), offset: 0, sent: 0 }
    }
}

impl Endpoint for UdpSource {
    fn write(&mut self, _now: Instant, message: Message) {
        self.waiting.push_back(message);
    }

    fn on_packet(&mut self, _now: Instant, _packet: &Packet) {}

    fn on_timer(&mut self, _now: Instant) {}

    fn next_timer(&self) -> Option<Instant> {
        None
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        let message = *self.waiting.front()?;
        let left = message.bytes - self.offset;
        let payload = left.min(u32::from(self.cfg.payload_bytes())) as u16;
        let datagram = Datagram { message, offset: self.offset, payload };
        self.offset += u32::from(payload);
        // An empty message is one datagram without data.
        if self.offset == message.bytes {
            self.waiting.pop_front();
            self.offset = 0;
        }
        let seq = self.sent as u32;
        self.sent += 1;
        let bytes = payload + self.cfg.header_bytes;
        Some(Packet { bytes, ecn: Ecn::NotEct, seq, sent_at: now, body: Body::Datagram(datagram) })
    }

    fn stats(&self) -> Stats {
        Stats { sent: self.sent, ..Stats::default() }
    }

    fn poll_delivery(&mut self) -> Option<Delivery> {
        None
    }

    fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }
}
