//! Running in windows: many events at once, place by place.
//!
//! Where every way from one place (a port, an end of a connection) to the next takes at least so long, what happens at one
//! place within a window of that length cannot be felt at another before the window is over. Then each place can go through
//! the whole window by itself: a port takes what arrives, sorted all at once, beside its own timers; a sender what comes
//! back. Nothing of this passes through the calendar. The order at each place is the same as there, (moment, slot), and
//! places share nothing, so that the results are the same bits.
//!
//! The engine stops all places at the moments that concern all of them: those of the agenda, and of the sampler.
//!
//! Runs with a trace, with applications or with transports other than TCP take the calendar: what these gather depends on
//! the order of events at different places.
//!
//! This file holds what lies ahead of each place and the course of a run; `places` what happens at each.

mod places;

use aqumen_scenario::{Group, Plan, Traffic};

use super::{Engine, NEVER, Slots, expected_horizon, expected_rate};
use crate::event::Event;
use crate::inbox::Inbox;
use crate::network::{Network, Style, Target};
use crate::{Error, Progress};

/// What lies ahead of each place.
pub(super) struct Windows {
    width_bits: u32,
    ports: Vec<PortAhead>,
    /// Packets that reach an end: a flow's sender, or with `RECEIVER` its receiver, is in the place of the slot.
    ends: Inbox<Event>,
    /// Those of the present window.
    ends_now: Vec<Event>,
    /// Flows whose ends may have something to do by themselves, and when.
    timers: Inbox<(u64, u32)>,
    timers_now: Vec<(u64, u32)>,
    /// When the next sample is due.
    sample_at: u64,
    /// When the next acknowledgement after each of those at hand reaches the same sender, nanoseconds in this window.
    next_acks: Vec<u32>,
    /// The same for each flow, in the pass that finds them.
    first_acks: Vec<u32>,
    /// For sorting.
    counts: Vec<u32>,
}

/// What lies ahead of a port.
struct PortAhead {
    /// When its AQM's timer is due.
    timer_at: u64,
    /// When its transmission ends, if it is served.
    service_at: u64,
    arrivals: Inbox<Event>,
    batch: Batch,
}

/// Packets that arrive at a port in the present window.
#[derive(Default)]
struct Batch {
    events: Vec<Event>,
    /// Their order: moment in the window, above the place in `events`.
    order: Vec<u64>,
    /// How many of them have arrived.
    done: usize,
}

/// Set where a packet reaches a receiver.
const RECEIVER: u32 = 1 << 31;

/// Nothing more in this window.
const NO_MORE: u32 = u32::MAX;

/// A window of more events is cut: what it holds is to stay in the cache.
const WINDOW_EVENTS: f64 = 4096.0;

/// Fewer events in a window for each place are not worth its overhead.
const LEAST_EVENTS: f64 = 4.0;

/// Beyond most retransmission timers, nanoseconds.
const TIMER_HORIZON: u64 = 4_000_000_000;

impl Windows {
    /// For a run that windows suit.
    pub(super) fn new(plan: &Plan, network: &Network, style: Style, traced: bool) -> Option<Self> {
        let plain = |group: &Group| group.transport.tcp().is_some() && group.traffic == Traffic::Bulk;
        let to_port = |lane: u32| matches!(network.lanes[lane as usize].target(), Target::Port(_));
        let suits = plan.groups.iter().all(plain) && network.routes.iter().all(|route| to_port(route.data));
        if traced || !style.collapse || style.served || !suits {
            return None;
        }
        let rate = expected_rate(plan);
        let most = (WINDOW_EVENTS * 1e9 / rate) as u64;
        let width_bits = network.foresight.min(most.max(1)).checked_ilog2()?.min(31);
        let step_s = plan.sample_interval.as_nanos().min(1 << width_bits) as f64 * 1e-9;
        if rate * step_s < LEAST_EVENTS * (network.ports.len() as f64 + 1.0) {
            return None;
        }
        let horizon = expected_horizon(plan);
        let port = || PortAhead {
            timer_at: NEVER,
            service_at: NEVER,
            arrivals: Inbox::new(width_bits, horizon),
            batch: Batch::default(),
        };
        Some(Windows {
            width_bits,
            ports: network.ports.iter().map(|_| port()).collect(),
            ends: Inbox::new(width_bits, horizon),
            ends_now: Vec::new(),
            timers: Inbox::new(width_bits, TIMER_HORIZON),
            timers_now: Vec::new(),
            sample_at: NEVER,
            next_acks: Vec::new(),
            first_acks: vec![NO_MORE; plan.flows.len()],
            counts: Vec::new(),
        })
    }

    /// What is to happen at `at` in `slot`, as in the calendar.
    pub(super) fn schedule(&mut self, at: u64, slot: u32, slots: &Slots) {
        if slot < slots.control {
            self.ports[slot as usize].timer_at = at;
        } else if slot == slots.control {
            // The engine looks into the agenda itself.
        } else if slot == slots.sampler {
            self.sample_at = at;
        } else if slot < slots.retransmission {
            self.ports[(slot - slots.service) as usize].service_at = at;
        } else {
            let flows = slots.send - slots.retransmission;
            self.timers.post((at, (slot - slots.retransmission) % flows));
        }
    }

    /// Opens a window at all places.
    fn open(&mut self, window: u64) {
        let (start, width_bits) = (window << self.width_bits, self.width_bits);
        for PortAhead { arrivals, batch, .. } in &mut self.ports {
            batch.events.clear();
            arrivals.open(window, &mut batch.events);
            batch.sort(start, width_bits, &mut self.counts);
        }
        self.ends.open(window, &mut self.ends_now);
        self.timers.open(window, &mut self.timers_now);
    }
}

/// A packet of `flow` will reach the end of the lane in `slot`, which is `target`, at `reach`.
#[inline(always)]
fn post(
    ports: &mut [PortAhead],
    ends: &mut Inbox<Event>,
    slot: u32,
    reach: u64,
    flow: u32,
    target: Target,
    event: &Event,
) {
    match target {
        Target::Port(port) => ports[port as usize].arrivals.post(event.moved(reach, slot)),
        Target::Sender | Target::AgentSource => ends.post(event.moved(reach, flow)),
        Target::Receiver | Target::PromptReceiver | Target::AgentSink => {
            ends.post(event.moved(reach, flow | RECEIVER));
        }
    }
}

impl Batch {
    /// Puts the packets of the window that begins at `start` into order, by moment and slot, those that equal in both as they
    /// came.
    fn sort(&mut self, start: u64, width_bits: u32, counts: &mut Vec<u32>) {
        let Batch { events, order, done } = self;
        *done = 0;
        order.clear();
        if events.is_empty() {
            return;
        }
        // Arrivals are spread evenly, more or less: each goes into one of several times as many pigeonholes, and the few that
        // are left out of order are next to their places.
        const CROWD: u32 = 16;
        let holes_bits = (events.len().ilog2() + 1).min(width_bits);
        let hole = |event: &Event| ((event.at - start) >> (width_bits - holes_bits)) as usize;
        let key = |place: usize, event: &Event| (event.at - start) << 32 | place as u64;
        counts.clear();
        counts.resize(1 << holes_bits, 0);
        events.iter().for_each(|event| counts[hole(event)] += 1);
        let (mut before, mut crowded) = (0, false);
        for count in counts.iter_mut() {
            crowded |= *count > CROWD;
            before += std::mem::replace(count, before);
        }
        if crowded {
            order.extend(events.iter().enumerate().map(|(place, event)| key(place, event)));
            order.sort_unstable();
        } else {
            order.resize(events.len(), 0);
            for (place, event) in events.iter().enumerate() {
                let position = &mut counts[hole(event)];
                order[*position as usize] = key(place, event);
                *position += 1;
            }
            for end in 1..order.len() {
                let (key, mut place) = (order[end], end);
                while place > 0 && order[place - 1] > key {
                    order[place] = order[place - 1];
                    place -= 1;
                }
                order[place] = key;
            }
        }
        if order.windows(2).any(|pair| pair[0] >> 32 == pair[1] >> 32) {
            order.sort_by_key(|&key| (key >> 32, events[key as u32 as usize].slot, key as u32));
        }
    }

    /// The next packet, if it arrives before `until`.
    #[inline(always)]
    fn peek(&self, until: u64) -> Option<Event> {
        let event = self.events[*self.order.get(self.done)? as u32 as usize];
        (event.at < until).then_some(event)
    }
}

impl Engine<'_> {
    /// [`run`](Self::run), in windows.
    pub(super) fn run_in_windows(&mut self, progress: &mut dyn Progress) -> Result<(), Error> {
        let end = self.plan.duration.as_nanos();
        let ports = self.network.ports.len() as u32;
        let mut window = 0;
        self.open_window(window);
        loop {
            let Some(windows) = &self.windows else { return Ok(()) };
            let (window_end, sample_at) = ((window + 1) << windows.width_bits, windows.sample_at);
            let stop = self.agenda.next().min(sample_at);
            let until = window_end.min(stop);
            if until > 0 {
                (0..ports).for_each(|port| self.run_port(port, until));
                self.run_ends(until, window_end);
                self.run_timers(until);
            }
            if until == stop {
                // At equal moments, timers of AQMs come first, then the agenda, then the sampler.
                (0..ports).for_each(|port| self.run_port_timer(port, stop));
                if self.agenda.next() == stop {
                    self.events += 1;
                    self.on_control(stop, progress)?;
                    if stop >= end {
                        return Ok(());
                    }
                }
                if sample_at == stop {
                    self.schedule_timer(NEVER, self.slots.sampler);
                    self.events += 1;
                    self.sample(stop);
                }
            }
            if until == window_end {
                window += 1;
                self.open_window(window);
            }
        }
    }

    fn open_window(&mut self, window: u64) {
        if let Some(windows) = &mut self.windows {
            windows.open(window);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_batch_is_in_order_of_moment_then_slot_then_arrival(
            events in prop::collection::vec((0u64..4096, 0u32..3), 0..200),
            crowd in prop::collection::vec((7u64..9, 0u32..3), 0..60),
        ) {
            let start = 1 << 20;
            let events: Vec<_> = events.into_iter().chain(crowd).map(|(at, slot)| Event::timer(start + at, slot)).collect();
            let mut batch = Batch { events: events.clone(), ..Batch::default() };
            batch.sort(start, 12, &mut Vec::new());
            let mut expected: Vec<usize> = (0..events.len()).collect();
            expected.sort_by_key(|&place| (events[place].at, events[place].slot, place));
            let order: Vec<usize> = batch.order.iter().map(|&key| key as u32 as usize).collect();
            prop_assert_eq!(order, expected);
        }
    }
}
