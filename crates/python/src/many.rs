//! Several runs at a time: each on one thread, results handed to Python as they come.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};

use aqumen_scenario::{Plan, Scenario};
use pyo3::prelude::*;

use crate::interrupt::{Left, spawn, wait};
use crate::own::Known;
use crate::result::RunResult;
use crate::scenario::plan;

/// What runs a plan; it asks now and then whether to go on.
pub(crate) type Engine = dyn Fn(&Plan, &mut dyn FnMut(f64) -> bool) -> PyResult<aqumen_result::RunResult> + Send + Sync;

/// An AQM by SPEC (`None`: the scenario's own), and a seed.
pub(crate) type Job = (Option<String>, u64);

pub(crate) fn run_many(
    py: Python<'_>,
    scenario: &Known<Scenario>,
    jobs: Vec<Job>,
    threads: usize,
    on_done: &Py<PyAny>,
    engine: Arc<Engine>,
) -> PyResult<()> {
    let (sender, mut receiver) = mpsc::channel();
    let (jobs, next, left) = (Arc::new(jobs), Arc::new(AtomicUsize::new(0)), Left::default());
    let mut workers = Vec::new();
    for _ in 0..threads.clamp(1, jobs.len().max(1)) {
        let (scenario, jobs, engine) = (scenario.clone(), jobs.clone(), engine.clone());
        let (sender, next, left) = (sender.clone(), next.clone(), left.clone());
        workers.push(spawn(move || {
            while !left.is_so() {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(job) = jobs.get(number) else { break };
                let result = run_one(&scenario, job, &left, &*engine);
                if sender.send((number, result)).is_err() {
                    break;
                }
            }
        })?);
    }
    drop(sender);
    let outcome = loop {
        match wait(py, &mut receiver) {
            Ok((number, result)) => match hand_over(py, on_done, number, result) {
                Ok(true) => {}
                other => break other.map(drop),
            },
            Err(RecvTimeoutError::Timeout) => {
                if let Err(error) = py.check_signals() {
                    break Err(error);
                }
            }
            // All workers are done: what made one panic is raised.
            Err(RecvTimeoutError::Disconnected) => {
                let ended: Vec<_> = py.detach(|| workers.into_iter().map(|worker| worker.join()).collect());
                ended.into_iter().for_each(|end| end.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
                return Ok(());
            }
        }
    };
    left.leave();
    outcome
}

fn run_one(scenario: &Known<Scenario>, (aqm, seed): &Job, left: &Left, engine: &Engine) -> PyResult<RunResult> {
    let plan = plan(scenario, *seed, aqm.as_deref())?;
    let watch = scenario.watch();
    watch.settle(engine(&plan, &mut |_| !left.is_so() && watch.calm()).map(RunResult))
}

/// Calls back with a finished job; whether to go on.
fn hand_over(py: Python<'_>, on_done: &Py<PyAny>, number: usize, result: PyResult<RunResult>) -> PyResult<bool> {
    py.check_signals()?;
    on_done.call1(py, (number, result?))?.is_truthy(py)
}
