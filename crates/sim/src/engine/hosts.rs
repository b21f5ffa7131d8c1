//! The hosts: the sending ends of flows, the flows of other transports than TCP, and the applications at both ends.
//!
//! What is here is TCP, which most packets belong to; flows of other transports are in `agents`, traffic sources in
//! `applications`, and what is asked of a flow whatever its transport in `ends`.

use aqumen_aqm::Draw;
use aqumen_scenario::Plan;
use aqumen_scenario::streams::{Kind, Stream};
use aqumen_transport::tcp::{Ack, Segment, Sender, TcpConfig};
use aqumen_units::{Instant, Span};

use super::agent::Agent;
use super::application::Applications;
use super::moment::{NEVER, instant};
use super::ways::Ways;
use crate::event::{Event, Kept};
use crate::lanes::Lane;
use crate::measure::Measures;

pub(super) struct Hosts<'a> {
    pub(super) plan: &'a Plan,
    pub(super) flows: Vec<FlowState>,
    pub(super) touched: Touched,
    /// Flows of other transports.
    pub(super) agents: Vec<Agent>,
    pub(super) applications: Applications,
    pub(super) measures: Measures,
}

/// A flow has no agent, or no application.
pub(super) const NONE: u32 = u32::MAX;

/// Those of the flows that samples watch that may stand otherwise than at the last one.
pub(super) struct Touched {
    /// They come first; there is room for one more than are watched.
    flows: Vec<u32>,
    count: usize,
}

/// The sending end of a flow.
#[repr(C, align(64))]
pub(super) struct FlowState {
    pub(super) sender: Sender,
    pub(super) rng: Stream,
    /// The first lane of its segments, which nobody else uses.
    pub(super) first_lane: Lane,
    /// When the earliest event for its retransmission timer comes.
    pub(super) timer_at: u64,
    /// When its delayed send comes: put off by an overhead or by pacing.
    pub(super) send_at: u64,
    pub(super) group: u32,
    /// Its index among the agents, or `NONE`: see [`ends`](Self::ends).
    pub(super) agent: u32,
    /// Its index among the applications, or `NONE`: it offers what the plan says.
    pub(super) application: u32,
    /// 1: samples watch it, and it stands as at the last one. Not behind the epoch: a compiler reads that with what
    /// follows, and a processor has to wait for what was just written there.
    pub(super) untouched: u16,
    /// The connection's, as events have it.
    pub(super) epoch: u16,
}

/// What a sender does after the overhead of its host.
#[derive(Clone, Copy)]
pub(super) enum Departure {
    /// It has nothing to send, or is about to send already.
    None,
    /// So many segments leave then, before anything can reach the sender.
    At(u32, u64),
    /// It looks then what it may send.
    Later(u64),
}

impl FlowState {
    pub(super) fn new(config: &TcpConfig, flow: &aqumen_scenario::Flow, seed: u64, number: u64) -> Self {
        let mut rng = Stream::new(seed, Kind::Endpoint, number);
        let phase = clock_phase(config, &mut rng);
        FlowState {
            sender: Sender::new(config, flow.transfer).with_clock_phase(config, phase),
            rng,
            first_lane: Lane::default(),
            timer_at: NEVER,
            send_at: NEVER,
            group: flow.group,
            agent: NONE,
            application: NONE,
            untouched: 0,
            epoch: 0,
        }
    }

    /// Where in a tick of its coarse clock a new connection begins: anywhere.
    pub(super) fn clock_phase(&mut self, config: &TcpConfig) -> Span {
        clock_phase(config, &mut self.rng)
    }

    /// It may stand otherwise from now on.
    #[inline(always)]
    pub(super) fn touch(&mut self, flow: u32, touched: &mut Touched) {
        // Without a branch, which nobody could foretell.
        touched.flows[touched.count] = flow;
        touched.count += usize::from(std::mem::take(&mut self.untouched));
    }

    /// What the sender does a random time after `now`, before anything of the agenda, when it has something to send;
    /// the next acknowledgement comes no sooner than `next_ack`.
    #[inline(always)]
    pub(super) fn departure(&mut self, config: &TcpConfig, now: u64, next_control: u64, next_ack: u64) -> Departure {
        if self.send_at != NEVER {
            return Departure::None;
        }
        let allowance = match self.sender.allowance() {
            Some(0) => return Departure::None,
            None if !self.sender.may_transmit(config, instant(now)) => return Departure::None,
            allowance => allowance,
        };
        // Signed, because processors convert those faster.
        let overhead_ns = config.send_overhead.as_nanos() as i64;
        let at = now + (self.rng.uniform() * overhead_ns as f64) as i64 as u64;
        let is_first = (at < next_ack) & (at < next_control) & !self.sender.may_be_due(instant(at));
        match allowance {
            Some(segments) if is_first => Departure::At(segments, at),
            _ => {
                self.send_at = at;
                Departure::Later(at)
            }
        }
    }

    /// When an event for the sender's timer is to be made, if none comes as soon and it is due before `before`.
    #[inline(always)]
    pub(super) fn rearm(&mut self, before: u64) -> Option<u64> {
        let due = self.sender.next_timer().map_or(NEVER, Instant::as_nanos);
        (due < self.timer_at.min(before)).then(|| {
            self.timer_at = due;
            due
        })
    }
}

fn clock_phase(config: &TcpConfig, rng: &mut Stream) -> Span {
    Span::from_nanos((rng.uniform() * config.rto_tick.as_nanos() as f64) as u64)
}

impl Touched {
    /// All flows that are watched: they are to be looked at with the first sample.
    pub(super) fn new(measures: &Measures) -> Self {
        let mut flows: Vec<u32> = measures.watched().collect();
        flows.sort_unstable();
        flows.dedup();
        let count = flows.len();
        flows.push(0);
        Touched { flows, count }
    }

    pub(super) fn flows(&self) -> &[u32] {
        &self.flows[..self.count]
    }

    /// A sample has been taken of `all`.
    pub(super) fn settle(&mut self, all: &mut [FlowState]) {
        self.flows().iter().for_each(|&flow| all[flow as usize].untouched = 1);
        self.count = 0;
    }
}

impl Hosts<'_> {
    /// A segment reaches a receiver in whose place more happens.
    pub(super) fn on_segment(&mut self, ways: &mut Ways<'_>, flow: u32, event: &Event) {
        let delivered = ways.receive(flow, event.at, *event, ways.lanes.acks_of(flow));
        let application = self.flows[flow as usize].application;
        if application != NONE && delivered > 0 {
            self.applications.delivered(application, event.at);
        }
    }

    /// An acknowledgement reaches its sender.
    #[inline(never)]
    pub(super) fn on_ack(&mut self, ways: &mut Ways<'_>, flow: u32, event: &Event) {
        match event.kept() {
            Some(Kept::Ack(index)) => {
                let ack = ways.acks.take(index);
                self.work_in(ways, flow, event, &ack);
            }
            _ => self.work_in(ways, flow, event, &event.as_ack()),
        }
    }

    #[inline(always)]
    fn work_in(&mut self, ways: &mut Ways<'_>, flow: u32, event: &Event, ack: &Ack) {
        let state = &mut self.flows[flow as usize];
        if event.epoch() != state.epoch {
            return; // of a connection that is complete
        }
        let has_application = state.application != NONE;
        if has_application {
            // At one moment what is written goes before what arrives.
            self.offer_slept(ways, flow, event.at + 1);
        }
        let state = &mut self.flows[flow as usize];
        state.sender.on_ack(ways.configs[state.group as usize], instant(event.at), ack);
        self.pump(ways, flow, event.at);
        if has_application {
            self.wake(ways, flow);
            self.on_progress(ways, flow, event.at);
        }
    }

    /// Sends what the sender has to send.
    #[inline(never)]
    pub(super) fn pump(&mut self, ways: &mut Ways<'_>, flow: u32, now: u64) {
        let state = &mut self.flows[flow as usize];
        state.touch(flow, &mut self.touched);
        let config = ways.configs[state.group as usize];
        while let Some(segment) = self.flows[flow as usize].sender.poll_immediate(config, instant(now)) {
            self.send_segment(ways, flow, now, segment);
        }
        if config.send_overhead == Span::ZERO {
            self.transmit(ways, flow, now, config);
        } else {
            // Who knows what comes next, and from where.
            match self.flows[flow as usize].departure(config, now, ways.next_control, now) {
                Departure::None => {}
                Departure::At(segments, at) => self.transmit_some(ways, flow, at, config, segments),
                Departure::Later(at) => ways.post.schedule(at, ways.post.ranks.send + flow),
            }
        }
        self.arm_retransmission(ways, flow);
    }

    /// Sends all that the window allows.
    fn transmit(&mut self, ways: &mut Ways<'_>, flow: u32, now: u64, config: &TcpConfig) {
        match self.flows[flow as usize].sender.allowance() {
            Some(segments) => self.transmit_some(ways, flow, now, config, segments),
            None => {
                while let Some(segment) = self.flows[flow as usize].sender.poll_transmit(config, instant(now)) {
                    self.send_segment(ways, flow, now, segment);
                }
                self.arm_paced_send(ways, flow, now, config);
            }
        }
    }

    /// Pacing holds a segment back: it leaves by the delayed send of its flow.
    #[cold]
    fn arm_paced_send(&mut self, ways: &mut Ways<'_>, flow: u32, now: u64, config: &TcpConfig) {
        let state = &mut self.flows[flow as usize];
        if state.send_at == NEVER
            && let Some(release) = state.sender.next_send(config, instant(now))
        {
            state.send_at = release.as_nanos();
            ways.post.schedule(release.as_nanos(), ways.post.ranks.send + flow);
        }
    }

    #[inline(always)]
    fn transmit_some(&mut self, ways: &mut Ways<'_>, flow: u32, now: u64, config: &TcpConfig, segments: u32) {
        for _ in 0..segments {
            let segment = self.flows[flow as usize].sender.transmit(config, instant(now));
            self.send_segment(ways, flow, now, segment);
        }
    }

    #[inline(always)]
    fn send_segment(&mut self, ways: &mut Ways<'_>, flow: u32, now: u64, segment: Segment) {
        let state = &mut self.flows[flow as usize];
        ways.send_first_rarely(&mut state.first_lane, flow, now, &Event::segment(&segment, state.epoch));
    }

    /// Makes sure that an event comes no later than the sender's timer.
    #[inline(always)]
    pub(super) fn arm_retransmission(&mut self, ways: &mut Ways<'_>, flow: u32) {
        let before = if ways.post.is_lone_sender(flow) { ways.post.senders.next_round() } else { NEVER };
        if let Some(due) = self.flows[flow as usize].rearm(before) {
            ways.post.schedule(due, ways.post.ranks.retransmission + flow);
        }
    }

    pub(super) fn on_sender_timer(&mut self, ways: &mut Ways<'_>, now: u64, flow: u32) {
        let state = &mut self.flows[flow as usize];
        if state.timer_at != now {
            return; // an earlier event took its place
        }
        state.timer_at = NEVER;
        if state.sender.next_timer().is_some_and(|due| due.as_nanos() <= now) {
            self.offer_slept(ways, flow, now);
            let state = &mut self.flows[flow as usize];
            state.sender.on_timer(ways.configs[state.group as usize], instant(now));
            self.pump(ways, flow, now);
            self.wake(ways, flow);
        } else {
            self.arm_retransmission(ways, flow); // the deadline has moved on
        }
    }

    pub(super) fn on_delayed_send(&mut self, ways: &mut Ways<'_>, now: u64, flow: u32) {
        self.offer_slept(ways, flow, now);
        let state = &mut self.flows[flow as usize];
        state.send_at = NEVER;
        state.touch(flow, &mut self.touched);
        let config = ways.configs[state.group as usize];
        self.transmit(ways, flow, now, config);
        self.arm_retransmission(ways, flow);
        self.wake(ways, flow);
    }
}

#[cfg(test)]
mod tests {
    use super::super::ways::Sink;
    use super::*;

    #[test]
    fn a_flow_fills_three_cache_lines_and_its_receiver_one() {
        assert_eq!((size_of::<FlowState>(), size_of::<Sink>()), (192, 64));
    }
}
