//! Sending endpoint of TCP.
//!
//! Slow start, congestion avoidance, fast retransmit and fast recovery follow RFC 5681, NewReno RFC 6582, selective
//! acknowledgements RFC 6675 or RFC 8985, limited transmit RFC 3042, the timer RFC 6298, marks RFC 3168. Fields of
//! [`TcpConfig`] select the variants of ns-2.35. The sender itself implements Reno without pacing; other congestion
//! controls and pacing are in [`congestion`](super::congestion).
//!
//! ```text
//!                  third duplicate                      acknowledged up to `recover`
//!   open window  ------------------> fast recovery ------------------------------------> open window
//!        |   <----------------------------- (Reno: any new acknowledgement)                  |
//!        +--- retransmission timer, from anywhere: window 1, resend from `una` on (slow start)
//! ```
//!
//! Deviations: a persist probe is an old, empty segment (as in Linux) instead of a byte of new data, since sequence
//! numbers count segments. RFC 6298 rule 5.7 (3 s after a lost SYN) is omitted, as the SYN's round trip is measured.

mod control;
mod duplicates;
mod offload;
mod probe;
mod rack;
mod rack_state;
mod sack;
mod sack1;
mod tracked;

use alloc::boxed::Box;

use aqumen_units::{Bytes, Ecn, Instant, Span};

use super::congestion::{Control, Signal, Window, reno_growth, whole_growth};
use super::rto::Rto;
use super::scoreboard::Scoreboard;
use super::{Ack, LossDetection, PlainAck, PlainSegment, Segment, TcpConfig, Variant};
use rack_state::Rack;

/// Sending endpoint of a connection.
///
/// The host calls [`start`](Self::start). After every call that may change what can be sent (`start`, `resume`,
/// `offer`, [`on_ack`](Self::on_ack), [`on_timer`](Self::on_timer)) it polls [`poll_immediate`](Self::poll_immediate)
/// until `None`, then [`poll_transmit`](Self::poll_transmit) until `None`: at once, or after a random delay with
/// [`send_overhead`](TcpConfig::send_overhead) (further calls during the delay start no second one). A paced sender is
/// polled again at [`next_send`](Self::next_send).
///
/// Field order: the first cache line holds the fields for acknowledgements of new data and for new segments.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Sender {
    /// Congestion window (segments).
    cwnd: f64,
    /// Expiry of the retransmission (or persist) timer; `Instant::MAX`: not set.
    deadline: Instant,
    /// Sending time of segment `timed`; `Instant::MAX`: none is timed.
    timed_at: Instant,
    /// Segment being timed, or `NONE`.
    timed: u32,
    /// Oldest unacknowledged segment.
    una: u32,
    /// Next segment to send; behind `high` after a timeout.
    next: u32,
    /// One past the highest segment sent.
    high: u32,
    /// `high` at the last reduction: signals for older segments are ignored.
    recover: u32,
    /// Receive window beyond `una` (segments).
    peer_window: u32,
    /// Slow-start threshold (segments).
    ssthresh: u32,
    duplicates: u8,
    /// Segments that may still be sent in response to the last event.
    burst: u8,
    /// Placed apart from the fields before it, which avoids a store-forwarding stall.
    flags: u16,
    /// Retransmission timeout, in part on the first cache line.
    rto: Rto,
    /// Payload of the segment before `limit`.
    last_bytes: u16,
    last_cause: Cause,
    rtt_sum_nanos: u64,
    /// State that a plain Reno sender does not need while nothing is missing.
    extras: Option<Box<SenderExtras>>,
    /// One past the last segment offered by the application.
    limit: u32,
    /// Segments known to have left the network in fast recovery (ns-2's `dupwnd_`).
    inflation: u32,
    retransmitted: u32,
    probes: u32,
    timeouts: u32,
    fast_retransmits: u32,
    ecn_reactions: u32,
    rtt_samples: u32,
}

const CACHE_LINE: usize = 64;
const _: () = assert!(core::mem::offset_of!(Sender, rto) + Rto::TIMER_BYTES <= CACHE_LINE);

/// Sender state that most connections rarely need.
#[derive(Clone, Debug, Default)]
struct SenderExtras {
    /// SACK scoreboard; `None` while nothing is missing.
    scoreboard: Option<Scoreboard>,
    /// Congestion control other than plain Reno.
    control: Option<Control>,
    /// RACK state, in place of the scoreboard.
    rack: Option<Box<Rack>>,
    /// Whether the configuration permits the fast path of RACK senders.
    may_be_tracked: bool,
}

impl SenderExtras {
    /// State that the configuration requires from the first segment on.
    fn new(cfg: &TcpConfig) -> Option<Box<Self>> {
        let control = Control::new(cfg);
        let rack = cfg.uses_rack().then(|| Box::new(Rack::new()));
        let may_be_tracked = rack.is_some() && SenderExtras::may_be_tracked(cfg, control.as_ref());
        let is_needed = control.is_some() || rack.is_some();
        is_needed.then(|| Box::new(SenderExtras { scoreboard: None, control, rack, may_be_tracked }))
    }
}

/// Last cause of a window reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Cause {
    None,
    /// Duplicate acknowledgements, recovery in progress.
    Duplicates,
    /// Duplicate acknowledgements, recovery complete.
    Recovered,
    Mark,
    Timeout,
}

/// The application is paused or has not started.
const STOPPED: u16 = 1;
/// The next segment carries CWR.
const CWR: u16 = 1 << 2;
/// After a timeout of ns-2's Sack1: duplicates are ignored until new data is acknowledged.
const IGNORE_DUPLICATES: u16 = 1 << 1;
/// A mark was echoed to a window of one.
const ECN_BACKOFF: u16 = 1 << 3;
/// Segment `una` is to be retransmitted at once.
const RETRANSMIT: u16 = 1 << 4;
/// Limited transmit: one new segment is to be sent at once.
const ONE_MORE: u16 = 1 << 5;
/// A window probe is to be sent at once.
const PROBE: u16 = 1 << 6;
/// In loss recovery (RFC 6675).
const RECOVERY: u16 = 1 << 7;
/// A partial acknowledgement has restarted the timer in this recovery (RFC 6582 section 3.2 step 3).
const PARTIAL: u16 = 1 << 8;
/// The SYN was lost, so the initial window is one (RFC 5681 section 3.1).
const SYN_LOST: u16 = 1 << 9;
/// Work for [`Sender::poll_immediate`].
const AT_ONCE: u16 = RETRANSMIT | ONE_MORE | PROBE;
/// Flags cleared by a timeout.
const UNTIL_TIMEOUT: u16 = RETRANSMIT | ONE_MORE | RECOVERY;
/// Cached [`Sender::is_plain`].
const PLAIN: u16 = 1 << 10;
/// Cached [`Sender::is_endless`].
const ENDLESS: u16 = 1 << 11;
/// The configuration has options outside the fast path.
const SLOW_PATH: u16 = 1 << 12;
/// Cached [`Sender::is_tracked`].
const TRACKED: u16 = 1 << 13;

const UNLIMITED: u8 = u8::MAX;

/// Number of no segment.
const NONE: u32 = u32::MAX;

/// Counts since the connection began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Segments sent, retransmissions and the SYN included.
    pub sent: u32,
    /// Retransmissions.
    pub retransmitted: u32,
    /// Retransmission timeouts, those of a window below one segment included.
    pub timeouts: u32,
    /// Fast retransmits.
    pub fast_retransmits: u32,
    /// Window reductions for marks.
    pub ecn_reactions: u32,
    /// Round-trip samples.
    pub rtt_samples: u32,
    /// Sum of the round-trip samples.
    pub rtt_sum: Span,
}

impl Sender {
    /// A sender of `transfer` bytes, or of endless data with `None`; it is idle until [`start`](Self::start).
    ///
    /// A transfer is truncated at 2^32 - 2 segments.
    pub fn new(cfg: &TcpConfig, transfer: Option<Bytes>) -> Self {
        let syn = u32::from(cfg.syn);
        let mut sender = Sender {
            cwnd: if cfg.syn { 1.0 } else { f64::from(cfg.initial_window) },
            deadline: Instant::MAX,
            timed_at: Instant::MAX,
            rtt_sum_nanos: 0,
            una: 0,
            next: 0,
            high: 0,
            limit: u32::MAX,
            recover: syn,
            peer_window: cfg.receive_window,
            ssthresh: cfg.initial_threshold.unwrap_or(cfg.receive_window).max(2),
            inflation: 0,
            timed: NONE,
            rto: Rto::new(cfg),
            retransmitted: 0,
            probes: 0,
            timeouts: 0,
            fast_retransmits: 0,
            ecn_reactions: 0,
            rtt_samples: 0,
            last_bytes: cfg.payload_bytes(),
            flags: if cfg.validate_window || cfg.whole_windows || cfg.write > 0 { SLOW_PATH } else { 0 } | STOPPED,
            duplicates: 0,
            burst: full_burst(cfg),
            last_cause: Cause::None,
            extras: SenderExtras::new(cfg),
        };
        if let Some(bytes) = transfer {
            sender.limit = syn;
            sender.extend(cfg, bytes);
        }
        sender.update_flags();
        sender
    }

    /// Whether the fast path applies: connected, no known losses, no burst limit, no repair after a timeout in
    /// progress, and window growth by RFC 5681 alone.
    fn is_plain(&self) -> bool {
        let has_repaired = self.last_cause != Cause::Timeout || self.una >= self.recover;
        let is_simple =
            self.flags & (SLOW_PATH | IGNORE_DUPLICATES) == 0 && self.extras.is_none() && self.burst == UNLIMITED;
        is_simple && self.una > 0 && self.inflation == 0 && has_repaired
    }

    /// Whether new data is always available.
    fn is_endless(&self) -> bool {
        self.limit == u32::MAX && self.flags & STOPPED == 0
    }

    /// Updates the cached flags; called at the end of everything that may change them.
    #[inline]
    fn update_flags(&mut self) {
        let flag = |is, flag| if is { flag } else { 0 };
        let cached = flag(self.is_plain(), PLAIN) | flag(self.is_endless(), ENDLESS) | flag(self.is_tracked(), TRACKED);
        self.flags = self.flags & !(PLAIN | ENDLESS | TRACKED) | cached;
    }

    /// Whether the cached flags are up to date.
    fn flags_are_current(&self) -> bool {
        let agrees = |flag, is| (self.flags & flag != 0) == is;
        agrees(PLAIN, self.is_plain()) && agrees(ENDLESS, self.is_endless()) && agrees(TRACKED, self.is_tracked())
    }

    /// Sets the phase of this sender's coarse clock relative to the host's, as clocks of real hosts are not
    /// synchronised. The default has ticks at multiples of [`rto_tick`](TcpConfig::rto_tick); ns-2 draws the phase
    /// uniformly in one tick.
    pub fn with_clock_phase(mut self, cfg: &TcpConfig, phase: Span) -> Self {
        self.rto.set_phase(cfg, phase);
        self
    }

    /// Starts sending.
    pub fn start(&mut self, cfg: &TcpConfig, now: Instant) {
        self.resume(cfg, now);
    }

    /// Pauses the application's data; losses are still repaired.
    pub fn pause(&mut self, _now: Instant) {
        self.flags |= STOPPED;
        self.update_flags();
    }

    /// Resumes after a [`pause`](Self::pause).
    pub fn resume(&mut self, cfg: &TcpConfig, now: Instant) {
        self.restart_after_idle(cfg, now);
        self.flags &= !STOPPED;
        self.burst = full_burst(cfg);
        self.update_flags();
    }

    /// Adds `more` bytes from the application (a source with its own pace). No effect on an endless transfer.
    pub fn offer(&mut self, cfg: &TcpConfig, now: Instant, more: Bytes) {
        self.restart_after_idle(cfg, now);
        self.extend(cfg, more);
        self.burst = full_burst(cfg);
        self.update_flags();
    }

    /// [`offer`](Self::offer)s `bytes` `writes` times to a sender that [holds](Self::holds_offers) them.
    pub fn offer_held(&mut self, cfg: &TcpConfig, writes: u64, bytes: Bytes) {
        debug_assert!(self.una < self.high && self.burst == full_burst(cfg));
        let payload = u64::from(cfg.payload_bytes());
        let each = if cfg.quirks.full_segments { bytes.0.div_ceil(payload) * payload } else { bytes.0 };
        self.extend(cfg, Bytes(writes.saturating_mul(each)));
        self.update_flags();
    }

    /// Processes an acknowledgement; outdated ones and those for data never sent are ignored (RFC 9293 section
    /// 3.10.7.4).
    pub fn on_ack(&mut self, cfg: &TcpConfig, now: Instant, ack: &Ack) {
        if ack.ack > self.high || (ack.sack.is_empty() && self.on_plain_ack(cfg, now, ack.plain())) {
            return;
        }
        self.burst = full_burst(cfg);
        self.on_slow_ack(cfg, now, ack);
        self.update_flags();
    }

    fn on_slow_ack(&mut self, cfg: &TcpConfig, now: Instant, ack: &Ack) {
        if self.uses_rack() {
            return self.on_rack_ack(cfg, now, ack);
        }
        // The reaction to an echo moves `recover`; the end of a recovery depends on the old value.
        let recovered = ack.ack >= self.recover;
        if ack.ece && cfg.ecn {
            self.on_echo(cfg, ack.ack);
        }
        self.on_window_ack(cfg, now, *ack, recovered);
    }

    /// Fast path of [`on_ack`](Self::on_ack) for an acknowledgement of new data without SACK blocks. Returns `false`
    /// without effect if the fast path does not apply.
    #[inline(always)]
    pub fn on_plain_ack(&mut self, cfg: &TcpConfig, now: Instant, ack: PlainAck) -> bool {
        debug_assert!(self.flags_are_current());
        // One comparison checks that it acknowledges data, and none that was not sent.
        let acked = ack.ack.wrapping_sub(self.una);
        let is_new = acked.wrapping_sub(1) < self.high - self.una;
        if !is_new || self.flags & PLAIN == 0 {
            return self.on_tracked_ack(cfg, now, ack);
        }
        // Marks are random, so their handling avoids branches; most echoes are of a mark already answered.
        let marked = ack.ece & cfg.ecn;
        if ack.ack.wrapping_mul(u32::from(marked)) > self.recover {
            self.on_echo(cfg, ack.ack);
        }
        self.on_new_data::<true>(cfg, now, ack, marked);
        self.peer_window = ack.window;
        true
    }

    /// Slow path: an acknowledgement outside the fast path.
    #[cold]
    fn on_window_ack(&mut self, cfg: &TcpConfig, now: Instant, ack: Ack, recovered: bool) {
        if self.is_controlled() {
            self.on_controlled_ack(cfg, now, ack, recovered);
        } else {
            self.process_ack(cfg, now, ack, recovered);
        }
    }

    #[inline(always)]
    fn is_controlled(&self) -> bool {
        self.extras.as_ref().is_some_and(|extras| extras.control.is_some())
    }

    fn control(&self) -> Option<&Control> {
        self.extras.as_ref()?.control.as_ref()
    }

    /// Processes an acknowledgement, without the window growth of a congestion control.
    #[inline]
    fn process_ack(&mut self, cfg: &TcpConfig, now: Instant, ack: Ack, recovered: bool) {
        if cfg.is_sack1() {
            self.on_sack1_ack(cfg, now, ack);
        } else if cfg.variant == Variant::Sack && (self.scoreboard().is_some() || !ack.sack.is_empty()) {
            self.on_selective_ack(cfg, now, ack, recovered);
        } else if ack.ack > self.una {
            if self.inflation > 0 {
                self.on_ack_in_recovery(cfg, now, ack, recovered);
            } else {
                self.on_new_ack(cfg, now, &ack);
            }
            self.peer_window = ack.window;
        } else if ack.ack == self.una {
            let window = core::mem::replace(&mut self.peer_window, ack.window);
            self.on_window(cfg, now, window);
            // A duplicate has data outstanding and an unchanged window (RFC 5681 section 2). To a SACK sender one
            // without SACK blocks reports a copy, not a gap (RFC 6675 section 2).
            if self.una < self.high && window == ack.window && cfg.variant != Variant::Sack {
                self.on_duplicate(cfg, now);
            }
        }
    }

    /// Next segment to send at once: fast retransmission, limited transmit, or probe of a closed window.
    #[inline(always)]
    pub fn poll_immediate(&mut self, cfg: &TcpConfig, now: Instant) -> Option<Segment> {
        if !self.is_urgent() {
            return None;
        }
        let segment = self.take_immediate(cfg, now);
        self.update_flags();
        segment
    }

    /// Whether [`poll_immediate`](Self::poll_immediate) may return a segment.
    #[inline(always)]
    pub fn is_urgent(&self) -> bool {
        self.flags & AT_ONCE != 0
    }

    /// Next segment that the window allows; call until `None`.
    #[inline(always)]
    pub fn poll_transmit(&mut self, cfg: &TcpConfig, now: Instant) -> Option<Segment> {
        if self.extras.is_some() {
            let segment = self.poll_slow(cfg, now);
            self.update_flags();
            return segment;
        }
        if !self.may_transmit(cfg, now) {
            return None;
        }
        Some(self.transmit(cfg, now))
    }

    /// Whether [`poll_transmit`](Self::poll_transmit) would return a segment now.
    #[inline]
    pub fn may_transmit(&self, cfg: &TcpConfig, now: Instant) -> bool {
        if self.extras.is_some() {
            return self.has_to_send(cfg) && self.control().is_none_or(|control| control.release(now) <= now);
        }
        self.window_allows()
    }

    /// Time at which pacing permits the next [`poll_transmit`](Self::poll_transmit). Any call may postpone it.
    pub fn next_send(&self, cfg: &TcpConfig, now: Instant) -> Option<Instant> {
        let release = self.control()?.release(now);
        (release > now && self.has_to_send(cfg)).then_some(release)
    }

    /// Whether the window allows a segment, regardless of pacing.
    fn has_to_send(&self, cfg: &TcpConfig) -> bool {
        if self.uses_rack() {
            self.rack_has_to_send(cfg)
        } else if self.scoreboard().is_some() {
            self.choose(cfg).is_some()
        } else {
            self.window_allows()
        }
    }

    #[inline(always)]
    fn window_allows(&self) -> bool {
        self.next - self.una < self.window() && self.data_available() && self.burst > 0
    }

    /// Number of segments that [`poll_transmit`](Self::poll_transmit) would return now; `None` if it must be polled:
    /// while something is missing, and with pacing and some congestion controls.
    #[inline(always)]
    pub fn allowance(&self, cfg: &TcpConfig) -> Option<u32> {
        debug_assert!(self.flags_are_current());
        if self.flags & (PLAIN | ENDLESS) == PLAIN | ENDLESS {
            // Nothing inflates the window of a plain sender.
            return Some((self.cwnd as u32).min(self.peer_window).saturating_sub(self.next - self.una));
        }
        self.other_allowance(cfg)
    }

    /// [`allowance`](Self::allowance) outside the fast path.
    #[inline(never)]
    fn other_allowance(&self, cfg: &TcpConfig) -> Option<u32> {
        if self.flags & TRACKED != 0 {
            return Some(self.tracked_allowance(cfg));
        }
        if self.extras.is_some() {
            return None;
        }
        let available = if self.flags & STOPPED == 0 { self.limit } else { self.high } - self.next.min(self.limit);
        let burst = if self.burst == UNLIMITED { u32::MAX } else { u32::from(self.burst) };
        let space = self.window().saturating_sub(self.next - self.una);
        Some(space.min(available).min(burst))
    }

    /// Whether newly [offered](Self::offer) data would have to wait for the sender's next event: data is in flight, and
    /// the window is full, or a send is scheduled (`departing`). False unless the window alone limits the sender.
    pub fn holds_offers(&self, departing: bool) -> bool {
        let has_window_alone = self.extras.is_none() && self.burst == UNLIMITED;
        has_window_alone && self.una < self.high && (departing || self.next - self.una >= self.window())
    }

    /// Next segment, as promised by [`allowance`](Self::allowance).
    #[inline(always)]
    pub fn transmit(&mut self, cfg: &TcpConfig, now: Instant) -> Segment {
        debug_assert!(self.may_transmit(cfg, now));
        if self.flags & TRACKED != 0 {
            return self.transmit_tracked(cfg, now);
        }
        self.count_burst();
        let seq = self.next;
        self.next += 1;
        self.emit(cfg, now, seq)
    }

    /// Next segment on the fast path: new, full, neither first nor last. `None`: use [`transmit`](Self::transmit).
    #[inline(always)]
    pub fn transmit_plain(&mut self, cfg: &TcpConfig, now: Instant) -> Option<PlainSegment> {
        debug_assert!(self.may_transmit(cfg, now) && self.flags_are_current());
        let seq = self.next;
        let is_endless = self.flags & (PLAIN | ENDLESS) == PLAIN | ENDLESS;
        if seq < self.high || !(is_endless || self.is_plain_before_last(seq)) {
            return self.transmit_tracked_plain(cfg, now);
        }
        if self.una == self.high || self.deadline == Instant::MAX {
            self.arm(cfg, now);
        }
        let cwr = self.take_cwr(cfg);
        self.time(seq, now);
        (self.next, self.high) = (seq + 1, seq + 1);
        Some(PlainSegment { seq, cwr, push: false })
    }

    /// Whether a new segment carries CWR, which no later one does.
    #[inline(always)]
    fn take_cwr(&mut self, cfg: &TcpConfig) -> bool {
        let flag = if cfg.ecn { CWR } else { 0 };
        let cwr = self.flags & flag != 0;
        self.flags &= !flag;
        cwr
    }

    /// Whether the sender is plain and `seq` not its last segment. Not inlined, as it reads another cache line.
    #[inline(never)]
    fn is_plain_before_last(&self, seq: u32) -> bool {
        self.flags & PLAIN != 0 && seq + 1 != self.limit
    }

    /// Starts timing segment `seq`, unless another is being timed.
    #[inline(always)]
    fn time(&mut self, seq: u32, now: Instant) {
        // A segment being timed has a lower number and an earlier time. Without an unpredictable branch.
        self.timed = self.timed.min(seq);
        self.timed_at = self.timed_at.min(now);
    }

    /// Stops timing; returns the sending time of the timed segment.
    #[inline(always)]
    fn stop_timing(&mut self) -> Instant {
        self.timed = NONE;
        core::mem::replace(&mut self.timed_at, Instant::MAX)
    }

    /// Largest number of outstanding segments.
    #[inline(always)]
    fn window(&self) -> u32 {
        (self.cwnd as u32).saturating_add(self.inflation).min(self.peer_window)
    }

    /// Time at which to call [`on_timer`](Self::on_timer). Any call may change it, usually to later: hosts check again
    /// at expiry.
    #[inline(always)]
    pub fn next_timer(&self) -> Option<Instant> {
        let idle = self.una == self.limit || (self.una == self.high && self.flags & STOPPED != 0);
        (!idle && self.deadline != Instant::MAX).then_some(self.deadline)
    }

    /// Quick check whether [`next_timer`](Self::next_timer) may be due by `moment`.
    #[inline(always)]
    pub fn may_be_due(&self, moment: Instant) -> bool {
        self.deadline <= moment
    }

    /// Timer callback. Late calls are allowed; early and additional calls have no effect.
    pub fn on_timer(&mut self, cfg: &TcpConfig, now: Instant) {
        if self.next_timer().is_some_and(|due| now >= due) {
            self.burst = full_burst(cfg);
            if self.peer_window == 0 && self.una > 0 {
                // RFC 9293 section 3.8.6.1: probe a closed window, with backoff.
                self.flags |= PROBE;
                self.rto.back_off(cfg);
                self.arm(cfg, now);
            } else if self.on_rack_timer(cfg, now) {
                self.on_timeout(cfg, now);
                if self.peer_window == 0 {
                    // The window closed before anything arrived, so there is no older segment for a probe.
                    self.flags |= RETRANSMIT;
                }
            }
            self.update_flags();
        }
    }

    /// Whether a finite transfer is acknowledged completely.
    #[inline]
    pub fn is_finished(&self) -> bool {
        self.una == self.limit
    }

    /// Congestion window (segments).
    #[inline]
    pub fn cwnd(&self) -> f64 {
        self.cwnd
    }

    /// Slow-start threshold (segments).
    #[inline]
    pub fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    /// Retransmission timeout of the next segment.
    pub fn retransmission_timeout(&self, cfg: &TcpConfig) -> Span {
        self.rto.timeout(cfg)
    }

    /// Smoothed round-trip time in whole ticks; `None` before the first sample.
    pub fn smoothed_rtt(&self, cfg: &TcpConfig) -> Option<Span> {
        self.rto.smoothed(cfg)
    }

    /// Segments acknowledged so far, the SYN included.
    #[inline]
    pub fn acknowledged_segments(&self) -> u32 {
        self.una
    }

    /// Number of round-trip samples, by reference, so that hosts may prefetch its cache line.
    #[inline(always)]
    pub fn rtt_samples(&self) -> &u32 {
        &self.rtt_samples
    }

    /// Counts since the connection began.
    pub fn stats(&self) -> Stats {
        Stats {
            // New segments have the numbers up to `high`.
            sent: self.high + self.retransmitted + self.probes,
            retransmitted: self.retransmitted,
            timeouts: self.timeouts,
            fast_retransmits: self.fast_retransmits,
            ecn_reactions: self.ecn_reactions,
            rtt_samples: self.rtt_samples,
            rtt_sum: Span::from_nanos(self.rtt_sum_nanos),
        }
    }

    /// Processes an acknowledgement of new data outside of a recovery.
    fn on_new_ack(&mut self, cfg: &TcpConfig, now: Instant, ack: &Ack) {
        self.on_new_data::<false>(cfg, now, ack.plain(), ack.ece && cfg.ecn);
    }

    /// Processes an acknowledgement of new data. `marked`: it echoes a mark. `IS_PLAIN`: fast path.
    #[inline(always)]
    fn on_new_data<const IS_PLAIN: bool>(&mut self, cfg: &TcpConfig, now: Instant, ack: PlainAck, marked: bool) {
        let acked = ack.ack - self.una;
        let in_flight = self.next - self.una;
        self.una = ack.ack;
        self.next = self.next.max(ack.ack);
        self.duplicates = 0;
        let growth_blocked = marked && (IS_PLAIN || !self.is_repairing_timeout(cfg, self.una - acked));
        self.measure(cfg, now, &ack, marked);
        self.arm(cfg, now);
        self.flags &= if growth_blocked { !0 } else { !ECN_BACKOFF };
        if IS_PLAIN {
            return self.grow_reno(cfg, acked, growth_blocked);
        }
        self.grow(cfg, acked, in_flight, growth_blocked);
        if cfg.syn && ack.ack == 1 {
            // RFC 5681 section 3.1, RFC 6928: the initial window, one segment if the SYN was lost.
            self.cwnd = if self.flags & SYN_LOST != 0 { 1.0 } else { f64::from(cfg.initial_window) };
        }
    }

    /// Window growth (RFC 5681 section 3.1, RFC 3465); none if `blocked`.
    fn grow(&mut self, cfg: &TcpConfig, acked: u32, in_flight: u32, growth_blocked: bool) {
        if self.is_controlled() {
            return; // its congestion control does that
        }
        if cfg.validate_window {
            // An unused window tells nothing about the path (RFC 7661). Slow start may double the used window.
            let slow_start = self.cwnd < f64::from(self.ssthresh);
            let used = f64::from(in_flight) + 1.0;
            let cwnd = if cfg.whole_windows { libm::floor(self.cwnd) } else { self.cwnd };
            if used < if slow_start { cwnd * 0.5 } else { cwnd } {
                return;
            }
        }
        if !cfg.whole_windows {
            self.grow_reno(cfg, acked, growth_blocked);
        } else if !growth_blocked {
            self.cwnd = whole_growth(self.cwnd, self.ssthresh, acked.min(cfg.growth_limit));
        }
    }

    #[inline(always)]
    fn grow_reno(&mut self, cfg: &TcpConfig, acked: u32, growth_blocked: bool) {
        let slow_start = self.cwnd < f64::from(self.ssthresh);
        // A shift instead of a conditional, which would become a branch.
        let counted = acked.min(cfg.growth_limit) >> (31 * u32::from(growth_blocked));
        self.cwnd = reno_growth(self.cwnd, slow_start, f64::from(counted));
    }

    /// Whether retransmissions after a timeout are in progress while `una` is unacknowledged. Until new data carries
    /// CWR (RFC 3168 section 6.1.5) the receiver echoes an old mark, which must not block growth.
    #[inline]
    fn is_repairing_timeout(&self, cfg: &TcpConfig, una: u32) -> bool {
        self.last_cause == Cause::Timeout && una < self.recover && !cfg.quirks.cwr_retransmissions
    }

    /// Takes a round-trip sample and ends the backoff (RFC 6298 section 3, Karn's algorithm).
    #[inline(always)]
    fn measure(&mut self, cfg: &TcpConfig, now: Instant, ack: &PlainAck, marked: bool) {
        let sent = if cfg.timestamps {
            ack.echo
        } else if ack.ack > self.timed {
            self.stop_timing()
        } else {
            return;
        };
        if !(marked && self.flags & ECN_BACKOFF != 0) {
            self.rto.end_backoff();
            self.flags &= !ECN_BACKOFF;
        }
        self.add_sample(cfg, now, sent);
    }

    #[inline(always)]
    fn add_sample(&mut self, cfg: &TcpConfig, now: Instant, sent: Instant) {
        self.rto.sample(cfg, sent, now);
        self.rtt_sum_nanos += now.saturating_since(sent).as_nanos();
        self.rtt_samples += 1;
    }

    /// Responds to an echoed mark, once per window of data (RFC 3168 section 6.1.2).
    #[cold]
    fn on_echo(&mut self, cfg: &TcpConfig, ack: u32) {
        if self.control().is_some_and(Control::handles_marks) {
            return;
        }
        let counts_anyway = cfg.quirks.mark_after_timeout_counts && self.last_cause == Cause::Timeout;
        if ack <= self.recover && !counts_anyway {
            return;
        }
        self.recover = self.high;
        self.last_cause = Cause::Mark;
        if cfg.quirks.ecn_backoff {
            if self.cwnd > 1.0 {
                self.flags &= !ECN_BACKOFF;
            } else if self.flags & ECN_BACKOFF != 0 {
                self.rto.back_off(cfg);
            } else {
                self.flags |= ECN_BACKOFF;
            }
        }
        self.reduce(cfg, Signal::Mark);
        self.ecn_reactions += 1;
    }

    /// RFC 5681 equation 4: ssthresh = max(FlightSize / 2, 2). The lesser of flight and window excludes segments of
    /// limited transmit (section 3.2 step 2).
    fn reduce(&mut self, cfg: &TcpConfig, signal: Signal) {
        self.reduce_flight(cfg, signal, self.high - self.una);
    }

    /// Reduces the window, with `flight` segments outstanding at the time of the signal.
    fn reduce_flight(&mut self, cfg: &TcpConfig, signal: Signal, flight: u32) {
        self.flags |= CWR;
        let window = (self.cwnd + f64::from(self.inflation)).min(f64::from(self.peer_window.max(1)));
        let base = if cfg.halve_flight { f64::from(flight).min(window) } else { window };
        if let Some(SenderExtras { control: Some(control), .. }) = self.extras.as_deref_mut() {
            let mut window = Window { cwnd: self.cwnd, ssthresh: self.ssthresh };
            control.on_congestion(cfg, signal, base, &mut window);
            (self.cwnd, self.ssthresh) = (window.cwnd, window.ssthresh);
            return;
        }
        let half = if cfg.whole_windows { libm::floor(libm::floor(base) / 2.0) } else { base / 2.0 };
        self.ssthresh = (half as u32).max(2);
        self.cwnd = half.max(cfg.min_window);
    }

    fn permitted_recovery(&self, cfg: &TcpConfig) -> RecoveryEntry {
        let first_window = self.una <= u32::from(cfg.syn) && self.last_cause == Cause::None;
        // RFC 6675 section 5.1 permits a recovery once all data outstanding at a timeout is acknowledged.
        let at_once = cfg.variant == Variant::Sack && !cfg.is_sack1();
        let later = if at_once { self.una >= self.recover } else { self.una > self.recover };
        if later || first_window {
            RecoveryEntry::Reduce
        } else if self.last_cause == Cause::Mark {
            // The window was already halved for a mark in this window of data (RFC 3168 section 6.1.2).
            RecoveryEntry::Repair
        } else {
            // These duplicates answer retransmissions after the timeout (RFC 6582 section 4).
            RecoveryEntry::Refuse
        }
    }

    /// Ends fast recovery, unless an echo in the same acknowledgement is the last cause.
    fn end_recovery(&mut self) {
        if self.last_cause == Cause::Duplicates {
            self.last_cause = Cause::Recovered;
        }
    }

    fn scoreboard(&self) -> Option<&Scoreboard> {
        self.extras.as_ref()?.scoreboard.as_ref()
    }

    /// [`poll_transmit`](Self::poll_transmit) outside the fast path.
    #[cold]
    fn poll_slow(&mut self, cfg: &TcpConfig, now: Instant) -> Option<Segment> {
        if self.control().is_some_and(|control| control.release(now) > now) {
            return None;
        }
        let idle = self.una == self.high;
        let segment = if self.uses_rack() {
            self.poll_rack(cfg, now)
        } else if self.scoreboard().is_some() {
            self.poll_selective(cfg, now)
        } else {
            self.window_allows().then(|| self.transmit(cfg, now))
        };
        let in_flight = self.rack().map_or(self.next - self.una, |rack| rack.flight.in_network());
        let exhausted = segment.is_none() && !self.data_available() && f64::from(in_flight) < self.cwnd;
        if let Some(SenderExtras { control: Some(control), .. }) = self.extras.as_deref_mut()
            && exhausted
        {
            control.on_exhausted(in_flight);
        }
        let segment = self.report_sent(now, segment?, idle);
        Some(if cfg.tso { self.close_super_packet(cfg, now, segment) } else { segment })
    }

    #[cold]
    fn take_immediate(&mut self, cfg: &TcpConfig, now: Instant) -> Option<Segment> {
        if self.flags & RETRANSMIT != 0 {
            self.flags &= !RETRANSMIT;
            if let Some(mut rack) = self.take_rack() {
                let segment = self.take_urgent(cfg, now, &mut rack);
                self.put_rack(rack);
                return segment.map(|segment| self.report_sent(now, segment, false));
            }
            if let Some(SenderExtras { scoreboard: Some(scoreboard), .. }) = self.extras.as_deref_mut() {
                scoreboard.reduction.on_sent(cfg, 0);
            }
            let segment = self.emit(cfg, now, self.una);
            return Some(self.report_sent(now, segment, false));
        }
        if self.flags & ONE_MORE != 0 {
            self.flags &= !ONE_MORE;
            // Limited transmit (RFC 3042): at most two segments beyond the congestion window, within the receive
            // window.
            let reach = self.cwnd + f64::from(self.duplicates);
            let in_flight = self.next - self.una;
            if in_flight < self.peer_window && f64::from(in_flight + 1) <= reach && self.data_available() {
                let seq = self.next;
                self.next += 1;
                let segment = self.emit(cfg, now, seq);
                return Some(self.report_sent(now, segment, false));
            }
        }
        if self.flags & PROBE != 0 {
            self.flags &= !PROBE;
            self.probes += 1;
            return Some(Segment {
                seq: self.una.saturating_sub(1),
                bytes: cfg.header_bytes,
                ecn: Ecn::NotEct,
                cwr: false,
                syn: false,
                push: false,
                retransmission: false,
                sent_at: now,
            });
        }
        None
    }

    #[inline(always)]
    fn emit(&mut self, cfg: &TcpConfig, now: Instant, seq: u32) -> Segment {
        if self.una == self.high || self.deadline == Instant::MAX {
            self.arm(cfg, now);
        }
        let retransmission = seq < self.high;
        if retransmission {
            self.retransmitted += 1;
        } else {
            self.high = seq + 1;
            self.time(seq, now);
        }
        let syn = seq == 0 && cfg.syn;
        let last = seq + 1 == self.limit;
        let bytes = if syn {
            cfg.header_bytes
        } else if last {
            cfg.header_bytes + self.last_bytes
        } else {
            cfg.packet_bytes
        };
        let capable = cfg.ecn && !syn && (!retransmission || cfg.ect_retransmissions);
        let cwr = self.flags & CWR != 0 && cfg.ecn && (!retransmission || cfg.quirks.cwr_retransmissions);
        if cwr {
            self.flags &= !CWR;
        }
        let ecn = if capable { Ecn::Ect0 } else { Ecn::NotEct };
        let push = last || ends_write(cfg, seq);
        Segment { seq, bytes, ecn, cwr, syn, push, retransmission, sent_at: now }
    }

    /// Retransmission timeout (RFC 5681 section 3.1, RFC 6298 rules 5.4 to 5.6).
    #[cold]
    fn on_timeout(&mut self, cfg: &TcpConfig, now: Instant) {
        self.timeouts += 1;
        self.inflation = 0;
        self.duplicates = 0;
        self.flags &= !UNTIL_TIMEOUT;
        self.stop_timing();
        self.flags |= CWR;
        let outstanding = self.una < self.high;
        let before = Window { cwnd: self.cwnd, ssthresh: self.ssthresh };
        if outstanding {
            if self.una == 0 {
                self.flags |= SYN_LOST;
            }
            // A second timeout in a row does not reduce the threshold again (RFC 5681 section 3.1).
            let first = self.last_cause != Cause::Timeout || self.una >= self.recover;
            if self.is_controlled() {
                if first {
                    self.reduce(cfg, Signal::Timeout);
                }
            } else if !(cfg.quirks.timeout_after_mark_keeps_threshold && self.last_cause == Cause::Mark) {
                let window = self.cwnd.max(1.0).min(f64::from(self.peer_window.max(1)));
                if cfg.halve_flight {
                    if first {
                        self.ssthresh = ((self.high - self.una) / 2).max(2);
                    }
                } else {
                    self.ssthresh = ((window / 2.0) as u32).max(2);
                }
            }
            self.rto.back_off(cfg);
        }
        if outstanding && cfg.is_sack1() {
            self.flags |= IGNORE_DUPLICATES;
            self.clear_scoreboard();
        }
        self.cwnd = 1.0;
        if !self.keeps_recovery_point(cfg) {
            self.recover = self.high;
        }
        self.last_cause = Cause::Timeout;
        self.next = self.una;
        self.arm(cfg, now);
        self.on_rack_timeout(cfg, now, before);
    }

    /// Whether a timeout preserves RecoveryPoint, as RFC 6675 section 5.1 asks of a timeout in a recovery: no recovery
    /// begins before all data below it is acknowledged. If each timeout moved it beyond new data, a sender whose
    /// retransmissions are lost would never reach it.
    fn keeps_recovery_point(&self, cfg: &TcpConfig) -> bool {
        let is_rfc6675 = cfg.variant == Variant::Sack && cfg.loss_detection == LossDetection::Rfc6675;
        is_rfc6675 && self.last_cause == Cause::Timeout && self.una < self.recover
    }

    /// Handles a closed or reopened receive window; `before`: the old window.
    #[inline]
    fn on_window(&mut self, cfg: &TcpConfig, now: Instant, before: u32) {
        if before != self.peer_window && (before == 0 || self.peer_window == 0) {
            self.rto.end_backoff();
            self.arm(cfg, now);
        }
    }

    /// Restart after idle (RFC 5681 section 4.1).
    fn restart_after_idle(&mut self, cfg: &TcpConfig, now: Instant) {
        let idle = self.una == self.high && self.next_timer().is_none() && self.deadline != Instant::MAX;
        if !idle || now < self.deadline {
            return;
        }
        // The timer has expired with nothing outstanding.
        self.deadline = Instant::MAX;
        if let Some(window) = cfg.restart_window {
            self.cwnd = self.cwnd.max(1.0).min(f64::from(window));
        }
    }

    fn extend(&mut self, cfg: &TcpConfig, more: Bytes) {
        if self.limit == u32::MAX || more.0 == 0 {
            return;
        }
        let payload = u64::from(cfg.payload_bytes());
        // A short last segment that has not been sent is filled first.
        let begun = self.limit > self.high && self.limit > u32::from(cfg.syn);
        let bytes = more.0.saturating_add(if begun { u64::from(self.last_bytes) } else { 0 });
        let before = self.limit - u32::from(begun);
        let segments = bytes.div_ceil(payload).min(u64::from(u32::MAX - 1 - before)) as u32;
        self.limit = before + segments;
        let rest = bytes % payload;
        self.last_bytes = if rest == 0 || cfg.quirks.full_segments { cfg.payload_bytes() } else { rest as u16 };
    }

    #[inline]
    fn data_available(&self) -> bool {
        self.next < self.limit && (self.flags & STOPPED == 0 || self.next < self.high)
    }

    #[inline]
    fn count_burst(&mut self) {
        if self.burst != UNLIMITED {
            self.burst -= 1;
        }
    }

    #[inline(always)]
    fn arm(&mut self, cfg: &TcpConfig, now: Instant) {
        self.deadline = now.saturating_add(self.rto.timeout(cfg));
    }
}

/// Whether segment `seq` is the last of a write.
fn ends_write(cfg: &TcpConfig, seq: u32) -> bool {
    cfg.write > 0 && seq > 0 && seq.is_multiple_of(u32::from(cfg.write))
}

enum RecoveryEntry {
    /// Reduce the window and retransmit.
    Reduce,
    /// Retransmit; the window was already reduced.
    Repair,
    /// No recovery.
    Refuse,
}

const fn full_burst(cfg: &TcpConfig) -> u8 {
    if cfg.max_burst == 0 { UNLIMITED } else { cfg.max_burst }
}
