//! Queueing analysis: from a model file to JSON.

use std::path::PathBuf;

use aqumen_queueing::{Analysis, simulate};
use aqumen_scenario::mmpp::File;
use pyo3::prelude::*;

use crate::error::refuse;
use crate::interrupt::run_with_progress;

/// Solves the model file at `path` with `overrides` (key and value); with `simulate` also a packet simulation. Returns
/// the JSON that `aqumen mmpp --json` prints, and the explicit model as TOML. `remaining` is called with the estimated
/// remaining seconds (at first the total) and the bytes of memory needed; `False` from it cancels the work.
#[pyfunction]
#[pyo3(signature = (path, overrides, simulate = false, remaining = None))]
pub(crate) fn mmpp_solve(
    py: Python<'_>,
    path: PathBuf,
    overrides: Vec<(String, String)>,
    simulate: bool,
    remaining: Option<Py<PyAny>>,
) -> PyResult<(String, String)> {
    solve(py, simulate, remaining, || File::load(path, &borrowed(&overrides)))
}

/// As `mmpp_solve`, for the model in `text`; `file` is its name in messages, and its folder that of traces.
#[pyfunction]
#[pyo3(signature = (text, file, overrides, simulate = false, remaining = None))]
pub(crate) fn mmpp_solve_text(
    py: Python<'_>,
    text: &str,
    file: &str,
    overrides: Vec<(String, String)>,
    simulate: bool,
    remaining: Option<Py<PyAny>>,
) -> PyResult<(String, String)> {
    solve(py, simulate, remaining, || File::parse_with(text, file, &borrowed(&overrides)))
}

fn borrowed(overrides: &[(String, String)]) -> Vec<(&str, &str)> {
    overrides.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect()
}

fn solve(
    py: Python<'_>,
    simulated: bool,
    remaining: Option<Py<PyAny>>,
    read: impl FnOnce() -> Result<File, aqumen_scenario::Error>,
) -> PyResult<(String, String)> {
    let file = read().map_err(refuse)?;
    run_with_progress(py, remaining, move |worker| {
        let report = &mut |seconds, bytes| worker.report((seconds, bytes));
        let analysis = Analysis::with_progress(&file, report).map_err(refuse)?;
        let compared = simulated.then(|| simulate(&analysis.model, &analysis.measures, &analysis.runs));
        Ok((analysis.to_json(compared.as_deref()), analysis.to_toml()))
    })
}
