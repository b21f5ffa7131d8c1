//! Whole scenarios on the fluid engine.

use aqumen_result::{LinkMetrics, RunResult};
use aqumen_scenario::Scenario;
use aqumen_theory::Error;
use aqumen_theory::fluid::{self, Model, Options};

fn experiment(name: &str, changes: &[(&str, &str)]) -> Scenario {
    let path = format!("{}/../../experiments/arm-pfc/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let scenario = Scenario::load(path, &[]).unwrap();
    changes.iter().fold(scenario, |scenario, (key, value)| scenario.with(key, value).unwrap())
}

fn run(scenario: &Scenario, aqm: &str, options: Options) -> RunResult {
    let spec = scenario.aqm(aqm).unwrap();
    let plan = scenario.plan(1, Some(&spec)).unwrap();
    fluid::run(&plan, options, &mut |_| true).unwrap()
}

fn window<'r>(result: &'r RunResult, name: &str) -> &'r LinkMetrics {
    &result.links["bottleneck"][name]
}

const HOLLOT: Options = Options { model: Some(Model::Hollot), step_s: None };

#[test]
fn experiment_1_settles_on_its_target_with_the_probability_of_the_model() {
    // The base RTT is 200.8 ms or so: propagation 40 + 4 * 40 ms on average, and 2.7 ms of transmissions.
    let hollot: fn(f64) -> f64 = |w| 2.0 / (w * w);
    for (options, rule) in [(HOLLOT, hollot), (Options::default(), |w| 1.3098 * 1.3098 / (w * (w + 2.0)))] {
        let result = run(&experiment("exp1", &[]), "arm-pfc", options);
        let steady = window(&result, "steady");
        assert_eq!(result.engine, "fluid");
        assert!((steady.queue_mean_pkts - 100.0).abs() < 0.2, "{}", steady.queue_mean_pkts);
        let rtt = result.flows["ftp"]["steady"].rtt_mean_s.unwrap();
        let w0 = rtt * 1000.0 / 120.0;
        let expected = rule(w0);
        let got = steady.mark_ratio.unwrap();
        // Classes of several RTTs: the mean window's probability is near, not equal.
        assert!((got / expected - 1.0).abs() < 0.02, "{got} {expected}");
        assert!((steady.sojourn_mean_s.unwrap() - 0.1).abs() < 1e-3);
        assert!((steady.utilization.unwrap() - 1.0).abs() < 1e-3);
        // 960 of 1000 bytes are payload.
        assert!((result.flows["ftp"]["steady"].goodput_bps / 7.68e6 - 1.0).abs() < 1e-3);
    }
}

#[test]
fn what_arrives_leaves_is_lost_or_waits() {
    for aqm in ["droptail", "red", "pi-printed", "arm-pfc"] {
        let result = run(&experiment("exp4", &[]), aqm, Options::default());
        let all = window(&result, "all");
        let gone = all.departures_pkts + all.early_dropped_pkts + all.overflow_dropped_pkts;
        let waiting = *result.series["bottleneck"].queue_pkts.last().unwrap();
        let balance = all.arrivals_pkts as f64 - gone as f64 - waiting;
        // Four roundings.
        assert!(balance.abs() <= 2.5, "{aqm}: {balance}");
    }
}

#[test]
fn a_change_of_capacity_is_followed_and_forgotten() {
    // Experiment 5: 10 Mbit/s, from 40 s on 6, from 70 s on 10 again.
    let result = run(&experiment("exp5", &[]), "arm-pfc", HOLLOT);
    let series = &result.series["bottleneck"];
    for t in [39.0, 69.0, 99.0] {
        let k = series.t_s.iter().position(|&at| at >= t).unwrap();
        assert!((series.queue_pkts[k] - 100.0).abs() < 1.0, "at {t}: {}", series.queue_pkts[k]);
    }
    let narrow = window(&result, "narrow");
    assert!((narrow.departures_pkts as f64 / (750.0 * 30.0) - 1.0).abs() < 0.01);
}

#[test]
fn flows_that_leave_and_come_back_change_the_probability() {
    // Experiment 2: 150 flows, of which 50 pause.
    let result = run(&experiment("exp2", &[]), "arm-pfc", HOLLOT);
    let p: Vec<f64> = result.links["bottleneck"].values().map(|m| m.mark_ratio.unwrap()).collect();
    let (least, most) = (p.iter().copied().fold(1.0, f64::min), p.iter().copied().fold(0.0, f64::max));
    // p0 goes with N^2: (150/100)^2 = 2.25.
    assert!(most / least > 1.8, "{p:?}");
}

#[test]
fn results_do_not_depend_on_the_step_that_was_asked_for() {
    let at = |step_s| {
        let options = Options { step_s: Some(step_s), ..HOLLOT };
        window(&run(&experiment("exp1", &[]), "pi", options), "all").queue_mean_pkts
    };
    let (coarse, fine) = (at(2e-3), at(0.25e-3));
    assert!((coarse - fine).abs() < 0.05, "{coarse} {fine}");
}

#[test]
fn the_same_plan_gives_the_same_bits() {
    let json = || {
        let mut result = run(&experiment("exp2", &[]), "red", Options::default());
        result.cost = aqumen_result::Cost::default();
        serde_json::to_string(&result).unwrap()
    };
    assert_eq!(json(), json());
}

#[test]
fn a_run_can_be_stopped_and_a_step_of_nothing_is_refused() {
    let scenario = experiment("exp1", &[]);
    let plan = scenario.plan(1, None).unwrap();
    assert_eq!(fluid::run(&plan, Options::default(), &mut |_| false).unwrap_err(), Error::Cancelled);
    let nothing = Options { step_s: Some(0.0), ..HOLLOT };
    assert!(fluid::run(&plan, nothing, &mut |_| true).is_err());
    let endless = Options { step_s: Some(1e-12), ..HOLLOT };
    assert!(fluid::run(&plan, endless, &mut |_| true).unwrap_err().to_string().contains("steps"));
}

#[test]
fn algorithms_without_a_law_are_asked_packet_by_packet() {
    // What each is made for: ARED holds the middle of its thresholds (50, 150); AVQ leaves a little capacity unused;
    // CoDel keeps the delay far below the buffer's 300 ms; BLUE drops about as much as overflow would.
    let steady = |aqm: &str| window(&run(&experiment("exp1", &[]), aqm, Options::default()), "steady").clone();
    let ared = steady("ared");
    assert!((90.0..130.0).contains(&ared.queue_mean_pkts) && ared.mark_ratio.unwrap() > 0.1, "{ared:?}");
    let avq = steady("avq");
    assert!(avq.queue_mean_pkts < 60.0 && avq.mark_ratio.unwrap() > 0.1, "{avq:?}");
    let codel = steady("codel");
    assert!(codel.queue_mean_pkts < 100.0 && codel.mark_ratio.unwrap() > 0.1, "{codel:?}");
    let blue = steady("blue");
    assert!(blue.early_drop_ratio.unwrap() > 0.03 && blue.overflow_drop_ratio.unwrap() < 0.05, "{blue:?}");
}

#[test]
fn progress_goes_up_evenly_through_all_attempts() {
    let plan = experiment("exp1", &[]).plan(1, None).unwrap();
    let told = |options: Options| {
        let mut told = vec![0.0];
        fluid::run(&plan, options, &mut |share| {
            told.push(share);
            true
        })
        .unwrap();
        told.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<f64>>()
    };
    // Twenty reports of an attempt: of one alone, of the first of several in .3 of the way, of the next in half of what
    // is left and so on.
    let alone = told(Options { step_s: Some(2e-3), ..HOLLOT });
    assert!(alone.len() == 20 && alone.iter().all(|step| (step - 0.05).abs() < 1e-9), "{alone:?}");
    let several = told(HOLLOT);
    assert!(several.len() >= 40 && several.len() % 20 == 0, "{several:?}");
    for (attempt, steps) in several.chunks(20).enumerate() {
        let share = if attempt == 0 { 0.3 } else { 0.7 * 0.5f64.powi(attempt as i32) };
        assert!(steps.iter().all(|step| (step - share / 20.0).abs() < 1e-9), "{attempt}: {steps:?}");
    }
}
