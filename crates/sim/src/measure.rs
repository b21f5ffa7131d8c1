//! What is measured of flows beside the counts of their senders.

use aqumen_transport::Packet;
use aqumen_units::Instant;

/// Requests of applications, in order of their end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests {
    pub(crate) transfers: Vec<Served>,
    pub(crate) pages: Vec<Served>,
    /// Transfers for which a group had no idle flow: the group, and when, nanoseconds.
    pub(crate) refused: Vec<(u32, u64)>,
}

/// A request that was served. Times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) flow: u32,
    /// Size of a transfer; 0 for a page.
    pub(crate) bytes: u64,
    pub(crate) asked_at: u64,
    /// When the last byte reached the application.
    pub(crate) delivered_at: u64,
}

/// What the sink of a flow has seen since the flow began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Reception {
    /// Packets that arrived.
    pub(crate) received: u64,
    /// Packets that were sent before the latest of them, itself included.
    pub(crate) expected: u64,
    /// Sum of their one-way delays.
    pub(crate) delay_sum_ns: u64,
    /// Sum of the interarrival jitter of RFC 3550 after each packet but the first.
    pub(crate) jitter_sum_ns: f64,
    /// The jitter now.
    jitter_ns: f64,
    /// Delay of the last packet.
    last_delay_ns: u64,
}

impl Reception {
    pub(crate) const NOTHING: Reception =
        Reception { received: 0, expected: 0, delay_sum_ns: 0, jitter_sum_ns: 0.0, jitter_ns: 0.0, last_delay_ns: 0 };

    /// A packet arrived at the sink.
    pub(crate) fn arrived(&mut self, now: Instant, packet: &Packet) {
        let delay = (now - packet.sent_at).as_nanos();
        if self.received > 0 {
            // RFC 3550 section 6.4.1: J += (|D| - J) / 16.
            self.jitter_ns += (delay.abs_diff(self.last_delay_ns) as f64 - self.jitter_ns) / 16.0;
            self.jitter_sum_ns += self.jitter_ns;
        }
        self.last_delay_ns = delay;
        self.delay_sum_ns += delay;
        self.received += 1;
        self.expected = self.expected.max(u64::from(packet.seq) + 1);
    }

    pub(crate) fn add(&mut self, other: &Reception) {
        self.received += other.received;
        self.expected += other.expected;
        self.delay_sum_ns += other.delay_sum_ns;
        self.jitter_sum_ns += other.jitter_sum_ns;
    }

    /// What it has grown by.
    pub(crate) fn since(&self, before: &Reception) -> Reception {
        Reception {
            received: self.received - before.received,
            expected: self.expected - before.expected,
            delay_sum_ns: self.delay_sum_ns - before.delay_sum_ns,
            jitter_sum_ns: self.jitter_sum_ns - before.jitter_sum_ns,
            ..*self
        }
    }

    /// Mean one-way delay of the packets, seconds.
    pub(crate) fn delay_mean_s(&self) -> Option<f64> {
        (self.received > 0).then(|| self.delay_sum_ns as f64 * 1e-9 / self.received as f64)
    }

    /// Mean of the jitter after each packet, seconds.
    pub(crate) fn jitter_mean_s(&self) -> Option<f64> {
        (self.received > 0).then(|| self.jitter_sum_ns * 1e-9 / self.received as f64)
    }

    /// Packets that did not arrive / packets sent, up to the latest that did.
    pub(crate) fn loss_ratio(&self) -> Option<f64> {
        (self.expected > 0).then(|| 1.0 - self.received as f64 / self.expected as f64)
    }
}
