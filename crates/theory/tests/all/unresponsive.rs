//! Traffic that ignores signals, in the equations: at rest by hand, above the capacity, on and
//! off, against the packet engine.

use aqumen_aqm::registry::AnyAqm;
use aqumen_aqm::{Pi, PiGains};
use aqumen_result::RunResult;
use aqumen_scenario::{Plan, Scenario};
use aqumen_theory::fluid::{self, Class, Control, Fluid, Model, Network, Options, Queue};
use aqumen_theory::{engine, predict};

fn run(plan: &Plan) -> RunResult {
    fluid::run(plan, Options::default(), &mut |_| true).unwrap()
}

fn parse(aqm: &str, groups: &str) -> Plan {
    let text = format!(
        "name = \"t\"\nduration = \"20s\"\naqm = \"{aqm}\"\n\
         [windows]\nbefore = [\"0s\", \"2s\"]\nfull = [\"6s\", \"10s\"]\nafter = [\"16s\", \"20s\"]\n\
         [topology]\npreset = \"dumbbell\"\n\
         bottleneck = {{ rate = \"8Mbit\", delay = \"20ms\", buffer = \"100pkt\" }}\n\
         access = {{ rate = \"800Mbit\", delay = \"5ms\" }}\n{groups}"
    );
    Scenario::parse(&text, "t.toml").unwrap().plan(1, None).unwrap()
}

/// Packets of 1000 bytes on the wire, 972 of them payload.
fn cbr(pps: u32, times: &str) -> String {
    format!(
        "[[flows]]\nname = \"udp\"\ncount = 2\ntransport = {{ preset = \"udp\", packet = \"1000B\" }}\n{times}\n\
         traffic = {{ kind = \"cbr\", rate = \"{}bit\", packet = \"972B\" }}\n",
        pps * 972 * 8 / 2
    )
}

#[test]
fn at_rest_the_flows_fill_what_is_let_in_of_the_load_leaves() {
    // W0^2 p0 = 2 and 100 W0 / R0 = 1250 - 250 (1 - p0) with R0 = 0.2 + 100/1250: W0 = 2.96, p0 = 0.228.
    let pi = Pi::new(PiGains::new(6.48e-4, 6.42e-4).unwrap(), 150.0, 100.0);
    let control = Control::Law(AnyAqm::custom_law(pi, true));
    let load = Class { rate_pps: Some(2.5), group: 1, ..Class::endless(Model::Drop, 100.0, 0.1, vec![0]) };
    let network = Network {
        classes: vec![Class::endless(Model::Hollot, 100.0, 0.2, vec![0]), load],
        queues: vec![Queue::new(1250.0, 300.0, control)],
        sample_at_start: true,
    };
    let mut fluid = Fluid::new(network, 1e-3).unwrap();
    fluid.advance(150_000_000_000);
    let (w, p) = (fluid.window_pkts(0), fluid.probability(0));
    assert!((fluid.queue_pkts(0) - 100.0).abs() < 0.1);
    assert!((w * w * p / 2.0 - 1.0).abs() < 2e-3, "{w} {p}");
    assert!((100.0 * w / 0.28 - (1250.0 - 250.0 * (1.0 - p))).abs() < 1.0, "{w} {p}");
    assert!((w - 2.96).abs() < 5e-3 && (p - 0.2283).abs() < 1e-3, "{w} {p}");
}

#[test]
fn above_the_capacity_the_queue_stands_at_its_limit_and_what_is_too_much_is_lost() {
    // 2000 packets/s at 1000, by the buffer's end alone: a half is lost.
    let plan = parse("droptail", &cbr(2000, ""));
    for result in [run(&plan), engine::run(&plan).unwrap()] {
        let (link, udp) = (&result.links["bottleneck"]["full"], &result.flows["udp"]["full"]);
        assert!((link.queue_mean_pkts - 100.0).abs() < 1e-6, "{}", link.queue_mean_pkts);
        assert!((link.overflow_drop_ratio.unwrap() - 0.5).abs() < 1e-6, "{link:?}");
        assert!((link.utilization.unwrap() - 1.0).abs() < 1e-6, "{link:?}");
        assert!((udp.loss_ratio.unwrap() - 0.5).abs() < 1e-6, "{udp:?}");
        assert!((udp.goodput_bps / (1000.0 * 972.0 * 8.0) - 1.0).abs() < 1e-6, "{}", udp.goodput_bps);
        // Two flows of one rate.
        assert!((udp.jain_fairness.unwrap() - 1.0).abs() < 1e-9, "{udp:?}");
        assert!(udp.rtt_mean_s.is_none() && udp.retransmitted_ratio == Some(0.0));
    }
    // A controller drops what is too much at a queue that is its own: only the fluid engine says where.
    let plan = parse("pi", &cbr(2000, ""));
    let message =
        "link bottleneck: its unresponsive load of 2000.0 packets/s leaves nothing of 1000.0; use engine fluid";
    assert_eq!(predict::predict(&plan).unwrap_err().to_string(), message);
}

#[test]
fn load_comes_goes_and_pauses_with_its_group() {
    // 600 of 1000 packets/s from 4 s to 14 s, but not from 11 s to 12 s: nothing waits, what arrives leaves.
    let plan = parse("droptail", &cbr(600, "start = \"4s\"\nstop = \"14s\"\noff = [[\"11s\", \"12s\"]]"));
    for result in [run(&plan), engine::run(&plan).unwrap()] {
        let rate = |window: &str| result.flows["udp"][window].goodput_bps / (972.0 * 8.0);
        assert!(rate("before") == 0.0 && rate("after") == 0.0);
        assert!((rate("full") - 600.0).abs() < 0.01, "{}", rate("full"));
        assert!((rate("all") - 600.0 * 9.0 / 20.0).abs() < 0.01, "{}", rate("all"));
        assert_eq!(result.flows["udp"]["full"].loss_ratio, Some(0.0));
        let before = &result.flows["udp"]["before"];
        assert_eq!((before.loss_ratio, before.retransmitted_ratio, before.jain_fairness), (None, None, None));
        assert!((result.links["bottleneck"]["full"].utilization.unwrap() - 0.6).abs() < 1e-4);
    }
    // Above the capacity it fills the buffer while it is there.
    let waiting = |at_s: f64, result: &RunResult| {
        let series = &result.series["bottleneck"];
        series.queue_pkts[series.t_s.iter().position(|t| *t >= at_s).unwrap()]
    };
    let result = run(&parse("droptail", &cbr(2000, "start = \"4s\"\nstop = \"14s\"")));
    assert!(waiting(3.9, &result) == 0.0 && waiting(15.0, &result) == 0.0);
    assert!((waiting(5.0, &result) - 100.0).abs() < 1e-6);
}

fn exp8(aqm: &str) -> Plan {
    let path = format!("{}/../../experiments/arm-pfc/exp8.toml", env!("CARGO_MANIFEST_DIR"));
    let scenario = Scenario::load(path, &[]).unwrap();
    scenario.plan(1, Some(&scenario.aqm(aqm).unwrap())).unwrap()
}

#[test]
fn experiment_8_is_what_the_packet_engine_measures() {
    // `aqumen run arm-pfc/exp8 --aqm pi-x1000 --json`, window steady.
    let (queue, rtt, loss) = (99.86, 0.2561, 0.1698);
    let plan = exp8("pi-x1000");
    let (fluid, theory) = (run(&plan), engine::run(&plan).unwrap());
    let link = &fluid.links["bottleneck"]["steady"];
    let (udp, tcp) = (&fluid.flows["udp"]["steady"], &fluid.flows["ftp"]["steady"]);
    assert!((link.queue_mean_pkts - queue).abs() < 1.0, "{}", link.queue_mean_pkts);
    assert!((tcp.rtt_mean_s.unwrap() / rtt - 1.0).abs() < 0.03, "{tcp:?}");
    let got = udp.loss_ratio.unwrap();
    assert!((loss / got - 1.0).abs() < 0.05, "{loss} {got}");
    // W0 (W0 + 2) p0 = 1.3098^2 and 120 W0 / R0 = C - u (1 - p0), in bytes: 1000 of a segment, 210 of a datagram.
    let p = udp.loss_ratio.unwrap();
    let w = (1.0 + 1.3098 * 1.3098 / p).sqrt() - 1.0;
    let balance = 120.0 * w / tcp.rtt_mean_s.unwrap() * 1000.0 + 1.5e6 / 8.0 * (1.0 - p);
    assert!((balance / 1.25e6 - 1.0).abs() < 0.02, "{balance}");
    // The offered 1.3 Mbit/s of payload, less what is lost.
    assert!((udp.goodput_bps / (150.0 * 17333.0 / 2.0 * (1.0 - p)) - 1.0).abs() < 1e-3, "{udp:?}");
    // The prediction is the same rest.
    let predicted = &theory.links["bottleneck"]["steady"];
    assert!((predicted.queue_mean_pkts - link.queue_mean_pkts).abs() < 1.0);
    for (a, b) in [
        (predicted.mark_ratio, link.mark_ratio),
        (predicted.early_drop_ratio, link.early_drop_ratio),
        (theory.flows["udp"]["steady"].loss_ratio, udp.loss_ratio),
        (Some(theory.flows["udp"]["steady"].goodput_bps), Some(udp.goodput_bps)),
        (Some(theory.flows["ftp"]["steady"].goodput_bps), Some(tcp.goodput_bps)),
    ] {
        assert!((a.unwrap() / b.unwrap() - 1.0).abs() < 0.02, "{a:?} {b:?}");
    }
}

#[test]
fn flows_that_lose_share_with_load_that_loses() {
    // Both lose p: 1000 packets/s enter, whatever is offered.
    let tcp = "[[flows]]\nname = \"tcp\"\ncount = 20\ntransport = { preset = \"ns2\", packet = \"1000B\" }\n";
    let plan =
        parse("pi:a=6.48e-4,b=6.42e-4,frequency=150Hz,target=50pkt,ecn=false", &format!("{tcp}{}", cbr(300, "")));
    let (fluid, theory) = (run(&plan), engine::run(&plan).unwrap());
    let (a, b) = (&fluid.flows["udp"]["after"], &theory.flows["udp"]["after"]);
    assert!((a.loss_ratio.unwrap() / b.loss_ratio.unwrap() - 1.0).abs() < 0.03, "{a:?} {b:?}");
    let wire = |result: &RunResult| {
        let bits = |group: &str, payload: f64| result.flows[group]["after"].goodput_bps * 1000.0 / payload;
        bits("tcp", f64::from(plan.groups[0].transport.payload_bytes())) + bits("udp", 972.0)
    };
    assert!((wire(&fluid) / 8e6 - 1.0).abs() < 0.01 && (wire(&theory) / 8e6 - 1.0).abs() < 0.01);
}

#[test]
fn sources_know_what_they_offer() {
    let offered = |traffic: &str| {
        let group = format!("[[flows]]\nname = \"g\"\ntransport = \"udp\"\ntraffic = {traffic}\n");
        let offered = parse("droptail", &group).groups[0].traffic.offered().unwrap();
        (offered.per_second, offered.bytes)
    };
    let times = "law = \"exponential\", mean";
    for (traffic, per_second, bytes) in [
        ("{ kind = \"cbr\", rate = \"80kbit\", packet = \"100B\" }".to_string(), 100.0, 100.0),
        ("{ kind = \"poisson\", rate = \"50pkt/s\", packet = { law = \"uniform\", min = \"100B\", max = \"300B\" } }".into(), 50.0, 200.0),
        // A quarter of the time ON.
        (format!("{{ kind = \"on-off\", rate = \"80kbit\", packet = \"100B\", on = {{ {times} = \"1s\" }}, off = {{ {times} = \"3s\" }} }}"), 25.0, 100.0),
        // The rate of a self-similar source is its mean already.
        ("{ kind = \"self-similar\", rate = \"80kbit\", packet = \"100B\" }".into(), 100.0, 100.0),
        // 50 frames a second while somebody talks: 1004 of 2591 ms.
        ("\"voip\"".into(), 50.0 * 1004.0 / 2591.0, 160.0),
        ("{ kind = \"voip\", suppress = false }".into(), 50.0, 160.0),
        // States that last 1 and 1/3 s: three quarters of the time in the first.
        ("{ kind = \"mmpp\", rates = [\"10pkt/s\", \"50pkt/s\"], generator = [[-1.0, 1.0], [3.0, -3.0]], packet = \"500B\" }".into(), 20.0, 500.0),
    ] {
        let (got, size) = offered(&traffic);
        assert!((got / per_second - 1.0).abs() < 1e-9 && (size / bytes - 1.0).abs() < 1e-9, "{traffic}: {got} {size}");
    }
}

#[test]
fn large_messages_go_in_several_packets_each_with_headers() {
    // 2500 bytes in packets of 1472: two of 1250, and 2 * 28 bytes of headers. 40 messages a second.
    let plan = parse(
        "droptail",
        "[[flows]]\nname = \"udp\"\ntransport = \"udp\"\ntraffic = { kind = \"cbr\", rate = \"800kbit\", packet = \"2500B\" }\n",
    );
    let class = &fluid::network(&plan, None).unwrap().classes[0];
    assert_eq!((class.rate_pps, class.packet_bytes), (Some(80.0), 1278.0));
}

#[test]
fn what_has_no_known_rate_is_refused() {
    let refused = |group: &str| {
        let plan = parse("droptail", &format!("[[flows]]\nname = \"g\"\n{group}\n"));
        let message = fluid::network(&plan, None).unwrap_err().to_string();
        assert_eq!(predict::predict(&plan).unwrap_err().to_string(), message);
        message
    };
    let known = "group g: the equations know bulk transfers alone, not";
    assert_eq!(refused("transport = \"ns2\"\ntraffic = \"web\""), format!("{known} web; use engine packet"));
    let cbr = "traffic = { kind = \"cbr\", rate = \"80kbit\" }";
    assert_eq!(refused(&format!("transport = \"ns2\"\n{cbr}")), format!("{known} cbr; use engine packet"));
    let message = "group g: a transfer over UDP has no rate that the equations know; use engine packet";
    assert_eq!(refused("transport = \"udp\"\ntransfer = \"10kB\""), message);
}

#[test]
fn a_transfer_ends_when_its_bytes_are_delivered() {
    // Two of 480 kB, 500 packets of 960 bytes, at 1000 packets/s: over within 2 s, in 20 s 384 kbit/s in the mean.
    let plan = parse("pi", "[[flows]]\nname = \"ftp\"\ncount = 2\ntransport = \"ns2\"\ntransfer = \"480kB\"\n");
    let flows = &run(&plan).flows["ftp"];
    assert!((flows["all"].goodput_bps / 384e3 - 1.0).abs() < 0.03, "{}", flows["all"].goodput_bps);
    assert_eq!(flows["after"].goodput_bps, 0.0);
}
