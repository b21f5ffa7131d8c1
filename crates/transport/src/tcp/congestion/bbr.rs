//! BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00): sends at the measured delivery rate, with about
//! twice the bandwidth-delay product in flight, regardless of losses and marks.
//!
//! ```text
//!   Startup --- bandwidth grew by less than a quarter for three rounds ---> Drain --- flight = BDP ---> ProbeBW
//!      ^                                                                                                   |
//!      +---------------- 200 ms with four segments (ProbeRTT), each 10 s without a smaller round trip -----+
//!
//!   pacing rate = gain x BtlBw     Startup 2.89, Drain 1/2.89, ProbeBW 1.25, 0.75, 1 x 6, one round trip each
//!   window      = gain x BDP       Startup and Drain 2.89, ProbeBW 2; four segments in ProbeRTT
//! ```
//!
//! BtlBw is the largest delivery rate of ten rounds ([`delivery`](super::delivery)), RTprop the smallest round-trip
//! time of ten seconds.
//!
//! As in Linux (`tcp_bbr.c`), where it differs from the draft:
//! - The window has room for aggregated acknowledgements ([`bbr_aggregation`](super::bbr_aggregation)).
//! - Two intervals of high loss at one rate indicate a policer; its rate holds for 48 rounds
//!   ([`bbr_policer`](super::bbr_policer)).
//! - The pacing rate is 1 % below the gain times BtlBw. Windows are whole and even, and two larger in the phase of
//!   ProbeBW that raises the rate.
//! - The window is at least four segments except in the first round of a recovery. After a timeout it grows from there
//!   by delivered segments; the old window returns when all losses are repaired.
//! - Retransmissions give no round-trip sample, and a sample equal to RTprop does not postpone ProbeRTT.
//! - The first pacing rate follows from the first round trip (the SYN's) instead of a nominal 1 ms.
//!
//! Deviations from both:
//! - The first phase of ProbeBW depends on the clock, as senders draw no random numbers.
//! - A phase that raises the rate ends by the segments in the network at an acknowledgement; Linux uses their number at
//!   the next paced burst.
//! - ECN is ignored, as in the draft. Versions 2 and 3 are not implemented.

use aqumen_units::{Instant, Span};

use super::bbr_aggregation::Aggregation;
use super::bbr_policer::{Observation, Policer};
use super::controller::{AckSample, Controller, Phase, Properties, Signal, Window};
use super::delivery::{Delivery, Sample};
use crate::tcp::{Segment, TcpConfig};

/// BBRHighGain, 2 / ln 2.
const HIGH_GAIN: f64 = 2.885_390_081_777_927;
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// BBRMinPipeCwnd.
const MIN_PIPE: f64 = 4.0;
/// BtlBwFilterLen (rounds).
const BW_ROUNDS: usize = 10;
/// RTpropFilterLen.
const RTT_WINDOW: Span = Span::from_secs(10);
/// ProbeRTTDuration.
const PROBE_RTT: Span = Span::from_millis(200);
/// Linux: bbr_pacing_margin_percent.
const PACING_MARGIN: f64 = 0.99;

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// State of BBR.
#[derive(Clone, Debug)]
pub(super) struct Bbr {
    delivery: Delivery,
    state: State,
    /// Largest delivery rate of each of the last rounds (segments/s).
    bw: [f64; BW_ROUNDS],
    rtprop: Span,
    rtprop_at: Instant,
    round: usize,
    /// The round ends when a segment is acknowledged that was sent after this number of deliveries.
    next_round: u32,
    pacing_rate: f64,
    pacing_gain: f64,
    cwnd_gain: f64,
    cycle: usize,
    cycle_at: Instant,
    filled_pipe: bool,
    full_bw: f64,
    full_bw_rounds: u32,
    /// End of ProbeRTT; `None`: too many segments in flight still.
    probe_rtt_done: Option<Instant>,
    probe_rtt_round_done: bool,
    /// Whether sending has just resumed after an idle period.
    idle_restart: bool,
    /// Window to restore after a recovery or ProbeRTT.
    prior_cwnd: f64,
    /// Phase of the sender at the last acknowledgement or timeout.
    phase: Phase,
    /// Packet conservation, in the first round of a recovery.
    conserving: bool,
    aggregation: Aggregation,
    policer: Policer,
    initial_window: f64,
    payload_bytes: f64,
}

impl Bbr {
    pub(super) const PROPERTIES: Properties = Properties {
        sack: Some("sack with BBR, which counts arrived segments"),
        pacing: Some("true with BBR or Prague, which are paced"),
        samples_delivery: true,
        handles_marks: true,
        recovers_by_itself: true,
        ..Properties::RENO
    };

    pub(super) fn new(cfg: &TcpConfig) -> Self {
        let initial_window = f64::from(cfg.initial_window);
        Bbr {
            delivery: Delivery::new(),
            state: State::Startup,
            bw: [0.0; BW_ROUNDS],
            rtprop: Span::MAX,
            rtprop_at: Instant::ZERO,
            round: 0,
            next_round: 0,
            pacing_rate: HIGH_GAIN * initial_window / 1e-3,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            cycle: 0,
            cycle_at: Instant::ZERO,
            filled_pipe: false,
            full_bw: 0.0,
            full_bw_rounds: 0,
            probe_rtt_done: None,
            probe_rtt_round_done: false,
            idle_restart: false,
            prior_cwnd: 0.0,
            phase: Phase::Open,
            conserving: false,
            aggregation: Aggregation::default(),
            policer: Policer::default(),
            initial_window,
            payload_bytes: f64::from(cfg.payload_bytes()),
        }
    }

    /// Pacing rate (segments/s).
    pub(super) fn pacing_rate(&self) -> f64 {
        self.pacing_rate
    }

    pub(super) fn on_sent(&mut self, now: Instant, seq: u32, idle: bool) {
        // BBRHandleRestartFromIdle.
        if idle && self.delivery.is_limited() {
            self.idle_restart = true;
            self.aggregation.restart(now);
            if self.state == State::ProbeBw {
                self.pacing_rate = PACING_MARGIN * self.bw();
            }
        }
        self.delivery.on_sent(now, seq, idle);
    }

    pub(super) fn on_arrival(&mut self, now: Instant, first: u32, end: u32) {
        self.delivery.on_arrival(now, first, end);
    }

    pub(super) fn on_exhausted(&mut self, in_flight: u32) {
        self.delivery.limit(in_flight);
    }

    /// Section 4.2.3.4 of the draft (BBROnEnterFastRecovery, BBROnEnterRTO), and Linux's bbr_set_state.
    pub(super) fn on_congestion(&mut self, signal: Signal, window: &mut Window) {
        match signal {
            Signal::Mark => {}
            Signal::Loss => self.save_cwnd(window.cwnd),
            Signal::Timeout => {
                self.save_cwnd(window.cwnd);
                self.phase = Phase::Timeout;
                self.full_bw = 0.0;
            }
        }
    }

    pub(super) fn on_ack(&mut self, acked: &AckSample, window: &mut Window) {
        if let (Some(rtt), true) = (acked.rtt, acked.opening) {
            self.pacing_rate = PACING_MARGIN * HIGH_GAIN * self.initial_window / rtt.as_secs_f64().max(1e-6);
        }
        let sample = self.delivery.sample(acked.now, acked.una, self.rtprop);
        let mut round_start = false;
        if let Some(sample) = sample.filter(|sample| sample.rate.is_some()) {
            round_start = self.begin_round(&sample);
            self.detect_policer(acked, &sample, round_start);
            self.update_btlbw(&sample);
            let cwnd = window.cwnd;
            self.aggregation.on_ack(acked.now, acked.delivered, self.bw(), cwnd, round_start);
            self.check_full_pipe(&sample, round_start);
        }
        self.check_cycle_phase(acked);
        self.check_drain(acked);
        self.update_rtprop(acked, sample, round_start, window);
        self.set_pacing_rate();
        self.set_cwnd(acked, window);
    }

    /// Linux: bbr_lt_bw_sampling.
    fn detect_policer(&mut self, acked: &AckSample, sample: &Sample, round_start: bool) {
        let (delivered, probing) = (self.delivery.delivered, self.state == State::ProbeBw);
        let was_policed = self.policer.rate().is_some();
        let &AckSample { now, lost, lost_before, .. } = acked;
        let observation =
            Observation { now, lost, lost_before, delivered, limited: sample.limited, round_start, probing };
        self.policer.on_ack(&observation, self.payload_bytes);
        match (was_policed, self.policer.rate().is_some()) {
            (false, true) if probing => self.pacing_gain = 1.0,
            (true, false) => self.enter_probe_bw(acked.now),
            _ => {}
        }
    }

    /// Bandwidth estimate: the policer's rate, or BtlBw.
    fn bw(&self) -> f64 {
        self.policer.rate().unwrap_or_else(|| self.btlbw())
    }

    fn btlbw(&self) -> f64 {
        self.bw.iter().copied().fold(0.0, f64::max)
    }

    /// BBRUpdateRound.
    fn begin_round(&mut self, sample: &Sample) -> bool {
        let starts = sample.prior_delivered >= self.next_round;
        if starts {
            self.next_round = self.delivery.delivered;
            self.round += 1;
            self.bw[self.round % BW_ROUNDS] = 0.0;
            self.conserving = false;
        }
        starts
    }

    /// BBRUpdateBtlBw.
    fn update_btlbw(&mut self, sample: &Sample) {
        let Some(rate) = sample.rate else { return };
        if !sample.limited || rate >= self.btlbw() {
            let slot = &mut self.bw[self.round % BW_ROUNDS];
            *slot = slot.max(rate);
        }
    }

    /// BBRCheckFullPipe.
    fn check_full_pipe(&mut self, sample: &Sample, round_start: bool) {
        if self.filled_pipe || !round_start || sample.limited {
            return;
        }
        let bw = self.btlbw();
        if bw >= self.full_bw * 1.25 {
            self.full_bw = bw;
            self.full_bw_rounds = 0;
            return;
        }
        self.full_bw_rounds += 1;
        self.filled_pipe = self.full_bw_rounds >= 3;
    }

    fn check_drain(&mut self, acked: &AckSample) {
        if self.state == State::Startup && self.filled_pipe {
            self.state = State::Drain;
            self.pacing_gain = 1.0 / HIGH_GAIN;
            self.cwnd_gain = HIGH_GAIN;
        }
        if self.state == State::Drain && f64::from(acked.in_flight) <= self.inflight(self.btlbw(), 1.0) {
            self.enter_probe_bw(acked.now);
        }
    }

    fn enter_probe_bw(&mut self, now: Instant) {
        self.state = State::ProbeBw;
        self.cwnd_gain = 2.0;
        // Any phase but the second, which drains the queue of the first.
        let random = (now.as_nanos() / 1_000).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        self.cycle = CYCLE.len() - 1 - (random % 7) as usize;
        self.advance_cycle(now);
    }

    fn advance_cycle(&mut self, now: Instant) {
        self.cycle_at = now;
        self.cycle = (self.cycle + 1) % CYCLE.len();
        self.pacing_gain = if self.policer.rate().is_some() { 1.0 } else { CYCLE[self.cycle] };
    }

    /// BBRCheckCyclePhase.
    fn check_cycle_phase(&mut self, acked: &AckSample) {
        if self.state != State::ProbeBw {
            return;
        }
        let long_enough = acked.now.saturating_since(self.cycle_at) > self.rtprop;
        let prior = f64::from(acked.in_flight + acked.delivered + acked.lost);
        let next = if self.pacing_gain > 1.0 {
            // Linux counts the next burst too.
            let next = prior + self.send_quantum();
            long_enough && (acked.lost > 0 || next >= self.inflight(self.btlbw(), self.pacing_gain))
        } else if self.pacing_gain < 1.0 {
            long_enough || prior <= self.inflight(self.btlbw(), 1.0)
        } else {
            long_enough
        };
        if next {
            self.advance_cycle(acked.now);
        }
    }

    /// BBRUpdateRTprop and BBRCheckProbeRTT.
    fn update_rtprop(&mut self, acked: &AckSample, sample: Option<Sample>, round_start: bool, window: &mut Window) {
        let expired = acked.now.saturating_since(self.rtprop_at) > RTT_WINDOW;
        if let Some(rtt) = sample.and_then(|sample| sample.rtt)
            && (rtt < self.rtprop || expired)
        {
            self.rtprop = rtt;
            self.rtprop_at = acked.now;
        }
        if self.state != State::ProbeRtt && expired && !self.idle_restart && self.rtprop != Span::MAX {
            self.save_cwnd(window.cwnd);
            self.state = State::ProbeRtt;
            (self.pacing_gain, self.cwnd_gain) = (1.0, 1.0);
            self.probe_rtt_done = None;
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(acked, round_start, window);
        }
        if acked.delivered > 0 {
            self.idle_restart = false;
        }
    }

    fn handle_probe_rtt(&mut self, acked: &AckSample, round_start: bool, window: &mut Window) {
        // The low rate is due to ProbeRTT itself.
        self.delivery.limit(acked.in_flight);
        match self.probe_rtt_done {
            None => {
                if f64::from(acked.in_flight) <= MIN_PIPE {
                    self.probe_rtt_done = Some(acked.now + PROBE_RTT);
                    self.probe_rtt_round_done = false;
                    self.next_round = self.delivery.delivered;
                }
            }
            Some(done) => {
                self.probe_rtt_round_done |= round_start;
                if self.probe_rtt_round_done && acked.now > done {
                    self.rtprop_at = acked.now;
                    window.cwnd = window.cwnd.max(self.prior_cwnd);
                    if self.filled_pipe {
                        self.enter_probe_bw(acked.now);
                    } else {
                        self.state = State::Startup;
                        (self.pacing_gain, self.cwnd_gain) = (HIGH_GAIN, HIGH_GAIN);
                    }
                }
            }
        }
    }

    /// BBRSetPacingRate.
    fn set_pacing_rate(&mut self) {
        let rate = PACING_MARGIN * self.pacing_gain * self.bw();
        if rate > 0.0 && (self.filled_pipe || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    /// Bandwidth-delay product of `bw` times `gain`, rounded up.
    fn bdp(&self, bw: f64, gain: f64) -> f64 {
        if self.rtprop == Span::MAX || bw == 0.0 {
            return self.initial_window;
        }
        libm::ceil(gain * bw * self.rtprop.as_secs_f64())
    }

    /// BBRInflight: `gain` times the bandwidth-delay product, and three send quanta.
    fn inflight(&self, bw: f64, gain: f64) -> f64 {
        self.with_quanta(self.bdp(bw, gain))
    }

    /// Linux: bbr_quantization_budget.
    fn with_quanta(&self, window: f64) -> f64 {
        let even = 2.0 * libm::ceil((window + 3.0 * self.send_quantum()) / 2.0);
        if self.state == State::ProbeBw && self.cycle == 0 { even + 2.0 } else { even }
    }

    /// BBRSetSendQuantum, as in Linux: about 1 ms at the pacing rate, at least two segments from 1.2 Mbit/s on.
    fn send_quantum(&self) -> f64 {
        let bytes_s = self.pacing_rate * self.payload_bytes;
        let least = if bytes_s < 150_000.0 { 1.0 } else { 2.0 };
        libm::floor((bytes_s / 1024.0).min(65_536.0) / self.payload_bytes).max(least)
    }

    /// BBRSetCwnd.
    fn set_cwnd(&mut self, acked: &AckSample, window: &mut Window) {
        if acked.opening {
            return;
        }
        if acked.delivered > 0 {
            let cwnd = self.modulate_cwnd(acked, window.cwnd);
            window.cwnd = if self.conserving {
                cwnd.max(f64::from(acked.in_flight + acked.delivered))
            } else {
                self.approach_target(cwnd, f64::from(acked.delivered))
            };
        }
        if self.state == State::ProbeRtt {
            window.cwnd = window.cwnd.min(MIN_PIPE);
        }
        // BBR does not use the threshold; it stays below the window, which other parts read as "no slow start".
        window.ssthresh = 2;
    }

    fn approach_target(&self, cwnd: f64, delivered: f64) -> f64 {
        let bw = self.bw();
        let burst = if self.filled_pipe { self.aggregation.segments(bw) } else { 0.0 };
        let target = self.with_quanta(self.bdp(bw, self.cwnd_gain) + burst);
        let grown = if self.filled_pipe {
            (cwnd + delivered).min(target)
        } else if cwnd < target || f64::from(self.delivery.delivered) < self.initial_window {
            cwnd + delivered
        } else {
            cwnd
        };
        grown.max(MIN_PIPE)
    }

    /// BBRModulateCwndForRecovery, BBROnExitFastRecovery; Linux: bbr_set_cwnd_to_recover_or_restore.
    fn modulate_cwnd(&mut self, acked: &AckSample, cwnd: f64) -> f64 {
        let before = core::mem::replace(&mut self.phase, acked.phase);
        let cwnd = if acked.lost > 0 { (cwnd - f64::from(acked.lost)).max(1.0) } else { cwnd };
        match (before, acked.phase) {
            (Phase::Open | Phase::Timeout, Phase::Recovery) => {
                self.conserving = true;
                self.next_round = self.delivery.delivered;
                f64::from(acked.in_flight + acked.delivered)
            }
            (Phase::Recovery | Phase::Timeout, Phase::Open) => {
                self.conserving = false;
                cwnd.max(self.prior_cwnd)
            }
            _ => cwnd,
        }
    }

    /// BBRSaveCwnd.
    fn save_cwnd(&mut self, cwnd: f64) {
        let undisturbed = self.phase == Phase::Open && self.state != State::ProbeRtt;
        self.prior_cwnd = if undisturbed { cwnd } else { self.prior_cwnd.max(cwnd) };
    }
}

impl Controller for Bbr {
    fn on_ack(&mut self, _cfg: &TcpConfig, acked: &AckSample, window: &mut Window) {
        self.on_ack(acked, window);
    }

    fn on_congestion(&mut self, _cfg: &TcpConfig, signal: Signal, window: &mut Window) -> Option<f64> {
        self.on_congestion(signal, window);
        None
    }

    fn on_sent(&mut self, now: Instant, segment: &mut Segment, idle: bool) {
        self.on_sent(now, segment.seq, idle);
    }

    fn on_arrival(&mut self, now: Instant, first: u32, end: u32) {
        self.on_arrival(now, first, end);
    }

    fn on_exhausted(&mut self, in_flight: u32) {
        self.on_exhausted(in_flight);
    }

    fn pacing_rate(&self) -> Option<f64> {
        Some(self.pacing_rate())
    }

    fn send_quantum(&self) -> u32 {
        self.send_quantum() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::super::controller::tests::acked;
    use super::*;

    const RTT: Span = Span::from_millis(100);

    /// A path that delivers everything sent after 100 ms, all at once: 20 segments make 200 segments/s.
    struct Path {
        bbr: Bbr,
        window: Window,
        now: Instant,
        next: u32,
    }

    impl Path {
        fn new() -> Path {
            let window = Window { cwnd: 10.0, ssthresh: 65_535 };
            let mut path = Path { bbr: Bbr::new(&TcpConfig::bbr()), window, now: Instant::ZERO, next: 0 };
            path.bbr.on_ack(&AckSample { rtt: Some(RTT), opening: true, ..acked() }, &mut path.window);
            path
        }

        /// Sends `n` segments, which are acknowledged `rtt` later with `in_flight` others still outstanding.
        fn round(&mut self, n: u32, rtt: Span, in_flight: u32) {
            for seq in self.next..self.next + n {
                self.bbr.on_sent(self.now, seq, seq == self.next);
            }
            let first = self.next;
            self.next += n;
            self.now += rtt;
            self.bbr.on_arrival(self.now, first, self.next);
            self.ack(n, in_flight);
        }

        fn ack(&mut self, delivered: u32, in_flight: u32) {
            let one = AckSample { now: self.now, una: self.next, delivered, in_flight, ..acked() };
            self.bbr.on_ack(&one, &mut self.window);
        }

        /// ProbeBW with a bandwidth of 200 segments/s and a round trip of 100 ms: a BDP of 20 segments.
        fn cruising() -> Path {
            let mut path = Path::new();
            for _ in 0..4 {
                path.round(20, RTT, 0);
            }
            assert_eq!(path.bbr.state, State::ProbeBw);
            path
        }
    }

    #[test]
    fn the_first_rate_is_the_initial_window_per_round_trip_times_the_high_gain() {
        let path = Path::new();
        // 0.99 x 2 / ln 2 x 10 / 0.1 s = 0.99 x 288.539.
        assert!((path.bbr.pacing_rate() - 285.653_618).abs() < 1e-5, "{}", path.bbr.pacing_rate());
    }

    #[test]
    fn startup_ends_after_three_rounds_without_a_quarter_more() {
        let mut path = Path::new();
        // 10, 20, 40 segments a round: the bandwidth doubles.
        for n in [10, 20, 40] {
            path.round(n, RTT, 60);
            assert_eq!(path.bbr.state, State::Startup);
        }
        // 400, then 440 and 480 segments/s: less than 500. The third such round ends Startup.
        for n in [44, 48] {
            path.round(n, RTT, 60);
            assert_eq!(path.bbr.state, State::Startup);
        }
        path.round(48, RTT, 80);
        assert_eq!(path.bbr.state, State::Drain);
        assert_eq!(path.bbr.btlbw(), 480.0);
        // Drain: 0.99 x 480 / 2.885 segments/s, until at most the BDP of 48 and three quanta of 2 (below 24 Mbit/s) are
        // in flight.
        assert!((path.bbr.pacing_rate() - 0.99 * 480.0 * 0.346_573_59).abs() < 1e-3, "{}", path.bbr.pacing_rate());
        path.ack(0, 55);
        assert_eq!(path.bbr.state, State::Drain);
        path.ack(0, 52);
        assert_eq!(path.bbr.state, State::ProbeBw);
        assert_eq!(path.bbr.cwnd_gain, 2.0);
    }

    #[test]
    fn probe_bw_cycles_through_its_gains() {
        let mut path = Path::cruising();
        (path.bbr.cycle, path.bbr.pacing_gain, path.bbr.cycle_at) = (0, 1.25, path.now);
        // Before a round trip is over nothing changes. After it, the phase of 1.25 lasts until 1.25 x 20 + 3 x 2 = 31,
        // made even 32, and two more are in flight, including the next burst of two: 32.
        path.now += RTT;
        path.ack(0, 40);
        assert_eq!(path.bbr.pacing_gain, 1.25);
        path.now += Span::from_millis(1);
        path.ack(0, 31);
        assert_eq!(path.bbr.pacing_gain, 1.25);
        path.ack(0, 32);
        assert_eq!((path.bbr.pacing_gain, path.bbr.pacing_rate()), (0.75, 148.5));
        // 0.75 ends at a BDP in flight, here 26 with the quanta; each other phase lasts a round trip.
        path.ack(0, 27);
        assert_eq!(path.bbr.pacing_gain, 0.75);
        path.ack(0, 26);
        assert_eq!((path.bbr.pacing_gain, path.bbr.pacing_rate()), (1.0, 198.0));
        for _ in 0..6 {
            assert_eq!(path.bbr.pacing_gain, 1.0);
            path.now += RTT + Span::from_millis(1);
            path.ack(0, 26);
        }
        assert_eq!((path.bbr.cycle, path.bbr.pacing_gain), (0, 1.25));
    }

    #[test]
    fn the_window_is_twice_the_bdp_and_three_quanta() {
        let mut path = Path::cruising();
        for _ in 0..10 {
            path.round(20, RTT, 20);
        }
        // 2 x 20, 20 of aggregation, and 3 x 2; two more in the phase that raises the rate.
        let probing = if path.bbr.cycle == 0 { 2.0 } else { 0.0 };
        assert_eq!(path.window.cwnd, 66.0 + probing);
    }

    #[test]
    fn probe_rtt_runs_every_ten_seconds_with_four_segments() {
        let mut path = Path::cruising();
        let before = path.window.cwnd;
        // The round trip is 110 ms from now on; RTprop stays 100 ms for ten seconds.
        while path.bbr.state == State::ProbeBw {
            path.round(22, Span::from_millis(110), 20);
        }
        assert_eq!(path.bbr.state, State::ProbeRtt);
        // 100 ms was first measured at 0.1 s; an equal sample changes nothing.
        assert!((10_100..10_220).contains(&(path.now.as_nanos() / 1_000_000)), "{}", path.now);
        assert_eq!(path.bbr.rtprop, Span::from_millis(110));
        assert_eq!(path.window.cwnd, 4.0);
        // The 200 ms begin when four are in flight.
        path.round(4, Span::from_millis(110), 4);
        let begun = path.now;
        while path.bbr.state == State::ProbeRtt {
            assert_eq!(path.window.cwnd, 4.0);
            path.round(4, Span::from_millis(110), 4);
        }
        let lasted = path.now - begun;
        assert!(lasted > Span::from_millis(200) && lasted <= Span::from_millis(330), "{lasted}");
        assert!(path.window.cwnd >= before, "{:?}", path.window);
        assert_eq!(path.bbr.state, State::ProbeBw);
    }

    #[test]
    fn packets_are_conserved_for_a_round_after_a_loss_and_the_window_is_restored() {
        let mut path = Path::cruising();
        path.window.cwnd = 46.0;
        path.bbr.on_congestion(Signal::Loss, &mut path.window);
        let phase = Phase::Recovery;
        let lossy = AckSample { now: path.now, delivered: 1, in_flight: 40, lost: 3, phase, ..acked() };
        path.bbr.on_ack(&lossy, &mut path.window);
        // 40 in flight, one delivered: one may be sent.
        assert_eq!(path.window.cwnd, 41.0);
        // Nothing is delivered: no change.
        path.bbr.on_ack(&AckSample { delivered: 0, lost: 9, ..lossy }, &mut path.window);
        assert_eq!(path.window.cwnd, 41.0);
        // All losses are repaired: 46 again, and one for the delivered segment.
        path.bbr.on_ack(&AckSample { phase: Phase::Open, lost: 0, ..lossy }, &mut path.window);
        assert_eq!(path.window.cwnd, 47.0);
        // A mark changes nothing.
        path.bbr.on_congestion(Signal::Mark, &mut path.window);
        assert_eq!((path.window.cwnd, path.bbr.phase), (47.0, Phase::Open));
    }

    #[test]
    fn after_a_round_of_conservation_the_window_follows_losses_and_deliveries_down_to_four() {
        let mut path = Path::cruising();
        path.window.cwnd = 20.0;
        path.bbr.on_congestion(Signal::Loss, &mut path.window);
        let lossy =
            AckSample { now: path.now, delivered: 2, in_flight: 18, lost: 1, phase: Phase::Recovery, ..acked() };
        path.bbr.on_ack(&lossy, &mut path.window);
        path.bbr.conserving = false;
        // 20 - 3 + 2, 19 - 18 + 2.
        path.bbr.on_ack(&AckSample { lost: 3, ..lossy }, &mut path.window);
        assert_eq!(path.window.cwnd, 19.0);
        path.bbr.on_ack(&AckSample { lost: 18, ..lossy }, &mut path.window);
        assert_eq!(path.window.cwnd, 4.0);
    }

    #[test]
    fn after_a_timeout_the_window_grows_from_four_and_is_restored_after_the_repair() {
        let mut path = Path::cruising();
        path.window.cwnd = 46.0;
        path.bbr.on_congestion(Signal::Timeout, &mut path.window);
        path.window.cwnd = 1.0; // set by the sender
        let one = AckSample { now: path.now, delivered: 1, in_flight: 1, phase: Phase::Timeout, ..acked() };
        let after = [Phase::Timeout, Phase::Timeout, Phase::Open].map(|phase| {
            path.bbr.on_ack(&AckSample { phase, ..one }, &mut path.window);
            path.window.cwnd
        });
        // 1 + 1 is below four; 5; the old window and one delivered segment.
        assert_eq!(after, [4.0, 5.0, 47.0]);
    }

    #[test]
    fn a_policer_fixes_the_rate_and_stops_probing() {
        let mut path = Path::cruising();
        path.bbr.policer = Policer::detected(100.0);
        path.round(20, RTT, 20);
        // 0.99 x 100 segments/s although BtlBw is 200. The window is 2 x 10, the aggregation of 100 ms at that rate,
        // 10, and 3 x 1, since 99 x 1448 B/s are less than 150 kB/s; made even 34.
        assert!((path.bbr.pacing_rate() - 99.0).abs() < 1e-9, "{}", path.bbr.pacing_rate());
        for _ in 0..10 {
            path.round(20, RTT, 20);
            assert_eq!(path.bbr.pacing_gain, 1.0);
        }
        let probing = if path.bbr.cycle == 0 { 2.0 } else { 0.0 };
        assert_eq!(path.window.cwnd, 34.0 + probing);
    }
}
