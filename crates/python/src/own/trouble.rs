//! What own code raises. Nothing that an engine calls can fail, so what Python raises, or an answer that is none, is
//! kept in the [`Trouble`] of its catalogue; from then on the code is not called, the engine is told to stop where it
//! next asks, and the run answers with what was raised and at what simulated time.

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use aqumen_units::Instant;
use pyo3::import_exception;
use pyo3::prelude::*;

import_exception!(aqumen.errors, OwnError);

/// What knows own code, a catalogue or a scenario, with what that raises.
pub(crate) struct Known<T> {
    inner: Arc<T>,
    trouble: Trouble,
}

impl<T> Known<T> {
    /// `inner`, whose own code is that of `like`.
    pub(crate) fn like<U>(like: &Known<U>, inner: T) -> Self {
        Known { inner: Arc::new(inner), trouble: like.trouble.clone() }
    }

    /// `inner`, whose own code raises into `trouble`.
    pub(super) fn with(inner: T, trouble: Trouble) -> Self {
        Known { inner: Arc::new(inner), trouble }
    }

    /// `inner`, which has no own code.
    pub(crate) fn plain(inner: T) -> Self {
        Known { inner: Arc::new(inner), trouble: Trouble::default() }
    }

    /// Looks out for trouble from now on.
    pub(crate) fn watch(&self) -> Watch {
        Watch { trouble: self.trouble.clone(), before: self.trouble.count() }
    }

    /// The answer of `work`, or what own code raised meanwhile.
    pub(crate) fn watching<A>(&self, work: impl FnOnce() -> PyResult<A>) -> PyResult<A> {
        let watch = self.watch();
        watch.settle(work())
    }
}

impl<T> Clone for Known<T> {
    fn clone(&self) -> Self {
        Known { inner: self.inner.clone(), trouble: self.trouble.clone() }
    }
}

impl<T> Deref for Known<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner
    }
}

/// What own code raised: how often, and what last.
#[derive(Clone, Default)]
pub(super) struct Trouble(Arc<Mutex<(u64, Option<PyErr>)>>);

impl Trouble {
    fn count(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    pub(super) fn raise(&self, error: PyErr) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = kept.1.replace(error);
        kept.0 += 1;
        // Who holds this lock must not wait for the interpreter's.
        drop(kept);
        drop(before);
    }
}

/// Looks out for trouble since it was made.
pub(crate) struct Watch {
    trouble: Trouble,
    before: u64,
}

impl Watch {
    /// Whether there was none.
    pub(crate) fn calm(&self) -> bool {
        self.trouble.count() == self.before
    }

    /// `answer`, or what was raised meanwhile.
    pub(crate) fn settle<A>(&self, answer: PyResult<A>) -> PyResult<A> {
        if self.calm() {
            return answer;
        }
        Python::attach(|py| {
            let kept = self.trouble.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.1.as_ref().map_or(answer, |error| Err(error.clone_ref(py)))
        })
    }
}

/// Calls of one instance, and whether one has failed.
pub(super) struct Calls {
    name: &'static str,
    trouble: Trouble,
    failed: bool,
}

impl Calls {
    pub(super) fn new(name: &'static str, trouble: &Trouble) -> Self {
        Calls { name, trouble: trouble.clone(), failed: false }
    }

    /// What `call` answers at `now`; `None` if it raised, now or before.
    pub(super) fn attempt<T>(
        &mut self,
        now: Instant,
        call: impl FnOnce(Python<'_>) -> Result<T, Failure>,
    ) -> Option<T> {
        if self.failed {
            return None;
        }
        Python::attach(call).map_err(|failure| self.fail(now, failure)).ok()
    }

    #[cold]
    fn fail(&mut self, now: Instant, failure: Failure) {
        self.failed = true;
        let at = format!("{} at {} s", self.name, now.as_nanos() as f64 / 1e9);
        self.trouble.raise(match failure {
            Failure::Raised(error) => own_error(at, error),
            Failure::Wrong(what) => OwnError::new_err(format!("{at}: {what}")),
        });
    }
}

/// Why a call gave no answer.
pub(super) enum Failure {
    /// It raised.
    Raised(PyErr),
    /// It answered what is no answer.
    Wrong(String),
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Failure::Raised(error)
    }
}

/// An error that says `at` and, shortly, what `error` says, which is its cause.
pub(super) fn own_error(at: String, error: PyErr) -> PyErr {
    Python::attach(|py| {
        let told = OwnError::new_err(format!("{at}: {error}"));
        told.set_cause(py, Some(error));
        told
    })
}

pub(super) fn shown(answer: &Bound<'_, PyAny>) -> String {
    answer.repr().map_or_else(|_| "something without repr()".into(), |text| text.to_string())
}
