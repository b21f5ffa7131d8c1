//! The ways between places: lanes, the receivers at their ends that answer at once, and what is too
//! large to travel in an event.

use aqumen_network::port::Arrival;
use aqumen_scenario::Plan;
use aqumen_transport::Packet;
use aqumen_transport::tcp::{Ack, Feedback, Receiver, TcpConfig};
use aqumen_units::Instant;

use super::log::Log;
use super::moment::{NEVER, instant};
use super::post::Post;
use super::table::{Shareable, Table};
use crate::event::{Event, Kept, Words};
use crate::lanes::{Exit, Lane, Lanes, Leads, NO_PLACE, Target};
use crate::measure::segments::Segments;

pub(super) struct Ways<'a> {
    pub(super) post: Post,
    pub(super) lanes: Lanes,
    /// The TCP of each group; of a group that has none, one that nobody asks.
    pub(super) configs: Vec<&'a TcpConfig>,
    /// The receiving end of each flow of TCP.
    pub(super) sinks: Vec<Sink>,
    /// Acknowledgements with SACK blocks or feedback that are under way.
    pub(super) acks: Shareable<Ack>,
    /// Packets of other transports that are under way.
    pub(super) packets: Shareable<Packet>,
    /// The next edge of a window over which metrics are taken, and the next moment of the agenda.
    pub(super) next_edge: u64,
    pub(super) next_control: u64,
    /// When the run ends.
    end: u64,
    /// Deliveries computed ahead of the next edge, which they follow: when, flow, payload.
    early_deliveries: Vec<(u64, u32, u32)>,
    /// What becomes of TCP's segments.
    pub(super) segments: Segments,
    /// What crosses shared links, if anybody wants to know.
    pub(super) log: Option<Log>,
    /// Whether the flows are too many for the cache.
    pub(super) far: bool,
}

/// A receiving end, on a cache line of its own: a port that computes what it does needs no more.
#[repr(align(64))]
pub(super) struct Sink {
    pub(super) receiver: Receiver,
    /// When the earliest event for its delayed acknowledgement comes.
    pub(super) timer_at: u64,
    pub(super) group: u32,
    /// The connection's, as events have it.
    pub(super) epoch: u16,
}

impl Ways<'_> {
    /// The rank of the first lane.
    #[inline(always)]
    fn first_lane(&self) -> u32 {
        self.post.ranks.lanes
    }

    /// The lane of a packet in a queue, or at the end of a lane.
    #[inline(always)]
    pub(super) fn lane_of(&self, event: &Event) -> u32 {
        event.rank() - self.first_lane()
    }

    /// A packet enters `lane` at `at`, which may lie ahead.
    #[inline(always)]
    pub(super) fn send(&mut self, lane: u32, at: u64, event: &Event) {
        let exit = self.lanes.cross(lane, at, event.wire_bytes());
        self.leave(lane, exit, event);
    }

    /// The same of a segment that leaves the sender of `flow`, which keeps its `first` lane. That leads to a port, as a
    /// rule.
    #[inline(always)]
    pub(super) fn send_first(&mut self, first: &mut Lane, flow: u32, at: u64, segment: &Event) {
        let lane = self.lanes.first_of(flow);
        let exit = self.lanes.cross_kept(first, lane, at, segment.wire_bytes());
        if exit.place == NO_PLACE {
            self.leave_rarely(lane, exit, segment.words());
        } else {
            self.send_to(lane, exit, segment);
        }
    }

    /// [`send_first`](Self::send_first) where it is not worth its own copy of the code.
    #[inline(never)]
    pub(super) fn send_first_rarely(&mut self, first: &mut Lane, flow: u32, at: u64, segment: &Event) {
        self.send_first(first, flow, at, segment);
    }

    #[inline(never)]
    fn leave_rarely(&mut self, lane: u32, exit: Exit, words: Words) {
        self.leave(lane, exit, &Event::of_words(words));
    }

    /// A packet leaves `lane`.
    #[inline(always)]
    fn leave(&mut self, lane: u32, exit: Exit, event: &Event) {
        let Exit { reach, leads, .. } = exit;
        if !leads.is_prompt_receiver() {
            return self.send_to(lane, exit, event);
        }
        let flow = self.lanes.flow_of(lane);
        let sink = &mut self.sinks[flow as usize];
        let config = self.configs[sink.group as usize];
        let segment = event.as_segment();
        if !sink.receiver.is_next(&segment) || reach >= self.next_edge {
            self.receive(flow, reach, *event, lane + 1);
            return;
        }
        if Segments::wants(flow, &segment) {
            self.segments.arrive(flow, sink.group, reach, &segment, self.next_edge);
        }
        let ack = Event::ack(&sink.receiver.accept(config, &segment), config.ack_bytes, event.epoch());
        let exit = self.lanes.cross(lane + 1, reach, config.ack_bytes);
        self.send_to(lane + 1, exit, &ack);
    }

    /// The same where it leads to no prompt receiver.
    #[inline(always)]
    fn send_to(&mut self, lane: u32, Exit { reach, leads, place }: Exit, event: &Event) {
        if place != NO_PLACE {
            let rank = self.first_lane() + lane;
            self.post.places[place as usize].post(event.moved(reach, rank));
        } else if leads.is_lone_sender() {
            self.post.senders.inbox.post(event.moved(reach, self.lanes.flow_of(lane)));
        } else {
            self.send_to_end(lane, leads, event.moved(reach, self.first_lane() + lane).words());
        }
    }

    /// The same where that is another end than a lone sender's, or a port that it passes; or it is lost there then.
    #[inline(never)]
    fn send_to_end(&mut self, lane: u32, leads: Leads, words: Words) {
        let event = Event::of_words(words);
        match leads.target() {
            Target::Nowhere => self.lose_ahead(event),
            Target::Passed(port) => match self.lanes.pass(port, event.at, event.wire_bytes()) {
                Arrival::Leaves { reach, .. } => self.send_rarely(lane + 1, reach, &event),
                _ => self.lose_ahead(event),
            },
            end => self.post.post_to_end(event.rank(), event.at, self.lanes.flow_of(lane), end, &event),
        }
    }

    /// A packet finds no room at a moment that may lie ahead, perhaps beyond the end of the run.
    #[cold]
    fn lose_ahead(&mut self, event: Event) {
        if event.at < self.end {
            self.discard(&event);
        }
    }

    /// [`send`](Self::send) where it is not worth its own copy of the code.
    #[inline(never)]
    pub(super) fn send_rarely(&mut self, lane: u32, at: u64, event: &Event) {
        self.send(lane, at, event);
    }

    /// A segment reaches its receiver, whose acknowledgements leave on lane `acks`, at a moment that may lie ahead: how
    /// many bytes it delivers.
    #[inline(never)]
    pub(super) fn receive(&mut self, flow: u32, at: u64, event: Event, acks: u32) -> u64 {
        let sink = &mut self.sinks[flow as usize];
        if event.epoch() != sink.epoch {
            return 0; // a copy, left over from a connection that is complete
        }
        let config = self.configs[sink.group as usize];
        let before = sink.receiver.delivered_bytes();
        let segment = event.as_segment();
        if Segments::wants(flow, &segment) {
            self.segments.arrive(flow, sink.group, at, &segment, self.next_edge);
        }
        let ack = sink.receiver.on_segment(config, instant(at), &segment);
        let delivered = (sink.receiver.delivered_bytes() - before).0;
        if at >= self.next_edge {
            self.early_deliveries.push((at, flow, delivered as u32));
        }
        if config.delayed_ack.is_some() {
            self.arm_acknowledge(flow);
        }
        if let Some(ack) = ack {
            self.send_ack(flow, at, &ack, acks);
        }
        delivered
    }

    /// The timer of a receiver may be due.
    pub(super) fn on_acknowledge_timer(&mut self, now: u64, flow: u32) {
        let sink = &mut self.sinks[flow as usize];
        if sink.timer_at != now {
            return; // an earlier event took its place
        }
        sink.timer_at = NEVER;
        let ack = sink.receiver.on_timer(instant(now));
        self.arm_acknowledge(flow);
        if let Some(ack) = ack {
            self.send_ack(flow, now, &ack, self.lanes.acks_of(flow));
        }
    }

    /// Makes sure that an event comes no later than the receiver's timer.
    fn arm_acknowledge(&mut self, flow: u32) {
        let sink = &mut self.sinks[flow as usize];
        let due = sink.receiver.next_timer().map_or(NEVER, Instant::as_nanos);
        if due < sink.timer_at {
            sink.timer_at = due;
            self.post.schedule(due, self.post.ranks.acknowledge + flow);
        }
    }

    fn send_ack(&mut self, flow: u32, at: u64, ack: &Ack, lane: u32) {
        let Sink { group, epoch, .. } = self.sinks[flow as usize];
        let bytes = self.configs[group as usize].ack_bytes;
        let event = if ack.sack.is_empty() && ack.feedback == Feedback::None {
            Event::ack(ack, bytes, epoch)
        } else {
            Event::ack_in_table(ack, bytes, self.acks.keep(*ack), epoch)
        };
        self.send_rarely(lane, at, &event);
    }

    /// A packet is gone.
    #[cold]
    pub(super) fn discard(&mut self, event: &Event) {
        match event.kept() {
            Some(Kept::Ack(index)) => drop(self.acks.take(index)),
            Some(Kept::Packet(index)) => drop(self.packets.take(index)),
            None if !event.is_ack() => {
                let flow = self.lanes.flow_of(self.lane_of(event));
                self.segments.lose(self.sinks[flow as usize].group, &event.as_segment());
            }
            None => {}
        }
    }

    /// An edge is reached: what of each flow's deliveries so far follows it.
    pub(super) fn early_bytes(&self) -> Vec<u64> {
        let mut early = vec![0; self.sinks.len()];
        self.early_deliveries.iter().for_each(|&(_, flow, bytes)| early[flow as usize] += u64::from(bytes));
        early
    }

    /// What lies ahead has changed.
    pub(super) fn set_next(&mut self, edge: u64, control: u64) {
        if edge != self.next_edge {
            self.early_deliveries.retain(|&(at, ..)| at >= edge);
            self.segments.set_next_edge(edge);
        }
        (self.next_edge, self.next_control) = (edge, control);
    }
}

impl<'a> Ways<'a> {
    /// The ways of `plan`, on which nothing has happened yet; `logged`: what crosses shared links is to be known.
    pub(super) fn new(plan: &'a Plan, post: Post, mut lanes: Lanes, configs: Vec<&'a TcpConfig>, logged: bool) -> Self {
        let sinks = plan.flows.iter().map(|flow| Sink {
            receiver: Receiver::new(configs[flow.group as usize]),
            timer_at: NEVER,
            group: flow.group,
            epoch: 0,
        });
        let sinks = sinks.collect();
        for flow in 0..plan.flows.len() as u32 {
            lanes.end_alone(flow, post.is_lone_sender(flow), post.is_lone_receiver(flow));
        }
        lanes.set_places(&post.of_port);
        Ways {
            post,
            lanes,
            configs,
            sinks,
            acks: Shareable::Own(Table::default()),
            packets: Shareable::Own(Table::default()),
            next_edge: 0,
            next_control: 0,
            end: plan.duration.as_nanos(),
            early_deliveries: Vec::new(),
            segments: Segments::new(plan),
            log: logged.then(Log::default),
            far: plan.flows.len() > FLOWS_IN_CACHE,
        }
    }
}

/// So many flows are at hand without looking ahead.
const FLOWS_IN_CACHE: usize = 2000;
