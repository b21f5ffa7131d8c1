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

use aqumen_scenario::{Plan, Traffic};

use super::{Engine, FLOWS_IN_CACHE, NEVER, Slots, expected_horizon, expected_rate};
use crate::event::Event;
use crate::inbox::Inbox;
use crate::network::{Network, Style, Target};
use crate::port::{Arrival, Port};
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
}

/// What lies ahead of a port.
struct PortAhead {
    /// When its AQM's timer is due.
    timer_at: u64,
    /// When its transmission ends, if it is served.
    service_at: u64,
    arrivals: Inbox<Event>,
    /// Packets that arrive in the present window.
    batch: Vec<Event>,
    /// Their order: moment in the window, above the place in `batch`.
    order: Vec<u64>,
    /// How many of them have arrived.
    done: usize,
}

/// So many packets ahead, what they need is read.
const STEP: usize = 16;

/// Set where a packet reaches a receiver.
const RECEIVER: u32 = 1 << 31;

/// A window of more events is cut.
const WINDOW_EVENTS: f64 = 2048.0;

/// Nothing more in this window.
const NO_MORE: u32 = u32::MAX;

impl Windows {
    /// For a run that windows suit.
    pub(super) fn new(plan: &Plan, network: &Network, style: Style, traced: bool) -> Option<Self> {
        /// Fewer events in a window for each place are not worth its overhead.
        const LEAST_EVENTS: f64 = 4.0;
        let plain = |group: &aqumen_scenario::Group| group.transport.tcp().is_some() && group.traffic == Traffic::Bulk;
        if traced || !style.collapse || style.served || !plan.groups.iter().all(plain) {
            return None;
        }
        let rate = expected_rate(plan);
        // What a window holds is to stay in the cache.
        let most = (WINDOW_EVENTS * 1e9 / rate) as u64;
        let width_bits = network.foresight.min(most.max(1)).checked_ilog2()?.min(31);
        let step = plan.sample_interval.as_nanos().min(1 << width_bits);
        let places = network.ports.len() as f64 + 1.0;
        if rate * step as f64 * 1e-9 < LEAST_EVENTS * places {
            return None;
        }
        let horizon = expected_horizon(plan);
        let port = || PortAhead {
            timer_at: NEVER,
            service_at: NEVER,
            arrivals: Inbox::new(width_bits, horizon),
            batch: Vec::new(),
            order: Vec::new(),
            done: 0,
        };
        /// Beyond most retransmission timers, nanoseconds.
        const TIMER_HORIZON: u64 = 4_000_000_000;
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

    /// A packet of `flow` will reach the end of lane number `slot`, which is `target`, at `reach`.
    #[inline(always)]
    pub(super) fn post(&mut self, slot: u32, reach: u64, flow: u32, target: Target, mut event: Event) {
        event.at = reach;
        match target {
            Target::Port(port) => {
                event.slot = slot;
                self.ports[port as usize].arrivals.post(event);
            }
            Target::Sender | Target::AgentSource => {
                event.slot = flow;
                self.ends.post(event);
            }
            Target::Receiver | Target::PromptReceiver | Target::AgentSink => {
                event.slot = flow | RECEIVER;
                self.ends.post(event);
            }
        }
    }

    /// Opens a window at all places.
    fn open(&mut self, window: u64) {
        let start = window << self.width_bits;
        self.ports.iter_mut().for_each(|port| port.open(window, start));
        self.ends.open(window, &mut self.ends_now);
        self.timers.open(window, &mut self.timers_now);
    }
}

impl PortAhead {
    fn open(&mut self, window: u64, start: u64) {
        self.batch.clear();
        self.arrivals.open(window, &mut self.batch);
        let (batch, order) = (&self.batch, &mut self.order);
        order.clear();
        order.extend((0u64..).zip(batch).map(|(place, event)| (event.at - start) << 32 | place));
        order.sort_unstable();
        if order.windows(2).any(|pair| pair[0] >> 32 == pair[1] >> 32) {
            order.sort_by_key(|&key| (key >> 32, batch[key as u32 as usize].slot, key as u32));
        }
        self.done = 0;
    }
}

impl Engine<'_> {
    /// [`run`](Self::run), in windows.
    pub(super) fn run_in_windows(&mut self, progress: &mut dyn Progress) -> Result<(), Error> {
        let end = self.plan.duration.as_nanos();
        let mut window = 0;
        self.open_window(window);
        loop {
            let Some(windows) = &self.windows else { return Ok(()) };
            let (window_end, sample_at) = ((window + 1) << windows.width_bits, windows.sample_at);
            let stop = self.agenda.next().min(sample_at);
            let until = window_end.min(stop);
            if until > 0 {
                (0..self.network.ports.len() as u32).for_each(|port| self.run_port(port, until));
                self.run_ends(until, window_end);
                self.run_timers(until);
            }
            if until == stop {
                // At equal moments, timers of AQMs come first, then the agenda, then the sampler.
                (0..self.network.ports.len() as u32).for_each(|port| self.run_port_timer(port, stop));
                if self.agenda.next() == stop {
                    self.events += 1;
                    self.on_control(stop, progress)?;
                    if stop >= end {
                        return Ok(());
                    }
                }
                if sample_at == stop {
                    if let Some(windows) = &mut self.windows {
                        windows.sample_at = NEVER;
                    }
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

    /// A port goes on up to, not including, `until`.
    fn run_port(&mut self, number: u32, until: u64) {
        let Some(windows) = &mut self.windows else { return };
        let ahead = &mut windows.ports[number as usize];
        let (mut batch, order) = (std::mem::take(&mut ahead.batch), std::mem::take(&mut ahead.order));
        let mut done = ahead.done;
        let many = self.flows.len() > FLOWS_IN_CACHE;
        while let Some(&key) = order.get(done) {
            if many && done % STEP == 0 {
                self.read_lanes(&batch, &order[done..]);
            }
            let event = &mut batch[key as u32 as usize];
            if event.at >= until {
                break;
            }
            done += 1;
            self.events += 1;
            self.run_port_clock(number, event.at);
            self.arrive_in_window(number, event);
        }
        self.run_port_clock(number, until - 1);
        if let Some(windows) = &mut self.windows {
            let ahead = &mut windows.ports[number as usize];
            (ahead.batch, ahead.order, ahead.done) = (batch, order, done);
        }
    }

    /// A packet arrives at a port.
    #[inline(always)]
    fn arrive_in_window(&mut self, number: u32, event: &mut Event) {
        let lane = event.slot - self.slots.lanes;
        let flow = self.network.lanes[lane as usize].flow;
        let arrival = match &mut self.network.ports[number as usize] {
            Port::Fifo(port) => port.arrive(event.at, event, flow),
            Port::Plain(port) => port.arrive(event.at, event.bytes),
            Port::Served(_) => return self.arrive_at_served(number, flow, event),
        };
        match arrival {
            Arrival::Leaves { reach, .. } => self.send_in_window(lane + 1, reach, *event),
            _ => self.discard(flow, event),
        }
    }

    /// A packet enters `lane` at `at`.
    #[inline(always)]
    pub(super) fn send_in_window(&mut self, lane: u32, at: u64, event: Event) {
        let (reach, flow, target) = self.network.cross(lane, at, event.bytes);
        if target == Target::PromptReceiver {
            return self.on_segment_in_window(lane, reach, flow, &event);
        }
        if let Some(windows) = &mut self.windows {
            windows.post(self.slots.lanes + lane, reach, flow, target, event);
        }
    }

    /// A segment on `lane` will reach a receiver that answers at once.
    #[inline(always)]
    fn on_segment_in_window(&mut self, lane: u32, at: u64, flow: u32, event: &Event) {
        let state = &mut self.flows[flow as usize];
        let config = self.configs[state.sink.group as usize];
        let segment = event.as_segment();
        if !state.sink.receiver.is_next(&segment) || at >= self.agenda.next_edge() {
            return self.on_segment_event(flow, at, event);
        }
        let ack = Event::ack(&state.sink.receiver.accept(config, &segment), config.ack_bytes, event.epoch());
        let (reach, _, target) = self.network.cross(lane + 1, at, config.ack_bytes);
        if let Some(windows) = &mut self.windows {
            windows.post(self.slots.lanes + lane + 1, reach, flow, target, ack);
        }
    }

    /// Carries out what a port does by itself up to and including `until`: timers of its AQM, ends of transmissions.
    #[inline(always)]
    fn run_port_clock(&mut self, number: u32, until: u64) {
        loop {
            let Some(windows) = &self.windows else { return };
            let &PortAhead { timer_at, service_at, .. } = &windows.ports[number as usize];
            if timer_at.min(service_at) > until {
                return;
            }
            if timer_at <= service_at {
                self.run_port_timer(number, timer_at);
            } else {
                self.run_service_end(number, service_at);
            }
        }
    }

    /// The timer of a port's AQM may be due.
    #[inline(never)]
    fn run_port_timer(&mut self, number: u32, now: u64) {
        let Some(windows) = &mut self.windows else { return };
        let timer_at = &mut windows.ports[number as usize].timer_at;
        if *timer_at <= now {
            *timer_at = NEVER;
            self.events += 1;
            self.on_timer(now, number);
        }
    }

    #[inline(never)]
    fn run_service_end(&mut self, number: u32, now: u64) {
        let Some(windows) = &mut self.windows else { return };
        windows.ports[number as usize].service_at = NEVER;
        self.events += 1;
        self.on_service_end(now, number);
    }

    /// The ends of all connections take what reaches them before `until`.
    fn run_ends(&mut self, until: u64, window_end: u64) {
        let Some(windows) = &mut self.windows else { return };
        let start = window_end - (1 << windows.width_bits);
        let mut events = std::mem::take(&mut windows.ends_now);
        if until < window_end {
            windows.ends_now.extend(events.iter().filter(|event| event.at >= until));
            events.retain(|event| event.at < until);
        }
        let (mut next_acks, mut first_acks) =
            (std::mem::take(&mut windows.next_acks), std::mem::take(&mut windows.first_acks));
        next_acks.clear();
        next_acks.resize(events.len(), NO_MORE);
        for (event, next) in events.iter().zip(&mut next_acks).rev() {
            if let Some(first) = first_acks.get_mut(event.slot as usize) {
                *next = std::mem::replace(first, (event.at - start) as u32);
            }
        }
        self.events += events.len() as u64;
        let many = self.flows.len() > FLOWS_IN_CACHE;
        for (place, (event, &next)) in events.iter().zip(&next_acks).enumerate() {
            if many && place % STEP == 0 {
                self.read_senders(&events[place..]);
            }
            if let Some(first) = first_acks.get_mut(event.slot as usize) {
                *first = NO_MORE;
                let next_ack = if next == NO_MORE { until } else { start + u64::from(next) };
                self.on_ack_in_window(event, next_ack);
            } else {
                let flow = event.slot & !RECEIVER;
                if self.ack_at[flow as usize] <= event.at {
                    self.run_receiver_clock(flow, event.at);
                }
                self.on_segment_event(flow, event.at, event);
            }
        }
        if let Some(windows) = &mut self.windows {
            (windows.next_acks, windows.first_acks) = (next_acks, first_acks);
            if windows.ends_now.is_empty() {
                events.clear();
                windows.ends_now = events;
            }
        }
    }

    /// Reads what the packets to arrive at a port need, in two steps, as the lane tells the flow. In a large network none of
    /// it is in the cache, and waiting for many at once takes no longer than for one.
    #[inline(never)]
    fn read_lanes(&self, batch: &[Event], order: &[u64]) {
        let lane = |&key: &u64| self.network.lanes.get((batch[key as u32 as usize].slot - self.slots.lanes) as usize + 1);
        let mut seen = 0;
        for lane in order.iter().take(STEP).filter_map(lane) {
            seen ^= self.flows[lane.flow as usize].sink.group;
        }
        for key in order.iter().skip(STEP).take(STEP) {
            seen ^= lane(key).map_or(0, |lane| lane.flow);
        }
        std::hint::black_box(seen);
    }

    /// The same for acknowledgements.
    #[inline(never)]
    fn read_senders(&self, events: &[Event]) {
        let mut seen = 0;
        for event in events.iter().take(STEP) {
            let state = &self.flows[(event.slot & !RECEIVER) as usize];
            seen ^= self.network.lanes[state.data_lane as usize].flow;
        }
        for event in events.iter().skip(STEP).take(STEP) {
            let state = &self.flows[(event.slot & !RECEIVER) as usize];
            seen ^= state.sender.acknowledged_segments() ^ state.sender.stats().sent ^ state.data_lane;
        }
        std::hint::black_box(seen);
    }

    /// An acknowledgement reaches its sender; the next one comes no sooner than `next_ack`.
    #[inline(always)]
    fn on_ack_in_window(&mut self, event: &Event, next_ack: u64) {
        let (flow, now) = (event.slot, event.at);
        let state = &self.flows[flow as usize];
        if state.timer_at.min(state.send_at) <= now {
            self.run_sender_clock(flow, now);
        }
        if event.table_index().is_some() {
            return self.on_ack_in_table(flow, now, event);
        }
        let state = &mut self.flows[flow as usize];
        state.sender.on_ack(self.configs[state.group as usize], super::instant(now), &event.as_ack());
        self.pump_until(flow, now, |_| next_ack);
    }

    /// The ends that have something to do by themselves before `until` do it.
    fn run_timers(&mut self, until: u64) {
        let Some(windows) = &mut self.windows else { return };
        let mut timers = std::mem::take(&mut windows.timers_now);
        let mut next = 0;
        loop {
            if let Some(&(at, flow)) = timers.get(next) {
                if at >= until {
                    next += 1;
                    continue;
                }
                timers.swap_remove(next);
                self.run_sender_clock(flow, until - 1);
                self.run_receiver_clock(flow, until - 1);
            } else if let Some(windows) = &mut self.windows {
                // What was posted since then.
                windows.timers.take(&mut timers);
                if next == timers.len() {
                    windows.timers_now = timers;
                    return;
                }
            }
        }
    }

    /// Carries out what a sender does by itself up to and including `until`: timeouts, delayed sends.
    #[inline(never)]
    fn run_sender_clock(&mut self, flow: u32, until: u64) {
        loop {
            let state = &mut self.flows[flow as usize];
            let timer_at = state.sender.next_timer().map_or(NEVER, |due| due.as_nanos());
            if timer_at.min(state.send_at) > until {
                break;
            }
            self.events += 1;
            if timer_at <= state.send_at {
                state.sender.on_timer(self.configs[state.group as usize], super::instant(timer_at));
                self.pump_rarely(flow, timer_at);
            } else {
                let at = state.send_at;
                self.on_delayed_send(at, flow);
            }
        }
        let state = &mut self.flows[flow as usize];
        if state.timer_at <= until {
            state.timer_at = NEVER;
            self.arm_retransmission(flow);
        }
    }

    /// The same for a receiver: delayed acknowledgements.
    #[inline(never)]
    fn run_receiver_clock(&mut self, flow: u32, until: u64) {
        while self.ack_at[flow as usize] <= until {
            let now = self.ack_at[flow as usize];
            self.events += 1;
            self.on_acknowledge_timer(now, flow);
        }
    }
}

impl Engine<'_> {
    #[inline(never)]
    fn arrive_at_served(&mut self, number: u32, flow: u32, event: &Event) {
        let Port::Served(port) = &mut self.network.ports[number as usize] else { return };
        let mut dropped = Vec::new();
        if let Arrival::Waits { busy_until: Some(end) } = port.arrive(event.at, event, flow, &mut dropped) {
            self.schedule_timer(end, self.slots.service + number);
        }
        dropped.iter().for_each(|event| self.discard(self.flow_of(event), event));
    }
}
