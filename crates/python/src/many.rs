//! Several runs at a time: each on one thread, results handed to Python as they come.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use aqumen_scenario::Scenario;
use aqumen_sim::Options;
use pyo3::prelude::*;

use crate::{RunResult, plan, run_error};

/// How often Python may look for Ctrl-C.
const PATIENCE: Duration = Duration::from_millis(100);

pub(crate) fn run_many(
    py: Python<'_>,
    scenario: &Scenario,
    jobs: &[(Option<String>, u64)],
    threads: usize,
    on_done: &Py<PyAny>,
) -> PyResult<()> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    py.detach(|| {
        let (sender, receiver) = mpsc::channel();
        thread::scope(|scope| {
            for _ in 0..threads.clamp(1, jobs.len().max(1)) {
                let (sender, next, stop) = (sender.clone(), &next, &stop);
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        let Some((aqm, seed)) = jobs.get(number) else { break };
                        let result = run_one(scenario, aqm.as_deref(), *seed, stop);
                        if sender.send((number, result)).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(sender);
            let outcome = loop {
                match receiver.recv_timeout(PATIENCE) {
                    Ok((number, result)) => match hand_over(on_done, number, result) {
                        Ok(true) => {}
                        other => break other.map(drop),
                    },
                    Err(RecvTimeoutError::Timeout) => {
                        if let Err(error) = Python::attach(|py| py.check_signals()) {
                            break Err(error);
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => break Ok(()),
                }
            };
            stop.store(true, Ordering::Relaxed);
            outcome
        })
    })
}

fn run_one(scenario: &Scenario, aqm: Option<&str>, seed: u64, stop: &AtomicBool) -> PyResult<RunResult> {
    let plan = plan(scenario, seed, aqm)?;
    let mut go_on = |_: f64| !stop.load(Ordering::Relaxed);
    aqumen_sim::run(&plan, Options::default(), &mut go_on).map(RunResult).map_err(run_error)
}

/// Calls back with a finished job; whether to go on.
fn hand_over(on_done: &Py<PyAny>, number: usize, result: PyResult<RunResult>) -> PyResult<bool> {
    Python::attach(|py| {
        py.check_signals()?;
        on_done.call1(py, (number, result?))?.is_truthy(py)
    })
}
