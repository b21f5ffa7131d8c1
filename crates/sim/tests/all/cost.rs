//! Estimated and counted work of a run: the order of magnitude of packets, updates and samples, for all parameters.

use aqumen_aqm::registry::algorithms;
use aqumen_aqm::{Bound, Catalogue, Kind, Param, threshold};
use aqumen_scenario::cost::Runner;
use aqumen_scenario::{AqmSpec, OwnedValue, Scenario};
use aqumen_sim::{Options, run};

const EXPERIMENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments");

/// A dumbbell of so many flows for so long.
fn dumbbell(flows: u32, duration: &str) -> Scenario {
    let text = format!(
        "name = \"cost\"\nduration = \"{duration}\"\n[topology]\npreset = \"dumbbell\"\n\
         [topology.bottleneck]\nrate = \"8Mbit\"\ndelay = \"10ms\"\nbuffer = \"300pkt\"\n\
         [topology.access]\nrate = \"100Mbit\"\ndelay = \"1ms\"\n[nominal]\ntarget = \"100pkt\"\n\
         [[flows]]\nname = \"ftp\"\ncount = {flows}\ntransport = \"ns2\"\n"
    );
    Scenario::parse(&text, "cost.toml").unwrap()
}

/// The least and the largest values that a parameter takes, or where it is not bounded some far out.
fn extremes(param: &Param) -> Vec<f64> {
    let Kind::Number { min, max, .. } = param.kind else { return Vec::new() };
    let beside = |b: f64, up: f64| if b == 0.0 { vec![1e-300, 1e-9] } else { vec![b * (1.0 + up * 1e-12)] };
    let mut values = match min {
        Bound::Inclusive(b) => vec![b],
        Bound::Exclusive(b) => beside(b, 1.0),
        Bound::Open => vec![-1e300, -1e9, 0.0],
    };
    values.extend(match max {
        Bound::Inclusive(b) => vec![b],
        Bound::Exclusive(b) => beside(b, -1.0),
        Bound::Open => vec![1e9, 1e300],
    });
    values
}

/// Each numeric parameter of each AQM at its extremes, alone: it cannot be built, or the run has about as many events
/// as were foreseen, so that a run is refused where they are too many.
#[test]
fn every_parameter_at_its_extremes_costs_what_was_foreseen() {
    let short = dumbbell(10, "20ms");
    let mut ran = 0;
    for algorithm in algorithms() {
        for param in algorithm.params.iter().chain(threshold::PARAMS) {
            for value in extremes(param) {
                let spec = AqmSpec {
                    label: format!("{}:{}={value:e}", algorithm.name, param.name),
                    algorithm: algorithm.name.into(),
                    values: vec![(param.name.into(), OwnedValue::Number(value))],
                    catalogue: Catalogue::BUILT_IN,
                };
                let Ok(plan) = short.plan(1, Some(&spec)) else { continue };
                let cost = short.cost(Runner::Packet, Some(&spec)).unwrap();
                let result = run(&plan, Options::default(), &mut |_| true).unwrap();
                let foreseen = 10.0 * cost.count("packets") + 1.1 * cost.count("updates") + 1000.0;
                let counted = result.cost.events as f64;
                assert!(counted <= foreseen, "{}: {counted} events, {foreseen} foreseen", spec.label);
                ran += 1;
            }
        }
    }
    assert!(ran > 300, "{ran} runs");
}

/// Periods that are legal and far too short: refused, and what the refusal offers is accepted.
#[test]
fn updates_out_of_proportion_are_refused_and_what_is_offered_is_accepted() {
    let scenario = dumbbell(2000, "100s");
    for text in ["fq-pie:interval=1us", "fq-pie:interval=20us,queues=4096", "fq-pie-linux:interval=1us"] {
        let spec = scenario.aqm(text).unwrap();
        let told = scenario.check_cost(Runner::Packet, Some(&spec), 1).unwrap_err().to_string();
        assert!(told.starts_with(&format!("aqm = \"{text}\": ")) && told.chars().count() < 200, "{told}");
        let offered = told.rsplit("; ").next().unwrap().strip_suffix(" is accepted").unwrap().replace(' ', "");
        let (name, rest) = text.split_once(':').unwrap();
        let parameter = offered.split('=').next().unwrap();
        let others = rest.split(',').filter(|pair| !pair.starts_with(&format!("{parameter}=")));
        let better = format!("{name}:{}", others.chain([offered.as_str()]).collect::<Vec<_>>().join(","));
        let spec = scenario.aqm(&better).unwrap();
        assert_eq!(scenario.check_cost(Runner::Packet, Some(&spec), 1).map(drop), Ok(()), "{text}: {better}");
    }
    // A microsecond is short for one queue, yet done in seconds.
    let spec = scenario.aqm("pi2:interval=1us").unwrap();
    assert!(scenario.check_cost(Runner::Packet, Some(&spec), 1).is_ok());
}

/// No period comes under the floor behind a longer first one.
#[test]
fn the_floor_holds_after_a_long_first_period_too() {
    let scenario = dumbbell(10, "100s");
    for text in ["pie-linux:interval=1ns", "fq-pie-linux:interval=10ns"] {
        let told = scenario.plan(1, Some(&scenario.aqm(text).unwrap())).unwrap_err().to_string();
        assert!(told.contains("interval") && told.contains("at least 1 us"), "{told}");
    }
}

/// Estimated and counted events of shipped experiments: all transports and kinds of traffic, one link and rows of them.
#[test]
fn the_time_of_experiments_is_estimated_within_a_factor_of_two() {
    for (file, until) in [
        ("arm-pfc/exp1", "10s"),
        ("arm-pfc/parking-lot", "4s"),
        ("aaqm/load", "220s"),
        ("paqm/load", "10s"),
        ("aqm-mo/rtt", "4s"),
        ("rfc7928/mix", "10s"),
        ("rfc7928/unresponsive", "10s"),
        ("self-tuning/fortieth", "10s"),
        ("rfc7928/varying-capacity", "10s"),
        ("everyday/datacenter", "100ms"),
        ("everyday/uplink", "10s"),
        ("everyday/cell", "2s"),
        ("aaqm/web", "10s"),
        ("aqm-mo/sources", "20s"),
    ] {
        let scenario = Scenario::load(format!("{EXPERIMENTS}/{file}.toml"), &[]).unwrap();
        let scenario = match scenario.cells().first() {
            Some(cell) => scenario.cell(cell).unwrap(),
            None => scenario,
        };
        let scenario = scenario.until(until).unwrap();
        let cost = scenario.cost(Runner::Packet, None).unwrap();
        let result = run(&scenario.plan(1, None).unwrap(), Options::default(), &mut |_| true).unwrap();
        // 45 ns each.
        let events = cost.seconds() / 45e-9 / result.cost.events as f64;
        assert!((0.5..=2.0).contains(&events), "{file}: {events} times as many events estimated as counted");
    }
}

/// The refusal of a long run names the key that makes it long, and an accepted value.
#[test]
fn the_key_that_makes_a_run_long_is_named() {
    let long = |changes: &[(&str, &str)]| dumbbell(10, "100s").with_all(changes).unwrap();
    let verdict =
        |changes: &[(&str, &str)]| long(changes).check_cost(Runner::Packet, None, 1).map_err(|error| error.to_string());
    assert_eq!(verdict(&[]), Ok(None));
    let told = verdict(&[("duration", "24h"), ("bottleneck.rate", "100Gbit"), ("access.rate", "100Gbit")]);
    let told = told.unwrap_err();
    assert!(told.contains(": duration = \"24h\": makes ") && told.contains("is accepted"), "{told}");
    let told = verdict(&[("duration", "2000s"), ("bottleneck.rate", "10Gbit"), ("access.rate", "10Gbit")]);
    let told = told.unwrap().unwrap();
    assert!(told.starts_with("this takes about ") && told.ends_with(" packets"), "{told}");
    let many = long(&[]).check_cost(Runner::Packet, None, 100_000).unwrap().unwrap();
    assert!(many.contains("for 100000 runs"), "{many}");
    let source = "{ kind = \"cbr\", rate = \"1Tbit\", packet = \"1000B\" }";
    let told = verdict(&[("flows.0.transport", "udp"), ("flows.0.traffic", source), ("access.rate", "1Tbit")]);
    assert!(told.as_ref().is_err_and(|told| told.contains("flows.0.traffic")), "{told:?}");
    let predictions = long(&[]).check_cost(Runner::Theory { loops: true }, None, 1);
    assert_eq!(predictions, Ok(None));
}
