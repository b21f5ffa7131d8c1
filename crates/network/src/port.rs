//! A port: the queue and transmitter at the head of a link that several flows share, or that is measured.
//!
//! Three kinds give the same answers. [`FifoPort`] knows a packet's departure when it arrives and needs no further
//! event; it serves first-in first-out queues whose AQM decides at arrival. [`ServedPort`] asks a queue discipline for
//! each packet when the link is free, at the price of an event for each transmission; it serves all others: AQMs that
//! decide at the head, and disciplines of several queues. [`PlainPort`] is the first
//! without AQM and measurements.

mod answers;
mod fifo;
mod plain;
mod served;

use aqumen_aqm::{AnyAqm, AnyQdisc, Aqm, Totals, Value};
use aqumen_result::Meter;
use aqumen_scenario::Link;
use aqumen_scenario::streams::{Kind, Stream};
use aqumen_units::Bytes;

use crate::transmitter::Transmitter;
use crate::{Carried, Error};

pub use answers::Arrival;
use answers::meter_of;
pub use fifo::FifoPort;
pub use plain::PlainPort;
pub use served::{Sent, ServedPort};

/// Any kind of port, of packets that are or stand behind a `P`.
pub enum Port<P> {
    /// Departures are computed at arrivals.
    Fifo(Box<FifoPort>),
    /// A discipline is asked for each packet.
    Served(Box<ServedPort<P>>),
    /// Nobody looks.
    Plain(Box<PlainPort>),
}

/// Which kinds of port a host wants; the answers do not depend on it.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Plain ports, where nobody looks.
    pub collapse: bool,
    /// Served ports throughout.
    pub served: bool,
}

impl<P: Carried + Copy> Port<P> {
    /// The port at the head of `link`, whose number in the plan is `number`; `edges` are those of the windows;
    /// `classes`: packets may have other than the default class.
    pub fn new(link: &Link, seed: u64, number: u32, style: Style, edges: &[u64], classes: bool) -> Result<Self, Error> {
        // An AQM that comes later may decide at the head as well.
        let later = link.line.iter().flat_map(|line| &line.aqms).filter_map(|(_, choice)| choice.build());
        let by_class = |aqm: &AnyAqm| classes && matches!(aqm, AnyAqm::Thresholded(_));
        let served = style.served || later.flatten().any(|aqm| aqm.hooks().decides_at_head || by_class(&aqm));
        let fifo = match link.aqm.build() {
            Some(Ok(aqm)) if served || aqm.hooks().decides_at_head || by_class(&aqm) => None,
            None => None,
            Some(Err(error)) => return Err(Error::aqm(link, error)),
            Some(Ok(aqm)) => Some(aqm),
        };
        let Some(aqm) = fifo else {
            return Ok(Port::Served(Box::new(ServedPort::of_link(link, seed, number, edges)?)));
        };
        let transmitter = Transmitter::new(link, seed, number, edges);
        if link.is_unwatched() && link.limit.bytes == Bytes(u64::MAX) && style.collapse {
            return Ok(Port::Plain(Box::new(PlainPort::new(link.limit.packets, transmitter))));
        }
        let rng = Stream::new(seed, Kind::Aqm, u64::from(number));
        let meter = link.record.then(|| Box::new(meter_of(link)));
        Ok(Port::Fifo(Box::new(FifoPort::new(aqm, link.limit, rng, transmitter, meter))))
    }

    /// Sojourn times are measured for each group of flows by itself too; see [`groups_at`](crate::measured::groups_at).
    pub fn tell_groups_apart(&mut self, groups: &[(u32, bool)]) {
        match self {
            Port::Fifo(port) => port.tell_groups_apart(groups),
            Port::Served(port) => port.tell_groups_apart(groups),
            Port::Plain(_) => {}
        }
    }

    /// When the AQM's timer is due.
    pub fn next_timer(&self) -> Option<u64> {
        match self {
            Port::Fifo(port) => Some(port.due()).filter(|due| *due != u64::MAX),
            Port::Served(port) => port.next_timer(),
            Port::Plain(_) => None,
        }
    }

    /// The AQM's timer may be due. `false`: it is not, and nothing has changed.
    pub fn on_timer(&mut self, now: u64) -> bool {
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
    pub fn retune(&mut self, new: AnyQdisc, now: u64) {
        match (self, new) {
            (Port::Fifo(port), AnyQdisc::Fifo(new)) => port.replace_aqm(new.into_aqm(), now),
            (Port::Served(port), new) => port.retune(new, now),
            _ => {}
        }
    }

    /// Packets waiting and the probability in force, as of just before the packet events of `now`. Only for links that
    /// are recorded.
    pub fn sample(&mut self, now: u64) -> Option<(u32, f64)> {
        match self {
            Port::Fifo(port) => port.meter().is_some().then(|| port.sample(now)),
            Port::Served(port) => port.meter().is_some().then(|| port.sample()),
            Port::Plain(_) => None,
        }
    }

    /// A window begins or ends.
    pub fn edge(&mut self, now: u64) {
        match self {
            Port::Fifo(port) => port.edge(now),
            Port::Served(port) => port.edge(now),
            Port::Plain(_) => {}
        }
    }

    /// The measurements and the totals, if this link is recorded.
    pub fn measured(&self) -> Option<(&Meter, &Totals)> {
        match self {
            Port::Fifo(port) => Some((port.meter()?, port.totals())),
            Port::Served(port) => Some((port.meter()?, port.totals())),
            Port::Plain(_) => None,
        }
    }

    /// Bits that a medium of its own offered between the edges of the windows; `None` for a wire.
    pub fn offered_bits(&mut self) -> Option<Vec<f64>> {
        match self {
            Port::Fifo(port) => port.offered_bits(),
            Port::Served(port) => port.offered_bits(),
            Port::Plain(_) => None,
        }
    }

    /// Shows the AQM's parameters in force.
    pub fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        match self {
            Port::Fifo(port) => port.settings(visit),
            Port::Served(port) => port.settings(visit),
            Port::Plain(_) => {}
        }
    }

    /// Shows what the AQM makes known of its state.
    pub fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        match self {
            Port::Fifo(port) => port.observe(visit),
            Port::Served(port) => port.observe(visit),
            Port::Plain(_) => {}
        }
    }

    /// Tells what the AQM has to say of the run.
    pub fn notes(&self, tell: &mut dyn FnMut(std::fmt::Arguments<'_>)) {
        match self {
            Port::Fifo(port) => port.notes(tell),
            Port::Served(port) => port.notes(tell),
            Port::Plain(_) => {}
        }
    }
}
