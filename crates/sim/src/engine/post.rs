//! The post: takes what is to happen to the place where it belongs.

use std::ops::RangeInclusive;

use super::batch::Turn;
use super::lone_inbox::{Lone, LoneSenders, Starts};
use super::partition::{LONE, Partition, expected_horizon};
use super::place::Place;
use crate::event::Event;
use crate::lanes::Target;
use aqumen_scenario::Plan;
use aqumen_units::Span;

/// First rank of each kind. At equal moments the lower rank goes first.
#[derive(Clone, Copy)]
pub(super) struct Ranks {
    pub(super) control: u32,
    pub(super) sampler: u32,
    pub(super) service: u32,
    pub(super) retransmission: u32,
    pub(super) send: u32,
    pub(super) acknowledge: u32,
    pub(super) application: u32,
    pub(super) lanes: u32,
}

pub(super) struct Post {
    pub(super) ranks: Ranks,
    pub(super) places: Vec<Place>,
    pub(super) senders: LoneSenders,
    pub(super) receivers: Lone,
    pub(super) of_port: Vec<u32>,
    of_sender: Vec<u32>,
    of_receiver: Vec<u32>,
    of_hosts: u32,
    /// About how many events a second are expected.
    pub(super) rate: f64,
    width_bits: u32,
    superstep_end: u64,
    /// For sorting.
    counts: Vec<u32>,
}

/// Where more than one port makes events itself, a step of so many keeps the heap small.
const STEP_EVENTS: f64 = 16.0;

/// Beyond most retransmission timers, nanoseconds.
const TIMER_HORIZON: u64 = 4_000_000_000;

impl Post {
    pub(super) fn new(plan: &Plan, ranks: Ranks, partition: Partition) -> Self {
        let Partition { rate, width_bits, places, of_port, near_itself, of_sender, of_receiver, of_hosts } = partition;
        let mut ports_of = vec![Vec::new(); places];
        of_port.iter().zip(0u32..).for_each(|(&place, port)| ports_of[place as usize].push(port));
        let mut ends_at = vec![of_hosts != LONE; places];
        ends_at.iter_mut().zip(0u32..).for_each(|(ends, place)| *ends &= place == of_hosts);
        for &place in of_sender.iter().chain(&of_receiver).filter(|place| **place != LONE) {
            ends_at[place as usize] = true;
        }
        let horizon = expected_horizon(plan);
        // The least timeout of all lone senders, if each has one.
        let lone_groups =
            plan.flows.iter().zip(&of_sender).filter(|(_, place)| **place == LONE).map(|(flow, _)| flow.group);
        let mut groups: Vec<u32> = lone_groups.collect();
        groups.dedup();
        let config_of = |group: u32| plan.groups[group as usize].transport.tcp();
        let waits = groups.iter().any(|&group| config_of(group).is_some_and(|tcp| tcp.send_overhead > Span::ZERO));
        let timeout_of = |group: u32| config_of(group)?.least_timeout();
        let timeout = groups.into_iter().map(timeout_of).try_fold(Span::MAX, |least, own| Some(least.min(own?)));
        let hosted = of_sender.iter().filter(|place| **place != LONE).count();
        let of_hosts_rate = (rate * hosted as f64 / plan.flows.len().max(1) as f64).max(1e3);
        let step_bits = |rate: f64| ((STEP_EVENTS * 1e9 / rate) as u64).max(1).ilog2().min(width_bits);
        let (of_ends, of_ports) = (step_bits(of_hosts_rate), step_bits(rate));
        let place = |(ports, ends): (Vec<u32>, bool)| match (&ports[..], ends) {
            (_, true) => Place::new(of_ends, horizon.max(TIMER_HORIZON), None),
            ([port], false) if !near_itself[*port as usize] => Place::new(width_bits, horizon, Some(*port)),
            (_, false) => Place::new(of_ports, horizon, None),
        };
        let starts = plan.flows.iter().zip(&of_sender).zip(0u32..).filter(|((_, place), _)| **place == LONE);
        let starts = starts.filter_map(|((flow, _), number)| Some((flow.on.first()?.0.as_nanos(), number)));
        let starts = Starts::new(starts.collect());
        let lone = || Lone::new(width_bits, horizon, TIMER_HORIZON);
        Post {
            ranks,
            places: ports_of.into_iter().zip(ends_at).map(place).collect(),
            senders: LoneSenders::new(lone(), width_bits, if waits { plan.flows.len() } else { 0 }, timeout, starts),
            receivers: lone(),
            of_port,
            of_sender,
            of_receiver,
            of_hosts,
            rate,
            width_bits,
            superstep_end: 0,
            counts: Vec::new(),
        }
    }

    /// Whether `port` is a place by itself.
    #[inline]
    pub(super) fn is_alone(&self, port: u32) -> bool {
        self.places[self.of_port[port as usize] as usize].only_port.is_some()
    }

    /// Whether the sender of `flow` is a place by itself, and starts by itself for the first time.
    pub(super) fn is_lone_sender(&self, flow: u32) -> bool {
        self.of_sender[flow as usize] == LONE
    }

    /// The same of its receiver.
    pub(super) fn is_lone_receiver(&self, flow: u32) -> bool {
        self.of_receiver[flow as usize] == LONE
    }

    /// Takes what comes next at `place`, if its turn comes before `until`.
    #[inline(always)]
    pub(super) fn take(&mut self, place: usize, until: Turn) -> Option<Event> {
        let place = &mut self.places[place];
        place.take(until)
    }

    /// Begins the next step of `place` in which something is due, if it begins before `until`; something that the post
    /// does not know of is due there at `due`.
    #[inline(always)]
    pub(super) fn step(&mut self, place: usize, until: Turn, due: u64) -> bool {
        self.places[place].step(until, due, &mut self.counts)
    }

    /// When the present superstep ends.
    pub(super) fn superstep_end(&self) -> u64 {
        self.superstep_end
    }

    /// The number of the superstep in which `at` lies.
    pub(super) fn superstep_of(&self, at: u64) -> u64 {
        at >> self.width_bits
    }

    /// A packet of `flow` will reach the end of the lane of `rank`, which is `target` and no lone sender's, at `reach`.
    pub(super) fn post_to_end(&mut self, rank: u32, reach: u64, flow: u32, target: Target, event: &Event) {
        let place = match target {
            Target::LoneReceiver => return self.receivers.post(event.moved(reach, flow)),
            Target::Sender | Target::AgentSource => self.of_sender[flow as usize],
            _ => self.of_receiver[flow as usize],
        };
        self.places[place as usize].post(event.moved(reach, rank));
    }

    /// What is of `rank` is to have its turn at `at`.
    #[inline(never)]
    pub(super) fn schedule(&mut self, at: u64, rank: u32) {
        let ranks = &self.ranks;
        let (place, flow) = if rank < ranks.control {
            (self.of_port[rank as usize], 0)
        } else if rank < ranks.retransmission {
            (self.of_port[(rank - ranks.service) as usize], 0)
        } else if rank < ranks.acknowledge {
            let flow = (rank - ranks.retransmission) % (ranks.send - ranks.retransmission);
            (self.of_sender[flow as usize], flow)
        } else if rank < ranks.application {
            let flow = rank - ranks.acknowledge;
            (self.of_receiver[flow as usize], flow)
        } else {
            (self.of_hosts, 0)
        };
        match self.places.get_mut(place as usize) {
            Some(place) => place.post(Event::timer(at, rank)),
            None if rank < ranks.acknowledge => self.senders.inbox.schedule(at, flow),
            None => self.receivers.schedule(at, flow),
        }
    }

    /// Whether no place holds a port and an end, or two ports.
    pub(super) fn parts_ports_from_ends(&self) -> bool {
        let mut ends = self.of_sender.iter().chain(&self.of_receiver);
        let mut places = self.places.iter().zip(0u32..);
        ends.all(|place| [LONE, self.of_hosts].contains(place))
            && places.all(|(place, number)| place.only_port.is_some() || number == self.of_hosts)
            && !self.of_port.contains(&self.of_hosts)
    }

    /// The place of the applications, if there is one.
    pub(super) fn of_hosts(&self) -> Option<usize> {
        (self.of_hosts != LONE).then_some(self.of_hosts as usize)
    }

    /// The present superstep is over: the next in which something may happen, among the `few` supersteps that
    /// follow, or the last of these.
    pub(super) fn next_superstep(&self, few: RangeInclusive<u64>) -> u64 {
        let first = *few.start();
        let mut next = self.senders.next_superstep().min(self.receivers.next_superstep()).min(*few.end());
        for place in &self.places {
            if next <= first {
                return first;
            }
            next = next.min(place.next_due() >> self.width_bits);
        }
        next.max(first)
    }

    /// When `superstep` ends.
    pub(super) fn end_of(&self, superstep: u64) -> u64 {
        (superstep + 1) << self.width_bits
    }

    /// Opens superstep number `superstep`, the first or a later one than the present one; nothing happens between them.
    pub(super) fn open(&mut self, superstep: u64) {
        self.superstep_end = self.end_of(superstep);
        self.senders.open(superstep, superstep << self.width_bits);
        self.receivers.open(superstep);
    }
}
