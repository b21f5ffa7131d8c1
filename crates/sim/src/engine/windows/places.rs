//! What happens in a window at each place: ports, senders, receivers.
//!
//! The loops that most packets go through borrow what they need field by field, so that it stays at hand from packet to
//! packet; whatever else may happen interrupts them, is done by the engine as a whole, and they go on.

use aqumen_transport::tcp::TcpConfig;
use aqumen_units::Span;

use super::{Batch, NO_MORE, PortAhead, RECEIVER, Windows, post};
use crate::engine::{Departure, Engine, FLOWS_IN_CACHE, FlowState, NEVER, instant};
use crate::event::Event;
use crate::inbox::Inbox;
use crate::network::{Hop, Lane, Target};
use crate::port::{Arrival, Port};

/// What leads packets from place to place.
struct Ways<'e> {
    lanes: &'e mut [Lane],
    hops: &'e mut [Hop],
    /// The slot of the first lane.
    first_lane: u32,
    flows: &'e mut [FlowState],
    configs: &'e [&'e TcpConfig],
    ports: &'e mut [PortAhead],
    ends: &'e mut Inbox<Event>,
    timers: &'e mut Inbox<(u64, u32)>,
    /// The next edge of a window over which metrics are taken.
    next_edge: u64,
    /// The next moment of the agenda.
    next_control: u64,
    /// Whether the flows are too many for the cache.
    far: bool,
}

/// Why a loop stops.
enum Stop {
    /// All is done.
    Done,
    /// The place has something to do by itself at this moment at the latest.
    Clock(u64),
    /// A packet of this flow is gone.
    Lost(u32, Event),
    /// A packet of this flow arrives at a served port.
    Served(u32, Event),
    /// A segment of this flow will reach its prompt receiver at this moment, which has more to do than to acknowledge it.
    Segment(u32, u64, Event),
    /// What the event says of its sender or receiver is to be worked in.
    End(Event),
    /// A sender is to send what it has at this moment.
    Send(u32, u64),
}

/// So many packets ahead, what they need is read.
const STEP: usize = 16;

impl Ways<'_> {
    /// A packet enters the lane in `slot` at `at`. `Some`: it will reach, then, a prompt receiver that has more to do than to
    /// acknowledge it.
    #[inline(always)]
    fn send(&mut self, slot: u32, at: u64, event: &Event) -> Option<u64> {
        let number = (slot - self.first_lane) as usize;
        let lane = &mut self.lanes[number];
        let reach = lane.cross(self.hops, at, event.bytes);
        let (flow, target) = (lane.flow, lane.target());
        if target != Target::PromptReceiver {
            post(self.ports, self.ends, slot, reach, flow, target, event);
            return None;
        }
        let sink = &mut self.flows[flow as usize].sink;
        let config = self.configs[sink.group as usize];
        let segment = event.as_segment();
        if !sink.receiver.is_next(&segment) || reach >= self.next_edge {
            return Some(reach);
        }
        let ack = Event::ack(&sink.receiver.accept(config, &segment), config.ack_bytes, event.epoch());
        let lane = &mut self.lanes[number + 1];
        let back = lane.cross(self.hops, reach, config.ack_bytes);
        post(self.ports, self.ends, slot + 1, back, flow, lane.target(), &ack);
        None
    }

    /// The packets of `batch` arrive at a port.
    #[inline(always)]
    fn arrive(
        &mut self,
        batch: &mut Batch,
        clock: u64,
        until: u64,
        mut arrive: impl FnMut(&mut Event, u32) -> Arrival,
    ) -> Stop {
        while let Some(mut event) = batch.peek(until) {
            if event.at >= clock {
                return Stop::Clock(event.at);
            }
            if self.far && batch.done.is_multiple_of(STEP) {
                self.read_lanes(batch);
            }
            batch.done += 1;
            let flow = self.lanes[(event.slot - self.first_lane) as usize].flow;
            let Arrival::Leaves { reach, .. } = arrive(&mut event, flow) else { return Stop::Lost(flow, event) };
            if let Some(at) = self.send(event.slot + 1, reach, &event) {
                return Stop::Segment(flow, at, event);
            }
        }
        Stop::Done
    }

    /// The acknowledgements among `events` reach their senders, from `place` on; the next of the same flow reaches it at
    /// `next_acks`, in nanoseconds from `start` on, or no sooner than `until`.
    #[inline(never)]
    fn acknowledge(&mut self, events: &[Event], next_acks: &[u32], place: &mut usize, start: u64, until: u64) -> Stop {
        while let (Some(event), Some(&next)) = (events.get(*place), next_acks.get(*place)) {
            if self.far && place.is_multiple_of(STEP) {
                self.read_senders(&events[*place..]);
            }
            let (flow, now) = (event.slot, event.at);
            if flow & RECEIVER != 0 {
                *place += 1;
                return Stop::End(*event);
            }
            let state = &mut self.flows[flow as usize];
            if state.timer_at.min(state.send_at) <= now {
                return Stop::Clock(now);
            }
            *place += 1;
            if event.table_index().is_some() {
                return Stop::End(*event);
            }
            let config = self.configs[state.group as usize];
            state.sender.on_ack(config, instant(now), &event.as_ack());
            if state.sender.is_urgent() {
                return Stop::Send(flow, now);
            }
            let next_ack = if next == NO_MORE { until } else { start + u64::from(next) };
            let departure = match (config.send_overhead, state.sender.allowance()) {
                (Span::ZERO, Some(segments)) => Departure::At(segments, now),
                (Span::ZERO, None) => return Stop::Send(flow, now),
                _ => state.departure(config, now, self.next_control, || next_ack),
            };
            match departure {
                Departure::None => {}
                Departure::At(segments, at) => {
                    for _ in 0..segments {
                        let state = &mut self.flows[flow as usize];
                        let segment = Event::segment(&state.sender.transmit(config, instant(at)), state.epoch);
                        let slot = self.first_lane + state.data_lane;
                        self.send(slot, at, &segment);
                    }
                }
                Departure::Later(at) => self.timers.post((at, flow)),
            }
            let state = &mut self.flows[flow as usize];
            if let Some(due) = state.rearm() {
                self.timers.post((due, flow));
            }
        }
        Stop::Done
    }

    /// Reads what the packets to arrive at a port need, in two steps, as the lane tells the flow. In a large network none of
    /// it is in the cache, and waiting for many at once takes no longer than for one.
    #[inline(never)]
    fn read_lanes(&self, batch: &Batch) {
        let lane = |&key: &u64| (batch.events[key as u32 as usize].slot - self.first_lane) as usize;
        let order = &batch.order[batch.done..];
        let mut seen = 0;
        for key in order.iter().take(STEP) {
            seen ^= self.flows[self.lanes[lane(key)].flow as usize].sink.group;
        }
        for key in order.iter().skip(STEP).take(STEP) {
            // The lane that it is on, the next, and that of the acknowledgement, three or four times half a line.
            let number = lane(key);
            seen ^= self.lanes[number].flow ^ self.lanes.get(number + 2).map_or(0, |lane| lane.flow);
        }
        std::hint::black_box(seen);
    }

    /// The same for acknowledgements.
    #[inline(never)]
    fn read_senders(&self, events: &[Event]) {
        let mut seen = 0;
        for event in events.iter().take(STEP) {
            let state = &self.flows[(event.slot & !RECEIVER) as usize];
            seen ^= self.lanes[state.data_lane as usize].flow;
        }
        for event in events.iter().skip(STEP).take(STEP) {
            let state = &self.flows[(event.slot & !RECEIVER) as usize];
            seen ^= state.sender.acknowledged_segments() ^ state.sender.stats().sent ^ state.data_lane;
        }
        std::hint::black_box(seen);
    }
}

impl Engine<'_> {
    /// The ways, and the ports that they lead to.
    #[inline(always)]
    fn ways(&mut self) -> Option<(Ways<'_>, &mut [Port])> {
        let Windows { ports, ends, timers, .. } = self.windows.as_mut()?;
        let ways = Ways {
            far: self.flows.len() > FLOWS_IN_CACHE,
            lanes: &mut self.network.lanes,
            hops: &mut self.network.hops,
            first_lane: self.slots.lanes,
            flows: &mut self.flows,
            configs: &self.configs,
            ports,
            ends,
            timers,
            next_edge: self.agenda.next_edge(),
            next_control: self.agenda.next(),
        };
        Some((ways, &mut self.network.ports))
    }

    /// A packet enters `lane` at `at`.
    #[inline(never)]
    pub(in crate::engine) fn send_in_window(&mut self, lane: u32, at: u64, event: &Event) {
        let slot = self.slots.lanes + lane;
        if let Some((mut ways, _)) = self.ways()
            && let Some(at) = ways.send(slot, at, event)
        {
            self.on_segment_event(self.network.lanes[lane as usize].flow, at, event);
        }
    }

    /// A port goes on up to, not including, `until`.
    pub(super) fn run_port(&mut self, number: u32, until: u64) {
        let Some(windows) = &mut self.windows else { return };
        let mut batch = std::mem::take(&mut windows.ports[number as usize].batch);
        let before = batch.done;
        loop {
            match self.run_arrivals(number, until, &mut batch) {
                Stop::Clock(at) => self.run_port_clock(number, at),
                Stop::Lost(flow, event) => self.discard(flow, &event),
                Stop::Served(flow, event) => self.arrive_at_served(number, flow, event.at, &event),
                Stop::Segment(flow, at, event) => self.on_segment_event(flow, at, &event),
                _ => break,
            }
        }
        self.run_port_clock(number, until - 1);
        self.events += (batch.done - before) as u64;
        if let Some(windows) = &mut self.windows {
            windows.ports[number as usize].batch = batch;
        }
    }

    #[inline(always)]
    fn run_arrivals(&mut self, number: u32, until: u64, batch: &mut Batch) -> Stop {
        let Some((mut ways, ports)) = self.ways() else { return Stop::Done };
        let ahead = &ways.ports[number as usize];
        let clock = ahead.timer_at.min(ahead.service_at);
        match &mut ports[number as usize] {
            Port::Fifo(port) => ways.arrive(
                batch,
                clock,
                until,
                #[inline(always)]
                |event, flow| port.arrive(event.at, event, flow),
            ),
            Port::Plain(port) => ways.arrive(
                batch,
                clock,
                until,
                #[inline(always)]
                |event, _| port.arrive(event.at, event.bytes),
            ),
            Port::Served(_) => match batch.peek(until) {
                None => Stop::Done,
                Some(event) if event.at >= clock => Stop::Clock(event.at),
                Some(event) => {
                    batch.done += 1;
                    Stop::Served(ways.lanes[(event.slot - ways.first_lane) as usize].flow, event)
                }
            },
        }
    }

    /// Carries out what a port does by itself up to and including `until`: timers of its AQM, ends of transmissions.
    fn run_port_clock(&mut self, number: u32, until: u64) {
        loop {
            let Some(windows) = &mut self.windows else { return };
            let PortAhead { timer_at, service_at, .. } = &mut windows.ports[number as usize];
            let now = (*timer_at).min(*service_at);
            if now > until {
                return;
            }
            if *timer_at <= *service_at {
                self.run_port_timer(number, now);
            } else {
                *service_at = NEVER;
                self.events += 1;
                self.on_service_end(now, number);
            }
        }
    }

    /// The timer of a port's AQM may be due.
    pub(super) fn run_port_timer(&mut self, number: u32, now: u64) {
        let Some(windows) = &mut self.windows else { return };
        let timer_at = &mut windows.ports[number as usize].timer_at;
        if *timer_at <= now {
            *timer_at = NEVER;
            self.events += 1;
            self.on_port_timer(now, number);
        }
    }

    /// The ends of all connections take what reaches them before `until`.
    pub(super) fn run_ends(&mut self, until: u64, window_end: u64) {
        let Some(windows) = &mut self.windows else { return };
        let start = window_end - (1 << windows.width_bits);
        let mut events = std::mem::take(&mut windows.ends_now);
        if until < window_end {
            windows.ends_now.extend(events.iter().filter(|event| event.at >= until));
            events.retain(|event| event.at < until);
        }
        let (mut next_acks, first_acks) = (std::mem::take(&mut windows.next_acks), &mut windows.first_acks);
        next_acks.clear();
        next_acks.resize(events.len(), NO_MORE);
        for (event, next) in events.iter().zip(&mut next_acks).rev() {
            if let Some(first) = first_acks.get_mut(event.slot as usize) {
                *next = std::mem::replace(first, (event.at - start) as u32);
            }
        }
        for event in &events {
            if let Some(first) = first_acks.get_mut(event.slot as usize) {
                *first = NO_MORE;
            }
        }
        self.events += events.len() as u64;
        let mut place = 0;
        while let Some((mut ways, _)) = self.ways() {
            match ways.acknowledge(&events, &next_acks, &mut place, start, until) {
                Stop::Clock(at) => self.run_sender_clock(events[place].slot, at),
                Stop::Send(flow, at) => self.pump_rarely(flow, at),
                Stop::End(event) if event.slot & RECEIVER == 0 => self.on_ack_in_table(event.slot, event.at, &event),
                Stop::End(event) => {
                    let flow = event.slot & !RECEIVER;
                    self.run_receiver_clock(flow, event.at);
                    self.on_segment_event(flow, event.at, &event);
                }
                _ => break,
            }
        }
        if let Some(windows) = &mut self.windows {
            windows.next_acks = next_acks;
            if windows.ends_now.is_empty() {
                events.clear();
                windows.ends_now = events;
            }
        }
    }

    /// The ends that have something to do by themselves before `until` do it.
    pub(super) fn run_timers(&mut self, until: u64) {
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
                state.sender.on_timer(self.configs[state.group as usize], instant(timer_at));
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
    #[inline(always)]
    fn run_receiver_clock(&mut self, flow: u32, until: u64) {
        while self.ack_at[flow as usize] <= until {
            let now = self.ack_at[flow as usize];
            self.events += 1;
            self.on_acknowledge_timer(now, flow);
        }
    }
}
