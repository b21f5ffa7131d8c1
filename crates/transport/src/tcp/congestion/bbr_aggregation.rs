//! How many segments acknowledgements bring at once, beyond what BBR's rate explains: its window has room for
//! them, so that it goes on sending while acknowledgements are held back (`bbr_update_ack_aggregation` of Linux,
//! since 5.1; not in the draft).
//!
//! An epoch begins when no more has been acknowledged than the rate brings in the time since the last one began.
//! What is acknowledged beyond that is the excess; its maximum over the last five to ten rounds counts, at most
//! what the rate brings in 100 ms.

use aqumen_units::Instant;

/// Linux: bbr_extra_acked_win_rtts.
const ROUNDS: u32 = 5;
/// Linux: bbr_extra_acked_max_us (s).
const LONGEST_S: f64 = 0.1;
/// Linux: bbr_ack_epoch_acked_reset_thresh.
const LONGEST_EPOCH: u32 = 1 << 20;

/// The excess of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Aggregation {
    /// Largest excess of the present window of rounds and of the one before (segments).
    excess: [u32; 2],
    current: usize,
    rounds: u32,
    epoch_at: Instant,
    /// Segments acknowledged since then.
    acked: u32,
}

impl Aggregation {
    /// Sending begins again after a silence.
    pub(super) fn restart(&mut self, now: Instant) {
        (self.epoch_at, self.acked) = (now, 0);
    }

    /// `delivered` segments have arrived; the rate is `bw` segments/s, the window `cwnd`.
    pub(super) fn on_ack(&mut self, now: Instant, delivered: u32, bw: f64, cwnd: f64, round_start: bool) {
        if delivered == 0 {
            return;
        }
        if round_start {
            self.rounds += 1;
            if self.rounds >= ROUNDS {
                self.rounds = 0;
                self.current = 1 - self.current;
                self.excess[self.current] = 0;
            }
        }
        let mut expected = (bw * now.saturating_since(self.epoch_at).as_secs_f64()) as u32;
        if self.acked <= expected || self.acked + delivered >= LONGEST_EPOCH {
            self.restart(now);
            expected = 0;
        }
        self.acked += delivered;
        let excess = (self.acked - expected).min(cwnd as u32);
        self.excess[self.current] = self.excess[self.current].max(excess);
    }

    /// Segments for which the window has room.
    pub(super) fn segments(&self, bw: f64) -> f64 {
        f64::from(self.excess[0].max(self.excess[1])).min(libm::floor(bw * LONGEST_S))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::testing::at;

    #[test]
    fn the_excess_is_what_came_beyond_the_rate_in_its_epoch() {
        let mut seen = Aggregation::default();
        // 100 segments/s. Three at 1 s begin an epoch (100 were expected since 0): excess 3.
        seen.on_ack(at(1000), 3, 100.0, 50.0, false);
        assert_eq!(seen.segments(100.0), 3.0);
        // 10 ms later one was expected, 3 + 5 have come: 7.
        seen.on_ack(at(1010), 5, 100.0, 50.0, false);
        assert_eq!(seen.segments(100.0), 7.0);
        // At 1.08 s eight were expected, and no more have come: a new epoch, with an excess of 2.
        seen.on_ack(at(1080), 2, 100.0, 50.0, false);
        assert_eq!((seen.segments(100.0), seen.acked), (7.0, 2));
        // At 60 segments/s 100 ms bring six; and the window of four bounds what is taken for excess.
        assert_eq!(seen.segments(60.0), 6.0);
        let mut small = Aggregation::default();
        small.on_ack(at(1000), 9, 100.0, 4.0, false);
        assert_eq!(small.segments(100.0), 4.0);
    }

    #[test]
    fn the_maximum_of_five_to_ten_rounds_counts() {
        let mut seen = Aggregation::default();
        seen.on_ack(at(1000), 9, 100.0, 50.0, true);
        // Each round one segment in 100 ms, where ten are expected.
        let mut after = Vec::new();
        for round in 1..=9 {
            seen.on_ack(at(1000 + 100 * round), 1, 100.0, 50.0, true);
            after.push(seen.segments(100.0));
        }
        // The window of the nine ends with the fifth round, the next one with the tenth.
        assert_eq!(after, [9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 1.0]);
    }
}
