//! Errors of custom code. Calls from an engine cannot fail, so an exception or an invalid result is stored in the
//! [`ErrorSlot`] of the catalogue. From then on the code is not called, the engine stops at its next progress report,
//! and the run raises the stored error with its simulated time.

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use aqumen_units::Instant;
use pyo3::import_exception;
use pyo3::prelude::*;

import_exception!(aqumen.errors, CustomError);

/// Catalogue or scenario, with the errors of its custom code.
pub(crate) struct WithCustomCode<T> {
    inner: Arc<T>,
    errors: ErrorSlot,
}

impl<T> WithCustomCode<T> {
    /// Wraps `inner`, which has the custom code of `like`.
    pub(crate) fn like<U>(like: &WithCustomCode<U>, inner: T) -> Self {
        WithCustomCode { inner: Arc::new(inner), errors: like.errors.clone() }
    }

    /// Wraps `inner`, whose custom code stores its errors in `errors`.
    pub(super) fn with(inner: T, errors: ErrorSlot) -> Self {
        WithCustomCode { inner: Arc::new(inner), errors }
    }

    /// Wraps `inner`, which has no custom code.
    pub(crate) fn plain(inner: T) -> Self {
        WithCustomCode { inner: Arc::new(inner), errors: ErrorSlot::default() }
    }

    /// Watches for errors from now on.
    pub(crate) fn watch(&self) -> Watch {
        Watch { errors: self.errors.clone(), before: self.errors.count() }
    }

    /// Returns the result of `work`, or the error of custom code meanwhile.
    pub(crate) fn watching<A>(&self, work: impl FnOnce() -> PyResult<A>) -> PyResult<A> {
        let watch = self.watch();
        watch.settle(work())
    }
}

impl<T> Clone for WithCustomCode<T> {
    fn clone(&self) -> Self {
        WithCustomCode { inner: self.inner.clone(), errors: self.errors.clone() }
    }
}

impl<T> Deref for WithCustomCode<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner
    }
}

/// Number of errors of custom code, and the last of them.
#[derive(Clone, Default)]
pub(super) struct ErrorSlot(Arc<Mutex<(u64, Option<PyErr>)>>);

impl ErrorSlot {
    fn count(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    /// Stores `error`.
    pub(super) fn raise(&self, error: PyErr) {
        let mut stored = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = stored.1.replace(error);
        stored.0 += 1;
        // A holder of this lock must not wait for the GIL.
        drop(stored);
        drop(before);
    }
}

/// Watch for errors since its construction.
pub(crate) struct Watch {
    errors: ErrorSlot,
    before: u64,
}

impl Watch {
    /// Returns whether there was no error.
    pub(crate) fn is_ok(&self) -> bool {
        self.errors.count() == self.before
    }

    /// Returns `result`, or the error raised meanwhile.
    pub(crate) fn settle<A>(&self, result: PyResult<A>) -> PyResult<A> {
        if self.is_ok() {
            return result;
        }
        Python::attach(|py| {
            let stored = self.errors.0.lock().unwrap_or_else(PoisonError::into_inner);
            stored.1.as_ref().map_or(result, |error| Err(error.clone_ref(py)))
        })
    }
}

/// Calls of one instance, and whether one has failed.
#[derive(Clone)]
pub(super) struct Calls {
    name: &'static str,
    errors: ErrorSlot,
    failed: bool,
}

impl Calls {
    pub(super) fn new(name: &'static str, errors: &ErrorSlot) -> Self {
        Calls { name, errors: errors.clone(), failed: false }
    }

    /// Returns the result of `call` at `now`; `None` if it failed, now or before.
    pub(super) fn attempt<T>(
        &mut self,
        now: Instant,
        call: impl FnOnce(Python<'_>) -> Result<T, CallError>,
    ) -> Option<T> {
        if self.failed {
            return None;
        }
        Python::attach(call).map_err(|failure| self.fail(now, failure)).ok()
    }

    /// Raises the error that `describe` makes for the name of the algorithm.
    pub(super) fn raise(&self, describe: impl FnOnce(&str) -> PyErr) {
        self.errors.raise(describe(self.name));
    }

    #[cold]
    fn fail(&mut self, now: Instant, failure: CallError) {
        self.failed = true;
        let at = format!("{} at {} s", self.name, now.as_nanos() as f64 / 1e9);
        self.errors.raise(match failure {
            CallError::Raised(error) => custom_error(at, error),
            CallError::Wrong(what) => CustomError::new_err(format!("{at}: {what}")),
        });
    }
}

/// Error of a call.
pub(super) enum CallError {
    /// Exception.
    Raised(PyErr),
    /// Invalid result.
    Wrong(String),
}

impl From<PyErr> for CallError {
    fn from(error: PyErr) -> Self {
        CallError::Raised(error)
    }
}

/// Makes an `CustomError` with the position `at` and the message of `error`, its cause.
pub(super) fn custom_error(at: String, error: PyErr) -> PyErr {
    Python::attach(|py| {
        let raised = CustomError::new_err(format!("{at}: {error}"));
        raised.set_cause(py, Some(error));
        raised
    })
}

/// Returns `repr(result)` for a message.
pub(super) fn repr(result: &Bound<'_, PyAny>) -> String {
    result.repr().map_or_else(|_| "something without repr()".into(), |text| text.to_string())
}
