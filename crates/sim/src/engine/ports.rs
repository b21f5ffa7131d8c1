//! What happens at a place: packets arrive at its ports and ends, timers go off.
//!
//! Where a port is all there is at a place, nothing that a packet causes on its way can come back within the step: all
//! packets of the step go through the port and on their way, one after the other, and its AQM's timer goes off between
//! them.

use aqumen_network::Identity;
use aqumen_network::port::{Arrival, FifoPort, PlainPort, Port, ServedPort};

use super::Engine;
use super::agent::Side;
use super::batch::Turn;
use super::moment::NEVER;
use super::ways::Ways;
use crate::event::Event;
use crate::lanes::Target;
use crate::measure::segments::Segments;

/// So many packets ahead, what they need is read.
const STEP: u64 = 16;

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

impl Engine<'_> {
    /// A place goes on up to, not including, the turn of `until`.
    pub(super) fn run_place(&mut self, place: usize, until: Turn) {
        if let Some(port) = self.ways.post.places[place].only_port {
            return self.run_only_port(place, port, until);
        }
        loop {
            if let Some(event) = self.ways.post.take(place, until) {
                self.events += 1;
                self.happen(event);
            } else if !self.ways.post.step(place, until, NEVER) {
                return;
            }
        }
    }

    /// The same where a port is all there is. It knows when its AQM's timer is due and when its transmission ends; all
    /// else that happens there are packets.
    fn run_only_port(&mut self, place: usize, number: u32, until: Turn) {
        let (port, link) = (number as usize, self.port_links[number as usize]);
        loop {
            self.events += match &mut self.ports[port] {
                Port::Fifo(fifo) => {
                    let done = self.ways.pass_all(&mut **fifo, place, (number, link), until);
                    self.timers[port] = fifo.due();
                    done
                }
                Port::Plain(plain) => self.ways.pass_all(&mut **plain, place, (number, link), until),
                Port::Served(_) => self.run_served_and_timers(place, number, until),
            };
            let due = self.timers[port].min(self.services[port]);
            if !self.ways.post.step(place, until, due) {
                return;
            }
        }
    }

    /// All that happens in the present step and before `until` at a port that serves. How many events that is.
    fn run_served_and_timers(&mut self, place: usize, number: u32, until: Turn) -> u64 {
        let mut done = 0;
        loop {
            let timer = (self.timers[number as usize], number);
            done += self.run_served(place, number, until.min(timer));
            if timer >= until.min(self.ways.post.places[place].step_end()) {
                return done;
            }
            done += 1;
            self.on_port_timer(timer.0, number);
        }
    }

    /// The same between two timers: packets arrive, transmissions end.
    #[inline(never)]
    fn run_served(&mut self, place: usize, number: u32, until: Turn) -> u64 {
        let Engine { ports, ways, services, identities, port_links, .. } = self;
        let Port::Served(port) = &mut ports[number as usize] else { return 0 };
        let (link, service) = (port_links[number as usize], &mut services[number as usize]);
        let (rank, lanes) = (ways.post.ranks.service + number, ways.post.ranks.lanes);
        let here = &mut ways.post.places[place];
        // Of one moment the ends of transmissions and then packets come after all else.
        let limit = until.min(here.step_end()).0;
        let mut batch = std::mem::take(&mut here.batch);
        let mut done = 0;
        loop {
            if let Some(event) = batch.take_before(batch.key_at(limit.min(*service))) {
                let flow = ways.lanes.flow_of(event.rank() - lanes);
                if let Some(end) = ways.arrive_at_served(port, &identities.of(flow, event.is_ack()), &event) {
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
    fn await_service_end(&mut self, number: u32, end: Option<u64>) {
        if self.ways.post.is_alone(number) {
            self.services[number as usize] = end.unwrap_or(NEVER);
        } else if let Some(end) = end {
            self.ways.post.schedule(end, self.ways.post.ranks.service + number);
        }
    }

    /// An event has its turn.
    fn happen(&mut self, event: Event) {
        if event.rank() < self.ways.post.ranks.lanes {
            return self.on_timer(event.at, event.rank());
        }
        let lane = self.ways.lane_of(&event);
        let flow = self.ways.lanes.flow_of(lane);
        match self.ways.lanes.target(lane) {
            Target::Port(number) => {
                let link = self.port_links[number as usize];
                match &mut self.ports[number as usize] {
                    Port::Fifo(port) => self.ways.pass(&mut **port, link, event),
                    Port::Plain(port) => self.ways.pass(&mut **port, link, event),
                    Port::Served(_) => self.arrive_at_served(number, flow, &event),
                }
            }
            Target::Sender | Target::LoneSender => self.hosts.on_ack(&mut self.ways, flow, &event),
            Target::Receiver | Target::LoneReceiver | Target::PromptReceiver => {
                self.hosts.on_segment(&mut self.ways, flow, &event);
            }
            Target::AgentSink => self.hosts.on_agent_packet(&mut self.ways, flow, Side::Sink, &event),
            Target::AgentSource => self.hosts.on_agent_packet(&mut self.ways, flow, Side::Source, &event),
            // Known when it entered the lane.
            Target::Nowhere | Target::Passed(_) => {}
        }
    }

    #[inline(never)]
    fn on_timer(&mut self, now: u64, rank: u32) {
        let (hosts, ways) = (&mut self.hosts, &mut self.ways);
        let ranks = ways.post.ranks;
        if rank < ranks.control {
            self.on_port_timer(now, rank);
        } else if rank < ranks.retransmission {
            self.on_service_end(now, rank - ranks.service);
        } else if rank < ranks.send {
            hosts.on_retransmission_timer(ways, now, rank - ranks.retransmission);
        } else if rank < ranks.acknowledge {
            hosts.on_delayed_send(ways, now, rank - ranks.send);
        } else if rank < ranks.application {
            hosts.on_acknowledge_timer(ways, now, rank - ranks.acknowledge);
        } else {
            hosts.on_application(ways, now, rank - ranks.application);
        }
    }

    pub(super) fn arm_port(&mut self, port: u32) {
        let due = self.ports[port as usize].next_timer();
        if self.ways.post.is_alone(port) {
            self.timers[port as usize] = due.unwrap_or(NEVER);
        } else if let Some(due) = due {
            self.ways.post.schedule(due, port);
        }
    }

    /// The timer of a port's AQM is due.
    fn on_port_timer(&mut self, now: u64, port: u32) {
        // A timer of an AQM that was replaced comes to nothing.
        if self.ports[port as usize].on_timer(now) {
            self.arm_port(port);
        }
    }

    fn arrive_at_served(&mut self, number: u32, flow: u32, event: &Event) {
        let Port::Served(port) = &mut self.ports[number as usize] else { return };
        if let Some(end) = self.ways.arrive_at_served(port, &self.identities.of(flow, event.is_ack()), event) {
            self.await_service_end(number, Some(end));
        }
    }

    /// A served port ends a transmission.
    fn on_service_end(&mut self, now: u64, number: u32) {
        let Port::Served(port) = &mut self.ports[number as usize] else { return };
        let turn = (now, self.ways.post.ranks.service + number);
        let end = self.ways.end_service(port, self.port_links[number as usize], turn);
        self.await_service_end(number, end);
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
                if self.far && done.is_multiple_of(STEP) {
                    self.read_ahead(batch.ahead(STEP as usize));
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

    /// Reads what the packets to come need. In a large network none of it is in the cache, and waiting for many at once
    /// takes no longer than for one.
    #[inline(never)]
    fn read_ahead<'e>(&self, events: impl Iterator<Item = &'e Event>) {
        let mut seen = 0;
        for event in events {
            // A timer's rank is no lane's.
            let lane = event.rank().wrapping_sub(self.post.ranks.lanes);
            seen ^= self.lanes.touch(lane);
            if !event.is_ack() {
                let flow = self.lanes.flow_of(lane);
                seen ^= self.sinks.get(flow as usize).map_or(0, |sink| sink.receiver.glance());
                if Segments::wants(flow, &event.as_segment()) {
                    seen ^= self.segments.glance(flow);
                }
            }
        }
        std::hint::black_box(seen);
    }
}
