//! One link of a plan, for hosts without a simulator: queue, transmitter, medium and propagation delay, with the plan's
//! changes, samples and measurement windows.
//!
//! The link runs in virtual time. The host asks [`next`](Link::next) for the time of the next event, and calls
//! [`advance`](Link::advance) or [`arrive`](Link::arrive) at that time or later; every event happens at its own
//! instant, in order. Equal times are ordered as in the packet engine: AQM timers, window edges, changes of the AQM,
//! samples, ends of transmission, deliveries, arrivals. So equal arrivals give each packet the fate that it has in the
//! packet engine.

use std::collections::VecDeque;

use aqumen_aqm::{Backlog, DropReason, Totals, Value};
use aqumen_result::Series;
use aqumen_scenario::{Plan, Window};

use crate::measurement::{LinkMeasurement, edges, groups_at};
use crate::port::{Arrival, SentPacket, ServedPort};
use crate::{Error, Identity, WirePacket};

/// A link of a plan.
pub struct Link<'a, P> {
    plan: &'a Plan,
    number: u32,
    port: ServedPort<P>,
    edges: Vec<u64>,
    edges_done: usize,
    /// The run ended early, at the last edge.
    stopped: bool,
    /// Number of AQM changes that are done.
    changes_done: usize,
    /// Time of the next sample.
    sample_at: u64,
    /// Time at which the current transmission ends, or the link takes packets again.
    service_at: u64,
    /// Packets in flight to the far end.
    in_flight: VecDeque<InFlight<P>>,
    /// Packets dropped in the current call.
    dropped: Vec<(P, DropReason)>,
    series: Series,
}

/// A packet in flight: start and end of its transmission, and its arrival at the far end.
struct InFlight<P> {
    packet: P,
    start: u64,
    end: u64,
    reach: u64,
}

/// Fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The packet reaches the far end.
    Delivered {
        /// Start of its transmission, nanoseconds.
        start: u64,
        /// End of its transmission.
        end: u64,
    },
    /// The queue dropped the packet, at its arrival or later.
    Dropped(DropReason),
    /// The packet was lost on the wire; reported when its transmission ends.
    Lost {
        /// Start of its transmission.
        start: u64,
    },
}

const NEVER: u64 = u64::MAX;

/// Kind of an event. Equal times are ordered by the order of the variants.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum EventKind {
    Timer,
    Edge,
    Change,
    Sample,
    Service,
    Delivery,
}

impl<'a, P: WirePacket + Copy> Link<'a, P> {
    /// Makes link `number` of `plan`, with the random streams of the packet engine.
    pub fn new(plan: &'a Plan, number: u32) -> Result<Self, Error> {
        let edges = edges(plan);
        let mut port = ServedPort::for_link(&plan.links[number as usize], plan.seed, number, &edges)?;
        if plan.links[number as usize].record {
            port.separate_groups(&groups_at(plan, number));
        }
        Ok(Link {
            port,
            plan,
            number,
            edges,
            edges_done: 0,
            stopped: false,
            changes_done: 0,
            sample_at: plan.sample_interval.as_nanos(),
            service_at: NEVER,
            in_flight: VecDeque::new(),
            dropped: Vec::new(),
            series: Series::default(),
        })
    }

    /// Returns the time of the next event; `u64::MAX` if there is none.
    pub fn next(&self) -> u64 {
        self.next_event().0
    }

    fn next_event(&self) -> (u64, EventKind) {
        let end = self.plan.duration.as_nanos();
        let change = self.changes().get(self.changes_done).map_or(NEVER, |(at, _)| at.as_nanos());
        let events = [
            (self.port.next_timer().unwrap_or(NEVER), EventKind::Timer),
            (self.edges.get(self.edges_done).copied().unwrap_or(NEVER), EventKind::Edge),
            (if change <= end { change } else { NEVER }, EventKind::Change),
            (if self.sample_at < end { self.sample_at } else { NEVER }, EventKind::Sample),
            (self.service_at, EventKind::Service),
            (self.in_flight.front().map_or(NEVER, |first| first.reach), EventKind::Delivery),
        ];
        events.into_iter().min().unwrap_or((NEVER, EventKind::Delivery))
    }

    /// Runs all events up to and including `until`, and reports time and fate of each packet.
    pub fn advance(&mut self, until: u64, report: &mut impl FnMut(u64, P, Fate)) {
        loop {
            let (now, kind) = self.next_event();
            if now > until || now == NEVER {
                return;
            }
            match kind {
                EventKind::Timer => self.port.on_timer(now),
                EventKind::Edge => {
                    self.edges_done += 1;
                    self.port.edge(now);
                }
                EventKind::Change => self.change(now),
                EventKind::Sample => self.sample(now),
                EventKind::Service => self.finish(now, report),
                EventKind::Delivery => {
                    if let Some(InFlight { packet, start, end, .. }) = self.in_flight.pop_front() {
                        report(now, packet, Fate::Delivered { start, end });
                    }
                }
            }
        }
    }

    /// Lets `packet` arrive at `now`, after all events that are due by then.
    pub fn arrive(&mut self, now: u64, packet: P, who: &Identity, report: &mut impl FnMut(u64, P, Fate)) {
        self.advance(now, report);
        if let Arrival::Waits { busy_until: Some(end) } = self.port.arrive(now, packet, who, &mut self.dropped) {
            self.service_at = end;
        }
        self.report_dropped(now, report);
    }

    fn finish(&mut self, now: u64, report: &mut impl FnMut(u64, P, Fate)) {
        let (sent, busy_until) = self.port.finish(now, &mut self.dropped);
        self.service_at = busy_until.unwrap_or(NEVER);
        match sent {
            Some(SentPacket { packet, start, reach: Some(reach) }) => {
                self.in_flight.push_back(InFlight { packet, start, end: now, reach });
            }
            Some(SentPacket { packet, start, reach: None }) => report(now, packet, Fate::Lost { start }),
            None => {}
        }
        self.report_dropped(now, report);
    }

    fn report_dropped(&mut self, now: u64, report: &mut impl FnMut(u64, P, Fate)) {
        self.dropped.drain(..).for_each(|(packet, reason)| report(now, packet, Fate::Dropped(reason)));
    }

    fn changes(&self) -> &'a [(aqumen_units::Instant, aqumen_scenario::AqmChoice)] {
        self.plan.links[self.number as usize].line.as_ref().map_or(&[], |line| &line.aqms)
    }

    #[cold]
    fn change(&mut self, now: u64) {
        let (_, choice) = &self.changes()[self.changes_done];
        self.changes_done += 1;
        // The plan was made of AQMs that can be built.
        if let Some(Ok(new)) = choice.build_qdisc(self.plan.links[self.number as usize].limit) {
            self.port.retune(new, now);
        }
    }

    fn sample(&mut self, now: u64) {
        if self.port.meter().is_some() {
            let (queue, probability) = self.port.sample();
            self.series.sample(now as f64 * 1e-9, f64::from(queue), probability);
            self.port.observe(&mut |name, value| self.series.observe(name, value));
        }
        self.sample_at += self.plan.sample_interval.as_nanos();
    }

    /// Returns the waiting packets and bytes, without the packet in transmission.
    pub fn backlog(&self) -> Backlog {
        self.port.backlog()
    }

    /// Returns the queue's totals since the start.
    pub fn totals(&self) -> &Totals {
        self.port.totals()
    }

    /// Returns the probability with which an arriving packet would be marked or dropped now.
    pub fn probability(&self) -> f64 {
        self.port.probability()
    }

    /// Returns queue and probability at each sample, if the link is recorded.
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// Visits the AQM's parameters in force.
    pub fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        self.port.settings(visit);
    }

    /// Reports the AQM's notes on the run.
    pub fn notes(&self, report: &mut dyn FnMut(std::fmt::Arguments<'_>)) {
        self.port.notes(report);
    }

    /// Ends the run early at `now`, after all events that are due by then: open measurement windows end here too.
    pub fn stop(&mut self, now: u64) {
        self.edges.truncate(self.edges_done);
        if self.edges.last() != Some(&now) {
            self.edges.push(now);
            self.edges_done += 1;
            self.port.edge(now);
            self.stopped = true;
        }
    }

    /// Returns the measurements in each of `windows`; none if the link is not recorded.
    pub fn measurements(&mut self, windows: &[Window]) -> Vec<LinkMeasurement> {
        let offered = self.port.offered_bits();
        let Some(meter) = self.port.meter() else { return Vec::new() };
        let link = &self.plan.links[self.number as usize];
        let last = self.edges.last().copied();
        let in_window = |window: &Window| {
            // Media know what they offered between the edges of the plan, not up to an early end.
            let cut = self.stopped && last == Some(window.end.as_nanos());
            let offered = offered.as_deref().map(|bits| if cut { &[] } else { bits });
            LinkMeasurement::new(self.plan, link, window, &self.edges, meter, offered, &self.series)
        };
        windows.iter().map(in_window).collect()
    }
}
