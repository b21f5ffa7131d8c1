//! Loss recovery by selective acknowledgements (RFC 6675 and forward acknowledgement).

use aqumen_units::Instant;

use super::{Cause, RECOVERY, RETRANSMIT, RecoveryEntry, STOPPED, Sender};
use crate::tcp::congestion::Signal;
use crate::tcp::scoreboard::{DUPLICATES, Scoreboard};
use crate::tcp::{Ack, LossDetection, Reduction, Segment, TcpConfig};

impl Sender {
    /// Processes an acknowledgement with SACK blocks or during a recovery (RFC 6675 section 5).
    pub(super) fn on_selective_ack(&mut self, cfg: &TcpConfig, now: Instant, ack: Ack, recovered: bool) {
        let mut scoreboard = self.extras.as_mut().and_then(|extras| extras.scoreboard.take()).unwrap_or_default();
        let before =
            (scoreboard.loss_edge(cfg).unwrap_or(0), self.una + scoreboard.arrived.count_in(self.una, self.high));
        let mut new = 0;
        for &(first, end) in ack.sack.as_slice() {
            new += scoreboard.arrived.insert(first.max(self.una).max(ack.ack), end.min(self.high));
        }
        if ack.ack >= self.una {
            let window = core::mem::replace(&mut self.peer_window, ack.window);
            self.on_window(cfg, now, window);
        }
        let advances = ack.ack > self.una;
        let mut ended = false;
        if advances {
            if self.flags & RECOVERY == 0 {
                self.on_new_ack(cfg, now, &ack);
            } else {
                ended = recovered;
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
            scoreboard.arrived.remove_before(self.una);
        } else if ack.ack == self.una {
            if cfg.quirks.timer_on_any_ack {
                self.arm(cfg, now);
            }
            if new > 0 && self.flags & RECOVERY == 0 {
                self.duplicates = self.duplicates.saturating_add(1);
            }
        }
        let lost = scoreboard.loss_edge(cfg).is_some_and(|edge| self.una < edge);
        match cfg.loss_detection {
            LossDetection::Fack if ended => scoreboard.arrived.remove_before(u32::MAX),
            LossDetection::Fack if lost && self.flags & RECOVERY == 0 => {
                self.start_recovery(cfg, now, &mut scoreboard, new);
            }
            LossDetection::Rfc6675
                if !advances
                    && ack.ack == self.una
                    && new > 0
                    && self.flags & RECOVERY == 0
                    && (lost || self.duplicates >= DUPLICATES) =>
            {
                self.start_recovery(cfg, now, &mut scoreboard, new);
            }
            _ => {}
        }
        if self.flags & RECOVERY != 0 {
            self.go_on_recovering(cfg, &mut scoreboard, advances, before);
        }
        if self.flags & RECOVERY != 0 || !scoreboard.arrived.is_empty() {
            self.extras.get_or_insert_default().scoreboard = Some(scoreboard);
        } else if !self.is_controlled() {
            self.extras = None;
        }
    }

    /// Enters recovery (RFC 6675 section 5 step 4); `new`: segments newly reported as arrived.
    fn start_recovery(&mut self, cfg: &TcpConfig, now: Instant, scoreboard: &mut Scoreboard, new: u32) {
        let window = self.cwnd;
        match self.permitted_recovery(cfg) {
            RecoveryEntry::Reduce => self.reduce(cfg, Signal::Loss),
            RecoveryEntry::Repair => {}
            RecoveryEntry::Refuse => return,
        }
        self.recover = self.high;
        self.last_cause = Cause::Duplicates;
        self.fast_retransmits += 1;
        self.flags |= RECOVERY;
        self.stop_timing();
        // After a timeout `next` may be behind; from now on the scoreboard supplies the holes.
        self.next = self.high;
        scoreboard.begin(self.una);
        // RecoverFS of RFC 9937 excludes earlier arrivals.
        let sacked = scoreboard.arrived.count_in(self.una, self.high) - new;
        scoreboard.reduction.begin(window, self.high - self.una - sacked);
        if cfg.reduction != Reduction::RateHalving {
            self.flags |= RETRANSMIT;
            scoreboard.on_retransmission(cfg, self.una, self.high);
        }
        self.arm(cfg, now);
    }

    /// Continues a recovery after an acknowledgement. `before`: loss edge and arrived segments before it.
    fn go_on_recovering(&mut self, cfg: &TcpConfig, scoreboard: &mut Scoreboard, advances: bool, before: (u32, u32)) {
        let lost_retransmission = cfg.lost_retransmissions && scoreboard.check_retransmissions(self.una);
        if cfg.reduction != Reduction::AtOnce {
            let (from, to) = (before.0.max(self.una), scoreboard.loss_edge(cfg).unwrap_or(0));
            let lost = lost_retransmission || (from < to && scoreboard.arrived.count_in(from, to) < to - from);
            let arrived = self.una + scoreboard.arrived.count_in(self.una, self.high);
            let pipe = scoreboard.pipe(cfg, self.una, self.high);
            scoreboard.reduction.on_ack(cfg, self.cwnd as u32, pipe, arrived - before.1, advances && !lost);
        }
    }

    /// Next segment that the window allows during SACK recovery.
    pub(super) fn poll_selective(&mut self, cfg: &TcpConfig, now: Instant) -> Option<Segment> {
        let (seq, choice) = self.choose(cfg)?;
        if cfg.is_sack1() {
            self.on_sack1_sent(seq, choice);
        } else {
            let scoreboard = self.extras.as_mut()?.scoreboard.as_mut()?;
            if self.flags & RECOVERY != 0 {
                scoreboard.reduction.on_sent(cfg, scoreboard.pipe(cfg, self.una, self.high));
            }
            match choice {
                Choice::Next => self.next = seq + 1,
                Choice::Hole => scoreboard.on_retransmission(cfg, seq, self.high),
                Choice::Rescue => scoreboard.rescued_to = self.recover,
            }
        }
        self.count_burst();
        Some(self.emit(cfg, now, seq))
    }

    /// Next segment to send by the scoreboard, and the reason.
    pub(super) fn choose(&self, cfg: &TcpConfig) -> Option<(u32, Choice)> {
        let scoreboard = self.scoreboard()?;
        if cfg.is_sack1() {
            return self.choose_sack1(scoreboard);
        }
        if self.burst == 0 || self.peer_window == 0 {
            return None;
        }
        let new_allowed = |next: u32| {
            let offered = next < self.limit && (next < self.high || self.flags & STOPPED == 0);
            offered && next - self.una < self.peer_window
        };
        if self.flags & RECOVERY == 0 {
            // Limited transmit before a recovery (RFC 6675 section 5 step 3); retransmissions of holes after a timeout.
            let next = scoreboard.first_missing(self.next);
            let in_flight = next - self.una - scoreboard.arrived.count_in(self.una, next);
            let beyond = self.duplicates > 0 && next >= self.high && !cfg.limited_transmit;
            let allowed = self.cwnd - f64::from(in_flight) >= 1.0 && new_allowed(next) && !beyond;
            return allowed.then_some((next, Choice::Next));
        }
        if !scoreboard.reduction.allows(cfg, self.cwnd, scoreboard.pipe(cfg, self.una, self.high)) {
            return None;
        }
        if let Some(seq) = scoreboard.lost_retransmission() {
            return Some((seq, Choice::Hole));
        }
        // NextSeg, RFC 6675 section 4.
        let hole = scoreboard.first_missing(scoreboard.retransmitted_to.max(self.una));
        if scoreboard.loss_edge(cfg).is_some_and(|edge| hole < edge.min(self.high)) {
            return Some((hole, Choice::Hole)); // rule 1: a segment that is lost
        }
        if new_allowed(self.next) {
            return Some((self.next, Choice::Next)); // rule 2: new data
        }
        if scoreboard.arrived.end().is_some_and(|end| hole < end) {
            return Some((hole, Choice::Hole)); // rule 3: a segment that may be lost
        }
        if self.una < scoreboard.rescued_to {
            return None;
        }
        // rule 4: once, the highest outstanding segment, whose acknowledgement reports the losses
        let missing = (self.una..self.high).rev().find(|&seq| scoreboard.arrived.range_containing(seq).is_none())?;
        (missing >= scoreboard.retransmitted_to).then_some((missing, Choice::Rescue))
    }
}

/// Reason to send a segment.
#[derive(Clone, Copy)]
pub(super) enum Choice {
    /// Next segment in sequence.
    Next,
    /// Gap in the arrived segments.
    Hole,
    /// Rescue retransmission at the end of the outstanding segments.
    Rescue,
}
