//! Queue MMPP/Erlang(m)/1/L against known answers; `vectors/README.md` names their sources.

use aqumen_queueing::{Action, Measures, Minisources, Model, Queue, Source, probability};
use serde_json::Value;

fn vector(name: &str) -> Value {
    let path = format!("{}/vectors/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(items) => items.iter().map(|x| x.as_f64().unwrap()).collect(),
        single => vec![single.as_f64().unwrap()],
    }
}

fn rows(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().unwrap().iter().map(numbers).collect()
}

fn model(case: &Value) -> Model {
    let capacity = case["L"].as_u64().unwrap() as u32;
    let queue =
        Queue { capacity, stages: case["m"].as_u64().unwrap() as u32, service_rate: case["mu"].as_f64().unwrap() };
    let sources = case["sources"].as_array().unwrap().iter().enumerate();
    let sources =
        sources.map(|(s, source)| Source::new(format!("s{s}"), &rows(&source["Q"]), &numbers(&source["lam"])).unwrap());
    let model = Model::new(queue, sources.collect()).unwrap();
    match &case["th_fraction"] {
        Value::Null => model,
        shares => {
            let thresholds = numbers(shares).iter().map(|share| Some(share * f64::from(capacity))).collect();
            model.with_thresholds(Action::Drop, thresholds).unwrap()
        }
    }
}

/// Measures under the names of the vectors.
fn measured(m: &Measures, name: &str) -> Vec<f64> {
    let sources = |of: fn(&aqumen_queueing::Stream) -> f64| m.sources.iter().map(of).collect();
    match name {
        "p" => m.occupancy.clone(),
        "EN" => vec![m.occupancy_mean_pkts],
        "varN" => vec![m.occupancy_variance_pkts2],
        "offered" => sources(|s| s.offered_pps),
        "overflow" => sources(|s| s.overflow_pps),
        "thinned" => sources(|s| s.early_dropped_pps),
        "accepted" => sources(|s| s.accepted_pps),
        "loss" => sources(|s| s.loss_ratio),
        "loss_overflow" => sources(|s| s.overflow_drop_ratio),
        "throughput" => vec![m.throughput_pps],
        "util" => vec![m.utilization],
        "ED" => vec![m.total.delay.mean_s()],
        "ED_little" => vec![m.occupancy_mean_pkts / m.throughput_pps],
        "ED_source" => sources(|s| s.delay.mean_s()),
        "loss_total" => vec![m.total.loss_ratio],
        other => panic!("no measure {other}"),
    }
}

#[test]
fn all_measures_of_all_cases() {
    let cases = vector("queue")["cases"].as_array().unwrap().clone();
    assert_eq!(cases.len(), 6);
    for (i, case) in cases.iter().enumerate() {
        let answer = model(case).solve().unwrap();
        let expected = case["expected"].as_object().unwrap();
        assert_eq!(expected.len(), 15);
        for (name, expected) in expected {
            let (got, expected) = (measured(&answer, name), numbers(expected));
            assert_eq!(got.len(), expected.len(), "case {i}, {name}");
            for (got, expected) in got.iter().zip(&expected) {
                let error = (got - expected).abs();
                let bound = if name == "p" { 1e-12 } else { 1e-10 * expected.abs() };
                assert!(error <= bound, "case {i}, {name}: {got} is not {expected}");
            }
        }
    }
}

#[test]
fn the_reference_case_to_seven_digits() {
    // Four sources, m = 4, L = 20, mu = 975: the figures of docs/theory/mmpp.md.
    let answer = model(&vector("queue")["cases"][3]).solve().unwrap();
    assert_eq!(format!("{:.8}", answer.total.loss_ratio), "0.01597784");
    assert_eq!(format!("{:.6}", answer.total.delay.mean_s() * 1e3), "5.361106");
    assert_eq!(format!("{:.7}", answer.utilization), "0.7206911");
}

#[test]
fn minisources_in_two_states() {
    for case in vector("two-state-fit")["cases"].as_array().unwrap() {
        let number = |name: &str| case[name].as_f64().unwrap();
        let minisources = Minisources {
            count: number("n") as u32,
            off_rate: number("alpha"),
            on_rate: number("beta"),
            rate: number("lam"),
        };
        let fit = Source::two_state_minisources("fit", &minisources).unwrap();
        for (got, expected) in fit
            .generator()
            .concat()
            .iter()
            .chain(fit.rates())
            .zip(rows(&case["Q"]).concat().iter().chain(&numbers(&case["rates"])))
        {
            assert!((got - expected).abs() <= 1e-10 * expected.abs() + 1e-9, "{got} is not {expected}: {case}");
        }
    }
}

#[test]
fn the_threshold_function() {
    let vector = vector("threshold");
    let limit = vector["params"]["Pi"].as_f64().unwrap();
    for case in vector["cases"].as_array().unwrap() {
        let threshold = case["th"].as_f64().unwrap();
        for (x, expected) in numbers(&case["x"]).into_iter().zip(numbers(&case["F"])) {
            let got = probability(x, threshold, limit);
            assert!((got - expected).abs() <= 1e-12, "F({x}) with th = {threshold}: {got} is not {expected}");
        }
    }
}
