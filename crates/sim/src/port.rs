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
mod transmitter;

use std::rc::Rc;

use aqumen_aqm::registry::{AnyAqm, AnyQdisc};
use aqumen_aqm::{Aqm, Fifo, Packet, ParamError, Totals, Value};
use aqumen_network::Carried;
use aqumen_result::{Counts, Meter};
use aqumen_scenario::streams::{Kind, Stream};
use aqumen_scenario::{Link, Plan};
use aqumen_units::{Bytes, Instant};

use crate::network::Style;

pub(crate) use fifo::FifoPort;
pub(crate) use plain::PlainPort;
pub(crate) use served::ServedPort;
use transmitter::Transmitter;

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
    /// It will be transmitted from `start` on, and get lost on the wire.
    Lost { start: u64 },
    /// It is gone.
    Dropped,
}

impl Port {
    /// The port at the head of `link`, whose number in the plan is `number`; `edges` are those of the windows. `None` if nothing
    /// has the name of its AQM.
    pub(crate) fn new(
        link: &Link,
        seed: u64,
        number: u32,
        style: Style,
        edges: &[u64],
        identities: &Rc<Identities>,
    ) -> Option<Result<Self, ParamError>> {
        let rng = Stream::new(seed, Kind::Aqm, number as u64);
        let transmitter = Transmitter::new(link, seed, number, edges);
        let meter = link.record.then(|| Box::new(Meter::new(link.target_pkts)));
        // An AQM that comes later may decide at the head as well.
        let later = link.line.iter().flat_map(|line| &line.aqms).filter_map(|(_, choice)| choice.build());
        let by_class = |aqm: &AnyAqm| identities.classes() && matches!(aqm, AnyAqm::Thresholded(_));
        let served = style.served || later.flatten().any(|aqm| aqm.hooks().decides_at_head || by_class(&aqm));
        let qdisc = match link.aqm.build() {
            Some(Ok(aqm)) if served || aqm.hooks().decides_at_head || by_class(&aqm) => {
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
        Some(
            qdisc.map(|qdisc| {
                Port::Served(Box::new(ServedPort::new(qdisc, rng, transmitter, meter, identities.clone())))
            }),
        )
    }

    /// When the AQM's timer is due.
    pub(crate) fn next_timer(&self) -> Option<u64> {
        match self {
            Port::Fifo(port) => port.next_timer(),
            Port::Served(port) => port.next_timer(),
            Port::Plain(_) => None,
        }
    }

    /// The AQM's timer may be due. `false`: it is not, and nothing has changed.
    pub(crate) fn on_timer(&mut self, now: u64) -> bool {
        if self.next_timer().is_none_or(|due| due > now) {
            return false;
        }
        match self {
            Port::Fifo(port) => port.on_timer(now),
            Port::Served(port) => port.on_timer(now),
            Port::Plain(_) => {}
        }
        true
    }

    /// `new` takes over, with the packets that wait, before the packet events of `now`.
    pub(crate) fn retune(&mut self, new: AnyQdisc, now: u64) {
        match (self, new) {
            (Port::Fifo(port), AnyQdisc::Fifo(new)) => port.replace_aqm(new.into_aqm(), now),
            (Port::Served(port), new) => port.retune(new, now),
            _ => {}
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

    /// Bits that a medium of its own offered between the edges of the windows; `None` for a wire.
    pub(crate) fn offered_bits(&mut self) -> Option<Vec<f64>> {
        match self {
            Port::Fifo(port) => port.offered_bits(),
            Port::Served(port) => port.offered_bits(),
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

    /// Tells what the AQM has to say of the run.
    pub(crate) fn notes(&self, tell: &mut dyn FnMut(std::fmt::Arguments<'_>)) {
        match self {
            Port::Fifo(port) => port.notes(tell),
            Port::Served(port) => port.notes(tell),
            Port::Plain(_) => {}
        }
    }
}

/// What an AQM of one queue may know of a packet of `flow`; of its class and hosts see [`Identities`].
#[inline]
fn metadata(packet: &impl Carried, flow: u32) -> Packet {
    Packet {
        bytes: packet.bytes(),
        ecn: packet.ecn(),
        class: 0,
        segments: 1,
        flow_hash: flow,
        source_hash: flow,
        destination_hash: flow,
        ack: None,
    }
}

/// Class and hosts of each flow, for disciplines that tell them apart.
#[derive(Debug)]
pub(crate) struct Identities(Vec<(u8, u32)>);

impl Identities {
    /// Those of the flows of `plan`.
    pub(crate) fn new(plan: &Plan) -> Rc<Self> {
        let of_flow = |flow: &aqumen_scenario::Flow| (plan.groups[flow.group as usize].class, flow.hosts);
        Rc::new(Identities(plan.flows.iter().map(of_flow).collect()))
    }

    /// Whether there is more than the default class.
    fn classes(&self) -> bool {
        self.0.iter().any(|(class, _)| *class != 0)
    }

    /// What a discipline may know of a packet of `flow`. Hosts are told apart on each side by themselves, so that a packet and
    /// its acknowledgement need no more than one number.
    fn metadata(&self, packet: &impl Carried, flow: u32) -> Packet {
        let (class, hosts) = self.0[flow as usize];
        let ack = packet.pure_ack();
        Packet { class, source_hash: hosts, destination_hash: hosts, ack, ..metadata(packet, flow) }
    }
}

/// What a meter wants to know of a queue's totals.
fn counts(totals: &Totals) -> Counts {
    Counts {
        arrivals: totals.arrivals,
        departures: totals.departures,
        departed_bytes: totals.departed_bytes,
        marked: totals.marked,
        early_dropped: totals.early_dropped,
        overflow_dropped: totals.overflow_dropped,
    }
}

/// Bits of a packet that are on the wire at `now`, when its transmission lasts from `start` to `end`.
fn sent_bits(bytes: u32, start: u64, end: u64, now: u64) -> f64 {
    8.0 * bytes as f64 * (now - start) as f64 / (end - start) as f64
}

fn instant(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}
