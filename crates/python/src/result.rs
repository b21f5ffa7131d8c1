//! Result of one run, for Python.

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

use crate::error::{refuse, unknown};
use crate::row;

/// Result of one run.
#[pyclass(frozen, module = "aqumen._core")]
pub(crate) struct RunResult(pub(crate) aqumen_result::RunResult);

/// Values, and the fraction at or below each.
pub(crate) type CdfArrays<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

/// Name and values.
type StateArray<'py> = (&'static str, Bound<'py, PyArray1<f64>>);

/// Sampling times of a link, queue lengths and probabilities.
pub(crate) type SeriesArrays<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

#[pymethods]
impl RunResult {
    /// Returns the JSON that `aqumen run --json` prints.
    #[getter]
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&self.0).map_err(refuse)
    }

    /// Returns the digest of the row's columns, which `columns` names, and the row as JSON.
    fn row(&self) -> PyResult<(String, String)> {
        row::row(&self.0).map_err(refuse)
    }

    /// Returns the names of the row's columns.
    fn columns(&self) -> PyResult<Vec<String>> {
        row::columns(&self.0).map_err(refuse)
    }

    /// Returns sampling times in seconds, packets waiting, probability in force.
    fn series<'py>(&self, py: Python<'py>, link: &str) -> PyResult<SeriesArrays<'py>> {
        let series = self.0.series.get(link).ok_or_else(|| unknown(link))?;
        let array = |values: &Vec<f64>| values.clone().into_pyarray(py);
        Ok((array(&series.t_s), array(&series.queue_pkts), array(&series.probability)))
    }

    /// Returns the AQM's state variables at the sampling times, by name.
    fn state<'py>(&self, py: Python<'py>, link: &str) -> PyResult<Vec<StateArray<'py>>> {
        let series = self.0.series.get(link).ok_or_else(|| unknown(link))?;
        let shown = series.state.keys().filter_map(|&name| Some((name, series.state(name)?.into_pyarray(py))));
        Ok(shown.collect())
    }

    /// Distribution of the sojourn times: seconds, and the fraction of packets at or below.
    fn sojourn_cdf<'py>(&self, py: Python<'py>, link: &str, window: &str) -> PyResult<CdfArrays<'py>> {
        let windows = self.0.sojourn.get(link).ok_or_else(|| unknown(link))?;
        let points = windows.get(window).ok_or_else(|| unknown(window))?.cumulative();
        let (seconds, share): (Vec<f64>, Vec<f64>) = points.into_iter().map(|(ns, share)| (ns * 1e-9, share)).unzip();
        Ok((seconds.into_pyarray(py), share.into_pyarray(py)))
    }

    /// Distribution of the queue length: packets, and the fraction of time at or below.
    fn queue_cdf<'py>(&self, py: Python<'py>, link: &str, window: &str) -> PyResult<CdfArrays<'py>> {
        let windows = self.0.queue.get(link).ok_or_else(|| unknown(link))?;
        let points = windows.get(window).ok_or_else(|| unknown(window))?.cumulative();
        // A bin ends with the integer before its edge.
        let (packets, share): (Vec<f64>, Vec<f64>) =
            points.into_iter().map(|(edge, share)| (edge - 1.0, share)).unzip();
        Ok((packets.into_pyarray(py), share.into_pyarray(py)))
    }
}
