//! Tests of ports, media and traces: the kinds of port agree, media follow their law, a trace is in the order of time.

use aqumen_capture::Reader;
use aqumen_network::measurement::{edges, fill_sojourn};
use aqumen_network::port::{Arrival, Port, Style};
use aqumen_network::{Fate, Identities, Identity, Link, Trace};
use aqumen_result::{FlowMetrics, Histogram};
use aqumen_scenario::{Files, Plan, Scenario};
use aqumen_units::Ecn;
use indexmap::IndexMap;
use proptest::prelude::*;

use crate::driver::{MS, Pkt, bottleneck};

fn packet(number: u32, bytes: u32) -> Pkt {
    Pkt { number, bytes, ecn: Ecn::NotEct }
}

/// A plan whose bottleneck has these settings; `up.trace` has opportunities at 2, 5 and 5 ms, and again each 5 ms.
fn plan(bottleneck: &str, duration: &str) -> Plan {
    plan_with(bottleneck, duration, "droptail", "")
}

/// A plan whose bottleneck has an AQM and more lines.
fn plan_with(bottleneck: &str, duration: &str, aqm: &str, more: &str) -> Plan {
    let text = format!(
        "name = \"link\"\nduration = \"{duration}\"\naqm = \"{aqm}\"\n[topology]\npreset = \"dumbbell\"\n\
         bottleneck = {{ {bottleneck} }}\naccess = {{ rate = \"100Mbit\", delay = \"1ms\", buffer = \"4pkt\" }}\n\
         [[flows]]\nname = \"bulk\"\n{more}"
    );
    let files = Files::in_memory([("up.trace".to_string(), b"2\n5\n5\n".to_vec())]);
    let scenario = Scenario::parse_with(&text, "link.toml", files).unwrap_or_else(|error| panic!("{error}"));
    scenario.plan(1, None).unwrap_or_else(|error| panic!("{error}"))
}

/// When each of `arrivals` (moment, bytes) reaches the other end; `None`: it does not.
fn reached(plan: &Plan, arrivals: &[(u64, u32)], end: u64) -> (Vec<Option<u64>>, f64) {
    let mut link = Link::new(plan, bottleneck(plan)).unwrap();
    let mut fates = vec![None; arrivals.len()];
    let mut tell = |at, packet: Pkt, fate| {
        fates[packet.number as usize] = matches!(fate, Fate::Delivered { .. }).then_some(at);
    };
    for (number, &(at, bytes)) in arrivals.iter().enumerate() {
        link.arrive(at, packet(number as u32, bytes), &Identity::default(), &mut tell);
    }
    link.advance(end, &mut tell);
    let utilization = link.measurements(&plan.windows)[0].metrics.utilization.unwrap();
    (fates, utilization)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_plain_port_equals_a_port_with_a_queue(
        gaps in prop::collection::vec((0u64..200_000, 40u16..1500), 1..200),
    ) {
        // 1500 bytes take 120 us: queues of four form, and overflow.
        let plan = plan("rate = \"8Mbit\", delay = \"10ms\", buffer = \"30pkt\"", "1s");
        let number = plan.links.iter().position(|link| link.is_plain()).unwrap();
        let of = |collapse: bool| {
            let style = Style { collapse, served: false };
            Port::<Pkt>::new(&plan.links[number], plan.seed, number as u32, style, &edges(&plan), false).unwrap()
        };
        let (Port::Plain(mut plain), Port::Fifo(mut fifo)) = (of(true), of(false)) else { panic!("other ports") };
        let mut now = 0;
        for (gap, bytes) in gaps {
            now += gap;
            let expected = fifo.arrive(now, &mut packet(0, u32::from(bytes)), 0);
            prop_assert_eq!(plain.arrive(now, bytes), expected);
        }
    }
}

/// Media, as lines of the link and of the file's end.
const MEDIA: [(&str, &str); 5] = [
    ("channel = { model = \"wifi\", contenders = 2, mcs = 4 }", ""),
    ("channel = { model = \"umts\" }", ""),
    ("rate = \"8Mbit\", loss = 0.1", "[[events]]\nat = \"20ms\"\ndelay = \"1ms\"\n"),
    ("rate = { steps = [[\"0s\", \"8Mbit\"], [\"15ms\", \"800kbit\"]] }", ""),
    // Down for a while, then for good.
    (
        "rate = \"8Mbit\"",
        "[[events]]\nat = \"5ms\"\nstate = \"down\"\n[[events]]\nat = \"9ms\"\nstate = \"up\"\n\
         [[events]]\nat = \"40ms\"\nstate = \"down\"\n",
    ),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_plain_port_over_a_medium_equals_a_port_with_a_queue(
        gaps in prop::collection::vec((0u64..1_500_000, 40u16..1500), 1..100),
        (lines, more) in prop::sample::select(&MEDIA),
    ) {
        let plan = plan_with(&format!("{lines}, delay = \"10ms\", buffer = \"4pkt\""), "1s", "droptail", more);
        let mut link = plan.links[bottleneck(&plan) as usize].clone();
        link.record = false;
        let of = |collapse: bool| {
            let style = Style { collapse, served: false };
            Port::<Pkt>::new(&link, plan.seed, bottleneck(&plan), style, &edges(&plan), false).unwrap()
        };
        let (Port::Plain(mut plain), Port::Fifo(mut fifo)) = (of(true), of(false)) else { panic!("other ports") };
        let mut now = 0;
        for (gap, bytes) in gaps {
            now += gap;
            let expected = fifo.arrive(now, &mut packet(0, u32::from(bytes)), 0);
            prop_assert_eq!(plain.arrive(now, bytes), expected, "{} at {}", lines, now);
        }
    }
}

#[test]
fn a_plain_port_drops_packets_beyond_its_limit() {
    let plan = plan("rate = \"8Mbit\", delay = \"10ms\", buffer = \"30pkt\"", "1s");
    let number = plan.links.iter().position(|link| link.is_plain() && link.limit.packets == 4).unwrap();
    let style = Style { collapse: true, served: false };
    let port: Port<Pkt> = Port::new(&plan.links[number], 1, number as u32, style, &edges(&plan), false).unwrap();
    let Port::Plain(mut port) = port else { panic!("somebody looks") };
    // 1250 bytes at 100 Mbit/s take 100 us, and 1 ms to the other end. One is sent, four wait, the sixth finds no room.
    let us = 1000;
    for k in 0..5 {
        let start = k * 100 * us;
        assert_eq!(port.arrive(0, 1250), Arrival::Leaves { start, reach: start + 1100 * us });
    }
    assert_eq!(port.arrive(0, 1250), Arrival::Dropped);
    // The moment that one of them starts there is room again.
    assert_eq!(port.arrive(100 * us, 1250), Arrival::Leaves { start: 500 * us, reach: 1600 * us });
    assert_eq!(port.arrive(100 * us, 1250), Arrival::Dropped);
}

#[test]
fn samples_are_of_links_that_are_recorded() {
    let plan = plan("rate = \"8Mbit\", delay = \"10ms\", buffer = \"30pkt\"", "1s");
    let of = |number: usize, served: bool| {
        let style = Style { collapse: true, served };
        Port::<Pkt>::new(&plan.links[number], 1, number as u32, style, &edges(&plan), false).unwrap()
    };
    let (seen, unseen) = (bottleneck(&plan) as usize, plan.links.iter().position(|link| !link.record).unwrap());
    assert_eq!(of(unseen, false).sample(MS), None);
    assert_eq!(of(unseen, true).sample(MS), None);
    let mut port = of(seen, false);
    let Port::Fifo(fifo) = &mut port else { panic!("other port") };
    (0..4).for_each(|number| {
        fifo.arrive(0, &mut packet(number, 1000), 0);
    });
    // One is sent for 1 ms, three wait; a moment later it is two.
    assert_eq!(port.sample(MS / 2), Some((3, 0.0)));
    assert_eq!(port.sample(MS * 3 / 2), Some((2, 0.0)));
}

#[test]
fn a_packet_on_the_wire_as_a_window_ends_counts_by_its_share() {
    let windows = "[windows]\nfirst = [\"0s\", \"250us\"]\nthen = [\"250us\", \"4ms\"]\n";
    let plan = plan_with("rate = \"8Mbit\", delay = \"10ms\", buffer = \"30pkt\"", "1s", "droptail", windows);
    let mut link = Link::new(&plan, bottleneck(&plan)).unwrap();
    // 1000 bytes take 1 ms, from 100 us on: 150 us of it in the first window, 850 in the other.
    link.arrive(MS / 10, packet(0, 1000), &Identity::default(), &mut |_, _, _| ());
    link.advance(1000 * MS, &mut |_, _, _| ());
    let shares: Vec<f64> =
        link.measurements(&plan.windows).iter().map(|seen| seen.metrics.utilization.unwrap()).collect();
    let of = |name: &str| shares[plan.windows.iter().position(|window| window.name == name).unwrap()];
    assert!((of("first") - 0.6).abs() < 1e-9 && (of("then") - 0.85 / 3.75).abs() < 1e-9, "{shares:?}");
}

#[test]
fn a_port_shows_its_aqms_state_and_settings() {
    let plan = plan_with("rate = \"8Mbit\", delay = \"10ms\", buffer = \"30pkt\"", "1s", "pi", "");
    let number = bottleneck(&plan);
    for served in [false, true] {
        let style = Style { collapse: true, served };
        let port: Port<Pkt> = Port::new(&plan.links[number as usize], 1, number, style, &edges(&plan), false).unwrap();
        let (mut seen, mut set) = (Vec::new(), Vec::new());
        port.observe(&mut |name, value| seen.push((name, value)));
        port.settings(&mut |name, _| set.push(name));
        assert_eq!(seen, [("sampled_queue", 0.0)], "{served}");
        assert!(set.contains(&"a") && set.contains(&"b"), "{set:?}");
    }
}

#[test]
fn a_port_goes_over_to_the_parameters_that_an_event_says() {
    let event = "[[events]]\nat = \"500ms\"\naqm = \"pi:a=0.25,b=0.125,target=9pkt\"\n";
    let aqm = "pi:a=0.5,b=0.25,target=5pkt";
    let plan = plan_with("rate = \"8Mbit\", delay = \"10ms\", buffer = \"30pkt\"", "1s", aqm, event);
    let (number, edges) = (bottleneck(&plan), edges(&plan));
    let link = &plan.links[number as usize];
    let (_, choice) = &link.line.as_ref().unwrap().aqms[0];
    for served in [false, true] {
        let style = Style { collapse: true, served };
        let mut port: Port<Pkt> = Port::new(link, 1, number, style, &edges, false).unwrap();
        let told = |port: &Port<Pkt>| {
            let mut told = IndexMap::new();
            port.settings(&mut |name, value| drop(told.insert(name, format!("{value:?}"))));
            ["a", "b", "target"].map(|name| told[name].clone())
        };
        assert_eq!(told(&port), [0.5, 0.25, 5.0].map(|x| format!("Number({x:?})")), "{served}");
        port.retune(choice.build_qdisc(link.limit).unwrap().unwrap(), 500 * MS);
        assert_eq!(told(&port), [0.25, 0.125, 9.0].map(|x| format!("Number({x:?})")), "{served}");
    }
}

#[test]
fn packets_of_a_mahimahi_link_leave_with_its_opportunities() {
    let plan = plan("rate = { mahimahi = \"up.trace\" }, delay = \"10ms\", buffer = \"30pkt\"", "1s");
    // At 0: 1504 bytes with the opportunity at 2 ms, two with those at 5 ms, and one of 752 with that at 7 ms, of which
    // the other half is gone when the next comes at 7.5 ms: it goes at 10 ms.
    let arrivals = [(0, 1504), (0, 1504), (0, 1504), (0, 752), (7 * MS + MS / 2, 752)];
    let (fates, utilization) = reached(&plan, &arrivals, 1000 * MS);
    let at: Vec<u64> = fates.into_iter().map(|at| at.unwrap() / (MS / 10)).collect();
    assert_eq!(at, [120, 150, 150, 170, 200]);
    // Four opportunities' bytes of 600 in the second.
    assert!((utilization - 4.0 / 600.0).abs() < 1e-4, "{utilization}");
}

#[test]
fn a_packet_too_large_for_an_opportunity_goes_on_in_the_next() {
    let plan = plan("rate = { mahimahi = \"up.trace\" }, delay = \"10ms\", buffer = \"30pkt\"", "1s");
    // 1504 of 2000 bytes leave at 2 ms, the rest with the first at 5 ms, which has 1008 left; the second has 1504 more.
    for (bytes, at) in [(1008, 150), (1009, 150), (2512, 150), (2513, 170)] {
        let (fates, _) = reached(&plan, &[(0, 2000), (0, bytes)], 1000 * MS);
        let times: Vec<u64> = fates.into_iter().map(|at| at.unwrap() / (MS / 10)).collect();
        assert_eq!(times, [150, at], "{bytes}");
    }
}

#[test]
fn a_virtual_link_alone_has_it_all_and_beside_others_the_share_that_they_leave() {
    let shared = |mean_on: &str, mean_off: &str| {
        let channel = format!(
            "{{ model = \"shared\", rate = \"40Mbit\", neighbours = 3, mean_on = \"{mean_on}\", mean_off = \"{mean_off}\" }}"
        );
        plan(&format!("channel = {channel}, delay = \"10ms\", buffer = \"40000pkt\""), "4s")
    };
    // 4000 packets of 1250 bytes at once, 1 s of 40 Mbit/s; the time until the last one leaves tells the mean rate.
    let rate = |plan: &Plan| {
        let (fates, utilization) = reached(plan, &[(0, 1250); 4000], 9000 * MS);
        (40e6 / ((fates[3999].unwrap() - 10 * MS) as f64 / 1e9), utilization)
    };
    // Hardly ever busy; nearly always: a quarter; each half of the time: 40 (1 - (1/2)^4) / (4 / 2) = 18.75 Mbit/s.
    let (alone, utilization) = rate(&shared("100us", "10s"));
    assert!((alone / 40e6 - 1.0).abs() < 0.001 && (utilization - 0.25).abs() < 0.002, "{alone} {utilization}");
    let (full, _) = rate(&shared("10s", "100us"));
    assert!((full / 10e6 - 1.0).abs() < 0.001, "{full}");
    let (half, utilization) = rate(&shared("1ms", "1ms"));
    assert!((half / 18.75e6 - 1.0).abs() < 0.05, "{half}");
    assert!((utilization - 40.0 / (4.0 * 18.75)).abs() < 0.03, "{utilization}");
}

#[test]
fn a_trace_is_in_the_order_of_time_whenever_its_packets_were_reported() {
    let mut out = Vec::new();
    let mut trace = Trace::new(&mut out, ["left", "right"], 10).unwrap();
    // (reported at, link, starts at): some known early, some late within the slack.
    let reports = [(0, 0, 50), (5, 1, 5), (12, 1, 8), (30, 1, 45), (52, 1, 47), (60, 0, 60), (60, 1, 60), (90, 0, 85)];
    for (k, &(now, link, start)) in reports.iter().enumerate() {
        // An IPv4 header whose last byte tells which it was.
        trace.transmit(now, link, start, 100 + k as u16, |headers| {
            headers.extend([0x45; 19]);
            headers.push(k as u8);
        });
    }
    trace.finish().unwrap();
    let mut reader = Reader::new(&out[..]).unwrap();
    let mut read = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        read.push((record.at_ns as u64, record.interface, record.original, record.data[19]));
    }
    // By time; at one time in the order of reports. Nothing is lost, nothing written over.
    let mut expected: Vec<_> = reports.iter().enumerate().map(|(k, &(_, link, start))| (start, k, link)).collect();
    expected.sort_unstable();
    let expected: Vec<_> =
        expected.into_iter().map(|(start, k, link)| (start, link, 100 + k as u32, k as u8)).collect();
    assert_eq!(read, expected);
}

#[test]
fn at_one_time_a_trace_keeps_the_order_of_reports() {
    let mut out = Vec::new();
    let mut trace = Trace::new(&mut out, ["a", "b", "c"], 0).unwrap();
    let mut report = |now: u64, link: u32, k: u8| {
        trace.transmit(now, link, now, 100, |headers| {
            headers.extend([0x45; 19]);
            headers.push(k);
        });
    };
    // The room of those that are written is used again, in any order.
    (0..3).for_each(|k| report(10 + u64::from(k), 0, k));
    for k in 3..6 {
        report(100, u32::from(k) - 3, k);
    }
    (6..9).for_each(|k| report(200, 8 - u32::from(k), k));
    trace.finish().unwrap();
    let mut reader = Reader::new(&out[..]).unwrap();
    let mut read = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        read.push(record.data[19]);
    }
    assert_eq!(read, (0..9).collect::<Vec<u8>>());
}

#[test]
fn a_packet_is_of_its_flow_and_class_and_goes_between_its_hosts() {
    let text = |class: u8| {
        format!(
            "name = \"t\"\nduration = \"1s\"\naqm = \"droptail\"\n[topology]\npreset = \"dumbbell\"\n\
             bottleneck = {{ rate = \"8Mbit\", delay = \"10ms\", buffer = \"30pkt\" }}\n\
             access = {{ rate = \"100Mbit\", delay = \"1ms\" }}\n[[flows]]\nname = \"bulk\"\ncount = 2\n\
             [[flows]]\nname = \"other\"\nclass = {class}\n"
        )
    };
    let of = |class: u8| Scenario::parse(&text(class), "t.toml").unwrap().plan(1, None).unwrap();
    assert!(!Identities::new(&of(0)).classes());
    let plan = of(3);
    let all = Identities::new(&plan);
    assert!(all.classes());
    for (number, class) in [(0, 0), (1, 0), (2, 3)] {
        let flow = &plan.flows[number as usize];
        let (source_hash, destination_hash) = (flow.source, flow.destination);
        assert_ne!(source_hash, destination_hash);
        let forth = Identity { flow_hash: number, source_hash, destination_hash, class };
        let back = Identity { source_hash: destination_hash, destination_hash: source_hash, ..forth };
        assert_eq!((all.packet(number, false), all.packet(number, true)), (forth, back));
        let seen = back.metadata(&packet(9, 700));
        assert_eq!((seen.bytes, seen.ecn, seen.class, seen.segments), (700, Ecn::NotEct, class, 1));
        assert_eq!((seen.flow_hash, seen.source_hash, seen.destination_hash), (number, flow.destination, flow.source));
    }
    // An AQM that tells classes apart must be told them: such a link asks its queue for each packet.
    let is_served = |aqm: &str, classes: bool| {
        let plan = plan_with("rate = \"8Mbit\", delay = \"10ms\", buffer = \"30pkt\"", "1s", aqm, "");
        let (number, style) = (bottleneck(&plan), Style { collapse: true, served: false });
        let port = Port::<Pkt>::new(&plan.links[number as usize], 1, number, style, &edges(&plan), classes).unwrap();
        matches!(port, Port::Served(_))
    };
    assert_eq!([false, true].map(|classes| is_served("droptail:threshold=0.5", classes)), [false, true]);
    assert_eq!([false, true].map(|classes| is_served("pi", classes)), [false, false]);
    assert_eq!([false, true].map(|classes| is_served("codel", classes)), [true, true]);
}

/// The notes of a link or port, which hands each over.
macro_rules! notes_of {
    ($of:expr) => {{
        let mut told: Vec<String> = Vec::new();
        $of.notes(&mut |note| told.push(note.to_string()));
        told
    }};
}

#[test]
fn notes_of_an_aqm_are_reported() {
    // AVQ's virtual capacity falls to nothing where eight times what the link carries arrives.
    let plan = plan_with("rate = \"8Mbit\", delay = \"10ms\", buffer = \"30pkt\"", "1s", "avq", "");
    let number = bottleneck(&plan);
    let mut link = Link::new(&plan, number).unwrap();
    assert!(notes_of!(link).is_empty());
    let ports = [false, true].map(|served| Style { collapse: true, served });
    let mut ports = ports
        .map(|style| Port::<Pkt>::new(&plan.links[number as usize], 1, number, style, &edges(&plan), false).unwrap());
    for k in 0..8000u32 {
        let at = u64::from(k) * MS / 8;
        link.arrive(at, packet(k, 1000), &Identity::default(), &mut |_, _, _| ());
        for port in &mut ports {
            while let Some(due) = port.next_timer().filter(|due| *due <= at) {
                port.on_timer(due);
            }
            match port {
                Port::Fifo(port) => drop(port.arrive(at, &mut packet(k, 1000), 0)),
                Port::Served(port) => drop(port.arrive(at, packet(k, 1000), &Identity::default(), &mut Vec::new())),
                Port::Plain(_) => panic!("somebody looks"),
            }
        }
    }
    let told = notes_of!(link);
    assert!(told.len() == 1 && told[0].starts_with("AVQ's virtual capacity fell to 0 at 0."), "{told:?}");
    for port in &ports {
        let told = notes_of!(port);
        assert!(told.len() == 1 && told[0].starts_with("AVQ's virtual capacity fell to 0 at 0."), "{told:?}");
    }
}

#[test]
fn waits_are_told_of_the_groups_in_their_window() {
    let plan = plan("rate = \"8Mbit\", delay = \"10ms\", buffer = \"30pkt\"", "1s");
    let window = &plan.windows[0];
    let mut waits = Histogram::default();
    [1, 3].iter().for_each(|ms| waits.record(ms * MS));
    let of = |names: [&str; 2]| -> IndexMap<String, IndexMap<String, FlowMetrics>> {
        let windows = || names.map(|name| (name.to_string(), FlowMetrics::default())).into_iter().collect();
        ["bulk", "other"].map(|group| (group.to_string(), windows())).into_iter().collect()
    };
    let mut flows = of([&window.name, "another"]);
    fill_sojourn(&mut flows, window, &[waits, Histogram::default()]);
    let told: Vec<_> = flows.values().flat_map(|by| by.values().map(|metrics| metrics.sojourn_mean_s)).collect();
    assert_eq!(told, [Some(0.002), None, None, None]);
}
