//! Tests of CAKE's scheduling, host fairness and tins against values computed by hand.

use super::*;
use crate::multi::testing::{Fixed, Log, flow};
use aqumen_units::Ecn;

const QUANTUM: u32 = 1000;

fn cake(isolation: Isolation, limit: u32) -> (Cake, Log) {
    let params = CakeParams { quantum: Some(QUANTUM), isolation, ..CakeParams::default() };
    (Cake::new(params, Rate::from_bps(1_000_000_000), Limit::packets(limit)), Log::default())
}

fn at_ms(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(ms)
}

/// A packet of a flow between two hosts.
fn between(of: u32, source: u32, destination: u32) -> Packet {
    Packet { source_hash: source, destination_hash: destination, ..flow(of, 1000) }
}

fn arrive(cake: &mut Cake, log: &mut Log, packets: &[(Handle, Packet)]) {
    for (handle, packet) in packets {
        cake.enqueue(*handle, packet, Instant::ZERO, &mut Fixed(0.5), log);
    }
}

fn next(cake: &mut Cake, log: &mut Log) -> Option<Handle> {
    cake.dequeue(Instant::ZERO, &mut Fixed(0.5), log)
}

fn rest(cake: &mut Cake, log: &mut Log) -> Vec<Handle> {
    core::iter::from_fn(|| next(cake, log)).collect()
}

fn sets(cake: &Cake) -> [usize; 3] {
    cake.tins[0].lists.map(|list| list.len())
}

#[test]
fn a_sparse_flow_goes_first_for_one_quantum_and_is_then_bulk() {
    let (mut cake, mut log) = cake(Isolation::Flows, 100);
    arrive(&mut cake, &mut log, &[10, 11, 12].map(|handle| (handle, flow(1, 1000))));
    assert_eq!(sets(&cake), [1, 0, 0]);
    assert_eq!([next(&mut cake, &mut log), next(&mut cake, &mut log)], [Some(10), Some(11)]);
    assert_eq!(sets(&cake), [0, 1, 0]);
    // Flow 2 comes: first, and then in turn with flow 1, which has used up its quantum and goes behind it.
    arrive(&mut cake, &mut log, &[20, 21].map(|handle| (handle, flow(2, 1000))));
    assert_eq!(rest(&mut cake, &mut log), [20, 21, 12]);
}

#[test]
fn a_flow_that_uses_up_its_quantum_with_its_last_packet_waits_as_a_sparse_one() {
    let (mut cake, mut log) = cake(Isolation::Flows, 100);
    arrive(&mut cake, &mut log, &[(10, flow(1, 1000)), (20, flow(2, 1000)), (21, flow(2, 1000)), (22, flow(2, 1000))]);
    assert_eq!([next(&mut cake, &mut log), next(&mut cake, &mut log)], [Some(10), Some(20)]);
    // Flow 1 has no credit and no packets: it is in turn, but counts as sparse. Its next packet
    // makes it bulk, in its old place.
    let one = cake.flows.iter().position(|flow| flow.state == QueueState::SparseWait).unwrap();
    arrive(&mut cake, &mut log, &[(11, flow(1, 1000))]);
    assert_eq!(cake.flows[one].state, QueueState::Bulk);
    assert_eq!(rest(&mut cake, &mut log), [11, 21, 22]);
}

#[test]
fn an_empty_queue_is_forgotten_when_cobalt_is_at_rest_and_winds_down_before() {
    let (mut cake, mut log) = cake(Isolation::Flows, 100);
    // Small packets, so that the quantum lasts. 10 ms in the queue are above the target of 5 ms.
    for handle in 0..3 {
        cake.enqueue(handle, &flow(1, 10), at_ms(0), &mut Fixed(0.5), &mut log);
    }
    assert_eq!(cake.dequeue(at_ms(10), &mut Fixed(0.5), &mut log), Some(0));
    assert_eq!(cake.dequeue(at_ms(10), &mut Fixed(0.5), &mut log), Some(1));
    assert_eq!(cake.dequeue(at_ms(10), &mut Fixed(0.5), &mut log), Some(2));
    // Another flow keeps the link busy: the empty queue is seen, and COBALT's count of one is not at rest.
    cake.enqueue(10, &flow(2, 10), at_ms(10), &mut Fixed(0.5), &mut log);
    cake.enqueue(11, &flow(2, 10), at_ms(10), &mut Fixed(0.5), &mut log);
    assert_eq!(cake.dequeue(at_ms(10), &mut Fixed(0.5), &mut log), Some(10));
    assert_eq!(sets(&cake), [1, 0, 1]);
    // Much later it has wound down.
    cake.enqueue(12, &flow(2, 10), at_ms(5000), &mut Fixed(0.5), &mut log);
    assert_eq!(cake.dequeue(at_ms(5000), &mut Fixed(0.5), &mut log), Some(11));
    cake.dequeue(at_ms(5300), &mut Fixed(0.5), &mut log);
    assert_eq!(sets(&cake)[2], 0);
    // A packet for a queue that winds down makes it sparse.
    cake.enqueue(20, &flow(3, 10), at_ms(5300), &mut Fixed(0.5), &mut log);
    assert_eq!(sets(&cake)[0], 2);
}

#[test]
fn the_last_packet_of_a_queue_is_not_dropped() {
    let (mut cake, mut log) = cake(Isolation::Flows, 100);
    let packet = Packet { ecn: Ecn::NotEct, ..flow(1, 10) };
    for handle in 0..3 {
        cake.enqueue(handle, &packet, at_ms(0), &mut Fixed(0.0), &mut log);
    }
    // BLUE is certain: the first two are dropped, the third goes.
    let queue = cake.flows.iter().position(|flow| flow.state == QueueState::Sparse).unwrap();
    let certain = CobaltParams { increment: 1.0, ..CobaltParams::default() };
    cake.flows[queue].aqm.on_overflow(&certain, at_ms(1));
    assert_eq!(cake.dequeue(at_ms(2), &mut Fixed(0.0), &mut log), Some(2));
    assert_eq!(log.dropped, [0, 1]);
}

#[test]
fn the_last_packet_of_a_queue_keeps_its_mark_though_blue_would_drop_it() {
    let params = CakeParams {
        cobalt: CobaltParams { arithmetic: Arithmetic::Linux, ..CakeParams::default().cobalt },
        ..CakeParams::default()
    };
    let mut cake = Cake::new(params, Rate::from_bps(1_000_000_000), Limit::packets(100));
    let mut log = Log::default();
    let packet = Packet { ecn: Ecn::Ect0, ..flow(1, 10) };
    for handle in 0..2 {
        cake.enqueue(handle, &packet, at_ms(0), &mut Fixed(0.5), &mut log);
    }
    // CoDel begins with the first, which waited for 10 ms, and signals with the second, the last of its queue.
    assert_eq!(cake.dequeue(at_ms(10), &mut Fixed(0.5), &mut log), Some(0));
    let queue = cake.flows.iter().position(|flow| flow.state == QueueState::Sparse).unwrap();
    let certain = CobaltParams { increment: 1.0, ..CobaltParams::default() };
    cake.flows[queue].aqm.on_overflow(&certain, at_ms(10));
    assert_eq!(cake.dequeue(at_ms(11), &mut Fixed(0.0), &mut log), Some(1));
    assert_eq!((log.marked, log.dropped), (alloc::vec![1], alloc::vec![]));
}

/// Two tins of a link of 8 Mbit/s, 1 us a byte: best effort, and a quarter of the link for EF.
fn two_classes(ingress: bool) -> Cake {
    let params = CakeParams { ingress, quantum: Some(QUANTUM), ..CakeParams::default() };
    Cake::new(params, Rate::from_bps(8_000_000), Limit::packets(100))
}

fn ef(bytes: u32) -> Packet {
    Packet { class: 46, ecn: Ecn::NotEct, ..flow(1, bytes) }
}

#[test]
fn a_tin_saves_no_rate_while_it_has_no_packets() {
    let (mut cake, mut log) = (two_classes(false), Log::default());
    cake.enqueue(0, &ef(1000), at_ms(0), &mut Fixed(0.5), &mut log);
    assert_eq!(cake.dequeue(at_ms(0), &mut Fixed(0.5), &mut log), Some(0));
    // A second later, its queue still stands in its list. 1000 B take 4 ms of a quarter: EF goes first once, then
    // best effort, which is due in 1 ms and 2 ms.
    for handle in 0..3 {
        cake.enqueue(10 + handle, &ef(1000), at_ms(1000), &mut Fixed(0.5), &mut log);
        cake.enqueue(20 + handle, &flow(2, 1000), at_ms(1000), &mut Fixed(0.5), &mut log);
    }
    let sent: Vec<_> = (0..5).map_while(|_| cake.dequeue(at_ms(1000), &mut Fixed(0.5), &mut log)).collect();
    assert_eq!(sent, [10, 20, 21, 22, 11]);
}

#[test]
fn what_is_dropped_at_ingress_does_not_change_the_tin_that_is_served() {
    let (mut cake, mut log) = (two_classes(true), Log::default());
    cake.enqueue(20, &flow(2, 10), at_ms(0), &mut Fixed(0.5), &mut log);
    for handle in 0..3 {
        cake.enqueue(10 + handle, &ef(10), at_ms(0), &mut Fixed(0.5), &mut log);
    }
    // BLUE is certain for EF: two are dropped and charged, by which the tin is beyond its rate; the third goes.
    let queue = cake.flows.iter().rposition(|flow| flow.state == QueueState::Sparse).unwrap();
    let certain = CobaltParams { increment: 1.0, ..CobaltParams::default() };
    cake.flows[queue].aqm.on_overflow(&certain, at_ms(1));
    assert_eq!(cake.dequeue(at_ms(2), &mut Fixed(0.0), &mut log), Some(12));
    assert_eq!(log.dropped, [10, 11]);
}

#[test]
fn eight_ways_keep_apart_what_one_would_not() {
    // 800 flows in 1024 queues: with one way each, 1024 (1 - (1 - 1/1024)^800) = 555 queues are used, 245 flows
    // share. With eight ways a set of 8 overflows only when more than 8 of the 800 flows (6.25 on average) fall on
    // it, by each flow beyond: about 128 E[(X - 8)+], X Poisson(6.25): 128 * 0.287 = 37 flows.
    let (mut cake, mut log) = cake(Isolation::Flows, 10_000);
    for of in 0..800 {
        cake.enqueue(of, &flow(of, 100), Instant::ZERO, &mut Fixed(0.3), &mut log);
    }
    assert_eq!(cake.hits + cake.misses + cake.collisions, 800);
    let mut fell_on = [0u64; 1024 / WAYS];
    for of in 0..800 {
        let tag = cake.salt.mix(flow(of, 100).flow_hash, &mut Fixed(0.3));
        fell_on[scale(tag, 1024) / WAYS] += 1;
    }
    let over = |flows: u64| flows.saturating_sub(WAYS as u64);
    let beyond: u64 = fell_on.iter().copied().map(over).sum();
    assert!(beyond > 0 && beyond < 245, "{beyond}");
    assert_eq!(cake.collisions, beyond);
    // The same flows again find their own, but for those of sets that overflow, which take queues from each other.
    let (misses, collisions) = (cake.misses, cake.collisions);
    for of in 0..800 {
        cake.enqueue(800 + of, &flow(of, 100), Instant::ZERO, &mut Fixed(0.3), &mut log);
    }
    assert_eq!(cake.misses, misses);
    let rivals: u64 = fell_on.iter().filter(|&&flows| over(flows) > 0).sum();
    assert!(
        (beyond..=rivals).contains(&(cake.collisions - collisions)),
        "{} of {rivals}",
        cake.collisions - collisions
    );
}

/// Packets of each flow among the first `packets` sent: flows 1 and 2 of one source, 3 of
/// another; all to hosts of their own.
fn shares_of_two_sources(isolation: Isolation, packets: usize) -> [usize; 3] {
    let (mut cake, mut log) = cake(isolation, 10_000);
    for number in 0..300 {
        arrive(
            &mut cake,
            &mut log,
            &[
                (10 * number + 1, between(1, 1, 11)),
                (10 * number + 2, between(2, 1, 12)),
                (10 * number + 3, between(3, 2, 13)),
            ],
        );
    }
    let mut sent = [0; 3];
    for _ in 0..packets {
        sent[next(&mut cake, &mut log).unwrap() as usize % 10 - 1] += 1;
    }
    sent
}

#[test]
fn host_isolation_shares_by_hosts_first() {
    // By flow: a third each. By source: the flow that is alone at its host gets half.
    assert_eq!(shares_of_two_sources(Isolation::Flows, 300), [100, 100, 100]);
    let [a, b, alone] = shares_of_two_sources(Isolation::DualSource, 400);
    assert!(alone.abs_diff(200) <= 4 && a.abs_diff(100) <= 4 && b.abs_diff(100) <= 4, "{a} {b} {alone}");
    // Triple: the same, as the sources are the busier hosts.
    let [a, b, alone] = shares_of_two_sources(Isolation::Triple, 400);
    assert!(alone.abs_diff(200) <= 4 && a.abs_diff(100) <= 4 && b.abs_diff(100) <= 4, "{a} {b} {alone}");
    // By destination: each is alone at its own.
    assert_eq!(shares_of_two_sources(Isolation::DualDestination, 300), [100, 100, 100]);
    // Queues by host: two of them; the flows of one source share its queue.
    let [a, b, alone] = shares_of_two_sources(Isolation::SourceHost, 400);
    assert!(alone.abs_diff(200) <= 2 && a.abs_diff(100) <= 2 && b.abs_diff(100) <= 2, "{a} {b} {alone}");
    assert_eq!(shares_of_two_sources(Isolation::DestinationHost, 300), [100, 100, 100]);
    assert_eq!(shares_of_two_sources(Isolation::Hosts, 300), [100, 100, 100]);
    // One queue: as they came.
    assert_eq!(shares_of_two_sources(Isolation::FlowBlind, 300), [100, 100, 100]);
}

#[test]
fn a_host_is_left_when_its_bulk_flows_end() {
    let (mut cake, mut log) = cake(Isolation::DualSource, 100);
    for handle in 0..3 {
        arrive(&mut cake, &mut log, &[(10 + handle, between(1, 1, 1)), (20 + handle, between(2, 1, 2))]);
    }
    let bulk = |cake: &Cake| cake.tins[0].sources.bulk.iter().sum::<u32>();
    assert_eq!(bulk(&cake), 0);
    assert_eq!([next(&mut cake, &mut log), next(&mut cake, &mut log)], [Some(10), Some(20)]);
    next(&mut cake, &mut log);
    assert_eq!(bulk(&cake), 2);
    rest(&mut cake, &mut log);
    // The queues are empty, and the link is idle; seen when a packet comes.
    arrive(&mut cake, &mut log, &[(30, between(3, 3, 3)), (31, between(3, 3, 3)), (32, between(3, 3, 3))]);
    rest(&mut cake, &mut log);
    arrive(&mut cake, &mut log, &[(40, between(4, 4, 4)), (41, between(4, 4, 4)), (42, between(4, 4, 4))]);
    rest(&mut cake, &mut log);
    assert!(bulk(&cake) <= 2, "{}", bulk(&cake));
}

#[test]
fn passing_the_limit_costs_the_longest_queue_its_head_and_tells_blue() {
    let (mut cake, mut log) = cake(Isolation::Flows, 3);
    arrive(&mut cake, &mut log, &[10, 11, 12].map(|handle| (handle, flow(1, 1000))));
    cake.enqueue(20, &flow(2, 100), at_ms(10), &mut Fixed(0.5), &mut log);
    assert_eq!(log.dropped, [10]);
    let blue: Vec<f64> = cake.flows.iter().map(|flow| flow.aqm.blue().get()).filter(|p| *p > 0.0).collect();
    assert_eq!(blue, [1.0 / 256.0]);
}

#[test]
fn a_rate_that_changes_changes_what_follows_from_it() {
    let mut cake = Cake::new(CakeParams::default(), Rate::from_bps(20_000_000), Limit::packets(1000));
    let seen = |cake: &Cake| {
        let tin = &cake.tins[0];
        (tin.cobalt.target.as_nanos(), tin.cobalt.least.as_nanos(), tin.quantum)
    };
    assert_eq!(seen(&cake), (5_000_000, 2_422_400, 610));
    cake.on_rate(Rate::from_bps(2_000_000));
    assert_eq!(seen(&cake), (9_084_000, 24_224_000, 300));
    // A rate that was given stays.
    let given = CakeParams { rate: Some(Rate::from_bps(20_000_000)), ..CakeParams::default() };
    let mut cake = Cake::new(given, Rate::from_bps(1), Limit::packets(1000));
    cake.on_rate(Rate::from_bps(2_000_000));
    assert_eq!(seen(&cake), (5_000_000, 2_422_400, 610));
}

#[test]
fn at_a_low_rate_four_packets_time_are_let_be() {
    // 2 Mbit/s: target 9.084 ms, four packets 24.224 ms. A standing sojourn time of 20 ms is
    // signalled at 20 Mbit/s, and not here.
    let marks = |bps, wait: u64| {
        let params = CakeParams { isolation: Isolation::Flows, ..CakeParams::default() };
        let mut cake = Cake::new(params, Rate::from_bps(bps), Limit::packets(1000));
        let mut log = Log::default();
        for ms in 0..500 {
            cake.enqueue(ms, &flow(1, 1500), at_ms(ms.into()), &mut Fixed(0.5), &mut log);
            if u64::from(ms) >= wait {
                cake.dequeue(at_ms(ms.into()), &mut Fixed(0.5), &mut log);
            }
        }
        log.marked.len()
    };
    assert!(marks(20_000_000, 20) > 3);
    assert_eq!(marks(2_000_000, 24), 0);
    assert!(marks(2_000_000, 25) > 3);
}

#[test]
fn blue_is_not_told_of_a_long_sojourn_time() {
    let (mut cake, mut log) = cake(Isolation::Flows, 100);
    arrive(&mut cake, &mut log, &[10, 11, 12].map(|handle| (handle, flow(1, 1000))));
    cake.dequeue(at_ms(1000), &mut Fixed(0.5), &mut log);
    assert_eq!(cake.probability(), Probability::ZERO);
}

/// A packet of a flow in a class.
fn of_class(of: u32, class: u8) -> Packet {
    Packet { class, ..flow(of, 1000) }
}

#[test]
fn latency_sensitive_traffic_goes_first_up_to_its_share() {
    // 8 Mbit/s: 1000 B take 1 ms; EF may have a quarter: its packets of one flow go first each 4 ms.
    let sent = |tins| {
        let params = CakeParams { tins, quantum: Some(QUANTUM), ..CakeParams::default() };
        let mut cake = Cake::new(params, Rate::from_bps(8_000_000), Limit::packets(10_000));
        let mut log = Log::default();
        for number in 0..100 {
            arrive(&mut cake, &mut log, &[(10 * number, of_class(1, 0)), (10 * number + 1, of_class(2, 46))]);
        }
        let mut order = Vec::new();
        for ms in 0..40 {
            order.push(cake.dequeue(at_ms(ms), &mut Fixed(0.5), &mut log).unwrap() % 10);
        }
        order
    };
    assert_eq!(sent(Tins::Diffserv3)[..9], [1, 0, 0, 0, 1, 0, 0, 0, 1]);
    assert_eq!(sent(Tins::Diffserv3).iter().sum::<u32>(), 10);
    assert_eq!(sent(Tins::BestEffort).iter().sum::<u32>(), 20);
    // With nobody else it has all of the link.
    let mut cake = Cake::new(CakeParams::default(), Rate::from_bps(8_000_000), Limit::packets(100));
    let mut log = Log::default();
    arrive(&mut cake, &mut log, &[(0, of_class(1, 46)), (1, of_class(1, 46))]);
    assert_eq!(rest(&mut cake, &mut log), [0, 1]);
}

#[test]
fn superfluous_acknowledgements_are_dropped_where_the_filter_is_on() {
    let ack = |number| Packet {
        bytes: 40,
        ecn: Ecn::NotEct,
        ack: Some(crate::PureAck { number, ..Default::default() }),
        ..flow(1, 40)
    };
    for (ack_filter, left) in
        [(AckFilter::Off, &[0, 1, 2, 3][..]), (AckFilter::On, &[2, 3]), (AckFilter::Aggressive, &[3])]
    {
        let params = CakeParams { ack_filter, ..CakeParams::default() };
        let mut cake = Cake::new(params, Rate::from_bps(8_000_000), Limit::packets(100));
        let mut log = Log::default();
        arrive(&mut cake, &mut log, &[(0, ack(10)), (1, ack(20)), (2, ack(30)), (3, ack(40))]);
        assert_eq!(rest(&mut cake, &mut log), left, "{ack_filter:?}");
        assert_eq!(cake.totals().early_dropped, 4 - left.len() as u64);
    }
}

#[test]
fn behind_the_bottleneck_drops_are_charged_and_many_flows_wait_longer() {
    // BLUE is certain for flow 1, which has many packets: without ingress all of them but the last go in one turn;
    // with it each counts for the turn, and flow 2 is served in between.
    let first = |ingress| {
        let params = CakeParams { ingress, quantum: Some(QUANTUM), ..CakeParams::default() };
        let mut cake = Cake::new(params, Rate::from_bps(8_000_000), Limit::packets(100));
        let mut log = Log::default();
        for number in 0..5 {
            arrive(&mut cake, &mut log, &[(10 + number, flow(1, 1000)), (20 + number, flow(2, 1000))]);
        }
        let one = cake.tins[0].lists[SPARSE].first().unwrap();
        let certain = CobaltParams { increment: 1.0, ..CobaltParams::default() };
        cake.flows[one].aqm.on_overflow(&certain, at_ms(0));
        cake.dequeue(at_ms(0), &mut Fixed(0.5), &mut log).unwrap()
    };
    assert_ne!(first(false) / 10, first(true) / 10);
    // Two packets' time for each of twenty bulk flows at 8 Mbit/s are 40 * 1.514 = 60.6 ms.
    let mut cake = Cake::new(
        CakeParams { ingress: true, ..CakeParams::default() },
        Rate::from_bps(8_000_000),
        Limit::packets(10_000),
    );
    cake.tins[0].bulk = 20;
    let mut log = Log::default();
    for handle in 0..400 {
        cake.enqueue(handle, &flow(1, 10), at_ms(0), &mut Fixed(0.5), &mut log);
    }
    for ms in 0..200 {
        cake.dequeue(at_ms(ms.min(60)), &mut Fixed(0.5), &mut log);
    }
    assert!(log.marked.is_empty());
}

#[test]
fn the_room_follows_from_the_rate() {
    // 4 intervals of 100 ms at 100 Mbit/s: 5 000 000 B; at 20 Mbit/s 1 000 000 B, so 4 MiB; without a rate,
    // and at 1 Gbit/s, 10240 * 1514.
    let room = |bps| memory(&CakeParams::default(), Rate::from_bps(bps));
    assert_eq!([room(100_000_000), room(20_000_000)], [5_000_000, 4_194_304]);
    assert_eq!([room(0), room(1_000_000_000)], [15_503_360, 15_503_360]);
}

/// tc's `overhead 40 atm`, at 8 Mbit/s.
fn over_atm() -> Cake {
    let framing = Framing { overhead: 40, mpu: 0, cells: Cells::Atm };
    let params = CakeParams { framing, quantum: Some(1060), isolation: Isolation::Flows, ..CakeParams::default() };
    Cake::new(params, Rate::from_bps(8_000_000), Limit::packets(1000))
}

#[test]
fn turns_are_of_what_packets_count_on_the_line() {
    let (mut cake, mut log) = (over_atm(), Log::default());
    // 40 B count two cells, 106 B: ten are a turn of 1060, where by their own bytes it would be 27. 680 B count 15
    // cells, 795 B: after one 265 are left for another, and the next turn begins with that debt of 530.
    for number in 0..40 {
        arrive(&mut cake, &mut log, &[(100 + number, flow(1, 40)), (200 + number, flow(2, 680))]);
    }
    let turns: Vec<Handle> = (0..25).map_while(|_| next(&mut cake, &mut log)).map(|handle| handle / 100).collect();
    assert_eq!(turns, [&[1; 10][..], &[2; 2], &[1; 10], &[2], &[1; 2]].concat());
}

#[test]
fn tins_use_up_their_rates_by_what_packets_count_on_the_line() {
    let (mut cake, mut log) = (over_atm(), Log::default());
    for number in 0..10 {
        arrive(&mut cake, &mut log, &[(100 + number, flow(2, 920)), (200 + number, ef(920))]);
    }
    // 920 B count 20 cells, 1060 B: 4.24 ms of a quarter of the link, with 920 B it would be 3.68 ms.
    let sent: Vec<Handle> = [0, 1, 2, 3, 4, 5]
        .map(|ms| cake.dequeue(at_ms(ms), &mut Fixed(0.5), &mut log).unwrap() / 100)
        .into_iter()
        .collect();
    assert_eq!(sent, [2, 1, 1, 1, 1, 2]);
}
