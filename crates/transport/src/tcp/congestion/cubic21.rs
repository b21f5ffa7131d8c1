//! CUBIC 2.1 as Linux 2.6.22 had it and ns-2.35 has it in `Agent/TCP/Linux`: that of 2005's paper, in whole segments
//! and milliseconds, for cross-checks. What a user of today has is [`cubic`](super::cubic).
//!
//! What it does otherwise than RFC 9438:
//! - The window grows by one segment at a time, after `count` acknowledgements and one more. `count` is
//!   cwnd / (target - cwnd), rounded down, and found anew when the window has grown or 31 ms have passed.
//! - It divides `count` by an estimate of the segments in an acknowledgement. The estimate begins at two, counts in
//!   sixteenths that are rounded down, and stays at 31/16 where each segment is acknowledged: growth towards the target
//!   is nearly twice as quick.
//! - The target is what the cubic will be a **smallest** round trip from now. Beyond the plateau a step is at most
//!   16 segments in 100 ms.
//! - Reno's pace is that of a reduction to 0.8, one segment in 23/8 windows: it is worked out before ns-2 can set the
//!   reduction to 0.7.
//! - Before the first loss and after a timeout, until the next loss, it grows by one segment in 50 acknowledgements
//!   (counted as above) once slow start is over, or as Reno if that is more. A timeout makes it forget all else, too.
//! - Slow start goes on while the window is not above the threshold. The window grows with an acknowledgement before a
//!   loss that it shows reduces it, and not with the one that ends a recovery.
//!
//! Deviation: the cube root is exact, not a table with one Newton step (0.2 % of K).

use super::controller::{Acked, Controller, Signal, Terms, Window};
use crate::tcp::TcpConfig;

/// Factor for the window (of 1024).
const BETA: u32 = 717;
const SCALE: u32 = 1024;
/// 1024 C, for a cubic in s^3: 41 a round trip of 100 ms.
const C: u64 = 410;
/// Reno's pace: one segment in so many eighths of a window, 8 / 3 (1 + 0.8) / (1 - 0.8) in integers.
const RENO_EIGHTHS: u32 = 23;
/// Largest step beyond the plateau in 100 ms (segments).
const MAX_STEP: u64 = 16;
/// The clock's ticks (ms) after which `count` is found anew.
const STALE: u32 = 1000 / 32;
const SECOND: u32 = 1000;

/// State of CUBIC 2.1. Times are in ms of a clock that begins at 0.
#[derive(Clone, Debug)]
pub(super) struct Cubic21 {
    /// Acknowledgements, less one, that a step takes.
    count: u32,
    /// Acknowledgements since the last step (snd_cwnd_cnt).
    counted: u32,
    /// The window at the last reduction, less with fast convergence; 0: none.
    last_max: u32,
    /// A loss has come since the beginning, or the last timeout.
    has_lost: bool,
    /// The window for which `count` was found, and when.
    known: (u32, u32),
    /// The plateau, and when it is reached: 1/1024 s after `epoch`.
    plateau: u32,
    k: u64,
    /// When this stage of congestion avoidance began; 0: it has not.
    epoch: u32,
    /// Smallest round trip (ms); 0: none known.
    min_rtt: u32,
    /// Acknowledgements that Reno's window has not used yet, and that window.
    acks: u32,
    reno: u32,
    /// Segments in an acknowledgement (of 16).
    ratio: i64,
    /// After a timeout, what was outstanding at it.
    repair: Repair,
}

/// What a timeout leaves to be repaired.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Repair {
    Done,
    /// The timeout has just been.
    Begins,
    /// It lasts until this segment is acknowledged.
    Until(u32),
}

impl Cubic21 {
    pub(super) const TERMS: Terms = Terms { goes_first: true, ..Terms::USUAL };

    pub(super) fn new() -> Self {
        Cubic21 {
            count: 0,
            counted: 0,
            last_max: 0,
            has_lost: false,
            known: (0, 0),
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

    fn measure(&mut self, now: u32, acked: &Acked) {
        let Some(rtt) = acked.rtt else { return };
        // A stage's first second is left out.
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

    /// Finds `count`, if it is out of date.
    fn update(&mut self, now: u32, cwnd: u32) {
        self.acks += 1;
        if self.known.0 == cwnd && now - self.known.1 <= STALE {
            return;
        }
        self.known = (cwnd, now);
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
    fn on_ack(&mut self, cfg: &TcpConfig, acked: &Acked, window: &mut Window) {
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
            // The threshold at once, but no burst of more than three.
            window.cwnd = f64::from(window.ssthresh.min(acked.in_flight + 3));
        }
    }

    /// The window after a loss; after a timeout the threshold alone.
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

/// The cube root, rounded down.
fn cube_root(value: u64) -> u64 {
    let root = libm::cbrt(value as f64) as u64;
    // The float may be one off.
    if (root + 1).pow(3) <= value { root + 1 } else { root }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use aqumen_units::{Instant, Span};

    use super::super::controller::tests::acked;
    use super::*;

    fn one(millis: u64, rtt_ms: u64) -> Acked {
        let now = Instant::ZERO + Span::from_millis(millis);
        Acked { now, flight: 1_000_000, rtt: Some(Span::from_millis(rtt_ms)), una: 5, high: 9, ..acked() }
    }

    fn after_a_loss_at(cwnd: f64) -> (Cubic21, Window) {
        let (mut cubic, mut window) = (Cubic21::new(), Window { cwnd, ssthresh: 4000 });
        cubic.on_congestion(&TcpConfig::cubic_ns2(), Signal::Loss, &mut window);
        (cubic, window)
    }

    #[test]
    fn windows_are_whole_and_reno_s_pace_is_that_of_four_fifths() {
        // 100 x 717 / 1024 = 70.02.
        let (mut cubic, mut window) = after_a_loss_at(100.0);
        assert_eq!((window.cwnd, window.ssthresh, cubic.last_max), (70.0, 70, 100));
        // 70 is not above the threshold: one step of slow start.
        let cfg = TcpConfig::cubic_ns2();
        cubic.on_ack(&cfg, &one(2_000, 100), &mut window);
        assert_eq!(window.cwnd, 71.0);
        // Nothing to do for a while: a window of Reno's lasts 71 x 23 / 8 = 204 acknowledgements.
        cubic.on_ack(&cfg, &one(2_001, 100), &mut window);
        assert_eq!((cubic.plateau, cubic.epoch, cubic.reno), (100, 2_001, 71));
        // K = cbrt((100 - 71) / (410 / 1024)) s = 4.1683 s, 4268 of 1024.
        assert_eq!(cubic.k, 4_268);
        // Where it will be in 100 ms (102 of 1024 s): 100 - 0.4004 x 4.0688^3 = 73.03, cut to whole segments from the
        // plateau down: 100 - 26. That is 3 above 71: 71 / 3 = 23, and 23 x 16 / 31 = 11.
        assert_eq!(cubic.min_rtt, 100);
        assert_eq!(cubic.count, 11);
    }

    #[test]
    fn a_step_takes_the_count_and_one_more() {
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
    fn a_timeout_forgets_all_and_ends_with_the_threshold_at_once() {
        let cfg = TcpConfig::cubic_ns2();
        let (mut cubic, mut window) = after_a_loss_at(100.0);
        cubic.on_congestion(&TcpConfig::cubic_ns2(), Signal::Timeout, &mut window);
        assert_eq!((window.ssthresh, cubic.last_max, cubic.has_lost), (49, 0, false));
        window.cwnd = 1.0; // by the sender
        // 9 are out; slow start goes on until they are acknowledged. Then 49 at once, but
        // three beyond what is in flight.
        cubic.on_ack(&cfg, &Acked { in_flight: 2, ..one(3_000, 100) }, &mut window);
        assert_eq!(window.cwnd, 2.0);
        cubic.on_ack(&cfg, &Acked { una: 9, in_flight: 2, ..one(3_100, 100) }, &mut window);
        assert_eq!(window.cwnd, 5.0);
    }

    #[test]
    fn nothing_grows_with_the_acknowledgement_that_ends_a_recovery() {
        let cfg = TcpConfig::cubic_ns2();
        let (mut cubic, mut window) = after_a_loss_at(100.0);
        cubic.on_ack(&cfg, &Acked { repairing: true, segments: 30, ..one(3_000, 100) }, &mut window);
        assert_eq!((window.cwnd, cubic.ratio), (70.0, 32));
    }

    #[test]
    fn cube_roots_are_rounded_down() {
        assert_eq!([0, 1, 7, 8, 26, 27, 999_999_999, 1_000_000_000].map(cube_root), [0, 1, 1, 2, 2, 3, 999, 1000]);
    }
}
