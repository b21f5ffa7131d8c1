//! Acknowledgement aggregation of BBR: segments acknowledged at once beyond the estimated rate. The window has room for
//! them, so that BBR keeps sending while acknowledgements are delayed (`bbr_update_ack_aggregation` of Linux, since
//! 5.1; not in the draft).
//!
//! An epoch begins when no more was acknowledged than the rate explains since the last epoch began. Acknowledged
//! segments beyond that are the excess. Its maximum over the last five to ten rounds counts, up to 100 ms at the rate.

use aqumen_units::Instant;

/// Linux: bbr_extra_acked_win_rtts.
const ROUNDS: u32 = 5;
/// Linux: bbr_extra_acked_max_us (s).
const LONGEST_S: f64 = 0.1;
/// Linux: bbr_ack_epoch_acked_reset_thresh.
const LONGEST_EPOCH: u32 = 1 << 20;

/// Aggregation estimate of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Aggregation {
    /// Largest excess of the current window of rounds and of the previous one (segments).
    excess: [u32; 2],
    current: usize,
    rounds: u32,
    epoch_at: Instant,
    /// Segments acknowledged since the epoch began.
    acked: u32,
}

impl Aggregation {
    /// Begins a new epoch.
    pub(super) fn restart(&mut self, now: Instant) {
        (self.epoch_at, self.acked) = (now, 0);
    }

    /// Records `delivered` segments at rate `bw` (segments/s) and window `cwnd`.
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

    /// Additional window (segments).
    pub(super) fn segments(&self, bw: f64) -> f64 {
        f64::from(self.excess[0].max(self.excess[1])).min(libm::floor(bw * LONGEST_S))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::testing::ms;

    #[test]
    fn the_excess_counts_segments_beyond_the_rate_in_its_epoch() {
        let mut seen = Aggregation::default();
        // 100 segments/s. Three at 1 s begin an epoch (100 were expected since 0): excess 3.
        seen.on_ack(ms(1000), 3, 100.0, 50.0, false);
        assert_eq!(seen.segments(100.0), 3.0);
        // 10 ms later one is expected, and 3 + 5 have arrived: 7.
        seen.on_ack(ms(1010), 5, 100.0, 50.0, false);
        assert_eq!(seen.segments(100.0), 7.0);
        // At 1.08 s eight are expected, and no more have arrived: a new epoch, with an excess of 2.
        seen.on_ack(ms(1080), 2, 100.0, 50.0, false);
        assert_eq!((seen.segments(100.0), seen.acked), (7.0, 2));
        // 60 segments/s make six in 100 ms; the window of four bounds the excess.
        assert_eq!(seen.segments(60.0), 6.0);
        let mut small = Aggregation::default();
        small.on_ack(ms(1000), 9, 100.0, 4.0, false);
        assert_eq!(small.segments(100.0), 4.0);
    }

    #[test]
    fn the_maximum_of_five_to_ten_rounds_counts() {
        let mut seen = Aggregation::default();
        seen.on_ack(ms(1000), 9, 100.0, 50.0, true);
        // One segment per round of 100 ms, where ten are expected.
        let mut after = Vec::new();
        for round in 1..=9 {
            seen.on_ack(ms(1000 + 100 * round), 1, 100.0, 50.0, true);
            after.push(seen.segments(100.0));
        }
        // The excess of nine expires with the second change of windows, in the tenth round.
        assert_eq!(after, [9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 1.0]);
    }
}
