//! Sink of RTP: delivers frames and sends reports.

use alloc::collections::VecDeque;

use aqumen_units::{Ecn, Instant};

use super::reception::ReceiverStats;
use super::tfrc::LossHistory;
use super::{Control, Feedback, Media, REPORT_BYTES, ReceiverReport, RtpConfig, nada, ticks};
use crate::{Body, Delivery, Endpoint, Message, Packet, Stats};

/// Sink of RTP.
#[derive(Clone, Debug)]
pub struct RtpSink {
    cfg: RtpConfig,
    reception: ReceiverStats,
    losses: LossHistory,
    nada: nada::Receiver,
    /// Timestamp of the last sender report, and its arrival time.
    sender_report: Option<(u32, Instant)>,
    /// Time of the next report; `None`: no media since the last.
    report_at: Option<Instant>,
    report_now: bool,
    /// Time of the last report (or of the first media), and media bytes since.
    reported_at: Instant,
    bytes: u64,
    /// Receive rate in the last report (bit/s).
    reported_rate: f64,
    /// The incomplete frame, and its bytes that arrived.
    frame: Option<(Message, u32)>,
    frames: VecDeque<Delivery>,
    stats: Stats,
}

impl RtpSink {
    /// A sink before the first packet.
    pub fn new(cfg: &RtpConfig) -> Self {
        RtpSink {
            cfg: *cfg,
            reception: ReceiverStats::default(),
            losses: LossHistory::default(),
            nada: nada::Receiver::new(),
            sender_report: None,
            report_at: None,
            report_now: false,
            reported_at: Instant::ZERO,
            bytes: 0,
            reported_rate: 0.0,
            frame: None,
            frames: VecDeque::new(),
            stats: Stats::default(),
        }
    }

    fn on_media(&mut self, now: Instant, packet: &Packet, media: &Media) {
        if self.report_at.is_none() {
            self.report_at = Some(now + self.cfg.report_interval);
            self.reported_at = now;
        }
        let next = self.reception.highest().map_or(media.seq, |highest| highest.saturating_add(1));
        self.reception.on_media(now, packet.ecn, media);
        let lost = media.seq.saturating_sub(next);
        match self.cfg.control {
            // A mark is a loss (RFC 5348 section 5.2).
            Control::Tfrc if lost > 0 || packet.ecn == Ecn::Ce => {
                let rate = self.receive_rate(now);
                self.report_now |= self.losses.on_loss(&self.cfg, now, next.min(media.seq), media, rate);
            }
            Control::Nada => self.nada.on_media(now, packet.sent_at, packet.ecn, media, lost),
            _ => {}
        }
        self.bytes += u64::from(media.payload);
        if media.seq >= next {
            self.assemble(now, media);
        }
    }

    /// Adds a packet to its frame. Frames do not overlap: a packet of the next frame ends the previous one.
    fn assemble(&mut self, now: Instant, media: &Media) {
        if let Some((message, arrived)) = self.frame.take_if(|(message, _)| *message != media.message) {
            self.deliver(now, message, arrived);
        }
        let arrived = self.frame.map_or(0, |(_, arrived)| arrived).saturating_add(u32::from(media.payload));
        let end = media.offset.saturating_add(u32::from(media.payload));
        self.frame = Some((media.message, arrived));
        if end >= media.message.bytes {
            self.frame = None;
            self.deliver(now, media.message, arrived);
        }
    }

    fn deliver(&mut self, now: Instant, message: Message, arrived: u32) {
        let bytes = arrived.min(message.bytes);
        self.stats.delivered_bytes += u64::from(bytes);
        self.frames.push_back(Delivery { message, complete_at: now, bytes });
    }

    /// Receive rate since the last report (bit/s), or the reported rate shortly after a report.
    fn receive_rate(&self, now: Instant) -> f64 {
        let elapsed = now.saturating_since(self.reported_at);
        if elapsed * 2 < self.cfg.report_interval {
            return self.reported_rate;
        }
        8.0 * self.bytes as f64 / elapsed.as_secs_f64()
    }

    fn report(&mut self, now: Instant) -> ReceiverReport {
        let highest = self.reception.highest().unwrap_or(0);
        let receive_rate = self.receive_rate(now);
        self.report_now = false;
        self.reported_rate = receive_rate;
        self.reported_at = now;
        self.report_at = (self.bytes > 0).then(|| now + self.cfg.report_interval);
        self.bytes = 0;
        let (fraction_lost, fraction_marked) = self.reception.fractions();
        let since = |at: Instant| ticks(now.saturating_since(at).as_nanos(), 1 << 16);
        ReceiverReport {
            fraction_lost,
            fraction_marked,
            cumulative_lost: self.reception.cumulative_lost(),
            highest,
            jitter: self.reception.jitter(),
            lsr: self.sender_report.map_or(0, |(ntp, _)| ntp),
            dlsr: self.sender_report.map_or(0, |(_, at)| since(at)),
            feedback: match self.cfg.control {
                Control::Fixed | Control::Aaqm => Feedback::None,
                Control::Tfrc => Feedback::Tfrc { loss_event_rate: self.losses.loss_event_rate(highest), receive_rate },
                Control::Nada => self.nada.feedback(now, highest),
            },
        }
    }
}

impl Endpoint for RtpSink {
    fn write(&mut self, _now: Instant, _message: Message) {}

    fn on_packet(&mut self, now: Instant, packet: &Packet) {
        match &packet.body {
            Body::Media(media) => self.on_media(now, packet, media),
            Body::SenderReport(report) => self.sender_report = Some((report.ntp, now)),
            _ => {}
        }
    }

    fn on_timer(&mut self, now: Instant) {
        if self.report_at.is_some_and(|due| now >= due) {
            // Without new media, reports stop until media arrives.
            self.report_now = self.bytes > 0;
            self.report_at = None;
        }
    }

    fn next_timer(&self) -> Option<Instant> {
        self.report_at
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        if !self.report_now {
            return None;
        }
        let report = self.report(now);
        let seq = self.stats.sent as u32;
        self.stats.sent += 1;
        let bytes = REPORT_BYTES + if report.feedback == Feedback::None { 0 } else { FEEDBACK_BYTES };
        Some(Packet { bytes, ecn: Ecn::NotEct, seq, sent_at: now, body: Body::Report(report) })
    }

    fn stats(&self) -> Stats {
        self.stats
    }

    fn poll_delivery(&mut self) -> Option<Delivery> {
        self.frames.pop_front()
    }
}

/// Size of the rate-control feedback: three numbers of 32 bits.
const FEEDBACK_BYTES: u16 = 12;
