//! Copies of algorithms and sources in Python, for copies of a session: `copy.deepcopy` of the instance together with
//! its methods. An object that cannot be copied raises through the errors of its catalogue.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::errors::{Calls, own_error};
use super::law_view::View;
use super::{PyAqm, PyLaw};

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
            calls.raise(|name| own_error(format!("{name}: cannot be copied"), error));
            originals
        })
    })
}

impl Clone for PyLaw {
    fn clone(&self) -> Self {
        let [instance, step] = deep_copies(&self.calls, [Some(&self.instance), Some(&self.step)]);
        let same = |object: &Py<PyAny>| Python::attach(|py| object.clone_ref(py));
        PyLaw {
            calls: self.calls.clone(),
            instance: instance.unwrap_or_else(|| same(&self.instance)),
            step: step.unwrap_or_else(|| same(&self.step)),
            view: View::default(),
            periods: self.periods,
            initial: self.initial,
            params: self.params.clone(),
        }
    }
}

impl Clone for PyAqm {
    fn clone(&self) -> Self {
        let objects = [Some(&self.instance), self.arrival.as_ref(), self.head.as_ref(), self.timer.as_ref()];
        let [instance, arrival, head, timer] = deep_copies(&self.calls, objects);
        PyAqm {
            calls: self.calls.clone(),
            instance: instance.unwrap_or_else(|| Python::attach(|py| self.instance.clone_ref(py))),
            arrival,
            head,
            timer,
            period: self.period,
            due: self.due,
            params: self.params.clone(),
        }
    }
}
