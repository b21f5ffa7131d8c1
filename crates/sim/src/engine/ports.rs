//! What happens at a place: packets arrive at its ports and ends, timers go off.
//!
//! Where a port is all there is at a place, nothing that a packet causes on its way can come back within the step. So
//! all packets of the step go through the port, one after the other; then they go on their way. Two loops that each
//! need half of the registers and of the memory at a time.

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
const STEP: usize = 16;

/// So many packets go through a port before they go on their way: what they touched is still in the nearest cache then.
const AT_ONCE: usize = 64;

/// The slot of no lane: a packet in it goes nowhere.
const NOWHERE: u32 = 0;

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
        self.arrive(event.at, event.wire_bytes())
    }
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
    fn run_only_port(&mut self, place: usize, port: u32, until: Turn) {
        loop {
            let timer = (self.timers[port as usize], port);
            self.events += self.run_port(place, port, until.min(timer));
            if timer < until.min(self.ways.post.places[place].step_end()) {
                self.events += 1;
                self.on_port_timer(timer.0, port);
                continue;
            }
            self.send_off(place, port);
            let due = timer.0.min(self.services[port as usize]);
            if !self.ways.post.step(place, until, due) {
                return;
            }
        }
    }

    /// The packets that arrive at the only port of a place before `until` go through. How many events that is.
    fn run_port(&mut self, place: usize, number: u32, until: Turn) -> u64 {
        let link = self.port_links[number as usize];
        match &mut self.ports[number as usize] {
            Port::Fifo(port) => self.ways.arrive(&mut **port, place, link, until.0),
            Port::Plain(port) => self.ways.arrive(&mut **port, place, link, until.0),
            Port::Served(_) => self.run_served(place, number, until),
        }
    }

    /// What has left the only port of a place goes on its way.
    fn send_off(&mut self, place: usize, number: u32) {
        match self.ports[number as usize] {
            Port::Fifo(_) | Port::Plain(_) => self.ways.send_off(place),
            // It sends each at the end of its transmission.
            Port::Served(_) => {}
        }
    }

    /// The same at a port that serves: packets arrive, transmissions end.
    #[inline(never)]
    fn run_served(&mut self, place: usize, number: u32, until: Turn) -> u64 {
        let Engine { ports, ways, services, identities, port_links, .. } = self;
        let Port::Served(port) = &mut ports[number as usize] else { return 0 };
        let (link, service) = (port_links[number as usize], &mut services[number as usize]);
        let (slot, lanes) = (ways.post.slots.service + number, ways.post.slots.lanes);
        // One number each, which is compared at once.
        let ranked = |(at, slot): Turn| u128::from(at) << 32 | u128::from(slot);
        let limit = ranked(until.min(ways.post.places[place].step_end()));
        let mut done = 0;
        loop {
            let here = &mut ways.post.places[place];
            let end = ranked((*service, slot));
            match here.batch.peek() {
                Some(event) if ranked(event.turn()) < limit.min(end) => {
                    let event = *event;
                    here.batch.advance();
                    let flow = ways.lanes.flow_of(event.slot() - lanes);
                    if let Some(end) = ways.arrive_at_served(port, &identities.of(flow, event.is_ack()), &event) {
                        *service = end;
                    }
                }
                _ if end < limit => *service = ways.end_service(port, link, (*service, slot)).unwrap_or(NEVER),
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
        if event.slot() < self.ways.post.slots.lanes {
            return self.on_timer(event.at, event.slot());
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
            Target::Nowhere | Target::Passed(_) => {}
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
        let turn = (now, self.ways.post.slots.service + number);
        let end = self.ways.end_service(port, self.port_links[number as usize], turn);
        self.await_service_end(number, end);
    }
}

impl Ways<'_> {
    /// The packets that arrive at the port of a place by itself before `until` have their turn. Those that leave it go
    /// on [later](Self::send_off): nothing that they cause can come back within this step.
    #[inline(never)]
    fn arrive(&mut self, port: &mut impl Prompt, place: usize, link: u32, until: u64) -> u64 {
        let first_lane = self.post.slots.lanes;
        let traced = self.log.is_some();
        let mut done = 0;
        loop {
            let here = &mut self.post.places[place];
            let mut noted = None;
            let taken = here.batch.take_while(until, AT_ONCE, |event| {
                let (flow, at) = (self.lanes.flow_of(event.slot() - first_lane), event.at);
                let arrival = port.take(event, flow);
                if let Arrival::Leaves { reach, .. } = arrival {
                    event.at = reach;
                    if !traced {
                        return true;
                    }
                }
                noted = Some((arrival, event.moved(at, event.slot())));
                if !matches!(arrival, Arrival::Leaves { .. }) {
                    *event = event.moved(event.at, NOWHERE);
                }
                false
            });
            done += taken as u64;
            match noted {
                Some((Arrival::Leaves { start, .. }, event)) => self.note(event.turn(), link, start, &event),
                Some((arrival, event)) => self.lose(arrival, link, &event),
                None if taken == AT_ONCE => self.send_off(place),
                None => return done,
            }
        }
    }

    /// What has left the port of a place by itself goes on its way.
    #[inline(never)]
    fn send_off(&mut self, place: usize) {
        let lanes = self.post.slots.lanes;
        let mut batch = std::mem::take(&mut self.post.places[place].batch);
        for some in batch.depart(STEP) {
            if self.far {
                self.read_ahead(some.clone());
            }
            // Packets that have ended go nowhere.
            for event in some.filter(|event| event.slot() >= lanes) {
                self.send(event.slot() - lanes + 1, event.at, event);
            }
        }
        self.post.places[place].batch = batch;
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
                self.note(turn, link, sent.start, &sent.packet);
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
    fn pass(&mut self, port: &mut impl Prompt, link: u32, event: &mut Event) {
        let lane = self.lane_of(event);
        match port.take(event, self.lanes.flow_of(lane)) {
            Arrival::Leaves { start, reach } => {
                if self.log.is_some() {
                    self.note(event.turn(), link, start, event);
                }
                self.send(lane + 1, reach, event);
            }
            other => self.lose(other, link, event),
        }
    }

    /// A packet does not leave a port at which it arrived.
    #[cold]
    fn lose(&mut self, arrival: Arrival, link: u32, event: &Event) {
        if let Arrival::Lost { start } = arrival
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

    /// Reads what the packets to come need. In a large network none of it is in the cache, and waiting for many at once
    /// takes no longer than for one.
    #[inline(never)]
    fn read_ahead<'e>(&self, events: impl Iterator<Item = &'e Event>) {
        let mut seen = 0;
        for event in events {
            // A timer's slot is no lane's.
            let lane = event.slot().wrapping_sub(self.post.slots.lanes);
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
