//! Loss recovery of ns-2.35's `Agent/TCP/Sack1`.
//!
//! ```text
//!   third duplicate          pipe = outstanding - 3; the first missing segment leaves, nothing else
//!   each acknowledgement     pipe - 1; - 1 once more if it acknowledges new data
//!   while pipe < window      a segment leaves, pipe + 1: holes in order, each once, then new data
//! ```
//!
//! The pipe is counted instead of computed from the scoreboard (RFC 6675), so lost segments stay in it. A segment is a
//! hole as soon as a later one has arrived. The scoreboard is cleared at the end of a recovery and at a timeout, after
//! which everything is retransmitted, and duplicates are ignored until new data is acknowledged.

use aqumen_units::Instant;

use super::sack::Choice;
use super::{Cause, IGNORE_DUPLICATES, ONE_MORE, RECOVERY, RETRANSMIT, RecoveryEntry, Sender, UNLIMITED};
use crate::tcp::congestion::Signal;
use crate::tcp::scoreboard::{DUPLICATES, Scoreboard};
use crate::tcp::{Ack, TcpConfig};

impl Sender {
    /// Processes an acknowledgement after the response to its mark.
    pub(super) fn on_sack1_ack(&mut self, cfg: &TcpConfig, now: Instant, ack: Ack) {
        if ack.ack < self.una {
            return;
        }
        let window = core::mem::replace(&mut self.peer_window, ack.window);
        self.on_window(cfg, now, window);
        let mut scoreboard = self.extras.as_mut().and_then(|extras| extras.scoreboard.take()).unwrap_or_default();
        let advances = ack.ack > self.una;
        let mut clears = false;
        if self.flags & RECOVERY != 0 {
            scoreboard.counted -= 1;
            // The response to a mark has moved the end of the recovery.
            if ack.ack >= self.recover {
                clears = true;
                self.leave_sack1_recovery(cfg, now, &ack);
            } else if advances {
                scoreboard.counted -= 1;
                self.una = ack.ack;
                self.next = self.next.max(ack.ack);
                self.arm(cfg, now);
                self.rto.end_backoff();
            }
        } else if advances {
            clears = true;
            self.flags &= !IGNORE_DUPLICATES;
            self.on_new_ack(cfg, now, &ack);
        }
        if clears {
            scoreboard = Scoreboard::default();
        } else if self.flags & IGNORE_DUPLICATES == 0 {
            let new = scoreboard.add(&ack, self.una, self.high);
            if self.flags & RECOVERY == 0 {
                self.on_sack1_duplicate(cfg, now, &mut scoreboard, new);
            }
        }
        if self.flags & RECOVERY != 0 || !scoreboard.arrived.is_empty() {
            self.extras.get_or_insert_default().scoreboard = Some(scoreboard);
        } else {
            self.clear_scoreboard();
        }
    }

    /// Clears the scoreboard.
    pub(super) fn clear_scoreboard(&mut self) {
        if self.is_controlled() {
            self.extras.get_or_insert_default().scoreboard = None;
        } else {
            self.extras = None;
        }
    }

    /// Ends a recovery: all data outstanding at its start is acknowledged. The window is unchanged.
    fn leave_sack1_recovery(&mut self, cfg: &TcpConfig, now: Instant, ack: &Ack) {
        self.flags &= !RECOVERY;
        self.end_recovery();
        // From now on every mark and every third duplicate counts.
        self.recover = u32::from(cfg.syn);
        self.duplicates = 0;
        self.una = ack.ack;
        self.next = self.next.max(ack.ack);
        self.measure(cfg, now, &ack.plain(), ack.ece && cfg.ecn);
        self.arm(cfg, now);
    }

    /// Duplicate outside of a recovery; one without new SACK blocks is not counted.
    fn on_sack1_duplicate(&mut self, cfg: &TcpConfig, now: Instant, scoreboard: &mut Scoreboard, new: u32) {
        if self.burst != UNLIMITED {
            // Only an acknowledgement of new data releases the rest of a limited burst.
            self.burst = 0;
        }
        if new == 0 {
            return;
        }
        self.duplicates = self.duplicates.saturating_add(1);
        if self.duplicates == DUPLICATES {
            self.start_sack1_recovery(cfg, now, scoreboard);
        } else if self.duplicates < DUPLICATES && cfg.limited_transmit {
            self.flags |= ONE_MORE;
        }
    }

    fn start_sack1_recovery(&mut self, cfg: &TcpConfig, now: Instant, scoreboard: &mut Scoreboard) {
        match self.permitted_recovery(cfg) {
            RecoveryEntry::Reduce => {
                self.reduce(cfg, Signal::Loss);
                self.recover = self.high;
            }
            RecoveryEntry::Repair => {}
            RecoveryEntry::Refuse => return,
        }
        self.last_cause = Cause::Duplicates;
        self.fast_retransmits += 1;
        self.flags |= RECOVERY | RETRANSMIT;
        self.stop_timing();
        self.arm(cfg, now);
        scoreboard.retransmitted_to = self.una + 1;
        scoreboard.counted = i64::from(self.high - self.una) - i64::from(DUPLICATES);
        // Nothing else is sent before the next acknowledgement.
        self.burst = 0;
    }

    /// Next segment to send while a scoreboard exists, and the reason.
    pub(super) fn choose_sack1(&self, scoreboard: &Scoreboard) -> Option<(u32, Choice)> {
        if self.flags & RECOVERY == 0 {
            return self.window_allows().then_some((self.next, Choice::Next));
        }
        if self.burst == 0 || scoreboard.counted >= self.cwnd as i64 {
            return None;
        }
        let offered = |seq: u32| seq - self.una < self.peer_window;
        let hole = scoreboard.first_missing(scoreboard.retransmitted_to.max(self.una));
        if scoreboard.arrived.end().is_some_and(|end| hole < end) {
            return offered(hole).then_some((hole, Choice::Hole));
        }
        (self.data_available() && offered(self.next)).then_some((self.next, Choice::Next))
    }

    /// Records the sending of a segment chosen by [`choose_sack1`](Self::choose_sack1).
    pub(super) fn on_sack1_sent(&mut self, seq: u32, choice: Choice) {
        self.next = self.next.max(seq + 1);
        let recovers = self.flags & RECOVERY != 0;
        let Some(scoreboard) = self.extras.as_mut().and_then(|extras| extras.scoreboard.as_mut()) else { return };
        scoreboard.counted += i64::from(recovers);
        if matches!(choice, Choice::Hole) {
            scoreboard.retransmitted_to = seq + 1;
        }
    }
}
