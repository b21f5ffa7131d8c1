//! Source of RTP: encoder, pacer and rate control.

use alloc::collections::VecDeque;

use aqumen_units::{Ecn, Instant, Span};

use super::control::RateControl;
use super::{CLOCK_HZ, Control, Media, ReceiverReport, RtpConfig, SenderReport, ticks};
use crate::{Body, Delivery, Endpoint, Message, Packet, Stats};

/// Source of RTP.
#[derive(Clone, Debug)]
pub struct RtpSource {
    cfg: RtpConfig,
    control: RateControl,
    frames: VecDeque<Frame>,
    /// Due time of the last media packet; no later packet is due before it.
    due: Instant,
    encoder: Encoder,
    /// Sequence number of the next media packet.
    seq: u32,
    /// Media sent (bytes).
    octets: u32,
    /// Smoothed round trip.
    rtt: Option<Span>,
    /// Time of the next sender report; `None`: no media sent yet.
    report_at: Option<Instant>,
    /// Whether media was sent since the last sender report.
    active: bool,
    /// Time of the last media packet.
    last_media: Option<Instant>,
    /// Time at which the rate is halved for lack of reports.
    silence_at: Option<Instant>,
    stats: Stats,
}

/// A frame with packets still to send.
#[derive(Clone, Copy, Debug)]
struct Frame {
    message: Message,
    offset: u32,
    /// Number of its packets, and of those sent.
    packets: u32,
    sent: u32,
}

/// Generator of frames.
#[derive(Clone, Copy, Debug, Default)]
struct Encoder {
    /// Time of the next frame; `None`: the encoder is off.
    next: Option<Instant>,
    frame_count: u32,
    /// Remainder of whole bytes or packets, carried over to the next frame (bit).
    remainder: f64,
}

impl RtpSource {
    /// An idle source.
    pub fn new(cfg: &RtpConfig) -> Self {
        RtpSource {
            cfg: *cfg,
            control: RateControl::new(cfg),
            frames: VecDeque::new(),
            due: Instant::ZERO,
            encoder: Encoder::default(),
            seq: 0,
            octets: 0,
            rtt: None,
            report_at: None,
            active: false,
            last_media: None,
            silence_at: None,
            stats: Stats::default(),
        }
    }

    /// Smoothed round-trip time from RTCP; `None` before the first sample.
    pub fn smoothed_rtt(&self) -> Option<Span> {
        self.rtt
    }

    /// Encoder rate (bit/s).
    pub fn rate(&self) -> f64 {
        self.control.rate()
    }

    /// Due time of the next media packet: the packets of a frame are spread evenly over the frame period.
    fn media_due(&self) -> Option<Instant> {
        let frame = self.frames.front()?;
        let spread = self.cfg.frame_interval * u64::from(frame.sent) / u64::from(frame.packets);
        Some(frame.message.created_at.saturating_add(spread).max(self.due))
    }

    fn encode(&mut self, now: Instant) {
        while let Some(at) = self.encoder.next.filter(|&at| at <= now) {
            let bits = self.control.rate() * self.cfg.frame_interval.as_secs_f64() + self.encoder.remainder;
            let part = if self.cfg.whole_packets { u32::from(self.cfg.payload_bytes()) } else { 1 };
            let bytes = (bits / 8.0) as u32 / part * part;
            self.encoder.remainder = bits - 8.0 * f64::from(bytes);
            self.encoder.next = Some(at + self.cfg.frame_interval);
            if bytes == 0 && self.cfg.whole_packets {
                continue;
            }
            let message = Message { bytes, number: self.encoder.frame_count, created_at: at };
            self.encoder.frame_count = self.encoder.frame_count.wrapping_add(1);
            self.queue(message);
        }
    }

    fn queue(&mut self, message: Message) {
        let packets = message.bytes.div_ceil(u32::from(self.cfg.payload_bytes())).max(1);
        self.frames.push_back(Frame { message, offset: 0, packets, sent: 0 });
    }

    fn on_report(&mut self, now: Instant, report: &ReceiverReport) {
        if report.lsr != 0 {
            // RFC 3550 section 6.4.1: A - LSR - DLSR, modulo 2^16 seconds.
            let rtt = ticks(now.as_nanos(), 1 << 16).wrapping_sub(report.lsr).wrapping_sub(report.dlsr);
            // Clock rounding may make a short round trip negative.
            let rtt = rtt.cast_signed().max(0) as u64;
            let rtt = Span::from_nanos(rtt * 1_000_000_000 / (1 << 16));
            self.stats.rtt_samples += 1;
            self.stats.rtt_sum += rtt;
            // RFC 5348 section 4.3: q = 0.9.
            self.rtt =
                Some(self.rtt.map_or(rtt, |old| Span::from_nanos(old.as_nanos() / 10 * 9 + rtt.as_nanos() / 10)));
        }
        self.control.on_report(&self.cfg, now, self.rtt, report);
        self.expect_report(now);
    }

    fn expect_report(&mut self, now: Instant) {
        let rtt = self.rtt.unwrap_or(Span::from_millis(500));
        self.silence_at = Some(now.saturating_add(rtt.saturating_mul(4).max(self.cfg.report_interval * 2)));
    }

    fn packet(&mut self, now: Instant, bytes: u16, ecn: Ecn, body: Body) -> Packet {
        let seq = self.stats.sent as u32;
        self.stats.sent += 1;
        Packet { bytes, ecn, seq, sent_at: now, body }
    }

    fn sender_report(&mut self, now: Instant) -> Option<Packet> {
        if self.report_at.is_none_or(|due| now < due) {
            return None;
        }
        self.report_at = self.active.then(|| now + self.cfg.sender_report_interval);
        if !core::mem::take(&mut self.active) {
            return None;
        }
        // A timestamp of zero means none.
        let ntp = ticks(now.as_nanos(), 1 << 16).max(1);
        let timestamp = ticks(now.as_nanos(), CLOCK_HZ);
        let report = SenderReport { ntp, timestamp, packets: self.seq, octets: self.octets };
        Some(self.packet(now, REPORT_BYTES, Ecn::NotEct, Body::SenderReport(report)))
    }

    fn media(&mut self, now: Instant) -> Option<Packet> {
        self.due = self.media_due().filter(|&due| due <= now)?;
        let frame = self.frames.front_mut()?;
        let payload = (frame.message.bytes - frame.offset).min(u32::from(self.cfg.payload_bytes())) as u16;
        let media = Media {
            seq: self.seq,
            timestamp: ticks(frame.message.created_at.as_nanos(), CLOCK_HZ),
            message: frame.message,
            offset: frame.offset,
            payload,
            rtt_us: self.rtt.map_or(0, |rtt| (rtt.as_nanos() / 1_000).min(u64::from(u32::MAX)) as u32),
        };
        frame.offset += u32::from(payload);
        frame.sent += 1;
        if frame.offset == frame.message.bytes {
            self.frames.pop_front();
        }
        self.seq = self.seq.wrapping_add(1);
        self.octets = self.octets.wrapping_add(u32::from(payload));
        self.active = true;
        self.last_media = Some(now);
        self.report_at.get_or_insert(now);
        if self.silence_at.is_none() {
            self.expect_report(now);
        }
        let ecn = if self.cfg.ecn { Ecn::Ect0 } else { Ecn::NotEct };
        Some(self.packet(now, payload + self.cfg.header_bytes, ecn, Body::Media(media)))
    }
}

impl Endpoint for RtpSource {
    fn start(&mut self, now: Instant) {
        self.encoder.next.get_or_insert(now);
        self.encode(now);
    }

    fn stop(&mut self, _now: Instant) {
        self.encoder.next = None;
    }

    fn write(&mut self, _now: Instant, message: Message) {
        self.queue(message);
    }

    fn on_packet(&mut self, now: Instant, packet: &Packet) {
        if let Body::Report(report) = &packet.body {
            self.on_report(now, report);
        }
    }

    fn on_timer(&mut self, now: Instant) {
        self.encode(now);
        if self.silence_at.take_if(|due| now >= *due).is_some()
            && self.last_media.is_some_and(|at| now.saturating_since(at) < self.cfg.report_interval * 2)
        {
            self.control.on_silence(&self.cfg);
            self.expect_report(now);
        }
    }

    fn next_timer(&self) -> Option<Instant> {
        [self.encoder.next, self.media_due(), self.report_at, self.silence_at].into_iter().flatten().min()
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        self.media(now).or_else(|| self.sender_report(now))
    }

    fn stats(&self) -> Stats {
        self.stats
    }

    fn poll_delivery(&mut self) -> Option<Delivery> {
        None
    }

    fn rate_bps(&self) -> Option<f64> {
        (self.cfg.control != Control::Fixed).then(|| self.control.rate())
    }

    fn is_idle(&self) -> bool {
        self.frames.is_empty() && self.encoder.next.is_none()
    }
}

/// IPv4, UDP, RTCP header with SSRC, sender information (bytes).
const REPORT_BYTES: u16 = 20 + 8 + 8 + 20;
