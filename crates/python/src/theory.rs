//! What needs no packets: the fluid engine.

use aqumen_scenario::Plan;
use aqumen_theory::Error;
use aqumen_theory::fluid::{self, Model, Options};
use pyo3::prelude::*;

use crate::{Cancelled, Listener, RunResult, Scenario, many, plan, refuse};

/// Runs `scenario` on the fluid engine with the AQM of a SPEC. `model` is `hollot`, `ecn`, `drop`, or left out: `ecn` for
/// ECN-capable flows, `drop` for others.
///
/// `progress` hears the fraction done now and then; `False` from it stops the run with `Cancelled`.
#[pyfunction]
#[pyo3(signature = (scenario, aqm, seed, model = None, progress = None))]
pub(crate) fn run_fluid(
    py: Python<'_>,
    scenario: &Scenario,
    aqm: Option<&str>,
    seed: u64,
    model: Option<&str>,
    progress: Option<Py<PyAny>>,
) -> PyResult<RunResult> {
    let (plan, options) = (plan(&scenario.0, seed, aqm)?, options(model)?);
    let mut listener = Listener::new(progress);
    let result = py.detach(|| fluid::run(&plan, options, &mut |fraction| listener.hear(fraction)));
    listener.answer(result.map_err(error))
}

/// Runs each (SPEC, seed) of `jobs` on the fluid engine, `threads` at a time; else as `run_many`.
#[pyfunction]
pub(crate) fn run_fluid_many(
    py: Python<'_>,
    scenario: &Scenario,
    jobs: Vec<(Option<String>, u64)>,
    model: Option<&str>,
    threads: usize,
    on_done: Py<PyAny>,
) -> PyResult<()> {
    let options = options(model)?;
    let engine = |plan: &Plan, go_on: &mut dyn FnMut(f64) -> bool| fluid::run(plan, options, go_on).map_err(error);
    many::run_many(py, &scenario.0, &jobs, threads, &on_done, &engine)
}

fn options(model: Option<&str>) -> PyResult<Options> {
    let model = match model {
        None => None,
        Some("hollot") => Some(Model::Hollot),
        Some("ecn") => Some(Model::Ecn),
        Some("drop") => Some(Model::Drop),
        Some(other) => return Err(refuse(format!("unknown fluid model `{other}`; there are: hollot, ecn, drop"))),
    };
    Ok(Options { model, ..Options::default() })
}

fn error(error: Error) -> PyErr {
    match error {
        Error::Cancelled => Cancelled::new_err(error.to_string()),
        error => refuse(error),
    }
}
