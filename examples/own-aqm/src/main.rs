//! Runs a scenario with an AQM (a built-in one, `integral`, `impatient` or `turns`) and prints its result as JSON:
//!
//! ```text
//! cargo run --release -- ../../experiments/arm-pfc/exp1.toml integral:gain=2e-5 1
//! ```

use std::error::Error;
use std::process::ExitCode;

use aqumen_scenario::Scenario;
use aqumen_sim::Options;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(json) => {
            println!("{json}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("own-aqm: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &[String]) -> Result<String, Box<dyn Error>> {
    let [file, spec, seed] = args else { return Err("usage: own-aqm SCENARIO.toml SPEC SEED".into()) };
    let scenario = Scenario::load_with_extensions(file, own_aqm::catalogue()?)?;
    let plan = scenario.plan(seed.parse()?, Some(&scenario.aqm(spec)?))?;
    Ok(serde_json::to_string(&aqumen_sim::run(&plan, Options::default(), &mut |_| true)?)?)
}
