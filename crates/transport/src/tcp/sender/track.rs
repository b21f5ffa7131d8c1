//! What a sender that finds losses by time keeps: the state that it is in, its way down, its timer, the probe of a
//! tail, the doubt about a timeout. `tracked` and `probe` say what happens to it.

use aqumen_units::Instant;

use crate::tcp::congestion::Phase;
use crate::tcp::flight::Flight;
use crate::tcp::reduction::Descent;
use crate::tcp::{Reduction, TcpConfig};

/// What a sender that finds losses by time knows beside its window.
#[derive(Clone, Debug)]
pub(super) struct Track {
    pub(super) flight: Flight,
    pub(super) state: State,
    pub(super) descent: Descent,
    /// What the timer is set for, and when the retransmission timer alone would go off.
    pub(super) timer: Timer,
    pub(super) timeout_at: Instant,
    pub(super) probe: Option<Probe>,
    pub(super) doubt: Option<Doubt>,
    /// One past the last segment that had left when the window was last full.
    pub(super) full_to: u32,
    /// The super-packet to which the next segment may belong.
    pub(super) together: Together,
}

/// New segments that have left at one moment as one super-packet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Together {
    pub(super) at: Instant,
    pub(super) segments: u32,
    /// The one that would be the next of it.
    pub(super) next: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Open,
    /// After a mark (CWR in Linux).
    Reducing,
    Recovery,
    /// After a timeout.
    Loss,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    Timeout,
    Probe,
    /// Segments that may only be late will be lost.
    Late,
}

/// A timeout that may prove spurious (F-RTO, RFC 5682 section 3.1), and what it took away.
#[derive(Clone, Copy, Debug)]
pub(super) struct Doubt {
    pub(super) at: Instant,
    pub(super) cwnd: f64,
    pub(super) ssthresh: u32,
    /// New data has been sent to find out (step 2b).
    pub(super) asked: bool,
}

impl Track {
    pub(super) fn new() -> Self {
        Track {
            flight: Flight::new(),
            state: State::Open,
            descent: Descent::default(),
            timer: Timer::Timeout,
            timeout_at: Instant::MAX,
            probe: None,
            doubt: None,
            full_to: 0,
            together: Together::default(),
        }
    }

    /// Whether what leaves is what the reduction allows, and not the window.
    pub(super) fn comes_down(&self, cfg: &TcpConfig) -> bool {
        match self.state {
            State::Recovery => !cfg.congestion.recovers_by_itself(),
            State::Reducing => cfg.reduction == Reduction::Proportional,
            State::Open | State::Loss => false,
        }
    }

    pub(super) fn is_recovering(&self) -> bool {
        self.state == State::Recovery
    }

    /// What a congestion control that recovers by itself is to know.
    pub(super) fn phase(&self) -> Phase {
        match self.state {
            State::Open | State::Reducing => Phase::Open,
            State::Recovery => Phase::Recovery,
            State::Loss => Phase::Timeout,
        }
    }

    pub(super) fn repairs(&self) -> bool {
        matches!(self.state, State::Recovery | State::Loss)
    }
}

/// A probe that is due, or not yet answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Probe {
    /// TLP.end_seq: one past the last segment when it had left; 0: it has not.
    pub(super) end: u32,
    /// TLP.is_retrans.
    pub(super) repeated: bool,
}

impl Probe {
    /// It leaves with the next poll.
    pub(super) fn due() -> Self {
        Probe { end: 0, repeated: false }
    }

    pub(super) fn is_due(self) -> bool {
        self.end == 0
    }
}
