//! A port: the queue and transmitter at the head of a link that several flows share, or that is measured.
//!
//! Three kinds give equal results. [`FifoPort`] computes a packet's departure when it arrives and needs no further
//! event; it serves first-in first-out queues whose AQM decides at arrival. [`ServedPort`] takes each packet from a
//! queue discipline when the link is free, at the price of an event per transmission; it serves AQMs that decide at the
//! head and disciplines of several queues. [`PlainPort`] is a [`FifoPort`] without AQM and measurements.

mod common;
mod fifo;
mod plain;
mod served;

use aqumen_aqm::{AnyAqm, AnyQdisc, Aqm, Backlog, Totals, Value};
use aqumen_result::Meter;
use aqumen_scenario::Link;
use aqumen_scenario::streams::{Kind, Stream};
use aqumen_units::Bytes;

use crate::channel::Use;
use crate::transmitter::Transmitter;
use crate::{Error, WirePacket};

pub use common::Arrival;
use common::meter_of;
pub use fifo::FifoPort;
pub use plain::PlainPort;
pub use served::{SentPacket, ServedPort, Server, ServerWork};

/// A port of any kind, for packets or handles `P`.
#[derive(Clone)]
pub enum Port<P> {
    /// Departures are computed at arrival.
    Fifo(Box<FifoPort>),
    /// A discipline chooses each packet.
    Served(Box<ServedPort<P>>),
    /// A drop-tail queue without measurements.
    Plain(Box<PlainPort>),
}

/// Kinds of port that a host allows. Results do not depend on it.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Plain ports where nothing is measured.
    pub collapse: bool,
    /// Served ports only.
    pub served: bool,
}

impl<P: WirePacket + Copy> Port<P> {
    /// Makes the port of `link`, number `number` of the plan. `edges`: of the windows; `classes`: packets may have
    /// other classes than the default.
    pub fn new(link: &Link, seed: u64, number: u32, style: Style, edges: &[u64], classes: bool) -> Result<Self, Error> {
        // An AQM that an event installs may decide at the head as well.
        let later = link.line.iter().flat_map(|line| &line.aqms).filter_map(|(_, choice)| choice.build());
        let by_class = |aqm: &AnyAqm| classes && matches!(aqm, AnyAqm::Threshold(_));
        let served = style.served || later.flatten().any(|aqm| aqm.hooks().decides_at_head || by_class(&aqm));
        let fifo = match link.aqm.build() {
            Some(Ok(aqm)) if served || aqm.hooks().decides_at_head || by_class(&aqm) => None,
            None => None,
            Some(Err(error)) => return Err(Error::aqm(link, error)),
            Some(Ok(aqm)) => Some(aqm),
        };
        let Some(aqm) = fifo else {
            return Ok(Port::Served(Box::new(ServedPort::for_link(link, seed, number, edges)?)));
        };
        let transmitter = Transmitter::new(link, seed, number, edges);
        if link.is_unobserved() && link.limit.bytes == Bytes(u64::MAX) && style.collapse {
            return Ok(Port::Plain(Box::new(PlainPort::new(link.limit.packets, transmitter))));
        }
        let rng = Stream::new(seed, Kind::Aqm, u64::from(number));
        let meter = link.record.then(|| Box::new(meter_of(link)));
        Ok(Port::Fifo(Box::new(FifoPort::new(aqm, link.limit, rng, transmitter, meter))))
    }

    /// Measures sojourn times for each group of flows too; see [`groups_at`](crate::measurement::groups_at).
    pub fn separate_groups(&mut self, groups: &[(u32, bool)]) {
        match self {
            Port::Fifo(port) => port.separate_groups(groups),
            Port::Served(port) => port.separate_groups(groups),
            Port::Plain(_) => {}
        }
    }

    /// Returns the time of the AQM's timer.
    pub fn next_timer(&self) -> Option<u64> {
        match self {
            Port::Fifo(port) => Some(port.due()).filter(|due| *due != u64::MAX),
            Port::Served(port) => port.next_timer(),
            Port::Plain(_) => None,
        }
    }

    /// Runs the AQM's timer if it is due; returns whether it was.
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

    /// Returns whether the port can replace its discipline by `new` while it runs.
    pub fn accepts(&self, new: &AnyQdisc) -> bool {
        match (self, new) {
            (Port::Fifo(_), AnyQdisc::Fifo(new)) => !new.aqm().hooks().decides_at_head,
            (Port::Served(port), AnyQdisc::Fifo(_)) => port.is_fifo(),
            _ => false,
        }
    }

    /// Replaces the discipline by `new`, which takes over the waiting packets, before the packet events of `now`.
    pub fn retune(&mut self, new: AnyQdisc, now: u64) {
        match (self, new) {
            (Port::Fifo(port), AnyQdisc::Fifo(new)) => port.replace_aqm(new.into_aqm(), now),
            (Port::Served(port), new) => port.retune(new, now),
            _ => {}
        }
    }

    /// Returns the queue length and the probability just before the packet events of `now`, if the link is recorded.
    pub fn sample(&mut self, now: u64) -> Option<(u32, f64)> {
        match self {
            Port::Fifo(port) => port.meter().is_some().then(|| port.sample(now)),
            Port::Served(port) => port.meter().is_some().then(|| port.sample()),
            Port::Plain(_) => None,
        }
    }

    /// Returns the packets that wait just before the packet events of `now`, and the probability. Nothing is recorded.
    pub fn look(&mut self, now: u64) -> (Backlog, f64) {
        match self {
            Port::Fifo(port) => port.look(now),
            Port::Served(port) => (port.backlog(), port.probability()),
            Port::Plain(_) => (Backlog::default(), 0.0),
        }
    }

    /// Returns the packets that wait, in the order of their arrival; `None` where departures are computed at arrival.
    pub fn contents(&self) -> Option<Vec<P>> {
        match self {
            Port::Served(port) => Some(port.contents()),
            _ => None,
        }
    }

    /// Returns the end of the current transmission, or of the next one that is known.
    pub fn transmission_end(&self) -> Option<u64> {
        match self {
            Port::Fifo(port) => port.transmission_end(),
            Port::Served(port) => port.transmission_end(),
            Port::Plain(_) => None,
        }
    }

    /// Draws from other random numbers from now on: those of `seed` for link `number`.
    pub fn reseed(&mut self, seed: u64, number: u32) {
        let rng = Stream::new(seed, Kind::Aqm, u64::from(number));
        let losses = Use::Loss.stream(seed, number);
        match self {
            Port::Fifo(port) => port.reseed(rng, losses),
            Port::Served(port) => port.reseed(rng, losses),
            Port::Plain(_) => {}
        }
    }

    /// Begins or ends a measurement window.
    pub fn edge(&mut self, now: u64) {
        match self {
            Port::Fifo(port) => port.edge(now),
            Port::Served(port) => port.edge(now),
            Port::Plain(_) => {}
        }
    }

    /// Returns the measurements and the totals, if the link is recorded.
    pub fn measured(&self) -> Option<(&Meter, &Totals)> {
        match self {
            Port::Fifo(port) => Some((port.meter()?, port.totals())),
            Port::Served(port) => Some((port.meter()?, port.totals())),
            Port::Plain(_) => None,
        }
    }

    /// Returns the bits that a medium offered between the edges of the windows; `None` for a wire.
    pub fn offered_bits(&mut self) -> Option<Vec<f64>> {
        match self {
            Port::Fifo(port) => port.offered_bits(),
            Port::Served(port) => port.offered_bits(),
            Port::Plain(_) => None,
        }
    }

    /// Visits the AQM's parameters in force.
    pub fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        match self {
            Port::Fifo(port) => port.settings(visit),
            Port::Served(port) => port.settings(visit),
            Port::Plain(_) => {}
        }
    }

    /// Visits the state variables that the AQM shows.
    pub fn observe(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        match self {
            Port::Fifo(port) => port.observe(visit),
            Port::Served(port) => port.observe(visit),
            Port::Plain(_) => {}
        }
    }

    /// Reports the AQM's notes on the run.
    pub fn notes(&self, report: &mut dyn FnMut(std::fmt::Arguments<'_>)) {
        match self {
            Port::Fifo(port) => port.notes(report),
            Port::Served(port) => port.notes(report),
            Port::Plain(_) => {}
        }
    }
}
