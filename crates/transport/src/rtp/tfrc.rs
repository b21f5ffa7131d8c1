//! TCP-friendly rate control (RFC 5348): the throughput equation, the loss event rate, the sender's rules.
//!
//! Deviations: reports are sent at fixed intervals and at each new loss event, not once per round trip. A packet counts
//! as lost when a later one arrives first, since simulated paths do not reorder. The receive-rate limit is the higher
//! of the last two rates (X_recv_set of section 4.3), without the rules for data-limited senders. No oscillation
//! prevention (section 4.5).

use alloc::collections::VecDeque;

use aqumen_units::{Instant, Span};

use super::{Media, RtpConfig};

/// TCP throughput equation (RFC 5348 section 3.1, b = 1, t_RTO = 4 R): rate (bit/s) at packet size `bytes`, round-trip
/// time `rtt_s` (s) and `p` loss events per packet.
pub fn throughput(bytes: f64, rtt_s: f64, p: f64) -> f64 {
    let root = |x: f64| libm::sqrt(x);
    let window = root(2.0 * p / 3.0);
    let timeouts = 4.0 * 3.0 * root(3.0 * p / 8.0) * p * (1.0 + 32.0 * p * p);
    8.0 * bytes / (rtt_s * (window + timeouts))
}

/// Loss event rate at which the throughput equation gives `rate` (bit/s), by bisection to a relative 1e-9.
fn loss_rate_for(bytes: f64, rtt_s: f64, rate: f64) -> f64 {
    let (mut low, mut high) = (1e-10_f64, 1.0_f64);
    while high - low > 1e-9 * high {
        let middle = libm::sqrt(low * high);
        if throughput(bytes, rtt_s, middle) > rate { low = middle } else { high = middle }
    }
    high
}

/// Weights of the last eight loss intervals, newest first (RFC 5348 section 5.4).
const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// Loss-event history of the receiver.
#[derive(Clone, Debug, Default)]
pub(super) struct LossHistory {
    /// Intervals between loss events (packets), newest first.
    intervals: VecDeque<f64>,
    /// Time of the last loss event, and its first lost packet.
    event: Option<(Instant, u32)>,
}

impl LossHistory {
    /// Records the loss of the packets from `first` up to `media`; `receive_rate` (bit/s) is the recent receive rate.
    /// Returns whether a loss event began.
    pub(super) fn on_loss(
        &mut self,
        cfg: &RtpConfig,
        now: Instant,
        first: u32,
        media: &Media,
        receive_rate: f64,
    ) -> bool {
        let rtt = Span::from_micros(u64::from(media.rtt_us));
        if self.event.is_some_and(|(began, _)| now.saturating_since(began) < rtt) {
            return false;
        }
        match self.event {
            // Section 6.3.1: the first interval is the one that gives the rate so far.
            None => {
                let rtt_s = if rtt == Span::ZERO { cfg.report_interval } else { rtt }.as_secs_f64();
                let p = loss_rate_for(f64::from(cfg.payload_bytes()), rtt_s, receive_rate.max(1.0));
                self.intervals.push_front(1.0 / p);
            }
            Some((_, before)) => self.intervals.push_front(f64::from(first.saturating_sub(before).max(1))),
        }
        self.intervals.truncate(WEIGHTS.len());
        self.event = Some((now, first));
        true
    }

    /// Loss event rate p, with `highest` the highest sequence number received (section 5.4). The open interval counts
    /// if it lowers p.
    pub(super) fn loss_event_rate(&self, highest: u32) -> f64 {
        let Some((_, began)) = self.event else { return 0.0 };
        let open = f64::from(highest.saturating_sub(began)) + 1.0;
        let closed = mean(self.intervals.iter().copied());
        let with_open = mean(core::iter::once(open).chain(self.intervals.iter().copied()));
        1.0 / closed.max(with_open)
    }
}

fn mean(intervals: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut weights) = (0.0, 0.0);
    for (interval, weight) in intervals.zip(WEIGHTS) {
        sum += interval * weight;
        weights += weight;
    }
    sum / weights
}

/// Sender state (section 4.3).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sender {
    /// Receive rates of the last two reports (bit/s).
    receive_rates: [f64; 2],
    /// Time of the last doubling.
    doubled_at: Option<Instant>,
}

impl Sender {
    /// The rate after a report (bit/s).
    pub(super) fn on_report(
        &mut self,
        cfg: &RtpConfig,
        now: Instant,
        rate: f64,
        rtt: Span,
        loss_event_rate: f64,
        receive_rate: f64,
    ) -> f64 {
        self.receive_rates = [receive_rate, self.receive_rates[0]];
        let limit = 2.0 * self.receive_rates[0].max(self.receive_rates[1]);
        let bytes = f64::from(cfg.payload_bytes());
        if loss_event_rate > 0.0 {
            return throughput(bytes, rtt.as_secs_f64(), loss_event_rate).min(limit);
        }
        // Slow start: doubles the rate once per round trip.
        if self.doubled_at.is_some_and(|at| now.saturating_since(at) < rtt) {
            return rate;
        }
        self.doubled_at = Some(now);
        let initial = 8.0 * (4.0 * bytes).min((2.0 * bytes).max(4380.0)) / rtt.as_secs_f64();
        (2.0 * rate).min(limit).max(initial)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Message;
    use crate::testing::{assert_near, ms};

    fn media(seq: u32, rtt_us: u32) -> Media {
        let message = Message { bytes: 1000, number: seq, created_at: Instant::ZERO };
        Media { seq, timestamp: 0, message, offset: 0, payload: 1000, rtt_us }
    }

    fn near(left: f64, right: f64) {
        assert_near(left, right, 1e-6);
    }

    /// A loss every 100 packets: after nine events all eight intervals are 100, and p = 0.01. After 1000 more packets
    /// without loss the average is (1000 + 100 (3 + 0.8 + 0.6 + 0.4 + 0.2)) / 6 = 250.
    #[test]
    fn the_loss_event_rate_is_a_weighted_average_of_intervals() {
        let cfg = RtpConfig::tfrc();
        let mut history = LossHistory::default();
        assert_eq!(history.loss_event_rate(5), 0.0);
        for event in 1..=9u32 {
            let lost = 100 * event;
            let next = media(lost + 1, 50_000);
            assert!(history.on_loss(&cfg, ms(u64::from(lost) * 10), lost, &next, 500_000.0));
        }
        near(history.loss_event_rate(901), 0.01);
        near(history.loss_event_rate(900 + 999), 1.0 / 250.0);
    }

    #[test]
    fn losses_within_a_round_trip_are_one_event() {
        let cfg = RtpConfig::tfrc();
        let mut history = LossHistory::default();
        assert!(history.on_loss(&cfg, ms(1000), 100, &media(101, 50_000), 500_000.0));
        assert!(!history.on_loss(&cfg, ms(1049), 105, &media(106, 50_000), 500_000.0));
        assert!(history.on_loss(&cfg, ms(1050), 106, &media(107, 50_000), 500_000.0));
    }

    #[test]
    fn the_loss_rate_inverts_the_throughput_equation() {
        for p in [2e-8, 1e-6, 1e-4, 1e-2, 0.3] {
            let rate = throughput(1160.0, 0.05, p);
            assert!((loss_rate_for(1160.0, 0.05, rate) / p - 1.0).abs() < 2e-9, "{p}");
        }
    }

    /// Before a loss the rate doubles once per round trip, up to twice the receive rate. It starts at four packets per
    /// round trip, limited to 4380 bytes or two larger packets (RFC 5348 sections 4.2 and 4.3).
    #[test]
    fn the_rate_begins_with_a_few_packets_and_doubles_once_a_round_trip() {
        let rtt = Span::from_millis(100);
        // 8 bits in 0.1 s: four of 1000 bytes, 4380 bytes, two of 3000.
        for (payload, initial) in [(1000, 320e3), (1400, 350.4e3), (3000, 480e3)] {
            let cfg = RtpConfig { packet_bytes: payload + RtpConfig::tfrc().header_bytes, ..RtpConfig::tfrc() };
            let mut sender = Sender::default();
            let mut report = |millis, rate, arrives| sender.on_report(&cfg, ms(millis), rate, rtt, 0.0, arrives);
            near(report(0, 0.0, 0.0), initial);
            // Doubles again only after a round trip; limited to twice the higher of the last two receive rates.
            near(report(99, 500e3, 900e3), 500e3);
            near(report(100, 500e3, 900e3), 1000e3);
            near(report(200, 1000e3, 600e3), 1800e3);
            near(report(300, 1800e3, 600e3), 1200e3);
        }
    }

    /// At a round-trip time of 50 ms the first interval gives back the 500 kbit/s that arrived.
    #[test]
    fn the_first_loss_event_rate_gives_the_rate_so_far() {
        let cfg = RtpConfig::tfrc();
        let mut history = LossHistory::default();
        history.on_loss(&cfg, ms(1000), 20, &media(21, 50_000), 500_000.0);
        near(throughput(1160.0, 0.05, history.loss_event_rate(21)), 500_000.0);
    }
}
