//! Outstanding DATA chunks: sent, and not yet acknowledged cumulatively.

use alloc::collections::VecDeque;

use super::{Data, Sack};

/// Missing reports after which a chunk is lost (RFC 9260 section 7.2.4).
const REPORTS: u8 = 3;

/// Chunks beyond the cumulative TSN, in ascending order.
#[derive(Clone, Debug)]
pub(super) struct Outstanding {
    /// TSN of the first chunk.
    first: u32,
    chunks: VecDeque<Chunk>,
    /// Chunk bytes in the network.
    flight: u32,
    /// Lost chunks that wait for retransmission.
    lost: u32,
    /// TSN below which no chunk is lost.
    lost_from: u32,
}

/// An outstanding chunk.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    data: Data,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// In the network, with its count of missing reports. `retransmitted`: a fast retransmit has been made, there is no
    /// second.
    InFlight { reports: u8, retransmitted: bool },
    /// Acknowledged by a gap ack block.
    Arrived { retransmitted: bool },
    /// Lost, waiting for retransmission.
    Lost { retransmitted: bool },
}

impl State {
    /// Whether the chunk was reported missing three times before.
    fn was_retransmitted(self) -> bool {
        let (State::InFlight { retransmitted, .. } | State::Arrived { retransmitted } | State::Lost { retransmitted }) =
            self;
        retransmitted
    }
}

/// Effect of a SACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SackOutcome {
    /// Newly acknowledged chunk bytes.
    pub(super) acked: u32,
    /// Whether the cumulative TSN advanced.
    pub(super) advanced: bool,
    /// Highest chunk newly lost, and whether the first outstanding chunk is newly lost.
    pub(super) lost: Option<u32>,
    pub(super) first_lost: bool,
    /// Whether the cumulative TSN passed a fast-retransmitted chunk.
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

    /// Adds a new chunk; its TSN is [`next`](Self::next).
    pub(super) fn push(&mut self, data: Data) {
        self.flight += data.bytes();
        self.chunks.push_back(Chunk { data, state: State::InFlight { reports: 0, retransmitted: false } });
    }

    /// Takes the first lost chunk for retransmission.
    pub(super) fn resend(&mut self) -> Option<Data> {
        if self.lost == 0 {
            return None;
        }
        let from = self.lost_from.saturating_sub(self.first) as usize;
        let index = (from..self.chunks.len()).find(|&at| matches!(self.chunks[at].state, State::Lost { .. }))?;
        let chunk = &mut self.chunks[index];
        let State::Lost { retransmitted } = chunk.state else { return None };
        chunk.state = State::InFlight { reports: 0, retransmitted };
        self.lost -= 1;
        self.lost_from = self.first + index as u32 + 1;
        self.flight += chunk.data.bytes();
        Some(chunk.data)
    }

    /// Timer expiry: marks every chunk in the network as lost (RFC 9260 section 6.3.3 rule E3).
    pub(super) fn lose_all(&mut self) {
        for chunk in &mut self.chunks {
            if let State::InFlight { retransmitted, .. } = chunk.state {
                chunk.state = State::Lost { retransmitted };
                self.lost += 1;
            }
        }
        self.flight = 0;
        self.lost_from = self.first;
    }

    /// Processes a SACK. `None` if it is outdated or acknowledges chunks never sent. In fast recovery a SACK that
    /// advances the cumulative TSN reports all missing chunks (section 7.2.4).
    pub(super) fn on_sack(&mut self, sack: &Sack, in_recovery: bool) -> Option<SackOutcome> {
        if sack.cumulative.checked_add(1)? < self.first || sack.cumulative >= self.next() {
            return None;
        }
        let mut outcome = SackOutcome { advanced: sack.cumulative >= self.first, ..SackOutcome::default() };
        let mut highest_new = 0;
        while self.first <= sack.cumulative {
            let Some(chunk) = self.chunks.pop_front() else { break };
            outcome.acked += self.arrive(&chunk);
            outcome.repaired |= chunk.state.was_retransmitted();
            self.first += 1;
        }
        let mut highest = 0;
        for &(first, last) in sack.blocks() {
            let first = sack.cumulative.saturating_add(u32::from(first)).max(self.first);
            let last = sack.cumulative.saturating_add(u32::from(last)).min(self.next() - 1);
            for tsn in first..=last {
                let index = (tsn - self.first) as usize;
                let chunk = self.chunks[index];
                self.chunks[index].state = State::Arrived { retransmitted: chunk.state.was_retransmitted() };
                if !matches!(chunk.state, State::Arrived { .. }) {
                    outcome.acked += self.arrive(&chunk);
                    highest_new = highest_new.max(tsn);
                }
                highest = highest.max(tsn);
            }
        }
        self.count_reports(if in_recovery && outcome.advanced { highest } else { highest_new }, &mut outcome);
        Some(outcome)
    }

    /// Removes an arrived chunk from the counts; returns its chunk bytes, 0 for a duplicate.
    fn arrive(&mut self, chunk: &Chunk) -> u32 {
        match chunk.state {
            State::Arrived { .. } => return 0,
            State::InFlight { .. } => self.flight -= chunk.data.bytes(),
            State::Lost { .. } => self.lost -= 1,
        }
        chunk.data.bytes()
    }

    /// Adds a missing report to each missing chunk before `end`, the highest newly acknowledged TSN.
    fn count_reports(&mut self, end: u32, outcome: &mut SackOutcome) {
        for index in 0..end.saturating_sub(self.first) as usize {
            let chunk = &mut self.chunks[index];
            let State::InFlight { reports, retransmitted: false } = &mut chunk.state else { continue };
            *reports += 1;
            if *reports == REPORTS {
                // A chunk is fast-retransmitted once; after that only the timer repairs it.
                chunk.state = State::Lost { retransmitted: true };
                self.flight -= chunk.data.bytes();
                self.lost += 1;
                self.lost_from = self.lost_from.min(self.first + index as u32);
                outcome.lost = Some(self.first + index as u32);
                outcome.first_lost |= index == 0;
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

    /// Flight and losses, recounted from the chunks.
    fn recount(outstanding: &Outstanding) -> (u32, u32) {
        let mut counts = (0, 0);
        for chunk in &outstanding.chunks {
            match chunk.state {
                State::InFlight { .. } => counts.0 += chunk.data.bytes(),
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
                        let again = outstanding.on_sack(&sack, in_recovery).map_or(0, |outcome| outcome.acked);
                        prop_assert_eq!(again, 0, "what arrived is outcome once");
                    }
                }
                prop_assert_eq!(recount(&outstanding), (outstanding.flight, outstanding.lost));
            }
        }
    }
}
