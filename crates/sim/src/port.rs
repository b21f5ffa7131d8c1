//! A port: the queue and transmitter at the head of a link that several flows share, or that is measured.
//!
//! Three kinds give the same answers. [`FifoPort`] knows a packet's departure when it arrives and needs no further event;
//! it serves first-in first-out queues whose AQM decides at arrival. [`ServedPort`] asks a queue discipline for each packet
//! when the link is free, at the price of an event for each transmission; it serves all others: AQMs that decide at the head, and
//! disciplines of several queues. [`PlainPort`] is the first
//! without AQM and measurements.

mod fifo;
mod plain;
mod served;

use aqumen_aqm::registry::AnyQdisc;
use aqumen_aqm::{Aqm, Fifo, Packet, ParamError, Totals, Value};
use aqumen_scenario::Link;
use aqumen_scenario::streams::{Kind, Stream};
use aqumen_units::{Bytes, Instant, Rate};

use crate::event::Event;
use crate::meter::Meter;
use crate::network::Style;

pub(crate) use fifo::FifoPort;
pub(crate) use plain::PlainPort;
pub(crate) use served::ServedPort;

/// Any kind of port.
pub(crate) enum Port {
    Fifo(Box<FifoPort>),
    Served(Box<ServedPort>),
    Plain(Box<PlainPort>),
}

/// What became of a packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It will be transmitted from `start` on and reach the next node at `reach`, nanoseconds.
    Leaves { start: u64, reach: u64 },
    /// It waits; a service event tells when it leaves. `busy_until` is set when its transmission started at once.
    Waits { busy_until: Option<u64> },
    /// It is gone.
    Dropped,
}

/// The transmitter of a link: its rates and its propagation delay.
#[derive(Clone, Debug)]
struct Transmitter {
    /// Rate from each moment on; never empty.
    rates: Vec<(u64, Rate)>,
    /// Index of the rate in force at the last start of a transmission.
    current: usize,
    delay: u64,
    /// The last size asked for and the time it takes at the current rate: packets mostly repeat their size.
    cached: (u32, u64),
}

impl Port {
    /// The port at the head of `link`, whose number in the plan is `number`. `None` if nothing has the name of its AQM.
    pub(crate) fn new(link: &Link, seed: u64, number: u32, style: Style) -> Option<Result<Self, ParamError>> {
        let rng = Stream::new(seed, Kind::Aqm, number as u64);
        let transmitter = Transmitter::new(link);
        let meter = link.record.then(|| Box::new(Meter::new(link.target_pkts)));
        let qdisc = match link.aqm.build() {
            Some(Ok(aqm)) if style.served || aqm.hooks().decides_at_head => {
                Ok(AnyQdisc::Fifo(Fifo::new(aqm, link.limit)))
            }
            Some(Ok(aqm)) => {
                let plain = link.is_plain() && link.limit.bytes == Bytes(u64::MAX) && style.collapse;
                return Some(Ok(if plain {
                    Port::Plain(Box::new(PlainPort::new(link.limit.packets, transmitter)))
                } else {
                    Port::Fifo(Box::new(FifoPort::new(aqm, link.limit, rng, transmitter, meter)))
                }));
            }
            Some(Err(error)) => Err(error),
            None => link.aqm.build_qdisc(link.limit)?,
        };
        Some(qdisc.map(|qdisc| Port::Served(Box::new(ServedPort::new(qdisc, rng, transmitter, meter)))))
    }

    /// When the AQM's timer is due.
    pub(crate) fn next_timer(&self) -> Option<u64> {
        match self {
            Port::Fifo(port) => port.next_timer(),
            Port::Served(port) => port.next_timer(),
            Port::Plain(_) => None,
        }
    }

    /// The AQM's timer is due.
    pub(crate) fn on_timer(&mut self, now: u64) {
        match self {
            Port::Fifo(port) => port.on_timer(now),
            Port::Served(port) => port.on_timer(now),
            Port::Plain(_) => {}
        }
    }

    /// Packets waiting and the probability in force, as of just before the packet events of `now`. Only for links that
    /// are recorded.
    pub(crate) fn sample(&mut self, now: u64) -> Option<(u32, f64)> {
        match self {
            Port::Fifo(port) => port.meter().is_some().then(|| port.sample(now)),
            Port::Served(port) => port.meter().is_some().then(|| port.sample()),
            Port::Plain(_) => None,
        }
    }

    /// A window begins or ends.
    pub(crate) fn edge(&mut self, now: u64) {
        match self {
            Port::Fifo(port) => port.edge(now),
            Port::Served(port) => port.edge(now),
            Port::Plain(_) => {}
        }
    }

    /// The measurements and the totals, if this link is recorded.
    pub(crate) fn measured(&self) -> Option<(&Meter, &Totals)> {
        match self {
            Port::Fifo(port) => Some((port.meter()?, port.totals())),
            Port::Served(port) => Some((port.meter()?, port.totals())),
            Port::Plain(_) => None,
        }
    }

    /// Shows the AQM's parameters in force.
    pub(crate) fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        match self {
            Port::Fifo(port) => port.settings(visit),
            Port::Served(port) => port.settings(visit),
            Port::Plain(_) => {}
        }
    }
}

impl Transmitter {
    fn new(link: &Link) -> Self {
        let rates = link.rates.iter().map(|&(from, rate)| (from.as_nanos(), rate)).collect();
        Transmitter { rates, current: 0, delay: link.delay.as_nanos(), cached: (0, 0) }
    }

    /// How long `bytes` take when their transmission starts at `start`, which never goes back.
    #[inline]
    fn duration(&mut self, bytes: u32, start: u64) -> u64 {
        if self.rates.get(self.current + 1).is_some_and(|&(from, _)| from <= start) {
            while self.rates.get(self.current + 1).is_some_and(|&(from, _)| from <= start) {
                self.current += 1;
            }
            self.cached = (0, 0);
        }
        if self.cached.0 != bytes {
            // Two packets never leave one link at the same nanosecond: a transmission takes at least one.
            let duration = self.rates[self.current].1.time_for(Bytes(bytes as u64)).as_nanos().max(1);
            self.cached = (bytes, duration);
        }
        self.cached.1
    }
}

/// What an AQM may know of a packet of `flow`.
#[inline]
fn metadata(event: &Event, flow: u32) -> Packet {
    Packet {
        bytes: event.bytes as u32,
        ecn: event.ecn(),
        class: 0,
        segments: 1,
        flow_hash: flow,
        source_hash: flow,
        destination_hash: flow,
    }
}

/// Bits of a packet that are on the wire at `now`, when its transmission lasts from `start` to `end`.
fn sent_bits(bytes: u32, start: u64, end: u64, now: u64) -> f64 {
    8.0 * bytes as f64 * (now - start) as f64 / (end - start) as f64
}

fn instant(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}
