//! Loss recovery by selective acknowledgements (RFC 6675, and forward acknowledgement).

use aqumen_units::Instant;

use super::{Cause, Entry, RECOVERY, RETRANSMIT, STOPPED, Sender};
use crate::tcp::board::{Board, DUPLICATES};
use crate::tcp::congestion::Signal;
use crate::tcp::{Ack, LossDetection, Reduction, Segment, TcpConfig};

impl Sender {
    /// An acknowledgement with selective blocks, or while some are remembered (RFC 6675 section 5).
    pub(super) fn on_selective_ack(&mut self, cfg: &TcpConfig, now: Instant, ack: Ack, recovered: bool) {
        let mut board = self.aside.as_mut().and_then(|aside| aside.board.take()).unwrap_or_default();
        let before = (board.loss_edge(cfg).unwrap_or(0), self.una + board.arrived.count_in(self.una, self.high));
        let mut news = 0;
        for &(first, end) in ack.sack.as_slice() {
            news += board.arrived.insert(first.max(self.una).max(ack.ack), end.min(self.high));
        }
        if ack.ack >= self.una {
            let window = core::mem::replace(&mut self.peer_window, ack.window);
            self.on_window(cfg, now, window);
        }
        let advances = ack.ack > self.una;
        let mut ends = false;
        if advances {
            if self.flags & RECOVERY == 0 {
                self.on_new_ack(cfg, now, &ack);
            } else {
                ends = recovered;
                if recovered {
                    self.flags &= !RECOVERY;
                    self.end_recovery();
                    self.duplicates = 0;
                }
                self.una = ack.ack;
                self.next = self.next.max(ack.ack);
                self.measure(cfg, now, &ack.plain(), ack.ece && cfg.ecn);
                self.arm(cfg, now);
            }
            board.arrived.forget_before(self.una);
        } else if ack.ack == self.una {
            if cfg.quirks.timer_on_any_ack {
                self.arm(cfg, now);
            }
            if news > 0 && self.flags & RECOVERY == 0 {
                self.duplicates = self.duplicates.saturating_add(1);
            }
        }
        let lost = board.loss_edge(cfg).is_some_and(|edge| self.una < edge);
        match cfg.loss_detection {
            LossDetection::Fack if ends => board.arrived.forget_before(u32::MAX),
            LossDetection::Fack if lost && self.flags & RECOVERY == 0 => {
                self.start_recovery(cfg, now, &mut board, news);
            }
            LossDetection::Rfc6675
                if !advances
                    && ack.ack == self.una
                    && news > 0
                    && self.flags & RECOVERY == 0
                    && (lost || self.duplicates >= DUPLICATES) =>
            {
                self.start_recovery(cfg, now, &mut board, news);
            }
            _ => {}
        }
        if self.flags & RECOVERY != 0 {
            self.go_on_recovering(cfg, &mut board, advances, before);
        }
        if self.flags & RECOVERY != 0 || !board.arrived.is_empty() {
            self.aside.get_or_insert_default().board = Some(board);
        } else if !self.is_controlled() {
            self.aside = None;
        }
    }

    /// RFC 6675 section 5 step 4; `news`: segments that the acknowledgement has shown to have arrived.
    fn start_recovery(&mut self, cfg: &TcpConfig, now: Instant, board: &mut Board, news: u32) {
        let window = self.cwnd;
        match self.permitted_recovery(cfg) {
            Entry::Reduce => self.reduce(cfg, Signal::Loss),
            Entry::Repair => {}
            Entry::Refuse => return,
        }
        self.recover = self.high;
        self.last = Cause::Duplicates;
        self.fast_retransmits += 1;
        self.flags |= RECOVERY;
        self.stop_timing();
        // After a timeout `next` may still be behind: from here on holes are found on the board.
        self.next = self.high;
        board.begin(self.una);
        // RecoverFS of RFC 9937: what had arrived before does not count.
        let sacked = board.arrived.count_in(self.una, self.high) - news;
        board.descent.begin(window, self.high - self.una - sacked);
        if cfg.reduction != Reduction::RateHalving {
            self.flags |= RETRANSMIT;
            board.on_resent(cfg, self.una, self.high);
        }
        self.arm(cfg, now);
    }

    /// An acknowledgement in recovery has been worked in. `before`: where losses ended, and what had arrived.
    fn go_on_recovering(&mut self, cfg: &TcpConfig, board: &mut Board, advances: bool, before: (u32, u32)) {
        let lost_again = cfg.lost_retransmissions && board.check_resent(self.una);
        if cfg.reduction != Reduction::AtOnce {
            let (from, to) = (before.0.max(self.una), board.loss_edge(cfg).unwrap_or(0));
            let lost = lost_again || (from < to && board.arrived.count_in(from, to) < to - from);
            let arrived = self.una + board.arrived.count_in(self.una, self.high);
            let pipe = board.pipe(cfg, self.una, self.high);
            board.descent.on_ack(cfg, self.cwnd as u32, pipe, arrived - before.1, advances && !lost);
        }
    }

    /// What the window allows while the receiver misses something.
    pub(super) fn poll_selective(&mut self, cfg: &TcpConfig, now: Instant) -> Option<Segment> {
        let (seq, place) = self.choose(cfg)?;
        if cfg.is_sack1() {
            self.on_sack1_sent(seq, place);
        } else {
            let board = self.aside.as_mut()?.board.as_mut()?;
            if self.flags & RECOVERY != 0 {
                board.descent.on_sent(cfg, board.pipe(cfg, self.una, self.high));
            }
            match place {
                Place::Next => self.next = seq + 1,
                Place::Hole => board.on_resent(cfg, seq, self.high),
                Place::Rescue => board.rescued_to = self.recover,
            }
        }
        self.count_burst();
        Some(self.emit(cfg, now, seq))
    }

    /// The segment to send next, by what the receiver reported, and why.
    pub(super) fn choose(&self, cfg: &TcpConfig) -> Option<(u32, Place)> {
        let board = self.board()?;
        if cfg.is_sack1() {
            return self.choose_sack1(board);
        }
        if self.burst == 0 || self.peer_window == 0 {
            return None;
        }
        let new_allowed = |next: u32| {
            let offered = next < self.limit && (next < self.high || self.flags & STOPPED == 0);
            offered && next - self.una < self.peer_window
        };
        if self.flags & RECOVERY == 0 {
            // Before recovery this is limited transmit (RFC 6675 section 5 step 3); after a timeout it fills the holes.
            let next = board.first_missing(self.next);
            let in_flight = next - self.una - board.arrived.count_in(self.una, next);
            let beyond = self.duplicates > 0 && next >= self.high && !cfg.limited_transmit;
            let allowed = self.cwnd - f64::from(in_flight) >= 1.0 && new_allowed(next) && !beyond;
            return allowed.then_some((next, Place::Next));
        }
        if !board.descent.allows(cfg, self.cwnd, board.pipe(cfg, self.una, self.high)) {
            return None;
        }
        if let Some(seq) = board.lost_again() {
            return Some((seq, Place::Hole));
        }
        // NextSeg, RFC 6675 section 4.
        let hole = board.first_missing(board.retransmitted_to.max(self.una));
        if board.loss_edge(cfg).is_some_and(|edge| hole < edge.min(self.high)) {
            return Some((hole, Place::Hole)); // rule 1: a segment that is lost
        }
        if new_allowed(self.next) {
            return Some((self.next, Place::Next)); // rule 2: new data
        }
        if board.arrived.end().is_some_and(|end| hole < end) {
            return Some((hole, Place::Hole)); // rule 3: a segment that may be lost
        }
        if self.una < board.rescued_to {
            return None;
        }
        // rule 4: once, the highest segment outstanding, so that its acknowledgement tells what is missing
        let missing = (self.una..self.high).rev().find(|&seq| board.arrived.run_with(seq).is_none())?;
        (missing >= board.retransmitted_to).then_some((missing, Place::Rescue))
    }
}

/// Where a segment chosen from the board comes from.
#[derive(Clone, Copy)]
pub(super) enum Place {
    /// The next in sequence.
    Next,
    /// A gap in what arrived.
    Hole,
    /// The end of what is outstanding.
    Rescue,
}
