//! Copies of algorithms and sources in Python, for copies of a session: `copy.deepcopy` of the instance together with
//! its methods. An object that cannot be copied raises through the errors of its catalogue.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::errors::{Calls, custom_error};

/// Returns deep copies of `objects`, which share what these share; themselves where one cannot be copied.
pub(super) fn deep_copies<const N: usize>(calls: &Calls, objects: [Option<&Py<PyAny>>; N]) -> [Option<Py<PyAny>>; N] {
    Python::attach(|py| {
        let originals = objects.map(|object| object.map(|object| object.clone_ref(py)));
        let copied = || -> PyResult<[Option<Py<PyAny>>; N]> {
            let tuple = PyTuple::new(py, originals.each_ref())?;
            let copies = py.import("copy")?.call_method1("deepcopy", (tuple,))?;
            copies.extract()
        };
        copied().unwrap_or_else(|error| {
            calls.raise(|name| custom_error(format!("{name}: cannot be copied"), error));
            originals
        })
    })
}
