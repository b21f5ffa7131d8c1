//! AQMs in order, and engines apart: what `aqumen_result` makes of several runs.

use std::collections::HashSet;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use aqumen_result::Summary;

use crate::error::refuse;

/// A summary as Python has it: mean, standard deviation, interval, number of runs.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Given {
    mean: Option<f64>,
    std: Option<f64>,
    ci95: Option<[f64; 2]>,
    n: usize,
}

/// AQM, place, whether it is clearly best, those with which it is tied, its letters.
type Place = (String, usize, bool, Vec<String>, Option<String>);

/// What AQMs can be ranked by, as JSON.
#[pyfunction]
pub(crate) fn goals_json() -> PyResult<String> {
    serde_json::to_string(&aqumen_result::GOALS).map_err(refuse)
}

/// The name of the goal, the goal in words, and the AQMs in order.
#[pyfunction]
pub(crate) fn rank(
    summaries: Vec<(String, Vec<(String, Given)>)>,
    by: Option<&str>,
    base_rtt_s: f64,
) -> PyResult<(&'static str, String, Vec<Place>)> {
    let summary = |(key, given): (String, Given)| {
        let Given { mean, std, ci95, n } = given;
        Some((key, Summary { mean: mean?, std, ci95, n }))
    };
    let known = summaries.into_iter().map(|(aqm, all)| (aqm, all.into_iter().filter_map(summary).collect())).collect();
    let found = aqumen_result::rank(&known, by, base_rtt_s).map_err(refuse)?;
    let places =
        found.places.into_iter().map(|each| (each.aqm, each.place, each.clearly_best, each.tied_with, each.group));
    Ok((found.goal.name, found.words, places.collect()))
}

/// Letters of a compact letter display for each of `n` rows, of which those in `pairs` differ.
#[pyfunction]
pub(crate) fn letter_groups(n: usize, pairs: HashSet<(usize, usize)>) -> Vec<String> {
    aqumen_result::letter_groups(n, |i, j| pairs.contains(&(i, j)) || pairs.contains(&(j, i)))
}

/// Queues of several runs, averaged over the runs and over the last second.
#[pyfunction]
pub(crate) fn averaged<'py>(
    py: Python<'py>,
    t_s: PyReadonlyArray1<'py, f64>,
    queues: Vec<PyReadonlyArray1<'py, f64>>,
) -> Bound<'py, PyArray1<f64>> {
    let queues: Vec<Vec<f64>> = queues.iter().map(|queue| queue.as_array().to_vec()).collect();
    aqumen_result::averaged(&t_s.as_array().to_vec(), &queues).into_pyarray(py)
}

/// The root mean square of the distance between two curves after `start_s` and up to `stop_s`.
#[pyfunction]
pub(crate) fn curve_rms(
    t_s: PyReadonlyArray1<'_, f64>,
    one: PyReadonlyArray1<'_, f64>,
    other: PyReadonlyArray1<'_, f64>,
    start_s: f64,
    stop_s: f64,
) -> Option<f64> {
    let [t_s, one, other] = [t_s, one, other].map(|each| each.as_array().to_vec());
    aqumen_result::curve_rms(&t_s, &one, &other, start_s, stop_s)
}
