//! Partition of the network into logical processes.
//!
//! ```text
//! a port, with its queue, transmitter and AQM timer            a process
//! all flows whose endpoints share more than the network:       one process, the hosts: a delivery at one endpoint
//!   with applications, or of other transports than TCP           decides the other's requests, groups share sources
//! each endpoint of a bulk transfer over TCP                    a process of minimal size: a bulk endpoint
//! ```
//!
//! Processes that are too close to each other for an epoch of their own are merged. An epoch is as long as the least
//! time of a packet from one process to another (the lookahead). Longer epochs need more merging, shorter ones have
//! fewer events per process. Where no partition pays, one process is left.

use aqumen_scenario::streams::mix;
use aqumen_scenario::{Flow, Group, Plan, Traffic};

use crate::Partitioning;
use crate::network::Network;

/// Process of each port, endpoint and application.
#[derive(Clone)]
pub(super) struct Partition {
    /// Expected events per second.
    pub(super) rate: f64,
    /// An epoch is 2^width_bits nanoseconds long.
    pub(super) width_bits: u32,
    /// Number of processes without bulk endpoints.
    pub(super) processes: usize,
    /// Process of each port.
    pub(super) of_port: Vec<u32>,
    /// Whether packets may come from a port back to it within an epoch.
    pub(super) near_itself: Vec<bool>,
    /// Process of each flow's sender and receiver; `BULK`: a bulk endpoint.
    pub(super) of_sender: Vec<u32>,
    pub(super) of_receiver: Vec<u32>,
    /// Process of the applications.
    pub(super) of_hosts: u32,
}

/// Process number of bulk endpoints.
pub(super) const BULK: u32 = u32::MAX;

/// Most events of an epoch, so that they stay in the cache.
const EPOCH_EVENTS: f64 = 4096.0;

/// Most events of an epoch with two threads, which synchronise at its end.
const SHARED_EPOCH_EVENTS: f64 = 16_384.0;

/// Least number of events per process and epoch that pays for its overhead.
const LEAST_EVENTS: f64 = 4.0;

/// Longest epoch: 2^31 nanoseconds, more than any path takes.
const MOST_BITS: u32 = 31;

impl Partition {
    /// Partitions `network`, built from `plan`, for at most `threads` threads.
    pub(super) fn new(plan: &Plan, network: &Network, processes: Partitioning, threads: usize) -> Self {
        let mut sets = DisjointSets::new(plan, network);
        let mut dispatcher = [0; MOST_BITS as usize + 2];
        for_each_hop(plan, network, &mut |delay, _, _| dispatcher[bits_of(delay)] += 1);
        let rate = expected_rate(plan);
        let mut draw = RandomChoice::new(processes);
        let least_bits = match processes {
            Partitioning::Paying => 0,
            // Empty epochs cost time too.
            Partitioning::Apart | Partitioning::Drawn(_) => (plan.duration.as_nanos() >> 20).max(1).ilog2(),
            Partitioning::One => {
                sets.unite_all();
                MOST_BITS
            }
        };
        let mut bits = 0;
        loop {
            // Processes must be at least an epoch apart.
            if dispatcher[bits as usize] > 0 {
                for_each_hop(plan, network, &mut |delay, from, to| {
                    if bits_of(delay) == bits as usize {
                        sets.unite_hop(from, to);
                    }
                });
            }
            let step = plan.sample_interval.as_nanos().min(1 << bits);
            let pays = rate * step as f64 * 1e-9 >= LEAST_EVENTS * (sets.processes() + 1) as f64;
            if bits >= MOST_BITS || (bits >= least_bits && (pays || processes != Partitioning::Paying)) {
                break;
            }
            bits += 1;
        }
        draw.unite_some(&mut sets);
        let most = if threads > 1 { SHARED_EPOCH_EVENTS } else { EPOCH_EVENTS };
        let most = (most * 1e9 / rate).clamp(1.0, 2e9) as u64;
        let farther =
            (bits + 1..=MOST_BITS).find(|&bits| dispatcher[bits as usize] > 0).map_or(MOST_BITS, |bits| bits - 1);
        let width_bits = most.ilog2().clamp(bits, farther);
        let width_bits = draw.shorten(width_bits, least_bits);
        let mut near_itself = vec![false; network.ports.len()];
        for_each_hop(plan, network, &mut |delay, from, to| {
            if let (Candidate::Port(from), Candidate::Port(to)) = (from, to) {
                near_itself[from as usize] |= from == to && delay < 1 << width_bits;
            }
        });
        sets.partition(rate, width_bits, near_itself)
    }
}

/// Returns the smallest k with `delay` < 2^k nanoseconds.
fn bits_of(delay: u64) -> usize {
    delay.checked_ilog2().map_or(0, |bits| bits + 1).min(MOST_BITS + 1) as usize
}

/// A candidate for a process of its own.
#[derive(Clone, Copy)]
enum Candidate {
    Port(u32),
    Sender(u32),
    Receiver(u32),
}

/// Calls `visit` with the least latency between each two neighbouring candidates on a packet's path.
fn for_each_hop(plan: &Plan, network: &Network, visit: &mut dyn FnMut(u64, Candidate, Candidate)) {
    for (flow, number) in plan.flows.iter().zip(0u32..) {
        let group = &plan.groups[flow.group as usize];
        let (mut from, mut sum) = (Candidate::Sender(number), 0);
        for (path, back) in [(&flow.path, false), (&flow.return_path, true)] {
            // An inline receiver is computed where the packet comes from.
            if back && !network.is_inline(group) {
                let to = Candidate::Receiver(number);
                visit(sum, from, to);
                (from, sum) = (to, 0);
            }
            for &link in path {
                if let Some(port) = network.port_of[link as usize] {
                    let to = Candidate::Port(port);
                    visit(sum, from, to);
                    (from, sum) = (to, 0);
                }
                sum += plan.links[link as usize].delay_min().as_nanos();
            }
        }
        visit(sum, from, Candidate::Sender(number));
    }
}

/// Disjoint sets of candidates (union-find).
#[derive(Clone)]
struct DisjointSets {
    parents: Vec<u32>,
    /// Size of the set that a root represents.
    sizes: Vec<u32>,
    ports: u32,
    flows: u32,
    /// Number of sets with a port or the hosts.
    processes: usize,
}

impl DisjointSets {
    /// Begins with one set per candidate, and one for the hosts.
    fn new(plan: &Plan, network: &Network) -> Self {
        let (ports, flows) = (network.ports.len() as u32, plan.flows.len() as u32);
        let candidates = (ports + 1 + 2 * flows) as usize;
        let mut sets = DisjointSets {
            parents: (0..candidates as u32).collect(),
            sizes: vec![1; candidates],
            ports,
            flows,
            processes: ports as usize,
        };
        for (flow, number) in plan.flows.iter().zip(0u32..) {
            if !is_bulk(plan, flow) {
                sets.unite(sets.hosts(), sets.number(Candidate::Sender(number)));
                sets.unite(sets.hosts(), sets.number(Candidate::Receiver(number)));
            }
        }
        sets
    }

    fn hosts(&self) -> u32 {
        self.ports
    }

    fn number(&self, candidate: Candidate) -> u32 {
        match candidate {
            Candidate::Port(port) => port,
            Candidate::Sender(flow) => self.ports + 1 + flow,
            Candidate::Receiver(flow) => self.ports + 1 + self.flows + flow,
        }
    }

    fn find(&mut self, mut candidate: u32) -> u32 {
        while self.parents[candidate as usize] != candidate {
            let parent = self.parents[candidate as usize];
            self.parents[candidate as usize] = self.parents[parent as usize];
            candidate = parent;
        }
        candidate
    }

    fn unite(&mut self, a: u32, b: u32) {
        let (a, b) = (self.find(a), self.find(b));
        if a == b {
            return;
        }
        // The lower number is the root: a port or the hosts, if the set has one.
        let (stays, goes) = (a.min(b), a.max(b));
        self.processes -= usize::from(goes < self.ports);
        self.parents[goes as usize] = stays;
        self.sizes[stays as usize] += self.sizes[goes as usize];
    }

    /// Unites two candidates that are too close. Bulk endpoints that are too close to each other join the hosts.
    fn unite_hop(&mut self, from: Candidate, to: Candidate) {
        let (from, to) = (self.number(from), self.number(to));
        self.unite(from, to);
        if self.find(from) > self.hosts() {
            self.unite(from, self.hosts());
        }
    }

    fn unite_all(&mut self) {
        (1..self.parents.len() as u32).for_each(|candidate| self.unite(0, candidate));
    }

    /// Number of processes without bulk endpoints.
    fn processes(&self) -> usize {
        let hosts = self.hosts() as usize;
        self.processes + usize::from(self.parents[hosts] == hosts as u32 && self.sizes[hosts] > 1)
    }

    fn partition(mut self, rate: f64, width_bits: u32, near_itself: Vec<bool>) -> Partition {
        let mut place_of = vec![BULK; self.ports as usize + 1];
        let mut processes = 0;
        let mut process = |sets: &mut DisjointSets, candidate: u32| {
            let root = sets.find(candidate);
            let Some(process) = place_of.get_mut(root as usize) else { return BULK };
            if *process == BULK {
                *process = processes;
                processes += 1;
            }
            *process
        };
        let of_port: Vec<u32> = (0..self.ports).map(|port| process(&mut self, port)).collect();
        let mut of_end = |sets: &mut DisjointSets, end: fn(u32) -> Candidate| -> Vec<u32> {
            (0..sets.flows)
                .map(|flow| {
                    let candidate = sets.number(end(flow));
                    process(sets, candidate)
                })
                .collect()
        };
        let (of_sender, of_receiver) = (of_end(&mut self, Candidate::Sender), of_end(&mut self, Candidate::Receiver));
        let hosts = self.hosts();
        let root = self.find(hosts);
        let of_hosts = if self.sizes[root as usize] > 1 { process(&mut self, hosts) } else { BULK };
        Partition {
            rate,
            width_bits,
            processes: processes as usize,
            of_port,
            near_itself,
            of_sender,
            of_receiver,
            of_hosts,
        }
    }
}

/// Returns whether the endpoints of `flow` share no state with other endpoints.
fn is_bulk(plan: &Plan, flow: &Flow) -> bool {
    let Group { transport, traffic, .. } = &plan.groups[flow.group as usize];
    transport.tcp().is_some() && *traffic == Traffic::Bulk
}

/// Random choices of a partition, for tests.
#[derive(Clone)]
struct RandomChoice(Option<u64>);

impl RandomChoice {
    fn new(partitioning: Partitioning) -> Self {
        RandomChoice(if let Partitioning::Drawn(seed) = partitioning { Some(seed) } else { None })
    }

    /// Draws a number below `n`; 0 without random choices.
    fn below(&mut self, n: u64) -> u64 {
        let Some(state) = &mut self.0 else { return 0 };
        *state = mix(*state);
        *state % n.max(1)
    }

    /// Merges random sets.
    fn unite_some(&mut self, sets: &mut DisjointSets) {
        let candidates = sets.parents.len() as u64;
        let fewer_than = [1, 3, candidates / 4, candidates][self.below(4) as usize];
        for _ in 0..self.below(fewer_than) {
            let (a, b) = (self.below(candidates) as u32, self.below(candidates) as u32);
            sets.unite(a, b);
            if sets.find(a) > sets.hosts() {
                sets.unite(a, sets.hosts());
            }
        }
    }

    /// Shortens the epoch at random.
    fn shorten(&mut self, width_bits: u32, least_bits: u32) -> u32 {
        width_bits - self.below(u64::from(width_bits.saturating_sub(least_bits).min(4)) + 1) as u32
    }
}

/// Estimates the events per second. The estimate decides the length of epochs, and so only the speed.
fn expected_rate(plan: &Plan) -> f64 {
    let size = plan.groups.iter().map(|group| group.transport.packet_bytes()).max().unwrap_or(1000);
    let packet_bits = 8.0 * f64::from(size.max(1));
    // A packet over a recorded link means three events: its arrival, and that of its acknowledgement at a port and at
    // the sender.
    let recorded = plan.links.iter().zip(carried(plan)).filter(|(link, _)| link.record);
    recorded.map(|(_, bps)| 3.0 * bps / packet_bits).sum::<f64>().clamp(1e3, 1e9)
}

/// Estimates the load that each link carries, bit/s: a link faster than those before it is not full.
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
    // Fraction of a link's load that passes, if each flow loses an equal fraction.
    let offered = load(&vec![1.0; rates.len()]);
    let shares: Vec<f64> = rates.iter().zip(&offered).map(|(rate, offered)| (rate / offered).min(1.0)).collect();
    load(&shares).into_iter().zip(rates).map(|(load, rate)| load.min(rate)).collect()
}

/// Returns the most that a flow of `group` sends on any path, bit/s.
fn most_bps(group: &Group) -> f64 {
    let headers = f64::from(group.transport.packet_bytes()) - f64::from(group.transport.payload_bytes());
    let offered = group.traffic.offered();
    offered.map_or(f64::INFINITY, |offered| 8.0 * offered.per_second * (offered.bytes + headers))
}

/// Estimates how far ahead packets are scheduled: the longest round trip, and as much time in queues.
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
    fn random_choices_cover_all_values_below_the_bound() {
        let mut draw = RandomChoice::new(Partitioning::Drawn(1));
        let drawn: std::collections::BTreeSet<u64> = (0..200).map(|_| draw.below(7)).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), (0..7).collect::<Vec<_>>());
        assert_eq!((draw.below(0), RandomChoice::new(Partitioning::Paying).below(7)), (0, 0));
        let mut widths: Vec<u32> = (0..200).map(|_| draw.shorten(20, 18)).collect();
        widths.sort_unstable();
        widths.dedup();
        assert_eq!(widths, [18, 19, 20]);
        assert_eq!(RandomChoice::new(Partitioning::Apart).shorten(20, 2), 20);
    }

    #[test]
    fn partitions_that_are_drawn_are_of_all_kinds() {
        let text = "name = \"few\"\nduration = \"1s\"\n[topology]\npreset = \"parking-lot\"\n\
             rate = [\"8Mbit\", \"8Mbit\", \"8Mbit\"]\ndelay = \"5ms\"\nbuffer = \"9pkt\"\n\
             access = { rate = \"80Mbit\", delay = \"4ms\" }\n[[flows]]\nname = \"few\"\ncount = 3\n";
        let plan = Scenario::parse(text, "few").unwrap().plan(1, None).unwrap();
        let style = aqumen_network::port::Style { collapse: true, served: false };
        let network = Network::new(&plan, style, false).unwrap();
        let of = |processes| Partition::new(&plan, &network, processes, 1).processes;
        let (most, drawn) = (of(Partitioning::Apart), (0..100).map(|seed| of(Partitioning::Drawn(seed))));
        let drawn: std::collections::BTreeSet<usize> = drawn.collect();
        assert_eq!((drawn.first(), of(Partitioning::One)), (Some(&1), 1));
        assert!(most >= 4 && drawn.len() > 2 && drawn.last() <= Some(&(most + 1)), "{most}: {drawn:?}");
    }

    #[test]
    fn a_delay_is_shorter_than_its_power_of_two_and_no_shorter_than_half_of_it() {
        for delay in [1, 2, 3, 4, 1023, 1024, 1025, (1 << 31) - 1, 1 << 31] {
            let bits = bits_of(delay);
            assert!((1 << (bits - 1)..1 << bits).contains(&delay), "{delay}: {bits}");
        }
        // Zero latency, and a latency longer than any epoch.
        assert_eq!([0, u64::MAX].map(bits_of), [0, MOST_BITS as usize + 1]);
    }

    #[test]
    fn the_number_of_processes_is_the_one_that_pays() {
        // Expected events in an epoch, at the queues of a row of links, and at the hosts of calls.
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
            let Partition { processes, width_bits, rate, .. } =
                Partition::new(&plan, &network, Partitioning::Paying, 1);
            let step = plan.sample_interval.as_nanos().min(1 << width_bits);
            let each = rate * step as f64 * 1e-9 / (processes + 1) as f64;
            assert!(processes == 1 || each >= LEAST_EVENTS, "{processes} processes of {each} events");
        }
    }

    #[test]
    fn a_fast_link_behind_a_slow_one_makes_no_more_events() {
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
