//! NADA, network-assisted dynamic adaptation (RFC 8698): delay, losses and marks as one congestion signal.
//!
//! Deviations: the sending rate is the reference rate, without the encoder's buffer and rate shaping (end of section
//! 4.3). The loss interval that limits delay warping is an exponential average instead of RFC 5348's weighted average.

use alloc::collections::VecDeque;

use aqumen_units::{Ecn, Instant, Span};

use super::{Feedback, Media, RtpConfig};

/// Reference congestion level (s).
const XREF: f64 = 0.010;
/// Scaling of gradual updates.
const KAPPA: f64 = 0.5;
const ETA: f64 = 2.0;
/// Upper bound of the round trip in gradual updates (s).
const TAU: f64 = 0.5;
/// Observation window.
const LOGWIN: Span = Span::from_millis(500);
/// Queueing delay below which the rate may rise quickly (s).
const QEPS: f64 = 0.010;
/// Upper bound of filtering delay (s).
const DFILT: f64 = 0.120;
/// Upper bounds of the ramp-up factor and of the queueing delay that ramp-up may cause (s).
const GAMMA_MAX: f64 = 0.5;
const QBOUND: f64 = 0.050;
/// Delay warping: number of loss intervals after a loss, threshold (s), and scaling.
const MULTILOSS: f64 = 7.0;
const QTH: f64 = 0.050;
const LAMBDA: f64 = 0.5;
/// Reference ratios of loss and marking, and their equivalent delays (s).
const PLRREF: f64 = 0.01;
const PMRREF: f64 = 0.01;
const DLOSS: f64 = 0.010;
const DMARK: f64 = 0.002;
/// Smoothing factor of the ratios.
const ALPHA: f64 = 0.1;
/// Samples of the minimum delay filter.
const TAPS: usize = 15;

/// Receiver side (section 4.2).
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    /// Packets of the last [`LOGWIN`].
    window: VecDeque<Sample>,
    /// Smallest one-way delay (ns).
    base: u64,
    loss_ratio: f64,
    mark_ratio: f64,
    /// Smoothed interval between losses (packets), and sequence number of the last loss.
    loss_interval: f64,
    last_loss: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Instant,
    bytes: u16,
    /// Packets missing before this one.
    lost: u32,
    marked: bool,
    /// One-way delay (ns).
    delay: u64,
}

impl Receiver {
    pub(super) fn new() -> Self {
        Receiver {
            window: VecDeque::new(),
            base: u64::MAX,
            loss_ratio: 0.0,
            mark_ratio: 0.0,
            loss_interval: 0.0,
            last_loss: None,
        }
    }

    /// Records a packet sent at `sent_at`; `lost` packets are missing before it.
    pub(super) fn on_media(&mut self, now: Instant, sent_at: Instant, ecn: Ecn, media: &Media, lost: u32) {
        let delay = now.saturating_since(sent_at).as_nanos();
        self.base = self.base.min(delay);
        if lost > 0 {
            let interval = f64::from(media.seq.saturating_sub(self.last_loss.unwrap_or(0)));
            self.loss_interval +=
                if self.last_loss.is_none() { interval } else { ALPHA * (interval - self.loss_interval) };
            self.last_loss = Some(media.seq);
        }
        self.window.push_back(Sample { at: now, bytes: media.payload, lost, marked: ecn == Ecn::Ce, delay });
        self.discard_old(now);
    }

    /// Feedback at `now`; `highest` is the highest sequence number received.
    pub(super) fn feedback(&mut self, now: Instant, highest: u32) -> Feedback {
        self.discard_old(now);
        let arrived = self.window.len() as f64;
        let lost: f64 = self.window.iter().map(|sample| f64::from(sample.lost)).sum();
        let marked = self.window.iter().filter(|sample| sample.marked).count() as f64;
        let bits: f64 = self.window.iter().map(|sample| 8.0 * f64::from(sample.bytes)).sum();
        let ratio = |part: f64, of: f64| if of > 0.0 { part / of } else { 0.0 };
        self.loss_ratio += ALPHA * (ratio(lost, arrived + lost) - self.loss_ratio);
        self.mark_ratio += ALPHA * (ratio(marked, arrived) - self.mark_ratio);
        let queueing = |delay: u64| (delay - self.base.min(delay)) as f64 * 1e-9;
        let delay = self.window.iter().rev().take(TAPS).map(|sample| sample.delay).min().map_or(0.0, queueing);
        let recent =
            self.last_loss.is_some_and(|at| f64::from(highest.saturating_sub(at)) < MULTILOSS * self.loss_interval);
        let warped = warp(delay, recent);
        let square = |x: f64| x * x;
        Feedback::Nada {
            congestion: warped + square(self.mark_ratio / PMRREF) * DMARK + square(self.loss_ratio / PLRREF) * DLOSS,
            receive_rate: bits / LOGWIN.as_secs_f64(),
            ramp_up: lost == 0.0 && self.window.iter().all(|sample| queueing(sample.delay) < QEPS),
        }
    }

    fn discard_old(&mut self, now: Instant) {
        while self.window.front().is_some_and(|sample| now.saturating_since(sample.at) > LOGWIN) {
            self.window.pop_front();
        }
    }
}

/// Equation 1: after losses, discounts a long queueing delay, so that a flow can compete with loss-based ones.
fn warp(delay: f64, losses: bool) -> f64 {
    if losses && delay > QTH { QTH * libm::exp(-LAMBDA * (delay - QTH) / QTH) } else { delay }
}

/// Feedback in a report.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signal {
    /// x_curr (s).
    pub(super) congestion: f64,
    /// r_recv (bit/s).
    pub(super) receive_rate: f64,
    /// Neither losses nor queueing.
    pub(super) ramp_up: bool,
}

/// Sender side (section 4.3).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sender {
    /// x_prev (s).
    congestion: f64,
    last_report: Option<Instant>,
}

impl Sender {
    /// The rate after a report (bit/s).
    pub(super) fn on_report(&mut self, cfg: &RtpConfig, now: Instant, rate: f64, rtt: Span, signal: Signal) -> f64 {
        let Signal { congestion, receive_rate, ramp_up } = signal;
        let interval = cfg.report_interval.as_secs_f64();
        let elapsed = self.last_report.replace(now).map_or(interval, |last| now.saturating_since(last).as_secs_f64());
        let before = core::mem::replace(&mut self.congestion, congestion);
        if ramp_up {
            // Equations 3 and 4: accelerated ramp-up.
            let gamma = GAMMA_MAX.min(QBOUND / (rtt.as_secs_f64() + interval + DFILT));
            return rate.max((1.0 + gamma) * receive_rate);
        }
        // Equations 5 to 7, with priority 1: gradual update.
        let offset = congestion - XREF * cfg.max_rate.as_bps() as f64 / rate;
        let change = congestion - before;
        rate - KAPPA * (elapsed.min(TAU) / TAU) * (offset / TAU) * rate - KAPPA * ETA * (change / TAU) * rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_near;

    fn near(left: f64, right: f64) {
        assert_near(left, right, 1e-9);
    }

    /// Rate 500 kbit/s, RMAX 1.5 Mbit/s: offset 40 - 10 x 3 = 10 ms; after 100 ms, from 30 ms: change 10 ms.
    /// 500 000 (1 - 0.5 x 0.2 x 0.02 - 0.5 x 2 x 0.02) = 500 000 (1 - 0.002 - 0.02) = 489 000.
    #[test]
    fn the_gradual_update_follows_level_and_change() {
        let cfg = RtpConfig::nada();
        let start = Instant::ZERO;
        let mut sender = Sender { congestion: 0.030, last_report: Some(start) };
        let now = start + Span::from_millis(100);
        let signal = Signal { congestion: 0.040, receive_rate: 500_000.0, ramp_up: false };
        near(sender.on_report(&cfg, now, 500_000.0, Span::from_millis(50), signal), 489_000.0);
    }

    /// RTT 80 ms, interval 100 ms, filter 120 ms: gamma = 50 / 300 = 1/6.
    #[test]
    fn the_ramp_up_is_bounded_by_its_queueing_delay() {
        let cfg = RtpConfig::nada();
        let mut sender = Sender::default();
        let signal = Signal { congestion: 0.0, receive_rate: 300_000.0, ramp_up: true };
        let rate = sender.on_report(&cfg, Instant::ZERO, 300_000.0, Span::from_millis(80), signal);
        near(rate, 350_000.0);
    }

    /// 5 of 10 packets are marked, one more is lost: ratios, smoothed once, of 0.05 and 0.1 / 11. Without a queue that
    /// leaves 0.002 (0.05 / 0.01)^2 + 0.01 (0.1 / 11 / 0.01)^2 = 0.05 + 0.008 264.
    #[test]
    fn marks_and_losses_count_quadratically() {
        let mut receiver = Receiver::new();
        for seq in 0..10 {
            let now = Instant::ZERO + Span::from_millis(10 * u64::from(seq) + 40);
            let ecn = if seq < 5 { Ecn::Ce } else { Ecn::Ect0 };
            let message = crate::Message { bytes: 1000, number: seq, created_at: Instant::ZERO };
            let media = Media { seq, timestamp: 0, message, offset: 0, payload: 1000, rtt_us: 0 };
            receiver.on_media(
                now,
                Instant::ZERO + Span::from_millis(10 * u64::from(seq)),
                ecn,
                &media,
                u32::from(seq == 9),
            );
        }
        let now = Instant::ZERO + Span::from_millis(140);
        let Feedback::Nada { congestion, receive_rate, ramp_up } = receiver.feedback(now, 9) else { panic!("of NADA") };
        near(congestion, 0.05 + 0.01 * (10.0f64 / 11.0).powi(2));
        near(receive_rate, 10.0 * 8000.0 / 0.5);
        assert!(!ramp_up);
    }

    /// 100 ms against QTH 50 ms: 50 e^-0.5 = 30.3265 ms.
    #[test]
    fn losses_warp_a_long_delay() {
        near(warp(0.1, true), 0.030_326_532_985_631_67);
        near(warp(0.1, false), 0.1);
        near(warp(0.04, true), 0.04);
    }
}
