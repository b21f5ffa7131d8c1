//! Packet engine: one run, or several at a time.

use std::path::PathBuf;
use std::sync::Arc;

use aqumen_scenario::Plan;
use aqumen_sim::Options;
use pyo3::prelude::*;

use crate::cost::{measured, measured_of_all};
use crate::error::run_error;
use crate::interrupt::{Worker, run_with_progress};
use crate::many::Job;
use crate::memory::Guard;
use crate::result::RunResult;
use crate::scenario::{Scenario, plan};
use crate::{custom, many};

/// Runs `scenario` on the packet engine with the AQM of a SPEC, on at most `threads` threads; on one if it calls
/// Python.
///
/// `progress` is called with the completed fraction; `False` from it stops the run with `Cancelled`.
#[pyfunction]
#[pyo3(signature = (scenario, aqm, seed, pcap = None, progress = None, threads = 1))]
pub(crate) fn run(
    py: Python<'_>,
    scenario: &Scenario,
    aqm: Option<&str>,
    seed: u64,
    pcap: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
    threads: usize,
) -> PyResult<RunResult> {
    let (scenario, aqm) = (scenario.0.clone(), aqm.map(String::from));
    let run = move |worker: &Worker| {
        let plan = plan(&scenario, seed, aqm.as_deref())?;
        let calls = custom::calls_python(&plan);
        let threads = if calls { 1 } else { threads };
        let options = Options { trace: pcap.as_deref(), threads, ..Options::default() };
        let (watch, mut guard) = (scenario.watch(), Guard::new(&scenario));
        let mut engine = |report: &mut dyn FnMut(f64) -> bool| {
            let mut proceed = |fraction| watch.is_ok() && guard.allows(fraction) && report(fraction);
            let run = || aqumen_sim::run(&plan, options, &mut proceed);
            if threads > 1 { measured_of_all(run) } else { measured(run) }
        };
        let found = if calls { worker.with_gil(&mut engine) } else { engine(&mut |done| worker.report_fraction(done)) };
        watch.settle(guard.settle(found.map_err(run_error)))
    };
    run_with_progress(py, progress, run).map(RunResult)
}

/// Runs each (SPEC, seed) of `jobs` on the packet engine, `threads` at a time.
///
/// `on_done` is called with the number of each finished job and its result, in order of completion, on the caller's
/// thread. `False` or an exception from it stops the rest.
#[pyfunction]
pub(crate) fn run_many(
    py: Python<'_>,
    scenario: &Scenario,
    jobs: Vec<(Option<String>, u64)>,
    threads: usize,
    on_done: Py<PyAny>,
) -> PyResult<()> {
    many::run_many(py, many::jobs_of(&scenario.0, jobs), threads, &on_done, Arc::new(one_run))
}

/// Runs each (scenario, SPEC, seed) of `jobs` on the packet engine; otherwise as `run_many`.
#[pyfunction]
pub(crate) fn run_each(
    py: Python<'_>,
    jobs: Vec<(PyRef<'_, Scenario>, Option<String>, u64)>,
    threads: usize,
    on_done: Py<PyAny>,
) -> PyResult<()> {
    let jobs = jobs.into_iter().map(|(scenario, aqm, seed)| Job { scenario: scenario.0.clone(), aqm, seed }).collect();
    many::run_many(py, jobs, threads, &on_done, Arc::new(one_run))
}

/// Runs a plan on one thread.
fn one_run(plan: &Plan, proceed: &mut dyn FnMut(f64) -> bool) -> PyResult<aqumen_result::RunResult> {
    measured(|| aqumen_sim::run(plan, Options::default(), &mut |fraction| proceed(fraction))).map_err(run_error)
}
