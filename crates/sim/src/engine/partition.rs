//! The partition: what shares state makes a place, and what lies too close to each other for a superstep of its
//! own is merged into one.
//!
//! ```text
//! a port, with its queue, transmitter and AQM timer            a place
//! all flows whose ends share more than the network: those      one place, the hosts': what an application gets at
//!   with applications, and those of other transports than TCP    one end decides what it asks for at the other, and
//!                                                                groups share sources
//! each end of a bulk transfer over TCP                         a place as small as can be: a lone end
//! ```
//!
//! A superstep is as long as the least time that a packet takes from one place to another. The longer it is, the more
//! places have to be merged; the shorter, the less each of them does in one. Where nothing pays, one place is left.

use aqumen_scenario::streams::mix;
use aqumen_scenario::{Flow, Group, Plan, Traffic};

use crate::Places;
use crate::network::Network;

/// Which place everything belongs to.
#[derive(Clone)]
pub(super) struct Partition {
    /// About how many events a second are expected.
    pub(super) rate: f64,
    /// A superstep is 2^width_bits nanoseconds long.
    pub(super) width_bits: u32,
    /// How many places there are, lone ends apart.
    pub(super) places: usize,
    /// The place of each port.
    pub(super) of_port: Vec<u32>,
    /// Whether packets may come from a port back to it within a superstep.
    pub(super) near_itself: Vec<bool>,
    /// The place of each flow's sender, and of its receiver; `LONE`: it is one by itself.
    pub(super) of_sender: Vec<u32>,
    pub(super) of_receiver: Vec<u32>,
    /// The place of the applications.
    pub(super) of_hosts: u32,
}

/// An end that is a place by itself.
pub(super) const LONE: u32 = u32::MAX;

/// A superstep of more events is cut: what it holds is to stay in the cache.
const SUPERSTEP_EVENTS: f64 = 4096.0;

/// The same where two threads meet at its end: each holds half of it, and waits for the other.
const SHARED_SUPERSTEP_EVENTS: f64 = 16_384.0;

/// Fewer events in a superstep for each place are not worth its overhead.
const LEAST_EVENTS: f64 = 4.0;

/// 2^31 nanoseconds are more than any way takes.
const MOST_BITS: u32 = 31;

impl Partition {
    /// Of the network that `plan` has become; so many `threads` may share the run.
    pub(super) fn new(plan: &Plan, network: &Network, places: Places, threads: usize) -> Self {
        let mut sets = Sets::new(plan, network);
        let mut ways = [0; MOST_BITS as usize + 2];
        for_each_way(plan, network, &mut |delay, _, _| ways[bits_of(delay)] += 1);
        let rate = expected_rate(plan);
        let mut draw = Draw::of(places);
        let least_bits = match places {
            Places::Paying => 0,
            // So many supersteps are passed even if nothing happens in them.
            Places::Apart | Places::Drawn(_) => (plan.duration.as_nanos() >> 20).max(1).ilog2(),
            Places::One => {
                sets.unite_all();
                MOST_BITS
            }
        };
        let mut bits = 0;
        loop {
            // No two places may be closer than a superstep is long.
            if ways[bits as usize] > 0 {
                for_each_way(plan, network, &mut |delay, from, to| {
                    if bits_of(delay) == bits as usize {
                        sets.unite_way(from, to);
                    }
                });
            }
            let step = plan.sample_interval.as_nanos().min(1 << bits);
            let pays = rate * step as f64 * 1e-9 >= LEAST_EVENTS * (sets.places() + 1) as f64;
            if bits >= MOST_BITS || (bits >= least_bits && (pays || places != Places::Paying)) {
                break;
            }
            bits += 1;
        }
        draw.unite_some(&mut sets);
        let most = if threads > 1 { SHARED_SUPERSTEP_EVENTS } else { SUPERSTEP_EVENTS };
        let most = (most * 1e9 / rate).clamp(1.0, 2e9) as u64;
        let farther = (bits + 1..=MOST_BITS).find(|&bits| ways[bits as usize] > 0).map_or(MOST_BITS, |bits| bits - 1);
        let width_bits = most.ilog2().clamp(bits, farther);
        let width_bits = draw.shorten(width_bits, least_bits);
        let mut near_itself = vec![false; network.ports.len()];
        for_each_way(plan, network, &mut |delay, from, to| {
            if let (Spot::Port(from), Spot::Port(to)) = (from, to) {
                near_itself[from as usize] |= from == to && delay < 1 << width_bits;
            }
        });
        sets.partition(rate, width_bits, near_itself)
    }
}

/// Of the delay of a way: k where it is shorter than 2^k nanoseconds, and not shorter than half of that.
fn bits_of(delay: u64) -> usize {
    delay.checked_ilog2().map_or(0, |bits| bits + 1).min(MOST_BITS + 1) as usize
}

/// What may be a place by itself.
#[derive(Clone, Copy)]
enum Spot {
    Port(u32),
    Sender(u32),
    Receiver(u32),
}

/// Calls `visit` with each way of a packet from one spot to the next, and the least time that it takes.
fn for_each_way(plan: &Plan, network: &Network, visit: &mut dyn FnMut(u64, Spot, Spot)) {
    for (flow, number) in plan.flows.iter().zip(0u32..) {
        let group = &plan.groups[flow.group as usize];
        let (mut from, mut sum) = (Spot::Sender(number), 0);
        for (path, back) in [(&flow.path, false), (&flow.return_path, true)] {
            // What a prompt receiver does is computed where the packet comes from.
            if back && !network.is_prompt(group) {
                let to = Spot::Receiver(number);
                visit(sum, from, to);
                (from, sum) = (to, 0);
            }
            for &link in path {
                if let Some(port) = network.port_of[link as usize] {
                    let to = Spot::Port(port);
                    visit(sum, from, to);
                    (from, sum) = (to, 0);
                }
                sum += plan.links[link as usize].delay_min().as_nanos();
            }
        }
        visit(sum, from, Spot::Sender(number));
    }
}

/// Spots that are united bit by bit: each knows another of its set, up to one that stands for all.
struct Sets {
    parents: Vec<u32>,
    /// The set that a spot stands for: how many spots it has.
    sizes: Vec<u32>,
    ports: u32,
    flows: u32,
    /// How many sets hold a port or the hosts.
    places: usize,
}

impl Sets {
    /// Everything apart, save the hosts.
    fn new(plan: &Plan, network: &Network) -> Self {
        let (ports, flows) = (network.ports.len() as u32, plan.flows.len() as u32);
        let spots = (ports + 1 + 2 * flows) as usize;
        let mut sets =
            Sets { parents: (0..spots as u32).collect(), sizes: vec![1; spots], ports, flows, places: ports as usize };
        for (flow, number) in plan.flows.iter().zip(0u32..) {
            if !is_lone(plan, flow) {
                sets.unite(sets.hosts(), sets.number(Spot::Sender(number)));
                sets.unite(sets.hosts(), sets.number(Spot::Receiver(number)));
            }
        }
        sets
    }

    fn hosts(&self) -> u32 {
        self.ports
    }

    fn number(&self, spot: Spot) -> u32 {
        match spot {
            Spot::Port(port) => port,
            Spot::Sender(flow) => self.ports + 1 + flow,
            Spot::Receiver(flow) => self.ports + 1 + self.flows + flow,
        }
    }

    fn find(&mut self, mut spot: u32) -> u32 {
        while self.parents[spot as usize] != spot {
            let parent = self.parents[spot as usize];
            self.parents[spot as usize] = self.parents[parent as usize];
            spot = parent;
        }
        spot
    }

    fn unite(&mut self, a: u32, b: u32) {
        let (a, b) = (self.find(a), self.find(b));
        if a == b {
            return;
        }
        // The lower number stands for both: a port, or the hosts, if there is one.
        let (stays, goes) = (a.min(b), a.max(b));
        self.places -= usize::from(goes < self.ports);
        self.parents[goes as usize] = stays;
        self.sizes[stays as usize] += self.sizes[goes as usize];
    }

    /// Unites what a way from one to the other is too short for. A lone end that reaches itself, or another lone end,
    /// within a superstep is none.
    fn unite_way(&mut self, from: Spot, to: Spot) {
        let (from, to) = (self.number(from), self.number(to));
        self.unite(from, to);
        if self.find(from) > self.hosts() {
            self.unite(from, self.hosts());
        }
    }

    fn unite_all(&mut self) {
        (1..self.parents.len() as u32).for_each(|spot| self.unite(0, spot));
    }

    /// How many places there are, lone ends apart.
    fn places(&self) -> usize {
        let hosts = self.hosts() as usize;
        self.places + usize::from(self.parents[hosts] == hosts as u32 && self.sizes[hosts] > 1)
    }

    fn partition(mut self, rate: f64, width_bits: u32, near_itself: Vec<bool>) -> Partition {
        let mut place_of = vec![LONE; self.ports as usize + 1];
        let mut places = 0;
        let mut place = |sets: &mut Sets, spot: u32| {
            let root = sets.find(spot);
            let Some(place) = place_of.get_mut(root as usize) else { return LONE };
            if *place == LONE {
                *place = places;
                places += 1;
            }
            *place
        };
        let of_port: Vec<u32> = (0..self.ports).map(|port| place(&mut self, port)).collect();
        let mut of_end = |sets: &mut Sets, end: fn(u32) -> Spot| -> Vec<u32> {
            (0..sets.flows)
                .map(|flow| {
                    let spot = sets.number(end(flow));
                    place(sets, spot)
                })
                .collect()
        };
        let (of_sender, of_receiver) = (of_end(&mut self, Spot::Sender), of_end(&mut self, Spot::Receiver));
        let hosts = self.hosts();
        let root = self.find(hosts);
        let of_hosts = if self.sizes[root as usize] > 1 { place(&mut self, hosts) } else { LONE };
        Partition { rate, width_bits, places: places as usize, of_port, near_itself, of_sender, of_receiver, of_hosts }
    }
}

/// Whether the ends of `flow` share nothing with anything but through the network.
fn is_lone(plan: &Plan, flow: &Flow) -> bool {
    let Group { transport, traffic, .. } = &plan.groups[flow.group as usize];
    transport.tcp().is_some() && *traffic == Traffic::Bulk
}

/// What is drawn of a partition, for tests.
struct Draw(Option<u64>);

impl Draw {
    fn of(places: Places) -> Self {
        Draw(if let Places::Drawn(seed) = places { Some(seed) } else { None })
    }

    /// A number below `n`; 0 where nothing is drawn.
    fn below(&mut self, n: u64) -> u64 {
        let Some(state) = &mut self.0 else { return 0 };
        *state = mix(*state);
        *state % n.max(1)
    }

    /// Merges what happens to be drawn: more or less of everything.
    fn unite_some(&mut self, sets: &mut Sets) {
        let spots = sets.parents.len() as u64;
        let fewer_than = [1, 3, spots / 4, spots][self.below(4) as usize];
        for _ in 0..self.below(fewer_than) {
            let (a, b) = (self.below(spots) as u32, self.below(spots) as u32);
            sets.unite(a, b);
            if sets.find(a) > sets.hosts() {
                sets.unite(a, sets.hosts());
            }
        }
    }

    /// A superstep may be shorter than it has to be.
    fn shorten(&mut self, width_bits: u32, least_bits: u32) -> u32 {
        width_bits - self.below(u64::from(width_bits.saturating_sub(least_bits).min(4)) + 1) as u32
    }
}

/// About how many events a second to expect: decides how long supersteps are, and so only the speed.
fn expected_rate(plan: &Plan) -> f64 {
    let size = plan.groups.iter().map(|group| group.transport.packet_bytes()).max().unwrap_or(1000);
    let packet_bits = 8.0 * f64::from(size.max(1));
    // A packet over a recorded link means three events: its arrival, its acknowledgement on the way, and at the sender.
    let recorded = plan.links.iter().zip(carried(plan)).filter(|(link, _)| link.record);
    recorded.map(|(_, bps)| 3.0 * bps / packet_bits).sum::<f64>().clamp(1e3, 1e9)
}

/// About how much each link carries, bit/s: a link that is faster than what leads to it is not full.
fn carried(plan: &Plan) -> Vec<f64> {
    let rates: Vec<f64> = plan.links.iter().map(|link| link.rates[0].1.as_bps() as f64).collect();
    let most: Vec<f64> = plan.groups.iter().map(most_bps).collect();
    let narrowest = |flow: &Flow| flow.path.iter().map(|&link| rates[link as usize]).fold(f64::INFINITY, f64::min);
    let load = |shares: &[f64]| {
        let mut loads = vec![0.0; rates.len()];
        for flow in &plan.flows {
            let share = flow.path.iter().map(|&link| shares[link as usize]).fold(1.0, f64::min);
            let bps = share * most[flow.group as usize].min(narrowest(flow));
            flow.path.iter().for_each(|&link| loads[link as usize] += bps);
        }
        loads
    };
    // What of the load on a link gets through, if each flow loses the same part.
    let offered = load(&vec![1.0; rates.len()]);
    let shares: Vec<f64> = rates.iter().zip(&offered).map(|(rate, offered)| (rate / offered).min(1.0)).collect();
    load(&shares).into_iter().zip(rates).map(|(load, rate)| load.min(rate)).collect()
}

/// What a flow of `group` sends at most, bit/s, however fast its way is.
fn most_bps(group: &Group) -> f64 {
    let headers = f64::from(group.transport.packet_bytes()) - f64::from(group.transport.payload_bytes());
    let offered = group.traffic.offered();
    offered.map_or(f64::INFINITY, |offered| 8.0 * offered.per_second * (offered.bytes + headers))
}

/// How far ahead most packets lie: the longest way there and back, and as long again in queues.
pub(super) fn expected_horizon(plan: &Plan) -> u64 {
    let delay = |path: &[u32]| path.iter().map(|&link| plan.links[link as usize].delay.as_nanos()).sum::<u64>();
    let longest = plan.flows.iter().map(|flow| delay(&flow.path) + delay(&flow.return_path)).max().unwrap_or(0);
    2 * longest + 100_000_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use aqumen_scenario::Scenario;

    /// Events a second expected of flows that reach a bottleneck of `rate` over links of 10 Mbit/s.
    fn expected(rate: &str, flows: &str) -> f64 {
        let text = format!(
            "name = \"few\"\nduration = \"1s\"\n[topology]\npreset = \"dumbbell\"\n\
             bottleneck = {{ rate = \"{rate}\", delay = \"1ms\", buffer = \"9pkt\" }}\n\
             access = {{ rate = \"10Mbit\", delay = \"1ms\" }}\n[[flows]]\nname = \"few\"\n{flows}"
        );
        expected_rate(&Scenario::parse(&text, "few").unwrap().plan(1, None).unwrap())
    }

    #[test]
    fn what_is_drawn_is_below_the_bound_and_anything_there() {
        let mut draw = Draw::of(Places::Drawn(1));
        let drawn: std::collections::BTreeSet<u64> = (0..200).map(|_| draw.below(7)).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), (0..7).collect::<Vec<_>>());
        assert_eq!((draw.below(0), Draw::of(Places::Paying).below(7)), (0, 0));
        let mut widths: Vec<u32> = (0..200).map(|_| draw.shorten(20, 18)).collect();
        widths.sort_unstable();
        widths.dedup();
        assert_eq!(widths, [18, 19, 20]);
        assert_eq!(Draw::of(Places::Apart).shorten(20, 2), 20);
    }

    #[test]
    fn partitions_that_are_drawn_are_of_all_kinds() {
        let text = "name = \"few\"\nduration = \"1s\"\n[topology]\npreset = \"parking-lot\"\n\
             rate = [\"8Mbit\", \"8Mbit\", \"8Mbit\"]\ndelay = \"5ms\"\nbuffer = \"9pkt\"\n\
             access = { rate = \"80Mbit\", delay = \"4ms\" }\n[[flows]]\nname = \"few\"\ncount = 3\n";
        let plan = Scenario::parse(text, "few").unwrap().plan(1, None).unwrap();
        let style = aqumen_network::port::Style { collapse: true, served: false };
        let network = Network::new(&plan, style, false).unwrap();
        let of = |places| Partition::new(&plan, &network, places, 1).places;
        let (most, drawn) = (of(Places::Apart), (0..100).map(|seed| of(Places::Drawn(seed))));
        let drawn: std::collections::BTreeSet<usize> = drawn.collect();
        assert_eq!((drawn.first(), of(Places::One)), (Some(&1), 1));
        assert!(most >= 4 && drawn.len() > 2 && drawn.last() <= Some(&(most + 1)), "{most}: {drawn:?}");
    }

    #[test]
    fn a_delay_is_shorter_than_its_power_of_two_and_no_shorter_than_half_of_it() {
        for delay in [1, 2, 3, 4, 1023, 1024, 1025, (1 << 31) - 1, 1 << 31] {
            let bits = bits_of(delay);
            assert!((1 << (bits - 1)..1 << bits).contains(&delay), "{delay}: {bits}");
        }
        // What takes no time, and what takes longer than any superstep.
        assert_eq!([0, u64::MAX].map(bits_of), [0, MOST_BITS as usize + 1]);
    }

    #[test]
    fn places_are_as_many_as_pays() {
        // Events expected in a superstep, at the queues of a row of links, and at the hosts of calls.
        let calls = "[[flows]]\nname = \"calls\"\ntransport = \"udp\"\ntraffic = \"voip\"\n";
        for (rate, more) in (1..60).map(|k| 30_000 * k * k).flat_map(|rate| [(rate, ""), (rate, calls)]) {
            let text = format!(
                "name = \"row\"\nduration = \"1s\"\n[topology]\npreset = \"parking-lot\"\n\
                 rate = [\"{rate}bit\", \"{rate}bit\", \"{rate}bit\"]\ndelay = \"5ms\"\nbuffer = \"9pkt\"\n\
                 access = {{ rate = \"800Mbit\", delay = \"4ms\" }}\n[[flows]]\nname = \"few\"\ncount = 3\n{more}"
            );
            let plan = Scenario::parse(&text, "row").unwrap().plan(1, None).unwrap();
            let style = aqumen_network::port::Style { collapse: true, served: false };
            let network = Network::new(&plan, style, false).unwrap();
            let Partition { places, width_bits, rate, .. } = Partition::new(&plan, &network, Places::Paying, 1);
            let step = plan.sample_interval.as_nanos().min(1 << width_bits);
            let each = rate * step as f64 * 1e-9 / (places + 1) as f64;
            assert!(places == 1 || each >= LEAST_EVENTS, "{places} places of {each} events");
        }
    }

    #[test]
    fn a_link_faster_than_what_leads_to_it_makes_no_more_events() {
        let bulk = "count = 4\ntransport = { preset = \"ns2\", packet = \"1000B\" }";
        // 40 Mbit/s of 8000 bits are 5000 packets a second, three events each; at 8 Mbit/s a thousand get through.
        assert_eq!(["10Gbit", "40Mbit", "8Mbit"].map(|rate| expected(rate, bulk)), [15_000.0, 15_000.0, 3_000.0]);
        // Eight that each send 125 packets of 1000 and 28 bytes a second, of the largest that UDP has.
        let udp = "transport = { preset = \"udp\", packet = \"1028B\" }\n";
        let paced = "traffic = { kind = \"cbr\", rate = \"1Mbit\", packet = \"1000B\" }";
        assert_eq!(expected("1Gbit", &format!("count = 8\n{udp}{paced}")), 3.0 * 8.0 * 125.0);
    }

    #[test]
    fn events_are_expected_as_far_ahead_as_the_longest_way_and_its_queues() {
        // Two links of access of 4 ms and 20 ms between, there and back: 56 ms; as much in queues, and 100 ms.
        let text = "name = \"far\"\nduration = \"1s\"\n[topology]\npreset = \"dumbbell\"\n\
             bottleneck = { rate = \"8Mbit\", delay = \"20ms\", buffer = \"9pkt\" }\n\
             access = { rate = \"80Mbit\", delay = \"4ms\" }\n[[flows]]\nname = \"few\"\ncount = 3\n";
        let plan = Scenario::parse(text, "far").unwrap().plan(1, None).unwrap();
        assert_eq!(expected_horizon(&plan), 212_000_000);
    }
}
