//! Python exceptions.

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyKeyError, PyValueError};
use pyo3::prelude::*;

create_exception!(_core, ScenarioError, PyValueError, "A scenario, an AQM or a file does not fit; one clear line.");
create_exception!(_core, Cancelled, PyException, "The run was stopped by its progress callback.");

/// Converts `error` to a `ScenarioError`.
pub(crate) fn refuse(error: impl ToString) -> PyErr {
    ScenarioError::new_err(error.to_string())
}

/// Converts an error of the packet engine.
pub(crate) fn run_error(error: aqumen_sim::Error) -> PyErr {
    match error {
        aqumen_sim::Error::Cancelled => Cancelled::new_err(error.to_string()),
        error => refuse(error),
    }
}

/// Makes a `KeyError` for an unknown `name`.
pub(crate) fn unknown(name: &str) -> PyErr {
    PyKeyError::new_err(name.to_string())
}
