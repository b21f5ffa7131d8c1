//! Interruptible work: an engine works on its own thread, while the caller's thread waits for it and checks for
//! signals, so that Ctrl-C takes effect within a moment.
//!
//! A caller that is interrupted cancels the worker and waits a moment: an engine stops at its next progress report, and
//! removes a partial file. A worker without progress reports ends with the program.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::call::PyCallArgs;
use pyo3::prelude::*;

use crate::error::refuse;

/// Interval between two checks for signals.
const SIGNAL_PERIOD: Duration = Duration::from_millis(50);

/// Longest wait for a cancelled worker.
const GRACE: Duration = Duration::from_millis(500);

/// Stack of a worker, as large as the main thread's: engines run on either.
const STACK_BYTES: usize = 8 << 20;

/// Worker's end of the channel: sends progress, receives whether to continue.
pub(crate) struct Worker<Progress = (f64,)> {
    reports: Sender<Progress>,
    replies: Mutex<Receiver<bool>>,
    cancellation: Cancellation,
}

/// Cancellation flag, set when the caller is interrupted.
#[derive(Clone, Default)]
pub(crate) struct Cancellation(Arc<AtomicBool>);

impl<Progress> Worker<Progress> {
    /// Reports the `progress`; returns whether to continue.
    pub(crate) fn report(&self, progress: Progress) -> bool {
        let replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        !self.cancellation.is_cancelled() && self.reports.send(progress).is_ok() && replies.recv().unwrap_or(false)
    }
}

impl Worker {
    /// Reports the completed `fraction`; returns whether to continue.
    pub(crate) fn report_fraction(&self, fraction: f64) -> bool {
        self.report((fraction,))
    }

    /// Runs `work`, which calls Python code throughout, with the GIL held, to save one acquisition per call. Other
    /// threads get the GIL between two Python instructions, or at a progress report.
    pub(crate) fn with_gil<T>(&self, work: impl FnOnce(&mut dyn FnMut(f64) -> bool) -> T) -> T {
        Python::attach(|py| work(&mut |fraction| py.detach(|| self.report_fraction(fraction))))
    }
}

impl Cancellation {
    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `work` on its own thread; returns its result, or the exception of a signal.
pub(crate) fn run_on_thread<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> PyResult<T> + Send + 'static,
) -> PyResult<T> {
    run_with_progress(py, None, |_: &Worker| work())
}

/// As `run_on_thread`; `progress` is called with each progress report of `work`. `False` or an exception from it stops
/// the work; the exception is raised.
pub(crate) fn run_with_progress<T: Send + 'static, Progress: for<'py> PyCallArgs<'py> + Send + 'static>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&Worker<Progress>) -> PyResult<T> + Send + 'static,
) -> PyResult<T> {
    let (sender, mut reports) = mpsc::channel();
    let (reply, replies) = mpsc::channel();
    let cancellation = Cancellation::default();
    let worker = Worker { reports: sender, replies: Mutex::new(replies), cancellation: cancellation.clone() };
    let thread = spawn(move || work(&worker))?;
    let mut raised = None;
    // The channel closes when the work ends.
    loop {
        match wait(py, &mut reports) {
            Ok(report) => {
                let proceed = raised.is_none() && call_progress(py, progress.as_ref(), report, &mut raised);
                let _ = reply.send(proceed);
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                if let Err(signal) = py.check_signals() {
                    cancellation.cancel();
                    drop(reply);
                    py.detach(move || wait_for_end(&reports));
                    return Err(signal);
                }
            }
        }
    }
    let done = py.detach(|| thread.join()).unwrap_or_else(|panic| resume_unwind(panic));
    raised.map_or(done, Err)
}

/// Returns the next message, or a timeout after a moment.
pub(crate) fn wait<T: Send>(py: Python<'_>, from: &mut Receiver<T>) -> Result<T, RecvTimeoutError> {
    py.detach(move || from.recv_timeout(SIGNAL_PERIOD))
}

/// Waits until the worker closes its end of the channel, at most `GRACE`.
fn wait_for_end<Progress>(reports: &Receiver<Progress>) {
    let until = Instant::now() + GRACE;
    while reports.recv_timeout(until.saturating_duration_since(Instant::now())).is_ok() {}
}

/// Starts `work` on its own thread. Python knows the thread throughout: attaching it anew costs more than a call of
/// a custom AQM.
pub(crate) fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> PyResult<thread::JoinHandle<T>> {
    let known = move || Python::attach(|py| py.detach(work));
    let thread = thread::Builder::new().name("aqumen".into()).stack_size(STACK_BYTES).spawn(known);
    thread.map_err(|error| refuse(format!("cannot start a thread: {error}")))
}

/// Calls `progress` with the report; returns whether to continue.
fn call_progress<Progress: for<'py> PyCallArgs<'py>>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    report: Progress,
    raised: &mut Option<PyErr>,
) -> bool {
    let result = py.check_signals().and_then(|()| match progress {
        Some(progress) => progress.call1(py, report)?.is_truthy(py),
        None => Ok(true),
    });
    result.unwrap_or_else(|error| {
        *raised = Some(error);
        false
    })
}
