//! Prints the plan of a scenario as JSON: `plan SCENARIO.toml [SPEC] [SEED] [KEY=VALUE ...]`.

use std::process::ExitCode;

use aqumen_scenario::{Error, Scenario, memory};

fn main() -> ExitCode {
    match plan(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(json) => {
            println!("{json}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn plan(args: &[String]) -> Result<String, Error> {
    let at = |i: usize| args.get(i).map_or("", String::as_str);
    let overrides: Vec<(&str, &str)> = args.iter().skip(3).filter_map(|arg| arg.split_once('=')).collect();
    let scenario = Scenario::load(at(0), &overrides)?;
    scenario.check_memory(1, memory::headroom().map_or(u64::MAX, |headroom| headroom.left))?;
    let aqm = if at(1).is_empty() { None } else { Some(scenario.aqm(at(1))?) };
    let plan = scenario.plan(at(2).parse().unwrap_or(1), aqm.as_ref())?;
    Ok(plan.to_json().map_or_else(|error| error.to_string(), |json| json.to_string()))
}
