//! How long a Linux receiver holds acknowledgements back (`tcp_input.c`, `tcp_timer.c`, `tcp_output.c`): its
//! delay follows the pace at which data come, and several acknowledgements in a row are not held back at all when
//! the sender may have begun anew.
//!
//! ```text
//!   at once   the end of a write (PSH, or a segment that is not full): the application has read all there is, and the
//!             sender may wait
//!             16 times after a silence longer than the retransmission timeout, or after a copy of what had arrived
//!             twice after a segment that cannot carry marks where others could: it was sent again
//!   delay     40 ms; twice as long each time nothing came in time, half of it and the last gap where data come less
//!             than 20 ms or less than the delay apart; at most a round trip, and 40 ms again once quick
//!             acknowledgements are used up
//! ```
//!
//! Deviations: the application reads at once; what it sends itself (`pingpong`) is nothing here. Acknowledgements with
//! SACK blocks are not held back by a millisecond, as Linux does from the fourth in a row on. The receive window does
//! not grow, which there makes some acknowledgements quick.

use aqumen_units::{Ecn, Instant, Span};

use super::{Segment, TcpConfig};

/// Linux's delay where data come one after the other (TCP_ATO_MIN, TCP_DELACK_MIN), and its limits
/// where no round trip is known.
const LEAST: Span = Span::from_millis(40);
const MOST: Span = Span::from_millis(500);
/// The retransmission timeout of a receiver that sends nothing: that of the handshake.
const LEAST_RTO_MARGIN: Span = Span::from_millis(200);
const INITIAL_RTO: Span = Span::from_secs(1);

/// What a receiver knows of the pace of its sender.
#[derive(Clone, Debug)]
pub(super) struct Patience {
    delay: Span,
    /// When data last arrived in order.
    last_data: Option<Instant>,
    /// When the SYN arrived, and the round trip that the first data show.
    opened_at: Option<Instant>,
    rtt: Option<Span>,
    /// Segments come that can carry marks.
    capable: bool,
}

impl Patience {
    pub(super) const fn new() -> Self {
        Patience { delay: LEAST, last_data: None, opened_at: None, rtt: None, capable: false }
    }

    /// A segment has arrived, before it is worked in: how many acknowledgements from here on are not to be held back.
    pub(super) fn on_segment(&mut self, cfg: &TcpConfig, now: Instant, segment: &Segment, next: u32) -> u8 {
        if segment.syn {
            self.opened_at.get_or_insert(now);
            return 0;
        }
        let again = cfg.ecn && segment.ecn == Ecn::NotEct && self.capable;
        self.capable |= segment.ecn.is_ect();
        let quick = if again { 2 } else { 0 };
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
            Some(gap) if gap <= LEAST / 2 => self.delay = self.delay / 2 + LEAST / 2,
            Some(gap) if gap < self.delay => self.delay = (self.delay / 2 + gap).min(self.rto()),
            Some(gap) if gap > self.rto() => return cfg.quick_acks.max(quick),
            Some(_) => {}
        }
        quick
    }

    /// How long the acknowledgement of what has arrived may wait.
    pub(super) fn delay(&self) -> Span {
        let most = self.rtt.map_or(MOST, |rtt| rtt.max(LEAST).min(MOST));
        if self.delay > LEAST { self.delay.min(most) } else { self.delay }
    }

    /// Nothing came while one was held back.
    pub(super) fn on_timer(&mut self) {
        self.delay = (self.delay * 2).min(self.rto());
    }

    /// No more quick acknowledgements.
    pub(super) fn settle(&mut self) {
        self.delay = LEAST;
    }

    fn rto(&self) -> Span {
        self.rtt.map_or(INITIAL_RTO, |rtt| rtt + (rtt * 2).max(LEAST_RTO_MARGIN))
    }
}

/// Whether a segment ends a write: the receiver need not wait for more.
pub(super) fn ends_write(cfg: &TcpConfig, segment: &Segment) -> bool {
    cfg.adaptive_acks && (segment.push || segment.bytes < cfg.packet_bytes)
}
