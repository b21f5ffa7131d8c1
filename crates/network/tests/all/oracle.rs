//! An independent model of a first-in first-out link without an AQM: packet by packet from the rules of
//! docs/links.md, with neither look-ahead nor events. Every kind of port must give these fates, metrics and samples.

use aqumen_aqm::DropReason;
use aqumen_network::measurement::{LinkMeasurement, edges, groups_at, pieces_in};
use aqumen_network::port::{Arrival, Port, Style};
use aqumen_network::{Fate, Identity, Link};
use aqumen_result::Histogram;
use aqumen_scenario::{Plan, Scenario, Window};
use aqumen_units::Ecn;
use proptest::prelude::*;

use crate::driver::{MS, PacketArrival, Pkt, bottleneck, by_port};

/// Rates, delays and outages of a link over time, in nanoseconds.
#[derive(Clone, Debug, Default)]
struct Line {
    rates: Vec<(u64, u64)>,
    delays: Vec<(u64, u64)>,
    outages: Vec<(u64, u64)>,
    limit: usize,
}

/// Fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Way {
    start: u64,
    end: u64,
    reach: u64,
}

fn packet(number: u32, bytes: u32) -> Pkt {
    Pkt { number, bytes, ecn: Ecn::NotEct }
}

/// Returns the value in force at `at`.
fn in_force(values: &[(u64, u64)], at: u64) -> u64 {
    values.iter().rev().find(|(from, _)| *from <= at).expect("there is one from the start").1
}

impl Line {
    /// Times of each packet; `None`: it was dropped.
    fn ways(&self, arrivals: &[PacketArrival]) -> Vec<Option<Way>> {
        let mut ways: Vec<Option<Way>> = Vec::new();
        for &(now, Pkt { bytes, .. }, _) in arrivals {
            let accepted = || ways.iter().flatten();
            // At one moment a transmission starts before a packet arrives.
            if accepted().filter(|way| way.start > now).count() >= self.limit {
                ways.push(None);
                continue;
            }
            let mut start = accepted().map(|way| way.end).max().unwrap_or(0).max(now);
            for &(down, up) in &self.outages {
                start = if (down..up).contains(&start) { up } else { start };
            }
            let end = start + 8_000_000_000 * u64::from(bytes) / in_force(&self.rates, start);
            let before = accepted().map(|way| way.reach + 1).max().unwrap_or(0);
            ways.push(Some(Way { start, end, reach: (end + in_force(&self.delays, end)).max(before) }));
        }
        ways
    }

    /// Bits that could be sent from `from` until `until`.
    fn capacity(&self, from: u64, until: u64) -> f64 {
        let up = |at: u64| !self.outages.iter().any(|(down, up)| (*down..*up).contains(&at));
        // All that changes does so at whole milliseconds.
        let each = (from / MS..until / MS).map(|ms| ms * MS).filter(|at| up(*at));
        each.map(|at| in_force(&self.rates, at) as f64 * 1e-3).sum()
    }
}

/// Computes the metrics of a link in a window from the times of its packets.
fn check_figures(
    seen: &LinkMeasurement,
    window: &Window,
    line: &Line,
    arrivals: &[PacketArrival],
    ways: &[Option<Way>],
    target: f64,
) {
    let (from, until) = (window.start.as_nanos(), window.end.as_nanos());
    let inside = |at: u64| (from..until).contains(&at);
    let part = |a: u64, b: u64| b.min(until).saturating_sub(a.max(from));
    let of = &seen.metrics;
    let sent = || arrivals.iter().zip(ways).filter_map(|(came, way)| Some((came, (*way)?)));
    assert_eq!(of.arrivals_pkts as usize, arrivals.iter().filter(|came| inside(came.0)).count());
    assert_eq!(of.departures_pkts as usize, sent().filter(|(_, way)| inside(way.end)).count());
    let lost: Vec<&PacketArrival> =
        arrivals.iter().zip(ways).filter(|(_, way)| way.is_none()).map(|(came, _)| came).collect();
    assert_eq!(of.overflow_dropped_pkts as usize, lost.iter().filter(|came| inside(came.0)).count());
    assert_eq!((of.marked_pkts, of.early_dropped_pkts, of.wire_lost_pkts), (0, 0, Some(0)));
    let bits: f64 = sent()
        .map(|(came, way)| {
            8.0 * f64::from(came.1.bytes) * part(way.start, way.end) as f64 / (way.end - way.start) as f64
        })
        .sum();
    let capacity = line.capacity(from, until);
    // What is sent as an outage begins, or the rate falls, may be more than the window allows.
    let share = (capacity > 0.0 || bits > 0.0).then(|| bits / capacity.max(bits));
    match (of.utilization, share) {
        (Some(told), Some(expected)) => assert!((told - expected).abs() < 1e-9, "{told}, not {expected}"),
        (told, expected) => assert!(told.is_none() && (expected.is_none() || capacity == 0.0), "{told:?} {expected:?}"),
    }
    // The queue between each two moments at which it may change.
    let mut moments: Vec<u64> = sent().flat_map(|(came, way)| [came.0, way.start]).filter(|at| inside(*at)).collect();
    moments.extend([from, until]);
    moments.sort_unstable();
    let (mut queue, mut area, mut distance) = (Histogram::default(), 0.0, 0.0);
    for pair in moments.windows(2).filter(|pair| pair[0] < pair[1]) {
        let length = sent().filter(|(came, way)| came.0 <= pair[0] && way.start > pair[0]).count() as u64;
        queue.record_many(length, pair[1] - pair[0]);
        area += (length * (pair[1] - pair[0])) as f64;
        distance += (length as f64 - target).abs() * (pair[1] - pair[0]) as f64;
    }
    assert_eq!(seen.queue, queue);
    assert!((of.queue_mean_pkts - area / (until - from) as f64).abs() < 1e-9 * (1.0 + of.queue_mean_pkts));
    assert!((of.queue_iae_pkts_s.unwrap() - distance * 1e-9).abs() < 1e-9 * (1.0 + distance * 1e-9));
    let (mut sojourn, mut groups) = (Histogram::default(), [Histogram::default(), Histogram::default()]);
    for (came, way) in sent().filter(|(_, way)| inside(way.start)) {
        sojourn.record(way.start - came.0);
        groups[usize::from(came.2 >= 3)].record(way.start - came.0);
    }
    assert_eq!((&seen.sojourn, &seen.sojourn_of_group[..]), (&sojourn, &groups[..]));
    // Packets lost one directly after the other, and how far apart the losses of the window are.
    let of_window: Vec<u64> = lost.iter().map(|came| came.0).filter(|at| inside(*at)).collect();
    assert_eq!(of.loss_run_mean_pkts.is_some(), !of_window.is_empty());
}

/// A plan whose link 0 is that line; its flows are two groups of three.
fn plan(line: &Line) -> Plan {
    let mut events = String::new();
    let event = |at: u64, what: String| format!("[[events]]\nat = \"{}ms\"\n{what}\n", at / MS);
    for &(at, rate) in &line.rates[1..] {
        events += &event(at, format!("capacity = \"{rate}bit/s\""));
    }
    for &(at, delay) in &line.delays[1..] {
        events += &event(at, format!("delay = \"{delay}ns\""));
    }
    for &(down, up) in &line.outages {
        events += &event(down, "state = \"down\"".into());
        if up != u64::MAX {
            events += &event(up, "state = \"up\"".into());
        }
    }
    let (rate, delay, limit) = (line.rates[0].1, line.delays[0].1, line.limit);
    let text = format!(
        r#"
        name = "link"
        duration = "200ms"
        record = {{ interval = "10ms" }}
        aqm = "droptail"
        [topology]
        preset = "dumbbell"
        bottleneck = {{ rate = "{rate}bit/s", delay = "{delay}ns", buffer = "{limit}pkt" }}
        access = {{ rate = "1Gbit", delay = "1ms" }}
        [nominal]
        target = "7pkt"
        [windows]
        early = ["0s", "50ms"]
        middle = ["30ms", "150ms"]
        [[flows]]
        name = "first"
        count = 3
        [[flows]]
        name = "second"
        count = 3
        {events}
        "#
    );
    let plan = Scenario::parse(&text, "a line").unwrap_or_else(|error| panic!("{error}")).plan(1, None);
    plan.unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a link that takes each packet from its queue.
fn by_link(plan: &Plan, number: u32, arrivals: &[PacketArrival]) -> (Vec<Option<Way>>, Vec<LinkMeasurement>, Vec<u32>) {
    let mut link = Link::new(plan, number).unwrap();
    let mut ways = vec![None; arrivals.len()];
    let mut tell = |at, packet: Pkt, fate| match fate {
        Fate::Delivered { start, end } => ways[packet.number as usize] = Some(Way { start, end, reach: at }),
        fate => assert_eq!((fate, at), (Fate::Dropped(DropReason::Overflow), arrivals[packet.number as usize].0)),
    };
    for &(at, packet, flow) in arrivals {
        link.arrive(at, packet, &Identity { flow_hash: flow, ..Identity::default() }, &mut tell);
    }
    link.advance(u64::MAX - 1, &mut tell);
    let queues = link.series().queue_pkts.iter().map(|queue| *queue as u32).collect();
    (ways, link.measurements(&plan.windows), queues)
}

fn check(line: &Line, arrivals: &[PacketArrival]) {
    let plan = plan(line);
    let number = bottleneck(&plan);
    let (ways, target) = (line.ways(arrivals), plan.links[number as usize].target_pkts.expect("it has one"));
    let queue_at = |at: u64| {
        let waits =
            |(came, way): &(&PacketArrival, &Option<Way>)| came.0 < at && way.is_some_and(|way| way.start >= at);
        arrivals.iter().zip(&ways).filter(waits).count() as u32
    };
    let queues: Vec<u32> = (1..20).map(|k| queue_at(k * 10 * MS)).collect();
    let (by_link, seen, of_link) = by_link(&plan, number, arrivals);
    assert_eq!(by_link, ways);
    assert_eq!(of_link, queues);
    let check_all = |seen: &[LinkMeasurement]| {
        assert_eq!(seen.len(), plan.windows.len());
        seen.iter().zip(&plan.windows).for_each(|(seen, at)| check_figures(seen, at, line, arrivals, &ways, target));
    };
    check_all(&seen);
    for served in [false, true] {
        let at_port = by_port(&plan, number, arrivals, served);
        for ((_, told), way) in at_port.fates.iter().zip(&ways) {
            let expected = |way: &Way| Arrival::Leaves { start: way.start, reach: way.reach };
            assert_eq!(*told, way.as_ref().map_or(Arrival::Dropped, expected));
        }
        assert_eq!(at_port.series.queue_pkts, queues.iter().map(|queue| f64::from(*queue)).collect::<Vec<_>>());
        assert_eq!(at_port.totals.arrivals, arrivals.len() as u64);
        check_all(&at_port.seen);
        // The two agree in every figure, those that are not worked out here too.
        for (one, other) in seen.iter().zip(&at_port.seen) {
            assert_eq!(one.metrics, other.metrics);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn fates_figures_and_samples_are_those_of_the_rules(
        changes in prop::collection::vec((1u64..19, 0usize..3, 0u64..1000), 0..4),
        limit in 1usize..40,
        // Some arrive as others leave, at edges and at samples.
        gaps in prop::collection::vec((prop_oneof![0u64..3 * MS, (0u64..3).prop_map(|ms| ms * MS), Just(0)],
                                       prop_oneof![Just(1000u32), Just(500), 1u32..1500], 0u32..6), 1..250),
    ) {
        let (mut rates, mut delays, mut outages) = (vec![(0, 8_000_000)], vec![(0, 10 * MS)], Vec::new());
        let mut changes = changes;
        changes.sort_unstable();
        changes.dedup_by_key(|(at, ..)| *at);
        for (at, what, value) in changes {
            let at = at * 10 * MS;
            match what {
                0 => rates.push((at, [4_000_000, 2_000_000, 80_000_000][value as usize % 3])),
                1 => delays.push((at, [0, MS, 20 * MS][value as usize % 3])),
                _ => outages.push((at, at + (1 + value % 8) * MS)),
            }
        }
        let mut now = 0;
        let arrivals: Vec<PacketArrival> = gaps.into_iter().zip(0..).map(|((gap, bytes, flow), number)| {
            now += gap;
            (now, packet(number, bytes), flow)
        }).filter(|came| came.0 < 200 * MS).collect();
        check(&Line { rates, delays, outages, limit }, &arrivals);
    }
}

#[test]
fn packets_wait_for_ever_for_a_link_that_is_down_for_good() {
    let line =
        Line { rates: vec![(0, 8_000_000)], delays: vec![(0, 10 * MS)], outages: vec![(20 * MS, u64::MAX)], limit: 3 };
    let plan = plan(&line);
    let number = bottleneck(&plan);
    let (edges, style) = (edges(&plan), Style { collapse: true, served: false });
    let mut port: Port<Pkt> = Port::new(&plan.links[number as usize], 1, number, style, &edges, false).unwrap();
    let Port::Fifo(fifo) = &mut port else { panic!("another kind of port") };
    let mut arrive = |ms: u64| fifo.arrive(ms * MS, &mut packet(0, 1000), 0);
    assert_eq!(arrive(19), Arrival::Leaves { start: 19 * MS, reach: 30 * MS });
    assert_eq!([30, 30, 31].map(&mut arrive), [Arrival::Waits { busy_until: None }; 3]);
    assert_eq!([32, 190].map(&mut arrive), [Arrival::Dropped; 2]);
    assert_eq!(port.sample(199 * MS), Some((3, 0.0)));
    let (mut link, mut told) = (Link::new(&plan, number).unwrap(), Vec::new());
    let mut tell = |at: u64, packet: Pkt, fate: Fate| told.push((at / MS, packet.number, fate));
    for (number, ms) in (0..).zip([19, 30, 30, 31, 32, 190]) {
        link.arrive(ms * MS, packet(number, 1000), &Identity::default(), &mut tell);
    }
    link.advance(u64::MAX - 1, &mut tell);
    assert_eq!((link.next(), link.backlog().packets), (u64::MAX, 3));
    let lost = Fate::Dropped(DropReason::Overflow);
    assert_eq!(told, [(30, 0, Fate::Delivered { start: 19 * MS, end: 20 * MS }), (32, 4, lost), (190, 5, lost)]);
    assert_eq!((link.totals().arrivals, link.totals().overflow_dropped, link.probability()), (6, 2, 0.0));
    // 19 to 20 ms of the 20 ms that there were.
    let all = plan.windows.iter().position(|window| window.name == "all").unwrap();
    assert_eq!(link.measurements(&plan.windows)[all].metrics.utilization, Some(0.05));
}

#[test]
fn windows_are_made_of_the_pieces_between_edges() {
    let line = Line { rates: vec![(0, 8_000_000)], delays: vec![(0, 0)], outages: vec![], limit: 3 };
    let plan = plan(&line);
    let edges = edges(&plan);
    // The run begins to be steady after a tenth.
    assert_eq!(edges, [20, 30, 50, 150, 200].map(|ms| ms * MS));
    let of = |name: &str| {
        let window = plan.windows.iter().find(|window| window.name == name).unwrap();
        pieces_in(&edges, window).collect::<Vec<_>>()
    };
    assert_eq!((of("early"), of("middle"), of("all")), (vec![0, 1, 2], vec![2, 3], vec![0, 1, 2, 3, 4]));
    // Data go one way; on the way back there are only acknowledgements.
    let (forth, back) = (&plan.flows[0].path, &plan.flows[0].return_path);
    let number = bottleneck(&plan);
    assert_eq!(groups_at(&plan, number), [(0, forth.contains(&number)), (3, forth.contains(&number))]);
    assert!(forth.contains(&number));
    let other = *back.iter().find(|link| !forth.contains(link)).unwrap();
    assert_eq!(groups_at(&plan, other), [(0, false), (3, false)]);
}
