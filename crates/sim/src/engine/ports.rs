//! Events of ports: arrivals, ends of transmission, timers of AQMs.
//!
//! At a process with a single port, no packet comes back within the step. All packets of the step therefore go through
//! the port in one loop, with the timer of its AQM between them.

use aqumen_aqm::Qdisc;
use aqumen_network::port::{Arrival, FifoPort, PlainPort, Port, SentPacket, ServedPort, Server, ServerWork};
use aqumen_network::{Identities, Identity};

use super::batch::{Batch, EventKey};
use super::dispatch::Dispatcher;
use super::moment::NEVER;
use crate::event::Event;
use crate::fetch::{STEP, fetch, fetch_at};
use crate::measure::segments::Segments;

#[derive(Clone)]
pub(super) struct Ports {
    pub(super) all: Vec<Port<Event>>,
    identities: Identities,
    /// Number of each port's link in the plan.
    pub(super) links: Vec<u32>,
    /// End of the current transmission at each served port that is a process of its own.
    services: Vec<u64>,
    /// Time of the AQM's timer at each port that is a process of its own.
    timers: Vec<u64>,
}

/// A port that computes a packet's departure at its arrival.
trait InlinePort {
    fn take(&mut self, event: &mut Event, flow: u32) -> Arrival;

    /// Returns the time of the AQM's timer.
    fn due(&self) -> u64;
    fn on_timer(&mut self, now: u64);
}

impl InlinePort for FifoPort {
    #[inline(always)]
    fn take(&mut self, event: &mut Event, flow: u32) -> Arrival {
        self.arrive(event.at, event, flow)
    }

    #[inline(always)]
    fn due(&self) -> u64 {
        FifoPort::due(self)
    }

    fn on_timer(&mut self, now: u64) {
        FifoPort::on_timer(self, now);
    }
}

impl InlinePort for PlainPort {
    #[inline(always)]
    fn take(&mut self, event: &mut Event, _flow: u32) -> Arrival {
        self.arrive(event.at, event.wire_bytes())
    }

    #[inline(always)]
    fn due(&self) -> u64 {
        NEVER
    }

    fn on_timer(&mut self, _now: u64) {}
}

/// Arrivals and ends of transmission at a served port, up to a limit.
struct ServedRun<'r, 'd> {
    dispatcher: &'r mut Dispatcher<'d>,
    identities: &'r Identities,
    batch: &'r mut Batch,
    /// End of the current transmission.
    service: &'r mut u64,
    link: u32,
    /// Priority of the ends of transmission.
    priority: u32,
    limit: u64,
}

impl ServerWork<Event> for ServedRun<'_, '_> {
    /// Number of events.
    type Output = u64;

    #[inline(never)]
    fn run(self, server: &mut Server<Event>, qdisc: &mut impl Qdisc) -> u64 {
        let ServedRun { dispatcher, identities, batch, service, link, priority, limit } = self;
        let paths = dispatcher.mailboxes.priorities.paths;
        let mut done = 0;
        loop {
            let (now, serves);
            if let Some(event) = batch.take_before(batch.key_at(limit.min(*service))) {
                now = event.at;
                let flow = dispatcher.paths.flow_of(event.priority() - paths);
                (_, serves) = server.enter(qdisc, now, event, &identities.packet(flow, event.is_ack()));
            } else if *service < limit {
                now = *service;
                if let Some(sent) = server.leave(qdisc, now) {
                    dispatcher.send_served(link, (now, priority), &sent);
                }
                serves = true;
            } else {
                return done;
            }
            if serves {
                *service = server.serve(qdisc, now).unwrap_or(NEVER);
            }
            server.release_dropped(now, |event, _| dispatcher.discard(&event));
            done += 1;
        }
    }
}

impl Ports {
    pub(super) fn new(all: Vec<Port<Event>>, identities: Identities, links: Vec<u32>) -> Self {
        Ports { services: vec![NEVER; all.len()], timers: vec![NEVER; all.len()], all, identities, links }
    }

    /// Returns the time of the next timer or end of service at a port that is a process of its own.
    pub(super) fn due(&self) -> u64 {
        self.services.iter().chain(&self.timers).fold(NEVER, |first, due| first.min(*due))
    }

    /// Runs the process of port `number` up to the key `until`, exclusive; returns the number of events. The port keeps
    /// the times of its AQM's timer and its end of service; all other events are packets.
    pub(super) fn run_process(
        &mut self,
        dispatcher: &mut Dispatcher<'_>,
        process: usize,
        number: u32,
        until: EventKey,
    ) -> u64 {
        let (port, link) = (number as usize, self.links[number as usize]);
        let mut done = 0;
        loop {
            done += match &mut self.all[port] {
                Port::Fifo(fifo) => {
                    let done = dispatcher.pass_all(&mut **fifo, process, (number, link), until);
                    self.timers[port] = fifo.due();
                    done
                }
                Port::Plain(plain) => dispatcher.pass_all(&mut **plain, process, (number, link), until),
                Port::Served(_) => self.run_served_and_timers(dispatcher, process, number, until),
            };
            let due = self.timers[port].min(self.services[port]);
            if !dispatcher.mailboxes.step(process, until, due) {
                return done;
            }
        }
    }

    /// Runs a served port through the current step, before `until`; returns the number of events.
    fn run_served_and_timers(
        &mut self,
        dispatcher: &mut Dispatcher<'_>,
        process: usize,
        number: u32,
        until: EventKey,
    ) -> u64 {
        let mut done = 0;
        loop {
            let timer = (self.timers[number as usize], number);
            done += self.run_served(dispatcher, process, number, until.min(timer));
            if timer >= until.min(dispatcher.mailboxes.processes[process].step_end()) {
                return done;
            }
            done += 1;
            self.on_timer(dispatcher, timer.0, number);
        }
    }

    /// Runs a served port between two timers: arrivals and ends of transmission.
    fn run_served(&mut self, dispatcher: &mut Dispatcher<'_>, process: usize, number: u32, until: EventKey) -> u64 {
        let Ports { all, identities, links, services, .. } = self;
        let Port::Served(port) = &mut all[number as usize] else { return 0 };
        let (link, service) = (links[number as usize], &mut services[number as usize]);
        let here = &mut dispatcher.mailboxes.processes[process];
        // At equal times, ends of transmission and then packets come after all other events.
        let limit = until.min(here.step_end()).0;
        if here.batch.is_done() && *service >= limit {
            return 0;
        }
        let mut batch = std::mem::take(&mut here.batch);
        let priority = dispatcher.mailboxes.priorities.service + number;
        let run = ServedRun { dispatcher, identities, batch: &mut batch, service, link, priority, limit };
        let done = port.with_discipline(run);
        dispatcher.mailboxes.processes[process].batch = batch;
        done
    }

    /// Notes the end of the current transmission at a served port, if there is one.
    #[inline]
    fn await_service_end(&mut self, dispatcher: &mut Dispatcher<'_>, number: u32, end: Option<u64>) {
        if dispatcher.mailboxes.is_alone(number) {
            self.services[number as usize] = end.unwrap_or(NEVER);
        } else if let Some(end) = end {
            dispatcher.mailboxes.schedule(end, dispatcher.mailboxes.priorities.service + number);
        }
    }

    /// Lets a packet of `flow` arrive at a port of a process with more than that port.
    #[inline(always)]
    pub(super) fn arrive(&mut self, dispatcher: &mut Dispatcher<'_>, number: u32, flow: u32, event: Event) {
        let link = self.links[number as usize];
        match &mut self.all[number as usize] {
            Port::Fifo(port) => dispatcher.pass(&mut **port, link, event),
            Port::Plain(port) => dispatcher.pass(&mut **port, link, event),
            Port::Served(_) => self.arrive_at_served(dispatcher, number, flow, &event),
        }
    }

    #[inline(never)]
    fn arrive_at_served(&mut self, dispatcher: &mut Dispatcher<'_>, number: u32, flow: u32, event: &Event) {
        let Port::Served(port) = &mut self.all[number as usize] else { return };
        if let Some(end) = dispatcher.arrive_at_served(port, &self.identities.packet(flow, event.is_ack()), event) {
            self.await_service_end(dispatcher, number, Some(end));
        }
    }

    /// Schedules the timer of a port's AQM anew.
    pub(super) fn arm(&mut self, dispatcher: &mut Dispatcher<'_>, number: u32) {
        let due = self.all[number as usize].next_timer();
        if dispatcher.mailboxes.is_alone(number) {
            self.timers[number as usize] = due.unwrap_or(NEVER);
        } else if let Some(due) = due {
            dispatcher.mailboxes.schedule(due, number);
        }
    }

    /// Runs the timer of a port's AQM.
    pub(super) fn on_timer(&mut self, dispatcher: &mut Dispatcher<'_>, now: u64, number: u32) {
        // The timer of a replaced AQM has no effect.
        if self.all[number as usize].on_timer(now) {
            self.arm(dispatcher, number);
        }
    }

    /// Ends a transmission at a served port.
    #[inline(never)]
    pub(super) fn on_service_end(&mut self, dispatcher: &mut Dispatcher<'_>, now: u64, number: u32) {
        let Port::Served(port) = &mut self.all[number as usize] else { return };
        let key = (now, dispatcher.mailboxes.priorities.service + number);
        let end = dispatcher.end_service(port, self.links[number as usize], key);
        self.await_service_end(dispatcher, number, end);
    }
}

impl Dispatcher<'_> {
    /// Runs an inline port through the current step, before `until`, and sends its packets on; returns the number of
    /// events.
    #[inline(never)]
    fn pass_all(
        &mut self,
        port: &mut impl InlinePort,
        process: usize,
        (number, link): (u32, u32),
        until: EventKey,
    ) -> u64 {
        let here = &mut self.mailboxes.processes[process];
        let until = until.min(here.step_end());
        if here.batch.is_done() && (port.due(), number) >= until {
            return 0;
        }
        let mut batch = std::mem::take(&mut here.batch);
        let mut done = 0u64;
        loop {
            let timer = (port.due(), number);
            let stop = batch.key_at(until.min(timer).0);
            while let Some(event) = batch.take_before(stop) {
                if self.far && done.is_multiple_of(STEP as u64) {
                    self.fetch_ahead(&batch, if done == 0 { 0 } else { STEP });
                }
                done += 1;
                self.pass(port, link, event);
            }
            if timer >= until {
                break;
            }
            done += 1;
            port.on_timer(timer.0);
        }
        self.mailboxes.processes[process].batch = batch;
        done
    }

    /// Lets a packet arrive at a served port; returns the end of its transmission, if that starts at once.
    #[inline]
    fn arrive_at_served(&mut self, port: &mut ServedPort<Event>, who: &Identity, event: &Event) -> Option<u64> {
        let mut dropped = Vec::new();
        let arrival = port.arrive(event.at, *event, who, &mut dropped);
        dropped.iter().for_each(|(event, _)| self.discard(event));
        if let Arrival::Waits { busy_until } = arrival { busy_until } else { None }
    }

    /// Ends a transmission on `link` at `key`; returns the end of the next one, if it starts.
    #[inline]
    fn end_service(&mut self, port: &mut ServedPort<Event>, link: u32, key: EventKey) -> Option<u64> {
        let mut dropped = Vec::new();
        let (sent, busy_until) = port.finish(key.0, &mut dropped);
        dropped.iter().for_each(|(event, _)| self.discard(event));
        if let Some(sent) = sent {
            self.send_served(link, key, &sent);
        }
        busy_until
    }

    /// Sends a packet on whose transmission on `link` has ended at `key`.
    #[inline(always)]
    fn send_served(&mut self, link: u32, key: EventKey, sent: &SentPacket<Event>) {
        if self.log.is_some() {
            self.note(key, link, sent.start, sent.packet);
        }
        match sent.reach {
            Some(reach) => self.send(self.leg_of(&sent.packet) + 1, reach, &sent.packet),
            None => self.discard(&sent.packet),
        }
    }

    /// Lets a packet arrive at an inline port, and sends it on unless it is dropped.
    #[inline(always)]
    fn pass(&mut self, port: &mut impl InlinePort, link: u32, mut event: Event) {
        let leg = self.leg_of(&event);
        match port.take(&mut event, self.paths.flow_of(leg)) {
            Arrival::Leaves { start, reach } => {
                if self.log.is_some() {
                    self.note(event.key(), link, start, event);
                }
                self.send(leg + 1, reach, &event);
            }
            Arrival::Lost { start, end } => {
                if self.log.is_some() {
                    self.note(event.key(), link, start, event);
                }
                self.lose_ahead(event.moved(end, event.priority()));
            }
            Arrival::Dropped => self.lose_ahead(event),
            // The link never works again.
            Arrival::Waits { .. } => {}
        }
    }

    /// Logs that the transmission of a packet on `link` starts at `start`; `key`: event that computed it.
    #[cold]
    #[inline(never)]
    fn note(&mut self, key: EventKey, link: u32, start: u64, event: Event) {
        let flow = self.paths.flow_of(self.leg_of(&event));
        if let Some(log) = &mut self.log {
            log.note(key, link, start, flow, event, (&self.acks, &self.packets));
        }
    }

    /// [Fetches](crate::fetch) state for the next packets. The `first` of them were fetched before; of these the
    /// receivers' separate state follows.
    #[inline(never)]
    fn fetch_ahead(&self, batch: &Batch, first: usize) {
        // A timer's priority is below that of all legs.
        let leg_of = |event: &Event| event.priority().wrapping_sub(self.mailboxes.priorities.paths);
        for event in batch.ahead(0..first).filter(|event| !event.is_ack()) {
            let sink = self.sinks.get(self.paths.flow_of(leg_of(event)) as usize);
            sink.and_then(|sink| sink.receiver.extras()).into_iter().for_each(fetch);
        }
        for event in batch.ahead(first..2 * STEP) {
            let leg = leg_of(event);
            self.paths.fetch(leg);
            if !event.is_ack() {
                let flow = self.paths.flow_of(leg);
                fetch_at(&self.sinks, flow as usize);
                if Segments::wants(flow, &event.as_segment()) {
                    self.segments.fetch(flow);
                }
            }
        }
    }
}
