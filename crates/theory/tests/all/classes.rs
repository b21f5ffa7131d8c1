//! Classes and queues of the fluid engine from a plan, and the theory engine's results for links and flows.

use aqumen_scenario::{Plan, Scenario};
use aqumen_theory::fluid::{self, Model, Network, Options, network};
use aqumen_theory::{engine, predict};

fn plan_of(text: &str) -> Plan {
    Scenario::parse(text, "t.toml").unwrap().plan(1, None).unwrap()
}

/// A dumbbell of 8 Mbit/s under `aqm` and flows as written.
fn dumbbell(aqm: &str, access: &str, flows: &str) -> Plan {
    plan_of(&format!(
        "name = \"t\"\nduration = \"20s\"\naqm = \"{aqm}\"\n[topology]\npreset = \"dumbbell\"\n\
         bottleneck = {{ rate = \"8Mbit\", delay = \"20ms\", buffer = \"100pkt\" }}\n\
         access = {{ rate = \"800Mbit\", delay = {access} }}\n{flows}"
    ))
}

/// Flows of ns-2's Reno with packets of 1000 bytes and acknowledgements of 40.
fn reno(name: &str, count: u32, ecn: bool, more: &str) -> String {
    format!(
        "[[flows]]\nname = \"{name}\"\ncount = {count}\n{more}\n\
         transport = {{ preset = \"ns2\", ecn = {ecn}, packet = \"1000B\", ack = \"40B\", receive_window = \"1000pkt\" }}\n"
    )
}

/// Packets of 1000 bytes on the wire, 972 of them payload, at so many a second of two flows together.
fn load(pps: u32) -> String {
    format!(
        "[[flows]]\nname = \"udp\"\ncount = 2\ntransport = {{ preset = \"udp\", packet = \"1000B\" }}\n\
         traffic = {{ kind = \"cbr\", rate = \"{}bit\", packet = \"972B\" }}\n",
        pps * 972 * 8 / 2
    )
}

fn members(network: &Network) -> f64 {
    network.classes.iter().map(|class| class.members).sum()
}

#[test]
fn flows_of_one_round_trip_are_one_class_with_what_their_transport_says() {
    let made =
        network(&dumbbell("pi", "\"5ms\"", &reno("ftp", 7, true, "start = \"2s\"\nstop = \"9s\"")), None).unwrap();
    let [class] = &made.classes[..] else { panic!("{}", made.classes.len()) };
    // 30 ms there and 30 back; 1000 bytes take 1 ms and twice 10 us, 40 bytes 40 us and twice .4 us.
    assert!((class.base_rtt_s - (0.06 + 1.02e-3 + 40.8e-6)).abs() < 1e-9, "{}", class.base_rtt_s);
    assert_eq!((class.members, class.packet_bytes, class.model), (7.0, 1000.0, Model::Reno));
    assert_eq!((class.max_window, class.min_window, class.rate_pps), (1000.0, 1.0, None));
    assert_eq!(class.joins.len(), 7);
    assert!(class.joins.iter().all(|join| (join.from_ns, join.until_ns) == (2_000_000_000, Some(9_000_000_000))));
    let [queue] = &made.queues[..] else { panic!("{}", made.queues.len()) };
    assert!((queue.rates[0].1 - 1000.0).abs() < 1e-9 && queue.buffer_pkts == 100.0 && queue.packet_bytes == 1000.0);
    // Losses have equations of their own, and a model that is asked for comes first.
    let model = |ecn: bool, model| {
        network(&dumbbell("pi", "\"5ms\"", &reno("ftp", 7, ecn, "")), model).unwrap().classes[0].model
    };
    assert_eq!((model(false, None), model(false, Some(Model::Ecn))), (Model::Drop, Model::Ecn));
}

#[test]
fn unlike_round_trips_make_classes_that_hold_every_flow_once() {
    let made = network(&dumbbell("pi", "[\"1ms\", \"90ms\"]", &reno("ftp", 60, true, "")), None).unwrap();
    assert_eq!(members(&made), 60.0);
    assert!((3..=8).contains(&made.classes.len()), "{}", made.classes.len());
    // From the shortest to the longest, in equal steps.
    let rtts: Vec<f64> = made.classes.iter().map(|class| class.base_rtt_s).collect();
    assert!(rtts.is_sorted() && rtts[0] > 0.04 && rtts[rtts.len() - 1] < 0.41, "{rtts:?}");
    let widest = rtts.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
    let step = (rtts[rtts.len() - 1] - rtts[0]) / (rtts.len() - 1) as f64;
    assert!(widest < 2.0 * step, "{rtts:?}");
    assert!(made.classes.iter().all(|class| class.joins.len() as f64 == class.members));
    // Both ends' links are drawn evenly: on either side of the middle are half of 600 flows, give or take four
    // deviations of 12.2.
    let many = network(&dumbbell("pi", "[\"1ms\", \"90ms\"]", &reno("ftp", 600, true, "")), None).unwrap();
    let nearer: f64 = many.classes[..4].iter().map(|class| class.members).sum();
    assert!(many.classes.len() == 8 && (nearer - 300.0).abs() < 49.0, "{} {nearer}", many.classes.len());
    // Within a quarter they share a window; load shares nothing but its rate.
    let near = network(&dumbbell("pi", "[\"18ms\", \"20ms\"]", &reno("ftp", 60, true, "")), None).unwrap();
    assert_eq!((near.classes.len(), members(&near)), (1, 60.0));
    let loads = network(&dumbbell("pi", "[\"1ms\", \"90ms\"]", &load(200)), None).unwrap();
    assert_eq!((loads.classes.len(), members(&loads)), (1, 2.0));
    assert!((loads.classes[0].rate_pps.unwrap() - 100.0).abs() < 1e-9);
}

#[test]
fn a_transfer_is_counted_in_packets_of_its_payload() {
    // 96 kB by 960 bytes.
    let transfer = "transfer = \"96000B\"";
    let made = network(&dumbbell("pi", "\"5ms\"", &reno("ftp", 1, true, transfer)), None);
    let made = made.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(made.classes[0].joins[0].transfer_pkts, Some(100.0));
}

#[test]
fn a_link_counts_packets_of_the_mean_size_of_those_that_cross_it() {
    // 8 Mbit/s; 200 packets/s of 1000 bytes take a fifth. Flows with windows of 500 bytes take the rest: of bytes four
    // fifths, so that the mean is 1 / (.2 / 1000 + .8 / 500) bytes.
    let small = reno("ftp", 4, true, "").replace("1000B", "500B");
    let made = network(&dumbbell("pi", "\"5ms\"", &format!("{small}{}", load(200))), None).unwrap();
    let bytes = 1.0 / (0.2 / 1000.0 + 0.8 / 500.0);
    assert!((made.queues[0].packet_bytes / bytes - 1.0).abs() < 1e-9, "{}", made.queues[0].packet_bytes);
    assert!((made.queues[0].rates[0].1 / (1e6 / bytes) - 1.0).abs() < 1e-9);
    // Flows alone count alike: (3 (500) + 1000) / 4.
    let both = format!("{}{}", reno("small", 3, true, "").replace("1000B", "500B"), reno("large", 1, true, ""));
    assert!((network(&dumbbell("pi", "\"5ms\"", &both), None).unwrap().queues[0].packet_bytes - 625.0).abs() < 1e-9);
}

#[test]
fn signals_are_marks_where_most_flows_that_a_link_holds_can_be_marked() {
    for (marked, lost, ecn) in [(1, 2, false), (2, 2, false), (3, 2, true)] {
        let flows = format!("{}{}", reno("marked", marked, true, ""), reno("lost", lost, false, ""));
        let found = predict::predict(&dumbbell("pi", "\"5ms\"", &flows)).unwrap();
        assert_eq!(found["bottleneck"]["all"].ecn, ecn, "{marked} {lost}");
    }
}

#[test]
fn flows_have_rates_as_one_over_their_round_trips_and_the_result_tells_them() {
    // 60 and 140 ms, a queue of 50 packets at 1000/s waits 50: 111 and 191 ms with a packet's time on the wire.
    let flows = format!("{}{}", reno("near", 3, true, ""), reno("far", 2, true, "extra_rtt = \"80ms\""));
    let plan = dumbbell("pi:target=50pkt", "\"5ms\"", &flows);
    let result = engine::run(&plan).unwrap();
    let link = &result.links["bottleneck"]["all"];
    assert!((link.queue_mean_pkts - 50.0).abs() < 1e-6, "{link:?}");
    let [near, far] = ["near", "far"].map(|name| &result.flows[name]["all"]);
    let [short, long] = [near, far].map(|flows| flows.rtt_mean_s.unwrap());
    assert!((short - 0.111).abs() < 1e-3 && long > short, "{short} {long}");
    // Each of three, each of two.
    let ratio = (near.goodput_bps / 3.0) / (far.goodput_bps / 2.0);
    assert!((ratio / (long / short) - 1.0).abs() < 1e-6, "{ratio}");
    // 960 of 1000 bytes are payload; marks lose nothing, and flows alike are fair.
    let all = near.goodput_bps + far.goodput_bps;
    assert!((all / 7.68e6 - 1.0).abs() < 1e-6, "{all}");
    assert_eq!((near.retransmitted_ratio, near.jain_fairness), (Some(0.0), Some(1.0)));
    // What a run would have counted in 20 s.
    assert!(link.departures_pkts.abs_diff(20_000) <= 1 && link.early_drop_ratio == Some(0.0), "{link:?}");
    let prediction = predict::predict(&plan).unwrap();
    let at = &prediction["bottleneck"]["all"];
    assert!((link.mark_ratio.unwrap() - at.probability).abs() < 1e-4);
    let noise = &at.analysis.as_ref().unwrap().noise;
    if noise.valid {
        let deviation = noise.queue_std_pkts.unwrap();
        assert!((link.sojourn_p99_s.unwrap() - (50.0 + 2.326_348 * deviation) / 1000.0).abs() < 1e-6);
        assert!((link.utilization.unwrap() - (1.0 - noise.utilization_lost.unwrap())).abs() < 1e-6);
    }
    assert!((link.sojourn_mean_s.unwrap() - 0.05).abs() < 1e-6 && (link.sojourn_p50_s.unwrap() - 0.05).abs() < 1e-6);
    // A line over time at what was told.
    let series = &result.series["bottleneck"];
    assert!(series.t_s.len() > 10 && series.t_s.is_sorted() && (series.t_s[series.t_s.len() - 1] - 20.0).abs() < 1e-9);
    assert!(
        series.queue_pkts.iter().all(|queue| (queue - 50.0).abs() < 1e-6)
            && series.probability.iter().all(|p| *p == at.probability)
    );
}

#[test]
fn flows_of_one_group_that_are_near_and_far_are_unfair_by_their_round_trips() {
    // Rates as 1 / R of R spread between 60 and 400 ms.
    let plan = dumbbell("pi", "[\"5ms\", \"90ms\"]", &reno("ftp", 30, true, ""));
    let told = &engine::run(&plan).unwrap().flows["ftp"]["all"];
    let wait = predict::predict(&plan).unwrap()["bottleneck"]["all"].queue_pkts / 1000.0;
    let rates: Vec<f64> = plan
        .flows
        .iter()
        .map(|flow| {
            let way =
                |links: &[u32]| links.iter().map(|link| plan.links[*link as usize].delay.as_secs_f64()).sum::<f64>();
            1.0 / (way(&flow.path) + way(&flow.return_path) + 1.06e-3 + wait)
        })
        .collect();
    let (sum, squares): (f64, f64) = (rates.iter().sum(), rates.iter().map(|rate| rate * rate).sum());
    let fairness = sum * sum / (30.0 * squares);
    assert!(fairness < 0.97 && (told.jain_fairness.unwrap() - fairness).abs() < 1e-3, "{told:?} {fairness}");
    // The mean round trip of packets: flows over the sum of rates.
    assert!((told.rtt_mean_s.unwrap() / (30.0 / sum) - 1.0).abs() < 1e-3, "{told:?}");
}

#[test]
fn what_is_dropped_is_told_apart_from_what_is_marked() {
    // Losses, early by the law and by the buffer's end alone.
    let of = |aqm: &str, flows: &str| engine::run(&dumbbell(aqm, "\"5ms\"", flows)).unwrap();
    let early = of("pi", &reno("ftp", 10, false, ""));
    let link = &early.links["bottleneck"]["all"];
    assert!(
        link.early_drop_ratio.unwrap() > 1e-3 && link.mark_ratio == Some(0.0) && link.overflow_drop_ratio == Some(0.0)
    );
    let lost = early.flows["ftp"]["all"].retransmitted_ratio.unwrap();
    assert!((lost / link.early_drop_ratio.unwrap() - 1.0).abs() < 1e-3, "{lost} {link:?}");
    let arrived = link.departures_pkts as f64 / (1.0 - lost);
    assert!((link.arrivals_pkts as f64 - arrived).abs() < 2.0, "{link:?}");
    let tail = of("droptail", &reno("ftp", 10, false, ""));
    let link = &tail.links["bottleneck"]["all"];
    assert!(
        link.overflow_drop_ratio.unwrap() > 1e-3 && link.early_drop_ratio == Some(0.0) && link.mark_ratio == Some(0.0)
    );
    // Load beside flows that hear marks: both meet p, of the load it is what is dropped.
    let both = format!("{}{}", reno("ftp", 20, true, ""), load(250));
    let mixed = of("pi", &both);
    let link = &mixed.links["bottleneck"]["all"];
    let p = predict::predict(&dumbbell("pi", "\"5ms\"", &both)).unwrap()["bottleneck"]["all"].probability;
    // 250 of the load arrive, 1000 - 250 (1 - p) of the others.
    let (offered, others) = (250.0, 1000.0 - 250.0 * (1.0 - p));
    let share = offered / (offered + others);
    assert!((link.early_drop_ratio.unwrap() / (p * share) - 1.0).abs() < 0.01, "{link:?} {p}");
    assert!((link.mark_ratio.unwrap() / (p * (1.0 - share)) - 1.0).abs() < 0.01, "{link:?} {p}");
    let udp = &mixed.flows["udp"]["all"];
    assert!(
        (udp.loss_ratio.unwrap() - p).abs() < 1e-6
            && (udp.goodput_bps / (250.0 * (1.0 - p) * 7776.0) - 1.0).abs() < 1e-6
    );
}

#[test]
fn a_link_of_ones_own_is_no_queue_however_narrow() {
    // 4 Mbit/s each before 8 Mbit/s that they share.
    let text = |count: u32| {
        format!(
            "name = \"t\"\nduration = \"20s\"\naqm = \"pi\"\n[topology]\npreset = \"dumbbell\"\n\
             bottleneck = {{ rate = \"8Mbit\", delay = \"20ms\", buffer = \"100pkt\" }}\n\
             access = {{ rate = \"4Mbit\", delay = \"5ms\" }}\n{}",
            reno("ftp", count, true, "")
        )
    };
    let made = network(&plan_of(&text(6)), None).unwrap();
    assert_eq!((made.queues.len(), made.classes[0].path.len()), (1, 1));
    assert!((made.queues[0].rates[0].1 - 1000.0).abs() < 1e-9);
}

#[test]
fn a_link_that_is_not_looked_at_is_a_queue_where_it_is_shared_and_narrower() {
    for (rate, queues) in [("4Mbit", 2), ("8Mbit", 1), ("12Mbit", 1)] {
        let flows: String = ["one", "other"].map(|name| reno(name, 3, true, "from = \"r0\"\nto = \"r2\"")).concat();
        let mut plan = plan_of(&format!(
            "name = \"t\"\nduration = \"20s\"\naqm = \"pi\"\n[topology]\npreset = \"parking-lot\"\n\
             rate = [\"8Mbit\", \"{rate}\"]\ndelay = \"20ms\"\nbuffer = \"100pkt\"\n\
             access = {{ rate = \"800Mbit\", delay = \"5ms\" }}\n{flows}"
        ));
        let looked_at: Vec<usize> = (0..plan.links.len()).filter(|link| plan.links[*link].record).collect();
        plan.links[looked_at[1]].record = false;
        let made = network(&plan, None).unwrap();
        assert_eq!(made.queues.len(), queues, "{rate}");
    }
}

#[test]
fn a_result_says_which_aqm_ran_and_what_it_made_of_its_settings() {
    let plan = dumbbell("pi:target=50pkt", "\"5ms\"", &reno("ftp", 5, true, ""));
    let options = Options { model: None, step_s: Some(2e-3) };
    for result in [fluid::run(&plan, options, &mut |_| true).unwrap(), engine::run(&plan).unwrap()] {
        let told = serde_json::to_value(&result.aqm).unwrap();
        assert_eq!(told["name"], "pi");
        assert_eq!(told["given"]["target"], told["params"]["target"]);
        assert_eq!(told["params"]["target"].as_f64(), Some(50.0), "{told}");
        assert!(told["params"].as_object().unwrap().len() > 2, "{told}");
        assert!(
            told["nominal"]["capacity_bps"].as_u64().unwrap() > 0 && told["nominal"]["flows"].as_f64().unwrap() > 0.0
        );
    }
}

#[test]
fn whoever_waits_for_the_fluid_engine_hears_of_all_of_it_once() {
    let plan = dumbbell("pi", "\"5ms\"", &reno("ftp", 5, true, ""));
    for step_s in [Some(2e-3), None] {
        let mut heard = Vec::new();
        fluid::run(&plan, Options { model: None, step_s }, &mut |share| {
            heard.push(share);
            true
        })
        .unwrap();
        assert!(heard.is_sorted() && heard[0] > 0.0 && heard[0] < 0.1, "{heard:?}");
        let last = heard[heard.len() - 1];
        assert!(if step_s.is_some() { last == 1.0 } else { last > 0.6 && last <= 1.0 }, "{last}");
        assert!(heard.windows(2).all(|pair| pair[1] - pair[0] < 0.4), "{heard:?}");
    }
}

#[test]
fn the_fluid_engine_counts_what_is_sent_lost_and_delivered_of_each_group() {
    let flows = format!("{}{}", reno("near", 6, false, ""), reno("far", 6, false, "extra_rtt = \"100ms\""));
    let result = fluid::run(&dumbbell("pi", "\"5ms\"", &flows), Options::default(), &mut |_| true).unwrap();
    let link = &result.links["bottleneck"]["all"];
    let [near, far] = ["near", "far"].map(|name| &result.flows[name]["all"]);
    // 960 of 1000 bytes are payload; together they are what left the link.
    for flows in [near, far] {
        assert!((flows.throughput_bps.unwrap() / flows.goodput_bps - 1.0 / 0.96).abs() < 1e-9);
        // All meet the same share of losses.
        let lost = flows.retransmitted_ratio.unwrap();
        let dropped = link.early_drop_ratio.unwrap() + link.overflow_drop_ratio.unwrap();
        assert!((lost / dropped - 1.0).abs() < 0.1, "{lost} {dropped}");
        assert!((flows.jain_fairness.unwrap() - 1.0).abs() < 1e-6 && flows.loss_ratio.is_none());
    }
    let all = (near.throughput_bps.unwrap() + far.throughput_bps.unwrap()) * 20.0 / 8000.0;
    assert!((all / link.departures_pkts as f64 - 1.0).abs() < 0.02, "{all} {link:?}");
    let longer = far.rtt_mean_s.unwrap() - near.rtt_mean_s.unwrap();
    assert!((longer - 0.1).abs() < 0.01, "{longer}");
    // Load has no round trip and loses what it loses.
    let loads = fluid::run(&dumbbell("droptail", "\"5ms\"", &load(2000)), Options::default(), &mut |_| true).unwrap();
    let udp = &loads.flows["udp"]["all"];
    assert!((udp.throughput_bps.unwrap() / udp.goodput_bps - 1000.0 / 972.0).abs() < 1e-9);
    assert!(
        (udp.loss_ratio.unwrap() - 0.5).abs() < 0.01
            && udp.retransmitted_ratio == Some(0.0)
            && udp.rtt_mean_s.is_none()
    );
}

#[test]
fn a_link_that_is_more_than_a_wire_is_refused_by_name_in_one_line() {
    let cell = |line: &str, more: &str| {
        plan_of(&format!(
            "name = \"t\"\nduration = \"20s\"\naqm = \"pi\"\n[topology]\nnodes = [\"a\", \"b\", \"c\"]\n\
             access = {{ rate = \"100Mbit\", delay = \"5ms\" }}\n\
             [[topology.links]]\nname = \"core\"\nfrom = \"a\"\nto = \"b\"\nrate = \"4Mbit\"\ndelay = \"10ms\"\n\
             buffer = \"50pkt\"\naqm = \"test\"\n\
             [[topology.links]]\nname = \"cell\"\nfrom = \"b\"\nto = \"c\"\ndelay = \"1ms\"\nbuffer = \"50pkt\"\n{line}\n\
             [[flows]]\nname = \"ftp\"\nfrom = \"a\"\nto = \"c\"\ntransport = \"ns2\"\n{more}"
        ))
    };
    let said = "link cell: channels, losses, outages and changes of delay or AQM need engine packet";
    let event = |what: &str| format!("[[events]]\nat = \"3s\"\nlink = \"cell\"\n{what}\n");
    for (line, more) in [
        ("channel = { model = \"wifi\" }", ""),
        ("channel = { model = \"lte\" }", ""),
        ("rate = \"8Mbit\"\nloss = 0.01", ""),
        ("rate = \"8Mbit\"", &event("state = \"down\"")),
        ("rate = \"8Mbit\"", &event("delay = \"50ms\"")),
    ] {
        let plan = cell(line, more);
        let answers = [
            fluid::run(&plan, Options::default(), &mut |_| true).err(),
            engine::run(&plan).err(),
            network(&plan, None).err(),
        ];
        for refused in answers {
            assert_eq!(refused.map(|error| error.to_string()).as_deref(), Some(said), "{line} {more}");
        }
    }
    // A wire whose rate changes is one still.
    assert_eq!(network(&cell("rate = \"8Mbit\"", &event("capacity = \"2Mbit\"")), None).unwrap().classes.len(), 1);
}
