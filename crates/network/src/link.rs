//! A link by itself, for hosts without a simulator: queue, transmitter, medium and propagation, its changes, samples
//! and windows of measurement, as a plan has them.
//!
//! It runs in virtual time. The host asks [`next`](Link::next) when something happens, and calls
//! [`advance`](Link::advance) or [`arrive`](Link::arrive) when it gets there or later: everything happens at its own
//! instant, in order. At equal moments the order is that of the packet engine: AQM timers, edges of windows, changes of
//! the AQM, samples, ends of transmission, deliveries, arrivals. So a link that meets the arrivals of a simulated one
//! does the same to each packet.

use std::collections::VecDeque;

use aqumen_aqm::{Backlog, DropReason, Totals, Value};
use aqumen_result::Series;
use aqumen_scenario::{Plan, Window};

use crate::measured::{LinkSeen, edges, groups_at};
use crate::port::{Arrival, Sent, ServedPort};
use crate::{Carried, Error, Identity};

/// A link of a plan.
pub struct Link<'a, P> {
    plan: &'a Plan,
    number: u32,
    port: ServedPort<P>,
    edges: Vec<u64>,
    edges_done: usize,
    /// The run ended before its time, at the last edge.
    stopped: bool,
    /// Changes of the AQM that are done.
    changes_done: usize,
    /// When the next sample is due.
    sample_at: u64,
    /// When the transmission under way ends, or the link takes packets again.
    service_at: u64,
    /// Packets under way to the far end.
    sent: VecDeque<Underway<P>>,
    /// Packets dropped in the call under way.
    dropped: Vec<(P, DropReason)>,
    series: Series,
}

struct Underway<P> {
    packet: P,
    start: u64,
    end: u64,
    reach: u64,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It reaches the far end, marked if it was.
    Delivered {
        /// When its transmission started, nanoseconds.
        start: u64,
        /// When that ended.
        end: u64,
    },
    /// The queue dropped it, at its arrival or later.
    Dropped(DropReason),
    /// It was sent, and got lost on the wire: told when its transmission ends.
    Lost {
        /// When its transmission started.
        start: u64,
    },
}

const NEVER: u64 = u64::MAX;

/// What happens next. At equal moments the order is that of the variants.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    Timer,
    Edge,
    Change,
    Sample,
    Service,
    Delivery,
}

impl<'a, P: Carried + Copy> Link<'a, P> {
    /// Link `number` of `plan`, with the random streams that it has in the packet engine.
    pub fn new(plan: &'a Plan, number: u32) -> Result<Self, Error> {
        let edges = edges(plan);
        let mut port = ServedPort::of_link(&plan.links[number as usize], plan.seed, number, &edges)?;
        if plan.links[number as usize].record {
            port.tell_groups_apart(&groups_at(plan, number));
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
            sent: VecDeque::new(),
            dropped: Vec::new(),
            series: Series::default(),
        })
    }

    /// When something happens next by itself; `u64::MAX`: never.
    pub fn next(&self) -> u64 {
        self.next_turn().0
    }

    fn next_turn(&self) -> (u64, Turn) {
        let end = self.plan.duration.as_nanos();
        let change = self.changes().get(self.changes_done).map_or(NEVER, |(at, _)| at.as_nanos());
        let turns = [
            (self.port.next_timer().unwrap_or(NEVER), Turn::Timer),
            (self.edges.get(self.edges_done).copied().unwrap_or(NEVER), Turn::Edge),
            (if change <= end { change } else { NEVER }, Turn::Change),
            (if self.sample_at < end { self.sample_at } else { NEVER }, Turn::Sample),
            (self.service_at, Turn::Service),
            (self.sent.front().map_or(NEVER, |first| first.reach), Turn::Delivery),
        ];
        turns.into_iter().min().unwrap_or((NEVER, Turn::Delivery))
    }

    /// All that is due up to and including `until` happens; what becomes of packets, and when, goes to `tell`.
    pub fn advance(&mut self, until: u64, tell: &mut impl FnMut(u64, P, Fate)) {
        loop {
            let (now, turn) = self.next_turn();
            if now > until || now == NEVER {
                return;
            }
            match turn {
                Turn::Timer => self.port.on_timer(now),
                Turn::Edge => {
                    self.edges_done += 1;
                    self.port.edge(now);
                }
                Turn::Change => self.change(now),
                Turn::Sample => self.sample(now),
                Turn::Service => self.finish(now, tell),
                Turn::Delivery => {
                    if let Some(Underway { packet, start, end, .. }) = self.sent.pop_front() {
                        tell(now, packet, Fate::Delivered { start, end });
                    }
                }
            }
        }
    }

    /// `packet` arrives at `now`, after all that is due by then.
    pub fn arrive(&mut self, now: u64, packet: P, who: &Identity, tell: &mut impl FnMut(u64, P, Fate)) {
        self.advance(now, tell);
        if let Arrival::Waits { busy_until: Some(end) } = self.port.arrive(now, packet, who, &mut self.dropped) {
            self.service_at = end;
        }
        self.tell_dropped(now, tell);
    }

    fn finish(&mut self, now: u64, tell: &mut impl FnMut(u64, P, Fate)) {
        let (sent, busy_until) = self.port.finish(now, &mut self.dropped);
        self.service_at = busy_until.unwrap_or(NEVER);
        match sent {
            Some(Sent { packet, start, reach: Some(reach) }) => {
                self.sent.push_back(Underway { packet, start, end: now, reach });
            }
            Some(Sent { packet, start, reach: None }) => tell(now, packet, Fate::Lost { start }),
            None => {}
        }
        self.tell_dropped(now, tell);
    }

    fn tell_dropped(&mut self, now: u64, tell: &mut impl FnMut(u64, P, Fate)) {
        self.dropped.drain(..).for_each(|(packet, reason)| tell(now, packet, Fate::Dropped(reason)));
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

    /// What waits; the packet in transmission does not count.
    pub fn backlog(&self) -> Backlog {
        self.port.backlog()
    }

    /// Totals of the queue since the start.
    pub fn totals(&self) -> &Totals {
        self.port.totals()
    }

    /// The probability with which an arriving packet would be marked or dropped now.
    pub fn probability(&self) -> f64 {
        self.port.probability()
    }

    /// Queue and probability at each sample, if the link is recorded.
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// Shows the AQM's parameters in force.
    pub fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        self.port.settings(visit);
    }

    /// Tells what the AQM has to say of the run.
    pub fn notes(&self, tell: &mut dyn FnMut(std::fmt::Arguments<'_>)) {
        self.port.notes(tell);
    }

    /// The run ends at `now`, before its time and after all that was due by then: open windows
    /// of measurement end here too.
    pub fn stop(&mut self, now: u64) {
        self.edges.truncate(self.edges_done);
        if self.edges.last() != Some(&now) {
            self.edges.push(now);
            self.edges_done += 1;
            self.port.edge(now);
            self.stopped = true;
        }
    }

    /// What was seen in each of these windows, those of the plan as far as it ran; nothing if the link is not recorded.
    pub fn seen(&mut self, windows: &[Window]) -> Vec<LinkSeen> {
        let offered = self.port.offered_bits();
        let Some(meter) = self.port.meter() else { return Vec::new() };
        let link = &self.plan.links[self.number as usize];
        let last = self.edges.last().copied();
        let in_window = |window: &Window| {
            // Media tell what they offered between the edges of the plan: not up to where it was stopped.
            let cut = self.stopped && last == Some(window.end.as_nanos());
            let offered = offered.as_deref().map(|bits| if cut { &[] } else { bits });
            LinkSeen::new(self.plan, link, window, &self.edges, meter, offered, &self.series)
        };
        windows.iter().map(in_window).collect()
    }
}
