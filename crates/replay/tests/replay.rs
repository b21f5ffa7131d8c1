//! Captures made byte by byte before a queue: outcomes worked out by hand, and what holds for all of them.

#[path = "../../capture/tests/all/common/mod.rs"]
mod capture;

use std::io::Write;

use aqumen_replay::{Answer, Counts, Error, Setup, check_aqm, check_cost, length, replay, replay_bytes, survey};
use aqumen_scenario::replay::Settings;
use aqumen_scenario::{AqmSpec, RawValue};
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
    let given = [("rate", rate), ("buffer", buffer)].map(|(key, value)| (key.into(), RawValue::Text(value.into())));
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
    // 8 Mbit/s: 1000 bytes take 1 ms. Packets of a burst of four wait 0, 1, 2 and 3 ms; the
    // fifth, at 10 ms, does not wait.
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
    assert_eq!(answer.flows[0].sojourn_mean_s, Some(0.0012));
    assert_eq!(answer.traffic_classes[0].name, "CS0 Not-ECT");
}

#[test]
fn a_full_buffer_overflows_and_an_end_of_transmission_makes_room_first() {
    // One in transmission and two waiting; at 0 the fourth and fifth find no room. At 1 ms the transmission ends, one
    // of those waiting goes on the link, and the packet of that moment finds room.
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
    // Host 1 offers twice the link's rate, host 2 one packet each 20 ms: in queues of its own it waits for one packet
    // of the other's quantum at most (1514 bytes: two packets of 1000, less what it has begun).
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

// Captures in files: what is settled before the replay, and the packets that leave.

/// A file of its own for a test, gone with it.
struct InFile(std::path::PathBuf);

impl InFile {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("aqumen-replay-{name}-{}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        InFile(path)
    }

    fn survey(&self, given: &[(&str, &str)]) -> Result<Setup, String> {
        let given: Vec<(String, RawValue)> = given
            .iter()
            .map(|(key, value)| {
                let value = value.parse().map_or_else(|_| RawValue::Text((*value).into()), RawValue::Number);
                ((*key).into(), value)
            })
            .collect();
        let settings = Settings::read_from(&given).map_err(|error| error.to_string())?;
        survey(&self.0, &settings, &mut |_: f64| true).map_err(|error| error.to_string())
    }
}

impl Drop for InFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Packets of so many bytes, 1 ms from one to the next.
fn each_millisecond(sizes: impl IntoIterator<Item = u32>) -> Vec<u8> {
    let offered: Vec<_> = sizes.into_iter().zip(0..).map(|(bytes, i)| (i * 1_000_000, bytes, udp(1, 0))).collect();
    packets(&offered)
}

#[test]
fn a_rate_follows_from_the_load_and_the_network_from_the_first_packets() {
    // 11 packets of 500 bytes in 10 ms: 44000 bits are 4.4 Mbit/s; as 80 % of the rate, 5.5 Mbit/s.
    let file = InFile::new("load", &each_millisecond([500; 11]));
    let setup = file.survey(&[("load", "0.8"), ("delay", "3ms"), ("seed", "7"), ("top", "4")]).unwrap();
    assert_eq!(setup.rate.as_bps(), 5_500_000);
    assert_eq!((setup.network.packet_bytes, setup.delay_ns, setup.seed, setup.top), (500.0, 3_000_000, 7, 4));
    assert_eq!((setup.overhead, setup.speedup, setup.interface), (0, 1.0, None));
    // Twice as fast, twice the rate; 50 bytes more a packet, a tenth more.
    assert_eq!(file.survey(&[("load", "0.8"), ("speedup", "2")]).unwrap().rate.as_bps(), 11_000_000);
    let framed = file.survey(&[("load", "0.8"), ("overhead", "50")]).unwrap();
    assert_eq!((framed.rate.as_bps(), framed.network.packet_bytes, framed.overhead), (6_050_000, 550.0, 50));
    // A packet has one byte at least.
    let bare = file.survey(&[("load", "1"), ("overhead", "-256")]).unwrap();
    assert_eq!(bare.network.packet_bytes, 244.0);
    let report = setup.report();
    assert_eq!((report.rate_bps, report.buffer_pkts, report.buffer_bytes), (5_500_000, 1000, None));
    assert_eq!((report.delay_s, report.overhead_bytes, report.speedup, report.seed), (0.003, 0, 1.0, 7));
    assert_eq!((report.nominal_packet_bytes, report.nominal_flows, report.nominal_rtt_s), (500.0, 50.0, 0.1));
    let bytes = file.survey(&[("rate", "1Mbit"), ("buffer", "90kB")]).unwrap().report();
    assert_eq!((bytes.rate_bps, bytes.buffer_bytes), (1_000_000, Some(90_000)));
}

#[test]
fn only_the_first_ten_thousand_packets_are_looked_at_where_the_rate_is_given() {
    // They have 200 bytes in the mean; then come larger ones.
    let sizes = (0..12_000).map(|i| if i < 10_000 { 100 + 200 * (i % 2) } else { 1400 });
    let file = InFile::new("pilot", &each_millisecond(sizes));
    let given = file.survey(&[("rate", "10Mbit")]).unwrap();
    assert_eq!((given.rate.as_bps(), given.network.packet_bytes), (10_000_000, 200.0));
    let whole = file.survey(&[("load", "1")]).unwrap();
    assert_eq!(whole.network.packet_bytes, 400.0);
    assert_eq!(whole.rate.as_bps(), (12_000.0 * 400.0 * 8.0 / 11.999f64 + 0.5) as u64);
    // All of it counts for the length.
    assert_eq!(length(&file.0, &given, &mut |_: f64| true).unwrap(), (11.999, 12_000));
    let faster = Setup { speedup: 4.0, ..given };
    assert_eq!(length(&file.0, &faster, &mut |_: f64| true).unwrap(), (2.99975, 12_000));
    // Progress rises to the end, and stops each of them.
    let seen = std::cell::RefCell::new(Vec::new());
    let mut hears = |share: f64| {
        seen.borrow_mut().push(share);
        true
    };
    length(&file.0, &given, &mut hears).unwrap();
    let shares = seen.take();
    assert_eq!(shares.len(), 2);
    assert!((shares[0] - 4096.0 / 12_000.0).abs() < 0.01 && (shares[1] - 8192.0 / 12_000.0).abs() < 0.01, "{shares:?}");
    let droptail = AqmSpec::builtin("droptail").unwrap();
    let settings = Settings::read_from(&[("load".into(), RawValue::Number(1.0))]).unwrap();
    assert!(matches!(length(&file.0, &given, &mut |_: f64| false), Err(Error::Cancelled)));
    assert!(matches!(survey(&file.0, &settings, &mut |_: f64| false), Err(Error::Cancelled)));
    assert!(matches!(replay(&file.0, &given, &droptail, None, &mut |_: f64| false), Err(Error::Cancelled)));
    // The same from a file as from memory.
    let (from_file, from_memory) = (
        replay(&file.0, &given, &droptail, None, &mut |_: f64| true).unwrap(),
        replay_bytes(&std::fs::read(&file.0).unwrap(), &given, &droptail).unwrap(),
    );
    assert_eq!((from_file.total, from_file.link), (from_memory.total, from_memory.link));
}

#[test]
fn an_interface_that_is_asked_for_is_the_only_one_that_is_looked_at() {
    let head = [section(ORDER), interface(ORDER, 101, &[]), interface(ORDER, 101, &[])].concat();
    // Microseconds: interface 0 at 0 and 2000 with 300 bytes, interface 1 at 1000 and 9000 with 900.
    let blocks = [(0, 0, 300), (1, 1000, 900), (0, 2000, 300), (1, 9000, 900)];
    let blocks = blocks.map(|(of, at, bytes)| enhanced(ORDER, of, at, bytes, &udp(1, 0)));
    let file = InFile::new("interface", &[head, blocks.concat()].concat());
    let setup = |interface| file.survey(&[("load", "1"), ("interface", interface)]).unwrap();
    // 600 bytes in 2 ms, 1800 in 8 ms.
    assert_eq!((setup("0").rate.as_bps(), setup("0").network.packet_bytes), (2_400_000, 300.0));
    assert_eq!((setup("1").rate.as_bps(), setup("1").network.packet_bytes), (1_800_000, 900.0));
    assert_eq!(length(&file.0, &setup("0"), &mut |_: f64| true).unwrap(), (0.002, 2));
    assert_eq!(length(&file.0, &setup("1"), &mut |_: f64| true).unwrap(), (0.008, 2));
    let all = file.survey(&[("load", "1")]).unwrap();
    assert_eq!((all.rate.as_bps(), all.network.packet_bytes), (2_133_333, 600.0));
    let none = file.survey(&[("rate", "1Mbit"), ("interface", "2")]).unwrap_err();
    assert!(none.ends_with("no packets of interface 2 to replay"), "{none}");
}

#[test]
fn what_cannot_be_surveyed_is_told_in_one_line() {
    let at_once = InFile::new("once", &packets(&[(0, 500, udp(1, 0)), (0, 500, udp(1, 0))]));
    let told = at_once.survey(&[("load", "1")]).unwrap_err();
    assert!(told.contains("all packets have one time, so no load can be told; give --rate"), "{told}");
    assert_eq!(at_once.survey(&[("rate", "1Mbit")]).unwrap().network.packet_bytes, 500.0);
    let empty = InFile::new("empty", &packets(&[]));
    assert!(empty.survey(&[("rate", "1Mbit")]).unwrap_err().ends_with("no packets to replay"));
    let slow = InFile::new("slow", &packets(&[(0, 40, udp(1, 0)), (3_600_000_000_000, 40, udp(1, 0))]));
    // 640 bits in an hour: 0.178 bit/s, and with a load of 0.3 0.593, which is 1.
    let told = slow.survey(&[("load", "1")]).unwrap_err();
    assert!(told.contains("--load 1 is a rate of 1.778e-1 bit/s; 1 to 1e"), "{told}");
    assert_eq!(slow.survey(&[("load", "0.3")]).unwrap().rate.as_bps(), 1);
    let gone = survey(&std::env::temp_dir().join("aqumen-no-such"), &plain(), &mut |_: f64| true).unwrap_err();
    assert!(gone.to_string().contains("cannot be read: "), "{gone}");
    let folder = survey(&std::env::temp_dir(), &plain(), &mut |_: f64| true).unwrap_err();
    assert!(folder.to_string().contains("cannot be read: it is a directory"), "{folder}");
    let spec = AqmSpec::builtin("droptail").unwrap();
    let unknown = AqmSpec { algorithm: "nosuch".into(), ..spec };
    let error = check_aqm(&setup("1Mbit", "9pkt"), &unknown).unwrap_err();
    assert!(error.to_string().starts_with("aqm = \"droptail\": "), "{error}");
    assert!(check_aqm(&setup("1Mbit", "9pkt"), &AqmSpec::builtin("codel").unwrap()).is_ok());
}

fn plain() -> Settings {
    Settings::read_from(&[("rate".into(), RawValue::Text("1Mbit".into()))]).unwrap()
}

#[test]
fn updates_that_take_far_too_long_are_refused_for_long_captures_alone() {
    let quick = AqmSpec::builtin("pi2:interval=1us").unwrap();
    let check = |file: &InFile, aqm: &AqmSpec| check_cost(&file.0, &setup("1Mbit", "99pkt"), aqm, &mut |_: f64| true);
    let short = InFile::new("short", &each_millisecond([500; 11]));
    assert!(check(&short, &quick).is_ok());
    // A million updates a second, for eleven pauses of an hour.
    let hours: Vec<_> = (0..12u64).map(|i| (i * 3_600_000_000_000, 500, udp(1, 0))).collect();
    let long = InFile::new("long", &packets(&hours));
    let told = check(&long, &quick).unwrap_err().to_string();
    assert!(told.starts_with("aqm = \"pi2:interval=1us\": "), "{told}");
    assert!(check(&long, &AqmSpec::builtin("pi2").unwrap()).is_ok());
    // At 1 bit/s 500 bytes take 4000 s, and 99 wait when the capture ends: 400 000 s of a million updates each.
    let crawling = |spec: &str| {
        let many = InFile::new("crawling", &each_millisecond([500; 200]));
        check_cost(&many.0, &setup("1bit", "99pkt"), &AqmSpec::builtin(spec).unwrap(), &mut |_: f64| true)
    };
    let told = crawling("pi2:interval=1us").unwrap_err().to_string();
    assert!(told.starts_with("aqm = \"pi2:interval=1us\": "), "{told}");
    assert!(crawling("pi2").is_ok());
}

#[test]
fn a_long_replay_lasts_until_what_waits_has_left() {
    // A packet of 500 bytes takes 40 s at 100 bit/s, an update each microsecond 60 ns: 0.06 s in a second of the
    // replay. Of 20 packets those wait for which there is room: 9 take 360 s, 4000 bytes 320 s; five take 200 s.
    let said = |packets: usize, buffer: &str, aqm: &str| {
        let file = InFile::new("lasting", &each_millisecond(vec![500; packets]));
        let aqm = AqmSpec::builtin(aqm).unwrap();
        check_cost(&file.0, &setup("100bit", buffer), &aqm, &mut |_: f64| true).unwrap()
    };
    let quick = |packets, buffer| said(packets, buffer, "pi2:interval=1us").unwrap();
    assert_eq!(quick(20, "9pkt"), "this takes about 22 s: 20 packets over 360 s");
    assert_eq!(quick(20, "4kB"), "this takes about 19 s: 20 packets over 320 s");
    assert_eq!(quick(5, "9pkt"), "this takes about 12 s: 5 packets over 200 s");
    // A replay of 160 s takes 9.6 s, of which nothing is said.
    assert_eq!(said(4, "9pkt", "pi2:interval=1us"), None);
}

#[test]
fn only_a_capture_that_may_take_long_is_read_for_its_cost() {
    // 64 KiB at 10 Gbit/s leave in 52 us: even a week takes seconds, so that nobody hears of packets that are read.
    let many = InFile::new("unread", &each_millisecond([500; 5000]));
    let check = |file: &InFile, aqm: &str, go_on: bool| {
        let aqm = AqmSpec::builtin(aqm).unwrap();
        check_cost(&file.0, &setup("10Gbit", "99pkt"), &aqm, &mut |_: f64| go_on)
    };
    assert!(matches!(check(&many, "pi2", false), Ok(None)));
    // Updates of a week that would take hours: how long the capture is has to be seen, and reading can be stopped.
    assert!(matches!(check(&many, "pi2:interval=1us", false), Err(Error::Cancelled)));
    assert!(matches!(check(&many, "pi2:interval=1us", true), Ok(None)));
    // A packet takes 200 ns, and 16 bytes of the file at the least: 800 MB may hold 50 million, ten seconds. What
    // stands there is no packet, but only who reads it knows.
    let padded = |bytes: u64, aqm: &str| {
        let file = InFile::new("padded", &each_millisecond([500; 9]));
        std::fs::OpenOptions::new().write(true).open(&file.0).unwrap().set_len(bytes).unwrap();
        check(&file, aqm, true)
    };
    assert!(matches!(padded(795_000_000, "droptail"), Ok(None)));
    assert!(matches!(padded(805_000_000, "droptail"), Err(Error::Capture { .. })));
    // An update each 6 ms takes 6 s in a week, which leaves packets four.
    assert!(matches!(padded(300_000_000, "pi2:interval=6ms"), Ok(None)));
    assert!(matches!(padded(330_000_000, "pi2:interval=6ms"), Err(Error::Capture { .. })));
}

#[test]
fn the_last_packet_may_leave_after_146_years_and_no_later() {
    // 2^62 ns is the end. A second packet 2^40 - 1 ns behind the first, offered 2^22 times as slowly, comes 2^22 ns
    // before it; at 1 Gbit/s these are 2^19 bytes.
    let ends = |bytes: u32| {
        let two = packets(&[(0, 1000, udp(1, 0)), ((1 << 40) - 1, bytes, udp(1, 0))]);
        let slow = Setup { speedup: 0.5f64.powi(22), ..setup("1Gbit", "9pkt") };
        replay_bytes(&two, &slow, &AqmSpec::builtin("droptail").unwrap()).map(|answer| answer.link.elapsed_s)
    };
    assert_eq!(ends(1 << 19).unwrap(), 2f64.powi(62) / 1e9);
    let told = ends((1 << 19) + 1).unwrap_err().to_string();
    assert!(told.contains("more than 146 years; give a higher --rate"), "{told}");
}

#[test]
fn a_capture_s_report_counts_what_is_odd_in_it() {
    let mut odd = packets(&[
        (0, 9238, udp(1, 0)),
        (1_000_000, 9239, udp(1, 0)),
        (2_000_000, 762, vec![0x45]),
        (1_500_000, 761, udp(2, 0)),
    ]);
    let answer = run(&odd, &setup("1Gbit", "9pkt"), "droptail");
    let capture = &answer.capture;
    // Larger than a jumbo frame of 9216 bytes with 22 of Ethernet; without an IP header; behind a later one.
    assert_eq!(
        (capture.super_pkts, capture.not_ip_pkts, capture.unknown_link_pkts, capture.reordered_pkts),
        (1, 1, 0, 1)
    );
    assert_eq!((capture.packets, capture.bytes, capture.flows, capture.cut_off), (4, 20_000, 3, false));
    // 20000 bytes in 2 ms.
    assert_eq!((capture.duration_s, capture.offered_bps), (0.002, Some(80e6)));
    odd.truncate(odd.len() - 3);
    let cut = run(&odd, &setup("1Gbit", "9pkt"), "droptail").capture;
    assert!(cut.cut_off && cut.packets == 3);
    // Link type 147 is not understood.
    let head = [section(ORDER), interface(ORDER, 147, &[])].concat();
    let strange = [head, enhanced(ORDER, 0, 5, 99, &udp(1, 0))].concat();
    let answer = run(&strange, &setup("1Mbit", "9pkt"), "droptail");
    assert_eq!((answer.capture.not_ip_pkts, answer.capture.unknown_link_pkts), (1, 1));
    // A packet alone has no time in which it was offered.
    assert_eq!((answer.capture.offered_bps, answer.capture.duration_s), (None, 0.0));
    assert_eq!(answer.traffic_classes[0].name, "not IP");
}

#[test]
fn what_leaves_is_written_with_its_time_and_its_mark() {
    // 1000 bytes take 1 ms at 8 Mbit/s; the way takes 5 ms more. A threshold of one packet: who
    // finds more waiting is marked.
    let offered: Vec<_> = (0..6).map(|i| (0, 1000, udp(1, if i < 5 { 2 } else { 0 }))).collect();
    let file = InFile::new("written", &packets(&offered));
    let out = InFile::new("written-out", &[]);
    let setup = Setup { delay_ns: 5_000_000, ..setup("8Mbit", "9pkt") };
    let aqm = AqmSpec::builtin("fixed:p=1").unwrap();
    let answer = replay(&file.0, &setup, &aqm, Some(&out.0), &mut |_: f64| true).unwrap();
    let counts = answer.total.counts;
    assert_eq!((counts.marked_pkts, counts.early_dropped_pkts, counts.departures_pkts), (5, 1, 5));
    let written = std::fs::read(&out.0).unwrap();
    let mut reader = aqumen_capture::Reader::new(&written[..]).unwrap();
    let mut seen = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        // The ECN field has CE, and the header's checksum is that of the header.
        assert_eq!((record.data[1] & 3, record.original, record.data.len()), (3, 1000, 28));
        seen.push(record.at_ns - 1_700_000_000_000_000_000);
    }
    assert_eq!(seen, (1..=5).map(|i| i * 1_000_000 + 5_000_000).collect::<Vec<i64>>());
    // The capture itself is not written over.
    let error = replay(&file.0, &setup, &aqm, Some(&file.0), &mut |_: f64| true).unwrap_err();
    assert!(error.to_string().contains("it is the capture that is replayed"), "{error}");
    assert!(replay(&file.0, &setup, &aqm, Some(&std::env::temp_dir()), &mut |_: f64| true).is_err());
    // What was not completed is gone: stopped, the file keeps what it had.
    let many = InFile::new("many", &each_millisecond([100; 5000]));
    let stopped = replay(&many.0, &setup, &aqm, Some(&out.0), &mut |_: f64| false).unwrap_err();
    assert_eq!(stopped.to_string(), "the replay was stopped");
    assert_eq!(std::fs::read(&out.0).unwrap(), written);
    let part = format!("{}.part", out.0.display());
    assert!(!std::path::Path::new(&part).exists());
}

#[test]
fn packets_of_several_link_types_leave_with_their_own() {
    // Raw IP (101), and the same after an Ethernet header (1), in turns; 1000 bytes take 1 ms.
    let head = [section(ORDER), interface(ORDER, 101, &[(9, vec![9])]), interface(ORDER, 1, &[(9, vec![9])])].concat();
    let forms = [udp(1, 0), [vec![0; 12], vec![8, 0], udp(1, 0)].concat()];
    let blocks = (0..6).map(|i| enhanced(ORDER, i % 2, 0, 1000, &forms[i as usize % 2]));
    let file = InFile::new("links", &[head, blocks.collect::<Vec<_>>().concat()].concat());
    let out = InFile::new("links-out", &[]);
    let droptail = AqmSpec::builtin("droptail").unwrap();
    let answer = replay(&file.0, &setup("8Mbit", "9pkt"), &droptail, Some(&out.0), &mut |_: f64| true).unwrap();
    assert_eq!((answer.capture.flows, answer.capture.not_ip_pkts), (1, 0));
    let written = std::fs::read(&out.0).unwrap();
    let mut reader = aqumen_capture::Reader::new(&written[..]).unwrap();
    let mut seen = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        seen.push((record.at_ns, record.interface, record.link, record.data.len()));
    }
    let ms = 1_000_000;
    let raw = [1, 3, 5].map(|k| (k * ms, 0, 101, 28));
    let ethernet = [2, 4, 6].map(|k| (k * ms, 1, 1, 42));
    let expected: Vec<_> = raw.into_iter().zip(ethernet).flat_map(|(a, b)| [a, b]).collect();
    assert_eq!(seen, expected);
}

#[test]
fn a_replay_whose_timers_take_long_can_be_stopped_between_two_packets() {
    // Two million updates from the first packet to the second.
    let two = InFile::new("timers", &packets(&[(0, 500, udp(1, 0)), (2_000_000_000, 500, udp(1, 0))]));
    let quick = AqmSpec::builtin("pi2:interval=1us").unwrap();
    let run = |go_on: bool| replay(&two.0, &setup("1Mbit", "9pkt"), &quick, None, &mut |_: f64| go_on);
    assert!(matches!(run(false), Err(Error::Cancelled)));
    assert_eq!(run(true).unwrap().total.counts.departures_pkts, 2);
    // It is not asked at every update.
    let mut asked = 0;
    let mut go_on = |_: f64| {
        asked += 1;
        true
    };
    replay(&two.0, &setup("1Mbit", "9pkt"), &quick, None, &mut go_on).unwrap();
    assert!(asked < 100, "{asked}");
}

#[test]
fn flows_beyond_the_first_are_counted_together() {
    // Three packets of the first flow, two of each of the next five, at once: one is in transmission, seven wait, and
    // the last five find no room. Of every flow one is marked where it leaves.
    let hosts = [1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6];
    let offered: Vec<_> = hosts.iter().map(|host| (0, 1000, udp(*host, 2))).collect();
    let answer = run(&packets(&offered), &Setup { top: 2, ..setup("8Mbit", "7pkt") }, "fixed:p=1");
    let of = |counts: &Counts| {
        (
            (counts.arrivals_pkts, counts.arrived_bytes, counts.departures_pkts, counts.departed_bytes),
            (counts.marked_pkts, counts.early_dropped_pkts, counts.overflow_dropped_pkts),
        )
    };
    let rows: Vec<_> = answer.flows.iter().map(|row| of(&row.counts)).collect();
    assert_eq!(rows, [((3, 3000, 3, 3000), (3, 0, 0)), ((2, 2000, 2, 2000), (2, 0, 0))]);
    // Of flows 3 to 6 flow 3 and one packet of flow 4 leave.
    assert_eq!(of(&answer.other_flows), ((8, 8000, 3, 3000), (3, 0, 5)));
}

#[test]
fn services_and_flows_have_the_names_of_their_protocols() {
    /// An IPv4 packet of a protocol between 10.0.0.1 and 10.0.0.2, with what follows the header.
    fn ip(protocol: u8, dscp: u8, fragment: u16, rest: &[u8]) -> Vec<u8> {
        let [high, low] = fragment.to_be_bytes();
        let mut data = vec![0x45, dscp << 2, 0, 20 + rest.len() as u8, 0, 0, high, low, 64, protocol, 0, 0];
        data.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        data.extend(rest);
        data
    }
    fn ports(from: u16, to: u16) -> Vec<u8> {
        let mut data = [from.to_be_bytes(), to.to_be_bytes()].concat();
        data.resize(20, 0);
        data
    }
    let offered = [
        ip(6, 46, 0, &ports(443, 50_000)),
        ip(17, 0, 0, &ports(40_000, 50_000)),
        ip(17, 0, 0, &ports(32_767, 32_768)),
        ip(17, 0, 100, &ports(1, 2)),
        ip(1, 0, 0, &[8, 0, 0, 0]),
        ip(6, 10, 0, &ports(50_000, 443)),
        ip(17, 0, 0, &ports(32_768, 60_000)),
    ];
    let offered: Vec<_> = offered.into_iter().zip(0..).map(|(data, i)| (i * 1_000_000, 900 - i as u32, data)).collect();
    let answer = run(&packets(&offered), &Setup { top: 9, ..setup("1Gbit", "9pkt") }, "droptail");
    let services: Vec<_> = answer.services.iter().map(|row| (row.name.as_str(), row.counts.arrivals_pkts)).collect();
    // Those of the first have the most bytes.
    assert_eq!(services, [("tcp/443", 2), ("udp/ephemeral", 2), ("udp/32767", 1), ("udp/fragments", 1), ("icmp", 1)]);
    let flows: Vec<_> = answer.flows.iter().map(|row| row.flow.as_str()).collect();
    assert_eq!(
        flows,
        [
            "tcp 10.0.0.1:443 > 10.0.0.2:50000",
            "udp 10.0.0.1:40000 > 10.0.0.2:50000",
            "udp 10.0.0.1:32767 > 10.0.0.2:32768",
            "udp fragments 10.0.0.1 > 10.0.0.2",
            "icmp 10.0.0.1 > 10.0.0.2",
            "tcp 10.0.0.1:50000 > 10.0.0.2:443",
            "udp 10.0.0.1:32768 > 10.0.0.2:60000",
        ]
    );
    let classes: Vec<_> =
        answer.traffic_classes.iter().map(|row| (row.name.as_str(), row.counts.arrivals_pkts)).collect();
    assert_eq!(classes, [("CS0 Not-ECT", 5), ("EF Not-ECT", 1), ("AF11 Not-ECT", 1)]);
}

#[test]
fn a_capture_compressed_by_gzip_is_replayed_as_what_it_holds() {
    let capture = packets(&(0..20_000).map(|i| (i * 1000, 1000, udp(1, 0))).collect::<Vec<_>>());
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&capture).unwrap();
    let packed = encoder.finish().unwrap();
    let aqm = AqmSpec::builtin("droptail").unwrap();
    let answers = [("plain", &capture), ("packed", &packed)].map(|(name, bytes)| {
        let file = InFile::new(name, bytes);
        let setup = file.survey(&[("load", "0.9")]).unwrap();
        assert_eq!(check_cost(&file.0, &setup, &aqm, &mut |_: f64| true).unwrap(), None);
        let mut shares = vec![];
        let answer = replay(&file.0, &setup, &aqm, None, &mut |share: f64| {
            shares.push(share);
            true
        });
        // Progress is that of the file, whatever it holds.
        assert!(
            shares.windows(2).all(|pair| pair[0] <= pair[1]) && shares.iter().any(|share| *share > 0.3),
            "{shares:?}"
        );
        serde_json::to_value(Answer { cpu_s: 0.0, ..answer.unwrap() }).unwrap()
    });
    assert_eq!(answers[0], answers[1]);
}
