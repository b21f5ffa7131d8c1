//! What Python raises: one clear line each.

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;

create_exception!(_core, ScenarioError, PyValueError, "A scenario, an AQM or a file does not fit; one clear line.");
create_exception!(_core, Cancelled, PyException, "The run was stopped by its progress callback.");

/// A line that says what does not fit.
pub(crate) fn refuse(error: impl ToString) -> PyErr {
    ScenarioError::new_err(error.to_string())
}
