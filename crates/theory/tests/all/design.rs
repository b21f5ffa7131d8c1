//! Designs with known numbers.

use aqumen_aqm::{
    Algorithm, AnyAqm, Catalogue, DesignReport, MAX_LOOPS, Network, Observation, Param, QueueOperatingPoint,
    SampledLaw, TcpPlant, Theory, Transfer, Value,
};
use aqumen_scenario::{AqmChoice, OwnedValue, PRESETS};
use aqumen_theory::design::{Analysis, Depth, Gain, OperatingConditions, SOURCES, analyse, analyse_to, noise_power};
use aqumen_theory::fluid::Model;
use aqumen_theory::response::Sender;
use aqumen_units::{Probability, Rate, Span};

fn choice(name: &str, values: &[(&str, OwnedValue)], network: Network) -> AqmChoice {
    let values = values.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
    AqmChoice::builtin(name, values, network)
}

fn network(bps: u64, flows: f64, r0: f64, target: f64) -> Network {
    let rate = Rate::from_bps(bps);
    Network {
        capacity: rate,
        flows,
        base_rtt_s: r0 - target / (bps as f64 / 8000.0),
        target_pkts: target,
        packet_bytes: 1000.0,
        link_rate: rate,
        buffer_pkts: 300.0,
    }
}

fn conditions(network: &Network) -> OperatingConditions {
    OperatingConditions {
        model: Model::Hollot,
        flows: network.flows,
        capacity_pps: network.capacity_pps(),
        unresponsive_pps: 0.0,
        transfer_rtts: 0.0,
        base_rtt_s: network.base_rtt_s,
        buffer_pkts: network.buffer_pkts,
        sender: aqumen_theory::response::Sender::reno(),
    }
}

fn number(analysis: &Analysis, name: &str) -> f64 {
    match &analysis.gains[name] {
        Gain::Number(x) => *x,
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn pi_for_the_classic_network() {
    // K = z sqrt((z R0)^2 + 1) / k_t with z = 2N / (R0^2 C) = 120 / 226.935 = 0.52879, k_t
    // = (R0 C)^3 / (4 N^2) = 54518.
    let network = network(30_000_000, 60.0, 0.246, 175.0);
    let analysis = analyse(&choice("pi", &[], network), &conditions(&network)).unwrap();
    assert!((number(&analysis, "a") / 1.8528e-5 - 1.0).abs() < 1e-4);
    assert_eq!(number(&analysis, "frequency"), 160.0);
    // PM = 90 - w_g R0 - atan(w_g R0), w_g R0 = 0.52879 * 0.246 = 0.13008 rad: 90 - 7.4532 - 7.4112 = 75.136 degrees,
    // less half a sample of hold, 0.52879 / 320 rad = 0.095 degrees; the bilinear zero adds nothing here.
    let margins = analysis.margins.unwrap();
    assert!((margins.textbook.phase_margin_deg.unwrap() - 75.04).abs() < 0.02, "{margins:?}");
    assert!(margins.textbook.stable && margins.exact.stable && margins.spectral_radius.unwrap() < 1.0);
    assert!(analysis.warnings.is_empty(), "{:?}", analysis.warnings);
}

#[test]
fn arm_pfc_for_the_papers_network() {
    let network = network(10_000_000, 100.0, 0.28, 100.0);
    let analysis =
        analyse(&choice("arm-pfc", &[("h", OwnedValue::Number(7.0))], network), &conditions(&network)).unwrap();
    for (name, expected) in [
        ("d", 5.0),
        ("T_s", 0.056),
        ("gamma", 0.0992),
        ("beta1", 2.714_617_541_175),
        ("beta2", -2.020_644_345_810),
        ("eta", -27.509_781_549_235),
        ("g", -39.871_589_332_492),
    ] {
        let got = number(&analysis, name);
        assert!((got / expected - 1.0).abs() < if name == "gamma" { 1e-3 } else { 1e-10 }, "{name}: {got}");
    }
    let Gain::List(c) = &analysis.gains["c"] else { panic!("c is a list") };
    for (got, expected) in c.iter().zip([-41.258405950, -49.526783491, -54.595702837, -57.228792968, -58.031425090]) {
        assert!((got / expected - 1.0).abs() < 1e-9, "{c:?}");
    }
    assert!(analysis.warnings.iter().any(|w| w.contains("gamma")), "{:?}", analysis.warnings);
    assert!(analysis.warnings.iter().any(|w| w.contains("time-out")), "{:?}", analysis.warnings);
}

#[test]
fn what_no_probability_can_hold_is_said() {
    // 300 flows: W0 = 7/6, p0 = 72/49; with p = 1 the queue settles at 1250 (sqrt(2) 300/1250 - 0.2) = 174.26.
    let network = network(10_000_000, 100.0, 0.28, 100.0);
    let crowded = OperatingConditions { flows: 300.0, ..conditions(&network) };
    let analysis = analyse(&choice("pi", &[], network), &crowded).unwrap();
    assert!(analysis.warnings[0].contains("174.3 packets"), "{:?}", analysis.warnings);
    assert!((analysis.expected.queue_pkts - 174.26).abs() < 0.01);
    assert!(!analysis.operating_point.at.feasible);
}

#[test]
fn the_literal_arm_pfc_is_expected_beside_its_target() {
    // The paper's controller, variant A: 110, 105, 90 flows leave the queue 13.68, 6.86, -13.83 packets off.
    let network = network(10_000_000, 100.0, 0.28, 100.0);
    let values = [
        ("h", OwnedValue::Number(7.0)),
        ("psi", OwnedValue::Number(0.83)),
        ("variant", OwnedValue::Choice("A".into())),
    ];
    for (flows, offset) in [(110.0, 13.68), (105.0, 6.86), (90.0, -13.83)] {
        let there = OperatingConditions { flows, ..conditions(&network) };
        let analysis = analyse(&choice("arm-pfc", &values, network), &there).unwrap();
        let got = analysis.expected.offset_pkts.unwrap();
        assert!((got - offset).abs() < 0.01, "{flows} flows: {got}, expected {offset}");
    }
}

#[test]
fn a_law_beside_its_target_is_as_far_beside_it_whoever_holds_the_same_share() {
    let network = network(10_000_000, 100.0, 0.28, 100.0);
    let values = [
        ("h", OwnedValue::Number(7.0)),
        ("psi", OwnedValue::Number(0.83)),
        ("variant", OwnedValue::Choice("A".into())),
    ];
    let literal = choice("arm-pfc", &values, network);
    let told = |sender: Sender, flows: f64| {
        let there = OperatingConditions { model: Model::Reno, sender, flows, ..conditions(&network) };
        let expected = analyse_to(Depth::Equilibrium, &literal, &there).unwrap().expected;
        (expected.probability, expected.offset_pkts.unwrap())
    };
    // Windows that come down in proportion are another function of the share; the law knows the share alone.
    let modern = Sender { proportional: true, from_flight: true, min_window: 2.0, ..Sender::reno() };
    for flows in [70.0, 110.0] {
        let (p, offset) = told(modern, flows);
        let (mut few, mut many) = (20.0, 400.0);
        for _ in 0..40 {
            let middle = 0.5 * (few + many);
            if told(Sender::reno(), middle).0 < p { few = middle } else { many = middle }
        }
        let known = told(Sender::reno(), few);
        assert!((known.0 / p - 1.0).abs() < 1e-6 && (offset - known.1).abs() < 0.01, "{flows}: {offset} {known:?}");
        assert!(offset.abs() > 1.0, "{offset}");
    }
}

#[test]
fn hollots_red_is_at_the_edge_of_its_rule() {
    // N = 60, R0 = 0.246, C = 3750, K = 0.005, L_RED = 1.86e-4: w_g = 0.0529 and 10.14 <= 10.62.
    let network = network(30_000_000, 60.0, 0.246, 175.0);
    let values = [
        ("min_th", OwnedValue::Number(100.0)),
        ("max_th", OwnedValue::Number(637.63)),
        ("max_p", OwnedValue::Number(0.1)),
        ("weight", OwnedValue::Number(1.33e-6)),
    ];
    let red =
        analyse(&choice("red", &values, network), &OperatingConditions { buffer_pkts: 1000.0, ..conditions(&network) })
            .unwrap();
    assert!((number(&red, "L_RED") / 1.86e-4 - 1.0).abs() < 1e-3 && (number(&red, "K") / 0.005 - 1.0).abs() < 5e-3);
    assert!(red.margins.unwrap().exact.stable);
    // An average that forgets at once has no last packet: K = C ln 1e12.
    let instant = [&values[..3], &[("weight", OwnedValue::Number(1.0))]].concat();
    let red = analyse(
        &choice("red", &instant, network),
        &OperatingConditions { buffer_pkts: 1000.0, ..conditions(&network) },
    )
    .unwrap();
    assert!((number(&red, "K") / (3750.0 * 27.631) - 1.0).abs() < 1e-4, "{}", number(&red, "K"));
    let fast = [&values[..3], &[("weight", OwnedValue::Number(0.002))]].concat();
    let red =
        analyse(&choice("red", &fast, network), &OperatingConditions { buffer_pkts: 1000.0, ..conditions(&network) })
            .unwrap();
    assert!(red.warnings.iter().any(|w| w.contains("too fast")), "{:?}", red.warnings);
}

#[test]
fn paqm_is_told_an_alpha_that_is_stable() {
    // At light load its own alpha = 8e-4 oscillates; the suggested one has a gain margin of 3.
    let network = Network { buffer_pkts: 800.0, ..network(30_000_000, 60.0, 0.24 + 200.0 / 3750.0, 200.0) };
    let given = |alpha: f64| {
        let values = [("alpha", OwnedValue::Number(alpha)), ("period", OwnedValue::Number(0.05))];
        analyse(&choice("paqm", &values, network), &conditions(&network)).unwrap()
    };
    let own = given(8e-4);
    assert!(!own.margins.as_ref().unwrap().exact.stable, "{:?}", own.margins);
    // The integrator alone, with a delay of R + Ts, was computed elsewhere: 0.23; the hold and the mean of two samples
    // make one sample of delay.
    assert!((own.margins.as_ref().unwrap().textbook.gain_margin.unwrap() - 0.23).abs() < 0.01, "{:?}", own.margins);
    assert!(own.warnings.iter().any(|w| w.contains("limit cycle")), "{:?}", own.warnings);
    let better = given(number(&own, "alpha_stable"));
    let margin = better.margins.unwrap().exact.gain_margin.unwrap();
    assert!((margin - 3.0).abs() < 0.05, "{margin}");
}

#[test]
fn ared_at_rest_is_red_with_the_max_p_that_holds_the_middle_of_its_thresholds() {
    let network = network(10_000_000, 60.0, 0.28, 100.0);
    let ared = analyse(&choice("ared", &[], network), &conditions(&network)).unwrap();
    // Thresholds 50 and 150: the middle is the target, whatever the load.
    assert!((ared.operating_point.at.queue_pkts - 100.0).abs() < 0.5, "{:?}", ared.operating_point);
    let given = ["min_th", "max_th", "weight"].map(|name| (name, OwnedValue::Number(number(&ared, name))));
    let max_p = [("max_p", OwnedValue::Number(number(&ared, "max_p_at_rest")))];
    let red = analyse(&choice("red", &[&given[..], &max_p[..]].concat(), network), &conditions(&network)).unwrap();
    let (a, b) = (ared.margins.as_ref().unwrap().exact, red.margins.as_ref().unwrap().exact);
    assert!((a.modulus_margin / b.modulus_margin - 1.0).abs() < 1e-6 && a.stable == b.stable, "{a:?} {b:?}");
    // More flows ask for more: p0 = 2 (N / (R0 C))^2.
    let more =
        analyse(&choice("ared", &[], network), &OperatingConditions { flows: 90.0, ..conditions(&network) }).unwrap();
    assert!(number(&more, "max_p_at_rest") > 1.5 * number(&ared, "max_p_at_rest"));
}

#[test]
fn ared_swings_by_its_adaptation_where_the_red_that_it_is_at_rest_is_calm() {
    // 469 packets/s, .424 s, 59 flows under an ARED made for 102 and .393 s: a gain margin of 2.4 around its rest. In
    // packets it swings every 8.05 s, by 33.4 +- .4 packets (24 runs of 300 s each), noise included.
    let made_for = Network { buffer_pkts: 504.0, ..network(3_752_000, 102.0, 0.393 + 168.0 / 469.0, 168.0) };
    let here = OperatingConditions { model: Model::Reno, flows: 59.0, base_rtt_s: 0.424, ..conditions(&made_for) };
    let ared = analyse(&choice("ared", &[], made_for), &here).unwrap();
    let exact = ared.margins.as_ref().unwrap().exact;
    assert!(exact.stable && exact.gain_margin.unwrap() > 2.0, "{exact:?}");
    let told = ared.expected;
    assert!((told.coexisting_period_s.unwrap() / 8.05 - 1.0).abs() < 0.1, "{told:?}");
    let all = told.coexisting_std_pkts.unwrap().hypot(ared.noise.queue_std_pkts.unwrap());
    assert!((all / 33.4 - 1.0).abs() < 0.15, "{all} {told:?}");
    assert_eq!((told.oscillates, ared.noise.valid), (Some(true), false));
    assert!(ared.noise.why.as_ref().unwrap().contains("a cycle that is higher"));
    // At twice the flows and round trip of its design the loop itself is unstable: in packets it swings by 101.
    let paper = Network { buffer_pkts: 300.0, ..network(10_000_000, 100.0, 0.28, 100.0) };
    let there = OperatingConditions { model: Model::Reno, flows: 200.0, base_rtt_s: 0.4, ..conditions(&paper) };
    let unstable = analyse(&choice("ared", &[], paper), &there).unwrap();
    assert!(!unstable.margins.unwrap().exact.stable && unstable.expected.oscillates == Some(true));
    // Its max_p held where it rests: nothing moves it, nothing swings.
    let given = ["min_th", "max_th", "weight"].map(|name| (name, OwnedValue::Number(number(&ared, name))));
    let max_p = [("max_p", OwnedValue::Number(number(&ared, "max_p_at_rest")))];
    let red = analyse(&choice("red", &[&given[..], &max_p[..]].concat(), made_for), &here).unwrap();
    assert_eq!((red.expected.oscillates, red.expected.coexisting_std_pkts), (Some(false), None));
    assert!(red.noise.valid);
}

#[test]
fn what_noise_makes_of_areds_steps_is_in_its_noise() {
    // 1042 packets/s, .229 s, 25 flows under an ARED made for 58 and .166 s. In packets the queue deviates by 24.7,
    // 23.5 and 21.8 in three runs; by 12 under the RED that it is at rest.
    let made_for = Network { buffer_pkts: 366.0, ..network(8_336_712, 58.0, 0.165_93 + 122.0 / 1042.09, 122.0) };
    let here = OperatingConditions { model: Model::Reno, flows: 25.0, base_rtt_s: 0.2291, ..conditions(&made_for) };
    let ared = analyse(&choice("ared", &[], made_for), &here).unwrap();
    let deviation = ared.noise.queue_std_pkts.unwrap();
    assert!(ared.noise.valid && (deviation / 23.4 - 1.0).abs() < 0.15, "{:?}", ared.noise);
    let given = ["min_th", "max_th", "weight"].map(|name| (name, OwnedValue::Number(number(&ared, name))));
    let max_p = [("max_p", OwnedValue::Number(number(&ared, "max_p_at_rest")))];
    let red = analyse(&choice("red", &[&given[..], &max_p[..]].concat(), made_for), &here).unwrap();
    assert!(deviation > 1.5 * red.noise.queue_std_pkts.unwrap(), "{deviation} {:?}", red.noise);
    // At the end of its range max_p does not move: there ARED is RED.
    let low = [("bottom", OwnedValue::Number(0.05)), ("max_p", OwnedValue::Number(0.05))];
    let still = analyse(&choice("ared", &low, made_for), &here).unwrap();
    let bottom = [("max_p", OwnedValue::Number(0.05))];
    let red = analyse(&choice("red", &[&given[..], &bottom[..]].concat(), made_for), &here).unwrap();
    let [still, red] = [still, red].map(|analysis| analysis.noise.queue_std_pkts.unwrap());
    assert!((still / red - 1.0).abs() < 0.05, "{still} {red}");
}

#[test]
fn pie_swings_as_high_as_packets_do_and_in_a_cycle_only_where_its_law_comes_to_its_bound() {
    // 1250 packets/s, .2 s. In packets the queue moves by 20.4 and 12.5, p is at 0 for 14 and 0 % of the time. Without
    // the packets that a short queue is spared the second would be 30.3.
    let told = |flows: f64| {
        let network = Network { flows, base_rtt_s: 0.2, buffer_pkts: 120.0, ..network(10_000_000, flows, 0.232, 40.0) };
        analyse(&choice("pie", &[], network), &OperatingConditions { model: Model::Reno, ..conditions(&network) })
            .unwrap()
    };
    for (flows, height, cycle) in [(12.0, 20.4, true), (30.0, 12.5, false)] {
        let pie = told(flows);
        assert!(!pie.margins.as_ref().unwrap().exact.stable);
        assert!((pie.expected.oscillation_std_pkts.unwrap() / height - 1.0).abs() < 0.1, "{:?}", pie.expected);
        assert_eq!(pie.expected.oscillates, Some(cycle), "{flows}");
        let what = if cycle { "a limit cycle of about" } else { "an irregular, small oscillation" };
        assert!(pie.warnings.iter().any(|warning| warning.contains(what)), "{:?}", pie.warnings);
    }
    // 100 flows, windows of 1250 (.2 + .015) / 100 = 2.7 packets: the share 1.716 / (2.7 4.7) = .136, p above .1.
    let dropping = told(100.0);
    assert!(dropping.operating_point.at.window_pkts > 2.0 && !dropping.noise.valid);
    assert_eq!(dropping.noise.why.unwrap(), "above p = 0.1 packets are dropped, not marked: time-outs rule");
}

#[test]
fn a_tuned_aqm_mo_has_the_margins_of_one_designed_for_the_place() {
    let known = network(10_000_000, 60.0, 0.28, 100.0);
    let other = Network { flows: 100.0, ..known };
    let margins =
        |name, network| analyse(&choice(name, &[], network), &conditions(&known)).unwrap().margins.unwrap().exact;
    // ST-AQM-MO was told of 100 flows and has found the 60.
    let (tuned, designed, fixed) = (margins("st-aqm-mo", other), margins("aqm-mo", known), margins("aqm-mo", other));
    assert!((tuned.modulus_margin / designed.modulus_margin - 1.0).abs() < 0.02, "{tuned:?} {designed:?}");
    assert!((fixed.modulus_margin / designed.modulus_margin - 1.0).abs() > 0.05, "{fixed:?}");
}

#[test]
fn what_has_no_slope_says_why() {
    let network = network(10_000_000, 60.0, 0.28, 100.0);
    for name in ["ared-feng", "avq", "blue", "aaqm", "codel", "cobalt"] {
        let error = analyse(&choice(name, &[], network), &conditions(&network)).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{name} has no linear law: it")), "{error}");
    }
}

#[test]
fn dualpi2_answers_by_its_classic_queue_and_flow_queues_say_why_not() {
    let network = network(10_000_000, 60.0, 0.28, 100.0);
    let [dual, alone] = ["dualpi2", "pi2"].map(|name| {
        let set = |key: &str, value: f64| (key.to_string(), OwnedValue::Number(value));
        let values = match name {
            "dualpi2" => vec![set("target", 0.015), set("alpha", 0.16), set("beta", 3.2)],
            // Of the same gains, by PI2's names; p' is up to date every 16 ms in both. p = 1/4 is where p' k reaches 1.
            _ => vec![set("target", 0.015), set("alpha", 0.16), set("beta", 3.2), set("interval", 0.016)],
        };
        analyse(&AqmChoice::builtin(name, values, network), &conditions(&network)).unwrap()
    });
    assert_eq!((dual.aqm.as_str(), alone.aqm.as_str()), ("dualpi2", "pi2"));
    // 15 ms of 1250 packets a second.
    assert!((dual.operating_point.at.queue_pkts - 18.75).abs() < 1e-9);
    assert_eq!(dual.operating_point, alone.operating_point);
    assert_eq!(dual.margins, alone.margins);
    assert!(dual.warnings[0].contains("its classic queue, with classic traffic only"), "{:?}", dual.warnings);
    for name in ["fq-codel", "fq-pie", "cake", "sfq", "drr"] {
        let error = analyse(&choice(name, &[], network), &conditions(&network)).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{name} has no linear law: each flow has its own queue")), "{error}");
    }
}

/// Someone's own integral controller, which knows its transfer function and one thing more.
#[derive(Clone)]
struct Knowing;

impl SampledLaw for Knowing {
    fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
        [Some(Span::from_millis(10)), None]
    }

    fn step(&mut self, _which: usize, _seen: &Observation) -> Probability {
        unreachable!("nobody has to ask the law for its answer")
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        visit("target", Value::Number(100.0));
    }

    fn theory(&self) -> &dyn Theory {
        self
    }
}

impl Theory for Knowing {
    fn linear(&self, _at: &QueueOperatingPoint) -> Option<Transfer> {
        Some(Transfer { num: vec![1e-6], den: vec![1.0, -1.0], period_s: Some(0.01) })
    }

    fn derive(&self, at: &QueueOperatingPoint, _plant: &TcpPlant, report: &mut dyn DesignReport) {
        report.number("K", 1e-4);
        report.warn(format!("windows of {:.1} packets", at.window_pkts));
    }
}

#[test]
fn an_aqm_from_outside_explains_itself() {
    let network = network(10_000_000, 60.0, 0.28, 100.0);
    let row = Algorithm { name: "knowing", title: "Knowing", summary: "-", reference: "-", params: &[Param::TARGET] };
    let catalogue = Catalogue::BUILT_IN.with(row, |_, _| Ok(AnyAqm::custom_law(Knowing, true))).unwrap();
    let own = AqmChoice { catalogue, ..choice("knowing", &[], network) };
    let analysis = analyse(&own, &conditions(&network)).unwrap();
    assert_eq!(analysis.operating_point.at.queue_pkts, 100.0);
    assert_eq!(number(&analysis, "K"), 1e-4);
    // W0 = R0 C / N = .28 * 1250 / 60.
    assert!(analysis.warnings.contains(&"windows of 5.8 packets".to_string()), "{:?}", analysis.warnings);
    let margins = analysis.margins.unwrap();
    assert_eq!(margins.controller, "equation");
    assert!(margins.exact.stable);
}

#[test]
fn noise_says_whose_loop_is_unstable_where_the_margins_are_another_models() {
    // Hollot's mean windows leave ARM-PFC A a margin of 1.56 here; the many windows of Reno under random marks do not.
    let network = network(10_000_000, 100.0, 0.28, 100.0);
    let given = [
        ("variant", OwnedValue::Choice("A".into())),
        ("psi", OwnedValue::Number(0.83)),
        ("h", OwnedValue::Number(7.0)),
    ];
    let told = |model| {
        analyse(&choice("arm-pfc", &given, network), &OperatingConditions { model, ..conditions(&network) }).unwrap()
    };
    let (mean, many) = (told(Model::Hollot), told(Model::Reno));
    assert!(mean.margins.unwrap().exact.stable && !many.margins.unwrap().exact.stable);
    assert!(mean.noise.why.as_ref().unwrap().starts_with("in model reno, "), "{:?}", mean.noise.why);
    assert!(many.noise.why.as_ref().unwrap().starts_with("the loop is unstable"), "{:?}", many.noise.why);
}

#[test]
fn the_power_of_the_noise_sums_up_to_its_deviation() {
    // Tosses (PI), packets that are spared (PIE), an average with gaps (RED), and one whose max_p moves (ARED).
    let tossed = network(20_000_000, 60.0, 0.2, 60.0);
    let averaged = Network { buffer_pkts: 366.0, ..network(8_336_712, 58.0, 0.165_93 + 122.0 / 1042.09, 122.0) };
    let red = ["max_p", "weight"].into_iter().zip([0.05, 5e-4].map(OwnedValue::Number)).collect::<Vec<_>>();
    let pie = ["alpha", "beta"].into_iter().zip([0.03, 0.3].map(OwnedValue::Number)).collect::<Vec<_>>();
    for (name, values, network, flows, base_rtt_s) in [
        ("pi", &[][..], tossed, 60.0, 0.176),
        ("pie", &pie, tossed, 60.0, 0.176),
        ("red", &red, averaged, 25.0, 0.2291),
        ("ared", &[], averaged, 25.0, 0.2291),
    ] {
        let there = OperatingConditions { model: Model::Reno, flows, base_rtt_s, ..conditions(&network) };
        let choice = choice(name, values, network);
        let noise = analyse(&choice, &there).unwrap().noise;
        let told = noise.queue_std_pkts.unwrap_or_else(|| panic!("{name}: {noise:?}"));
        // From far below any loop to far above; what lies below is flat.
        let w: Vec<f64> = (0..=1200).map(|k| 1e-3 * 10f64.powf(f64::from(k) / 200.0)).collect();
        let power = noise_power(&choice, &there, &w).unwrap();
        let area: f64 = (1..w.len()).map(|k| 0.5 * (power[k] + power[k - 1]) * (w[k] - w[k - 1])).sum();
        let deviation = ((area + w[0] * power[0]) / std::f64::consts::PI).sqrt();
        assert!((deviation / told - 1.0).abs() < 0.02, "{name}: {deviation} {told}");
        // Whatever the model of the conditions, it is that of Reno's windows.
        assert_eq!(noise_power(&choice, &OperatingConditions { model: Model::Ecn, ..there }, &w).unwrap(), power);
    }
    let network = network(10_000_000, 60.0, 0.28, 100.0);
    assert!(noise_power(&choice("codel", &[], network), &conditions(&network), &[1.0]).is_err());
}

#[test]
fn a_noise_budget_names_its_sources_and_sums_up_to_the_variance() {
    let pie_calmed = (1161, 29.0, 0.171);
    let part = |analysis: &Analysis, source: &str| {
        let found = analysis.noise.budget.iter().find(|part| part.source == source);
        found.map_or(0.0, |part| part.share)
    };
    for (aqm, preset, network, sources) in [
        // Equations of a mean window have halvings and arrivals.
        ("pi", "ns2", (1250, 30.0, 0.2), &["halvings", "arrivals"][..]),
        ("pi", "linux", (1250, 30.0, 0.2), &["halvings", "windows"]),
        ("pi", "dctcp", (1250, 30.0, 0.2), &["halvings", "windows"]),
        ("pie", "linux", pie_calmed, &["halvings", "windows", "spacing", "nonlinearity"]),
    ] {
        let told = of_preset(aqm, &[], preset, network);
        let Some(deviation) = told.noise.queue_std_pkts else {
            panic!("{aqm} {preset}: {:?}", told.noise.why);
        };
        let named: Vec<&str> = told.noise.budget.iter().map(|part| part.source).collect();
        assert_eq!(named, sources, "{aqm} {preset}");
        let all: f64 = told.noise.budget.iter().map(|part| part.variance_pkts2).sum();
        // PIE's own grid of frequencies is coarser.
        assert!((all.sqrt() / deviation - 1.0).abs() < 1e-9, "{aqm} {preset}: {} {deviation}", all.sqrt());
        assert!((told.noise.budget.iter().map(|part| part.share).sum::<f64>() - 1.0).abs() < 1e-12);
        assert!(named.iter().all(|name| SOURCES.contains(name)));
        // Chance that chooses which packets are signalled is in all of them; spaced signals have less of it.
        assert!(part(&told, "halvings") > 0.1 && part(&told, "spacing") <= 0.0, "{:?}", told.noise.budget);
    }
}

#[test]
fn many_windows_have_a_loop_where_some_share_holds_them_and_no_equations_for_their_swing() {
    let modern = Sender { proportional: true, from_flight: true, min_window: 2.0, ..Sender::reno() };
    let network = network(10_000_000, 60.0, 0.28, 100.0);
    let told = |flows: f64| {
        let there = OperatingConditions { model: Model::Reno, sender: modern, flows, ..conditions(&network) };
        analyse(&choice("pi", &[], network), &there).unwrap()
    };
    // Windows of 350 packets over 60 flows, and over 300, of which none is below two.
    let (held, crowded) = (told(60.0), told(300.0));
    assert!(held.operating_point.at.feasible && held.margins.is_some());
    assert!(!crowded.operating_point.at.feasible && crowded.margins.is_none());
    // Few flows with large windows swing: for how long is told, not how high.
    let few = told(8.0);
    assert!(!few.margins.unwrap().exact.stable, "{:?}", few.expected);
    assert!(few.expected.oscillation_period_s.is_some() && few.expected.oscillation_std_pkts.is_none());
}

#[test]
fn little_margin_is_warned_of() {
    // A quarter of the gain leaves PI four times the gain margin, and more of the phase.
    let network = network(30_000_000, 60.0, 0.246, 175.0);
    let own = analyse(&choice("pi", &[], network), &conditions(&network)).unwrap();
    let (a, b) = (number(&own, "a"), number(&own, "b"));
    let margin = own.margins.unwrap().exact.gain_margin.unwrap();
    let told = |gain_margin: f64| {
        let [a, b] = [a, b].map(|gain| gain * margin / gain_margin);
        let gains = [("a", OwnedValue::Number(a)), ("b", OwnedValue::Number(b))];
        let analysis = analyse(&choice("pi", &gains, network), &conditions(&network)).unwrap();
        let exact = analysis.margins.unwrap().exact;
        assert!((exact.gain_margin.unwrap() / gain_margin - 1.0).abs() < 1e-6, "{exact:?}");
        let warned = analysis.warnings.iter().any(|warning| warning.starts_with("little margin: gain"));
        (warned, exact.phase_margin_deg.unwrap())
    };
    for (gain_margin, warned) in [(1.75, true), (1.2, true), (2.5, false), (6.0, false)] {
        let (seen, phase) = told(gain_margin);
        assert_eq!(seen, warned, "{gain_margin}: {phase} degrees");
        assert!(warned || phase > 25.0, "{phase}");
    }
}

#[test]
fn windows_of_linux_under_arm_pfc_have_the_margin_that_packets_show() {
    // 89 flows at 16.7 Mbit/s and 200 ms. In packets the queue keeps to 68 +- 11.
    let rate = Rate::from_bps(16_700_000);
    let made_for = Network {
        capacity: rate,
        link_rate: rate,
        flows: 89.0,
        base_rtt_s: 0.2,
        target_pkts: 70.0,
        packet_bytes: 1500.0,
        buffer_pkts: 280.0,
    };
    let (_, linux) = PRESETS.iter().find(|(name, _)| *name == "linux").unwrap();
    let there = OperatingConditions {
        model: Model::Reno,
        sender: Sender::from_protocol(&linux()).unwrap(),
        ..conditions(&made_for)
    };
    let told = analyse(&choice("arm-pfc", &[], made_for), &there).unwrap();
    let exact = told.margins.unwrap().exact;
    assert!(exact.stable && exact.gain_margin.is_some_and(|gain| (3.0..4.0).contains(&gain)), "{exact:?}");
    assert!((8.0..14.0).contains(&told.noise.queue_std_pkts.unwrap()), "{:?}", told.noise.queue_std_pkts);
}

/// Flows of a preset at a capacity in packets of 1500 bytes a second, and an AQM made for them.
fn of_preset(aqm: &str, values: &[(&str, f64)], preset: &str, (pps, flows, base_rtt_s): (u64, f64, f64)) -> Analysis {
    let rate = Rate::from_bps(12_000 * pps);
    let (capacity, link_rate, packet_bytes) = (rate, rate, 1500.0);
    let made_for =
        Network { capacity, link_rate, flows, base_rtt_s, packet_bytes, ..network(10_000_000, flows, 0.28, 20.0) };
    let (_, transport) = PRESETS.iter().find(|(name, _)| *name == preset).unwrap();
    let there = OperatingConditions {
        model: Model::Reno,
        capacity_pps: pps as f64,
        sender: Sender::from_protocol(&transport()).unwrap(),
        ..conditions(&made_for)
    };
    let values: Vec<_> = values.iter().map(|(name, value)| (*name, OwnedValue::Number(*value))).collect();
    analyse(&choice(aqm, &values, made_for), &there).unwrap()
}

#[test]
fn where_pie_drops_what_scalable_flows_would_have_marked_no_share_is_told() {
    // Windows of 7: 1.4 / 7 = .2 of the packets, above mark_p = .1.
    let network = (1100, 7.0, 0.027);
    for preset in ["dctcp", "prague"] {
        let told = of_preset("pie", &[], preset, network);
        let json = serde_json::to_value(&told).unwrap();
        for null in ["/margins", "/operating_point/probability", "/expected/probability", "/expected/oscillates"] {
            assert!(json.pointer(null).unwrap().is_null(), "{preset}: {null}");
        }
        assert!(told.noise.queue_std_pkts.is_none() && !told.gains.contains_key("alpha_tuned"));
        let why = told.noise.why.unwrap();
        assert!(why.contains("p above 0.1, from where packets are dropped"), "{why}");
        assert!(told.warnings.contains(&why));
        // The queue is held all the same.
        assert!((told.expected.queue_pkts - 16.5).abs() < 0.1, "{}", told.expected.queue_pkts);
        // Marks alone hold them.
        let marked = of_preset("pie", &[("mark_p", 1.0)], preset, network);
        assert!(marked.margins.is_some() && marked.expected.probability > 0.1, "{preset}");
    }
    assert!(of_preset("pie", &[], "cubic", network).margins.is_some());
    assert!(of_preset("pie", &[], "dctcp", (1100, 1.0, 0.027)).margins.is_some());
}

#[test]
fn a_short_queue_of_pie_that_noise_calms_is_told_calm() {
    // In packets 17.3 +- 8.2 without a period.
    let told = of_preset("pie", &[], "linux", (1161, 29.0, 0.171));
    assert!(!told.margins.unwrap().exact.stable);
    assert_eq!(told.expected.oscillates, Some(false));
    assert!((6.0..12.0).contains(&told.noise.queue_std_pkts.unwrap()), "{:?}", told.noise.queue_std_pkts);
    assert!(!told.noise.valid && told.noise.why.unwrap().contains("noise stabilises it through PIE's safeguard"));
    assert!(
        told.warnings.iter().any(|warning| warning.contains("an irregular, small oscillation")),
        "{:?}",
        told.warnings
    );
    // Where no deviation agrees with itself, that is said.
    let told = of_preset("pie", &[], "linux", (717, 9.0, 0.186));
    assert_eq!((told.expected.oscillates, told.expected.oscillation_period_s), (None, None));
    assert!(told.noise.why.unwrap().ends_with("is not known"));
}

#[test]
fn in_slow_motion_red_rests_and_swings_as_it_does_and_takes_as_many_times_as_long() {
    // All that RED does goes by packets.
    let told = |flows: f64, times: f64| {
        let rate = Rate::from_bps((16e6 / times) as u64);
        let known = network(16_000_000, 58.0, 0.165_93 + 122.0 / 2000.0, 122.0);
        let base_rtt_s = known.base_rtt_s * times;
        let made_for = Network { capacity: rate, link_rate: rate, base_rtt_s, buffer_pkts: 366.0, ..known };
        let there =
            OperatingConditions { model: Model::Reno, flows, base_rtt_s: 0.2291 * times, ..conditions(&made_for) };
        let values = [("max_p", OwnedValue::Number(0.05)), ("weight", OwnedValue::Number(5e-4))];
        analyse(&choice("red", &values, made_for), &there).unwrap()
    };
    let figures = |told: &Analysis, times: f64| {
        let (noise, at) = (&told.noise, &told.operating_point.at);
        let exact = told.margins.as_ref().unwrap().exact;
        let hopf = told.hopf.as_ref().unwrap();
        let spectrum = noise.spectrum.as_ref().unwrap();
        let mut all = vec![at.queue_pkts, at.probability, at.window_pkts, at.rtt_s / times];
        all.extend([noise.queue_std_pkts, noise.queue_p95_pkts, noise.utilization_lost].map(Option::unwrap));
        all.extend([exact.gain_margin, exact.phase_margin_deg].map(Option::unwrap));
        all.extend([exact.modulus_margin, spectrum.peak_rad_s * times]);
        all.extend([hopf.gain, hopf.period_s / times, hopf.mu2, hopf.branch_end_std_pkts]);
        all.extend(spectrum.power_pkts2_s.iter().map(|power| power / times));
        all
    };
    let known = told(75.0, 1.0);
    assert!(known.noise.valid, "{:?}", known.noise.why);
    for times in [16.0, 0.0625] {
        for (k, (a, b)) in figures(&told(75.0, times), times).iter().zip(figures(&known, 1.0)).enumerate() {
            assert!((a - b).abs() < 1e-4 * b.abs() + 1e-12, "{times}: figure {k}: {a} {b}");
        }
    }
    // With fewer flows it is so near to instability that its deviation is in doubt.
    let doubt = told(45.0, 1.0).noise;
    assert!(!doubt.valid && doubt.why.unwrap().starts_with("next to the boundary of stability: 5 % of the gain"));
}
