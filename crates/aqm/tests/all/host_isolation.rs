//! CAKE's shares between hosts of two sides, against the rule of sch_cake worked out by itself: in each round a
//! backlogged flow may send quantum / max(1, backlogged flows of its source host, backlogged flows of its destination
//! host), where the isolation looks at that side.

use aqumen_aqm::{Cake, CakeParams, Handle, Isolation, Limit, Packet, Qdisc, Tins};
use aqumen_units::{Ecn, Instant, Rate, Span};

use crate::random::{Log, Random};

/// Bytes of a packet.
const BYTES: u32 = 1000;

/// A flow: the hosts between which it runs.
type Ends = (u32, u32);

fn cake(isolation: Isolation, queues: usize, quantum: u32) -> Cake {
    let params =
        CakeParams { isolation, queues, quantum: Some(quantum), tins: Tins::BestEffort, ..CakeParams::default() };
    Cake::new(params, Rate::from_bps(100_000_000_000), Limit::packets(1_000_000))
}

fn packet(flow: usize, (source, destination): Ends) -> Packet {
    Packet {
        bytes: BYTES,
        ecn: Ecn::Ect0,
        segments: 1,
        flow_hash: flow as u32,
        source_hash: source,
        destination_hash: destination,
        ..Packet::default()
    }
}

/// A queue and what stands around it; the handle of a packet is the number of its flow.
struct Host {
    cake: Cake,
    rng: Random,
    log: Log,
    now: Instant,
}

impl Host {
    fn new(cake: Cake, seed: u64) -> Host {
        Host { cake, rng: Random(seed), log: Log::default(), now: Instant::ZERO }
    }

    fn arrive(&mut self, flow: usize, ends: Ends) {
        self.cake.enqueue(flow as Handle, &packet(flow, ends), self.now, &mut self.rng, &mut self.log);
    }

    fn depart(&mut self) -> Option<usize> {
        self.cake.dequeue(self.now, &mut self.rng, &mut self.log).map(|flow| flow as usize)
    }

    /// Packets of each flow among the next `count`, while each has three that wait: a packet that
    /// leaves is followed by another.
    fn shares(&mut self, flows: &[Ends], count: usize) -> Vec<f64> {
        for _ in 0..3 {
            flows.iter().enumerate().for_each(|(flow, ends)| self.arrive(flow, *ends));
        }
        let mut sent = vec![0.0; flows.len()];
        for number in 0..2 * count {
            let flow = self.depart().unwrap();
            self.arrive(flow, flows[flow]);
            // Not the first: flows begin as sparse ones.
            sent[flow] += f64::from(number >= count) / count as f64;
        }
        sent
    }
}

/// The rule.
fn rule(isolation: Isolation, flows: &[Ends]) -> Vec<f64> {
    let of = |same: &dyn Fn(&Ends) -> bool| flows.iter().filter(|ends| same(ends)).count();
    let parts: Vec<f64> = flows
        .iter()
        .map(|(source, destination)| {
            let (sources, destinations) = (of(&|ends| ends.0 == *source), of(&|ends| ends.1 == *destination));
            let load = match isolation {
                Isolation::Triple => sources.max(destinations),
                Isolation::DualSource => sources,
                Isolation::DualDestination => destinations,
                _ => 1,
            };
            1.0 / load as f64
        })
        .collect();
    let all: f64 = parts.iter().sum();
    parts.iter().map(|part| part / all).collect()
}

fn check(isolation: Isolation, flows: &[Ends], quantum: u32, expect: &[f64]) {
    let found = Host::new(cake(isolation, 1024, quantum), 7).shares(flows, 60_000);
    for (found, expect) in found.iter().zip(expect) {
        assert!((found / expect - 1.0).abs() < 0.01, "{isolation:?}, quantum {quantum}: {found:.4}, rule {expect:.4}");
    }
}

#[test]
fn two_sides_share_as_the_busier_host_of_each_flow_has_it() {
    // Host 1 sends to 11 and to 12, host 2 to 12 alone. By source: 1/2, 1/2, 1; by destination: 1, 1/2,
    // 1/2; by the busier: 1/2 each.
    let flows = [(1, 11), (1, 12), (2, 12)];
    check(Isolation::DualSource, &flows, BYTES, &[0.25, 0.25, 0.5]);
    check(Isolation::DualDestination, &flows, BYTES, &[0.5, 0.25, 0.25]);
    check(Isolation::Triple, &flows, BYTES, &[1.0 / 3.0; 3]);
    check(Isolation::Flows, &flows, BYTES, &[1.0 / 3.0; 3]);
    // One computer fetches from eight servers, another from one of them: by the rule 1/8 for each of the
    // eight and 1/2 for the ninth.
    let home: Vec<Ends> = (0..8).map(|server| (server, 101)).chain([(0, 102)]).collect();
    let expect: Vec<f64> = [0.125; 8].into_iter().chain([0.5]).map(|part| part / 1.5).collect();
    check(Isolation::Triple, &home, BYTES, &expect);
    check(Isolation::DualDestination, &home, BYTES, &[[1.0 / 16.0; 8].as_slice(), &[0.5]].concat());
}

#[test]
fn flows_between_hosts_drawn_at_random_share_by_the_rule() {
    let mut state = 1u32;
    let mut draw = |n: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) % n
    };
    for _ in 0..6 {
        let flows: Vec<Ends> = (0..2 + draw(14)).map(|_| (draw(4), 100 + draw(3))).collect();
        for isolation in [Isolation::Triple, Isolation::DualSource, Isolation::DualDestination] {
            // Also the smallest quantum that CAKE takes: a third of a packet, so that turns
            // pass in which nobody may send.
            for quantum in [BYTES, 300] {
                check(isolation, &flows, quantum, &rule(isolation, &flows));
            }
        }
    }
}

#[test]
fn a_flow_that_comes_back_looks_for_its_host_again() {
    // While flow 0 is away another host takes the place of its own in the table: whichever host that is, three hosts
    // with a flow each share alike, and the place of the other is not counted as flow 0's.
    for other in 2..200 {
        let mut host = Host::new(cake(Isolation::DualSource, 8, BYTES), 3);
        let flows = [(1, 11), (other, 12), (1000, 13)];
        host.arrive(0, flows[0]);
        assert_eq!(host.depart(), Some(0));
        // When COBALT has forgotten its packet the empty queue is seen, and is nobody's from then on.
        host.now = Instant::ZERO + Span::from_millis(1000);
        host.arrive(1, flows[1]);
        (0..3).for_each(|_| host.arrive(1, flows[1]));
        (0..3).for_each(|_| assert_eq!(host.depart(), Some(1)));
        let sent = host.shares(&flows, 3000);
        assert!(sent.iter().all(|share| (share * 3.0 - 1.0).abs() < 0.02), "host {other}: {sent:?}");
    }
}
