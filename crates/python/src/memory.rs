//! Guard that ends a run before the system runs out of memory. Engines make no system calls, so their host checks.

use std::time::{Duration, Instant};

use aqumen_scenario::Scenario;
use aqumen_scenario::memory::{Headroom, headroom};
use aqumen_units::Span;
use pyo3::prelude::*;

use crate::error::refuse;

/// Time between two checks, each of which reads a few files.
pub(crate) const PERIOD: Duration = Duration::from_millis(50);

/// Watch over the memory of this process during one run.
pub(crate) struct Guard {
    file: String,
    duration: Span,
    looked: Instant,
    /// The refusal, once the run has been ended.
    ended: Option<String>,
}

impl Guard {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let (file, duration) = (scenario.file().to_string(), scenario.spec().duration);
        Guard { file, duration, looked: Instant::now(), ended: None }
    }

    /// Returns whether a run that is `fraction` complete has enough memory; ends it otherwise.
    pub(crate) fn allows(&mut self, fraction: f64) -> bool {
        if let Some(headroom) = self.look() {
            self.end(fraction, &headroom);
        }
        self.ended.is_none()
    }

    /// Returns the memory of this process if it is short, checked at most once per [`PERIOD`].
    pub(crate) fn look(&mut self) -> Option<Headroom> {
        if self.looked.elapsed() < PERIOD {
            return None;
        }
        let found = short().and_then(|_| {
            give_back();
            short()
        });
        self.looked = Instant::now();
        found
    }

    /// Ends a run that is `fraction` complete.
    pub(crate) fn end(&mut self, fraction: f64, headroom: &Headroom) {
        let duration_s = self.duration.as_secs_f64();
        self.ended = Some(format!(
            "{}: out of memory at {:.3} s of {duration_s} s: {headroom}",
            self.file,
            fraction * duration_s
        ));
    }

    /// Returns the `result` of the run, or the refusal.
    pub(crate) fn settle<T>(self, result: PyResult<T>) -> PyResult<T> {
        match self.ended {
            Some(message) if result.is_err() => Err(refuse(message)),
            _ => result,
        }
    }
}

/// Memory of this process, if too little is left for a run.
fn short() -> Option<Headroom> {
    headroom().filter(Headroom::is_short)
}

/// Returns memory that has been freed to the system: the allocator keeps it for the thread that freed it.
#[allow(unsafe_code, reason = "no crate of ours has the allocator's functions")]
fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        unsafe extern "C" {
            fn malloc_trim(pad: usize) -> std::ffi::c_int;
        }
        // SAFETY: glibc's function takes any number, and may be called from any thread.
        unsafe { malloc_trim(0) };
    }
}
