//! Flows that applications drive, over TCP and other transports, from scenario text to figures worked out by hand.

use aqumen_result::{FlowMetrics, LinkMetrics, RunResult};
use aqumen_scenario::Scenario;

/// A dumbbell of 8 Mbit/s and 20 ms with access links of 80 Mbit/s and 5 ms, run for `secs` seconds.
fn run(secs: u32, seed: u64, flows: &str) -> RunResult {
    let text = format!(
        "name = \"t\"\nduration = \"{secs}s\"\n\
        [topology]\npreset = \"dumbbell\"\n\
        bottleneck = {{ rate = \"8Mbit\", delay = \"20ms\", buffer = \"50pkt\" }}\n\
        access = {{ rate = \"80Mbit\", delay = \"5ms\" }}\n{flows}"
    );
    let plan = Scenario::parse(&text, "t.toml").unwrap().plan(seed, None).unwrap();
    aqumen_sim::run(&plan, Default::default(), &mut |_| true).unwrap()
}

fn flow<'r>(result: &'r RunResult, group: &str) -> &'r FlowMetrics {
    &result.flows[group]["all"]
}

fn bottleneck(result: &RunResult) -> &LinkMetrics {
    &result.links["bottleneck"]["all"]
}

const CBR: &str = "[[flows]]\nname = \"cbr\"\ntransport = { preset = \"udp\", packet = \"1000B\" }\n";

#[test]
fn a_lone_constant_rate_flow_meets_an_empty_queue() {
    // 972 bytes of data in packets of 1000: one every 7.776 ms at 1 Mbit/s.
    let result = run(10, 1, &format!("{CBR}traffic = {{ kind = \"cbr\", rate = \"1Mbit\", packet = \"972B\" }}\n"));
    let cbr = flow(&result, "cbr");
    // Twice 100 us on the access links, 1 ms on the bottleneck, 30 ms of propagation.
    assert!((cbr.delay_mean_s.unwrap() - 0.0312).abs() < 1e-9, "{cbr:?}");
    assert_eq!((cbr.jitter_mean_s, cbr.loss_ratio), (Some(0.0), Some(0.0)));
    assert!((cbr.goodput_bps - 1e6).abs() < 0.005 * 1e6, "{cbr:?}");
    assert_eq!(bottleneck(&result).queue_mean_pkts, 0.0);
}

#[test]
fn what_a_constant_rate_exceeds_the_capacity_by_is_lost() {
    // 16 Mbit/s on the wire into 8: every other packet is lost once the queue of 50 is full.
    let result =
        run(10, 1, &format!("{CBR}traffic = {{ kind = \"cbr\", rate = \"15.552Mbit\", packet = \"972B\" }}\n"));
    let link = bottleneck(&result);
    assert!((link.utilization.unwrap() - 1.0).abs() < 0.005, "{link:?}");
    let lost = link.overflow_dropped_pkts;
    assert!((link.overflow_drop_ratio.unwrap() - 0.5).abs() < 0.005, "{link:?}");
    // Of the packets that the sink knows of, as many are missing as the queue dropped, but for the last few.
    assert!((flow(&result, "cbr").loss_ratio.unwrap() - lost as f64 / link.arrivals_pkts as f64).abs() < 0.005);
    let waiting = link.arrivals_pkts - link.departures_pkts - lost;
    assert!(waiting <= 51, "{link:?}");
}

#[test]
fn what_is_written_while_the_window_is_full_needs_no_events() {
    // Twice what the link carries, in packets of 960 bytes of data; stopped for two seconds.
    let text = "name = \"t\"\nduration = \"20s\"\n[topology]\npreset = \"dumbbell\"\n\
        bottleneck = { rate = \"4Mbit\", delay = \"20ms\", buffer = \"50pkt\" }\n\
        access = { rate = \"80Mbit\", delay = \"5ms\" }\n[[flows]]\nname = \"calls\"\ncount = 4\nstart = [\"0s\", \"1s\"]\n\
        transport = { preset = \"ns2\", packet = \"1000B\", send_overhead = \"500us\" }\n\
        traffic = { kind = \"on-off\", rate = \"4Mbit\", packet = \"960B\", on = { law = \"pareto\", mean = \"500ms\", shape = 1.5 }, \
        off = { law = \"exponential\", mean = \"500ms\" } }\n\
        [[events]]\nat = \"8s\"\nstop = \"calls\"\n[[events]]\nat = \"10s\"\nresume = \"calls\"\n";
    let plan = Scenario::parse(text, "t.toml").unwrap_or_else(|error| panic!("{error}")).plan(1, None).unwrap();
    let of = |every_hop| {
        let options = aqumen_sim::Options { every_hop, ..Default::default() };
        aqumen_sim::run(&plan, options, &mut |_| true).unwrap()
    };
    let (quick, slow) = (of(false), of(true));
    assert_eq!(format!("{:?} {:?}", quick.flows, quick.links), format!("{:?} {:?}", slow.flows, slow.links));
    // A packet leaves its sender after the overhead and comes to the queue, its acknowledgement to that of the way back
    // and to the sender: four, and as many more as are written into an open window. Two packets are written for each.
    let (packets, events) = (bottleneck(&quick).arrivals_pkts as f64, quick.cost.events as f64);
    assert!((3.5..4.8).contains(&(events / packets)), "{events} events of {packets} packets");
}

const WEB: &str = "[[flows]]\nname = \"web\"\ncount = 50\ntransport = \"modern\"\n\
    traffic = { kind = \"transfers\", rate = \"20/s\", size = { law = \"pareto\", mean = \"12kB\", shape = 1.5 } }\n";

#[test]
fn poisson_transfers_deliver_what_they_ask_for() {
    let result = run(60, 1, WEB);
    // 20 transfers of 12 kB a second are 1.92 Mbit/s; with shape 1.5 the sample mean converges slowly.
    let goodput = flow(&result, "web").goodput_bps;
    assert!((1.0e6..4.0e6).contains(&goodput), "{goodput}");
    assert!(flow(&result, "web").rtt_mean_s.is_some_and(|rtt| (0.06..0.2).contains(&rtt)));
}

#[test]
fn applications_do_the_same_for_the_same_seed_and_not_for_another() {
    let figures = |seed| {
        let result = run(5, seed, &format!("{WEB}{CBR}traffic = {{ kind = \"cbr\", rate = \"1Mbit\" }}\n"));
        (flow(&result, "web").clone(), flow(&result, "cbr").clone(), bottleneck(&result).clone())
    };
    assert_eq!(figures(1), figures(1));
    assert_ne!(figures(1), figures(2));
}

#[test]
fn requests_of_a_group_go_to_those_that_stayed_and_those_that_came_back() {
    // 20 requests a second that take 121 ms each, the handshake with it, for three flows: 2.43 at a time, of which
    // Erlang's formula refuses .273; of two flows it would be .463. Two of the flows leave at 10 s and are back at 11
    // s.
    let web = "[[flows]]\nname = \"web\"\ncount = 3\ntransport = { preset = \"ns2\", packet = \"1000B\" }\n\
        traffic = { kind = \"transfers\", rate = \"20/s\", size = \"960B\" }\n\
        [[events]]\nat = \"10s\"\nstop = \"web\"\ncount = 2\n[[events]]\nat = \"11s\"\nresume = \"web\"\ncount = 2\n\
        [windows]\nlate = [\"12s\", \"92s\"]\n";
    let web = run(95, 1, web).flows["web"]["late"].clone();
    let done = web.completions.iter().find(|(name, _)| *name == "fct_under_10kB_count").unwrap().1.unwrap();
    let refused = web.refused.unwrap() as f64;
    // 1600 in 80 s, with a standard deviation of 40.
    assert!((done + refused - 1600.0).abs() < 132.0, "{done} {refused}");
    assert!((0.22..0.33).contains(&(refused / (done + refused))), "{done} {refused}");
}

/// Pages of a main object and of `objects` others, each one packet of 1000 B with a connection of its own.
fn page_load(objects: u32, connections: u32) -> f64 {
    let result = run(
        10,
        1,
        &format!(
            "[[flows]]\nname = \"web\"\ntransport = {{ preset = \"ns2\", packet = \"1000B\" }}\n\
             traffic = {{ kind = \"web\", connection = \"object\", main = \"960B\", embedded = \"960B\", parsing = \"10ms\", \
             objects = {objects}, reading = \"1s\", connections = {connections} }}\n"
        ),
    );
    let web = flow(&result, "web");
    assert!(web.pages > Some(3) && web.timeouts == Some(0) && bottleneck(&result).overflow_dropped_pkts == 0);
    web.page_load_mean_s.unwrap() * 1e3
}

#[test]
fn pages_load_as_fast_as_their_connections_allow() {
    // A packet of 40 B takes 48 us on three links and 30 ms of propagation, one of 1000 B 1.2 ms and 30 ms. A transfer:
    // SYN, its acknowledgement, the data (there after 91.296 ms), the acknowledgement, after which the next begins.
    let (there, done, parsing) = (91.296, 121.344, 10.0);
    // One after another.
    let sequential = done + parsing + 5.0 * done + there;
    assert!((page_load(6, 1) - sequential).abs() < 1e-3, "{} {sequential}", page_load(6, 1));
    // All six at once: their data leave the bottleneck one after another, 1 ms each.
    let parallel = done + parsing + there + 5.0;
    assert!((page_load(6, 6) - parallel).abs() < 1e-3, "{} {parallel}", page_load(6, 6));
    // Twelve on six: each connection takes the next as soon as it is done.
    let twice = done + parsing + done + there + 5.0;
    assert!((page_load(12, 6) - twice).abs() < 1e-3, "{} {twice}", page_load(12, 6));
}

#[test]
fn a_session_that_is_stopped_goes_on_with_what_it_waited_for() {
    // The page is stopped while its main object is under way, and goes on before that is there.
    let web = "[[flows]]\nname = \"web\"\ntransport = { preset = \"ns2\", packet = \"1000B\" }\n\
        off = [[\"10ms\", \"20ms\"]]\n\
        traffic = { kind = \"web\", connection = \"object\", main = \"960B\", embedded = \"960B\", parsing = \"10ms\", \
        objects = 1, pages = 1 }\n";
    let result = run(10, 1, web);
    let web = flow(&result, "web");
    assert_eq!((web.pages, web.goodput_bps), (Some(1), 2.0 * 960.0 * 8.0 / 10.0));
    assert!((web.page_load_mean_s.unwrap() * 1e3 - (121.344 + 10.0 + 91.296)).abs() < 1e-3, "{web:?}");
}

#[test]
fn what_a_session_had_planned_when_it_was_stopped_comes_when_it_goes_on() {
    // Stopped while the page is parsed, from 121.344 to 131.344 ms: the embedded object is asked for
    // at 200 ms, or when it is due.
    for (off, asked_ms) in [("[\"125ms\", \"200ms\"]", 200.0), ("[\"125ms\", \"128ms\"]", 131.344)] {
        let web = format!(
            "[[flows]]\nname = \"web\"\ntransport = {{ preset = \"ns2\", packet = \"1000B\" }}\noff = [{off}]\n\
            traffic = {{ kind = \"web\", connection = \"object\", main = \"960B\", embedded = \"960B\", parsing = \"10ms\", \
            objects = 1, pages = 1 }}\n"
        );
        let result = run(10, 1, &web);
        let web = flow(&result, "web");
        assert_eq!(web.pages, Some(1));
        assert!((web.page_load_mean_s.unwrap() * 1e3 - (asked_ms + 91.296)).abs() < 1e-3, "{web:?}");
    }
}

/// A viewer of a film, and more of the scenario.
fn film(secs: u32, kind: &str, more: &str) -> RunResult {
    let flows = format!(
        "[[flows]]\nname = \"film\"\ntransport = {{ preset = \"modern\", packet = \"1000B\" }}\n\
        traffic = {{ kind = \"adaptive-video\", {kind} }}\n{more}"
    );
    run(secs, 1, &flows)
}

#[test]
fn a_film_takes_the_highest_bit_rate_that_it_can_have() {
    // 8 Mbit/s carry at most 7.6 of data, of which a share of 0.8 is 6.1: 6.2 is out of reach. A first segment of 4
    // Mbit comes at more than 5 Mbit/s though its window has to open, so that the next ones have 4.
    let kind = "ladder = [\"1Mbit\", \"4Mbit\", \"6200kbit\"], segment = \"4s\", buffer = \"20s\", play_at = \"8s\"";
    let result = film(100, kind, "[windows]\nlate = [\"40s\", \"100s\"]\n");
    let [all, late] = ["all", "late"].map(|window| &result.flows["film"][window]);
    assert_eq!((all.video_began, all.video_stalls, all.video_stalled_ratio), (Some(1), Some(0), Some(0.0)));
    assert!((late.video_bitrate_mean_bps.unwrap() - 4e6).abs() < 1e-3 && late.video_switches == Some(0), "{late:?}");
    assert_eq!(all.video_switches, Some(1));
    // In the long run as much comes as is shown: 15 segments in 60 s, or one less or more.
    assert!((late.goodput_bps - 4e6).abs() <= 4e6 / 15.0, "{late:?}");
    // Segments of 4 and 16 Mbit at 8 Mbit/s are 2.5 s; handshake and slow start come on top.
    assert!(all.video_startup_mean_s.is_some_and(|s| (2.5..3.5).contains(&s)), "{all:?}");
    assert!(late.video_startup_mean_s.is_none() && late.video_began == Some(1));
}

#[test]
fn a_film_stalls_where_the_link_is_slower_than_its_lowest_bit_rate() {
    // 1 Mbit/s of film over a link that carries 0.5 from 10 s on: it is shown half of the time at most.
    let kind = "ladder = [\"1Mbit\", \"2Mbit\"], segment = \"1s\", buffer = \"5s\", play_at = \"2s\"";
    let slower = "[[events]]\nat = \"10s\"\ncapacity = \"500kbit\"\n[windows]\nlate = [\"20s\", \"100s\"]\n";
    let result = film(100, kind, slower);
    let late = &result.flows["film"]["late"];
    let shown = 1.0 - late.video_stalled_ratio.unwrap();
    assert!((shown - late.goodput_bps / 1e6).abs() < 0.05 && shown < 0.5, "{late:?}");
    // Two segments are shown after each stall: some 4 s from one to the next.
    assert!(late.video_stalls.is_some_and(|stalls| (17..=22).contains(&stalls)), "{late:?}");
    assert!((late.video_bitrate_mean_bps.unwrap() - 1e6).abs() < 1e-3, "{late:?}");
    // Other groups have nothing of it.
    assert_eq!(flow(&run(10, 1, WEB), "web").video_stalls, None);
}
