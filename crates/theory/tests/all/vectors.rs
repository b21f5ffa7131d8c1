//! The fluid engine against trajectories that another program computed.

use aqumen_aqm::registry::AnyAqm;
use aqumen_aqm::{MAX_LOOPS, Observation, Pi, PiGains, SampledLaw};
use aqumen_theory::fluid::{Class, Control, Fluid, Model, Network, Queue};
use aqumen_units::{Probability, Span};
use serde_json::Value;

fn check(text: &str) {
    let file: Value = serde_json::from_str(text).unwrap();
    let (params, tolerance) = (&file["params"], file["tolerance"].as_f64().unwrap());
    let number = |key: &str| params[key].as_f64().unwrap();
    let aqm = |key: &str| params["aqm"][key].as_f64().unwrap();
    let model = match params["model"].as_str().unwrap() {
        "M1" => Model::Hollot,
        "M2" => Model::Ecn,
        "M3" => Model::Drop,
        other => panic!("{other}"),
    };
    let pi = Pi::new(PiGains::new(aqm("a"), aqm("b")).unwrap(), aqm("fs"), aqm("qref"));
    let control = Control::Law(AnyAqm::custom_law(pi, true));
    let class = Class {
        initial_window: number("W_init"),
        min_window: number("Wmin"),
        ..Class::endless(model, number("N"), number("Tp"), vec![0])
    };
    let queue = Queue {
        unresponsive_pps: number("u0"),
        initial_pkts: number("q_init"),
        ..Queue::new(number("C"), number("B"), control)
    };
    let network = Network { classes: vec![class], queues: vec![queue], sample_at_start: true };
    let mut fluid = Fluid::new(network, 0.25e-3).unwrap();
    for row in file["rows"].as_array().unwrap() {
        let t = row["t"].as_f64().unwrap();
        fluid.advance((t * 1e9).round() as u64);
        for (what, got) in [("q", fluid.queue_pkts(0)), ("W", fluid.window_pkts(0)), ("p", fluid.probability(0))] {
            let expected = row[what].as_f64().unwrap();
            let off = (got - expected).abs();
            assert!(off <= tolerance * expected.abs(), "{}: {what}({t}) = {got}, expected {expected}", file["name"]);
        }
    }
}

macro_rules! vectors {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            check(include_str!(concat!("../../vectors/", stringify!($name), ".json")));
        })*
    };
}

vectors! { fluid_hollot fluid_ecn fluid_drop fluid_overflow_hollot fluid_overflow_ecn fluid_overflow_drop }

/// A law that always says the same.
#[derive(Clone)]
struct Constant(f64);

impl SampledLaw for Constant {
    fn periods(&self) -> [Option<Span>; MAX_LOOPS] {
        [Some(Span::from_secs(1)), None]
    }

    fn step(&mut self, _which: usize, _seen: &Observation) -> Probability {
        Probability::clamp(self.0)
    }

    fn initial(&self) -> Probability {
        Probability::clamp(self.0)
    }
}

#[test]
fn with_a_constant_probability_jitcdde_agrees() {
    for (model, text) in [
        (Model::Hollot, include_str!("../../vectors/dde_hollot.json")),
        (Model::Ecn, include_str!("../../vectors/dde_ecn.json")),
    ] {
        let file: Value = serde_json::from_str(text).unwrap();
        let number = |key: &str| file["params"][key].as_f64().unwrap();
        let control = Control::Law(AnyAqm::custom_law(Constant(number("p")), true));
        let class =
            Class { initial_window: number("W_init"), ..Class::endless(model, number("N"), number("Tp"), vec![0]) };
        let queue = Queue { initial_pkts: number("q_init"), ..Queue::new(number("C"), 1e6, control) };
        let network = Network { classes: vec![class], queues: vec![queue], sample_at_start: false };
        let mut fluid = Fluid::new(network, 0.5e-3).unwrap();
        for row in file["rows"].as_array().unwrap() {
            fluid.advance((row["t"].as_f64().unwrap() * 1e9).round() as u64);
            for (what, got) in [("q", fluid.queue_pkts(0)), ("W", fluid.window_pkts(0))] {
                let expected = row[what].as_f64().unwrap();
                assert!((got / expected - 1.0).abs() < 2e-5, "{model:?}: {what}({}) = {got}, {expected}", row["t"]);
            }
        }
    }
}
