//! RACK loss detection (RFC 8985 section 6) over the segments in flight. A segment is lost when one sent later has
//! arrived, and a round trip and a reordering window have passed since it was sent. Retransmissions follow the same
//! rule, so their losses are detected without the timer.
//!
//! ```text
//!   in flight ---- acknowledged, SACK ----> arrived
//!       |  ^                                   ^
//!       v  | retransmitted                     |
//!      lost -----------------------------------+   (declared lost, but only late)
//! ```
//!
//! Deviations from RFC 8985:
//! - The reordering window is a quarter of the smallest round-trip time and fixed. Section 6.2 step 4 widens it after
//!   D-SACK, which receivers here do not send.
//! - The smallest round-trip time is that of the whole connection instead of the last minutes.

use alloc::collections::VecDeque;

use aqumen_units::{Instant, Span};

use super::Ack;

/// DupThresh of RFC 6675, for [`reordering_window`](Flight::reordering_window).
const DUPLICATES: u32 = 3;

/// SACKed: arrived beyond a gap.
const SACKED: u8 = 1;
const LOST: u8 = 1 << 1;
/// A retransmission of the segment is in flight.
const RETRANSMITTED: u8 = 1 << 2;
/// Retransmitted at least once.
const EVER_RETRANSMITTED: u8 = 1 << 3;

/// A segment that was sent and is not acknowledged.
#[derive(Clone, Copy, Debug)]
struct Record {
    sent_at: Instant,
    state: u8,
}

impl Record {
    fn is(&self, state: u8) -> bool {
        self.state & state != 0
    }
}

/// All outstanding segments.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    /// Records, from the oldest outstanding segment on.
    records: VecDeque<Record>,
    /// Sequence number of the first record.
    first: u32,
    sacked: u32,
    lost: u32,
    retransmitted: u32,
    /// One past the highest segment that was retransmitted.
    repeated_to: u32,
    /// Retransmissions in the order of sending, with their times.
    retransmissions: VecDeque<(u32, Instant)>,
    /// First transmissions before this segment have been checked: arrived, lost or retransmitted.
    checked: u32,
    /// No segment before this one waits for retransmission.
    repair_from: u32,
    /// RACK.xmit_ts, RACK.end_seq and RACK.rtt: the arrived segment that was sent last.
    latest: (Instant, u32),
    rtt: Span,
    min_rtt: Span,
    /// RACK.fack: one past the highest segment that has arrived.
    highest: u32,
    /// RACK.reordering_seen.
    reordered: bool,
    /// Segments that a timer found lost since the last report.
    lost_by_timer: u32,
}

/// First and last sending time of segments that were sent once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SendTimes {
    pub(super) first: Instant,
    pub(super) last: Instant,
}

impl SendTimes {
    /// Adds a segment sent at `at`.
    fn including(times: Option<SendTimes>, at: Instant) -> Option<SendTimes> {
        let SendTimes { first, last } = times.unwrap_or(SendTimes { first: at, last: at });
        Some(SendTimes { first: first.min(at), last: last.max(at) })
    }
}

/// Effect of an acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AckOutcome {
    /// Newly arrived segments.
    pub(super) delivered: u32,
    /// Whether one of them was sent once, before the timeout.
    pub(super) first_sending: bool,
    /// Whether one of them arrived beyond a gap.
    pub(super) beyond_gap: bool,
    /// Sending times for Linux's round-trip measurement. First: the first segment acknowledged, unless a retransmission
    /// is, then the first one SACKed. Last: the last one SACKed, if any.
    pub(super) send_times: Option<SendTimes>,
}

/// Result of a loss detection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Losses {
    /// Segments newly found lost, retransmissions included.
    pub(super) found: u32,
    /// Whether a retransmission is among them.
    pub(super) retransmission: bool,
    /// Expiry of the reordering timer for segments that may only be late (RFC 8985 section 6.2 step 5).
    pub(super) due: Option<Instant>,
}

impl Flight {
    pub(super) fn new() -> Self {
        Flight {
            records: VecDeque::new(),
            first: 0,
            sacked: 0,
            lost: 0,
            retransmitted: 0,
            repeated_to: 0,
            retransmissions: VecDeque::new(),
            checked: 0,
            repair_from: 0,
            latest: (Instant::ZERO, 0),
            rtt: Span::ZERO,
            min_rtt: Span::MAX,
            highest: 0,
            reordered: false,
            lost_by_timer: 0,
        }
    }

    fn end(&self) -> u32 {
        self.first + self.records.len() as u32
    }

    fn get(&self, seq: u32) -> Option<&Record> {
        self.records.get(seq.checked_sub(self.first)? as usize)
    }

    /// Segments in the network: neither arrived nor lost, and retransmissions.
    pub(super) fn in_network(&self) -> u32 {
        self.records.len() as u32 + self.retransmitted - self.sacked - self.lost
    }

    /// Smallest round-trip time of the connection.
    pub(super) fn min_rtt(&self) -> Option<Span> {
        (self.min_rtt < Span::MAX).then_some(self.min_rtt)
    }

    /// Whether segments have been SACKed.
    pub(super) fn has_gaps(&self) -> bool {
        self.sacked > 0
    }

    pub(super) fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Whether unacknowledged segments are lost.
    pub(super) fn has_losses(&self) -> bool {
        self.lost > 0
    }

    /// Whether every outstanding segment was sent once, and none has arrived or is lost.
    pub(super) fn is_clean(&self) -> bool {
        self.sacked == 0 && self.lost == 0 && self.repeated_to <= self.first
    }

    /// Records the first transmission of the next segment.
    #[inline(always)]
    pub(super) fn on_sent_new(&mut self, now: Instant) {
        self.records.push_back(Record { sent_at: now, state: 0 });
    }

    /// Removes the oldest `segments` of a [clean](Self::is_clean) flight, which have arrived, and returns their sending
    /// times. `None` without effect if a retransmission that has arrived was sent later: losses may be found then.
    #[inline(always)]
    pub(super) fn on_ack_in_order(&mut self, now: Instant, segments: u32) -> Option<SendTimes> {
        let first = self.records.front()?.sent_at;
        let last = self.records.get(segments as usize - 1)?.sent_at;
        if last < self.latest.0 {
            return None;
        }
        for _ in 0..segments {
            self.records.pop_front();
        }
        self.first += segments;
        (self.checked, self.repair_from) = (self.checked.max(self.first), self.repair_from.max(self.first));
        self.highest = self.first;
        self.rtt = now.saturating_since(last);
        self.min_rtt = self.min_rtt.min(self.rtt);
        self.latest = (last, self.first);
        Some(SendTimes { first, last })
    }

    /// Records a transmission or retransmission of segment `seq`.
    pub(super) fn on_sent(&mut self, now: Instant, seq: u32) {
        let Some(index) = seq.checked_sub(self.first) else { return };
        match self.records.get_mut(index as usize) {
            None => self.records.push_back(Record { sent_at: now, state: 0 }),
            // Duplicate of a segment that has arrived.
            Some(record) if record.is(SACKED) => {}
            Some(record) => {
                self.retransmitted += u32::from(!record.is(RETRANSMITTED));
                record.state |= RETRANSMITTED | EVER_RETRANSMITTED;
                record.sent_at = now;
                self.retransmissions.push_back((seq, now));
                self.repeated_to = self.repeated_to.max(seq + 1);
            }
        }
    }

    /// Processes an acknowledgement; calls `each` for every range that arrives. `original_before`: limit of the
    /// segments that count for [`first_sending`](AckOutcome::first_sending).
    pub(super) fn on_ack(
        &mut self,
        now: Instant,
        ack: &Ack,
        echo: Option<Instant>,
        original_before: u32,
        mut each: impl FnMut(u32, u32),
    ) -> AckOutcome {
        let mut outcome = AckOutcome::default();
        let (mut acked, mut sacked, mut ambiguous) = (None, None, false);
        while self.first < ack.ack {
            let Some(record) = self.records.pop_front() else { break };
            let seq = self.first;
            self.first += 1;
            self.remove(&record);
            ambiguous |= record.is(EVER_RETRANSMITTED);
            if record.is(SACKED) {
                self.sacked -= 1;
            } else {
                acked = SendTimes::including(acked, record.sent_at);
                outcome.delivered += 1;
                outcome.first_sending |= !record.is(EVER_RETRANSMITTED) && seq < original_before;
                each(seq, seq + 1);
                self.update_latest(now, seq, &record, echo);
            }
        }
        (self.checked, self.repair_from) = (self.checked.max(self.first), self.repair_from.max(self.first));
        for &(from, to) in ack.sack.as_slice() {
            for seq in from.max(self.first)..to.min(self.end()) {
                let record = self.records[(seq - self.first) as usize];
                if record.is(SACKED) {
                    continue;
                }
                self.remove(&record);
                self.records[(seq - self.first) as usize].state = record.state & EVER_RETRANSMITTED | SACKED;
                self.sacked += 1;
                outcome.delivered += 1;
                outcome.beyond_gap = true;
                if !record.is(EVER_RETRANSMITTED) {
                    sacked = SendTimes::including(sacked, record.sent_at);
                }
                outcome.first_sending |= !record.is(EVER_RETRANSMITTED) && seq < original_before;
                each(seq, seq + 1);
                self.update_latest(now, seq, &record, echo);
            }
        }
        let acked = acked.filter(|_| !ambiguous);
        outcome.send_times = acked.or(sacked).map(|times| SendTimes { last: sacked.unwrap_or(times).last, ..times });
        outcome
    }

    /// Whether a segment SACKed now was sent before the last transmission of the oldest one. Linux then restarts the
    /// timer, as the segments in flight have not had their full time.
    pub(super) fn restarts_timer(&self, outcome: AckOutcome) -> bool {
        let oldest = self.records.front();
        oldest.is_some_and(|oldest| outcome.send_times.is_some_and(|times| times.first < oldest.sent_at))
    }

    /// Removes a record that is no longer in flight from the counts.
    fn remove(&mut self, record: &Record) {
        self.lost -= u32::from(record.is(LOST));
        self.retransmitted -= u32::from(record.is(RETRANSMITTED));
    }

    /// Updates the latest arrival (RFC 8985 section 6.2 steps 1 to 3).
    fn update_latest(&mut self, now: Instant, seq: u32, record: &Record, echo: Option<Instant>) {
        let rtt = now.saturating_since(record.sent_at);
        let repeated = record.is(EVER_RETRANSMITTED);
        if !repeated {
            self.min_rtt = self.min_rtt.min(rtt);
            self.reordered |= seq + 1 < self.highest;
        } else if echo.is_some_and(|echo| echo < record.sent_at) || rtt < self.min_rtt {
            return; // the first transmission may have arrived
        }
        self.highest = self.highest.max(seq + 1);
        if (record.sent_at, seq + 1) > self.latest {
            self.latest = (record.sent_at, seq + 1);
            self.rtt = rtt;
        }
    }

    /// Reordering window (RFC 8985 section 6.2 step 4); zero while losses are evident and no reordering was seen.
    fn reordering_window(&self, repairing: bool, smoothed: Option<Span>) -> Span {
        if !self.reordered && (repairing || self.sacked >= DUPLICATES) || self.min_rtt == Span::MAX {
            return Span::ZERO;
        }
        (self.min_rtt / 4).min(smoothed.unwrap_or(Span::MAX))
    }

    /// Detects losses (RFC 8985 section 6.2 step 5).
    pub(super) fn find_losses(&mut self, now: Instant, repairing: bool, smoothed: Option<Span>) -> Losses {
        let mut losses = Losses::default();
        let wait = self.rtt + self.reordering_window(repairing, smoothed);
        let latest = self.latest;
        let before = |sent_at: Instant, seq: u32| (sent_at, seq + 1) < latest;
        let mut all_checked = true;
        for seq in self.checked..self.end() {
            let record = &mut self.records[(seq - self.first) as usize];
            if !record.is(SACKED | LOST | EVER_RETRANSMITTED) {
                if !before(record.sent_at, seq) {
                    break;
                }
                let due = record.sent_at.saturating_add(wait);
                if due > now {
                    losses.due = losses.due.max(Some(due));
                    all_checked = false;
                    continue;
                }
                record.state |= LOST;
                self.lost += 1;
                losses.found += 1;
                self.repair_from = self.repair_from.min(seq);
            }
            if all_checked {
                self.checked = seq + 1;
            }
        }
        while let Some(&(seq, sent_at)) = self.retransmissions.front() {
            let current = self.get(seq).is_some_and(|record| record.is(RETRANSMITTED) && record.sent_at == sent_at);
            if current {
                if !before(sent_at, seq) {
                    break;
                }
                let due = sent_at.saturating_add(wait);
                if due > now {
                    losses.due = losses.due.max(Some(due));
                    break;
                }
                self.lose_retransmission(seq);
                losses.found += 1;
                losses.retransmission = true;
            }
            self.retransmissions.pop_front();
        }
        losses
    }

    /// Marks a retransmission as lost.
    fn lose_retransmission(&mut self, seq: u32) {
        let record = &mut self.records[(seq - self.first) as usize];
        self.retransmitted -= 1;
        self.lost += u32::from(!record.is(LOST));
        record.state = record.state & !RETRANSMITTED | LOST;
        self.repair_from = self.repair_from.min(seq);
    }

    /// Timer expiry: the oldest segment and all overdue ones are lost (RFC 8985 section 6.3).
    pub(super) fn on_timeout(&mut self, now: Instant) {
        self.repair_from = self.first;
        for (index, record) in self.records.iter_mut().enumerate() {
            let overdue = record.sent_at.saturating_add(self.rtt) <= now;
            if record.is(SACKED) || !(index == 0 || overdue) {
                continue;
            }
            self.lost_by_timer += u32::from(record.is(RETRANSMITTED) || !record.is(LOST));
            self.retransmitted -= u32::from(record.is(RETRANSMITTED));
            self.lost += u32::from(!record.is(LOST));
            record.state = record.state & !RETRANSMITTED | LOST;
        }
    }

    /// Counts segments that a timer found lost.
    pub(super) fn add_lost_by_timer(&mut self, found: u32) {
        self.lost_by_timer += found;
    }

    /// Number of segments that a timer found lost since the last call.
    pub(super) fn take_lost_by_timer(&mut self) -> u32 {
        core::mem::take(&mut self.lost_by_timer)
    }

    /// Undoes a spurious timeout: segments that were not retransmitted are in flight again.
    pub(super) fn undo_losses(&mut self) {
        for record in &mut self.records {
            if record.is(LOST) {
                record.state &= !LOST;
                self.lost -= 1;
            }
        }
        self.checked = self.first;
    }

    /// First lost segment that waits for retransmission.
    pub(super) fn next_lost(&self) -> Option<u32> {
        if self.lost == 0 {
            return None;
        }
        let waits = |seq: &u32| self.get(*seq).is_some_and(|record| record.state & (LOST | RETRANSMITTED) == LOST);
        (self.repair_from.max(self.first)..self.end()).find(waits)
    }

    /// Records that the lost segment `seq` is being retransmitted.
    pub(super) fn on_repair(&mut self, seq: u32) {
        self.repair_from = seq + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::{Feedback, SackBlocks};
    use crate::testing::ms;

    /// Segments 0 to 9 are sent, one per millisecond, and `again` once more at 20 ms; then `number` and `runs` arrive.
    fn send_times(again: &[u32], number: u32, runs: &[(u32, u32)]) -> Option<(Instant, Instant)> {
        let mut flight = Flight::new();
        (0..10).for_each(|seq| flight.on_sent(ms(u64::from(seq)), seq));
        again.iter().for_each(|&seq| flight.on_sent(ms(20), seq));
        let mut sack = SackBlocks::EMPTY;
        assert!(runs.iter().all(|run| sack.push(run.0, run.1)));
        let ack = Ack { ack: number, window: 1000, ece: false, echo: ms(0), sack, feedback: Feedback::None };
        let times = flight.on_ack(ms(30), &ack, None, 10, |_, _| {}).send_times;
        times.map(|times| (times.first, times.last))
    }

    #[test]
    fn round_trips_run_from_the_first_to_be_acknowledged_and_the_last_to_arrive() {
        assert_eq!(send_times(&[], 3, &[]), Some((ms(0), ms(2))));
        assert_eq!(send_times(&[], 3, &[(7, 8), (5, 6)]), Some((ms(0), ms(7))));
        assert_eq!(send_times(&[], 0, &[(7, 8), (5, 6)]), Some((ms(5), ms(7))));
        // A retransmission is acknowledged: its sending time is ambiguous.
        assert_eq!(send_times(&[1], 3, &[]), None);
        assert_eq!(send_times(&[1], 3, &[(5, 7)]), Some((ms(5), ms(6))));
        assert_eq!(send_times(&[5], 0, &[(5, 7)]), Some((ms(6), ms(6))));
    }
}
