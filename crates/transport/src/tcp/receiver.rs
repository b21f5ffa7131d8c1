//! The receiving end: puts segments in order, acknowledges, echoes marks.
//!
//! Follows RFC 5681 section 4.2 (when to acknowledge), RFC 2018 (selective acknowledgements), RFC 3168 section 6.1.3
//! (ECN echo until CWR) and RFC 7323 section 4.3 (which timestamp to echo). For some
//! congestion controls it reports more:
//!
//! - DCTCP: ECE says whether the segments acknowledged were marked. When that changes, what is held back is
//!   acknowledged first, with the old state (RFC 8257 section 3.2).
//! - Prague: the number of marked packets so far, on every acknowledgement (RFC 9768 section 3.2.2; here all 32 bits).
//! - LEDBAT: the one-way delay of the last segment (RFC 6817 section 2.3).
//!
//! As Linux does it, on request: the first acknowledgements and those after a mark are not held back
//! ([`quick_acks`](TcpConfig::quick_acks), [`ack_marks`](TcpConfig::ack_marks)), nor those after a silence, a copy or a
//! write's end, and the others for as long as the pace of the data tells ([`adaptive_acks`](TcpConfig::adaptive_acks),
//! [`patience`](super::patience)); segments that arrive together are acknowledged together
//! ([`ack_merging`](TcpConfig::ack_merging)).
//!
//! Deviations: segments beyond the window are discarded whole; the SYN of an ECN connection is not marked as such, the
//! ends share their configuration.

use alloc::boxed::Box;
use alloc::vec::Vec;

use aqumen_units::{Bytes, Ecn, Instant, Span};

use super::congestion::Needs;
use super::patience::{self, Patience};
use super::scoreboard::Runs;
use super::{Ack, Feedback, SackBlocks, Segment, TcpConfig, Variant};

/// The receiving end of a connection.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// Payload delivered in order.
    delivered_bytes: u64,
    /// When an acknowledgement that is held back must leave; `Instant::MAX`: none is.
    ack_due: Instant,
    /// The timestamp to echo.
    echo: Instant,
    /// The next segment expected.
    next: u32,
    window: u32,
    /// ECE on every acknowledgement until a segment carries CWR.
    ece: bool,
    /// Segment 0 was a SYN, which delivers nothing.
    syn_seen: bool,
    /// So many acknowledgements are not to be held back.
    quick: u8,
    /// Most connections never need it.
    aside: Option<Box<Aside>>,
}

/// What arrived beyond `next`, and what is reported beside ECE.
#[derive(Clone, Debug, Default)]
struct Aside {
    early: Early,
    feedback: Feedback,
    /// ECE is to say which segments were marked (RFC 8257).
    each_mark: bool,
    /// With [`TcpConfig::adaptive_acks`].
    patience: Option<Patience>,
}

impl Aside {
    /// Whether it is needed when nothing is missing, too.
    fn lasts(&self) -> bool {
        self.each_mark || self.feedback != Feedback::None || self.patience.is_some()
    }
}

#[derive(Clone, Debug, Default)]
struct Early {
    runs: Runs,
    /// Segments to report runs of, the most recent arrival first (RFC 2018 section 4).
    recent: Vec<u32>,
    /// Payload of early segments that are not full, by number.
    short: Vec<(u32, u16)>,
}

impl Receiver {
    /// A receiver that has seen nothing.
    pub fn new(cfg: &TcpConfig) -> Self {
        let (feedback, each_mark) = match cfg.congestion.needs() {
            Needs::Nothing => (Feedback::None, false),
            Needs::EachMark => (Feedback::None, true),
            Needs::CountOfMarks => (Feedback::Marks(0), false),
            Needs::Delay => (Feedback::Delay(0), false),
        };
        let aside =
            Aside { early: Early::default(), feedback, each_mark, patience: cfg.adaptive_acks.then(Patience::new) };
        Receiver {
            delivered_bytes: 0,
            ack_due: Instant::MAX,
            echo: Instant::ZERO,
            next: 0,
            window: cfg.receive_window,
            ece: false,
            syn_seen: false,
            quick: cfg.quick_acks,
            aside: aside.lasts().then(|| Box::new(aside)),
        }
    }

    /// A segment arrived: the acknowledgement to send now, if any.
    pub fn on_segment(&mut self, cfg: &TcpConfig, now: Instant, segment: &Segment) -> Option<Ack> {
        if !self.is_next(segment) {
            return self.on_rare_segment(cfg, now, segment);
        }
        let held = (self.ack_due != Instant::MAX).then_some((self.ack_due, self.echo));
        self.hurry(cfg, now, segment);
        let ack = self.accept(cfg, segment);
        self.hold_back(cfg, now, segment, ack, held)
    }

    /// An acknowledgement in order: every second one leaves. `held`: when the one held back would have left, and what
    /// it would have echoed.
    #[inline(always)]
    fn hold_back(
        &mut self,
        cfg: &TcpConfig,
        now: Instant,
        segment: &Segment,
        ack: Ack,
        held: Option<(Instant, Instant)>,
    ) -> Option<Ack> {
        let Some(delay) = cfg.delayed_ack.filter(|_| !segment.syn) else { return Some(ack) };
        // RFC 7323 section 4.3: a delayed acknowledgement echoes the first segment it covers.
        self.echo = held.map_or(self.echo, |(_, echo)| echo);
        let (quick, echo) = (self.quick > 0, self.echo);
        if patience::ends_write(cfg, segment) || (quick || held.is_some()) && cfg.ack_merging == Span::ZERO {
            self.spend_quick();
            return Some(Ack { echo, ..ack });
        }
        let delay = self.patience().map_or(delay, |patience| patience.delay());
        // What arrives within `ack_merging` of the segment that calls for an acknowledgement is covered by it too.
        let wait = if quick || held.is_some() { cfg.ack_merging } else { delay };
        self.ack_due = held.map_or(Instant::MAX, |(due, _)| due).min(now + wait);
        None
    }

    fn patience(&mut self) -> Option<&mut Patience> {
        self.aside.as_mut()?.patience.as_mut()
    }

    /// An acknowledgement leaves.
    #[inline(always)]
    fn spend_quick(&mut self) {
        if self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0
                && let Some(patience) = self.patience()
            {
                patience.settle();
            }
        }
    }

    /// Linux acknowledges the first marked segment and the next at once, and the one that says that the window was
    /// reduced: the sender may have no more than one under way.
    #[inline(always)]
    fn hurry(&mut self, cfg: &TcpConfig, now: Instant, segment: &Segment) {
        let next = self.next;
        if let Some(patience) = self.patience() {
            let quick = patience.on_segment(cfg, now, segment, next);
            self.quick = self.quick.max(quick);
        }
        if cfg.ack_marks {
            if segment.ecn == Ecn::Ce && (!self.ece || segment.cwr) {
                self.quick = self.quick.max(2);
            } else if segment.cwr {
                self.quick = self.quick.max(1);
            }
        }
    }

    /// What it needs beside itself while something is missing, for a host that would have it at hand.
    #[inline(always)]
    pub fn kept_apart(&self) -> Option<&(impl Sized + use<>)> {
        self.aside.as_deref()
    }

    /// Whether `segment` is the next of an unbroken sequence, for [`accept`](Self::accept).
    #[inline(always)]
    pub fn is_next(&self, segment: &Segment) -> bool {
        segment.seq == self.next && self.aside.is_none() && self.window > 0
    }

    /// The next segment of an unbroken sequence arrived: the acknowledgement, for receivers that hold none back.
    #[inline(always)]
    pub fn accept(&mut self, cfg: &TcpConfig, segment: &Segment) -> Ack {
        debug_assert!(self.is_next(segment));
        self.follow_marks(segment);
        self.take_in_order(cfg, segment);
        self.acknowledge_in_order()
    }

    #[inline(always)]
    fn take_in_order(&mut self, cfg: &TcpConfig, segment: &Segment) {
        self.next += 1;
        self.deliver(cfg, segment.syn, segment.bytes);
        self.syn_seen |= segment.syn;
        self.echo = segment.sent_at;
    }

    /// A segment out of order, or any to a receiver that reports more than ECE.
    #[cold]
    fn on_rare_segment(&mut self, cfg: &TcpConfig, now: Instant, segment: &Segment) -> Option<Ack> {
        self.hurry(cfg, now, segment);
        let earlier = self.follow_feedback(now, segment);
        let in_order = segment.seq == self.next && self.window > 0;
        if !in_order || self.aside.as_ref().is_some_and(|aside| !aside.early.runs.is_empty()) {
            if cfg.adaptive_acks {
                self.spend_quick();
            }
            return Some(self.on_unusual(cfg, segment));
        }
        let held = (self.ack_due != Instant::MAX).then_some((self.ack_due, self.echo));
        self.take_in_order(cfg, segment);
        let ack = self.acknowledge();
        let ack = self.hold_back(cfg, now, segment, ack, held);
        earlier.or(ack)
    }

    /// Takes note of the marks and the delay of a segment. The acknowledgement is of what is held back, if it must not
    /// share ECE with this segment.
    fn follow_feedback(&mut self, now: Instant, segment: &Segment) -> Option<Ack> {
        let marked = segment.ecn == Ecn::Ce;
        match self.aside.as_deref_mut() {
            Some(Aside { each_mark: true, .. }) => {
                let changed = marked != self.ece && self.ack_due != Instant::MAX;
                let earlier = changed.then(|| self.acknowledge());
                self.ece = marked;
                return earlier;
            }
            Some(Aside { feedback: Feedback::Marks(count), .. }) => *count += u32::from(marked),
            Some(Aside { feedback: Feedback::Delay(delay), .. }) => {
                let nanos = now.saturating_since(segment.sent_at).as_nanos();
                *delay = (nanos / 1_000).min(u64::from(u32::MAX)) as u32;
                self.follow_marks(segment);
            }
            _ => self.follow_marks(segment),
        }
        None
    }

    /// ECE from the first mark until the sender says that it has reacted (RFC 3168 section 6.1.3).
    #[inline(always)]
    fn follow_marks(&mut self, segment: &Segment) {
        // Without branches, for marks come by chance.
        self.ece = (self.ece & !segment.cwr) | (segment.ecn == Ecn::Ce);
    }

    /// When [`on_timer`](Self::on_timer) is to be called; it changes with each segment.
    #[inline]
    pub fn next_timer(&self) -> Option<Instant> {
        (self.ack_due != Instant::MAX).then_some(self.ack_due)
    }

    /// The acknowledgement held back until now, if there is one. Late calls are fine, early and extra ones do nothing.
    pub fn on_timer(&mut self, now: Instant) -> Option<Ack> {
        (self.ack_due != Instant::MAX && now >= self.ack_due).then(|| {
            if let Some(patience) = self.patience() {
                patience.on_timer();
            }
            self.spend_quick();
            self.acknowledge()
        })
    }

    /// Segments delivered in order, the SYN not counted.
    pub fn delivered_segments(&self) -> u32 {
        self.next - u32::from(self.syn_seen)
    }

    /// Payload delivered in order.
    pub fn delivered_bytes(&self) -> Bytes {
        Bytes(self.delivered_bytes)
    }

    /// The application takes `window` more segments from now on (0: none). Returns the acknowledgement that tells the
    /// sender so, due when a closed window opens.
    pub fn set_window(&mut self, window: u32) -> Option<Ack> {
        let opens = self.window == 0 && window > 0;
        self.window = window;
        opens.then(|| self.acknowledge())
    }

    /// Nothing is missing: no blocks to look for.
    #[inline(always)]
    fn acknowledge_in_order(&mut self) -> Ack {
        self.ack_due = Instant::MAX;
        Ack {
            ack: self.next,
            window: self.window,
            ece: self.ece,
            echo: self.echo,
            sack: SackBlocks::EMPTY,
            feedback: Feedback::None,
        }
    }

    #[inline(never)]
    fn acknowledge(&mut self) -> Ack {
        let feedback = self.aside.as_ref().map_or(Feedback::None, |aside| aside.feedback);
        Ack { sack: self.sack_blocks(), feedback, ..self.acknowledge_in_order() }
    }

    #[inline]
    fn deliver(&mut self, cfg: &TcpConfig, syn: bool, wire_bytes: u16) {
        if !syn {
            self.delivered_bytes += u64::from(wire_bytes.saturating_sub(cfg.header_bytes));
        }
    }

    /// Everything but the next segment of an unbroken sequence; each is acknowledged at once (RFC 5681 section 4.2).
    #[cold]
    fn on_unusual(&mut self, cfg: &TcpConfig, segment: &Segment) -> Ack {
        let end = self.next.saturating_add(self.window);
        if segment.seq >= self.next && segment.seq < end {
            let early = &mut self.aside.get_or_insert_default().early;
            let new = early.runs.insert(segment.seq, segment.seq + 1) == 1;
            let full = segment.bytes == cfg.packet_bytes;
            if new && (segment.syn || !full) {
                let payload = if segment.syn { 0 } else { segment.bytes.saturating_sub(cfg.header_bytes) };
                early.short.push((segment.seq, payload));
            }
            if cfg.variant == Variant::Sack {
                early.recent.insert(0, segment.seq);
            }
            if segment.seq == self.next {
                // The segment that advances the left edge is the one to echo (RFC 7323 section 4.3 rule 2).
                self.echo = segment.sent_at;
                self.syn_seen |= segment.syn;
                self.advance(cfg);
            }
        }
        self.acknowledge()
    }

    /// Delivers the run that starts at `next`.
    fn advance(&mut self, cfg: &TcpConfig) {
        let Some(aside) = &mut self.aside else { return };
        let lasts = aside.lasts();
        let early = &mut aside.early;
        let Some((first, end)) = early.runs.run_with(self.next) else { return };
        let mut payload = u64::from(end - first) * u64::from(cfg.payload_bytes());
        early.short.retain(|&(seq, bytes)| {
            if seq < end {
                payload -= u64::from(cfg.payload_bytes());
                payload += u64::from(bytes);
            }
            seq >= end
        });
        self.delivered_bytes += payload;
        self.next = end;
        early.runs.forget_before(end);
        early.recent.retain(|&seq| seq >= end);
        if early.runs.is_empty() && !lasts {
            self.aside = None;
        }
    }

    /// RFC 2018 section 4: the run of the latest arrival first, then the runs reported most recently.
    fn sack_blocks(&mut self) -> SackBlocks {
        let mut blocks = SackBlocks::EMPTY;
        let Some(Aside { early, .. }) = self.aside.as_deref_mut() else { return blocks };
        let mut kept = Vec::with_capacity(early.recent.len().min(3));
        for &seq in &early.recent {
            let Some((first, end)) = early.runs.run_with(seq) else { continue };
            let reported = blocks.as_slice().iter().any(|&(from, _)| from == first);
            if !reported {
                if !blocks.push(first, end) {
                    break;
                }
                kept.push(seq);
            }
        }
        early.recent = kept;
        blocks
    }
}
