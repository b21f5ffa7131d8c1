//! A SACK sender that finds losses by time (RACK-TLP, RFC 8985), as today's hosts do. What is outstanding is kept
//! segment by segment in a [`Flight`](crate::tcp::flight::Flight).
//!
//! ```text
//!            a mark                        a loss
//!   open ------------> reducing   open, reducing ------> recovery         both come down by PRR (RFC 9937)
//!     ^                   |                                 |
//!     +-------------------+---------------------------------+   acknowledged beyond what was out when it began
//!     +--- loss <--- retransmission timer, from anywhere; a retransmission lost here is a loss
//! ```
//!
//! One timer serves three ends (section 8): the probe of a tail (`sender/probe.rs`), the wait for segments that may
//! only be late, the retransmission timeout.
//!
//! Deviations: a mark in recovery, and a loss after a mark in the same window, reduce the window once (as Linux does).

use alloc::boxed::Box;

use aqumen_units::{Instant, Span};

use super::track::{Doubt, Probe, State, Timer, Track};
use super::{Cause, RETRANSMIT, STOPPED, SYN_LOST, Sender};
use crate::tcp::congestion::{Acked, Control, Signal, Window};
use crate::tcp::flight::{Losses, News};
use crate::tcp::{Ack, Feedback, Reduction, Segment, TcpConfig};

impl Sender {
    pub(super) fn is_tracked(&self) -> bool {
        self.aside.as_ref().is_some_and(|aside| aside.track.is_some())
    }

    pub(super) fn track(&self) -> Option<&Track> {
        self.aside.as_ref()?.track.as_deref()
    }

    /// Takes the track out, to be put back by [`keep`](Self::keep): it is worked on beside the rest.
    pub(super) fn take_track(&mut self) -> Option<Box<Track>> {
        self.aside.as_mut()?.track.take()
    }

    pub(super) fn keep(&mut self, track: Box<Track>) {
        if let Some(aside) = &mut self.aside {
            aside.track = Some(track);
        }
    }

    pub(super) fn on_tracked_ack(&mut self, cfg: &TcpConfig, now: Instant, ack: &Ack) {
        if self.control().is_some_and(Control::goes_first) {
            self.let_control_go_first(cfg, now, ack);
        }
        let Some(mut track) = self.take_track() else { return };
        let (una, outstanding) = (self.una, self.high - self.una);
        let before = track.state;
        let mut reopened = false;
        if ack.ack >= self.una {
            let window = core::mem::replace(&mut self.peer_window, ack.window);
            reopened = window != ack.window && window.min(ack.window) == 0;
            self.on_window(cfg, now, window);
        }
        if ack.ack > una {
            self.una = ack.ack;
            self.next = self.next.max(ack.ack);
        }
        let news = self.learn(cfg, now, ack, &mut track);
        let rtt = self.measure_tracked(cfg, now, ack, una, news);
        let probed = self.on_probe_ack(ack, &mut track, news.delivered);
        let smoothed = self.rto.smoothed(cfg);
        let losses = track.flight.find_losses(now, track.repairs(), smoothed);
        self.leave_state(cfg, ack, &mut track, news);
        self.enter_state(cfg, ack, &mut track, losses, (outstanding, news.delivered));
        if probed && track.state == State::Open {
            // RFC 8985 section 7.4: the probe repaired a loss that nothing else has shown.
            self.recover = self.high;
            self.reduce_flight(cfg, Signal::Loss, outstanding);
        }
        if track.comes_down(cfg) && cfg.reduction != Reduction::AtOnce {
            let safe = self.una > una && losses.found == 0;
            track.descent.on_ack(cfg, self.cwnd as u32, track.flight.in_network(), news.delivered, safe);
        }
        // Linux lets the acknowledgement that ends a recovery count.
        let repairing = track.comes_down(cfg) || before == State::Recovery && !cfg.whole_windows;
        let opening = cfg.syn && una == 0 && self.una > 0;
        let acked = Acked {
            now,
            segments: if self.una > una { news.delivered } else { 0 },
            delivered: news.delivered,
            // Linux takes a window for used that was full within the last window of data:
            // pacing need not fill it each time.
            flight: if cfg.whole_windows && una < track.full_to {
                outstanding.max(self.cwnd as u32)
            } else {
                outstanding
            },
            in_flight: track.flight.in_network(),
            lost: losses.found,
            lost_before: track.flight.take_lost_by_timer(),
            rtt,
            echo: ack.ece && cfg.ecn,
            held: ack.ece && cfg.ecn && track.state != State::Loss,
            marks: self.count_marks(ack.feedback),
            delay: if let Feedback::Delay(us) = ack.feedback { Some(Span::from_micros(u64::from(us))) } else { None },
            una: self.una,
            high: self.high,
            repairing,
            phase: track.phase(),
            opening,
        };
        self.follow(cfg, &acked);
        if opening {
            // RFC 5681 section 3.1, RFC 6928: the initial window, one segment if the SYN was lost.
            self.cwnd = if self.flags & SYN_LOST != 0 { 1.0 } else { f64::from(cfg.initial_window) };
        }
        let restarts = self.una > una || reopened || cfg.segment_times && track.flight.has_waited_for(news);
        if restarts {
            track.timeout_at = now.saturating_add(self.rto.timeout(cfg));
        }
        // RFC 8985 section 7.2: what shows a gap leaves no tail to probe.
        let stale = track.timer == Timer::Late || track.timer == Timer::Probe && track.flight.has_gaps();
        if restarts || losses.due.is_some() || stale || track.state != before {
            self.set_timer(cfg, now, &mut track, losses.due);
        }
        self.keep(track);
    }

    /// Which segments have arrived; a congestion control that samples deliveries hears of each.
    fn learn(&mut self, cfg: &TcpConfig, now: Instant, ack: &Ack, track: &mut Track) -> News {
        let echo = cfg.timestamps.then_some(ack.echo);
        let control = self.aside.as_mut().and_then(|aside| aside.control.as_mut());
        match control.filter(|control| control.samples_delivery()) {
            Some(control) => {
                track.flight.on_ack(now, ack, echo, self.recover, |first, end| control.on_arrival(now, first, end))
            }
            None => track.flight.on_ack(now, ack, echo, self.recover, |_, _| {}),
        }
    }

    /// Takes the round trip that an acknowledgement tells, which until then acknowledged up to `una`. The answer is
    /// what the congestion control hears: with `segment_times` that of the last segment, as in Linux.
    fn measure_tracked(&mut self, cfg: &TcpConfig, now: Instant, ack: &Ack, una: u32, news: News) -> Option<Span> {
        let (samples, sum) = (self.rtt_samples, self.rtt_sum_nanos);
        let left = news.left.filter(|_| cfg.segment_times);
        if let Some(left) = left {
            self.rto.end_backoff();
            self.add_sample(cfg, now, left.first);
        } else if self.una > una {
            self.measure(cfg, now, &ack.plain(), ack.ece && cfg.ecn);
        }
        let taken = || (self.rtt_samples != samples).then(|| Span::from_nanos(self.rtt_sum_nanos - sum));
        left.map(|left| now.saturating_since(left.last)).or_else(taken)
    }

    fn count_marks(&mut self, feedback: Feedback) -> u32 {
        let (Feedback::Marks(total), Some(aside)) = (feedback, &mut self.aside) else { return 0 };
        aside.control.as_mut().map_or(0, |control| control.count_marks(total))
    }

    /// The window grows, or follows its control.
    fn follow(&mut self, cfg: &TcpConfig, acked: &Acked) {
        let mut window = Window { cwnd: self.cwnd, ssthresh: self.ssthresh };
        match self.aside.as_mut().and_then(|aside| aside.control.as_mut()) {
            Some(control) if control.goes_first() => return,
            Some(control) => control.on_ack(cfg, acked, &mut window),
            None if acked.segments > 0 && !acked.repairing && !acked.opening && !acked.held => {
                self.grow(cfg, acked.segments, acked.flight, false);
                return;
            }
            None => return,
        }
        (self.cwnd, self.ssthresh) = (window.cwnd, window.ssthresh);
    }

    /// What ends with this acknowledgement.
    fn leave_state(&mut self, cfg: &TcpConfig, ack: &Ack, track: &mut Track, news: News) {
        if track.state == State::Loss && self.undo_timeout(cfg, ack, track, news) {
            return;
        }
        let over = match track.state {
            State::Open => false,
            // The echo of what left before the reduction may still come with the acknowledgement of its last segment.
            State::Reducing => self.una > self.recover,
            State::Recovery | State::Loss => self.una >= self.recover,
        };
        if over {
            track.state = State::Open;
            track.doubt = None;
            if self.last == Cause::Duplicates {
                self.last = Cause::Recovered;
            }
        }
    }

    /// F-RTO (RFC 5682 section 3.1), and the timestamps of RFC 3522: whether the timeout proves spurious and is undone.
    fn undo_timeout(&mut self, cfg: &TcpConfig, ack: &Ack, track: &mut Track, news: News) -> bool {
        let Some(doubt) = &mut track.doubt else { return false };
        let echo_of_original = cfg.timestamps && ack.echo < doubt.at && news.delivered > 0 && !news.beyond_gap;
        if news.first_sending || echo_of_original {
            (self.cwnd, self.ssthresh) = (self.cwnd.max(doubt.cwnd), self.ssthresh.max(doubt.ssthresh));
            track.flight.take_back_losses();
            track.doubt = None;
            track.state = State::Open;
            self.last = Cause::Recovered;
            return true;
        }
        if doubt.asked {
            if news.beyond_gap {
                track.doubt = None; // step 3a: the new data arrived, what was sent before it did not
            }
        } else if news.delivered > 0 && !news.beyond_gap {
            doubt.asked = true; // step 2b: two new segments
            self.recover = self.high;
        } else if news.beyond_gap {
            track.doubt = None;
        }
        false
    }

    /// What begins with it. `flight`: what was outstanding before it, and how much of that has arrived with it.
    fn enter_state(&mut self, cfg: &TcpConfig, ack: &Ack, track: &mut Track, losses: Losses, flight: (u32, u32)) {
        let marked = ack.ece && cfg.ecn && !self.control().is_some_and(Control::handles_marks);
        match track.state {
            State::Open | State::Reducing if track.flight.has_losses() => self.enter_recovery(cfg, track, flight),
            State::Loss if losses.again => self.enter_recovery(cfg, track, flight),
            State::Open if marked && ack.ack > 0 && !(cfg.syn && ack.ack == 1) => {
                let (window, from) = (self.cwnd, track.flight.in_network() + flight.1);
                self.recover = self.high;
                self.last = Cause::Mark;
                self.ecn_reactions += 1;
                self.reduce_flight(cfg, Signal::Mark, flight.0);
                track.descent.begin(window, from);
                track.state = State::Reducing;
                track.probe = None;
            }
            _ => {}
        }
    }

    /// RFC 6675 section 5 step 4, RFC 9937 section 6.2.
    fn enter_recovery(&mut self, cfg: &TcpConfig, track: &mut Track, (outstanding, delivered): (u32, u32)) {
        let (window, from) = (self.cwnd, self.high - self.una - track.flight.arrived() + delivered);
        let first = track.state != State::Reducing;
        if first {
            self.reduce_flight(cfg, Signal::Loss, outstanding);
            track.descent.begin(window, from);
        }
        self.recover = self.high;
        self.last = Cause::Duplicates;
        self.fast_retransmits += 1;
        track.state = State::Recovery;
        track.probe = None;
        track.doubt = None;
    }

    /// Sets the one timer: for a tail, for segments that may be late, or for the retransmission timeout.
    pub(super) fn set_timer(&mut self, cfg: &TcpConfig, now: Instant, track: &mut Track, late: Option<Instant>) {
        (track.timer, self.deadline) = (Timer::Timeout, track.timeout_at);
        if let Some(due) = late {
            (track.timer, self.deadline) = (Timer::Late, due.min(track.timeout_at));
        } else if let Some(due) = self.probe_at(cfg, now, track) {
            (track.timer, self.deadline) = (Timer::Probe, due);
        }
    }

    /// The timer is due. True: it was the retransmission timeout, which is still to be dealt with.
    pub(super) fn on_tracked_timer(&mut self, cfg: &TcpConfig, now: Instant) -> bool {
        let Some(mut track) = self.take_track() else { return true };
        let timeout = match track.timer {
            Timer::Timeout => true,
            Timer::Probe => {
                self.flags |= RETRANSMIT;
                track.timer = Timer::Timeout;
                track.timeout_at = now.saturating_add(self.rto.timeout(cfg));
                self.deadline = track.timeout_at;
                track.probe = Some(Probe::due());
                false
            }
            Timer::Late if now >= track.timeout_at => true,
            Timer::Late => {
                let losses = track.flight.find_losses(now, track.repairs(), self.rto.smoothed(cfg));
                let lost = losses.found > 0;
                track.flight.count_lost_by_timer(losses.found);
                if lost && matches!(track.state, State::Open | State::Reducing)
                    || losses.again && track.state == State::Loss
                {
                    self.enter_recovery(cfg, &mut track, (self.high - self.una, 0));
                    // At least one leaves (RFC 9937 section 6.2).
                    track.descent.on_ack(cfg, self.cwnd as u32, track.flight.in_network(), 1, false);
                }
                self.set_timer(cfg, now, &mut track, losses.due);
                false
            }
        };
        self.keep(track);
        timeout
    }

    /// The retransmission timer went off; the sender has reduced its threshold. What may leave is one segment.
    pub(super) fn on_tracked_timeout(&mut self, cfg: &TcpConfig, now: Instant, before: Window) {
        let Some(mut track) = self.take_track() else { return };
        track.flight.on_timeout(now);
        self.cwnd = f64::from(track.flight.in_network() + 1);
        self.next = self.high;
        track.doubt = match track.state {
            State::Open | State::Reducing if cfg.frto && self.una > 0 => {
                Some(Doubt { at: now, cwnd: before.cwnd, ssthresh: before.ssthresh, asked: false })
            }
            State::Loss => track.doubt.map(|doubt| Doubt { asked: false, ..doubt }),
            _ => None,
        };
        track.state = State::Loss;
        track.probe = None;
        track.timeout_at = now.saturating_add(self.rto.timeout(cfg));
        (track.timer, self.deadline) = (Timer::Timeout, track.timeout_at);
        self.keep(track);
    }

    /// The next segment to send, and whether it was sent before.
    pub(super) fn choose_tracked(&self, cfg: &TcpConfig, track: &Track) -> Option<u32> {
        if self.burst == 0 || self.peer_window == 0 {
            return None;
        }
        let in_network = track.flight.in_network();
        let allowed = if track.comes_down(cfg) {
            track.descent.allows(cfg, self.cwnd, in_network)
        } else if track.state == State::Open && !cfg.limited_transmit {
            in_network + track.flight.arrived() < self.cwnd as u32
        } else {
            in_network < self.cwnd as u32
        };
        if !allowed {
            return None;
        }
        let asks = track.doubt.is_some_and(|doubt| doubt.asked);
        let offered = self.next < self.limit && self.flags & STOPPED == 0 && self.next - self.una < self.peer_window;
        let new = offered.then_some(self.next);
        let lost = track.flight.to_repair();
        if asks { new.filter(|&seq| seq < self.recover + 2).or(lost) } else { lost.or(new) }
    }

    /// Whether the window allows a segment, pacing aside.
    pub(super) fn tracked_has_to_send(&self, cfg: &TcpConfig) -> bool {
        self.track().is_some_and(|track| self.choose_tracked(cfg, track).is_some())
    }

    pub(super) fn poll_tracked(&mut self, cfg: &TcpConfig, now: Instant) -> Option<Segment> {
        let mut track = self.take_track()?;
        let segment = self.choose_tracked(cfg, &track).map(|seq| {
            if track.comes_down(cfg) {
                track.descent.on_sent(cfg, track.flight.in_network());
            }
            if seq < self.high {
                track.flight.repaired(seq);
            } else {
                self.next = seq + 1;
            }
            self.count_burst();
            self.emit_tracked(cfg, now, seq, &mut track)
        });
        if track.flight.in_network() >= self.cwnd as u32 {
            track.full_to = self.high;
        }
        self.keep(track);
        segment
    }

    /// What leaves at once: a probe, or the first segment, with which to probe a closed window.
    pub(super) fn take_urgent(&mut self, cfg: &TcpConfig, now: Instant, track: &mut Track) -> Option<Segment> {
        if track.probe.is_some_and(Probe::is_due) {
            return self.send_probe(cfg, now, track);
        }
        (self.una < self.high).then(|| self.emit_tracked(cfg, now, self.una, track))
    }

    /// Segment `seq` leaves.
    pub(super) fn emit_tracked(&mut self, cfg: &TcpConfig, now: Instant, seq: u32, track: &mut Track) -> Segment {
        let idle = self.una == self.high;
        let new = seq >= self.high;
        let segment = self.emit(cfg, now, seq);
        track.flight.on_sent(now, seq);
        if idle {
            track.timeout_at = now.saturating_add(self.rto.timeout(cfg));
        }
        if new {
            if track.timer != Timer::Late {
                self.set_timer(cfg, now, track, None);
            }
        } else if seq == self.una {
            // As when the timer goes off: what is oldest has its full time again.
            track.timeout_at = now.saturating_add(self.rto.timeout(cfg));
            if track.timer == Timer::Timeout {
                self.deadline = track.timeout_at;
            }
        }
        segment
    }
}
