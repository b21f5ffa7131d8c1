//! Scoreboard of a SACK sender (RFC 6675 section 4): segments that arrived out of order, are lost, or were
//! retransmitted.
//!
//! With [`lost_retransmissions`](super::TcpConfig::lost_retransmissions) it also detects lost retransmissions. Links
//! keep the order here, so a retransmission is lost when a segment sent after it has arrived. As in the TCP-Linux of
//! ns-2, one later new segment is enough, or a retransmission more than four later. RFC 8985 compares sending times and
//! allows for reordering instead.

use alloc::vec::Vec;

use super::reduction::ReductionState;
use super::{Ack, LossDetection, TcpConfig};
use crate::range_set::RangeSet;

/// DupThresh of RFC 6675.
pub(super) const DUPLICATES: u8 = 3;
/// Reordering allowance of [`LossDetection::Fack`] (segments), also in the order of retransmissions.
const AHEAD: u32 = DUPLICATES as u32 + 1;

/// Scoreboard and window reduction of a loss recovery.
#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    pub(super) arrived: RangeSet,
    /// HighRxt: one past the highest segment retransmitted in this recovery.
    pub(super) retransmitted_to: u32,
    /// RescueRxt: no rescue retransmission until this segment is acknowledged.
    pub(super) rescued_to: u32,
    pub(super) reduction: ReductionState,
    /// Pipe as counted by Sack1 of ns-2; negative after more acknowledgements than it expected.
    pub(super) counted: i64,
    /// Retransmitted segments in ascending order; empty unless lost retransmissions are detected.
    retransmissions: Vec<Retransmission>,
    /// Number of retransmissions so far.
    order: u32,
    /// Highest order number of a retransmission that has arrived.
    latest: u32,
}

/// A retransmitted segment.
#[derive(Clone, Copy, Debug)]
struct Retransmission {
    seq: u32,
    /// Next new segment at the time of retransmission.
    next: u32,
    /// Order number of the retransmission, from 1.
    order: u32,
    /// Whether the retransmission was lost too, and has not been repeated.
    lost: bool,
}

impl Scoreboard {
    /// Starts a recovery.
    pub(super) fn begin(&mut self, una: u32) {
        self.retransmitted_to = una;
        self.rescued_to = una;
        self.retransmissions.clear();
        (self.order, self.latest) = (0, 0);
    }

    /// Adds the SACK blocks of an acknowledgement, with segments `una..high` outstanding; returns the number of newly
    /// arrived segments.
    pub(super) fn add(&mut self, ack: &Ack, una: u32, high: u32) -> u32 {
        self.arrived.remove_before(una);
        let blocks = ack.sack.as_slice().iter();
        blocks.map(|&(first, end)| self.arrived.insert(first.max(una).max(ack.ack), end.min(high))).sum()
    }

    /// Segment below which missing segments are lost.
    pub(super) fn loss_edge(&self, cfg: &TcpConfig) -> Option<u32> {
        match cfg.loss_detection {
            LossDetection::Rfc6675 | LossDetection::Sack1 | LossDetection::Rack => {
                self.arrived.nth_highest(u32::from(DUPLICATES))
            }
            LossDetection::Fack => self.arrived.end().map(|end| end.saturating_sub(AHEAD)),
        }
    }

    /// First segment from `seq` on that has not arrived.
    pub(super) fn first_missing(&self, seq: u32) -> u32 {
        self.arrived.range_containing(seq).map_or(seq, |run| run.1)
    }

    /// Segments in the network (SetPipe of RFC 6675): neither arrived nor lost, and retransmissions.
    pub(super) fn pipe(&self, cfg: &TcpConfig, una: u32, high: u32) -> u32 {
        if cfg.is_sack1() {
            return self.counted.max(0) as u32;
        }
        let missing = |first: u32, end: u32| end.saturating_sub(first) - self.arrived.count_in(first, end);
        let lost = self.loss_edge(cfg).map_or(0, |edge| missing(una, edge));
        let lost_retransmission = self.retransmissions.iter().filter(|entry| entry.lost).count() as u32;
        missing(una, high) - lost + missing(una, self.retransmitted_to) - lost_retransmission
    }

    /// Records the retransmission of segment `seq`; `next`: the next new segment.
    pub(super) fn on_retransmission(&mut self, cfg: &TcpConfig, seq: u32, next: u32) {
        self.retransmitted_to = self.retransmitted_to.max(seq + 1);
        if !cfg.lost_retransmissions {
            return;
        }
        self.order += 1;
        let entry = Retransmission { seq, next, order: self.order, lost: false };
        match self.retransmissions.binary_search_by_key(&seq, |other| other.seq) {
            Ok(index) => self.retransmissions[index] = entry,
            Err(index) => self.retransmissions.insert(index, entry),
        }
    }

    /// Removes arrived retransmissions and marks lost ones; everything before `una` is acknowledged. Returns whether a
    /// loss is new.
    pub(super) fn check_retransmissions(&mut self, una: u32) -> bool {
        let (arrived, latest) = (&self.arrived, &mut self.latest);
        let end = arrived.end().unwrap_or(una);
        let mut found = false;
        self.retransmissions.retain_mut(|entry| {
            if entry.seq < una || arrived.range_containing(entry.seq).is_some() {
                *latest = (*latest).max(entry.order);
                return false;
            }
            let overtaken = entry.next < end || entry.order + AHEAD < *latest;
            found |= overtaken && !entry.lost;
            entry.lost |= overtaken;
            true
        });
        found
    }

    /// First lost retransmission that has not been repeated.
    pub(super) fn lost_retransmission(&self) -> Option<u32> {
        self.retransmissions.iter().find(|entry| entry.lost).map(|entry| entry.seq)
    }
}
