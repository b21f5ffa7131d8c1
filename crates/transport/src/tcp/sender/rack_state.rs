//! State of a RACK sender; `rack` and `probe` hold its transitions.

use aqumen_units::{Instant, Span};

use crate::tcp::congestion::Phase;
use crate::tcp::flight::Flight;
use crate::tcp::reduction::ReductionState;
use crate::tcp::rto::Rto;
use crate::tcp::{Reduction, TcpConfig};

/// State of a RACK sender beyond its window.
#[derive(Clone, Debug)]
pub(super) struct Rack {
    pub(super) flight: Flight,
    pub(super) state: State,
    pub(super) reduction: ReductionState,
    /// Purpose of the timer, and expiry of the retransmission timer.
    pub(super) timer: Timer,
    pub(super) timeout_at: Instant,
    pub(super) probe: Option<Probe>,
    pub(super) frto: Option<Frto>,
    /// Limits the data for which the window counts as full: one past the last segment sent then.
    pub(super) full_until: u32,
    /// Super-packet that the next segment may join.
    pub(super) super_packet: SuperPacket,
}

/// New segments sent at one moment as one super-packet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SuperPacket {
    pub(super) at: Instant,
    pub(super) segments: u32,
    /// Sequence number of the segment that would continue it.
    pub(super) next: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Open,
    /// Window reduction after a mark (CWR in Linux).
    Reducing,
    Recovery,
    /// Retransmissions after a timeout.
    Loss,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    Timeout,
    Probe,
    /// Reordering timer: segments that may only be late are lost at its expiry.
    Reordering,
}

/// Timeout that may be spurious (F-RTO, RFC 5682 section 3.1), with the window before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frto {
    pub(super) at: Instant,
    pub(super) cwnd: f64,
    pub(super) ssthresh: u32,
    /// Whether new data was sent as a test (step 2b).
    pub(super) tested: bool,
}

impl Rack {
    pub(super) fn new() -> Self {
        Rack {
            flight: Flight::new(),
            state: State::Open,
            reduction: ReductionState::default(),
            timer: Timer::Timeout,
            timeout_at: Instant::MAX,
            probe: None,
            frto: None,
            full_until: 0,
            super_packet: SuperPacket::default(),
        }
    }

    /// Whether the window reduction limits sending, instead of the window.
    pub(super) fn is_reducing(&self, cfg: &TcpConfig) -> bool {
        match self.state {
            State::Recovery => !cfg.congestion.recovers_by_itself(),
            State::Reducing => cfg.reduction == Reduction::Proportional,
            State::Open | State::Loss => false,
        }
    }

    pub(super) fn is_recovering(&self) -> bool {
        self.state == State::Recovery
    }

    /// Whether nothing is missing, and the timer runs for a probe or a timeout.
    pub(super) fn is_quiet(&self) -> bool {
        matches!(self.state, State::Open | State::Reducing)
            && self.timer != Timer::Reordering
            && self.probe.is_none()
            && self.frto.is_none()
            && self.flight.is_clean()
    }

    /// Number of segments that the window, or its reduction, allows while nothing is missing.
    pub(super) fn allowance(&self, cfg: &TcpConfig, cwnd: f64) -> u32 {
        if self.is_reducing(cfg) {
            self.reduction.allowance()
        } else {
            (cwnd as u32).saturating_sub(self.flight.in_network())
        }
    }

    /// Notes that the window is full, with data sent up to `high`.
    #[inline(always)]
    pub(super) fn note_full(&mut self, cwnd: f64, high: u32) {
        if self.flight.in_network() >= cwnd as u32 {
            self.full_until = high;
        }
    }

    /// Phase as reported to congestion controls.
    pub(super) fn phase(&self) -> Phase {
        match self.state {
            State::Open | State::Reducing => Phase::Open,
            State::Recovery => Phase::Recovery,
            State::Loss => Phase::Timeout,
        }
    }

    pub(super) fn is_repairing(&self) -> bool {
        matches!(self.state, State::Recovery | State::Loss)
    }
}

/// Tail loss probe that is due or in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Probe {
    /// TLP.end_seq: one past the last segment sent; 0: the probe is due.
    pub(super) end: u32,
    /// TLP.is_retrans.
    pub(super) retransmission: bool,
}

impl Probe {
    /// Delay that the receiver may add to the round trip of a single segment (TLP.max_ack_delay).
    const ACK_DELAY: Span = Span::from_millis(200);

    /// Time from the last segment sent or acknowledged to the probe, with `outstanding` segments.
    #[inline(always)]
    pub(super) fn wait(cfg: &TcpConfig, rto: &Rto, outstanding: u32) -> Span {
        let wait = rto.smoothed(cfg).map_or(Span::from_secs(1), |smoothed| smoothed * 2);
        let delayed = if outstanding == 1 { cfg.delayed_ack } else { None };
        wait + delayed.map_or(Span::ZERO, |delay| delay.max(Self::ACK_DELAY))
    }

    /// A probe to be sent at the next poll.
    pub(super) fn due() -> Self {
        Probe { end: 0, retransmission: false }
    }

    pub(super) fn is_due(self) -> bool {
        self.end == 0
    }
}
