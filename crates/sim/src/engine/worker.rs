//! A worker: some of the processes, and the dispatcher and ports that run them. One worker runs all processes, or
//! two workers share them (`parallel`).

use std::ops::RangeInclusive;

use aqumen_network::port::Port;
use aqumen_transport::tcp::TcpConfig;

use super::agent::Side;
use super::batch::EventKey;
use super::dispatch::Dispatcher;
use super::hosts::Hosts;
use super::moment::NEVER;
use super::ports::Ports;
use crate::event::Event;
use crate::paths::Target;

#[derive(Clone)]
pub(super) struct Worker<'a> {
    pub(super) dispatcher: Dispatcher<'a>,
    pub(super) ports: Ports,
    /// Its processes, in the order in which they run.
    pub(super) processes: Vec<usize>,
    /// Whether each port belongs to this worker.
    pub(super) has_port: Vec<bool>,
    /// Whether the bulk receivers belong to this worker.
    pub(super) has_receivers: bool,
    /// Whether the hosts, with the bulk senders, belong to this worker.
    pub(super) has_hosts: bool,
}

impl<'a> Worker<'a> {
    /// Makes the worker that runs all processes.
    pub(super) fn new(dispatcher: Dispatcher<'a>, ports: Ports) -> Self {
        let processes = (0..dispatcher.mailboxes.processes.len()).collect();
        let has_port = vec![true; ports.all.len()];
        Worker { dispatcher, ports, processes, has_port, has_receivers: true, has_hosts: true }
    }

    /// Copies the worker, for a copy of the plan with these TCP configurations.
    pub(super) fn copy<'b>(&self, configs: &[&'b TcpConfig]) -> Worker<'b> {
        Worker {
            dispatcher: self.dispatcher.copy(configs.to_vec()),
            ports: self.ports.clone(),
            processes: self.processes.clone(),
            has_port: self.has_port.clone(),
            has_receivers: self.has_receivers,
            has_hosts: self.has_hosts,
        }
    }

    /// Returns the next epoch with an event for this worker, among `epochs`, or the last of these.
    pub(super) fn next_epoch(&self, epochs: RangeInclusive<u64>) -> u64 {
        let (first, last) = epochs.into_inner();
        let due = self.dispatcher.mailboxes.epoch_of(self.ports.due()).clamp(first, last);
        self.dispatcher.mailboxes.next_epoch(first..=due)
    }

    /// Schedules the timer of a port's AQM anew.
    pub(super) fn arm(&mut self, port: u32) {
        self.ports.arm(&mut self.dispatcher, port);
    }

    /// Moves the ports of this worker into `all`.
    pub(super) fn return_ports(&mut self, all: &mut [Port<Event>]) {
        let ports = all.iter_mut().zip(&mut self.ports.all).zip(&self.has_port);
        ports.filter(|(_, has)| **has).for_each(|((port, own), _)| std::mem::swap(port, own));
    }

    /// Runs the processes up to the key `until`, exclusive, with bulk endpoints if `with_bulk`. Returns the number of
    /// events.
    pub(super) fn run(&mut self, hosts: Option<&mut Hosts<'_>>, until: EventKey, with_bulk: bool) -> u64 {
        let mut hosts = hosts.filter(|_| self.has_hosts);
        let mut done = 0;
        for index in 0..self.processes.len() {
            let process = self.processes[index];
            done += match (self.dispatcher.mailboxes.processes[process].only_port, &mut hosts) {
                (Some(port), _) => self.ports.run_process(&mut self.dispatcher, process, port, until),
                (None, Some(hosts)) => self.run_process(hosts, process, until),
                (None, None) => 0,
            };
        }
        if with_bulk && self.has_receivers {
            done += self.dispatcher.run_receivers(until.0);
        }
        if with_bulk && let Some(hosts) = hosts {
            done += hosts.run_senders(&mut self.dispatcher, until.0);
        }
        done
    }

    /// Runs a process with several ports, or of the hosts, up to the key `until`, exclusive: one event after the other.
    /// Returns the number of events.
    fn run_process(&mut self, hosts: &mut Hosts<'_>, process: usize, until: EventKey) -> u64 {
        let mut done = 0;
        loop {
            if let Some(event) = self.dispatcher.mailboxes.take(process, until) {
                done += 1;
                self.handle(hosts, event);
            } else if !self.dispatcher.mailboxes.step(process, until, NEVER) {
                return done;
            }
        }
    }

    /// Handles an event.
    fn handle(&mut self, hosts: &mut Hosts<'_>, event: Event) {
        if event.priority() < self.dispatcher.mailboxes.priorities.paths {
            return self.on_timer(hosts, event.at, event.priority());
        }
        let leg = self.dispatcher.leg_of(&event);
        let flow = self.dispatcher.paths.flow_of(leg);
        match self.dispatcher.paths.target(leg) {
            Target::Port(number) => self.ports.arrive(&mut self.dispatcher, number, flow, event),
            end => hosts.on_packet(&mut self.dispatcher, flow, end, &event),
        }
    }

    #[inline(never)]
    fn on_timer(&mut self, hosts: &mut Hosts<'_>, now: u64, priority: u32) {
        let (ports, dispatcher) = (&mut self.ports, &mut self.dispatcher);
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
