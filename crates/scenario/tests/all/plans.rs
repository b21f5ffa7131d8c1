//! The plan of a scenario.

use crate::common;

use aqumen_aqm::Limit;
use aqumen_scenario::{Flow, OwnedValue, Plan, Scenario};
use aqumen_units::{Bytes, Instant, Rate, Span};
use common::{DUMBBELL, GRAPH, PARKING_LOT, parse, with};

fn plan(text: &str, seed: u64) -> Plan {
    parse(text).plan(seed, None).unwrap()
}

fn at(secs: u64) -> Instant {
    Instant::ZERO + Span::from_secs(secs)
}

/// Propagation delay of the links of a path, milliseconds.
fn delay_ms(plan: &Plan, path: &[u32]) -> f64 {
    path.iter().map(|link| plan.links[*link as usize].delay.as_secs_f64() * 1e3).sum()
}

/// Whether `path` leads from link to link.
fn is_connected(plan: &Plan, path: &[u32]) -> bool {
    path.windows(2).all(|pair| plan.links[pair[0] as usize].to == plan.links[pair[1] as usize].from)
}

#[test]
fn a_dumbbell_gives_each_flow_its_own_hosts_delays_and_start() {
    let plan = plan(DUMBBELL, 1);
    // 2 routers and 4 x 2 hosts; 2 links between the routers and 4 x 4 to the hosts.
    assert_eq!((plan.nodes.len(), plan.links.len(), plan.flows.len()), (10, 18, 4));
    for flow in &plan.flows {
        assert_eq!((flow.path.len(), flow.return_path.len()), (3, 3));
        assert!(is_connected(&plan, &flow.path) && is_connected(&plan, &flow.return_path));
        // 35 to 45 ms on each side and 20 ms between, in both directions.
        let there = delay_ms(&plan, &flow.path);
        assert!((90.0..=110.0).contains(&there), "{there}");
        assert!((there - delay_ms(&plan, &flow.return_path)).abs() < 1e-9);
        assert_eq!(flow.on.len(), 1);
        assert!(flow.on[0].0 < at(1) && flow.on[0].1.is_none());
    }
    let starts: Vec<Instant> = plan.flows.iter().map(|flow| flow.on[0].0).collect();
    assert!(starts.iter().enumerate().all(|(i, start)| !starts[..i].contains(start)));
    let bottleneck = &plan.links[0];
    assert_eq!(
        (bottleneck.name.to_string().as_str(), bottleneck.record, bottleneck.limit),
        ("bottleneck", true, Limit::packets(300))
    );
    let back = &plan.links[1];
    assert_eq!(
        (back.aqm.name.as_str(), back.limit, back.delay),
        ("droptail", Limit::packets(100_000), bottleneck.delay)
    );
}

#[test]
fn plans_of_two_aqms_differ_in_the_aqm_alone() {
    let scenario = parse(DUMBBELL);
    let red = scenario.plan(3, Some(&scenario.aqm("red").unwrap())).unwrap();
    let mut pi = scenario.plan(3, Some(&scenario.aqm("pi").unwrap())).unwrap();
    assert_ne!(red, pi);
    pi.links[0].aqm = red.links[0].aqm.clone();
    assert_eq!(red, pi);
}

#[test]
fn a_seed_repeats_its_plan_and_another_seed_changes_it() {
    assert_eq!(plan(DUMBBELL, 5), plan(DUMBBELL, 5));
    assert_ne!(plan(DUMBBELL, 5).flows[0].on, plan(DUMBBELL, 6).flows[0].on);
}

#[test]
fn a_range_of_one_key_does_not_change_draws_of_others() {
    let starts = |text: &str| plan(text, 1).flows.iter().map(|flow| flow.on[0].0).collect::<Vec<_>>();
    assert_eq!(starts(DUMBBELL), starts(&with(DUMBBELL, "[\"35ms\", \"45ms\"]", "\"40ms\"")));
    let delays = |text: &str| plan(text, 1).links.iter().map(|link| link.delay).collect::<Vec<_>>();
    assert_eq!(delays(DUMBBELL), delays(&with(DUMBBELL, "[\"0s\", \"1s\"]", "\"0s\"")));
    let six = plan(&with(DUMBBELL, "count = 4", "count = 6"), 1);
    assert_eq!(starts(DUMBBELL), six.flows[..4].iter().map(|flow| flow.on[0].0).collect::<Vec<_>>());
}

#[test]
fn ranges_are_drawn_uniformly() {
    let plan = plan(&with(DUMBBELL, "count = 4", "count = 10000"), 1);
    let mean = plan.flows.iter().map(|flow| flow.on[0].0.as_secs_f64()).sum::<f64>() / 1e4;
    // Uniform in 0..1 s: mean 0.5, standard deviation 0.2887; 3.29 standard errors are 0.0095.
    assert!((mean - 0.5).abs() < 0.0095, "{mean}");
}

#[test]
fn the_nominal_network_follows_from_the_scenario() {
    let nominal = plan(DUMBBELL, 1).nominal;
    assert_eq!((nominal.capacity, nominal.flows), (Rate::from_bps(8_000_000), 4.0));
    // 2 x 20 ms, and 40 ms in the mean on each of four access links.
    assert!((nominal.base_rtt_s - 0.2).abs() < 1e-12);
    assert_eq!((nominal.target_pkts, nominal.packet_bytes, nominal.buffer_pkts), (100.0, 1000.0, 300.0));
    let given = format!(
        "{DUMBBELL}[nominal]\ncapacity = \"10Mbit\"\nflows = 100\nbase_rtt = \"50ms\"\ntarget = \"60pkt\"\npacket = \"500B\"\n"
    );
    let network = plan(&given, 1).links[0].aqm.network;
    assert_eq!((network.capacity, network.link_rate), (Rate::from_bps(10_000_000), Rate::from_bps(8_000_000)));
    assert_eq!(
        (network.flows, network.base_rtt_s, network.target_pkts, network.packet_bytes),
        (100.0, 0.05, 60.0, 500.0)
    );
}

#[test]
fn in_a_graph_each_link_under_test_has_its_own_nominal_network() {
    let text = with(&with(GRAPH, "flows = 10\n", ""), "target = \"70pkt\"\n", "");
    let plan = plan(&text, 1);
    let link = |name: &str| plan.links.iter().find(|link| link.name == name).unwrap();
    // Only `through` crosses the first link: 2 x (10 + 10) ms, 4 x 5 ms, 20 ms extra in the mean.
    let first = link("first").aqm.network;
    assert_eq!((first.flows, first.packet_bytes, first.capacity), (3.0, 1000.0, Rate::from_bps(30_000_000)));
    assert!((first.base_rtt_s - 0.080).abs() < 1e-12, "{}", first.base_rtt_s);
    assert!((first.target_pkts - 200.0 / 3.0).abs() < 1e-12);
    // `cross` joins on the second link, but a finite transfer does not count in the design. 300 kB are 300 packets of
    // 1000 B.
    let second = link("second");
    assert_eq!((second.aqm.network.flows, second.aqm.network.buffer_pkts), (3.0, 300.0));
    assert!((second.aqm.network.base_rtt_s - 0.080).abs() < 1e-12);
    assert_eq!((second.target_pkts, second.aqm.network.target_pkts), (Some(50.0), 50.0));
    assert_eq!((second.limit.packets, second.limit.bytes), (u32::MAX, Bytes(300_000)));
    let back = link("second-reverse");
    assert_eq!((back.rates[0].1, back.aqm.name.as_str(), back.record), (Rate::from_bps(1_000_000), "pi", true));
    assert_eq!(back.target_pkts, Some(20.0));
    assert!(link("first-reverse").record);
    assert_eq!(link("first-reverse").target_pkts, None);
}

#[test]
fn flows_without_access_links_run_between_the_nodes_themselves() {
    let plan = plan(GRAPH, 1);
    let cross = plan.flows.last().unwrap();
    let names = |path: &[u32]| path.iter().map(|link| plan.links[*link as usize].name.clone()).collect::<Vec<_>>();
    assert_eq!((names(&cross.path), names(&cross.return_path)), (vec!["second".into()], vec!["second-reverse".into()]));
    assert_eq!(cross.transfer, Some(Bytes(1_000_000)));
    assert_eq!(names(&plan.flows[0].path), ["through.0.source-out", "first", "second", "through.0.sink-in"]);
}

#[test]
fn the_extra_round_trip_is_spread_over_the_access_links() {
    let plan = plan(GRAPH, 1);
    for flow in &plan.flows[..3] {
        let rtt = delay_ms(&plan, &flow.path) + delay_ms(&plan, &flow.return_path);
        // 2 x 20 ms and 4 x 5 ms without, up to 40 ms more with.
        assert!((60.0..=100.0).contains(&rtt), "{rtt}");
    }
}

#[test]
fn flows_pause_in_their_off_times_and_by_events() {
    let plan = plan(GRAPH, 1);
    let until = |secs: u64| Some(at(secs));
    // On from 0 s to 50 s, off in 10-20 s and 30-35 s; the first two stop at 45 s for good.
    let stopped = [(at(0), until(10)), (at(20), until(30)), (at(35), until(45))];
    assert_eq!(*plan.flows[0].on, stopped);
    assert_eq!(*plan.flows[1].on, stopped);
    assert_eq!(*plan.flows[2].on, [(at(0), until(10)), (at(20), until(30)), (at(35), until(50))]);
    assert_eq!(*plan.flows[3].on, [(at(0), None)]);
}

#[test]
fn stopped_flows_resume() {
    let events = "[[events]]\nat = \"70s\"\nresume = \"ftp\"\n[[events]]\nat = \"40s\"\nstop = \"ftp\"\ncount = 2\n";
    let plan = plan(&with(&format!("{DUMBBELL}{events}"), "[\"0s\", \"1s\"]", "\"3s\""), 1);
    assert_eq!(*plan.flows[1].on, [(at(3), Some(at(40))), (at(70), None)]);
    assert_eq!(*plan.flows[2].on, [(at(3), None)]);
}

#[test]
fn a_flow_that_would_start_in_a_pause_starts_at_its_end() {
    let text = with(DUMBBELL, "start = [\"0s\", \"1s\"]", "start = \"2s\"\noff = [[\"1s\", \"5s\"]]");
    assert_eq!(*plan(&text, 1).flows[0].on, [(at(5), None)]);
}

#[test]
fn events_change_the_capacity_and_open_windows() {
    let plan = plan(GRAPH, 1);
    let second = plan.links.iter().find(|link| link.name == "second").unwrap();
    assert_eq!(second.rates, [(at(0), Rate::from_bps(15_000_000)), (at(40), Rate::from_bps(6_000_000))]);
    let windows: Vec<(&str, Instant, Instant)> =
        plan.windows.iter().map(|window| (window.name.as_str(), window.start, window.end)).collect();
    assert_eq!(
        windows,
        [
            ("all", at(0), at(60)),
            ("after-40s", at(40), at(45)),
            ("fewer", at(45), at(60)),
            ("steady", at(15), at(60)),
            ("middle", at(20), at(30)),
        ]
    );
    let plain = parse(DUMBBELL).plan(1, None).unwrap();
    assert_eq!(
        (plain.windows[1].name.as_str(), plain.windows[1].start, plain.windows[1].end),
        ("steady", at(10), at(100))
    );
}

#[test]
fn a_capacity_event_of_a_dumbbell_means_its_bottleneck() {
    let plan = plan(&format!("{DUMBBELL}[[events]]\nat = \"40s\"\ncapacity = \"6Mbit\"\n"), 1);
    assert_eq!(plan.links[0].rates[1], (at(40), Rate::from_bps(6_000_000)));
    assert_eq!(plan.links[1].rates.len(), 1);
}

#[test]
fn a_spec_gives_values_in_the_units_of_the_algorithm() {
    let scenario = parse(GRAPH);
    let spec = scenario.aqm("pi:a=1.822e-5,b=1.816e-5,frequency=150Hz,target=100pkt,ecn=false").unwrap();
    let number = |name: &str, x: f64| (name.to_string(), OwnedValue::Number(x));
    assert_eq!(
        spec.values,
        [
            number("a", 1.822e-5),
            number("b", 1.816e-5),
            number("frequency", 150.0),
            number("target", 100.0),
            ("ecn".to_string(), OwnedValue::Flag(false)),
        ]
    );
    assert_eq!((spec.algorithm.as_str(), spec.label.split(':').next()), ("pi", Some("pi")));
}

#[test]
fn profiles_extend_profiles_and_the_nearest_value_applies() {
    let scenario = parse(GRAPH);
    let value = |spec: &str, name: &str| {
        let spec = scenario.aqm(spec).unwrap();
        assert_eq!(spec.algorithm, "pi");
        spec.values.into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
    };
    assert_eq!(value("pi-x1000", "frequency"), Some(OwnedValue::Number(150.0)));
    assert_eq!(value("slow", "frequency"), Some(OwnedValue::Number(50.0)));
    assert_eq!(value("slower", "frequency"), Some(OwnedValue::Number(10.0)));
    assert_eq!(value("slower", "a"), Some(OwnedValue::Number(6.48e-4)));
    assert_eq!(value("slower", "ecn"), Some(OwnedValue::Flag(false)));
    assert_eq!(value("slower:frequency=20Hz", "frequency"), Some(OwnedValue::Number(20.0)));
}

#[test]
fn overrides_reach_every_value() {
    let scenario = parse(GRAPH);
    let with = |key: &str, value: &str| scenario.with(key, value).unwrap();
    assert_eq!(
        with("links.second.rate", "20Mbit").plan(1, None).unwrap().links[2].rates[0].1,
        Rate::from_bps(20_000_000)
    );
    assert_eq!(with("flows.through.count", "7").spec().flows[0].count, 7);
    assert_eq!(with("flows.1.count", "9").spec().flows[1].count, 9);
    assert_eq!(with("flows.through.start", "[\"0s\", \"2s\"]").spec().flows[0].start.high, Span::from_secs(2));
    assert_eq!(with("name", "other").spec().name.0, "other");
    assert_eq!(with("aqms.fresh.algorithm", "red").aqm("fresh").unwrap().algorithm, "red");
    // The short form of a transport opens into its table.
    let cross = with("flows.cross.transport.ecn", "true");
    assert!(cross.spec().flows[1].transport.config.ecn() && cross.spec().flows[1].transport.preset == "ns2");
    assert_eq!(
        parse(DUMBBELL).with("bottleneck.rate", "6Mbit").unwrap().plan(1, None).unwrap().nominal.capacity,
        Rate::from_bps(6_000_000)
    );
}

#[test]
fn a_scenario_without_link_under_test_takes_no_aqm() {
    let text = GRAPH.replace("aqm = \"test\"\n", "");
    let scenario = parse(&text);
    assert!(scenario.plan(1, None).is_ok());
    let error = scenario.plan(1, Some(&scenario.aqm("pi").unwrap())).unwrap_err().to_string();
    assert!(error.ends_with("no link is under test; give one aqm = \"test\""), "{error}");
}

#[test]
fn the_json_of_a_plan_has_seconds_rates_and_resolved_aqms() {
    let json = plan(DUMBBELL, 1).to_json().unwrap();
    assert_eq!(json["links"][0]["rates"], serde_json::json!([[0.0, 8_000_000]]));
    assert_eq!(json["links"][0]["delay_s"], 0.02);
    assert_eq!(json["links"][0]["buffer_pkts"], 300);
    // The scenario has no target queue; with a nominal target it has one.
    assert_eq!(json["links"][0]["target_pkts"], serde_json::Value::Null);
    let with_target = format!("{DUMBBELL}\n[nominal]\ntarget = \"80pkt\"\n");
    assert_eq!(plan(&with_target, 1).to_json().unwrap()["links"][0]["target_pkts"], 80.0);
    assert_eq!(json["links"][0]["aqm"]["name"], "pi");
    assert_eq!(json["links"][0]["aqm"]["params"]["a"], 6.48e-4);
    // Effective default: the target of the nominal network.
    assert_eq!(json["links"][0]["aqm"]["params"]["target"], 100.0);
    assert_eq!(json["groups"][0]["transport"]["packet_bytes"], 1000);
    assert_eq!(json["groups"][0]["transport"]["min_rto_s"], 0.2);
    assert_eq!(json["groups"][0]["flows"], serde_json::json!([0, 4]));
    assert_eq!(json["windows"]["steady"], serde_json::json!([10.0, 100.0]));
    assert_eq!(json["flows"][0]["path"].as_array().unwrap().len(), 3);
}

#[test]
fn a_parking_lot_has_its_links_in_a_row_and_all_under_test() {
    let scenario = parse(PARKING_LOT);
    assert_eq!(scenario.links_under_test(), ["link1", "link2", "link3"]);
    let plan = scenario.plan(1, None).unwrap();
    assert_eq!(plan.nodes[..4], ["r0", "r1", "r2", "r3"]);
    let names = |path: &[u32]| path.iter().map(|link| plan.links[*link as usize].name.clone()).collect::<Vec<_>>();
    // Through flows cross all links, cross traffic only the middle one; each has an access link at both ends.
    assert_eq!(names(&plan.flows[0].path)[1..4], ["link1", "link2", "link3"]);
    assert_eq!(names(&plan.flows[0].return_path)[1..4], ["link3-reverse", "link2-reverse", "link1-reverse"]);
    assert_eq!(names(&plan.flows[4].path)[1..2], ["link2"]);
    let limits: Vec<Limit> = plan.links[..6].iter().map(|link| link.limit).collect();
    assert_eq!(limits, [100, 50, 200, 50, 300, 50].map(Limit::packets));
    assert_eq!(plan.links[2].rates[1], (at(30), Rate::from_bps(6_000_000)));
}

#[test]
fn round_trips_are_those_of_the_group() {
    let plan = plan(PARKING_LOT, 1);
    let rtt = |flow: usize| delay_ms(&plan, &plan.flows[flow].path) + delay_ms(&plan, &plan.flows[flow].return_path);
    // Two blocks of two flows, to within the 4 ns that a division by four may lose.
    for (flow, listed) in [100.0, 100.0, 200.0, 200.0].into_iter().enumerate() {
        assert!((rtt(flow) - listed).abs() < 5e-6, "{flow}: {}", rtt(flow));
    }
    // Cross traffic: 20 ms of the link, 4 ms of the access links, and 40 +- 4 * 10 ms.
    for flow in 4..7 {
        assert!((24.0..=104.0).contains(&rtt(flow)), "{flow}: {}", rtt(flow));
    }
    assert!((rtt(4) - rtt(5)).abs() > 1e-3);
    assert!(plan.flows[..4].iter().all(|flow| flow.on[0].0 < at(5)));
    // The nominal network takes the listed mean: link 1 is crossed by the through flows alone.
    assert!((plan.links[0].aqm.network.base_rtt_s - 0.150).abs() < 1e-9);
}

#[test]
fn the_kind_of_a_spread_does_not_change_other_draws() {
    let text = with(PARKING_LOT, "start = { law = \"exponential\", mean = \"1s\", max = \"5s\" }", "start = \"0s\"");
    let (a, b) = (plan(PARKING_LOT, 3), plan(&text, 3));
    let delays = |plan: &Plan| plan.links.iter().map(|link| link.delay).collect::<Vec<_>>();
    assert_eq!(delays(&a), delays(&b));
}

#[test]
fn changes_that_only_fit_together_are_checked_together() {
    let late = parse(DUMBBELL).with("flows.ftp.start", "60s").unwrap();
    assert!(late.with("duration", "5s").is_err());
    assert!(late.with_all(&[("duration", "5s"), ("flows.ftp.start", "0s")]).is_ok());
}

/// Hosts and round trip without queueing of each flow of `group` in a dumbbell with these groups.
fn hosts_and_rtts(groups: &str, group: usize) -> Vec<((u32, u32), f64)> {
    let plan = plan_of_groups(groups);
    let delay = |flow: &Flow| {
        flow.path
            .iter()
            .chain(&flow.return_path)
            .map(|link| plan.links[*link as usize].delay.as_secs_f64())
            .sum::<f64>()
    };
    let flows = &plan.flows[plan.groups[group].flows.start as usize..plan.groups[group].flows.end as usize];
    assert!(flows.iter().all(|flow| flow.group as usize == group));
    flows.iter().map(|flow| ((flow.source, flow.destination), (delay(flow) * 1e3).round())).collect()
}

/// A dumbbell with these groups.
fn of_groups(groups: &str) -> String {
    format!(
        "name = \"hosts\"\nduration = \"10s\"\n[topology]\npreset = \"dumbbell\"\naccess = {{ rate = \"1Gbit\" }}\n\
         [topology.bottleneck]\nrate = \"10Mbit\"\ndelay = \"1ms\"\nbuffer = \"100pkt\"\n{groups}"
    )
}

fn plan_of_groups(groups: &str) -> Plan {
    Scenario::parse(&of_groups(groups), "t.toml").unwrap_or_else(|error| panic!("{error}")).plan(3, None).unwrap()
}

#[test]
fn delays_belong_to_hosts() {
    let ftp = "[[flows]]\nname = \"ftp\"\ncount = 6\nhosts = 3\ntransport = \"ns2\"\n";
    // A list is assigned to the hosts: flow k has the round trip of host k modulo 3.
    let dealt = hosts_and_rtts(&format!("{ftp}rtt = {{ list = [\"40ms\", \"60ms\", \"80ms\"] }}\n"), 0);
    let hosts = [((0, 1), 40.0), ((2, 3), 60.0), ((4, 5), 80.0)];
    assert_eq!((&dealt[..3], &dealt[3..]), (&hosts[..], &hosts[..]));
    // From a range each host draws its own.
    let drawn = hosts_and_rtts(&format!("{ftp}rtt = [\"40ms\", \"400ms\"]\n"), 0);
    assert_eq!(drawn[..3], drawn[3..]);
    assert!(drawn[0].1 != drawn[1].1 && drawn[1].1 != drawn[2].1, "{drawn:?}");
}

#[test]
fn groups_share_the_hosts_of_one_of_them() {
    let groups = "[[flows]]\nname = \"ftp\"\ncount = 4\nhosts = 2\ntransport = \"ns2\"\n\
                  access = { rate = \"50Mbit\", delay = { list = [\"5ms\", \"10ms\"] } }\nextra_rtt = { list = [\"8ms\", \"40ms\"] }\n\
                  [[flows]]\nname = \"web\"\ncount = 3\nhosts_of = \"ftp\"\ntransport = \"ns2\"\ntraffic = \"web\"\n";
    // Twice 1 ms over the bottleneck, four times the access link's delay, and the added delay.
    let (near, far) = (((0, 1), 30.0), ((2, 3), 82.0));
    assert_eq!(hosts_and_rtts(groups, 0), [near, far, near, far]);
    assert_eq!(hosts_and_rtts(groups, 1), [near, far, near]);
}

#[test]
fn the_two_sides_may_differ_in_their_number_of_hosts() {
    // Flow k runs from source k modulo 2 to destination k modulo 3; hosts are numbered in the order of their first
    // flows.
    let ftp = "[[flows]]\nname = \"ftp\"\ncount = 6\nsources = 2\ndestinations = 3\ntransport = \"ns2\"\n";
    let plan = plan_of_groups(ftp);
    let ends: Vec<_> = plan.flows.iter().map(|flow| (flow.source, flow.destination)).collect();
    assert_eq!(ends, [(0, 1), (2, 3), (0, 4), (2, 1), (0, 3), (2, 4)]);
    // Five hosts with two access links each. Flows 0 and 2 share their first link, flows 0 and 3 their last.
    assert_eq!(plan.links.iter().filter(|link| link.name.to_string().starts_with("ftp.")).count(), 10);
    let (first, third, fourth) = (&plan.flows[0], &plan.flows[2], &plan.flows[3]);
    assert_eq!((first.path.first(), first.return_path.last()), (third.path.first(), third.return_path.last()));
    assert_eq!((first.path.last(), first.return_path.first()), (fourth.path.last(), fourth.return_path.first()));
    assert_ne!(first.path.last(), third.path.last());
    let rtts = |of: &str| hosts_and_rtts(&format!("{ftp}{of}\n"), 0).iter().map(|(_, rtt)| *rtt).collect::<Vec<_>>();
    assert_eq!(rtts("rtt = \"50ms\""), [50.0; 6]);
    let text = Scenario::parse(&of_groups(&format!("{ftp}rtt = {{ list = [\"40ms\", \"120ms\"] }}\n")), "t.toml");
    assert!(text.unwrap_err().to_string().contains("lists 2 values for 3 destinations"));
}

#[test]
fn a_group_may_share_the_hosts_of_one_side() {
    // A computer downloads from six servers and, in another group, from two others; it uploads to one.
    let groups = "[[flows]]\nname = \"many\"\ncount = 6\ndestinations = 1\ntransport = \"ns2\"\nrtt = \"40ms\"\n\
                  [[flows]]\nname = \"web\"\ncount = 2\ndestinations_of = \"many\"\ntransport = \"ns2\"\nrtt = \"80ms\"\n\
                  [[flows]]\nname = \"up\"\ncount = 1\nfrom = \"r2\"\nto = \"r1\"\nsources_of = \"many\"\ntransport = \"ns2\"\nrtt = \"40ms\"\n";
    let plan = plan_of_groups(groups);
    let home = plan.flows[0].destination;
    assert!(plan.flows[..8].iter().all(|flow| flow.destination == home));
    assert_eq!(plan.flows[8].source, home);
    // Downlink and uplink of the computer: the two directions of one access line.
    let (down, up) = (&plan.flows[6], &plan.flows[8]);
    assert_eq!((down.path.last(), down.return_path.first()), (up.return_path.last(), up.path.first()));
    // Half of the round trip is the computer's.
    assert_eq!(hosts_and_rtts(groups, 1).iter().map(|(_, rtt)| *rtt).collect::<Vec<_>>(), [60.0, 60.0]);
    let wrong = |from: &str, to: &str| {
        Scenario::parse(&of_groups(&groups.replacen(from, to, 1)), "t.toml").unwrap_err().to_string()
    };
    let both = wrong("destinations_of = \"many\"", "destinations_of = \"many\"\nhosts_of = \"many\"");
    assert!(both.contains("excludes hosts_of"), "{both}");
    let twice = wrong("destinations_of = \"many\"", "destinations_of = \"many\"\ndestinations = 1");
    assert!(
        twice.contains("flows.1.destinations = 1: is a setting of the hosts, which destinations_of takes"),
        "{twice}"
    );
    let none = wrong("destinations_of = \"many\"", "destinations_of = \"up\"");
    assert!(none.contains("flows.1.destinations_of") && none.contains("no earlier group \"up\""), "{none}");
    let pairs = wrong("destinations = 1", "destinations = 1\nhosts = 2");
    assert!(pairs.contains("excludes hosts"), "{pairs}");
    let drawn = wrong("rtt = \"40ms\"", "rtt = \"40ms\"\naccess = { rate = \"1Gbit\", delay = [\"1ms\", \"2ms\"] }");
    assert!(drawn.contains("needs access links of one delay"), "{drawn}");
}

#[test]
fn a_design_for_n_flows_means_long_lived_tcp_flows() {
    let nominal = |flows: &[&str]| {
        let groups: String = flows.iter().map(|group| format!("[[flows]]\n{group}\n")).collect();
        let text = format!(
            "name = \"n\"\nduration = \"10s\"\n[topology]\npreset = \"dumbbell\"\naccess = {{ rate = \"1Gbit\" }}\n\
             [topology.bottleneck]\nrate = \"10Mbit\"\ndelay = \"1ms\"\nbuffer = \"100pkt\"\n{groups}"
        );
        let nominal =
            Scenario::parse(&text, "t.toml").unwrap_or_else(|error| panic!("{error}")).plan(1, None).unwrap().nominal;
        (nominal.flows, (nominal.base_rtt_s * 1e3).round())
    };
    let long = "name = \"long\"\ncount = 10\ntransport = \"modern\"\nrtt = \"100ms\"";
    let others = [
        "name = \"udp\"\ncount = 20\ntransport = \"udp\"\ntraffic = { kind = \"cbr\", rate = \"64kbit\" }\nrtt = \"20ms\"",
        "name = \"web\"\ncount = 30\ntransport = \"modern\"\ntraffic = \"web\"\nrtt = \"20ms\"",
        "name = \"once\"\ncount = 40\ntransport = \"modern\"\ntransfer = \"1MB\"\nrtt = \"20ms\"",
        "name = \"rtp\"\ncount = 50\ntransport = \"rtp\"\nrtt = \"20ms\"",
    ];
    assert_eq!(nominal(&[long, others[0], others[1], others[2], others[3]]), (10.0, 100.0));
    // Without such flows all flows count.
    assert_eq!(nominal(&others), (140.0, 20.0));
}

#[test]
fn a_flow_ends_for_good_with_its_last_stop() {
    let of = |lines: &str| plan(&with(DUMBBELL, "transport = \"ns2\"", &format!("transport = \"ns2\"\n{lines}")), 1);
    assert_eq!(of("").stop_ns(0), u64::MAX);
    assert_eq!(of("stop = \"7s\"").stop_ns(0), 7_000_000_000);
    assert_eq!(of("off = [[\"2s\", \"3s\"]]\nstop = \"7s\"").stop_ns(1), 7_000_000_000);
    assert_eq!(of("off = [[\"2s\", \"3s\"]]").stop_ns(1), u64::MAX);
}

#[test]
fn sizes_and_times_are_read_in_their_units() {
    assert_eq!(aqumen_scenario::read_bytes("1500B"), Ok(Bytes(1500)));
    assert_eq!(aqumen_scenario::read_bytes("64kB"), Ok(Bytes(64_000)));
    assert_eq!(aqumen_scenario::read_span("280ms"), Ok(Span::from_millis(280)));
    assert_eq!(aqumen_scenario::read_packets("12.5pkt"), Ok(12.5));
    assert_eq!(aqumen_scenario::read_rate("3Mbit"), Ok(Rate::from_bps(3_000_000)));
    assert!(aqumen_scenario::read_bytes("3Mbit").is_err() && aqumen_scenario::read_span("1B").is_err());
}
