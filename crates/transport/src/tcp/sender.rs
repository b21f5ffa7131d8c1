//! The sending end: when to send which segment.
//!
//! Slow start, congestion avoidance, fast retransmit and fast recovery follow RFC 5681, NewReno RFC 6582, selective
//! acknowledgements RFC 6675 or RFC 8985, limited transmit RFC 3042, the timer RFC 6298, marks RFC 3168. Where ns-2.35
//! differs, a field of [`TcpConfig`] chooses. Growth and reduction of the window are Reno's; a connection with another
//! congestion control, or paced, has a `Control` in its `Aside` and takes the rare paths throughout.
//!
//! ```text
//!                  third duplicate                      acknowledged up to `recover`
//!   open window  ------------------> fast recovery ------------------------------------> open window
//!        |   <----------------------------- (Reno: any new acknowledgement)                  |
//!        +--- retransmission timer, from anywhere: window 1, resend from `una` on (slow start)
//! ```
//!
//! Deviations: a persist probe is an old, empty segment (as in Linux), not a byte of new data, since sequence numbers
//! count segments. RFC 6298 rule 5.7 (3 s after a lost SYN) is left out: the SYN's own round trip is measured.

mod controlled;
mod duplicates;
mod offload;
mod probe;
mod sack1;
mod selective;
mod track;
mod tracked;

use alloc::boxed::Box;

use aqumen_units::{Bytes, Ecn, Instant, Span};

use super::board::Board;
use super::congestion::{Control, Signal, Window, reno_growth, whole_growth};
use super::rto::Rto;
use super::{Ack, LossDetection, PlainAck, Segment, TcpConfig, Variant};
use track::Track;

/// The sending end of a connection.
///
/// The host calls [`start`](Self::start), then after every call that may change what can be sent (`start`, `resume`,
/// `offer`, [`on_ack`](Self::on_ack), [`on_timer`](Self::on_timer)) polls [`poll_immediate`](Self::poll_immediate)
/// until `None`, and [`poll_transmit`](Self::poll_transmit) until `None`: at once, or with
/// [`send_overhead`](TcpConfig::send_overhead) after a random delay (one at a time: while it runs, further calls start
/// no second one). A paced sender lets go what its rate allows; the host polls again at [`next_send`](Self::next_send).
///
/// In this order because of the cache: what an acknowledgement of new data and a new segment need lies on its first
/// line.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Sender {
    /// Congestion window (segments).
    cwnd: f64,
    /// When the retransmission (or persist) timer goes off; `Instant::MAX`: not set.
    deadline: Instant,
    /// When segment `timed` left; `Instant::MAX`: none is being timed.
    timed_at: Instant,
    /// The segment being timed, or `NONE`.
    timed: u32,
    /// The oldest segment not acknowledged.
    una: u32,
    /// The next segment to send; behind `high` after a timeout.
    next: u32,
    /// One past the highest segment ever sent.
    high: u32,
    /// `high` at the last reduction: the window reacts to nothing older.
    recover: u32,
    /// What the receiver takes beyond `una`.
    peer_window: u32,
    /// Slow-start threshold (segments).
    ssthresh: u32,
    duplicates: u8,
    /// How many more segments may leave in answer to the last event.
    burst: u8,
    /// Where a compiler cannot read it together with what follows: a processor has to wait for what was just written.
    flags: u16,
    /// The timeout, on the first line, and what it is made of.
    rto: Rto,
    /// Payload of the segment before `limit`.
    last_bytes: u16,
    last: Cause,
    rtt_sum_nanos: u64,
    /// What a plain Reno sender does not need while nothing is missing.
    aside: Option<Box<Aside>>,
    /// One past the last segment the application offered.
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

/// What most connections need rarely or never.
#[derive(Clone, Debug, Default)]
struct Aside {
    /// What the receiver reported beyond `una`; `None` while nothing is missing.
    board: Option<Board>,
    /// A congestion control other than plain Reno.
    control: Option<Control>,
    /// What is under way, where losses are found by time. It stands in for the board.
    track: Option<Box<Track>>,
}

impl Aside {
    /// What a connection needs from its first segment on.
    fn new(cfg: &TcpConfig) -> Option<Box<Self>> {
        let control = Control::new(cfg);
        let track = cfg.tracks_segments().then(|| Box::new(Track::new()));
        (control.is_some() || track.is_some()).then(|| Box::new(Aside { board: None, control, track }))
    }
}

/// The last cause to reduce the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Cause {
    None,
    /// Duplicate acknowledgements, recovery not over.
    Duplicates,
    /// Duplicate acknowledgements, recovery over.
    Recovered,
    Mark,
    Timeout,
}

/// The application offers nothing more, or nothing yet.
const STOPPED: u16 = 1;
/// The next segment carries CWR.
const CWR: u16 = 1 << 2;
/// A timeout of ns-2's Sack1: duplicates mean nothing before new data is acknowledged.
const IGNORE_DUPLICATES: u16 = 1 << 1;
/// A mark came back to a window of one.
const ECN_BACKOFF: u16 = 1 << 3;
/// Segment `una` is to be sent at once.
const RETRANSMIT: u16 = 1 << 4;
/// Limited transmit: one new segment is to be sent at once.
const ONE_MORE: u16 = 1 << 5;
/// A window probe is to be sent at once.
const PROBE: u16 = 1 << 6;
/// In the loss recovery of RFC 6675.
const RECOVERY: u16 = 1 << 7;
/// A partial acknowledgement has restarted the timer in this recovery (RFC 6582 section 3.2 step 3).
const PARTIAL: u16 = 1 << 8;
/// The SYN was lost: the initial window is one (RFC 5681 section 3.1).
const SYN_LOST: u16 = 1 << 9;
/// What [`Sender::poll_immediate`] has to do.
const AT_ONCE: u16 = RETRANSMIT | ONE_MORE | PROBE;
/// What a timeout ends.
const UNTIL_TIMEOUT: u16 = RETRANSMIT | ONE_MORE | RECOVERY;
/// See [`Sender::is_plain`], which it saves asking.
const PLAIN: u16 = 1 << 10;
/// See [`Sender::is_endless`].
const ENDLESS: u16 = 1 << 11;
/// Its configuration asks of each acknowledgement or segment what most do not.
const PARTICULAR: u16 = 1 << 12;

const UNLIMITED: u8 = u8::MAX;

/// No segment: none has this number.
const NONE: u32 = u32::MAX;

/// Counts since the connection began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Segments sent, retransmissions and the SYN included.
    pub sent: u32,
    /// Segments sent again.
    pub retransmitted: u32,
    /// Retransmission timeouts, those of a window marked below one included.
    pub timeouts: u32,
    /// Fast retransmits.
    pub fast_retransmits: u32,
    /// Reactions to marks.
    pub ecn_reactions: u32,
    /// Round trips measured.
    pub rtt_samples: u32,
    /// Their sum.
    pub rtt_sum: Span,
}

impl Sender {
    /// A sender of `transfer` bytes, `None`: without end. It is silent until [`start`](Self::start).
    ///
    /// A transfer of more than 2^32 - 2 segments is cut there.
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
            flags: if cfg.validate_window || cfg.whole_windows || cfg.write > 0 { PARTICULAR } else { 0 } | STOPPED,
            duplicates: 0,
            burst: full_burst(cfg),
            last: Cause::None,
            aside: Aside::new(cfg),
        };
        if let Some(bytes) = transfer {
            sender.limit = syn;
            sender.extend(cfg, bytes);
        }
        sender.settle();
        sender
    }

    /// It is connected, nothing is known to be missing, nothing limits bursts, what a timeout found outstanding was
    /// acknowledged, and the window grows by RFC 5681 alone: what an acknowledgement of new data means is soon said.
    fn is_plain(&self) -> bool {
        let has_repaired = self.last != Cause::Timeout || self.una >= self.recover;
        let is_simple =
            self.flags & (PARTICULAR | IGNORE_DUPLICATES) == 0 && self.aside.is_none() && self.burst == UNLIMITED;
        is_simple && self.una > 0 && self.inflation == 0 && has_repaired
    }

    /// There is always something new to send.
    fn is_endless(&self) -> bool {
        self.limit == u32::MAX && self.flags & STOPPED == 0
    }

    /// What these two say may have changed: all that can change it ends with this.
    #[inline]
    fn settle(&mut self) {
        let (plain, endless) = (self.is_plain(), self.is_endless());
        self.flags &= !(PLAIN | ENDLESS);
        self.flags |= if plain { PLAIN } else { 0 } | if endless { ENDLESS } else { 0 };
    }

    /// Whether [`settle`](Self::settle) was not forgotten.
    fn is_settled(&self) -> bool {
        let settled = |flag, is| (self.flags & flag != 0) == is;
        settled(PLAIN, self.is_plain()) && settled(ENDLESS, self.is_endless())
    }

    /// Lets this sender's coarse clock tick `phase` before the host's: real hosts' clocks are not in step. Without it
    /// ticks fall on multiples of [`rto_tick`](TcpConfig::rto_tick). ns-2 draws it uniformly in one tick.
    pub fn with_clock_phase(mut self, cfg: &TcpConfig, phase: Span) -> Self {
        self.rto.set_phase(cfg, phase);
        self
    }

    /// The application begins to send.
    pub fn start(&mut self, cfg: &TcpConfig, now: Instant) {
        self.resume(cfg, now);
    }

    /// The application offers nothing more for now; what was sent is still repaired.
    pub fn pause(&mut self, _now: Instant) {
        self.flags |= STOPPED;
        self.settle();
    }

    /// The application goes on after a [`pause`](Self::pause).
    pub fn resume(&mut self, cfg: &TcpConfig, now: Instant) {
        self.restart_after_idle(cfg, now);
        self.flags &= !STOPPED;
        self.burst = full_burst(cfg);
        self.settle();
    }

    /// The application offers `more` bytes (a source that writes at its own pace). Nothing changes for an endless
    /// transfer.
    pub fn offer(&mut self, cfg: &TcpConfig, now: Instant, more: Bytes) {
        self.restart_after_idle(cfg, now);
        self.extend(cfg, more);
        self.burst = full_burst(cfg);
        self.settle();
    }

    /// An acknowledgement arrived. One for data never sent is ignored (RFC 9293 section 3.10.7.4), as is an old one.
    pub fn on_ack(&mut self, cfg: &TcpConfig, now: Instant, ack: &Ack) {
        if ack.ack > self.high || (ack.sack.is_empty() && self.on_plain_ack(cfg, now, ack.plain())) {
            return;
        }
        self.burst = full_burst(cfg);
        self.on_other_ack(cfg, now, ack);
        self.settle();
    }

    fn on_other_ack(&mut self, cfg: &TcpConfig, now: Instant, ack: &Ack) {
        if self.is_tracked() {
            return self.on_tracked_ack(cfg, now, ack);
        }
        // The reaction to an echo moves `recover`; whether this ends a recovery is a matter of where it began.
        let recovered = ack.ack >= self.recover;
        if ack.ece && cfg.ecn {
            self.on_echo(cfg, ack.ack);
        }
        self.on_unusual_ack(cfg, now, *ack, recovered);
    }

    /// The same of an acknowledgement without selective blocks. `false`: it is not just one of new data that reaches a
    /// sender of which there is nothing else to know, and [`on_ack`](Self::on_ack) is to be called.
    #[inline(always)]
    pub fn on_plain_ack(&mut self, cfg: &TcpConfig, now: Instant, ack: PlainAck) -> bool {
        debug_assert!(self.is_settled());
        // It acknowledges something, and no more than was sent: both by one comparison.
        let acked = ack.ack.wrapping_sub(self.una);
        let is_new = acked.wrapping_sub(1) < self.high - self.una;
        if !is_new || self.flags & PLAIN == 0 {
            return false;
        }
        // What hangs on marks, which come by chance, is worked out without a branch that nobody could foretell; and
        // most echoes are of a mark that was reacted to.
        let marked = ack.ece & cfg.ecn;
        if ack.ack.wrapping_mul(u32::from(marked)) > self.recover {
            self.on_echo(cfg, ack.ack);
        }
        self.on_new_data::<true>(cfg, now, ack, marked);
        self.peer_window = ack.window;
        true
    }

    /// Everything but an acknowledgement of new data while nothing is known to be missing.
    #[cold]
    fn on_unusual_ack(&mut self, cfg: &TcpConfig, now: Instant, ack: Ack, recovered: bool) {
        if self.is_controlled() {
            self.on_controlled_ack(cfg, now, ack, recovered);
        } else {
            self.work_in(cfg, now, ack, recovered);
        }
    }

    #[inline(always)]
    fn is_controlled(&self) -> bool {
        self.aside.as_ref().is_some_and(|aside| aside.control.is_some())
    }

    fn control(&self) -> Option<&Control> {
        self.aside.as_ref()?.control.as_ref()
    }

    /// What an acknowledgement says, growth of the window aside where there is a congestion control.
    #[inline]
    fn work_in(&mut self, cfg: &TcpConfig, now: Instant, ack: Ack, recovered: bool) {
        if cfg.is_sack1() {
            self.on_sack1_ack(cfg, now, ack);
        } else if cfg.variant == Variant::Sack && (self.board().is_some() || !ack.sack.is_empty()) {
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
            // RFC 5681 section 2: a duplicate has data outstanding and the same window. One without selective blocks
            // tells a SACK sender that a copy arrived, not that something is missing (RFC 6675 section 2).
            if self.una < self.high && window == ack.window && cfg.variant != Variant::Sack {
                self.on_duplicate(cfg, now);
            }
        }
    }

    /// Segments that leave at once: fast retransmissions, limited transmit, probes of a closed window.
    #[inline(always)]
    pub fn poll_immediate(&mut self, cfg: &TcpConfig, now: Instant) -> Option<Segment> {
        if !self.is_urgent() {
            return None;
        }
        let segment = self.take_immediate(cfg, now);
        self.settle();
        segment
    }

    /// Whether [`poll_immediate`](Self::poll_immediate) may have something.
    #[inline(always)]
    pub fn is_urgent(&self) -> bool {
        self.flags & AT_ONCE != 0
    }

    /// The next segment the window allows. Call until `None`.
    #[inline(always)]
    pub fn poll_transmit(&mut self, cfg: &TcpConfig, now: Instant) -> Option<Segment> {
        if self.aside.is_some() {
            let segment = self.poll_rarely(cfg, now);
            self.settle();
            return segment;
        }
        if !self.may_transmit(cfg, now) {
            return None;
        }
        Some(self.transmit(cfg, now))
    }

    /// Whether [`poll_transmit`](Self::poll_transmit) would give a segment now.
    #[inline]
    pub fn may_transmit(&self, cfg: &TcpConfig, now: Instant) -> bool {
        if self.aside.is_some() {
            return self.has_to_send(cfg) && self.control().is_none_or(|control| control.release(now) <= now);
        }
        self.window_allows()
    }

    /// Where pacing holds back what the window allows: when to poll [`poll_transmit`](Self::poll_transmit) again. It
    /// may change with any call, never to sooner.
    pub fn next_send(&self, cfg: &TcpConfig, now: Instant) -> Option<Instant> {
        let release = self.control()?.release(now);
        (release > now && self.has_to_send(cfg)).then_some(release)
    }

    /// Whether the window allows a segment, pacing aside.
    fn has_to_send(&self, cfg: &TcpConfig) -> bool {
        if self.is_tracked() {
            self.tracked_has_to_send(cfg)
        } else if self.board().is_some() {
            self.choose(cfg).is_some()
        } else {
            self.window_allows()
        }
    }

    #[inline(always)]
    fn window_allows(&self) -> bool {
        self.next - self.una < self.window() && self.data_available() && self.burst > 0
    }

    /// How many segments [`poll_transmit`](Self::poll_transmit) would give now; `None` while selective acknowledgements
    /// show holes, when each choice decides the next, and for a sender with a congestion control other than plain Reno.
    #[inline(always)]
    pub fn allowance(&self) -> Option<u32> {
        debug_assert!(self.is_settled());
        if self.flags & (PLAIN | ENDLESS) == PLAIN | ENDLESS {
            // Nothing inflates its window.
            return Some((self.cwnd as u32).min(self.peer_window).saturating_sub(self.next - self.una));
        }
        self.other_allowance()
    }

    /// The same where something else than the window may hold segments back.
    #[inline(never)]
    fn other_allowance(&self) -> Option<u32> {
        if self.aside.is_some() {
            return None;
        }
        let available = if self.flags & STOPPED == 0 { self.limit } else { self.high } - self.next.min(self.limit);
        let burst = if self.burst == UNLIMITED { u32::MAX } else { u32::from(self.burst) };
        let room = self.window().saturating_sub(self.next - self.una);
        Some(room.min(available).min(burst))
    }

    /// Whether whatever is [offered](Self::offer) now waits for the sender's next event all the same: something is
    /// under way, and the window is full, or the host lets something go later (`departing`). Never where there is more
    /// to know of a sender than its window.
    pub fn holds_offers(&self, departing: bool) -> bool {
        let has_window_alone = self.aside.is_none() && self.burst == UNLIMITED;
        has_window_alone && self.una < self.high && (departing || self.next - self.una >= self.window())
    }

    /// The next segment, where [`allowance`](Self::allowance) has promised one.
    #[inline(always)]
    pub fn transmit(&mut self, cfg: &TcpConfig, now: Instant) -> Segment {
        debug_assert!(self.may_transmit(cfg, now));
        self.count_burst();
        let seq = self.next;
        self.next += 1;
        self.emit(cfg, now, seq)
    }

    /// The same of a segment like most: new, not the first nor the last, and with nothing to say of writes. Its number,
    /// and whether it carries CWR, for a host that knows the rest. `None`: it is another, which
    /// [`transmit`](Self::transmit) gives.
    #[inline(always)]
    pub fn transmit_plain(&mut self, cfg: &TcpConfig, now: Instant) -> Option<(u32, bool)> {
        debug_assert!(self.may_transmit(cfg, now) && self.is_settled());
        let seq = self.next;
        let is_endless = self.flags & (PLAIN | ENDLESS) == PLAIN | ENDLESS;
        if seq < self.high || !(is_endless || self.is_plain_before_last(seq)) {
            return None;
        }
        if self.una == self.high || self.deadline == Instant::MAX {
            self.arm(cfg, now);
        }
        let said = if cfg.ecn { CWR } else { 0 };
        let cwr = self.flags & said != 0;
        self.flags &= !said;
        self.time(seq, now);
        (self.next, self.high) = (seq + 1, seq + 1);
        Some((seq, cwr))
    }

    /// Whether it is a plain sender, and `seq` not the last that there is to send. Apart, for what it reads lies on
    /// another cache line.
    #[inline(never)]
    fn is_plain_before_last(&self, seq: u32) -> bool {
        self.flags & PLAIN != 0 && seq + 1 != self.limit
    }

    /// Segment `seq` leaves for the first time: it is timed, if no other is.
    #[inline(always)]
    fn time(&mut self, seq: u32, now: Instant) {
        // Another has a lower number and left before. Without a branch that nobody could foretell.
        self.timed = self.timed.min(seq);
        self.timed_at = self.timed_at.min(now);
    }

    /// No segment is timed any longer: when the one that was left.
    #[inline(always)]
    fn stop_timing(&mut self) -> Instant {
        self.timed = NONE;
        core::mem::replace(&mut self.timed_at, Instant::MAX)
    }

    /// Segments that may be outstanding.
    #[inline(always)]
    fn window(&self) -> u32 {
        (self.cwnd as u32).saturating_add(self.inflation).min(self.peer_window)
    }

    /// When [`on_timer`](Self::on_timer) is to be called. It may change with any call, mostly to later: a host that
    /// finds it has moved when it gets there asks again.
    #[inline(always)]
    pub fn next_timer(&self) -> Option<Instant> {
        let idle = self.una == self.limit || (self.una == self.high && self.flags & STOPPED != 0);
        (!idle && self.deadline != Instant::MAX).then_some(self.deadline)
    }

    /// Whether [`next_timer`](Self::next_timer) could be no later than `moment`, at a glance.
    #[inline(always)]
    pub fn may_be_due(&self, moment: Instant) -> bool {
        self.deadline <= moment
    }

    /// The timer of [`next_timer`](Self::next_timer). Late calls are fine, early and extra ones do nothing.
    pub fn on_timer(&mut self, cfg: &TcpConfig, now: Instant) {
        if self.next_timer().is_some_and(|due| now >= due) {
            self.burst = full_burst(cfg);
            if self.peer_window == 0 && self.una > 0 {
                // RFC 9293 section 3.8.6.1: probe a closed window, with backoff.
                self.flags |= PROBE;
                self.rto.back_off(cfg);
                self.arm(cfg, now);
            } else if self.on_tracked_timer(cfg, now) {
                self.on_timeout(cfg, now);
                if self.peer_window == 0 {
                    // Closed before anything arrived: there is no older segment to probe with.
                    self.flags |= RETRANSMIT;
                }
            }
            self.settle();
        }
    }

    /// Whether all of a finite transfer has been acknowledged.
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

    /// Retransmission timeout that the next segment would get.
    pub fn retransmission_timeout(&self, cfg: &TcpConfig) -> Span {
        self.rto.timeout(cfg)
    }

    /// Smoothed round-trip time, to the clock's tick; `None` before the first sample.
    pub fn smoothed_rtt(&self, cfg: &TcpConfig) -> Option<Span> {
        self.rto.smoothed(cfg)
    }

    /// Segments acknowledged so far, the SYN included.
    #[inline]
    pub fn acknowledged_segments(&self) -> u32 {
        self.una
    }

    /// How many round trips were measured: one more after some acknowledgements. It does not lie on the first cache
    /// line, which a host of many connections may like to know.
    #[inline(always)]
    pub fn rtt_samples(&self) -> &u32 {
        &self.rtt_samples
    }

    /// Counts since the connection began.
    pub fn stats(&self) -> Stats {
        Stats {
            // New ones have the numbers up to `high`.
            sent: self.high + self.retransmitted + self.probes,
            retransmitted: self.retransmitted,
            timeouts: self.timeouts,
            fast_retransmits: self.fast_retransmits,
            ecn_reactions: self.ecn_reactions,
            rtt_samples: self.rtt_samples,
            rtt_sum: Span::from_nanos(self.rtt_sum_nanos),
        }
    }

    /// New data was acknowledged, and no recovery is on.
    fn on_new_ack(&mut self, cfg: &TcpConfig, now: Instant, ack: &Ack) {
        self.on_new_data::<false>(cfg, now, ack.plain(), ack.ece && cfg.ecn);
    }

    /// The same of an acknowledgement that says, if `marked`, that a mark was seen. `IS_PLAIN`: the sender is plain.
    #[inline(always)]
    fn on_new_data<const IS_PLAIN: bool>(&mut self, cfg: &TcpConfig, now: Instant, ack: PlainAck, marked: bool) {
        let acked = ack.ack - self.una;
        let in_flight = self.next - self.una;
        self.una = ack.ack;
        self.next = self.next.max(ack.ack);
        self.duplicates = 0;
        let held = marked && (IS_PLAIN || !self.resends_after_timeout(cfg, self.una - acked));
        self.measure(cfg, now, &ack, marked);
        self.arm(cfg, now);
        self.flags &= if held { !0 } else { !ECN_BACKOFF };
        if IS_PLAIN {
            return self.grow_plainly(cfg, acked, held);
        }
        self.grow(cfg, acked, in_flight, held);
        if cfg.syn && ack.ack == 1 {
            // RFC 5681 section 3.1, RFC 6928: the initial window, one segment if the SYN was lost.
            self.cwnd = if self.flags & SYN_LOST != 0 { 1.0 } else { f64::from(cfg.initial_window) };
        }
    }

    /// Slow start and congestion avoidance (RFC 5681 section 3.1, RFC 3465). `held`: nothing grows.
    fn grow(&mut self, cfg: &TcpConfig, acked: u32, in_flight: u32, held: bool) {
        if self.is_controlled() {
            return; // its congestion control does that
        }
        if cfg.validate_window {
            // RFC 7661: a window that was not used says nothing about the path. Slow start may double what was used.
            let slow_start = self.cwnd < f64::from(self.ssthresh);
            let used = f64::from(in_flight) + 1.0;
            let cwnd = if cfg.whole_windows { libm::floor(self.cwnd) } else { self.cwnd };
            if used < if slow_start { cwnd * 0.5 } else { cwnd } {
                return;
            }
        }
        if !cfg.whole_windows {
            self.grow_plainly(cfg, acked, held);
        } else if !held {
            self.cwnd = whole_growth(self.cwnd, self.ssthresh, acked.min(cfg.growth_limit));
        }
    }

    #[inline(always)]
    fn grow_plainly(&mut self, cfg: &TcpConfig, acked: u32, held: bool) {
        let slow_start = self.cwnd < f64::from(self.ssthresh);
        // Growth by nothing changes nothing. A shift, for a choice would become a branch.
        let counted = acked.min(cfg.growth_limit) >> (31 * u32::from(held));
        self.cwnd = reno_growth(self.cwnd, slow_start, f64::from(counted));
    }

    /// Whether what a timeout found outstanding is being sent again, with `una` not acknowledged. Only new data
    /// carries CWR (RFC 3168 section 6.1.5), so until then the receiver echoes a mark from before, which must not
    /// hold the window at one segment.
    #[inline]
    fn resends_after_timeout(&self, cfg: &TcpConfig, una: u32) -> bool {
        self.last == Cause::Timeout && una < self.recover && !cfg.quirks.cwr_retransmissions
    }

    /// Round-trip samples, and the end of backoff (RFC 6298 section 3, Karn's rule).
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

    /// The receiver echoes a mark (RFC 3168 section 6.1.2): one reaction per window of data.
    #[cold]
    fn on_echo(&mut self, cfg: &TcpConfig, ack: u32) {
        if self.control().is_some_and(Control::handles_marks) {
            return;
        }
        let counts_anyway = cfg.quirks.mark_after_timeout_counts && self.last == Cause::Timeout;
        if ack <= self.recover && !counts_anyway {
            return;
        }
        self.recover = self.high;
        self.last = Cause::Mark;
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

    /// RFC 5681 equation 4: ssthresh = max(FlightSize / 2, 2). Segments of limited transmit lie beyond the window, so
    /// the lesser of flight and window leaves them out, as section 3.2 step 2 asks.
    fn reduce(&mut self, cfg: &TcpConfig, signal: Signal) {
        self.reduce_flight(cfg, signal, self.high - self.una);
    }

    /// The same with `flight` segments outstanding when the signal came.
    fn reduce_flight(&mut self, cfg: &TcpConfig, signal: Signal, flight: u32) {
        self.flags |= CWR;
        let window = (self.cwnd + f64::from(self.inflation)).min(f64::from(self.peer_window.max(1)));
        let base = if cfg.halve_flight { f64::from(flight).min(window) } else { window };
        if let Some(Aside { control: Some(control), .. }) = self.aside.as_deref_mut() {
            let mut window = Window { cwnd: self.cwnd, ssthresh: self.ssthresh };
            control.on_congestion(cfg, signal, base, &mut window);
            (self.cwnd, self.ssthresh) = (window.cwnd, window.ssthresh);
            return;
        }
        let half = if cfg.whole_windows { libm::floor(libm::floor(base) / 2.0) } else { base / 2.0 };
        self.ssthresh = (half as u32).max(2);
        self.cwnd = half.max(cfg.min_window);
    }

    fn permitted_recovery(&self, cfg: &TcpConfig) -> Entry {
        let first_window = self.una <= u32::from(cfg.syn) && self.last == Cause::None;
        // RFC 6675 section 5.1 lets a recovery begin once all that a timeout found outstanding is acknowledged.
        let at_once = cfg.variant == Variant::Sack && !cfg.is_sack1();
        let later = if at_once { self.una >= self.recover } else { self.una > self.recover };
        if later || first_window {
            Entry::Reduce
        } else if self.last == Cause::Mark {
            // The window was halved for a mark within this window of data (RFC 3168 section 6.1.2).
            Entry::Repair
        } else {
            // RFC 6582 section 4: these duplicates answer what the timeout sent again.
            Entry::Refuse
        }
    }

    /// Fast recovery is over. An echo in the same acknowledgement may have been answered: that stays the last cause.
    fn end_recovery(&mut self) {
        if self.last == Cause::Duplicates {
            self.last = Cause::Recovered;
        }
    }

    fn board(&self) -> Option<&Board> {
        self.aside.as_ref()?.board.as_ref()
    }

    /// [`poll_transmit`](Self::poll_transmit) while the receiver misses something, or with a congestion control.
    #[cold]
    fn poll_rarely(&mut self, cfg: &TcpConfig, now: Instant) -> Option<Segment> {
        if self.control().is_some_and(|control| control.release(now) > now) {
            return None;
        }
        let idle = self.una == self.high;
        let segment = if self.is_tracked() {
            self.poll_tracked(cfg, now)
        } else if self.board().is_some() {
            self.poll_selective(cfg, now)
        } else {
            self.window_allows().then(|| self.transmit(cfg, now))
        };
        let in_flight = self.track().map_or(self.next - self.una, |track| track.flight.in_network());
        let exhausted = segment.is_none() && !self.data_available() && f64::from(in_flight) < self.cwnd;
        if let Some(Aside { control: Some(control), .. }) = self.aside.as_deref_mut()
            && exhausted
        {
            control.on_exhausted(in_flight);
        }
        let segment = self.account(now, segment?, idle);
        Some(if cfg.tso { self.close_super_packet(cfg, now, segment) } else { segment })
    }

    #[cold]
    fn take_immediate(&mut self, cfg: &TcpConfig, now: Instant) -> Option<Segment> {
        if self.flags & RETRANSMIT != 0 {
            self.flags &= !RETRANSMIT;
            if let Some(mut track) = self.take_track() {
                let segment = self.take_urgent(cfg, now, &mut track);
                self.keep(track);
                return segment.map(|segment| self.account(now, segment, false));
            }
            if let Some(Aside { board: Some(board), .. }) = self.aside.as_deref_mut() {
                board.descent.on_sent(cfg, 0);
            }
            let segment = self.emit(cfg, now, self.una);
            return Some(self.account(now, segment, false));
        }
        if self.flags & ONE_MORE != 0 {
            self.flags &= !ONE_MORE;
            // RFC 3042: the receive window allows it, and no more than two segments lie beyond the congestion window.
            let reach = self.cwnd + f64::from(self.duplicates);
            let in_flight = self.next - self.una;
            if in_flight < self.peer_window && f64::from(in_flight + 1) <= reach && self.data_available() {
                let seq = self.next;
                self.next += 1;
                let segment = self.emit(cfg, now, seq);
                return Some(self.account(now, segment, false));
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
        let push = last || cfg.write > 0 && seq > 0 && seq.is_multiple_of(u32::from(cfg.write));
        Segment { seq, bytes, ecn, cwr, syn, push, retransmission, sent_at: now }
    }

    /// The retransmission timer went off (RFC 5681 section 3.1, RFC 6298 rules 5.4 to 5.6).
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
            // A second timeout in a row finds nothing new to learn from (RFC 5681 section 3.1).
            let first = self.last != Cause::Timeout || self.una >= self.recover;
            if self.is_controlled() {
                if first {
                    self.reduce(cfg, Signal::Timeout);
                }
            } else if !(cfg.quirks.timeout_after_mark_keeps_threshold && self.last == Cause::Mark) {
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
            self.forget_board();
        }
        self.cwnd = 1.0;
        if !self.keeps_recovery_point(cfg) {
            self.recover = self.high;
        }
        self.last = Cause::Timeout;
        self.next = self.una;
        self.arm(cfg, now);
        self.on_tracked_timeout(cfg, now, before);
    }

    /// Whether a timeout leaves RecoveryPoint where one before it has set it. RFC 6675 section 5.1 sets it at a timeout
    /// in a recovery and preserves it: no recovery may begin before all below it is acknowledged. If each timeout
    /// moved it, past new data that left meanwhile, a sender whose retransmissions are lost would never reach it, and
    /// have nothing but timeouts.
    fn keeps_recovery_point(&self, cfg: &TcpConfig) -> bool {
        let is_rfc6675 = cfg.variant == Variant::Sack && cfg.loss_detection == LossDetection::Rfc6675;
        is_rfc6675 && self.last == Cause::Timeout && self.una < self.recover
    }

    /// The peer's window may have closed or opened; `before`: what it was.
    #[inline]
    fn on_window(&mut self, cfg: &TcpConfig, now: Instant, before: u32) {
        if before != self.peer_window && (before == 0 || self.peer_window == 0) {
            self.rto.end_backoff();
            self.arm(cfg, now);
        }
    }

    /// RFC 5681 section 4.1: after a pause the network may have changed.
    fn restart_after_idle(&mut self, cfg: &TcpConfig, now: Instant) {
        let idle = self.una == self.high && self.next_timer().is_none() && self.deadline != Instant::MAX;
        if !idle || now < self.deadline {
            return;
        }
        // The timer has run out while there was nothing to send again.
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
        // A short last segment that has not left yet is filled first.
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

enum Entry {
    /// Halve the window and retransmit.
    Reduce,
    /// Retransmit; the window was halved already.
    Repair,
    /// Neither.
    Refuse,
}

const fn full_burst(cfg: &TcpConfig) -> u8 {
    if cfg.max_burst == 0 { UNLIMITED } else { cfg.max_burst }
}
