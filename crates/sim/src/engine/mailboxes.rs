//! Mailboxes: delivery of events to the process that handles them.

use std::ops::RangeInclusive;

use super::batch::EventKey;
use super::bulk_mailbox::{BulkMailbox, BulkSenders, Starts};
use super::partition::{BULK, Partition, expected_horizon};
use super::process::Process;
use crate::event::Event;
use crate::paths::Target;
use aqumen_scenario::Plan;
use aqumen_units::Span;

/// First priority of each kind of event. At equal times the lower priority value comes first.
#[derive(Clone, Copy)]
pub(super) struct Priorities {
    pub(super) control: u32,
    pub(super) sampler: u32,
    pub(super) service: u32,
    pub(super) retransmission: u32,
    pub(super) send: u32,
    pub(super) acknowledge: u32,
    pub(super) application: u32,
    pub(super) paths: u32,
}

#[derive(Clone)]
pub(super) struct Mailboxes {
    pub(super) priorities: Priorities,
    pub(super) processes: Vec<Process>,
    pub(super) senders: BulkSenders,
    pub(super) receivers: BulkMailbox,
    pub(super) of_port: Vec<u32>,
    of_sender: Vec<u32>,
    of_receiver: Vec<u32>,
    of_hosts: u32,
    /// Expected events per second.
    pub(super) rate: f64,
    width_bits: u32,
    epoch_end: u64,
    /// Memory for sorting.
    counts: Vec<u32>,
}

/// Events per step of a process with several ports: few, so that its heap stays small.
const STEP_EVENTS: f64 = 16.0;

/// Horizon of most retransmission timers, nanoseconds.
const TIMER_HORIZON: u64 = 4_000_000_000;

impl Mailboxes {
    pub(super) fn new(plan: &Plan, priorities: Priorities, partition: Partition) -> Self {
        let Partition { rate, width_bits, processes, of_port, near_itself, of_sender, of_receiver, of_hosts } =
            partition;
        let mut ports_of = vec![Vec::new(); processes];
        of_port.iter().zip(0u32..).for_each(|(&process, port)| ports_of[process as usize].push(port));
        let mut ends_at = vec![of_hosts != BULK; processes];
        ends_at.iter_mut().zip(0u32..).for_each(|(ends, process)| *ends &= process == of_hosts);
        for &process in of_sender.iter().chain(&of_receiver).filter(|process| **process != BULK) {
            ends_at[process as usize] = true;
        }
        let horizon = expected_horizon(plan);
        // The least timeout of all bulk senders, if each has one.
        let bulk_groups =
            plan.flows.iter().zip(&of_sender).filter(|(_, process)| **process == BULK).map(|(flow, _)| flow.group);
        let mut groups: Vec<u32> = bulk_groups.collect();
        groups.dedup();
        let config_of = |group: u32| plan.groups[group as usize].transport.tcp();
        let waits = groups.iter().any(|&group| config_of(group).is_some_and(|tcp| tcp.send_overhead > Span::ZERO));
        let timeout_of = |group: u32| config_of(group)?.least_timeout();
        let timeout = groups.into_iter().map(timeout_of).try_fold(Span::MAX, |least, own| Some(least.min(own?)));
        let hosted = of_sender.iter().filter(|process| **process != BULK).count();
        let of_hosts_rate = (rate * hosted as f64 / plan.flows.len().max(1) as f64).max(1e3);
        let step_bits = |rate: f64| ((STEP_EVENTS * 1e9 / rate) as u64).max(1).ilog2().min(width_bits);
        let (of_ends, of_ports) = (step_bits(of_hosts_rate), step_bits(rate));
        let process = |(ports, ends): (Vec<u32>, bool)| match (&ports[..], ends) {
            (_, true) => Process::new(of_ends, horizon.max(TIMER_HORIZON), None),
            ([port], false) if !near_itself[*port as usize] => Process::new(width_bits, horizon, Some(*port)),
            (_, false) => Process::new(of_ports, horizon, None),
        };
        let starts = plan.flows.iter().zip(&of_sender).zip(0u32..).filter(|((_, process), _)| **process == BULK);
        let starts = starts.filter_map(|((flow, _), number)| Some((flow.on.first()?.0.as_nanos(), number)));
        let starts = Starts::new(starts.collect());
        let bulk = || BulkMailbox::new(width_bits, horizon, TIMER_HORIZON);
        Mailboxes {
            priorities,
            processes: ports_of.into_iter().zip(ends_at).map(process).collect(),
            senders: BulkSenders::new(bulk(), width_bits, if waits { plan.flows.len() } else { 0 }, timeout, starts),
            receivers: bulk(),
            of_port,
            of_sender,
            of_receiver,
            of_hosts,
            rate,
            width_bits,
            epoch_end: 0,
            counts: Vec::new(),
        }
    }

    /// Returns whether `port` is a process of its own.
    #[inline]
    pub(super) fn is_alone(&self, port: u32) -> bool {
        self.processes[self.of_port[port as usize] as usize].only_port.is_some()
    }

    /// Returns whether the sender of `flow` is a bulk endpoint, which also starts without the schedule.
    pub(super) fn is_bulk_sender(&self, flow: u32) -> bool {
        self.of_sender[flow as usize] == BULK
    }

    /// Returns whether the receiver of `flow` is a bulk endpoint.
    pub(super) fn is_bulk_receiver(&self, flow: u32) -> bool {
        self.of_receiver[flow as usize] == BULK
    }

    /// Takes the next event of a process, if its key is below `until`.
    #[inline(always)]
    pub(super) fn take(&mut self, process: usize, until: EventKey) -> Option<Event> {
        let process = &mut self.processes[process];
        process.take(until)
    }

    /// Begins the next step of a process with an event, if it begins before `until`. `due`: time of its next event that
    /// is not in a mailbox.
    #[inline(always)]
    pub(super) fn step(&mut self, process: usize, until: EventKey, due: u64) -> bool {
        self.processes[process].step(until, due, &mut self.counts)
    }

    /// Returns the end of the current epoch.
    pub(super) fn epoch_end(&self) -> u64 {
        self.epoch_end
    }

    /// Returns the number of the epoch in which `at` lies.
    pub(super) fn epoch_of(&self, at: u64) -> u64 {
        at >> self.width_bits
    }

    /// Sends a packet of `flow` to `target`, an endpoint but no bulk sender, which it reaches at `reach` on the leg of
    /// `priority`.
    pub(super) fn send_to_endpoint(&mut self, priority: u32, reach: u64, flow: u32, target: Target, event: &Event) {
        let process = match target {
            Target::BulkReceiver => return self.receivers.push(event.moved(reach, flow)),
            Target::Sender | Target::AgentSource => self.of_sender[flow as usize],
            _ => self.of_receiver[flow as usize],
        };
        self.processes[process as usize].push(event.moved(reach, priority));
    }

    /// Schedules the timer of `priority` at `at`.
    #[inline(never)]
    pub(super) fn schedule(&mut self, at: u64, priority: u32) {
        let priorities = &self.priorities;
        let (process, flow) = if priority < priorities.control {
            (self.of_port[priority as usize], 0)
        } else if priority < priorities.retransmission {
            (self.of_port[(priority - priorities.service) as usize], 0)
        } else if priority < priorities.acknowledge {
            let flow = (priority - priorities.retransmission) % (priorities.send - priorities.retransmission);
            (self.of_sender[flow as usize], flow)
        } else if priority < priorities.application {
            let flow = priority - priorities.acknowledge;
            (self.of_receiver[flow as usize], flow)
        } else {
            (self.of_hosts, 0)
        };
        match self.processes.get_mut(process as usize) {
            Some(process) => process.push(Event::timer(at, priority)),
            None if priority < priorities.acknowledge => self.senders.mailbox.schedule(at, flow),
            None => self.receivers.schedule(at, flow),
        }
    }

    /// Returns whether no process has a port and an endpoint, or two ports.
    pub(super) fn separates_ports_from_endpoints(&self) -> bool {
        let mut ends = self.of_sender.iter().chain(&self.of_receiver);
        let mut processes = self.processes.iter().zip(0u32..);
        ends.all(|process| [BULK, self.of_hosts].contains(process))
            && processes.all(|(process, number)| process.only_port.is_some() || number == self.of_hosts)
            && !self.of_port.contains(&self.of_hosts)
    }

    /// Returns the process of the applications, if there is one.
    pub(super) fn hosts_process(&self) -> Option<usize> {
        (self.of_hosts != BULK).then_some(self.of_hosts as usize)
    }

    /// Returns the next epoch that may have an event, among the `few` epochs that follow, or the last of these.
    pub(super) fn next_epoch(&self, few: RangeInclusive<u64>) -> u64 {
        let first = *few.start();
        let mut next = self.senders.next_epoch().min(self.receivers.next_epoch()).min(*few.end());
        for process in &self.processes {
            if next <= first {
                return first;
            }
            next = next.min(process.next_due() >> self.width_bits);
        }
        next.max(first)
    }

    /// Returns the end of `epoch`.
    pub(super) fn end_of(&self, epoch: u64) -> u64 {
        (epoch + 1) << self.width_bits
    }

    /// Opens `epoch`, the first one or a later one than the current one; there are no events between them.
    pub(super) fn open(&mut self, epoch: u64) {
        self.epoch_end = self.end_of(epoch);
        self.senders.open(epoch, epoch << self.width_bits);
        self.receivers.open(epoch);
    }
}
