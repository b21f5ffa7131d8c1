//! Policer detection of BBR: two intervals of high loss with equal delivery rates indicate a token bucket. Its rate
//! then holds for 48 rounds without probing (`bbr_lt_bw_sampling` of Linux; not in the draft).
//!
//! ```text
//!            first loss             four rounds, a loss, 20 % lost         the next interval has the same rate
//!   waiting ------------> sampling --------------------------------> one rate ------------------> policed
//!      ^                     |  more than 16 rounds, or limited             | another rate, stored      | 48 rounds
//!      +---------------------+----------------------------------------------+---------------------------+ of ProbeBW
//! ```

use aqumen_units::Instant;

/// Linux: bbr_lt_intvl_min_rtts, and four times that.
const ROUNDS_MIN: u32 = 4;
const ROUNDS_MAX: u32 = 16;
/// Linux: bbr_lt_loss_thresh, as a fraction of deliveries.
const LOSS_FRACTION: f64 = 50.0 / 256.0;
/// Linux: bbr_lt_bw_ratio, and bbr_lt_bw_diff (bytes/s).
const SAME_FRACTION: f64 = 0.125;
const SAME_BYTES: f64 = 500.0;
/// Linux: bbr_lt_bw_max_rtts.
const HELD_ROUNDS: u32 = 48;

/// Signals of an acknowledgement.
pub(super) struct Observation {
    pub(super) now: Instant,
    /// Segments found lost, and earlier losses not yet counted.
    pub(super) lost: u32,
    pub(super) lost_before: u32,
    /// Total number of delivered segments.
    pub(super) delivered: u32,
    /// Whether the delivery-rate sample is limited by the application.
    pub(super) limited: bool,
    pub(super) round_start: bool,
    /// Whether BBR is in ProbeBW.
    pub(super) probing: bool,
}

/// Policer detection of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Policer {
    /// Rate of the last interval (segments/s).
    last: Option<f64>,
    policed: bool,
    sampling: bool,
    /// Rounds of the interval, or since the detection.
    rounds: u32,
    /// Start of the interval, deliveries before it, and losses since.
    since: Instant,
    delivered: u32,
    lost: u32,
}

impl Policer {
    /// A policer that was just detected.
    #[cfg(test)]
    pub(super) fn detected(rate: f64) -> Self {
        Policer { last: Some(rate), policed: true, ..Policer::default() }
    }

    /// Rate of the detected policer (segments/s).
    pub(super) fn rate(&self) -> Option<f64> {
        self.last.filter(|_| self.policed)
    }

    /// Processes an acknowledgement with a delivery-rate sample.
    pub(super) fn on_ack(&mut self, observation: &Observation, payload_bytes: f64) {
        let &Observation { now, lost, lost_before, delivered, limited, round_start, probing } = observation;
        if self.policed {
            self.rounds += u32::from(probing && round_start);
            if self.rounds >= HELD_ROUNDS {
                *self = Policer::default();
            }
            return;
        }
        if !self.sampling {
            // The policer's tokens must be used up first.
            if lost > 0 {
                self.begin(now, delivered);
                self.sampling = true;
            }
        } else {
            self.lost += lost + lost_before;
        }
        if !self.sampling {
            return;
        }
        if limited {
            *self = Policer::default();
            return;
        }
        self.rounds += u32::from(round_start);
        if self.rounds < ROUNDS_MIN {
            return;
        }
        if self.rounds > ROUNDS_MAX {
            *self = Policer::default();
            return;
        }
        let (arrived, time_s) = (f64::from(delivered - self.delivered), now.saturating_since(self.since).as_secs_f64());
        if lost == 0 || arrived == 0.0 || f64::from(self.lost) < LOSS_FRACTION * arrived || time_s < 1e-3 {
            return;
        }
        self.end(now, delivered, arrived / time_s, payload_bytes);
    }

    /// Linux: bbr_lt_bw_interval_done.
    fn end(&mut self, now: Instant, delivered: u32, rate: f64, payload_bytes: f64) {
        if let Some(last) = self.last {
            let difference = (rate - last).abs();
            if difference <= SAME_FRACTION * last || difference * payload_bytes <= SAME_BYTES {
                self.last = Some((rate + last) / 2.0);
                (self.policed, self.rounds) = (true, 0);
                return;
            }
        }
        self.last = Some(rate);
        self.begin(now, delivered);
    }

    fn begin(&mut self, now: Instant, delivered: u32) {
        (self.since, self.delivered, self.lost, self.rounds) = (now, delivered, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use aqumen_units::Span;

    use super::*;

    /// An acknowledgement in round `round` of ProbeBW, of 100 ms each.
    fn observation(round: u32, delivered: u32, lost: u32, limited: bool) -> Observation {
        let now = Instant::ZERO + Span::from_millis(100 * u64::from(round));
        Observation { now, lost, lost_before: 0, delivered, limited, round_start: true, probing: true }
    }

    /// A path with rounds of 100 ms, in each of which `delivered` segments arrive and then `lost` are found lost.
    struct Path {
        policer: Policer,
        round: u32,
        delivered: u32,
        payload_bytes: f64,
    }

    impl Path {
        fn new() -> Path {
            Path { policer: Policer::default(), round: 0, delivered: 0, payload_bytes: 1448.0 }
        }

        fn round(&mut self, delivered: u32, lost: u32) -> Option<f64> {
            self.round += 1;
            self.delivered += delivered;
            self.policer.on_ack(&observation(self.round, self.delivered, lost, false), self.payload_bytes);
            self.policer.rate()
        }
    }

    #[test]
    fn two_intervals_of_one_rate_with_a_fifth_lost_are_a_policer() {
        let mut path = Path::new();
        // 20 of 25 arrive: 5 / 20 lost, above 50 / 256. The first loss opens the interval and is its first round. The
        // fourth round ends it, 300 ms later: 60 segments, 200 a second. The next interval ends with the fourth round
        // after that.
        let seen: Vec<_> = (0..8).map(|_| path.round(20, 5)).collect();
        assert_eq!(seen, [None, None, None, None, None, None, None, Some(200.0)]);
        // The rate holds for 48 rounds of ProbeBW.
        let held = (0..60).take_while(|_| path.round(20, 5).is_some()).count();
        assert_eq!(held, 47);
    }

    #[test]
    fn low_loss_unequal_rates_and_limited_senders_are_no_policer() {
        // 3 / 20 is below 50 / 256 (3.9 of 20).
        let mut path = Path::new();
        assert!((0..40).all(|_| path.round(20, 3).is_none()));
        // Intervals at 200, 100, 200 ... segments/s.
        let mut path = Path::new();
        for number in 0..40 {
            let delivered = if number / 4 % 2 == 0 { 20 } else { 10 };
            assert_eq!(path.round(delivered, 5), None, "{number}");
        }
        // 200 and 180: within an eighth. 200 and 170: not, but 30 segments of 10 B are within 500 B.
        for (delivered, payload_bytes, policed) in [(18, 1448.0, true), (17, 1448.0, false), (17, 10.0, true)] {
            let mut path = Path { payload_bytes, ..Path::new() };
            let seen: Vec<_> = (0..8).map(|round| path.round(if round < 4 { 20 } else { delivered }, 5)).collect();
            let between = 100.0 + 5.0 * f64::from(delivered);
            assert_eq!(seen[7], policed.then_some(between), "{delivered} {payload_bytes}");
        }
        // An application-limited sample ends the interval each time.
        let mut policer = Policer::default();
        for round in 1..40u32 {
            policer.on_ack(&observation(round, 20 * round, 5, round % 3 == 0), 1448.0);
            assert_eq!(policer.rate(), None, "{round}");
        }
    }
}
