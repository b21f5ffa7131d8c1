//! What happens at a place: packets arrive at its ports and ends, timers go off.

use aqumen_network::port::{Arrival, FifoPort, PlainPort, Port};

use super::agents::Side;
use super::batch::{Batch, Turn};
use super::ways::Ways;
use super::{Engine, NEVER};
use crate::event::Event;
use crate::lanes::Target;

/// So many packets ahead, what they need is read.
const STEP: usize = 16;

/// A port that knows what becomes of a packet when it arrives.
trait Prompt {
    fn take(&mut self, event: &mut Event, flow: u32) -> Arrival;
}

impl Prompt for FifoPort {
    #[inline(always)]
    fn take(&mut self, event: &mut Event, flow: u32) -> Arrival {
        self.arrive(event.at, event, flow)
    }
}

impl Prompt for PlainPort {
    #[inline(always)]
    fn take(&mut self, event: &mut Event, _flow: u32) -> Arrival {
        self.arrive(event.at, event.bytes)
    }
}

impl Engine<'_> {
    /// A place goes on up to, not including, the turn of `until`.
    pub(super) fn run_place(&mut self, place: usize, until: Turn) {
        let only_port = self.ways.post.places[place].only_port;
        loop {
            if let Some(port) = only_port {
                self.events += self.run_port(place, port, until);
            }
            if let Some(event) = self.ways.post.take(place, until) {
                self.events += 1;
                self.happen(event);
            } else {
                // Of the only port of a place, that knows when its transmission ends.
                let due = only_port.map_or(NEVER, |port| self.services[port as usize]);
                if !self.ways.post.step(place, until, due) {
                    return;
                }
            }
        }
    }

    /// The packets that arrive at the only port of a place before `until`, and before the place has anything else to do, go
    /// through. How many events that is.
    #[inline(always)]
    fn run_port(&mut self, place: usize, number: u32, until: Turn) -> u64 {
        let link = self.port_links[number as usize];
        match &mut self.ports[number as usize] {
            Port::Fifo(port) => self.ways.arrive(&mut **port, place, link, until.0),
            Port::Plain(port) => self.ways.arrive(&mut **port, place, link, until.0),
            Port::Served(_) => self.run_served(place, number, until),
        }
    }

    /// The same at a port that serves: packets arrive, transmissions end.
    #[inline(never)]
    fn run_served(&mut self, place: usize, number: u32, until: Turn) -> u64 {
        let slot = self.ways.post.slots.service + number;
        let lanes = self.ways.post.slots.lanes;
        let mut limit = until.min(self.ways.post.places[place].step_end());
        let mut done = 0;
        loop {
            let here = &mut self.ways.post.places[place];
            limit = limit.min(here.next_own());
            let end = (self.services[number as usize], slot);
            match here.batch.next_before(limit.min(end)) {
                Some(event) if event.slot >= lanes => {
                    here.batch.advance();
                    let flow = self.ways.lanes.flow_of(event.slot - lanes);
                    self.arrive_at_served(number, flow, &event);
                }
                None if end < limit => self.on_service_end(end.0, number),
                _ => return done,
            }
            done += 1;
        }
    }

    /// The transmission under way at a served port ends at `end`, if there is one.
    #[inline]
    fn await_service_end(&mut self, number: u32, end: Option<u64>) {
        if self.ways.post.is_alone(number) {
            self.services[number as usize] = end.unwrap_or(NEVER);
        } else if let Some(end) = end {
            self.ways.post.schedule(end, self.ways.post.slots.service + number);
        }
    }

    /// An event has its turn.
    fn happen(&mut self, mut event: Event) {
        if event.slot < self.ways.post.slots.lanes {
            return self.on_timer(event.at, event.slot);
        }
        let lane = self.ways.lane_of(&event);
        let flow = self.ways.lanes.flow_of(lane);
        match self.ways.lanes.target(lane) {
            Target::Port(number) => {
                let link = self.port_links[number as usize];
                match &mut self.ports[number as usize] {
                    Port::Fifo(port) => self.ways.pass(&mut **port, link, &mut event),
                    Port::Plain(port) => self.ways.pass(&mut **port, link, &mut event),
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
            Target::Nowhere => {}
        }
    }

    #[inline(never)]
    fn on_timer(&mut self, now: u64, slot: u32) {
        let (hosts, ways) = (&mut self.hosts, &mut self.ways);
        let slots = ways.post.slots;
        if slot < slots.control {
            self.on_port_timer(now, slot);
        } else if slot < slots.retransmission {
            self.on_service_end(now, slot - slots.service);
        } else if slot < slots.send {
            hosts.on_retransmission_timer(ways, now, slot - slots.retransmission);
        } else if slot < slots.acknowledge {
            hosts.on_delayed_send(ways, now, slot - slots.send);
        } else if slot < slots.application {
            hosts.on_acknowledge_timer(ways, now, slot - slots.acknowledge);
        } else {
            hosts.on_application(ways, now, slot - slots.application);
        }
    }

    pub(super) fn arm_port(&mut self, port: u32) {
        if let Some(due) = self.ports[port as usize].next_timer() {
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
        let (who, mut dropped) = (self.identities.of(flow), Vec::new());
        if let Arrival::Waits { busy_until: Some(end) } = port.arrive(event.at, *event, &who, &mut dropped) {
            self.await_service_end(number, Some(end));
        }
        dropped.iter().for_each(|(event, _)| self.ways.discard(event));
    }

    /// A served port ends a transmission.
    fn on_service_end(&mut self, now: u64, number: u32) {
        let Port::Served(port) = &mut self.ports[number as usize] else { return };
        let mut dropped = Vec::new();
        let (sent, busy_until) = port.finish(now, &mut dropped);
        self.await_service_end(number, busy_until);
        dropped.iter().for_each(|(event, _)| self.ways.discard(event));
        let Some(sent) = sent else { return };
        if self.ways.log.is_some() {
            let slot = self.ways.post.slots.service + number;
            self.ways.note((now, slot), self.port_links[number as usize], sent.start, &sent.packet);
        }
        match sent.reach {
            Some(reach) => {
                let lane = self.ways.lane_of(&sent.packet);
                self.ways.send_rarely(lane + 1, reach, &sent.packet);
            }
            None => self.ways.discard(&sent.packet),
        }
    }
}

impl Ways<'_> {
    #[inline(always)]
    fn arrive(&mut self, port: &mut impl Prompt, place: usize, link: u32, until: u64) -> u64 {
        let mut batch = std::mem::take(&mut self.post.places[place].batch);
        let before = batch.done();
        loop {
            let clock = self.post.places[place].next_own().0.min(until);
            let Some(mut event) = batch.next_before((clock, 0)) else { break };
            if event.slot < self.post.slots.lanes {
                break; // a timer
            }
            if self.far && batch.done().is_multiple_of(STEP) {
                self.read_ahead(&batch);
            }
            batch.advance();
            self.pass(port, link, &mut event);
        }
        let done = (batch.done() - before) as u64;
        self.post.places[place].batch = batch;
        done
    }

    /// A packet arrives at a port, and leaves it if it is not dropped.
    #[inline(always)]
    fn pass(&mut self, port: &mut impl Prompt, link: u32, event: &mut Event) {
        let lane = self.lane_of(event);
        let start = match port.take(event, self.lanes.flow_of(lane)) {
            Arrival::Leaves { start, reach } => {
                if self.log.is_some() {
                    self.note(event.turn(), link, start, event);
                }
                return self.send(lane + 1, reach, event);
            }
            Arrival::Lost { start } => Some(start),
            _ => None,
        };
        if let Some(start) = start
            && self.log.is_some()
        {
            self.note(event.turn(), link, start, event);
        }
        self.discard(event);
    }

    /// In its `turn` a port learned that the transmission of a packet on `link` starts at `start`.
    #[cold]
    fn note(&mut self, turn: Turn, link: u32, start: u64, event: &Event) {
        let flow = self.lanes.flow_of(self.lane_of(event));
        if let Some(log) = &mut self.log {
            log.note(turn, link, start, flow, *event, (&self.acks, &self.packets));
        }
    }

    /// Reads what the packets to come need. In a large network none of it is in the cache, and waiting for many at once takes no
    /// longer than for one.
    #[inline(never)]
    fn read_ahead(&self, batch: &Batch) {
        let mut seen = 0;
        for event in batch.ahead(STEP) {
            // A timer's slot is no lane's.
            let lane = event.slot.wrapping_sub(self.post.slots.lanes);
            seen ^= self.lanes.touch(lane);
            if !event.is_ack() {
                seen ^= self.sinks.get(self.lanes.flow_of(lane) as usize).map_or(0, |sink| sink.group);
            }
        }
        std::hint::black_box(seen);
    }
}
