//! SCTP and RTP in the packet engine: they fill links, share them, and adapt.

use aqumen_result::{FlowMetrics, RunResult};
use aqumen_scenario::Scenario;
use aqumen_sim::Options;

/// A dumbbell of `rate` and 20 ms, a queue of 50 packets, access links of 100 Mbit/s and 5 ms: a round trip of 60 ms.
fn scenario(rate: &str, secs: u32, rest: &str) -> Scenario {
    let text = format!(
        "name = \"t\"\nduration = \"{secs}s\"\n\
        [topology]\npreset = \"dumbbell\"\n\
        bottleneck = {{ rate = \"{rate}\", delay = \"20ms\", buffer = \"50pkt\" }}\n\
        access = {{ rate = \"100Mbit\", delay = \"5ms\" }}\n{rest}"
    );
    Scenario::parse(&text, "t.toml").unwrap()
}

fn run(scenario: &Scenario, seed: u64) -> RunResult {
    let plan = scenario.plan(seed, None).unwrap();
    aqumen_sim::run(&plan, Options::default(), &mut |_| true).unwrap()
}

fn flow<'r>(result: &'r RunResult, group: &str, window: &str) -> &'r FlowMetrics {
    &result.flows[group][window]
}

fn group(name: &str, count: u32, transport: &str, rest: &str) -> String {
    format!(
        "[[flows]]\nname = \"{name}\"\ncount = {count}\nstart = [\"0s\", \"1s\"]\ntransport = {transport}\n{rest}\n"
    )
}

#[test]
fn an_sctp_bulk_flow_fills_a_link() {
    let result = run(&scenario("8Mbit", 30, &group("sctp", 1, "\"sctp\"", "")), 1);
    let link = &result.links["bottleneck"]["steady"];
    assert!(link.utilization.unwrap() > 0.97, "{link:?}");
    let sctp = flow(&result, "sctp", "steady");
    // 1452 bytes of data in packets of 1500.
    let most = 8e6 * 1452.0 / 1500.0;
    assert!((0.95 * most..1.001 * most).contains(&sctp.goodput_bps), "{sctp:?}");
    assert!(sctp.retransmitted_ratio.unwrap() < 0.02, "{sctp:?}");
    // Round trip 60 ms and a queue of up to 50 packets of 1.5 ms; a held SACK adds more.
    assert!((0.06..0.15).contains(&sctp.rtt_mean_s.unwrap()), "{sctp:?}");
}

#[test]
fn sctp_shares_a_link_with_newreno() {
    let flows = group("sctp", 4, "\"sctp\"", "")
        + &group("tcp", 4, "{ preset = \"ns2\", variant = \"newreno\", packet = \"1500B\" }", "");
    let result = run(&scenario("8Mbit", 60, &flows), 1);
    let [sctp, tcp] = ["sctp", "tcp"].map(|group| flow(&result, group, "steady").goodput_bps);
    assert!((0.5..2.0).contains(&(sctp / tcp)), "{sctp} {tcp}");
    assert!(result.links["bottleneck"]["steady"].utilization.unwrap() > 0.97);
}

#[test]
fn an_sctp_transfer_arrives_whole_and_marks_replace_losses() {
    let transfer = "transfer = \"2MB\"\n";
    let flows = group("sctp", 2, "{ preset = \"sctp\", ecn = true, streams = 3 }", transfer);
    let scenario = scenario("8Mbit", 20, &flows);
    let red = scenario.aqm("red:min_th=5pkt,max_th=15pkt").unwrap();
    let plan = scenario.plan(1, Some(&red)).unwrap();
    let result = aqumen_sim::run(&plan, Options::default(), &mut |_| true).unwrap();
    let sctp = flow(&result, "sctp", "all");
    assert_eq!(sctp.goodput_bps * 20.0 / 8.0, 4e6, "{sctp:?}");
    assert!(result.links["bottleneck"]["all"].marked_pkts > 0);
}

/// 1.5 Mbit/s of RTP alone in 2 Mbit/s; from 40 s to 80 s with 1.4 Mbit/s of UDP that heeds nothing.
#[test]
fn rtp_makes_room_and_comes_back() {
    for preset in ["rtp", "rtp-tfrc", "rtp-nada"] {
        let flows = group("rtp", 1, &format!("\"{preset}\""), "")
            + "[[flows]]\nname = \"cbr\"\ntransport = \"udp\"\nstart = \"40s\"\nstop = \"80s\"\n\
            traffic = { kind = \"cbr\", rate = \"1.4Mbit\" }\n\
            [windows]\nbefore = [\"20s\", \"40s\"]\nduring = [\"50s\", \"80s\"]\nafter = [\"120s\", \"160s\"]\n";
        let result = run(&scenario("2Mbit", 160, &flows), 1);
        let [before, during, after] =
            ["before", "during", "after"].map(|window| flow(&result, "rtp", window).goodput_bps / 1e6);
        assert!((1.45..1.55).contains(&before), "{preset} {before}");
        assert!((0.1..0.75).contains(&during), "{preset} {during}");
        assert!((1.3..1.55).contains(&after), "{preset} {after}");
    }
}

#[test]
fn an_application_over_rtp_offers_what_the_transport_allows() {
    // A source of 4 Mbit/s over RTP that is held to 600 kbit/s; where the rate is fixed nobody tells it one.
    for (control, bps) in [("aaqm", 6e5), ("tfrc", 6e5), ("nada", 6e5), ("fixed", 4e6)] {
        let held = "min_rate = \"600kbit\", initial_rate = \"600kbit\", max_rate = \"600kbit\"";
        let transport = format!("{{ preset = \"rtp\", control = \"{control}\", {held} }}");
        let traffic = "traffic = { kind = \"cbr\", rate = \"4Mbit\", packet = \"1000B\" }";
        let result = run(&scenario("20Mbit", 20, &group("rtp", 1, &transport, traffic)), 1);
        // A packet more or less in 18 s.
        let goodput = flow(&result, "rtp", "steady").goodput_bps;
        assert!((goodput - bps).abs() <= 8000.0 / 18.0 + 1.0, "{control} {goodput}");
    }
}

#[test]
fn shortcuts_give_the_same_bits() {
    let flows = group("sctp", 2, "{ preset = \"sctp\", receive_window = \"30kB\" }", "")
        + &group("rtp", 2, "\"rtp-nada\"", "")
        + &group("tcp", 1, "\"modern\"", "");
    let plan = scenario("4Mbit", 10, &flows).plan(1, None).unwrap();
    let figures = |every_hop| {
        let options = Options { every_hop, every_service: every_hop, ..Options::default() };
        let result = aqumen_sim::run(&plan, options, &mut |_| true).unwrap();
        (format!("{:?}", result.flows), format!("{:?}", result.links))
    };
    assert_eq!(figures(false), figures(true));
}

#[test]
fn a_flow_that_is_stopped_sends_no_more() {
    for transport in ["\"sctp\"", "{ preset = \"udp\", packet = \"1000B\" }"] {
        let traffic = if transport.contains("udp") { "traffic = { kind = \"cbr\", rate = \"1Mbit\" }\n" } else { "" };
        let text = format!(
            "[[flows]]\nname = \"f\"\nstart = \"0s\"\nstop = \"2s\"\ntransport = {transport}\n{traffic}[windows]\non = [\"0s\", \"2s\"]\n\
             off = [\"3s\", \"5s\"]\n"
        );
        let result = run(&scenario("8Mbit", 5, &text), 1);
        assert!(flow(&result, "f", "on").goodput_bps > 5e5, "{transport}");
        assert_eq!(flow(&result, "f", "off").goodput_bps, 0.0, "{transport}");
        assert_eq!(result.links["bottleneck"]["off"].arrivals_pkts, 0, "{transport}");
    }
}
