//! Sending endpoint of an association.
//!
//! ```text
//!   idle --write--> INIT sent --INIT ACK--> COOKIE ECHO sent --COOKIE ACK--> open
//! ```

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use aqumen_units::{Ecn, Instant, Span};

use super::chunks::Outstanding;
use super::congestion::Window;
use super::rto::Rto;
use super::{CHUNK_HEADER, Data, Sack, SctpConfig, Setup};
use crate::{Body, Delivery, Endpoint, Message, Packet, Stats};

/// Sending endpoint of an association.
#[derive(Clone, Debug)]
pub struct SctpSource {
    cfg: SctpConfig,
    phase: Phase,
    queue: VecDeque<QueuedMessage>,
    /// Bytes of the first queued message that have been sent.
    offset: u32,
    /// Messages accepted in each stream.
    accepted: Vec<u32>,
    /// Endless transfer, and the number of messages it has generated.
    endless: bool,
    generated: u32,
    outstanding: Outstanding,
    window: Window,
    rto: Rto,
    /// Expiry of the retransmission timer.
    deadline: Option<Instant>,
    /// TSN being timed, and its sending time: one at a time (rule C4), never a retransmission (C5).
    timed: Option<(u32, Instant)>,
    /// Receiver window beyond the cumulative TSN (chunk bytes).
    peer_window: u32,
    /// Packets that may still be sent in response to the last event.
    burst: u8,
    fast: FastRetransmit,
    /// Mark to acknowledge with CWR on the next chunk.
    cwr: Option<u32>,
    /// Sending time of the last new chunk.
    last_sent: Option<Instant>,
    stats: Stats,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No data written yet.
    Idle,
    /// Handshake message to send or sent, with its sending time, and whether it was retransmitted.
    SettingUp {
        message: Setup,
        sent: Option<Instant>,
        retransmitted: bool,
    },
    Open,
}

/// Retransmission allowed by a SACK that reports losses (section 7.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FastRetransmit {
    /// None reported: retransmissions follow the congestion window.
    Inactive,
    /// One packet, regardless of the window.
    Due,
    /// The packet has been sent; further ones wait for the next SACK.
    Sent,
}

#[derive(Clone, Copy, Debug)]
struct QueuedMessage {
    message: Message,
    stream: u16,
    ssn: u32,
}

/// Last TSN of an association.
const LAST_TSN: u32 = u32::MAX - 2;

impl SctpSource {
    /// An idle source.
    pub fn new(cfg: &SctpConfig) -> Self {
        SctpSource {
            cfg: *cfg,
            phase: Phase::Idle,
            queue: VecDeque::new(),
            offset: 0,
            accepted: vec![0; usize::from(cfg.streams)],
            endless: false,
            generated: 0,
            outstanding: Outstanding::new(1),
            window: Window::new(cfg),
            rto: Rto::new(cfg),
            deadline: None,
            timed: None,
            peer_window: cfg.receive_window_bytes,
            burst: 0,
            fast: FastRetransmit::Inactive,
            cwr: None,
            last_sent: None,
            stats: Stats::default(),
        }
    }

    /// Congestion window (chunk bytes).
    pub fn cwnd(&self) -> u32 {
        self.window.cwnd
    }

    /// Slow-start threshold (chunk bytes).
    pub fn ssthresh(&self) -> u32 {
        self.window.ssthresh
    }

    /// Bytes acknowledged since the last growth in congestion avoidance (chunk bytes).
    pub fn partial_bytes_acked(&self) -> u32 {
        self.window.partial
    }

    /// Data in the network (chunk bytes).
    pub fn flight(&self) -> u32 {
        self.outstanding.flight()
    }

    /// Whether fast recovery is in progress.
    pub fn in_recovery(&self) -> bool {
        self.window.exit.is_some()
    }

    /// Retransmission timeout of the next chunk.
    pub fn retransmission_timeout(&self) -> Span {
        self.rto.timeout()
    }

    /// Prepares to send after a pause or at the start.
    fn prepare(&mut self, now: Instant) {
        self.burst = self.full_burst();
        if self.phase == Phase::Idle {
            self.phase = if self.cfg.handshake {
                Phase::SettingUp { message: Setup::Init, sent: None, retransmitted: false }
            } else {
                Phase::Open
            };
        } else if let Some(sent) = self.last_sent.filter(|_| self.is_idle()) {
            let idle = now.saturating_since(sent).as_nanos() / self.rto.timeout().as_nanos().max(1);
            self.window.on_idle(idle);
        }
    }

    fn full_burst(&self) -> u8 {
        if self.cfg.max_burst == 0 { u8::MAX } else { self.cfg.max_burst }
    }

    fn accept(&mut self, message: Message) -> QueuedMessage {
        let stream = (message.number % u32::from(self.cfg.streams)) as u16;
        let accepted = &mut self.accepted[usize::from(stream)];
        let ssn = *accepted;
        *accepted += 1;
        QueuedMessage { message, stream, ssn }
    }

    fn on_setup(&mut self, now: Instant, answer: Setup) {
        let Phase::SettingUp { message, sent: Some(sent), retransmitted } = self.phase else { return };
        self.phase = match (message, answer) {
            (Setup::Init, Setup::InitAck) => {
                Phase::SettingUp { message: Setup::CookieEcho, sent: None, retransmitted: false }
            }
            (Setup::CookieEcho, Setup::CookieAck) => Phase::Open,
            _ => return,
        };
        self.deadline = None;
        if !retransmitted {
            self.measure(now.saturating_since(sent));
        }
    }

    fn measure(&mut self, rtt: Span) {
        self.rto.sample(&self.cfg, rtt);
        self.stats.rtt_samples += 1;
        self.stats.rtt_sum += rtt;
    }

    fn on_sack(&mut self, now: Instant, sack: &Sack) {
        let flight = self.outstanding.flight();
        let Some(outcome) = self.outstanding.on_sack(sack, self.window.exit.is_some()) else { return };
        if let Some((tsn, sent)) = self.timed
            && self.outstanding.has_arrived(tsn)
        {
            self.timed = None;
            self.measure(now.saturating_since(sent));
        }
        if outcome.advanced {
            self.window.on_advance(sack.cumulative, outcome.acked, flight);
            // Rules R2 and R3.
            self.deadline = (!self.outstanding.is_empty()).then(|| now + self.rto.timeout());
        }
        if self.outstanding.is_empty() {
            self.window.on_all_acknowledged();
        }
        if self.cfg.burst_after_repair && !outcome.repaired {
            self.burst = u8::MAX;
        }
        if let Some(highest) = outcome.lost {
            self.window.on_fast_retransmit(highest, self.outstanding.next());
            self.fast = FastRetransmit::Due;
            if outcome.first_lost {
                self.deadline = Some(now + self.rto.timeout());
            }
        }
        self.peer_window = sack.window;
        if let Some(tsn) = sack.marked.filter(|&tsn| self.cfg.ecn && tsn < self.outstanding.next()) {
            self.window.on_mark(tsn, self.outstanding.next());
            self.cwr = Some(tsn);
        }
    }

    /// Next retransmission, if allowed.
    fn resend(&mut self) -> Option<Data> {
        match self.fast {
            FastRetransmit::Due => self.fast = FastRetransmit::Sent,
            FastRetransmit::Sent => return None,
            FastRetransmit::Inactive if self.outstanding.flight() >= self.window.cwnd || self.burst == 0 => {
                return None;
            }
            FastRetransmit::Inactive => self.count_burst(),
        }
        let data = self.outstanding.resend()?;
        if self.timed.is_some_and(|(tsn, _)| tsn == data.tsn) {
            self.timed = None;
        }
        self.stats.retransmitted += 1;
        Some(data)
    }

    /// Next new chunk, if allowed (section 6.1 rules A and B).
    fn send_new(&mut self, now: Instant) -> Option<Data> {
        let flight = self.outstanding.flight();
        if self.burst == 0 || flight >= self.window.cwnd || self.outstanding.next() > LAST_TSN {
            return None;
        }
        if self.queue.is_empty() && self.endless {
            let bytes = u32::from(self.cfg.payload_bytes());
            let next = self.accept(Message { bytes, number: self.generated, created_at: now });
            self.generated = self.generated.wrapping_add(1);
            self.queue.push_back(next);
        }
        let next = *self.queue.front()?;
        let payload = (next.message.bytes - self.offset).min(u32::from(self.cfg.payload_bytes())) as u16;
        let bytes = u32::from(payload) + u32::from(CHUNK_HEADER);
        // One chunk probes a closed window.
        if flight > 0 && self.peer_window.saturating_sub(flight) < bytes {
            return None;
        }
        let tsn = self.outstanding.next();
        let data = Data {
            tsn,
            ssn: next.ssn,
            stream: next.stream,
            message: next.message,
            offset: self.offset,
            payload,
            cwr: self.cwr.take(),
        };
        self.offset += u32::from(payload);
        if self.offset == next.message.bytes {
            self.queue.pop_front();
            self.offset = 0;
        }
        self.count_burst();
        self.outstanding.push(Data { cwr: None, ..data });
        self.timed.get_or_insert((tsn, now));
        self.last_sent = Some(now);
        Some(data)
    }

    fn count_burst(&mut self) {
        if self.cfg.max_burst > 0 {
            self.burst -= 1;
        }
    }

    fn packet(&mut self, now: Instant, bytes: u16, ecn: Ecn, body: Body) -> Packet {
        let seq = self.stats.sent as u32;
        self.stats.sent += 1;
        Packet { bytes, ecn, seq, sent_at: now, body }
    }
}

impl Endpoint for SctpSource {
    fn start(&mut self, now: Instant) {
        self.prepare(now);
        self.endless = true;
    }

    fn stop(&mut self, _now: Instant) {
        self.endless = false;
    }

    fn write(&mut self, now: Instant, message: Message) {
        self.prepare(now);
        let next = self.accept(message);
        self.queue.push_back(next);
    }

    fn on_packet(&mut self, now: Instant, packet: &Packet) {
        self.burst = self.full_burst();
        self.fast = FastRetransmit::Inactive;
        match &packet.body {
            Body::Setup(answer) => self.on_setup(now, *answer),
            Body::Sack(sack) if self.phase == Phase::Open => self.on_sack(now, sack),
            _ => {}
        }
    }

    fn on_timer(&mut self, now: Instant) {
        if self.deadline.is_none_or(|due| now < due) {
            return;
        }
        self.burst = self.full_burst();
        self.fast = FastRetransmit::Inactive;
        self.stats.timeouts += 1;
        self.rto.back_off(&self.cfg);
        self.deadline = None;
        match &mut self.phase {
            Phase::SettingUp { sent, retransmitted, .. } => {
                *sent = None;
                *retransmitted = true;
            }
            _ => {
                self.window.on_timeout(self.outstanding.next());
                self.outstanding.lose_all();
                self.timed = None;
            }
        }
    }

    fn next_timer(&self) -> Option<Instant> {
        self.deadline
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        match &mut self.phase {
            Phase::Idle => None,
            Phase::SettingUp { message, sent, .. } => {
                if sent.is_some() {
                    return None;
                }
                *sent = Some(now);
                let (bytes, body) = (self.cfg.header_bytes - CHUNK_HEADER + message.bytes(), Body::Setup(*message));
                self.deadline = Some(now + self.rto.timeout());
                Some(self.packet(now, bytes, Ecn::NotEct, body))
            }
            Phase::Open => {
                let retransmission = self.outstanding.has_lost();
                let data = if retransmission { self.resend() } else { self.send_new(now) }?;
                // Rule R1.
                let timeout = self.rto.timeout();
                self.deadline.get_or_insert(now + timeout);
                // Retransmissions are not ECN-capable (RFC 3168 section 6.1.5).
                let ecn = if self.cfg.ecn && !retransmission { Ecn::Ect0 } else { Ecn::NotEct };
                Some(self.packet(now, data.payload + self.cfg.header_bytes, ecn, Body::Data(data)))
            }
        }
    }

    fn stats(&self) -> Stats {
        self.stats
    }

    fn poll_delivery(&mut self) -> Option<Delivery> {
        None
    }

    fn is_idle(&self) -> bool {
        !self.endless && self.queue.is_empty() && self.outstanding.is_empty()
    }
}
