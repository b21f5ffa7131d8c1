//! Statistics of several runs, and of a sampled queue.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Returns the range of a metric's values, by its key.
#[pyfunction]
pub(crate) fn range_of(metric: &str) -> (f64, f64) {
    aqumen_result::range_of(metric).into()
}

/// Returns mean, standard deviation, 95 % confidence interval and number of `values`, one per run; the interval is
/// bounded by `low` and `high`.
#[pyfunction]
#[pyo3(signature = (values, low=f64::NEG_INFINITY, high=f64::INFINITY))]
#[allow(clippy::type_complexity, reason = "a tuple is what Python unpacks")]
pub(crate) fn summary(
    values: Vec<f64>,
    low: f64,
    high: f64,
) -> PyResult<(f64, Option<f64>, Option<(f64, f64)>, usize)> {
    let summary = aqumen_result::Summary::from_values_in(&values, [low, high]);
    let summary = summary.ok_or_else(|| PyValueError::new_err("no values to summarise"))?;
    Ok((summary.mean, summary.std, summary.ci95.map(|[low, high]| (low, high)), summary.n))
}

/// Returns the quantile of Student's t with `freedom` degrees of freedom.
#[pyfunction]
pub(crate) fn student_quantile(probability: f64, freedom: f64) -> PyResult<f64> {
    if !(probability > 0.0 && probability < 1.0 && freedom > 0.0 && freedom.is_finite()) {
        return Err(PyValueError::new_err("a quantile needs a probability in (0, 1) and degrees of freedom above 0"));
    }
    Ok(aqumen_result::student_quantile(probability, freedom))
}

/// Returns the probability that Student's t with `freedom` degrees of freedom lies beyond `t` on either side.
#[pyfunction]
pub(crate) fn student_tail(t: f64, freedom: f64) -> PyResult<f64> {
    if !(freedom > 0.0 && freedom.is_finite()) || t.is_nan() {
        return Err(PyValueError::new_err("a probability needs a number and degrees of freedom above 0"));
    }
    Ok(aqumen_result::student_tail(t, freedom))
}

/// Returns settling time (seconds; `None` if it does not settle) and overshoot (packets) of a sampled queue between
/// `start_s` and `stop_s`; `None` without a sample there.
#[pyfunction]
pub(crate) fn transient(
    t_s: Vec<f64>,
    queue_pkts: Vec<f64>,
    target_pkts: f64,
    start_s: f64,
    stop_s: f64,
) -> Option<(Option<f64>, f64)> {
    let found = aqumen_result::transient(&t_s, &queue_pkts, target_pkts, start_s, stop_s)?;
    Some((found.settling_s, found.overshoot_pkts))
}
