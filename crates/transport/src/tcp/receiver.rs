//! Receiving endpoint of TCP: reassembly, acknowledgements, echo of marks.
//!
//! Follows RFC 5681 section 4.2 (delayed acknowledgements), RFC 2018 (selective acknowledgements), RFC 3168 section
//! 6.1.3 (ECN echo until CWR) and RFC 7323 section 4.3 (timestamp echo). Some congestion controls need more feedback:
//!
//! - DCTCP: ECE tells whether the acknowledged segments were marked. A pending acknowledgement is sent with the old
//!   state before a change (RFC 8257 section 3.2).
//! - Prague: total number of marked packets on every acknowledgement (RFC 9768 section 3.2.2; here all 32 bits).
//! - LEDBAT: one-way delay of the last segment (RFC 6817 section 2.3).
//!
//! Options of Linux: immediate acknowledgements at the start ([`quick_acks`](TcpConfig::quick_acks)) and after marks
//! ([`ack_marks`](TcpConfig::ack_marks)); a delay that follows the gaps between segments, and immediate
//! acknowledgements after an idle period, a duplicate or the end of a write
//! ([`adaptive_acks`](TcpConfig::adaptive_acks), [`delayed_ack`](super::delayed_ack)); one acknowledgement for segments
//! that arrive together ([`ack_merging`](TcpConfig::ack_merging)).
//!
//! Deviations: segments beyond the window are discarded whole. The SYN does not negotiate ECN, since the endpoints
//! share their configuration.

use alloc::boxed::Box;
use alloc::vec::Vec;

use aqumen_units::{Bytes, Ecn, Instant, Span};

use super::congestion::RequiredFeedback;
use super::delayed_ack::{self, DelayedAck};
use super::{Ack, Feedback, PlainAck, SackBlocks, Segment, TcpConfig, Variant};
use crate::range_set::RangeSet;

/// Receiving endpoint of a connection.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// Payload delivered in order (bytes).
    delivered_bytes: u64,
    /// Due time of a delayed acknowledgement; `Instant::MAX`: none is pending.
    ack_due: Instant,
    /// Timestamp to echo.
    echo: Instant,
    /// Next segment expected.
    next: u32,
    window: u32,
    /// ECE on every acknowledgement until a segment carries CWR.
    ece: bool,
    /// Whether segment 0 was a SYN, which delivers nothing.
    syn_seen: bool,
    /// Number of quick (immediate) acknowledgements to come.
    quick_acks: u8,
    /// State that most connections do not need.
    extras: Option<Box<ReceiverExtras>>,
}

/// Receiver state for out-of-order segments and additional feedback.
#[derive(Clone, Debug, Default)]
struct ReceiverExtras {
    out_of_order: OutOfOrder,
    feedback: Feedback,
    /// Whether ECE reports the marks of each segment (RFC 8257).
    exact_ece: bool,
    /// Present with [`TcpConfig::adaptive_acks`].
    delayed_ack: Option<DelayedAck>,
}

impl ReceiverExtras {
    /// Whether the state is needed even while nothing is missing.
    fn is_permanent(&self) -> bool {
        self.exact_ece || self.feedback != Feedback::None || self.delayed_ack.is_some()
    }
}

#[derive(Clone, Debug, Default)]
struct OutOfOrder {
    ranges: RangeSet,
    /// Latest out-of-order arrivals, most recent first, for the order of SACK blocks (RFC 2018 section 4).
    recent: Vec<u32>,
    /// Payload of out-of-order segments that are not full, by sequence number.
    partial: Vec<(u32, u16)>,
}

impl Receiver {
    /// A receiver before the first segment.
    pub fn new(cfg: &TcpConfig) -> Self {
        let (feedback, exact_ece) = match cfg.congestion.required_feedback() {
            RequiredFeedback::None => (Feedback::None, false),
            RequiredFeedback::ExactEce => (Feedback::None, true),
            RequiredFeedback::MarkCount => (Feedback::Marks(0), false),
            RequiredFeedback::OneWayDelay => (Feedback::Delay(0), false),
        };
        let extras = ReceiverExtras {
            out_of_order: OutOfOrder::default(),
            feedback,
            exact_ece,
            delayed_ack: cfg.adaptive_acks.then(DelayedAck::new),
        };
        Receiver {
            delivered_bytes: 0,
            ack_due: Instant::MAX,
            echo: Instant::ZERO,
            next: 0,
            window: cfg.receive_window,
            ece: false,
            syn_seen: false,
            quick_acks: cfg.quick_acks,
            extras: extras.is_permanent().then(|| Box::new(extras)),
        }
    }

    /// Processes a segment; returns an acknowledgement to send at once.
    pub fn on_segment(&mut self, cfg: &TcpConfig, now: Instant, segment: &Segment) -> Option<Ack> {
        if !self.is_next(segment) {
            return self.on_slow_path(cfg, now, segment);
        }
        self.on_next(cfg, now, segment).map(Ack::from)
    }

    /// [`on_segment`](Self::on_segment) for a segment that [`is_next`](Self::is_next).
    #[inline(always)]
    pub fn on_next(&mut self, cfg: &TcpConfig, now: Instant, segment: &Segment) -> Option<PlainAck> {
        debug_assert!(self.is_next(segment));
        let pending = self.pending();
        self.request_quick_acks(cfg, now, segment);
        self.update_ece(segment);
        self.deliver_in_order(cfg, segment);
        self.ack_due = Instant::MAX;
        let acks = self.acknowledges(cfg, now, segment, pending);
        acks.then_some(PlainAck { ack: self.next, window: self.window, ece: self.ece, echo: self.echo })
    }

    /// Due time and echo of a delayed acknowledgement.
    #[inline(always)]
    fn pending(&self) -> Option<(Instant, Instant)> {
        (self.ack_due != Instant::MAX).then_some((self.ack_due, self.echo))
    }

    /// Whether a segment in order is acknowledged at once, as every second one is; otherwise its acknowledgement is
    /// delayed. `pending`: due time and echo of an earlier delayed one.
    #[inline(always)]
    fn acknowledges(
        &mut self,
        cfg: &TcpConfig,
        now: Instant,
        segment: &Segment,
        pending: Option<(Instant, Instant)>,
    ) -> bool {
        let Some(delay) = cfg.delayed_ack.filter(|_| !segment.syn) else { return true };
        // A delayed acknowledgement echoes the first segment it covers (RFC 7323 section 4.3).
        self.echo = pending.map_or(self.echo, |(_, echo)| echo);
        let is_quick = self.quick_acks > 0;
        if delayed_ack::ends_write(cfg, segment) || (is_quick || pending.is_some()) && cfg.ack_merging == Span::ZERO {
            self.count_quick_ack();
            return true;
        }
        let delay = self.delayed_ack().map_or(delay, |delayed_ack| delayed_ack.delay());
        // An acknowledgement also covers segments that arrive within `ack_merging` of its trigger.
        let wait = if is_quick || pending.is_some() { cfg.ack_merging } else { delay };
        self.ack_due = pending.map_or(Instant::MAX, |(due, _)| due).min(now + wait);
        false
    }

    fn delayed_ack(&mut self) -> Option<&mut DelayedAck> {
        self.extras.as_mut()?.delayed_ack.as_mut()
    }

    /// Counts down the quick acknowledgements.
    #[inline(always)]
    fn count_quick_ack(&mut self) {
        if self.quick_acks > 0 {
            self.quick_acks -= 1;
            if self.quick_acks == 0
                && let Some(delayed_ack) = self.delayed_ack()
            {
                delayed_ack.reset();
            }
        }
    }

    /// Requests quick acknowledgements as Linux does: for the first marked segment and the next, and for one with CWR,
    /// since the sender may have a single segment in flight.
    #[inline(always)]
    fn request_quick_acks(&mut self, cfg: &TcpConfig, now: Instant, segment: &Segment) {
        let next = self.next;
        if let Some(delayed_ack) = self.delayed_ack() {
            let quick_acks = delayed_ack.on_segment(cfg, now, segment, next);
            self.quick_acks = self.quick_acks.max(quick_acks);
        }
        if cfg.ack_marks {
            if segment.ecn == Ecn::Ce && (!self.ece || segment.cwr) {
                self.quick_acks = self.quick_acks.max(2);
            } else if segment.cwr {
                self.quick_acks = self.quick_acks.max(1);
            }
        }
    }

    /// Separately allocated state, which a host may prefetch.
    #[inline(always)]
    pub fn extras(&self) -> Option<&(impl Sized + use<>)> {
        self.extras.as_deref()
    }

    /// Whether `segment` can be passed to [`accept`](Self::accept): the next one, with nothing missing.
    #[inline(always)]
    pub fn is_next(&self, segment: &Segment) -> bool {
        segment.seq == self.next && self.extras.is_none() && self.window > 0
    }

    /// Accepts the next segment in order; returns the acknowledgement, for receivers that delay none.
    #[inline(always)]
    pub fn accept(&mut self, cfg: &TcpConfig, segment: &Segment) -> Ack {
        debug_assert!(self.is_next(segment));
        self.update_ece(segment);
        self.deliver_in_order(cfg, segment);
        self.acknowledge_in_order()
    }

    #[inline(always)]
    fn deliver_in_order(&mut self, cfg: &TcpConfig, segment: &Segment) {
        self.next += 1;
        self.deliver(cfg, segment.syn, segment.bytes);
        self.syn_seen |= segment.syn;
        self.echo = segment.sent_at;
    }

    /// Processes a segment out of order, or any segment of a receiver with additional feedback.
    #[cold]
    fn on_slow_path(&mut self, cfg: &TcpConfig, now: Instant, segment: &Segment) -> Option<Ack> {
        self.request_quick_acks(cfg, now, segment);
        let earlier = self.update_feedback(now, segment);
        let in_order = segment.seq == self.next && self.window > 0;
        if !in_order || self.extras.as_ref().is_some_and(|extras| !extras.out_of_order.ranges.is_empty()) {
            if cfg.adaptive_acks {
                self.count_quick_ack();
            }
            return Some(self.on_out_of_order(cfg, segment));
        }
        let pending = self.pending();
        self.deliver_in_order(cfg, segment);
        let ack = self.acknowledge();
        let ack = self.acknowledges(cfg, now, segment, pending).then_some(Ack { echo: self.echo, ..ack });
        earlier.or(ack)
    }

    /// Records mark and delay of a segment. Returns the pending acknowledgement if it must not share ECE with this
    /// segment.
    fn update_feedback(&mut self, now: Instant, segment: &Segment) -> Option<Ack> {
        let marked = segment.ecn == Ecn::Ce;
        match self.extras.as_deref_mut() {
            Some(ReceiverExtras { exact_ece: true, .. }) => {
                let changed = marked != self.ece && self.ack_due != Instant::MAX;
                let earlier = changed.then(|| self.acknowledge());
                self.ece = marked;
                return earlier;
            }
            Some(ReceiverExtras { feedback: Feedback::Marks(count), .. }) => *count += u32::from(marked),
            Some(ReceiverExtras { feedback: Feedback::Delay(delay), .. }) => {
                let nanos = now.saturating_since(segment.sent_at).as_nanos();
                *delay = (nanos / 1_000).min(u64::from(u32::MAX)) as u32;
                self.update_ece(segment);
            }
            _ => self.update_ece(segment),
        }
        None
    }

    /// Sets ECE from the first mark until CWR (RFC 3168 section 6.1.3).
    #[inline(always)]
    fn update_ece(&mut self, segment: &Segment) {
        // Without branches, since marks are random.
        self.ece = (self.ece & !segment.cwr) | (segment.ecn == Ecn::Ce);
    }

    /// Time at which to call [`on_timer`](Self::on_timer); each segment may change it.
    #[inline]
    pub fn next_timer(&self) -> Option<Instant> {
        (self.ack_due != Instant::MAX).then_some(self.ack_due)
    }

    /// Timer callback: the delayed acknowledgement, if one is due. Late calls are allowed; early and additional calls
    /// have no effect.
    pub fn on_timer(&mut self, now: Instant) -> Option<Ack> {
        (self.ack_due != Instant::MAX && now >= self.ack_due).then(|| {
            if let Some(delayed_ack) = self.delayed_ack() {
                delayed_ack.on_timer();
            }
            self.count_quick_ack();
            self.acknowledge()
        })
    }

    /// Segments delivered in order, without the SYN.
    pub fn delivered_segments(&self) -> u32 {
        self.next - u32::from(self.syn_seen)
    }

    /// Payload delivered in order.
    pub fn delivered_bytes(&self) -> Bytes {
        Bytes(self.delivered_bytes)
    }

    /// Sets the receive window (segments; 0: closed). Returns the acknowledgement that announces the opening of a
    /// closed window.
    pub fn set_window(&mut self, window: u32) -> Option<Ack> {
        let opens = self.window == 0 && window > 0;
        self.window = window;
        opens.then(|| self.acknowledge())
    }

    /// Acknowledgement while nothing is missing, without SACK blocks.
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
        let feedback = self.extras.as_ref().map_or(Feedback::None, |extras| extras.feedback);
        Ack { sack: self.sack_blocks(), feedback, ..self.acknowledge_in_order() }
    }

    #[inline]
    fn deliver(&mut self, cfg: &TcpConfig, syn: bool, wire_bytes: u16) {
        if !syn {
            self.delivered_bytes += u64::from(wire_bytes.saturating_sub(cfg.header_bytes));
        }
    }

    /// Processes any segment other than the next in order; each is acknowledged at once (RFC 5681 section 4.2).
    #[cold]
    fn on_out_of_order(&mut self, cfg: &TcpConfig, segment: &Segment) -> Ack {
        let end = self.next.saturating_add(self.window);
        if segment.seq >= self.next && segment.seq < end {
            let out_of_order = &mut self.extras.get_or_insert_default().out_of_order;
            let new = out_of_order.ranges.insert(segment.seq, segment.seq + 1) == 1;
            let full = segment.bytes == cfg.packet_bytes;
            if new && (segment.syn || !full) {
                let payload = if segment.syn { 0 } else { segment.bytes.saturating_sub(cfg.header_bytes) };
                out_of_order.partial.push((segment.seq, payload));
            }
            if cfg.variant == Variant::Sack {
                out_of_order.recent.insert(0, segment.seq);
            }
            if segment.seq == self.next {
                // The segment that advances the left edge is echoed (RFC 7323 section 4.3 rule 2).
                self.echo = segment.sent_at;
                self.syn_seen |= segment.syn;
                self.advance(cfg);
            }
        }
        self.acknowledge()
    }

    /// Delivers the range that starts at `next`.
    fn advance(&mut self, cfg: &TcpConfig) {
        let Some(extras) = &mut self.extras else { return };
        let is_permanent = extras.is_permanent();
        let out_of_order = &mut extras.out_of_order;
        let Some((first, end)) = out_of_order.ranges.range_containing(self.next) else { return };
        let mut payload = u64::from(end - first) * u64::from(cfg.payload_bytes());
        out_of_order.partial.retain(|&(seq, bytes)| {
            if seq < end {
                payload -= u64::from(cfg.payload_bytes());
                payload += u64::from(bytes);
            }
            seq >= end
        });
        self.delivered_bytes += payload;
        self.next = end;
        out_of_order.ranges.remove_before(end);
        out_of_order.recent.retain(|&seq| seq >= end);
        if out_of_order.ranges.is_empty() && !is_permanent {
            self.extras = None;
        }
    }

    /// SACK blocks: the range of the latest arrival first, then the most recently reported ones (RFC 2018 section 4).
    fn sack_blocks(&mut self) -> SackBlocks {
        let mut blocks = SackBlocks::EMPTY;
        let Some(ReceiverExtras { out_of_order, .. }) = self.extras.as_deref_mut() else { return blocks };
        let mut recent = Vec::with_capacity(out_of_order.recent.len().min(3));
        for &seq in &out_of_order.recent {
            let Some((first, end)) = out_of_order.ranges.range_containing(seq) else { continue };
            let reported = blocks.as_slice().iter().any(|&(from, _)| from == first);
            if !reported {
                if !blocks.push(first, end) {
                    break;
                }
                recent.push(seq);
            }
        }
        out_of_order.recent = recent;
        blocks
    }
}
