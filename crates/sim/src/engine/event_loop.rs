//! The event loop of a process with several ports, or of the hosts: one event after the other.

use super::Engine;
use super::agent::Side;
use super::batch::EventKey;
use super::dispatch::Dispatcher;
use super::hosts::Hosts;
use super::moment::NEVER;
use crate::event::Event;
use crate::paths::Target;

impl Engine<'_> {
    /// Runs a process up to the key `until`, exclusive.
    pub(super) fn run_process(&mut self, process: usize, until: EventKey) {
        if let Some(port) = self.dispatcher.mailboxes.processes[process].only_port {
            self.events += self.ports.run_process(&mut self.dispatcher, process, port, until);
            return;
        }
        loop {
            if let Some(event) = self.dispatcher.mailboxes.take(process, until) {
                self.events += 1;
                self.handle(event);
            } else if !self.dispatcher.mailboxes.step(process, until, NEVER) {
                return;
            }
        }
    }

    /// Handles an event.
    fn handle(&mut self, event: Event) {
        if event.priority() < self.dispatcher.mailboxes.priorities.paths {
            return self.on_timer(event.at, event.priority());
        }
        let leg = self.dispatcher.leg_of(&event);
        let flow = self.dispatcher.paths.flow_of(leg);
        match self.dispatcher.paths.target(leg) {
            Target::Port(number) => self.ports.arrive(&mut self.dispatcher, number, flow, event),
            end => self.hosts.on_packet(&mut self.dispatcher, flow, end, &event),
        }
    }

    #[inline(never)]
    fn on_timer(&mut self, now: u64, priority: u32) {
        let (ports, hosts, dispatcher) = (&mut self.ports, &mut self.hosts, &mut self.dispatcher);
        let priorities = dispatcher.mailboxes.priorities;
        if priority < priorities.control {
            ports.on_timer(dispatcher, now, priority);
        } else if priority < priorities.retransmission {
            ports.on_service_end(dispatcher, now, priority - priorities.service);
        } else {
            hosts.on_timer(dispatcher, now, priority);
        }
    }
}

impl Hosts<'_> {
    /// Runs the process of the hosts, which has no port, up to the key `until`, exclusive; returns the number of
    /// events.
    pub(super) fn run_process(&mut self, dispatcher: &mut Dispatcher<'_>, process: usize, until: EventKey) -> u64 {
        let mut done = 0;
        loop {
            if let Some(event) = dispatcher.mailboxes.take(process, until) {
                done += 1;
                if event.priority() < dispatcher.mailboxes.priorities.paths {
                    self.on_timer(dispatcher, event.at, event.priority());
                } else {
                    let leg = dispatcher.leg_of(&event);
                    self.on_packet(dispatcher, dispatcher.paths.flow_of(leg), dispatcher.paths.target(leg), &event);
                }
            } else if !dispatcher.mailboxes.step(process, until, NEVER) {
                return done;
            }
        }
    }

    /// Hands a packet to the endpoint that it is for.
    #[inline(always)]
    fn on_packet(&mut self, dispatcher: &mut Dispatcher<'_>, flow: u32, end: Target, event: &Event) {
        match end {
            Target::Sender | Target::BulkSender => self.on_ack(dispatcher, flow, event),
            Target::Receiver | Target::BulkReceiver | Target::InlineReceiver => {
                self.on_segment(dispatcher, flow, event)
            }
            Target::AgentSink => self.on_agent_packet(dispatcher, flow, Side::Sink, event),
            Target::AgentSource => self.on_agent_packet(dispatcher, flow, Side::Source, event),
            // Handled when the packet entered the leg.
            Target::Dropped | Target::Passed(_) | Target::Port(_) => {}
        }
    }

    /// Runs a timer of an endpoint or an application.
    #[inline(always)]
    fn on_timer(&mut self, dispatcher: &mut Dispatcher<'_>, now: u64, priority: u32) {
        let priorities = dispatcher.mailboxes.priorities;
        if priority < priorities.send {
            self.on_retransmission_timer(dispatcher, now, priority - priorities.retransmission);
        } else if priority < priorities.acknowledge {
            self.on_delayed_send(dispatcher, now, priority - priorities.send);
        } else if priority < priorities.application {
            self.on_acknowledge_timer(dispatcher, now, priority - priorities.acknowledge);
        } else {
            self.on_application(dispatcher, now, priority - priorities.application);
        }
    }
}
