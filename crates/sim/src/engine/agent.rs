//! An agent: the two endpoints of a flow of another transport than TCP.

use aqumen_scenario::Protocol;
use aqumen_transport::{AnyEndpoint, Endpoint, Message, Stats};
use aqumen_units::Instant;

use super::moment::NEVER;
use super::totals::{FlowTotal, SenderCounts};

/// Both endpoints of a flow.
#[derive(Clone)]
pub(super) struct Agent {
    pub(super) source: End,
    pub(super) sink: End,
}

#[derive(Clone)]
pub(super) struct End {
    pub(super) endpoint: AnyEndpoint,
    /// Time of the earliest event for its timer.
    pub(super) timer_at: u64,
}

/// Source or sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Source,
    Sink,
}

impl Agent {
    /// Makes the endpoints of a flow of `protocol`; `None` for TCP.
    pub(super) fn new(protocol: &Protocol) -> Option<Agent> {
        let (source, sink) = protocol.endpoints()?;
        let end = |endpoint| End { endpoint, timer_at: NEVER };
        Some(Agent { source: end(source), sink: end(sink) })
    }

    pub(super) fn end(&mut self, side: Side) -> &mut End {
        match side {
            Side::Source => &mut self.source,
            Side::Sink => &mut self.sink,
        }
    }

    /// Returns the totals since the flow began.
    pub(super) fn total(&self) -> FlowTotal {
        let Stats { sent, retransmitted, timeouts, rtt_samples, rtt_sum, .. } = self.source.endpoint.stats();
        let counts = SenderCounts { sent, retransmitted, timeouts, rtt_samples, rtt_sum_ns: rtt_sum.as_nanos() };
        FlowTotal { delivered: self.sink.endpoint.stats().delivered_bytes, counts }
    }

    /// Returns whether the source has nothing left to send.
    pub(super) fn is_idle(&self) -> bool {
        self.source.endpoint.is_idle()
    }

    /// Replaces the connection by a new one.
    pub(super) fn renew(&mut self, protocol: &Protocol) {
        if let Some(new) = Agent::new(protocol) {
            // Events of the old timers have no effect.
            let (source_at, sink_at) = (self.source.timer_at, self.sink.timer_at);
            *self = new;
            (self.source.timer_at, self.sink.timer_at) = (source_at, sink_at);
        }
    }

    /// Writes `bytes` as messages of one transfer.
    pub(super) fn transfer(&mut self, now: Instant, bytes: u64) {
        let mut left = bytes;
        let mut number = 0;
        while left > 0 {
            let bytes = left.min(MESSAGE_BYTES_MAX) as u32;
            self.source.endpoint.write(now, Message { bytes, number, created_at: now });
            left -= u64::from(bytes);
            number += 1;
        }
    }

    /// Returns the rate that the transport allows its application, if the transport adapts.
    pub(super) fn rate_bps(&self) -> Option<f64> {
        self.source.endpoint.rate_bps()
    }
}

/// Larger transfers are written as several messages.
const MESSAGE_BYTES_MAX: u64 = 1 << 30;
