//! Captures made byte by byte before a queue: outcomes worked out by hand, and what holds for all of them.

#[path = "../../../capture/tests/all/common/mod.rs"]
mod capture;

use aqumen_scenario::replay::Settings;
use aqumen_scenario::{AqmSpec, Written};
use aqumen_sim::replay::{Answer, Counts, Setup, replay_bytes};
use aqumen_units::Rate;
use capture::{Order, enhanced, interface, pcap, record, section};
use proptest::prelude::*;

const ORDER: Order = Order::Little;

/// A UDP packet from 10.0.0.`host` with ECN field `ecn`: 28 bytes of headers.
fn udp(host: u8, ecn: u8) -> Vec<u8> {
    let mut data = vec![0x45, ecn, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, host, 10, 0, 0, 99];
    data.extend([0x13, 0x89, 0x00, 0x35, 0, 8, 0, 0]);
    data
}

/// Packets of `bytes` at so many nanoseconds.
fn packets(all: &[(u64, u32, Vec<u8>)]) -> Vec<u8> {
    let blocks = all.iter().map(|(at, bytes, data)| enhanced(ORDER, 0, 1_700_000_000_000_000_000 + at, *bytes, data));
    let head = [section(ORDER), interface(ORDER, 101, &[(9, vec![9])])].concat();
    [head, blocks.collect::<Vec<_>>().concat()].concat()
}

/// A queue of `buffer` at `rate`; other settings as they are.
fn setup(rate: &str, buffer: &str) -> Setup {
    let given = [("rate", rate), ("buffer", buffer)].map(|(key, value)| (key.into(), Written::Text(value.into())));
    let settings = Settings::read_from(&given).unwrap();
    let rate = settings.rate.unwrap();
    Setup {
        rate,
        limit: settings.limit(),
        delay_ns: 0,
        network: settings.network(rate, 1000.0),
        overhead: 0,
        speedup: 1.0,
        interface: None,
        top: 5,
        seed: 1,
    }
}

fn run(capture: &[u8], setup: &Setup, aqm: &str) -> Answer {
    replay_bytes(capture, setup, &AqmSpec::builtin(aqm).unwrap()).unwrap_or_else(|error| panic!("{aqm}: {error}"))
}

#[test]
fn the_packets_of_a_burst_wait_for_those_ahead_of_them() {
    // 8 Mbit/s: 1000 bytes take 1 ms. Packets of a burst of four wait 0, 1, 2 and 3 ms; the fifth, at 10 ms, does not wait.
    let burst: Vec<_> = [0, 0, 0, 0, 10_000_000].iter().map(|at| (*at, 1000, udp(1, 0))).collect();
    let answer = run(&packets(&burst), &setup("8Mbit", "100pkt"), "droptail");
    assert_eq!((answer.total.counts.departures_pkts, answer.total.sojourn.mean_s), (5, Some(0.0012)));
    // 5 ms busy of 11; queue: 3, 2, 1 packets for 1 ms each.
    assert_eq!((answer.link.elapsed_s, answer.link.utilization), (0.011, Some(5.0 / 11.0)));
    assert_eq!((answer.link.queue_mean_pkts, answer.link.queue_max_pkts), (Some(6.0 / 11.0), 3));
    let std = (14.0 / 11.0 - 36.0 / 121.0f64).sqrt();
    assert!((answer.link.queue_std_pkts.unwrap() - std).abs() < 1e-12);
    assert_eq!((answer.capture.packets, answer.capture.bytes, answer.capture.duration_s), (5, 5000, 0.01));
    assert_eq!(answer.services[0].name, "udp/53");
    assert_eq!(answer.flows[0].flow, "udp 10.0.0.1:5001 > 10.0.0.99:53");
    assert_eq!((answer.flows[0].sojourn_max_s, answer.flows.len()), (Some(0.003), 1));
    assert_eq!(answer.traffic_classes[0].name, "CS0 Not-ECT");
}

#[test]
fn a_full_buffer_overflows_and_an_end_of_transmission_makes_room_first() {
    // One in transmission and two waiting; at 0 the fourth and fifth find no room. At 1 ms the transmission ends, one of those
    // waiting goes on the link, and the packet of that moment finds room.
    let at = [0, 0, 0, 0, 0, 1_000_000];
    let offered: Vec<_> = at.iter().zip(1..).map(|(at, host)| (*at, 1000, udp(host, 0))).collect();
    let answer = run(&packets(&offered), &setup("8Mbit", "2pkt"), "droptail");
    let Counts { arrivals_pkts, departures_pkts, overflow_dropped_pkts, early_dropped_pkts, .. } = answer.total.counts;
    assert_eq!((arrivals_pkts, departures_pkts, overflow_dropped_pkts, early_dropped_pkts), (6, 4, 2, 0));
    // Flows of equal size stand in order of appearance: which one lost its packet.
    let lost: Vec<u64> = answer.flows.iter().map(|flow| flow.counts.overflow_dropped_pkts).collect();
    assert_eq!((lost, answer.other_flows.departures_pkts), (vec![0, 0, 0, 1, 1], 1));
    assert_eq!(answer.total.sojourn.mean_s, Some(0.00125));
}

#[test]
fn sizes_are_those_on_the_wire_with_the_overhead() {
    // 976 + 24 bytes take 1 ms, whatever was captured of them.
    let two = packets(&[(0, 976, udp(1, 0)), (0, 976, vec![0x45])]);
    let answer = run(&two, &Setup { overhead: 24, ..setup("8Mbit", "9pkt") }, "droptail");
    assert_eq!((answer.link.elapsed_s, answer.total.counts.departed_bytes), (0.002, 2000));
    // Of the second nothing is known: its header is not there.
    assert_eq!((answer.capture.not_ip_pkts, answer.traffic_classes.len()), (1, 2));
    assert_eq!(answer.services.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["udp/53", "unknown"]);
}

#[test]
fn a_speedup_offers_the_packets_faster() {
    let two = packets(&[(0, 1000, udp(1, 0)), (4_000_000, 1000, udp(1, 0))]);
    let answer = run(&two, &Setup { speedup: 8.0, ..setup("8Mbit", "9pkt") }, "droptail");
    // Offered at 0 and 0.5 ms: the second waits 0.5 ms.
    assert_eq!((answer.capture.duration_s, answer.total.sojourn.mean_s), (0.0005, Some(0.00025)));
}

#[test]
fn packets_can_be_marked_where_they_are_ect_and_are_dropped_elsewhere() {
    // CoDel over a queue that stands far above its target; flows 1 to 4 with each ECN field, in turn.
    let offered: Vec<_> = (0..8000u64).map(|i| (i * 900_000, 1000, udp(1 + (i % 4) as u8, (i % 4) as u8))).collect();
    let answer = run(&packets(&offered), &setup("8Mbit", "5000pkt"), "codel:ecn=true");
    let class = |name: &str| answer.traffic_classes.iter().find(|class| class.name == name).unwrap().counts;
    let not_ect = class("CS0 Not-ECT");
    assert!(not_ect.early_dropped_pkts > 0 && not_ect.marked_pkts == 0, "{not_ect:?}");
    for name in ["CS0 ECT(0)", "CS0 ECT(1)", "CS0 CE"] {
        assert!(class(name).marked_pkts > 0 && class(name).early_dropped_pkts == 0, "{name}: {:?}", class(name));
    }
}

#[test]
fn only_the_interface_asked_for_counts_and_clocks_that_go_back_are_counted() {
    let head = [section(ORDER), interface(ORDER, 101, &[]), interface(ORDER, 101, &[])].concat();
    let blocks = [(0, 5), (1, 9), (0, 3), (0, 7)].map(|(of, at)| enhanced(ORDER, of, at, 100, &udp(1, 0)));
    let capture = [head, blocks.concat()].concat();
    let answer = run(&capture, &Setup { interface: Some(0), ..setup("8Mbit", "9pkt") }, "droptail");
    assert_eq!((answer.capture.packets, answer.capture.reordered_pkts, answer.capture.duration_s), (3, 1, 2e-6));
}

#[test]
fn flows_do_not_hinder_one_another_in_queues_of_their_own() {
    // Host 1 offers twice the link's rate, host 2 one packet each 20 ms: in queues of its own it waits for one packet of the
    // other's quantum at most (1514 bytes: two packets of 1000, less what it has begun).
    let mut offered: Vec<_> = (0..4000u64).map(|i| (i * 500_000, 1000, udp(1, 0))).collect();
    offered.extend((0..100u64).map(|i| (i * 20_000_000 + 250_000, 1000, udp(2, 0))));
    offered.sort_by_key(|(at, ..)| *at);
    let answer = run(&packets(&offered), &setup("8Mbit", "200pkt"), "fq-codel");
    let [bulk, sparse] = &answer.flows[..] else { panic!("two flows") };
    assert_eq!((sparse.counts.departures_pkts, sparse.counts.arrivals_pkts), (100, 100));
    assert!(sparse.sojourn_max_s.unwrap() <= 0.003, "{:?}", sparse.sojourn_max_s);
    assert!(bulk.counts.early_dropped_pkts + bulk.counts.overflow_dropped_pkts > 1000);
    let fifo = run(&packets(&offered), &setup("8Mbit", "200pkt"), "droptail");
    assert!(fifo.flows[1].sojourn_mean_s.unwrap() > 0.1 || fifo.flows[1].counts.overflow_dropped_pkts > 0);
}

fn adds_up(counts: &Counts, left: u64) -> bool {
    counts.arrivals_pkts == counts.departures_pkts + counts.early_dropped_pkts + counts.overflow_dropped_pkts + left
}

fn check_sums(answer: &Answer) {
    let sum = |rows: &mut dyn Iterator<Item = Counts>| {
        let all: Vec<Counts> = rows.collect();
        (
            all.iter().map(|counts| counts.arrivals_pkts).sum::<u64>(),
            all.iter().map(|counts| counts.departed_bytes).sum::<u64>(),
            all.iter().map(|counts| counts.marked_pkts + counts.early_dropped_pkts).sum::<u64>(),
        )
    };
    let total = answer.total.counts;
    assert!(adds_up(&total, answer.link.left_pkts.into()) && answer.link.left_pkts == 0, "{answer:?}");
    let whole = sum(&mut [total].into_iter());
    assert_eq!(sum(&mut answer.services.iter().map(|row| row.counts)), whole);
    assert_eq!(sum(&mut answer.traffic_classes.iter().map(|row| row.counts)), whole);
    assert_eq!(sum(&mut answer.flows.iter().map(|row| row.counts).chain([answer.other_flows])), whole);
    assert!(answer.services.iter().all(|row| adds_up(&row.counts, 0)));
    assert!(answer.link.utilization.is_none_or(|share| (0.0..=1.0).contains(&share)));
}

proptest! {
    #[test]
    fn what_arrives_leaves_or_is_dropped_under_every_aqm(
        gaps in prop::collection::vec((0u64..3_000_000, 40u32..1500, 0u8..20, 0u8..4), 1..300),
        buffer in 1u32..60,
    ) {
        let mut at = 0;
        let offered: Vec<_> = gaps.iter().map(|(gap, bytes, host, ecn)| {
            at += gap;
            (at, *bytes, udp(*host, *ecn))
        }).collect();
        let (capture, setup) = (packets(&offered), setup("4Mbit", &format!("{buffer}pkt")));
        for algorithm in aqumen_aqm::registry::algorithms() {
            check_sums(&run(&capture, &setup, algorithm.name));
        }
    }

    #[test]
    fn captures_with_bytes_changed_are_replayed_or_refused_in_one_line(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        classic in any::<bool>(),
    ) {
        let mut capture = if classic {
            let records = (0..20).map(|i| record(ORDER, (5, i * 200), 900, &udp(i as u8 % 3, 2)));
            [pcap(ORDER, 0xa1b2_c3d4, 101), records.collect::<Vec<_>>().concat()].concat()
        } else {
            packets(&(0..20).map(|i| (i * 200_000, 900, udp(i as u8 % 3, 2))).collect::<Vec<_>>())
        };
        for (at, value) in changes {
            let at = at.index(capture.len());
            capture[at] = value;
        }
        // An AQM with a slow timer: pauses of an hour are worked through.
        match replay_bytes(&capture, &setup("10Mbit", "10pkt"), &AqmSpec::builtin("codel").unwrap()) {
            Ok(answer) => check_sums(&answer),
            Err(error) => prop_assert_eq!(error.to_string().lines().count(), 1),
        }
    }
}

#[test]
fn a_link_that_takes_centuries_is_refused() {
    let capture = packets(&(0..2000).map(|i| (i, 16 << 20, udp(1, 0))).collect::<Vec<_>>());
    let slow = Setup { rate: Rate::from_bps(1), ..setup("1Mbit", "2000pkt") };
    let error = replay_bytes(&capture, &slow, &AqmSpec::builtin("droptail").unwrap()).unwrap_err();
    assert!(error.to_string().contains("give a higher --rate"), "{error}");
}
