//! Loss recovery by selective acknowledgements as `Agent/TCP/Sack1` of ns-2.35 has it.
//!
//! ```text
//!   third duplicate          pipe = outstanding - 3; the first missing segment leaves, nothing else
//!   each acknowledgement     pipe - 1; - 1 once more if it acknowledges new data
//!   while pipe < window      a segment leaves, pipe + 1: holes in order, each once, then new data
//! ```
//!
//! The pipe is counted, not worked out from the scoreboard as in RFC 6675: segments that are lost stay in it. A segment
//! is a hole as soon as any beyond it has arrived. The scoreboard is forgotten at the end of a recovery and at a
//! timeout, after which all is sent again, and duplicates mean nothing before new data is acknowledged.

use aqumen_units::Instant;

use super::selective::Place;
use super::{Cause, Entry, IGNORE_DUPLICATES, ONE_MORE, RECOVERY, RETRANSMIT, Sender, UNLIMITED};
use crate::tcp::board::{Board, DUPLICATES};
use crate::tcp::congestion::Signal;
use crate::tcp::{Ack, TcpConfig};

impl Sender {
    /// An acknowledgement; its mark has been reacted to.
    pub(super) fn on_sack1_ack(&mut self, cfg: &TcpConfig, now: Instant, ack: Ack) {
        if ack.ack < self.una {
            return;
        }
        let window = core::mem::replace(&mut self.peer_window, ack.window);
        self.on_window(cfg, now, window);
        let mut board = self.aside.as_mut().and_then(|aside| aside.board.take()).unwrap_or_default();
        let advances = ack.ack > self.una;
        let mut forgets = false;
        if self.flags & RECOVERY != 0 {
            board.counted -= 1;
            // A reaction to the mark has moved the end of the recovery.
            if ack.ack >= self.recover {
                forgets = true;
                self.leave_sack1_recovery(cfg, now, &ack);
            } else if advances {
                board.counted -= 1;
                self.una = ack.ack;
                self.next = self.next.max(ack.ack);
                self.arm(cfg, now);
                self.rto.end_backoff();
            }
        } else if advances {
            forgets = true;
            self.flags &= !IGNORE_DUPLICATES;
            self.on_new_ack(cfg, now, &ack);
        }
        if forgets {
            board = Board::default();
        } else if self.flags & IGNORE_DUPLICATES == 0 {
            let news = board.add(&ack, self.una, self.high);
            if self.flags & RECOVERY == 0 {
                self.on_sack1_duplicate(cfg, now, &mut board, news);
            }
        }
        if self.flags & RECOVERY != 0 || !board.arrived.is_empty() {
            self.aside.get_or_insert_default().board = Some(board);
        } else {
            self.forget_board();
        }
    }

    /// Nothing is known to be missing.
    pub(super) fn forget_board(&mut self) {
        if self.is_controlled() {
            self.aside.get_or_insert_default().board = None;
        } else {
            self.aside = None;
        }
    }

    /// All that was outstanding when the recovery began is acknowledged: the window stays as it is.
    fn leave_sack1_recovery(&mut self, cfg: &TcpConfig, now: Instant, ack: &Ack) {
        self.flags &= !RECOVERY;
        self.end_recovery();
        // From here on each mark and each third duplicate counts.
        self.recover = u32::from(cfg.syn);
        self.duplicates = 0;
        self.una = ack.ack;
        self.next = self.next.max(ack.ack);
        self.measure(cfg, now, &ack.plain(), ack.ece && cfg.ecn);
        self.arm(cfg, now);
    }

    /// A duplicate outside a recovery; one that reports nothing new is not counted.
    fn on_sack1_duplicate(&mut self, cfg: &TcpConfig, now: Instant, board: &mut Board, news: u32) {
        if self.burst != UNLIMITED {
            // Only an acknowledgement of new data lets the rest of a limited burst go.
            self.burst = 0;
        }
        if news == 0 {
            return;
        }
        self.duplicates = self.duplicates.saturating_add(1);
        if self.duplicates == DUPLICATES {
            self.start_sack1_recovery(cfg, now, board);
        } else if self.duplicates < DUPLICATES && cfg.limited_transmit {
            self.flags |= ONE_MORE;
        }
    }

    fn start_sack1_recovery(&mut self, cfg: &TcpConfig, now: Instant, board: &mut Board) {
        match self.permitted_recovery(cfg) {
            Entry::Reduce => {
                self.reduce(cfg, Signal::Loss);
                self.recover = self.high;
            }
            Entry::Repair => {}
            Entry::Refuse => return,
        }
        self.last = Cause::Duplicates;
        self.fast_retransmits += 1;
        self.flags |= RECOVERY | RETRANSMIT;
        self.stop_timing();
        self.arm(cfg, now);
        board.retransmitted_to = self.una + 1;
        board.counted = i64::from(self.high - self.una) - i64::from(DUPLICATES);
        // Nothing else leaves before the next acknowledgement.
        self.burst = 0;
    }

    /// The segment to send next while a scoreboard is kept, and why.
    pub(super) fn choose_sack1(&self, board: &Board) -> Option<(u32, Place)> {
        if self.flags & RECOVERY == 0 {
            return self.window_allows().then_some((self.next, Place::Next));
        }
        if self.burst == 0 || board.counted >= self.cwnd as i64 {
            return None;
        }
        let offered = |seq: u32| seq - self.una < self.peer_window;
        let hole = board.first_missing(board.retransmitted_to.max(self.una));
        if board.arrived.end().is_some_and(|end| hole < end) {
            return offered(hole).then_some((hole, Place::Hole));
        }
        (self.data_available() && offered(self.next)).then_some((self.next, Place::Next))
    }

    /// Notes that a segment leaves, which [`choose_sack1`](Self::choose_sack1) chose.
    pub(super) fn on_sack1_sent(&mut self, seq: u32, place: Place) {
        self.next = self.next.max(seq + 1);
        let recovers = self.flags & RECOVERY != 0;
        let Some(board) = self.aside.as_mut().and_then(|aside| aside.board.as_mut()) else { return };
        board.counted += i64::from(recovers);
        if matches!(place, Place::Hole) {
            board.retransmitted_to = seq + 1;
        }
    }
}
