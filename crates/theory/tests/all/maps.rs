//! Maps and robust designs against the nonlinear equations.

use std::f64::consts::PI;

use aqumen_aqm::{
    Algorithm, AnyAqm, Catalogue, MAX_LOOPS, Network, Observation, Param, QueueOperatingPoint, SampledLaw, Theory,
    Transfer, Value,
};
use aqumen_scenario::{AqmChoice, OwnedValue};
use aqumen_theory::boundary::{Crossing, boundary};
use aqumen_theory::cycle::check;
use aqumen_theory::design::{Analysis, Depth, Gain, OperatingConditions, analyse, analyse_to, linearise};
use aqumen_theory::fluid::Model;
use aqumen_theory::linear::{Complex64, Loop, OperatingPoint, Plant};
use aqumen_theory::maps::{Axis, map, nonlinear_checks};
use aqumen_theory::robust::{self, NetworkRange, Objective};
use aqumen_units::{Probability, Rate, Span};

const RATE: Rate = Rate::from_bps(10_000_000);

fn network() -> Network {
    Network {
        capacity: RATE,
        flows: 100.0,
        base_rtt_s: 0.2,
        target_pkts: 100.0,
        packet_bytes: 1000.0,
        link_rate: RATE,
        buffer_pkts: 300.0,
    }
}

fn choice(name: &str, values: &[(&str, f64)]) -> AqmChoice {
    let values = values.iter().map(|(name, x)| (name.to_string(), OwnedValue::Number(*x))).collect();
    AqmChoice::builtin(name, values, network())
}

fn conditions() -> OperatingConditions {
    OperatingConditions {
        model: Model::Ecn,
        flows: 100.0,
        capacity_pps: 1250.0,
        unresponsive_pps: 0.0,
        transfer_rtts: 0.0,
        base_rtt_s: 0.2,
        buffer_pkts: 300.0,
        sender: aqumen_theory::response::Sender::reno(),
    }
}

fn steps(from: f64, to: f64, n: usize) -> Vec<f64> {
    (0..n).map(|k| from * (to / from).powf(k as f64 / (n - 1) as f64)).collect()
}

#[test]
fn the_boundary_of_a_map_is_where_the_equations_begin_to_swing() {
    for name in ["pi", "arm-pfc", "aqm-mo"] {
        let choice = choice(name, &[]);
        let (flows, rtts) = (steps(8.0, 400.0, 60), steps(0.05, 0.6, 8));
        let map = map(&choice, &conditions(), (Axis::Flows, &flows), (Axis::Rtt, &rtts), 2).unwrap();
        let mut checked = 0;
        for (j, &base_rtt_s) in rtts.iter().enumerate() {
            let stable: Vec<bool> = (0..flows.len()).map(|i| map.points[j * flows.len() + i].margins.stable).collect();
            // More flows, smaller windows, less gain: stable from some number of flows on.
            let Some(edge) = stable.windows(2).position(|pair| !pair[0] && pair[1]) else { continue };
            for (factor, expect_stable) in [(0.75, false), (1.35, true)] {
                let conditions = OperatingConditions { flows: flows[edge] * factor, base_rtt_s, ..conditions() };
                let (mean, deviation) = settled(&choice, &conditions, 300.0);
                let case =
                    format!("{name}, {:.1} flows, {base_rtt_s:.3} s: {mean:.1} +- {deviation:.2}", conditions.flows);
                assert_eq!(deviation < 2.0, expect_stable, "{case}");
                checked += 1;
            }
        }
        assert!(checked >= 6, "{name}: only {checked} points on the boundary");
    }
}

#[test]
fn a_boundary_over_gain_is_the_gain_margin() {
    // At each round trip the loop by itself says up to which factor it is stable, and how it swings there.
    let choice = choice("pi", &[]);
    let pieces = boundary(&choice, &conditions(), (Axis::Rtt, [0.1, 0.4]), (Axis::Gain, [0.2, 20.0]), 2).unwrap();
    let [piece] = &pieces[..] else { panic!("{} pieces", pieces.len()) };
    // It goes through the box from one end to the other, by steps of a thirtieth of it and less.
    let across = |ratio: f64, range: f64| ratio.ln() / range.ln();
    let step = |a: &Crossing, b: &Crossing| [across(b.x / a.x, 4.0), across(b.y / a.y, 100.0)];
    let onwards = step(&piece[0], &piece[piece.len() - 1])[0].signum();
    for pair in piece.windows(2) {
        let [x, y] = step(&pair[0], &pair[1]);
        assert!(x * onwards > 0.0 && (1e-5..0.0301).contains(&x.hypot(y)), "{pair:?}");
    }
    // Whichever quantity is named first, it is the same curve.
    let turned = boundary(&choice, &conditions(), (Axis::Gain, [0.2, 20.0]), (Axis::Rtt, [0.1, 0.4]), 2).unwrap();
    let [turned] = &turned[..] else { panic!("{} pieces", turned.len()) };
    for at in turned {
        let at = Crossing { x: at.y, y: at.x, ..*at };
        let near = piece.iter().map(|other| step(&at, other)).map(|[x, y]| x.hypot(y)).fold(1.0, f64::min);
        assert!(near < 0.016, "{at:?}: {near}");
    }
    let (first, last) = (piece[0].x.min(piece[piece.len() - 1].x), piece[0].x.max(piece[piece.len() - 1].x));
    assert!(piece.len() > 20 && first < 0.105 && last > 0.38, "{} from {first} to {last}", piece.len());
    for at in piece.iter().step_by(5) {
        // The controller stays that of the design, the queue where it was.
        let (_, controller) = linearise(&choice, &conditions()).unwrap();
        let here = OperatingPoint::new(Model::Ecn, 100.0, 1250.0, 0.0, at.x, 100.0).unwrap();
        let margins = Loop::new(Plant::exact(&here), controller.unwrap()).margins();
        assert!((at.y / margins.gain_margin.unwrap() - 1.0).abs() < 1e-6, "{at:?} {margins:?}");
        let period_s = 2.0 * std::f64::consts::PI / margins.phase_crossover_rad_s.unwrap();
        assert!((at.period_s / period_s - 1.0).abs() < 1e-6, "{at:?} {period_s}");
    }
}

/// Someone's own law: three integrals and two zeros, 1e-6 (s + .15)^2 / s^3. Its phase begins at -270 degrees.
#[derive(Clone)]
struct Integrals;

impl SampledLaw for Integrals {
    fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
        [Some(Span::from_millis(10)), None]
    }

    fn step(&mut self, _which: usize, _seen: &Observation) -> Probability {
        unreachable!("it says what it answers")
    }

    fn settings(&self, visit: &mut dyn FnMut(&'static str, Value<'static>)) {
        visit("target", Value::Number(100.0));
    }

    fn theory(&self) -> &dyn Theory {
        self
    }
}

impl Theory for Integrals {
    fn linear(&self, _at: &QueueOperatingPoint) -> Option<Transfer> {
        Some(Transfer { num: vec![0.0225e-6, 0.3e-6, 1e-6], den: vec![0.0, 0.0, 0.0, 1.0], period_s: None })
    }
}

#[test]
fn a_boundary_that_closes_is_gone_round_once() {
    // Too small a gain leaves the phase of the integrals, too large a one meets that of the delay. Between the two is
    // room neither at small capacities, where a queue of 100 packets takes long, nor at large ones, whose windows do.
    let row = Algorithm { name: "three", title: "-", summary: "-", reference: "-", params: &[Param::TARGET] };
    let catalogue = Catalogue::BUILT_IN.with(row, |_, _| Ok(AnyAqm::custom_law(Integrals, true))).unwrap();
    let own = AqmChoice { catalogue, ..choice("three", &[]) };
    let (x, y) = ((Axis::Capacity, [100.0, 20_000.0]), (Axis::Gain, [1.0, 10_000.0]));
    for turned in [false, true] {
        let (x, y) = if turned { (y, x) } else { (x, y) };
        let pieces = boundary(&own, &conditions(), x, y, 2).unwrap();
        let [piece] = &pieces[..] else { panic!("{} pieces", pieces.len()) };
        // A swing of its period comes back as large, half a turn late.
        for at in piece {
            let (capacity, gain) = if turned { (at.y, at.x) } else { (at.x, at.y) };
            let here = OperatingPoint::new(Model::Ecn, 100.0, capacity, 0.0, 0.2, 100.0).unwrap();
            let s = Complex64::new(0.0, 2.0 * PI / at.period_s);
            let answer = gain * 1e-6 * (s + 0.15) * (s + 0.15) / (s * s * s) * Plant::exact(&here).response(s.im);
            assert!((answer - 1.0).l1_norm() < 1e-6, "{at:?}: {answer}");
        }
        // From the first to itself by steps of a thirtieth of the box, once about a network within.
        let mut within = [1250.0, 300.0];
        if turned {
            within.reverse();
        }
        let off = |at: &Crossing| {
            [(at.x, within[0], x.1), (at.y, within[1], y.1)]
                .map(|(value, from, [low, high])| (value / from).ln() / (high / low).ln())
        };
        let mut round = 0.0;
        for (from, to) in piece.iter().zip(piece.iter().cycle().skip(1)) {
            let ([a, b], [c, d]) = (off(from), off(to));
            assert!((a - c).hypot(b - d) < 0.031, "{from:?} {to:?}");
            round += (a * d - b * c).atan2(a * c + b * d);
        }
        assert!((round.abs() - 2.0 * PI).abs() < 1e-9, "{round}");
    }
}

#[test]
fn a_boundary_over_flows_and_round_trip_parts_what_is_stable_from_what_is_not() {
    let (x, y) = ((Axis::Flows, [5.0, 400.0]), (Axis::Rtt, [0.05, 0.6]));
    for name in ["pi", "arm-pfc", "aqm-mo"] {
        let choice = choice(name, &[]);
        let pieces = boundary(&choice, &conditions(), x, y, 2).unwrap();
        let mut parted = 0;
        for at in pieces.iter().flatten().step_by(4) {
            let stable = [0.97, 1.03].map(|factor| {
                map(&choice, &conditions(), (Axis::Flows, &[factor * at.x]), (Axis::Rtt, &[at.y]), 1).unwrap().points[0]
                    .margins
                    .stable
            });
            assert_eq!(stable, [false, true], "{name}: {at:?}");
            parted += 1;
        }
        assert!(parted >= 4, "{name}: {parted}");
    }
    let refused = boundary(&choice("pi", &[]), &conditions(), (Axis::Flows, [9.0, 9.0]), (Axis::Rtt, [0.1, 0.2]), 1);
    assert_eq!(refused.unwrap_err().to_string(), "a range from 9 to 9: from above 0, to above from");
    // From one gap between signals to the next RED's gain jumps: at 174 flows and .0683 s the loop is stable at .1 %
    // more flows, and at neither .3 % more nor .1 % less.
    for name in ["red", "ared"] {
        let refused = boundary(&choice(name, &[]), &conditions(), x, y, 2).unwrap_err().to_string();
        assert!(refused.contains("signals a share that goes in jumps") && refused.contains("a map"), "{refused}");
    }
}

#[test]
fn a_gain_axis_reaches_instability_at_the_gain_margin() {
    let choice = choice("pi", &[]);
    let gains = steps(0.5, 8.0, 200);
    let map = map(&choice, &conditions(), (Axis::Gain, &gains), (Axis::Target, &[100.0]), 2).unwrap();
    let first = map.points.iter().position(|point| !point.margins.stable).unwrap();
    let margin = map.points[0].margins.gain_margin.unwrap() * gains[0];
    assert!(gains[first - 1] <= margin * 1.001 && gains[first] >= margin * 0.999, "{margin} {}", gains[first]);
}

#[test]
fn what_cannot_be_mapped_is_refused() {
    let refused =
        |name: &str, x: Axis, y: Axis| map(&choice(name, &[]), &conditions(), (x, &[1.0]), (y, &[1.0]), 1).is_err();
    assert!(refused("pi", Axis::Flows, Axis::Flows));
    assert!(refused("droptail", Axis::Flows, Axis::Rtt));
    assert!(!refused("pi", Axis::Flows, Axis::Capacity));
    assert!(map(&choice("pi", &[]), &conditions(), (Axis::Flows, &[-1.0]), (Axis::Rtt, &[0.1]), 1).is_err());
}

/// Mean and deviation of the queue from a start at rest.
fn settled(choice: &AqmChoice, conditions: &OperatingConditions, duration_s: f64) -> (f64, f64) {
    let cycle = check(choice, conditions, duration_s, None).unwrap();
    (cycle.mean_pkts, cycle.std_pkts)
}

#[test]
fn red_swings_from_a_large_start_where_it_rests_from_a_small_one() {
    // Fifty flows, .2 s, ecn: gain margin 1.34, and calm from 1.2 times its rest; swings from four times that.
    let conditions = OperatingConditions { model: Model::Ecn, flows: 50.0, ..conditions() };
    let spec = choice("red", &[("min_th", 50.0), ("max_th", 150.0), ("max_p", 0.1), ("weight", 0.002)]);
    let [calm, swinging] = [1.2, 4.0].map(|start| check(&spec, &conditions, 300.0, Some(start)).unwrap());
    assert!(calm.std_pkts < 1.0, "{calm:?}");
    assert!(swinging.std_pkts > 60.0 && swinging.period_s.is_some_and(|t| (2.0..4.0).contains(&t)), "{swinging:?}");
    let analysis = analyse(&spec, &conditions).unwrap();
    assert!(analysis.margins.unwrap().exact.stable);
    let told = analysis.expected;
    assert!((told.coexisting_std_pkts.unwrap() / swinging.std_pkts - 1.0).abs() < 0.05, "{told:?}");
    assert!((told.coexisting_period_s.unwrap() / swinging.period_s.unwrap() - 1.0).abs() < 0.05, "{told:?}");
    assert!(
        analysis.warnings.iter().any(|warning| warning.contains("small perturbations only")),
        "{:?}",
        analysis.warnings
    );
    // A PI at the network that it was designed for comes to rest from everywhere.
    let calm = analyse(&choice("pi", &[]), &OperatingConditions { flows: 100.0, ..conditions }).unwrap();
    assert!(calm.expected.coexisting_std_pkts.is_none() && calm.margins.unwrap().exact.stable);
    assert!(check(&spec, &conditions, 300.0, Some(0.0)).unwrap_err().to_string().contains("must be above 0"));
}

/// As fast as a modulus margin of a half allows.
const SPEED: Objective = Objective::Speed { margin: robust::MARGIN };

#[test]
fn the_least_noise_at_a_margin_is_less_than_that_of_the_fastest_and_the_margin_is_kept() {
    let range = NetworkRange { flows: [40.0, 100.0], rtt_s: [0.1, 0.2], capacity_pps: [1250.0, 1250.0] };
    let aimed = |margin: f64, speed: f64| {
        robust::pi(&[conditions()], &range, 100.0, 160.0, Objective::Noise { margin, speed }).unwrap()
    };
    let quiet = |margin: f64| aimed(margin, 0.5);
    let (wide, half, fast) =
        (quiet(0.7), quiet(0.5), robust::pi(&[conditions()], &range, 100.0, 160.0, SPEED).unwrap());
    assert!(half.worth.margin >= 0.5 && wide.worth.margin >= 0.7, "{half:?} {wide:?}");
    // No other design of that margin that is half as fast has less.
    assert!(half.worth.qacd_pkts < fast.worth.qacd_pkts, "{half:?} {fast:?}");
    // Half of the speed is kept; all of it leaves the fastest design.
    assert!(half.worth.slowest_rad_s >= 0.499 * fast.worth.slowest_rad_s, "{half:?} {fast:?}");
    let same = aimed(0.5, 1.0);
    assert!((same.worth.slowest_rad_s / fast.worth.slowest_rad_s - 1.0).abs() < 1e-6, "{same:?} {fast:?}");
    // It is what `analyse` predicts at the worst corner, and nowhere more.
    let spec = choice("pi", &[("a", half.gains.a()), ("b", half.gains.b())]);
    let corners = [(40.0, 0.1), (40.0, 0.2), (100.0, 0.1), (100.0, 0.2)];
    let seen = corners.map(|(flows, base_rtt_s)| {
        let conditions = OperatingConditions { flows, base_rtt_s, ..conditions() };
        aqumen_theory::design::analyse(&spec, &conditions).unwrap().noise.qacd_pkts.unwrap()
    });
    let largest = seen.into_iter().fold(0.0, f64::max);
    assert!((largest / half.worth.qacd_pkts - 1.0).abs() < 0.01, "{seen:?} {half:?}");
    // Twelve hundred flows have windows below two packets: nothing is known of their noise.
    let crowded = NetworkRange { flows: [100.0, 1200.0], ..range };
    let error = robust::pi(&[conditions()], &crowded, 100.0, 160.0, Objective::Noise { margin: 0.5, speed: 0.5 })
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("nothing is known of the noise somewhere"), "{error}");
}

#[test]
fn a_map_has_the_noise_that_a_design_has() {
    let flows = [30.0, 60.0, 120.0];
    for name in ["pi", "arm-pfc", "paqm", "red"] {
        let spec = choice(name, &[]);
        let found = map(&spec, &conditions(), (Axis::Flows, &flows), (Axis::Rtt, &[0.2]), 1).unwrap();
        for (point, flows) in found.points.iter().zip(flows) {
            let conditions = OperatingConditions { flows, ..conditions() };
            let told = aqumen_theory::design::analyse(&spec, &conditions).unwrap();
            // A map by itself knows of no cycle beside a stable rest, which a design looks for.
            let beside = point.margins.stable && told.expected.oscillates == Some(true);
            let alone = told.noise;
            assert_eq!(point.noise.valid, alone.valid || beside, "{name} {flows}: {:?} {alone:?}", point.noise);
            for (a, b) in [
                (point.noise.queue_std_pkts, alone.queue_std_pkts),
                (point.noise.qacd_pkts, alone.qacd_pkts),
                (point.noise.queue_p95_pkts, alone.queue_p95_pkts),
            ] {
                let close = match (a, b) {
                    (Some(a), Some(b)) => (a / b - 1.0f64).abs() < 0.02,
                    (a, b) => a == b,
                };
                assert!(close, "{name} {flows}: {:?} {alone:?}", point.noise);
            }
        }
    }
}

#[test]
fn a_robust_pi_is_stable_where_the_usual_one_is_not() {
    let range = NetworkRange { flows: [15.0, 200.0], rtt_s: [0.1, 0.3], capacity_pps: [1250.0, 1250.0] };
    let robust = robust::pi(&[conditions()], &range, 100.0, 160.0, SPEED).unwrap();
    assert!(robust.usual.margin < 0.0 && robust.worth.margin >= robust::MARGIN, "{robust:?}");
    // Asked to be half as fast, it has more margin; asked for too much, less.
    let asked = |share: f64| {
        let aim = Objective::Margin { slowest_rad_s: share * robust.worth.slowest_rad_s };
        robust::pi(&[conditions()], &range, 100.0, 160.0, aim).unwrap().worth
    };
    let (slow, fast) = (asked(0.5), asked(1.5));
    assert!(slow.margin > robust.worth.margin && fast.margin < robust.worth.margin, "{slow:?} {fast:?}");
    assert!(slow.slowest_rad_s > 0.49 * robust.worth.slowest_rad_s);
    // Few flows and a long way: the hardest corner.
    let hard = OperatingConditions { flows: 15.0, base_rtt_s: 0.3, ..conditions() };
    let gains = [("a", robust.gains.a()), ("b", robust.gains.b())];
    let (mean, deviation) = settled(&choice("pi", &gains), &hard, 600.0);
    assert!((mean - 100.0).abs() < 2.0 && deviation < 2.0, "{mean} +- {deviation}");
    let (_, swings) = settled(&choice("pi", &[]), &hard, 600.0);
    assert!(swings > 20.0, "{swings}");
    let backwards = NetworkRange { flows: [200.0, 15.0], ..range };
    assert!(robust::pi(&[conditions()], &backwards, 100.0, 160.0, SPEED).is_err());
}

#[test]
fn other_aqms_are_made_robust_by_their_own_gains() {
    let range = NetworkRange { flows: [60.0, 150.0], rtt_s: [0.2, 0.2], capacity_pps: [1250.0, 1250.0] };
    for name in ["red", "rem", "paqm", "arm-pfc"] {
        let tuned = robust::tune(&choice(name, &[]), &[conditions()], &range, SPEED).unwrap();
        assert!(tuned.worth.margin >= robust::MARGIN - 1e-3, "{name}: {tuned:?}");
        assert!(tuned.worth.slowest_rad_s > 0.0, "{name}: {tuned:?}");
        // The nonlinear equations rest at both ends.
        for flows in range.flows {
            let (mean, deviation) = settled(&tuned.choice, &OperatingConditions { flows, ..conditions() }, 300.0);
            assert!(deviation < 2.0, "{name}, {flows} flows: {mean} +- {deviation}, {tuned:?}");
        }
    }
    let error = robust::tune(&choice("aqm-mo", &[]), &[conditions()], &range, SPEED).unwrap_err().to_string();
    assert!(error.starts_with("no robust design of aqm-mo"), "{error}");
}

/// RED of the network above in model `ecn`, with `flows`.
fn red_at(flows: f64) -> (AqmChoice, OperatingConditions) {
    (choice("red", &[]), OperatingConditions { model: Model::Ecn, flows, ..conditions() })
}

#[test]
fn a_repelling_cycle_parts_starts_that_come_to_rest_from_those_that_swing() {
    let (red, conditions) = red_at(50.0);
    let hopf = analyse(&red, &conditions).unwrap().hopf.unwrap();
    let [cycle] = hopf.cycles[..] else { panic!("{hopf:?}") };
    assert!(!cycle.attracts && hopf.gain > 1.3 && hopf.nearest_gain < 1.0, "{hopf:?}");
    // It swings by 87 packets to either side of 105: within its reach the queue comes to rest, from about it not.
    assert!((55.0..68.0).contains(&cycle.std_pkts), "{cycle:?}");
    let from = |start: f64| check(&red, &conditions, 400.0, Some(start)).unwrap();
    assert!(from(1.3).std_pkts < 1.0);
    let swings = from(1.7);
    // The branch ends where the queue runs empty, next to the cycle that stays.
    assert!((swings.std_pkts / hopf.branch_end_std_pkts - 1.0).abs() < 0.05, "{swings:?} {hopf:?}");
    assert!((swings.period_s.unwrap() / cycle.period_s - 1.0).abs() < 0.01, "{swings:?} {hopf:?}");
}

#[test]
fn just_beyond_the_boundary_the_balanced_cycle_is_that_of_the_equations() {
    // More flows, more stable: those at which the gain margin is .997.
    let pi = choice("pi", &[]);
    let at = |flows: f64| OperatingConditions { model: Model::Ecn, flows, ..conditions() };
    let margin = |flows: f64| analyse(&pi, &at(flows)).unwrap().margins.unwrap().exact.gain_margin.unwrap();
    let (mut low, mut high) = (5.0, 100.0);
    for _ in 0..30 {
        let flows = 0.5 * (low + high);
        if margin(flows) < 0.997 { low = flows } else { high = flows }
    }
    let hopf = analyse(&pi, &at(low)).unwrap().hopf.unwrap();
    assert!(hopf.supercritical, "{hopf:?}");
    let [cycle] = hopf.cycles[..] else { panic!("{hopf:?}") };
    assert!(cycle.attracts);
    let swings = check(&pi, &at(low), 4000.0, Some(1.1)).unwrap();
    assert!((swings.std_pkts / cycle.std_pkts - 1.0).abs() < 0.05, "{swings:?} {cycle:?}");
    assert!((swings.period_s.unwrap() / cycle.period_s - 1.0).abs() < 0.01, "{swings:?} {cycle:?}");
}

#[test]
fn a_map_shows_where_cycles_stand_beside_a_stable_rest() {
    let (red, conditions) = red_at(50.0);
    let (flows, rtts) = ([20.0, 50.0], [0.1, 0.2]);
    let axes = (Axis::Flows, Axis::Rtt);
    let found = map(&red, &conditions, (axes.0, &flows), (axes.1, &rtts), 1).unwrap();
    let known = nonlinear_checks(&red, &conditions, &found, axes, 2).unwrap();
    let (deviation, period) = known[3].coexisting.unwrap();
    assert!((64.0..72.0).contains(&deviation) && (2.7..2.85).contains(&period), "{known:?}");
    assert_eq!(known[3].supercritical, Some(true));
    for (k, point) in found.points.iter().enumerate() {
        let margins = point.margins;
        let tried = margins.stable && margins.gain_margin.is_some_and(|gain| gain < 2.0);
        let here = OperatingConditions { flows: flows[k % 2], base_rtt_s: rtts[k / 2], ..conditions };
        let swings = tried && check(&red, &here, 400.0, Some(4.0)).unwrap().std_pkts > 5.0;
        assert_eq!(known[k].coexisting.is_some(), swings, "{k} {margins:?}");
    }
    assert!(!found.points[2].margins.stable && known.iter().filter(|at| at.coexisting.is_some()).count() == 1);
    let refused = nonlinear_checks(&red, &conditions, &found, (Axis::Flows, Axis::Gain), 1).unwrap_err().to_string();
    assert!(refused.contains("over flows, rtt and capacity"), "{refused}");
}

#[test]
fn no_cycle_is_told_of_a_red_whose_line_ends_within_a_tenth_of_its_rest() {
    let number = |analysis: &Analysis, name: &str| match analysis.gains[name] {
        Gain::Number(x) => x,
        ref other => panic!("{name}: {other:?}"),
    };
    // How far on the way from the lower threshold to the upper one so many flows let the queue rest.
    let way = |analysis: &Analysis| {
        let (from, to) = (number(analysis, "min_th"), number(analysis, "max_th"));
        (analysis.operating_point.at.queue_pkts - from) / (to - from)
    };
    for (share, told) in [(0.6, true), (0.89, true), (0.93, false), (0.98, false)] {
        let (mut few, mut many) = (5.0, 200.0);
        for _ in 0..40 {
            let flows = 0.5 * (few + many);
            let (red, conditions) = red_at(flows);
            if way(&analyse_to(Depth::Equilibrium, &red, &conditions).unwrap()) < share {
                few = flows
            } else {
                many = flows
            }
        }
        let (red, conditions) = red_at(few);
        let analysis = analyse(&red, &conditions).unwrap();
        assert!(analysis.margins.unwrap().exact.gain_margin.is_some(), "{share}");
        // 1 / 1.1 of the way leaves a tenth of what was gone.
        assert_eq!(analysis.hopf.is_some(), told, "{share}: {few} flows");
    }
}

#[test]
fn equations_are_not_followed_for_longer_than_anyone_waits_nor_from_nowhere() {
    let (red, conditions) = red_at(50.0);
    let error = check(&red, &conditions, 1e9, None).unwrap_err().to_string();
    assert!(error.contains("steps; 1e9 are accepted"), "{error}");
    for start in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = check(&red, &conditions, 60.0, Some(start)).unwrap_err().to_string();
        assert!(error.contains("must be above 0"), "{error}");
    }
}

#[test]
fn a_boundary_in_the_last_strip_of_its_box_is_found_too() {
    // The gain margin is 3 % below the highest gain, where eleven twelfths of the box lie below 23 % of it.
    let pi = choice("pi", &[]);
    let margin = analyse(&pi, &conditions()).unwrap().margins.unwrap().exact.gain_margin.unwrap();
    let gains = [0.1 * margin, 1.03 * margin];
    let pieces = boundary(&pi, &conditions(), (Axis::Rtt, [0.199, 0.201]), (Axis::Gain, gains), 2).unwrap();
    let [piece] = &pieces[..] else { panic!("{} pieces", pieces.len()) };
    assert!(piece.iter().all(|at| (at.y / margin - 1.0).abs() < 0.02), "{piece:?}");
    let refused = boundary(&pi, &conditions(), (Axis::Rtt, [0.1, 0.2]), (Axis::Gain, [0.0, 2.0]), 1);
    assert_eq!(refused.unwrap_err().to_string(), "a range from 0 to 2: from above 0, to above from");
}

/// ARM-PFC in a variant whose own poles may lie outside the circle.
fn arm_pfc(variant: &str) -> AqmChoice {
    let mut choice = choice("arm-pfc", &[("h", 7.0), ("psi", 0.83)]);
    choice.values.push(("variant".into(), OwnedValue::Choice(variant.into())));
    choice
}

#[test]
fn a_loop_that_is_stable_with_enough_gain_alone_has_two_boundaries() {
    // Variant C's own poles lie outside the circle.
    let arm_pfc = arm_pfc("C");
    let ranges = ((Axis::Flows, [150.0, 350.0]), (Axis::Gain, [0.3, 3.0]));
    let pieces = boundary(&arm_pfc, &conditions(), ranges.0, ranges.1, 2).unwrap();
    assert_eq!(pieces.len(), 2);
    for piece in &pieces {
        let ends = [piece[0].x, piece[piece.len() - 1].x];
        assert!(ends[0].min(ends[1]) < 155.0 && ends[0].max(ends[1]) > 338.0, "{ends:?}");
        for at in piece.iter().step_by(6) {
            let (_, controller) = linearise(&arm_pfc, &conditions()).unwrap();
            let here = OperatingPoint::new(Model::Ecn, at.x, 1250.0, 0.0, 0.2, 100.0).unwrap();
            let margins = Loop::new(Plant::exact(&here), controller.unwrap()).margins();
            let margin = if at.y < 1.0 { margins.gain_margin_low } else { margins.gain_margin };
            assert!((at.y / margin.unwrap() - 1.0).abs() < 1e-6, "{at:?} {margins:?}");
        }
    }
}

#[test]
fn cycles_are_told_of_no_boundary_but_the_loops_own() {
    // Variant A swings between its samples: a balance may settle on cycles at twice the gain of the boundary.
    let told = [95.0, 100.0, 105.0, 110.0, 115.0, 120.0].map(|flows| {
        let analysis = analyse(&arm_pfc("A"), &OperatingConditions { flows, ..conditions() }).unwrap();
        let margin = analysis.margins.unwrap().exact.gain_margin.unwrap();
        analysis.hopf.map(|hopf| assert!((hopf.gain / margin - 1.0).abs() < 0.05, "{flows}: {margin} {hopf:?}"))
    });
    assert!(told[1].is_none() && told[3].is_some(), "{told:?}");
}
