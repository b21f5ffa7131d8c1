//! TCP Vegas (Brakmo and Peterson, "TCP Vegas: end to end congestion avoidance on a global Internet", JSAC 13(8),
//! 1995): keeps two to four packets of its own in the queue, by comparing the round trip with the smallest one seen.
//!
//! ```text
//!   once a round trip:  diff = cwnd (rtt - base) / rtt
//!   slow start:         double every second round trip while diff <= gamma = 1, else end it
//!   afterwards:         cwnd + 1 if diff < alpha = 2, cwnd - 1 if diff > beta = 4
//! ```
//!
//! Deviations: the round trip is the smallest of a round, which delayed acknowledgements do not spoil (as in Linux and
//! ns-3); with fewer than three samples a round counts as Reno's. The paper's finer timeouts are left out: losses are
//! found and answered as by Reno.

use aqumen_units::Span;

use super::controller::{Acked, Controller, Terms, Window, may_grow, reno_growth};
use crate::tcp::TcpConfig;

const ALPHA: f64 = 2.0;
const BETA: f64 = 4.0;
const GAMMA: f64 = 1.0;

/// State of Vegas.
#[derive(Clone, Debug)]
pub(super) struct Vegas {
    /// Smallest round trip of the connection.
    base: Span,
    /// Smallest round trip of this round.
    smallest: Span,
    samples: u32,
    /// The round ends when this segment is acknowledged.
    end: u32,
    /// Slow start rests in this round, so that the round trip shows what the last one's growth did.
    rests: bool,
}

impl Vegas {
    pub(super) const TERMS: Terms =
        Terms { timestamps: Some("true: LEDBAT and Vegas measure the delay of each segment"), ..Terms::USUAL };

    pub(super) fn new() -> Self {
        Vegas { base: Span::MAX, smallest: Span::MAX, samples: 0, end: 0, rests: false }
    }
}

impl Controller for Vegas {
    fn on_ack(&mut self, cfg: &TcpConfig, acked: &Acked, window: &mut Window) {
        // The SYN is shorter than a data packet: its round trip would count as one without a queue.
        if let Some(rtt) = acked.rtt.filter(|_| !acked.opening) {
            self.base = self.base.min(rtt);
            self.smallest = self.smallest.min(rtt);
            self.samples += 1;
        }
        let slow_start = window.in_slow_start();
        let grows = may_grow(cfg, acked, window) && !acked.held && !(slow_start && self.rests);
        if acked.una < self.end {
            if slow_start && grows {
                window.cwnd = reno_growth(window.cwnd, true, acked.counted(cfg));
            }
            return;
        }
        if acked.segments == 0 {
            return;
        }
        let (smallest, samples) = (self.smallest, self.samples);
        (self.smallest, self.samples, self.end) = (Span::MAX, 0, acked.high);
        self.rests = !self.rests;
        if samples < 3 {
            if grows {
                let counted = if slow_start { acked.counted(cfg) } else { window.cwnd };
                window.cwnd = reno_growth(window.cwnd, slow_start, counted);
            }
            return;
        }
        let rtt = smallest.as_secs_f64();
        let diff = window.cwnd * (rtt - self.base.as_secs_f64()) / rtt;
        if slow_start {
            if diff > GAMMA {
                // What would just fill the path, and one more (as Linux).
                let target = window.cwnd * self.base.as_secs_f64() / rtt + 1.0;
                window.settle(window.cwnd.min(target).max(2.0));
            } else if grows {
                window.cwnd = reno_growth(window.cwnd, true, acked.counted(cfg));
            }
        } else if diff > BETA && !acked.repairing {
            window.settle((window.cwnd - 1.0).max(2.0));
        } else if diff < ALPHA && grows {
            window.cwnd += 1.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::controller::tests::acked;
    use super::*;

    /// The window after a round of ten acknowledgements; `base_ms` is the smallest round trip so far.
    fn after_round(cwnd: f64, ssthresh: u32, base_ms: u64, rtt_ms: u64) -> Window {
        after_samples(10, cwnd, ssthresh, base_ms, rtt_ms)
    }

    /// The same where the first so many of them measure a round trip.
    fn after_samples(samples: u32, cwnd: f64, ssthresh: u32, base_ms: u64, rtt_ms: u64) -> Window {
        let cfg = TcpConfig::vegas();
        let mut vegas = Vegas { base: Span::from_millis(base_ms), end: 10, ..Vegas::new() };
        let mut window = Window { cwnd, ssthresh };
        for una in 1..=10 {
            let rtt = (una <= samples).then_some(Span::from_millis(rtt_ms));
            vegas.on_ack(&cfg, &Acked { una, high: 20, rtt, flight: 1_000_000, ..acked() }, &mut window);
        }
        window
    }

    #[test]
    fn it_keeps_two_to_four_packets_in_the_queue() {
        // 20 x (110 - 100) / 110 = 1.8 < 2: one more.
        assert_eq!(after_round(20.0, 10, 100, 110).cwnd, 21.0);
        // 30 x 10 / 110 = 2.7: nothing.
        assert_eq!(after_round(30.0, 10, 100, 110).cwnd, 30.0);
        // 50 x 10 / 110 = 4.5 > 4: one less.
        assert_eq!(after_round(50.0, 10, 100, 110).cwnd, 49.0);
        // No queue at all.
        assert_eq!(after_round(50.0, 10, 100, 100).cwnd, 51.0);
    }

    #[test]
    fn a_round_with_less_than_three_measurements_is_reno_s() {
        // 50 x 10 / 110 = 4.5 > 4: one less; Reno has one more.
        assert_eq!([2, 3].map(|samples| after_samples(samples, 50.0, 10, 100, 110).cwnd), [51.0, 49.0]);
    }

    #[test]
    fn slow_start_doubles_until_one_packet_waits() {
        // Ten acknowledgements, ten segments, no queue.
        assert_eq!(after_round(10.0, 1000, 100, 100).cwnd, 20.0);
        // The round after it rests.
        let cfg = TcpConfig::vegas();
        let mut vegas = Vegas { base: Span::from_millis(100), end: 10, rests: true, ..Vegas::new() };
        let mut window = Window { cwnd: 20.0, ssthresh: 1000 };
        vegas.on_ack(&cfg, &Acked { una: 5, high: 20, flight: 1_000_000, ..acked() }, &mut window);
        assert_eq!(window.cwnd, 20.0);
        // Nine segments more, 19 x 20 / 120 = 3.2 > 1: the target is 19 x 100 / 120 + 1 = 16.83.
        let window = after_round(10.0, 1000, 100, 120);
        assert!((window.cwnd - (19.0 / 1.2 + 1.0)).abs() < 1e-9, "{window:?}");
        assert!(!window.in_slow_start());
    }
}
