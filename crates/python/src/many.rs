//! Several runs at a time: each on one thread, results handed to Python as they come.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use aqumen_scenario::{Plan, Scenario};
use pyo3::prelude::*;

use crate::{RunResult, plan};

/// What runs a plan; it asks now and then whether to go on.
pub(crate) type Engine<'a> =
    dyn Fn(&Plan, &mut dyn FnMut(f64) -> bool) -> PyResult<aqumen_result::RunResult> + Sync + 'a;

/// How often Python may look for Ctrl-C.
const PATIENCE: Duration = Duration::from_millis(100);

pub(crate) fn run_many(
    py: Python<'_>,
    scenario: &Scenario,
    jobs: &[(Option<String>, u64)],
    threads: usize,
    on_done: &Py<PyAny>,
    engine: &Engine<'_>,
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
                        let result = run_one(scenario, aqm.as_deref(), *seed, stop, engine);
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

fn run_one(
    scenario: &Scenario,
    aqm: Option<&str>,
    seed: u64,
    stop: &AtomicBool,
    engine: &Engine<'_>,
) -> PyResult<RunResult> {
    let plan = plan(scenario, seed, aqm)?;
    engine(&plan, &mut |_| !stop.load(Ordering::Relaxed)).map(RunResult)
}

/// Calls back with a finished job; whether to go on.
fn hand_over(on_done: &Py<PyAny>, number: usize, result: PyResult<RunResult>) -> PyResult<bool> {
    Python::attach(|py| {
        py.check_signals()?;
        on_done.call1(py, (number, result?))?.is_truthy(py)
    })
}
