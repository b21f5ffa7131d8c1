//! The sending end of an association.
//!
//! ```text
//!   silent --write--> INIT sent --INIT ACK--> COOKIE ECHO sent --COOKIE ACK--> open
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

/// The sending end.
#[derive(Clone, Debug)]
pub struct SctpSource {
    cfg: SctpConfig,
    phase: Phase,
    waiting: VecDeque<Waiting>,
    /// How much of the first waiting message has left (bytes).
    offset: u32,
    /// Messages accepted so far in each stream.
    accepted: Vec<u32>,
    /// The application always has something to send; it has made so many messages.
    endless: bool,
    made: u32,
    outstanding: Outstanding,
    window: Window,
    rto: Rto,
    /// When the retransmission timer goes off.
    deadline: Option<Instant>,
    /// The TSN being timed, and when it left: one at a time (rule C4), none that was sent twice (C5).
    timed: Option<(u32, Instant)>,
    /// What the receiver takes beyond what is acknowledged (chunk bytes).
    peer_window: u32,
    /// How many more packets may leave in answer to the last event.
    burst: u8,
    fast: Fast,
    /// The mark to answer on the next chunk.
    cwr: Option<u32>,
    /// When a new chunk last left.
    last_sent: Option<Instant>,
    stats: Stats,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing was asked for yet.
    Silent,
    /// A message of the set-up is to leave, or has left at a time, and how often.
    SettingUp {
        message: Setup,
        sent: Option<Instant>,
        again: bool,
    },
    Open,
}

/// What the last SACK, if it reported losses, allows to be sent again (section 7.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fast {
    /// It reported none: as much as the window allows.
    No,
    /// One packet, whatever the window says.
    Due,
    /// That packet has left: the others wait for the next SACK.
    Done,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    message: Message,
    stream: u16,
    ssn: u32,
}

/// The last TSN an association may use.
const LAST_TSN: u32 = u32::MAX - 2;

impl SctpSource {
    /// A source that has sent nothing.
    pub fn new(cfg: &SctpConfig) -> Self {
        SctpSource {
            cfg: *cfg,
            phase: Phase::Silent,
            waiting: VecDeque::new(),
            offset: 0,
            accepted: vec![0; usize::from(cfg.streams)],
            endless: false,
            made: 0,
            outstanding: Outstanding::new(1),
            window: Window::new(cfg),
            rto: Rto::new(cfg),
            deadline: None,
            timed: None,
            peer_window: cfg.receive_window_bytes,
            burst: 0,
            fast: Fast::No,
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

    /// What was acknowledged since the window last grew in congestion avoidance (chunk bytes).
    pub fn partial_bytes_acked(&self) -> u32 {
        self.window.partial
    }

    /// What is in the network (chunk bytes).
    pub fn flight(&self) -> u32 {
        self.outstanding.flight()
    }

    /// Whether a fast recovery is on.
    pub fn in_recovery(&self) -> bool {
        self.window.exit.is_some()
    }

    /// Retransmission timeout that the next chunk would get.
    pub fn retransmission_timeout(&self) -> Span {
        self.rto.timeout()
    }

    /// Something new is to be sent.
    fn wake(&mut self, now: Instant) {
        self.burst = self.full_burst();
        if self.phase == Phase::Silent {
            self.phase = if self.cfg.handshake {
                Phase::SettingUp { message: Setup::Init, sent: None, again: false }
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

    fn accept(&mut self, message: Message) -> Waiting {
        let stream = (message.number % u32::from(self.cfg.streams)) as u16;
        let accepted = &mut self.accepted[usize::from(stream)];
        let ssn = *accepted;
        *accepted += 1;
        Waiting { message, stream, ssn }
    }

    fn on_setup(&mut self, now: Instant, answer: Setup) {
        let Phase::SettingUp { message, sent: Some(sent), again } = self.phase else { return };
        self.phase = match (message, answer) {
            (Setup::Init, Setup::InitAck) => Phase::SettingUp { message: Setup::CookieEcho, sent: None, again: false },
            (Setup::CookieEcho, Setup::CookieAck) => Phase::Open,
            _ => return,
        };
        self.deadline = None;
        if !again {
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
        let Some(news) = self.outstanding.on_sack(sack, self.window.exit.is_some()) else { return };
        if let Some((tsn, sent)) = self.timed
            && self.outstanding.has_arrived(tsn)
        {
            self.timed = None;
            self.measure(now.saturating_since(sent));
        }
        if news.advanced {
            self.window.on_advance(sack.cumulative, news.acked, flight);
            // Rules R2 and R3.
            self.deadline = (!self.outstanding.is_empty()).then(|| now + self.rto.timeout());
        }
        if self.outstanding.is_empty() {
            self.window.on_all_acknowledged();
        }
        if self.cfg.burst_after_repair && !news.repaired {
            self.burst = u8::MAX;
        }
        if let Some(highest) = news.lost {
            self.window.on_fast_retransmit(highest, self.outstanding.next());
            self.fast = Fast::Due;
            if news.first_lost {
                self.deadline = Some(now + self.rto.timeout());
            }
        }
        self.peer_window = sack.window;
        if let Some(tsn) = sack.marked.filter(|&tsn| self.cfg.ecn && tsn < self.outstanding.next()) {
            self.window.on_mark(tsn, self.outstanding.next());
            self.cwr = Some(tsn);
        }
    }

    /// The next chunk to send again, if it may leave.
    fn resend(&mut self) -> Option<Data> {
        match self.fast {
            Fast::Due => self.fast = Fast::Done,
            Fast::Done => return None,
            Fast::No if self.outstanding.flight() >= self.window.cwnd || self.burst == 0 => return None,
            Fast::No => self.count_burst(),
        }
        let data = self.outstanding.resend()?;
        if self.timed.is_some_and(|(tsn, _)| tsn == data.tsn) {
            self.timed = None;
        }
        self.stats.retransmitted += 1;
        Some(data)
    }

    /// The next new chunk, if it may leave (section 6.1 rules A and B).
    fn send_new(&mut self, now: Instant) -> Option<Data> {
        let flight = self.outstanding.flight();
        if self.burst == 0 || flight >= self.window.cwnd || self.outstanding.next() > LAST_TSN {
            return None;
        }
        if self.waiting.is_empty() && self.endless {
            let bytes = u32::from(self.cfg.payload_bytes());
            let next = self.accept(Message { bytes, number: self.made, created_at: now });
            self.made = self.made.wrapping_add(1);
            self.waiting.push_back(next);
        }
        let next = *self.waiting.front()?;
        let payload = (next.message.bytes - self.offset).min(u32::from(self.cfg.payload_bytes())) as u16;
        let bytes = u32::from(payload) + u32::from(CHUNK_HEADER);
        // A closed window is probed with one chunk.
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
            self.waiting.pop_front();
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
        self.wake(now);
        self.endless = true;
    }

    fn stop(&mut self, _now: Instant) {
        self.endless = false;
    }

    fn write(&mut self, now: Instant, message: Message) {
        self.wake(now);
        let next = self.accept(message);
        self.waiting.push_back(next);
    }

    fn on_packet(&mut self, now: Instant, packet: &Packet) {
        self.burst = self.full_burst();
        self.fast = Fast::No;
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
        self.fast = Fast::No;
        self.stats.timeouts += 1;
        self.rto.back_off(&self.cfg);
        self.deadline = None;
        match &mut self.phase {
            Phase::SettingUp { sent, again, .. } => {
                *sent = None;
                *again = true;
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
            Phase::Silent => None,
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
                let again = self.outstanding.has_lost();
                let data = if again { self.resend() } else { self.send_new(now) }?;
                // Rule R1.
                let timeout = self.rto.timeout();
                self.deadline.get_or_insert(now + timeout);
                // RFC 3168 section 6.1.5: what is sent again is not ECN-capable.
                let ecn = if self.cfg.ecn && !again { Ecn::Ect0 } else { Ecn::NotEct };
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
        !self.endless && self.waiting.is_empty() && self.outstanding.is_empty()
    }
}
