//! Disciplines of several queues in the packet engine: who gets what, and who waits.

use crate::common;

use aqumen_result::{FlowMetrics, LinkMetrics, RunResult};
use aqumen_scenario::{Group, OwnedValue, Plan, Protocol};
use aqumen_sim::{Options, run};
use aqumen_transport::tcp::{TcpConfig, Variant};
use aqumen_units::{Instant, Rate, Span};
use common::Dumbbell;

const NAMES: [&str; 6] = ["fq-codel", "fq-pie", "dualpi2", "cake", "sfq", "drr"];

fn answer(plan: &Plan) -> RunResult {
    run(plan, Options::default(), &mut |_| true).unwrap()
}

fn steady(result: &RunResult) -> &LinkMetrics {
    &result.links["bottleneck"]["steady"]
}

fn flows<'r>(result: &'r RunResult, group: &str) -> &'r FlowMetrics {
    &result.flows[group]["steady"]
}

/// Twenty long-lived flows at 8 Mbit/s, round trips of about 0.2 s, for a minute.
fn twenty(aqm: &'static str) -> Dumbbell {
    let transport = TcpConfig { variant: Variant::Sack, ecn: true, receive_window: 1000, ..TcpConfig::modern() };
    Dumbbell { flows: 20, transport, ..Dumbbell::exp1(aqm, 60) }
}

/// A discipline with enough queues that no two flows share one.
fn apart(aqm: &'static str) -> Dumbbell {
    Dumbbell { values: vec![("queues", 65_536.0)], ..twenty(aqm) }
}

/// The last flow becomes a group of its own whose window is a single packet.
fn with_sparse_flow(mut plan: Plan) -> Plan {
    let last = plan.flows.len() as u32 - 1;
    let bulk = &mut plan.groups[0];
    bulk.flows = 0..last;
    let Protocol::Tcp(tcp) = bulk.transport else { unreachable!() };
    let transport = Protocol::Tcp(TcpConfig { receive_window: 1, ..tcp });
    let group = Group { name: "sparse".into(), transport, flows: last..last + 1, ..bulk.clone() };
    plan.groups.push(group);
    plan.flows[last as usize].group = 1;
    plan
}

/// Round trip of the last flow, seconds, when the others send nothing.
fn lone_round_trip(plan: &Plan) -> f64 {
    let mut alone = plan.clone();
    let last = alone.flows.len() - 1;
    for flow in &mut alone.flows[..last] {
        flow.on.clear();
    }
    flows(&answer(&alone), "sparse").rtt_mean_s.unwrap()
}

#[test]
fn each_runs_on_experiment_1_and_reports_its_parameters() {
    for name in NAMES {
        let plan = Dumbbell::exp1(name, 20).plan();
        let result = answer(&plan);
        let link = steady(&result);
        assert!(link.utilization.unwrap() > 0.9, "{name}: {link:?}");
        assert_eq!(result.aqm.name, name);
        assert!(!result.aqm.params.is_empty(), "{name}");
        assert!(link.queue_mean_pkts <= 300.0, "{name}: {link:?}");
        // A discipline does not make packets.
        let all = &result.links["bottleneck"]["all"];
        let gone = all.departures_pkts + all.early_dropped_pkts + all.overflow_dropped_pkts;
        assert!(all.arrivals_pkts >= gone && all.arrivals_pkts - gone <= 301, "{name}: {all:?}");
        // The same seed, the same bits.
        assert_eq!(
            serde_json::to_string(&result.links).unwrap(),
            serde_json::to_string(&answer(&plan).links).unwrap(),
            "{name}"
        );
    }
}

#[test]
fn a_filter_takes_superfluous_acknowledgements_from_a_slow_way_back_and_no_data() {
    let goodput = |there: &str, back: &str| {
        let text = format!(
            "name = \"filtered\"\nduration = \"20s\"\naqm = \"{there}\"\n[topology]\npreset = \"dumbbell\"\n\
             access = {{ rate = \"100Mbit\", delay = \"5ms\" }}\n[topology.bottleneck]\nrate = \"8Mbit\"\ndelay = \"10ms\"\n\
             buffer = \"200pkt\"\n[topology.bottleneck.reverse]\nrate = \"100kbit\"\nbuffer = \"200pkt\"\n\
             aqm = \"{back}\"\n[[flows]]\nname = \"ftp\"\ncount = 4\ntransport = {{ preset = \"ns2\", packet = \"1000B\" }}\n"
        );
        let plan = aqumen_scenario::Scenario::parse(&text, "filtered").unwrap().plan(1, None).unwrap();
        let result = aqumen_sim::run(&plan, Default::default(), &mut |_| true).unwrap();
        result.flows["ftp"]["steady"].goodput_bps / 7.68e6
    };
    // 100 kbit/s carry 312 acknowledgements of 40 bytes a second, one for each packet, of which the link carries 1000.
    let off = goodput("droptail", "cake:ack_filter=off");
    let on = goodput("droptail", "cake:ack_filter=aggressive");
    assert!(off < 0.6 && on > 0.9, "{off} {on}");
    // Where data pass it nothing is superfluous.
    assert_eq!(goodput("cake:ack_filter=aggressive", "droptail"), goodput("cake:ack_filter=off", "droptail"));
}

#[test]
fn flow_queueing_shares_the_link_equally() {
    for name in ["fq-codel", "fq-pie", "cake", "drr", "sfq"] {
        let mut dumbbell = apart(name);
        if name == "cake" {
            // Its sets of eight keep flows apart by themselves. Without a rate its turns are a full
            // packet, as those of the others.
            dumbbell.values = vec![("rate", 0.0)];
        }
        let mut plan = dumbbell.plan();
        let mut result = answer(&plan);
        if name == "fq-codel" {
            // CoDel's interval of 100 ms is short for these round trips, and as in Linux it signals queues of one
            // packet, too, so that the link idles at times. By the RFC it lets them be.
            assert!(steady(&result).utilization.unwrap() > 0.75, "{:?}", steady(&result));
            assert!(flows(&result, "ftp").jain_fairness.unwrap() > 0.95, "{:?}", flows(&result, "ftp"));
            set(&mut plan, "backlog", OwnedValue::Choice("queue".into()));
            result = answer(&plan);
        }
        let jain = flows(&result, "ftp").jain_fairness.unwrap();
        assert!(jain > 0.99, "{name}: {jain}");
        assert!(steady(&result).utilization.unwrap() > 0.95, "{name}: {:?}", steady(&result));
    }
    // Turns of 300 B, which CAKE makes of 8 Mbit/s, cost a little: short queues empty more often.
    let cake = answer(&twenty("cake").plan());
    assert!(flows(&cake, "ftp").jain_fairness.unwrap() > 0.99, "{:?}", flows(&cake, "ftp"));
    assert!(steady(&cake).utilization.unwrap() > 0.9, "{:?}", steady(&cake));
    // One queue for all does not: round trips differ, and losses fall as they come.
    let jain = flows(&answer(&twenty("droptail").plan()), "ftp").jain_fairness.unwrap();
    assert!(jain < 0.98, "droptail: {jain}");
}

#[test]
fn flows_that_share_a_queue_share_its_part() {
    // Twenty flows in four queues: at least sixteen share. A queue with n flows gives each 1/n of a quarter.
    let few = Dumbbell { values: vec![("queues", 4.0)], ..twenty("fq-codel") };
    let jain = flows(&answer(&few.plan()), "ftp").jain_fairness.unwrap();
    let many = flows(&answer(&apart("fq-codel").plan()), "ftp").jain_fairness.unwrap();
    assert!(jain < 0.97 && many > 0.99, "{jain} {many}");
}

#[test]
fn a_sparse_flow_hardly_waits_behind_bulk_flows() {
    let mut waits = Vec::new();
    for name in ["fq-codel", "fq-pie", "cake", "droptail"] {
        let mut dumbbell = if name == "droptail" { twenty(name) } else { apart(name) };
        if name == "cake" {
            dumbbell.values.clear();
        }
        let plan = with_sparse_flow(dumbbell.plan());
        let alone = lone_round_trip(&plan);
        waits.push((name, flows(&answer(&plan), "sparse").rtt_mean_s.unwrap() - alone));
    }
    for &(name, wait) in &waits {
        if name == "droptail" {
            // Behind a queue of hundreds of packets of 1 ms each.
            assert!(wait > 0.1, "{waits:?}");
        } else {
            // The packet in transmission, and at times another sparse one.
            assert!((0.0..3e-3).contains(&wait), "{waits:?}");
        }
    }
}

/// Mean sojourn times of the bulk flows' packets, the sparse flow's and all, seconds.
fn sojourns(network: &Dumbbell) -> [f64; 3] {
    let result = answer(&with_sparse_flow(network.plan()));
    let of = |group: usize| result.flows[group]["steady"].sojourn_mean_s.unwrap();
    [of(0), of(1), steady(&result).sojourn_mean_s.unwrap()]
}

#[test]
fn a_groups_sojourn_times_are_its_own_where_the_links_mean_hides_them() {
    // One packet at a time out of 700 a second or so: the mean of the link is that of the bulk flows.
    let [bulk, sparse, all] = sojourns(&apart("fq-codel"));
    assert!((all / bulk - 1.0).abs() < 0.02, "{all} {bulk}");
    assert!(sparse < 0.25 * bulk, "{sparse} {bulk}");
    // In one queue all wait alike; a single packet, which never comes in a burst, a little less.
    let [bulk, sparse, all] = sojourns(&twenty("pi"));
    assert!((all / bulk - 1.0).abs() < 0.02, "{all} {bulk}");
    assert!((0.8..1.1).contains(&(sparse / bulk)), "{sparse} {bulk}");
}

#[test]
fn the_sojourn_times_of_the_groups_make_up_the_links() {
    for aqm in ["drr", "pi"] {
        let mut plan = with_sparse_flow(twenty(aqm).plan());
        plan.duration = Span::from_secs(20);
        plan.windows.retain(|window| window.name == "all");
        plan.windows[0].end = Instant::ZERO + plan.duration;
        let result = answer(&plan);
        let (link, window) = (&result.links["bottleneck"]["all"], "all");
        let groups: Vec<_> = result.flows.values().map(|by_window| &by_window[window]).collect();
        let (low, high) = (groups[0].sojourn_mean_s.unwrap(), groups[1].sojourn_mean_s.unwrap());
        let mean = link.sojourn_mean_s.unwrap();
        assert!(low.min(high) <= mean && mean <= low.max(high), "{aqm}: {low} {mean} {high}");
        let p99 = |metrics: &FlowMetrics| metrics.sojourn_p99_s.unwrap();
        assert!(groups.iter().any(|group| p99(group) >= 0.99 * link.sojourn_p99_s.unwrap()), "{aqm}");
        // Acknowledgements go the other way, where nothing is recorded: who sends nothing has waited for nothing.
        plan.flows[19].on.clear();
        assert_eq!(answer(&plan).flows["sparse"]["all"].sojourn_mean_s, None);
    }
}

#[test]
fn fq_codel_keeps_the_delay_near_its_target_where_droptail_fills_the_buffer() {
    let codel = answer(&apart("fq-codel").plan());
    let droptail = answer(&twenty("droptail").plan());
    let mean = |result: &RunResult| steady(result).sojourn_mean_s.unwrap();
    // A flow of twenty has a packet every 20 ms: CoDel cannot hold 5 ms, but a few packets.
    assert!(mean(&codel) < 0.08 && mean(&droptail) > 0.15, "{} {}", mean(&codel), mean(&droptail));
}

/// Sets a parameter of the bottleneck's AQM.
fn set(plan: &mut Plan, key: &str, value: OwnedValue) {
    let link = plan.links.iter_mut().find(|link| link.name == "bottleneck").unwrap();
    link.aqm.values.push((key.into(), value));
}

#[test]
fn cake_follows_the_links_rate() {
    // From 8 to 1 Mbit/s after 10 s: a packet of 1514 B then takes 12.1 ms, so that CAKE lets 48 ms be,
    // where it let 6 ms be before.
    let mut plan = Dumbbell { flows: 1, ..twenty("cake") }.plan();
    let link = plan.links.iter_mut().find(|link| link.name == "bottleneck").unwrap();
    link.rates.push((Instant::ZERO + Span::from_secs(10), Rate::from_bps(1_000_000)));
    let followed = steady(&answer(&plan)).sojourn_mean_s.unwrap();
    set(&mut plan, "rate", OwnedValue::Number(8e6));
    let told = steady(&answer(&plan)).sojourn_mean_s.unwrap();
    assert!(followed > 1.1 * told, "{followed} {told}");
}

#[test]
fn dualpi2_holds_classic_traffic_near_its_target_of_15_ms() {
    let result = answer(&twenty("dualpi2").plan());
    let link = steady(&result);
    let delay = link.sojourn_mean_s.unwrap();
    assert!((0.010..0.020).contains(&delay), "{link:?}");
    assert!(link.utilization.unwrap() > 0.9, "{link:?}");
    // It marks, and does not drop, what can be marked.
    assert!(link.marked_pkts > 0 && link.early_dropped_pkts == 0, "{link:?}");
    // Another target is held as well.
    let mut slower = twenty("dualpi2");
    slower.values = vec![("target", 0.040)];
    let delay = steady(&answer(&slower.plan())).sojourn_mean_s.unwrap();
    assert!((0.032..0.048).contains(&delay), "{delay}");
}

#[test]
fn an_unknown_value_is_refused_by_name() {
    let mut plan = twenty("fq-codel").plan();
    plan.links[0].aqm.values = vec![("quantum".into(), OwnedValue::Number(0.0))];
    let error = run(&plan, Options::default(), &mut |_| true).map(drop).unwrap_err().to_string();
    assert_eq!(error, "link bottleneck: fq-codel: quantum = 0: must be a number of at least 1, at most 1000000000 (B)");
}

#[test]
fn a_slower_timer_of_the_hash_changes_the_neighbours_of_sfq() {
    let mut plan = twenty("sfq").plan();
    plan.duration = Span::from_secs(20);
    let still = answer(&plan);
    plan.links[0].aqm.values = vec![("perturb".into(), OwnedValue::Number(1.0))];
    let moving = answer(&plan);
    assert_ne!(
        serde_json::to_string(&still.links).unwrap(),
        serde_json::to_string(&moving.links).unwrap(),
        "the timer runs"
    );
}
