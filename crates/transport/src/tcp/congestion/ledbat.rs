//! LEDBAT (RFC 6817): a background transfer that yields to other flows by limiting its queueing delay to 100 ms.
//!
//! ```text
//!   queuing delay = smallest of the last 4 one-way delays - smallest of the last 10 minutes
//!   cwnd += GAIN (TARGET - queuing delay) / TARGET x acknowledged / cwnd
//! ```
//!
//! Parameters: TARGET 100 ms, GAIN 1, BASE_HISTORY 10 minutes, CURRENT_FILTER 4 samples, ALLOWED_INCREASE 1, MIN_CWND 2
//! (section 2.5). The receiver measures the delay of each segment (section 2.3). Both endpoints read the host's clock,
//! so clock skew (section 2.5, appendix A) does not arise.
//!
//! Deviations: no slow start (section 2.4.2 permits one). One acknowledgement reduces the window at most by half, as in
//! LEDBAT++ and deployed stacks, so that a large delay cannot make it negative.

use aqumen_units::{Instant, Span};

use super::controller::{AckSample, Controller, Properties, RequiredFeedback, Window};
use crate::tcp::TcpConfig;

const TARGET_S: f64 = 0.1;
const GAIN: f64 = 1.0;
const ALLOWED_INCREASE: f64 = 1.0;
const MIN_CWND: f64 = 2.0;
const BASE_HISTORY: usize = 10;
const CURRENT_FILTER: usize = 4;
const MINUTE: Span = Span::from_secs(60);

/// State of LEDBAT.
#[derive(Clone, Debug)]
pub(super) struct Ledbat {
    /// Smallest delay in each of the last minutes.
    base: [Span; BASE_HISTORY],
    /// Last delays, a ring buffer.
    current: [Span; CURRENT_FILTER],
    slot: usize,
    /// Start of the current minute.
    minute: Instant,
}

impl Ledbat {
    pub(super) const PROPERTIES: Properties = Properties {
        feedback: RequiredFeedback::OneWayDelay,
        timestamps: Some("true with LEDBAT or Vegas, which measure the delay of each segment"),
        ..Properties::RENO
    };

    pub(super) fn new() -> Self {
        Ledbat { base: [Span::MAX; BASE_HISTORY], current: [Span::MAX; CURRENT_FILTER], slot: 0, minute: Instant::ZERO }
    }

    /// `update_base_delay` and `update_current_delay` of section 2.4.2.
    fn add_delay(&mut self, now: Instant, delay: Span) {
        while now.saturating_since(self.minute) >= MINUTE {
            self.minute += MINUTE;
            self.base.rotate_right(1);
            self.base[0] = Span::MAX;
        }
        self.base[0] = self.base[0].min(delay);
        self.current[self.slot] = delay;
        self.slot = (self.slot + 1) % CURRENT_FILTER;
    }

    fn queuing_delay_s(&self) -> Option<f64> {
        let smallest = |of: &[Span]| of.iter().copied().min().filter(|&least| least != Span::MAX);
        Some(smallest(&self.current)?.saturating_sub(smallest(&self.base)?).as_secs_f64())
    }
}

impl Controller for Ledbat {
    fn on_ack(&mut self, _cfg: &TcpConfig, acked: &AckSample, window: &mut Window) {
        // The SYN is shorter than a data packet, and so is its delay.
        if let Some(delay) = acked.delay.filter(|_| !acked.opening) {
            self.add_delay(acked.now, delay);
        }
        let Some(queuing_s) = self.queuing_delay_s() else { return };
        if acked.segments == 0 || acked.repairing || acked.opening || acked.growth_blocked {
            return;
        }
        let off_target = (TARGET_S - queuing_s) / TARGET_S;
        let segments = f64::from(acked.segments);
        let grown = (window.cwnd + GAIN * off_target * segments / window.cwnd).max(window.cwnd / 2.0);
        // At most this much beyond the flight size, so that an idle sender's window does not grow (section 2.4.2).
        let most = f64::from(acked.flight) + ALLOWED_INCREASE;
        window.settle(grown.min(most).max(MIN_CWND));
    }
}

#[cfg(test)]
mod tests {
    use super::super::controller::tests::acked;
    use super::*;

    fn one(secs: u64, delay_ms: u64) -> AckSample {
        let now = Instant::ZERO + Span::from_secs(secs);
        AckSample { now, delay: Some(Span::from_millis(delay_ms)), flight: 1_000_000, ..acked() }
    }

    /// Window after one acknowledgement, where the last four delays are `delay_ms` and the smallest is 50 ms.
    fn step(delay_ms: u64) -> f64 {
        let mut ledbat = Ledbat::new();
        let mut window = Window { cwnd: 10.0, ssthresh: 10 };
        ledbat.on_ack(&TcpConfig::ledbat(), &one(1, 50), &mut window);
        for _ in 0..3 {
            ledbat.on_ack(&TcpConfig::ledbat(), &one(1, delay_ms), &mut window);
        }
        window = Window { cwnd: 10.0, ssthresh: 10 };
        ledbat.on_ack(&TcpConfig::ledbat(), &one(1, delay_ms), &mut window);
        window.cwnd
    }

    #[test]
    fn the_window_moves_by_the_distance_from_100_ms() {
        // No queue: a tenth of a segment. 75 ms of queue: a quarter of that. 100 ms: nothing. 150 ms: half a tenth
        // less.
        assert!((step(50) - 10.1).abs() < 1e-12);
        assert!((step(125) - 10.025).abs() < 1e-12);
        assert!((step(150) - 10.0).abs() < 1e-12);
        assert!((step(200) - 9.95).abs() < 1e-12);
        // Ten seconds of queue: 10 - 99 / 10 would be 0.1; limited to half.
        assert!((step(10_050) - 5.0).abs() < 1e-12);
    }

    #[test]
    fn a_base_delay_of_ten_minutes_ago_is_forgotten() {
        let mut ledbat = Ledbat::new();
        ledbat.add_delay(Instant::ZERO, Span::from_millis(50));
        for minute in 1..=9 {
            ledbat.add_delay(Instant::ZERO + Span::from_secs(60 * minute), Span::from_millis(80));
        }
        assert!((ledbat.queuing_delay_s().unwrap() - 0.03).abs() < 1e-12);
        ledbat.add_delay(Instant::ZERO + Span::from_secs(600), Span::from_millis(80));
        assert_eq!(ledbat.queuing_delay_s(), Some(0.0));
    }

    #[test]
    fn an_unused_window_does_not_grow() {
        let mut ledbat = Ledbat::new();
        let mut window = Window { cwnd: 50.0, ssthresh: 50 };
        ledbat.on_ack(&TcpConfig::ledbat(), &AckSample { flight: 5, ..one(1, 50) }, &mut window);
        assert_eq!(window.cwnd, 6.0);
    }
}
