//! Concurrent runs: each on one thread, with results passed to Python as they complete. If memory is short, the run
//! that started last is postponed, and runs alone after the others.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;

use aqumen_scenario::{Plan, Scenario};
use pyo3::prelude::*;

use crate::custom::WithCustomCode;
use crate::interrupt::{Cancellation, spawn, wait};
use crate::memory::{Guard, PERIOD};
use crate::result::RunResult;
use crate::scenario::plan;

/// Engine that runs a plan, with a progress callback that returns whether to continue.
pub(crate) type Engine = dyn Fn(&Plan, &mut dyn FnMut(f64) -> bool) -> PyResult<aqumen_result::RunResult> + Send + Sync;

/// A run.
pub(crate) struct Job {
    pub(crate) scenario: WithCustomCode<Scenario>,
    /// SPEC of the AQM; `None`: the AQM that the scenario names.
    pub(crate) aqm: Option<String>,
    pub(crate) seed: u64,
}

/// Returns a job for each (SPEC, seed) on `scenario`.
pub(crate) fn jobs_of(scenario: &WithCustomCode<Scenario>, runs: Vec<(Option<String>, u64)>) -> Vec<Job> {
    runs.into_iter().map(|(aqm, seed)| Job { scenario: scenario.clone(), aqm, seed }).collect()
}

/// Schedule of the jobs, which are numbered.
struct Schedule(Mutex<ScheduleState>);

struct ScheduleState {
    /// Jobs that have not started yet.
    fresh: Range<usize>,
    /// Running jobs, in order of their start.
    running: Vec<usize>,
    /// Postponed jobs.
    postponed: VecDeque<usize>,
    /// Threads that take jobs.
    threads: usize,
}

/// Role of a run when memory is short.
#[derive(PartialEq)]
enum MemoryRole {
    /// The only run: it ends.
    Alone,
    /// The run that started last: it is postponed.
    Latest,
    /// An earlier run: it waits for the last to release its memory.
    Earlier,
}

impl Schedule {
    fn new(jobs: usize, threads: usize) -> Self {
        let state = ScheduleState { fresh: 0..jobs, running: Vec::new(), postponed: VecDeque::new(), threads };
        Schedule(Mutex::new(state))
    }

    fn state(&self) -> MutexGuard<'_, ScheduleState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the next job of a thread, `None` at the end. Postponed jobs are left to the last thread.
    fn next(&self) -> Option<usize> {
        let mut state = self.state();
        let alone = state.threads == 1;
        let next = state.fresh.next().or_else(|| if alone { state.postponed.pop_front() } else { None });
        match next {
            Some(number) => state.running.push(number),
            None => state.threads -= 1,
        }
        next
    }

    fn role(&self, number: usize) -> MemoryRole {
        match &self.state().running[..] {
            [_] => MemoryRole::Alone,
            [.., last] if *last == number => MemoryRole::Latest,
            _ => MemoryRole::Earlier,
        }
    }

    /// Ends the job of a thread, or postpones it (`postpone`). Returns whether the thread takes another job: when
    /// memory is short, one thread fewer does.
    fn leave(&self, number: usize, postpone: bool) -> bool {
        let mut state = self.state();
        state.running.retain(|other| *other != number);
        if postpone {
            state.postponed.push_back(number);
            if state.threads > 1 {
                state.threads -= 1;
                return false;
            }
        }
        true
    }
}

pub(crate) fn run_many(
    py: Python<'_>,
    jobs: Vec<Job>,
    threads: usize,
    on_done: &Py<PyAny>,
    engine: Arc<Engine>,
) -> PyResult<()> {
    let (sender, mut receiver) = mpsc::channel();
    let threads = threads.clamp(1, jobs.len().max(1));
    let (schedule, jobs, cancellation) =
        (Arc::new(Schedule::new(jobs.len(), threads)), Arc::new(jobs), Cancellation::default());
    let mut workers = Vec::new();
    for _ in 0..threads {
        let (jobs, engine) = (jobs.clone(), engine.clone());
        let (sender, schedule, cancellation) = (sender.clone(), schedule.clone(), cancellation.clone());
        workers.push(spawn(move || {
            while !cancellation.is_cancelled()
                && let Some(number) = schedule.next()
            {
                let result = run_one(&jobs[number], &cancellation, &*engine, &|| schedule.role(number));
                let proceed = schedule.leave(number, result.is_none());
                if result.is_some_and(|result| sender.send((number, result)).is_err()) || !proceed {
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
            // All workers have ended; a panic is propagated.
            Err(RecvTimeoutError::Disconnected) => {
                let ended: Vec<_> = py.detach(|| workers.into_iter().map(|worker| worker.join()).collect());
                ended.into_iter().for_each(|end| end.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
                return Ok(());
            }
        }
    };
    cancellation.cancel();
    outcome
}

/// Result of one job; `None` if it was postponed.
fn run_one(
    Job { scenario, aqm, seed }: &Job,
    cancellation: &Cancellation,
    engine: &Engine,
    role: &dyn Fn() -> MemoryRole,
) -> Option<PyResult<RunResult>> {
    let plan = match plan(scenario, *seed, aqm.as_deref()) {
        Ok(plan) => plan,
        Err(error) => return Some(Err(error)),
    };
    let (watch, mut guard, mut postponed) = (scenario.watch(), Guard::new(scenario), false);
    let mut has_memory = |fraction| {
        while let Some(headroom) = guard.look() {
            match role() {
                MemoryRole::Alone => guard.end(fraction, &headroom),
                MemoryRole::Latest => postponed = true,
                MemoryRole::Earlier if cancellation.is_cancelled() => {}
                MemoryRole::Earlier => {
                    sleep(PERIOD);
                    continue;
                }
            }
            return false;
        }
        true
    };
    let found = engine(&plan, &mut |fraction| !cancellation.is_cancelled() && watch.is_ok() && has_memory(fraction));
    if postponed && found.is_err() {
        return None;
    }
    Some(watch.settle(guard.settle(found.map(RunResult))))
}

/// Calls `on_done` with a finished job; returns whether to continue.
fn hand_over(py: Python<'_>, on_done: &Py<PyAny>, number: usize, result: PyResult<RunResult>) -> PyResult<bool> {
    py.check_signals()?;
    on_done.call1(py, (number, result?))?.is_truthy(py)
}
