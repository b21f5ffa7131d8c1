//! Custom sources of traffic in Python: `next()` returns a wait and the bytes to send after it.

use std::num::NonZeroU32;
use std::sync::Arc;

use aqumen_aqm::Param;
use aqumen_scenario::streams::{Draw, Stream};
use aqumen_scenario::traffic::{CustomKind, CustomSource};
use aqumen_units::{Instant, Span};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::copy::deep_copies;
use super::errors::{CallError, Calls, ErrorSlot, custom_error, repr};

/// Most consecutive results without a byte, or without a wait, since the run would not progress.
const RESULTS_MAX: u32 = 100_000;

/// Longest wait, seconds.
const WAIT_S_MAX: f64 = 1e9;

/// Most bytes per transfer.
const BYTES_MAX: u64 = 1 << 24;

/// Makes the traffic kind called `name`; `make` constructs an instance from a seed and the values given.
pub(super) fn kind(name: &'static str, params: &'static [Param], make: Py<PyAny>, errors: &ErrorSlot) -> CustomKind {
    let (make, errors) = (Arc::new(make), errors.clone());
    CustomKind::new(name, params, move |values| {
        // A trial instance, so that its errors occur before the run.
        if let Err(error) = Python::attach(|py| instance(py, &make, 0, values)) {
            errors.raise(custom_error(format!("{name}: cannot be made"), error));
            // The caller raises the stored exception instead of this.
            return Err("cannot be made".into());
        }
        Ok(Box::new(PySource {
            calls: Calls::new(name, &errors),
            make: make.clone(),
            values: values.to_vec(),
            next: None,
            silent: 0,
            still: 0,
        }))
    })
}

/// Makes an instance; returns its `next` method.
fn instance(py: Python<'_>, make: &Py<PyAny>, seed: u64, values: &[(String, f64)]) -> PyResult<Py<PyAny>> {
    let given = PyDict::new(py);
    values.iter().try_for_each(|(name, value)| given.set_item(name, value))?;
    make.call1(py, (seed, given))
}

/// Source in Python. Its instance is made at the first call, since its seed comes from the flow's random stream.
struct PySource {
    calls: Calls,
    make: Arc<Py<PyAny>>,
    values: Vec<(String, f64)>,
    /// `None` before the start.
    next: Option<Py<PyAny>>,
    /// Consecutive results without a byte.
    silent: u32,
    /// Consecutive results without a wait.
    still: u32,
}

impl Clone for PySource {
    fn clone(&self) -> Self {
        let [next] = deep_copies(&self.calls, [self.next.as_ref()]);
        PySource {
            calls: self.calls.clone(),
            make: self.make.clone(),
            values: self.values.clone(),
            next,
            silent: self.silent,
            still: self.still,
        }
    }
}

impl CustomSource for PySource {
    fn next(&mut self, now: Instant, rng: &mut Stream) -> Option<(Span, NonZeroU32)> {
        let PySource { calls, make, values, next, silent, still } = self;
        calls.attempt(now, |py| {
            let next = match next {
                Some(next) => next,
                // All random bits of a draw.
                None => next.insert(instance(py, make, (rng.uniform() * (1u64 << 53) as f64) as u64, values)?),
            };
            let next = next.bind(py);
            let mut waited = Span::ZERO;
            loop {
                let result = next.call0()?;
                let Some((wait, bytes)) = read(&result)? else { return Ok(None) };
                // The sum saturates.
                waited = Span::from_nanos(waited.as_nanos().saturating_add(wait.as_nanos()));
                *still = if wait == Span::ZERO { *still + 1 } else { 0 };
                if *still >= RESULTS_MAX {
                    return Err(CallError::Wrong(format!(
                        "next() returned {RESULTS_MAX} times in a row without a wait"
                    )));
                }
                if let Some(bytes) = NonZeroU32::new(bytes) {
                    *silent = 0;
                    return Ok(Some((waited, bytes)));
                }
                *silent += 1;
                if *silent >= RESULTS_MAX {
                    return Err(CallError::Wrong(format!(
                        "next() returned {RESULTS_MAX} times in a row without a byte"
                    )));
                }
            }
        })?
    }
}

/// Parses the result of `next()`: a wait and a number of bytes, or `None` at the end.
fn read(result: &Bound<'_, PyAny>) -> Result<Option<(Span, u32)>, CallError> {
    if result.is_none() {
        return Ok(None);
    }
    let wrong = |what: &str| Err(CallError::Wrong(format!("next() returned {}; {what}", repr(result))));
    let Ok((wait, bytes)) = result.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() else {
        return wrong("it must return (wait, bytes), or None at the end");
    };
    let wait_s = match wait.extract::<f64>() {
        Ok(wait_s) if (0.0..=WAIT_S_MAX).contains(&wait_s) => wait_s,
        _ => return wrong("a wait is from 0 to 1e9 seconds"),
    };
    match bytes.extract::<u64>() {
        Ok(bytes @ 0..=BYTES_MAX) => Ok(Some((Span::from_nanos((wait_s * 1e9 + 0.5) as u64), bytes as u32))),
        _ => wrong("bytes are a whole number from 0 to 16777216"),
    }
}
