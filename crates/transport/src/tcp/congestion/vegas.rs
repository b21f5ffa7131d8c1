//! TCP Vegas (Brakmo and Peterson, "TCP Vegas: end to end congestion avoidance on a global Internet", JSAC 13(8),
//! 1995): keeps two to four packets of the flow in the queue, by comparing the round-trip time with the smallest one.
//!
//! ```text
//!   once a round trip:  diff = cwnd (rtt - base) / rtt
//!   slow start:         double every second round trip while diff <= gamma = 1, then end
//!   afterwards:         cwnd + 1 if diff < alpha = 2, cwnd - 1 if diff > beta = 4
//! ```
//!
//! Deviations: the round-trip time is the smallest of a round, robust to delayed acknowledgements (as in Linux and
//! ns-3). A round with fewer than three samples grows like Reno. The paper's finer timeouts are omitted: losses are
//! handled as in Reno.

use aqumen_units::Span;

use super::controller::{AckSample, Controller, Properties, Window, may_grow, reno_growth};
use crate::tcp::TcpConfig;

const ALPHA: f64 = 2.0;
const BETA: f64 = 4.0;
const GAMMA: f64 = 1.0;

/// State of Vegas.
#[derive(Clone, Debug)]
pub(super) struct Vegas {
    /// Smallest round-trip time of the connection.
    base: Span,
    /// Smallest round-trip time of this round.
    smallest: Span,
    samples: u32,
    /// Segment whose acknowledgement ends the round.
    end: u32,
    /// Whether slow start pauses in this round, so that the round-trip time shows the effect of the last growth.
    pauses: bool,
}

impl Vegas {
    pub(super) const PROPERTIES: Properties = Properties {
        timestamps: Some("true with LEDBAT or Vegas, which measure the delay of each segment"),
        ..Properties::RENO
    };

    pub(super) fn new() -> Self {
        Vegas { base: Span::MAX, smallest: Span::MAX, samples: 0, end: 0, pauses: false }
    }
}

impl Controller for Vegas {
    fn on_ack(&mut self, cfg: &TcpConfig, acked: &AckSample, window: &mut Window) {
        // The SYN is shorter than a data packet; its round trip would appear to be without queueing.
        if let Some(rtt) = acked.rtt.filter(|_| !acked.opening) {
            self.base = self.base.min(rtt);
            self.smallest = self.smallest.min(rtt);
            self.samples += 1;
        }
        let slow_start = window.in_slow_start();
        let grows = may_grow(cfg, acked, window) && !acked.growth_blocked && !(slow_start && self.pauses);
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
        self.pauses = !self.pauses;
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
                // The window that just fills the path, and one more (as in Linux).
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

    /// Window after a round of ten acknowledgements; `base_ms`: smallest round-trip time so far.
    fn after_round(cwnd: f64, ssthresh: u32, base_ms: u64, rtt_ms: u64) -> Window {
        after_samples(10, cwnd, ssthresh, base_ms, rtt_ms)
    }

    /// Window after a round where only the first `samples` acknowledgements give a round-trip sample.
    fn after_samples(samples: u32, cwnd: f64, ssthresh: u32, base_ms: u64, rtt_ms: u64) -> Window {
        let cfg = TcpConfig::vegas();
        let mut vegas = Vegas { base: Span::from_millis(base_ms), end: 10, ..Vegas::new() };
        let mut window = Window { cwnd, ssthresh };
        for una in 1..=10 {
            let rtt = (una <= samples).then_some(Span::from_millis(rtt_ms));
            vegas.on_ack(&cfg, &AckSample { una, high: 20, rtt, flight: 1_000_000, ..acked() }, &mut window);
        }
        window
    }

    #[test]
    fn vegas_keeps_two_to_four_packets_in_the_queue() {
        // 20 x (110 - 100) / 110 = 1.8 < 2: one more.
        assert_eq!(after_round(20.0, 10, 100, 110).cwnd, 21.0);
        // 30 x 10 / 110 = 2.7: unchanged.
        assert_eq!(after_round(30.0, 10, 100, 110).cwnd, 30.0);
        // 50 x 10 / 110 = 4.5 > 4: one less.
        assert_eq!(after_round(50.0, 10, 100, 110).cwnd, 49.0);
        // No queue at all.
        assert_eq!(after_round(50.0, 10, 100, 100).cwnd, 51.0);
    }

    #[test]
    fn a_round_with_fewer_than_three_samples_grows_like_reno() {
        // 50 x 10 / 110 = 4.5 > 4: one less; Reno has one more.
        assert_eq!([2, 3].map(|samples| after_samples(samples, 50.0, 10, 100, 110).cwnd), [51.0, 49.0]);
    }

    #[test]
    fn slow_start_doubles_until_one_packet_waits() {
        // Ten acknowledgements, ten segments, no queue.
        assert_eq!(after_round(10.0, 1000, 100, 100).cwnd, 20.0);
        // The next round pauses.
        let cfg = TcpConfig::vegas();
        let mut vegas = Vegas { base: Span::from_millis(100), end: 10, pauses: true, ..Vegas::new() };
        let mut window = Window { cwnd: 20.0, ssthresh: 1000 };
        vegas.on_ack(&cfg, &AckSample { una: 5, high: 20, flight: 1_000_000, ..acked() }, &mut window);
        assert_eq!(window.cwnd, 20.0);
        // Nine segments more, 19 x 20 / 120 = 3.2 > 1: the target is 19 x 100 / 120 + 1 = 16.83.
        let window = after_round(10.0, 1000, 100, 120);
        assert!((window.cwnd - (19.0 / 1.2 + 1.0)).abs() < 1e-9, "{window:?}");
        assert!(!window.in_slow_start());
    }
}
