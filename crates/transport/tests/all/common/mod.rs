//! Two endpoints with a channel between them, and recorded tables.

use std::collections::BTreeMap;

use aqumen_transport::{Delivery, Endpoint, Packet};
use aqumen_units::{Ecn, Instant, Span};

/// Random number generator (xorshift64*) with a seed that proptest can shrink.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32) % bound
    }

    pub(crate) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }
}

pub(crate) fn at(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

/// All packets that an endpoint sends now.
pub(crate) fn packets(endpoint: &mut impl Endpoint, now: Instant) -> Vec<Packet> {
    std::iter::from_fn(|| endpoint.poll_transmit(now)).collect()
}

/// A link with a queue of one second, random losses and marks, in order; the return path has unlimited capacity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Channel {
    pub(crate) bits_per_sec: u64,
    pub(crate) delay_ms: u64,
    pub(crate) loss_percent: u64,
    pub(crate) back_loss_percent: u64,
    pub(crate) mark_percent: u64,
    pub(crate) seed: u64,
}

/// A source and a sink, connected by a channel.
pub(crate) struct Net<S, K> {
    pub(crate) source: S,
    pub(crate) sink: K,
    pub(crate) now: Instant,
    pub(crate) delivered: Vec<Delivery>,
    /// Bytes that arrived at the sink.
    pub(crate) arrived_bytes: u64,
    channel: Channel,
    rng: Rng,
    /// Time at which the link is free.
    free: Instant,
    events: BTreeMap<(Instant, u64), (bool, Packet)>,
    order: u64,
}

impl<S: Endpoint, K: Endpoint> Net<S, K> {
    pub(crate) fn new(source: S, sink: K, channel: Channel) -> Self {
        Net {
            source,
            sink,
            now: Instant::ZERO,
            delivered: Vec::new(),
            arrived_bytes: 0,
            channel,
            rng: Rng(channel.seed | 1),
            free: Instant::ZERO,
            events: BTreeMap::new(),
            order: 0,
        }
    }

    /// Replaces the channel.
    pub(crate) fn set_channel(&mut self, channel: Channel) {
        self.channel = channel;
    }

    /// Polls both endpoints.
    pub(crate) fn flush(&mut self) {
        while let Some(mut packet) = self.source.poll_transmit(self.now) {
            let start = self.free.max(self.now);
            let full = start - self.now > Span::from_secs(1);
            if full || self.rng.percent(self.channel.loss_percent) {
                continue;
            }
            if packet.ecn.is_ect() && self.rng.percent(self.channel.mark_percent) {
                packet.ecn = Ecn::Ce;
            }
            let bits = u64::from(packet.bytes) * 8;
            self.free = start + Span::from_nanos(bits * 1_000_000_000 / self.channel.bits_per_sec);
            self.carry(self.free, true, packet);
        }
        while let Some(packet) = self.sink.poll_transmit(self.now) {
            if !self.rng.percent(self.channel.back_loss_percent) {
                self.carry(self.now, false, packet);
            }
        }
        while let Some(delivery) = self.sink.poll_delivery() {
            self.delivered.push(delivery);
        }
    }

    fn carry(&mut self, leaves: Instant, to_sink: bool, packet: Packet) {
        self.order += 1;
        self.events.insert((leaves + Span::from_millis(self.channel.delay_ms), self.order), (to_sink, packet));
    }

    /// Processes the next event or timer; false if there is none.
    pub(crate) fn step(&mut self) -> bool {
        self.flush();
        let event = self.events.keys().next().map(|key| key.0);
        let Some(due) = self.next_due() else { return false };
        self.now = self.now.max(due);
        match event {
            Some(first) if first <= self.now => {
                let (to_sink, packet) = self.events.pop_first().expect("there is one").1;
                if to_sink {
                    self.arrived_bytes += u64::from(packet.bytes);
                    self.sink.on_packet(self.now, &packet);
                } else {
                    self.source.on_packet(self.now, &packet);
                }
            }
            _ => {
                self.source.on_timer(self.now);
                self.sink.on_timer(self.now);
            }
        }
        self.flush();
        true
    }

    /// Processes all events up to `end`.
    pub(crate) fn run_through(&mut self, end: Instant) {
        self.flush();
        while self.next_due().is_some_and(|due| due <= end) && self.step() {}
    }

    fn next_due(&self) -> Option<Instant> {
        let event = self.events.keys().next().map(|key| key.0);
        [event, self.source.next_timer(), self.sink.next_timer()].into_iter().flatten().min()
    }

    /// Runs until `end`.
    pub(crate) fn run_until(&mut self, end: Instant) {
        while self.now < end && self.step() {}
    }
}

/// Compares a table with the file at `path`; with `AQUMEN_BLESS` it rewrites the file.
pub(crate) fn assert_recorded(path: &str, table: &str) {
    if std::env::var_os("AQUMEN_BLESS").is_some() {
        return std::fs::write(path, table).unwrap();
    }
    let expected = std::fs::read_to_string(path).unwrap();
    let different: Vec<_> = table.lines().zip(expected.lines()).filter(|(now, then)| now != then).collect();
    assert!(different.is_empty(), "{} rows differ (now, before): {different:#?}", different.len());
    assert_eq!(table.lines().count(), expected.lines().count());
}
