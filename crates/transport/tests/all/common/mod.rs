//! Two ends and a channel between them; tables of what was recorded.

use std::collections::BTreeMap;

use aqumen_transport::{Delivery, Endpoint, Packet};
use aqumen_units::{Ecn, Instant, Span};

/// A small generator (xorshift64*): the channel's luck, reproducible from one number that proptest can shrink.
pub(crate) struct Luck(pub(crate) u64);

impl Luck {
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

/// Everything `end` wants to send now.
pub(crate) fn packets(end: &mut impl Endpoint, now: Instant) -> Vec<Packet> {
    std::iter::from_fn(|| end.poll_transmit(now)).collect()
}

/// A link with a queue of one second that keeps the order, loses and marks; the way back is as fast as one likes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Channel {
    pub(crate) bits_per_sec: u64,
    pub(crate) delay_ms: u64,
    pub(crate) loss_percent: u64,
    pub(crate) back_loss_percent: u64,
    pub(crate) mark_percent: u64,
    pub(crate) seed: u64,
}

/// A connection in the making.
pub(crate) struct Net<S, K> {
    pub(crate) source: S,
    pub(crate) sink: K,
    pub(crate) now: Instant,
    pub(crate) delivered: Vec<Delivery>,
    /// Bytes that arrived at the sink.
    pub(crate) arrived_bytes: u64,
    channel: Channel,
    luck: Luck,
    /// When the link is free again.
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
            luck: Luck(channel.seed | 1),
            free: Instant::ZERO,
            events: BTreeMap::new(),
            order: 0,
        }
    }

    /// The channel changes.
    pub(crate) fn set_channel(&mut self, channel: Channel) {
        self.channel = channel;
    }

    /// Polls both ends.
    pub(crate) fn flush(&mut self) {
        while let Some(mut packet) = self.source.poll_transmit(self.now) {
            let start = self.free.max(self.now);
            let full = start - self.now > Span::from_secs(1);
            if full || self.luck.percent(self.channel.loss_percent) {
                continue;
            }
            if packet.ecn.is_ect() && self.luck.percent(self.channel.mark_percent) {
                packet.ecn = Ecn::Ce;
            }
            let bits = u64::from(packet.bytes) * 8;
            self.free = start + Span::from_nanos(bits * 1_000_000_000 / self.channel.bits_per_sec);
            self.carry(self.free, true, packet);
        }
        while let Some(packet) = self.sink.poll_transmit(self.now) {
            if !self.luck.percent(self.channel.back_loss_percent) {
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

    /// One event, or a timer; false when nothing is due.
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

    /// All that is due before or at `end` happens.
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

/// The rows are those in the file at `path`, which `AQUMEN_BLESS` writes anew.
pub(crate) fn assert_recorded(path: &str, table: &str) {
    if std::env::var_os("AQUMEN_BLESS").is_some() {
        return std::fs::write(path, table).unwrap();
    }
    let expected = std::fs::read_to_string(path).unwrap();
    let other: Vec<_> = table.lines().zip(expected.lines()).filter(|(now, then)| now != then).collect();
    assert!(other.is_empty(), "{} rows are others, (now, before): {other:#?}", other.len());
    assert_eq!(table.lines().count(), expected.lines().count());
}
