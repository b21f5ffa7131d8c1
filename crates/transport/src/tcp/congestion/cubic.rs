//! CUBIC (RFC 9438): the window is a cubic function of the time since the last reduction, flat near the window of that
//! reduction. Growth does not depend on the round-trip time and slows down near the old limit.
//!
//! ```text
//!   loss, mark: W_max = cwnd, cwnd = 0.7 cwnd, then W_cubic(t) = C (t - K)^3 + W_max     (equations 1 and 2)
//!   at least W_est, the window of Reno with the same reduction (`reno_friendly`)        (section 4.3)
//! ```
//!
//! Fast convergence (section 4.7) is on. HyStart++ may end slow start ([`hystart`](super::hystart), section 4.10), with
//! whole windows Linux's HyStart ([`hystart_linux`](super::hystart_linux)). Marks are answered like losses (section
//! 4.6).
//!
//! Deviations:
//! - The lesser of flight and window is reduced, or the window with
//!   [`halve_flight`](crate::tcp::TcpConfig::halve_flight) off (section 4.6 allows both).
//! - Spurious reductions are not undone (section 4.9), as the sender does not detect them.
//! - With [`whole_windows`](crate::tcp::TcpConfig::whole_windows) the arithmetic is Linux's. Windows, targets and
//!   counts are whole numbers, the reduction is to 717/1024, and the target is the cubic one smallest round trip ahead.
//!   Reno's growth is 8/15 of a segment per round trip also beyond the old window; an acknowledged segment adds at most
//!   half a segment. Before the first loss, after HyStart and after a timeout growth is at least a twentieth of a
//!   segment; a timeout also clears the smallest round-trip time. Time has ticks of 4 ms (CONFIG_HZ = 250, as in
//!   Debian), with the smallest round-trip time rounded up, and the cubic uses 1/1024 s. An unchanged window is
//!   re-evaluated after 1/32 s; the cubic at most once per tick.
//! - Time with an unused window is excluded from `t` (section 5.8 asks for it without a method).

use aqumen_units::{Instant, Span};

use super::controller::{AckSample, Controller, Properties, Signal, Window, count_towards, may_grow, whole_slow_start};
use super::hystart::{Advice, Hystart};
use super::hystart_linux::{HystartLinux, Observation};
use crate::tcp::TcpConfig;

/// C (segments/s^3), section 5.1.
const C: f64 = 0.4;
/// beta_cubic, section 4.6.
const BETA: f64 = 0.7;
/// beta_cubic in Linux, in 1/1024.
const WHOLE_BETA: f64 = 717.0 / 1024.0;
/// alpha_cubic, section 4.3: growth with which Reno with factor 0.7 has Reno's mean window.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// C in Linux, in 1/1024.
const WHOLE_C: u64 = 410;

/// Linux's clock tick (CONFIG_HZ = 250), and ticks per second.
const TICK: Span = Span::from_millis(4);
const HZ: u64 = 250;
/// Ticks after which an unchanged window is re-evaluated.
const HOLD_TICKS: u64 = HZ / 32;
/// No tick.
const NEVER: u64 = u64::MAX;

/// State of CUBIC.
#[derive(Clone, Debug)]
pub(super) struct Cubic {
    /// W_max.
    w_max: f64,
    /// cwnd_prior, the window before the last reduction; with whole windows the plateau of this stage, since `w_max` is
    /// 0 until a loss.
    prior: f64,
    /// W_est.
    w_est: f64,
    /// Whole windows: acknowledged segments not yet counted by `w_est`.
    acked: u32,
    /// Whole windows: acknowledged segments per segment of growth, and the window and tick of that value.
    due: (u32, f64, u64),
    /// K (s; with whole windows 1/1024 s).
    k: f64,
    /// Start of this stage of congestion avoidance; `None`: not started.
    epoch: Option<Instant>,
    /// Time of the last acknowledgement of new data.
    last_ack: Instant,
    /// Smoothed round-trip time (s), for the target one round trip ahead; 0: unknown.
    rtt_s: f64,
    /// Smallest round-trip time (s); 0: unknown.
    min_rtt_s: f64,
    /// HyStart++, without whole windows.
    hystart: Option<Hystart>,
    /// Linux's HyStart, with whole windows.
    hystart_linux: Option<HystartLinux>,
}

impl Cubic {
    pub(super) const PROPERTIES: Properties = Properties::RENO;

    pub(super) fn new(cfg: &TcpConfig) -> Self {
        Cubic {
            w_max: 0.0,
            prior: 0.0,
            w_est: 0.0,
            acked: 0,
            due: (0, 0.0, NEVER),
            k: 0.0,
            epoch: None,
            last_ack: Instant::ZERO,
            rtt_s: 0.0,
            min_rtt_s: 0.0,
            hystart: (cfg.hystart && !cfg.whole_windows).then(Hystart::new),
            hystart_linux: (cfg.hystart && cfg.whole_windows).then(HystartLinux::new),
        }
    }

    /// Reduction factor (section 4.6); starts a new stage.
    fn reduction_factor(&mut self, cfg: &TcpConfig, signal: Signal, cwnd: f64) -> f64 {
        let cwnd = if cfg.whole_windows { libm::floor(cwnd) } else { cwnd };
        let beta = if cfg.whole_windows { WHOLE_BETA } else { BETA };
        self.hystart = None;
        self.epoch = None;
        self.prior = cwnd;
        if cfg.whole_windows && signal == Signal::Timeout {
            (self.min_rtt_s, self.due) = (0.0, (0, 0.0, NEVER));
            self.hystart_linux = cfg.hystart.then(HystartLinux::new);
        }
        // After a timeout the next stage begins at its window (section 4.8).
        self.w_max = match signal {
            Signal::Timeout => 0.0,
            // Fast convergence (section 4.7): a limit below the last one indicates new flows.
            _ if cwnd < self.w_max && cfg.whole_windows => libm::floor(cwnd * (1.0 + WHOLE_BETA) / 2.0),
            _ if cwnd < self.w_max => cwnd * (1.0 + BETA) / 2.0,
            _ => cwnd,
        };
        beta
    }

    /// Whether Linux's HyStart ends slow start at this acknowledgement.
    fn linux_hystart_ends(&mut self, cfg: &TcpConfig, acked: &AckSample, window: &Window) -> bool {
        let (Some(hystart), Some(rtt)) = (&mut self.hystart_linux, acked.rtt) else { return false };
        hystart.ends_slow_start(&Observation {
            now: acked.now,
            una: acked.una,
            high: acked.high,
            rtt,
            min_rtt: Span::from_secs_f64(self.min_rtt_s),
            smoothed: Span::from_secs_f64(self.rtt_s),
            cwnd: window.cwnd,
            ssthresh: window.ssthresh,
            payload_bytes: cfg.payload_bytes(),
            paced: cfg.pacing,
        })
    }

    fn slow_start(&mut self, cfg: &TcpConfig, acked: &AckSample, window: &mut Window) {
        let advice = self.hystart.as_mut().map_or(Advice::Grow(1.0), |hystart| hystart.on_ack(acked));
        match advice {
            Advice::Leave => {
                self.hystart = None;
                window.settle(window.cwnd);
            }
            Advice::Grow(_) if may_grow(cfg, acked, window) && !acked.growth_blocked && cfg.whole_windows => {
                let counted = acked.segments.min(cfg.growth_limit);
                window.cwnd = whole_slow_start(window.cwnd, window.ssthresh, counted).0;
            }
            Advice::Grow(part) if may_grow(cfg, acked, window) && !acked.growth_blocked => {
                window.cwnd += part * acked.counted(cfg);
            }
            Advice::Grow(_) => {}
        }
    }

    /// Congestion avoidance (sections 4.2 to 4.5).
    fn avoid(&mut self, cfg: &TcpConfig, acked: &AckSample, window: &mut Window) {
        let cwnd = if cfg.whole_windows { libm::floor(window.cwnd) } else { window.cwnd };
        let epoch = *self.epoch.get_or_insert_with(|| {
            if cfg.whole_windows {
                self.prior = self.w_max.max(cwnd);
                let (up, cube) = ((self.prior - cwnd) / WHOLE_C as f64, 1024.0 * 1024.0 * 1024.0 * 1024.0);
                (self.k, self.w_est, self.acked) = (libm::floor(libm::cbrt(cube * up)), cwnd, 0);
                self.due = (0, 0.0, NEVER);
                return acked.now;
            }
            if self.w_max == 0.0 {
                // Slow start ended without a loss, or after a timeout (sections 4.8 and 4.10): K = 0.
                (self.w_max, self.prior) = (cwnd, cwnd);
            }
            self.k = if self.w_max > cwnd { libm::cbrt((self.w_max - cwnd) / C) } else { 0.0 };
            self.w_est = cwnd;
            acked.now
        });
        if cfg.whole_windows {
            return self.avoid_whole(cfg, acked, window, epoch);
        }
        let t = acked.now.saturating_since(epoch).as_secs_f64();
        let segments = f64::from(acked.segments);
        // Equation 4, with Reno's own growth beyond the old window (section 4.3).
        let alpha = if self.w_est >= self.prior { 1.0 } else { ALPHA };
        self.w_est += alpha * segments / cwnd;
        if cfg.reno_friendly && self.w_cubic(t) < self.w_est {
            window.cwnd = self.w_est.max(cwnd);
        } else {
            // Section 4.2: the cubic one round trip ahead, at most 1.5 times the window.
            let target = self.w_cubic(t + self.rtt_s).clamp(cwnd, 1.5 * cwnd);
            window.cwnd += segments * (target - cwnd) / cwnd;
        }
    }

    /// Congestion avoidance with whole windows, in a stage that began at `epoch`.
    fn avoid_whole(&mut self, cfg: &TcpConfig, acked: &AckSample, window: &mut Window, epoch: Instant) {
        let (whole, tick) = (libm::floor(window.cwnd), ticks(acked.now));
        self.acked += acked.segments;
        let (due, of, at) = self.due;
        if at == tick && of != whole {
            // The cubic is evaluated once per tick, so its value for the old window stands.
            self.due.0 = self.limit_by_reno(cfg, whole, due);
        } else if of != whole || tick - at > HOLD_TICKS {
            let due = self.due_by_cubic(whole, tick - ticks(epoch));
            self.due = (self.limit_by_reno(cfg, whole, due), whole, tick);
        }
        window.cwnd = count_towards(window.cwnd, acked.segments.min(cfg.growth_limit), self.due.0);
    }

    /// Acknowledged segments per segment of growth, `t` ticks into the stage (bictcp_update).
    fn due_by_cubic(&self, whole: f64, t: u64) -> u32 {
        let ahead = t + libm::ceil(self.min_rtt_s * HZ as f64) as u64;
        let x = (ahead * 1024 / HZ) as f64 - self.k;
        let distance = libm::floor(WHOLE_C as f64 * (x * x * x).abs() / (1u64 << 40) as f64);
        let target = if x < 0.0 { self.prior - distance } else { self.prior + distance };
        let due = if target > whole { libm::floor(whole / (target - whole)) } else { 100.0 * whole };
        if self.w_max == 0.0 { due.min(20.0) as u32 } else { due as u32 }
    }

    /// Limits `due` to at most Reno's, and at least two.
    fn limit_by_reno(&mut self, cfg: &TcpConfig, whole: f64, mut due: u32) -> u32 {
        if cfg.reno_friendly {
            // Reno's window grows when more than a round has been acknowledged.
            let round = libm::floor(whole * 15.0 / 8.0).max(1.0) as u32;
            let steps = self.acked.saturating_sub(1) / round;
            self.acked -= steps * round;
            self.w_est += f64::from(steps);
            let ahead = self.w_est - whole;
            if ahead > 0.0 {
                due = due.min((whole / ahead) as u32);
            }
        }
        due.max(2)
    }

    /// Equation 1.
    fn w_cubic(&self, t: f64) -> f64 {
        let x = t - self.k;
        C * x * x * x + self.w_max
    }
}

/// Ticks of Linux's clock.
fn ticks(now: Instant) -> u64 {
    now.as_nanos() / TICK.as_nanos()
}

impl Controller for Cubic {
    fn on_ack(&mut self, cfg: &TcpConfig, acked: &AckSample, window: &mut Window) {
        if let Some(rtt) = acked.rtt {
            // RFC 9438 section 4.2 leaves the choice; smoothing suppresses delayed acknowledgements.
            let sample = rtt.as_secs_f64();
            self.rtt_s = if self.rtt_s == 0.0 { sample } else { self.rtt_s + (sample - self.rtt_s) / 8.0 };
            self.min_rtt_s = if self.min_rtt_s == 0.0 { sample } else { self.min_rtt_s.min(sample) };
        }
        if acked.segments == 0 || acked.opening {
            return;
        }
        let since_last = acked.now.saturating_since(self.last_ack);
        self.last_ack = acked.now;
        if window.in_slow_start() && self.linux_hystart_ends(cfg, acked, window) {
            self.hystart_linux = None;
            window.settle(window.cwnd);
        }
        if window.in_slow_start() {
            self.slow_start(cfg, acked, window);
        } else if acked.repairing || acked.growth_blocked {
            // The window was just reduced.
        } else if acked.window_was_used(cfg, window) {
            self.avoid(cfg, acked, window);
        } else if let Some(epoch) = &mut self.epoch {
            *epoch = epoch.saturating_add(since_last);
        }
    }

    fn on_congestion(&mut self, cfg: &TcpConfig, signal: Signal, window: &mut Window) -> Option<f64> {
        Some(self.reduction_factor(cfg, signal, window.cwnd))
    }
}

#[cfg(test)]
mod tests {
    use aqumen_units::Span;

    use super::super::controller::tests::acked;
    use super::*;
    use crate::testing::{assert_near, ms};

    fn one(millis: u64) -> AckSample {
        AckSample { now: ms(millis), flight: 1_000_000, ..acked() }
    }

    fn near(left: f64, right: f64) {
        assert_near(left, right, 1e-9);
    }

    /// Reduces the window as [`super::super::Control`] does.
    fn reduce(cubic: &mut Cubic, window: &mut Window) {
        let reduced = window.cwnd * cubic.reduction_factor(&TcpConfig::cubic(), Signal::Loss, window.cwnd);
        window.settle(reduced);
    }

    #[test]
    fn after_a_loss_at_1000_the_cubic_returns_in_k_seconds() {
        let cfg = TcpConfig::cubic();
        let (mut cubic, mut window) = (Cubic::new(&cfg), Window { cwnd: 1000.0, ssthresh: 1000 });
        reduce(&mut cubic, &mut window);
        // 0.7 x 1000.
        near(window.cwnd, 700.0);
        cubic.on_ack(&cfg, &one(1000), &mut window);
        // Equation 2: K = cbrt((1000 - 700) / 0.4) = cbrt(750) = 9.0856029641607...
        near(cubic.k, 9.085_602_964_160_698);
        // Equation 1 at 0, K and K + 5 s: 700, 1000, 1000 + 0.4 x 125 = 1050.
        near(cubic.w_cubic(0.0), 700.0);
        near(cubic.w_cubic(cubic.k), 1000.0);
        near(cubic.w_cubic(cubic.k + 5.0), 1050.0);
        // At 4 s: 0.4 x (4 - 9.0856)^3 + 1000 = 0.4 x -131.53 + 1000 = 947.39.
        assert!((cubic.w_cubic(4.0) - 947.39).abs() < 0.01);
    }

    #[test]
    fn one_acknowledgement_approaches_the_target_by_one_over_the_window() {
        let cfg = TcpConfig::cubic();
        let mut window = Window { cwnd: 1000.0, ssthresh: 1000 };
        let mut cubic = Cubic { rtt_s: 0.1, ..Cubic::new(&cfg) };
        reduce(&mut cubic, &mut window);
        cubic.on_ack(&cfg, &one(1000), &mut window);
        // Reno's growth first: 700 + 0.5294 / 700 = 700.00076. A second later the target is W(1.1 s) = 0.4 x (1.1 -
        // 9.0856)^3 + 1000 = 0.4 x -509.241 + 1000 = 796.304, and one acknowledged segment gives (796.304 - 700.001) /
        // 700.001 = 0.13758.
        assert!((window.cwnd - 700.000_76).abs() < 1e-5, "{}", window.cwnd);
        cubic.on_ack(&cfg, &one(2000), &mut window);
        assert!((window.cwnd - 700.138_33).abs() < 1e-4, "{}", window.cwnd);
    }

    #[test]
    fn a_second_loss_below_the_first_leaves_room() {
        let mut cubic = Cubic::new(&TcpConfig::cubic());
        let mut window = Window { cwnd: 100.0, ssthresh: 100 };
        reduce(&mut cubic, &mut window);
        near(cubic.w_max, 100.0);
        window.cwnd = 80.0;
        reduce(&mut cubic, &mut window);
        // Section 4.7: 80 x 1.7 / 2 = 68; the window 80 x 0.7 = 56.
        near(cubic.w_max, 68.0);
        near(window.cwnd, 56.0);
        // Above the last limit W_max is the window.
        window.cwnd = 90.0;
        reduce(&mut cubic, &mut window);
        near(cubic.w_max, 90.0);
    }

    #[test]
    fn small_windows_grow_like_reno() {
        let cfg = TcpConfig::cubic();
        let mut cubic = Cubic { rtt_s: 0.01, ..Cubic::new(&cfg) };
        let mut window = Window { cwnd: 10.0, ssthresh: 10 };
        reduce(&mut cubic, &mut window);
        // W_est = 7 + 0.5294.. x 1 / 7; the cubic is still at 7, as K = cbrt(3 / 0.4) = 1.96 s.
        cubic.on_ack(&cfg, &one(10), &mut window);
        near(window.cwnd, 7.0 + (0.9 / 1.7) / 7.0);
        // From W_est >= 10 on it grows by a whole segment per window.
        cubic.w_est = 10.5;
        window.cwnd = 10.5;
        cubic.on_ack(&cfg, &one(20), &mut window);
        near(window.cwnd, 10.5 + 1.0 / 10.5);
    }

    #[test]
    fn without_reno_friendliness_small_windows_follow_the_cubic_alone() {
        let cfg = TcpConfig { reno_friendly: false, ..TcpConfig::cubic() };
        let mut cubic = Cubic { rtt_s: 0.01, ..Cubic::new(&cfg) };
        let mut window = Window { cwnd: 10.0, ssthresh: 10 };
        reduce(&mut cubic, &mut window);
        cubic.on_ack(&cfg, &one(10), &mut window);
        // K = cbrt(3 / 0.4) = 1.957434 s; one round trip ahead W = 10 - 0.4 (K - 0.01)^3 = 10 - 0.4 x 7.385640 =
        // 7.045744, below Reno's 7 + 0.5294 / 7 = 7.0756.
        assert!((window.cwnd - (7.0 + 0.045_744 / 7.0)).abs() < 1e-6, "{}", window.cwnd);
    }

    #[test]
    fn whole_windows_near_ten_grow_by_eight_fifteenths_of_a_segment_a_round_trip() {
        let cfg = TcpConfig { whole_windows: true, growth_limit: 1 << 30, ..TcpConfig::cubic() };
        let mut cubic = Cubic { rtt_s: 0.1, min_rtt_s: 0.1, ..Cubic::new(&cfg) };
        let mut window = Window { cwnd: 7.0, ssthresh: 7 };
        (cubic.w_max, cubic.prior) = (10.0, 10.0);
        // K = cbrt(3 / 0.4) = 1.957 s: at first the cubic is 0.4 x 1.857^3 = 2.56, whole 2, below 10: one above 7.
        // Seven make one.
        for counted in 1..=7 {
            cubic.on_ack(&cfg, &one(0), &mut window);
            assert_eq!(window.cwnd as u32, 7 + u32::from(counted == 7), "{counted}");
        }
        // The target is 8 now; the cubic is moved far away. Reno's window grows when more than floor(8 x 15 / 8) = 15
        // segments are acknowledged: the 16th makes 8, the 31st 9, one ahead. Then 8 segments make one, and 24 have
        // been counted.
        cubic.k = 1e6;
        for counted in 8..=30 {
            cubic.on_ack(&cfg, &one(40 * (counted - 7)), &mut window);
            assert_eq!(window.cwnd as u32, 8, "{counted}");
        }
        cubic.on_ack(&cfg, &one(40 * 24), &mut window);
        assert_eq!((window.cwnd as u32, cubic.w_est), (9, 9.0));
    }

    #[test]
    fn the_growth_rate_holds_for_31_ms_or_until_the_window_changes() {
        let cfg = TcpConfig { hystart: false, reno_friendly: false, ..TcpConfig::linux() };
        // The plateau of 100 is 0 s away: K = 0, and at 1.9 s W = 100 + 0.4 x 2^3 = 103, whole, with the 100 ms ahead.
        let fresh = || {
            let mut cubic = Cubic { min_rtt_s: 0.1, epoch: Some(ms(0)), ..Cubic::new(&cfg) };
            (cubic.w_max, cubic.prior) = (100.0, 100.0);
            (cubic, Window { cwnd: 100.0, ssthresh: 50 })
        };
        let (mut cubic, mut window) = fresh();
        cubic.on_ack(&cfg, &one(100), &mut window);
        // 0.4 x 0.2^3 rounds to 0: 100 x 100. The value holds for 31 ms, however far the cubic is by then.
        assert_eq!(cubic.due.0, 10_000);
        cubic.epoch = Some(ms(0));
        for (millis, due) in [(131, 10_000), (1_900, 33), (1_931, 33), (4_900, 2)] {
            cubic.on_ack(&cfg, &one(millis), &mut window);
            assert_eq!(cubic.due.0, due, "{millis}");
        }
        let (mut cubic, mut window) = fresh();
        cubic.on_ack(&cfg, &one(100), &mut window);
        window.cwnd = 99.0;
        cubic.on_ack(&cfg, &one(104), &mut window);
        // One below the plateau: 99.
        assert_eq!(cubic.due.0, 99);
    }

    #[test]
    fn the_cubic_of_whole_windows_is_evaluated_once_per_tick() {
        let cfg = TcpConfig { hystart: false, ..TcpConfig::linux() };
        // A loss at 4, reduction to 2: K = cbrt(2 / 0.4) = 1.71 s, and 100 ms ahead the cubic is 0.4 x 1.61^3 = 1.67,
        // whole 1, below 4: the target is 3, and two segments make one. At 3 the cubic asks for no more.
        for (gap_us, cwnd) in [(100, 4), (4_000, 3)] {
            let mut cubic = Cubic { min_rtt_s: 0.1, w_max: 4.0, ..Cubic::new(&cfg) };
            let mut window = Window { cwnd: 2.0, ssthresh: 2 };
            for (number, segments) in [(0, 2), (1, 1), (2, 1)] {
                let now = ms(400) + Span::from_micros(number * gap_us);
                cubic.on_ack(&cfg, &AckSample { now, segments, ..one(0) }, &mut window);
            }
            assert_eq!(window.cwnd as u32, cwnd, "{gap_us} us apart");
        }
    }

    #[test]
    fn whole_windows_have_no_plateau_before_a_loss_and_whole_limits_after_it() {
        let cfg = TcpConfig { hystart: false, ..TcpConfig::linux() };
        let mut cubic = Cubic { min_rtt_s: 0.01, ..Cubic::new(&cfg) };
        // Slow start ended without a loss: the cubic is constant, and twenty segments make one.
        let mut window = Window { cwnd: 100.0, ssthresh: 100 };
        let after = [(); 40].map(|()| {
            cubic.on_ack(&cfg, &one(0), &mut window);
            window.cwnd as u32
        });
        assert_eq!((after[18], after[19], after[38], after[39]), (100, 101, 101, 102));
        // 717/1024 of 102 is 71.4. A second reduction below it: 80 x 1741 / 2048 = 68.007, whole 68.
        assert_eq!((102.0 * cubic.reduction_factor(&cfg, Signal::Mark, 102.0)) as u32, 71);
        assert_eq!(cubic.w_max, 102.0);
        cubic.reduction_factor(&cfg, Signal::Mark, 80.0);
        assert_eq!(cubic.w_max, 68.0);
        // A timeout clears the limit and the smallest round-trip time.
        cubic.reduction_factor(&cfg, Signal::Timeout, 50.0);
        assert_eq!((cubic.w_max, cubic.min_rtt_s), (0.0, 0.0));
    }

    #[test]
    fn after_a_timeout_the_plateau_is_where_congestion_avoidance_begins() {
        let cfg = TcpConfig::cubic();
        let mut cubic = Cubic::new(&cfg);
        assert_eq!(cubic.reduction_factor(&cfg, Signal::Timeout, 100.0), 0.7);
        let mut window = Window { cwnd: 70.0, ssthresh: 70 };
        cubic.on_ack(&cfg, &one(5), &mut window);
        assert_eq!((cubic.w_max, cubic.k), (70.0, 0.0));
        // K = 0: 70 + 0.4 x 5^3 = 120 after five seconds.
        near(cubic.w_cubic(5.0), 120.0);
    }

    #[test]
    fn time_with_an_unused_window_does_not_count() {
        let cfg = TcpConfig::cubic();
        let mut cubic = Cubic { rtt_s: 0.1, ..Cubic::new(&cfg) };
        let mut window = Window { cwnd: 1000.0, ssthresh: 1000 };
        reduce(&mut cubic, &mut window);
        cubic.on_ack(&cfg, &one(0), &mut window);
        let unused = AckSample { flight: 10, ..one(60_000) };
        let before = window.cwnd;
        cubic.on_ack(&cfg, &unused, &mut window);
        assert_eq!(window.cwnd, before);
        // An idle minute does not age the stage.
        assert_eq!(cubic.epoch, Some(ms(60_000)));
    }

    #[test]
    fn hystart_ends_slow_start_at_the_window_of_the_fifth_slow_round() {
        let cfg = TcpConfig::cubic();
        let (mut cubic, mut window) = (Cubic::new(&cfg), Window { cwnd: 10.0, ssthresh: 65_535 });
        let mut una = 0;
        for round in 0u64..20 {
            let rtt = Span::from_millis(if round < 3 { 50 } else { 80 });
            let end = una + 100;
            while una < end {
                una += 1;
                let high = end + 100;
                cubic.on_ack(&cfg, &AckSample { una, high, rtt: Some(rtt), ..one(round * 100) }, &mut window);
            }
        }
        assert!(!window.in_slow_start(), "{window:?}");
        assert!(cubic.hystart.is_none());
    }
}
