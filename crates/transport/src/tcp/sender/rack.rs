//! SACK sender with RACK-TLP (RFC 8985). [`Flight`](crate::tcp::flight::Flight) records each outstanding segment.
//!
//! ```text
//!            a mark                        a loss
//!   open ------------> reducing   open, reducing ------> recovery         both reduce by PRR (RFC 9937)
//!     ^                   |                                 |
//!     +-------------------+---------------------------------+   all data outstanding at the start acknowledged
//!     +--- loss <--- retransmission timer, in any state; a lost retransmission enters recovery
//! ```
//!
//! One timer serves three purposes (section 8): tail loss probe (`sender/probe.rs`), reordering, retransmission
//! timeout.
//!
//! Deviation: a mark in recovery, or a loss after a mark in the same window, reduces the window once (as in Linux).

use alloc::boxed::Box;

use aqumen_units::{Instant, Span};

use super::rack_state::{Frto, Probe, Rack, State, Timer};
use super::{Cause, RETRANSMIT, STOPPED, SYN_LOST, Sender};
use crate::tcp::congestion::{AckSample, Control, Signal, Window};
use crate::tcp::flight::{AckOutcome, Losses};
use crate::tcp::{Ack, Feedback, Reduction, Segment, TcpConfig};

impl Sender {
    pub(super) fn uses_rack(&self) -> bool {
        self.extras.as_ref().is_some_and(|extras| extras.rack.is_some())
    }

    pub(super) fn rack(&self) -> Option<&Rack> {
        self.extras.as_ref()?.rack.as_deref()
    }

    pub(super) fn rack_mut(&mut self) -> Option<&mut Rack> {
        self.extras.as_mut()?.rack.as_deref_mut()
    }

    /// Takes the RACK state out for concurrent borrows; [`put_rack`](Self::put_rack) returns it.
    pub(super) fn take_rack(&mut self) -> Option<Box<Rack>> {
        self.extras.as_mut()?.rack.take()
    }

    pub(super) fn put_rack(&mut self, rack: Box<Rack>) {
        if let Some(extras) = &mut self.extras {
            extras.rack = Some(rack);
        }
    }

    pub(super) fn on_rack_ack(&mut self, cfg: &TcpConfig, now: Instant, ack: &Ack) {
        if self.control().is_some_and(Control::precedes_sender) {
            self.control_first(cfg, now, ack);
        }
        let Some(mut rack) = self.take_rack() else { return };
        let (una, outstanding) = (self.una, self.high - self.una);
        let before = rack.state;
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
        let outcome = self.record_arrivals(cfg, now, ack, &mut rack);
        let rtt = self.measure_rack(cfg, now, ack, una, outcome);
        let probed = self.on_probe_ack(ack, &mut rack, outcome.delivered);
        let smoothed = self.rto.smoothed(cfg);
        let losses = rack.flight.find_losses(now, rack.is_repairing(), smoothed);
        self.leave_state(cfg, ack, &mut rack, outcome);
        self.enter_state(cfg, ack, &mut rack, losses, (outstanding, outcome.delivered));
        if probed && rack.state == State::Open {
            // The probe repaired a loss that nothing else revealed (RFC 8985 section 7.4).
            self.recover = self.high;
            self.reduce_flight(cfg, Signal::Loss, outstanding);
        }
        if rack.is_reducing(cfg) && cfg.reduction != Reduction::AtOnce {
            let safe = self.una > una && losses.found == 0;
            rack.reduction.on_ack(cfg, self.cwnd as u32, rack.flight.in_network(), outcome.delivered, safe);
        }
        // In Linux the acknowledgement that ends a recovery counts.
        let repairing = rack.is_reducing(cfg) || before == State::Recovery && !cfg.whole_windows;
        let opening = cfg.syn && una == 0 && self.una > 0;
        let acked = AckSample {
            now,
            segments: if self.una > una { outcome.delivered } else { 0 },
            delivered: outcome.delivered,
            // In Linux a window counts as used if it was full within the last window of data, since pacing need not
            // fill it each time.
            flight: if cfg.whole_windows && una < rack.full_until {
                outstanding.max(self.cwnd as u32)
            } else {
                outstanding
            },
            in_flight: rack.flight.in_network(),
            lost: losses.found,
            lost_before: rack.flight.take_lost_by_timer(),
            rtt,
            echo: ack.ece && cfg.ecn,
            growth_blocked: ack.ece && cfg.ecn && rack.state != State::Loss,
            marks: self.count_marks(ack.feedback),
            delay: if let Feedback::Delay(us) = ack.feedback { Some(Span::from_micros(u64::from(us))) } else { None },
            una: self.una,
            high: self.high,
            repairing,
            phase: rack.phase(),
            opening,
        };
        self.update_window(cfg, &acked);
        if opening {
            // RFC 5681 section 3.1, RFC 6928: the initial window, one segment if the SYN was lost.
            self.cwnd = if self.flags & SYN_LOST != 0 { 1.0 } else { f64::from(cfg.initial_window) };
        }
        let restarts = self.una > una || reopened || cfg.segment_times && rack.flight.restarts_timer(outcome);
        if restarts {
            rack.timeout_at = now.saturating_add(self.rto.timeout(cfg));
        }
        // A gap needs no tail loss probe (RFC 8985 section 7.2).
        let stale = rack.timer == Timer::Reordering || rack.timer == Timer::Probe && rack.flight.has_gaps();
        if restarts || losses.due.is_some() || stale || rack.state != before {
            self.set_timer(cfg, now, &mut rack, losses.due);
        }
        if cfg.whole_windows && self.may_be_tracked() {
            rack.note_full(self.cwnd, self.high);
        }
        self.put_rack(rack);
    }

    /// Records arrived segments; reports them to a control that samples the delivery rate.
    fn record_arrivals(&mut self, cfg: &TcpConfig, now: Instant, ack: &Ack, rack: &mut Rack) -> AckOutcome {
        let echo = cfg.timestamps.then_some(ack.echo);
        let control = self.extras.as_mut().and_then(|extras| extras.control.as_mut());
        match control.filter(|control| control.samples_delivery()) {
            Some(control) => {
                rack.flight.on_ack(now, ack, echo, self.recover, |first, end| control.on_arrival(now, first, end))
            }
            None => rack.flight.on_ack(now, ack, echo, self.recover, |_, _| {}),
        }
    }

    /// Takes a round-trip sample from an acknowledgement, with `una` the old left edge. Returns the sample for the
    /// congestion control: with `segment_times` that of the last segment, as in Linux.
    fn measure_rack(
        &mut self,
        cfg: &TcpConfig,
        now: Instant,
        ack: &Ack,
        una: u32,
        outcome: AckOutcome,
    ) -> Option<Span> {
        let (samples, sum) = (self.rtt_samples, self.rtt_sum_nanos);
        let sent = outcome.send_times.filter(|_| cfg.segment_times);
        if let Some(sent) = sent {
            self.rto.end_backoff();
            self.add_sample(cfg, now, sent.first);
        } else if self.una > una {
            self.measure(cfg, now, &ack.plain(), ack.ece && cfg.ecn);
        }
        let taken = || (self.rtt_samples != samples).then(|| Span::from_nanos(self.rtt_sum_nanos - sum));
        sent.map(|sent| now.saturating_since(sent.last)).or_else(taken)
    }

    fn count_marks(&mut self, feedback: Feedback) -> u32 {
        let (Feedback::Marks(total), Some(extras)) = (feedback, &mut self.extras) else { return 0 };
        extras.control.as_mut().map_or(0, |control| control.count_marks(total))
    }

    /// Updates the window after an acknowledgement.
    fn update_window(&mut self, cfg: &TcpConfig, acked: &AckSample) {
        let mut window = Window { cwnd: self.cwnd, ssthresh: self.ssthresh };
        match self.extras.as_mut().and_then(|extras| extras.control.as_mut()) {
            Some(control) if control.precedes_sender() => return,
            Some(control) => control.on_ack(cfg, acked, &mut window),
            None if acked.segments > 0 && !acked.repairing && !acked.opening && !acked.growth_blocked => {
                self.grow(cfg, acked.segments, acked.flight, false);
                return;
            }
            None => return,
        }
        (self.cwnd, self.ssthresh) = (window.cwnd, window.ssthresh);
    }

    /// Leaves a state that the acknowledgement ends.
    fn leave_state(&mut self, cfg: &TcpConfig, ack: &Ack, rack: &mut Rack, outcome: AckOutcome) {
        if rack.state == State::Loss && self.undo_timeout(cfg, ack, rack, outcome) {
            return;
        }
        let over = match rack.state {
            State::Open => false,
            // The acknowledgement of its last segment may still echo a mark from before the reduction.
            State::Reducing => self.una > self.recover,
            State::Recovery | State::Loss => self.una >= self.recover,
        };
        if over {
            rack.state = State::Open;
            rack.frto = None;
            if self.last_cause == Cause::Duplicates {
                self.last_cause = Cause::Recovered;
            }
        }
    }

    /// F-RTO (RFC 5682 section 3.1) and timestamps (RFC 3522): returns whether the timeout was spurious and is undone.
    fn undo_timeout(&mut self, cfg: &TcpConfig, ack: &Ack, rack: &mut Rack, outcome: AckOutcome) -> bool {
        let Some(frto) = &mut rack.frto else { return false };
        let echo_of_original = cfg.timestamps && ack.echo < frto.at && outcome.delivered > 0 && !outcome.beyond_gap;
        if outcome.first_sending || echo_of_original {
            (self.cwnd, self.ssthresh) = (self.cwnd.max(frto.cwnd), self.ssthresh.max(frto.ssthresh));
            rack.flight.undo_losses();
            rack.frto = None;
            rack.state = State::Open;
            self.last_cause = Cause::Recovered;
            return true;
        }
        if frto.tested {
            if outcome.beyond_gap {
                rack.frto = None; // step 3a: the new data arrived, the older segments did not
            }
        } else if outcome.delivered > 0 && !outcome.beyond_gap {
            frto.tested = true; // step 2b: two new segments
            self.recover = self.high;
        } else if outcome.beyond_gap {
            rack.frto = None;
        }
        false
    }

    /// Enters a state that the acknowledgement calls for. `flight`: segments outstanding before it, and newly arrived.
    fn enter_state(&mut self, cfg: &TcpConfig, ack: &Ack, rack: &mut Rack, losses: Losses, flight: (u32, u32)) {
        let marked = ack.ece && cfg.ecn && !self.control().is_some_and(Control::handles_marks);
        match rack.state {
            State::Open | State::Reducing if rack.flight.has_losses() => self.enter_recovery(cfg, rack, flight),
            State::Loss if losses.retransmission => self.enter_recovery(cfg, rack, flight),
            State::Open if marked && ack.ack > 0 && !(cfg.syn && ack.ack == 1) => {
                let (window, from) = (self.cwnd, rack.flight.in_network() + flight.1);
                self.recover = self.high;
                self.last_cause = Cause::Mark;
                self.ecn_reactions += 1;
                self.reduce_flight(cfg, Signal::Mark, flight.0);
                rack.reduction.begin(window, from);
                rack.state = State::Reducing;
                rack.probe = None;
            }
            _ => {}
        }
    }

    /// Enters recovery (RFC 6675 section 5 step 4, RFC 9937 section 6.2).
    fn enter_recovery(&mut self, cfg: &TcpConfig, rack: &mut Rack, (outstanding, delivered): (u32, u32)) {
        let (window, from) = (self.cwnd, self.high - self.una - rack.flight.sacked() + delivered);
        let first = rack.state != State::Reducing;
        if first {
            self.reduce_flight(cfg, Signal::Loss, outstanding);
            rack.reduction.begin(window, from);
        }
        self.recover = self.high;
        self.last_cause = Cause::Duplicates;
        self.fast_retransmits += 1;
        rack.state = State::Recovery;
        rack.probe = None;
        rack.frto = None;
    }

    /// Sets the timer: for reordering, a tail loss probe, or the retransmission timeout.
    pub(super) fn set_timer(&mut self, cfg: &TcpConfig, now: Instant, rack: &mut Rack, late: Option<Instant>) {
        (rack.timer, self.deadline) = (Timer::Timeout, rack.timeout_at);
        if let Some(due) = late {
            (rack.timer, self.deadline) = (Timer::Reordering, due.min(rack.timeout_at));
        } else if let Some(due) = self.probe_at(cfg, now, rack) {
            (rack.timer, self.deadline) = (Timer::Probe, due);
        }
    }

    /// Handles the timer's expiry; returns whether it was a retransmission timeout, which the caller handles.
    pub(super) fn on_rack_timer(&mut self, cfg: &TcpConfig, now: Instant) -> bool {
        let Some(mut rack) = self.take_rack() else { return true };
        let timeout = match rack.timer {
            Timer::Timeout => true,
            Timer::Probe => {
                self.flags |= RETRANSMIT;
                rack.timer = Timer::Timeout;
                rack.timeout_at = now.saturating_add(self.rto.timeout(cfg));
                self.deadline = rack.timeout_at;
                rack.probe = Some(Probe::due());
                false
            }
            Timer::Reordering if now >= rack.timeout_at => true,
            Timer::Reordering => {
                let losses = rack.flight.find_losses(now, rack.is_repairing(), self.rto.smoothed(cfg));
                let lost = losses.found > 0;
                rack.flight.add_lost_by_timer(losses.found);
                if lost && matches!(rack.state, State::Open | State::Reducing)
                    || losses.retransmission && rack.state == State::Loss
                {
                    self.enter_recovery(cfg, &mut rack, (self.high - self.una, 0));
                    // At least one segment is sent (RFC 9937 section 6.2).
                    rack.reduction.on_ack(cfg, self.cwnd as u32, rack.flight.in_network(), 1, false);
                }
                self.set_timer(cfg, now, &mut rack, losses.due);
                false
            }
        };
        self.put_rack(rack);
        timeout
    }

    /// Retransmission timeout, after the reduction of the threshold; one segment may be sent.
    pub(super) fn on_rack_timeout(&mut self, cfg: &TcpConfig, now: Instant, before: Window) {
        let Some(mut rack) = self.take_rack() else { return };
        rack.flight.on_timeout(now);
        self.cwnd = f64::from(rack.flight.in_network() + 1);
        self.next = self.high;
        rack.frto = match rack.state {
            State::Open | State::Reducing if cfg.frto && self.una > 0 => {
                Some(Frto { at: now, cwnd: before.cwnd, ssthresh: before.ssthresh, tested: false })
            }
            State::Loss => rack.frto.map(|frto| Frto { tested: false, ..frto }),
            _ => None,
        };
        rack.state = State::Loss;
        rack.probe = None;
        rack.timeout_at = now.saturating_add(self.rto.timeout(cfg));
        (rack.timer, self.deadline) = (Timer::Timeout, rack.timeout_at);
        self.put_rack(rack);
    }

    /// Next segment to send.
    pub(super) fn choose_rack(&self, cfg: &TcpConfig, rack: &Rack) -> Option<u32> {
        if self.burst == 0 || self.peer_window == 0 {
            return None;
        }
        let in_network = rack.flight.in_network();
        let allowed = if rack.is_reducing(cfg) {
            rack.reduction.allows(cfg, self.cwnd, in_network)
        } else if rack.state == State::Open && !cfg.limited_transmit {
            in_network + rack.flight.sacked() < self.cwnd as u32
        } else {
            in_network < self.cwnd as u32
        };
        if !allowed {
            return None;
        }
        let testing = rack.frto.is_some_and(|frto| frto.tested);
        let offered = self.next < self.limit && self.flags & STOPPED == 0 && self.next - self.una < self.peer_window;
        let new = offered.then_some(self.next);
        let lost = rack.flight.next_lost();
        if testing { new.filter(|&seq| seq < self.recover + 2).or(lost) } else { lost.or(new) }
    }

    /// Whether the window allows a segment, regardless of pacing.
    pub(super) fn rack_has_to_send(&self, cfg: &TcpConfig) -> bool {
        self.rack().is_some_and(|rack| self.choose_rack(cfg, rack).is_some())
    }

    pub(super) fn poll_rack(&mut self, cfg: &TcpConfig, now: Instant) -> Option<Segment> {
        let mut rack = self.take_rack()?;
        let segment = self.choose_rack(cfg, &rack).map(|seq| {
            if rack.is_reducing(cfg) {
                rack.reduction.on_sent(cfg, rack.flight.in_network());
            }
            if seq < self.high {
                rack.flight.on_repair(seq);
            } else {
                self.next = seq + 1;
            }
            self.count_burst();
            self.emit_rack(cfg, now, seq, &mut rack)
        });
        rack.note_full(self.cwnd, self.high);
        self.put_rack(rack);
        segment
    }

    /// Segment to send at once: a probe, or the first outstanding segment for a closed window.
    pub(super) fn take_urgent(&mut self, cfg: &TcpConfig, now: Instant, rack: &mut Rack) -> Option<Segment> {
        if rack.probe.is_some_and(Probe::is_due) {
            return self.send_probe(cfg, now, rack);
        }
        (self.una < self.high).then(|| self.emit_rack(cfg, now, self.una, rack))
    }

    /// Sends segment `seq`.
    pub(super) fn emit_rack(&mut self, cfg: &TcpConfig, now: Instant, seq: u32, rack: &mut Rack) -> Segment {
        let idle = self.una == self.high;
        let new = seq >= self.high;
        let segment = self.emit(cfg, now, seq);
        rack.flight.on_sent(now, seq);
        if idle {
            rack.timeout_at = now.saturating_add(self.rto.timeout(cfg));
        }
        if new {
            if rack.timer != Timer::Reordering {
                self.set_timer(cfg, now, rack, None);
            }
        } else if seq == self.una {
            // As at a timer expiry, the oldest segment gets a full timeout.
            rack.timeout_at = now.saturating_add(self.rto.timeout(cfg));
            if rack.timer == Timer::Timeout {
                self.deadline = rack.timeout_at;
            }
        }
        segment
    }
}
