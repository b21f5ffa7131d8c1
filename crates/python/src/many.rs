//! Several runs at a time: each on one thread, results handed to Python as they come. Where memory is short the run
//! that started last is put back, and runs alone when the others are done.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;

use aqumen_scenario::{Plan, Scenario};
use pyo3::prelude::*;

use crate::interrupt::{Left, spawn, wait};
use crate::memory::{Guard, PERIOD};
use crate::own::Known;
use crate::result::RunResult;
use crate::scenario::plan;

/// What runs a plan; it asks now and then whether to go on.
pub(crate) type Engine = dyn Fn(&Plan, &mut dyn FnMut(f64) -> bool) -> PyResult<aqumen_result::RunResult> + Send + Sync;

/// An AQM by SPEC (`None`: the scenario's own), and a seed.
pub(crate) type Job = (Option<String>, u64);

/// Order in which jobs run, by number.
struct Schedule(Mutex<Numbers>);

struct Numbers {
    /// Jobs that have not started yet.
    fresh: Range<usize>,
    /// Jobs under way, in the order in which they started.
    running: Vec<usize>,
    /// Jobs that gave their memory to others.
    put_back: VecDeque<usize>,
    /// Threads that take jobs.
    threads: usize,
}

/// Part of a run where memory is short.
#[derive(PartialEq)]
enum Part {
    /// It runs alone, and ends.
    Alone,
    /// It started last, and is put back.
    Last,
    /// It waits for the last to give its memory back.
    Earlier,
}

impl Schedule {
    fn new(jobs: usize, threads: usize) -> Self {
        let numbers = Numbers { fresh: 0..jobs, running: Vec::new(), put_back: VecDeque::new(), threads };
        Schedule(Mutex::new(numbers))
    }

    fn numbers(&self) -> MutexGuard<'_, Numbers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The job that a thread runs next; `None`: it is done. Those that were put back are left to the last thread.
    fn next(&self) -> Option<usize> {
        let mut numbers = self.numbers();
        let alone = numbers.threads == 1;
        let next = numbers.fresh.next().or_else(|| if alone { numbers.put_back.pop_front() } else { None });
        match next {
            Some(number) => numbers.running.push(number),
            None => numbers.threads -= 1,
        }
        next
    }

    fn part(&self, number: usize) -> Part {
        match &self.numbers().running[..] {
            [_] => Part::Alone,
            [.., last] if *last == number => Part::Last,
            _ => Part::Earlier,
        }
    }

    /// The job of a thread is over, or `put_back`. Whether the thread takes another: where memory is short one fewer
    /// does.
    fn leave(&self, number: usize, put_back: bool) -> bool {
        let mut numbers = self.numbers();
        numbers.running.retain(|other| *other != number);
        if put_back {
            numbers.put_back.push_back(number);
            if numbers.threads > 1 {
                numbers.threads -= 1;
                return false;
            }
        }
        true
    }
}

pub(crate) fn run_many(
    py: Python<'_>,
    scenario: &Known<Scenario>,
    jobs: Vec<Job>,
    threads: usize,
    on_done: &Py<PyAny>,
    engine: Arc<Engine>,
) -> PyResult<()> {
    let (sender, mut receiver) = mpsc::channel();
    let threads = threads.clamp(1, jobs.len().max(1));
    let (schedule, jobs, left) = (Arc::new(Schedule::new(jobs.len(), threads)), Arc::new(jobs), Left::default());
    let mut workers = Vec::new();
    for _ in 0..threads {
        let (scenario, jobs, engine) = (scenario.clone(), jobs.clone(), engine.clone());
        let (sender, schedule, left) = (sender.clone(), schedule.clone(), left.clone());
        workers.push(spawn(move || {
            while !left.is_so()
                && let Some(number) = schedule.next()
            {
                let result = run_one(&scenario, &jobs[number], &left, &*engine, &|| schedule.part(number));
                let go_on = schedule.leave(number, result.is_none());
                if result.is_some_and(|result| sender.send((number, result)).is_err()) || !go_on {
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

/// The result of one job; `None`: it was put back.
fn run_one(
    scenario: &Known<Scenario>,
    (aqm, seed): &Job,
    left: &Left,
    engine: &Engine,
    part: &dyn Fn() -> Part,
) -> Option<PyResult<RunResult>> {
    let plan = match plan(scenario, *seed, aqm.as_deref()) {
        Ok(plan) => plan,
        Err(error) => return Some(Err(error)),
    };
    let (watch, mut guard, mut put_back) = (scenario.watch(), Guard::new(scenario), false);
    let mut has_memory = |fraction| {
        while let Some(headroom) = guard.look() {
            match part() {
                Part::Alone => guard.end(fraction, &headroom),
                Part::Last => put_back = true,
                Part::Earlier if left.is_so() => {}
                Part::Earlier => {
                    sleep(PERIOD);
                    continue;
                }
            }
            return false;
        }
        true
    };
    let found = engine(&plan, &mut |fraction| !left.is_so() && watch.calm() && has_memory(fraction));
    if put_back && found.is_err() {
        return None;
    }
    Some(watch.settle(guard.settle(found.map(RunResult))))
}

/// Calls back with a finished job; whether to go on.
fn hand_over(py: Python<'_>, on_done: &Py<PyAny>, number: usize, result: PyResult<RunResult>) -> PyResult<bool> {
    py.check_signals()?;
    on_done.call1(py, (number, result?))?.is_truthy(py)
}
