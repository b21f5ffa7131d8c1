//! Tests of one link: times and fates of its packets.

use aqumen_aqm::DropReason;
use aqumen_network::measurement::{LinkMeasurement, windows_until};
use aqumen_network::port::Arrival;
use aqumen_network::{Fate, Identity, Link, aqm_report};
use aqumen_result::ParamValue;
use aqumen_scenario::{Plan, Scenario};
use aqumen_units::Ecn;
use proptest::prelude::*;

use crate::driver::{MS, PacketArrival, Pkt, bottleneck, by_port};

/// A plan whose link 0 is a bottleneck with these settings and events.
fn plan(aqm: &str, bottleneck: &str, events: &str) -> Plan {
    let text = format!(
        r#"
        name = "link"
        duration = "1s"
        aqm = "{aqm}"
        [topology]
        preset = "dumbbell"
        bottleneck = {{ {bottleneck} }}
        access = {{ rate = "1Gbit", delay = "1ms" }}
        [[flows]]
        name = "bulk"
        count = 20
        {events}
        "#
    );
    let plan = Scenario::parse(&text, "one link").unwrap_or_else(|error| panic!("{error}")).plan(1, None);
    plan.unwrap_or_else(|error| panic!("{error}"))
}

fn packet(number: u32, bytes: u32) -> Pkt {
    Pkt { number, bytes, ecn: Ecn::Ect0 }
}

/// Returns the fates of `arrivals` by number: time, whether marked, and fate.
fn fates(link: &mut Link<'_, Pkt>, arrivals: &[(u64, Pkt)], end: u64) -> Vec<(u64, bool, Fate)> {
    let mut fates = vec![None; arrivals.len()];
    let mut tell = |at, packet: Pkt, fate| {
        let known = fates[packet.number as usize].replace((at, packet.ecn == Ecn::Ce, fate));
        assert_eq!(known, None, "a packet has one fate");
    };
    arrivals.iter().for_each(|&(at, packet)| link.arrive(at, packet, &Identity::default(), &mut tell));
    link.advance(end, &mut tell);
    fates.into_iter().map(|fate| fate.expect("each packet has a fate")).collect()
}

#[test]
fn packets_leave_in_order_and_those_beyond_the_limit_are_dropped() {
    // 1000 bytes at 8 Mbit/s take 1 ms. Of four at once the first is sent, two wait, the fourth finds no room.
    let plan = plan("droptail", r#"rate = "8Mbit", delay = "10ms", buffer = "2pkt""#, "");
    let mut link = Link::new(&plan, bottleneck(&plan)).unwrap();
    let mut told = Vec::new();
    let mut tell = |at, packet: Pkt, fate| told.push((at / MS, packet.number, fate));
    (0..4).for_each(|number| link.arrive(5 * MS, packet(number, 1000), &Identity::default(), &mut tell));
    assert_eq!((link.next(), link.backlog().packets, link.backlog().bytes), (6 * MS, 2, 2000));
    // However late the host comes, everything is as if it had been in time.
    link.advance(1000 * MS, &mut tell);
    let delivered = |k: u64| Fate::Delivered { start: (5 + k) * MS, end: (6 + k) * MS };
    let dropped = (5, 3, Fate::Dropped(DropReason::Overflow));
    assert_eq!(told, [dropped, (16, 0, delivered(0)), (17, 1, delivered(1)), (18, 2, delivered(2))]);
    assert_eq!(link.next(), u64::MAX);
    // Two packets waited for 1 ms, one for another, within a second.
    let seen = link.measurements(&plan.windows);
    assert!((seen[0].metrics.queue_mean_pkts - 0.003).abs() < 1e-12);
    assert_eq!((seen[0].metrics.arrivals_pkts, seen[0].metrics.overflow_dropped_pkts), (4, 1));
    assert_eq!(seen[0].metrics.utilization, Some(0.003));
    assert_eq!(link.series().t_s.len(), 9, "a sample each 100 ms, but at the end");
}

#[test]
fn a_stopped_link_has_metrics_up_to_the_stop() {
    let windows = "[windows]\nearly = [\"100ms\", \"200ms\"]\nopen = \"300ms\"\nlate = \"700ms\"";
    let seen = |medium: &str| {
        let plan = plan("droptail", &format!(r#"{medium}, delay = "10ms", buffer = "30pkt""#), windows);
        let mut link = Link::new(&plan, bottleneck(&plan)).unwrap();
        // A packet of 1 ms each 2 ms from 0 on, and at 300 ms ten more at once: half of the link,
        // and then all of it for 10 ms.
        let of_rest = (0..200).map(|k| (2 * k * MS, packet(k as u32, 1000)));
        let mut arrivals: Vec<_> = of_rest.chain((200..210).map(|k| (300 * MS, packet(k, 1000)))).collect();
        arrivals.sort_by_key(|(at, _)| *at);
        arrivals.iter().for_each(|&(at, packet)| link.arrive(at, packet, &Identity::default(), &mut |_, _, _| {}));
        link.advance(400 * MS, &mut |_, _, _| {});
        link.stop(400 * MS);
        assert!(windows_until(&plan, 300 * MS).iter().all(|window| window.name != "open"), "one of no length");
        let windows = windows_until(&plan, 400 * MS);
        let ends: Vec<_> = windows.iter().map(|w| (w.name.as_str(), w.end.as_nanos() / MS)).collect();
        // The edge at which it stopped is behind it.
        assert!(link.next() > 400 * MS, "{}", link.next());
        let told: Vec<_> = ends.iter().map(|(name, end)| (name.to_string(), *end)).collect();
        (told, link.measurements(&windows))
    };
    let (windows, wire) = seen(r#"rate = "8Mbit""#);
    let expected = [("early", 200), ("open", 400), ("all", 400)].map(|(name, end)| (name.to_string(), end));
    assert!(windows.iter().all(|(name, _)| name != "late"), "what had not begun has no figures: {windows:?}");
    assert!(expected.iter().all(|window| windows.contains(window)), "{windows:?}");
    let of = |seen: &[LinkMeasurement], name: &str| {
        let at = windows.iter().position(|(window, _)| window == name).unwrap();
        seen[at].metrics.clone()
    };
    assert_eq!(of(&wire, "early").utilization, Some(0.5));
    // 50 of the steady ones, and ten more, all of which find room: one is sent with the eleventh at 300 ms.
    let open = of(&wire, "open");
    assert_eq!(open.arrivals_pkts, 60);
    assert!((open.utilization.unwrap() - 0.59).abs() < 0.011, "{:?}", open.utilization);
    // A medium that makes known what it offers by the plan's windows has no share of one that was cut.
    let (_, medium) = seen(r#"channel = { model = "lte" }"#);
    assert_eq!(of(&medium, "open").utilization, None);
    assert!(of(&medium, "early").utilization.is_some());
}

#[test]
fn nothing_leaves_while_the_link_is_down() {
    let events = r#"
        [[events]]
        at = "100ms"
        state = "down"
        [[events]]
        at = "300ms"
        state = "up"
        [[events]]
        at = "500ms"
        capacity = "80Mbit"
    "#;
    let plan = plan("droptail", r#"rate = "8Mbit", delay = "10ms", buffer = "9pkt""#, events);
    let mut link = Link::new(&plan, bottleneck(&plan)).unwrap();
    let arrivals = [(50, 0), (150, 1), (600, 2)].map(|(ms, number)| (ms * MS, packet(number, 1000)));
    let at: Vec<u64> = fates(&mut link, &arrivals, 1000 * MS).into_iter().map(|(at, ..)| at / (MS / 10)).collect();
    // 1 ms, later 100 us, and 10 ms each.
    assert_eq!(at, [610, 3110, 6101]);
}

#[test]
fn a_packet_that_is_lost_on_the_wire_holds_up_no_other() {
    let event = |at: u64, what: &str| format!("[[events]]\nat = \"{at}ms\"\n{what}\n");
    let events = event(100, "loss = 1.0") + &event(105, "loss = 0.0") + &event(106, "delay = \"0s\"");
    let plan = plan("droptail", r#"rate = "8Mbit", delay = "20ms", buffer = "9pkt""#, &events);
    let mut link = Link::new(&plan, bottleneck(&plan)).unwrap();
    let arrivals = [(98, 0), (104, 1), (107, 2)].map(|(ms, number)| (ms * MS, packet(number, 1000)));
    let told = fates(&mut link, &arrivals, 1000 * MS);
    assert_eq!(told[0].2, Fate::Delivered { start: 98 * MS, end: 99 * MS });
    assert_eq!(told[1], (105 * MS, false, Fate::Lost { start: 104 * MS }));
    // The first arrives at 119 ms, before which nothing does that was sent later; the one that is lost would have at
    // 125 ms.
    assert_eq!([told[0].0, told[2].0], [119 * MS, 119 * MS + 1]);
    assert_eq!(
        link.measurements(&plan.windows).last().unwrap().metrics.wire_lost_pkts.map(|lost| lost <= 1),
        Some(true)
    );
}

#[test]
fn whom_a_coin_chooses_is_marked_if_that_can_be_and_dropped_otherwise() {
    // A packet each 10 ms, at a queue that is empty: half of them are chosen.
    let plan = plan("fixed:p=0.5", r#"rate = "8Mbit", delay = "10ms", buffer = "50pkt""#, "");
    let told = |ecn: Ecn| {
        let mut link = Link::new(&plan, bottleneck(&plan)).unwrap();
        let arrivals: Vec<_> = (0..99).map(|k| (u64::from(k) * 10 * MS, Pkt { ecn, ..packet(k, 1000) })).collect();
        fates(&mut link, &arrivals, 1000 * MS)
    };
    let (able, unable) = (told(Ecn::Ect0), told(Ecn::NotEct));
    let chosen: Vec<bool> = able.iter().map(|(_, marked, _)| *marked).collect();
    assert!((30..=69).contains(&chosen.iter().filter(|chosen| **chosen).count()), "{chosen:?}");
    assert!(able.iter().all(|(_, _, fate)| matches!(fate, Fate::Delivered { .. })));
    let dropped = unable.iter().map(|(_, marked, fate)| !marked && matches!(fate, Fate::Dropped(DropReason::Early)));
    assert_eq!(dropped.collect::<Vec<_>>(), chosen);
}

#[test]
fn a_discipline_is_told_of_a_new_rate() {
    // CAKE lets packets wait for as long as one and a half of 1514 bytes take: 45 ms at 400 kbit/s, at 10 Mbit/s 5 ms.
    // So what it marks of twenty packets that come together is what it would have marked with that rate from the start.
    let arrivals: Vec<_> = (0..20).map(|number| (200 * MS, packet(number, 1500))).collect();
    let marked = |rate: &str| {
        let plan = plan("cake", &format!(r#"rate = {rate}, delay = "10ms", buffer = "100pkt""#), "");
        let mut link = Link::new(&plan, bottleneck(&plan)).unwrap();
        fates(&mut link, &arrivals, 5000 * MS).iter().map(|(_, marked, _)| *marked).collect::<Vec<_>>()
    };
    let slow = marked(r#""400kbit""#);
    assert_eq!(marked(r#"{ steps = [["0s", "10Mbit"], ["100ms", "400kbit"]] }"#), slow);
    // Nor is it told of one that is still to come.
    assert_eq!(marked(r#"{ steps = [["0s", "10Mbit"], ["100ms", "400kbit"], ["900ms", "10Mbit"]] }"#), slow);
    // The second waits for 30 ms. If that were too long, the sixth would be marked, 120 ms later: CoDel waits for 100.
    assert!(slow.iter().position(|marked| *marked) > Some(5), "{slow:?}");
}

#[test]
fn an_aqm_that_estimates_the_capacity_is_told_for_how_long_the_link_was_busy() {
    // A packet each 1.25 ms, each of which takes 1 ms: 800 in a second, and 1000 in a second that is busy.
    let bottleneck_of = r#"rate = "8Mbit", delay = "10ms", buffer = "50pkt""#;
    let plan = plan("stpi:capacity=4Mbit,tau_c=100ms", bottleneck_of, "");
    let mut link = Link::new(&plan, bottleneck(&plan)).unwrap();
    let arrivals: Vec<_> = (0..784).map(|k| (u64::from(k) * 5 * MS / 4, packet(k, 1000))).collect();
    fates(&mut link, &arrivals, 1000 * MS);
    let told = &link.series().state["capacity_estimate"];
    assert!(told[0] < 900.0 && (told.last().unwrap() / 1000.0 - 1.0).abs() < 0.01, "{told:?}");
}

#[test]
fn why_a_link_cannot_be_made_is_said_in_a_line() {
    let mut plan = plan("pi:a=0.5,b=0.25", r#"rate = "8Mbit", delay = "10ms", buffer = "50pkt""#, "");
    let number = bottleneck(&plan);
    let mut refused = |name: &str| {
        plan.links[number as usize].aqm.name = name.into();
        Link::<Pkt>::new(&plan, number).err().map(|error| error.to_string())
    };
    assert_eq!(refused("nobody").as_deref(), Some("link bottleneck: there is no AQM called nobody"));
    // Another's parameters.
    let line = refused("red").unwrap();
    assert!(line.starts_with("link bottleneck: red: ") && line.lines().count() == 1, "{line}");
    assert_eq!(refused("pi"), None);
}

#[test]
fn a_link_tells_the_parameters_that_its_aqm_has_at_the_end() {
    let events = "[[events]]\nat = \"200ms\"\naqm = \"pi:a=0.25,b=0.125,frequency=10Hz,target=9pkt\"";
    let plan = plan(
        "pi:a=0.5,b=0.25,frequency=10Hz,target=5pkt",
        r#"rate = "8Mbit", delay = "10ms", buffer = "9pkt""#,
        events,
    );
    let number = bottleneck(&plan);
    let mut link = Link::<Pkt>::new(&plan, number).unwrap();
    let told = |link: &Link<'_, Pkt>| {
        let report = aqm_report(&plan.links[number as usize], |visit| link.settings(visit));
        let of = |map: &indexmap::IndexMap<String, ParamValue>, name: &str| map.get(name).cloned();
        (of(&report.params, "a"), of(&report.params, "target"), of(&report.given, "a"), report.name)
    };
    let number_of = |x: f64| Some(ParamValue::Number(x));
    // What is given is what was said last; in force it is once its moment has come.
    assert_eq!(told(&link), (number_of(0.5), number_of(5.0), number_of(0.25), "pi".to_string()));
    link.advance(200 * MS, &mut |_, _, _| ());
    assert_eq!(told(&link), (number_of(0.25), number_of(9.0), number_of(0.25), "pi".to_string()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_link_gives_each_packet_the_fate_of_a_port_in_the_packet_engine(
        aqm in prop::sample::select(vec!["droptail", "pi", "red", "pie", "arm-pfc", "blue", "rem"]),
        line in prop::sample::select(vec![
            "",
            r#", loss = { random = 0.05 }"#,
            r#", rate = "4Mbit", loss = { burst = { to_bad = 0.1, to_good = 0.4 } }"#,
            r#", channel = { model = "lte", share = 0.5 }"#,
            r#", channel = { model = "wifi", contenders = 2 }"#,
        ]),
        events in prop::sample::select(vec![
            "",
            "[[events]]\nat = \"300ms\"\nstate = \"down\"\n[[events]]\nat = \"400ms\"\nstate = \"up\"",
            "[[events]]\nat = \"500ms\"\ndelay = \"1ms\"",
        ]),
        buffer in prop::sample::select(vec!["30pkt", "30kB"]),
        change in prop::sample::select(vec![
            "",
            "[[events]]\nat = \"250ms\"\naqm = \"blue\"\n[[events]]\nat = \"450ms\"\naqm = \"pi:target=9pkt\"",
        ]),
        gaps in prop::collection::vec((0u64..3 * MS, 40u32..1500, 0u32..20), 1..400),
    ) {
        let rate = if line.contains("rate") || line.contains("channel") { "" } else { r#", rate = "8Mbit""# };
        let plan = plan(aqm, &format!(r#"delay = "10ms", buffer = "{buffer}"{rate}{line}"#), &format!("{events}\n{change}"));
        let mut now = 0;
        // Some cannot carry marks.
        let ecn = |number: u32| if number.is_multiple_of(5) { Ecn::NotEct } else { Ecn::Ect0 };
        let arrivals: Vec<PacketArrival> = gaps.iter().zip(0u32..).map(|(&(gap, bytes, flow), number)| {
            now += gap;
            (now, Pkt { number, bytes, ecn: ecn(number) }, flow)
        }).filter(|came| came.0 < 1000 * MS).collect();
        let number = bottleneck(&plan);
        let mut link = Link::new(&plan, number).unwrap();
        let mut fates = vec![None; arrivals.len()];
        let mut tell = |at: u64, packet: Pkt, fate: Fate| {
            let was = match fate {
                Fate::Delivered { start, .. } => Arrival::Leaves { start, reach: at },
                Fate::Dropped(_) => Arrival::Dropped,
                Fate::Lost { start } => Arrival::Lost { start, end: at },
            };
            let known = fates[packet.number as usize].replace((packet.ecn == Ecn::Ce, was));
            assert_eq!(known, None, "a packet has one fate");
        };
        for &(at, packet, flow) in &arrivals {
            link.arrive(at, packet, &Identity { flow_hash: flow, ..Identity::default() }, &mut tell);
        }
        // Before the packets of the last moment.
        link.advance(1000 * MS - 1, &mut tell);
        let totals = *link.totals();
        link.advance(10_000 * MS, &mut tell);
        let at_port = by_port(&plan, number, &arrivals, false);
        let fates: Vec<_> = fates.into_iter().map(|fate| fate.expect("each packet has a fate")).collect();
        prop_assert_eq!(fates, at_port.fates);
        // What is seen of the two is the same too, and what they counted.
        prop_assert_eq!(totals, at_port.totals);
        prop_assert_eq!(format!("{:?}", link.series()), format!("{:?}", at_port.series));
        for (one, other) in link.measurements(&plan.windows).iter().zip(&at_port.seen) {
            prop_assert_eq!(format!("{:?}", one), format!("{:?}", other));
        }
    }
}
