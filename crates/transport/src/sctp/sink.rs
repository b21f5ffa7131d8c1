//! The receiving end of an association.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;

use aqumen_units::{Ecn, Instant};

use super::{BLOCKS, CHUNK_HEADER, Data, Sack, SctpConfig, Setup};
use crate::tcp::scoreboard::Runs;
use crate::{Body, Delivery, Endpoint, Message, Packet, Stats};

/// The receiving end.
#[derive(Clone, Debug)]
pub struct SctpSink {
    cfg: SctpConfig,
    /// Every chunk up to this TSN has arrived.
    cumulative: u32,
    /// What has arrived beyond it.
    early: Runs,
    streams: Vec<Stream>,
    /// What waits for something that is missing (chunk bytes).
    held: u32,
    /// Packets since the last SACK.
    unanswered: u8,
    /// A chunk has arrived.
    begun: bool,
    sack: Due,
    /// The lowest TSN that arrived marked and that the sender has not answered.
    marked: Option<u32>,
    setup: Option<Setup>,
    deliveries: VecDeque<Delivery>,
    stats: Stats,
}

/// When the next SACK leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Never,
    At(Instant),
    Now,
}

/// One stream: what is handed over next, and what arrived before its turn, by number of the message and offset.
#[derive(Clone, Debug, Default)]
struct Stream {
    ssn: u32,
    offset: u32,
    early: BTreeMap<(u32, u32), (Message, u16)>,
}

impl SctpSink {
    /// A sink that has seen nothing.
    pub fn new(cfg: &SctpConfig) -> Self {
        SctpSink {
            cfg: *cfg,
            cumulative: 0,
            early: Runs::default(),
            streams: vec![Stream::default(); usize::from(cfg.streams)],
            held: 0,
            unanswered: 0,
            begun: false,
            sack: Due::Never,
            marked: None,
            setup: None,
            deliveries: VecDeque::new(),
            stats: Stats::default(),
        }
    }

    fn on_data(&mut self, now: Instant, ecn: Ecn, data: &Data) {
        let end = data.offset.checked_add(u32::from(data.payload));
        let stream = usize::from(data.stream);
        let far = data.tsn == u32::MAX || data.tsn.saturating_sub(self.cumulative) > u32::from(u16::MAX);
        if end.is_none_or(|end| end > data.message.bytes) || stream >= self.streams.len() || far {
            return;
        }
        self.follow_marks(ecn, data);
        let fits = self.held.saturating_add(data.bytes()) <= self.cfg.receive_window_bytes;
        // The next chunk is taken in any case: it is what the others wait for.
        let new = data.tsn > self.cumulative && (fits || data.tsn == self.cumulative + 1);
        if new && self.arrive(data.tsn) {
            self.hand_over(now, data);
        }
        // Section 5.1: at once for the first. Sections 6.2 and 6.7: at once for gaps, copies and marks, else, and for
        // what fills the last gap, for every second packet.
        self.unanswered += 1;
        let first = !core::mem::replace(&mut self.begun, true);
        let at_once = first || !self.early.is_empty() || !new || ecn == Ecn::Ce || self.unanswered >= 2;
        match self.cfg.delayed_sack {
            Some(delay) if !at_once && self.sack != Due::Now => self.sack = Due::At(now + delay),
            _ => self.sack = Due::Now,
        }
    }

    /// RFC 4960 appendix A: the mark is reported until the sender says that it has reacted to it.
    fn follow_marks(&mut self, ecn: Ecn, data: &Data) {
        if data.cwr.is_some_and(|answered| self.marked.is_some_and(|marked| answered >= marked)) {
            self.marked = None;
        }
        if ecn == Ecn::Ce {
            self.marked = Some(self.marked.map_or(data.tsn, |marked| marked.min(data.tsn)));
        }
    }

    /// Notes that chunk `tsn` is here; says whether that is new.
    fn arrive(&mut self, tsn: u32) -> bool {
        if self.early.insert(tsn, tsn + 1) == 0 {
            return false;
        }
        if let Some((_, end)) = self.early.run_with(self.cumulative + 1) {
            self.cumulative = end - 1;
            self.early.forget_before(end);
        }
        true
    }

    /// Puts a new chunk into its stream, and hands over what that completes.
    fn hand_over(&mut self, now: Instant, data: &Data) {
        let stream = &mut self.streams[usize::from(data.stream)];
        self.held += data.bytes();
        if let Some((_, payload)) = stream.early.insert((data.ssn, data.offset), (data.message, data.payload)) {
            self.held -= u32::from(payload) + u32::from(CHUNK_HEADER);
        }
        while let Some(entry) = stream.early.first_entry().filter(|entry| *entry.key() == (stream.ssn, stream.offset)) {
            let (message, payload) = entry.remove();
            self.held -= u32::from(payload) + u32::from(CHUNK_HEADER);
            self.stats.delivered_bytes += u64::from(payload);
            stream.offset += u32::from(payload);
            if stream.offset >= message.bytes {
                stream.offset = 0;
                stream.ssn += 1;
                self.deliveries.push_back(Delivery { message, complete_at: now, bytes: message.bytes });
            }
        }
    }

    fn answer(&mut self) -> Sack {
        self.sack = Due::Never;
        self.unanswered = 0;
        let window = self.cfg.receive_window_bytes.saturating_sub(self.held);
        let mut sack = Sack { marked: self.marked, ..Sack::new(self.cumulative, window) };
        let runs = self.early.as_slice();
        let omitted = BLOCKS / 2..(BLOCKS / 2).max((runs.len() + BLOCKS / 2).saturating_sub(BLOCKS));
        for (index, &(first, end)) in runs.iter().enumerate() {
            if !omitted.contains(&index) {
                // `on_data` takes nothing that is too far away for an offset.
                sack.push((first - self.cumulative) as u16, (end - 1 - self.cumulative) as u16);
            }
        }
        sack
    }
}

impl Endpoint for SctpSink {
    fn write(&mut self, _now: Instant, _message: Message) {}

    fn on_packet(&mut self, now: Instant, packet: &Packet) {
        match &packet.body {
            Body::Data(data) => self.on_data(now, packet.ecn, data),
            Body::Setup(Setup::Init) => self.setup = Some(Setup::InitAck),
            Body::Setup(Setup::CookieEcho) => self.setup = Some(Setup::CookieAck),
            _ => {}
        }
    }

    fn on_timer(&mut self, now: Instant) {
        if matches!(self.sack, Due::At(due) if now >= due) {
            self.sack = Due::Now;
        }
    }

    fn next_timer(&self) -> Option<Instant> {
        match self.sack {
            Due::At(due) => Some(due),
            Due::Never | Due::Now => None,
        }
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        let (bytes, body) = if let Some(setup) = self.setup.take() {
            (self.cfg.header_bytes - CHUNK_HEADER + setup.bytes(), Body::Setup(setup))
        } else if self.sack == Due::Now {
            let sack = self.answer();
            let blocks = 4 * sack.blocks().len() as u16;
            let mark = if sack.marked.is_some() { 8 } else { 0 };
            (self.cfg.header_bytes + blocks + mark, Body::Sack(sack))
        } else {
            return None;
        };
        let seq = self.stats.sent as u32;
        self.stats.sent += 1;
        Some(Packet { bytes, ecn: Ecn::NotEct, seq, sent_at: now, body })
    }

    fn stats(&self) -> Stats {
        self.stats
    }

    fn poll_delivery(&mut self) -> Option<Delivery> {
        self.deliveries.pop_front()
    }
}
