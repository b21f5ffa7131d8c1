//! Whole scenarios on the fluid engine.

use aqumen_result::{LinkMetrics, RunResult};
use aqumen_scenario::Scenario;
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

fn steady(result: &RunResult) -> &LinkMetrics {
    &result.links["bottleneck"]["steady"]
}

const HOLLOT: Options = Options { model: Some(Model::Hollot), step_s: None };

#[test]
fn print() {
    for aqm in
        ["arm-pfc", "arm-pfc-literal", "arm-pfc-printed", "pi", "pi-printed", "pi-x1000", "red", "red50", "droptail"]
    {
        for options in [HOLLOT, Options::default()] {
            let r = run(&experiment("exp1", &[]), aqm, options);
            let m = steady(&r);
            println!(
                "{aqm} {:?} q {:.2} sd {:.2} util {:?} mark {:?} cost {:?} {:?}",
                options.model,
                m.queue_mean_pkts,
                m.queue_std_pkts,
                m.utilization,
                m.mark_ratio,
                r.cost.events,
                r.cost.cpu_s
            );
        }
    }
}
