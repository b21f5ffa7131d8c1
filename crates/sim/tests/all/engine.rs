//! The engine against what can be worked out by hand, and against itself run another way.

use crate::common;

use aqumen_result::{LinkMetrics, RunResult};
use aqumen_scenario::{Plan, Scenario};
use aqumen_sim::{Error, Options, Partitioning, run};
use aqumen_transport::tcp::{TcpConfig, Variant};
use aqumen_units::{Bytes, Instant, Rate, Span};
use common::Dumbbell;
use proptest::prelude::*;

fn answer(plan: &Plan, options: Options<'_>) -> RunResult {
    run(plan, options, &mut |_| true).unwrap()
}

/// Links and flows as printed: equal texts are equal bits.
fn printed(result: &RunResult) -> (String, String) {
    (serde_json::to_string(&result.links).unwrap(), serde_json::to_string(&result.flows).unwrap())
}

fn bottleneck(result: &RunResult) -> &LinkMetrics {
    &result.links["bottleneck"]["all"]
}

/// One flow with a window of ten segments on an otherwise empty path.
fn lone_flow() -> Dumbbell {
    let transport = TcpConfig { receive_window: 10, send_overhead: Span::ZERO, ecn: true, ..TcpConfig::ns2() };
    Dumbbell { flows: 1, transport, ..Dumbbell::exp1("droptail", 60) }
}

#[test]
fn a_window_limited_flow_sends_its_window_each_round_trip() {
    let plan = lone_flow().plan();
    let steady = &answer(&plan, Options::default()).flows["ftp"]["steady"];
    // Out: 1000 B at 10, 8, 10 Mbit/s: 0.8 + 1 + 0.8 ms. Back: 40 B likewise: 0.032 + 0.04 + 0.032 ms. Plus the delays.
    let delays: f64 = plan.links.iter().map(|link| link.delay.as_secs_f64()).sum();
    let rtt = delays + 2.6e-3 + 0.104e-3;
    let expected = 10.0 * 960.0 * 8.0 / rtt;
    // Over 54 s a window more or less at either end: 10 / (54 / rtt) of it.
    assert!((steady.goodput_bps / expected - 1.0).abs() < rtt / 54.0, "{} {expected}", steady.goodput_bps);
    assert_eq!(steady.retransmitted_ratio, Some(0.0));
    assert_eq!(steady.jain_fairness, Some(1.0));
}

#[test]
fn a_wait_is_no_event_at_a_sender_or_a_receiver() {
    let events = |send_overhead, delayed_ack| {
        let mut dumbbell = lone_flow();
        (dumbbell.transport.send_overhead, dumbbell.transport.delayed_ack) = (send_overhead, delayed_ack);
        let result = answer(&dumbbell.plan(), Options::default());
        // Each tenth of a second there is a sample.
        (result.cost.events as f64 - 600.0) / bottleneck(&result).arrivals_pkts as f64
    };
    // A segment comes to the bottleneck and its acknowledgement to the sender, whether that waits before it sends or
    // not.
    let (prompt, waits) = (events(Span::ZERO, None), events(Span::from_micros(500), None));
    assert!((prompt - 2.0).abs() < 0.05 && (waits - 2.0).abs() < 0.05, "{prompt} and {waits} events a packet");
    // Every other segment is acknowledged, by a receiver that answers ahead.
    let delayed = events(Span::ZERO, Some(Span::from_millis(500)));
    assert!((delayed - 1.5).abs() < 0.05, "{delayed} events a packet");
}

#[test]
fn a_datagram_is_as_many_events_however_the_network_is_parted() {
    let text = "name = \"t\"\nduration = \"60s\"\n[topology]\npreset = \"dumbbell\"\n\
         bottleneck = { rate = \"8Mbit\", delay = \"20ms\", buffer = \"50pkt\" }\n\
         access = { rate = \"80Mbit\", delay = \"5ms\" }\n[[flows]]\nname = \"calls\"\ncount = 2\n\
         transport = \"udp\"\ntraffic = { kind = \"cbr\", rate = \"400kbit\", packet = \"1000B\" }\n";
    let plan = Scenario::parse(text, "t.toml").unwrap_or_else(|error| panic!("{error}")).plan(1, None).unwrap();
    for (processes, threads) in
        [(Partitioning::One, 1), (Partitioning::Paying, 1), (Partitioning::Apart, 1), (Partitioning::Apart, 2)]
    {
        let result = answer(&plan, Options { processes, threads, ..Options::default() });
        // It is written, comes to the bottleneck, and to the other end; each tenth of a second there is a sample.
        let each = (result.cost.events as f64 - 600.0) / bottleneck(&result).arrivals_pkts as f64;
        assert!((each - 3.0).abs() < 0.05, "{processes:?}, {threads}: {each} events a packet");
    }
}

#[test]
fn a_run_of_many_events_is_asked_about_each_million_of_them() {
    let rate = Rate::from_bps(1_000_000_000);
    let buffer_pkts = 100_000;
    let plan = Dumbbell { flows: 200, rate, access_rate: rate, buffer_pkts, ..Dumbbell::exp1("droptail", 10) }.plan();
    let mut asked = 0;
    let mut go_on = |_: f64| {
        asked += 1;
        true
    };
    let events = run(&plan, Options::default(), &mut go_on).unwrap().cost.events;
    // Beside the fifty that every run is asked.
    assert!(events > 1 << 21 && (50 + 1..=50 + (events >> 20)).contains(&asked), "{asked} of {events}");
}

#[test]
fn a_transfer_that_is_stopped_on_its_way_goes_on_and_begins_no_second_time() {
    for transport in ["ns2", "sctp"] {
        let text = format!(
            "name = \"t\"\nduration = \"10s\"\n[topology]\npreset = \"dumbbell\"\n\
             bottleneck = {{ rate = \"1Mbit\", delay = \"20ms\", buffer = \"50pkt\" }}\n\
             access = {{ rate = \"80Mbit\", delay = \"5ms\" }}\n\
             [[flows]]\nname = \"file\"\nstart = \"0s\"\ntransport = \"{transport}\"\ntransfer = \"100kB\"\n\
             [[events]]\nat = \"300ms\"\nstop = \"file\"\n[[events]]\nat = \"2s\"\nresume = \"file\"\n\
             [windows]\nwhole = [\"0s\", \"10s\"]\n"
        );
        let plan = Scenario::parse(&text, "t.toml").unwrap_or_else(|error| panic!("{error}")).plan(1, None).unwrap();
        let flow = &answer(&plan, Options::default()).flows["file"]["whole"];
        let bytes = flow.goodput_bps * 10.0 / 8.0;
        assert!((bytes - 100e3).abs() < 1500.0, "{transport}: {bytes}");
    }
}

#[test]
fn bursts_into_a_slower_link_wait_for_each_other() {
    // At 1 Mbit/s a packet takes 8 ms, a window of ten 80 ms: below the round trip of over 200 ms, so that every window
    // meets an empty link. The access link at 10 Mbit/s delivers one each 0.8 ms. Packet k of a burst waits
    // k (8 - 0.8) ms; once acknowledgements come 8 ms apart the burst stays spread, and nothing waits.
    let mut dumbbell = lone_flow();
    dumbbell.rate = Rate::from_bps(1_000_000);
    let result = answer(&dumbbell.plan(), Options::default());
    assert_eq!(result.links["bottleneck"]["steady"].queue_mean_pkts, 0.0);
    assert_eq!(result.links["bottleneck"]["steady"].sojourn_p99_s, Some(0.0));
    assert!(bottleneck(&result).queue_mean_pkts > 0.0, "slow start sends in bursts");
}

#[test]
fn a_full_buffer_drops_and_an_endless_queue_does_not() {
    let small = Dumbbell { buffer_pkts: 20, ..Dumbbell::exp1("droptail", 20) };
    assert!(bottleneck(&answer(&small.plan(), Options::default())).overflow_dropped_pkts > 0);
    let large = Dumbbell { buffer_pkts: 200_000, ..Dumbbell::exp1("droptail", 20) };
    assert_eq!(bottleneck(&answer(&large.plan(), Options::default())).overflow_dropped_pkts, 0);
}

#[test]
fn half_the_rate_from_the_middle_on_gives_three_quarters_of_the_packets() {
    let mut plan = Dumbbell { buffer_pkts: 2000, ..Dumbbell::exp1("droptail", 40) }.plan();
    let whole = bottleneck(&answer(&plan, Options::default())).clone();
    plan.links[0].rates.push((Instant::ZERO + Span::from_secs(20), Rate::from_bps(4_000_000)));
    let result = answer(&plan, Options::default());
    let halved = bottleneck(&result);
    // Half of 20 s at 1000 packets/s are lost to the slower rate. The buffer keeps the link busy throughout.
    let lost = whole.departures_pkts - halved.departures_pkts;
    assert!(lost.abs_diff(10_000) <= 5, "{lost}");
    assert!(halved.utilization.unwrap() > 0.97);
}

#[test]
fn a_flow_that_stops_frees_the_link_until_it_goes_on() {
    let mut dumbbell = lone_flow();
    dumbbell.duration = Span::from_secs(30);
    let mut plan = dumbbell.plan();
    let at = |secs| Instant::ZERO + Span::from_secs(secs);
    plan.flows[0].on = vec![(at(0), Some(at(10))), (at(20), None)].into();
    plan.windows = [("on", 2, 10), ("off", 11, 20), ("again", 22, 30)]
        .map(|(name, from, to)| aqumen_scenario::Window { name: name.into(), start: at(from), end: at(to) })
        .to_vec();
    let flows = &answer(&plan, Options::default()).flows["ftp"];
    assert_eq!(flows["off"].goodput_bps, 0.0);
    assert!(flows["on"].goodput_bps > 300e3 && flows["again"].goodput_bps > 300e3);
}

#[test]
fn flows_that_pause_behind_a_send_overhead_go_on() {
    let mut plan = Dumbbell::exp1("pi", 12).plan();
    let at = |secs| Instant::ZERO + Span::from_secs(secs);
    plan.flows.iter_mut().for_each(|flow| flow.on = vec![(at(0), Some(at(4))), (at(8), None)].into());
    plan.windows = vec![aqumen_scenario::Window { name: "again".into(), start: at(9), end: at(12) }];
    let again = &answer(&plan, Options::default()).links["bottleneck"]["again"];
    assert!(again.utilization.unwrap() > 0.9, "{:?}", again.utilization);
}

#[test]
fn each_sample_and_each_moment_of_the_agenda_is_an_event() {
    let plan = lone_flow().plan();
    let events = |plan: &Plan| answer(plan, Options::default()).cost.events;
    let before = events(&plan);
    // Over 60 s each 100 ms, each 50 ms, never; none at the end itself.
    for (interval_ms, more) in [(50, 1199 - 599), (60_001, -599)] {
        let mut other = plan.clone();
        other.sample_interval = Span::from_millis(interval_ms);
        assert_eq!(events(&other) as i64 - before as i64, more, "{interval_ms} ms");
    }
    // A window that begins and ends at moments of its own.
    let mut other = plan.clone();
    let at = |millis| Instant::ZERO + Span::from_millis(millis);
    other.windows.push(aqumen_scenario::Window { name: "odd".into(), start: at(7_777), end: at(8_888) });
    assert_eq!(events(&other) - before, 2);
}

#[test]
fn a_finite_transfer_delivers_its_bytes_and_no_more() {
    let transport = TcpConfig { send_overhead: Span::ZERO, ..TcpConfig::modern() };
    let mut plan = Dumbbell { flows: 5, transport, ..Dumbbell::exp1("red", 30) }.plan();
    plan.flows.iter_mut().for_each(|flow| flow.transfer = Some(Bytes(100_000)));
    let result = answer(&plan, Options::default());
    let bytes = result.flows["ftp"]["all"].goodput_bps * 30.0 / 8.0;
    assert!((bytes - 500_000.0).abs() < 1e-6, "{bytes}");
}

#[test]
fn the_same_seed_gives_the_same_bits_and_another_seed_others() {
    let dumbbell = Dumbbell::exp1("arm-pfc", 20);
    let once = answer(&dumbbell.plan(), Options::default());
    let again = answer(&dumbbell.plan(), Options::default());
    assert_eq!(printed(&once), printed(&again));
    assert_eq!(once.series, again.series);
    let other = Dumbbell { seed: 2, ..dumbbell };
    assert_ne!(printed(&once), printed(&answer(&other.plan(), Options::default())));
}

#[test]
fn two_aqms_meet_the_same_traffic() {
    let [pi, red] = ["pi", "red"].map(|aqm| Dumbbell::exp1(aqm, 1).plan());
    assert_eq!(pi.flows, red.flows);
    for (a, b) in pi.links.iter().zip(&red.links) {
        assert_eq!((a.delay, &a.rates), (b.delay, &b.rates));
    }
}

#[test]
fn an_aqm_that_does_not_exist_or_fit_is_named() {
    let failure = |dumbbell: Dumbbell| match run(&dumbbell.plan(), Options::default(), &mut |_| true) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("the run should not start"),
    };
    assert_eq!(failure(Dumbbell::exp1("pie-in-the-sky", 1)), "link bottleneck: there is no AQM called pie-in-the-sky");
    let mut negative = Dumbbell::exp1("pi", 1);
    negative.values = vec![("target", -1.0)];
    assert_eq!(failure(negative), "link bottleneck: pi: target = -1: must be a number above 0 (pkt)");
}

#[test]
fn a_host_can_stop_a_run() {
    let plan = Dumbbell::exp1("pi", 20).plan();
    let stopped = run(&plan, Options::default(), &mut |fraction: f64| fraction < 0.5);
    assert!(matches!(stopped, Err(Error::Cancelled)));
}

#[test]
fn a_host_hears_of_each_fiftieth_of_a_short_run() {
    let mut heard = Vec::new();
    let mut hears = |fraction: f64| {
        heard.push(fraction);
        true
    };
    run(&lone_flow().plan(), Options::default(), &mut hears).unwrap();
    assert_eq!(heard, (1..=50).map(|k| f64::from(k) / 50.0).collect::<Vec<_>>());
}

fn dumbbells() -> impl Strategy<Value = Dumbbell> {
    let aqms = prop::sample::select(vec![
        "droptail", "red", "pi", "arm-pfc", "ared", "blue", "codel", "pie", "cobalt", "fq-codel", "fq-pie", "dualpi2",
        "cake", "sfq", "drr",
    ]);
    let variants = prop::sample::select(vec![Variant::Reno, Variant::NewReno, Variant::Sack]);
    let transport = (variants, any::<bool>(), any::<bool>(), any::<bool>(), 2u32..200, any::<bool>());
    (aqms, 1u32..40, 500_000u64..20_000_000, 1u32..120, transport, 0u64..1000).prop_map(
        |(aqm, flows, bps, buffer_pkts, (variant, ecn, modern, delayed, window, overhead), seed)| {
            let preset = if modern { TcpConfig::modern() } else { TcpConfig::ns2() };
            let transport = TcpConfig {
                variant,
                ecn,
                receive_window: window,
                delayed_ack: delayed.then_some(Span::from_millis(40)),
                send_overhead: if overhead { Span::from_micros(700) } else { Span::ZERO },
                ..preset
            };
            let base = Dumbbell::exp1(aqm, 4);
            Dumbbell { flows, rate: Rate::from_bps(bps), buffer_pkts, transport, seed, ..base }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Links computed without events, and departures computed at the arrival, change nothing.
    #[test]
    fn shortcuts_give_the_same_bits(dumbbell in dumbbells()) {
        let plan = dumbbell.plan();
        let quick = answer(&plan, Options::default());
        for (every_hop, every_service) in [(true, false), (false, true), (true, true)] {
            let slow = answer(&plan, Options { every_hop, every_service, ..Options::default() });
            prop_assert_eq!(printed(&quick), printed(&slow), "every hop {}, every service {}", every_hop, every_service);
            prop_assert_eq!(&quick.series, &slow.series);
        }
    }

    /// Packets in = out + dropped + still in the port; probabilities and shares stay in [0, 1].
    #[test]
    fn packets_are_conserved(dumbbell in dumbbells()) {
        let result = answer(&dumbbell.plan(), Options::default());
        let link = bottleneck(&result);
        let gone = link.departures_pkts + link.early_dropped_pkts + link.overflow_dropped_pkts;
        let held = link.arrivals_pkts - gone;
        prop_assert!(held <= dumbbell.buffer_pkts as u64 + 1, "{held} in the port");
        prop_assert!(link.marked_pkts <= link.arrivals_pkts);
        prop_assert!((0.0..=1.0).contains(&link.utilization.unwrap()));
        prop_assert!(link.queue_mean_pkts <= dumbbell.buffer_pkts as f64);
        prop_assert!(result.series["bottleneck"].probability.iter().all(|p| (0.0..=1.0).contains(p)));
        let goodput = result.flows["ftp"]["all"].goodput_bps;
        prop_assert!(goodput <= dumbbell.rate.as_bps() as f64, "{goodput}");
    }
}
