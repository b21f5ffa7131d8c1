//! Ranking of AQMs, and comparison of engines, by `aqumen_result`.

use std::collections::HashSet;

use aqumen_result::Summary;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::error::refuse;
use crate::objects::to_python;

/// Summary from Python; without a mean, it is ignored.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct SummaryItems {
    mean: Option<f64>,
    std: Option<f64>,
    ci95: Option<[f64; 2]>,
    n: usize,
}

/// AQM, rank, whether it is significantly better than all others, tied AQMs, letters.
type RankTuple = (String, usize, bool, Vec<String>, Option<String>);

/// Returns the goals by which AQMs can be ranked.
#[pyfunction]
pub(crate) fn goals(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    to_python(py, &aqumen_result::GOALS)
}

/// Ranks AQMs by the goal `by`. Returns the name of the goal, its description, and the AQMs, the best first.
#[pyfunction]
pub(crate) fn rank(
    summaries: Vec<(String, Vec<(String, SummaryItems)>)>,
    by: Option<&str>,
    base_rtt_s: f64,
) -> PyResult<(&'static str, String, Vec<RankTuple>)> {
    let summary = |(key, items): (String, SummaryItems)| {
        let SummaryItems { mean, std, ci95, n } = items;
        Some((key, Summary { mean: mean?, std, ci95, n }))
    };
    let known = summaries.into_iter().map(|(aqm, all)| (aqm, all.into_iter().filter_map(summary).collect())).collect();
    let found = aqumen_result::rank(&known, by, base_rtt_s).map_err(refuse)?;
    let ranks =
        found.places.into_iter().map(|each| (each.aqm, each.place, each.clearly_best, each.tied_with, each.group));
    Ok((found.goal.name, found.description, ranks.collect()))
}

/// Returns the letters of a compact letter display for `n` items, of which the `pairs` differ.
#[pyfunction]
pub(crate) fn letter_groups(n: usize, pairs: HashSet<(usize, usize)>) -> Vec<String> {
    aqumen_result::letter_groups(n, |i, j| pairs.contains(&(i, j)) || pairs.contains(&(j, i)))
}

/// Returns the mean of the queues of several runs, smoothed by a moving average over the last second.
#[pyfunction]
pub(crate) fn mean_curve<'py>(
    py: Python<'py>,
    t_s: PyReadonlyArray1<'py, f64>,
    queues: Vec<PyReadonlyArray1<'py, f64>>,
) -> Bound<'py, PyArray1<f64>> {
    let queues: Vec<Vec<f64>> = queues.iter().map(|queue| queue.as_array().to_vec()).collect();
    aqumen_result::mean_curve(&t_s.as_array().to_vec(), &queues).into_pyarray(py)
}

/// Returns the root mean square of the difference of two curves, after `start_s` and up to `stop_s`.
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
