//! Turns: what happens at a place of more than one port, one event after the other.

use super::Engine;
use super::agent::Side;
use super::batch::Turn;
use super::hosts::Hosts;
use super::moment::NEVER;
use super::ways::Ways;
use crate::event::Event;
use crate::lanes::Target;

impl Engine<'_> {
    /// A place goes on up to, not including, the turn of `until`.
    pub(super) fn run_place(&mut self, place: usize, until: Turn) {
        if let Some(port) = self.ways.post.places[place].only_port {
            self.events += self.ports.run_place(&mut self.ways, place, port, until);
            return;
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

    /// An event has its turn.
    fn happen(&mut self, event: Event) {
        if event.rank() < self.ways.post.ranks.lanes {
            return self.on_timer(event.at, event.rank());
        }
        let lane = self.ways.lane_of(&event);
        let flow = self.ways.lanes.flow_of(lane);
        match self.ways.lanes.target(lane) {
            Target::Port(number) => self.ports.arrive(&mut self.ways, number, flow, event),
            end => self.hosts.on_packet(&mut self.ways, flow, end, &event),
        }
    }

    #[inline(never)]
    fn on_timer(&mut self, now: u64, rank: u32) {
        let (ports, hosts, ways) = (&mut self.ports, &mut self.hosts, &mut self.ways);
        let ranks = ways.post.ranks;
        if rank < ranks.control {
            ports.on_timer(ways, now, rank);
        } else if rank < ranks.retransmission {
            ports.on_service_end(ways, now, rank - ranks.service);
        } else {
            hosts.on_timer(ways, now, rank);
        }
    }
}

impl Hosts<'_> {
    /// The place of the applications, at which there is no port, goes on up to, not including, the turn of `until`. How
    /// many events that is.
    pub(super) fn run_place(&mut self, ways: &mut Ways<'_>, place: usize, until: Turn) -> u64 {
        let mut done = 0;
        loop {
            if let Some(event) = ways.post.take(place, until) {
                done += 1;
                if event.rank() < ways.post.ranks.lanes {
                    self.on_timer(ways, event.at, event.rank());
                } else {
                    let lane = ways.lane_of(&event);
                    self.on_packet(ways, ways.lanes.flow_of(lane), ways.lanes.target(lane), &event);
                }
            } else if !ways.post.step(place, until, NEVER) {
                return done;
            }
        }
    }

    /// A packet reaches the `end` of a flow that it is for.
    #[inline(always)]
    fn on_packet(&mut self, ways: &mut Ways<'_>, flow: u32, end: Target, event: &Event) {
        match end {
            Target::Sender | Target::LoneSender => self.on_ack(ways, flow, event),
            Target::Receiver | Target::LoneReceiver | Target::PromptReceiver => self.on_segment(ways, flow, event),
            Target::AgentSink => self.on_agent_packet(ways, flow, Side::Sink, event),
            Target::AgentSource => self.on_agent_packet(ways, flow, Side::Source, event),
            // Known when it entered the lane.
            Target::Nowhere | Target::Passed(_) | Target::Port(_) => {}
        }
    }

    /// A timer of an end, or of an application, goes off.
    #[inline(always)]
    fn on_timer(&mut self, ways: &mut Ways<'_>, now: u64, rank: u32) {
        let ranks = ways.post.ranks;
        if rank < ranks.send {
            self.on_retransmission_timer(ways, now, rank - ranks.retransmission);
        } else if rank < ranks.acknowledge {
            self.on_delayed_send(ways, now, rank - ranks.send);
        } else if rank < ranks.application {
            self.on_acknowledge_timer(ways, now, rank - ranks.acknowledge);
        } else {
            self.on_application(ways, now, rank - ranks.application);
        }
    }
}
