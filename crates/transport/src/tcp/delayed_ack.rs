//! Delayed acknowledgements of a Linux receiver (`tcp_input.c`, `tcp_timer.c`, `tcp_output.c`). The delay follows the
//! gaps between data segments. Several acknowledgements in a row are immediate when the sender may have restarted
//! ("quick acks").
//!
//! ```text
//!   quick ack   the end of a write (PSH, or a segment that is not full), since the sender may wait
//!               16 times after an idle period longer than the retransmission timeout, or after a duplicate
//!               twice after a segment that is not ECN-capable where others are, which is a retransmission
//!   delay       40 ms; doubled each time it expires without data; the mean of itself and 40 ms, or half of it and the
//!               last gap, where data come less than 20 ms or less than the delay apart; at most a round trip, and
//!               40 ms again after the last quick ack
//! ```
//!
//! Deviations: the application reads at once and sends no data itself (`pingpong`). Acknowledgements with SACK blocks
//! are never delayed; Linux delays them by 1 ms from the fourth in a row on. The receive window does not grow, which in
//! Linux makes some acknowledgements immediate.

use aqumen_units::{Ecn, Instant, Span};

use super::{Segment, TcpConfig};

/// Linux's shortest delay (TCP_ATO_MIN, TCP_DELACK_MIN), and its longest while the round-trip time is unknown.
const MIN_DELAY: Span = Span::from_millis(40);
const MAX_DELAY: Span = Span::from_millis(500);
/// Retransmission timeout of a receiver that sends no data, from the handshake.
const MIN_RTO_MARGIN: Span = Span::from_millis(200);
const INITIAL_RTO: Span = Span::from_secs(1);

/// State of the delayed-acknowledgement timer.
#[derive(Clone, Debug)]
pub(super) struct DelayedAck {
    delay: Span,
    /// Arrival of the last data in order.
    last_data: Option<Instant>,
    /// Arrival of the SYN, and the round-trip time measured at the first data.
    opened_at: Option<Instant>,
    rtt: Option<Span>,
    /// Whether ECN-capable segments have arrived.
    ecn_capable: bool,
}

impl DelayedAck {
    pub(super) const fn new() -> Self {
        DelayedAck { delay: MIN_DELAY, last_data: None, opened_at: None, rtt: None, ecn_capable: false }
    }

    /// Updates the delay before segment processing; returns the number of quick acknowledgements that follow.
    pub(super) fn on_segment(&mut self, cfg: &TcpConfig, now: Instant, segment: &Segment, next: u32) -> u8 {
        if segment.syn {
            self.opened_at.get_or_insert(now);
            return 0;
        }
        let retransmission = cfg.ecn && segment.ecn == Ecn::NotEct && self.ecn_capable;
        self.ecn_capable |= segment.ecn.is_ect();
        let quick = if retransmission { 2 } else { 0 };
        if segment.seq < next {
            return cfg.quick_acks.max(quick);
        }
        if segment.seq > next {
            return quick;
        }
        self.rtt = self.rtt.or(self.opened_at.map(|opened| now.saturating_since(opened)));
        let gap = self.last_data.replace(now).map(|before| now.saturating_since(before));
        match gap {
            None => {}
            Some(gap) if gap <= MIN_DELAY / 2 => self.delay = self.delay / 2 + MIN_DELAY / 2,
            Some(gap) if gap < self.delay => self.delay = (self.delay / 2 + gap).min(self.rto()),
            Some(gap) if gap > self.rto() => return cfg.quick_acks.max(quick),
            Some(_) => {}
        }
        quick
    }

    /// Longest delay of the next acknowledgement.
    pub(super) fn delay(&self) -> Span {
        let longest = self.rtt.map_or(MAX_DELAY, |rtt| rtt.max(MIN_DELAY).min(MAX_DELAY));
        if self.delay > MIN_DELAY { self.delay.min(longest) } else { self.delay }
    }

    /// Doubles the delay after the timer expired without new data.
    pub(super) fn on_timer(&mut self) {
        self.delay = (self.delay * 2).min(self.rto());
    }

    /// Resets the delay after the last quick acknowledgement.
    pub(super) fn reset(&mut self) {
        self.delay = MIN_DELAY;
    }

    fn rto(&self) -> Span {
        self.rtt.map_or(INITIAL_RTO, |rtt| rtt + (rtt * 2).max(MIN_RTO_MARGIN))
    }
}

/// Whether a segment ends a write, so that no more data need be awaited.
pub(super) fn ends_write(cfg: &TcpConfig, segment: &Segment) -> bool {
    cfg.adaptive_acks && (segment.push || segment.bytes < cfg.packet_bytes)
}
