//! The links of a plan in virtual time: whenever it is asked, each arrival, departure and timer happened at its own
//! instant, in order.
//!
//! A packet takes a *route*, made of *stretches*. A link that one flow alone uses and that can neither drop nor
//! mark is a `Hop`: a packet's way over it is worked out when it gets there. All others are links of
//! `aqumen_network`, shared and measured. At equal moments links come first, in the order of the plan, then packets
//! in the order in which they set out.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use aqumen_aqm::{DropReason, PureAck};
use aqumen_network::{Fate, Identity, Link, WirePacket};
use aqumen_scenario::Plan;
use aqumen_units::{Bytes, Ecn, Rate};

use crate::Failure;

/// A packet under way.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Where its bytes are kept.
    pub slot: u32,
    /// Its size.
    pub bytes: u32,
    /// Its ECN field, as a queue on the way left it.
    pub ecn: Ecn,
    /// What it acknowledges, if it does nothing else.
    pub ack: Option<PureAck>,
    /// What disciplines tell it by.
    pub who: Identity,
    /// Number of its route.
    pub route: u32,
    /// Stretches of the route that lie behind it.
    pub passed: u16,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It came out at the end of its route.
    Out,
    /// A queue discarded it.
    Dropped(DropReason),
    /// It was lost on the wire.
    Lost,
}

/// What happened to a packet at a link with a queue.
#[derive(Clone, Copy, Debug)]
pub struct Observed {
    /// When.
    pub at: u64,
    /// Number of the link in the plan.
    pub link: u32,
    /// The packet, as it was then.
    pub packet: Packet,
    /// `None`: it arrived.
    pub fate: Option<Fate>,
}

/// Links, and the packets on them.
pub struct Network<'a> {
    /// The links with queues, and their numbers in the plan.
    pub links: Vec<(u32, Link<'a, Packet>)>,
    /// When each has something to do.
    next: Vec<u64>,
    hops: Vec<Hop>,
    routes: Vec<Vec<Stretch>>,
    /// Packets between links.
    travelling: BinaryHeap<Reverse<Travelling>>,
    set_out: u64,
    told: Vec<(u64, Packet, Fate)>,
    record: Option<Vec<Observed>>,
}

#[derive(Clone, Copy, Debug)]
enum Stretch {
    Hop(u32),
    Link(u32),
}

/// A link without queue: rate, delay, and when it is free.
#[derive(Clone, Copy, Debug)]
struct Hop {
    free_at: u64,
    rate: Rate,
    delay: u64,
}

#[derive(Clone, Copy, Debug)]
struct Travelling {
    at: u64,
    order: u64,
    packet: Packet,
}

impl<'a> Network<'a> {
    /// The links of `plan`. Flow f's data take route 2 f, what comes back route 2 f + 1.
    pub fn new(plan: &'a Plan) -> Result<Self, Failure> {
        let paths = plan.flows.iter().flat_map(|flow| [flow.path.clone(), flow.return_path.clone()]);
        let alone = alone(plan);
        Network::with_routes(plan, paths.collect(), |link| alone[link as usize])
    }

    /// Links of `plan` with these routes, of which each is a list of links; `is_hop` tells those that need no queue.
    pub fn with_routes(plan: &'a Plan, paths: Vec<Vec<u32>>, is_hop: impl Fn(u32) -> bool) -> Result<Self, Failure> {
        let mut network = Network {
            links: Vec::new(),
            next: Vec::new(),
            hops: Vec::new(),
            routes: Vec::new(),
            travelling: BinaryHeap::new(),
            set_out: 0,
            told: Vec::new(),
            record: None,
        };
        let mut stretches: Vec<Option<Stretch>> = vec![None; plan.links.len()];
        let used = paths.iter().flatten().copied();
        let recorded = (0u32..).zip(&plan.links).filter(|(_, link)| link.record).map(|(number, _)| number);
        let mut wanted: Vec<u32> = used.chain(recorded).collect();
        wanted.sort_unstable();
        wanted.dedup();
        for number in wanted {
            let link = &plan.links[number as usize];
            stretches[number as usize] = Some(if is_hop(number) {
                let hop = network.hops.len() as u32;
                network.hops.push(Hop { free_at: 0, rate: link.rates[0].1, delay: link.delay.as_nanos() });
                Stretch::Hop(hop)
            } else {
                let link = Link::new(plan, number).map_err(|error| Failure::refused(error.to_string()))?;
                let place = network.links.len() as u32;
                network.links.push((number, link));
                Stretch::Link(place)
            });
        }
        network.next = network.links.iter().map(|(_, link)| link.next()).collect();
        network.routes =
            paths.iter().map(|path| path.iter().filter_map(|link| stretches[*link as usize]).collect()).collect();
        Ok(network)
    }

    /// From now on keeps what happens to each packet at each link, for whoever wants to repeat it.
    pub fn start_record(&mut self) {
        self.record = Some(Vec::new());
    }

    /// What was kept.
    pub fn take_record(&mut self) -> Vec<Observed> {
        self.record.take().unwrap_or_default()
    }

    /// When something happens next by itself; `u64::MAX`: never.
    #[inline]
    pub fn next(&self) -> u64 {
        let travelling = self.travelling.peek().map_or(u64::MAX, |Reverse(first)| first.at);
        self.next.iter().fold(travelling, |least, next| least.min(*next))
    }

    /// A packet sets out on its route at `now`.
    pub fn enter(&mut self, now: u64, packet: Packet, tell: &mut impl FnMut(u64, Packet, End)) {
        self.advance(now, tell);
        self.go_on(now, packet, tell);
    }

    /// All that is due up to and including `until`, each at its own instant.
    pub fn advance(&mut self, until: u64, tell: &mut impl FnMut(u64, Packet, End)) {
        loop {
            let at = self.next();
            if at > until {
                return;
            }
            if let Some(link) = self.next.iter().position(|next| *next == at) {
                self.links[link].1.advance(at, &mut |when, packet, fate| self.told.push((when, packet, fate)));
                self.carry_on(link, tell);
            } else if let Some(Reverse(first)) = self.travelling.pop() {
                self.go_on(first.at, first.packet, tell);
            }
        }
    }

    /// The run ends at `now`, before its time and after all that was due by then.
    pub fn stop(&mut self, now: u64) {
        self.links.iter_mut().for_each(|(_, link)| link.stop(now));
    }

    /// `packet` has passed all before its next stretch.
    fn go_on(&mut self, now: u64, mut packet: Packet, tell: &mut impl FnMut(u64, Packet, End)) {
        let route = &self.routes[packet.route as usize];
        let mut at = now;
        while let Some(Stretch::Hop(hop)) = route.get(usize::from(packet.passed)) {
            at = self.hops[*hop as usize].cross(at, packet.bytes);
            packet.passed += 1;
        }
        let next = route.get(usize::from(packet.passed)).copied();
        if at > now {
            self.set_out += 1;
            return self.travelling.push(Reverse(Travelling { at, order: self.set_out, packet }));
        }
        match next {
            Some(Stretch::Link(link)) => {
                let link = link as usize;
                let who = packet.who;
                if let Some(record) = &mut self.record {
                    record.push(Observed { at: now, link: self.links[link].0, packet, fate: None });
                }
                self.links[link]
                    .1
                    .arrive(now, packet, &who, &mut |when, packet, fate| self.told.push((when, packet, fate)));
                self.carry_on(link, tell);
            }
            _ => tell(now, packet, End::Out),
        }
    }

    /// What `link` told becomes true.
    fn carry_on(&mut self, link: usize, tell: &mut impl FnMut(u64, Packet, End)) {
        self.next[link] = self.links[link].1.next();
        let mut told = std::mem::take(&mut self.told);
        for (when, mut packet, fate) in told.drain(..) {
            if let Some(record) = &mut self.record {
                record.push(Observed { at: when, link: self.links[link].0, packet, fate: Some(fate) });
            }
            match fate {
                Fate::Delivered { .. } => {
                    packet.passed += 1;
                    self.go_on(when, packet, tell);
                }
                Fate::Dropped(reason) => tell(when, packet, End::Dropped(reason)),
                Fate::Lost { .. } => tell(when, packet, End::Lost),
            }
        }
        // Two links in a row tell one inside the other; the room is kept for the next time.
        if self.told.is_empty() {
            self.told = told;
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

/// Most segments that a connection of ours has under way: see `hosts::sysctls`.
pub const WINDOW_PKTS_MAX: u32 = 40_000;

/// The links that one direction of one flow has for itself, of one rate, with room for twice
/// all that can ever be under way.
fn alone(plan: &Plan) -> Vec<bool> {
    let mut users = vec![(0u32, 0u64); plan.links.len()];
    for flow in &plan.flows {
        let window = plan.groups[flow.group as usize].transport.window_pkts().unwrap_or(u32::MAX);
        for &link in flow.path.iter().chain(&flow.return_path) {
            let (flows, pkts) = &mut users[link as usize];
            *flows += 1;
            *pkts += 2 * u64::from(window.min(WINDOW_PKTS_MAX));
        }
    }
    let is_alone = |(link, (flows, pkts)): (&aqumen_scenario::Link, &(u32, u64))| {
        let room = link.limit.bytes == Bytes(u64::MAX) && *pkts <= u64::from(link.limit.packets);
        *flows == 1 && link.is_plain() && link.rates.len() == 1 && room
    };
    plan.links.iter().zip(&users).map(is_alone).collect()
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

impl Ord for Travelling {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

impl PartialOrd for Travelling {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Travelling {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Travelling {}

#[cfg(test)]
mod tests {
    use super::*;
    use aqumen_scenario::Scenario;

    const US: u64 = 1000;

    fn plan(events: &str) -> Plan {
        let text = format!(
            "name = \"t\"\nduration = \"1s\"\naqm = \"droptail\"\n[topology]\npreset = \"dumbbell\"\n\
             bottleneck = {{ rate = \"8Mbit\", delay = \"10ms\", buffer = \"2pkt\" }}\n\
             access = {{ rate = \"80Mbit\", delay = \"1ms\" }}\n[[flows]]\nname = \"f\"\ncount = 2\n{events}"
        );
        Scenario::parse(&text, "t.toml").unwrap().plan(1, None).unwrap()
    }

    fn packet(slot: u32, route: u32) -> Packet {
        Packet { slot, bytes: 1000, ecn: Ecn::Ect0, ack: None, who: Identity::default(), route, passed: 0 }
    }

    /// What becomes of packets of 1000 bytes that set out at these moments (us) on these routes.
    fn ends(plan: &Plan, packets: &[(u64, u32)]) -> (Vec<Option<(u64, End)>>, Vec<Observed>) {
        let mut network = Network::new(plan).unwrap();
        network.start_record();
        let mut ends = vec![None; packets.len()];
        let mut tell = |at: u64, packet: Packet, end| ends[packet.slot as usize] = Some((at / US, end));
        for (slot, &(at_us, route)) in (0..).zip(packets) {
            network.enter(at_us * US, packet(slot, route), &mut tell);
        }
        network.advance(1_000_000 * US, &mut tell);
        (ends, network.take_record())
    }

    #[test]
    fn a_packet_takes_the_time_of_each_stretch_of_its_route() {
        // 100 us at 80 Mbit/s, 1 ms at 8 Mbit/s; delays of 1, 10 and 1 ms. There, and the same way back.
        let (ends, record) = ends(&plan(""), &[(0, 0), (500_000, 1)]);
        assert_eq!(ends[0], Some((100 + 1000 + 1000 + 10_000 + 100 + 1000, End::Out)));
        let there = record.iter().filter(|seen| seen.packet.slot == 0).map(|seen| (seen.at / US, seen.fate));
        let sent = Fate::Delivered { start: 1100 * US, end: 2100 * US };
        assert_eq!(there.collect::<Vec<_>>(), [(1100, None), (12_100, Some(sent))]);
        assert!(matches!(ends[1], Some((at, End::Out)) if at > 512_000), "{:?}", ends[1]);
    }

    #[test]
    fn what_finds_no_room_is_dropped_and_the_others_queue() {
        // Five of both flows at once: each flow's access link sends one after the other; the bottleneck sends one, and
        // two wait.
        let (ends, _) = ends(&plan(""), &[(0, 0), (0, 0), (0, 0), (0, 2), (0, 2)]);
        let at = |slot: usize| ends[slot].unwrap();
        // At 1100 us packets 0 and 3 reach the bottleneck, at 1200 us 1 and 4, at 1300 us 2.
        assert_eq!([at(0), at(3), at(1)], [(13_200, End::Out), (14_200, End::Out), (15_200, End::Out)]);
        assert_eq!([at(4), at(2)], [1200, 1300].map(|us| (us, End::Dropped(DropReason::Overflow))));
    }

    #[test]
    fn what_is_lost_on_the_wire_is_told_when_it_was_sent() {
        let (ends, record) = ends(&plan("[[events]]\nat = \"1us\"\nloss = 1.0\n"), &[(0, 0)]);
        assert_eq!(ends[0], Some((2100, End::Lost)));
        assert_eq!(record.last().unwrap().fate, Some(Fate::Lost { start: 1100 * US }));
    }

    #[test]
    fn a_link_alone_needs_no_queue_if_there_is_room_for_all() {
        let plan = plan("");
        let network = Network::new(&plan).unwrap();
        let alone = alone(&plan);
        // The links with queues are those that the flows share.
        for (number, (link, alone)) in (0..).zip(plan.links.iter().zip(alone)) {
            let shared =
                plan.flows.iter().filter(|f| f.path.contains(&number) || f.return_path.contains(&number)).count();
            assert_eq!(alone, shared == 1, "{}", link.name);
            assert_eq!(network.links.iter().any(|(other, _)| *other == number), !alone);
        }
        let mut hop = Hop { free_at: 0, rate: Rate::from_bps(8_000_000), delay: 5 };
        assert_eq!([hop.cross(100, 1), hop.cross(100, 2), hop.cross(9000, 1)], [1105, 3105, 10_005]);
    }

    #[test]
    fn a_link_is_alone_if_one_flow_has_it_and_it_has_room_for_all_that_is_under_way() {
        // Access links of two flows, whose windows are 40 packets, there and back; twice that are 80.
        let alone_with = |buffer: &str| {
            let text = format!(
                "name = \"t\"\nduration = \"1s\"\naqm = \"droptail\"\n[topology]\npreset = \"dumbbell\"\n\
                 bottleneck = {{ rate = \"8Mbit\", delay = \"10ms\", buffer = \"2000pkt\" }}\n\
                 access = {{ rate = \"80Mbit\", delay = \"1ms\", buffer = \"{buffer}\" }}\n[[flows]]\nname = \"f\"\n\
                 count = 2\ntransport = {{ preset = \"linux\", receive_window = \"40pkt\" }}\n"
            );
            let plan = Scenario::parse(&text, "t.toml").unwrap().plan(1, None).unwrap();
            let shared = plan.links.iter().position(|link| link.record).unwrap();
            let alone = alone(&plan);
            assert!(!alone[shared], "two flows cross the bottleneck");
            alone.iter().filter(|alone| **alone).count()
        };
        let roomy = alone_with("80pkt");
        assert!(roomy >= 4, "{roomy}");
        // One packet less, or a limit in bytes of which nobody knows how many packets they are.
        assert_eq!([alone_with("79pkt"), alone_with("100MB")], [0, 0]);
    }

    #[test]
    fn a_link_is_told_what_a_packet_acknowledges() {
        let ack = PureAck { connection: 1, number: 300, ece: true, sack: aqumen_aqm::SackDigest::NONE };
        assert_eq!(Packet { ack: Some(ack), ..packet(0, 0) }.pure_ack(), Some(ack));
        assert_eq!(packet(0, 0).pure_ack(), None);
    }

    #[test]
    fn what_is_due_at_the_very_moment_happens() {
        let plan = plan("");
        let mut network = Network::new(&plan).unwrap();
        let mut ended = Vec::new();
        network.enter(0, packet(0, 0), &mut |at, packet, _| ended.push((at, packet.slot)));
        network.advance(13_200 * US - 1, &mut |at, packet, _| ended.push((at, packet.slot)));
        assert_eq!((ended.len(), network.next()), (0, 13_200 * US));
        network.advance(13_200 * US, &mut |at, packet, _| ended.push((at, packet.slot)));
        assert_eq!(ended, [(13_200 * US, 0)]);
    }

    #[test]
    fn packets_that_arrive_together_are_served_in_the_order_in_which_they_set_out() {
        let text = "name = \"t\"\nduration = \"1s\"\naqm = \"droptail\"\n[topology]\npreset = \"dumbbell\"\n\
             bottleneck = { rate = \"8Mbit\", delay = \"10ms\", buffer = \"2pkt\" }\n\
             access = { rate = \"80Mbit\", delay = \"1ms\" }\n[[flows]]\nname = \"f\"\ncount = 9\n";
        let plan = Scenario::parse(text, "t.toml").unwrap().plan(1, None).unwrap();
        let (ends, _) = ends(&plan, &[0, 2, 4, 6, 8, 10, 12, 14, 16].map(|route| (0, route)));
        // All reach the bottleneck at 1100 us: one is served, two wait, six find no room.
        let told: Vec<_> = ends.into_iter().map(Option::unwrap).collect();
        assert_eq!(told[..3], [13_200, 14_200, 15_200].map(|us| (us, End::Out)));
        assert!(told[3..].iter().all(|end| *end == (1100, End::Dropped(DropReason::Overflow))), "{told:?}");
    }

    #[test]
    fn a_link_marks_what_can_carry_a_mark_and_drops_the_rest() {
        let marking = Scenario::parse(
            "name = \"t\"\nduration = \"1s\"\naqm = \"fixed:p=1\"\n[topology]\npreset = \"dumbbell\"\n\
             bottleneck = { rate = \"8Mbit\", delay = \"10ms\", buffer = \"20pkt\" }\n\
             access = { rate = \"80Mbit\", delay = \"1ms\" }\n[[flows]]\nname = \"f\"\n",
            "t.toml",
        );
        let plan = marking.unwrap().plan(1, None).unwrap();
        let mut network = Network::new(&plan).unwrap();
        let mut told = Vec::new();
        let mut tell = |_, packet: Packet, end| told.push((packet.slot, packet.ecn, end));
        for (slot, ecn) in (0..).zip([Ecn::Ect0, Ecn::Ect1, Ecn::NotEct]) {
            network.enter(0, Packet { ecn, ..packet(slot, 0) }, &mut tell);
        }
        network.advance(1_000_000 * US, &mut tell);
        told.sort_by_key(|(slot, ..)| *slot);
        let marked = [0, 1].map(|slot| (slot, Ecn::Ce, End::Out));
        assert_eq!(told[..2], marked);
        assert!(
            matches!(told[2], (2, Ecn::NotEct, End::Dropped(reason)) if reason != DropReason::Overflow),
            "{told:?}"
        );
    }
}
