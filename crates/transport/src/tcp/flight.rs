//! What a sender has under way, segment by segment: when each left, whether it has arrived, and which are lost by RACK
//! (RFC 8985 section 6): a segment is lost when one that left later has arrived and it has had a round trip and a
//! reordering window to do so. Retransmissions are judged like first transmissions, so a lost one is found without the
//! timer.
//!
//! ```text
//!   under way ---- acknowledged, SACK ----> arrived
//!       |  ^                                   ^
//!       v  | sent again                        |
//!      lost -----------------------------------+   (it had only been late)
//! ```
//!
//! Deviations from RFC 8985:
//! - The reordering window is a quarter of the smallest round trip and does not widen (section 6.2 step 4): receivers
//!   here do not report copies (D-SACK), which is what would widen it.
//! - The smallest round trip is that of the whole connection, not of the last minutes.

use alloc::collections::VecDeque;

use aqumen_units::{Instant, Span};

use super::Ack;

/// DupThresh of RFC 6675, for [`reordering_window`](Flight::reordering_window).
const DUPLICATES: u32 = 3;

/// It has arrived beyond a gap.
const ARRIVED: u8 = 1;
const LOST: u8 = 1 << 1;
/// A retransmission of it is under way.
const AGAIN: u8 = 1 << 2;
/// It has left more than once.
const REPEATED: u8 = 1 << 3;

/// A segment that has left and is not acknowledged.
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

/// All that is outstanding.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    /// From the oldest outstanding segment on.
    records: VecDeque<Record>,
    /// The number of the first record.
    first: u32,
    arrived: u32,
    lost: u32,
    again: u32,
    /// Retransmissions, in the order in which they left, and when.
    repeats: VecDeque<(u32, Instant)>,
    /// First transmissions before this segment are judged: arrived, lost or sent again.
    judged: u32,
    /// No segment before this one waits to be sent again.
    repair: u32,
    /// RACK.xmit_ts, RACK.end_seq and RACK.rtt: the latest segment to leave of those that have arrived.
    latest: (Instant, u32),
    rtt: Span,
    min_rtt: Span,
    /// RACK.fack: one past the highest segment that has arrived.
    highest: u32,
    /// RACK.reordering_seen.
    reordered: bool,
    /// Segments that a timer has found lost and nobody was told of.
    lost_by_timer: u32,
}

/// When segments left, of which each had left once only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Left {
    pub(super) first: Instant,
    pub(super) last: Instant,
}

impl Left {
    /// The same with one more, which left at `at`.
    fn with(known: Option<Left>, at: Instant) -> Option<Left> {
        let Left { first, last } = known.unwrap_or(Left { first: at, last: at });
        Some(Left { first: first.min(at), last: last.max(at) })
    }
}

/// What an acknowledgement has told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct News {
    /// Segments that have arrived.
    pub(super) delivered: u32,
    /// Of those, any that left once only and was under way when the timer went off.
    pub(super) first_sending: bool,
    /// Any of them beyond a gap.
    pub(super) beyond_gap: bool,
    /// By which of them Linux measures the round trip: the first that was acknowledged, unless any that is acknowledged
    /// had left twice, else the first beyond a gap; the last is the last beyond a gap, if any is.
    pub(super) left: Option<Left>,
}

/// What is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Losses {
    /// Segments found lost just now, retransmissions included.
    pub(super) found: u32,
    /// A retransmission is among them.
    pub(super) again: bool,
    /// When those that may only be late will be lost (RFC 8985 section 6.2 step 5).
    pub(super) due: Option<Instant>,
}

impl Flight {
    pub(super) fn new() -> Self {
        Flight {
            records: VecDeque::new(),
            first: 0,
            arrived: 0,
            lost: 0,
            again: 0,
            repeats: VecDeque::new(),
            judged: 0,
            repair: 0,
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

    /// Segments in the network: neither arrived nor lost, and those sent again.
    pub(super) fn in_network(&self) -> u32 {
        self.records.len() as u32 + self.again - self.arrived - self.lost
    }

    /// The smallest round trip so far.
    pub(super) fn min_rtt(&self) -> Option<Span> {
        (self.min_rtt < Span::MAX).then_some(self.min_rtt)
    }

    /// Whether something is missing that has not arrived by SACK.
    pub(super) fn has_gaps(&self) -> bool {
        self.arrived > 0
    }

    pub(super) fn arrived(&self) -> u32 {
        self.arrived
    }

    /// Whether any segment is lost and has not been acknowledged.
    pub(super) fn has_losses(&self) -> bool {
        self.lost > 0
    }

    /// Segment `seq` leaves; new, or once more.
    pub(super) fn on_sent(&mut self, now: Instant, seq: u32) {
        let Some(place) = seq.checked_sub(self.first) else { return };
        match self.records.get_mut(place as usize) {
            None => self.records.push_back(Record { sent_at: now, state: 0 }),
            // A copy of what has arrived: nobody waits for it.
            Some(record) if record.is(ARRIVED) => {}
            Some(record) => {
                self.again += u32::from(!record.is(AGAIN));
                record.state |= AGAIN | REPEATED;
                record.sent_at = now;
                self.repeats.push_back((seq, now));
            }
        }
    }

    /// An acknowledgement. Those that left once only and lie before `original_before` are told apart; `each` hears of
    /// every run that arrives.
    pub(super) fn on_ack(
        &mut self,
        now: Instant,
        ack: &Ack,
        echo: Option<Instant>,
        original_before: u32,
        mut each: impl FnMut(u32, u32),
    ) -> News {
        let mut news = News::default();
        let (mut acked, mut sacked, mut in_doubt) = (None, None, false);
        while self.first < ack.ack {
            let Some(record) = self.records.pop_front() else { break };
            let seq = self.first;
            self.first += 1;
            self.forget(&record);
            in_doubt |= record.is(REPEATED);
            if record.is(ARRIVED) {
                self.arrived -= 1;
            } else {
                acked = Left::with(acked, record.sent_at);
                news.delivered += 1;
                news.first_sending |= !record.is(REPEATED) && seq < original_before;
                each(seq, seq + 1);
                self.advance(now, seq, &record, echo);
            }
        }
        (self.judged, self.repair) = (self.judged.max(self.first), self.repair.max(self.first));
        for &(from, to) in ack.sack.as_slice() {
            for seq in from.max(self.first)..to.min(self.end()) {
                let record = self.records[(seq - self.first) as usize];
                if record.is(ARRIVED) {
                    continue;
                }
                self.forget(&record);
                self.records[(seq - self.first) as usize].state = record.state & REPEATED | ARRIVED;
                self.arrived += 1;
                news.delivered += 1;
                news.beyond_gap = true;
                if !record.is(REPEATED) {
                    sacked = Left::with(sacked, record.sent_at);
                }
                news.first_sending |= !record.is(REPEATED) && seq < original_before;
                each(seq, seq + 1);
                self.advance(now, seq, &record, echo);
            }
        }
        let acked = acked.filter(|_| !in_doubt);
        news.left = acked.or(sacked).map(|left| Left { last: sacked.unwrap_or(left).last, ..left });
        news
    }

    /// Whether what has arrived beyond a gap had left before the oldest segment did for the last time. Linux then
    /// restarts the timer: what is under way has not had the time that this took.
    pub(super) fn has_waited_for(&self, news: News) -> bool {
        let oldest = self.records.front();
        oldest.is_some_and(|oldest| news.left.is_some_and(|left| left.first < oldest.sent_at))
    }

    /// What counts of a record that is no longer under way.
    fn forget(&mut self, record: &Record) {
        self.lost -= u32::from(record.is(LOST));
        self.again -= u32::from(record.is(AGAIN));
    }

    /// RFC 8985 section 6.2 steps 1 to 3.
    fn advance(&mut self, now: Instant, seq: u32, record: &Record, echo: Option<Instant>) {
        let rtt = now.saturating_since(record.sent_at);
        let repeated = record.is(REPEATED);
        if !repeated {
            self.min_rtt = self.min_rtt.min(rtt);
            self.reordered |= seq + 1 < self.highest;
        } else if echo.is_some_and(|echo| echo < record.sent_at) || rtt < self.min_rtt {
            return; // it may have been the first one that arrived
        }
        self.highest = self.highest.max(seq + 1);
        if (record.sent_at, seq + 1) > self.latest {
            self.latest = (record.sent_at, seq + 1);
            self.rtt = rtt;
        }
    }

    /// RFC 8985 section 6.2 step 4: nothing is waited for while no reordering was seen and losses are evident.
    fn reordering_window(&self, repairing: bool, smoothed: Option<Span>) -> Span {
        if !self.reordered && (repairing || self.arrived >= DUPLICATES) || self.min_rtt == Span::MAX {
            return Span::ZERO;
        }
        (self.min_rtt / 4).min(smoothed.unwrap_or(Span::MAX))
    }

    /// RFC 8985 section 6.2 step 5.
    pub(super) fn find_losses(&mut self, now: Instant, repairing: bool, smoothed: Option<Span>) -> Losses {
        let mut losses = Losses::default();
        let patience = self.rtt + self.reordering_window(repairing, smoothed);
        let latest = self.latest;
        let before = |sent_at: Instant, seq: u32| (sent_at, seq + 1) < latest;
        let mut all_judged = true;
        for seq in self.judged..self.end() {
            let record = &mut self.records[(seq - self.first) as usize];
            if !record.is(ARRIVED | LOST | REPEATED) {
                if !before(record.sent_at, seq) {
                    break;
                }
                let due = record.sent_at.saturating_add(patience);
                if due > now {
                    losses.due = losses.due.max(Some(due));
                    all_judged = false;
                    continue;
                }
                record.state |= LOST;
                self.lost += 1;
                losses.found += 1;
                self.repair = self.repair.min(seq);
            }
            if all_judged {
                self.judged = seq + 1;
            }
        }
        while let Some(&(seq, sent_at)) = self.repeats.front() {
            let current = self.get(seq).is_some_and(|record| record.is(AGAIN) && record.sent_at == sent_at);
            if current {
                if !before(sent_at, seq) {
                    break;
                }
                let due = sent_at.saturating_add(patience);
                if due > now {
                    losses.due = losses.due.max(Some(due));
                    break;
                }
                self.lose_again(seq);
                losses.found += 1;
                losses.again = true;
            }
            self.repeats.pop_front();
        }
        losses
    }

    /// A retransmission is lost.
    fn lose_again(&mut self, seq: u32) {
        let record = &mut self.records[(seq - self.first) as usize];
        self.again -= 1;
        self.lost += u32::from(!record.is(LOST));
        record.state = record.state & !AGAIN | LOST;
        self.repair = self.repair.min(seq);
    }

    /// RFC 8985 section 6.3: the timer went off. The oldest segment is lost, and all that have had their time.
    pub(super) fn on_timeout(&mut self, now: Instant) {
        self.repair = self.first;
        for (place, record) in self.records.iter_mut().enumerate() {
            let overdue = record.sent_at.saturating_add(self.rtt) <= now;
            if record.is(ARRIVED) || !(place == 0 || overdue) {
                continue;
            }
            self.lost_by_timer += u32::from(record.is(AGAIN) || !record.is(LOST));
            self.again -= u32::from(record.is(AGAIN));
            self.lost += u32::from(!record.is(LOST));
            record.state = record.state & !AGAIN | LOST;
        }
    }

    /// A timer has found so many lost.
    pub(super) fn count_lost_by_timer(&mut self, found: u32) {
        self.lost_by_timer += found;
    }

    /// How many a timer has found lost since the last call.
    pub(super) fn take_lost_by_timer(&mut self) -> u32 {
        core::mem::take(&mut self.lost_by_timer)
    }

    /// Nothing was lost after all: what has not been sent again is under way.
    pub(super) fn take_back_losses(&mut self) {
        for record in &mut self.records {
            if record.is(LOST) {
                record.state &= !LOST;
                self.lost -= 1;
            }
        }
        self.judged = self.first;
    }

    /// The first segment that is lost and not yet sent again.
    pub(super) fn to_repair(&self) -> Option<u32> {
        if self.lost == 0 {
            return None;
        }
        let waits = |seq: &u32| self.get(*seq).is_some_and(|record| record.state & (LOST | AGAIN) == LOST);
        (self.repair.max(self.first)..self.end()).find(waits)
    }

    /// Segment `seq` of [`to_repair`](Self::to_repair) is being sent again.
    pub(super) fn repaired(&mut self, seq: u32) {
        self.repair = seq + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::{Feedback, SackBlocks};

    fn ms(millis: u64) -> Instant {
        Instant::ZERO + Span::from_millis(millis)
    }

    /// Segments 0 to 9 have left, one a millisecond, and `again` once more at 20 ms; then `number` and `runs` arrive.
    fn left(again: &[u32], number: u32, runs: &[(u32, u32)]) -> Option<(Instant, Instant)> {
        let mut flight = Flight::new();
        (0..10).for_each(|seq| flight.on_sent(ms(u64::from(seq)), seq));
        again.iter().for_each(|&seq| flight.on_sent(ms(20), seq));
        let mut sack = SackBlocks::EMPTY;
        assert!(runs.iter().all(|run| sack.push(run.0, run.1)));
        let ack = Ack { ack: number, window: 1000, ece: false, echo: ms(0), sack, feedback: Feedback::None };
        let left = flight.on_ack(ms(30), &ack, None, 10, |_, _| {}).left;
        left.map(|left| (left.first, left.last))
    }

    #[test]
    fn round_trips_run_from_the_first_to_be_acknowledged_and_the_last_to_arrive() {
        assert_eq!(left(&[], 3, &[]), Some((ms(0), ms(2))));
        assert_eq!(left(&[], 3, &[(7, 8), (5, 6)]), Some((ms(0), ms(7))));
        assert_eq!(left(&[], 0, &[(7, 8), (5, 6)]), Some((ms(5), ms(7))));
        // One of those acknowledged had left twice: which of them the receiver waited for nobody knows.
        assert_eq!(left(&[1], 3, &[]), None);
        assert_eq!(left(&[1], 3, &[(5, 7)]), Some((ms(5), ms(6))));
        assert_eq!(left(&[5], 0, &[(5, 7)]), Some((ms(6), ms(6))));
    }
}
