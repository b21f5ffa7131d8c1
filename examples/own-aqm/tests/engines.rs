//! Custom AQMs run by name in the packet engine (also on several threads), in the fluid engine and in a replay. An own
//! discipline gives the bits of the built-in ones that it is.

use std::path::Path;
use std::thread;

use aqumen_replay::{replay, survey};
use aqumen_scenario::replay::Settings;
use aqumen_scenario::{AqmSpec, Files, RawValue, Scenario};
use aqumen_sim::Options;
use aqumen_theory::fluid;

const EXP1: &str = include_str!("../../../experiments/arm-pfc/exp1.toml");

fn scenario(text: &str) -> Scenario {
    let catalogue = own_aqm::catalogue().expect("the names are free");
    let read = Scenario::parse_with_extensions(text, "exp1.toml", Files::in_memory([]), catalogue);
    read.and_then(|scenario| scenario.until("30s")).unwrap_or_else(|error| panic!("{error}"))
}

fn plan(scenario: &Scenario, spec: Option<&str>, seed: u64) -> aqumen_scenario::Plan {
    let spec = spec.map(|spec| scenario.aqm(spec).unwrap_or_else(|error| panic!("{error}")));
    scenario.plan(seed, spec.as_ref()).unwrap_or_else(|error| panic!("{error}"))
}

fn packets(scenario: &Scenario, spec: Option<&str>, seed: u64) -> String {
    let result = aqumen_sim::run(&plan(scenario, spec, seed), Options::default(), &mut |_| true).expect("it runs");
    format!("{:?} {:?}", result.aqm, result.links)
}

#[test]
fn custom_aqms_give_equal_results_on_several_threads() {
    let scenario = scenario(EXP1);
    for spec in ["integral:gain=2e-5,target=50pkt", "impatient:limit=20ms", "turns"] {
        let single = packets(&scenario, Some(spec), 3);
        let concurrent: Vec<String> = thread::scope(|scope| {
            let runs: Vec<_> = (0..3).map(|_| scope.spawn(|| packets(&scenario, Some(spec), 3))).collect();
            runs.into_iter().map(|run| run.join().expect("it ends")).collect()
        });
        assert!(concurrent.iter().all(|result| *result == single));
        assert_ne!(single, packets(&scenario, Some(spec), 4));
    }
}

#[test]
fn a_scenario_names_a_custom_aqm_and_its_parameters_are_checked() {
    let named = scenario(&EXP1.replacen("aqm = \"arm-pfc-repaired\"", "aqm = \"integral:target=50pkt\"", 1));
    assert_eq!(packets(&named, None, 1), packets(&scenario(EXP1), Some("integral:target=50pkt"), 1));
    let wrong = |spec: &str| match named.aqm(spec) {
        Ok(aqm) => named.plan(1, Some(&aqm)).unwrap_err().to_string(),
        Err(error) => error.to_string(),
    };
    assert!(wrong("integral:gain=0").contains("must be a number above 0"), "{}", wrong("integral:gain=0"));
    assert!(wrong("integral:gain=1").contains("moves p by more than 1"), "{}", wrong("integral:gain=1"));
    assert!(wrong("impatient:limit=5pkt").contains("5pkt"), "{}", wrong("impatient:limit=5pkt"));
}

#[test]
fn a_custom_discipline_gives_the_bits_of_the_built_in_ones_that_it_is() {
    let scenario = scenario(EXP1);
    let links = |spec: &str, seed: u64| {
        let plan = plan(&scenario, Some(spec), seed);
        format!("{:?}", aqumen_sim::run(&plan, Options::default(), &mut |_| true).expect("it runs").links)
    };
    for seed in 1..4 {
        assert_eq!(links("turns:idle_first=false", seed), links("sfq", seed));
        assert_eq!(links("turns:queues=1", seed), links("sfq:queues=1", seed));
        assert_ne!(links("turns", seed), links("sfq", seed));
    }
}

#[test]
fn a_custom_discipline_keeps_its_parameters_during_a_run() {
    let event = "\n[[events]]\nat = \"10s\"\naqm = \"turns:queues=8\"\n";
    let changed = scenario(&format!("{EXP1}{event}"));
    let error = changed.plan(1, Some(&changed.aqm("turns").expect("it is known"))).unwrap_err().to_string();
    assert!(error.contains("turns is a custom discipline: its parameters cannot change during a run"), "{error}");
    assert!(changed.plan(1, Some(&changed.aqm("turns:queues=8").expect("it is known"))).is_ok());
}

#[test]
fn a_custom_discipline_is_refused_by_the_fluid_engine() {
    let scenario = scenario(EXP1);
    let refused = fluid::run(&plan(&scenario, Some("turns"), 1), fluid::Options::default(), &mut |_| true);
    let error = refused.err().expect("a fluid has no flows to tell apart").to_string();
    assert!(error.contains("turns") && !error.contains('\n'), "{error}");
}

#[test]
fn a_custom_law_drives_the_fluid_engine() {
    let scenario = scenario(EXP1);
    let plan = plan(&scenario, Some("integral:gain=2e-6,target=50pkt"), 1);
    let result = fluid::run(&plan, fluid::Options::default(), &mut |_| true).expect("it runs");
    let queue = &result.series["bottleneck"].queue_pkts;
    assert!(queue.iter().all(|q| (0.0..=300.0).contains(q)) && queue.iter().any(|q| *q > 0.0));
}

#[test]
fn a_custom_aqm_handles_a_replayed_capture() {
    let given =
        [("rate", "10Mbit"), ("buffer", "100pkt")].map(|(key, value)| (key.into(), RawValue::Text(value.into())));
    let settings = Settings::read_from(&given).expect("they fit");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/home.pcap");
    let setup = survey(&file, &settings, &mut |_| true).expect("it is a capture");
    let catalogue = own_aqm::catalogue().expect("the names are free");
    let counts = |spec: &str| {
        let aqm = AqmSpec::from_catalogue(spec, &catalogue).expect("it is known");
        replay(&file, &setup, &aqm, None, &mut |_| true).expect("it runs").total.counts
    };
    let impatient = counts("impatient:limit=1ms");
    assert!(impatient.early_dropped_pkts + impatient.marked_pkts > 0);
    assert_eq!(format!("{:?}", counts("turns:idle_first=false")), format!("{:?}", counts("sfq")));
}
