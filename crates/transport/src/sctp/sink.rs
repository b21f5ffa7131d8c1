//! Receiving endpoint of an association.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;

use aqumen_units::{Ecn, Instant};

use super::{BLOCKS, CHUNK_HEADER, Data, Sack, SctpConfig, Setup};
use crate::range_set::RangeSet;
use crate::{Body, Delivery, Endpoint, Message, Packet, Stats};

/// Receiving endpoint of an association.
#[derive(Clone, Debug)]
pub struct SctpSink {
    cfg: SctpConfig,
    /// Highest TSN up to which every chunk has arrived.
    cumulative: u32,
    /// Chunks that arrived beyond it.
    early: RangeSet,
    streams: Vec<Stream>,
    /// Buffered data: arrived, and not yet deliverable (chunk bytes).
    buffered: u32,
    /// Packets since the last SACK.
    packets_since_sack: u8,
    /// Whether a chunk has arrived.
    begun: bool,
    sack: SackTimer,
    /// Lowest marked TSN that the sender has not responded to.
    marked: Option<u32>,
    setup: Option<Setup>,
    deliveries: VecDeque<Delivery>,
    stats: Stats,
}

/// Time of the next SACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SackTimer {
    Off,
    At(Instant),
    Now,
}

/// Reassembly state of a stream: the next message and offset to deliver, and early chunks by message number and offset.
#[derive(Clone, Debug, Default)]
struct Stream {
    ssn: u32,
    offset: u32,
    early: BTreeMap<(u32, u32), (Message, u16)>,
}

impl SctpSink {
    /// A sink before the first chunk.
    pub fn new(cfg: &SctpConfig) -> Self {
        SctpSink {
            cfg: *cfg,
            cumulative: 0,
            early: RangeSet::default(),
            streams: vec![Stream::default(); usize::from(cfg.streams)],
            buffered: 0,
            packets_since_sack: 0,
            begun: false,
            sack: SackTimer::Off,
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
        self.update_mark(ecn, data);
        let fits = self.buffered.saturating_add(data.bytes()) <= self.cfg.receive_window_bytes;
        // The next chunk is accepted even into a full buffer, since it lets the buffered ones be delivered.
        let new = data.tsn > self.cumulative && (fits || data.tsn == self.cumulative + 1);
        if new && self.arrive(data.tsn) {
            self.deliver(now, data);
        }
        // Immediately for the first chunk (section 5.1), gaps, duplicates and marks (sections 6.2 and 6.7); otherwise
        // for every second packet.
        self.packets_since_sack += 1;
        let first = !core::mem::replace(&mut self.begun, true);
        let at_once = first || !self.early.is_empty() || !new || ecn == Ecn::Ce || self.packets_since_sack >= 2;
        match self.cfg.delayed_sack {
            Some(delay) if !at_once && self.sack != SackTimer::Now => self.sack = SackTimer::At(now + delay),
            _ => self.sack = SackTimer::Now,
        }
    }

    /// Reports a mark until the sender signals its response (RFC 4960 appendix A).
    fn update_mark(&mut self, ecn: Ecn, data: &Data) {
        if data.cwr.is_some_and(|answered| self.marked.is_some_and(|marked| answered >= marked)) {
            self.marked = None;
        }
        if ecn == Ecn::Ce {
            self.marked = Some(self.marked.map_or(data.tsn, |marked| marked.min(data.tsn)));
        }
    }

    /// Records the arrival of chunk `tsn`; returns whether it is new.
    fn arrive(&mut self, tsn: u32) -> bool {
        if self.early.insert(tsn, tsn + 1) == 0 {
            return false;
        }
        if let Some((_, end)) = self.early.range_containing(self.cumulative + 1) {
            self.cumulative = end - 1;
            self.early.remove_before(end);
        }
        true
    }

    /// Adds a new chunk to its stream, and delivers completed messages.
    fn deliver(&mut self, now: Instant, data: &Data) {
        let stream = &mut self.streams[usize::from(data.stream)];
        self.buffered += data.bytes();
        if let Some((_, payload)) = stream.early.insert((data.ssn, data.offset), (data.message, data.payload)) {
            self.buffered -= u32::from(payload) + u32::from(CHUNK_HEADER);
        }
        while let Some(entry) = stream.early.first_entry().filter(|entry| *entry.key() == (stream.ssn, stream.offset)) {
            let (message, payload) = entry.remove();
            self.buffered -= u32::from(payload) + u32::from(CHUNK_HEADER);
            self.stats.delivered_bytes += u64::from(payload);
            stream.offset += u32::from(payload);
            if stream.offset >= message.bytes {
                stream.offset = 0;
                stream.ssn += 1;
                self.deliveries.push_back(Delivery { message, complete_at: now, bytes: message.bytes });
            }
        }
    }

    fn make_sack(&mut self) -> Sack {
        self.sack = SackTimer::Off;
        self.packets_since_sack = 0;
        let window = self.cfg.receive_window_bytes.saturating_sub(self.buffered);
        let mut sack = Sack { marked: self.marked, ..Sack::new(self.cumulative, window) };
        let runs = self.early.as_slice();
        let omitted = BLOCKS / 2..(BLOCKS / 2).max((runs.len() + BLOCKS / 2).saturating_sub(BLOCKS));
        for (index, &(first, end)) in runs.iter().enumerate() {
            if !omitted.contains(&index) {
                // `on_data` accepts no chunk beyond the range of an offset.
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
        if matches!(self.sack, SackTimer::At(due) if now >= due) {
            self.sack = SackTimer::Now;
        }
    }

    fn next_timer(&self) -> Option<Instant> {
        match self.sack {
            SackTimer::At(due) => Some(due),
            SackTimer::Off | SackTimer::Now => None,
        }
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        let (bytes, body) = if let Some(setup) = self.setup.take() {
            (self.cfg.header_bytes - CHUNK_HEADER + setup.bytes(), Body::Setup(setup))
        } else if self.sack == SackTimer::Now {
            let sack = self.make_sack();
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
