//! Metrics of flows, in scenarios small enough for hand calculation.

use aqumen_result::{FlowMetrics, LinkMetrics, RunResult};
use aqumen_scenario::Scenario;
use aqumen_sim::{Options, run};

/// Ten seconds over a link of 8 Mbit/s (a packet of 1000 bytes takes 1 ms) and 20 ms, with 0.01 ms and 5 ms at either
/// end, and a window `late` from 2 s to 10 s.
fn answer(buffer_pkts: u32, flows: &str) -> RunResult {
    answer_in(buffer_pkts, flows, "")
}

/// A scenario with more windows.
fn answer_in(buffer_pkts: u32, flows: &str, windows: &str) -> RunResult {
    let text = format!(
        r#"
        name = "small"
        duration = "10s"
        aqm = "droptail"
        [topology]
        preset = "dumbbell"
        [topology.bottleneck]
        rate = "8Mbit"
        delay = "20ms"
        buffer = "{buffer_pkts}pkt"
        [topology.access]
        rate = "800Mbit"
        delay = "5ms"
        {flows}
        [windows]
        late = ["2s", "10s"]
        {windows}
        [nominal]
        target = "3pkt"
        "#
    );
    let plan = Scenario::parse(&text, "small").unwrap().plan(1, None).unwrap();
    let result = run(&plan, Options::default(), &mut |_| true).unwrap();
    let slow =
        run(&plan, Options { every_hop: true, every_service: true, ..Options::default() }, &mut |_| true).unwrap();
    let printed = |result: &RunResult| serde_json::to_string(&(&result.links, &result.flows)).unwrap();
    assert_eq!(printed(&result), printed(&slow), "shortcuts change nothing");
    result
}

/// One sender of packets of 1000 bytes, 28 of them headers, at `kbit` of payload per second.
fn cbr(kbit: u32) -> String {
    format!(
        r#"
        [[flows]]
        name = "cbr"
        count = 1
        transport = "udp"
        traffic = {{ kind = "cbr", rate = "{kbit}kbit", packet = "972B" }}
        "#
    )
}

fn flows<'r>(result: &'r RunResult, group: &str) -> &'r FlowMetrics {
    &result.flows[group]["late"]
}

fn link(result: &RunResult) -> &LinkMetrics {
    &result.links["bottleneck"]["late"]
}

fn near(seen: Option<f64>, expect: f64, tolerance: f64) {
    let seen = seen.unwrap();
    assert!((seen - expect).abs() <= tolerance, "{seen} {expect}");
}

#[test]
fn a_constant_rate_over_an_idle_link_has_one_delay_and_loses_nothing() {
    // 972 bytes each 20 ms. Delay: 0.01 + 5 + 1 + 20 + 0.01 + 5 ms.
    let result = answer(10, &cbr(388));
    let seen = flows(&result, "cbr");
    near(seen.delay_mean_s, 0.03102, 1e-12);
    // Bins of 0.8 %.
    near(seen.delay_p99_s, 0.03102, 0.008 * 0.03102);
    assert_eq!((seen.jitter_mean_s, seen.loss_ratio, seen.loss_burst_mean_pkts), (Some(0.0), Some(0.0), None));
    // 388 kbit/s of payload; a packet more or less in 8 s.
    near(seen.throughput_bps, 388e3 * 1000.0 / 972.0, 1000.0);
    assert_eq!((seen.mos, seen.frames, seen.pages, seen.refused), (None, None, None, None));
}

#[test]
fn four_times_the_capacity_loses_three_packets_of_four_in_a_row() {
    // A packet each 0.25 ms, room for one: at each full millisecond the waiting packet starts and the one that arrives
    // takes its place for 1 ms, the next three find it full.
    let result = answer(1, &cbr(4 * 7776));
    let seen = flows(&result, "cbr");
    near(seen.loss_ratio, 0.75, 1e-4);
    assert_eq!(seen.loss_burst_mean_pkts, Some(3.0));
    near(seen.delay_mean_s, 0.03202, 1e-12);
    assert_eq!(seen.jitter_mean_s.map(|jitter| jitter < 1e-9), Some(true));
    let link = link(&result);
    assert_eq!((link.loss_run_max_pkts, link.loss_dispersion), (Some(3), Some(0.0)));
    near(link.loss_run_mean_pkts, 3.0, 1e-3);
    // One packet waits all the time, two below the target.
    assert_eq!((link.queue_p5_pkts, link.queue_p50_pkts, link.queue_p95_pkts), (Some(1.0), Some(1.0), Some(1.0)));
    near(link.queue_iae_pkts_s, 2.0 * 8.0, 1e-9);
    near(link.queue_ise_pkts2_s, 4.0 * 8.0, 1e-9);
    assert_eq!((link.settling_s, link.overshoot_pkts), (None, Some(0.0)));
}

#[test]
fn a_transfer_of_one_segment_takes_its_way() {
    // Each second 960 bytes of payload over a connection that is open, packets of 1000 bytes: 31.02 ms. Alone 30 ms and
    // 0.96 ms at 8 Mbit/s.
    let seen = answer(
        10,
        r#"
        [[flows]]
        name = "small"
        count = 1
        transport = "ns2"
        traffic = { kind = "transfers", size = "960B", think = "1s", new_connection = false }
        "#,
    );
    let seen = flows(&seen, "small");
    let value = |key| seen.completions.iter().find(|(name, _)| *name == key).unwrap().1;
    near(value("fct_under_10kB_mean_s"), 0.03102, 1e-4 * 0.03102);
    near(value("fct_under_10kB_slowdown"), 31.02 / 30.96, 1e-3);
    // A round trip and a second each.
    near(value("fct_under_10kB_count"), 8.0 / 1.06, 1.0);
    assert_eq!((value("fct_over_1MB_count"), value("fct_over_1MB_mean_s")), (Some(0.0), None));
    assert_eq!(seen.refused, Some(0));
}

#[test]
fn nobody_says_when_transfers_and_pages_in_datagrams_have_arrived() {
    for transport in ["udp", "rtp"] {
        for traffic in [
            r#"{ kind = "transfers", size = "3kB", think = "1s" }"#,
            r#"{ kind = "transfers", size = "3kB", rate = "2/s" }"#,
            r#"{ kind = "web", reading = "1s" }"#,
        ] {
            let group =
                format!("[[flows]]\nname = \"sent\"\ncount = 2\ntransport = \"{transport}\"\ntraffic = {traffic}\n");
            let seen = answer(10, &group);
            let seen = flows(&seen, "sent");
            assert!(seen.goodput_bps > 0.0, "{transport} {traffic}");
            let mut told = seen.completions.iter().filter(|(_, value)| value.is_some());
            assert_eq!(told.next(), None, "{transport} {traffic}");
            let pages = (seen.pages, seen.page_load_mean_s, seen.startup_mean_s, seen.refused);
            assert_eq!(pages, (None, None, None, Some(0)), "{transport} {traffic}");
        }
    }
}

#[test]
fn the_next_transfer_is_asked_for_when_the_last_one_is_acknowledged_over_sctp_too() {
    // A round trip of 61 ms, up to 200 ms in which the receiver waits for a second packet (RFC 9260 section 6.2), and a
    // second of thought each; the association is set up before 2 s.
    let traffic = "{ kind = \"transfers\", size = \"960B\", think = \"1s\", new_connection = false }";
    let result = answer(10, &format!("[[flows]]\nname = \"small\"\ntransport = \"sctp\"\ntraffic = {traffic}\n"));
    let done = flows(&result, "small").completions.iter().find(|(name, _)| *name == "fct_under_10kB_count").unwrap().1;
    near(done, 8.0 / 1.26, 1.0);
}

#[test]
fn a_transfer_over_an_association_of_its_own_waits_for_it_to_be_set_up() {
    // Four packets of a few bytes each come and go before the data leave: two round trips of 60 ms (RFC 9260 section
    // 5.1).
    let mean = |fresh: bool| {
        let traffic = format!("{{ kind = \"transfers\", size = \"960B\", think = \"1s\", new_connection = {fresh} }}");
        let result = answer(10, &format!("[[flows]]\nname = \"small\"\ntransport = \"sctp\"\ntraffic = {traffic}\n"));
        let seen =
            flows(&result, "small").completions.iter().find(|(name, _)| *name == "fct_under_10kB_mean_s").unwrap().1;
        seen.unwrap()
    };
    near(Some(mean(true) - mean(false)), 0.12, 0.002);
}

#[test]
fn requests_that_find_no_flow_idle_are_refused() {
    // A megabyte takes more than a second, and ten are asked for in each.
    let seen = answer(
        100,
        r#"
        [[flows]]
        name = "busy"
        count = 2
        transport = "modern"
        traffic = { kind = "transfers", size = "1MB", rate = "10/s" }
        "#,
    );
    let seen = flows(&seen, "busy");
    let done = seen.completions.iter().find(|(name, _)| *name == "fct_over_1MB_count").unwrap().1.unwrap();
    assert!((4.0..=8.0).contains(&done), "{done}");
    assert!(seen.refused.unwrap() > 40, "{:?}", seen.refused);
}

#[test]
fn equal_windows_share_as_one_over_the_round_trip_time() {
    // Windows of four packets never fill the link: 4 packets each 60, 160 and 260 ms and a little.
    let group = |name: &str, more: &str| {
        format!(
            r#"
            [[flows]]
            name = "{name}"
            count = 1
            transport = {{ preset = "ns2", receive_window = "4pkt" }}
            extra_rtt = "{more}"
            "#
        )
    };
    let result = answer(100, &[group("near", "0ms"), group("far", "100ms"), group("farther", "200ms")].concat());
    near(link(&result).rtt_fairness_slope, -1.0, 0.03);
    // Shares 13, 5 and 3: 21^2 / (3 (169 + 25 + 9)).
    near(link(&result).fairness_mean, 0.73, 0.05);
    assert_eq!(result.links["bottleneck"]["all"].convergence_s, None, "never at 0.9");
    assert_eq!(link(&result).convergence_s, None, "nothing starts");
    assert_eq!(link(&result).sync_index, None, "windows at their limit do not move");
}

#[test]
fn two_flows_alike_are_fair_soon_after_the_second_starts() {
    let flow = |name: &str, start: &str| {
        format!(
            r#"
            [[flows]]
            name = "{name}"
            count = 1
            transport = {{ preset = "ns2", receive_window = "8pkt" }}
            start = "{start}"
            "#
        )
    };
    // Slow start to 8 packets takes three round trips of 60 ms: 1 + 2 + 4, then 8 each 60 ms. In the first second of
    // both that is 7 + 8 (1 / 0.062 - 3) = 112 packets against 129: an index of 0.995.
    let result = answer(100, &[flow("first", "0s"), flow("second", "4s")].concat());
    near(link(&result).convergence_s, 1.0, 0.1 + 1e-9);
    near(link(&result).fairness_mean, 0.99, 0.01);
}

#[test]
fn a_window_tells_convergence_after_the_last_start_within_it() {
    // The same flows: two at 0 s and one at 6 s. Each has 7 + 8 (1 / 0.062 - 3) = 112 packets in its first second.
    let flow = |name: &str, count: u32, start: &str| {
        format!(
            r#"
            [[flows]]
            name = "{name}"
            count = {count}
            transport = {{ preset = "ns2", receive_window = "8pkt" }}
            start = "{start}"
            "#
        )
    };
    // What starts as a window begins starts in it; what starts as it ends does not.
    let windows = "before = [\"0s\", \"6s\"]\nafter = [\"6s\", \"10s\"]\nbetween = [\"1ms\", \"6s\"]\nbrief = [\"6s\", \"6900ms\"]";
    let result = answer_in(100, &[flow("two", 2, "0s"), flow("third", 1, "6s")].concat(), windows);
    let converged = |window: &str| result.links["bottleneck"][window].convergence_s;
    near(converged("before"), 1.0, 0.1 + 1e-9);
    near(converged("after"), 1.0, 0.1 + 1e-9);
    near(converged("all"), 1.0, 0.1 + 1e-9);
    assert_eq!(converged("between"), None, "nothing starts");
    assert_eq!(converged("brief"), None, "less than a second");
}

#[test]
fn a_call_over_an_idle_link_is_as_good_as_its_codec_and_delay() {
    // 160 + 28 bytes each 20 ms, without pauses. To the ear 30.19 ms and 20 ms of filling: Id = 1.61, R = 91.75, and
    // 1 + 3.211 + 91.75 * 31.75 * 8.25 * 7e-6 = 4.379.
    let result = answer(
        10,
        r#"
        [[flows]]
        name = "call"
        count = 1
        transport = "udp"
        traffic = { kind = "voip", codec = "g711", suppress = false }
        "#,
    );
    let seen = flows(&result, "call");
    near(seen.delay_mean_s, 0.03000376 + 0.000188, 1e-9);
    near(seen.r_factor, 91.75, 0.05);
    near(seen.mos, 4.379, 0.003);
    assert_eq!(seen.loss_ratio, Some(0.0));
}

#[test]
fn a_page_takes_its_objects_one_by_one() {
    // A page of three objects of one segment each on one connection: 31.02 ms to the last byte of an object, 61.06 ms
    // to its acknowledgement, 100 ms to parse the main object: 61.06 + 100 + 61.06 + 31.02 ms.
    let result = answer(
        10,
        r#"
        [[flows]]
        name = "web"
        count = 1
        transport = "ns2"
        [flows.traffic]
        kind = "web"
        main = "960B"
        objects = 2
        embedded = "960B"
        parsing = "100ms"
        reading = "1s"
        connection = "session"
        "#,
    );
    let seen = flows(&result, "web");
    near(seen.page_load_mean_s, 0.25314, 1e-4);
    // One each 1.253 s and a little more.
    assert!(seen.pages.is_some_and(|pages| (6..=7).contains(&pages)), "{:?}", seen.pages);
    assert_eq!((seen.mos, seen.frame_loss_ratio), (None, None));
}

/// The film of `examples/traces` through a queue that cannot hold its large frames.
#[test]
fn a_frame_that_the_queue_cannot_hold_is_lost() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/traces/life.txt");
    let video = format!(
        r#"
        [[flows]]
        name = "film"
        stop = "9.9s"
        transport = {{ preset = "udp", packet = "1500B" }}
        traffic = {{ kind = "video", file = "{file}", repeat = false, random_start = false }}
        "#
    );
    let result = answer(10, &video);
    let film = &result.flows["film"]["all"];
    // A frame comes in packets of 1500 B, 1472 of them data, 15 us apart; the link takes 1.5 ms for one. So the first
    // goes out, ten wait, and what comes beyond is dropped. Eleven take 16.5 ms, and the next frame comes after 40.
    let text = std::fs::read_to_string(file).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let sizes: Vec<u64> = lines.map(|line| line.split(' ').nth(3).unwrap().parse().unwrap()).collect();
    // Those of 0 s to 9.88 s.
    let sent = &sizes[..248];
    let packets = |size: &u64| size.div_ceil(1472);
    let lost = sent.iter().filter(|size| packets(size) > 11).count();
    let dropped: u64 = sent.iter().map(|size| packets(size).saturating_sub(11)).sum();
    assert!(lost > 20 && lost < 240, "{lost}");
    assert_eq!((film.frames, result.links["bottleneck"]["all"].overflow_dropped_pkts), (Some(248), dropped));
    near(film.frame_loss_ratio, lost as f64 / 248.0, 1e-12);
}

/// `count` flows of TCP of the preset `ns2` with `receive_window` packets of 1000 bytes and this `traffic`.
fn tcp(count: u32, receive_window: u32, traffic: &str) -> String {
    format!(
        r#"
        [[flows]]
        name = "tcp"
        count = {count}
        transport = {{ preset = "ns2", receive_window = "{receive_window}pkt", syn = false }}
        traffic = {traffic}
        "#
    )
}

#[test]
fn segments_over_an_idle_link_have_one_delay_and_none_is_lost() {
    // Five segments a round trip of 61 ms, at the pace of the link after the first burst: none waits.
    let result = answer(10, &tcp(1, 5, "\"bulk\""));
    let seen = flows(&result, "tcp");
    near(seen.delay_mean_s, 0.03102, 1e-12);
    assert_eq!((seen.jitter_mean_s, seen.loss_ratio), (Some(0.0), Some(0.0)));
    near(seen.delay_variation_p99_s, 0.0, 0.008 * 0.03102);
}

#[test]
fn what_the_queue_drops_the_groups_lose() {
    let result = answer(10, &tcp(4, 100, "\"bulk\""));
    let (seen, link) = (flows(&result, "tcp"), link(&result));
    near(seen.loss_ratio, link.overflow_drop_ratio.unwrap(), 0.02 * link.overflow_drop_ratio.unwrap());
    // Sojourns of up to 10 ms, beside 31.02 ms.
    assert!(seen.delay_p99_s.unwrap() < 0.0413 && seen.delay_variation_p95_s.unwrap() > 0.005, "{seen:?}");
    near(seen.delay_mean_s, 0.03102 + link.sojourn_mean_s.unwrap(), 0.0005);
    assert!(seen.jitter_mean_s.unwrap() > 0.0);
    // 4 flows; what is lost within a round trip of 61 ms hits at least one of them.
    let hit = link.loss_event_flows_mean.unwrap();
    assert!((1.0..=4.0).contains(&hit) && link.loss_sync_ratio == Some(hit / 4.0), "{link:?}");
    // Losses in 8 s: from the first to the last so many intervals less than losses.
    let mean = link.loss_interval_mean_s.unwrap();
    near(Some(mean * (link.overflow_dropped_pkts as f64 - 1.0)), 7.5, 0.75);
    assert!(link.loss_interval_p50_s.unwrap() <= link.loss_interval_p95_s.unwrap());
}

#[test]
fn a_transfer_starts_up_when_its_first_segment_arrives() {
    // Of 9600 bytes each: two segments leave at once, and the first takes 31.02 ms.
    let traffic = "{ kind = \"transfers\", size = \"9600B\", think = \"100ms\" }";
    let result = answer(10, &tcp(1, 100, traffic));
    let seen = flows(&result, "tcp");
    near(seen.startup_mean_s, 0.03102, 1e-9);
    near(seen.startup_p95_s, 0.03102, 0.008 * 0.03102);
    assert_eq!(flows(&answer(10, &tcp(1, 5, "\"bulk\"")), "tcp").startup_mean_s, None);
}
