//! The chunks that have been sent and not yet been acknowledged for good.

use alloc::collections::VecDeque;

use super::{Data, Sack};

/// Missing reports that make a chunk lost (RFC 9260 section 7.2.4).
const REPORTS: u8 = 3;

/// The chunks beyond the cumulative TSN, ascending.
#[derive(Clone, Debug)]
pub(super) struct Outstanding {
    /// TSN of the first.
    first: u32,
    chunks: VecDeque<Chunk>,
    /// Chunk bytes in the network.
    flight: u32,
    /// How many are lost and not yet sent again.
    lost: u32,
    /// No chunk before this TSN is lost.
    lost_from: u32,
}

/// A chunk.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    data: Data,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// In the network; reported missing so often, and it takes no part in fast retransmit if it did before.
    Flying { reports: u8, spent: bool },
    /// Acknowledged by a gap ack block.
    Arrived { spent: bool },
    /// To be sent again.
    Lost { spent: bool },
}

impl State {
    /// Whether the chunk was reported missing three times before.
    fn spent(self) -> bool {
        let (State::Flying { spent, .. } | State::Arrived { spent } | State::Lost { spent }) = self;
        spent
    }
}

/// What a SACK has told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct News {
    /// Chunk bytes that arrived.
    pub(super) acked: u32,
    /// Whether the cumulative TSN moved.
    pub(super) advanced: bool,
    /// The highest chunk that became lost, and whether the first outstanding became so.
    pub(super) lost: Option<u32>,
    pub(super) first_lost: bool,
    /// Whether the cumulative TSN moved over something that was fast retransmitted.
    pub(super) repaired: bool,
}

impl Outstanding {
    pub(super) fn new(first: u32) -> Self {
        Outstanding { first, chunks: VecDeque::new(), flight: 0, lost: 0, lost_from: first }
    }

    /// Chunk bytes in the network.
    pub(super) fn flight(&self) -> u32 {
        self.flight
    }

    pub(super) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    pub(super) fn has_lost(&self) -> bool {
        self.lost > 0
    }

    /// The next new TSN.
    pub(super) fn next(&self) -> u32 {
        self.first + self.chunks.len() as u32
    }

    /// Whether chunk `tsn` is known to have arrived.
    pub(super) fn has_arrived(&self, tsn: u32) -> bool {
        tsn < self.first || self.get(tsn).is_some_and(|chunk| matches!(chunk.state, State::Arrived { .. }))
    }

    /// A new chunk leaves; its TSN is [`next`](Self::next).
    pub(super) fn push(&mut self, data: Data) {
        self.flight += data.bytes();
        self.chunks.push_back(Chunk { data, state: State::Flying { reports: 0, spent: false } });
    }

    /// The first lost chunk leaves again.
    pub(super) fn resend(&mut self) -> Option<Data> {
        if self.lost == 0 {
            return None;
        }
        let from = self.lost_from.saturating_sub(self.first) as usize;
        let index = (from..self.chunks.len()).find(|&at| matches!(self.chunks[at].state, State::Lost { .. }))?;
        let chunk = &mut self.chunks[index];
        let State::Lost { spent } = chunk.state else { return None };
        chunk.state = State::Flying { reports: 0, spent };
        self.lost -= 1;
        self.lost_from = self.first + index as u32 + 1;
        self.flight += chunk.data.bytes();
        Some(chunk.data)
    }

    /// The timer expired: whatever has not arrived is lost (RFC 9260 section 6.3.3 rule E3).
    pub(super) fn lose_all(&mut self) {
        for chunk in &mut self.chunks {
            if let State::Flying { spent, .. } = chunk.state {
                chunk.state = State::Lost { spent };
                self.lost += 1;
            }
        }
        self.flight = 0;
        self.lost_from = self.first;
    }

    /// What `sack` says. `None` if it is older than one before or speaks of chunks never sent. In fast recovery a SACK
    /// that advances reports all that is missing (section 7.2.4).
    pub(super) fn on_sack(&mut self, sack: &Sack, in_recovery: bool) -> Option<News> {
        if sack.cumulative.checked_add(1)? < self.first || sack.cumulative >= self.next() {
            return None;
        }
        let mut news = News { advanced: sack.cumulative >= self.first, ..News::default() };
        let mut highest_new = 0;
        while self.first <= sack.cumulative {
            let Some(chunk) = self.chunks.pop_front() else { break };
            news.acked += self.arrive(&chunk);
            news.repaired |= chunk.state.spent();
            self.first += 1;
        }
        let mut highest = 0;
        for &(first, last) in sack.blocks() {
            let first = sack.cumulative.saturating_add(u32::from(first)).max(self.first);
            let last = sack.cumulative.saturating_add(u32::from(last)).min(self.next() - 1);
            for tsn in first..=last {
                let index = (tsn - self.first) as usize;
                let chunk = self.chunks[index];
                self.chunks[index].state = State::Arrived { spent: chunk.state.spent() };
                if !matches!(chunk.state, State::Arrived { .. }) {
                    news.acked += self.arrive(&chunk);
                    highest_new = highest_new.max(tsn);
                }
                highest = highest.max(tsn);
            }
        }
        self.count_reports(if in_recovery && news.advanced { highest } else { highest_new }, &mut news);
        Some(news)
    }

    /// Takes a chunk that arrived out of the counts; returns its chunk bytes if that is news.
    fn arrive(&mut self, chunk: &Chunk) -> u32 {
        match chunk.state {
            State::Arrived { .. } => return 0,
            State::Flying { .. } => self.flight -= chunk.data.bytes(),
            State::Lost { .. } => self.lost -= 1,
        }
        chunk.data.bytes()
    }

    /// One more report for each chunk missing before `end`: only what was overtaken by something new counts.
    fn count_reports(&mut self, end: u32, news: &mut News) {
        for index in 0..end.saturating_sub(self.first) as usize {
            let chunk = &mut self.chunks[index];
            let State::Flying { reports, spent: false } = &mut chunk.state else { continue };
            *reports += 1;
            if *reports == REPORTS {
                // What was fast retransmitted once waits for the timer if it is lost again.
                chunk.state = State::Lost { spent: true };
                self.flight -= chunk.data.bytes();
                self.lost += 1;
                self.lost_from = self.lost_from.min(self.first + index as u32);
                news.lost = Some(self.first + index as u32);
                news.first_lost |= index == 0;
            }
        }
    }

    fn get(&self, tsn: u32) -> Option<&Chunk> {
        self.chunks.get(tsn.checked_sub(self.first)? as usize)
    }
}

#[cfg(test)]
mod tests {
    use aqumen_units::Instant;
    use proptest::prelude::*;

    use super::*;
    use crate::Message;

    /// Flight and losses, counted anew.
    fn recount(outstanding: &Outstanding) -> (u32, u32) {
        let mut counts = (0, 0);
        for chunk in &outstanding.chunks {
            match chunk.state {
                State::Flying { .. } => counts.0 += chunk.data.bytes(),
                State::Lost { .. } => counts.1 += 1,
                State::Arrived { .. } => {}
            }
        }
        counts
    }

    proptest! {
        #[test]
        fn every_chunk_is_in_flight_arrived_or_lost(
            steps in prop::collection::vec((0u8..10, 0u32..12, 1u16..20, 0u16..6, any::<bool>()), 1..300),
        ) {
            let mut outstanding = Outstanding::new(1);
            for (kind, ahead, first, length, in_recovery) in steps {
                match kind {
                    0..4 => {
                        let payload = 100 * (kind as u16 + 1);
                        let message = Message { bytes: u32::from(payload), number: 0, created_at: Instant::ZERO };
                        let tsn = outstanding.next();
                        outstanding.push(Data { tsn, ssn: 0, stream: 0, message, offset: 0, payload, cwr: None });
                    }
                    4..6 => {
                        let lost = outstanding.has_lost();
                        prop_assert_eq!(outstanding.resend().is_some(), lost);
                    }
                    6 if ahead == 0 => outstanding.lose_all(),
                    _ => {
                        let mut sack = Sack::new((outstanding.first - 1 + ahead / 4).min(outstanding.next() - 1), 0);
                        sack.push(first, first + length);
                        let before = outstanding.flight();
                        prop_assert!(outstanding.on_sack(&sack, in_recovery).is_some(), "it is plausible");
                        prop_assert!(outstanding.flight() <= before, "a SACK puts nothing into the network");
                        let again = outstanding.on_sack(&sack, in_recovery).map_or(0, |news| news.acked);
                        prop_assert_eq!(again, 0, "what arrived is news once");
                    }
                }
                prop_assert_eq!(recount(&outstanding), (outstanding.flight, outstanding.lost));
            }
        }
    }
}
