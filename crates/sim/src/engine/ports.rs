//! The ports: packets arrive there and leave, transmissions end, timers of AQMs go off.
//!
//! Where a port is all there is at a place, nothing that a packet causes on its way can come back within the step: all
//! packets of the step go through the port and on their way, one after the other, and its AQM's timer goes off between
//! them.

use aqumen_network::port::{Arrival, FifoPort, PlainPort, Port, ServedPort};
use aqumen_network::{Identities, Identity};

use super::batch::{Batch, Turn};
use super::moment::NEVER;
use super::ways::Ways;
use crate::event::Event;
use crate::fetch::{STEP, fetch, fetch_at};
use crate::measure::segments::Segments;

pub(super) struct Ports {
    pub(super) all: Vec<Port<Event>>,
    identities: Identities,
    /// The link of each port, by number in the plan.
    pub(super) links: Vec<u32>,
    /// When the transmission under way at each served port that is a place by itself ends.
    services: Vec<u64>,
    /// When the AQM's timer of each port that is a place by itself is due.
    timers: Vec<u64>,
}

/// A port that knows what becomes of a packet when it arrives.
trait Prompt {
    fn take(&mut self, event: &mut Event, flow: u32) -> Arrival;

    /// When its AQM's timer is due, and that it is.
    fn due(&self) -> u64;
    fn on_timer(&mut self, now: u64);
}

impl Prompt for FifoPort {
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

impl Prompt for PlainPort {
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

impl Ports {
    pub(super) fn new(all: Vec<Port<Event>>, identities: Identities, links: Vec<u32>) -> Self {
        Ports { services: vec![NEVER; all.len()], timers: vec![NEVER; all.len()], all, identities, links }
    }

    /// When something is due at a port that is a place by itself, packets apart.
    pub(super) fn due(&self) -> u64 {
        self.services.iter().chain(&self.timers).fold(NEVER, |first, due| first.min(*due))
    }

    /// These places, each with the port that is all there is, go on up to, not including, the turn of `until`. How many
    /// events that is.
    pub(super) fn run_places(&mut self, ways: &mut Ways<'_>, places: &[(usize, u32)], until: Turn) -> u64 {
        places.iter().map(|&(place, number)| self.run_place(ways, place, number, until)).sum()
    }

    /// A place at which port `number` is all there is goes on up to, not including, the turn of `until`. The port knows
    /// when its AQM's timer is due and when its transmission ends; all else that happens there are packets. How many
    /// events that is.
    pub(super) fn run_place(&mut self, ways: &mut Ways<'_>, place: usize, number: u32, until: Turn) -> u64 {
        let (port, link) = (number as usize, self.links[number as usize]);
        let mut done = 0;
        loop {
            done += match &mut self.all[port] {
                Port::Fifo(fifo) => {
                    let done = ways.pass_all(&mut **fifo, place, (number, link), until);
                    self.timers[port] = fifo.due();
                    done
                }
                Port::Plain(plain) => ways.pass_all(&mut **plain, place, (number, link), until),
                Port::Served(_) => self.run_served_and_timers(ways, place, number, until),
            };
            let due = self.timers[port].min(self.services[port]);
            if !ways.post.step(place, until, due) {
                return done;
            }
        }
    }

    /// All that happens in the present step and before `until` at a port that serves. How many events that is.
    fn run_served_and_timers(&mut self, ways: &mut Ways<'_>, place: usize, number: u32, until: Turn) -> u64 {
        let mut done = 0;
        loop {
            let timer = (self.timers[number as usize], number);
            done += self.run_served(ways, place, number, until.min(timer));
            if timer >= until.min(ways.post.places[place].step_end()) {
                return done;
            }
            done += 1;
            self.on_timer(ways, timer.0, number);
        }
    }

    /// The same between two timers: packets arrive, transmissions end.
    #[inline(never)]
    fn run_served(&mut self, ways: &mut Ways<'_>, place: usize, number: u32, until: Turn) -> u64 {
        let Ports { all, identities, links, services, .. } = self;
        let Port::Served(port) = &mut all[number as usize] else { return 0 };
        let (link, service) = (links[number as usize], &mut services[number as usize]);
        let (rank, lanes) = (ways.post.ranks.service + number, ways.post.ranks.lanes);
        let here = &mut ways.post.places[place];
        // Of one moment the ends of transmissions and then packets come after all else.
        let limit = until.min(here.step_end()).0;
        let mut batch = std::mem::take(&mut here.batch);
        let mut done = 0;
        loop {
            if let Some(event) = batch.take_before(batch.key_at(limit.min(*service))) {
                let flow = ways.lanes.flow_of(event.rank() - lanes);
                if let Some(end) = ways.arrive_at_served(port, &identities.packet(flow, event.is_ack()), &event) {
                    *service = end;
                }
            } else if *service < limit {
                *service = ways.end_service(port, link, (*service, rank)).unwrap_or(NEVER);
            } else {
                break;
            }
            done += 1;
        }
        ways.post.places[place].batch = batch;
        done
    }

    /// The transmission under way at a served port ends at `end`, if there is one.
    #[inline]
    fn await_service_end(&mut self, ways: &mut Ways<'_>, number: u32, end: Option<u64>) {
        if ways.post.is_alone(number) {
            self.services[number as usize] = end.unwrap_or(NEVER);
        } else if let Some(end) = end {
            ways.post.schedule(end, ways.post.ranks.service + number);
        }
    }

    /// A packet of `flow` arrives at a port, at whose place more happens.
    #[inline(always)]
    pub(super) fn arrive(&mut self, ways: &mut Ways<'_>, number: u32, flow: u32, event: Event) {
        let link = self.links[number as usize];
        match &mut self.all[number as usize] {
            Port::Fifo(port) => ways.pass(&mut **port, link, event),
            Port::Plain(port) => ways.pass(&mut **port, link, event),
            Port::Served(_) => self.arrive_at_served(ways, number, flow, &event),
        }
    }

    fn arrive_at_served(&mut self, ways: &mut Ways<'_>, number: u32, flow: u32, event: &Event) {
        let Port::Served(port) = &mut self.all[number as usize] else { return };
        if let Some(end) = ways.arrive_at_served(port, &self.identities.packet(flow, event.is_ack()), event) {
            self.await_service_end(ways, number, Some(end));
        }
    }

    /// The AQM's timer of a port may be due at another moment than it was.
    pub(super) fn arm(&mut self, ways: &mut Ways<'_>, number: u32) {
        let due = self.all[number as usize].next_timer();
        if ways.post.is_alone(number) {
            self.timers[number as usize] = due.unwrap_or(NEVER);
        } else if let Some(due) = due {
            ways.post.schedule(due, number);
        }
    }

    /// The timer of a port's AQM is due.
    pub(super) fn on_timer(&mut self, ways: &mut Ways<'_>, now: u64, number: u32) {
        // A timer of an AQM that was replaced comes to nothing.
        if self.all[number as usize].on_timer(now) {
            self.arm(ways, number);
        }
    }

    /// A served port ends a transmission.
    pub(super) fn on_service_end(&mut self, ways: &mut Ways<'_>, now: u64, number: u32) {
        let Port::Served(port) = &mut self.all[number as usize] else { return };
        let turn = (now, ways.post.ranks.service + number);
        let end = ways.end_service(port, self.links[number as usize], turn);
        self.await_service_end(ways, number, end);
    }
}

impl Ways<'_> {
    /// All that happens in the present step and before `until` at a port that is a place by itself, and what becomes of
    /// the packets there. How many events that is.
    #[inline(never)]
    fn pass_all(&mut self, port: &mut impl Prompt, place: usize, (number, link): (u32, u32), until: Turn) -> u64 {
        let here = &mut self.post.places[place];
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
        self.post.places[place].batch = batch;
        done
    }

    /// A packet arrives at a port that serves: when its transmission ends, if that starts at once.
    #[inline]
    fn arrive_at_served(&mut self, port: &mut ServedPort<Event>, who: &Identity, event: &Event) -> Option<u64> {
        let mut dropped = Vec::new();
        let arrival = port.arrive(event.at, *event, who, &mut dropped);
        dropped.iter().for_each(|(event, _)| self.discard(event));
        if let Arrival::Waits { busy_until } = arrival { busy_until } else { None }
    }

    /// In its `turn` a port that serves `link` ends a transmission: when the next ends, if one starts.
    #[inline]
    fn end_service(&mut self, port: &mut ServedPort<Event>, link: u32, turn: Turn) -> Option<u64> {
        let mut dropped = Vec::new();
        let (sent, busy_until) = port.finish(turn.0, &mut dropped);
        dropped.iter().for_each(|(event, _)| self.discard(event));
        if let Some(sent) = sent {
            if self.log.is_some() {
                self.note(turn, link, sent.start, sent.packet);
            }
            match sent.reach {
                Some(reach) => self.send_rarely(self.lane_of(&sent.packet) + 1, reach, &sent.packet),
                None => self.discard(&sent.packet),
            }
        }
        busy_until
    }

    /// A packet arrives at a port, and leaves it if it is not dropped.
    #[inline(always)]
    fn pass(&mut self, port: &mut impl Prompt, link: u32, mut event: Event) {
        let lane = self.lane_of(&event);
        match port.take(&mut event, self.lanes.flow_of(lane)) {
            Arrival::Leaves { start, reach } => {
                if self.log.is_some() {
                    self.note(event.turn(), link, start, event);
                }
                self.send(lane + 1, reach, &event);
            }
            Arrival::Lost { start } => self.lose(Some(start), link, event),
            Arrival::Waits { .. } | Arrival::Dropped => self.lose(None, link, event),
        }
    }

    /// A packet does not leave a port at which it arrived, or gets lost after its transmission, which begins at
    /// `start`. By value: what rarely called code may look at has to lie in memory all the time.
    #[cold]
    #[inline(never)]
    fn lose(&mut self, start: Option<u64>, link: u32, event: Event) {
        if let Some(start) = start
            && self.log.is_some()
        {
            self.note(event.turn(), link, start, event);
        }
        self.discard(&event);
    }

    /// In its `turn` a port learned that the transmission of a packet on `link` starts at `start`.
    #[cold]
    #[inline(never)]
    fn note(&mut self, turn: Turn, link: u32, start: u64, event: Event) {
        let flow = self.lanes.flow_of(self.lane_of(&event));
        if let Some(log) = &mut self.log {
            log.note(turn, link, start, flow, event, (&self.acks, &self.packets));
        }
    }

    /// [Fetches](crate::fetch) what the packets to come need; the `first` of them were fetched before, so that what
    /// their receivers keep apart can be.
    #[inline(never)]
    fn fetch_ahead(&self, batch: &Batch, first: usize) {
        // A timer's rank is no lane's.
        let lane_of = |event: &Event| event.rank().wrapping_sub(self.post.ranks.lanes);
        for event in batch.ahead(0..first).filter(|event| !event.is_ack()) {
            let sink = self.sinks.get(self.lanes.flow_of(lane_of(event)) as usize);
            sink.and_then(|sink| sink.receiver.kept_apart()).into_iter().for_each(fetch);
        }
        for event in batch.ahead(first..2 * STEP) {
            let lane = lane_of(event);
            self.lanes.fetch(lane);
            if !event.is_ack() {
                let flow = self.lanes.flow_of(lane);
                fetch_at(&self.sinks, flow as usize);
                if Segments::wants(flow, &event.as_segment()) {
                    self.segments.fetch(flow);
                }
            }
        }
    }
}
