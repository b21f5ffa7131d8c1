//! Maps and robust designs against the nonlinear equations.

use aqumen_aqm::Network;
use aqumen_scenario::{AqmChoice, OwnedValue};
use aqumen_theory::design::Place;
use aqumen_theory::fluid::Model;
use aqumen_theory::maps::{Axis, check, map};
use aqumen_theory::robust::{self, Box};
use aqumen_units::Rate;

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

fn place() -> Place {
    Place {
        model: Model::Ecn,
        flows: 100.0,
        capacity_pps: 1250.0,
        unresponsive_pps: 0.0,
        base_rtt_s: 0.2,
        buffer_pkts: 300.0,
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
        let map = map(&choice, &place(), (Axis::Flows, &flows), (Axis::Rtt, &rtts), 2).unwrap();
        let mut checked = 0;
        for (j, &base_rtt_s) in rtts.iter().enumerate() {
            let stable: Vec<bool> = (0..flows.len()).map(|i| map.points[j * flows.len() + i].margins.stable).collect();
            // More flows, smaller windows, less gain: stable from some number of flows on.
            let Some(edge) = stable.windows(2).position(|pair| !pair[0] && pair[1]) else { continue };
            for (factor, expect_stable) in [(0.75, false), (1.35, true)] {
                let place = Place { flows: flows[edge] * factor, base_rtt_s, ..place() };
                let (mean, deviation) = check(&choice, &place, 300.0).unwrap();
                let case = format!("{name}, {:.1} flows, {base_rtt_s:.3} s: {mean:.1} +- {deviation:.2}", place.flows);
                assert_eq!(deviation < 2.0, expect_stable, "{case}");
                checked += 1;
            }
        }
        assert!(checked >= 6, "{name}: only {checked} points on the boundary");
    }
}

#[test]
fn a_gain_axis_reaches_instability_at_the_gain_margin() {
    let choice = choice("pi", &[]);
    let gains = steps(0.5, 8.0, 200);
    let map = map(&choice, &place(), (Axis::Gain, &gains), (Axis::Target, &[100.0]), 2).unwrap();
    let first = map.points.iter().position(|point| !point.margins.stable).unwrap();
    let margin = map.points[0].margins.gain_margin.unwrap() * gains[0];
    assert!(gains[first - 1] <= margin * 1.001 && gains[first] >= margin * 0.999, "{margin} {}", gains[first]);
}

#[test]
fn what_cannot_be_mapped_is_refused() {
    let refused =
        |name: &str, x: Axis, y: Axis| map(&choice(name, &[]), &place(), (x, &[1.0]), (y, &[1.0]), 1).is_err();
    assert!(refused("pi", Axis::Flows, Axis::Flows));
    assert!(refused("droptail", Axis::Flows, Axis::Rtt));
    assert!(!refused("pi", Axis::Flows, Axis::Capacity));
    assert!(map(&choice("pi", &[]), &place(), (Axis::Flows, &[-1.0]), (Axis::Rtt, &[0.1]), 1).is_err());
}

#[test]
fn a_robust_pi_is_stable_where_the_usual_one_is_not() {
    let range = Box { flows: [15.0, 200.0], rtt_s: [0.1, 0.3], capacity_pps: [1250.0, 1250.0] };
    let robust = robust::pi(&place(), &range, 100.0, 160.0, None).unwrap();
    assert!(robust.usual_worst < 0.0 && robust.worst >= robust::MARGIN, "{robust:?}");
    // Asked to be half as fast, it has more margin; asked for too much, less.
    let asked = |share: f64| robust::pi(&place(), &range, 100.0, 160.0, Some(share * robust.slowest_rad_s)).unwrap();
    let (slow, fast) = (asked(0.5), asked(1.5));
    assert!(slow.worst > robust.worst && fast.worst < robust.worst, "{slow:?} {fast:?}");
    assert!(slow.slowest_rad_s > 0.49 * robust.slowest_rad_s);
    // Few flows and a long way: the hardest corner.
    let hard = Place { flows: 15.0, base_rtt_s: 0.3, ..place() };
    let gains = [("a", robust.gains.a()), ("b", robust.gains.b())];
    let (mean, deviation) = check(&choice("pi", &gains), &hard, 600.0).unwrap();
    assert!((mean - 100.0).abs() < 2.0 && deviation < 2.0, "{mean} +- {deviation}");
    let (_, swings) = check(&choice("pi", &[]), &hard, 600.0).unwrap();
    assert!(swings > 20.0, "{swings}");
    let backwards = Box { flows: [200.0, 15.0], ..range };
    assert!(robust::pi(&place(), &backwards, 100.0, 160.0, None).is_err());
}

#[test]
fn other_aqms_are_made_robust_by_their_own_gains() {
    let range = Box { flows: [60.0, 150.0], rtt_s: [0.2, 0.2], capacity_pps: [1250.0, 1250.0] };
    for name in ["red", "rem", "paqm", "arm-pfc"] {
        let tuned = robust::tune(&choice(name, &[]), &place(), &range, None).unwrap();
        assert!(tuned.worst >= robust::MARGIN - 1e-3, "{name}: {tuned:?}");
        assert!(tuned.slowest_rad_s > 0.0, "{name}: {tuned:?}");
        // The nonlinear equations rest at both ends.
        for flows in range.flows {
            let (mean, deviation) = check(&tuned.choice, &Place { flows, ..place() }, 300.0).unwrap();
            assert!(deviation < 2.0, "{name}, {flows} flows: {mean} +- {deviation}, {tuned:?}");
        }
    }
    let error = robust::tune(&choice("aqm-mo", &[]), &place(), &range, None).unwrap_err().to_string();
    assert!(error.starts_with("no robust design of aqm-mo"), "{error}");
}
