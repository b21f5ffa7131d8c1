//! Comparison of a prediction with a measurement, and detection of oscillations, by `aqumen_result`.

use aqumen_result::{Measurement, Observations, Oscillation, Prediction};
use pyo3::prelude::*;
use pythonize::depythonize;

use crate::error::refuse;
use crate::objects::to_python;

/// Compares a prediction with a measurement and explains the differences.
///
/// `predicted` is a window of `predict`, `measured` the metrics of a link in that window, `oscillation` the result of
/// the function of that name, `timeouts` the number of all flows; `loops`: the prediction includes margins.
#[pyfunction]
pub(crate) fn compare_prediction<'py>(
    py: Python<'py>,
    predicted: &Bound<'py, PyAny>,
    measured: &Bound<'py, PyAny>,
    oscillation: Option<&Bound<'py, PyAny>>,
    timeouts: Option<u64>,
    loops: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let predicted: Prediction = depythonize(predicted).map_err(refuse)?;
    let measured: Measurement = depythonize(measured).map_err(refuse)?;
    let oscillation: Option<Oscillation> = oscillation.map(depythonize).transpose().map_err(refuse)?;
    let observations = Observations { oscillation: oscillation.as_ref(), timeouts, loops };
    to_python(py, &aqumen_result::compare_prediction(&predicted, &measured, &observations))
}

/// Detects oscillation of a measured queue, sampled at equal intervals; `None` if there are too few samples or the
/// queue is constant.
#[pyfunction]
pub(crate) fn oscillation(
    py: Python<'_>,
    t_s: Vec<f64>,
    queue_pkts: Vec<f64>,
    probability: Vec<f64>,
    noise_std_pkts: Option<f64>,
) -> PyResult<Option<Bound<'_, PyAny>>> {
    let found = aqumen_result::detect_oscillation(&t_s, &queue_pkts, &probability, noise_std_pkts);
    found.map(|found| to_python(py, &found)).transpose()
}
