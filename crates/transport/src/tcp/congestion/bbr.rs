//! BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00): sends at the rate at which segments were delivered, with
//! about twice the bandwidth-delay product in flight, whatever is lost or marked.
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
//! BtlBw is the largest delivery rate of ten rounds ([`delivery`](super::delivery)), RTprop the smallest round trip of ten
//! seconds.
//!
//! Deviations:
//! - The phase of ProbeBW in which it starts comes from the clock, not from a random number: a sender draws none.
//! - The first pacing rate follows from the first round trip (the SYN's), as in Linux, not from a nominal 1 ms.
//! - Each segment is paced by itself; the send quantum only adds its allowance to the window.
//! - After a timeout the window grows again from one by what is delivered; it is not restored.
//! - ECN is ignored, as in the draft. Versions 2 and 3 are not implemented.

use aqumen_units::{Instant, Span};

use super::delivery::{Delivery, Sample};
use super::{Acked, Controller, Segment, Signal, TcpConfig, Terms, Window};

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
    /// The round ends when a segment is acknowledged that left after so many had arrived.
    next_round: u32,
    pacing_rate: f64,
    pacing_gain: f64,
    cwnd_gain: f64,
    cycle: usize,
    cycle_at: Instant,
    filled_pipe: bool,
    full_bw: f64,
    full_bw_rounds: u32,
    /// When ProbeRTT may end; `None`: the flight has not fallen yet.
    probe_rtt_done: Option<Instant>,
    probe_rtt_round_done: bool,
    /// Sending has just begun again after a silence.
    idle_restart: bool,
    /// Window to return to after a repair or ProbeRTT.
    prior_cwnd: f64,
    repair: Repair,
    initial_window: f64,
    segment_bytes: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Repair {
    No,
    /// The signal has come, the acknowledgement that brought it is still to be worked in.
    Begins,
    /// For the first round trip: one segment out for each that arrived.
    Conserving,
    Growing,
}

impl Bbr {
    pub(super) const TERMS: Terms = Terms {
        sack: Some("sack: BBR counts what arrives"),
        pacing: Some("true: BBR and Prague are paced"),
        samples_delivery: true,
        handles_marks: true,
        ..Terms::USUAL
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
            repair: Repair::No,
            initial_window,
            segment_bytes: f64::from(cfg.packet_bytes),
        }
    }

    /// Segments a second.
    pub(super) fn pacing_rate(&self) -> f64 {
        self.pacing_rate
    }

    pub(super) fn on_sent(&mut self, now: Instant, seq: u32, idle: bool) {
        // BBRHandleRestartFromIdle.
        if idle && self.delivery.is_limited() {
            self.idle_restart = true;
            if self.state == State::ProbeBw {
                self.pacing_rate = self.btlbw();
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

    /// Section 4.2.3.4 of the draft (BBROnEnterFastRecovery, BBROnEnterRTO).
    pub(super) fn on_congestion(&mut self, signal: Signal, window: &mut Window) {
        if signal != Signal::Mark {
            self.save_cwnd(window.cwnd);
            self.repair = if signal == Signal::Loss { Repair::Begins } else { Repair::No };
        }
    }

    pub(super) fn on_ack(&mut self, acked: &Acked, window: &mut Window) {
        if let (Some(rtt), true) = (acked.rtt, acked.opening) {
            self.pacing_rate = HIGH_GAIN * self.initial_window / rtt.as_secs_f64().max(1e-6);
        }
        let sample = self.delivery.sample(acked.now, acked.una, self.rtprop);
        let round_start = sample.is_some_and(|sample| self.begin_round(&sample));
        if let Some(sample) = sample {
            self.update_btlbw(&sample);
            self.check_full_pipe(&sample, round_start);
        }
        self.check_cycle_phase(acked);
        self.check_drain(acked);
        self.update_rtprop(acked, sample, round_start, window);
        self.set_pacing_rate();
        self.set_cwnd(acked, round_start, window);
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

    fn check_drain(&mut self, acked: &Acked) {
        if self.state == State::Startup && self.filled_pipe {
            self.state = State::Drain;
            self.pacing_gain = 1.0 / HIGH_GAIN;
            self.cwnd_gain = HIGH_GAIN;
        }
        if self.state == State::Drain && f64::from(acked.in_flight) <= self.inflight(1.0) {
            self.enter_probe_bw(acked.now);
        }
    }

    fn enter_probe_bw(&mut self, now: Instant) {
        self.state = State::ProbeBw;
        self.cwnd_gain = 2.0;
        // Any phase but the second, which drains a queue that the first has made.
        let luck = (now.as_nanos() / 1_000).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        self.cycle = CYCLE.len() - 1 - (luck % 7) as usize;
        self.advance_cycle(now);
    }

    fn advance_cycle(&mut self, now: Instant) {
        self.cycle_at = now;
        self.cycle = (self.cycle + 1) % CYCLE.len();
        self.pacing_gain = CYCLE[self.cycle];
    }

    /// BBRCheckCyclePhase.
    fn check_cycle_phase(&mut self, acked: &Acked) {
        if self.state != State::ProbeBw {
            return;
        }
        let long_enough = acked.now.saturating_since(self.cycle_at) > self.rtprop;
        let prior = f64::from(acked.in_flight + acked.delivered);
        let next = if self.pacing_gain > 1.0 {
            long_enough && (acked.lost > 0 || prior >= self.inflight(self.pacing_gain))
        } else if self.pacing_gain < 1.0 {
            long_enough || prior <= self.inflight(1.0)
        } else {
            long_enough
        };
        if next {
            self.advance_cycle(acked.now);
        }
    }

    /// BBRUpdateRTprop and BBRCheckProbeRTT.
    fn update_rtprop(&mut self, acked: &Acked, sample: Option<Sample>, round_start: bool, window: &mut Window) {
        let expired = acked.now.saturating_since(self.rtprop_at) > RTT_WINDOW;
        if let Some(sample) = sample
            && (sample.rtt <= self.rtprop || expired)
        {
            self.rtprop = sample.rtt;
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

    fn handle_probe_rtt(&mut self, acked: &Acked, round_start: bool, window: &mut Window) {
        // The low rate now is our own doing.
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
        let rate = self.pacing_gain * self.btlbw();
        if rate > 0.0 && (self.filled_pipe || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    /// BBRInflight: the window that `gain` times the bandwidth-delay product and three send quanta make.
    fn inflight(&self, gain: f64) -> f64 {
        if self.rtprop == Span::MAX || self.btlbw() == 0.0 {
            return self.initial_window;
        }
        gain * self.btlbw() * self.rtprop.as_secs_f64() + 3.0 * self.send_quantum()
    }

    /// BBRSetSendQuantum (segments).
    fn send_quantum(&self) -> f64 {
        match self.pacing_rate * self.segment_bytes * 8.0 {
            bps if bps < 1.2e6 => 1.0,
            bps if bps < 24e6 => 2.0,
            bps => (bps / 8.0 * 1e-3).min(65_536.0) / self.segment_bytes,
        }
    }

    /// BBRSetCwnd.
    fn set_cwnd(&mut self, acked: &Acked, round_start: bool, window: &mut Window) {
        if acked.opening {
            return;
        }
        let target = self.inflight(self.cwnd_gain);
        let (delivered, in_flight) = (f64::from(acked.delivered), f64::from(acked.in_flight));
        self.follow_repair(acked, round_start, window);
        if self.repair == Repair::Conserving {
            window.cwnd = window.cwnd.max(in_flight + delivered);
        } else if self.filled_pipe {
            window.cwnd = (window.cwnd + delivered).min(target);
        } else if window.cwnd < target || f64::from(self.delivery.delivered) < self.initial_window {
            window.cwnd += delivered;
        }
        if self.repair == Repair::No {
            window.cwnd = window.cwnd.max(MIN_PIPE);
        }
        if self.state == State::ProbeRtt {
            window.cwnd = window.cwnd.min(MIN_PIPE);
        }
        window.cwnd = window.cwnd.max(1.0);
        // Nothing here reads the threshold; it stays below the window, which is what "no slow start" means elsewhere.
        window.ssthresh = 2;
    }

    /// BBRModulateCwndForRecovery, BBROnExitFastRecovery.
    fn follow_repair(&mut self, acked: &Acked, round_start: bool, window: &mut Window) {
        let in_flight = f64::from(acked.in_flight);
        match self.repair {
            Repair::No => return,
            Repair::Begins => {
                window.cwnd = in_flight + f64::from(acked.delivered.max(1));
                self.next_round = self.delivery.delivered;
                self.repair = Repair::Conserving;
                return;
            }
            Repair::Conserving if round_start => self.repair = Repair::Growing,
            Repair::Conserving | Repair::Growing => {}
        }
        if !acked.repairing {
            self.repair = Repair::No;
            window.cwnd = window.cwnd.max(self.prior_cwnd);
        } else if acked.lost > 0 {
            window.cwnd = (window.cwnd - f64::from(acked.lost)).max(1.0);
        }
    }

    /// BBRSaveCwnd.
    fn save_cwnd(&mut self, cwnd: f64) {
        let undisturbed = self.repair == Repair::No && self.state != State::ProbeRtt;
        self.prior_cwnd = if undisturbed { cwnd } else { self.prior_cwnd.max(cwnd) };
    }
}

impl Controller for Bbr {
    fn on_ack(&mut self, _cfg: &TcpConfig, acked: &Acked, window: &mut Window) {
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
}

#[cfg(test)]
mod tests {
    use super::super::tests::acked;
    use super::*;

    const RTT: Span = Span::from_millis(100);

    /// A path that delivers what is sent 100 ms later, all at once: 20 segments make 200 segments a second.
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
            path.bbr.on_ack(&Acked { rtt: Some(RTT), opening: true, ..acked() }, &mut path.window);
            path
        }

        /// `n` segments leave; a round trip of `rtt` later they are acknowledged, with `in_flight` others still out.
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
            let one = Acked { now: self.now, una: self.next, delivered, in_flight, ..acked() };
            self.bbr.on_ack(&one, &mut self.window);
        }

        /// In ProbeBW with a bandwidth of 200 segments/s and a round trip of 100 ms: a BDP of 20 segments.
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
    fn the_first_rate_sends_the_initial_window_in_a_round_trip_times_the_high_gain() {
        let path = Path::new();
        // 2 / ln 2 x 10 / 0.1 s.
        assert!((path.bbr.pacing_rate() - 288.539_008).abs() < 1e-5, "{}", path.bbr.pacing_rate());
    }

    #[test]
    fn startup_ends_after_three_rounds_without_a_quarter_more() {
        let mut path = Path::new();
        // 10, 20, 40 segments a round: the bandwidth doubles.
        for n in [10, 20, 40] {
            path.round(n, RTT, 60);
            assert_eq!(path.bbr.state, State::Startup);
        }
        // 400, then 440 and 480 a second: less than 500. The third such round ends Startup.
        for n in [44, 48] {
            path.round(n, RTT, 60);
            assert_eq!(path.bbr.state, State::Startup);
        }
        path.round(48, RTT, 80);
        assert_eq!(path.bbr.state, State::Drain);
        assert_eq!(path.bbr.btlbw(), 480.0);
        // Drain: 480 / 2.885 segments a second, until what is out is the BDP of 48, and three quanta of 2 (below 24 Mbit/s).
        assert!((path.bbr.pacing_rate() - 480.0 * 0.346_573_59).abs() < 1e-3, "{}", path.bbr.pacing_rate());
        path.ack(0, 55);
        assert_eq!(path.bbr.state, State::Drain);
        path.ack(0, 52);
        assert_eq!(path.bbr.state, State::ProbeBw);
        assert_eq!(path.bbr.cwnd_gain, 2.0);
    }

    #[test]
    fn probe_bw_goes_round_its_gains() {
        let mut path = Path::cruising();
        (path.bbr.cycle, path.bbr.pacing_gain, path.bbr.cycle_at) = (0, 1.25, path.now);
        // A round trip is not over: nothing. After it, the phase of 1.25 goes on until 1.25 x 20 + 3 x 2 = 31 are out.
        path.now += RTT;
        path.ack(0, 40);
        assert_eq!(path.bbr.pacing_gain, 1.25);
        path.now += Span::from_millis(1);
        path.ack(0, 30);
        assert_eq!(path.bbr.pacing_gain, 1.25);
        path.ack(0, 31);
        assert_eq!((path.bbr.pacing_gain, path.bbr.pacing_rate()), (0.75, 150.0));
        // 0.75 ends when no more than a BDP is out, here 26 with the quanta; each other phase lasts a round trip.
        path.ack(0, 27);
        assert_eq!(path.bbr.pacing_gain, 0.75);
        path.ack(0, 26);
        assert_eq!((path.bbr.pacing_gain, path.bbr.pacing_rate()), (1.0, 200.0));
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
        // 2 x 20 + 3 x 2.
        assert!((path.window.cwnd - 46.0).abs() < 1e-9, "{:?}", path.window);
    }

    #[test]
    fn each_ten_seconds_four_segments_measure_the_round_trip() {
        let mut path = Path::cruising();
        let before = path.window.cwnd;
        // The round trip is 110 ms from now on: 100 ms stands for ten seconds.
        while path.bbr.state == State::ProbeBw {
            path.round(22, Span::from_millis(110), 20);
        }
        assert_eq!(path.bbr.state, State::ProbeRtt);
        // The last round trip of 100 ms was measured at 0.4 s.
        assert!((10_400..10_520).contains(&(path.now.as_nanos() / 1_000_000)), "{}", path.now);
        assert_eq!(path.bbr.rtprop, Span::from_millis(110));
        assert_eq!(path.window.cwnd, 4.0);
        // The 200 ms begin when four are left.
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
    fn a_loss_holds_the_window_to_what_arrives_for_a_round_and_then_gives_it_back() {
        let mut path = Path::cruising();
        path.window.cwnd = 46.0;
        path.bbr.on_congestion(Signal::Loss, &mut path.window);
        let lossy = Acked { now: path.now, delivered: 1, in_flight: 40, lost: 3, repairing: true, ..acked() };
        path.bbr.on_ack(&lossy, &mut path.window);
        // 40 in flight, one arrived: one may go.
        assert_eq!(path.window.cwnd, 41.0);
        path.bbr.on_ack(&Acked { repairing: false, lost: 0, ..lossy }, &mut path.window);
        assert_eq!(path.window.cwnd, 46.0);
        // A mark changes nothing.
        path.bbr.on_congestion(Signal::Mark, &mut path.window);
        assert_eq!((path.window.cwnd, path.bbr.repair), (46.0, Repair::No));
    }
}
