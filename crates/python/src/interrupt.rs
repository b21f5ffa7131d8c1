//! Ctrl-C is answered within a moment, whatever an engine is at: it works on a thread of its own, while the caller's
//! thread waits for it and looks for signals.
//!
//! A caller that leaves tells the worker so, and waits a moment: an engine stops where it next asks whether to go on,
//! and takes a half-written file with it. What never asks ends with the program.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::call::PyCallArgs;
use pyo3::prelude::*;

use crate::error::refuse;

/// How often signals are looked for.
const PATIENCE: Duration = Duration::from_millis(50);

/// How long a caller that leaves waits for its worker to tidy up.
const GRACE: Duration = Duration::from_millis(500);

/// As the main thread has it: engines run on either.
const STACK_BYTES: usize = 8 << 20;

/// The worker's end: where it says how far it is, and hears whether to go on.
pub(crate) struct Worker<Far = (f64,)> {
    far: Sender<Far>,
    answers: Mutex<Receiver<bool>>,
    left: Left,
}

/// Whether the caller has left.
#[derive(Clone, Default)]
pub(crate) struct Left(Arc<AtomicBool>);

impl<Far> Worker<Far> {
    /// Tells how far the work is, and waits to hear whether to go on.
    pub(crate) fn tell(&self, far: Far) -> bool {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        !self.left.is_so() && self.far.send(far).is_ok() && answers.recv().unwrap_or(false)
    }
}

impl Worker {
    /// Tells which fraction of the work is done, and waits to hear whether to go on.
    pub(crate) fn hear(&self, fraction: f64) -> bool {
        self.tell((fraction,))
    }

    /// The answer of `work`, which calls own code all the while. It has the interpreter's lock and takes it for no
    /// call. Whoever else wants it gets it between two of that code's instructions, or when `work` asks whether to go
    /// on.
    pub(crate) fn with_lock<T>(&self, work: impl FnOnce(&mut dyn FnMut(f64) -> bool) -> T) -> T {
        Python::attach(|py| work(&mut |fraction| py.detach(|| self.hear(fraction))))
    }
}

impl Left {
    pub(crate) fn is_so(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn leave(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The answer of `work`, or what a signal raised meanwhile.
pub(crate) fn apart<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> PyResult<T> + Send + 'static,
) -> PyResult<T> {
    listening(py, None, |_: &Worker| work())
}

/// The same, where `progress` hears how far `work` is. What it raises stops the work, and is raised; `False` from it
/// stops the work.
pub(crate) fn listening<T: Send + 'static, Far: for<'py> PyCallArgs<'py> + Send + 'static>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&Worker<Far>) -> PyResult<T> + Send + 'static,
) -> PyResult<T> {
    let (far, mut heard) = mpsc::channel();
    let (answer, answers) = mpsc::channel();
    let left = Left::default();
    let worker = Worker { far, answers: Mutex::new(answers), left: left.clone() };
    let thread = spawn(move || work(&worker))?;
    let mut raised = None;
    // The channel closes when the work is over, one way or another.
    loop {
        match wait(py, &mut heard) {
            Ok(far) => {
                let go_on = raised.is_none() && ask(py, progress.as_ref(), far, &mut raised);
                let _ = answer.send(go_on);
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                if let Err(signal) = py.check_signals() {
                    left.leave();
                    drop(answer);
                    py.detach(move || until_over(&heard));
                    return Err(signal);
                }
            }
        }
    }
    let done = py.detach(|| thread.join()).unwrap_or_else(|panic| resume_unwind(panic));
    raised.map_or(done, Err)
}

/// What comes next, or that nothing came for a moment.
pub(crate) fn wait<T: Send>(py: Python<'_>, from: &mut Receiver<T>) -> Result<T, RecvTimeoutError> {
    py.detach(move || from.recv_timeout(PATIENCE))
}

/// Waits until the worker's end of the channel closes, `GRACE` at the most.
fn until_over<Far>(heard: &Receiver<Far>) {
    let until = Instant::now() + GRACE;
    while heard.recv_timeout(until.saturating_duration_since(Instant::now())).is_ok() {}
}

/// Begins `work` on a thread of its own. Python knows the thread all the while: own AQMs call it often, and to be
/// introduced anew costs far more than a call.
pub(crate) fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> PyResult<thread::JoinHandle<T>> {
    let known = move || Python::attach(|py| py.detach(work));
    let thread = thread::Builder::new().name("aqumen".into()).stack_size(STACK_BYTES).spawn(known);
    thread.map_err(|error| refuse(format!("no thread to run on: {error}")))
}

/// Whether `progress`, told how `far` it is, wants to go on.
fn ask<Far: for<'py> PyCallArgs<'py>>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    far: Far,
    raised: &mut Option<PyErr>,
) -> bool {
    let answer = py.check_signals().and_then(|()| match progress {
        Some(progress) => progress.call1(py, far)?.is_truthy(py),
        None => Ok(true),
    });
    answer.unwrap_or_else(|error| {
        *raised = Some(error);
        false
    })
}
