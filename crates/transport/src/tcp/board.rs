//! What a SACK sender knows of the segments beyond the first that is missing: which arrived, which are lost, which it
//! has sent again (RFC 6675 section 4).
//!
//! Lost retransmissions are looked for if [`lost_retransmissions`](super::TcpConfig::lost_retransmissions) says so:
//! links keep the order here, so a retransmission is lost when something that left after it has arrived. As in the
//! TCP-Linux of ns-2, one new segment that does is enough; of other retransmissions it takes one that left more than
//! four later. RFC 8985 tells the same from times of departure and waits a quarter of the round trip for reordering.

use alloc::vec::Vec;

use super::reduction::Descent;
use super::scoreboard::Runs;
use super::{Ack, LossDetection, TcpConfig};

/// Segments that must have arrived beyond a lost one (DupThresh of RFC 6675).
pub(super) const DUPLICATES: u8 = 3;
/// With [`LossDetection::Fack`] the highest that arrived is so far beyond a lost one, and later retransmissions that
/// arrive are more than so many later.
const AHEAD: u32 = DUPLICATES as u32 + 1;

/// The board, and how the window comes down while it is repaired.
#[derive(Clone, Debug, Default)]
pub(super) struct Board {
    pub(super) arrived: Runs,
    /// HighRxt: one past the highest segment retransmitted in this recovery.
    pub(super) retransmitted_to: u32,
    /// RescueRxt: no rescue retransmission until this is acknowledged.
    pub(super) rescued_to: u32,
    pub(super) descent: Descent,
    /// Segments in the network as Sack1 of ns-2 counts them; below zero after more acknowledgements than it expected.
    pub(super) counted: i64,
    /// What left again, ascending; empty unless lost retransmissions are looked for.
    resent: Vec<Resent>,
    /// Retransmissions so far.
    order: u32,
    /// The latest of them that has arrived, counted from 1.
    latest: u32,
}

/// A segment that was sent again.
#[derive(Clone, Copy, Debug)]
struct Resent {
    seq: u32,
    /// The next new segment when it left.
    next: u32,
    /// Which retransmission it was, from 1.
    order: u32,
    /// It was lost too, and waits to be sent once more.
    lost: bool,
}

impl Board {
    /// A recovery begins: nothing has been sent again.
    pub(super) fn begin(&mut self, una: u32) {
        self.retransmitted_to = una;
        self.rescued_to = una;
        self.resent.clear();
        (self.order, self.latest) = (0, 0);
    }

    /// Takes in what an acknowledgement reports, with segments `una..high` outstanding; says how many are news.
    pub(super) fn add(&mut self, ack: &Ack, una: u32, high: u32) -> u32 {
        self.arrived.forget_before(una);
        let blocks = ack.sack.as_slice().iter();
        blocks.map(|&(first, end)| self.arrived.insert(first.max(una).max(ack.ack), end.min(high))).sum()
    }

    /// Segments below this that have not arrived are lost.
    pub(super) fn loss_edge(&self, cfg: &TcpConfig) -> Option<u32> {
        match cfg.loss_detection {
            LossDetection::Rfc6675 | LossDetection::Sack1 | LossDetection::Rack => {
                self.arrived.nth_highest(u32::from(DUPLICATES))
            }
            LossDetection::Fack => self.arrived.end().map(|end| end.saturating_sub(AHEAD)),
        }
    }

    /// The first segment from `seq` on that has not arrived.
    pub(super) fn first_missing(&self, seq: u32) -> u32 {
        self.arrived.run_with(seq).map_or(seq, |run| run.1)
    }

    /// Segments in the network (RFC 6675, SetPipe): those neither arrived nor lost, and those sent again.
    pub(super) fn pipe(&self, cfg: &TcpConfig, una: u32, high: u32) -> u32 {
        if cfg.is_sack1() {
            return self.counted.max(0) as u32;
        }
        let missing = |first: u32, end: u32| end.saturating_sub(first) - self.arrived.count_in(first, end);
        let lost = self.loss_edge(cfg).map_or(0, |edge| missing(una, edge));
        let lost_again = self.resent.iter().filter(|one| one.lost).count() as u32;
        missing(una, high) - lost + missing(una, self.retransmitted_to) - lost_again
    }

    /// Segment `seq` fills a hole; `next`: the next new segment.
    pub(super) fn on_resent(&mut self, cfg: &TcpConfig, seq: u32, next: u32) {
        self.retransmitted_to = self.retransmitted_to.max(seq + 1);
        if !cfg.lost_retransmissions {
            return;
        }
        self.order += 1;
        let one = Resent { seq, next, order: self.order, lost: false };
        match self.resent.binary_search_by_key(&seq, |known| known.seq) {
            Ok(index) => self.resent[index] = one,
            Err(index) => self.resent.insert(index, one),
        }
    }

    /// Which retransmissions have arrived and which are lost, now that everything before `una` is acknowledged; whether
    /// there are new ones of the latter.
    pub(super) fn check_resent(&mut self, una: u32) -> bool {
        let (arrived, latest) = (&self.arrived, &mut self.latest);
        let end = arrived.end().unwrap_or(una);
        let mut found = false;
        self.resent.retain_mut(|one| {
            if one.seq < una || arrived.run_with(one.seq).is_some() {
                *latest = (*latest).max(one.order);
                return false;
            }
            let overtaken = one.next < end || one.order + AHEAD < *latest;
            found |= overtaken && !one.lost;
            one.lost |= overtaken;
            true
        });
        found
    }

    /// The first retransmission that is lost and has not been repeated.
    pub(super) fn lost_again(&self) -> Option<u32> {
        self.resent.iter().find(|one| one.lost).map(|one| one.seq)
    }
}
