//! CUBIC 2.1 of Linux 2.6.22 and of ns-2.35 (`Agent/TCP/Linux`), for cross-checks: the algorithm of the 2005 paper in
//! whole segments and milliseconds. Today's CUBIC is [`cubic`](super::cubic).
//!
//! Differences from RFC 9438:
//! - The window grows by one segment after `count` acknowledgements and one more. `count` is cwnd / (target - cwnd),
//!   rounded down, and updated when the window has grown or 31 ms have passed.
//! - `count` is divided by an estimate of the segments per acknowledgement. The estimate starts at two in units of
//!   1/16, rounded down, and stays at 31/16 where each segment is acknowledged: growth towards the target is nearly
//!   twice as fast.
//! - The target is the cubic one **smallest** round trip ahead. Beyond the plateau a step is at most 16 segments in 100
//!   ms.
//! - Reno's growth is that of a reduction to 0.8, one segment per 23/8 windows; it is computed before ns-2 can set the
//!   reduction to 0.7.
//! - Before the first loss, and between a timeout and the next loss, congestion avoidance grows by one segment per 50
//!   acknowledgements (counted as above), or as Reno if that is more. A timeout clears all other state too.
//! - Slow start continues while the window does not exceed the threshold. An acknowledgement increases the window
//!   before a loss that it reveals reduces it; the one that ends a recovery does not.
//!
//! Deviation: the cube root is exact, not a table with one Newton step (0.2 % of K).

use super::controller::{AckSample, Controller, Properties, Signal, Window};
use crate::tcp::TcpConfig;

/// Reduction factor (in 1/1024).
const BETA: u32 = 717;
const SCALE: u32 = 1024;
/// 1024 C, for a cubic in s^3: 41 per round trip of 100 ms.
const C: u64 = 410;
/// Reno's growth: one segment per this number of eighths of a window, 8 / 3 (1 + 0.8) / (1 - 0.8) in integers.
const RENO_EIGHTHS: u32 = 23;
/// Largest step beyond the plateau in 100 ms (segments).
const MAX_STEP: u64 = 16;
/// Age (ms) at which `count` is updated.
const UPDATE_AGE: u32 = 1000 / 32;
const SECOND: u32 = 1000;

/// State of CUBIC 2.1. Times are in ms of a clock that starts at 0.
#[derive(Clone, Debug)]
pub(super) struct Cubic21 {
    /// Acknowledgements per step, less one.
    count: u32,
    /// Acknowledgements since the last step (snd_cwnd_cnt).
    counted: u32,
    /// Window at the last reduction, less with fast convergence; 0: none.
    last_max: u32,
    /// Whether a loss has occurred since the start or the last timeout.
    has_lost: bool,
    /// Window and time of the last update of `count`.
    updated: (u32, u32),
    /// Plateau, and the time to it after `epoch` (1/1024 s).
    plateau: u32,
    k: u64,
    /// Start of this stage of congestion avoidance; 0: not started.
    epoch: u32,
    /// Smallest round-trip time (ms); 0: unknown.
    min_rtt: u32,
    /// Acknowledgements that Reno's window has not counted yet, and that window.
    acks: u32,
    reno: u32,
    /// Segments per acknowledgement (in 1/16).
    ratio: i64,
    /// Repair after a timeout.
    repair: Repair,
}

/// Repair of the data outstanding at a timeout.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Repair {
    Done,
    /// A timeout has just occurred.
    Begins,
    /// In progress until this segment is acknowledged.
    Until(u32),
}

impl Cubic21 {
    pub(super) const PROPERTIES: Properties = Properties { precedes_sender: true, ..Properties::RENO };

    pub(super) fn new() -> Self {
        Cubic21 {
            count: 0,
            counted: 0,
            last_max: 0,
            has_lost: false,
            updated: (0, 0),
            plateau: 0,
            k: 0,
            epoch: 0,
            min_rtt: 0,
            acks: 0,
            reno: 0,
            ratio: 32,
            repair: Repair::Done,
        }
    }

    fn measure(&mut self, now: u32, acked: &AckSample) {
        let Some(rtt) = acked.rtt else { return };
        // The first second of a stage is excluded.
        if now.saturating_sub(self.epoch) < SECOND {
            return;
        }
        let sent = (acked.now.as_nanos().saturating_sub(rtt.as_nanos()) + 500_000) / 1_000_000;
        let rtt = now.saturating_sub(sent as u32).max(1);
        if self.min_rtt == 0 || rtt < self.min_rtt {
            self.min_rtt = rtt;
        }
    }

    fn grow(&mut self, cfg: &TcpConfig, now: u32, window: &mut Window) {
        let below_limit = window.cwnd < f64::from(cfg.receive_window);
        if window.cwnd <= f64::from(window.ssthresh) {
            window.cwnd += f64::from(u8::from(below_limit));
            return;
        }
        self.update(now, window.cwnd as u32);
        if self.counted >= self.count {
            window.cwnd += f64::from(u8::from(below_limit));
            self.counted = 0;
        } else {
            self.counted += 1;
        }
    }

    /// Updates `count` if it is out of date.
    fn update(&mut self, now: u32, cwnd: u32) {
        self.acks += 1;
        if self.updated.0 == cwnd && now - self.updated.1 <= UPDATE_AGE {
            return;
        }
        self.updated = (cwnd, now);
        if self.epoch == 0 {
            self.epoch = now;
            self.acks = 1;
            self.reno = cwnd;
            self.plateau = self.last_max.max(cwnd);
            self.k = cube_root((u64::from(self.plateau - cwnd) << 40) / C);
        }
        let t = (u64::from(now + self.min_rtt - self.epoch) << 10) / u64::from(SECOND);
        let offset = t.abs_diff(self.k).min(1 << 17);
        let delta = ((C * offset * offset * offset) >> 40) as u32;
        let target = if t < self.k { self.plateau.saturating_sub(delta) } else { self.plateau + delta };
        self.count = if target > cwnd { cwnd / (target - cwnd) } else { 100 * cwnd };
        if self.min_rtt > 0 && t >= self.k {
            let least = u64::from(cwnd) * 1000 / (10 * MAX_STEP * u64::from(self.min_rtt));
            self.count = self.count.max(least as u32);
        }
        if !self.has_lost {
            self.count = 50;
        }
        let window_of_acks = (cwnd * RENO_EIGHTHS) >> 3;
        while self.acks > window_of_acks {
            self.acks -= window_of_acks;
            self.reno += 1;
        }
        if self.reno > cwnd {
            self.count = self.count.min(cwnd / (self.reno - cwnd));
        }
        self.count = ((u64::from(self.count) << 4) / self.ratio.max(1) as u64).max(1) as u32;
    }
}

impl Controller for Cubic21 {
    fn on_ack(&mut self, cfg: &TcpConfig, acked: &AckSample, window: &mut Window) {
        let repairs = self.repair != Repair::Done;
        if self.repair == Repair::Begins {
            self.repair = Repair::Until(acked.high);
        }
        if acked.segments == 0 {
            return;
        }
        if matches!(self.repair, Repair::Until(end) if acked.una >= end) {
            self.repair = Repair::Done;
        }
        let now = (acked.now.as_nanos() / 1_000_000) as u32;
        if !repairs && !acked.repairing {
            self.ratio += i64::from(acked.segments) - (self.ratio >> 4);
            self.measure(now, acked);
        }
        if !acked.repairing && f64::from(acked.flight) >= window.cwnd {
            self.grow(cfg, now, window);
        }
        if repairs && self.repair == Repair::Done && window.cwnd < f64::from(window.ssthresh) {
            // Returns to the threshold at once, with a burst of at most three.
            window.cwnd = f64::from(window.ssthresh.min(acked.in_flight + 3));
        }
    }

    /// Sets the window after a loss; after a timeout only the threshold.
    fn on_congestion(&mut self, _cfg: &TcpConfig, signal: Signal, window: &mut Window) -> Option<f64> {
        let cwnd = window.cwnd as u32;
        let reduced = (cwnd * BETA / SCALE).max(2);
        window.ssthresh = reduced;
        self.counted = 0;
        if signal == Signal::Timeout {
            *self = Cubic21 { repair: Repair::Begins, ..Cubic21::new() };
            return None;
        }
        window.cwnd = f64::from(reduced);
        self.epoch = 0;
        // Fast convergence.
        self.last_max = if cwnd < self.last_max { cwnd * (SCALE + BETA) / (2 * SCALE) } else { cwnd };
        self.has_lost = true;
        None
    }
}

/// Cube root, rounded down.
fn cube_root(value: u64) -> u64 {
    let root = libm::cbrt(value as f64) as u64;
    // The float may be one too small.
    if (root + 1).pow(3) <= value { root + 1 } else { root }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use aqumen_units::{Instant, Span};

    use super::super::controller::tests::acked;
    use super::*;

    fn one(millis: u64, rtt_ms: u64) -> AckSample {
        let now = Instant::ZERO + Span::from_millis(millis);
        AckSample { now, flight: 1_000_000, rtt: Some(Span::from_millis(rtt_ms)), una: 5, high: 9, ..acked() }
    }

    fn after_a_loss_at(cwnd: f64) -> (Cubic21, Window) {
        let (mut cubic, mut window) = (Cubic21::new(), Window { cwnd, ssthresh: 4000 });
        cubic.on_congestion(&TcpConfig::cubic_ns2(), Signal::Loss, &mut window);
        (cubic, window)
    }

    #[test]
    fn windows_are_whole_and_renos_growth_is_that_of_a_reduction_to_0_8() {
        // 100 x 717 / 1024 = 70.02.
        let (mut cubic, mut window) = after_a_loss_at(100.0);
        assert_eq!((window.cwnd, window.ssthresh, cubic.last_max), (70.0, 70, 100));
        // 70 does not exceed the threshold: one step of slow start.
        let cfg = TcpConfig::cubic_ns2();
        cubic.on_ack(&cfg, &one(2_000, 100), &mut window);
        assert_eq!(window.cwnd, 71.0);
        // No growth yet; a window of Reno's lasts 71 x 23 / 8 = 204 acknowledgements.
        cubic.on_ack(&cfg, &one(2_001, 100), &mut window);
        assert_eq!((cubic.plateau, cubic.epoch, cubic.reno), (100, 2_001, 71));
        // K = cbrt((100 - 71) / (410 / 1024)) s = 4.1683 s, 4268 of 1024.
        assert_eq!(cubic.k, 4_268);
        // 100 ms (102/1024 s) ahead: 100 - 0.4004 x 4.0688^3 = 73.03, rounded down below the plateau: 100 - 26. That is
        // 3 above 71: 71 / 3 = 23, and 23 x 16 / 31 = 11.
        assert_eq!(cubic.min_rtt, 100);
        assert_eq!(cubic.count, 11);
    }

    #[test]
    fn a_step_takes_count_and_one_acknowledgements() {
        let cfg = TcpConfig::cubic_ns2();
        let mut cubic = Cubic21::new();
        let mut window = Window { cwnd: 30.0, ssthresh: 20 };
        // No loss yet: 50 x 16 / 31 = 25, so every 26th acknowledgement. The first one finds the estimate at 31/16.
        let steps = (0..3 * 26).filter(|_| {
            let before = window.cwnd;
            cubic.on_ack(&cfg, &one(500, 100), &mut window);
            window.cwnd > before
        });
        assert_eq!(steps.collect::<Vec<_>>(), [25, 51, 77]);
        assert_eq!(cubic.ratio, 31);
    }

    #[test]
    fn a_second_loss_below_the_first_leaves_room() {
        let (mut cubic, _) = after_a_loss_at(100.0);
        let mut window = Window { cwnd: 80.0, ssthresh: 70 };
        cubic.on_congestion(&TcpConfig::cubic_ns2(), Signal::Loss, &mut window);
        // 80 x 1741 / 2048 = 68.008, and 80 x 717 / 1024 = 56.02.
        assert_eq!((cubic.last_max, window.cwnd, window.ssthresh), (68, 56.0, 56));
    }

    #[test]
    fn a_timeout_clears_the_state_and_its_repair_ends_at_the_threshold() {
        let cfg = TcpConfig::cubic_ns2();
        let (mut cubic, mut window) = after_a_loss_at(100.0);
        cubic.on_congestion(&TcpConfig::cubic_ns2(), Signal::Timeout, &mut window);
        assert_eq!((window.ssthresh, cubic.last_max, cubic.has_lost), (49, 0, false));
        window.cwnd = 1.0; // by the sender
        // Nine segments are outstanding; slow start continues until they are acknowledged. Then 49 at once, but at most
        // three beyond the segments in flight.
        cubic.on_ack(&cfg, &AckSample { in_flight: 2, ..one(3_000, 100) }, &mut window);
        assert_eq!(window.cwnd, 2.0);
        cubic.on_ack(&cfg, &AckSample { una: 9, in_flight: 2, ..one(3_100, 100) }, &mut window);
        assert_eq!(window.cwnd, 5.0);
    }

    #[test]
    fn the_acknowledgement_that_ends_a_recovery_causes_no_growth() {
        let cfg = TcpConfig::cubic_ns2();
        let (mut cubic, mut window) = after_a_loss_at(100.0);
        cubic.on_ack(&cfg, &AckSample { repairing: true, segments: 30, ..one(3_000, 100) }, &mut window);
        assert_eq!((window.cwnd, cubic.ratio), (70.0, 32));
    }

    #[test]
    fn cube_roots_are_rounded_down() {
        assert_eq!([0, 1, 7, 8, 26, 27, 999_999_999, 1_000_000_000].map(cube_root), [0, 1, 1, 2, 2, 3, 999, 1000]);
    }
}
