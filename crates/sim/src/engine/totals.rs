//! Totals of flows at each edge of the measurement windows.

use aqumen_transport::tcp::{Receiver, Sender};

/// Totals of all flows at each edge, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals(Vec<Vec<FlowTotal>>);

impl Totals {
    /// Adds the totals at an edge.
    pub(super) fn note(&mut self, totals: Vec<FlowTotal>) {
        self.0.push(totals);
    }

    /// Returns the totals of `flow` within a piece, which ends at the edge of the same number.
    pub(crate) fn piece(&self, flow: usize, piece: usize) -> FlowTotal {
        let total = self.0[piece][flow];
        piece.checked_sub(1).map_or(total, |before| total.since(&self.0[before][flow]))
    }
}

/// Totals of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowTotal {
    /// Payload delivered in order, bytes.
    pub(crate) delivered: u64,
    pub(crate) counts: SenderCounts,
}

/// Counts of a sender.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SenderCounts {
    pub(crate) sent: u64,
    pub(crate) retransmitted: u64,
    pub(crate) timeouts: u64,
    pub(crate) rtt_samples: u64,
    pub(crate) rtt_sum_ns: u64,
}

impl FlowTotal {
    pub(super) const NOTHING: FlowTotal = FlowTotal { delivered: 0, counts: SenderCounts::NOTHING };

    pub(super) fn from_tcp(sender: &Sender, receiver: &Receiver) -> Self {
        FlowTotal { delivered: receiver.delivered_bytes().0, counts: SenderCounts::from_sender(sender) }
    }

    pub(crate) fn add(&mut self, other: &FlowTotal) {
        self.delivered += other.delivered;
        self.counts.add(&other.counts);
    }

    pub(crate) fn since(&self, before: &FlowTotal) -> FlowTotal {
        FlowTotal { delivered: self.delivered - before.delivered, counts: self.counts.since(&before.counts) }
    }
}

impl SenderCounts {
    const NOTHING: SenderCounts =
        SenderCounts { sent: 0, retransmitted: 0, timeouts: 0, rtt_samples: 0, rtt_sum_ns: 0 };

    fn from_sender(sender: &Sender) -> Self {
        let stats = sender.stats();
        SenderCounts {
            sent: stats.sent as u64,
            retransmitted: stats.retransmitted as u64,
            timeouts: stats.timeouts as u64,
            rtt_samples: stats.rtt_samples as u64,
            rtt_sum_ns: stats.rtt_sum.as_nanos(),
        }
    }

    fn add(&mut self, other: &SenderCounts) {
        self.sent += other.sent;
        self.retransmitted += other.retransmitted;
        self.timeouts += other.timeouts;
        self.rtt_samples += other.rtt_samples;
        self.rtt_sum_ns += other.rtt_sum_ns;
    }

    fn since(&self, before: &SenderCounts) -> SenderCounts {
        SenderCounts {
            sent: self.sent - before.sent,
            retransmitted: self.retransmitted - before.retransmitted,
            timeouts: self.timeouts - before.timeouts,
            rtt_samples: self.rtt_samples - before.rtt_samples,
            rtt_sum_ns: self.rtt_sum_ns - before.rtt_sum_ns,
        }
    }
}
