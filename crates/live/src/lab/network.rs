//! Links of a plan in virtual time: each arrival, departure and timer is processed at its own time, in order.
//!
//! A packet takes a *route*, made of *segments*. A link that one flow alone uses and that can neither drop nor mark is
//! a `Hop`: its delay is computed when the packet arrives. All others are links of `aqumen_network`, shared and
//! measured. At equal times links come first, in the order of the plan, then packets in the order in which they
//! entered.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use aqumen_aqm::{DropReason, PureAck};
use aqumen_network::{Fate, Identity, Link, WirePacket};
use aqumen_scenario::Plan;
use aqumen_units::{Bytes, Ecn, Rate};

use crate::Error;

/// Packet in flight.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Slot of its bytes.
    pub slot: u32,
    /// Size, bytes.
    pub bytes: u32,
    /// ECN field, as the last queue left it.
    pub ecn: Ecn,
    /// Acknowledgement, if it is a pure one.
    pub ack: Option<PureAck>,
    /// Identity for flow queueing.
    pub identity: Identity,
    /// Number of its route.
    pub route: u32,
    /// Number of segments of the route already passed.
    pub passed: u16,
}

/// Outcome of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Delivered at the end of its route.
    Delivered,
    /// Dropped by a queue.
    Dropped(DropReason),
    /// Lost on the wire.
    Lost,
}

/// Event of a packet at a link with a queue.
#[derive(Clone, Copy, Debug)]
pub struct LinkEvent {
    /// Time, nanoseconds.
    pub at: u64,
    /// Number of the link in the plan.
    pub link: u32,
    /// Packet, as it was then.
    pub packet: Packet,
    /// Fate; `None`: an arrival.
    pub fate: Option<Fate>,
}

/// Links, and the packets on them.
pub struct Network<'a> {
    /// Links with queues, and their numbers in the plan.
    pub links: Vec<(u32, Link<'a, Packet>)>,
    /// Time of each link's next event.
    next: Vec<u64>,
    hops: Vec<Hop>,
    routes: Vec<Vec<Segment>>,
    in_transit: BinaryHeap<Reverse<InTransit>>,
    entered: u64,
    fates: Vec<(u64, Packet, Fate)>,
    record: Option<Vec<LinkEvent>>,
}

#[derive(Clone, Copy, Debug)]
enum Segment {
    Hop(u32),
    Link(u32),
}

/// Link without a queue: rate, delay, and the time until which it is busy.
#[derive(Clone, Copy, Debug)]
struct Hop {
    free_at: u64,
    rate: Rate,
    delay: u64,
}

#[derive(Clone, Copy, Debug)]
struct InTransit {
    at: u64,
    order: u64,
    packet: Packet,
}

impl<'a> Network<'a> {
    /// Links of `plan`. Data of flow f take route 2 f, packets of the return direction route 2 f + 1.
    pub fn new(plan: &'a Plan) -> Result<Self, Error> {
        let paths = plan.flows.iter().flat_map(|flow| [flow.path.to_vec(), flow.return_path.to_vec()]);
        let private = private_links(plan);
        Network::with_routes(plan, paths.collect(), |link| private[link as usize])
    }

    /// Links of `plan` with these routes, each a list of links; `is_hop` selects links that need no queue.
    pub fn with_routes(plan: &'a Plan, paths: Vec<Vec<u32>>, is_hop: impl Fn(u32) -> bool) -> Result<Self, Error> {
        let mut network = Network {
            links: Vec::new(),
            next: Vec::new(),
            hops: Vec::new(),
            routes: Vec::new(),
            in_transit: BinaryHeap::new(),
            entered: 0,
            fates: Vec::new(),
            record: None,
        };
        let mut segments: Vec<Option<Segment>> = vec![None; plan.links.len()];
        let used = paths.iter().flatten().copied();
        let recorded = (0u32..).zip(&plan.links).filter(|(_, link)| link.record).map(|(number, _)| number);
        let mut wanted: Vec<u32> = used.chain(recorded).collect();
        wanted.sort_unstable();
        wanted.dedup();
        for number in wanted {
            let link = &plan.links[number as usize];
            segments[number as usize] = Some(if is_hop(number) {
                let hop = network.hops.len() as u32;
                network.hops.push(Hop { free_at: 0, rate: link.rates[0].1, delay: link.delay.as_nanos() });
                Segment::Hop(hop)
            } else {
                let link = Link::new(plan, number).map_err(|error| Error::setup(error.to_string()))?;
                let index = network.links.len() as u32;
                network.links.push((number, link));
                Segment::Link(index)
            });
        }
        network.next = network.links.iter().map(|(_, link)| link.next()).collect();
        network.routes =
            paths.iter().map(|path| path.iter().filter_map(|link| segments[*link as usize]).collect()).collect();
        Ok(network)
    }

    /// Records the events of packets at links from now on.
    pub fn record_events(&mut self) {
        self.record = Some(Vec::new());
    }

    /// Takes the recorded events.
    pub fn take_events(&mut self) -> Vec<LinkEvent> {
        self.record.take().unwrap_or_default()
    }

    /// Time of the next event; `u64::MAX`: never.
    #[inline]
    pub fn next(&self) -> u64 {
        let in_transit = self.in_transit.peek().map_or(u64::MAX, |Reverse(first)| first.at);
        self.next.iter().fold(in_transit, |least, next| least.min(*next))
    }

    /// Starts a packet on its route at `now`.
    pub fn enter(&mut self, now: u64, packet: Packet, report: &mut impl FnMut(u64, Packet, Outcome)) {
        self.advance(now, report);
        self.forward(now, packet, report);
    }

    /// Processes all events up to and including `until`, each at its own time.
    pub fn advance(&mut self, until: u64, report: &mut impl FnMut(u64, Packet, Outcome)) {
        loop {
            let at = self.next();
            if at > until {
                return;
            }
            if let Some(link) = self.next.iter().position(|next| *next == at) {
                self.links[link].1.advance(at, &mut |when, packet, fate| self.fates.push((when, packet, fate)));
                self.apply_fates(link, report);
            } else if let Some(Reverse(first)) = self.in_transit.pop() {
                self.forward(first.at, first.packet, report);
            }
        }
    }

    /// Ends the run at `now`, after the events due by then.
    pub fn stop(&mut self, now: u64) {
        self.links.iter_mut().for_each(|(_, link)| link.stop(now));
    }

    /// Forwards `packet` to its next segment.
    fn forward(&mut self, now: u64, mut packet: Packet, report: &mut impl FnMut(u64, Packet, Outcome)) {
        let route = &self.routes[packet.route as usize];
        let mut at = now;
        while let Some(Segment::Hop(hop)) = route.get(usize::from(packet.passed)) {
            at = self.hops[*hop as usize].cross(at, packet.bytes);
            packet.passed += 1;
        }
        let next = route.get(usize::from(packet.passed)).copied();
        if at > now {
            self.entered += 1;
            return self.in_transit.push(Reverse(InTransit { at, order: self.entered, packet }));
        }
        match next {
            Some(Segment::Link(link)) => {
                let link = link as usize;
                let identity = packet.identity;
                if let Some(record) = &mut self.record {
                    record.push(LinkEvent { at: now, link: self.links[link].0, packet, fate: None });
                }
                self.links[link]
                    .1
                    .arrive(now, packet, &identity, &mut |when, packet, fate| self.fates.push((when, packet, fate)));
                self.apply_fates(link, report);
            }
            _ => report(now, packet, Outcome::Delivered),
        }
    }

    /// Handles the fates that `link` reported.
    fn apply_fates(&mut self, link: usize, report: &mut impl FnMut(u64, Packet, Outcome)) {
        self.next[link] = self.links[link].1.next();
        let mut fates = std::mem::take(&mut self.fates);
        for (when, mut packet, fate) in fates.drain(..) {
            if let Some(record) = &mut self.record {
                record.push(LinkEvent { at: when, link: self.links[link].0, packet, fate: Some(fate) });
            }
            match fate {
                Fate::Delivered { .. } => {
                    packet.passed += 1;
                    self.forward(when, packet, report);
                }
                Fate::Dropped(reason) => report(when, packet, Outcome::Dropped(reason)),
                Fate::Lost { .. } => report(when, packet, Outcome::Lost),
            }
        }
        // Two links in a row nest this call; the buffer is kept for the next one.
        if self.fates.is_empty() {
            self.fates = fates;
        }
    }
}

impl Hop {
    #[inline]
    fn cross(&mut self, at: u64, bytes: u32) -> u64 {
        self.free_at = self.free_at.max(at) + self.rate.time_for(Bytes(u64::from(bytes))).as_nanos().max(1);
        self.free_at + self.delay
    }
}

/// Most segments that a connection has in flight: see `testbed::sysctls`.
pub const WINDOW_PKTS_MAX: u32 = 40_000;

/// Links that one direction of one flow has for itself, with one rate and a buffer for twice the packets that can be in
/// flight.
fn private_links(plan: &Plan) -> Vec<bool> {
    let mut users = vec![(0u32, 0u64); plan.links.len()];
    for flow in &plan.flows {
        let window = plan.groups[flow.group as usize].transport.window_pkts().unwrap_or(u32::MAX);
        for &link in flow.path.iter().chain(&flow.return_path) {
            let (flows, pkts) = &mut users[link as usize];
            *flows += 1;
            *pkts += 2 * u64::from(window.min(WINDOW_PKTS_MAX));
        }
    }
    let is_private = |(link, (flows, pkts)): (&aqumen_scenario::Link, &(u32, u64))| {
        let room = link.limit.bytes == Bytes(u64::MAX) && *pkts <= u64::from(link.limit.packets);
        *flows == 1 && link.is_plain() && link.rates.len() == 1 && room
    };
    plan.links.iter().zip(&users).map(is_private).collect()
}

impl WirePacket for Packet {
    fn bytes(&self) -> u32 {
        self.bytes
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn mark(&mut self) {
        self.ecn = Ecn::Ce;
    }

    fn pure_ack(&self) -> Option<PureAck> {
        self.ack
    }
}

impl Ord for InTransit {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

impl PartialOrd for InTransit {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for InTransit {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for InTransit {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::dumbbell;

    const US: u64 = 1000;

    fn plan(events: &str) -> Plan {
        plan_with(&[], &format!("[[flows]]\nname = \"f\"\ncount = 2\n{events}"))
    }

    fn plan_with(changes: &[(&str, &str)], tables: &str) -> Plan {
        let mut all = vec![("topology.bottleneck.delay", "10ms"), ("topology.access.delay", "1ms")];
        all.push(("topology.bottleneck.buffer", "2pkt"));
        all.extend(changes);
        dumbbell(&all, tables)
    }

    fn packet(slot: u32, route: u32) -> Packet {
        Packet { slot, bytes: 1000, ecn: Ecn::Ect0, ack: None, identity: Identity::default(), route, passed: 0 }
    }

    /// Outcomes of packets of 1000 bytes that start at these times (us) on these routes, and the events at links.
    fn outcomes(plan: &Plan, packets: &[(u64, u32)]) -> (Vec<Option<(u64, Outcome)>>, Vec<LinkEvent>) {
        let mut network = Network::new(plan).unwrap();
        network.record_events();
        let mut outcomes = vec![None; packets.len()];
        let mut report = |at: u64, packet: Packet, end| outcomes[packet.slot as usize] = Some((at / US, end));
        for (slot, &(at_us, route)) in (0..).zip(packets) {
            network.enter(at_us * US, packet(slot, route), &mut report);
        }
        network.advance(1_000_000 * US, &mut report);
        (outcomes, network.take_events())
    }

    #[test]
    fn a_packet_takes_the_time_of_each_segment_of_its_route() {
        // 100 us at 80 Mbit/s, 1 ms at 8 Mbit/s; delays of 1, 10 and 1 ms. There, and the same way back.
        let (outcomes, record) = outcomes(&plan(""), &[(0, 0), (500_000, 1)]);
        assert_eq!(outcomes[0], Some((100 + 1000 + 1000 + 10_000 + 100 + 1000, Outcome::Delivered)));
        let forward = record.iter().filter(|event| event.packet.slot == 0).map(|event| (event.at / US, event.fate));
        let sent = Fate::Delivered { start: 1100 * US, end: 2100 * US };
        assert_eq!(forward.collect::<Vec<_>>(), [(1100, None), (12_100, Some(sent))]);
        assert!(matches!(outcomes[1], Some((at, Outcome::Delivered)) if at > 512_000), "{:?}", outcomes[1]);
    }

    #[test]
    fn packets_beyond_the_buffer_are_dropped() {
        // Five packets of both flows at once: each access link sends one after the other; the bottleneck sends one, and
        // two wait.
        let (outcomes, _) = outcomes(&plan(""), &[(0, 0), (0, 0), (0, 0), (0, 2), (0, 2)]);
        let at = |slot: usize| outcomes[slot].unwrap();
        // At 1100 us packets 0 and 3 reach the bottleneck, at 1200 us 1 and 4, at 1300 us 2.
        assert_eq!(
            [at(0), at(3), at(1)],
            [(13_200, Outcome::Delivered), (14_200, Outcome::Delivered), (15_200, Outcome::Delivered)]
        );
        assert_eq!([at(4), at(2)], [1200, 1300].map(|us| (us, Outcome::Dropped(DropReason::Overflow))));
    }

    #[test]
    fn a_loss_on_the_wire_is_reported_at_the_end_of_transmission() {
        let (outcomes, record) = outcomes(&plan("[[events]]\nat = \"1us\"\nloss = 1.0\n"), &[(0, 0)]);
        assert_eq!(outcomes[0], Some((2100, Outcome::Lost)));
        assert_eq!(record.last().unwrap().fate, Some(Fate::Lost { start: 1100 * US }));
    }

    #[test]
    fn a_private_link_needs_no_queue_if_its_buffer_suffices() {
        let plan = plan("");
        let network = Network::new(&plan).unwrap();
        let private = private_links(&plan);
        // The links with queues are those that the flows share.
        for (number, (link, private)) in (0..).zip(plan.links.iter().zip(private)) {
            let shared =
                plan.flows.iter().filter(|f| f.path.contains(&number) || f.return_path.contains(&number)).count();
            assert_eq!(private, shared == 1, "{}", link.name);
            assert_eq!(network.links.iter().any(|(other, _)| *other == number), !private);
        }
        let mut hop = Hop { free_at: 0, rate: Rate::from_bps(8_000_000), delay: 5 };
        assert_eq!([hop.cross(100, 1), hop.cross(100, 2), hop.cross(9000, 1)], [1105, 3105, 10_005]);
    }

    #[test]
    fn a_link_is_private_if_one_flow_uses_it_and_its_buffer_suffices() {
        // Access links of two flows, whose windows are 40 packets, in both directions; twice that are 80.
        let alone_with = |buffer: &str| {
            let buffers = [("topology.bottleneck.buffer", "2000pkt"), ("topology.access.buffer", buffer)];
            let transport = "{ preset = \"linux\", receive_window = \"40pkt\" }";
            let plan = plan_with(&buffers, &format!("[[flows]]\nname = \"f\"\ncount = 2\ntransport = {transport}\n"));
            let shared = plan.links.iter().position(|link| link.record).unwrap();
            let private = private_links(&plan);
            assert!(!private[shared], "two flows cross the bottleneck");
            private.iter().filter(|private| **private).count()
        };
        let roomy = alone_with("80pkt");
        assert!(roomy >= 4, "{roomy}");
        // One packet less, or a limit in bytes, which is no number of packets.
        assert_eq!([alone_with("79pkt"), alone_with("100MB")], [0, 0]);
    }

    #[test]
    fn a_link_sees_the_acknowledgement_of_a_packet() {
        let ack = PureAck { connection: 1, number: 300, ece: true, sack: aqumen_aqm::SackDigest::NONE };
        assert_eq!(Packet { ack: Some(ack), ..packet(0, 0) }.pure_ack(), Some(ack));
        assert_eq!(packet(0, 0).pure_ack(), None);
    }

    #[test]
    fn events_at_the_end_time_are_processed() {
        let plan = plan("");
        let mut network = Network::new(&plan).unwrap();
        let mut outcomes = Vec::new();
        network.enter(0, packet(0, 0), &mut |at, packet, _| outcomes.push((at, packet.slot)));
        network.advance(13_200 * US - 1, &mut |at, packet, _| outcomes.push((at, packet.slot)));
        assert_eq!((outcomes.len(), network.next()), (0, 13_200 * US));
        network.advance(13_200 * US, &mut |at, packet, _| outcomes.push((at, packet.slot)));
        assert_eq!(outcomes, [(13_200 * US, 0)]);
    }

    #[test]
    fn packets_that_arrive_together_are_served_in_the_order_of_entry() {
        let plan = plan_with(&[], "[[flows]]\nname = \"f\"\ncount = 9\n");
        let (outcomes, _) = outcomes(&plan, &[0, 2, 4, 6, 8, 10, 12, 14, 16].map(|route| (0, route)));
        // All reach the bottleneck at 1100 us: one is served, two wait, six are dropped.
        let fates: Vec<_> = outcomes.into_iter().map(Option::unwrap).collect();
        assert_eq!(fates[..3], [13_200, 14_200, 15_200].map(|us| (us, Outcome::Delivered)));
        assert!(fates[3..].iter().all(|end| *end == (1100, Outcome::Dropped(DropReason::Overflow))), "{fates:?}");
    }

    #[test]
    fn a_link_marks_ecn_capable_packets_and_drops_others() {
        let marking = [("aqm", "fixed:p=1"), ("topology.bottleneck.buffer", "20pkt")];
        let plan = plan_with(&marking, "[[flows]]\nname = \"f\"\n");
        let mut network = Network::new(&plan).unwrap();
        let mut fates = Vec::new();
        let mut report = |_, packet: Packet, end| fates.push((packet.slot, packet.ecn, end));
        for (slot, ecn) in (0..).zip([Ecn::Ect0, Ecn::Ect1, Ecn::NotEct]) {
            network.enter(0, Packet { ecn, ..packet(slot, 0) }, &mut report);
        }
        network.advance(1_000_000 * US, &mut report);
        fates.sort_by_key(|(slot, ..)| *slot);
        let marked = [0, 1].map(|slot| (slot, Ecn::Ce, Outcome::Delivered));
        assert_eq!(fates[..2], marked);
        assert!(
            matches!(fates[2], (2, Ecn::NotEct, Outcome::Dropped(reason)) if reason != DropReason::Overflow),
            "{fates:?}"
        );
    }
}
