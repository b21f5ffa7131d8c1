//! Observation passed to a Python control law at a step. A step takes a microsecond, half of it in the law itself, so
//! the object is reused.

use std::cell::Cell;

use aqumen_aqm::Observation;
use pyo3::ffi;
use pyo3::prelude::*;

/// Observation of the queue; one object serves all steps unless the law keeps a reference to it.
#[pyclass(frozen, get_all, module = "aqumen._core")]
#[derive(Default)]
pub(crate) struct LawView {
    now_s: Slot<f64>,
    interval_s: Slot<f64>,
    queue_pkts: Slot<f64>,
    queue_bytes: Slot<f64>,
    arrivals_pkts: Slot<f64>,
    accepted_pkts: Slot<f64>,
    departures_pkts: Slot<f64>,
    departures_bytes: Slot<f64>,
    busy_s: Slot<f64>,
    idle_s: Slot<f64>,
    sojourn_s: Slot<f64>,
    applied: Slot<f64>,
    r#loop: Slot<usize>,
}

/// Value that changes between steps, but not while Python code holds a reference to its object.
#[derive(Default)]
struct Slot<T>(Cell<T>);

#[allow(unsafe_code, reason = "the GIL serialises accesses")]
// SAFETY: the value is read by Python's attributes and written by `LawView::show`, both with the GIL held. A build for
// the stable ABI, as this one, loads only into an interpreter with a GIL.
unsafe impl<T: Send> Sync for Slot<T> {}

impl<'py, T: Copy + IntoPyObject<'py>> IntoPyObject<'py> for &Slot<T> {
    type Target = T::Target;
    type Output = T::Output;
    type Error = T::Error;

    fn into_pyobject(self, py: Python<'py>) -> Result<T::Output, T::Error> {
        self.0.get().into_pyobject(py)
    }
}

impl LawView {
    /// Stores the observation of loop `which`. The GIL is held.
    fn show(&self, _locked: Python<'_>, which: usize, observation: &Observation) {
        self.now_s.0.set(observation.now.as_secs_f64());
        self.interval_s.0.set(observation.interval_s);
        self.queue_pkts.0.set(observation.queue_pkts);
        self.queue_bytes.0.set(observation.queue_bytes);
        self.arrivals_pkts.0.set(observation.arrivals_pkts);
        self.accepted_pkts.0.set(observation.accepted_pkts);
        self.departures_pkts.0.set(observation.departures_pkts);
        self.departures_bytes.0.set(observation.departures_bytes);
        self.busy_s.0.set(observation.busy_s);
        self.idle_s.0.set(observation.idle_s);
        self.sojourn_s.0.set(observation.sojourn_s);
        self.applied.0.set(observation.applied.get());
        self.r#loop.0.set(which);
    }
}

/// Object of the last step, reused unless the law has kept a reference.
#[derive(Default)]
pub(super) struct View(Option<Py<LawView>>);

impl View {
    /// Calls `step` with the observation of loop `which`; returns its result.
    pub(super) fn show_to<'py>(
        &mut self,
        step: &Bound<'py, PyAny>,
        which: usize,
        observation: &Observation,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = step.py();
        #[allow(unsafe_code, reason = "PyO3 has no safe function for the reference count")]
        // SAFETY: the pointer is a live object, and the GIL is held.
        let ours = self.0.take().filter(|last| unsafe { ffi::Py_REFCNT(last.as_ptr()) } == 1);
        let view = self.0.insert(ours.map_or_else(|| Py::new(py, LawView::default()), Ok)?).bind(py);
        view.get().show(py, which, observation);
        call_with(step, view)
    }
}

/// Calls `function(argument)`. The stable ABI of Python 3.11 has no vectorcall, and `call1` makes a tuple for each
/// call.
fn call_with<'py>(function: &Bound<'py, PyAny>, argument: &Bound<'py, LawView>) -> PyResult<Bound<'py, PyAny>> {
    let end = std::ptr::null_mut::<ffi::PyObject>();
    #[allow(unsafe_code, reason = "for the stable ABI, PyO3 has no call without a tuple")]
    // SAFETY: the GIL is held, as both `Bound` objects prove; the arguments end with a null pointer; the result is a
    // new reference, or null with an exception set.
    unsafe {
        let result = ffi::PyObject_CallFunctionObjArgs(function.as_ptr(), argument.as_ptr(), end);
        Bound::from_owned_ptr_or_err(function.py(), result)
    }
}
