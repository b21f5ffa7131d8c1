//! Sources of traffic in Python: `next()` says how long to wait and how many bytes to send then.

use std::num::NonZeroU32;
use std::sync::Arc;

use aqumen_aqm::Param;
use aqumen_scenario::streams::{Draw, Stream};
use aqumen_scenario::traffic::{CustomKind, CustomSource};
use aqumen_units::{Instant, Span};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::trouble::{Calls, Failure, Trouble, own_error, shown};

/// Answers in a row of which each sends nothing, or each comes at the same moment: a run would never get past them.
const ANSWERS_MAX: u32 = 100_000;

/// Longest wait, seconds.
const WAIT_S_MAX: f64 = 1e9;

/// Most bytes that are sent at once.
const BYTES_MAX: u64 = 1 << 24;

/// The kind called `name`, of which `make` makes an instance from a seed and the values given.
pub(super) fn kind(name: &'static str, params: &'static [Param], make: Py<PyAny>, trouble: &Trouble) -> CustomKind {
    let (make, trouble) = (Arc::new(make), trouble.clone());
    CustomKind::new(name, params, move |values| {
        // One is made for nothing: what cannot be made is told before a run.
        if let Err(error) = Python::attach(|py| instance(py, &make, 0, values)) {
            trouble.raise(own_error(format!("{name}: cannot be made"), error));
            // Told in place of this by whoever watches.
            return Err("cannot be made".into());
        }
        Ok(Box::new(PySource {
            calls: Calls::new(name, &trouble),
            make: make.clone(),
            values: values.to_vec(),
            next: None,
            silent: 0,
            still: 0,
        }))
    })
}

/// The `next` of a new instance.
fn instance(py: Python<'_>, make: &Py<PyAny>, seed: u64, values: &[(String, f64)]) -> PyResult<Py<PyAny>> {
    let given = PyDict::new(py);
    values.iter().try_for_each(|(name, value)| given.set_item(name, value))?;
    make.call1(py, (seed, given))
}

/// A source in Python. Its instance is made when it is first asked, since its chances come from the flow's random
/// stream.
struct PySource {
    calls: Calls,
    make: Arc<Py<PyAny>>,
    values: Vec<(String, f64)>,
    /// `None` before the start.
    next: Option<Py<PyAny>>,
    /// Answers without a byte in a row.
    silent: u32,
    /// Answers at the same moment in a row.
    still: u32,
}

impl CustomSource for PySource {
    fn next(&mut self, now: Instant, rng: &mut Stream) -> Option<(Span, NonZeroU32)> {
        let PySource { calls, make, values, next, silent, still } = self;
        calls.attempt(now, |py| {
            let next = match next {
                Some(next) => next,
                // All the bits that a draw has.
                None => next.insert(instance(py, make, (rng.uniform() * (1u64 << 53) as f64) as u64, values)?),
            };
            let next = next.bind(py);
            let mut waited = Span::ZERO;
            loop {
                let answer = next.call0()?;
                let Some((wait, bytes)) = read(&answer)? else { return Ok(None) };
                // Waits of 1e9 s are no reason to overflow.
                waited = Span::from_nanos(waited.as_nanos().saturating_add(wait.as_nanos()));
                *still = if wait == Span::ZERO { *still + 1 } else { 0 };
                if *still >= ANSWERS_MAX {
                    return Err(Failure::Wrong(format!("next() answered {ANSWERS_MAX} times in a row without a wait")));
                }
                if let Some(bytes) = NonZeroU32::new(bytes) {
                    *silent = 0;
                    return Ok(Some((waited, bytes)));
                }
                *silent += 1;
                if *silent >= ANSWERS_MAX {
                    return Err(Failure::Wrong(format!("next() answered {ANSWERS_MAX} times in a row without a byte")));
                }
            }
        })?
    }
}

/// What `next()` answered: a wait and a number of bytes, or that there is no more.
fn read(answer: &Bound<'_, PyAny>) -> Result<Option<(Span, u32)>, Failure> {
    if answer.is_none() {
        return Ok(None);
    }
    let wrong = |what: &str| Err(Failure::Wrong(format!("next() answered {}; {what}", shown(answer))));
    let Ok((wait, bytes)) = answer.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() else {
        return wrong("it answers (wait, bytes), or None when there is no more");
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
