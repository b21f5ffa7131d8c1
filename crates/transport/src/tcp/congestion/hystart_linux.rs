//! HyStart of Linux's CUBIC (after Ha and Rhee, "Taming the elephants: New TCP slow start", 2011): leaves slow start by
//! either of two criteria.
//!
//! ```text
//!   train:  acknowledgements less than 2 ms apart span half the smallest round trip since the round began:
//!           the segments in flight fill the path                          |||||||||||||        |
//!                                                                         '-- rtt / 2 --'
//!   delay:  the smallest of nine round trips of the round is an eighth (4 to 16 ms) above the connection's smallest
//! ```
//!
//! HyStart applies from a window of 16 on; a round is a window of data. A paced sender's train may last the whole round
//! trip, with an allowance for segmentation offload: four largest bursts (64 KiB) at the rate of the window, at most 1
//! ms. A timeout resets it.
//!
//! Deviation: Linux takes no sample in the first second after a reduction.

use aqumen_units::{Instant, Span};

const LOW_WINDOW: f64 = 16.0;
/// Largest gap between acknowledgements of a train.
const GAP: Span = Span::from_millis(2);
const SAMPLES: u32 = 8;
const MIN_THRESHOLD: Span = Span::from_millis(4);
const MAX_THRESHOLD: Span = Span::from_millis(16);
/// Bytes of four largest bursts.
const BURSTS: f64 = 4.0 * 65536.0;
const MAX_BURSTS: Span = Span::from_millis(1);

/// State of Linux's HyStart.
#[derive(Clone, Debug)]
pub(super) struct HystartLinux {
    /// Segment beyond which an acknowledgement ends the round.
    end: u32,
    round_start: Instant,
    /// Last acknowledgement of the train.
    last: Instant,
    /// Smallest round-trip time of this round.
    current: Span,
    samples: u32,
}

/// Signals of an acknowledgement in slow start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observation {
    pub(super) now: Instant,
    /// Oldest segment outstanding after it.
    pub(super) una: u32,
    /// One past the highest segment sent.
    pub(super) high: u32,
    /// Round-trip sample.
    pub(super) rtt: Span,
    /// Smallest round-trip time of the connection.
    pub(super) min_rtt: Span,
    /// Smoothed round-trip time.
    pub(super) smoothed: Span,
    /// Window before this acknowledgement (segments).
    pub(super) cwnd: f64,
    pub(super) ssthresh: u32,
    pub(super) payload_bytes: u16,
    pub(super) paced: bool,
}

impl HystartLinux {
    pub(super) fn new() -> Self {
        HystartLinux { end: 0, round_start: Instant::ZERO, last: Instant::ZERO, current: Span::MAX, samples: 0 }
    }

    /// Whether slow start ends.
    pub(super) fn ends_slow_start(&mut self, observation: &Observation) -> bool {
        let Observation { now, min_rtt, .. } = *observation;
        if observation.cwnd < LOW_WINDOW {
            return false;
        }
        if observation.una > self.end {
            *self = HystartLinux { end: observation.high, round_start: now, last: now, current: Span::MAX, samples: 0 };
        }
        let mut over = false;
        if now.saturating_since(self.last) <= GAP {
            self.last = now;
            let whole = min_rtt + observation.bursts();
            let threshold = if observation.paced { whole } else { whole / 2 };
            over = now.saturating_since(self.round_start) > threshold;
        }
        self.current = self.current.min(observation.rtt);
        if self.samples < SAMPLES {
            self.samples += 1;
        } else {
            over |= self.current > min_rtt + (min_rtt / 8).clamp(MIN_THRESHOLD, MAX_THRESHOLD);
        }
        over
    }
}

impl Observation {
    /// Allowance for bursts: the pacing rate is twice the window per round trip in slow start, near its end 1.2 times.
    fn bursts(&self) -> Span {
        let ahead = if self.cwnd < f64::from(self.ssthresh / 2) { 2.0 } else { 1.2 };
        let round_bytes = ahead * self.cwnd * f64::from(self.payload_bytes);
        Span::from_secs_f64(self.smoothed.as_secs_f64() * BURSTS / round_bytes).min(MAX_BURSTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    extern crate std;

    const SLOW: Observation = Observation {
        now: Instant::ZERO,
        una: 2,
        high: 200,
        rtt: Span::ZERO,
        min_rtt: Span::ZERO,
        smoothed: Span::ZERO,
        cwnd: 100.0,
        ssthresh: 1_000_000,
        payload_bytes: 1448,
        paced: false,
    };

    /// Index of the first acknowledgement that ends slow start, given times (ms) and round trips (ms) of one round.
    /// `min_rtt`: smallest round-trip time (ms).
    fn first(like: Observation, min_rtt: u64, acks: &[(f64, u64)]) -> Option<usize> {
        let mut hystart = HystartLinux::new();
        let min_rtt = Span::from_millis(min_rtt);
        acks.iter().position(|&(at_ms, rtt)| {
            let now = Instant::ZERO + Span::from_secs_f64(1.0 + at_ms / 1e3);
            hystart.ends_slow_start(&Observation {
                now,
                rtt: Span::from_millis(rtt),
                min_rtt,
                smoothed: min_rtt,
                ..like
            })
        })
    }

    #[test]
    fn a_train_of_half_the_round_trip_ends_slow_start() {
        // One per millisecond. Smallest round-trip time 40 ms, and 1 ms of bursts: 40 ms x 262144 / (2 x 100 x 1448) =
        // 36 ms, at most 1.
        let train: std::vec::Vec<(f64, u64)> = (0..60).map(|k| (f64::from(k), 40)).collect();
        assert_eq!(first(SLOW, 40, &train), Some(21));
        // Paced, the whole round trip: beyond 41 ms.
        assert_eq!(first(Observation { paced: true, ..SLOW }, 40, &train), Some(42));
        // Inactive below a window of 16.
        assert_eq!(first(Observation { cwnd: 15.0, ..SLOW }, 40, &train), None);
        // 3 ms apart is no train.
        let sparse: std::vec::Vec<(f64, u64)> = (0..60).map(|k| (3.0 * f64::from(k), 40)).collect();
        assert_eq!(first(SLOW, 40, &sparse), None);
    }

    #[test]
    fn nine_round_trips_an_eighth_longer_end_slow_start() {
        let with = |rtt| -> std::vec::Vec<(f64, u64)> { (0..20).map(|k| (3.0 * f64::from(k), rtt)).collect() };
        // 80 + 10 = 90 ms does not exceed the threshold, 91 does, after eight samples.
        assert_eq!(first(SLOW, 80, &with(90)), None);
        assert_eq!(first(SLOW, 80, &with(91)), Some(8));
        // At least 4 ms, at most 16.
        assert_eq!(first(SLOW, 8, &with(12)), None);
        assert_eq!(first(SLOW, 8, &with(13)), Some(8));
        assert_eq!(first(SLOW, 400, &with(417)), Some(8));
        // One short sample among them: the path is not full.
        let mut mixed = with(91);
        mixed[5].1 = 80;
        assert_eq!(first(SLOW, 80, &mixed), None);
    }
}
