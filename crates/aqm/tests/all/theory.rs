//! Tests of the algorithms' theoretical properties against values computed by hand: 20 flows, 100 ms, 1000 packets/s, a
//! target of 40 packets, so R0 = 0.14 s, W0 = 7 packets.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use aqumen_aqm::registry::{AnyAqm, algorithms, build, build_qdisc};
use aqumen_aqm::{
    Aqm, ArmPfc, ArmPfcParams, Cx, DesignReport, Draw, DropReason, Equilibrium, EstimateRatios, FluidModel, GapTail,
    Hooks, Limit, MaxPSteps, Observation, Packet, Pi2Law, Pi2Params, QueueKind, QueueOperatingPoint, QueueView, RedLaw,
    SampledLaw, TcpPlant, Theory, Totals, Transfer, Value, Variant, Verdict,
};
use aqumen_units::{Ecn, Instant, Span};

use crate::common::NETWORK;
use aqumen_aqm::testing::SplitMix;

const REST: QueueOperatingPoint = QueueOperatingPoint {
    flows: 20.0,
    capacity_pps: 1000.0,
    base_rtt_s: 0.1,
    rtt_s: 0.14,
    queue_pkts: 40.0,
    window_pkts: 7.0,
    probability: 0.04,
    packet_bytes: 1000.0,
    estimates: EstimateRatios::EXACT,
};

fn aqm(name: &str, given: &[(&str, Value<'_>)]) -> AnyAqm {
    build(name, given, &NETWORK).expect("it is registered").unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn number(name: &'static str, x: f64) -> (&'static str, Value<'static>) {
    (name, Value::Number(x))
}

#[derive(Default)]
struct DerivedValues {
    numbers: BTreeMap<&'static str, f64>,
    warnings: Vec<String>,
}

impl DesignReport for DerivedValues {
    fn number(&mut self, name: &'static str, value: f64) {
        self.numbers.insert(name, value);
    }

    fn list(&mut self, _name: &'static str, _values: &[f64]) {}

    fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }
}

fn derived(aqm: &AnyAqm) -> DerivedValues {
    let mut derived = DerivedValues::default();
    aqm.theory().derive(&REST, &TcpPlant::new(20.0, 1000.0, 0.14).unwrap(), &mut derived);
    derived
}

fn assert_near(found: f64, wanted: f64, share: f64) {
    assert!((found - wanted).abs() <= share * wanted.abs(), "{found} instead of {wanted}");
}

/// Value of num / den at `x` (z^-1 or s).
fn value(transfer: &Transfer, x: f64) -> f64 {
    let at = |coefficients: &[f64]| coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c);
    at(&transfer.num) / at(&transfer.den)
}

#[test]
fn algorithms_that_cannot_be_linearised_give_a_reason() {
    let reasons: BTreeMap<&str, &str> = algorithms()
        .filter(|algorithm| algorithm.kind() == QueueKind::Single && algorithm.name != "fixed")
        .filter_map(|algorithm| Some((algorithm.name, aqm(algorithm.name, &[]).theory().not_linearizable()?)))
        .collect();
    let names: Vec<&str> = reasons.keys().copied().collect();
    assert_eq!(names, ["aaqm", "ared-feng", "avq", "blue", "cobalt", "codel"]);
    let says = |name: &str, word: &str| assert!(reasons[name].contains(word), "{name}: {}", reasons[name]);
    says("aaqm", "fixed steps");
    says("ared-feng", "between the thresholds");
    says("avq", "virtual queue");
    says("blue", "fixed steps");
    says("cobalt", "at overflow");
    says("codel", "at scheduled times");
    let fixed = aqm("fixed", &[number("p", 0.1)]);
    assert_eq!(fixed.theory().not_linearizable(), Some("its probability is constant"));
}

#[test]
fn equilibria_are_at_the_buffer_limit_off_target_or_on_reds_curve() {
    let droptail = aqm("droptail", &[]);
    assert_eq!(droptail.theory().equilibrium(), Equilibrium::AtBufferLimit);
    assert_eq!(droptail.theory().fluid_model(), FluidModel::BufferOnly);
    assert_eq!(aqm("arm-pfc", &[]).theory().equilibrium(), Equilibrium::OffTarget);
    assert_eq!(aqm("pi", &[]).theory().equilibrium(), Equilibrium::AtTarget);
    // Thresholds of 20 and 60: Floyd's rule leaves max_p alone around 40. The others have no such queue.
    assert_eq!(aqm("ared", &[]).theory().adaptation_center_pkts(), Some(40.0));
    assert_eq!(
        aqm("ared", &[number("min_th", 10.0), number("max_th", 40.0)]).theory().adaptation_center_pkts(),
        Some(25.0)
    );
    assert_eq!(aqm("ared-feng", &[]).theory().adaptation_center_pkts(), None);
    assert_eq!(aqm("red", &[]).theory().adaptation_center_pkts(), None);
    // Between 20 and 60 max_p stays in the middle fifth, 36 to 44. A step up of .01 is half of .02, but at most a
    // quarter of it, and a tenth of .1; a step down is always a tenth; at its ends, .01 and .5, it takes none.
    let steps = |max_p: f64| aqm("ared", &[]).theory().max_p_steps(max_p);
    for (max_p, wanted) in [(0.02, [4.0, 0.25, 0.1, 0.5]), (0.1, [4.0, 0.1, 0.1, 0.5])] {
        let MaxPSteps { band_half_pkts, up, down, interval_s } = steps(max_p).unwrap();
        let found = [band_half_pkts, up, down, interval_s];
        found.into_iter().zip(wanted).for_each(|(found, wanted)| assert_near(found, wanted, 1e-12));
    }
    assert_eq!([steps(0.01), steps(0.5), aqm("ared-feng", &[]).theory().max_p_steps(0.1)], [None; 3]);
    assert_eq!(aqm("red", &[]).theory().max_p_steps(0.1), None);
}

#[test]
fn pies_safeguard_is_half_its_target_delay() {
    for (delay, sojourn) in [("sojourn", true), ("rate", false)] {
        let pie = aqm("pie", &[("delay", Value::Choice(delay)), number("target", 0.02)]);
        let limits = pie.theory().safeguard().expect("PIE has a safeguard");
        // RFC 8033 section 4.1: where the delay is below half the target and p below 0.2.
        assert_eq!((limits.delay_s, limits.probability, limits.sojourn), (0.01, 0.2, sojourn));
        assert_eq!(limits.burst, Span::from_millis(150));
    }
    assert!(aqm("pi", &[]).theory().safeguard().is_none());
}

fn red(given: &[(&'static str, Value<'static>)]) -> (AnyAqm, RedLaw) {
    let red = aqm("red", given);
    let FluidModel::Red(law) = red.theory().fluid_model() else { panic!("RED's average is RED's") };
    assert_eq!(red.theory().equilibrium(), Equilibrium::OnCurve(law));
    (red, law)
}

/// Fraction of a million packets that RED signals at an average of 40 (p_b = 0.05), 80 (0.4) or 130 (1).
#[test]
fn reds_mean_law_is_the_fraction_of_packets_that_red_signals() {
    for wait in [true, false] {
        for (queue, gap) in [
            // From 20 to 40 packets, or from 1 to 20 (the first after a signal is certain not to be one).
            (40, if wait { 29.5 } else { 10.0 }),
            // ceil(2.5) = 3; then chances of 1/2 and 1: 3.5. Without: 1, then 1/1.5 and 1: 1 + 1/3.
            (80, if wait { 3.5 } else { 4.0 / 3.0 }),
            (130, 1.0),
        ] {
            let (mut red, law) = red(&[("wait", Value::Flag(wait)), number("weight", 1.0)]);
            assert_near(law.probability(f64::from(queue)), 1.0 / gap, 1e-12);
            let (mut rng, totals, mut marks, mut drops) = (SplitMix(1), Totals::default(), 0, 0);
            let packets = 1_000_000;
            for _ in 0..packets {
                let seen = QueueView {
                    packets: queue,
                    bytes: 1000 * u64::from(queue),
                    limit: Limit::packets(400),
                    totals: &totals,
                };
                let packet = Packet { bytes: 1000, ecn: Ecn::Ect0, ..Packet::default() };
                match red.on_arrival(&packet, &mut Cx { now: Instant::ZERO, queue: seen, rng: &mut rng }) {
                    Verdict::Pass => {}
                    Verdict::Mark => marks += 1,
                    Verdict::Drop(_) => drops += 1,
                }
            }
            assert_near(f64::from(marks + drops), f64::from(packets) / gap, 0.01);
            assert_eq!(law.drops_ect(f64::from(queue)), drops > 0, "at {queue}");
            assert!(marks == 0 || drops == 0);
        }
    }
    // Without ECN each signal is a loss, with ns-2's use_mark_p those above p_b = 0.1.
    assert!(red(&[("ecn", Value::Flag(false))]).1.drops_ect(40.0));
    let (_, law) = red(&[("use_mark_p", Value::Flag(true))]);
    assert!(!law.drops_ect(59.0) && law.drops_ect(61.0));
}

#[test]
fn red_spaces_its_signals_evenly() {
    let near = |p: f64, wait: bool, gap: (f64, f64), variance: f64| {
        let (red, _) = red(&[("wait", Value::Flag(wait))]);
        let gaps = red.theory().signal_gaps(p).unwrap();
        let GapTail::Uniform(most) = gaps.tail else { panic!("{gaps:?}") };
        assert_near(gaps.least_pkts, gap.0, 1e-9);
        assert_near(most, gap.1, 1e-9);
        // Tosses have gaps whose variance is (1 - p) / p^2.
        assert_near(red.theory().dispersion(p), variance * p * p / (1.0 - p), 1e-9);
    };
    // p_b = 0.05: any of 20 to 39 packets, of variance (20^2 - 1) / 12; or of 1 to 19, (19^2 - 1) / 12.
    near(1.0 / 29.5, true, (20.0, 20.0), 33.25);
    near(0.1, false, (1.0, 19.0), 30.0);
    // Without a signal there is no gap, where every packet is signalled neither. Then nothing varies.
    for wait in [true, false] {
        let (red, _) = red(&[("wait", Value::Flag(wait))]);
        assert_eq!(
            [0.0, 1.0].map(|p| (red.theory().signal_gaps(p), red.theory().dispersion(p))),
            [(None, 1.0), (None, 0.0)]
        );
    }
}

#[test]
fn red_answers_with_the_slope_of_its_share_and_the_pole_of_its_average() {
    let (red, law) = red(&[]);
    let at = QueueOperatingPoint { probability: 1.0 / 29.5, ..REST };
    assert_near(law.average_at(at.probability), 40.0, 1e-9);
    // The slope of p_b is 0.1 / 40, that of the share about two thirds of it; -ln(1 - 0.002) * 1000 = 2.002 rad/s.
    let answer = red.theory().linear(&at).unwrap();
    assert_near(value(&answer, 0.0), 0.0025 / 1.5, 0.02);
    assert_near(value(&answer, 2.002_002_67), 0.5 * value(&answer, 0.0), 1e-6);
    assert_eq!(answer.period_s, None);
}

#[test]
fn red_is_told_hollots_rule_for_its_average() {
    // Gain 140^3 / (4 * 20^2) = 1715, times 0.0025: 4.2875. w_g = 0.1 / 0.49 = 0.204082.
    // K = 0.204082 / sqrt(4.2875^2 - 1) = 0.0489499; a weight of 4.8949e-5.
    let told = derived(&red(&[]).0);
    for (name, wanted) in [
        ("L_RED", 0.0025),
        ("K", 2.002_002_67),
        ("w_g", 0.204_081_633),
        ("K_stable", 0.048_949_0),
        ("weight_stable", 4.894_78e-5),
    ] {
        assert_near(told.numbers[name], wanted, 1e-5);
    }
    assert_eq!(told.warnings.len(), 1, "{:?}", told.warnings);
    assert!(told.warnings[0].contains("weight 2.000e-3 instead of at most 4.895e-5"), "{:?}", told.warnings);
    // A weight below it is as it should be; where the curve's slope times the plant's gain is below one, any is.
    assert!(derived(&red(&[number("weight", 4.8e-5)]).0).warnings.is_empty());
    // An average that is the queue itself has a pole as far away as numbers go.
    assert!(derived(&red(&[number("weight", 1.0)]).0).numbers["K"].is_finite());
    let flat = derived(&red(&[number("max_p", 0.02)]).0);
    assert!(flat.warnings.is_empty() && !flat.numbers.contains_key("K_stable"));
}

#[test]
fn pi_tells_its_velocity_form_and_the_controller_that_it_samples() {
    let pi = aqm("pi", &[number("a", 2e-4), number("b", 1e-4), number("frequency", 100.0)]);
    let answer = pi.theory().linear(&REST).unwrap();
    assert_eq!((&answer.num[..], &answer.den[..]), (&[2e-4, -1e-4][..], &[1.0, -1.0][..]));
    assert_eq!(answer.period_s, Some(0.01));
    // K = (a - b) f = 0.01, z = 2 K / (a + b) = 66.67, k_p = K / z = 1.5e-4.
    let told = derived(&pi).numbers;
    assert_near(told["K"], 0.01, 1e-12);
    assert_near(told["z"], 200.0 / 3.0, 1e-12);
    assert_near(told["k_p"], 1.5e-4, 1e-12);
}

#[test]
fn rem_answers_to_the_queue_by_alpha_and_to_its_change_by_the_filter() {
    let given = [number("phi", 1.002), number("gamma", 0.01), number("alpha", 0.2), number("inw", 0.1)];
    let answer = aqm("rem", &given).theory().linear(&REST).unwrap();
    // ln 1.002 * 0.96 * 0.01 = 1.918082e-5 a unit of price. A step of one packet: the filter's first answer is 0.1, and
    // alpha adds 0.2 an update; far from the step alpha alone is left.
    let gain = 1.918_082e-5;
    let response = step_response(&answer, 200);
    assert_near(response[0], 0.3 * gain, 1e-6);
    // The filter: 0.1, then 0.09, 0.081: 0.1 + 0.09 + 2 * 0.2.
    assert_near(response[1], 0.59 * gain, 1e-6);
    assert_near(response[199] - response[198], 0.2 * gain, 1e-6);
}

/// Step response of num / den.
fn step_response(transfer: &Transfer, steps: usize) -> Vec<f64> {
    let mut out: Vec<f64> = Vec::new();
    for n in 0..steps {
        let input: f64 = transfer.num.iter().take(n + 1).sum();
        let past: f64 = (1..transfer.den.len().min(n + 1)).map(|k| transfer.den[k] * out[n - k]).sum();
        out.push((input - past) / transfer.den[0]);
    }
    out
}

#[test]
fn paqm_integrates_by_alpha_over_twice_the_target_and_extrapolates_where_its_reading_does() {
    let given = |reading| [number("alpha", 0.01), number("target", 40.0), ("reading", Value::Choice(reading))];
    let settled = |reading| {
        let response = step_response(&aqm("paqm", &given(reading)).theory().linear(&REST).unwrap(), 5);
        (response[0], response[4] - response[3])
    };
    // 0.01 / 80 each period from the first on, twice that once both samples are above.
    let (first, each) = settled("I");
    assert_near(first, 1.25e-4, 1e-12);
    assert_near(each, 2.5e-4, 1e-9);
    // The D part: 0.01 / (120 - 40) times twice the sample less the one before.
    let (first, each) = settled("SUM");
    assert_near(first, 1.25e-4 + 2.5e-4, 1e-12);
    assert_near(each, 2.5e-4 + 1.25e-4, 1e-9);
    assert_eq!(aqm("paqm", &[]).theory().gain(), Some("alpha"));
    assert_eq!(aqm("pi", &[]).theory().gain(), None);
}

#[test]
fn pie_tells_the_gains_that_its_tuning_leaves() {
    // RFC 8033 section 4.2: below 0.1 half of them.
    let told = |tuned, p: f64| {
        let pie = aqm("pie", &[("auto_tune", Value::Flag(tuned)), ("derandomize", Value::Flag(false))]);
        let mut derived = DerivedValues::default();
        let at = QueueOperatingPoint { probability: p, ..REST };
        pie.theory().derive(&at, &TcpPlant::new(20.0, 1000.0, 0.14).unwrap(), &mut derived);
        [derived.numbers["alpha_tuned"], derived.numbers["beta_tuned"]]
    };
    assert_eq!(told(true, 0.04), [0.0625, 0.625]);
    assert_eq!(told(true, 0.4), [0.125, 1.25]);
    assert_eq!(told(false, 0.04), [0.125, 1.25]);
}

#[test]
fn aqm_mo_answers_by_both_loops_with_half_periods_and_filters_as_lags() {
    let given = [number("h1", 0.2), number("h2", 0.04), number("tau_rate", 0.3), number("tau_queue", 0.1)];
    let aqm_mo = aqm("aqm-mo", &given);
    let told = derived(&aqm_mo).numbers;
    let answer = aqm_mo.theory().linear(&REST).unwrap();
    for s in [0.1, 1.0, 5.0] {
        // Lags: 0.3 + 0.1 and 0.1 + 0.02.
        let (inner, outer) = (1.0 + 0.4 * s, 1.0 + 0.12 * s);
        let window = (0.14 * s / inner + 1.0) / 20.0;
        let queue = told["k_po"] * (1.0 + 1.0 / (told["T_io"] * s)) / outer;
        assert_near(value(&answer, s), (window + queue) / (told["T_first"] * s) + told["K_p"] / outer, 1e-9);
    }
}

#[test]
fn arm_pfc_says_where_its_design_is_out_of_range() {
    let told = derived(&aqm("arm-pfc", &[])).numbers;
    // gamma = T_s / sqrt(0.14^2 + 0.49^2).
    assert_near(told["gamma"], told["T_s"] / 0.509_607_692, 1e-8);
    let theory = aqm("arm-pfc", &[]);
    let warning = |window_pkts| theory.theory().equilibrium_warning(&QueueOperatingPoint { window_pkts, ..REST });
    assert_eq!([warning(7.0), warning(2.06), warning(1.94)], [None, None, None]);
    assert!(warning(2.04).unwrap().contains("W0 is near 2"));
}

#[test]
fn arm_pfc_answers_to_a_step_of_the_queue_as_its_transfer_function_says() {
    let plant = TcpPlant::new(20.0, 1000.0, 0.14).unwrap();
    for (variant, h) in [(Variant::A, 6), (Variant::B, 8), (Variant::C, 7), (Variant::C, 9)] {
        let params = ArmPfcParams { variant, h, d: 4, ..ArmPfcParams::new(plant, 40.0) };
        let mut law = ArmPfc::new(params).unwrap();
        let wanted = step_response(&law.linear(&REST).unwrap(), 30);
        // At rest nothing moves; so small a step that the probability stays within 0 and 1.
        let step = 1e-6;
        let mut at = |queue_pkts: f64| {
            let applied = law.initial();
            law.step(0, &Observation { queue_pkts, applied, ..Observation::default() }).get()
        };
        let rest = (0..50).map(|_| at(40.0)).last().unwrap();
        for (n, wanted) in wanted.iter().enumerate() {
            let found = (at(40.0 + step) - rest) / step;
            assert!((found - wanted).abs() < 1e-6 * wanted.abs().max(1e-3), "{variant:?} {h}, {n}: {found} {wanted}");
        }
    }
}

#[test]
fn a_host_may_toss_the_coin_of_sampled_laws_alone() {
    for (name, coin) in [("pi", true), ("arm-pfc", true), ("stpi", true), ("red", false), ("codel", false)] {
        assert_eq!(aqm(name, &[]).coin().is_some(), coin, "{name}");
    }
    let fixed = aqm("fixed", &[number("p", 0.25), ("ecn", Value::Flag(false))]).coin();
    assert!(fixed.is_none_or(|coin| coin.probability.get() == 0.25 && !coin.ecn));
}

#[test]
fn each_update_of_fq_pie_looks_after_all_its_queues() {
    let queues = |name: &str, given: &[(&str, Value<'_>)]| {
        build_qdisc(name, given, &NETWORK, Limit::packets(120)).unwrap().unwrap().updated_queues()
    };
    assert_eq!(queues("fq-pie", &[number("queues", 32.0)]), 32);
    assert_eq!([queues("pie", &[]), queues("fq-codel", &[])], [1, 1]);
}

/// Records each call.
#[derive(Clone, Default)]
struct CallLog(Arc<Mutex<Vec<&'static str>>>);

impl Aqm for CallLog {
    fn on_arrival<R: Draw>(&mut self, _packet: &Packet, _cx: &mut Cx<'_, R>) -> Verdict {
        self.0.lock().unwrap().push("arrival");
        Verdict::Mark
    }

    fn on_overflow<R: Draw>(&mut self, _packet: &Packet, _cx: &mut Cx<'_, R>) {
        self.0.lock().unwrap().push("overflow");
    }

    fn on_buffer_stolen(&mut self, packets: u32) {
        assert_eq!(packets, 3);
        self.0.lock().unwrap().push("stolen");
    }

    fn on_dequeue<R: Draw>(&mut self, _packet: &Packet, _sojourn: Span, _cx: &mut Cx<'_, R>) -> Verdict {
        self.0.lock().unwrap().push("dequeue");
        Verdict::Drop(DropReason::Early)
    }

    fn on_departure(&mut self, _now: Instant) {
        self.0.lock().unwrap().push("departure");
    }

    fn on_idle(&mut self, _now: Instant) {
        self.0.lock().unwrap().push("idle");
    }

    fn on_timer<R: Draw>(&mut self, _cx: &mut Cx<'_, R>) {
        self.0.lock().unwrap().push("timer");
    }

    fn hooks(&self) -> Hooks {
        Hooks { decides_at_head: true, departures: true }
    }
}

#[test]
fn a_custom_algorithm_receives_every_call() {
    let log = CallLog::default();
    let heard = log.0.clone();
    let mut aqm = AnyAqm::custom(log);
    let (totals, packet, mut rng, now) = (Totals::default(), Packet::default(), SplitMix(1), Instant::ZERO);
    let queue = || QueueView { packets: 1, bytes: 1000, limit: Limit::packets(9), totals: &totals };
    assert_eq!(aqm.on_arrival(&packet, &mut Cx { now, queue: queue(), rng: &mut rng }), Verdict::Mark);
    aqm.on_overflow(&packet, &mut Cx { now, queue: queue(), rng: &mut rng });
    aqm.on_buffer_stolen(3);
    let dropped = aqm.on_dequeue(&packet, Span::ZERO, &mut Cx { now, queue: queue(), rng: &mut rng });
    assert_eq!(dropped, Verdict::Drop(DropReason::Early));
    aqm.on_departure(now);
    aqm.on_idle(now);
    aqm.on_timer(&mut Cx { now, queue: queue(), rng: &mut rng });
    assert_eq!(*heard.lock().unwrap(), ["arrival", "overflow", "stolen", "dequeue", "departure", "idle", "timer"]);
    assert!(aqm.hooks().departures && aqm.hooks().decides_at_head && aqm.coin().is_none());
}

#[test]
fn pi2_that_takes_over_goes_on_from_the_probability_in_force() {
    let mut old = Pi2Law::new(Pi2Params::default());
    let seen = |sojourn_s| Observation { queue_pkts: 10.0, sojourn_s, ..Observation::default() };
    for _ in 0..40 {
        old.step(0, &seen(0.05));
    }
    let mut new = Pi2Law::new(Pi2Params { target_s: 0.02, ..Pi2Params::default() });
    new.take_over(&old);
    // At its own target, and the delay falling by 30 ms: less than before by beta alone, not from nothing.
    let (before, after) = (old.step(0, &seen(0.05)).get(), new.step(0, &seen(0.05)).get());
    assert!(before > 0.01 && (after / before - 1.0).abs() < 0.1, "{before} {after}");
}

#[test]
fn pies_law_says_more_than_the_share_that_it_signals_and_the_slope_lies_between() {
    let share = aqm("pie", &[]).theory().signal_process();
    // Gaps of 0.85 / p + 1 / p - 0.85 packets: at p = 0.1 17.65.
    assert_near(share.signal_probability(0.1), 1.0 / 17.65, 1e-12);
    for p in [1e-4, 0.03, 0.4, 1.0] {
        assert_near(share.law_probability(share.signal_probability(p)), p, 1e-12);
        let step = 1e-6 * p;
        let slope = (share.signal_probability(p + step) - share.signal_probability(p - step)) / (2.0 * step);
        assert_near(share.slope(share.signal_probability(p)), slope, 1e-6);
    }
}

#[test]
fn algorithms_without_theory_use_the_defaults() {
    for name in ["droptail", "blue", "fixed"] {
        let given = if name == "fixed" { vec![number("p", 0.1)] } else { vec![] };
        let aqm = aqm(name, &given);
        let theory = aqm.theory();
        assert_eq!(
            (theory.equilibrium_warning(&REST), theory.delay_margin_warning(0.01), theory.gain()),
            (None, None, None),
            "{name}"
        );
        assert!(theory.linear(&REST).is_none() && theory.adaptation_center_pkts().is_none(), "{name}");
    }
}
